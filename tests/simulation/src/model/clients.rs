//! I5 and I12: repeated requests, and how many seats a client holds.

use std::collections::BTreeSet;

use model::conditions::Write;
use shared::models::{lifecycle::CONNECTED_MAX, standing::SUSPECT_SEATS_MAX};

use super::{super::wire::number, Action, Change, Model, Operation, answers::Answer};

/// One client of one namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Holder {
    namespace: usize,
    client: u8,
}

impl Operation {
    /// Whether it and `other` are runs of the same request.
    pub(super) fn repeats(&self, other: &Self) -> bool {
        self.key.is_some() && self.key == other.key
    }
}

impl Model {
    /// I5: the runs with the key of `operation` hold at most the seats of one lobby, apart from those whose
    /// write came too late for any run to know of it.
    pub(super) fn check_one_seat(&mut self, operation: usize, at: u64) {
        let operation = &self.operations[operation];
        if operation.key.is_none() {
            return;
        }
        let time = self.time(at);
        let runs = self.operations.iter().filter(|other| other.repeats(operation));
        let seats: BTreeSet<_> = runs.flat_map(|run| &run.seats).collect();
        let is_held = |(lobby, seat): &&&(String, String)| {
            self.lobbies.get(lobby).is_some_and(|lobby| lobby.lives() && lobby.holds_at(seat, time))
        };
        let held: Vec<_> = seats.iter().filter(is_held).filter(|seat| !self.late.contains(**seat)).collect();
        let lobbies: BTreeSet<_> = held.iter().map(|(lobby, _)| lobby).collect();
        if lobbies.len() > 1 || held.len() as u64 > operation.party {
            let what = format!("requests of one key hold the seats {held:?}");
            self.fail("I5", what);
        }
    }

    /// I5: requests with one key get the same response. I12: with the new seat, the client has no more seats
    /// than it may.
    pub(super) fn check_given(&mut self, operation: &Operation, lobby: &str, answer: &Answer, at: u64) {
        if let Some(key) = &operation.key {
            let kept = self.kept.entry(key.clone()).or_insert_with(|| answer.body.clone());
            if *kept != answer.body {
                let what = format!("the request {key} was answered {kept} and then {}", answer.body);
                self.fail("I5", what);
            }
        }
        let holder = Holder { namespace: operation.namespace, client: operation.client };
        for seat in &answer.seats {
            self.given.entry((lobby.to_owned(), seat.clone())).or_insert(Some(holder));
        }
        let time = self.time(at);
        let kept_out = self.kept_out.get(&(holder, lobby.to_owned()));
        let began_at = operation.began_at;
        if operation.key.is_none()
            && kept_out.is_some_and(|(since, until)| *since < began_at && time < *until)
        {
            self.fail("I6", format!("a player who was removed from lobby {lobby} is seated there again"));
        }
        let held = self.given.iter().filter(|((lobby, seat), of)| {
            let lobby = self.lobbies.get(lobby).filter(|lobby| lobby.lives());
            **of == Some(holder) && lobby.is_some_and(|lobby| lobby.holds_at(seat, time))
        });
        let held: Vec<_> =
            held.map(|(seat, _)| seat).filter(|seat| !self.connected_late.contains(*seat)).collect();
        let holds_max = self.namespaces[operation.namespace].holds_max;
        if u32::try_from(held.len()).is_ok_and(|held| held > holds_max) {
            self.fail("I12", format!("a client holds {held:?} at {at}, and may hold {holds_max}"));
        }
    }

    /// I12: a client's item counts each of its holds once, or it may never take its last seat again.
    pub(super) fn check_count_of_holds(&mut self, change: &Change) {
        let Some(item) = change.after.as_deref() else { return };
        let Some(held) = number(&item["held"]) else { return };
        let attributes = item.as_object().into_iter().flatten();
        let holds = attributes.filter(|(name, _)| name.starts_with("seat_")).count() as u64;
        if held != holds {
            let what = format!("{} counts {held} holds and has {holds}", change.part.place.key);
            self.fail("I12", what);
        }
    }

    /// A player was removed from a lobby: from now on none of its client is seated there.
    pub(super) fn note_removed(&mut self, operation: usize, lobby: &str, seat: &str, at: u64) {
        let Operation { action: Action::Remove { secs, .. }, began_at, .. } = &self.operations[operation]
        else {
            return;
        };
        let until = self.time(*began_at) + secs * 1_000;
        let taken = (lobby.to_owned(), seat.to_owned());
        let Some(holder) = self.given.get(&taken).copied().flatten() else { return };
        if self.namespaces[holder.namespace].holds_max < u32::MAX {
            self.kept_out.insert((holder, lobby.to_owned()), (at, until));
            self.removed.insert(taken, holder);
        }
    }

