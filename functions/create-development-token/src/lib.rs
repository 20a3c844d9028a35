//! `POST /cloud/games/{game_id}/namespaces/{namespace_id}/tokens/development`: a token for mock responses,
//! which lead to a developer's own machine.

use shared::{
    auth::cloud::CloudAuth,
    cloud::issuing::Issuer,
    function::{config::InvalidConfig, instance::Instance, operation::Operation},
    models::{errors::Error, ports::Ports, token::DevelopmentHost},
    request::Request,
    wire::{CreateDevelopmentTokenRequest, TokenResponse},
};

/// The operation.
#[derive(Debug)]
pub struct CreateDevelopmentToken {
    auth: CloudAuth,
    issuer: Issuer,
}

impl Operation for CreateDevelopmentToken {
    type Output = TokenResponse;

    const NAME: &'static str = "create-development-token";

    fn start(instance: &Instance) -> Result<Self, InvalidConfig> {
        Ok(Self { auth: instance.cloud_auth()?, issuer: instance.issuer()? })
    }

    async fn call(&self, request: &Request) -> Result<TokenResponse, Error> {
        let right = self.auth.namespace(request).await?;
        let CreateDevelopmentTokenRequest { hostname, mut ports } = request.body()?;
        // All ports are on the developer's machine.
        ports.values_mut().for_each(|port| port.hostname = None);
        let ports = Ports::of_specs(&ports, Some(&hostname)).map_err(Error::Validation)?;
        let hostname = ports.iter().next().map_or(hostname, |(_, port)| port.hostname.clone());
        let host = DevelopmentHost { hostname, ports };
        Ok(TokenResponse { token: self.issuer.development(&right, host).await? })
    }
}
