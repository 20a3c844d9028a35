//! Players and game servers that put load on the binary: what each sends, and what it keeps of the responses.

use serde_json::{Value, json};

use crate::{
    load::{Connection, Post, Reply},
    local_process::LocalGame,
    reckoning::{Seat, seat_of},
};

/// A player who was given a seat.
#[derive(Clone, Debug)]
pub struct Visitor {
    /// The seat that the token stands for.
    pub seat: Seat,
    token: String,
}

impl Visitor {
    /// The player in a response to a find, join or create.
    ///
    /// # Panics
    /// When the token is for another lobby than the answered one.
    #[must_use]
    pub fn of(answer: &Value) -> Self {
        let token = answer["player"]["token"].as_str().expect("a player token").to_owned();
        let seat = seat_of(&token);
        assert_eq!(answer["lobby"]["lobby_id"], seat.0.as_str(), "the token is for the answered lobby");
        Self { seat, token }
    }

    /// What the lobby server sends when the player `connected` or `disconnected`.
    #[must_use]
    pub fn post(&self, operation: &str, lobby_token: &str) -> Post {
        let path = format!("/matchmaker/players/{operation}");
        Post::json(path, Some(lobby_token), &json!({ "player_token": self.token }))
    }
}

impl LocalGame {
    /// A player's request for a seat: `find`, `join` or `create`.
    #[must_use]
    pub fn entrance(&self, operation: &str, body: &Value) -> Post {
        Post::json(format!("/matchmaker/lobbies/{operation}"), Some(&self.public), body)
    }

    /// Sends heartbeats of a game server until they have listed each of its lobbies, and returns the
    /// identifiers and tokens. `body` receives each reply and returns its body, or `None` to stop.
    pub async fn listed_lobbies(
        &self,
        connection: &mut Connection,
        server_id: &str,
        mut body: impl FnMut(Reply) -> Option<Value>,
    ) -> Vec<(String, String)> {
        let (mut lobbies, mut cursor) = (Vec::new(), Value::Null);
        loop {
            let heartbeat = json!({ "server_id": server_id, "cursor": cursor });
            let post = Post::json("/matchmaker/servers/heartbeat", Some(&self.server), &heartbeat);
            let Some(mut listed) = body(connection.post(&post).await) else { return lobbies };
            for lobby in listed["lobbies"].as_array().expect("lobbies") {
                let text = |field: &str| lobby[field].as_str().expect("text").to_owned();
                lobbies.push((text("lobby_id"), text("lobby_token")));
            }
            cursor = listed["cursor"].take();
            if cursor.is_null() {
                return lobbies;
            }
        }
    }
}
