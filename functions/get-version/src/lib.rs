//! `GET /cloud/games/{game_id}/versions/{version_id}`: the version with its configuration.

use shared::{
    auth::cloud::CloudAuth,
    function::{config::InvalidConfig, instance::Instance, operation::Operation},
    models::errors::Error,
    request::Request,
    store::client::Store,
    wire::GetVersionResponse,
};

/// The operation.
#[derive(Debug)]
pub struct GetVersion {
    auth: CloudAuth,
    store: Store,
}

impl Operation for GetVersion {
    type Output = GetVersionResponse;

    const NAME: &'static str = "get-version";

    fn start(instance: &Instance) -> Result<Self, InvalidConfig> {
        Ok(Self { auth: instance.cloud_auth()?, store: instance.store()? })
    }

    async fn call(&self, request: &Request) -> Result<GetVersionResponse, Error> {
        let (game_id, version_id) = (request.path("game_id")?, request.path("version_id")?);
        let right = self.auth.game(request, &game_id).await?;
        let version = self.store.version(right.game_id(), &version_id).await?;
        Ok(GetVersionResponse { version: version.ok_or(Error::VersionNotFound)?.into() })
    }
}
