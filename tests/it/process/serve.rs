//! `muster-local serve`: one machine for players, which keeps what it has answered.

use std::{os::unix::fs::PermissionsExt as _, path::Path};

use rusqlite::Connection;

use super::*;

/// The rules of its game: a mode of two seats.
const MODES: &str = r#"{ "game_modes": { "duel": { "regions": ["fra"], "max_players": 2 } } }"#;
/// The game's namespace.
const NAMESPACE: &str = "my-game/prod";

/// A machine that serves a game.
pub(super) struct Machine {
    pub program: Program,
    pub base_url: String,
    pub status_url: String,
    pub data: String,
}

impl Machine {
    /// Starts one in `data`, once it says where everything is.
    pub async fn start(data: &str, arguments: &[&str]) -> Self {
        let all =
            [&["serve", "--data", data, "--port", "0", "--status", "127.0.0.1:0", "--drain", "0"], arguments]
                .concat();
        Self::of(Program::start(BINARY, &all, &BTreeMap::new()), data).await
    }

    pub async fn of(mut program: Program, data: &str) -> Self {
        let Some(line) = program.line_with("Health and metrics are at ").await else {
            panic!("{:?}", program.end().await);
        };
        let found = Regex::new("at (http://[^/]+)/health").unwrap();
        let status_url = found.captures(&line).unwrap().get(1).unwrap().as_str().to_owned();
        let line = program.line_with("Muster listens on ").await.unwrap();
        let base_url = line.rsplit(' ').next().unwrap().to_owned();
        Self { program, base_url, status_url, data: data.to_owned() }
    }

    /// A folder with a machine that serves [`MODES`].
    pub async fn with_game(folder: &TestFolder, arguments: &[&str]) -> Self {
        let config = folder.path("modes.json");
        fs::write(&config, MODES).unwrap();
        Self::start(&folder.path("data"), &[&["--config", &config], arguments].concat()).await
    }

    /// What `muster` prints about this machine, which must succeed.
    pub async fn ask(&self, arguments: &[&str]) -> String {
        let all = [arguments, &["--data", &self.data]].concat();
        let Ended { status, stdout, stderr } = Program::run("muster", &all, &BTreeMap::new()).await;
        assert!(status.success(), "{arguments:?}: {stdout}{stderr}");
        stdout.trim_end().to_owned()
    }

    pub async fn token(&self, kind: &str) -> String {
        let of = if kind == "cloud" { "my-game" } else { NAMESPACE };
        self.ask(&["token", "create", kind, of]).await
    }

    pub async fn post(&self, path: &str, token: &str, body: Value) -> Answer {
        post(&format!("{}{path}", self.base_url), token, &body.to_string()).await
    }

    /// Registers a game server with a hundred places that never lapses.
    pub async fn register(&self, server: &str, auto_ready: bool) {
        let ports = json!({ "default": { "hostname": "game.example", "port": 7777, "protocol": "udp" } });
        let registration = json!({ "server_id": "one", "region_id": "fra", "capacity": 100, "lease_seconds": 0,
                                   "auto_ready": auto_ready, "ports": ports });
        self.post("/matchmaker/servers/register", server, registration).await.expect_ok();
    }

