//! What players, game servers and operators do in a run: a sequence of requests that the seed determines,
//! overlapping and in bursts, around the times at which something expires.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use muster_local::{functions::Functions, template::FunctionProperties};
use serde_json::Value;
use shared::outside::endpoints::Outside;
use tokio::{sync::Notify, task::JoinSet, time::sleep};

use super::{
    chance::Chance,
    faults::is_of_repetitions,
    model::{Action, Lobby, NEVER, Stage},
    network::{Network, store_over},
    on_demand::{self, Yard},
    requests::{ANYBODY, Delivery, Instance, Request, tokens_of},
    wire::{Place, number},
    world::{SMALL, World},
};
use model::conditions::Write;

mod crowd;
mod deeds;

pub(crate) use crowd::Crowd;
use deeds::{Deed, crossings, deeds, favoured};

/// Clients of a run.
const CLIENTS: usize = 3;
/// How long requests are retried, in milliseconds: less than their responses are kept.
const REPEATED_FOR_MS: u64 = 300_000;
/// How long a hold counts before its seat is taken, in milliseconds.
const HOLD_PENDING_MS: u64 = 30_000;
/// How long a lobby may be starting, in milliseconds.
const STARTING_MAX_MS: u64 = 300_000;
/// How long before that limit a lobby server hurries, in milliseconds.
const LAST_MOMENT_MS: u64 = 50;
/// Maximum wait, in milliseconds, until another request crosses a write under suspicion.
const CROSSING_MS: u64 = 60;

/// A seat that a player was given.
#[derive(Clone, Debug)]
struct Player {
    namespace: usize,
    lobby: String,
    token: String,
}

/// A run's actors.
pub(crate) struct Workload {
    pub(crate) world: Arc<World>,
    pub(crate) network: Network,
    declared: Arc<BTreeMap<String, FunctionProperties>>,
    instances: Vec<Instance>,
    pub(crate) chance: Chance,
    /// Randomness for the callers and their retries.
    clients: Chance,
    /// Randomness for restarts of game servers and for requests that arrive late.
    lives: Chance,
    /// Randomness for the sizes of parties.
    parties: Chance,
    crowd: Crowd,
    /// Times that each server started.
    starts: Vec<u32>,
    /// Requests that game servers sent.
    said: Vec<Request>,
    /// Requests that may be retried, each with the time of its first attempt.
    repeatable: Vec<(u64, Request)>,
    deeds: Vec<(Deed, u64)>,
    /// The most frequent deeds on the item that a write under suspicion will change.
    favoured: &'static [Deed],
    /// Sequences of deeds on that item.
    crossings: &'static [&'static [Deed]],
    /// One in this many waits may be for an event hours away.
    far: u64,
    /// The longest other wait, in milliseconds.
    horizon: u64,
    /// Whether most waits end just as something expires.
    is_patient: bool,
    /// Whether no server sends heartbeats by itself.
    falls_silent: bool,
    /// Whether servers shrink and grow again at each registration.
    resizes: bool,
    /// Whether retries of a request come in pairs, and when the record of an earlier one expires.
    insists: bool,
    /// Whether most deeds use the item that a write under suspicion will change.
    interferes: bool,
    players: Arc<std::sync::Mutex<Vec<Player>>>,
    /// Which servers send heartbeats by themselves.
    beating: Vec<bool>,
    next_beat: Vec<u64>,
    running: JoinSet<()>,
    /// What starts servers on demand, if the world has some.
    pub(crate) yard: Option<Yard>,
}

impl Workload {
    pub(crate) fn new(
        world: World,
        network: Network,
        declared: Arc<BTreeMap<String, FunctionProperties>>,
        mut chance: Chance,
        (clients, lives, parties, yard, crowd): (Chance, Chance, Chance, Chance, Crowd),
        bias: Option<Write>,
    ) -> Self {
        let deeds = deeds(&mut chance, bias);
        let servers = world.plan.servers.len();
        // Their heartbeats go on all the time.
        let horizon = if world.plan.on_demand.is_some() { 100_000 } else { 400_000 };
        let is_patient = match bias {
            Some(Write::End | Write::GiveBackPlace | Write::HideServer) => true,
            Some(Write::HideFull) => world.plan.modes.iter().all(|mode| mode.max_players <= SMALL),
            Some(Write::Drain | Write::Reopen) => world.plan.is_slow_to_start,
            _ => false,
        };
        let mut workload = Self {
            world: Arc::new(world),
            network,
            declared,
            instances: Vec::new(),
            chance,
            clients,
            lives,
            parties,
            crowd,
            starts: vec![1; servers],
            said: Vec::new(),
            repeatable: Vec::new(),
            deeds,
            favoured: favoured(bias),
            crossings: crossings(bias),
            far: if bias == Some(Write::TakeOverSeat) { 4 } else { 24 },
            horizon,
            is_patient,
            falls_silent: bias == Some(Write::HideServer),
            resizes: bias == Some(Write::TakePlace),
            insists: bias.is_some_and(is_of_repetitions),
            interferes: bias.is_some(),
            players: Arc::default(),
            beating: vec![false; servers],
            next_beat: vec![0; servers],
            running: JoinSet::new(),
            yard: None,
        };
        for _ in 0..workload.world.plan.instances {
            let instance = workload.instance();
            workload.instances.push(instance);
        }
        workload.yard = on_demand::open(&workload, yard);
        workload
    }

