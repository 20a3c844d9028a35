//! Counts calls of DynamoDB and the units that it charges, for benchmarks and cost reports.

use std::sync::{Arc, Mutex, PoisonError};

use aws_sdk_dynamodb::types::{ConsumedCapacity, ReturnConsumedCapacity};

use crate::base::usage::Usage;

tokio::task_local! {
    /// Counts the calls of one task, in addition to the store's own meter.
    static OF_TASK: Meter;
}

/// The output of `work`, and its usage of the store. Metered work within metered work counts for both.
pub async fn metered<F: Future>(work: F) -> (F::Output, Usage) {
    let meter = Meter::on();
    let output = OF_TASK.scope(meter.clone(), work).await;
    let usage = meter.usage();
    let _is_outermost = OF_TASK.try_with(|outer| outer.add(usage));
    (output, usage)
}

/// Counts usage, shared by its clones. Turned off, it costs nothing and requests no figures of DynamoDB.
#[derive(Clone, Debug, Default)]
pub struct Meter(Option<Arc<Mutex<Usage>>>);

impl Meter {
    /// A meter that counts nothing.
    #[must_use]
    pub const fn off() -> Self {
        Self(None)
    }

    /// A meter at zero.
    #[must_use]
    pub fn on() -> Self {
        Self(Some(Arc::default()))
    }

    /// The usage so far.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.0
            .as_ref()
            .map_or_else(Usage::default, |usage| *usage.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn mode(&self) -> ReturnConsumedCapacity {
        let is_wanted = self.0.is_some() || OF_TASK.try_with(|_| ()).is_ok();
        if is_wanted { ReturnConsumedCapacity::Total } else { ReturnConsumedCapacity::None }
    }

    /// Counts a read call by DynamoDB's own figures.
    pub(super) fn read<'a>(&self, consumed: impl IntoIterator<Item = &'a ConsumedCapacity>) {
        self.count(sum(consumed), 0.0);
    }

    /// Counts a write call by DynamoDB's own figures.
    pub(super) fn wrote<'a>(&self, consumed: impl IntoIterator<Item = &'a ConsumedCapacity>) {
        self.count(0.0, sum(consumed));
    }

    /// Counts a write call that was refused. DynamoDB charges it by the item's size but does not report it:
    /// `units` is one for a write and two for each item of a transaction, exact for items up to 1 KB.
    pub(super) fn refused(&self, units: f64) {
        self.count(0.0, units);
    }

    fn count(&self, read_units: f64, write_units: f64) {
        let call = Usage { calls: 1, read_units, write_units };
        self.add(call);
        let _no_meter = OF_TASK.try_with(|meter| meter.add(call));
    }

    fn add(&self, used: Usage) {
        if let Some(usage) = &self.0 {
            let mut usage = usage.lock().unwrap_or_else(PoisonError::into_inner);
            *usage = *usage + used;
        }
    }
}

fn sum<'a>(consumed: impl IntoIterator<Item = &'a ConsumedCapacity>) -> f64 {
    consumed.into_iter().filter_map(ConsumedCapacity::capacity_units).sum()
}
