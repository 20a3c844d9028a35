//! Tokens that are absent, broken, expired, of another kind or of another game.

use std::{collections::BTreeMap, time::Duration};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use muster_tests::TestStack;
use serde_json::json;
use shared::{
    ambient::Ambient,
    ids::{GameId, LobbyId, NamespaceId, SeatId},
    models::{PortNumbers, Protocol, ServerPort},
    tokens::{CloudToken, CredentialKind, DevelopmentHost, PlayerSeat, TokenKeys},
};

use super::{OPERATIONS, Operation, Right};

const YEAR: Duration = Duration::from_secs(365 * 24 * 3_600);
const SECOND: Duration = Duration::from_secs(1);

/// One token of each signed kind, all but the player's of the demo's namespace.
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
    let port = ServerPort {
        hostname: "localhost".to_owned(),
        numbers: PortNumbers::Port(7_777),
        protocol: Protocol::Udp,
    };
    let host = DevelopmentHost {
        hostname: "localhost".to_owned(),
        ports: BTreeMap::from([("game".to_owned(), port)]).try_into().unwrap(),
    };
    let seat = PlayerSeat {
        namespace_id: namespace_id.clone(),
        lobby_id: LobbyId::nil(),
        seat_id: SeatId::random(ambient),
    };
    let credential = |kind| keys.issue_credential(kind, game_id, namespace_id, ambient);
    BTreeMap::from([
        ("public", credential(CredentialKind::Public)),
        ("server", credential(CredentialKind::Server)),
        ("development", keys.issue_development(game_id, namespace_id, host, ambient)),
        ("player", keys.issue_player(&seat, ambient.now())),
        ("development player", keys.issue_development_player(ambient)),
    ])
}

