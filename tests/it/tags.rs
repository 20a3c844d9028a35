//! Lobbies with tags: what they cost others, and that they are found by them.

#![expect(clippy::unwrap_used, reason = "this is test code: what cannot go on panics")]

use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use aws_sdk_dynamodb::types::{AttributeValue, PutRequest, WriteRequest};
use harness::{TestGame, TestStack, instance::Instance, interference::Before};
use serde_json::{Value, json};
use shared::{
    base::usage::Usage,
    models::{
        availability::{Access, Refusal},
        errors::Error,
        ids::SeatId,
        seats::Seats,
        tag_digests::TagDigests,
    },
    store::seats::{Hiding, PartyCapacity, SeatClaim, SeatOutcome},
};

/// The most tags that a lobby can have, of the greatest length: 5 KB.
fn longest_tags(n: usize) -> Value {
    (0..8).map(|tag| (format!("{tag:x<128}"), json!(format!("{n:x<512}")))).collect()
}

fn taggable() -> Value {
    let create = json!({ "create": { "enabled": true } });
    json!({ "arena": { "regions": ["fra"], "max_players": 10, "taggable": true, "actions": create } })
}

async fn create(stack: &TestStack, game: &TestGame, tags: &Value) -> String {
    let body = json!({ "game_mode": "arena", "publicity": "public", "tags": tags });
    game.play(stack, "lobbies/create", body).await.expect_ok().lobby_id()
}

/// What a warm instance's find costs beside 20 open lobbies with these tags.
async fn cost_beside(tags: impl Fn(usize) -> Value) -> Usage {
    let stack = TestStack::start().await;
    let game = stack.make_game("beside", taggable(), 99, 99).await;
    let instance = stack.instance();
    instance.warm_up(&game.public, &game.pool("arena", "fra")).await;
    for n in 0..20 {
        create(&stack, &game, &tags(n)).await;
    }
    let before = instance.usage();
    instance.find(&game.public, &json!({ "game_modes": ["arena"] })).await.unwrap();
    instance.usage() - before
}

#[tokio::test]
async fn the_length_of_others_tags_makes_no_find_dearer() {
    let plain = cost_beside(|_| json!({})).await;
    let tagged = cost_beside(longest_tags).await;
    println!("beside 20 lobbies without tags {plain:?}, with 5 KB of them {tagged:?}");
    assert_eq!(tagged.calls, plain.calls);
    assert!(tagged.read_units <= plain.read_units + 1.0, "{tagged:?}");
    assert!(tagged.write_units <= 2.0, "{tagged:?}");
}

/// Puts `count` copies of an open lobby beside it, each under an identifier of its own.
async fn copy(stack: &TestStack, lobby_id: &str, count: usize) {
    let (client, table) = (stack.store().client(), &stack.store().tables().lobbies);
    let key = AttributeValue::S(lobby_id.to_owned());
    let read = client.get_item().table_name(table).key("lobby_id", key).send().await.unwrap();
    let copies: Vec<_> = (0..count)
        .map(|_| {
            let mut item = read.item.clone().unwrap();
            item.insert("lobby_id".to_owned(), AttributeValue::S(stack.ambient().uuid().to_string()));
            let put = PutRequest::builder().set_item(Some(item)).build().unwrap();
            WriteRequest::builder().put_request(put).build()
        })
        .collect();
    for writes in copies.chunks(25) {
        let request = HashMap::from([(table.clone(), writes.to_vec())]);
        let written = client.batch_write_item().set_request_items(Some(request)).send().await.unwrap();
        assert!(written.unprocessed_items().is_none_or(HashMap::is_empty));
    }
}

/// The lobby that `instance` finds, and what that costs.
async fn found(instance: &Instance, game: &TestGame, body: &Value) -> (String, Usage) {
    let before = instance.usage();
    let lobby = instance.find(&game.public, body).await.unwrap().lobby;
    (lobby.lobby_id.to_string(), instance.usage() - before)
}

#[tokio::test]
async fn friends_with_the_same_tags_meet_beside_any_number_of_older_lobbies() {
    let stack = TestStack::start().await;
    let game = stack.make_game("friends", taggable(), 9_999, 9_999).await;
    let older = create(&stack, &game, &json!({ "party": "older" })).await;
    copy(&stack, &older, 1_100).await;
    stack.clock.advance(Duration::from_secs(30));
    let mut lobbies = BTreeSet::new();
    for friend in 1..=4 {
        let instance = stack.instance();
        let friends = json!({ "game_modes": ["arena"], "tags": { "party": "ours", "map": "dust" } });
        let (lobby, cost) = found(&instance, &game, &friends).await;
        println!("friend {friend}: {cost:?}");
        lobbies.insert(lobby);
        stack.clock.advance(Duration::from_millis(2_500));
    }
    assert_eq!(lobbies.len(), 1, "I9");

    // A find that may not create finds it, too, and so does its creator: by all its tags, beyond the 1,000
    // oldest.
    let own = create(&stack, &game, &json!({ "party": "own", "map": "mill" })).await;
    let existing =
        |tags: Value| json!({ "game_modes": ["arena"], "tags": tags, "prevent_auto_create_lobby": true });
    let instance = stack.instance();
    let (lobby, _) = found(&instance, &game, &existing(json!({ "party": "own", "map": "mill" }))).await;
    assert_eq!(lobby, own);
    for tags in [json!({ "party": "own" }), json!({ "party": "own", "map": "dust" })] {
        let refused = game.find(&stack, existing(tags)).await;
        assert_eq!(refused.refusal(), (400, "MATCHMAKER_NO_AVAILABLE_LOBBIES"));
    }
}

