//! The capacity simulation: the real code under loads that no machine here can make, in virtual time, over a
//! DynamoDB that has its limits.
//!
//! Find runs in isolated instances, one request at a time each, the one that was free last first, a new one
//! when none is, as Lambda has them; lobby servers connect and disconnect the players; game servers send
//! heartbeats. Everything random comes from the scenario's seed, so that a scenario gives the same outcome
//! each time.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "this is test code: what cannot go on panics"
)]

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::future::join_all;
use muster_local::{
    stack::{TEMPLATE, table_names},
    template::Template,
};
use serde_json::json;
use shared::{
    auth::keys::TokenKeys,
    base::ambient::{Ambient, Timestamp},
    cloud::provision::CreatedGame,
    models::{
        errors::Error,
        pool::Pool,
        token::{Claims, Credential, CredentialKind, PlayerSeat},
    },
    store::client::Store,
};
use tokio::time::{Instant, sleep, sleep_until};

use harness::{instance::Instance, lobby_host::LobbyHost, virtual_time::virtual_ambient};

pub mod database;
mod expression;
mod fleet;
mod heat;
mod ideal;
pub mod limits;
pub mod on_demand;
pub mod outcome;
pub mod raid;
pub mod scenario;
mod setting;
pub mod storm;
mod table;
pub mod traffic;
mod value;

use database::Database;
use fleet::GameServer;
use ideal::Stay;
use limits::COLD_START_MS;
use outcome::{Lobbies, Minute, Outcome};
use scenario::{Asks, LOBBY_COUNT_MAX, Scenario, Shape};
use setting::{BEGAN_AT, SETTLING, client, in_virtual_time, lock, make_game, number};
use traffic::{Asker, Traffic};
use value::{Item, Value};

/// Pauses of a lobby server between tries of what DynamoDB did not take, and how often it tries.
const HOST_PAUSE_MS: u64 = 250;
const HOST_TRIES: u32 = 10;
/// How long finds under way may take after the last one came.
const DRAIN_MS: u64 = 30_000;
/// How long finds are the first.
const FIRST_MS: u64 = 1_000;
/// How long after the last players came those who sit nearly alone are counted.
const LONELY_AFTER_MS: u64 = 1_000;
/// How often a run says how far it is.
const PROGRESS_MS: u64 = 1_000;
/// Servers that register at the same time.
const REGISTRATIONS_AT_ONCE: usize = 50;

/// A player with a seat.
#[derive(Debug)]
struct Player {
    seat: PlayerSeat,
    found_at: Timestamp,
    tries: u32,
}

#[derive(Debug)]
enum Event {
    Connect(Player),
    Disconnect(Player),
}

#[derive(Debug, Default)]
struct Tally {
    under_way: u64,
    finds: u64,
    refused: BTreeMap<&'static str, u64>,
    latencies_ms: Vec<u64>,
    /// Those of the finds that came in the first second.
    first_latencies_ms: Vec<u64>,
    minutes: Vec<Minute>,
    /// When players came and went, by the name of the lobbies that fitted their finds.
    stays: BTreeMap<String, Vec<Stay>>,
    lonely: f64,
    host_refused: BTreeMap<&'static str, u64>,
}

struct World {
    scenario: Scenario,
    database: Database,
    /// When players begin to come.
    began_at: Timestamp,
    ambient: Ambient,
    keys: Arc<TokenKeys>,
    game: CreatedGame,
    token: String,
    /// When players come, whatever their result.
    arrivals: Mutex<fastrand::Rng>,
    /// When they connect and leave.
    random: Mutex<fastrand::Rng>,
    /// Every instance, and the numbers of those that are free, the last one freed last.
    instances: Mutex<(Vec<Arc<Instance>>, Vec<usize>)>,
    hosts: Mutex<Vec<LobbyHost>>,
    agenda: Mutex<BTreeMap<u64, Vec<Event>>>,
    tally: Mutex<Tally>,
}

fn ms(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).expect("a short span")
}

/// Runs a scenario.
///
/// # Panics
/// When what must not fail fails.
#[must_use]
pub fn run(scenario: Scenario, progress: &mut dyn FnMut(String)) -> Outcome {
    in_virtual_time(scenario.seed, async {
        let mut world = World::new(scenario).await;
        if let Shape::Burst(finds) = scenario.shape {
            world.warm_up(finds).await;
        }
        world.begin();
        let world = Arc::new(world);
        world.play(progress).await;
        world.outcome()
    })
}

