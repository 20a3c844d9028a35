//! Every body gets one of the documented responses, and the response judges it as its schema does.

use std::collections::BTreeSet;

use harness::readable::depth;
use proptest::{
    collection::vec,
    prelude::{any, prop_oneof},
    prop_assert, prop_assert_eq,
    sample::{Index, select},
    strategy::{Just, Strategy},
    test_runner::TestCaseError,
};
use serde_json::{Value, value::RawValue};
use shared::{
    models::{
        handed_on::{DEPTH_MAX, STATE_DEPTH_MAX},
        lobby_config::LOBBY_CONFIG_BYTES_MAX,
        player_data::PLAYER_DATA_BYTES_MAX,
    },
    request::BODY_BYTES_MAX,
    store::lobbies::LobbyCursor,
};

use super::{
    check,
    json::{Edit, Json, Mutation, any_json, edited, edits, mutated, mutations, name},
    service::{Operation, Service},
};
use crate::agreement::document::Document;

const BAD_BODY: (u16, &str) = (400, "API_BAD_BODY");

/// One of the valid bodies of one of the operations that read any, and one of the rights to call it.
#[derive(Clone, Copy, Debug)]
struct Base {
    operation: Index,
    body: Index,
    right: Index,
}

fn base() -> impl Strategy<Value = Base> {
    let indexes = (any::<Index>(), any::<Index>(), any::<Index>());
    indexes.prop_map(|(operation, body, right)| Base { operation, body, right })
}