#[tokio::test]
async fn no_seat_is_taken_where_a_queried_tag_is_missing_whatever_was_read() {
    let stack = TestStack::start().await;
    let game = stack.make_game("missing", taggable(), 99, 99).await;
    let lobby_id = create(&stack, &game, &json!({ "map": "dust", "rank": "gold" })).await;
    let key = &game.created.namespaces[0].tag_key;
    for (tags, fits) in [
        (json!({}), true),
        (json!({ "map": "dust" }), true),
        (json!({ "map": "dust", "rank": "gold" }), true),
        (json!({ "map": "dust", "rank": "tin" }), false),
        (json!({ "map": "gold" }), false),
        (json!({ "map": "dust", "rank": "gold", "more": "" }), false),
    ] {
        let digests = TagDigests::of(&serde_json::from_value(tags.clone()).unwrap(), key);
        let claim = SeatClaim {
            lobby_id: lobby_id.parse().unwrap(),
            access: Access::Find(game.pool("arena", "fra"), digests),
            seats: Seats::one(SeatId::random(&stack.ambient())),
            until: stack.clock.now() + Duration::from_secs(60),
            capacity: PartyCapacity::Known(0),
            hiding: Hiding::No,
        };
        match stack.store().take_seat(&claim, stack.clock.now()).await.unwrap() {
            SeatOutcome::Taken(_) => assert!(fits, "I6: {tags}"),
            SeatOutcome::Refused(refusal, _) => assert_eq!((refusal, fits), (Refusal::TagMissing, false)),
        }
    }

    // The index shows a lobby that has the tags no more when its seat is taken: that never happens, and must
    // not matter.
    let store = stack.store().clone();
    let change = store.client().update_item().table_name(&store.tables().lobbies);
    let change = change.key("lobby_id", AttributeValue::S(lobby_id.clone()));
    let change = change.update_expression("REMOVE tag_digests");
    let happens = async move {
        change.send().await.unwrap();
    };
    let link = Before::new(stack.stack.store_link(), |call| call.operation == "UpdateItem", happens);
    let instance = stack.instance_over(link);
    let tagged =
        json!({ "game_modes": ["arena"], "tags": { "map": "dust" }, "prevent_auto_create_lobby": true });
    let refused = instance.find(&game.public, &tagged).await;
    assert!(matches!(refused, Err(Error::NoAvailableLobbies)), "I6: {refused:?}");
}

#[tokio::test]
async fn tags_are_shown_to_the_lobbys_server_and_go_with_the_lobby() {
    let stack = TestStack::start().await;
    let game = stack.make_game("shown", taggable(), 99, 0).await;
    game.register(&stack, "one", json!({ "capacity": 9 })).await;
    let tags = json!({ "map": "dust", "rank": "gold" });
    let lobby_id = create(&stack, &game, &tags).await;
    let plain = create(&stack, &game, &json!({})).await;
    let response = game.heartbeat(&stack, "one").await.expect_ok();
    let lobbies = response.body["lobbies"].as_array().unwrap();
    let of = |id: &str| lobbies.iter().find(|lobby| lobby["lobby_id"] == id).map(|lobby| &lobby["tags"]);
    assert_eq!((of(&lobby_id), of(&plain)), (Some(&tags), Some(&json!({}))));
    let lobby = game.lobby(&stack, &lobby_id).await;
    let kept = async || stack.store().lobby_tags([&lobby]).await.unwrap();
    assert_eq!(json!(kept().await[&lobby.lobby_id]), tags);
    game.end_lobby(&stack, &lobby_id).await.expect_ok();
    assert!(kept().await.is_empty());
}

#[tokio::test]
async fn a_find_that_may_not_create_looks_at_every_lobby_that_has_its_tags_and_others() {
    let stack = TestStack::start().await;
    let mode = json!({ "regions": ["fra"], "max_players": 4, "taggable": true });
    let game = stack.make_game("superset", json!({ "arena": mode }), 99, 99).await;
    let with = |tags: Value| json!({ "game_modes": ["arena"], "tags": tags });
    let instance = stack.instance();
    // So many looks for tags in a second that the instance remembers what one showed.
    for code in 0..8 {
        instance.find(&game.public, &with(json!({ "code": code.to_string() }))).await.unwrap();
    }
    let other =
        stack.instance().find(&game.public, &with(json!({ "map": "dust", "rank": "3" }))).await.unwrap();
    let mut only_existing = with(json!({ "map": "dust" }));
    only_existing["prevent_auto_create_lobby"] = true.into();
    let found = instance.find(&game.public, &only_existing).await.unwrap();
    assert_eq!(found.lobby.lobby_id, other.lobby.lobby_id, "I8");
}
