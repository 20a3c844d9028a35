//! What players, game servers and operators do in a run: a seed's own sequence of requests, overlapping and in bursts,
//! around the moments at which something lapses.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use muster_local::{functions::Functions, template::FunctionProperties};
use serde_json::Value;
use shared::{screening::Outside, store::Store};
use tokio::{task::JoinSet, time::sleep};

use super::{
    chance::Chance,
    faults::is_of_repetitions,
    model::{Asked, Lobby, NEVER, Operation, Stage},
    network::{CURRENT, Network},
    requests::{ANYBODY, Instance, Mortal, Request, read_answer},
    wire::{Place, number},
    world::World,
};
use crate::conditions::Write;

/// Clients of a run.
const CLIENTS: usize = 3;
/// For how long requests are repeated, in milliseconds: less than their answers are kept.
const REPEATED_FOR_MS: u64 = 300_000;
/// For how long a hold counts whose seat is not taken, in milliseconds.
const HOLD_PENDING_MS: u64 = 30_000;

/// A seat that a player was given.
#[derive(Clone, Debug)]
struct Player {
    namespace: usize,
    lobby: String,
    token: String,
}

/// Kinds of things to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deed {
    Find,
    FindOnly,
    Burst,
    Join,
    Create,
    Rush,
    Connect,
    Disconnect,
    Ready,
    Close,
    Reopen,
    End,
    SetState,
    Beat,
    Silence,
    Register,
    Deregister,
    SwitchVersion,
}

/// A run's actors.
pub(crate) struct Workload {
    pub(crate) world: Arc<World>,
    pub(crate) network: Network,
    store: Store,
    declared: Arc<BTreeMap<String, FunctionProperties>>,
    instances: Vec<Instance>,
    pub(crate) chance: Chance,
    /// Who asks, and what is repeated.
    clients: Chance,
    /// Requests that may be repeated, each since when.
    repeatable: Vec<(u64, Request)>,
    deeds: Vec<(Deed, u64)>,
    /// What is done most with what the write under suspicion is on its way to.
    favoured: &'static [Deed],
    /// One in how many waits may be for something hours away.
    far: u64,
    /// Whether servers shrink and grow again at each registration.
    resizes: bool,
    /// Whether repetitions of a request come by two at once, and when what an earlier one noted lapses.
    insists: bool,
    /// Whether what the write under suspicion is on its way to is done most with.
    interferes: bool,
    players: Arc<std::sync::Mutex<Vec<Player>>>,
    /// Which servers beat by themselves.
    beating: Vec<bool>,
    next_beat: Vec<u64>,
    running: JoinSet<()>,
}

impl Workload {
    pub(crate) fn new(
        world: World,
        network: Network,
        store: Store,
        declared: Arc<BTreeMap<String, FunctionProperties>>,
        mut chance: Chance,
        clients: Chance,
        bias: Option<Write>,
    ) -> Self {
        let deeds = deeds(&mut chance, bias);
        let servers = world.plan.servers.len();
        let mut workload = Self {
            world: Arc::new(world),
            network,
            store,
            declared,
            instances: Vec::new(),
            chance,
            clients,
            repeatable: Vec::new(),
            deeds,
            favoured: favoured(bias),
            far: if bias == Some(Write::TakeOverSeat) { 4 } else { 24 },
            resizes: bias == Some(Write::TakePlace),
            insists: bias.is_some_and(is_of_repetitions),
            interferes: bias.is_some(),
            players: Arc::default(),
            beating: vec![false; servers],
            next_beat: vec![0; servers],
            running: JoinSet::new(),
        };
        for _ in 0..workload.world.plan.instances {
            let instance = workload.instance();
            workload.instances.push(instance);
        }
        workload
    }

    fn instance(&self) -> Instance {
        let World { keys, ambient, .. } = &*self.world;
        let declared = (*self.declared).clone();
        let (keys, ambient) = (Arc::clone(keys), ambient.clone());
        let functions = Functions::new(self.store.clone(), declared, keys, ambient, Outside::default());
        Instance::new(functions.expect("an environment without access of its own"))
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.network.state().model.failure().is_some()
    }

