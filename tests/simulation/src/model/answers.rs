//! I3, I4, I7, I8 and I11: what operations are answered.

use serde_json::Value;

use super::{
    super::{
        history::History,
        wire::{Place, number},
    },
    Action, LAG_MS, Model, NEVER, Operation,
};

/// Timeouts of functions in milliseconds: those that wait for lobbies to start, and the others.
const DEADLINE_MS: [u64; 2] = [29_000, 10_000];
/// More calls than any operation may make: I3.
const CALLS_MAX: u32 = 400;

/// What an operation was answered.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
    /// The seats of the player tokens in the response.
    pub(crate) seats: Vec<String>,
}

impl Answer {
    fn code(&self) -> &str {
        self.body["code"].as_str().unwrap_or_default()
    }

    fn text(&self, pointer: &str) -> String {
        self.body.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
    }
}

impl Model {
    /// Checks an answer at the moment at which it is given.
    pub(crate) fn answered(&mut self, number: usize, answer: &Answer, at: u64, history: &History) {
        self.operations[number].has_ended = true;
        self.operations[number].answered_at = Some(at);
        let operation = self.operations[number].clone();
        let outcome = if answer.status == 200 { "200".to_owned() } else { answer.code().to_owned() };
        self.operations[number].answered = Some(outcome.clone());
        *self.outcomes.entry((operation.function, outcome)).or_default() += 1;
        self.check_answered(&operation, answer, at);
        self.check_mentions(&operation, answer);
        if answer.status == 200 {
            match operation.action.clone() {
                Action::Find { .. } | Action::Create { .. } | Action::Join { .. } => {
                    self.check_seat_answered(&operation, answer, at);
                }
                Action::Connect { seat, token, .. } => self.check_connect_answered(&operation, &seat, token),
                Action::Rejoin { seat, lobby } => self.check_rejoined(&seat, &lobby, &operation, answer),
                action => self.check_done(&operation, &action, answer, history),
            }
        } else {
            self.check_refusal(number, answer, at, history);
        }
    }

    /// I3: in time, with an answer that is documented.
    fn check_answered(&mut self, operation: &Operation, answer: &Answer, at: u64) {
        let took = at - operation.began_at;
        let waits = matches!(
            operation.action,
            Action::Find { .. }
                | Action::Create { .. }
                | Action::Join { .. }
                | Action::Register { .. }
                | Action::Heartbeat { .. }
                | Action::Deregister { .. }
        );
        let function = operation.function;
        if took > DEADLINE_MS[usize::from(!waits)] {
            self.fail("I3", format!("{function} took {took} ms"));
        }
        if operation.calls > CALLS_MAX {
            self.fail("I3", format!("{function} made {} calls", operation.calls));
        }
        let code = answer.code();
        let is_documented = answer.status == 200 || codes(&operation.action).contains(&code);
        if !is_documented {
            self.fail("I3", format!("{function} answered {} {}", answer.status, answer.body));
        }
        if !self.has_faults && code == "API_UNAVAILABLE" {
            self.fail("I3", format!("{function} answered {code} while nothing went wrong"));
        }
    }

    /// I11: an answer mentions no lobby of another namespace.
    fn check_mentions(&mut self, operation: &Operation, answer: &Answer) {
        let text = answer.body.to_string();
        let own = self.namespaces[operation.namespace].id.clone();
        let foreign = self.lobbies.values().find(|lobby| lobby.namespace != own && text.contains(&lobby.id));
        if let Some(lobby) = foreign {
            let what = format!("{} of {own} learnt of lobby {}", operation.function, lobby.id);
            self.fail("I11", what);
        }
    }

    /// I4: the seat that is answered is held, unless its lobby ended, its time ran out or its player left
    /// or was removed meanwhile.
    fn check_seat_answered(&mut self, operation: &Operation, answer: &Answer, at: u64) {
        let (lobby_id, time) = (answer.text("/lobby/lobby_id"), self.time(at));
        if answer.seats.len() as u64 != operation.party {
            let (seats, party) = (answer.seats.len(), operation.party);
            self.fail("I13", format!("a party of {party} was answered {seats} seats: {}", answer.body));
        }
        for seat in &answer.seats {
            self.check_one_answered(operation, &lobby_id, seat, time);
        }
        self.check_given(operation, &lobby_id, answer, at);
    }

