//! A game that is exported from one deployment and imported into an empty one.

use super::*;

#[tokio::test]
async fn an_exported_game_finds_lobbies_in_another_deployment() {
    let (old, new, folder) = (Local::start(&[]).await, Local::start(&[]).await, TestFolder::new());
    let muster = async |local: &Local, arguments: &[&str]| {
        let arguments = [arguments, &[local.option.as_str()]].concat();
        let Ended { status, stdout, stderr } = Program::run("muster", &arguments, &BTreeMap::new()).await;
        assert!(status.success(), "{arguments:?}: {stderr}");
        stdout
    };
    let config = folder.path("modes.json");
    fs::write(&config, r#"{ "game_modes": { "arena": { "regions": ["ams"], "max_players": 2 } } }"#).unwrap();
    let create = ["game", "create", "mine", "--region", "ams=Amsterdam@52.37,4.89", "--config", &config];
    muster(&old, &create).await;
    let file = folder.path("mine.json");
    fs::write(&file, muster(&old, &["game", "export", "mine"]).await).unwrap();
    // A domain of another namespace: nothing is made, and the cloud token is not lost.
    muster(&new, &["game", "import", &file]).await;
    muster(&new, &["domain", "add", "mine/prod", "play.example.com"]).await;
    let mut other: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    other["namespaces"][0]["domains"] = json!(["play.example.com"]);
    fs::write(&file, other.to_string()).unwrap();
    // Nothing is made, so that no cloud token is lost.
    let arguments = ["game", "import", &file, "--name", "other", new.option.as_str()];
    let refused = Program::run("muster", &arguments, &BTreeMap::new()).await;
    assert!(!refused.status.success() && refused.stderr.contains("play.example.com"), "{}", refused.stderr);
    assert!(!muster(&new, &["game", "list"]).await.contains("other"));

    let server = muster(&new, &["token", "create", "server", "mine/prod"]).await;
    let registration = json!({
        "region_id": "ams", "capacity": 1,
        "ports": { "default": { "hostname": "game.example", "port": 7777, "protocol": "udp" } }
    });
    let register = format!("{}/matchmaker/servers/register", new.base_url);
    post(&register, server.trim(), &registration.to_string()).await.expect_ok();
    let public = muster(&new, &["token", "create", "public", "mine/prod"]).await;
    let found = new.find(public.trim(), json!({ "game_modes": ["arena"] })).await.expect_ok();
    assert_eq!(found.body["ports"]["default"]["hostname"], "game.example");
}
