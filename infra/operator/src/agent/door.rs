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
    header::{AUTHORIZATION, CONTENT_TYPE},
};
use muster_console::listening;
use serde::Deserialize;
use serde_json::{Value, json};
use shared::base::ambient::Ambient;
use strum::EnumString;
use tokio::{net::TcpListener, time::error::Elapsed};

use crate::agent::{
    lobby::{Listed, Lobbies, Lobby},
    service::{Message, Refusal, Service},
};

/// Largest body of a request: the largest state, escaped.
const BODY_BYTES_MAX: usize = 512 * 1024;
/// How long a player waits to be admitted.
const ADMISSION: Duration = Duration::from_secs(10);
/// How long other calls are repeated. Nobody waits for them.
const PATIENCE: Duration = Duration::from_secs(60);
const ALREADY_CONNECTED: &str = "MATCHMAKER_PLAYER_ALREADY_CONNECTED";
/// What a lobby that has ended responds to its last calls.
const OVER: [&str; 2] = ["MATCHMAKER_LOBBY_STOPPED", "MATCHMAKER_LOBBY_NOT_FOUND"];

/// What a process may act on.
pub(super) struct Scope {
    lobbies: Arc<Lobbies>,
    /// The one lobby; `None` for all.
    lobby: Option<Arc<Lobby>>,
}

impl Scope {
    pub const fn all_of(lobbies: Arc<Lobbies>) -> Self {
        Self { lobbies, lobby: None }
    }

    pub const fn lobby_of(lobbies: Arc<Lobbies>, lobby: Arc<Lobby>) -> Self {
        Self { lobbies, lobby: Some(lobby) }
    }

    fn listed(&self) -> Vec<Listed> {
        let lobbies = match &self.lobby {
            Some(lobby) if lobby.is_over() => Vec::new(),
            Some(lobby) => vec![Arc::clone(lobby)],
            None => self.lobbies.all(),
        };
        lobbies.iter().map(|lobby| lobby.listed()).collect()
    }

    async fn lobby(&self, lobby_id: &str) -> Result<Option<Arc<Lobby>>, Elapsed> {
        match &self.lobby {
            Some(lobby) => Ok(Some(Arc::clone(lobby)).filter(|lobby| lobby.lobby_id == lobby_id)),
            None => self.lobbies.look_for(lobby_id, ADMISSION).await,
        }
    }
}

type Scopes = Mutex<HashMap<String, Arc<Scope>>>;

pub(super) struct Door {
    service: Arc<Service>,
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

#[derive(Default, Deserialize)]
#[serde(default)]
struct Player {
    player_token: String,
}

impl Door {
    pub fn new(service: Arc<Service>, ambient: Ambient) -> Self {
        Self { service, ambient, scopes: Arc::default() }
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
            (&Method::GET, ["lobbies"]) => {
                let lobbies = scope.listed();
                Json(json!({ "draining": scope.lobbies.is_draining(), "lobbies": lobbies })).into_response()
            }
            (&Method::POST, ["lobbies", lobby_id, act]) => match act.parse() {
                Ok(act) => self.act(&scope, lobby_id, act, body.to_bytes()).await,
                Err(_) => refusal(StatusCode::NOT_FOUND, "API_NOT_FOUND", "there is no such path"),
            },
            _ => refusal(StatusCode::NOT_FOUND, "API_NOT_FOUND", "there is no such path"),
        }
    }

