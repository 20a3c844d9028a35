//! `cargo bench --bench peer`: finds against Colyseus' `joinOrCreate`, on the same machine and from the same
//! load generator, while the live lobbies grow; `-- --quick` stops at a thousand.
//!
//! The contestants are Muster's local stack, Colyseus in the memory of one process and, where `redis-server`
//! is installed, Colyseus on two processes that share their rooms over Redis. All serve lobbies of eight over
//! HTTP to sixteen connections. Runs of a step alternate between them, and the median of each counts. Before
//! every run the system holds exactly the step's number of live lobbies: grown by full ones, unmeasured, or
//! with the youngest lobbies ended. What is measured is matchmaking: no player connects, and rooms send no
//! patches. All were warmed up before, and each run has a lead that is not counted: Muster elects the first
//! lobbies of a pool that was quiet, for some 200 ms.
//!
//! The raw writes go over the same sort of connections to the database of the local stack, as no find can:
//! without function, gateway or SDK.
//!
//! A full run draws its curve to `tests/clients/load/curve.svg`. Times are printed, not judged.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a benchmark panics on failure and prints its figures"
)]

use std::{
    env, fs, iter,
    path::PathBuf,
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use harness::{
    all_lobbies,
    binaries::workspace,
    live_lobbies,
    load::{Connection, Post, Reply, Run, connections, share},
    local_process::{LocalGame, LocalProcess},
    node,
};
use serde_json::{Value, json};
use shared::models::lobby::Stage;

mod colyseus;
mod curve;

use colyseus::Colyseus;

/// Live lobbies at which all are measured.
const STEPS: [usize; 7] = [0, 1_000, 2_000, 4_000, 6_000, 8_000, 10_000];
const QUICK_STEPS: [usize; 2] = [0, 1_000];
/// Runs of each system at each step.
const RUNS: usize = 5;
/// 250 lobbies each run.
const LOAD: Load = Load { warm_up: 4_000, lead: 600, finds: 2_000 };
/// Finds of one connection at each step.
const FINDS_ALONE: usize = 100;
/// Raw writes at each step.
const WRITES: usize = 4_000;
const CONNECTIONS: usize = 16;
const CAPACITY: usize = 8;
/// How long Muster keeps a seat for its player, the most that a mode may: in a longer step, finds would take
/// over seats of full lobbies.
const RESERVATION: Duration = Duration::from_secs(600);

/// How many finds a system makes.
#[derive(Clone, Copy)]
struct Load {
    /// Before everything: a just-in-time compiler needs some.
    warm_up: usize,
    /// Before each run, not counted.
    lead: usize,
    /// In each run.
    finds: usize,
}

/// What the load generator knows of a matchmaker.
struct Contestant {
    name: &'static str,
    /// Connections are spread over them in turn.
    base_urls: Vec<String>,
    find: Post,
    /// Whether a find got a seat.
    is_seat: fn(&Reply) -> bool,
    load: Load,
}

impl Contestant {
    async fn run(&self, connections: usize, finds: usize) -> Run {
        let urls = self.base_urls.iter().cycle().take(connections);
        let connections = join_all(urls.map(|url| Connection::open(url))).await;
        run(connections, &self.find, finds, self.is_seat).await
    }
}

/// A matchmaker under load.
trait Matchmaker {
    fn contestant(&self) -> &Contestant;

    /// Brings it to exactly `wanted` live lobbies.
    async fn set_live(&self, wanted: usize);

    async fn warm_up(&self) {
        let contestant = self.contestant();
        contestant.run(CONNECTIONS, contestant.load.warm_up).await;
    }

    async fn measure(&self, live: usize) -> Run {
        self.set_live(live).await;
        let contestant = self.contestant();
        contestant.run(CONNECTIONS, contestant.load.lead).await;
        contestant.run(CONNECTIONS, contestant.load.finds).await
    }

    /// One find after another.
    async fn measure_alone(&self, live: usize) -> Run {
        self.set_live(live).await;
        self.contestant().run(1, FINDS_ALONE).await
    }
}

struct Muster {
    contestant: Contestant,
    local: LocalProcess,
    game: LocalGame,
}

impl Muster {
    async fn start() -> Self {
        let local = LocalProcess::start().await;
        let game = local.make_game("peer", modes(), 32_767, 1, 32_767).await;
        let contestant = Contestant {
            name: "Muster",
            base_urls: vec![local.base_url().to_owned()],
            find: find_in(&game),
            is_seat,
            load: LOAD,
        };
        Self { contestant, local, game }
    }

    /// Conditional writes on a lobby of a game of its own.
    async fn raw_writes(&self, step: usize) -> Run {
        let game = self.local.make_game(&format!("raw-{step}"), modes(), 1, 1, 1).await;
        let gateway = connections(self.local.base_url(), CONNECTIONS).await;
        run(gateway, &find_in(&game), CAPACITY, is_seat).await;
        let lobbies = all_lobbies(self.local.store(), &game.namespace_id).await;
        let write = self.local.raw_write(&lobbies[0].lobby_id);
        let database = connections(self.local.store_url(), CONNECTIONS).await;
        run(database, &write, WRITES, |reply| reply.status == 200).await
    }

    async fn live(&self) -> usize {
        live_lobbies(self.local.store(), &self.game.namespace_id).await as usize
    }

    /// Ends all but the oldest `kept` lobbies.
    async fn end_youngest(&self, kept: usize) {
        let mut lobbies = all_lobbies(self.local.store(), &self.game.namespace_id).await;
        lobbies.retain(|lobby| lobby.stage != Stage::Ended);
        lobbies.sort_by_key(|lobby| lobby.created_at);
        let mut hosts = connections(self.local.base_url(), CONNECTIONS).await;
        share(&mut hosts, lobbies.into_iter().skip(kept), async |host, lobby| {
            let body = json!({ "lobby_id": lobby.lobby_id });
            let end = Post::json("/matchmaker/servers/end-lobby", Some(&self.game.server), &body);
            host.post(&end).await.expect_ok()
        })
        .await;
    }
}

fn modes() -> Value {
    let reservation = RESERVATION.as_secs();
    json!({ "arena": { "regions": ["fra"], "max_players": CAPACITY, "reservation_seconds": reservation } })
}

fn find_in(game: &LocalGame) -> Post {
    Post::json("/matchmaker/lobbies/find", Some(&game.public), &json!({ "game_modes": ["arena"] }))
}

fn is_seat(reply: &Reply) -> bool {
    reply.status == 200 && reply.json()["player"]["token"].is_string()
}

impl Matchmaker for Muster {
    fn contestant(&self) -> &Contestant {
        &self.contestant
    }

    /// Grown by finds.
    async fn set_live(&self, wanted: usize) {
        loop {
            let live = self.live().await;
            if live == wanted {
                return;
            }
            if live < wanted {
                self.contestant.run(CONNECTIONS, (wanted - live) * CAPACITY).await;
            } else {
                self.end_youngest(wanted).await;
            }
        }
    }
}

/// Sends one request `count` times over `connections`. The run lasts as long as a connection is busy on
/// average: by the clock, one find of several seconds at its end would count as a pause of all others.
async fn run(
    mut connections: Vec<Connection>,
    post: &Post,
    count: usize,
    is_done: fn(&Reply) -> bool,
) -> Run {
    let replies = share(&mut connections, 0..count, async |connection, _| connection.post(post).await).await;
    let busy: Duration = replies.iter().map(|reply| reply.elapsed).sum();
    Run::of(&replies, is_done, busy.div_f64(connections.len() as f64))
}

/// What was measured of a system at one number of live lobbies.
struct Measured {
    name: &'static str,
    run: Run,
    alone: Run,
}

impl Measured {
    async fn of(matchmaker: &impl Matchmaker, live: usize, runs: Vec<Run>) -> Self {
        let name = matchmaker.contestant().name;
        Self { name, run: median(runs), alone: matchmaker.measure_alone(live).await }
    }

    fn cell(&self) -> String {
        let Self { run, alone, .. } = self;
        let refused = if run.refused > 0 { format!(" ({} refused)", run.refused) } else { String::new() };
        let (rate, median, worst) = (run.rate(), run.millis(50), run.millis(99));
        format!("{rate:.0}{refused}; {median:.2}, {worst:.2}; {:.2}", alone.millis(50))
    }
}

/// The measurements of all systems at one number of live lobbies.
struct Step {
    live: usize,
    muster: Measured,
    peers: Vec<Measured>,
    raw_writes: Run,
}

impl Step {
    async fn measure(live: usize, muster: &Muster, peers: &[Colyseus]) -> Self {
        // Otherwise, reservations of an earlier step would expire in the middle of this one.
        muster.set_live(0).await;
        let began = Instant::now();
        let mut own = Vec::new();
        let mut of_peers = vec![Vec::new(); peers.len()];
        for _ in 0..RUNS {
            for (peer, runs) in peers.iter().zip(&mut of_peers) {
                runs.push(peer.measure(live).await);
            }
            own.push(muster.measure(live).await);
        }
        let mut measured = Vec::new();
        for (peer, runs) in peers.iter().zip(of_peers) {
            measured.push(Measured::of(peer, live, runs).await);
        }
        let own = Measured::of(muster, live, own).await;
        assert!(began.elapsed() < RESERVATION, "seats lapsed meanwhile: the figures are of something else");
        Self { live, muster: own, peers: measured, raw_writes: muster.raw_writes(live).await }
    }

    /// Muster and its peers.
    fn systems(&self) -> impl Iterator<Item = &Measured> {
        iter::once(&self.muster).chain(&self.peers)
    }

    /// Muster's rate over a peer's.
    fn ratio(&self, peer: &Measured) -> f64 {
        self.muster.run.rate() / peer.run.rate()
    }

    fn print(&self) {
        let cells: Vec<_> = self.systems().map(Measured::cell).collect();
        let ratios: Vec<_> = self.peers.iter().map(|peer| format!("{:.2}", self.ratio(peer))).collect();
        let (cells, ratios) = (cells.join(" | "), ratios.join(", "));
        println!("| {} | {cells} | {ratios} | {:.0} |", self.live, self.raw_writes.rate());
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
    let live = last.live;
    println!("\n| measure | measured | bar |\n|---|---|---|");
    for (from_empty, grown) in first.peers.iter().zip(&last.peers) {
        let name = grown.name;
        println!(
            "| Muster's finds/s over those of {name}, from empty | {:.2} | >= 1 |",
            first.ratio(from_empty)
        );
        println!("| The same, {live} live lobbies | {:.2} | {} |", last.ratio(grown), bar(">= 4"));
    }
    let kept = last.muster.run.rate() / first.muster.run.rate();
    println!("| Muster's, {live} live lobbies, over its own from empty | {kept:.2} | {} |", bar(">= 0.9"));
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
    let muster = Muster::start().await;
    let mut peers = vec![Colyseus::in_memory().await];
    match Colyseus::over_redis().await {
        Some(peer) => peers.push(peer),
        None => println!("left out: redis-server is not installed, so Colyseus is measured in memory alone"),
    }
    muster.warm_up().await;
    for peer in &peers {
        peer.warm_up().await;
    }

    println!("Of each: finds a second; median, 99th percentile; median of one connection alone, in ms.\n");
    let names: String = peers.iter().map(|peer| format!(" {} |", peer.contestant().name)).collect();
    println!("| live lobbies | {} |{names} Muster over them | raw writes/s |", muster.contestant.name);
    println!("|---|---|{}---|---|", "---|".repeat(peers.len()));
    let mut steps = Vec::new();
    for live in if is_quick { &QUICK_STEPS[..] } else { &STEPS[..] } {
        let step = Step::measure(*live, &muster, &peers).await;
        step.print();
        steps.push(step);
        // After each step: on a busy machine, one with many lobbies may fail.
        if !is_quick {
            fs::write(folder().join("curve.svg"), curve::svg(&steps)).expect("a drawing");
        }
    }
    print_bars(&steps[0], &steps[steps.len() - 1]);
    println!(
        "\nColyseus loses its rooms with their process, and Redis, here without persistence, the list of them with its own."
    );
    println!(
        "Muster's local stack writes every seat to an in-memory SQLite behind a DynamoDB interface, equally lost with its \
         process; deployed, the same writes go to DynamoDB, which answers when they are durable."
    );
}
