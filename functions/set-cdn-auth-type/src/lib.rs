//! `PUT /cloud/games/{game_id}/namespaces/{namespace_id}/cdn-auth`: sets how the namespace's CDN
//! authenticates.

use shared::{
    function::{cloud_parts::CloudParts, config::InvalidConfig, instance::Instance, operation::Operation},
    models::errors::Error,
    request::Request,
    wire::{SetCdnAuthTypeRequest, values::Empty},
};

/// The operation.
#[derive(Debug)]
pub struct SetCdnAuthType(CloudParts);

impl Operation for SetCdnAuthType {
    type Output = Empty;

    const NAME: &'static str = "set-cdn-auth-type";

    fn start(instance: &Instance) -> Result<Self, InvalidConfig> {
        CloudParts::of(instance).map(Self)
    }

    async fn call(&self, request: &Request) -> Result<Empty, Error> {
        let right = self.0.auth.namespace(request).await?;
        let body: SetCdnAuthTypeRequest = request.body()?;
        self.0.store.set_cdn_auth_type(&right, body.auth_type).await?;
        Ok(Empty {})
    }
}
