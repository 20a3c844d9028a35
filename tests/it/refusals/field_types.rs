//! Every field of every body: missing, null, of a wrong type, out of its range.

use harness::TestStack;
use serde_json::{Value, json};
use shared::models::handed_on::DEPTH_MAX;

use super::{Operation, Scene};

/// A field of a body, and what it may not be.
struct Field {
    /// The end of its operation's path.
    operation: &'static str,
    name: &'static str,
    is_required: bool,
    wrong: Wrong,
}

/// Values that a field cannot have, each with the path that the refusal names.
type Wrong = Vec<(Value, String)>;

/// The same values for one path.
fn at<const N: usize>(path: &str, values: [Value; N]) -> Wrong {
    values.into_iter().map(|value| (value, path.to_owned())).collect()
}

/// Each value with its path.
fn each<const N: usize>(values: [(Value, &str); N]) -> Wrong {
    values.into_iter().map(|(value, path)| (value, path.to_owned())).collect()
}

/// The same values within something larger.
fn within(outer: impl Fn(Value) -> Value, wrong: Wrong) -> Wrong {
    wrong.into_iter().map(|(value, path)| (outer(value), path)).collect()
}

/// Values that are no unsigned 32-bit integer.
fn no_u32(name: &str) -> Wrong {
    at(
        name,
        [
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
        ],
    )
}

fn no_text(name: &str) -> Wrong {
    at(name, [json!(1), json!(false), json!(["x"]), json!({ "a": "x" })])
}

fn no_truth(name: &str) -> Wrong {
    at(name, [json!(0), json!(1), json!("true"), json!(""), json!([]), json!([true]), json!({})])
}

fn no_object(name: &str) -> Wrong {
    at(name, [json!([]), json!([1]), json!("x"), json!(1), json!(true)])
}

/// Texts, and values that are none, of which nothing can be an identifier.
fn no_identifier(name: &str) -> Wrong {
    let texts = ["", " ", "a b", "a/b", "a.b", "\u{e4}", "a\n", &"x".repeat(65)];
    [no_text(name), at(name, texts.map(|text| json!(text)))].concat()
}

/// Values that are none of the words, which are written in lower case.
fn no_word(name: &str, word: &str) -> Wrong {
    let texts = ["", "null", "Public", "NONE", &word.to_uppercase(), &format!("{word} ")];
    let values = [json!([word]), json!({ word: null }), json!({ word: {} }), json!(0), json!(true)];
    [at(name, texts.map(|text| json!(text))), at(name, values)].concat()
}

fn wrong_tags() -> Wrong {
    each([
        (json!([]), "tags"),
        (json!([["map", "dust"]]), "tags"),
        (json!("map"), "tags"),
        (json!({ "map": 1 }), "tags.map"),
        (json!({ "map": null }), "tags.map"),
        (json!({ "a": "b", "map": ["dust"] }), "tags.map"),
    ])
}

fn wrong_captcha() -> Wrong {
    each([
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
    ])
}

/// Ports of which one, `web`, is not described as ports are; `port` is.
fn wrong_ports(port: &Value) -> Wrong {
    let web = |web: Value| json!({ "fine": port, "web": web });
    let with = |name: &'static str| {
        move |value: Value| {
            let mut wrong = port.clone();
            wrong[name] = value;
            web(wrong)
        }
    };
    let range = |range: Value| {
        let mut wrong = port.clone();
        wrong["port"] = Value::Null;
        wrong["port_range"] = range;
        web(wrong)
    };
    let no_port = [
        json!(null),
        json!("x"),
        json!(80),
        json!([]),
        json!([null, 80, null, "udp"]),
        json!({ "port": 80 }),
    ];
    let no_range = [json!("80-90"), json!([80, 90]), json!({}), json!({ "min": 80 }), json!({ "max": 90 })];
    let no_end = [
        (json!({ "min": -1, "max": 90 }), "ports.web.port_range.min"),
        (json!({ "min": 80, "max": "90" }), "ports.web.port_range.max"),
        (json!({ "min": 80, "max": null }), "ports.web.port_range.max"),
    ];
    [
        no_object("ports"),
        within(web, at("ports.web", no_port)),
        within(with("hostname"), no_text("ports.web.hostname")),
        within(with("port"), no_u32("ports.web.port")),
        within(range, at("ports.web.port_range", no_range)),
        within(range, each(no_end)),
        within(with("protocol"), no_word("ports.web.protocol", "udp")),
        within(with("protocol"), at("ports.web.protocol", [json!(null)])),
    ]
    .concat()
}

