//! The criteria of a find, checked against the namespace's version: checks 4 to 8 of decision 4.

use std::time::Duration;

use crate::{
    models::{
        coordinates::Coordinates,
        errors::Error,
        game::Game,
        ids::{BuildId, RegionId},
        launch::LaunchRules,
        namespace::Namespace,
        pool::{Pool, Tags},
        publicity::Publicity,
        server::PlacementPool,
        tag_digests::TagDigests,
        version::{GameModeConfig, Version},
    },
    rules::{
        geography::nearest,
        latencies::{SearchedRegion, by_latency},
        modes::{Mode, check_find_enabled, check_max_players, check_tags, modes},
        parties::check_party,
    },
    wire::{
        CreateLobbyRequest, FindLobbyRequest,
        explanation::{ExplainedRegion, Place, Resolved},
    },
};

/// A find that every rule allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Criteria {
    /// Where to look before a lobby is created: each requested mode in each requested region that it runs in,
    /// nearest first.
    pub pools: Vec<SearchedPool>,
    /// Where else to look, nearest first: in regions beyond the modes' tolerance for latencies.
    pub beyond: Vec<SearchedPool>,
    /// How many players want seats together.
    pub party_size: u32,
    /// Tags that a lobby must have; a created lobby gets them.
    pub tags: Tags,
    /// The lobby to create when none fits.
    pub new_lobby: NewLobby,
    /// The same in other regions, nearest first, where that region has no place for it: with latencies only.
    pub elsewhere: Vec<NewLobby>,
    /// What becomes of each region, with latencies.
    pub regions: Vec<ExplainedRegion>,
    /// Requested modes that the version lacks, beside others that it has.
    pub left_out: Vec<String>,
}

/// A pool to look in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchedPool {
    /// The pool.
    pub pool: Pool,
    /// How many shards it has.
    pub shards: u32,
    /// How long a seat in one of its lobbies waits for its player.
    pub reservation: Duration,
    /// What its lobbies usually hold for parties.
    pub party_capacity: u32,
    /// Digests of the tags that a lobby there must have.
    pub tag_digests: TagDigests,
    /// Its region's place by latency, counted from 0; equally far ones have the same.
    pub distance: u32,
}

/// A lobby to be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewLobby {
    /// Its mode and region.
    pub pool: Pool,
    /// The build of the servers that run it, where its version has them started.
    pub build_id: Option<BuildId>,
    /// What to request where no server has a place, if its region has a starter.
    pub launch: Option<LaunchRules>,
    /// How many shards its pool has.
    pub shards: u32,
    /// How long its first seat waits for its player.
    pub reservation: Duration,
    /// Its capacity for finds.
    pub max_players: u32,
    /// Its capacity for joins.
    pub max_players_direct: u32,
    /// Its capacity for parties, where its mode seats parties.
    pub max_players_party: Option<u32>,
    /// The largest party of its mode, where that seats parties.
    pub party_size_max: Option<u32>,
    /// How long it stays without a held seat, in seconds.
    pub idle_secs: u32,
    /// How long a seat is kept for a player who disconnected, in seconds.
    pub keep_secs: u32,
    /// Whether players can enter only by its identifier.
    pub is_private: bool,
    /// Digests of its tags.
    pub tag_digests: TagDigests,
}

