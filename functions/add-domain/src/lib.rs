//! `POST /cloud/games/{game_id}/namespaces/{namespace_id}/domains`: adds a domain to the namespace.

use shared::{
    function::{cloud_parts::CloudParts, config::InvalidConfig, instance::Instance, operation::Operation},
    models::errors::Error,
    request::Request,
    store::cdn::DomainOutcome,
    wire::{AddDomainRequest, values::Empty},
};

/// The operation.
#[derive(Debug)]
pub struct AddDomain(CloudParts);

impl Operation for AddDomain {
    type Output = Empty;

    const NAME: &'static str = "add-domain";

    fn start(instance: &Instance) -> Result<Self, InvalidConfig> {
        CloudParts::of(instance).map(Self)
    }

    async fn call(&self, request: &Request) -> Result<Empty, Error> {
        let right = self.0.auth.namespace(request).await?;
        let AddDomainRequest { domain } = request.body()?;
        let host = domain.parse().map_err(|_| Error::InvalidDomain)?;
        match self.0.store.add_domain(&right, &host, self.0.ambient.now()).await? {
            DomainOutcome::Added => Ok(Empty {}),
            DomainOutcome::Taken => Err(Error::DomainTaken),
            DomainOutcome::TooMany => Err(Error::TooManyDomains),
        }
    }
}
