//! What is configured: settings of the matchmaker, versions, game servers, routes.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_dynamodb::types::AttributeValue;
use muster_local::route::RoutePath;
use proptest::{
    collection::{btree_map, vec},
    option,
    prelude::{any, prop_oneof},
    prop_assert, prop_assert_eq,
    sample::select,
    strategy::{Just, Strategy},
};
use serde_json::{Value, json};
use shared::{
    models::{game::Game, version::VersionConfig},
    rules::{matchmaker_config, registration::Registration, version_config},
    wire::{RegisterServerRequest, ValidationResponse},
};

use crate::fuzz::check_plain;

fn near(bounds: &'static [u32]) -> impl Strategy<Value = u32> {
    let at_bound =
        (select(bounds), -1..2_i64).prop_map(|(bound, by)| (i64::from(bound) + by).clamp(0, u32::MAX.into()));
    prop_oneof![2 => at_bound.prop_map(|number| number.try_into().unwrap()), 1 => any::<u32>()]
}

#[test]
fn settings_of_the_matchmaker_are_refused_at_each_documented_path() {
    let bounds = &[0, 32_767, u32::MAX];
    check_plain((near(bounds), near(bounds)), |(lobby_count_max, max_players)| {
        let mut expected = Vec::new();
        match lobby_count_max {
            0 => expected.push(json!({ "path": ["lobby-count", "too-low"] })),
            32_768.. => expected.push(json!({ "path": ["lobby-count", "too-high"] })),
            _ => {}
        }
        if max_players == 0 {
            expected.push(json!({ "path": ["max-players", "too-low"] }));
            for source in ["client", "vpn", "proxy", "tor", "hosting"] {
                expected.push(json!({ "path": ["max-players", source, "too-low"] }));
            }
        }
        let response = ValidationResponse::new(matchmaker_config::validate(lobby_count_max, max_players));
        prop_assert_eq!(json!(response), json!({ "errors": expected }));
        Ok(())
    });
}

fn game() -> Game {
    let region =
        json!({ "display_name": "R", "provider_display_name": "P", "latitude": 0.0, "longitude": 0.0 });
    let game = json!({ "game_id": "g", "name_id": "g", "display_name": "G", "created_at": 0,
                       "regions": { "fra": region, "nyc": region } });
    serde_json::from_value(game).unwrap()
}

/// Fields of a mode, each absent at times.
fn mode() -> impl Strategy<Value = BTreeMap<&'static str, Value>> {
    let regions = prop_oneof![6 => vec(select(&["fra", "nyc"][..]), 1..2), 1 => vec(select(&["fra", "nyc", "mars"][..]), 0..4)];
    let number = |bounds| option::weighted(0.5, prop_oneof![2 => 5..200_u32, 1 => near(bounds)]);
    let flag = || option::of(any::<bool>());
    let numbers = (
        number(&[1, 256]),
        number(&[1, 32, 256]),
        number(&[1, 256]),
        number(&[5, 600]),
        number(&[0, 86_400]),
        number(&[1, 32]),
        number(&[0, 10_000]),
        number(&[0, 10_000]),
    );
    let enabled = || option::of(any::<bool>().prop_map(|enabled| json!({ "enabled": enabled })));
    let actions = option::of((enabled(), enabled(), enabled()));
    (regions, numbers, (flag(), flag(), flag()), actions).prop_map(|(regions, numbers, flags, actions)| {
        let mut mode = BTreeMap::from([("regions", json!(regions))]);
        let (size, direct, party, reservation, idle, shards, tolerance, latency) = numbers;
        let numbers = [
            ("max_players", size),
            ("max_players_direct", direct),
            ("max_players_party", party),
            ("reservation_seconds", reservation),
            ("idle_seconds", idle),
            ("pool_shards", shards),
            ("latency_tolerance", tolerance),
            ("latency_max", latency),
        ];
        mode.extend(numbers.into_iter().filter_map(|(name, number)| Some((name, json!(number?)))));
        let flags = [("listable", flags.0), ("taggable", flags.1), ("allow_dynamic_max_players", flags.2)];
        mode.extend(flags.into_iter().filter_map(|(name, flag)| Some((name, json!(flag?)))));
        if let Some((find, join, create)) = actions {
            let actions = [("find", find), ("join", join), ("create", create)];
            let actions: BTreeMap<_, _> =
                actions.into_iter().filter_map(|(name, action)| Some((name, action?))).collect();
            mode.insert("actions", json!(actions));
        }
        mode
    })
}

/// Whether a mode is within the limits of `infra/docs/limits.md`, in a game with `fra` and `nyc`.
fn is_valid_mode(mode: &BTreeMap<&str, Value>) -> bool {
    let number = |name, default: u64| mode.get(name).map_or(default, |number| number.as_u64().unwrap());
    let regions: Vec<_> =
        mode["regions"].as_array().unwrap().iter().map(|region| region.as_str().unwrap()).collect();
    let size = number("max_players", 32);
    !regions.is_empty()
        && regions.iter().all(|region| ["fra", "nyc"].contains(region))
        && regions.iter().collect::<BTreeSet<_>>().len() == regions.len()
        && (1..=256).contains(&size)
        && (size..=256).contains(&number("max_players_direct", size))
        && (1..=256).contains(&number("max_players_party", size))
        && (5..=600).contains(&number("reservation_seconds", 120))
        && number("idle_seconds", 0) <= 86_400
        && (1..=32).contains(&number("pool_shards", 1))
        && number("latency_tolerance", 50) <= 10_000
        && number("latency_max", 100) <= 10_000
}

