//! `--host` and `--public-url`: who reaches the local stack, and where.

use super::*;

/// A request to `path` at the stack's loopback address, with one more header.
async fn ask(local: &Local, path: &str, header: (&str, &str)) -> Answer {
    send(Request::get(format!("{}{path}", local.base_url)).header(header.0, header.1), "").await
}

/// What only this machine may read.
const OWN: [&str; 5] = ["/", "/_console/deployment", "/_local/demo", "/_local/store", "/_local/counts"];

#[tokio::test]
async fn at_another_address_the_api_answers_beside_loopback() {
    let mut local = Local::start(&["--host", "127.0.0.2"]).await;
    let (text, _answers) = local.run_printed().await;
    let other = format!("http://127.0.0.2:{}", local.port());
    assert!(text.contains(&format!("Other machines reach the API at {other}\n")), "{text}");
    let demo = local.demo().await;
    assert_eq!(demo["base_url"], local.base_url.as_str());
    let token = demo["tokens"]["public"].as_str().unwrap();
    let find = |url: &str| {
        let url = format!("{url}/matchmaker/lobbies/find");
        async move { post(&url, token, r#"{"game_modes":["arena"]}"#).await.expect_ok().lobby_id() }
    };
    assert_eq!(find(&local.base_url).await, find(&other).await, "one stack has both addresses");
    local.interrupt().await;
    assert!(tokio::net::TcpStream::connect(other.trim_start_matches("http://")).await.is_err());
}

#[tokio::test]
async fn by_any_other_name_and_through_a_proxy_the_api_answers_alone() {
    let local = Local::start(&[]).await;
    for header in [("host", "192.0.2.7:3000"), ("host", "muster.example"), ("x-forwarded-for", "127.0.0.1")] {
        for path in OWN {
            let refused = ask(&local, path, header).await;
            assert_eq!(refused.status, 403, "{path} with {header:?}: {}", refused.body);
        }
        let bootstrap = ask(&local, "/cloud/bootstrap", header).await.expect_ok();
        assert!(bootstrap.body["cluster"].is_string(), "{header:?}: {}", bootstrap.body);
        assert_eq!(ask(&local, "/errors", header).await.status, 200, "{header:?}");
    }
}

#[tokio::test]
async fn a_public_url_is_what_the_stack_hands_out() {
    let mut local = Local::start(&["--public-url", "https://tunnel.example/muster/"]).await;
    let _last = local.program.line_with("Ctrl-C stops it").await.unwrap();
    let (text, public) = (local.program.printed(), "https://tunnel.example/muster");
    assert!(text.contains(&format!("Other machines reach the API at {public}\n")), "{text}");
    for path in ["matchmaker/lobbies/find", "cloud/games"] {
        assert!(text.contains(&format!("curl -s {public}/{path}")), "{path}: {text}");
    }
    assert!(text.contains(&format!("curl -s {}/_local/demo", local.base_url)), "{text}");
    assert_eq!(local.demo().await["base_url"], public);
    let refused = local.find("pub_forged", json!({ "game_modes": ["duel"] })).await;
    let documentation = refused.body["documentation"].as_str().unwrap();
    assert!(documentation.starts_with(&format!("{public}/errors#")), "{documentation}");
}

#[tokio::test]
async fn an_address_or_url_that_cannot_be_used_is_refused() {
    let message = refusal(&["--port", "0", "--host", "203.0.113.7"]).await;
    assert_eq!(
        message,
        "203.0.113.7 is no address of this machine; use one of its own, or 0.0.0.0 for all of them"
    );
    for (option, value, says) in [
        ("--host", "muster.example", "must be an IP address of this machine, or 0.0.0.0 for all of them"),
        ("--host", "127.0.0.1:3000", "must be an IP address of this machine"),
        ("--public-url", "tunnel.example", "must be like `https://muster.example`"),
        ("--public-url", "https://me@tunnel.example", "without user, query and fragment"),
    ] {
        let ended = Program::run(BINARY, &["--port", "0", option, value], &BTreeMap::new()).await;
        assert_eq!(ended.status.code(), Some(2), "{option} {value}");
        assert!(ended.stderr.contains(says) && ended.stdout.is_empty(), "{}", ended.stderr);
    }
}

/// The commands of README's *Try it*, without a stack in AWS and without `cargo`.
#[tokio::test]
async fn a_namespace_of_ones_own_takes_three_commands() {
    let (local, folder) = (Local::start(&[]).await, TestFolder::new());
    let modes = folder.path("arena.json");
    fs::write(&modes, r#"{"game_modes": {"arena": {"regions": ["fra"], "max_players": 10}}}"#).unwrap();
    local
        .ask(&["game", "create", "my-game", "--region", "fra=Frankfurt@50.11,8.68", "--config", &modes])
        .await;
    let server = local.ask(&["token", "create", "server", "my-game/prod"]).await;
    let public = local.ask(&["token", "create", "public", "my-game/prod"]).await;
    let arena = json!({ "game_modes": ["arena"] });
    let early = local.find(&public, arena.clone()).await;
    assert_eq!(early.refusal(), (503, "MATCHMAKER_NO_SERVER_AVAILABLE"));
    let registration = json!({
        "server_id": "by-hand", "region_id": "fra", "lease_seconds": 0,
        "ports": { "default": { "hostname": "game.example", "port": 7777, "protocol": "udp" } },
    });
    let register = format!("{}/matchmaker/servers/register", local.base_url);
    post(&register, &server, &registration.to_string()).await.expect_ok();
    let found = local.find(&public, arena).await.expect_ok();
    assert_eq!(found.body["ports"]["default"]["hostname"], "game.example");
}
