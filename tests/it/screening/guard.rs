//! No version makes Muster call what only a function can reach.

use std::{
    net::IpAddr,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use aws_smithy_runtime_api::client::dns::{DnsFuture, ResolveDns, SharedDnsResolver};
use harness::instance::{Instance, patient_client};
use shared::outside::web_client::GuardedResolver;

use super::*;

/// A resolver with given results, which counts.
#[derive(Clone, Debug, Default)]
struct Scripted {
    answers: Arc<Mutex<Vec<Vec<IpAddr>>>>,
    calls: Arc<AtomicUsize>,
}

impl Scripted {
    /// Answers in turn, the last one again and again.
    fn answering(answers: &[&[&str]]) -> Self {
        let parse = |answer: &&[&str]| answer.iter().map(|address| address.parse().unwrap()).collect();
        let answers: Vec<_> = answers.iter().rev().map(parse).collect();
        Self { answers: Arc::new(Mutex::new(answers)), calls: Arc::default() }
    }
}

impl ResolveDns for Scripted {
    fn resolve_dns<'a>(&'a self, _name: &'a str) -> DnsFuture<'a> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let mut answers = self.answers.lock().unwrap();
        let answer = if answers.len() > 1 { answers.pop() } else { answers.last().cloned() };
        DnsFuture::ready(Ok(answer.unwrap_or_default()))
    }
}

/// An instance as deployed, but for the resolver.
fn instance(stack: &TestStack, resolver: &Scripted) -> Instance {
    let outside = Outside { resolver: SharedDnsResolver::new(resolver.clone()), ..Outside::default() };
    let client = patient_client(stack.stack.store_endpoint());
    Instance::among(outside, client, stack.stack.keys(), &stack.ambient())
}

async fn refusal(instance: &Instance, game: &TestGame) -> &'static str {
    instance.find(&game.public, &find(None)).await.unwrap_err().status_and_code().1
}

#[tokio::test]
async fn a_name_that_has_a_private_address_is_not_called() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let stack = TestStack::start().await;
    let modes = json!({ "arena": mode(Some(&format!("https://verify.example:{port}/"))) });
    let game = game(&stack, "rebound", modes, Value::Null).await;
    for addresses in [
        &["127.0.0.1"][..],
        &["::1"],
        &["169.254.169.254"],
        &["fd00:ec2::254"],
        &["10.1.2.3"],
        &["192.168.0.1"],
        &["::ffff:127.0.0.1"],
        &["::ffff:10.0.0.1"],
        &["64:ff9b::7f00:1"],
        &["8.8.8.8", "127.0.0.1"],
        &["127.0.0.1", "2606:4700::1111"],
    ] {
        let resolver = Scripted::answering(&[addresses]);
        let refused = refusal(&instance(&stack, &resolver), &game).await;
        assert_eq!(refused, "MATCHMAKER_VERIFICATION_REQUEST_FAILED", "{addresses:?}");
        assert_eq!(resolver.calls.load(Ordering::SeqCst), 1, "{addresses:?}");
        assert!(listener.accept().is_err(), "{addresses:?} was called");
        assert_no_seat(&stack, &game, &format!("{addresses:?}")).await;
    }
}

#[tokio::test]
async fn what_a_name_resolves_to_later_is_judged_again_and_only_judged_addresses_are_called() {
    let resolver = Scripted::answering(&[&["8.8.8.8"], &["127.0.0.1"]]);
    let guard = GuardedResolver { reach: Reach::Public, resolver: SharedDnsResolver::new(resolver.clone()) };
    let judged = guard.resolve_dns("verify.example").await.unwrap();
    assert_eq!(
        judged,
        ["8.8.8.8".parse::<IpAddr>().unwrap()],
        "the connection gets these, and resolves no name again"
    );
    assert_eq!(resolver.calls.load(Ordering::SeqCst), 1);
    assert!(guard.resolve_dns("verify.example").await.is_err(), "the next connection is judged again");
}

