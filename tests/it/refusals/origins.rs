//! Tokenless callers: a page's origin speaks for its namespace, where that is enabled.

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use harness::{Answer, TestStack};
use serde_json::json;
use shared::{rules::origin::OriginHost, store::cdn::DomainOutcome};

use super::{
    operation::{Operation, send},
    scene::{Scene, write_to_namespace},
};

const UNAUTHORIZED: (u16, &str) = (401, "API_UNAUTHORIZED");
/// How long the local stack remembers settings, and hosts without namespace.
const SETTINGS_AGE_MAX: Duration = Duration::from_secs(1);

/// A stack whose demo namespace has the domain `play.example`.
async fn stack_with_domain() -> TestStack {
    let stack = TestStack::start().await;
    stack.add_domain(&stack.demo().namespace_id, "https://play.example").await;
    stack
}

/// A request of a page: `query` as in the address, headers as given.
async fn ask(operation: &Operation, scene: &Scene<'_>, query: &str, headers: &[(&str, &[u8])]) -> Answer {
    let path = format!("{}{query}", scene.path(operation.path));
    send(scene.stack, &operation.method, &path, headers, operation.valid_body(scene)).await
}

async fn ask_from(operation: &Operation, scene: &Scene<'_>, origin: &str) -> Answer {
    ask(operation, scene, "", &[("origin", origin.as_bytes())]).await
}

#[tokio::test]
async fn a_page_of_a_registered_domain_needs_no_token() {
    let stack = stack_with_domain().await;
    let scene = Scene::on(&stack).await;
    for operation in Operation::for_pages() {
        for origin in [
            "https://play.example",
            "http://play.example",
            "https://play.example:8443",
            "https://PLAY.Example",
            "https://play.example.",
            "https://play.example/a/page?x=1#y",
        ] {
            let answer = ask_from(operation, &scene, origin).await;
            assert_eq!(answer.status, 200, "{operation} {origin}: {}", answer.body);
            if operation.reads_body_first() {
                let seat = stack.seat(&answer);
                assert_eq!(seat.namespace_id, stack.demo().namespace_id, "{operation} {origin}");
            }
        }
    }
}

#[tokio::test]
async fn any_other_origin_is_anonymous() {
    let stack = stack_with_domain().await;
    let scene = Scene::on(&stack).await;
    for operation in Operation::for_pages() {
        for origin in [
            "",
            "null",
            "play.example",
            "//play.example",
            "https://",
            "https://example",
            "https://www.play.example",
            "https://play.example.evil.example",
            "https://evilplay.example",
            "https://evil.example/play.example",
            "https://play.example@evil.example",
            "https://evil.example#play.example",
            "ftp://play.example",
            "file:///play.example",
            "chrome-extension://play.example",
            "https://play.example https://evil.example",
        ] {
            let answer = ask_from(operation, &scene, origin).await;
            assert_eq!(answer.refusal(), UNAUTHORIZED, "{operation} {origin}");
        }
    }
}

#[tokio::test]
async fn an_address_never_matches_even_if_it_were_registered() {
    let stack = TestStack::start().await;
    for host in ["127.0.0.1", "[::1]", "::1", "2130706433"] {
        let demo = stack.demo();
        let write = stack.store().client().put_item();
        let write = write
            .table_name(&stack.store().tables().catalog)
            .item("pk", AttributeValue::S(format!("DOMAIN#{host}")))
            .item("sk", AttributeValue::S("DOMAIN".to_owned()))
            .item("game_id", AttributeValue::S(demo.game_id.to_string()))
            .item("namespace_id", AttributeValue::S(demo.namespace_id.to_string()));
        let _written = write.send().await.unwrap();
    }
    let scene = Scene::on(&stack).await;
    for operation in Operation::for_pages() {
        for origin in [
            "http://127.0.0.1",
            "http://127.0.0.1:3000",
            "http://[::1]",
            "http://[::1]:3000",
            "http://2130706433",
            "http://127.1",
            "http://0x7f.1",
        ] {
            let answer = ask_from(operation, &scene, origin).await;
            assert_eq!(answer.refusal(), UNAUTHORIZED, "{operation} {origin}");
        }
    }
}

