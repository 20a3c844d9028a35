//! The writes of servers on demand.

use super::{Bits, Check, Outcome, Part, Sent, Stage, State, Store, bit, note};
use crate::{
    conditions::{Condition, Write},
    history::{Broken, broken},
    tables::{LaunchStage, NEVER, Nursery, Server},
};

impl Store<'_> {
    pub(super) fn allotting_and_counting(&self, state: &State, cap: u8, block: u8) -> Check {
        let mut ledger = Check::default();
        let has_room = state.ledger <= cap.saturating_sub(block);
        clause!(ledger, CountServer, "(attribute_not_exists(#allotted) OR #allotted <= :room)", has_room);
        let may_count = state.on_demand.counted < self.rules.starts().servers_max;
        clause!(ledger, CountServer, "(attribute_not_exists(#servers) OR #servers < :servers)", may_count);
        ledger
    }

    /// Puts a server for its first lobby, which is still to be counted.
    pub(super) fn request(&self, state: &mut State, at: usize, item: &Server, now: u8) -> Result<(), Broken> {
        state.servers[at] = Server { cap_checked: 0, ..*item };
        state.on_demand.counted += 1;
        state.history.requested(&self.rules.starts(), at, item, now)
    }

    pub(super) fn on_demand(&self, state: &mut State, sent: &Sent) -> Outcome {
        let mut check = Check::default();
        match *sent {
            Sent::BeginNursery { first, mark, seen, looked_at, now } => {
                let nursery = state.on_demand.nursery;
                let is_stale = nursery.first == 0 || nursery.drawn_at <= looked_at - self.rules.window;
                match seen {
                    None => clause!(
                        check,
                        BeginNursery,
                        "(attribute_not_exists(#first) OR #drawn_at <= :stale)",
                        is_stale
                    ),
                    Some(seen) => clause!(
                        check,
                        BeginNursery,
                        "(attribute_not_exists(#first) OR #drawn_at <= :stale OR (#first = :seen AND size(#drawn) = :count))",
                        is_stale || nursery.first == seen.first && nursery.count() == seen.count
                    ),
                }
                clause!(
                    check,
                    BeginNursery,
                    "(attribute_not_exists(#blocked_until) OR #blocked_until <= :now)",
                    nursery.blocked_until <= now
                );
                self.on_nursery(state, &check, |state, nursery| {
                    let begun =
                        state.history.nursery_begun(&state.servers, nursery, looked_at, self.rules.window);
                    let Nursery { failures, blocked_until, .. } = *nursery;
                    *nursery =
                        Nursery { first, drawn_at: now, failures, blocked_until, ..Nursery::default() };
                    nursery.draw(mark);
                    state.history.drew(mark);
                    begun
                })
            }
            Sent::DrawInNursery { first, mark, now } => {
                let nursery = state.on_demand.nursery;
                clause!(check, DrawInNursery, "#first = :first", nursery.first == first);
                let is_new = nursery.first > 0 && nursery.position(mark).is_none();
                clause!(check, DrawInNursery, "NOT contains(#drawn, :mark)", is_new);
                self.on_nursery(state, &check, |state, nursery| {
                    nursery.drawn_at = now;
                    state.history.drew(mark);
                    broken(!is_new || !nursery.draw(mark), 15, "a lobby drew twice")
                })
            }
            Sent::NoteStart => self.on_nursery(state, &check, |_, nursery| {
                (nursery.failures, nursery.blocked_until) = (0, 0);
                Ok(())
            }),
            Sent::NoteFailure => self.on_nursery(state, &check, |_, nursery| {
                nursery.failures += 1;
                Ok(())
            }),
            Sent::BlockNursery { failures, until } => {
                let is_same = failures > 0 && state.on_demand.nursery.failures == failures;
                clause!(check, BlockNursery, "#failures = :failures", is_same);
                self.on_nursery(state, &check, |_, nursery| {
                    nursery.blocked_until = until;
                    Ok(())
                })
            }
            Sent::OpenOnLaunched { lobby: at, server, until } => {
                let lobby = state.lobbies[at];
                clause!(check, OpenOnLaunched, "#stage <> :ended", lobby.stage != Stage::Ended);
                clause!(check, OpenOnLaunched, "#server = :server", lobby.server == server as u8 + 1);
                clause!(check, OpenOnLaunched, "attribute_exists(#launch)", lobby.waits);
                self.on_lobby(state, at, &check, |state, lobby| {
                    (lobby.waits, lobby.lease_until) = (false, until);
                    state.history.opened(at, server, until)
                })
            }
            _ => self.on_launched(state, sent),
        }
    }

    #[expect(clippy::too_many_lines, reason = "an arm for each write")]
    fn on_launched(&self, state: &mut State, sent: &Sent) -> Outcome {
        let mut check = Check::default();
        let over = |server: &mut Server, stage: LaunchStage| {
            server.launch.stage = Some(stage);
            (server.capacity, server.free_from, server.ranked_at) = (0, NEVER, NEVER);
        };
        match *sent {
            Sent::FailLaunch { server: at, now: _ } => {
                clause!(check, FailLaunch, "#stage = :requested", state.servers[at].is_requested());
                self.on_server(state, at, &check, |state, server| {
                    over(server, LaunchStage::Failed);
                    state.history.failed(at)
                })
            }
            Sent::Retire { server: at, now } => {
                let server = state.servers[at];
                let is_running = server.launch.stage == Some(LaunchStage::Running);
                clause!(check, RetireLaunched, "#stage = :running", is_running);
                let is_silent = server.is_there() && server.lease_until <= now;
                clause!(check, RetireLaunched, "#lease_until <= :now", is_silent);
                let process = state.on_demand.processes[at];
                self.on_server(state, at, &check, |state, server| {
                    over(server, LaunchStage::Gone);
                    state.history.retired(at, process, now)
                })
            }
            Sent::StopIdle { server: at, since, now: _ } => {
                let server = state.servers[at];
                let is_running = server.launch.stage == Some(LaunchStage::Running);
                clause!(check, StopIdle, "#stage = :running", is_running);
                clause!(check, StopIdle, "#used = :zero", server.is_there() && server.used == 0);
                let is_as_seen = since > 0 && server.launch.idle_since == since;
                clause!(check, StopIdle, "#idle_since = :since", is_as_seen);
                self.on_server(state, at, &check, |state, server| {
                    over(server, LaunchStage::Stopping);
                    state.history.stopped(at)
                })
            }
            Sent::NoteIdle { server: at, since } => {
                let is_launched = state.servers[at].launch.stage.is_some();
                if since > 0 {
                    clause!(check, NoteIdle, "attribute_exists(#launch)", is_launched);
                } else {
                    clause!(check, NoteBusy, "attribute_exists(#launch)", is_launched);
                }
                self.on_server(state, at, &check, |_, server| {
                    server.launch.idle_since = since;
                    Ok(())
                })
            }
            Sent::NoteHandle { server: at } => {
                let launch = state.servers[at].launch;
                clause!(check, NoteHandle, "attribute_exists(#launch)", launch.stage.is_some());
                clause!(check, NoteHandle, "attribute_not_exists(#handle)", !launch.has_handle);
                self.on_server(state, at, &check, |_, server| {
                    (server.launch.has_handle, server.launch.has_ended) = (true, false);
                    Ok(())
                })
            }
            Sent::NoteEnded { server: at } => {
                let launch = state.servers[at].launch;
                clause!(check, NoteEnded, "attribute_exists(#launch)", launch.stage.is_some());
                clause!(check, NoteEnded, "attribute_not_exists(#ended_at)", !launch.has_ended);
                self.on_server(state, at, &check, |_, server| {
                    server.launch.has_ended = true;
                    Ok(())
                })
            }
            Sent::LetLaunchedGo { server: at, allotted, has_failed } => {
                let server = state.servers[at];
                clause!(check, LetLaunchedGo, "#capacity = :zero", server.is_deregistered());
                clause!(check, LetLaunchedGo, "#used = :zero", server.is_there() && server.used == 0);
                let is_as_seen = server.is_there() && server.allotted == allotted;
                clause!(check, LetLaunchedGo, "#allotted = :allotted", is_as_seen);
                clause!(check, LetLaunchedGo, "attribute_not_exists(#expires_at)", !server.expires);
                let stage = if has_failed { LaunchStage::Failed } else { LaunchStage::Gone };
                self.return_allotment(state, at, &check, (allotted, true), |server| {
                    (server.expires, server.allotted, server.launch.stage) = (true, 0, Some(stage));
                })
            }
            _ => Outcome::Bug("no write of a server"),
        }
    }

    /// An item that is not there is written, too.
    fn on_nursery(
        &self,
        state: &mut State,
        check: &Check,
        write: impl FnOnce(&mut State, &mut Nursery) -> Result<(), Broken>,
    ) -> Outcome {
        if self.is_refused(check) {
            return Outcome::Refused(Part::Nursery);
        }
        let mut nursery = state.on_demand.nursery;
        let result = write(state, &mut nursery);
        state.on_demand.nursery = nursery;
        note(state, result);
        Outcome::Made
    }
}
