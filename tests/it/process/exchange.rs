//! A game that is exported from one deployment and imported into an empty one.

use super::*;

#[tokio::test]
async fn an_exported_game_finds_lobbies_in_another_deployment() {
    let (old, new, folder) = (Local::start(&[]).await, Local::start(&[]).await, TestFolder::new());
    let config = folder.path("modes.json");
    fs::write(&config, r#"{ "game_modes": { "arena": { "regions": ["ams"], "max_players": 2 } } }"#).unwrap();
    let create = ["game", "create", "mine", "--region", "ams=Amsterdam@52.37,4.89", "--config", &config];
    old.ask(&create).await;
    let file = folder.path("mine.json");
    fs::write(&file, old.ask(&["game", "export", "mine"]).await).unwrap();
    // A domain of another namespace: nothing is made, and the cloud token is not lost.
    new.ask(&["game", "import", &file]).await;
    new.ask(&["domain", "add", "mine/prod", "play.example.com"]).await;
    let mut other: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    other["namespaces"][0]["domains"] = json!(["play.example.com"]);
    fs::write(&file, other.to_string()).unwrap();
    // Nothing is made, so that no cloud token is lost.
    let refused = new.muster(&["game", "import", &file, "--name", "other"]).await;
    assert!(!refused.status.success() && refused.stderr.contains("play.example.com"), "{}", refused.stderr);
    assert!(!new.ask(&["game", "list"]).await.contains("other"));

    let server = new.ask(&["token", "create", "server", "mine/prod"]).await;
    let registration = json!({
        "region_id": "ams", "capacity": 1,
        "ports": { "default": { "hostname": "game.example", "port": 7777, "protocol": "udp" } }
    });
    let register = format!("{}/matchmaker/servers/register", new.base_url);
    post(&register, server.trim(), &registration.to_string()).await.expect_ok();
    let public = new.ask(&["token", "create", "public", "mine/prod"]).await;
    let found = new.find(public.trim(), json!({ "game_modes": ["arena"] })).await.expect_ok();
    assert_eq!(found.body["ports"]["default"]["hostname"], "game.example");
}
