//! Creating a lobby together with all finds that need the same one at the same time.
//!
//! The find that begins a burst has its first position, and each other find draws one. The first position of
//! each lobby creates it, a little after the lobby before where both would conflict at one server. The others
//! wait for it, and create it themselves if it does not come, as do finds that come later: its identifier
//! makes it the same lobby. All lobbies but the first stay out of sight while positions are drawn (decision
//! 23), and the last position of a lobby hides it (decision 24).
//!
//! A party draws a position for each of its seats, and the head lists how many each find drew. So all finds
//! know the same first lobby with room for each of them, and smaller parties fill the holes that larger ones
//! leave (decision 73).
//!
//! A find that loses its seat while it waits draws again, without waiting, or begins another burst if it saw
//! the large lobby of its next position full, or crowded. If it loses a second seat, the pool is busy, and it
//! creates a small lobby of its own.

use std::{slice, time::Duration};

use futures_util::future;

use crate::{
    matchmaking::{
        limits::{ROOMY, UNSHARED_FOR},
        matchmaker::Matchmaker,
        outcomes::{Attempt, Origin, Placing, Step},
        position::{Position, Role, last_lobby, next_lobby, with_last_lobby},
        round::Round,
        search::{Claimed, Search},
    },
    models::{
        availability::Refusal,
        errors::Error,
        ids::{BurstSecret, LobbyId},
        server::Server,
    },
    rules::criteria::NewLobby,
    seating::{reply::Found, seeker::Seeker},
    store::{
        creation::{BURST_WINDOW, Beginning, Burst, BurstOutcome, HeadKey, YOUNG_BURST_AGE},
        seats::{Hiding, PartyCapacity},
    },
    wire::explanation::FindOutcome,
};

/// How long a find waits, at most, before it writes to a head again that took no more writes: each of a
/// thousand finds at one instant writes to it twice, which takes an item a second or two (decision 22).
const PATIENCE: Duration = Duration::from_millis(300);
/// The same of large lobbies, for which finds draw lots once the head has refused them to the end.
const PATIENCE_WITH_LOTS: Duration = Duration::from_millis(25);
/// One find in so many creates a lobby by lot, if it has as many seats: at a thousand writes a second, one of
/// 256 takes in some 170 players, so that a load needs several at a time.
const LOTS_MAX: u32 = 50;
/// Rounds of a find in which its chance doubles: the eleventh one creates.
const LOTS_HALVED_IN: u32 = 2;
/// Elections that one find takes part in before it looks again.
const ELECTIONS_MAX: usize = 4;
/// Lobbies a second from one burst that make its pool busy: then finds create without an election.
const BUSY_LOBBIES: u32 = 25;
/// The same in positions drawn, whatever the lobbies' size: at most as many as the head's item takes.
const CALM_DRAWS: u32 = 250;
const BUSY_DRAWS: u32 = 800;
/// Lobbies and positions that a burst has before it makes its pool busy.
const LOBBIES_SHARED: u32 = 2;
const BUSY_POSITIONS: u32 = 20;
/// Once a burst is so old and still of one find, others take a seat of its lobby, which the index does not
/// show yet, without a position of their own: up to a quarter of the lobby.
const LONE_BURST_AGE: Duration = Duration::from_millis(20);
/// The same in calls as slow as the find's own election: by then the lobby is there.
const LONE_BURST_CALLS: u32 = 4;
const LONE_BURST_SHARE: u32 = 4;
/// How far apart finds create lobbies on one server, whose transactions would otherwise conflict: each
/// occupies the server's item for some milliseconds, and latencies differ by a few. A wait costs no call, a
/// conflict costs one.
const CREATION_SPACING: Duration = Duration::from_millis(12);
/// Spacings that a creation waits for at most: beyond that, conflicts are rare.
const SPACINGS_MAX: u32 = 32;

/// Why a burst gave a find no seat.
enum Unseated {
    /// It has none for the find.
    Exhausted(Burst),
    /// The lobby of the find's position was full already.
    Lost(Burst, LobbyId),
    /// Another burst replaced it.
    Replaced(Option<Burst>),
}

