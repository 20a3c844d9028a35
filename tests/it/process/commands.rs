//! Each of the operator's commands against a running stack, for people and as JSON.

use std::{collections::BTreeSet, sync::Mutex};

use super::*;

const MODES: &str = r#"{"game_modes": {"arena": {"regions": ["fra"], "max_players": 8}, "duel": {"regions": ["fra"], "max_players": 2}}}"#;

/// Who works with the commands, in one form of answers.
struct Operator<'a> {
    local: &'a Local,
    /// The commands that were run, without their arguments.
    run: &'a Mutex<BTreeSet<String>>,
    is_json: bool,
    game: String,
}

impl Operator<'_> {
    async fn end(&self, command: &str, arguments: &[&str], input: &str) -> Ended {
        self.run.lock().unwrap().insert(command.to_owned());
        let mut all: Vec<&str> = command.split(' ').collect();
        all.extend(arguments);
        all.push(&self.local.option);
        if self.is_json {
            all.push("--json");
        }
        Program::run_with("muster", &all, input).await
    }

    /// What a command answers, which must succeed: its text, or the text of its JSON.
    async fn ask(&self, command: &str, arguments: &[&str]) -> String {
        self.ask_with(command, arguments, "").await
    }

    async fn ask_with(&self, command: &str, arguments: &[&str], input: &str) -> String {
        let Ended { status, stdout, stderr } = self.end(command, arguments, input).await;
        assert!(status.success(), "{command} {arguments:?}: {stderr}");
        assert_eq!(stderr, "", "{command} {arguments:?}");
        if self.is_json && command != "completions" {
            let json: Value = serde_json::from_str(&stdout).unwrap_or_else(|_| panic!("{command}: {stdout}"));
            assert!(json.is_object(), "{command}: {stdout}");
        }
        stdout
    }

    /// The only identifier of a kind in an answer, which ends there or has a name beside it.
    async fn ask_id(&self, command: &str, arguments: &[&str]) -> String {
        let answer = self.ask(command, arguments).await;
        let id = Regex::new("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").unwrap();
        id.find(&answer).unwrap_or_else(|| panic!("{command}: {answer}")).as_str().to_owned()
    }

    async fn ask_token(&self, arguments: &[&str]) -> String {
        let (kind, rest) = arguments.split_first().unwrap();
        let answer = self.ask(&format!("token create {kind}"), rest).await;
        let token = Regex::new("(cloud|pub|dev|server)_[A-Za-z0-9_.-]+").unwrap();
        token.find(&answer).unwrap_or_else(|| panic!("{answer}")).as_str().to_owned()
    }

    /// The refusal of a command, one line that says what to do: a text, or an object with a code.
    async fn refusal(&self, command: &str, arguments: &[&str]) -> String {
        let Ended { status, stdout, stderr } = self.end(command, arguments, "").await;
        assert_eq!(stdout, "", "{command} {arguments:?}: {stderr}");
        assert!(matches!(status.code(), Some(3 | 4)), "{command} {arguments:?}: {status} {stderr}");
        if self.is_json {
            let refusal: Value = serde_json::from_str(&stderr).unwrap_or_else(|_| panic!("{stderr}"));
            assert!(!refusal["code"].as_str().unwrap().is_empty(), "{refusal}");
            return refusal["message"].as_str().unwrap().to_owned();
        }
        stderr.strip_prefix("muster: ").unwrap_or_else(|| panic!("{stderr}")).trim_end().to_owned()
    }

    fn namespace(&self, name: &str) -> String {
        format!("{}/{name}", self.game)
    }
}

/// A version whose players pass a captcha.
const GUARDED: &str = r#"{
  "game_modes": { "arena": { "regions": ["fra"] } },
  "captcha": {
    "requests_before_reverify": 9, "verification_ttl": 60000,
    "turnstile": { "site_key": "site", "secret_key": "of-a-test" }
  }
}"#;

