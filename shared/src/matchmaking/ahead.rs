//! Finds in a pool where the instance reads lobbies ahead, because its many finds would all compete for the
//! fullest lobby (decision 19).
//!
//! Where as many players leave as come, each player who leaves shows a full lobby, and each seat taken may
//! hide it. So a find reads a few of the candidates that a look shows, as many as its instance has finds in a
//! second, and takes a seat in any. The instance keeps the others for its next finds for a second, or less
//! once one of them refused a find. The next look continues where the last one ended, so that instances
//! spread over the index.
//!
//! Looks of parties are into the index of lobbies with room for them, which also has those that instances
//! keep for themselves. Where a party's look is in vain, the next ones that are as large do not look again
//! for 250 ms.
//!
//! After three full ones, a find in a busy pool creates a lobby (decision 21). If a candidate refused it for
//! another reason than being full, the find first compares as in a quiet pool.

use std::iter;

use futures_util::future::try_join_all;

use crate::{
    base::ambient::Timestamp,
    matchmaking::{
        hints,
        limits::{TRIED_WHILE_BUSY_MAX, UNSHARED_FOR},
        matchmaker::Matchmaker,
        search::{Existing, searched},
    },
    models::{availability::Availability, errors::Error, room::Room},
    rules::criteria::SearchedPool,
    seating::seeker::Seeker,
    store::lobbies::Candidate,
    wire::explanation::Reason,
};

/// Of several pools, a look is into this part of them: most find a seat there.
const POOLS_A_LOOK_SHARE: usize = 4;
/// Candidates that a look shows: the fewer, the more finds compete for each. Half a read unit.
const SHOWN_MAX: usize = 24;
/// How many of those are read, drawn at random: as many as the instance has finds in a second, within these
/// bounds. Half a read unit each.
const READ_MIN: usize = 2;
const READ_MAX: usize = 8;

impl Matchmaker {
    /// Takes a seat in any lobby that had one when it was read: all finds would compete for the fullest.
    /// `None` where other lobbies in sight may have seats, for example because those tried were of a dead
    /// server.
    pub(super) async fn find_ahead(
        &self,
        pools: &[SearchedPool],
        seeker: &Seeker,
    ) -> Result<Option<Existing>, Error> {
        let mut order: Vec<_> = pools.iter().collect();
        let part: Vec<_> = iter::from_fn(|| self.ambient.draw(&mut order))
            .take(pools.len().div_ceil(POOLS_A_LOOK_SHARE))
            .cloned()
            .collect();
        let seats = seeker.seats().count();
        let (mut looked, mut are_others_full, mut tries) = (None::<Looked>, true, 0);
        while tries < TRIED_WHILE_BUSY_MAX {
            let now = self.ambient.now();
            let refusal = if let Some(known) = self.pools.draw_lobby(pools, seats, &self.ambient, now) {
                let Some(searched) = searched(pools, &known.lobby.pool) else { continue };
                match self.take_seen(searched, &known, seeker).await? {
                    Ok(found) => return Ok(Some(Existing::of(Some(found), false))),
                    Err(refusal) => {
                        self.pools.forget_older_lobbies(searched, now);
                        refusal
                    }
                }
            } else if let Some(shown) =
                looked.as_mut().and_then(|looked| self.ambient.draw(&mut looked.unread))
            {
                match self.take_shown(pools, &shown, seeker).await? {
                    Some(Ok(found)) => return Ok(Some(Existing::of(Some(found), false))),
                    Some(Err(refusal)) => refusal,
                    None => continue,
                }
            } else if looked.is_some() || self.pools.lacks_room(pools, seats, now) {
                break;
            } else {
                looked = Some(self.look_ahead(&part, seeker, now).await?);
                continue;
            };
            tries += 1;
            are_others_full &= refusal.is_for_want_of_seats();
        }
        let now = self.ambient.now();
        let (mut has_read_all, mut is_one_crowded) = (false, false);
        if let Some(looked) = looked {
            are_others_full &= looked.are_others_full;
            is_one_crowded = looked.is_one_crowded;
            has_read_all = looked.has_read_all && part.len() == pools.len();
            if are_others_full {
                self.pools.note_no_room(pools, seats, now);
            }
        }
        let is_enough = has_read_all || self.pools.create_early(pools, now);
        Ok((are_others_full && is_enough).then_some(Existing::None { has_more: is_one_crowded }))
    }

