//! Busy pools, and those with several shards, for which one partition of the index is too slow.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "this is test code: what cannot go on panics"
)]

use std::{collections::BTreeSet, time::Duration};

use aws_sdk_dynamodb::types::AttributeValue;
use harness::{TestGame, TestStack, interference::Before};
use muster_local::emulator::link::Call;
use serde_json::json;
use shared::{
    base::ambient::Timestamp,
    models::{
        availability::Access, ids::SeatId, lobby::Lobby, pool::Tags, seats::Seats, tag_digests::TagDigests,
    },
    store::{
        creation::{Creation, CreationOutcome},
        seats::{Hiding, PartyCapacity, SeatClaim, SeatOutcome},
    },
};

async fn arena(stack: &TestStack, name: &str, shards: u32) -> TestGame {
    let modes = json!({ "arena": { "regions": ["fra"], "max_players": 3, "pool_shards": shards } });
    stack.make_game(name, modes, 99, 99).await
}

/// A lobby with one seat taken in a shard of the pool, as an instance under load creates one.
async fn lobby_in(stack: &TestStack, game: &TestGame, shard: u32) -> Lobby {
    lobby_with(stack, game, shard, 1).await
}

/// A lobby with so many of its three seats taken in a shard of the pool.
async fn lobby_with(stack: &TestStack, game: &TestGame, shard: u32, taken: u32) -> Lobby {
    let pool = game.pool("arena", "fra");
    let server = stack.store().servers(&pool.placement(None), None).await.unwrap().0.remove(0);
    let now = stack.clock.now();
    let seat = |_| (SeatId::random(&stack.ambient()), now + Duration::from_secs(120));
    let lobby = Lobby {
        lobby_id: stack.ambient().uuid().into(),
        pool: pool.in_shard(shard),
        joinable_from: Some(now),
        created_at: now,
        stage: shared::models::lobby::Stage::Ready,
        closed: false,
        toggled_at: None,
        is_private: false,
        is_draining: false,
        server: Some(server.server.clone()),
        lease_until: server.lease_until,
        start: None,
        launch: None,
        freed_at: None,
        ports: server.ports.clone(),
        tag_digests: TagDigests::default(),
        max_players: 3,
        max_players_direct: 3,
        max_players_party: None,
        party_size_max: None,
        room: None,
        reservation_secs: 120,
        idle_secs: 0,
        keep_secs: 0,
        generations: None,
        taken,
        reserved: (0..taken).map(seat).collect(),
        connected: std::collections::BTreeMap::new(),
        vacated_at: None,
        lapsed: Vec::new(),
        connected_by: None,
        joined_at: None,
        doubt: 0,
        has_state: false,
        has_config: false,
        code: None,
    };
    let creation = Creation {
        lobby: lobby.clone(),
        block: server.next_block(99),
        requests: None,
        server,
        lobby_count_max: 99,
        renewal: None,
        tags: Tags::new(),
        config: None,
    };
    assert_eq!(stack.store().create_lobby(&creation, now).await.unwrap(), CreationOutcome::Created);
    lobby
}

#[tokio::test]
async fn lobbies_of_every_shard_are_found_fullest_first_and_listed() {
    let stack = TestStack::start().await;
    let game = arena(&stack, "found", 4).await;
    let made = [
        lobby_in(&stack, &game, 3).await,
        lobby_in(&stack, &game, 0).await,
        lobby_in(&stack, &game, 1).await,
    ];
    let find = json!({ "game_modes": ["arena"], "prevent_auto_create_lobby": true });
    let mut found = Vec::new();
    for _ in 0..6 {
        stack.clock.advance(Duration::from_millis(10));
        found.push(game.find(&stack, find.clone()).await.expect_ok().lobby_id());
    }
    let none = game.find(&stack, find).await;
    assert_eq!(none.refusal(), (400, "MATCHMAKER_NO_AVAILABLE_LOBBIES"));
    assert!(found.chunks(2).all(|pair| pair[0] == pair[1]), "each is filled before the next: {found:?}");
    assert!(made.iter().all(|lobby| found.contains(&lobby.lobby_id.to_string())), "I6");
    let listed = game_list(&stack, &game).await;
    assert_eq!(listed, 3);
}

#[tokio::test]
async fn the_first_find_of_an_instance_in_a_busy_pool_tries_three_unless_it_may_not_create() {
    let stack = TestStack::start().await;
    let game = arena(&stack, "newcomer", 4).await;
    for nth in 0..24 {
        let _full = lobby_with(&stack, &game, nth % 4, 3).await;
    }
    stack.clock.advance(Duration::from_millis(1));
    let open = lobby_in(&stack, &game, 0).await;
    let only_existing = json!({ "game_modes": ["arena"], "prevent_auto_create_lobby": true });
    let found = stack.instance().find(&game.public, &only_existing).await.unwrap();
    assert_eq!(found.lobby.lobby_id, open.lobby_id, "I8: it looks at all");
    let newcomer = stack.instance();
    let created = newcomer.find(&game.public, &json!({ "game_modes": ["arena"] })).await.unwrap();
    assert_ne!(created.lobby.lobby_id, open.lobby_id, "the youngest is not among those that it looks at");
    // Settings twice, four shards, three of their lobbies, the servers, other instances' searches, the
    // limit, the lobby.
    assert_eq!((newcomer.usage().calls, newcomer.race_creates()), (11, 1), "I9: it is counted");
}

