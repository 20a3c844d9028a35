//! I6, I9 and I10: a lobby's life, and whether it is in sight.

use super::{
    super::{history::History, wire::Place},
    Action, Change, LAG_MS, Lobby, Model, NEVER, Stage,
};
use model::conditions::Write;

impl Model {
    /// A lobby's life goes one way, and what is hidden for good is out of sight.
    pub(super) fn check_life(
        &mut self,
        change: &Change,
        before: Option<&Lobby>,
        after: &Lobby,
        history: &History,
    ) {
        let time = self.time(change.at);
        let id = &after.id;
        let is_hidden = after.is_closed || after.is_private || after.is_draining || !after.lives();
        if is_hidden && (after.joinable_from.is_some() || after.room.is_some()) {
            self.fail("I6", format!("lobby {id} is in sight, though closed, private or ended"));
        }
        if !is_hidden && after.joinable_from.is_none() {
            self.fail("I4", format!("lobby {id} is open and can never be found"));
        }
        if after.is_draining && !after.is_closed {
            self.fail("I6", format!("lobby {id} drains, and is open"));
        }
        if after.lives() != after.server.is_some() {
            self.fail("I10", format!("lobby {id} is {:?} on server {:?}", after.stage, after.server));
        }
        let Some(before) = before else { return };
        if !before.lives() {
            return self.fail("I10", format!("lobby {id} was changed after its end: {}", change.part.change));
        }
        if after.stage < before.stage {
            self.fail("I10", format!("lobby {id} went back from {:?} to {:?}", before.stage, after.stage));
        }
        if before.is_draining && !after.is_draining {
            self.fail("I10", format!("lobby {id} does not drain any more"));
        }
        let lasting = |lobby: &Lobby| {
            let Lobby { namespace, version, mode, region, created_at, .. } = lobby.clone();
            let Lobby { ports, tag_digests, max_players, max_players_direct, .. } = lobby.clone();
            (
                (namespace, version, mode, region, created_at),
                (ports, tag_digests, max_players, max_players_direct, lobby.reservation_ms),
            )
        };
        let is_asked = change.is(Write::MakePrivate) || change.is(Write::MakePublic);
        let has_changed = (lasting(before) != lasting(after) && !change.is(Write::OpenOnLaunched))
            || (after.lives() && before.server != after.server)
            || (before.is_private != after.is_private && !is_asked);
        if has_changed {
            self.fail("I4", format!("lobby {id} became another: {}", change.part.change));
        }
        self.check_sight(change, before, after);
        self.check_start_of_lobby(change, before);
        self.check_toggled(change, before, after);
        let asked_at = change.part.now.unwrap_or(time);
        let is_kept =
            change.is(Write::ExtendLease) || change.is(Write::ShowRevived) || change.is(Write::NoteState);
        let is_hint = [Write::HideSilent, Write::HideFull, Write::ShowRoom, Write::HideRoom]
            .into_iter()
            .any(|hint| change.is(hint));
        if before.is_overdue(asked_at) && !change.is(Write::End) && !is_kept && !is_hint {
            self.fail(
                "I10",
                format!("lobby {id} never became ready, and was changed: {}", change.part.change),
            );
        }
        if !after.lives() {
            self.check_end(change, before, history);
        }
    }

    /// I6: a close, a reopening or a change of publicity with a response does not take effect again after a
    /// later one.
    fn check_toggled(&mut self, change: &Change, before: &Lobby, after: &Lobby) {
        let answered = change.operation.and_then(|operation| self.operations[operation].answered.as_deref());
        if answered != Some("200") {
            return;
        }
        for (flag, was, is) in
            [("closed", before.is_closed, after.is_closed), ("private", before.is_private, after.is_private)]
        {
            if was != is {
                self.fail("I6", format!("lobby {} became {flag} {is} by a late write", after.id));
            }
        }
    }

