//! Figures that AWS counts for a deployment whose requests the console does not see.

use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};
use shared::base::ambient::Timestamp;
use tokio::sync::Mutex;

use crate::{
    host::{AwsCounts, Counted, FindsByMinute, Host, Refusal},
    prices::{LOG_GB_SCANNED, METRIC_READS},
    queries::Lately,
    tape::Finds,
    watch::Watches,
};

/// AWS counts by the minute.
const MINUTE: Duration = Duration::from_secs(60);
/// The minutes of a curve.
const MINUTES: u32 = 10;
/// After how long every count of a minute has come.
const DELAY: Duration = Duration::from_secs(60);

/// A day: a longer search is one for the CloudWatch console.
const SEARCHED_MINUTES_MAX: u32 = 24 * 60;
const GB: f64 = 1e9;

/// The counts of one deployment, and the last that was read of them.
pub struct Counts {
    aws: AwsCounts,
    /// The finds, and in which minute they were read.
    finds: Mutex<(u64, Result<FindsByMinute, String>)>,
}

#[derive(Serialize)]
struct Minute {
    at: Timestamp,
    finds: Finds,
}

impl Counts {
    /// Nothing has been read yet.
    pub fn of(host: &Host) -> Option<Self> {
        let aws = host.counts.clone()?;
        Some(Self { aws, finds: Mutex::new((0, Ok(FindsByMinute::new()))) })
    }

    /// The finds of the last ten minutes, oldest first, of all namespaces. They are read once a minute, for
    /// any number of pages.
    pub async fn finds(&self, now: Timestamp, watches: &Watches) -> Result<Value, Refusal> {
        let end = Timestamp(minute(now.before(DELAY)));
        let mut last = self.finds.lock().await;
        if last.0 != minute(now) {
            let Counted { counts, metrics } = (self.aws.finds)(end.before(MINUTE * MINUTES)).await;
            watches.spend_metrics(metrics);
            *last = (minute(now), counts);
        }
        let found = last.1.clone()?;
        drop(last);
        // CloudWatch has no value of a minute in which nothing was counted.
        let minutes = (1..=MINUTES).rev().map(|ago| {
            let at = end.before(MINUTE * ago);
            Minute { at, finds: found.get(&at).copied().unwrap_or_default() }
        });
        Ok(json!({ "now": now, "minutes": minutes.collect::<Vec<_>>() }))
    }

    /// The cost of searching the logs for refusals, by the bytes that CloudWatch ingested since then.
    pub async fn refusals_price(
        &self,
        now: Timestamp,
        lately: &Lately,
        watches: &Watches,
    ) -> Result<Value, Refusal> {
        let Counted { counts, metrics } = (self.aws.log_bytes)(began(now, lately)?).await;
        watches.spend_metrics(metrics);
        let bytes = counts?;
        Ok(json!({ "bytes": bytes, "dollars": LOG_GB_SCANNED.of(bytes / GB) }))
    }

    /// The refusals of all namespaces by operation and code, read from the logs. Costs
    /// [`Counts::refusals_price`].
    pub async fn refusals(&self, now: Timestamp, lately: &Lately) -> Result<Value, Refusal> {
        let refusals = (self.aws.refusals)(began(now, lately)?).await?;
        Ok(json!({ "now": now, "refusals": refusals }))
    }

    /// The cost of this month so far, and the cost of reading it.
    pub async fn bill(&self, now: Timestamp) -> Result<Value, Refusal> {
        let Counted { counts, metrics } = (self.aws.bill)().await;
        let dollars = METRIC_READS.of(metrics as f64);
        Ok(json!({ "now": now, "bill": counts?, "metrics": metrics, "dollars": dollars }))
    }
}

/// When the time began that is searched, at most a day ago.
fn began(now: Timestamp, Lately { minutes }: &Lately) -> Result<Timestamp, Refusal> {
    if !(1..=SEARCHED_MINUTES_MAX).contains(minutes) {
        return Err(format!("a search looks at 1 to {SEARCHED_MINUTES_MAX} minutes").into());
    }
    Ok(now.before(MINUTE * *minutes))
}

/// The beginning of the minute that `at` lies in, in milliseconds.
const fn minute(at: Timestamp) -> u64 {
    let minute = MINUTE.as_millis() as u64;
    at.0 / minute * minute
}
