//! `GET /cloud/games/{game_id}`: the game with its namespaces, versions and regions.

use shared::{
    auth::cloud::CloudAuth,
    function::{config::InvalidConfig, instance::Instance, operation::Operation},
    models::errors::Error,
    request::Request,
    store::client::Store,
    wire::{GameFull, GetGameResponse},
};

/// The operation.
#[derive(Debug)]
pub struct GetGame {
    auth: CloudAuth,
    store: Store,
}

impl Operation for GetGame {
    type Output = GetGameResponse;

    const NAME: &'static str = "get-game";

    fn start(instance: &Instance) -> Result<Self, InvalidConfig> {
        Ok(Self { auth: instance.cloud_auth()?, store: instance.store()? })
    }

    async fn call(&self, request: &Request) -> Result<GetGameResponse, Error> {
        let game_id = request.path("game_id")?;
        let right = self.auth.game(request, &game_id).await?;
        let game = self.store.game(right.game_id()).await?.ok_or(Error::NotFound)?;
        let namespaces = self.store.namespaces(right.game_id()).await?;
        let versions = self.store.listed_versions(right.game_id()).await?;
        Ok(GetGameResponse { game: GameFull::new(&game, namespaces, versions) })
    }
}
