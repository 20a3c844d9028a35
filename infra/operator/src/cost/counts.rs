//! What the console and `muster doctor` show of AWS's own counts.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use muster_console::{
    host::{AwsCounts, Counted, FindsByMinute, RefusalCount},
    tape::Finds,
};
use shared::{
    base::ambient::{Ambient, Timestamp},
    function::metrics::Metric as Own,
};
use tokio::sync::OnceCell;

use super::{
    cloudwatch::{CloudWatch, Metric},
    command::spent,
    reading::{metric, namespace_of, resources, so_far},
};
use crate::{
    error::CommandError,
    target::{Described, Target},
};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);
/// The function whose requests are finds, in the template.
const FUNCTION: &str = "FindLobbyFunction";

/// The log group of all functions, in the template.
const LOGS: &str = "FunctionLogs";
/// Refusals and failures by operation and code, the most frequent first, as the saved query `refusals` has
/// them, with two requests to look at.
const REFUSALS: &str = "filter ispresent(code) \
    | stats count(*) as requests, earliest(span.request.id) as first, latest(span.request.id) as last \
      by span.operation, code \
    | sort requests desc | limit 100";

/// The counts of the stack in AWS.
///
/// # Errors
/// [`CommandError::Target`] when it cannot be described.
pub(crate) async fn of(target: &Target) -> Result<AwsCounts, CommandError> {
    let stack = Arc::new(target.described().await?);
    let (of_size, of_refusals) = (Arc::clone(&stack), Arc::clone(&stack));
    let (of_finds, function) = (Arc::clone(&stack), Arc::new(OnceCell::new()));
    Ok(AwsCounts {
        finds: Arc::new(move |since| {
            let (stack, function) = (Arc::clone(&of_finds), Arc::clone(&function));
            Box::pin(async move {
                match function.get_or_try_init(|| part(&stack, FUNCTION)).await {
                    Ok(function) => finds(&stack, function, since).await,
                    Err(problem) => Counted { counts: Err(problem), metrics: 0 },
                }
            })
        }),
        log_bytes: Arc::new(move |since| {
            let stack = Arc::clone(&of_size);
            Box::pin(async move { log_bytes(&stack, since).await })
        }),
        refusals: Arc::new(move |since| {
            let stack = Arc::clone(&of_refusals);
            Box::pin(async move { refusals(&stack, since).await })
        }),
        bill: Arc::new(move || {
            let stack = Arc::clone(&stack);
            Box::pin(async move {
                match so_far(&stack, Ambient::system().now()).await {
                    Ok(so_far) => Counted { metrics: so_far.metrics, counts: Ok(spent(&so_far).json) },
                    Err(error) => Counted { counts: Err(error.to_string()), metrics: 0 },
                }
            })
        }),
    })
}

/// The finds, joins and creations of the last hour that were refused because their IP address held as many
/// seats as it may.
///
/// # Errors
/// Why they cannot be read.
pub(crate) async fn refused_by_address(stack: &Described) -> Result<u64, String> {
    let now = Ambient::system().now();
    let own = |operation| {
        metric(&namespace_of(stack), Own::TooManyPlayersFromSource.name(), "operation", operation)
    };
    let metrics = ["find-lobby", "join-lobby", "create-lobby"].map(own);
    let sums = CloudWatch::new(&stack.config, now).sums(&metrics, now.before(HOUR), MINUTE).await?;
    Ok(sums.into_iter().flatten().sum::<f64>() as u64)
}

/// The name of a part of the stack.
async fn part(stack: &Described, logical: &str) -> Result<String, String> {
    let found = resources(stack).await?;
    let part = found.iter().find(|resource| resource.logical_resource_id() == Some(logical));
    let name = part.and_then(|resource| resource.physical_resource_id());
    name.map(ToOwned::to_owned).ok_or_else(|| format!("the stack has no {logical}"))
}

/// The bytes that all functions have logged since then: a query of their group scans them.
async fn log_bytes(stack: &Described, since: Timestamp) -> Counted<f64> {
    let cloudwatch = CloudWatch::new(&stack.config, Ambient::system().now());
    let counts = async {
        let group = part(stack, LOGS).await?;
        let metric = metric("AWS/Logs", "IncomingBytes", "LogGroupName", &group);
        let sums = cloudwatch.sums(&[metric], since, MINUTE).await?;
        Ok(sums.into_iter().flatten().sum())
    };
    Counted { counts: counts.await, metrics: cloudwatch.metrics() }
}

/// The refusals since then, out of the logs.
async fn refusals(stack: &Described, since: Timestamp) -> Result<Vec<RefusalCount>, String> {
    let cloudwatch = CloudWatch::new(&stack.config, Ambient::system().now());
    let rows = cloudwatch.query(&part(stack, LOGS).await?, REFUSALS, since).await?;
    Ok(rows.into_iter().map(refusal).collect())
}

fn refusal(mut row: BTreeMap<String, String>) -> RefusalCount {
    let mut field = |name: &str| row.remove(name).unwrap_or_default();
    let (operation, code) = (field("span.operation"), field("code"));
    let requests = field("requests").parse().unwrap_or_default();
    let mut examples = vec![field("first"), field("last")];
    examples.dedup();
    examples.retain(|id| !id.is_empty());
    RefusalCount { operation, code, requests, examples }
}

/// The finds of each minute since then: Lambda counts them and those that crash, Muster those that get a seat
/// and those that fail. The rest was refused.
async fn finds(stack: &Described, function: &str, since: Timestamp) -> Counted<FindsByMinute> {
    let cloudwatch = CloudWatch::new(&stack.config, Ambient::system().now());
    let of_lambda = |name| metric("AWS/Lambda", name, "FunctionName", function);
    let own = |own: Own| metric(&namespace_of(stack), own.name(), "operation", "find-lobby");
    let metrics: [Metric; 5] = [
        of_lambda("Invocations"),
        of_lambda("Errors"),
        own(Own::OperationFailed),
        own(Own::LobbyFound),
        own(Own::LobbyCreated),
    ];
    let counts = cloudwatch.series(&metrics, since, MINUTE).await.map(|series| {
        let mut minutes: BTreeMap<Timestamp, [u32; 5]> = BTreeMap::new();
        for (place, sums) in series.into_iter().enumerate() {
            for (at, sum) in sums {
                if let Some(count) = minutes.entry(at).or_default().get_mut(place) {
                    *count += sum as u32;
                }
            }
        }
        minutes.into_iter().map(|(at, counts)| (at, by_outcome(counts))).collect()
    });
    Counted { counts, metrics: cloudwatch.metrics() }
}

/// The finds of a minute by outcome, of its counts in the order of the metrics.
const fn by_outcome([requests, crashed, failed, found, created]: [u32; 5]) -> Finds {
    let (failed, seated) = (crashed + failed, found + created);
    Finds { seated, refused: requests.saturating_sub(failed + seated), failed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_that_neither_failed_nor_got_a_seat_were_refused() {
        assert_eq!(by_outcome([10, 1, 2, 3, 1]), Finds { seated: 4, refused: 3, failed: 3 });
        assert_eq!(by_outcome([0, 0, 0, 2, 0]), Finds { seated: 2, refused: 0, failed: 0 }, "counted late");
    }
}