#[tokio::test]
async fn every_command_does_its_work_and_says_so_in_both_forms() {
    let (local, folder, run) = (Local::start(&[]).await, TestFolder::new(), Mutex::default());
    let file = folder.path("modes.json");
    fs::write(&file, MODES).unwrap();
    for is_json in [false, true] {
        let game = format!("game-{is_json}");
        let operator = Operator { local: &local, run: &run, is_json, game };
        make(&operator, &file).await;
        versions(&operator, &file).await;
        tokens(&operator).await;
        pages(&operator).await;
        play(&operator).await;
        let guarded = folder.path("guarded.json");
        fs::write(&guarded, GUARDED).unwrap();
        let set = operator.namespace("staging");
        let create = [operator.game.as_str(), &guarded, "--name", "guarded", "--set", &set];
        operator.ask("version create", &create).await;
        leave(&operator, &folder).await;
        let health = operator.ask("doctor", &[]).await;
        assert!(health.contains(&format!("{set} can read its secrets")), "{health}");
        assert!(health.contains("signing key") && health.contains(&operator.namespace("prod")), "{health}");
        let cost = operator.ask("cost", &[]).await;
        assert!(is_json || cost.starts_with("AWS charges nothing for this machine; "), "{cost}");
        assert!(operator.ask("completions", &["bash"]).await.contains("muster"));
        consent::assert_noted(&operator.ask("history", &[&operator.game]).await, is_json);
    }
    let mut run = run.into_inner().unwrap();
    // These have tests of their own.
    run.extend(["agent run", "console", "load", "move", "restore", "tail"].map(str::to_owned));
    assert_eq!(run, leaves().await);
}

/// The commands that have none below them, as their help lists them.
pub(super) async fn leaves() -> BTreeSet<String> {
    let listed = Regex::new(r"(?m)^  ([a-z-]+)( |$)").unwrap();
    let (mut open, mut found) = (vec![String::new()], BTreeSet::new());
    while let Some(command) = open.pop() {
        let arguments: Vec<_> = command.split_whitespace().chain(["--help"]).collect();
        let help = Program::run("muster", &arguments, &BTreeMap::new()).await.stdout;
        let list = help.split_once("\nCommands:\n").map(|(_, rest)| rest.split("\n\n").next().unwrap());
        let Some(list) = list else {
            found.insert(command);
            continue;
        };
        let below = listed.captures_iter(list).map(|name| name.get(1).unwrap().as_str().to_owned());
        open.extend(
            below.filter(|name| name != "help").map(|name| format!("{command} {name}").trim().to_owned()),
        );
    }
    found
}

