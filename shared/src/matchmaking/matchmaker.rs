//! Matching: find a seat in a lobby that exists, else create one, else say why not.
//!
//! A quiet find is one query of the index (a hint) and one conditional write on the lobby (the truth). What
//! the instance remembers is used from five finds in a second on, for untagged finds in a single pool only.
//! Creation is elected, see [`crate::store::creation`]. Every loop is bounded: a find that loses every race
//! ends in [`Error::Contention`] (I3).

use std::{collections::HashSet, sync::Arc, time::Duration};

use futures_util::future::try_join_all;

use crate::{
    auth::settings::SettingsCache,
    base::ambient::{Ambient, Timestamp},
    matchmaking::{
        limits::{CANDIDATES_MAX, COMPARED_MAX, FIND_DEADLINE, LANE_HOLD, ROUND_PAUSES, ROUNDS_MAX},
        outcomes::Step,
        recall::Recall,
        search::{Claimed, Existing, Search, searched},
    },
    models::{
        errors::Error,
        ids::LobbyId,
        lobby::{Door, Lobby, Refusal, SeatState},
    },
    rules::criteria::{Criteria, NewLobby, SearchedPool},
    seating::{reply::Found, seeker::Seeker},
    store::{
        client::Store,
        creation::HeadKey,
        lobbies::{Candidate, Hiding, SeatClaim, SeatOutcome},
    },
    wire::explanation::{self, Reason, Way},
};

/// Candidates of more than that of which a find compares so many, any of them, before the oldest.
const SAMPLED: usize = 3;

/// Waves of comparison that those make in one pool.
const WAVES_MAX: usize = CANDIDATES_MAX.div_ceil(COMPARED_MAX);
/// Pools queried at the same time.
const QUERIES_AT_ONCE: usize = 16;
/// A write of the index that takes this long was refused before: it takes some milliseconds, a repetition
/// half a second.
const SLOW_INDEX_PAUSE: Duration = Duration::from_millis(100);

/// The matchmaker of one function instance.
#[derive(Debug)]
pub struct Matchmaker {
    pub(super) store: Store,
    pub(super) settings: Arc<SettingsCache>,
    pub(super) ambient: Ambient,
    pub(super) recall: Recall,
}

impl Matchmaker {
    /// A matchmaker that remembers nothing yet; knowledge of servers may be as old as settings may.
    #[must_use]
    pub fn new(store: Store, settings: Arc<SettingsCache>, ambient: Ambient) -> Self {
        Self { store, settings, ambient, recall: Recall::default() }
    }

    /// Finds a seat: in the fullest fitting lobby, else in a new one.
    ///
    /// # Errors
    /// [`Error::NoAvailableLobbies`], [`Error::TooManyLobbies`], [`Error::NoServerAvailable`],
    /// [`Error::Contention`], [`Error::LobbyStartTimeout`]; what [`Seeker::aim`] refuses;
    /// [`Error::Unavailable`], [`Error::Bug`]. A seat may then be reserved all the same; it lapses by itself.
    pub async fn find(&self, search: &Search, seeker: &Seeker) -> Result<Found, Error> {
        let began_at = self.ambient.now();
        let found = match self.find_interrupted(seeker).await? {
            Some(found) => found,
            None => self.find_seat(search, seeker, began_at + FIND_DEADLINE).await?,
        };
        self.until_ready(found, seeker).await
    }

    /// The seat that an earlier run of the same request had taken before it crashed, if it had.
    pub(super) async fn find_interrupted(&self, seeker: &Seeker) -> Result<Option<Found>, Error> {
        let Some(aim) = seeker.interrupted() else { return Ok(None) };
        let Some(lobby) = self.store.lobby(&aim.lobby_id).await? else { return Ok(None) };
        if lobby.seat_state(seeker.seat_id(), self.ambient.now()) != SeatState::Held {
            return Ok(None);
        }
        let taken_at = seeker.resume(aim.clone()).await?;
        Ok(Some(Found { lobby, seat_id: seeker.seat_id().clone(), taken_at, way: Way::Joined }))
    }

