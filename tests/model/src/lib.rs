//! An exhaustive model of matchmaking at the level of the store's conditional writes.
//!
//! The state is the tables' truth, each actor's place in its program and what it has read, one write whose
//! first attempt may arrive late, and what happened so far. Each step is one write with exactly the store's
//! conditions, by their names in [`conditions`], or one read. Every order of steps is explored, and time may
//! pass between any two. A crash needs no step of its own: in every state all requests may have stopped for
//! ever, see `settling`; and the index is a hint that shows anything, but where creations are elected.
//!
//! Writes are judged when they are made, by a history that shares no code with the conditions. Not modelled
//! are I5 and I12, which the simulation checks, as it does how soon a process ends whose server is over
//! (I18), and I11: the namespace is a part of every key.

#![expect(clippy::indexing_slicing, clippy::panic, reason = "this is test code: what cannot go on panics")]

use std::{collections::BTreeSet, fmt, time::Instant};

use stateright::{Checker as _, HasDiscoveries, Model as _, Property};

pub mod conditions;
pub mod configurations;
mod history;
pub mod mutations;
mod programs;
pub mod report;
mod settling;
#[cfg(test)]
mod shipped;
mod tables;
mod writes;

use conditions::Condition;
pub use configurations::Configuration;
use history::{Broken, History};
use programs::{Actor, Program};
use tables::{Access, Availability, EPOCH, Head, LOBBIES, Lobby, OnDemand, SERVERS, Server, Stage};
use writes::{Bits, Outcome, Seen, Sent, Store, bit, check_tables, conditions_of, note};

/// Actors that a configuration may have.
const ACTORS: usize = 5;

/// The invariants that are judged, by their numbers.
const INVARIANTS: [(u8, &str); 14] = [
    (1, "I1: no more seats than there are, counted exactly"),
    (2, "I2: no more lobbies than the cap, and exactly as many can exist"),
    (3, "I3: every request ends, in an answer that is no bug"),
    (4, "I4: no seat, place or part of the cap is lost"),
    (6, "I6: no seat in a closed, ended, dead or foreign lobby"),
    (7, "I7: a player connects once, and in time"),
    (8, "I8: a find that may not create does not"),
    (9, "I9: no burst begins while a lobby is joinable, uncounted"),
    (10, "I10: a late heartbeat revives; what closed or ended stays so"),
    (13, "I13: a party is whole, or not seated"),
    (15, "I15: no more servers than the lobbies without a place need, nor than may be"),
    (16, "I16: a start goes one way"),
    (17, "I17: no lobby waits for a server that has not come in time"),
    (18, "I18: the ledger counts the servers that may run, and none is left over"),
];

/// Everything there is at an instant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    now: u8,
    cap: u8,
    version: u8,
    ledger: u8,
    head: Head,
    lobbies: [Lobby; LOBBIES],
    servers: [Server; SERVERS],
    on_demand: OnDemand,
    actors: [Actor; ACTORS],
    late: Option<Sent>,
    copies: u8,
    history: History,
    broken: Option<Broken>,
}

/// What happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Time passes.
    Tick,
    /// An actor takes one of the steps that it may take.
    Step(usize, u8),
    /// An actor's write is sent twice; the first attempt is still under way.
    Copy(usize),
    /// That attempt arrives.
    Late,
    /// The record of a server that was let go expires.
    Expire(usize),
}

/// A configuration as it is checked.
#[derive(Debug)]
struct Checked {
    configuration: Configuration,
    without: Bits,
    seen: Seen,
}

/// What came of checking a configuration.
#[derive(Debug)]
pub struct Outcomes {
    /// The configuration's name.
    pub name: &'static str,
    /// Distinct states.
    pub states: usize,
    /// Steps to the farthest of them.
    pub depth: usize,
    /// Seconds that it took.
    pub seconds: f64,
    /// Conditions that were evaluated.
    pub evaluated: BTreeSet<Condition>,
    /// Conditions that refused a write that nothing else refused.
    pub decisive: BTreeSet<Condition>,
    /// What does not hold, if anything.
    pub violation: Option<Violation>,
}

/// An invariant that does not hold.
#[derive(Clone, Debug)]
pub struct Violation {
    /// Its name and what it says.
    pub invariant: &'static str,
    /// What was seen.
    pub what: &'static str,
    /// The shortest way there.
    pub steps: Vec<String>,
}

impl Violation {
    /// The invariant's short name: `I1`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.invariant.split(':').next().unwrap_or_default()
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.invariant, self.what)?;
        self.steps.iter().try_for_each(|step| writeln!(f, "  {step}"))
    }
}

