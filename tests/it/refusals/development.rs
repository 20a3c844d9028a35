//! Mock answers for development tokens.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use harness::{Answer, TestStack};
use http::Method;
use hyper::body::Bytes;
use serde_json::{Value, json};
use shared::{
    auth::keys::TokenKeys,
    models::{
        ports::{PortNumbers, PortRange, Protocol, ServerPort},
        token::{Claims, Credential, DevelopmentHost},
    },
    store::client::TableNames,
};

use super::{
    operation::Operation,
    scene::{Scene, development_host, player_token},
};

/// A development token for `play.test` whose ports are on other hosts.
fn token(stack: &TestStack, ports: &[(&str, PortNumbers, Protocol)]) -> String {
    let ports: BTreeMap<_, _> = ports
        .iter()
        .map(|&(label, numbers, protocol)| {
            let hostname = "overridden.test".to_owned();
            let port = ServerPort { hostname, numbers, protocol };
            (label.to_owned(), port)
        })
        .collect();
    let host = DevelopmentHost { hostname: "play.test".to_owned(), ports: ports.try_into().unwrap() };
    let demo = stack.demo();
    let (keys, ambient) = (stack.stack.keys(), stack.ambient());
    keys.issue_development(&Credential::fresh(&demo.game_id, &demo.namespace_id, &ambient), host)
}

const RANGE: PortNumbers = PortNumbers::PortRange(PortRange { min: 26_000, max: 26_007 });

#[tokio::test]
async fn a_developer_gets_a_lobby_on_the_own_machine() {
    let stack = TestStack::start().await;
    for (ports, expected) in [
        (
            vec![
                ("game", RANGE, Protocol::Udp),
                ("web", PortNumbers::Port(8_080), Protocol::Http),
                ("raw", PortNumbers::Port(9_000), Protocol::Tcp),
            ],
            json!({
                "game": { "host": null, "hostname": "play.test", "port": null,
                          "port_range": { "min": 26_000, "max": 26_007 }, "is_tls": false },
                "web": { "host": "play.test:8080", "hostname": "play.test", "port": 8_080,
                         "port_range": null, "is_tls": false },
                "raw": { "host": "play.test:9000", "hostname": "play.test", "port": 9_000,
                         "port_range": null, "is_tls": false },
            }),
        ),
        (
            vec![
                ("web", PortNumbers::Port(443), Protocol::Https),
                ("raw", PortNumbers::Port(444), Protocol::TcpTls),
            ],
            json!({
                "web": { "host": "play.test:443", "hostname": "play.test", "port": 443,
                         "port_range": null, "is_tls": true },
                "raw": { "host": "play.test:444", "hostname": "play.test", "port": 444,
                         "port_range": null, "is_tls": true },
            }),
        ),
    ] {
        let answer =
            stack.find_with(&token(&stack, &ports), json!({ "game_modes": ["arena"] })).await.expect_ok();
        let player = answer.body["player"].clone();
        assert_eq!(
            answer.body,
            json!({
                "lobby": {
                    "lobby_id": "00000000-0000-0000-0000-000000000000",
                    "region": { "region_id": "dev-lcl", "display_name": "Local" },
                    "ports": expected,
                    "player": player,
                },
                "ports": expected,
                "player": { "token": player["token"] },
            })
        );
    }
}

#[tokio::test]
async fn each_mock_player_is_another_one_and_only_a_mock() {
    let stack = TestStack::start().await;
    let development = &stack.demo().tokens.development;
    let mut players = BTreeSet::new();
    for _ in 0..20 {
        let answer = stack.find_with(development, json!({})).await.expect_ok();
        let player = player_token(&answer);
        let claims = stack.stack.keys().verify(&player, stack.clock.now());
        assert!(matches!(claims, Ok(Claims::DevelopmentPlayer(_))), "{claims:?}");
        assert!(players.insert(player), "a player came twice");
    }
}

