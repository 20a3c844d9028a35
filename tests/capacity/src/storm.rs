//! Honest players under a hostile crowd, in virtual time: what becomes of them, of the list of lobbies, and
//! what each refusal costs.
//!
//! The crowd knows the code and has a public token, but no secret: it takes seats from its addresses and
//! never connects. Honest players have an address of their own each, connect and stay.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    net::Ipv4Addr,
    ops::RangeInclusive,
    sync::{Arc, Mutex, atomic::AtomicUsize, atomic::Ordering},
    time::Duration,
};

use create_lobby::CreateLobby;
use find_lobby::FindLobby;
use harness::{instance::event_from, lobby_host::LobbyHost, prices::Cost, virtual_time::virtual_ambient};
use join_lobby::JoinLobby;
use list_lobbies::ListLobbies;
use muster_local::{
    stack::{TEMPLATE, table_names},
    template::Template,
};
use serde_json::{Value as Json, json};
use shared::{
    auth::keys::TokenKeys,
    base::usage::Usage,
    models::{
        client::{Client, ClientId},
        errors::Error,
        ids::NamespaceId,
        token::{Claims, Credential, CredentialKind, PlayerSeat},
    },
    request::Request,
    store::client::Store,
    wire::FindLobbyResponse,
};
use tokio::time::{sleep, sleep_until};

use super::{
    database::Database,
    fleet::GameServer,
    scenario::{Asks, Scenario},
    setting::{BEGAN_AT, Function, Machine, SETTLING, client, in_virtual_time, lock, make_game, number},
    traffic::Asker,
    value::Value,
};

/// Honest finds a second, evenly.
const HONEST_RATE: u64 = 10;
/// Hostile requests a second: nine of ten.
const HOSTILE_RATE: u64 = 90;
/// Seconds from an honest find's answer to its player's connection.
const CONNECT_AFTER_SECS: RangeInclusive<f64> = 1.0..=8.0;
/// Pauses of a refused honest player, in seconds, and how often one tries.
const RETRY_AFTER_SECS: RangeInclusive<f64> = 1.0..=3.0;
const ATTEMPTS: u32 = 3;
/// How long after the storm the last player connects.
const LATE: Duration = Duration::from_secs(10);
/// Places of the game servers, two for each lobby of the default limit.
const PLACES: [u32; 3] = [100, 100, 60];
const LOBBY_COUNT_MAX: u32 = 128;
const SEATS: u32 = 10;

/// What the crowd sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crowd {
    /// Nothing.
    None,
    /// Finds of the honest players' mode.
    Finds,
    /// Finds of another mode with a new tag each, so that each makes a lobby that no honest player enters.
    Tags,
    /// Private lobbies of that mode.
    Creates,
    /// Joins of the lobbies that it finds listed.
    Joins,
    /// All kinds, equally often.
    Mixed,
}

/// A storm; the same one gives the same outcome.
#[derive(Clone, Copy, Debug)]
pub struct Storm {
    /// What the crowd sends.
    pub crowd: Crowd,
    /// Its addresses.
    pub addresses: u32,
    /// Whether players pass a captcha first, which the crowd does not.
    pub has_captcha: bool,
    /// Seats that one address may hold.
    pub per_client: u32,
    /// How long a seat waits for its player.
    pub reservation_secs: u32,
    /// How long it lasts.
    pub seconds: u64,
    /// How long honest players stay.
    pub stay_secs: u64,
    /// How many times longer each trip to the database takes.
    pub slowness: u64,
    /// What everything random comes from.
    pub seed: u64,
}

impl fmt::Display for Storm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { crowd, addresses, per_client, reservation_secs, seconds, stay_secs, slowness, .. } = self;
        let captcha = if self.has_captcha { "; a captcha" } else { "" };
        write!(
            f,
            "{crowd:?}, {addresses} addresses of {per_client} seats for {reservation_secs} s, {seconds} s; \
             stay {stay_secs} s; {slowness} times as slow{captcha}"
        )
    }
}

/// What became of a storm.
#[derive(Debug, Default)]
pub struct StormOutcome {
    honest: u64,
    seated_at_once: u64,
    seated: u64,
    connected: u64,
    /// Honest players who were refused when they connected, by code.
    lost: BTreeMap<&'static str, u64>,
    refused: BTreeMap<&'static str, u64>,
    hostile: u64,
    hostile_seats: u64,
    refusals: Vec<Cost>,
    seats: Vec<Cost>,
    calls_max: u64,
    honest_calls: Vec<u64>,
    honest_ms: Vec<u64>,
    listed: usize,
    ghosts_listed: usize,
    live: usize,
    ghosts: usize,
}

