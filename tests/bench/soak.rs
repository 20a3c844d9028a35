//! `cargo bench --bench soak`: twenty minutes of everything at once against the binary `muster-local` with
//! its data on disk. Players find, join a friend, create, connect and leave; game servers send heartbeats,
//! set states, close, open and end; the studio switches versions, changes settings and issues tokens. `--
//! --minutes N` takes another while.
//!
//! Printed is a line for each minute. The run fails when an answer came that its request does not expect,
//! when the tables differ from what was answered, or when the process grew: what it allocated, in the last
//! quarter against the second, by their medians.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a benchmark panics on failure and prints its figures"
)]

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet, VecDeque},
    env,
    path::PathBuf,
    process::ExitCode,
    time::{Duration, Instant},
};

use fastrand::Rng;
use futures_util::future::{join, join_all};
use harness::{
    all_lobbies,
    load::{Connection, Post, Reply, Run},
    local_process::{LocalGame, LocalProcess},
    reckoning::{Report, Seat, compare_tables, refusal},
    visitor::Visitor,
};
use http::Method;
use serde_json::{Value, json};
use shared::{
    base::ambient::Ambient,
    models::lobby::{Lobby, Stage},
};
use tokio::time::sleep;

/// How long it takes by default, in minutes.
const MINUTES: u64 = 20;
/// Players whose requests are under way at any moment. Each pauses between two of them, so that hundreds are
/// there at a time.
const PLAYERS: usize = 128;
const PAUSE: Duration = Duration::from_millis(200);
/// Game servers, the places of each, and how often each sends heartbeats.
const SERVERS: usize = 4;
const PLACES: u32 = 500;
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(2);
/// How old a lobby gets before its game server ends it.
const GAME: Duration = Duration::from_secs(30);
/// How often the studio does something.
const STUDIO: Duration = Duration::from_millis(500);
/// How much the process may hold of its own in the last quarter over the second.
const GROWTH_MAX: f64 = 1.05;

/// The games' modes: lobbies to find and join, and lobbies that players create.
fn modes() -> Value {
    let open = json!({ "create": { "enabled": true } });
    json!({
        "arena": { "regions": ["fra", "nyc"], "max_players": 10, "max_players_direct": 12, "reservation_seconds": 10 },
        "duel": { "regions": ["fra"], "max_players": 2, "reservation_seconds": 10 },
        "party": { "regions": ["nyc"], "max_players": 6, "actions": open, "reservation_seconds": 10, "idle_seconds": 5 },
    })
}

/// What players, game servers and the studio know of each other.
#[derive(Default)]
struct Known {
    /// The tokens of listed lobbies, and since when.
    lobbies: BTreeMap<String, (String, Instant)>,
    /// The last lobbies that players found, for friends to join.
    found: VecDeque<String>,
    /// Who is connected and did not leave.
    connected: BTreeSet<Seat>,
    /// Lobbies that their game server ended, or may have.
    ended: BTreeSet<String>,
    /// Since the last line: requests by name, their responses' times, and unexpected results.
    replies: Vec<Reply>,
    refusals: BTreeMap<String, usize>,
    unexpected: BTreeSet<String>,
}

struct Soak {
    local: LocalProcess,
    game: LocalGame,
    known: RefCell<Known>,
    began: Instant,
    length: Duration,
}

impl Soak {
    fn is_over(&self) -> bool {
        self.began.elapsed() >= self.length
    }

    async fn connection(&self) -> Connection {
        Connection::open(self.local.base_url()).await
    }

    /// Takes note of an answer: its JSON when it is a success; nothing when it is a refusal among `expected`.
    fn note(&self, what: &str, reply: Reply, expected: &[&str]) -> Option<Value> {
        let mut known = self.known.borrow_mut();
        let body = (reply.status == 200).then(|| reply.json());
        if body.is_none() {
            let refusal = refusal(&reply);
            let code = refusal.split(' ').nth(1).unwrap_or_default();
            if !expected.contains(&code) {
                known.unexpected.insert(format!("{what}: {refusal}"));
            }
            *known.refusals.entry(format!("{what}: {refusal}")).or_default() += 1;
        }
        known.replies.push(reply);
        body
    }

