//! `POST /cloud/games/{game_id}/namespaces/{namespace_id}/mm-config/validate`: the violations of matchmaker
//! settings.

use shared::{
    auth::cloud::CloudAuth,
    function::{config::InvalidConfig, instance::Instance, operation::Operation},
    models::errors::Error,
    request::Request,
    rules::matchmaker_config::validate,
    wire::{MatchmakerConfigRequest, ValidationResponse},
};

/// The operation.
#[derive(Debug)]
pub struct ValidateMatchmakerConfig {
    auth: CloudAuth,
}

impl Operation for ValidateMatchmakerConfig {
    type Output = ValidationResponse;

    const NAME: &'static str = "validate-matchmaker-config";

    fn start(instance: &Instance) -> Result<Self, InvalidConfig> {
        Ok(Self { auth: instance.cloud_auth()? })
    }

    async fn call(&self, request: &Request) -> Result<ValidationResponse, Error> {
        let (game_id, namespace_id) = (request.path("game_id")?, request.path("namespace_id")?);
        let _right = self.auth.namespace(request, &game_id, &namespace_id).await?;
        let body: MatchmakerConfigRequest = request.body()?;
        Ok(ValidationResponse::new(validate(body.lobby_count_max, body.max_players)))
    }
}
