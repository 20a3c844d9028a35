//! Why a find has its result, in four voices that must agree: the find's own explanation, `muster lobby
//! explain`, `muster doctor` and the console's page; at once, and a second later.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "code of tests outside of test functions"
)]

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use harness::{TestGame, TestStack, new_game};
use http::{Method, Request};
use http_body_util::Full;
use serde_json::{Value, json};
use shared::{
    base::ambient::time,
    models::{game::StarterKind, lobby::Stage},
};

const NO_SERVER: &str = "MATCHMAKER_NO_SERVER_AVAILABLE";
const AT_LIMIT: &str = "MATCHMAKER_TOO_MANY_LOBBIES";
/// A little more than anything is remembered.
const SECOND: Duration = Duration::from_millis(1_001);
const RESERVATION: Duration = Duration::from_secs(120);
/// How long a player takes to its game server.
const CONNECTS_AFTER: Duration = Duration::from_secs(4);

/// What a find gets.
#[derive(Clone, Copy)]
enum Gets<'a> {
    /// A seat in this lobby.
    Seat(&'a str),
    /// A new lobby.
    Lobby,
    /// A refusal because of lobbies and servers, and what its voices say.
    Refusal(&'a str, &'a str),
    /// A refusal by a rule.
    Rule(&'a str),
}

/// A namespace with one state of lobbies and game servers.
struct Scene<'a> {
    stack: &'a TestStack,
    game: TestGame,
}

fn modes() -> Value {
    let create = json!({ "create": { "enabled": true } });
    json!({
        "duel": { "regions": ["fra"], "max_players": 1, "taggable": true, "actions": create },
        "arena": { "regions": ["fra", "nyc"], "max_players": 2, "idle_seconds": 600 },
        "hidden": { "regions": ["fra"], "actions": { "find": { "enabled": false } } },
    })
}

fn duel() -> Value {
    json!({ "game_modes": ["duel"] })
}

fn arena() -> Value {
    json!({ "game_modes": ["arena"] })
}

impl<'a> Scene<'a> {
    async fn of(stack: &'a TestStack, name: &str, lobby_count_max: u32) -> Self {
        Self { stack, game: stack.make_game(name, modes(), lobby_count_max, 0).await }
    }

    fn namespace(&self) -> String {
        format!("{}/prod", self.game.created.game.name_id)
    }

    async fn register(&self, id: &str, fields: Value) {
        let mut all = json!({ "capacity": 9, "lease_seconds": 3_600 });
        all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        self.game.register(self.stack, id, all).await;
    }

    /// A find that gets a seat; its lobby.
    async fn seated(&self, body: Value) -> String {
        self.game.find(self.stack, body).await.expect_ok().lobby_id()
    }

    /// What the console's page gets for a request.
    async fn page(&self, named: &str, body: &Value) -> Value {
        let url = format!("{}/_console/{named}", self.stack.demo().base_url);
        let request = Request::post(url).header("muster-console", "1");
        let request = request.body(Full::new(body.to_string().into())).unwrap();
        self.stack.send(request).await.expect_ok().body
    }

    async fn command(&self, words: &[&str]) -> Value {
        self.page("command", &json!({ "words": words })).await
    }

    async fn limit(&self, lobby_count_max: &str) {
        let words = ["mm-config", &self.namespace(), "--lobby-count-max", lobby_count_max];
        let set = self.command(&words).await;
        assert!(set.get("refused").is_none(), "{set}");
        self.stack.clock.advance(SECOND);
    }

    /// Runs a version with other modes.
    async fn run_version(&self, modes: Value) {
        let game = self.game.created.game.name_id.as_str();
        let text = json!({ "game_modes": modes }).to_string();
        let words = ["version", "create", game, "-", "--name", "2", "--set", &self.namespace()];
        let set = self.page("command", &json!({ "words": words, "text": text })).await;
        assert!(set.get("refused").is_none(), "{set}");
        self.stack.clock.advance(SECOND);
    }

