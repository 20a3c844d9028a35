//! What each verb of the command asks before it begins, and what it leaves in the history.

use std::collections::BTreeSet;

use super::*;

/// What a verb does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Does {
    /// It only reads.
    Reads,
    /// It changes something, which is in the history.
    Changes,
    /// So does it, and it ends something for players or cannot be undone: it asks.
    Ends,
}
use Does::{Changes, Ends, Reads};

/// Every verb of the command.
const VERBS: [(&str, Does); 53] = [
    // What it changes is a game server's own.
    ("agent run", Reads),
    ("cdn auth", Changes),
    ("cdn user list", Reads),
    ("cdn user remove", Ends),
    ("cdn user set", Changes),
    ("completions", Reads),
    ("console", Reads),
    ("cost", Reads),
    ("doctor", Reads),
    ("domain add", Changes),
    ("domain list", Reads),
    ("domain public-auth", Ends),
    ("domain remove", Ends),
    ("game create", Changes),
    ("game export", Reads),
    ("game import", Changes),
    ("game list", Reads),
    ("game show", Reads),
    ("history", Reads),
    // It asks in AWS, because it costs money.
    ("load", Ends),
    ("lobby end", Ends),
    ("lobby explain", Reads),
    ("lobby list", Reads),
    ("lobby show", Reads),
    ("mm-config", Changes),
    ("move", Ends),
    ("namespace create", Changes),
    ("namespace list", Reads),
    ("namespace show", Reads),
    ("region add", Changes),
    ("region list", Reads),
    ("region probe", Changes),
    ("region start", Changes),
    ("region stop", Changes),
    ("restore", Ends),
    ("server list", Reads),
    ("server remove", Ends),
    ("tail", Reads),
    ("token create cloud", Changes),
    ("token create development", Changes),
    ("token create public", Changes),
    ("token create server", Changes),
    ("token list", Reads),
    ("token revoke", Ends),
    ("token revoke-all", Ends),
    ("version create", Changes),
    ("version delete", Ends),
    ("version history", Reads),
    ("version list", Reads),
    ("version schema", Reads),
    ("version set", Changes),
    ("version show", Reads),
    ("version validate", Reads),
];

/// Expects every verb that changes something in the history of a game for which each was run.
pub(super) fn assert_noted(history: &str, is_json: bool) {
    // An import is in the history of the game that it made; restores, moves and loads have tests of their
    // own.
    let elsewhere = ["game import", "load", "move", "restore"];
    let noted = VERBS.iter().filter(|(verb, does)| *does != Reads && !elsewhere.contains(verb));
    let missing: Vec<_> = noted.map(|(verb, _)| *verb).filter(|verb| !history.contains(verb)).collect();
    assert!(missing.is_empty(), "{missing:?}: {history}");
    let tokens = Regex::new("(cloud|pub|dev|server)_[A-Za-z0-9_.-]{16,}|correct horse").unwrap();
    assert!(!tokens.is_match(history), "{history}");
    assert!(is_json || history.starts_with("AT "), "{history}");
}

#[tokio::test]
async fn every_verb_says_whether_it_asks() {
    let known: BTreeSet<_> = VERBS.iter().map(|(verb, _)| (*verb).to_owned()).collect();
    assert_eq!(commands::leaves().await, known);
    for (verb, does) in VERBS {
        let arguments: Vec<_> = verb.split(' ').chain(["--help"]).collect();
        let help = Program::run("muster", &arguments, &BTreeMap::new()).await.stdout;
        assert_eq!(help.contains("--yes"), does == Ends, "{verb}: {help}");
    }
}

/// A game with something to lose.
struct Scene {
    local: Local,
    lobby: String,
    public_id: String,
}

