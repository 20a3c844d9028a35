//! The event that API Gateway sends a function for one HTTP request (HTTP API, payload format 2.0).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::SocketAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::header::{CONTENT_TYPE, COOKIE, HOST, HeaderMap, USER_AGENT};
use http::request;
use http::uri::Authority;
use serde::Serialize;
use time::OffsetDateTime;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;
use url::{Url, form_urlencoded};

const X_FORWARDED_FOR: &str = "x-forwarded-for";
const X_FORWARDED_PROTO: &str = "x-forwarded-proto";

/// Common log format, in which API Gateway gives the time of a request.
const CLF: &[BorrowedFormatItem<'_>] =
    format_description!("[day]/[month repr:short]/[year]:[hour]:[minute]:[second] +0000");

/// A request at the gateway, with its route.
#[derive(Debug, Clone, Copy)]
pub struct Arrival<'a> {
    /// Method, target and headers.
    pub request: &'a request::Parts,
    /// The whole body.
    pub body: &'a [u8],
    /// Path of the target, percent-decoded.
    pub path: &'a str,
    /// Key of the route: `POST /lobbies/{lobby_id}`.
    pub route_key: &'a str,
    /// Parameters of the route by name, percent-decoded.
    pub parameters: &'a [(&'a str, &'a str)],
    /// Address of the client.
    pub peer: SocketAddr,
    /// Id of the request, unique.
    pub request_id: &'a str,
    /// When the request arrived.
    pub time: OffsetDateTime,
}

/// Why there is no event for a request.
#[derive(Debug, thiserror::Error)]
pub enum EventError {
    /// The `Host` header is not one host with an optional port.
    #[error("the Host header is not one host")]
    Host,
    /// The event cannot be written as JSON.
    #[error("the event cannot be written: {0}")]
    Json(#[from] serde_json::Error),
}

impl Arrival<'_> {
    /// Returns the event as JSON, as Lambda passes it to a function.
    ///
    /// As in API Gateway, the path is decoded, the query is as sent, cookies are apart from the headers, the
    /// `x-forwarded` headers are set, and bodies that are not text are in base64.
    ///
    /// # Errors
    ///
    /// [`EventError::Host`] for a `Host` header that no URL could hold.
    pub fn to_event(&self) -> Result<String, EventError> {
        let headers = &self.request.headers;
        let method = self.request.method.as_str();
        let domain_name = self.domain_name()?;
        let source_ip = self.peer.ip().to_canonical().to_string();
        let text = std::str::from_utf8(self.body).ok().filter(|_| is_text(headers));
        let event = Event {
            version: "2.0",
            route_key: self.route_key,
            raw_path: self.path,
            raw_query_string: self.request.uri.query().unwrap_or_default(),
            cookies: cookies(headers),
            headers: joined_headers(headers, &source_ip),
            query_string_parameters: self.query_parameters(),
            path_parameters: self.parameters.iter().copied().collect(),
            request_context: Context {
                account_id: "000000000000",
                api_id: "local",
                domain_prefix: domain_name.split('.').next().unwrap_or_default(),
                domain_name: &domain_name,
                http: Http {
                    method,
                    path: self.path,
                    protocol: format!("{:?}", self.request.version),
                    source_ip: &source_ip,
                    user_agent: headers.get(USER_AGENT).map(text_of).unwrap_or_default(),
                },
                request_id: self.request_id,
                route_key: self.route_key,
                stage: "$default",
                time: self.time.format(CLF).unwrap_or_default(),
                time_epoch: self.time.unix_timestamp_nanos() / 1_000_000,
            },
            is_base64_encoded: !self.body.is_empty() && text.is_none(),
            body: match text {
                _ if self.body.is_empty() => None,
                Some(text) => Some(Cow::Borrowed(text)),
                None => Some(Cow::Owned(BASE64.encode(self.body))),
            },
        };
        Ok(serde_json::to_string(&event)?)
    }

    /// Returns the host in the request. It must fit in a URL, which the function's runtime builds from it.
    fn domain_name(&self) -> Result<String, EventError> {
        let mut hosts = self.request.headers.get_all(HOST).iter();
        let Some(host) = hosts.next() else {
            return Ok("localhost".to_owned());
        };
        let authority = host.to_str().ok().and_then(|host| host.parse::<Authority>().ok());
        let url =
            authority.and_then(|authority| Url::parse(&format!("http://{authority}{}", self.path)).ok());
        match (url.as_ref().and_then(Url::host_str), hosts.next()) {
            (Some(host), None) => Ok(host.to_owned()),
            _ => Err(EventError::Host),
        }
    }

