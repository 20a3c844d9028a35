//! Every field of every body: missing, null, of a wrong type, out of its range.

use muster_tests::TestStack;
use serde_json::{Value, json};

use super::Operation;

/// A field of a body, and what it may not be.
struct Field {
    /// The end of its operation's path.
    operation: &'static str,
    name: &'static str,
    is_required: bool,
    /// Values that it cannot have, each with the path that the refusal names.
    wrong: Vec<(Value, &'static str)>,
}

/// Values that are no unsigned 32-bit integer.
fn no_u32(name: &'static str) -> Vec<(Value, &'static str)> {
    let values = [
        json!(-1),
        json!(4_294_967_296_u64),
        json!(u64::MAX),
        json!(1e20),
        json!(1.0),
        json!(0.5),
        json!("1"),
        json!(""),
        json!(true),
        json!([1]),
        json!({ "a": 1 }),
    ];
    values.map(|value| (value, name)).into()
}

fn no_text(name: &'static str) -> Vec<(Value, &'static str)> {
    let values = [json!(1), json!(false), json!(["x"]), json!({ "a": "x" })];
    values.map(|value| (value, name)).into()
}

fn fields() -> Vec<Field> {
    let field = |operation, name, is_required, wrong| Field { operation, name, is_required, wrong };
    vec![
        field(
            "/find",
            "game_modes",
            true,
            vec![
                (json!("arena"), "game_modes"),
                (json!({}), "game_modes"),
                (json!({ "0": "arena" }), "game_modes"),
                (json!(1), "game_modes"),
                (json!([1]), "game_modes[0]"),
                (json!(["arena", null]), "game_modes[1]"),
                (json!(["arena", ["arena"]]), "game_modes[1]"),
            ],
        ),
        field(
            "/find",
            "regions",
            false,
            vec![
                (json!("fra"), "regions"),
                (json!({}), "regions"),
                (json!(false), "regions"),
                (json!([null]), "regions[0]"),
                (json!(["fra", 1]), "regions[1]"),
            ],
        ),
        field(
            "/find",
            "tags",
            false,
            vec![
                (json!([]), "tags"),
                (json!([["map", "dust"]]), "tags"),
                (json!("map"), "tags"),
                (json!({ "map": 1 }), "tags.map"),
                (json!({ "map": null }), "tags.map"),
                (json!({ "a": "b", "map": ["dust"] }), "tags.map"),
            ],
        ),
        field("/find", "max_players", false, no_u32("max_players")),
        field(
            "/find",
            "prevent_auto_create_lobby",
            false,
            [json!(0), json!(1), json!("true"), json!([]), json!({})]
                .map(|value| (value, "prevent_auto_create_lobby"))
                .into(),
        ),
        field(
            "/find",
            "captcha",
            false,
            vec![
                (json!("x"), "captcha"),
                (json!(1), "captcha"),
                (json!([]), "captcha"),
                (json!([{ "client_response": "x" }]), "captcha"),
                (json!({ "hcaptcha": "x" }), "captcha.hcaptcha"),
                (json!({ "hcaptcha": ["x"] }), "captcha.hcaptcha"),
                (json!({ "turnstile": [] }), "captcha.turnstile"),
                (json!({ "turnstile": {} }), "captcha.turnstile"),
                (json!({ "hcaptcha": { "client_response": 1 } }), "captcha.hcaptcha.client_response"),
                (
                    json!({ "hcaptcha": { "client_response": "x" }, "turnstile": { "client_response": null } }),
                    "captcha.turnstile.client_response",
                ),
            ],
        ),
        field(
            "/find",
            "verification_data",
            false,
            [json!([]), json!([1]), json!("x"), json!(1), json!(true)]
                .map(|value| (value, "verification_data"))
                .into(),
        ),
        field("/validate", "lobby_count_max", true, no_u32("lobby_count_max")),
        field("/validate", "max_players", true, no_u32("max_players")),
        field(
            "/cdn-auth",
            "auth_type",
            true,
            [
                no_text("auth_type"),
                ["", "Basic", "NONE", "basic ", "jwt", "null"].map(|text| (json!(text), "auth_type")).into(),
            ]
            .concat(),
        ),
        field("/auth-user", "user", true, no_text("user")),
        field("/auth-user", "password", true, no_text("password")),
        field("/version", "version_id", true, no_text("version_id")),
    ]
}

impl Field {
    fn operation(&self) -> &'static Operation {
        Operation::reading().find(|operation| operation.path.ends_with(self.operation)).unwrap()
    }