/// Configurations of a version that are not described as configurations are.
fn wrong_configs() -> Wrong {
    let modes = |modes: Value| json!({ "game_modes": modes });
    let arena = |arena: Value| modes(json!({ "arena": arena, "fine": { "regions": ["fra"] } }));
    let with = |name: &'static str| {
        move |value: Value| {
            let mut mode = json!({ "regions": ["fra"] });
            mode[name] = value;
            arena(mode)
        }
    };
    let action = |action: Value| with("actions")(json!({ "join": action }));
    let no_config = [json!({}), json!([{ "arena": { "regions": ["fra"] } }])];
    let no_mode = [json!(null), json!("x"), json!([]), json!([["fra"]]), json!([["fra"], 10]), json!({})];
    let no_regions = [
        (json!("fra"), "config.game_modes.arena.regions"),
        (json!({ "fra": 1 }), "config.game_modes.arena.regions"),
        (json!([1]), "config.game_modes.arena.regions[0]"),
        (json!(["fra", null]), "config.game_modes.arena.regions[1]"),
        (json!(["fra", "a b"]), "config.game_modes.arena.regions[1]"),
    ];
    let mut wrong = [
        no_object("config"),
        at("config", no_config),
        within(modes, no_object("config.game_modes")),
        within(modes, at("config.game_modes", [json!(null)])),
        within(modes, at("config.game_modes.a b", [json!({ "a b": { "regions": ["fra"] } })])),
        within(arena, at("config.game_modes.arena", no_mode)),
        within(with("regions"), each(no_regions)),
        within(with("actions"), no_object("config.game_modes.arena.actions")),
        within(action, no_object("config.game_modes.arena.actions.join")),
        within(action, at("config.game_modes.arena.actions.join", [json!({})])),
        within(
            |enabled| action(json!({ "enabled": enabled })),
            no_truth("config.game_modes.arena.actions.join.enabled"),
        ),
    ]
    .concat();
    for name in
        ["max_players", "max_players_direct", "max_players_party", "reservation_seconds", "idle_seconds"]
    {
        wrong.extend(within(with(name), no_u32(&format!("config.game_modes.arena.{name}"))));
    }
    for name in ["listable", "taggable", "allow_dynamic_max_players"] {
        wrong.extend(within(with(name), no_truth(&format!("config.game_modes.arena.{name}"))));
    }
    wrong
}

