//! `POST /cloud/games/{game_id}/versions`: a new, immutable version of the game.

use shared::{
    cloud::provision::add_version,
    function::{cloud_parts::CloudParts, config::InvalidConfig, instance::Instance, operation::Operation},
    models::errors::Error,
    request::Request,
    wire::{CreateVersionRequest, CreateVersionResponse},
};

/// The operation.
#[derive(Debug)]
pub struct CreateVersion(CloudParts);

impl Operation for CreateVersion {
    type Output = CreateVersionResponse;

    const NAME: &'static str = "create-version";

    fn start(instance: &Instance) -> Result<Self, InvalidConfig> {
        CloudParts::of(instance).map(Self)
    }

    async fn call(&self, request: &Request) -> Result<CreateVersionResponse, Error> {
        let right = self.0.auth.game(request).await?;
        let game = self.0.store.game(right.game_id()).await?.ok_or(Error::NotFound)?;
        let (body, violations) = CreateVersionRequest::read(request, &game)?;
        if !violations.is_empty() {
            return Err(Error::Validation(violations));
        }
        let CreateVersionRequest { display_name, config } = body;
        let version =
            add_version(&self.0.store, &self.0.ambient, right.game_id(), display_name, config).await?;
        Ok(CreateVersionResponse { version_id: version.version_id })
    }
}
