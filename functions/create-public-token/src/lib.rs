//! `POST /cloud/games/{game_id}/namespaces/{namespace_id}/tokens/public`: a token for the players of the namespace.

use std::sync::Arc;

use shared::{
    ambient::Ambient,
    auth::CloudAuth,
    errors::Error,
    http::{Operation, Request},
    tokens::{CredentialKind, TokenKeys},
    wire::TokenResponse,
};

/// The operation.
#[derive(Debug)]
pub struct CreatePublicToken {
    auth: CloudAuth,
    keys: Arc<TokenKeys>,
    ambient: Ambient,
}

impl CreatePublicToken {
    /// The operation, signing with `keys`, for whom `auth` lets in.
    #[must_use]
    pub const fn new(auth: CloudAuth, keys: Arc<TokenKeys>, ambient: Ambient) -> Self {
        Self { auth, keys, ambient }
    }
}

impl Operation for CreatePublicToken {
    type Output = TokenResponse;

    const NAME: &'static str = "create-public-token";

    async fn call(&self, request: &Request) -> Result<TokenResponse, Error> {
        let (game_id, namespace_id) = (request.path("game_id")?, request.path("namespace_id")?);
        let right = self.auth.namespace(request, &game_id, &namespace_id).await?;
        let (game_id, namespace_id) = (right.game_id(), right.namespace_id());
        let token = self.keys.issue_credential(CredentialKind::Public, game_id, namespace_id, &self.ambient);
        Ok(TokenResponse { token })
    }
}