    pub(crate) fn instance(&self) -> Instance {
        let World { keys, ambient, .. } = &*self.world;
        let declared = (*self.declared).clone();
        let (keys, ambient) = (Arc::clone(keys), ambient.clone());
        let store = store_over(&self.network);
        let functions = Functions::new(store, declared, keys, ambient, Outside::default());
        Instance::new(functions)
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.network.state().model.failure().is_some()
    }

    /// Plays the seed's whole sequence except the end.
    pub(crate) async fn run(&mut self) {
        for server in 0..self.world.plan.servers.len() {
            self.register(server, 7_777);
        }
        self.pass(40).await;
        for _ in 0..self.world.plan.actions {
            if self.has_failed() {
                return;
            }
            let focus = self.focus();
            if let Some((at, place)) = &focus
                && !self.chance.one_in(3)
                && let Some(crossing) = self.chance.pick(self.crossings)
            {
                self.cross(crossing, place, *at).await;
                continue;
            }
            let focus = focus.map(|(_, place)| place);
            let span = if focus.is_some() { self.chance.range(0..=40) } else { self.span() };
            if self.wait(span, self.interferes).await {
                continue;
            }
            let deed = match focus.as_ref().and_then(|_| self.chance.pick(self.favoured)) {
                Some(deed) if !self.chance.one_in(3) => *deed,
                _ => self.chance.weighted(&self.deeds),
            };
            self.act(deed, focus.as_ref());
            self.storm();
            self.repeat();
            self.live();
            self.start_lobbies();
            self.forget();
        }
        self.pass(300).await;
    }

    /// Lets `ms` pass, in which the living servers send heartbeats.
    pub(crate) async fn pass(&mut self, ms: u64) {
        self.wait(ms, false).await;
    }

    /// The same, but stops early if `is_alert` and a slow write under suspicion is sent. Returns whether it
    /// stopped early.
    async fn wait(&mut self, ms: u64, is_alert: bool) -> bool {
        let alarm = self.network.alarm();
        let until = self.now() + ms;
        // A server that has nothing to do for long is one that fell silent.
        if ms > 40_000 {
            for server in 0..self.beating.len() {
                let lease = self.world.plan.servers[server].lease_secs.unwrap_or(u64::MAX);
                self.beating[server] &= lease.saturating_mul(8_000) > ms;
            }
        }
        loop {
            let now = self.now();
            let due = (0..self.beating.len())
                .filter(|server| {
                    self.beating[*server] && self.world.plan.servers[*server].lease_secs.is_some()
                })
                .map(|server| (self.next_beat[server].max(now), server))
                .min();
            let Some((at, server)) = due.filter(|(at, _)| *at <= until) else { break };
            if is_raised(&alarm, at - now, is_alert).await {
                return true;
            }
            let lease_ms = self.world.plan.servers[server].lease_secs.unwrap_or(1) * 1_000;
            self.next_beat[server] = at + lease_ms / 3 + self.chance.range(0..=lease_ms / 8);
            self.send(Request::heartbeat(&self.world, server, &self.start(server)));
        }
        let now = self.now();
        is_raised(&alarm, until.saturating_sub(now), is_alert).await
    }

    /// Waits for everything under way.
    pub(crate) async fn join(&mut self) {
        while self.running.join_next().await.is_some() {}
    }

    /// Makes every server send heartbeats by itself, or none.
    pub(crate) fn beat(&mut self, is_beating: bool) {
        self.beating.fill(is_beating);
    }

