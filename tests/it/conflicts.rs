//! What DynamoDB says when writes meet, which the emulator never says.

use muster_tests::{TestStack, scripted::scripted_database};
use serde_json::{Value, json};
use shared::{
    ambient::Timestamp,
    ids::LobbyId,
    models::Tags,
    store::{
        Store, TableNames,
        creation::{Burst, Creation, CreationOutcome, Election, HeadKey},
        emulator_client,
        servers::PlacementPool,
    },
};

#[tokio::test]
async fn a_write_that_meets_a_transaction_is_repeated() {
    let conflict = json!({
        "__type": "com.amazonaws.dynamodb.v20120810#TransactionConflictException",
        "message": "Transaction is ongoing for the item",
    });
    let first = "00000000-0000-0000-0000-000000000001";
    let drawn = json!({ "Attributes": {
        "pk": { "S": "head/0" }, "first": { "S": first }, "opened_at": { "N": "1" }, "positions": { "N": "2" },
    }});
    let endpoint = scripted_database(vec![(400, conflict.clone()), (400, conflict), (200, drawn)]).await;
    let store = Store::new(
        emulator_client(&endpoint),
        TableNames { ledger: "t".to_owned(), ..TableNames::default() },
    );
    let key = HeadKey::new(&"n/v/m/r".parse().unwrap(), &Tags::new(), 2);
    let burst =
        Burst { first: first.parse().unwrap(), opened_at: Timestamp(1), positions: 1, is_announced: false };
    let outcome = store.draw_position(&key, &burst).await.unwrap();
    assert_eq!(outcome, Some(Burst { positions: 2, ..burst }));
}

#[tokio::test]
async fn a_database_that_only_conflicts_is_unavailable_not_broken() {
    let conflict = json!({
        "__type": "com.amazonaws.dynamodb.v20120810#TransactionConflictException",
        "message": "Transaction is ongoing for the item",
    });
    let endpoint = scripted_database(vec![(400, conflict)]).await;
    let store = Store::new(
        emulator_client(&endpoint),
        TableNames { ledger: "t".to_owned(), ..TableNames::default() },
    );
    let key = HeadKey::new(&"n/v/m/r".parse().unwrap(), &Tags::new(), 2);
    let burst = Burst { first: LobbyId::nil(), opened_at: Timestamp(1), positions: 1, is_announced: false };
    let error = store.draw_position(&key, &burst).await.unwrap_err();
    assert_eq!(error.status_and_code().1, "API_UNAVAILABLE");
}

/// A refused transaction, its parts refused by `codes`.
fn cancelled(codes: [&str; 4]) -> (u16, Value) {
    let reasons = codes.map(|code| json!({ "Code": code, "Message": "as scripted" }));
    let body = json!({
        "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
        "message": "Transaction cancelled",
        "CancellationReasons": reasons,
    });
    (400, body)
}

#[tokio::test]
async fn a_refused_creation_is_read_in_the_order_of_the_rules() {
    let stack = TestStack::start().await;
    let modes = json!({ "arena": { "regions": ["fra"], "max_players": 2 } });
    let game = stack.make_game("refused", modes, 9, 9).await;
    let found = game.find(&stack, json!({ "game_modes": ["arena"] })).await.expect_ok();
    let lobby = stack.store().lobby(&found.lobby_id().parse().unwrap()).await.unwrap().unwrap();
    let pool =
        PlacementPool { namespace_id: game.namespace_id().clone(), region_id: lobby.pool.region_id.clone() };
    let server = stack.store().servers(&pool, None).await.unwrap().0.remove(0);
    let election = Election::Begin(HeadKey::new(&lobby.pool, &Tags::new(), 2));
    let creation = Creation { lobby, server, lobby_count_max: 9, election, config: None };
    let (none, failed, met) = ("None", "ConditionalCheckFailed", "TransactionConflict");
    // The parts are lobby, count, server and head.
    let cases = [
        ([none, none, met, none], CreationOutcome::Conflict),
        ([none, met, "ThrottlingError", met], CreationOutcome::Conflict),
        ([none, failed, none, none], CreationOutcome::AtCap),
        ([none, failed, failed, none], CreationOutcome::AtCap),
        ([none, met, failed, none], CreationOutcome::NoPlace(None)),
    ];
    for (codes, expected) in cases {
        let endpoint = scripted_database(vec![cancelled(codes)]).await;
        let store = Store::new(emulator_client(&endpoint), stack.store().tables().clone());
        let outcome = store.create_lobby(&creation, stack.clock.now()).await.unwrap();
        assert_eq!(outcome, expected, "{codes:?}");
    }
}