#[test]
fn a_version_reads_back_and_is_valid_within_its_limits() {
    let game = game();
    let modes = |count| btree_map("[A-Za-z0-9_-]{1,64}", mode(), count);
    check_plain(prop_oneof![30 => modes(0..3), 1 => modes(31..35)], |modes| {
        let config: VersionConfig = serde_json::from_value(json!({ "game_modes": modes })).unwrap();
        let violations = version_config::validate(&config, &game.regions);
        let is_valid = (1..=32).contains(&modes.len()) && modes.values().all(is_valid_mode);
        prop_assert_eq!(violations.is_empty(), is_valid, "{:?}", violations);
        prop_assert!(
            violations.into_iter().all(|broken| broken.path[0] == "game_modes" && broken.path.len() > 1)
        );
        prop_assert_eq!(&serde_json::from_value::<VersionConfig>(json!(config)).unwrap(), &config);
        let stored: AttributeValue = serde_dynamo::to_attribute_value(&config).unwrap();
        prop_assert_eq!(&serde_dynamo::from_attribute_value::<_, VersionConfig>(stored).unwrap(), &config);
        for (name, mode) in &modes {
            let read = &config.game_modes[name.as_str()];
            let flag = |name, default| mode.get(name).map_or(default, |flag| *flag == true);
            let action = |name, default| {
                mode.get("actions")
                    .and_then(|actions| actions.get(name))
                    .map_or(default, |action| action["enabled"] == true)
            };
            prop_assert_eq!(
                (read.listable, read.taggable),
                (flag("listable", true), flag("taggable", false))
            );
            prop_assert_eq!(read.allow_dynamic_max_players, flag("allow_dynamic_max_players", false));
            let actions =
                [&read.actions.find, &read.actions.join, &read.actions.create].map(|action| action.enabled);
            prop_assert_eq!(actions, [action("find", true), action("join", true), action("create", false)]);
        }
        Ok(())
    });
}

#[test]
fn a_game_server_registers_within_its_limits() {
    let game = game();
    let name = prop_oneof![8 => "[A-Za-z0-9_-]{1,64}", 1 => "[ -~]{0,3}"];
    let modes = prop_oneof![9 => vec(name.clone(), 0..3), 1 => vec(name, 31..35)];
    let numbers = (option::of(near(&[0, 1, 1_000_000])), option::of(near(&[0, 1, 86_400])));
    let cases = (select(&["fra", "nyc", "mars", ""][..]), option::of(modes), numbers, 0..66_000_u32);
    check_plain(cases, |(region, modes, (capacity, lease), port)| {
        let port_spec = json!({ "hostname": "a.example", "port": port, "protocol": "udp" });
        let request: RegisterServerRequest = serde_json::from_value(json!({
            "region_id": region, "game_modes": modes, "capacity": capacity, "lease_seconds": lease,
            "ports": { "game": port_spec },
        }))
        .unwrap();
        let is_identifier = |name: &String| {
            (1..=64).contains(&name.len())
                && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
        };
        let are_modes = |names: &Vec<String>| {
            (1..=32).contains(&names.iter().collect::<BTreeSet<_>>().len()) && names.iter().all(is_identifier)
        };
        let is_valid = ["fra", "nyc"].contains(&region)
            && modes.as_ref().is_none_or(are_modes)
            && capacity.is_none_or(|capacity| (1..=1_000_000).contains(&capacity))
            && lease.is_none_or(|lease| lease <= 86_400)
            && (1..=65_535).contains(&port);
        let checked = Registration::check(&request, &game, None);
        prop_assert_eq!(checked.is_ok(), is_valid, "{:?}", checked);
        prop_assert!(
            checked.err().is_none_or(
                |paths| !paths.is_empty() && paths.into_iter().all(|broken| broken.path.len() > 1)
            )
        );
        Ok(())
    });
}

#[test]
fn a_route_matches_what_it_is_made_of() {
    let segment = prop_oneof!["[a-z-]{1,8}", "\\{[a-z_.]{1,6}\\}"];
    let value = prop_oneof!["[a-z-]{0,8}", "[^/]{0,8}", Just(String::new())];
    check_plain((vec(segment, 1..5), vec(value, 5)), |(segments, values)| {
        let text = format!("/{}", segments.join("/"));
        let name = |segment: &String| {
            segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).map(str::to_owned)
        };
        let names: Vec<String> = segments.iter().filter_map(name).collect();
        let is_route = names.iter().collect::<BTreeSet<_>>().len() == names.len();
        let route = text.parse::<RoutePath>();
        prop_assert_eq!(route.is_ok(), is_route, "{:?}", route);
        let Ok(route) = route else { return Ok(()) };
        prop_assert_eq!(route.to_string(), &*text);
        let of_parameter = |(segment, value): (&String, &String)| {
            if name(segment).is_some() { value.clone() } else { segment.clone() }
        };
        let filled: Vec<String> = segments.iter().zip(&values).map(of_parameter).collect();
        let path = format!("/{}", filled.join("/"));
        let given =
            segments.iter().zip(&values).filter_map(|(segment, value)| Some((name(segment)?, value.clone())));
        let given: Vec<_> = given.collect();
        let is_given = given.iter().all(|(_, value)| !value.is_empty());
        let found = route.parameters_of(&path);
        let found = found.map(|found| {
            found.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect::<Vec<_>>()
        });
        prop_assert_eq!(found, is_given.then_some(given));
        let longer = format!("{path}/more");
        prop_assert_eq!(route.parameters_of(&longer), None);
        Ok(())
    });
}
