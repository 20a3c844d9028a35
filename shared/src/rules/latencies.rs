//! Which regions a find with `latencies` searches (decision 69).

use std::time::Duration;

use crate::{
    models::{errors::Error, game::Game, ids::RegionId, latency::Latency},
    wire::{
        FindLobbyRequest,
        explanation::{ExplainedRegion, RegionOutcome},
    },
};

/// The most regions that a find with latencies searches.
const SEARCHED_MAX: usize = 4;
/// The most characters of a region's identifier that an explanation shows.
const SHOWN_CHARS_MAX: usize = 64;

/// A region to search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SearchedRegion {
    pub(super) region_id: RegionId,
    /// Its place among the regions by latency, counted from 0; equal latencies have the same.
    pub(super) distance: u32,
    /// How far its latency is above the best.
    pub(super) above_best: Duration,
}

impl SearchedRegion {
    /// A region of a find that measured nothing.
    pub(super) const fn unmeasured(region_id: RegionId) -> Self {
        Self { region_id, distance: 0, above_best: Duration::ZERO }
    }
}

/// The regions that a find with latencies searches, and what becomes of each region otherwise, both nearest
/// first. A requested mode runs in those that are `enabled`, and the request's `regions` have those that are
/// `requested`.
///
/// # Errors
/// [`Error::RegionNotEnabledForGameMode`], [`Error::NoRegionReachable`].
pub(super) fn by_latency(
    request: &FindLobbyRequest,
    game: &Game,
    is_enabled: impl Fn(&RegionId) -> bool,
    is_requested: impl Fn(&RegionId) -> bool,
) -> Result<(Vec<SearchedRegion>, Vec<ExplainedRegion>), Error> {
    let usable: Vec<_> = game.regions.keys().filter(|id| is_enabled(id) && is_requested(id)).collect();
    if usable.is_empty() {
        return Err(Error::RegionNotEnabledForGameMode);
    }
    let latency = |id: &RegionId| request.latencies.get(id.as_str()).copied().flatten();
    let mut reached: Vec<_> = usable.iter().filter_map(|id| Some((latency(id)?, *id))).collect();
    reached.sort();
    reached.truncate(SEARCHED_MAX);
    let Some((best, _)) = reached.first().copied() else {
        return Err(Error::NoRegionReachable { regions: usable.iter().map(ToString::to_string).collect() });
    };
    let mut searched: Vec<SearchedRegion> = Vec::new();
    for (latency, id) in &reached {
        let above_best = latency.above(best);
        let distance = match searched.last() {
            None => 0,
            Some(nearer) => nearer.distance + u32::from(nearer.above_best < above_best),
        };
        searched.push(SearchedRegion { region_id: (*id).clone(), distance, above_best });
    }
    let outcome = |text: &str, latency: Option<Latency>| match game.regions.get_key_value(text) {
        None => RegionOutcome::NotFound,
        Some((id, _)) if !is_enabled(id) => RegionOutcome::NotEnabled,
        Some((id, _)) if !is_requested(id) => RegionOutcome::NotRequested,
        Some(_) if latency.is_none() => RegionOutcome::Unreachable,
        Some((id, _)) if searched.iter().any(|region| region.region_id == *id) => RegionOutcome::NotNeeded,
        Some(_) => RegionOutcome::TooFar,
    };
    let measured = request.latencies.iter().map(|(text, latency)| {
        let region_id = text.chars().take(SHOWN_CHARS_MAX).collect();
        ExplainedRegion { region_id, latency: *latency, outcome: outcome(text, *latency) }
    });
    let others = usable.iter().filter(|id| !request.latencies.contains_key(id.as_str())).map(|id| {
        let outcome = RegionOutcome::NotMeasured;
        ExplainedRegion { region_id: id.to_string(), latency: None, outcome }
    });
    let mut explained: Vec<_> = measured.chain(others).collect();
    explained.sort_by_key(|region| (region.latency.is_none(), region.latency));
    Ok((searched, explained))
}
