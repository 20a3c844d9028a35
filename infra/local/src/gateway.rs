//! The HTTP server of the local stack, which stands in for API Gateway.
//!
//! It matches a request to a route and builds API Gateway's event. The function's own runtime parses that
//! event, so that an operation gets the same request as when deployed. The gateway also sends API Gateway's
//! own responses (no route, too large, preflight, a failed function).

use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::response::IntoResponse as _;
use bytes::{Bytes, BytesMut};
use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, RETRY_AFTER, TRANSFER_ENCODING};
use http::{Method, Request, Response, StatusCode, request};
use http_body_util::BodyExt as _;
use hyper::body::{Body as Received, Incoming};
use muster_console::console::Console;
use muster_console::guard::protect;
use muster_console::listening::{self, HEADER_LIMIT_BYTES};
use muster_console::tape::Answered;
use percent_encoding::percent_decode_str;
use serde_json::json;
use shared::base::ambient::{Ambient, within};
use time::OffsetDateTime;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;
use uuid::Uuid;

use crate::addresses::Listening;
use crate::console::Shown;
use crate::cors::Cors;
use crate::event::{Arrival, EventError};
use crate::faults::{Fault, Faults, Kind};
use crate::hints;
use crate::local::{self, LocalHandler};
use crate::observed::said;
use crate::route::Route;
use crate::serve::service::Service;

#[cfg(test)]
mod tests;

/// Largest body that API Gateway accepts.
const BODY_LIMIT_BYTES: usize = 10 * 1024 * 1024;

/// How much of a larger body the gateway reads before it closes the connection.
const DISCARD_LIMIT_BYTES: usize = 4 * BODY_LIMIT_BYTES;

/// How long a client may take to send a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// How long API Gateway waits for a function.
const FUNCTION_TIMEOUT: Duration = Duration::from_secs(30);

/// Answers a request as the function of a route would.
pub type Handler = Arc<
    dyn Fn(lambda_http::Request) -> Pin<Box<dyn Future<Output = Response<lambda_http::Body>> + Send>>
        + Send
        + Sync,
>;

/// What the gateway sends.
pub type Answer = Response<Body>;

/// The routes of the local stack and the rules of its HTTP API.
pub struct Gateway {
    /// A more specific route precedes others that match the same path.
    routes: Vec<(String, Route, Handler)>,
    local: Vec<(Method, String, LocalHandler)>,
    cors: Cors,
    console: Option<Shown>,
    faults: Arc<Faults>,
    service: Option<Arc<Service>>,
    ambient: Ambient,
}

/// The route of a request, and what happens to it.
struct Found<'a> {
    key: &'a str,
    route: &'a Route,
    parameters: Vec<(&'a str, &'a str)>,
    handler: &'a Handler,
    fault: Option<Fault>,
}

impl Gateway {
    /// Creates a gateway with the template's routes and with `local` routes, whose paths begin with
    /// `/_local/`.
    pub fn new(
        routes: Vec<(Route, Handler)>,
        local: Vec<(Method, String, LocalHandler)>,
        cors: Cors,
        ambient: Ambient,
    ) -> Self {
        let keyed = |(route, handler): (Route, Handler)| (route.key(), route, handler);
        let mut routes: Vec<_> = routes.into_iter().map(keyed).collect();
        routes.sort_by_key(|(_, route, _)| route.path.specificity());
        Self { routes, local, cors, console: None, faults: Arc::default(), service: None, ambient }
    }

    /// The same, which has a page at `/`.
    #[must_use]
    pub fn with_console(self, console: Shown) -> Self {
        Self { console: Some(console), ..self }
    }

    /// The same, which makes `faults` for requests of the template's routes.
    #[must_use]
    pub fn with_faults(self, faults: Arc<Faults>) -> Self {
        Self { faults, ..self }
    }

