//! Seats that a client holds in a namespace, for the limit on them (I12, decision 45).
//!
//! One item for each client: `held` counts its holds, each an attribute named after its seat, with lobby and
//! time. A request notes a hold before it takes the seat, on condition that there are fewer than the limit.
//! The hold is released when the player leaves, whose token names the client. So a client never has more
//! seats than holds.
//!
//! An expired reservation or the end of a lobby changes no client's item. At the limit, and where nothing
//! speaks for the client yet, a request compares the holds with their lobbies. The write that notes the new
//! hold replaces those whose seats were gone before that read, on condition that they are unchanged: a retry
//! may have pointed one to a seat since. For the same reason a refused find withdraws only a hold that is as
//! it noted it.
//!
//! The same comparison gives the client its [`Standing`], which the item keeps: proven once one of its
//! players connected, as is the release of a seat that was connected, and a strike for each reservation that
//! was replaced although nobody used it (decision 65).
//!
//! The item also names the lobbies that a player of the client was removed from, each an attribute with the
//! time until which no other is seated there. Whoever notes a hold reads it (decision 68).

use std::{collections::BTreeMap, time::Duration};

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::Value;

use crate::{
    base::ambient::Timestamp,
    models::{
        client::Client,
        errors::Error,
        ids::{LobbyId, SeatId},
        seats::Seats,
        standing::{Standing, UNPROVEN_SEATS_MAX},
    },
    store::{
        client::Store,
        items::{number, text},
        keys::pk_item,
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
/// The prefix of the attribute of a lobby that a player was removed from.
const REMOVED_FROM: &str = "removed_";
/// Lobbies that one removal forgets at most, of those in which the client may be seated again.
const READMITTED_MAX: usize = 16;

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

/// A client's holds, the oldest first, as far as this release can read them, and its standing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientHolds {
    /// The holds.
    pub holds: Vec<Hold>,
    /// What is known of it.
    pub standing: Standing,
    /// The lobbies that a player of it was removed from, and until when none is seated there again.
    pub removed_from: BTreeMap<LobbyId, Timestamp>,
}

impl ClientHolds {
    /// Whether none of its players is seated in a lobby, from which one was removed.
    #[must_use]
    pub fn was_removed_from(&self, lobby_id: &LobbyId, now: Timestamp) -> bool {
        self.removed_from.get(lobby_id).is_some_and(|until| *until > now)
    }

    /// Some of the lobbies in which a player may be seated again.
    fn readmitted_to(&self, now: Timestamp) -> Vec<LobbyId> {
        let again = self.removed_from.iter().filter(|(_, until)| **until <= now);
        again.map(|(lobby_id, _)| lobby_id.clone()).take(READMITTED_MAX).collect()
    }

    /// How little speaks for the client besides the `seats` that it is about to take, or has just taken.
    #[must_use]
    pub fn doubt(&self, seats: &Seats) -> u32 {
        let is_own = |hold: &Hold| seats.iter().any(|seat_id| hold.seat_id == *seat_id);
        let others = self.holds.iter().filter(|hold| !is_own(hold)).count();
        self.standing.doubt(u32::try_from(others).unwrap_or(u32::MAX))
    }
}

/// What a comparison of a client's holds with their lobbies showed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// Holds whose seats are gone, at most [`REPLACED_MAX`]: the new one replaces them.
    pub replaced: Vec<Hold>,
    /// How many of them lapsed, or ended with their lobby, before their player connected.
    pub strikes: u32,
    /// Whether a player of the client connected.
    pub is_proven: bool,
}

/// The result of noting a hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HoldOutcome {
    /// It is noted. The client's item with it.
    Noted(ClientHolds),
    /// An earlier run for the same seat noted this hold, maybe in another lobby.
    NotedBefore(Hold),
    /// The client has as many holds as it may, or more than speaks for it.
    Refused(ClientHolds),
}

/// How a player left a seat, which counts for the client's standing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// After connecting there, which speaks for the client.
    Disconnected,
    /// Its server freed the seat before the player came.
    Released,
    /// The player gave it up before connecting, which counts as a reservation that lapsed.
    GaveUp,
}

