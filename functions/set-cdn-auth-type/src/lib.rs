//! `PUT /cloud/games/{game_id}/namespaces/{namespace_id}/cdn-auth`: sets how the namespace's CDN
//! authenticates.

use shared::{
    auth::cloud::CloudAuth,
    function::{config::InvalidConfig, instance::Instance, operation::Operation},
    models::errors::Error,
    request::Request,
    store::client::Store,
    wire::{SetCdnAuthTypeRequest, values::Empty},
};

/// The operation.
#[derive(Debug)]
pub struct SetCdnAuthType {
    auth: CloudAuth,
    store: Store,
}

impl Operation for SetCdnAuthType {
    type Output = Empty;

    const NAME: &'static str = "set-cdn-auth-type";

    fn start(instance: &Instance) -> Result<Self, InvalidConfig> {
        Ok(Self { auth: instance.cloud_auth()?, store: instance.store()? })
    }

    async fn call(&self, request: &Request) -> Result<Empty, Error> {
        let (game_id, namespace_id) = (request.path("game_id")?, request.path("namespace_id")?);
        let right = self.auth.namespace(request, &game_id, &namespace_id).await?;
        let body: SetCdnAuthTypeRequest = request.body()?;
        self.store.set_cdn_auth_type(&right, body.auth_type).await?;
        Ok(Empty {})
    }
}
