//! The types of the bodies are those of the OpenAPI document.

#![expect(clippy::unwrap_used, reason = "this is test code: what cannot go on panics")]

use std::collections::{BTreeMap, BTreeSet};

use muster_client::api::{
    Captcha, ConnectPlayerResponse, CreateLobbyRequest, Entry, FindLobbyRequest, FindLobbyResponse,
    HeartbeatResponse, JoinLobbyRequest, ListLobbiesResponse, ListRegionsResponse, PortRange, Protocol,
    Publicity, RegisterServerRequest, RegisterServerResponse, ServerPort,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

fn document() -> Value {
    serde_json::from_str(include_str!("../../../openapi.json")).unwrap()
}

fn schema<'a>(document: &'a Value, name: &str) -> &'a Value {
    document.pointer(&format!("/components/schemas/{name}")).unwrap()
}

/// JSON that has everything that a schema describes.
fn filled(document: &Value, schema: &Value) -> Value {
    let of = |schema: &Value| filled(document, schema);
    if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
        return of(document.pointer(name.trim_start_matches('#')).unwrap());
    }
    for choice in ["anyOf", "oneOf"] {
        if let (Some(first), None) = (schema.pointer(&format!("/{choice}/0")), schema.get("properties")) {
            return of(first);
        }
    }
    if let Some(first) = schema.pointer("/enum/0") {
        return first.clone();
    }
    let kind = schema.get("type").map(|kind| kind.get(0).unwrap_or(kind));
    match kind.and_then(Value::as_str) {
        Some("object") => {
            let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
            let mut fields: Map<_, _> = properties.map(|(name, of_it)| (name.clone(), of(of_it))).collect();
            if let Some(more) = schema.get("additionalProperties").filter(|more| more.is_object()) {
                fields.insert("more".to_owned(), of(more));
            }
            fields.into()
        }
        Some("array") => json!([schema.get("items").map(of)]),
        Some("string") => json!("text"),
        Some("boolean") => json!(true),
        Some("integer" | "number") => json!(1),
        _ => json!({ "any": "JSON" }),
    }
}

/// Fields of the document's response that the type leaves out.
fn left_out<T: DeserializeOwned>(name: &str) -> BTreeSet<String> {
    let document = document();
    let body = filled(&document, schema(&document, name));
    let mut ignored = BTreeSet::new();
    let read: Result<T, _> = serde_ignored::deserialize(body, |path| {
        ignored.insert(path.to_string().replace(".?", ""));
    });
    assert!(read.is_ok(), "{name}: {:?}", read.err());
    ignored
}

#[test]
fn responses_are_read_whole() {
    assert_eq!(
        left_out::<FindLobbyResponse>("FindLobbyResponse"),
        ["explain", "lobby.player", "lobby.ports"].map(str::to_owned).into(),
        "the last two are repetitions"
    );
    let whole = [
        left_out::<ListLobbiesResponse>("ListLobbiesResponse"),
        left_out::<ListRegionsResponse>("ListRegionsResponse"),
        left_out::<ConnectPlayerResponse>("ConnectPlayerResponse"),
    ];
    assert_eq!(whole, [const { BTreeSet::new() }; 3]);
    let lease = BTreeSet::from(["lease_expires_at".to_owned()]);
    assert_eq!(left_out::<RegisterServerResponse>("RegisterServerResponse"), lease);
    assert_eq!(left_out::<HeartbeatResponse>("HeartbeatResponse"), lease);
}

/// Compares the fields of full requests with those of the document.
fn has_the_fields<T: Serialize>(name: &str, requests: &[T]) {
    let document = document();
    let written = requests.iter().flat_map(|request| match serde_json::to_value(request).unwrap() {
        Value::Object(fields) => fields.into_iter().map(|(name, _)| name),
        other => unreachable!("no object: {other}"),
    });
    let known = schema(&document, name).get("properties").and_then(Value::as_object).unwrap().keys().cloned();
    assert_eq!(written.collect::<BTreeSet<_>>(), known.collect(), "{name}");
}

#[test]
fn requests_have_each_field() {
    let text = || "text".to_owned();
    let tags = || BTreeMap::from([(text(), text())]);
    let entry = Entry {
        version_id: Some(text()),
        captcha: Some(Captcha::Turnstile { client_response: text() }),
        verification_data: Some(Map::new()),
        party_size: Some(2),
        player_data: Some(Value::Null),
        players_data: vec![Value::Null],
    };
    let find = FindLobbyRequest {
        game_modes: vec![text()],
        regions: vec![text()],
        latencies: BTreeMap::from([(text(), None)]),
        tags: tags(),
        max_players: Some(1),
        exclude_lobby_ids: vec![text()],
        prevent_auto_create_lobby: true,
        entry: entry.clone(),
    };
    has_the_fields("FindLobbyRequest", &[find]);
    has_the_fields("JoinLobbyRequest", &[JoinLobbyRequest { lobby_id: text(), entry: entry.clone() }]);
    let create = CreateLobbyRequest {
        game_mode: text(),
        region: Some(text()),
        publicity: Some(Publicity::Public),
        tags: tags(),
        max_players: Some(1),
        lobby_config: Some(Value::Null),
        entry,
    };
    has_the_fields("CreateLobbyRequest", &[create]);
    let range = PortRange { min: 1, max: 2 };
    let port =
        ServerPort { hostname: text(), port: Some(1), port_range: Some(range), ..ServerPort::default() };
    let register = RegisterServerRequest {
        server_id: Some(text()),
        game_modes: vec![text()],
        ports: BTreeMap::from([(text(), port.clone())]),
        build: Some(Value::Null),
        ..RegisterServerRequest::default()
    };
    has_the_fields("RegisterServerRequest", &[register]);
    has_the_fields("ServerPort", &[port]);
    let providers =
        [Captcha::Hcaptcha { client_response: text() }, Captcha::Turnstile { client_response: text() }];
    has_the_fields("Captcha", &providers);
}

#[test]
fn protocols_and_publicities_are_those_of_the_document() {
    let document = document();
    let named = |at: &str| -> BTreeSet<String> {
        let names = document.pointer(at).and_then(Value::as_array).unwrap();
        names.iter().filter_map(|name| Some(name.as_str()?.to_owned())).collect()
    };
    let written = |value: Value| value.as_str().unwrap().to_owned();
    let protocols = [Protocol::Http, Protocol::Https, Protocol::Tcp, Protocol::TcpTls, Protocol::Udp];
    let protocols = protocols.map(|protocol| written(serde_json::to_value(protocol).unwrap()));
    assert_eq!(named("/components/schemas/ServerPort/properties/protocol/enum"), protocols.into());
    let publicities = [Publicity::Public, Publicity::Private];
    let publicities = publicities.map(|publicity| written(serde_json::to_value(publicity).unwrap()));
    assert_eq!(named("/components/schemas/CreateLobbyRequest/properties/publicity/enum"), publicities.into());
}
