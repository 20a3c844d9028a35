//! What a served machine has answered is there after it was killed, and after the power failed.
//!
//! `MUSTER_CRASHES` sets how often each: 20 in `.ci/proof crashes`.

use std::{
    env,
    fs::{self, DirEntry},
    os::unix::fs::MetadataExt as _,
    path::Path,
    process::Command,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};

use harness::left_out::needs;
use serve::Machine;
use tokio::{sync::Semaphore, task::JoinSet};

use super::*;

/// Players who find at the same time.
const PLAYERS: u32 = 12;
/// Answered finds before the first crash; each later one has a few more, so that each hits another moment.
const FINDS_MIN: usize = 40;
/// A page of SQLite, which a disk writes whole.
const PAGE: usize = 4_096;

/// How many crashes a test makes.
fn crashes() -> u32 {
    env::var("MUSTER_CRASHES").map_or(3, |count| count.parse().expect("a number"))
}

/// A seat that somebody was told of.
struct Seat {
    lobby_id: String,
    player_token: String,
}

/// Finds without pause until `wanted` seats are answered, then kills the process in the middle of others, and
/// returns every seat that was answered.
async fn find_until_killed(base_url: &str, program: &mut Program, public: &str, wanted: usize) -> Vec<Seat> {
    static ADDRESSES: AtomicU32 = AtomicU32::new(0);
    let (seats, enough) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Semaphore::new(0)));
    let is_over = Arc::new(AtomicBool::new(false));
    let mut players = JoinSet::new();
    for _ in 0..PLAYERS {
        let (seats, enough, is_over) = (Arc::clone(&seats), Arc::clone(&enough), Arc::clone(&is_over));
        let (url, public) = (format!("{base_url}/matchmaker/lobbies/find"), public.to_owned());
        players.spawn(async move {
            let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
            while !is_over.load(Ordering::Relaxed) {
                let [_, a, b, c] = ADDRESSES.fetch_add(1, Ordering::Relaxed).to_be_bytes();
                let request = Request::post(&url)
                    .header("authorization", format!("Bearer {public}"))
                    .header("x-forwarded-for", format!("10.{a}.{b}.{c}"))
                    .body(Full::from(r#"{ "game_modes": ["duel"] }"#))
                    .unwrap();
                // The process is killed under some.
                let Ok(response) = client.request(request).await else { return };
                let status = response.status();
                let Ok(body) = response.into_body().collect().await else { return };
                let body: Value = serde_json::from_slice(&body.to_bytes()).unwrap();
                assert_eq!(status, 200, "{body}");
                let text = |at: &str| body.pointer(at).unwrap().as_str().unwrap().to_owned();
                let seat = Seat { lobby_id: text("/lobby/lobby_id"), player_token: text("/player/token") };
                seats.lock().unwrap().push(seat);
                enough.add_permits(1);
            }
        });
    }
    let _wanted = timeout(PATIENCE, enough.acquire_many(wanted.try_into().unwrap())).await.unwrap().unwrap();
    program.kill().await;
    is_over.store(true, Ordering::Relaxed);
    while let Some(played) = players.join_next().await {
        played.unwrap();
    }
    Arc::into_inner(seats).unwrap().into_inner().unwrap()
}

/// How many of `seats` are lost on `machine`: their players cannot connect.
async fn lost(machine: &Machine, server: &str, seats: &[Seat]) -> usize {
    let beat = json!({ "server_id": "one" });
    let beat = machine.post("/matchmaker/servers/heartbeat", server, beat).await;
    // Where even the game server is lost, all is.
    if beat.status != 200 {
        return seats.len();
    }
    let lobbies = beat.body["lobbies"].as_array().unwrap().clone();
    let mut lost = 0;
    for Seat { lobby_id, player_token } in seats {
        let lobby = lobbies.iter().find(|lobby| lobby["lobby_id"] == lobby_id.as_str());
        let Some(lobby) = lobby else {
            lost += 1;
            continue;
        };
        let connect = json!({ "player_token": player_token });
        let token = lobby["lobby_token"].as_str().unwrap();
        let connected = machine.post("/matchmaker/players/connected", token, connect).await;
        lost += usize::from(connected.status != 200);
        machine.post("/matchmaker/lobbies/closed", token, json!({ "is_closed": true })).await;
        machine
            .post("/matchmaker/players/disconnected", token, json!({ "player_token": player_token }))
            .await;
    }
    lost
}

/// Ends the lobbies of `server`, so that it has places for the next.
async fn clear(machine: &Machine, server: &str) {
    let beat = json!({ "server_id": "one" });
    let beat = machine.post("/matchmaker/servers/heartbeat", server, beat).await.expect_ok().body;
    for lobby in beat["lobbies"].as_array().unwrap() {
        let end = json!({ "server_id": "one", "lobby_id": lobby["lobby_id"] });
        machine.post("/matchmaker/servers/end-lobby", server, end).await.expect_ok();
    }
}

#[tokio::test]
async fn no_answered_seat_is_lost_when_the_process_is_killed() {
    let folder = TestFolder::new();
    let proxy = ["--proxy", "127.0.0.1"];
    let mut machine = Machine::with_game(&folder, &proxy).await;
    let (public, server) = (machine.token("public").await, machine.token("server").await);
    machine.ask(&["mm-config", "my-game/prod", "--lobby-count-max", "100"]).await;
    machine.register(&server, true).await;
    let mut answered = 0;
    for crash in 0..crashes() {
        let wanted = FINDS_MIN + crash as usize;
        let seats = find_until_killed(&machine.base_url, &mut machine.program, &public, wanted).await;
        machine = Machine::start(&machine.data, &proxy).await;
        assert_eq!(lost(&machine, &server, &seats).await, 0, "crash {crash}, {} seats", seats.len());
        answered += seats.len();
        clear(&machine, &server).await;
    }
    println!("killed {} times; {answered} answered seats, none lost", crashes());
    machine.stop().await;
}

/// The disk that `unsynced.c` keeps beside a folder.
struct Disk {
    library: String,
    folder: TestFolder,
}

impl Disk {
    /// Builds it for a test; nothing where there is no compiler, or no preloading as Linux has it.
    fn new(test: &str) -> Option<Self> {
        let has_compiler = cfg!(target_os = "linux") && Command::new("cc").arg("--version").output().is_ok();
        if !needs(test, (!has_compiler).then_some("a C compiler on Linux")) {
            return None;
        }
        let folder = TestFolder::new();
        let (library, source) =
            (folder.path("unsynced.so"), crate::artefacts::workspace().join("tests/it/process/unsynced.c"));
        let built = Command::new("cc")
            .args(["-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", &library])
            .arg(source)
            .args(["-ldl", "-lpthread"])
            .status();
        assert!(built.unwrap().success(), "unsynced.c does not compile");
        Some(Self { library, folder })
    }

    /// Starts `arguments` of `muster-local`, whose data is in `data`, on a disk that is empty.
    fn start(&self, data: &str, arguments: &[&str]) -> Program {
        let _none_before = fs::remove_dir_all(self.path());
        fs::create_dir(self.path()).unwrap();
        // What was there before is on the disk.
        if Path::new(data).exists() {
            for file in files(data) {
                let disk = self.path();
                let bytes = Path::new(&disk).join(format!(".bytes-{}", file.metadata().unwrap().ino()));
                fs::copy(file.path(), &bytes).unwrap();
                fs::hard_link(bytes, Path::new(&disk).join(file.file_name())).unwrap();
            }
        }
        let data = std::path::absolute(data).unwrap().to_str().unwrap().to_owned();
        let environment =
            [("LD_PRELOAD", self.library.clone()), ("DISK_FROM", data), ("DISK_TO", self.path())];
        let environment = environment.map(|(name, value)| (name.to_owned(), value)).into();
        Program::start(BINARY, arguments, &environment)
    }

    fn path(&self) -> String {
        self.folder.path("disk")
    }

    /// Replaces `data` by what is on the disk once the power has failed: all that was synced, and by `seed`
    /// any of the pages that were not.
    fn fail(&self, data: &str, seed: u64) {
        let mut random = seed;
        let mut toss = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            random >> 63 == 1
        };
        for file in files(&self.path()) {
            let name = file.file_name();
            let (mut disk, seen) = (fs::read(file.path()).unwrap(), Path::new(data).join(&name));
            let seen = fs::read(seen).unwrap_or_default();
            // Half of the failures leave nothing that was not synced.
            if seed.is_multiple_of(2) {
                for (number, page) in seen.chunks(PAGE).enumerate() {
                    let at = number * PAGE;
                    if disk.get(at..at + page.len()) != Some(page) && toss() {
                        disk.resize(disk.len().max(at + page.len()), 0);
                        disk[at..at + page.len()].copy_from_slice(page);
                    }
                }
            }
            fs::write(file.path(), disk).unwrap();
        }
        fs::remove_dir_all(data).unwrap();
        fs::create_dir(data).unwrap();
        for file in files(&self.path()) {
            fs::copy(file.path(), Path::new(data).join(file.file_name())).unwrap();
        }
    }
}