    fn check_one_answered(&mut self, operation: &Operation, lobby_id: &str, seat: &str, time: u64) {
        let (lobby_id, seat) = (lobby_id.to_owned(), seat.to_owned());
        let taken = (lobby_id.clone(), seat.clone());
        let is_own = operation.seats.contains(&taken);
        let mut runs = self.operations.iter().filter(|run| run.repeats(operation));
        if !is_own && !runs.any(|run| run.seats.contains(&taken)) {
            self.fail("I4", format!("{} answered seat {seat}, which it never took", operation.function));
        }
        let Some(lobby) = self.lobbies.get(&lobby_id) else {
            return self.fail("I4", format!("{} answered the unknown lobby {lobby_id}", operation.function));
        };
        let since_taken = time - self.time(operation.began_at);
        let may_have_lapsed = since_taken >= lobby.reservation_ms;
        // Its player may have got a faster retry's response, and have left or been removed.
        let has_left = self.left.contains(&taken);
        if is_own && lobby.lives() && !lobby.holds(&seat) && !may_have_lapsed && !has_left {
            self.fail("I4", format!("seat {seat} of lobby {lobby_id} was answered, and is gone"));
        }
        if self.lobbies.get(&lobby_id).is_some_and(|lobby| lobby.stage == super::Stage::Starting) {
            self.fail("I6", format!("lobby {lobby_id} was answered before it was ready"));
        }
    }

    /// I7: a player is let in once by each token.
    fn check_connect_answered(&mut self, operation: &Operation, seat: &str, token: u64) {
        let connects = self.connects.entry((seat.to_owned(), token)).or_default();
        *connects += 1;
        if *connects > 1 {
            self.fail("I7", format!("the player of seat {seat} was let in twice"));
        }
        if !operation.has_connected {
            self.fail("I7", format!("the player of seat {seat} was let in without connecting"));
        }
    }

    /// What was answered as done is done.
    fn check_done(&mut self, operation: &Operation, action: &Action, answer: &Answer, history: &History) {
        let lobby = |id: &String| self.lobbies.get(id).cloned();
        match action {
            // A late copy of the write that took the seat may reserve it again, for as long as a reservation
            // goes.
            Action::Remove { seat, lobby: id, .. }
                if lobby(id).is_some_and(|lobby| lobby.lives() && lobby.holds(seat))
                    && self.added.get(&(id.clone(), seat.clone())).is_none_or(|times| *times == 1) =>
            {
                self.fail("I4", format!("seat {seat} of lobby {id} was left, and is held"));
            }
            Action::Disconnect { seat, lobby: id, token, .. }
                if lobby(id).is_some_and(|lobby| {
                    let is_there = lobby.connected.contains_key(seat);
                    let is_first = lobby.reserved.contains_key(seat) && !lobby.tokens.contains_key(seat);
                    let is_its = lobby.tokens_of(seat).connected == *token;
                    lobby.lives() && is_its && (is_there || is_first)
                }) && self.added.get(&(id.clone(), seat.clone())).is_none_or(|times| *times == 1) =>
            {
                self.fail("I4", format!("the player of seat {seat} of lobby {id} left, and holds it"));
            }
            // A connected seat stays.
            Action::GiveUp { seat, lobby: id, token }
                if lobby(id).is_some_and(|lobby| {
                    let is_kept = lobby.tokens.contains_key(seat);
                    let is_newest = lobby.tokens_of(seat).newest == *token;
                    lobby.lives() && lobby.reserved.contains_key(seat) && is_newest && !is_kept
                }) && self.added.get(&(id.clone(), seat.clone())).is_none_or(|times| *times == 1) =>
            {
                self.fail("I4", format!("seat {seat} of lobby {id} was given up, and is reserved"));
            }
            Action::End { lobby: id } if lobby(id).is_some_and(|lobby| lobby.lives()) => {
                self.fail("I10", format!("lobby {id} was ended, and lives"));
            }
            Action::Ready { lobby: id }
                if lobby(id).is_some_and(|lobby| lobby.stage == super::Stage::Starting) =>
            {
                self.fail("I10", format!("lobby {id} became ready, and starts"));
            }
            Action::Close { lobby: id, is_closed: true } => {
                let others = self.operations.iter().filter(
                    |other| matches!(&other.action, Action::Close { lobby, is_closed: false } if lobby == id),
                );
                let reopened = others
                    .into_iter()
                    .any(|other| other.answered_at.is_none_or(|at| at >= operation.began_at));
                if !reopened && lobby(id).is_some_and(|lobby| lobby.lives() && !lobby.is_closed) {
                    self.fail("I6", format!("lobby {id} was closed, and is open"));
                }
            }
            Action::SetPublicity { lobby: id, is_private } => {
                let others = self.operations.iter().filter(|other| {
                    matches!(&other.action, Action::SetPublicity { lobby, is_private: other }
                        if lobby == id && other != is_private)
                });
                let is_crossed = others
                    .into_iter()
                    .any(|other| other.answered_at.is_none_or(|at| at >= operation.began_at));
                if !is_crossed
                    && lobby(id).is_some_and(|lobby| lobby.lives() && lobby.is_private != *is_private)
                {
                    self.fail("I6", format!("lobby {id} was made private {is_private}, and is not"));
                }
            }
            Action::Register { server, start } => self.check_started(server, start, history),
            Action::Heartbeat { server, start } => {
                self.check_listed(server, start, answer);
                self.check_revived(operation, (server, start), answer, history);
            }
            Action::Deregister { server, start, .. } => {
                self.check_drained(operation, (server, start), history);
            }
            _ => {}
        }
    }