    /// Whether something is under way.
    pub(crate) fn is_busy(&mut self) -> bool {
        while self.running.try_join_next().is_some() {}
        !self.running.is_empty()
    }

    pub(crate) fn now(&self) -> u64 {
        self.network.state().now()
    }

    /// The start of a server that runs now.
    pub(crate) fn start(&self, server: usize) -> String {
        format!("start-{}", self.starts[server])
    }

    /// Draws a pause: mostly none or a short one, sometimes until just about the time at which something
    /// expires.
    fn span(&mut self) -> u64 {
        match self.chance.below(20) {
            0..=9 if !self.is_patient || self.chance.one_in(2) => self.chance.range(0..=6),
            10..=13 => self.chance.range(5..=60),
            14 => self.chance.range(100..=900),
            15 => self.chance.range(1_000..=2_600),
            _ => {
                let is_far = self.chance.one_in(self.far) && self.yard.is_none();
                let horizon = if is_far { u64::MAX } else { self.horizon };
                let times = self.lapses(horizon);
                let spread = self.chance.range(0..=40);
                self.chance.pick(&times).map_or(3, |span| (span + spread).saturating_sub(20))
            }
        }
    }

    /// Times until something expires, below `horizon`; connected seats expire after hours.
    fn lapses(&self, horizon: u64) -> Vec<u64> {
        let state = self.network.state();
        let now = state.model.time(state.now());
        let mut times = Vec::new();
        for lobby in state.model.lobbies.values().filter(|lobby| lobby.lives()) {
            times.extend(lobby.entries().map(|(_, until)| until));
            times.push(lobby.lease_until);
            times.extend(lobby.joinable_from);
            if lobby.stage == Stage::Starting {
                times.push(lobby.created_at + STARTING_MAX_MS);
            }
            let idle_from = lobby.vacated_at.unwrap_or(lobby.created_at);
            times.push(idle_from + lobby.idle_ms);
        }
        let servers = state.history.table("ServersTable");
        times.extend(servers.filter_map(|(_, server)| number(&server["lease_until"])));
        if self.insists {
            times.extend(state.history.table("ClientsTable").flat_map(|(_, item)| noted_until(item)));
        }
        let spans = times.into_iter().filter(|time| *time > now && *time < NEVER).map(|time| time - now);
        spans.filter(|span| *span < horizon).collect()
    }

    /// Mostly the item that a delayed write under suspicion will change, if there is one, and when it
    /// arrives.
    fn focus(&mut self) -> Option<(u64, Place)> {
        if !self.interferes {
            return None;
        }
        let threatened = self.chance.pick(self.network.state().threatened()).cloned();
        threatened.filter(|_| !self.chance.one_in(4))
    }

    /// Does each of `crossing` in turn to `place`, soon or just before a write arrives there at `arrives_at`.
    async fn cross(&mut self, crossing: &[Deed], place: &Place, arrives_at: u64) {
        let left = arrives_at.saturating_sub(self.now());
        let before = self.chance.range(0..=left.min(CROSSING_MS));
        let span = if self.chance.one_in(2) { left - before } else { before };
        self.pass(span).await;
        for deed in crossing {
            if *deed == Deed::Wait {
                let left = arrives_at.saturating_sub(self.now());
                self.pass(left + 1).await;
                continue;
            }
            let number = self.network.state().model.operations.len();
            self.act(*deed, Some(place));
            for _ in 0..CROSSING_MS / 4 {
                self.pass(4).await;
                if self.network.state().model.has_ended(number) {
                    break;
                }
            }
        }
    }

    /// Lobby servers say ready, mostly soon.
    fn start_lobbies(&mut self) {
        let is_any = !self.world.plan.is_slow_to_start || self.chance.one_in(12);
        let now = self.world.ambient.now().0;
        // Or later: that it is too late is an answer, too.
        let is_last_moment = |lobby: &Lobby| lobby.created_at + STARTING_MAX_MS < now + LAST_MOMENT_MS;
        let interferes = self.interferes;
        let starting = self.lobbies(|lobby| {
            let may_be = is_any || (interferes && is_last_moment(lobby));
            lobby.stage == Stage::Starting && lobby.awaited_until.is_none() && may_be
        });
        let world = Arc::clone(&self.world);
        for (namespace, lobby) in starting {
            if self.chance.one_in(2) {
                self.send(Request::ready(&world, namespace, &lobby));
            }
        }
    }

