//! What finds, the starter and processes do for servers on demand.

use super::{
    Allotment, Answer, Burst, Mind, Program, Role, Swept, Then, Transition, end_as_seen, letting_go,
};
use crate::{
    State,
    tables::{EndCause, LOBBIES, LaunchStage, Lease, NestAt, Process, Server, Stage},
    writes::{Creation, Gone, Outcome, Part, SeenNursery, Sent, note},
};

/// Tries of one draw.
const DRAWS_MAX: u8 = 3;

/// What a creation knows of servers on demand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Hatch {
    pub(super) nest: Option<Nest>,
    /// When it saw no place.
    pub(super) looked_at: u8,
    /// Draws in vain.
    in_vain: u8,
    /// The server of the last of them, if it was full.
    full: Option<NestAt>,
    is_at_servers_max: bool,
    /// Nurseries that it tried to begin.
    begun: u8,
}

/// A place on a server that is to be requested, or is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Nest {
    at: NestAt,
    /// The server's place in the tables.
    pub(super) slot: usize,
    pub(super) requests: bool,
    /// The number of its position among those of the server.
    among: u8,
    /// Whether it has seen the server.
    is_met: bool,
    drawn_at: u8,
}

/// A draw, and the creation that it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Drawing {
    pub(super) round: u8,
    pub(super) tries: u8,
    pub(super) allotment: Allotment,
    pub(super) burst: Burst,
    pub(super) draws: u8,
}

impl Hatch {
    /// For another try of the same creation.
    pub(super) fn anew(self) -> Self {
        Self { begun: self.begun, ..Self::default() }
    }
}

impl Drawing {
    const fn place(self) -> Mind {
        let Self { round, tries, allotment, burst, .. } = self;
        Mind::Place { round, tries, allotment, burst }
    }
}