impl Matchmaker {
    /// Runs a round, counted from 0: creates a lobby, or takes a seat in one that another find creates. A
    /// find that lost a seat in an earlier round looks for the next one at once.
    pub(super) async fn create(&self, search: &Search, seeker: &Seeker, round: u32) -> Result<Step, Error> {
        let searched = search.criteria.new_lobby.searched();
        if let Some(step) = self.create_alone(search, seeker).await? {
            match step {
                Step::LookAgain => {}
                Step::Found(found) => {
                    let now = self.ambient.now();
                    if searched.shards == 1 || self.pools.create_early(slice::from_ref(&searched), now) {
                        self.pools.note_busy(&searched, now);
                    }
                    return Ok(Step::Found(found));
                }
                Step::NoCapacity(reason) => return Ok(Step::NoCapacity(reason)),
            }
        }
        if self.pools.has_hot_head(&searched, self.ambient.now()) && self.runs_beside(search) {
            return self.create_by_lot(search, seeker, round).await;
        }
        let key = search.head_key();
        // On the heap, as it holds all that a creation does, twice.
        match Box::pin(self.create_elected(search, &key, seeker, Round::new(round > 0))).await {
            // The head is throttled: the pool is busier than any instance sees.
            Err(Error::Unavailable(cause)) => {
                tracing::warn!(cause, "a lobby could not be created by election");
                self.pools.note_hot_head(&searched, self.ambient.now());
                Ok(Step::LookAgain)
            }
            other => other,
        }
    }

    /// Creates a lobby without an election, where the pool is too busy for one; else `None`.
    async fn create_alone(&self, search: &Search, seeker: &Seeker) -> Result<Option<Step>, Error> {
        let new = &search.criteria.new_lobby;
        let is_busy = self.pools.creates_alone(&new.searched(), new.max_players, self.ambient.now());
        if !is_busy || !self.runs_beside(search) {
            return Ok(None);
        }
        self.create_unshared(search, seeker).await.map(Some)
    }

    /// Creates a lobby where the head takes no more writes: one in as many finds as it has seats does, so
    /// that those who need it make it together, but at least one in [`LOTS_MAX`]. The others look for it, and
    /// the more often they do in vain, the more of them create one.
    async fn create_by_lot(&self, search: &Search, seeker: &Seeker, round: u32) -> Result<Step, Error> {
        let seats = u64::from(seeker.seats().count());
        let lots = search.criteria.new_lobby.max_players.min(LOTS_MAX) >> (round / LOTS_HALVED_IN);
        if self.ambient.below(lots.max(1).into()) >= seats {
            return Ok(Step::LookAgain);
        }
        self.create_unshared(search, seeker).await
    }

    /// How long the find waits for a head that takes no more writes.
    fn patience(&self, search: &Search) -> Duration {
        let is_short = search.criteria.new_lobby.max_players > ROOMY && self.runs_beside(search);
        if is_short { PATIENCE_WITH_LOTS } else { PATIENCE }
    }

    /// Whether a lobby too many would have no server started: where none runs yet, each would.
    fn runs_beside(&self, search: &Search) -> bool {
        let (new, now) = (&search.criteria.new_lobby, self.ambient.now());
        let runs = |server: &Server| !server.is_requested() && server.fits(&new.pool.game_mode, now);
        new.launch.is_none() || self.servers.count(&new.placement(), runs) > 0
    }

    /// Creates a lobby that no other find creates with it.
    async fn create_unshared(&self, search: &Search, seeker: &Seeker) -> Result<Step, Error> {
        let new = &search.criteria.new_lobby;
        let searched = new.searched();
        let lobby_id = LobbyId::from(self.ambient.uuid());
        let fills_it = self.pools.fills_alone(&searched, new.max_players, self.ambient.now());
        let sight_after = if fills_it { UNSHARED_FOR } else { Duration::ZERO };
        let placing = Placing { sight_after, ..Placing::default() };
        let seats = seeker.seats().count();
        let (in_use, is_one_open) = self.pools.in_use(&searched, seats, BURST_WINDOW, self.ambient.now());
        match self.attempt(search, &lobby_id, seeker, placing, Origin::Alone).await? {
            Attempt::Created(mut found) => {
                seeker.trace().created_beside(in_use);
                found.outcome = FindOutcome::Created { is_race_create: is_one_open };
                Ok(Step::Found(found))
            }
            Attempt::NoCapacity(reason) => Ok(Step::NoCapacity(reason)),
            Attempt::Exists | Attempt::Replaced(_) | Attempt::Lost => Ok(Step::LookAgain),
        }
    }

