//! Mistakes on purpose: what a studio's developer gets wrong in the first days, each with the words that lead
//! to the right request, in the message or in the warnings.

use std::time::Duration;

use harness::{TestGame, TestStack};
use http::{Method, Request};
use http_body_util::Full;
use serde_json::{Value, json};
use shared::{function::operation::WARNING_HEADER, models::token::CredentialKind};

use super::scene::{self, Scene, Tokens};

/// A mistake, and what its answer says.
struct Mistake {
    is: &'static str,
    method: Method,
    path: String,
    token: Option<String>,
    body: String,
    answer: (u16, &'static str),
    /// Words of the message or of the warnings.
    says: &'static [&'static str],
}

const FIND: &str = "/matchmaker/lobbies/find";
const CREATE: &str = "/matchmaker/lobbies/create";
const REGISTER: &str = "/matchmaker/servers/register";
const HEARTBEAT: &str = "/matchmaker/servers/heartbeat";

fn post(
    is: &'static str,
    path: &str,
    token: &str,
    body: impl ToString,
    answer: (u16, &'static str),
    says: &'static [&'static str],
) -> Mistake {
    let (path, body) = (path.to_owned(), body.to_string());
    let token = Some(token.to_owned()).filter(|token| !token.is_empty());
    Mistake { is, method: Method::POST, path, token, body, answer, says }
}

fn registration(change: impl FnOnce(&mut Value)) -> Value {
    let mut registration = scene::registration("mistaken");
    change(&mut registration);
    registration
}

fn with_port(change: impl FnOnce(&mut Value)) -> Value {
    registration(|registration| change(&mut registration["ports"]["default"]))
}

