//! Game servers on demand as real processes of this machine: their number, their ends, and what players get.

use std::{collections::BTreeMap, env, path::Path, time::Instant};

use futures_util::future::join_all;
use harness::{left_out::needs, node::run};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
};

use super::{serve::Machine, *};
use crate::artefacts::{binary, workspace};

/// What the stack logs of each process that it starts.
const STARTED: &str = " is started: process ";
/// Where a stack listens.
const HERE: &str = "127.0.0.1";

/// A stack with a game of the modes `duel` and `solo` in one region, whose game servers are started.
struct Scene {
    local: Local,
    folder: TestFolder,
    public: String,
}

impl Scene {
    /// Starts it with the block `servers` of its version, and with `command` for its region.
    async fn start(servers: Value, command: &[&str]) -> Self {
        Self::start_at(HERE, servers, command).await
    }

    /// The same for a stack that also listens at `host`.
    async fn start_at(host: &str, servers: Value, command: &[&str]) -> Self {
        let folder = TestFolder::new();
        let id = "5a0d7a3e-2f0c-4c58-9d0f-6a1c2b3d4e5f";
        let mode = |seats: u32| json!({ "regions": ["fra"], "max_players": seats, "idle_seconds": 0 });
        let modes = json!({ "duel": mode(2), "solo": mode(1) });
        let game = json!({
            "muster_game": 1, "name_id": "mine", "display_name": "Mine",
            "regions": { "fra": { "display_name": "F", "provider_display_name": "Own", "latitude": 50.1, "longitude": 8.7 } },
            "versions": [{ "version_id": id, "display_name": "1", "config": { "game_modes": modes, "servers": servers } }],
            "namespaces": [{
                "name_id": "prod", "display_name": "Prod", "version_id": id, "lobby_count_max": 100,
                "max_players_per_client": 1001, "cdn_auth_type": "none", "enable_domain_public_auth": false,
                "domains": [],
            }],
        });
        fs::write(folder.path("game.json"), game.to_string()).unwrap();
        let scene = Self::on(folder, host).await;
        scene.set_command(command).await;
        scene
    }

    async fn on(folder: TestFolder, host: &str) -> Self {
        let (config, data) = (folder.path("game.json"), folder.path("data"));
        let environment = env::var("PATH").map(|path| ("PATH".to_owned(), path)).into_iter().collect();
        let local =
            Local::start_with(&["--config", &config, "--data", &data, "--host", host], environment).await;
        let public = local.demo().await["tokens"]["public"].as_str().unwrap().to_owned();
        Self { local, folder, public }
    }

    async fn set_command(&self, command: &[&str]) {
        let start = ["region", "start", "mine", "fra", &self.local.option, "--process"];
        let Ended { status, stderr, .. } =
            Program::run("muster", &[&start[..], command].concat(), &BTreeMap::new()).await;
        assert!(status.success(), "{stderr}");
    }

    /// The example's game server, as a process of the stack's own program.
    async fn of_example(servers: Value) -> Self {
        Self::start(servers, &[binary(BINARY).to_str().unwrap(), "example-server"]).await
    }

    async fn find(&self, mode: &str) -> Answer {
        self.local.find(&self.public, json!({ "game_modes": [mode], "player_data": "Ada" })).await
    }

    /// A seat, by the same request again as long as the lobby's game server is started.
    async fn seat(&self, mode: &str, key: &str) -> Value {
        let request = || {
            Request::post(format!("{}/matchmaker/lobbies/find", self.local.base_url))
                .header("authorization", format!("Bearer {}", self.public))
                .header("idempotency-key", key)
        };
        let body = json!({ "game_modes": [mode], "player_data": "Ada" }).to_string();
        timeout(PATIENCE * 2, async {
            loop {
                let found = send(request(), &body).await;
                if found.status == 200 {
                    return found.body;
                }
                assert_eq!(found.refusal(), (503, "MATCHMAKER_LOBBY_START_TIMEOUT"), "{:?}", found.body);
            }
        })
        .await
        .expect("a seat in time")
    }

    fn started(&self) -> usize {
        self.local.program.logged_lines(STARTED)
    }