    /// What is searched when it is one pool without tags: whatever was learnt so says nothing of lobbies with
    /// them.
    pub(super) fn remembers(search: &Search) -> Option<&SearchedPool> {
        match search.criteria.pools.as_slice() {
            [searched] if search.criteria.tags.is_empty() => Some(searched),
            _ => None,
        }
    }

    async fn find_seat(&self, search: &Search, seeker: &Seeker, deadline: Timestamp) -> Result<Found, Error> {
        let Some(searched) = Self::remembers(search) else {
            return self.find_by_looking(search, seeker, deadline).await;
        };
        // An instance that lost seats to others fills lobbies of its own, its lane: then no two instances
        // write to the same item, and a find is one write.
        if self.recall.begin_find(&searched.pool, self.ambient.now())
            && let Some(found) = self.take_tip(searched, seeker).await?
        {
            return Ok(found);
        }
        self.find_by_looking(search, seeker, deadline).await
    }

    /// Looks for a seat, creates a lobby where there is none, and again while others are quicker.
    async fn find_by_looking(
        &self,
        search: &Search,
        seeker: &Seeker,
        deadline: Timestamp,
    ) -> Result<Found, Error> {
        for round in 0..ROUNDS_MAX {
            let now = self.ambient.now();
            // Whoever cannot create may take what others hold for their own finds.
            let sight = if search.may_create { now } else { now + LANE_HOLD };
            let existing = match self.searched_ahead(search, now) {
                Some(searched) => self.take_any(search, searched, seeker, deadline).await?,
                None => self.take_existing(search, seeker, sight, deadline).await?,
            };
            let has_more = match existing {
                Existing::Taken(found) => return Ok(*found),
                Existing::None { has_more } => has_more,
            };
            if !search.may_create {
                seeker.trace().creation(explanation::Creation::Prevented);
                return Err(Error::NoAvailableLobbies);
            }
            seeker.trace().creation(explanation::Creation::NothingJoinable);
            match self.create(search, seeker, round > 0).await? {
                Step::Found(found) => return Ok(self.counted(*found, has_more)),
                Step::LookAgain => {}
                Step::NoRoom(refusal) => {
                    // Seats may have come into sight since the look above; and what others hold for their own
                    // finds is better taken than none.
                    let sight = self.ambient.now() + LANE_HOLD;
                    return match self.take_existing(search, seeker, sight, deadline).await? {
                        Existing::Taken(found) => Ok(*found),
                        Existing::None { .. } => Err(refusal.into()),
                    };
                }
            }
            if self.ambient.now() >= deadline {
                break;
            }
            ROUND_PAUSES.wait(round, &self.ambient).await;
        }
        Err(Error::Contention)
    }

    /// Counts a lobby that was made although the look before it ended at its limit: one that it did not read
    /// may have had a seat (I9).
    fn counted(&self, mut found: Found, has_more: bool) -> Found {
        if has_more && found.way == (Way::Created { is_race_create: false }) {
            found.way = Way::Created { is_race_create: true };
        }
        found
    }

    /// Takes a seat where the last find took one, if it should have another.
    async fn take_tip(&self, searched: &SearchedPool, seeker: &Seeker) -> Result<Option<Found>, Error> {
        let Some(tip) = self.recall.tip(&searched.pool, self.ambient.now()) else { return Ok(None) };
        let claimed = Claimed { pool: &tip.pool, lobby_id: tip.lobby_id.clone(), hiding: tip.hiding };
        let taken = self.take(searched, claimed, seeker).await?;
        if taken.is_err() {
            self.recall.note_lost_tip(&searched.pool, self.ambient.now());
        }
        Ok(taken.ok())
    }

