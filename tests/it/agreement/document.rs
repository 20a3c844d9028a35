//! The OpenAPI document, read for what the tests compare.

use std::{collections::BTreeSet, fs, sync::OnceLock};

use harness::Answer;
use http::Method;
use serde_json::Value;
use shared::function::operation::WARNING_HEADER;

use super::schema::Schemas;
use crate::artefacts::workspace;

/// `infra/openapi.json`.
pub struct Document {
    pub root: Value,
}

/// One operation of the document.
pub struct Operation {
    document: &'static Document,
    pub method: Method,
    /// Its path, as a template with `{parameters}`.
    pub path: &'static str,
    pub id: &'static str,
    item: &'static Value,
    value: &'static Value,
}

/// One documented response of an operation.
pub struct Response {
    pub status: u16,
    pub value: &'static Value,
}

impl Document {
    /// The document, read once.
    pub fn read() -> &'static Self {
        static DOCUMENT: OnceLock<Document> = OnceLock::new();
        DOCUMENT.get_or_init(|| {
            let text = fs::read_to_string(workspace().join("infra/openapi.json")).unwrap();
            Self { root: serde_json::from_str(&text).unwrap() }
        })
    }

    /// Every operation.
    pub fn operations(&'static self) -> Vec<Operation> {
        let mut operations = Vec::new();
        for (path, item) in self.root["paths"].as_object().unwrap() {
            for (method, value) in item.as_object().unwrap().iter().filter(|(key, _)| *key != "parameters") {
                operations.push(Operation {
                    document: self,
                    method: method.to_uppercase().parse().unwrap(),
                    path,
                    id: value["operationId"].as_str().unwrap(),
                    item,
                    value,
                });
            }
        }
        operations
    }

    /// The operation whose `operationId` is `id`.
    pub fn operation(&'static self, id: &str) -> Operation {
        let mut operations = self.operations().into_iter();
        operations.find(|operation| operation.id == id).unwrap_or_else(|| panic!("no operation {id}"))
    }

    /// What `value` stands for, when it is a reference.
    pub fn resolve<'a>(&'a self, value: &'a Value) -> &'a Value {
        match value["$ref"].as_str() {
            Some(reference) => self.target(reference),
            None => value,
        }
    }

    /// The target of a reference within the document.
    pub fn target(&self, reference: &str) -> &Value {
        let pointer =
            reference.strip_prefix('#').unwrap_or_else(|| panic!("{reference} leaves the document"));
        self.root.pointer(pointer).unwrap_or_else(|| panic!("{reference} leads nowhere"))
    }

    /// The schema, and all schemas that it refers to or has as alternatives.
    pub fn parts(&'static self, schema: &'static Value) -> Vec<&'static Value> {
        let mut parts = vec![schema];
        let mut next = 0;
        while let Some(part) = parts.get(next).copied() {
            parts.extend(part["$ref"].as_str().map(|reference| self.target(reference)));
            parts.extend(part["anyOf"].as_array().into_iter().flatten());
            next += 1;
        }
        parts
    }

    /// What a keyword says in the schema or in its parts.
    pub fn keyword(&'static self, schema: &'static Value, keyword: &str) -> Option<&'static Value> {
        self.parts(schema).into_iter().find_map(|part| part.get(keyword))
    }

    /// Where `value` does not fit `schema`; properties that the schema does not name do not fit either.
    pub fn violations(&self, schema: &Value, value: &Value) -> Vec<String> {
        Schemas(self).violations(schema, value)
    }
}

impl Operation {
    /// Path parameters and those of the request, resolved.
    pub fn parameters(&self) -> Vec<&'static Value> {
        let of = |holder: &'static Value| holder["parameters"].as_array().into_iter().flatten();
        of(self.item).chain(of(self.value)).map(|parameter| self.document.resolve(parameter)).collect()
    }

    /// The schema of the request's body, where it has one.
    pub fn request_schema(&self) -> Option<&'static Value> {
        self.value.pointer("/requestBody/content/application~1json/schema")
    }

    /// Whether it reads an object, not any JSON.
    pub fn reads_object(&self) -> bool {
        self.request_schema().is_some_and(|schema| self.document.resolve(schema)["properties"].is_object())
    }

    /// Whether its body may be any JSON.
    pub fn reads_any_json(&self) -> bool {
        self.request_schema().is_some() && !self.reads_object()
    }

    /// The documented requests; one without a body where the operation takes none.
    pub fn request_examples(&self) -> Vec<Option<&'static Value>> {
        if self.request_schema().is_none() {
            return vec![None];
        }
        let examples = self.value.pointer("/requestBody/content/application~1json/examples");
        let examples = examples.and_then(Value::as_object).expect("a request has examples");
        examples.values().map(|example| Some(&example["value"])).collect()
    }

    /// The ways to authenticate, each of one scheme; nothing stands for none at all.
    pub fn rights(&self) -> Vec<Option<&'static str>> {
        let alternatives = self.value["security"].as_array().expect("each operation says its rights");
        if alternatives.is_empty() {
            return vec![None];
        }
        let scheme = |right: &'static Value| right.as_object().unwrap().keys().next().map(String::as_str);
        alternatives.iter().map(scheme).collect()
    }

    /// The documented responses.
    pub fn responses(&self) -> Vec<Response> {
        let responses = self.value["responses"].as_object().unwrap();
        let response = |(status, value): (&'static String, &'static Value)| Response {
            status: status.parse().unwrap(),
            value: self.document.resolve(value),
        };
        responses.iter().map(response).collect()
    }

    /// Everything in which an answer of the service differs from what is documented.
    pub fn differences(&self, answer: &Answer) -> Vec<String> {
        let status = answer.status.as_u16();
        let Some(response) = self.responses().into_iter().find(|response| response.status == status) else {
            return vec![format!("the status {status} is not documented")];
        };
        let mut differences = self.document.violations(response.schema(), &answer.body);
        // Most requests have no warning.
        let always = response.headers().into_iter().filter(|name| *name != WARNING_HEADER);
        let missing = always.filter(|name| !answer.headers.contains_key(*name));
        differences.extend(missing.map(|name| format!("the header {name} is missing")));
        differences
    }
}

impl Response {
    pub fn schema(&self) -> &'static Value {
        &self.content()["schema"]
    }

    pub fn example(&self) -> &'static Value {
        &self.content()["example"]
    }

    pub fn headers(&self) -> BTreeSet<&'static str> {
        let headers = self.value["headers"].as_object().into_iter().flatten();
        headers.map(|(name, _)| name.as_str()).collect()
    }

    /// The error codes that its schema allows.
    pub fn codes(&self) -> BTreeSet<&'static str> {
        let codes = self.schema().pointer("/properties/code/enum").and_then(Value::as_array);
        codes.into_iter().flatten().map(|code| code.as_str().unwrap()).collect()
    }

    fn content(&self) -> &'static Value {
        &self.value["content"]["application/json"]
    }
}
