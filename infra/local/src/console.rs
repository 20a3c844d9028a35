//! The console at the gateway: the page at `/`, and the tape of all requests.

use std::{fmt, net::SocketAddr, sync::Arc};

use bytes::Bytes;
use http::{Request, Response, header::AUTHORIZATION, request};
use http_body_util::{BodyExt as _, Full};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use muster_console::{
    console::{Body, Console},
    guard::Access,
    host::{Api, Host, Kind},
    tape::{Answered, Tape},
};
use serde_json::Value;
use shared::{
    auth::keys::TokenKeys,
    base::{ambient::Ambient, usage::Usage},
    models::{ids::NamespaceId, token::Claims},
    store::client::Store,
    wire::explanation::Explanation,
};

/// Data of a function's response for the console alone.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// Its usage of the store.
    pub usage: Usage,
    /// Why a request for a seat came out so.
    pub explanation: Option<Explanation>,
}

/// The console, and what it reads off requests.
pub struct Shown {
    console: Console,
    tape: Arc<Tape>,
    keys: Arc<TokenKeys>,
}

impl fmt::Debug for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shown").finish_non_exhaustive()
    }
}

impl Shown {
    /// The console of the stack that listens at `base_url`.
    #[must_use]
    pub fn new(store: Store, keys: Arc<TokenKeys>, ambient: Ambient, base_url: String) -> Self {
        let tape = Arc::new(Tape::new(ambient.now()));
        let held = Arc::clone(&keys);
        let name = "local".to_owned();
        let commands = muster::commands(store.clone(), Arc::clone(&keys), ambient.clone(), name.clone());
        let host = Host {
            name,
            kind: Kind::Local,
            api: api(base_url.clone()),
            api_url: base_url,
            store,
            ambient,
            keys: Arc::new(move || {
                let keys = Arc::clone(&held);
                Box::pin(async move { Ok(keys) })
            }),
            commands,
            access: Access::ThisMachine,
            tape: Some(Arc::clone(&tape)),
        };
        Self { console: Console::new(host), tape, keys }
    }

    /// Answers a request for the page, or for what it shows.
    pub async fn answer(&self, request: &request::Parts, body: Bytes, peer: SocketAddr) -> Response<Body> {
        self.console.answer(request, body, peer).await
    }

    /// Ends the streams that would keep connections open.
    pub fn close(&self) {
        self.console.close();
    }

    /// Notes a request and its answer.
    pub fn note(&self, request: &request::Parts, body: &[u8], answered: Answered) {
        let namespace_id = self.namespace_of(request);
        let values = serde_json::from_slice(body).map(|body| values(&body)).unwrap_or_default();
        self.tape.note(Answered { namespace_id, values, ..answered });
    }

    /// The namespace that the request's token is of.
    fn namespace_of(&self, request: &request::Parts) -> Option<NamespaceId> {
        let header = request.headers.get(AUTHORIZATION)?.to_str().ok()?;
        let (_, token) = header.split_once(' ')?;
        match self.keys.verify_at_any_age(token.trim()).ok()? {
            Claims::Public(credential) | Claims::Development(credential, _) | Claims::Server(credential) => {
                Some(credential.namespace_id)
            }
            Claims::Lobby(claims) => Some(claims.server.namespace_id),
            Claims::Player(seat) => Some(seat.namespace_id),
            Claims::DevelopmentPlayer => None,
        }
    }
}

/// Values of a request for the tape; never a token.
fn values(body: &Value) -> Vec<String> {
    let names = ["game_modes", "game_mode", "regions", "region", "region_id", "lobby_id", "server_id"];
    let fields = names.iter().filter_map(|name| body.get(name));
    let texts = fields.flat_map(|value| match value {
        Value::Array(values) => values.iter().filter_map(Value::as_str).collect(),
        Value::String(text) => vec![text.as_str()],
        _ => Vec::new(),
    });
    let mut values: Vec<String> = texts.map(ToOwned::to_owned).collect();
    let tags = body.get("tags").and_then(Value::as_object).into_iter().flatten();
    values.extend(tags.map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default())));
    values
}

/// The entry of a response on the tape.
#[must_use]
pub fn said(response: &Response<lambda_http::Body>) -> Answered {
    let observed = response.extensions().get::<Observed>().cloned().unwrap_or_default();
    let status = response.status();
    let refused: Value = match response.body() {
        lambda_http::Body::Text(text) if !status.is_success() => {
            serde_json::from_str(text).unwrap_or_default()
        }
        _ => Value::Null,
    };
    let text = |name: &str| refused.get(name).and_then(Value::as_str).map(ToOwned::to_owned);
    let explanation = observed.explanation.filter(|found| found.resolved.is_some());
    let Usage { calls, read_units, write_units } = observed.usage;
    let explanation = explanation.map(|found| Explanation { calls, read_units, write_units, ..found });
    Answered {
        status: status.as_u16(),
        code: text("code"),
        message: text("message"),
        explanation,
        usage: observed.usage,
        ..Answered::default()
    }
}

/// The API by a connection of its own, as any client has one.
fn api(base_url: String) -> Api {
    let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
    Arc::new(move |request: Request<Bytes>| {
        let (client, base_url) = (client.clone(), base_url.clone());
        Box::pin(async move {
            let (mut parts, body) = request.into_parts();
            let uri = format!("{base_url}{}", parts.uri);
            parts.uri = uri.parse().map_err(|_| format!("{uri} is no address"))?;
            let answer = client.request(Request::from_parts(parts, Full::new(body))).await;
            let (parts, body) = answer.map_err(|error| error.to_string())?.into_parts();
            let body = body.collect().await.map_err(|error| error.to_string())?.to_bytes();
            Ok(Response::from_parts(parts, body))
        })
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_have_modes_and_tags_but_no_token() {
        let find = json!({ "game_modes": ["duel", "arena"], "regions": null, "tags": { "map": "x" } });
        assert_eq!(values(&find), ["duel", "arena", "map=x"]);
        assert!(values(&json!({ "player_token": "player_x", "captcha": { "hcaptcha": 1 } })).is_empty());
        assert!(values(&json!([1])).is_empty());
    }

    #[test]
    fn a_refusal_has_its_cost() {
        let body = json!({ "code": "X", "message": "why" }).to_string();
        let mut response = Response::builder().status(503).body(lambda_http::Body::Text(body)).unwrap();
        let usage = Usage { calls: 3, read_units: 1.0, write_units: 2.0 };
        response.extensions_mut().insert(Observed { usage, explanation: Some(Explanation::default()) });
        let said = said(&response);
        assert_eq!((said.status, said.code.as_deref(), said.usage), (503, Some("X"), usage));
        assert_eq!(said.explanation, None, "nothing was resolved: there is nothing to explain");
    }
}
