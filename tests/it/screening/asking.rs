//! How often services outside are called: once for a request, however often it is repeated, and never for a
//! client at its cap.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join_all;
use harness::new_game;

use super::*;

/// A game whose clients may hold `cap` seats, and whose version is of `config`.
async fn capped_game(stack: &TestStack, cap: u32, config: Value) -> TestGame {
    let mut new = new_game("capped", json!({ "arena": { "regions": ["fra"], "max_players": 10 } }), 1_000);
    new.namespaces[0].max_players_per_client = cap;
    let game = stack.make_game_of(new, 100).await;
    run_version(stack, &game, config).await;
    game
}

async fn keyed_find(stack: &TestStack, game: &TestGame, body: Value) -> Answer {
    game.play_keyed(stack, "lobbies/find", "k", body).await
}

/// A provider that gives its `verdict` after a sign. Returns the sign, and the count of its calls.
async fn patient_provider(verdict: &Value) -> (String, Arc<Notify>, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (goes_on, calls) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
    let (resumed, counted) = (Arc::clone(&goes_on), Arc::clone(&calls));
    let verdict = verdict.to_string();
    let response = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{verdict}", verdict.len());
    tokio::spawn(async move {
        while let Ok((mut connection, _)) = listener.accept().await {
            let mut request = vec![0; 4_096];
            let _read = connection.read(&mut request).await.unwrap();
            counted.fetch_add(1, Ordering::SeqCst);
            resumed.notified().await;
            connection.write_all(response.as_bytes()).await.unwrap();
        }
    });
    (url, goes_on, calls)
}

/// Waits until both places among those who wait for the one request that is noted are taken.
async fn both_wait(stack: &TestStack) {
    let store = stack.store();
    loop {
        let scan = store.client().scan().table_name(&store.tables().clients).send().await.unwrap();
        let is_full = |place: &str| scan.items().iter().any(|item| item.contains_key(place));
        if is_full("first_waits_until") && is_full("second_waits_until") {
            return;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn equal_concurrent_requests_call_a_provider_once() {
    for verdict in [json!({ "success": true }), json!({ "success": false })] {
        let (url, goes_on, calls) = patient_provider(&verdict).await;
        let stack = TestStack::start_with_outside(outside(&url)).await;
        let minute = Duration::from_secs(60);
        let config =
            json!({ "game_modes": { "arena": mode(None) }, "captcha": captcha("hcaptcha", 0, minute) });
        let game = capped_game(&stack, 8, config).await;
        let finds = (0..3).map(|_| keyed_find(&stack, &game, find(Some(("hcaptcha", "answer")))));
        let judged = async {
            both_wait(&stack).await;
            goes_on.notify_one();
        };
        let (answers, ()) = tokio::join!(join_all(finds), judged);
        assert_eq!(calls.load(Ordering::SeqCst), 1, "I5: {verdict}");
        if verdict["success"] == true {
            assert!(
                answers.iter().all(|answer| answer.status == 200 && answer.body == answers[0].body),
                "I5"
            );
        } else {
            let failed = (400, "CAPTCHA_CAPTCHA_FAILED");
            assert!(answers.iter().all(|answer| answer.refusal() == failed), "{verdict}");
            assert_no_seat(&stack, &game, "refused").await;
        }
    }
}

#[tokio::test]
async fn a_later_retry_of_a_request_refused_outside_is_checked_again() {
    let server = MockServer::start().await;
    let no = Mock::given(method("POST")).and(path("/may")).respond_with(ResponseTemplate::new(403));
    no.up_to_n_times(1).mount(&server).await;
    answering(&server, "/may", ResponseTemplate::new(200)).await;
    let stack = TestStack::start_with_outside(outside(&server.uri())).await;
    let modes = json!({ "arena": mode(Some(&format!("{}/may", server.uri()))) });
    let game = capped_game(&stack, 8, json!({ "game_modes": modes })).await;
    let refused = keyed_find(&stack, &game, find(None)).await;
    assert_eq!(refused.refusal(), (400, "MATCHMAKER_VERIFICATION_FAILED"));
    keyed_find(&stack, &game, find(None)).await.expect_ok();
    keyed_find(&stack, &game, find(None)).await.expect_ok();
    assert_eq!(
        server.received_requests().await.unwrap().len(),
        2,
        "I5: what was answered is not checked again"
    );
}

#[tokio::test]
async fn a_client_at_its_cap_causes_no_call_outside() {
    let server = MockServer::start().await;
    answering(&server, "/may", ResponseTemplate::new(200)).await;
    answering(&server, "/hcaptcha", ResponseTemplate::new(200).set_body_json(json!({ "success": true })))
        .await;
    let stack = TestStack::start_with_outside(outside(&server.uri())).await;
    let modes = json!({ "arena": mode(Some(&format!("{}/may", server.uri()))) });
    let captcha = captcha("hcaptcha", 0, Duration::from_secs(60));
    let game = capped_game(&stack, 2, json!({ "game_modes": modes, "captcha": captcha })).await;
    let find_with = |n: usize| {
        let response = format!("answer {n}");
        let (stack, game) = (&stack, &game);
        async move { game.find(stack, find(Some(("hcaptcha", &response)))).await }
    };
    let seats = [find_with(0).await.expect_ok(), find_with(1).await.expect_ok()];
    let calls = server.received_requests().await.unwrap().len();
    let at_cap = (400, "MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE");
    for answer in join_all((2..42).map(find_with)).await {
        assert_eq!(answer.refusal(), at_cap, "I12");
    }
    assert_eq!(server.received_requests().await.unwrap().len(), calls);
    // A hold whose seat is gone does not count.
    game.disconnect(&stack, &seats[0]).await.expect_ok();
    find_with(42).await.expect_ok();
}
