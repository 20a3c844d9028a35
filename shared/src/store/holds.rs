//! Seats that a client holds in a namespace, for the limit on them (I12, decision 45).
//!
//! One item for each client: `held` counts its holds, each an attribute named after its seat, with lobby and
//! time. A request notes a hold before it takes the seat, on condition that there are fewer than the limit.
//! The hold is released when the player leaves, whose token names the client. So a client never has more
//! seats than holds.
//!
//! An expired reservation or the end of a lobby changes no client's item. At the limit, a request compares
//! the holds with their lobbies. The write that notes the new hold replaces those whose seats were gone
//! before that read, on condition that they are unchanged: a retry may have pointed one to a seat since. For
//! the same reason a refused find withdraws only a hold that is as it noted it.

use std::{collections::BTreeMap, time::Duration};

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::Value;

use crate::{
    base::ambient::Timestamp,
    models::{
        client::Client,
        errors::Error,
        ids::{LobbyId, SeatId},
    },
    store::{
        client::Store,
        items::{Item, number, text},
        writes::Write,
    },
};

/// How long a client's item is kept after its last hold: longer than any seat is held.
const HOLDS_LIFE: Duration = Duration::from_secs(10 * 3_600);
/// Holds that one write replaces at most: each takes 26 bytes of its condition, which may have 4 KB and 300
/// operators.
pub const REPLACED_MAX: usize = 100;
/// The prefix of a hold's attribute.
const HOLD: &str = "seat_";

/// A client's item: each attribute by its name.
pub(super) type HoldsItem = BTreeMap<String, Value>;

fn key(client: &Client) -> String {
    client.key("holds")
}

/// A seat that a client holds, or is about to take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// The seat.
    pub seat_id: SeatId,
    /// The seat's lobby, or the first that was tried.
    pub lobby_id: LobbyId,
    /// When it was noted.
    pub since: Timestamp,
}

impl Hold {
    fn name(seat_id: &SeatId) -> String {
        format!("{HOLD}{seat_id}")
    }

    fn value(&self) -> AttributeValue {
        text(format!("{}~{}", self.lobby_id, self.since))
    }

    fn read(name: &str, value: &Value) -> Option<Self> {
        let seat_id = name.strip_prefix(HOLD)?.parse().ok()?;
        let (lobby_id, since) = value.as_str()?.split_once('~')?;
        Some(Self { seat_id, lobby_id: lobby_id.parse().ok()?, since: Timestamp(since.parse().ok()?) })
    }
}

/// The result of noting a hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HoldOutcome {
    /// It is noted.
    Noted,
    /// An earlier run for the same seat noted this hold, maybe in another lobby.
    NotedBefore(Hold),
    /// The client has these holds, as many as it may, as far as this release can read them.
    AtCap(Vec<Hold>),
}

