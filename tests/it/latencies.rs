//! Finds with the client's latencies: which region, and where a lobby is created.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "code of tests outside of test functions")]

use std::{collections::BTreeSet, time::Duration};

use futures_util::future::join_all;
use harness::{Answer, TestGame, TestStack, instance::Instance, instance::request, new_game};
use serde_json::{Value, json};
use shared::{base::ambient::Timestamp, models::game::Region};

/// Nearest first, with what a client in Frankfurt measures; the third and the fourth are beyond the
/// tolerance, and the fourth beyond the regions in which it creates.
const REGIONS: [(&str, f64); 5] =
    [("fra", 20.0), ("ams", 31.5), ("nyc", 95.0), ("sfo", 160.0), ("syd", 290.0)];

/// A game whose mode `arena` runs in all regions, each with a game server for so many lobbies.
async fn game(stack: &TestStack, name: &str, fields: Value, places: [u32; 5]) -> TestGame {
    game_up_to(1_000, stack, name, fields, places).await
}

/// The same that may have so many lobbies.
async fn game_up_to(
    lobbies: u32,
    stack: &TestStack,
    name: &str,
    fields: Value,
    places: [u32; 5],
) -> TestGame {
    let mut mode = json!({ "regions": REGIONS.map(|(id, _)| id), "max_players": 4, "taggable": true });
    for (field, value) in fields.as_object().into_iter().flatten() {
        mode[field] = value.clone();
    }
    let mut new = new_game(name, json!({ "arena": { "regions": ["fra"] } }), lobbies);
    new.config = serde_json::from_value(json!({ "game_modes": { "arena": mode } })).unwrap();
    for (id, _) in REGIONS {
        let region = Region {
            display_name: id.to_owned(),
            provider_display_name: "Test".to_owned(),
            latitude: 1.0,
            longitude: 2.0,
            probe: None,
            starter: None,
        };
        new.regions.insert(id.parse().unwrap(), region);
    }
    let game = stack.make_game_of(new, 0).await;
    for ((id, _), places) in REGIONS.iter().zip(places).filter(|(_, places)| *places > 0) {
        game.add_server(stack, id, id, places, Timestamp::NEVER).await;
    }
    game
}

fn latencies() -> Value {
    REGIONS.iter().map(|(id, ms)| (id.to_string(), json!(ms))).collect::<serde_json::Map<_, _>>().into()
}

fn body(fields: Value) -> Value {
    let mut body = json!({ "game_modes": ["arena"], "latencies": latencies() });
    for (field, value) in fields.as_object().into_iter().flatten() {
        body[field] = value.clone();
    }
    body
}

fn region(answer: &Answer) -> String {
    answer.body["lobby"]["region"]["region_id"].as_str().unwrap().to_owned()
}

async fn found_in(stack: &TestStack, game: &TestGame, fields: Value) -> (String, String) {
    let answer = game.find(stack, body(fields)).await.expect_ok();
    (region(&answer), answer.lobby_id())
}

/// A lobby in one region with one seat taken.
async fn lobby_in(stack: &TestStack, game: &TestGame, region_id: &str) -> String {
    let find = json!({ "game_modes": ["arena"], "regions": [region_id] });
    let lobby_id = game.find(stack, find).await.expect_ok().lobby_id();
    // Its burst is over, and the index shows it.
    stack.clock.advance(Duration::from_secs(3));
    lobby_id
}

/// A find's explanation.
async fn explained(stack: &TestStack, game: &TestGame, body: &Value) -> Value {
    let bearer = format!("Bearer {}", game.public);
    let asked = request(&[("authorization", &bearer), ("muster-explain", "1")], body);
    let found = stack.instance().call(&asked).await;
    serde_json::to_value(found.map_or_else(|_| asked.explanation(), |found| found.explain)).unwrap()
}

