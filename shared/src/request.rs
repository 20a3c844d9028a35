//! One request: a gateway event, parsed once.

use std::{
    borrow::Cow,
    net::IpAddr,
    str::FromStr,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use lambda_http::{
    RequestExt as _, aws_lambda_events::apigw::ApiGatewayV2httpRequestContext, http::header,
    request::RequestContext,
};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::{
    base::ambient::{Ambient, Timestamp},
    models::{
        coordinates::Coordinates,
        errors::{Error, bad_body},
        handed_on,
        warnings::{Warning, Warnings},
    },
    request::trace::{EXPLAIN_HEADER, Trace},
    rules::origin::OriginHost,
    wire::{body::JsonBody, explanation::Explanation},
};

pub mod trace;

/// The largest body that an operation reads, in bytes (decision 2).
pub const BODY_BYTES_MAX: usize = 64 * 1024;

/// How long before Lambda would kill its function an operation gives up, so that it can still respond:
/// sending takes milliseconds, even with the processor of 128 MB.
const ANSWER_TIME: Duration = Duration::from_millis(500);

/// The header with which a client names a request, to retry it (decision 46).
const IDEMPOTENCY_HEADER: &str = "idempotency-key";
/// The longest such name, in characters.
const IDEMPOTENCY_KEY_CHARS_MAX: usize = 64;
/// The header that authenticates the edge.
const EDGE_SECRET_HEADER: &str = "x-muster-edge-secret";

/// The query parameter with the origin of a page (see [`Request::origin`]).
const ORIGIN_PARAMETER: &str = "origin";

/// One request, as the gateway sent it.
#[derive(Debug)]
pub struct Request {
    event: lambda_http::Request,
    trace: Trace,
    warnings: Warnings,
    is_body_read: AtomicBool,
}

impl Request {
    /// The path parameter `name`.
    ///
    /// # Errors
    /// [`Error::NotFound`] when it does not have the form of an identifier.
    pub fn path<T: FromStr>(&self, name: &str) -> Result<T, Error> {
        self.event
            .path_parameters_ref()
            .and_then(|parameters| parameters.first(name))
            .and_then(|text| text.parse().ok())
            .ok_or(Error::NotFound)
    }

    /// The token of `Authorization: Bearer`, if the header has that form.
    #[must_use]
    pub fn bearer(&self) -> Option<&str> {
        // Not `header`: a token beyond ASCII is invalid, not absent.
        let text = str::from_utf8(self.event.headers().get(header::AUTHORIZATION)?.as_bytes()).ok()?;
        let (scheme, token) = text.split_once(' ')?;
        let token = token.trim_matches([' ', '\t']);
        (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
    }

    /// A header's text; `None` when it is absent or not visible ASCII.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.event.headers().get(name)?.to_str().ok()
    }

    /// The host of the requesting page: of the header `Origin`, else of the query parameter `origin`.
    #[must_use]
    pub fn origin(&self) -> Option<OriginHost> {
        let query = || self.query(ORIGIN_PARAMETER).map(ToOwned::to_owned);
        let text = self.header(header::ORIGIN.as_str()).map(ToOwned::to_owned).or_else(query)?;
        OriginHost::parse(&text)
    }

    /// Whether the request carries the secret of the deployment's edge.
    #[must_use]
    pub fn came_through_edge(&self, secret: &str) -> bool {
        let shown = self.header(EDGE_SECRET_HEADER).unwrap_or_default();
        // Comparing digests in variable time reveals nothing about the secret.
        let digest = |text: &str| ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
        digest(shown).as_ref() == digest(secret).as_ref()
    }

    /// The client's location, as the edge reports it: its headers count only with `edge_secret`, which the
    /// edge adds, since any client can send the other headers to the API's own address.
    #[must_use]
    pub fn viewer(&self, edge_secret: Option<&str>) -> Option<Coordinates> {
        if !self.came_through_edge(edge_secret?) {
            return None;
        }
        let degrees = |name| self.header(name)?.parse().ok();
        Coordinates::new(degrees("cloudfront-viewer-latitude")?, degrees("cloudfront-viewer-longitude")?)
    }

    /// The client's address: the one that the edge reports, if the edge sent the request (see
    /// [`Request::viewer`]), else the one that the gateway saw.
    #[must_use]
    pub fn client_ip(&self, edge_secret: Option<&str>) -> Option<IpAddr> {
        let edge = edge_secret.filter(|secret| self.came_through_edge(secret));
        let viewer = edge.and_then(|_| self.header("cloudfront-viewer-address")?.rsplit_once(':'));
        // CloudFront writes IPv6 addresses without the brackets that others put before a port.
        let address = |(address, _port): (&str, &str)| address.trim_matches(['[', ']']).parse().ok();
        viewer.and_then(address).or_else(|| self.source_ip())
    }

    /// The address that the gateway saw.
    #[must_use]
    pub fn source_ip(&self) -> Option<IpAddr> {
        self.gateway_context()?.http.source_ip.as_deref()?.parse().ok()
    }

    /// The client's name for its request, for retries: 1 to 64 visible ASCII characters.
    ///
    /// # Errors
    /// [`Error::BadHeader`] for any other, and for more than one.
    pub fn idempotency_key(&self) -> Result<Option<&str>, Error> {
        let refused = || Error::BadHeader("idempotency-key");
        let mut values = self.event.headers().get_all(IDEMPOTENCY_HEADER).iter();
        let Some(value) = values.next() else { return Ok(None) };
        if values.next().is_some() {
            return Err(refused());
        }
        let is_visible = |text: &&str| text.bytes().all(|byte| byte.is_ascii_graphic());
        let key = value.to_str().ok().filter(is_visible);
        key.filter(|key| (1..=IDEMPOTENCY_KEY_CHARS_MAX).contains(&key.len())).map(Some).ok_or_else(refused)
    }

    /// The request's trace.
    #[must_use]
    pub const fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Adds a warning to the response, whether it succeeds or not.
    pub fn warn(&self, warning: Warning) {
        self.warnings.add(|| warning);
    }

    /// All warnings so far, in one line of printable ASCII.
    #[must_use]
    pub fn warnings(&self) -> Option<String> {
        self.warnings.line()
    }

    /// Adds warnings about query parameters that are not among `known`.
    pub(crate) fn warn_of_unknown_parameters(&self, known: &[&'static str]) {
        let parameters = self.event.query_string_parameters_ref();
        let names = parameters.into_iter().flat_map(|parameters| parameters.iter()).map(|(name, _)| name);
        let unknown = names.filter(|name| *name != ORIGIN_PARAMETER && !known.contains(name));
        unknown.for_each(|name| self.warnings.add(|| Warning::unknown_parameter(name, known)));
    }

    /// Adds a warning if there is a body that nothing has read.
    pub(crate) fn warn_of_unread_body(&self) {
        let body = self.event.body().as_ref().trim_ascii();
        if !self.is_body_read.load(Ordering::Relaxed) && !body.is_empty() && body != b"{}" {
            self.warn(Warning::BodyIgnored);
        }
    }

    /// Whether the request wants an explanation.
    #[must_use]
    pub fn wants_explanation(&self) -> bool {
        self.header(EXPLAIN_HEADER) == Some("1")
    }

    /// The explanation of the result, if the request wants one and may have it.
    #[must_use]
    pub fn explanation(&self) -> Option<Explanation> {
        self.wants_explanation().then(|| self.trace().explanation()).flatten()
    }

    /// The body as JSON; an empty body is the empty object.
    ///
    /// # Errors
    /// [`Error::BodyTooLarge`]; [`Error::BadBody`] for text that is not JSON.
    pub fn json(&self) -> Result<JsonBody<'_>, Error> {
        let text = self.body_bytes()?;
        let value = serde_json::from_slice(text).map_err(|error| bad_body(".", &problem(text, &error)))?;
        Ok(JsonBody::new(text, value, &self.warnings))
    }

    /// The body as JSON text of any kind; an empty body is the empty object.
    ///
    /// # Errors
    /// As [`Request::json`].
    pub fn raw_json(&self) -> Result<Box<RawValue>, Error> {
        let bytes = self.body_bytes()?;
        serde_json::from_slice(bytes).map_err(|error| bad_body(".", &error.to_string()))
    }

    fn body_bytes(&self) -> Result<&[u8], Error> {
        self.is_body_read.store(true, Ordering::Relaxed);
        let bytes = self.event.body().as_ref();
        if bytes.len() > BODY_BYTES_MAX {
            return Err(Error::BodyTooLarge);
        }
        Ok(if bytes.iter().all(u8::is_ascii_whitespace) { b"{}" } else { bytes })
    }

    /// The query parameter `name`.
    #[must_use]
    pub fn query(&self, name: &str) -> Option<&str> {
        self.event.query_string_parameters_ref()?.first(name)
    }

    /// The body as `T`.
    ///
    /// # Errors
    /// As [`Request::json`] and [`JsonBody::parse`].
    pub fn body<T: DeserializeOwned>(&self) -> Result<T, Error> {
        self.json()?.parse()
    }

    /// The gateway's identifier of this request, for responses and logs.
    #[must_use]
    pub fn id(&self) -> Cow<'_, str> {
        let gateway = self.gateway_context().and_then(|context| context.request_id.as_deref());
        let lambda = || self.event.lambda_context_ref().map(|context| context.request_id.as_str());
        match gateway.or_else(lambda) {
            Some(id) if !id.is_empty() => Cow::Borrowed(id),
            _ => Cow::Owned(uuid::Uuid::new_v4().to_string()),
        }
    }

    /// How long its function has for it; `None` when the event has no deadline, or one long past.
    pub(crate) fn time_left(&self, ambient: &Ambient) -> Option<Duration> {
        let killed_at = Timestamp(self.event.lambda_context_ref()?.deadline);
        let left = killed_at.since(ambient.now());
        (!left.is_zero()).then(|| left.saturating_sub(ANSWER_TIME))
    }

    fn gateway_context(&self) -> Option<&ApiGatewayV2httpRequestContext> {
        match self.event.request_context_ref()? {
            RequestContext::ApiGatewayV2(context) => Some(context),
            _ => None,
        }
    }
}

impl From<lambda_http::Request> for Request {
    /// The request of `event`, noted in the trace that its caller left there, if one did.
    fn from(event: lambda_http::Request) -> Self {
        let trace = event.extensions().get::<Trace>().cloned().unwrap_or_default();
        Self { event, trace, warnings: Warnings::default(), is_body_read: AtomicBool::new(false) }
    }
}

/// The problem with a text: it breaks JSON's grammar, or some parsers could not read it.
pub(crate) fn problem(text: &[u8], error: &serde_json::Error) -> String {
    let is_grammatical = serde_json::from_slice::<&RawValue>(text).is_ok();
    if is_grammatical { handed_on::problem(error) } else { error.to_string() }
}
