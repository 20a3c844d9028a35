//! Requests of players and lobby servers, sent from the page to the same API, with tokens that stay here.

use std::{collections::HashMap, time::Duration};

use bytes::Bytes;
use http::{Method, Request, header};
use serde_json::{Value, json};
use shared::{
    base::ambient::{Ambient, Timestamp},
    cloud::issuing::Issuer,
    models::{
        ids::NamespaceId,
        lobby::Lobby,
        rights::{GameRight, NamespaceRight},
        token::{Claims, Credential, CredentialKind, LobbyClaims, PlayerSeat},
    },
    request::trace::EXPLAIN_HEADER,
    rules::criteria::Criteria,
    store::{
        client::Store,
        listing::{lobbies_on_all, servers_of},
    },
    wire::{FindLobbyRequest, explanation::Explanation},
};
use tokio::{sync::Mutex, time::timeout};

use crate::{
    host::{Host, Refusal},
    queries::{Act, Call},
    standing::{Verdict, judged},
    view::LobbyRow,
    watch::Watches,
    why::sentences,
};

/// Candidates of a find that the page shows one by one.
const CANDIDATES_MAX: usize = 12;
/// How old a snapshot may be to show the candidates of a find.
const SEEN_AGE_MAX: Duration = Duration::from_secs(3);
/// Longer than a find that waits for a starting lobby.
const PATIENCE: Duration = Duration::from_secs(31);

/// The tokens of players and game servers of a namespace.
#[derive(Clone)]
struct Pair {
    public: String,
    server: Credential,
}

/// The tokens that the console plays with: one of each kind and namespace, listed like all others.
#[derive(Default)]
pub struct Tokens(Mutex<HashMap<NamespaceId, Pair>>);

impl Tokens {
    async fn of(&self, host: &Host, right: &NamespaceRight) -> Result<Pair, Refusal> {
        let mut known = self.0.lock().await;
        if let Some(pair) = known.get(right.namespace_id()) {
            return Ok(pair.clone());
        }
        let keys = (host.keys)().await?;
        let issuer = Issuer::new(host.store.clone(), keys.clone(), host.ambient.clone());
        let public = issuer.credential(right, CredentialKind::Public).await?;
        let server = issuer.credential(right, CredentialKind::Server).await?;
        let Ok(Claims::Server(server)) = keys.verify(&server, host.ambient.now()) else {
            return Err("the server token that was just made does not count".to_owned().into());
        };
        let pair = Pair { public, server };
        known.insert(right.namespace_id().clone(), pair.clone());
        Ok(pair)
    }
}

/// Sends a request; returns the response and the reasons for it.
pub async fn call(host: &Host, watches: &Watches, tokens: &Tokens, call: Call) -> Result<Value, Refusal> {
    let right = GameRight::of_operator(call.game.clone());
    let right = right.on_namespace(&call.namespace, &host.store).await?;
    let candidates = match call.act {
        Act::Find => candidates(host, watches, &right, &call.request).await,
        _ => None,
    };
    let request = request(host, tokens, &right, &call).await?;
    let began = host.ambient.now();
    let answer = timeout(PATIENCE, (host.api)(request)).await;
    let answer = answer.map_err(|_| "the API does not answer".to_owned())??;
    let ms = host.ambient.now().since(began).as_millis() as u64;
    if let Some(watch) = watches.of(&call.namespace) {
        watch.look_soon();
    }
    let response: Value = serde_json::from_slice(answer.body()).unwrap_or_default();
    let explanation = ["/explain", "/metadata/explain"].iter().find_map(|at| response.pointer(at));
    let explanation: Option<Explanation> =
        explanation.and_then(|explanation| serde_json::from_value(explanation.clone()).ok());
    Ok(json!({
        "status": answer.status().as_u16(), "ms": ms,
        "lobby": lobby_of(&host.store, &host.ambient, &response).await,
        "why": explanation.as_ref().map(sentences), "candidates": candidates, "response": response,
    }))
}

