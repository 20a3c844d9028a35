//! The API as a load calls it: each request counted, with its result.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use hyper::{
    Request,
    body::Bytes,
    header::{AUTHORIZATION, CONTENT_TYPE},
};
use muster_console::{guard::OWN_HEADER, host::Api};
use serde::{
    Deserialize,
    de::{DeserializeOwned, IgnoredAny},
};
use serde_json::Value;
use shared::{
    base::usage::Usage,
    models::ids::LobbyId,
    request::trace::EXPLAIN_HEADER,
    wire::{JoinLobby, explanation::Explanation},
};
use tokio::time::{Instant, sleep, timeout};

use crate::load::{
    cost::{self, Spent},
    sources::Source,
    tally::{Call, Kind, NO_RESPONSE, OK, Tally, UNREADABLE, explained},
};

/// Longer than any response takes: API Gateway gives up after 30 s.
const PATIENCE: Duration = Duration::from_secs(35);
/// Tries of a request that must succeed, and the pause after each.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_secs(1);

/// The API, with the tokens of a load and the results of its requests.
pub(crate) struct Service {
    api: Api,
    public_token: String,
    server_token: String,
    tally: Mutex<Tally>,
}

/// A request.
struct Message<'a> {
    operation: Call,
    query: &'a str,
    token: &'a str,
    body: Bytes,
    /// The address that it comes from, where that matters.
    source: Option<Source>,
    /// Whether its response is to say what it took.
    is_explained: bool,
}

impl<'a> Message<'a> {
    const fn new(operation: Call, token: &'a str, body: Bytes) -> Self {
        Self { operation, query: "", token, body, source: None, is_explained: false }
    }
}

/// A seat, in the response to a find.
#[derive(Deserialize)]
struct Found {
    lobby: JoinLobby,
    explain: Option<Box<Explanation>>,
}

/// The response to a list.
#[derive(Deserialize)]
struct List {
    lobbies: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    lobby_id: LobbyId,
}

/// The body of a refusal; the gateway's own has no code.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Refused {
    code: String,
    metadata: Option<Metadata>,
}

#[derive(Deserialize)]
struct Metadata {
    explain: Option<Box<Explanation>>,
}

/// A request that was not answered as it should be.
#[derive(Debug, Default)]
struct Failure {
    /// Status and code, or that there is none.
    result: String,
    explanation: Option<Box<Explanation>>,
    /// Why there is no response, or none that can be read.
    problem: Option<String>,
}

/// What an operation took in the local stack, all requests of everybody.
#[derive(Deserialize)]
struct Metered {
    operation: String,
    requests: u64,
    calls: u64,
    read_units: f64,
    write_units: f64,
}

#[derive(Deserialize)]
struct Costs {
    operations: Vec<Metered>,
}

/// Requests of each operation by name, and what they took.
pub(crate) type Meter = HashMap<String, (u64, Usage)>;

impl Service {
    /// The service at `api`, with a public and a server token.
    pub fn new(api: Api, public_token: String, server_token: String) -> Self {
        Self { api, public_token, server_token, tally: Mutex::default() }
    }

    /// The results so far.
    pub fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds a lobby for a player who was due at `due`.
    pub async fn find(&self, body: Bytes, due: Instant, source: Option<Source>) -> Option<JoinLobby> {
        let message = Message::new(Call::Find, &self.public_token, body);
        let answer = read::<Found>(self.send(Message { source, is_explained: true, ..message }).await);
        let mut tally = self.tally();
        tally.finds.push(due.elapsed());
        let explanation = match &answer {
            Ok(found) => found.explain.as_deref(),
            Err(failure) => failure.explanation.as_deref(),
        };
        explanation.into_iter().for_each(|explanation| tally.explain(explanation));
        let spent = explanation.map_or(cost::REFUSED, explained);
        count(&mut tally, Call::Find, &answer, spent);
        answer.iter().for_each(|found| tally.seated_in(found.lobby.lobby_id.clone()));
        answer.ok().map(|found| found.lobby)
    }

    /// Sends a hostile request. Only its status, its code and its size matter.
    pub async fn attack(&self, kind: Kind, body: Bytes, source: Source) {
        let forged = forged(&self.public_token);
        let token = if kind == Kind::ForgedToken { &forged } else { &self.public_token };
        let query = if kind == Kind::List { "?include_state=true" } else { "" };
        let message = Message::new(kind.call(), token, body);
        let answer = self.send(Message { query, source: Some(source), ..message }).await;
        let bytes = answer.as_ref().map_or(0, |(_, body)| body.len());
        let answer = read::<IgnoredAny>(answer);
        let mut tally = self.tally();
        tally.attack.count(kind, source, result_of(&answer), bytes);
        note_problem(&mut tally, &answer);
    }

    /// The lobbies that a player sees listed. The local stack at `meter` shows what the list took.
    pub async fn listed(&self, meter: &Api) -> Option<Vec<LobbyId>> {
        let usage = async || Some(Self::meter(meter).await?.get(Call::List.name())?.1);
        let before = usage().await.unwrap_or_default();
        let message = Message::new(Call::List, &self.public_token, Bytes::new());
        let answer = read::<List>(self.send(Message { query: "?limit=500", ..message }).await);
        let spent = usage().await.map_or(cost::REFUSED, |after| Spent::of(1, after - before));
        count(&mut self.tally(), Call::List, &answer, spent);
        let lobbies = answer.ok()?.lobbies.into_iter();
        Some(lobbies.map(|lobby| lobby.lobby_id).collect())
    }

