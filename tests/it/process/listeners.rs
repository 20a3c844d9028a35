//! No listener of ours answers a page of another origin, nor a name of somebody else's that leads here.

use std::path::{Path, PathBuf};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::*;
use crate::artefacts::workspace;

/// Every file that opens a listener, and what `attacked` calls it. The last one is for the world: a game
/// server's players come there, each with a player token. The agent's answers nobody without the secret of
/// one of its processes (`process::agent`), which no page has. `processes` only tries whether a port is free.
const LISTENERS: [(&str, &[&str]); 6] = [
    ("infra/operator/src/agent.rs", &[]),
    ("infra/local/src/addresses.rs", &["gateway"]),
    ("infra/local/src/emulator.rs", &["the database", "the database alone"]),
    ("infra/local/src/processes.rs", &[]),
    ("infra/operator/src/serving.rs", &["muster console"]),
    ("infra/example/src/game_server.rs", &[]),
];

/// The files of a folder of code that open a listener.
fn opening(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            opening(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let binds = ["TcpListener::bind(", "TcpSocket::", "UdpSocket::bind(", "UnixListener::bind("];
            if binds.iter().any(|bind| text.contains(bind)) {
                found.push(path);
            }
        }
    }
}

#[test]
fn every_listener_is_in_the_table() {
    let mut found = Vec::new();
    for folder in ["infra", "functions", "shared"] {
        opening(&workspace().join(folder), &mut found);
    }
    found.sort();
    let mut listed: Vec<_> = LISTENERS.iter().map(|(file, _)| workspace().join(file)).collect();
    listed.sort();
    assert_eq!(found, listed, "a listener needs `muster_console::guard`, and a row in the table");
}

/// A request to a listener that its own users would send, and may not be another's.
#[derive(Clone)]
struct Attacked {
    name: &'static str,
    address: String,
    method: &'static str,
    path: &'static str,
    headers: Vec<(&'static str, String)>,
    body: String,
    /// Whether it is for every page: the API is, and asks for a token. The page's files are, and hold no
    /// data.
    is_public: bool,
}

/// The status and the headers of a raw response, and its body.
struct Raw {
    status: u16,
    head: String,
    body: String,
}

impl Attacked {
    async fn with(&self, host: &str, forged: &[(&str, &str)]) -> Raw {
        let Self { address, method, path, headers, body, .. } = self;
        let mut text = format!(
            "{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-length: {}\r\n",
            body.len()
        );
        let own = headers.iter().map(|(name, value)| (*name, value.as_str()));
        own.chain(forged.iter().copied())
            .for_each(|(name, value)| text.push_str(&format!("{name}: {value}\r\n")));
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(format!("{text}\r\n{body}").as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Raw { status, head: head.to_lowercase(), body: body.to_owned() }
    }
}

/// Splits `http://key@address`.
fn keyed(endpoint: &str) -> (String, String) {
    let (key, address) = endpoint.strip_prefix("http://").unwrap().split_once('@').unwrap();
    (key.to_owned(), address.to_owned())
}

/// A write to a database, as those who know its key send it.
fn write(name: &'static str, endpoint: &str) -> Attacked {
    let (key, address) = keyed(endpoint);
    let signature = format!(
        "AWS4-HMAC-SHA256 Credential={key}/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0"
    );
    let headers = vec![
        ("content-type", "application/x-amz-json-1.0".to_owned()),
        ("x-amz-target", "DynamoDB_20120810.PutItem".to_owned()),
        ("x-amz-date", "20260101T000000Z".to_owned()),
        ("authorization", signature),
    ];
    let body = json!({ "TableName": "TokensTable", "Item": { "digest": { "S": "foreign" } } }).to_string();
    Attacked { name, address, method: "POST", path: "/", headers, body, is_public: false }
}

/// What listens in a test.
struct Listening {
    local: Local,
    store: String,
    alone: Program,
    alone_store: String,
    console: Program,
    console_address: String,
    _folder: TestFolder,
}

impl Listening {
    async fn start() -> Self {
        let (local, folder) = (Local::start(&[]).await, TestFolder::new());
        let store = get(&format!("{}/_local/store", local.base_url)).await.expect_ok().body;
        let environment = folder.path("environment");
        let arguments = ["store", "--port", "0", "--environment", &environment];
        let mut alone = Program::start(BINARY, &arguments, &BTreeMap::new());
        alone.line_with("Ctrl-C stops it").await.unwrap();
        let written = fs::read_to_string(folder.path("environment/sam-local.json")).unwrap();
        let written: Value = serde_json::from_str(&written).unwrap();
        let endpoint = written["Parameters"]["AWS_ENDPOINT_URL_DYNAMODB"].as_str().unwrap();
        let alone_store = endpoint.replace("host.docker.internal", "127.0.0.1");
        let arguments = ["console", "--no-browser", &local.option];
        let mut console = Program::start("muster", &arguments, &BTreeMap::new());
        let line = console.line_with("The console of").await.unwrap();
        let address = Regex::new(r"http://([0-9.:]+)/#token").unwrap();
        let console_address = address.captures(&line).unwrap().get(1).unwrap().as_str().to_owned();
        let store = store["endpoint"].as_str().unwrap().to_owned();
        Self { local, store, alone, alone_store, console, console_address, _folder: folder }
    }

