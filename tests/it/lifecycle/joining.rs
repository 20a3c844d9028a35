//! The other ways in: joining by identifier, lobbies of players' own.

use std::{collections::BTreeSet, time::Duration};

use aws_sdk_dynamodb::types::AttributeValue;
use futures_util::future::join_all;
use harness::{TestGame, TestStack};
use http::Method;
use serde_json::{Value, json};
use shared::{cloud::provision::add_version, models::rights::GameRight};

use super::{CLOSED, find, find_existing, game};

async fn start(name: &str, mode: Value) -> (TestStack, TestGame) {
    let stack = TestStack::start().await;
    let game = game(&stack, name, mode).await;
    game.register(&stack, "one", json!({ "capacity": 9, "lease_seconds": 0 })).await;
    (stack, game)
}

fn custom() -> Value {
    json!({ "taggable": true, "allow_dynamic_max_players": true, "actions": { "create": { "enabled": true } } })
}

/// Has the namespace run a new version, unseen by instances that know its settings.
async fn deploy(stack: &TestStack, game: &TestGame, config: Value) -> String {
    let (store, config) = (stack.store(), serde_json::from_value(config).unwrap());
    let added = add_version(store, &stack.ambient(), game.game_id(), "2".to_owned(), config).await;
    let version_id = added.unwrap().version_id;
    let right = GameRight::of_operator(game.game_id().clone());
    let right = right.on_namespace(game.namespace_id(), store).await.unwrap();
    store.set_version(&right, &version_id, stack.clock.now()).await.unwrap();
    version_id.to_string()
}

async fn create(stack: &TestStack, game: &TestGame, fields: Value) -> harness::Answer {
    let mut body = json!({ "game_mode": "arena" });
    for (name, value) in fields.as_object().into_iter().flatten() {
        body[name] = value.clone();
    }
    game.play(stack, "lobbies/create", body).await
}

#[tokio::test]
async fn no_player_enters_a_lobby_that_only_a_later_release_understands() {
    let stack = TestStack::start().await;
    let modes = json!({ "arena": { "regions": ["fra"], "max_players": 8 } });
    let game = stack.make_game("later", modes, 9, 9).await;
    let criteria = json!({ "game_modes": ["arena"] });
    let udp = AttributeValue::S("quic".to_owned());
    for (path, value) in
        [("#stage", AttributeValue::S("paused".to_owned())), ("#ports.#default.#protocol", udp)]
    {
        let first = game.find(&stack, criteria.clone()).await.expect_ok();
        stack.alter_lobby(&first.lobby_id(), &format!("SET {path} = :value"), &[(":value", value)]).await;

        let join = game.join(&stack, &first.lobby_id()).await;
        assert_eq!(join.refusal(), (400, "MATCHMAKER_LOBBY_NOT_FOUND"), "{path}");
        let second = game.find(&stack, criteria.clone()).await.expect_ok();
        assert_ne!(second.lobby_id(), first.lobby_id(), "{path}");
        let lobby = game.lobby(&stack, &first.lobby_id()).await;
        assert_eq!((lobby.taken, lobby.reserved.len()), (1, 1), "{path}");
        for lobby in stack.all_lobbies(game.namespace_id()).await {
            let end = json!({ "lobby_id": lobby.lobby_id });
            game.serve(&stack, "end-lobby", end).await.expect_ok();
        }
    }
}

#[tokio::test]
async fn a_join_obeys_the_direct_capacity_and_a_find_the_normal_one() {
    let (stack, game) = start("direct", json!({ "max_players": 2, "max_players_direct": 4 })).await;
    let lobby_id = find(&stack, &game).await.expect_ok().lobby_id();
    assert_eq!(find(&stack, &game).await.expect_ok().lobby_id(), lobby_id);
    assert_eq!(find_existing(&stack, &game).await.refusal(), (400, "MATCHMAKER_NO_AVAILABLE_LOBBIES"));
    let answers = join_all((0..20).map(|_| game.join(&stack, &lobby_id))).await;
    let seats: BTreeSet<_> = answers
        .iter()
        .filter(|answer| answer.status.is_success())
        .map(|answer| stack.seat(answer).seat_id.to_string())
        .collect();
    assert_eq!(seats.len(), 2, "I1");
    let refused = answers.iter().filter(|answer| answer.status == 400);
    assert!(refused.clone().all(|answer| answer.refusal() == (400, "MATCHMAKER_LOBBY_FULL")));
    assert_eq!(refused.count(), 18);
    assert_eq!(game.lobby(&stack, &lobby_id).await.taken, 4);
}

