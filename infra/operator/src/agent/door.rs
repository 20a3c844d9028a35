//! The agent's HTTP interface on loopback, by which a process acts for its own lobbies.

use std::{
    collections::HashMap,
    future::pending,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::{
    Json,
    response::{IntoResponse as _, Response},
};
use http_body_util::{BodyExt as _, Limited};
use hyper::{
    Method, Request, StatusCode,
    body::{Bytes, Incoming},
    header::AUTHORIZATION,
};
use muster_client::{Error, GameServer, Lobby};
use muster_console::listening;
use serde::Deserialize;
use serde_json::{json, value::RawValue};
use shared::base::ambient::Ambient;
use strum::EnumString;
use tokio::{net::TcpListener, sync::SetOnce, time::timeout};

use crate::agent::output::text;

/// Largest body of a request: the largest state, escaped.
const BODY_BYTES_MAX: usize = 512 * 1024;
/// How long a lobby is looked for, whose player waits.
const LOOK: Duration = Duration::from_secs(10);
/// How long calls are repeated for which nobody waits.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a process may act on.
pub(super) struct Scope {
    /// The game server, once it is registered.
    server: Arc<SetOnce<GameServer>>,
    /// The one lobby; `None` for all.
    lobby: Option<Lobby>,
}

impl Scope {
    pub const fn all_of(server: Arc<SetOnce<GameServer>>) -> Self {
        Self { server, lobby: None }
    }

    pub const fn lobby_of(server: Arc<SetOnce<GameServer>>, lobby: Lobby) -> Self {
        Self { server, lobby: Some(lobby) }
    }

    fn listed(&self) -> Response {
        let server = self.server.get();
        let lobbies = match &self.lobby {
            Some(lobby) if lobby.is_ended() => Vec::new(),
            Some(lobby) => vec![lobby.clone()],
            None => server.map(GameServer::lobbies).unwrap_or_default(),
        };
        let lobbies: Vec<_> = lobbies.iter().map(Lobby::assigned).collect();
        Json(json!({ "draining": server.is_some_and(GameServer::is_draining), "lobbies": lobbies }))
            .into_response()
    }

    /// The lobby, or the response that it is not there.
    async fn lobby(&self, lobby_id: &str) -> Result<Lobby, Response> {
        match &self.lobby {
            Some(lobby) if lobby.id() == lobby_id => Ok(lobby.clone()),
            Some(_) => {
                let message = "this process does not run the lobby";
                Err(refusal(StatusCode::BAD_REQUEST, "MATCHMAKER_LOBBY_NOT_FOUND", message))
            }
            None => {
                let found = timeout(LOOK, async { self.server.wait().await.lobby(lobby_id).await }).await;
                let late = |_| unavailable("no heartbeat was accepted since the request came");
                found.map_err(late)?.map_err(|error| passed_on(&error))
            }
        }
    }
}

type Scopes = Mutex<HashMap<String, Arc<Scope>>>;

pub(super) struct Door {
    ambient: Ambient,
    /// By the secret of each process.
    scopes: Arc<Scopes>,
}

/// A process's right, until it is dropped.
pub(super) struct Pass {
    secret: String,
    scopes: Arc<Scopes>,
}

impl Pass {
    pub fn secret(&self) -> &str {
        &self.secret
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        self.scopes.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.secret);
    }
}

/// What a process does to a lobby: the end of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString)]
#[strum(serialize_all = "lowercase")]
enum Act {
    Ready,
    Connected,
    Disconnected,
    Closed,
    State,
    End,
}

#[derive(Deserialize)]
struct Arrival {
    player_token: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Departure {
    player_token: String,
    keep_seconds: Option<u64>,
}

impl Door {
    pub fn new(ambient: Ambient) -> Self {
        Self { ambient, scopes: Arc::default() }
    }

    /// Lets a process in that shows the pass's secret.
    pub fn open(&self, scope: Scope) -> Pass {
        let secret = self.ambient.bytes::<32>().map(|byte| format!("{byte:02x}")).concat();
        let scopes = Arc::clone(&self.scopes);
        scopes.lock().unwrap_or_else(PoisonError::into_inner).insert(secret.clone(), Arc::new(scope));
        Pass { secret, scopes }
    }

