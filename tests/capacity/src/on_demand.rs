//! Game servers on demand in virtual time: many finds at one moment into nothing, processes that take their
//! time or fail, and nothing that runs when the players have gone (I15 to I18).

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    net::Ipv4Addr,
    ops::RangeInclusive,
    sync::{Arc, Mutex},
    time::Duration,
};

use find_lobby::FindLobby;
use futures_util::future::join_all;
use harness::{instance::event_from, lobby_host::LobbyHost, virtual_time::virtual_ambient};
use muster_local::{
    stack::{TEMPLATE, table_names},
    template::Template,
};
use serde_json::{Value as Json, json};
use shared::{
    auth::keys::TokenKeys,
    base::{ambient::Ambient, usage::Usage},
    hosting::launching::{Launching, Next, NotStarted, Order, Starter},
    models::{
        errors::Error,
        ids::ServerKey,
        token::{Claims, Credential, CredentialKind},
    },
    store::client::Store,
    wire::FindLobbyResponse,
};
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep, sleep_until},
};

use super::{
    database::Database,
    fleet::GameServer,
    scenario::{Asks, LOBBY_COUNT_MAX, Scenario},
    setting::{BEGAN_AT, Function, Machine, SETTLING, client, in_virtual_time, lock, make_game},
    traffic::Asker,
    value::Value,
};

/// From a record's write to the look that it asks for.
const DELIVERED_AFTER_MS: RangeInclusive<u64> = 100..=500;
/// How often written records are noticed.
const NOTICED_EVERY: Duration = Duration::from_millis(20);
/// Seconds from an answer to its player's connection, and of a stay.
const CONNECT_AFTER_SECS: RangeInclusive<u64> = 1..=5;
const STAY: Duration = Duration::from_secs(60);
/// Repetitions that a client makes.
const REPETITIONS_MAX: u32 = 30;
/// When everybody has long gone.
const LENGTH: Duration = Duration::from_secs(420);
/// What the version's game servers run.
const BUILD: &str = "game:1";
/// The idle time of the game servers, in seconds.
const IDLE_SECS: u64 = 60;

/// A moment at which many players want to play a game that nobody plays; the same one gives the same outcome.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Players.
    pub finds: u32,
    /// Seats of a lobby.
    pub seats: u32,
    /// Lobbies of a game server.
    pub capacity: u32,
    /// From the order to the registration.
    pub start: Duration,
    /// The share of the orders whose process never registers, in percent.
    pub dying: u32,
    /// The share of the orders that are refused, in percent.
    pub refused: u32,
    /// Game servers that run already, whom nobody ordered.
    pub fleet: u32,
    /// Modes, and values of a tag, among which the finds spread.
    pub kinds: (u32, u32),
    /// Whether every other find wants a lobby of half the size.
    pub has_sizes: bool,
    /// Whether clients repeat with a key.
    pub is_keyed: bool,
    /// What everything random comes from.
    pub seed: u64,
}

impl Moment {
    /// A thousand players of a game with lobbies of ten, four to a server.
    #[must_use]
    pub const fn of(seed: u64) -> Self {
        Self {
            finds: 1_000,
            seats: 10,
            capacity: 4,
            start: Duration::from_secs(3),
            dying: 0,
            refused: 0,
            fleet: 0,
            kinds: (1, 1),
            has_sizes: false,
            is_keyed: false,
            seed,
        }
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { finds, seats, capacity, start, dying, refused, fleet, kinds: (modes, tags), .. } = self;
        write!(
            f,
            "{finds} finds, lobbies of {seats}, {capacity} to a server, starts of {} s",
            start.as_secs_f64()
        )?;
        if *fleet > 0 {
            write!(f, ", {fleet} run already")?;
        }
        if *dying + *refused > 0 {
            write!(f, ", {dying} % of them die, {refused} % refused")?;
        }
        if modes * tags > 1 {
            write!(f, ", {modes} modes, {tags} tags")?;
        }
        if self.has_sizes {
            write!(f, ", two sizes")?;
        }
        if self.is_keyed { write!(f, ", keyed") } else { Ok(()) }
    }
}

