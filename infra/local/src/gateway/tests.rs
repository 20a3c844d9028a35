use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use http::HeaderMap;
use http::header::{
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, HOST, ORIGIN,
};
use http_body_util::Full;
use lambda_http::RequestExt as _;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

use super::*;
use crate::addresses::listen;

const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

fn handler<F>(answer: impl Fn(lambda_http::Request) -> F + Send + Sync + 'static) -> Handler
where
    F: Future<Output = Response<lambda_http::Body>> + Send + 'static,
{
    Arc::new(move |request| Box::pin(answer(request)))
}

/// Responds with the name of its route and the request.
fn echo(name: &'static str) -> Handler {
    handler(move |request| async move {
        let parameters: Vec<String> =
            request.path_parameters().iter().map(|(name, value)| format!("{name}={value}")).collect();
        let body = String::from_utf8_lossy(request.body()).into_owned();
        let answer = json!({ "route": name, "parameters": parameters, "body": body });
        Response::new(answer.to_string().into())
    })
}

fn route(method: Method, path: &str, handler: Handler) -> (Route, Handler) {
    let route = Route {
        function: "Function".to_owned(),
        code_uri: "functions/function".to_owned(),
        method,
        path: path.parse().unwrap(),
    };
    (route, handler)
}

fn local(path: &str) -> (Method, String, LocalHandler) {
    let handler: LocalHandler = Arc::new(|request: Request<Bytes>| {
        Box::pin(async move {
            let body = String::from_utf8_lossy(request.body()).into_owned();
            (StatusCode::OK, json!({ "local": body }))
        })
    });
    (Method::POST, path.to_owned(), handler)
}

fn cors() -> Cors {
    Cors {
        allow_origins: vec!["*".to_owned()],
        allow_methods: vec!["POST".to_owned()],
        expose_headers: vec!["x-request-id".to_owned()],
        ..Cors::default()
    }
}

fn gateway(routes: Vec<(Route, Handler)>) -> Gateway {
    Gateway::new(routes, vec![local("/_local/tokens")], cors(), Ambient::system())
}

fn request(method: &str, uri: &str) -> request::Builder {
    Request::builder().method(method).uri(uri).header(HOST, "localhost:3000")
}

async fn ask(gateway: &Gateway, request: request::Builder, body: &[u8]) -> (StatusCode, HeaderMap, Value) {
    ask_from(LOOPBACK, gateway, request, body).await
}

async fn ask_from(
    peer: SocketAddr,
    gateway: &Gateway,
    request: request::Builder,
    body: &[u8],
) -> (StatusCode, HeaderMap, Value) {
    let body = Full::new(Bytes::copy_from_slice(body));
    let answer = gateway.answer(request.body(body).unwrap(), peer).await.unwrap();
    let (parts, body) = answer.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let body = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).unwrap() };
    (parts.status, parts.headers, body)
}

fn message(text: &str) -> Value {
    json!({ "message": text })
}

#[tokio::test]
async fn the_most_specific_route_answers() {
    let gateway = gateway(vec![
        route(Method::POST, "/lobbies/{lobby_id}", echo("by id")),
        route(Method::POST, "/lobbies/find", echo("find")),
        route(Method::GET, "/lobbies/find", echo("get")),
    ]);
    for (method, uri, name, parameters) in [
        ("POST", "/lobbies/find", "find", json!([])),
        ("GET", "/lobbies/find", "get", json!([])),
        ("POST", "/lobbies/a%20b?x=1", "by id", json!(["lobby_id=a b"])),
    ] {
        let (status, headers, body) = ask(&gateway, request(method, uri), b"{}").await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(body, json!({ "route": name, "parameters": parameters, "body": "{}" }));
        assert!(headers.contains_key("apigw-requestid"));
    }
}

