//! What a find gets that no lobby fits: a new lobby, perhaps in place of one that may end, or a refusal.
//!
//! Finds judge lobby by lobby while they read; an operator's explanation judges all of them at once.

use std::{cmp::Reverse, collections::HashSet, time::Duration};

use crate::{
    base::ambient::Timestamp,
    models::{
        errors::Error,
        ids::{GameMode, LobbyId, RegionId},
        launch::StartFailure,
        lobby::{EndCause, Lobby, Stage},
        pool::Pool,
        server::Server,
        shortage::{Shortage, obstacles},
        standing::may_displace,
    },
    rules::criteria::NewLobby,
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
    /// If none of those may: nobody has connected yet, and its maker is doubted.
    Unused,
}

/// How long a lobby of a maker with little standing stands at least before it makes room.
const DOUBTED_STANDS: Duration = Duration::from_secs(1);
/// The same for a fresh client's, whose player may be on the way.
const FRESH_STANDS: Duration = Duration::from_secs(5);
/// A fresh client's lobby stands for as long as this many in a hundred lobbies took to their first player.
const IN_TIME_PERCENT: usize = 90;

/// The lobbies of `unused`, each [`MayEnd::Unused`], that make room at `now` for a client that may displace
/// them: those of the most doubted makers first, then the oldest. `waits` is how long lobbies that were
/// joined took to their first player: without any, nobody knows how long a fresh player may take.
#[must_use]
pub fn displaced(mut unused: Vec<Lobby>, mut waits: Vec<Duration>, now: Timestamp) -> Vec<Lobby> {
    waits.sort_unstable();
    let in_time = waits.get(waits.len() * IN_TIME_PERCENT / 100).map(|wait| FRESH_STANDS.max(*wait));
    unused.retain(|lobby| {
        let age = now.since(last_reserved(lobby));
        if may_displace(lobby.doubt) {
            in_time.is_some_and(|in_time| age >= in_time)
        } else {
            age >= DOUBTED_STANDS
        }
    });
    unused.sort_by_key(|lobby| (Reverse(lobby.doubt), lobby.created_at, lobby.lobby_id.clone()));
    let mut seen = HashSet::new();
    unused.retain(|lobby| seen.insert(lobby.lobby_id.clone()));
    unused
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
        if let Some(cause) = lobby.end_cause(now) {
            return Some(MayEnd::Now(cause));
        }
        if lobby.stage != Stage::Ready {
            return None;
        }
        if !lobby.is_vouched_for() {
            return Some(MayEnd::Unused);
        }
        (self == Self::AtCap && lobby.is_empty(now)).then_some(MayEnd::Last)
    }
}

/// When a seat of `lobby` was last reserved, by a client that gets the usual time: who gets less is doubted
/// most.
fn last_reserved(lobby: &Lobby) -> Timestamp {
    let made = lobby.reserved.values().map(|until| until.before(lobby.reservation()));
    made.fold(lobby.created_at, Timestamp::max)
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
    /// Whether it requests a game server for that.
    pub requests: bool,
}

impl Outlook {
    /// What a find at `now` gets that would create a lobby as `wanted`, in a namespace of `servers` and
    /// `lobbies`, where `failure` says why no game server is requested for it, if that is so.
    #[must_use]
    pub fn of(
        wanted: &NewLobby,
        lobby_count_max: u32,
        mut servers: Vec<Server>,
        lobbies: &[Lobby],
        failure: Option<StartFailure>,
        now: Timestamp,
    ) -> Self {
        let (Pool { game_mode, region_id, .. }, placement) = (&wanted.pool, wanted.placement());
        let counts = |server: &&Server| server.counts_as_started() && server.pool() == placement;
        let started = servers.iter().filter(counts).count();
        let may_request =
            wanted.launch.as_ref().is_some_and(|rules| started < rules.server_count_max as usize);
        let (mut ends, mut requests): (Vec<(LobbyId, EndCause)>, _) = (Vec::new(), false);
        let refusal = loop {
            let is_near = |server: &&Server| server.pool() == placement;
            let needed = if lobbies_of(&servers) >= lobby_count_max {
                NoCapacity::AtCap
            } else if servers.iter().filter(is_near).any(|server| server.fits(game_mode, now)) {
                break None;
            } else if may_request {
                requests = failure.is_none();
                break failure.map(|failure| Error::ServerStartFailed(Box::new(failure)));
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
            let able = lobbies.iter().filter(helps).filter_map(|lobby| {
                let ending = needed.may_end(lobby, now)?;
                // The client is one of whom nothing is known, and so may be the maker.
                let is_displaced =
                    || !may_displace(lobby.doubt) && now.since(last_reserved(lobby)) >= DOUBTED_STANDS;
                (ending != MayEnd::Unused || is_displaced()).then_some((lobby, ending))
            });
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
                MayEnd::Unused => EndCause::Unused,
            };
            ends.push((lobby.lobby_id.clone(), cause));
            let of_lobby = |server: &&mut Server| lobby.server.as_ref() == Some(&server.server);
            if let Some(server) = servers.iter_mut().find(of_lobby) {
                server.used -= 1;
            }
        };
        Self { ends, refusal, requests }
    }
}

/// The order in which lobbies end: in the wanted region first, those of dead servers first; then the longest
/// empty first; then those that nobody has connected to, of the most doubted makers first.
fn rank(lobby: &Lobby, ending: MayEnd, wanted: &RegionId) -> impl Ord + use<> {
    let region_id = &lobby.pool.region_id;
    match ending {
        MayEnd::Now(cause) => {
            let place = (region_id != wanted).then(|| region_id.clone());
            (0, place, Reverse(cause == EndCause::ServerDead), Reverse(0), Timestamp::default())
        }
        MayEnd::Last => (1, None, Reverse(false), Reverse(0), lobby.last_held()),
        MayEnd::Unused => (2, None, Reverse(false), Reverse(lobby.doubt), lobby.created_at),
    }
}