    /// I10: a heartbeat keeps every lobby of its server that it can know of, and brings it into sight.
    fn check_revived(
        &mut self,
        operation: &Operation,
        (server, start): (&str, &str),
        answer: &Answer,
        history: &History,
    ) {
        let Some(seen_by) = operation.began_at.checked_sub(LAG_MS) else { return };
        // The lobbies of later pages come with later heartbeats.
        if answer.body["cursor"].is_string() {
            return;
        }
        let place = Place { table: "ServersTable".to_owned(), key: server.to_owned() };
        let states = history.since(&place, operation.began_at);
        let has_lease = states.iter().flatten().all(|server| number(&server["lease_ms"]).is_some());
        let promised = states.iter().flatten().filter_map(|server| number(&server["lease_until"])).min();
        let promised = promised.filter(|_| has_lease).unwrap_or(0);
        // A heartbeat of the same millisecond may be about to show what it kept.
        let is_alone = !self.operations.iter().any(|other| {
            let is_heartbeat =
                matches!(&other.action, Action::Heartbeat { server: its, .. } if its == server);
            is_heartbeat && !other.has_ended
        });
        let listed: Vec<String> = answer.body["lobbies"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|lobby| Some(lobby["lobby_id"].as_str()?.to_owned()))
            .collect();
        let missed: Vec<String> = self
            .lobbies
            .values()
            .filter(|lobby| lobby.lives() && lobby.server.as_deref() == Some(server))
            .filter(|lobby| self.born_on.get(&lobby.id).is_none_or(|on| on == start))
            .filter(|lobby| self.appeared.get(&lobby.id).is_some_and(|at| *at <= seen_by))
            .filter_map(|lobby| {
                let is_kept = lobby.lease_until >= promised;
                let is_hidden = is_alone && lobby.joinable_from == Some(NEVER) && has_lease;
                let is_listed = listed.contains(&lobby.id) || lobby.is_overdue(lobby.created_at + NEVER);
                (!is_kept || is_hidden || !is_listed).then(|| {
                    format!("lobby {}: kept {is_kept}, hidden {is_hidden}, listed {is_listed}", lobby.id)
                })
            })
            .collect();
        if let Some(missed) = missed.first() {
            self.fail("I10", format!("a beat of server {server} until {promised} left out {missed}"));
        }
    }

    /// I6: a deregistered server's lobbies are closed.
    fn check_drained(&mut self, operation: &Operation, (server, start): (&str, &str), history: &History) {
        let place = Place { table: "ServersTable".to_owned(), key: server.to_owned() };
        let has_come_back = history
            .since(&place, operation.began_at)
            .iter()
            .skip(1)
            .flatten()
            .any(|server| number(&server["capacity"]) != Some(0));
        let mut lobbies = self
            .lobbies
            .values()
            .filter(|lobby| lobby.server.as_deref() == Some(server))
            .filter(|lobby| self.born_on.get(&lobby.id).is_none_or(|on| on == start));
        let open = lobbies.find(|lobby| lobby.lives() && !lobby.is_draining && !lobby.is_overdue(NEVER));
        if let Some(id) = open.map(|lobby| lobby.id.clone()).filter(|_| !has_come_back) {
            self.fail("I6", format!("server {server} deregistered, and its lobby {id} is open"));
        }
    }