/// Checks every state of `configuration` until an invariant breaks, with one condition removed if `without`
/// names it.
#[must_use]
pub fn check(configuration: Configuration, without: Option<Condition>) -> Outcomes {
    let began = Instant::now();
    let name = configuration.name;
    let model =
        Checked { configuration, without: without.map_or_else(Bits::default, bit), seen: Seen::default() };
    let checker = model.checker().finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    let found = checker.discoveries().into_iter().map(|(invariant, path)| (path.into_vec(), invariant));
    // Several may be found before the checker stops: the same one every time.
    let found = found.min_by_key(|(path, invariant)| (path.len(), *invariant));
    let violation = found.map(|(path, invariant)| {
        let broken = path.last().and_then(|(state, _)| state.broken);
        let what = broken.map_or("a request never ends", |(_, what)| what);
        let model = checker.model();
        let steps = path.windows(2).map(|pair| match pair {
            [(before, Some(action)), (after, _)] => model.describe(before, *action, after),
            _ => String::new(),
        });
        Violation { invariant, what, steps: steps.collect() }
    });
    Outcomes {
        name,
        states: checker.unique_state_count(),
        depth: checker.max_depth(),
        seconds: began.elapsed().as_secs_f64(),
        evaluated: conditions_of(checker.model().seen.evaluated()).collect(),
        decisive: conditions_of(checker.model().seen.decisive()).collect(),
        violation,
    }
}

/// The conditions that are evaluated on `walks` of at most `steps` chance steps through `configuration`: much
/// less than every state, in much less time.
#[must_use]
pub fn walk(configuration: Configuration, walks: u32, steps: u32) -> BTreeSet<Condition> {
    use stateright::Model as _;
    let model = Checked {
        configuration: Configuration { settles: false, ..configuration },
        without: Bits::default(),
        seen: Seen::default(),
    };
    let mut chance = fastrand::Rng::with_seed(1);
    for _ in 0..walks {
        let Some(mut state) = model.init_states().pop() else { break };
        for _ in 0..steps {
            let mut actions = Vec::new();
            model.actions(&state, &mut actions);
            let next = chance.choice(actions).and_then(|action| model.next_state(&state, action));
            let Some(next) = next else { break };
            state = next;
        }
    }
    conditions_of(model.seen.evaluated()).collect()
}

impl Checked {
    const fn store(&self) -> Store<'_> {
        Store { rules: &self.configuration.rules, without: self.without, seen: &self.seen }
    }

    const fn program(&self, actor: usize) -> Program<'_> {
        Program { store: self.store(), roles: self.configuration.roles, actor }
    }

    /// What holds of a state, on any path to it.
    fn judge(&self, state: &mut State, has_written: bool) {
        if state.broken.is_some() {
            return;
        }
        if self.configuration.rules.election.is_some() {
            self.note_joinable(state);
        }
        if has_written {
            let checked = check_tables(&self.configuration.rules, state);
            note(state, checked);
        }
        if state.broken.is_none() && self.configuration.settles {
            let settled = settling::settle(&self.store(), state);
            note(state, settled);
        }
    }

    fn note_joinable(&self, state: &mut State) {
        for at in 0..LOBBIES {
            let lobby = &state.lobbies[at];
            let availability =
                lobby.availability(&self.configuration.rules, Access::Find(state.version), 1, state.now);
            let is_joinable = matches!(availability, Availability::Free(_) | Availability::TakeOver(_))
                && lobby.stage == Stage::Ready;
            let history = &mut state.history.lobbies[at];
            let is_free = matches!(availability, Availability::Free(_));
            let is_as_before = history.joinable_since > 0 && history.was_free == is_free;
            history.was_free = is_joinable && is_free;
            history.joinable_since = match (is_joinable, is_as_before) {
                (false, _) => 0,
                (true, false) => state.now,
                (true, true) => history.joinable_since,
            };
        }
    }

    fn describe(&self, before: &State, action: Action, after: &State) -> String {
        let at = before.now - EPOCH;
        match action {
            Action::Tick => format!("{at}: a tick"),
            Action::Step(actor, _) => {
                let role = self.configuration.roles[actor];
                let what = match &before.actors[actor].mind {
                    programs::Mind::Send { sent, .. } => format!("sends {sent:?}"),
                    mind => format!("goes on from {mind:?}"),
                };
                let answer = match &after.actors[actor].mind {
                    programs::Mind::Done(answer) => format!(", is answered {answer:?}"),
                    _ => String::new(),
                };
                format!("{at}: {actor} {role:?} {what}{answer}")
            }
            Action::Copy(actor) => format!("{at}: {actor}'s write is sent twice"),
            Action::Late => format!("{at}: late arrives {:?}", before.late),
            Action::Expire(server) => format!("{at}: the record of server {server} expires"),
        }
    }
}

