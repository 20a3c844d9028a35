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
    muster(&new, &["game", "import", &file]).await;

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
