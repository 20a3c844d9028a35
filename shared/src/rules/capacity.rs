//! What a find gets that no lobby fits: a new lobby, perhaps in place of one that may end, or a refusal.
//!
//! Finds judge lobby by lobby while they read; an operator's explanation judges all of them at once.

use std::cmp::Reverse;

use crate::{
    base::ambient::Timestamp,
    models::{
        errors::Error,
        ids::{GameMode, LobbyId, RegionId},
        lobby::{EndCause, Lobby},
        pool::Pool,
        server::Server,
        shortage::{Shortage, obstacles},
    },
};

/// Why there is no capacity for another lobby.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NoCapacity {
    /// The namespace holds its `lobby_count_max` lobbies.
    AtCap,
    /// No server has a place.
    NoServer,
}

/// How a lobby may end to free capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MayEnd {
    /// At once.
    Now(EndCause),
    /// If no other lobby may: it is empty, and its idle time runs.
    Last,
}

impl NoCapacity {
    /// Whether the end of a lobby of `server` would help a lobby of `mode`.
    #[must_use]
    pub fn is_helped_by(self, server: &Server, mode: &GameMode, now: Timestamp) -> bool {
        server.used > 0 && (self == Self::AtCap || server.serves(mode, now))
    }

    /// How `lobby` may end at `now`; `None` when it may not.
    #[must_use]
    pub fn may_end(self, lobby: &Lobby, now: Timestamp) -> Option<MayEnd> {
        let last = (self == Self::AtCap && lobby.is_empty(now)).then_some(MayEnd::Last);
        lobby.end_cause(now).map(MayEnd::Now).or(last)
    }
}

/// The lobbies that `servers` run.
#[must_use]
pub fn lobbies_of<'a>(servers: impl IntoIterator<Item = &'a Server>) -> u32 {
    servers.into_iter().map(|server| server.used).sum()
}

/// What a find gets that no lobby fits.
#[derive(Debug, Default)]
pub struct Outlook {
    /// The lobbies that end first, in this order; among equals, the find draws.
    pub ends: Vec<(LobbyId, EndCause)>,
    /// Why it is refused; `None` when it creates a lobby.
    pub refusal: Option<Error>,
}

impl Outlook {
    /// What a find at `now` gets that would create a lobby in `wanted`, in a namespace of `servers` and
    /// `lobbies`.
    #[must_use]
    pub fn of(
        wanted: &Pool,
        lobby_count_max: u32,
        mut servers: Vec<Server>,
        lobbies: &[Lobby],
        now: Timestamp,
    ) -> Self {
        let Pool { game_mode, region_id, .. } = wanted;
        let mut ends: Vec<(LobbyId, EndCause)> = Vec::new();
        let refusal = loop {
            let is_near = |server: &&Server| server.region_id == *region_id;
            let needed = if lobbies_of(&servers) >= lobby_count_max {
                NoCapacity::AtCap
            } else if servers.iter().filter(is_near).any(|server| server.fits(game_mode, now)) {
                break None;
            } else {
                NoCapacity::NoServer
            };
            let helps = |lobby: &&Lobby| {
                let is_left = ends.iter().all(|(ended, _)| *ended != lobby.lobby_id);
                let server = servers.iter().find(|server| lobby.server.as_ref() == Some(&server.server));
                let is_of_use = server.is_some_and(|server| {
                    needed.is_helped_by(server, game_mode, now)
                        && (needed == NoCapacity::AtCap || is_near(&server))
                });
                is_left && is_of_use
            };
            let able =
                lobbies.iter().filter(helps).filter_map(|lobby| Some((lobby, needed.may_end(lobby, now)?)));
            let Some((lobby, ending)) = able.min_by_key(|(lobby, ending)| rank(lobby, *ending, region_id))
            else {
                break Some(match needed {
                    NoCapacity::AtCap => Error::TooManyLobbies,
                    NoCapacity::NoServer => {
                        let servers = obstacles(servers.iter().filter(is_near), game_mode, now);
                        let (game_mode, region_id) = (game_mode.clone(), region_id.clone());
                        Error::NoServerAvailable(Some(Shortage { game_mode, region_id, servers }))
                    }
                });
            };
            let cause = match ending {
                MayEnd::Now(cause) => cause,
                MayEnd::Last => EndCause::Idle,
            };
            ends.push((lobby.lobby_id.clone(), cause));
            let of_lobby = |server: &&mut Server| lobby.server.as_ref() == Some(&server.server);
            if let Some(server) = servers.iter_mut().find(of_lobby) {
                server.used -= 1;
            }
        };
        Self { ends, refusal }
    }
}

/// The order in which lobbies end: in the wanted region first, those of dead servers first; the others, the
/// longest empty first.
fn rank(lobby: &Lobby, ending: MayEnd, wanted: &RegionId) -> impl Ord + use<> {
    let region_id = &lobby.pool.region_id;
    match ending {
        MayEnd::Now(cause) => {
            let place = (region_id != wanted).then(|| region_id.clone());
            (false, place, Reverse(cause == EndCause::ServerDead), Timestamp::default())
        }
        MayEnd::Last => (true, None, Reverse(false), lobby.last_held()),
    }
}
