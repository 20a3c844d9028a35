//! The console itself: the response to each request.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    Json,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http::{
    HeaderMap, Method, StatusCode,
    header::{self, HeaderName, HeaderValue},
    request::Parts,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use shared::store::meter::metered;
use tokio::sync::watch;

use crate::{
    calls::{self, Tokens},
    counts::Counts,
    details, errors,
    events::{Feed, Shown},
    files::{FILES, PAGE},
    guard::{Guard, is_for_this_machine, is_of_own_page, protect},
    host::{Host, Refusal, Words},
    queries::{Begun, Command, NamedLobby, Watched, of_query},
    search,
    watch::Watches,
};

/// The path below which everything is but the page itself and that of errors.
const PREFIX: &str = "/_console/";
const HTML: &str = "text/html; charset=utf-8";
/// Allows only the page's own files, and no frame around it.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                                       connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const HEADERS: [(HeaderName, &str); 3] = [
    (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

/// A console.
pub struct Console {
    host: Host,
    watches: Arc<Watches>,
    counts: Option<Counts>,
    tokens: Tokens,
    closing: watch::Sender<bool>,
    run: Arc<str>,
}

/// An answer that is no file.
enum Answer {
    Json(Value),
    Events(Box<Feed>),
    Began(HeaderValue),
}

/// Why there is none.
enum Refused {
    /// By the guard, or nothing there.
    Status(StatusCode),
    /// In words.
    Words(Refusal),
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self::Words(refusal)
    }
}

impl From<StatusCode> for Refused {
    fn from(status: StatusCode) -> Self {
        Self::Status(status)
    }
}

impl Console {
    /// A console of `host`'s deployment.
    #[must_use]
    pub fn new(host: Host) -> Self {
        let Host { store, ambient, kind, tape, .. } = host.clone();
        let (watches, counts) = (Arc::new(Watches::new(store, ambient, kind, tape)), Counts::of(&host));
        let run = host.ambient.uuid().to_string().into();
        Self { host, watches, counts, tokens: Tokens::default(), closing: watch::Sender::new(false), run }
    }

    /// Whether the console answers a request for `path`.
    #[must_use]
    pub fn is_at(path: &str) -> bool {
        path == "/" || path == errors::PATH || path.starts_with(PREFIX)
    }

    /// Ends every stream of events: their connections would never become idle.
    pub fn close(&self) {
        self.closing.send_replace(true);
    }

    /// Read units of the last minute, all that the console took.
    #[must_use]
    pub fn read_units_a_minute(&self) -> f64 {
        self.watches.units_a_minute()
    }

    /// What an hour like the last minute costs, in dollars.
    #[must_use]
    pub fn dollars_an_hour(&self) -> f64 {
        self.watches.dollars_an_hour()
    }

    /// Answers a request, if it may be answered.
    pub async fn answer(&self, request: &Parts, body: Bytes, peer: SocketAddr) -> Response {
        let mut response = match self.answered(request, body, peer).await {
            Ok(response) => response,
            Err(Refused::Status(status)) => {
                let reason = status.canonical_reason().unwrap_or_default();
                (status, Json(json!({ "message": reason }))).into_response()
            }
            // An answer like others: a browser notes other statuses as errors of the page.
            Err(Refused::Words(refusal)) => Json(json!({ "refused": refusal })).into_response(),
        };
        let headers = response.headers_mut();
        headers.extend(HEADERS.map(|(name, value)| (name, HeaderValue::from_static(value))));
        protect(headers);
        response
    }

    async fn answered(&self, request: &Parts, body: Bytes, peer: SocketAddr) -> Result<Response, Refused> {
        let path = request.uri.path();
        // The page of errors has no data, and responses to clients on other machines link it.
        if path != errors::PATH && !is_for_this_machine(&request.headers, &request.uri, peer) {
            return Err(StatusCode::FORBIDDEN.into());
        }
        if let Some((content_type, text)) = file(path) {
            return match request.method {
                Method::GET | Method::HEAD => {
                    Ok(([(header::CONTENT_TYPE, content_type)], text).into_response())
                }
                _ => Err(StatusCode::METHOD_NOT_ALLOWED.into()),
            };
        }
        if !is_of_own_page(&request.headers) {
            return Err(StatusCode::FORBIDDEN.into());
        }
        let named = path.strip_prefix(PREFIX).unwrap_or_default();
        if (&request.method, named) != (&Method::POST, "session")
            && !self.host.access.allows(&request.headers)
        {
            return Err(StatusCode::UNAUTHORIZED.into());
        }
        let query = request.uri.query();
        // Reads for one response count, too.
        let (answer, usage) = metered(async {
            match (request.method.as_str(), named) {
                ("GET", _) => self.read(named, query).await,
                ("POST", _) => self.change(named, &body, &request.headers).await,
                _ => Err(StatusCode::METHOD_NOT_ALLOWED.into()),
            }
        })
        .await;
        self.watches.spend(usage);
        Ok(match answer? {
            Answer::Json(value) => Json(value).into_response(),
            Answer::Events(feed) => feed.into_response(),
            Answer::Began(cookie) => ([(header::SET_COOKIE, cookie)], Json(json!({}))).into_response(),
        })
    }