#[tokio::test]
async fn the_origin_may_stand_in_the_query() {
    let stack = stack_with_domain().await;
    let scene = Scene::on(&stack).await;
    for operation in Operation::for_pages() {
        for (query, status) in [
            ("?origin=https%3A%2F%2Fplay.example", 200),
            ("?origin=https://play.example:3000", 200),
            ("?x=1&origin=https%3A%2F%2FPLAY.example%2Flevel&y=2", 200),
            ("?origin=https%3A%2F%2Fevil.example", 401),
            ("?origin=play.example", 401),
            ("?origin=null", 401),
            ("?origin=", 401),
            ("?origin", 401),
            ("?Origin=https%3A%2F%2Fplay.example", 401),
            ("", 401),
        ] {
            let answer = ask(operation, &scene, query, &[]).await;
            assert_eq!(answer.status, status, "{operation} {query}: {}", answer.body);
        }
    }
}

#[tokio::test]
async fn the_origin_header_wins_over_the_query() {
    let stack = stack_with_domain().await;
    let scene = Scene::on(&stack).await;
    let (ours, theirs) = ("https://play.example", "https://evil.example");
    for operation in Operation::for_pages() {
        for (header, query, status) in
            [(ours, theirs, 200), (ours, "null", 200), (theirs, ours, 401), ("null", ours, 401)]
        {
            let headers = [("origin", header.as_bytes())];
            let answer = ask(operation, &scene, &format!("?origin={query}"), &headers).await;
            assert_eq!(answer.status, status, "{operation} {header}, {query}: {}", answer.body);
        }
    }
}

#[tokio::test]
async fn a_token_that_is_shown_counts_and_the_origin_does_not() {
    let stack = stack_with_domain().await;
    let (scene, other) = (Scene::on(&stack).await, Scene::on(&stack).await);
    let ours: (&str, &[u8]) = ("origin", b"https://play.example");
    let theirs: (&str, &[u8]) = ("origin", b"https://evil.example");
    for operation in Operation::for_pages() {
        // That of another lobby, where a lobby's is taken at all.
        let of_lobby = if operation.takes("lobby") { "API_FORBIDDEN" } else { "CLAIMS_MISSING_ENTITLEMENT" };
        for (token, refusal) in [
            ("x", (401, "TOKEN_INVALID")),
            (&scene.tokens.server, (403, "CLAIMS_MISSING_ENTITLEMENT")),
            (&scene.tokens.cloud, (403, "CLAIMS_MISSING_ENTITLEMENT")),
            (&scene.player, (403, "CLAIMS_MISSING_ENTITLEMENT")),
            (&other.tokens.lobby, (403, of_lobby)),
        ] {
            let bearer = format!("Bearer {token}");
            let answer = ask(operation, &scene, "", &[ours, ("authorization", bearer.as_bytes())]).await;
            assert_eq!(answer.refusal(), refusal, "{operation}");
        }
        let bearer = format!("Bearer {}", scene.tokens.public);
        let answer = ask(operation, &scene, "", &[theirs, ("authorization", bearer.as_bytes())]).await;
        assert_eq!(answer.status, 200, "{operation}: {}", answer.body);
    }
}

#[tokio::test]
async fn a_namespace_can_forbid_tokenless_callers() {
    let stack = stack_with_domain().await;
    let scene = Scene::on(&stack).await;
    for (enabled, status) in [(true, 200), (false, 401), (true, 200)] {
        let value = AttributeValue::Bool(enabled);
        let attribute = "enable_domain_public_auth";
        write_to_namespace(&stack, scene.game_id, scene.namespace_id, attribute, value).await;
        stack.clock.advance(SETTINGS_AGE_MAX);
        for operation in Operation::for_pages() {
            let answer = ask_from(operation, &scene, "https://play.example").await;
            assert_eq!(answer.status, status, "{operation}, enabled: {enabled}");
            let with_token = operation.call(&scene, Some(&scene.tokens.public)).await;
            assert_eq!(with_token.status, 200, "{operation}: tokens count all the same");
        }
    }
}