#[tokio::test]
async fn https_is_tls_and_who_does_not_speak_it_learns_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let stack = TestStack::start().await;
    let modes = json!({ "arena": mode(Some(&format!("https://verify.example:{port}/"))) });
    let game = game(&stack, "tls", modes, Value::Null).await;
    let resolver = SharedDnsResolver::new(Scripted::answering(&[&["127.0.0.1"]]));
    let outside = Outside { resolver, reach: Reach::Anywhere, ..Outside::default() };
    let client = patient_client(stack.stack.store_endpoint());
    let instance = Instance::among(outside, client, stack.stack.keys(), &stack.ambient());
    let overheard = async {
        let (mut connection, _) = listener.accept().await.unwrap();
        let mut bytes = vec![0; 4_096];
        let length = connection.read(&mut bytes).await.unwrap();
        connection.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
        bytes.truncate(length);
        bytes
    };
    let (refused, overheard) = tokio::join!(refusal(&instance, &game), overheard);
    assert_eq!(refused, "MATCHMAKER_VERIFICATION_REQUEST_FAILED");
    assert_eq!(overheard[0], 0x16, "a TLS handshake");
    let text = String::from_utf8_lossy(&overheard);
    assert!(text.contains("verify.example") && !text.contains("header-secret"), "{text}");
}

#[tokio::test]
async fn a_private_address_in_place_of_a_name_is_not_called_however_it_is_spelled() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let stack = TestStack::start().await;
    let resolver = Scripted::default();
    let instance = instance(&stack, &resolver);
    // As if a version had been made before it would have been refused.
    for (n, authority) in [
        format!("http://127.0.0.1:{port}/"),
        format!("https://127.0.0.1:{port}/"),
        format!("https://2130706433:{port}/"),
        format!("https://0x7f.0.0.1:{port}/"),
        format!("https://0177.0.0.1:{port}/"),
        format!("https://[::1]:{port}/"),
        format!("https://[::ffff:127.0.0.1]:{port}/"),
        format!("https://localhost:{port}/"),
        "https://169.254.169.254/latest/meta-data/".to_owned(),
        "https://10.0.0.1/".to_owned(),
    ]
    .iter()
    .enumerate()
    {
        let modes = json!({ "arena": mode(Some(authority)) });
        let game = game(&stack, &format!("literal-{n}"), modes, Value::Null).await;
        assert_eq!(refusal(&instance, &game).await, "MATCHMAKER_VERIFICATION_REQUEST_FAILED", "{authority}");
        assert!(listener.accept().is_err(), "{authority} was called");
    }
    assert_eq!(resolver.calls.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_version_that_would_have_such_an_address_called_is_refused() {
    let stack = TestStack::start().await;
    let game = stack.make_game("refused", json!({ "arena": { "regions": ["fra"] } }), 1, 0).await;
    let path = format!("/cloud/games/{}/versions", game.game_id());
    for (url, problem) in [
        ("http://verify.example/", "not-https"),
        ("https://127.0.0.1/", "not-public"),
        ("https://[::1]/", "not-public"),
        ("https://169.254.169.254/", "not-public"),
        ("https://10.0.0.1/", "not-public"),
        ("https://[::ffff:10.0.0.1]/", "not-public"),
        ("https://2130706433/", "not-public"),
        ("https://0x7f000001/", "not-public"),
        ("https://localhost/", "not-public"),
    ] {
        let config = json!({ "game_modes": { "arena": mode(Some(url)) } });
        let body = json!({ "display_name": "2", "config": config }).to_string();
        let token = Some(game.created.cloud_token.reveal());
        let refused = stack.call(Method::POST, &path, token, body).await;
        assert_eq!(refused.refusal(), (400, "VALIDATION_ERROR"), "{url}");
        let at =
            json!({ "path": ["game_modes", "arena", "actions", "find", "verification", "url", problem] });
        assert_eq!(refused.body["metadata"]["errors"][0], at, "{url}");
    }
}
