//! Mock answers for development tokens.

use std::collections::{BTreeMap, BTreeSet};

use muster_tests::TestStack;
use serde_json::{Value, json};
use shared::{
    models::{PortNumbers, PortRange, Protocol, ServerPort},
    tokens::{Claims, DevelopmentHost},
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
    keys.issue_development(&demo.game_id, &demo.namespace_id, host, &ambient)
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
        let player = answer.body["player"]["token"].as_str().unwrap().to_owned();
        assert_eq!(stack.stack.keys().verify(&player, stack.clock.now()), Ok(Claims::DevelopmentPlayer));
        assert!(players.insert(player), "a player came twice");
    }
}

#[tokio::test]
async fn a_mock_reserves_and_creates_nothing() {
    let stack = TestStack::start().await;
    let development = &stack.demo().tokens.development;
    let _mock = stack.find_with(development, json!({ "game_modes": ["arena"] })).await.expect_ok();
    assert!(stack.all_lobbies(&stack.demo().namespace_id).await.is_empty());
}

#[tokio::test]
async fn a_developers_body_need_only_be_json() {
    let stack = TestStack::start().await;
    let development = Some(stack.demo().tokens.development.as_str());
    let find = async |body: String| {
        stack.call(http::Method::POST, "/matchmaker/lobbies/find", development, body).await
    };
    let any: [Value; 10] = [
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
    ];
    for body in any {
        let answer = find(body.to_string()).await;
        assert_eq!(answer.status, 200, "{body}: {}", answer.body);
    }
    assert_eq!(find(String::new()).await.status, 200, "empty is {{}}");
    for broken in ["{", "{}}", "{'a': 1}", "\u{feff}{}", r#"{"a": }"#] {
        assert_eq!(find(broken.to_owned()).await.refusal(), (400, "API_BAD_BODY"), "{broken}");
    }
    assert_eq!(find(format!("{{{}}}", " ".repeat(64 * 1024))).await.refusal(), (413, "API_BODY_TOO_LARGE"));
}