    /// A refusal for lack of capacity or lobbies is true at some time during the operation.
    fn check_refusal(&mut self, number: usize, answer: &Answer, at: u64, history: &History) {
        let operation = self.operations[number].clone();
        let namespace = &self.namespaces[operation.namespace];
        match answer.code() {
            "MATCHMAKER_TOO_MANY_LOBBIES" => {
                let most = self.most_live_since(operation.namespace, operation.began_at);
                let max = namespace.lobby_count_max;
                if most < max {
                    self.fail("I2", format!("refused for {max} lobbies while at most {most} lived"));
                }
            }
            "MATCHMAKER_NO_AVAILABLE_LOBBIES" => {
                if let Some(lobby) = self.missed_by(number, at, history) {
                    self.fail("I3", format!("no lobby was found, though lobby {lobby} was joinable"));
                }
            }
            "MATCHMAKER_NO_SERVER_AVAILABLE" => {
                self.check_no_server(&operation, at, history);
                self.check_none_requested(&operation);
            }
            "MATCHMAKER_LOBBY_START_TIMEOUT" => {
                self.check_wait(&operation, &answer.text("/metadata/lobby_id"));
            }
            "MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE" => self.check_refused_client(&operation),
            "MATCHMAKER_PLAYER_REMOVED" => self.check_kept_out(&operation),
            "MATCHMAKER_PARTY_TOO_LARGE" => self.check_too_large(&operation),
            _ => {}
        }
    }

    /// A party is refused for its size only if nobody could seat it.
    fn check_too_large(&mut self, operation: &Operation) {
        let of_mode = |mode: &String, is_direct: bool| {
            let (normal, direct) = self.capacities.get(mode).copied().unwrap_or_default();
            if is_direct { direct } else { normal }
        };
        let holds = match &operation.action {
            Action::Find { modes, .. } => modes.iter().map(|mode| of_mode(mode, false)).min(),
            Action::Create { mode, .. } => Some(of_mode(mode, true)),
            Action::Join { lobby } => self.lobbies.get(lobby).map(|lobby| lobby.max_players_direct),
            _ => None,
        };
        let holds_max = u64::from(self.namespaces[operation.namespace].holds_max);
        let largest = holds.unwrap_or(0).min(self.party_size_max).min(holds_max);
        if operation.party <= largest {
            self.fail("I13", format!("a party of {} was refused, and {largest} may be", operation.party));
        }
    }

    fn check_no_server(&mut self, operation: &Operation, at: u64, history: &History) {
        let (regions, modes) = match &operation.action {
            // Without latencies, a find creates in the first of its regions alone.
            Action::Find { regions, is_measured: false, .. } if regions.len() > 1 => return,
            Action::Find { regions, modes, .. } => (regions.clone(), modes.clone()),
            Action::Create { region, mode } => (vec![region.clone()], vec![mode.clone()]),
            _ => return,
        };
        let Some(seen_by) = operation.began_at.checked_sub(LAG_MS) else { return };
        let [_] = &modes[..] else { return };
        let namespace = format!("{}/", self.namespaces[operation.namespace].id);
        let keys: Vec<String> = history.table("ServersTable").map(|(key, _)| key.clone()).collect();
        let free = keys.into_iter().find(|key| {
            let place = Place { table: "ServersTable".to_owned(), key: key.clone() };
            let is_free = |server: &Value| {
                let count = |name: &str| number(&server[name]).unwrap_or(0);
                server["server"]["S"].as_str().is_some_and(|server| server.starts_with(&namespace))
                    && server["region_id"]["S"].as_str().is_some_and(|of| regions.iter().any(|id| id == of))
                    && server["game_modes"].is_null()
                    && count("used") < count("capacity")
                    && count("lease_until") > self.time(at)
                    && server["is_clearing"].is_null()
                    && self.may_run_on(operation, server)
            };
            let versions = history.since(&place, seen_by);
            versions.iter().all(|server| server.as_deref().is_some_and(is_free))
        });
        // At the cap its places are of no use.
        let at_cap = self.most_live_since(operation.namespace, operation.began_at)
            >= self.namespaces[operation.namespace].lobby_count_max;
        if let Some(server) = free.filter(|_| !at_cap) {
            self.fail("I3", format!("no server was available, though {server} had a place all the time"));
        }
    }
}

