//! Creating a lobby when nothing is joinable, together with everybody who wants the same at the same time.

use std::{collections::BTreeMap, sync::atomic::Ordering, time::Duration};

use super::{Found, Matchmaker, Search, Way};
use crate::{
    ambient::Timestamp,
    errors::Error,
    ids::{LobbyId, SeatId},
    lobby::{Entry, Lobby, Refusal, Stage},
    models::Pool,
    rules::criteria::{NewLobby, SearchedPool},
    store::{
        creation::{Burst, Creation, CreationOutcome, Election, HeadKey},
        lobbies::Hiding,
        servers::{PlacementPool, Server},
    },
};

/// Elections that one find takes part in before it looks again.
const ELECTIONS_MAX: usize = 4;
/// Tries of one transaction that conflicts or whose server has no place.
const CREATIONS_MAX: u32 = 8;
/// Pause after a conflicting transaction, doubled each time, jittered: one takes some ten milliseconds.
const CONFLICT_PAUSE: Duration = Duration::from_millis(8);
/// A burst younger than this may be unknown to the index, so its newcomers share it by position; an older one that the
/// index shows nothing of is most likely full.
const YOUNG_BURST_AGE: Duration = Duration::from_millis(300);
/// How long a find waits for the lobby that another find of its burst is creating, first and doubled each time.
const CREATOR_PAUSE: Duration = Duration::from_millis(40);
/// Waits for that lobby before the find creates it itself: the creator may have crashed.
const CREATOR_WAITS: u32 = 5;

/// What a round of creation came to.
pub(super) enum Step {
    /// A seat.
    Found(Box<Found>),
    /// Others were quicker, and their lobbies may be joinable by now.
    LookAgain,
    /// There is no room for another lobby.
    NoRoom(NoRoom),
}

/// Why there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum NoRoom {
    /// The namespace holds its `lobby_count_max` lobbies.
    AtCap,
    /// No server has a place.
    NoServer,
}

impl From<NoRoom> for Error {
    fn from(reason: NoRoom) -> Self {
        match reason {
            NoRoom::AtCap => Self::TooManyLobbies,
            NoRoom::NoServer => Self::NoServerAvailable,
        }
    }
}

/// What became of one attempt to create one lobby.
pub(super) enum Attempt {
    Created(Box<Found>),
    Exists,
    Outrun(Burst),
    Lost,
    NoRoom(NoRoom),
}

impl Matchmaker {
    /// One round: create a lobby, or take a seat in one that others are creating.
    pub(super) async fn create(
        &self,
        search: &Search,
        seat_id: &SeatId,
        contended: bool,
    ) -> Result<Step, Error> {
        let key = Self::burst_key(&search.criteria);
        let mut exhausted = self.recall.exhausted_burst(&key);
        let mut contended = contended;
        for _ in 0..ELECTIONS_MAX {
            let lobby_id = LobbyId::from(self.ambient.uuid());
            let election = match exhausted.take() {
                Some(burst) => Election::Replace(key.clone(), burst),
                None => Election::Begin(key.clone()),
            };
            let burst = match self.attempt(search, &lobby_id, seat_id, election).await? {
                Attempt::Created(found) => {
                    let begun = Burst {
                        first: lobby_id.clone(),
                        opened_at: found.taken_at,
                        positions: 1,
                        is_announced: false,
                    };
                    self.recall.remember_burst(&key, begun, lobby_id);
                    self.recall.saw_full(&found.lobby);
                    return self.created(search, found, contended).await;
                }
                Attempt::NoRoom(reason) => return Ok(Step::NoRoom(reason)),
                Attempt::Exists | Attempt::Lost => return Ok(Step::LookAgain),
                Attempt::Outrun(burst) => burst,
            };
            contended = true;
            match self.join_burst(search, &key, burst, seat_id).await? {
                Joined::Step(step) => return Ok(step),
                Joined::Exhausted(burst) => exhausted = Some(burst),
            }
        }
        Ok(Step::LookAgain)
    }

