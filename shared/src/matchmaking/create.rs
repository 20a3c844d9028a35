//! Creating one lobby on a game server.

use std::{collections::BTreeMap, time::Duration};

use crate::{
    base::{
        ambient::{Timestamp, within},
        pauses::Pauses,
    },
    matchmaking::{
        capacity::Capacity,
        contention::Contention,
        matchmaker::Matchmaker,
        nursery::{InVain, Nest, wait_for},
        outcomes::{Attempt, NoCapacity, Origin, Placing},
        search::Search,
    },
    models::{
        errors::Error,
        ids::LobbyId,
        lobby::{Lobby, Stage},
        server::Server,
    },
    seating::{reply::Found, seeker::Seeker},
    store::{
        creation::{BURST_WINDOW, Burst, Creation, CreationOutcome, Renewal, YOUNG_BURST_AGE},
        ending::CONFLICT_PAUSES,
    },
    wire::explanation::FindOutcome,
};

/// Tries of one transaction that conflicts or whose server has no place.
const CREATIONS_MAX: u32 = 8;
/// Times that a creation frees capacity that other finds then take, before the find looks again.
const FREED_MAX: u32 = 5;
/// The same for lobbies that it displaces, before it is refused.
const DISPLACED_MAX: u32 = 2;
/// Pauses before a creation searches again for capacity that is on its way: in all, at least as long as an
/// index may lag.
const MOVING_PAUSES: Pauses = Pauses::tripling(Duration::from_millis(100)).jittered();
/// Such pauses before a creation gives up on that capacity.
const MOVING_PAUSES_MAX: u32 = 4;

/// How a creation may be allotted its part of the cap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Allotment {
    /// With more for the next ones.
    InBlocks,
    /// One place: the limit has no whole block left.
    Singly,
    /// Not at all: only servers have some left.
    None,
}

impl Allotment {
    /// The part of the server's next `block` to allot; `None` while the server has some left.
    fn of_block(self, block: Option<u32>) -> Option<u32> {
        block.map(|block| if self == Self::Singly { block.min(1) } else { block })
    }
}

impl Matchmaker {
    /// Tries to create the lobby `lobby_id`, and frees capacity where there is none. The find that drew its
    /// first position keeps the lobby meanwhile, so that others wait for one lobby, not for two.
    pub(super) async fn attempt(
        &self,
        search: &Search,
        lobby_id: &LobbyId,
        seeker: &Seeker,
        mut placing: Placing,
        origin: Origin<'_>,
    ) -> Result<Attempt, Error> {
        let (mut freed, mut displaced, mut pauses) = (0, 0, 0);
        while freed < FREED_MAX {
            // Boxed, since an unoptimised build would need more stack than a thread has.
            let attempt =
                Box::pin(self.attempt_on_servers(search, lobby_id, seeker, placing, origin)).await?;
            let Attempt::NoCapacity(reason) = attempt else { return Ok(attempt) };
            placing.without_server_at = None;
            match self.free_capacity(search, reason, seeker).await? {
                Capacity::Freed => freed += 1,
                Capacity::Displaced if displaced < DISPLACED_MAX => displaced += 1,
                Capacity::None | Capacity::Displaced => return Ok(attempt),
                Capacity::Moving if pauses == MOVING_PAUSES_MAX => return Ok(attempt),
                Capacity::Moving => {
                    MOVING_PAUSES.wait(pauses, &self.ambient).await;
                    pauses += 1;
                }
            }
        }
        Ok(Attempt::Lost)
    }

