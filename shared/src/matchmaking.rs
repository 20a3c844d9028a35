//! Matching: find a seat in a lobby that exists, else create one, else say why not.
//!
//! A quiet find is one query of the index (a hint) and one conditional write on the lobby (the truth). What an instance
//! learnt is kept in [`recall`] and used under load only. Creation is elected, see [`crate::store::creation`]. Every loop
//! is bounded: a find that loses every race ends in [`Error::Contention`] (I3).

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::future::try_join_all;

use crate::{
    ambient::{Ambient, Timestamp},
    errors::Error,
    ids::{LobbyId, SeatId},
    lobby::{Entry, Lobby, Refusal, contains_tags, sort_fullest_first},
    models::{Pool, Tags},
    rules::criteria::{Criteria, SearchedPool},
    settings_cache::{Settings, SettingsCache},
    store::{
        Store,
        creation::{Burst, HeadKey},
        lobbies::{Candidate, SeatClaim, SeatOutcome},
    },
};

mod create;
mod recall;
mod room;

use create::Step;
use recall::Recall;

/// How long a find may try; far below the function's time-out.
const FIND_DEADLINE: Duration = Duration::from_secs(5);
/// Rounds of looking and creating before a find gives up.
const ROUNDS_MAX: u32 = 12;
/// Pause after a lost round, doubled each time up to sixteenfold, jittered.
const ROUND_PAUSE: Duration = Duration::from_millis(5);
/// Candidates whose fullness is compared exactly in each pool (decisions on matching).
const COMPARED_MAX: usize = 16;
/// Candidates read in one pool: first as many as are compared and one more; then on, while none can be entered.
const READ_LIMITS: [usize; 3] = [COMPARED_MAX + 1, 100, CANDIDATES_MAX];
/// Candidates looked at with tags, at most.
const CANDIDATES_MAX: usize = 1_000;
/// Pools queried at the same time.
const QUERIES_AT_ONCE: usize = 16;
/// A full lobby still in sight after this long was left there by a find that crashed; who sees it puts it right.
const STALE_HINT_AGE: Duration = Duration::from_secs(2);

/// What a find looks for.
#[derive(Clone, Debug)]
pub struct Search {
    /// What was asked, after every rule.
    pub criteria: Criteria,
    /// The namespace's settings.
    pub settings: Arc<Settings>,
    /// Whether a lobby may be created (I8).
    pub may_create: bool,
}

/// How a find came to its seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The lobby was there.
    Joined,
    /// It was created for this find.
    Created {
        /// Although another one was joinable by then: counted and reported (I9).
        is_race_create: bool,
    },
}

/// A seat found.
#[derive(Clone, Debug)]
pub struct Found {
    /// The lobby, with the seat taken.
    pub lobby: Lobby,
    /// The seat.
    pub seat_id: SeatId,
    /// When it was taken.
    pub taken_at: Timestamp,
    /// How.
    pub way: Way,
}

/// The matchmaker of one function instance.
#[derive(Debug)]
pub struct Matchmaker {
    store: Store,
    settings: Arc<SettingsCache>,
    ambient: Ambient,
    recall: Recall,
    race_creates: AtomicU64,
}

impl Matchmaker {
    /// A matchmaker that remembers nothing yet; knowledge of servers may be as old as settings may.
    #[must_use]
    pub fn new(store: Store, settings: Arc<SettingsCache>, ambient: Ambient) -> Self {
        Self {
            store,
            settings,
            ambient,
            recall: Recall::default(),
            race_creates: AtomicU64::new(0),
        }
    }

    /// Lobbies created so far although another was joinable (I9).
    #[must_use]
    pub fn race_creates(&self) -> u64 {
        self.race_creates.load(Ordering::Relaxed)
    }

