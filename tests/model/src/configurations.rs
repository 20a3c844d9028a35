//! What is explored: small worlds, each for some of the conditions.

use super::{
    ACTORS, State,
    history::History,
    programs::{
        Actor,
        Role::{self, *},
    },
    tables::{
        EPOCH, Head, LOBBIES, Launch, LaunchStage, Lobby, NEVER, NestAt, OnDemand, Process, REQUEST, Rules,
        SEATS, SERVERS, Server, Stage, Tokens,
    },
};

mod on_demand;

/// A small world and who acts in it.
#[derive(Clone, Copy, Debug)]
pub struct Configuration {
    /// What it is for.
    pub name: &'static str,
    pub(super) rules: Rules,
    pub(super) servers: &'static [Server],
    pub(super) lobbies: &'static [(usize, Lobby)],
    pub(super) roles: &'static [Role],
    /// Whether every state is settled.
    pub(super) settles: bool,
    /// Whether records of servers expire.
    pub(super) expires: bool,
}

const RULES: Rules = Rules {
    max_players: 2,
    max_direct: 2,
    max_party: 0,
    parties: &[],
    reservation: 2,
    starting_max: 2,
    connected_max: 3,
    idle: 0,
    keep: 0,
    cap: 2,
    ticks: 3,
    rounds: 2,
    late: 0,
    block: 1,
    election: None,
    deregisters_again: true,
    sends_heartbeats_without_lease: true,
    window: 3,
    patience: 1,
    counts_exactly: false,
    young: 1,
    starts: None,
};

/// One seat a lobby.
const OF_ONE: Rules = Rules { max_players: 1, max_direct: 1, ..RULES };

/// Of a server that Muster had not started.
const NOT_STARTED: Launch =
    Launch { stage: None, deadline: 0, idle_since: 0, has_handle: false, has_ended: false };

/// Without lease, with two places and as many lobbies allotted as it runs.
const SERVER: Server = Server {
    registration: 1,
    used: 1,
    allotted: 1,
    cap_checked: 2,
    capacity: 2,
    lease_until: NEVER,
    lease: 0,
    beat_at: EPOCH,
    free_from: EPOCH,
    ranked_at: EPOCH,
    auto_ready: true,
    expires: false,
    launch: NOT_STARTED,
};

/// No tokens but the first, whose player did not come back.
const NONE: Tokens = Tokens::none();

/// Open and empty, of the first server.
const LOBBY: Lobby = Lobby {
    stage: Stage::Ready,
    version: 0,
    joinable_from: EPOCH,
    created_at: EPOCH,
    closed: false,
    is_private: false,
    is_draining: false,
    server: 1,
    lease_until: NEVER,
    freed_at: 0,
    idle: 9,
    max_party: 0,
    waits: false,
    taken: 0,
    reserved: [0; SEATS],
    connected: [0; SEATS],
    has_tokens: false,
    tokens: [NONE; SEATS],
    vacated_at: 0,
    lapsed: 0,
    // By a write of nobody here: the idle time of a lobby counts once a player connected.
    connected_by: 9,
};

/// Runs two lobbies.
const FULL: Server = Server { used: 2, allotted: 2, capacity: 2, free_from: NEVER, ..SERVER };
/// Runs one.
const ONE: Server = SERVER;
/// Runs none.
const NEW: Server = Server { used: 0, allotted: 0, cap_checked: 0, ..SERVER };
/// Not ready yet.
const STARTING: Lobby = Lobby { stage: Stage::Starting, ..LOBBY };

/// Out of finds' sight.
const PRIVATE: Lobby = Lobby { is_private: true, joinable_from: 0, ..LOBBY };
/// Its last player came back once.
const CAME_BACK: Lobby =
    Lobby { has_tokens: true, tokens: [NONE, NONE, NONE, Tokens::new(1, 1, false), NONE], ..LOBBY };

const FIND: Role = Find { may_create: true };
const LOOK: Role = Find { may_create: false };

/// Parties of two, and lobbies of three seats.
const OF_THREE: Rules = Rules { max_players: 3, max_direct: 3, max_party: 3, parties: &[(0, 2)], ..RULES };
const OF_FOUR: Rules = Rules { max_players: 4, max_direct: 4, max_party: 4, ..OF_THREE };
/// For parties, too.
const ROOMY: Lobby = Lobby { max_party: 3, ..LOBBY };

/// One server that runs a lobby.
const BASE: Configuration = Configuration {
    name: "",
    rules: RULES,
    servers: &[ONE],
    lobbies: &[],
    roles: &[],
    settles: true,
    expires: false,
};

/// Every configuration, in the order of the table.
#[must_use]
pub fn all() -> Vec<Configuration> {
    [ALONE, PARTIES, on_demand::ALL].concat()
}

