//! `DELETE /cloud/games/{game_id}/namespaces/{namespace_id}/auth-user/{user}`: removes a user of the
//! namespace's CDN. It succeeds for a missing user, too.

use shared::{
    auth::cloud::CloudAuth,
    function::{config::InvalidConfig, instance::Instance, operation::Operation},
    models::errors::Error,
    request::Request,
    rules::cdn_user::CdnUserName,
    store::client::Store,
    wire::values::Empty,
};

/// The operation.
#[derive(Debug)]
pub struct DeleteCdnAuthUser {
    auth: CloudAuth,
    store: Store,
}

impl Operation for DeleteCdnAuthUser {
    type Output = Empty;

    const NAME: &'static str = "delete-cdn-auth-user";

    fn start(instance: &Instance) -> Result<Self, InvalidConfig> {
        Ok(Self { auth: instance.cloud_auth()?, store: instance.store()? })
    }

    async fn call(&self, request: &Request) -> Result<Empty, Error> {
        let (game_id, namespace_id) = (request.path("game_id")?, request.path("namespace_id")?);
        let user: CdnUserName = request.path("user")?;
        let right = self.auth.namespace(request, &game_id, &namespace_id).await?;
        self.store.remove_cdn_user(&right, &user).await?;
        Ok(Empty {})
    }
}
