//! Creating a lobby when nothing is joinable, together with every find that wants the same at the same time.
//!
//! The find that begins a burst has its first position; the others draw one. The first position of each lobby
//! creates it, a little after the lobby before where both would conflict at one server. The others wait for
//! it, and create it themselves if it does not come. All lobbies but the first stay out of sight while
//! positions are drawn (decision 23), and the last position of a lobby hides it (decision 24).
//!
//! A find whose seat others took while it waited draws once more, without waiting. If that seat is taken too,
//! the pool is busy, and the find creates a lobby of its own.
//!
//! A lobby goes to the fullest server. Transactions that conflict at one server's item fail: each conflict
//! within the last second doubles the number of the fullest servers among which the instance draws, from
//! those with a part of the limit left where eight have some (decision 26).

use std::{collections::BTreeMap, time::Duration};

use futures_util::future::try_join_all;

use crate::{
    base::{ambient::Timestamp, pauses::Pauses},
    matchmaking::{
        limits::{COMPARED_MAX, LANE_HOLD},
        matchmaker::Matchmaker,
        outcomes::{Attempt, NoRoom, Placing, Step},
        room::Room,
        search::{Claimed, Search},
    },
    models::{
        errors::Error,
        ids::{BurstSecret, LobbyId, SeatId},
        lobby::{EndCause, Entry, Lobby, Refusal, Stage},
        pool::Pool,
        server::Server,
    },
    rules::criteria::{NewLobby, SearchedPool},
    seating::{reply::Found, seeker::Seeker},
    store::{
        creation::{Beginning, Burst, BurstOutcome, Creation, CreationOutcome, HeadKey},
        ending::CONFLICT_PAUSES,
        lobbies::Hiding,
    },
    wire::explanation::{self, Way},
};

/// Elections that one find takes part in before it looks again.
const ELECTIONS_MAX: usize = 4;
/// Tries of one transaction that conflicts or whose server has no place.
const CREATIONS_MAX: u32 = 8;
/// Times that a creation makes room before the find looks again: others take what it made.
const ROOMS_MAX: u32 = 5;
/// Pauses before room is looked for again that is on its way: at least as long as an index may lag, in all.
const MOVING_PAUSES: Pauses = Pauses::tripling(Duration::from_millis(100)).jittered();
/// Such pauses before a creation believes that the room does not come.
const MOVING_PAUSES_MAX: u32 = 4;
/// A burst younger than this may be unknown to the index, so its newcomers share it by position; an older one
/// that the index shows nothing of is most likely full.
const YOUNG_BURST_AGE: Duration = Duration::from_millis(300);
/// Draws a second of one burst from which its pool is busy: then finds create without an election.
const BUSY_RATE: f64 = 250.0;
/// The least time that such a rate is told by.
const BUSY_SPAN: Duration = Duration::from_millis(80);
/// How far apart those create lobbies who would meet at one server's item: a transaction occupies it for some
/// milliseconds, and the way there takes one a few more than another. A wait that costs no call, where a
/// conflict costs one.
const CREATION_SPACING: Duration = Duration::from_millis(12);
/// The most that a creation waits for others before it: past that they meet rarely.
const SPACINGS_MAX: u32 = 16;
/// Servers that have been silent for long, all at the same time, and lobbies of each, that one look for
/// places ends. Those beyond it are met again an hour later.
const SERVERS_ENDED_MAX: usize = 16;
const LOBBIES_ENDED_MAX: usize = 8;
/// More servers than are known of any region.
const SERVERS_MAX: u64 = 1 << 16;

/// How long a find waits for the lobby that another find of its burst is creating: first about as long as a
/// creation takes by an instance that has yet to read the servers.
const CREATOR_PAUSES: Pauses = Pauses::doubling(Duration::from_millis(32));
/// The same for a find whose seat of a burst others took while it waited: it looks for the next one at once,
/// then after this.
const CREATOR_PAUSES_AFTER_LOSS: Pauses = Pauses::doubling(Duration::from_millis(15));
/// Waits for that lobby before the find creates it itself: the creator may have crashed.
const CREATOR_WAITS: u32 = 4;