    /// Calls an operation with the server token.
    ///
    /// # Errors
    /// The result as it is counted: status and code.
    pub async fn as_server<T: DeserializeOwned>(
        &self,
        operation: Call,
        body: &Value,
        spent: impl FnOnce(&T) -> Spent,
    ) -> Result<T, String> {
        self.call(operation, &self.server_token, body, spent).await
    }

    /// Calls an operation with the server token until it succeeds, which takes `takes`, or fails for good.
    ///
    /// # Errors
    /// The last result as it is counted: status and code.
    pub async fn insist(&self, operation: Call, body: &Value, takes: Spent) -> Result<(), String> {
        let mut tries_left = TRIES;
        loop {
            tries_left -= 1;
            let answer = self.as_server(operation, body, |_: &IgnoredAny| takes).await;
            let is_wrong = |result: &str| result.starts_with('4') && !result.starts_with("429");
            match answer {
                Ok(_) => return Ok(()),
                Err(result) if tries_left == 0 || is_wrong(&result) => return Err(result),
                Err(_) => sleep(PAUSE).await,
            }
        }
    }

    /// Calls an operation with `token`. A success took what `spent` says of its response.
    ///
    /// # Errors
    /// The result as it is counted: status and code.
    pub async fn call<T: DeserializeOwned>(
        &self,
        operation: Call,
        token: &str,
        body: &Value,
        spent: impl FnOnce(&T) -> Spent,
    ) -> Result<T, String> {
        let message = Message::new(operation, token, body.to_string().into());
        let answer = read(self.send(message).await);
        let spent = answer.as_ref().map_or(cost::REFUSED, spent);
        count(&mut self.tally(), operation, &answer, spent);
        answer.map_err(|failure| failure.result)
    }

    /// The usage of each operation in the local stack so far; `None` where the API does not show it.
    pub async fn meter(api: &Api) -> Option<Meter> {
        let request = Request::get("/_console/cost").header(OWN_HEADER, "1").body(Bytes::new()).ok()?;
        let response = timeout(PATIENCE, api(request)).await.ok()?.ok()?;
        let Costs { operations } = serde_json::from_slice(response.body()).ok()?;
        let usage = |metered: Metered| {
            let Metered { operation, requests, calls, read_units, write_units } = metered;
            (operation, (requests, Usage { calls, read_units, write_units }))
        };
        Some(operations.into_iter().map(usage).collect())
    }

    /// Status and body of the response.
    async fn send(&self, message: Message<'_>) -> Result<(u16, Bytes), String> {
        let Message { operation, query, token, body, source, is_explained } = message;
        let request = Request::builder()
            .method(operation.method())
            .uri(format!("{}{query}", operation.path()))
            .header(AUTHORIZATION, format!("Bearer {token}"))
            .header(CONTENT_TYPE, "application/json");
        let request = if is_explained { request.header(EXPLAIN_HEADER, "1") } else { request };
        let mut request = request.body(body).map_err(|error| error.to_string())?;
        source.and_then(|source| request.extensions_mut().insert(source));
        let response = timeout(PATIENCE, (self.api)(request)).await;
        let response = response.map_err(|_| format!("none in {} s", PATIENCE.as_secs()))??;
        Ok((response.status().as_u16(), response.into_body()))
    }
}

/// The body of a success.
fn read<T: DeserializeOwned>(response: Result<(u16, Bytes), String>) -> Result<T, Failure> {
    let unread = |result: &str, problem| {
        Err(Failure { result: result.to_owned(), problem: Some(problem), explanation: None })
    };
    match response {
        Ok((200, body)) => {
            serde_json::from_slice(&body).or_else(|error| unread(UNREADABLE, error.to_string()))
        }
        Ok((status, body)) => {
            let Refused { code, metadata } = serde_json::from_slice(&body).unwrap_or_default();
            let result = format!("{status} {code}").trim_end().to_owned();
            let explanation = metadata.and_then(|metadata| metadata.explain);
            Err(Failure { result, explanation, problem: None })
        }
        Err(problem) => unread(NO_RESPONSE, problem),
    }
}

/// A public token with another signature.
fn forged(token: &str) -> String {
    let (signed, signature) = token.rsplit_once('.').unwrap_or((token, ""));
    let first = if signature.starts_with('A') { 'B' } else { 'A' };
    format!("{signed}.{first}{}", signature.get(1..).unwrap_or_default())
}

fn count<T>(tally: &mut Tally, operation: Call, answer: &Result<T, Failure>, spent: Spent) {
    tally.count(operation, result_of(answer), spent);
    note_problem(tally, answer);
}

fn result_of<T>(answer: &Result<T, Failure>) -> &str {
    answer.as_ref().map_or_else(|failure| failure.result.as_str(), |_| OK)
}

fn note_problem<T>(tally: &mut Tally, answer: &Result<T, Failure>) {
    if let Err(Failure { problem: Some(problem), .. }) = answer {
        tally.problem.get_or_insert_with(|| problem.clone());
    }
}
