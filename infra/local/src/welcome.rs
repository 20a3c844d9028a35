//! The first text that a new user reads.

use crate::demo::Demo;

/// The address, and commands to paste.
#[must_use]
pub fn text(demo: &Demo) -> String {
    let about =
        format!("Everything about the demo game, its tokens too: curl -s {}/_local/demo", demo.base_url);
    whole(demo, "", &about)
}

/// The same for a studio's own game in `file`, which has no game server yet.
#[must_use]
pub fn text_of_own_game(demo: &Demo, file: &str) -> String {
    let Demo { base_url, region_ids, tokens, .. } = demo;
    let region = region_ids.first().map_or("", |region| region.as_str());
    let register = format!(
        r#"
Your game server registers with the token {server}
Until one does, finds get 503 MATCHMAKER_NO_SERVER_AVAILABLE. To register one by hand:

curl -s {base_url}/matchmaker/servers/register \
  -H 'Authorization: Bearer {server}' \
  -d '{{"server_id": "by-hand", "region_id": "{region}", "capacity": 100, "lease_seconds": 0, "ports": {{"default": {{"hostname": "127.0.0.1", "port": 7777, "protocol": "udp"}}}}}}'
"#,
        server = tokens.server,
    );
    let about = format!(
        "The game is that of {file}, which is applied again whenever it changes.\n\
         Everything about it, its tokens too: curl -s {base_url}/_local/demo"
    );
    whole(demo, &register, &about)
}

fn whole(demo: &Demo, register: &str, about: &str) -> String {
    let Demo { base_url, game_id, namespace_id, tokens, .. } = demo;
    let mode = demo.mode().map_or("duel", |mode| mode.as_str());
    format!(
        r#"
Muster listens on {base_url}
Open it in a browser to see lobbies, game servers and every request, and to play.
{register}
Find a lobby (the answer holds the lobby, a player token and the ports to connect to):

curl -s {base_url}/matchmaker/lobbies/find \
  -H 'Authorization: Bearer {public}' \
  -d '{{"game_modes": ["{mode}"]}}'

Check matchmaker settings:

curl -s {base_url}/cloud/games/{game_id}/namespaces/{namespace_id}/mm-config/validate \
  -H 'Authorization: Bearer {cloud}' \
  -d '{{"lobby_count_max": 0, "max_players": 8}}'

{about}
Ctrl-C stops it.
"#,
        public = tokens.public,
        cloud = tokens.cloud,
    )
}