/// The table's head.
pub const STORM_HEAD: &str = "\
| storm | honest finds | seated at once | within three attempts | connected | refused when they connected | refusals of all, by code \
| hostile requests, seats | ghosts of those listed | ghosts of the live lobbies | a refusal: calls, read, write units, $ a million; most \
| a seat: calls, $ a million | most calls | honest calls p99, ms p99 |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|";

impl StormOutcome {
    /// Its row of the table.
    #[must_use]
    pub fn row(&self, storm: &Storm) -> String {
        let share = |part: u64| 100.0 * part as f64 / self.honest.max(1) as f64;
        let refusal = Cost::mean(&self.refusals);
        let dearest = self.refusals.iter().map(Cost::total).fold(0.0, f64::max);
        let seat = Cost::mean(&self.seats);
        let p99 = |values: &[u64]| {
            let mut values = values.to_vec();
            values.sort_unstable();
            values.get(values.len() * 99 / 100).copied().unwrap_or_default()
        };
        format!(
            "| {storm} | {} | {:.1} % | {:.1} % | {:.1} % | {:?} | {:?} | {}, {} | {} of {} | {} of {} | {:.1}, \
             {:.1}, {:.1}, {:.2}; {:.2} | {:.2}, {:.2} | {} | {}, {} |",
            self.honest,
            share(self.seated_at_once),
            share(self.seated),
            share(self.connected),
            self.lost,
            self.refused,
            self.hostile,
            self.hostile_seats,
            self.ghosts_listed,
            self.listed,
            self.ghosts,
            self.live,
            refusal.calls,
            refusal.read_units,
            refusal.write_units,
            refusal.total(),
            dearest,
            seat.calls,
            seat.total(),
            self.calls_max,
            p99(&self.honest_calls),
            p99(&self.honest_ms),
        )
    }
}

/// The captcha of a version. Its provider is never asked: players passed it before they find.
fn captcha() -> Json {
    json!({ "requests_before_reverify": 15, "verification_ttl": 3_600_000,
        "hcaptcha": { "site_key": "site", "secret_key": "key" } })
}

struct World {
    storm: Storm,
    machine: Machine,
    store: Store,
    namespace_id: NamespaceId,
    token: String,
    random: Mutex<fastrand::Rng>,
    find: Function<FindLobby>,
    create: Function<CreateLobby>,
    join: Function<JoinLobby>,
    list: Function<ListLobbies>,
    host: LobbyHost,
    under_way: AtomicUsize,
    outcome: Mutex<StormOutcome>,
    /// What the crowd last saw listed.
    seen: Mutex<Vec<String>>,
}

/// Runs a storm.
///
/// # Panics
/// When what must not fail fails.
#[must_use]
pub fn run_storm(storm: Storm) -> StormOutcome {
    in_virtual_time(storm.seed, async {
        let world = Arc::new(World::new(storm).await);
        world.play().await;
        world.judge().await;
        sleep(LATE).await;
        std::mem::take(&mut *lock(&world.outcome))
    })
}

impl World {
    async fn new(storm: Storm) -> Self {
        let template = Template::parse(TEMPLATE).expect("the template");
        let mut random = fastrand::Rng::with_seed(storm.seed);
        let database = Database::new(&template.tables, random.u64(..));
        let entropy = Mutex::new(random.fork());
        let ambient = virtual_ambient(BEGAN_AT, move |bytes| lock(&entropy).fill(bytes));
        let keys = Arc::new(TokenKeys::new(&[7; 32], None).expect("a key"));
        let store = Store::new(client(&database, Asker::Operator, 0), table_names());
        let scenario = Scenario { capacity: SEATS, asks: Asks::Modes(2), ..Scenario::QUICK };
        let mode = json!({ "reservation_seconds": storm.reservation_secs,
            "actions": { "create": { "enabled": true } } });
        let limits = (LOBBY_COUNT_MAX, storm.per_client);
        let rest = json!({ "captcha": storm.has_captcha.then(captcha) });
        let game = make_game(&store, &ambient, &scenario, (&mode, &rest), limits).await;
        let (game_id, namespace_id) = (&game.game.game_id, &game.namespaces[0].namespace_id);
        let credential =
            |kind| keys.issue_credential(kind, &Credential::fresh(game_id, namespace_id, &ambient));
        let (token, server_token) = (credential(CredentialKind::Public), credential(CredentialKind::Server));
        for (number, places) in PLACES.into_iter().enumerate() {
            let store = Store::new(client(&database, Asker::GameServer, number), table_names());
            let server = GameServer::new(number, store, &keys, &ambient, &server_token);
            server.register("region-0", places).await;
            tokio::spawn(server.send_heartbeats(tokio::time::Instant::now() + Duration::from_secs(5)));
        }
        sleep(SETTLING).await;
        database.slow_down(storm.slowness);
        let lobby_server = Store::new(client(&database, Asker::LobbyServer, 0), table_names());
        let host = LobbyHost::new(lobby_server, &keys, &ambient, game.game.game_id.clone());
        Self {
            storm,
            machine: Machine::new(database, keys, ambient),
            store,
            namespace_id: namespace_id.clone(),
            token,
            random: Mutex::new(random),
            find: Function::default(),
            create: Function::default(),
            join: Function::default(),
            list: Function::default(),
            host,
            under_way: AtomicUsize::new(0),
            outcome: Mutex::default(),
            seen: Mutex::default(),
        }
    }

