//! The operator's command against a running stack.

use std::{
    io::pipe,
    process::{Output, Stdio},
};

use tokio::process::Command;

use super::*;
use crate::artefacts::binary;

const MODES: &str = r#"{"game_modes": {"arena": {"regions": ["fra", "nyc"], "max_players": 8}}}"#;

/// Runs `muster game create` with `arguments`.
async fn create(arguments: &[&str]) -> Ended {
    let arguments = [&["game", "create"], arguments].concat();
    Program::run("muster", &arguments, &BTreeMap::new()).await
}

/// Runs it to where it refuses, and returns its one line about that.
async fn refusal(arguments: &[&str]) -> String {
    let Ended { status, stdout, stderr } = create(arguments).await;
    assert!(status.code().is_some_and(|code| code > 1), "{arguments:?}: {stdout} {stderr}");
    assert_eq!(stdout, "", "{arguments:?}");
    let message = stderr.strip_prefix("muster: ").unwrap_or_else(|| panic!("{stderr}"));
    assert_eq!(message.lines().count(), 1, "{stderr}");
    message.trim_end().to_owned()
}

/// A file with a version's configuration.
fn config(folder: &TestFolder, text: &str) -> String {
    let path = folder.path("config.json");
    fs::write(&path, text).unwrap();
    path
}

const REGIONS: [&str; 4] = ["--region", "fra=Frankfurt@50.11,8.68", "--region", "nyc=New York@40.71,-74.01"];