#[tokio::test]
async fn a_mock_player_has_the_data_that_a_real_one_would_have() {
    let stack = TestStack::start().await;
    let development = &stack.demo().tokens.development;
    let text = r#"{ "name": "Ada", "level": 1.50 }"#;
    let too_large = format!(r#""{}""#, "x".repeat(511));
    for (data, answered) in
        [(text, format!(r#","player_data":{text}}}"#)), (&*too_large, "\"generation\":0}".to_owned())]
    {
        for operation in ["find", "join", "create"] {
            let path = format!("/matchmaker/lobbies/{operation}");
            let body = format!(r#"{{"player_data":{data}}}"#);
            let seat = stack.call(Method::POST, &path, Some(development), body).await.expect_ok();
            let body = json!({ "player_token": player_token(&seat), "details": true }).to_string();
            let path = "/matchmaker/players/connected";
            let connected = stack.call(Method::POST, path, Some(development), body).await.expect_ok();
            assert!(connected.text.ends_with(&answered), "{operation}: {}", connected.text);
            assert!(connected.body["player_id"].is_string(), "{operation}");
        }
    }
}

/// Everything that every table holds.
async fn tables(stack: &TestStack) -> BTreeSet<String> {
    let TableNames { catalog, tokens, lobbies, lobby_data, servers, ledger, clients, secrets } =
        stack.store().tables();
    let mut items = BTreeSet::new();
    for table in [catalog, tokens, lobbies, lobby_data, servers, ledger, clients, secrets] {
        let scan = stack.store().client().scan().table_name(table).consistent_read(true);
        let found = scan.into_paginator().items().send().collect::<Result<Vec<_>, _>>().await.unwrap();
        items.extend(found.into_iter().map(|item| {
            let item: Value = serde_dynamo::from_item(item).unwrap();
            format!("{table}: {item}")
        }));
    }
    items
}

/// An operation with a developer's token.
async fn mock(scene: &Scene<'_>, operation: &Operation, body: impl Into<Bytes>) -> Answer {
    operation.call_with_body(scene, Some(&scene.tokens.development), body).await
}

/// Operations that take any JSON of a developer.
fn lenient() -> impl Iterator<Item = &'static Operation> {
    Operation::reading()
        .filter(|operation| operation.takes("development") && !operation.path.contains("/players/"))
}

/// Operations on a player, whom a developer's lobby server shows.
fn of_players() -> [&'static Operation; 2] {
    ["/players/connected", "/players/disconnected"].map(Operation::at)
}

#[tokio::test]
async fn each_matchmaker_operation_has_its_mock() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    let nothing = json!({});
    let Ok(Claims::DevelopmentPlayer(player)) =
        stack.stack.keys().verify(&scene.mock_player, stack.clock.now())
    else {
        panic!("no mock player");
    };
    let mut mocks = BTreeMap::from([
        ("/matchmaker/players/connected", json!(player.details())),
        ("/matchmaker/lobbies/list", json!({ "game_modes": [], "regions": [], "lobbies": [] })),
        ("/matchmaker/lobbies/{lobby_id}/state", nothing.clone()),
        ("/matchmaker/players/statistics", json!({ "player_count": 0, "game_modes": {} })),
        ("/matchmaker/regions", json!({ "regions": [] })),
        (
            "/matchmaker/servers/register",
            json!({ "server_id": "00000000-0000-0000-0000-000000000000", "lease_expires_at": null }),
        ),
        ("/matchmaker/servers/heartbeat", json!({ "lobbies": [] })),
    ]);
    for operation in Operation::taking("development") {
        let answer = operation.call(&scene, Some(&scene.tokens.development)).await;
        assert_eq!(answer.status, 200, "{operation}: {}", answer.body);
        if operation.reads_body_first() {
            assert_eq!(answer.lobby_id(), "00000000-0000-0000-0000-000000000000", "{operation}");
            let code = answer.body["lobby"].get("code").is_some();
            assert_eq!(code, operation.path.ends_with("/create"), "{operation}");
            let claims = stack.stack.keys().verify(&player_token(&answer), stack.clock.now());
            assert!(matches!(claims, Ok(Claims::DevelopmentPlayer(_))), "{operation}");
        } else {
            let mock = mocks.remove(operation.path).unwrap_or(nothing.clone());
            assert_eq!(answer.body, mock, "{operation}");
        }
    }
    assert!(mocks.is_empty(), "no operations: {mocks:?}");
}

#[tokio::test]
async fn the_mocks_of_find_join_and_create_are_the_same_but_for_the_player_and_the_code() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    let mut answers = BTreeSet::new();
    for operation in ["/lobbies/find", "/lobbies/join", "/lobbies/create"].map(Operation::at) {
        let answer = mock(&scene, operation, "").await.expect_ok();
        let mock = answer.body.to_string().replace(&player_token(&answer), "player");
        answers.insert(mock.replace(r#""code":"DEVDEV","#, ""));
    }
    assert_eq!(answers.len(), 1, "{answers:?}");
}

#[tokio::test]
async fn nothing_that_a_developer_requests_is_written() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    let seen = json!({
        "game_modes": ["arena"], "game_mode": "arena", "region": "fra", "publicity": "public",
        "lobby_id": scene.lobby_id, "is_closed": true, "player_token": scene.mock_player,
        "server_id": scene.server_id, "region_id": "fra", "capacity": 9, "lease_seconds": 9,
        "ports": { "web": { "hostname": "a.example", "port": 80, "protocol": "http" } },
    });
    let before = tables(&stack).await;
    assert!(before.iter().any(|item| item.contains(&scene.lobby_id)), "the scene is in the tables");
    for operation in Operation::taking("development") {
        let answer = mock(&scene, operation, seen.to_string()).await;
        assert_eq!(answer.status, 200, "{operation}: {}", answer.body);
        for body in [json!({}), json!([1]), json!({ "player_token": scene.player })] {
            let _mock_or_refusal = mock(&scene, operation, body.to_string()).await;
        }
        assert_eq!(tables(&stack).await, before, "{operation}");
    }
}

#[tokio::test]
async fn a_developers_body_need_only_be_json() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    let any: [Value; 12] = [
        json!({}),
        json!({ "game_modes": [] }),
        json!([]),
        json!("text"),
        json!(null),
        json!({ "game_modes": "arena" }),
        json!({ "game_modes": ["chess"], "regions": ["mars"], "max_players": 0 }),
        json!({ "game_modes": null, "captcha": [], "verification_data": 1 }),
        json!({ "max_players": -1, "tags": 7, "regions": {} }),
        json!({ "prevent_auto_create_lobby": true, "game_modes": ["arena"] }),
        json!({ "lobby_id": 1, "server_id": "no such", "cursor": "no such", "is_closed": "no" }),
        json!({ "game_mode": 1, "publicity": "secret", "region_id": "mars", "ports": [], "capacity": 0 }),
    ];
    for operation in lenient() {
        for body in &any {
            let answer = mock(&scene, operation, body.to_string()).await;
            assert_eq!(answer.status, 200, "{operation} {body}: {}", answer.body);
        }
        assert_eq!(mock(&scene, operation, "").await.status, 200, "{operation}: empty is {{}}");
        for broken in ["{", "{}}", "{'a': 1}", "\u{feff}{}", r#"{"a": }"#] {
            let answer = mock(&scene, operation, broken).await;
            assert_eq!(answer.refusal(), (400, "API_BAD_BODY"), "{operation} {broken}");
        }
        let oversized = format!("{{{}}}", " ".repeat(64 * 1024));
        let answer = mock(&scene, operation, oversized).await;
        assert_eq!(answer.refusal(), (413, "API_BODY_TOO_LARGE"), "{operation}");
    }
}

#[tokio::test]
async fn a_developers_lobby_server_can_check_a_player_of_a_mock() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    let found = stack.find_with(&scene.tokens.development, json!({})).await.expect_ok();
    let mock_player = player_token(&found);
    let ambient = stack.ambient();
    let forged = TokenKeys::new(&[7; 32], None).unwrap();
    let forged = forged
        .issue_development_player(&harness::mock_player(development_host(), None, &ambient), ambient.now());
    let bad_body = (400, "API_BAD_BODY");
    for operation in of_players() {
        for shown in [&mock_player, &scene.mock_player, &mock_player] {
            let answer = mock(&scene, operation, json!({ "player_token": shown }).to_string()).await;
            assert_eq!((answer.status.as_u16(), &answer.body), (200, &json!({})), "{operation}");
        }
        for shown in [
            scene.player.as_str(),
            &forged,
            &mock_player[..mock_player.len() - 1],
            mock_player.trim_start_matches("dev_"),
            &scene.tokens.development,
            &scene.tokens.public,
            &scene.tokens.server,
            &scene.tokens.lobby,
            &scene.tokens.cloud,
            "player",
            "",
        ] {
            let answer = mock(&scene, operation, json!({ "player_token": shown }).to_string()).await;
            assert_eq!(answer.refusal(), (400, "TOKEN_INVALID"), "{operation}: {}", answer.body);
        }
        for body in ["{}", "[]", "", r#"{"player_token": null}"#, r#"{"player_token": 1}"#] {
            assert_eq!(mock(&scene, operation, body).await.refusal(), bad_body, "{operation} {body}");
        }
    }
    stack.clock.advance(Duration::from_secs(9 * 3_600));
    for operation in of_players() {
        let answer = mock(&scene, operation, json!({ "player_token": mock_player }).to_string()).await;
        assert_eq!(answer.refusal(), (400, "TOKEN_INVALID"), "{operation}: after nine hours");
    }
}
