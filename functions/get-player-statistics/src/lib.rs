//! `GET /matchmaker/players/statistics`: the number of players, by mode and region.

use shared::{
    auth::matchmaker::MatchmakerAuth,
    function::{config::InvalidConfig, instance::Instance, operation::Operation},
    models::{errors::Error, token::TokenKind},
    overview::Overview,
    request::Request,
    wire::PlayerStatistics,
};

/// The operation.
#[derive(Debug)]
pub struct GetPlayerStatistics {
    auth: MatchmakerAuth,
    overview: Overview,
}

impl Operation for GetPlayerStatistics {
    type Output = PlayerStatistics;

    const NAME: &'static str = "get-player-statistics";

    fn start(instance: &Instance) -> Result<Self, InvalidConfig> {
        Ok(Self {
            auth: instance.matchmaker_auth()?,
            overview: Overview::new(instance.store()?, instance.ambient()),
        })
    }

    async fn call(&self, request: &Request) -> Result<PlayerStatistics, Error> {
        let caller = self.auth.caller(request, TokenKind::Public)?;
        if self.auth.developer(&caller).await?.is_some() {
            return Ok(PlayerStatistics::default());
        }
        let (_right, settings) = self.auth.player(caller, request).await?;
        self.overview.statistics(&settings).await
    }
}
