//! Every field of every body as the document's schemas describe it: missing, null, of a wrong type, out of
//! its bounds.

use harness::{Answer, TestStack};
use serde_json::{Value, json};
use shared::models::{
    handed_on::DEPTH_MAX, lobby_config::LOBBY_CONFIG_BYTES_MAX, player_data::PLAYER_DATA_BYTES_MAX,
};

use super::{
    place::{Field, Place, places},
    scene::Scene,
};
use crate::agreement::document::Document;

const BAD_BODY: (u16, &str) = (400, "API_BAD_BODY");

/// The codes of values that are well formed and that rules refuse, by the end of the operation's identifier
/// and the beginning of the place. All other values that do not fit are malformed.
const RULES: [(&str, &str, &[&str]); 15] = [
    ("findLobby", "game_modes", &["MATCHMAKER_NO_GAME_MODE_PROVIDED"]),
    ("findLobby", "max_players", &["MATCHMAKER_DYNAMIC_MAX_PLAYERS_INVALID"]),
    ("findLobby", "tags", TAG_CODES),
    ("createLobby", "max_players", &["MATCHMAKER_DYNAMIC_MAX_PLAYERS_INVALID"]),
    ("createLobby", "tags", TAG_CODES),
    ("registerServer", "server_id", &[]),
    ("registerServer", "start_id", &[]),
    ("registerServer", "", &["MATCHMAKER_INVALID_SERVER"]),
    ("Version", "config.game_modes name", &[]),
    ("Version", "config.game_modes.arena.regions[0]", &[]),
    ("Version", "", &["VALIDATION_ERROR"]),
    ("createNamespace", "", &["VALIDATION_ERROR"]),
    ("createDevelopmentToken", "", &["VALIDATION_ERROR"]),
    ("updateCdnAuthUser", "user", &["CDN_INVALID_AUTH_USER"]),
    ("updateCdnAuthUser", "password", &["CDN_INVALID_AUTH_USER_PASSWORD"]),
];

const TAG_CODES: &[&str] =
    &["MATCHMAKER_TOO_MANY_TAGS", "MATCHMAKER_TAG_NAME_TOO_LONG", "MATCHMAKER_TAG_TOO_LONG"];

/// The fields of all bodies and of all objects in them.
fn fields() -> impl Iterator<Item = Place> {
    places().into_iter().filter(|place| place.field != Field::None)
}

impl Place {
    /// The codes with which rules refuse a value here; none for a malformed one.
    fn codes(&self, value: &Value) -> &'static [&'static str] {
        let misfits = self.misfits(value);
        let says = |words: &str| misfits.iter().any(|misfit| misfit.contains(words));
        let is_of_type =
            !["type", "enum", "required", "anyOf"].iter().any(|word| says(&format!("not fit {word} ")));
        let most = if self.path.ends_with("verification_ttl") { u64::MAX } else { u32::MAX.into() };
        let is_in_range = !value.is_number() || value.as_u64().is_some_and(|number| number <= most);
        let place = if says(" name: ") { format!("{} name", self.path) } else { self.path.clone() };
        let of_place =
            |(end, start, _): &&(&str, &str, _)| self.operation.id.ends_with(end) && place.starts_with(start);
        let is_nameless = self.path == "tags" && value.get("").is_some();
        let is_well_formed = is_of_type && is_in_range && !is_nameless;
        let is_well_formed = is_well_formed || (value.is_null() && self.is_asked_for_by_rules());
        let rules = RULES.iter().find(of_place).filter(|_| is_well_formed);
        rules.map_or(&[], |(_, _, codes)| codes)
    }

    /// Whether a rule asks for the field, since the parser also reads ports of developers, which need no
    /// host, and captchas as they are shown.
    fn is_asked_for_by_rules(&self) -> bool {
        let is_host = self.operation.id == "registerServer" && self.path.ends_with(".hostname");
        is_host || self.path.ends_with(".secret_key")
    }

    /// What rules find in the body without the mistake: without the field, or with a value that fits.
    async fn errors_without(&self, scene: &Scene<'_>, codes: &[&str]) -> Option<(String, Value)> {
        let is_optional = self.field == Field::Optional;
        let body = if is_optional { self.body_without(scene) } else { scene.realized(&self.body) };
        errors(codes, &self.send(scene, &body).await)
    }

    async fn send(&self, scene: &Scene<'_>, body: &Value) -> Answer {
        self.operation.call_with(scene, body.to_string()).await
    }

    /// Whether the answer refuses `value` as malformed, and names the place.
    fn is_malformed(&self, value: &Value, answer: &Answer) -> bool {
        let message = answer.body["message"].as_str().unwrap_or_default();
        let end = if value.is_array() || value.is_object() { "" } else { "`:" };
        let is_named = message.contains(&format!("at `{}{end}", self.path)) || self.is_missed(value, message);
        answer.refusal() == BAD_BODY && is_named
    }

    /// Whether the message calls a field of a configuration missing that is null.
    fn is_missed(&self, value: &Value, message: &str) -> bool {
        let Field::Required(name) = self.field else { return false };
        value.is_null()
            && self.path.starts_with("config.")
            && message.contains(&format!("missing field `{name}`"))
    }
}

