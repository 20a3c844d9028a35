//! `cargo run -- --config FILE`: a studio's own game in place of the demo game.

use super::*;

/// A file as `muster game export` writes it, with one namespace that runs the modes.
fn file(modes: &Value) -> Value {
    let id = "5a0d7a3e-2f0c-4c58-9d0f-6a1c2b3d4e5f";
    let region = json!({ "display_name": "Amsterdam", "provider_display_name": "Own", "latitude": 52.4, "longitude": 4.9 });
    json!({
        "muster_game": 1, "name_id": "mine", "display_name": "Mine", "regions": { "ams": region },
        "versions": [{ "version_id": id, "display_name": "1", "config": { "game_modes": modes } }],
        "namespaces": [{
            "name_id": "live", "display_name": "Live", "version_id": id, "lobby_count_max": 10,
            "max_players_per_client": 100, "cdn_auth_type": "none", "enable_domain_public_auth": true,
            "domains": [],
        }],
    })
}

fn modes(names: &[&str]) -> Value {
    let mode = |name: &&str| ((*name).to_owned(), json!({ "regions": ["ams"], "max_players": 4 }));
    Value::Object(names.iter().map(mode).collect())
}

/// Writes a file with a line for each value, as editors do.
fn write(path: &str, file: &Value) {
    fs::write(path, format!("{file:#}")).unwrap();
}