/// Which signed kinds an operation takes.
fn takes(operation: &Operation, kind: &str) -> bool {
    operation.right == Right::Player && matches!(kind, "public" | "development")
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

#[tokio::test]
async fn without_a_bearer_token_nothing_that_needs_one_is_done() {
    let stack = TestStack::start().await;
    for operation in &OPERATIONS {
        let token = operation.token(stack.demo()).unwrap_or_default();
        for authorization in [
            None,
            Some(String::new()),
            Some("Bearer".to_owned()),
            Some("Bearer ".to_owned()),
            Some(token.to_owned()),
            Some(format!("Basic {token}")),
            Some(format!("Token {token}")),
            Some(format!("Bearer: {token}")),
            Some(format!("Bearer={token}")),
        ] {
            let header = authorization.as_ref().map(|value| ("authorization", value.as_bytes()));
            let answer = operation.call_with_headers(&stack, header.as_slice()).await;
            let shape = authorization.map(|value| value.replace(token, "<token>"));
            if operation.right == Right::None {
                assert_eq!(answer.status, 200, "{operation:?} with {shape:?}");
            } else {
                assert_eq!(answer.refusal(), (401, "API_UNAUTHORIZED"), "{operation:?} with {shape:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_token_elsewhere_than_in_the_authorization_header_is_no_token() {
    let stack = TestStack::start().await;
    for operation in Operation::guarded() {
        let token = operation.token(stack.demo()).unwrap();
        let (cookie, bearer) = (format!("authorization={token}"), format!("Bearer {token}"));
        let headers = [
            ("cookie", cookie.as_bytes()),
            ("x-authorization", bearer.as_bytes()),
            ("proxy-authorization", bearer.as_bytes()),
        ];
        let path = format!(
            "{}?authorization={token}&token={token}&access_token={token}",
            operation.demo_path(stack.demo())
        );
        let body = operation.valid_body(stack.demo());
        let answer = super::send(&stack, &operation.method, &path, &headers, body).await;
        assert_eq!(answer.refusal(), (401, "API_UNAUTHORIZED"), "{operation:?}");
    }
}

#[tokio::test]
async fn the_scheme_counts_in_any_case() {
    let stack = TestStack::start().await;
    for operation in Operation::guarded() {
        let token = operation.token(stack.demo()).unwrap();
        for scheme in ["Bearer", "bearer", "BEARER", "bEaReR"] {
            let value = format!("{scheme} {token}");
            let headers = [("authorization", value.as_bytes())];
            let answer = operation.call_with_headers(&stack, &headers).await;
            assert_eq!(answer.status, 200, "{operation:?} {scheme}: {}", answer.body);
        }
    }
}

#[tokio::test]
async fn two_tokens_in_one_request_are_not_valid_even_if_each_is() {
    let stack = TestStack::start().await;
    for operation in Operation::guarded() {
        let bearer = format!("Bearer {}", operation.token(stack.demo()).unwrap());
        let headers = [("authorization", bearer.as_bytes()); 2];
        let answer = operation.call_with_headers(&stack, &headers).await;
        assert_eq!(answer.refusal(), (401, "TOKEN_INVALID"), "{operation:?}");
    }
}

#[tokio::test]
async fn text_that_is_no_token_of_ours_is_not_valid() {
    let stack = TestStack::start().await;
    let long = "x".repeat(6_000);
    for operation in &OPERATIONS {
        for text in [
            "x",
            "null",
            "undefined",
            "a b",
            "....",
            "pub_",
            "pub_a.b.c",
            "dev_..",
            "server_AAAA",
            "player_e30.e30.e30",
            "dev_player_",
            "cloud_",
            "cloud_AAAA",
            "lobby_AAAA",
            &long,
        ] {
            let answer = operation.call(&stack, Some(text)).await;
            if operation.right == Right::None {
                assert_eq!(answer.status, 200, "{operation:?} {text}");
            } else {
                assert_eq!(answer.refusal(), (401, "TOKEN_INVALID"), "{operation:?} {text}");
            }
        }
    }
}

#[tokio::test]
async fn a_token_with_characters_that_no_token_has_is_not_valid() {
    let stack = TestStack::start().await;
    for operation in Operation::guarded() {
        for value in ["Bearer pub_\u{e4}".as_bytes(), b"Bearer \xff\xfe"] {
            let answer = operation.call_with_headers(&stack, &[("authorization", value)]).await;
            assert_eq!(answer.refusal(), (401, "TOKEN_INVALID"), "{operation:?}");
        }
    }
}

#[tokio::test]
async fn a_tampered_token_of_any_kind_is_not_valid() {
    let stack = TestStack::start().await;
    let (tokens, others) =
        (signed_tokens(stack.stack.keys(), &stack), signed_tokens(stack.stack.keys(), &stack));
    for operation in &OPERATIONS {
        for (kind, token) in &tokens {
            for (how, broken) in broken_variants(token, &others[kind]) {
                let answer = operation.call(&stack, Some(&broken)).await;
                if operation.right == Right::None {
                    assert_eq!(answer.status, 200, "{operation:?} {kind} {how}");
                } else {
                    assert_eq!(answer.refusal(), (401, "TOKEN_INVALID"), "{operation:?} {kind} {how}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_token_signed_by_another_deployment_is_not_valid() {
    let stack = TestStack::start().await;
    let strange = TokenKeys::new(&[7; 32], None).unwrap();
    for operation in Operation::guarded() {
        for (kind, token) in signed_tokens(&strange, &stack) {
            let answer = operation.call(&stack, Some(&token)).await;
            assert_eq!(answer.refusal(), (401, "TOKEN_INVALID"), "{operation:?} {kind}");
        }
    }
}

#[tokio::test]
async fn a_cloud_token_never_issued_is_not_valid_for_the_cloud_and_of_the_wrong_kind_for_players() {
    let stack = TestStack::start().await;
    let unknown = CloudToken::random(&stack.ambient());
    for operation in &OPERATIONS {
        let answer = operation.call(&stack, Some(unknown.reveal())).await;
        let expected = match operation.right {
            Right::None => (200, ""),
            // Telling an unknown one apart would cost players' path a read.
            Right::Player => (403, "CLAIMS_MISSING_ENTITLEMENT"),
            Right::Cloud => (401, "TOKEN_INVALID"),
        };
        assert_eq!(answer.refusal(), expected, "{operation:?}");
    }
}

#[tokio::test]
async fn a_token_of_another_kind_lacks_the_entitlement() {
    let stack = TestStack::start().await;
    let mut tokens = signed_tokens(stack.stack.keys(), &stack);
    let cloud = stack.demo().tokens.cloud.clone();
    let _was_free = tokens.insert("cloud", cloud);
    for operation in &OPERATIONS {
        for (kind, token) in &tokens {
            let answer = operation.call(&stack, Some(token)).await;
            let allowed = match operation.right {
                Right::None => true,
                Right::Player => takes(operation, kind),
                Right::Cloud => *kind == "cloud",
            };
            if allowed {
                assert_eq!(answer.status, 200, "{operation:?} {kind}: {}", answer.body);
            } else {
                assert_eq!(answer.refusal(), (403, "CLAIMS_MISSING_ENTITLEMENT"), "{operation:?} {kind}");
            }
        }
    }
}

#[tokio::test]
async fn a_credential_expires_after_a_year_and_a_cloud_token_never() {
    let stack = TestStack::start().await;
    let tokens = signed_tokens(stack.stack.keys(), &stack);
    stack.clock.advance(YEAR - SECOND);
    for operation in Operation::with(Right::Player) {
        for kind in ["public", "development"] {
            let answer = operation.call(&stack, Some(&tokens[kind])).await;
            assert_eq!(answer.status, 200, "{kind} in its last second: {}", answer.body);
        }
    }
    stack.clock.advance(SECOND);
    for operation in &OPERATIONS {
        for (kind, token) in &tokens {
            let answer = operation.call(&stack, Some(token)).await;
            if operation.right == Right::None {
                assert_eq!(answer.status, 200, "{operation:?} {kind}");
            } else {
                assert_eq!(answer.refusal(), (401, "CLAIMS_ENTITLEMENT_EXPIRED"), "{operation:?} {kind}");
            }
        }
    }
    for operation in Operation::with(Right::Cloud) {
        let answer = operation.call(&stack, Some(&stack.demo().tokens.cloud)).await;
        assert_eq!(answer.status, 200, "{operation:?}: {}", answer.body);
    }
}

#[tokio::test]
async fn a_player_token_expires_after_nine_hours() {
    let stack = TestStack::start().await;
    let tokens = signed_tokens(stack.stack.keys(), &stack);
    stack.clock.advance(Duration::from_secs(9 * 3_600 - 1));
    for (after, refusal) in
        [(Duration::ZERO, (403, "CLAIMS_MISSING_ENTITLEMENT")), (SECOND, (401, "CLAIMS_ENTITLEMENT_EXPIRED"))]
    {
        stack.clock.advance(after);
        for operation in Operation::guarded() {
            for kind in ["player", "development player"] {
                let answer = operation.call(&stack, Some(&tokens[kind])).await;
                assert_eq!(answer.refusal(), refusal, "{operation:?} {kind}");
            }
        }
    }
}

#[tokio::test]
async fn a_cloud_token_opens_its_own_game_alone() {
    let stack = TestStack::start().await;
    let modes = json!({ "solo": { "regions": ["fra"], "max_players": 1 } });
    let other = stack.make_game("other", modes, 1, 1).await;
    let (demo, theirs) = (stack.demo(), other.created.cloud_token.reveal());
    for operation in Operation::with(Right::Cloud) {
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
            let path = operation.path_in(game_id, namespace_id);
            let body = operation.valid_body(demo);
            let answer = stack.call(operation.method.clone(), &path, Some(token), body).await;
            assert_eq!(answer.refusal(), refusal, "{} {path}", operation.method);
        }
    }
}

#[tokio::test]
async fn a_credential_of_a_namespace_that_does_not_exist_is_not_valid() {
    let stack = TestStack::start().await;
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
        for operation in Operation::with(Right::Player) {
            for kind in ["public", "development"] {
                let answer = operation.call(&stack, Some(&tokens[kind])).await;
                assert_eq!(answer.refusal(), (401, "TOKEN_INVALID"), "{operation:?} {kind}");
            }
        }
    }
}
