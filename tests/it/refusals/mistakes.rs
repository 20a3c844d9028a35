//! Mistakes on purpose: what a studio's developer gets wrong in the first days, each with the words that lead
//! to the right request, in the message or in the warnings.

use std::time::Duration;

use harness::{Answer, TestGame, TestStack};
use http::{Method, Request};
use http_body_util::Full;
use serde_json::{Value, json};
use shared::{
    auth::keys::TokenKeys,
    function::operation::WARNING_HEADER,
    models::token::{CloudToken, Credential, CredentialKind},
};

use super::{operation::Operation, scene::Scene};

/// Mistakes, each in two lines: what it is, the operation, the caller's token and the change to the
/// documented body, or a body that is no JSON. Then the answer, and words of its message or its warnings.
const MISTAKES: &str = r#"
find with a server token: /lobbies/find as server {}
403 CLAIMS_MISSING_ENTITLEMENT: this is a server token; the operation needs a public token, from `muster token create public
find with a cloud token: /lobbies/find as cloud {}
403 CLAIMS_MISSING_ENTITLEMENT: this is a cloud token; the operation needs a public token
find with a player's token: /lobbies/find as player {}
403 CLAIMS_MISSING_ENTITLEMENT: this is a player token; the operation needs a public token
register with a public token: /servers/register as public {}
403 CLAIMS_MISSING_ENTITLEMENT: needs a server token
heartbeat with a public token: /servers/heartbeat as public {}
403 CLAIMS_MISSING_ENTITLEMENT: this is a public token; the operation needs a server token, from `muster token create server
connected with a server token: /players/connected as server {}
403 CLAIMS_MISSING_ENTITLEMENT: needs a lobby token; heartbeat
ready with a server token: /lobbies/ready as server {}
403 CLAIMS_MISSING_ENTITLEMENT: this is a server token; the operation needs a lobby token, from the heartbeat of its game server
the game with a lobby token: /games/{game_id} as lobby {}
403 CLAIMS_MISSING_ENTITLEMENT: this is a lobby token; the operation needs a cloud token, from `muster token create cloud GAME`
no token: /lobbies/find as nobody {}
401 API_UNAUTHORIZED: `Authorization: Bearer <token>`
a token that was cut: /lobbies/find as cut {}
401 TOKEN_INVALID: malformed; cut or changed
a token that is none: /lobbies/find as nonsense {}
401 TOKEN_INVALID: malformed
yesterday's token: /lobbies/find as yesterday {}
401 TOKEN_INVALID: signed by another deployment, or with a key that is gone; --data
a cloud token that is none: /games/{game_id} as unknown {}
401 TOKEN_INVALID: no such cloud token
a development token in a find: /lobbies/find as development {}
200 : development token; mock; nothing was checked, matched or stored
a development token in a registration: /servers/register as development {}
200 : development token; mock
a wrong mode: /lobbies/find as public {"game_modes": ["dule"]}
400 MATCHMAKER_GAME_MODE_NOT_FOUND: no game mode `dule`; `arena`, `duel`, `solo`
`game_mode` in a find: /lobbies/find as public {"game_modes": null, "game_mode": "duel"}
400 API_BAD_BODY: missing field `game_modes`; did you mean "game_modes"?
`game_modes` in a create: /lobbies/create as public {"game_mode": null, "game_modes": ["arena"]}
400 API_BAD_BODY: missing field `game_mode`; did you mean "game_mode"?
a mode that is no list: /lobbies/find as public {"game_modes": "duel"}
400 API_BAD_BODY: `game_modes`; a list of texts is needed, not a text
`region` in a find: /lobbies/find as public {"region": "nyc"}
200 : unknown field "region" (did you mean "regions"?)
a comma too many: /lobbies/find as public {"game_modes": ["duel"],}
400 API_BAD_BODY: trailing comma at line 1 column 25
single quotes: /lobbies/find as public {'game_modes': ['duel']}
400 API_BAD_BODY: line 1 column 2
a wrong region in a find: /lobbies/find as public {"regions": ["mars"]}
400 MATCHMAKER_REGION_NOT_FOUND: `mars`; `fra`, `nyc`
create where it is not enabled: /lobbies/create as public {"game_mode": "duel"}
400 MATCHMAKER_CUSTOM_LOBBIES_DISABLED: `duel`; `actions.create.enabled`; version
`closed` for `is_closed`: /lobbies/closed as lobby {"is_closed": null, "closed": true}
400 API_BAD_BODY: missing field `is_closed`; did you mean "is_closed"?
`leaseSeconds`: /servers/register as server {"leaseSeconds": 5}
200 : unknown field "leaseSeconds" (did you mean "lease_seconds"?)
a port as text: /servers/register as server {"ports": {"default": {"port": "7777"}}}
400 API_BAD_BODY: `ports.default.port`; a number from 1 to 65535 is needed, not a text
a negative port: /servers/register as server {"ports": {"default": {"port": -1}}}
400 API_BAD_BODY: a number from 1 to 65535 is needed, not -1
port 0: /servers/register as server {"ports": {"default": {"port": 0}}}
400 MATCHMAKER_INVALID_SERVER: ports/default/port; 1 to 65535
the protocol `ws`: /servers/register as server {"ports": {"default": {"protocol": "ws"}}}
400 API_BAD_BODY: `http`, `https`, `tcp`, `tcp_tls` or `udp`; for ws:// use `http`; for wss:// use `https`
a hostname with a scheme: /servers/register as server {"ports": {"default": {"hostname": "https://a.example"}}}
400 MATCHMAKER_INVALID_SERVER: ports/default/hostname; without scheme, port and path
a hostname with a port: /servers/register as server {"ports": {"default": {"hostname": "a.example:80"}}}
400 MATCHMAKER_INVALID_SERVER: ports/default/hostname; without scheme, port and path
0.0.0.0: /servers/register as server {"ports": {"default": {"hostname": "0.0.0.0"}}}
400 MATCHMAKER_INVALID_SERVER: ports/default/hostname; the address that players connect to
two colons: /servers/register as server {"ports": {"default": {"hostname": "::"}}}
400 MATCHMAKER_INVALID_SERVER: ports/default/hostname; the address that players connect to
an IPv6 address without brackets: /servers/register as server {"ports": {"default": {"hostname": "::1"}}}
200 :
a wrong region: /servers/register as server {"region_id": "fr"}
400 MATCHMAKER_INVALID_SERVER: region_id; `fr` is not one of `fra`, `nyc`
a wrong mode of a server: /servers/register as server {"game_modes": ["dule"]}
400 MATCHMAKER_INVALID_SERVER: game_modes/dule; no version of this game has it; `arena`, `duel`, `solo`
mixed TLS: /servers/register as server {"ports": {"b": {"hostname": "a.example", "port": 80, "protocol": "http"}}}
400 MATCHMAKER_INVALID_SERVER: ports/b/mixed-tls; on all ports or on none; only on `default`
capacity 0: /servers/register as server {"capacity": 0}
400 MATCHMAKER_INVALID_SERVER: capacity; 1 to 1000000
a lease of two days: /servers/register as server {"lease_seconds": 172800}
400 MATCHMAKER_INVALID_SERVER: lease_seconds; 0 to 86400
a misspelt field of a mode: /{game_id}/versions as cloud {"config": {"game_modes": {"arena": {"max_player": 4}}}}
400 API_BAD_BODY: config.game_modes.arena.max_player
a number as text: /{game_id}/versions as cloud {"config": {"game_modes": {"arena": {"max_players": "4"}}}}
400 API_BAD_BODY: `config.game_modes.arena.max_players`; a whole number; not a text
no modes: /{game_id}/versions as cloud {"config": {"game_modes": null}}
400 API_BAD_BODY: missing field `game_modes`
500 players: /{game_id}/versions as cloud {"config": {"game_modes": {"arena": {"max_players": 500}}}}
400 VALIDATION_ERROR: game_modes/arena/max_players; 1 to 256
an unknown region: /{game_id}/versions as cloud {"config": {"game_modes": {"arena": {"regions": ["fr"]}}}}
400 VALIDATION_ERROR: game_modes/arena/regions; `fr` is not one of `fra`, `nyc`
"#;