/// Those of players who come alone.
const ALONE: &[Configuration] = &[
    Configuration {
        name: "three finders, two lobbies of two seats",
        rules: Rules { late: 1, ..RULES },
        servers: &[FULL],
        lobbies: &[(3, LOBBY), (4, LOBBY)],
        roles: &[LOOK, LOOK, LOOK],
        ..BASE
    },
    Configuration {
        name: "three finders, two servers, a cap of two",
        rules: Rules { ticks: 2, late: 1, ..RULES },
        servers: &[NEW, NEW],
        roles: &[FIND, FIND, FIND],
        ..BASE
    },
    Configuration {
        name: "three finders, two servers, a cap of one",
        rules: Rules { cap: 1, ticks: 2, ..RULES },
        servers: &[NEW, NEW],
        roles: &[FIND, FIND, FIND],
        ..BASE
    },
    Configuration {
        name: "a creation sent twice",
        rules: Rules { late: 1, ticks: 2, ..OF_ONE },
        servers: &[Server { capacity: 1, ..NEW }, NEW],
        roles: &[FIND, FIND],
        ..BASE
    },
    Configuration {
        name: "a server allotted more than it can run",
        rules: Rules { ticks: 2, ..OF_ONE },
        servers: &[Server { used: 0, allotted: 2, capacity: 1, ..SERVER }, NEW],
        roles: &[FIND, FIND],
        ..BASE
    },
    Configuration {
        name: "three finders, a server allotted more than it can run",
        rules: Rules { cap: 3, ticks: 2, ..OF_ONE },
        servers: &[Server { used: 0, allotted: 3, cap_checked: 3, ..SERVER }],
        roles: &[FIND, FIND, FIND],
        ..BASE
    },
    Configuration {
        name: "a player's seat",
        rules: Rules { late: 1, ticks: 4, ..RULES },
        lobbies: &[(4, LOBBY.with_reserved(3, EPOCH + 2))],
        roles: &[LOOK, Connect(3, 0), Connect(3, 0), Leave(3)],
        ..BASE
    },
    Configuration {
        name: "a find's player",
        rules: Rules { late: 1, ticks: 3, ..RULES },
        lobbies: &[(4, LOBBY.with_reserved(3, EPOCH + 2))],
        roles: &[LOOK, Connect(0, 0), Leave(0), Leave(3)],
        ..BASE
    },
    Configuration {
        name: "a seat given up",
        rules: Rules { late: 1, ticks: 4, ..RULES },
        lobbies: &[(4, LOBBY.with_reserved(3, EPOCH + 2))],
        roles: &[LOOK, Connect(3, 0), GiveUp(3, 0), Leave(3)],
        ..BASE
    },
    Configuration {
        name: "a seat given up and taken over",
        rules: Rules { late: 1, ticks: 4, ..RULES },
        lobbies: &[(
            4,
            LOBBY.with_reserved(2, EPOCH + 1).with_reserved(3, EPOCH + 2).in_sight_from(EPOCH + 1),
        )],
        roles: &[LOOK, LOOK, GiveUp(2, 0), GiveUp(3, 0)],
        ..BASE
    },
    Configuration {
        name: "a player's seat is kept",
        rules: Rules { late: 1, ticks: 3, keep: 2, connected_max: 9, ..RULES },
        lobbies: &[(4, LOBBY.with_reserved(3, EPOCH + 2))],
        roles: &[Connect(3, 0), Disconnect(3, 0), Rejoin(3), Connect(3, 1)],
        ..BASE
    },
    Configuration {
        name: "a connected player comes back twice",
        rules: Rules { late: 1, ticks: 2, keep: 1, connected_max: 9, ..RULES },
        lobbies: &[(4, LOBBY.with_connected(3, EPOCH + 9))],
        roles: &[Rejoin(3), Rejoin(3), Connect(3, 1), Disconnect(3, 0)],
        ..BASE
    },
    Configuration {
        name: "a player who came back comes back",
        rules: Rules { late: 1, ticks: 2, keep: 1, connected_max: 9, ..RULES },
        lobbies: &[(4, CAME_BACK.with_connected(3, EPOCH + 9))],
        roles: &[Rejoin(3), Connect(3, 2), Disconnect(3, 1), Leave(3)],
        ..BASE
    },
    Configuration {
        name: "a player who came back is gone before connecting",
        rules: Rules { late: 1, ticks: 2, keep: 1, connected_max: 9, ..RULES },
        lobbies: &[(4, LOBBY.with_connected(3, EPOCH + 9))],
        roles: &[Rejoin(3), Disconnect(3, 0), Connect(3, 1), Disconnect(3, 1)],
        ..BASE
    },
    Configuration {
        name: "a connected player leaves",
        rules: Rules { late: 1, ticks: 2, keep: 1, connected_max: 9, ..RULES },
        lobbies: &[(4, LOBBY.with_connected(3, EPOCH + 9))],
        roles: &[GiveUp(3, 0), Disconnect(3, 0), Rejoin(3), Connect(3, 1)],
        ..BASE
    },
    Configuration {
        name: "a connected player leaves with either token",
        rules: Rules { late: 1, ticks: 1, connected_max: 9, ..RULES },
        lobbies: &[(4, LOBBY.with_connected(3, EPOCH + 9))],
        roles: &[GiveUp(3, 0), Rejoin(3), GiveUp(3, 1), Connect(3, 1), Disconnect(3, 0)],
        ..BASE
    },
    Configuration {
        name: "a kept seat of a full lobby",
        rules: Rules { late: 1, ticks: 3, keep: 1, connected_max: 9, ..RULES },
        lobbies: &[(
            4,
            LOBBY.with_connected(2, EPOCH + 9).with_connected(3, EPOCH + 9).in_sight_from(EPOCH + 9),
        )],
        roles: &[LOOK, Disconnect(3, 0), Rejoin(3), Connect(3, 1)],
        ..BASE
    },
    Configuration {
        name: "a seat is kept in a lobby that fills",
        rules: Rules { late: 1, ticks: 3, keep: 2, connected_max: 9, ..RULES },
        lobbies: &[(
            4,
            LOBBY.with_reserved(2, EPOCH + 2).with_connected(3, EPOCH + 9).in_sight_from(EPOCH + 2),
        )],
        roles: &[LOOK, Disconnect(3, 0), Connect(2, 0), Disconnect(2, 0)],
        ..BASE
    },
    Configuration {
        name: "a seat is kept in a lobby that closes and ends",
        rules: Rules { late: 1, ticks: 1, keep: 1, connected_max: 9, ..RULES },
        lobbies: &[(
            4,
            CAME_BACK.with_connected(2, EPOCH + 9).with_connected(3, EPOCH + 9).in_sight_from(EPOCH + 9),
        )],
        roles: &[Disconnect(3, 1), Disconnect(2, 0), Close(4), Reopen(4), End(4)],
        ..BASE
    },
    Configuration {
        name: "a player comes back to a lobby that ends",
        rules: Rules { late: 1, ticks: 2, keep: 1, connected_max: 9, ..RULES },
        lobbies: &[(4, LOBBY.with_connected(3, EPOCH + 9))],
        roles: &[Rejoin(3), Connect(3, 1), Disconnect(3, 0), End(4)],
        ..BASE
    },
    Configuration {
        name: "a player comes back beside one who did",
        rules: Rules { late: 1, ticks: 2, keep: 1, connected_max: 9, ..RULES },
        lobbies: &[(4, CAME_BACK.with_connected(3, EPOCH + 9).with_connected(4, EPOCH + 9))],
        roles: &[Rejoin(4), Rejoin(4), Disconnect(4, 0), Connect(4, 1)],
        ..BASE
    },
    Configuration {
        name: "lapsed seats of a full lobby",
        rules: Rules { late: 1, ticks: 4, ..RULES },
        lobbies: &[(
            4,
            LOBBY.with_reserved(2, EPOCH + 1).with_connected(3, EPOCH + 2).in_sight_from(EPOCH + 1),
        )],
        roles: &[LOOK, LOOK, Connect(2, 0), Leave(3)],
        ..BASE
    },
    Configuration {
        name: "joins beyond what finds fill",
        rules: Rules { max_direct: 3, late: 1, ticks: 3, ..RULES },
        lobbies: &[(4, LOBBY.with_reserved(3, EPOCH + 1))],
        roles: &[LOOK, Join(4), Join(4)],
        ..BASE
    },
    Configuration {
        name: "close and reopen",
        rules: Rules { late: 1, ticks: 2, ..RULES },
        lobbies: &[(4, LOBBY.with_reserved(2, EPOCH + 2))],
        roles: &[LOOK, Close(4), Reopen(4), Leave(2)],
        ..BASE
    },
    Configuration {
        name: "close, reopen and end a private lobby",
        rules: Rules { late: 1, ticks: 2, ..RULES },
        lobbies: &[(4, PRIVATE.with_reserved(2, EPOCH + 2))],
        roles: &[LOOK, Close(4), Reopen(4), End(4)],
        ..BASE
    },
    Configuration {
        name: "a public lobby is made private and public, left and ended",
        rules: Rules { ticks: 2, ..RULES },
        lobbies: &[(4, LOBBY.with_reserved(3, EPOCH + 2))],
        roles: &[LOOK, MakePrivate(4), MakePublic(4), Leave(3), End(4)],
        ..BASE
    },
    Configuration {
        name: "a private lobby is closed, reopened, made public and ended",
        rules: Rules { ticks: 2, ..RULES },
        lobbies: &[(4, PRIVATE.with_reserved(4, EPOCH + 2))],
        roles: &[LOOK, Close(4), Reopen(4), MakePublic(4), End(4)],
        ..BASE
    },
    Configuration {
        name: "end",
        rules: Rules { late: 1, ticks: 2, ..RULES },
        lobbies: &[(4, LOBBY.with_reserved(2, EPOCH + 2))],
        roles: &[LOOK, End(4), Reopen(4), Connect(2, 0), Leave(2)],
        ..BASE
    },
    Configuration {
        name: "an empty lobby ends",
        rules: Rules { late: 1, ticks: 3, cap: 1, ..RULES },
        servers: &[Server { capacity: 1, free_from: NEVER, ..ONE }],
        lobbies: &[(4, Lobby { idle: 0, ..LOBBY.with_connected(3, EPOCH + 1) })],
        roles: &[FIND, Leave(3), Beat(0, 1)],
        ..BASE
    },
    Configuration {
        name: "a lobby becomes ready",
        rules: Rules { late: 1, ticks: 3, ..RULES },
        lobbies: &[(4, Lobby { idle: 0, ..STARTING.with_reserved(2, EPOCH + 2) })],
        roles: &[LOOK, Ready(4), Connect(2, 0), Leave(2)],
        ..BASE
    },
    Configuration {
        name: "a lobby never becomes ready",
        rules: Rules { late: 1, ticks: 3, starting_max: 1, ..RULES },
        servers: &[Server { lease: 3, lease_until: EPOCH + 3, ..ONE }],
        lobbies: &[(4, Lobby { lease_until: EPOCH + 3, ..STARTING.with_reserved(2, EPOCH + 2) })],
        roles: &[LOOK, Ready(4), Close(4), Beat(0, 1)],
        ..BASE
    },
    Configuration {
        name: "a starting lobby is created, closed and drained",
        rules: Rules { ticks: 3, starting_max: 1, ..RULES },
        servers: &[Server { auto_ready: false, ..NEW }],
        roles: &[FIND, Ready(0), Close(0), Reopen(0), Deregister(0)],
        ..BASE
    },
    Configuration {
        name: "leases and late heartbeats",
        rules: Rules { late: 1, ticks: 4, cap: 1, ..RULES },
        servers: &[Server { lease: 2, lease_until: EPOCH + 2, ..ONE }],
        lobbies: &[(4, Lobby { lease_until: EPOCH + 2, ..LOBBY.with_connected(3, NEVER - 1) })],
        roles: &[LOOK, Beat(0, 2), Beat(0, 1)],
        ..BASE
    },
    Configuration {
        name: "a dead server's lobby is replaced",
        rules: Rules { late: 1, ticks: 3, cap: 1, ..RULES },
        servers: &[
            Server { lease: 2, lease_until: EPOCH + 2, capacity: 1, free_from: NEVER, ..ONE },
            Server { capacity: 1, ..NEW },
        ],
        lobbies: &[(4, Lobby { lease_until: EPOCH + 2, ..LOBBY.with_connected(3, NEVER - 1) })],
        roles: &[FIND, Beat(0, 2), Close(4)],
        ..BASE
    },
    Configuration {
        name: "a server sends a heartbeat and deregisters",
        rules: Rules { ticks: 3, ..RULES },
        servers: &[Server { lease: 2, lease_until: EPOCH + 2, ..ONE }],
        lobbies: &[(4, Lobby { lease_until: EPOCH + 2, idle: 0, ..LOBBY.with_connected(3, EPOCH + 3) })],
        roles: &[LOOK, Beat(0, 2), Deregister(0), Leave(3)],
        expires: true,
        ..BASE
    },
    Configuration {
        name: "a server without lease registers with one",
        rules: Rules { late: 1, ticks: 3, ..RULES },
        lobbies: &[(4, LOBBY)],
        roles: &[LOOK, Register { server: 0, capacity: 2, lease: 2 }, Beat(0, 2)],
        expires: true,
        ..BASE
    },
    Configuration {
        name: "registrations and creations",
        rules: Rules { ticks: 2, block: 2, ..RULES },
        servers: &[Server { lease: 1, lease_until: EPOCH + 1, ..NEW }],
        roles: &[
            FIND,
            Register { server: 0, capacity: 1, lease: 0 },
            Register { server: 0, capacity: 2, lease: 1 },
            Deregister(0),
        ],
        expires: true,
        ..BASE
    },
    Configuration {
        name: "a new server registers twice",
        rules: Rules { ticks: 2, ..RULES },
        servers: &[],
        roles: &[
            FIND,
            Register { server: 0, capacity: 1, lease: 0 },
            Register { server: 0, capacity: 2, lease: 1 },
            Deregister(0),
        ],
        expires: true,
        ..BASE
    },
    Configuration {
        name: "a silent server's allotment",
        rules: Rules { ticks: 2, cap: 2, block: 2, ..RULES },
        servers: &[
            Server { lease: 1, lease_until: EPOCH + 1, used: 0, allotted: 2, ..ONE },
            Server { allotted: 0, used: 0, ..ONE },
        ],
        roles: &[FIND, FIND, Beat(0, 1)],
        ..BASE
    },
    Configuration {
        name: "blocks of the cap",
        rules: Rules { ticks: 1, cap: 3, block: 2, reservation: 3, ..OF_ONE },
        servers: &[
            Server { capacity: 3, cap_checked: 3, ..NEW },
            Server { capacity: 3, cap_checked: 3, ..NEW },
        ],
        roles: &[FIND, FIND, FIND],
        ..BASE
    },
    Configuration {
        name: "a lowered cap",
        rules: Rules { ticks: 1, cap: 2, block: 2, ..OF_ONE },
        servers: &[NEW, NEW],
        roles: &[FIND, FIND, SetCap(1)],
        ..BASE
    },
    Configuration {
        name: "joins of a lobby that ends",
        rules: Rules { late: 1, ticks: 2, ..RULES },
        lobbies: &[(4, LOBBY.with_reserved(2, EPOCH + 1).with_reserved(3, EPOCH + 2))],
        roles: &[LOOK, Join(4), Close(4), End(4)],
        ..BASE
    },
    Configuration {
        name: "a silent server deregisters while room is made",
        rules: Rules { ticks: 3, cap: 1, ..RULES },
        servers: &[Server { lease: 1, lease_until: EPOCH + 1, capacity: 1, free_from: NEVER, ..ONE }, NEW],
        lobbies: &[(4, Lobby { lease_until: EPOCH + 1, ..LOBBY.with_connected(3, EPOCH + 5) })],
        roles: &[FIND, Deregister(0), Leave(3)],
        expires: true,
        ..BASE
    },
    Configuration {
        name: "seats while a lease is introduced",
        rules: Rules { ticks: 3, late: 1, ..RULES },
        servers: &[Server { lease: 1, lease_until: EPOCH + 1, ..ONE }],
        lobbies: &[(4, LOBBY.with_reserved(2, EPOCH + 1).with_reserved(3, EPOCH + 1))],
        roles: &[LOOK, Beat(0, 2)],
        ..BASE
    },
    Configuration {
        name: "a lobby that never became ready is left",
        rules: Rules { ticks: 2, starting_max: 1, cap: 1, ..RULES },
        lobbies: &[(4, STARTING.with_reserved(2, EPOCH + 2).with_reserved(3, EPOCH + 2))],
        roles: &[LOOK, Ready(4), Leave(2), Close(4)],
        ..BASE
    },
    Configuration {
        name: "custom lobbies, public and private",
        rules: Rules { ticks: 2, ..RULES },
        servers: &[NEW, NEW],
        roles: &[Create { is_private: true }, Create { is_private: false }, FIND],
        ..BASE
    },
    Configuration {
        name: "an election of three",
        rules: Rules { election: Some(1), ticks: 4, rounds: 2, reservation: 4, cap: 4, ..RULES },
        servers: &[Server { capacity: 5, ..NEW }],
        roles: &[FIND, FIND, FIND],
        settles: false,
        ..BASE
    },
    Configuration {
        name: "an election of three for single seats",
        rules: Rules { election: Some(1), ticks: 4, reservation: 9, cap: 4, ..OF_ONE },
        servers: &[Server { capacity: 5, ..NEW }],
        roles: &[FIND, FIND, FIND],
        settles: false,
        ..BASE
    },
    Configuration {
        name: "an election of two beside a full lobby",
        rules: Rules {
            election: Some(1),
            ticks: 4,
            rounds: 2,
            reservation: 4,
            cap: 4,
            connected_max: 9,
            ..RULES
        },
        servers: &[Server { capacity: 5, used: 1, allotted: 1, cap_checked: 4, ..ONE }],
        lobbies: &[(
            2,
            LOBBY.with_connected(2, EPOCH + 9).with_connected(3, EPOCH + 9).in_sight_from(EPOCH + 9),
        )],
        roles: &[FIND, FIND, Leave(2)],
        settles: false,
        ..BASE
    },
    Configuration {
        name: "a server of two places",
        rules: Rules { ticks: 1, cap: 3, ..OF_ONE },
        servers: &[NEW],
        roles: &[FIND, FIND, FIND],
        ..BASE
    },
    Configuration {
        name: "an empty lobby ends while it is entered",
        rules: Rules { ticks: 2, cap: 1, ..RULES },
        servers: &[Server { capacity: 1, free_from: NEVER, ..ONE }],
        lobbies: &[(4, Lobby { idle: 0, ..LOBBY })],
        roles: &[FIND, LOOK, Connect(1, 0)],
        ..BASE
    },
    Configuration {
        name: "an idle lobby is entered and left",
        rules: Rules { ticks: 2, ..RULES },
        lobbies: &[(4, Lobby { idle: 2, created_at: EPOCH - 2, joinable_from: EPOCH - 2, ..LOBBY })],
        roles: &[Beat(0, 1), Join(4), Leave(1)],
        ..BASE
    },
    Configuration {
        name: "an idle lobby that was left is entered and left",
        rules: Rules { ticks: 2, ..RULES },
        lobbies: &[(
            4,
            Lobby {
                idle: 2,
                created_at: EPOCH - 3,
                joinable_from: EPOCH - 3,
                vacated_at: EPOCH - 2,
                ..LOBBY
            },
        )],
        roles: &[Beat(0, 1), Join(4), Leave(1)],
        ..BASE
    },
    Configuration {
        name: "a silent server is met while its lobby ends",
        rules: Rules { ticks: 2, cap: 1, ..RULES },
        servers: &[Server { lease: 1, lease_until: EPOCH + 1, ..ONE }, NEW],
        lobbies: &[(4, Lobby { lease_until: EPOCH + 1, ..LOBBY })],
        roles: &[FIND, FIND, Beat(0, 1)],
        ..BASE
    },
    Configuration {
        name: "a cap raised and lowered",
        rules: Rules { ticks: 0, cap: 1, rounds: 1, ..OF_ONE },
        servers: &[Server { used: 0, allotted: 1, cap_checked: 1, ..ONE }],
        roles: &[FIND, FIND, SetCap(2), End(0)],
        ..BASE
    },
    Configuration {
        name: "another version",
        rules: Rules { late: 1, ticks: 2, ..RULES },
        lobbies: &[(4, LOBBY)],
        roles: &[LOOK, FIND, SetVersion(1)],
        ..BASE
    },
    Configuration {
        name: "a full lobby of connected players",
        rules: Rules { ticks: 3, connected_max: 6, ..RULES },
        lobbies: &[(4, LOBBY.with_connected(2, EPOCH + 6).with_connected(3, EPOCH + 6))],
        roles: &[LOOK, LOOK, Leave(2), Connect(0, 0)],
        ..BASE
    },
    Configuration {
        name: "a full lobby of connected players that was left before",
        rules: Rules { ticks: 3, connected_max: 6, ..RULES },
        lobbies: &[(
            4,
            Lobby {
                vacated_at: EPOCH - 1,
                ..LOBBY.with_connected(2, EPOCH + 6).with_connected(3, EPOCH + 6)
            },
        )],
        roles: &[LOOK, LOOK, Leave(2), Connect(0, 0)],
        ..BASE
    },
    Configuration {
        name: "a server gives up its lease",
        rules: Rules { ticks: 2, ..RULES },
        servers: &[Server { lease: 1, lease_until: EPOCH + 1, ..ONE }],
        lobbies: &[(4, Lobby { lease_until: EPOCH + 1, ..LOBBY })],
        roles: &[LOOK, Register { server: 0, capacity: 2, lease: 0 }, Beat(0, 1)],
        ..BASE
    },
    Configuration {
        name: "a server gives up its lease and does not beat",
        rules: Rules { ticks: 0, sends_heartbeats_without_lease: false, ..RULES },
        servers: &[Server { lease: 1, lease_until: EPOCH + 1, ..ONE }],
        lobbies: &[(4, Lobby { lease_until: EPOCH + 1, ..LOBBY })],
        roles: &[Register { server: 0, capacity: 2, lease: 0 }],
        ..BASE
    },
    Configuration {
        name: "a server gives up its lease during a heartbeat",
        rules: Rules { ticks: 0, sends_heartbeats_without_lease: false, ..RULES },
        servers: &[Server { lease: 1, lease_until: EPOCH + 1, ..ONE }],
        lobbies: &[(4, Lobby { lease_until: EPOCH + 1, ..LOBBY })],
        roles: &[Register { server: 0, capacity: 2, lease: 0 }, Beat(0, 1)],
        ..BASE
    },
    Configuration {
        name: "a creation on a server that was let go",
        rules: Rules { ticks: 1, ..RULES },
        servers: &[Server { lease: 1, lease_until: EPOCH + 1, ..NEW }],
        roles: &[FIND, FIND],
        expires: true,
        ..BASE
    },
    Configuration {
        name: "a server sends a heartbeat and registers with a shorter lease while room is made",
        rules: Rules { ticks: 3, rounds: 1, cap: 1, ..OF_ONE },
        servers: &[Server { lease: 3, lease_until: EPOCH + 1, capacity: 1, free_from: NEVER, ..ONE }],
        lobbies: &[(4, Lobby { lease_until: EPOCH + 1, ..LOBBY.with_connected(3, EPOCH + 9) })],
        roles: &[FIND, Beat(0, 1), Register { server: 0, capacity: 1, lease: 1 }],
        ..BASE
    },
    Configuration {
        name: "a server without lease deregisters, interrupted, and sends a heartbeat",
        rules: Rules { ticks: 1, deregisters_again: false, ..RULES },
        servers: &[Server { lease: 1, lease_until: EPOCH + 1, ..ONE }],
        lobbies: &[(4, Lobby { lease_until: EPOCH + 1, ..LOBBY })],
        roles: &[Register { server: 0, capacity: 2, lease: 0 }, Deregister(0)],
        ..BASE
    },
];

