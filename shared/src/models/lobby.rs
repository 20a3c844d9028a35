//! A lobby as stored, and what follows from it: held seats, lapsed seats, whether it may end.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Deserializer, Serialize};

use crate::{
    base::{ambient::Timestamp, record::known},
    models::{
        generations::Generations,
        ids::{LobbyId, SeatId, ServerKey, StartMark, WriteId},
        launch::LaunchWait,
        lobby_code::LobbyCode,
        pool::Pool,
        ports::Ports,
        room::Room,
        tag_digests::TagDigests,
    },
};

/// One lobby: the only truth about its seats.
///
/// Attribute names are those of the fields. A lobby of capacity 10 stays below 1 KB, the size of one write
/// unit; its tags, its state and its configuration are items of their own, see [`crate::store::lobby_data`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lobby {
    /// Its identifier.
    pub lobby_id: LobbyId,
    /// The pool of finds that can enter it; also the key of the index of candidates.
    pub pool: Pool,
    /// From when a find may look at it, in the index of candidates: its creation while seats are free, the
    /// time at which its first seat lapses while full; absent when no find may see it (closed, private,
    /// ended).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub joinable_from: Option<Timestamp>,
    /// When it was created.
    pub created_at: Timestamp,
    /// Its stage; [`Stage::Unknown`] when this release does not know it.
    #[serde(deserialize_with = "known_stage")]
    pub stage: Stage,
    /// Whether its lobby server closed it to finds.
    pub closed: bool,
    /// When it was last closed, reopened, made public or private, so that a late copy of an earlier write
    /// changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toggled_at: Option<Timestamp>,
    /// Its code, if a player created it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<LobbyCode>,
    /// Whether players can enter only by its identifier or code.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_private: bool,
    /// Whether its game server deregistered: it stays closed and ends when it is empty, or when that server
    /// sends no more heartbeats.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_draining: bool,
    /// The game server that runs it; absent once ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerKey>,
    /// The server's start that it was placed on; absent when an earlier release placed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<StartMark>,
    /// When its lease expires; [`Timestamp::NEVER`] for servers without lease.
    pub lease_until: Timestamp,
    /// The wait for that server, until it is ready, where Muster has it started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch: Option<LaunchWait>,
    /// When that server last gave up its lease, so that a late write of an earlier heartbeat gives the lobby
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub freed_at: Option<Timestamp>,
    /// Its server's ports.
    pub ports: Ports,
    /// Digests of its tags, which never change.
    #[serde(default, skip_serializing_if = "TagDigests::is_empty")]
    pub tag_digests: TagDigests,
    /// Its capacity for finds.
    pub max_players: u32,
    /// Its capacity for joins, at least `max_players`.
    pub max_players_direct: u32,
    /// Its capacity for parties, where that of their door is lower; absent where its mode seats no parties.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_players_party: Option<u32>,
    /// The largest party that its mode seats together; absent where that is one player.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub party_size_max: Option<u32>,
    /// Its place in the index of lobbies with room for parties, as it was last noted; absent without room for
    /// two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<Room>,
    /// How long a seat waits for its player, in seconds.
    pub reservation_secs: u32,
    /// How long it stays without a held seat once a player has connected, in seconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub idle_secs: u32,
    /// How long a seat is kept for a player who disconnected, in seconds, unless its server says otherwise.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub keep_secs: u32,
    /// Seats taken: the entries of `reserved` and `connected` together, lapsed or not.
    pub taken: u32,
    /// Seats that wait for their player, each with the time at which it lapses; none lapses while the lobby
    /// starts.
    pub reserved: BTreeMap<SeatId, Timestamp>,
    /// Seats whose player connected, each with the latest time at which it lapses.
    pub connected: BTreeMap<SeatId, Timestamp>,
    /// The tokens of those of its seats whose players came back, or whose connection was lost; absent until
    /// the first did.
    #[serde(default, deserialize_with = "known_tokens", skip_serializing_if = "Option::is_none")]
    pub generations: Option<BTreeMap<SeatId, Generations>>,
    /// When the last seat was given up or began to be kept, or the lobby became ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vacated_at: Option<Timestamp>,
    /// The last reservations that lapsed and were taken over, so that their players get the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lapsed: Vec<SeatId>,
    /// The last write that connected a player, so that a copy of it is recognised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connected_by: Option<WriteId>,
    /// When the first player connected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joined_at: Option<Timestamp>,
    /// How little spoke for its maker ([`crate::models::standing::Standing::doubt`]).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub doubt: u32,
    /// Whether it has a state.
    #[serde(default, skip_serializing_if = "is_false")]
    pub has_state: bool,
    /// Whether it was created with a configuration.
    #[serde(default, skip_serializing_if = "is_false")]
    pub has_config: bool,
}

