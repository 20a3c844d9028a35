//! Limits that several steps of matching share.

use std::{collections::VecDeque, time::Duration};

use crate::base::{
    ambient::{Ambient, Timestamp},
    pauses::Pauses,
};

/// How long a find may try; far below the function's time-out.
pub(super) const FIND_DEADLINE: Duration = Duration::from_secs(5);
/// Rounds of looking and creating before a find gives up.
pub(super) const ROUNDS_MAX: u32 = 12;
/// Pauses after lost rounds.
const ROUND_PAUSES: Pauses =
    Pauses::doubling(Duration::from_millis(5)).up_to(Duration::from_millis(80)).jittered();

/// Candidates whose fullness is compared exactly in each pool (decision 10).
pub(super) const COMPARED_MAX: usize = 16;
/// Candidates that a find tries while the pool is busy: each costs a write, and other finds try the same.
pub(super) const TRIED_WHILE_BUSY_MAX: usize = 3;

/// Free seats of a lobby that other finds do not use up while one is on its way. A busy find enters the
/// fullest lobby with more, else any.
pub(super) const ROOMY: u32 = 16;

/// How long memory may be used (decision 17).
pub(super) const LEARNT_AGE_MAX: Duration = Duration::from_secs(1);

/// How long a lobby that an instance creates for itself is out of others' sight: as long as the instance may
/// use its memory of the lobby. A lobby that it has not filled by then comes into sight by itself.
pub(super) const UNSHARED_FOR: Duration = LEARNT_AGE_MAX;

/// Drops what happened longer ago than memory may be used, of `times` in order.
pub(super) fn drop_old(times: &mut VecDeque<Timestamp>, now: Timestamp) {
    while times.front().is_some_and(|at| now.since(*at) >= LEARNT_AGE_MAX) {
        times.pop_front();
    }
}

/// Pauses after a lost round, unless it is past `deadline`; returns whether the find has time for another.
pub(super) async fn pause_after(round: u32, deadline: Timestamp, ambient: &Ambient) -> bool {
    let has_time = ambient.now() < deadline;
    if has_time {
        ROUND_PAUSES.wait(round, ambient).await;
    }
    has_time
}