impl World {
    async fn new(scenario: Scenario) -> Self {
        let mut random = fastrand::Rng::with_seed(scenario.seed);
        let tables = Template::parse(TEMPLATE).expect("the template").tables;
        let database = Database::new(&tables, random.u64(..));
        let entropy = Mutex::new(random.fork());
        let ambient = virtual_ambient(BEGAN_AT, move |bytes| lock(&entropy).fill(bytes));
        let keys = Arc::new(TokenKeys::new(&[7; 32], None).expect("a key"));
        let store = Store::new(client(&database, Asker::Operator, 0), table_names());
        let game =
            make_game(&store, &ambient, &scenario, (&json!({}), &json!({})), (LOBBY_COUNT_MAX, u32::MAX))
                .await;
        let (game_id, namespace_id) = (&game.game.game_id, &game.namespaces[0].namespace_id);
        let token = keys
            .issue_credential(CredentialKind::Public, &Credential::fresh(game_id, namespace_id, &ambient));
        let server_token = keys
            .issue_credential(CredentialKind::Server, &Credential::fresh(game_id, namespace_id, &ambient));
        let (_, regions) = scenario.asks.modes_and_regions();
        // The finds of a mix that name one region name the first.
        let share = if scenario.asks == Asks::Mixed { 1 } else { regions.len() };
        let lobbies = scenario.steady_lobbies() / share as f64;
        let mut fleet = Vec::new();
        for region in &regions {
            for places in fleet::sizes(lobbies, &mut random) {
                let store = Store::new(client(&database, Asker::GameServer, fleet.len()), table_names());
                let server = GameServer::new(fleet.len(), store, &keys, &ambient, &server_token);
                fleet.push((server, region, places));
            }
        }
        for some in fleet.chunks(REGISTRATIONS_AT_ONCE) {
            join_all(some.iter().map(|(server, region, places)| server.register(region, *places))).await;
        }
        for (server, ..) in fleet {
            let first = Instant::now() + Duration::from_millis(random.u64(0..15_000));
            tokio::spawn(server.send_heartbeats(first));
        }
        sleep(SETTLING).await;
        Self {
            scenario,
            database,
            began_at: BEGAN_AT,
            ambient,
            keys,
            game,
            token,
            arrivals: Mutex::new(random.fork()),
            random: Mutex::new(random),
            instances: Mutex::default(),
            hosts: Mutex::default(),
            agenda: Mutex::default(),
            tally: Mutex::default(),
        }
    }

    /// Forgets what it took to set the scene.
    fn begin(&mut self) {
        self.database.forget_traffic();
        self.began_at = self.ambient.now();
        let minutes = self.scenario.seconds.div_ceil(60).max(1) as usize;
        lock(&self.tally).minutes = vec![Minute::default(); minutes];
    }

    fn now_ms(&self) -> u64 {
        ms(self.ambient.now().since(self.began_at))
    }

    fn new_instance(&self) -> usize {
        let number = lock(&self.instances).0.len();
        let client = client(&self.database, Asker::Find, number);
        let instance = Arc::new(Instance::over(client, &self.keys, &self.ambient));
        lock(&self.instances).0.push(instance);
        number
    }

    /// Lets players come, millisecond by millisecond, and sees to those who are here, until some time after
    /// the last ones came. Clients without pause are there until they have found often enough.
    async fn play(self: &Arc<Self>, progress: &mut dyn FnMut(String)) {
        let start = Instant::now();
        let length_ms = self.scenario.length_ms();
        let mut over_ms = None;
        for at_ms in 0.. {
            sleep_until(start + Duration::from_millis(at_ms)).await;
            let is_under_way = lock(&self.tally).under_way > 0;
            if at_ms < length_ms {
                let arrivals = self.scenario.arrivals(at_ms, &mut lock(&self.arrivals));
                for _ in 0..arrivals {
                    match self.scenario.shape {
                        Shape::Clients(..) => drop(tokio::spawn(Arc::clone(self).find_without_pause())),
                        _ => drop(tokio::spawn(Arc::clone(self).find_one())),
                    }
                }
            } else if !(is_under_way && matches!(self.scenario.shape, Shape::Clients(..))) {
                let since_ms = at_ms - *over_ms.get_or_insert(at_ms);
                if since_ms == LONELY_AFTER_MS {
                    let lonely = self.lonely();
                    lock(&self.tally).lonely = lonely;
                }
                if since_ms >= DRAIN_MS || since_ms > LONELY_AFTER_MS && !is_under_way {
                    break;
                }
            }
            let due = lock(&self.agenda).remove(&at_ms);
            for event in due.into_iter().flatten() {
                tokio::spawn(Arc::clone(self).host(event));
            }
            if at_ms % PROGRESS_MS == PROGRESS_MS - 1 {
                progress(self.progress(at_ms / 1_000));
            }
        }
    }

