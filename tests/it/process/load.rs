//! `muster load` against a running stack: what it plays, refuses and leaves.

use std::collections::{BTreeSet, HashMap};

use aws_sdk_dynamodb::types::AttributeValue;
use harness::{game_server::registration, instance::patient_client};

use super::*;

const MODES: &str = r#"{"game_modes": {"arena": {"regions": ["fra"], "max_players": 8}, "duel": {"regions": ["fra"], "max_players": 2}}}"#;
/// Twenty players within a second, who connect within another and leave at once.
const SHORT: [&str; 8] = ["--rate", "20", "--seconds", "1", "--connect-seconds", "1", "--stay-seconds", "0"];
/// The tables of what comes and goes in a namespace, with their keys. An item that has ended has an expiry.
const LIVE_TABLES: [(&str, &str); 2] = [("ServersTable", "server"), ("LobbiesTable", "lobby_id")];

type Item = HashMap<String, AttributeValue>;

/// A stack with a namespace for loads.
struct Scene {
    local: Local,
    endpoint: String,
}

impl Scene {
    async fn start() -> Self {
        let (local, folder) = (Local::start(&[]).await, TestFolder::new());
        let store = get(&format!("{}/_local/store", local.base_url)).await.expect_ok().body;
        let scene = Self { local, endpoint: store["endpoint"].as_str().unwrap().to_owned() };
        let file = folder.path("modes.json");
        fs::write(&file, MODES).unwrap();
        let create = ["game", "create", "kart", "--config", &file, "--region", "fra=Frankfurt@50.11,8.68"];
        scene.ask(&create).await;
        scene.ask(&["namespace", "create", "kart/load", "--version", "1"]).await;
        scene.ask(&["mm-config", "kart/load", "--max-players-per-client", "1001"]).await;
        scene
    }

    async fn ask(&self, arguments: &[&str]) -> Value {
        let printed = self.local.ask(&[arguments, &["--json"]].concat()).await;
        serde_json::from_str(&printed).unwrap_or_else(|_| panic!("{arguments:?}: {printed}"))
    }

    /// The one line with which a load of a namespace is refused, before it did anything.
    async fn refusal(&self, namespace: &str, arguments: &[&str]) -> String {
        let Ended { status, stdout, stderr } =
            self.local.muster(&[&["load", namespace], arguments].concat()).await;
        assert!(
            matches!(status.code(), Some(3 | 4)) && stdout.is_empty(),
            "{arguments:?}: {status} {stderr}"
        );
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        stderr.trim_end().strip_prefix("muster: ").unwrap_or_else(|| panic!("{stderr}")).to_owned()
    }

    /// Reads every lobby, and fails if one has more seats than it may, by whatever way they were taken.
    /// Returns how many lobbies have a seat.
    async fn expect_no_lobby_overbooked(&self) -> usize {
        let lobbies = self.items("LobbiesTable").await;
        let seats = lobbies.iter().map(|lobby| {
            let map = |name: &str| lobby[name].as_m().unwrap().len();
            let number = |name: &str| lobby[name].as_n().unwrap().parse::<usize>().unwrap();
            let seats = map("reserved") + map("connected");
            assert_eq!(seats, number("taken"), "{lobby:?}");
            assert!(seats <= number("max_players_direct"), "{lobby:?}");
            seats
        });
        seats.filter(|seats| *seats > 0).count()
    }

    async fn items(&self, table: &str) -> Vec<Item> {
        let scanned = patient_client(&self.endpoint).scan().table_name(table).send().await.unwrap();
        scanned.items.unwrap_or_default()
    }

    /// The keys of the game servers and lobbies that have not ended, and the tokens that are valid.
    async fn living(&self) -> BTreeSet<String> {
        let mut living = BTreeSet::new();
        for (table, key) in LIVE_TABLES {
            let items = self.items(table).await;
            let items = items.iter().filter(|item| !item.contains_key("expires_at"));
            living.extend(items.map(|item| format!("{table} {:?}", item[key])));
        }
        let tokens = self.ask(&["token", "list", "kart"]).await;
        let tokens = tokens["tokens"].as_array().unwrap().iter().filter(|token| token["state"] == "valid");
        living.extend(tokens.map(|token| format!("token {}", token["token_id"])));
        living
    }
}

