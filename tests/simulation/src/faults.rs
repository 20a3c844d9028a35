//! The faults of a run and how often they occur. Each run has some kinds of fault and lacks others.

use super::{chance::Chance, history::Staleness};
use model::conditions::Write;

/// How a call fares on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// It arrives, and so does its answer.
    None,
    /// It never arrives, and gets no response.
    Request,
    /// It takes effect, and gets no response.
    Answer,
    /// It is carried out, and the connection breaks.
    Broken,
}

/// Why the database refuses a call that is in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Too many of them.
    Throttled,
    /// Another transaction is under way.
    Conflict,
    /// A copy of the same transaction is.
    InProgress,
    /// Its own fault.
    Internal,
}

/// How one call fares.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fate {
    pub(crate) out_ms: u64,
    pub(crate) back_ms: u64,
    pub(crate) loss: Loss,
    pub(crate) refusal: Option<Refusal>,
    /// Delay until a second copy of the call arrives, if it has one and the first was carried out.
    pub(crate) again_ms: Option<u64>,
    /// How long its whole operation is suspended before the call is sent.
    pub(crate) suspended_ms: u64,
}

/// Crashes per thousand operations, in runs whose bias needs conflicting retries of a request.
const CRASHES: u64 = 150;
/// Writes per thousand that arrive again seconds later, in such runs.
const LATE: u64 = 100;
/// Slow calls per thousand, in such runs.
const SLOW: u64 = 40;
/// How long an operation is suspended, in milliseconds: about as long as a retry treats it as still running.
const SUSPENDED_MS: std::ops::RangeInclusive<u64> = 12_000..=20_000;
/// Stale reads per thousand, in runs whose bias depends on what was read.
const STALE: u64 = 300;
/// Maximum staleness of those reads, in milliseconds.
const STALE_MS: u64 = 1_000;
/// Maximum delay of a slow call in such runs, in milliseconds.
const SLOW_MS: u64 = 6_000;

/// Whether a condition of `write` matters only where retries of a request conflict with each other.
pub(crate) const fn is_of_repetitions(write: Write) -> bool {
    matches!(
        write,
        Write::AimRun
            | Write::KeepAnswer
            | Write::ReleaseRun
            | Write::ForgetRun
            | Write::WaitForRun
            | Write::PointHold
    )
}

/// Kinds of fault with their frequencies per thousand calls or operations.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    slow: u64,
    slow_ms: u64,
    lost: u64,
    lost_answer: u64,
    broken: u64,
    throttled: u64,
    internal: u64,
    conflict: u64,
    again: u64,
    late: u64,
    long_lag: u64,
    stale_read: u64,
    stale_read_ms: u64,
    unprocessed: u64,
    short_page: u64,
    pub(crate) shows_twice: bool,
    pub(crate) crash: u64,
    pub(crate) forget: u64,
    pub(crate) asked_twice: u64,
    pub(crate) lag_ms: u64,
    /// How long a transaction occupies its items.
    hold_ms: u64,
    /// The writes under suspicion: they are often delayed and delivered twice.
    pub(crate) suspects: Vec<Write>,
    /// Whether operations are suspended before those writes, for longer than a retry waits.
    suspends: bool,
}

impl Faults {
    /// Nothing goes wrong, and indexes follow at once.
    pub(crate) fn none() -> Self {
        Self { hold_ms: 4, ..Self::default() }
    }

    /// The faults of a run.
    pub(crate) fn drawn(chance: &mut Chance) -> Self {
        let level = chance.weighted(&[(0, 1), (1, 4), (3, 3)]);
        let mut often =
            |most: u64| if level > 0 && chance.one_in(2) { chance.range(1..=most * level) } else { 0 };
        Self {
            slow: often(20),
            lost: often(6),
            lost_answer: often(8),
            broken: often(8),
            throttled: often(8),
            internal: often(4),
            conflict: often(15),
            again: often(20),
            late: often(25),
            long_lag: often(60),
            stale_read: often(100),
            unprocessed: often(15),
            short_page: often(30),
            crash: often(20),
            forget: often(15),
            asked_twice: often(40),
            slow_ms: chance.weighted(&[(60, 2), (900, 2), (6_000, 1)]),
            stale_read_ms: chance.weighted(&[(30, 3), (300, 1), (1_000, 1)]),
            shows_twice: chance.one_in(3),
            lag_ms: chance.weighted(&[(0, 1), (12, 2), (30, 3), (300, 1)]),
            hold_ms: chance.range(2..=14),
            suspects: Vec::new(),
            suspends: false,
        }
    }

