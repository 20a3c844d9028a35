//! The console at the gateway: the page at `/`, and the record of all requests.

use std::{fmt, net::SocketAddr, sync::Arc};

use axum::response::Response as Answer;
use bytes::Bytes;
use http::{Request, Response, request};
use http_body_util::{BodyExt as _, Full};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use muster_console::{
    console::Console,
    guard::Guard,
    host::{Api, Host, Kind},
    tape::{Answered, Tape},
};
use shared::{auth::keys::TokenKeys, base::ambient::Ambient, store::client::Store};

use crate::{
    hints,
    observed::{Caller, named},
    requests::RequestLog,
};

/// The console, and the record of all requests: on its tape and in the log.
pub struct Shown {
    console: Console,
    tape: Arc<Tape>,
    log: Arc<RequestLog>,
    keys: Arc<TokenKeys>,
    store: Store,
}

impl fmt::Debug for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shown").finish_non_exhaustive()
    }
}

impl Shown {
    /// The console of the stack that listens at `base_url`, whose requests `log` notes, too.
    #[must_use]
    pub fn new(
        store: Store,
        keys: Arc<TokenKeys>,
        ambient: Ambient,
        base_url: String,
        log: Arc<RequestLog>,
    ) -> Self {
        let tape = Arc::new(Tape::new(ambient.now()));
        let held = Arc::clone(&keys);
        let name = "local".to_owned();
        let commands = muster::commands(store.clone(), Arc::clone(&keys), ambient.clone(), name.clone());
        let host = Host {
            name,
            kind: Kind::Local,
            api: api(base_url.clone()),
            api_url: base_url,
            store: store.clone(),
            ambient,
            keys: Arc::new(move || {
                let keys = Arc::clone(&held);
                Box::pin(async move { Ok(keys) })
            }),
            commands,
            access: Guard::ThisMachine,
            may_change: true,
            tape: Some(Arc::clone(&tape)),
            has_faults: true,
            counts: None,
        };
        Self { console: Console::new(host), tape, log, keys, store }
    }

    /// Answers a request for the page, or for what it shows.
    pub async fn answer(&self, request: &request::Parts, body: Bytes, peer: SocketAddr) -> Answer {
        self.console.answer(request, body, peer).await
    }

    /// Ends the streams that would keep connections open.
    pub fn close(&self) {
        self.console.close();
    }

    /// Notes a request and its answer.
    pub async fn note(&self, request: &request::Parts, body: &[u8], mut answered: Answered) {
        answered.named = named(body);
        if let Some(caller) = Caller::of(request, &self.keys) {
            if answered.hint.is_none() {
                answered.hint = hints::against(&answered, &caller, &self.store).await;
            }
            answered.got.lobby_id =
                answered.got.lobby_id.or_else(|| caller.lobby_id.map(|lobby_id| lobby_id.to_string()));
            answered.namespace_id = Some(caller.namespace_id);
        }
        self.log.note(&answered);
        self.tape.note(answered);
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