/// No token of any kind is in a text.
fn expect_no_token(text: &str) {
    let token = Regex::new("(cloud|pub|server|lobby|player)_ey").unwrap();
    assert!(!token.is_match(text), "{text}");
}

#[tokio::test]
async fn every_player_of_a_load_is_answered_and_nothing_is_left() {
    let scene = Scene::start().await;
    let before = scene.living().await;
    let load = [&["load", "kart/load", "--mode", "duel", "--json"], &SHORT[..]].concat();
    let Ended { status, stdout, stderr } = scene.local.muster(&load).await;
    assert!(status.success(), "{stderr}");
    assert!(
        stderr.starts_with("kart/load: 20 players a second for 1 s, 20 sessions of mode duel"),
        "{stderr}"
    );
    assert_eq!(stderr.lines().count(), 3, "{stderr}");
    expect_no_token(&format!("{stdout}{stderr}"));
    let report: Value = serde_json::from_str(&stdout).unwrap();
    let (players, results) = (&report["players"], &report["results"]);
    assert_eq!((&players["came"], &players["not_sent"]), (&json!(20), &json!(0)), "{report}");
    assert_eq!(results["find-lobby"], json!({ "200": 20 }), "{report}");
    // One of twenty never connects.
    assert_eq!(results["connect-player"], json!({ "200": 19 }), "{report}");
    assert_eq!(results["disconnect-player"], json!({ "200": 19 }), "{report}");
    assert!(report["lobbies_created"].as_u64().unwrap() >= 1, "{report}");
    assert!(report["find_ms"]["p50"].as_f64() <= report["find_ms"]["max"].as_f64(), "{report}");
    // The stack's own meter counted the same requests, and what they took.
    assert_eq!(report["metered"], true);
    let spent = &report["spent_by_operation"];
    for (operation, requests) in [("find-lobby", 20.0), ("connect-player", 19.0), ("disconnect-player", 19.0)]
    {
        assert_eq!(spent[operation]["requests"], requests, "{report}");
        assert!(spent[operation]["write_units"].as_f64().unwrap() >= requests, "{report}");
    }
    assert!(report["dollars"].as_f64().unwrap() > 0.0, "{report}");
    assert_eq!((&report["left_behind"], &report["interrupted"]), (&json!([]), &json!(false)), "{report}");
    assert_eq!(scene.living().await, before);
}

