//! `POST /cloud/games/{game_id}/versions/validate`: the violations of a new version, without creating it.

use shared::{
    auth::cloud::CloudAuth,
    function::{config::InvalidConfig, instance::Instance, operation::Operation},
    models::errors::Error,
    request::Request,
    store::client::Store,
    wire::{CreateVersionRequest, ValidationResponse},
};

/// The operation.
#[derive(Debug)]
pub struct ValidateVersion {
    auth: CloudAuth,
    store: Store,
}

impl Operation for ValidateVersion {
    type Output = ValidationResponse;

    const NAME: &'static str = "validate-version";

    fn start(instance: &Instance) -> Result<Self, InvalidConfig> {
        Ok(Self { auth: instance.cloud_auth()?, store: instance.store()? })
    }

    async fn call(&self, request: &Request) -> Result<ValidationResponse, Error> {
        let game_id = request.path("game_id")?;
        let right = self.auth.game(request, &game_id).await?;
        let game = self.store.game(right.game_id()).await?.ok_or(Error::NotFound)?;
        let (_body, violations) = CreateVersionRequest::read(request, &game)?;
        Ok(ValidationResponse::new(violations))
    }
}
