//! The criteria of a find, judged check by check in the order of decision 4, and what a lobby's creator
//! configures.

use std::collections::{BTreeMap, BTreeSet};

use harness::readable;
use proptest::{
    collection::{btree_map, vec},
    option,
    prelude::{Just, any, prop_oneof},
    prop_assert, prop_assert_eq,
    sample::select,
    strategy::Strategy,
};
use serde_json::{Value, json, value::RawValue};
use shared::{
    models::{
        coordinates::Coordinates,
        game::Game,
        handed_on::{DEPTH_MAX, HandedOn},
        lobby_config::LobbyConfig,
        namespace::Namespace,
        pool::Pool,
        version::Version,
    },
    rules::criteria::Criteria,
    wire::{CreateLobbyRequest, FindLobbyRequest},
};

use crate::fuzz::{check_plain, json::any_json};

const REGIONS: [(&str, f64, f64); 3] = [("eu", 50.0, 8.0), ("us", 39.0, -77.0), ("ap", 35.0, 139.0)];

/// A mode: where it runs, its size, and whether it takes tags, sizes, finds and creators.
struct Mode {
    name: &'static str,
    regions: &'static [&'static str],
    max_players: u32,
    takes_tags: bool,
    takes_sizes: bool,
    finds: bool,
    creates: bool,
}

const MODES: [Mode; 4] = [
    Mode {
        name: "duel",
        regions: &["eu", "us"],
        max_players: 2,
        takes_tags: false,
        takes_sizes: false,
        finds: true,
        creates: true,
    },
    Mode {
        name: "arena",
        regions: &["us"],
        max_players: 10,
        takes_tags: true,
        takes_sizes: true,
        finds: true,
        creates: true,
    },
    Mode {
        name: "raid",
        regions: &["us", "eu"],
        max_players: 6,
        takes_tags: true,
        takes_sizes: true,
        finds: true,
        creates: false,
    },
    Mode {
        name: "shut",
        regions: &["eu"],
        max_players: 8,
        takes_tags: true,
        takes_sizes: true,
        finds: false,
        creates: true,
    },
];

fn namespace() -> Namespace {
    serde_json::from_value(json!({
        "game_id": "g", "namespace_id": "n", "name_id": "n", "display_name": "N", "created_at": 0,
        "version_id": "v", "deployed_at": 0, "lobby_count_max": 1, "max_players_per_client": 1,
        "enable_domain_public_auth": true, "tag_key": "k",
    }))
    .unwrap()
}

fn game() -> Game {
    let region = |(id, latitude, longitude): &(&str, f64, f64)| {
        (
            id.to_string(),
            json!({ "display_name": id, "provider_display_name": "P", "latitude": latitude, "longitude": longitude }),
        )
    };
    let regions: BTreeMap<_, _> = REGIONS.iter().map(region).collect();
    let game =
        json!({ "game_id": "g", "name_id": "g", "display_name": "G", "created_at": 0, "regions": regions });
    serde_json::from_value(game).unwrap()
}

fn version() -> Version {
    let mode = |mode: &Mode| {
        let config = json!({
            "regions": mode.regions, "max_players": mode.max_players, "taggable": mode.takes_tags,
            "allow_dynamic_max_players": mode.takes_sizes,
            "actions": { "find": { "enabled": mode.finds }, "create": { "enabled": mode.creates } },
        });
        (mode.name.to_owned(), config)
    };
    let modes: BTreeMap<_, _> = MODES.iter().map(mode).collect();
    let version = json!({ "game_id": "g", "version_id": "v", "display_name": "1", "created_at": 0,
                          "config": { "game_modes": modes } });
    serde_json::from_value(version).unwrap()
}

/// The criteria of a find or a create.
#[derive(Clone, Debug)]
struct Requested {
    modes: Vec<String>,
    regions: Vec<String>,
    tags: BTreeMap<String, String>,
    max_players: Option<u32>,
}

