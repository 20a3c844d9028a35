//! Events: every event of the gateway gets a documented response.

use std::{
    net::{IpAddr, SocketAddr},
    panic::{AssertUnwindSafe, catch_unwind},
};

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use harness::TestStack;
use http::{HeaderName, HeaderValue, Method, Request, Uri, header};
use lambda_http::RequestExt as _;
use muster_local::event::{Arrival, EventError};
use proptest::{
    collection::vec,
    option,
    prelude::{any, prop_oneof},
    prop_assert, prop_assert_eq,
    sample::{Index, select},
    strategy::Strategy,
    test_runner::TestCaseResult,
};
use regex_lite::Regex;
use serde_json::{Value, json};
use shared::{
    request::{BODY_BYTES_MAX, Request as MusterRequest},
    rules::{cdn_user::CdnUserName, origin::OriginHost},
};
use time::OffsetDateTime;

use super::{
    check, check_idle, check_plain,
    json::{mutated, mutations, text},
    service::{Event, Operation, Service},
};

/// Fields of an event that a request may lack.
const OPTIONAL: [&str; 13] = [
    "/body",
    "/cookies",
    "/headers",
    "/isBase64Encoded",
    "/pathParameters",
    "/queryStringParameters",
    "/rawQueryString",
    "/requestContext/domainName",
    "/requestContext/http/path",
    "/requestContext/http/sourceIp",
    "/requestContext/http/userAgent",
    "/requestContext/requestId",
    "/requestContext/stage",
];

/// Headers that something looks at.
const HEADERS: [&str; 14] = [
    "authorization",
    "origin",
    "content-type",
    "content-length",
    "content-encoding",
    "transfer-encoding",
    "expect",
    "x-forwarded-for",
    "x-muster-edge-secret",
    "cloudfront-viewer-latitude",
    "cloudfront-viewer-longitude",
    "idempotency-key",
    "x-request-id",
    "cookie",
];

