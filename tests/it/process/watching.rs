//! `muster lobby list --watch` and `muster tail`: a namespace as it changes.

use super::*;

/// The command on the demo's main namespace, which runs until it is interrupted.
fn start(local: &Local, arguments: &[&str]) -> Program {
    Program::start("muster", &[arguments, &["demo/prod", &local.option]].concat(), &BTreeMap::new())
}

async fn expect_end(mut program: Program) -> String {
    program.signal("INT");
    let Ended { status, stdout, stderr } = program.end().await;
    assert_eq!((status.code(), stderr.as_str()), (Some(0), ""), "{stdout}");
    stdout
}

#[tokio::test]
async fn a_watched_list_shows_what_has_come_since() {
    let local = Local::start(&[]).await;
    let token = local.demo().await["tokens"]["public"].as_str().unwrap().to_owned();
    let mut list = start(&local, &["lobby", "list", "--watch"]);
    list.line_with("ID").await.unwrap();
    let lobby = local.find(&token, json!({ "game_modes": ["duel"] })).await.expect_ok().lobby_id();
    let row = list.line_with(&lobby).await.unwrap();
    assert!(row.contains("duel") && row.contains("1/2"), "{row}");
    local.find(&token, json!({ "game_modes": ["duel"] })).await.expect_ok();
    list.line_with("2/2").await.unwrap();
    let printed = expect_end(list).await;
    assert!(printed.lines().filter(|line| line.starts_with("ID ")).count() >= 2, "{printed}");
    assert!(!printed.contains('\u{1b}'), "a screen is cleared only on a terminal");
}

#[tokio::test]
async fn a_tail_has_a_line_for_each_change() {
    let local = Local::start(&[]).await;
    let tokens = local.demo().await["tokens"].clone();
    let [public, server] = ["public", "server"].map(|kind| tokens[kind].as_str().unwrap());
    let (mut tail, mut as_json) = (start(&local, &["tail"]), start(&local, &["--json", "tail"]));
    let cost = tail.line_with("read units a minute").await.unwrap();
    assert!(cost.starts_with("reads every 2 seconds, ") && !cost.contains(" 0 read units"), "{cost}");
    as_json.line_with("read_units_a_minute").await.unwrap();

    let duel = json!({ "game_modes": ["duel"] });
    let lobby = local.find(public, duel.clone()).await.expect_ok().lobby_id();
    tail.line_with(&format!("lobby {lobby} created, duel in fra, 1 of 2 seats held")).await.unwrap();
    // The find had it started.
    tail.line_with(" registered in fra").await.unwrap();
    local.find(public, duel).await.expect_ok();
    tail.line_with(&format!("lobby {lobby} 2 of 2 seats held, full")).await.unwrap();
    let registration = registration("mine", &json!({ "capacity": 1 }));
    let url = |name: &str| format!("{}/matchmaker/servers/{name}", local.base_url);
    post(&url("register"), server, &registration.to_string()).await.expect_ok();
    tail.line_with("server mine registered in fra").await.unwrap();
    post(&url("deregister"), server, r#"{ "server_id": "mine" }"#).await.expect_ok();
    tail.line_with("server mine gone").await.unwrap();
    local.ask(&["lobby", "end", "--yes", &lobby]).await;
    tail.line_with(&format!("lobby {lobby} ended")).await.unwrap();
    let change: Value = serde_json::from_str(&as_json.line_with("ended").await.unwrap()).unwrap();
    assert_eq!((&change["of"], &change["id"]), (&json!("lobby"), &json!(lobby)));
    let printed = expect_end(tail).await;
    assert_eq!(printed.lines().count(), 1 + 6 + 1, "each change once: {printed}");
    expect_end(as_json).await;
}

#[tokio::test]
async fn what_is_not_there_cannot_be_watched() {
    let local = Local::start(&[]).await;
    for arguments in [&["tail"][..], &["lobby", "list", "--watch"]] {
        let arguments = [arguments, &["demo/nothing"]].concat();
        let Ended { status, stdout, stderr } = local.muster(&arguments).await;
        assert_eq!((status.code(), stdout.as_str()), (Some(3), ""));
        assert!(stderr.contains("there is no namespace `nothing`"), "{stderr}");
    }
}