/// Those with parties of two.
const PARTIES: &[Configuration] = &[
    Configuration {
        name: "two parties, two lobbies of three seats",
        rules: Rules { late: 1, parties: &[(0, 2), (1, 3)], ..OF_THREE },
        servers: &[FULL],
        lobbies: &[(3, ROOMY), (4, ROOMY)],
        roles: &[LOOK, LOOK, Leave(0), Leave(3)],
        ..BASE
    },
    Configuration {
        name: "a party and two players, two lobbies of three seats",
        rules: Rules { late: 1, parties: &[(0, 3)], ..OF_THREE },
        servers: &[FULL],
        lobbies: &[(3, ROOMY), (4, ROOMY)],
        roles: &[LOOK, LOOK, LOOK],
        ..BASE
    },
    Configuration {
        name: "two parties create lobbies of three seats",
        rules: Rules { late: 1, ticks: 2, parties: &[(0, 2), (1, 3)], ..OF_THREE },
        servers: &[NEW, NEW],
        roles: &[FIND, FIND],
        ..BASE
    },
    Configuration {
        name: "a party and a player beside lapsed seats",
        rules: Rules { late: 1, parties: &[(0, 3)], ..OF_THREE },
        lobbies: &[(4, ROOMY.with_reserved(2, EPOCH + 1).with_connected(4, EPOCH + 2))],
        roles: &[LOOK, LOOK, GiveUp(2, 0), Leave(3)],
        ..BASE
    },
    Configuration {
        name: "a party sent twice, whose members connect and leave",
        rules: Rules { late: 1, ..OF_FOUR },
        lobbies: &[(4, Lobby { max_party: 4, ..ROOMY })],
        roles: &[LOOK, Connect(0, 0), Connect(2, 0), Leave(0), Leave(2)],
        ..BASE
    },
    Configuration {
        name: "a party sent twice, whose first seat is taken over",
        rules: Rules { late: 1, ..OF_FOUR },
        lobbies: &[(
            4,
            Lobby { max_party: 4, ..ROOMY.with_reserved(3, EPOCH + 1).with_reserved(4, EPOCH + 1) },
        )],
        roles: &[LOOK, LOOK, Connect(2, 0)],
        ..BASE
    },
    Configuration {
        name: "a party sent twice, whose second seat is taken over",
        rules: Rules { late: 1, ..OF_FOUR },
        lobbies: &[(
            4,
            Lobby { max_party: 4, ..ROOMY.with_reserved(3, EPOCH + 1).with_reserved(4, EPOCH + 1) },
        )],
        roles: &[LOOK, LOOK, Connect(0, 0)],
        ..BASE
    },
    Configuration {
        name: "a party sent twice, beside a leave on its way for long",
        rules: Rules { late: 1, ..OF_FOUR },
        lobbies: &[(4, Lobby { max_party: 4, ..ROOMY.with_connected(3, EPOCH + 9) })],
        roles: &[LOOK, Leave(0), Leave(3)],
        ..BASE
    },
    Configuration {
        name: "a party whose second player leaves, beside a leave on its way for long",
        rules: Rules { late: 1, ..OF_FOUR },
        lobbies: &[(4, Lobby { max_party: 4, ..ROOMY.with_connected(3, EPOCH + 9) })],
        roles: &[LOOK, Leave(2), Leave(3)],
        ..BASE
    },
    Configuration {
        name: "a party assumes a capacity",
        rules: Rules { max_players: 2, max_direct: 2, ..OF_THREE },
        servers: &[FULL],
        lobbies: &[
            (3, ROOMY.with_connected(3, EPOCH + 2)),
            (4, Lobby { max_party: 2, ..ROOMY.with_connected(4, EPOCH + 2) }),
        ],
        roles: &[LOOK, LOOK],
        ..BASE
    },
    Configuration {
        name: "a party finds and another joins a lobby that is closed and ends",
        rules: Rules { late: 1, ticks: 2, max_direct: 4, parties: &[(0, 2), (1, 3)], ..OF_THREE },
        lobbies: &[(4, ROOMY)],
        roles: &[LOOK, Join(4), Close(4), End(4)],
        ..BASE
    },
    Configuration {
        name: "a party, another version and a silent server",
        rules: Rules { late: 1, ..OF_THREE },
        servers: &[Server { lease: 1, lease_until: EPOCH + 1, ..ONE }],
        lobbies: &[(4, Lobby { lease_until: EPOCH + 1, ..ROOMY })],
        roles: &[LOOK, SetVersion(1), Beat(0, 1)],
        ..BASE
    },
    Configuration {
        name: "a party in a lobby that becomes ready",
        rules: OF_THREE,
        lobbies: &[(4, Lobby { stage: Stage::Starting, ..ROOMY })],
        roles: &[LOOK, Ready(4), Leave(2)],
        ..BASE
    },
    Configuration {
        name: "a party takes the last seats of a lobby that is left",
        rules: OF_THREE,
        lobbies: &[(4, ROOMY.with_connected(3, EPOCH + 9))],
        roles: &[LOOK, Leave(3), Leave(2)],
        ..BASE
    },
];

