//! The end of a run: nothing goes wrong any more, and everything that was taken can be had again.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    faults::Faults,
    model::{Lobby, Stage},
    requests::Request,
    workload::Workload,
    world::KEEP_SECS_MAX,
};

/// Time after which nothing is pending: no delayed copy of a write, no lagging index.
const QUIET_MS: u64 = 12_000;

/// Time after which a request without a response has certainly ended, in milliseconds.
const PENDING_MS: u64 = 31_000;

/// Finds of one player for whom a server is to be started.
const STARTS_AWAITED: u32 = 6;

impl Workload {
    /// Lets the world come to rest, ends every lobby, and fills namespaces and servers to the last seat.
    pub(crate) async fn settle(&mut self) {
        self.pass(QUIET_MS).await;
        self.join().await;
        {
            let mut state = self.network.state();
            state.faults = Faults::none();
            state.model.has_faults = false;
            state.note("everything settles");
        }
        self.beat(false);
        self.pass(QUIET_MS).await;
        self.beat(true);
        let world = Arc::clone(&self.world);
        for server in 0..world.plan.servers.len() {
            let places = world.plan.servers[server].places;
            // Ports as they are: they must not change under live lobbies.
            let start = self.start(server);
            self.send(Request::register(&world, server, &start, places, 7_777));
            self.send(Request::register(&world, server, &start, places, 8_888));
            self.pass(50).await;
        }
        self.join().await;
        self.empty_yard().await;
        if self.chance.one_in(3) {
            // All players leave, and no server reports it.
            let longest = world
                .plan
                .modes
                .iter()
                .map(|mode| mode.reservation_secs + mode.idle_secs + KEEP_SECS_MAX)
                .max();
            self.pass(longest.unwrap_or(0) * 1_000 + 310_000).await;
            self.beat(true);
            for server in 0..world.plan.servers.len() {
                self.send(Request::heartbeat(&world, server, &self.start(server)));
            }
            self.pass(3_000).await;
        }
        for (namespace, lobby) in self.lobbies(|lobby| lobby.lives()) {
            self.send(Request::end(&world, namespace, &lobby));
            self.join().await;
        }
        // Until no request is taken for one that may still be about to take a seat.
        self.pass(if world.plan.holds_max == u32::MAX { 3_000 } else { PENDING_MS }).await;
        for server in 0..world.plan.servers.len() {
            self.send(Request::heartbeat(&world, server, &self.start(server)));
        }
        self.join().await;
        for namespace in 0..world.namespaces.len() {
            if !self.has_failed() {
                self.fill(namespace).await;
            }
        }
    }

    /// What the newest request of a client was answered.
    fn last_answer_to(&self, client: u8) -> Option<String> {
        let state = self.network.state();
        state.model.operations.iter().rev().find(|other| other.client == client)?.answered.clone()
    }

    /// Takes every seat that there is, and one more.
    async fn fill(&mut self, namespace: usize) {
        let world = Arc::clone(&self.world);
        let mode = world.plan.modes[0].clone();
        let region = mode.regions[0];
        let id = world.namespaces[namespace].id.to_string();
        let places = {
            let state = self.network.state();
            let of_namespace = |server: &str| server.starts_with(&format!("{id}/"));
            let servers = state.history.table("ServersTable").map(|(_, server)| server);
            let fitting = servers.filter(|server| {
                server["server"]["S"].as_str().is_some_and(of_namespace)
                    && server["region_id"]["S"].as_str() == Some(region)
                    && server["lease_until"]["N"].as_str().and_then(|at| at.parse().ok()).unwrap_or(0)
                        > state.model.time(state.now()) + 1_000
                    && server["launch"].is_null()
                    && state.model.runs_newest(namespace, server)
            });
            let places = fitting.filter_map(|server| server["capacity"]["N"].as_str()?.parse::<u64>().ok());
            places.sum::<u64>()
        };
        let on_demand = world.plan.on_demand.as_ref();
        let places = places + on_demand.map_or(0, |plan| plan.capacity * plan.server_count_max);
        let cap = u64::from(world.plan.caps[namespace]);
        let lobbies = cap.min(places);
        let refusal =
            if cap <= places { "MATCHMAKER_TOO_MANY_LOBBIES" } else { "MATCHMAKER_NO_SERVER_AVAILABLE" };
        self.network
            .state()
            .note(&format!("{lobbies} lobbies of {} seats are to be filled", mode.max_players));
        for number in 0..=lobbies * mode.max_players {
            // Of clients that nothing speaks for, each gets one seat while lobbies run short.
            let client = 100 + u8::try_from(number.min(150)).unwrap_or(150);
            let find = Request::find(&world, namespace, &[mode.name], &[region], BTreeMap::new(), true);
            let find = find.from(client);
            let mut answered = None;
            for _ in 0..STARTS_AWAITED {
                self.send(find.clone());
                while self.is_busy() {
                    self.pass(60).await;
                    let is_starting =
                        |lobby: &Lobby| lobby.stage == Stage::Starting && lobby.awaited_until.is_none();
                    for (namespace, lobby) in self.lobbies(is_starting) {
                        self.send(Request::ready(&world, namespace, &lobby));
                    }
                }
                answered = self.last_answer_to(client);
                // Earlier starts took so long that it does not wait.
                if answered.as_deref() != Some("MATCHMAKER_LOBBY_START_TIMEOUT") {
                    break;
                }
                self.pass(5_000).await;
            }
            // Starts of servers take longer than a reservation.
            if world.plan.on_demand.is_some() {
                self.connect_newest();
                self.join().await;
            }
            let is_last = number == lobbies * mode.max_players;
            let expected = if is_last { refusal } else { "200" };
            if answered.as_deref() != Some(expected) {
                let answered = answered.unwrap_or_default();
                let what = format!(
                    "find {} of {} was answered {answered}, not {expected}",
                    number + 1,
                    lobbies * mode.max_players
                );
                self.network.state().model.fail("I2, I4: all can be had again", what);
                return;
            }
        }
        let mut state = self.network.state();
        let state = &mut *state;
        let time = state.model.time(state.now());
        let of_namespace =
            state.model.lobbies.values().filter(|lobby| lobby.lives() && lobby.namespace == id);
        let held: BTreeSet<(String, u64)> =
            of_namespace.map(|lobby| (lobby.id.clone(), lobby.held(time))).collect();
        if held.len() as u64 != lobbies || held.iter().any(|(_, held)| *held != mode.max_players) {
            let what = format!("{held:?} instead of {lobbies} lobbies of {}", mode.max_players);
            state.model.fail("I2, I4: all can be had again", what);
        }
    }
}
