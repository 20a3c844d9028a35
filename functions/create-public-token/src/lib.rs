//! `POST /cloud/games/{game_id}/namespaces/{namespace_id}/tokens/public`: a token for the players of the
//! namespace.

use shared::{
    auth::cloud::CloudAuth,
    cloud::issuing::Issuer,
    function::{config::InvalidConfig, instance::Instance, operation::Operation},
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

impl Operation for CreatePublicToken {
    type Output = TokenResponse;

    const NAME: &'static str = "create-public-token";

    fn start(instance: &Instance) -> Result<Self, InvalidConfig> {
        Ok(Self { auth: instance.cloud_auth()?, issuer: instance.issuer()? })
    }

    async fn call(&self, request: &Request) -> Result<TokenResponse, Error> {
        let right = self.auth.namespace(request).await?;
        Ok(TokenResponse { token: self.issuer.credential(&right, CredentialKind::Public).await? })
    }
}