    /// The processes that were started so far and run.
    fn processes(&self) -> Vec<String> {
        let text = self.local.program.log();
        let ids = text.lines().filter_map(|line| line.split_once(STARTED)?.1.split_once(','));
        ids.map(|(id, _)| id.to_owned()).filter(|id| is_alive(id)).collect()
    }

    async fn expect_no_process(&self) {
        until("all processes end", || self.processes().is_empty()).await;
    }

    /// Waits until the operator sees so many game servers: the record of one whose process has ended goes a
    /// little later.
    async fn expect_servers(&self, count: usize) {
        let wait = async {
            loop {
                let list = self.local.ask(&["server", "list", "mine/prod", "--json"]).await;
                let list: Value = serde_json::from_str(&list).unwrap();
                if list["servers"].as_array().unwrap().len() == count {
                    return;
                }
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE * 4, wait).await.unwrap_or_else(|_| panic!("in time: {count} servers"));
    }
}

fn is_alive(process: &str) -> bool {
    // The process that adopts the orphans of a killed stack may not reap them.
    let is_dead = fs::read_to_string(format!("/proc/{process}/stat")).is_ok_and(|stat| stat.contains(") Z "));
    !is_dead && std::process::Command::new("kill").args(["-0", process]).output().unwrap().status.success()
}

fn kill(process: &str) {
    assert!(std::process::Command::new("kill").args(["-9", process]).status().unwrap().success());
}

/// Waits until something is so, much longer than it takes.
async fn until(what: &str, is_so: impl Fn() -> bool) {
    let wait = async {
        while !is_so() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE * 4, wait).await.unwrap_or_else(|_| panic!("in time: {what}"));
}

/// A player in a lobby, and what its game server said first.
async fn enter(seat: &Value) -> (BufReader<TcpStream>, String) {
    let port = seat["ports"]["default"]["port"].as_u64().unwrap_or_else(|| panic!("one port: {seat}"));
    let host = seat["ports"]["default"]["hostname"].as_str().unwrap();
    let mut stream = TcpStream::connect((host, u16::try_from(port).unwrap())).await.unwrap();
    let first = format!("{} {}\n", lobby(seat), seat["player"]["token"].as_str().unwrap());
    stream.write_all(first.as_bytes()).await.unwrap();
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    timeout(PATIENCE, stream.read_line(&mut line)).await.expect("a line in time").unwrap();
    (stream, line)
}

fn lobby(seat: &Value) -> &str {
    seat["lobby"]["lobby_id"].as_str().unwrap()
}

#[tokio::test]
async fn finds_at_one_moment_start_no_process_in_vain_and_all_end() {
    let servers = json!({ "build": 1, "capacity": 2, "start_seconds": 120, "idle_seconds": 1 });
    let scene = Scene::of_example(servers).await;
    let began = Instant::now();
    let keys: Vec<String> = (0..40).map(|number| format!("find-{number}")).collect();
    let seats = join_all(keys.iter().map(|key| scene.seat("duel", key))).await;
    let mut seated = BTreeMap::<u64, BTreeMap<&str, usize>>::new();
    for seat in &seats {
        let port = seat["ports"]["default"]["port"].as_u64().unwrap();
        *seated.entry(port).or_default().entry(lobby(seat)).or_default() += 1;
    }
    println!("40 finds: seated after {:?} by {} processes", began.elapsed(), seated.len());
    // How few processes do is counted in virtual time (`capacity --on-demand`): here it depends on the
    // machine.
    let started = scene.started();
    assert_eq!(seated.len(), started, "each process that was started is needed: {seated:?}");
    assert_eq!(scene.processes().len(), started);
    for lobbies in seated.values() {
        assert!(lobbies.len() <= 2 && lobbies.values().all(|players| *players <= 2), "{seated:?}");
    }

    let entered = join_all(seats.iter().map(enter)).await;
    for (_, line) in &entered {
        assert!(line.starts_with("welcome "), "{line}");
    }
    drop(entered);
    scene.expect_no_process().await;
    assert_eq!(scene.started(), started);
    scene.expect_servers(0).await;
    println!("nothing runs after {:?}", began.elapsed());
}

#[tokio::test]
async fn one_machine_for_players_starts_its_game_servers_and_ends_them_with_itself() {
    let folder = TestFolder::new();
    let modes = json!({ "duel": { "regions": ["fra"], "max_players": 2 } });
    let version = json!({ "game_modes": modes, "servers": { "build": 1 } });
    fs::write(folder.path("game.json"), version.to_string()).unwrap();
    let (data, config) = (folder.path("data"), folder.path("game.json"));
    let options = ["--config", &config, "--public-url", "http://127.0.0.2:9"];
    let machine = Machine::start(&data, &options).await;
    let program = binary(BINARY);
    let command = [
        "region",
        "start",
        "my-game",
        "fra",
        "--data",
        &data,
        "--process",
        program.to_str().unwrap(),
        "example-server",
    ];
    let Ended { status, stderr, .. } = Program::run("muster", &command, &BTreeMap::new()).await;
    assert!(status.success(), "{stderr}");
    let public = machine.token("public").await;

    let (first, seat) = found_on(&machine, &public, "a").await;
    assert_eq!(seat["ports"]["default"]["hostname"], "127.0.0.2");
    assert!(is_alive(&first));
    machine.stop().await;
    assert!(!is_alive(&first));

    let mut machine = Machine::start(&data, &options).await;
    let (second, later) = found_on(&machine, &public, "b").await;
    assert_ne!(lobby(&later), lobby(&seat), "its match ended with its process");
    machine.program.signal("KILL");
    let _killed = machine.program.end().await;
    until("the process of a killed machine ends", || !is_alive(&second)).await;
}

/// A seat in a process of `machine`, and the process.
async fn found_on(machine: &Machine, public: &str, key: &str) -> (String, Value) {
    let seat = machine.find_from(public, "203.0.113.9", key).await.expect_ok().body;
    let port = seat["ports"]["default"]["port"].as_u64().unwrap();
    let (log, end) = (machine.program.log(), format!(", port {port}"));
    let process = log.lines().find_map(|line| line.split_once(STARTED)?.1.strip_suffix(end.as_str()));
    (process.unwrap_or_else(|| panic!("{log}")).to_owned(), seat)
}

#[tokio::test]
async fn players_who_reach_a_stack_from_elsewhere_reach_its_game_servers() {
    for host in [HERE, "127.0.0.2"] {
        let program = binary(BINARY);
        let command = [program.to_str().unwrap(), "example-server"];
        let scene = Scene::start_at(host, json!({ "build": 1, "start_seconds": 120 }), &command).await;
        let seat = scene.seat("solo", "one").await;
        assert_eq!(seat["ports"]["default"]["hostname"], host, "{seat}");
        let (_player, line) = enter(&seat).await;
        assert_eq!(line, "welcome 1 of 1\n");
    }
}

#[tokio::test]
async fn a_killed_process_ends_its_lobbies_and_the_next_find_gets_another() {
    let scene = Scene::of_example(json!({ "build": 1, "start_seconds": 120 })).await;
    let seat = scene.seat("solo", "one").await;
    let (mut player, line) = enter(&seat).await;
    assert_eq!(line, "welcome 1 of 1\n");
    kill(&scene.processes()[0]);
    let mut rest = String::new();
    let _closed = timeout(PATIENCE, player.read_line(&mut rest)).await.expect("it hangs up");
    let url = format!("{}/matchmaker/lobbies/join", scene.local.base_url);
    let request = json!({ "lobby_id": lobby(&seat) }).to_string();
    let joined = timeout(PATIENCE, async {
        loop {
            let joined = post(&url, &scene.public, &request).await;
            if joined.refusal().1 != "MATCHMAKER_LOBBY_FULL" {
                return joined;
            }
            sleep(Duration::from_millis(20)).await;
        }
    });
    assert_eq!(joined.await.expect("in time").refusal(), (400, "MATCHMAKER_LOBBY_STOPPED"));
    let next = scene.seat("solo", "two").await;
    assert_ne!(lobby(&next), lobby(&seat));
    assert_eq!((scene.started(), scene.processes().len()), (2, 1));
    // The record of the killed one is gone.
    scene.expect_servers(1).await;
}

#[tokio::test]
async fn what_cannot_start_is_refused_with_its_reason_and_not_tried_for_ever() {
    for (command, reason) in [
        (&["/bin/sh", "-c", "exit 7"][..], "its process ended: exit status: 7"),
        (&["/no/such-program"], "there is no program `/no/such-program`"),
    ] {
        let scene = Scene::start(json!({ "build": 1, "start_seconds": 120 }), command).await;
        for _ in 0..3 {
            let refused = scene.find("duel").await;
            assert_eq!(refused.refusal(), (503, "MATCHMAKER_SERVER_START_FAILED"), "{:?}", refused.body);
            assert_eq!(refused.body["metadata"]["reason"], reason);
        }
        let started = scene.started();
        let blocked = scene.find("duel").await;
        assert_eq!(blocked.refusal(), (503, "MATCHMAKER_SERVER_START_FAILED"));
        assert_eq!((blocked.body["metadata"]["reason"].as_str(), scene.started()), (Some(reason), started));
        let after: u64 = blocked.headers["retry-after"].to_str().unwrap().parse().unwrap();
        assert!((30..=60).contains(&after), "{after} s");
    }
}

#[tokio::test]
async fn the_end_of_the_stack_ends_its_processes_and_the_next_one_says_so() {
    let mut scene = Scene::of_example(json!({ "build": 1, "start_seconds": 120 })).await;
    let mut seat = scene.seat("solo", "first").await;
    for end in ["INT", "KILL", "TERM"] {
        let (_player, line) = enter(&seat).await;
        assert!(line.starts_with("welcome"), "{line}");
        let processes = scene.processes();
        assert_eq!(processes.len(), 1, "{end}");
        let Scene { mut local, folder, .. } = scene;
        local.program.signal(end);
        let _ended = local.program.end().await;
        until("its processes end", || !processes.iter().any(|id| is_alive(id))).await;
        // The lobby, whose process is gone, is over.
        scene = Scene::on(folder, HERE).await;
        let next = scene.seat("solo", &format!("after-{end}")).await;
        assert_ne!(lobby(&next), lobby(&seat));
        scene.expect_servers(1).await;
        seat = next;
    }
}

#[tokio::test]
async fn the_first_find_of_the_demo_is_answered_by_a_real_process() {
    let local = Local::start(&[]).await;
    let token = local.demo().await["tokens"]["public"].as_str().unwrap().to_owned();
    let began = Instant::now();
    let seat = local.find(&token, json!({ "game_modes": ["duel"] })).await.expect_ok().body;
    println!("the first find of the demo: {:?}", began.elapsed());
    let (mut player, line) = enter(&seat).await;
    assert_eq!(line, "welcome 1 of 2\n");
    let other = local.find(&token, json!({ "game_modes": ["duel"] })).await.expect_ok().body;
    assert_eq!(lobby(&other), lobby(&seat));
    let (_other, line) = enter(&other).await;
    assert_eq!(line, "welcome 2 of 2\n");
    let mut start = String::new();
    timeout(PATIENCE, player.read_line(&mut start)).await.expect("in time").unwrap();
    assert_eq!(start, "start\n");
    assert_eq!(local.program.logged_lines(STARTED), 1);
    let _graceful = local.interrupt().await;
}

#[tokio::test]
async fn twenty_lines_of_python_are_a_game_server_on_demand() {
    let python = run(Path::new("."), "python3", &["--version"]).await;
    if !needs("a game server on demand in Python", python.is_none().then_some("python3")) {
        return;
    }
    let page = fs::read_to_string(workspace().join("infra/docs/agent.md")).unwrap();
    let program = page.split("```python\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let servers = json!({ "build": 1, "start_seconds": 120, "idle_seconds": 1 });
    let scene = Scene::start(servers, &["python3"]).await;
    let file = scene.folder.path("server.py");
    fs::write(&file, program).unwrap();
    let muster = binary("muster").to_str().unwrap();
    scene.set_command(&[muster, "agent", "run", "--port", "default/tcp", "--", "python3", &file]).await;

    let seat = scene.seat("solo", "one").await;
    let (player, line) = enter(&seat).await;
    assert!(line.starts_with("Ada rolled "), "{line}");
    assert_eq!(scene.processes().len(), 1);
    drop(player);
    scene.expect_no_process().await;
    scene.expect_servers(0).await;
    let text = scene.local.program.log();
    assert!(text.contains("has been without lobbies, and ends") || text.contains("draining"), "{text}");
}
