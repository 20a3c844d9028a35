//! Codes of lobbies that players created: what a friend types joins that lobby and no other.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use create_lobby::CreateLobby;
use futures_util::future::join_all;
use harness::{Answer, TestGame, TestStack, instance};
use join_lobby::JoinLobby;
use muster_local::stack::table_names;
use serde_json::{Value, json};
use shared::{
    base::ambient::Ambient,
    function::{instance::Instance, operation::Operation as _},
    models::lobby_code::LobbyCode,
    store::{client::Store, meter::Meter},
};

use super::{find, game};

const NOT_FOUND: (u16, &str) = (400, "MATCHMAKER_LOBBY_NOT_FOUND");

async fn start(name: &str) -> (TestStack, TestGame) {
    let stack = TestStack::start().await;
    let game = custom_game(&stack, name).await;
    (stack, game)
}

async fn custom_game(stack: &TestStack, name: &str) -> TestGame {
    let mode = json!({ "max_players": 8, "actions": { "create": { "enabled": true } } });
    let game = game(stack, name, mode).await;
    game.register(stack, "one", json!({ "capacity": 900, "lease_seconds": 0 })).await;
    game
}

async fn create(stack: &TestStack, game: &TestGame, publicity: &str) -> Answer {
    let body = json!({ "game_mode": "arena", "publicity": publicity });
    game.play(stack, "lobbies/create", body).await.expect_ok()
}