    /// Lets both crowds come, evenly, each in an order of its own.
    async fn play(self: &Arc<Self>) {
        let start = tokio::time::Instant::now();
        let mut due: Vec<(u64, bool)> = Vec::new();
        {
            let mut random = lock(&self.random);
            let hostile = if self.storm.crowd == Crowd::None { 0 } else { HOSTILE_RATE };
            for (rate, is_honest) in [(HONEST_RATE, true), (hostile, false)] {
                let count = rate * self.storm.seconds;
                due.extend((0..count).map(|_| (random.u64(..self.storm.seconds * 1_000), is_honest)));
            }
        }
        due.sort_unstable();
        for (nth, (at_ms, is_honest)) in due.into_iter().enumerate() {
            sleep_until(start + Duration::from_millis(at_ms)).await;
            let world = Arc::clone(self);
            self.under_way.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(async move {
                if is_honest {
                    world.honest(u32::try_from(nth).expect("small")).await;
                } else {
                    world.hostile().await;
                }
                world.under_way.fetch_sub(1, Ordering::Relaxed);
            });
        }
        sleep_until(start + Duration::from_secs(self.storm.seconds)).await;
    }

    /// The list as an honest player sees it, and the lobbies as they are.
    async fn judge(self: &Arc<Self>) {
        let mut vouched = BTreeSet::new();
        let (mut live, mut ghosts) = (0, 0);
        self.machine.database.inspect("LobbiesTable", |lobby| {
            if lobby.get("stage") == Some(&Value::S("ended".to_owned())) || number(lobby, "created_at") == 0 {
                return;
            }
            live += 1;
            if lobby.contains_key("connected_by") {
                if let Some(Value::S(id)) = lobby.get("lobby_id") {
                    vouched.insert(id.clone());
                }
            } else {
                ghosts += 1;
            }
        });
        let listed = self.listed().await;
        let mut outcome = lock(&self.outcome);
        (outcome.live, outcome.ghosts, outcome.listed) = (live, ghosts, listed.len());
        outcome.ghosts_listed = listed.iter().filter(|id| !vouched.contains(*id)).count();
    }

    async fn listed(&self) -> Vec<String> {
        let address = Ipv4Addr::new(192, 0, 2, 1);
        let (list, _) = self.machine.call(&self.list, &self.request(address, &json!({}))).await;
        list.expect("a list").lobbies.into_iter().map(|lobby| lobby.lobby_id.to_string()).collect()
    }

    fn request(&self, address: Ipv4Addr, body: &Json) -> Request {
        event_from(address, &[("authorization", &format!("Bearer {}", self.token))], body, &[]).into()
    }

    /// Counts an answer, and returns the seat that it gives.
    fn count(&self, answer: Result<FindLobbyResponse, Error>, usage: Usage) -> Option<(PlayerSeat, String)> {
        let mut outcome = lock(&self.outcome);
        outcome.calls_max = outcome.calls_max.max(usage.calls);
        match answer {
            Ok(found) => {
                outcome.seats.push(Cost::of(usage, 0));
                let Ok(Claims::Player(seat)) = self.machine.keys.verify_at_any_age(&found.player.token)
                else {
                    panic!("no player token");
                };
                Some((seat, found.player.token))
            }
            Err(error) => {
                *outcome.refused.entry(error.status_and_code().1).or_default() += 1;
                outcome.refusals.push(Cost::of(usage, 0));
                None
            }
        }
    }

