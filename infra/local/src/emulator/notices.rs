//! Which game servers a write may have requested or taken out of service, as a stream of the table of servers
//! reports it in AWS.
//!
//! A notice only asks to look at the record. So one too many does no harm, and most writes are told apart by
//! words in their text.

use std::sync::{Arc, OnceLock};

use serde_json::Value;
use shared::models::{ids::ServerKey, launch::LaunchStage};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// The table, by its logical id in the template.
const TABLE: &str = "ServersTable";
/// Stages in which something is due.
const STAGES: [LaunchStage; 4] =
    [LaunchStage::Requested, LaunchStage::Failed, LaunchStage::Stopping, LaunchStage::Gone];

/// The notices of a database.
#[derive(Clone, Debug, Default)]
pub struct Notices(Arc<OnceLock<UnboundedSender<ServerKey>>>);

impl Notices {
    /// The notices from now on; `None` when somebody has them already.
    #[must_use]
    pub fn receive(&self) -> Option<UnboundedReceiver<ServerKey>> {
        let (sender, receiver) = unbounded_channel();
        self.0.set(sender).is_ok().then_some(receiver)
    }

    /// Notes a write that the database has made.
    pub(super) fn note(&self, body: &[u8]) {
        let Some(sender) = self.0.get() else { return };
        for key in servers_in(body) {
            let _nobody_listens = sender.send(key);
        }
    }
}

/// The servers that a write may have brought into one of [`STAGES`].
fn servers_in(body: &[u8]) -> Vec<ServerKey> {
    let Ok(text) = std::str::from_utf8(body) else { return Vec::new() };
    let names = |stage: LaunchStage| text.contains(&format!("\"{}\"", stage.name()));
    if !text.contains(TABLE) || !STAGES.into_iter().any(names) {
        return Vec::new();
    }
    let body: Value = serde_json::from_str(text).unwrap_or_default();
    let parts = match body.get("TransactItems").and_then(Value::as_array) {
        Some(parts) => parts.iter().filter_map(|part| part.as_object()?.values().next()).collect(),
        None => vec![&body],
    };
    let server = |write: &&Value| {
        let item = write.get("Item").or_else(|| write.get("Key"))?;
        let key = item.pointer("/server/S")?.as_str()?;
        ServerKey::try_from(key.to_owned()).ok()
    };
    parts.iter().filter(|write| write["TableName"] == TABLE).filter_map(server).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_and_an_end_are_noted_and_nothing_else() {
        let found = |body: Value| {
            servers_in(body.to_string().as_bytes()).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let of = |key: &str| json!({ "server": { "S": key } });
        let lobby = json!({ "Put": { "TableName": "LobbiesTable", "Item": { "lobby_id": { "S": "x" } } } });
        let requested = json!({ "server": { "S": "n/one" }, "stage": { "S": "requested" } });
        let put = json!({ "Put": { "TableName": TABLE, "Item": requested } });
        assert_eq!(found(json!({ "TransactItems": [lobby, put] })), ["n/one"]);
        let values = json!({ ":over": { "S": "stopping" } });
        let update = json!({ "TableName": TABLE, "Key": of("n/two"), "ExpressionAttributeValues": values });
        assert_eq!(found(update), ["n/two"]);
        let values = json!({ ":stage": { "S": "running" } });
        let update = json!({ "TableName": TABLE, "Key": of("n/two"), "ExpressionAttributeValues": values });
        assert_eq!(found(update), [""; 0]);
        assert!(servers_in(b"\xff").is_empty());
    }
}