/// The errors of a refusal by rules, or of a body that was to be validated: its code and what was found.
fn errors(codes: &[&str], answer: &Answer) -> Option<(String, Value)> {
    let (status, code) = answer.refusal();
    let [found, refused] = [&answer.body["errors"], &answer.body["metadata"]["errors"]];
    let is_found = found.as_array().is_some_and(|errors| !errors.is_empty());
    let is_refused = status == 400 && codes.contains(&code);
    (is_found || is_refused).then(|| (code.to_owned(), if is_found { found } else { refused }.clone()))
}

#[tokio::test]
async fn a_value_that_does_not_fit_its_schema_is_refused_at_its_place() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    let mut misjudged = Vec::new();
    for place in places().into_iter().filter(|place| !place.path.is_empty()) {
        let mut valid = None;
        for value in place.wrong_values() {
            let answer = place.send(&scene, &place.body_of(&scene, value.clone())).await;
            let codes = place.codes(&value);
            let is_refused = if codes.is_empty() {
                place.is_malformed(&value, &answer)
            } else {
                let found = errors(codes, &answer);
                if valid.is_none() {
                    valid = Some(place.errors_without(&scene, codes).await);
                }
                found.is_some() && valid.as_ref() != Some(&found)
            };
            if !is_refused {
                let (operation, path, answer) = (place.operation.id, &place.path, answer.body);
                misjudged.push(format!("{operation}: {value:.200} at `{path}`: {answer}"));
            }
        }
    }
    assert!(misjudged.is_empty(), "{}", misjudged.join("\n"));
}

#[tokio::test]
async fn a_number_that_no_double_holds_is_a_bad_body() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    for place in places() {
        let body = place.body_of(&scene, json!("<number>")).to_string().replace("\"<number>\"", "1e400");
        let answer = place.operation.call_with(&scene, body).await;
        assert_eq!(answer.refusal(), BAD_BODY, "{} {}", place.operation, place.path);
    }
}

#[tokio::test]
async fn what_no_schema_says_of_a_value_is_refused_at_its_place() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    let too_long = json!("x".repeat(LOBBY_CONFIG_BYTES_MAX - 1));
    let cursors = ["", "0", "nonsense", "\u{0}"].map(|text| ("heartbeatServer", "/cursor", json!(text)));
    // A developer's port needs no host, but one is read.
    let host = ("createDevelopmentToken", "/ports/default/hostname", json!(1));
    let of_players = ["findLobby", "joinLobby", "createLobby"]
        .map(|id| (id, "/player_data", json!("ä".repeat(PLAYER_DATA_BYTES_MAX / 2))));
    let config = ("createLobby", "/lobby_config", too_long);
    for (id, pointer, value) in [config, host].into_iter().chain(cursors).chain(of_players) {
        let operation = Document::read().operation(id);
        let mut body: Value = serde_json::from_str(&operation.valid_body(&scene)).unwrap();
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        body.pointer_mut(parent).unwrap()[name] = value;
        let answer = operation.call_with(&scene, body.to_string()).await;
        assert_eq!(answer.refusal(), BAD_BODY, "{id} {pointer}");
        let message = answer.body["message"].as_str().unwrap();
        assert!(message.contains(&format!("at `{}`:", pointer[1..].replace('/', "."))), "{id}: {message}");
    }
}

#[tokio::test]
async fn a_missing_field_is_named() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    for place in fields() {
        let Field::Required(name) = place.field else { continue };
        let answer = place.send(&scene, &place.body_without(&scene)).await;
        let at = format!("{} {}: {}", place.operation, place.path, answer.body);
        if place.is_asked_for_by_rules() {
            let codes = place.codes(&Value::Null);
            let found = errors(codes, &answer);
            assert!(found.is_some() && found != place.errors_without(&scene, codes).await, "{at}");
        } else {
            assert_eq!(answer.refusal(), BAD_BODY, "{at}");
            let message = answer.body["message"].as_str().unwrap();
            assert!(message.contains(&format!("missing field `{name}`")), "{at}");
        }
    }
}

#[tokio::test]
async fn an_optional_field_may_be_absent_or_null() {
    let stack = TestStack::start().await;
    for place in fields().filter(|place| place.field == Field::Optional) {
        let (one, other) = (Scene::on(&stack).await, Scene::on(&stack).await);
        let absent = place.send(&one, &place.body_without(&one)).await;
        let null = place.send(&other, &place.body_of(&other, Value::Null)).await;
        let at = format!("{} {}: {} {}", place.operation, place.path, absent.body, null.body);
        assert_eq!(absent.refusal(), null.refusal(), "{at}");
        let is_of_body = !place.path.contains('.');
        // It has one of two fields, or one that counts another.
        let is_either = place.operation.path.ends_with("/disconnected") || place.path == "party_size";
        assert!(absent.status == 200 || !is_of_body || is_either, "{at}");
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
