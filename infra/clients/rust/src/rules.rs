//! The rules that the tests of every client read, `infra/clients/rules.json`.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{
    Error, Event, GameServer, Muster, ServerOptions,
    api::FindLobbyRequest,
    error::Cause,
    http::{Call, DEADLINE, LONG_ATTEMPT, Reply, Transport, World, delay, refusal},
};

fn rules() -> Value {
    serde_json::from_str(include_str!("../../rules.json")).unwrap()
}

/// A response of the rules; `None` where there is none.
pub(crate) fn reply_of(case: &Value) -> Option<Reply> {
    let response = case.as_object()?;
    let text = |name: &str| response.get(name).and_then(Value::as_str);
    let mut body = text("body").unwrap_or_default().to_owned();
    if let Some(code) = text("code") {
        let metadata = response.get("metadata").cloned().unwrap_or_else(|| json!({}));
        body =
            json!({ "code": code, "message": "refused", "ray_id": "ray", "metadata": metadata }).to_string();
    }
    Some(Reply {
        status: u16::try_from(response["status"].as_u64().unwrap()).unwrap(),
        retry_after: text("retry_after").and_then(|text| text.parse().ok()).map(Duration::from_secs),
        ray_id: None,
        body: body.into_bytes(),
    })
}

pub(crate) fn ok(body: &Value) -> Option<Reply> {
    Some(Reply { status: 200, body: body.to_string().into_bytes(), ..Reply::default() })
}

fn seat() -> Option<Reply> {
    ok(&json!({
        "lobby": { "lobby_id": "lobby", "region": { "region_id": "fra", "display_name": "Frankfurt" } },
        "ports": {}, "player": { "token": "player_1" },
    }))
}

/// Responds by a script, each time after a second.
#[derive(Default)]
pub(crate) struct Scripted {
    replies: Mutex<VecDeque<Option<Reply>>>,
    pub(crate) sent: Mutex<Vec<(Call, tokio::time::Instant)>>,
    answered: AtomicUsize,
}

impl Scripted {
    pub(crate) fn new(replies: impl IntoIterator<Item = Option<Reply>>) -> Arc<Self> {
        Arc::new(Self { replies: Mutex::new(replies.into_iter().collect()), ..Self::default() })
    }

    pub(crate) fn paths(&self) -> Vec<String> {
        let last = |call: &Call| call.url.rsplit('/').next().unwrap().to_owned();
        self.sent.lock().unwrap().iter().map(|(call, _)| last(call)).collect()
    }
}

impl Transport for Scripted {
    fn send(&self, call: Call) -> BoxFuture<'_, Result<Reply, Cause>> {
        Box::pin(async move {
            let is_leave = call.url.ends_with("/leave");
            self.sent.lock().unwrap().push((call, tokio::time::Instant::now()));
            sleep(Duration::from_secs(1)).await;
            self.answered.fetch_add(1, Ordering::Relaxed);
            if is_leave {
                return Ok(ok(&json!({})).unwrap());
            }
            let reply = self.replies.lock().unwrap().pop_front();
            reply.expect("a request that no script expects").ok_or_else(|| "the line is cut".into())
        })
    }
}

fn request() -> FindLobbyRequest {
    FindLobbyRequest { game_modes: vec!["duel".to_owned()], ..FindLobbyRequest::default() }
}

#[tokio::test(start_paused = true)]
async fn each_response_of_the_rules_is_retried_or_final_after_its_wait() {
    for case in rules()["responses"].as_array().unwrap() {
        let reply = reply_of(&case["response"]);
        let transport = Scripted::new([reply, seat()]);
        let found = Muster::over(Arc::clone(&transport) as World).find(&request()).await;
        let sent = transport.sent.lock().unwrap();
        let is_retried = case["is_retried"].as_bool().unwrap();
        assert_eq!((found.is_ok(), sent.len()), (is_retried, 1 + usize::from(is_retried)), "{case}");
        if let [(first, began), (second, again)] = &sent[..] {
            assert!(first.key.is_some());
            assert_eq!((&first.key, &first.body), (&second.key, &second.body), "{case}");
            let waited = (*again - *began - Duration::from_secs(1)).as_millis() as f64;
            let bound = |nth: usize| case["wait"][nth].as_f64().unwrap();
            assert!((bound(0)..=bound(1) + 1.0).contains(&waited), "{case}: {waited} ms");
        }
    }
}