impl Store {
    /// Notes `hold` while its client has fewer than `holds_max`, in place of `replaced`, at most
    /// [`REPLACED_MAX`]. These must be unchanged since they were read: a retry may have pointed one to a
    /// seat. One write unit for each started KB of the item, which a dozen holds fill, also when refused.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`]; it may be noted all the same.
    pub async fn hold_seat(
        &self,
        client: &Client,
        hold: &Hold,
        holds_max: u32,
        replaced: &[Hold],
    ) -> Result<HoldOutcome, Error> {
        let count = u32::try_from(replaced.len()).unwrap_or(u32::MAX);
        let write = self
            .on_client(key(client))
            .name("#seat", Hold::name(&hold.seat_id))
            .with(":hold", hold.value())
            .with(":limit", number(holds_max.saturating_add(count)))
            .with(":expiry", number((hold.since + HOLDS_LIFE).secs()));
        let write = if replaced.is_empty() {
            let free = "attribute_not_exists(#seat) AND (attribute_not_exists(#held) OR #held < :limit)";
            write
                .change(
                    "SET #seat = :hold, #held = if_not_exists(#held, :zero) + :one, #expires_at = :expiry",
                )
                .when(free)
        } else {
            let numbers = 0..replaced.len();
            let gone: Vec<_> = numbers.clone().map(|n| format!("#lapsed{n}")).collect();
            let stand: Vec<_> = numbers.map(|n| format!("#lapsed{n} = :lapsed{n}")).collect();
            let (gone, stand) = (gone.join(", "), stand.join(" AND "));
            let write = write
                .change(format!(
                    "SET #seat = :hold, #held = #held - :freed, #expires_at = :expiry REMOVE {gone}"
                ))
                .when(format!("attribute_not_exists(#seat) AND #held < :limit AND {stand}"))
                .with(":freed", number(count.saturating_sub(1)));
            replaced.iter().enumerate().fold(write, |write, (n, hold)| {
                let write = write.name(format!("#lapsed{n}"), Hold::name(&hold.seat_id));
                write.with(format!(":lapsed{n}"), hold.value())
            })
        };
        match self.update::<HoldsItem>(write).await? {
            Ok(_) => Ok(HoldOutcome::Noted),
            Err(item) => {
                let holds = item.map(|item| holds_in(&item)).unwrap_or_default();
                Ok(match holds.iter().find(|noted| noted.seat_id == hold.seat_id) {
                    // An earlier attempt of this very write succeeded, but its response was lost.
                    Some(noted) if noted == hold => HoldOutcome::Noted,
                    Some(noted) => HoldOutcome::NotedBefore(noted.clone()),
                    None => HoldOutcome::AtCap(holds),
                })
            }
        }
    }

    /// Points a hold that is still as `seen` to the lobby and time of `hold`, where its seat is or is about
    /// to be. False when the hold is gone or changed. One write unit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn point_hold(&self, client: &Client, seen: &Hold, hold: &Hold) -> Result<bool, Error> {
        // As seen, so that a late copy of an earlier write does not point it back.
        let write = self
            .on_client(key(client))
            .change("SET #seat = :hold")
            .when("#seat = :seen")
            .name("#seat", Hold::name(&hold.seat_id))
            .with(":seen", seen.value())
            .with(":hold", hold.value());
        Ok(match self.update::<HoldsItem>(write).await? {
            Ok(_) => true,
            // True if an earlier attempt of this very write succeeded, but its response was lost.
            Err(item) => item.is_some_and(|item| holds_in(&item).contains(hold)),
        })
    }

    /// Releases the hold of `seat_id`, which its player left; harmless when there is none. One write unit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn release_hold(&self, client: &Client, seat_id: &SeatId) -> Result<(), Error> {
        let write = self.release(client, seat_id, "attribute_exists(#seat)");
        self.update::<HoldsItem>(write).await.map(|_| ())
    }

    /// Withdraws a hold whose seat was not taken, if it is still as `seen`: a retry of the request may have
    /// pointed it to a seat. One write unit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn withdraw_hold(&self, client: &Client, seen: &Hold) -> Result<(), Error> {
        let write = self.release(client, &seen.seat_id, "#seat = :seen");
        let write = write.with(":seen", seen.value());
        self.update::<HoldsItem>(write).await.map(|_| ())
    }

    fn release(&self, client: &Client, seat_id: &SeatId, condition: &str) -> Write {
        self.on_client(key(client))
            .change("SET #held = #held - :one REMOVE #seat")
            .when(condition)
            .name("#seat", Hold::name(seat_id))
    }

    /// The holds of a client. One consistent read unit for each started 4 KB.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn holds(&self, client: &Client) -> Result<Vec<Hold>, Error> {
        let key = Item::from([("pk".to_owned(), text(key(client)))]);
        let item: Option<HoldsItem> = self.read(&self.tables.clients, key).await?;
        Ok(item.map(|item| holds_in(&item)).unwrap_or_default())
    }
}

fn holds_in(item: &HoldsItem) -> Vec<Hold> {
    let mut holds: Vec<Hold> = item.iter().filter_map(|(name, value)| Hold::read(name, value)).collect();
    // The oldest first: those are the likeliest to be stale.
    holds.sort_by(|a, b| (a.since, &a.seat_id).cmp(&(b.since, &b.seat_id)));
    holds
}