    /// Requests that read or change something, or would for the listener's own users.
    fn attacked(&self) -> Vec<Attacked> {
        let gateway = self.local.base_url.strip_prefix("http://").unwrap();
        let (own, create) = (
            vec![("muster-console", "1".to_owned())],
            json!({ "words": ["namespace", "create", "demo/foreign", "--version", "1.0"] }).to_string(),
        );
        let mut attacked = Vec::new();
        for (name, address) in [("gateway", gateway), ("muster console", &self.console_address)] {
            for (method, path, body) in [
                ("GET", "/", ""),
                ("GET", "/_console/deployment", ""),
                ("POST", "/_console/command", create.as_str()),
            ] {
                let (address, headers, body) = (address.to_owned(), own.clone(), body.to_owned());
                attacked.push(Attacked {
                    name,
                    address,
                    method,
                    path,
                    headers,
                    body,
                    is_public: path == "/",
                });
            }
        }
        for path in ["/_local/demo", "/_local/store", "/_local/counts", "/cloud/games/x"] {
            let (address, headers, body) = (gateway.to_owned(), Vec::new(), String::new());
            let is_public = path.starts_with("/cloud");
            attacked.push(Attacked {
                name: "gateway",
                address,
                method: "GET",
                path,
                headers,
                body,
                is_public,
            });
        }
        attacked.push(write("the database", &self.store));
        attacked.push(write("the database alone", &self.alone_store));
        attacked
    }