    /// The same for players, who come through proxies, in no more than a bounded number, and are counted. It
    /// has no local routes.
    #[must_use]
    pub fn with_service(self, service: Arc<Service>) -> Self {
        Self { service: Some(service), ..self }
    }

    /// Serves HTTP/1.1 until `shutdown` resolves, then lets requests under way finish, for at most five
    /// seconds.
    pub async fn serve(self, listening: Listening, shutdown: impl Future<Output = ()>) {
        let gateway = Arc::new(self);
        let (open, closed) = watch::channel(());
        let mut serving = JoinSet::new();
        for listener in listening.into_listeners() {
            let (gateway, mut closed) = (Arc::clone(&gateway), closed.clone());
            let answer = move |request: Request<Incoming>, peer| {
                let gateway = Arc::clone(&gateway);
                async move { gateway.answer(request, peer).await }
            };
            let shutdown = async move {
                let _closed = closed.changed().await;
            };
            serving.spawn(listening::serve(listener, Some(HEADER_LIMIT_BYTES), answer, shutdown));
        }
        shutdown.await;
        gateway.console.iter().for_each(Shown::close);
        drop(open);
        while serving.join_next().await.is_some() {}
    }

    /// The answer to a request; `None`, by a fault alone, closes the connection.
    async fn answer(
        &self,
        request: Request<impl Received<Data = Bytes>>,
        peer: SocketAddr,
    ) -> Option<Answer> {
        let (request, body) = request.into_parts();
        let Ok(path) = percent_decode_str(request.uri.path()).decode_utf8() else {
            return Some(refusal(StatusCode::BAD_REQUEST));
        };
        if self.service.is_none() && local::is_local(&path) {
            let mut answer = self.answer_locally(request, body, peer).await.unwrap_or_else(refusal);
            protect(answer.headers_mut());
            return Some(answer);
        }
        if let Some(console) = self.console.as_ref().filter(|_| Console::is_at(&path)) {
            return Some(match read(body).await {
                Ok(body) => console.answer(&request, body, peer).await,
                Err(status) => refusal(status),
            });
        }

        let request_id = Uuid::new_v4().to_string();
        let mut fault = None;
        let mut answer = if self.cors.is_preflight(&request) {
            (StatusCode::NO_CONTENT, self.cors.preflight(&request.headers)).into_response()
        } else {
            let found = self.found(&request.method, &path);
            fault = found.as_ref().and_then(|found| found.fault);
            let answer = self.invoke(&request, body, &path, peer, &request_id, found).await;
            let mut answer = answer.unwrap_or_else(refusal);
            self.cors.apply(&request.headers, answer.headers_mut());
            answer
        };
        if let Ok(request_id) = HeaderValue::try_from(request_id) {
            answer.headers_mut().insert("apigw-requestid", request_id);
        }
        match fault {
            Some(fault) => fault.deliver(answer, &self.ambient).await,
            None => Some(answer),
        }
    }

    /// The route of a request, and the request's fault.
    fn found<'a>(&'a self, method: &Method, path: &'a str) -> Option<Found<'a>> {
        self.routes.iter().filter(|(_, route, _)| route.method == method).find_map(|(key, route, handler)| {
            let parameters = route.path.parameters_of(path)?;
            Some(Found { key, route, parameters, handler, fault: self.faults.next(key) })
        })
    }

