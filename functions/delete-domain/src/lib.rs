//! `DELETE /cloud/games/{game_id}/namespaces/{namespace_id}/domains/{domain}`: removes a domain of the
//! namespace. A domain of another namespace stays.

use shared::{
    auth::cloud::CloudAuth,
    function::{config::InvalidConfig, instance::Instance, operation::Operation},
    models::errors::Error,
    request::Request,
    rules::origin::OriginHost,
    store::client::Store,
    wire::values::Empty,
};

/// The operation.
#[derive(Debug)]
pub struct DeleteDomain {
    auth: CloudAuth,
    store: Store,
}

impl Operation for DeleteDomain {
    type Output = Empty;

    const NAME: &'static str = "delete-domain";

    fn start(instance: &Instance) -> Result<Self, InvalidConfig> {
        Ok(Self { auth: instance.cloud_auth()?, store: instance.store()? })
    }

    async fn call(&self, request: &Request) -> Result<Empty, Error> {
        let (game_id, namespace_id) = (request.path("game_id")?, request.path("namespace_id")?);
        let host: OriginHost = request.path("domain")?;
        let right = self.auth.namespace(request, &game_id, &namespace_id).await?;
        self.store.remove_domain(&right, &host).await?;
        Ok(Empty {})
    }
}