    /// Tries to create the lobby `lobby_id`, on one server after the other while they have no place.
    ///
    /// A find that stalled may be late for its burst, which another one has replaced by then, so that its
    /// lobby would be a needless one. The write of a young burst is given up when the burst may be replaced,
    /// and a later one renews the burst or is refused. A lobby that is there late all the same is counted.
    #[expect(clippy::too_many_lines, reason = "one loop, each of whose outcomes decides how it goes on")]
    async fn attempt_on_servers(
        &self,
        search: &Search,
        lobby_id: &LobbyId,
        seeker: &Seeker,
        mut placing: Placing,
        origin: Origin<'_>,
    ) -> Result<Attempt, Error> {
        let new = &search.criteria.new_lobby;
        let lobby_count_max = search.settings.namespace.lobby_count_max;
        let (mut allotment, mut was_given_up) = (Allotment::InBlocks, false);
        let allotted_now = async || self.store.allotted_lobbies(&new.pool.namespace_id).await;
        let mut allotted = None;
        let (mut nest, mut drawn, mut may_request) = (None::<Nest>, InVain::default(), true);
        // Why the client may have no server requested.
        let mut unrequested = None;
        for tries in 0..CREATIONS_MAX {
            let now = self.ambient.now();
            let may_draw = may_request && allotment != Allotment::None;
            let fits = |server: &Server| {
                let is_allotted = server.next_block(lobby_count_max).is_none();
                server.fits(&new.pool.game_mode, now) && (is_allotted || allotment != Allotment::None)
            };
            let is_free = |server: &Server| fits(server) && !(may_draw && server.is_promised(now));
            let is_busy = self.pools.contention(&[new.searched()], now) == Contention::Busy;
            let looked_at = placing.without_server_at.unwrap_or(now);
            let mut chosen = match &nest {
                Some(nest) => Some(nest.server.clone()),
                None => self.servers.choose(new, placing, (is_busy, now), is_free, seeker.trace()).await?,
            };
            placing.without_server_at = None;
            if let Some(rules) = new.launch.as_ref().filter(|_| may_draw && chosen.is_none()) {
                match seeker.before_request(lobby_id, now).await {
                    Ok(()) => {
                        nest = self.draw_nest(search, rules, (lobby_id, &drawn), looked_at).await?;
                        chosen = nest.as_ref().map(|nest| nest.server.clone());
                    }
                    // It may take what others drew.
                    Err(refusal @ Error::TooManyStartsFromSource { .. })
                        if self.servers.count(&new.placement(), fits) > 0 =>
                    {
                        (may_request, unrequested) = (false, Some(refusal));
                        continue;
                    }
                    Err(refusal) => return Err(refusal),
                }
            }
            let now = self.ambient.now();
            let Some(server) = chosen else {
                let allotted = match allotted.take() {
                    Some(allotted) => allotted,
                    None => allotted_now().await?,
                };
                match allotment {
                    _ if allotted >= lobby_count_max => return Ok(Attempt::NoCapacity(NoCapacity::AtCap)),
                    // Another request gave some of it back meanwhile.
                    Allotment::None => allotment = Allotment::Singly,
                    _ => {
                        let short = Ok(Attempt::NoCapacity(NoCapacity::NoServer));
                        return unrequested.map_or(short, Err);
                    }
                }
                continue;
            };
            let unmet = nest.as_ref().filter(|nest| !nest.is_met);
            let (launch, requests) = match unmet {
                Some(nest) => (Some(nest.wait), nest.is_requester),
                None => (wait_for(&server, now), false),
            };
            // The places of a requested server all count from its request on, so that they cost others no
            // block.
            let block = match unmet {
                None => allotment.of_block(server.next_block(lobby_count_max)),
                Some(_) if requests => allotment.of_block(Some(server.capacity.min(lobby_count_max))),
                Some(_) => None,
            };
            // A refused transaction costs six write units.
            if block.is_some()
                && allotted.is_none()
                && self.searches.failed_lately(&new.pool, &[NoCapacity::AtCap], now)
                && *allotted.insert(allotted_now().await?) >= lobby_count_max
            {
                (allotment, nest) = (Allotment::None, None);
                continue;
            }
            let cap_checked = if unmet.is_some() { lobby_count_max } else { server.cap_checked };
            let server = Server { cap_checked, ..server };
            let requests = new.launch.as_ref().map(|rules| rules.server_count_max).filter(|_| requests);
            let creates = async |_| {
                let lobby = new_lobby(search, (lobby_id, origin), seeker, &server, placing.sight_after, now);
                let creation = Creation {
                    lobby: Lobby { launch, ..lobby },
                    lobby_count_max,
                    block,
                    requests,
                    renewal: renewal(search, origin, now),
                    tags: search.criteria.tags.clone(),
                    config: search.config.clone(),
                    server,
                };
                let creating = self.store.create_lobby(&creation, now);
                let outcome = match (origin, &creation.renewal) {
                    (Origin::Has { burst, .. }, None) => {
                        let left = (burst.opened_at + BURST_WINDOW).since(now);
                        within(&self.ambient, left, creating).await.transpose()
                    }
                    _ => creating.await.map(Some),
                };
                outcome.map(|outcome| (creation, outcome))
            };
            let is_refused = |(_, outcome): &(_, Option<CreationOutcome>)| {
                !was_given_up && outcome.as_ref().is_some_and(CreationOutcome::is_refused)
            };
            let tried = seeker.attempt(lobby_id, now, creates, is_refused).await?;
            let (taken_at, (creation, outcome)) = (tried.taken_at, tried.outcome);
            let Some(outcome) = outcome else {
                was_given_up = true;
                continue;
            };
            match outcome {
                CreationOutcome::Created => {
                    let after = creation.server.clone().with_another(creation.block, lobby_count_max);
                    self.servers.correct(&creation.server, Some(after));
                    let how = (placing, origin, creation.renewal.is_some());
                    return self.created(search, creation.lobby, seeker, taken_at, how).await;
                }
                // The stored lobby shows where and how it was created: this attempt may have chosen another
                // server.
                CreationOutcome::CreatedBefore(lobby) => {
                    self.servers.forget(&creation.server.pool());
                    let how = (placing, origin, false);
                    return self.created(search, *lobby, seeker, taken_at, how).await;
                }
                CreationOutcome::Exists(_) => return Ok(Attempt::Exists),
                CreationOutcome::Replaced(burst) => return Ok(Attempt::Replaced(burst)),
                CreationOutcome::AtServerMax => {
                    (nest, may_request) = (None, false);
                }
                CreationOutcome::AtCap => {
                    let left = lobby_count_max.saturating_sub(*allotted.insert(allotted_now().await?));
                    let was_block = creation.block.is_some_and(|block| block > 1);
                    allotment = if was_block && left > 0 { Allotment::Singly } else { Allotment::None };
                    if allotment == Allotment::None {
                        // Nothing is requested at the cap.
                        nest = None;
                    }
                }
                CreationOutcome::NoPlace(None) if nest.is_some() => {
                    if let Some(nest) = &mut nest {
                        nest.wait_for_requester(self).await;
                    }
                }
                CreationOutcome::NoPlace(Some(seen)) if nest.is_some() => {
                    self.servers.meet_one((*seen).clone(), now);
                    match &mut nest {
                        // The place is this find's, whichever others the index shows.
                        Some(nest) if fits(&seen) => {
                            (nest.is_requester, nest.is_met, nest.server) = (false, true, *seen);
                        }
                        _ => drawn.note(nest.take(), seen.used >= seen.capacity),
                    }
                }
                CreationOutcome::NoPlace(seen) => {
                    self.servers.note_no_place(&creation.server, seen.map(|seen| *seen), now);
                }
                CreationOutcome::Conflict { is_at_server } => {
                    if is_at_server {
                        self.servers.note_failure(&creation.server.pool(), now);
                    }
                    CONFLICT_PAUSES.wait(tries, &self.ambient).await;
                }
            }
        }
        Ok(Attempt::Lost)
    }

