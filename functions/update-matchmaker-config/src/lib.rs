//! `POST /cloud/games/{game_id}/namespaces/{namespace_id}/mm-config`: sets the limits of lobbies and of
//! players per client.

use shared::{
    function::{cloud_parts::CloudParts, config::InvalidConfig, instance::Instance, operation::Operation},
    models::errors::Error,
    request::Request,
    rules::matchmaker_config::validate,
    wire::{MatchmakerConfigRequest, values::Empty},
};

/// The operation.
#[derive(Debug)]
pub struct UpdateMatchmakerConfig(CloudParts);

impl Operation for UpdateMatchmakerConfig {
    type Output = Empty;

    const NAME: &'static str = "update-matchmaker-config";

    fn start(instance: &Instance) -> Result<Self, InvalidConfig> {
        CloudParts::of(instance).map(Self)
    }

    async fn call(&self, request: &Request) -> Result<Empty, Error> {
        let right = self.0.auth.namespace(request).await?;
        let body: MatchmakerConfigRequest = request.body()?;
        let violations = validate(body.lobby_count_max, body.max_players);
        if !violations.is_empty() {
            return Err(Error::Validation(violations));
        }
        self.0.store.set_matchmaker_config(&right, body.lobby_count_max, body.max_players).await?;
        Ok(Empty {})
    }
}
