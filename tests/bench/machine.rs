//! `cargo bench --bench machine`: finds without pause against one machine, whose writes are on disk before
//! they are answered, against the local stack with a folder, and against the local stack in memory.
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
    load::{Post, Reply, Run, connections, share},
    local_process::LocalProcess,
};
use serde_json::json;
use shared::base::ambient::Ambient;

/// Finds of a run, into lobbies of ten.
const FINDS: usize = 2_000;
/// Syncs of a page that tell the disk's speed.
const SYNCS: u32 = 200;

#[tokio::main]
async fn main() {
    let folder = env::temp_dir().join(format!("muster-machine-{}", Ambient::system().uuid()));
    fs::create_dir(&folder).expect("a folder");
    println!("one sync of 4 KB takes {:.2} ms on this disk", sync(&folder).as_secs_f64() * 1_000.0);
    println!("| | at once | finds a second | median | 99 % | memory |\n|---|---|---|---|---|---|");
    for at_once in [1, 32] {
        let data = |name: &str| folder.join(format!("{name}-{at_once}"));
        let [served, kept] = ["served", "kept"].map(data);
        let process = LocalProcess::serve(&served).await;
        measure("one machine, each write synced", at_once, &process).await;
        drop(process);
        let process = LocalProcess::start_with(&["--data", kept.to_str().expect("UTF-8")], &[]).await;
        measure("local stack, in a folder", at_once, &process).await;
        drop(process);
        measure("local stack, in memory", at_once, &LocalProcess::start().await).await;
    }
    fs::remove_dir_all(folder).expect("it is ours");
}

async fn measure(name: &str, at_once: usize, process: &LocalProcess) {
    let modes = json!({ "arena": { "regions": ["fra"], "max_players": 10 } });
    let game = process.make_game("measured", modes, 1_000, 1, 1_000).await;
    let find =
        Post::json("/matchmaker/lobbies/find", Some(&game.public), &json!({ "game_modes": ["arena"] }));
    let mut players = connections(process.base_url(), at_once).await;
    let began = Instant::now();
    let replies: Vec<Reply> = share(&mut players, 0..FINDS, async |player, _| player.post(&find).await).await;
    let run = Run::of(&replies, |reply| reply.status == 200, began.elapsed());
    assert_eq!(run.refused, 0, "every player has a seat");
    println!(
        "| {name} | {at_once} | {:.0} | {:.1} ms | {:.1} ms | {:.0} MB |",
        run.rate(),
        run.millis(50),
        run.millis(99),
        process.memory().resident
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