impl From<NoRoom> for Error {
    fn from(reason: NoRoom) -> Self {
        match reason {
            NoRoom::AtCap => Self::TooManyLobbies,
            NoRoom::NoServer => Self::NoServerAvailable,
        }
    }
}

/// How a creation may be allotted its part of the cap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Allotment {
    /// With more for the next ones.
    InBlocks,
    /// Alone: a block is not left.
    Singly,
    /// Not at all: nothing is left but what servers have.
    None,
}

impl Allotment {
    /// What is allotted of the server's next `block`, which is none while it has some left.
    fn of_block(self, block: Option<u32>) -> Option<u32> {
        block.map(|block| if self == Self::Singly { block.min(1) } else { block })
    }
}

/// What became of beginning a burst.
enum Begun {
    Step(Step),
    /// Another one is going on.
    Outrun(Burst),
}

impl Matchmaker {
    /// One round: create a lobby, or take a seat in one that others are creating.
    pub(super) async fn create(
        &self,
        search: &Search,
        seeker: &Seeker,
        contended: bool,
    ) -> Result<Step, Error> {
        if self.is_full(search) {
            return Ok(Step::NoRoom(NoRoom::AtCap));
        }
        let pool = &search.criteria.new_lobby.pool;
        let is_busy = search.criteria.tags.is_empty() && self.recall.is_busy(pool, self.ambient.now());
        if is_busy {
            match self.create_in_lane(search, seeker).await? {
                Step::LookAgain => {}
                Step::Found(found) => {
                    self.recall.note_busy(pool, self.ambient.now());
                    return Ok(Step::Found(found));
                }
                Step::NoRoom(reason) => return Ok(Step::NoRoom(reason)),
            }
        }
        let key = Self::burst_key(&search.criteria);
        // On the heap, as it holds all that a creation does, twice.
        match Box::pin(self.create_elected(search, &key, seeker, contended)).await {
            // The head takes no more: it is busier than any instance sees.
            Err(Error::Unavailable(cause)) => {
                tracing::warn!(cause, "a lobby could not be created by election");
                self.recall.note_busy(pool, self.ambient.now());
                Ok(Step::LookAgain)
            }
            other => other,
        }
    }

    /// Creates a lobby together with everybody who wants the same: who begins the burst has its first
    /// position.
    async fn create_elected(
        &self,
        search: &Search,
        key: &HeadKey,
        seeker: &Seeker,
        contended: bool,
    ) -> Result<Step, Error> {
        let pool = &search.criteria.new_lobby.pool;
        let mut exhausted = self.recall.exhausted_burst(key);
        // A find that looks again lost a seat before.
        let (lost_before, mut contended) = (contended, contended);
        let mut young = self.recall.young_burst(key, self.ambient.now(), YOUNG_BURST_AGE);
        let mut lost = None;
        let is_young = |burst: &Burst| self.ambient.now().since(burst.opened_at) < YOUNG_BURST_AGE;
        for _ in 0..ELECTIONS_MAX {
            let burst = match young.take() {
                Some(burst) => burst,
                None => {
                    let secret = BurstSecret::random(&self.ambient);
                    let beginning = Beginning { key: key.clone(), secret, exhausted: exhausted.take() };
                    match self.begin_burst(search, beginning, seeker, contended).await? {
                        Begun::Step(step) => return Ok(step),
                        Begun::Outrun(burst) => burst,
                    }
                }
            };
            contended = true;
            match self.join_burst(search, key, burst, seeker, lost.as_ref(), lost_before).await? {
                Joined::Step(step) => return Ok(step),
                Joined::Exhausted(burst) => exhausted = Some(burst),
                // Whoever saw the lobby in the index was quicker: the burst may have another seat.
                Joined::Lost(burst, lobby_id) if lost.is_none() => {
                    lost = Some(lobby_id);
                    if is_young(&burst) { young = Some(burst) } else { exhausted = Some(burst) }
                }
                // So many are quicker that the burst is no way to share lobbies.
                Joined::Lost(..) => {
                    self.recall.note_busy(pool, self.ambient.now());
                    return self.create_in_lane(search, seeker).await;
                }
                Joined::Replaced(burst) => young = burst.filter(is_young),
            }
        }
        Ok(Step::LookAgain)
    }

