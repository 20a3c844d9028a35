//! `GET /cloud/games/{game_id}/namespaces/{namespace_id}`: the namespace with its settings, without hashes.

use shared::{
    auth::cloud::CloudAuth,
    function::{config::InvalidConfig, instance::Instance, operation::Operation},
    models::errors::Error,
    request::Request,
    store::client::Store,
    wire::{GetNamespaceResponse, NamespaceFull},
};

/// The operation.
#[derive(Debug)]
pub struct GetNamespace {
    auth: CloudAuth,
    store: Store,
}

impl Operation for GetNamespace {
    type Output = GetNamespaceResponse;

    const NAME: &'static str = "get-namespace";

    fn start(instance: &Instance) -> Result<Self, InvalidConfig> {
        Ok(Self { auth: instance.cloud_auth()?, store: instance.store()? })
    }

    async fn call(&self, request: &Request) -> Result<GetNamespaceResponse, Error> {
        let (game_id, namespace_id) = (request.path("game_id")?, request.path("namespace_id")?);
        let right = self.auth.namespace(request, &game_id, &namespace_id).await?;
        let cdn = self.store.cdn_settings(&right).await?;
        Ok(GetNamespaceResponse { namespace: NamespaceFull::new(right.namespace(), cdn) })
    }
}
