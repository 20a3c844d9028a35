//! The functions under `cargo lambda watch`, which needs no Docker: every route over HTTP, as Cargo.toml
//! lists them.

use std::{collections::BTreeMap, fs, process::Stdio, time::Duration};

use harness::{
    binaries::{profile_folder, variables_that_rebuild},
    left_out::needs,
    node::run,
};
use http::Request;
use http_body_util::Full;
use serde_json::Value;
use tokio::{
    net::{TcpListener, TcpStream},
    process::{Child, Command},
    time::{sleep, timeout},
};

use super::deployment::{Deployment, Example, SIGNING_KEY};
use crate::artefacts::{TestFolder, binary, functions, workspace};

/// Far above what the first request of a function takes, for which cargo checks whether it is built.
const PATIENCE: Duration = Duration::from_secs(300);

/// A running `cargo lambda watch` on loopback.
struct Watch {
    child: Child,
    base_url: String,
}

impl Watch {
    async fn start(deployment: &Deployment, folder: &TestFolder) -> Self {
        // As `store` writes it: one environment for all functions.
        let declared = functions(SIGNING_KEY);
        let environments = declared.iter().map(|function| deployment.environment(&function.binary));
        let environment: BTreeMap<_, _> =
            environments.flatten().filter(|(_, value)| !value.is_empty()).collect();
        let lines: String = environment.iter().map(|(name, value)| format!("{name}='{value}'\n")).collect();
        let file = folder.path("functions.env");
        fs::write(&file, lines).unwrap();
        let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let port = free.port().to_string();
        let mut cargo = Command::new("cargo-lambda");
        for name in variables_that_rebuild() {
            cargo.env_remove(name);
        }
        let child = cargo
            .args(["lambda", "watch", "--ignore-changes", "--env-file", &file])
            .args(["--invoke-address", "127.0.0.1", "--invoke-port", &port])
            .current_dir(workspace())
            // Where this test's own binaries are, so that none is built again.
            .env("CARGO_TARGET_DIR", profile_folder().parent().unwrap())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let listens = async {
            while TcpStream::connect(free).await.is_err() {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(PATIENCE, listens).await.expect("cargo-lambda listens");
        Self { child, base_url: format!("http://{free}") }
    }

    /// Sends what a gateway made an event of.
    async fn send(&self, deployment: &Deployment, event: &Value) -> harness::Answer {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let http = &event["requestContext"]["http"];
        let url = format!("{}{}?{}", self.base_url, text(&event["rawPath"]), text(&event["rawQueryString"]));
        let mut request = Request::builder().method(text(&http["method"]).as_str()).uri(url);
        for name in ["authorization", "content-type"] {
            if let Some(value) = event["headers"][name].as_str() {
                request = request.header(name, value);
            }
        }
        let request = request.body(Full::new(text(&event["body"]).into())).unwrap();
        timeout(PATIENCE, deployment.stack.send(request)).await.expect("an answer")
    }

    /// Ends it as Ctrl-C does, with the functions that it started.
    async fn end(mut self) {
        let id = self.child.id().unwrap().to_string();
        assert!(Command::new("kill").args(["-s", "INT", &id]).status().await.unwrap().success());
        timeout(PATIENCE, self.child.wait()).await.expect("it ends").unwrap();
    }
}

#[tokio::test]
async fn cargo_lambda_serves_every_route_with_its_path_parameters() {
    let is_missing = run(workspace(), "cargo-lambda", &["--version"]).await.is_none();
    if !needs("functions under cargo lambda watch", is_missing.then_some("cargo-lambda")) {
        return;
    }
    let _built = binary("find-lobby");
    let (deployment, folder) = (Deployment::start().await, TestFolder::new());
    let watch = Watch::start(&deployment, &folder).await;
    for function in functions(SIGNING_KEY) {
        let Example { event, .. } = deployment.example(&function.binary).await;
        let answer = watch.send(&deployment, &event).await;
        assert_eq!(answer.status, 200, "{}: {}", function.binary, answer.body);
        assert!(answer.body.is_object(), "{}: {}", function.binary, answer.body);
        // The path names the token's own namespace: no other one is found.
        let mut foreign = event.clone();
        for parameter in event["pathParameters"].as_object().into_iter().flatten().map(|(_, value)| value) {
            let path = foreign["rawPath"].as_str().unwrap().to_owned();
            foreign["rawPath"] = path.replace(parameter.as_str().unwrap(), "nobodys").into();
        }
        if foreign != event {
            let answer = watch.send(&deployment, &foreign).await;
            assert!(answer.status.is_client_error(), "{}: {}", function.binary, answer.body);
            assert!(answer.body["code"].is_string(), "{}: {}", function.binary, answer.body);
        }
    }
    watch.end().await;
}