#[tokio::test]
async fn a_join_takes_over_seats_that_lapsed() {
    let (stack, game) = start("lapsed", json!({ "max_players": 1, "max_players_direct": 2 })).await;
    let lobby_id = find(&stack, &game).await.expect_ok().lobby_id();
    game.join(&stack, &lobby_id).await.expect_ok();
    assert_eq!(game.join(&stack, &lobby_id).await.refusal(), (400, "MATCHMAKER_LOBBY_FULL"));
    stack.clock.advance(Duration::from_secs(120));
    for _ in 0..2 {
        let seat = game.join(&stack, &lobby_id).await.expect_ok();
        game.connect(&stack, &seat).await.expect_ok();
    }
    assert_eq!(game.join(&stack, &lobby_id).await.refusal(), (400, "MATCHMAKER_LOBBY_FULL"));
    let lobby = game.lobby(&stack, &lobby_id).await;
    assert_eq!((lobby.taken, lobby.connected.len(), lobby.reserved.len()), (2, 2, 0), "I1");
}

#[tokio::test]
async fn a_find_takes_over_ninety_lapsed_seats_at_once() {
    let (stack, game) = start("beyond", json!({ "max_players": 2, "max_players_direct": 91 })).await;
    let lobby_id = find(&stack, &game).await.expect_ok().lobby_id();
    for answer in join_all((0..90).map(|_| game.join(&stack, &lobby_id))).await {
        answer.expect_ok();
    }
    assert_eq!(find_existing(&stack, &game).await.refusal(), (400, "MATCHMAKER_NO_AVAILABLE_LOBBIES"));
    stack.clock.advance(Duration::from_secs(120));
    assert_eq!(find_existing(&stack, &game).await.expect_ok().lobby_id(), lobby_id);
    assert_eq!(game.lobby(&stack, &lobby_id).await.taken, 2, "I1");
}

#[tokio::test]
async fn a_closed_lobby_can_be_joined_and_stays_unfindable() {
    let (stack, game) = start("closed", json!({})).await;
    let lobby_id = find(&stack, &game).await.expect_ok().lobby_id();
    game.host(&stack, &lobby_id, CLOSED, json!({ "is_closed": true })).await.expect_ok();
    let seat = game.join(&stack, &lobby_id).await.expect_ok();
    assert_eq!(find_existing(&stack, &game).await.refusal(), (400, "MATCHMAKER_NO_AVAILABLE_LOBBIES"), "I6");
    game.disconnect(&stack, &seat).await.expect_ok();
    assert_eq!(find_existing(&stack, &game).await.refusal(), (400, "MATCHMAKER_NO_AVAILABLE_LOBBIES"), "I6");
    assert!(game.lobby(&stack, &lobby_id).await.closed);
}

#[tokio::test]
async fn lobbies_of_other_namespaces_and_none_at_all_are_not_found() {
    let (stack, here) = start("here", json!({})).await;
    let there = game(&stack, "there", json!({})).await;
    there.register(&stack, "one", json!({})).await;
    let theirs = find(&stack, &there).await.expect_ok().lobby_id();
    let before = there.lobby(&stack, &theirs).await;
    for lobby_id in [theirs.as_str(), "00000000-0000-0000-0000-000000000000", "no lobby", ""] {
        let answer = here.join(&stack, lobby_id).await;
        assert_eq!(answer.refusal(), (400, "MATCHMAKER_LOBBY_NOT_FOUND"), "{lobby_id:?}");
        let answer = here.end_lobby(&stack, lobby_id).await;
        assert_eq!(answer.refusal(), (400, "MATCHMAKER_LOBBY_NOT_FOUND"), "{lobby_id:?}");
    }
    let path = format!("/matchmaker/lobbies/{theirs}/state");
    let state = stack.call(Method::GET, &path, Some(&here.public), "").await;
    assert_eq!(state.refusal(), (400, "MATCHMAKER_LOBBY_NOT_FOUND"));
    assert_eq!(there.lobby(&stack, &theirs).await, before, "I11");
}

