//! The contract is data in several places: template, OpenAPI document, functions, example events. They agree,
//! and the running service agrees with them.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "this is test code: what cannot go on panics"
)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use harness::TestStack;
use muster_local::{permissions::restrict, stack::TEMPLATE, template::Template};
use regex_lite::Regex;
use serde_json::Value;
use shared::function::operation::WARNING_HEADER;

use crate::artefacts::{functions, workspace};

pub mod document;
mod documentation;
mod edge;
mod owner;
mod schema;
mod service;

use document::Document;

/// The variables that functions' parts read, in addition to names of tables.
const VARIABLES_OF_PARTS: [(&str, &[&str]); 8] = [
    ("instance.keys()", SIGNING_KEYS),
    ("CloudParts::of(", SIGNING_KEYS),
    (".cloud_auth()", SIGNING_KEYS),
    (".matchmaker_auth()", SIGNING_KEYS),
    (".issuer()", SIGNING_KEYS),
    ("SeatParts::of(", SIGNING_KEYS),
    ("SeatParts::of(", &["MUSTER_EDGE_SECRET", "MUSTER_EDGE_ONLY"]),
    (".edge_secret()", &["MUSTER_EDGE_SECRET"]),
];

const SIGNING_KEYS: &[&str] = &["MUSTER_SIGNING_KEY", "MUSTER_SIGNING_KEY_PREVIOUS"];

fn template() -> Template {
    Template::parse(TEMPLATE).unwrap()
}

/// A package under `functions/`, as cargo sees it.
struct Package {
    name: String,
    folder: PathBuf,
    binaries: Vec<String>,
}

fn packages() -> Vec<Package> {
    let metadata = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--locked"])
        .current_dir(workspace())
        .output()
        .unwrap();
    assert!(metadata.status.success(), "{}", String::from_utf8_lossy(&metadata.stderr));
    let metadata: Value = serde_json::from_slice(&metadata.stdout).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let package = |package: &Value| {
        let is_binary = |target: &&Value| target["kind"] == serde_json::json!(["bin"]);
        Package {
            name: text(&package["name"]),
            folder: Path::new(&text(&package["manifest_path"])).parent().unwrap().to_owned(),
            binaries: package["targets"]
                .as_array()
                .unwrap()
                .iter()
                .filter(is_binary)
                .map(|target| text(&target["name"]))
                .collect(),
        }
    };
    let all = metadata["packages"].as_array().unwrap().iter().map(package);
    all.filter(|package| package.folder.parent().is_some_and(|parent| parent.ends_with("functions")))
        .collect()
}

/// `findLobby` as `find-lobby`.
fn kebab(camel: &str) -> String {
    camel
        .chars()
        .flat_map(|c| c.is_ascii_uppercase().then_some('-').into_iter().chain([c.to_ascii_lowercase()]))
        .collect()
}

#[test]
fn template_and_document_have_the_same_routes() {
    let document = Document::read();
    let documented: BTreeSet<_> = document
        .operations()
        .iter()
        .map(|operation| format!("{} {}", operation.method, operation.path))
        .collect();
    let routes: Vec<_> = template().routes.iter().map(|route| route.key()).collect();
    assert_eq!(routes.iter().cloned().collect::<BTreeSet<_>>(), documented);
    assert_eq!(routes.len(), documented.len(), "a route stands twice in the template");
}

#[test]
fn each_function_folder_is_one_function_of_the_template_built_from_its_only_binary() {
    let declared: BTreeMap<_, _> = functions("")
        .into_iter()
        .map(|function| (function.code_uri, (function.logical_id, function.binary)))
        .collect();
    assert_eq!(declared.len(), functions("").len(), "two functions share their code");
    let packages = packages();
    let folders = fs::read_dir(workspace().join("functions")).unwrap().count();
    assert_eq!((packages.len(), declared.len()), (folders, folders));
    for Package { name, folder, binaries } in packages {
        let folder = folder.file_name().unwrap().to_str().unwrap().to_owned();
        let (logical_id, binary) = &declared[&format!("functions/{folder}")];
        assert_eq!((&name, &binaries), (&folder, &vec![binary.clone()]), "{logical_id}");
        assert_eq!(name, *binary, "{logical_id}");
    }
}

