//! What operators did: an item for each command that changed something, kept for 90 days.
//!
//! The catalogue's partition `ACTIONS#<game>` has those of a game, `ACTIONS` those that concern the whole
//! deployment, by time. The store keeps what the operator's command says of itself; AWS's own trail names the
//! credentials that wrote it.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    base::ambient::Timestamp,
    models::{errors::Error, ids::GameId},
    store::{
        client::Store,
        items::text,
        queries::{page, query},
    },
};

/// How long an action is kept.
const KEPT: Duration = Duration::from_secs(90 * 24 * 3_600);

/// What an operator did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatorAction {
    /// The game that it concerned; `None` for the whole deployment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub game_id: Option<GameId>,
    /// When it was done.
    pub at: Timestamp,
    /// Who did it, as the operator's machine names the user.
    pub who: String,
    /// The command's verb, such as `token revoke`.
    pub verb: String,
    /// What it was applied to, without secrets.
    pub target: String,
    /// Whether it failed on the way, so that a part of it may be done.
    #[serde(default)]
    pub has_failed: bool,
}

/// An action as it is stored.
#[derive(Serialize)]
struct Expiring<'a> {
    #[serde(flatten)]
    action: &'a OperatorAction,
    expires_at: u64,
}

fn actions_key(game_id: Option<&GameId>) -> String {
    game_id.map_or_else(|| "ACTIONS".to_owned(), |game_id| format!("ACTIONS#{game_id}"))
}

fn sort_key(at: Timestamp) -> String {
    format!("{:020}", at.0)
}

impl Store {
    /// Notes an action; `id` is fresh. One transaction of two write units.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn note_action(&self, action: &OperatorAction, id: Uuid) -> Result<(), Error> {
        let key = (actions_key(action.game_id.as_ref()), format!("{}#{id}", sort_key(action.at)));
        let put = self.put_new(key, &Expiring { action, expires_at: (action.at + KEPT).secs() })?;
        self.together(vec![put]).await.map(drop)
    }

    /// The last actions on a game, or on the whole deployment, newest first, at most `limit`. One query.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn actions(
        &self,
        game_id: Option<&GameId>,
        now: Timestamp,
        limit: u16,
    ) -> Result<Vec<OperatorAction>, Error> {
        let since = Timestamp(now.0.saturating_sub(KEPT.as_millis() as u64));
        let query = query(self, &self.tables.catalog, "#pk = :pk AND #sk > :since")
            .consistent_read(true)
            .scan_index_forward(false)
            .limit(limit.into())
            .expression_attribute_values(":pk", text(actions_key(game_id)))
            .expression_attribute_values(":since", text(sort_key(since)));
        Ok(page(self, query).await?.0)
    }
}