async fn expect_right(local: &Local, token: &str, game_id: &str, namespace_id: &str) {
    let url =
        format!("{}/cloud/games/{game_id}/namespaces/{namespace_id}/mm-config/validate", local.base_url);
    let answer = post(&url, token, r#"{"lobby_count_max":1,"max_players":1}"#).await;
    assert_eq!(answer.expect_ok().body, json!({ "errors": [] }));
}

#[tokio::test]
async fn a_created_game_is_managed_with_the_token_that_the_text_shows() {
    let (local, folder) = (Local::start(&[]).await, TestFolder::new());
    let config = config(&folder, MODES);
    let arguments = [&["my-game", "--config", &config, &local.option], &REGIONS[..]].concat();
    let Ended { status, stdout, stderr } = create(&arguments).await;
    assert!(status.success(), "{stderr}");
    let form = Regex::new(
        r"^game +(\S+)  my-game\nversion +(\S+)  1\nnamespace +(\S+)  prod\nnamespace +(\S+)  staging\ntoken +(cloud_\S+)\n.+\n$",
    )
    .unwrap();
    let found = form.captures(&stdout).unwrap_or_else(|| panic!("{stdout}"));
    let [game_id, version_id, prod, staging, token] = [1, 2, 3, 4, 5].map(|n| found.get(n).unwrap().as_str());
    expect_right(&local, token, game_id, prod).await;
    expect_right(&local, token, game_id, staging).await;

    let url = format!("{}/cloud/games/{game_id}/namespaces/{prod}/version", local.base_url);
    let put = Request::put(&url).header("authorization", format!("Bearer {token}"));
    let set = send(put, &json!({ "version_id": version_id }).to_string()).await;
    assert_eq!(set.expect_ok().body, json!({}));

    let demo = local.demo().await;
    let foreign = format!(
        "{}/cloud/games/{}/namespaces/{}/mm-config/validate",
        local.base_url,
        demo["game_id"].as_str().unwrap(),
        demo["namespace_id"].as_str().unwrap()
    );
    assert_eq!(post(&foreign, token, "{}").await.refusal(), (403, "API_FORBIDDEN"));
}

#[tokio::test]
async fn a_created_game_is_managed_with_the_token_that_the_json_shows() {
    let (local, folder) = (Local::start(&[]).await, TestFolder::new());
    let config = config(&folder, MODES);
    let arguments = [&["my-game", "--json", "--config", &config, &local.option], &REGIONS[..]].concat();
    let Ended { status, stdout, stderr } = create(&arguments).await;
    assert!(status.success(), "{stderr}");
    let created: Value = serde_json::from_str(&stdout).unwrap();
    let names: Vec<_> = created.as_object().unwrap().keys().collect();
    assert_eq!(names, ["cloud_token", "game_id", "namespaces", "version_id"]);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let (token, game_id) = (text(&created["cloud_token"]), text(&created["game_id"]));
    assert_eq!(created["namespaces"].as_object().unwrap().len(), 2);
    for name in ["prod", "staging"] {
        expect_right(&local, &token, &game_id, &text(&created["namespaces"][name])).await;
    }
}

#[tokio::test]
async fn a_name_is_taken_once() {
    let (local, folder) = (Local::start(&[]).await, TestFolder::new());
    let config = config(&folder, MODES);
    let arguments = [&["my-game", "--config", &config, &local.option], &REGIONS[..]].concat();
    assert!(create(&arguments).await.status.success());
    assert_eq!(refusal(&arguments).await, "there is already a game named `my-game`");
    let demo = [&["demo", "--config", &config, &local.option], &REGIONS[..]].concat();
    assert_eq!(refusal(&demo).await, "there is already a game named `demo`");
}

#[tokio::test]
async fn a_file_that_cannot_be_read_or_used_is_named_with_the_place_in_it() {
    let (local, folder) = (Local::start(&[]).await, TestFolder::new());
    let missing = folder.path("missing.json");
    let arguments = |config: &str| -> Vec<String> {
        let own = ["my-game", "--config", config, &local.option];
        own.into_iter().chain(REGIONS).map(str::to_owned).collect()
    };
    let refusal_of = async |config: &str| {
        let arguments = arguments(config);
        refusal(&arguments.iter().map(String::as_str).collect::<Vec<_>>()).await
    };
    let unreadable = refusal_of(&missing).await;
    assert!(unreadable.starts_with(&format!("cannot read {missing}: ")), "{unreadable}");

    for (text, place) in [
        ("{", "no JSON: EOF while parsing an object at line 1 column 1"),
        (
            r#"{"game_modes": {"arena": {"regions": ["fra"], "max_players": "8"}}}"#,
            "game_modes/arena/max_players: ",
        ),
        (
            r#"{"game_modes": {"arena": {"regions": ["fra"], "max_player": 8}}}"#,
            "game_modes/arena/max_player: ",
        ),
        (r#"{"game_modes": {"a b": {"regions": ["fra"]}}}"#, "game_modes"),
    ] {
        let path = config(&folder, text);
        let invalid = refusal_of(&path).await;
        let wanted = format!("{path} is not valid: line 1: {place}");
        assert!(invalid.starts_with(&wanted), "{text}: {invalid}");
    }
    for (text, places) in [
        (r#"{"game_modes": {}}"#, "game_modes/too-few (1 to 32 modes)"),
        (
            r#"{"game_modes": {"arena": {"regions": ["mars"]}}}"#,
            "game_modes/arena/regions/not-found (`mars` is not one of ",
        ),
        (
            r#"{"game_modes": {"a": {"regions": []}, "b": {"regions": ["fra"], "max_players": 0}}}"#,
            "game_modes/a/regions/too-few (at least one region); game_modes/b/max_players/too-low (1 to 256)",
        ),
    ] {
        let path = config(&folder, text);
        let (refused, wanted) =
            (refusal_of(&path).await, format!("the version configuration is not valid: {places}"));
        assert!(refused.starts_with(&wanted), "{refused}");
    }
    // Nothing was made under the name by any of these.
    let path = config(&folder, MODES);
    let arguments = arguments(&path);
    assert!(create(&arguments.iter().map(String::as_str).collect::<Vec<_>>()).await.status.success());
}

#[tokio::test]
async fn text_after_the_configuration_is_refused() {
    let (local, folder) = (Local::start(&[]).await, TestFolder::new());
    let path = config(&folder, &format!("{MODES} {{"));
    let message = refusal(&[&["my-game", "--config", &path, &local.option], &REGIONS[..]].concat()).await;
    assert!(message.starts_with(&format!("{path} is not valid: line 1: no JSON: ")), "{message}");
}

#[tokio::test]
async fn without_a_stack_to_work_on_it_says_so() {
    let folder = TestFolder::new();
    let config = config(&folder, MODES);
    let nobody = format!("http://127.0.0.1:{}", free_port());
    let arguments = [&["my-game", "--config", &config], &REGIONS[..]].concat();
    let option = format!("--local={nobody}");
    let message = refusal(&[&arguments[..], &[&option]].concat()).await;
    assert!(message.starts_with(&format!("no local stack answers at {nobody} (")), "{message}");
    assert!(message.ends_with("; start it with `muster-local`"), "{message}");

    let message = refusal(&arguments).await;
    assert!(message.starts_with("name a deployment: --local "), "{message}");
}

/// Runs a binary of the workspace whose output has no reader, as before `| head`.
async fn unread(name: &str, arguments: &[&str]) -> Output {
    let (reader, writer) = pipe().unwrap();
    drop(reader);
    let mut process = Command::new(binary(name));
    process.args(arguments).stdin(Stdio::null()).stdout(writer).stderr(Stdio::piped()).kill_on_drop(true);
    process.spawn().unwrap().wait_with_output().await.unwrap()
}

#[tokio::test]
async fn an_output_without_a_reader_is_no_failure() {
    let schema = unread("muster", &["version", "schema"]).await;
    assert!(schema.status.success() && schema.stderr.is_empty(), "{schema:?}");
    let local = Local::start(&[]).await;
    let list = unread("muster", &["game", "list", &local.option]).await;
    assert!(list.status.success() && list.stderr.is_empty(), "{list:?}");
    // Its lines are lost one by one; the session goes on to its end.
    let session = unread("muster-example", &["--url", &local.base_url, "--bots", "1"]).await;
    assert!(session.status.success() && session.stderr.is_empty(), "{session:?}");
}