    fn query_parameters(&self) -> BTreeMap<Cow<'_, str>, String> {
        let query = self.request.uri.query().unwrap_or_default();
        let mut parameters: BTreeMap<_, String> = BTreeMap::new();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            join(parameters.entry(name).or_default(), &value);
        }
        parameters
    }
}

fn cookies(headers: &HeaderMap) -> Vec<String> {
    let pairs = |value| text_of(value).split(';').map(|pair| pair.trim().to_owned()).collect::<Vec<_>>();
    headers.get_all(COOKIE).iter().flat_map(pairs).filter(|pair| !pair.is_empty()).collect()
}

fn joined_headers<'a>(headers: &'a HeaderMap, source_ip: &str) -> BTreeMap<&'a str, String> {
    let mut joined: BTreeMap<&str, String> = BTreeMap::new();
    for (name, value) in headers.iter().filter(|(name, _)| *name != COOKIE) {
        join(joined.entry(name.as_str()).or_default(), &text_of(value));
    }
    join(joined.entry(X_FORWARDED_FOR).or_default(), source_ip);
    joined.insert(X_FORWARDED_PROTO, "http".to_owned());
    joined
}

/// Appends another value of the same name, joined as API Gateway does.
fn join(values: &mut String, value: &str) {
    if !values.is_empty() {
        values.push(',');
    }
    values.push_str(value);
}

fn text_of(value: &http::HeaderValue) -> Cow<'_, str> {
    String::from_utf8_lossy(value.as_bytes())
}

/// Whether API Gateway passes a body of this content type as it is, if it is UTF-8.
///
/// Not a form, which is the content type of `curl -d`.
fn is_text(headers: &HeaderMap) -> bool {
    let Some(content_type) = headers.get(CONTENT_TYPE) else {
        return true;
    };
    let content_type = text_of(content_type).to_ascii_lowercase();
    let content_type = content_type.split(';').next().unwrap_or_default().trim();
    content_type.starts_with("text/")
        || matches!(content_type, "application/json" | "application/javascript" | "application/xml")
        || content_type.ends_with("+json")
        || content_type.ends_with("+xml")
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Event<'a> {
    version: &'static str,
    route_key: &'a str,
    raw_path: &'a str,
    raw_query_string: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cookies: Vec<String>,
    headers: BTreeMap<&'a str, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    query_string_parameters: BTreeMap<Cow<'a, str>, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    path_parameters: BTreeMap<&'a str, &'a str>,
    request_context: Context<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<Cow<'a, str>>,
    is_base64_encoded: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Context<'a> {
    account_id: &'static str,
    api_id: &'static str,
    domain_name: &'a str,
    domain_prefix: &'a str,
    http: Http<'a>,
    request_id: &'a str,
    route_key: &'a str,
    stage: &'static str,
    time: String,
    time_epoch: i128,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Http<'a> {
    method: &'a str,
    path: &'a str,
    protocol: String,
    source_ip: &'a str,
    user_agent: Cow<'a, str>,
}

#[cfg(test)]
mod tests {
    use lambda_http::RequestExt as _;
    use lambda_http::request::RequestContext;
    use serde_json::{Value, json};
    use time::macros::datetime;

    use super::*;

    fn event_of(request: http::Request<Vec<u8>>) -> Result<String, EventError> {
        let (parts, body) = request.into_parts();
        let arrival = Arrival {
            request: &parts,
            body: &body,
            path: "/games/a b/version",
            route_key: "PUT /games/{game_id}/version",
            parameters: &[("game_id", "a b")],
            peer: "192.0.2.7:5000".parse().unwrap(),
            request_id: "r-1",
            time: datetime!(2026-03-09 07:05:03.250 UTC),
        };
        arrival.to_event()
    }

    fn json_of(request: http::Request<Vec<u8>>) -> Value {
        serde_json::from_str(&event_of(request).unwrap()).unwrap()
    }

    fn request() -> request::Builder {
        http::Request::put("/games/a%20b/version").header(HOST, "127.0.0.1:3000")
    }