#[test]
fn each_operation_is_called_after_its_function() {
    let document = Document::read();
    for route in template().routes {
        let mut operations = document.operations().into_iter();
        let operation = operations.find(|operation| {
            (operation.method.as_str(), operation.path) == (route.method.as_str(), route.path.as_str())
        });
        let code_uri = format!("functions/{}", kebab(operation.unwrap().id));
        assert_eq!(route.code_uri, code_uri, "{}", route.key());
    }
}

#[tokio::test]
async fn each_function_with_a_table_may_open_its_connection() {
    let stack = TestStack::start().await;
    for (code_uri, function) in template().functions {
        if function.permissions.granted().next().is_none() {
            continue;
        }
        let name = code_uri.strip_prefix("functions/").unwrap();
        let client = restrict(stack.store().client(), name, &function.permissions);
        let opened = stack.store().with_client(client).open_connection().await;
        assert!(opened.is_ok(), "{name}: {opened:?}");
    }
}

#[test]
fn secrets_are_read_by_the_functions_that_send_them_and_written_by_the_one_that_creates_versions() {
    let mut granted = BTreeSet::new();
    for (code_uri, function) in template().functions {
        let name = code_uri.strip_prefix("functions/").unwrap();
        let on_secrets = function.permissions.granted().filter(|(_, table)| *table == "SecretsTable");
        granted.extend(on_secrets.map(|(action, _)| format!("{name}: {action}")));
    }
    let expected = [
        "create-lobby: GetItem",
        "create-version: PutItem",
        "find-lobby: GetItem",
        "join-lobby: GetItem",
        "start-server: GetItem",
    ];
    assert_eq!(granted, expected.map(ToOwned::to_owned).into());
}

