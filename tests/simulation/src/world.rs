//! The game that a run plays: small, so that everything conflicts.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};
use shared::{
    auth::keys::TokenKeys,
    base::ambient::Ambient,
    cloud::provision::{NewGame, NewNamespace, add_version, create_game},
    models::{
        game::{Region, StarterKind},
        ids::{GameId, NamespaceId},
        token::{Credential, CredentialKind},
    },
    store::client::Store,
};

use model::conditions::Write::{
    self, AimRun, ForgetRun, HoldSeat, KeepAnswer, KeepOut, PointHold, Readmit, ReleaseHold, ReleaseRun,
    WaitForRun,
};

use super::{chance::Chance, on_demand::OnDemand};
use harness::lobby_claims;

/// The longest time that a seat is kept for a player, in seconds.
pub(crate) const KEEP_SECS_MAX: u64 = 20;
/// Maximum seats of a lobby that is often full of connected players.
pub(crate) const SMALL: u64 = 2;

/// A mode of the game; every version has the same ones.
#[derive(Clone, Debug)]
pub(crate) struct Mode {
    pub(crate) name: &'static str,
    pub(crate) regions: Vec<&'static str>,
    pub(crate) max_players: u64,
    pub(crate) direct: u64,
    pub(crate) reservation_secs: u64,
    pub(crate) idle_secs: u64,
    pub(crate) keep_secs: u64,
    pub(crate) pool_shards: u64,
}

/// A game server of the game.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub(crate) namespace: usize,
    pub(crate) id: String,
    pub(crate) region: &'static str,
    pub(crate) places: u64,
    pub(crate) lease_secs: Option<u64>,
    pub(crate) is_auto_ready: bool,
}

/// What a world is made of.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) modes: Vec<Mode>,
    pub(crate) servers: Vec<Server>,
    pub(crate) caps: Vec<u32>,
    /// Seats that a client may hold in each namespace.
    pub(crate) holds_max: u32,
    /// The largest party of each mode.
    pub(crate) party_size_max: u64,
    /// Whether requests have idempotency keys of their own, with which they are retried.
    pub(crate) has_keys: bool,
    pub(crate) instances: usize,
    pub(crate) actions: u64,
    /// Whether lobbies are found by tags, too.
    pub(crate) has_tags: bool,
    /// Whether game servers start again.
    pub(crate) has_restarts: bool,
    /// Whether lobbies wait long for their servers to report them ready.
    pub(crate) is_slow_to_start: bool,
    /// Game servers that are started on demand, if it has them.
    pub(crate) on_demand: Option<OnDemand>,
    /// Addresses of a hostile crowd; 0 if there is none.
    pub(crate) crowd: u8,
}

/// One namespace of a world that was made.
#[derive(Clone, Debug)]
pub(crate) struct Namespace {
    pub(crate) id: NamespaceId,
    pub(crate) public: String,
    pub(crate) server: String,
}

/// A world that was made.
pub(crate) struct World {
    pub(crate) plan: Plan,
    pub(crate) game_id: GameId,
    pub(crate) namespaces: Vec<Namespace>,
    pub(crate) versions: Vec<String>,
    /// The build of each version's servers on demand.
    pub(crate) builds: BTreeMap<String, String>,
    pub(crate) cloud_token: String,
    pub(crate) keys: Arc<TokenKeys>,
    pub(crate) ambient: Ambient,
}

