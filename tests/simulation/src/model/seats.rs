//! I1, I4 to I7: what may become of seats.

use super::{Action, Change, Lobby, Model, NEVER, Stage};
use model::conditions::Write;

/// How long a player may be connected, in milliseconds.
const CONNECTED_MS: u64 = 8 * 3_600_000;

/// The clause of a find that hides the lobby because it takes the last seat. A find whose burst promised the
/// other seats may hide it earlier.
const TAKES_LAST: &str = "#taken = :last";

/// What hides it. A find that takes the last room for parties has the clause as well, and hides nothing.
const HIDES: &str = "#joinable_from = :lapse";

impl Model {
    pub(super) fn check_seats(&mut self, change: &Change, before: Option<&Lobby>, after: &Lobby) {
        let time = self.time(change.at);
        let entries = (after.reserved.len() + after.connected.len()) as u64;
        if after.taken != entries {
            self.fail("I1", format!("lobby {} counts {} seats and has {entries}", after.id, after.taken));
        }
        if after.lives() && after.held(time) > after.max_players_direct {
            let held = after.held(time);
            self.fail("I1", format!("lobby {} holds {held} of {} seats", after.id, after.max_players_direct));
        }
        if let Some(seat) = after.reserved.keys().find(|seat| after.connected.contains_key(*seat)) {
            self.fail("I5", format!("seat {seat} of lobby {} is reserved and connected", after.id));
        }
        let mut added = 0;
        for (seat, until) in after.entries() {
            if before.is_none_or(|before| !before.holds(seat)) {
                self.check_added(change, before, after, seat, until);
                added += 1;
            }
        }
        let party = change.operation.map_or(0, |operation| self.operations[operation].party);
        if added > 0 && added != party {
            self.fail("I13", format!("{added} of a party of {party} were seated in lobby {}", after.id));
        }
        let Some(before) = before else { return };
        for (seat, until) in before.entries() {
            if !after.holds(seat) {
                self.check_removed(change, before, seat, until);
            }
        }
        for seat in after.connected.keys().filter(|seat| !before.connected.contains_key(*seat)) {
            self.check_connected(change, before, after, seat);
        }
        self.check_renewed(change, before, after);
        self.check_returns(change, before, after);
    }

    /// A seat was taken: I1 by its access, I5, and everything that I6 names.
    fn check_added(
        &mut self,
        change: &Change,
        before: Option<&Lobby>,
        after: &Lobby,
        seat: &str,
        until: u64,
    ) {
        let time = self.time(change.at);
        let id = &after.id;
        let Some(operation) = change.operation else {
            return self.fail("I4", format!("nobody's operation took a seat in lobby {id}"));
        };
        // What the writer went by: later than its beginning, and not after its commit.
        let began_at = self.time(self.operations[operation].began_at);
        let asked_at = change.part.now.unwrap_or(began_at);
        if asked_at < began_at || asked_at > time {
            self.fail("I6", format!("a seat of lobby {id} was taken by the clock of {asked_at} at {time}"));
        }
        let added = self.added.entry((id.clone(), seat.to_owned())).or_default();
        *added += 1;
        if *added > 1 && before.is_some_and(|before| before.holds(seat)) {
            self.fail("I5", format!("seat {seat} of lobby {id} was taken twice"));
        }
        let taken = (id.clone(), seat.to_owned());
        if self.operations[operation].answered_at.is_some() {
            // An attempt that was given up as lost, and arrives after all: a reservation without a player,
            // until it lapses.
            self.given.insert(taken, None);
        } else {
            if change.is_late {
                self.late.insert(taken.clone());
            }
            self.operations[operation].seats.push(taken);
        }
        let capacity = match self.operations[operation].action {
            Action::Find { .. } => after.max_players,
            _ => after.max_players_direct,
        };
        if after.held(time) > capacity {
            let held = after.held(time);
            self.fail("I1", format!("lobby {id} holds {held} seats, and {capacity} is its capacity"));
        }
        if until > time + after.reservation_ms || until == NEVER {
            self.fail(
                "I4",
                format!("seat {seat} of lobby {id} is reserved until {until}, which is too long"),
            );
        }
        let is_out_of_sight = after.joinable_from.is_some_and(|from| from > time);
        if change.part.clauses.iter().any(|clause| clause == TAKES_LAST)
            && change.part.change.contains(HIDES)
            && is_out_of_sight
            && after.taken < after.max_players
        {
            self.fail("I4", format!("lobby {id} was hidden as full, and has free seats"));
        }
        let state = before.unwrap_or(after);
        if !state.lives() {
            self.fail("I6", format!("a seat was taken in lobby {id}, which has ended"));
        }
        if state.is_overdue(asked_at) {
            self.fail("I6", format!("a seat was taken in lobby {id}, which never became ready"));
        }
        if state.lease_until <= asked_at {
            let lease = state.lease_until;
            self.fail(
                "I6",
                format!("a seat was taken in lobby {id} at {asked_at}; its lease ended at {lease}"),
            );
        }
        self.check_asked(operation, before.is_some(), state);
    }

