//! The starter `webhook`: what a receiver gets, and what each of its answers means.

use super::*;

async fn receiver(response: ResponseTemplate) -> MockServer {
    let receiver = MockServer::start().await;
    Mock::given(method("POST")).respond_with(response).mount(&receiver).await;
    receiver
}

#[tokio::test]
async fn i16_a_requested_server_is_started_once_however_often_it_is_said() {
    let receiver = receiver(ResponseTemplate::new(201).set_body_json(json!({ "handle": "machine-1" }))).await;
    let scene = Scene::start(webhook(&receiver.uri())).await;
    let (function, server) = (scene.function(), scene.server().await);

    // The stream's record only becomes a message.
    let (answer, error) = function.answer(Scene::change(&server)).await;
    assert_done(&answer, error.as_ref());
    assert!(received(&receiver).await.is_empty());
    let forwarded: Vec<_> = scene.queue.0.lock().unwrap().drain(..).collect();
    assert_eq!(forwarded, [(Look { server: server.server.clone(), tries: 0 }, Duration::ZERO)]);

    for _ in 0..3 {
        assert_eq!(scene.look().await, Some((0, Duration::from_secs(60))));
    }
    let requests = received(&receiver).await;
    let [(request, body)] = requests.as_slice() else { panic!("{} requests", requests.len()) };
    let start_id = server.start_id.clone().unwrap();
    assert_eq!(header(request, "webhook-id"), format!("{}.start", start_id.as_str()));
    assert_eq!(header(request, "webhook-timestamp"), scene.stack.clock.now().secs().to_string());
    let environment = body["environment"].as_object().unwrap();
    let names: Vec<_> = environment.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "MUSTER_API_URL",
            "MUSTER_BUILD",
            "MUSTER_CAPACITY",
            "MUSTER_LEASE_SECONDS",
            "MUSTER_NAMESPACE_ID",
            "MUSTER_REGION_ID",
            "MUSTER_SERVER_ID",
            "MUSTER_SERVER_TOKEN",
            "MUSTER_START_ID",
        ]
    );
    assert_eq!(environment["MUSTER_API_URL"], API_URL);
    let mut rest = body.clone();
    rest.as_object_mut().unwrap().remove("environment");
    assert_eq!(
        rest,
        json!({
            "type": "server.start", "namespace_id": server.server.namespace_id, "region_id": "fra",
            "server_id": server.server.server_id, "start_id": start_id, "build": { "image": "game:7", "port": 7_777 },
        })
    );
    assert_eq!(scene.server().await.handle.as_deref(), Some("machine-1"));
}

#[tokio::test]
async fn each_answer_of_a_receiver_has_its_meaning() {
    for (status, body, reason) in [
        (200, "not JSON", None),
        (204, "", None),
        (408, "", Some("")),
        (429, "", Some("")),
        (500, "secret details", Some("")),
        (503, "", Some("")),
        (302, "", Some("the webhook answered with status 302")),
        (400, "no such\nimage", Some("the webhook answered with status 400: no such image")),
        (401, "", Some("the webhook answered with status 401")),
        (404, "", Some("the webhook answered with status 404")),
    ] {
        let receiver = receiver(ResponseTemplate::new(status).set_body_string(body)).await;
        let scene = Scene::start(webhook(&receiver.uri())).await;
        let again = scene.look().await;
        let server = scene.server().await;
        match reason {
            None => {
                let start_id = server.start_id.as_ref().unwrap().as_str();
                assert_eq!(server.handle.as_deref(), Some(start_id), "{status}");
                assert_eq!(again, Some((0, Duration::from_secs(60))), "{status}");
            }
            Some("") => {
                let (tries, after) = again.unwrap();
                assert_eq!((tries, server.stage), (1, Some(LaunchStage::Requested)), "{status}");
                assert!(after > Duration::ZERO && after <= Duration::from_secs(1), "{status}: {after:?}");
                assert_eq!(server.handle, None, "{status}");
            }
            Some(reason) => {
                assert_eq!(server.stage, Some(LaunchStage::Failed), "{status}");
                assert_eq!(server.failure.as_deref(), Some(reason), "{status}");
            }
        }
    }
}

