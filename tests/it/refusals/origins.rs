//! Tokenless callers: a page's origin speaks for its namespace, where that is enabled.

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use http::Method;
use muster_tests::{Answer, TestStack};
use serde_json::json;
use shared::{
    rules::origin::OriginHost,
    store::catalog::{DomainOwner, NameOutcome},
};

use super::{send, write_to_namespace};

const UNAUTHORIZED: (u16, &str) = (401, "API_UNAUTHORIZED");
/// How long the local stack remembers settings, and hosts without namespace.
const SETTINGS_AGE_MAX: Duration = Duration::from_secs(1);

/// A stack whose demo namespace has the domain `play.example`.
async fn stack_with_domain() -> TestStack {
    let stack = TestStack::start().await;
    let owner = owner(&stack);
    let host = OriginHost::parse("https://play.example").unwrap();
    let added = stack.store().add_domain(&host, &owner).await.unwrap();
    assert_eq!(added, NameOutcome::Created);
    stack
}

fn owner(stack: &TestStack) -> DomainOwner {
    DomainOwner { game_id: stack.demo().game_id.clone(), namespace_id: stack.demo().namespace_id.clone() }
}

/// A find of a page: `query` as in the address, headers as given.
async fn find(stack: &TestStack, query: &str, headers: &[(&str, &[u8])]) -> Answer {
    let path = format!("/matchmaker/lobbies/find{query}");
    let body = json!({ "game_modes": ["arena"] }).to_string();
    send(stack, &Method::POST, &path, headers, body).await
}

async fn find_from(stack: &TestStack, origin: &str) -> Answer {
    find(stack, "", &[("origin", origin.as_bytes())]).await
}

#[tokio::test]
async fn a_page_of_a_registered_domain_needs_no_token() {
    let stack = stack_with_domain().await;
    for origin in [
        "https://play.example",
        "http://play.example",
        "https://play.example:8443",
        "https://PLAY.Example",
        "https://play.example.",
        "https://play.example/a/page?x=1#y",
    ] {
        let answer = find_from(&stack, origin).await;
        assert_eq!(answer.status, 200, "{origin}: {}", answer.body);
        let seat = stack.seat(&answer);
        assert_eq!(seat.namespace_id, stack.demo().namespace_id, "{origin}");
    }
}

#[tokio::test]
async fn any_other_origin_is_nobody() {
    let stack = stack_with_domain().await;
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
        assert_eq!(find_from(&stack, origin).await.refusal(), UNAUTHORIZED, "{origin}");
    }
}

#[tokio::test]
async fn an_address_never_matches_even_if_it_were_registered() {
    let stack = TestStack::start().await;
    for host in ["127.0.0.1", "[::1]", "::1", "2130706433"] {
        let owner = owner(&stack);
        let write = stack.store().client().put_item();
        let write = write
            .table_name(&stack.store().tables().catalog)
            .item("pk", AttributeValue::S(format!("DOMAIN#{host}")))
            .item("sk", AttributeValue::S("DOMAIN".to_owned()))
            .item("game_id", AttributeValue::S(owner.game_id.to_string()))
            .item("namespace_id", AttributeValue::S(owner.namespace_id.to_string()));
        let _written = write.send().await.unwrap();
    }
    for origin in [
        "http://127.0.0.1",
        "http://127.0.0.1:3000",
        "http://[::1]",
        "http://[::1]:3000",
        "http://2130706433",
        "http://127.1",
        "http://0x7f.1",
    ] {
        assert_eq!(find_from(&stack, origin).await.refusal(), UNAUTHORIZED, "{origin}");
    }
}

#[tokio::test]
async fn the_origin_may_stand_in_the_query() {
    let stack = stack_with_domain().await;
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
        let answer = find(&stack, query, &[]).await;
        assert_eq!(answer.status, status, "{query}: {}", answer.body);
    }
}