    #[test]
    fn an_event_is_what_api_gateway_sends() {
        let request = http::Request::put("/games/a%20b/version?tag=a%20b&x=1&tag=c")
            .header("Host", "play.example.com:3000")
            .header("User-Agent", "curl/8")
            .header("Content-Type", "application/json")
            .header("X-Twice", "one")
            .header("X-Twice", "two")
            .header("X-Forwarded-For", "203.0.113.9")
            .header("X-Forwarded-Proto", "no scheme")
            .header("Cookie", "a=1; b=2")
            .header("Cookie", "c=3")
            .body(br#"{"version_id":"v"}"#.to_vec())
            .unwrap();
        assert_eq!(
            json_of(request),
            json!({
                "version": "2.0",
                "routeKey": "PUT /games/{game_id}/version",
                "rawPath": "/games/a b/version",
                "rawQueryString": "tag=a%20b&x=1&tag=c",
                "cookies": ["a=1", "b=2", "c=3"],
                "headers": {
                    "content-type": "application/json",
                    "host": "play.example.com:3000",
                    "user-agent": "curl/8",
                    "x-forwarded-for": "203.0.113.9,192.0.2.7",
                    "x-forwarded-proto": "http",
                    "x-twice": "one,two",
                },
                "queryStringParameters": {"tag": "a b,c", "x": "1"},
                "pathParameters": {"game_id": "a b"},
                "requestContext": {
                    "accountId": "000000000000",
                    "apiId": "local",
                    "domainName": "play.example.com",
                    "domainPrefix": "play",
                    "http": {
                        "method": "PUT",
                        "path": "/games/a b/version",
                        "protocol": "HTTP/1.1",
                        "sourceIp": "192.0.2.7",
                        "userAgent": "curl/8",
                    },
                    "requestId": "r-1",
                    "routeKey": "PUT /games/{game_id}/version",
                    "stage": "$default",
                    "time": "09/Mar/2026:07:05:03 +0000",
                    "timeEpoch": 1_773_039_903_250_u64,
                },
                "body": "{\"version_id\":\"v\"}",
                "isBase64Encoded": false,
            })
        );
    }

    #[test]
    fn the_lambda_runtime_reads_the_event() {
        let event = event_of(request().header("cookie", "a=1").body(b"\xff\x00".to_vec()).unwrap()).unwrap();
        let read = lambda_http::request::from_str(&event).unwrap();
        assert_eq!(read.method(), "PUT");
        assert_eq!(read.raw_http_path(), "/games/a b/version");
        assert_eq!(read.path_parameters().first("game_id"), Some("a b"));
        assert_eq!(read.headers()[COOKIE], "a=1");
        assert_eq!(read.body().as_ref(), b"\xff\x00");
        let RequestContext::ApiGatewayV2(context) = read.request_context() else {
            panic!("another kind of event");
        };
        assert_eq!(context.http.source_ip.as_deref(), Some("192.0.2.7"));
        assert_eq!(context.request_id.as_deref(), Some("r-1"));
    }

    #[test]
    fn a_missing_body_query_and_cookie_leave_no_trace() {
        let event = json_of(request().body(Vec::new()).unwrap());
        for name in ["body", "queryStringParameters", "cookies"] {
            assert_eq!(event.get(name), None, "{name}");
        }
        assert_eq!(event["isBase64Encoded"], false);
        assert_eq!(event["rawQueryString"], "");
    }

    #[test]
    fn a_body_that_is_not_text_is_encoded() {
        let body_of = |content_type: Option<&str>, body: &[u8]| {
            let request = content_type
                .into_iter()
                .fold(request(), |request, value| request.header(CONTENT_TYPE, value));
            let event = json_of(request.body(body.to_vec()).unwrap());
            (event["body"].clone(), event["isBase64Encoded"].clone())
        };
        assert_eq!(body_of(None, b"{}"), (json!("{}"), json!(false)));
        assert_eq!(body_of(Some("Application/JSON; charset=utf-8"), b"{}"), (json!("{}"), json!(false)));
        assert_eq!(body_of(Some("application/problem+json"), b"{}"), (json!("{}"), json!(false)));
        assert_eq!(body_of(Some("application/json"), b"\xff"), (json!("/w=="), json!(true)));
        assert_eq!(body_of(Some("application/x-www-form-urlencoded"), b"{}"), (json!("e30="), json!(true)));
    }

    #[test]
    fn a_host_that_no_url_can_hold_is_refused() {
        for host in ["a b", "127.0.0.1:99999", "[::1", ""] {
            let request = http::Request::get("/").header(HOST, host).body(Vec::new()).unwrap();
            assert!(matches!(event_of(request), Err(EventError::Host)), "{host}");
        }
        let twice = request().header(HOST, "localhost").body(Vec::new()).unwrap();
        assert!(matches!(event_of(twice), Err(EventError::Host)));
        let without = http::Request::get("/").body(Vec::new()).unwrap();
        assert_eq!(json_of(without)["requestContext"]["domainName"], "localhost");
    }
}
