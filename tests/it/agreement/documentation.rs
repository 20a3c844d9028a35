//! The page that errors link: the one that a deployment names, and the local stack's own.

use std::sync::Arc;

use find_lobby::FindLobby;
use harness::{Answer, TestStack, instance::event};
use http::Request;
use http_body_util::Full;
use serde_json::{Value, json};
use shared::function::{
    config::Environment,
    instance::Instance,
    operation::{Operation as _, answer_counted},
};

use super::{codes_of_the_source, document::Document, functions};

/// What the function says in its `environment` of a find without a token.
async fn refused_in(stack: &TestStack, environment: Environment) -> Value {
    let instance = Instance::over(stack.store().clone(), Arc::clone(stack.stack.keys()), stack.ambient())
        .with_environment(environment);
    let operation = FindLobby::start(&instance).unwrap();
    let (find, page) = (event(&[], &json!({ "game_modes": ["duel"] }), &[]), instance.documentation());
    let (response, _) = answer_counted(&operation, find, &stack.ambient(), page.as_deref()).await;
    let (parts, body) = response.into_parts();
    let answer = Answer::new(parts, &body);
    assert_eq!(answer.refusal(), (401, "API_UNAUTHORIZED"));
    let document = Document::read();
    assert_eq!(document.operation("findLobby").differences(&answer), [""; 0]);
    answer.body
}

#[tokio::test]
async fn an_error_links_its_code_where_the_deployment_names_a_page_and_nothing_else() {
    let stack = TestStack::start().await;
    let named = |page| Environment::of([("MUSTER_DOCUMENTATION_URL", page)]);
    let linked = refused_in(&stack, named("https://a.example/errors")).await;
    assert_eq!(linked["documentation"], "https://a.example/errors#API_UNAUTHORIZED");
    for none in [named(""), Environment::default()] {
        let body = refused_in(&stack, none).await;
        assert!(body.get("documentation").is_none(), "{body}");
    }
}

#[test]
fn each_function_gets_the_page() {
    for function in functions("") {
        let page = function.environment.get("MUSTER_DOCUMENTATION_URL");
        assert_eq!(page.map(String::as_str), Some(""), "{}", function.logical_id);
    }
}

#[tokio::test]
async fn the_local_stack_serves_the_page_with_a_row_for_every_code() {
    let stack = TestStack::start().await;
    let refused = stack.find(json!({ "game_modes": ["chess"] })).await;
    assert_eq!(refused.refusal(), (400, "MATCHMAKER_GAME_MODE_NOT_FOUND"));
    let link = refused.body["documentation"].as_str().unwrap();
    let (page, fragment) = link.split_once('#').unwrap();
    assert_eq!(fragment, "MATCHMAKER_GAME_MODE_NOT_FOUND");
    let page = stack.send(Request::get(page).body(Full::default()).unwrap()).await.expect_ok();
    assert_eq!(page.headers["content-type"], "text/html; charset=utf-8");
    let policy = page.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.starts_with("default-src 'none';"), "{policy}");
    let rows: Vec<_> = page.text.split("<tr>").skip(1).collect();
    for code in codes_of_the_source().keys() {
        let anchor = format!("id=\"{code}\"");
        assert_eq!(page.text.matches(&anchor).count(), 1, "{code}");
        let row = rows.iter().find(|row| row.contains(&anchor)).unwrap();
        assert!(row.contains(&format!("<code>{code}</code>")), "{row}");
    }
    assert!(page.text.contains("infra/docs/limits.md"), "the page says where its links lead");
    assert!(!page.text.contains("href=\"limits.md"), "nothing here answers that link");
}