    /// Finds a seat: in the fullest fitting lobby, else in a new one.
    ///
    /// # Errors
    /// [`Error::NoAvailableLobbies`], [`Error::TooManyLobbies`], [`Error::NoServerAvailable`], [`Error::Contention`];
    /// [`Error::Unavailable`], [`Error::Bug`]. A seat may then be reserved all the same; it lapses by itself.
    pub async fn find(&self, search: &Search) -> Result<Found, Error> {
        let deadline = self.ambient.now() + FIND_DEADLINE;
        let seat_id = SeatId::random(&self.ambient);
        if let Some(found) = self.take_remembered(search, &seat_id).await? {
            return Ok(found);
        }
        for round in 0..ROUNDS_MAX {
            if let Some(found) = self.take_existing(search, &seat_id).await? {
                return Ok(found);
            }
            if !search.may_create {
                return Err(Error::NoAvailableLobbies);
            }
            match self.create(search, &seat_id, round > 0).await? {
                Step::Found(found) => return Ok(*found),
                Step::LookAgain => {}
                Step::NoRoom(refusal) => {
                    // Room may have come back, or seats into sight, since the look above.
                    if !self.make_room(search).await? {
                        let found = self.take_existing(search, &seat_id).await?;
                        return found.ok_or_else(|| refusal.into());
                    }
                }
            }
            if self.ambient.now() >= deadline {
                break;
            }
            tokio::time::sleep(self.ambient.jittered(ROUND_PAUSE * 2_u32.pow(round.min(4)))).await;
        }
        Err(Error::Contention)
    }

    /// Under load takes a seat in the lobby last used, unlooked.
    async fn take_remembered(&self, search: &Search, seat_id: &SeatId) -> Result<Option<Found>, Error> {
        let [searched] = search.criteria.pools.as_slice() else {
            return Ok(None);
        };
        if !search.criteria.tags.is_empty() {
            return Ok(None);
        }
        match self.recall.lobby_under_load(&searched.pool, self.ambient.now()) {
            Some(lobby_id) => Ok(self.take(searched, lobby_id, seat_id).await?.ok()),
            None => Ok(None),
        }
    }

    /// Takes a seat in the fullest lobby that has one; nothing when none has, so far as the index knows.
    async fn take_existing(&self, search: &Search, seat_id: &SeatId) -> Result<Option<Found>, Error> {
        let Criteria { pools, tags, .. } = &search.criteria;
        for (page, limit) in READ_LIMITS.into_iter().enumerate() {
            let limit = if tags.is_empty() { limit } else { CANDIDATES_MAX };
            let (candidates, has_more) = self.look(pools, tags, limit).await?;
            if let [only] = candidates.as_slice() {
                let found = self.take_candidate(pools, only, seat_id).await?;
                if found.is_some() {
                    return Ok(found);
                }
            } else if !candidates.is_empty() {
                let skipped = if page == 0 { 0 } else { COMPARED_MAX };
                let found = self.take_fullest(pools, &candidates, skipped, seat_id).await?;
                if found.is_some() {
                    return Ok(found);
                }
            }
            if !has_more || limit == CANDIDATES_MAX {
                break;
            }
        }
        Ok(None)
    }

    /// Candidates of all pools with the queried tags, and whether a pool has more than were read.
    async fn look(
        &self,
        pools: &[SearchedPool],
        tags: &Tags,
        limit: usize,
    ) -> Result<(Vec<Candidate>, bool), Error> {
        let now = self.ambient.now();
        let (mut candidates, mut has_more) = (Vec::new(), false);
        for pools in pools.chunks(QUERIES_AT_ONCE) {
            let queries = pools
                .iter()
                .map(|searched| self.store.candidates(&searched.pool, now, limit));
            for found in try_join_all(queries).await? {
                has_more |= found.len() >= limit;
                candidates.extend(
                    found
                        .into_iter()
                        .filter(|candidate| contains_tags(&candidate.tags, tags)),
                );
            }
        }
        Ok((candidates, has_more))
    }

    async fn take_candidate(
        &self,
        pools: &[SearchedPool],
        candidate: &Candidate,
        seat_id: &SeatId,
    ) -> Result<Option<Found>, Error> {
        match searched(pools, &candidate.pool) {
            Some(searched) => Ok(self
                .take(searched, candidate.lobby_id.clone(), seat_id)
                .await?
                .ok()),
            None => Ok(None),
        }
    }

    /// Compares candidates of each pool by their seats and tries them in order, fullest first.
    async fn take_fullest(
        &self,
        pools: &[SearchedPool],
        candidates: &[Candidate],
        skipped: usize,
        seat_id: &SeatId,
    ) -> Result<Option<Found>, Error> {
        let now = self.ambient.now();
        let compared: Vec<LobbyId> = pools
            .iter()
            .flat_map(|searched| {
                let in_pool = candidates
                    .iter()
                    .filter(|candidate| candidate.pool == searched.pool);
                in_pool.skip(skipped).map(|candidate| candidate.lobby_id.clone())
            })
            .collect();
        // One batch reads up to 100; each pool's oldest come first, so what is left out are the youngest.
        for ids in compared.chunks(
            if skipped == 0 {
                COMPARED_MAX * pools.len().max(1)
            } else {
                100
            }
            .min(100),
        ) {
            let mut lobbies = self.store.lobbies(ids).await?;
            self.correct_stale_hint(&lobbies, pools, now).await?;
            lobbies.retain(|lobby| !matches!(lobby.entry(&lobby.pool, now), Entry::Refused(_)));
            sort_fullest_first(&mut lobbies, now);
            for lobby in lobbies {
                if let Some(searched) = searched(pools, &lobby.pool)
                    && let Ok(found) = self.take(searched, lobby.lobby_id, seat_id).await?
                {
                    return Ok(Some(found));
                }
            }
        }
        Ok(None)
    }