impl Program<'_> {
    /// Whether the index need not show a server yet.
    pub(super) fn may_be_unseen(&self, state: &State, server: usize) -> bool {
        let lag = self.rules().starts.map_or(0, |starts| starts.lag);
        let seen = &state.servers[server];
        seen.launch.stage.is_some() && seen.ranked_at + lag > state.now
    }

    /// Whether there is somebody to speak for a server: of one that Muster starts, its process.
    pub(super) fn has_process(&self, state: &State, server: usize) -> bool {
        let is_early = state.servers[server].is_requested() && !matches!(self.role(), Role::Register { .. });
        let runs = || state.on_demand.processes[server] == Process::Runs;
        self.rules().starts.is_none() || runs() && (!is_early || matches!(self.role(), Role::Die(_)))
    }

    /// Whether a registration is refused: a process registers only the server that was requested for it,
    /// while that is not over.
    pub(super) fn is_refused_as_over(&self, state: &State, server: usize) -> bool {
        let seen = &state.servers[server];
        self.rules().starts.is_some() && (seen.is_over() || seen.launch.stage.is_none())
    }

    pub(super) fn may_request(&self, state: &State, allotment: Allotment) -> bool {
        let hatch = &state.actors[self.actor].hatch;
        self.rules().starts.is_some() && !hatch.is_at_servers_max && allotment != Allotment::None
    }

    /// When it drew the place on which it now creates its lobby, or draws one.
    pub(super) fn drew_at(&self, state: &State) -> Option<u8> {
        match state.actors[self.actor].mind {
            Mind::Send { sent: Sent::BeginNursery { now, .. } | Sent::DrawInNursery { now, .. }, .. } => {
                Some(now)
            }
            Mind::Place { .. } | Mind::Send { then: Then::Placed { .. }, .. } => {
                state.actors[self.actor].hatch.nest.map(|nest| nest.drawn_at)
            }
            _ => None,
        }
    }

    fn mark(&self, state: &State, burst: Burst) -> u8 {
        4 * self.lobby_to_create(burst) as u8 + state.actors[self.actor].hatch.in_vain + 1
    }

    pub(super) fn draw(&self, state: &mut State, drawing: Drawing, exhausted: Option<SeenNursery>) -> Mind {
        if drawing.draws >= DRAWS_MAX {
            return self.without_nest(state, drawing);
        }
        let (now, mark) = (state.now, self.mark(state, drawing.burst));
        let hatch = &mut state.actors[self.actor].hatch;
        hatch.begun += 1;
        let first = 8 * (4 * drawing.round + hatch.begun) + self.actor as u8;
        let sent = Sent::BeginNursery { first, mark, seen: exhausted, looked_at: hatch.looked_at, now };
        Mind::Send { sent, then: Then::NurseryBegun(drawing) }
    }

    /// Others were quicker each time: as if no server could be requested.
    fn without_nest(&self, state: &mut State, drawing: Drawing) -> Mind {
        state.actors[self.actor].hatch.is_at_servers_max = true;
        drawing.place()
    }

    fn nursery_begun(&self, state: &mut State, drawing: Drawing, is_made: bool, now: u8) -> Mind {
        let (nursery, mark) = (state.on_demand.nursery, self.mark(state, drawing.burst));
        if !is_made && nursery.blocked_until > now {
            return Mind::Done(Answer::Refused);
        }
        if let Some(position) = nursery.position(mark) {
            return self.nested(state, drawing, position, now);
        }
        let capacity = self.rules().starts().capacity;
        let full = state.actors[self.actor].hatch.full;
        let is_beyond = full
            .is_some_and(|full| full.first == nursery.first && nursery.count() <= (full.nth + 1) * capacity);
        if is_beyond {
            let exhausted = Some(SeenNursery { first: nursery.first, count: nursery.count() });
            return Mind::Draw { drawing: Drawing { draws: drawing.draws + 1, ..drawing }, exhausted };
        }
        let sent = Sent::DrawInNursery { first: nursery.first, mark, now };
        Mind::Send { sent, then: Then::NurseryDrawn(drawing) }
    }

    fn nursery_drawn(&self, state: &mut State, drawing: Drawing, now: u8) -> Mind {
        let nursery = state.on_demand.nursery;
        match nursery.position(self.mark(state, drawing.burst)) {
            Some(position) => self.nested(state, drawing, position, now),
            None => Mind::Draw { drawing: Drawing { draws: drawing.draws + 1, ..drawing }, exhausted: None },
        }
    }

    /// Goes to the server of its position.
    fn nested(&self, state: &mut State, drawing: Drawing, position: u8, now: u8) -> Mind {
        let capacity = self.rules().starts().capacity;
        let at = NestAt { first: state.on_demand.nursery.first, nth: position / capacity };
        let nests = &mut state.on_demand.nests;
        let known = nests.iter().position(|nest| *nest == at);
        let Some(slot) = known.or_else(|| nests.iter().position(|nest| nest.first == 0)) else {
            note(state, Err((15, "more servers than the lobbies without a place need")));
            return Mind::Done(Answer::Bug);
        };
        nests[slot] = at;
        let among = position % capacity;
        let nest = Nest { at, slot, requests: among == 0, among, is_met: false, drawn_at: now };
        state.actors[self.actor].hatch.nest = Some(nest);
        drawing.place()
    }

    /// The server of a nest, and the block that its creation brings.
    pub(super) fn nesting(&self, state: &State, nest: Nest, cap: u8) -> (Server, Option<u8>) {
        let starts = self.rules().starts();
        if nest.is_met {
            let seen = state.servers[nest.slot];
            return (seen, seen.next_block(self.rules(), cap));
        }
        let used = if nest.requests { 0 } else { nest.among };
        let server = Server { used, cap_checked: cap, ..Server::requested(&starts, state.now) };
        (server, nest.requests.then(|| starts.capacity.min(cap)))
    }

    /// Whether a creation was refused because as many servers as may be count.
    pub(super) fn is_at_servers_max(&self, state: &State, sent: &Sent) -> bool {
        let requests = matches!(sent, Sent::Create(Creation { requests: true, .. }));
        requests && state.on_demand.counted >= self.rules().starts().servers_max
    }

    /// What a refused creation means for its nest.
    pub(super) fn after_nest(&self, state: &mut State, sent: &Sent, outcome: Outcome, allotment: Allotment) {
        let is_at_max = outcome == Outcome::Refused(Part::Ledger) && self.is_at_servers_max(state, sent);
        let Some(nest) = state.actors[self.actor].hatch.nest else { return };
        let seen = state.servers[nest.slot];
        let hatch = &mut state.actors[self.actor].hatch;
        match outcome {
            Outcome::Refused(Part::Ledger) if is_at_max => {
                (hatch.nest, hatch.is_at_servers_max) = (None, true)
            }
            Outcome::Refused(Part::Ledger) if allotment == Allotment::None => hatch.nest = None,
            // It has waited for the find that should.
            Outcome::Refused(Part::Server) if !seen.is_there() => {
                hatch.nest = Some(Nest { requests: true, ..nest });
            }
            Outcome::Refused(Part::Server) if seen.fits(state.now) => {
                hatch.nest = Some(Nest { requests: false, is_met: true, ..nest });
            }
            Outcome::Refused(Part::Server) => {
                hatch.nest = None;
                hatch.in_vain = (hatch.in_vain + 1).min(3);
                hatch.full = (seen.used >= seen.capacity).then_some(nest.at);
            }
            _ => {}
        }
    }

    /// What a look for places does with a silent server that it meets.
    pub(super) fn hiding_silent(&self, state: &State, server: usize, now: u8) -> Sent {
        let Server { used, allotted, launch, .. } = state.servers[server];
        if used > 0 || launch.stage == Some(LaunchStage::Requested) {
            return Sent::HideServer { server, used, now };
        }
        match launch.stage {
            Some(_) if state.servers[server].is_deregistered() => {
                letting_go(&state.servers[server], server, now)
            }
            Some(_) => Sent::Retire { server, now },
            None => Sent::LetGo { server, allotted, how: Gone::Silent, now },
        }
    }

    /// One look at a started server by what starts and ends processes.
    pub(super) fn look_after(&self, state: &mut State, server: usize) -> Mind {
        let (seen, now) = (state.servers[server], state.now);
        match seen.launch.stage {
            Some(LaunchStage::Requested) if seen.launch.deadline <= now => {
                Mind::Send { sent: Sent::FailLaunch { server, now }, then: Then::Failed }
            }
            Some(LaunchStage::Requested) if !seen.launch.has_handle => Mind::Order { server },
            Some(LaunchStage::Running) if seen.lease_until.saturating_add(seen.lease) <= now => {
                Mind::Send { sent: Sent::Retire { server, now }, then: Then::Retired }
            }
            Some(stage) if stage.is_over() => self.over(state, server, &seen),
            _ => self.looked(state),
        }
    }

    /// The look is done.
    fn looked(&self, state: &mut State) -> Mind {
        match self.role() {
            Role::Look(_, times) => self.repeat(state, times),
            _ => Mind::Done(Answer::Made),
        }
    }

    pub(super) fn order(&self, state: &mut State, choice: usize, server: usize) -> Mind {
        if choice > 0 {
            let now = state.now;
            return Mind::Send { sent: Sent::FailLaunch { server, now }, then: Then::Failed };
        }
        let process = &mut state.on_demand.processes[server];
        if *process == Process::None {
            *process = Process::Runs;
        }
        Mind::Send { sent: Sent::NoteHandle { server }, then: Then::HandleNoted }
    }

    /// Ends what is left of a server that is over, as it was `seen`.
    fn over(&self, state: &mut State, server: usize, seen: &Server) -> Mind {
        if !seen.launch.has_ended {
            return Mind::EndProcess { server, is_released: seen.expires };
        }
        if seen.expires { self.looked(state) } else { Mind::Clear { server, lobby: 0 } }
    }

    pub(super) fn end_process(&self, state: &mut State, server: usize, is_released: bool) -> Mind {
        let process = &mut state.on_demand.processes[server];
        if *process == Process::Runs {
            *process = Process::Ended;
        }
        Mind::Send { sent: Sent::NoteEnded { server }, then: Then::EndNoted { is_released } }
    }

    pub(super) fn clear(&self, state: &mut State, server: usize, from: usize) -> Mind {
        let runs = |at: &usize| usize::from(state.lobbies[*at].server) == server + 1;
        if let Some(at) = (from..LOBBIES).find(runs) {
            let sent = end_as_seen(&state.lobbies[at], at, EndCause::Asked, state.now);
            return Mind::Send { sent, then: Then::Cleared { lobby: at } };
        }
        let seen = state.servers[server];
        if !seen.is_there() || seen.used > 0 || seen.expires {
            return self.looked(state);
        }
        Mind::Send { sent: letting_go(&seen, server, state.now), then: Then::Released }
    }

    /// A process that ends by itself, which its starter sees.
    pub(super) fn die(&self, state: &mut State, server: usize) -> Mind {
        state.on_demand.processes[server] = Process::Ended;
        let (seen, now) = (state.servers[server], state.now);
        match seen.launch.stage {
            Some(LaunchStage::Requested) => {
                Mind::Send { sent: Sent::FailLaunch { server, now }, then: Then::Failed }
            }
            // Its lease is over already.
            Some(LaunchStage::Running) => {
                let now = now.max(seen.lease_until);
                Mind::Send { sent: Sent::Retire { server, now }, then: Then::Retired }
            }
            _ => self.look_after(state, server),
        }
    }

    /// A process that learns that its server is over ends. Other servers are refused.
    pub(super) fn exit(&self, state: &mut State, server: usize) -> Mind {
        if self.rules().starts.is_some() {
            state.on_demand.processes[server] = Process::Ended;
        }
        Mind::Done(Answer::Refused)
    }

    /// What follows the registration of a started server.
    pub(super) const fn began(&self, is_first: bool, item: &Server) -> Mind {
        let lease = Lease { until: item.lease_until, heartbeat_at: item.beat_at };
        if is_first {
            return Mind::Send { sent: Sent::NoteStart, then: Then::StartNoted { lease } };
        }
        Mind::Done(Answer::Made)
    }

    /// What has to be done before a started server keeps a lobby: it may wait for the start.
    pub(super) fn open(&self, state: &State, at: usize, lease: Lease, pass: u8) -> Option<Mind> {
        let (lobby, server) = (&state.lobbies[at], self.own_server());
        if lobby.waits {
            let sent = Sent::OpenOnLaunched { lobby: at, server, until: state.servers[server].lease_until };
            return Some(Mind::Send { sent, then: Then::Opened { lobby: at, lease, pass } });
        }
        let is_due = lobby.stage == Stage::Starting && state.servers[server].auto_ready;
        is_due.then(|| {
            let sweep = Some(Swept { lobby: at, lease, pass });
            self.after_refusal(state, Transition::Ready, lobby, at, state.now, 0, sweep)
        })
    }

    /// What a heartbeat of a started server finds: that it is idle, or is not any more.
    pub(super) fn stop_if_idle(&self, state: &State, server: usize, lease: Lease) -> Mind {
        let (seen, now) = (state.servers[server], lease.heartbeat_at);
        let go_on = Mind::Sweep { lobby: 0, lease, pass: 0 };
        if seen.launch.stage.is_none() {
            return go_on;
        }
        let since = seen.launch.idle_since;
        match (since, seen.used) {
            (0, 0) => {
                Mind::Send { sent: Sent::NoteIdle { server, since: now }, then: Then::IdleNoted { lease } }
            }
            (1.., 0) if now >= since + self.rules().starts().idle => {
                Mind::Send { sent: Sent::StopIdle { server, since, now }, then: Then::Stopped { lease } }
            }
            (1.., 1..) => {
                Mind::Send { sent: Sent::NoteIdle { server, since: 0 }, then: Then::IdleNoted { lease } }
            }
            _ => go_on,
        }
    }

    /// What an actor does once it knows what came of a write for servers on demand.
    pub(super) fn go_on_with_launched(
        &self,
        state: &mut State,
        sent: &Sent,
        then: Then,
        is_made: bool,
    ) -> Mind {
        let server = self.own_server();
        match (then, *sent) {
            (Then::NurseryBegun(drawing), Sent::BeginNursery { now, .. }) => {
                self.nursery_begun(state, drawing, is_made, now)
            }
            (Then::NurseryDrawn(drawing), Sent::DrawInNursery { now, .. }) => {
                self.nursery_drawn(state, drawing, now)
            }
            (Then::StartNoted { lease } | Then::IdleNoted { lease }, _) => {
                Mind::Sweep { lobby: 0, lease, pass: 0 }
            }
            (Then::Opened { lobby, lease, pass }, _) => {
                let is_open = !state.lobbies[lobby].waits && state.lobbies[lobby].stage != Stage::Ended;
                Mind::Sweep { lobby: if is_made || is_open { lobby } else { lobby + 1 }, lease, pass }
            }
            (Then::Stopped { .. }, _) if is_made => self.exit(state, server),
            (Then::Stopped { lease }, _) => Mind::Sweep { lobby: 0, lease, pass: 0 },
            (Then::Failed, _) if is_made => Mind::Send { sent: Sent::NoteFailure, then: Then::FailureNoted },
            (Then::FailureNoted, _) => {
                let failures = state.on_demand.nursery.failures;
                if failures < self.rules().starts().failures {
                    return self.over(state, server, &state.servers[server].clone());
                }
                let until = state.now + self.rules().starts().blocked;
                Mind::Send { sent: Sent::BlockNursery { failures, until }, then: Then::Blocked }
            }
            (Then::Blocked, _) | (Then::Retired, _) if is_made || then == Then::Blocked => {
                self.over(state, server, &state.servers[server].clone())
            }
            (Then::HandleNoted, _) if state.servers[server].is_over() => {
                self.over(state, server, &state.servers[server].clone())
            }
            (Then::EndNoted { is_released: false }, _) => Mind::Clear { server, lobby: 0 },
            (Then::Cleared { lobby }, _) => Mind::Clear { server, lobby: lobby + 1 },
            _ => self.looked(state),
        }
    }
}
