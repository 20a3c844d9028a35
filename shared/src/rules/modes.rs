//! The modes of a request, and the rules that they make for it.

use std::collections::BTreeSet;

use crate::models::{
    errors::{Error, bad_body},
    ids::{GameMode, IDENTIFIER_CHARS_MAX, RegionId},
    pool::Tags,
    version::{GameModeConfig, Version},
};

/// The most tags of a request.
const TAGS_MAX: usize = 8;
/// Longest tag name, in bytes.
const TAG_NAME_BYTES_MAX: usize = 128;
/// Longest tag, in bytes.
const TAG_BYTES_MAX: usize = 512;

/// A requested mode.
pub(super) struct Mode<'a> {
    pub(super) name: &'a GameMode,
    pub(super) config: &'a GameModeConfig,
}

impl Mode<'_> {
    pub(super) fn runs_in(&self, region: &RegionId) -> bool {
        self.config.regions.contains(region)
    }
}

/// The requested modes that `version` has, each once, and the names of the others. Clients ask for a removed
/// mode until they are updated.
pub(super) fn modes<'a>(
    requested: &[String],
    version: &'a Version,
) -> Result<(Vec<Mode<'a>>, Vec<String>), Error> {
    let mut seen = BTreeSet::new();
    let (mut modes, mut left_out) = (Vec::new(), Vec::new());
    for name in requested {
        match version.config.game_modes.get_key_value(name.as_str()) {
            Some((name, config)) if seen.insert(name) => modes.push(Mode { name, config }),
            Some(_) => {}
            None => left_out.push(name.chars().take(IDENTIFIER_CHARS_MAX).collect()),
        }
    }
    match left_out.first() {
        _ if !modes.is_empty() => Ok((modes, left_out)),
        None => Err(Error::NoGameModeProvided),
        Some(mode) => Err(Error::GameModeNotFound {
            mode: mode.clone(),
            modes: version.config.game_modes.keys().map(ToString::to_string).collect(),
        }),
    }
}

pub(super) fn check_tags(tags: &Tags, modes: &[Mode<'_>]) -> Result<(), Error> {
    if tags.is_empty() {
        return Ok(());
    }
    if tags.len() > TAGS_MAX {
        return Err(Error::TooManyTags);
    }
    // DynamoDB has no attribute without a name.
    if tags.contains_key("") {
        return Err(bad_body("tags", "a tag needs a name"));
    }
    if tags.keys().any(|name| name.len() > TAG_NAME_BYTES_MAX) {
        return Err(Error::TagNameTooLong);
    }
    if tags.values().any(|tag| tag.len() > TAG_BYTES_MAX) {
        return Err(Error::TagTooLong);
    }
    match modes.iter().find(|mode| !mode.config.taggable) {
        Some(mode) => Err(Error::TagsDisabled(mode.name.clone())),
        None => Ok(()),
    }
}

pub(super) fn check_max_players(max_players: Option<u32>, modes: &[Mode<'_>]) -> Result<(), Error> {
    let Some(max_players) = max_players else {
        return Ok(());
    };
    if max_players == 0 {
        return Err(Error::DynamicMaxPlayersInvalid { max: None });
    }
    if let Some(mode) = modes.iter().find(|mode| !mode.config.allow_dynamic_max_players) {
        return Err(Error::DynamicMaxPlayersDisabled(mode.name.clone()));
    }
    let max = modes.iter().map(|mode| mode.config.max_players).min();
    match max {
        Some(max) if max_players > max => Err(Error::DynamicMaxPlayersInvalid { max: Some(max) }),
        _ => Ok(()),
    }
}

pub(super) fn check_find_enabled(modes: &[Mode<'_>]) -> Result<(), Error> {
    match modes.iter().find(|mode| !mode.config.actions.find.enabled) {
        Some(mode) => Err(Error::FindDisabled(mode.name.clone())),
        None => Ok(()),
    }
}
