//! The Postman collection of Muster's operations, made from the OpenAPI document; Bruno and others read that
//! format, too.
//!
//! What a request needs of another one's answer goes through the collection's variables: tokens, lobbies,
//! versions.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a program of the workspace's own panics on failure"
)]

use muster_local::{demo::GAME_SERVER, stack::TEMPLATE, template::Template};
use serde_json::{Map, Value, json};

/// Where the collection lies, in the workspace.
pub const COLLECTION: &str = "infra/muster.postman_collection.json";
const SCHEMA: &str = "https://schema.getpostman.com/json/collection/v2.1.0/collection.json";

/// The variables with their initial values: those of the demo, once its tokens are requested.
const VARIABLES: [(&str, &str); 11] = [
    ("base_url", "http://127.0.0.1:3000"),
    ("public_token", ""),
    ("server_token", ""),
    ("cloud_token", ""),
    ("game_id", ""),
    ("namespace_id", ""),
    ("version_id", ""),
    ("server_id", ""),
    ("lobby_id", ""),
    ("lobby_token", ""),
    ("player_token", ""),
];

/// What the script after an operation's answer remembers of it.
const REMEMBERED: [(&str, &[&str]); 5] = [
    ("findLobby", SEAT),
    ("joinLobby", SEAT),
    ("createLobby", SEAT),
    (
        "heartbeatServer",
        &[
            "const known = pm.collectionVariables.get('lobby_id');",
            "const lobby = answer.lobbies?.find(lobby => lobby.lobby_id === known) ?? answer.lobbies?.[0];",
            "remember('lobby_id', lobby?.lobby_id);",
            "remember('lobby_token', lobby?.lobby_token);",
        ],
    ),
    ("createVersion", &["remember('version_id', answer.version_id);"]),
];
const SEAT: &[&str] =
    &["remember('lobby_id', answer.lobby?.lobby_id);", "remember('player_token', answer.player?.token);"];
/// The same of the local stack's demo.
const OF_DEMO: &[&str] = &[
    "remember('public_token', answer.tokens.public);",
    "remember('server_token', answer.tokens.server);",
    "remember('cloud_token', answer.tokens.cloud);",
    "remember('game_id', answer.game_id);",
    "remember('namespace_id', answer.namespace_id);",
    "remember('version_id', answer.version_ids[0]);",
    "remember('server_id', 'by-hand');",
];

/// The collection of the OpenAPI document `document`, as it is written.
///
/// # Panics
/// When the document lacks what each of its operations has.
#[must_use]
pub fn written(document: &Value) -> String {
    format!("{:#}\n", collection(document))
}

/// A folder for each tag of the document, a request for each documented one.
fn collection(document: &Value) -> Value {
    let tags = document["tags"].as_array().expect("tags");
    let folders = tags.iter().map(|tag| {
        json!({ "name": tag["name"], "description": tag["description"], "item": requests(document, &tag["name"]) })
    });
    let items: Vec<_> = [demo(), by_hand()].into_iter().chain(folders).collect();
    let variables = VARIABLES.map(|(key, value)| json!({ "key": key, "value": value }));
    json!({
        "info": { "name": "Muster", "description": document["info"]["description"], "schema": SCHEMA },
        "auth": { "type": "noauth" },
        "item": items,
        "variable": variables,
    })
}

/// The request for the tokens of the local stack, which no deployment answers.
fn demo() -> Value {
    json!({
        "name": "Demo of the local stack",
        "event": [script(OF_DEMO)],
        "request": {
            "method": "GET",
            "url": url("/_local/demo", Vec::new()),
            "description": "Fills in the variables, from `cargo run`. For a deployment they are filled in by hand: tokens by the \
                            operator's command, `base_url` from the stack's output `ApiUrl`.",
        },
    })
}

/// The request that has lobbies run on a server whose heartbeats are requests of the collection, before the
/// demo game starts one.
fn by_hand() -> Value {
    let port = json!({ "hostname": "127.0.0.1", "port": 7_777, "protocol": "udp" });
    let body = json!({
        "server_id": variable("server_id"), "region_id": "fra", "build": GAME_SERVER, "capacity": 100, "lease_seconds": 0,
        "ports": { "default": port },
    });
    json!({
        "name": "A game server by hand",
        "request": {
            "method": "POST",
            "url": url("/matchmaker/servers/register", Vec::new()),
            "description": "Runs the lobbies of the requests below, as a server of the demo game that was started by hand. For a game \
                            of your own, name a region of its own, and leave out `build` unless its servers are started on demand.",
            "auth": bearer("server"),
            "header": [content_type()],
            "body": { "mode": "raw", "raw": format!("{body:#}") },
        },
    })
}

fn content_type() -> Value {
    json!({ "key": "Content-Type", "value": "application/json" })
}

/// The requests of the operations with the tag `tag`, in the template's order, but first those whose answers
/// others need.
fn requests(document: &Value, tag: &Value) -> Vec<Value> {
    let mut operations = Vec::new();
    for route in Template::parse(TEMPLATE).expect("the template").routes {
        let (path, method) = (route.path.to_string(), route.method.as_str().to_lowercase());
        let item = &document["paths"][&path];
        if item[&method]["tags"][0] == *tag {
            operations.push((path, method, item));
        }
    }
    let id =
        |item: &Value, method: &str| item[method]["operationId"].as_str().expect("an identifier").to_owned();
    operations.sort_by_key(|(_, method, item)| remembered(&id(item, method)).is_none());

    let mut requests = Vec::new();
    for (path, method, item) in &operations {
        let operation = &item[method];
        let mut add = |example| requests.push(request(document, (path, item), (method, operation), example));
        let examples = operation.pointer("/requestBody/content/application~1json/examples");
        match examples.and_then(Value::as_object) {
            None => add(None),
            Some(examples) => examples.iter().map(Some).for_each(add),
        }
    }
    requests
}

