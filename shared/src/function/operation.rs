//! One operation over HTTP: the one place that runs the Lambda loop and turns an [`Error`] into a response.
//! An operation never fails its invocation: every result becomes an HTTP response.
//!
//! Time is bounded everywhere: 3 s for the secrets of a version, 5 s for a captcha provider, 5 s for all
//! backends together, 5 s for a find; the wait for a starting lobby ends 25 s after the request came. A
//! function that may wait so long has 29 s. Half a second before Lambda would kill its function, an operation
//! gives up and responds 503. Later requests clean up as after a crash.

use std::{convert::Infallible, future::Future, io::Write as _, pin::Pin, process::ExitCode, sync::Arc};

use flate2::{Compression, write::GzEncoder};
use lambda_http::{
    Adapter, Body, Response,
    http::{HeaderName, HeaderValue, StatusCode, header},
    service_fn,
};
use serde::Serialize;
use serde_json::{Value, json};
use tracing::Instrument as _;

use crate::{
    base::{
        ambient::{Ambient, within},
        log,
    },
    function::{
        config::{Environment, InvalidConfig},
        instance::Instance,
        metrics::{Counter, Counts},
    },
    models::{errors::Error, seats::PlayerDetails},
    request::Request,
    rules::encodings::prefers_gzip,
    wire::explanation::Explanation,
};

/// The header of a response with the warnings of its request.
pub const WARNING_HEADER: &str = "muster-warning";

/// The largest body that is not compressed: it fits into one packet, or nearly.
const UNCOMPRESSED_BYTES_MAX: usize = 1_024;

/// One operation of the interface.
pub trait Operation: Sized + Send + Sync + 'static {
    /// The body of a success.
    type Output: Serialize + Send;

    /// The operation's name in logs and metrics, verb-noun.
    const NAME: &'static str;

    /// The query parameters that it knows, beside the origin, which every operation may get.
    const PARAMETERS: &'static [&'static str] = &[];

    /// The `cache-control` of a success, which depends on the token and the page that asks; without it, no
    /// cache keeps one.
    const CACHE_CONTROL: Option<&'static str> = None;

    /// Whether a success may be large, and is compressed for clients that accept gzip.
    const IS_COMPRESSED: bool = false;

    /// Makes the operation of the parts of `instance` that it needs.
    ///
    /// # Errors
    /// [`InvalidConfig`] when the environment lacks a variable that a part needs, or has an unusable one.
    fn start(instance: &Instance) -> Result<Self, InvalidConfig>;

    /// Answers one request.
    ///
    /// # Errors
    /// Every refusal of the operation, by its code.
    fn call(&self, request: &Request) -> impl Future<Output = Result<Self::Output, Error>> + Send;
}

/// Answers one gateway event with `operation`, before Lambda would kill the function: one log line, one
/// response.
pub async fn answer<O: Operation>(
    operation: &O,
    event: lambda_http::Request,
    ambient: &Ambient,
) -> Response<Body> {
    answer_counted(operation, event, ambient, None).await.0
}

/// The same, with the request's counts; an error links its code on the page `documentation`, if there is one.
pub async fn answer_counted<O: Operation>(
    operation: &O,
    event: lambda_http::Request,
    ambient: &Ambient,
    documentation: Option<&str>,
) -> (Response<Body>, Counts) {
    let request = Request::from(event);
    let id = request.id().into_owned();
    let span = tracing::info_span!("request", operation = O::NAME, request.id = %id);
    async {
        request.warn_of_unknown_parameters(O::PARAMETERS);
        // On the heap, because every future that contains it would reserve space for it.
        let called = Box::pin(operation.call(&request));
        let answered = match request.time_left(ambient) {
            // This is like a crash, after which later requests clean up.
            Some(left) => within(ambient, left, called).await.unwrap_or_else(|| Err(out_of_time())),
            None => called.await,
        };
        let outcome = answered.and_then(|output| {
            serde_json::to_vec(&output)
                .map_err(|error| Error::Bug(format!("a response did not serialize: {error}")))
        });
        let counts = Counts::of(request.trace(), outcome.as_ref().err());
        let mut response = match outcome {
            Ok(body) => {
                request.warn_of_unread_body();
                tracing::info!(status = 200, "the operation succeeded");
                succeed::<O>(&request, &id, body)
            }
            Err(error) => refuse(&error, &id, request.explanation(), documentation),
        };
        let warnings = request.warnings().and_then(|line| HeaderValue::try_from(line).ok());
        response.headers_mut().extend(warnings.map(|line| (HeaderName::from_static(WARNING_HEADER), line)));
        (response, counts)
    }
    .instrument(span)
    .await
}

/// The `main` of a function: [`run`] of its operation.
#[macro_export]
macro_rules! main {
    ($operation:ty) => {
        fn main() -> ::std::process::ExitCode {
            $crate::function::operation::run::<$operation>()
        }
    };
}

