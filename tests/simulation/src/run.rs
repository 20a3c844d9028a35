//! One run of a seed: what it is made of, and what became of it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, LazyLock},
};

use muster_local::{
    emulator::in_process::InProcess,
    stack::TEMPLATE,
    template::{FunctionProperties, Template},
};
use shared::base::ambient::Timestamp;

use harness::virtual_time::virtual_ambient;
use model::conditions::{Condition, Write};

use crate::{
    chance::Chance,
    faults::Faults,
    history::History,
    model::Failure,
    network::{Network, State, store_over},
    trace::Trace,
    workload::{Crowd, Workload},
    world::{Plan, World},
};

/// The tables' time at which every run begins: the first day of 2026.
const EPOCH: Timestamp = Timestamp(1_767_225_600_000);

/// Make other seeds of a run's.
const CLIENTS: u64 = 0x5eed_0f5e_a75e_a7e2;
const LIVES: u64 = 0x11fe_50f5_e12e_2511;
const PARTIES: u64 = 0x9a27_1e50_f5ea_7e22;
const YARD: u64 = 0xca11_ab1e_5e2e_e25f;
const CROWD: u64 = 0xbad0_c20d_5707_2e5e;

static PARSED: LazyLock<Parsed> = LazyLock::new(|| {
    let template = Template::parse(TEMPLATE).expect("the template");
    Parsed { tables: template.tables, functions: Arc::new(template.functions) }
});

struct Parsed {
    tables: Vec<muster_local::template::Table>,
    functions: Arc<BTreeMap<String, FunctionProperties>>,
}

/// How a seed is run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// The condition that every write goes without.
    pub without: Option<Condition>,
    /// The write that the run provokes more often; by default that of `without`.
    pub bias: Option<Write>,
    /// Texts, separated by `|`, of known failures to ignore, to look for others.
    pub tolerated: Option<&'static str>,
    /// The most things that are done before a run settles.
    pub actions_max: Option<u64>,
    /// Whether the whole trace is kept.
    pub keeps_trace: bool,
    /// Whether everything sent and answered is digested.
    pub has_digest: bool,
}

/// What became of a run.
#[derive(Debug)]
pub struct Outcome {
    /// The invariant that did not hold, if there is one.
    pub failure: Option<Failure>,
    /// What happened: the last lines, or all.
    pub trace: Vec<String>,
    /// A digest of everything that happened.
    pub digest: u64,
    /// Conditions that were sent.
    pub seen: BTreeSet<Condition>,
    /// Calls of the database.
    pub calls: u64,
    /// How operations were answered, by function and code.
    pub outcomes: BTreeMap<(&'static str, String), u64>,
}

/// Runs `seed`.
///
/// # Panics
/// When the simulation itself is wrong.
#[must_use]
pub fn run(seed: u64, options: &Options) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    fastrand::seed(seed);
    let network = runtime.block_on(play(seed, options));
    // What is still under way goes with the runtime.
    drop(runtime);
    let state = network.into_state().expect("nothing else holds the run");
    let State { model, trace, seen, calls, .. } = state;
    let (trace, digest) = trace.into_parts();
    Outcome { failure: model.failure().cloned(), trace, digest, seen, calls, outcomes: model.outcomes }
}

async fn play(seed: u64, options: &Options) -> Network {
    let Parsed { tables, functions } = &*PARSED;
    let mut chance = Chance::new(seed);
    let bias = options.bias.or(options.without.map(|condition| condition.write));
    let mut plan = Plan::drawn(&mut chance, bias);
    // Of a source of its own: what else happens in a run is as it is without.
    let mut clients = Chance::new(seed ^ CLIENTS);
    plan = plan.with_clients(&mut clients, bias);
    let mut lives = Chance::new(seed ^ LIVES);
    plan = plan.with_restarts(&mut lives, bias);
    let mut parties = Chance::new(seed ^ PARTIES);
    plan = plan.with_parties(&mut parties, bias);
    let mut yard = Chance::new(seed ^ YARD);
    plan = plan.with_servers_on_demand(&mut yard, bias);
    let mut crowd = Chance::new(seed ^ CROWD);
    plan = plan.with_crowd(&mut crowd, bias);
    plan.actions = plan.actions.min(options.actions_max.unwrap_or(u64::MAX));
    let faults = Faults::drawn(&mut chance).with_bias(bias);
    let database = InProcess::new(tables).expect("tables");
    let trace = Trace::new(options.keeps_trace, options.has_digest);
    let mut state = State::new(database, History::new(tables), trace, chance.fork(), options.without);
    state.model.epoch = EPOCH.0;
    state.model.tolerated = options.tolerated;
    let network = Network::new(state);

    let entropy = std::sync::Mutex::new(chance.fork());
    let ambient = virtual_ambient(EPOCH, move |bytes| entropy.lock().expect("no panic").fill(bytes));
    let world = World::make(plan, &store_over(&network), &ambient).await;
    {
        let mut state = network.state();
        for (namespace, cap) in world.namespaces.iter().zip(&world.plan.caps) {
            let (id, holds_max) = (namespace.id.to_string(), world.plan.holds_max);
            state.model.add_namespace(id, *cap, holds_max, world.versions[0].clone());
        }
        let modes = world.plan.modes.iter();
        let capacities = modes.map(|mode| (mode.name.to_owned(), (mode.max_players, mode.direct)));
        state.model.capacities = capacities.collect();
        state.model.on_demand = world.plan.on_demand.as_ref().map(|plan| plan.rules(&world.builds).into());
        state.model.party_size_max = world.plan.party_size_max;
        state.model.has_faults = true;
        state.note(&format!("the world: {:?}", world.plan));
        state.note(&format!("its faults: {faults:?}"));
        state.faults = faults;
    }
    let chances = (clients, lives, parties, yard, Crowd::new(world.plan.crowd, crowd));
    let mut workload =
        Workload::new(world, network.clone(), Arc::clone(functions), chance.fork(), chances, bias);
    // Every read must find the world, however stale.
    workload.pass(3_000).await;
    workload.run().await;
    if !workload.has_failed() {
        workload.settle().await;
    }
    network
}

/// The command that replays `seed`.
#[must_use]
pub fn replay(seed: u64, options: &Options) -> String {
    let without = options.without.map(|condition| format!(" --without \"{condition}\"")).unwrap_or_default();
    // A run without a condition leads to its write by itself.
    let bias = options.bias.filter(|bias| options.without.is_none_or(|condition| condition.write != *bias));
    let bias = bias.map(|write| format!(" --bias \"{write}\"")).unwrap_or_default();
    format!("cargo run --profile bench --bin simulation -- --seed {seed}{bias}{without}")
}

/// A failure as it is printed after its trace.
#[must_use]
pub fn report(seed: u64, options: &Options, failure: &Failure) -> String {
    let Failure { invariant, what } = failure;
    format!("seed {seed} breaks {invariant}: {what}\nreplay: {}", replay(seed, options))
}