async fn request(
    host: &Host,
    tokens: &Tokens,
    right: &NamespaceRight,
    call: &Call,
) -> Result<Request<Bytes>, Refusal> {
    let (method, path) = match call.act {
        Act::Find => (Method::POST, "/matchmaker/lobbies/find"),
        Act::Join => (Method::POST, "/matchmaker/lobbies/join"),
        Act::Create => (Method::POST, "/matchmaker/lobbies/create"),
        Act::Ready => (Method::POST, "/matchmaker/lobbies/ready"),
        Act::Connected => (Method::POST, "/matchmaker/players/connected"),
        Act::Leave => (Method::POST, "/matchmaker/players/leave"),
        Act::Rejoin => (Method::POST, "/matchmaker/players/rejoin"),
        Act::Disconnected => (Method::POST, "/matchmaker/players/disconnected"),
        Act::Remove | Act::Free => (Method::POST, "/matchmaker/players/remove"),
        Act::Closed => (Method::PUT, "/matchmaker/lobbies/closed"),
        Act::Publicity => (Method::PUT, "/matchmaker/lobbies/publicity"),
        Act::End => (Method::POST, "/matchmaker/servers/end-lobby"),
    };
    let pair = tokens.of(host, right).await?;
    let token = match (call.act, &call.lobby) {
        (Act::Find | Act::Join | Act::Create | Act::Leave | Act::Rejoin, _) => pair.public,
        (_, Some(lobby)) => {
            let claims = LobbyClaims { server: pair.server, lobby_id: lobby.clone() };
            (host.keys)().await?.issue_lobby(&claims, host.ambient.now())
        }
        (_, None) => return Err("say which lobby".to_owned().into()),
    };
    let body = match (call.act, &call.lobby, &call.seat) {
        (Act::Free, Some(lobby), Some(seat)) => {
            let (namespace_id, lobby_id, seat_id) = (call.namespace.clone(), lobby.clone(), seat.clone());
            // Nobody knows the address that took the seat: its place under a cap is free once the hold
            // expires.
            let seat = PlayerSeat {
                namespace_id,
                lobby_id,
                seat_id,
                generation: 0,
                client: None,
                membership: None,
                data: None,
            };
            let token = (host.keys)().await?.issue_player(&seat, host.ambient.now());
            json!({ "player_token": token, "exclude_seconds": 0 })
        }
        (Act::Free, ..) => return Err("say which seat".to_owned().into()),
        _ => call.request.clone(),
    };
    Request::builder()
        .method(method)
        .uri(path)
        .header(header::AUTHORIZATION, format!("Bearer {token}"))
        .header(header::CONTENT_TYPE, "application/json")
        .header(EXPLAIN_HEADER, "1")
        .body(Bytes::from(body.to_string()))
        .map_err(|error| error.to_string().into())
}

/// The verdict of a find on each lobby; `None` when a rule refuses the find.
async fn candidates(
    host: &Host,
    watches: &Watches,
    right: &NamespaceRight,
    request: &Value,
) -> Option<Value> {
    let party_size = request.get("party_size").and_then(Value::as_u64);
    let mut request: FindLobbyRequest = serde_json::from_value(request.clone()).ok()?;
    request.entry.party.size = party_size.unwrap_or(1).try_into().ok()?;
    let game = host.store.game(right.game_id()).await.ok()??;
    let version = host.store.version(right.game_id(), &right.namespace().version_id).await.ok()??;
    let criteria = Criteria::resolve(&request, right.namespace(), &game, &version, None).ok()?;
    let now = host.ambient.now();
    let seen = watches.of(right.namespace_id()).map(|watch| watch.seen());
    let seen = seen.filter(|seen| now.since(seen.at) <= SEEN_AGE_MAX);
    let lobbies: Vec<Lobby> = match seen {
        Some(seen) => seen.lobbies.iter().map(|lobby| Lobby::clone(lobby)).collect(),
        None => {
            let servers = servers_of(&host.store, &game, right.namespace_id()).await.ok()?;
            lobbies_on_all(&host.store, &servers).await.ok()?
        }
    };
    Some(verdicts(judged(lobbies, &criteria, now).1, now))
}

fn verdicts(judged: Vec<(Lobby, Verdict)>, now: Timestamp) -> Value {
    let mut counts: Vec<(Verdict, usize)> = Vec::new();
    for (_, verdict) in &judged {
        match counts.iter_mut().find(|(counted, _)| counted == verdict) {
            Some((_, count)) => *count += 1,
            None => counts.push((*verdict, 1)),
        }
    }
    let first = judged.iter().take(CANDIDATES_MAX);
    let first =
        first.map(|(lobby, verdict)| json!({ "lobby": LobbyRow::of(lobby, now), "verdict": verdict }));
    json!({ "lobbies": judged.len(), "counts": counts, "first": first.collect::<Vec<_>>() })
}

/// The lobby of a response as it now is, with its game server.
async fn lobby_of(store: &Store, ambient: &Ambient, response: &Value) -> Option<LobbyRow> {
    let id = response.pointer("/lobby/lobby_id")?.as_str()?.parse().ok()?;
    let lobby = store.lobby(&id).await.ok()??;
    Some(LobbyRow::of(&lobby, ambient.now()))
}
