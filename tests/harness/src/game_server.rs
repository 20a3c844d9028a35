//! What game servers register and send, and what players of their lobbies request.

use serde_json::{Value, json};
use shared::models::{ids::ServerKey, server::Server};

use crate::{
    answer::Answer,
    stack::{TestGame, TestStack},
    tables::live_lobbies,
};

/// The registration of a game server's first start, with `fields` replaced or added.
///
/// # Panics
/// When `fields` is no object.
#[must_use]
pub fn registration(server_id: &str, fields: &Value) -> Value {
    let mut body = json!({
        "server_id": server_id, "start_id": format!("{server_id}-1"), "region_id": "fra", "capacity": 4,
        "lease_seconds": 60,
        "ports": { "default": { "hostname": format!("{server_id}.example"), "port": 7_777, "protocol": "udp" } },
    });
    for (name, field) in fields.as_object().expect("fields") {
        body[name] = field.clone();
    }
    body
}

impl TestGame {
    /// A game server registers, with `fields` beside what the first start of one does.
    pub async fn register(&self, stack: &TestStack, server_id: &str, fields: Value) -> Answer {
        self.serve(stack, "register", registration(server_id, &fields)).await.expect_ok()
    }

    /// A game server that names no start sends a heartbeat.
    pub async fn heartbeat(&self, stack: &TestStack, server_id: &str) -> Answer {
        self.serve(stack, "heartbeat", json!({ "server_id": server_id })).await
    }

    /// A game server as it is in the table.
    pub async fn game_server(&self, stack: &TestStack, server_id: &str) -> Server {
        let server_id = server_id.parse().expect("an identifier");
        let key = ServerKey { namespace_id: self.namespace_id().clone(), server_id };
        stack.store().server(&key).await.expect("a read").expect("a game server")
    }

    /// A game server ends a lobby.
    pub async fn end_lobby(&self, stack: &TestStack, lobby_id: &str) -> Answer {
        self.serve(stack, "end-lobby", json!({ "lobby_id": lobby_id })).await
    }

    /// A player joins a lobby.
    pub async fn join(&self, stack: &TestStack, lobby_id: &str) -> Answer {
        self.play(stack, "lobbies/join", json!({ "lobby_id": lobby_id })).await
    }

    /// How many of its lobbies live.
    pub async fn live_lobbies(&self, stack: &TestStack) -> u32 {
        live_lobbies(stack.store(), self.namespace_id()).await
    }
}