impl Plan {
    /// The plan of a run, one in which `bias` is written often.
    pub(crate) fn drawn(chance: &mut Chance, bias: Option<Write>) -> Self {
        use Write::{
            ChangeTokens, Connect, Drain, End, GiveBackPlace, HideFull, HideServer, HideSilent, Keep, Ready,
            Reopen, Replace, ShowRevived, ShowServer, TakeOverSeat,
        };
        let two_regions = chance.one_in(4);
        let regions = if two_regions { vec!["fra", "nyc"] } else { vec!["fra"] };
        let reservation = chance.weighted(&[(5, 3), (8, 2), (30, 1), (120, 1)]);
        let mode_count = if chance.one_in(4) { 2 } else { 1 };
        let modes = ["arena", "duel"].into_iter().take(mode_count).map(|name| {
            let max_players = chance.range(1..=4);
            Mode {
                name,
                regions: regions.clone(),
                max_players,
                direct: max_players + chance.weighted(&[(0, 2), (1, 1)]),
                reservation_secs: match bias {
                    Some(TakeOverSeat | KeepAnswer) => 5,
                    Some(HideFull) if max_players <= SMALL => 5,
                    // Seats outlive their server's lease.
                    Some(GiveBackPlace) => chance.weighted(&[(30, 1), (120, 1)]),
                    _ => reservation,
                },
                idle_secs: match bias {
                    Some(End) => chance.weighted(&[(3, 2), (20, 1)]),
                    _ => chance.weighted(&[(0, 3), (3, 1), (20, 1)]),
                },
                keep_secs: match bias {
                    Some(Keep | ChangeTokens | Replace) => {
                        chance.weighted(&[(0, 1), (2, 2), (KEEP_SECS_MAX, 2)])
                    }
                    _ => chance.weighted(&[(0, 2), (2, 1), (KEEP_SECS_MAX, 1)]),
                },
                pool_shards: if chance.one_in(4) { 3 } else { 1 },
            }
        });
        let modes: Vec<Mode> = modes.collect();
        let namespace_count = if chance.one_in(3) { 2 } else { 1 };
        let starts_slowly = match bias {
            Some(Ready | Connect | Drain | Reopen) => !chance.one_in(4),
            _ => chance.one_in(4),
        };
        let is_slow_to_start = starts_slowly && (bias == Some(End) || chance.one_in(2));
        let lease = match bias {
            Some(GiveBackPlace) => Some(4),
            Some(HideSilent | ShowRevived | HideServer | ShowServer) => Some(5),
            Some(TakeOverSeat | HideFull) => chance.weighted(&[(None, 3), (Some(10), 1)]),
            Some(End) if !is_slow_to_start => chance.weighted(&[(None, 1), (Some(4), 3)]),
            _ if is_slow_to_start => chance.weighted(&[(None, 2), (Some(600), 1)]),
            _ => chance.weighted(&[(None, 2), (Some(4), 2), (Some(10), 2), (Some(60), 1)]),
        };
        let mut servers = Vec::new();
        for namespace in 0..namespace_count {
            for region in &regions {
                for number in 1..=chance.range(1..=3) {
                    servers.push(Server {
                        namespace,
                        id: format!("{region}-{number}"),
                        region,
                        places: chance.range(1..=3),
                        lease_secs: lease,
                        is_auto_ready: !starts_slowly || chance.one_in(4),
                    });
                }
            }
        }
        let caps = (0..namespace_count).map(|_| chance.weighted(&[(1, 1), (2, 2), (3, 2), (4, 2)])).collect();
        Self {
            modes,
            servers,
            caps,
            holds_max: u32::MAX,
            party_size_max: 1,
            has_keys: false,
            instances: 2 + chance.below(4),
            actions: chance.range(20..=50),
            has_tags: chance.one_in(5),
            has_restarts: false,
            is_slow_to_start,
            on_demand: None,
            crowd: 0,
        }
    }

    /// The same with a cap for each client, or repeated requests, or both, or neither, as `chance` has it.
    pub(crate) fn with_clients(self, chance: &mut Chance, bias: Option<Write>) -> Self {
        let holds_max = chance.weighted(&[(u32::MAX, 4), (1, 1), (2, 2), (3, 1)]);
        let has_keys = chance.one_in(2);
        match bias {
            Some(HoldSeat | ReleaseHold | KeepOut | Readmit) => {
                Self { holds_max: holds_max.min(2), has_keys, ..self }
            }
            Some(PointHold) => Self { holds_max: holds_max.min(2), has_keys: true, ..self },
            Some(AimRun | KeepAnswer | ReleaseRun | ForgetRun | WaitForRun) => {
                Self { has_keys: true, holds_max, ..self }
            }
            None => Self { holds_max, has_keys, ..self },
            // What is looked for is met more often without.
            Some(_) => self,
        }
    }

    /// The same with game servers that start again, or not, as `chance` decides.
    pub(crate) fn with_restarts(self, chance: &mut Chance, bias: Option<Write>) -> Self {
        use Write::{Deregister, Drain, ExtendLease, Heartbeat, OpenServer, ShowServer};
        let has_restarts = match bias {
            Some(OpenServer) => true,
            Some(Deregister | Drain | ExtendLease | Heartbeat | ShowServer) | None => chance.one_in(2),
            // What is looked for is met more often without.
            Some(_) => false,
        };
        Self { has_restarts, ..self }
    }

    /// The same with parties, or not, as `chance` decides.
    pub(crate) fn with_parties(self, chance: &mut Chance, bias: Option<Write>) -> Self {
        use Write::{HideRoom, ShowRoom, TakeParty};
        let drawn = chance.weighted(&[(1, 2), (2, 1), (3, 1)]);
        let party_size_max = match bias {
            Some(TakeParty | ShowRoom | HideRoom) => drawn.max(2),
            Some(HoldSeat | PointHold | ReleaseHold | KeepAnswer | AimRun) | None => drawn,
            // What is looked for is met more often without.
            Some(_) => 1,
        };
        Self { party_size_max, ..self }
    }

