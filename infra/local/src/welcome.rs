//! The first text that a new user reads.

use crate::{demo::Demo, stack::Stack};

/// The addresses of a stack, and commands to paste.
#[must_use]
pub fn text(stack: &Stack) -> String {
    let Stack { demo, url, other_urls, .. } = stack;
    let (register, about) = match stack.game_file() {
        None => (String::new(), "Everything about the demo game".to_owned()),
        Some(file) => (
            register(demo),
            format!(
                "The game is that of {file}, which is applied again whenever it changes.\nEverything about it"
            ),
        ),
    };
    format!(
        r#"
Muster listens on {url}
Open it in a browser to see lobbies, game servers and every request, and to play.
{faults}{reached}{register}{commands}
{about}, its tokens too: curl -s {url}/_local/demo
Ctrl-C stops it.
"#,
        faults = faults(stack.fault_seed()),
        reached = reached(other_urls, Some(&demo.base_url).filter(|public| *public != url)),
        commands = commands(demo),
    )
}

/// That requests fail on purpose, if they do.
fn faults(seed: Option<u32>) -> String {
    let text = |seed| format!("Every second request of a client has a fault, by the seed {seed}.\n");
    seed.map(text).unwrap_or_default()
}

/// Where other machines reach the API, if they do.
fn reached(other_urls: &[String], public_url: Option<&String>) -> String {
    let urls: Vec<&str> = other_urls.iter().chain(public_url).map(String::as_str).collect();
    if urls.is_empty() {
        return String::new();
    }
    format!(
        "Other machines reach the API at {}\nThe console and /_local answer only this machine.\n",
        urls.join(" and ")
    )
}

/// What the game server of a studio's own game needs, which has none yet.
fn register(demo: &Demo) -> String {
    let Demo { base_url, region_ids, tokens, build, .. } = demo;
    // In the quotes of a shell.
    let build = build.as_ref().map(|build| format!(r#""build": {build}, "#).replace('\'', r"'\''"));
    let region = region_ids.first().map_or("", |region| region.as_str());
    format!(
        r#"
Your game server registers with the token {server}
Until one does, finds get 503 MATCHMAKER_NO_SERVER_AVAILABLE. To register one by hand:

curl -s {base_url}/matchmaker/servers/register \
  -H 'Authorization: Bearer {server}' \
  -d '{{"server_id": "by-hand", "region_id": "{region}", "capacity": 100, "lease_seconds": 0, {build}"ports": {{"default": {{"hostname": "127.0.0.1", "port": 7777, "protocol": "udp"}}}}}}'
"#,
        build = build.unwrap_or_default(),
        server = tokens.server,
    )
}

fn commands(demo: &Demo) -> String {
    let Demo { base_url, game_id, namespace_id, tokens, .. } = demo;
    let mode = demo.mode().map_or("duel", |mode| mode.as_str());
    format!(
        r#"
Find a lobby (the answer holds the lobby, a player token and the ports to connect to):

curl -s {base_url}/matchmaker/lobbies/find \
  -H 'Authorization: Bearer {public}' \
  -d '{{"game_modes": ["{mode}"]}}'

Check matchmaker settings:

curl -s {base_url}/cloud/games/{game_id}/namespaces/{namespace_id}/mm-config/validate \
  -H 'Authorization: Bearer {cloud}' \
  -d '{{"lobby_count_max": 0, "max_players": 8}}'
"#,
        public = tokens.public,
        cloud = tokens.cloud,
    )
}