    /// A player's life: a seat, the game, the end of it, whichever way.
    async fn play(&self, seed: u64) {
        let (mut connection, mut rng) = (self.connection().await, Rng::with_seed(seed));
        while !self.is_over() {
            sleep(PAUSE.mul_f64(rng.f64() * 2.0)).await;
            let (what, path, body) = self.entrance(&mut rng);
            let post = self.game.entrance(path, &body);
            let mut expected = vec![
                "MATCHMAKER_CONTENTION",
                "MATCHMAKER_NO_SERVER_AVAILABLE",
                "MATCHMAKER_TOO_MANY_LOBBIES",
            ];
            if path == "join" {
                expected = vec![
                    "MATCHMAKER_LOBBY_FULL",
                    "MATCHMAKER_LOBBY_STOPPED",
                    "MATCHMAKER_LOBBY_NOT_FOUND",
                    "MATCHMAKER_LOBBY_CLOSED",
                ];
            }
            let reply = connection.post(&post).await;
            let Some(answer) = self.note(what, reply, &expected) else { continue };
            let visitor = Visitor::of(&answer);
            {
                let mut known = self.known.borrow_mut();
                known.found.push_back(visitor.seat.0.clone());
                if known.found.len() > 32 {
                    known.found.pop_front();
                }
            }
            // One in eight never comes.
            if rng.u8(..8) > 0 {
                self.visit(&mut connection, &mut rng, &visitor).await;
            }
        }
    }

    /// How a player comes to a lobby.
    fn entrance(&self, rng: &mut Rng) -> (&'static str, &'static str, Value) {
        let known = self.known.borrow();
        match rng.u8(..16) {
            0..2 if !known.found.is_empty() => {
                ("join", "join", json!({ "lobby_id": known.found[rng.usize(..known.found.len())] }))
            }
            2 => (
                "create",
                "create",
                json!({ "game_mode": "party", "publicity": "public", "lobby_config": { "map": "harbour" } }),
            ),
            3..8 => ("find", "find", json!({ "game_modes": ["duel", "arena"] })),
            _ => ("find", "find", json!({ "game_modes": ["arena"] })),
        }
    }

    /// A player connects, plays and leaves; one in eight stays to the end of the lobby.
    async fn visit(&self, connection: &mut Connection, rng: &mut Rng, visitor: &Visitor) {
        let seat = &visitor.seat;
        // The lobby server knows its token after the next heartbeat.
        let mut lobby_token = None;
        for _ in 0..40 {
            lobby_token = self.known.borrow().lobbies.get(&seat.0).map(|(token, _)| token.clone());
            if lobby_token.is_some() || self.is_over() {
                break;
            }
            sleep(PAUSE / 2).await;
        }
        let Some(lobby_token) = lobby_token else { return };
        // Its lobby may have ended meanwhile, or its reservation passed.
        let late = [
            "MATCHMAKER_LOBBY_NOT_FOUND",
            "MATCHMAKER_LOBBY_STOPPED",
            "MATCHMAKER_PLAYER_REGISTRATION_EXPIRED",
        ];
        let reply = connection.post(&visitor.post("connected", &lobby_token)).await;
        if self.note("connected", reply, &late).is_none() {
            return;
        }
        self.known.borrow_mut().connected.insert(seat.clone());
        for path in ["lobbies/list", "players/statistics", "regions"] {
            if rng.u8(..4) == 0 {
                let reply = connection
                    .send_as(Method::GET, &Post::empty(format!("/matchmaker/{path}"), &self.game.public))
                    .await;
                self.note(path, reply, &[]);
            }
        }
        sleep(PAUSE.mul_f64(rng.f64() * 20.0)).await;
        if rng.u8(..8) > 0 {
            let reply = connection.post(&visitor.post("disconnected", &lobby_token)).await;
            self.note("disconnected", reply, &late);
            self.known.borrow_mut().connected.remove(seat);
        }
    }

    /// A game server's life.
    async fn serve(&self, number: usize) {
        let (mut connection, mut rng) = (self.connection().await, Rng::with_seed(1_000 + number as u64));
        while !self.is_over() {
            self.heartbeat(&mut connection, &self.game.server_ids[number]).await;
            let lobbies: Vec<_> = {
                let known = self.known.borrow();
                known.lobbies.iter().map(|(id, (token, since))| (id.clone(), token.clone(), *since)).collect()
            };
            for (at, (lobby_id, token, since)) in lobbies.into_iter().enumerate() {
                if at % SERVERS == number {
                    self.host(&mut connection, &mut rng, &lobby_id, &token, since).await;
                }
            }
            sleep(HEARTBEAT_INTERVAL).await;
        }
    }