#[tokio::test]
async fn what_is_refused_for_good_is_told_to_be_stopped_and_to_finds() {
    let receiver = receiver(ResponseTemplate::new(404)).await;
    let scene = Scene::start(webhook(&receiver.uri())).await;
    scene.look().await;
    let server = scene.server().await;
    assert_eq!(server.stage, Some(LaunchStage::Failed));
    assert!(server.ended_at.is_some(), "nothing is there, so nothing is left to stop");
    let requests = received(&receiver).await;
    let kinds: Vec<_> = requests.iter().map(|(_, body)| body["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["server.start", "server.stop"]);
    let (request, body) = &requests[1];
    assert!(header(request, "webhook-id").ends_with(".stop"));
    assert!(body.get("environment").is_none() && body.get("handle").is_none(), "{body}");
}

#[tokio::test]
async fn a_server_that_does_not_register_is_stopped_by_its_handle_without_any_request_of_players() {
    let receiver = receiver(ResponseTemplate::new(200).set_body_json(json!({ "handle": "machine-1" }))).await;
    let scene = Scene::start(webhook(&receiver.uri())).await;
    let (_, after) = scene.look().await.unwrap();
    scene.stack.clock.advance(after);
    scene.look().await;
    let server = scene.server().await;
    assert_eq!(server.failure.as_deref(), Some("it did not register within 60 seconds"));
    let (_, stop) = received(&receiver).await.pop().unwrap();
    assert_eq!((&stop["type"], &stop["handle"]), (&json!("server.stop"), &json!("machine-1")));
}

#[tokio::test]
async fn a_receiver_that_does_not_answer_is_asked_again() {
    let (url, sign) = stalling(Vec::new()).await;
    let scene = Scene::start(webhook(&url)).await;
    let time_passes = async {
        sign.notified().await;
        scene.stack.clock.advance(Duration::from_secs(10));
    };
    let (again, ()) = tokio::join!(scene.look(), time_passes);
    assert_eq!(again.map(|(tries, _)| tries), Some(1));
    assert_eq!(scene.server().await.stage, Some(LaunchStage::Requested));
}

#[tokio::test]
async fn a_crash_between_start_and_note_repeats_the_same_bytes_under_the_same_identifier() {
    let receiver = receiver(ResponseTemplate::new(200)).await;
    let scene = Scene::start(webhook(&receiver.uri())).await;
    let link = Losing::calls(scene.stack.stack.store_link(), |call| call.operation == "UpdateItem");
    let store = scene.restricted(&patient_client_over(Arc::new(link)));
    let look = Look { server: scene.server().await.server, tries: 0 };
    let (answer, error) = scene.function_over(store, None).answer(Scene::message(&look)).await;
    assert_eq!(answer, json!({ "batchItemFailures": [{ "itemIdentifier": "m-1" }] }));
    assert!(matches!(error, Some(Error::Unavailable(_))), "{error:?}");

    scene.stack.clock.advance(Duration::from_secs(30));
    assert!(scene.look().await.is_some());
    let requests = received(&receiver).await;
    let [(first, _), (second, _)] = requests.as_slice() else { panic!("{} requests", requests.len()) };
    assert_eq!(first.body, second.body);
    assert_eq!(header(first, "webhook-id"), header(second, "webhook-id"));
}

#[tokio::test]
async fn what_names_no_server_does_not_come_again() {
    let receiver = receiver(ResponseTemplate::new(200)).await;
    let scene = Scene::start(webhook(&receiver.uri())).await;
    for event in [
        json!({}),
        json!({ "Records": [{ "eventSource": "aws:s3" }] }),
        json!({ "Records": [{ "messageId": "m", "body": "no JSON" }] }),
        json!({ "Records": [{ "messageId": "m", "body": "{\"server\": \"unknown/unknown\"}" }] }),
    ] {
        let (answer, error) = scene.function().answer(event).await;
        assert_done(&answer, error.as_ref());
    }
    assert!(received(&receiver).await.is_empty() && scene.queue.0.lock().unwrap().is_empty());
}
