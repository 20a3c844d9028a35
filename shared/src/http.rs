//! The HTTP edge: gateway event in, operation, response out.
//!
//! This is the one place that turns an [`Error`] into a response and the one place that runs the Lambda loop. An
//! operation never fails its invocation: whatever it returns becomes an HTTP answer.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    convert::Infallible,
    fmt,
    future::Future,
    marker::PhantomData,
    net::IpAddr,
    pin::Pin,
    str::FromStr,
    sync::Arc,
    time::Duration,
};

use lambda_http::{
    Adapter, Body, RequestExt as _, Response,
    aws_lambda_events::apigw::ApiGatewayV2httpRequestContext,
    http::{HeaderValue, StatusCode, header},
    request::RequestContext,
    service_fn,
};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{DeserializeOwned, MapAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::{Value, json, value::RawValue};
use tracing::Instrument as _;

use crate::{
    ambient::{Ambient, Timestamp, within},
    config::Environment,
    errors::Error,
    explaining::{EXPLAIN_HEADER, Explanation, Trace},
    metrics::{Counter, Counts},
    rules::{
        geography::Coordinates,
        handed_on::{self, DEPTH_MAX, HandedOn},
        origin::OriginHost,
    },
    telemetry,
};

/// The largest body that an operation reads, in bytes (decisions on HTTP conventions).
pub const BODY_BYTES_MAX: usize = 64 * 1024;

/// How long before its function is killed an operation is given up, so that its answer gets out: sending takes milliseconds,
/// also with the processor of 128 MB.
const ANSWER_TIME: Duration = Duration::from_millis(500);

/// The header by which a client names a request (decisions on lobbies.find).
const IDEMPOTENCY_HEADER: &str = "idempotency-key";
/// The longest such name, in characters.
const IDEMPOTENCY_KEY_CHARS_MAX: usize = 64;
/// The header that the edge proves itself with.
const EDGE_SECRET_HEADER: &str = "x-muster-edge-secret";

/// One operation of the interface.
pub trait Operation: Send + Sync + 'static {
    /// The body of a success.
    type Output: Serialize + Send;

    /// What the operation is called in logs and metrics, verb-noun.
    const NAME: &'static str;

    /// Answers one request.
    ///
    /// # Errors
    /// Every refusal of the operation, by its code.
    fn call(&self, request: &Request) -> impl Future<Output = Result<Self::Output, Error>> + Send;
}

/// The body `{}` of an operation whose response is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Empty {}

/// One request, as the gateway handed it over.
#[derive(Debug)]
pub struct Request(lambda_http::Request, Trace);

impl Request {
    /// The path parameter `name`.
    ///
    /// # Errors
    /// [`Error::NotFound`] when it does not have the form of an identifier.
    pub fn path<T: FromStr>(&self, name: &str) -> Result<T, Error> {
        self.0
            .path_parameters_ref()
            .and_then(|parameters| parameters.first(name))
            .and_then(|text| text.parse().ok())
            .ok_or(Error::NotFound)
    }

    /// The token of `Authorization: Bearer`, if the header has that form.
    #[must_use]
    pub fn bearer(&self) -> Option<&str> {
        // Not `header`: a token beyond ASCII is a broken one, not none.
        let text = str::from_utf8(self.0.headers().get(header::AUTHORIZATION)?.as_bytes()).ok()?;
        let (scheme, token) = text.split_once(' ')?;
        let token = token.trim_matches([' ', '\t']);
        (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
    }

    /// A header's text; nothing when it is absent or not visible ASCII.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.0.headers().get(name)?.to_str().ok()
    }

    /// The host of the page that asks: of the header `Origin`, else of the query parameter `origin`.
    #[must_use]
    pub fn origin(&self) -> Option<OriginHost> {
        let query = || self.query("origin").map(ToOwned::to_owned);
        let text = self.header(header::ORIGIN.as_str()).map(ToOwned::to_owned).or_else(query)?;
        OriginHost::parse(&text)
    }

    /// Whether the request carries the secret that only the deployment's edge knows.
    fn came_through_edge(&self, secret: &str) -> bool {
        let shown = self.header(EDGE_SECRET_HEADER).unwrap_or_default();
        // Digests first: comparing them in variable time tells nothing of the secret.
        let digest = |text: &str| ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
        digest(shown).as_ref() == digest(secret).as_ref()
    }

    /// Where the client is, by the word of the edge: headers count only with `edge_secret`, which the edge adds, since anybody
    /// can send the others to the API's own address.
    #[must_use]
    pub fn viewer(&self, edge_secret: Option<&str>) -> Option<Coordinates> {
        if !self.came_through_edge(edge_secret?) {
            return None;
        }
        let degrees = |name| self.header(name)?.parse().ok();
        Coordinates::new(degrees("cloudfront-viewer-latitude")?, degrees("cloudfront-viewer-longitude")?)
    }

