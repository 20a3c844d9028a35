//! Tokens that are absent, broken, expired, of another kind or of another game.

use std::{collections::BTreeMap, time::Duration};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use harness::{Answer, TestStack, lobby_claims, mock_player};
use serde_json::json;
use shared::{
    auth::keys::TokenKeys,
    base::ambient::Ambient,
    models::{
        ids::{GameId, LobbyId, NamespaceId, SeatId},
        lobby::Stage,
        token::{CloudToken, Credential, CredentialKind, PlayerSeat},
    },
};

use super::{
    operation::{OPERATIONS, Operation, send},
    scene::{Scene, development_host, registration},
};

const YEAR: Duration = Duration::from_secs(365 * 24 * 3_600);
const SECOND: Duration = Duration::from_secs(1);

const INVALID: (u16, &str) = (401, "TOKEN_INVALID");

/// One token of each signed kind, all but the mock player's of the demo's namespace, and of no lobby that
/// exists.
fn signed_tokens(keys: &TokenKeys, stack: &TestStack) -> BTreeMap<&'static str, String> {
    let demo = stack.demo();
    signed_tokens_of(keys, &demo.game_id, &demo.namespace_id, &stack.ambient())
}

fn signed_tokens_of(
    keys: &TokenKeys,
    game_id: &GameId,
    namespace_id: &NamespaceId,
    ambient: &Ambient,
) -> BTreeMap<&'static str, String> {
    let lobby_id = LobbyId::from(ambient.uuid());
    let seat = PlayerSeat {
        namespace_id: namespace_id.clone(),
        lobby_id: lobby_id.clone(),
        seat_id: SeatId::random(ambient),
        generation: 0,
        client: None,
        membership: None,
        data: None,
    };
    let lobby = lobby_claims(game_id, namespace_id, lobby_id, ambient.now());
    let credential = |kind| keys.issue_credential(kind, &Credential::fresh(game_id, namespace_id, ambient));
    BTreeMap::from([
        ("public", credential(CredentialKind::Public)),
        ("server", credential(CredentialKind::Server)),
        (
            "development",
            keys.issue_development(&Credential::fresh(game_id, namespace_id, ambient), development_host()),
        ),
        ("lobby", keys.issue_lobby(&lobby, ambient.now())),
        ("player", keys.issue_player(&seat, ambient.now())),
        (
            "development player",
            keys.issue_development_player(&mock_player(development_host(), None, ambient), ambient.now()),
        ),
    ])
}

/// A signed token that lost its signature's truth in one way each.
fn broken_variants(token: &str, other: &str) -> Vec<(&'static str, String)> {
    let replaced = |text: &str, at: usize| {
        let new = if text.as_bytes()[at] == b'A' { "B" } else { "A" };
        format!("{}{new}{}", &text[..at], &text[at + 1..])
    };
    let parts: Vec<_> = token.split('.').collect();
    let other: Vec<_> = other.split('.').collect();
    let (kind, header) = parts[0].rsplit_once('_').unwrap();
    let forged_header = |algorithm: &str| {
        let mut header: serde_json::Value =
            serde_json::from_slice(&URL_SAFE_NO_PAD.decode(header).unwrap()).unwrap();
        header["alg"] = json!(algorithm);
        format!("{kind}_{}", URL_SAFE_NO_PAD.encode(header.to_string()))
    };
    let dot = token.rfind('.').unwrap();
    vec![
        ("cut by one", token[..token.len() - 1].to_owned()),
        ("cut in half", token[..token.len() / 2].to_owned()),
        ("without signature", token[..=dot].to_owned()),
        ("one more character", format!("{token}A")),
        ("one more part", format!("{token}.A")),
        ("another signature", replaced(token, dot + 20)),
        ("another's signature", format!("{}.{}.{}", parts[0], parts[1], other[2])),
        ("another's claims", format!("{}.{}.{}", parts[0], other[1], parts[2])),
        ("unsigned by its own word", format!("{}.{}.", forged_header("none"), parts[1])),
        ("of another algorithm", format!("{}.{}.{}", forged_header("HS384"), parts[1], parts[2])),
        ("without its kind", token[kind.len() + 1..].to_owned()),
        ("of a kind unheard of", format!("x{token}")),
        ("in upper case", token.to_uppercase()),
        ("twice", format!("{token} {token}")),
    ]
}