/// What became of it.
#[derive(Debug, Default)]
pub struct Birth {
    at_once: u32,
    repeated: u32,
    refusals: BTreeMap<&'static str, u64>,
    /// Those who gave up.
    unseated: u32,
    lobbies: BTreeSet<String>,
    calls: Vec<u64>,
    /// Looks at lobbies whose server had not registered yet.
    looks: u64,
    /// Milliseconds from the find to the seat.
    waits: Vec<u64>,
    /// Each start that was ordered, and how often.
    ordered: BTreeMap<String, u32>,
    /// Orders that came to nothing.
    failed: u32,
    /// Processes that run.
    running: BTreeSet<String>,
    /// The most at one time.
    most: usize,
    records: usize,
    executions: u64,
}

/// The table's head.
pub const BIRTH_HEAD: &str = "\
| moment | processes ordered: needed, failed, ordered twice | lobbies | seated at once | by a repetition | not | refusals \
| calls of a find: mean, looks at its starting lobby of them, most | ms to the seat: median, p99 | executions | processes and servers left |
|---|---|---|---|---|---|---|---|---|---|---|";

impl Birth {
    /// Its row of the table.
    #[must_use]
    pub fn row(&self, moment: &Moment) -> String {
        let at = |values: &[u64], percent: usize| {
            let mut values = values.to_vec();
            values.sort_unstable();
            values.get((values.len() * percent / 100).min(values.len().saturating_sub(1))).copied()
        };
        let at = |percent| at(&self.waits, percent).unwrap_or_default();
        let calls: u64 = self.calls.iter().sum();
        format!(
            "| {moment} | {}: {}, {}, {} | {} | {} | {} | {} | {:?} | {:.2}, {:.2}, {} | {}, {} | {} | {}, {} |",
            self.ordered.len(),
            self.needed(moment),
            self.failed,
            self.ordered.values().filter(|times| **times > 1).count(),
            self.lobbies.len(),
            self.at_once,
            self.repeated,
            self.unseated,
            self.refusals,
            calls as f64 / self.calls.len().max(1) as f64,
            self.looks as f64 / self.calls.len().max(1) as f64,
            self.calls.iter().max().copied().unwrap_or_default(),
            at(50),
            at(99),
            self.executions,
            self.running.len(),
            self.records,
        )
    }

    /// Processes that were ordered.
    pub(super) fn ordered(&self) -> usize {
        self.ordered.len()
    }

    /// Processes that run.
    pub(super) fn running(&self) -> usize {
        self.running.len()
    }

    /// Players who were seated at once, later, and not.
    pub(super) fn seated(&self) -> String {
        format!("{}, {}, {}", self.at_once, self.repeated, self.unseated)
    }

    fn needed(&self, moment: &Moment) -> usize {
        self.lobbies.len().div_ceil(moment.capacity as usize)
    }

    /// What must always hold and did not, each in words.
    #[must_use]
    pub fn broken(&self, moment: &Moment) -> Vec<String> {
        let mut broken = Vec::new();
        let most = self.needed(moment) + self.failed as usize;
        if self.ordered.len() > most {
            broken.push(format!("I15: {} processes, at most {most}", self.ordered.len()));
        }
        if !self.running.is_empty() || self.records > 0 {
            broken.push(format!("I18: {} processes, {} records left", self.running.len(), self.records));
        }
        if self.unseated > 0 {
            broken.push(format!("I17: {} without a seat", self.unseated));
        }
        broken
    }
}

