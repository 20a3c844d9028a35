//! What operators did, as `muster history` shows it.

use serde_json::json;
use shared::{base::ambient::time, store::actions::OperatorAction};

use crate::{deployment::Deployment, error::CommandError, lookup, report::Report};

/// The most actions that a list has.
const ACTIONS_MAX: u16 = 100;

/// Lists the last actions on a game, or on the whole deployment.
pub(crate) async fn list(game: Option<String>, deployment: &Deployment) -> Result<Report, CommandError> {
    let (store, now) = (&deployment.store, deployment.ambient.now());
    let game_id = match game {
        Some(game) => Some(lookup::game(store, &game).await?.game_id),
        None => None,
    };
    let actions = store.actions(game_id.as_ref(), now, ACTIONS_MAX).await?;
    let row = |action: &OperatorAction| {
        let OperatorAction { at, who, verb, target, has_failed, .. } = action;
        let failed = if *has_failed { " (failed)" } else { "" };
        [time(*at), who.clone(), format!("{verb} {target}{failed}")]
    };
    let json = actions.iter().map(|action| {
        json!({ "at": time(action.at), "who": action.who, "verb": action.verb, "target": action.target,
                "failed": action.has_failed })
    });
    let json = json!({ "actions": json.collect::<Vec<_>>() });
    Ok(Report::table(["at", "who", "what"], actions.iter().map(row).collect(), json))
}
