//! `cargo run -- store`: the database alone, and a function on it as `sam local` starts it.

use super::*;
use crate::{
    artefacts::workspace,
    runtime::{Instance, environment, status_and_body},
};

/// A running database, and what it printed of its demo.
struct StoreAlone {
    program: Program,
    folder: TestFolder,
    public: String,
}

impl StoreAlone {
    async fn start() -> Self {
        let folder = TestFolder::new();
        let path = folder.path("environment");
        let arguments = ["store", "--port", "0", "--container-host", "127.0.0.1", "--environment"];
        let arguments = [&arguments[..], &[path.as_str()]].concat();
        let mut program = Program::start(BINARY, &arguments, &BTreeMap::new());
        let Some(_) = program.line_with("DynamoDB listens on http://127.0.0.1:").await else {
            panic!("{:?}", program.end().await);
        };
        let line = program.line_with("sam local invoke").await.unwrap();
        let public = Regex::new("pub_[A-Za-z0-9_.-]+").unwrap().find(&line).unwrap().as_str().to_owned();
        Self { program, folder, public }
    }

    /// The file that it writes for `sam local`.
    fn environment(&self) -> String {
        let path = self.folder.path("environment/sam-local.json");
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "it holds a key");
        fs::read_to_string(path).unwrap()
    }

    /// What find-lobby says to its example event.
    async fn find(&self, environment: &BTreeMap<String, String>) -> (u64, Value) {
        let event = fs::read_to_string(workspace().join("tests/events/find-lobby.json")).unwrap();
        let event = event.replace("TOKEN", &self.public);
        let mut instance = Instance::start("find-lobby", environment).await;
        let response = instance.invoke(&event).await.answer();
        let ended = instance.kill().await;
        assert_eq!(ended.stderr, "");
        status_and_body(&serde_json::from_str(&event).unwrap(), &response)
    }
}

#[tokio::test]
async fn a_function_finds_a_lobby_on_the_store_in_the_environment_that_it_writes() {
    let mut store = StoreAlone::start().await;
    // As `sam local` does it: variables of the template, those overridden that it has.
    let overriding: Value = serde_json::from_str(&store.environment()).unwrap();
    let mut of_template = environment("find-lobby");
    for (name, value) in overriding["Parameters"].as_object().unwrap() {
        let replaced = of_template.insert(name.clone(), value.as_str().unwrap().to_owned());
        assert!(replaced.is_some(), "sam local ignores {name}, which the template lacks");
    }
    let (status, found) = store.find(&of_template).await;
    assert_eq!(status, 200, "{found}");
    store.program.signal("INT");
    assert!(store.program.end().await.status.success());
}

#[tokio::test]
async fn a_port_in_use_is_refused_by_the_store_too() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let folder = TestFolder::new();
    let path = folder.path("environment");
    let arguments = ["store", "--port", &port, "--environment", &path];
    let Ended { status, stderr, .. } = Program::run(BINARY, &arguments, &BTreeMap::new()).await;
    assert!(!status.success());
    assert!(stderr.starts_with("muster-local: ") && stderr.contains("in use"), "{stderr}");
    assert!(!fs::exists(&path).unwrap(), "an environment for nothing");
}