pub(super) struct Scene {
    moment: Moment,
    machine: Machine,
    token: String,
    server_token: String,
    region: String,
    find: Function<FindLobby>,
    random: Mutex<fastrand::Rng>,
    host: LobbyHost,
    pub(super) outcome: Mutex<Birth>,
    /// Refusals of others than the players.
    pub(super) refused: Mutex<BTreeMap<&'static str, u64>>,
}

/// The way to processes, which are tasks.
struct Processes(Arc<Scene>);

impl Starter for Processes {
    async fn start(&self, order: &Order) -> Result<String, NotStarted> {
        let (scene, order) = (Arc::clone(&self.0), order.clone());
        let name = order.start_id.as_str().to_owned();
        let is_again = {
            let mut outcome = lock(&scene.outcome);
            let times = outcome.ordered.entry(name.clone()).or_default();
            *times += 1;
            *times > 1
        };
        if is_again {
            return Ok(name);
        }
        let drawn = lock(&scene.random).u32(..100);
        if drawn < scene.moment.refused {
            lock(&scene.outcome).failed += 1;
            return Err(NotStarted::Refused("no capacity of that kind".to_owned()));
        }
        {
            let mut outcome = lock(&scene.outcome);
            outcome.running.insert(name.clone());
            outcome.most = outcome.most.max(outcome.running.len());
        }
        let dies = drawn < scene.moment.refused + scene.moment.dying;
        tokio::spawn(async move {
            if dies {
                let mut outcome = lock(&scene.outcome);
                outcome.failed += 1;
                outcome.running.remove(order.start_id.as_str());
                return;
            }
            sleep(scene.moment.start).await;
            let store = Store::new(client(&scene.machine.database, Asker::GameServer, 0), table_names());
            let server = GameServer::ordered(&order, store, &scene.machine.keys, &scene.machine.ambient);
            server.run().await;
            lock(&scene.outcome).running.remove(order.start_id.as_str());
        });
        Ok(name)
    }

    async fn end(&self, order: &Order) -> Result<(), NotStarted> {
        lock(&self.0.outcome).running.remove(order.start_id.as_str());
        Ok(())
    }
}

/// Plays a moment.
///
/// # Panics
/// When what must not fail fails.
#[must_use]
pub fn run_moment(moment: Moment) -> Birth {
    in_virtual_time(moment.seed, async {
        let scene = Arc::new(Scene::new(moment, u32::MAX, 10_000).await);
        let fleet = scene.run_fleet().await;
        let began = Instant::now();
        let deliveries = tokio::spawn(deliver(Arc::clone(&scene)));
        join_all((0..moment.finds).map(|nth| Arc::clone(&scene).play(nth))).await;
        sleep_until(began + LENGTH).await;
        deliveries.abort();
        fleet.iter().for_each(JoinHandle::abort);
        let mut outcome = std::mem::take(&mut *lock(&scene.outcome));
        scene.machine.database.inspect("ServersTable", |server| {
            outcome.records += usize::from(server.contains_key("placement_pool"));
        });
        outcome.records -= fleet.len();
        outcome.executions = scene.machine.requests();
        outcome.looks =
            scene.machine.database.traffic(Asker::Find).gets.get("lobbies").copied().unwrap_or_default();
        outcome
    })
}