    /// A player who is gone was removed again: the time for its client begins anew, and may end sooner.
    pub(super) fn note_removed_again(&mut self, change: &Change) {
        let Some(operation) = change.operation.filter(|_| change.is(Write::KeepOut) && !change.is_late)
        else {
            return;
        };
        let Operation { action: Action::Remove { seat, lobby, secs }, began_at, .. } =
            &self.operations[operation]
        else {
            return;
        };
        let again = self.time(*began_at) + secs * 1_000;
        let Some(holder) = self.removed.get(&(lobby.clone(), seat.clone())) else { return };
        if let Some((_, until)) = self.kept_out.get_mut(&(*holder, lobby.clone())) {
            *until = again;
        }
    }

    /// Whether a lobby may keep out players of some client: one was removed from it, or is about to be.
    pub(super) fn may_keep_out(&self, lobby: &str) -> bool {
        let removals = self.operations.iter().filter_map(|operation| match &operation.action {
            Action::Remove { lobby, .. } => Some((lobby, operation.namespace)),
            _ => None,
        });
        let mut of_lobby = removals.filter(|(removed_from, _)| *removed_from == lobby);
        of_lobby.any(|(_, namespace)| self.namespaces[namespace].holds_max < u32::MAX)
    }

    /// A join is refused for a removal only while there is one of the lobby.
    pub(super) fn check_kept_out(&mut self, operation: &Operation) {
        let Action::Join { lobby } = &operation.action else { return };
        if !self.may_keep_out(lobby) {
            self.fail("I3", format!("nobody was removed from lobby {lobby}"));
        }
    }

    /// I12: a client is refused for its seats only if it held that many during its request, or may have:
    /// seats of crashed requests count, and so do requests of the last half minute without a response. One of
    /// whom nobody is connected may be refused with a single seat, while lobbies run short.
    pub(super) fn check_refused_client(&mut self, operation: &Operation) {
        let (began_at, time) = (operation.began_at, self.time(operation.began_at));
        let holder = Holder { namespace: operation.namespace, client: operation.client };
        let is_recent = |other: &&Operation| {
            let is_of_client = other.namespace == operation.namespace && other.client == operation.client;
            let asks_for_seat =
                matches!(other.action, Action::Find { .. } | Action::Join { .. } | Action::Create { .. });
            let ended_at = match other.answered_at {
                Some(at) => at,
                None if other.has_ended => other.began_at + PENDING_MS,
                None => u64::MAX,
            };
            // Or leaves one, which the client's item gets in a write of its own.
            let leaves = matches!(
                &other.action,
                Action::Disconnect { .. }
                    | Action::Everyone { .. }
                    | Action::GiveUp { .. }
                    | Action::Remove { .. }
            );
            (is_of_client && asks_for_seat || leaves) && ended_at.saturating_add(PENDING_MS) > began_at
        };
        let recent = self.operations.iter().filter(is_recent).map(|other| other.party);
        let pending = recent.sum::<u64>().saturating_sub(operation.party);
        let given = self.given.iter().filter(|(_, of)| **of == Some(holder)).map(|(seat, _)| seat);
        // What took a seat and crashed, or left it to its repetition, holds it, too: until it lapses, or a
        // repetition answers it.
        let own = self
            .operations
            .iter()
            .filter(|other| other.namespace == operation.namespace && other.client == operation.client);
        let seats: BTreeSet<_> = given.chain(own.flat_map(|other| &other.seats)).collect();
        let lives = |(lobby, seat): &(String, String)| {
            let lobby = self.lobbies.get(lobby)?;
            Some((lobby.holds_at(seat, time), lobby.connected.get(seat).copied()))
        };
        let seen: Vec<_> = seats.into_iter().filter_map(lives).collect();
        let has_connected = seen
            .iter()
            .any(|(is_held, until)| *is_held && until.is_some_and(|until| until < time + CONNECTED_MS));
        let held = seen.iter().filter(|(is_held, _)| *is_held);
        let holds_max = self.namespaces[operation.namespace].holds_max;
        let holds_max = if has_connected { holds_max } else { holds_max.min(SUSPECT_SEATS_MAX) };
        let held = held.count() as u64 + pending;
        if held + operation.party <= u64::from(holds_max) {
            self.fail(
                "I12",
                format!("a client was refused that can hold no more than {held} of {holds_max}"),
            );
        }
    }
}

/// How long a connected player holds a seat, in milliseconds.
const CONNECTED_MS: u64 = CONNECTED_MAX.as_millis() as u64;

/// How long it may be unknown whether a request took its seat, in milliseconds.
const PENDING_MS: u64 = 31_000;
