//! The state of a lobby or a game server in one word, and a find's verdict on each lobby.

use serde::Serialize;
use shared::{
    base::ambient::Timestamp,
    models::{
        availability::{Availability, sort_fullest_first},
        ids::LobbyId,
        lobby::{Lobby, Stage},
        server::Server,
    },
    rules::criteria::{Criteria, SearchedPool},
    wire::explanation::Reason,
};

/// A lobby's state for finds, the worst first.
#[must_use]
pub fn lobby_state(lobby: &Lobby, now: Timestamp) -> &'static str {
    if lobby.stage == Stage::Ended {
        "ended"
    } else if lobby.lease_until <= now {
        "silent"
    } else if lobby.closed {
        "closed"
    } else if lobby.stage == Stage::Starting {
        "starting"
    } else if lobby.stage == Stage::Unknown {
        "of a later release"
    } else if lobby.is_private {
        "private"
    } else {
        "open"
    }
}

/// A lobby's state as it is shown: `lobby_state`, but a full lobby is not open.
#[must_use]
pub fn shown_state(lobby: &Lobby, now: Timestamp) -> &'static str {
    match lobby_state(lobby, now) {
        "open" if lobby.free_seats(now) == 0 => "full",
        state => state,
    }
}

/// Whether a game server gets lobbies, and if not, why. One that Muster has started is `requested` until it
/// registers, and `late` where nobody gave it up at its deadline.
#[must_use]
pub fn server_state(server: &Server, now: Timestamp) -> &'static str {
    if let Some(deadline) = server.deadline() {
        if deadline <= now { "late" } else { "requested" }
    } else if let Some(stage) = server.stage.filter(|stage| stage.is_over()) {
        stage.name()
    } else if server.is_deregistered() {
        "draining"
    } else if server.lease_until <= now {
        "silent"
    } else if server.is_clearing {
        "clearing"
    } else if server.used >= server.capacity {
        "full"
    } else {
        "free"
    }
}

/// A find's verdict on a lobby.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// It takes a seat there.
    Taken,
    /// It takes a seat there, and waits until the lobby is ready.
    Awaited,
    /// It could, but another lobby is fuller or older.
    Joinable,
    /// It cannot.
    Refused(Reason),
}

impl Serialize for Verdict {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Taken => serializer.serialize_str("taken"),
            Self::Awaited => serializer.serialize_str("taken, then waits until it is ready"),
            Self::Joinable => serializer.serialize_str("joinable, less full or younger"),
            Self::Refused(reason) => reason.serialize(serializer),
        }
    }
}

/// A find's verdict on each of `lobbies`, those that fit first, and the one that it takes.
#[must_use]
pub fn judged(
    lobbies: Vec<Lobby>,
    criteria: &Criteria,
    now: Timestamp,
) -> (Option<LobbyId>, Vec<(Lobby, Verdict)>) {
    let (mut fitting, mut others) = (Vec::new(), Vec::new());
    for lobby in lobbies {
        match refusal(&lobby, criteria, now) {
            None => fitting.push(lobby),
            Some(reason) => others.push((lobby, reason)),
        }
    }
    sort_fullest_first(&mut fitting, now);
    // The nearest first: all others are joined only where no lobby can be created.
    fitting.sort_by_key(|lobby| {
        let is_of = |searched: &&SearchedPool| lobby.pool.is_shard_of(&searched.pool);
        let near = criteria.pools.iter().find(is_of).map(|searched| searched.distance);
        (near.is_none(), near, criteria.beyond.iter().find(is_of).map(|searched| searched.distance))
    });
    others.sort_by_key(|(lobby, reason)| (*reason, lobby.created_at));
    let takes = fitting.first().map(|lobby| lobby.lobby_id.clone());
    let verdict_at = |place, lobby: &Lobby| match (place, lobby.stage) {
        (0, Stage::Starting) => Verdict::Awaited,
        (0, _) => Verdict::Taken,
        _ => Verdict::Joinable,
    };
    let fitting = fitting.into_iter().enumerate();
    let fitting = fitting.map(|(place, lobby)| {
        let verdict = verdict_at(place, &lobby);
        (lobby, verdict)
    });
    let others = others.into_iter().map(|(lobby, reason)| (lobby, Verdict::Refused(reason)));
    (takes, fitting.chain(others).collect())
}

/// Why a find would not take a seat in a lobby, if so.
fn refusal(lobby: &Lobby, criteria: &Criteria, now: Timestamp) -> Option<Reason> {
    if !criteria.pools.iter().chain(&criteria.beyond).any(|searched| lobby.pool.is_shard_of(&searched.pool)) {
        return Some(Reason::OtherVersion);
    }
    if !lobby.tag_digests.contain(&criteria.new_lobby.tag_digests) {
        return Some(Reason::TagMismatch);
    }
    match lobby.availability_for_find(criteria.party_size, now) {
        Availability::Free(_) | Availability::TakeOver(_) => None,
        Availability::Refused(refusal) => Reason::of(refusal),
    }
}