#[test]
fn deadline_attempt_and_backoff_are_those_of_the_rules() {
    let rules = rules();
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap();
    assert_eq!(rules["deadline"]["default"], millis(DEADLINE));
    assert_eq!(rules["attempt"]["seating"], millis(LONG_ATTEMPT));
    for (failures, bound) in (0..).zip(rules["backoff"]["bounds"].as_array().unwrap()) {
        let drawn = (0..1_000).map(|_| delay(failures, None)).max().unwrap();
        let bound = bound.as_f64().unwrap();
        assert!((bound * 0.9..=bound).contains(&(drawn.as_secs_f64() * 1_000.0)), "{failures}: {drawn:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_seat_of_an_intent_that_was_given_up_is_left() {
    // The same pauses in each run: one of less than a millisecond is over before it is seen.
    fastrand::seed(1);
    for case in rules()["given_up"]["cases"].as_array().unwrap() {
        let scripted = |step: &Value| match step {
            Value::Number(status) => reply_of(&json!({ "status": status, "body": "{}" })),
            Value::String(text) if text == "none" => None,
            Value::String(text) if text == "seat" => seat(),
            code => reply_of(&json!({ "status": 503, "code": code })),
        };
        let before = case["before"].as_array().unwrap();
        let steps: Vec<_> = before.iter().chain(case["then"].as_array().unwrap()).map(scripted).collect();
        let transport = Scripted::new(steps);
        let muster = Muster::over(Arc::clone(&transport) as World);
        let wanted = request();
        let mut finding = Box::pin(muster.find(&wanted));
        let is_during_attempt = case["during"] == "attempt";
        let is_there = || {
            let (sent, answered) =
                (transport.sent.lock().unwrap().len(), transport.answered.load(Ordering::Relaxed));
            answered == before.len() && sent == before.len() + usize::from(is_during_attempt)
        };
        while !is_there() {
            tokio::select! {
                _ = &mut finding => panic!("{case}: it ended before"),
                () = sleep(Duration::from_millis(1)) => {}
            }
        }
        drop(finding);
        muster.settled().await;
        let paths = transport.paths();
        let finds = paths.iter().filter(|path| *path == "find").count();
        let has_left = paths.iter().any(|path| path == "leave");
        assert_eq!(
            (finds, has_left),
            (case["requests"].as_u64().unwrap() as usize, case["leaves"] == true),
            "{case}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_arrives_as_the_wait_ends_is_given_back() {
    let transport = Scripted::new([seat()]);
    let muster = Muster::over(Arc::clone(&transport) as World);
    let wanted = request();
    let mut finding = Box::pin(muster.find(&wanted));
    assert!(futures_util::poll!(&mut finding).is_pending());
    while transport.answered.load(Ordering::Relaxed) == 0 {
        sleep(Duration::from_millis(1)).await;
    }
    for _ in 0..8 {
        tokio::task::yield_now().await;
    }
    drop(finding);
    muster.settled().await;
    assert_eq!(transport.paths(), ["find", "leave"]);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_looked_for_after_a_retry_after_beyond_the_limit() {
    let later = json!({ "status": 503, "retry_after": "3600", "body": "" });
    let transport = Scripted::new([reply_of(&later)]);
    let muster = Muster::over(Arc::clone(&transport) as World);
    assert_eq!(muster.find(&request()).await.unwrap_err().status, 503);
    let began = tokio::time::Instant::now();
    muster.settled().await;
    assert!(began.elapsed() <= Duration::from_millis(rules()["given_up"]["within"].as_u64().unwrap()));
    assert_eq!(transport.paths(), ["find"]);
}

pub(crate) fn registered() -> Option<Reply> {
    ok(&json!({ "server_id": "server", "lease_expires_at": null }))
}

pub(crate) fn lobbies(ids: &[&str], more: &Value) -> Option<Reply> {
    let lobbies: Vec<_> = ids
        .iter()
        .map(|id| {
            json!({ "lobby_id": id, "lobby_token": "lobby_1", "game_mode": "duel", "region_id": "fra", "tags": {},
                "max_players": 2, "seats": { "reserved": 1, "connected": 0 }, "created_at": "2026-01-01T00:00:00.000Z" })
        })
        .collect();
    let mut page = json!({ "lobbies": lobbies });
    if let Some(fields) = more.as_object() {
        page.as_object_mut().unwrap().extend(fields.clone());
    }
    ok(&page)
}

async fn server(
    transport: &Arc<Scripted>,
    heartbeat: Duration,
) -> Result<(GameServer, tokio::sync::mpsc::UnboundedReceiver<Event>), Error> {
    let options =
        ServerOptions { heartbeat, ..ServerOptions::new("http://muster.test", "server_1", "fra", [].into()) };
    GameServer::start_in(Arc::clone(transport) as World, options).await
}

#[tokio::test(start_paused = true)]
async fn the_lease_is_that_of_the_rules() {
    for case in rules()["heartbeats"]["lease"].as_array().unwrap() {
        let transport = Scripted::new([registered(), lobbies(&[], &Value::Null)]);
        let every = Duration::from_secs(case["every_seconds"].as_u64().unwrap());
        server(&transport, every).await.unwrap();
        let sent = transport.sent.lock().unwrap();
        let body: Value = serde_json::from_slice(sent[0].0.body.as_deref().unwrap()).unwrap();
        assert_eq!(body["lease_seconds"], case["lease_seconds"], "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn each_response_to_a_heartbeat_has_the_consequence_of_the_rules() {
    for case in rules()["heartbeats"]["responses"].as_array().unwrap() {
        let response = &case["response"];
        let page =
            |more: &Value| if response["status"].is_null() { lobbies(&[], more) } else { reply_of(response) };
        let registration = match &case["registration"] {
            Value::Null => registered(),
            refused => reply_of(refused),
        };
        let deregistered = case["is_draining"] == true;
        let mut steps = vec![registered(), lobbies(&[], &Value::Null)];
        if deregistered {
            steps.push(ok(&json!({})));
        }
        steps.push(page(response));
        match case["then"].as_str().unwrap() {
            "beat" => steps.push(lobbies(&[], &Value::Null)),
            "register" | "exit" => steps.push(registration),
            _ => {}
        }
        let expected = steps.len();
        let transport = Scripted::new(steps);
        let (server, mut events) = server(&transport, Duration::from_secs(30)).await.unwrap();
        let beaten = if deregistered { server.drain().await } else { server.beat().await };
        let event = if deregistered { Some(events.recv().await.unwrap()) } else { events.try_recv().ok() };
        assert_eq!(transport.sent.lock().unwrap().len(), expected, "{case}: {:?}", transport.paths());
        match case["then"].as_str().unwrap() {
            "error" => assert!(beaten.unwrap_err().is("TOKEN_REVOKED"), "{case}"),
            "exit" => assert!(matches!(event, Some(Event::Replaced(_))), "{case}: {event:?}"),
            "stop" => assert!(matches!(event, Some(Event::Stopped)), "{case}: {event:?}"),
            "register" => assert!(matches!(event, Some(Event::Registered)), "{case}: {event:?}"),
            _ => assert!(beaten.is_ok() && event.is_none(), "{case}: {event:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn each_player_is_admitted_or_refused_as_the_rules_say() {
    for case in rules()["admission"].as_array().unwrap() {
        let mut steps = vec![registered(), lobbies(&["lobby"], &Value::Null)];
        let is_shown = case["is_shown"] == true;
        let response = &case["response"];
        steps.push(if response["status"].is_null() {
            ok(&json!({ "player_id": "1" }))
        } else {
            reply_of(response)
        });
        let transport = Scripted::new(steps);
        let (server, _events) = server(&transport, Duration::from_secs(30)).await.unwrap();
        if is_shown {
            server.admit("lobby", "player_1").await.unwrap();
        }
        let admitted = server.admit("lobby", "player_1").await;
        assert_eq!(admitted.is_ok(), case["then"] == "admit", "{case}: {admitted:?}");
    }
}

#[test]
fn a_refusal_says_what_the_body_says() {
    let reply =
        reply_of(&json!({ "status": 400, "code": "MATCHMAKER_PARTY_TOO_LARGE", "metadata": { "max": 4 } }));
    let error = refusal(&reply.unwrap());
    assert!(error.is("MATCHMAKER_PARTY_TOO_LARGE") && !error.is_transient());
    assert_eq!((error.metadata.get("max"), error.ray_id.as_deref()), (Some(&json!(4)), Some("ray")));
    assert_eq!(error.to_string(), "refused");
    let body = json!({ "code": "MATCHMAKER_PARTY_TOO_LARGE", "message": "refused", "ray_id": "ray", "metadata": { "max": 4 } });
    assert_eq!(json!(*error), body);
}
