//! `GET /matchmaker/players/statistics`: how many play, by mode and region.

use shared::{
    auth::matchmaker::MatchmakerAuth, base::ambient::Ambient, function::operation::Operation,
    models::errors::Error, overview::Overview, request::Request, store::client::Store,
    wire::PlayerStatistics,
};

/// The operation.
#[derive(Debug)]
pub struct GetPlayerStatistics {
    auth: MatchmakerAuth,
    overview: Overview,
}

impl GetPlayerStatistics {
    /// The operation on lobbies in `store`, for whom `auth` lets in.
    #[must_use]
    pub fn new(auth: MatchmakerAuth, store: Store, ambient: Ambient) -> Self {
        Self { auth, overview: Overview::new(store, ambient) }
    }
}

impl Operation for GetPlayerStatistics {
    type Output = PlayerStatistics;

    const NAME: &'static str = "get-player-statistics";

    async fn call(&self, request: &Request) -> Result<PlayerStatistics, Error> {
        let caller = self.auth.caller(request)?;
        if self.auth.developer(&caller).await?.is_some() {
            return Ok(PlayerStatistics::default());
        }
        let (_right, settings) = self.auth.player(caller, request).await?;
        self.overview.statistics(&settings).await
    }
}