    /// What `muster lobby explain` prints of a find.
    async fn explained(&self, find: &Value) -> Value {
        let namespace = self.namespace();
        let mut words = vec!["lobby", "explain", &namespace];
        for (option, field) in [("--mode", "game_modes"), ("--region", "regions")] {
            for value in find[field].as_array().into_iter().flatten() {
                words.extend([option, value.as_str().unwrap()]);
            }
        }
        let tags = find["tags"].as_object().into_iter().flatten();
        let tags: Vec<_> = tags.map(|(name, tag)| format!("{name}={}", tag.as_str().unwrap())).collect();
        words.extend(tags.iter().flat_map(|tag| ["--tag", tag]));
        let party_size = find["party_size"].as_u64().map(|size| size.to_string());
        words.extend(party_size.iter().flat_map(|size| ["--party-size", size]));
        self.command(&words).await
    }

    /// What `muster doctor` warns of in this namespace.
    async fn warnings(&self) -> Vec<String> {
        self.doctor("warnings").await
    }

    /// The `warnings` of `muster doctor` on this namespace, or what it `checked`.
    async fn doctor(&self, what: &str) -> Vec<String> {
        let checked = self.command(&["doctor"]).await;
        let lines = checked[what].as_array().unwrap_or_else(|| panic!("{checked}"));
        let lines = lines.iter().map(|line| line.as_str().unwrap().to_owned());
        lines.filter(|line| line.contains(&self.namespace())).collect()
    }

    /// What `muster doctor` says of who fills the namespace: a line of what it checked, or a warning.
    async fn filled_by(&self) -> Option<String> {
        let lines = [self.doctor("checked").await, self.warnings().await].concat();
        let is_said = |line: &String| {
            ["players fill ", "players of "].iter().any(|beginning| line.starts_with(beginning))
        };
        let is_open = |line: &String| line.ends_with("too soon to say who fills it");
        // Of a warning, what was checked is listed too.
        let lines = lines.into_iter().filter(|line| is_said(line) && line.contains(": ") || is_open(line));
        let lines: Vec<_> = lines.collect();
        assert!(lines.len() <= 1, "{lines:?}");
        lines.into_iter().next()
    }

    /// Lobbies of one seat: of players who connect, and of clients that do not.
    async fn fill(&self, used: usize, unused: usize) {
        for number in 0..used + unused {
            let seat = self.game.find(self.stack, duel()).await.expect_ok();
            if number < used {
                self.stack.clock.advance(CONNECTS_AFTER);
                self.game.connect(self.stack, &seat).await.expect_ok();
            }
        }
    }

    /// Lobbies that have not ended.
    async fn live(&self) -> BTreeSet<String> {
        let lobbies = self.stack.all_lobbies(self.game.namespace_id()).await.into_iter();
        let lobbies = lobbies.filter(|lobby| lobby.stage != Stage::Ended);
        lobbies.map(|lobby| lobby.lobby_id.to_string()).collect()
    }

    /// The status of a find, its response, and what the page says of it.
    async fn found(&self, find: &Value) -> (u64, Value, Value) {
        let call = json!({ "game": self.game.game_id(), "namespace": self.game.namespace_id(), "act": "find",
                           "request": find });
        let called = self.page("call", &call).await;
        let status = called["status"].as_u64().unwrap_or_else(|| panic!("{called}"));
        (status, called["response"].clone(), called)
    }

    /// Finds, and compares what all voices say of it; a second time if it is refused. `doctor` is what the
    /// doctor says, where it has something to say.
    async fn all_say(&self, find: Value, gets: Gets<'_>, doctor: Option<&str>) {
        let times = if matches!(gets, Gets::Refusal(..) | Gets::Rule(_)) { 2 } else { 1 };
        for _ in 0..times {
            self.say(&find, gets).await;
            self.stack.clock.advance(SECOND);
        }
        let (name, warnings) = (self.namespace(), self.warnings().await);
        match doctor {
            Some(said) => {
                assert!(warnings.iter().any(|warning| warning.contains(said)), "{name}: {warnings:?}")
            }
            None => assert_eq!(warnings, [""; 0], "{name}"),
        }
    }

