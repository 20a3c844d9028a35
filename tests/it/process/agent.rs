//! `muster agent run`: game servers in any language, here the one of its page, on a real stack.

use std::{env, path::Path};

use harness::{left_out::needs, node::run};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
};

use super::*;
use crate::artefacts::workspace;

const CONFIG: &str = r#"{ "game_modes": { "dice": { "regions": ["local"], "max_players": 1 } } }"#;

/// A stack with a game of one mode, whose lobbies have one seat.
struct Scene {
    local: Local,
    folder: TestFolder,
    public: String,
    server: String,
}

impl Scene {
    /// `None` where there is no Python.
    async fn start(name: &str) -> Option<Self> {
        let python = run(Path::new("."), "python3", &["--version"]).await;
        if !needs(name, python.is_none().then_some("python3")) {
            return None;
        }
        let folder = TestFolder::new();
        fs::write(folder.path("dice.json"), CONFIG).unwrap();
        let page = fs::read_to_string(workspace().join("infra/docs/agent.md")).unwrap();
        let program = page.split("```python\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
        fs::write(folder.path("server.py"), program).unwrap();
        let local = Self::stack(&folder, "0").await;
        let tokens = local.demo().await["tokens"].clone();
        let [public, server] = ["public", "server"].map(|kind| tokens[kind].as_str().unwrap().to_owned());
        Some(Self { local, folder, public, server })
    }

    async fn stack(folder: &TestFolder, port: &str) -> Local {
        let (config, data) = (folder.path("dice.json"), folder.path("data"));
        let arguments = ["--config", &config, "--data", &data, "--port", port];
        let mut program = Program::start(BINARY, &arguments, &BTreeMap::new());
        let line = program.line_with("Muster listens on ").await.unwrap();
        Local::new(program, line.strip_prefix("Muster listens on ").unwrap().to_owned())
    }

    fn environment(&self) -> BTreeMap<String, String> {
        [
            ("MUSTER_API_URL", self.local.base_url.as_str()),
            ("MUSTER_SERVER_TOKEN", &self.server),
            ("MUSTER_REGION_ID", "local"),
            ("MUSTER_HOSTNAME", "127.0.0.1"),
            ("PATH", &env::var("PATH").unwrap()),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
    }

    /// The agent with the server of its page, which leaves its environment and process in a file named after
    /// its lobby.
    fn agent(&self, options: &[&str]) -> Agent {
        let server = self.folder.path("server.py");
        let noted = self.folder.path("");
        let script = format!(
            r#"{{ env; echo PROCESS=$$; }} > "{noted}/new-$$" && mv "{noted}/new-$$" "{noted}/${{MUSTER_LOBBY_ID:-server}}" && exec python3 {server}"#
        );
        let first = free_ports(2);
        let port = format!("--port=default={first}-{}/tcp", first + 1);
        let run = ["agent", "run", &port];
        let arguments = [&run[..], options, &["--", "/bin/sh", "-c", &script]].concat();
        Agent(Program::start("muster", &arguments, &self.environment()))
    }

    /// The environment of a lobby's process.
    fn noted(&self, lobby: &str) -> BTreeMap<String, String> {
        let text = fs::read_to_string(self.folder.path(lobby)).unwrap();
        let lines = text.lines().filter_map(|line| line.split_once('='));
        lines.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    async fn find(&self) -> Answer {
        self.local.find(&self.public, json!({ "game_modes": ["dice"], "player_data": "Ada" })).await
    }

    /// A find that is seated, as soon as there is a place.
    async fn seat(&self) -> Value {
        timeout(PATIENCE, async {
            loop {
                let found = self.find().await;
                if found.status == 200 {
                    return found.body;
                }
                assert_eq!(found.status, 503, "{:?}", found.body);
                sleep(Duration::from_millis(50)).await;
            }
        })
        .await
        .expect("a seat in time")
    }

    /// A player in a lobby, whom its process has admitted.
    async fn player(&self) -> Player {
        let seat = self.seat().await;
        Player::connect(&seat).await
    }

    async fn expect_gone(&self, lobby: &str) {
        let process = self.noted(lobby)["PROCESS"].clone();
        let gone = async {
            while is_alive(&process) {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(PATIENCE, gone).await.expect("its process ends");
    }
}

fn is_alive(process: &str) -> bool {
    // The process that adopts the orphans of a killed agent may not reap them.
    let is_dead = fs::read_to_string(format!("/proc/{process}/stat")).is_ok_and(|stat| stat.contains(") Z "));
    !is_dead && std::process::Command::new("kill").args(["-0", process]).output().unwrap().status.success()
}

/// The first of so many ports in a row that nothing listens on.
fn free_ports(count: u16) -> u16 {
    loop {
        let first = free_port();
        let all = (0..count).map(|index| TcpListener::bind(("127.0.0.1", first.saturating_add(index))));
        if all.collect::<Result<Vec<_>, _>>().is_ok() {
            return first;
        }
    }
}

struct Agent(Program);

impl Agent {
    /// Waits until so many of its game servers are registered.
    async fn registered(self, servers: usize) -> Self {
        timeout(PATIENCE, async {
            while self.0.logged_lines("is registered in local") < servers {
                sleep(Duration::from_millis(10)).await;
            }
        })
        .await
        .expect("it registers");
        self
    }

    async fn ends_with(mut self, status: i32) -> Ended {
        let ended = self.0.end().await;
        assert_eq!(ended.status.code(), Some(status), "{ended:?}");
        ended
    }
}

struct Player {
    lobby: String,
    port: u64,
    greeting: String,
    stream: BufReader<TcpStream>,
}

impl Player {
    async fn connect(seat: &Value) -> Self {
        let port = seat["ports"]["default"]["port"].as_u64().unwrap_or_else(|| panic!("one port: {seat}"));
        let lobby = seat["lobby"]["lobby_id"].as_str().unwrap().to_owned();
        let mut stream = TcpStream::connect(("127.0.0.1", u16::try_from(port).unwrap())).await.unwrap();
        let greeting = format!("{lobby} {}\n", seat["player"]["token"].as_str().unwrap());
        stream.write_all(greeting.as_bytes()).await.unwrap();
        let mut stream = BufReader::new(stream);
        let mut greeting = String::new();
        timeout(PATIENCE, stream.read_line(&mut greeting)).await.expect("a line in time").unwrap();
        assert!(greeting.starts_with("Ada rolled "), "{greeting}");
        Self { lobby, port, greeting, stream }
    }

    /// Waits for the server to close the connection.
    async fn expect_closed(mut self) {
        let mut rest = String::new();
        let closed = timeout(PATIENCE, self.stream.read_line(&mut rest)).await.expect("an end in time");
        assert!(closed.is_err() || rest.is_empty(), "{rest}");
    }
}

#[tokio::test]
async fn a_find_leads_to_a_process_of_its_lobby() {
    let Some(scene) = Scene::start("a process for each lobby").await else { return };
    let agent = scene.agent(&["--capacity", "2"]).registered(2).await;
    let (one, two) = (scene.player().await, scene.player().await);
    assert_ne!(one.lobby, two.lobby);
    assert_ne!(one.port, two.port);
    let environments = [&one, &two].map(|player| scene.noted(&player.lobby));
    for (player, environment) in [&one, &two].into_iter().zip(&environments) {
        assert_eq!(environment["MUSTER_PORT_DEFAULT"], player.port.to_string());
        let wanted = [
            ("MUSTER_GAME_MODE", "dice"),
            ("MUSTER_MAX_PLAYERS", "1"),
            ("MUSTER_TAGS", "{}"),
            ("MUSTER_REGION_ID", "local"),
        ];
        for (name, value) in wanted {
            assert_eq!(environment[name], value);
        }
        assert!(!environment.contains_key("MUSTER_SERVER_TOKEN"));
    }
    assert_ne!(environments[0]["PROCESS"], environments[1]["PROCESS"]);

    // The lobby ends without players, its process with it, and its port serves the next one.
    let (lobby, port) = (one.lobby.clone(), one.port);
    drop(one);
    scene.expect_gone(&lobby).await;
    let next = scene.player().await;
    assert_eq!(next.port, port);
    assert!(next.greeting.starts_with("Ada"));
    agent.0.signal("TERM");
    drop((two, next));
    let ended = agent.ends_with(0).await;
    let printed = format!("{}{}", ended.stdout, ended.stderr);
    for secret in
        [&scene.server, &environments[0]["MUSTER_AGENT_SECRET"], &environments[0]["MUSTER_LOBBY_TOKEN"]]
    {
        assert!(!printed.contains(secret.as_str()), "a secret is printed");
    }
}

#[tokio::test]
async fn a_process_that_knows_nothing_of_muster_has_its_lobby_ready_and_its_lines_named() {
    let Some(scene) = Scene::start("a process that knows nothing").await else { return };
    let port = format!("--port=default={}/udp", free_port());
    let script = r#"echo "the lobby is $MUSTER_LOBBY_ID"; exec sleep 600"#;
    let arguments = ["agent", "run", &port, "--auto-ready", "--", "/bin/sh", "-c", script];
    let mut environment = scene.environment();
    // A bare container has no certificates, and the stack's address needs none.
    for name in ["SSL_CERT_FILE", "SSL_CERT_DIR"] {
        environment.insert(name.to_owned(), "/nowhere".to_owned());
    }
    let mut agent = Agent(Program::start("muster", &arguments, &environment)).registered(1).await;
    let lobby = scene.seat().await["lobby"]["lobby_id"].as_str().unwrap().to_owned();
    let line = agent.0.line_with("the lobby is").await.unwrap();
    assert_eq!(line, format!("[{}] the lobby is {lobby}", &lobby[..8]));
    agent.0.signal("TERM");
    agent.0.logged("draining").await.unwrap();
    agent.0.signal("TERM");
    agent.ends_with(0).await;
}

#[tokio::test]
async fn one_process_runs_all_lobbies() {
    let Some(scene) = Scene::start("one process for all lobbies").await else { return };
    let port = free_port();
    let more = ["--shared", "--auto-ready", "--capacity", "5"];
    let server = scene.folder.path("server.py");
    let port_option = format!("--port=default={port}/tcp");
    let arguments = [&["agent", "run", &port_option][..], &more, &["--", "python3", &server]].concat();
    let agent = Agent(Program::start("muster", &arguments, &scene.environment())).registered(1).await;
    let listens = async {
        while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, listens).await.expect("its process listens");
    // No heartbeat is due for 30 s: the players themselves cause those that list their lobbies.
    let (one, two) = (scene.player().await, scene.player().await);
    assert_ne!(one.lobby, two.lobby);
    agent.0.signal("TERM");
    drop((one, two));
    agent.ends_with(0).await;
}

#[tokio::test]
async fn the_end_of_the_process_of_all_lobbies_ends_the_agent() {
    let Some(scene) = Scene::start("the end of a shared process").await else { return };
    let agent = scene.agent(&["--shared", "--auto-ready"]).registered(1).await;
    let runs = async {
        while !Path::new(&scene.folder.path("server")).exists() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, runs).await.expect("its process runs");
    let process = scene.noted("server")["PROCESS"].clone();
    assert!(std::process::Command::new("kill").args(["-9", &process]).status().unwrap().success());
    let ended = agent.ends_with(1).await;
    assert!(ended.stderr.contains("the game server ended: signal: 9"), "{}", ended.stderr);
    assert_eq!(scene.find().await.refusal(), (503, "MATCHMAKER_NO_SERVER_AVAILABLE"));
}

#[tokio::test]
async fn the_end_of_a_process_ends_its_lobby() {
    let Some(scene) = Scene::start("the end of a process").await else { return };
    let mut agent = scene.agent(&[]).registered(1).await;
    let player = scene.player().await;
    let process = scene.noted(&player.lobby)["PROCESS"].clone();
    assert!(std::process::Command::new("kill").args(["-9", &process]).status().unwrap().success());
    let line = agent.0.logged("because its process did").await.unwrap();
    assert!(line.contains(&player.lobby) && line.contains("signal: 9"), "{line}");
    let lobby = player.lobby.clone();
    player.expect_closed().await;
    assert_ne!(scene.player().await.lobby, lobby);
    let url = format!("{}/matchmaker/lobbies/join", scene.local.base_url);
    let joined = post(&url, &scene.public, &json!({ "lobby_id": lobby }).to_string()).await;
    assert_eq!(joined.refusal(), (400, "MATCHMAKER_LOBBY_STOPPED"));
}

#[tokio::test]
async fn sigterm_drains_and_a_second_one_ends_at_once() {
    let Some(scene) = Scene::start("a drain").await else { return };
    let mut agent = scene.agent(&[]).registered(1).await;
    let player = scene.player().await;
    agent.0.signal("TERM");
    agent.0.logged("draining").await.unwrap();
    let own = scene.noted(&player.lobby);
    let listed = timeout(PATIENCE, async {
        loop {
            let listed = act(&own, Some(&own["MUSTER_AGENT_SECRET"]), "/lobbies", "").await.expect_ok().body;
            if listed["draining"] == true {
                return listed;
            }
            sleep(Duration::from_millis(20)).await;
        }
    });
    assert_eq!(listed.await.expect("in time")["lobbies"][0]["lobby_id"], player.lobby.as_str());
    let lobby = player.lobby.clone();
    assert!(is_alive(&scene.noted(&lobby)["PROCESS"]));
    drop(player);
    agent.ends_with(0).await;
    scene.expect_gone(&lobby).await;

    let mut agent = scene.agent(&[]).registered(1).await;
    let player = scene.player().await;
    let lobby = player.lobby.clone();
    agent.0.signal("TERM");
    agent.0.logged("draining").await.unwrap();
    agent.0.signal("TERM");
    agent.ends_with(0).await;
    player.expect_closed().await;
    scene.expect_gone(&lobby).await;

    // No time to drain.
    let agent = scene.agent(&["--drain-seconds", "0"]).registered(1).await;
    let player = scene.player().await;
    agent.0.signal("INT");
    agent.ends_with(0).await;
    player.expect_closed().await;
}

#[tokio::test]
async fn lobbies_outlast_a_restart_of_the_stack() {
    let Some(mut scene) = Scene::start("a restart of the stack").await else { return };
    let mut agent = scene.agent(&["--capacity", "2"]).registered(2).await;
    let player = scene.player().await;
    let port = scene.local.port().to_owned();
    let Scene { local, .. } = scene;
    local.interrupt().await;
    agent.0.logged("no response").await.unwrap();
    scene = Scene { local: Scene::stack(&scene.folder, &port).await, ..scene };
    let another = scene.player().await;
    let lobby = player.lobby.clone();
    assert_ne!(lobby, another.lobby);
    assert!(is_alive(&scene.noted(&lobby)["PROCESS"]));
    drop(player);
    scene.expect_gone(&lobby).await;
    drop(another);
}

#[tokio::test]
async fn without_an_accepted_heartbeat_for_three_leases_everything_ends() {
    let Some(scene) = Scene::start("a stack that stays away").await else { return };
    let agent = scene.agent(&["--lease-seconds", "6"]).registered(1).await;
    let player = scene.player().await;
    let Scene { local, folder, .. } = scene;
    local.interrupt().await;
    let ended = agent.ends_with(5).await;
    assert!(
        ended.stderr.contains("Muster has accepted no heartbeat for 18 s: no response: "),
        "{}",
        ended.stderr
    );
    player.expect_closed().await;
    drop(folder);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn no_process_outlives_a_killed_agent() {
    let Some(scene) = Scene::start("a killed agent").await else { return };
    let mut agent = scene.agent(&[]).registered(1).await;
    let player = scene.player().await;
    agent.0.signal("KILL");
    player.stream.get_ref().peer_addr().unwrap();
    scene.expect_gone(&player.lobby).await;
    player.expect_closed().await;
    agent.0.wait().await;
}

/// Sends a request to the agent as a process with this environment, or as one with another secret.
async fn act(environment: &BTreeMap<String, String>, secret: Option<&str>, path: &str, body: &str) -> Answer {
    let method = if body.is_empty() { Method::GET } else { Method::POST };
    let request = Request::builder().method(method).uri(format!("{}{path}", environment["MUSTER_AGENT_URL"]));
    let request = match secret {
        Some(secret) => request.header("authorization", format!("Bearer {secret}")),
        None => request,
    };
    send(request, body).await
}

#[tokio::test]
async fn a_process_acts_on_its_own_lobby_alone() {
    let Some(scene) = Scene::start("the agent's interface").await else { return };
    let _agent = scene.agent(&["--capacity", "2"]).registered(2).await;
    let (one, other) = (scene.player().await, scene.player().await);
    let own = scene.noted(&one.lobby);
    let secret = own["MUSTER_AGENT_SECRET"].as_str();
    let path = |lobby: &str, deed: &str| format!("/lobbies/{lobby}/{deed}");
    for deed in ["ready", "connected", "disconnected", "closed", "state", "end"] {
        for wrong in
            [None, Some(""), Some("wrong"), Some(scene.server.as_str()), Some(&own["MUSTER_LOBBY_TOKEN"])]
        {
            let refused = act(&own, wrong, &path(&one.lobby, deed), "{}").await;
            assert_eq!(refused.refusal(), (401, "API_UNAUTHORIZED"), "{deed}");
        }
        let foreign = act(&own, Some(secret), &path(&other.lobby, deed), "{}").await;
        assert_eq!(foreign.refusal(), (400, "MATCHMAKER_LOBBY_NOT_FOUND"), "{deed}");
    }
    assert_eq!(act(&own, None, "/lobbies", "").await.refusal(), (401, "API_UNAUTHORIZED"));
    let listed = act(&own, Some(secret), "/lobbies", "").await.expect_ok().body;
    assert_eq!(listed["draining"], false);
    let ids: Vec<_> =
        listed["lobbies"].as_array().unwrap().iter().map(|lobby| lobby["lobby_id"].as_str()).collect();
    assert_eq!(ids, [Some(one.lobby.as_str())]);
    assert_eq!(act(&own, Some(secret), &path(&one.lobby, "nothing"), "{}").await.refusal().0, 404);

    // Muster's own refusals pass.
    for (deed, body) in [
        ("closed", r#"{"is_closed": "yes"}"#),
        ("state", "no JSON"),
        ("connected", "{}"),
        ("disconnected", r#"{"player_token": "player_none", "keep_seconds": "long"}"#),
    ] {
        let refused = act(&own, Some(secret), &path(&one.lobby, deed), body).await;
        assert_eq!(refused.refusal(), (400, "API_BAD_BODY"), "{deed}");
    }
    let unknown =
        act(&own, Some(secret), &path(&one.lobby, "connected"), r#"{"player_token": "player_none"}"#).await;
    assert_eq!(unknown.refusal().0, 400, "{:?}", unknown.body);

    act(&own, Some(secret), &path(&one.lobby, "state"), r#"{"round": 1}"#).await.expect_ok();
    let state = format!("{}/matchmaker/lobbies/{}/state", scene.local.base_url, one.lobby);
    let request = Request::get(&state).header("authorization", format!("Bearer {}", scene.public));
    assert_eq!(send(request, "").await.expect_ok().body, json!({ "round": 1 }));
    act(&own, Some(secret), &path(&one.lobby, "closed"), r#"{"is_closed": true}"#).await.expect_ok();
    act(&own, Some(secret), &path(&one.lobby, "end"), "{}").await.expect_ok();
    scene.expect_gone(&one.lobby).await;
    one.expect_closed().await;
    // With the process its right has ended.
    let late = timeout(PATIENCE, async {
        loop {
            let late = act(&own, Some(secret), "/lobbies", "").await;
            if late.status == 401 {
                return late;
            }
            sleep(Duration::from_millis(10)).await;
        }
    });
    assert_eq!(late.await.expect("in time").refusal().1, "API_UNAUTHORIZED");
}

#[tokio::test]
async fn what_cannot_run_is_refused_with_the_reason() {
    let local = Local::start(&[]).await;
    let token = local.demo().await["tokens"]["server"].as_str().unwrap().to_owned();
    let usual = ["--hostname=127.0.0.1", "--region-id=fra", "--port=default=7777/udp"];
    for (token, options, command, status, reason) in [
        (&*token, &usual[..], "no-such-program", 2, "-- no-such-program: there is no such program"),
        (&token, &usual[1..], "/bin/cat", 2, "--hostname"),
        (&token, &usual[..2], "/bin/cat", 2, "--port"),
        (&token, &[&usual[..], &["--capacity=2"]].concat(), "/bin/cat", 2, "--port default: has 1 numbers"),
        ("", &usual, "/bin/cat", 2, "MUSTER_SERVER_TOKEN"),
        ("server_forged", &usual, "/bin/cat", 6, "TOKEN_INVALID"),
        (
            &token,
            &["--hostname=127.0.0.1", "--region-id=mars", "--port=a=7777/udp"],
            "/bin/cat",
            4,
            "MATCHMAKER_INVALID_SERVER",
        ),
    ] {
        let url = format!("--api-url={}", local.base_url);
        let arguments = [&["agent", "run", &url][..], options, &["--", command]].concat();
        let environment = BTreeMap::from([("MUSTER_SERVER_TOKEN".to_owned(), token.to_owned())]);
        let Ended { status: ended, stderr, .. } = Program::run("muster", &arguments, &environment).await;
        assert_eq!(ended.code(), Some(status), "{reason}: {stderr}");
        assert!(stderr.contains(reason), "{reason}: {stderr}");
    }
}
