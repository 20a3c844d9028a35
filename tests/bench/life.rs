//! `cargo bench --bench life`: a week of matches, as game servers live: a process for each match, which
//! registers without a name and leaves, drains or is killed; a fleet that is rolled, crashes and starts
//! again; registrations whose answers are lost; requests that come again, minutes late. Players connect a
//! moment after their find, a few never do.
//!
//! Written to `tests/bench/life.md`: what requests cost at the end of each day, in a quiet hour, and whether
//! anybody was sent to a process that is gone. Counted, not timed, over virtual time; a day that is dearer
//! than the first fails (I14). `-- --days N` lives through fewer days.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a benchmark panics on failure and prints its figures"
)]

use std::{
    collections::{BTreeMap, HashMap},
    fmt::Write as _,
    sync::Arc,
    time::Duration,
};

use fastrand::Rng;
use harness::{TestGame, TestStack, instance::event, live_lobbies};
use muster_local::{functions::Functions, gateway::Handler, stack::TEMPLATE, template::Template};
use serde_json::{Value, json};
use shared::{
    base::{ambient::Timestamp, usage::Usage},
    outside::endpoints::Outside,
    store::meter::Meter,
};

const REPORT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/life.md");
const DAYS: u64 = 7;
const MATCHES_A_DAY: u64 = 3_000;
/// Players of a match.
const PLAYERS: u64 = 2;
/// Servers of the fleet, and the lobbies that each runs.
const FLEET: usize = 4;
const FLEET_CAPACITY: u64 = 50;
const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
/// How long a match takes, and a player stays with the fleet.
const MATCH: u64 = 10 * MINUTE;
const STAY: u64 = 5 * MINUTE;
/// Times between heartbeats and between finds of the fleet, sparse so that a week passes in minutes.
const LEASE_SECS: u64 = 300;
const HEARTBEAT_INTERVAL: u64 = 120 * SECOND;
const FLEET_FINDS: u64 = 30 * SECOND;
/// Looks for places after a quiet hour, each of which reads some killed servers.
const LOOKS: usize = 15;
/// How long a player may take from its find to its visit.
const COMES: u64 = 5 * SECOND;
/// Processes that no find can know to be gone.
const KILLED_JUST_NOW: &str = "a process that was killed within its lease";
const LEFT_JUST_NOW: &str = "a process that left since the find";
/// How much more a request of a later day may cost.
const DEARER: f64 = 1.05;

/// How a process of a match ends, of a hundred.
const DRAINS: u64 = 5;
const KILLED: u64 = 5;
/// Answers that are lost, and requests that come again, of a hundred.
const LOST: u64 = 1;
const LATE: u64 = 2;
/// Players that never come, of a hundred.
const ABSENT: u64 = 5;

