//! `POST /cloud/games/{game_id}/namespaces/{namespace_id}/auth-user`: adds a user of the namespace's CDN, or
//! replaces the password.

use shared::{
    function::{cloud_parts::CloudParts, config::InvalidConfig, instance::Instance, operation::Operation},
    models::errors::Error,
    request::Request,
    rules::bcrypt_hash::{BcryptHash, COST_MAX},
    store::cdn::CdnUserOutcome,
    wire::{UpdateCdnAuthUserRequest, values::Empty},
};

/// The operation.
#[derive(Debug)]
pub struct UpdateCdnAuthUser {
    parts: CloudParts,
    bcrypt_cost_max: u32,
}

impl Operation for UpdateCdnAuthUser {
    type Output = Empty;

    const NAME: &'static str = "update-cdn-auth-user";

    fn start(instance: &Instance) -> Result<Self, InvalidConfig> {
        // `MUSTER_BCRYPT_MAX_COST`: the highest cost accepted; bcrypt's own limit when absent.
        let cost_max = instance.environment().parsed("MUSTER_BCRYPT_MAX_COST")?;
        let bcrypt_cost_max = cost_max.unwrap_or(COST_MAX);
        Ok(Self { parts: CloudParts::of(instance)?, bcrypt_cost_max })
    }

    async fn call(&self, request: &Request) -> Result<Empty, Error> {
        let right = self.parts.auth.namespace(request).await?;
        let body: UpdateCdnAuthUserRequest = request.body()?;
        let user = body.user.parse().map_err(|_| Error::InvalidAuthUser)?;
        let hash = BcryptHash::parse(&body.password, self.bcrypt_cost_max)
            .map_err(|_| Error::InvalidAuthUserPassword)?;
        match self.parts.store.set_cdn_user(&right, &user, &hash).await? {
            CdnUserOutcome::Set => Ok(Empty {}),
            CdnUserOutcome::TooMany => Err(Error::TooManyAuthUsers),
        }
    }
}