    /// Begins a burst and creates its first lobby, or learns which burst is going on.
    ///
    /// Two writes, the head's first: in one transaction the many that lose the election would keep the others
    /// from the items that they were about to write. Whoever was alone the last time makes one of it.
    async fn begin_burst(
        &self,
        search: &Search,
        beginning: Beginning,
        seeker: &Seeker,
        contended: bool,
    ) -> Result<Begun, Error> {
        let key = &beginning.key;
        let first = LobbyId::from(self.ambient.uuid());
        if self.recall.is_alone(key) {
            match self.attempt(search, &first, seeker, Placing::default(), Some(&beginning)).await? {
                Attempt::Created(found) => {
                    self.recall.remember_burst(
                        key,
                        Burst::beginning_with(first.clone(), beginning.secret.clone(), found.taken_at),
                        first,
                    );
                    self.recall.note_alone(key, !contended);
                    self.recall.saw_full(&found.lobby);
                    return self.created(search, found, contended).await.map(Begun::Step);
                }
                Attempt::NoRoom(reason) => return Ok(Begun::Step(Step::NoRoom(reason))),
                Attempt::Exists => return Ok(Begun::Step(Step::LookAgain)),
                Attempt::Outrun(burst) => {
                    self.recall.note_alone(key, false);
                    return Ok(Begun::Outrun(burst));
                }
                Attempt::Lost => self.recall.note_alone(key, false),
            }
        }
        Ok(match self.store.begin_burst(&beginning, &first, self.ambient.now()).await? {
            BurstOutcome::Begun(burst) => {
                self.recall.remember_burst(key, burst.clone(), first);
                self.recall.note_alone(key, !contended);
                Begun::Step(
                    self.take_position(search, &burst, seeker, contended, Patience::ForCreator).await?,
                )
            }
            BurstOutcome::Outrun(burst) => Begun::Outrun(burst),
        })
    }

    /// Takes the seat that `burst` has for this find, which found the lobby `lost` of it full already.
    async fn join_burst(
        &self,
        search: &Search,
        key: &HeadKey,
        burst: Burst,
        seeker: &Seeker,
        lost: Option<&LobbyId>,
        lost_before: bool,
    ) -> Result<Joined, Error> {
        let new = &search.criteria.new_lobby;
        let capacity = new.max_players;
        if self.ambient.now().since(burst.opened_at) >= YOUNG_BURST_AGE {
            let last = burst.lobby_of(burst.positions.saturating_sub(1), capacity);
            self.recall.remember_burst(key, burst.clone(), last.clone());
            return Ok(match self.take(&searched(new), in_burst(new, last, Hiding::No), seeker).await? {
                Ok(found) => Joined::Step(Step::Found(Box::new(found))),
                Err(_) => Joined::Exhausted(burst),
            });
        }
        let burst = match self.store.draw_position(key, &burst).await? {
            Ok(burst) => burst,
            Err(replacement) => return Ok(Joined::Replaced(replacement)),
        };
        let position = burst.positions.saturating_sub(1);
        let lobby_id = burst.lobby_of(position, capacity);
        self.recall.remember_burst(key, burst.clone(), lobby_id.clone());
        if lost == Some(&lobby_id) {
            return Ok(Joined::Lost(burst, lobby_id));
        }
        let is_first = lost.is_none() && !lost_before;
        let patience = if is_first { Patience::ForCreator } else { Patience::AfterLoss };
        let now = self.ambient.now();
        let age = now.since(burst.opened_at).max(BUSY_SPAN);
        let is_fast = f64::from(burst.positions) > BUSY_RATE * age.as_secs_f64();
        if is_fast && !burst.is_announced {
            self.recall.note_busy(&new.pool, now);
            // So many lobbies a second as they are by then filled, left and filled again are too many for one
            // shard.
            self.recall.note_slow_index(&new.pool, now);
        }
        match self.take_position(search, &burst, seeker, true, patience).await? {
            Step::LookAgain => Ok(Joined::Lost(burst, lobby_id)),
            step => Ok(Joined::Step(step)),
        }
    }