/// Records the worst that a lagging index may show of each lobby.
fn note_index(state: &mut State, before: &State, lag: u8) {
    for at in 0..LOBBIES {
        let (old, new) = (before.lobbies[at].joinable_from, state.lobbies[at].joinable_from);
        let history = &mut state.history.lobbies[at];
        // A lobby that is not there is out of sight like one whose entry is in the far future.
        let old = if old == 0 { tables::NEVER } else { old };
        if old != new {
            let may_lag = history.indexed_at + lag > state.now;
            history.indexed_before = if may_lag { history.indexed_before.max(old) } else { old };
            history.indexed_at = state.now;
        }
    }
}

impl stateright::Model for Checked {
    type Action = Action;
    type State = State;

    fn init_states(&self) -> Vec<State> {
        vec![self.configuration.first_state()]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.broken.is_some() {
            return;
        }
        let Configuration { rules, roles, .. } = &self.configuration;
        let is_pressed = (0..roles.len()).any(|actor| self.program(actor).is_pressed(state));
        if state.now < EPOCH + rules.ticks && !is_pressed {
            actions.push(Action::Tick);
        }
        let mut choices = Vec::new();
        for actor in 0..roles.len() {
            self.program(actor).choices(state, &mut choices);
            actions.extend(choices.iter().map(|choice| Action::Step(actor, *choice)));
            let is_sending = matches!(state.actors[actor].mind, programs::Mind::Send { .. });
            if is_sending && state.late.is_none() && state.copies < rules.late {
                actions.push(Action::Copy(actor));
            }
        }
        if state.late.is_some() {
            actions.push(Action::Late);
        }
        if self.configuration.expires {
            let expiring = state.servers.iter().enumerate().filter(|(_, server)| server.expires);
            actions.extend(expiring.map(|(at, _)| Action::Expire(at)));
        }
    }

    fn next_state(&self, before: &State, action: Action) -> Option<State> {
        let mut state = before.clone();
        match action {
            Action::Tick => state.now += 1,
            Action::Step(actor, choice) => self.program(actor).step(&mut state, choice),
            Action::Copy(actor) => {
                if let programs::Mind::Send { sent, .. } = state.actors[actor].mind {
                    state.late = Some(sent);
                    state.copies += 1;
                }
            }
            Action::Late => {
                if let Some(sent) = state.late.take()
                    && let Outcome::Bug(what) = self.store().apply(&mut state, &sent)
                {
                    note(&mut state, Err((3, what)));
                }
            }
            Action::Expire(at) => {
                state.servers[at] = Server::default();
                let expired = state.history.expired(at, state.now);
                note(&mut state, expired);
                if before.servers[at].launch.stage.is_some() {
                    state.history.servers[at] = history::ServerHistory::default();
                }
            }
        }
        if let Some(lag) = self.configuration.rules.election {
            note_index(&mut state, before, lag);
        }
        let has_written = state.lobbies != before.lobbies || state.servers != before.servers;
        if has_written && self.configuration.rules.starts.is_some() {
            let goes = History::check_stages(&before.servers, &state.servers);
            note(&mut state, goes);
        }
        if has_written || action == Action::Tick || state.head != before.head {
            self.judge(&mut state, has_written);
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        macro_rules! property {
            ($($at:literal)*) => {
                vec![$(Property::always(INVARIANTS[$at].1, |_, state: &State| {
                    state.broken.is_none_or(|(invariant, _)| invariant != INVARIANTS[$at].0)
                }),)*]
            };
        }
        let mut properties = property!(0 1 2 3 4 5 6 7 8 9 10 11 12 13);
        properties.push(Property::always(
            "I3: whoever began can go on until it is answered",
            |model: &Self, state: &State| {
                let mut choices = Vec::new();
                (0..model.configuration.roles.len()).all(|actor| {
                    let mind = &state.actors[actor].mind;
                    let program = model.program(actor);
                    state.broken.is_some() || mind.is_done() || *mind == programs::Mind::Idle || {
                        program.choices(state, &mut choices);
                        !choices.is_empty()
                    }
                })
            },
        ));
        properties
    }
}