#[expect(clippy::too_many_lines, reason = "a table")]
fn fields() -> Vec<Field> {
    let field = |operation, name, is_required, wrong| Field { operation, name, is_required, wrong };
    vec![
        field(
            "/find",
            "game_modes",
            true,
            each([
                (json!("arena"), "game_modes"),
                (json!({}), "game_modes"),
                (json!({ "0": "arena" }), "game_modes"),
                (json!(1), "game_modes"),
                (json!([1]), "game_modes[0]"),
                (json!(["arena", null]), "game_modes[1]"),
                (json!(["arena", ["arena"]]), "game_modes[1]"),
            ]),
        ),
        field(
            "/find",
            "regions",
            false,
            each([
                (json!("fra"), "regions"),
                (json!({}), "regions"),
                (json!(false), "regions"),
                (json!([null]), "regions[0]"),
                (json!(["fra", 1]), "regions[1]"),
            ]),
        ),
        field("/find", "tags", false, wrong_tags()),
        field("/find", "max_players", false, no_u32("max_players")),
        field("/find", "prevent_auto_create_lobby", false, no_truth("prevent_auto_create_lobby")),
        field("/find", "captcha", false, wrong_captcha()),
        field("/find", "verification_data", false, no_object("verification_data")),
        field("/join", "lobby_id", true, no_text("lobby_id")),
        field("/join", "captcha", false, wrong_captcha()),
        field("/join", "verification_data", false, no_object("verification_data")),
        field("/create", "game_mode", true, no_text("game_mode")),
        field("/create", "region", false, no_text("region")),
        field("/create", "publicity", false, no_word("publicity", "public")),
        field("/create", "tags", false, wrong_tags()),
        field("/create", "max_players", false, no_u32("max_players")),
        field("/create", "lobby_config", false, each([(json!("x".repeat(16 * 1024 - 1)), "lobby_config")])),
        field("/create", "captcha", false, wrong_captcha()),
        field("/create", "verification_data", false, no_object("verification_data")),
        field("/closed", "is_closed", true, no_truth("is_closed")),
        field("/connected", "player_token", true, no_text("player_token")),
        field("/disconnected", "player_token", true, no_text("player_token")),
        field("/register", "server_id", false, no_identifier("server_id")),
        field("/register", "region_id", true, no_text("region_id")),
        field(
            "/register",
            "game_modes",
            false,
            each([
                (json!("solo"), "game_modes"),
                (json!({}), "game_modes"),
                (json!(true), "game_modes"),
                (json!([1]), "game_modes[0]"),
                (json!(["solo", null]), "game_modes[1]"),
            ]),
        ),
        field("/register", "capacity", false, no_u32("capacity")),
        field(
            "/register",
            "ports",
            true,
            wrong_ports(&json!({ "hostname": "a.example", "port": 80, "protocol": "udp" })),
        ),
        field("/register", "lease_seconds", false, no_u32("lease_seconds")),
        field("/register", "auto_ready", false, no_truth("auto_ready")),
        field("/heartbeat", "server_id", true, no_identifier("server_id")),
        field(
            "/heartbeat",
            "cursor",
            false,
            [no_text("cursor"), at("cursor", ["", "0", "nonsense", "\u{0}"].map(|text| json!(text)))]
                .concat(),
        ),
        field("/end-lobby", "lobby_id", true, no_text("lobby_id")),
        field("/deregister", "server_id", true, no_identifier("server_id")),
        field("/versions", "display_name", true, no_text("display_name")),
        field("/versions", "config", true, wrong_configs()),
        field("/namespaces", "display_name", true, no_text("display_name")),
        field("/namespaces", "version_id", true, no_text("version_id")),
        field("/namespaces", "name_id", true, no_text("name_id")),
        field("/mm-config", "lobby_count_max", true, no_u32("lobby_count_max")),
        field("/mm-config", "max_players", true, no_u32("max_players")),
        field("/tokens/development", "hostname", true, no_text("hostname")),
        field("/tokens/development", "ports", true, wrong_ports(&json!({ "port": 80, "protocol": "udp" }))),
        field("/mm-config/validate", "lobby_count_max", true, no_u32("lobby_count_max")),
        field("/mm-config/validate", "max_players", true, no_u32("max_players")),
        field("/versions/validate", "display_name", true, no_text("display_name")),
        field("/versions/validate", "config", true, wrong_configs()),
        field("/namespaces/validate", "display_name", true, no_text("display_name")),
        field("/namespaces/validate", "name_id", true, no_text("name_id")),
        field("/domain-public-auth", "enabled", true, no_truth("enabled")),
        field("/domains", "domain", true, no_text("domain")),
        field(
            "/cdn-auth",
            "auth_type",
            true,
            [
                no_text("auth_type"),
                at("auth_type", ["", "Basic", "NONE", "basic ", "jwt", "null"].map(|text| json!(text))),
                at("auth_type", [json!({ "basic": null })]),
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
        Operation::at(self.operation)
    }

    /// The operation's valid body with the field set to `value`, or without it.
    fn body(&self, scene: &Scene<'_>, value: Option<Value>) -> String {
        let mut body: Value = serde_json::from_str(&self.operation().valid_body(scene)).unwrap();
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
    for operation in Operation::reading_object() {
        let tried = fields.iter().any(|field| operation.path.ends_with(field.operation));
        assert!(tried, "{operation}");
    }
}

#[tokio::test]
async fn a_wrong_type_is_refused_at_its_path() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    let mut misjudged = Vec::new();
    for field in fields() {
        for (value, path) in &field.wrong {
            let operation = field.operation();
            let answer = operation.call_with(&scene, field.body(&scene, Some(value.clone()))).await;
            let message = answer.body["message"].as_str().unwrap_or_default();
            let is_named = message.contains(&format!("at `{path}`:"));
            if answer.refusal() != (400, "API_BAD_BODY") || !is_named {
                let body = &answer.body;
                misjudged.push(format!("{operation}: {value:.200} must be refused at `{path}`: {body}"));
            }
        }
    }
    assert!(misjudged.is_empty(), "{}", misjudged.join("\n"));
}

#[tokio::test]
async fn a_number_that_no_double_holds_is_a_bad_body() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    for field in fields() {
        let body = field.body(&scene, Some(json!("<number>"))).replace("\"<number>\"", "1e400");
        let answer = field.operation().call_with(&scene, body).await;
        assert_eq!(answer.refusal(), (400, "API_BAD_BODY"), "{} {}", field.operation, field.name);
    }
}

#[tokio::test]
async fn a_missing_field_is_named_and_null_is_no_value_for_it() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    for field in fields().into_iter().filter(|field| field.is_required) {
        for value in [None, Some(Value::Null)] {
            let body = field.body(&scene, value.clone());
            let answer = field.operation().call_with(&scene, body).await;
            let at = format!("{} {} {value:?}", field.operation, field.name);
            assert_eq!(answer.refusal(), (400, "API_BAD_BODY"), "{at}");
            let message = answer.body["message"].as_str().unwrap();
            assert!(message.contains(&format!("`{}`", field.name)), "{at}: {message}");
        }
    }
}

