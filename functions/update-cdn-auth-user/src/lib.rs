//! `POST /cloud/games/{game_id}/namespaces/{namespace_id}/auth-user`: a user of the namespace's CDN.

use shared::{
    auth::cloud::CloudAuth,
    function::operation::Operation,
    models::errors::Error,
    request::Request,
    rules::bcrypt_hash::BcryptHash,
    store::{cdn::CdnUserOutcome, client::Store},
    wire::{UpdateCdnAuthUserRequest, values::Empty},
};

/// The operation.
#[derive(Debug)]
pub struct UpdateCdnAuthUser {
    auth: CloudAuth,
    store: Store,
    bcrypt_cost_max: u32,
}

impl UpdateCdnAuthUser {
    /// The operation on `store`, for whom `auth` lets in; hashes above `bcrypt_cost_max` are refused.
    #[must_use]
    pub const fn new(auth: CloudAuth, store: Store, bcrypt_cost_max: u32) -> Self {
        Self { auth, store, bcrypt_cost_max }
    }
}

impl Operation for UpdateCdnAuthUser {
    type Output = Empty;

    const NAME: &'static str = "update-cdn-auth-user";

    async fn call(&self, request: &Request) -> Result<Empty, Error> {
        let (game_id, namespace_id) = (request.path("game_id")?, request.path("namespace_id")?);
        let right = self.auth.namespace(request, &game_id, &namespace_id).await?;
        let body: UpdateCdnAuthUserRequest = request.body()?;
        let user = body.user.parse().map_err(|_| Error::InvalidAuthUser)?;
        let hash = BcryptHash::parse(&body.password, self.bcrypt_cost_max)
            .map_err(|_| Error::InvalidAuthUserPassword)?;
        match self.store.set_cdn_user(&right, &user, &hash).await? {
            CdnUserOutcome::Set => Ok(Empty {}),
            CdnUserOutcome::TooMany => Err(Error::TooManyAuthUsers),
        }
    }
}