/// What an open operation answers whatever its header: success, unless the scene's player gave the seat up,
/// or the token in the body has expired.
fn unguarded(answer: &Answer) -> (u16, &str) {
    match answer.refusal() {
        gone @ (400, "MATCHMAKER_PLAYER_REMOVED" | "MATCHMAKER_PLAYER_REGISTRATION_EXPIRED") => gone,
        _ => (200, ""),
    }
}

/// Sends each operation a valid request with each of the tokens, after what they are; an open one reads none.
async fn check<'a>(
    scene: &Scene<'_>,
    tokens: impl IntoIterator<Item = (&'a str, String)>,
    refusal: (u16, &str),
) {
    for (what, token) in tokens {
        for operation in OPERATIONS.iter() {
            let answer = operation.call(scene, Some(&token)).await;
            let expected = if operation.is_open() { unguarded(&answer) } else { refusal };
            assert_eq!(answer.refusal(), expected, "{operation} with a token: {what}");
        }
    }
}

#[tokio::test]
async fn without_a_bearer_token_nothing_that_needs_one_is_done() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    for operation in OPERATIONS.iter() {
        let token = operation.token(&scene).unwrap_or_default();
        let shapes =
            ["", "Bearer", "Bearer ", "TOKEN", "Basic TOKEN", "Token TOKEN", "Bearer: TOKEN", "Bearer=TOKEN"];
        for shape in [None].into_iter().chain(shapes.map(Some)) {
            let value = shape.map(|shape| shape.replace("TOKEN", token));
            let header = value.as_ref().map(|value| ("authorization", value.as_bytes()));
            let answer = operation.call_with_headers(&scene, header.as_slice()).await;
            let unauthorized = (401, "API_UNAUTHORIZED");
            let expected = if operation.is_open() { unguarded(&answer) } else { unauthorized };
            assert_eq!(answer.refusal(), expected, "{operation} with {shape:?}");
        }
    }
}

#[tokio::test]
async fn a_token_elsewhere_than_in_the_authorization_header_is_no_token() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    for operation in Operation::guarded() {
        let token = operation.token(&scene).unwrap();
        let (cookie, bearer) = (format!("authorization={token}"), format!("Bearer {token}"));
        let headers = [
            ("cookie", cookie.as_bytes()),
            ("x-authorization", bearer.as_bytes()),
            ("proxy-authorization", bearer.as_bytes()),
        ];
        let path = scene.path(operation.path);
        let path = format!("{path}?authorization={token}&token={token}&access_token={token}");
        let body = operation.valid_body(&scene);
        let answer = send(&stack, &operation.method, &path, &headers, body).await;
        assert_eq!(answer.refusal(), (401, "API_UNAUTHORIZED"), "{operation}");
    }
}

#[tokio::test]
async fn the_scheme_counts_in_any_case() {
    let stack = TestStack::start().await;
    for operation in Operation::guarded() {
        for scheme in ["Bearer", "bearer", "BEARER", "bEaReR"] {
            let scene = Scene::on(&stack).await;
            let value = format!("{scheme} {}", operation.token(&scene).unwrap());
            let headers = [("authorization", value.as_bytes())];
            let answer = operation.call_with_headers(&scene, &headers).await;
            assert_eq!(answer.status, 200, "{operation} {scheme}: {}", answer.body);
        }
    }
}

#[tokio::test]
async fn two_tokens_in_one_request_are_not_valid_even_if_each_is() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    for operation in Operation::guarded() {
        let bearer = format!("Bearer {}", operation.token(&scene).unwrap());
        let headers = [("authorization", bearer.as_bytes()); 2];
        let answer = operation.call_with_headers(&scene, &headers).await;
        assert_eq!(answer.refusal(), (401, "TOKEN_INVALID"), "{operation}");
    }
}

#[tokio::test]
async fn text_that_is_no_token_of_ours_is_not_valid() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    let texts = "x null undefined .... pub_ pub_a.b.c dev_.. server_AAAA player_e30.e30.e30 dev_player_ cloud_ \
                 cloud_AAAA lobby_AAAA lobby_e30.e30.e30";
    let (spaced, long) = ("a b", "x".repeat(6_000));
    let texts = texts.split(' ').chain([spaced, &long]);
    check(&scene, texts.map(|text| (text, text.to_owned())), INVALID).await;
}

#[tokio::test]
async fn a_token_with_characters_that_no_token_has_is_not_valid() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    for operation in Operation::guarded() {
        for value in ["Bearer pub_\u{e4}".as_bytes(), b"Bearer \xff\xfe"] {
            let answer = operation.call_with_headers(&scene, &[("authorization", value)]).await;
            assert_eq!(answer.refusal(), (401, "TOKEN_INVALID"), "{operation}");
        }
    }
}