#[tokio::test]
async fn a_domain_registered_later_is_known_a_second_after() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    for (n, operation) in Operation::for_pages().enumerate() {
        let origin = format!("https://late-{n}.example");
        assert_eq!(ask_from(operation, &scene, &origin).await.refusal(), UNAUTHORIZED, "{operation}");
        stack.add_domain(&stack.demo().namespace_id, &origin).await;
        stack.clock.advance(SETTINGS_AGE_MAX);
        assert_eq!(ask_from(operation, &scene, &origin).await.status, 200, "{operation}");
    }
}

#[tokio::test]
async fn a_domain_belongs_to_one_namespace() {
    let stack = stack_with_domain().await;
    let (here, there) = (Scene::on(&stack).await, Scene::in_other_namespace(&stack).await);
    let other = &stack.demo().other_namespace_id;
    let host = OriginHost::parse("https://play.example").unwrap();
    let taken = stack.store().add_domain(&stack.right(other).await, &host, stack.clock.now()).await.unwrap();
    assert_eq!(taken, DomainOutcome::Taken);
    stack.add_domain(other, "https://staging.example").await;
    for operation in Operation::for_pages() {
        for (origin, own, foreign) in
            [("https://play.example", &here, &there), ("https://staging.example", &there, &here)]
        {
            let answer = ask_from(operation, own, origin).await.expect_ok();
            if operation.reads_body_first() {
                assert_eq!(stack.seat(&answer).namespace_id, *own.namespace_id, "{operation} {origin}");
            }
            let names_lobby = operation.valid_body(foreign).contains(&foreign.lobby_id);
            if names_lobby || operation.path.contains("{lobby_id}") {
                let answer = ask_from(operation, foreign, origin).await;
                assert_eq!(answer.refusal(), (400, "MATCHMAKER_LOBBY_NOT_FOUND"), "{operation} {origin}");
            }
        }
    }
}

#[tokio::test]
async fn lists_and_counts_that_a_page_gets_are_those_of_its_namespace() {
    let stack = stack_with_domain().await;
    let found = stack.find(json!({ "game_modes": ["duel"] })).await.expect_ok();
    stack.add_domain(&stack.demo().other_namespace_id, "https://staging.example").await;
    let get = async |path: &str, origin: &str| {
        let headers = [("origin", origin.as_bytes())];
        send(&stack, &http::Method::GET, path, &headers, "").await.expect_ok().body
    };
    for (origin, lobbies, players) in
        [("https://play.example", vec![found.lobby_id()], 1), ("https://staging.example", vec![], 0)]
    {
        let list = get("/matchmaker/lobbies/list", origin).await;
        let listed = list["lobbies"].as_array().unwrap().iter();
        let listed: Vec<_> = listed.map(|lobby| lobby["lobby_id"].as_str().unwrap().to_owned()).collect();
        assert_eq!(listed, lobbies, "I11: {origin}");
        let statistics = get("/matchmaker/players/statistics", origin).await;
        assert_eq!(statistics["player_count"], players, "I11: {origin}");
    }
}

#[tokio::test]
async fn an_origin_opens_nothing_but_what_players_do() {
    let stack = stack_with_domain().await;
    let scene = Scene::on(&stack).await;
    for operation in Operation::guarded().filter(|operation| !operation.takes("public")) {
        let answer = ask_from(operation, &scene, "https://play.example").await;
        assert_eq!(answer.refusal(), UNAUTHORIZED, "{operation}");
        let answer = ask(operation, &scene, "?origin=https%3A%2F%2Fplay.example", &[]).await;
        assert_eq!(answer.refusal(), UNAUTHORIZED, "{operation}");
    }
}