#[test]
fn each_function_gets_the_variables_that_it_reads() {
    let named = Regex::new(r#""(MUSTER_[A-Z_]+)""#).unwrap();
    let (mut missing, mut unused) = (Vec::new(), BTreeSet::from(VARIABLES_OF_PARTS.map(|(part, _)| part)));
    for function in functions("") {
        let sources = fs::read_dir(workspace().join(&function.code_uri).join("src")).unwrap();
        for source in sources {
            let source = fs::read_to_string(source.unwrap().path()).unwrap();
            let parts = VARIABLES_OF_PARTS.iter().filter(|(part, _)| source.contains(part));
            let read = parts.flat_map(|(_, variables)| variables.iter().copied());
            let named = named.captures_iter(&source).map(|found| found.get(1).unwrap().as_str());
            let unset = read.chain(named).filter(|variable| !function.environment.contains_key(*variable));
            missing.extend(unset.map(|variable| format!("{} does not set {variable}", function.logical_id)));
            unused.retain(|part| !source.contains(part));
        }
    }
    assert!(missing.is_empty(), "template.yaml: {missing:#?}");
    assert!(unused.is_empty(), "no function uses these parts: {unused:?}");
}

#[test]
fn each_function_gets_the_names_of_the_tables_that_it_may_use() {
    let (declared, mut missing) = (template().functions, Vec::new());
    for function in functions("") {
        for (action, resource) in declared[&function.code_uri].permissions.granted() {
            let table = resource.split('/').next().unwrap();
            let variable = format!("MUSTER{}", kebab(table).replace('-', "_").to_uppercase());
            if !function.environment.contains_key(&variable) {
                missing.push(format!("{}: {action} without {variable}", function.logical_id));
            }
        }
    }
    assert!(missing.is_empty(), "template.yaml: {missing:#?}");
}

/// SAM publishes a version of a function when what is written of it changes, whatever values parameters have.
#[test]
fn the_revision_of_the_functions_is_written_in_the_template() {
    let revision = Regex::new(r#"(?m)^        MUSTER_REVISION: "[0-9]+"$"#).unwrap();
    assert_eq!(revision.find_iter(TEMPLATE).count(), 1);
    for function in functions("") {
        assert!(function.environment.contains_key("MUSTER_REVISION"), "{}", function.logical_id);
    }
}

#[test]
fn each_function_has_an_example_event_of_its_route() {
    let document = Document::read();
    let folder = workspace().join("tests/events");
    let files = fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path());
    let events: BTreeSet<_> =
        files.filter(|path| path.extension().is_some_and(|extension| extension == "json")).collect();
    let functions: Vec<_> = functions("").into_iter().map(|function| function.binary).collect();
    let wanted: BTreeSet<_> = functions.iter().map(|name| folder.join(name).with_extension("json")).collect();
    assert_eq!(events, wanted);
    for route in template().routes {
        let name = route.code_uri.strip_prefix("functions/").unwrap();
        let text = fs::read_to_string(folder.join(name).with_extension("json")).unwrap();
        let event: Value = serde_json::from_str(&text).unwrap();
        let context = &event["requestContext"];
        assert_eq!(event["version"], "2.0", "{name}");
        assert_eq!(event["routeKey"], route.key(), "{name}");
        assert_eq!(context["routeKey"], route.key(), "{name}");
        assert_eq!(context["http"]["method"], route.method.as_str(), "{name}");
        assert_eq!(
            (&context["http"]["path"], &context["stage"]),
            (&event["rawPath"], &"$default".into()),
            "{name}"
        );
        assert!(text.contains(&format!("example-{name}")), "{name}: its request identifier says which it is");

        let parameters = route.path.parameters_of(event["rawPath"].as_str().unwrap()).unwrap();
        let parameters: BTreeMap<_, _> = parameters.into_iter().collect();
        let given = event.get("pathParameters").cloned().unwrap_or_else(|| serde_json::json!({}));
        assert_eq!(given, serde_json::json!(parameters), "{name}");

        let operations = document.operations();
        let operation = operations.iter().find(|operation| kebab(operation.id) == name).unwrap();
        let body = event["body"].as_str().map(|body| serde_json::from_str::<Value>(body).unwrap());
        assert_eq!(body.is_some(), operation.request_schema().is_some(), "{name}");
        if let (Some(schema), Some(body)) = (operation.request_schema(), body) {
            assert_eq!(document.violations(schema, &body), [""; 0], "{name}");
        }
    }
}

/// Codes with their statuses: one each, but for a token that is invalid in the header or in the body.
type Codes = BTreeMap<String, BTreeSet<String>>;

/// Every code that the service can answer, as its source says.
fn codes_of_the_source() -> Codes {
    let source = fs::read_to_string(workspace().join("shared/src/models/errors.rs")).unwrap();
    let (_, source) = source.split_once("fn status_and_code").unwrap();
    let (source, _) = source.split_once("\n    }\n").unwrap();
    let arm = Regex::new(r#"=>\s*\{?\s*\(\s*(?:StatusCode::)?([A-Z_]+),\s*"([A-Z_]+)",?\s*\)"#).unwrap();
    let (mut codes, mut arms) = (Codes::new(), 0);
    for found in arm.captures_iter(source) {
        let [_, status, code] = [0, 1, 2].map(|group| found.get(group).unwrap().as_str());
        let is_new = codes.entry(code.to_owned()).or_default().insert(status.to_owned());
        assert!(is_new, "{code} stands twice with the same status");
        arms += 1;
    }
    assert_eq!(arms, source.matches("=>").count(), "an arm is not understood");
    codes
}

#[test]
fn the_document_has_every_error_code_and_no_other() {
    let document = Document::read();
    let mut documented = Codes::new();
    for operation in document.operations() {
        for response in operation.responses() {
            let status = http::StatusCode::from_u16(response.status).unwrap();
            let status = status.canonical_reason().unwrap().to_uppercase().replace(' ', "_");
            for code in response.codes() {
                documented.entry(code.to_owned()).or_default().insert(status.clone());
            }
        }
    }
    assert_eq!(documented, codes_of_the_source());
}

#[test]
fn the_reference_of_errors_has_every_code_with_its_statuses_and_its_anchor() {
    let reference = fs::read_to_string(workspace().join("infra/docs/errors.md")).unwrap();
    let anchored = Regex::new(r#"`([A-Z_]+)`<a id="([A-Z_]+)"></a>"#).unwrap();
    let status = Regex::new("[0-9]{3}").unwrap();
    let mut documented = Codes::new();
    for row in reference.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        assert_eq!(cells.len(), 6, "{row}");
        assert!(["client", "developer", "game server", "lobby server", "owner"].contains(&cells[3]), "{row}");
        for found in anchored.captures_iter(cells[1]) {
            assert_eq!(found[1], found[2], "{row}: an error links the fragment of its code");
            let statuses = status.find_iter(cells[2]).map(|found| {
                let status = http::StatusCode::from_bytes(found.as_str().as_bytes()).unwrap();
                status.canonical_reason().unwrap().to_uppercase().replace(' ', "_")
            });
            let is_new =
                documented.insert(found.get(1).unwrap().as_str().to_owned(), statuses.collect()).is_none();
            assert!(is_new, "{row}: documented twice");
        }
    }
    assert_eq!(documented, codes_of_the_source());
}

#[test]
fn each_documented_response_describes_its_codes_and_headers() {
    let document = Document::read();
    let item = Regex::new(r"(?m)^- `([A-Z_]+)`: ").unwrap();
    for operation in document.operations() {
        for response in operation.responses() {
            let at = format!("{} {}", operation.id, response.status);
            let description = response.value["description"].as_str().unwrap();
            let described: BTreeSet<_> =
                item.captures_iter(description).map(|found| found.get(1).unwrap().as_str()).collect();
            assert_eq!(described, response.codes(), "{at}");
            let is_of_gateway = response.status == 429;
            assert_eq!(response.codes().is_empty(), response.status == 200 || is_of_gateway, "{at}");
            let mut headers = BTreeSet::new();
            if !is_of_gateway {
                headers.extend(["x-request-id", "rvt-ray-id", WARNING_HEADER]);
            }
            if response.status == 503 {
                headers.insert("retry-after");
            }
            if operation.id == "listLobbies" && response.status == 200 {
                headers.extend(["cache-control", "vary"]);
            }
            assert_eq!(response.headers(), headers, "{at}");
        }
    }
}

#[test]
fn each_example_of_the_document_fits_its_schema() {
    let document = Document::read();
    for operation in document.operations() {
        if let Some(schema) = operation.request_schema() {
            for example in operation.request_examples().into_iter().flatten() {
                assert_eq!(document.violations(schema, example), [""; 0], "{}", operation.id);
            }
        }
        for response in operation.responses() {
            let at = format!("{} {}", operation.id, response.status);
            assert!(!response.example().is_null(), "{at}");
            assert_eq!(document.violations(response.schema(), response.example()), [""; 0], "{at}");
        }
        for parameter in operation.parameters() {
            let violations = document.violations(&parameter["schema"], &parameter["example"]);
            assert_eq!(violations, [""; 0], "{} {}", operation.id, parameter["name"]);
        }
    }
}

#[test]
fn each_path_documents_its_parameters() {
    let document = Document::read();
    let braced = Regex::new(r"\{(\w+)\}").unwrap();
    for operation in document.operations() {
        let in_path: Vec<_> =
            braced.captures_iter(operation.path).map(|found| found.get(1).unwrap().as_str()).collect();
        let parameters = operation.parameters();
        let documented = parameters.iter().filter(|parameter| parameter["in"] == "path");
        let documented: Vec<_> = documented.map(|parameter| parameter["name"].as_str().unwrap()).collect();
        assert_eq!(documented, in_path, "{}", operation.id);
    }
}

#[test]
fn the_document_has_the_workspaces_version() {
    assert_eq!(Document::read().root["info"]["version"], env!("CARGO_PKG_VERSION"));
}