    /// The address of the client: by the word of the edge, which alone may name another than the gateway saw (see
    /// [`Request::viewer`]); else the one that the gateway saw.
    #[must_use]
    pub fn client_ip(&self, edge_secret: Option<&str>) -> Option<IpAddr> {
        let edge = edge_secret.filter(|secret| self.came_through_edge(secret));
        let viewer = edge.and_then(|_| self.header("cloudfront-viewer-address")?.rsplit_once(':'));
        // CloudFront writes IPv6 addresses without the brackets that others put before a port.
        let address = |(address, _port): (&str, &str)| address.trim_matches(['[', ']']).parse().ok();
        viewer.and_then(address).or_else(|| self.source_ip())
    }

    /// The address that the request came from, by the gateway's own word.
    #[must_use]
    pub fn source_ip(&self) -> Option<IpAddr> {
        self.gateway_context()?.http.source_ip.as_deref()?.parse().ok()
    }

    /// The name that the client gave its request, so that it can repeat it: 1 to 64 visible ASCII characters.
    ///
    /// # Errors
    /// [`Error::BadHeader`] for any other, and for more than one.
    pub fn idempotency_key(&self) -> Result<Option<&str>, Error> {
        let refused = || Error::BadHeader("idempotency-key");
        let mut values = self.0.headers().get_all(IDEMPOTENCY_HEADER).iter();
        let Some(value) = values.next() else { return Ok(None) };
        if values.next().is_some() {
            return Err(refused());
        }
        let is_visible = |text: &&str| text.bytes().all(|byte| byte.is_ascii_graphic());
        let key = value.to_str().ok().filter(is_visible);
        key.filter(|key| (1..=IDEMPOTENCY_KEY_CHARS_MAX).contains(&key.len())).map(Some).ok_or_else(refused)
    }

    /// What is noted of the request on its way.
    #[must_use]
    pub const fn trace(&self) -> &Trace {
        &self.1
    }

    /// Whether whoever asks wants to know why it came out as it did.
    #[must_use]
    pub fn wants_explanation(&self) -> bool {
        self.header(EXPLAIN_HEADER) == Some("1")
    }

    /// Why the request came out as it did, when that is wanted and may be told.
    #[must_use]
    pub fn explanation(&self) -> Option<Explanation> {
        self.wants_explanation().then(|| self.trace().explanation()).flatten()
    }

    /// The body as JSON; an empty body is the empty object.
    ///
    /// # Errors
    /// [`Error::BodyTooLarge`]; [`Error::BadBody`] for anything that is no JSON.
    pub fn json(&self) -> Result<JsonBody<'_>, Error> {
        let text = self.body_bytes()?;
        let value = serde_json::from_slice(text).map_err(|error| bad_body(".", &problem(text, &error)))?;
        Ok(JsonBody { text, value })
    }

    /// The body as the JSON text that it is, of any kind; an empty body is the empty object.
    ///
    /// # Errors
    /// As [`Request::json`].
    pub fn raw_json(&self) -> Result<Box<RawValue>, Error> {
        let bytes = self.body_bytes()?;
        serde_json::from_slice(bytes).map_err(|error| bad_body(".", &error.to_string()))
    }

    fn body_bytes(&self) -> Result<&[u8], Error> {
        let bytes = self.0.body().as_ref();
        if bytes.len() > BODY_BYTES_MAX {
            return Err(Error::BodyTooLarge);
        }
        Ok(if bytes.iter().all(u8::is_ascii_whitespace) { b"{}" } else { bytes })
    }

    /// The query parameter `name`.
    #[must_use]
    pub fn query(&self, name: &str) -> Option<&str> {
        self.0.query_string_parameters_ref()?.first(name)
    }

    /// The body as `T`.
    ///
    /// # Errors
    /// As [`Request::json`] and [`JsonBody::parse`].
    pub fn body<T: DeserializeOwned>(&self) -> Result<T, Error> {
        self.json()?.parse()
    }

    /// The gateway's identifier of this request, which answers and logs carry.
    #[must_use]
    pub fn id(&self) -> Cow<'_, str> {
        let gateway = self.gateway_context().and_then(|context| context.request_id.as_deref());
        let lambda = || self.0.lambda_context_ref().map(|context| context.request_id.as_str());
        match gateway.or_else(lambda) {
            Some(id) if !id.is_empty() => Cow::Borrowed(id),
            _ => Cow::Owned(uuid::Uuid::new_v4().to_string()),
        }
    }

    /// How long its function has for it; nothing when whoever runs the function does not say, or says a time long past.
    fn time_left(&self, ambient: &Ambient) -> Option<Duration> {
        let killed_at = Timestamp(self.0.lambda_context_ref()?.deadline);
        let left = killed_at.since(ambient.now());
        (!left.is_zero()).then(|| left.saturating_sub(ANSWER_TIME))
    }

    fn gateway_context(&self) -> Option<&ApiGatewayV2httpRequestContext> {
        match self.0.request_context_ref()? {
            RequestContext::ApiGatewayV2(context) => Some(context),
            _ => None,
        }
    }
}

