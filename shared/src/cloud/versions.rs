//! Reading the configuration of a new version.

use serde::Deserialize;

use crate::{
    base::{
        json::object,
        record::{Strict, UnknownField},
    },
    models::{
        errors::{Error, bad_body},
        game::Game,
        version,
        violations::Violations,
    },
    request::Request,
    rules::{names::display_name_violations, version_config},
    wire::CreateVersionRequest,
};

/// The same, before unknown fields are refused.
#[derive(Deserialize)]
struct CreateVersionBody {
    display_name: String,
    config: Strict<WholeConfig>,
}

#[derive(Deserialize)]
#[serde(transparent)]
struct WholeConfig(#[serde(deserialize_with = "object")] version::VersionConfig);

impl CreateVersionRequest {
    /// The body of `request`, and its violations as a version of `game`.
    ///
    /// # Errors
    /// [`Error::BodyTooLarge`], [`Error::BadBody`], also for unknown fields.
    pub fn read(request: &Request, game: &Game) -> Result<(Self, Violations), Error> {
        let CreateVersionBody { display_name, config } = request
            .json()?
            // A header that is `null`, as in responses, is not absent: its secret is missing.
            .without_nulls_in_each("/config/game_modes", &["headers"])
            .without_nulls_in_each("/config/captcha", &[])
            .parse()?;
        let WholeConfig(config) = config.known().map_err(|UnknownField(path)| {
            bad_body(&format!("config.{path}"), "no configuration has this field")
        })?;
        let mut violations = display_name_violations(&display_name);
        violations.add_below(&[], version_config::validate(&config, &game.regions));
        Ok((Self { display_name, config }, violations))
    }
}