    /// What came of the scenario until `second`, and what DynamoDB refused so far.
    fn progress(&self, second: u64) -> String {
        let tally = lock(&self.tally);
        let (finds, answered) = (tally.finds, tally.latencies_ms.len());
        let (refused, instances) = (&tally.refused, lock(&self.instances).0.len());
        let traffic = [Asker::Find, Asker::LobbyServer, Asker::GameServer].map(|asker| {
            let Traffic { calls, throttles, conflicts, unmet, .. } = self.database.traffic(asker);
            format!(
                "{asker:?}: {calls} calls, throttles {throttles:?}, conflicts {conflicts:?}, unmet {unmet:?}"
            )
        });
        let Lobbies { created, full, partly_filled, .. } = self.lobbies();
        format!(
            "{}: {second} s, {finds} finds, {answered} answered, {refused:?}, {instances} instances, {created} \
             lobbies, {full} full, {partly_filled} partly filled; {}",
            self.scenario,
            traffic.join("; ")
        )
    }

    /// Instances that know settings and servers, but no lobby.
    async fn warm_up(&self, count: u32) {
        let namespace_id = &self.game.namespaces[0].namespace_id;
        let version_id = &self.game.version.version_id;
        let pool: Pool = format!("{namespace_id}/{version_id}/mode-0/region-0").parse().expect("a pool");
        for _ in 0..count {
            let number = self.new_instance();
            let instance = Arc::clone(&lock(&self.instances).0[number]);
            instance.warm_up(&self.token, &pool).await;
            lock(&self.instances).1.push(number);
        }
    }

    /// A client that finds again and again, until all of them together have found often enough.
    async fn find_without_pause(self: Arc<Self>) {
        while lock(&self.tally).finds < self.scenario.client_finds() {
            Arc::clone(&self).find_one().await;
        }
    }

    async fn find_one(self: Arc<Self>) {
        let came_ms = self.now_ms();
        let nth = {
            let mut tally = lock(&self.tally);
            tally.finds += 1;
            tally.under_way += 1;
            tally.finds - 1
        };
        let (body, name) = self.scenario.asks.find(nth, &self.scenario, &mut lock(&self.arrivals));
        let free = lock(&self.instances).1.pop();
        let number = match free {
            Some(number) => number,
            None => {
                let number = self.new_instance();
                sleep(Duration::from_millis(COLD_START_MS)).await;
                number
            }
        };
        let instance = Arc::clone(&lock(&self.instances).0[number]);
        let (ran_ms, before) = (self.now_ms(), instance.usage());
        let found = instance.find(&self.token, &body).await;
        let usage = instance.usage() - before;
        lock(&self.instances).1.push(number);
        let took_ms = self.now_ms() - ran_ms;
        let mut tally = lock(&self.tally);
        tally.under_way -= 1;
        minute_at(&mut tally.minutes, came_ms).count(usage, before.calls > 0);
        match found {
            Err(error) => *tally.refused.entry(error.status_and_code().1).or_default() += 1,
            Ok(found) => {
                tally.latencies_ms.push(took_ms);
                if came_ms < FIRST_MS {
                    tally.first_latencies_ms.push(took_ms);
                }
                let players = found.players.unwrap_or_else(|| vec![found.player]);
                let seats = players.iter().map(|player| match self.keys.verify_at_any_age(&player.token) {
                    Ok(Claims::Player(seat)) => seat,
                    other => panic!("no player token: {other:?}"),
                });
                let visit = self.scenario.visit(&mut lock(&self.random));
                let now_ms = self.now_ms();
                let gone_ms = now_ms + ms(visit.gone_after);
                let stay = Stay { came: came_ms, went: gone_ms, players: players.len() };
                tally.stays.entry(name).or_default().push(stay);
                drop(tally);
                let Some(connects_after) = visit.connects_after else { return };
                for seat in seats {
                    let player = Player { seat, found_at: self.ambient.now(), tries: 0 };
                    let mut agenda = lock(&self.agenda);
                    let connects_ms = now_ms + ms(connects_after);
                    agenda.entry(connects_ms).or_default().push(Event::Connect(player.copy()));
                    agenda.entry(gone_ms).or_default().push(Event::Disconnect(player));
                }
            }
        }
    }

