//! `cargo run` as users see it: the local stack as a process, its text, its folder, its end.

#![cfg(unix)]
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "this is test code: what cannot go on panics"
)]

use std::{collections::BTreeMap, fs, net::TcpListener, os::unix::fs::PermissionsExt as _, time::Duration};

use harness::{Answer, game_server::registration};
use http::{Method, Request, request};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use regex_lite::Regex;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::artefacts::{Ended, PATIENCE, Program, TestFolder};

mod agent;
mod collection;
mod commands;
mod consent;
mod cost;
mod crashes;
mod exchange;
mod faults;
mod leaks;
mod listeners;
mod load;
mod log;
mod moving;
mod on_demand;
mod operator;
mod own_game;
mod private;
mod reach;
mod refusals;
mod releases;
mod restoring;
mod serve;
mod store;
mod tasks;
mod watching;

const BINARY: &str = "muster-local";

/// A running stack.
struct Local {
    program: Program,
    base_url: String,
    /// The local stack's data for the operator's command.
    option: String,
}

impl Local {
    /// Starts a stack on a free port, once it says that it listens.
    async fn start(arguments: &[&str]) -> Self {
        Self::start_with(arguments, BTreeMap::new()).await
    }

    async fn start_with(arguments: &[&str], environment: BTreeMap<String, String>) -> Self {
        let arguments = [&["--port", "0"], arguments].concat();
        let mut program = Program::start(BINARY, &arguments, &environment);
        let Some(line) = program.line_with("Muster listens on ").await else {
            panic!("{:?}", program.end().await);
        };
        let base_url = line.strip_prefix("Muster listens on ").expect("nothing before it").to_owned();
        assert!(base_url.starts_with("http://127.0.0.1:"), "{base_url}");
        Self::new(program, base_url)
    }

    fn new(program: Program, base_url: String) -> Self {
        let option = format!("--local={base_url}");
        Self { program, base_url, option }
    }

    async fn start_in(folder: &str) -> Self {
        Self::start(&["--data", folder]).await
    }

    fn port(&self) -> &str {
        self.base_url.rsplit(':').next().expect("a port")
    }

    /// The response of `/_local/demo`.
    async fn demo(&self) -> Value {
        get(&format!("{}/_local/demo", self.base_url)).await.expect_ok().body
    }

    /// Runs `muster` on this stack.
    async fn muster(&self, arguments: &[&str]) -> Ended {
        Program::run("muster", &[arguments, &[self.option.as_str()]].concat(), &BTreeMap::new()).await
    }

    /// What `muster` prints, which must succeed.
    async fn ask(&self, arguments: &[&str]) -> String {
        let Ended { status, stdout, stderr } = self.muster(arguments).await;
        assert!(status.success(), "{arguments:?}: {stdout}{stderr}");
        stdout.trim_end().to_owned()
    }

    async fn find(&self, token: &str, body: Value) -> Answer {
        let url = format!("{}/matchmaker/lobbies/find", self.base_url);
        post(&url, token, &body.to_string()).await
    }

    /// What it prints, and the address and answer of each command with a body in it, run as printed.
    async fn run_printed(&mut self) -> (String, Vec<(String, Value)>) {
        let _last = self.program.line_with("Ctrl-C stops it").await.unwrap();
        let command =
            Regex::new(r"(?m)^curl -s (\S+) \\\n +-H 'Authorization: Bearer (\S+)' \\\n +-d '(.+)'$")
                .unwrap();
        let text = self.program.printed();
        let mut answers = Vec::new();
        for found in command.captures_iter(&text) {
            let [url, token, body] = [1, 2, 3].map(|group| found.get(group).unwrap().as_str());
            let body = body.replace(r"'\''", "'");
            answers.push((url.to_owned(), post(url, token, &body).await.expect_ok().body));
        }
        (text, answers)
    }

    /// Ends the stack as Ctrl-C does, which must succeed.
    async fn interrupt(mut self) -> Ended {
        self.program.signal("INT");
        let ended = self.program.end().await;
        assert_eq!(ended.status.code(), Some(0), "{ended:?}");
        ended
    }
}

