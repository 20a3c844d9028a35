//! The response for a seat, and the mock of it for developers.

use crate::{
    auth::{keys::TokenKeys, settings::Settings},
    base::ambient::{Ambient, Timestamp},
    models::{
        client::ClientId,
        errors::Error,
        ids::{LobbyId, NamespaceId, RegionId},
        lobby::Lobby,
        lobby_code::LobbyCode,
        seats::{Party, Seats},
        token::{DevelopmentHost, MockPlayer, PlayerSeat},
    },
    wire::{self, FindLobbyResponse, body::JsonBody, explanation::FindOutcome, party},
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
    /// The response: the lobby, its ports and a token for each seat of the `party`, which names the `client`
    /// that holds it under a cap, and has its player's data.
    ///
    /// # Errors
    /// [`Error::Bug`] when the game lacks the lobby's region.
    pub fn into_response(
        self,
        settings: &Settings,
        client: Option<ClientId>,
        party: &Party,
        keys: &TokenKeys,
    ) -> Result<FindLobbyResponse, Error> {
        let Self { lobby, seats, code, taken_at, .. } = self;
        let region_id = lobby.pool.region_id.clone();
        let region = settings.game.regions.get(&region_id);
        let region =
            region.ok_or_else(|| Error::Bug("a lobby runs in a region that its game lacks".to_owned()))?;
        let place = (lobby.pool.namespace_id, lobby.lobby_id.clone());
        let tokens = players(&seats, place, client, party).map(|seat| keys.issue_player(&seat, taken_at));
        let tokens = tokens.collect();
        Ok(FindLobbyResponse::new(
            lobby.lobby_id,
            code,
            wire::Region { region_id, display_name: region.display_name.clone() },
            wire::ports(&lobby.ports),
            tokens,
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

/// Each player of the `party` at its seat in the lobby, held by `client` under a cap.
pub(super) fn players(
    seats: &Seats,
    (namespace_id, lobby_id): (NamespaceId, LobbyId),
    client: Option<ClientId>,
    party: &Party,
) -> impl Iterator<Item = PlayerSeat> {
    let membership = seats.membership();
    seats.iter().enumerate().map(move |(nth, seat_id)| PlayerSeat {
        namespace_id: namespace_id.clone(),
        lobby_id: lobby_id.clone(),
        seat_id: seat_id.clone(),
        generation: 0,
        client: client.clone(),
        membership: membership.clone(),
        data: party.data.get(nth).cloned().flatten(),
    })
}

/// The mock of a development token (decision 6): the nil lobby on the developer's machine. The token has the
/// player's data where the `body` has any that a real lobby would take. The lobby has a `code` where it is
/// created.
///
/// # Errors
/// As [`mock_seats_of`].
pub fn mock_seat(
    host: &DevelopmentHost,
    mut body: JsonBody<'_>,
    code: Option<LobbyCode>,
    keys: &TokenKeys,
    ambient: &Ambient,
) -> Result<FindLobbyResponse, Error> {
    // What no real lobby would take counts as absent.
    let party = party(&mut body).unwrap_or_default();
    let player = |nth| MockPlayer {
        token_id: ambient.uuid().into(),
        generation: 0,
        data: party.data.get(nth).cloned().flatten(),
        host: host.clone(),
    };
    let players: Vec<_> = (0..party.size as usize).map(player).collect();
    mock_seats_of(host, &players, code, keys, ambient)
}

/// The same for players who have a name.
///
/// # Errors
/// [`Error::Bug`] never, unless the mock region here is misspelt.
pub fn mock_seats_of(
    host: &DevelopmentHost,
    players: &[MockPlayer],
    code: Option<LobbyCode>,
    keys: &TokenKeys,
    ambient: &Ambient,
) -> Result<FindLobbyResponse, Error> {
    let region_id: RegionId =
        "dev-lcl".parse().map_err(|error| Error::Bug(format!("the mock region: {error}")))?;
    let now = ambient.now();
    let tokens = players.iter().map(|player| keys.issue_development_player(player, now));
    Ok(FindLobbyResponse::new(
        LobbyId::nil(),
        code,
        wire::Region { region_id, display_name: "Local".to_owned() },
        wire::ports_on(&host.hostname, &host.ports),
        tokens.collect(),
    ))
}