    /// Takes the last position drawn of `burst`: creates its lobby, or waits for whoever creates it.
    async fn take_position(
        &self,
        search: &Search,
        burst: &Burst,
        seeker: &Seeker,
        contended: bool,
        patience: Patience,
    ) -> Result<Step, Error> {
        let new = &search.criteria.new_lobby;
        let capacity = new.max_players;
        let position = burst.positions.saturating_sub(1);
        let nth = position.checked_div(capacity).unwrap_or(0);
        let lobby_id = burst.lobby_of(position, capacity);
        let is_there = burst.is_announced && nth == 0;
        let creates = !is_there && position.checked_rem(capacity) == Some(0);
        // Once the last position of a lobby is drawn, all its seats are promised: nobody else need see it. In
        // a lobby that was announced others may have freed seats, too.
        let lapse = burst.opened_at + new.reservation;
        let hiding = match (position + 1).checked_rem(capacity) {
            Some(0) if burst.is_announced => {
                Hiding::IfLast { taken: capacity.saturating_sub(1), lapse, shard: new.pool.shard }
            }
            Some(0) => Hiding::Promised(lapse),
            _ => Hiding::No,
        };
        let spacing = self.spacing_of(new, burst, nth, creates).await?;
        if creates && !spacing.is_zero() {
            self.ambient.sleep(spacing).await;
        }
        // So many come at once that the lobby is full of those who draw its positions: whoever saw it sooner
        // would take their seats.
        let is_promised = nth > 0 && !burst.is_announced;
        let drawn_for = YOUNG_BURST_AGE.saturating_sub(self.ambient.now().since(burst.opened_at));
        let sight_after = if is_promised { drawn_for } else { Duration::ZERO };
        let placing = Placing { nth: nth.into(), sight_after };
        for wait in 0..=CREATOR_WAITS {
            if creates || wait == CREATOR_WAITS {
                match self.attempt(search, &lobby_id, seeker, placing, None).await? {
                    Attempt::Created(found) => {
                        self.recall.saw_full(&found.lobby);
                        // Those before it are promised to others: a lobby that was drawn is needed, but for
                        // one drawn after a loss, when another may have got a seat meanwhile.
                        let may_be_needless = nth == 0 || patience == Patience::AfterLoss;
                        return self.created(search, found, contended && may_be_needless).await;
                    }
                    Attempt::NoRoom(reason) => return Ok(Step::NoRoom(reason)),
                    Attempt::Exists => {}
                    Attempt::Outrun(_) | Attempt::Lost => return Ok(Step::LookAgain),
                }
            } else if wait > 0 || !is_there {
                // Whoever drew the lobby's first position is creating it; that of the burst's first lobby
                // since the burst began.
                let is_first = wait == 0 && nth == 0;
                let begun = if is_first { self.ambient.now().since(burst.opened_at) } else { Duration::ZERO };
                let spacing = if wait == 0 { spacing } else { Duration::ZERO };
                let pause = spacing + patience.pause(wait);
                self.ambient.sleep(pause.saturating_sub(begun)).await;
            }
            match self.take(&searched(new), in_burst(new, lobby_id.clone(), hiding), seeker).await? {
                Ok(found) => return Ok(Step::Found(Box::new(found))),
                Err(Refusal::Missing) => {}
                Err(_) => return Ok(Step::LookAgain),
            }
        }
        Ok(Step::LookAgain)
    }

    /// How long the `nth` lobby of `burst` still waits for those before it on the same server. Who `creates`
    /// it and knows no server reads them first, as the creation would.
    async fn spacing_of(
        &self,
        new: &NewLobby,
        burst: &Burst,
        nth: u32,
        creates: bool,
    ) -> Result<Duration, Error> {
        if nth == 0 {
            return Ok(Duration::ZERO);
        }
        let pool = new.pool.placement();
        let now = self.ambient.now();
        let count = || self.recall.server_count(&pool, |server| server.fits(&new.pool.game_mode, now));
        if creates && count() == 0 {
            self.learn_servers(&new.pool).await?;
        }
        let spacing = CREATION_SPACING * nth.checked_div(count()).unwrap_or(0).min(SPACINGS_MAX);
        Ok(spacing.saturating_sub(self.ambient.now().since(burst.opened_at)))
    }