#[tokio::test]
async fn the_origin_header_wins_over_the_query() {
    let stack = stack_with_domain().await;
    let (ours, theirs) = ("https://play.example", "https://evil.example");
    for (header, query, status) in
        [(ours, theirs, 200), (ours, "null", 200), (theirs, ours, 401), ("null", ours, 401)]
    {
        let headers = [("origin", header.as_bytes())];
        let answer = find(&stack, &format!("?origin={query}"), &headers).await;
        assert_eq!(answer.status, status, "{header}, {query}: {}", answer.body);
    }
}

#[tokio::test]
async fn a_token_that_is_shown_counts_and_the_origin_does_not() {
    let stack = stack_with_domain().await;
    let ours: (&str, &[u8]) = ("origin", b"https://play.example");
    let tokens = &stack.demo().tokens;
    for (token, refusal) in [
        ("x", (401, "TOKEN_INVALID")),
        (tokens.server.as_str(), (403, "CLAIMS_MISSING_ENTITLEMENT")),
        (tokens.cloud.as_str(), (403, "CLAIMS_MISSING_ENTITLEMENT")),
    ] {
        let bearer = format!("Bearer {token}");
        let answer = find(&stack, "", &[ours, ("authorization", bearer.as_bytes())]).await;
        assert_eq!(answer.refusal(), refusal);
    }
    let bearer = format!("Bearer {}", tokens.public);
    let theirs: (&str, &[u8]) = ("origin", b"https://evil.example");
    let answer = find(&stack, "", &[theirs, ("authorization", bearer.as_bytes())]).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
}

#[tokio::test]
async fn a_namespace_can_forbid_tokenless_callers() {
    let stack = stack_with_domain().await;
    let origin = "https://play.example";
    for (enabled, status) in [(true, 200), (false, 401), (true, 200)] {
        let (game_id, namespace_id) = (&stack.demo().game_id, &stack.demo().namespace_id);
        let value = AttributeValue::Bool(enabled);
        let attribute = "enable_domain_public_auth";
        write_to_namespace(&stack, game_id, namespace_id, attribute, value).await;
        stack.clock.advance(SETTINGS_AGE_MAX);
        assert_eq!(find_from(&stack, origin).await.status, status, "enabled: {enabled}");
        let with_token = stack.find(json!({ "game_modes": ["arena"] })).await;
        assert_eq!(with_token.status, 200, "tokens count all the same");
    }
}

#[tokio::test]
async fn a_domain_registered_later_is_known_a_second_after() {
    let stack = TestStack::start().await;
    let origin = "https://late.example";
    assert_eq!(find_from(&stack, origin).await.refusal(), UNAUTHORIZED);
    let host = OriginHost::parse(origin).unwrap();
    let added = stack.store().add_domain(&host, &owner(&stack)).await.unwrap();
    assert_eq!(added, NameOutcome::Created);
    stack.clock.advance(SETTINGS_AGE_MAX);
    assert_eq!(find_from(&stack, origin).await.status, 200);
}

#[tokio::test]
async fn a_domain_belongs_to_one_namespace() {
    let stack = stack_with_domain().await;
    let other = DomainOwner { namespace_id: stack.demo().other_namespace_id.clone(), ..owner(&stack) };
    let host = OriginHost::parse("https://play.example").unwrap();
    let taken = stack.store().add_domain(&host, &other).await.unwrap();
    assert_eq!(taken, NameOutcome::Taken);
    let second = OriginHost::parse("https://staging.example").unwrap();
    let added = stack.store().add_domain(&second, &other).await.unwrap();
    assert_eq!(added, NameOutcome::Created);
    for (origin, namespace_id) in [
        ("https://play.example", &stack.demo().namespace_id),
        ("https://staging.example", &stack.demo().other_namespace_id),
    ] {
        let answer = find_from(&stack, origin).await.expect_ok();
        assert_eq!(stack.seat(&answer).namespace_id, *namespace_id, "{origin}");
    }
}

#[tokio::test]
async fn an_origin_opens_no_cloud_operation() {
    let stack = stack_with_domain().await;
    for operation in super::Operation::with(super::Right::Cloud) {
        let headers: [(&str, &[u8]); 1] = [("origin", b"https://play.example")];
        let answer = operation.call_with_headers(&stack, &headers).await;
        assert_eq!(answer.refusal(), UNAUTHORIZED, "{operation:?}");
    }
}