async fn make(operator: &Operator<'_>, file: &str) {
    let game = operator.game.as_str();
    let create = [game, "--config", file, "--region", "fra=Frankfurt@50.11,8.68"];
    let created = operator.ask("game create", &create).await;
    assert!(
        created.contains("cloud_") && created.contains("prod") && created.contains("staging"),
        "{created}"
    );
    assert!(operator.ask("game list", &[]).await.contains(game));
    operator.ask("region add", &[game, "ams=Amsterdam@52.37,4.89", "--provider", "Us"]).await;
    let taken = operator.refusal("region add", &[game, "ams=Amsterdam@52.37,4.89"]).await;
    assert!(taken.contains("already"), "{taken}");
    for region in ["x=X@91,0", "7f3e0f5c-5f0e-4a6b-9d53-0d6a4d0a2c11=X@0,0"] {
        let refusal = operator.refusal("region add", &[game, region]).await;
        assert!(refusal.contains("short names, not UUIDs, latitudes"), "{refusal}");
    }
    let probe = "https://lon.example/probe";
    operator.ask("region add", &[game, "lon=London@51.5,-0.1", "--probe", probe]).await;
    for url in ["http://ams.example/", "https://user@ams.example/"] {
        let refusal = operator.refusal("region add", &[game, "x=X@1,1", "--probe", url]).await;
        assert!(refusal.contains("probes, if any, by https or wss"), "{refusal}");
        assert_eq!(operator.refusal("region probe", &[game, "ams", url]).await, refusal);
    }
    let nowhere = operator.refusal("region probe", &[game, "mars", probe]).await;
    assert!(nowhere.contains("has no region `mars`"), "{nowhere}");
    operator.ask("region probe", &[game, "ams", "https://ams.example/probe"]).await;
    let listed = operator.ask("region list", &[game]).await;
    assert!(listed.contains("Amsterdam") && listed.contains("https://ams.example/probe"), "{listed}");
    operator.ask("region probe", &[game, "ams"]).await;
    let listed = operator.ask("region list", &[game]).await;
    assert!(listed.contains(probe) && !listed.contains("ams.example"), "{listed}");
    assert!(operator.ask("game show", &[game]).await.contains("ams"));

    let url = "http://127.0.0.1:9/start";
    let started = operator.ask("region start", &[game, "ams", "--webhook", url]).await;
    assert!(started.contains("webhook") && started.contains("whsec_"), "{started}");
    let secret = Regex::new("whsec_[A-Za-z0-9+/=]+").unwrap().find(&started).unwrap().as_str().to_owned();
    let listed = operator.ask("region list", &[game]).await;
    assert!(listed.contains("webhook") && !listed.contains("whsec_"), "{listed}");
    assert!(!operator.ask("game export", &[game]).await.contains("webhook"));
    let again = ["--webhook", url, "--secret", "-"];
    let again = operator.ask_with("region start", &[&[game, "ams"], &again[..]].concat(), &secret).await;
    assert!(!again.contains("whsec_"), "{again}");
    let ecs = ["--ecs", "games", "--task-definition", "game", "--subnets", "subnet-1"];
    for (starter, part) in [
        (&["--webhook", "http://192.0.2.1/"][..], "must begin with https://"),
        (&["--webhook", url, "--secret", "-"], "whsec_"),
        (&ecs, "one machine starts no tasks"),
    ] {
        let refusal = operator.refusal("region start", &[&[game, "ams"], starter].concat()).await;
        assert!(refusal.contains(part), "{refusal}");
    }
    let nowhere = operator.refusal("region start", &[game, "mars", "--webhook", url]).await;
    assert!(nowhere.contains("has no region `mars`"), "{nowhere}");
    operator.ask("region stop", &[game, "ams"]).await;
    assert!(!operator.ask("region list", &[game]).await.contains("webhook"));
    let unknown = operator.refusal("game show", &["nothing"]).await;
    assert_eq!(unknown, "there is no game `nothing`; `muster game list` lists those there are");
}

/// A game leaves as a file and comes back under another name, once what the file may not have is filled in.
async fn leave(operator: &Operator<'_>, folder: &TestFolder) {
    let game = operator.game.as_str();
    let exported = operator.ask("game export", &[game]).await;
    assert!(!exported.contains("of-a-test") && !exported.contains("$2b$"), "{exported}");
    let file = folder.path("export.json");
    fs::write(&file, &exported).unwrap();
    let name = format!("{game}-again");
    let refused = operator.refusal("game import", &[&file, "--name", &name]).await;
    assert!(refused.contains("captcha/turnstile/secret_key/missing"), "{refused}");
    let mut filled: Value = serde_json::from_str(&exported).unwrap();
    fill_in(&mut filled);
    fs::write(&file, filled.to_string()).unwrap();
    let taken = operator.refusal("game import", &[&file]).await;
    assert!(taken.contains("already a game"), "{taken}");
    let imported = operator.ask("game import", &[&file, "--name", &name]).await;
    assert!(imported.contains("cloud_") && imported.contains("staging"), "{imported}");
    let again: Value = serde_json::from_str(&operator.ask("game export", &[&name]).await).unwrap();
    let first: Value = serde_json::from_str(&exported).unwrap();
    // Versions have other identifiers; namespaces run the same ones.
    let outline = |file: &Value| {
        let versions = file["versions"].as_array().unwrap();
        let version = |id: &Value| versions.iter().position(|version| version["version_id"] == *id);
        let namespaces = file["namespaces"].as_array().unwrap().iter().map(|namespace| {
            let mut outline = namespace.clone();
            let runs = version(&namespace["version_id"]);
            outline["version_id"] = json!(runs.unwrap());
            (namespace["name_id"].to_string(), outline)
        });
        let configs: Vec<_> =
            versions.iter().map(|version| (&version["display_name"], &version["config"])).collect();
        json!([file["regions"], configs, namespaces.collect::<BTreeMap<_, _>>()])
    };
    assert_eq!(outline(&again), outline(&first));
    fs::write(&file, "{\"muster_game\": 1}").unwrap();
    let broken = operator.refusal("game import", &[&file, "--name", "x"]).await;
    assert!(broken.contains("line 1: missing field `name_id`"), "{broken}");
}

