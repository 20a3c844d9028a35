//! I6 and I14: the lobbies of a game server's earlier start are over, and what an earlier start requests late
//! changes nothing.

use super::on_demand::is_over;
use super::{
    super::{history::History, wire::Place},
    Action, Change, Lobby, Model,
    answers::Answer,
};
use model::conditions::Write;

impl Model {
    /// Notes the start of its server that a lobby was placed on, which must have ended whatever an earlier
    /// one ran.
    pub(super) fn note_birth(&mut self, lobby: &Lobby, history: &History) {
        let Some(item) = current(lobby, history) else { return };
        let Some(start) = item["start_id"]["S"].as_str() else { return };
        self.born_on.insert(lobby.id.clone(), start.to_owned());
        let of_server = self.lobbies.values().filter(|other| other.server == lobby.server && other.lives());
        let mut earlier = of_server.filter(|other| self.born_on.get(&other.id).is_some_and(|on| on != start));
        if let Some(other) = earlier.next().map(|other| other.id.clone()) {
            let what = format!(
                "lobby {} was placed on start {start}, while {other} of an earlier one lived",
                lobby.id
            );
            self.fail("I6", what);
        }
    }

    /// Whether a later start of its server registered since a lobby was placed.
    pub(super) fn is_of_earlier_start(&self, lobby: &Lobby, history: &History) -> bool {
        let Some(item) = current(lobby, history) else { return false };
        let start = item["start_id"]["S"].as_str();
        self.born_on.get(&lobby.id).is_some_and(|on| start != Some(on))
    }

    /// Whether its server requested the end of all that it runs, or is over.
    pub(super) fn ends_with_its_server(&self, change: &Change, lobby: &Lobby, history: &History) -> bool {
        let action = change.operation.map(|operation| &self.operations[operation].action);
        if let Some(Action::Look { server }) = action {
            return lobby.server.as_ref() == Some(server)
                && current(lobby, history).is_some_and(|server| is_over(&server));
        }
        matches!(action, Some(Action::Deregister { server, ends_lobbies: true, .. }) if lobby.server.as_ref() == Some(server))
    }

    /// A server changes its start by a registration of that alone, never back to one that it had.
    pub(super) fn check_start_of_server(&mut self, change: &Change) {
        let key = change.part.place.key.clone();
        let start = |item: &Option<std::sync::Arc<serde_json::Value>>| {
            item.as_ref().and_then(|item| item["start_id"]["S"].as_str()).map(ToOwned::to_owned)
        };
        let (before, after) = (start(&change.before), start(&change.after));
        let action = change.operation.map(|operation| self.operations[operation].action.clone());
        if before != after {
            let known = self.starts.entry(key.clone()).or_default();
            let is_back = after.as_ref().is_some_and(|after| known.contains(after));
            known.extend(after.clone());
            if is_back || !(change.is(Write::PutServer) || change.is(Write::RequestServer)) {
                self.fail("I6", format!("server {key} went from start {before:?} to {after:?}"));
            }
        }
        let (
            Some(
                Action::Register { start, .. }
                | Action::Heartbeat { start, .. }
                | Action::Deregister { start, .. },
            ),
            Some(now),
        ) = (action, after)
        else {
            return;
        };
        // The next request that reads a place, or the rest of a cap, gives it back.
        let speaks = change.is(Write::PutServer)
            || change.is(Write::Heartbeat)
            || change.is(Write::ShowServer)
            || change.is(Write::OpenServer)
            || change.is(Write::Deregister);
        if speaks && start != now {
            self.fail(
                "I6",
                format!("start {start} of server {key}, which is {now}, changed it: {}", change.part.change),
            );
        }
    }

    /// A lobby is kept and drained by its own start.
    pub(super) fn check_start_of_lobby(&mut self, change: &Change, lobby: &Lobby) {
        if !change.is(Write::ExtendLease) && !change.is(Write::Drain) {
            return;
        }
        let action = change.operation.map(|operation| self.operations[operation].action.clone());
        if let Some(
            Action::Register { start, .. }
            | Action::Heartbeat { start, .. }
            | Action::Deregister { start, .. },
        ) = action
            && self.born_on.get(&lobby.id).is_some_and(|on| *on != start)
        {
            self.fail(
                "I6",
                format!("start {start} changed lobby {} of another: {}", lobby.id, change.part.change),
            );
        }
    }

    /// A start that registered runs no lobby of an earlier one.
    pub(super) fn check_started(&mut self, server: &str, start: &str, history: &History) {
        let place = Place { table: "ServersTable".to_owned(), key: server.to_owned() };
        let current = history.current(&place);
        let is_current = current.is_some_and(|item| item["start_id"]["S"].as_str() == Some(start));
        let of_server = self.lobbies.values().filter(|lobby| lobby.server.as_deref() == Some(server));
        let mut earlier = of_server
            .filter(|lobby| lobby.lives() && self.born_on.get(&lobby.id).is_some_and(|on| on != start));
        if let Some(lobby) = earlier.next().map(|lobby| lobby.id.clone()).filter(|_| is_current) {
            self.fail(
                "I6",
                format!(
                    "start {start} of server {server} registered, and lobby {lobby} of an earlier one lives"
                ),
            );
        }
    }

    /// A heartbeat lists only lobbies of its own start.
    pub(super) fn check_listed(&mut self, server: &str, start: &str, answer: &Answer) {
        let listed = answer.body["lobbies"].as_array().into_iter().flatten();
        let mut listed = listed.filter_map(|lobby| lobby["lobby_id"].as_str());
        let other =
            listed.find(|id| self.born_on.get(*id).is_some_and(|on| on != start)).map(ToOwned::to_owned);
        if let Some(lobby) = other {
            self.fail("I6", format!("start {start} of server {server} learnt of lobby {lobby} of another"));
        }
    }
}

fn current(lobby: &Lobby, history: &History) -> Option<std::sync::Arc<serde_json::Value>> {
    let key = lobby.server.clone()?;
    history.current(&Place { table: "ServersTable".to_owned(), key })
}