/// Has each server looked after that is requested, or whose stage changes: some time later, and twice.
pub(super) async fn deliver(scene: Arc<Scene>) {
    let store = Store::new(client(&scene.machine.database, Asker::Operator, 1), table_names());
    let Machine { keys, ambient, .. } = &scene.machine;
    let starter = Processes(Arc::clone(&scene));
    let url = "https://api.example".to_owned();
    let launching = Arc::new(Launching::new(store, Arc::clone(keys), ambient.clone(), url, starter));
    let mut seen: BTreeMap<String, String> = BTreeMap::new();
    loop {
        sleep(NOTICED_EVERY).await;
        let mut changed = Vec::new();
        scene.machine.database.inspect("ServersTable", |server| {
            let texts = (server.get("server"), server.get("stage"));
            let (Some(Value::S(key)), Some(Value::S(stage))) = texts else { return };
            if stage != "running" && seen.get(key) != Some(stage) {
                seen.insert(key.clone(), stage.clone());
                changed.push(key.clone());
            }
        });
        for key in changed {
            for _copy in 0..2 {
                let key: ServerKey = key.clone().try_into().expect("a key");
                let after = Duration::from_millis(lock(&scene.random).u64(DELIVERED_AFTER_MS));
                let launching = Arc::clone(&launching);
                tokio::spawn(async move {
                    sleep(after).await;
                    let mut tries = 0;
                    loop {
                        match launching.look(&key, tries).await {
                            Ok(Next::Nothing) => return,
                            Ok(Next::Look { after, tries: made }) => {
                                sleep(after).await;
                                tries = made;
                            }
                            Err(_) => sleep(Duration::from_secs(1)).await,
                        }
                    }
                });
            }
        }
    }
}

impl Scene {
    pub(super) async fn new(moment: Moment, per_client: u32, server_count_max: u32) -> Self {
        let template = Template::parse(TEMPLATE).expect("the template");
        let mut random = fastrand::Rng::with_seed(moment.seed);
        let database = Database::new(&template.tables, random.u64(..));
        let entropy = Mutex::new(random.fork());
        let ambient = virtual_ambient(BEGAN_AT, move |bytes| lock(&entropy).fill(bytes));
        let keys = Arc::new(TokenKeys::new(&[7; 32], None).expect("a key"));
        let store = Store::new(client(&database, Asker::Operator, 0), table_names());
        let asks = if moment.kinds.0 > 1 { Asks::Modes(moment.kinds.0) } else { Asks::Plain };
        let scenario = Scenario { capacity: moment.seats, asks, ..Scenario::QUICK };
        let servers = json!({ "build": BUILD, "capacity": moment.capacity, "server_count_max": server_count_max,
            "start_seconds": 60, "idle_seconds": IDLE_SECS });
        let limits = (LOBBY_COUNT_MAX, per_client);
        let game =
            make_game(&store, &ambient, &scenario, (&json!({}), &json!({ "servers": servers })), limits)
                .await;
        let (game_id, namespace_id) = (&game.game.game_id, &game.namespaces[0].namespace_id);
        let token = |kind| keys.issue_credential(kind, &Credential::fresh(game_id, namespace_id, &ambient));
        let (token, server_token) = (token(CredentialKind::Public), token(CredentialKind::Server));
        let region = scenario.asks.modes_and_regions().1.swap_remove(0);
        let store = Store::new(client(&database, Asker::LobbyServer, 0), table_names());
        let host = LobbyHost::new(store, &keys, &ambient, game.game.game_id.clone());
        let machine = Machine::new(database, keys, ambient);
        let (find, outcome, refused) = (Function::default(), Mutex::default(), Mutex::default());
        let random = Mutex::new(random);
        Self { moment, machine, token, server_token, region, find, random, host, outcome, refused }
    }

    /// Has the servers run that the moment finds.
    async fn run_fleet(&self) -> Vec<JoinHandle<()>> {
        let mut fleet = Vec::new();
        for number in 0..self.moment.fleet {
            let Machine { database, keys, ambient, .. } = &self.machine;
            let store = Store::new(client(database, Asker::GameServer, 0), table_names());
            let server = GameServer::new(number as usize, store, keys, ambient, &self.server_token);
            let server = server.of_build(BUILD);
            server.register(&self.region, self.moment.capacity).await;
            fleet.push(tokio::spawn(server.send_heartbeats(Instant::now())));
        }
        sleep(SETTLING).await;
        fleet
    }

    fn body(&self, nth: u32) -> Json {
        let (modes, tags) = self.moment.kinds;
        let mut body = json!({ "game_modes": [format!("mode-{}", nth % modes)] });
        if tags > 1 {
            body["tags"] = json!({ "map": (nth / modes % tags).to_string() });
        }
        if self.moment.has_sizes && nth / (modes * tags) % 2 == 1 {
            body["max_players"] = (self.moment.seats / 2).into();
        }
        body
    }

