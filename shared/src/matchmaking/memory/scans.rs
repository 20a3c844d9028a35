//! Scans for tags: all candidates of a pool, read to find those with the queried tags.

use std::collections::VecDeque;

use crate::{
    base::{ambient::Timestamp, cache::BoundedMap},
    matchmaking::{
        contention::Contention,
        limits::{LEARNT_AGE_MAX, drop_old},
    },
    models::pool::Pool,
    rules::criteria::SearchedPool,
    store::lobbies::Candidate,
};

/// What an instance knows of scans, whatever the tags that they were for.
#[derive(Debug, Default)]
pub(in crate::matchmaking) struct Scans {
    pools: BoundedMap<Pool, KnownScans>,
}

#[derive(Debug, Default)]
struct KnownScans {
    last: Option<Scan>,
    /// When scans were wanted.
    wanted_at: VecDeque<Timestamp>,
}

/// All candidates of a pool, whatever their tags.
#[derive(Debug)]
struct Scan {
    at: Timestamp,
    /// Until when it shows lobbies that come into sight.
    sight: Timestamp,
    /// Whether a find was refused after it.
    is_in_vain: bool,
    candidates: Vec<Candidate>,
    /// Whether the pool has more.
    has_more: bool,
}

impl Scans {
    /// What a scan of a pool for tags showed less than a second ago as far ahead as `sight`, if this instance
    /// makes many or that one was in vain: those with the queried tags, how many others, and whether the pool
    /// has more.
    pub(in crate::matchmaking) fn shown(
        &self,
        searched: &SearchedPool,
        sight: Timestamp,
        now: Timestamp,
    ) -> Option<(Vec<Candidate>, usize, bool)> {
        let shown = |known: &mut KnownScans| {
            drop_old(&mut known.wanted_at, now);
            known.wanted_at.push_back(now);
            let scan = known.last.as_ref().filter(|scan| now.since(scan.at) < LEARNT_AGE_MAX)?;
            let is_loaded = Contention::of(known.wanted_at.len(), false) >= Contention::Loaded;
            if !(is_loaded || scan.is_in_vain) || scan.sight.since(scan.at) < sight.since(now) {
                return None;
            }
            let fits = |candidate: &&Candidate| candidate.tag_digests.contain(&searched.tag_digests);
            let fitting: Vec<_> = scan.candidates.iter().filter(fits).cloned().collect();
            let mismatched = scan.candidates.len() - fitting.len();
            Some((fitting, mismatched, scan.has_more))
        };
        self.pools.with_new(searched.pool.clone(), now, shown)
    }

    /// Notes what such a scan showed.
    pub(in crate::matchmaking) fn note(
        &self,
        searched: &SearchedPool,
        candidates: &[Candidate],
        has_more: bool,
        sight: Timestamp,
        now: Timestamp,
    ) {
        let scan = Scan { at: now, sight, is_in_vain: false, candidates: candidates.to_vec(), has_more };
        self.pools.with(&searched.pool, |known| known.last = Some(scan));
    }

    /// Notes that a find in `pools` was refused after it looked.
    pub(in crate::matchmaking) fn note_in_vain(&self, pools: &[SearchedPool]) {
        for searched in pools {
            self.pools.with(&searched.pool, |known| {
                known.last.iter_mut().for_each(|scan| scan.is_in_vain = true);
            });
        }
    }
}
