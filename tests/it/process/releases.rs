//! A release beside a later one: items as that leaves them, which this one reads, changes and keeps.

use std::collections::HashMap;

use aws_sdk_dynamodb::{Client as DynamoDb, types::AttributeValue};
use harness::instance::patient_client;

use super::*;

/// What the later release has in each record that this one knows.
const LATER: &str = "a_later_field";
/// Maps whose keys are given names, not fields.
const MAPS_BY_NAME: [&str; 12] = [
    "connected",
    "domains",
    "game_modes",
    "headers",
    "not_before",
    "obstacles",
    "ports",
    "regions",
    "reserved",
    "secrets",
    "tags",
    "users",
];

type Fields = HashMap<String, AttributeValue>;

/// The stack's tables, as another release would reach them.
struct Tables {
    client: DynamoDb,
    names: Vec<String>,
}

impl Tables {
    async fn of(local: &Local) -> Self {
        let store = get(&format!("{}/_local/store", local.base_url)).await.expect_ok().body;
        let names =
            store["tables"].as_object().unwrap().values().map(|name| name.as_str().unwrap().to_owned());
        Self { client: patient_client(store["endpoint"].as_str().unwrap()), names: names.collect() }
    }

    /// Every item by its table and key.
    async fn items(&self) -> BTreeMap<String, Fields> {
        let mut items = BTreeMap::new();
        for table in &self.names {
            let scan = self.client.scan().table_name(table).into_paginator().items().send();
            for item in scan.collect::<Result<Vec<_>, _>>().await.unwrap() {
                let key: &[&str] = match table.as_str() {
                    "SecretsTable" => &["version_id"],
                    "LobbiesTable" | "LobbyDataTable" => &["lobby_id", "part"],
                    "ServersTable" => &["server"],
                    "TokensTable" => &["digest"],
                    _ => &["pk", "sk"],
                };
                let key = key.iter().filter_map(|name| item.get(*name)?.as_s().ok().cloned());
                items.insert(format!("{table} {}", key.collect::<Vec<_>>().join(" ")), item);
            }
        }
        items
    }

    /// Has each item be one of a later release, with a field more in each record of it.
    async fn move_on(&self) {
        for (key, mut item) in self.items().await {
            extend("", &mut item);
            let table = key.split(' ').next().unwrap();
            self.client.put_item().table_name(table).set_item(Some(item)).send().await.unwrap();
        }
    }
}

fn extend(name: &str, fields: &mut Fields) {
    for (name, value) in fields.iter_mut() {
        if let AttributeValue::M(fields) = value {
            extend(name, fields);
        }
    }
    if !MAPS_BY_NAME.contains(&name) {
        let unknown = HashMap::from([("a".to_owned(), AttributeValue::L(vec![AttributeValue::Bool(true)]))]);
        fields.insert(LATER.to_owned(), AttributeValue::M(unknown));
    }
}

/// Where a record that is still there lost what the later release had in it.
fn lost(path: &str, before: &Fields, after: &Fields) -> Vec<String> {
    let own = (before.contains_key(LATER) && !after.contains_key(LATER)).then(|| path.to_owned());
    let nested = before.iter().filter_map(|(name, before)| {
        let (before, after) = (before.as_m().ok()?, after.get(name)?.as_m().ok()?);
        Some(lost(&format!("{path}/{name}"), before, after))
    });
    own.into_iter().chain(nested.flatten()).collect()
}

const MODES: &str = r#"{
    "game_modes": { "arena": {
        "regions": ["fra"], "max_players": 8, "taggable": true, "actions": { "create": { "enabled": true } } } }
}"#;
const SCREENED: &str = r#"{
    "game_modes": { "arena": { "regions": ["fra"], "actions": { "find": { "enabled": true, "verification": {
        "url": "https://verify.example/", "headers": { "authorization": "made-up" } } } } } },
    "captcha": { "requests_before_reverify": 1, "verification_ttl": 1000,
        "turnstile": { "site_key": "site", "secret_key": "made-up" } }
}"#;

/// A game as its players, its game server and its operator see it.
struct Scene {
    game_id: String,
    namespace_id: String,
    cloud: String,
    public: String,
    server: String,
}

impl Scene {
    async fn ask(&self, local: &Local, method: Method, path: &str, token: &str, body: Value) -> Value {
        let request = Request::builder().method(method.clone()).uri(format!("{}{path}", local.base_url));
        let request = request.header("authorization", format!("Bearer {token}"));
        let request =
            if path.ends_with("/find") { request.header("idempotency-key", "once") } else { request };
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let answer = send(request, &body).await;
        assert_eq!(answer.status.as_u16(), 200, "{method} {path}: {}", answer.body);
        answer.body
    }