fn code(created: &Answer) -> String {
    created.body["lobby"]["code"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_code_joins_in_any_case_and_with_blanks_around() {
    let (stack, game) = start("typed-code").await;
    for publicity in ["private", "public"] {
        let created = create(&stack, &game, publicity).await;
        let code = code(&created);
        assert_eq!(LobbyCode::typed(&code).unwrap().to_string(), code, "{publicity}");
        for typed in [code.clone(), code.to_lowercase(), format!("  {code}\n"), created.lobby_id()] {
            let joined = game.join(&stack, &typed).await.expect_ok();
            assert_eq!(joined.lobby_id(), created.lobby_id(), "{typed:?}");
            assert_eq!(joined.body["lobby"].get("code"), None, "only its maker is told");
        }
        for typed in [&code[1..], &format!("{code}2"), &format!("{} {}", &code[..3], &code[3..])] {
            assert_eq!(game.join(&stack, typed).await.refusal(), NOT_FOUND, "{typed:?}");
        }
    }
    let listed = game.play(&stack, "lobbies/find", json!({ "game_modes": ["arena"] })).await.expect_ok();
    assert_eq!(listed.body["lobby"].get("code"), None, "a find is told no code");
}

#[tokio::test]
async fn a_lobby_that_a_find_created_has_no_code_and_an_unknown_one_is_not_found() {
    let (stack, game) = start("no-code").await;
    let found = find(&stack, &game).await.expect_ok();
    assert_eq!(game.lobby(&stack, &found.lobby_id()).await.code, None);
    assert_eq!(found.body["lobby"].get("code"), None);
    for typed in ["ABC234", "abcdef"] {
        assert_eq!(game.join(&stack, typed).await.refusal(), NOT_FOUND, "{typed}");
    }
}

#[tokio::test]
async fn a_code_leads_to_no_lobby_of_another_namespace() {
    let (stack, game) = start("own-code").await;
    let other = custom_game(&stack, "other-code").await;
    let created = create(&stack, &game, "public").await;
    assert_eq!(other.join(&stack, &code(&created)).await.refusal(), NOT_FOUND, "I11");
    assert_eq!(game.join(&stack, &code(&created)).await.expect_ok().lobby_id(), created.lobby_id());
}

#[tokio::test]
async fn the_code_of_an_ended_lobby_says_so_until_the_lobby_is_forgotten_and_then_is_free() {
    let (stack, game) = start("ended-code").await;
    let created = create(&stack, &game, "private").await;
    game.end_lobby(&stack, &created.lobby_id()).await.expect_ok();
    let join = async || game.join(&stack, &code(&created)).await.refusal().1.to_owned();
    assert_eq!(join().await, "MATCHMAKER_LOBBY_STOPPED");
    stack.clock.advance(Duration::from_secs(23 * 3_600));
    assert_eq!(join().await, "MATCHMAKER_LOBBY_STOPPED");
    // As DynamoDB deletes it.
    let lobbies = &stack.store().tables().lobbies;
    let key = aws_sdk_dynamodb::types::AttributeValue::S(created.lobby_id());
    let delete = stack.store().client().delete_item().table_name(lobbies).key("lobby_id", key);
    delete.send().await.unwrap();
    assert_eq!(join().await, NOT_FOUND.1);
}

#[tokio::test]
async fn a_repeated_creation_has_the_same_code() {
    let (stack, game) = start("repeated-code").await;
    let ask = async || {
        let body = json!({ "game_mode": "arena" });
        game.play_keyed(&stack, "lobbies/create", "k", body).await.expect_ok()
    };
    let first = ask().await;
    assert!(LobbyCode::typed(&code(&first)).is_some());
    assert_eq!(ask().await.text, first.text, "I5");
    assert_eq!(game.join(&stack, &code(&first)).await.expect_ok().lobby_id(), first.lobby_id());
}

#[tokio::test]
async fn two_hundred_creations_at_once_have_codes_of_their_own() {
    let (stack, game) = start("many-codes").await;
    let created = join_all((0..200).map(|_| create(&stack, &game, "private"))).await;
    let codes: BTreeSet<String> = created.iter().map(code).collect();
    let lobbies: BTreeSet<String> = created.iter().map(Answer::lobby_id).collect();
    assert_eq!((codes.len(), lobbies.len()), (200, 200));
    for created in created.iter().step_by(20) {
        assert_eq!(game.join(&stack, &code(created)).await.expect_ok().lobby_id(), created.lobby_id());
    }
}

#[tokio::test]
async fn a_join_by_code_costs_what_one_by_identifier_does() {
    let (stack, game) = start("code-cost").await;
    let created = create(&stack, &game, "private").await;
    let meter = Meter::on();
    let store = Store::new(instance::patient_client(stack.stack.store_endpoint()), table_names());
    let parts = Instance::over(store.metered(meter.clone()), stack.stack.keys().clone(), stack.ambient());
    let join_lobby = JoinLobby::start(&parts).unwrap();
    let cost = async |typed: &str| {
        let before = meter.usage();
        let headers = [("authorization", &*format!("Bearer {}", game.public))];
        let joined = join_lobby.call(&instance::request(&headers, &json!({ "lobby_id": typed }))).await;
        assert_eq!(joined.unwrap().lobby.lobby_id.as_str(), created.lobby_id());
        meter.usage() - before
    };
    // The settings are read once.
    cost(&created.lobby_id()).await;
    assert_eq!(cost(&code(&created)).await, cost(&created.lobby_id()).await);
}

/// An operation whose first `count` draws of a number below 31 are 0, so that its codes are `222222`; all
/// other draws are random, seats among them.
fn creates_as(stack: &TestStack, count: usize, drawn: &Arc<AtomicUsize>) -> CreateLobby {
    let (clock, random, drawn) = (stack.clock.clone(), stack.ambient(), Arc::clone(drawn));
    let entropy = move |bytes: &mut [u8]| {
        bytes.iter_mut().for_each(|byte| [*byte] = random.bytes());
        if let Ok(number) = <[u8; 8]>::try_from(&*bytes)
            && drawn.fetch_add(1, Ordering::Relaxed) < count
        {
            let number = u64::from_le_bytes(number);
            bytes.copy_from_slice(&(number - number % 31).to_le_bytes());
        }
    };
    let ambient = Ambient::new(move || clock.now(), entropy);
    let store = Store::new(instance::patient_client(stack.stack.store_endpoint()), table_names());
    CreateLobby::start(&Instance::over(store, stack.stack.keys().clone(), ambient)).unwrap()
}

#[tokio::test]
async fn a_code_that_is_taken_is_drawn_again() {
    let (stack, game) = start("taken-code").await;
    let authorization = format!("Bearer {}", game.public);
    let ask = async |operation: CreateLobby| {
        let body: Value = json!({ "game_mode": "arena" });
        let request = instance::request(&[("authorization", &authorization)], &body);
        let lobby = operation.call(&request).await.unwrap().lobby;
        (lobby.code.unwrap().to_string(), lobby.lobby_id.to_string())
    };
    let drawn = Arc::new(AtomicUsize::new(0));
    let first = ask(creates_as(&stack, usize::MAX, &drawn)).await;
    assert_eq!(first.0, "222222");
    // Enough for the seat and for a code that is taken.
    let drawn = Arc::new(AtomicUsize::new(0));
    let second = ask(creates_as(&stack, 12, &drawn)).await;
    assert!(drawn.load(Ordering::Relaxed) > 12, "no code was drawn again");
    assert!(second.0 != first.0 && second.1 != first.1, "{second:?}");
    for (code, lobby_id) in [&first, &second] {
        assert_eq!(game.join(&stack, code).await.expect_ok().lobby_id(), *lobby_id);
    }
}
