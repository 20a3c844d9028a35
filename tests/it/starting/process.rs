//! The function's binary as Lambda runs it.

use harness::runtime_api::Outcome;

use super::*;
use crate::{
    artefacts::{Ended, binary},
    runtime::{Instance, environment},
};

#[tokio::test]
async fn the_binary_forwards_the_stream_to_the_queue_and_looks_at_what_the_queue_brings() {
    let queue = MockServer::start().await;
    let sent = json!({ "MessageId": "5fea7756", "MD5OfMessageBody": "00000000000000000000000000000000" });
    Mock::given(method("POST"))
        .respond_with(ResponseTemplate::new(200).set_body_raw(sent.to_string(), "application/x-amz-json-1.0"))
        .mount(&queue)
        .await;
    // Built before the minute begins in which the server must register.
    let _built = binary("start-server");
    let scene = Scene::start(webhook("https://10.0.0.1/")).await;
    let url = format!("{}/123456789012/starts", queue.uri());
    let mut variables = environment("start-server");
    for (name, value) in [
        ("AWS_ENDPOINT_URL_DYNAMODB", scene.stack.stack.store_endpoint()),
        ("MUSTER_STARTS_QUEUE_URL", url.as_str()),
        ("AWS_ACCESS_KEY_ID", "local"),
        ("AWS_SECRET_ACCESS_KEY", "local-secret"),
        ("MUSTER_LOG", "trace"),
    ] {
        variables.insert(name.to_owned(), value.to_owned());
    }
    let mut instance = Instance::start("start-server", &variables).await;
    let mut answered = async |event: Value| match instance.invoke(&event.to_string()).await {
        Outcome::Answered(answer) => assert_eq!(answer, json!({ "batchItemFailures": [] })),
        Outcome::Failed(error) => panic!("{error}"),
    };
    answered(Scene::change(&scene.server().await)).await;
    let requests = received(&queue).await;
    let [(request, message)] = requests.as_slice() else { panic!("{} requests", requests.len()) };
    assert_eq!(header(request, "x-amz-target"), "AmazonSQS.SendMessage");
    assert!(header(request, "authorization").contains("/sqs/aws4_request"));
    assert_eq!((&message["QueueUrl"], &message["DelaySeconds"]), (&json!(url), &json!(0)));
    let look: Look = serde_json::from_str(message["MessageBody"].as_str().unwrap()).unwrap();
    assert_eq!(look, Look { server: scene.key.clone(), tries: 0 });

    // What it finds there is refused for good, as its address is none that a function calls.
    answered(Scene::message(&look)).await;
    let failure = scene.server().await.failure.unwrap();
    assert_eq!(failure, "the address may not be called: not-public");
    let Ended { stdout, stderr, .. } = instance.kill().await;
    let signing_key = &variables["MUSTER_SIGNING_KEY"];
    for secret in ["whsec_", "server_ey", "local-secret", signing_key] {
        assert!(!stdout.contains(secret) && !stderr.contains(secret), "it logs a secret: {secret}");
    }
}