    /// Takes the seat that `burst` has for this find.
    async fn join_burst(
        &self,
        search: &Search,
        key: &HeadKey,
        burst: Burst,
        seat_id: &SeatId,
    ) -> Result<Joined, Error> {
        let new = &search.criteria.new_lobby;
        let capacity = new.max_players;
        if self.ambient.now().since(burst.opened_at) >= YOUNG_BURST_AGE {
            let last = Self::lobby_of_burst(&burst, burst.positions.saturating_sub(1), capacity);
            self.recall.remember_burst(key, burst.clone(), last.clone());
            return Ok(match self.take(&searched(new), last, Hiding::No, seat_id).await? {
                Ok(found) => Joined::Step(Step::Found(Box::new(found))),
                Err(_) => Joined::Exhausted(burst),
            });
        }
        let Some(burst) = self.store.draw_position(key, &burst).await? else {
            return Ok(Joined::Step(Step::LookAgain));
        };
        let position = burst.positions.saturating_sub(1);
        let lobby_id = Self::lobby_of_burst(&burst, position, capacity);
        self.recall.remember_burst(key, burst.clone(), lobby_id.clone());
        let creates = position.checked_rem(capacity) == Some(0);
        // Once the last position of a lobby is drawn, all its seats are promised: nobody else need see it. In a lobby that
        // was announced others may have freed seats, too.
        let lapse = burst.opened_at + new.reservation;
        let hiding = match (position + 1).checked_rem(capacity) {
            Some(0) if burst.is_announced => Hiding::IfLast { taken: capacity.saturating_sub(1), lapse },
            Some(0) => Hiding::Promised(lapse),
            _ => Hiding::No,
        };
        for wait in 0..=CREATOR_WAITS {
            if creates || wait == CREATOR_WAITS {
                match self.attempt(search, &lobby_id, seat_id, Election::Drawn).await? {
                    Attempt::Created(found) => return Ok(Joined::Step(Step::Found(found))),
                    Attempt::NoRoom(reason) => return Ok(Joined::Step(Step::NoRoom(reason))),
                    Attempt::Exists => {}
                    Attempt::Outrun(_) | Attempt::Lost => return Ok(Joined::Step(Step::LookAgain)),
                }
            } else if wait > 0 || position >= capacity {
                // The first lobby came with the head; a later one is on its way.
                self.ambient.sleep(self.ambient.jittered(CREATOR_PAUSE * 2_u32.pow(wait))).await;
            }
            match self.take(&searched(new), lobby_id.clone(), hiding, seat_id).await? {
                Ok(found) => return Ok(Joined::Step(Step::Found(Box::new(found)))),
                Err(Refusal::Missing) => {}
                Err(_) => return Ok(Joined::Exhausted(burst)),
            }
        }
        Ok(Joined::Step(Step::LookAgain))
    }

    /// Creates a lobby for this instance alone, unelected; nothing when something stands against it.
    pub(super) async fn create_in_lane(
        &self,
        search: &Search,
        seat_id: &SeatId,
    ) -> Result<Option<Found>, Error> {
        let lobby_id = LobbyId::from(self.ambient.uuid());
        match self.attempt(search, &lobby_id, seat_id, Election::Drawn).await? {
            Attempt::Created(found) => Ok(Some(*found)),
            _ => Ok(None),
        }
    }

    /// Tries to create the lobby `lobby_id`, on one server after the other while they have no place.
    pub(super) async fn attempt(
        &self,
        search: &Search,
        lobby_id: &LobbyId,
        seat_id: &SeatId,
        election: Election,
    ) -> Result<Attempt, Error> {
        let new = &search.criteria.new_lobby;
        for tries in 0..CREATIONS_MAX {
            let now = self.ambient.now();
            let Some(server) = self.choose_server(new, now).await? else {
                let live = self.store.live_lobby_count(&new.pool.namespace_id).await?;
                let at_cap = live >= search.settings.namespace.lobby_count_max;
                return Ok(Attempt::NoRoom(if at_cap { NoRoom::AtCap } else { NoRoom::NoServer }));
            };
            let creation = Creation {
                lobby: new_lobby(search, lobby_id, seat_id, &server, now),
                lobby_count_max: search.settings.namespace.lobby_count_max,
                election: election.clone(),
                config: search.config.clone(),
                server,
            };
            match self.store.create_lobby(&creation, now).await? {
                CreationOutcome::Created => {
                    let Creation { lobby, server, .. } = creation;
                    let used = server.used + 1;
                    self.recall.correct_server(&server.clone(), Some(Server { used, ..server }));
                    let way = Way::Created { is_race_create: false };
                    let found = Found { seat_id: seat_id.clone(), taken_at: now, way, lobby };
                    self.learn(&found.lobby, now).await?;
                    return Ok(Attempt::Created(Box::new(found)));
                }
                CreationOutcome::Exists(_) => return Ok(Attempt::Exists),
                CreationOutcome::Outrun(burst) => return Ok(Attempt::Outrun(burst)),
                CreationOutcome::AtCap => return Ok(Attempt::NoRoom(NoRoom::AtCap)),
                CreationOutcome::NoPlace(seen) => {
                    self.recall.correct_server(&creation.server, seen.map(|seen| *seen));
                }
                CreationOutcome::Conflict => {
                    self.ambient.sleep(self.ambient.jittered(CONFLICT_PAUSE * 2_u32.pow(tries.min(4)))).await;
                }
            }
        }
        Ok(Attempt::Lost)
    }

