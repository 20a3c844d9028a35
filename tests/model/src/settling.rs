//! What must hold if all requests stopped at this instant. A crash at any point therefore needs no action of
//! its own.
//!
//! On a copy of the tables, undisturbed and by the same writes: each server sends its next heartbeat, every
//! lobby is tried for a seat, everything lapses, every lobby ends, and as many lobbies are created as the cap
//! allows.

use std::iter::once;

use super::{
    State,
    history::{Broken, broken},
    programs::{end_as_seen, registration_of, take_over},
    tables::{
        Access, Availability, EndCause, FAR, Hiding, LOBBIES, LaunchStage, Lease, Lobby, NEVER, SERVERS,
        SPARE, Server, Stage,
    },
    writes::{Claim, Creation, Gone, Outcome, Part, Sent, Store, check_tables},
};

/// Reports what would stay wrong permanently if only new requests acted from now on.
pub(super) fn settle(store: &Store<'_>, state: &State) -> Result<(), Broken> {
    let mut state = state.clone();
    // No two heartbeats of a server are at the same instant.
    state.now += 1;
    let now = state.now;
    for server in 0..SERVERS {
        register_again(store, &mut state, server, now)?;
        beat(store, &mut state, server, now)?;
        ask_again(store, &mut state, server, now)?;
    }
    check_sight(store, &state, now)?;
    for at in 0..LOBBIES {
        enter(store, &state, at, now)?;
    }
    end_all(store, &mut state)?;
    fill(store, &mut state)
}

fn send(store: &Store<'_>, state: &mut State, sent: &Sent) -> Result<Outcome, Broken> {
    let outcome = store.apply(state, sent);
    if let Outcome::Bug(what) = outcome {
        return Err((3, what));
    }
    match state.broken {
        Some(found) => Err(found),
        None => Ok(outcome),
    }
}

/// One undisturbed heartbeat, after which each lobby of a living server is as its players see it.
fn beat(store: &Store<'_>, state: &mut State, server: usize, now: u8) -> Result<(), Broken> {
    let seen = state.servers[server];
    if !seen.is_there() || seen.is_gone() || seen.is_over() || seen.is_requested() {
        return Ok(());
    }
    if seen.lease > 0 {
        let outcome = send(store, state, &Sent::Heartbeat { server, now })?;
        broken(outcome != Outcome::Made && state.servers[server].beat_at <= now, 10, "a server cannot beat")?;
        let seen = state.servers[server];
        if seen.free_from == NEVER && seen.used < seen.capacity {
            send(store, state, &Sent::ShowServer { server, registration: seen.registration })?;
        }
    }
    let seen = state.servers[server];
    let is_hidden = seen.used < seen.capacity && seen.lease_until > now && seen.free_from > now;
    broken(is_hidden, 4, "a server's place stays out of sight")?;
    if seen.lease == 0 && !store.rules.sends_heartbeats_without_lease {
        return Ok(());
    }
    let lease = Lease { until: seen.lease_until, heartbeat_at: now };
    for at in 0..LOBBIES {
        let lobby = state.lobbies[at];
        if usize::from(lobby.server) != server + 1 {
            continue;
        }
        open(store, state, at, server, now)?;
        let lobby = state.lobbies[at];
        if let Some(cause @ (EndCause::Idle | EndCause::NeverReady)) = lobby.end_cause(store.rules, now) {
            let outcome = send(store, state, &end_as_seen(&lobby, at, cause, now))?;
            broken(outcome != Outcome::Made, 4, "a lobby that nobody needs cannot be ended")?;
            continue;
        }
        if lobby.lease_until != lease.until || lobby.joinable_from == NEVER {
            send(store, state, &Sent::ExtendLease { lobby: at, server, lease })?;
            if state.lobbies[at].joinable_from == NEVER {
                send(store, state, &Sent::ShowRevived { lobby: at })?;
            }
            let is_dead = seen.lease_until > now && state.lobbies[at].lease_until <= now;
            broken(is_dead, 10, "a late heartbeat does not revive a lobby")?;
        }
    }
    Ok(())
}

/// A started server's heartbeat opens a lobby that waited for it.
fn open(store: &Store<'_>, state: &mut State, at: usize, server: usize, now: u8) -> Result<(), Broken> {
    if state.lobbies[at].waits {
        let until = state.servers[server].lease_until;
        let outcome = send(store, state, &Sent::OpenOnLaunched { lobby: at, server, until })?;
        broken(outcome != Outcome::Made, 17, "a lobby waits on after its server has come")?;
    }
    let lobby = state.lobbies[at];
    let is_launched = state.servers[server].launch.stage.is_some();
    if is_launched && lobby.stage == Stage::Starting && !lobby.is_overdue(store.rules, now) {
        let is_full = lobby.joinable_from > 0 && lobby.taken >= store.rules.max_players;
        let anew = now + store.rules.reservation;
        let sent = Sent::Ready { lobby: at, reserved: lobby.reserved, anew, is_full, now };
        let outcome = send(store, state, &sent)?;
        broken(outcome != Outcome::Made, 17, "a lobby is not ready after its server has come")?;
    }
    Ok(())
}