    /// I4: a free seat stays in sight, and comes into sight again.
    fn check_sight(&mut self, change: &Change, before: &Lobby, after: &Lobby) {
        let (time, id) = (self.time(change.at), &after.id);
        let is_out_of_sight = after.joinable_from.is_some_and(|from| from > time);
        if change.is(Write::Leave) && is_out_of_sight && after.held(time) < after.max_players {
            self.fail("I4", format!("the seat that was left in lobby {id} is out of sight"));
        }
        if change.is(Write::HideSilent) && before.lease_until > time {
            self.fail("I10", format!("lobby {id} was hidden, though its server lives"));
        }
        if change.is(Write::HideFull) && after.taken < after.max_players {
            self.fail("I4", format!("lobby {id} was hidden, though it has free seats"));
        }
        if change.is(Write::ShowRoom) || change.is(Write::HideRoom) {
            let free = after.max_players.saturating_sub(after.taken).min(self.party_size_max);
            let is_hidden = after.joinable_from.is_none_or(|from| from == NEVER) || after.is_overdue(time);
            if !is_hidden && free >= 2 && after.room.is_none_or(|room| room < free) {
                self.fail("I4", format!("lobby {id} shows parties {:?} of {free} free seats", after.room));
            }
        }
        if change.is(Write::HideFull)
            && after.stage == Stage::Ready
            && after.joinable_from > after.free_from()
        {
            self.fail("I4", format!("lobby {id} was hidden for longer than it is full"));
        }
    }

    /// I4 and I10: no lobby ends without a cause.
    fn check_end(&mut self, change: &Change, before: &Lobby, history: &History) {
        let time = self.time(change.at);
        let action = change.operation.map(|operation| &self.operations[operation].action);
        if matches!(action, Some(Action::End { lobby }) if *lobby == before.id) {
            return;
        }
        if self.is_of_earlier_start(before, history) || self.ends_with_its_server(change, before, history) {
            return;
        }
        let needs_room = matches!(action, Some(Action::Find { .. } | Action::Create { .. }));
        if !before.may_end(time, needs_room) {
            self.fail("I4", format!("lobby {} was ended without a cause", before.id));
        }
        let is_needed = before.held(time) > 0 && !before.is_overdue(time) && !before.is_unused();
        let server = before.server.clone().unwrap_or_default();
        let server = history.as_of(&Place { table: "ServersTable".to_owned(), key: server }, change.at);
        let server_lease = server.and_then(|server| super::super::wire::number(&server["lease_until"]));
        if is_needed && server_lease.is_none_or(|until| until > time) {
            self.fail("I10", format!("lobby {} was ended for its server's silence, which lives", before.id));
        }
    }

    /// I8 and I9: a lobby is created when it may be, and when there is none to enter.
    pub(super) fn check_creation(&mut self, change: &Change, created: &Lobby, history: &History) {
        let Some(operation) = change.operation else {
            return self.fail("I4", format!("nobody's operation created lobby {}", created.id));
        };
        self.check_place(change, created, history);
        let Action::Find { may_create, .. } = &self.operations[operation].action else { return };
        if !may_create {
            self.fail("I8", format!("lobby {} was created by a find that must not", created.id));
        }
        if let Some(lobby) = self.missed_by(operation, change.at, history) {
            self.fail("I9", format!("lobby {} was created, though lobby {lobby} was joinable", created.id));
        }
    }

    /// A lobby that a find must have seen and could have entered, all the time since it began.
    pub(super) fn missed_by(&self, operation: usize, until: u64, history: &History) -> Option<String> {
        let operation = &self.operations[operation];
        let Action::Find { modes, regions, tags, beyond, .. } = &operation.action else { return None };
        let seen_by = operation.began_at.checked_sub(LAG_MS)?;
        let namespace = &self.namespaces[operation.namespace];
        let (_, version) = namespace.versions.last()?;
        let runs_since = namespace.versions.last()?.0;
        if runs_since + super::SETTINGS_AGE_MS > operation.began_at && namespace.versions.len() > 1 {
            return None;
        }
        let missed = self.lobbies.values().find(|lobby| {
            let fits = lobby.namespace == namespace.id
                && lobby.version == *version
                && modes.contains(&lobby.mode)
                && regions.contains(&lobby.region)
                && beyond.as_ref() != Some(&lobby.region)
                && self.has_tags(&lobby.id, tags);
            let is_open = |at| lobby.is_open(operation.party, self.time(at));
            // More room than the index shows it gets by the next heartbeat.
            let shows_room = operation.party == 1 || lobby.room.is_some_and(|room| room >= operation.party);
            let place = Place { table: "LobbiesTable".to_owned(), key: lobby.id.clone() };
            let is_settled =
                history.settled_at(&place).is_some_and(|(at, visible)| at.max(visible) <= seen_by);
            let in_sight = lobby.joinable_from.is_some_and(|from| from <= self.time(seen_by));
            let admits_all = !self.may_keep_out(&lobby.id);
            fits && is_settled
                && admits_all
                && shows_room
                && in_sight
                && is_open(seen_by)
                && is_open(until)
                && lobby.stage == Stage::Ready
        });
        missed.map(|lobby| lobby.id.clone())
    }
}