    /// What a lobby server does with its players.
    async fn host(self: Arc<Self>, event: Event) {
        let free = lock(&self.hosts).pop();
        let host = free.unwrap_or_else(|| {
            let number = lock(&self.tally).finds;
            let client = client(&self.database, Asker::LobbyServer, usize::try_from(number).expect("small"));
            let store = Store::new(client, table_names());
            LobbyHost::new(store, &self.keys, &self.ambient, self.game.game.game_id.clone())
        });
        let (Event::Connect(player) | Event::Disconnect(player)) = &event;
        let token = self.keys.issue_player(&player.seat, player.found_at);
        let done = match &event {
            Event::Connect(_) => host.connect(&player.seat, &token).await,
            Event::Disconnect(_) => host.disconnect(&player.seat, &token).await,
        };
        lock(&self.hosts).push(host);
        let Err(error) = done else { return };
        let passes = matches!(error, Error::Unavailable(_) | Error::Contention);
        if passes && player.tries < HOST_TRIES {
            let again_ms = self.now_ms() + HOST_PAUSE_MS;
            lock(&self.agenda).entry(again_ms).or_default().push(event.again());
        } else {
            *lock(&self.tally).host_refused.entry(error.status_and_code().1).or_default() += 1;
        }
    }

    /// The share of the players who sit in lobbies less than a quarter full, the emptiest one apart, into
    /// which the next players would come.
    fn lonely(&self) -> f64 {
        let (mut players, mut lonely) = (0, Vec::new());
        self.each_lobby(|lobby| {
            let (taken, max) = (number(lobby, "taken"), number(lobby, "max_players"));
            players += taken;
            if taken * 4 < max {
                lonely.push(taken);
            }
        });
        lonely.sort_unstable();
        lonely.iter().skip(1).sum::<u64>() as f64 / players.max(1) as f64
    }

    /// How full the lobbies are, without a call.
    fn lobbies(&self) -> Lobbies {
        let mut lobbies = Lobbies::default();
        self.each_lobby(|lobby| {
            lobbies.created += 1;
            if lobby.get("stage") != Some(&Value::S("ended".to_owned())) {
                let count = match (number(lobby, "taken"), number(lobby, "max_players")) {
                    (0, _) => &mut lobbies.empty,
                    (taken, max) if taken < max => &mut lobbies.partly_filled,
                    _ => &mut lobbies.full,
                };
                *count += 1;
            }
        });
        lobbies
    }

    fn each_lobby(&self, look: impl FnMut(&Item)) {
        self.database.inspect("LobbiesTable", look);
    }

    fn outcome(&self) -> Outcome {
        let mut tally = std::mem::take(&mut *lock(&self.tally));
        tally.latencies_ms.sort_unstable();
        tally.first_latencies_ms.sort_unstable();
        let instances = lock(&self.instances);
        let mut lobbies = self.lobbies();
        self.each_lobby(|lobby| {
            let created_at = Timestamp(number(lobby, "created_at"));
            minute_at(&mut tally.minutes, ms(created_at.since(self.began_at))).lobbies_created += 1;
        });
        let capacity = self.scenario.capacity as usize;
        let optimum: Vec<u64> =
            tally.stays.values().flat_map(|stays| ideal::creations(stays, capacity)).collect();
        lobbies.optimum = optimum.len();
        for created_ms in optimum {
            minute_at(&mut tally.minutes, created_ms).lobbies_optimum += 1;
        }
        Outcome {
            scenario: self.scenario,
            finds: tally.finds,
            under_way: tally.under_way,
            refused: tally.refused,
            latencies_ms: tally.latencies_ms,
            first_latencies_ms: tally.first_latencies_ms,
            minutes: tally.minutes,
            find: self.database.traffic(Asker::Find),
            lobby_servers: self.database.traffic(Asker::LobbyServer),
            game_servers: self.database.traffic(Asker::GameServer),
            host_refused: tally.host_refused,
            lobbies,
            lonely: tally.lonely,
            instances: instances.0.len(),
            race_creates: instances.0.iter().map(|instance| instance.race_creates()).sum(),
        }
    }
}

/// The minute that the time belongs to; the last one has what comes after it, too.
fn minute_at(minutes: &mut [Minute], at_ms: u64) -> &mut Minute {
    let last = minutes.len() - 1;
    let number = usize::try_from(at_ms / 60_000).map_or(last, |number| number.min(last));
    &mut minutes[number]
}

impl Player {
    fn copy(&self) -> Self {
        Self { seat: self.seat.clone(), ..*self }
    }
}

impl Event {
    fn again(self) -> Self {
        match self {
            Self::Connect(player) => Self::Connect(Player { tries: player.tries + 1, ..player }),
            Self::Disconnect(player) => Self::Disconnect(Player { tries: player.tries + 1, ..player }),
        }
    }
}
