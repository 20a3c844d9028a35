//! The Lambda service as a function's process sees it: the runtime API, on a loopback port of its own.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::{Duration, Instant},
};

use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::{
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use shared::base::ambient::{Ambient, Timestamp};
use tokio::{
    net::TcpListener,
    sync::{Mutex, mpsc},
};

/// What a function said of one event.
#[derive(Debug)]
pub enum Outcome {
    /// Its response, for the gateway.
    Answered(Value),
    /// That it failed.
    Failed(Value),
}

impl Outcome {
    /// The response, which there must be.
    #[must_use]
    pub fn answer(self) -> Value {
        match self {
            Self::Answered(response) => response,
            Self::Failed(error) => panic!("the invocation failed: {error}"),
        }
    }
}

struct Event {
    id: String,
    payload: String,
}

struct Report {
    id: String,
    outcome: Outcome,
    at: Instant,
}

/// The service that feeds one function's process.
pub struct RuntimeApi {
    address: SocketAddr,
    events: mpsc::UnboundedSender<Event>,
    reports: mpsc::UnboundedReceiver<Report>,
    polled: mpsc::UnboundedReceiver<Instant>,
    ambient: Ambient,
}

impl RuntimeApi {
    /// Starts the service.
    pub async fn start() -> Self {
        let (events, waiting) = mpsc::unbounded_channel();
        let (said, reports) = mpsc::unbounded_channel();
        let (polls, polled) = mpsc::unbounded_channel();
        let waiting = Arc::new(Mutex::new(waiting));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.expect("a connection");
                let service =
                    Service { waiting: Arc::clone(&waiting), said: said.clone(), polls: polls.clone() };
                let service = service_fn(move |request| {
                    let service = service.clone();
                    async move { Ok::<_, Infallible>(service.answer(request).await) }
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Self { address, events, reports, polled, ambient: Ambient::system() }
    }

    /// The environment that Lambda sets for the function `name`; its memory size and timeout do not matter
    /// here.
    #[must_use]
    pub fn environment(&self, name: &str) -> BTreeMap<String, String> {
        environment(name, self.address)
    }

    /// Waits for the next time that the function requests an event, and returns it. The first time is the end
    /// of its init.
    pub async fn ready(&mut self) -> Instant {
        self.polled.recv().await.expect("the service runs")
    }

    /// Hands out one event, and returns the function's report and the time at which it arrived.
    pub async fn invoke(&mut self, event: &str) -> (Outcome, Instant) {
        let id = self.ambient.uuid().to_string();
        self.events.send(Event { id: id.clone(), payload: event.to_owned() }).expect("the service runs");
        let report = self.reports.recv().await.expect("the service runs");
        assert_eq!(report.id, id, "an answer to another event");
        (report.outcome, report.at)
    }
}

/// The environment that Lambda sets for the function `name` whose runtime API is at `address`.
#[must_use]
pub fn environment(name: &str, address: SocketAddr) -> BTreeMap<String, String> {
    let address = address.to_string();
    let variables = [
        ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128"),
        ("AWS_LAMBDA_FUNCTION_NAME", name),
        ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST"),
        ("AWS_LAMBDA_LOG_FORMAT", "JSON"),
        ("AWS_LAMBDA_LOG_LEVEL", "INFO"),
        ("AWS_LAMBDA_LOG_GROUP_NAME", "muster"),
        ("AWS_LAMBDA_LOG_STREAM_NAME", "test"),
        ("AWS_LAMBDA_RUNTIME_API", &address),
        ("AWS_REGION", "us-east-1"),
        ("_HANDLER", "bootstrap"),
    ];
    variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

#[derive(Clone)]
struct Service {
    waiting: Arc<Mutex<mpsc::UnboundedReceiver<Event>>>,
    said: mpsc::UnboundedSender<Report>,
    polls: mpsc::UnboundedSender<Instant>,
}

impl Service {
    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (request, body) = request.into_parts();
        let path: Vec<&str> = request.uri.path().trim_matches('/').split('/').collect();
        let (id, outcome) = match (&request.method, path.as_slice()) {
            (&Method::GET, ["2018-06-01", "runtime", "invocation", "next"]) => return self.next().await,
            (&Method::POST, ["2018-06-01", "runtime", "invocation", id, "response"]) => {
                (id, Outcome::Answered as fn(Value) -> Outcome)
            }
            (&Method::POST, ["2018-06-01", "runtime", "invocation", id, "error"]) => {
                (id, Outcome::Failed as fn(Value) -> Outcome)
            }
            _ => return respond(StatusCode::NOT_FOUND, "{}"),
        };
        let body = body.collect().await.expect("a whole body").to_bytes();
        let at = Instant::now();
        let said = serde_json::from_slice(&body).expect("functions speak JSON");
        // A test that has its answer no longer listens.
        let _ = self.said.send(Report { id: (*id).to_owned(), outcome: outcome(said), at });
        respond(StatusCode::ACCEPTED, r#"{"status":"OK"}"#)
    }

    /// Waits for the next event, as long as it takes.
    async fn next(&self) -> Response<Full<Bytes>> {
        let _nobody_listens = self.polls.send(Instant::now());
        let Some(Event { id, payload }) = self.waiting.lock().await.recv().await else {
            return respond(StatusCode::GONE, "{}");
        };
        let deadline: Timestamp = Ambient::system().now() + Duration::from_secs(10);
        Response::builder()
            .header("content-type", "application/json")
            .header("lambda-runtime-aws-request-id", id)
            .header("lambda-runtime-deadline-ms", deadline.to_string())
            .header(
                "lambda-runtime-invoked-function-arn",
                "arn:aws:lambda:us-east-1:123456789012:function:muster",
            )
            .header(
                "lambda-runtime-trace-id",
                "Root=1-69aea7d7-0a1b2c3d4e5f60718293a4b5;Parent=0a1b2c3d4e5f6071;Sampled=0",
            )
            .body(payload.into())
            .expect("a response")
    }
}

fn respond(status: StatusCode, body: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response
}