    /// The same with game servers on demand, or not, as `chance` decides: instead of its own, or beside them,
    /// which then name their builds.
    pub(crate) fn with_servers_on_demand(self, chance: &mut Chance, bias: Option<Write>) -> Self {
        let has_them = match bias {
            None => chance.one_in(3),
            Some(bias) => bias.is_on_demand(),
        };
        if !has_them {
            return self;
        }
        let on_demand = Some(OnDemand::drawn(chance, bias));
        let servers = if chance.one_in(3) { self.servers } else { Vec::new() };
        Self { servers, has_restarts: false, on_demand, ..self }
    }

    /// The same with a hostile crowd, or not, as `chance` decides.
    pub(crate) fn with_crowd(self, chance: &mut Chance, bias: Option<Write>) -> Self {
        // What is looked for is met more often without.
        let crowd = if bias.is_none() { chance.weighted(&[(0, 3), (2, 1), (16, 1), (80, 1)]) } else { 0 };
        // Without a limit for each client, nobody's standing counts.
        let holds_max = if crowd > 0 && chance.one_in(2) { self.holds_max.min(8) } else { self.holds_max };
        Self { crowd, holds_max, ..self }
    }

    /// The configuration of a version, the first or the second.
    fn config(&self, version: usize) -> Value {
        let modes = self.modes.iter().map(|mode| {
            let config = json!({
                "regions": mode.regions,
                "max_players": mode.max_players,
                "max_players_direct": mode.direct,
                "party_size_max": self.party_size_max,
                "reservation_seconds": mode.reservation_secs,
                "idle_seconds": mode.idle_secs,
                "keep_seconds": mode.keep_secs,
                "pool_shards": mode.pool_shards,
                "taggable": true,
                "actions": { "create": { "enabled": true } },
            });
            (mode.name.to_owned(), config)
        });
        let mut config = json!({ "game_modes": modes.collect::<serde_json::Map<_, _>>() });
        if let Some(on_demand) = &self.on_demand {
            config["servers"] = on_demand.config(version);
        }
        config
    }
}

impl World {
    /// Makes the world of `plan`: game, namespaces, two versions, tokens; no game server has registered.
    pub(crate) async fn make(plan: Plan, store: &Store, ambient: &Ambient) -> Self {
        let keys = Arc::new(TokenKeys::new(&[7; 32], None).expect("a key"));
        let region = |name: &str| Region {
            display_name: name.to_owned(),
            provider_display_name: "simulated".to_owned(),
            latitude: 0.0,
            longitude: 0.0,
            probe: None,
            starter: plan.on_demand.as_ref().map(|_| StarterKind::Process),
        };
        let config = |version| serde_json::from_value(plan.config(version)).expect("a configuration");
        let namespaces = plan.caps.iter().enumerate().map(|(number, cap)| NewNamespace {
            name_id: format!("n{number}"),
            display_name: "n".to_owned(),
            lobby_count_max: *cap,
            max_players_per_client: plan.holds_max,
        });
        let new = NewGame {
            name_id: "game".to_owned(),
            display_name: "game".to_owned(),
            regions: ["fra", "nyc"].map(|name| (name.parse().expect("an id"), region(name))).into(),
            version_name: "1".to_owned(),
            config: config(0),
            namespaces: namespaces.collect(),
        };
        let created = create_game(store, ambient, new).await.expect("a game");
        let game_id = created.game.game_id.clone();
        let second =
            add_version(store, ambient, &game_id, "2".to_owned(), config(1)).await.expect("a version");
        let namespaces = created.namespaces.iter().map(|namespace| {
            let issue = |kind| {
                keys.issue_credential(kind, &Credential::fresh(&game_id, &namespace.namespace_id, ambient))
            };
            Namespace {
                id: namespace.namespace_id.clone(),
                public: issue(CredentialKind::Public),
                server: issue(CredentialKind::Server),
            }
        });
        let builds = [&created.version, &second].map(|version| {
            let build = version.config.servers.as_ref().map(|servers| servers.build_id().to_string());
            (version.version_id.to_string(), build.unwrap_or_default())
        });
        Self {
            builds: builds.into(),
            namespaces: namespaces.collect(),
            versions: [&created.version, &second].map(|version| version.version_id.to_string()).into(),
            cloud_token: created.cloud_token.reveal().to_owned(),
            plan,
            game_id,
            keys,
            ambient: ambient.clone(),
        }
    }

    /// The number of the namespace `id`.
    pub(crate) fn namespace_of(&self, id: &str) -> usize {
        let number = self.namespaces.iter().position(|namespace| namespace.id.as_str() == id);
        number.expect("a namespace of the world")
    }

    /// The token of a lobby's server.
    pub(crate) fn lobby_token(&self, namespace: usize, lobby: &str) -> String {
        let (lobby_id, now) = (lobby.parse().expect("an identifier"), self.ambient.now());
        let claims = lobby_claims(&self.game_id, &self.namespaces[namespace].id, lobby_id, now);
        self.keys.issue_lobby(&claims, now)
    }
}
