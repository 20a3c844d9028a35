//! Finds in a busy pool, whose finds would all meet at its fullest lobby.

use super::{Claimed, Found, Matchmaker, Search, TRIED_WHILE_BUSY_MAX};
use crate::{
    ambient::Timestamp,
    errors::Error,
    lobby::Refusal,
    rules::criteria::{Criteria, SearchedPool},
    seating::Seeker,
    store::lobbies::Candidate,
};

/// Looks that a find makes for the candidates that it tries, each into another part of the index.
const LOOKS_WHILE_BUSY_MAX: usize = 2;
/// Candidates that such a look reads, one of which is drawn: the fewer, the more finds meet at one of them. One read unit.
const DRAWN_FROM_MAX: usize = 40;

impl Matchmaker {
    /// What is searched when it is one busy pool, in which a find may create when it is refused.
    pub(super) fn search_while_busy<'a>(
        &self,
        search: &'a Search,
        now: Timestamp,
    ) -> Option<&'a SearchedPool> {
        let Criteria { pools, tags, .. } = &search.criteria;
        let [searched] = pools.as_slice() else { return None };
        let is_any_welcome = search.may_create && tags.is_empty();
        // Finds of one process share what it knows: they need not keep out of each other's way.
        let is_busy =
            self.recall.has_one_find_at_a_time(&searched.pool) && self.recall.is_busy(&searched.pool, now);
        (is_any_welcome && is_busy).then_some(searched)
    }

    /// Takes a seat in any lobby of a busy pool that had one a moment ago: the fullest is where all would meet.
    ///
    /// What a look showed is kept for the next finds of this instance, as long as it is true.
    pub(super) async fn take_any(
        &self,
        search: &Search,
        searched: &SearchedPool,
        seeker: &Seeker,
    ) -> Result<Option<Found>, Error> {
        let pool = &searched.pool;
        let (mut looks, mut tries, mut are_all_full) = (0, 0, true);
        while tries < TRIED_WHILE_BUSY_MAX {
            let now = self.ambient.now();
            let Some(candidate) = self.recall.draw_candidate(pool, &self.ambient, now) else {
                if looks == LOOKS_WHILE_BUSY_MAX {
                    break;
                }
                looks += 1;
                let (shard, after) = self.recall.next_look(pool, &self.ambient, now);
                let place = pool.in_shard(shard);
                let (seen, shards) =
                    self.store.candidates_of_shard(&place, after.as_ref(), now, DRAWN_FROM_MAX).await?;
                if shard == 0 && after.is_none() {
                    self.recall.note_shards(pool, shards, seen.len(), now);
                }
                let next = if seen.len() < DRAWN_FROM_MAX { None } else { seen.last().cloned() };
                if shard == 0 && after.is_none() && next.is_none() && shards == 1 {
                    // That was all.
                    looks = LOOKS_WHILE_BUSY_MAX;
                }
                seeker.trace().considered(seen.len(), 0);
                self.recall.remember_candidates(pool, seen, next, now);
                continue;
            };
            let Candidate { lobby_id, pool: place, .. } = candidate;
            let hiding = self.recall.hiding(&place, &lobby_id, now);
            let claimed = Claimed { pool: &place, lobby_id, hiding };
            match self.take(searched, claimed, seeker).await? {
                Ok(found) => return Ok(Some(found)),
                Err(refusal) => {
                    tries += 1;
                    are_all_full &= refusal == Refusal::Full;
                    self.recall.note_lost_seat(pool, now);
                    if looks == 0 {
                        self.recall.forget_candidates(pool);
                    }
                }
            }
        }
        // Others that are there for all to see may have seats, where those tried were of a dead server, for one.
        Ok(if are_all_full { None } else { self.take_existing(search, seeker, self.ambient.now()).await? })
    }
}