/// What the answer to a mistake lacks, if anything.
fn unhelpful(answer: &Answer, expected: (u16, &str), says: &[&str]) -> Option<String> {
    let warnings = answer.headers.get(WARNING_HEADER).map(|line| line.to_str().unwrap()).unwrap_or_default();
    let said = format!("{} {warnings}", answer.body["message"].as_str().unwrap_or_default());
    let missing: Vec<_> = says.iter().filter(|words| !said.contains(**words)).collect();
    let is_helpful = answer.refusal() == expected && missing.is_empty();
    (!is_helpful).then(|| format!("{:?} without {missing:?}: {said}", answer.refusal()))
}

/// The change is made to the fields that it names; one that it has as null is taken away.
fn change(body: &mut Value, by: &Value) {
    let (Some(fields), Value::Object(changes)) = (body.as_object_mut(), by) else {
        *body = by.clone();
        return;
    };
    for (name, by) in changes {
        if by.is_null() {
            fields.remove(name);
        } else {
            change(fields.entry(name).or_insert_with(|| json!({})), by);
        }
    }
}

#[tokio::test]
async fn a_mistake_leads_to_the_right_request() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    let elsewhere = TokenKeys::new(&[7; 32], None).unwrap();
    let credential = Credential::fresh(scene.game_id, scene.namespace_id, &stack.ambient());
    let token = |kind: &str| match kind {
        "nobody" => None,
        "nonsense" => Some("nonsense".to_owned()),
        "player" => Some(scene.player.clone()),
        "cut" => Some(scene.tokens.public[..scene.tokens.public.len() - 9].to_owned()),
        "yesterday" => Some(elsewhere.issue_credential(CredentialKind::Public, &credential)),
        "unknown" => Some(CloudToken::random(&stack.ambient()).reveal().to_owned()),
        kind => Some(scene.token(kind).to_owned()),
    };
    let mut found = Vec::new();
    let lines: Vec<_> = MISTAKES.trim().lines().collect();
    for mistake in lines.chunks(2) {
        let (is, request) = mistake[0].split_once(": /").unwrap();
        let (path, request) = request.split_once(" as ").unwrap();
        let (kind, by) = request.split_once(' ').unwrap();
        let operation = Operation::at(&format!("/{path}"));
        let mut body = operation.valid_body(&scene);
        match serde_json::from_str(by) {
            Ok(by) if operation.reads_object() => {
                let mut changed = serde_json::from_str(&body).unwrap();
                change(&mut changed, &by);
                body = changed.to_string();
            }
            Ok(_) => {}
            Err(_) => body = by.to_owned(),
        }
        let answer = operation.call_with_body(&scene, token(kind).as_deref(), body).await;
        let (refusal, says) = mistake[1].split_once(':').unwrap();
        let (status, code) = refusal.split_once(' ').unwrap();
        let says: Vec<_> = says.trim().split("; ").collect();
        let lacks = unhelpful(&answer, (status.parse().unwrap(), code), &says);
        found.extend(lacks.map(|lacks| format!("{is}: {lacks}")));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[tokio::test]
async fn a_token_in_the_query_leads_to_the_header() {
    let stack = TestStack::start().await;
    let path = format!("/matchmaker/lobbies/find?token={}", stack.demo().tokens.public);
    let answer = stack.call(Method::POST, &path, None, json!({ "game_modes": ["duel"] }).to_string()).await;
    let says = &["`Authorization: Bearer <token>`"];
    assert_eq!(unhelpful(&answer, (401, "API_UNAUTHORIZED"), says), None);
}

async fn game(stack: &TestStack) -> TestGame {
    let slow = json!({ "regions": ["fra"], "max_players": 2 });
    stack.make_game("mistaken", json!({ "duel": slow }), 1, 0).await
}

#[tokio::test]
async fn a_wrong_life_of_a_server_leads_to_the_right_one() {
    let stack = TestStack::start().await;
    let game = game(&stack).await;
    let register = |start: &str| {
        json!({ "server_id": "one", "start_id": start, "region_id": "fra", "capacity": 9, "lease_seconds": 600,
                "ports": { "default": { "hostname": "a.example", "port": 1, "protocol": "udp" } } })
    };
    game.serve(&stack, "register", register("first")).await.expect_ok();
    let seat = game.find(&stack, json!({ "game_modes": ["duel"] })).await.expect_ok();
    let other = json!({ "server_id": "one", "start_id": "second" });
    const UNKNOWN: (u16, &str) = (400, "MATCHMAKER_SERVER_NOT_FOUND");
    const OTHER_START: &[&str] = &["registered by another start", "`start_id`", "`server_id`"];
    for (operation, body, says) in [
        ("heartbeat", &other, OTHER_START),
        ("deregister", &other, OTHER_START),
        ("heartbeat", &json!({ "server_id": "two" }), &["there is no such game server"]),
    ] {
        let answer = game.serve(&stack, operation, body.clone()).await;
        assert_eq!(unhelpful(&answer, UNKNOWN, says), None, "{operation} {body}");
    }

    stack.clock.advance(Duration::from_secs(121));
    let late = game.connect(&stack, &seat).await;
    let expired = (400, "MATCHMAKER_PLAYER_REGISTRATION_EXPIRED");
    assert_eq!(unhelpful(&late, expired, &["reservation has lapsed"]), None);

    game.serve(&stack, "register", register("second")).await.expect_ok();
    let first = json!({ "server_id": "one", "start_id": "first" });
    let replaced = game.serve(&stack, "heartbeat", first).await;
    assert_eq!(unhelpful(&replaced, UNKNOWN, OTHER_START), None);
    let late = game.serve(&stack, "register", register("first")).await;
    assert_eq!(unhelpful(&late, (400, "MATCHMAKER_LOBBY_STATE_CONFLICT"), &["a later start"]), None);
}

#[tokio::test]
async fn a_limit_that_is_reached_is_named() {
    let stack = TestStack::start().await;
    let game = game(&stack).await;
    game.add_server(&stack, "one", "fra", 9, shared::base::ambient::Timestamp::NEVER).await;
    let duel = json!({ "game_modes": ["duel"] });
    let seat = game.find(&stack, duel.clone()).await.expect_ok();
    game.find(&stack, duel.clone()).await.expect_ok();
    for (operation, body, code, says) in [
        ("find", duel, "MATCHMAKER_TOO_MANY_LOBBIES", "as many lobbies as it may"),
        ("join", json!({ "lobby_id": seat.lobby_id() }), "MATCHMAKER_LOBBY_FULL", "full"),
        ("join", json!({ "lobby_id": "none" }), "MATCHMAKER_LOBBY_NOT_FOUND", "no such lobby"),
    ] {
        let answer = game.play(&stack, &format!("lobbies/{operation}"), body).await;
        assert_eq!(unhelpful(&answer, (400, code), &[says]), None, "{operation}");
    }

    let key = |body: Value| {
        let request = Request::builder()
            .method(Method::POST)
            .uri(format!("{}/matchmaker/lobbies/find", stack.demo().base_url));
        let request = request.header("authorization", format!("Bearer {}", stack.demo().tokens.public));
        request.header("idempotency-key", "once").body(Full::new(body.to_string().into())).unwrap()
    };
    stack.send(key(json!({ "game_modes": ["arena"] }))).await.expect_ok();
    let reused = stack.send(key(json!({ "game_modes": ["duel"] }))).await;
    assert_eq!(unhelpful(&reused, (409, "API_IDEMPOTENCY_MISMATCH"), &["use a fresh one"]), None);

    let path = stack.namespace_path("mm-config");
    let limit = json!({ "lobby_count_max": 1_000, "max_players": 1 }).to_string();
    stack.call(Method::POST, &path, Some(&stack.demo().tokens.cloud), limit).await.expect_ok();
    stack.find(json!({ "game_modes": ["arena"] })).await.expect_ok();
    let one_too_many = stack.find(json!({ "game_modes": ["arena"] })).await;
    let says = [
        "the limit of seats per IP address (1) is reached",
        "`muster mm-config GAME/NAMESPACE --max-players-per-client`",
    ];
    let at_limit = (400, "MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE");
    assert_eq!(unhelpful(&one_too_many, at_limit, &says), None);
}
