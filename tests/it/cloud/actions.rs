//! What operators did, as the store keeps it.

use shared::{base::ambient::Timestamp, store::actions::OperatorAction};

use super::*;

const DAY: Duration = Duration::from_secs(24 * 3_600);

#[tokio::test]
async fn actions_are_listed_newest_first_by_game_and_for_ninety_days() {
    let stack = TestStack::start().await;
    let (store, ambient, game_id) = (stack.store(), stack.ambient(), &stack.demo().game_id);
    let first = ambient.now();
    let note = async |at: Timestamp, game_id: Option<&shared::models::ids::GameId>, verb: &str| {
        let action = OperatorAction {
            game_id: game_id.cloned(),
            at,
            who: "ada".to_owned(),
            verb: verb.to_owned(),
            target: "demo".to_owned(),
            has_failed: false,
        };
        store.note_action(&action, ambient.uuid()).await.unwrap();
    };
    note(first, Some(game_id), "region add").await;
    note(first, Some(game_id), "version create").await;
    note(first + DAY, Some(game_id), "lobby end").await;
    note(first, None, "restore").await;
    let verbs = async |game_id: Option<&shared::models::ids::GameId>, now: Timestamp, limit: u16| {
        let actions = store.actions(game_id, now, limit).await.unwrap();
        actions.into_iter().map(|action| action.verb).collect::<Vec<_>>()
    };
    let mut all = verbs(Some(game_id), first + DAY, 100).await;
    assert_eq!(all.remove(0), "lobby end");
    all.sort();
    assert_eq!(all, ["region add", "version create"], "two at one instant are two");
    assert_eq!(verbs(Some(game_id), first + DAY, 1).await, ["lobby end"]);
    assert_eq!(verbs(None, first, 100).await, ["restore"]);
    assert_eq!(verbs(Some(game_id), first + DAY * 90 + DAY / 2, 100).await, ["lobby end"]);
    assert!(verbs(Some(game_id), first + DAY * 92, 100).await.is_empty());
}