#[tokio::test]
async fn an_unknown_route_or_method_is_not_found() {
    let gateway = gateway(vec![route(Method::POST, "/lobbies/find", echo("find"))]);
    for (method, uri) in [
        ("GET", "/lobbies/find"),
        ("OPTIONS", "/lobbies/find"),
        ("POST", "/lobbies/find/"),
        ("POST", "/lobbies%2Ffind/x"),
        ("POST", "/"),
        ("OPTIONS", "*"),
    ] {
        let (status, headers, body) = ask(&gateway, request(method, uri), b"").await;
        assert_eq!((status, body), (StatusCode::NOT_FOUND, message("Not Found")), "{method} {uri}");
        assert_eq!(headers[CONTENT_TYPE], "application/json");
    }
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused() {
    let gateway = gateway(vec![route(Method::POST, "/", handler(|_| async { Response::new("1".into()) }))]);
    let (status, ..) = ask(&gateway, request("POST", "/"), &vec![b' '; BODY_LIMIT_BYTES]).await;
    assert_eq!(status, StatusCode::OK);
    let (status, _, body) = ask(&gateway, request("POST", "/"), &vec![b' '; BODY_LIMIT_BYTES + 1]).await;
    assert_eq!((status, body), (StatusCode::PAYLOAD_TOO_LARGE, message("Request Entity Too Large")));
}

#[tokio::test]
async fn a_target_or_host_that_makes_no_event_is_a_bad_request() {
    let gateway = gateway(vec![route(Method::GET, "/", echo("root")), route(Method::GET, "/{x}", echo("x"))]);
    let not_text = request("GET", "/%FF");
    let no_host = Request::get("/").header(HOST, "localhost:99999");
    for request in [not_text, no_host] {
        let (status, _, body) = ask(&gateway, request, b"").await;
        assert_eq!((status, body), (StatusCode::BAD_REQUEST, message("Bad Request")));
    }
}

#[tokio::test]
async fn a_preflight_is_answered_for_any_path() {
    let gateway = gateway(vec![]);
    let request = request("OPTIONS", "/anything")
        .header(ORIGIN, "https://play.example")
        .header(ACCESS_CONTROL_REQUEST_METHOD, "POST");
    let (status, headers, body) = ask(&gateway, request, b"").await;
    assert_eq!((status, body), (StatusCode::NO_CONTENT, Value::Null));
    assert_eq!(headers[ACCESS_CONTROL_ALLOW_ORIGIN], "*");
}

#[tokio::test]
async fn an_answer_to_a_page_carries_cors_headers() {
    let gateway = gateway(vec![route(Method::POST, "/", echo("root"))]);
    for uri in ["/", "/unknown"] {
        let request = request("POST", uri).header(ORIGIN, "https://play.example");
        let (_, headers, _) = ask(&gateway, request, b"").await;
        assert_eq!(headers[ACCESS_CONTROL_ALLOW_ORIGIN], "*");
        assert_eq!(headers[ACCESS_CONTROL_EXPOSE_HEADERS], "x-request-id");
    }
    let (_, headers, _) = ask(&gateway, request("POST", "/"), b"").await;
    assert!(!headers.contains_key(ACCESS_CONTROL_ALLOW_ORIGIN));
}

#[tokio::test]
async fn a_local_route_answers_a_loopback_host_without_cors() {
    let gateway = gateway(vec![]);
    let page = request("POST", "/_local/tokens").header(ORIGIN, "http://localhost:3000");
    let (status, headers, body) = ask(&gateway, page, b"x").await;
    assert_eq!((status, body), (StatusCode::OK, json!({ "local": "x" })));
    assert!(!headers.contains_key(ACCESS_CONTROL_ALLOW_ORIGIN));
    assert_eq!(headers["x-content-type-options"], "nosniff");
    assert_eq!(headers["cross-origin-resource-policy"], "same-origin");
}

#[tokio::test]
async fn another_machine_reaches_the_routes_and_no_local_one_whatever_its_host_header() {
    let gateway = gateway(vec![route(Method::POST, "/{a}/{b}", echo("any"))]);
    let phone = "192.0.2.7:9".parse().unwrap();
    for host in ["localhost:3000", "127.0.0.1:3000", "192.0.2.1:3000"] {
        let to = |uri: &str| Request::post(uri).header(HOST, host);
        let (status, _, body) = ask_from(phone, &gateway, to("/lobbies/find"), b"").await;
        assert_eq!((status, &body["route"]), (StatusCode::OK, &json!("any")), "{host}");
        let (status, ..) = ask_from(phone, &gateway, to("/_local/tokens"), b"").await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{host}");
    }
}

#[tokio::test]
async fn a_local_route_is_closed_to_others_and_to_preflights() {
    let gateway = gateway(vec![route(Method::POST, "/{a}/{b}", echo("any"))]);
    let evil_host = |uri: &str| Request::post(uri).header(HOST, "evil.example");
    let preflight = request("OPTIONS", "/_local/tokens")
        .header(ORIGIN, "http://localhost:8080")
        .header(ACCESS_CONTROL_REQUEST_METHOD, "POST");
    for (request, expected) in [
        (evil_host("/_local/tokens"), StatusCode::FORBIDDEN),
        (evil_host("/%5Flocal/tokens"), StatusCode::FORBIDDEN),
        (request("POST", "/_local/tokens").header(ORIGIN, "https://evil.example"), StatusCode::FORBIDDEN),
        (request("POST", "/_local/tokens").header("sec-fetch-site", "cross-site"), StatusCode::FORBIDDEN),
        (request("POST", "/_local/unknown"), StatusCode::NOT_FOUND),
        (request("GET", "/_local/tokens"), StatusCode::NOT_FOUND),
        (preflight, StatusCode::FORBIDDEN),
    ] {
        let (status, headers, _) = ask(&gateway, request, b"").await;
        assert_eq!(status, expected);
        assert!(!headers.contains_key(ACCESS_CONTROL_ALLOW_ORIGIN));
    }
}

#[tokio::test]
async fn a_panic_of_a_function_is_an_internal_error() {
    let gateway = gateway(vec![
        route(Method::GET, "/panic", handler(|_| async { panic!("expected by this test") })),
        route(Method::GET, "/", echo("root")),
    ]);
    let (status, _, body) = ask(&gateway, request("GET", "/panic"), b"").await;
    assert_eq!((status, body), (StatusCode::INTERNAL_SERVER_ERROR, message("Internal Server Error")));
    assert_eq!(ask(&gateway, request("GET", "/"), b"").await.0, StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn a_function_that_never_answers_is_given_up() {
    let gateway = gateway(vec![route(Method::GET, "/", handler(|_| std::future::pending()))]);
    let (status, _, body) = ask(&gateway, request("GET", "/"), b"").await;
    assert_eq!((status, body), (StatusCode::SERVICE_UNAVAILABLE, message("Service Unavailable")));
}

#[tokio::test]
async fn a_response_keeps_its_status_headers_and_bytes() {
    let response = |_| async {
        Response::builder()
            .status(StatusCode::CONFLICT)
            .header("retry-after", "3")
            .header("connection", "close")
            .header("content-length", "999")
            .body(lambda_http::Body::Binary(vec![0xff, 0]))
            .unwrap()
    };
    let gateway = gateway(vec![route(Method::GET, "/", handler(response))]);
    let answer =
        gateway.answer(request("GET", "/").body(Full::<Bytes>::default()).unwrap(), LOOPBACK).await.unwrap();
    assert_eq!(answer.status(), StatusCode::CONFLICT);
    assert_eq!(answer.headers()["retry-after"], "3");
    assert_eq!(answer.headers()[CONTENT_TYPE], "text/plain;charset=UTF-8");
    for of_connection in [CONNECTION, CONTENT_LENGTH] {
        assert!(!answer.headers().contains_key(of_connection));
    }
    assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), &[0xff, 0][..]);
}

async fn run(routes: Vec<(Route, Handler)>) -> (SocketAddr, oneshot::Sender<()>, JoinHandle<()>) {
    run_with(Faults::default(), routes).await
}

async fn run_with(
    faults: Faults,
    routes: Vec<(Route, Handler)>,
) -> (SocketAddr, oneshot::Sender<()>, JoinHandle<()>) {
    let listening = listen(LOOPBACK.ip(), 0).await.unwrap();
    let address = listening.url().strip_prefix("http://").unwrap().parse().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let gateway = gateway(routes).with_faults(Arc::new(faults));
    let serving = tokio::spawn(gateway.serve(listening, async {
        let _ = stopped.await;
    }));
    (address, stop, serving)
}

const LAST_REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";

async fn rest_of(mut stream: TcpStream) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text
}

