//! `GET /cloud/games/{game_id}/versions/{version_id}`: the version with what it configures.

use shared::{
    auth::cloud::CloudAuth, function::operation::Operation, models::errors::Error, request::Request,
    store::client::Store, wire::GetVersionResponse,
};

/// The operation.
#[derive(Debug)]
pub struct GetVersion {
    auth: CloudAuth,
    store: Store,
}

impl GetVersion {
    /// The operation on `store`, for whom `auth` lets in.
    #[must_use]
    pub const fn new(auth: CloudAuth, store: Store) -> Self {
        Self { auth, store }
    }
}

impl Operation for GetVersion {
    type Output = GetVersionResponse;

    const NAME: &'static str = "get-version";

    async fn call(&self, request: &Request) -> Result<GetVersionResponse, Error> {
        let (game_id, version_id) = (request.path("game_id")?, request.path("version_id")?);
        let right = self.auth.game(request, &game_id).await?;
        let version = self.store.version(right.game_id(), &version_id).await?;
        Ok(GetVersionResponse { version: version.ok_or(Error::VersionNotFound)?.into() })
    }
}