/// Runs the function of the operation until Lambda ends the process: the whole of a function's `main`.
///
/// A function that cannot start, or whose loop ends, logs the reason, and Lambda starts a new process.
#[must_use]
pub fn run<O: Operation>() -> ExitCode {
    log::log_json();
    let environment = Environment::of_process();
    let counter = Counter::of(&environment);
    let instance = Instance::of(environment);
    let started = O::start(&instance).map(|operation| {
        let served = Arc::new((operation, instance.ambient(), instance.documentation()));
        Box::new(move |event| -> Answering {
            let served = Arc::clone(&served);
            Box::pin(async move {
                let (operation, ambient, documentation) = &*served;
                answer_counted(operation, event, ambient, documentation.as_deref()).await
            })
        })
    });
    match started.map_err(Into::into).and_then(|answers| serve(O::NAME, instance, counter, answers)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(cause = %error, "the function ended");
            ExitCode::FAILURE
        }
    }
}

/// A future response, with the request's counts.
type Answering = Pin<Box<dyn Future<Output = (Response<Body>, Counts)> + Send>>;

/// The loop is not generic over operations, so that it is compiled once and not for each function.
fn serve(
    name: &'static str,
    instance: Instance,
    counter: Option<Counter>,
    answers: Box<dyn Fn(lambda_http::Request) -> Answering + Send + Sync>,
) -> Result<(), lambda_http::Error> {
    let served = Arc::new((answers, counter, instance.ambient()));
    let handler = service_fn(move |event| {
        let served = Arc::clone(&served);
        async move {
            let (answers, counter, ambient) = &*served;
            let (response, counts) = answers(event).await;
            let line = counter.as_ref().and_then(|counter| counter.line(name, counts, ambient.now()));
            if let Some(line) = line {
                log::print(&line);
            }
            Ok::<_, Infallible>(response)
        }
    });
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async move {
        instance.connect().await;
        drop(instance);
        lambda_runtime::run(Adapter::from(handler)).await
    })
}

fn out_of_time() -> Error {
    Error::Unavailable("the function's time was up before the operation was done".to_owned())
}

/// A success, kept and compressed as its operation allows.
fn succeed<O: Operation>(request: &Request, id: &str, body: Vec<u8>) -> Response<Body> {
    let accepted = request.header(header::ACCEPT_ENCODING.as_str()).filter(|_| O::IS_COMPRESSED);
    let compressed = accepted.filter(|accepted| prefers_gzip(accepted)).and_then(|_| gzip(&body));
    let is_compressed = compressed.is_some();
    let mut response = respond(StatusCode::OK, id, compressed.unwrap_or(body), None);
    let mut set = |name, value| drop(response.headers_mut().insert(name, HeaderValue::from_static(value)));
    if is_compressed {
        set(header::CONTENT_ENCODING, "gzip");
    }
    if let Some(cache_control) = O::CACHE_CONTROL {
        set(header::CACHE_CONTROL, cache_control);
    }
    if O::IS_COMPRESSED || O::CACHE_CONTROL.is_some() {
        set(header::VARY, "accept-encoding, authorization, origin");
    }
    response
}

/// `body` in gzip, if that is worth it.
fn gzip(body: &[u8]) -> Option<Vec<u8>> {
    if body.len() <= UNCOMPRESSED_BYTES_MAX {
        return None;
    }
    let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 4), Compression::fast());
    encoder.write_all(body).and_then(|()| encoder.finish()).ok()
}

/// The body of every error.
#[derive(Serialize)]
struct ErrorBody<'a> {
    code: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    documentation: Option<String>,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Metadata<'a>>,
    ray_id: &'a str,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Metadata<'a> {
    Values(Value),
    Player(&'a PlayerDetails),
}

fn refuse(
    error: &Error,
    id: &str,
    explanation: Option<Explanation>,
    documentation: Option<&str>,
) -> Response<Body> {
    let (status, code) = error.status_and_code();
    match error.cause() {
        Some(cause) => tracing::error!(status = status.as_u16(), code, cause, "the operation failed"),
        None => tracing::info!(status = status.as_u16(), code, "the operation was refused"),
    }
    let mut metadata = error.metadata();
    if let Some(explanation) = explanation {
        metadata.get_or_insert_with(|| json!({}))["explain"] = json!(explanation);
    }
    let documentation = documentation.map(|page| format!("{page}#{code}"));
    let metadata = error.player().map(Metadata::Player).or_else(|| metadata.map(Metadata::Values));
    let body = ErrorBody { code, documentation, message: error.to_string(), metadata, ray_id: id };
    let body = serde_json::to_vec(&body).unwrap_or_default();
    respond(status, id, body, error.retry_after_secs())
}

fn respond(status: StatusCode, id: &str, body: Vec<u8>, retry_after_secs: Option<u64>) -> Response<Body> {
    // Text, not binary: the gateway then needs no base64. What is compressed is never text.
    let body = String::from_utf8(body).map_or_else(|error| Body::Binary(error.into_bytes()), Body::Text);
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Ok(id) = HeaderValue::from_str(id) {
        headers.insert("x-request-id", id.clone());
        headers.insert("rvt-ray-id", id);
    }
    if let Some(secs) = retry_after_secs {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(secs));
    }
    response
}
