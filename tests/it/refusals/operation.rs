//! The operations as the document describes them, each with a request that it accepts.

use std::{fmt, sync::LazyLock};

use harness::{Answer, TestStack};
use http::{Method, Request};
use http_body_util::Full;
use hyper::body::Bytes;

use super::scene::Scene;
use crate::agreement::document::Document;
pub use crate::agreement::document::Operation;

/// Every operation of the document.
pub static OPERATIONS: LazyLock<Vec<Operation>> = LazyLock::new(|| Document::read().operations());

/// The kinds of tokens; of those that an operation takes, the first opens most.
pub const KINDS: [&str; 5] = ["cloud", "server", "public", "lobby", "development"];

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

impl Operation {
    /// The operation at the only path of the document that ends so.
    pub fn at(path: &str) -> &'static Self {
        let mut found = OPERATIONS.iter().filter(|operation| operation.path.ends_with(path));
        let (Some(operation), None) = (found.next(), found.next()) else {
            panic!("{path} is no operation's end, or several operations'");
        };
        operation
    }

    /// The operations that look at a token.
    pub fn guarded() -> impl Iterator<Item = &'static Self> {
        OPERATIONS.iter().filter(|operation| !operation.is_open())
    }

    /// The operations that a token of this kind allows.
    pub fn taking(kind: &str) -> impl Iterator<Item = &'static Self> {
        OPERATIONS.iter().filter(move |operation| operation.takes(kind))
    }

    /// The operations that a page of a registered domain needs no token for.
    pub fn for_pages() -> impl Iterator<Item = &'static Self> {
        Self::taking("public")
    }

    /// The operations that read a body.
    pub fn reading() -> impl Iterator<Item = &'static Self> {
        OPERATIONS.iter().filter(|operation| operation.request_schema().is_some())
    }

    /// The operations that read an object.
    pub fn reading_object() -> impl Iterator<Item = &'static Self> {
        OPERATIONS.iter().filter(|operation| operation.reads_object())
    }

    /// Whether it reads no token.
    pub fn is_open(&self) -> bool {
        self.rights() == [None]
    }

    /// The kinds of tokens that it takes, the usual one first.
    pub fn kinds(&self) -> impl Iterator<Item = &'static str> {
        KINDS.into_iter().filter(|kind| self.takes(kind))
    }

    pub fn takes(&self, kind: &str) -> bool {
        let mut schemes = self.rights().into_iter().flatten();
        schemes.any(|scheme| scheme.strip_suffix("Token") == Some(kind))
    }

    /// Whether it is an operation on one namespace of a game.
    pub fn is_on_namespace(&self) -> bool {
        self.path.contains("{namespace_id}")
    }

    /// Whether it reads its body before it looks at a token, as find does.
    pub fn reads_body_first(&self) -> bool {
        self.takes("public") && self.reads_object()
    }

    /// Its path of another game and namespace than the scene's.
    pub fn path_in(&self, scene: &Scene<'_>, game_id: &str, namespace_id: &str) -> String {
        let path = self.path.replace("{game_id}", game_id).replace("{namespace_id}", namespace_id);
        scene.path(&path)
    }

    /// Its first documented body.
    pub fn valid_body(&self, scene: &Scene<'_>) -> String {
        self.request_examples()[0].map(|example| scene.realized(example).to_string()).unwrap_or_default()
    }

    /// A token of the scene that allows it.
    pub fn token<'a>(&self, scene: &'a Scene<'_>) -> Option<&'a str> {
        self.kinds().next().map(|kind| scene.token(kind))
    }

    /// A request that is answered with a success, once for each scene.
    pub async fn succeed(&self, scene: &Scene<'_>) -> Answer {
        let answer = self.call(scene, self.token(scene)).await;
        assert_eq!(answer.status, 200, "{self}: {}", answer.body);
        answer
    }

    /// A valid request, but for the token.
    pub async fn call(&self, scene: &Scene<'_>, token: Option<&str>) -> Answer {
        let body = scene.for_caller(token, self.valid_body(scene));
        self.call_with_body(scene, token, body).await
    }

    /// A request that may be made, but for the body.
    pub async fn call_with(&self, scene: &Scene<'_>, body: impl Into<Bytes>) -> Answer {
        self.call_with_body(scene, self.token(scene), body).await
    }

    pub async fn call_with_body(
        &self,
        scene: &Scene<'_>,
        token: Option<&str>,
        body: impl Into<Bytes>,
    ) -> Answer {
        scene.stack.call(self.method.clone(), &scene.path(self.path), token, body).await
    }

    /// A valid request, but for the headers.
    pub async fn call_with_headers(&self, scene: &Scene<'_>, headers: &[(&str, &[u8])]) -> Answer {
        let (path, body) = (scene.path(self.path), self.valid_body(scene));
        send(scene.stack, &self.method, &path, headers, body).await
    }
}

/// Sends a request with exactly these headers.
pub async fn send(
    stack: &TestStack,
    method: &Method,
    path: &str,
    headers: &[(&str, &[u8])],
    body: impl Into<Bytes>,
) -> Answer {
    let uri = format!("{}{path}", stack.demo().base_url);
    let mut request = Request::builder().method(method).uri(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    stack.send(request.body(Full::new(body.into())).unwrap()).await
}