#[tokio::test]
async fn one_connection_carries_several_requests() {
    let (address, _stop, _serving) = run(vec![route(Method::GET, "/", echo("root"))]).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    stream.write_all(LAST_REQUEST).await.unwrap();
    assert_eq!(rest_of(stream).await.matches("HTTP/1.1 200 OK").count(), 2);
}

#[tokio::test]
async fn a_silent_client_holds_up_no_other() {
    let (address, _stop, _serving) = run(vec![route(Method::GET, "/", echo("root"))]).await;
    let mut half = TcpStream::connect(address).await.unwrap();
    half.write_all(b"GET / HTTP/1.1\r\nho").await.unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(LAST_REQUEST).await.unwrap();
    assert!(rest_of(stream).await.starts_with("HTTP/1.1 200 OK"));
}

#[tokio::test]
async fn headers_over_the_limit_are_refused() {
    let (address, _stop, _serving) = run(vec![route(Method::GET, "/", echo("root"))]).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let padding = "x".repeat(HEADER_LIMIT_BYTES);
    let request = format!("GET / HTTP/1.1\r\nhost: localhost\r\nx-padding: {padding}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    assert!(rest_of(stream).await.starts_with("HTTP/1.1 431 "));
}

#[tokio::test]
async fn requests_under_way_finish_at_shutdown() {
    let (entered, leave) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let slow = handler({
        let (entered, leave) = (Arc::clone(&entered), Arc::clone(&leave));
        move |_| {
            let (entered, leave) = (Arc::clone(&entered), Arc::clone(&leave));
            async move {
                entered.notify_one();
                leave.notified().await;
                Response::new("done".into())
            }
        }
    });
    let (address, stop, serving) = run(vec![route(Method::GET, "/", slow)]).await;
    let idle = TcpStream::connect(address).await.unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    entered.notified().await;
    stop.send(()).unwrap();
    assert_eq!(rest_of(idle).await, "");
    leave.notify_one();
    assert!(rest_of(stream).await.ends_with("done"));
    serving.await.unwrap();
    assert!(TcpStream::connect(address).await.is_err());
}

/// Answers how often it was executed.
fn counted() -> (Arc<AtomicU32>, Handler) {
    let executed = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&executed);
    let answer = move |_| {
        let count = counter.fetch_add(1, Ordering::SeqCst) + 1;
        async move { Response::new(format!("execution {count:06}").into()) }
    };
    (executed, handler(answer))
}

