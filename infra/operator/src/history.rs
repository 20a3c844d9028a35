//! What operators did, as `muster history` shows it.

use serde_json::json;
use shared::{base::ambient::time, store::actions::OperatorAction};

use crate::{
    deployment::Deployment,
    lookup,
    report::{Report, Reported},
};

/// The most actions that a list has.
const ACTIONS_MAX: u16 = 100;

/// Lists the last actions on a game, or on the whole deployment.
pub(crate) async fn list(game: Option<String>, deployment: &Deployment) -> Reported {
    let (store, now) = (&deployment.store, deployment.ambient.now());
    let game_id = match game {
        Some(game) => Some(lookup::game(store, &game).await?.game_id),
        None => None,
    };
    let actions = store.actions(game_id.as_ref(), now, ACTIONS_MAX).await?;
    Ok(Report::of_each("actions", ["at", "who", "what"], actions, |action| {
        let OperatorAction { at, who, verb, target, has_failed, .. } = action;
        let at = time(at);
        let json = json!({ "at": at, "who": who, "verb": verb, "target": target, "failed": has_failed });
        let failed = if has_failed { " (failed)" } else { "" };
        ([at, who, format!("{verb} {target}{failed}")], json)
    }))
}