    /// The response of a route's function, which the console shows.
    async fn invoke(
        &self,
        request: &request::Parts,
        body: impl Received<Data = Bytes>,
        path: &str,
        peer: SocketAddr,
        request_id: &str,
        found: Option<Found<'_>>,
    ) -> Result<Answer, StatusCode> {
        let peer = match &self.service {
            Some(service) => service.client(peer, &request.headers),
            None => peer,
        };
        let began = self.ambient.now();
        let fault = found.as_ref().and_then(|found| found.fault);
        let mut received = Bytes::new();
        let answered = match &found {
            Some(Found { key: route_key, parameters, handler, .. }) => match read(body).await {
                Ok(body) => {
                    received = body;
                    let (body, time) = (&received, OffsetDateTime::now_utc());
                    let arrival =
                        Arrival { request, body, path, route_key, parameters, peer, request_id, time };
                    self.function_with(fault, arrival, handler).await
                }
                Err(status) => Err(status),
            },
            None => Err(StatusCode::NOT_FOUND),
        };
        if let Some(service) = &self.service {
            let operation = found.as_ref().and_then(|found| found.route.code_uri.strip_prefix("functions/"));
            service.note(
                operation,
                answered.as_ref().map_err(|status| *status),
                self.ambient.now().since(began),
            );
        }
        if let Some(console) = &self.console {
            let operation = found.and_then(|found| found.route.code_uri.strip_prefix("functions/"));
            let said = match &answered {
                Ok(response) => said(operation.unwrap_or_default(), response),
                Err(status) => {
                    let routes = self.routes.iter().map(|(_, route, _)| route);
                    let is_lost = operation.is_none();
                    let hint = is_lost.then(|| hints::of_routes(routes, &request.method, path)).flatten();
                    Answered { status: status.as_u16(), hint, ..Answered::default() }
                }
            };
            let is_lost = fault.is_some_and(|fault| fault.kind == Kind::RequestLost);
            let answered = Answered {
                at: began,
                took: self.ambient.now().since(began),
                status: if is_lost { 0 } else { said.status },
                hint: fault.map(|fault| fault.words().to_owned()).or(said.hint),
                method: request.method.to_string(),
                path: path.to_owned(),
                operation: operation.map(ToOwned::to_owned),
                ..said
            };
            console.note(request, &received, answered).await;
        }
        answered.map(from_function)
    }

    /// The function's response, where a fault does not prevent it.
    async fn function_with(
        &self,
        fault: Option<Fault>,
        arrival: Arrival<'_>,
        handler: &Handler,
    ) -> Result<Response<lambda_http::Body>, StatusCode> {
        let Some(fault) = fault else { return self.function(arrival, handler).await };
        if let Some(refusal) = fault.refusal() {
            return Ok(refusal);
        }
        match fault.kind {
            Kind::RequestLost => Ok(Response::default()),
            Kind::Delayed => {
                self.ambient.sleep(fault.half_delay()).await;
                let answered = self.function(arrival, handler).await;
                self.ambient.sleep(fault.half_delay()).await;
                answered
            }
            Kind::Repeated => {
                let first = self.function(arrival, handler).await;
                let second = self.function(arrival, handler).await;
                if fault.answers_first() { first } else { second }
            }
            _ => self.function(arrival, handler).await,
        }
    }

    async fn function(
        &self,
        arrival: Arrival<'_>,
        handler: &Handler,
    ) -> Result<Response<lambda_http::Body>, StatusCode> {
        // Held until the function ends, even if its client does not wait for that.
        let place = match self.service.as_ref().map(|service| service.gate.enter()) {
            Some(None) => return Ok(busy()),
            Some(place) => place,
            None => None,
        };
        let route_key = arrival.route_key;
        let event = arrival.to_event().map_err(|error| match error {
            EventError::Host => StatusCode::BAD_REQUEST,
            EventError::Json(_) => StatusCode::INTERNAL_SERVER_ERROR,
        })?;

        // A task of its own, so that a panic stays in it, and as on Lambda it continues when the client
        // disconnects.
        let handler = Arc::clone(handler);
        let invocation = tokio::spawn(async move {
            let _place = place;
            let request = lambda_http::request::from_str(&event)?;
            Ok::<_, serde_json::Error>(handler(request).await)
        });
        let answered = within(&self.ambient, FUNCTION_TIMEOUT, invocation);
        let answered = match &self.service {
            None => answered.await,
            // Whoever waits for a lobby may not hold up a stop. The seat stays, and a repetition finds it.
            Some(service) => tokio::select! {
                biased;
                answered = answered => answered,
                () = service.until_cut() => return Ok(busy()),
            },
        };
        match answered {
            Some(Ok(Ok(response))) => Ok(response),
            Some(Ok(Err(error))) => {
                tracing::error!(http.route = route_key, %error, "the runtime cannot read the event");
                Err(StatusCode::INTERNAL_SERVER_ERROR)
            }
            Some(Err(error)) => {
                tracing::error!(http.route = route_key, %error, "the function panicked");
                Err(StatusCode::INTERNAL_SERVER_ERROR)
            }
            None => {
                tracing::error!(http.route = route_key, "the function did not respond in time");
                Err(StatusCode::SERVICE_UNAVAILABLE)
            }
        }
    }

