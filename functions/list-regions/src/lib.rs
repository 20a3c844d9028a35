//! `GET /matchmaker/regions`: where the game runs, nearest first.

use shared::{
    auth::matchmaker::MatchmakerAuth,
    function::operation::Operation,
    models::errors::Error,
    request::Request,
    wire::{self, ListRegionsResponse},
};

/// The operation.
#[derive(Debug)]
pub struct ListRegions {
    auth: MatchmakerAuth,
    edge_secret: Option<String>,
}

impl ListRegions {
    /// The operation, for whom `auth` lets in; `edge_secret` is what the edge proves itself with, if there is
    /// one.
    #[must_use]
    pub const fn new(auth: MatchmakerAuth, edge_secret: Option<String>) -> Self {
        Self { auth, edge_secret }
    }
}

impl Operation for ListRegions {
    type Output = ListRegionsResponse;

    const NAME: &'static str = "list-regions";

    async fn call(&self, request: &Request) -> Result<ListRegionsResponse, Error> {
        let caller = self.auth.caller(request)?;
        if self.auth.developer(&caller).await?.is_some() {
            return Ok(ListRegionsResponse { regions: Vec::new() });
        }
        let (_right, settings) = self.auth.player(caller, request).await?;
        let viewer = request.viewer(self.edge_secret.as_deref());
        Ok(ListRegionsResponse { regions: wire::regions(&settings.game.regions, viewer) })
    }
}