impl Criteria {
    /// The criteria of `request` in `namespace`, which runs `version` of `game`, for a client at `viewer` if
    /// known.
    ///
    /// # Errors
    /// The first violated rule's code, in the order of decision 4.
    pub fn resolve(
        request: &FindLobbyRequest,
        namespace: &Namespace,
        game: &Game,
        version: &Version,
        viewer: Option<Coordinates>,
    ) -> Result<Self, Error> {
        let (modes, left_out) = modes(&request.game_modes, version)?;
        check_tags(&request.tags, &modes)?;
        check_max_players(request.max_players, &modes)?;
        let capacity = |mode: &GameModeConfig| {
            let of_door = request.max_players.unwrap_or(mode.max_players);
            mode.party_capacity(of_door, request.max_players)
        };
        let sizes = modes.iter().map(|mode| (mode.config, capacity(mode.config)));
        check_party(request.entry.party.size, sizes, namespace)?;
        let (regions, explained) = searched_regions(request, game, &modes, viewer)?;
        let pool = |mode: &Mode<'_>, region_id: &RegionId| Pool {
            namespace_id: namespace.namespace_id.clone(),
            version_id: version.version_id.clone(),
            game_mode: mode.name.clone(),
            region_id: region_id.clone(),
            shard: 0,
        };
        let tag_digests = TagDigests::of(&request.tags, &namespace.tag_key);
        let (mut pools, mut beyond) = (Vec::new(), Vec::new());
        for mode in &modes {
            let (reservation, shards) = (mode.config.reservation(), mode.config.pool_shards);
            for region in regions.iter().filter(|region| mode.runs_in(&region.region_id)) {
                let (pool, tag_digests) = (pool(mode, &region.region_id), tag_digests.clone());
                let distance = region.distance;
                let party_capacity = capacity(mode.config);
                let searched =
                    SearchedPool { pool, shards, reservation, party_capacity, tag_digests, distance };
                // A find that may not create a lobby has no other choice.
                let is_near = region.above_best <= mode.config.latency_tolerance();
                if is_near || request.prevent_auto_create_lobby { &mut pools } else { &mut beyond }
                    .push(searched);
            }
        }
        pools.sort_by_key(|searched| searched.distance);
        beyond.sort_by_key(|searched| searched.distance);
        // In each region the first mode that runs there. Without latencies no fallback to other regions.
        let mut creatable = regions.iter().filter_map(|region| {
            let is_near = |mode: &&Mode<'_>| region.above_best <= mode.config.latency_max();
            let mut running = modes.iter().filter(|mode| mode.runs_in(&region.region_id));
            let mode = running.find(is_near)?;
            let pool = pool(mode, &region.region_id);
            let lobby = NewLobby::new(pool, mode.config, request.max_players, tag_digests.clone());
            Some(lobby.on_servers_of(game, version))
        });
        let new_lobby = creatable.next().ok_or(Error::RegionNotEnabledForGameMode)?;
        let elsewhere = if request.latencies.is_empty() { Vec::new() } else { creatable.collect() };
        check_find_enabled(&modes)?;
        let (tags, party_size) = (request.tags.clone(), request.entry.party.size);
        Ok(Self { pools, beyond, party_size, tags, new_lobby, elsewhere, regions: explained, left_out })
    }

    /// The criteria of a lobby that a player creates, by the same rules. A search covers only that lobby's
    /// pool.
    ///
    /// # Errors
    /// The first violated rule's code: mode, tags, size, region, whether players may create lobbies of the
    /// mode.
    pub fn of_custom_lobby(
        request: &CreateLobbyRequest,
        namespace: &Namespace,
        game: &Game,
        version: &Version,
        viewer: Option<Coordinates>,
    ) -> Result<Self, Error> {
        let (modes, _none) = modes(std::slice::from_ref(&request.game_mode), version)?;
        check_tags(&request.tags, &modes)?;
        check_max_players(request.max_players, &modes)?;
        let sizes = modes.iter().map(|mode| {
            let of_door = request.max_players.unwrap_or_else(|| mode.config.direct());
            (mode.config, mode.config.party_capacity(of_door, request.max_players))
        });
        check_party(request.entry.party.size, sizes, namespace)?;
        let regions = regions(request.region.as_slice(), game, &modes, viewer)?;
        let runs = |(region, mode): &(&RegionId, &Mode<'_>)| mode.runs_in(region);
        let (region, mode) =
            regions.iter().zip(&modes).find(runs).ok_or(Error::RegionNotEnabledForGameMode)?;
        if !mode.config.actions.create.enabled {
            return Err(Error::CustomLobbiesDisabled(mode.name.clone()));
        }
        let pool = Pool {
            namespace_id: namespace.namespace_id.clone(),
            version_id: version.version_id.clone(),
            game_mode: mode.name.clone(),
            region_id: region.clone(),
            shard: 0,
        };
        let is_private = request.publicity == Publicity::Private;
        let tag_digests = TagDigests::of(&request.tags, &namespace.tag_key);
        Ok(Self {
            pools: Vec::new(),
            beyond: Vec::new(),
            party_size: request.entry.party.size,
            tags: request.tags.clone(),
            new_lobby: NewLobby {
                is_private,
                ..NewLobby::new(pool, mode.config, request.max_players, tag_digests)
                    .on_servers_of(game, version)
            },
            elsewhere: Vec::new(),
            regions: Vec::new(),
            left_out: Vec::new(),
        })
    }
}