/// Puts a text where a secret was.
fn fill_in(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if value.is_null() && ["secret_key", "authorization"].contains(&name.as_str()) {
                    *value = "of-a-test".into();
                }
                fill_in(value);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(fill_in),
        _ => {}
    }
}

async fn versions(operator: &Operator<'_>, file: &str) {
    let (game, prod, staging) =
        (operator.game.as_str(), operator.namespace("prod"), operator.namespace("staging"));
    assert!(operator.ask("version validate", &[file, "--game", game]).await.contains("valid"));
    let schema: Value = serde_json::from_str(&operator.ask("version schema", &[]).await).unwrap();
    assert_eq!(schema["properties"]["game_modes"]["additionalProperties"]["$ref"], "#/$defs/GameModeConfig");
    let id = operator.ask_id("version create", &[game, file, "--name", "two", "--set", &prod]).await;
    let list = operator.ask("version list", &[game]).await;
    assert!(list.contains(&id) && list.contains("two") && list.contains("prod"), "{list}");
    assert!(operator.ask("version show", &[game, "two"]).await.contains("duel"));
    assert!(operator.ask("version set", &[&staging, "two"]).await.contains(&id));
    let history = operator.ask("version history", &[&prod]).await;
    assert!(history.contains(&id), "{history}");
    let unknown = operator.refusal("version set", &[&prod, "three"]).await;
    assert!(unknown.starts_with("there is no version `three`; `muster version list "), "{unknown}");
    let run = operator.refusal("version delete", &[game, &id, "--yes"]).await;
    assert!(run.contains("runs it: set another version first"), "{run}");
    let unused = operator.ask_id("version create", &[game, file, "--name", "unused"]).await;
    let retired = operator.refusal("version delete", &[game, "unused", "--yes"]).await;
    assert!(retired.contains("it is retired, and functions may remember it"), "{retired}");
    assert!(operator.ask("version list", &[game]).await.contains("retired"));
    let refused = operator.refusal("version set", &[&prod, "unused"]).await;
    assert!(refused.contains("is retired; `muster version delete --cancel` keeps it"), "{refused}");
    assert!(operator.ask("version delete", &[game, &unused, "--cancel"]).await.contains(&unused));
    operator.ask("version create", &[game, file, "--name", "two"]).await;
    let several = operator.refusal("version show", &[game, "two"]).await;
    assert!(several.contains("several versions are called `two`"), "{several}");

    // Without a name it is called by the next number.
    operator.ask("version create", &[game, file, "--name", "17"]).await;
    operator.ask("version create", &[game, file]).await;
    let list = operator.ask("version list", &[game]).await;
    assert!(list.contains("18"), "{list}");

    secrets(operator, file).await;

    let extra = operator.namespace("extra");
    operator.ask_id("namespace create", &[&extra, "--version", &id, "--display-name", "Extra"]).await;
    let taken = operator.refusal("namespace create", &[&extra, "--version", &id]).await;
    assert!(taken.contains("already"), "{taken}");
    assert!(operator.ask("namespace list", &[game]).await.contains("extra"));
    operator.ask("mm-config", &[&extra, "--lobby-count-max", "77"]).await;
    let refused = operator.refusal("mm-config", &[&extra, "--lobby-count-max", "0"]).await;
    assert!(refused.contains("lobby-count/too-low"), "{refused}");
    let shown = operator.ask("namespace show", &[&extra]).await;
    assert!(shown.contains("77") && shown.contains("Extra") && shown.contains(&id), "{shown}");
}

