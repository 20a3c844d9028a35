//! `muster move`: a served game goes to another deployment while players play, and every token with it.

use std::{
    os::unix::fs::PermissionsExt as _,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use serve::Machine;
use tokio::task::JoinSet;
use wiremock::{Mock, MockServer, Request as ReceivedRequest, ResponseTemplate, matchers::any};

use super::*;

/// Players who find without pause during the move.
const PLAYERS: u8 = 6;
/// The seats of each before it and in all; then the last find is repeated. Even if each is in a lobby of its
/// own, the server has a place for it, so that none makes room for another however long the move takes.
const SEATS: [usize; 2] = [12, 16];
pub(super) const CLUSTER: &str = "arn:aws:ecs:eu-central-1:123456789012:cluster/games";
const CONNECTED: &str = "/matchmaker/players/connected";
const DISCONNECTED: &str = "/matchmaker/players/disconnected";

/// Starts a machine without a game that has the signing key of `from`, and moves `from` there.
async fn with_key_of(from: &Machine, data: &str) -> Machine {
    fs::create_dir(data).unwrap();
    fs::set_permissions(data, fs::Permissions::from_mode(0o700)).unwrap();
    fs::copy(format!("{}/signing-key", from.data), format!("{data}/signing-key")).unwrap();
    Machine::start(data, &["--proxy", "127.0.0.1"]).await
}

async fn move_to(from: &Machine, to: &Machine, more: &[&str]) -> Ended {
    let arguments = [&["move", &from.data, "--data", &to.data, "--json"], more].concat();
    Program::run("muster", &arguments, &BTreeMap::new()).await
}

/// The token of a lobby, by a heartbeat of its game server.
async fn lobby_token(machine: &Machine, server: &str, lobby_id: &Value) -> String {
    let beat = json!({ "server_id": "one" });
    let beat = machine.post("/matchmaker/servers/heartbeat", server, beat).await.expect_ok().body;
    let lobbies = beat["lobbies"].as_array().unwrap();
    let lobby = lobbies.iter().find(|lobby| lobby["lobby_id"] == *lobby_id).expect("the lobby lives");
    lobby["lobby_token"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn all_four_tokens_and_every_seat_are_good_after_a_move_under_load() {
    let folder = TestFolder::new();
    let mut from = Machine::with_game(&folder, &["--proxy", "127.0.0.1"]).await;
    let [cloud, public, server] =
        [from.token("cloud").await, from.token("public").await, from.token("server").await];
    from.register(&server, true).await;
    // A match of two: one is connected, one still on the way.
    let [playing, coming] = [
        from.find_from(&public, "203.0.113.1", "a").await.expect_ok().body,
        from.find_from(&public, "203.0.113.2", "b").await.expect_ok().body,
    ];
    let lobby_id = &playing["lobby"]["lobby_id"];
    assert_eq!(coming["lobby"]["lobby_id"], *lobby_id);
    let player = |seat: &Value| json!({ "player_token": seat["player"]["token"] });
    let token = lobby_token(&from, &server, lobby_id).await;
    from.post(CONNECTED, &token, player(&playing)).await.expect_ok();

    // Whoever is refused goes on, as clients do, at the address that DNS gives by then.
    let to = with_key_of(&from, &folder.path("other")).await;
    let (is_moved, is_over) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let mut players = JoinSet::new();
    for number in 0..PLAYERS {
        let (is_moved, is_over, public) = (Arc::clone(&is_moved), Arc::clone(&is_over), public.clone());
        let urls = [from.base_url.clone(), to.base_url.clone()];
        players.spawn(async move {
            let mut seats = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                let at = usize::from(is_moved.load(Ordering::Relaxed));
                let (url, key) = (&urls[at], seats.len().min(SEATS[at] - 1));
                let request = Request::post(format!("{url}/matchmaker/lobbies/find"))
                    .header("authorization", format!("Bearer {public}"))
                    .header("idempotency-key", format!("{number}-{key}"))
                    .header("x-forwarded-for", format!("198.51.{number}.{key}"));
                let found = send(request, r#"{ "game_modes": ["duel"] }"#).await;
                if found.status == 200 {
                    match seats.get(key) {
                        Some(seat) => assert_eq!(found.body, *seat, "it was repeated"),
                        None => seats.push(found.body),
                    }
                } else {
                    assert_eq!(found.status, 503, "{}", found.body);
                    assert!(found.headers.contains_key("retry-after"), "{}", found.body);
                    tokio::task::yield_now().await;
                }
            }
            seats
        });
    }
    // Some are there before it begins.
    while from.metric("muster_requests_total{operation=\"find-lobby\",status=\"200\"}").await < 20 {}
    let moved = move_to(&from, &to, &["--yes"]).await;
    assert!(moved.status.success(), "{}", moved.stderr);
    is_moved.store(true, Ordering::Relaxed);
    let report: Value = serde_json::from_str(&moved.stdout).unwrap();
    assert_eq!(report["games"], json!(["my-game"]));
    while to.metric("muster_requests_total{operation=\"find-lobby\",status=\"200\"}").await < 6 {}
    is_over.store(true, Ordering::Relaxed);
    let seats: Vec<Value> = players.join_all().await.into_iter().flatten().collect();
    println!("{} seats were answered around a pause of {} s", seats.len(), report["pause_seconds"]);

    // The lobby token, the player's and the server's.
    to.post(DISCONNECTED, &token, player(&playing)).await.expect_ok();
    to.post(CONNECTED, &token, player(&coming)).await.expect_ok();
    for seat in &seats {
        let token = lobby_token(&to, &server, &seat["lobby"]["lobby_id"]).await;
        to.post(CONNECTED, &token, player(seat)).await.expect_ok();
    }
    // The public one, with a key of before; then the cloud token.
    assert_eq!(to.find_from(&public, "203.0.113.1", "a").await.expect_ok().body, playing);
    let games = format!("{}/cloud/games/{}", to.base_url, report_id(&to).await);
    let game = Request::get(&games).header("authorization", format!("Bearer {cloud}"));
    assert_eq!(send(game, "").await.expect_ok().body["game"]["name_id"], "my-game");
    assert!(to.ask(&["history"]).await.contains("move"));

    // The machine of before takes nobody, and does not begin to.
    let refused = from.find_from(&public, "203.0.113.9", "late").await;
    assert_eq!((refused.status.as_u16(), refused.headers["retry-after"].to_str().unwrap()), (503, "2"));
    assert!(from.page("/health").await.contains("paused"));
    from.program.kill().await;
    let again = ["serve", "--data", &from.data, "--port", "0", "--status", "127.0.0.1:0"];
    let line = refusal(&again).await;
    assert!(line.contains(&format!("was moved to {}", to.data)), "{line}");
    to.stop().await;
}

/// The identifier of the one game.
async fn report_id(machine: &Machine) -> String {
    let listed: Value = serde_json::from_str(&machine.ask(&["game", "list", "--json"]).await).unwrap();
    listed["games"][0]["game_id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_move_that_cannot_be_changes_nothing_and_says_why() {
    let folder = TestFolder::new();
    let from = Machine::with_game(&folder, &[]).await;
    let public = from.token("public").await;
    let refused = async |to: &Machine, more: &[&str], part: &str| {
        let ended = move_to(&from, to, more).await;
        assert!(!ended.status.success() && ended.stderr.contains(part), "{part}: {}", ended.stderr);
        assert!(from.page("/health").await.contains("ok"));
        assert!(!to.ask(&["game", "list", "--json"]).await.contains("my-game"));
    };
    let to = Machine::start(&folder.path("own-key"), &[]).await;
    refused(&to, &["--yes"], "signs with another key").await;
    to.stop().await;
    let to = with_key_of(&from, &folder.path("other")).await;
    refused(&to, &[], "Nothing was done: add --yes").await;
    let config = folder.path("modes.json");
    to.ask(&["game", "create", "foreign", "--region", "fra=Frankfurt@50.1,8.7", "--config", &config]).await;
    refused(&to, &["--yes"], "holds the game foreign, which is not of").await;
    to.stop().await;
    let nothing = ["move", &folder.path("nothing"), "--data", &from.data, "--yes"];
    let ended = Program::run("muster", &nothing, &BTreeMap::new()).await;
    assert!(ended.stderr.contains("nothing serves"), "{}", ended.stderr);
    // Players play on.
    let found = from.find_from(&public, "203.0.113.1", "a").await;
    assert_eq!(found.refusal().1, "MATCHMAKER_NO_SERVER_AVAILABLE");
    from.stop().await;
}

#[tokio::test]
async fn a_game_that_has_moved_is_neither_moved_nor_served_again() {
    let folder = TestFolder::new();
    let proxy = ["--proxy", "127.0.0.1"];
    let from = Machine::with_game(&folder, &proxy).await;
    let (public, server) = (from.token("public").await, from.token("server").await);
    from.register(&server, true).await;
    let to = with_key_of(&from, &folder.path("other")).await;
    assert!(move_to(&from, &to, &["--yes"]).await.status.success());
    let seat = to.find_from(&public, "203.0.113.1", "a").await.expect_ok().body;

    let again = move_to(&from, &to, &["--yes"]).await;
    assert!(again.stderr.contains(&format!("was moved to {}", to.data)), "{}", again.stderr);
    let door: Value = serde_json::from_slice(&fs::read(format!("{}/door.json", from.data)).unwrap()).unwrap();
    for path in ["pause", "resume", "moved"] {
        let order = Request::put(format!("{}/{path}", from.status_url))
            .header("authorization", format!("Bearer {}", door["key"].as_str().unwrap()));
        assert_eq!(send(order, r#"{ "to": "elsewhere" }"#).await.status, 409, "{path}");
    }
    assert!(from.page("/health").await.contains("paused"));
    let token = lobby_token(&to, &server, &seat["lobby"]["lobby_id"]).await;
    to.post(CONNECTED, &token, json!({ "player_token": seat["player"]["token"] })).await.expect_ok();
    to.stop().await;
}

#[tokio::test]
async fn what_was_removed_between_two_attempts_is_not_there_after_the_second() {
    let folder = TestFolder::new();
    let from = Machine::with_game(&folder, &[]).await;
    let domain = |verb| ["domain", verb, "my-game/prod", "play.example.com", "--yes"];
    from.ask(&domain("add")[..4]).await;
    from.ask(&["domain", "public-auth", "my-game/prod", "on"]).await;
    // Of a page of that domain, without a token.
    let regions = async |machine: &Machine| {
        let request = Request::get(format!("{}/matchmaker/regions", machine.base_url));
        send(request.header("origin", "https://play.example.com"), "").await.status.as_u16()
    };
    assert_eq!(regions(&from).await, 200);
    let to = with_key_of(&from, &folder.path("other")).await;
    // The first attempt copies, and then may not pause the machine.
    let door = format!("{}/door.json", from.data);
    let right = fs::read_to_string(&door).unwrap();
    let mut wrong: Value = serde_json::from_str(&right).unwrap();
    wrong["key"] = json!("another");
    fs::write(&door, wrong.to_string()).unwrap();
    let failed = move_to(&from, &to, &["--yes"]).await;
    assert!(failed.stderr.contains("did not pause"), "{}", failed.stderr);
    // A page's request would let the functions know the domain for half a minute.
    assert!(to.ask(&["domain", "list", "my-game/prod"]).await.contains("play.example.com"));
    fs::write(&door, right).unwrap();

    from.ask(&domain("remove")).await;
    let moved = move_to(&from, &to, &["--yes"]).await;
    assert!(moved.status.success(), "{}", moved.stderr);
    assert_eq!(regions(&to).await, 401);
    to.stop().await;
}

/// CloudFormation and Secrets Manager with one stack: its tables are those of a machine, and so is its API,
/// to which its host name does not lead yet, or where there is none something that is not Muster; its secret
/// is `secret`. It may start game servers in [`CLUSTER`].
pub(super) async fn aws(api_url: Option<&str>, secret: &Arc<Mutex<String>>) -> MockServer {
    let (server, secret) = (MockServer::start().await, Arc::clone(secret));
    let api_url = api_url.unwrap_or(&server.uri()).replace("127.0.0.1", "muster.invalid");
    let answer = move |request: &ReceivedRequest| {
        let target = request.headers.get("x-amz-target").and_then(|target| target.to_str().ok());
        let mut secret = secret.lock().unwrap();
        match target {
            None => {
                let tables =
                    ["Catalog", "Tokens", "Lobbies", "LobbyData", "Servers", "Ledger", "Secrets", "Clients"];
                let outputs = tables.map(|table| (format!("{table}TableName"), format!("{table}Table")));
                let others = [
                    ("ApiUrl", api_url.as_str()),
                    ("DomainTarget", "127.0.0.1"),
                    ("SigningKeySecretArn", "arn:aws:secretsmanager:one"),
                ];
                let others = others.map(|(name, value)| (name.to_owned(), value.to_owned()));
                let member = |(name, value)| {
                    format!(
                        "<member><OutputKey>{name}</OutputKey><OutputValue>{value}</OutputValue></member>"
                    )
                };
                let outputs: String = outputs.into_iter().chain(others).map(member).collect();
                ResponseTemplate::new(200).set_body_string(format!(
                    "<DescribeStacksResponse><DescribeStacksResult><Stacks><member><StackName>muster-prod</StackName>\
                     <CreationTime>2026-11-29T00:00:00Z</CreationTime><StackStatus>CREATE_COMPLETE</StackStatus>\
                     <Parameters><member><ParameterKey>EcsClusterArn</ParameterKey>\
                     <ParameterValue>{CLUSTER}</ParameterValue></member></Parameters><Outputs>{outputs}</Outputs></member></Stacks></DescribeStacksResult></DescribeStacksResponse>"
                ))
            }
            Some(target) => {
                if target.ends_with(".PutSecretValue") {
                    let body: Value = serde_json::from_slice(&request.body).unwrap();
                    body["SecretString"].as_str().unwrap().clone_into(&mut secret);
                }
                ResponseTemplate::new(200).set_body_json(json!({ "SecretString": *secret }))
            }
        }
    };
    Mock::given(any()).respond_with(answer).mount(&server).await;
    server
}

/// Moves `from` into the stack whose tables, and whose API if it has one, are those of `to`.
async fn move_to_aws(from: &Machine, to: &Machine, has_api: bool, secret: &Arc<Mutex<String>>) -> Ended {
    let server = aws(has_api.then_some(to.base_url.as_str()), secret).await;
    let arguments = ["move", &from.data, "--stack", "muster-prod", "--yes"];
    Program::run("muster", &arguments, &with_tables_of(to, &server)).await
}

/// The environment of a command with a `--stack` that [`aws`] has and whose tables are those of `to`.
pub(super) fn with_tables_of(to: &Machine, server: &MockServer) -> BTreeMap<String, String> {
    let door: Value = serde_json::from_slice(&fs::read(format!("{}/door.json", to.data)).unwrap()).unwrap();
    let endpoint = door["endpoint"].as_str().unwrap().trim_start_matches("http://");
    // The tables want their key as the access key, of which they check no signature.
    let (key, address) = endpoint.split_once('@').unwrap();
    let environment = [
        ("AWS_ENDPOINT_URL", server.uri()),
        ("AWS_ENDPOINT_URL_DYNAMODB", format!("http://{address}")),
        ("AWS_ACCESS_KEY_ID", key.to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "double".to_owned()),
        ("AWS_REGION", "eu-central-1".to_owned()),
        ("AWS_EC2_METADATA_DISABLED", "true".to_owned()),
    ];
    environment.map(|(name, value)| (name.to_owned(), value)).into()
}

#[tokio::test]
async fn the_key_goes_to_aws_first_and_the_game_once_its_functions_have_it() {
    let folder = TestFolder::new();
    let from = Machine::with_game(&folder, &[]).await;
    let public = from.token("public").await;
    let other = folder.path("other");
    let to = Machine::start(&other, &[]).await;
    let key_of = |data: &str| fs::read_to_string(format!("{data}/signing-key")).unwrap();
    let secret = Arc::new(Mutex::new(key_of(&other)));
    let start = ["region", "start", "my-game", "fra", "--data", &from.data, "--process", "game-server"];
    assert!(Program::run("muster", &start, &BTreeMap::new()).await.status.success());
    let bound = move_to_aws(&from, &to, true, &secret).await;
    assert!(bound.stderr.contains("my-game are processes of this machine"), "{}", bound.stderr);
    assert_eq!(*secret.lock().unwrap(), key_of(&other));
    from.ask(&["region", "stop", "my-game", "fra"]).await;
    // The first run gives the key; a second one before a deployment changes nothing.
    for _ in 0..2 {
        let early = move_to_aws(&from, &to, true, &secret).await;
        assert!(early.stderr.contains("raise MUSTER_REVISION"), "{}", early.stderr);
        assert_eq!(early.status.code(), Some(4));
        assert_eq!(*secret.lock().unwrap(), key_of(&from.data));
        assert_eq!(to.ask(&["game", "list"]).await.lines().count(), 1, "nothing has moved");
        assert!(from.page("/health").await.contains("ok"));
    }
    // A deployment gives the secret to the functions.
    to.stop().await;
    fs::write(format!("{other}/signing-key"), &*secret.lock().unwrap()).unwrap();
    let to = Machine::start(&other, &[]).await;
    let strange = move_to_aws(&from, &to, false, &secret).await;
    assert!(strange.stderr.contains("does not answer as Muster does: 200 OK"), "{}", strange.stderr);
    assert!(from.page("/health").await.contains("ok"));
    let moved = move_to_aws(&from, &to, true, &secret).await;
    assert!(moved.status.success(), "{}", moved.stderr);
    assert!(moved.stdout.starts_with("my-game is in muster-prod now: "), "{}", moved.stdout);
    assert!(moved.stdout.contains("Now lead your host name to 127.0.0.1,"), "{}", moved.stdout);
    assert!(from.page("/health").await.contains("paused"));
    let regions = Request::get(format!("{}/matchmaker/regions", to.base_url))
        .header("authorization", format!("Bearer {public}"));
    assert_eq!(send(regions, "").await.expect_ok().body["regions"][0]["region_id"], "fra");
    to.stop().await;
}