    /// I6: the lobby is one that the operation requested.
    fn check_asked(&mut self, operation: usize, did_exist: bool, lobby: &Lobby) {
        let id = &lobby.id;
        let (namespace, began_at) = {
            let operation = &self.operations[operation];
            (operation.namespace, operation.began_at)
        };
        if self.namespaces[namespace].id != lobby.namespace {
            self.fail("I11", format!("a seat was taken in lobby {id} of another namespace"));
        }
        match self.operations[operation].action.clone() {
            Action::Find { modes, regions, tags, .. } => {
                if did_exist && (lobby.is_closed || lobby.is_private || lobby.is_draining) {
                    self.fail("I6", format!("a find took a seat in lobby {id}, which is closed or private"));
                }
                if !modes.contains(&lobby.mode) || !regions.contains(&lobby.region) {
                    self.fail("I6", format!("a find took a seat in lobby {id} of another mode or region"));
                }
                if !self.ran(namespace, &lobby.version, began_at) {
                    self.fail("I6", format!("a find took a seat in lobby {id} of another version"));
                }
                if !self.has_tags(id, &tags) {
                    self.fail("I6", format!("a find took a seat in lobby {id} without its tags"));
                }
            }
            Action::Create { mode, region } => {
                if did_exist || lobby.mode != mode || lobby.region != region {
                    self.fail("I6", format!("lobby {id} is not what was to be created"));
                }
            }
            Action::Join { lobby: joined } => {
                if joined != *id {
                    self.fail("I6", format!("a join of lobby {joined} took a seat in lobby {id}"));
                }
            }
            other => self.fail("I4", format!("{other:?} took a seat in lobby {id}")),
        }
    }

    /// I4: a seat ends by leaving, or because it lapsed and another takes it over.
    fn check_removed(&mut self, change: &Change, before: &Lobby, seat: &str, until: u64) {
        let time = self.time(change.at);
        let own = change.operation.map(|operation| &self.operations[operation]);
        let has_left = change.is(Write::Leave)
            && own.is_some_and(|own| match &own.action {
                action @ (Action::Disconnect { .. }
                | Action::Everyone { .. }
                | Action::Remove { .. }
                | Action::GiveUp { .. }) => {
                    Self::may_free(before, seat, action, change.part.now.unwrap_or(time))
                }
                // A find that gives up.
                _ => self
                    .operations
                    .iter()
                    .filter(|run| run.repeats(own) || std::ptr::eq(*run, own))
                    .flat_map(|run| &run.seats)
                    .any(|(lobby, own)| *lobby == before.id && own == seat),
            });
        let was_answered = has_left
            && own.is_some_and(|own| {
                matches!(
                    own.action,
                    Action::Disconnect { .. }
                        | Action::Everyone { .. }
                        | Action::GiveUp { .. }
                        | Action::Remove { .. }
                )
            });
        let was_taken_over = change.is(Write::TakeOverSeat) && before.lapses(until, time);
        if !has_left && !was_taken_over {
            self.fail("I4", format!("seat {seat} of lobby {}, held until {until}, was lost", before.id));
        }
        if was_answered {
            self.left.insert((before.id.clone(), seat.to_owned()));
        }
        if let Some(operation) = change.operation {
            self.note_removed(operation, &before.id, seat, change.at);
        }
        // If a copy of the write that took it arrives, the reservation has no player.
        self.given.insert((before.id.clone(), seat.to_owned()), None);
    }