    async fn honest(self: &Arc<Self>, nth: u32) {
        lock(&self.outcome).honest += 1;
        let address = Ipv4Addr::from(0x0a00_0000 + nth);
        let request = json!({ "game_modes": ["mode-0"] });
        if self.storm.has_captcha {
            self.pass_captcha(address).await;
        }
        let began_at = self.machine.ambient.now();
        for attempt in 0..ATTEMPTS {
            let (answer, usage) = self.machine.call(&self.find, &self.request(address, &request)).await;
            let found = self.count(answer, usage);
            {
                let mut outcome = lock(&self.outcome);
                outcome.honest_calls.push(usage.calls);
                if attempt == 0 {
                    let took = self.machine.ambient.now().since(began_at);
                    outcome.honest_ms.push(u64::try_from(took.as_millis()).expect("short"));
                }
                if found.is_some() {
                    outcome.seated += 1;
                    outcome.seated_at_once += u64::from(attempt == 0);
                }
            }
            let Some((seat, token)) = found else {
                self.pause(RETRY_AFTER_SECS).await;
                continue;
            };
            let (world, stay) = (Arc::clone(self), Duration::from_secs(self.storm.stay_secs));
            tokio::spawn(async move {
                world.pause(CONNECT_AFTER_SECS).await;
                match world.host.connect(&seat, &token).await {
                    Ok(()) => {
                        lock(&world.outcome).connected += 1;
                        sleep(stay).await;
                        let _left = world.host.disconnect(&seat, &token).await;
                    }
                    Err(error) => {
                        *lock(&world.outcome).lost.entry(error.status_and_code().1).or_default() += 1;
                    }
                }
            });
            return;
        }
    }

    async fn pass_captcha(&self, address: Ipv4Addr) {
        let Machine { keys, ambient, .. } = &self.machine;
        let client_id = ClientId::of(Some(address.into()), &self.namespace_id, keys.address_key());
        let client = Client { namespace_id: self.namespace_id.clone(), client_id };
        self.store.pass_captcha(&client, "answer", ambient.now()).await.expect("passed");
    }

    async fn pause(&self, seconds: RangeInclusive<f64>) {
        let (least, most) = seconds.into_inner();
        let drawn = lock(&self.random).f64();
        sleep(Duration::from_secs_f64(least + (most - least) * drawn)).await;
    }

    async fn hostile(self: &Arc<Self>) {
        lock(&self.outcome).hostile += 1;
        let (address, crowd, drawn) = {
            let mut random = lock(&self.random);
            let address = Ipv4Addr::from(0xc633_0000 + random.u32(..self.storm.addresses));
            let crowd = match self.storm.crowd {
                Crowd::Mixed => {
                    *random.choice(&[Crowd::Finds, Crowd::Tags, Crowd::Creates, Crowd::Joins]).expect("one")
                }
                crowd => crowd,
            };
            (address, crowd, random.u64(..))
        };
        let found = match crowd {
            Crowd::None | Crowd::Mixed => None,
            Crowd::Finds | Crowd::Tags => {
                let body = if crowd == Crowd::Tags {
                    json!({ "game_modes": ["mode-1"], "tags": { "party": drawn.to_string() } })
                } else {
                    json!({ "game_modes": ["mode-0"] })
                };
                let (answer, usage) = self.machine.call(&self.find, &self.request(address, &body)).await;
                self.count(answer, usage)
            }
            Crowd::Creates => {
                let body = json!({ "game_mode": "mode-1", "publicity": "private" });
                let (answer, usage) = self.machine.call(&self.create, &self.request(address, &body)).await;
                self.count(answer, usage)
            }
            Crowd::Joins => {
                if drawn % 50 == 0 || lock(&self.seen).is_empty() {
                    let listed = self.listed().await;
                    *lock(&self.seen) = listed;
                }
                let lobby_id = {
                    let seen = lock(&self.seen);
                    let nth = usize::try_from(drawn / 64).unwrap_or(0);
                    seen.get(nth % seen.len().max(1)).cloned()
                };
                let Some(lobby_id) = lobby_id else { return };
                let body = json!({ "lobby_id": lobby_id });
                let (answer, usage) = self.machine.call(&self.join, &self.request(address, &body)).await;
                self.count(answer, usage)
            }
        };
        if found.is_some() {
            lock(&self.outcome).hostile_seats += 1;
        }
    }
}

/// The storms of the table: each crowd, each number of addresses.
#[must_use]
pub fn storms() -> Vec<Storm> {
    let storm = Storm {
        crowd: Crowd::None,
        addresses: 1,
        has_captcha: false,
        per_client: 32,
        reservation_secs: 60,
        seconds: 60,
        stay_secs: 3_600,
        slowness: 1,
        seed: 1,
    };
    let mut storms = vec![storm];
    for crowd in [Crowd::Finds, Crowd::Tags, Crowd::Creates, Crowd::Joins, Crowd::Mixed] {
        storms.extend([16, 100, 200, 2_000].map(|addresses| Storm { crowd, addresses, ..storm }));
        storms.push(Storm { crowd, addresses: 2_000, has_captcha: true, ..storm });
    }
    storms
}