fn request(
    document: &Value,
    (path, item): (&str, &Value),
    (method, operation): (&str, &Value),
    example: Option<(&String, &Value)>,
) -> Value {
    let id = operation["operationId"].as_str().expect("an identifier");
    let without_stop = |text: &str| text.trim_end_matches('.').to_owned();
    let mut name = without_stop(operation["summary"].as_str().expect("a summary"));
    if let Some((key, example)) = example {
        let what = example["summary"].as_str().map_or_else(|| key.clone(), without_stop);
        name = format!("{name} ({what})");
    }

    let of = |holder: &Value| holder["parameters"].as_array().cloned().unwrap_or_default();
    let parameters: Vec<Value> =
        of(item).into_iter().chain(of(operation)).map(|parameter| resolved(document, parameter)).collect();
    // Optional parameters are there to be switched on.
    let optional = |place: &str| -> Vec<Value> {
        let of_place = parameters.iter().filter(|parameter| parameter["in"] == place);
        let entry = |parameter: &Value| {
            let value = parameter.get("example").or_else(|| parameter.pointer("/schema/default"));
            json!({
                "key": parameter["name"],
                "value": value.map(as_text).unwrap_or_default(),
                "description": parameter["description"],
                "disabled": true,
            })
        };
        of_place.map(entry).collect()
    };
    let mut real_path = path.to_owned();
    for parameter in parameters.iter().filter(|parameter| parameter["in"] == "path") {
        let name = parameter["name"].as_str().expect("a name");
        let value = variable(name).unwrap_or_else(|| as_text(&parameter["example"]));
        real_path = real_path.replace(&format!("{{{name}}}"), &value);
    }
    let mut headers = optional("header");
    let mut request = Map::from_iter([
        ("method".to_owned(), method.to_uppercase().into()),
        ("url".to_owned(), url(&real_path, optional("query"))),
        ("description".to_owned(), operation["description"].clone()),
        ("auth".to_owned(), auth(operation)),
    ]);
    if let Some((_, example)) = example {
        headers.push(content_type());
        let body = with_variables(id, &example["value"]);
        request.insert("body".to_owned(), json!({ "mode": "raw", "raw": format!("{body:#}") }));
    }
    request.insert("header".to_owned(), headers.into());

    let mut item = json!({ "name": name, "request": request });
    if let Some(remembered) = remembered(id) {
        item["event"] = json!([script(remembered)]);
    }
    item
}

/// By the player's right, if the operation has it, else by the first that it names.
fn auth(operation: &Value) -> Value {
    let rights = operation["security"].as_array().into_iter().flatten();
    let kinds = rights.filter_map(|right| right.as_object()?.keys().next()?.strip_suffix("Token"));
    let kinds: Vec<&str> = kinds.collect();
    let Some(kind) = kinds.iter().find(|kind| **kind == "public").or_else(|| kinds.first()) else {
        return json!({ "type": "noauth" });
    };
    bearer(kind)
}

fn bearer(kind: &str) -> Value {
    let token = variable(&format!("{kind}_token")).expect("a variable for each kind of token");
    json!({ "type": "bearer", "bearer": [{ "key": "token", "type": "string", "value": token }] })
}

/// A documented request with variables for what it names. Who registers a server names a new one.
fn with_variables(operation: &str, example: &Value) -> Value {
    let mut body = example.clone();
    let fields = body.as_object_mut().into_iter().flatten();
    for (name, value) in fields.filter(|_| operation != "registerServer") {
        if let Some(variable) = variable(name) {
            *value = variable.into();
        }
    }
    body
}

fn variable(name: &str) -> Option<String> {
    VARIABLES.iter().any(|(known, _)| *known == name).then(|| format!("{{{{{name}}}}}"))
}

/// The address in both forms of the format, of which programs read either.
fn url(path: &str, query: Vec<Value>) -> Value {
    let parts: Vec<_> = path.split('/').skip(1).collect();
    json!({ "raw": format!("{{{{base_url}}}}{path}"), "host": ["{{base_url}}"], "path": parts, "query": query })
}

/// What runs after the answer. What a refusal lacks stays as it was.
fn script(lines: &[&str]) -> Value {
    let before = [
        "const answer = pm.response.json();",
        "const remember = (name, value) => value && pm.collectionVariables.set(name, value);",
    ];
    let lines: Vec<&str> = before.iter().chain(lines).copied().collect();
    json!({ "listen": "test", "script": { "type": "text/javascript", "exec": lines } })
}

fn remembered(operation: &str) -> Option<&'static [&'static str]> {
    REMEMBERED.iter().find(|(of, _)| *of == operation).map(|(_, lines)| *lines)
}

fn resolved(document: &Value, value: Value) -> Value {
    let target = value["$ref"].as_str().and_then(|reference| document.pointer(reference.strip_prefix('#')?));
    target.cloned().unwrap_or(value)
}

fn as_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
