//! `POST /cloud/games/{game_id}/namespaces/{namespace_id}/tokens/development`: a token for mock answers, which lead to a
//! developer's own machine.

use std::sync::Arc;

use shared::{
    ambient::Ambient,
    auth::CloudAuth,
    errors::Error,
    http::{Operation, Request},
    models::Ports,
    tokens::{DevelopmentHost, TokenKeys},
    wire::{CreateDevelopmentTokenRequest, TokenResponse},
};

/// The operation.
#[derive(Debug)]
pub struct CreateDevelopmentToken {
    auth: CloudAuth,
    keys: Arc<TokenKeys>,
    ambient: Ambient,
}

impl CreateDevelopmentToken {
    /// The operation, signing with `keys`, for whom `auth` lets in.
    #[must_use]
    pub const fn new(auth: CloudAuth, keys: Arc<TokenKeys>, ambient: Ambient) -> Self {
        Self { auth, keys, ambient }
    }
}

impl Operation for CreateDevelopmentToken {
    type Output = TokenResponse;

    const NAME: &'static str = "create-development-token";

    async fn call(&self, request: &Request) -> Result<TokenResponse, Error> {
        let (game_id, namespace_id) = (request.path("game_id")?, request.path("namespace_id")?);
        let right = self.auth.namespace(request, &game_id, &namespace_id).await?;
        let CreateDevelopmentTokenRequest { hostname, mut ports } = request.body()?;
        // All of them are on the developer's one machine.
        ports.values_mut().for_each(|port| port.hostname = None);
        let ports =
            Ports::of_specs(&ports, Some(&hostname)).map_err(|invalid| Error::Validation(invalid.0))?;
        let host = DevelopmentHost { hostname, ports };
        let (game_id, namespace_id) = (right.game_id(), right.namespace_id());
        Ok(TokenResponse { token: self.keys.issue_development(game_id, namespace_id, host, &self.ambient) })
    }
}
