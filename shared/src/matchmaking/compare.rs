//! Looking for a seat in existing lobbies: reads and compares candidates, and takes a seat in the fullest of
//! the nearest region.

use std::{
    collections::{BTreeSet, HashSet},
    mem,
};

use futures_util::future::try_join_all;

use crate::{
    base::ambient::Timestamp,
    matchmaking::{
        contention::Contention,
        hints,
        limits::{COMPARED_MAX, ROOMY, TRIED_WHILE_BUSY_MAX, UNSHARED_FOR},
        matchmaker::Matchmaker,
        memory::pools::KnownLobby,
        search::{Existing, Search, by_distance, searched},
    },
    models::{
        availability::{Availability, Refusal, sort_fullest_first},
        errors::Error,
        ids::{LobbyId, ServerKey},
        lobby::Lobby,
        room::Room,
    },
    rules::criteria::{Criteria, SearchedPool},
    seating::{reply::Found, seeker::Seeker},
    store::lobbies::Candidate,
    wire::explanation::Reason,
};

/// Candidates that a find looks at, at most, or [`COMPARED_MAX`] + 1 of each pool if that is more.
const CANDIDATES_MAX: usize = 1_000;
/// Candidates drawn at random that a find compares before the oldest, where a pool has more than it reads.
const SAMPLED: usize = 3;
/// Waves of comparison that [`CANDIDATES_MAX`] make in one pool.
const WAVES_MAX: usize = CANDIDATES_MAX.div_ceil(COMPARED_MAX);
/// Lobbies read before the others to learn whether any is joinable.
const READ_FIRST: usize = 2;
/// Pools queried at the same time.
const QUERIES_AT_ONCE: usize = 16;

/// Whether each lobby that gave no seat was only full.
struct AreAllFull(bool);

/// A find's comparison of lobbies, in equally near pools.
struct Comparison<'a> {
    pools: &'a [SearchedPool],
    seeker: &'a Seeker,
    /// Whether the find may create a lobby instead.
    may_create: bool,
    deadline: Timestamp,
    /// Until when a lobby comes into sight that the find sees.
    sight: Timestamp,
    /// Candidates that it reads of each pool at most.
    limit_max: usize,
    /// Lobbies compared before: they are not compared again.
    compared: HashSet<LobbyId>,
    /// Whether one of these has a seat and was skipped because it is crowded.
    is_one_crowded: bool,
}

/// Candidates of a pool as the index shows them.
struct Candidates {
    fitting: Vec<Candidate>,
    /// How many lack a queried tag.
    mismatched: usize,
    /// Whether the pool has more than were read.
    has_more: bool,
}

impl Candidates {
    /// Those of several pools.
    fn of_all(pools: Vec<Self>) -> Self {
        let (mismatched, has_more) = (0, false);
        pools.into_iter().fold(Self { fitting: Vec::new(), mismatched, has_more }, |mut all, of_one| {
            all.fitting.extend(of_one.fitting);
            all.mismatched += of_one.mismatched;
            all.has_more |= of_one.has_more;
            all
        })
    }
}

impl Matchmaker {
    /// Takes a seat in an existing lobby: under load in one used before or any read ahead, else in the
    /// fullest. `round` says whether it is the find's first one, and when the find ends.
    pub(super) async fn find_existing(
        &self,
        pools: &[SearchedPool],
        may_create: bool,
        seeker: &Seeker,
        round: (bool, Timestamp),
    ) -> Result<Existing, Error> {
        let (is_first, deadline) = round;
        if self.pools.contention(pools, self.ambient.now()) >= Contention::Loaded {
            let mut has_more = false;
            let mut is_over = may_create;
            for nearest in by_distance(pools) {
                if is_first && let Some(found) = self.take_in_used(nearest, seeker).await? {
                    return Ok(Existing::of(Some(found), false));
                }
                let ahead = if may_create { self.find_ahead(nearest, seeker).await? } else { None };
                match ahead {
                    Some(Existing::None { has_more: has_more_here }) => has_more |= has_more_here,
                    Some(taken) => return Ok(taken),
                    None => {
                        is_over = false;
                        break;
                    }
                }
            }
            if is_over {
                return Ok(Existing::None { has_more });
            }
        }
        self.find_by_comparing(pools, seeker, may_create, deadline).await
    }

