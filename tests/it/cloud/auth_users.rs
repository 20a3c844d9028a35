//! auth-user: which hashes and names count, and how many users there can be.

use std::collections::BTreeSet;

use aws_sdk_dynamodb::types::AttributeValue;
use bcrypt::{HashParts, Version};
use futures_util::future::join_all;
use harness::{Answer, TestStack};
use http::Method;
use serde_json::{Value, json};

use super::call;

const INVALID_PASSWORD: (u16, &str) = (400, "CDN_INVALID_AUTH_USER_PASSWORD");
const TOO_MANY: (u16, &str) = (400, "CDN_TOO_MANY_AUTH_USERS");

fn made(cost: u32) -> HashParts {
    bcrypt::hash_with_salt("correct horse", cost, [7; 16]).unwrap()
}

/// A hash at the lowest cost.
pub(super) fn hash() -> String {
    made(4).format_for_version(Version::TwoB)
}

async fn add(stack: &TestStack, user: impl Into<Value>, password: &str) -> Answer {
    let body = json!({ "user": user.into(), "password": password });
    call(stack, Method::POST, "auth-user", body).await
}

async fn users(stack: &TestStack) -> BTreeSet<String> {
    let right = stack.right(&stack.demo().namespace_id).await;
    let cdn = stack.store().cdn_settings(&right).await.unwrap();
    cdn.users.into_iter().collect()
}

/// The hash that is kept of a user.
async fn stored_hash(stack: &TestStack, user: &str) -> String {
    let (game_id, namespace_id) = (&stack.demo().game_id, &stack.demo().namespace_id);
    let read = stack.store().client().get_item();
    let read = read
        .table_name(&stack.store().tables().catalog)
        .key("pk", AttributeValue::S(format!("GAME#{game_id}")))
        .key("sk", AttributeValue::S(format!("CDN#{namespace_id}")))
        .consistent_read(true);
    let item = read.send().await.unwrap().item.unwrap();
    item["users"].as_m().unwrap()[user].as_s().unwrap().clone()
}

#[tokio::test]
async fn hashes_made_by_the_bcrypt_crate_pass() {
    let stack = TestStack::start().await;
    for cost in [4, 10, 12] {
        let hash = made(cost);
        for (name, version) in [("2a", Version::TwoA), ("2b", Version::TwoB), ("2y", Version::TwoY)] {
            let (user, hash) = (format!("{name}-{cost}"), hash.format_for_version(version));
            let answer = add(&stack, user.as_str(), &hash).await;
            assert_eq!(answer.expect_ok().body, json!({}), "{user}");
            assert_eq!(stored_hash(&stack, &user).await, hash, "kept as it came");
        }
    }
    assert_eq!(users(&stack).await.len(), 9);
}

#[tokio::test]
async fn every_cost_that_bcrypt_knows_passes() {
    let stack = TestStack::start().await;
    for cost in 4..=31 {
        let hash = hash().replacen("$04$", &format!("${cost:02}$"), 1);
        let _set = add(&stack, "costly", &hash).await.expect_ok();
    }
}

#[tokio::test]
async fn what_is_no_bcrypt_hash_is_refused() {
    let stack = TestStack::start().await;
    let hash = hash();
    let with = |at: usize, c: &str| format!("{}{c}{}", &hash[..at], &hash[at + 1..]);
    let swap = |from: &str, to: &str| hash.replacen(from, to, 1);
    for (why, text) in [
        ("nothing", String::new()),
        ("plain text", "correct horse battery staple".to_owned()),
        ("60 characters of plain text", "x".repeat(60)),
        ("another algorithm", format!("$argon2id$v=19${}", "A".repeat(45))),
        ("an Apache hash", format!("$apr1$AAAAAAAA${}", "A".repeat(45))),
        ("$2x$", swap("$2b$", "$2x$")),
        ("$2c$", swap("$2b$", "$2c$")),
        ("$2B$", swap("$2b$", "$2B$")),
        ("$2$", swap("$2b$", "$2$")),
        ("$2$ in 60 characters", format!("{}A", swap("$2b$", "$2$"))),
        ("cost 00", swap("$04$", "$00$")),
        ("cost 03", swap("$04$", "$03$")),
        ("cost 32", swap("$04$", "$32$")),
        ("cost 99", swap("$04$", "$99$")),
        ("cost +4", swap("$04$", "$+4$")),
        ("cost 4", swap("$04$", "$4$")),
        ("cost 004", swap("$04$", "$004$")),
        ("59 characters", hash[..59].to_owned()),
        ("59 characters, the salt one short", hash[..20].to_owned() + &hash[21..]),
        ("61 characters", format!("{hash}.")),
        ("a line feed behind", format!("{hash}\n")),
        ("a space before", format!(" {hash}")),
        ("a NUL behind", format!("{hash}\0")),
        ("a salt character outside the alphabet", with(20, "-")),
        ("a salt character outside the alphabet", with(7, "+")),
        ("a hash character outside the alphabet", with(40, "_")),
        ("a hash character outside the alphabet", with(59, "=")),
        ("a hash character of two bytes", with(40, "ä")),
        ("a two-byte character in 60 bytes", format!("{}ä{}", &hash[..40], &hash[42..])),
        ("unused bits in the salt", with(28, "/")),
        ("unused bits in the salt", with(28, "P")),
        ("unused bits in the hash", with(59, "/")),
        ("unused bits in the hash", with(59, "B")),
        ("a dollar missing", with(6, ".")),
    ] {
        assert_eq!(add(&stack, "u", &text).await.refusal(), INVALID_PASSWORD, "{why}");
    }
    assert_eq!(users(&stack).await, BTreeSet::new());
}