    pub(super) async fn play(self: Arc<Self>, nth: u32) {
        let (body, came_at) = (self.body(nth), self.ambient().now());
        let key = format!("find-{nth}");
        let keyed = [("idempotency-key", key.as_str())];
        let headers = if self.moment.is_keyed { &keyed[..] } else { &[] };
        let address = Ipv4Addr::from(0x0a00_0000 + nth);
        for repetition in 0..=REPETITIONS_MAX {
            let (answer, usage) = self.find(address, headers, &body).await;
            lock(&self.outcome).calls.push(usage.calls);
            match answer {
                Ok(found) => {
                    let Ok(Claims::Player(seat)) = self.machine.keys.verify_at_any_age(&found.player.token)
                    else {
                        panic!("no player token");
                    };
                    {
                        let mut outcome = lock(&self.outcome);
                        if repetition == 0 {
                            outcome.at_once += 1
                        } else {
                            outcome.repeated += 1
                        }
                        outcome.lobbies.insert(seat.lobby_id.to_string());
                        let waited = self.ambient().now().since(came_at).as_millis();
                        outcome.waits.push(u64::try_from(waited).expect("short"));
                    }
                    let (scene, token) = (Arc::clone(&self), found.player.token);
                    tokio::spawn(async move {
                        let after = lock(&scene.random).u64(CONNECT_AFTER_SECS);
                        sleep(Duration::from_secs(after)).await;
                        if scene.host.connect(&seat, &token).await.is_ok() {
                            sleep(STAY).await;
                            let _left = scene.host.disconnect(&seat, &token).await;
                        }
                    });
                    return;
                }
                Err(error) => {
                    *lock(&self.outcome).refusals.entry(error.status_and_code().1).or_default() += 1;
                    sleep(Duration::from_secs(error.retry_after_secs().unwrap_or(1))).await;
                }
            }
        }
        lock(&self.outcome).unseated += 1;
    }

    /// A find from an address.
    pub(super) async fn find(
        &self,
        address: Ipv4Addr,
        headers: &[(&str, &str)],
        body: &Json,
    ) -> (Result<FindLobbyResponse, Error>, Usage) {
        let bearer = format!("Bearer {}", self.token);
        let headers = [&[("authorization", bearer.as_str())], headers].concat();
        self.machine.call(&self.find, &event_from(address, &headers, body, &[]).into()).await
    }

    const fn ambient(&self) -> &Ambient {
        &self.machine.ambient
    }
}

/// The moments of the table.
#[must_use]
pub fn moments(seed: u64) -> Vec<Moment> {
    let moment = Moment::of(seed);
    vec![
        moment,
        Moment { is_keyed: true, ..moment },
        Moment { kinds: (2, 3), ..moment },
        Moment { kinds: (2, 3), has_sizes: true, ..moment },
        Moment { dying: 10, ..moment },
        Moment { refused: 10, is_keyed: true, ..moment },
        Moment { start: Duration::from_secs(30), is_keyed: true, ..moment },
        Moment { start: Duration::from_secs(30), ..moment },
        Moment { finds: 40, seats: 2, capacity: 2, start: Duration::from_secs(1), ..moment },
        Moment { seats: 2, capacity: 1, finds: 200, ..moment },
        Moment { seats: 100, capacity: 10, ..moment },
        Moment { finds: 1, ..moment },
        Moment { start: Duration::from_millis(100), is_keyed: true, ..moment },
        Moment { start: Duration::from_millis(100), ..moment },
        Moment { start: Duration::from_millis(100), seats: 2, capacity: 2, ..moment },
        Moment { fleet: 25, ..moment },
        Moment { fleet: 25, finds: 1, ..moment },
    ]
}