    async fn heartbeat(&self, connection: &mut Connection, server_id: &str) {
        let noted = |reply| self.note("heartbeat", reply, &[]);
        let listed = self.game.listed_lobbies(connection, server_id, noted).await;
        let mut known = self.known.borrow_mut();
        for (id, token) in listed {
            if !known.ended.contains(&id) {
                known.lobbies.entry(id).or_insert_with(|| (token, Instant::now()));
            }
        }
    }

    /// What the server of a lobby does with it now and then, and in the end.
    async fn host(
        &self,
        connection: &mut Connection,
        rng: &mut Rng,
        lobby_id: &str,
        token: &str,
        since: Instant,
    ) {
        // An empty lobby may have ended by itself.
        let gone = ["MATCHMAKER_LOBBY_NOT_FOUND", "MATCHMAKER_LOBBY_STOPPED"];
        if since.elapsed() > GAME {
            {
                let mut known = self.known.borrow_mut();
                known.ended.insert(lobby_id.to_owned());
                known.lobbies.remove(lobby_id);
            }
            let post = Post::json(
                "/matchmaker/servers/end-lobby",
                Some(&self.game.server),
                &json!({ "lobby_id": lobby_id }),
            );
            let reply = connection.post(&post).await;
            self.note("end-lobby", reply, &gone);
            return;
        }
        let (path, body) = match rng.u8(..32) {
            0 => ("state", json!({ "round": rng.u8(..), "map": "harbour" })),
            1 => ("closed", json!({ "is_closed": true })),
            2..4 => ("closed", json!({ "is_closed": false })),
            _ => return,
        };
        let put = Post::json(format!("/matchmaker/lobbies/{path}"), Some(token), &body);
        let reply = connection.send_as(Method::PUT, &put).await;
        self.note(path, reply, &gone);
    }

    /// What the studio does all day.
    async fn administrate(&self) {
        let mut connection = self.connection().await;
        let game = format!("/cloud/games/{}", self.game.game_id);
        let namespace = format!("{game}/namespaces/{}", self.game.namespace_id);
        let cloud = &self.game.cloud;
        let mut number = 0_u64;
        while !self.is_over() {
            sleep(STUDIO).await;
            number += 1;
            let user = format!("tester-{}", number % 7);
            let (what, method, path, body) = match number % 10 {
                0 => ("game", Method::GET, game.clone(), Value::Null),
                1 => ("namespace", Method::GET, namespace.clone(), Value::Null),
                2 => ("history", Method::GET, format!("{namespace}/version-history"), Value::Null),
                3 => (
                    "settings",
                    Method::POST,
                    format!("{namespace}/mm-config"),
                    json!({ "lobby_count_max": 1_500, "max_players": 5_000 }),
                ),
                4 => (
                    "domain",
                    Method::POST,
                    format!("{namespace}/domains"),
                    json!({ "domain": format!("play-{}.example.com", number % 70) }),
                ),
                5 => (
                    "no domain",
                    Method::DELETE,
                    format!("{namespace}/domains/play-{}.example.com", (number - 1) % 70),
                    Value::Null,
                ),
                6 => ("token", Method::POST, format!("{namespace}/tokens/public"), json!({})),
                7 => (
                    "check",
                    Method::POST,
                    format!("{namespace}/mm-config/validate"),
                    json!({ "lobby_count_max": 1, "max_players": 1 }),
                ),
                8 => ("no user", Method::DELETE, format!("{namespace}/auth-user/{user}"), Value::Null),
                _ if number % 60 == 9 => {
                    let version =
                        json!({ "display_name": format!("1.{number}"), "config": { "game_modes": modes() } });
                    let post = Post::json(format!("{game}/versions"), Some(cloud), &version);
                    let reply = connection.post(&post).await;
                    let Some(made) = self.note("version", reply, &[]) else { continue };
                    (
                        "switch",
                        Method::PUT,
                        format!("{namespace}/version"),
                        json!({ "version_id": made["version_id"] }),
                    )
                }
                _ => ("version list", Method::GET, game.clone(), Value::Null),
            };
            let post =
                if body.is_null() { Post::empty(path, cloud) } else { Post::json(path, Some(cloud), &body) };
            let reply = connection.send_as(method, &post).await;
            self.note(what, reply, &[]);
        }
    }