/// The files of a folder, but those that begin with a dot.
fn files(folder: &str) -> Vec<DirEntry> {
    let files = fs::read_dir(folder).unwrap().map(Result::unwrap);
    files.filter(|file| !file.file_name().to_string_lossy().starts_with('.')).collect()
}

#[tokio::test]
async fn no_answered_seat_is_lost_when_the_power_fails() {
    let Some(disk) = Disk::new("no-answered-seat-is-lost-when-the-power-fails") else { return };
    let folder = TestFolder::new();
    let data = folder.path("data");
    let arguments =
        ["serve", "--data", &data, "--port", "0", "--status", "127.0.0.1:0", "--proxy", "127.0.0.1"];
    let machine = Machine::with_game(&folder, &[]).await;
    let (public, server) = (machine.token("public").await, machine.token("server").await);
    machine.ask(&["mm-config", "my-game/prod", "--lobby-count-max", "100"]).await;
    machine.register(&server, true).await;
    machine.stop().await;
    let mut answered = 0;
    for crash in 0..crashes() {
        let mut machine = Machine::of(disk.start(&data, &arguments), &data).await;
        let wanted = FINDS_MIN + crash as usize;
        let seats = find_until_killed(&machine.base_url, &mut machine.program, &public, wanted).await;
        disk.fail(&data, crash.into());
        let machine = Machine::start(&data, &[]).await;
        assert_eq!(lost(&machine, &server, &seats).await, 0, "failure {crash}, {} seats", seats.len());
        answered += seats.len();
        clear(&machine, &server).await;
        machine.stop().await;
    }
    println!("the power failed {} times; {answered} answered seats, none lost", crashes());
}