    /// Takes a seat in the fullest lobby that has one; nothing when none that is in sight at `sight` has, so
    /// far as the index knows.
    pub(super) async fn take_existing(
        &self,
        search: &Search,
        seeker: &Seeker,
        sight: Timestamp,
        deadline: Timestamp,
    ) -> Result<Existing, Error> {
        let Criteria { pools, tags, .. } = &search.criteria;
        let limit_max = CANDIDATES_MAX.checked_div(pools.len()).unwrap_or(0).max(COMPARED_MAX + 1);
        // Which candidates have the tags is known only after reading them.
        let first_limit = if tags.is_empty() { COMPARED_MAX + 1 } else { limit_max };
        let candidates = self.look(pools, first_limit, sight, deadline).await?;
        seeker.trace().considered(candidates.fitting.len() + candidates.mismatched, candidates.mismatched);
        if let [only] = candidates.fitting.as_slice()
            && let Some(searched) = searched(pools, &only.pool)
        {
            let lobby_id = only.lobby_id.clone();
            let hiding = self.recall.hiding(&only.pool, &lobby_id, self.ambient.now());
            let claimed = Claimed { pool: &only.pool, lobby_id, hiding };
            let taken = self.take(searched, claimed, seeker).await?;
            if taken.is_err() {
                self.recall.note_lost_seat(&only.pool, self.ambient.now());
            }
            return Ok(Existing::of(taken.ok(), candidates.has_more));
        }
        // Among so many the fullest is not exact, and the oldest are where every find would meet.
        if tags.is_empty() && candidates.has_more && pools.len() == 1 {
            let mut sampled = candidates.fitting.clone();
            let sampled: Vec<_> = (0..SAMPLED).filter_map(|_| self.ambient.draw(&mut sampled)).collect();
            if let Some(found) = self.take_fullest(pools, sampled, 1, seeker, deadline).await? {
                return Ok(Existing::of(Some(found), false));
            }
        }
        let tried: HashSet<LobbyId> = candidates.fitting.iter().map(|tried| tried.lobby_id.clone()).collect();
        let waves = if tags.is_empty() { 1 } else { WAVES_MAX };
        if let Some(found) = self.take_fullest(pools, candidates.fitting, waves, seeker, deadline).await? {
            return Ok(Existing::of(Some(found), false));
        }
        if !candidates.has_more || !tags.is_empty() {
            return Ok(Existing::None { has_more: candidates.has_more });
        }
        // The oldest could not be entered, lobbies of a dead server for one: on to the younger.
        let mut candidates = self.look(pools, limit_max, sight, deadline).await?;
        seeker.trace().considered(candidates.fitting.len() + candidates.mismatched, candidates.mismatched);
        candidates.fitting.retain(|candidate| !tried.contains(&candidate.lobby_id));
        let found = self.take_fullest(pools, candidates.fitting, WAVES_MAX, seeker, deadline).await?;
        Ok(Existing::of(found, candidates.has_more))
    }

    /// Up to `limit` candidates of each pool that are in sight at `sight`, those with the queried tags;
    /// behind those, where there are more, [`COMPARED_MAX`] with these tags and no others; no longer than
    /// until `deadline`.
    pub(super) async fn look(
        &self,
        pools: &[SearchedPool],
        limit: usize,
        sight: Timestamp,
        deadline: Timestamp,
    ) -> Result<Candidates, Error> {
        let now = self.ambient.now();
        let mut candidates = Candidates { fitting: Vec::new(), mismatched: 0, has_more: false };
        for pools in pools.chunks(QUERIES_AT_ONCE) {
            if self.ambient.now() >= deadline {
                return Err(Error::Contention);
            }
            let queries = pools.iter().map(|searched| self.store.candidates(&searched.pool, sight, limit));
            for ((found, shards), searched) in try_join_all(queries).await?.into_iter().zip(pools) {
                self.recall.note_shards(&searched.pool, shards, found.len(), now);
                self.retire_shards(&searched.pool, shards, &found, now).await?;
                let (has_more, tags) = (found.len() >= limit, &searched.tag_digests);
                let (fitting, others): (Vec<_>, Vec<_>) =
                    found.into_iter().partition(|candidate| candidate.tag_digests.contain(tags));
                let seen = candidates.fitting.len();
                candidates.fitting.extend(fitting);
                candidates.mismatched += others.len();
                candidates.has_more |= has_more;
                if has_more && !tags.is_empty() {
                    let mut alike =
                        self.store.tagged_candidates(&searched.pool, tags, sight, COMPARED_MAX).await?;
                    let known = candidates.fitting.get(seen..).unwrap_or_default();
                    alike.retain(|other| known.iter().all(|known| known.lobby_id != other.lobby_id));
                    candidates.fitting.extend(alike);
                }
            }
        }
        Ok(candidates)
    }

