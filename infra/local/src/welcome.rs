//! The first text that a new user reads.

use crate::demo::Demo;

/// The address, and commands to paste.
#[must_use]
pub fn text(demo: &Demo) -> String {
    let Demo { base_url, game_id, namespace_id, tokens, .. } = demo;
    let mode =
        demo.game_modes.iter().find(|mode| mode.as_str() == "duel").or_else(|| demo.game_modes.first());
    let mode = mode.map_or("duel", |mode| mode.as_str());
    format!(
        r#"
Muster listens on {base_url}
Open it in a browser to see lobbies, game servers and every request, and to play.

Find a lobby (the answer holds the lobby, a player token and the ports to connect to):

curl -s {base_url}/matchmaker/lobbies/find \
  -H 'Authorization: Bearer {public}' \
  -d '{{"game_modes": ["{mode}"]}}'

Check matchmaker settings:

curl -s {base_url}/cloud/games/{game_id}/namespaces/{namespace_id}/mm-config/validate \
  -H 'Authorization: Bearer {cloud}' \
  -d '{{"lobby_count_max": 0, "max_players": 8}}'

Everything about the demo game, its tokens too: curl -s {base_url}/_local/demo
Ctrl-C stops it.
"#,
        public = tokens.public,
        cloud = tokens.cloud,
    )
}
