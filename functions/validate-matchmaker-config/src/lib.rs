//! `POST /cloud/games/{game_id}/namespaces/{namespace_id}/mm-config/validate`: the violations of matchmaker
//! settings.

use shared::{
    function::{cloud_parts::CloudParts, config::InvalidConfig, instance::Instance, operation::Operation},
    models::errors::Error,
    request::Request,
    rules::matchmaker_config::validate,
    wire::{MatchmakerConfigRequest, ValidationResponse},
};

/// The operation.
#[derive(Debug)]
pub struct ValidateMatchmakerConfig(CloudParts);

impl Operation for ValidateMatchmakerConfig {
    type Output = ValidationResponse;

    const NAME: &'static str = "validate-matchmaker-config";

    fn start(instance: &Instance) -> Result<Self, InvalidConfig> {
        CloudParts::of(instance).map(Self)
    }

    async fn call(&self, request: &Request) -> Result<ValidationResponse, Error> {
        let _right = self.0.auth.namespace(request).await?;
        let body: MatchmakerConfigRequest = request.body()?;
        Ok(ValidationResponse::new(validate(body.lobby_count_max, body.max_players)))
    }
}
