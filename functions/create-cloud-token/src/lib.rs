//! `POST /cloud/games/{game_id}/tokens/cloud`: a token for every cloud operation of the game.

use shared::{
    auth::cloud::CloudAuth,
    cloud::issuing::Issuer,
    function::{config::InvalidConfig, instance::Instance, operation::Operation},
    models::errors::Error,
    request::Request,
    wire::TokenResponse,
};

/// The operation.
#[derive(Debug)]
pub struct CreateCloudToken {
    auth: CloudAuth,
    issuer: Issuer,
}

impl Operation for CreateCloudToken {
    type Output = TokenResponse;

    const NAME: &'static str = "create-cloud-token";

    fn start(instance: &Instance) -> Result<Self, InvalidConfig> {
        Ok(Self { auth: instance.cloud_auth()?, issuer: instance.issuer()? })
    }

    async fn call(&self, request: &Request) -> Result<TokenResponse, Error> {
        let right = self.auth.game(request).await?;
        let token = self.issuer.cloud(&right).await?;
        Ok(TokenResponse { token: token.reveal().to_owned() })
    }
}
