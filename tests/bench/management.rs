//! What the operations that manage games cost, one request each.

use std::time::Duration;

use serde_json::json;
use shared::{
    cloud::issuing::issue_cloud_token,
    models::{
        lobby::{Lobby, Stage},
        rights::GameRight,
    },
};

use super::Bench;

const HEAD: &str = "
## What managing costs

| operation | calls | read units | write units | bytes | DynamoDB | data | all |
|---|---|---|---|---|---|---|---|
";

pub async fn operations(bench: &Bench) {
    bench.say(HEAD).await;
    let modes = json!({ "arena": { "regions": ["fra"] } });
    let game = bench.stack.make_game("managed", modes.clone(), 10, 1).await;
    let right = GameRight::of_operator(game.game_id().clone());
    let token = issue_cloud_token(bench.stack.store(), &bench.stack.ambient(), &right).await;
    let token = token.expect("a cloud token");
    let token = token.reveal();
    let (game_id, namespace_id) = (game.game_id().as_str(), game.namespace_id().as_str());
    let version = json!({ "display_name": "2", "config": { "game_modes": modes } });
    let nothing = || json!({});

    let of_game = [("game_id", game_id)];
    let made = bench.line("create a version", "create-version", token, version.clone(), &of_game).await;
    let version_id = made["version_id"].as_str().expect("an identifier");
    let new = json!({ "display_name": "New", "version_id": version_id, "name_id": "new" });
    for (what, function, body) in [
        ("get a game", "get-game", nothing()),
        ("validate a version", "validate-version", version),
        ("validate a namespace", "validate-namespace", json!({ "display_name": "New", "name_id": "new" })),
        ("create a namespace", "create-namespace", new),
        ("create a cloud token", "create-cloud-token", nothing()),
    ] {
        bench.line(what, function, token, body, &of_game).await;
    }
    let of_version = [("game_id", game_id), ("version_id", version_id)];
    bench.line("get a version", "get-version", token, nothing(), &of_version).await;

    let of_namespace = [("game_id", game_id), ("namespace_id", namespace_id)];
    // A deployment is later than the one before.
    bench.stack.clock.advance(Duration::from_secs(1));
    let limits = json!({ "lobby_count_max": 10, "max_players": 8 });
    let server =
        json!({ "hostname": "127.0.0.1", "ports": { "default": { "port": 7_777, "protocol": "http" } } });
    // The hash of no password, in the right form.
    let user = json!({ "user": "nightly", "password": format!("$2b$04${}", ".".repeat(53)) });
    for (what, function, body) in [
        ("set a namespace's version", "update-namespace-version", json!({ "version_id": version_id })),
        ("get a namespace", "get-namespace", nothing()),
        ("get the history of versions", "get-version-history", nothing()),
        ("validate matchmaker limits", "validate-matchmaker-config", limits.clone()),
        ("set matchmaker limits", "update-matchmaker-config", limits),
        ("set the CDN's authentication", "set-cdn-auth-type", json!({ "auth_type": "basic" })),
        ("add a CDN user", "update-cdn-auth-user", user),
        ("set public pages", "set-domain-public-auth", json!({ "enabled": true })),
        ("add a domain", "add-domain", json!({ "domain": "page.example" })),
        ("create a public token", "create-public-token", nothing()),
        ("create a server token", "create-server-token", nothing()),
        ("create a development token", "create-development-token", server),
    ] {
        bench.line(what, function, token, body, &of_namespace).await;
    }
    let of_user = [of_namespace[0], of_namespace[1], ("user", "nightly")];
    bench.line("remove a CDN user", "delete-cdn-auth-user", token, nothing(), &of_user).await;
    let of_domain = [of_namespace[0], of_namespace[1], ("domain", "page.example")];
    bench.line("remove a domain", "delete-domain", token, nothing(), &of_domain).await;
    bench.line("bootstrap", "get-bootstrap", token, nothing(), &[]).await;
    game_servers(bench).await;
}

/// A lobby that its server makes ready, and the server's end.
async fn game_servers(bench: &Bench) {
    let modes = json!({ "arena": { "regions": ["fra"] } });
    let game = bench.stack.make_game("starting", modes, 10, 1).await;
    bench.warm(&["set-lobby-ready", "deregister-server"], &game).await;
    let seat = bench.call("find-lobby", &game.public, &json!({ "game_modes": ["arena"] }), &[]).await;
    let lobby_id = seat["lobby"]["lobby_id"].as_str().expect("an identifier");
    let lobby = game.lobby(&bench.stack, lobby_id).await;
    let server = lobby.server.clone().expect("a game server");
    let starting = Lobby { stage: Stage::Starting, ..lobby };
    let store = bench.stack.store();
    let put = store.client().put_item().table_name(&store.tables().lobbies);
    let put = put.set_item(Some(serde_dynamo::to_item(starting).expect("an item")));
    put.send().await.expect("a write");
    let token = game.lobby_token(&bench.stack, lobby_id);
    bench.line("ready", "set-lobby-ready", &token, json!({}), &[]).await;
    let body = json!({ "server_id": server.server_id });
    bench.line("deregister a game server of one lobby", "deregister-server", &game.server, body, &[]).await;
}