    /// A find of a client at `address`, by the proxy on this machine.
    pub async fn find_from(&self, public: &str, address: &str, key: &str) -> Answer {
        let request = Request::post(format!("{}/matchmaker/lobbies/find", self.base_url))
            .header("authorization", format!("Bearer {public}"))
            .header("idempotency-key", key)
            .header("x-forwarded-for", address);
        send(request, r#"{ "game_modes": ["duel"] }"#).await
    }

    /// A count of the metrics, by its line; 0 while nothing is counted.
    pub async fn metric(&self, line: &str) -> u64 {
        let page = self.page("/metrics").await;
        page.lines().find_map(|found| found.strip_prefix(line)?.trim().parse().ok()).unwrap_or(0)
    }

    pub async fn page(&self, path: &str) -> String {
        let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
        let request = Request::get(format!("{}{path}", self.status_url)).body(Full::default()).unwrap();
        let response = timeout(PATIENCE, client.request(request)).await.unwrap().unwrap();
        String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
    }

    /// Ends it as a supervisor does, which must succeed.
    pub async fn stop(mut self) -> Ended {
        self.program.signal("TERM");
        let ended = self.program.end().await;
        assert_eq!(ended.status.code(), Some(0), "{ended:?}");
        ended
    }
}

/// Runs `muster-local` to where it refuses, and returns its line about that.
async fn refused(arguments: &[&str]) -> String {
    refusal(&[arguments, &["--port", "0", "--status", "127.0.0.1:0"]].concat()).await
}

#[tokio::test]
async fn a_machine_shows_players_nothing_but_the_api_and_nobody_a_secret() {
    let folder = TestFolder::new();
    let machine = Machine::with_game(&folder, &["--json"]).await;
    let (public, server) = (machine.token("public").await, machine.token("server").await);
    machine.register(&server, true).await;
    let seat = machine.find_from(&public, "203.0.113.9", "a").await.expect_ok().body;

    for path in
        ["/", "/console", "/errors", "/_local/demo", "/_local/store", "/_local/faults", "/health", "/metrics"]
    {
        assert_eq!(get(&format!("{}{path}", machine.base_url)).await.status, 404, "{path}");
    }
    let health = get(&format!("{}/health", machine.status_url)).await.expect_ok().body;
    assert_eq!((&health["status"], &health["data_form"]), (&json!("ok"), &json!(1)));
    let finds = "muster_requests_total{operation=\"find-lobby\",status=\"200\"}";
    assert_eq!(machine.metric(finds).await, 1);
    assert_eq!(machine.metric("muster_lobby_created_total{operation=\"find-lobby\"}").await, 1);
    assert!(machine.metric("muster_database_bytes").await > 0);
    // Orders need the key of the door.
    for path in ["/pause", "/resume", "/moved"] {
        let order = Request::put(format!("{}{path}", machine.status_url)).header("authorization", "Bearer x");
        assert_eq!(send(order, "{}").await.status, 403, "{path}");
    }

    let key = fs::read_to_string(folder.path("data/signing-key")).unwrap();
    assert!(key.len() == 64 && key.bytes().all(|byte| byte.is_ascii_hexdigit()), "a text of 32 bytes");
    for file in fs::read_dir(folder.path("data")).unwrap() {
        let file = file.unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{:?}", file.path());
    }
    let door = fs::read_to_string(folder.path("data/door.json")).unwrap();
    let door: Value = serde_json::from_str(&door).unwrap();
    let Ended { stdout, stderr, .. } = machine.stop().await;
    assert!(stderr.contains("the operation succeeded"), "it logs as functions do: {stderr}");
    let player = seat["player"]["token"].as_str().unwrap().to_owned();
    let of_door = ["key", "endpoint"].map(|name| door[name].as_str().unwrap().to_owned());
    for secret in [key, public, server, player].iter().chain(&of_door) {
        assert!(!format!("{stdout}{stderr}").contains(secret.as_str()), "{stdout}{stderr}");
    }
    assert!(!Path::new(&folder.path("data/door.json")).exists(), "nobody is behind it any more");
}

#[tokio::test]
async fn a_client_has_the_address_that_a_named_proxy_saw() {
    let folder = TestFolder::new();
    let limit = ["mm-config", NAMESPACE, "--max-players-per-client", "1"];
    let machine = Machine::with_game(&folder, &["--proxy", "127.0.0.1", "--proxy", "10.0.0.0/8"]).await;
    machine.ask(&limit).await;
    let (public, server) = (machine.token("public").await, machine.token("server").await);
    machine.register(&server, true).await;
    machine.find_from(&public, "203.0.113.9", "a").await.expect_ok();
    // What a client claims stands before what the proxy saw.
    let claimed = machine.find_from(&public, "198.51.100.7, 203.0.113.9, 10.1.2.3", "b").await;
    assert_eq!(claimed.refusal().1, "MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE");
    machine.find_from(&public, "198.51.100.7, 10.1.2.3", "c").await.expect_ok();
    machine.stop().await;

    let mut machine = Machine::start(&folder.path("data"), &[]).await;
    machine.find_from(&public, "192.0.2.1", "d").await.expect_ok();
    let other = machine.find_from(&public, "192.0.2.2", "e").await;
    assert_eq!(other.refusal().1, "MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE", "nobody named the proxy");
    let warning = machine.program.logged("is no named proxy").await.unwrap();
    assert!(warning.contains("--proxy 127.0.0.1"), "{warning}");
    assert_eq!(machine.program.logged_lines("is no named proxy"), 1);
    machine.stop().await;
}

#[tokio::test]
async fn a_find_that_waits_at_a_stop_comes_again_to_its_seat() {
    let folder = TestFolder::new();
    let machine = Machine::with_game(&folder, &[]).await;
    let (public, server) = (machine.token("public").await, machine.token("server").await);
    machine.register(&server, false).await;
    let find = machine.find_from(&public, "203.0.113.9", "once");
    let beat = async {
        // Its lobby is there, and starts.
        loop {
            let beat = json!({ "server_id": "one" });
            let beat = machine.post("/matchmaker/servers/heartbeat", &server, beat).await.expect_ok().body;
            if let Some(lobby) = beat["lobbies"].as_array().unwrap().first() {
                break lobby["lobby_id"].clone();
            }
        }
    };
    let (answer, lobby_id) = tokio::join!(find, async {
        let lobby_id = beat.await;
        machine.program.signal("TERM");
        lobby_id
    });
    assert_eq!((answer.status.as_u16(), answer.headers["retry-after"].to_str().unwrap()), (503, "2"));
    let mut program = machine.program;
    assert_eq!(program.end().await.status.code(), Some(0));

    let machine = Machine::start(&folder.path("data"), &[]).await;
    let beat = json!({ "server_id": "one" });
    let beat = machine.post("/matchmaker/servers/heartbeat", &server, beat).await.expect_ok().body;
    let lobby = &beat["lobbies"][0];
    assert_eq!(lobby["lobby_id"], lobby_id);
    let token = lobby["lobby_token"].as_str().unwrap();
    machine.post("/matchmaker/lobbies/ready", token, json!({})).await.expect_ok();
    // As after a crash, the interrupted run may go on for 15 s before a repetition takes over.
    let again = machine.find_from(&public, "203.0.113.9", "once").await;
    match again.status.as_u16() {
        200 => assert_eq!(json!(again.lobby_id()), lobby_id),
        _ => assert_eq!(again.body["metadata"]["reason"], "request_in_progress", "{}", again.body),
    }
    machine.stop().await;
}

#[tokio::test]
async fn a_game_file_is_applied_at_the_start_and_again_on_request() {
    let folder = TestFolder::new();
    let mut machine = Machine::with_game(&folder, &[]).await;
    assert!(machine.program.logged("my-game is created").await.is_some());
    let with = |seats: u32| MODES.replace(": 2 }", &format!(": {seats} }}"));
    fs::write(folder.path("modes.json"), with(4)).unwrap();
    machine.program.signal("HUP");
    assert!(machine.program.logged("prod runs version 1-2").await.is_some());
    fs::write(folder.path("modes.json"), with(257)).unwrap();
    machine.program.signal("HUP");
    let line = machine.program.logged("not applied, all stays as it was").await.unwrap();
    assert!(line.contains("max_players/too-high"), "{line}");
    assert!(machine.ask(&["doctor"]).await.contains("prod runs a version"));
    machine.stop().await;
}

#[tokio::test]
async fn a_backup_of_a_running_machine_is_a_folder_with_all_that_was_answered() {
    let folder = TestFolder::new();
    let machine = Machine::with_game(&folder, &[]).await;
    let [data, backup, again] = ["data", "backup", "again"].map(|name| folder.path(name));
    let (public, server) = (machine.token("public").await, machine.token("server").await);
    machine.register(&server, true).await;
    let seat = machine.find_from(&public, "203.0.113.9", "kept").await.expect_ok().body;
    let copy = |from: &str, to: &str| {
        let arguments = ["backup", "--data", from, "--to", to].map(ToOwned::to_owned);
        async move { Program::run(BINARY, &arguments.each_ref().map(String::as_str), &BTreeMap::new()).await }
    };
    let copied = copy(&data, &backup).await;
    assert!(copied.status.success(), "{}", copied.stderr);
    let later = machine.find_from(&public, "203.0.113.9", "later").await.expect_ok().body;
    assert_ne!(later, seat);
    machine.stop().await;
    for (path, mode) in [("backup", 0o700), ("backup/muster.db", 0o600), ("backup/signing-key", 0o600)] {
        assert_eq!(fs::metadata(folder.path(path)).unwrap().permissions().mode() & 0o777, mode, "{path}");
    }

    for (from, to, problem) in [
        (data.as_str(), backup.as_str(), "is there already"),
        (&folder.path("nothing"), &again, "has no muster.db"),
    ] {
        let refused = copy(from, to).await;
        assert!(!refused.status.success() && refused.stderr.contains(problem), "{}", refused.stderr);
    }
    // A page in the middle of the copy is overwritten.
    fs::create_dir(folder.path("damaged")).unwrap();
    for name in ["muster.db", "signing-key"] {
        fs::copy(format!("{backup}/{name}"), folder.path(&format!("damaged/{name}"))).unwrap();
    }
    let path = folder.path("damaged/muster.db");
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2 / 4_096 * 4_096;
    bytes[middle..middle + 4_096].fill(0xff);
    fs::write(&path, bytes).unwrap();
    let restore = ["restore", "--backup", &folder.path("damaged"), "--data", &again];
    let damaged = Program::run(BINARY, &restore, &BTreeMap::new()).await;
    assert!(!damaged.status.success() && damaged.stderr.contains("malformed"), "{}", damaged.stderr);
    assert!(!Path::new(&again).exists());

    let restore = ["restore", "--backup", &backup, "--data", &again];
    let restored = Program::run(BINARY, &restore, &BTreeMap::new()).await;
    assert!(restored.status.success(), "{}", restored.stderr);
    let machine = Machine::start(&again, &[]).await;
    assert_eq!(machine.find_from(&public, "203.0.113.9", "kept").await.expect_ok().body, seat);
    let other = machine.find_from(&public, "203.0.113.9", "later").await.expect_ok().body;
    assert_ne!(other["player"], later["player"], "that was after the backup");
    machine.stop().await;
}

#[tokio::test]
async fn data_of_a_later_release_or_a_moved_game_is_refused_and_stays_as_it_is() {
    let folder = TestFolder::new();
    let data = folder.path("data");
    Machine::with_game(&folder, &[]).await.stop().await;
    let database = Connection::open(folder.path("data/muster.db")).unwrap();
    database.pragma_update(None, "user_version", 2).unwrap();
    drop(database);
    let line = refused(&["serve", "--data", &data]).await;
    for part in ["has the form 2", "knows those up to 1", "install the release that wrote it"] {
        assert!(line.contains(part), "{line}");
    }
    let backup = refusal(&["backup", "--data", &data, "--to", &folder.path("backup")]).await;
    assert!(backup.contains("has the form 2 of a later release"), "{backup}");
    let database = Connection::open(folder.path("data/muster.db")).unwrap();
    assert_eq!(database.query_row("PRAGMA user_version", [], |row| row.get::<_, u32>(0)).unwrap(), 2);
    database.pragma_update(None, "user_version", 1).unwrap();
    drop(database);

    fs::write(folder.path("data/moved"), "muster-prod").unwrap();
    let line = refused(&["serve", "--data", &data]).await;
    assert!(line.contains("was moved to muster-prod") && line.contains("delete "), "{line}");
    fs::remove_file(folder.path("data/moved")).unwrap();
    Machine::start(&data, &[]).await.stop().await;
}

#[tokio::test]
async fn what_cannot_be_served_is_named() {
    let folder = TestFolder::new();
    let data = folder.path("data");
    for (arguments, part) in [
        (&["--proxy", "proxy.example"][..], "name a proxy by its address"),
        (&["--status", "3001"], "an address with a port"),
        (&["--drain", "5"], "0..=4"),
    ] {
        let all = [&["serve", "--data", &data], arguments].concat();
        let ended = Program::run(BINARY, &all, &BTreeMap::new()).await;
        assert!(!ended.status.success() && ended.stderr.contains(part), "{}", ended.stderr);
    }
    let not_served = Program::run("muster", &["game", "list", "--data", &data], &BTreeMap::new()).await;
    let message = not_served.stderr;
    assert!(message.contains("nothing serves") && message.contains("muster-local serve --data"), "{message}");
    let machine = Machine::start(&data, &[]).await;
    let second = refused(&["serve", "--data", &data]).await;
    assert!(second.contains("in use by another running stack"), "{second}");
    // The folder's door is still the first one's.
    assert_eq!(machine.ask(&["game", "list"]).await.lines().count(), 1);
    machine.stop().await;
}
