//! A version's secrets are in no response, log or output of the command.

use harness::{game_server::registration, instance::patient_client};

use super::*;
use crate::agreement::document::Document;

/// The secrets of a version; nothing else holds these texts.
const SECRETS: [&str; 2] = ["0x-captcha-key-of-this-test", "header-value-of-this-test"];

/// Two modes by the names that the document's examples use, one of them with a backend, and a captcha.
fn config() -> String {
    let regions = json!(["fra", "nyc"]);
    let verification =
        json!({ "url": "https://verify.example/", "headers": { "authorization": SECRETS[1] } });
    let action = json!({ "enabled": true, "verification": verification });
    let modes = json!({
        "duel": { "regions": regions, "actions": { "find": action, "join": action, "create": action } },
        "arena": { "regions": regions, "taggable": true, "actions": { "create": { "enabled": true } } },
    });
    let captcha = json!({ "requests_before_reverify": 600, "verification_ttl": 60_000,
                          "turnstile": { "site_key": "site", "secret_key": SECRETS[0] } });
    json!({ "game_modes": modes, "captcha": captcha }).to_string()
}

/// What a place showed.
type Shown = (String, String);

/// Has every command show what it shows of a version, and of wrong ones.
async fn command(muster: &mut impl AsyncFnMut(&[&str]) -> String, folder: &TestFolder) {
    let wrong = folder.path("wrong.json");
    for text in [
        config().replace("\"site_key\"", "\"site_kei\""),
        config().replace("600", "601"),
        config().replace("fra", "ams"),
    ] {
        fs::write(&wrong, text).unwrap();
        muster(&["version", "create", "mine", &wrong]).await;
        muster(&["version", "validate", &wrong]).await;
    }
    let exported = muster(&["game", "export", "mine"]).await;
    assert!(exported.contains("turnstile") && exported.contains("https://verify.example/"), "{exported}");
    for arguments in [
        &["version", "show", "mine", "1"][..],
        &["version", "show", "mine", "1", "--json"],
        &["version", "list", "mine", "--json"],
        &["game", "show", "mine", "--json"],
        &["namespace", "list", "mine", "--json"],
        &["lobby", "explain", "mine/prod", "--mode", "duel"],
        &["doctor", "--json"],
    ] {
        muster(arguments).await;
    }
}

/// Every operation as its examples have it, with each of `tokens`.
async fn operations(local: &Local, path_of: impl Fn(&str) -> String, tokens: &[&String]) -> Vec<Shown> {
    let (document, mut shown) = (Document::read(), Vec::new());
    for operation in document.operations() {
        let url = format!("{}{}", local.base_url, path_of(operation.path));
        for body in operation.request_examples() {
            for token in tokens {
                let request = Request::builder().method(operation.method.clone()).uri(&url);
                let request =
                    request.header("authorization", format!("Bearer {token}")).header("muster-explain", "1");
                let answer = send(request, &body.map(Value::to_string).unwrap_or_default()).await;
                shown.push(shown_by(operation.id, &answer));
            }
        }
    }
    shown
}

fn shown_by(id: &str, answer: &Answer) -> Shown {
    (id.to_owned(), format!("{:?} {}", answer.headers, answer.body))
}

