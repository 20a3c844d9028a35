//! I4 and I7: seats that are kept for players who disconnected, and the tokens of players who come back.

use std::collections::BTreeMap;

use super::{Action, Change, Lobby, Model, Operation, answers::Answer};

/// The generations of a seat's tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Tokens {
    pub(crate) newest: u64,
    pub(crate) connected: u64,
    pub(crate) is_leaving: bool,
}

impl Tokens {
    /// Those of an item's text.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let mut parts = text.split('/');
        let newest = parts.next()?.parse().ok()?;
        let connected = parts.next()?.parse().ok()?;
        Some(Self { newest, connected, is_leaving: parts.next().is_some() })
    }

    const fn are_awaited(self) -> bool {
        self.connected < self.newest && !self.is_leaving
    }
}

impl Lobby {
    /// A seat's tokens; as if the first had connected, where it has had one alone.
    pub(super) fn tokens_of(&self, seat: &str) -> Tokens {
        self.tokens.get(seat).copied().unwrap_or_default()
    }

    /// Whether the newest token of a seat waits to connect.
    pub(super) fn awaits(&self, seat: &str) -> bool {
        self.tokens.get(seat).map_or_else(|| self.reserved.contains_key(seat), |tokens| tokens.are_awaited())
    }

    /// For how long a seat is kept whose server says `keep` of a player who disconnects.
    fn kept_ms(&self, seat: &str, keep: Option<u64>) -> u64 {
        let keep_ms = keep.map_or(self.keep_ms, |secs| secs * 1_000);
        match self.tokens_of(seat) {
            tokens if tokens.is_leaving => 0,
            tokens if tokens.are_awaited() => keep_ms.max(self.reservation_ms),
            _ => keep_ms,
        }
    }
}

impl Model {
    /// What a write did to the tokens of a lobby's seats, and which it keeps.
    pub(super) fn check_returns(&mut self, change: &Change, before: &Lobby, after: &Lobby) {
        let action = change.operation.map(|operation| self.operations[operation].action.clone());
        for (seat, tokens) in &after.tokens {
            if !after.holds(seat) {
                self.fail("I4", format!("the tokens of the free seat {seat} of lobby {} stay", after.id));
            }
            let seen = before.tokens.get(seat).copied();
            if seen != Some(*tokens) {
                self.check_tokens(change, (before, after), seat, (seen, *tokens), action.as_ref());
            }
        }
        let is_gone = |seat: &&String| !after.tokens.contains_key(*seat) && after.holds(seat);
        if let Some(seat) = before.tokens.keys().find(is_gone) {
            self.fail("I7", format!("the tokens of seat {seat} of lobby {} were forgotten", after.id));
        }
        let kept: BTreeMap<_, _> =
            after.reserved.iter().filter(|(seat, _)| before.connected.contains_key(*seat)).collect();
        for (seat, until) in kept {
            self.check_kept(change, before, after, (seat, *until), action.as_ref());
        }
    }

    fn check_tokens(
        &mut self,
        change: &Change,
        (before, after): (&Lobby, &Lobby),
        seat: &str,
        (seen, tokens): (Option<Tokens>, Tokens),
        action: Option<&Action>,
    ) {
        let was = before.tokens_of(seat);
        let is_due = match action {
            Some(Action::Rejoin { seat: own, .. }) => {
                let next = Tokens { newest: was.newest + 1, is_leaving: false, ..was };
                own == seat && tokens == next && !before.awaits(seat)
            }
            Some(Action::Connect { seat: own, token, .. }) => {
                let joined = Tokens { connected: was.newest, ..was };
                let is_due = own == seat && tokens == joined && *token == was.newest && before.awaits(seat);
                if let Some(operation) = change.operation.filter(|_| is_due) {
                    self.note_connected(operation, (&after.id, seat, *token));
                }
                is_due
            }
            Some(Action::GiveUp { seat: own, token, .. }) => {
                let left = Tokens { is_leaving: true, ..was };
                own == seat && tokens == left && *token == was.newest && before.connected.contains_key(seat)
            }
            // It came before its connect.
            Some(Action::Disconnect { seat: own, token, .. })
                if *token == was.newest && before.awaits(seat) =>
            {
                own == seat && seen.is_some() && tokens == Tokens { newest: was.newest + 1, ..was }
            }
            Some(Action::Disconnect { .. } | Action::Everyone { .. }) => {
                seen.is_none() && tokens == Tokens::default() && after.reserved.contains_key(seat)
            }
            _ => false,
        };
        if !is_due {
            let id = &after.id;
            self.fail("I7", format!("{action:?} made {seen:?} {tokens:?} of seat {seat} of lobby {id}"));
        }
        let asked_at = change.part.now.unwrap_or_default();
        if !before.holds_at(seat, asked_at) {
            self.fail("I7", format!("seat {seat} of lobby {} got a token, and had lapsed", after.id));
        }
    }