impl NewLobby {
    /// The pool and tags of finds that may enter it.
    #[must_use]
    pub fn searched(&self) -> SearchedPool {
        let Self { pool, shards, reservation, tag_digests, max_players, max_players_party, .. } = self;
        SearchedPool {
            pool: pool.clone(),
            shards: *shards,
            reservation: *reservation,
            party_capacity: max_players_party.unwrap_or(*max_players),
            tag_digests: tag_digests.clone(),
            distance: 0,
        }
    }

    /// The placement pool of the servers that can run it.
    #[must_use]
    pub fn placement(&self) -> PlacementPool {
        self.pool.placement(self.build_id.clone())
    }

    /// The same on servers that Muster has started, if `version` has such.
    fn on_servers_of(self, game: &Game, version: &Version) -> Self {
        let Some(servers) = &version.config.servers else { return self };
        let has_starter =
            game.regions.get(&self.pool.region_id).is_some_and(|region| region.starter.is_some());
        Self { build_id: Some(servers.build_id()), launch: has_starter.then(|| servers.into()), ..self }
    }

    /// A request's size sets all capacities (decision 8).
    fn new(
        pool: Pool,
        mode: &GameModeConfig,
        requested_max_players: Option<u32>,
        tag_digests: TagDigests,
    ) -> Self {
        let party_size_max = Some(mode.largest_party()).filter(|largest| *largest > 1);
        let max_players = requested_max_players.unwrap_or(mode.max_players);
        let for_parties = mode.party_capacity(max_players, requested_max_players);
        Self {
            pool,
            build_id: None,
            launch: None,
            shards: mode.pool_shards,
            reservation: mode.reservation(),
            max_players,
            max_players_direct: requested_max_players.unwrap_or_else(|| mode.direct()),
            max_players_party: party_size_max.map(|_| for_parties),
            party_size_max,
            idle_secs: mode.idle_seconds,
            keep_secs: mode.keep_seconds,
            is_private: false,
            tag_digests,
        }
    }
}