    async fn post(&self, local: &Local, path: &str, token: &str, body: Value) -> Value {
        self.ask(local, Method::POST, path, token, body).await
    }

    async fn register(&self, local: &Local) -> Value {
        let port = json!({ "hostname": "a.example", "port": 7_777, "protocol": "udp" });
        let body = json!({ "region_id": "fra", "server_id": "one", "capacity": 9, "lease_seconds": 60, "ports": { "game": port },
                           "game_modes": ["arena"] });
        self.post(local, "/matchmaker/servers/register", &self.server, body).await
    }

    async fn heartbeat(&self, local: &Local) -> Value {
        self.post(local, "/matchmaker/servers/heartbeat", &self.server, json!({ "server_id": "one" })).await
    }

    /// Every cloud operation that changes something, as often as one likes.
    async fn manage(&self, local: &Local) {
        let namespace = format!("/cloud/games/{}/namespaces/{}", self.game_id, self.namespace_id);
        let hash = "$2b$12$abcdefghijklmnopqrstuuEAJ1yNzWnDAyYTKPFsUeT.FYYrSS4Xu";
        for (method, path, body) in [
            (Method::PUT, "cdn-auth", json!({ "auth_type": "basic" })),
            (Method::POST, "auth-user", json!({ "user": "ada", "password": hash })),
            (Method::POST, "domains", json!({ "domain": "play.example" })),
            (Method::PUT, "domain-public-auth", json!({ "enabled": true })),
            (Method::POST, "mm-config", json!({ "lobby_count_max": 9, "max_players": 8 })),
        ] {
            self.ask(local, method, &format!("{namespace}/{path}"), &self.cloud, body).await;
        }
    }
}

/// Commands that read or change records that the later release wrote.
const COMMANDS: [&[&str]; 12] = [
    &["namespace", "list", "mine"],
    &["version", "list", "mine"],
    &["version", "show", "mine", "2"],
    &["version", "set", "mine/prod", "2"],
    &["version", "history", "mine/prod"],
    &["token", "list", "mine"],
    &["token", "revoke-all", "mine/prod", "public", "--yes"],
    &["token", "revoke-all", "mine/prod", "development", "--yes"],
    &["lobby", "list", "mine/prod"],
    &["server", "list", "mine/prod"],
    &["domain", "list", "mine/prod"],
    &["doctor"],
];

fn lobby_token(lobbies: &Value, lobby_id: &str) -> String {
    let lobbies = lobbies["lobbies"].as_array().unwrap();
    let found = lobbies.iter().find(|lobby| lobby["lobby_id"] == lobby_id).unwrap();
    found["lobby_token"].as_str().unwrap().to_owned()
}

impl Scene {
    /// A second player comes and goes, the lobby closes, reopens and has another state.
    async fn play_on(&self, local: &Local, lobby_id: &str, second: &Value) {
        let host = lobby_token(&self.heartbeat(local).await, lobby_id);
        let player = json!({ "player_token": second["player"]["token"] });
        self.post(local, "/matchmaker/players/connected", &host, player.clone()).await;
        self.post(local, "/matchmaker/players/disconnected", &host, player).await;
        for (path, body) in [
            ("closed", json!({ "is_closed": true })),
            ("closed", json!({ "is_closed": false })),
            ("state", json!({ "score": 2 })),
        ] {
            self.ask(local, Method::PUT, &format!("/matchmaker/lobbies/{path}"), &host, body).await;
        }
        let path = format!("/matchmaker/lobbies/{lobby_id}/state");
        let state = self.ask(local, Method::GET, &path, &self.public, Value::Null).await;
        assert_eq!(state, json!({ "score": 2 }));
    }

    /// Everything that can be read.
    async fn read(&self, local: &Local) {
        for path in ["lobbies/list", "regions", "players/statistics"] {
            self.ask(local, Method::GET, &format!("/matchmaker/{path}"), &self.public, Value::Null).await;
        }
        let game = format!("/cloud/games/{}", self.game_id);
        let namespace = format!("{game}/namespaces/{}", self.namespace_id);
        for path in [game.clone(), namespace.clone(), format!("{namespace}/version-history")] {
            self.ask(local, Method::GET, &path, &self.cloud, Value::Null).await;
        }
    }
}