    async fn say(&self, find: &Value, gets: Gets<'_>) {
        let name = self.namespace();
        let (explained, before) = (self.explained(find).await, self.live().await);
        let (status, answer, called) = self.found(find).await;
        let after = self.live().await;
        let said = format!("{name}: {explained}\n{called}");
        let code = answer["code"].as_str().unwrap_or_default();
        if let Gets::Rule(expected) = gets {
            assert_eq!(code, expected, "{said}");
            assert_eq!(explained["refused"]["message"], answer["message"], "{said}");
            return;
        }
        let own = ["/explain", "/metadata/explain"].iter().find_map(|at| answer.pointer(at)).unwrap();
        assert_eq!(own["resolved"], explained["resolved"], "{said}");
        let why = called["why"].to_string();
        let ended: BTreeSet<_> = before.difference(&after).cloned().collect();
        let ends = explained["ends"].as_array().unwrap().iter();
        let ends: BTreeSet<_> = ends.map(|end| end["lobby_id"].as_str().unwrap().to_owned()).collect();
        assert_eq!(ends, ended, "{said}");
        assert_eq!(verdicts_of_page(&called), verdicts(&explained), "{said}");
        match gets {
            Gets::Seat(lobby) => {
                assert_eq!((status, &answer["lobby"]["lobby_id"]), (200, &json!(lobby)), "{said}");
                assert_eq!(
                    (&explained["takes"], &explained["creates"]),
                    (&json!(lobby), &json!(false)),
                    "{said}"
                );
                assert!(why.contains("It took a seat in an existing lobby."), "{said}");
            }
            Gets::Lobby => {
                assert_eq!((status, &own["created"]), (200, &json!(true)), "{said}");
                assert_eq!(
                    (&explained["takes"], &explained["creates"]),
                    (&Value::Null, &json!(true)),
                    "{said}"
                );
                assert_eq!(explained["refusal"], Value::Null, "{said}");
                assert!(why.contains("so it created "), "{said}");
            }
            Gets::Refusal(expected, words) => {
                assert_eq!(code, expected, "{said}");
                assert_eq!(
                    (&explained["takes"], &explained["creates"]),
                    (&Value::Null, &json!(false)),
                    "{said}"
                );
                assert_eq!(explained["refusal"]["code"], answer["code"], "{said}");
                assert_eq!(explained["refusal"]["message"], answer["message"], "{said}");
                assert!(answer["message"].as_str().unwrap().contains(words), "{said}");
                if expected == NO_SERVER {
                    assert_eq!(answer["metadata"]["servers"], explained["servers"], "{said}");
                    assert_eq!(own["servers"], explained["servers"], "{said}");
                    assert!(why.contains(words), "{said}");
                } else {
                    assert!(why.contains("was not created"), "{said}");
                }
            }
            Gets::Rule(_) => {}
        }
    }
}

