//! The Lambda service as a function's process sees it: the runtime API, on a loopback port of its own.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
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
use shared::ambient::{Ambient, Timestamp};
use tokio::{
    net::TcpListener,
    sync::{Mutex, mpsc},
    time::timeout,
};

use crate::artefacts::{Ended, PATIENCE, Program};

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
}

/// One instance of a function: its process and the service that feeds it.
pub struct Instance {
    program: Program,
    events: mpsc::UnboundedSender<Event>,
    reports: mpsc::UnboundedReceiver<Report>,
    ambient: Ambient,
}

impl Instance {
    /// Starts the function whose binary is `name`, with `environment` and what Lambda adds to it.
    pub async fn start(name: &str, environment: &BTreeMap<String, String>) -> Self {
        let (events, waiting) = mpsc::unbounded_channel();
        let (outcomes, reports) = mpsc::unbounded_channel();
        let address = serve(waiting, outcomes).await;
        let mut environment = environment.clone();
        environment.extend(lambda_environment(name, address));
        Self { program: Program::start(name, &[], &environment), events, reports, ambient: Ambient::system() }
    }

    /// Hands out one event and waits for what the function says of it.
    pub async fn invoke(&mut self, event: &str) -> Outcome {
        let id = self.ambient.uuid().to_string();
        let event = Event { id: id.clone(), payload: event.to_owned() };
        self.events.send(event).expect("the service runs");
        let report = tokio::select! {
            report = timeout(PATIENCE, self.reports.recv()) => report.ok().flatten(),
            _ = self.program.wait() => None,
        };
        let Some(report) = report else {
            panic!("no answer: {:?}", self.program.kill().await);
        };
        assert_eq!(report.id, id, "an answer to another event");
        report.outcome
    }

    /// Ends the function as Lambda does, without warning; all that it logged.
    pub async fn kill(mut self) -> Ended {
        self.program.kill().await
    }
}

/// What Lambda sets for every function, at the size and time-out that are of no matter here.
pub fn lambda_environment(name: &str, runtime_api: SocketAddr) -> BTreeMap<String, String> {
    let runtime_api = runtime_api.to_string();
    let variables = [
        ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128"),
        ("AWS_LAMBDA_FUNCTION_NAME", name),
        ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST"),
        ("AWS_LAMBDA_LOG_FORMAT", "JSON"),
        ("AWS_LAMBDA_LOG_LEVEL", "INFO"),
        ("AWS_LAMBDA_LOG_GROUP_NAME", "muster"),
        ("AWS_LAMBDA_LOG_STREAM_NAME", "test"),
        ("AWS_LAMBDA_RUNTIME_API", &runtime_api),
        ("AWS_REGION", "us-east-1"),
        ("_HANDLER", "bootstrap"),
    ];
    variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

async fn serve(
    waiting: mpsc::UnboundedReceiver<Event>,
    outcomes: mpsc::UnboundedSender<Report>,
) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let waiting = Arc::new(Mutex::new(waiting));
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.expect("a connection");
            let (waiting, outcomes) = (Arc::clone(&waiting), outcomes.clone());
            let service = service_fn(move |request| {
                let (waiting, outcomes) = (Arc::clone(&waiting), outcomes.clone());
                async move { Ok::<_, Infallible>(answer(request, &waiting, &outcomes).await) }
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    address
}

async fn answer(
    request: Request<Incoming>,
    waiting: &Mutex<mpsc::UnboundedReceiver<Event>>,
    outcomes: &mpsc::UnboundedSender<Report>,
) -> Response<Full<Bytes>> {
    let (request, body) = request.into_parts();
    let path: Vec<&str> = request.uri.path().trim_matches('/').split('/').collect();
    let outcome = match (&request.method, path.as_slice()) {
        (&Method::GET, ["2018-06-01", "runtime", "invocation", "next"]) => {
            return next(waiting).await;
        }
        (&Method::POST, ["2018-06-01", "runtime", "invocation", _, "response"]) => Outcome::Answered,
        (&Method::POST, ["2018-06-01", "runtime", "invocation", _, "error"]) => Outcome::Failed,
        _ => return respond(StatusCode::NOT_FOUND, "{}"),
    };
    let body = body.collect().await.expect("a whole body").to_bytes();
    let said = serde_json::from_slice(&body).expect("functions speak JSON");
    let report = Report { id: path[3].to_owned(), outcome: outcome(said) };
    // A test that has its answer no longer listens.
    let _ = outcomes.send(report);
    respond(StatusCode::ACCEPTED, r#"{"status":"OK"}"#)
}

/// Waits for the next event, as long as it takes.
async fn next(waiting: &Mutex<mpsc::UnboundedReceiver<Event>>) -> Response<Full<Bytes>> {
    let Some(Event { id, payload }) = waiting.lock().await.recv().await else {
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

fn respond(status: StatusCode, body: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response
}