fn requested(modes: usize, regions: usize) -> impl Strategy<Value = Requested> {
    let mode = prop_oneof![20 => select(&["duel", "arena", "raid", "shut"][..]), 1 => select(&["Duel", "", "x y"][..])];
    let region = prop_oneof![20 => select(&["eu", "us", "ap"][..]), 1 => select(&["EU", "", "mars"][..])];
    let name = prop_oneof![12 => "[a-z]{1,3}", 1 => "[a-z]{127,130}", 1 => "\u{e4}{63,65}"];
    let tag = prop_oneof![12 => "[a-z]{0,3}", 1 => "[a-z]{511,514}", 1 => "\u{e4}{255,257}"];
    let tags = prop_oneof![6 => btree_map(name.clone(), tag.clone(), 0..4), 1 => btree_map(name, tag, 7..11)];
    let size = prop_oneof![5 => 1..12_u32, 1 => select(&[0, 256, u32::MAX][..])];
    let texts = |texts: Vec<&str>| texts.into_iter().map(str::to_owned).collect();
    (vec(mode, 0..=modes), vec(region, 0..=regions), tags, option::weighted(0.4, size)).prop_map(
        move |(modes, regions, tags, max_players)| Requested {
            modes: texts(modes),
            regions: texts(regions),
            tags,
            max_players,
        },
    )
}

/// The code of the first violated rule, of checks 4 to 7 of decision 4.
fn violation(requested: &Requested) -> Option<&'static str> {
    let Requested { modes, regions, tags, max_players } = requested;
    if modes.is_empty() {
        return Some("MATCHMAKER_NO_GAME_MODE_PROVIDED");
    }
    let modes: Vec<&Mode> =
        modes.iter().filter_map(|name| MODES.iter().find(|mode| mode.name == name)).collect();
    if modes.is_empty() {
        return Some("MATCHMAKER_GAME_MODE_NOT_FOUND");
    }
    if tags.len() > 8 {
        return Some("MATCHMAKER_TOO_MANY_TAGS");
    }
    if tags.keys().any(|name| name.len() > 128) {
        return Some("MATCHMAKER_TAG_NAME_TOO_LONG");
    }
    if tags.values().any(|tag| tag.len() > 512) {
        return Some("MATCHMAKER_TAG_TOO_LONG");
    }
    if !tags.is_empty() && modes.iter().any(|mode| !mode.takes_tags) {
        return Some("MATCHMAKER_TAGS_DISABLED");
    }
    if *max_players == Some(0) {
        return Some("MATCHMAKER_DYNAMIC_MAX_PLAYERS_INVALID");
    }
    if max_players.is_some() && modes.iter().any(|mode| !mode.takes_sizes) {
        return Some("MATCHMAKER_DYNAMIC_MAX_PLAYERS_DISABLED");
    }
    if max_players.is_some_and(|size| modes.iter().any(|mode| size > mode.max_players)) {
        return Some("MATCHMAKER_DYNAMIC_MAX_PLAYERS_INVALID");
    }
    if regions.iter().any(|name| !REGIONS.iter().any(|(id, _, _)| id == name)) {
        return Some("MATCHMAKER_REGION_NOT_FOUND");
    }
    let runs = |region: &String| modes.iter().any(|mode| mode.regions.contains(&region.as_str()));
    (!regions.is_empty() && !regions.iter().any(runs))
        .then_some("MATCHMAKER_REGION_NOT_ENABLED_FOR_GAME_MODE")
}

/// A cosine of the angle between two places: the larger, the nearer.
fn nearness(place: (f64, f64), (_, north, east): &(&str, f64, f64)) -> f64 {
    let ((a, b), (c, d)) =
        ((place.0.to_radians(), place.1.to_radians()), (north.to_radians(), east.to_radians()));
    a.sin() * c.sin() + a.cos() * c.cos() * (b - d).cos()
}

/// Each once, in order.
fn once(names: &[String]) -> Vec<&str> {
    let mut seen = BTreeSet::new();
    names.iter().map(String::as_str).filter(|name| seen.insert(*name)).collect()
}