    async fn answer_locally(
        &self,
        request: request::Parts,
        body: impl Received<Data = Bytes>,
        peer: SocketAddr,
    ) -> Result<Answer, StatusCode> {
        if !local::may_use(&request, peer) {
            return Err(StatusCode::FORBIDDEN);
        }
        let (_, _, handler) = self
            .local
            .iter()
            .find(|(method, path, _)| *method == request.method && path == request.uri.path())
            .ok_or(StatusCode::NOT_FOUND)?;
        let request = Request::from_parts(request, read(body).await?);
        match tokio::spawn(handler(request)).await {
            Ok((status, value)) => Ok((status, Json(value)).into_response()),
            Err(error) => {
                tracing::error!(%error, "a local route panicked");
                Err(StatusCode::INTERNAL_SERVER_ERROR)
            }
        }
    }
}

/// Reads a whole body. It also reads one that is too large, within bounds, because a client that is still
/// sending reads no response.
async fn read(body: impl Received<Data = Bytes>) -> Result<Bytes, StatusCode> {
    let reading = async {
        let mut body = pin!(body);
        let (mut bytes, mut size) = (BytesMut::new(), 0);
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| StatusCode::BAD_REQUEST)?;
            let data = frame.into_data().unwrap_or_default();
            size += data.len();
            if size <= BODY_LIMIT_BYTES {
                bytes.extend_from_slice(&data);
            } else if size > DISCARD_LIMIT_BYTES {
                break;
            }
        }
        if size > BODY_LIMIT_BYTES {
            return Err(StatusCode::PAYLOAD_TOO_LARGE);
        }
        Ok(bytes.freeze())
    };
    timeout(BODY_TIMEOUT, reading).await.unwrap_or(Err(StatusCode::REQUEST_TIMEOUT))
}

/// Turns a function's response into that of API Gateway.
fn from_function(response: Response<lambda_http::Body>) -> Answer {
    let (mut parts, body) = response.into_parts();
    for of_connection in [CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING] {
        parts.headers.remove(of_connection);
    }
    let body = match body {
        lambda_http::Body::Text(text) => Bytes::from(text),
        lambda_http::Body::Binary(bytes) => Bytes::from(bytes),
        _ => Bytes::new(),
    };
    if !body.is_empty() {
        let text = HeaderValue::from_static("text/plain;charset=UTF-8");
        parts.headers.entry(CONTENT_TYPE).or_insert(text);
    }
    Response::from_parts(parts, Body::from(body))
}

/// The response while there is no place for a request, or the game moves elsewhere.
fn busy() -> Response<lambda_http::Body> {
    let status = StatusCode::SERVICE_UNAVAILABLE;
    let message = json!({ "message": status.canonical_reason() }).to_string();
    let mut response = Response::new(lambda_http::Body::Text(message));
    *response.status_mut() = status;
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("2"));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Returns API Gateway's own response for `status`.
fn refusal(status: StatusCode) -> Answer {
    let message = match status {
        StatusCode::PAYLOAD_TOO_LARGE => "Request Entity Too Large",
        status => status.canonical_reason().unwrap_or_default(),
    };
    (status, Json(json!({ "message": message }))).into_response()
}
