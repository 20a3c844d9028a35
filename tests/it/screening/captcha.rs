//! Whether a captcha is due, and what its provider's answers come to.

use std::{collections::HashMap, sync::Mutex, time::Duration};

use futures_util::future::join_all;
use harness::instance::{Instance, patient_client};
use wiremock::{Request, Respond};

use super::*;

const HOUR: Duration = Duration::from_secs(3_600);
const REQUIRED: (u16, &str) = (403, "CAPTCHA_CAPTCHA_REQUIRED");
const FAILED: (u16, &str) = (400, "CAPTCHA_CAPTCHA_FAILED");
const UNAVAILABLE: (u16, &str) = (503, "CAPTCHA_UNAVAILABLE");

/// A provider that does as Turnstile does: an answer counts once, or again under the same idempotency key.
struct OnceEach(Mutex<HashMap<String, Option<String>>>);

impl Respond for OnceEach {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        let form: HashMap<String, String> = url::form_urlencoded::parse(&request.body).into_owned().collect();
        let (response, key) = (form["response"].clone(), form.get("idempotency_key").cloned());
        let mut spent = self.0.lock().unwrap();
        let is_repeat = spent.get(&response).is_some_and(|first| first.is_some() && *first == key);
        if response.starts_with("good") && (is_repeat || !spent.contains_key(&response)) {
            spent.insert(response, key);
            return ResponseTemplate::new(200).set_body_json(json!({ "success": true, "hostname": "a" }));
        }
        let codes = json!(["timeout-or-duplicate"]);
        ResponseTemplate::new(200).set_body_json(json!({ "success": false, "error-codes": codes }))
    }
}

async fn provider() -> MockServer {
    let server = MockServer::start().await;
    for at in ["/hcaptcha", "/turnstile"] {
        let provider = OnceEach(Mutex::default());
        Mock::given(method("POST")).and(path(at)).respond_with(provider).mount(&server).await;
    }
    server
}

async fn stack_with(provider: &str, config: Value) -> (TestStack, TestGame) {
    let stack = TestStack::start_with_outside(outside(provider)).await;
    let game = game(&stack, "guarded", json!({ "arena": mode(None) }), config).await;
    (stack, game)
}

#[tokio::test]
async fn a_player_passes_the_captcha_of_either_provider_before_a_seat() {
    for (name, other) in [("hcaptcha", "turnstile"), ("turnstile", "hcaptcha")] {
        let server = provider().await;
        let (stack, game) = stack_with(&server.uri(), captcha(name, 2, HOUR)).await;
        for nothing in [find(None), json!({ "game_modes": ["arena"], "captcha": {} })] {
            let required = game.find(&stack, nothing).await;
            assert_eq!(required.refusal(), REQUIRED, "{name}");
            assert_eq!(required.body["metadata"], json!({ name: { "site_key": "site-key" } }));
        }
        for wrong in [(other, "good"), (name, ""), (name, "bad")] {
            assert_eq!(game.find(&stack, find(Some(wrong))).await.refusal(), FAILED, "{name} {wrong:?}");
        }
        assert_no_seat(&stack, &game, name).await;
        game.find(&stack, find(Some((name, "good")))).await.expect_ok();

        let forms = forms(&server).await;
        assert_eq!(forms.len(), 2, "neither another provider's nor an empty answer causes a request");
        let form = &forms[1];
        assert_eq!((&form["secret"][..], &form["response"][..]), ("captcha-secret", "good"));
        assert_eq!(form["remoteip"], "127.0.0.1");
        let particular = if name == "hcaptcha" { "sitekey" } else { "idempotency_key" };
        assert_eq!(form.len(), 4, "{form:?}");
        assert!(form.contains_key(particular), "{form:?}");
    }
}

#[tokio::test]
async fn joining_and_creating_need_the_captcha_too() {
    let server = provider().await;
    let (stack, game) = stack_with(&server.uri(), captcha("hcaptcha", 0, HOUR)).await;
    let captcha = |response: &str| json!({ "hcaptcha": { "client_response": response } });
    let create = json!({ "game_mode": "arena" });
    assert_eq!(game.play(&stack, "lobbies/create", create).await.refusal(), REQUIRED);
    assert_no_seat(&stack, &game, "create").await;
    let create = json!({ "game_mode": "arena", "captcha": captcha("good 1") });
    let created = game.play(&stack, "lobbies/create", create).await.expect_ok();
    let join = |captcha: Value| json!({ "lobby_id": created.lobby_id(), "captcha": captcha });
    assert_eq!(game.play(&stack, "lobbies/join", join(Value::Null)).await.refusal(), REQUIRED);
    assert_eq!(game.play(&stack, "lobbies/join", join(captcha("bad"))).await.refusal(), FAILED);
    assert_eq!(game.lobby(&stack, &created.lobby_id()).await.taken, 1);
    game.play(&stack, "lobbies/join", join(captcha("good 2"))).await.expect_ok();
}

