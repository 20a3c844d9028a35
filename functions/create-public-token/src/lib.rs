//! `POST /cloud/games/{game_id}/namespaces/{namespace_id}/tokens/public`: a token for the players of the
//! namespace.

use shared::{
    auth::cloud::CloudAuth,
    cloud::issuing::Issuer,
    function::operation::Operation,
    models::{errors::Error, token::CredentialKind},
    request::Request,
    wire::TokenResponse,
};

/// The operation.
#[derive(Debug)]
pub struct CreatePublicToken {
    auth: CloudAuth,
    issuer: Issuer,
}

impl CreatePublicToken {
    /// The operation, with tokens of `issuer`, for whom `auth` lets in.
    #[must_use]
    pub const fn new(auth: CloudAuth, issuer: Issuer) -> Self {
        Self { auth, issuer }
    }
}

impl Operation for CreatePublicToken {
    type Output = TokenResponse;

    const NAME: &'static str = "create-public-token";

    async fn call(&self, request: &Request) -> Result<TokenResponse, Error> {
        let (game_id, namespace_id) = (request.path("game_id")?, request.path("namespace_id")?);
        let right = self.auth.namespace(request, &game_id, &namespace_id).await?;
        Ok(TokenResponse { token: self.issuer.credential(&right, CredentialKind::Public).await? })
    }
}
