//! `GET /cloud/games/{game_id}/namespaces/{namespace_id}`: the namespace with its settings, without hashes.

use shared::{
    function::{cloud_parts::CloudParts, config::InvalidConfig, instance::Instance, operation::Operation},
    models::errors::Error,
    request::Request,
    wire::{GetNamespaceResponse, NamespaceFull},
};

/// The operation.
#[derive(Debug)]
pub struct GetNamespace(CloudParts);

impl Operation for GetNamespace {
    type Output = GetNamespaceResponse;

    const NAME: &'static str = "get-namespace";

    fn start(instance: &Instance) -> Result<Self, InvalidConfig> {
        CloudParts::of(instance).map(Self)
    }

    async fn call(&self, request: &Request) -> Result<GetNamespaceResponse, Error> {
        let right = self.0.auth.namespace(request).await?;
        let cdn = self.0.store.cdn_settings(&right).await?;
        Ok(GetNamespaceResponse { namespace: NamespaceFull::new(right.namespace(), cdn) })
    }
}