/// The control: the local stack does not sync each write, and the disk of this test notices.
#[tokio::test]
async fn answered_seats_of_the_local_stack_are_lost_when_the_power_fails() {
    let Some(disk) = Disk::new("answered-seats-of-the-local-stack-are-lost-when-the-power-fails") else {
        return;
    };
    let folder = TestFolder::new();
    let data = folder.path("data");
    let machine = Machine::with_game(&folder, &[]).await;
    let (public, server) = (machine.token("public").await, machine.token("server").await);
    machine.ask(&["mm-config", "my-game/prod", "--max-players-per-client", "100000"]).await;
    machine.register(&server, true).await;
    machine.stop().await;

    let mut program = disk.start(&data, &["--port", "0", "--data", &data]);
    let line = program.line_with("Muster listens on ").await.unwrap();
    let base_url = line.rsplit(' ').next().unwrap().to_owned();
    let seats = find_until_killed(&base_url, &mut program, &public, FINDS_MIN).await;
    disk.fail(&data, 1);
    let machine = Machine::start(&data, &[]).await;
    let lost = lost(&machine, &server, &seats).await;
    println!("without a sync of each write, {lost} of {} answered seats were lost", seats.len());
    assert!(lost > 0, "of {}", seats.len());
    machine.stop().await;
}
