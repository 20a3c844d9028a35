//! Requests to the shipped operations, each as the event that the gateway would send to its function.

use std::{
    collections::BTreeMap,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use muster_local::{functions::Functions, gateway::Handler};
use serde_json::{Value, json};
use shared::models::token::Claims;
use tokio::time::{Sleep, sleep};

use super::{
    model::{Action, Operation, answers::Answer},
    network::{CURRENT, Network},
    world::World,
};
use harness::instance::event_from;

/// The client of requests for which it does not matter.
pub(crate) const ANYBODY: u8 = 1;

/// A request that can be sent, again and again.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) function: &'static str,
    pub(crate) namespace: usize,
    pub(crate) action: Action,
    token: String,
    body: Value,
    parameters: Vec<(&'static str, String)>,
    /// The last number of the address that it comes from.
    pub(crate) client: u8,
    /// Its `Idempotency-Key`.
    pub(crate) key: Option<String>,
    /// Players for whom it requests seats.
    pub(crate) party: u64,
}

/// An isolated, warm instance of every function.
pub(crate) struct Instance {
    functions: Functions,
    handlers: BTreeMap<&'static str, Handler>,
}

impl Instance {
    pub(crate) const fn new(functions: Functions) -> Self {
        Self { functions, handlers: BTreeMap::new() }
    }

    pub(crate) fn handler(&mut self, function: &'static str) -> Handler {
        let handler = self.handlers.entry(function).or_insert_with(|| {
            self.functions.instance(&format!("functions/{function}")).expect("a function of the template")
        });
        Arc::clone(handler)
    }
}

impl Request {
    fn new(function: &'static str, namespace: usize, action: Action, token: String, body: Value) -> Self {
        let (client, key, party) = (ANYBODY, None, 1);
        Self { function, namespace, action, token, body, parameters: Vec::new(), client, key, party }
    }

    /// The same from a client's address.
    pub(crate) fn from(self, client: u8) -> Self {
        Self { client, ..self }
    }

    /// The same under a key.
    pub(crate) fn keyed(self, key: String) -> Self {
        Self { key: Some(key), ..self }
    }

    /// The same for a party.
    pub(crate) fn of_party(mut self, party: u64) -> Self {
        self.body["party_size"] = party.into();
        Self { party, ..self }
    }

    /// Whether it requests a seat.
    pub(crate) const fn asks_for_seat(&self) -> bool {
        matches!(self.action, Action::Find { .. } | Action::Join { .. } | Action::Create { .. })
    }

    pub(crate) fn find(
        world: &World,
        namespace: usize,
        modes: &[&str],
        regions: &[&str],
        tags: BTreeMap<String, String>,
        may_create: bool,
    ) -> Self {
        let body = json!({
            "game_modes": modes,
            "regions": regions,
            "tags": tags,
            "prevent_auto_create_lobby": !may_create,
        });
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let action = Action::Find {
            modes: owned(modes),
            regions: owned(regions),
            tags,
            may_create,
            is_measured: false,
            beyond: None,
        };
        Self::new("find-lobby", namespace, action, world.namespaces[namespace].public.clone(), body)
    }

    /// A find that measured its regions, `far` above the others by so much that it joins no lobby there while
    /// it can create one nearer.
    pub(crate) fn measured(self, far: Option<&str>) -> Self {
        let Action::Find { modes, regions, tags, may_create, .. } = self.action else { return self };
        let mut body = self.body;
        let latency = |region: &String| if far == Some(region.as_str()) { 90.0 } else { 20.5 };
        let latencies: BTreeMap<_, _> = regions.iter().map(|region| (region, latency(region))).collect();
        body["latencies"] = json!(latencies);
        let beyond = far.filter(|_| may_create).map(ToOwned::to_owned);
        Self {
            action: Action::Find { modes, regions, tags, may_create, is_measured: true, beyond },
            body,
            ..self
        }
    }

    pub(crate) fn create(
        world: &World,
        namespace: usize,
        mode: &str,
        region: &str,
        is_private: bool,
    ) -> Self {
        let publicity = if is_private { "private" } else { "public" };
        let body =
            json!({ "game_mode": mode, "region": region, "publicity": publicity, "lobby_config": [1] });
        let action = Action::Create { mode: mode.to_owned(), region: region.to_owned() };
        Self::new("create-lobby", namespace, action, world.namespaces[namespace].public.clone(), body)
    }

    pub(crate) fn join(world: &World, namespace: usize, lobby: &str) -> Self {
        let action = Action::Join { lobby: lobby.to_owned() };
        let token = world.namespaces[namespace].public.clone();
        Self::new("join-lobby", namespace, action, token, json!({ "lobby_id": lobby }))
    }

    /// Removes a player, and keeps them out for so many seconds.
    pub(crate) fn remove(world: &World, namespace: usize, lobby: &str, player: &str, secs: u64) -> Self {
        let seat = seat_of(world, player).unwrap_or_default();
        let action = Action::Remove { seat, lobby: lobby.to_owned(), secs };
        let body = json!({ "player_token": player, "exclude_seconds": secs });
        Self::new("remove-player", namespace, action, world.lobby_token(namespace, lobby), body)
    }

    /// Gives a player's seat up.
    pub(crate) fn give_up(world: &World, namespace: usize, lobby: &str, player: &str) -> Self {
        let (seat, token) = shown(world, player);
        let action = Action::GiveUp { seat, lobby: lobby.to_owned(), token };
        Self::new("leave-lobby", namespace, action, String::new(), json!({ "player_token": player }))
    }

    /// Brings a player back.
    pub(crate) fn rejoin(world: &World, namespace: usize, lobby: &str, player: &str) -> Self {
        let action = Action::Rejoin { seat: shown(world, player).0, lobby: lobby.to_owned() };
        Self::new("rejoin-player", namespace, action, String::new(), json!({ "player_token": player }))
    }

    /// Connects a player.
    pub(crate) fn connect(world: &World, namespace: usize, lobby: &str, player: &str) -> Self {
        let (seat, token) = shown(world, player);
        let action = Action::Connect { seat, lobby: lobby.to_owned(), token };
        let right = world.lobby_token(namespace, lobby);
        Self::new("connect-player", namespace, action, right, json!({ "player_token": player }))
    }

    /// Disconnects a player, whose seat is kept for so many seconds if they are given.
    pub(crate) fn disconnect(
        world: &World,
        namespace: usize,
        lobby: &str,
        player: &str,
        keep: Option<u64>,
    ) -> Self {
        let (seat, token) = shown(world, player);
        let action = Action::Disconnect { seat, lobby: lobby.to_owned(), token, keep };
        let body = json!({ "player_token": player, "keep_seconds": keep });
        Self::new("disconnect-player", namespace, action, world.lobby_token(namespace, lobby), body)
    }

    /// Disconnects every player of a lobby.
    pub(crate) fn everyone(world: &World, namespace: usize, lobby: &str, keep: Option<u64>) -> Self {
        let action = Action::Everyone { lobby: lobby.to_owned(), keep };
        let body = json!({ "everyone": true, "keep_seconds": keep });
        Self::new("disconnect-player", namespace, action, world.lobby_token(namespace, lobby), body)
    }

    pub(crate) fn ready(world: &World, namespace: usize, lobby: &str) -> Self {
        let action = Action::Ready { lobby: lobby.to_owned() };
        Self::new("set-lobby-ready", namespace, action, world.lobby_token(namespace, lobby), json!({}))
    }

    pub(crate) fn close(world: &World, namespace: usize, lobby: &str, is_closed: bool) -> Self {
        let action = Action::Close { lobby: lobby.to_owned(), is_closed };
        let token = world.lobby_token(namespace, lobby);
        Self::new("set-lobby-closed", namespace, action, token, json!({ "is_closed": is_closed }))
    }

    pub(crate) fn set_publicity(world: &World, namespace: usize, lobby: &str, is_private: bool) -> Self {
        let action = Action::SetPublicity { lobby: lobby.to_owned(), is_private };
        let token = world.lobby_token(namespace, lobby);
        let publicity = if is_private { "private" } else { "public" };
        Self::new("set-lobby-publicity", namespace, action, token, json!({ "publicity": publicity }))
    }

    pub(crate) fn set_state(world: &World, namespace: usize, lobby: &str) -> Self {
        let token = world.lobby_token(namespace, lobby);
        Self::new("set-lobby-state", namespace, Action::SetState, token, json!({ "round": 3 }))
    }

    pub(crate) fn end(world: &World, namespace: usize, lobby: &str) -> Self {
        let action = Action::End { lobby: lobby.to_owned() };
        let token = world.namespaces[namespace].server.clone();
        Self::new("end-lobby", namespace, action, token, json!({ "lobby_id": lobby }))
    }

    /// Registers a start of a server of the plan, with so many places and perhaps another port.
    pub(crate) fn register(world: &World, server: usize, start: &str, places: u64, port: u64) -> Self {
        let plan = &world.plan.servers[server];
        let mut body = json!({
            "server_id": plan.id,
            "start_id": start,
            "region_id": plan.region,
            "capacity": places,
            "auto_ready": plan.is_auto_ready,
            "ports": { "default": { "hostname": "a.example", "port": port, "protocol": "udp" } },
        });
        body["lease_seconds"] = json!(plan.lease_secs.unwrap_or(0));
        if let Some(on_demand) = &world.plan.on_demand {
            body["build"] = json!(on_demand.build_of(server));
        }
        let token = world.namespaces[plan.namespace].server.clone();
        let action = Action::Register { server: Self::server_key(world, server), start: start.to_owned() };
        Self::new("register-server", plan.namespace, action, token, body)
    }

    pub(crate) fn heartbeat(world: &World, server: usize, start: &str) -> Self {
        let action = Action::Heartbeat { server: Self::server_key(world, server), start: start.to_owned() };
        Self::of_server(world, "heartbeat-server", server, action, json!({ "start_id": start }))
    }

    pub(crate) fn deregister(world: &World, server: usize, start: &str, ends_lobbies: bool) -> Self {
        let (key, start) = (Self::server_key(world, server), start.to_owned());
        let body = json!({ "start_id": start, "end_lobbies": ends_lobbies });
        let action = Action::Deregister { server: key, start, ends_lobbies };
        Self::of_server(world, "deregister-server", server, action, body)
    }

    pub(crate) fn switch_version(world: &World, namespace: usize, version: usize) -> Self {
        let body = json!({ "version_id": world.versions[version] });
        let token = world.cloud_token.clone();
        let request = Self::new("update-namespace-version", namespace, Action::SwitchVersion, token, body);
        let parameters = vec![
            ("game_id", world.game_id.to_string()),
            ("namespace_id", world.namespaces[namespace].id.to_string()),
        ];
        Self { parameters, ..request }
    }

    fn of_server(
        world: &World,
        function: &'static str,
        server: usize,
        action: Action,
        mut body: Value,
    ) -> Self {
        let plan = &world.plan.servers[server];
        let token = world.namespaces[plan.namespace].server.clone();
        body["server_id"] = json!(plan.id);
        Self::new(function, plan.namespace, action, token, body)
    }

    pub(crate) fn server_key(world: &World, server: usize) -> String {
        let plan = &world.plan.servers[server];
        format!("{}/{}", world.namespaces[plan.namespace].id, plan.id)
    }

    /// A request of a process that Muster had started, by its environment.
    pub(crate) fn of_process(
        world: &World,
        environment: &BTreeMap<String, String>,
        action: Action,
        more: Value,
    ) -> Self {
        let function = match action {
            Action::Register { .. } => "register-server",
            Action::Heartbeat { .. } => "heartbeat-server",
            _ => "deregister-server",
        };
        let namespace = world.namespace_of(&environment["MUSTER_NAMESPACE_ID"]);
        let mut body = more;
        body["server_id"] = json!(environment["MUSTER_SERVER_ID"]);
        body["start_id"] = json!(environment["MUSTER_START_ID"]);
        Self::new(function, namespace, action, environment["MUSTER_SERVER_TOKEN"].clone(), body)
    }

    /// The operation that it is, delivered to an instance now.
    fn operation(&self, instance: usize, began_at: u64) -> Operation {
        Operation {
            client: self.client,
            key: self.key.clone(),
            party: self.party,
            ..Operation::new(self.function, (instance, self.namespace), self.action.clone(), began_at)
        }
    }

    /// The request as its function gets it.
    pub(crate) fn event(&self) -> lambda_http::Request {
        let bearer = format!("Bearer {}", self.token);
        let parameters: Vec<_> =
            self.parameters.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let mut headers = vec![("authorization", bearer.as_str())];
        headers.extend(self.key.as_deref().map(|key| ("idempotency-key", key)));
        event_from([127, 0, 0, self.client].into(), &headers, &self.body, &parameters)
    }
}

/// One delivery of a request to an instance.
pub(crate) struct Delivery {
    pub(crate) request: Request,
    pub(crate) instance: usize,
    pub(crate) handler: Handler,
    /// Polls after which it crashes, if it does.
    pub(crate) polls_left: Option<u32>,
}

impl Delivery {
    /// Has the function carry the request out, and the model judge its answer; `None` if it crashed.
    pub(crate) async fn carry_out(self, world: &World, network: &Network) -> Option<Answer> {
        let Self { request, instance, handler, polls_left } = self;
        let number = {
            let mut state = network.state();
            let operation = request.operation(instance, state.now());
            let number = state.model.began(operation);
            let name = state.model.name(number);
            state.note(&format!("{name} {}", briefly(&request.action)));
            number
        };
        let running = CURRENT.scope(number, handler(request.event()));
        let response = Mortal::new(running, polls_left, network.clone(), number).await;
        let mut state = network.state();
        let name = state.model.name(number);
        let Some(response) = response else {
            state.model.operations[number].has_ended = true;
            state.note(&format!("{name} crashed"));
            return None;
        };
        let answer = read_answer(world, &response);
        let (at, lobby) = (state.now(), answer.body.pointer("/lobby/lobby_id").and_then(|id| id.as_str()));
        let what = answer.body["code"].as_str().or(lobby).unwrap_or_default();
        state.note(&format!("{name} = {} {what} {}", answer.status, answer.seats.join(" ")));
        state.trace.digest(&answer.body);
        let state = &mut *state;
        state.model.answered(number, &answer, at, &state.history);
        Some(answer)
    }
}

fn briefly(action: &Action) -> String {
    match action {
        Action::Find { modes, regions, tags, may_create, .. } => {
            format!("{} in {} {tags:?} creating {may_create}", modes.join(","), regions.join(","))
        }
        other => format!("{other:?}"),
    }
}

/// The seat that a player's token stands for.
pub(crate) fn seat_of(world: &World, player: &str) -> Option<String> {
    match world.keys.verify_at_any_age(player) {
        Ok(Claims::Player(seat)) => Some(seat.seat_id.to_string()),
        _ => None,
    }
}

/// The player tokens of a response.
pub(crate) fn tokens_of(body: &Value) -> Vec<String> {
    let alone = || body.get("player").map(std::slice::from_ref).unwrap_or_default();
    let players = body["players"].as_array().map_or_else(alone, Vec::as_slice);
    players.iter().filter_map(|player| player["token"].as_str().map(ToOwned::to_owned)).collect()
}

/// The seat of a player's token, and its generation.
fn shown(world: &World, player: &str) -> (String, u64) {
    match world.keys.verify_at_any_age(player) {
        Ok(Claims::Player(seat)) => (seat.seat_id.to_string(), seat.generation.into()),
        _ => (String::new(), 0),
    }
}

/// What a function's response says.
pub(crate) fn read_answer(world: &World, response: &lambda_http::Response<lambda_http::Body>) -> Answer {
    let body: Value = serde_json::from_slice(response.body().as_ref()).unwrap_or(Value::Null);
    let seats = tokens_of(&body).iter().filter_map(|token| seat_of(world, token)).collect();
    Answer { status: response.status().as_u16(), body, seats }
}

/// A function that is killed for good after a number of polls, so at any of its awaits, and that pauses while
/// it is suspended.
pub(crate) struct Mortal<F> {
    inner: Pin<Box<F>>,
    polls_left: Option<u32>,
    network: Network,
    number: usize,
    suspended: Option<Pin<Box<Sleep>>>,
}

impl<F: Future> Mortal<F> {
    /// The operation `number` on `network`.
    pub(crate) fn new(inner: F, polls_left: Option<u32>, network: Network, number: usize) -> Self {
        Self { inner: Box::pin(inner), polls_left, network, number, suspended: None }
    }
}

impl<F: Future> Future for Mortal<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            if let Some(suspended) = &mut self.suspended {
                ready!(suspended.as_mut().poll(context));
                self.suspended = None;
            }
            if let Some(left) = &mut self.polls_left {
                if *left == 0 {
                    return Poll::Ready(None);
                }
                *left -= 1;
            }
            if let Poll::Ready(answer) = self.inner.as_mut().poll(context) {
                return Poll::Ready(Some(answer));
            }
            let Some(span) = self.network.suspension(self.number) else { return Poll::Pending };
            self.suspended = Some(Box::pin(sleep(span)));
        }
    }
}
