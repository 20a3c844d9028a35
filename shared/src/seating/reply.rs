//! The response for a seat, and the mock of it for developers.

use crate::{
    auth::{keys::TokenKeys, settings::Settings},
    base::ambient::{Ambient, Timestamp},
    models::{
        client::ClientId,
        errors::Error,
        ids::{LobbyId, RegionId},
        lobby::Lobby,
        lobby_code::LobbyCode,
        player_data::PlayerData,
        seats::Seats,
        token::{DevelopmentHost, MockPlayer, PlayerSeat},
    },
    wire::{self, FindLobbyResponse, body::JsonBody, explanation::FindOutcome, player_data},
};

/// A seat found.
#[derive(Clone, Debug)]
pub struct Found {
    /// The lobby, with the seat taken.
    pub lobby: Lobby,
    /// The seats.
    pub seats: Seats,
    /// The lobby's code, for the player who created it.
    pub code: Option<LobbyCode>,
    /// When it was taken.
    pub taken_at: Timestamp,
    /// How the find got it.
    pub outcome: FindOutcome,
}

impl Found {
    /// The response: the lobby, its ports and a token for the seat, which names the `client` that holds it
    /// under a cap, and has the player's `data`.
    ///
    /// # Errors
    /// [`Error::Bug`] when the game lacks the lobby's region.
    pub fn into_response(
        self,
        settings: &Settings,
        client: Option<ClientId>,
        data: Option<PlayerData>,
        keys: &TokenKeys,
    ) -> Result<FindLobbyResponse, Error> {
        let Self { lobby, seats, code, taken_at, .. } = self;
        let region_id = lobby.pool.region_id.clone();
        let region = settings.game.regions.get(&region_id);
        let region =
            region.ok_or_else(|| Error::Bug("a lobby runs in a region that its game lacks".to_owned()))?;
        let seat = PlayerSeat {
            namespace_id: lobby.pool.namespace_id,
            lobby_id: lobby.lobby_id.clone(),
            seat_id: seats.first().clone(),
            generation: 0,
            client,
            data,
        };
        Ok(FindLobbyResponse::new(
            lobby.lobby_id,
            code,
            wire::Region { region_id, display_name: region.display_name.clone() },
            wire::ports(&lobby.ports),
            keys.issue_player(&seat, taken_at),
        ))
    }

    /// Writes the operation's log line about its seat.
    pub fn log(&self) {
        let (created, race_create) = match self.outcome {
            FindOutcome::Joined => (false, false),
            FindOutcome::Created { is_race_create } => (true, is_race_create),
        };
        tracing::info!(
            lobby.id = %self.lobby.lobby_id,
            lobby.seats_taken = self.lobby.taken,
            lobby.created = created,
            lobby.race_create = race_create,
            "a seat was reserved"
        );
    }
}

/// The mock of a development token (decision 6): the nil lobby on the developer's machine. The token has the
/// player's data where the `body` has any that a real lobby would take. The lobby has a `code` where it is
/// created.
///
/// # Errors
/// As [`mock_seat_of`].
pub fn mock_seat(
    host: &DevelopmentHost,
    mut body: JsonBody<'_>,
    code: Option<LobbyCode>,
    keys: &TokenKeys,
    ambient: &Ambient,
) -> Result<FindLobbyResponse, Error> {
    let player = MockPlayer {
        token_id: ambient.uuid().into(),
        generation: 0,
        data: player_data(&mut body).unwrap_or_default(),
        host: host.clone(),
    };
    mock_seat_of(&player, code, keys, ambient)
}

/// The same for a player who has a name.
///
/// # Errors
/// [`Error::Bug`] never, unless the mock region here is misspelt.
pub fn mock_seat_of(
    player: &MockPlayer,
    code: Option<LobbyCode>,
    keys: &TokenKeys,
    ambient: &Ambient,
) -> Result<FindLobbyResponse, Error> {
    let region_id: RegionId =
        "dev-lcl".parse().map_err(|error| Error::Bug(format!("the mock region: {error}")))?;
    Ok(FindLobbyResponse::new(
        LobbyId::nil(),
        code,
        wire::Region { region_id, display_name: "Local".to_owned() },
        wire::ports_on(&player.host.hostname, &player.host.ports),
        keys.issue_development_player(player, ambient.now()),
    ))
}
