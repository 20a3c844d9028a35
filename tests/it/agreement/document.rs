//! The OpenAPI document, read for what the tests compare.

use std::{collections::BTreeSet, fs};

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
pub struct Operation<'a> {
    document: &'a Document,
    pub method: Method,
    /// Its path, as a template with `{parameters}`.
    pub path: &'a str,
    pub id: &'a str,
    item: &'a Value,
    value: &'a Value,
}

/// One documented response of an operation.
pub struct Response<'a> {
    pub status: u16,
    pub value: &'a Value,
}

impl Document {
    pub fn read() -> Self {
        let text = fs::read_to_string(workspace().join("infra/openapi.json")).unwrap();
        Self { root: serde_json::from_str(&text).unwrap() }
    }

    /// Every operation.
    pub fn operations(&self) -> Vec<Operation<'_>> {
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
    pub fn operation(&self, id: &str) -> Operation<'_> {
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

    /// Where `value` does not fit `schema`; properties that the schema does not name do not fit either.
    pub fn violations(&self, schema: &Value, value: &Value) -> Vec<String> {
        Schemas(self).violations(schema, value)
    }
}

impl<'a> Operation<'a> {
    /// Path parameters and those of the request, resolved.
    pub fn parameters(&self) -> Vec<&'a Value> {
        let of = |holder: &'a Value| holder["parameters"].as_array().into_iter().flatten();
        of(self.item).chain(of(self.value)).map(|parameter| self.document.resolve(parameter)).collect()
    }

    /// The schema of the request's body, where it has one.
    pub fn request_schema(&self) -> Option<&'a Value> {
        self.value.pointer("/requestBody/content/application~1json/schema")
    }

    /// The documented requests; one without a body where the operation takes none.
    pub fn request_examples(&self) -> Vec<Option<&'a Value>> {
        if self.request_schema().is_none() {
            return vec![None];
        }
        let examples = self.value.pointer("/requestBody/content/application~1json/examples");
        let examples = examples.and_then(Value::as_object).expect("a request has examples");
        examples.values().map(|example| Some(&example["value"])).collect()
    }

    /// The ways to authenticate, each of one scheme; nothing stands for none at all.
    pub fn rights(&self) -> Vec<Option<&'a str>> {
        let alternatives = self.value["security"].as_array().expect("each operation says its rights");
        if alternatives.is_empty() {
            return vec![None];
        }
        let scheme = |right: &'a Value| right.as_object().unwrap().keys().next().map(String::as_str);
        alternatives.iter().map(scheme).collect()
    }

    /// The documented responses.
    pub fn responses(&self) -> Vec<Response<'a>> {
        let responses = self.value["responses"].as_object().unwrap();
        let response = |(status, value): (&'a String, &'a Value)| Response {
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

impl<'a> Response<'a> {
    pub fn schema(&self) -> &'a Value {
        &self.content()["schema"]
    }

    pub fn example(&self) -> &'a Value {
        &self.content()["example"]
    }

    pub fn headers(&self) -> BTreeSet<&'a str> {
        let headers = self.value["headers"].as_object().into_iter().flatten();
        headers.map(|(name, _)| name.as_str()).collect()
    }

    /// The error codes that its schema allows.
    pub fn codes(&self) -> BTreeSet<&'a str> {
        let codes = self.schema().pointer("/properties/code/enum").and_then(Value::as_array);
        codes.into_iter().flatten().map(|code| code.as_str().unwrap()).collect()
    }

    fn content(&self) -> &'a Value {
        &self.value["content"]["application/json"]
    }
}