#[tokio::test]
async fn no_response_log_export_or_command_contains_a_secret() {
    let folder = TestFolder::new();
    let file = folder.path("modes.json");
    fs::write(&file, config()).unwrap();
    let local = Local::start_with(&[], BTreeMap::from([("MUSTER_LOG".to_owned(), "trace".to_owned())])).await;
    let mut shown: Vec<Shown> = Vec::new();
    let mut muster = async |arguments: &[&str]| {
        let arguments = [arguments, &[local.option.as_str()]].concat();
        let Ended { stdout, stderr, .. } = Program::run("muster", &arguments, &BTreeMap::new()).await;
        shown.push((arguments.join(" "), format!("{stdout}{stderr}")));
        stdout.trim().to_owned()
    };
    let regions = ["--region", "fra=Frankfurt@50.1,8.7", "--region", "nyc=New York@40.7,-74"];
    let create = [&["game", "create", "mine", "--config", &file, "--json"], &regions[..]].concat();
    let made: Value = serde_json::from_str(&muster(&create).await).unwrap();
    let of = |name: &str| made[name].as_str().unwrap().to_owned();
    let (game_id, version_id, cloud) = (of("game_id"), of("version_id"), of("cloud_token"));
    let namespace_id = made["namespaces"]["prod"].as_str().unwrap().to_owned();
    let public = muster(&["token", "create", "public", "mine/prod"]).await;
    let server = muster(&["token", "create", "server", "mine/prod"]).await;
    let development = muster(&[
        "token",
        "create",
        "development",
        "mine/prod",
        "--hostname",
        "127.0.0.1",
        "--port",
        "game=7777/udp",
    ])
    .await;
    command(&mut muster, &folder).await;

    let path_of = |path: &str| {
        let path = path.replace("{game_id}", &game_id).replace("{namespace_id}", &namespace_id);
        let path = path.replace("{version_id}", &version_id).replace("{lobby_id}", "none");
        path.replace("{user}", "ada").replace("{domain}", "play.example")
    };
    let mut answered = operations(&local, path_of, &[&cloud, &public, &server, &development]).await;
    // And those that call providers and backends.
    let registration = registration("one", &json!({ "capacity": 9 }));
    let registered =
        post(&format!("{}/matchmaker/servers/register", local.base_url), &server, &registration.to_string())
            .await;
    registered.expect_ok();
    let captcha = json!({ "turnstile": { "client_response": "answer" } });
    for (mode, captcha, expected) in [
        ("arena", json!(null), "CAPTCHA_CAPTCHA_REQUIRED"),
        ("arena", captcha.clone(), "CAPTCHA_UNAVAILABLE"),
        ("duel", captcha, "CAPTCHA_UNAVAILABLE"),
    ] {
        let answer = local.find(&public, json!({ "game_modes": [mode], "captcha": captcha })).await;
        assert_eq!(answer.refusal().1, expected);
        answered.push(shown_by("find", &answer));
    }
    let mut unscreened: Value = serde_json::from_str(&config()).unwrap();
    unscreened.as_object_mut().unwrap().remove("captcha");
    fs::write(&file, unscreened.to_string()).unwrap();
    let second = muster(&["version", "create", "mine", &file, "--json"]).await;
    let url = format!("{}/cloud/games/{game_id}/namespaces/{namespace_id}/version", local.base_url);
    let run = Request::put(url).header("authorization", format!("Bearer {cloud}"));
    send(run, &second).await.expect_ok();
    let answer = local.find(&public, json!({ "game_modes": ["duel"] })).await;
    assert_eq!(answer.refusal().1, "MATCHMAKER_VERIFICATION_REQUEST_FAILED");
    answered.push(shown_by("find", &answer));

    // They were there all the time.
    let store = get(&format!("{}/_local/store", local.base_url)).await.expect_ok().body;
    let tables = patient_client(store["endpoint"].as_str().unwrap());
    let kept = tables.scan().table_name("SecretsTable").send().await.unwrap();
    let kept = format!("{:?}", kept.items());
    assert!(SECRETS.iter().all(|secret| kept.contains(secret)), "{kept}");

    shown.extend(answered);
    shown.push(("/_local/demo".to_owned(), local.demo().await.to_string()));
    let Ended { stdout, stderr, .. } = local.interrupt().await;
    assert!(stderr.contains("MATCHMAKER_VERIFICATION_REQUEST_FAILED"), "it logs what happens: {stderr}");
    shown.push(("log".to_owned(), format!("{stdout}{stderr}")));
    for (place, text) in &shown {
        assert!(SECRETS.iter().all(|secret| !text.contains(secret)), "{place}: {text}");
    }
}