    pub async fn serve(self: Arc<Self>, listener: TcpListener) {
        let answer = move |request: Request<Incoming>, _: SocketAddr| {
            let door = Arc::clone(&self);
            async move { door.answer(request).await }
        };
        listening::serve(listener, None, answer, pending()).await;
    }

    async fn answer(&self, request: Request<Incoming>) -> Response {
        let (parts, body) = request.into_parts();
        let shown =
            parts.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        let scope = shown.and_then(|secret| {
            self.scopes.lock().unwrap_or_else(PoisonError::into_inner).get(secret).cloned()
        });
        let Some(scope) = scope else {
            let message = "send the header `Authorization: Bearer`, with MUSTER_AGENT_SECRET";
            return refusal(StatusCode::UNAUTHORIZED, "API_UNAUTHORIZED", message);
        };
        let Ok(body) = Limited::new(body, BODY_BYTES_MAX).collect().await else {
            return refusal(StatusCode::PAYLOAD_TOO_LARGE, "API_BODY_TOO_LARGE", "the body is too large");
        };
        let path: Vec<&str> = parts.uri.path().split('/').skip(1).collect();
        match (&parts.method, path.as_slice()) {
            (&Method::GET, ["lobbies"]) => scope.listed(),
            (&Method::POST, ["lobbies", lobby_id, act]) => match act.parse() {
                Ok(act) => match scope.lobby(lobby_id).await {
                    Ok(lobby) => carry_out(act, &lobby, &body.to_bytes()).await,
                    Err(response) => response,
                },
                Err(_) => refusal(StatusCode::NOT_FOUND, "API_NOT_FOUND", "there is no such path"),
            },
            _ => refusal(StatusCode::NOT_FOUND, "API_NOT_FOUND", "there is no such path"),
        }
    }
}

async fn carry_out(act: Act, lobby: &Lobby, body: &Bytes) -> Response {
    let empty = |()| Json(json!({})).into_response();
    let done = match act {
        Act::Ready => lobby.ready().await.map(empty),
        Act::End => lobby.end().await.map(empty),
        Act::Connected => match serde_json::from_slice::<Arrival>(body) {
            Ok(arrival) => {
                let player = lobby.admit(&arrival.player_token).await;
                player.map(|player| Json(player.details()).into_response())
            }
            Err(_) => pass(lobby, Method::POST, "players/connected", body).await,
        },
        Act::Disconnected => match serde_json::from_slice::<Departure>(body) {
            Ok(Departure { player_token, keep_seconds }) => {
                lobby.disconnected(&player_token, keep_seconds.map(Duration::from_secs)).await.map(empty)
            }
            Err(_) => pass(lobby, Method::POST, "players/disconnected", body).await,
        },
        Act::Closed => pass(lobby, Method::PUT, "lobbies/closed", body).await,
        Act::State => pass(lobby, Method::PUT, "lobbies/state", body).await,
    };
    done.unwrap_or_else(|error| passed_on(&error))
}

/// Passes on a request as it is. Muster says what is wrong with it.
async fn pass(lobby: &Lobby, method: Method, path: &str, body: &Bytes) -> Result<Response, Error> {
    let Ok(body) = serde_json::from_slice::<&RawValue>(body) else {
        return Ok(refusal(StatusCode::BAD_REQUEST, "API_BAD_BODY", "the body is not JSON"));
    };
    let answer: Box<RawValue> = lobby.call(method, path, &body, PATIENCE).await?;
    Ok(Json(answer).into_response())
}

/// The service's own response; without one, 503 in its form.
fn passed_on(error: &Error) -> Response {
    match StatusCode::from_u16(error.status) {
        Ok(status) => (status, Json(&**error)).into_response(),
        Err(_) => unavailable(&text(error)),
    }
}

fn unavailable(message: &str) -> Response {
    refusal(StatusCode::SERVICE_UNAVAILABLE, "API_UNAVAILABLE", message)
}

fn refusal(status: StatusCode, code: &str, message: &str) -> Response {
    (status, Json(json!({ "code": code, "message": message }))).into_response()
}