/// The tokens of seats that this release can read. A write of a seat of which it cannot is refused.
fn known_tokens<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<BTreeMap<SeatId, Generations>>, D::Error> {
    let all = BTreeMap::<String, serde_json::Value>::deserialize(from)?;
    let read = |(seat, tokens): (String, serde_json::Value)| {
        Some((seat.parse().ok()?, tokens.as_str()?.parse().ok()?))
    };
    Ok(Some(all.into_iter().filter_map(read).collect()))
}

fn known_stage<'de, D: Deserializer<'de>>(from: D) -> Result<Stage, D::Error> {
    known(from).map(|stage| stage.unwrap_or(Stage::Unknown))
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The state of a seat in a lobby.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeatState {
    /// A player holds it.
    Held,
    /// It was taken here and is no longer held: it lapsed, or the lobby ended or never became ready.
    Gone,
    /// The player left it, or it was never taken here.
    Unknown,
}

/// Why a lobby ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndCause {
    /// Its game server, or its lobby server, requested it.
    Requested,
    /// Its game server started again, so lobbies of earlier starts are over.
    ServerRestarted,
    /// Its game server's lease lapsed, and a find needs its capacity.
    ServerDead,
    /// It did not become ready within [`STARTING_MAX`].
    NeverReady,
    /// No seat was held for its idle time.
    Idle,
    /// Nobody has connected yet, and a client of better standing needs its place below the limit.
    Unused,
}

/// Taken-over reservations that a lobby remembers.
const LAPSED_MAX: usize = 8;

impl Lobby {
    /// How long a seat waits for its player.
    #[must_use]
    pub const fn reservation(&self) -> Duration {
        Duration::from_secs(self.reservation_secs as u64)
    }

    /// When a find can take the first of its seats to lapse: that one's expiry, or a later one's once joins
    /// filled it beyond what finds may take; [`Timestamp::NEVER`] without such a seat.
    #[must_use]
    pub fn first_lapse(&self) -> Timestamp {
        if self.stage == Stage::Starting && self.seats().next().is_some() {
            self.created_at + STARTING_MAX
        } else {
            self.earliest_lapse()
        }
    }

    /// The same for a lobby that may become ready at any time, which can only delay when its seats lapse.
    fn earliest_lapse(&self) -> Timestamp {
        let mut expiries: Vec<_> = self.seats().map(|(_, until)| until).collect();
        expiries.sort_unstable();
        let beyond = usize::try_from(self.taken.saturating_sub(self.max_players)).unwrap_or(usize::MAX);
        expiries.get(beyond).copied().unwrap_or(Timestamp::NEVER)
    }

    /// Until when a find that takes `count` seats here can hide the lobby, as it was read at `seen_at`: if
    /// they are the last ones, until the first of its seats lapses. Seats taken since `seen_at` lapse later
    /// than one taken then.
    #[must_use]
    pub fn last_seats_hide_until(&self, count: u32, seen_at: Timestamp, now: Timestamp) -> Option<Timestamp> {
        let lapse = self.earliest_lapse().min(seen_at + self.reservation());
        (self.taken + count == self.max_players && lapse > now).then_some(lapse)
    }

    /// Whether it is out of sight for seconds after its first seat lapses: one was reserved for a shorter
    /// time than the find that hid it knew.
    #[must_use]
    pub fn is_hidden_too_long(&self) -> bool {
        let latest = || self.first_lapse() + Duration::from_secs(2);
        self.joinable_from.is_some_and(|from| from != Timestamp::NEVER && from > latest())
    }

    /// How long a seat is kept for a player who disconnected, unless its server says otherwise.
    #[must_use]
    pub const fn keep(&self) -> Duration {
        Duration::from_secs(self.keep_secs as u64)
    }

    /// The tokens of a seat; `None` while it has one alone, whose player did not disconnect.
    #[must_use]
    pub fn generations_of(&self, seat_id: &SeatId) -> Option<Generations> {
        self.generations.as_ref()?.get(seat_id).copied()
    }

    /// Whether a player of the seat has connected, as far as the lobby shows.
    #[must_use]
    pub fn has_connected(&self, seat_id: &SeatId) -> bool {
        self.connected.contains_key(seat_id) || self.generations_of(seat_id).is_some()
    }

    /// Whether a seat counts as taken, lapsed or not.
    #[must_use]
    pub fn has_seat(&self, seat_id: &SeatId) -> bool {
        self.reserved.contains_key(seat_id) || self.connected.contains_key(seat_id)
    }

