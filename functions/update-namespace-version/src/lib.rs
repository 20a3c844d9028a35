//! `PUT /cloud/games/{game_id}/namespaces/{namespace_id}/version`: sets the version that the namespace runs.

use shared::{
    auth::cloud::CloudAuth,
    base::ambient::Ambient,
    function::{config::InvalidConfig, instance::Instance, operation::Operation},
    models::errors::Error,
    request::Request,
    store::{client::Store, deployments::VersionOutcome},
    wire::{UpdateNamespaceVersionRequest, values::Empty},
};

/// The operation.
#[derive(Debug)]
pub struct UpdateNamespaceVersion {
    auth: CloudAuth,
    store: Store,
    ambient: Ambient,
}

impl Operation for UpdateNamespaceVersion {
    type Output = Empty;

    const NAME: &'static str = "update-namespace-version";

    fn start(instance: &Instance) -> Result<Self, InvalidConfig> {
        Ok(Self { auth: instance.cloud_auth()?, store: instance.store()?, ambient: instance.ambient() })
    }

    async fn call(&self, request: &Request) -> Result<Empty, Error> {
        let (game_id, namespace_id) = (request.path("game_id")?, request.path("namespace_id")?);
        let right = self.auth.namespace(request, &game_id, &namespace_id).await?;
        let body: UpdateNamespaceVersionRequest = request.body()?;
        let version_id = body.version_id.parse().map_err(|_| Error::VersionNotFound)?;
        match self.store.set_version(&right, &version_id, self.ambient.now()).await? {
            VersionOutcome::Changed | VersionOutcome::Unchanged => Ok(Empty {}),
            VersionOutcome::UnknownVersion => Err(Error::VersionNotFound),
        }
    }
}
