//! `POST /matchmaker/lobbies/find`: a seat for a player, in a lobby that exists or in a new one.

use std::sync::Arc;

use shared::{
    ambient::Ambient,
    auth::{Caller, PlayerRight},
    errors::Error,
    http::{Operation, Request},
    ids::{LobbyId, RegionId},
    matchmaking::{Found, Matchmaker, Search, Way},
    rules::{criteria::Criteria, geography::Coordinates},
    settings_cache::{Settings, SettingsCache},
    tokens::{DevelopmentHost, PlayerSeat, TokenKeys, TokenKind},
    wire::{self, FindLobbyRequest, FindLobbyResponse},
};

/// The operation.
#[derive(Debug)]
pub struct FindLobby {
    settings: Arc<SettingsCache>,
    matchmaker: Matchmaker,
    keys: Arc<TokenKeys>,
    ambient: Ambient,
    edge_secret: Option<String>,
}

impl FindLobby {
    /// The operation over `settings` and `matchmaker`; `edge_secret` is what the edge proves itself with, if there is one.
    #[must_use]
    pub const fn new(
        settings: Arc<SettingsCache>,
        matchmaker: Matchmaker,
        keys: Arc<TokenKeys>,
        ambient: Ambient,
        edge_secret: Option<String>,
    ) -> Self {
        Self { settings, matchmaker, keys, ambient, edge_secret }
    }

    /// The matchmaker, for what it counts.
    #[must_use]
    pub const fn matchmaker(&self) -> &Matchmaker {
        &self.matchmaker
    }

    /// The namespace that the caller may be matched in, with its settings.
    async fn authorize(
        &self,
        caller: Caller,
        request: &Request,
    ) -> Result<(PlayerRight, Arc<Settings>), Error> {
        match caller {
            Caller::Player(credential) => {
                let settings = self.settings.settings(&credential.game_id, &credential.namespace_id).await?;
                let settings = settings.ok_or(Error::TokenInvalid)?;
                Ok((PlayerRight::of_credential(&credential, &settings.namespace)?, settings))
            }
            Caller::Anonymous => {
                let host = request.origin().ok_or(Error::Unauthorized)?;
                let owner = self.settings.domain_owner(&host).await?.ok_or(Error::Unauthorized)?;
                let settings = self.settings.settings(&owner.game_id, &owner.namespace_id).await?;
                let settings = settings.ok_or(Error::Unauthorized)?;
                Ok((PlayerRight::of_domain(&settings.namespace)?, settings))
            }
            Caller::Developer(..) => Err(Error::WrongTokenKind),
        }
    }

    fn reply(&self, found: Found, settings: &Settings) -> Result<FindLobbyResponse, Error> {
        let Found { lobby, seat_id, taken_at, .. } = found;
        let region_id = lobby.pool.region_id.clone();
        let region = settings.game.regions.get(&region_id);
        let region =
            region.ok_or_else(|| Error::Bug("a lobby runs in a region that its game lacks".to_owned()))?;
        let seat =
            PlayerSeat { namespace_id: lobby.pool.namespace_id, lobby_id: lobby.lobby_id.clone(), seat_id };
        Ok(FindLobbyResponse::new(
            lobby.lobby_id,
            wire::Region { region_id, display_name: region.display_name.clone() },
            wire::ports(&lobby.ports),
            self.keys.issue_player(&seat, taken_at),
        ))
    }

    fn mock(&self, host: &DevelopmentHost) -> Result<FindLobbyResponse, Error> {
        let region_id: RegionId =
            "dev-lcl".parse().map_err(|error| Error::Bug(format!("the mock region: {error}")))?;
        Ok(FindLobbyResponse::new(
            LobbyId::nil(),
            wire::Region { region_id, display_name: "Local".to_owned() },
            wire::ports_on(&host.hostname, &host.ports),
            self.keys.issue_development_player(&self.ambient),
        ))
    }
}

impl Operation for FindLobby {
    type Output = FindLobbyResponse;

    const NAME: &'static str = "find-lobby";

    async fn call(&self, request: &Request) -> Result<FindLobbyResponse, Error> {
        // What: any JSON will do for a developer; its types count for everybody else.
        let body = request.json()?;
        let caller = Caller::of(request, &self.keys, &self.ambient);
        if let Ok(Caller::Developer(credential, host)) = &caller {
            let settings = self.settings.settings(&credential.game_id, &credential.namespace_id).await?;
            let namespace = &settings.as_ref().ok_or(Error::TokenInvalid)?.namespace;
            if namespace.revocations.revokes(TokenKind::Development, credential) {
                return Err(Error::TokenRevoked);
            }
            return self.mock(host);
        }
        let body: FindLobbyRequest = body.parse()?;
        if body.game_modes.is_empty() {
            return Err(Error::NoGameModeProvided);
        }

        // Who.
        let (right, settings) = self.authorize(caller?, request).await?;

        // Rules.
        let viewer = viewer(request, self.edge_secret.as_deref());
        let criteria =
            Criteria::resolve(&body, right.namespace_id(), &settings.game, &settings.version, viewer)?;

        // Store.
        let may_create = !body.prevent_auto_create_lobby;
        let search = Search { criteria, settings: Arc::clone(&settings), may_create };
        let found = self.matchmaker.find(&search).await?;
        log(&found);

        // Reply.
        self.reply(found, &settings)
    }
}

/// Where the player is, by the edge's word: headers count only with the secret that the edge adds, since anybody can send
/// the others to the API's own address.
fn viewer(request: &Request, edge_secret: Option<&str>) -> Option<Coordinates> {
    if !request.came_through_edge(edge_secret?) {
        return None;
    }
    let degrees = |name| request.header(name)?.parse().ok();
    Coordinates::new(degrees("cloudfront-viewer-latitude")?, degrees("cloudfront-viewer-longitude")?)
}

fn log(found: &Found) {
    let (created, race_create) = match found.way {
        Way::Joined => (false, false),
        Way::Created { is_race_create } => (true, is_race_create),
    };
    tracing::info!(
        lobby.id = %found.lobby.lobby_id,
        lobby.seats_taken = found.lobby.taken,
        lobby.created = created,
        lobby.race_create = race_create,
        "a seat was reserved"
    );
}