async fn send(request: request::Builder, body: &str) -> Answer {
    let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
    let request = request.body(Full::new(Bytes::copy_from_slice(body.as_bytes()))).unwrap();
    let response = timeout(PATIENCE, client.request(request)).await.expect("an answer in time").unwrap();
    let (parts, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    Answer::new(parts, &body)
}

async fn get(url: &str) -> Answer {
    send(Request::get(url), "").await
}

/// Posts as `curl -d` does, which calls every body a form.
async fn post(url: &str, token: &str, body: &str) -> Answer {
    let request = Request::post(url)
        .header("authorization", format!("Bearer {token}"))
        .header("content-type", "application/x-www-form-urlencoded");
    send(request, body).await
}

/// A port that nothing listens on.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Runs the stack to where it refuses to start, and returns its one line about that.
async fn refusal(arguments: &[&str]) -> String {
    let Ended { status, stdout, stderr } = Program::run(BINARY, arguments, &BTreeMap::new()).await;
    assert!(!status.success(), "{arguments:?}");
    assert_eq!(stdout, "", "{arguments:?}");
    let message = stderr.strip_prefix("muster-local: ").unwrap_or_else(|| panic!("{stderr}"));
    assert_eq!(message.lines().count(), 1, "{stderr}");
    message.trim_end().to_owned()
}

#[tokio::test]
async fn the_printed_commands_work_as_printed() {
    let mut local = Local::start(&[]).await;
    let (text, answers) = local.run_printed().await;
    let [(find, found), (validate, errors)] = answers.as_slice() else {
        panic!("two commands with a body: {text}");
    };
    assert!(find.ends_with("/matchmaker/lobbies/find") && found["player"]["token"].is_string(), "{found}");
    assert!(validate.ends_with("/mm-config/validate"), "{validate}");
    assert_eq!(*errors, json!({ "errors": [{ "path": ["lobby-count", "too-low"] }] }));

    let plain = Regex::new(r"curl -s (\S+/_local/demo)\b").unwrap();
    let demo = get(plain.captures(&text).unwrap().get(1).unwrap().as_str()).await.expect_ok().body;
    assert_eq!(demo["base_url"], local.base_url.as_str());
}

#[tokio::test]
async fn the_local_routes_return_the_demo_and_the_store() {
    let local = Local::start(&[]).await;
    let demo = local.demo().await;
    for kind in ["cloud", "public", "development", "server"] {
        assert!(demo["tokens"][kind].as_str().is_some_and(|token| !token.is_empty()), "{kind}");
    }
    let found =
        local.find(demo["tokens"]["public"].as_str().unwrap(), json!({ "game_modes": ["solo"] })).await;
    let _lobby = found.expect_ok().lobby_id();

    let store = get(&format!("{}/_local/store", local.base_url)).await.expect_ok().body;
    let endpoint = Regex::new("^http://[0-9a-f]{32}@127.0.0.1:[0-9]+$").unwrap();
    assert!(endpoint.is_match(store["endpoint"].as_str().unwrap()), "{store}");
    assert_eq!(store["tables"].as_object().unwrap().len(), 8, "{store}");
}

#[tokio::test]
async fn an_unknown_route_is_answered_as_by_the_gateway() {
    let local = Local::start(&[]).await;
    for path in ["/matchmaker/lobbies", "/cloud/bootstrap/more", "/_local", "/_local/nothing"] {
        let answer = get(&format!("{}{path}", local.base_url)).await;
        assert_eq!((answer.status.as_u16(), answer.body), (404, json!({ "message": "Not Found" })), "{path}");
    }
    let wrong_method = post(&format!("{}/cloud/bootstrap", local.base_url), "any", "{}").await;
    assert_eq!(wrong_method.status, 404);
}

#[tokio::test]
async fn a_port_in_use_is_refused_and_its_owner_goes_on() {
    let local = Local::start(&[]).await;
    let message = refusal(&["--port", local.port()]).await;
    let wanted =
        format!("127.0.0.1:{} is in use by another program; stop it or choose another port", local.port());
    assert_eq!(message, wanted);
    let _still_there = local.demo().await;
}

#[tokio::test]
async fn a_data_folder_that_is_a_file_is_refused() {
    let folder = TestFolder::new();
    let file = folder.path("file");
    fs::write(&file, "mine").unwrap();
    let message = refusal(&["--port", "0", "--data", &file]).await;
    assert_eq!(message, format!("data folder {file} is not a folder"));
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
}

#[tokio::test]
async fn a_data_folder_in_use_is_refused_and_its_owner_goes_on() {
    let folder = TestFolder::new();
    let data = folder.path("data");
    let local = Local::start_in(&data).await;
    let message = refusal(&["--port", "0", "--data", &data]).await;
    assert_eq!(
        message,
        format!("data folder {data} is in use by another running stack; stop it or choose another folder")
    );
    let token = local.demo().await["tokens"]["public"].as_str().unwrap().to_owned();
    let _found = local.find(&token, json!({ "game_modes": ["duel"] })).await.expect_ok();
}

/// Finds a duel on a game server that outlives the stack, ends the stack by `end`, starts it again in the
/// same folder, and expects the duel's second seat by the first stack's token.
async fn expect_kept(end: impl AsyncFnOnce(Local)) {
    let folder = TestFolder::new();
    let (data, file) = (folder.path("data"), folder.path("modes.json"));
    let duel = json!({ "game_modes": ["duel"] });
    fs::write(&file, r#"{"game_modes": {"duel": {"regions": ["fra"], "max_players": 2}}}"#).unwrap();
    let start = || async { Local::start(&["--data", &data, "--config", &file]).await };
    let local = start().await;
    let before = local.demo().await;
    let token = before["tokens"]["public"].as_str().unwrap();
    let server = registration("by-hand", &json!({ "lease_seconds": 0 })).to_string();
    let url = format!("{}/matchmaker/servers/register", local.base_url);
    post(&url, before["tokens"]["server"].as_str().unwrap(), &server).await.expect_ok();
    let first = local.find(token, duel.clone()).await.expect_ok();
    let key = fs::read(folder.path("data/signing-key")).unwrap();
    end(local).await;

    let local = start().await;
    let after = local.demo().await;
    for kept in ["game_id", "namespace_id", "other_namespace_id", "version_ids"] {
        assert_eq!(after[kept], before[kept], "{kept}");
    }
    let second = local.find(token, duel.clone()).await.expect_ok();
    assert_eq!(second.lobby_id(), first.lobby_id());
    let third = local.find(token, duel).await.expect_ok();
    assert_ne!(third.lobby_id(), first.lobby_id(), "the first seat was kept, too");
    let url = format!(
        "{}/cloud/games/{}/namespaces/{}/mm-config/validate",
        local.base_url,
        before["game_id"].as_str().unwrap(),
        before["namespace_id"].as_str().unwrap()
    );
    let cloud = before["tokens"]["cloud"].as_str().unwrap();
    let _valid = post(&url, cloud, r#"{"lobby_count_max":1,"max_players":1}"#).await.expect_ok();

    assert_eq!(fs::read(folder.path("data/signing-key")).unwrap(), key);
    let mode = fs::metadata(folder.path("data/signing-key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "{mode:o}");
}

#[tokio::test]
async fn lobbies_and_tokens_outlive_an_interrupt() {
    expect_kept(async |local| {
        let _graceful = local.interrupt().await;
    })
    .await;
}

#[tokio::test]
async fn lobbies_and_tokens_outlive_a_kill() {
    expect_kept(async |mut local| {
        let _killed = local.program.kill().await;
    })
    .await;
}

#[tokio::test]
async fn without_a_data_folder_nothing_is_kept() {
    let local = Local::start(&[]).await;
    let demo = local.demo().await;
    let token = demo["tokens"]["public"].as_str().unwrap();
    let _graceful = local.interrupt().await;
    let local = Local::start(&[]).await;
    assert_ne!(local.demo().await["game_id"], demo["game_id"]);
    let refused = local.find(token, json!({ "game_modes": ["duel"] })).await;
    assert_eq!(refused.refusal(), (401, "TOKEN_INVALID"));
}

#[tokio::test]
async fn a_stack_that_says_it_listens_ends_gracefully_on_a_signal() {
    // More than once, because the stack may not wait for a signal yet.
    for signal in ["INT", "TERM"].into_iter().cycle().take(10) {
        let mut local = Local::start(&[]).await;
        local.program.signal(signal);
        let ended = local.program.end().await;
        assert_eq!(ended.status.code(), Some(0), "{signal}: {:?}", ended.status);
    }
}

#[tokio::test]
async fn quiet_prints_nothing() {
    let port = free_port();
    let mut program = Program::start(BINARY, &["--quiet", "--port", &port.to_string()], &BTreeMap::new());
    let url = format!("http://127.0.0.1:{port}/_local/demo");
    let answers = async {
        // It prints nothing, so the test tries until it listens.
        while tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            sleep(Duration::from_millis(10)).await;
        }
        get(&url).await
    };
    let answer = tokio::select! {
        answer = timeout(PATIENCE, answers) => answer.expect("it listens in time"),
        status = program.wait() => panic!("it ended: {status}"),
    };
    let demo = answer.expect_ok().body;
    let local = Local::new(program, format!("http://127.0.0.1:{port}"));
    let token = demo["tokens"]["public"].as_str().unwrap();
    let _lobby = local.find(token, json!({ "game_modes": ["duel"] })).await.expect_ok().lobby_id();
    let Ended { stdout, stderr, .. } = local.interrupt().await;
    assert_eq!((stdout.as_str(), stderr.as_str()), ("", ""));
}

#[tokio::test]
async fn an_interrupted_stack_logs_no_token() {
    let local = Local::start(&[]).await;
    let tokens = local.demo().await["tokens"].clone();
    let public = tokens["public"].as_str().unwrap();
    let found = local.find(public, json!({ "game_modes": ["duel"] })).await.expect_ok();
    let _refused = local.find("pub_forged", json!({ "game_modes": ["duel"] })).await;
    let Ended { stderr, .. } = local.interrupt().await;
    assert!(stderr.contains("/find 200 duel"), "it logs what happens: {stderr}");
    let player = found.body["player"]["token"].as_str().unwrap();
    let tokens = tokens.as_object().unwrap().values().map(|token| token.as_str().unwrap());
    for token in tokens.chain([player, "pub_forged"]) {
        assert!(!stderr.contains(token), "a token is logged");
    }
}
