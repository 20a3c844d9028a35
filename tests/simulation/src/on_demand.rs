//! Game servers on demand in a run: what the worlds that have them say, and the queue that has them looked
//! at. The queue delivers at least once: late, twice, and again where a look crashed or failed.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde_json::{Value, json};
use shared::{
    hosting::launching::{Launching, Next},
    models::{errors::Error, ids::ServerKey, server::Server},
};
use tokio::{
    sync::Notify,
    time::{sleep, timeout},
};

use super::{
    chance::Chance,
    model::{Action, Operation, on_demand::Rules},
    network::{CURRENT, Network, store_over},
    requests::{Instance, Mortal, Request},
    workload::Workload,
    world::World,
};
use model::conditions::Write;

mod processes;

use processes::{Process, SimulatedStarter};

/// How long the function may take, and how long after a delivery that failed comes the next one.
const LOOK_MAX: Duration = Duration::from_secs(20);
const AGAIN_MS: u64 = 30_000;
/// From the last departure until nothing may be left, beside the idle time and that of a start: the longest
/// time that failures block a nursery, after which finds request servers again.
const AT_REST_MS: u64 = 960_000;

/// Game servers on demand of a world.
#[derive(Clone, Debug)]
pub(crate) struct OnDemand {
    /// The build of each version.
    builds: [u32; 2],
    pub(crate) capacity: u64,
    pub(crate) server_count_max: u64,
    pub(crate) start_secs: u64,
    pub(crate) idle_secs: u64,
    /// Whether their lobbies are ready at once.
    is_auto_ready: bool,
    /// Of a thousand tries of a start: refused for good, and for now.
    refused: u64,
    not_now: u64,
    /// Of a thousand processes: those that never register, that end before, and that end some time after.
    mute: u64,
    stillborn: u64,
    mortal: u64,
    /// Of a thousand deliveries: late ones, and those that come twice.
    late: u64,
    twice: u64,
}

impl OnDemand {
    pub(crate) fn drawn(chance: &mut Chance, bias: Option<Write>) -> Self {
        let mut often = |most: u64| if chance.one_in(2) { chance.range(1..=most) } else { 0 };
        let [refused, not_now, mute, stillborn, mortal, late, twice] =
            [150, 400, 200, 200, 300, 300, 300].map(&mut often);
        let failing = matches!(bias, Some(Write::FailLaunch | Write::NoteFailedStart | Write::BlockNursery));
        Self {
            builds: if chance.one_in(3) { [1, 2] } else { [1, 1] },
            capacity: chance.range(1..=4),
            server_count_max: chance.range(1..=4),
            start_secs: chance.weighted(&[(5, 2), (10, 2), (20, 1)]),
            idle_secs: chance.weighted(&[(5, 2), (20, 1), (60, 1)]),
            is_auto_ready: chance.one_in(2),
            refused: if failing { 400 } else { refused },
            not_now,
            mute: if failing { 300 } else { mute },
            stillborn,
            mortal: if bias == Some(Write::RetireLaunched) { 700 } else { mortal },
            late,
            twice,
        }
    }

    pub(crate) fn config(&self, version: usize) -> Value {
        json!({
            "build": self.builds[version],
            "capacity": self.capacity,
            "server_count_max": self.server_count_max,
            "start_seconds": self.start_secs,
            "idle_seconds": self.idle_secs,
        })
    }

    /// The build of a server that runs all the time.
    pub(crate) fn build_of(&self, server: usize) -> u32 {
        self.builds[server % self.builds.len()]
    }

    /// What the model judges by.
    pub(crate) fn rules(&self, builds: &BTreeMap<String, String>) -> Rules {
        let Self { capacity, server_count_max, .. } = *self;
        Rules { capacity, server_count_max, builds: builds.clone() }
    }

    /// The same, where nothing goes wrong any more.
    fn calm(&self) -> Self {
        let (refused, not_now, mute, stillborn, mortal, late, twice) = (0, 0, 0, 0, 0, 0, 0);
        Self { refused, not_now, mute, stillborn, mortal, late, twice, ..self.clone() }
    }
}

