//! `cargo bench --bench stress`: thousands of finds at once against the binary `muster-local`, and whether
//! every seat that was answered, connected or left is exactly what the tables hold afterwards.
//!
//! Every connection comes from an address of its own (127.0.0.0/8, which Linux has without configuration).
//! What is compared are sets; any difference is printed with its entries and fails the run. Times are printed
//! and never judged.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a benchmark panics on failure and prints its figures"
)]

use std::{
    collections::{BTreeMap, BTreeSet},
    net::Ipv4Addr,
    process::ExitCode,
    time::Instant,
};

use futures_util::future::join_all;
use harness::{
    all_lobbies,
    load::{Connection, Reply, Run, share},
    local_process::{LocalGame, LocalProcess},
    reckoning::{Report, Seat, compare_tables, refusal},
    visitor::Visitor,
};
use serde_json::{Value, json};
use shared::models::lobby::{Lobby, Stage};

/// Finds of the first phase, and of the second, while others connect and leave.
const FINDS: usize = 10_000;
const LATER_FINDS: usize = 2_000;
/// Requests of players under way at any moment, each from an address of its own.
const AT_ONCE: usize = 256;
/// Requests of lobby servers under way at any moment.
const HOSTS: usize = 64;
/// The modes with their capacities; players come for them in turn.
const MODES: [(&str, usize); 2] = [("arena", 10), ("duel", 2)];
/// Game servers, and what each has room for: all lobbies of both phases, as if no two players ever shared
/// one.
const SERVERS: usize = 4;
const PLACES: u32 = 16_000;
/// The one refusal that a find may end in while there is capacity (I3): printed, but no difference.
const CONTENTION: &str = "503 MATCHMAKER_CONTENTION";
const CAME_AND_WENT: &str = "players who connected, who left";

/// A player, and the mode that was requested.
#[derive(Clone, Debug)]
struct Player {
    mode: &'static str,
    visitor: Visitor,
}

/// What a player of the first phase does in the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plan {
    Connect,
    ConnectAndLeave,
    LeaveUnconnected,
    Wait,
}

impl Plan {
    /// Of player `number`: of sixteen eight connect, two of whom leave again, and two leave before they ever
    /// connect.
    const fn of(number: usize) -> Self {
        match number % 16 {
            0 | 3 => Self::ConnectAndLeave,
            5 | 10 => Self::LeaveUnconnected,
            1 | 4 | 6 | 9 | 12 | 15 => Self::Connect,
            _ => Self::Wait,
        }
    }

    const fn connects(self) -> bool {
        matches!(self, Self::Connect | Self::ConnectAndLeave)
    }

    const fn leaves(self) -> bool {
        matches!(self, Self::ConnectAndLeave | Self::LeaveUnconnected)
    }
}

struct Stress {
    local: LocalProcess,
    game: LocalGame,
    report: Report,
    /// All players who ever got a seat.
    players: Vec<Player>,
    answered: BTreeSet<Seat>,
    /// Those of them who are connected, and who left.
    connected: BTreeSet<Seat>,
    left: BTreeSet<Seat>,
}

impl Stress {
    async fn start() -> Self {
        let local = LocalProcess::start().await;
        let mode =
            |capacity| json!({ "regions": ["fra"], "max_players": capacity, "reservation_seconds": 600 });
        let modes: Value =
            MODES.iter().map(|(name, capacity)| ((*name).to_owned(), mode(*capacity))).collect();
        let game = local.make_game("stress", modes, 32_767, SERVERS, PLACES).await;
        Self {
            local,
            game,
            report: Report::default(),
            players: Vec::new(),
            answered: BTreeSet::new(),
            connected: BTreeSet::new(),
            left: BTreeSet::new(),
        }
    }

    /// Finds, and reports the results.
    async fn find(&mut self, finds: usize) {
        let sources = (0..AT_ONCE).map(|number| Connection::open_from(self.local.base_url(), source(number)));
        let (answered, run) = finding(&mut join_all(sources).await, &self.game, finds).await;
        self.tell_finds(answered, &run);
    }

