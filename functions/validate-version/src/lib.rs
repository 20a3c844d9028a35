//! `POST /cloud/games/{game_id}/versions/validate`: what would be refused of a new version; nothing is made.

use shared::{
    auth::cloud::CloudAuth,
    function::operation::Operation,
    models::errors::Error,
    request::Request,
    store::client::Store,
    wire::{CreateVersionRequest, ValidationResponse},
};

/// The operation.
#[derive(Debug)]
pub struct ValidateVersion {
    auth: CloudAuth,
    store: Store,
}

impl ValidateVersion {
    /// The operation on `store`, for whom `auth` lets in.
    #[must_use]
    pub const fn new(auth: CloudAuth, store: Store) -> Self {
        Self { auth, store }
    }
}

impl Operation for ValidateVersion {
    type Output = ValidationResponse;

    const NAME: &'static str = "validate-version";

    async fn call(&self, request: &Request) -> Result<ValidationResponse, Error> {
        let game_id = request.path("game_id")?;
        let right = self.auth.game(request, &game_id).await?;
        let game = self.store.game(right.game_id()).await?.ok_or(Error::NotFound)?;
        let (_body, violations) = CreateVersionRequest::read(request, &game)?;
        Ok(ValidationResponse::new(violations))
    }
}
