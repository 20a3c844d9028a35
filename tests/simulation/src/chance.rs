//! Choices that are a function of a seed.

use std::ops::RangeInclusive;

/// A source of choices.
#[derive(Clone, Debug)]
pub(crate) struct Chance(fastrand::Rng);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    /// A separate source: draws from it do not affect this one.
    pub(crate) fn fork(&mut self) -> Self {
        Self(self.0.fork())
    }

    pub(crate) fn range(&mut self, range: RangeInclusive<u64>) -> u64 {
        self.0.u64(range)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0.usize(..bound)
    }

    /// Whether something of `permille` in a thousand happens.
    pub(crate) fn permille(&mut self, permille: u64) -> bool {
        self.0.u64(..1_000) < permille
    }

    pub(crate) fn one_in(&mut self, count: u64) -> bool {
        self.0.u64(..count) == 0
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        if from.is_empty() { None } else { from.get(self.0.usize(..from.len())) }
    }

    /// One of `weighted`, each as often as it weighs.
    pub(crate) fn weighted<T: Copy>(&mut self, weighted: &[(T, u64)]) -> T {
        let sum: u64 = weighted.iter().map(|(_, weight)| weight).sum();
        let mut drawn = self.0.u64(..sum);
        for (choice, weight) in weighted {
            if drawn < *weight {
                return *choice;
            }
            drawn -= weight;
        }
        unreachable!("the draw lies below the sum")
    }

    pub(crate) fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill(bytes);
    }
}