/// Sends a request on a connection of its own, and returns all that arrives.
async fn arriving(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request).await.unwrap();
    rest_of(stream).await
}

#[tokio::test]
async fn each_fault_is_what_a_client_sees_of_it() {
    let (executed, handler) = counted();
    let (address, _stop, _serving) =
        run_with(Faults::new(Some(3)), vec![route(Method::GET, "/", handler)]).await;
    let (expected, mut seen) = (Faults::new(Some(3)), BTreeMap::new());
    for _ in 0..150 {
        let before = executed.load(Ordering::SeqCst);
        let began = Instant::now();
        let text = arriving(address, LAST_REQUEST).await;
        let count = executed.load(Ordering::SeqCst) - before;
        let (first, second) =
            (format!("\r\n\r\nexecution {:06}", before + 1), format!("\r\n\r\nexecution {:06}", before + 2));
        let is_whole = text.starts_with("HTTP/1.1 200 OK") && text.ends_with(&first);
        let fault = expected.next("GET /");
        let is_right = match fault.map(|fault| fault.kind) {
            None => count == 1 && is_whole,
            Some(Kind::Delayed) => {
                count == 1 && is_whole && began.elapsed() >= fault.unwrap().half_delay() * 2
            }
            Some(Kind::RequestLost) => count == 0 && text.is_empty(),
            Some(Kind::ResponseLost) => count == 1 && text.is_empty(),
            Some(Kind::ResponseCut) => {
                count == 1 && text.contains("content-length: 16\r\n") && text.ends_with("\r\n\r\nexecutio")
            }
            Some(Kind::Repeated) => {
                count == 2 && text.ends_with(if fault.unwrap().answers_first() { &first } else { &second })
            }
            Some(Kind::TooManyRequests) => count == 0 && is_refusal(&text, "429 Too Many Requests"),
            Some(Kind::Unavailable) => count == 0 && is_refusal(&text, "503 Service Unavailable"),
        };
        assert!(is_right, "{fault:?}, executed {count} times: {text}");
        *seen.entry(fault.map(|fault| fault.kind)).or_insert(0) += 1;
    }
    assert_eq!(seen.len(), 8, "{seen:?}");
}

