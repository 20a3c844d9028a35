//! The setting of every run: the time, a game, and clients of the database.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use aws_sdk_dynamodb::Client;
use muster_local::{emulator::link::client_over, stack::table_names};
use serde_json::json;
use shared::{
    auth::keys::TokenKeys,
    base::{
        ambient::{Ambient, Timestamp},
        usage::Usage,
    },
    cloud::provision::{CreatedGame, NewGame, NewNamespace, create_game},
    function::{instance::Instance, operation::Operation},
    models::{
        errors::Error,
        game::{Region, StarterKind},
    },
    request::Request,
    store::{client::Store, meter::Meter},
};
use tokio::time::sleep;

use super::{
    database::Database,
    limits::COLD_START_MS,
    scenario::{Asks, RESERVATION_SECS, Scenario},
    traffic::Asker,
    value::Item,
};

/// When the simulated time begins: any time would do.
pub(crate) const BEGAN_AT: Timestamp = Timestamp(1_767_225_600_000);
/// From the fleet's registration to the first player, so that the indexes know the fleet.
pub(crate) const SETTLING: Duration = Duration::from_secs(3);

/// Plays in time that passes at once, with everything random from `seed`.
pub(crate) fn in_virtual_time<T>(seed: u64, play: impl Future<Output = T>) -> T {
    fastrand::seed(seed);
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().expect("a runtime");
    runtime.block_on(play)
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A client whose retries are its own to spend, as in an instance of its own: the SDK has all clients of a
/// process share their quota.
pub(crate) fn client(database: &Database, asker: Asker, number: usize) -> Client {
    use aws_sdk_dynamodb::config::retry::RetryPartition;
    let client = client_over(database.line(asker));
    let partition = RetryPartition::new(format!("{asker:?} {number} of {:?}", std::thread::current().id()));
    Client::from_conf(client.config().to_builder().retry_partition(partition).build())
}

pub(crate) fn number(lobby: &Item, name: &str) -> u64 {
    lobby.get(name).map_or(0, |value| value.to_whole().unsigned_abs())
}

/// A function: instances that have one request at a time, the one that was free last first.
pub(crate) struct Function<O>(Mutex<Vec<(Arc<O>, Meter)>>);

impl<O> Default for Function<O> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

/// What runs functions.
pub(crate) struct Machine {
    pub(crate) database: Database,
    pub(crate) keys: Arc<TokenKeys>,
    pub(crate) ambient: Ambient,
    instances: AtomicUsize,
    requests: AtomicU64,
}

impl Machine {
    pub(crate) fn new(database: Database, keys: Arc<TokenKeys>, ambient: Ambient) -> Self {
        Self { database, keys, ambient, instances: AtomicUsize::default(), requests: AtomicU64::default() }
    }

    /// Requests that it has run.
    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Sends a request to an instance that is free, or to a new one.
    pub(crate) async fn call<O: Operation>(
        &self,
        function: &Function<O>,
        request: &Request,
    ) -> (Result<O::Output, Error>, Usage) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let free = lock(&function.0).pop();
        let (operation, meter) = match free {
            Some(instance) => instance,
            None => {
                sleep(Duration::from_millis(COLD_START_MS)).await;
                let number = self.instances.fetch_add(1, Ordering::Relaxed);
                let meter = Meter::on();
                let store = Store::new(client(&self.database, Asker::Find, number), table_names());
                let store = store.metered(meter.clone());
                let instance = Instance::over(store, Arc::clone(&self.keys), self.ambient.clone());
                (Arc::new(O::start(&instance).expect("an operation")), meter)
            }
        };
        let before = meter.usage();
        let answer = operation.call(request).await;
        let usage = meter.usage() - before;
        lock(&function.0).push((operation, meter));
        (answer, usage)
    }
}

/// The game of `scenario`, whose modes have the fields of `extra` besides and whose version those of `rest`,
/// in a namespace that may hold so many lobbies and lets each client hold so many seats. If its version has
/// `servers`, each region has a starter.
pub(crate) async fn make_game(
    store: &Store,
    ambient: &Ambient,
    scenario: &Scenario,
    (extra, rest): (&serde_json::Value, &serde_json::Value),
    (lobby_count_max, max_players_per_client): (u32, u32),
) -> CreatedGame {
    let region = Region {
        display_name: "Frankfurt".to_owned(),
        provider_display_name: "Test".to_owned(),
        latitude: 50.0,
        longitude: 8.0,
        probe: None,
        starter: rest.get("servers").map(|_| StarterKind::Process),
    };
    let (modes, regions) = scenario.asks.modes_and_regions();
    let mut mode = json!({ "regions": regions, "max_players": scenario.capacity, "pool_shards": scenario.shards,
        "reservation_seconds": RESERVATION_SECS, "taggable": true, "allow_dynamic_max_players": true });
    if let Asks::Parties(largest) = scenario.asks {
        mode["party_size_max"] = largest.into();
    }
    for (name, value) in extra.as_object().into_iter().flatten() {
        mode[name] = value.clone();
    }
    let modes: BTreeMap<_, _> = modes.into_iter().map(|name| (name, mode.clone())).collect();
    let mut config = rest.clone();
    config["game_modes"] = json!(modes);
    let new = NewGame {
        name_id: "capacity".to_owned(),
        display_name: "Capacity".to_owned(),
        regions: regions.iter().map(|id| (id.parse().expect("a region"), region.clone())).collect(),
        version_name: "1".to_owned(),
        config: serde_json::from_value(config).expect("a configuration"),
        namespaces: vec![NewNamespace {
            name_id: "prod".to_owned(),
            display_name: "Production".to_owned(),
            lobby_count_max,
            max_players_per_client,
        }],
    };
    create_game(store, ambient, new).await.expect("a game")
}
