//! Mode and region of a namespace that a load plays in, and why a namespace cannot be loaded.

use shared::{
    models::{
        ids::{GameMode, RegionId},
        namespace::{MAX_PLAYERS_PER_CLIENT_LIMIT, Namespace},
        version::{GameModeConfig, VersionConfig},
    },
    rules::matchmaker_config::LOBBY_COUNT_MAX_LIMIT,
};

use crate::error::CommandError;

fn names<T: ToString>(all: impl IntoIterator<Item = T>) -> String {
    all.into_iter().map(|name| name.to_string()).collect::<Vec<_>>().join(", ")
}

/// The mode of this name, or the only one.
pub(crate) fn mode<'a>(
    name: Option<&str>,
    config: &'a VersionConfig,
) -> Result<(&'a GameMode, &'a GameModeConfig), CommandError> {
    let modes = &config.game_modes;
    let list = || names(modes.keys());
    let Some(name) = name else {
        let only = modes.iter().next().filter(|_| modes.len() == 1);
        return only.ok_or_else(|| CommandError::Refused(format!("name a mode with --mode: {}", list())));
    };
    modes.get_key_value(name).ok_or_else(|| {
        let hint = format!("the version has {}", list());
        CommandError::Unknown { what: "mode", name: name.to_owned(), hint }
    })
}

/// The region of this name, or the mode's first.
pub(crate) fn region<'a>(
    name: Option<&str>,
    mode: &GameMode,
    config: &'a GameModeConfig,
) -> Result<&'a RegionId, CommandError> {
    let is_named = |region: &&RegionId| name.is_none_or(|name| region.as_str() == name);
    config.regions.iter().find(is_named).ok_or_else(|| CommandError::Unknown {
        what: "region",
        name: name.unwrap_or_default().to_owned(),
        hint: format!("mode {mode} runs in {}", names(&config.regions)),
    })
}

/// Refuses a mode whose players must pass something that a load cannot pass.
pub(crate) fn check_screening(
    namespace: &str,
    mode: &GameMode,
    mode_config: &GameModeConfig,
    config: &VersionConfig,
) -> Result<(), CommandError> {
    let find = &mode_config.actions.find;
    let obstacle = if config.captcha.is_some() {
        "has a captcha, which only people pass".to_owned()
    } else if find.verification.is_some() {
        format!("asks a backend about each player of mode {mode}, which knows none of the load's")
    } else if !find.enabled {
        format!("does not let players find lobbies of mode {mode}")
    } else {
        return Ok(());
    };
    Err(CommandError::Refused(format!(
        "the version of {namespace} {obstacle}; have the namespace run one without: `muster version create` and `version set`"
    )))
}

/// Refuses a namespace that limits the seats of the one address that all players of a load come from.
pub(crate) fn check_clients(name: &str, namespace: &Namespace) -> Result<(), CommandError> {
    let Some(seats) = namespace.seats_per_client() else { return Ok(()) };
    let without = MAX_PLAYERS_PER_CLIENT_LIMIT + 1;
    Err(CommandError::Refused(format!(
        "{name} allows {seats} seats per IP address, and a load has one; `muster mm-config {name} --max-players-per-client {without}` lifts the limit"
    )))
}

/// Refuses a namespace that may hold fewer lobbies than the load needs.
pub(crate) fn check_lobbies(name: &str, namespace: &Namespace, lobbies: u32) -> Result<(), CommandError> {
    let allowed = namespace.lobby_count_max;
    if lobbies <= allowed {
        return Ok(());
    }
    let less = "lower --rate or --stay-seconds";
    let remedy = if lobbies > LOBBY_COUNT_MAX_LIMIT {
        less.to_owned()
    } else {
        format!("`muster mm-config {name} --lobby-count-max {lobbies}` allows them, or {less}")
    };
    Err(CommandError::Refused(format!(
        "{name} may hold {allowed} lobbies, and the load needs about {lobbies}; {remedy}"
    )))
}
