//! Growing pauses between tries.

use std::time::Duration;

use crate::base::ambient::Ambient;

/// How long to wait between tries.
#[derive(Clone, Copy, Debug)]
pub struct Pauses {
    first: Duration,
    factor: u32,
    longest: Duration,
    is_jittered: bool,
}

impl Pauses {
    /// Pauses that double from `first` on.
    #[must_use]
    pub const fn doubling(first: Duration) -> Self {
        Self { first, factor: 2, longest: Duration::MAX, is_jittered: false }
    }

    /// Pauses that triple from `first` on.
    #[must_use]
    pub const fn tripling(first: Duration) -> Self {
        Self { factor: 3, ..Self::doubling(first) }
    }

    /// The same pauses, none longer than `longest`.
    #[must_use]
    pub const fn up_to(self, longest: Duration) -> Self {
        Self { longest, ..self }
    }

    /// The same pauses, each shortened by up to half at random, so that losers of one race do not compete
    /// again in the next.
    #[must_use]
    pub const fn jittered(self) -> Self {
        Self { is_jittered: true, ..self }
    }

    /// The `n`-th pause, counted from 0, without its jitter.
    #[must_use]
    pub fn nth(self, n: u32) -> Duration {
        self.first.saturating_mul(self.factor.saturating_pow(n)).min(self.longest)
    }

    /// Sleeps for the `n`-th pause.
    pub async fn wait(self, n: u32, ambient: &Ambient) {
        let pause = self.nth(n);
        ambient.sleep(if self.is_jittered { ambient.jittered(pause) } else { pause }).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_the_longest() {
        let millis = |pauses: Pauses| [0, 1, 2, 3, 99].map(|n| pauses.nth(n).as_millis());
        let pauses = Pauses::doubling(Duration::from_millis(5)).up_to(Duration::from_millis(30));
        assert_eq!(millis(pauses), [5, 10, 20, 30, 30]);
        let pauses = Pauses::tripling(Duration::from_millis(100)).up_to(Duration::from_secs(3));
        assert_eq!(millis(pauses), [100, 300, 900, 2_700, 3_000]);
    }
}