#[tokio::test]
async fn what_a_later_release_stored_is_worked_with_and_kept() {
    let folder = TestFolder::new();
    let file = |name: &str, text: &str| {
        let path = folder.path(name);
        fs::write(&path, text).unwrap();
        path
    };
    let (data, modes, screened) =
        (folder.path("data"), file("modes.json", MODES), file("screened.json", SCREENED));

    // One of each record.
    let local = Local::start_in(&data).await;
    let create =
        ["game", "create", "mine", "--region", "fra=Frankfurt@50.1,8.7", "--config", &modes, "--json"];
    let made: Value = serde_json::from_str(&local.ask(&create).await).unwrap();
    let scene = Scene {
        game_id: made["game_id"].as_str().unwrap().to_owned(),
        namespace_id: made["namespaces"]["prod"].as_str().unwrap().to_owned(),
        cloud: made["cloud_token"].as_str().unwrap().to_owned(),
        public: local.ask(&["token", "create", "public", "mine/prod"]).await,
        server: local.ask(&["token", "create", "server", "mine/prod"]).await,
    };
    local.ask(&["version", "create", "mine", &screened]).await;
    local.ask(&["token", "revoke-all", "mine/prod", "development", "--yes"]).await;
    scene.manage(&local).await;
    scene.register(&local).await;
    let criteria = json!({ "game_modes": ["arena"], "tags": { "map": "dust" } });
    let (seat, join) = {
        let seat = scene.post(&local, "/matchmaker/lobbies/find", &scene.public, criteria.clone()).await;
        let join = json!({ "lobby_id": seat["lobby"]["lobby_id"] });
        (seat, join)
    };
    let own =
        json!({ "game_mode": "arena", "region": "fra", "publicity": "public", "lobby_config": { "map": 1 } });
    scene.post(&local, "/matchmaker/lobbies/create", &scene.public, own.clone()).await;
    let lobby_id = seat["lobby"]["lobby_id"].as_str().unwrap().to_owned();
    let lobbies = scene.heartbeat(&local).await;
    let host = lobby_token(&lobbies, &lobby_id);
    let ready = "/matchmaker/lobbies/ready";
    let connected = "/matchmaker/players/connected";
    let player = json!({ "player_token": seat["player"]["token"] });
    scene.post(&local, ready, &host, Value::Null).await;
    scene.ask(&local, Method::PUT, "/matchmaker/lobbies/state", &host, json!({ "score": 1 })).await;
    scene.post(&local, connected, &host, player).await;
    scene.ask(&local, Method::GET, "/matchmaker/players/statistics", &scene.public, Value::Null).await;

    // The later release comes, and this one again, whose instances know nothing.
    let tables = Tables::of(&local).await;
    tables.move_on().await;
    let before = tables.items().await;
    local.interrupt().await;
    let local = Local::start_in(&data).await;

    let replayed = scene.post(&local, "/matchmaker/lobbies/find", &scene.public, criteria).await;
    assert_eq!(replayed, seat, "byte for byte");
    let second = scene.post(&local, "/matchmaker/lobbies/join", &scene.public, join).await;
    assert_eq!(second["lobby"]["lobby_id"], lobby_id.as_str());
    scene.play_on(&local, &lobby_id, &second).await;
    scene.post(&local, "/matchmaker/lobbies/create", &scene.public, own).await;
    scene.manage(&local).await;
    scene.read(&local).await;
    scene.register(&local).await;

    // Nor is the command at a loss.
    for arguments in COMMANDS {
        local.ask(arguments).await;
    }
    let exported: Value = serde_json::from_str(&local.ask(&["game", "export", "mine"]).await).unwrap();
    let mode = &exported["versions"][0]["config"]["game_modes"]["arena"];
    assert!(mode[LATER].is_object() && mode["actions"]["create"][LATER].is_object(), "{exported}");
    let import = file("mine.json", &exported.to_string());
    let refused = Program::run(
        "muster",
        &["game", "import", &import, "--name", "again", &local.option],
        &BTreeMap::new(),
    )
    .await;
    assert!(!refused.status.success());
    let reason = format!("versions/0/config/{LATER}: there is no such field");
    assert!(refused.stderr.contains(&reason), "{}", refused.stderr);

    let tables = Tables::of(&local).await;
    let after = tables.items().await;
    let deleted: Vec<_> = before.keys().filter(|key| !after.contains_key(*key)).collect();
    assert!(deleted.is_empty(), "{deleted:?}");
    let mut gone: Vec<_> = before.iter().flat_map(|(key, before)| lost(key, before, &after[key])).collect();
    // The ports of a registration are those that it gave.
    gone.retain(|path| !path.ends_with("/ports/game"));
    assert_eq!(gone, Vec::<String>::new());
    local.interrupt().await;
}
