//! The starter `ecs`, against answers as ECS gives them.

use wiremock::matchers::header as with_header;

use super::*;

const CLUSTER: &str = "arn:aws:ecs:eu-central-1:123456789012:cluster/games";
const TASK: &str = "arn:aws:ecs:eu-central-1:123456789012:task/games/0123456789abcdef0123456789abcdef";

fn settings(spot: bool) -> StarterSettings {
    StarterSettings::Ecs(EcsSettings {
        cluster: CLUSTER.to_owned(),
        task_definition: "game:7".to_owned(),
        container: "game".to_owned(),
        subnets: vec!["subnet-0a".to_owned(), "subnet-0b".to_owned()],
        security_groups: vec!["sg-0a".to_owned()],
        spot,
    })
}

/// ECS, which gives these answers, each to all calls of its operation.
async fn ecs(answers: &[(&str, u16, Value)]) -> MockServer {
    let server = MockServer::start().await;
    for (operation, status, body) in answers {
        let target = format!("AmazonEC2ContainerServiceV20141113.{operation}");
        let response =
            ResponseTemplate::new(*status).set_body_raw(body.to_string(), "application/x-amz-json-1.1");
        Mock::given(with_header("x-amz-target", target.as_str())).respond_with(response).mount(&server).await;
    }
    server
}

fn task() -> Value {
    json!({
        "failures": [],
        "tasks": [{
            "attachments": [{ "id": "d9e7735a", "type": "ElasticNetworkInterface", "status": "PRECREATED" }],
            "clusterArn": CLUSTER, "cpu": "256", "createdAt": 1_764_374_400.123, "desiredStatus": "RUNNING",
            "lastStatus": "PROVISIONING", "launchType": "FARGATE", "memory": "512", "taskArn": TASK,
            "taskDefinitionArn": "arn:aws:ecs:eu-central-1:123456789012:task-definition/game:7",
        }],
    })
}

fn refusal(code: &str, message: &str) -> Value {
    json!({ "__type": code, "message": message })
}

#[tokio::test]
async fn a_start_is_one_task_with_the_servers_environment() {
    for spot in [false, true] {
        let ecs = ecs(&[("RunTask", 200, task()), ("StopTask", 200, json!({ "task": {} }))]).await;
        let scene = Scene::start(settings(spot)).await;
        let function = scene.function_over(scene.store(), Some(ecs.uri()));
        let (_, after) = scene.look_by(&function, 0).await.unwrap();
        let server = scene.server().await;
        assert_eq!(server.handle.as_deref(), Some(TASK));
        let requests = received(&ecs).await;
        let [(request, body)] = requests.as_slice() else { panic!("{} requests", requests.len()) };
        let signed = "AWS4-HMAC-SHA256 Credential=example/";
        assert!(header(request, "authorization").starts_with(signed));
        let start_id = server.start_id.as_ref().unwrap().as_str();
        assert_eq!(
            (&body["clientToken"], &body["startedBy"]),
            (&json!(start_id), &json!(scene.started_by()))
        );
        assert!(TEMPLATE.contains("startedBy: [{ prefix: muster/ }]"), "the rule for tasks that stop");
        assert_eq!(body["cluster"], CLUSTER);
        let container = &body["overrides"]["containerOverrides"][0];
        assert_eq!(container["name"], "game");
        let environment = container["environment"].as_array().unwrap();
        assert!(environment.contains(&json!({ "name": "MUSTER_START_ID", "value": start_id })));
        let network = json!({ "subnets": ["subnet-0a", "subnet-0b"], "securityGroups": ["sg-0a"],
                              "assignPublicIp": "ENABLED" });
        assert_eq!(body["networkConfiguration"]["awsvpcConfiguration"], network);
        let provider = &body["capacityProviderStrategy"][0]["capacityProvider"];
        assert_eq!((provider == "FARGATE_SPOT", body["launchType"] == "FARGATE"), (spot, !spot));

        scene.stack.clock.advance(after);
        scene.look_by(&function, 0).await;
        let (_, stop) = received(&ecs).await.pop().unwrap();
        assert_eq!((&stop["cluster"], &stop["task"]), (&json!("games"), &json!(TASK)));
        let server = scene.server().await;
        let ran = server.ended_at.unwrap().since(server.launch.unwrap().requested_at);
        assert!(ran >= Duration::from_secs(60), "{ran:?}");
        scene.look_by(&function, 0).await;
        assert_eq!([function.take_ran_secs(), function.take_ran_secs()], [ran.as_secs(), 0]);
    }
}