    /// The same, for a run that tries to make `bias` fail: the write is slow and delivered late. If it
    /// depends on earlier reads, they may be stale. If it depends on retries of one request, requests crash
    /// or are suspended, and all calls are slow and late.
    pub(crate) fn with_bias(self, bias: Option<Write>) -> Self {
        // A lobby that never became ready may be about to.
        let crossing = match bias {
            Some(Write::End) => Some(Write::Ready),
            // Nor is a server empty that something is about to be placed on.
            Some(Write::HideServer) => Some(Write::TakePlace),
            _ => None,
        };
        let suspects = bias.into_iter().chain(crossing).collect();
        let suspected = match bias {
            // What these overlook is itself long on its way, or not yet to be read.
            Some(Write::End | Write::HideSilent) => Self { suspects, slow: self.slow.max(SLOW), ..self },
            Some(Write::HideServer) => Self {
                suspects,
                slow: self.slow.max(SLOW),
                stale_read: self.stale_read.max(STALE),
                stale_read_ms: STALE_MS,
                ..self
            },
            _ => Self { suspects, ..self },
        };
        if !bias.is_some_and(is_of_repetitions) {
            return suspected;
        }
        Self {
            crash: suspected.crash.max(CRASHES),
            late: suspected.late.max(LATE),
            slow: suspected.slow.max(SLOW),
            slow_ms: SLOW_MS,
            suspends: bias == Some(Write::KeepAnswer),
            ..suspected
        }
    }

    /// Draws how a call fares: whether it is a write, and whether it is the write under suspicion.
    pub(crate) fn fate(&self, is_write: bool, is_suspect: bool, chance: &mut Chance) -> Fate {
        let fate = self.usual_fate(is_write, chance);
        if !is_suspect {
            return fate;
        }
        let out_ms = if chance.one_in(2) {
            // Longer than a second, and its sender sends it again beside it.
            let most = chance.weighted(&[(30, 2), (300, 2), (900, 2), (4_000, 1)]);
            chance.range(5..=most)
        } else {
            fate.out_ms
        };
        let again_ms = if chance.one_in(6) { Some(chance.range(20..=8_000)) } else { fate.again_ms };
        let suspended_ms =
            if self.suspends && chance.one_in(6) { chance.range(SUSPENDED_MS) } else { fate.suspended_ms };
        Fate { out_ms, again_ms, suspended_ms, ..fate }
    }

    fn usual_fate(&self, is_write: bool, chance: &mut Chance) -> Fate {
        let way = |chance: &mut Chance| {
            if chance.permille(self.slow) { chance.range(5..=self.slow_ms) } else { chance.range(2..=5) }
        };
        let (out_ms, back_ms) = (way(chance), way(chance));
        let loss = if chance.permille(self.lost) {
            Loss::Request
        } else if chance.permille(self.lost_answer) {
            Loss::Answer
        } else if chance.permille(self.broken) {
            Loss::Broken
        } else {
            Loss::None
        };
        let refusal = if chance.permille(self.throttled) {
            Some(Refusal::Throttled)
        } else if chance.permille(self.internal) {
            Some(Refusal::Internal)
        } else {
            (is_write && chance.permille(self.conflict)).then_some(Refusal::Conflict)
        };
        let again_ms = if is_write && chance.permille(self.again) {
            Some(chance.range(1..=40))
        } else {
            (is_write && chance.permille(self.late)).then(|| chance.range(100..=8_000))
        };
        Fate { out_ms, back_ms, loss, refusal, again_ms, suspended_ms: 0 }
    }

    /// Delay until an index shows a write: never more than the product allows for.
    pub(crate) fn lag(&self, chance: &mut Chance) -> u64 {
        if chance.permille(self.long_lag) {
            chance.range(self.lag_ms..=1_900)
        } else {
            chance.range(0..=self.lag_ms)
        }
    }

    pub(crate) fn hold_ms(&self, chance: &mut Chance) -> u64 {
        chance.range(1..=self.hold_ms)
    }

    pub(crate) fn staleness(&self, chance: &mut Chance) -> Staleness {
        Staleness {
            read_ms: if chance.permille(self.stale_read) { chance.range(1..=self.stale_read_ms) } else { 0 },
            shows_twice: self.shows_twice,
            page: chance.permille(self.short_page).then(|| 1 + chance.below(2)),
        }
    }

    /// Whether a batch is left undone in part.
    pub(crate) fn leaves_unprocessed(&self, chance: &mut Chance) -> bool {
        chance.permille(self.unprocessed)
    }
}
