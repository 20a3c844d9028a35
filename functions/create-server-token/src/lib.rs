//! `POST /cloud/games/{game_id}/namespaces/{namespace_id}/tokens/server`: a token for the game servers of the
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
pub struct CreateServerToken {
    auth: CloudAuth,
    issuer: Issuer,
}

impl CreateServerToken {
    /// The operation, with tokens of `issuer`, for whom `auth` lets in.
    #[must_use]
    pub const fn new(auth: CloudAuth, issuer: Issuer) -> Self {
        Self { auth, issuer }
    }
}

impl Operation for CreateServerToken {
    type Output = TokenResponse;

    const NAME: &'static str = "create-server-token";

    async fn call(&self, request: &Request) -> Result<TokenResponse, Error> {
        let (game_id, namespace_id) = (request.path("game_id")?, request.path("namespace_id")?);
        let right = self.auth.namespace(request, &game_id, &namespace_id).await?;
        Ok(TokenResponse { token: self.issuer.credential(&right, CredentialKind::Server).await? })
    }
}
