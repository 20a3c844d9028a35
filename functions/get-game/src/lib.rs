//! `GET /cloud/games/{game_id}`: the game with its namespaces, versions and regions.

use shared::{
    function::{cloud_parts::CloudParts, config::InvalidConfig, instance::Instance, operation::Operation},
    models::errors::Error,
    request::Request,
    wire::{GameFull, GetGameResponse},
};

/// The operation.
#[derive(Debug)]
pub struct GetGame(CloudParts);

impl Operation for GetGame {
    type Output = GetGameResponse;

    const NAME: &'static str = "get-game";

    fn start(instance: &Instance) -> Result<Self, InvalidConfig> {
        CloudParts::of(instance).map(Self)
    }

    async fn call(&self, request: &Request) -> Result<GetGameResponse, Error> {
        let right = self.0.auth.game(request).await?;
        let game = self.0.store.game(right.game_id()).await?.ok_or(Error::NotFound)?;
        let namespaces = self.0.store.namespaces(right.game_id()).await?;
        let versions = self.0.store.listed_versions(right.game_id()).await?;
        Ok(GetGameResponse { game: GameFull::new(&game, namespaces, versions) })
    }
}