#[tokio::test]
async fn an_invalid_response_of_a_provider_lets_no_player_in() {
    let json = |body: Value| ResponseTemplate::new(200).set_body_json(body);
    let huge = json!({ "success": true, "padding": "x".repeat(20_000) });
    let fault = json!({ "success": false, "error-codes": ["invalid-input-secret"] });
    let elsewhere = ResponseTemplate::new(307).insert_header("location", "/good");
    for (at, response) in [
        ("500", ResponseTemplate::new(500).set_body_json(json!({ "success": true }))),
        ("201", ResponseTemplate::new(201).set_body_json(json!({ "success": true }))),
        ("a redirect", elsewhere),
        ("garbage", ResponseTemplate::new(200).set_body_string("<html>true</html>")),
        ("nothing", ResponseTemplate::new(200)),
        ("more than one value", ResponseTemplate::new(200).set_body_string("{\"success\":true}{}")),
        ("a list", json(json!([true]))),
        ("no success", json(json!({ "ok": true }))),
        ("a success that is text", json(json!({ "success": "true" }))),
        ("a huge body", json(huge)),
        ("a secret that it does not know", json(fault)),
    ] {
        let server = MockServer::start().await;
        answering(&server, "/turnstile", response).await;
        answering(&server, "/good", json(json!({ "success": true }))).await;
        let (stack, game) = stack_with(&server.uri(), captcha("turnstile", 1, HOUR)).await;
        let answer = game.find(&stack, find(Some(("turnstile", "x")))).await;
        assert_eq!(answer.refusal(), UNAVAILABLE, "{at}");
        assert_eq!(answer.headers["retry-after"], "1", "{at}");
        assert!(!answer.body.to_string().contains("captcha-secret"), "{at}");
        assert_eq!(game.find(&stack, find(None)).await.refusal(), REQUIRED, "{at}: not passed");
        assert_eq!(server.received_requests().await.unwrap().len(), 1, "{at}");
        assert_no_seat(&stack, &game, at).await;
    }
}

#[tokio::test]
async fn a_missing_or_slow_provider_lets_no_player_in() {
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let (stack, game) = stack_with(&format!("http://{gone}"), captcha("hcaptcha", 1, HOUR)).await;
    assert_eq!(game.find(&stack, find(Some(("hcaptcha", "x")))).await.refusal(), UNAVAILABLE);
    assert_no_seat(&stack, &game, "gone").await;

    let headers = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 16\r\n\r\n";
    for (at, bytes) in [
        ("silence", String::new()),
        ("half a head", "HTTP/1.1 20".to_owned()),
        ("half a body", format!("{headers}{{\"success\":tru")),
    ] {
        let (url, sign) = stalling(bytes.into_bytes()).await;
        let (stack, game) = stack_with(&url, captcha("hcaptcha", 1, HOUR)).await;
        let answer = find_in_vain(&stack, &game, find(Some(("hcaptcha", "x"))), &sign).await;
        assert_eq!(answer.refusal(), UNAVAILABLE, "{at}");
        assert_no_seat(&stack, &game, at).await;
    }
    let (url, _sign) = stalling(b"SSH-2.0-OpenSSH_9.7\r\n\r\n".to_vec()).await;
    let (stack, game) = stack_with(&url, captcha("hcaptcha", 1, HOUR)).await;
    assert_eq!(game.find(&stack, find(Some(("hcaptcha", "x")))).await.refusal(), UNAVAILABLE, "no HTTP");
}

#[tokio::test]
async fn a_pass_counts_for_its_time_and_not_longer() {
    let server = provider().await;
    let (stack, game) = stack_with(&server.uri(), captcha("hcaptcha", 600, HOUR)).await;
    game.find(&stack, find(Some(("hcaptcha", "good 1")))).await.expect_ok();
    stack.clock.advance(HOUR);
    game.find(&stack, find(None)).await.expect_ok();
    stack.clock.advance(Duration::from_millis(1));
    assert_eq!(game.find(&stack, find(None)).await.refusal(), REQUIRED);
    game.find(&stack, find(Some(("hcaptcha", "good 2")))).await.expect_ok();
    stack.clock.advance(HOUR);
    game.find(&stack, find(None)).await.expect_ok();
}

#[tokio::test]
async fn a_pass_counts_for_its_requests_exactly_even_at_one_instant() {
    let server = provider().await;
    let (stack, game) = stack_with(&server.uri(), captcha("turnstile", 5, HOUR)).await;
    game.find(&stack, find(Some(("turnstile", "good")))).await.expect_ok();
    let answers = join_all((0..20).map(|_| game.find(&stack, find(None)))).await;
    let passed = answers.iter().filter(|answer| answer.status == 200).count();
    assert_eq!(passed, 5);
    assert!(answers.iter().all(|answer| answer.status == 200 || answer.refusal() == REQUIRED));
}