#[tokio::test]
async fn an_optional_field_may_be_absent_or_null() {
    let stack = TestStack::start().await;
    for field in fields().into_iter().filter(|field| !field.is_required) {
        for value in [None, Some(Value::Null)] {
            let scene = Scene::on(&stack).await;
            let body = field.body(&scene, value.clone());
            let answer = field.operation().call_with(&scene, body).await;
            let at = format!("{} {} {value:?}", field.operation, field.name);
            assert_eq!(answer.status, 200, "{at}: {}", answer.body);
        }
    }
    let scene = Scene::on(&stack).await;
    for (path, all_null) in [
        (
            "/find",
            json!({
                "game_modes": ["arena"], "regions": null, "tags": null, "max_players": null,
                "prevent_auto_create_lobby": null, "captcha": null, "verification_data": null,
            }),
        ),
        (
            "/create",
            json!({
                "game_mode": "arena", "region": null, "publicity": null, "tags": null, "max_players": null,
                "lobby_config": null, "captcha": null, "verification_data": null,
            }),
        ),
        (
            "/register",
            json!({
                "region_id": "nyc", "server_id": null, "game_modes": null, "capacity": null,
                "lease_seconds": null, "auto_ready": null,
                "ports": { "web": { "hostname": "a.example", "port": 80, "port_range": null, "protocol": "udp" } },
            }),
        ),
        (
            "/versions",
            json!({ "display_name": "1.2", "config": { "game_modes": { "arena": {
                "regions": ["fra"], "max_players": null, "max_players_direct": null, "max_players_party": null,
                "listable": null, "taggable": null, "allow_dynamic_max_players": null,
                "reservation_seconds": null, "idle_seconds": null,
                "actions": { "find": null, "join": null, "create": null },
            }, "duel": { "regions": ["fra"], "actions": null } } } }),
        ),
        (
            "/tokens/development",
            json!({ "hostname": "localhost", "ports": { "web": {
                "hostname": null, "port": null, "port_range": { "min": 80, "max": 90 }, "protocol": "udp" } } }),
        ),
    ] {
        let answer = Operation::at(path).call_with(&scene, all_null.to_string()).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
    }
}

#[tokio::test]
async fn a_captcha_response_that_was_not_required_is_ignored() {
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
async fn verification_data_that_was_not_required_is_ignored() {
    let stack = TestStack::start().await;
    let deep = (1..DEPTH_MAX).fold(json!({}), |inner, _| json!({ "in": inner }));
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