    /// Reads the servers that lobbies of `pool` can be placed on, as a function's first creation does.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn know_servers(&self, pool: &Pool) -> Result<(), Error> {
        let placement =
            PlacementPool { namespace_id: pool.namespace_id.clone(), region_id: pool.region_id.clone() };
        let now = self.ambient.now();
        let servers = self.store.servers_with_places(&placement, &pool.game_mode, now).await?;
        self.recall.remember_servers(&placement, servers, now);
        Ok(())
    }

    /// The fullest server with a place, from memory while it has one that fits, else from the index.
    async fn choose_server(&self, new: &NewLobby, now: Timestamp) -> Result<Option<Server>, Error> {
        let pool = PlacementPool {
            namespace_id: new.pool.namespace_id.clone(),
            region_id: new.pool.region_id.clone(),
        };
        let mode = &new.pool.game_mode;
        let age_max = self.settings.age_max();
        if let Some(server) = self.recall.fullest_fresh_server(&pool, mode, age_max, now) {
            return Ok(Some(server));
        }
        self.know_servers(&new.pool).await?;
        Ok(self.recall.fullest_known_server(&pool, mode, now))
    }

    /// Reports a creation; after a race, whether another lobby was joinable all the same.
    async fn created(&self, search: &Search, mut found: Box<Found>, contended: bool) -> Result<Step, Error> {
        if contended {
            let now = self.ambient.now();
            let criteria = &search.criteria;
            let mut others = self.look(&criteria.pools, &criteria.tags, super::COMPARED_MAX).await?.fitting;
            others.retain(|other| other.lobby_id != found.lobby.lobby_id);
            let ids: Vec<LobbyId> = others.into_iter().map(|other| other.lobby_id).take(100).collect();
            let lobbies = if ids.is_empty() { Vec::new() } else { self.store.lobbies(&ids).await? };
            let is_race_create = lobbies.iter().any(|lobby| lobby.entry_for_find(now) == Entry::Free);
            if is_race_create {
                self.race_creates.fetch_add(1, Ordering::Relaxed);
            }
            found.way = Way::Created { is_race_create };
        }
        Ok(Step::Found(found))
    }
}

enum Joined {
    Step(Step),
    /// The find's lobby of the burst has no seat for it.
    Exhausted(Burst),
}

fn searched(new: &NewLobby) -> SearchedPool {
    SearchedPool { pool: new.pool.clone(), reservation: new.reservation }
}

fn new_lobby(
    search: &Search,
    lobby_id: &LobbyId,
    seat_id: &SeatId,
    server: &Server,
    now: Timestamp,
) -> Lobby {
    let new = &search.criteria.new_lobby;
    let lobby = Lobby {
        lobby_id: lobby_id.clone(),
        pool: new.pool.clone(),
        joinable_from: None,
        created_at: now,
        stage: if server.auto_ready { Stage::Ready } else { Stage::Starting },
        closed: false,
        is_private: new.is_private,
        is_draining: false,
        server: Some(server.server.clone()),
        lease_until: server.lease_until,
        ports: server.ports.clone(),
        tags: search.criteria.tags.clone(),
        max_players: new.max_players,
        max_players_direct: new.max_players_direct,
        reservation_secs: u32::try_from(new.reservation.as_secs()).unwrap_or(u32::MAX),
        idle_secs: new.idle_secs,
        taken: 1,
        reserved: BTreeMap::from([(seat_id.clone(), now + new.reservation)]),
        connected: BTreeMap::new(),
        vacated_at: None,
        lapsed: Vec::new(),
        connected_by: None,
        has_state: false,
        has_config: search.config.is_some(),
    };
    let in_sight_from = if new.max_players > 1 { now } else { lobby.first_lapse() };
    Lobby { joinable_from: (!new.is_private).then_some(in_sight_from), ..lobby }
}
