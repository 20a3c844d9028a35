//! Finds in a pool where the instance reads lobbies ahead, because its many finds would all compete for the
//! fullest lobby (decision 19).
//!
//! Where as many players leave as come, each player who leaves shows a full lobby, and each seat taken may
//! hide it. So a find reads a few of the candidates that a look shows, as many as its instance has finds in a
//! second, and takes a seat in any. The instance keeps the others for its next finds for a second, or less
//! once one of them refused a find. The next look continues where the last one ended, so that instances
//! spread over the index.
//!
//! After three full ones, a find in a busy pool creates a lobby (decision 21). If a candidate refused it for
//! another reason than being full, the find first compares as in a quiet pool.

use crate::{
    base::ambient::Timestamp,
    matchmaking::{
        contention::Contention, limits::TRIED_WHILE_BUSY_MAX, matchmaker::Matchmaker, search::Existing,
    },
    models::{
        errors::Error,
        lobby::{Availability, Refusal},
    },
    rules::criteria::SearchedPool,
    seating::seeker::Seeker,
    wire::explanation::Reason,
};

/// Looks of one find, each into another part of the index.
const LOOKS_AHEAD_MAX: usize = 2;
/// Candidates that such a look shows: the fewer, the more finds compete for each. Half a read unit.
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
        searched: &SearchedPool,
        seeker: &Seeker,
    ) -> Result<Option<Existing>, Error> {
        let pool = &searched.pool;
        let (mut looks, mut tries, mut are_all_full) = (0, 0, true);
        let mut has_read_all = false;
        while tries < TRIED_WHILE_BUSY_MAX {
            let now = self.ambient.now();
            let Some((lobby, read_at)) = self.pools.draw_lobby(pool, &self.ambient, now) else {
                if looks == LOOKS_AHEAD_MAX {
                    break;
                }
                looks += 1;
                let looked = self.look_ahead(searched, seeker, now).await?;
                are_all_full &= looked.are_others_full;
                has_read_all = looked.has_read_all;
                if looked.is_all {
                    looks = LOOKS_AHEAD_MAX;
                }
                continue;
            };
            match self.take_seen(searched, &lobby, read_at, seeker).await? {
                Ok(found) => return Ok(Some(Existing::of(Some(found), false))),
                Err(refusal) => {
                    tries += 1;
                    are_all_full &= refusal == Refusal::Full;
                    self.pools.forget_older_lobbies(pool, now);
                }
            }
        }
        let is_enough = has_read_all || self.pools.contention(pool, self.ambient.now()) == Contention::Busy;
        Ok((are_all_full && is_enough).then_some(Existing::None { has_more: false }))
    }

    /// Looks into another part of the index, and keeps some of the lobbies that it shows and that have a
    /// seat.
    async fn look_ahead(
        &self,
        searched: &SearchedPool,
        seeker: &Seeker,
        now: Timestamp,
    ) -> Result<Looked, Error> {
        let pool = &searched.pool;
        let (shard, after) = self.pools.next_look(pool, &self.ambient, now);
        let place = pool.in_shard(shard);
        let (mut shown, shards) =
            self.store.candidates_of_shard(&place, after.as_ref(), now, SHOWN_MAX).await?;
        let is_beginning = shard == 0 && after.is_none();
        if is_beginning {
            self.pools.note_shards(pool, shards, shown.len(), now);
        }
        let next = if shown.len() < SHOWN_MAX { None } else { shown.last().cloned() };
        let is_all = is_beginning && next.is_none() && shards == 1;
        seeker.trace().considered(shown.len(), 0);
        self.pools.note_shown(pool, shown.len(), next, now);
        shown.retain(|candidate| !self.bursts.was_full(&candidate.lobby_id, Timestamp::default(), now));
        let wanted = self.pools.finds_in_a_second(pool, now).clamp(READ_MIN, READ_MAX);
        let drawn = (0..wanted).filter_map(|_| self.ambient.draw(&mut shown));
        let drawn: Vec<_> = drawn.map(|candidate| candidate.lobby_id).collect();
        let lobbies = self.store.lobbies(&drawn).await?;
        self.correct_hints(&lobbies, std::slice::from_ref(searched), now).await?;
        let (mut open, mut are_others_full) = (Vec::new(), true);
        for lobby in lobbies {
            match lobby.availability_for_find(now) {
                Availability::Free | Availability::TakeOver(_) => open.push(lobby),
                Availability::Refused(refusal) => {
                    seeker.trace().refused(Reason::of(refusal));
                    are_others_full &= refusal == Refusal::Full;
                }
            }
        }
        self.pools.keep_lobbies(pool, open, now);
        Ok(Looked { is_all, has_read_all: is_all && shown.is_empty(), are_others_full })
    }
}

/// The result of a look ahead, besides the lobbies that were kept.
struct Looked {
    /// Whether the pool has no other candidates than those that were shown.
    is_all: bool,
    /// Whether each of those was also read.
    has_read_all: bool,
    /// Whether each lobby that was read and not kept was refused only because it was full.
    are_others_full: bool,
}