#[test]
fn a_find_is_judged_in_the_order_of_the_decisions() {
    let (game, version, namespace) = (game(), version(), namespace());
    let place = option::of((-90.0..90.0, -180.0..180.0));
    check_plain((requested(3, 3), place), |(requested, place)| {
        let request: FindLobbyRequest = serde_json::from_value(json!({
            "game_modes": requested.modes, "regions": requested.regions, "tags": requested.tags,
            "max_players": requested.max_players,
        }))
        .unwrap();
        let viewer = place.map(|(north, east): (f64, f64)| Coordinates::new(north, east).unwrap());
        let resolved = Criteria::resolve(&request, &namespace, &game, &version, viewer);
        let modes: Vec<&Mode> = once(&requested.modes)
            .iter()
            .filter_map(|name| MODES.iter().find(|mode| mode.name == *name))
            .collect();
        let shut = modes.iter().any(|mode| !mode.finds).then_some("MATCHMAKER_FIND_DISABLED");
        let expected = violation(&requested).or(shut);
        let criteria = match resolved {
            Ok(criteria) => criteria,
            Err(error) => {
                prop_assert_eq!(Some(error.status_and_code().1), expected);
                return Ok(());
            }
        };
        prop_assert_eq!(None, expected);
        // Without regions the recommended one: the nearest that some mode runs in, else the first mode's
        // first.
        let runs = |mode: &&Mode, region: &str| mode.regions.contains(&region);
        let usable = REGIONS.iter().filter(|region| modes.iter().any(|mode| runs(mode, region.0)));
        let nearest =
            place.and_then(|place| usable.max_by(|a, b| nearness(place, a).total_cmp(&nearness(place, b))));
        let recommended = nearest.map_or(modes[0].regions[0], |region| region.0);
        let regions = if requested.regions.is_empty() { vec![recommended] } else { once(&requested.regions) };
        let pool = |mode: &Mode, region: &str| format!("n/v/{}/{region}", mode.name);
        let expected: Vec<String> = modes
            .iter()
            .flat_map(|mode| {
                regions.iter().filter(|region| runs(mode, region)).map(|region| pool(mode, region))
            })
            .collect();
        let searched: Vec<String> = criteria.pools.iter().map(|searched| searched.pool.to_string()).collect();
        prop_assert_eq!(searched, expected);
        let first =
            regions.iter().find_map(|region| Some((modes.iter().find(|mode| runs(mode, region))?, region)));
        let (mode, region) = first.unwrap();
        prop_assert_eq!(criteria.new_lobby.pool.to_string(), pool(mode, region));
        let size = requested.max_players.unwrap_or(mode.max_players);
        prop_assert_eq!(
            (criteria.new_lobby.max_players, criteria.new_lobby.max_players_direct),
            (size, size)
        );
        prop_assert_eq!(criteria.tags, requested.tags);
        let is_unknown = |name: &&String| MODES.iter().all(|mode| mode.name != *name);
        prop_assert_eq!(
            criteria.left_out,
            requested.modes.iter().filter(is_unknown).cloned().collect::<Vec<_>>()
        );
        Ok(())
    });
}