    /// Creates a lobby for this instance alone, unelected.
    pub(super) async fn create_in_lane(&self, search: &Search, seeker: &Seeker) -> Result<Step, Error> {
        let lobby_id = LobbyId::from(self.ambient.uuid());
        let shard = self.choose_shard(&search.criteria.new_lobby.pool).await?;
        let mut search = search.clone();
        search.criteria.new_lobby.pool.shard = shard;
        let NewLobby { pool, max_players, .. } = &search.criteria.new_lobby;
        let fills_it = self.recall.fills_alone(pool, *max_players, self.ambient.now());
        let sight_after = if fills_it { LANE_HOLD } else { Duration::ZERO };
        let placing = Placing { nth: 0, sight_after };
        match self.attempt(&search, &lobby_id, seeker, placing, None).await? {
            Attempt::Created(found) => {
                seeker.trace().creation(explanation::Creation::PoolBusy);
                Ok(Step::Found(found))
            }
            Attempt::NoRoom(reason) => Ok(Step::NoRoom(reason)),
            Attempt::Exists | Attempt::Outrun(_) | Attempt::Lost => Ok(Step::LookAgain),
        }
    }

    /// Tries to create the lobby `lobby_id`, and makes room where there is none for it: whoever drew its
    /// first position keeps it meanwhile, so that others wait for one lobby and not for two.
    pub(super) async fn attempt(
        &self,
        search: &Search,
        lobby_id: &LobbyId,
        seeker: &Seeker,
        placing: Placing,
        beginning: Option<&Beginning>,
    ) -> Result<Attempt, Error> {
        let (mut rooms, mut pauses) = (0, 0);
        if self.is_full(search) {
            return Ok(Attempt::NoRoom(NoRoom::AtCap));
        }
        while rooms < ROOMS_MAX {
            let attempt = self.attempt_in_room(search, lobby_id, seeker, placing, beginning).await?;
            let Attempt::NoRoom(reason) = attempt else { return Ok(attempt) };
            match self.make_room(search, reason, seeker).await? {
                Room::Made => rooms += 1,
                Room::None => return Ok(attempt),
                Room::Moving if pauses == MOVING_PAUSES_MAX => return Ok(attempt),
                Room::Moving => {
                    MOVING_PAUSES.wait(pauses, &self.ambient).await;
                    pauses += 1;
                }
            }
        }
        Ok(Attempt::Lost)
    }

    /// Tries to create the lobby `lobby_id`, on one server after the other while they have no place. With a
    /// burst that it begins it tries once.
    async fn attempt_in_room(
        &self,
        search: &Search,
        lobby_id: &LobbyId,
        seeker: &Seeker,
        placing: Placing,
        beginning: Option<&Beginning>,
    ) -> Result<Attempt, Error> {
        let new = &search.criteria.new_lobby;
        let lobby_count_max = search.settings.namespace.lobby_count_max;
        let mut allotment = Allotment::InBlocks;
        for tries in 0..CREATIONS_MAX {
            let now = self.ambient.now();
            let Some(server) =
                self.choose_server(new, lobby_count_max, allotment, placing.nth, now, seeker).await?
            else {
                let allotted = self.store.allotted_lobbies(&new.pool.namespace_id).await?;
                match allotment {
                    _ if allotted >= lobby_count_max => return Ok(Attempt::NoRoom(NoRoom::AtCap)),
                    // Others gave some of it back meanwhile.
                    Allotment::None => allotment = Allotment::Singly,
                    _ => return Ok(Attempt::NoRoom(NoRoom::NoServer)),
                }
                continue;
            };
            let taken_at = seeker.aim(lobby_id, now).await?;
            let creation = Creation {
                lobby: new_lobby(search, lobby_id, seeker.seat_id(), &server, placing.sight_after, now),
                lobby_count_max,
                block: allotment.of_block(server.next_block(lobby_count_max)),
                beginning: beginning.cloned(),
                tags: search.criteria.tags.clone(),
                config: search.config.clone(),
                server,
            };
            let outcome = seeker.while_noted(self.store.create_lobby(&creation, now)).await?;
            if !matches!(outcome, CreationOutcome::Created | CreationOutcome::CreatedBefore(_)) {
                seeker.missed();
            }
            match outcome {
                CreationOutcome::Created => {
                    let after = creation.server.clone().with_another(creation.block, lobby_count_max);
                    self.recall.correct_server(&creation.server, Some(after));
                    return self.created_now(creation.lobby, seeker, taken_at, placing.is_promised()).await;
                }
                // Where it is, and how, is told by what is there: this attempt may have been for another
                // server.
                CreationOutcome::CreatedBefore(lobby) => {
                    self.recall.forget_servers(&creation.server.pool());
                    return self.created_now(*lobby, seeker, taken_at, placing.is_promised()).await;
                }
                CreationOutcome::Exists(_) => return Ok(Attempt::Exists),
                CreationOutcome::Outrun(burst) => return Ok(Attempt::Outrun(burst)),
                CreationOutcome::AtCap => {
                    let was_block = creation.block.is_some_and(|block| block > 1);
                    allotment = if was_block { Allotment::Singly } else { Allotment::None };
                }
                CreationOutcome::NoPlace(seen) => {
                    self.recall.correct_server(&creation.server, seen.map(|seen| *seen));
                }
                CreationOutcome::Conflict { .. } if beginning.is_some() => break,
                CreationOutcome::Conflict { is_at_server, is_at_index } => {
                    let index = is_at_index.then_some(&new.pool);
                    let server = is_at_server.then_some(&creation.server);
                    self.after_conflict(index, server, tries, now).await;
                }
            }
        }
        Ok(Attempt::Lost)
    }