    /// The state of a seat at `now`.
    #[must_use]
    pub fn seat_state(&self, seat_id: &SeatId, now: Timestamp) -> SeatState {
        match self.reserved.get(seat_id).or_else(|| self.connected.get(seat_id)) {
            Some(until) if !self.is_over(now) && !self.has_lapsed(*until, now) => SeatState::Held,
            Some(_) => SeatState::Gone,
            None if self.lapsed.contains(seat_id) => SeatState::Gone,
            None => SeatState::Unknown,
        }
    }

    /// Seats held at `now`: reserved or connected, and not lapsed.
    #[must_use]
    pub fn held_seats(&self, now: Timestamp) -> usize {
        self.seats().filter(|(_, until)| !self.has_lapsed(*until, now)).count()
    }

    /// Those of them whose players are connected.
    #[must_use]
    pub fn connected_seats(&self, now: Timestamp) -> usize {
        self.connected.values().filter(|until| **until > now).count()
    }

    /// Seats that finds may still take at `now`.
    #[must_use]
    pub fn free_seats(&self, now: Timestamp) -> u32 {
        self.max_players.saturating_sub(u32::try_from(self.held_seats(now)).unwrap_or(u32::MAX))
    }

    /// Why it may end at `now` without a request, to free capacity; `None` when it may not.
    #[must_use]
    pub fn end_cause(&self, now: Timestamp) -> Option<EndCause> {
        if self.stage == Stage::Ended {
            return None;
        }
        if self.lease_until <= now {
            return Some(EndCause::ServerDead);
        }
        if self.stage == Stage::Starting {
            return self.is_overdue(now).then_some(EndCause::NeverReady);
        }
        if self.stage == Stage::Unknown {
            return None;
        }
        (self.last_held() + self.idle_time() <= now).then_some(EndCause::Idle)
    }

    /// Whether it is ready and no seat is held at `now`. Then it may end at the namespace's cap before its
    /// idle time is over, which only counts below the cap.
    #[must_use]
    pub fn is_empty(&self, now: Timestamp) -> bool {
        self.stage == Stage::Ready && self.last_held() <= now
    }

    /// Whether a player has connected, or one of its maker's had before, so that it is more than what a
    /// request alone makes.
    #[must_use]
    pub const fn is_vouched_for(&self) -> bool {
        self.connected_by.is_some() || self.doubt == 0
    }

    /// How long it stays without a held seat: not at all until its first player connected, so that
    /// reservations that lapse keep no lobby.
    fn idle_time(&self) -> Duration {
        let was_joined = self.connected_by.is_some();
        Duration::from_secs(if was_joined { self.idle_secs.into() } else { 0 })
    }

    /// Whether a player with a reservation did not connect in time, as far as the lobby remembers.
    #[must_use]
    pub fn has_lapsed_reservation(&self, now: Timestamp) -> bool {
        let is_unused =
            |(seat, until): (&SeatId, &Timestamp)| self.has_lapsed(*until, now) && !self.has_connected(seat);
        !self.lapsed.is_empty() || self.reserved.iter().any(is_unused)
    }

    /// The reservations to remember as lapsed once `taken_over` are: the latest few.
    #[must_use]
    pub fn lapsed_with(&self, taken_over: &[SeatId]) -> Vec<SeatId> {
        let unused = |seat: &&SeatId| self.reserved.contains_key(*seat) && !self.has_connected(seat);
        let unused = taken_over.iter().filter(unused);
        let mut lapsed: Vec<_> = self.lapsed.iter().chain(unused).cloned().collect();
        lapsed.drain(..lapsed.len().saturating_sub(LAPSED_MAX));
        lapsed
    }

    /// Whether this release knows its stage and its ports. Otherwise it lets no player in.
    #[must_use]
    pub fn is_understood(&self) -> bool {
        self.stage != Stage::Unknown && self.ports.are_known()
    }

    /// Whether it should have become ready by `now`, and has not.
    #[must_use]
    pub fn is_overdue(&self, now: Timestamp) -> bool {
        self.stage == Stage::Starting && self.created_at + STARTING_MAX <= now
    }