/// Finds a lobby of `mode` as soon as the stack has it.
async fn find_soon(local: &Local, token: &str, mode: &str) -> Answer {
    timeout(PATIENCE, async {
        loop {
            let found = local.find(token, json!({ "game_modes": [mode] })).await;
            if found.status == 200 {
                return found;
            }
            assert_eq!(found.refusal().1, "MATCHMAKER_GAME_MODE_NOT_FOUND");
            sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .expect("in time")
}

#[tokio::test]
async fn the_printed_server_is_of_the_build_that_the_game_has_started() {
    let folder = TestFolder::new();
    let path = folder.path("game.json");
    let mut own = file(&modes(&["raid"]));
    own["versions"][0]["config"]["servers"] = json!({ "build": { "image": "mine's:1" } });
    write(&path, &own);
    let mut local = Local::start(&["--config", &path]).await;
    // Each of the commands succeeds.
    let (text, answers) = local.run_printed().await;
    let [(_, server), (_, found), _valid] = answers.as_slice() else { panic!("three commands: {text}") };
    assert_eq!((&server["server_id"], &found["ports"]["default"]["port"]), (&json!("by-hand"), &json!(7777)));
}

#[tokio::test]
async fn a_studios_own_game_runs_and_follows_its_file() {
    let folder = TestFolder::new();
    let path = folder.path("game.json");
    write(&path, &file(&modes(&["raid"])));
    let mut local = Local::start(&["--config", &path]).await;
    let (text, answers) = local.run_printed().await;
    // First a game server, then a find.
    let [(_, server), (_, found), _valid] = answers.as_slice() else { panic!("three commands: {text}") };
    assert_eq!(
        (&server["server_id"], &found["lobby"]["region"]["region_id"]),
        (&json!("by-hand"), &json!("ams"))
    );
    assert!(text.contains(&path), "{text}");

    let demo = local.demo().await;
    let token = demo["tokens"]["public"].as_str().unwrap();
    write(&path, &file(&modes(&["raid", "siege"])));
    find_soon(&local, token, "siege").await;
    let line = local.program.logged("live runs version 1-2").await.unwrap();
    assert!(line.contains(&path), "{line}");
    find_soon(&local, token, "raid").await;

    // A file with a mistake changes nothing.
    let mut broken = file(&modes(&["raid", "siege"]));
    broken["versions"][0]["config"]["game_modes"]["raid"]["max_players"] = json!(257);
    write(&path, &broken);
    let line = local.program.logged("not applied").await.unwrap();
    let at = "versions/0/config/game_modes/raid/max_players/too-high";
    assert!(line.contains(&path) && line.contains(at), "{line}");
    let number = 1 + format!("{broken:#}").lines().position(|line| line.contains("257")).unwrap();
    assert!(line.contains(&format!("line {number}: ")), "{line}");
    let now = local.demo().await;
    assert_eq!(now["game_modes"], json!(["raid", "siege"]));
    assert_eq!(now["version_ids"].as_array().unwrap().len(), 2);
    local.find(token, json!({ "game_modes": ["siege"] })).await.expect_ok();
}

#[tokio::test]
async fn a_restart_with_data_keeps_the_game_and_applies_what_changed() {
    let folder = TestFolder::new();
    let (path, data) = (folder.path("game.json"), folder.path("data"));
    let mut game = file(&modes(&["raid"]));
    let secret = |text: &str| {
        json!({ "requests_before_reverify": 9, "verification_ttl": 60_000,
                "turnstile": { "site_key": "site", "secret_key": text } })
    };
    game["versions"][0]["config"]["captcha"] = secret("of-a-test");
    game["namespaces"][0]["domains"] = json!(["old.example", "kept.example"]);
    write(&path, &game);
    let arguments = ["--data", data.as_str(), "--config", path.as_str()];
    let start = async || {
        let local = Local::start(&arguments).await;
        let demo = local.demo().await;
        local.interrupt().await;
        demo
    };
    let first = start().await;
    let second = start().await;
    for kept in ["game_id", "namespace_id", "version_ids"] {
        assert_eq!(second[kept], first[kept], "{kept}");
    }
    game["versions"][0]["config"]["captcha"] = secret("of-another-test");
    let mut added = game["namespaces"][0].clone();
    added["name_id"] = json!("trial");
    added["domains"] = json!([]);
    game["namespaces"][0]["lobby_count_max"] = json!(7);
    game["namespaces"][0]["domains"] = json!(["kept.example", "new.example"]);
    game["namespaces"].as_array_mut().unwrap().push(added);
    write(&path, &game);
    let third = start().await;
    assert_eq!((&third["game_id"], &third["namespace_id"]), (&first["game_id"], &first["namespace_id"]));
    assert_eq!(third["version_ids"].as_array().unwrap().len(), 2, "a changed secret makes a version");
    assert_ne!(third["version_ids"][0], first["version_ids"][0]);
    assert_ne!(third["other_namespace_id"], first["other_namespace_id"], "a namespace is new");

    let local = Local::start(&arguments).await;
    let token = first["tokens"]["public"].as_str().unwrap();
    let refused = local.find(token, json!({ "game_modes": ["raid"] })).await;
    assert_eq!(refused.refusal(), (403, "CAPTCHA_CAPTCHA_REQUIRED"), "the first start's token still counts");
    let shown = local.ask(&["namespace", "show", "mine/live"]).await;
    assert!(shown.contains("lobbies at most      7"), "{shown}");
    assert!(shown.contains("kept.example new.example") && !shown.contains("old.example"), "{shown}");
}

#[tokio::test]
async fn the_game_of_the_page_runs_as_it_stands_there() {
    let page = fs::read_to_string(crate::artefacts::workspace().join("infra/docs/local.md")).unwrap();
    let (_, block) = page.split_once("```json\n").unwrap();
    let (game, _) = block.split_once("```").unwrap();
    let folder = TestFolder::new();
    let path = folder.path("game.json");
    fs::write(&path, game).unwrap();
    let mut local = Local::start(&["--config", &path]).await;
    assert_eq!(local.run_printed().await.1.len(), 3);
}

#[tokio::test]
async fn a_version_file_is_a_game_with_one_namespace() {
    let folder = TestFolder::new();
    let path = folder.path("version.json");
    let version = |players: u32| json!({ "game_modes": { "raid": { "regions": ["home", "away"], "max_players": players } } });
    write(&path, &version(4));
    let mut local = Local::start(&["--config", &path]).await;
    let (text, answers) = local.run_printed().await;
    assert_eq!(answers.len(), 3, "{text}");
    let demo = local.demo().await;
    assert_eq!(demo["game_modes"], json!(["raid"]));
    local.ask(&["namespace", "show", "my-game/prod"]).await;
    write(&path, &version(2));
    local.program.logged("prod runs version 1-2").await.unwrap();
}

#[tokio::test]
async fn a_file_that_cannot_be_used_is_refused_at_the_start() {
    let folder = TestFolder::new();
    let path = folder.path("game.json");
    let arguments = ["--port", "0", "--config", &path];
    assert!(refusal(&arguments).await.starts_with(&format!("cannot read {path}: ")));
    let mut blank = file(&modes(&["raid"]));
    blank["versions"][0]["config"]["captcha"] = json!({
        "requests_before_reverify": 9, "verification_ttl": 60_000,
        "turnstile": { "site_key": "site", "secret_key": null },
    });
    let mut unknown = file(&modes(&["raid"]));
    unknown["versions"][0]["config"]["game_mods"] = json!({});
    let mut bare = file(&modes(&["raid"]));
    bare["namespaces"] = json!([]);
    // Every mistake at once: a wrong type, an unknown field, a broken rule.
    let mut wrong = file(&modes(&["raid", "siege"]));
    let config = &mut wrong["versions"][0]["config"]["game_modes"];
    config["raid"]["max_players"] = json!("4");
    config["raid"]["size"] = json!(4);
    config["siege"]["max_players"] = json!(0);
    wrong["namespaces"][0]["limit"] = json!(1);
    for (text, expected) in [
        (wrong.to_string(), "game_modes/raid/max_players: a whole number"),
        (wrong.to_string(), "game_modes/raid/size: there is no such field"),
        (wrong.to_string(), "game_modes/siege/max_players/too-low"),
        (wrong.to_string(), "namespaces/0/limit: there is no such field"),
        (r#"{"game_modes": {"raid": {"regions": [], "size": 4}}}"#.to_owned(), "raid/size: there is no"),
        (r#"{"game_modes": {"raid": {"regions": [], "size": 4}}}"#.to_owned(), "raid/regions/too-few"),
        (
            r#"{"name": "game", "version": "1.0.0"}"#.to_owned(),
            "JSON of something else, with `name`, `version`",
        ),
        (format!("pub_{}", "eyJhbGciOi.J9-_".repeat(4)), "is a token; it must be a version file"),
        (bare.to_string(), "namespaces/missing"),
        ("{".to_owned(), "no JSON: EOF while parsing an object at line 1 column 1"),
        (file(&json!({})).to_string(), "line 1: versions/0/config/game_modes/too-few"),
        (blank.to_string(), "versions/0/config/captcha/turnstile/secret_key/missing"),
        (format!("{unknown:#}"), "versions/0/config/game_mods: there is no such field"),
    ] {
        fs::write(&path, text).unwrap();
        let message = refusal(&arguments).await;
        assert!(message.starts_with(&path) && message.contains(expected), "{message}");
    }
}