impl From<lambda_http::Request> for Request {
    fn from(event: lambda_http::Request) -> Self {
        Self(event, Trace::default())
    }
}

/// Why a text is no value: it breaks JSON's grammar, or some parser could not read it.
fn problem(text: &[u8], error: &serde_json::Error) -> String {
    let is_grammatical = serde_json::from_slice::<&RawValue>(text).is_ok();
    if is_grammatical { handed_on::problem(error) } else { error.to_string() }
}

/// A body whose text is known to be JSON, not yet what is in it.
#[derive(Clone, Debug)]
pub struct JsonBody<'a> {
    text: &'a [u8],
    value: Value,
}

impl JsonBody<'_> {
    /// The body as one text for all bodies that parse alike: names in order, without fields that are `null`.
    #[must_use]
    pub fn canonical(&self) -> String {
        let mut value = self.value.clone();
        strip_nulls(&mut value, &[]);
        value.to_string()
    }

    /// The body without fields that are `null` in the objects that the object at `pointer` holds, however deep, but with
    /// those below fields named `kept`: for types that do not take `null` as absent.
    #[must_use]
    pub fn without_nulls_in_each(mut self, pointer: &str, kept: &[&str]) -> Self {
        if let Some(Value::Object(fields)) = self.value.pointer_mut(pointer) {
            fields.values_mut().for_each(|field| strip_nulls(field, kept));
        }
        self
    }

    /// What the field `name` holds for another party, as it was sent; nothing when it is absent or `null`.
    ///
    /// # Errors
    /// As [`HandedOn::new`].
    pub fn handed_on(&self, name: &str) -> Result<Option<HandedOn>, Error> {
        // Only text has it as it was sent, and most bodies need not be read twice.
        if self.value.get(name).is_none_or(Value::is_null) {
            return Ok(None);
        }
        let fields: HashMap<String, &RawValue> =
            serde_json::from_slice(self.text).map_err(|error| bad_body(".", &error.to_string()))?;
        fields.get(name).map(|text| HandedOn::new(text, name, DEPTH_MAX)).transpose()
    }

    /// The body as `T`, from an object; unknown fields are ignored, `null` equals absent for optional fields.
    ///
    /// # Errors
    /// [`Error::BadBody`], whose message names the path.
    pub fn parse<T: DeserializeOwned>(self) -> Result<T, Error> {
        // A derived struct would accept an array of its fields, too.
        if !self.value.is_object() {
            return Err(bad_body(".", "an object is needed"));
        }
        serde_path_to_error::deserialize(self.value)
            .map_err(|error| bad_body(&error.path().to_string(), &error.inner().to_string()))
    }
}

fn strip_nulls(value: &mut Value, kept: &[&str]) {
    match value {
        Value::Object(fields) => fields.retain(|name, field| {
            if !kept.contains(&name.as_str()) {
                strip_nulls(field, kept);
            }
            !field.is_null()
        }),
        Value::Array(items) => items.iter_mut().for_each(|item| strip_nulls(item, kept)),
        _ => {}
    }
}

/// Longest problem text repeated to a client: serde quotes the offending value, which may be the whole body.
const PROBLEM_CHARS_MAX: usize = 200;

/// The refusal of a body for what stands at `path`.
#[must_use]
pub fn bad_body(path: &str, problem: &str) -> Error {
    let shorten = |text: &str| text.chars().take(PROBLEM_CHARS_MAX).collect();
    Error::BadBody { path: shorten(path), problem: shorten(problem) }
}

/// Deserializes an optional JSON object as `T`; a derived struct alone would accept an array of its fields too.
///
/// # Errors
/// Any other JSON value than an object that fits `T`, or `null`.
pub fn optional_object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    Ok(Option::<Object<T>>::deserialize(from)?.map(|object| object.0))
}

/// What the whole of `bytes` holds, which is one JSON object.
///
/// # Errors
/// Anything else than a JSON object that fits `T`.
pub fn strict_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, serde_json::Error> {
    serde_json::from_slice(bytes).map(|object: Object<T>| object.0)
}

/// Deserializes a JSON object as `T`.
///
/// # Errors
/// Any other JSON value than an object that fits `T`.
pub fn object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<T, D::Error> {
    Object::deserialize(from).map(|object| object.0)
}

