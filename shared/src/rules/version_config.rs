//! Which version configurations are valid (decisions on version configuration).

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    ids::RegionId,
    settings::{GameModeConfig, Region, VersionConfig},
};

/// The most modes of a version.
pub const GAME_MODES_MAX: usize = 32;
/// The largest lobby.
pub const MAX_PLAYERS_LIMIT: u32 = 256;
/// The longest time that an empty lobby may stay, in seconds: a day.
const IDLE_SECONDS_MAX: u32 = 86_400;

/// Where `config` would be refused, as paths; empty when it is valid in a game with `regions`.
#[must_use]
pub fn validate(config: &VersionConfig, regions: &BTreeMap<RegionId, Region>) -> Vec<Vec<String>> {
    let mut errors = Vec::new();
    if config.game_modes.is_empty() {
        errors.push(vec!["game_modes".to_owned(), "too-few".to_owned()]);
    }
    if config.game_modes.len() > GAME_MODES_MAX {
        // The list of what is wrong in each of them would have no bound.
        return vec![vec!["game_modes".to_owned(), "too-many".to_owned()]];
    }
    for (name, mode) in &config.game_modes {
        errors.extend(mode_violations(mode, regions).into_iter().map(|(field, violation)| {
            vec!["game_modes".to_owned(), name.to_string(), field.to_owned(), violation.to_owned()]
        }));
    }
    errors
}

fn mode_violations(
    mode: &GameModeConfig,
    regions: &BTreeMap<RegionId, Region>,
) -> Vec<(&'static str, &'static str)> {
    let mut violations = Vec::new();
    if mode.regions.is_empty() {
        violations.push(("regions", "too-few"));
    }
    if mode.regions.iter().collect::<BTreeSet<_>>().len() < mode.regions.len() {
        violations.push(("regions", "duplicate"));
    }
    if mode.regions.iter().any(|region| !regions.contains_key(region)) {
        violations.push(("regions", "not-found"));
    }
    let mut bound = |field, value: u32, min: u32, max: u32| {
        if value < min {
            violations.push((field, "too-low"));
        } else if value > max {
            violations.push((field, "too-high"));
        }
    };
    bound("max_players", mode.max_players, 1, MAX_PLAYERS_LIMIT);
    if let Some(direct) = mode.max_players_direct {
        bound("max_players_direct", direct, mode.max_players, MAX_PLAYERS_LIMIT);
    }
    if let Some(party) = mode.max_players_party {
        bound("max_players_party", party, 1, MAX_PLAYERS_LIMIT);
    }
    bound("reservation_seconds", mode.reservation_seconds, 5, 600);
    bound("idle_seconds", mode.idle_seconds, 0, IDLE_SECONDS_MAX);
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    fn violations(config: &str) -> Vec<String> {
        let region = Region {
            display_name: "Frankfurt".to_owned(),
            provider_display_name: "Own".to_owned(),
            latitude: 50.1,
            longitude: 8.7,
        };
        let regions = BTreeMap::from([("eu".parse().unwrap(), region)]);
        let config = serde_json::from_str(config).unwrap();
        validate(&config, &regions).iter().map(|path| path.join("/")).collect()
    }

    #[test]
    fn defaults_are_valid() {
        assert!(violations(r#"{"game_modes": {"a": {"regions": ["eu"]}}}"#).is_empty());
    }

    #[test]
    fn each_violation_names_its_mode_and_field() {
        assert_eq!(violations(r#"{"game_modes": {}}"#), ["game_modes/too-few"]);
        let modes = r#"{"game_modes": {"a": {"regions": ["us"], "max_players": 257, "max_players_direct": 3,
            "max_players_party": 0, "reservation_seconds": 4, "idle_seconds": 86401}, "b": {"regions": [], "max_players": 0},
            "c": {"regions": ["eu", "eu"]}}}"#;
        assert_eq!(
            violations(modes),
            [
                "game_modes/a/regions/not-found",
                "game_modes/a/max_players/too-high",
                "game_modes/a/max_players_direct/too-low",
                "game_modes/a/max_players_party/too-low",
                "game_modes/a/reservation_seconds/too-low",
                "game_modes/a/idle_seconds/too-high",
                "game_modes/b/regions/too-few",
                "game_modes/b/max_players/too-low",
                "game_modes/c/regions/duplicate",
            ]
        );
    }

    #[test]
    fn unknown_fields_are_reported() {
        let typo = r#"{"game_modes": {"a": {"regions": ["eu"], "max_player": 3}}}"#;
        let error = serde_json::from_str::<VersionConfig>(typo).unwrap_err();
        assert!(error.to_string().contains("max_player"), "{error}");
    }
}