    /// The operation's valid body with the field set to `value`, or without it.
    fn body(&self, stack: &TestStack, value: Option<Value>) -> String {
        let mut body: Value = serde_json::from_str(&self.operation().valid_body(stack.demo())).unwrap();
        let fields = body.as_object_mut().unwrap();
        let _before = match value {
            Some(value) => fields.insert(self.name.to_owned(), value),
            None => fields.remove(self.name),
        };
        body.to_string()
    }
}

#[test]
fn every_body_that_is_read_has_its_fields_tried() {
    let fields = fields();
    for operation in Operation::reading() {
        let tried = fields.iter().any(|field| operation.path.ends_with(field.operation));
        assert!(tried, "{operation:?}");
    }
}

#[tokio::test]
async fn a_wrong_type_is_refused_at_its_path() {
    let stack = TestStack::start().await;
    let mut misnamed = Vec::new();
    for field in fields() {
        for (value, path) in &field.wrong {
            let body = field.body(&stack, Some(value.clone()));
            let answer = field.operation().call_with(&stack, body).await;
            assert_eq!(answer.refusal(), (400, "API_BAD_BODY"), "{}: {value}", field.name);
            let message = answer.body["message"].as_str().unwrap();
            if !message.contains(&format!("at `{path}`:")) {
                misnamed.push(format!("{value} must be refused at `{path}`: {message}"));
            }
        }
    }
    assert!(misnamed.is_empty(), "{}", misnamed.join("\n"));
}

#[tokio::test]
async fn a_number_that_no_double_holds_is_a_bad_body() {
    let stack = TestStack::start().await;
    for field in fields() {
        let body = field.body(&stack, Some(json!("<number>"))).replace("\"<number>\"", "1e400");
        let answer = field.operation().call_with(&stack, body).await;
        assert_eq!(answer.refusal(), (400, "API_BAD_BODY"), "{}", field.name);
    }
}

#[tokio::test]
async fn a_missing_field_is_named_and_null_is_no_value_for_it() {
    let stack = TestStack::start().await;
    for field in fields().into_iter().filter(|field| field.is_required) {
        for value in [None, Some(Value::Null)] {
            let body = field.body(&stack, value.clone());
            let answer = field.operation().call_with(&stack, body).await;
            assert_eq!(answer.refusal(), (400, "API_BAD_BODY"), "{} {value:?}", field.name);
            let message = answer.body["message"].as_str().unwrap();
            assert!(message.contains(&format!("`{}`", field.name)), "{message}");
        }
    }
}

#[tokio::test]
async fn an_optional_field_may_be_absent_or_null() {
    let stack = TestStack::start().await;
    for field in fields().into_iter().filter(|field| !field.is_required) {
        for value in [None, Some(Value::Null)] {
            let body = field.body(&stack, value.clone());
            let answer = field.operation().call_with(&stack, body).await;
            assert_eq!(answer.status, 200, "{} {value:?}: {}", field.name, answer.body);
        }
    }
    let all_null = json!({
        "game_modes": ["arena"], "regions": null, "tags": null, "max_players": null,
        "prevent_auto_create_lobby": null, "captcha": null, "verification_data": null,
    });
    let _seat = stack.find(all_null).await.expect_ok();
}

#[tokio::test]
async fn an_answer_to_a_captcha_that_nobody_asked_for_is_ignored() {
    let stack = TestStack::start().await;
    for captcha in [
        json!({}),
        json!({ "hcaptcha": null, "turnstile": null }),
        json!({ "hcaptcha": { "client_response": "" } }),
        json!({ "turnstile": { "client_response": "x", "more": 1 } }),
        json!({ "hcaptcha": { "client_response": "x" }, "turnstile": { "client_response": "y" } }),
        json!({ "unheard_of": { "client_response": "x" } }),
    ] {
        let answer = stack.find(json!({ "game_modes": ["arena"], "captcha": captcha })).await;
        assert_eq!(answer.status, 200, "{captcha}: {}", answer.body);
    }
}

#[tokio::test]
async fn verification_data_that_nobody_asked_for_is_ignored() {
    let stack = TestStack::start().await;
    let deep = (0..100).fold(json!({}), |inner, _| json!({ "in": inner }));
    for data in [
        json!({}),
        json!({ "ticket": "x", "list": [1, null, {}] }),
        json!({ "large": "x".repeat(60_000) }),
        deep,
    ] {
        let answer = stack.find(json!({ "game_modes": ["arena"], "verification_data": data })).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
}