    /// Takes a seat in the fullest lobby in sight that has one, in the nearest region with one. In a busy
    /// pool, a find that `may_create` otherwise tries three. One that may not tries all, and those that other
    /// instances keep for their own finds.
    pub(super) async fn find_by_comparing(
        &self,
        pools: &[SearchedPool],
        seeker: &Seeker,
        may_create: bool,
        deadline: Timestamp,
    ) -> Result<Existing, Error> {
        let now = self.ambient.now();
        let sight = if may_create { now } else { now + UNSHARED_FOR };
        let limit_max = CANDIDATES_MAX.checked_div(pools.len()).unwrap_or(0).max(COMPARED_MAX + 1);
        let (compared, is_one_crowded) = (HashSet::default(), false);
        let mut comparison =
            Comparison { pools, seeker, may_create, deadline, sight, limit_max, compared, is_one_crowded };
        let is_tagged = pools.iter().any(|searched| !searched.tag_digests.is_empty());
        let mut exact = if is_tagged { self.look_exactly(pools, sight).await? } else { Vec::new() };
        seeker.trace().considered(exact.iter().map(Vec::len).sum(), 0);
        let mut shown: Option<Vec<Candidates>> = None;
        let mut has_more = false;
        for nearest in by_distance(pools) {
            comparison.pools = nearest;
            let exact: Vec<_> = exact.drain(..nearest.len().min(exact.len())).flatten().collect();
            if let Some(found) = self.take_exact(&mut comparison, exact).await? {
                return Ok(Existing::of(Some(found), false));
            }
            let mut here = match shown.take() {
                Some(shown) => shown,
                // Which candidates have the tags is known only after reading them.
                None if is_tagged => self.show(&comparison, pools, limit_max, seeker.is_alone()).await?,
                None => self.show(&comparison, pools, COMPARED_MAX + 1, false).await?,
            };
            shown = Some(here.split_off(nearest.len().min(here.len())));
            match self.compare(&mut comparison, Candidates::of_all(here), is_tagged).await? {
                Existing::None { has_more: has_more_here } => has_more |= has_more_here,
                taken => return Ok(taken),
            }
        }
        Ok(Existing::None { has_more })
    }

    /// Takes a seat in the fullest lobby of equally near pools, which were read as `candidates`.
    async fn compare(
        &self,
        comparison: &mut Comparison<'_>,
        candidates: Candidates,
        is_tagged: bool,
    ) -> Result<Existing, Error> {
        let Comparison { pools, may_create, limit_max, .. } = *comparison;
        if !comparison.seeker.is_alone() {
            let found = self.take_roomy(comparison, candidates.fitting).await?;
            return Ok(Existing::of(found, candidates.has_more || comparison.is_one_crowded));
        }
        if let [only] = candidates.fitting.as_slice() {
            let found = self.take_only(comparison, only).await?;
            return Ok(Existing::of(found, candidates.has_more));
        }
        // Among so many the fullest is not exact, and every find would compete for the oldest.
        if !is_tagged && candidates.has_more && pools.len() == 1 {
            let mut sampled = candidates.fitting.clone();
            let sampled: Vec<_> = (0..SAMPLED).filter_map(|_| self.ambient.draw(&mut sampled)).collect();
            match self.claim_fullest(comparison, sampled, 1).await? {
                Ok(found) => return Ok(Existing::of(Some(found), false)),
                // Decision 21.
                Err(AreAllFull(true)) if may_create && self.is_busy(pools) => {
                    return Ok(Existing::None { has_more: true });
                }
                Err(_) => {}
            }
        }
        let waves = if is_tagged { WAVES_MAX } else { 1 };
        if let Ok(found) = self.claim_fullest(comparison, candidates.fitting, waves).await? {
            return Ok(Existing::of(Some(found), false));
        }
        if !candidates.has_more || is_tagged {
            return Ok(Existing::None { has_more: candidates.has_more || comparison.is_one_crowded });
        }
        // No oldest lobby gave a seat, for example because all are of a dead server: try younger ones.
        let candidates = Candidates::of_all(self.show(comparison, pools, limit_max, false).await?);
        let found = self.claim_fullest(comparison, candidates.fitting, WAVES_MAX).await?;
        Ok(Existing::of(found.ok(), candidates.has_more || comparison.is_one_crowded))
    }