#[tokio::test]
async fn a_hostile_load_overbooks_no_lobby_and_counts_players_and_crowd_apart() {
    let (scene, folder) = (Scene::start().await, TestFolder::new());
    let file = folder.path("open.json");
    let create = json!({ "create": { "enabled": true } });
    let open = json!({ "regions": ["fra"], "max_players": 4, "taggable": true, "actions": create });
    fs::write(&file, json!({ "game_modes": { "open": open } }).to_string()).unwrap();
    scene.ask(&["version", "create", "kart", &file, "--set", "kart/prod"]).await;
    let before = scene.living().await;
    let load = ["load", "kart/prod", "--rate", "4", "--seconds", "3", "--connect-seconds", "1"];
    let hostile = ["--stay-seconds", "1", "--hostile", "0.9", "--addresses", "20", "--json"];
    let load = [&load[..], &hostile[..], &[&scene.local.option]].concat();
    let mut program = Program::start("muster", &load, &BTreeMap::new());
    let watch = async {
        loop {
            scene.expect_no_lobby_overbooked().await;
        }
    };
    let Ended { status, stdout, stderr } =
        tokio::select! { ended = program.end() => ended, ended = watch => ended };
    assert!(status.success(), "{stderr}");
    assert!(
        stderr.contains("\nhostile share 0.9: 36.0 requests a second, 108 in all, from 20 IP "),
        "{stderr}"
    );
    expect_no_token(&format!("{stdout}{stderr}"));
    assert_eq!(scene.living().await, before);
    assert!(scene.expect_no_lobby_overbooked().await > 0, "a lobby keeps its seats when it has ended");

    let report: Value = serde_json::from_str(&stdout).unwrap();
    let (players, attack) = (&report["players"], &report["hostile"]);
    let number = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{value} in {report}"));
    let sum = |results: &Value| -> u64 {
        results.as_object().into_iter().flatten().map(|(_, count)| number(count)).sum()
    };
    // Everybody was answered, and each refusal has its code.
    assert_eq!((&players["came"], &report["problem"]), (&json!(12), &Value::Null), "{report}");
    let answer = Regex::new("^(200|(4[0-9]{2}|503) [A-Z_]+)$").unwrap();
    let of_both = [&report["results"], &attack["results"]].map(|results| results.as_object().unwrap());
    for results in of_both.into_iter().flat_map(|results| results.values()) {
        assert!(results.as_object().unwrap().keys().all(|result| answer.is_match(result)), "{results}");
    }
    let finds = number(&attack["players"]) + number(&attack["retries"]);
    assert_eq!(sum(&report["results"]["find-lobby"]), finds, "{report}");
    assert_eq!(number(&attack["players"]) + number(&players["not_sent"]), 12, "{report}");
    let (at_once, seated) = (number(&attack["seated_at_once"]), number(&attack["seated"]));
    assert!(at_once <= seated && seated <= number(&attack["players"]), "{report}");
    let listed = &attack["listed"];
    assert!(number(&listed["unused"]) <= number(&listed["lobbies"]), "{report}");

    // Of the hostile requests, too; none of them is among the players'.
    let sent: u64 = attack["results"].as_object().unwrap().values().map(sum).sum();
    assert_eq!((sent, sent + number(&attack["not_sent"])), (number(&attack["requests"]), 108), "{report}");
    for (kind, only) in
        [("wrong bodies", "400 API_BAD_BODY"), ("forged tokens", "401 TOKEN_INVALID"), ("lists", "200")]
    {
        let mut results = attack["results"][kind].as_object().into_iter().flatten();
        assert!(results.all(|(result, _)| result == only), "{report}");
    }
    assert!((1..=20).contains(&number(&attack["addresses"])), "{report}");

    // The stack's own meter counted the same requests: what it counted of the players' is not in their cost.
    let spent = &attack["spent_by_operation"];
    let requests = |operation: &str| spent[operation]["requests"].as_f64().unwrap() as u64;
    let of_kinds = |kinds: &[&str]| kinds.iter().map(|kind| sum(&attack["results"][kind])).sum::<u64>();
    assert_eq!(
        requests("find-lobby"),
        of_kinds(&["finds", "tags", "wrong bodies", "forged tokens"]),
        "{report}"
    );
    for (operation, kind) in [("join-lobby", "joins"), ("create-lobby", "creates"), ("list-lobbies", "lists")]
    {
        assert_eq!(requests(operation), of_kinds(&[kind]), "{report}");
    }
    assert!(attack["spent"]["write_units"].as_f64().unwrap() >= number(&attack["seats"]) as f64, "{report}");
    assert!(attack["dollars"].as_f64().unwrap() > 0.0, "{report}");
}

#[tokio::test]
async fn an_interrupted_load_leaves_nothing_and_still_reports() {
    let scene = Scene::start().await;
    let before = scene.living().await;
    let load = ["load", "kart/load", "--mode", "arena", "--rate", "5", "--seconds", "600", "--json"];
    let load = [&load[..], &[&scene.local.option]].concat();
    let mut program = Program::start("muster", &load, &BTreeMap::new());
    let lobbies =
        async || scene.ask(&["lobby", "list", "kart/load"]).await["lobbies"].as_array().unwrap().len();
    timeout(PATIENCE, async { while lobbies().await == 0 {} }).await.expect("a lobby in time");
    // Meanwhile it has the namespace for itself.
    let second = scene.refusal("kart/load", &["--mode", "arena"]).await;
    assert!(second.starts_with("another load is in kart/load: its game server `load-"), "{second}");
    let during = scene.living().await;
    let kinds = ["ServersTable", "LobbiesTable", "token"];
    assert!(
        kinds.iter().all(|kind| during.difference(&before).any(|key| key.starts_with(kind))),
        "{during:?}"
    );
    program.signal("INT");
    let Ended { status, stdout, stderr } = program.end().await;
    assert!(status.success(), "{stderr}");
    let report: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&report["interrupted"], &report["left_behind"]), (&json!(true), &json!([])), "{report}");
    assert!(report["players"]["found"].as_u64().unwrap() >= 1, "{report}");
    assert_eq!(scene.living().await, before);
}