impl Store {
    /// Notes the holds of `seats`, all or none, while its client has fewer than `holds_max` with them: that
    /// of the first is `hold`, and the others name its lobby and time. Without a comparison, a client of whom
    /// nobody connected may also have no more than [`UNPROVEN_SEATS_MAX`], and no strike. With one, they
    /// replace the holds that it names, which must be unchanged: a retry may have pointed one to a seat. One
    /// write unit for each started KB of the item, which a dozen holds fill, also when refused.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`]; they may be noted all the same.
    pub async fn hold_seats(
        &self,
        client: &Client,
        (seats, hold): (&Seats, &Hold),
        holds_max: u32,
        compared: Option<&Compared>,
    ) -> Result<HoldOutcome, Error> {
        let write = name_holds(self.on_client(key(client)), seats)
            .with(":hold", hold.value())
            .with(":expiry", number((hold.since + HOLDS_LIFE).secs()));
        let (members, others) = (set_others(seats), seats.count() - 1);
        let write = match compared {
            None => {
                let (count, more) =
                    if others == 0 { (None, ":one") } else { (Some(seats.count()), ":count") };
                // A client without holds may take a party of two at once, and compares for a larger one.
                let few =
                    if seats.count() > UNPROVEN_SEATS_MAX { "" } else { "attribute_not_exists(#held) OR " };
                write
                    .change(format!(
                        "SET #seat = :hold{members}, #held = if_not_exists(#held, :zero) + {more}, #expires_at = :expiry"
                    ))
                    .when(format!(
                        "attribute_not_exists(#seat) AND (attribute_not_exists(#held) OR #held < :limit) \
                         AND (attribute_exists(#proven_at) OR attribute_not_exists(#strikes)) \
                         AND (attribute_exists(#proven_at) OR {few}#held < :unproven)"
                    ))
                    .with(":limit", number(holds_max.saturating_sub(others)))
                    .with(":unproven", number(UNPROVEN_SEATS_MAX.saturating_sub(others)))
                    .with(":count", count.map(number))
            }
            Some(compared) => hold_as_compared(write, (seats, hold), holds_max, compared),
        };
        match self.update::<HoldsItem>(write).await? {
            Ok(item) => Ok(HoldOutcome::Noted(holds_in(&item))),
            Err(item) => {
                let seen = item.map(|item| holds_in(&item)).unwrap_or_default();
                Ok(match seen.holds.iter().find(|noted| noted.seat_id == hold.seat_id) {
                    // An earlier attempt of this very write succeeded, but its response was lost.
                    Some(noted) if noted == hold => HoldOutcome::Noted(seen),
                    Some(noted) => HoldOutcome::NotedBefore(noted.clone()),
                    None => HoldOutcome::Refused(seen),
                })
            }
        }
    }

    /// Points the holds of `seats`, which are still as `seen`, to the lobby and time of `hold`, where the
    /// seats are or are about to be. False when one is gone or changed. One write unit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn point_holds(
        &self,
        client: &Client,
        seats: &Seats,
        seen: &Hold,
        hold: &Hold,
    ) -> Result<bool, Error> {
        // As seen, so that a late copy of an earlier write does not point it back.
        let write = name_holds(self.on_client(key(client)), seats)
            .change(format!("SET #seat = :hold{}", set_others(seats)))
            .when(format!("#seat = :seen{}", others_as_seen(seats)))
            .with(":seen", seen.value())
            .with(":hold", hold.value());
        Ok(match self.update::<HoldsItem>(write).await? {
            Ok(_) => true,
            // True if an earlier attempt of this very write succeeded, but its response was lost.
            Err(item) => item.is_some_and(|item| holds_in(&item).holds.contains(hold)),
        })
    }

    /// Releases the hold of `seat_id`, which its player left as `departure` says; harmless when there is
    /// none. One write unit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn release_hold(
        &self,
        client: &Client,
        seat_id: &SeatId,
        departure: Departure,
        now: Timestamp,
    ) -> Result<(), Error> {
        let write = self.release(client, seat_id, "attribute_exists(#seat)");
        let write = match departure {
            Departure::Disconnected => write
                .change("SET #held = #held - :one, #proven_at = :now REMOVE #seat, #strikes")
                .with(":now", number(now)),
            Departure::Released => write,
            Departure::GaveUp => write.change(
                "SET #held = #held - :one, #strikes = if_not_exists(#strikes, :zero) + :one REMOVE #seat",
            ),
        };
        self.update::<HoldsItem>(write).await.map(|_| ())
    }

    /// Notes that a player of `client` was removed from a lobby, in which none is seated again before
    /// `until`. Forgets lobbies in which that is over, so that the item grows no longer than they count
    /// (I14). One write unit, and one more where it forgets some.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn keep_out(
        &self,
        client: &Client,
        lobby_id: &LobbyId,
        until: Timestamp,
        now: Timestamp,
    ) -> Result<(), Error> {
        let write = self
            .on_client(key(client))
            .change("SET #removed_from = :readmitted_at, #expires_at = :expiry")
            .name("#removed_from", format!("{REMOVED_FROM}{lobby_id}"))
            .with(":readmitted_at", number(until))
            .with(":expiry", number((now + HOLDS_LIFE).secs()));
        let item = self.update::<HoldsItem>(write).await?.unwrap_or_default();
        let readmitted = holds_in(&item).readmitted_to(now);
        if readmitted.is_empty() {
            return Ok(());
        }
        let names: Vec<_> = (0..readmitted.len()).map(|n| format!("#readmitted{n}")).collect();
        let write = self.on_client(key(client)).change(format!("REMOVE {}", names.join(", ")));
        let write = names
            .into_iter()
            .zip(readmitted)
            .fold(write, |write, (name, lobby_id)| write.name(name, format!("{REMOVED_FROM}{lobby_id}")));
        self.update::<HoldsItem>(write).await.map(|_| ())
    }

    /// Withdraws a hold whose seat was not taken, if it is still as `seen`: a retry of the request may have
    /// pointed it to a seat. One write unit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn withdraw_hold(&self, client: &Client, seen: &Hold) -> Result<(), Error> {
        self.withdraw_holds(client, &Seats::one(seen.seat_id.clone()), seen).await
    }

    /// The same for all `seats` of a request, of which `seen` is the first one's hold.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn withdraw_holds(&self, client: &Client, seats: &Seats, seen: &Hold) -> Result<(), Error> {
        let write = name_holds(self.on_client(key(client)), seats).with(":seen", seen.value());
        let write = match seats.others() {
            [] => write.change("SET #held = #held - :one REMOVE #seat"),
            others => {
                let members: String = (0..others.len()).map(|n| format!(", #member{n}")).collect();
                write
                    .change(format!("SET #held = #held - :count REMOVE #seat{members}"))
                    .with(":count", number(seats.count()))
            }
        };
        let write = write.when(format!("#seat = :seen{}", others_as_seen(seats)));
        self.update::<HoldsItem>(write).await.map(|_| ())
    }

    fn release(&self, client: &Client, seat_id: &SeatId, condition: &str) -> Write {
        self.on_client(key(client))
            .change("SET #held = #held - :one REMOVE #seat")
            .when(condition)
            .name("#seat", Hold::name(seat_id))
    }

    /// The holds of a client, and its standing. One consistent read unit for each started 4 KB.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn holds(&self, client: &Client) -> Result<ClientHolds, Error> {
        let key = pk_item(key(client));
        let item: Option<HoldsItem> = self.read(&self.tables.clients, key, true).await?;
        Ok(item.map(|item| holds_in(&item)).unwrap_or_default())
    }
}