/// Codes that an operation may answer (decision 5).
#[expect(clippy::too_many_lines, reason = "a table")]
fn codes(action: &Action) -> &'static [&'static str] {
    match action {
        Action::Find { .. } => &[
            "MATCHMAKER_TOO_MANY_LOBBIES",
            "MATCHMAKER_NO_SERVER_AVAILABLE",
            "MATCHMAKER_NO_AVAILABLE_LOBBIES",
            "MATCHMAKER_PARTY_TOO_LARGE",
            "MATCHMAKER_CONTENTION",
            "MATCHMAKER_LOBBY_START_TIMEOUT",
            "MATCHMAKER_SERVER_START_FAILED",
            "MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE",
            "API_UNAVAILABLE",
        ],
        Action::Create { .. } => &[
            "MATCHMAKER_PARTY_TOO_LARGE",
            "MATCHMAKER_TOO_MANY_LOBBIES",
            "MATCHMAKER_NO_SERVER_AVAILABLE",
            "MATCHMAKER_CONTENTION",
            "MATCHMAKER_LOBBY_START_TIMEOUT",
            "MATCHMAKER_SERVER_START_FAILED",
            "MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE",
            "API_UNAVAILABLE",
        ],
        Action::Join { .. } => &[
            "MATCHMAKER_PARTY_TOO_LARGE",
            "MATCHMAKER_LOBBY_NOT_FOUND",
            "MATCHMAKER_LOBBY_STOPPED",
            "MATCHMAKER_LOBBY_FULL",
            "MATCHMAKER_PLAYER_REMOVED",
            "MATCHMAKER_CONTENTION",
            "MATCHMAKER_LOBBY_START_TIMEOUT",
            "MATCHMAKER_SERVER_START_FAILED",
            "MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE",
            "API_UNAVAILABLE",
        ],
        Action::Connect { .. } => &[
            "MATCHMAKER_LOBBY_NOT_FOUND",
            "MATCHMAKER_LOBBY_STOPPED",
            "MATCHMAKER_LOBBY_STATE_CONFLICT",
            "MATCHMAKER_PLAYER_ALREADY_CONNECTED",
            "MATCHMAKER_PLAYER_REGISTRATION_EXPIRED",
            "MATCHMAKER_PLAYER_REMOVED",
            "MATCHMAKER_PLAYER_IN_DIFFERENT_LOBBY",
            "MATCHMAKER_CONTENTION",
            "API_FORBIDDEN",
            "API_UNAVAILABLE",
        ],
        Action::Disconnect { .. } | Action::Everyone { .. } | Action::Remove { .. } => &[
            "MATCHMAKER_LOBBY_NOT_FOUND",
            "MATCHMAKER_LOBBY_STOPPED",
            "MATCHMAKER_PLAYER_IN_DIFFERENT_LOBBY",
            "MATCHMAKER_CONTENTION",
            "API_FORBIDDEN",
            "API_UNAVAILABLE",
        ],
        Action::GiveUp { .. } => &["MATCHMAKER_CONTENTION", "API_UNAVAILABLE"],
        Action::Rejoin { .. } => &[
            "MATCHMAKER_LOBBY_NOT_FOUND",
            "MATCHMAKER_LOBBY_STOPPED",
            "MATCHMAKER_PLAYER_REGISTRATION_EXPIRED",
            "MATCHMAKER_PLAYER_REMOVED",
            "MATCHMAKER_CONTENTION",
            "API_UNAVAILABLE",
        ],
        Action::Ready { .. }
        | Action::Close { .. }
        | Action::SetPublicity { .. }
        | Action::End { .. }
        | Action::SetState => &[
            "MATCHMAKER_LOBBY_NOT_FOUND",
            "MATCHMAKER_LOBBY_STOPPED",
            "MATCHMAKER_LOBBY_STATE_CONFLICT",
            "MATCHMAKER_CONTENTION",
            "API_UNAVAILABLE",
        ],
        Action::Register { .. } => &[
            "MATCHMAKER_INVALID_SERVER",
            "MATCHMAKER_SERVER_NOT_FOUND",
            "MATCHMAKER_LOBBY_STATE_CONFLICT",
            "MATCHMAKER_CONTENTION",
            "API_UNAVAILABLE",
        ],
        Action::Heartbeat { .. } | Action::Deregister { .. } => {
            &["MATCHMAKER_SERVER_NOT_FOUND", "MATCHMAKER_CONTENTION", "API_UNAVAILABLE"]
        }
        Action::SwitchVersion => &["MATCHMAKER_CONTENTION", "API_UNAVAILABLE"],
        // It answers its queue.
        Action::Look { .. } => &[],
    }
}