    /// Takes the seats of a party in one of `candidates`, those with the least room first. The index shows
    /// their room, so the first few are tried without reading them.
    async fn take_roomy(
        &self,
        comparison: &mut Comparison<'_>,
        mut candidates: Vec<Candidate>,
    ) -> Result<Option<Found>, Error> {
        // A sort of all pools by their room; of one pool they are sorted.
        candidates.sort_by_key(|candidate| candidate.room);
        if self.is_busy(comparison.pools) {
            // All finds that saw the first would try it at the same time.
            let least = candidates.first().and_then(|first| first.room).map(Room::seats);
            let equal = candidates.iter().take_while(|one| one.room.map(Room::seats) == least).count();
            let first = usize::try_from(self.ambient.below(equal as u64)).unwrap_or(0);
            candidates.rotate_left(first);
        }
        let rest = candidates.split_off(candidates.len().min(TRIED_WHILE_BUSY_MAX));
        for candidate in &candidates {
            if let Some(found) = self.take_only(comparison, candidate).await? {
                return Ok(Some(found));
            }
        }
        Ok(self.claim_fullest(comparison, rest, 1).await?.ok())
    }

    /// The candidates of each of `pools` that the find wants to see.
    async fn show(
        &self,
        comparison: &Comparison<'_>,
        pools: &[SearchedPool],
        limit: usize,
        is_scan: bool,
    ) -> Result<Vec<Candidates>, Error> {
        let Comparison { seeker, sight, deadline, .. } = comparison;
        let mut shown = self.look(pools, limit, *sight, *deadline, (is_scan, seeker.seats().count())).await?;
        for candidates in &mut shown {
            let Candidates { fitting, mismatched, .. } = candidates;
            seeker.trace().considered(fitting.len() + *mismatched, *mismatched);
            leave_out(fitting, seeker);
        }
        Ok(shown)
    }

    /// Whether all finds in `pools` would try the same lobbies.
    fn is_busy(&self, pools: &[SearchedPool]) -> bool {
        self.pools.contention(pools, self.ambient.now()) == Contention::Busy
    }

    /// Takes a seat in a lobby with exactly the queried tags, however many others there are.
    async fn take_exact(
        &self,
        comparison: &mut Comparison<'_>,
        mut exact: Vec<Candidate>,
    ) -> Result<Option<Found>, Error> {
        leave_out(&mut exact, comparison.seeker);
        match exact.as_slice() {
            [] => Ok(None),
            [only] => self.take_only(comparison, only).await,
            _ => Ok(self.claim_fullest(comparison, exact, 1).await?.ok()),
        }
    }

    /// Up to [`COMPARED_MAX`] candidates of each pool with exactly the queried tags.
    async fn look_exactly(
        &self,
        pools: &[SearchedPool],
        sight: Timestamp,
    ) -> Result<Vec<Vec<Candidate>>, Error> {
        let looks = pools.iter().map(|SearchedPool { pool, tag_digests, .. }| {
            self.store.tagged_candidates(pool, tag_digests, sight, COMPARED_MAX)
        });
        try_join_all(looks).await
    }

    /// Takes a seat in the only candidate, without reading it first.
    async fn take_only(
        &self,
        comparison: &mut Comparison<'_>,
        only: &Candidate,
    ) -> Result<Option<Found>, Error> {
        let Comparison { pools, seeker, compared, .. } = comparison;
        if !compared.insert(only.lobby_id.clone()) {
            return Ok(None);
        }
        Ok(self.take_shown(pools, only, seeker).await?.and_then(Result::ok))
    }