/// Configurations in which the product breaks an invariant, as it now is; each says which, and is to be moved
/// to the others once it does not.
pub const OPEN_FINDINGS: &[(Configuration, &str)] = &[
    (
        Configuration {
            name: "a server without lease deregisters, interrupted",
            rules: Rules {
                ticks: 1,
                deregisters_again: false,
                sends_heartbeats_without_lease: false,
                ..RULES
            },
            servers: &[Server { lease: 1, lease_until: EPOCH + 1, ..ONE }],
            lobbies: &[(4, Lobby { lease_until: EPOCH + 1, ..LOBBY })],
            roles: &[Register { server: 0, capacity: 2, lease: 0 }, Deregister(0)],
            ..BASE
        },
        "nobody may end the lobbies of before as a dead server's, unless it deregisters again or sends a heartbeat",
    ),
    (
        Configuration {
            name: "a cap lowered while a find uses the old one",
            rules: Rules { ticks: 0, rounds: 1, ..OF_ONE },
            servers: &[Server { used: 0, allotted: 1, cap_checked: 1, ..ONE }, NEW],
            roles: &[FIND, FIND, SetCap(1)],
            ..BASE
        },
        "what is left on a server checked against the new cap is used after a late find was allotted by the old one",
    ),
    (
        Configuration {
            name: "a race counted by an index that lags",
            rules: Rules {
                election: Some(2),
                ticks: 3,
                window: 4,
                reservation: 9,
                cap: 5,
                connected_max: 9,
                counts_exactly: true,
                ..OF_ONE
            },
            servers: &[Server { capacity: 6, cap_checked: 5, ..ONE }],
            lobbies: &[(3, LOBBY.with_connected(3, EPOCH + 9).in_sight_from(EPOCH + 9))],
            roles: &[FIND, FIND, Leave(3)],
            settles: false,
            ..BASE
        },
        "a seat freed during a burst is neither announced in the head nor yet in the index, where a race is looked for",
    ),
    (
        Configuration {
            name: "a lag of the whole window",
            rules: Rules { election: Some(3), ticks: 4, rounds: 1, reservation: 4, cap: 4, ..RULES },
            servers: &[Server { capacity: 5, ..NEW }],
            roles: &[FIND, FIND],
            settles: false,
            ..BASE
        },
        "an index that lags for as long as a burst goes on, and a find that takes its time between look and election",
    ),
];