#[tokio::test]
async fn a_tampered_token_of_any_kind_is_not_valid() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    let mut tokens = signed_tokens(stack.stack.keys(), &stack);
    let _unknown = tokens.insert("lobby", scene.tokens.lobby.clone());
    let others = signed_tokens(stack.stack.keys(), &stack);
    check(&scene, tokens.iter().flat_map(|(kind, token)| broken_variants(token, &others[kind])), INVALID)
        .await;
}

#[tokio::test]
async fn a_token_signed_by_another_deployment_is_not_valid() {
    let stack = TestStack::start().await;
    let strange = TokenKeys::new(&[7; 32], None).unwrap();
    check(&Scene::on(&stack).await, signed_tokens(&strange, &stack), INVALID).await;
}

#[tokio::test]
async fn a_cloud_token_never_issued_is_not_valid_for_the_cloud_and_of_the_wrong_kind_elsewhere() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    let unknown = CloudToken::random(&stack.ambient());
    for operation in Operation::guarded() {
        let answer = operation.call(&scene, Some(unknown.reveal())).await;
        // To distinguish an unknown one would cost players' requests a read.
        let expected = if operation.takes("cloud") { INVALID } else { (403, "CLAIMS_MISSING_ENTITLEMENT") };
        assert_eq!(answer.refusal(), expected, "{operation}");
    }
}

#[tokio::test]
async fn a_token_of_another_kind_lacks_the_entitlement() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    let mut tokens = signed_tokens(stack.stack.keys(), &stack);
    for (kind, token) in [("cloud", &scene.tokens.cloud), ("lobby", &scene.tokens.lobby)] {
        let _before = tokens.insert(kind, token.clone());
    }
    for operation in OPERATIONS.iter() {
        for (kind, token) in &tokens {
            if operation.takes(kind) {
                let fresh = Scene::on(&stack).await;
                let answer = operation.call(&fresh, Some(fresh.token(kind))).await;
                assert_eq!(answer.status, 200, "{operation} {kind}: {}", answer.body);
                continue;
            }
            let answer = operation.call(&scene, Some(token)).await;
            let other_kind = (403, "CLAIMS_MISSING_ENTITLEMENT");
            let expected = if operation.is_open() { unguarded(&answer) } else { other_kind };
            assert_eq!(answer.refusal(), expected, "{operation} {kind}");
        }
    }
}

#[tokio::test]
async fn a_token_of_a_namespace_or_lobby_expires_after_a_year_and_a_cloud_token_never() {
    let stack = TestStack::start().await;
    let issued_at = stack.clock.now();
    let tokens = signed_tokens(stack.stack.keys(), &stack);
    stack.clock.advance(YEAR - SECOND);
    for kind in ["public", "server", "development", "lobby"] {
        for operation in Operation::taking(kind) {
            let scene = Scene::on(&stack).await;
            let lobby_id = scene.lobby_id.parse().unwrap();
            let claims = lobby_claims(scene.game_id, scene.namespace_id, lobby_id, issued_at);
            let lobby = stack.stack.keys().issue_lobby(&claims, issued_at);
            let token = if kind == "lobby" { &lobby } else { &tokens[kind] };
            let answer = operation.call(&scene, Some(token)).await;
            assert_eq!(answer.status, 200, "{operation} {kind} in its last second: {}", answer.body);
        }
    }
    let scene = Scene::on(&stack).await;
    stack.clock.advance(SECOND);
    check(&scene, tokens, (401, "CLAIMS_ENTITLEMENT_EXPIRED")).await;
    for operation in Operation::taking("cloud") {
        operation.succeed(&scene).await;
    }
}

#[tokio::test]
async fn a_player_token_expires_after_nine_hours() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    let mut tokens = signed_tokens(stack.stack.keys(), &stack);
    tokens.retain(|kind, _| kind.ends_with("player"));
    stack.clock.advance(Duration::from_secs(9 * 3_600 - 1));
    check(&scene, tokens.clone(), (403, "CLAIMS_MISSING_ENTITLEMENT")).await;
    stack.clock.advance(SECOND);
    check(&scene, tokens, (401, "CLAIMS_ENTITLEMENT_EXPIRED")).await;
}

