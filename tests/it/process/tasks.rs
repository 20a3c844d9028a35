//! What `muster doctor` says of the tasks of Amazon ECS that run for game servers of a stack.

use std::sync::{Arc, Mutex};

use wiremock::{Mock, Request as ReceivedRequest, ResponseTemplate, matchers::header};

use super::{
    moving::{CLUSTER, aws, with_tables_of},
    serve::Machine,
    *,
};

const LINE: &str = "tasks of Amazon ECS have a game server";

/// Answers the calls of an operation of ECS, before AWS's other services.
fn ecs(operation: &str, answer: impl Fn(&Value) -> (u16, Value) + Send + Sync + 'static) -> Mock {
    let target = format!("AmazonEC2ContainerServiceV20141113.{operation}");
    let answer = move |request: &ReceivedRequest| {
        let (status, body) = answer(&request.body_json().unwrap());
        ResponseTemplate::new(status).set_body_json(body)
    };
    Mock::given(header("x-amz-target", target.as_str())).respond_with(answer).with_priority(1)
}

/// The line of the doctor about tasks, where ECS answers so.
async fn line(machine: &Machine, answers: impl IntoIterator<Item = Mock>) -> String {
    let key = fs::read_to_string(format!("{}/signing-key", machine.data)).unwrap();
    let aws = aws(None, &Arc::new(Mutex::new(key))).await;
    for answer in answers {
        answer.mount(&aws).await;
    }
    let environment = with_tables_of(machine, &aws);
    let ended = Program::run("muster", &["doctor", "--stack", "muster-prod"], &environment).await;
    assert!(ended.status.success(), "{ended:?}");
    let lines: Vec<_> = ended.stdout.lines().filter(|line| line.contains(LINE)).collect();
    assert_eq!(lines.len(), 1, "{}", ended.stdout);
    lines[0].to_owned()
}

#[tokio::test]
async fn the_doctor_names_tasks_whose_game_server_has_no_record() {
    let folder = TestFolder::new();
    let machine = Machine::with_game(&folder, &[]).await;
    machine.register(&machine.token("server").await, true).await;
    let listed: Value =
        serde_json::from_str(&machine.ask(&["namespace", "list", "my-game", "--json"]).await).unwrap();
    let own = listed["namespaces"][0]["namespace_id"].as_str().unwrap();

    // A page with a task of each kind, then one of tasks without a record alone.
    let starters = [
        format!("muster/{own}/one"),
        format!("muster/{own}/gone"),
        "muster/another/of-another-stack".to_owned(),
        "ecs-svc/1".to_owned(),
    ];
    let list = ecs("ListTasks", |request| {
        assert_eq!((&request["cluster"], &request["desiredStatus"]), (&json!(CLUSTER), &json!("RUNNING")));
        let (tasks, next) = if request["nextToken"] == "more" { (4..10, None) } else { (0..4, Some("more")) };
        let arns: Vec<_> = tasks.map(|nth| format!("task-{nth}")).collect();
        (200, json!({ "taskArns": arns, "nextToken": next }))
    });
    let describe = ecs("DescribeTasks", move |request| {
        assert_eq!(request["cluster"], CLUSTER);
        let described = request["tasks"].as_array().unwrap().iter().map(|arn| {
            let nth: usize = arn.as_str().unwrap().rsplit('-').next().unwrap().parse().unwrap();
            json!({ "taskArn": arn, "startedBy": starters.get(nth).unwrap_or(&starters[1]) })
        });
        (200, json!({ "tasks": described.collect::<Vec<_>>(), "failures": [] }))
    });
    let strays = ["task-1", "task-4", "task-5", "task-6", "task-7"];
    let strays = strays.map(|task| format!("{task} of gone has none: stop it")).join("; ");
    assert_eq!(line(&machine, [list, describe]).await, format!("warn  {LINE}: {strays}; and 2 more"));

    let none = ecs("ListTasks", |_| (200, json!({ "taskArns": [] })));
    assert_eq!(line(&machine, [none]).await, format!("ok    {LINE}"));
    let denied =
        ecs("ListTasks", |_| (403, json!({ "__type": "AccessDeniedException", "message": "not you" })));
    let says = "they cannot be read: AccessDeniedException: not you";
    assert_eq!(line(&machine, [denied]).await, format!("warn  {LINE}: {says}"));
    machine.stop().await;
}

#[tokio::test]
async fn without_its_tables_the_doctor_names_these_and_no_tasks() {
    let aws = aws(None, &Arc::new(Mutex::new("k".repeat(40)))).await;
    for (operation, body) in [
        ("ListTasks", json!({ "taskArns": ["task"] })),
        ("DescribeTasks", json!({ "tasks": [{ "taskArn": "task", "startedBy": "muster/some/one" }] })),
    ] {
        ecs(operation, move |_| (200, body.clone())).mount(&aws).await;
    }
    let folder = TestFolder::new();
    let machine = Machine::with_game(&folder, &[]).await;
    let mut environment = with_tables_of(&machine, &aws);
    machine.stop().await;
    // Nothing listens there any more, and the connection is refused at once.
    environment.insert("AWS_MAX_ATTEMPTS".to_owned(), "1".to_owned());
    let ended = Program::run("muster", &["doctor", "--stack", "muster-prod"], &environment).await;
    let failed = ended.stderr.lines().filter(|line| line.starts_with("FAIL  table ")).count();
    assert_eq!((failed, ended.stderr.contains(LINE)), (8, false), "{}", ended.stderr);
}