#[tokio::test]
async fn a_name_is_what_http_basic_can_carry() {
    let stack = TestStack::start().await;
    let hash = hash();
    let names = [
        "a".to_owned(),
        "Grüße aus Köln".to_owned(),
        " ".to_owned(),
        "a.b#c[0]".to_owned(),
        "users".to_owned(),
        "#user".to_owned(),
        "\"user\"".to_owned(),
        "x".repeat(128),
        "ü".repeat(128),
        "🎲".repeat(128),
    ];
    for name in &names {
        let _set = add(&stack, name.as_str(), &hash).await.expect_ok();
    }
    let expected: BTreeSet<_> = names.into_iter().collect();
    assert_eq!(users(&stack).await, expected);

    for name in [
        String::new(),
        ":".to_owned(),
        "a:b".to_owned(),
        "a\nb".to_owned(),
        "a\rb".to_owned(),
        "a\tb".to_owned(),
        "\0".to_owned(),
        "a\u{7f}".to_owned(),
        "a\u{85}b".to_owned(),
        "x".repeat(129),
        "🎲".repeat(129),
        "x".repeat(60_000),
    ] {
        assert_eq!(
            add(&stack, name.as_str(), &hash).await.refusal(),
            (400, "CDN_INVALID_AUTH_USER"),
            "{:?}",
            name.chars().take(8).collect::<String>()
        );
    }
    assert_eq!(users(&stack).await, expected);
}

#[tokio::test]
async fn a_known_user_gets_the_new_hash() {
    let stack = TestStack::start().await;
    let (first, second) = (hash(), made(5).format_for_version(Version::TwoY));
    for hash in [&first, &first, &second, &first] {
        let _set = add(&stack, "nightly", hash).await.expect_ok();
        assert_eq!(stored_hash(&stack, "nightly").await, *hash);
    }
    assert_eq!(users(&stack).await, BTreeSet::from(["nightly".to_owned()]));
}

#[tokio::test]
async fn a_namespace_has_at_most_32_users_and_each_can_be_replaced() {
    let stack = TestStack::start().await;
    let (first, second) = (hash(), made(5).format_for_version(Version::TwoB));
    let names: BTreeSet<_> = (0..32).map(|index| format!("user-{index}")).collect();
    for name in &names {
        let _set = add(&stack, name.as_str(), &first).await.expect_ok();
    }
    for _ in 0..2 {
        assert_eq!(add(&stack, "user-32", &first).await.refusal(), TOO_MANY);
    }
    for name in &names {
        let _set = add(&stack, name.as_str(), &second).await.expect_ok();
        assert_eq!(stored_hash(&stack, name).await, second);
    }
    assert_eq!(add(&stack, "user-32", "plain").await.refusal(), INVALID_PASSWORD);
    assert_eq!(users(&stack).await, names);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_40_users_added_at_once_exactly_the_32_that_succeeded_exist() {
    let stack = TestStack::start().await;
    let hash = hash();
    let names: Vec<_> = (0..40).map(|index| format!("user-{index}")).collect();
    let answers = join_all(names.iter().map(|name| add(&stack, name.as_str(), &hash))).await;
    let mut added = BTreeSet::new();
    for (name, answer) in names.iter().zip(&answers) {
        if answer.status == 200 {
            added.insert(name.clone());
        } else {
            assert_eq!(answer.refusal(), TOO_MANY, "{name}");
        }
    }
    assert_eq!(users(&stack).await, added);
    assert_eq!(added.len(), 32);
}

#[tokio::test(flavor = "multi_thread")]
async fn users_replaced_at_once_are_all_kept() {
    let stack = TestStack::start().await;
    let (first, second) = (hash(), made(5).format_for_version(Version::TwoB));
    let names: BTreeSet<_> = (0..32).map(|index| format!("user-{index}")).collect();
    for name in &names {
        let _set = add(&stack, name.as_str(), &first).await.expect_ok();
    }
    for answer in join_all(names.iter().map(|name| add(&stack, name.as_str(), &second))).await {
        let _set = answer.expect_ok();
    }
    assert_eq!(users(&stack).await, names);
    for name in &names {
        assert_eq!(stored_hash(&stack, name).await, second, "{name}");
    }
}
