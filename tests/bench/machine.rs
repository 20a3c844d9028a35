//! `cargo bench --bench machine`: finds without pause against one machine, whose writes are on disk before
//! they are answered, against the local stack with a folder and in memory, and, where Node.js is installed,
//! Colyseus' `joinOrCreate` in the memory of one process. All seat players in lobbies of eight.
//!
//! `--profile dev` builds in a minute and leaves the programs unoptimised, which costs finds more than a
//! disk.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark panics on failure and prints its figures"
)]

use std::{
    env, fs,
    path::Path,
    time::{Duration, Instant},
};

use harness::{
    binaries::workspace,
    load::{Post, Reply, Run, connections, share},
    local_process::{LocalProcess, Memory, ServerProcess},
    node,
};
use serde_json::{Value, json};
use shared::base::ambient::Ambient;
use tokio::process::Command;

/// Finds of a run.
const FINDS: usize = 2_000;
/// Finds before a run, not counted: a just-in-time compiler needs some, and a database its first pages.
const LEAD: usize = 400;
/// Syncs of a page that tell the disk's speed.
const SYNCS: u32 = 200;

#[tokio::main]
async fn main() {
    let folder = env::temp_dir().join(format!("muster-machine-{}", Ambient::system().uuid()));
    fs::create_dir(&folder).expect("a folder");
    let peer = workspace().join("tests/clients/load");
    let missing = node::missing_command().await;
    match missing {
        Some(command) => println!("left out: {command} is not installed, so there is no Colyseus"),
        None => node::install(&peer).await,
    }
    println!("one sync of 4 KB takes {:.2} ms on this disk", sync(&folder).as_secs_f64() * 1_000.0);
    println!("| | at once | finds a second | median | 99 % | memory |\n|---|---|---|---|---|---|");
    for at_once in [1, 32] {
        let data = |name: &str| folder.join(format!("{name}-{at_once}"));
        let [served, kept] = ["served", "kept"].map(data);
        let process = LocalProcess::serve(&served).await;
        measure_muster("one machine, each write synced", at_once, &process).await;
        drop(process);
        let process = LocalProcess::start_with(&["--data", kept.to_str().expect("UTF-8")], &[]).await;
        measure_muster("local stack, in a folder", at_once, &process).await;
        drop(process);
        measure_muster("local stack, in memory", at_once, &LocalProcess::start().await).await;
        if missing.is_none() {
            measure_colyseus(at_once, &peer).await;
        }
    }
    fs::remove_dir_all(folder).expect("it is ours");
}

async fn measure_muster(name: &str, at_once: usize, process: &LocalProcess) {
    let modes = json!({ "arena": { "regions": ["fra"], "max_players": 8 } });
    let game = process.make_game("measured", modes, 1_000, 1, 1_000).await;
    let find =
        Post::json("/matchmaker/lobbies/find", Some(&game.public), &json!({ "game_modes": ["arena"] }));
    let run = measure(process.base_url(), at_once, &find, |reply| reply.status == 200).await;
    print(name, at_once, &run, process.memory());
}

async fn measure_colyseus(at_once: usize, folder: &Path) {
    let mut command = Command::new("node");
    command.arg("colyseus.mjs").current_dir(folder).env("NODE_ENV", "production");
    let process = ServerProcess::start(&mut command, "Colyseus listens on ").await;
    let join = Post::json("/matchmake/joinOrCreate/arena", None, &json!({}));
    // Its refusals have the status 200, too.
    let is_seat = |reply: &Reply| reply.json().get("sessionId").is_some_and(Value::is_string);
    let run = measure(&process.base_url, at_once, &join, is_seat).await;
    print("Colyseus, in memory", at_once, &run, process.memory());
}

async fn measure(base_url: &str, at_once: usize, find: &Post, is_seat: fn(&Reply) -> bool) -> Run {
    let mut players = connections(base_url, at_once).await;
    share(&mut players, 0..LEAD, async |player, _| player.post(find).await).await;
    let began = Instant::now();
    let replies: Vec<Reply> = share(&mut players, 0..FINDS, async |player, _| player.post(find).await).await;
    let run = Run::of(&replies, is_seat, began.elapsed());
    assert_eq!(run.refused, 0, "every player has a seat");
    run
}

fn print(name: &str, at_once: usize, run: &Run, memory: Memory) {
    let (rate, median, worst) = (run.rate(), run.millis(50), run.millis(99));
    println!(
        "| {name} | {at_once} | {rate:.0} | {median:.1} ms | {worst:.1} ms | {:.0} MB |",
        memory.resident
    );
}

/// How long the disk of `folder` takes to sync a page.
fn sync(folder: &Path) -> Duration {
    use std::io::Write as _;
    let mut file = fs::File::create(folder.join("page")).expect("a file");
    let began = Instant::now();
    for _ in 0..SYNCS {
        file.write_all(&[1; 4_096]).and_then(|()| file.sync_data()).expect("a page");
    }
    began.elapsed() / SYNCS
}