    /// I7: a seat is connected once, while it is reserved in a lobby that is ready.
    fn check_connected(&mut self, change: &Change, before: &Lobby, after: &Lobby, seat: &str) {
        let time = self.time(change.at);
        let id = &after.id;
        if before.stage != Stage::Ready {
            self.fail("I7", format!("a player connected to lobby {id}, which is {:?}", before.stage));
        }
        let asked_at = change.part.now.unwrap_or(time);
        if before.reserved.get(seat).is_none_or(|until| *until <= asked_at) {
            self.fail("I7", format!("seat {seat} of lobby {id} was connected without a reservation"));
        }
        if after.connected.get(seat).is_some_and(|until| *until > time + CONNECTED_MS) {
            self.fail("I4", format!("seat {seat} of lobby {id} is connected for more than 8 h"));
        }
        if before.reserved.get(seat).is_some_and(|until| *until <= time) {
            self.connected_late.insert((id.clone(), seat.to_owned()));
        }
        let Some(operation) = change.operation else { return };
        match &self.operations[operation].action.clone() {
            // By a later token than the first, its tokens say so.
            Action::Connect { seat: connected, lobby, token } if connected == seat && lobby == id => {
                self.note_connected(operation, (id, seat, *token));
                if (*token > 0) != before.tokens.contains_key(seat) {
                    self.fail("I7", format!("seat {seat} of lobby {id} was connected by token {token}"));
                }
            }
            _ => self.fail("I7", format!("seat {seat} of lobby {id} was connected by somebody else")),
        }
    }

    /// I4: a player connects who was not reported gone before.
    pub(super) fn note_connected(&mut self, operation: usize, (lobby, seat, token): (&str, &str, u64)) {
        self.operations[operation].has_connected = true;
        let is_gone = self.operations.iter().any(|other| {
            let is_of_token = matches!(&other.action, Action::Disconnect { seat: own, lobby: of, token: shown, .. }
                if own == seat && of == lobby && *shown == token);
            is_of_token && other.answered.as_deref() == Some("200")
        });
        // Unless a late copy of the write that took the seat has reserved it again.
        let is_first = self.added.get(&(lobby.to_owned(), seat.to_owned())).is_none_or(|times| *times == 1);
        if is_gone && is_first {
            self.fail(
                "I4",
                format!("token {token} of seat {seat} of lobby {lobby} connected after it was gone"),
            );
        }
    }

    /// I4: a seat's time changes when its lobby becomes ready, and when its player connects.
    fn check_renewed(&mut self, change: &Change, before: &Lobby, after: &Lobby) {
        let renewed = after
            .reserved
            .iter()
            .any(|(seat, until)| before.reserved.get(seat).is_some_and(|earlier| earlier != until));
        let becomes_ready = before.stage == Stage::Starting && after.stage == Stage::Ready;
        if renewed && !becomes_ready {
            self.fail("I4", format!("reservations of lobby {} began anew by themselves", after.id));
        }
        let limit = self.time(change.at) + after.reservation_ms;
        if becomes_ready && after.reserved.values().any(|until| *until > limit) {
            self.fail("I4", format!("lobby {} became ready with seats reserved for too long", after.id));
        }
    }
}
