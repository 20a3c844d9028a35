//! `PUT /cloud/games/{game_id}/namespaces/{namespace_id}/domain-public-auth`: sets whether pages of its
//! domains need no token.

use shared::{
    auth::cloud::CloudAuth,
    function::{config::InvalidConfig, instance::Instance, operation::Operation},
    models::errors::Error,
    request::Request,
    store::client::Store,
    wire::{SetDomainPublicAuthRequest, values::Empty},
};

/// The operation.
#[derive(Debug)]
pub struct SetDomainPublicAuth {
    auth: CloudAuth,
    store: Store,
}

impl Operation for SetDomainPublicAuth {
    type Output = Empty;

    const NAME: &'static str = "set-domain-public-auth";

    fn start(instance: &Instance) -> Result<Self, InvalidConfig> {
        Ok(Self { auth: instance.cloud_auth()?, store: instance.store()? })
    }

    async fn call(&self, request: &Request) -> Result<Empty, Error> {
        let (game_id, namespace_id) = (request.path("game_id")?, request.path("namespace_id")?);
        let right = self.auth.namespace(request, &game_id, &namespace_id).await?;
        let SetDomainPublicAuthRequest { enabled } = request.body()?;
        self.store.set_domain_public_auth(&right, enabled).await?;
        Ok(Empty {})
    }
}