    /// Creates a lobby together with all finds that need the same one.
    async fn create_elected(
        &self,
        search: &Search,
        key: &HeadKey,
        seeker: &Seeker,
        mut round: Round,
    ) -> Result<Step, Error> {
        let seats = seeker.seats().count();
        let mut exhausted = self.bursts.exhausted(key, seats);
        let mut young = self.bursts.young(key, seats, self.ambient.now(), YOUNG_BURST_AGE);
        let is_young = |burst: &Burst| self.ambient.now().since(burst.opened_at) < YOUNG_BURST_AGE;
        for _ in 0..ELECTIONS_MAX {
            round.without_server_at = None;
            let burst = match young.take() {
                Some(burst) => burst,
                None => {
                    let secret = BurstSecret::random(&self.ambient);
                    let beginning = Beginning {
                        key: key.clone(),
                        secret,
                        positions: seats,
                        has_parties: search.criteria.new_lobby.party_size_max.is_some(),
                        exhausted: exhausted
                            .take()
                            .map(|burst| with_last_lobby(burst, &search.criteria.new_lobby)),
                    };
                    match self.begin_burst(search, beginning, seeker, &mut round).await? {
                        Ok(step) => return Ok(step),
                        Err(other) => other,
                    }
                }
            };
            round.lose_election();
            match self.join_burst(search, burst, seeker, &round).await? {
                Ok(step) => return Ok(step),
                Err(Unseated::Exhausted(burst)) => exhausted = Some(burst),
                // A find that saw the lobby in the index was quicker: the burst may have another seat.
                Err(Unseated::Lost(burst, lobby_id)) if round.lose_seat(&lobby_id) => {
                    if is_young(&burst) {
                        young = Some(burst)
                    } else {
                        exhausted = Some(burst)
                    }
                }
                // So many finds are quicker that this burst cannot share lobbies.
                Err(Unseated::Lost(..)) => {
                    self.pools.note_busy(&search.criteria.new_lobby.searched(), self.ambient.now());
                    return Ok(self.create_alone(search, seeker).await?.unwrap_or(Step::LookAgain));
                }
                Err(Unseated::Replaced(burst)) => young = burst.filter(is_young),
            }
        }
        Ok(Step::LookAgain)
    }

    /// Begins a burst and creates its first lobby, or returns the burst that is under way.
    ///
    /// Two writes, the head's first: in one transaction, the many finds that lose the election would block
    /// other transactions on their other items, and it costs a write unit more. An instance that knows no
    /// server reads the servers meanwhile.
    async fn begin_burst(
        &self,
        search: &Search,
        beginning: Beginning,
        seeker: &Seeker,
        round: &mut Round,
    ) -> Result<Result<Step, Burst>, Error> {
        let key = &beginning.key;
        let first = LobbyId::from(self.ambient.uuid());
        let began_at = self.ambient.now();
        let election = async {
            let patience = self.patience(search);
            let outcome = self.store.begin_burst(&beginning, &first, patience, began_at).await;
            (outcome, self.ambient.now().since(began_at))
        };
        let meeting = self.servers.meet(&search.criteria.new_lobby, seeker.trace());
        let ((outcome, took), without_server_at) = future::join(election, meeting).await;
        round.election_took = took;
        round.without_server_at = without_server_at;
        match outcome? {
            BurstOutcome::Begun(burst) => {
                self.bursts.remember(key, burst.clone(), first, self.ambient.now());
                Ok(Ok(self.take_position(search, &burst, seeker, round).await?))
            }
            BurstOutcome::Outrun(burst) => Ok(Err(burst)),
        }
    }

