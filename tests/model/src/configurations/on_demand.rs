//! Worlds whose game servers are started on demand.

use super::*;
use crate::tables::Starts;

/// Three servers of two places at most, which register within a tick.
const STARTS: Starts =
    Starts { capacity: 2, servers_max: 3, start: 1, grace: 1, idle: 1, lag: 2, failures: 1, blocked: 2 };
const OF_ONE_LOBBY: Starts = Starts { capacity: 1, ..STARTS };

/// Lobbies of one seat each, so that every find creates one.
const ON_DEMAND: Rules =
    Rules { starting_max: 9, ticks: 2, rounds: 1, cap: 4, starts: Some(STARTS), ..OF_ONE };

const REQUESTED: Server = Server {
    registration: REQUEST,
    used: 0,
    allotted: 2,
    cap_checked: 4,
    lease_until: EPOCH + 2,
    lease: 0,
    auto_ready: false,
    launch: Launch { stage: Some(LaunchStage::Requested), deadline: EPOCH + 1, ..NOT_STARTED },
    ..SERVER
};
const RUNNING: Server = Server {
    used: 0,
    allotted: 2,
    cap_checked: 4,
    lease_until: EPOCH + 1,
    lease: 1,
    launch: Launch { stage: Some(LaunchStage::Running), has_handle: true, ..REQUESTED.launch },
    ..SERVER
};
/// Its process has ended, and it is still to be let go.
const GONE: Server = Server {
    allotted: 0,
    capacity: 0,
    free_from: NEVER,
    ranked_at: NEVER,
    launch: Launch { stage: Some(LaunchStage::Gone), has_ended: true, ..RUNNING.launch },
    ..RUNNING
};
/// On a requested server.
const WAITING: Lobby = Lobby { waits: true, lease_until: EPOCH + 2, ..STARTING };
const REGISTER: Role = Register { server: 0, capacity: 2, lease: 1 };

pub(super) const ALL: &[Configuration] = &[
    Configuration {
        name: "three finds that find no server",
        rules: Rules { late: 1, ticks: 0, ..ON_DEMAND },
        servers: &[],
        roles: &[FIND, FIND, FIND],
        ..BASE
    },
    Configuration {
        name: "two finds without a server, one after the other",
        rules: Rules { ticks: 4, ..ON_DEMAND },
        servers: &[],
        roles: &[FIND, FIND],
        ..BASE
    },
    Configuration {
        name: "four finds, of which one takes the place that another drew",
        rules: Rules { ticks: 0, cap: 6, ..ON_DEMAND },
        servers: &[],
        roles: &[FIND, FIND, FIND, FIND],
        settles: false,
        ..BASE
    },
    Configuration {
        name: "two finds for whom one server may be started",
        rules: Rules { starts: Some(Starts { servers_max: 1, ..OF_ONE_LOBBY }), ..ON_DEMAND },
        servers: &[],
        roles: &[FIND, FIND],
        ..BASE
    },
    Configuration {
        name: "two finds for whom a server is started, at the cap",
        rules: Rules { cap: 1, starts: Some(OF_ONE_LOBBY), ..ON_DEMAND },
        servers: &[],
        roles: &[FIND, FIND],
        ..BASE
    },
    Configuration {
        name: "a find, the start of its server and its process",
        rules: Rules { ticks: 2, ..ON_DEMAND },
        servers: &[],
        roles: &[FIND, Look(0, 2), REGISTER, Beat(0, 1)],
        expires: true,
        ..BASE
    },
    Configuration {
        name: "a requested server is started twice, registers and is given up",
        rules: Rules { late: 1, ticks: 1, ..ON_DEMAND },
        servers: &[Server { used: 1, ..REQUESTED }],
        lobbies: &[(4, WAITING.with_reserved(3, EPOCH + 2))],
        roles: &[Look(0, 2), Look(0, 1), REGISTER, Beat(0, 1)],
        expires: true,
        ..BASE
    },
    Configuration {
        name: "a server without lobbies stops while a find comes",
        rules: Rules { late: 1, ..ON_DEMAND },
        servers: &[Server { launch: Launch { idle_since: EPOCH - 1, ..RUNNING.launch }, ..RUNNING }],
        roles: &[FIND, Beat(0, 2), Look(0, 2)],
        expires: true,
        ..BASE
    },
    Configuration {
        name: "a started server falls silent while a find comes",
        rules: ON_DEMAND,
        servers: &[RUNNING],
        roles: &[FIND, Beat(0, 1), Look(0, 1)],
        expires: true,
        ..BASE
    },
    Configuration {
        name: "the process of a server with a lobby ends",
        rules: Rules { late: 1, ..ON_DEMAND },
        servers: &[Server { used: 1, ..RUNNING }],
        lobbies: &[(4, Lobby { lease_until: EPOCH + 1, ..LOBBY.with_connected(3, NEVER - 1) })],
        roles: &[Beat(0, 2), Die(0), Look(0, 1)],
        expires: true,
        ..BASE
    },
    Configuration {
        name: "a started server deregisters and registers again",
        rules: Rules { ticks: 1, ..ON_DEMAND },
        servers: &[Server { used: 1, ..RUNNING }],
        lobbies: &[(4, Lobby { lease_until: EPOCH + 1, idle: 0, ..LOBBY.with_connected(3, NEVER - 1) })],
        roles: &[Deregister(0), REGISTER, Leave(3), Look(0, 2)],
        expires: true,
        ..BASE
    },
    Configuration {
        name: "a started server is let go twice, beside another one",
        rules: Rules { late: 1, ticks: 1, ..ON_DEMAND },
        servers: &[GONE, RUNNING],
        roles: &[Look(0, 1), Look(0, 1)],
        ..BASE
    },
    Configuration {
        name: "a find takes the allotment of a started server that deregistered",
        rules: Rules { ticks: 0, cap: 1, ..ON_DEMAND },
        servers: &[Server { used: 1, allotted: 1, cap_checked: 1, ..RUNNING }],
        lobbies: &[(4, Lobby { lease_until: EPOCH + 1, idle: 0, ..LOBBY.with_connected(3, NEVER - 1) })],
        roles: &[Deregister(0), Leave(3), FIND],
        ..BASE
    },
    Configuration {
        name: "starts that fail, and one that does not",
        rules: Rules { starts: Some(OF_ONE_LOBBY), ..ON_DEMAND },
        servers: &[Server { capacity: 1, allotted: 1, ..REQUESTED }],
        roles: &[FIND, Look(0, 2), Look(1, 1), Register { server: 1, capacity: 1, lease: 1 }],
        expires: true,
        ..BASE
    },
];
