//! `GET /cloud/games/{game_id}/versions/{version_id}`: the version with its configuration.

use shared::{
    function::{cloud_parts::CloudParts, config::InvalidConfig, instance::Instance, operation::Operation},
    models::errors::Error,
    request::Request,
    wire::GetVersionResponse,
};

/// The operation.
#[derive(Debug)]
pub struct GetVersion(CloudParts);

impl Operation for GetVersion {
    type Output = GetVersionResponse;

    const NAME: &'static str = "get-version";

    fn start(instance: &Instance) -> Result<Self, InvalidConfig> {
        CloudParts::of(instance).map(Self)
    }

    async fn call(&self, request: &Request) -> Result<GetVersionResponse, Error> {
        let version_id = request.path("version_id")?;
        let right = self.0.auth.game(request).await?;
        let version = self.0.store.version(right.game_id(), &version_id).await?;
        Ok(GetVersionResponse { version: version.ok_or(Error::VersionNotFound)?.into() })
    }
}
