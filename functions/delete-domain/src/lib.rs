//! `DELETE /cloud/games/{game_id}/namespaces/{namespace_id}/domains/{domain}`: removes a domain of the
//! namespace. A domain of another namespace stays.

use shared::{
    function::{cloud_parts::CloudParts, config::InvalidConfig, instance::Instance, operation::Operation},
    models::errors::Error,
    request::Request,
    rules::origin::OriginHost,
    wire::values::Empty,
};

/// The operation.
#[derive(Debug)]
pub struct DeleteDomain(CloudParts);

impl Operation for DeleteDomain {
    type Output = Empty;

    const NAME: &'static str = "delete-domain";

    fn start(instance: &Instance) -> Result<Self, InvalidConfig> {
        CloudParts::of(instance).map(Self)
    }

    async fn call(&self, request: &Request) -> Result<Empty, Error> {
        let host: OriginHost = request.path("domain")?;
        let right = self.0.auth.namespace(request).await?;
        self.0.store.remove_domain(&right, &host).await?;
        Ok(Empty {})
    }
}