/// Deserializes a JSON object of objects, each as `T`.
///
/// # Errors
/// Any other JSON value, or an object whose values are other than objects that fit `T`.
pub fn objects_by_name<'de, D: Deserializer<'de>, K: Deserialize<'de> + Ord, T: Deserialize<'de>>(
    from: D,
) -> Result<BTreeMap<K, T>, D::Error> {
    let objects = BTreeMap::<K, Object<T>>::deserialize(from)?;
    Ok(objects.into_iter().map(|(name, object)| (name, object.0)).collect())
}

/// A value that was an object on the wire. The map is handed on as it is read, so that errors keep their path.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Fields<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
            type Value = T;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map))
            }
        }

        from.deserialize_map(Fields(PhantomData)).map(Self)
    }
}

/// Answers one gateway event with `operation`, before the function is killed; the log gets one line, the client one response.
pub async fn answer<O: Operation>(
    operation: &O,
    event: lambda_http::Request,
    ambient: &Ambient,
) -> Response<Body> {
    answer_counted(operation, event, ambient).await.0
}

/// The same, and what the request counts.
pub async fn answer_counted<O: Operation>(
    operation: &O,
    event: lambda_http::Request,
    ambient: &Ambient,
) -> (Response<Body>, Counts) {
    let request = Request::from(event);
    let id = request.id().into_owned();
    let span = tracing::info_span!("request", operation = O::NAME, request.id = %id);
    async {
        // On the heap: every future that it is moved into would have room for it of its own.
        let called = Box::pin(operation.call(&request));
        let answered = match request.time_left(ambient) {
            // As if it had crashed: whatever it left is put right like that.
            Some(left) => within(ambient, left, called).await.unwrap_or_else(|| Err(out_of_time())),
            None => called.await,
        };
        let outcome = answered.and_then(|output| {
            serde_json::to_vec(&output)
                .map_err(|error| Error::Bug(format!("an answer did not serialize: {error}")))
        });
        let counts = Counts::of(request.trace(), outcome.as_ref().err());
        let response = match outcome {
            Ok(body) => {
                tracing::info!(status = 200, "the operation succeeded");
                respond(StatusCode::OK, &id, body, None)
            }
            Err(error) => refuse(&error, &id, request.explanation()),
        };
        (response, counts)
    }
    .instrument(span)
    .await
}

/// Runs the Lambda loop with `operation` until the runtime ends the process.
///
/// # Errors
/// Whatever ends the loop; the runtime then starts a new process.
pub async fn serve<O: Operation>(operation: O) -> Result<(), lambda_http::Error> {
    let served = Arc::new((operation, Ambient::system()));
    let answers = move |event| -> Answering {
        let served = Arc::clone(&served);
        Box::pin(async move { answer_counted(&served.0, event, &served.1).await })
    };
    run(O::NAME, Box::new(answers)).await
}

/// A response under way, and what the request counts.
type Answering = Pin<Box<dyn Future<Output = (Response<Body>, Counts)> + Send>>;

/// The loop knows no operation by its type, so that it is compiled once and not for each function.
async fn run(
    name: &'static str,
    answers: Box<dyn Fn(lambda_http::Request) -> Answering + Send + Sync>,
) -> Result<(), lambda_http::Error> {
    let served = Arc::new((answers, Counter::of(Environment::of_process()), Ambient::system()));
    lambda_runtime::run(Adapter::from(service_fn(move |event| {
        let served = Arc::clone(&served);
        async move {
            let (answers, counter, ambient) = &*served;
            let (response, counts) = answers(event).await;
            let line = counter.as_ref().and_then(|counter| counter.line(name, counts, ambient.now()));
            if let Some(line) = line {
                telemetry::print(&line);
            }
            Ok::<_, Infallible>(response)
        }
    })))
    .await
}

fn out_of_time() -> Error {
    Error::Unavailable("the function's time was up before the operation was done".to_owned())
}

fn refuse(error: &Error, id: &str, explanation: Option<Explanation>) -> Response<Body> {
    let (status, code) = error.status_and_code();
    match error.cause() {
        Some(cause) => tracing::error!(status = status.as_u16(), code, cause, "the operation failed"),
        None => tracing::info!(status = status.as_u16(), code, "the operation was refused"),
    }
    let mut body = json!({ "code": code, "message": error.to_string(), "ray_id": id });
    let mut metadata = error.metadata();
    if let Some(explanation) = explanation {
        metadata.get_or_insert_with(|| json!({}))["explain"] = json!(explanation);
    }
    if let (Some(metadata), Some(fields)) = (metadata, body.as_object_mut()) {
        fields.insert("metadata".to_owned(), metadata);
    }
    respond(status, id, body.to_string().into_bytes(), error.retry_after_secs())
}

fn respond(status: StatusCode, id: &str, body: Vec<u8>, retry_after_secs: Option<u64>) -> Response<Body> {
    // Text, not binary: the gateway then needs no base64.
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