#[tokio::test]
async fn a_cloud_token_opens_its_own_game_alone() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    let modes = json!({ "solo": { "regions": ["fra"], "max_players": 1 } });
    let other = stack.make_game("other", modes, 1, 1).await;
    let (demo, theirs) = (stack.demo(), other.created.cloud_token.reveal());
    for operation in Operation::taking("cloud") {
        let (game_id, namespace_id) = (demo.game_id.as_str(), demo.namespace_id.as_str());
        let (other_game, other_namespace) = (other.game_id().as_str(), other.namespace_id().as_str());
        for (token, game_id, namespace_id, refusal) in [
            (theirs, game_id, namespace_id, (403, "API_FORBIDDEN")),
            (theirs, game_id, other_namespace, (403, "API_FORBIDDEN")),
            (theirs, "unknown", namespace_id, (403, "API_FORBIDDEN")),
            (&demo.tokens.cloud, other_game, other_namespace, (403, "API_FORBIDDEN")),
            (&demo.tokens.cloud, game_id, other_namespace, (404, "CLOUD_NAMESPACE_NOT_FOUND")),
            (theirs, other_game, namespace_id, (404, "CLOUD_NAMESPACE_NOT_FOUND")),
            (theirs, other_game, "unknown", (404, "CLOUD_NAMESPACE_NOT_FOUND")),
            (theirs, other_game, other_game, (404, "CLOUD_NAMESPACE_NOT_FOUND")),
        ] {
            if !operation.is_on_namespace() && refusal.0 == 404 {
                continue;
            }
            let path = operation.path_in(&scene, game_id, namespace_id);
            let body = operation.valid_body(&scene);
            let answer = stack.call(operation.method.clone(), &path, Some(token), body).await;
            assert_eq!(answer.refusal(), refusal, "{} {path}", operation.method);
        }
    }
}

#[tokio::test]
async fn a_credential_of_a_namespace_that_does_not_exist_is_not_valid() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    let modes = json!({ "arena": { "regions": ["fra"] } });
    let other = stack.make_game("other", modes, 1, 1).await;
    let demo = stack.demo();
    let unknown: NamespaceId = "unknown".parse().unwrap();
    for (game_id, namespace_id) in [
        (&demo.game_id, &unknown),
        (&demo.game_id, other.namespace_id()),
        (other.game_id(), &demo.namespace_id),
    ] {
        let tokens = signed_tokens_of(stack.stack.keys(), game_id, namespace_id, &stack.ambient());
        for kind in ["public", "server", "development"] {
            for operation in Operation::taking(kind) {
                let answer = operation.call(&scene, Some(&tokens[kind])).await;
                assert_eq!(answer.refusal(), (401, "TOKEN_INVALID"), "{operation} {kind}");
            }
        }
    }
}

#[tokio::test]
async fn a_token_of_another_namespace_reaches_nothing_of_this_one() {
    let stack = TestStack::start().await;
    let (here, there) = (Scene::on(&stack).await, Scene::in_other_namespace(&stack).await);
    let lobby_not_found = (400, "MATCHMAKER_LOBBY_NOT_FOUND");
    let server_not_found = (400, "MATCHMAKER_SERVER_NOT_FOUND");
    let forbidden = (403, "API_FORBIDDEN");
    let before = stack.all_lobbies(here.namespace_id).await;
    for (path, kind, refusal) in [
        ("/lobbies/join", "public", lobby_not_found),
        ("/{lobby_id}/state", "public", lobby_not_found),
        ("/{lobby_id}/state", "lobby", forbidden),
        ("/players/connected", "lobby", forbidden),
        ("/players/disconnected", "lobby", forbidden),
        ("/servers/heartbeat", "server", server_not_found),
        ("/servers/deregister", "server", server_not_found),
        ("/servers/end-lobby", "server", lobby_not_found),
        ("/servers/end-lobby", "lobby", forbidden),
    ] {
        let operation = Operation::at(path);
        let answer = operation.call(&here, Some(there.token(kind))).await;
        assert_eq!(answer.refusal(), refusal, "{operation} {kind}");
    }
    // The same server in the other namespace is another one.
    let (register, theirs) = (Operation::at("/servers/register"), Some(there.tokens.server.as_str()));
    register.call_with_body(&here, theirs, registration(&here.server_id).to_string()).await.expect_ok();
    Operation::at("/servers/deregister").call(&here, theirs).await.expect_ok();
    Operation::at("/servers/heartbeat").succeed(&here).await;
    assert_eq!(stack.all_lobbies(here.namespace_id).await, before, "I11");
}