    fn tell_finds(&mut self, answered: Vec<(&'static str, Reply)>, run: &Run) {
        let mut refusals = BTreeMap::<String, usize>::new();
        let mut twice = BTreeSet::new();
        for (mode, reply) in answered {
            if reply.status != 200 {
                *refusals.entry(refusal(&reply)).or_default() += 1;
                continue;
            }
            let visitor = Visitor::of(&reply.json());
            if !self.answered.insert(visitor.seat.clone()) {
                twice.insert(visitor.seat.clone());
            }
            self.players.push(Player { mode, visitor });
        }
        self.report.tell("seconds", format!("{:.2}", run.elapsed.as_secs_f64()));
        self.report.tell("finds/s", format!("{:.0}", run.rate()));
        self.report.tell("p50, p99 of a find", format!("{:.1}, {:.1} ms", run.millis(50), run.millis(99)));
        self.report.tell("source addresses", AT_ONCE);
        self.report.tell("finds that lost every race", refusals.remove(CONTENTION).unwrap_or_default());
        let refusals: BTreeSet<_> = refusals.into_iter().collect();
        self.report.compare("finds refused otherwise", &BTreeSet::new(), &refusals);
        self.report.compare("seats answered twice", &BTreeSet::new(), &twice);
    }

    /// Half of the players connect and some leave, while others find.
    async fn come_and_go(&mut self) {
        let lobby_tokens = self.lobby_tokens().await;
        let open = |number| Connection::open_from(self.local.base_url(), source(number));
        let mut finders = join_all((0..AT_ONCE).map(open)).await;
        let mut hosts = join_all((AT_ONCE..AT_ONCE + HOSTS).map(open)).await;
        let planned = self.players.iter().enumerate().map(|(number, player)| (Plan::of(number), player));
        let planned = planned.filter(|(plan, _)| *plan != Plan::Wait);
        let hosting = share(&mut hosts, planned, async |host, (plan, Player { visitor, .. })| {
            let lobby_token = lobby_tokens.get(&visitor.seat.0);
            let lobby_token = lobby_token.unwrap_or_else(|| panic!("no heartbeat listed {}", visitor.seat.0));
            let mut refused = None;
            for (is_due, operation) in [(plan.connects(), "connected"), (plan.leaves(), "disconnected")] {
                if is_due {
                    let reply = host.post(&visitor.post(operation, lobby_token)).await;
                    if reply.status != 200 {
                        refused =
                            refused.or_else(|| Some((operation, refusal(&reply), visitor.seat.clone())));
                    }
                }
            }
            refused
        });
        let (refused, (answered, run)) =
            tokio::join!(hosting, finding(&mut finders, &self.game, LATER_FINDS));

        let plans = (0..self.players.len()).map(Plan::of);
        for (plan, Player { visitor, .. }) in plans.clone().zip(&self.players) {
            if plan.leaves() {
                self.left.insert(visitor.seat.clone());
            } else if plan.connects() {
                self.connected.insert(visitor.seat.clone());
            }
        }
        let came = plans.filter(|plan| plan.connects()).count();
        self.report.tell(CAME_AND_WENT, format!("{came}, {}", self.left.len()));
        self.tell_finds(answered, &run);
        let refused: BTreeSet<_> = refused.into_iter().flatten().collect();
        self.report.tell("connects and disconnects refused", "-");
        self.report.compare("connects and disconnects refused", &BTreeSet::new(), &refused);
    }

    /// The lobby tokens by lobby, as the game servers learn them from their heartbeats.
    async fn lobby_tokens(&self) -> BTreeMap<String, String> {
        let mut service = Connection::open(self.local.base_url()).await;
        let mut tokens = BTreeMap::new();
        for server_id in &self.game.server_ids {
            let listed = self.game.listed_lobbies(&mut service, server_id, |reply| Some(reply.expect_ok()));
            tokens.extend(listed.await);
        }
        tokens
    }

    /// Compares what was answered with the tables.
    async fn compare(&mut self) {
        let lobbies = all_lobbies(self.local.store(), &self.game.namespace_id).await;
        let (ended, live): (Vec<_>, Vec<_>) =
            lobbies.into_iter().partition(|lobby| lobby.stage == Stage::Ended);
        let report = &mut self.report;
        report.tell("live lobbies", live.len());
        report.tell("ended lobbies", ended.len());
        let optimum: usize = MODES
            .iter()
            .map(|(mode, capacity)| {
                self.players.iter().filter(|player| player.mode == *mode).count().div_ceil(*capacity)
            })
            .sum();
        let surplus = match (live.len() + ended.len()).checked_sub(optimum) {
            Some(surplus) if self.left.is_empty() => {
                format!("{surplus} ({:.2} %)", surplus as f64 * 100.0 / optimum as f64)
            }
            _ => "-".to_owned(),
        };
        report.tell("lobbies over the optimum", surplus);

        let gone: BTreeSet<Seat> = self.left.union(&self.connected).cloned().collect();
        let seats = |entries: fn(&Lobby) -> Vec<String>| -> BTreeSet<Seat> {
            let of_lobby = |lobby| entries(lobby).into_iter().map(|seat| (lobby.lobby_id.to_string(), seat));
            live.iter().flat_map(of_lobby).collect()
        };
        let reserved = seats(|lobby| lobby.reserved.keys().map(ToString::to_string).collect());
        let connected = seats(|lobby| lobby.connected.keys().map(ToString::to_string).collect());
        let waiting: BTreeSet<Seat> = self.answered.difference(&gone).cloned().collect();
        report.compare("seats that wait for their player = reserved", &waiting, &reserved);
        report.compare("seats of connected players = connected", &self.connected, &connected);

        let modes: BTreeMap<_, _> =
            live.iter().map(|lobby| (lobby.lobby_id.as_str(), lobby.pool.game_mode.as_str())).collect();
        let found_in: BTreeSet<_> = self
            .players
            .iter()
            .filter_map(|player| {
                let lobby_id = player.visitor.seat.0.as_str();
                Some((lobby_id, *modes.get(lobby_id)?))
            })
            .collect();
        let requested: BTreeSet<_> = self
            .players
            .iter()
            .map(|player| (player.visitor.seat.0.as_str(), player.mode))
            .filter(|(lobby_id, _)| modes.contains_key(lobby_id))
            .collect();
        report.compare("requested modes = modes of the lobbies", &requested, &found_in);

        compare_tables(report, self.local.store(), &self.game.namespace_id, &live).await;
    }
}

/// The address that connection `number` comes from.
fn source(number: usize) -> Ipv4Addr {
    let part = |number: usize| u8::try_from(number).expect("a few hundred connections");
    Ipv4Addr::new(127, 77, part(number / 200), part(1 + number % 200))
}

/// Finds with each mode in turn.
async fn finding(
    finders: &mut [Connection],
    game: &LocalGame,
    finds: usize,
) -> (Vec<(&'static str, Reply)>, Run) {
    let posts = MODES.map(|(mode, _)| (mode, game.entrance("find", &json!({ "game_modes": [mode] }))));
    let began = Instant::now();
    let numbers = 0..finds;
    let answered = share(finders, numbers, async |finder, number| {
        let (mode, post) = &posts[number % posts.len()];
        (*mode, finder.post(post).await)
    });
    let answered = answered.await;
    let elapsed = began.elapsed();
    let run = Run::of(answered.iter().map(|(_, reply)| reply), |reply| reply.status == 200, elapsed);
    (answered, run)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let mut stress = Stress::start().await;
    stress.find(FINDS).await;
    stress.report.tell(CAME_AND_WENT, "-");
    stress.compare().await;
    stress.come_and_go().await;
    stress.compare().await;
    stress.report.print(&format!(
        "| | {FINDS} finds | then {LATER_FINDS} finds while others connect and leave |\n|---|---|---|"
    ))
}