    /// Up to `limit` candidates with the queried tags of each pool that are in sight at `sight`, or have room
    /// for so many `seats` of a party, in the order of `pools`. Ends at `deadline`. While this instance makes
    /// many, or refuses finds, a scan for tags reads a pool once a second.
    async fn look(
        &self,
        pools: &[SearchedPool],
        limit: usize,
        sight: Timestamp,
        deadline: Timestamp,
        (is_scan, seats): (bool, u32),
    ) -> Result<Vec<Candidates>, Error> {
        let now = self.ambient.now();
        let (mut candidates, mut unread) = (Vec::new(), Vec::new());
        for searched in pools {
            let scanned = is_scan.then(|| self.scans.shown(searched, sight, now)).flatten();
            if scanned.is_none() {
                unread.push(searched);
            }
            candidates.push(scanned.map(|(fitting, mismatched, has_more)| Candidates {
                fitting,
                mismatched,
                has_more,
            }));
        }
        let mut read = Vec::new();
        for pools in unread.chunks(QUERIES_AT_ONCE) {
            if self.ambient.now() >= deadline {
                return Err(Error::Contention);
            }
            let queries = pools.iter().map(async |SearchedPool { pool, shards, .. }| {
                if seats > 1 {
                    self.store.roomy(pool, *shards, seats, limit).await
                } else {
                    self.store.candidates(pool, *shards, sight, limit).await
                }
            });
            for (found, searched) in try_join_all(queries).await?.into_iter().zip(pools) {
                self.pools.note_shown(searched, found.len(), self.ambient.now());
                let has_more = found.len() >= limit;
                if is_scan {
                    self.scans.note(searched, &found, has_more, sight, now);
                }
                let fits = |candidate: &Candidate| candidate.tag_digests.contain(&searched.tag_digests);
                let (fitting, others): (Vec<_>, Vec<_>) = found.into_iter().partition(fits);
                read.push(Candidates { fitting, mismatched: others.len(), has_more });
            }
        }
        let mut read = read.into_iter();
        Ok(candidates.into_iter().filter_map(|scanned| scanned.or_else(|| read.next())).collect())
    }

    /// Compares candidates by their seats and tries them, fullest first: in `waves` of [`COMPARED_MAX`] of
    /// each pool, the oldest in the first.
    async fn claim_fullest(
        &self,
        comparison: &mut Comparison<'_>,
        mut candidates: Vec<Candidate>,
        waves: usize,
    ) -> Result<Result<Found, AreAllFull>, Error> {
        let Comparison { pools, seeker, may_create, deadline, compared: seen, is_one_crowded, .. } =
            comparison;
        candidates.retain(|candidate| !seen.contains(&candidate.lobby_id));
        let mut passed_over = BTreeSet::new();
        let mut are_all_full = true;
        for wave in 1..=waves {
            if self.ambient.now() >= *deadline {
                return Err(Error::Contention);
            }
            let compared = next_wave(pools, &mut candidates);
            if compared.is_empty() {
                break;
            }
            seen.extend(compared.iter().cloned());
            let now = self.ambient.now();
            let mut lobbies = self.store.lobbies(&compared).await?;
            hints::correct(&self.store, &self.ambient, &lobbies, pools, seeker, now).await?;
            let silent = silent_servers(&lobbies, now);
            lobbies.retain(|lobby| match lobby.availability_for_find(seeker.seats().count(), now) {
                Availability::Refused(refusal) => {
                    seeker.trace().refused(Reason::of(refusal));
                    are_all_full &= refusal.is_for_want_of_seats();
                    false
                }
                Availability::Free(_) | Availability::TakeOver(_) => {
                    let is_left_aside = *may_create && lobby.is_crowded(now);
                    *is_one_crowded |= is_left_aside;
                    !is_left_aside
                }
            });
            sort_fullest_first(&mut lobbies, now);
            if self.is_busy(pools) {
                // All finds that saw the fullest would try it at the same time.
                let first = match lobbies.iter().position(|lobby| lobby.free_seats(now) > ROOMY) {
                    Some(roomy) => roomy,
                    None => usize::try_from(self.ambient.below(lobbies.len() as u64)).unwrap_or(0),
                };
                lobbies.rotate_left(first);
            }
            for (tried, lobby) in lobbies.into_iter().enumerate() {
                // Those that it lost may show that the pool is busy.
                if tried >= TRIED_WHILE_BUSY_MAX && *may_create && self.is_busy(pools) {
                    break;
                }
                let Some(searched) = searched(pools, &lobby.pool) else { continue };
                let known = KnownLobby { lobby, learnt_at: now };
                match self.take_seen(searched, &known, seeker).await? {
                    Ok(found) => return Ok(Ok(found)),
                    Err(refusal) => are_all_full &= refusal.is_for_want_of_seats(),
                }
            }
            let silent: Vec<_> =
                silent.into_iter().filter(|server| passed_over.insert(server.clone())).collect();
            if wave < waves && !candidates.is_empty() && !silent.is_empty() {
                self.pass_over(&silent, &mut candidates).await?;
            }
        }
        Ok(Err(AreAllFull(are_all_full)))
    }

