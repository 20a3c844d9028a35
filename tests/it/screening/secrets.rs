//! A version's secrets: where they are, and that they are never shown.

use aws_sdk_dynamodb::types::AttributeValue;
use muster_local::emulator::link::{Call, Carried, Link, patient_client_over};
use shared::{
    base::usage::Usage,
    models::{errors::Error, version::Version, version_secrets::VersionSecrets},
    screening::secrets::SecretsCache,
    store::meter::Meter,
};

use super::*;

const SECRETS: [&str; 2] = ["captcha-secret", "header-secret"];

fn config(url: &str) -> Value {
    let modes = json!({ "arena": mode(Some(url)) });
    json!({ "game_modes": modes, "captcha": captcha("turnstile", 1, Duration::from_secs(60)) })
}

#[tokio::test]
async fn a_version_made_over_http_keeps_its_secrets_apart_and_no_answer_holds_them() {
    let stack = TestStack::start().await;
    let game = stack.make_game("secretive", json!({ "arena": { "regions": ["fra"] } }), 10, 10).await;
    let cloud = Some(game.created.cloud_token.reveal());
    let base = format!("/cloud/games/{}", game.game_id());
    let body = |url: &str| json!({ "display_name": "2", "config": config(url) }).to_string();
    let mut answers = Vec::new();
    let mut ask = async |method: Method, path: &str, body: String| {
        let answer = stack.call(method, &format!("{base}{path}"), cloud, body).await;
        answers.push(answer.clone());
        answer
    };
    let valid = ask(Method::POST, "/versions/validate", body("https://verify.example/")).await;
    assert_eq!(valid.body, json!({ "errors": [] }));
    ask(Method::POST, "/versions/validate", body("https://10.0.0.1/")).await.expect_ok();
    ask(Method::POST, "/versions", body("https://10.0.0.1/")).await;
    let broken = body("https://verify.example/").replace("\"site_key\"", "\"site_kei\"");
    assert_eq!(ask(Method::POST, "/versions", broken).await.refusal(), (400, "API_BAD_BODY"));
    let made = ask(Method::POST, "/versions", body("https://verify.example/")).await.expect_ok();
    let version_id = made.body["version_id"].as_str().unwrap().to_owned();
    let version = ask(Method::GET, &format!("/versions/{version_id}"), String::new()).await.expect_ok();
    let namespace = format!("/namespaces/{}", game.namespace_id());
    let run = json!({ "version_id": version_id }).to_string();
    ask(Method::PUT, &format!("{namespace}/version"), run).await.expect_ok();
    ask(Method::GET, &format!("{namespace}/version-history"), String::new()).await.expect_ok();
    ask(Method::GET, &namespace, String::new()).await.expect_ok();
    ask(Method::GET, "", String::new()).await.expect_ok();
    answers.push(game.find(&stack, find(None)).await);
    for answer in &answers {
        assert!(SECRETS.iter().all(|secret| !answer.body.to_string().contains(secret)), "{}", answer.body);
    }

    let shown = &version.body["version"]["config"];
    assert_eq!(shown["captcha"]["turnstile"], json!({ "site_key": "site-key", "secret_key": null }));
    let verification = &shown["game_modes"]["arena"]["actions"]["join"]["verification"];
    assert_eq!(*verification, json!({ "url": "https://verify.example/", "headers": { "x-secret": null } }));
    assert_eq!(version.body["version"].as_object().unwrap().len(), 4, "nor that there are some");

    // A shown configuration is no version: a version of it would call the backend without the header.
    let mut shown = shown.clone();
    shown.as_object_mut().unwrap().remove("captcha");
    let again = json!({ "display_name": "3", "config": shown }).to_string();
    let missing = ["find", "join", "create"].map(
        |kind| json!({ "path": ["game_modes", "arena", "actions", kind, "verification", "headers", "x-secret", "missing"] }),
    );
    let errors = stack.call(Method::POST, &format!("{base}/versions/validate"), cloud, again).await.body;
    assert_eq!(errors, json!({ "errors": missing }));

    // In the tables, too, they are where they belong alone.
    let tables = stack.store().tables();
    for (table, may) in [(&tables.catalog, false), (&tables.ledger, false), (&tables.secrets, true)] {
        let scan = stack.store().client().scan().table_name(table).send().await.unwrap();
        let text = format!("{:?}", scan.items());
        assert!(SECRETS.iter().all(|secret| text.contains(secret) == may), "{table}");
    }
}

