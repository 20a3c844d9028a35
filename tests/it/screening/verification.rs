//! Studios' backends: the requests to them, and the effects of their responses.

use super::*;

const REFUSED: (u16, &str) = (400, "MATCHMAKER_VERIFICATION_FAILED");
const REQUEST_FAILED: (u16, &str) = (400, "MATCHMAKER_VERIFICATION_REQUEST_FAILED");

async fn stack_with(url: &str) -> (TestStack, TestGame) {
    let stack = TestStack::start_with_outside(outside("http://127.0.0.1:9")).await;
    let game = game(&stack, "verified", json!({ "arena": mode(Some(url)) }), Value::Null).await;
    (stack, game)
}

#[tokio::test]
async fn a_backend_is_called_for_each_action() {
    let server = MockServer::start().await;
    answering(&server, "/may", ResponseTemplate::new(204)).await;
    let (stack, game) = stack_with(&format!("{}/may", server.uri())).await;
    let find = json!({ "game_modes": ["arena"], "regions": ["nyc", "fra"], "tags": { "map": "harbour" },
                       "max_players": 4, "verification_data": { "ticket": [1, null] } });
    game.find(&stack, find).await.expect_ok();
    let tags = json!({ "map": "mill" });
    let create = json!({ "game_mode": "arena", "region": "fra", "tags": tags });
    let created = game.play(&stack, "lobbies/create", create).await.expect_ok();
    let join = json!({ "lobby_id": created.lobby_id(), "verification_data": {} });
    game.play(&stack, "lobbies/join", join).await.expect_ok();

    let requests = server.received_requests().await.unwrap();
    let questions: Vec<Value> = requests.iter().map(|request| request.body_json().unwrap()).collect();
    let namespace_id = game.namespace_id();
    let question = |kind: &str, regions: Value, tags: Value, max_players: Value, data: Value| {
        json!({
            "verification_data": data, "client": { "address": "127.0.0.1" }, "kind": kind,
            "game": { "namespace_id": namespace_id, "game_mode": "arena", "region_ids": regions, "tags": tags,
                      "max_players": max_players },
        })
    };
    let expected = [
        question(
            "find",
            json!(["nyc", "fra"]),
            json!({ "map": "harbour" }),
            json!(4),
            json!({ "ticket": [1, null] }),
        ),
        question("create", json!(["fra"]), tags.clone(), Value::Null, Value::Null),
        question("join", json!(["fra"]), tags, json!(10), json!({})),
    ];
    assert_eq!(questions, expected);
    for request in requests {
        assert_eq!(request.headers["x-secret"], "header-secret");
        assert_eq!(request.headers["content-type"], "application/json");
    }
}

