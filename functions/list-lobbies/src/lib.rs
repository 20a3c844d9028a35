//! `GET /matchmaker/lobbies/list`: the lobbies that players may choose from.

use shared::{
    auth::matchmaker::MatchmakerAuth,
    base::ambient::Ambient,
    function::operation::Operation,
    models::errors::Error,
    overview::Overview,
    request::Request,
    store::client::Store,
    wire::{self, GameModeInfo, ListLobbiesResponse},
};

/// The operation.
#[derive(Debug)]
pub struct ListLobbies {
    auth: MatchmakerAuth,
    overview: Overview,
    edge_secret: Option<String>,
}

impl ListLobbies {
    /// The operation on lobbies in `store`, for whom `auth` lets in; `edge_secret` is what the edge proves
    /// itself with, if there is one.
    #[must_use]
    pub fn new(auth: MatchmakerAuth, store: Store, ambient: Ambient, edge_secret: Option<String>) -> Self {
        Self { auth, overview: Overview::new(store, ambient), edge_secret }
    }
}

impl Operation for ListLobbies {
    type Output = ListLobbiesResponse;

    const NAME: &'static str = "list-lobbies";

    async fn call(&self, request: &Request) -> Result<ListLobbiesResponse, Error> {
        let caller = self.auth.caller(request)?;
        if self.auth.developer(&caller).await?.is_some() {
            return Ok(ListLobbiesResponse::default());
        }
        let (_right, settings) = self.auth.player(caller, request).await?;
        let with_states = request.query("include_state") == Some("true");
        let lobbies = self.overview.lobbies(&settings, with_states).await?;
        let modes = settings.version.config.game_modes.iter().filter(|(_, mode)| mode.listable);
        Ok(ListLobbiesResponse {
            game_modes: modes.map(|(mode, _)| GameModeInfo { game_mode_id: mode.clone() }).collect(),
            regions: wire::regions(&settings.game.regions, request.viewer(self.edge_secret.as_deref())),
            lobbies: lobbies.to_vec(),
        })
    }
}