/// A version of `game` with secrets, as stored.
async fn stored(stack: &TestStack, game: &TestGame) -> Version {
    let config = serde_json::from_value(config("https://verify.example/")).unwrap();
    let (store, game_id) = (stack.store(), game.game_id());
    let version = add_version(store, &stack.ambient(), game_id, "2".to_owned(), config).await.unwrap();
    store.version(game_id, &version.version_id).await.unwrap().unwrap()
}

#[tokio::test]
async fn secrets_are_read_with_one_call_and_kept_for_five_minutes() {
    let stack = TestStack::start().await;
    let game = stack.make_game("kept", json!({ "arena": { "regions": ["fra"] } }), 1, 0).await;
    let version = stored(&stack, &game).await;
    assert!(version.has_secrets);
    assert_eq!(VersionSecrets::of(&version.config), VersionSecrets::default(), "the record has none of them");
    let expected = VersionSecrets::of(&serde_json::from_value(config("https://verify.example/")).unwrap());

    let meter = Meter::on();
    let cache = SecretsCache::new(stack.store().metered(meter.clone()), stack.ambient());
    for (span, reads) in [(0, 1_u32), (299, 1), (1, 2)] {
        stack.clock.advance(Duration::from_secs(span));
        assert_eq!(*cache.of(&version).await.unwrap(), expected);
        let Usage { calls, read_units, .. } = meter.usage();
        assert_eq!((calls, read_units), (u64::from(reads), f64::from(reads)), "{span} s later");
    }

    let delete = stack.store().client().delete_item().table_name(&stack.store().tables().secrets);
    let key = AttributeValue::S(version.version_id.to_string());
    delete.key("version_id", key).send().await.unwrap();
    stack.clock.advance(Duration::from_secs(300));
    assert!(matches!(cache.of(&version).await, Err(Error::Bug(_))), "they are gone");
}

/// A database that never answers.
#[derive(Debug, Default)]
struct Silent {
    was_called: Notify,
}

impl Link for Silent {
    fn carry(&self, _call: Call) -> Carried {
        self.was_called.notify_one();
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn secrets_that_take_over_three_seconds_let_no_player_in() {
    let stack = TestStack::start().await;
    let game = stack.make_game("silent", json!({ "arena": { "regions": ["fra"] } }), 1, 0).await;
    let version = stored(&stack, &game).await;
    let silent = Arc::new(Silent::default());
    let store = stack.store().with_client(patient_client_over(Arc::clone(&silent) as Arc<dyn Link>));
    let cache = SecretsCache::new(store, stack.ambient());
    let time_passes = async {
        silent.was_called.notified().await;
        stack.clock.advance(Duration::from_secs(3));
    };
    let (read, ()) = tokio::join!(cache.of(&version), time_passes);
    assert!(matches!(read, Err(Error::Unavailable(_))), "{read:?}");
}

#[tokio::test]
async fn a_version_and_its_secrets_are_written_together_or_not_at_all() {
    let stack = TestStack::start().await;
    let game = stack.make_game("together", json!({ "arena": { "regions": ["fra"] } }), 1, 0).await;
    let version = stored(&stack, &game).await;
    let with_secrets =
        VersionSecrets::of(&serde_json::from_value(config("https://verify.example/")).unwrap());

    // The identifier is taken in one of the two tables: nothing is written to the other.
    let taken = Version { game_id: "another".parse().unwrap(), ..version.clone() };
    let refused = stack.store().add_version(&taken, with_secrets.clone()).await;
    assert!(matches!(refused, Err(Error::Bug(_))), "{refused:?}");
    assert_eq!(stack.store().version(&taken.game_id, &taken.version_id).await.unwrap(), None);

    // Of a version without secrets the table holds no item.
    let plain = serde_json::from_value(json!({ "game_modes": { "arena": { "regions": ["fra"] } } })).unwrap();
    let ambient = stack.ambient();
    let plain = add_version(stack.store(), &ambient, game.game_id(), "3".to_owned(), plain).await.unwrap();
    assert!(!plain.has_secrets);
    let scan =
        stack.store().client().scan().table_name(&stack.store().tables().secrets).send().await.unwrap();
    let kept: Vec<_> = scan.items().iter().map(|item| item["version_id"].as_s().unwrap().clone()).collect();
    assert_eq!(kept, [version.version_id.to_string()]);
}
