//! `GET /matchmaker/lobbies/list`: the lobbies that players may choose from.

use shared::{
    auth::matchmaker::MatchmakerAuth,
    function::{config::InvalidConfig, instance::Instance, operation::Operation},
    models::{errors::Error, token::TokenKind},
    overview::Overview,
    request::Request,
    rules::pages::PageRequest,
    wire::{self, GameModeInfo, ListLobbiesResponse},
};

/// The operation.
#[derive(Debug)]
pub struct ListLobbies {
    auth: MatchmakerAuth,
    overview: Overview,
    edge_secret: Option<String>,
}

impl Operation for ListLobbies {
    type Output = ListLobbiesResponse;

    const NAME: &'static str = "list-lobbies";

    const PARAMETERS: &'static [&'static str] = &["include_state", "limit", "cursor"];

    // An instance keeps its list for as long. A cache that does not distinguish tokens must not keep it;
    // `infra/edge.yaml` does distinguish them.
    const CACHE_CONTROL: Option<&'static str> = Some("private, max-age=5");

    const IS_COMPRESSED: bool = true;

    fn start(instance: &Instance) -> Result<Self, InvalidConfig> {
        Ok(Self {
            auth: instance.matchmaker_auth()?,
            overview: Overview::new(instance.store()?, instance.ambient()),
            edge_secret: instance.edge_secret(),
        })
    }

    async fn call(&self, request: &Request) -> Result<ListLobbiesResponse, Error> {
        let caller = self.auth.caller(request, TokenKind::Public)?;
        if self.auth.developer(&caller).await?.is_some() {
            return Ok(ListLobbiesResponse::default());
        }
        let page = PageRequest::parse(request.query("limit"), request.query("cursor"))?;
        let with_states = request.query("include_state") == Some("true");
        let (_right, settings) = self.auth.player(caller, request).await?;
        let page = self.overview.lobbies(&settings, &page, with_states).await?;
        let modes = settings.version.config.game_modes.iter().filter(|(_, mode)| mode.listable);
        Ok(ListLobbiesResponse {
            game_modes: modes.map(|(mode, _)| GameModeInfo { game_mode_id: mode.clone() }).collect(),
            regions: wire::regions(&settings.game.regions, request.viewer(self.edge_secret.as_deref())),
            lobbies: page.lobbies,
            is_truncated: page.is_truncated,
            next_cursor: page.next_cursor,
        })
    }
}