#[tokio::test]
async fn a_lobby_token_opens_its_own_lobby_alone() {
    let stack = TestStack::start().await;
    let (ours, theirs) = (Scene::on(&stack).await, Scene::on(&stack).await);
    for operation in ["/{lobby_id}/state", "/servers/end-lobby"].map(Operation::at) {
        let answer = operation.call(&theirs, Some(&ours.tokens.lobby)).await;
        assert_eq!(answer.refusal(), (403, "API_FORBIDDEN"), "{operation}");
        let nobodys = stack.lobby_token(ours.game_id, ours.namespace_id, LobbyId::nil().as_str());
        let answer = operation.call(&theirs, Some(&nobodys)).await;
        assert_eq!(answer.refusal(), (403, "API_FORBIDDEN"), "{operation}");
    }
    for operation in ["/players/connected", "/players/disconnected"].map(Operation::at) {
        let answer = operation.call(&theirs, Some(&ours.tokens.lobby)).await;
        assert_eq!(answer.refusal(), (400, "MATCHMAKER_PLAYER_IN_DIFFERENT_LOBBY"), "{operation}");
    }
    for lobby in stack.all_lobbies(ours.namespace_id).await {
        assert_eq!((lobby.stage, lobby.closed, lobby.reserved.len()), (Stage::Ready, false, 2));
    }
}

#[tokio::test]
async fn a_lobby_token_says_nothing_of_a_lobby_that_ended_or_never_was() {
    let stack = TestStack::start().await;
    for operation in Operation::taking("lobby") {
        let mut scene = Scene::on(&stack).await;
        let end_again = operation.path.ends_with("/end-lobby");
        Operation::at("/servers/end-lobby").succeed(&scene).await;
        let answer = operation.call(&scene, Some(&scene.tokens.lobby)).await;
        let expected = if end_again { (200, "") } else { (400, "MATCHMAKER_LOBBY_STOPPED") };
        assert_eq!(answer.refusal(), expected, "{operation}");

        // As though the lobby had been forgotten, a day after its end.
        let lobby_id = LobbyId::from(stack.ambient().uuid());
        let claims = lobby_claims(scene.game_id, scene.namespace_id, lobby_id, stack.clock.now());
        let seat = PlayerSeat {
            namespace_id: scene.namespace_id.clone(),
            lobby_id: claims.lobby_id.clone(),
            seat_id: SeatId::random(&stack.ambient()),
            generation: 0,
            client: None,
            membership: None,
            data: None,
        };
        let (keys, now) = (stack.stack.keys(), stack.clock.now());
        scene.lobby_id = claims.lobby_id.to_string();
        scene.player = keys.issue_player(&seat, now);
        let answer = operation.call(&scene, Some(&keys.issue_lobby(&claims, now))).await;
        assert_eq!(answer.refusal(), (400, "MATCHMAKER_LOBBY_NOT_FOUND"), "{operation}");
    }
}

#[tokio::test]
async fn in_a_body_nothing_but_a_real_players_token_counts() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    let keys = stack.stack.keys();
    let mut shown = signed_tokens(keys, &stack);
    let another_player = shown.remove("player").unwrap();
    let long_ago = stack.clock.now().before(2 * YEAR);
    let then = Ambient::system().with_clock(move || long_ago);
    let mut expired = signed_tokens_of(keys, scene.game_id, scene.namespace_id, &then);
    let _lapsed_with_its_reservation = expired.remove("player");
    let strange = TokenKeys::new(&[7; 32], None).unwrap();
    let forged = signed_tokens(&strange, &stack).remove("player").unwrap();
    let shown = shown.into_iter().map(|(kind, token)| (kind.to_owned(), token));
    let shown = shown.chain(expired.into_iter().map(|(kind, token)| (format!("expired {kind}"), token)));
    let broken = broken_variants(&scene.player, &another_player).into_iter();
    let shown = shown.chain(broken.map(|(how, token)| (how.to_owned(), token))).chain([
        ("cloud".to_owned(), scene.tokens.cloud.clone()),
        ("forged".to_owned(), forged),
        ("empty".to_owned(), String::new()),
        ("with its scheme".to_owned(), format!("Bearer {}", scene.player)),
    ]);
    let mut accepted = Vec::new();
    for (what, token) in shown {
        for operation in ["/players/connected", "/players/disconnected"].map(Operation::at) {
            let answer = operation.call_with(&scene, json!({ "player_token": token }).to_string()).await;
            if answer.refusal() != (400, "TOKEN_INVALID") {
                accepted.push(format!("{operation}, {what}: {}", answer.body));
            }
        }
    }
    assert!(accepted.is_empty(), "{}", accepted.join("\n"));
    Operation::at("/players/connected").succeed(&scene).await;
}