/// Long after, when every deadline and lease is over: a started server is given up or retired, its lobbies
/// end, and it counts no more.
fn end_started(store: &Store<'_>, state: &mut State, server: usize) -> Result<(), Broken> {
    let seen = state.servers[server];
    let Some(stage) = seen.launch.stage else { return Ok(()) };
    let ends = match stage {
        LaunchStage::Requested => Some(Sent::FailLaunch { server, now: FAR }),
        LaunchStage::Running => Some(Sent::Retire { server, now: FAR }),
        _ => None,
    };
    if let Some(sent) = ends {
        let outcome = send(store, state, &sent)?;
        broken(outcome != Outcome::Made, 18, "a server that is silent cannot be given up")?;
    }
    for at in 0..LOBBIES {
        let lobby = state.lobbies[at];
        if usize::from(lobby.server) == server + 1 {
            let outcome = send(store, state, &end_as_seen(&lobby, at, EndCause::Asked, FAR))?;
            broken(outcome != Outcome::Made, 17, "a lobby outlives its server")?;
        }
    }
    let Server { allotted, launch, expires, .. } = state.servers[server];
    if !expires {
        let has_failed = launch.stage == Some(LaunchStage::Failed);
        let outcome = send(store, state, &Sent::LetLaunchedGo { server, allotted, has_failed })?;
        broken(outcome != Outcome::Made, 18, "a server that is over counts on")?;
    }
    // Its record expires.
    state.servers[server] = Server::default();
    state.history.servers[server] = Default::default();
    Ok(())
}

/// A server retries its registration without lease if it got no response; heartbeats make up for one with a
/// lease.
fn register_again(store: &Store<'_>, state: &mut State, server: usize, now: u8) -> Result<(), Broken> {
    let seen = state.servers[server];
    let is_unanswered = state.history.servers[server].is_unanswered;
    if !is_unanswered || !seen.is_there() || seen.is_deregistered() || seen.lease > 0 {
        return Ok(());
    }
    let item = registration_of(Some(seen), 249, seen.capacity, 0, now);
    let outcome = send(store, state, &Sent::Register { server, item, seen: Some(seen) })?;
    broken(outcome != Outcome::Made, 4, "a server cannot register again")?;
    let lease = Lease { until: item.lease_until, heartbeat_at: now };
    for at in 0..LOBBIES {
        let lobby = state.lobbies[at];
        if usize::from(lobby.server) == server + 1 {
            send(store, state, &Sent::ExtendLease { lobby: at, server, lease })?;
            if state.lobbies[at].joinable_from == NEVER {
                send(store, state, &Sent::ShowRevived { lobby: at })?;
            }
        }
    }
    Ok(())
}

/// A deregistration without a response is retried.
fn ask_again(store: &Store<'_>, state: &mut State, server: usize, now: u8) -> Result<(), Broken> {
    let seen = &state.servers[server];
    if !store.rules.deregisters_again || !seen.is_deregistered() || seen.is_over() {
        return Ok(());
    }
    for at in 0..LOBBIES {
        let lobby = state.lobbies[at];
        if usize::from(lobby.server) != server + 1 {
            continue;
        }
        if lobby.is_overdue(store.rules, now) {
            send(store, state, &end_as_seen(&lobby, at, EndCause::NeverReady, now))?;
        } else {
            send(store, state, &Sent::Drain { lobby: at, now })?;
        }
    }
    Ok(())
}

/// An open lobby with a free seat is in sight.
fn check_sight(store: &Store<'_>, state: &State, now: u8) -> Result<(), Broken> {
    for (at, lobby) in state.lobbies.iter().enumerate() {
        let history = &state.history.lobbies[at];
        let is_open = history.lives() && !history.is_closed && !history.is_draining && !lobby.is_private;
        if !is_open || lobby.lease_until <= now || lobby.is_overdue(store.rules, now) {
            continue;
        }
        broken(lobby.joinable_from == 0, 4, "an open lobby is never in sight again")?;
        let has_free = lobby.held(now) < store.rules.max_players;
        // A full one comes into sight by itself when enough of its seats lapse.
        let sight = if has_free { now } else { next_free(store, lobby) };
        // A find that fills it while a seat begins to be kept may hide it as if all its seats were reserved.
        let slack = if lobby.has_tokens { store.rules.reservation } else { 0 };
        broken(
            lobby.joinable_from > sight.saturating_add(slack),
            4,
            "a lobby with free seats stays out of sight",
        )?;
    }
    Ok(())
}

/// The time at which a find gets a seat in a full lobby, if no player leaves.
fn next_free(store: &Store<'_>, lobby: &Lobby) -> u8 {
    if lobby.stage == Stage::Starting {
        return lobby.created_at + store.rules.starting_max;
    }
    let mut untils: Vec<u8> =
        lobby.reserved.iter().chain(&lobby.connected).copied().filter(|until| *until > 0).collect();
    untils.sort_unstable();
    let beyond = untils.len().saturating_sub(usize::from(store.rules.max_players));
    untils.get(beyond).copied().unwrap_or(NEVER)
}

