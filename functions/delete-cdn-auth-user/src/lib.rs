//! `DELETE /cloud/games/{game_id}/namespaces/{namespace_id}/auth-user/{user}`: removes a user of the
//! namespace's CDN. It succeeds for a missing user, too.

use shared::{
    function::{cloud_parts::CloudParts, config::InvalidConfig, instance::Instance, operation::Operation},
    models::errors::Error,
    request::Request,
    rules::cdn_user::CdnUserName,
    wire::values::Empty,
};

/// The operation.
#[derive(Debug)]
pub struct DeleteCdnAuthUser(CloudParts);

impl Operation for DeleteCdnAuthUser {
    type Output = Empty;

    const NAME: &'static str = "delete-cdn-auth-user";

    fn start(instance: &Instance) -> Result<Self, InvalidConfig> {
        CloudParts::of(instance).map(Self)
    }

    async fn call(&self, request: &Request) -> Result<Empty, Error> {
        let user: CdnUserName = request.path("user")?;
        let right = self.0.auth.namespace(request).await?;
        self.0.store.remove_cdn_user(&right, &user).await?;
        Ok(Empty {})
    }
}