#[tokio::test]
async fn a_mode_can_forbid_joins_and_lobbies_of_players_own() {
    let (stack, game) = start("forbidden", json!({ "actions": { "join": { "enabled": false } } })).await;
    let lobby_id = find(&stack, &game).await.expect_ok().lobby_id();
    for (answer, code) in [
        (game.join(&stack, &lobby_id).await, "MATCHMAKER_JOIN_DISABLED"),
        (create(&stack, &game, json!({})).await, "MATCHMAKER_CUSTOM_LOBBIES_DISABLED"),
    ] {
        assert_eq!(answer.refusal(), (400, code));
        assert_eq!(answer.body["metadata"], json!({ "game_mode": "arena" }));
    }
}

#[tokio::test]
async fn a_lobby_of_an_old_version_stays_joinable_under_that_versions_rules() {
    let (stack, game) = start("old", json!({ "max_players_direct": 5 })).await;
    let lobby_id = find(&stack, &game).await.expect_ok().lobby_id();
    let config = json!({ "game_modes": { "arena": { "regions": ["fra"], "max_players": 4,
                         "actions": { "join": { "enabled": false } } } } });
    deploy(&stack, &game, config).await;
    stack.clock.advance(Duration::from_secs(31));
    let newer = find(&stack, &game).await.expect_ok().lobby_id();
    assert_ne!(newer, lobby_id, "I6");
    game.join(&stack, &lobby_id).await.expect_ok();
    assert_eq!(game.join(&stack, &newer).await.refusal(), (400, "MATCHMAKER_JOIN_DISABLED"));
}

#[tokio::test]
async fn a_private_lobby_is_never_found_or_listed_and_joined_by_its_identifier() {
    let (stack, game) = start("private", custom()).await;
    let config = json!({ "rounds": 3, "map": ["a", "b"] });
    let own = create(&stack, &game, json!({ "max_players": 2, "lobby_config": config })).await.expect_ok();
    let lobby_id = own.lobby_id();
    let find_tagless = || find_existing(&stack, &game);
    assert_eq!(find_tagless().await.refusal(), (400, "MATCHMAKER_NO_AVAILABLE_LOBBIES"), "I6");
    let list = stack.call(Method::GET, "/matchmaker/lobbies/list", Some(&game.public), "").await.expect_ok();
    assert_eq!(list.body["lobbies"], json!([]));

    let answer = game.heartbeat(&stack, "one").await.expect_ok();
    assert_eq!(answer.body["lobbies"][0]["lobby_config"], config, "the lobby server learns it");
    assert_eq!(answer.body["lobbies"][0]["max_players"], 2);

    let friend = game.join(&stack, &lobby_id).await.expect_ok();
    assert_eq!(game.join(&stack, &lobby_id).await.refusal(), (400, "MATCHMAKER_LOBBY_FULL"));
    // Neither reopening nor a seat that becomes free brings it into sight.
    for is_closed in [true, false] {
        game.host(&stack, &lobby_id, CLOSED, json!({ "is_closed": is_closed })).await.expect_ok();
    }
    game.disconnect(&stack, &friend).await.expect_ok();
    assert_eq!(find_tagless().await.refusal(), (400, "MATCHMAKER_NO_AVAILABLE_LOBBIES"), "I6");
    game.connect(&stack, &own).await.expect_ok();
    game.disconnect(&stack, &own).await.expect_ok();
    let ids = [lobby_id.parse().unwrap()];
    let data = stack.store().lobby_data(&ids, shared::store::lobby_data::Part::Config);
    assert!(data.await.unwrap().is_empty(), "its configuration ends with it");
}

#[tokio::test]
async fn a_public_lobby_of_a_players_own_is_found_like_any_other() {
    let (stack, game) = start("public", custom()).await;
    let fields =
        json!({ "publicity": "public", "tags": { "map": "harbour" }, "region": "fra", "max_players": 3 });
    let own = create(&stack, &game, fields).await.expect_ok();
    let body = json!({ "game_modes": ["arena"], "regions": ["fra"], "tags": { "map": "harbour" },
                       "prevent_auto_create_lobby": true });
    assert_eq!(game.find(&stack, body).await.expect_ok().lobby_id(), own.lobby_id());
    let lobby = game.lobby(&stack, &own.lobby_id()).await;
    assert_eq!((lobby.max_players, lobby.max_players_direct), (3, 3), "a request's size sets both");
}