    /// Remembers a conflict at the index of a pool or at a server, and waits after it.
    async fn after_conflict(
        &self,
        index: Option<&Pool>,
        server: Option<&Server>,
        tries: u32,
        now: Timestamp,
    ) {
        if let Some(pool) = index {
            self.recall.note_slow_index(pool, now);
        }
        if let Some(server) = server {
            self.recall.note_server_conflict(&server.pool(), now);
        }
        CONFLICT_PAUSES.wait(tries, &self.ambient).await;
    }

    async fn created_now(
        &self,
        lobby: Lobby,
        seeker: &Seeker,
        taken_at: Timestamp,
        is_promised: bool,
    ) -> Result<Attempt, Error> {
        self.learn(&lobby, taken_at, is_promised).await?;
        let way = Way::Created { is_race_create: false };
        Ok(Attempt::Created(Box::new(Found { seat_id: seeker.seat_id().clone(), taken_at, way, lobby })))
    }

    /// Reads the servers that lobbies of `pool` can be placed on, as a function's first creation does.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn know_servers(&self, pool: &Pool) -> Result<(), Error> {
        self.learn_servers(pool).await.map(|_silent| ())
    }

    /// The same; how many of those that were met are silent.
    async fn learn_servers(&self, pool: &Pool) -> Result<usize, Error> {
        let placement = pool.placement();
        let now = self.ambient.now();
        let (servers, silent) = self.store.servers_with_places(&placement, &pool.game_mode, now).await?;
        self.recall.remember_servers(&placement, servers, now);
        let over = silent.iter().filter(|server| server.used > 0 && server.is_long_silent(now));
        try_join_all(over.take(SERVERS_ENDED_MAX).map(|server| self.end_lobbies_of_silent(server))).await?;
        Ok(silent.len())
    }

    /// Ends some lobbies of a server that has been silent for long: with the last of them it costs nothing
    /// more (I14).
    async fn end_lobbies_of_silent(&self, server: &Server) -> Result<(), Error> {
        let page = self.store.lobbies_of_server(&server.server, None, LOBBIES_ENDED_MAX).await?;
        for lobby in self.store.lobbies(&page.lobby_ids).await? {
            match self.store.end_lobby(&lobby, EndCause::ServerDead, &self.ambient).await {
                // It beats again, or others end it.
                Ok(_) | Err(Error::Contention) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The fullest server with a place, from memory while it has one that fits, else from the index; one of
    /// the fullest while creations meet each other at the fullest.
    async fn choose_server(
        &self,
        new: &NewLobby,
        lobby_count_max: u32,
        allotment: Allotment,
        nth: u64,
        now: Timestamp,
        seeker: &Seeker,
    ) -> Result<Option<Server>, Error> {
        let pool = new.pool.placement();
        let fits = |server: &Server| {
            let is_allotted = server.next_block(lobby_count_max).is_none();
            server.fits(&new.pool.game_mode, now) && (is_allotted || allotment != Allotment::None)
        };
        // While busy all of them: at the fullest everybody meets, and is refused there once it is full.
        let is_busy = self.recall.is_busy(&new.pool, now);
        let spread = if is_busy { SERVERS_MAX } else { self.recall.server_spread(&pool, now) };
        let pick = nth + self.ambient.below(spread);
        let is_fresh = |server: &Server| fits(server) && server.has_fresh_lease(now);
        if let Some(server) =
            self.recall.nth_fullest_server(&pool, pick, self.settings.age_max(), now, is_fresh)
        {
            return Ok(Some(server));
        }
        seeker.trace().silent_servers(self.learn_servers(&new.pool).await?);
        Ok(self.recall.nth_fullest_server(&pool, pick, Duration::MAX, now, fits))
    }

    /// Reports a creation; after a race, whether another lobby was joinable all the same.
    ///
    /// The seat is there: that it cannot be told must not fail the find.
    async fn created(&self, search: &Search, mut found: Box<Found>, contended: bool) -> Result<Step, Error> {
        if contended {
            let is_race_create =
                self.is_another_joinable(search, &found.lobby).await.unwrap_or_else(|error| {
                    let cause = error.cause().unwrap_or("refused").to_owned();
                    tracing::warn!(cause, "whether a lobby was needed could not be told");
                    false
                });
            found.way = Way::Created { is_race_create };
        }
        Ok(Step::Found(found))
    }

    async fn is_another_joinable(&self, search: &Search, created: &Lobby) -> Result<bool, Error> {
        let now = self.ambient.now();
        let looked = self.look(&search.criteria.pools, COMPARED_MAX, now, Timestamp::NEVER).await?;
        let others = looked.fitting.into_iter().map(|other| other.lobby_id);
        let others: Vec<LobbyId> = others.filter(|other| *other != created.lobby_id).take(100).collect();
        let lobbies = self.store.lobbies(&others).await?;
        Ok(lobbies.iter().any(|lobby| lobby.entry_for_find(now) == Entry::Free))
    }
}

/// How long a find waits for the lobby of its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Patience {
    /// As long as a creation takes.
    ForCreator,
    /// Not at all at first: meanwhile others took its seat the last time.
    AfterLoss,
}

impl Patience {
    /// Before the find asks for the lobby the `wait`-th time, counted from 0.
    fn pause(self, wait: u32) -> Duration {
        match self {
            Self::ForCreator => CREATOR_PAUSES.nth(wait),
            Self::AfterLoss if wait == 0 => Duration::ZERO,
            Self::AfterLoss => CREATOR_PAUSES_AFTER_LOSS.nth(wait - 1),
        }
    }
}

enum Joined {
    Step(Step),
    /// The burst has no seat for the find.
    Exhausted(Burst),
    /// The lobby of the find's position was full already.
    Lost(Burst, LobbyId),
    /// Another burst replaced it.
    Replaced(Option<Burst>),
}

/// Lobbies of a burst, which everybody is to find, are all in the first shard.
fn in_burst(new: &NewLobby, lobby_id: LobbyId, hiding: Hiding) -> Claimed<'_> {
    Claimed { pool: &new.pool, lobby_id, hiding }
}

fn searched(new: &NewLobby) -> SearchedPool {
    let NewLobby { pool, reservation, tag_digests, .. } = new;
    SearchedPool { pool: pool.clone(), reservation: *reservation, tag_digests: tag_digests.clone() }
}

fn new_lobby(
    search: &Search,
    lobby_id: &LobbyId,
    seat_id: &SeatId,
    server: &Server,
    sight_after: Duration,
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
        toggled_at: None,
        is_private: new.is_private,
        is_draining: false,
        server: Some(server.server.clone()),
        lease_until: server.lease_until,
        start: server.start(),
        freed_at: None,
        ports: server.ports.clone(),
        tag_digests: new.tag_digests.clone(),
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
    let in_sight_from = if new.max_players > 1 { now + sight_after } else { lobby.first_lapse() };
    Lobby { joinable_from: (!new.is_private).then_some(in_sight_from), ..lobby }
}