/// What became of each region.
fn outcomes(explanation: &Value) -> Vec<(String, String)> {
    let regions = explanation["regions"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    regions.map(|region| (text(&region["region_id"]), text(&region["outcome"]))).collect()
}

fn pairs(outcomes: &[(&str, &str)]) -> Vec<(String, String)> {
    outcomes.iter().map(|(region, outcome)| ((*region).to_owned(), (*outcome).to_owned())).collect()
}

#[tokio::test]
async fn the_nearest_region_with_a_seat_wins_over_a_fuller_lobby() {
    let stack = TestStack::start().await;
    let game = game(&stack, "nearest", json!({}), [9; 5]).await;
    let fuller = lobby_in(&stack, &game, "ams").await;
    game.join(&stack, &fuller).await.expect_ok();
    let nearest = lobby_in(&stack, &game, "fra").await;
    for _ in 0..3 {
        assert_eq!(found_in(&stack, &game, json!({})).await, ("fra".to_owned(), nearest.clone()));
    }
    assert_eq!(found_in(&stack, &game, json!({})).await, ("ams".to_owned(), fuller), "within the tolerance");
    // Without latencies the order is as ever.
    let plain = game.find(&stack, json!({ "game_modes": ["arena"], "regions": ["fra", "ams"] })).await;
    assert_eq!(region(&plain.expect_ok()), "ams", "the fullest of all");
}

#[tokio::test]
async fn a_new_lobby_in_the_nearest_region_comes_before_one_beyond_the_tolerance() {
    let stack = TestStack::start().await;
    let game = game(&stack, "tolerance", json!({}), [9; 5]).await;
    lobby_in(&stack, &game, "nyc").await;
    assert_eq!(found_in(&stack, &game, json!({})).await.0, "fra", "75 ms above the best is beyond 50");
    let wide = json!({ "latency_tolerance": 75 });
    let game = self::game(&stack, "wide", wide, [9; 5]).await;
    let there = lobby_in(&stack, &game, "nyc").await;
    assert_eq!(found_in(&stack, &game, json!({})).await, ("nyc".to_owned(), there), "75 ms are within 75");
}

#[tokio::test]
async fn a_lobby_is_created_in_the_nearest_region_that_has_a_place() {
    let stack = TestStack::start().await;
    let game = game(&stack, "second", json!({}), [0, 1, 9, 9, 9]).await;
    let (region, first) = found_in(&stack, &game, json!({})).await;
    assert_eq!(region, "ams", "fra has no game server");
    for _ in 0..3 {
        assert_eq!(found_in(&stack, &game, json!({})).await, ("ams".to_owned(), first.clone()));
    }
    // ams is full: nyc is 75 ms above the best, within `latency_max`.
    let (region, second) = found_in(&stack, &game, json!({})).await;
    assert_eq!(region, "nyc");
    stack.clock.advance(Duration::from_secs(5));
    for _ in 0..3 {
        assert_eq!(
            found_in(&stack, &game, json!({})).await,
            ("nyc".to_owned(), second.clone()),
            "I9: it is joined"
        );
    }
    assert_eq!(stack.all_lobbies(game.namespace_id()).await.len(), 2);
}

#[tokio::test]
async fn a_lobby_beyond_is_joined_only_where_none_can_be_created() {
    let stack = TestStack::start().await;
    let game = game(&stack, "beyond", json!({}), [1, 0, 0, 9, 9]).await;
    let far = lobby_in(&stack, &game, "sfo").await;
    let farthest = lobby_in(&stack, &game, "syd").await;
    for _ in 0..4 {
        assert_eq!(found_in(&stack, &game, json!({})).await.0, "fra", "it can be created there");
    }
    for _ in 0..3 {
        assert_eq!(
            found_in(&stack, &game, json!({})).await,
            ("sfo".to_owned(), far.clone()),
            "beyond `latency_max`"
        );
    }
    // Four regions are searched, and syd is the fifth. No lobby is created beyond `latency_max`.
    let refused = game.find(&stack, body(json!({}))).await;
    assert_eq!(refused.refusal(), (503, "MATCHMAKER_NO_SERVER_AVAILABLE"), "{:?}", refused.body);
    assert_eq!(refused.body["metadata"]["servers"], json!({ "full": 1 }), "of the nearest region");
    let again = game.find(&stack, body(json!({}))).await;
    assert_eq!(again.refusal(), (503, "MATCHMAKER_NO_SERVER_AVAILABLE"), "from memory");
    let without = body(json!({ "latencies": { "fra": 20, "sfo": 160, "syd": 290 } }));
    assert_eq!(game.find(&stack, without).await.expect_ok().lobby_id(), farthest);
    assert_eq!(stack.all_lobbies(game.namespace_id()).await.len(), 3);
}

#[tokio::test]
async fn at_the_limit_of_lobbies_a_find_joins_beyond_the_tolerance() {
    let stack = TestStack::start().await;
    let game = game_up_to(1, &stack, "limit", json!({ "max_players": 2 }), [9; 5]).await;
    let far = lobby_in(&stack, &game, "sfo").await;
    assert_eq!(found_in(&stack, &game, json!({})).await, ("sfo".to_owned(), far));
    assert_eq!(game.find(&stack, body(json!({}))).await.refusal(), (400, "MATCHMAKER_TOO_MANY_LOBBIES"));
}

#[tokio::test]
async fn a_find_that_may_not_create_joins_wherever_there_is_a_seat() {
    let stack = TestStack::start().await;
    let game = game(&stack, "prevented", json!({}), [9; 5]).await;
    let prevented = json!({ "prevent_auto_create_lobby": true });
    let refused = game.find(&stack, body(prevented.clone())).await;
    assert_eq!(refused.refusal(), (400, "MATCHMAKER_NO_AVAILABLE_LOBBIES"));
    let far = lobby_in(&stack, &game, "sfo").await;
    assert_eq!(found_in(&stack, &game, prevented).await, ("sfo".to_owned(), far));
    assert_eq!(stack.all_lobbies(game.namespace_id()).await.len(), 1, "I8");
}

#[tokio::test]
async fn unreachable_and_unlisted_regions_are_left_out() {
    let stack = TestStack::start().await;
    let game = game(&stack, "unreachable", json!({}), [9; 5]).await;
    lobby_in(&stack, &game, "fra").await;
    let nulled = json!({ "latencies": { "fra": null, "ams": 40, "mars": 2, "sfo": 45 } });
    assert_eq!(
        found_in(&stack, &game, nulled.clone()).await.0,
        "ams",
        "an unknown region counts for nothing"
    );
    // `regions` limits, latencies order.
    let limited = json!({ "regions": ["syd", "sfo"] });
    assert_eq!(found_in(&stack, &game, limited).await.0, "sfo");
    let unmeasured = json!({ "regions": ["syd"], "latencies": { "fra": 20, "ams": 30 } });
    let refused = game.find(&stack, body(unmeasured)).await;
    assert_eq!(refused.refusal(), (400, "MATCHMAKER_NO_REGION_REACHABLE"));
    assert_eq!(refused.body["metadata"], json!({ "regions": ["syd"] }));
    let none = json!({ "latencies": { "fra": null, "ams": null } });
    assert_eq!(game.find(&stack, body(none)).await.refusal(), (400, "MATCHMAKER_NO_REGION_REACHABLE"));
    let unknown = json!({ "regions": ["mars"] });
    assert_eq!(game.find(&stack, body(unknown)).await.refusal(), (400, "MATCHMAKER_REGION_NOT_FOUND"));
    // Nothing measured is as nothing sent.
    for nothing in [json!({}), Value::Null] {
        let plain = game.find(&stack, body(json!({ "latencies": nothing, "regions": ["syd"] }))).await;
        assert_eq!(region(&plain.expect_ok()), "syd");
    }
}

#[tokio::test]
async fn latencies_that_none_can_measure_are_refused_by_their_place() {
    let stack = TestStack::start().await;
    let game = game(&stack, "bad", json!({}), [9; 5]).await;
    let many: serde_json::Map<_, _> = (0..65).map(|n| (format!("r{n}"), json!(20))).collect();
    for (bad, place) in [
        (json!({ "fra": 0 }), "latencies.fra"),
        (json!({ "fra": 0.4 }), "latencies.fra"),
        (json!({ "fra": -20 }), "latencies.fra"),
        (json!({ "fra": 10_001 }), "latencies.fra"),
        (json!({ "fra": "20" }), "latencies.fra"),
        (json!({ "fra": true }), "latencies.fra"),
        (json!({ "fra": [20] }), "latencies.fra"),
        (json!(["fra"]), "latencies"),
        (json!(many), "latencies"),
    ] {
        let refused = game.find(&stack, body(json!({ "latencies": bad }))).await;
        assert_eq!(refused.refusal(), (400, "API_BAD_BODY"), "{bad}");
        let message = refused.body["message"].as_str().unwrap();
        assert!(message.contains(place), "{bad}: {message}");
    }
    let mut fits = many;
    fits.remove("r64");
    fits.insert("fra".to_owned(), json!(1));
    fits.remove("r0");
    fits.insert("ams".to_owned(), json!(10_000));
    fits.remove("r1");
    assert_eq!(fits.len(), 64);
    assert_eq!(found_in(&stack, &game, json!({ "latencies": fits })).await.0, "fra");
    assert_eq!(stack.all_lobbies(game.namespace_id()).await.len(), 1, "none for the refused");
}

#[tokio::test]
async fn a_burst_of_finds_stays_in_the_nearest_region_and_makes_no_twins() {
    let stack = TestStack::start_live().await;
    // Exactly the places that forty need.
    let game = game(&stack, "burst", json!({ "max_players": 10 }), [4, 9, 9, 9, 9]).await;
    let instances: Vec<Instance> = (0..40).map(|_| stack.instance()).collect();
    let body = body(json!({}));
    let finds = instances.iter().map(|instance| instance.find(&game.public, &body));
    let found = join_all(finds).await.into_iter().map(|found| found.unwrap().lobby);
    let places: BTreeSet<_> = found.map(|lobby| (lobby.region.region_id, lobby.lobby_id)).collect();
    let regions: BTreeSet<_> = places.iter().map(|(region, _)| region.as_str()).collect();
    assert_eq!((regions, places.len()), (BTreeSet::from(["fra"]), 4));
    let lobbies = stack.all_lobbies(game.namespace_id()).await;
    assert_eq!(lobbies.iter().map(|lobby| lobby.taken).collect::<Vec<_>>(), [10; 4], "I1, I4, I9");
}

#[tokio::test]
async fn a_burst_beside_a_region_without_servers_shares_its_lobbies_in_the_next() {
    let stack = TestStack::start_live().await;
    let game =
        game(&stack, "next", json!({ "max_players": 10, "latency_tolerance": 0 }), [0, 9, 9, 9, 9]).await;
    let instances: Vec<Instance> = (0..40).map(|_| stack.instance()).collect();
    let body = body(json!({}));
    let finds = instances.iter().map(|instance| instance.find(&game.public, &body));
    for found in join_all(finds).await {
        assert_eq!(found.unwrap().lobby.region.region_id.as_str(), "ams");
    }
    let lobbies = stack.all_lobbies(game.namespace_id()).await;
    assert_eq!(lobbies.iter().map(|lobby| lobby.taken).sum::<u32>(), 40, "I4");
    assert!(lobbies.len() <= 5, "I9: {} lobbies", lobbies.len());
}

#[tokio::test]
async fn under_load_an_instance_stays_with_the_nearest_region_that_has_seats() {
    let stack = TestStack::start().await;
    let game = game(&stack, "loaded", json!({ "max_players": 10 }), [3, 9, 9, 9, 9]).await;
    let instance = stack.instance();
    // This instance knows a lobby with seats within the tolerance, by players who are nearer to it.
    let others = json!({ "game_modes": ["arena"], "regions": ["ams"] });
    for _ in 0..6 {
        instance.find(&game.public, &others).await.unwrap();
    }
    let mut seats = Vec::new();
    for _ in 0..30 {
        let found = instance.find(&game.public, &body(json!({}))).await.unwrap();
        seats.push(found.lobby.region.region_id.to_string());
    }
    // Four of them fill that lobby, before one is created in fra.
    let (joined, created) = seats.split_at(4);
    assert_eq!((joined, created.len()), (["ams"; 4].map(str::to_owned).as_slice(), 26));
    assert!(created.iter().all(|region| region == "fra"), "{created:?}");
    let lobbies = stack.all_lobbies(game.namespace_id()).await;
    assert_eq!(lobbies.len(), 4, "I9");
}

#[tokio::test]
async fn tags_are_matched_in_the_nearest_region_first() {
    let stack = TestStack::start().await;
    let game = game(&stack, "tagged", json!({}), [9; 5]).await;
    let lobby_with = async |region: &str, tags: Value| {
        let find = json!({ "game_modes": ["arena"], "regions": [region], "tags": tags });
        let lobby_id = game.find(&stack, find).await.expect_ok().lobby_id();
        stack.clock.advance(Duration::from_secs(3));
        lobby_id
    };
    let exact = lobby_with("ams", json!({ "map": "harbour" })).await;
    let wider = lobby_with("fra", json!({ "map": "harbour", "team": "red" })).await;
    lobby_with("fra", json!({ "map": "castle" })).await;
    let tagged = json!({ "tags": { "map": "harbour" } });
    for _ in 0..3 {
        assert_eq!(found_in(&stack, &game, tagged.clone()).await, ("fra".to_owned(), wider.clone()));
    }
    assert_eq!(found_in(&stack, &game, tagged.clone()).await, ("ams".to_owned(), exact));
    let other = found_in(&stack, &game, json!({ "tags": { "map": "moon" } })).await;
    assert_eq!(other.0, "fra", "a new one");
}

#[tokio::test]
async fn each_shard_of_the_nearest_region_comes_before_the_next_region() {
    let stack = TestStack::start().await;
    let game = game(&stack, "shards", json!({ "pool_shards": 8, "max_players": 2 }), [20; 5]).await;
    lobby_in(&stack, &game, "ams").await;
    let mut near = BTreeSet::new();
    for _ in 0..6 {
        near.insert(lobby_in(&stack, &game, "fra").await);
        near.insert(lobby_in(&stack, &game, "fra").await);
    }
    let last = lobby_in(&stack, &game, "fra").await;
    assert_eq!((near.len(), near.contains(&last)), (6, false), "six are full, one has a seat");
    assert_eq!(found_in(&stack, &game, json!({})).await, ("fra".to_owned(), last));
    assert_eq!(found_in(&stack, &game, json!({})).await.0, "ams");
}

#[tokio::test]
async fn an_explanation_says_what_became_of_each_region() {
    let stack = TestStack::start().await;
    let game = game(&stack, "explained", json!({}), [0, 9, 9, 9, 9]).await;
    let find = body(json!({ "regions": ["fra", "ams", "nyc", "sfo"],
                            "latencies": { "fra": 20, "ams": 31.5, "nyc": null, "syd": 290, "mars": 300 } }));
    let explanation = explained(&stack, &game, &find).await;
    let expected = [
        ("fra", "no_place"),
        ("ams", "chosen"),
        ("syd", "not_requested"),
        ("mars", "not_found"),
        ("nyc", "unreachable"),
        ("sfo", "not_measured"),
    ];
    assert_eq!(outcomes(&explanation), pairs(&expected), "{explanation}");
    assert_eq!(explanation["regions"][1]["latency"], 31.5);
    stack.clock.advance(Duration::from_secs(3));
    let joined = explained(&stack, &game, &body(json!({}))).await;
    let expected = [
        ("fra", "nothing_joinable"),
        ("ams", "chosen"),
        ("nyc", "not_needed"),
        ("sfo", "not_needed"),
        ("syd", "too_far"),
    ];
    assert_eq!(outcomes(&joined), pairs(&expected), "{joined}");
    let plain = explained(&stack, &game, &json!({ "game_modes": ["arena"], "regions": ["ams"] })).await;
    assert!(plain.get("regions").is_none(), "{plain}");
}

#[tokio::test]
async fn a_retry_gets_the_same_seat_and_other_latencies_are_another_body() {
    let stack = TestStack::start().await;
    let game = game(&stack, "retried", json!({}), [9; 5]).await;
    let bearer = format!("Bearer {}", game.public);
    let headers = [("authorization", bearer.as_str()), ("idempotency-key", "one")];
    let first = stack.instance().call(&request(&headers, &body(json!({})))).await.unwrap();
    let again = stack.instance().call(&request(&headers, &body(json!({})))).await.unwrap();
    assert_eq!(first, again);
    let moved = body(json!({ "latencies": { "fra": 21 } }));
    let refused = stack.instance().call(&request(&headers, &moved)).await.unwrap_err();
    assert_eq!(refused.status_and_code().1, "API_IDEMPOTENCY_MISMATCH");
    assert_eq!(game.lobby(&stack, first.lobby.lobby_id.as_str()).await.taken, 1, "I5");
}

/// The calls, read units and write units of a find.
async fn cost(instance: &Instance, game: &TestGame, body: &Value) -> (u64, f64, f64) {
    let before = instance.usage();
    instance.find(&game.public, body).await.unwrap();
    let usage = instance.usage() - before;
    (usage.calls, usage.read_units, usage.write_units)
}

#[tokio::test]
async fn a_quiet_find_queries_four_regions_at_once_and_reads_only_the_nearest() {
    let stack = TestStack::start().await;
    let game = game(&stack, "cost", json!({ "max_players": 10, "latency_tolerance": 200 }), [9; 5]).await;
    for (region, _) in REGIONS {
        for _ in 0..2 {
            lobby_in(&stack, &game, region).await;
        }
    }
    let instance = stack.instance();
    instance.find(&game.public, &body(json!({}))).await.unwrap();
    stack.clock.advance(Duration::from_secs(2));
    let (calls, read_units, write_units) = cost(&instance, &game, &body(json!({}))).await;
    assert_eq!((calls, write_units), (5, 1.0), "four queries and the seat");
    assert!(read_units <= 2.0, "{read_units}");
    let one = json!({ "game_modes": ["arena"], "regions": ["fra"] });
    stack.clock.advance(Duration::from_secs(2));
    assert_eq!(cost(&instance, &game, &one).await.0, 2, "without latencies as ever");
}
