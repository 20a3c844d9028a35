//! `GET /matchmaker/regions`: the game's regions, nearest first.

use shared::{
    auth::matchmaker::MatchmakerAuth,
    function::{config::InvalidConfig, instance::Instance, operation::Operation},
    models::{errors::Error, token::TokenKind},
    request::Request,
    wire::{self, ListRegionsResponse},
};

/// The operation.
#[derive(Debug)]
pub struct ListRegions {
    auth: MatchmakerAuth,
    edge_secret: Option<String>,
}

impl Operation for ListRegions {
    type Output = ListRegionsResponse;

    const NAME: &'static str = "list-regions";

    fn start(instance: &Instance) -> Result<Self, InvalidConfig> {
        Ok(Self { auth: instance.matchmaker_auth()?, edge_secret: instance.edge_secret() })
    }

    async fn call(&self, request: &Request) -> Result<ListRegionsResponse, Error> {
        let caller = self.auth.caller(request, TokenKind::Public)?;
        if self.auth.developer(&caller).await?.is_some() {
            return Ok(ListRegionsResponse { regions: Vec::new() });
        }
        let (_right, settings) = self.auth.player(caller, request).await?;
        let viewer = request.viewer(self.edge_secret.as_deref());
        Ok(ListRegionsResponse { regions: wire::regions(&settings.game.regions, viewer) })
    }
}
