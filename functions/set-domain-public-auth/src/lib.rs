//! `PUT /cloud/games/{game_id}/namespaces/{namespace_id}/domain-public-auth`: sets whether pages of its
//! domains need no token.

use shared::{
    function::{cloud_parts::CloudParts, config::InvalidConfig, instance::Instance, operation::Operation},
    models::errors::Error,
    request::Request,
    wire::{SetDomainPublicAuthRequest, values::Empty},
};

/// The operation.
#[derive(Debug)]
pub struct SetDomainPublicAuth(CloudParts);

impl Operation for SetDomainPublicAuth {
    type Output = Empty;

    const NAME: &'static str = "set-domain-public-auth";

    fn start(instance: &Instance) -> Result<Self, InvalidConfig> {
        CloudParts::of(instance).map(Self)
    }

    async fn call(&self, request: &Request) -> Result<Empty, Error> {
        let right = self.0.auth.namespace(request).await?;
        let SetDomainPublicAuthRequest { enabled } = request.body()?;
        self.0.store.set_domain_public_auth(&right, enabled).await?;
        Ok(Empty {})
    }
}