#[derive(Clone, Debug)]
enum Happens {
    Match,
    Find(&'static str),
    Register(usize),
    Heartbeat(usize),
    Connect { process: usize, lobby_id: String, player: Value },
    Leave { process: usize, lobby_id: String, player: Value },
    Over(usize),
    Roll(usize),
    Crash(usize),
    Late { function: &'static str, body: Value },
}

/// A process that runs lobbies.
struct Process {
    /// What it registers with.
    body: Value,
    /// When it ended, if it did, and whether it was killed.
    ended: Option<(u64, bool)>,
    /// When the service heard of it last, by a copy that came late, too.
    heard_at: u64,
    /// The tokens of its lobbies.
    lobbies: HashMap<String, String>,
}

#[derive(Default)]
struct Tally {
    seats: u64,
    refused: BTreeMap<String, u64>,
    /// Seats whose player found no server.
    to_nobody: BTreeMap<&'static str, u64>,
    ends: BTreeMap<&'static str, u64>,
}

struct Life {
    stack: TestStack,
    game: TestGame,
    functions: Functions,
    instances: HashMap<&'static str, Handler>,
    meter: Meter,
    chance: Rng,
    began_at: Timestamp,
    /// What happens, by its time and the order in which it was planned.
    plan: BTreeMap<(u64, u64), Happens>,
    planned: u64,
    processes: Vec<Process>,
    fleet: Vec<usize>,
    is_quiet: bool,
    tally: Tally,
}

impl Life {
    async fn begin() -> Self {
        let stack = TestStack::start_repeatable().await;
        let modes = json!({
            "duel": { "regions": ["fra"], "max_players": PLAYERS, "reservation_seconds": 30 },
            "arena": { "regions": ["fra"], "max_players": 10, "reservation_seconds": 30 },
            "probe": { "regions": ["fra"], "max_players": 2 },
        });
        let game = stack.make_game("life", modes, 32_767, 0).await;
        let meter = Meter::on();
        let store = stack.store().metered(meter.clone());
        let declared = Template::parse(TEMPLATE).expect("the template").functions;
        let keys = Arc::clone(stack.stack.keys());
        let functions = Functions::new(store, declared, keys, stack.ambient(), Outside::default());
        let began_at = stack.clock.now();
        Self {
            stack,
            game,
            functions,
            instances: HashMap::new(),
            meter,
            chance: Rng::with_seed(1),
            began_at,
            plan: BTreeMap::new(),
            planned: 0,
            processes: Vec::new(),
            fleet: Vec::new(),
            is_quiet: false,
            tally: Tally::default(),
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.stack.clock.now().since(self.began_at).as_millis()).unwrap_or(u64::MAX)
    }

    fn is(&mut self, of_a_hundred: u64) -> bool {
        self.chance.u64(0..100) < of_a_hundred
    }

    fn after(&mut self, span: u64, happens: Happens) {
        self.planned += 1;
        self.plan.insert((self.now() + span, self.planned), happens);
    }

    async fn call(&mut self, function: &'static str, token: &str, body: &Value) -> (u16, Value) {
        let functions = &self.functions;
        let handler = self.instances.entry(function).or_insert_with(|| {
            functions.instance(&format!("functions/{function}")).expect("a function of the template")
        });
        let response = handler(event(&[("authorization", &format!("Bearer {token}"))], body, &[])).await;
        let body = serde_json::from_slice(response.body()).expect("a JSON body");
        (response.status().as_u16(), body)
    }

    /// What a game server says, which now and then comes again, minutes late.
    async fn say(&mut self, function: &'static str, body: &Value) -> (u16, Value) {
        if self.is(LATE) {
            let late = self.chance.u64(MINUTE..5 * MINUTE);
            self.after(late, Happens::Late { function, body: body.clone() });
        }
        self.be_heard(function, body).await
    }

    async fn be_heard(&mut self, function: &'static str, body: &Value) -> (u16, Value) {
        let token = self.game.server.clone();
        let answer = self.call(function, &token, body).await;
        let start = body["start_id"].as_str().and_then(|start| start.strip_prefix("start-")?.parse().ok());
        if let Some(number) = start.filter(|_: &usize| answer.0 == 200) {
            self.processes[number].heard_at = self.now();
        }
        answer
    }

    /// Starts a process, under `server_id` if it keeps one.
    fn start(&mut self, server_id: Option<String>, mode: &str, capacity: u64) -> usize {
        let number = self.processes.len();
        let body = json!({
            "server_id": server_id, "start_id": format!("start-{number}"), "region_id": "fra",
            "game_modes": [mode], "capacity": capacity, "lease_seconds": LEASE_SECS,
            "ports": { "default": { "hostname": format!("p{number}.example"), "port": 1, "protocol": "udp" } },
        });
        self.processes.push(Process { body, ended: None, heard_at: 0, lobbies: HashMap::new() });
        self.after(0, Happens::Register(number));
        number
    }

    async fn happen(&mut self, happens: Happens) {
        match happens {
            Happens::Match if self.is_quiet => self.after(DAY / MATCHES_A_DAY, Happens::Match),
            Happens::Match => {
                self.start(None, "duel", 1);
                for player in 1..=PLAYERS {
                    self.after(2 * SECOND * player, Happens::Find("duel"));
                }
                self.after(DAY / MATCHES_A_DAY, Happens::Match);
            }
            Happens::Find(mode) => self.find(mode).await,
            Happens::Register(number) => self.register(number).await,
            Happens::Heartbeat(number) => {
                if self.processes[number].ended.is_none() && self.heartbeat(number).await {
                    self.after(HEARTBEAT_INTERVAL, Happens::Heartbeat(number));
                }
            }
            Happens::Connect { process, lobby_id, player } => self.connect(process, lobby_id, player).await,
            Happens::Leave { process, lobby_id, player } => {
                if let Some(token) = self.processes[process].lobbies.get(&lobby_id).cloned()
                    && self.processes[process].ended.is_none()
                {
                    let _stopped_perhaps = self.call("disconnect-player", &token, &player).await;
                }
            }
            Happens::Over(number) => self.over(number).await,
            Happens::Roll(slot) => {
                let old = self.fleet[slot];
                self.deregister(old, false).await;
                let name = format!("fleet-{slot}-{}", self.processes.len());
                self.fleet[slot] = self.start(Some(name), "arena", FLEET_CAPACITY);
                self.after(6 * HOUR, Happens::Roll(slot));
            }
            Happens::Crash(slot) => {
                let old = self.fleet[slot];
                self.end(old, true);
                let name = self.processes[old].body["server_id"].as_str().map(str::to_owned);
                self.fleet[slot] = self.start(name, "arena", FLEET_CAPACITY);
                *self.tally.ends.entry("killed, and started again").or_default() += 1;
                self.after(3 * HOUR, Happens::Crash((slot + 1) % FLEET));
            }
            Happens::Late { function, body } => {
                let _nobody_listens = self.be_heard(function, &body).await;
            }
        }
    }

    async fn find(&mut self, mode: &'static str) {
        if mode == "arena" {
            self.after(FLEET_FINDS, Happens::Find(mode));
            if self.is_quiet {
                return;
            }
        }
        let token = self.game.public.clone();
        let (status, seat) = self.call("find-lobby", &token, &json!({ "game_modes": [mode] })).await;
        if status != 200 {
            let code = seat["code"].as_str().unwrap_or_default().to_owned();
            *self.tally.refused.entry(code).or_default() += 1;
            return;
        }
        self.tally.seats += 1;
        let host = seat["ports"]["default"]["hostname"].as_str().expect("a host");
        let process = host.trim_matches(|c: char| !c.is_ascii_digit()).parse().expect("a process");
        if self.is(ABSENT) {
            return;
        }
        let lobby_id = seat["lobby"]["lobby_id"].as_str().expect("a lobby").to_owned();
        let player = json!({ "player_token": seat["player"]["token"] });
        let comes = self.chance.u64(SECOND..COMES);
        self.after(comes, Happens::Connect { process, lobby_id, player });
    }

    async fn register(&mut self, number: usize) {
        let body = self.processes[number].body.clone();
        if self.is(LOST) {
            let _lost = self.say("register-server", &body).await;
        }
        let (status, answer) = self.say("register-server", &body).await;
        if status == 503 {
            return self.after(SECOND, Happens::Register(number));
        }
        assert_eq!(status, 200, "{answer}");
        self.processes[number].body["server_id"] = answer["server_id"].clone();
        self.after(HEARTBEAT_INTERVAL, Happens::Heartbeat(number));
        if self.processes[number].body["game_modes"][0] == "duel" {
            self.after(MATCH, Happens::Over(number));
        }
    }

    /// One heartbeat; whether the process goes on.
    async fn heartbeat(&mut self, number: usize) -> bool {
        let mut cursor = Value::Null;
        loop {
            let Process { body, .. } = &self.processes[number];
            let said =
                json!({ "server_id": body["server_id"], "start_id": body["start_id"], "cursor": cursor });
            let (status, answer) = self.say("heartbeat-server", &said).await;
            if status != 200 {
                assert_eq!(answer["code"], "MATCHMAKER_SERVER_NOT_FOUND", "{answer}");
                self.end(number, false);
                return false;
            }
            for lobby in answer["lobbies"].as_array().expect("lobbies") {
                let text = |name: &str| lobby[name].as_str().expect("text").to_owned();
                self.processes[number].lobbies.insert(text("lobby_id"), text("lobby_token"));
            }
            cursor = answer["cursor"].clone();
            if cursor.is_null() {
                return true;
            }
        }
    }

    async fn connect(&mut self, process: usize, lobby_id: String, player: Value) {
        if let Some((at, was_killed)) = self.processes[process].ended {
            // A find takes seconds to become a visit.
            let heard_at = self.processes[process].heard_at;
            let known_at = COMES + if was_killed { heard_at + LEASE_SECS * SECOND } else { at };
            let whom = match self.now() <= known_at {
                true if was_killed => KILLED_JUST_NOW,
                true => LEFT_JUST_NOW,
                false => "a process that is gone",
            };
            return *self.tally.to_nobody.entry(whom).or_default() += 1;
        }
        if !self.processes[process].lobbies.contains_key(&lobby_id) {
            self.heartbeat(process).await;
        }
        let Some(token) = self.processes[process].lobbies.get(&lobby_id).cloned() else {
            return *self.tally.to_nobody.entry("a process that does not run the lobby").or_default() += 1;
        };
        let (status, answer) = self.call("connect-player", &token, &player).await;
        if status != 200 {
            let code = answer["code"].as_str().unwrap_or_default();
            return *self.tally.refused.entry(format!("connected: {code}")).or_default() += 1;
        }
        let stays = if self.processes[process].body["game_modes"][0] == "duel" { MATCH } else { STAY };
        self.after(stays, Happens::Leave { process, lobby_id, player });
    }

    /// The match of a process is over, and the process ends.
    async fn over(&mut self, number: usize) {
        if self.is(DRAINS) {
            *self.tally.ends.entry("drained").or_default() += 1;
            self.deregister(number, false).await;
        } else if self.is(KILLED) {
            *self.tally.ends.entry("killed").or_default() += 1;
            self.end(number, true);
        } else {
            *self.tally.ends.entry("left").or_default() += 1;
            self.deregister(number, true).await;
            self.end(number, false);
        }
    }

    fn end(&mut self, number: usize, is_killed: bool) {
        self.processes[number].ended = Some((self.now(), is_killed));
    }

    async fn deregister(&mut self, number: usize, ends_lobbies: bool) {
        let Process { body, .. } = &self.processes[number];
        let said = json!({ "server_id": body["server_id"], "start_id": body["start_id"], "end_lobbies": ends_lobbies });
        let (status, answer) = self.say("deregister-server", &said).await;
        assert_eq!(status, 200, "{answer}");
    }

    /// Lets everything happen that is planned until `end`.
    async fn live_until(&mut self, end: u64) {
        while let Some(entry) = self.plan.first_entry().filter(|entry| entry.key().0 <= end) {
            let ((at, _), happens) = entry.remove_entry();
            self.stack.clock.advance(Duration::from_millis(at.saturating_sub(self.now())));
            self.happen(happens).await;
        }
        self.stack.clock.advance(Duration::from_millis(end.saturating_sub(self.now())));
    }

    /// What one request costs, of instances that know nothing.
    async fn cost_of(&mut self, function: &'static str, token: &str, body: &Value, status: u16) -> Usage {
        self.instances.clear();
        let before = self.meter.usage();
        let (answered, answer) = self.call(function, token, body).await;
        assert_eq!(answered, status, "{function}: {answer}");
        self.meter.usage() - before
    }

    /// What requests cost now.
    async fn costs(&mut self) -> Vec<(&'static str, Usage)> {
        let (public, server) = (self.game.public.clone(), self.game.server.clone());
        let mut costs = Vec::new();
        let probe = json!({ "server_id": "probe", "start_id": format!("probe-{}", self.planned), "region_id": "fra",
            "game_modes": ["probe"], "lease_seconds": LEASE_SECS,
            "ports": { "default": { "hostname": "a.example", "port": 1, "protocol": "udp" } } });
        let find = json!({ "game_modes": ["probe"] });
        // The first look after two quiet hours reads the servers that were killed before.
        for _ in 0..LOOKS {
            let _cleans_up = self.cost_of("find-lobby", &public, &find, 503).await;
            self.stack.clock.advance(Duration::from_secs(2));
        }
        costs.push(("register", self.cost_of("register-server", &server, &probe, 200).await));
        costs.push(("find, creates", self.cost_of("find-lobby", &public, &find, 200).await));
        costs.push(("find, joins", self.cost_of("find-lobby", &public, &find, 200).await));
        let said = json!({ "server_id": "probe" });
        costs.push(("heartbeat", self.cost_of("heartbeat-server", &server, &said, 200).await));
        costs.push(("find, no server", self.cost_of("find-lobby", &public, &find, 503).await));
        let statistics = json!({});
        costs.push(("statistics", self.cost_of("get-player-statistics", &public, &statistics, 200).await));
        let leave = json!({ "server_id": "probe", "end_lobbies": true });
        costs.push(("deregister", self.cost_of("deregister-server", &server, &leave, 200).await));
        costs
    }
}

#[tokio::main]
async fn main() {
    let mut life = Life::begin().await;
    for slot in 0..FLEET {
        let process = life.start(Some(format!("fleet-{slot}")), "arena", FLEET_CAPACITY);
        life.fleet.push(process);
        life.after(6 * HOUR + slot as u64 * HOUR, Happens::Roll(slot));
    }
    life.after(3 * HOUR, Happens::Crash(0));
    life.after(MINUTE, Happens::Match);
    life.after(MINUTE, Happens::Find("arena"));
    let mut report = HEAD.to_owned();
    let mut first: Option<Vec<(&'static str, Usage)>> = None;
    let mut dearer = Vec::new();
    let mut words = std::env::args().skip_while(|word| word != "--days").skip(1);
    let days = words.next().map_or(DAYS, |days| days.parse().expect("a number of days"));
    for day in 1..=days {
        life.live_until(day * DAY - 2 * HOUR).await;
        life.is_quiet = true;
        life.live_until(day * DAY).await;
        let costs = life.costs().await;
        life.is_quiet = false;
        let servers = harness::all_servers(life.stack.store(), life.game.namespace_id()).await;
        let indexed = servers
            .iter()
            .filter(|server| server.placement_pool.is_some() && !server.was_let_go_in_silence())
            .count();
        let live = live_lobbies(life.stack.store(), life.game.namespace_id()).await;
        let _written =
            writeln!(report, "\nDay {day}: {indexed} servers in the index, {live} lobbies live.\n");
        report.push_str("| request | calls | read units | write units |\n|---|---|---|---|\n");
        for (what, usage) in &costs {
            let Usage { calls, read_units, write_units } = *usage;
            let _written = writeln!(report, "| {what} | {calls} | {read_units} | {write_units} |");
        }
        for ((what, now), (_, then)) in costs.iter().zip(first.get_or_insert_with(|| costs.clone())) {
            let is_dearer = now.read_units > then.read_units * DEARER || now.calls > then.calls + 1;
            if is_dearer {
                dearer.push(format!("day {day}: {what} costs {now:?}, on the first day {then:?}"));
            }
        }
        println!("day {day}: {indexed} servers in the index, {live} lobbies live, {costs:?}");
    }
    let Tally { seats, refused, to_nobody, ends } = &life.tally;
    let _written = writeln!(
        report,
        "\n{} processes ran: {ends:?}. {seats} seats were found, refused: {refused:?}; players sent to nobody: {to_nobody:?}.",
        life.processes.len()
    );
    println!("{report}");
    std::fs::write(REPORT, &report).expect("the report is written");
    assert!(dearer.is_empty(), "I14: {}", dearer.join("\n"));
    let is_known = |whom: &&str| ![KILLED_JUST_NOW, LEFT_JUST_NOW].contains(whom);
    assert!(!to_nobody.keys().any(is_known), "I6: {to_nobody:?}");
}

const HEAD: &str = "\
# A week of matches

Counted by `cargo bench --bench life` over the embedded database: 3,000 processes a day that run one match each, a fleet that is rolled
every six hours and crashes every three, requests that come twice or minutes late. What a request costs whose instance knows
nothing, at the end of each day.
";