impl Scene {
    async fn start(folder: &TestFolder) -> Self {
        let local = Local::start(&[]).await;
        let file = folder.path("modes.json");
        fs::write(&file, r#"{"game_modes": {"arena": {"regions": ["fra"], "max_players": 4}}}"#).unwrap();
        let mut scene = Self { local, lobby: String::new(), public_id: String::new() };
        scene.ask(&["game", "create", "kart", "--region", "fra=F@1,2", "--config", &file]).await;
        scene.ask(&["version", "create", "kart", &file, "--name", "unused"]).await;
        scene.ask(&["domain", "add", "kart/prod", "play.example"]).await;
        let set = ["cdn", "user", "set", "kart/prod", "tester", &scene.local.option];
        assert!(Program::run_with("muster", &set, "correct horse\n").await.status.success());
        let server = scene.token("server").await;
        let public = scene.token("public").await;
        let register = async |server_id: &str, lease: u32| {
            let body = registration("one", &json!({ "server_id": server_id, "lease_seconds": lease }));
            let url = format!("{}/matchmaker/servers/register", scene.local.base_url);
            post(&url, &server, &body.to_string()).await.expect_ok();
        };
        register("one", 3_600).await;
        // Alphabets of identifiers allow this.
        register("--help", 3_600).await;
        let found = scene.local.find(&public, json!({ "game_modes": ["arena"] })).await.expect_ok();
        scene.lobby = found.lobby_id();
        let beat = |server_id: &str| {
            let url = format!("{}/matchmaker/servers/heartbeat", scene.local.base_url);
            let body = json!({ "server_id": server_id }).to_string();
            let server = server.clone();
            async move { post(&url, &server, &body).await.expect_ok().body }
        };
        let (one, other) = (beat("one").await, beat("--help").await);
        let lobbies = [&one, &other].map(|listed| listed["lobbies"].as_array().unwrap().clone()).concat();
        let url = format!("{}/matchmaker/players/connected", scene.local.base_url);
        let body = json!({ "player_token": found.body["player"]["token"] }).to_string();
        post(&url, lobbies[0]["lobby_token"].as_str().unwrap(), &body).await.expect_ok();
        let tokens = scene.ask(&["token", "list", "kart"]).await;
        let listed = tokens["tokens"].as_array().unwrap();
        let listed = listed.iter().find(|token| token["kind"] == "public").unwrap();
        scene.public_id = listed["token_id"].as_str().unwrap().to_owned();
        scene
    }

    async fn end(&self, arguments: &[&str]) -> Ended {
        let arguments = [&["--json", &self.local.option], arguments].concat();
        let environment = [("USER".to_owned(), "ada".to_owned())].into();
        Program::run("muster", &arguments, &environment).await
    }

    async fn ask(&self, arguments: &[&str]) -> Value {
        let Ended { status, stdout, stderr } = self.end(arguments).await;
        assert!(status.success() && stderr.is_empty(), "{arguments:?}: {stderr}");
        serde_json::from_str(&stdout).unwrap()
    }

    async fn token(&self, kind: &str) -> String {
        self.ask(&["token", "create", kind, "kart/prod"]).await["token"].as_str().unwrap().to_owned()
    }

    /// The code and the message of a refusal, with its status.
    async fn refusal(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let Ended { status, stdout, stderr } = self.end(arguments).await;
        assert_eq!(stdout, "", "{arguments:?}");
        let refusal: Value =
            serde_json::from_str(&stderr).unwrap_or_else(|_| panic!("{arguments:?}: {stderr}"));
        let text = |field: &str| refusal[field].as_str().unwrap().to_owned();
        (status.code(), text("code"), text("message"))
    }

    /// The server that runs the lobby, and the other one.
    async fn servers(&self) -> (String, String) {
        let shown = self.ask(&["lobby", "show", &self.lobby]).await;
        let runs = shown["lobby"]["server_id"].as_str().unwrap().to_owned();
        let other = if runs == "one" { "--help" } else { "one" };
        (runs, other.to_owned())
    }
}

#[tokio::test]
async fn without_consent_nothing_ends_and_the_refusal_says_what_would() {
    let folder = TestFolder::new();
    let scene = Scene::start(&folder).await;
    let (runs, _) = scene.servers().await;
    let removal =
        format!("removes the game server {runs} of kart/prod and ends 1 lobby with 1 connected player");
    let of_lobby = format!("ends the lobby {} of kart/prod with 1 connected player", scene.lobby);
    let revokes = format!("revokes the public token {} of kart, for good", scene.public_id);
    let of_kind = "revokes every public token of kart/prod, for good (1 valid)";
    let verbs: [(&str, &[&str], &str); 9] = [
        ("server remove", &["--alive", "kart/prod", "--", &runs], &removal),
        ("lobby end", &[&scene.lobby], &of_lobby),
        ("token revoke", &["kart", &scene.public_id], &revokes),
        ("token revoke-all", &["kart/prod", "public"], of_kind),
        ("version delete", &["kart", "unused"], "deletes the version unused of kart with its secrets"),
        ("domain remove", &["kart/prod", "play.example"], "removes play.example from kart/prod"),
        ("domain public-auth", &["kart/prod", "off"], "pages of 1 domain of kart/prod need a token"),
        ("cdn user remove", &["kart/prod", "tester"], "removes the user tester of kart/prod"),
        ("restore", &["tokens=restored"], "copies restored over tokens"),
    ];
    // A load of the local stack costs nothing; a move has a folder of its own (`process::moving`).
    let asks: BTreeSet<_> = VERBS.iter().filter(|(_, does)| *does == Ends).map(|(verb, _)| *verb).collect();
    let tried: BTreeSet<_> = verbs.iter().map(|(verb, ..)| *verb).chain(["load", "move"]).collect();
    assert_eq!(tried, asks);

    let before = scene.ask(&["game", "export", "kart"]).await;
    let history = scene.ask(&["history", "kart"]).await;
    for (verb, arguments, loss) in verbs {
        let arguments = [verb.split(' ').collect::<Vec<_>>(), arguments.to_vec()].concat();
        let (status, code, message) = scene.refusal(&arguments).await;
        assert_eq!((status, code.as_str()), (Some(4), "NOT_CONFIRMED"), "{verb}: {message}");
        let begins = format!("{}: {loss}", scene.local.base_url);
        assert!(message.starts_with(&begins) && message.contains("--yes"), "{verb}: {message}");
    }
    assert_eq!(scene.ask(&["game", "export", "kart"]).await, before);
    assert_eq!(scene.ask(&["history", "kart"]).await, history);
    assert_eq!(scene.ask(&["lobby", "list", "kart/prod"]).await["lobbies"].as_array().unwrap().len(), 1);
    let tokens = scene.ask(&["token", "list", "kart"]).await;
    assert!(tokens["tokens"].as_array().unwrap().iter().all(|token| token["state"] == "valid"), "{tokens}");
}

#[tokio::test]
async fn a_living_server_is_removed_only_on_purpose_and_by_any_name() {
    let folder = TestFolder::new();
    let scene = Scene::start(&folder).await;
    for server_id in ["one", "--help"] {
        let remove = ["server", "remove", "--yes", "kart/prod", "--", server_id];
        let (status, code, message) = scene.refusal(&remove).await;
        assert_eq!((status, code.as_str()), (Some(4), "REFUSED"), "{message}");
        assert!(message.contains("has a lease until ") && message.contains("--alive"), "{message}");
        scene.ask(&["server", "remove", "--yes", "--alive", "kart/prod", "--", server_id]).await;
    }
    assert_eq!(scene.ask(&["server", "list", "kart/prod"]).await["servers"], json!([]));
    assert_eq!(scene.ask(&["lobby", "list", "kart/prod"]).await["lobbies"], json!([]));
    let history = scene.ask(&["history", "kart"]).await;
    let last = &history["actions"][0];
    let shown = [&last["who"], &last["verb"], &last["target"], &last["failed"]];
    assert_eq!(shown, [&json!("ada"), &json!("server remove"), &json!("kart/prod --help"), &json!(false)]);
}

#[tokio::test]
async fn an_end_of_a_lobby_is_in_the_history_of_its_game_and_a_restore_in_that_of_the_deployment() {
    let folder = TestFolder::new();
    let scene = Scene::start(&folder).await;
    scene.ask(&["lobby", "end", &scene.lobby, "--yes"]).await;
    let ended = &scene.ask(&["history", "kart"]).await["actions"][0];
    assert_eq!((&ended["verb"], &ended["target"]), (&json!("lobby end"), &json!(scene.lobby)));
    // A table over itself, which changes nothing.
    scene.ask(&["restore", "tokens=TokensTable", "--yes"]).await;
    let restored = &scene.ask(&["history"]).await["actions"][0];
    assert_eq!((&restored["verb"], &restored["target"]), (&json!("restore"), &json!("tokens=TokensTable")));
    let of_demo = scene.ask(&["history", "demo"]).await;
    assert_eq!(of_demo["actions"], json!([]), "another game has its own");
}