/// A newcomer gets a seat where one is not held, and a party where two are not.
fn enter(store: &Store<'_>, state: &State, at: usize, now: u8) -> Result<(), Broken> {
    let rules = store.rules;
    let (lobby, history) = (state.lobbies[at], &state.history.lobbies[at]);
    let is_open = history.lives() && lobby.joinable_from > 0 && !lobby.is_overdue(rules, now);
    if !is_open || lobby.lease_until <= now || lobby.holds(SPARE) {
        return Ok(());
    }
    let (seat, until, access) = (SPARE, now + rules.reservation, Access::Find(lobby.version));
    let mate = (0..SPARE).find(|mate| !rules.parties.is_empty() && !lobby.holds(*mate));
    for mate in once(None).chain(mate.map(Some)) {
        let count = 1 + u8::from(mate.is_some());
        let capacity = lobby.capacity(rules, access, count);
        if lobby.held(now) + count > capacity {
            continue;
        }
        let (mut state, hiding) = (state.clone(), Hiding::No);
        let sent = match (lobby.availability(rules, access, count, now), mate) {
            (Availability::TakeOver(lapsed), _) => {
                take_over(&lobby, lapsed, (at, seat, mate), access, (until, now))
            }
            (_, Some(mate)) => {
                let (is_assumed, vacated_at, lobby) = (false, now, at);
                Sent::TakeParty(Claim {
                    lobby,
                    seat,
                    mate,
                    until,
                    access,
                    hiding,
                    capacity,
                    is_assumed,
                    vacated_at,
                    now,
                })
            }
            _ => Sent::TakeFree { lobby: at, seat, until, access, hiding, now },
        };
        let outcome = send(store, &mut state, &sent)?;
        broken(outcome != Outcome::Made, 4, "a seat that nobody holds cannot be taken")?;
    }
    Ok(())
}

/// Long after, when everything lapsed: each lobby may end, and gives its place back.
fn end_all(store: &Store<'_>, state: &mut State) -> Result<(), Broken> {
    for server in 0..SERVERS {
        end_started(store, state, server)?;
    }
    for at in 0..LOBBIES {
        let lobby = state.lobbies[at];
        if !lobby.is_there() || lobby.stage == Stage::Ended {
            continue;
        }
        let Some(cause) = lobby.end_cause(store.rules, FAR) else {
            return Err((4, "a lobby never ends"));
        };
        let outcome = send(store, state, &end_as_seen(&lobby, at, cause, FAR))?;
        broken(outcome != Outcome::Made, 4, "a lobby's room never comes back")?;
    }
    check_tables(store.rules, state)?;
    let is_used = state.servers.iter().any(|server| server.used > 0);
    broken(is_used, 4, "a server's place never comes back")
}

/// Exactly the cap can exist again, wherever its parts were left.
fn fill(store: &Store<'_>, state: &mut State) -> Result<(), Broken> {
    let cap = state.cap;
    for server in 0..SERVERS {
        let seen = state.servers[server];
        if seen.is_there() && seen.is_deregistered() {
            let sent = Sent::LetGo { server, allotted: seen.allotted, how: Gone::Deregistered, now: FAR };
            send(store, state, &sent)?;
        } else if seen.is_there() && seen.lease_until <= FAR {
            let sent = Sent::LetGo { server, allotted: seen.allotted, how: Gone::Silent, now: FAR };
            send(store, state, &sent)?;
        }
    }
    let seen = Some(state.servers[0]).filter(Server::is_there);
    let item = registration_of(seen, 250, cap + 1, 0, FAR);
    let outcome = send(store, state, &Sent::Register { server: 0, item, seen })?;
    broken(outcome != Outcome::Made, 4, "a server cannot register again")?;
    let mut created = 0;
    let mut may_reclaim = true;
    while created <= cap {
        // Identifiers are fresh; only how many live matters.
        let at = usize::from(created) % LOBBIES;
        state.lobbies[at] = Lobby::default();
        state.history.lobbies[at] = Default::default();
        let seen = state.servers[0];
        let creation = Creation {
            lobby: at,
            seat: SPARE,
            mate: None,
            until: FAR + 1,
            version: 0,
            is_private: false,
            server: 0,
            seen,
            block: seen.next_block(store.rules, cap).map(|block| block.min(1)),
            cap,
            may_create: true,
            requests: false,
            now: FAR,
        };
        match send(store, state, &Sent::Create(creation))? {
            Outcome::Made => created += 1,
            Outcome::Refused(Part::Ledger) if may_reclaim => {
                may_reclaim = false;
                for server in 0..SERVERS {
                    let Server { allotted, used, .. } = state.servers[server];
                    if allotted > used {
                        let sent = Sent::TakeBack { server, allotted, block: allotted - used };
                        send(store, state, &sent)?;
                    }
                }
            }
            _ => break,
        }
    }
    broken(created != cap, 2, "not exactly the cap can exist")
}