/// How many lobbies have each verdict.
fn verdicts(explained: &Value) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for candidate in explained["candidates"].as_array().unwrap() {
        *counts.entry(candidate["verdict"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    counts
}

fn verdicts_of_page(called: &Value) -> BTreeMap<String, u64> {
    let counts = called["candidates"]["counts"].as_array().unwrap().iter();
    counts.map(|count| (count[0].as_str().unwrap().to_owned(), count[1].as_u64().unwrap())).collect()
}

#[tokio::test]
async fn all_voices_agree_on_game_servers_without_a_place() {
    let stack = TestStack::start().await;
    let refused = "every find that needs a new lobby is refused";
    let scene = Scene::of(&stack, "nobody", 9).await;
    let none = "`fra` has no game server";
    scene.all_say(duel(), Gets::Refusal(NO_SERVER, none), Some(refused)).await;

    let scene = Scene::of(&stack, "silent", 9).await;
    scene.register("one", json!({ "lease_seconds": 5 })).await;
    scene.seated(duel()).await;
    stack.clock.advance(Duration::from_secs(6));
    scene.all_say(duel(), Gets::Refusal(NO_SERVER, "1 silent ("), Some("1 silent game server")).await;

    let scene = Scene::of(&stack, "full", 9).await;
    for id in ["one", "two"] {
        scene.register(id, json!({ "capacity": 1 })).await;
        scene.seated(duel()).await;
    }
    scene.all_say(duel(), Gets::Refusal(NO_SERVER, "2 full ("), Some("all of fra are full")).await;

    let scene = Scene::of(&stack, "draining", 9).await;
    scene.register("one", json!({})).await;
    scene.seated(duel()).await;
    scene.game.serve(&stack, "deregister", json!({ "server_id": "one" })).await.expect_ok();
    scene.all_say(duel(), Gets::Refusal(NO_SERVER, "1 draining ("), Some(refused)).await;

    let scene = Scene::of(&stack, "unfit", 9).await;
    scene.register("one", json!({ "game_modes": ["arena"] })).await;
    scene.all_say(duel(), Gets::Refusal(NO_SERVER, "1 unfit ("), Some("none of them runs duel")).await;

    // One of each: all are counted, also right after another one registered.
    let scene = Scene::of(&stack, "mixed", 9).await;
    scene.register("full", json!({ "capacity": 1 })).await;
    scene.seated(duel()).await;
    scene.register("unfit", json!({ "game_modes": ["arena"] })).await;
    scene.all_say(duel(), Gets::Refusal(NO_SERVER, "1 full ("), None).await;
    scene.register("other", json!({ "game_modes": ["arena"] })).await;
    assert_eq!(scene.explained(&duel()).await["servers"], json!({ "full": 1, "unfit": 2 }), "fresh");
    stack.clock.advance(SECOND);
    scene.all_say(duel(), Gets::Refusal(NO_SERVER, "2 unfit ("), None).await;
}

#[tokio::test]
async fn all_voices_agree_on_the_room_for_a_party() {
    let stack = TestStack::start().await;
    let scene = Scene::of(&stack, "party", 9).await;
    scene.register("one", json!({})).await;
    let squad = json!({ "regions": ["fra"], "max_players": 4, "party_size_max": 4 });
    scene.run_version(json!({ "squad": squad })).await;
    let squad = |party_size: u32| json!({ "game_modes": ["squad"], "party_size": party_size });
    let lobby = scene.seated(squad(2)).await;
    scene.all_say(squad(3), Gets::Lobby, None).await;
    scene.all_say(squad(2), Gets::Seat(&lobby), None).await;
}

#[tokio::test]
async fn the_doctor_and_an_explanation_tell_of_game_servers_on_demand() {
    let stack = TestStack::start().await;
    let game = async |name: &str, starter| {
        let mode = json!({ "regions": ["fra"], "max_players": 1 });
        let mut new = new_game(name, json!({ "duel": mode }), 9);
        let servers = json!({ "build": 7, "server_count_max": 2, "start_seconds": 60 });
        new.config.servers = Some(serde_json::from_value(servers).unwrap());
        new.regions.values_mut().for_each(|region| region.starter = starter);
        Scene { stack: &stack, game: stack.make_game_of(new, 0).await }
    };
    let scene = game("alone", None).await;
    assert!(scene.warnings().await.concat().contains("fra has no starter"));
    assert_eq!(scene.explained(&duel()).await["refusal"]["code"], NO_SERVER);

    let scene = game("births", Some(StarterKind::Process)).await;
    assert_eq!(scene.warnings().await, [""; 0], "nothing runs, and nothing need run");
    let explained = scene.explained(&duel()).await;
    assert_eq!((&explained["creates"], &explained["requests_server"]), (&json!(true), &json!(true)));
    assert_eq!(explained["starting"], json!([]));

    // A find has one requested, for which it does not wait.
    let build_id = scene.game.created.version.config.servers.as_ref().unwrap().build_id();
    let placement = scene.game.pool("duel", "fra").placement(Some(build_id));
    let store = stack.store();
    store.note_start(&placement, Duration::from_secs(40), stack.clock.now()).await.unwrap();
    let (status, ..) = scene.found(&duel()).await;
    assert_eq!(status, 503);
    let requested_at = time(stack.clock.now());
    let starting = scene.explained(&duel()).await["starting"].clone();
    assert_eq!((&starting[0]["requested_at"], &starting[0]["lobbies"]), (&json!(requested_at), &json!(1)));
    assert_eq!(scene.warnings().await, [""; 0], "it is not late yet");
    stack.clock.advance(Duration::from_secs(31));
    assert!(scene.warnings().await.concat().contains("nothing has started it"));

    // It never comes, and neither do the next ones.
    stack.clock.advance(Duration::from_secs(120));
    for _ in 0..3 {
        store.note_failed_start(&placement, "no such image", stack.clock.now()).await.unwrap();
    }
    let warnings = scene.warnings().await.concat();
    assert!(
        warnings.contains("none is requested in fra for 60 s, since the last 3 starts failed: no such image")
    );
}

#[tokio::test]
async fn all_voices_agree_at_the_limit_of_lobbies() {
    let stack = TestStack::start().await;
    let limit = Gets::Refusal(AT_LIMIT, "as many lobbies as it may");

    let scene = Scene::of(&stack, "one-server", 1).await;
    scene.register("one", json!({})).await;
    scene.seated(duel()).await;
    scene.all_say(duel(), limit, Some("1 of 1 lobbies")).await;

    let scene = Scene::of(&stack, "two-servers", 2).await;
    for id in ["one", "two"] {
        scene.register(id, json!({})).await;
        scene.seated(duel()).await;
    }
    scene.all_say(duel(), limit, Some("2 of 2 lobbies")).await;

    let scene = Scene::of(&stack, "lowered", 3).await;
    scene.register("one", json!({})).await;
    for _ in 0..3 {
        scene.seated(duel()).await;
    }
    scene.limit("1").await;
    scene.all_say(duel(), limit, Some("3 of 1 lobbies")).await;
    scene.limit("4").await;
    scene.all_say(duel(), Gets::Lobby, Some("4 of 4 lobbies")).await;

    let scene = Scene::of(&stack, "of-another-mode", 1).await;
    scene.register("one", json!({})).await;
    scene.seated(arena()).await;
    scene.all_say(duel(), limit, Some("1 of 1 lobbies")).await;

    // The limit comes before game servers.
    let scene = Scene::of(&stack, "full-too", 1).await;
    scene.register("one", json!({ "capacity": 1 })).await;
    scene.seated(duel()).await;
    scene.all_say(duel(), limit, Some("1 of 1 lobbies")).await;
}

#[tokio::test]
async fn all_voices_agree_on_lobbies_that_end_for_another() {
    let stack = TestStack::start().await;

    // On the only place of a server, and never joined.
    let scene = Scene::of(&stack, "unjoined", 9).await;
    scene.register("one", json!({ "capacity": 1 })).await;
    scene.seated(arena()).await;
    stack.clock.advance(RESERVATION);
    scene.all_say(duel(), Gets::Lobby, Some("all of fra are full")).await;

    // At the limit, empty although its idle time runs.
    let scene = Scene::of(&stack, "idle", 1).await;
    scene.register("one", json!({})).await;
    let seat = scene.game.find(&stack, arena()).await.expect_ok();
    scene.game.connect(&stack, &seat).await.expect_ok();
    scene.game.disconnect(&stack, &seat).await.expect_ok();
    stack.clock.advance(SECOND);
    scene.all_say(duel(), Gets::Lobby, Some("1 of 1 lobbies")).await;

    // Below the limit, the same lobby keeps its place.
    let scene = Scene::of(&stack, "idle-below", 9).await;
    scene.register("one", json!({ "capacity": 1 })).await;
    let seat = scene.game.find(&stack, arena()).await.expect_ok();
    scene.game.connect(&stack, &seat).await.expect_ok();
    scene.game.disconnect(&stack, &seat).await.expect_ok();
    stack.clock.advance(SECOND);
    let full = Some("all of fra are full");
    scene.all_say(duel(), Gets::Refusal(NO_SERVER, "1 full ("), full).await;

    // At the limit, of a dead server, with a player.
    let scene = Scene::of(&stack, "dead", 1).await;
    scene.register("dead", json!({ "lease_seconds": 5 })).await;
    let seat = scene.game.find(&stack, duel()).await.expect_ok();
    scene.game.connect(&stack, &seat).await.expect_ok();
    stack.clock.advance(Duration::from_secs(6));
    scene.register("alive", json!({})).await;
    scene.all_say(duel(), Gets::Lobby, Some("1 of 1 lobbies")).await;

    // Three above a lowered limit: all must end for one.
    let scene = Scene::of(&stack, "above", 3).await;
    scene.register("one", json!({})).await;
    for _ in 0..3 {
        scene.seated(duel()).await;
    }
    scene.limit("1").await;
    stack.clock.advance(RESERVATION);
    scene.all_say(arena(), Gets::Lobby, Some("1 of 1 lobbies")).await;

    // At the limit, though its end gives the find no server.
    let scene = Scene::of(&stack, "in-vain", 1).await;
    scene.register("one", json!({ "game_modes": ["arena"] })).await;
    scene.seated(arena()).await;
    stack.clock.advance(RESERVATION);
    let unfit = Gets::Refusal(NO_SERVER, "1 unfit (");
    scene.all_say(duel(), unfit, Some("none of them runs duel")).await;
}

#[tokio::test]
async fn all_voices_agree_on_lobbies_that_do_not_fit() {
    let stack = TestStack::start().await;
    let full = Gets::Refusal(NO_SERVER, "1 full (");
    let all_full = Some("all of fra are full");

    let scene = Scene::of(&stack, "open", 9).await;
    scene.register("one", json!({ "capacity": 1 })).await;
    let lobby = scene.seated(arena()).await;
    scene.all_say(arena(), Gets::Seat(&lobby), all_full).await;
    let scene = Scene::of(&stack, "closed", 9).await;
    scene.register("one", json!({ "capacity": 1 })).await;
    let lobby = scene.seated(arena()).await;
    let closed = (Method::PUT, "lobbies/closed");
    scene.game.host(&stack, &lobby, closed, json!({ "is_closed": true })).await.expect_ok();
    scene.all_say(arena(), full, all_full).await;

    let scene = Scene::of(&stack, "private", 9).await;
    scene.register("one", json!({ "capacity": 1 })).await;
    let create = json!({ "game_mode": "duel", "publicity": "private" });
    scene.game.play(&stack, "lobbies/create", create).await.expect_ok();
    scene.all_say(duel(), full, all_full).await;

    let scene = Scene::of(&stack, "tags", 9).await;
    scene.register("one", json!({ "capacity": 1 })).await;
    scene.seated(json!({ "game_modes": ["duel"], "tags": { "team": "red" } })).await;
    scene.all_say(json!({ "game_modes": ["duel"], "tags": { "team": "blue" } }), full, all_full).await;

    let scene = Scene::of(&stack, "version", 9).await;
    scene.register("one", json!({ "capacity": 1 })).await;
    scene.seated(arena()).await;
    scene.run_version(modes()).await;
    scene.all_say(arena(), full, all_full).await;

    let scene = Scene::of(&stack, "elsewhere", 9).await;
    scene.register("one", json!({})).await;
    scene.seated(arena()).await;
    let far = json!({ "game_modes": ["arena"], "regions": ["nyc"] });
    scene.all_say(far, Gets::Refusal(NO_SERVER, "`nyc` has no game server"), None).await;
}

#[tokio::test]
async fn all_voices_agree_on_rules() {
    let stack = TestStack::start().await;
    let scene = Scene::of(&stack, "rules", 9).await;
    scene.register("one", json!({})).await;
    let hidden = json!({ "game_modes": ["hidden"] });
    scene.all_say(hidden, Gets::Rule("MATCHMAKER_FIND_DISABLED"), None).await;
    let mars = json!({ "game_modes": ["duel"], "regions": ["mars"] });
    scene.all_say(mars, Gets::Rule("MATCHMAKER_REGION_NOT_FOUND"), None).await;
    let tagged = json!({ "game_modes": ["arena"], "tags": { "team": "red" } });
    scene.all_say(tagged, Gets::Rule("MATCHMAKER_TAGS_DISABLED"), None).await;
    let far = json!({ "game_modes": ["duel"], "regions": ["nyc"] });
    scene.all_say(far, Gets::Rule("MATCHMAKER_REGION_NOT_ENABLED_FOR_GAME_MODE"), None).await;

    scene.seated(duel()).await;
    scene.run_version(json!({ "arena": { "regions": ["fra"] } })).await;
    scene.all_say(duel(), Gets::Rule("MATCHMAKER_GAME_MODE_NOT_FOUND"), None).await;
}

/// What only the find knows: whether its request prevents a creation, and which address it comes from.
#[tokio::test]
async fn an_explanation_without_the_request_says_what_another_request_gets() {
    let stack = TestStack::start().await;
    let scene = Scene::of(&stack, "prevented", 9).await;
    scene.register("one", json!({})).await;
    let find = json!({ "game_modes": ["duel"], "prevent_auto_create_lobby": true });
    let (status, answer, called) = scene.found(&find).await;
    assert_eq!((status, &answer["code"]), (400, &json!("MATCHMAKER_NO_AVAILABLE_LOBBIES")));
    assert!(called["why"].to_string().contains("prevents the creation of duel in fra"), "{called}");
    let explained = scene.explained(&duel()).await;
    assert_eq!((&explained["takes"], &explained["creates"]), (&Value::Null, &json!(true)));

    let mut new = new_game("capped", modes(), 9);
    new.namespaces[0].max_players_per_client = 1;
    let scene = Scene { stack: &stack, game: stack.make_game_of(new, 0).await };
    scene.register("one", json!({})).await;
    let lobby = scene.seated(arena()).await;
    let (status, answer, _) = scene.found(&arena()).await;
    assert_eq!((status, &answer["code"]), (400, &json!("MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE")));
    assert_eq!(scene.explained(&arena()).await["takes"], lobby.as_str(), "from another address");
}

#[tokio::test]
async fn a_starting_lobby_is_said_to_be_waited_for() {
    let stack = TestStack::start().await;
    let scene = Scene::of(&stack, "starting", 9).await;
    scene.register("one", json!({ "auto_ready": false, "lease_seconds": 0 })).await;
    let explain = async {
        let lobby = loop {
            if let Some(lobby) = scene.live().await.pop_first() {
                break lobby;
            }
            tokio::task::yield_now().await;
        };
        let explained = scene.explained(&arena()).await;
        let ready = (Method::POST, "lobbies/ready");
        scene.game.host(&stack, &lobby, ready, json!({})).await.expect_ok();
        stack.clock.advance(Duration::from_secs(2));
        (lobby, explained)
    };
    let (found, (lobby, explained)) = tokio::join!(scene.seated(arena()), explain);
    assert_eq!(found, lobby);
    assert_eq!((&explained["takes"], &explained["waits"]), (&json!(lobby), &json!(true)), "{explained}");
    assert_eq!(explained["candidates"][0]["verdict"], "taken, then waits until it is ready");
    scene.all_say(arena(), Gets::Seat(&lobby), None).await;
    assert_eq!(scene.explained(&arena()).await["waits"], false);
}

#[tokio::test]
async fn the_doctor_warns_of_what_players_will_meet() {
    let stack = TestStack::start().await;
    let scene = Scene::of(&stack, "doctor", 10).await;
    scene.register("one", json!({ "capacity": 20, "lease_seconds": 3_600 })).await;
    for _ in 0..8 {
        scene.seated(duel()).await;
    }
    assert_eq!(scene.warnings().await, [""; 0]);
    scene.seated(duel()).await;
    let near = scene.warnings().await;
    assert!(near.len() == 1 && near[0].contains("9 of 10 lobbies: the limit is near"), "{near:?}");

    // A game server that forgets `connected`.
    stack.clock.advance(RESERVATION);
    let unjoined = scene.warnings().await;
    let said = "reservations lapsed in 9 lobbies of one, and no player ever connected: does it call \
                `players/connected`? If it does, they are of a crowd of scripts: see infra/docs/operating.md";
    assert!(unjoined.iter().any(|warning| warning.contains(said)), "{unjoined:?}");
    let seat = scene.game.find(&stack, duel()).await.expect_ok();
    scene.game.connect(&stack, &seat).await.expect_ok();
    let joined = scene.warnings().await;
    assert!(!joined.iter().any(|warning| warning.contains("no player ever connected")), "{joined:?}");

    // Silent ones are named with the time since when.
    let scene = Scene::of(&stack, "quiet", 10).await;
    scene.register("never", json!({ "lease_seconds": 1 })).await;
    scene.register("once", json!({ "lease_seconds": 1 })).await;
    stack.clock.advance(Duration::from_millis(500));
    scene.game.heartbeat(&stack, "once").await.expect_ok();
    let heard = time(stack.clock.now());
    stack.clock.advance(Duration::from_secs(2));
    let silent = scene.warnings().await;
    let silent: Vec<_> =
        silent.iter().filter(|warning| warning.contains("2 silent game servers: ")).collect();
    assert!(silent[0].contains(&format!("once was last heard at {heard}")), "{silent:?}");
    assert!(silent[0].contains("never sent no heartbeat since it registered at "), "{silent:?}");
}

#[tokio::test]
async fn the_doctor_tells_a_crowd_of_scripts_from_players_where_lobbies_run_short() {
    let stack = TestStack::start().await;
    let later = || stack.clock.advance(CONNECTS_AFTER + SECOND);
    let places = json!({ "capacity": 60, "lease_seconds": 3_600 });
    let scene = Scene::of(&stack, "busy", 34).await;
    scene.register("one", places.clone()).await;
    scene.fill(16, 0).await;
    assert_eq!(scene.filled_by().await, None, "16 of 34 are few");
    scene.fill(1, 0).await;
    let players = |used: usize, read: usize| {
        format!(
            "players fill busy/prod: {used} of the {read} lobbies read have had one; for more, raise its limit \
             or start game servers"
        )
    };
    assert_eq!(scene.filled_by().await, Some(players(17, 17)));
    scene.fill(0, 5).await;
    assert_eq!(scene.filled_by().await, Some(players(17, 22)));
    assert_eq!(scene.warnings().await, [""; 0], "players are no reason to worry");
    // More without a player are a crowd's, or their players are on their way.
    scene.fill(0, 3).await;
    let waiting =
        "8 of the 25 lobbies read of busy/prod have had no player so far: too soon to say who fills it";
    assert_eq!(scene.filled_by().await.as_deref(), Some(waiting));
    assert_eq!(scene.warnings().await, [""; 0]);
    later();
    let crowd = "players of busy/prod: looks like a crowd of scripts: 8 of the 25 lobbies read have had no player \
                 for more than 4.0 s, in which half of the others had one: see \
                 infra/docs/operating.md#when-a-crowd-of-scripts-comes";
    assert_eq!(scene.warnings().await, [crowd]);
    // Also once their reservations have lapsed; and not where there are lobbies enough.
    stack.clock.advance(RESERVATION);
    assert_eq!(scene.warnings().await, [crowd]);
    scene.limit("51").await;
    assert_eq!(scene.filled_by().await, None);

    // Fewer than one IP address may hold are no crowd.
    let scene = Scene::of(&stack, "few", 16).await;
    scene.register("one", places.clone()).await;
    scene.fill(1, 7).await;
    later();
    assert_eq!(scene.filled_by().await, None);
    scene.fill(0, 1).await;
    later();
    let crowd = scene.filled_by().await.unwrap();
    assert!(crowd.contains("crowd of scripts: 8 of the 9 lobbies read have had no player"), "{crowd}");

    // Where game servers are full, lobbies are as short as at the limit.
    let scene = Scene::of(&stack, "full", 100).await;
    scene.register("one", json!({ "capacity": 10 })).await;
    scene.fill(2, 8).await;
    later();
    let crowd = scene.filled_by().await.unwrap();
    assert!(crowd.contains("crowd of scripts: 8 of the 10 lobbies read have had no player"), "{crowd}");
    scene.register("two", json!({ "capacity": 4 })).await;
    assert_eq!(scene.filled_by().await, None, "there are places again");
    // A game server that reports no player is named besides.
    scene.fill(0, 4).await;
    stack.clock.advance(RESERVATION);
    let both = scene.filled_by().await.unwrap();
    assert!(both.contains("12 of the 14 lobbies read have had no player"), "{both}");
    assert!(both.contains("reservations lapsed in 4 lobbies of two, and no player ever connected"), "{both}");
    assert!(!both.contains("If it does"), "others report theirs: {both}");

    // Where nobody has ever connected, seven lobbies are no crowd either.
    let scene = Scene::of(&stack, "none", 14).await;
    scene.register("one", places).await;
    scene.fill(0, 7).await;
    assert_eq!(scene.filled_by().await, None);
    stack.clock.advance(RESERVATION);
    let unjoined = scene.filled_by().await.unwrap();
    assert!(unjoined.ends_with("does it call `players/connected`?"), "{unjoined}");
}