/// Names the attributes of the holds of `seats`.
fn name_holds(write: Write, seats: &Seats) -> Write {
    let members = seats.others().iter().enumerate();
    let write = write.name("#seat", Hold::name(seats.first()));
    members.fold(write, |write, (n, seat_id)| write.name(format!("#member{n}"), Hold::name(seat_id)))
}

/// The assignments for the other seats of a party.
fn set_others(seats: &Seats) -> String {
    (0..seats.others().len()).map(|n| format!(", #member{n} = :hold")).collect()
}

fn others_as_seen(seats: &Seats) -> String {
    (0..seats.others().len()).map(|n| format!(" AND #member{n} = :seen")).collect()
}

/// Makes `write` note the holds of `seats`, the first one's of which is `hold`, in place of those that were
/// `compared`, with what that showed.
fn hold_as_compared(
    write: Write,
    (seats, hold): (&Seats, &Hold),
    holds_max: u32,
    compared: &Compared,
) -> Write {
    let others = seats.count() - 1;
    let count = u32::try_from(compared.replaced.len()).unwrap_or(u32::MAX);
    let numbers = 0..compared.replaced.len();
    let mut gone: Vec<_> = numbers.clone().map(|n| format!("#lapsed{n}")).collect();
    let stand: String = numbers.map(|n| format!(" AND #lapsed{n} = :lapsed{n}")).collect();
    let mut change = format!(
        "SET #seat = :hold{}, #held = if_not_exists(#held, :zero) + :more, #expires_at = :expiry",
        set_others(seats)
    );
    if compared.is_proven {
        change.push_str(", #proven_at = :since");
        gone.push("#strikes".to_owned());
    } else if compared.strikes > 0 {
        change.push_str(", #strikes = if_not_exists(#strikes, :zero) + :struck");
    }
    if !gone.is_empty() {
        change = format!("{change} REMOVE {}", gone.join(", "));
    }
    let condition =
        format!("attribute_not_exists(#seat) AND (attribute_not_exists(#held) OR #held < :limit){stand}");
    let write = write
        .change(change)
        .when(condition)
        .with(":limit", number(holds_max.saturating_add(count).saturating_sub(others)))
        .with(":more", number(i64::from(seats.count()) - i64::from(count)))
        .with(":since", compared.is_proven.then(|| number(hold.since)))
        .with(":struck", (!compared.is_proven && compared.strikes > 0).then(|| number(compared.strikes)));
    compared.replaced.iter().enumerate().fold(write, |write, (n, hold)| {
        let write = write.name(format!("#lapsed{n}"), Hold::name(&hold.seat_id));
        write.with(format!(":lapsed{n}"), hold.value())
    })
}

fn holds_in(item: &HoldsItem) -> ClientHolds {
    let mut holds: Vec<Hold> = item.iter().filter_map(|(name, value)| Hold::read(name, value)).collect();
    // The oldest first: those are the likeliest to be stale.
    holds.sort_by(|a, b| (a.since, &a.seat_id).cmp(&(b.since, &b.seat_id)));
    let strikes = item.get("strikes").and_then(Value::as_u64);
    let strikes = u32::try_from(strikes.unwrap_or_default()).unwrap_or(u32::MAX);
    let standing = Standing { is_proven: item.contains_key("proven_at"), strikes };
    let removed_from = item.iter().filter_map(|(name, until)| {
        Some((name.strip_prefix(REMOVED_FROM)?.parse().ok()?, Timestamp(until.as_u64()?)))
    });
    ClientHolds { holds, standing, removed_from: removed_from.collect() }
}