    /// Takes the seat that `burst` has for this find.
    async fn join_burst(
        &self,
        search: &Search,
        burst: Burst,
        seeker: &Seeker,
        round: &Round,
    ) -> Result<Result<Step, Unseated>, Error> {
        let (new, key) = (&search.criteria.new_lobby, search.head_key());
        let capacity = new.max_players;
        if self.ambient.now().since(burst.opened_at) >= YOUNG_BURST_AGE {
            return self.join_older_burst(search, burst, seeker, round).await;
        }
        let seats = seeker.seats().count();
        let next = next_lobby(&burst, new, seats);
        if seeker.excludes(&next) {
            return Ok(Err(Unseated::Exhausted(burst)));
        }
        // Of a small lobby, few positions are left to draw.
        let is_large = capacity > ROOMY;
        if (burst.is_announced || is_large)
            && self.bursts.was_full_or_crowded(&next, seats, burst.opened_at, self.ambient.now())
        {
            return Ok(Err(Unseated::Exhausted(burst)));
        }
        let finds = burst.draws.as_ref().map_or(burst.positions as usize, Vec::len);
        let lone_age = LONE_BURST_AGE.max(round.election_took * LONE_BURST_CALLS);
        let is_lone = finds == 1 && self.ambient.now().since(burst.opened_at) >= lone_age;
        if is_lone && !burst.is_announced && (burst.positions + seats) * LONE_BURST_SHARE <= capacity {
            match self.take_in_burst(new, &burst.first, Hiding::No, seeker).await? {
                Ok(found) => return Ok(Ok(Step::Found(Box::new(found)))),
                Err(refusal) if is_large && refusal != Refusal::Missing => {
                    return Ok(Err(Unseated::Exhausted(burst)));
                }
                Err(_) => {}
            }
        }
        let burst = match self.store.draw_positions(&key, &burst, seats, self.patience(search)).await? {
            Ok(burst) => burst,
            Err(replacement) => return Ok(Err(Unseated::Replaced(replacement))),
        };
        let lobby_id = Position::drawn_last(&burst, new).lobby_id;
        self.bursts.remember(&key, burst.clone(), last_lobby(&burst, new), self.ambient.now());
        if round.has_lost_in(&lobby_id) {
            return Ok(Err(Unseated::Lost(burst, lobby_id)));
        }
        let now = self.ambient.now();
        let draws = (BUSY_LOBBIES * capacity).clamp(CALM_DRAWS, BUSY_DRAWS);
        let most = f64::from(draws) * now.since(burst.opened_at).as_secs_f64();
        let is_fast = burst.positions > (LOBBIES_SHARED * capacity).max(BUSY_POSITIONS)
            && f64::from(burst.positions) > most;
        if is_fast && !burst.is_announced {
            self.pools.note_busy(&new.searched(), now);
        }
        Ok(match self.take_position(search, &burst, seeker, round).await? {
            Step::LookAgain => Err(Unseated::Lost(burst, lobby_id)),
            step => Ok(step),
        })
    }

    /// Takes a seat in the last lobby of a burst that is no longer young. If the lobby is not there, its
    /// creator is late, or gone: then the find creates this very lobby.
    async fn join_older_burst(
        &self,
        search: &Search,
        burst: Burst,
        seeker: &Seeker,
        round: &Round,
    ) -> Result<Result<Step, Unseated>, Error> {
        let (new, key) = (&search.criteria.new_lobby, search.head_key());
        let last = last_lobby(&burst, new);
        self.bursts.remember(&key, burst.clone(), last.clone(), self.ambient.now());
        let (seats, now) = (seeker.seats().count(), self.ambient.now());
        if seeker.excludes(&last) || self.bursts.was_full_or_crowded(&last, seats, burst.opened_at, now) {
            return Ok(Err(Unseated::Exhausted(burst)));
        }
        let was_there = burst.is_announced && last == burst.first;
        match self.take_in_burst(new, &last, Hiding::No, seeker).await? {
            Ok(found) => return Ok(Ok(Step::Found(Box::new(found)))),
            Err(Refusal::Missing) if !was_there => {}
            Err(_) => return Ok(Err(Unseated::Exhausted(burst))),
        }
        let placing = Placing { without_server_at: round.without_server_at, ..Placing::default() };
        Ok(match self.create_in_burst(search, &last, seeker, placing, (&burst, true)).await? {
            Attempt::Created(found) => Ok(Step::Found(found)),
            Attempt::NoCapacity(reason) => Ok(Step::NoCapacity(reason)),
            Attempt::Replaced(other) => Err(Unseated::Replaced(Some(other))),
            Attempt::Exists | Attempt::Lost => Err(Unseated::Replaced(None)),
        })
    }