    /// An instance may be recycled at any time.
    fn forget(&mut self) {
        let rate = self.network.state().faults.forget;
        if self.chance.permille(rate) {
            let instance = self.chance.below(self.instances.len());
            self.network.state().note(&format!("instance {instance} begins anew"));
            self.instances[instance] = self.instance();
        }
    }

    pub(crate) fn lobbies(&self, fits: impl Fn(&Lobby) -> bool) -> Vec<(usize, String)> {
        let state = self.network.state();
        let namespace = |lobby: &Lobby| {
            state.model.namespaces.iter().position(|namespace| namespace.id == lobby.namespace).unwrap_or(0)
        };
        let lobbies = state.model.lobbies.values().filter(|lobby| fits(lobby));
        lobbies.map(|lobby| (namespace(lobby), lobby.id.clone())).collect()
    }

    /// Sends a request again that was sent within five minutes.
    fn repeat(&mut self) {
        let now = self.now();
        self.repeatable.retain(|(since, _)| now - since < REPEATED_FOR_MS);
        let (one_in, deliveries) = if self.insists { (2, 2) } else { (3, 1) };
        if self.clients.one_in(one_in)
            && let Some((_, request)) = self.clients.pick(&self.repeatable).cloned()
        {
            for _ in 0..deliveries {
                self.deliver(request.clone(), 0);
            }
        }
    }

    /// Sends a request to some instance, perhaps twice. A request for a seat gets a client and perhaps a key.
    pub(crate) fn send(&mut self, request: Request) {
        let mut request = request;
        if request.asks_for_seat() && request.client == ANYBODY {
            request = request.from(2 + self.clients.below(CLIENTS) as u8);
            let largest = self.world.plan.party_size_max;
            if largest > 1 && !self.parties.one_in(3) {
                request = request.of_party(self.parties.range(2..=largest));
            }
            if self.world.plan.has_keys && !self.clients.one_in(3) {
                request = request.keyed(format!("key-{}", self.clients.range(0..=u64::MAX)));
                self.repeatable.push((self.now(), request.clone()));
            }
        }
        if matches!(
            request.action,
            Action::Register { .. } | Action::Heartbeat { .. } | Action::Deregister { .. }
        ) {
            self.said.push(request.clone());
        }
        let faults = self.network.state().faults.clone();
        if self.chance.permille(faults.asked_twice) {
            let delay = self.chance.weighted(&[(0, 1), (3, 1), (40, 1), (1_500, 1)]);
            self.deliver(request.clone(), delay);
        }
        self.deliver(request, 0);
    }

    fn deliver(&mut self, request: Request, delay_ms: u64) {
        let instance = self.chance.below(self.instances.len());
        let handler = self.instances[instance].handler(request.function);
        let crash = self.network.state().faults.crash;
        let polls_left = self.chance.permille(crash).then(|| 1 + self.chance.below(40) as u32);
        let namespace = request.namespace;
        let delivery = Delivery { request, instance, handler, polls_left };
        let seats = self.crowd.seats_of(delivery.request.client).unwrap_or(&self.players);
        let (network, world, players) = (self.network.clone(), Arc::clone(&self.world), Arc::clone(seats));
        self.running.spawn(async move {
            sleep(Duration::from_millis(delay_ms)).await;
            let Some(answer) = delivery.carry_out(&world, &network).await else { return };
            let Some(lobby) = answer.body.pointer("/lobby/lobby_id").and_then(Value::as_str) else { return };
            let tokens = tokens_of(&answer.body).into_iter();
            let seated = tokens.map(|token| Player { namespace, lobby: lobby.to_owned(), token });
            players.lock().expect("no panic").extend(seated);
        });
    }
}

/// Waits `ms`, or, if `is_alert`, until `alarm` is notified. Returns whether it was.
async fn is_raised(alarm: &Notify, ms: u64, is_alert: bool) -> bool {
    let time = sleep(Duration::from_millis(ms));
    if !is_alert {
        time.await;
        return false;
    }
    tokio::select! {
        biased;
        () = time => false,
        () = alarm.notified() => true,
    }
}

/// Expiry times in a client's item: the lease of a run, and each hold whose seat is not taken.
fn noted_until(item: &Value) -> Vec<u64> {
    let holds = item.as_object().into_iter().flatten().filter(|(name, _)| name.starts_with("seat_"));
    let since = holds.filter_map(|(_, hold)| hold["S"].as_str()?.rsplit('~').next()?.parse::<u64>().ok());
    since.map(|since| since + HOLD_PENDING_MS).chain(number(&item["lease_until"])).collect()
}