#[tokio::test]
async fn each_lobby_of_players_own_is_a_new_one_up_to_the_cap() {
    let stack = TestStack::start().await;
    let mut mode = json!({ "regions": ["fra"], "max_players": 4 });
    mode["actions"] = custom()["actions"].clone();
    let game = stack.make_game("own", json!({ "arena": mode }), 5, 9).await;
    let answers = join_all((0..12).map(|_| create(&stack, &game, json!({})))).await;
    let lobbies: BTreeSet<_> =
        answers.iter().filter(|answer| answer.status == 200).map(harness::Answer::lobby_id).collect();
    assert_eq!(lobbies.len(), 5, "I2");
    let refused: Vec<_> = answers.iter().filter(|answer| answer.status != 200).collect();
    assert!(refused.iter().all(|answer| answer.refusal() == (400, "MATCHMAKER_TOO_MANY_LOBBIES")));
    assert_eq!((refused.len(), stack.all_lobbies(game.namespace_id()).await.len()), (7, 5));
}

#[tokio::test]
async fn a_configuration_has_up_to_16_kib_and_may_be_null_like_the_other_fields() {
    let (stack, game) = start("rules", custom()).await;
    create(&stack, &game, json!({ "lobby_config": "x".repeat(16 * 1024 - 2) })).await.expect_ok();
    create(&stack, &game, json!({ "lobby_config": null, "region": null, "tags": null })).await.expect_ok();
}

#[tokio::test]
async fn an_identifier_that_a_player_typed_joins_in_any_case_and_with_blanks_around() {
    let (stack, game) = start("typed", custom()).await;
    let made = create(&stack, &game, json!({})).await.expect_ok().lobby_id();
    for typed in [made.to_uppercase(), format!("  {made}\n"), format!("\t{}", made.to_uppercase())] {
        assert_eq!(game.join(&stack, &typed).await.expect_ok().lobby_id(), made, "{typed:?}");
    }
    let inside = format!("{} {}", &made[..8], &made[8..]);
    for typed in ["", "  ", &inside] {
        let refused = game.join(&stack, typed).await;
        assert_eq!(refused.refusal(), (400, "MATCHMAKER_LOBBY_NOT_FOUND"), "{typed:?}");
    }
}

#[tokio::test]
async fn a_client_of_another_version_gets_no_seat_and_is_told_the_current_one() {
    let mut mode = custom();
    mode["max_players"] = json!(8);
    let (stack, game) = start("outdated", mode).await;
    let current = game.created.version.version_id.to_string();
    let found =
        game.find(&stack, json!({ "game_modes": ["arena"], "version_id": current })).await.expect_ok();
    let requests = |version: Value| {
        [
            ("lobbies/find", json!({ "game_modes": ["arena"], "version_id": version })),
            ("lobbies/join", json!({ "lobby_id": found.lobby_id(), "version_id": version })),
            ("lobbies/create", json!({ "game_mode": "arena", "version_id": version })),
        ]
    };
    for (path, body) in requests(json!("of-yesterday")) {
        let refused = game.play(&stack, path, body).await;
        assert_eq!(refused.refusal(), (400, "MATCHMAKER_VERSION_OUTDATED"), "{path}");
        assert_eq!(refused.body["metadata"], json!({ "current": current }), "{path}");
    }
    for (path, body) in requests(json!(null)).into_iter().chain(requests(json!(current))) {
        game.play(&stack, path, body).await.expect_ok();
    }
    let seats = game.lobby(&stack, &found.lobby_id()).await;
    assert_eq!((seats.taken, seats.reserved.len()), (5, 5), "I4: no seat for the refused");
}

#[tokio::test]
async fn a_client_newer_than_the_settings_of_an_instance_is_seated_at_once() {
    let (stack, game) = start("newer", json!({})).await;
    let instance = stack.instance();
    let old = game.created.version.version_id.to_string();
    let find = async |version: &str| {
        let body = json!({ "game_modes": ["arena"], "version_id": version });
        instance.find(&game.public, &body).await.map_err(|error| error.status_and_code().1)
    };
    find(&old).await.unwrap();
    let new = deploy(&stack, &game, json!({ "game_modes": { "arena": { "regions": ["fra"] } } })).await;
    assert_eq!(find(&new).await.err(), Some("MATCHMAKER_VERSION_OUTDATED"), "within a second");
    stack.clock.advance(Duration::from_secs(1));
    find(&new).await.unwrap();
    // A client that nobody knows makes an instance read the settings once a second.
    let before = instance.usage();
    for _ in 0..3 {
        assert_eq!(find("unknown").await.err(), Some("MATCHMAKER_VERSION_OUTDATED"));
    }
    assert_eq!((instance.usage() - before).calls, 0);
    assert_eq!(find(&old).await.err(), Some("MATCHMAKER_VERSION_OUTDATED"));
}
