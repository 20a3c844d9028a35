//! `cargo bench --bench peer`: finds against Colyseus' `joinOrCreate`, on the same machine and from the same
//! load generator, while the live lobbies grow; `-- --quick` stops at a thousand.
//!
//! Both serve lobbies of eight over HTTP to sixteen connections. Runs of a step alternate between the two,
//! and the median of each counts. Before every run the system holds exactly the step's number of live
//! lobbies: grown by finds, unmeasured, or with the youngest lobbies ended. What is measured is matchmaking:
//! no player connects, and rooms send no patches. Both were warmed up before, and each run has a lead that is
//! not counted: Muster elects the first lobbies of a pool that was quiet, for some 200 ms.
//!
//! The raw writes go over the same sort of connections to the database of the local stack, as no find can:
//! without function, gateway or SDK.
//!
//! A full run draws its curve to `tests/clients/load/curve.svg`. Times are told and never judged.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a benchmark panics on failure and prints its figures"
)]

use std::{
    env, fs,
    path::PathBuf,
    time::{Duration, Instant},
};

use harness::{
    all_lobbies,
    binaries::workspace,
    live_lobbies,
    load::{Connection, Post, Reply, Run, connections, share},
    local_process::{LocalGame, LocalProcess, ServerProcess},
    node,
};
use http::Method;
use serde_json::{Value, json};
use shared::models::lobby::Stage;
use tokio::process::Command;

mod curve;

/// Live lobbies at which both are measured.
const STEPS: [usize; 7] = [0, 1_000, 2_000, 4_000, 6_000, 8_000, 10_000];
const QUICK_STEPS: [usize; 2] = [0, 1_000];
/// Runs of each system at each step, and finds of each run: 250 lobbies.
const RUNS: usize = 5;
const FINDS: usize = 2_000;
/// Finds before each run that are not counted.
const LEAD: usize = 600;
/// Raw writes at each step.
const WRITES: usize = 4_000;
/// Finds before everything: a just-in-time compiler needs some.
const WARM_UP: usize = 4_000;
const CONNECTIONS: usize = 16;
const CAPACITY: usize = 8;
/// How long Muster keeps a seat for its player, the most that a mode may: later, finds would take over seats
/// of full lobbies.
const RESERVATION: Duration = Duration::from_secs(600);

/// A matchmaker under load.
trait Matchmaker {
    fn base_url(&self) -> &str;

    fn find(&self) -> &Post;

    /// Whether a find got a seat.
    fn is_seat(reply: &Reply) -> bool;

    /// Lobbies that live now.
    async fn live(&self) -> usize;

    /// Ends all but the oldest `kept` lobbies.
    async fn end_youngest(&self, kept: usize);

    async fn run(&self, finds: usize) -> Run {
        run(self.base_url(), self.find(), finds, Self::is_seat).await
    }

    /// Brings it to exactly `wanted` live lobbies.
    async fn set_live(&self, wanted: usize) {
        loop {
            let live = self.live().await;
            if live == wanted {
                return;
            }
            if live < wanted {
                self.run((wanted - live) * CAPACITY).await;
            } else {
                self.end_youngest(wanted).await;
            }
        }
    }
}

struct Muster {
    local: LocalProcess,
    game: LocalGame,
    find: Post,
}

impl Muster {
    async fn start() -> Self {
        let local = LocalProcess::start().await;
        let game = local.make_game("peer", modes(), 32_767, 1, 32_767).await;
        let find = find_in(&game);
        Self { local, game, find }
    }

    /// Conditional writes on a lobby of a game of its own.
    async fn raw_writes(&self, step: usize) -> Run {
        let game = self.local.make_game(&format!("raw-{step}"), modes(), 1, 1, 1).await;
        run(self.base_url(), &find_in(&game), CAPACITY, Self::is_seat).await;
        let lobbies = all_lobbies(self.local.store(), &game.namespace_id).await;
        let write = self.local.raw_write(&lobbies[0].lobby_id);
        run(self.local.store_endpoint(), &write, WRITES, |reply| reply.status == 200).await
    }
}

fn modes() -> Value {
    let reservation = RESERVATION.as_secs();
    json!({ "arena": { "regions": ["fra"], "max_players": CAPACITY, "reservation_seconds": reservation } })
}

fn find_in(game: &LocalGame) -> Post {
    Post::json("/matchmaker/lobbies/find", Some(&game.public), &json!({ "game_modes": ["arena"] }))
}

impl Matchmaker for Muster {
    fn base_url(&self) -> &str {
        self.local.base_url()
    }

    fn find(&self) -> &Post {
        &self.find
    }

    fn is_seat(reply: &Reply) -> bool {
        reply.status == 200 && reply.json()["player"]["token"].is_string()
    }

    async fn live(&self) -> usize {
        live_lobbies(self.local.store(), &self.game.namespace_id).await as usize
    }

    async fn end_youngest(&self, kept: usize) {
        let mut lobbies = all_lobbies(self.local.store(), &self.game.namespace_id).await;
        lobbies.retain(|lobby| lobby.stage != Stage::Ended);
        lobbies.sort_by_key(|lobby| lobby.created_at);
        let mut hosts = connections(self.base_url(), CONNECTIONS).await;
        share(&mut hosts, lobbies.into_iter().skip(kept), async |host, lobby| {
            let body = json!({ "lobby_id": lobby.lobby_id });
            let end = Post::json("/matchmaker/servers/end-lobby", Some(&self.game.server), &body);
            host.post(&end).await.expect_ok()
        })
        .await;
    }
}

struct Colyseus {
    server: ServerProcess,
    find: Post,
}

