//! What the local stack says of requests on the terminal.

use super::*;

impl Local {
    /// A line of the log, once it is there.
    async fn logged(&mut self, part: &str) -> String {
        self.program.logged(part).await.expect("the stack runs")
    }
}

#[tokio::test]
async fn each_request_is_one_readable_line() {
    let mut local = Local::start(&[]).await;
    let token = local.demo().await["tokens"]["public"].as_str().unwrap().to_owned();
    let duel = json!({ "game_modes": ["duel"] });
    let lobby = local.find(&token, duel.clone()).await.expect_ok().lobby_id();
    let form = Regex::new(
        r"^[0-2]\d:[0-5]\d:[0-5]\d POST /matchmaker/lobbies/find 200 duel fra lobby [0-9a-f]{8} created \d+ ms$",
    )
    .unwrap();
    let created = local.logged(" created ").await;
    assert!(form.is_match(&created) && created.contains(&lobby[..8]), "{created}");
    local.find(&token, duel).await.expect_ok();
    assert!(local.logged(" joined ").await.contains(&format!("200 duel fra lobby {}", &lobby[..8])));

    let unknown = local.find(&token, json!({ "game_modes": ["dule"] })).await;
    assert_eq!(unknown.refusal(), (400, "MATCHMAKER_GAME_MODE_NOT_FOUND"));
    let line = local.logged("dule").await;
    assert!(line.contains("400 MATCHMAKER_GAME_MODE_NOT_FOUND dule (modes: arena, duel, solo) "), "{line}");
    let elsewhere = local.find(&token, json!({ "game_modes": ["duel"], "regions": ["mars"] })).await;
    assert_eq!(elsewhere.refusal(), (400, "MATCHMAKER_REGION_NOT_FOUND"));
    assert!(local.logged("mars").await.contains("duel mars (regions: fra, nyc) "));
    let _forged = local.find("pub_forged", json!({ "game_modes": ["duel"] })).await;
    assert!(local.logged("401").await.contains(" 401 TOKEN_INVALID duel (the token is malformed"));

    let _lost = post(&format!("{}/matchmaker/lobbies/fnd", local.base_url), &token, "{}").await;
    let line = local.logged("fnd").await;
    assert!(
        line.contains(" POST /matchmaker/lobbies/fnd 404 (did you mean POST /matchmaker/lobbies/find?) ")
    );
    let _wrong_method = get(&format!("{}/matchmaker/lobbies/find", local.base_url)).await;
    assert!(
        local.logged(" GET ").await.contains(" GET /matchmaker/lobbies/find 404 (this path takes POST) ")
    );

    let stderr = local.interrupt().await.stderr;
    let of_players = stderr.lines().filter(|line| line.contains(" /matchmaker/lobbies/"));
    assert_eq!(of_players.count(), 7, "a line for each request: {stderr}");
    assert!(!stderr.contains(&token) && !stderr.contains("forged"), "{stderr}");
}

#[tokio::test]
async fn warnings_and_what_a_rule_allows_are_in_the_line() {
    let mut local = Local::start(&[]).await;
    let tokens = local.demo().await["tokens"].clone();
    let public = tokens["public"].as_str().unwrap();
    local.find(public, json!({ "game_modes": ["duel"], "region": "nyc" })).await.expect_ok();
    let line = local.logged(" created ").await;
    assert!(
        line.contains(r#" created (warning: unknown field "region" (did you mean "regions"?)) "#),
        "{line}"
    );
    local.find(tokens["development"].as_str().unwrap(), json!({})).await.expect_ok();
    let line = local.logged(" dev-lcl ").await;
    assert!(line.contains("(warning: the response to a development token is a mock: "), "{line}");

    let port = json!({ "hostname": "0.0.0.0", "port": "7777", "protocol": "udp" });
    let mut registration = json!({ "region_id": "fr", "ports": { "game": port } });
    let url = format!("{}/matchmaker/servers/register", local.base_url);
    let server = tokens["server"].as_str().unwrap();
    post(&url, server, &registration.to_string()).await;
    let line = local.logged(" 400 API_BAD_BODY ").await;
    assert!(
        line.contains(
            "(the body does not fit at `ports.game.port`: a number from 1 to 65535 is needed, not a text) "
        ),
        "{line}"
    );
    registration["ports"]["game"]["port"] = json!(7_777);
    post(&url, server, &registration.to_string()).await;
    let line = local.logged(" 400 MATCHMAKER_INVALID_SERVER ").await;
    assert!(
        line.contains(
            "region_id/not-found (`fr` is not one of `fra`, `nyc`); ports/game/hostname/not-reachable"
        ),
        "{line}"
    );
}

#[tokio::test]
async fn of_a_servers_heartbeats_the_first_has_a_line_and_a_refused_one_always() {
    let mut local = Local::start(&[]).await;
    let tokens = local.demo().await["tokens"].clone();
    let server = tokens["server"].as_str().unwrap();
    let registration = registration("mine", &json!({ "capacity": 1 }));
    let url = |name: &str| format!("{}/matchmaker/servers/{name}", local.base_url);
    post(&url("register"), server, &registration.to_string()).await.expect_ok();
    let heartbeat = json!({ "server_id": "mine" }).to_string();
    for _ in 0..5 {
        post(&url("heartbeat"), server, &heartbeat).await.expect_ok();
    }
    for _ in 0..2 {
        let refused = post(&url("heartbeat"), tokens["public"].as_str().unwrap(), &heartbeat).await;
        assert_eq!(refused.status, 403);
    }
    let line = local.logged("register").await;
    assert!(line.contains(" 200 fra server mine "), "{line}");
    let stderr = local.interrupt().await.stderr;
    let count = |part: &str| stderr.lines().filter(|line| line.contains(part)).count();
    assert_eq!(count("/heartbeat 200 server mine (its first heartbeat"), 1, "{stderr}");
    assert_eq!(count("/heartbeat 403 CLAIMS_MISSING_ENTITLEMENT server mine"), 2, "{stderr}");
    assert_eq!(stderr.lines().count(), 4, "{stderr}");
}

#[tokio::test]
async fn lines_of_functions_are_at_hand_as_json_or_by_their_level() {
    for (arguments, variable) in [(&["--json"][..], None), (&[], Some("info,dynoxide=off"))] {
        let environment = variable.map(|filter| ("MUSTER_LOG".to_owned(), filter.to_owned()));
        let local = Local::start_with(arguments, environment.into_iter().collect()).await;
        let token = local.demo().await["tokens"]["public"].as_str().unwrap().to_owned();
        local.find(&token, json!({ "game_modes": ["solo"] })).await.expect_ok();
        let stderr = local.interrupt().await.stderr;
        assert!(stderr.contains("a seat was reserved"), "{stderr}");
        let has_readable = stderr.contains(" POST /matchmaker/lobbies/find 200 solo");
        assert_eq!(has_readable, variable.is_some(), "{stderr}");
        if variable.is_none() {
            let line = stderr.lines().find(|line| line.contains("the operation succeeded")).unwrap();
            let line: Value = serde_json::from_str(line).unwrap();
            assert_eq!((&line["level"], &line["status"]), (&json!("INFO"), &json!(200)), "{line}");
            assert!(stderr.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{stderr}");
        }
    }
}