#[tokio::test]
async fn a_load_clears_up_after_one_that_was_killed() {
    let scene = Scene::start().await;
    let before = scene.living().await;
    let token = async |kind| {
        let token = scene.ask(&["token", "create", kind, "kart/load"]).await;
        token["token"].as_str().unwrap().to_owned()
    };
    let (server, public) = (token("server").await, token("public").await);
    let registration = registration("load-killed", &json!({ "capacity": 1, "lease_seconds": 2 }));
    let url = format!("{}/matchmaker/servers/register", scene.local.base_url);
    let has_lobby = async || {
        post(&url, &server, &registration.to_string()).await.expect_ok();
        scene.local.find(&public, json!({ "game_modes": ["duel"] })).await.status == 200
    };
    // A slow machine needs more than one lease for that.
    timeout(PATIENCE, async { while !has_lobby().await {} }).await.expect("a lobby in time");
    for kind in ["server", "public"] {
        scene.ask(&["token", "revoke-all", "kart/load", kind, "--yes"]).await;
    }
    let load = [&["load", "kart/load", "--mode", "duel"], &SHORT[..]].concat();
    let ended = async {
        loop {
            let ended = scene.local.muster(&load).await;
            if !ended.stderr.contains("another load is in kart/load") {
                return ended;
            }
        }
    };
    let Ended { status, stdout, stderr } = timeout(PATIENCE, ended).await.expect("its lease ends in time");
    assert!(status.success(), "{stderr}");
    expect_no_token(&format!("{stdout}{stderr}"));
    for line in [
        r"^players +20 of 20 came, 0 finds not sent\n",
        r"\nfinds +p50 [0-9.]+ ms, ",
        r"\nfind-lobby +20 x 200\n",
    ] {
        assert!(Regex::new(line).unwrap().is_match(&stdout), "{stdout}");
    }
    assert_eq!(scene.living().await, before);
}

#[tokio::test]
async fn a_namespace_that_a_load_would_disturb_or_that_would_refuse_it_is_not_loaded() {
    let scene = Scene::start().await;
    let arena = ["--mode", "arena"];
    let unknown = scene.refusal("kart/load", &["--mode", "race"]).await;
    assert_eq!(unknown, "there is no mode `race`; the version has arena, duel");
    let limited = scene.refusal("kart/staging", &arena).await;
    assert!(limited.contains("`muster mm-config kart/staging --max-players-per-client 1001`"), "{limited}");
    // A hostile one is the reverse, and of a stack in AWS it is refused before anything is read there.
    let hostile = ["--mode", "arena", "--hostile", "0.9"];
    let unlimited = scene.refusal("kart/load", &hostile).await;
    assert!(unlimited.contains("`muster mm-config kart/load --max-players-per-client 32`"), "{unlimited}");
    let in_aws = [&["load", "kart/prod", "--stack", "none"], &hostile[..]].concat();
    let Ended { status, stdout, stderr } = Program::run("muster", &in_aws, &BTreeMap::new()).await;
    assert_eq!((status.code(), stdout.as_str(), stderr.lines().count()), (Some(4), "", 1), "{stderr}");
    assert!(stderr.starts_with("muster: --hostile needs --local: "), "{stderr}");
    let large = scene.refusal("kart/load", &["--mode", "duel", "--rate", "1000"]).await;
    assert!(large.contains("kart/load may hold 128 lobbies"), "{large}");

    let token = scene.ask(&["token", "create", "server", "kart/load"]).await;
    let registration = registration("one", &json!({}));
    let url = format!("{}/matchmaker/servers/register", scene.local.base_url);
    post(&url, token["token"].as_str().unwrap(), &registration.to_string()).await.expect_ok();
    let before = scene.living().await;
    let used = scene.refusal("kart/load", &arena).await;
    assert!(used.starts_with("kart/load has game servers of others, such as `one`, "), "{used}");
    assert!(used.contains("`muster namespace create GAME/load --version VERSION`"), "{used}");
    assert_eq!(scene.living().await, before);
    // On request it is loaded all the same, and the server stays.
    let load = [&["load", "kart/load", "--among-players"], &arena[..], &SHORT[..]].concat();
    let report = scene.ask(&load).await;
    assert_eq!(report["players"]["came"], 20, "{report}");
    let servers = scene.ask(&["server", "list", "kart/load"]).await;
    let servers: Vec<_> =
        servers["servers"].as_array().unwrap().iter().map(|server| &server["server_id"]).collect();
    assert_eq!(servers, ["one"]);
}