    async fn act(&self, scope: &Scope, lobby_id: &str, act: Act, body: Bytes) -> Response {
        let lobby = match scope.lobby(lobby_id).await {
            Ok(Some(lobby)) => lobby,
            Ok(None) => {
                let message = "this process does not run the lobby";
                return refusal(StatusCode::BAD_REQUEST, "MATCHMAKER_LOBBY_NOT_FOUND", message);
            }
            Err(_) => return unavailable("no heartbeat was accepted since the request came"),
        };
        let post = |path| of_lobby(&lobby, Method::POST, path, body.clone());
        let put = |path| of_lobby(&lobby, Method::PUT, path, body.clone());
        let lobbies = &scope.lobbies;
        let done = match act {
            Act::Ready => ready(&self.service, &lobby).await,
            Act::Connected => self.connect(&lobby, &body).await,
            Act::Disconnected => {
                let done = self.service.call(&post("/matchmaker/players/disconnected"), PATIENCE).await;
                // An empty lobby may have ended.
                if lobby.forget(&player_token(&body)) {
                    lobbies.want();
                }
                done
            }
            Act::Closed => self.service.call(&put("/matchmaker/lobbies/closed"), PATIENCE).await,
            Act::State => self.service.call(&put("/matchmaker/lobbies/state"), PATIENCE).await,
            Act::End => end(&self.service, lobbies, &lobby, PATIENCE).await,
        };
        match done {
            Ok(body) => ([(CONTENT_TYPE, "application/json")], body).into_response(),
            Err(refused) => passed_on(refused),
        }
    }

    /// Admits a player once. A token that nobody showed here may be connected already: then the response to
    /// an earlier attempt was lost, and its refusal describes the player.
    async fn connect(&self, lobby: &Lobby, body: &Bytes) -> Result<Bytes, Refusal> {
        let token = player_token(body);
        if !lobby.show(&token) {
            return Err(Refusal::of_agent(ALREADY_CONNECTED, "this token is connected"));
        }
        let mut request = serde_json::from_slice(body).unwrap_or(Value::Null);
        if let Some(fields) = request.as_object_mut() {
            fields.insert("details".to_owned(), true.into());
        }
        let request = request.to_string().into();
        let message = of_lobby(lobby, Method::POST, "/matchmaker/players/connected", request);
        match self.service.call(&message, ADMISSION).await {
            Err(refused) if refused.code == ALREADY_CONNECTED => Ok(refused.metadata()),
            Err(refused) => {
                lobby.forget(&token);
                Err(refused)
            }
            admitted => admitted,
        }
    }
}

/// Marks a lobby as ready.
pub(super) async fn ready(service: &Service, lobby: &Lobby) -> Result<Bytes, Refusal> {
    let message = of_lobby(lobby, Method::POST, "/matchmaker/lobbies/ready", Bytes::from_static(b"{}"));
    service.call(&message, PATIENCE).await
}

/// Ends a lobby, which may have ended before.
pub(super) async fn end(
    service: &Service,
    lobbies: &Lobbies,
    lobby: &Lobby,
    limit: Duration,
) -> Result<Bytes, Refusal> {
    let body = json!({ "lobby_id": lobby.lobby_id }).to_string().into();
    let message = of_lobby(lobby, Method::POST, "/matchmaker/servers/end-lobby", body);
    match service.call(&message, limit).await {
        Err(refused) if !OVER.contains(&refused.code.as_str()) => Err(refused),
        _ => {
            lobbies.ended(lobby);
            Ok(Bytes::from_static(b"{}"))
        }
    }
}

/// A request under the lobby's own token.
fn of_lobby(lobby: &Lobby, method: Method, path: &'static str, body: Bytes) -> Message {
    Message { method, path, token: lobby.listed().lobby_token, body }
}

fn player_token(body: &Bytes) -> String {
    serde_json::from_slice::<Player>(body).unwrap_or_default().player_token
}

/// The service's own response; without one, 503 in its form.
fn passed_on(refused: Refusal) -> Response {
    match StatusCode::from_u16(refused.status) {
        Ok(status) if refused.status > 0 => {
            (status, [(CONTENT_TYPE, "application/json")], refused.body).into_response()
        }
        _ => unavailable(&refused.text()),
    }
}

fn unavailable(message: &str) -> Response {
    refusal(StatusCode::SERVICE_UNAVAILABLE, "API_UNAVAILABLE", message)
}

fn refusal(status: StatusCode, code: &str, message: &str) -> Response {
    (status, Json(json!({ "code": code, "message": message }))).into_response()
}