/// The regions that a find searches, and what becomes of each region where it has latencies. `regions` limits
/// them, latencies order them.
fn searched_regions(
    request: &FindLobbyRequest,
    game: &Game,
    modes: &[Mode<'_>],
    viewer: Option<Coordinates>,
) -> Result<(Vec<SearchedRegion>, Vec<ExplainedRegion>), Error> {
    if request.latencies.is_empty() {
        let regions = regions(&request.regions, game, modes, viewer)?;
        return Ok((regions.into_iter().map(SearchedRegion::unmeasured).collect(), Vec::new()));
    }
    let listed = if request.regions.is_empty() { None } else { Some(&request.regions) };
    let requested = listed.map(|listed| regions(listed, game, modes, viewer)).transpose()?;
    let is_enabled = |id: &RegionId| modes.iter().any(|mode| mode.runs_in(id));
    let is_requested = |id: &RegionId| requested.as_ref().is_none_or(|requested| requested.contains(id));
    by_latency(request, game, is_enabled, is_requested)
}

fn regions(
    requested: &[String],
    game: &Game,
    modes: &[Mode<'_>],
    viewer: Option<Coordinates>,
) -> Result<Vec<RegionId>, Error> {
    if requested.is_empty() {
        return recommended_region(game, modes, viewer).map(|region| vec![region]);
    }
    let mut regions = Vec::new();
    for id in requested {
        let (id, _) = game.regions.get_key_value(id.as_str()).ok_or_else(|| Error::RegionNotFound {
            region: id.chars().take(64).collect(),
            regions: game.regions.keys().map(ToString::to_string).collect(),
        })?;
        if !regions.contains(id) {
            regions.push(id.clone());
        }
    }
    Ok(regions)
}

/// The region nearest to the viewer in which a requested mode runs; without coordinates the first mode's
/// first.
fn recommended_region(
    game: &Game,
    modes: &[Mode<'_>],
    viewer: Option<Coordinates>,
) -> Result<RegionId, Error> {
    let runs = |id: &RegionId| modes.iter().any(|mode| mode.runs_in(id));
    let usable = || game.regions.iter().filter(|(id, _)| runs(id));
    let first = || modes.first()?.config.regions.first();
    let region = viewer.and_then(|viewer| nearest(viewer, usable())).or_else(first);
    region.cloned().ok_or(Error::RegionNotEnabledForGameMode)
}

impl From<&Criteria> for Resolved {
    fn from(criteria: &Criteria) -> Self {
        let Criteria { pools, tags, new_lobby, .. } = criteria;
        let place =
            |pool: &Pool| Place { game_mode: pool.game_mode.clone(), region_id: pool.region_id.clone() };
        Self {
            searched: pools.iter().map(|searched| place(&searched.pool)).collect(),
            creates: place(&new_lobby.pool),
            tags: tags.clone(),
            max_players: new_lobby.max_players,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn game() -> Game {
        serde_json::from_value(json!({
            "game_id": "g", "name_id": "g", "display_name": "G", "created_at": 0,
            "regions": {
                "eu": {"display_name": "E", "provider_display_name": "P", "latitude": 50.0, "longitude": 8.0},
                "us": {"display_name": "U", "provider_display_name": "P", "latitude": 39.0, "longitude": -77.0},
                "ap": {"display_name": "A", "provider_display_name": "P", "latitude": 35.0, "longitude": 139.0}
            }
        }))
        .unwrap()
    }

    fn version() -> Version {
        serde_json::from_value(json!({
            "game_id": "g", "version_id": "v", "display_name": "1", "created_at": 0,
            "config": {"game_modes": {
                "duel": {"regions": ["eu", "us"], "max_players": 2},
                "arena": {"regions": ["us"], "max_players": 10, "max_players_direct": 12, "taggable": true,
                          "allow_dynamic_max_players": true},
                "raid": {"regions": ["us"], "max_players": 6, "taggable": true, "allow_dynamic_max_players": true},
                "shut": {"regions": ["eu"], "actions": {"find": {"enabled": false}}}
            }}
        }))
        .unwrap()
    }

    fn namespace() -> Namespace {
        serde_json::from_value(json!({
            "game_id": "g", "namespace_id": "n", "name_id": "n", "display_name": "N", "created_at": 0,
            "version_id": "v", "deployed_at": 0, "lobby_count_max": 1, "max_players_per_client": 1,
            "enable_domain_public_auth": true, "tag_key": "k"
        }))
        .unwrap()
    }

    fn resolve(request: serde_json::Value) -> Result<Criteria, (&'static str, Option<serde_json::Value>)> {
        resolve_from(request, None)
    }

    fn resolve_from(
        request: serde_json::Value,
        viewer: Option<Coordinates>,
    ) -> Result<Criteria, (&'static str, Option<serde_json::Value>)> {
        let request = serde_json::from_value(request).unwrap();
        Criteria::resolve(&request, &namespace(), &game(), &version(), viewer)
            .map_err(|error| (error.status_and_code().1, error.metadata()))
    }

    fn places(criteria: &Criteria) -> Vec<String> {
        criteria.pools.iter().map(|searched| searched.pool.to_string()).collect()
    }

    #[test]
    fn without_regions_the_first_mode_decides() {
        let criteria = resolve(json!({"game_modes": ["duel", "arena", "duel"]})).unwrap();
        assert_eq!(places(&criteria), ["n/v/duel/eu"]);
        assert_eq!(criteria.new_lobby.max_players, 2);
    }

    #[test]
    fn coordinates_choose_the_nearest_region_that_a_mode_runs_in() {
        let tokyo = Coordinates::new(35.7, 139.7);
        let criteria = resolve_from(json!({"game_modes": ["duel"], "regions": []}), tokyo).unwrap();
        assert_eq!(places(&criteria), ["n/v/duel/eu"]);
        let new_york = Coordinates::new(40.7, -74.0);
        let criteria = resolve_from(json!({"game_modes": ["duel"]}), new_york).unwrap();
        assert_eq!(places(&criteria), ["n/v/duel/us"]);
    }

    #[test]
    fn regions_filter_and_the_first_usable_one_gets_the_new_lobby() {
        let criteria =
            resolve(json!({"game_modes": ["arena", "duel"], "regions": ["ap", "eu", "us", "eu"]})).unwrap();
        assert_eq!(places(&criteria), ["n/v/arena/us", "n/v/duel/eu", "n/v/duel/us"]);
        assert_eq!(criteria.new_lobby.pool.to_string(), "n/v/duel/eu");
    }

    #[test]
    fn max_players_sizes_the_new_lobby_in_both_counts() {
        let sized = resolve(json!({"game_modes": ["arena"], "max_players": 4})).unwrap().new_lobby;
        assert_eq!((sized.max_players, sized.max_players_direct), (4, 4));
        let plain = resolve(json!({"game_modes": ["arena"]})).unwrap().new_lobby;
        assert_eq!((plain.max_players, plain.max_players_direct), (10, 12));
    }

    #[test]
    fn each_violated_rule_has_its_code() {
        let many: serde_json::Map<_, _> = (0..9).map(|n| (n.to_string(), json!("x"))).collect();
        let cases = [
            (json!({"game_modes": []}), "MATCHMAKER_NO_GAME_MODE_PROVIDED", None),
            (
                json!({"game_modes": ["x"]}),
                "MATCHMAKER_GAME_MODE_NOT_FOUND",
                Some(json!({"game_mode": "x", "game_modes": ["arena", "duel", "raid", "shut"]})),
            ),
            (json!({"game_modes": ["arena"], "tags": many}), "MATCHMAKER_TOO_MANY_TAGS", None),
            (
                json!({"game_modes": ["arena"], "tags": {"k".repeat(129): ""}}),
                "MATCHMAKER_TAG_NAME_TOO_LONG",
                None,
            ),
            (
                json!({"game_modes": ["arena"], "tags": {"k": "v".repeat(513)}}),
                "MATCHMAKER_TAG_TOO_LONG",
                None,
            ),
            (
                json!({"game_modes": ["arena", "duel"], "tags": {"k": "v"}}),
                "MATCHMAKER_TAGS_DISABLED",
                Some(json!({"game_mode": "duel"})),
            ),
            (
                json!({"game_modes": ["arena"], "max_players": 0}),
                "MATCHMAKER_DYNAMIC_MAX_PLAYERS_INVALID",
                None,
            ),
            (
                json!({"game_modes": ["duel"], "max_players": 1}),
                "MATCHMAKER_DYNAMIC_MAX_PLAYERS_DISABLED",
                Some(json!({"game_mode": "duel"})),
            ),
            (
                json!({"game_modes": ["arena", "raid"], "max_players": 7}),
                "MATCHMAKER_DYNAMIC_MAX_PLAYERS_INVALID",
                Some(json!({"max": 6})),
            ),
            (
                json!({"game_modes": ["duel"], "regions": ["mars"]}),
                "MATCHMAKER_REGION_NOT_FOUND",
                Some(json!({"region": "mars", "regions": ["ap", "eu", "us"]})),
            ),
            (
                json!({"game_modes": ["arena"], "regions": ["eu"]}),
                "MATCHMAKER_REGION_NOT_ENABLED_FOR_GAME_MODE",
                None,
            ),
            (json!({"game_modes": ["shut"]}), "MATCHMAKER_FIND_DISABLED", Some(json!({"game_mode": "shut"}))),
        ];
        for (request, code, metadata) in cases {
            assert_eq!(resolve(request.clone()), Err((code, metadata)), "{request}");
        }
    }

    #[test]
    fn the_first_violation_answers() {
        let every =
            json!({"game_modes": ["shut"], "tags": {"k": "v"}, "max_players": 0, "regions": ["mars"]});
        assert_eq!(resolve(every).unwrap_err().0, "MATCHMAKER_TAGS_DISABLED");
        let later = json!({"game_modes": ["shut"], "regions": ["us"]});
        assert_eq!(resolve(later).unwrap_err().0, "MATCHMAKER_REGION_NOT_ENABLED_FOR_GAME_MODE");
    }
}