/// Something that happens at its time.
#[derive(Clone, Debug)]
enum Due {
    /// A look at a server after so many tries.
    Look { server: String, tries: u32 },
    /// The starter reports that a process ended by itself.
    Ended { server: String, start: String },
    /// A process registers, sends a heartbeat or ends.
    Turn { start: String },
}

/// What is shared by queue, starter and processes.
struct Floor {
    plan: OnDemand,
    is_calm: bool,
    chance: Chance,
    due: BTreeMap<(u64, u64), Due>,
    /// Notified of what becomes due.
    changed: Arc<Notify>,
    numbered: u64,
    processes: BTreeMap<String, Process>,
}

/// A handle to them.
#[derive(Clone)]
pub(crate) struct Yard(Arc<Mutex<Floor>>);

impl Floor {
    fn push(&mut self, at: u64, due: Due) {
        self.numbered += 1;
        self.due.insert((at, self.numbered), due);
        self.changed.notify_one();
    }

    /// Has a message delivered at `at` or later, perhaps twice.
    fn send(&mut self, at: u64, due: &Due) {
        let deliveries = if self.chance.permille(self.plan.twice) { 2 } else { 1 };
        for _ in 0..deliveries {
            let is_late = self.chance.permille(self.plan.late);
            let lag = if is_late { self.chance.range(500..=40_000) } else { self.chance.range(10..=300) };
            self.push(at + lag, due.clone());
        }
    }
}

impl Yard {
    fn floor(&self) -> MutexGuard<'_, Floor> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Processes that run, by their starts, and their servers.
    pub(crate) fn running(&self) -> Vec<(String, String)> {
        let floor = self.floor();
        let running = floor.processes.iter().filter(|(_, process)| !process.is_over);
        running.map(|(start, process)| (start.clone(), process.server.clone())).collect()
    }

    /// Nothing goes wrong any more.
    pub(crate) fn calm_down(&self) {
        let mut floor = self.floor();
        floor.plan = floor.plan.calm();
        floor.is_calm = true;
    }
}

/// Looks after the servers on demand of a run, and is their processes.
struct Keeper {
    world: Arc<World>,
    network: Network,
    yard: Yard,
    launching: Arc<Launching<SimulatedStarter>>,
    instance: Instance,
    number: usize,
}

/// Opens the yard of `workload`, if its world has servers on demand.
pub(crate) fn open(workload: &Workload, mut chance: Chance) -> Option<Yard> {
    let plan = workload.world.plan.on_demand.clone()?;
    let (world, network) = (Arc::clone(&workload.world), workload.network.clone());
    let chance = chance.fork();
    let (due, processes) = (BTreeMap::new(), BTreeMap::new());
    let changed = Arc::clone(&network.state().stage_changed);
    let floor = Floor { plan, is_calm: false, chance, due, changed, numbered: 0, processes };
    let yard = Yard(Arc::new(Mutex::new(floor)));
    let starter = SimulatedStarter { network: network.clone(), yard: yard.clone() };
    let (keys, ambient, url) = (Arc::clone(&world.keys), world.ambient.clone(), "http://sim".to_owned());
    let launching = Arc::new(Launching::new(store_over(&network), keys, ambient, url, starter));
    let (instance, number) = (workload.instance(), world.plan.instances);
    let keeper = Keeper { world, network, yard: yard.clone(), launching, instance, number };
    tokio::spawn(keeper.keep());
    Some(yard)
}

impl Keeper {
    async fn keep(mut self) {
        let changed = Arc::clone(&self.network.state().stage_changed);
        loop {
            let (now, changes) = {
                let mut state = self.network.state();
                (state.now(), std::mem::take(&mut state.stages))
            };
            let next = {
                let mut floor = self.yard.floor();
                for server in changes {
                    floor.send(now, &Due::Look { server, tries: 0 });
                }
                floor.due.first_key_value().map(|((at, _), _)| *at)
            };
            match next {
                Some(at) if at <= now => {
                    let due = self.yard.floor().due.pop_first();
                    if let Some((_, due)) = due {
                        self.carry_out(due);
                    }
                }
                Some(at) => tokio::select! {
                    biased;
                    () = changed.notified() => {}
                    () = sleep(Duration::from_millis(at - now)) => {}
                },
                None => changed.notified().await,
            }
        }
    }