#[tokio::test]
async fn a_backend_gets_the_data_to_the_letter() {
    let server = MockServer::start().await;
    answering(&server, "/may", ResponseTemplate::new(204)).await;
    let (stack, game) = stack_with(&format!("{}/may", server.uri())).await;
    let data = r#"{ "ticket": 123456789012345678901234567890, "b": 1.10, "a": "\u00e4" }"#;
    let body = format!(r#"{{"game_modes":["arena"],"verification_data":{data},"player_data":[{data}]}}"#);
    stack.call(Method::POST, "/matchmaker/lobbies/find", Some(&game.public), body).await.expect_ok();
    let requests = server.received_requests().await.unwrap();
    let question = str::from_utf8(&requests[0].body).unwrap();
    let handed_on = format!(r#""verification_data":{data},"player_data":[{data}],"#);
    assert!(question.contains(&handed_on), "{question}");
}

#[tokio::test]
async fn a_backend_is_told_of_a_party_and_asked_once_for_it() {
    let server = MockServer::start().await;
    answering(&server, "/may", ResponseTemplate::new(204)).await;
    let stack = TestStack::start_with_outside(outside("http://127.0.0.1:9")).await;
    let mut mode = mode(Some(&format!("{}/may", server.uri())));
    mode["party_size_max"] = 2.into();
    let game = game(&stack, "party", json!({ "arena": mode }), Value::Null).await;
    let find = json!({ "game_modes": ["arena"], "party_size": 2, "players_data": [{ "name": "Ada" }, null] });
    game.find(&stack, find).await.expect_ok();
    let requests = server.received_requests().await.unwrap();
    let question: Value = serde_json::from_slice(&requests[0].body).unwrap();
    let told = (&question["party_size"], &question["players_data"], &question["player_data"]);
    assert_eq!(told, (&json!(2), &json!([{ "name": "Ada" }, null]), &Value::Null));
    assert_eq!(requests.len(), 1);
}

#[tokio::test]
async fn only_2xx_lets_in_and_no_redirect_is_followed() {
    let elsewhere = |status| ResponseTemplate::new(status).insert_header("location", "/good");
    let huge = "x".repeat(5_000_000);
    for (response, refusal) in [
        (ResponseTemplate::new(200), None),
        (ResponseTemplate::new(299), None),
        (ResponseTemplate::new(200).set_body_string(&*huge), None),
        (ResponseTemplate::new(200).set_body_string("no JSON"), None),
        (ResponseTemplate::new(403).set_body_string(&*huge), Some(REFUSED)),
        (ResponseTemplate::new(404), Some(REFUSED)),
        (ResponseTemplate::new(500), Some(REFUSED)),
        (elsewhere(301), Some(REFUSED)),
        (elsewhere(303), Some(REFUSED)),
        (elsewhere(307), Some(REFUSED)),
    ] {
        let server = MockServer::start().await;
        let at = format!("{response:?}").chars().take(200).collect::<String>();
        answering(&server, "/may", response).await;
        answering(&server, "/good", ResponseTemplate::new(200)).await;
        let (stack, game) = stack_with(&format!("{}/may", server.uri())).await;
        let answer = game.find(&stack, find(None)).await;
        assert_eq!(server.received_requests().await.unwrap().len(), 1, "{at}");
        match refusal {
            None => assert_eq!(answer.status, 200, "{at}: {}", answer.body),
            Some(refusal) => {
                assert_eq!(answer.refusal(), refusal, "{at}");
                assert_no_seat(&stack, &game, &at).await;
            }
        }
    }
}

#[tokio::test]
async fn an_unreachable_backend_lets_no_player_in() {
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let (no_http, _sign) = stalling(b"SSH-2.0-OpenSSH_9.7\r\n\r\n".to_vec()).await;
    for url in [format!("http://{gone}"), no_http] {
        let (stack, game) = stack_with(&url).await;
        let answer = game.find(&stack, find(None)).await;
        assert_eq!(answer.refusal(), REQUEST_FAILED, "{url}");
        assert!(!answer.body.to_string().contains("header-secret"));
        assert_no_seat(&stack, &game, &url).await;
    }
    for bytes in ["", "HTTP/1.1 2", "HTTP/1.1 200 OK\r\nx: "] {
        let (url, sign) = stalling(bytes.as_bytes().to_vec()).await;
        let (stack, game) = stack_with(&url).await;
        let answer = find_in_vain(&stack, &game, find(None), &sign).await;
        assert_eq!(answer.refusal(), REQUEST_FAILED, "{bytes}");
        assert_no_seat(&stack, &game, bytes).await;
    }
    // Its status has come: its body may take as long as it likes.
    let (url, _sign) = stalling(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n1".to_vec()).await;
    let (stack, game) = stack_with(&url).await;
    game.find(&stack, find(None)).await.expect_ok();
}

#[tokio::test]
async fn all_requested_modes_backends_must_agree() {
    let server = MockServer::start().await;
    answering(&server, "/yes", ResponseTemplate::new(200)).await;
    answering(&server, "/no", ResponseTemplate::new(403)).await;
    let at = |path: &str| mode(Some(&format!("{}{path}", server.uri())));
    let stack = TestStack::start_with_outside(outside("http://127.0.0.1:9")).await;
    let modes =
        json!({ "a": at("/yes"), "b": at("/yes"), "c": at("/no"), "d": at("/gone"), "e": mode(None) });
    let game = game(&stack, "modes", modes, Value::Null).await;
    for (modes, calls, refusal) in [
        (json!(["e"]), 0, None),
        (json!(["a", "c"]), 2, Some(REFUSED)),
        (json!(["c", "d"]), 2, Some(REFUSED)),
        (json!(["e", "d"]), 1, Some(REFUSED)),
        (json!(["b", "a", "b", "e"]), 2, None),
    ] {
        server.reset().await;
        answering(&server, "/yes", ResponseTemplate::new(200)).await;
        let answer = game.find(&stack, json!({ "game_modes": modes })).await;
        let requests = server.received_requests().await.unwrap();
        assert_eq!(requests.len(), calls, "{modes}");
        match refusal {
            None => assert_eq!(answer.status, 200, "{modes}: {}", answer.body),
            Some(refusal) => assert_eq!(answer.refusal(), refusal, "{modes}"),
        }
    }
}

#[tokio::test]
async fn backends_at_different_addresses_are_called_at_the_same_time() {
    let (one, one_sign) = stalling(Vec::new()).await;
    let (other, other_sign) = stalling(Vec::new()).await;
    let stack = TestStack::start_with_outside(outside("http://127.0.0.1:9")).await;
    let modes = json!({ "arena": mode(Some(&one)), "other": mode(Some(&other)) });
    let game = game(&stack, "slow", modes, Value::Null).await;
    let time_passes = async {
        tokio::join!(one_sign.notified(), other_sign.notified());
        stack.clock.advance(Duration::from_secs(5));
    };
    let body = json!({ "game_modes": ["arena", "other"] });
    let (answer, ()) = tokio::join!(game.find(&stack, body), time_passes);
    assert_eq!(answer.refusal(), REQUEST_FAILED, "five seconds for all of them");
    assert_no_seat(&stack, &game, "slow").await;
}

#[tokio::test]
async fn the_captcha_comes_before_the_verification_and_rules_before_both() {
    let server = MockServer::start().await;
    answering(&server, "/may", ResponseTemplate::new(403)).await;
    let verdict = json!({ "success": true });
    answering(&server, "/hcaptcha", ResponseTemplate::new(200).set_body_json(verdict)).await;
    let stack = TestStack::start_with_outside(outside(&server.uri())).await;
    let modes = json!({ "arena": mode(Some(&format!("{}/may", server.uri()))) });
    let game = game(&stack, "both", modes, captcha("hcaptcha", 1, Duration::from_secs(60))).await;
    let unknown = game.find(&stack, json!({ "game_modes": ["arena"], "regions": ["mars"] })).await;
    assert_eq!(unknown.refusal(), (400, "MATCHMAKER_REGION_NOT_FOUND"));
    assert_eq!(game.find(&stack, find(None)).await.refusal(), (403, "CAPTCHA_CAPTCHA_REQUIRED"));
    assert!(server.received_requests().await.unwrap().is_empty());
    assert_eq!(game.find(&stack, find(Some(("hcaptcha", "x")))).await.refusal(), REFUSED);
    assert_eq!(server.received_requests().await.unwrap().len(), 2);
    assert_no_seat(&stack, &game, "both").await;
}