/// A version's secrets go in by a file and never come out.
async fn secrets(operator: &Operator<'_>, file: &str) {
    let game = operator.game.as_str();
    let mut config: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    config["captcha"] = json!({ "requests_before_reverify": 9, "verification_ttl": 60_000,
                                "hcaptcha": { "site_key": "a-site-key", "secret_key": "a-captcha-secret" } });
    let verification =
        json!({ "url": "https://verify.example/", "headers": { "authorization": "a-header-secret" } });
    config["game_modes"]["duel"]["actions"] =
        json!({ "find": { "enabled": true, "verification": verification } });
    let path = format!("{file}.secrets.json");
    fs::write(&path, config.to_string()).unwrap();
    assert!(operator.ask("version validate", &[&path, "--game", game]).await.contains("valid"));
    operator.ask_id("version create", &[game, &path, "--name", "guarded"]).await;
    let shown = operator.ask("version show", &[game, "guarded"]).await;
    assert!(shown.contains("a-site-key") && shown.contains("https://verify.example/"), "{shown}");
    assert!(!shown.contains("-secret\""), "{shown}");
    // What was shown lacks the secrets, and says so when it is to be a version again.
    let missing = operator.refusal("version validate", &[&shown_config(&path, config)]).await;
    assert!(missing.contains("captcha/hcaptcha/secret_key/missing"), "{missing}");
}

/// A file with the configuration as it is shown.
fn shown_config(path: &str, mut config: Value) -> String {
    config["captcha"]["hcaptcha"]["secret_key"] = Value::Null;
    fs::write(path, config.to_string()).unwrap();
    path.to_owned()
}

async fn tokens(operator: &Operator<'_>) {
    let (game, staging) = (operator.game.as_str(), operator.namespace("staging"));
    let url = format!("{}/matchmaker/regions", operator.local.base_url);
    let regions = async |token: &str| {
        send(Request::get(&url).header("authorization", format!("Bearer {token}")), "").await
    };
    let before = operator.ask("token list", &[game]).await;
    let first = operator.ask_token(&["public", &staging]).await;
    assert_eq!(regions(&first).await.status, 200);
    let development = operator.ask_token(&["development", &staging, "--port", "default=7777/udp"]).await;
    assert_eq!(regions(&development).await.status, 200);
    let cloud = operator.ask_token(&["cloud", game]).await;
    let after = operator.ask("token list", &[game]).await;
    assert!(!after.contains(&first) && !after.contains(&cloud), "tokens are never listed");
    let id = Regex::new("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").unwrap();
    let ids = |text: &str| id.find_iter(text).map(|id| id.as_str().to_owned()).collect::<BTreeSet<_>>();
    let new: Vec<_> = ids(&after).difference(&ids(&before)).cloned().collect();
    assert!(new.len() >= 3, "{after}");
    for token_id in &new {
        // Namespaces have identifiers, too.
        let _outcome = operator.end("token revoke", &[game, token_id, "--yes"], "").await;
    }
    wait_for(async || regions(&first).await.refusal() == (401, "TOKEN_REVOKED")).await;
    assert_eq!(regions(&development).await.refusal(), (401, "TOKEN_REVOKED"));
    let unknown = operator.refusal("token revoke", &[game, "nothing"]).await;
    assert!(unknown.starts_with("there is no token `nothing`; "), "{unknown}");
    let second = operator.ask_token(&["public", &staging]).await;
    assert_eq!(regions(&second).await.status, 200);
    operator.ask("token revoke-all", &[&staging, "public", "--yes"]).await;
    wait_for(async || regions(&second).await.refusal() == (401, "TOKEN_REVOKED")).await;
    let listed = operator.ask("token list", &[game]).await;
    assert!(listed.contains("revoked") && listed.contains("valid"), "{listed}");
}