    /// Remembers the lobby just created, and counts whether it was needed (I9). The find has its seat, so a
    /// failure there must not fail it.
    async fn created(
        &self,
        search: &Search,
        lobby: Lobby,
        seeker: &Seeker,
        taken_at: Timestamp,
        (placing, origin, is_renewed): (Placing, Origin<'_>, bool),
    ) -> Result<Attempt, Error> {
        let searched = search.criteria.new_lobby.searched();
        let seats = seeker.seats().count();
        self.learn(&searched, (&lobby, seats), taken_at, placing.is_promised()).await?;
        let mut is_race_create = false;
        if let Origin::Has { burst, may_be_needless } = origin {
            self.bursts.note_seen(&lobby, self.ambient.now());
            is_race_create = !is_renewed && self.is_replaced(search, burst).await.unwrap_or_else(uncounted);
            if may_be_needless && !is_race_create {
                is_race_create =
                    self.is_another_joinable(search, seeker, &lobby).await.unwrap_or_else(uncounted);
            }
        }
        let outcome = FindOutcome::Created { is_race_create };
        Ok(Attempt::Created(Box::new(Found {
            seats: seeker.seats().clone(),
            code: None,
            taken_at,
            outcome,
            lobby,
        })))
    }

    /// Whether another burst may have been there before the lobby just created for `burst`: the head names
    /// another one. No call while no find could have replaced it.
    async fn is_replaced(&self, search: &Search, burst: &Burst) -> Result<bool, Error> {
        if self.ambient.now().since(burst.opened_at) < BURST_WINDOW {
            return Ok(false);
        }
        let named = self.store.burst(&search.head_key()).await?;
        Ok(named.is_none_or(|named| named.first != burst.first))
    }
}

fn uncounted(error: Error) -> bool {
    let cause = error.cause().unwrap_or("refused").to_owned();
    tracing::warn!(cause, "could not determine whether a lobby was needed");
    false
}

/// The burst that a creation renews at `now`: one that is no longer young, which another find may replace.
fn renewal(search: &Search, origin: Origin<'_>, now: Timestamp) -> Option<Renewal> {
    match origin {
        Origin::Has { burst, .. } if now.since(burst.opened_at) >= YOUNG_BURST_AGE => {
            Some(Renewal { key: search.head_key(), first: burst.first.clone() })
        }
        Origin::Alone | Origin::Custom(_) | Origin::Has { .. } => None,
    }
}

fn new_lobby(
    search: &Search,
    (lobby_id, origin): (&LobbyId, Origin<'_>),
    seeker: &Seeker,
    server: &Server,
    sight_after: Duration,
    now: Timestamp,
) -> Lobby {
    let (new, seats) = (&search.criteria.new_lobby, seeker.seats());
    let until = now + seeker.reservation(new.reservation);
    let lobby = Lobby {
        lobby_id: lobby_id.clone(),
        pool: new.pool.in_shard_of(lobby_id, new.shards),
        joinable_from: None,
        created_at: now,
        stage: if server.auto_ready && !server.is_requested() { Stage::Ready } else { Stage::Starting },
        closed: false,
        toggled_at: None,
        code: if let Origin::Custom(code) = origin { Some(code.clone()) } else { None },
        is_private: new.is_private,
        is_draining: false,
        server: Some(server.server.clone()),
        lease_until: server.lease_until,
        start: server.start(),
        launch: None,
        freed_at: None,
        ports: server.ports.clone(),
        tag_digests: new.tag_digests.clone(),
        max_players: new.max_players,
        max_players_direct: new.max_players_direct,
        max_players_party: new.max_players_party,
        party_size_max: new.party_size_max,
        room: None,
        reservation_secs: u32::try_from(new.reservation.as_secs()).unwrap_or(u32::MAX),
        idle_secs: new.idle_secs,
        keep_secs: new.keep_secs,
        taken: seats.count(),
        reserved: seats.iter().map(|seat_id| (seat_id.clone(), until)).collect(),
        connected: BTreeMap::new(),
        generations: None,
        vacated_at: None,
        lapsed: Vec::new(),
        connected_by: None,
        joined_at: None,
        doubt: seeker.noted_doubt(),
        has_state: false,
        has_config: search.config.is_some(),
    };
    let is_full = seats.count() >= new.max_players;
    let in_sight_from = if is_full { lobby.first_lapse() } else { now + sight_after };
    let lobby = Lobby { joinable_from: (!new.is_private).then_some(in_sight_from), ..lobby };
    Lobby { room: lobby.room_with(seats.count()), ..lobby }
}
