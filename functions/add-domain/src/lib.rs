//! `POST /cloud/games/{game_id}/namespaces/{namespace_id}/domains`: adds a domain to the namespace.

use shared::{
    auth::cloud::CloudAuth,
    base::ambient::Ambient,
    function::{config::InvalidConfig, instance::Instance, operation::Operation},
    models::errors::Error,
    request::Request,
    store::{cdn::DomainOutcome, client::Store},
    wire::{AddDomainRequest, values::Empty},
};

/// The operation.
#[derive(Debug)]
pub struct AddDomain {
    auth: CloudAuth,
    store: Store,
    ambient: Ambient,
}

impl Operation for AddDomain {
    type Output = Empty;

    const NAME: &'static str = "add-domain";

    fn start(instance: &Instance) -> Result<Self, InvalidConfig> {
        Ok(Self { auth: instance.cloud_auth()?, store: instance.store()?, ambient: instance.ambient() })
    }

    async fn call(&self, request: &Request) -> Result<Empty, Error> {
        let (game_id, namespace_id) = (request.path("game_id")?, request.path("namespace_id")?);
        let right = self.auth.namespace(request, &game_id, &namespace_id).await?;
        let AddDomainRequest { domain } = request.body()?;
        let host = domain.parse().map_err(|_| Error::InvalidDomain)?;
        match self.store.add_domain(&right, &host, self.ambient.now()).await? {
            DomainOutcome::Added => Ok(Empty {}),
            DomainOutcome::Taken => Err(Error::DomainTaken),
            DomainOutcome::TooMany => Err(Error::TooManyDomains),
        }
    }
}
