//! Identifiers, and what is composed of them.

use std::{fmt, str::FromStr};

use proptest::{
    prelude::{any, prop_oneof},
    prop_assert_eq,
    strategy::Strategy,
    test_runner::TestCaseResult,
};
use serde_json::json;
use shared::{
    base::ambient::Timestamp,
    models::{
        ids::{
            GameId, GameMode, LobbyId, NamespaceId, RegionId, SeatId, ServerId, ServerKey, TokenId,
            VersionId, WriteId,
        },
        pool::Pool,
    },
    store::lobbies::LobbyCursor,
};

use crate::fuzz::{check, check_plain, json::text, service::Service};

/// Whether the text is an identifier: 1 to 64 of `A-Z a-z 0-9 _ -`.
fn is_identifier(text: &str) -> bool {
    let is_plain = |c| matches!(c, 'A'..='Z' | 'a'..='z' | '0'..='9' | '_' | '-');
    (1..=64).contains(&text.chars().count()) && text.chars().all(is_plain)
}

/// Texts of which about half are identifiers.
fn near_identifier() -> impl Strategy<Value = String> {
    prop_oneof![3 => "[A-Za-z0-9_-]{0,66}", 1 => "[!-~]{1,8}", 1 => text(), 1 => any::<String>()]
}

fn identifier() -> impl Strategy<Value = String> {
    "[A-Za-z0-9_-]{1,64}"
}

/// A type of identifier takes the text or not, and gives it back.
fn reads<T>(text: &str, is_accepted: bool) -> TestCaseResult
where
    T: FromStr + TryFrom<String> + Into<String> + fmt::Display + fmt::Debug + PartialEq,
{
    let parsed = text.parse::<T>().ok();
    prop_assert_eq!(parsed.is_some(), is_accepted);
    let printed = parsed.as_ref().map(ToString::to_string);
    prop_assert_eq!(printed.as_deref(), is_accepted.then_some(text));
    prop_assert_eq!(T::try_from(text.to_owned()).ok(), parsed);
    Ok(())
}

#[test]
fn an_identifier_has_1_to_64_plain_characters() {
    check_plain(near_identifier(), |text| {
        let is_accepted = is_identifier(&text);
        reads::<GameId>(&text, is_accepted)?;
        reads::<NamespaceId>(&text, is_accepted)?;
        reads::<VersionId>(&text, is_accepted)?;
        reads::<GameMode>(&text, is_accepted)?;
        reads::<RegionId>(&text, is_accepted)?;
        reads::<ServerId>(&text, is_accepted)?;
        reads::<LobbyId>(&text, is_accepted)?;
        reads::<SeatId>(&text, is_accepted)?;
        reads::<WriteId>(&text, is_accepted)?;
        reads::<TokenId>(&text, is_accepted)
    });
}

#[test]
fn a_pool_is_four_identifiers_joined_by_slashes_and_maybe_a_shard() {
    let parts = proptest::collection::vec(near_identifier(), 1..6);
    let parts = prop_oneof![parts, proptest::collection::vec(identifier(), 3..6)];
    let shard =
        prop_oneof![2 => proptest::strategy::Just(String::new()), 1 => "~[0-9]{0,3}", 1 => "~[0-9+-]{1,2}"];
    check_plain((parts, shard), |(parts, shard)| {
        let text = parts.join("/") + &shard;
        let (identifiers, shard) = text
            .split_once('~')
            .map_or((text.as_str(), None), |(identifiers, shard)| (identifiers, Some(shard)));
        let is_shard =
            |shard: &str| shard.parse::<u32>().is_ok_and(|number| number > 0 && number.to_string() == shard);
        let is_accepted = identifiers.split('/').count() == 4
            && identifiers.split('/').all(is_identifier)
            && shard.is_none_or(is_shard);
        reads::<Pool>(&text, is_accepted)
    });
}

#[test]
fn a_servers_key_is_two_identifiers_joined_by_a_slash() {
    let parts = proptest::collection::vec(near_identifier(), 1..4);
    check_plain(prop_oneof![parts, proptest::collection::vec(identifier(), 2..3)], |parts| {
        let text = parts.join("/");
        let is_accepted = text.split('/').count() == 2 && text.split('/').all(is_identifier);
        let key = ServerKey::try_from(text.clone()).ok();
        prop_assert_eq!(key.map(String::from), is_accepted.then_some(text));
        Ok(())
    });
}

/// Texts of which about half are cursors.
fn near_cursor() -> impl Strategy<Value = String> {
    let time = prop_oneof![any::<u64>().prop_map(|time| time.to_string()), "[0-9]{0,21}", "[ +0-9-]{1,4}"];
    prop_oneof![
        4 => (time, near_identifier()).prop_map(|(time, id)| format!("{time}~{id}")),
        1 => text(),
    ]
}

/// Whether the text is a time and a lobby.
fn is_cursor(text: &str) -> bool {
    let Some((time, lobby)) = text.split_once('~') else { return false };
    let is_number = !time.is_empty() && time.chars().all(|c| c.is_ascii_digit());
    is_number && time.parse::<u64>().is_ok() && is_identifier(lobby)
}

#[test]
fn a_cursor_reads_back() {
    check_plain((any::<u64>(), identifier(), near_cursor()), |(time, lobby, text)| {
        let cursor = LobbyCursor { created_at: Timestamp(time), lobby_id: lobby.parse().unwrap() };
        prop_assert_eq!(cursor.to_string().parse(), Ok(cursor));
        prop_assert_eq!(text.parse::<LobbyCursor>().is_ok(), is_cursor(&text));
        Ok(())
    });
}

#[test]
fn a_heartbeat_takes_any_cursor_and_nothing_else_for_one() {
    let service = Service::start();
    let heartbeat = service.operation("heartbeat-server");
    check(near_cursor(), |cursor| {
        let mut event = service.event(heartbeat, Some("serverToken"));
        event.json["body"] =
            json!({ "server_id": service.text("SERVER_ID"), "cursor": cursor }).to_string().into();
        let answer = service.answer(&event)?;
        let expected = if is_cursor(&cursor) { (200, "") } else { (400, "API_BAD_BODY") };
        prop_assert_eq!(answer.refusal(), expected);
        Ok(())
    });
}
