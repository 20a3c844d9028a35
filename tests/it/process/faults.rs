//! `cargo run -- --faults SEED`: a bad network on this machine.

use super::*;

#[tokio::test]
async fn a_seed_makes_faults_until_a_program_ends_them() {
    let mut local = Local::start(&["--faults", "7"]).await;
    let line = local.program.line_with("Every second request of a client has a fault").await.unwrap();
    assert!(line.ends_with("by the seed 7."), "{line}");
    let token = local.demo().await["tokens"]["public"].as_str().unwrap().to_owned();
    let url = format!("{}/_local/faults", local.base_url);
    let none_yet = |seed| json!({ "seed": seed, "requests": {}, "made": {} });
    assert_eq!(get(&url).await.expect_ok().body, none_yet(json!(7)));

    let set = |body: &'static str| send(Request::put(&url), body);
    assert_eq!(set(r#"{"seed": null}"#).await.expect_ok().body, none_yet(Value::Null));
    for _ in 0..30 {
        local.find(&token, json!({ "game_modes": ["arena"] })).await.expect_ok();
    }
    assert_eq!(set(r#"{"seed": "7"}"#).await.status, 400);
    assert_eq!(get(&url).await.expect_ok().body, none_yet(Value::Null));
}

#[tokio::test]
async fn a_seed_that_is_none_is_refused_at_the_start() {
    let ended = Program::run(BINARY, &["--port", "0", "--faults", "seven"], &BTreeMap::new()).await;
    assert_eq!(ended.status.code(), Some(2));
    assert!(ended.stderr.contains("a seed is an integer from 0 to 4294967295"), "{}", ended.stderr);
}
