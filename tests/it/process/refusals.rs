//! How the command says what went wrong: to people, to programs by a code, to scripts by the exit status.

use wiremock::{Mock, MockServer, ResponseTemplate, matchers::any};

use super::*;

const NO_NETWORK: [(&str, &str); 1] = [("AWS_EC2_METADATA_DISABLED", "true")];

fn environment(more: &[(&str, &str)]) -> BTreeMap<String, String> {
    let all = NO_NETWORK.iter().chain(more);
    all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// Runs the command to where it fails: its status, its code, and what it says to programs and, the same, to
/// people.
async fn failure(arguments: &[&str], environment: &BTreeMap<String, String>) -> (i32, String, String) {
    let text = Program::run("muster", arguments, environment).await;
    let json = Program::run("muster", &[&["--json"], arguments].concat(), environment).await;
    assert_eq!((text.stdout.as_str(), json.stdout.as_str()), ("", ""), "{arguments:?}");
    assert_eq!(text.status, json.status, "{arguments:?}");
    let object: Value = serde_json::from_str(&json.stderr).unwrap_or_else(|_| panic!("{}", json.stderr));
    assert_eq!(object.as_object().unwrap().keys().collect::<Vec<_>>(), ["code", "message"]);
    let said = |field: &str| object[field].as_str().unwrap().to_owned();
    let message = said("message");
    assert!(text.stderr.contains(message.lines().next().unwrap()), "{}\n{message}", text.stderr);
    (text.status.code().unwrap(), said("code"), message)
}

#[tokio::test]
async fn programs_tell_failures_apart_by_code_and_status() {
    let (local, folder) = (Local::start(&[]).await, TestFolder::new());
    let modes = folder.path("modes.json");
    fs::write(&modes, r#"{"game_modes": {"arena": {"regions": ["fra"]}}}"#).unwrap();
    let broken = folder.path("broken.json");
    fs::write(&broken, r#"{"game_modes": {}}"#).unwrap();
    let missing = folder.path("missing.json");
    let nobody = format!("--local=http://127.0.0.1:{}", free_port());
    let create = ["game", "create", "demo", "--region", "fra=F@1,2", "--config", &modes, &local.option];
    let on = |words: &[&str]| -> Vec<String> {
        words.iter().copied().chain([local.option.as_str()]).map(str::to_owned).collect()
    };
    for (arguments, status, code) in [
        (on(&["nonsense"]), 2, "USAGE"),
        (on(&["game", "list", "--nonsense"]), 2, "USAGE"),
        (vec!["game".to_owned(), "list".to_owned()], 2, "USAGE"),
        (on(&["game", "show", "nothing"]), 3, "NOT_FOUND"),
        (on(&["lobby", "show", "nothing"]), 3, "NOT_FOUND"),
        (on(&["server", "remove", "demo/play", "nothing"]), 3, "NOT_FOUND"),
        (on(&["version", "validate", &missing]), 3, "FILE_NOT_FOUND"),
        (on(&["restore", "catalog=nope", "--yes"]), 3, "NOT_FOUND"),
        (on(&["restore", "catalog=no pe", "--yes"]), 2, "USAGE"),
        (on(&["version", "validate", &broken]), 4, "FILE_INVALID"),
        (create.map(str::to_owned).to_vec(), 4, "CLOUD_NAME_TAKEN"),
        (on(&["region", "add", "demo", "x=X@91,0"]), 4, "VALIDATION_ERROR"),
        (vec!["doctor".to_owned(), nobody], 5, "UNREACHABLE"),
    ] {
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        let (ended, said, message) = failure(&arguments, &environment(&[])).await;
        assert_eq!((ended, said.as_str()), (status, code), "{arguments:?}: {message}");
        assert!(!message.contains("our side"), "{arguments:?}: {message}");
    }
}

#[tokio::test]
async fn a_name_of_any_length_is_only_unknown() {
    let local = Local::start(&[]).await;
    let long = "x".repeat(100_000);
    for arguments in [
        ["game", "show", &long, &local.option],
        ["namespace", "show", &format!("{long}/prod"), &local.option],
        ["namespace", "show", &format!("demo/{long}"), &local.option],
    ] {
        let (status, code, message) = failure(&arguments, &environment(&[])).await;
        assert_eq!((status, code.as_str()), (3, "NOT_FOUND"), "{arguments:?}");
        assert!(message.len() < 400, "{message}");
    }
    let (_, _, message) =
        failure(&["version", "show", "demo", &long, &local.option], &environment(&[])).await;
    assert!(message.len() < 400, "{message}");
}

#[tokio::test]
async fn aws_that_is_not_there_does_not_answer_or_refuses_is_said_in_a_sentence() {
    let list = ["game", "list", "--stack", "x"];
    let (status, code, message) = failure(&list, &environment(&[])).await;
    assert_eq!((status, code.as_str()), (2, "USAGE"));
    assert!(message.starts_with("no AWS region: give --aws-region"), "{message}");

    let keys = [
        ("AWS_ACCESS_KEY_ID", "double"),
        ("AWS_SECRET_ACCESS_KEY", "double"),
        ("AWS_REGION", "eu-central-1"),
    ];
    let nobody = format!("http://127.0.0.1:{}", free_port());
    let unreachable = [&keys[..], &[("AWS_ENDPOINT_URL", nobody.as_str())]].concat();
    let (status, code, message) = failure(&list, &environment(&unreachable)).await;
    assert_eq!((status, code.as_str()), (5, "UNREACHABLE"), "{message}");
    assert!(message.starts_with("cannot reach AWS: ") && message.len() < 200, "{message}");

    let without = [("AWS_REGION", "eu-central-1"), ("AWS_ENDPOINT_URL", nobody.as_str())];
    let (status, code, message) = failure(&list, &environment(&without)).await;
    assert_eq!((status, code.as_str()), (6, "NOT_ALLOWED"), "{message}");
    assert!(message.starts_with("your credentials may not do this: there are none"), "{message}");

    for (http, aws, expected) in
        [(403, "AccessDenied", (6, "NOT_ALLOWED")), (400, "ValidationError", (3, "NOT_FOUND"))]
    {
        let double = MockServer::start().await;
        let body = format!(
            "<ErrorResponse><Error><Code>{aws}</Code><Message>not x</Message></Error></ErrorResponse>"
        );
        Mock::given(any())
            .respond_with(ResponseTemplate::new(http).set_body_string(body))
            .mount(&double)
            .await;
        let uri = double.uri();
        let refusing = [&keys[..], &[("AWS_ENDPOINT_URL", uri.as_str())]].concat();
        let (status, code, message) = failure(&list, &environment(&refusing)).await;
        assert_eq!((status, code.as_str()), expected, "{message}");
        assert!(message.contains(&format!("{aws}: not x")), "{message}");
    }
}

#[tokio::test]
async fn a_file_of_the_other_kind_or_without_end_is_named_as_that() {
    let (local, folder) = (Local::start(&[]).await, TestFolder::new());
    let modes = folder.path("modes.json");
    fs::write(&modes, r#"{"game_modes": {"arena": {"regions": ["fra"]}}}"#).unwrap();
    let exported = folder.path("demo.json");
    let game = Program::run("muster", &["game", "export", "demo", &local.option], &BTreeMap::new()).await;
    fs::write(&exported, &game.stdout).unwrap();
    for (arguments, says) in [
        (vec!["version", "validate", &exported], "is an exported game, which `muster game import`"),
        (vec!["version", "create", "demo", &exported, &local.option], "is an exported game"),
        (vec!["game", "import", &modes, &local.option], "is a version file, which `muster version create`"),
    ] {
        let (status, code, message) = failure(&arguments, &environment(&[])).await;
        assert_eq!((status, code.as_str()), (4, "FILE_INVALID"), "{message}");
        assert!(message.contains(says), "{message}");
    }

    let (status, code, message) = failure(&["version", "validate", "/dev/zero"], &environment(&[])).await;
    assert_eq!((status, code.as_str()), (2, "FILE_UNREADABLE"));
    assert_eq!(message, "cannot read /dev/zero: it has more than 1024 KB");
}

#[tokio::test]
async fn versions_that_are_created_at_once_get_numbers_of_their_own() {
    let (local, folder) = (Local::start(&[]).await, TestFolder::new());
    let modes = folder.path("modes.json");
    fs::write(&modes, r#"{"game_modes": {"arena": {"regions": ["local"]}}}"#).unwrap();
    let regions =
        Program::run("muster", &["region", "list", "demo", "--json", &local.option], &BTreeMap::new()).await;
    let regions: Value = serde_json::from_str(&regions.stdout).unwrap();
    let region = regions["regions"].as_object().unwrap().keys().next().unwrap();
    fs::write(&modes, json!({ "game_modes": { "arena": { "regions": [region] } } }).to_string()).unwrap();
    let arguments = ["version", "create", "demo", &modes, &local.option];
    let none = BTreeMap::new();
    let create = || Program::run("muster", &arguments, &none);
    let (a, b, c, d) = tokio::join!(create(), create(), create(), create());
    for ended in [a, b, c, d] {
        assert!(ended.status.success(), "{}", ended.stderr);
    }
    let list = Program::run("muster", &["version", "list", "demo", "--json", &local.option], &none).await;
    let list: Value = serde_json::from_str(&list.stdout).unwrap();
    let mut names: Vec<_> = list["versions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|version| version["display_name"].to_string())
        .collect();
    let all = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), all, "{names:?}");
}
