//! `cargo run --bin postman`: writes the Postman collection, made from the OpenAPI document. A test
//! compares the two.

#![expect(clippy::expect_used, reason = "a program of the workspace's own panics on failure")]

use std::{fs, path::Path};

use postman::{COLLECTION, written};

fn main() {
    let workspace = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let document = fs::read(workspace.join("infra/openapi.json")).expect("the OpenAPI document");
    let document = serde_json::from_slice(&document).expect("JSON");
    fs::write(workspace.join(COLLECTION), written(&document)).expect("the collection can be written");
}