    /// Prints a line a minute; what the process allocated, every two seconds.
    async fn watch(&self) -> Vec<f64> {
        println!(
            "| minute | requests/s | p50, p99 | refused as expected | connected | own memory | resident |\n|---|---|---|---|---|---|---|"
        );
        let (mut memory, mut line) = (Vec::new(), Instant::now());
        while !self.is_over() {
            sleep(Duration::from_secs(2)).await;
            let now = self.local.memory();
            memory.push(now.own);
            if line.elapsed() >= Duration::from_secs(60) || self.is_over() {
                let mut known = self.known.borrow_mut();
                let replies = std::mem::take(&mut known.replies);
                let run = Run::of(&replies, |_| true, line.elapsed());
                let refused: usize = std::mem::take(&mut known.refusals).values().sum();
                println!(
                    "| {:.0} | {:.0} | {:.1}, {:.1} ms | {refused} | {} | {:.1} MB | {:.1} MB |",
                    self.began.elapsed().as_secs_f64() / 60.0,
                    run.rate(),
                    run.millis(50),
                    run.millis(99),
                    known.connected.len(),
                    now.own,
                    now.resident,
                );
                line = Instant::now();
            }
        }
        memory
    }

    /// Compares the answers with the live lobbies.
    fn compare_answers(&self, report: &mut Report, live: &[Lobby]) {
        let known = self.known.borrow();
        report.compare("answers that nobody expected", &BTreeSet::new(), &known.unexpected);
        let is_live: BTreeSet<_> = live.iter().map(|lobby| lobby.lobby_id.to_string()).collect();
        let connected =
            known.connected.iter().filter(|(lobby, _)| is_live.contains(lobby)).cloned().collect();
        let held = live
            .iter()
            .flat_map(|lobby| {
                lobby.connected.keys().map(|seat| (lobby.lobby_id.to_string(), seat.to_string()))
            })
            .collect();
        report.compare("players who are connected = seats that are", &connected, &held);
    }

    /// Compares what was answered with the tables.
    async fn reckon(&self, memory: &[f64]) -> ExitCode {
        let mut report = Report::default();
        let lobbies = all_lobbies(self.local.store(), &self.game.namespace_id).await;
        let (ended, live): (Vec<_>, Vec<_>) =
            lobbies.into_iter().partition(|lobby| lobby.stage == Stage::Ended);
        report.tell("live lobbies", live.len());
        report.tell("ended lobbies", ended.len());
        self.compare_answers(&mut report, &live);
        compare_tables(&mut report, self.local.store(), &self.game.namespace_id, &live).await;
        let quarter = memory.len() / 4;
        let (second, last) = (median(&memory[quarter..2 * quarter]), median(&memory[3 * quarter..]));
        report.tell("own memory, second and last quarter", format!("{second:.1}, {last:.1} MB"));
        let growth = (last > second * GROWTH_MAX).then(|| format!("{:.3}", last / second));
        report.compare("growth of memory above the bar", &BTreeSet::new(), &growth.into_iter().collect());
        report.print("\n| at the end | |\n|---|---|")
    }
}

fn median(figures: &[f64]) -> f64 {
    let mut figures = figures.to_vec();
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// A folder for the stack's data, removed at the end.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let mut arguments = env::args().skip_while(|argument| argument != "--minutes").skip(1);
    let minutes = arguments.next().map_or(MINUTES, |minutes| minutes.parse().expect("a number of minutes"));
    let folder = Folder(env::temp_dir().join(format!("muster-{}", Ambient::system().uuid())));
    let data = ["--data", folder.0.to_str().expect("a UTF-8 path")];
    // In huge pages, which the kernel gradually makes of small ones, memory that was never written would
    // count.
    let local = LocalProcess::start_with(&data, &[("MIMALLOC_ALLOW_THP", "0")]).await;
    let game = local.make_game("soak", modes(), 1_500, SERVERS, PLACES).await;
    let length = Duration::from_secs(60 * minutes);
    let soak = Soak { local, game, known: RefCell::default(), began: Instant::now(), length };
    let players = join_all((0..PLAYERS).map(|number| soak.play(number as u64)));
    let servers = join_all((0..SERVERS).map(|number| soak.serve(number)));
    let others = join(soak.administrate(), soak.watch());
    let (_, (_, ((), memory))) = join(players, join(servers, others)).await;
    soak.reckon(&memory).await
}