/// What is odd about an event.
#[derive(Clone, Debug)]
enum Oddity {
    Without(&'static str),
    Null(&'static str),
    Header(String, String),
    /// A parameter of the path, whichever it has.
    Parameter(Index, String),
    Query(String),
    Cookies(Vec<String>),
    Body(Vec<u8>),
    Sized(usize),
    SourceIp(String),
    Path(String),
}

fn oddity() -> impl Strategy<Value = Oddity> {
    let name =
        prop_oneof![3 => select(&HEADERS[..]).prop_map(str::to_owned), 1 => "[a-z0-9!#$%&'*+.^_`|~-]{1,20}"];
    let value = prop_oneof![
        text(),
        "[ -~]{0,40}",
        "(https?|ftp|null)://[a-zA-Z0-9.:@\\[\\]/-]{0,20}",
        "-?[0-9]{1,3}(\\.[0-9]{1,4})?",
    ];
    prop_oneof![
        4 => select(&OPTIONAL[..]).prop_map(Oddity::Without),
        2 => select(&OPTIONAL[..]).prop_map(Oddity::Null),
        6 => (name, value).prop_map(|(name, value)| Oddity::Header(name, value)),
        4 => (any::<Index>(), text()).prop_map(|(at, text)| Oddity::Parameter(at, text)),
        3 => "([!$&'()*+,./0-9:;=?@A-Z_a-z~-]|%[0-9A-F]{2}|origin=|include_state=){0,30}".prop_map(Oddity::Query),
        1 => vec("[!-~]{0,20}", 0..4).prop_map(Oddity::Cookies),
        2 => vec(any::<u8>(), 0..40).prop_map(Oddity::Body),
        1 => (BODY_BYTES_MAX - 1..BODY_BYTES_MAX + 3).prop_map(Oddity::Sized),
        1 => prop_oneof![any::<IpAddr>().prop_map(|ip| ip.to_string()), text()].prop_map(Oddity::SourceIp),
        2 => "(/[^/]{0,12}){0,5}".prop_map(Oddity::Path),
    ]
}

impl Oddity {
    fn apply(&self, event: &mut Event<'_>) {
        let json = &mut event.json;
        match self {
            Self::Without(pointer) => {
                let (parent, name) = pointer.rsplit_once('/').unwrap();
                if let Some(Value::Object(fields)) = json.pointer_mut(parent) {
                    fields.remove(name);
                }
            }
            Self::Null(pointer) => {
                if let Some(field) = json.pointer_mut(pointer).filter(|field| !field.is_boolean()) {
                    *field = Value::Null;
                }
            }
            Self::Header(name, value) => {
                let value: String = value.chars().filter(|c| !c.is_ascii_control()).collect();
                if !json["headers"].is_object() {
                    json["headers"] = json!({});
                }
                json["headers"][name] = value.into();
            }
            Self::Parameter(at, text) => {
                if let Some(Value::Object(parameters)) = json.get_mut("pathParameters") {
                    let count = parameters.len().max(1);
                    if let Some(parameter) = parameters.values_mut().nth(at.index(count)) {
                        *parameter = text.as_str().into();
                    }
                }
            }
            Self::Query(query) => json["rawQueryString"] = query.as_str().into(),
            Self::Cookies(cookies) => json["cookies"] = json!(cookies),
            Self::Body(bytes) => event.set_encoded(bytes),
            Self::Sized(size) => event.set_encoded(&vec![b' '; *size]),
            Self::SourceIp(text) => json["requestContext"]["http"]["sourceIp"] = text.as_str().into(),
            Self::Path(path) => json["rawPath"] = path.as_str().into(),
        }
    }
}

/// Whether some parameter of the path has not its form, mostly that of an identifier.
fn is_off_path(event: &Value, path: &str) -> bool {
    let identifier = Regex::new("^[A-Za-z0-9_-]{1,64}$").unwrap();
    let has_form = |name: &str, text: &str| match name {
        "user" => text.parse::<CdnUserName>().is_ok(),
        "domain" => text.parse::<OriginHost>().is_ok(),
        _ => identifier.is_match(text),
    };
    let named = Regex::new(r"\{(\w+)\}").unwrap();
    let mut parameters = named.captures_iter(path).map(|found| found.get(1).unwrap().as_str());
    parameters.any(|name| !event["pathParameters"][name].as_str().is_some_and(|text| has_form(name, text)))
}

/// The bytes of an event's body.
fn body_of(event: &Value) -> Vec<u8> {
    let text = event["body"].as_str().unwrap_or_default();
    if event["isBase64Encoded"] == true { BASE64.decode(text).unwrap() } else { text.as_bytes().to_vec() }
}

#[test]
fn an_odd_event_is_answered_like_any_other() {
    let service = Service::start();
    let cases = (any::<Index>(), any::<Index>(), vec(oddity(), 0..4));
    check(cases, |(operation, right, oddities)| {
        let operation = &service.operations[operation.index(service.operations.len())];
        let rights = operation.documented.rights();
        let mut event = service.event(operation, rights[right.index(rights.len())]);
        let had_token = event.json["headers"]["authorization"].clone();
        for oddity in &oddities {
            oddity.apply(&mut event);
        }
        // A flag that is lost is one that was false.
        if event.json.get("isBase64Encoded").is_none() {
            event.json["body"] = Value::Null;
        }
        let answer = service.answer(&event)?;
        let has_token = had_token.is_string() && event.json["headers"]["authorization"] == had_token;
        let body = body_of(&event.json);
        if is_off_path(&event.json, operation.documented.path) {
            prop_assert_eq!(answer.refusal(), (404, "API_NOT_FOUND"));
        } else if has_token && !operation.bodies.is_empty() && body.len() > BODY_BYTES_MAX {
            prop_assert!(
                matches!(answer.refusal(), (413, "API_BODY_TOO_LARGE") | (403 | 404, _)),
                "{:?}",
                answer
            );
        }
        Ok(())
    });
}

#[test]
fn whatever_the_runtime_reads_as_an_event_is_answered() {
    let service = Service::start();
    check((any::<Index>(), any::<Index>(), mutations(0..4)), |(operation, right, mutations)| {
        let operation = &service.operations[operation.index(service.operations.len())];
        let rights = operation.documented.rights();
        let mut event = service.event(operation, rights[right.index(rights.len())]);
        let Ok(json) = serde_json::from_str(&mutated(&event.json, &mutations).to_string()) else {
            return Ok(());
        };
        event.json = json;
        // The runtime panics at what is no base64 and at what is no URL; the gateway sends neither.
        let read = catch_unwind(AssertUnwindSafe(|| lambda_http::request::from_str(&event.json.to_string())));
        let id = event.json["requestContext"]["requestId"].as_str().unwrap_or_default();
        if matches!(read, Ok(Ok(_))) && id.chars().all(|c| c.is_ascii_graphic()) {
            service.answer(&event)?;
        }
        Ok(())
    });
}

/// An origin, and whether its host is the one that it is made of.
#[derive(Clone, Debug)]
struct Origin {
    form: &'static str,
    is_own: bool,
}

fn origin() -> impl Strategy<Value = Origin> {
    let own = select(
        &["https://{}", "http://{}", "HTTPS://{}", "https://{}:8443", "https://{}.", "http://{}/a?b#c"][..],
    );
    let other = select(
        &[
            "",
            "null",
            "{}",
            "//{}",
            "ftp://{}",
            "https://www.{}",
            "https://{}.evil.example",
            "https://evil{}",
            "https://{}@evil.example",
            "https://evil.example/{}",
            "https://evil.example#{}",
            "https://{}..",
            "https://{} https://{}",
            "https://127.0.0.1",
            "https://[::1]",
        ][..],
    );
    prop_oneof![
        own.prop_map(|form| Origin { form, is_own: true }),
        other.prop_map(|form| Origin { form, is_own: false }),
    ]
}

#[test]
fn an_origin_speaks_for_its_own_host_in_the_header_or_else_in_the_query() {
    let service = Service::start();
    let rights = |operation: &Operation| operation.documented.rights();
    let of_pages = |operation: &&Operation| rights(operation).len() > 1 && rights(operation).contains(&None);
    let of_pages: Vec<&Operation> = service.operations.iter().filter(of_pages).collect();
    let cases = (any::<Index>(), option::of(origin()), option::of(origin()), any::<bool>());
    check_idle(cases, |(operation, header, query, is_encoded)| {
        let mut event = service.event(of_pages[operation.index(of_pages.len())], None);
        let own = service.text("ORIGIN").replace("https://", "");
        let text = |origin: &Origin| origin.form.replace("{}", &own);
        event.json["headers"].as_object_mut().unwrap().remove("origin");
        if let Some(origin) = &header {
            event.json["headers"]["origin"] = text(origin).into();
        }
        if let Some(origin) = &query {
            let encoded: String = text(origin).bytes().map(|byte| format!("%{byte:02x}")).collect();
            let plain = text(origin).replace(' ', "+").replace('#', "%23");
            event.json["rawQueryString"] =
                format!("a=b&origin={}", if is_encoded { encoded } else { plain }).into();
        }
        let expected = match header.or(query) {
            Some(Origin { is_own: true, .. }) => (200, ""),
            _ => (401, "API_UNAUTHORIZED"),
        };
        let answer = service.answer(&event)?;
        prop_assert_eq!(answer.refusal(), expected, "{}", event.operation.name);
        Ok(())
    });
}

/// A request as a server has parsed it; nothing where no server would.
fn request(
    method: &str,
    target: &str,
    headers: &[(String, Vec<u8>)],
    body: Vec<u8>,
) -> Option<Request<Vec<u8>>> {
    let mut request = Request::new(body);
    *request.method_mut() = Method::from_bytes(method.as_bytes()).ok()?;
    *request.uri_mut() = target.parse::<Uri>().ok()?;
    for (name, value) in headers {
        let (name, value) = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_bytes(value));
        request.headers_mut().append(name.ok()?, value.ok()?);
    }
    Some(request)
}

fn method() -> impl Strategy<Value = String> {
    prop_oneof![select(&["GET", "PUT", "POST", "DELETE", "PATCH"][..]).prop_map(str::to_owned), "[!-~]{1,8}"]
}

fn headers() -> impl Strategy<Value = Vec<(String, Vec<u8>)>> {
    let name = prop_oneof![
        select(&HEADERS[..]).prop_map(str::to_owned),
        select(&["host", "user-agent", "x-forwarded-proto"][..]).prop_map(str::to_owned),
        "[a-z0-9!#$%&'*+.^_`|~-]{1,10}",
    ];
    let value = prop_oneof![
        "[ -~]{0,20}".prop_map(String::into_bytes),
        "[a-zA-Z0-9.-]{1,12}(:[0-9]{1,6})?".prop_map(String::into_bytes),
        vec(0x20..=0xff_u8, 0..20),
    ];
    vec((name, value), 0..6)
}

#[test]
fn every_request_at_the_local_gateway_makes_an_event_that_the_runtime_reads() {
    let target = prop_oneof!["(/[!-~]{0,8}){1,4}(\\?[!-~]{0,20})?", "/[ -~\u{e4}]{0,12}"];
    let peer = (any::<IpAddr>(), any::<u16>()).prop_map(|(ip, port)| SocketAddr::new(ip, port));
    let cases = (method(), target, headers(), vec(any::<u8>(), 0..40), (text(), text()), peer);
    check_plain(cases, |(method, target, headers, body, (path, parameter), peer)| {
        let Some(request) = request(&method, &target, &headers, body) else { return Ok(()) };
        let (parts, body) = request.into_parts();
        let path = format!("/{path}");
        let arrival = Arrival {
            request: &parts,
            body: &body,
            path: &path,
            route_key: "POST /{name}",
            parameters: &[("name", &parameter)],
            peer,
            request_id: "r-1",
            time: OffsetDateTime::UNIX_EPOCH,
        };
        let event = match arrival.to_event() {
            Ok(event) => event,
            Err(error) => {
                prop_assert!(matches!(error, EventError::Host) && parts.headers.contains_key(header::HOST));
                return Ok(());
            }
        };
        let read = lambda_http::request::from_str(&event).unwrap();
        prop_assert_eq!(read.method(), &parts.method);
        prop_assert_eq!(read.body().as_ref(), body);
        prop_assert_eq!(read.raw_http_path(), path);
        let parameters = read.path_parameters();
        prop_assert_eq!(parameters.first("name"), Some(parameter.as_str()));
        let request = MusterRequest::from(read);
        prop_assert_eq!(request.id(), "r-1");
        prop_assert_eq!(request.source_ip(), Some(peer.ip().to_canonical()));
        for name in parts.headers.keys().filter(|name| ![header::COOKIE, header::HOST].contains(name)) {
            let values: Vec<_> = parts.headers.get_all(name).iter().map(HeaderValue::to_str).collect();
            if let ([Ok(value)], false) = (values.as_slice(), name.as_str().starts_with("x-forwarded")) {
                prop_assert_eq!(request.header(name.as_str()), Some(*value));
            }
        }
        Ok(())
    });
}

#[test]
fn no_request_over_http_makes_the_service_fail() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let stack = runtime.block_on(TestStack::start());
    let routes = muster_local::template::Template::parse(muster_local::stack::TEMPLATE).unwrap().routes;
    let segment = "([!$&'()*+,.0-9:;=@A-Z_a-z~-]|%[0-9A-F]{2}|%2[Ff]|\\.\\.){0,8}";
    let cases =
        (any::<Index>(), method(), any::<bool>(), vec(segment, 0..4), headers(), vec(any::<u8>(), 0..20));
    check_idle(cases, |(route, method, is_of_route, segments, headers, body)| -> TestCaseResult {
        let route = &routes[route.index(routes.len())];
        let mut path = route.path.to_string();
        for (name, segment) in ["{game_id}", "{namespace_id}", "{lobby_id}"].iter().zip(&segments) {
            path = path.replace(name, segment);
        }
        if let Some(last) = segments.get(3) {
            path.push_str(last);
        }
        let method = if is_of_route { route.method.as_str() } else { &method };
        let target = format!("{}{path}", stack.demo().base_url);
        let of_connection =
            ["host", "transfer-encoding", "content-length", "expect", "connection", "upgrade", "te"];
        let headers: Vec<_> =
            headers.into_iter().filter(|(name, _)| !of_connection.contains(&name.as_str())).collect();
        let Some(request) = request(method, &target, &headers, body) else { return Ok(()) };
        if method == "CONNECT" {
            return Ok(());
        }
        let answer = runtime.block_on(stack.send(request.map(|body| http_body_util::Full::new(body.into()))));
        prop_assert!(answer.status.as_u16() < 500, "{} {}: {:?}", method, path, answer);
        let is_of_gateway = answer.body.get("message").is_some() && answer.body.get("code").is_none();
        let is_of_operation = answer.headers.contains_key("x-request-id");
        let is_preflight = answer.status == 204 && method == "OPTIONS";
        let is_head = method == "HEAD";
        prop_assert!(
            is_of_gateway != is_of_operation || is_preflight || is_head,
            "{} {}: {:?}",
            method,
            path,
            answer
        );
        Ok(())
    });
}
