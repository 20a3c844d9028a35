//! The one-time setup by a studio: a version of its game, a namespace that runs it, and the namespace's
//! tokens.
//!
//! Here, game and cloud token are the demo's. Elsewhere, the operator's command creates them.

use reqwest::Client as Http;
use serde::{
    Deserialize,
    de::{DeserializeOwned, IgnoredAny},
};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::error::ExampleError;

/// The one game mode.
pub const GAME_MODE: &str = "skirmish";
/// The one region.
pub const REGION: &str = "fra";
/// The one port of a game server.
pub const PORT: &str = "default";

/// An empty namespace, with its tokens.
pub struct Namespace {
    /// Its name, new in each run.
    pub name_id: String,
    /// Its identifier.
    pub namespace_id: String,
    /// The token that game clients ship with.
    pub public: String,
    /// The token of its game servers, which is their operator's secret.
    pub server: String,
}

/// The calls of the setup, by the game's cloud token.
struct Cloud {
    http: Http,
    url: String,
    token: String,
}

impl Cloud {
    async fn post<T: DeserializeOwned>(&self, path: &str, body: &Value) -> Result<T, ExampleError> {
        let request = self.http.post(format!("{}{path}", self.url)).bearer_auth(&self.token).json(body);
        Ok(request.send().await?.error_for_status()?.json().await?)
    }
}

#[derive(Deserialize)]
struct Demo {
    game_id: String,
    tokens: DemoTokens,
}

#[derive(Deserialize)]
struct DemoTokens {
    cloud: String,
}

#[derive(Deserialize)]
struct Version {
    version_id: String,
}

#[derive(Deserialize)]
struct NewNamespace {
    namespace_id: String,
}

#[derive(Deserialize)]
struct Token {
    token: String,
}

impl Namespace {
    /// Creates a namespace of the demo game.
    pub async fn make(http: &Http, url: &str) -> Result<Self, ExampleError> {
        let demo =
            async { http.get(format!("{url}/_local/demo")).send().await?.error_for_status()?.json().await };
        let demo: Demo = demo.await.map_err(ExampleError::NoLocalStack)?;
        let cloud = Cloud { http: http.clone(), url: url.to_owned(), token: demo.tokens.cloud };
        let game = format!("/cloud/games/{}", demo.game_id);

        let config = json!({
            "game_modes": {
                GAME_MODE: {
                    "regions": [REGION],
                    "max_players": 4,
                    // One more than the capacity for finds, for a friend, who joins by the lobby's
                    // identifier.
                    "max_players_direct": 5,
                    // Far more than a game client needs between its find and its connection.
                    "reservation_seconds": 30,
                    // A lobby ends when its last player leaves.
                    "idle_seconds": 0,
                },
            },
        });
        let version = json!({ "display_name": "Example", "config": config });
        let Version { version_id } = cloud.post(&format!("{game}/versions"), &version).await?;

        let name_id = format!("example-{}", Uuid::new_v4().simple());
        let body = json!({ "display_name": "Example", "version_id": version_id, "name_id": name_id });
        let NewNamespace { namespace_id } = cloud.post(&format!("{game}/namespaces"), &body).await?;
        let namespace = format!("{game}/namespaces/{namespace_id}");

        // Above 1,000, there is no limit of players per client: all bots run on this machine.
        let settings = json!({ "lobby_count_max": 16, "max_players": 1_001 });
        let _: IgnoredAny = cloud.post(&format!("{namespace}/mm-config"), &settings).await?;

        let public: Token = cloud.post(&format!("{namespace}/tokens/public"), &json!({})).await?;
        let server: Token = cloud.post(&format!("{namespace}/tokens/server"), &json!({})).await?;
        Ok(Self { name_id, namespace_id, public: public.token, server: server.token })
    }
}