impl Lobby {
    /// The same with a seat that is reserved until then.
    const fn with_reserved(mut self, seat: usize, until: u8) -> Self {
        self.taken += 1;
        self.reserved[seat] = until;
        self
    }

    /// The same with a seat whose player is connected, at the latest until then.
    const fn with_connected(mut self, seat: usize, until: u8) -> Self {
        self.taken += 1;
        self.connected[seat] = until;
        self
    }

    const fn in_sight_from(self, joinable_from: u8) -> Self {
        Self { joinable_from, ..self }
    }
}

impl Configuration {
    pub(super) fn first_state(&self) -> State {
        let mut state = State {
            now: EPOCH,
            cap: self.rules.cap,
            version: 0,
            ledger: self.servers.iter().map(|server| server.allotted).sum(),
            head: Head::default(),
            lobbies: [Lobby::default(); LOBBIES],
            servers: [Server::default(); SERVERS],
            on_demand: OnDemand::default(),
            actors: [Actor::default(); ACTORS],
            late: None,
            copies: 0,
            history: History::default(),
            broken: None,
        };
        for (at, server) in self.servers.iter().enumerate() {
            state.servers[at] = *server;
            state.history.found_server(at, server);
            if server.launch.stage.is_some() {
                state.on_demand.counted += u8::from(server.is_counted());
                state.on_demand.nests[at] = NestAt { first: 1, nth: at as u8 };
                let runs = server.launch.stage == Some(LaunchStage::Running);
                state.on_demand.processes[at] = if runs { Process::Runs } else { Process::None };
            }
        }
        for (at, lobby) in self.lobbies {
            state.lobbies[*at] = *lobby;
            state.history.found_lobby(*at, lobby);
        }
        state
    }
}