    /// Removes all lobbies of silent servers from `candidates`, and hides some of them.
    ///
    /// A heartbeat extends its server's lease before those of its lobbies, so that the server's lease shows
    /// whether all are dead.
    async fn pass_over(&self, servers: &[ServerKey], candidates: &mut Vec<Candidate>) -> Result<(), Error> {
        let seen = self.store.servers_as_they_are(servers).await?;
        let now = self.ambient.now();
        let alive = seen.into_iter().filter(|server| server.lease_until > now);
        let alive: BTreeSet<ServerKey> = alive.map(|server| server.server).collect();
        for server in servers.iter().filter(|server| !alive.contains(server)) {
            let page = self.store.lobbies_of_server(server, None, CANDIDATES_MAX).await?;
            let dead: BTreeSet<LobbyId> = page.lobby_ids.into_iter().collect();
            let (silent, others): (Vec<_>, Vec<_>) =
                mem::take(candidates).into_iter().partition(|candidate| dead.contains(&candidate.lobby_id));
            *candidates = others;
            hints::hide_dead(&self.store, silent.iter().map(|silent| &silent.lobby_id), now).await?;
        }
        Ok(())
    }

    /// Whether there is a lobby of its pool beside the one `created` that a find of `search` could have
    /// joined.
    pub(super) async fn is_another_joinable(
        &self,
        search: &Search,
        seeker: &Seeker,
        created: &Lobby,
    ) -> Result<bool, Error> {
        let now = self.ambient.now();
        let Criteria { new_lobby, tags, .. } = &search.criteria;
        // Its rivals created there, too: they have the same criteria.
        let pools = [new_lobby.searched()];
        let seats = seeker.seats().count();
        let looked = if tags.is_empty() {
            let seen = self.look(&pools, COMPARED_MAX, now, Timestamp::NEVER, (false, seats)).await?;
            Candidates::of_all(seen).fitting
        } else {
            self.look_exactly(&pools, now).await?.concat()
        };
        let others = looked.into_iter().map(|other| other.lobby_id);
        let is_other = |other: &LobbyId| *other != created.lobby_id && !seeker.excludes(other);
        let others: Vec<LobbyId> = others.filter(is_other).take(100).collect();
        // Most candidates have a seat, so few are read at first.
        let (first, rest) = others.split_at(others.len().min(READ_FIRST));
        for some in [first, rest] {
            let lobbies = self.store.lobbies(some).await?;
            let is_joinable =
                |lobby: &Lobby| !matches!(lobby.availability_for_find(seats, now), Availability::Refused(_));
            if lobbies.iter().any(is_joinable) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Leaves out those of `candidates` in which the request wants no seat.
fn leave_out(candidates: &mut Vec<Candidate>, seeker: &Seeker) {
    for _excluded in candidates.extract_if(.., |candidate| seeker.excludes(&candidate.lobby_id)) {
        seeker.trace().refused(Some(Reason::Excluded));
    }
}

/// The next [`COMPARED_MAX`] candidates of each pool, taken out of `candidates`.
fn next_wave(pools: &[SearchedPool], candidates: &mut Vec<Candidate>) -> Vec<LobbyId> {
    let mut wave = Vec::new();
    for searched in pools {
        let is_of = |candidate: &mut Candidate| candidate.pool.is_shard_of(&searched.pool);
        wave.extend(candidates.extract_if(.., is_of).take(COMPARED_MAX).map(|candidate| candidate.lobby_id));
    }
    wave
}

/// The servers of which more than one of `lobbies` is dead: their other lobbies need not be read.
fn silent_servers(lobbies: &[Lobby], now: Timestamp) -> BTreeSet<ServerKey> {
    let is_silent =
        |lobby: &&Lobby| lobby.availability_for_find(1, now) == Availability::Refused(Refusal::LeaseLapsed);
    let mut seen = BTreeSet::new();
    let servers = lobbies.iter().filter(is_silent).filter_map(|lobby| lobby.server.clone());
    servers.filter(|server| !seen.insert(server.clone())).collect()
}