    /// Takes the last position drawn of `burst`: creates its lobby, or waits until it is created.
    async fn take_position(
        &self,
        search: &Search,
        burst: &Burst,
        seeker: &Seeker,
        round: &Round,
    ) -> Result<Step, Error> {
        let new = &search.criteria.new_lobby;
        let position = Position::drawn_last(burst, new);
        let Position { nth, role, .. } = position;
        let hiding = position.hiding(burst, new);
        let spacing = self.spacing_of(new, burst, &position).await?;
        if role == Role::Creator && !spacing.is_zero() {
            self.ambient.sleep(spacing).await;
        }
        let drawn_for = YOUNG_BURST_AGE.saturating_sub(self.ambient.now().since(burst.opened_at));
        let sight_after = if position.is_promised { drawn_for } else { Duration::ZERO };
        let waits = round.waits(new.launch.is_some());
        let placing = Placing { nth: nth.into(), sight_after, without_server_at: round.without_server_at };
        let created_for = (burst, round.may_be_needless(nth));
        for wait in 0..=waits {
            if role == Role::Creator || wait == waits {
                let lobby_id = &position.lobby_id;
                match self.create_in_burst(search, lobby_id, seeker, placing, created_for).await? {
                    Attempt::Created(found) => return Ok(Step::Found(found)),
                    Attempt::NoCapacity(reason) => return Ok(Step::NoCapacity(reason)),
                    Attempt::Exists => {}
                    // Its position is kept: drawing another one would leave its seat to nobody.
                    Attempt::Lost if wait < waits => self.ambient.sleep(round.pause(wait)).await,
                    Attempt::Replaced(_) | Attempt::Lost => return Ok(Step::LookAgain),
                }
            } else if wait > 0 || role == Role::Follower {
                // The creator of the burst's first lobby began with the burst.
                let is_first = wait == 0 && nth == 0;
                let begun = if is_first { self.ambient.now().since(burst.opened_at) } else { Duration::ZERO };
                let spacing = if wait == 0 { spacing } else { Duration::ZERO };
                let pause = spacing + round.pause(wait);
                self.ambient.sleep(pause.saturating_sub(begun)).await;
            }
            match self.take_in_burst(new, &position.lobby_id, hiding, seeker).await? {
                Ok(found) => return Ok(Step::Found(Box::new(found))),
                Err(Refusal::Missing) => {}
                Err(_) => return Ok(Step::LookAgain),
            }
        }
        Ok(Step::LookAgain)
    }

    /// How long the creation of the lobby of `position` still waits for earlier ones on the same server. A
    /// creator that knows no server first reads the servers, as the creation would.
    async fn spacing_of(
        &self,
        new: &NewLobby,
        burst: &Burst,
        position: &Position,
    ) -> Result<Duration, Error> {
        if position.nth == 0 {
            return Ok(Duration::ZERO);
        }
        let pool = new.placement();
        let now = self.ambient.now();
        let count = || self.servers.count(&pool, |server| server.fits(&new.pool.game_mode, now));
        if position.role == Role::Creator && count() == 0 {
            self.servers.learn(&pool, &new.pool.game_mode, None).await?;
        }
        let before = position.nth.checked_div(count()).unwrap_or(0).min(SPACINGS_MAX);
        Ok((CREATION_SPACING * before).saturating_sub(self.ambient.now().since(burst.opened_at)))
    }

    /// Creates a lobby of a burst, which may be a needless one. Without capacity nobody creates it: the next
    /// find need not wait for it.
    async fn create_in_burst(
        &self,
        search: &Search,
        lobby_id: &LobbyId,
        seeker: &Seeker,
        placing: Placing,
        (burst, may_be_needless): (&Burst, bool),
    ) -> Result<Attempt, Error> {
        let origin = Origin::Has { burst, may_be_needless };
        let attempt = self.attempt(search, lobby_id, seeker, placing, origin).await?;
        if matches!(attempt, Attempt::NoCapacity(_)) {
            self.bursts.note_exhausted(&search.head_key(), burst);
        }
        Ok(attempt)
    }

    /// Takes a seat in a lobby of a burst, which need not be created yet.
    async fn take_in_burst(
        &self,
        new: &NewLobby,
        lobby_id: &LobbyId,
        hiding: Hiding,
        seeker: &Seeker,
    ) -> Result<Result<Found, Refusal>, Error> {
        let capacity = PartyCapacity::Assumed(new.max_players_party.unwrap_or(new.max_players));
        let pool = new.pool.in_shard_of(lobby_id, new.shards);
        let claimed = Claimed { pool, lobby_id: lobby_id.clone(), capacity, hiding };
        self.take(&new.searched(), claimed, seeker).await
    }
}