#[test]
fn latencies_order_the_regions_that_a_find_searches() {
    let (game, version, namespace) = (game(), version(), namespace());
    let latency = prop_oneof![8 => (20..260_u32).prop_map(Some), 1 => Just(None)];
    let measured = btree_map(select(&["eu", "us", "ap", "mars"][..]), latency, 1..5);
    let regions = vec(select(&["eu", "us", "ap"][..]), 0..3);
    check_plain((measured, regions, any::<bool>()), |(measured, regions, prevented)| {
        let request: FindLobbyRequest = serde_json::from_value(json!({
            "game_modes": ["raid", "duel"], "regions": regions, "latencies": measured,
            "prevent_auto_create_lobby": prevented,
        }))
        .unwrap();
        let resolved = Criteria::resolve(&request, &namespace, &game, &version, None);
        let modes: Vec<&Mode> =
            ["raid", "duel"].iter().filter_map(|name| MODES.iter().find(|mode| mode.name == *name)).collect();
        let is_usable = |region: &str| {
            modes.iter().any(|mode| mode.regions.contains(&region))
                && (regions.is_empty() || regions.contains(&region))
        };
        let reached = measured.iter().filter_map(|(region, ms)| Some(((*ms)?, *region)));
        let reached: BTreeSet<_> = reached.filter(|(_, region)| is_usable(region)).collect();
        let Some(&(best, nearest)) = reached.first() else {
            let code = if REGIONS.iter().any(|(id, ..)| is_usable(id)) {
                "MATCHMAKER_NO_REGION_REACHABLE"
            } else {
                "MATCHMAKER_REGION_NOT_ENABLED_FOR_GAME_MODE"
            };
            prop_assert_eq!(resolved.unwrap_err().status_and_code().1, code);
            return Ok(());
        };
        let criteria = resolved.unwrap();
        let mode_of = |region: &str| modes.iter().find(|mode| mode.regions.contains(&region)).unwrap().name;
        let pool = |region: &str| format!("n/v/{}/{region}", mode_of(region));
        prop_assert_eq!(criteria.new_lobby.pool.to_string(), pool(nearest));
        let others = reached.iter().skip(1).filter(|(ms, _)| ms - best <= 100);
        let elsewhere: Vec<_> = criteria.elsewhere.iter().map(|new| new.pool.to_string()).collect();
        prop_assert_eq!(elsewhere, others.map(|(_, region)| pool(region)).collect::<Vec<_>>());
        let latency = |pool: &Pool| measured[pool.region_id.as_str()].unwrap();
        for (pools, is_near) in [(&criteria.pools, true), (&criteria.beyond, false)] {
            let latencies: Vec<_> = pools.iter().map(|searched| latency(&searched.pool)).collect();
            prop_assert!(latencies.is_sorted());
            prop_assert!(latencies.iter().all(|ms| (ms - best <= 50 || prevented) == is_near));
        }
        let searched =
            criteria.pools.iter().chain(&criteria.beyond).map(|searched| searched.pool.to_string());
        let running = |region| modes.iter().filter(move |mode| mode.regions.contains(&region));
        let expected = reached
            .iter()
            .flat_map(|(_, region)| running(*region).map(move |mode| format!("n/v/{}/{region}", mode.name)));
        prop_assert_eq!(searched.collect::<BTreeSet<_>>(), expected.collect::<BTreeSet<_>>());
        Ok(())
    });
}

#[test]
fn a_lobby_of_ones_own_is_judged_by_the_same_rules() {
    let (game, version, namespace) = (game(), version(), namespace());
    check_plain((requested(1, 1), option::of(any::<bool>())), |(requested, is_public)| {
        let Some(name) = requested.modes.first() else { return Ok(()) };
        let publicity = is_public.map(|is_public| if is_public { "public" } else { "private" });
        let request: CreateLobbyRequest = serde_json::from_value(json!({
            "game_mode": name, "region": requested.regions.first(), "tags": requested.tags,
            "max_players": requested.max_players, "publicity": publicity,
        }))
        .unwrap();
        let resolved = Criteria::of_custom_lobby(&request, &namespace, &game, &version, None);
        let mode = MODES.iter().find(|mode| mode.name == name);
        let shut = mode.is_some_and(|mode| !mode.creates).then_some("MATCHMAKER_CUSTOM_LOBBIES_DISABLED");
        let code = resolved.as_ref().err().map(|error| error.status_and_code().1);
        prop_assert_eq!(code, violation(&requested).or(shut));
        if let (Ok(criteria), Some(mode)) = (resolved, mode) {
            let region = requested.regions.first().map_or(mode.regions[0], String::as_str);
            prop_assert_eq!(criteria.new_lobby.pool.to_string(), format!("n/v/{name}/{region}"));
            prop_assert_eq!(criteria.new_lobby.is_private, is_public != Some(true));
            prop_assert_eq!(criteria.pools, []);
        }
        Ok(())
    });
}

#[test]
fn a_lobbys_configuration_is_any_readable_json_of_up_to_16_kib() {
    let long = (16_300..16_500_usize).prop_map(|length| format!("\"{}\"", "x".repeat(length)));
    check_plain(prop_oneof![8 => any_json().prop_map(|json| json.to_string()), 1 => long], |text| {
        let Ok(json) = serde_json::from_str::<&RawValue>(&text) else { return Ok(()) };
        let config = HandedOn::new(json, "lobby_config", DEPTH_MAX).and_then(LobbyConfig::new);
        let is_readable = serde_json::from_str::<Value>(&text).is_ok() && readable::depth(&text) <= DEPTH_MAX;
        prop_assert_eq!(config.is_ok(), is_readable && json.get().len() <= 16 * 1_024);
        if let Ok(config) = config {
            prop_assert_eq!(config.json().get(), json.get());
        }
        Ok(())
    });
}