impl Colyseus {
    async fn start() -> Self {
        let mut command = Command::new("node");
        command.arg("colyseus.mjs").current_dir(folder()).env("NODE_ENV", "production");
        let server = ServerProcess::start(&mut command, "Colyseus listens on ").await;
        Self { server, find: Post::json("/matchmake/joinOrCreate/arena", None, &json!({})) }
    }

    async fn rooms(&self, method: Method, path: &str) -> usize {
        let rooms = Connection::open(self.base_url()).await.ask(method, path).await.expect_ok();
        rooms["live"].as_u64().and_then(|live| live.try_into().ok()).expect("a count")
    }
}

impl Matchmaker for Colyseus {
    fn base_url(&self) -> &str {
        &self.server.base_url
    }

    fn find(&self) -> &Post {
        &self.find
    }

    /// Its refusals have the status 200, too.
    fn is_seat(reply: &Reply) -> bool {
        reply.status == 200 && reply.json()["sessionId"].is_string()
    }

    async fn live(&self) -> usize {
        self.rooms(Method::GET, "/rooms").await
    }

    async fn end_youngest(&self, kept: usize) {
        let left = self.rooms(Method::DELETE, &format!("/rooms?keep={kept}")).await;
        assert_eq!(left, kept, "the surplus has ended");
    }
}

/// Sends one request `count` times over new connections.
async fn run(base_url: &str, post: &Post, count: usize, is_done: fn(&Reply) -> bool) -> Run {
    let mut connections = connections(base_url, CONNECTIONS).await;
    let began = Instant::now();
    let replies = share(&mut connections, 0..count, async |connection, _| connection.post(post).await).await;
    Run::of(&replies, is_done, began.elapsed())
}

/// What was measured at one number of live lobbies.
struct Step {
    live: usize,
    colyseus: Run,
    muster: Run,
    raw_writes: Run,
}

impl Step {
    async fn measure(live: usize, colyseus: &Colyseus, muster: &Muster) -> Self {
        let (mut peers, mut own) = (Vec::new(), Vec::new());
        for _ in 0..RUNS {
            colyseus.set_live(live).await;
            muster.set_live(live).await;
            colyseus.run(LEAD).await;
            peers.push(colyseus.run(FINDS).await);
            muster.run(LEAD).await;
            own.push(muster.run(FINDS).await);
        }
        let raw_writes = muster.raw_writes(live).await;
        Self { live, colyseus: median(peers), muster: median(own), raw_writes }
    }

    fn ratio(&self) -> f64 {
        self.muster.rate() / self.colyseus.rate()
    }

    fn print(&self) {
        let figures = |run: &Run| {
            let refused = if run.refused > 0 { format!(" ({} refused)", run.refused) } else { String::new() };
            format!("{:.0}{refused} | {:.2}, {:.2} ms", run.rate(), run.millis(50), run.millis(99))
        };
        let (colyseus, muster) = (figures(&self.colyseus), figures(&self.muster));
        let writes = figures(&self.raw_writes);
        println!("| {} | {colyseus} | {muster} | {:.2} | {writes} |", self.live, self.ratio());
    }
}

/// The run of median rate.
fn median(mut runs: Vec<Run>) -> Run {
    runs.sort_by(|one, other| one.rate().total_cmp(&other.rate()));
    runs.swap_remove(runs.len() / 2)
}

fn print_bars(first: &Step, last: &Step) {
    let is_full = Some(last.live) == STEPS.last().copied();
    let bar = |bar: &'static str| if is_full { bar } else { "-" };
    println!("\n| measure | measured | bar |\n|---|---|---|");
    println!("| Muster's finds/s over Colyseus', from empty | {:.2} | >= 1 |", first.ratio());
    println!(
        "| Muster's over Colyseus', {} live lobbies | {:.2} | {} |",
        last.live,
        last.ratio(),
        bar(">= 4")
    );
    let kept = last.muster.rate() / first.muster.rate();
    println!(
        "| Muster's, {} live lobbies, over its own from empty | {kept:.2} | {} |",
        last.live,
        bar(">= 0.9")
    );
}

fn folder() -> PathBuf {
    workspace().join("tests/clients/load")
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    if let Some(command) = node::missing_command().await {
        println!("skipped: {command} is not installed, so there is no peer to compare with");
        return;
    }
    node::install(&folder()).await;
    let is_quick = env::args().any(|argument| argument == "--quick");
    let (colyseus, muster) = (Colyseus::start().await, Muster::start().await);
    colyseus.run(WARM_UP).await;
    muster.run(WARM_UP).await;
    colyseus.end_youngest(0).await;
    muster.end_youngest(0).await;

    println!(
        "| live lobbies | Colyseus finds/s | p50, p99 | Muster finds/s | p50, p99 | Muster over Colyseus | raw writes/s | p50, p99 |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let began = Instant::now();
    let mut steps = Vec::new();
    for live in if is_quick { &QUICK_STEPS[..] } else { &STEPS[..] } {
        let step = Step::measure(*live, &colyseus, &muster).await;
        assert!(began.elapsed() < RESERVATION, "seats lapsed meanwhile: the figures are of something else");
        step.print();
        steps.push(step);
    }
    print_bars(&steps[0], &steps[steps.len() - 1]);
    println!("\nColyseus keeps its rooms in the memory of one process and loses them with it.");
    println!(
        "Muster's local stack writes every seat to an in-memory SQLite behind a DynamoDB interface, equally lost with its \
         process; deployed, the same writes go to DynamoDB, which answers when they are durable."
    );
    if !is_quick {
        fs::write(folder().join("curve.svg"), curve::svg(&steps)).expect("a drawing");
    }
}
