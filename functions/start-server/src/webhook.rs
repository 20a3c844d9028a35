//! The starter `webhook`: a studio's backend starts and ends the servers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use shared::{
    hosting::launching::{NotStarted, Order},
    models::{
        ids::{NamespaceId, RegionId, ServerId},
        starter::SigningSecret,
    },
    outside::{
        web_client::NoAnswer,
        webhook::{Received, Webhooks},
    },
};

/// Longest handle that is kept, in bytes.
const HANDLE_BYTES_MAX: usize = 512;
/// The characters of a refusal's body that become a part of the reason.
const WORDS_MAX: usize = 80;

/// The body of a request: the same bytes at every delivery.
#[derive(Serialize)]
struct Body<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    namespace_id: &'a NamespaceId,
    region_id: &'a RegionId,
    server_id: &'a ServerId,
    start_id: &'a str,
    build: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    environment: Option<&'a BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    handle: Option<&'a str>,
}

/// What a receiver may answer.
#[derive(Deserialize)]
struct Accepted {
    #[serde(default)]
    handle: Option<String>,
}

/// Where a region's requests go, and what signs them.
type Target<'a> = (&'a str, &'a [SigningSecret]);

pub(crate) async fn start(
    webhooks: &Webhooks,
    target: Target<'_>,
    order: &Order,
) -> Result<String, NotStarted> {
    let received = send(webhooks, target, order, "start").await?;
    if !is_accepted(&received) {
        return Err(refusal(&received));
    }
    let accepted = serde_json::from_slice::<Accepted>(&received.body).ok();
    let handle = accepted.and_then(|accepted| accepted.handle).filter(|handle| !handle.is_empty());
    let handle = handle.filter(|handle| handle.len() <= HANDLE_BYTES_MAX);
    Ok(handle.unwrap_or_else(|| order.start_id.as_str().to_owned()))
}

pub(crate) async fn end(webhooks: &Webhooks, target: Target<'_>, order: &Order) -> Result<(), NotStarted> {
    let received = send(webhooks, target, order, "stop").await?;
    match received.status {
        // It is not there any more, or never was.
        404 | 410 => Ok(()),
        _ if is_accepted(&received) => Ok(()),
        _ => Err(refusal(&received)),
    }
}

async fn send(
    webhooks: &Webhooks,
    (url, secrets): Target<'_>,
    order: &Order,
    what: &'static str,
) -> Result<Received, NotStarted> {
    let is_start = what == "start";
    let body = Body {
        kind: if is_start { "server.start" } else { "server.stop" },
        namespace_id: &order.namespace_id,
        region_id: &order.region_id,
        server_id: &order.server_id,
        start_id: order.start_id.as_str(),
        build: &order.build,
        environment: is_start.then_some(&order.environment),
        handle: order.handle.as_deref().filter(|_| !is_start),
    };
    let body = serde_json::to_string(&body).map_err(|error| NotStarted::Refused(error.to_string()))?;
    let id = format!("{}.{what}", order.start_id.as_str());
    webhooks.send(url, secrets, &id, body).await.map_err(|problem| match problem {
        NoAnswer::Forbidden(_) => NotStarted::Refused(problem.to_string()),
        _ => {
            // Its text may name the host, which players need not know.
            tracing::warn!(problem = %problem, "a webhook was not answered");
            NotStarted::NotNow("the webhook did not answer".to_owned())
        }
    })
}

const fn is_accepted(received: &Received) -> bool {
    received.status >= 200 && received.status < 300
}

/// What a status other than success means.
fn refusal(Received { status, body }: &Received) -> NotStarted {
    let reason = format!("the webhook answered with status {status}");
    if matches!(status, 408 | 429 | 500..) {
        return NotStarted::NotNow(reason);
    }
    let words: String = String::from_utf8_lossy(body)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
        .filter(|character| !character.is_control())
        .take(WORDS_MAX)
        .collect();
    NotStarted::Refused(if words.is_empty() { reason } else { format!("{reason}: {words}") })
}