    /// Looks into another part of the index of each pool, and keeps some of the lobbies that it shows and
    /// that have a seat.
    async fn look_ahead(
        &self,
        pools: &[SearchedPool],
        seeker: &Seeker,
        now: Timestamp,
    ) -> Result<Looked, Error> {
        let seats = seeker.seats().count();
        let looks = pools.iter().map(|searched| self.look_at_part(searched, seats, now));
        let parts = try_join_all(looks).await?;
        let is_all = parts.iter().all(|part| part.is_all);
        let mut shown: Vec<Candidate> = parts.into_iter().flat_map(|part| part.shown).collect();
        seeker.trace().considered(shown.len(), 0);
        shown.retain(|candidate| !seeker.excludes(&candidate.lobby_id));
        shown
            .retain(|candidate| !self.bursts.was_full(&candidate.lobby_id, seats, Timestamp::default(), now));
        if seats == 1 && pools.iter().any(|searched| !searched.tag_digests.is_empty()) {
            let (has_read_all, are_others_full, is_one_crowded) = (false, true, false);
            return Ok(Looked { unread: shown, has_read_all, are_others_full, is_one_crowded });
        }
        let finds = pools.iter().map(|searched| self.pools.finds_in_a_second(searched, now)).max();
        let wanted = finds.unwrap_or(0).clamp(READ_MIN, READ_MAX);
        let drawn = (0..wanted).filter_map(|_| self.ambient.draw(&mut shown));
        let drawn: Vec<_> = drawn.map(|candidate| candidate.lobby_id).collect();
        let lobbies = self.store.lobbies(&drawn).await?;
        hints::correct(&self.store, &self.ambient, &lobbies, pools, seeker, now).await?;
        let (mut open, mut are_others_full, mut is_one_crowded) = (Vec::new(), true, false);
        for lobby in lobbies {
            let is_promised = seats > 1 && lobby.joinable_from.is_some_and(|from| from > now);
            match lobby.availability_for_find(seats, now) {
                _ if is_promised => {}
                Availability::Free(_) | Availability::TakeOver(_) if lobby.is_crowded(now) => {
                    is_one_crowded = true
                }
                Availability::Free(_) | Availability::TakeOver(_) => open.push(lobby),
                Availability::Refused(refusal) => {
                    seeker.trace().refused(Reason::of(refusal));
                    are_others_full &= refusal.is_for_want_of_seats();
                }
            }
        }
        for searched in pools {
            let here = open.extract_if(.., |lobby| lobby.pool.is_shard_of(&searched.pool)).collect();
            self.pools.keep_lobbies(searched, here, now);
        }
        let has_read_all = is_all && shown.is_empty();
        Ok(Looked { unread: Vec::new(), has_read_all, are_others_full, is_one_crowded })
    }

    /// Some candidates of a pool with the queried tags: those with exactly these first; for a party, of one
    /// shard those with room for so many `seats`.
    async fn look_at_part(&self, searched: &SearchedPool, seats: u32, now: Timestamp) -> Result<Part, Error> {
        let (pool, tags) = (&searched.pool, &searched.tag_digests);
        if seats > 1 {
            let (shard, _) = self.pools.next_look(searched, seats, &self.ambient);
            let mut shown = self.store.roomy_in_shard(pool.in_shard(shard), seats, SHOWN_MAX).await?;
            let is_all = shown.len() < SHOWN_MAX && searched.shards == 1;
            shown.retain(|candidate| candidate.tag_digests.contain(tags));
            if self.pools.fills_alone(searched, searched.party_capacity, now) {
                // Other instances have lobbies of their own, too.
                let is_shared = |room: Room| now.since(room.created_at()) >= UNSHARED_FOR;
                shown.retain(|candidate| candidate.room.is_none_or(is_shared));
            }
            return Ok(Part { shown, is_all });
        }
        if !tags.is_empty() {
            let shown = self.store.tagged_candidates(pool, tags, now, SHOWN_MAX).await?;
            return Ok(Part { shown, is_all: false });
        }
        let (shard, after) = self.pools.next_look(searched, seats, &self.ambient);
        let place = pool.in_shard(shard);
        let shown = self.store.candidates_of_shard(&place, after.as_ref(), now, SHOWN_MAX).await?;
        let next = if shown.len() < SHOWN_MAX { None } else { shown.last().cloned() };
        let is_all = after.is_none() && next.is_none() && searched.shards == 1;
        self.pools.note_shown(searched, shown.len().saturating_mul(searched.shards as usize), now);
        self.pools.note_looked_to(searched, next, now);
        Ok(Part { shown, is_all })
    }
}

/// What a look into a part of the index shows.
struct Part {
    shown: Vec<Candidate>,
    /// Whether the pool has no other candidates.
    is_all: bool,
}

/// The result of a look ahead, besides the lobbies that were kept.
struct Looked {
    /// Lobbies with the tags of a find, to be tried without reading them: before the instance's next find
    /// with these tags, others fill those that it would keep.
    unread: Vec<Candidate>,
    /// Whether the pools have no other candidates than those that were shown, and each of those was read.
    has_read_all: bool,
    /// Whether each lobby that was read and not kept, or tried, was refused only because it was full, or was
    /// crowded.
    are_others_full: bool,
    is_one_crowded: bool,
}
