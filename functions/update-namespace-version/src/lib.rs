//! `PUT /cloud/games/{game_id}/namespaces/{namespace_id}/version`: sets the version that the namespace runs.

use shared::{
    function::{cloud_parts::CloudParts, config::InvalidConfig, instance::Instance, operation::Operation},
    models::errors::Error,
    request::Request,
    store::deployments::VersionOutcome,
    wire::{UpdateNamespaceVersionRequest, values::Empty},
};

/// The operation.
#[derive(Debug)]
pub struct UpdateNamespaceVersion(CloudParts);

impl Operation for UpdateNamespaceVersion {
    type Output = Empty;

    const NAME: &'static str = "update-namespace-version";

    fn start(instance: &Instance) -> Result<Self, InvalidConfig> {
        CloudParts::of(instance).map(Self)
    }

    async fn call(&self, request: &Request) -> Result<Empty, Error> {
        let right = self.0.auth.namespace(request).await?;
        let body: UpdateNamespaceVersionRequest = request.body()?;
        let version_id = body.version_id.parse().map_err(|_| Error::VersionNotFound)?;
        match self.0.store.set_version(&right, &version_id, self.0.ambient.now()).await? {
            VersionOutcome::Changed | VersionOutcome::Unchanged => Ok(Empty {}),
            VersionOutcome::UnknownVersion => Err(Error::VersionNotFound),
        }
    }
}