    /// Takes a seat in one lobby, or says why it has none to give.
    async fn take(
        &self,
        searched: &SearchedPool,
        lobby_id: LobbyId,
        seat_id: &SeatId,
    ) -> Result<Result<Found, Refusal>, Error> {
        let now = self.ambient.now();
        let claim = SeatClaim {
            lobby_id,
            pool: searched.pool.clone(),
            seat_id: seat_id.clone(),
            until: now + searched.reservation,
        };
        match self.store.take_seat(&claim, now).await? {
            SeatOutcome::Taken(lobby) => {
                self.learn(&lobby, now).await?;
                Ok(Ok(Found {
                    lobby: *lobby,
                    seat_id: claim.seat_id,
                    taken_at: now,
                    way: Way::Joined,
                }))
            }
            SeatOutcome::Refused(refusal, seen) => {
                self.recall.forget_lobby(&claim.pool, &claim.lobby_id);
                if let Some(lobby) = seen {
                    self.recall.saw_full(&lobby);
                    self.correct_stale_hint(&[*lobby], std::slice::from_ref(searched), now)
                        .await?;
                }
                Ok(Err(refusal))
            }
        }
    }

    /// Keeps what a seat just taken tells: a lobby to go on filling, or one to put out of sight.
    async fn learn(&self, lobby: &Lobby, now: Timestamp) -> Result<(), Error> {
        if lobby.taken < lobby.max_players {
            self.recall.remember_lobby(&lobby.pool, &lobby.lobby_id, now);
            return Ok(());
        }
        self.recall.forget_lobby(&lobby.pool, &lobby.lobby_id);
        self.recall.saw_full(lobby);
        self.hide(lobby).await
    }

    /// The seat is taken already: a hint that cannot be written must not fail the find that holds it.
    async fn hide(&self, lobby: &Lobby) -> Result<(), Error> {
        match self.store.hide_full_lobby(lobby).await {
            Err(Error::Unavailable(cause)) => {
                tracing::warn!(lobby.id = %lobby.lobby_id, cause, "a full lobby stays in sight until the next find");
                Ok(())
            }
            other => other,
        }
    }

    /// Puts one full lobby out of sight that nobody hid for so long that its filler must have crashed.
    async fn correct_stale_hint(
        &self,
        lobbies: &[Lobby],
        pools: &[SearchedPool],
        now: Timestamp,
    ) -> Result<(), Error> {
        let is_stale = |lobby: &&Lobby| {
            let Some(searched) = searched(pools, &lobby.pool) else {
                return false;
            };
            let in_sight = lobby.joinable_from.is_some_and(|from| from <= now);
            let last_taken = lobby
                .reserved
                .values()
                .max()
                .map(|until| until.before(searched.reservation));
            let filled_long_ago = last_taken.is_none_or(|taken_at| now.since(taken_at) >= STALE_HINT_AGE);
            in_sight && filled_long_ago && lobby.entry(&lobby.pool, now) == Entry::Refused(Refusal::Full)
        };
        match lobbies.iter().find(is_stale) {
            Some(lobby) => self.hide(lobby).await,
            None => Ok(()),
        }
    }

    fn burst_key(criteria: &Criteria) -> HeadKey {
        HeadKey::new(
            &criteria.new_lobby.pool,
            &criteria.tags,
            criteria.new_lobby.max_players,
        )
    }

    /// The lobby of `burst` that its `position`-th find belongs to, counted from 0, of `capacity` seats.
    fn lobby_of_burst(burst: &Burst, position: u32, capacity: u32) -> LobbyId {
        burst.first.sibling(position.checked_div(capacity).unwrap_or(0))
    }
}

fn searched<'a>(pools: &'a [SearchedPool], pool: &Pool) -> Option<&'a SearchedPool> {
    pools.iter().find(|searched| searched.pool == *pool)
}