    /// Whether it has ended or will never become ready.
    #[must_use]
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.stage == Stage::Ended || self.is_overdue(now)
    }

    /// The last known time at which a seat was held; in the future while one is.
    #[must_use]
    pub fn last_held(&self) -> Timestamp {
        let lapses = self.seats().map(|(_, until)| until);
        lapses.chain(self.vacated_at).fold(self.created_at, Timestamp::max)
    }

    fn seats(&self) -> impl Iterator<Item = (&SeatId, Timestamp)> {
        self.reserved.iter().chain(&self.connected).map(|(seat_id, until)| (seat_id, *until))
    }

    /// Seats that can be taken over at `now`.
    pub(super) fn lapsed_seats(&self, now: Timestamp) -> impl Iterator<Item = &SeatId> {
        self.seats().filter(move |(_, until)| self.has_lapsed(*until, now)).map(|(seat_id, _)| seat_id)
    }

    /// Reservations restart when the lobby becomes ready, so none lapses until then.
    fn has_lapsed(&self, until: Timestamp, now: Timestamp) -> bool {
        self.stage != Stage::Starting && until <= now
    }
}

/// How long a lobby may take to become ready (decision 31).
pub const STARTING_MAX: Duration = Duration::from_secs(5 * 60);

/// How long a request waits for its lobby to become ready, from the request's beginning: the gateway times
/// out after 30 s.
pub const READY_WAIT_MAX: Duration = Duration::from_secs(25);

/// A lobby's stage, which never goes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Its game server has not reported it ready yet.
    Starting,
    /// Players may connect.
    Ready,
    /// Over. It stays readable for a day so that late calls get the right response.
    Ended,
    /// A stage that only a later release knows. For this release, its seats are held and it does not change.
    #[serde(skip_deserializing)]
    Unknown,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::base::ambient::Ambient;

    const NOW: Timestamp = Timestamp(1_000_000);

    fn lobby(max_players: u32, lapses: &[u64]) -> Lobby {
        let seats = lapses.iter().map(|until| (SeatId::random(&Ambient::system()), Timestamp(*until)));
        let lobby = json!({
            "lobby_id": Ambient::system().uuid(), "pool": "ns/v/arena/eu", "joinable_from": 5, "created_at": 5,
            "stage": "ready", "closed": false, "server": "ns/s", "lease_until": Timestamp::NEVER, "ports": {},
            "max_players": max_players, "max_players_direct": max_players, "reservation_secs": 120,
            "taken": lapses.len(), "reserved": seats.collect::<BTreeMap<_, _>>(), "connected": {},
        });
        serde_json::from_value(lobby).unwrap()
    }

    #[test]
    fn a_lobby_may_end_when_its_last_seat_lapsed_and_its_idle_time_passed() {
        let joined = WriteId::random(&Ambient::system());
        let unjoined = |lapses: &[u64]| Lobby { idle_secs: 10, ..lobby(2, lapses) };
        let idling = |lapses: &[u64]| Lobby { connected_by: Some(joined.clone()), ..unjoined(lapses) };
        assert_eq!(lobby(2, &[NOW.0 + 1]).end_cause(NOW), None);
        assert_eq!(lobby(2, &[NOW.0, 3]).end_cause(NOW), Some(EndCause::Idle));
        assert_eq!(unjoined(&[NOW.0]).end_cause(NOW), Some(EndCause::Idle), "no player connected");
        assert_eq!(unjoined(&[NOW.0 + 1]).end_cause(NOW), None);
        assert_eq!(idling(&[NOW.0 - 9_999]).end_cause(NOW), None);
        assert!(idling(&[NOW.0]).is_empty(NOW) && !idling(&[NOW.0 + 1]).is_empty(NOW));
        assert_eq!(idling(&[NOW.0 - 10_000]).end_cause(NOW), Some(EndCause::Idle));
        let left = Lobby { vacated_at: Some(Timestamp(NOW.0 - 9_999)), ..idling(&[]) };
        assert_eq!(left.end_cause(NOW), None, "the idle time begins when the last player leaves");
        let dead = Lobby { lease_until: NOW, ..lobby(2, &[NOW.0 + 1]) };
        assert_eq!(dead.end_cause(NOW), Some(EndCause::ServerDead));
        assert_eq!(Lobby { stage: Stage::Ended, ..dead }.end_cause(NOW), None);
    }

    #[test]
    fn the_last_few_lapsed_reservations_are_remembered() {
        let mut lobby = lobby(12, &[NOW.0; 12]);
        let seats: Vec<_> = lobby.reserved.keys().cloned().collect();
        lobby.lapsed = lobby.lapsed_with(&seats[..6]);
        assert_eq!(lobby.lapsed, seats[..6]);
        assert_eq!(lobby.lapsed_with(&seats[6..]), seats[4..]);
        let stranger = SeatId::random(&Ambient::system());
        assert_eq!(lobby.lapsed_with(&[stranger]), seats[..6], "only reservations count");
    }
}
