//! `POST /cloud/games/{game_id}/versions`: a new, immutable version of the game.

use shared::{
    auth::cloud::CloudAuth,
    base::ambient::Ambient,
    cloud::provision::add_version,
    function::{config::InvalidConfig, instance::Instance, operation::Operation},
    models::errors::Error,
    request::Request,
    store::client::Store,
    wire::{CreateVersionRequest, CreateVersionResponse},
};

/// The operation.
#[derive(Debug)]
pub struct CreateVersion {
    auth: CloudAuth,
    store: Store,
    ambient: Ambient,
}

impl Operation for CreateVersion {
    type Output = CreateVersionResponse;

    const NAME: &'static str = "create-version";

    fn start(instance: &Instance) -> Result<Self, InvalidConfig> {
        Ok(Self { auth: instance.cloud_auth()?, store: instance.store()?, ambient: instance.ambient() })
    }

    async fn call(&self, request: &Request) -> Result<CreateVersionResponse, Error> {
        let game_id = request.path("game_id")?;
        let right = self.auth.game(request, &game_id).await?;
        let game = self.store.game(right.game_id()).await?.ok_or(Error::NotFound)?;
        let (body, violations) = CreateVersionRequest::read(request, &game)?;
        if !violations.is_empty() {
            return Err(Error::Validation(violations));
        }
        let CreateVersionRequest { display_name, config } = body;
        let version = add_version(&self.store, &self.ambient, right.game_id(), display_name, config).await?;
        Ok(CreateVersionResponse { version_id: version.version_id })
    }
}