    fn carry_out(&mut self, due: Due) {
        match due {
            Due::Turn { start } => self.turn(start),
            Due::Look { .. } | Due::Ended { .. } => {
                let (network, yard, launching) =
                    (self.network.clone(), self.yard.clone(), Arc::clone(&self.launching));
                let (world, number) = (Arc::clone(&self.world), self.number);
                tokio::spawn(async move {
                    let next = look(&world, &network, &launching, number, &due).await;
                    let now = network.state().now();
                    match (next, due) {
                        (Some(Ok(Next::Nothing)), _) => {}
                        (
                            Some(Ok(Next::Look { after, tries })),
                            Due::Look { server, .. } | Due::Ended { server, .. },
                        ) => {
                            let seconds =
                                u64::try_from(after.as_millis().div_ceil(1_000)).unwrap_or(u64::MAX);
                            yard.floor().send(now + seconds * 1_000, &Due::Look { server, tries });
                        }
                        (_, due) => yard.floor().send(now + AGAIN_MS, &due),
                    }
                });
            }
        }
    }
}

/// Has the function look at a server; `None` if it crashed or took too long.
async fn look(
    world: &World,
    network: &Network,
    launching: &Launching<SimulatedStarter>,
    instance: usize,
    due: &Due,
) -> Option<Result<Next, Error>> {
    let (Due::Look { server, .. } | Due::Ended { server, .. }) = due else { return None };
    let key: ServerKey = server.clone().try_into().ok()?;
    let action = Action::Look { server: server.clone() };
    let (number, polls_left) = {
        let mut state = network.state();
        let of = (instance, world.namespace_of(key.namespace_id.as_str()));
        let operation = Operation::new("start-server", of, action, state.now());
        let number = state.model.began(operation);
        let name = state.model.name(number);
        state.note(&format!("{name} {due:?}"));
        let crash = state.faults.crash;
        (number, state.chance.permille(crash).then(|| 1 + state.chance.below(40) as u32))
    };
    let work = async {
        match due {
            Due::Ended { start, .. } => {
                let is_it = |seen: &Server| seen.start_id.as_ref().is_some_and(|seen| seen.as_str() == start);
                launching.process_ended(&key, is_it, "it exited").await
            }
            Due::Look { tries, .. } => launching.look(&key, *tries).await,
            Due::Turn { .. } => Ok(Next::Nothing),
        }
    };
    let running = CURRENT.scope(number, timeout(LOOK_MAX, work));
    let done = Mortal::new(running, polls_left, network.clone(), number).await.and_then(Result::ok);
    let mut state = network.state();
    state.model.operations[number].has_ended = true;
    let name = state.model.name(number);
    state.note(&format!("{name} = {done:?}"));
    if let Some(Err(Error::Bug(what))) = &done {
        state.model.fail("I3", format!("a look at server {server}: {what}"));
    }
    done
}

impl Workload {
    /// I17, I18: once nothing goes wrong, nobody waits on, and nothing runs without lobbies.
    pub(crate) async fn empty_yard(&mut self) {
        let (Some(yard), Some(plan)) = (self.yard.clone(), self.world.plan.on_demand.clone()) else { return };
        yard.calm_down();
        for (namespace, lobby) in self.lobbies(|lobby| lobby.lives()) {
            self.send(Request::end(&Arc::clone(&self.world), namespace, &lobby));
            self.join().await;
        }
        self.pass((plan.idle_secs + plan.start_secs) * 1_000 + AT_REST_MS).await;
        self.beat(true);
        let running = yard.running();
        let mut state = self.network.state();
        let state = &mut *state;
        let now = state.now();
        state.model.check_at_rest(&running, now, &state.history);
    }
}