#[tokio::test]
async fn a_find_that_may_not_create_tries_every_lobby_of_a_busy_pool() {
    let stack = TestStack::start().await;
    let game = arena(&stack, "last-seat", 1).await;
    let (store, ambient, now) = (stack.store().clone(), stack.ambient(), stack.clock.now());
    let pool = game.pool("arena", "fra");
    // Once the find has read the lobbies, others take all their seats but one.
    let others_take_seats = async move {
        for candidate in store.candidates(&pool, 1, now, 99).await.unwrap().into_iter().skip(1) {
            let claim = SeatClaim {
                lobby_id: candidate.lobby_id,
                access: Access::Find(pool.clone(), TagDigests::default()),
                seats: Seats::one(SeatId::random(&ambient)),
                until: now + Duration::from_secs(120),
                capacity: PartyCapacity::Known(0),
                hiding: Hiding::No,
            };
            assert!(matches!(store.take_seat(&claim, now).await.unwrap(), SeatOutcome::Taken(_)));
        }
    };
    let is_seat = |call: &Call| call.operation == "UpdateItem";
    let link = Before::new(stack.stack.store_link(), is_seat, others_take_seats);
    let instance = stack.instance_over(link);
    let only_existing = json!({ "game_modes": ["arena"], "prevent_auto_create_lobby": true });
    // An instance with so many finds in a second takes the pool for busy.
    for _ in 0..32 {
        assert!(instance.find(&game.public, &only_existing).await.is_err(), "nothing is there yet");
    }
    for _ in 0..12 {
        let _one_seat_left = lobby_with(&stack, &game, 0, 2).await;
    }
    let found = instance.find(&game.public, &only_existing).await;
    assert!(found.is_ok(), "I8: {found:?}");
}

#[tokio::test]
async fn a_lobby_behind_as_many_full_ones_as_are_compared_is_found() {
    let stack = TestStack::start().await;
    let game = arena(&stack, "behind", 1).await;
    for _ in 0..16 {
        let _full = lobby_with(&stack, &game, 0, 3).await;
    }
    stack.clock.advance(Duration::from_millis(1));
    let open = lobby_in(&stack, &game, 0).await;
    for _ in 0..2 {
        let found = stack.instance().find(&game.public, &json!({ "game_modes": ["arena"] })).await.unwrap();
        assert_eq!(found.lobby.lobby_id, open.lobby_id, "I9");
    }
}

#[tokio::test]
async fn finds_in_several_pools_share_the_lobbies_that_a_busy_instance_creates_for_them() {
    let stack = TestStack::start().await;
    let modes = json!({ "arena": { "regions": ["fra"], "max_players": 3 }, "duel": { "regions": ["fra"] } });
    let game = stack.make_game("mixed", modes, 99, 99).await;
    let instance = stack.instance();
    // So many finds make the pool busy, and fill eleven lobbies.
    for _ in 0..33 {
        instance.find(&game.public, &json!({ "game_modes": ["arena"] })).await.unwrap();
    }
    let mut lobbies = BTreeSet::new();
    for _ in 0..6 {
        let found = instance.find(&game.public, &json!({ "game_modes": ["arena", "duel"] })).await.unwrap();
        lobbies.insert(found.lobby.lobby_id);
    }
    assert_eq!(lobbies.len(), 2, "I9: {lobbies:?}");
}

/// Takes the last seat of a lobby.
async fn fill(stack: &TestStack, lobby: &Lobby) {
    let never = [(":never", AttributeValue::N(Timestamp::NEVER.to_string()))];
    let fill = "SET #taken = #max_players, #joinable_from = :never";
    stack.alter_lobby(lobby.lobby_id.as_str(), fill, &never).await;
}

/// The calls of a busy instance's find, 150 ms after one that read lobbies ahead, in a pool of so many
/// shards; if others fill them meanwhile, there are as many new ones.
async fn calls_of_the_find_after_a_look(shards: u32, others_fill: bool) -> u64 {
    let stack = TestStack::start().await;
    let game = arena(&stack, "kept", shards).await;
    let mut one_seat_left = Vec::new();
    for nth in 0..40 {
        one_seat_left.push(lobby_with(&stack, &game, nth % shards, 2).await);
    }
    stack.clock.advance(Duration::from_millis(1));
    let instance = stack.instance();
    let calls_of_a_find = async || {
        let before = instance.usage().calls;
        instance.find(&game.public, &json!({ "game_modes": ["arena"] })).await.unwrap();
        instance.usage().calls - before
    };
    // From the sixth on it reads ahead: the index, some lobbies, the seat.
    for _ in 0..5 {
        calls_of_a_find().await;
    }
    while calls_of_a_find().await != 3 {}
    for (nth, lobby) in (0..).zip(one_seat_left.iter().filter(|_| others_fill)) {
        fill(&stack, lobby).await;
        let _one_seat_left = lobby_with(&stack, &game, nth % shards, 2).await;
    }
    stack.clock.advance(Duration::from_millis(150));
    calls_of_a_find().await
}

#[tokio::test]
async fn lobbies_read_ahead_are_dropped_sooner_after_a_loss_where_the_pool_has_shards() {
    for shards in [1, 4] {
        assert_eq!(calls_of_the_find_after_a_look(shards, false).await, 1, "{shards}: the seat");
    }
    assert_eq!(
        calls_of_the_find_after_a_look(4, true).await,
        4,
        "no seat, the index, some lobbies, the seat"
    );
    assert!(calls_of_the_find_after_a_look(1, true).await > 4, "no seat in any of three");
}

async fn game_list(stack: &TestStack, game: &TestGame) -> usize {
    let path = "/matchmaker/lobbies/list";
    let answer = stack.call(http::Method::GET, path, Some(&game.public), "").await.expect_ok();
    answer.body["lobbies"].as_array().map_or(0, Vec::len)
}
