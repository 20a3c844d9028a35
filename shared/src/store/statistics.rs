//! The last count of a namespace's players, shared by all instances, and which instance may count next.

use std::time::Duration;

use serde::Deserialize;

use crate::{
    base::ambient::Timestamp,
    models::{errors::Error, ids::NamespaceId},
    store::{
        client::Store,
        items::{number, text},
        keys::pk_item,
    },
};

/// How old a count may be (decision 42).
pub const COUNT_AGE_MAX: Duration = Duration::from_secs(5);
/// How long a counting instance keeps others from counting: longer than a function runs.
pub const COUNTING_MAX: Duration = Duration::from_secs(30);
/// How long the last count is kept.
const COUNT_LIFE: Duration = Duration::from_secs(24 * 3_600);

/// A count as kept: JSON text that only the operation reads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct KeptCount {
    /// When it was counted; absent while the first one is under way.
    pub counted_at: Option<Timestamp>,
    /// The count.
    #[serde(default)]
    pub json: String,
}

/// Which instance counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    /// This one.
    Own,
    /// Another one counts, or did within [`COUNT_AGE_MAX`]. The last count, as it is kept.
    Others(KeptCount),
}

fn statistics_key(namespace_id: &NamespaceId) -> String {
    format!("statistics/{namespace_id}")
}

impl Store {
    /// The last count of a namespace's players. 0.5 read units for each started 4 KB.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn kept_count(&self, namespace_id: &NamespaceId) -> Result<Option<KeptCount>, Error> {
        self.read(&self.tables.ledger, pk_item(statistics_key(namespace_id)), false).await
    }

    /// Takes the turn to count, unless another instance counts, or did within [`COUNT_AGE_MAX`]. One write
    /// unit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn take_turn_to_count(
        &self,
        namespace_id: &NamespaceId,
        now: Timestamp,
    ) -> Result<Turn, Error> {
        let condition = "(attribute_not_exists(#claimed_at) OR #claimed_at <= :stale) \
                         AND (attribute_not_exists(#counted_at) OR #counted_at <= :old)";
        let write = self
            .on_ledger(statistics_key(namespace_id))
            .change("SET #claimed_at = :now, #expires_at = :expiry")
            .when(condition)
            .with(":now", number(now))
            .with(":stale", number(now.before(COUNTING_MAX)))
            .with(":old", number(now.before(COUNT_AGE_MAX)))
            .with(":expiry", number((now + COUNT_LIFE).secs()));
        Ok(match self.update::<KeptCount>(write).await? {
            Ok(_claimed) => Turn::Own,
            Err(kept) => Turn::Others(kept.unwrap_or_default()),
        })
    }

    /// Keeps the count of the turn taken at `claimed_at` for the other instances, and gives the turn back,
    /// unless another instance has taken the turn since. One write unit for each started KB.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn keep_count(
        &self,
        namespace_id: &NamespaceId,
        json: &str,
        claimed_at: Timestamp,
        counted_at: Timestamp,
    ) -> Result<(), Error> {
        let write = self
            .on_ledger(statistics_key(namespace_id))
            .change("SET #counted_at = :at, #json = :json, #expires_at = :expiry REMOVE #claimed_at")
            .when("#claimed_at = :claimed")
            .with(":at", number(counted_at))
            .with(":json", text(json))
            .with(":claimed", number(claimed_at))
            .with(":expiry", number((counted_at + COUNT_LIFE).secs()));
        self.applies(write).await.map(|_kept| ())
    }
}