fn is_refusal(text: &str, status: &str) -> bool {
    let (_, message) = status.split_once(' ').unwrap();
    let has_pause = ["0", "1"].iter().any(|secs| text.contains(&format!("retry-after: {secs}\r\n")));
    text.starts_with(&format!("HTTP/1.1 {status}\r\n"))
        && has_pause
        && text.ends_with(&format!("\r\n\r\n{}", message_of(message)))
}

fn message_of(text: &str) -> String {
    message(text).to_string()
}

#[tokio::test]
async fn only_requests_of_the_templates_routes_have_faults() {
    let gateway =
        gateway(vec![route(Method::POST, "/", echo("root"))]).with_faults(Arc::new(Faults::new(Some(1))));
    let preflight = || {
        request("OPTIONS", "/")
            .header(ORIGIN, "https://play.example")
            .header(ACCESS_CONTROL_REQUEST_METHOD, "POST")
    };
    for _ in 0..100 {
        assert_eq!(ask(&gateway, preflight(), b"").await.0, StatusCode::NO_CONTENT);
        assert_eq!(ask(&gateway, request("POST", "/_local/tokens"), b"x").await.0, StatusCode::OK);
        assert_eq!(ask(&gateway, request("POST", "/unknown"), b"").await.0, StatusCode::NOT_FOUND);
    }
    assert_eq!(gateway.faults.shown()["requests"], json!({}));
}

/// What arrives, without what differs between any two responses.
fn without_varying(text: &str) -> String {
    let is_kept = |line: &&str| !["date: ", "apigw-requestid: "].iter().any(|name| line.starts_with(name));
    text.split_inclusive("\r\n").filter(is_kept).collect()
}

#[tokio::test]
async fn without_a_seed_each_byte_is_as_without_faults() {
    let text = "HTTP/1.1 200 OK\r\ncontent-type: text/plain;charset=UTF-8\r\nconnection: close\r\n\
                content-length: 16\r\n\r\nexecution ";
    let (_, handler) = counted();
    let (address, _stop, _serving) = run(vec![route(Method::GET, "/", handler)]).await;
    for count in 1..=50 {
        let arrived = arriving(address, LAST_REQUEST).await;
        assert_eq!(without_varying(&arrived), format!("{text}{count:06}"));
    }
}