impl Base {
    fn operation<'a>(&self, operations: &[&'a Operation]) -> &'a Operation {
        operations[self.operation.index(operations.len())]
    }

    fn body<'a>(&self, operation: &'a Operation) -> &'a Value {
        &operation.bodies[self.body.index(operation.bodies.len())]
    }

    fn right(&self, rights: &[Option<&'static str>]) -> Option<&'static str> {
        rights[self.right.index(rights.len())]
    }
}

/// How a body differs from a valid one.
#[derive(Clone, Debug)]
enum Body {
    Bytes(Vec<u8>),
    Json(Json),
    NearJson(Vec<Mutation>),
    NearText(Vec<Edit>),
    /// With spaces, to so many bytes.
    Padded(usize),
}

fn body() -> impl Strategy<Value = Body> {
    let around_the_limit = BODY_BYTES_MAX - 2..BODY_BYTES_MAX + 3;
    prop_oneof![
        2 => vec(any::<u8>(), 0..64).prop_map(Body::Bytes),
        2 => any_json().prop_map(Body::Json),
        10 => mutations(0..4).prop_map(Body::NearJson),
        3 => edits().prop_map(Body::NearText),
        1 => prop_oneof![around_the_limit, Just(1_000_000)].prop_map(Body::Padded),
    ]
}

impl Body {
    fn of(&self, valid: &Value) -> Vec<u8> {
        match self {
            Self::Bytes(bytes) => bytes.clone(),
            Self::Json(json) => json.to_string().into_bytes(),
            Self::NearJson(mutations) => mutated(valid, mutations).to_string().into_bytes(),
            Self::NearText(edits) => edited(&valid.to_string(), edits),
            Self::Padded(size) => {
                let mut padded = valid.to_string().into_bytes();
                padded.resize(*size, b' ');
                padded
            }
        }
    }
}

/// The value of the text, if it is JSON that no operation finds too deep.
fn value(json: &Json) -> Option<Value> {
    serde_json::from_str(&json.to_string()).ok()
}

#[test]
fn no_body_makes_an_operation_fail_unexpectedly() {
    let service = Service::start();
    let reading = service.reading();
    check((base(), body(), any::<bool>()), |(base, body, is_encoded)| {
        let operation = base.operation(&reading);
        let body = service.realized_bytes(&body.of(base.body(operation)));
        let answer = service.ask(operation, base.right(&operation.documented.rights()), &body, is_encoded)?;
        let is_too_large = body.len() > BODY_BYTES_MAX;
        prop_assert_eq!(answer.refusal() == (413, "API_BODY_TOO_LARGE"), is_too_large, "{}", answer.body);
        let is_empty = body.iter().all(u8::is_ascii_whitespace);
        if !is_too_large && !is_empty && serde_json::from_slice::<&RawValue>(&body).is_err() {
            prop_assert_eq!(answer.refusal(), BAD_BODY);
        }
        Ok(())
    });
}

#[test]
fn a_body_is_malformed_exactly_where_its_schema_says_so() {
    let service = Service::start();
    let reading = service.reading();
    check((base(), mutations(0..4)), |(base, mutations)| {
        let operation = base.operation(&reading);
        let Some(body) = value(&mutated(base.body(operation), &mutations)) else { return Ok(()) };
        let body: Value = serde_json::from_str(&service.realized(&body.to_string())).unwrap();
        let violations = violations(operation, &body);
        let right = base.right(&operation.real_rights());
        let answer = service.ask(operation, right, body.to_string().as_bytes(), false)?;
        let at = || format!("{}: {body}: {violations:?}: {} {}", operation.name, answer.status, answer.body);
        if violations.is_empty() {
            prop_assert!(
                answer.refusal() != BAD_BODY || is_refused_beyond_the_schema(operation, &body),
                "{}",
                at()
            );
        } else {
            let is_reported = answer.body["errors"].as_array().is_some_and(|errors| !errors.is_empty());
            prop_assert!(answer.status != 200 || is_reported, "{}", at());
        }
        Ok(())
    });
}

/// Where the body does not fit the document's schema, but for unknown fields, which the service ignores, and
/// fields of a version's configuration that are `null`, which is as good as no field.
fn violations(operation: &Operation, body: &Value) -> Vec<String> {
    let mut body = body.clone();
    if let Some(Value::Object(modes)) = body.pointer_mut("/config/game_modes") {
        modes.values_mut().for_each(drop_nulls);
    }
    for object in objects_of(operation, &body).into_iter().filter(|object| !object.is_of_configuration()) {
        if let Some(Value::Object(fields)) = body.pointer_mut(&object.pointer) {
            fields.retain(|name, _| object.names.contains(name.as_str()));
        }
    }
    Document::read().violations(operation.documented.request_schema().unwrap(), &body)
}

fn drop_nulls(value: &mut Value) {
    if let Value::Object(fields) = value {
        fields.retain(|_, field| !field.is_null());
        fields.values_mut().for_each(drop_nulls);
    }
}

/// Whether what a request for a seat says of its players is nested too deep, too large, or not of each.
fn is_unfit_for_players(body: &Value) -> bool {
    let (of_one, of_each) = (&body["player_data"], &body["players_data"]);
    let of_players = of_each.as_array().into_iter().flatten().chain([of_one]);
    let are_all = of_each.as_array().is_none_or(|of_each| {
        let size = body["party_size"].as_u64().unwrap_or(1);
        size > 1 && size == of_each.len() as u64 && of_one.is_null()
    });
    let deepest = [&body["verification_data"], of_one, of_each].map(|data| depth(&data.to_string()));
    deepest.into_iter().any(|depth| depth > DEPTH_MAX)
        || of_players.into_iter().any(|data| data.to_string().len() > PLAYER_DATA_BYTES_MAX)
        || !are_all
}

/// What a schema cannot say, and the service nevertheless calls malformed.
fn is_refused_beyond_the_schema(operation: &Operation, body: &Value) -> bool {
    let is_deeper = |name: &str, depth_max| depth(&body[name].to_string()) > depth_max;
    match operation.name.as_str() {
        "create-lobby" => {
            is_deeper("lobby_config", DEPTH_MAX)
                || is_unfit_for_players(body)
                || body["lobby_config"].to_string().len() > LOBBY_CONFIG_BYTES_MAX
        }
        "find-lobby" | "join-lobby" => is_unfit_for_players(body),
        "set-lobby-state" => depth(&body.to_string()) > STATE_DEPTH_MAX,
        "heartbeat-server" => {
            body["cursor"].as_str().is_some_and(|cursor| cursor.parse::<LobbyCursor>().is_err())
        }
        // Of one player or of everyone.
        "disconnect-player" => body["player_token"].is_null() != (body["everyone"] == true),
        // Ports of a developer's machine need no host; one that is given all the same is read.
        "create-development-token" => {
            let ports = body["ports"].as_object().into_iter().flatten();
            ports
                .map(|(_, port)| &port["hostname"])
                .any(|hostname| !hostname.is_string() && !hostname.is_null())
        }
        _ => false,
    }
}

/// Status and code of an answer, as far as they follow from the body: a name or domain that the body before
/// took is none.
fn verdict(
    service: &Service,
    operation: &Operation,
    right: Option<&str>,
    body: &Value,
) -> Result<(u16, String), TestCaseError> {
    let answer = service.ask(operation, right, body.to_string().as_bytes(), false)?;
    Ok(match answer.refusal() {
        (409, "CLOUD_NAME_TAKEN" | "CDN_DOMAIN_TAKEN") => (200, String::new()),
        (status, code) => (status, code.to_owned()),
    })
}

/// An object of a body, as its schema knows it.
struct Object {
    pointer: String,
    names: BTreeSet<&'static str>,
    required: BTreeSet<&'static str>,
}

impl Object {
    /// Whether unknown fields are refused in it: they may be protections that Muster does not have.
    fn is_of_configuration(&self) -> bool {
        self.pointer.starts_with("/config")
    }
}

/// The objects of a body whose fields the schema names, those within others first.
fn objects(schema: &'static Value, value: &Value, pointer: &str, found: &mut Vec<Object>) {
    let parts = Document::read().parts(schema);
    let named = || parts.iter().filter_map(|part| part["properties"].as_object()).flatten();
    match value {
        Value::Object(fields) => {
            let names: BTreeSet<_> = named().map(|(name, _)| name.as_str()).collect();
            for (name, field) in fields {
                let pointer = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
                let of_name = named().filter(|(known, _)| *known == name).map(|(_, schema)| schema);
                let of_others = parts.iter().map(|part| &part["additionalProperties"]);
                let of_others =
                    of_others.filter(|schema| schema.is_object() && !names.contains(name.as_str()));
                for schema in of_name.chain(of_others) {
                    objects(schema, field, &pointer, found);
                }
            }
            if !names.is_empty() {
                let required = parts.iter().filter_map(|part| part["required"].as_array()).flatten();
                let required = required.map(|name| name.as_str().unwrap()).collect();
                found.push(Object { pointer: pointer.to_owned(), names, required });
            }
        }
        Value::Array(items) => {
            for (n, item) in items.iter().enumerate() {
                for schema in parts.iter().map(|part| &part["items"]).filter(|schema| schema.is_object()) {
                    objects(schema, item, &format!("{pointer}/{n}"), found);
                }
            }
        }
        _ => {}
    }
}

fn objects_of(operation: &Operation, body: &Value) -> Vec<Object> {
    let mut found = Vec::new();
    objects(operation.documented.request_schema().unwrap(), body, "", &mut found);
    found
}

#[test]
fn an_unknown_field_changes_nothing() {
    let service = Service::start();
    let reading = service.reading();
    let cases = (base(), mutations(0..3), any::<Index>(), name(), any_json());
    check(cases, |(base, mutations, at, name, json)| {
        let operation = base.operation(&reading);
        let body = value(&mutated(base.body(operation), &mutations));
        let (Some(body), Some(unknown)) = (body, value(&json)) else { return Ok(()) };
        let mut objects = objects_of(operation, &body);
        // A developer's port may have the host that other ports need.
        objects.retain(|object| {
            !object.is_of_configuration()
                && !object.names.contains(name.as_str())
                && (name != "hostname" || !object.names.contains("protocol"))
        });
        if objects.is_empty() {
            return Ok(());
        }
        let mut more = body.clone();
        let object = more.pointer_mut(&objects[at.index(objects.len())].pointer).unwrap();
        object[name] = unknown;
        if value(&Json::from(&more)).is_none() {
            return Ok(());
        }
        let right = base.right(&operation.real_rights());
        let before = verdict(&service, operation, right, &body)?;
        prop_assert_eq!(
            verdict(&service, operation, right, &more)?,
            before,
            "{}: {} and {}",
            operation.name,
            body,
            more
        );
        Ok(())
    });
}

#[test]
fn null_is_as_good_as_no_field_where_a_field_is_optional() {
    let service = Service::start();
    let reading = service.reading();
    check((base(), mutations(0..3), any::<Index>()), |(base, mutations, at)| {
        let operation = base.operation(&reading);
        let Some(mut body) = value(&mutated(base.body(operation), &mutations)) else { return Ok(()) };
        let objects = objects_of(operation, &body);
        let optional = |object: &Object| {
            let names = object.names.difference(&object.required);
            names.map(|name| (object.pointer.clone(), *name)).collect::<Vec<_>>()
        };
        let fields: Vec<_> = objects.iter().flat_map(optional).collect();
        if fields.is_empty() {
            return Ok(());
        }
        let (pointer, name) = &fields[at.index(fields.len())];
        body.pointer_mut(pointer).unwrap().as_object_mut().unwrap().remove(*name);
        let mut null = body.clone();
        null.pointer_mut(pointer).unwrap()[*name] = Value::Null;
        let right = base.right(&operation.real_rights());
        let before = verdict(&service, operation, right, &body)?;
        prop_assert_eq!(
            verdict(&service, operation, right, &null)?,
            before,
            "{}: {} and {}",
            operation.name,
            body,
            null
        );
        Ok(())
    });
}

/// Another way to write the same JSON.
#[derive(Clone, Copy, Debug)]
enum Writing {
    Pretty,
    Escaped,
    Reversed,
    Encoded,
}

impl Writing {
    fn of(self, body: &Value) -> String {
        match self {
            Self::Pretty => format!("\r\n\t {} \n", serde_json::to_string_pretty(body).unwrap()),
            Self::Escaped => {
                let escape = |c: char| -> String {
                    let mut units = [0; 2];
                    let units = c.encode_utf16(&mut units).iter();
                    units.map(|unit| format!("\\u{unit:04X}")).collect()
                };
                let text = body.to_string();
                text.chars().map(|c| if c.is_ascii() { c.to_string() } else { escape(c) }).collect()
            }
            Self::Reversed => reversed(body).to_string(),
            Self::Encoded => body.to_string(),
        }
    }
}

fn reversed(body: &Value) -> Json {
    match body {
        Value::Object(fields) => {
            Json::Object(fields.iter().rev().map(|(name, field)| (name.clone(), reversed(field))).collect())
        }
        Value::Array(items) => Json::List(items.iter().map(reversed).collect()),
        other => other.into(),
    }
}

#[test]
fn how_a_body_is_written_does_not_matter() {
    let service = Service::start();
    let reading = service.reading();
    let writing = select(&[Writing::Pretty, Writing::Escaped, Writing::Reversed, Writing::Encoded][..]);
    check((base(), mutations(0..3), writing), |(base, mutations, writing)| {
        let operation = base.operation(&reading);
        let Some(body) = value(&mutated(base.body(operation), &mutations)) else { return Ok(()) };
        let right = base.right(&operation.real_rights());
        let before = verdict(&service, operation, right, &body)?;
        let (text, is_encoded) = (writing.of(&body), matches!(writing, Writing::Encoded));
        // Except for the sizes of a configuration and of a player's data, which are those of their texts.
        let has_data = body.get("player_data").is_some_and(|data| !data.is_null());
        if text.len() > if has_data { PLAYER_DATA_BYTES_MAX } else { LOBBY_CONFIG_BYTES_MAX } {
            return Ok(());
        }
        let answer = service.ask(operation, right, text.as_bytes(), is_encoded)?;
        if !matches!(answer.refusal(), (409, "CLOUD_NAME_TAKEN" | "CDN_DOMAIN_TAKEN")) {
            prop_assert_eq!(answer.refusal(), (before.0, before.1.as_str()), "{}: {}", operation.name, text);
        }
        Ok(())
    });
}

#[test]
fn a_developer_is_answered_whenever_the_body_is_json() {
    let service = Service::start();
    let mut reading = service.reading();
    let developer = Some("developmentToken");
    reading.retain(|operation| operation.documented.rights().contains(&developer));
    // Of those fields, the player's token also counts for developers.
    let shows_player = ["connect-player", "disconnect-player", "remove-player"];
    reading.retain(|operation| !shows_player.contains(&operation.name.as_str()));
    check((base(), body(), any::<bool>()), |(base, body, is_encoded)| {
        let operation = base.operation(&reading);
        let body = service.realized_bytes(&body.of(base.body(operation)));
        let is_empty = body.iter().all(u8::is_ascii_whitespace);
        let is_json = if operation.reads_any_json() {
            serde_json::from_slice::<&RawValue>(&body).is_ok()
        } else {
            serde_json::from_slice::<Value>(&body).is_ok()
        };
        let expected = match body.len() {
            ..=BODY_BYTES_MAX if is_json || is_empty => (200, ""),
            ..=BODY_BYTES_MAX => BAD_BODY,
            _ => (413, "API_BODY_TOO_LARGE"),
        };
        let answer = service.ask(operation, developer, &body, is_encoded)?;
        prop_assert_eq!(answer.refusal(), expected, "{}", operation.name);
        Ok(())
    });
}
