//! `POST /cloud/games/{game_id}/namespaces/{namespace_id}/mm-config`: sets the limits of lobbies and of
//! players per client.

use shared::{
    auth::cloud::CloudAuth,
    function::{config::InvalidConfig, instance::Instance, operation::Operation},
    models::errors::Error,
    request::Request,
    rules::matchmaker_config::validate,
    store::client::Store,
    wire::{MatchmakerConfigRequest, values::Empty},
};

/// The operation.
#[derive(Debug)]
pub struct UpdateMatchmakerConfig {
    auth: CloudAuth,
    store: Store,
}

impl Operation for UpdateMatchmakerConfig {
    type Output = Empty;

    const NAME: &'static str = "update-matchmaker-config";

    fn start(instance: &Instance) -> Result<Self, InvalidConfig> {
        Ok(Self { auth: instance.cloud_auth()?, store: instance.store()? })
    }

    async fn call(&self, request: &Request) -> Result<Empty, Error> {
        let (game_id, namespace_id) = (request.path("game_id")?, request.path("namespace_id")?);
        let right = self.auth.namespace(request, &game_id, &namespace_id).await?;
        let body: MatchmakerConfigRequest = request.body()?;
        let violations = validate(body.lobby_count_max, body.max_players);
        if !violations.is_empty() {
            return Err(Error::Validation(violations));
        }
        self.store.set_matchmaker_config(&right, body.lobby_count_max, body.max_players).await?;
        Ok(Empty {})
    }
}