    async fn end(mut self) {
        for program in [&mut self.alone, &mut self.console] {
            program.signal("INT");
            assert!(program.end().await.status.success());
        }
        self.local.interrupt().await;
    }
}

const FOREIGN_PAGES: [&[(&str, &str)]; 6] = [
    &[("origin", "https://evil.example")],
    &[("origin", "null")],
    &[("origin", "http://localhost:1")],
    &[("sec-fetch-site", "cross-site")],
    &[("sec-fetch-site", "same-site"), ("origin", "http://127.0.0.1:1")],
    &[("origin", "https://evil.example"), ("access-control-request-method", "POST")],
];

#[tokio::test]
async fn no_listener_answers_a_foreign_page_or_a_foreign_name() {
    let listening = Listening::start().await;
    let attacked = listening.attacked();
    for (file, names) in LISTENERS {
        assert!(names.iter().all(|name| attacked.iter().any(|of| of.name == *name)), "{file}");
    }
    for attack in &attacked {
        let Attacked { name, address, path, is_public, .. } = attack;
        for page in FOREIGN_PAGES {
            // The console's own header is only sent after a preflight that nobody answered.
            let mut unasked = attack.clone();
            unasked.headers.retain(|(name, _)| *name != "muster-console");
            let Raw { status, head, body } = unasked.with(address, page).await;
            assert!(status >= 400 || *is_public, "{name} {path} from {page:?}: {status} {body}");
            let is_api = path.starts_with("/cloud");
            assert!(is_api || !head.contains("access-control-"), "{name} {path} from {page:?}: {head}");
            unasked.method = "OPTIONS";
            let Raw { status, head, .. } = unasked.with(address, page).await;
            assert!(is_api || status >= 400 && !head.contains("access-control-"), "{name} {path}: {head}");
        }
        for host in ["evil.example", "127.0.0.1.evil.example", "evil.example:3000"] {
            let Raw { status, body, .. } = attack.with(host, &[]).await;
            let refused = if path.starts_with("/cloud") { 401 } else { 403 };
            assert_eq!(status, refused, "{name} {path} as {host}: {body}");
        }
    }
    // Nothing came of it.
    for (name, endpoint) in
        [("the database", &listening.store), ("the database alone", &listening.alone_store)]
    {
        let mut read = write(name, endpoint);
        read.headers[1].1 = "DynamoDB_20120810.GetItem".to_owned();
        read.body =
            json!({ "TableName": "TokensTable", "Key": { "digest": { "S": "foreign" } } }).to_string();
        let Raw { status, body, .. } = read.with(&read.address, &[]).await;
        assert_eq!((status, body.as_str()), (200, "{}"), "{name}");
    }
    let arguments = ["namespace", "list", "demo", &listening.local.option];
    let listed = Program::run("muster", &arguments, &BTreeMap::new()).await.stdout;
    assert!(listed.contains("prod") && !listed.contains("foreign"), "{listed}");
    listening.end().await;
}

#[tokio::test]
async fn a_database_answers_only_those_who_know_its_key() {
    let listening = Listening::start().await;
    let endpoints = [&listening.store, &listening.alone_store].map(|endpoint| keyed(endpoint));
    assert_ne!(endpoints[0].0, endpoints[1].0, "each start has a key of its own");
    for (index, (key, address)) in endpoints.iter().enumerate() {
        let own = format!("http://{key}@{address}");
        let Raw { status, body, head } = write("", &own).with(address, &[]).await;
        assert_eq!((status, body.as_str()), (200, "{}"));
        assert!(head.contains("x-content-type-options: nosniff"), "{head}");
        let other = &endpoints[1 - index].0;
        for wrong in ["local", "", other, &key[1..], &key.to_uppercase().replace(['0', '1'], "2")] {
            let Raw { status, body, .. } =
                write("", &format!("http://{wrong}@{address}")).with(address, &[]).await;
            assert_eq!((status, body.as_str()), (403, ""), "{wrong}");
        }
        let mut unsigned = write("", &own);
        unsigned.headers.retain(|(name, _)| *name != "authorization");
        assert_eq!(unsigned.with(address, &[]).await.status, 403);
    }
    listening.end().await;
}

#[tokio::test]
async fn what_the_stack_says_of_itself_is_not_embedded_and_not_kept() {
    let local = Local::start(&[]).await;
    for route in ["/_local/demo", "/_local/store", "/_local/counts"] {
        let url = format!("{}{route}", local.base_url);
        let answer = get(&url).await.expect_ok();
        let typed = send(Request::get(&url).header("sec-fetch-site", "none"), "").await.expect_ok();
        let foreign = send(Request::get(&url).header("sec-fetch-site", "cross-site"), "").await;
        assert_eq!((foreign.status.as_u16(), &foreign.body), (403, &json!({ "message": "Forbidden" })));
        for answer in [answer, typed, foreign] {
            assert_eq!(answer.headers["x-content-type-options"], "nosniff", "{route}");
            assert_eq!(answer.headers["cross-origin-resource-policy"], "same-origin", "{route}");
            assert_eq!(answer.headers["cache-control"], "no-store", "{route}");
        }
    }
}

#[tokio::test]
async fn https_is_named_in_the_log() {
    let mut local = Local::start(&[]).await;
    let address = local.base_url.strip_prefix("http://").unwrap().to_owned();
    let mut stream = TcpStream::connect(&address).await.unwrap();
    // The beginning of a client's hello.
    stream.write_all(b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03").await.unwrap();
    let line = local.program.logged("https").await.unwrap();
    let expected =
        format!("a client did not send HTTP, perhaps because it used https: the address is http://{address}");
    assert!(line.ends_with(&expected), "{line}");
}