/// Settings are up to a second old in the stack.
async fn wait_for(happened: impl AsyncFn() -> bool) {
    timeout(PATIENCE, async {
        while !happened().await {
            sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .expect("in time");
}

async fn pages(operator: &Operator<'_>) {
    let prod = operator.namespace("prod");
    let domain = format!("{}.example", operator.game);
    operator.ask("cdn auth", &[&prod, "basic"]).await;
    operator.ask_with("cdn user set", &[&prod, "tester"], "correct horse\n").await;
    let none = operator.refusal("cdn user set", &[&prod, "tester"]).await;
    assert_eq!(none, "a password is required, at the terminal or piped in");
    let users = operator.ask("cdn user list", &[&prod]).await;
    assert!(users.contains("tester") && !users.contains("$2"), "{users}");
    operator.ask("cdn user remove", &[&prod, "tester", "--yes"]).await;
    assert!(!operator.ask("cdn user list", &[&prod]).await.contains("tester"));
    operator.ask("domain add", &[&prod, &domain]).await;
    let taken = operator.refusal("domain add", &[&operator.namespace("staging"), &domain]).await;
    assert_eq!(taken, "the domain belongs to another namespace");
    assert!(operator.ask("domain list", &[&prod]).await.contains(&domain));
    operator.ask("domain public-auth", &[&prod, "off", "--yes"]).await;
    assert!(operator.ask("namespace show", &[&prod]).await.contains(&domain));
    operator.ask("domain remove", &[&prod, &domain, "--yes"]).await;
    assert!(!operator.ask("domain list", &[&prod]).await.contains(&domain));
}

/// From tokens to a lobby and its end.
async fn play(operator: &Operator<'_>) {
    let prod = operator.namespace("prod");
    let server = operator.ask_token(&["server", &prod]).await;
    let public = operator.ask_token(&["public", &prod]).await;
    let mut registration = registration("one", &json!({ "start_id": "first-start" }));
    let url = format!("{}/matchmaker/servers/register", operator.local.base_url);
    post(&url, &server, &registration.to_string()).await.expect_ok();
    let servers = operator.ask("server list", &[&prod]).await;
    assert!(["one", "free", "first-start"].iter().all(|text| servers.contains(text)), "{servers}");
    let found = operator.local.find(&public, json!({ "game_modes": ["duel"] })).await.expect_ok();
    let removed = operator.ask("server remove", &[&prod, "one", "--alive", "--yes"]).await;
    assert!(removed.contains("one"), "{removed}");
    let explained = operator.ask("lobby explain", &[&prod, "--mode", "duel"]).await;
    let says = if operator.is_json { "\"creates\":false" } else { "`fra` has no game server" };
    assert!(explained.contains(says), "{explained}");
    assert_eq!(operator.ask("lobby list", &[&prod]).await.matches(&found.lobby_id()).count(), 0);
    let unknown = operator.refusal("server remove", &[&prod, "two"]).await;
    assert!(unknown.starts_with("there is no game server `two`; "), "{unknown}");
    registration["start_id"] = json!("second-start");
    post(&url, &server, &registration.to_string()).await.expect_ok();
    let found = operator.local.find(&public, json!({ "game_modes": ["duel"] })).await.expect_ok();
    let lobby = found.lobby_id();
    let list = operator.ask("lobby list", &[&prod]).await;
    assert!(list.contains(&lobby) && list.contains("duel") && list.contains("open"), "{list}");
    assert!(operator.ask("lobby show", &[&lobby]).await.contains(&lobby));
    let explained = operator.ask("lobby explain", &[&prod, "--mode", "duel"]).await;
    assert!(explained.contains(&lobby) && explained.contains("taken"), "{explained}");
    let together = operator.refusal("lobby explain", &[&prod, "--mode", "duel", "--party-size", "2"]).await;
    assert!(together.contains("party"), "{together}");
    let elsewhere = operator.refusal("lobby explain", &[&prod, "--mode", "nothing"]).await;
    assert!(elsewhere.contains("no game mode `nothing`"), "{elsewhere}");
    operator.ask("lobby end", &[&lobby, "--yes"]).await;
    assert!(!operator.ask("lobby list", &[&prod]).await.contains(&lobby));
    let ended = operator.ask("lobby show", &[&lobby]).await;
    assert!(ended.contains("ended"), "{ended}");
    let unknown = operator.refusal("lobby end", &["nothing"]).await;
    assert!(unknown.starts_with("there is no lobby `nothing`; "), "{unknown}");
    servers_go(operator, registration, (&url, &public)).await;
}

/// A revoked server token takes its game servers along; one that only fell silent is listed.
async fn servers_go(operator: &Operator<'_>, mut registration: Value, (url, public): (&str, &str)) {
    let (game, prod) = (operator.game.as_str(), operator.namespace("prod"));
    let duel = json!({ "game_modes": ["duel"] });
    let found = operator.local.find(public, duel.clone()).await.expect_ok();
    let list = ["server", "list", &prod, &operator.local.option, "--json"];
    let servers: Value = serde_json::from_str(&Program::run_with("muster", &list, "").await.stdout).unwrap();
    let token_id = servers["servers"][0]["token_id"].as_str().unwrap();
    let revoked = operator.ask("token revoke", &[game, token_id, "--yes"]).await;
    let says =
        if operator.is_json { r#""lobbies":1,"players":1,"server_id":"one""# } else { "server one is out" };
    assert!(revoked.contains(says), "{revoked}");
    assert!(operator.ask("lobby show", &[&found.lobby_id()]).await.contains("ended"));
    let again = operator.ask("token revoke", &[game, token_id, "--yes"]).await;
    assert!(!again.contains("\"one\"") && !again.contains("server one"), "{again}");

    let server = operator.ask_token(&["server", &prod]).await;
    registration["server_id"] = json!("brief");
    registration["lease_seconds"] = json!(1);
    post(url, &server, &registration.to_string()).await.expect_ok();
    let list = async || operator.ask("server list", &[&prod]).await;
    wait_for(async || list().await.contains("silent")).await;
    let refused = operator.local.find(public, duel).await;
    assert_eq!(refused.refusal(), (503, "MATCHMAKER_NO_SERVER_AVAILABLE"));
    let servers = list().await;
    assert!(servers.contains("brief") && servers.contains("silent"), "{servers}");
    let explained = operator.ask("lobby explain", &[&prod, "--mode", "duel"]).await;
    let says = if operator.is_json { "\"silent\":1" } else { "1 silent" };
    assert!(explained.contains(says), "{explained}");
    let revoked = operator.ask("token revoke-all", &[&prod, "server", "--yes"]).await;
    assert!(!revoked.contains("brief"), "it is over: {revoked}");
}

#[tokio::test]
async fn the_doctor_says_how_often_the_stack_refused_an_address_at_its_limit() {
    let (local, folder, run) = (Local::start(&[]).await, TestFolder::new(), Mutex::default());
    let operator = Operator { local: &local, run: &run, is_json: false, game: "school".to_owned() };
    let file = folder.path("modes.json");
    fs::write(&file, MODES).unwrap();
    operator.ask("game create", &["school", "--config", &file, "--region", "fra=Frankfurt@50.11,8.68"]).await;
    let (prod, line) = (operator.namespace("prod"), "refusals at the limit of seats per IP address");
    operator.ask("mm-config", &[&prod, "--max-players-per-client", "1"]).await;
    assert!(operator.ask("doctor", &[]).await.contains(&format!("ok    {line}")));

    let server = operator.ask_token(&["server", &prod]).await;
    let public = operator.ask_token(&["public", &prod]).await;
    let registration = registration("one", &json!({ "capacity": 1 }));
    let url = format!("{}/matchmaker/servers/register", local.base_url);
    post(&url, &server, &registration.to_string()).await.expect_ok();
    let duel = json!({ "game_modes": ["duel"] });
    local.find(&public, duel.clone()).await.expect_ok();
    let refused = local.find(&public, duel).await;
    assert_eq!(refused.refusal(), (400, "MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE"));
    let warned = operator.ask("doctor", &[]).await;
    let said = format!("warn  {line}: 1 since the stack started: a school or a café is one address");
    assert!(warned.contains(&said), "{warned}");
}

#[tokio::test]
async fn a_file_is_validated_without_a_stack_by_line_and_path() {
    let folder = TestFolder::new();
    let file = folder.path("modes.json");
    let validate = async |text: &str| {
        fs::write(&file, text).unwrap();
        Program::run("muster", &["version", "validate", &file], &BTreeMap::new()).await
    };
    assert_eq!(validate(MODES).await.stdout, "valid\n");
    for (text, expected) in [
        (
            "{\n \"game_modes\": {\n  \"a\": {\"regions\": [\"x\"],\n   \"max_players\": 257}}}",
            "line 4: game_modes/a/max_players/too-high",
        ),
        ("{\n \"game_modes\": {\n  \"a\": {\"regions\": [\"x\"],\n   \"max_player\": 2}}}", "line 4"),
        ("{\n \"game_modes\": {}}", "line 2: game_modes/too-few"),
    ] {
        let Ended { status, stdout, stderr } = validate(text).await;
        assert_eq!((status.code(), stdout.as_str()), (Some(4), ""), "{text}");
        assert!(stderr.contains(expected) && stderr.contains(&file), "{stderr}");
    }
}