async fn check(stack: &TestStack, mistakes: impl IntoIterator<Item = Mistake>) {
    let mut unhelpful = Vec::new();
    for Mistake { is, method, path, token, body, answer: expected, says } in mistakes {
        let answer = stack.call(method, &path, token.as_deref(), body).await;
        let warnings =
            answer.headers.get(WARNING_HEADER).map(|line| line.to_str().unwrap()).unwrap_or_default();
        let said = format!("{} {warnings}", answer.body["message"].as_str().unwrap_or_default());
        let missing: Vec<_> = says.iter().filter(|words| !said.contains(**words)).collect();
        if answer.refusal() != expected || !missing.is_empty() {
            unhelpful.push(format!("{is}: {:?} without {missing:?}: {said}", answer.refusal()));
        }
    }
    assert!(unhelpful.is_empty(), "{}", unhelpful.join("\n"));
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a table with a row for each mistake")]
async fn a_wrong_token_leads_to_the_right_one() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    let Tokens { cloud, public, development, server, .. } = &scene.tokens;
    let duel = json!({ "game_modes": ["duel"] });
    let connect = json!({ "player_token": scene.player });
    let yesterday = {
        let keys = shared::auth::keys::TokenKeys::new(&[7; 32], None).unwrap();
        let credential =
            shared::models::token::Credential::fresh(scene.game_id, scene.namespace_id, &stack.ambient());
        keys.issue_credential(CredentialKind::Public, &credential)
    };
    let mut no_scheme = post(
        "`Bearer` forgotten",
        FIND,
        "",
        &duel,
        (401, "API_UNAUTHORIZED"),
        &["`Authorization: Bearer <token>`"],
    );
    no_scheme.path = format!("{FIND}?token={public}");
    const WRONG_KIND: (u16, &str) = (403, "CLAIMS_MISSING_ENTITLEMENT");
    check(
        &stack,
        [
            post(
                "find with a server token",
                FIND,
                server,
                &duel,
                WRONG_KIND,
                &["this is a server token", "needs a public token", "muster token create public"],
            ),
            post(
                "find with a cloud token",
                FIND,
                cloud,
                &duel,
                WRONG_KIND,
                &["this is a cloud token", "needs a public token"],
            ),
            post(
                "register with a public token",
                REGISTER,
                public,
                scene::registration("x"),
                WRONG_KIND,
                &["needs a server token"],
            ),
            post(
                "connected with a server token",
                "/matchmaker/players/connected",
                server,
                &connect,
                WRONG_KIND,
                &["needs a lobby token", "heartbeat"],
            ),
            post(
                "no token",
                FIND,
                "",
                &duel,
                (401, "API_UNAUTHORIZED"),
                &["`Authorization: Bearer <token>`"],
            ),
            no_scheme,
            post(
                "a token that was cut",
                FIND,
                &public[..public.len() - 9],
                &duel,
                (401, "TOKEN_INVALID"),
                &["cut or changed"],
            ),
            post(
                "yesterday's token",
                FIND,
                &yesterday,
                &duel,
                (401, "TOKEN_INVALID"),
                &["another deployment", "--data"],
            ),
            post(
                "a development token in a find",
                FIND,
                development,
                &duel,
                (200, ""),
                &["development token", "mock", "nothing was checked, matched or stored"],
            ),
            post(
                "a development token in a registration",
                REGISTER,
                development,
                scene::registration("x"),
                (200, ""),
                &["development token", "mock"],
            ),
        ],
    )
    .await;
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a table with a row for each mistake")]
async fn a_misspelt_request_leads_to_the_right_one() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    let Tokens { public, lobby, server, .. } = &scene.tokens;
    const BAD_BODY: (u16, &str) = (400, "API_BAD_BODY");
    let mut closed = post(
        "`closed` for `is_closed`",
        "/matchmaker/lobbies/closed",
        lobby,
        r#"{"closed": true}"#,
        BAD_BODY,
        &["missing field `is_closed`", "did you mean \"is_closed\"?"],
    );
    closed.method = Method::PUT;
    check(
        &stack,
        [
            post(
                "a wrong mode",
                FIND,
                public,
                json!({ "game_modes": ["dule"] }),
                (400, "MATCHMAKER_GAME_MODE_NOT_FOUND"),
                &["no game mode `dule`", "`arena`, `duel`, `solo`"],
            ),
            post(
                "`game_mode` in a find",
                FIND,
                public,
                json!({ "game_mode": "duel" }),
                BAD_BODY,
                &["missing field `game_modes`", "did you mean \"game_modes\"?"],
            ),
            post(
                "`game_modes` in a create",
                CREATE,
                public,
                json!({ "game_modes": ["arena"] }),
                BAD_BODY,
                &["missing field `game_mode`", "did you mean \"game_mode\"?"],
            ),
            post(
                "a mode that is no list",
                FIND,
                public,
                json!({ "game_modes": "duel" }),
                BAD_BODY,
                &["`game_modes`", "a list of texts is needed, not a text"],
            ),
            post(
                "`region` in a find",
                FIND,
                public,
                json!({ "game_modes": ["duel"], "region": "nyc" }),
                (200, ""),
                &["unknown field \"region\" (did you mean \"regions\"?)"],
            ),
            post(
                "a comma too many",
                FIND,
                public,
                r#"{"game_modes": ["duel"],}"#,
                BAD_BODY,
                &["trailing comma at line 1 column 25"],
            ),
            post("single quotes", FIND, public, "{'game_modes': ['duel']}", BAD_BODY, &["line 1 column 2"]),
            post(
                "a wrong region in a find",
                FIND,
                public,
                json!({ "game_modes": ["duel"], "regions": ["mars"] }),
                (400, "MATCHMAKER_REGION_NOT_FOUND"),
                &["`mars`", "`fra`, `nyc`"],
            ),
            post(
                "create where it is not enabled",
                CREATE,
                public,
                json!({ "game_mode": "duel" }),
                (400, "MATCHMAKER_CUSTOM_LOBBIES_DISABLED"),
                &["`duel`", "`actions.create.enabled`", "version"],
            ),
            closed,
            post(
                "`leaseSeconds`",
                REGISTER,
                server,
                registration(|it| it["leaseSeconds"] = json!(5)),
                (200, ""),
                &["unknown field \"leaseSeconds\" (did you mean \"lease_seconds\"?)"],
            ),
        ],
    )
    .await;
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a table with a row for each mistake")]
async fn a_wrong_registration_leads_to_the_right_one() {
    let stack = TestStack::start().await;
    let server = &stack.demo().tokens.server;
    const INVALID: (u16, &str) = (400, "MATCHMAKER_INVALID_SERVER");
    const BAD_BODY: (u16, &str) = (400, "API_BAD_BODY");
    let refused = |is, body, answer, says| post(is, REGISTER, server, body, answer, says);
    let mixed = registration(|it| {
        it["ports"]["b"] = json!({ "hostname": "a.example", "port": 80, "protocol": "http" });
    });
    check(
        &stack,
        [
            refused(
                "a port as text",
                with_port(|port| port["port"] = json!("7777")),
                BAD_BODY,
                &["`ports.default.port`", "a number from 1 to 65535 is needed, not a text"],
            ),
            refused(
                "a negative port",
                with_port(|port| port["port"] = json!(-1)),
                BAD_BODY,
                &["a number from 1 to 65535 is needed, not -1"],
            ),
            refused(
                "port 0",
                with_port(|port| port["port"] = json!(0)),
                INVALID,
                &["ports/default/port", "1 to 65535"],
            ),
            refused(
                "the protocol `ws`",
                with_port(|port| port["protocol"] = json!("ws")),
                BAD_BODY,
                &[
                    "`http`, `https`, `tcp`, `tcp_tls` or `udp`",
                    "for ws:// use `http`",
                    "for wss:// use `https`",
                ],
            ),
            refused(
                "a hostname with a scheme",
                with_port(|port| port["hostname"] = json!("https://a.example")),
                INVALID,
                &["ports/default/hostname", "without scheme, port and path"],
            ),
            refused(
                "a hostname with a port",
                with_port(|port| port["hostname"] = json!("a.example:80")),
                INVALID,
                &["ports/default/hostname", "without scheme, port and path"],
            ),
            refused(
                "0.0.0.0",
                with_port(|port| port["hostname"] = json!("0.0.0.0")),
                INVALID,
                &["ports/default/hostname", "the address that players connect to"],
            ),
            refused(
                "::",
                with_port(|port| port["hostname"] = json!("::")),
                INVALID,
                &["ports/default/hostname", "the address that players connect to"],
            ),
            refused(
                "::1 without brackets",
                with_port(|port| port["hostname"] = json!("::1")),
                (200, ""),
                &[],
            ),
            refused(
                "a wrong region",
                registration(|it| it["region_id"] = json!("fr")),
                INVALID,
                &["region_id", "`fr` is not one of `fra`, `nyc`"],
            ),
            refused(
                "a wrong mode",
                registration(|it| it["game_modes"] = json!(["dule"])),
                INVALID,
                &["game_modes/dule", "no version of this game has it", "`arena`, `duel`, `solo`"],
            ),
            refused(
                "one port with TLS, one without",
                mixed,
                INVALID,
                &["ports/b/mixed-tls", "on all ports or on none", "only on `default`"],
            ),
            refused(
                "capacity 0",
                registration(|it| it["capacity"] = json!(0)),
                INVALID,
                &["capacity", "1 to 1000000"],
            ),
            refused(
                "a lease of two days",
                registration(|it| it["lease_seconds"] = json!(172_800)),
                INVALID,
                &["lease_seconds", "0 to 86400"],
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_wrong_version_leads_to_the_right_one() {
    let stack = TestStack::start().await;
    let path = format!("/cloud/games/{}/versions", stack.demo().game_id);
    let quad = |fields: Value| json!({ "display_name": "1", "config": { "game_modes": { "quad": fields } } });
    let refused = |is, body, answer, says| post(is, &path, &stack.demo().tokens.cloud, body, answer, says);
    const INVALID: (u16, &str) = (400, "VALIDATION_ERROR");
    const BAD_BODY: (u16, &str) = (400, "API_BAD_BODY");
    check(
        &stack,
        [
            refused(
                "a misspelt field",
                quad(json!({ "regions": ["fra"], "max_player": 4 })),
                BAD_BODY,
                &["config.game_modes.quad.max_player"],
            ),
            refused(
                "a number as text",
                quad(json!({ "regions": ["fra"], "max_players": "4" })),
                BAD_BODY,
                &["`config.game_modes.quad.max_players`", "a whole number", "not a text"],
            ),
            refused(
                "no modes",
                json!({ "display_name": "1", "config": {} }),
                BAD_BODY,
                &["missing field `game_modes`"],
            ),
            refused(
                "`max_players` 500",
                quad(json!({ "regions": ["fra"], "max_players": 500 })),
                INVALID,
                &["game_modes/quad/max_players", "1 to 256"],
            ),
            refused(
                "an unknown region",
                quad(json!({ "regions": ["fr"] })),
                INVALID,
                &["game_modes/quad/regions", "`fr` is not one of `fra`, `nyc`"],
            ),
        ],
    )
    .await;
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
    let heartbeat = |is, body: &Value, says| post(is, HEARTBEAT, &game.server, body, UNKNOWN, says);
    let deregister = "/matchmaker/servers/deregister";
    check(
        &stack,
        [
            heartbeat("a heartbeat with another `start_id`", &other, OTHER_START),
            post(
                "deregister with another `start_id`",
                deregister,
                &game.server,
                &other,
                UNKNOWN,
                OTHER_START,
            ),
            heartbeat(
                "a heartbeat before the registration",
                &json!({ "server_id": "two" }),
                &["there is no such game server"],
            ),
        ],
    )
    .await;

    stack.clock.advance(Duration::from_secs(121));
    let late = game.connect(&stack, &seat).await;
    assert_eq!(late.refusal(), (400, "MATCHMAKER_PLAYER_REGISTRATION_EXPIRED"));
    assert!(late.body["message"].as_str().unwrap().contains("reservation has lapsed"), "{}", late.body);

    game.serve(&stack, "register", register("second")).await.expect_ok();
    let first = json!({ "server_id": "one", "start_id": "first" });
    check(&stack, [heartbeat("two processes with one `server_id`", &first, OTHER_START)]).await;
    let late = game.serve(&stack, "register", register("first")).await;
    assert_eq!(late.refusal(), (400, "MATCHMAKER_LOBBY_STATE_CONFLICT"));
    assert!(late.body["message"].as_str().unwrap().contains("a later start"), "{}", late.body);
}

#[tokio::test]
async fn a_limit_that_is_reached_is_named() {
    let stack = TestStack::start().await;
    let (created, token) = (game(&stack).await, |game: &TestGame| game.public.clone());
    created.add_server(&stack, "one", "fra", 9, shared::base::ambient::Timestamp::NEVER).await;
    let duel = json!({ "game_modes": ["duel"] });
    let (find, join) = (FIND, "/matchmaker/lobbies/join");
    let seat = created.find(&stack, duel.clone()).await.expect_ok();
    created.find(&stack, duel.clone()).await.expect_ok();
    let full = json!({ "lobby_id": seat.lobby_id() });
    let none = json!({ "lobby_id": "none" });
    check(
        &stack,
        [
            post(
                "lobbies that never end",
                find,
                &token(&created),
                &duel,
                (400, "MATCHMAKER_TOO_MANY_LOBBIES"),
                &["as many lobbies as it may"],
            ),
            post(
                "a join of a full lobby",
                join,
                &token(&created),
                &full,
                (400, "MATCHMAKER_LOBBY_FULL"),
                &["full"],
            ),
            post(
                "a join of no lobby",
                join,
                &token(&created),
                &none,
                (400, "MATCHMAKER_LOBBY_NOT_FOUND"),
                &["no such lobby"],
            ),
        ],
    )
    .await;

    let key = |body: Value| {
        let request = Request::builder().method(Method::POST).uri(format!("{}{FIND}", stack.demo().base_url));
        let request = request.header("authorization", format!("Bearer {}", stack.demo().tokens.public));
        request.header("idempotency-key", "once").body(Full::new(body.to_string().into())).unwrap()
    };
    stack.send(key(json!({ "game_modes": ["arena"] }))).await.expect_ok();
    let reused = stack.send(key(json!({ "game_modes": ["duel"] }))).await;
    assert_eq!(reused.refusal(), (409, "API_IDEMPOTENCY_MISMATCH"));
    assert!(reused.body["message"].as_str().unwrap().contains("use a fresh one"), "{}", reused.body);

    let path = stack.namespace_path("mm-config");
    let limit = json!({ "lobby_count_max": 1_000, "max_players": 1 }).to_string();
    stack.call(Method::POST, &path, Some(&stack.demo().tokens.cloud), limit).await.expect_ok();
    let says = &["limit of seats per IP address (1)", "muster mm-config", "--max-players-per-client"];
    let public = &stack.demo().tokens.public;
    stack.find(json!({ "game_modes": ["arena"] })).await.expect_ok();
    let another = json!({ "game_modes": ["arena"] });
    check(
        &stack,
        [post(
            "one player too many of one address",
            FIND,
            public,
            another,
            (400, "MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE"),
            says,
        )],
    )
    .await;
}