    /// Has everything happen that the seed has in store, except for the end.
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
            let span = if focus.is_some() { self.chance.range(0..=40) } else { self.span() };
            self.pass(span).await;
            let deed = match focus.as_ref().and_then(|_| self.chance.pick(self.favoured)) {
                Some(deed) if !self.chance.one_in(3) => *deed,
                _ => self.chance.weighted(&self.deeds),
            };
            self.act(deed, focus.as_ref());
            self.repeat();
            self.start_lobbies();
            self.forget();
        }
        self.pass(300).await;
    }

    /// Lets `ms` pass, in which the servers that live beat.
    pub(crate) async fn pass(&mut self, ms: u64) {
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
            sleep(Duration::from_millis(at - now)).await;
            let lease_ms = self.world.plan.servers[server].lease_secs.unwrap_or(1) * 1_000;
            self.next_beat[server] = at + lease_ms / 3 + self.chance.range(0..=lease_ms / 8);
            self.send(Request::heartbeat(&self.world, server));
        }
        let now = self.now();
        sleep(Duration::from_millis(until.saturating_sub(now))).await;
    }

    /// Waits for everything under way.
    pub(crate) async fn join(&mut self) {
        while self.running.join_next().await.is_some() {}
    }

    /// Has every server beat by itself, or none.
    pub(crate) fn beat(&mut self, beats: bool) {
        self.beating.fill(beats);
    }

    /// Whether something is under way.
    pub(crate) fn is_busy(&mut self) -> bool {
        while self.running.try_join_next().is_some() {}
        !self.running.is_empty()
    }

    pub(crate) fn now(&self) -> u64 {
        self.network.state().now()
    }

    /// How long nothing new happens: mostly not at all, sometimes until just about something lapses.
    fn span(&mut self) -> u64 {
        match self.chance.below(20) {
            0..=9 => self.chance.range(0..=6),
            10..=13 => self.chance.range(5..=60),
            14 => self.chance.range(100..=900),
            15 => self.chance.range(1_000..=2_600),
            _ => {
                let horizon = if self.chance.one_in(self.far) { u64::MAX } else { 400_000 };
                let times = self.lapses(horizon);
                let spread = self.chance.range(0..=40);
                self.chance.pick(&times).map_or(3, |span| (span + spread).saturating_sub(20))
            }
        }
    }

    /// After how long something lapses, as far as it is nearer than `horizon`; connected seats do after hours.
    fn lapses(&self, horizon: u64) -> Vec<u64> {
        let state = self.network.state();
        let now = state.model.time(state.now());
        let mut times = Vec::new();
        for lobby in state.model.lobbies.values().filter(|lobby| lobby.lives()) {
            times.extend(lobby.entries().map(|(_, until)| until));
            times.push(lobby.lease_until);
            if lobby.stage == Stage::Starting {
                times.push(lobby.created_at + 300_000);
            }
            let idle_from = lobby.vacated_at.unwrap_or(lobby.created_at);
            times.push(idle_from + lobby.idle_ms);
        }
        if self.insists {
            times.extend(state.history.table("ClientsTable").flat_map(|(_, item)| noted_until(item)));
        }
        let spans = times.into_iter().filter(|time| *time > now && *time < NEVER).map(|time| time - now);
        spans.filter(|span| *span < horizon).collect()
    }

    /// What the write under suspicion is on its way to, mostly, if it is.
    fn focus(&mut self) -> Option<Place> {
        if !self.interferes {
            return None;
        }
        let threatened = self.network.state().threatened();
        self.chance.pick(&threatened).cloned().filter(|_| !self.chance.one_in(4))
    }

    /// Does `deed`, to the lobby or the server of `focus` where it may be any.
    fn act(&mut self, deed: Deed, focus: Option<&Place>) {
        let world = Arc::clone(&self.world);
        let namespace = self.chance.below(world.namespaces.len());
        match deed {
            Deed::Find => self.find(namespace, true),
            Deed::FindOnly => self.find(namespace, false),
            Deed::Burst => {
                for _ in 0..self.chance.range(2..=6) {
                    self.find(namespace, true);
                }
            }
            Deed::Create | Deed::Rush => {
                let mode = self.chance.pick(&world.plan.modes).expect("a mode").clone();
                let region = *self.chance.pick(&mode.regions).expect("a region");
                let is_private = self.chance.one_in(2);
                // All of a rush want places of the same servers at one instant.
                let lobbies = if deed == Deed::Rush { self.chance.range(3..=6) } else { 1 };
                for _ in 0..lobbies {
                    self.send(Request::create(&world, namespace, mode.name, region, is_private));
                }
            }
            Deed::Connect | Deed::Disconnect => self.play(deed == Deed::Connect, focus),
            Deed::SwitchVersion => {
                let version = self.chance.below(world.versions.len());
                self.send(Request::switch_version(&world, namespace, version));
            }
            Deed::Beat | Deed::Silence | Deed::Register | Deed::Deregister => self.serve(deed, focus),
            Deed::Join | Deed::Ready | Deed::Close | Deed::Reopen | Deed::End | Deed::SetState => {
                let ended_too = self.chance.one_in(6);
                let mut lobbies = self.lobbies(|lobby| ended_too || lobby.lives());
                prefer(&mut lobbies, |(_, lobby)| focus.is_some_and(|place| place.key == *lobby));
                let Some((owner, lobby)) = self.chance.pick(&lobbies).cloned() else { return };
                // Sometimes in another namespace than the lobby's: nobody must be told of it there.
                let stranger = if self.chance.one_in(8) { namespace } else { owner };
                self.send(match deed {
                    Deed::Join => Request::join(&world, stranger, &lobby),
                    Deed::Ready => Request::ready(&world, owner, &lobby),
                    Deed::Close => Request::close(&world, owner, &lobby, true),
                    Deed::Reopen => Request::close(&world, owner, &lobby, false),
                    Deed::End => Request::end(&world, stranger, &lobby),
                    _ => Request::set_state(&world, owner, &lobby),
                });
            }
        }
    }

    fn find(&mut self, namespace: usize, may_create: bool) {
        let world = Arc::clone(&self.world);
        let first = self.chance.pick(&world.plan.modes).expect("a mode").clone();
        let modes: Vec<&str> = if self.chance.one_in(4) {
            world.plan.modes.iter().map(|mode| mode.name).collect()
        } else {
            vec![first.name]
        };
        let regions = if self.chance.one_in(4) {
            first.regions
        } else {
            vec![*self.chance.pick(&first.regions).expect("a region")]
        };
        let has_tags = world.plan.has_tags && self.chance.one_in(2);
        let tag = self.chance.pick(&["blue", "red"]).map(|tag| ("team".to_owned(), (*tag).to_owned()));
        let tags = tag.into_iter().filter(|_| has_tags).collect();
        self.send(Request::find(&world, namespace, &modes, &regions, tags, may_create));
    }

    fn play(&mut self, connects: bool, focus: Option<&Place>) {
        let mut players = self.players.lock().expect("no panic").clone();
        prefer(&mut players, |player| focus.is_some_and(|place| place.key == player.lobby));
        // The latest ones most.
        let recent = players.len().saturating_sub(6);
        let chosen = if self.chance.one_in(4) {
            self.chance.pick(&players).cloned()
        } else {
            self.chance.pick(&players[recent..]).cloned()
        };
        let Some(player) = chosen else { return };
        let lobby = if self.chance.one_in(20) {
            self.chance.pick(&players).expect("one at least").lobby.clone()
        } else {
            player.lobby
        };
        self.send(Request::player(&self.world, player.namespace, &lobby, &player.token, connects));
    }

    fn serve(&mut self, deed: Deed, focus: Option<&Place>) {
        let mut servers: Vec<usize> = (0..self.world.plan.servers.len()).collect();
        if let Some(place) = focus {
            let lobby = self.network.state().model.lobbies.get(&place.key).cloned();
            let key = lobby.and_then(|lobby| lobby.server).unwrap_or_else(|| place.key.clone());
            prefer(&mut servers, |server| Request::server_key(&self.world, *server) == key);
        }
        let server = *self.chance.pick(&servers).expect("a server");
        match deed {
            Deed::Beat => {
                self.beating[server] = true;
                self.send(Request::heartbeat(&self.world, server));
            }
            Deed::Silence => self.beating[server] = false,
            Deed::Register => {
                let port = if self.chance.one_in(3) { 8_888 } else { 7_777 };
                self.register(server, port);
            }
            _ => self.send(Request::deregister(&self.world, server)),
        }
    }

    fn register(&mut self, server: usize, port: u64) {
        let places = self.world.plan.servers[server].places;
        let places = match self.resizes {
            true => *self.chance.pick(&[2, 5]).expect("two"),
            false if self.chance.one_in(4) => self.chance.range(1..=3),
            false => places,
        };
        self.beating[server] = true;
        self.send(Request::register(&self.world, server, places, port));
    }

    /// Lobby servers say ready, mostly soon.
    fn start_lobbies(&mut self) {
        if self.world.plan.is_slow_to_start && !self.chance.one_in(12) {
            return;
        }
        let starting = self.lobbies(|lobby| lobby.stage == Stage::Starting);
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

    /// Sends a request to some instance, perhaps twice; one for a seat from some client, perhaps under a key.
    pub(crate) fn send(&mut self, request: Request) {
        let mut request = request;
        if request.asks_for_seat() && request.client == ANYBODY {
            request = request.from(2 + self.clients.below(CLIENTS) as u8);
            if self.world.plan.has_keys && !self.clients.one_in(3) {
                request = request.keyed(format!("key-{}", self.clients.range(0..=u64::MAX)));
                self.repeatable.push((self.now(), request.clone()));
            }
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
        let (network, world, players) =
            (self.network.clone(), Arc::clone(&self.world), Arc::clone(&self.players));
        self.running.spawn(async move {
            sleep(Duration::from_millis(delay_ms)).await;
            let number = {
                let mut state = network.state();
                let operation = Operation {
                    function: request.function,
                    instance,
                    namespace: request.namespace,
                    client: request.client,
                    key: request.key.clone(),
                    asked: request.asked.clone(),
                    began_at: state.now(),
                    has_ended: false,
                    answered_at: None,
                    answered: None,
                    calls: 0,
                    seats: Vec::new(),
                    created: Vec::new(),
                    has_connected: false,
                };
                let number = state.model.began(operation);
                let name = state.model.name(number);
                state.note(&format!("{name} {}", briefly(&request.asked)));
                number
            };
            let running = CURRENT.scope(number, handler(request.event()));
            let response = Mortal::new(running, polls_left).await;
            let mut state = network.state();
            let name = state.model.name(number);
            let Some(response) = response else {
                state.model.operations[number].has_ended = true;
                return state.note(&format!("{name} crashed"));
            };
            let answer = read_answer(&world, &response);
            let (at, lobby) =
                (state.now(), answer.body.pointer("/lobby/lobby_id").and_then(|id| id.as_str()));
            let seat = answer.seat.as_deref().unwrap_or_default();
            let what = answer.body["code"].as_str().or(lobby).unwrap_or_default();
            state.note(&format!("{name} = {} {what} {seat}", answer.status));
            state.trace.digest(&answer.body);
            let state = &mut *state;
            state.model.answered(number, &answer, at, &state.history);
            let token = answer.body.pointer("/player/token").and_then(|token| token.as_str());
            if let (Some(lobby), Some(token)) = (lobby, token) {
                let namespace = request.namespace;
                let player = Player { namespace, lobby: lobby.to_owned(), token: token.to_owned() };
                players.lock().expect("no panic").push(player);
            }
        });
    }
}

/// Leaves only those of `all` that are `preferred`, if there are any.
fn prefer<T: Clone>(all: &mut Vec<T>, preferred: impl Fn(&T) -> bool) {
    let chosen: Vec<T> = all.iter().filter(|one| preferred(one)).cloned().collect();
    if !chosen.is_empty() {
        *all = chosen;
    }
}

/// Until when what an item of a client's notes of its requests counts: a run's lease, and each hold whose seat is not taken.
fn noted_until(item: &Value) -> Vec<u64> {
    let holds = item.as_object().into_iter().flatten().filter(|(name, _)| name.starts_with("seat_"));
    let since = holds.filter_map(|(_, hold)| hold["S"].as_str()?.rsplit('~').next()?.parse::<u64>().ok());
    since.map(|since| since + HOLD_PENDING_MS).chain(number(&item["lease_until"])).collect()
}

fn briefly(asked: &Asked) -> String {
    match asked {
        Asked::Find { modes, regions, tags, may_create } => {
            format!("{} in {} {tags:?} creating {may_create}", modes.join(","), regions.join(","))
        }
        other => format!("{other:?}"),
    }
}

/// What is done how often in a run: some things not at all, and what leads to `bias` more.
fn deeds(chance: &mut Chance, bias: Option<Write>) -> Vec<(Deed, u64)> {
    use Deed::{
        Beat, Burst, Close, Connect, Create, Deregister, Disconnect, End, Find, FindOnly, Join, Ready,
        Register, Reopen, Rush, SetState, Silence, SwitchVersion,
    };
    let usual = [
        (Find, 24),
        (FindOnly, 2),
        (Burst, 8),
        (Join, 6),
        (Create, 4),
        (Connect, 20),
        (Disconnect, 12),
        (Ready, 2),
        (Close, 4),
        (Reopen, 3),
        (End, 4),
        (SetState, 1),
        (Beat, 5),
        (Silence, 4),
        (Register, 3),
        (Deregister, 2),
        (SwitchVersion, 1),
    ];
    let favoured = favoured(bias);
    let weigh = |(deed, weight): (Deed, u64)| {
        let is_rare = matches!(deed, Find | Connect | Disconnect);
        let drawn = if !is_rare && chance.one_in(4) { 0 } else { weight * chance.range(1..=3) };
        (deed, if favoured.contains(&deed) { (drawn + weight) * 3 + 4 } else { drawn })
    };
    let mut deeds: Vec<_> = usual.into_iter().map(weigh).collect();
    if bias == Some(Write::TakePlace) {
        deeds.push((Rush, 40));
    }
    deeds
}

/// What leads to `bias`, and to what its conditions are for.
const fn favoured(bias: Option<Write>) -> &'static [Deed] {
    use Deed::{
        Beat, Burst, Close, Connect, Create, Deregister, Disconnect, End, Find, Join, Ready, Register,
        Reopen, SetState, Silence,
    };
    match bias {
        Some(Write::TakeFreeSeat | Write::DrawPosition | Write::BeginBurst) => &[Burst, Join, Close, Connect],
        Some(Write::TakeOverSeat) => &[Burst, Join, Close, Connect, End],
        Some(Write::Leave) => &[Disconnect, Close, Reopen, Burst],
        Some(Write::Connect) => &[Connect],
        Some(Write::Ready) => &[Ready, Close, Join],
        Some(Write::End) => &[Disconnect, Connect, Silence, Beat, Join, Find, Deregister, Ready],
        Some(Write::GiveBackPlace) => &[Disconnect, Silence, Beat, Join, End],
        Some(Write::Drain | Write::Deregister | Write::LetServerGo) => &[Deregister, Register, Close, Reopen],
        Some(Write::Close | Write::Reopen) => &[Close, Reopen, Deregister, Create],
        Some(Write::ExtendLease | Write::Heartbeat) => &[Beat, End, Deregister],
        Some(Write::HideFull) => &[Burst, Close, Disconnect, Join],
        Some(Write::HideSilent | Write::ShowRevived) => &[Silence, Beat, Close, Find],
        Some(Write::HideServer | Write::ShowServer) => &[Silence, Beat, Create, Find, End],
        Some(Write::NoteState) => &[SetState, End],
        Some(Write::PutLobby) => &[Burst],
        Some(Write::TakePlace) => &[Burst, Create, End, Register, Deregister],
        Some(Write::PutServer) => &[Register, Deregister, Create, End],
        Some(Write::GiveBackAllotment | Write::AllotAhead | Write::Allot | Write::ReturnAllotment) => {
            &[Create, End, Register, Deregister]
        }
        Some(Write::HoldSeat | Write::PointHold | Write::ReleaseHold) => &[Burst, Join, Disconnect, Find],
        Some(Write::AimRun | Write::KeepAnswer | Write::ForgetRun) => &[Burst, Join, Find, Create],
        Some(Write::GrowShards | Write::RetireShards) | None => &[],
    }
}