    /// Takes a seat in one lobby, or says why it has none to give.
    pub(super) async fn take(
        &self,
        searched: &SearchedPool,
        claimed: Claimed<'_>,
        seeker: &Seeker,
    ) -> Result<Result<Found, Refusal>, Error> {
        let mut taken_at = seeker.aim(&claimed.lobby_id, self.ambient.now()).await?;
        let now = self.ambient.now();
        let mut claim = SeatClaim {
            lobby_id: claimed.lobby_id,
            door: Door::Find(claimed.pool.clone(), searched.tag_digests.clone()),
            seat_id: seeker.seat_id().clone(),
            until: now + searched.reservation,
            hiding: claimed.hiding,
        };
        let mut outcome = seeker.while_noted(self.store.take_seat(&claim, now)).await;
        if matches!(outcome, Err(Error::Unavailable(_))) && claim.hiding != Hiding::No {
            // Without the index, which may be what took no more.
            self.recall.note_slow_index(&searched.pool, now);
            claim.hiding = Hiding::No;
            taken_at = seeker.aim(&claim.lobby_id, self.ambient.now()).await?;
            outcome = seeker.while_noted(self.store.take_seat(&claim, now)).await;
        }
        match outcome? {
            SeatOutcome::Taken(lobby) => {
                // Seats of a lobby out of sight are promised to others, unless this instance made it for
                // itself.
                let is_promised = lobby.joinable_from.is_some_and(|from| from > now);
                self.learn(&lobby, now, is_promised).await?;
                Ok(Ok(Found { lobby: *lobby, seat_id: claim.seat_id, taken_at, way: Way::Joined }))
            }
            SeatOutcome::Refused(refusal, seen) => {
                seeker.missed();
                let is_race = refusal == Refusal::Full;
                seeker.trace().refused(if is_race { Reason::RaceLost } else { refusal.into() });
                self.recall.forget_lobby(&searched.pool, &claim.lobby_id);
                if let Some(lobby) = seen {
                    self.recall.saw_full(&lobby);
                    self.correct_hints(&[*lobby], std::slice::from_ref(searched), now).await?;
                }
                Ok(Err(refusal))
            }
        }
    }

    /// Keeps what a seat just taken tells: a lobby to go on filling, unless its other seats are promised to
    /// others, or one to put out of sight.
    pub(super) async fn learn(&self, lobby: &Lobby, now: Timestamp, is_promised: bool) -> Result<(), Error> {
        if lobby.joinable_from.is_none() {
            return Ok(());
        }
        if lobby.taken < lobby.max_players {
            self.recall.remember_lobby(lobby, is_promised, now);
            return Ok(());
        }
        self.recall.forget_lobby(&lobby.pool, &lobby.lobby_id);
        self.recall.saw_full(lobby);
        match lobby.joinable_from {
            Some(from) if from <= now + LANE_HOLD => self.hide(lobby).await,
            _ => Ok(()),
        }
    }

    /// The seat is taken already: a hint that cannot be written must not fail the find that holds it.
    pub(super) async fn hide(&self, lobby: &Lobby) -> Result<(), Error> {
        let shard = self.choose_shard(&lobby.pool).await?;
        let began_at = self.ambient.now();
        let hidden = self.store.hide_full_lobby(lobby, shard).await;
        if self.ambient.now().since(began_at) >= SLOW_INDEX_PAUSE {
            self.recall.note_slow_index(&lobby.pool, self.ambient.now());
        }
        match hidden {
            Err(Error::Unavailable(cause)) => {
                self.recall.note_slow_index(&lobby.pool, self.ambient.now());
                tracing::warn!(lobby.id = %lobby.lobby_id, cause, "a full lobby stays in sight until the next find");
                Ok(())
            }
            other => other,
        }
    }

    pub(super) fn burst_key(criteria: &Criteria) -> HeadKey {
        let NewLobby { pool, tag_digests, max_players, .. } = &criteria.new_lobby;
        HeadKey::new(pool, tag_digests, *max_players)
    }
}

/// What the index knows.
pub(super) struct Candidates {
    pub(super) fitting: Vec<Candidate>,
    /// How many lack a queried tag.
    pub(super) mismatched: usize,
    /// Whether a pool has more than were read.
    pub(super) has_more: bool,
}