#[tokio::test]
async fn each_refusal_of_ecs_has_its_meaning() {
    let failure = |reason: &str| json!({ "tasks": [], "failures": [{ "reason": reason }] });
    for (status, body, stage, reason) in [
        (200, failure("RESOURCE:MEMORY"), LaunchStage::Requested, None),
        (200, failure("Capacity is unavailable at this time."), LaunchStage::Requested, None),
        (200, failure("MISSING"), LaunchStage::Failed, Some("ECS has no place for the task: MISSING")),
        (500, refusal("ServerException", "sorry"), LaunchStage::Requested, None),
        (400, refusal("ThrottlingException", "Rate exceeded"), LaunchStage::Requested, None),
        (
            400,
            refusal("AccessDeniedException", "User: arn:aws:sts::123456789012:a is not authorized"),
            LaunchStage::Failed,
            Some("ECS answered AccessDeniedException"),
        ),
        (
            400,
            refusal("com.amazonaws.ecs#ClusterNotFoundException", "Cluster not found."),
            LaunchStage::Failed,
            Some("ECS answered ClusterNotFoundException"),
        ),
    ] {
        let ecs =
            ecs(&[("RunTask", status, body.clone()), ("ListTasks", 200, json!({ "taskArns": [] }))]).await;
        let scene = Scene::start(settings(false)).await;
        let function = scene.function_over(scene.store(), Some(ecs.uri()));
        let again = scene.look_by(&function, 0).await;
        let server = scene.server().await;
        assert_eq!((server.stage, server.failure.as_deref()), (Some(stage), reason), "{body}");
        assert_eq!(again.is_some_and(|(tries, _)| tries == 1), stage == LaunchStage::Requested, "{body}");
    }
}

#[tokio::test]
async fn a_token_that_has_run_a_task_is_a_start_that_was_accepted() {
    let ecs = ecs(&[
        ("RunTask", 400, refusal("ConflictException", "the token was used with other parameters")),
        ("ListTasks", 200, json!({ "taskArns": [TASK] })),
    ])
    .await;
    let scene = Scene::start(settings(false)).await;
    let function = scene.function_over(scene.store(), Some(ecs.uri()));
    scene.look_by(&function, 0).await;
    let server = scene.server().await;
    assert_eq!((server.stage, server.handle.as_deref()), (Some(LaunchStage::Requested), Some(TASK)));
    let (_, list) = received(&ecs).await.pop().unwrap();
    assert_eq!(list["startedBy"], scene.started_by());
}

impl Scene {
    fn started_by(&self) -> String {
        format!("muster/{}", self.key)
    }
}

/// What EventBridge puts into the queue when a task stops.
fn stopped(started_by: &str, task: &str) -> Value {
    let detail = json!({
        "availabilityZone": "eu-central-1b", "clusterArn": CLUSTER, "desiredStatus": "STOPPED",
        "lastStatus": "STOPPED", "launchType": "FARGATE", "startedBy": started_by, "taskArn": task,
        "stopCode": "EssentialContainerExited", "stoppedReason": "Essential container in task exited",
        "group": "family:game", "overrides": { "containerOverrides": [{ "name": "game" }] },
        "containers": [{ "name": "game", "lastStatus": "STOPPED", "exitCode": 137, "taskArn": task,
                         "image": "123456789012.dkr.ecr.eu-central-1.amazonaws.com/game:7" }],
        "stoppedAt": "2026-11-29T12:00:00.123Z", "version": 5,
    });
    let event = json!({
        "version": "0", "id": "9bcdac79-b31f-4d3d-9410-fbd727c29fab", "detail-type": "ECS Task State Change",
        "source": "aws.ecs", "account": "123456789012", "time": "2026-11-29T12:00:00Z", "region": "eu-central-1",
        "resources": [task], "detail": detail,
    });
    json!({ "Records": [{ "messageId": "m-1", "body": event.to_string() }] })
}

#[tokio::test]
async fn a_task_that_stops_before_it_registers_fails_its_start_at_once() {
    let forgotten = refusal("InvalidParameterException", "The referenced task was not found.");
    let ecs = ecs(&[("RunTask", 200, task()), ("StopTask", 400, forgotten)]).await;
    let scene = Scene::start(settings(false)).await;
    let function = scene.function_over(scene.store(), Some(ecs.uri()));
    scene.look_by(&function, 0).await;
    let other_task = TASK.replace('0', "1");
    let other_server = "muster/00000000-0000-4000-8000-000000000000/00000000-0000-4000-8000-000000000000";
    for (started_by, task) in
        [(scene.started_by().as_str(), other_task.as_str()), (other_server, TASK), ("ecs-svc/1", TASK)]
    {
        let (answer, error) = function.answer(stopped(started_by, task)).await;
        assert_done(&answer, error.as_ref());
        assert_eq!(scene.server().await.stage, Some(LaunchStage::Requested), "{started_by} {task}");
    }

    for _copy in 0..2 {
        let (answer, error) = function.answer(stopped(&scene.started_by(), TASK)).await;
        assert_done(&answer, error.as_ref());
        let server = scene.server().await;
        assert_eq!(server.stage, Some(LaunchStage::Failed));
        let reason = "its task stopped: EssentialContainerExited, exit status 137";
        assert_eq!(server.failure.as_deref(), Some(reason));
    }
}