    /// Requests that change nothing.
    async fn read(&self, named: &str, query: Option<&str>) -> Result<Answer, Refused> {
        Ok(Answer::Json(match named {
            "deployment" => details::deployment(&self.host, &self.run).await?,
            "namespace" => details::namespace(&self.host, queried(query)?).await?,
            "lobby" => {
                let NamedLobby { lobby, game } = queried(query)?;
                details::lobby(&self.host, &self.watches, &game, &lobby).await?
            }
            "server" => details::server(&self.host, &self.watches, queried(query)?).await?,
            "search" => search::found(&self.host, &self.watches, queried(query)?).await?,
            "request" => search::request(&self.host, &queried(query)?)?,
            "cost" => details::cost(&self.host),
            "finds" => self.counts()?.finds(self.host.ambient.now(), &self.watches).await?,
            "refusals" => {
                let now = self.host.ambient.now();
                self.counts()?.refusals_price(now, &queried(query)?, &self.watches).await?
            }
            "bill" => self.counts()?.bill(self.host.ambient.now()).await?,
            "events" => return Ok(Answer::Events(Box::new(self.feed(queried(query)?)))),
            _ => return Err(StatusCode::NOT_FOUND.into()),
        }))
    }

    fn counts(&self) -> Result<&Counts, Refused> {
        self.counts.as_ref().ok_or(Refused::Status(StatusCode::NOT_FOUND))
    }

    /// Requests that change something: never a GET.
    async fn change(&self, named: &str, body: &[u8], headers: &HeaderMap) -> Result<Answer, Refused> {
        Ok(Answer::Json(match named {
            "session" => {
                let Begun { token } = read(body)?;
                let Guard::Session(session) = &self.host.access else { return Ok(Answer::Json(json!({}))) };
                let cookie = session.begin(&token, headers).ok_or(StatusCode::UNAUTHORIZED)?;
                return Ok(Answer::Began(cookie));
            }
            // It changes nothing, but it costs: no page begins it by a link.
            "refusals" => self.counts()?.refusals(self.host.ambient.now(), &read(body)?).await?,
            // Reading commands go on: the host refuses the others.
            "call" if !self.host.may_change => {
                return Err(Refusal::from("this console may only look".to_owned()).into());
            }
            "call" => calls::call(&self.host, &self.watches, &self.tokens, read(body)?).await?,
            "command" => {
                let Command { words, text } = read(body)?;
                (self.host.commands)(Words { words, text }).await?
            }
            _ => return Err(StatusCode::NOT_FOUND.into()),
        }))
    }

    fn feed(&self, watched: Watched) -> Feed {
        let Watched { game, namespace, filter } = watched;
        let (watch, seen) = self.watches.watch(&game, &namespace);
        let (watches, tape) = (Arc::clone(&self.watches), self.host.tape.clone());
        let (closing, run) = (self.closing.subscribe(), Arc::clone(&self.run));
        let shown = Shown { watches, watch, seen, tape, closing, run };
        Feed::new(shown, self.host.ambient.clone(), self.host.kind, filter)
    }
}

fn queried<T: DeserializeOwned>(query: Option<&str>) -> Result<T, Refused> {
    of_query(query).ok_or_else(|| StatusCode::BAD_REQUEST.into())
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refused> {
    serde_json::from_slice(body).map_err(|_| StatusCode::BAD_REQUEST.into())
}

/// A file of the page: its type and its text.
fn file(path: &str) -> Option<(&'static str, &'static str)> {
    match path {
        "/" => return Some((HTML, PAGE)),
        errors::PATH => return Some((HTML, &errors::PAGE)),
        errors::COST_PATH => return Some((HTML, &errors::COST_PAGE)),
        _ => {}
    }
    let name = path.strip_prefix(PREFIX)?;
    FILES.iter().find(|file| file.name == name).map(|file| (file.content_type, file.text))
}