#[tokio::test]
async fn a_failed_attempt_changes_nothing() {
    let server = provider().await;
    let (stack, game) = stack_with(&server.uri(), captcha("hcaptcha", 1, HOUR)).await;
    assert_eq!(game.find(&stack, find(Some(("hcaptcha", "bad")))).await.refusal(), FAILED);
    assert_eq!(game.find(&stack, find(None)).await.refusal(), REQUIRED, "never passed");
    game.find(&stack, find(Some(("hcaptcha", "good")))).await.expect_ok();
    // While a pass counts, what comes with a request is not looked at, and counts as one.
    game.find(&stack, find(Some(("hcaptcha", "bad")))).await.expect_ok();
    for answer in [Some(("hcaptcha", "bad")), None] {
        let refusal = if answer.is_some() { FAILED } else { REQUIRED };
        assert_eq!(game.find(&stack, find(answer)).await.refusal(), refusal, "it was not counted anew");
    }
}

#[tokio::test]
async fn namespaces_do_not_share_a_pass() {
    let server = provider().await;
    let config = captcha("hcaptcha", 100, HOUR);
    let (stack, one) = stack_with(&server.uri(), config.clone()).await;
    let other = game(&stack, "other", json!({ "arena": mode(None) }), config).await;
    one.find(&stack, find(Some(("hcaptcha", "good")))).await.expect_ok();
    assert_eq!(other.find(&stack, find(None)).await.refusal(), REQUIRED);
    one.find(&stack, find(None)).await.expect_ok();
}

#[tokio::test]
async fn a_find_that_is_repeated_does_not_fail_its_own_captcha() {
    for name in ["turnstile", "hcaptcha"] {
        let server = provider().await;
        // Due at each request.
        let (stack, game) = stack_with(&server.uri(), captcha(name, 0, HOUR)).await;
        let again = || game.find(&stack, find(Some((name, "good"))));
        again().await.expect_ok();
        for _ in 0..3 {
            again().await.expect_ok();
        }
        assert_eq!(again().await.refusal(), FAILED, "{name}: not indefinitely");
        game.find(&stack, find(Some((name, "good 2")))).await.expect_ok();
        assert_eq!(again().await.refusal(), FAILED, "{name}: another answer came between");
        stack.clock.advance(Duration::from_secs(61));
        assert_eq!(
            game.find(&stack, find(Some((name, "good 2")))).await.refusal(),
            FAILED,
            "{name}: too late"
        );
    }
}

#[tokio::test]
async fn a_repetition_before_the_pass_is_noted_has_the_same_idempotency_key() {
    let server = MockServer::start().await;
    let lost = Mock::given(method("POST")).respond_with(ResponseTemplate::new(500));
    lost.up_to_n_times(1).mount(&server).await;
    answering(&server, "/turnstile", ResponseTemplate::new(200).set_body_json(json!({ "success": true })))
        .await;
    let (stack, game) = stack_with(&server.uri(), captcha("turnstile", 0, HOUR)).await;
    let find_with = |response: &'static str| game.find(&stack, find(Some(("turnstile", response))));
    assert_eq!(find_with("one").await.refusal(), UNAVAILABLE);
    find_with("one").await.expect_ok();
    find_with("two").await.expect_ok();
    find_with("one").await.expect_ok();
    let keys: Vec<_> = forms(&server).await.into_iter().map(|form| form["idempotency_key"].clone()).collect();
    assert_eq!(keys[0], keys[1]);
    assert_ne!(keys[1], keys[2], "another answer has another key");
    assert_ne!(keys[1], keys[3], "Turnstile refuses an answer that brought a pass before");
}

#[tokio::test]
async fn a_captcha_costs_one_write_and_its_absence_nothing() {
    let server = provider().await;
    let (stack, game) = stack_with(&server.uri(), captcha("hcaptcha", 100, HOUR)).await;
    let plain = super::game(&stack, "plain", json!({ "arena": mode(None) }), Value::Null).await;
    let mut usages = Vec::new();
    for (game, answer) in [(&plain, None), (&game, Some(("hcaptcha", "good")))] {
        let client = patient_client(stack.stack.store_endpoint());
        let (keys, ambient) = (stack.stack.keys(), stack.ambient());
        let instance = Instance::among(outside(&server.uri()), client, keys, &ambient);
        instance.find(&game.public, &find(answer)).await.unwrap();
        let before = instance.usage();
        instance.find(&game.public, &find(None)).await.unwrap();
        usages.push(instance.usage() - before);
    }
    let difference = usages[1] - usages[0];
    assert_eq!((difference.calls, difference.read_units, difference.write_units), (1, 0.0, 1.0));
}