    /// I4: the seat of a player who disconnected is kept for as long as was said, and comes into sight then.
    fn check_kept(
        &mut self,
        change: &Change,
        before: &Lobby,
        after: &Lobby,
        (seat, until): (&str, u64),
        action: Option<&Action>,
    ) {
        let (id, tokens) = (&after.id, before.tokens_of(seat));
        let keep = match action {
            Some(Action::Disconnect { seat: own, lobby, token, keep }) => {
                (own == seat && lobby == id && *token == tokens.connected).then_some(*keep)
            }
            Some(Action::Everyone { lobby, keep }) => (lobby == id).then_some(*keep),
            _ => None,
        };
        let Some(keep) = keep else {
            return self.fail("I4", format!("{action:?} took the connection of seat {seat} of lobby {id}"));
        };
        let asked_at = change.part.now.unwrap_or_default();
        let expected = (asked_at + before.kept_ms(seat, keep)).min(before.connected[seat]);
        if until != expected || until <= asked_at {
            self.fail("I4", format!("seat {seat} of lobby {id} is kept until {until}, not {expected}"));
        }
        if after.joinable_from.is_some_and(|from| from > until) {
            self.fail("I4", format!("lobby {id} stays out of sight after its kept seat {seat} lapses"));
        }
    }

    /// Whether the request of `own` may free a seat of `before`: its player is not there, or not kept.
    pub(super) fn may_free(before: &Lobby, seat: &str, own: &Action, asked_at: u64) -> bool {
        let tokens = before.tokens_of(seat);
        let is_kept = |keep: Option<u64>| {
            let connected_until = before.connected.get(seat).copied().unwrap_or_default();
            before.kept_ms(seat, keep) > 0 && connected_until > asked_at
        };
        match own {
            Action::Disconnect { seat: left, lobby, token, keep } => {
                let is_first = before.reserved.contains_key(seat) && !before.tokens.contains_key(seat);
                let is_there = before.connected.contains_key(seat) && !is_kept(*keep);
                let is_its = *token == tokens.connected && (is_first || is_there);
                let has_lapsed = *token == tokens.newest && !before.holds_at(seat, asked_at);
                left == seat && *lobby == before.id && (is_its || has_lapsed)
            }
            Action::Everyone { lobby, keep } => {
                *lobby == before.id && before.connected.contains_key(seat) && !is_kept(*keep)
            }
            Action::Remove { seat: left, lobby, .. } => left == seat && *lobby == before.id,
            // Of a connected player its server says that it left.
            Action::GiveUp { seat: left, lobby, token } => {
                let is_newest = *token == tokens.newest;
                left == seat && *lobby == before.id && is_newest && before.reserved.contains_key(seat)
            }
            _ => false,
        }
    }

    /// The answer to a player who comes back is the seat that the token was for.
    pub(super) fn check_rejoined(&mut self, seat: &str, lobby: &str, operation: &Operation, answer: &Answer) {
        let answered = answer.body.pointer("/lobby/lobby_id").and_then(serde_json::Value::as_str);
        if answer.seats != [seat] || answered != Some(lobby) {
            self.fail("I7", format!("{} answered {} for seat {seat}", operation.function, answer.body));
        }
    }
}
