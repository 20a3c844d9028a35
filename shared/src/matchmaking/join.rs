//! The other ways to a seat: joining a lobby by its identifier, creating one of one's own.

use super::{
    FIND_DEADLINE, Found, Matchmaker, ROUND_PAUSE, ROUNDS_MAX, Search, Way,
    create::{Attempt, Placing},
};
use crate::{
    errors::Error,
    ids::{LobbyId, SeatId},
    lobby::{Door, Refusal, Stage},
    settings_cache::Settings,
    store::lobbies::{Hiding, SeatClaim, SeatOutcome},
};

impl Matchmaker {
    /// A seat in the lobby `lobby_id` of the namespace that `settings` are of, up to the lobby's direct capacity, under the
    /// rules of the lobby's own version. A closed or private lobby can be joined, too.
    ///
    /// # Errors
    /// [`Error::LobbyNotFound`], also for lobbies of other namespaces (I11) and of servers that are not alive (I6);
    /// [`Error::LobbyStopped`], [`Error::JoinDisabled`], [`Error::LobbyFull`], [`Error::LobbyStartTimeout`];
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn join(&self, settings: &Settings, lobby_id: LobbyId) -> Result<Found, Error> {
        let began_at = self.ambient.now();
        let namespace_id = &settings.namespace.namespace_id;
        let lobby = self.store.lobby(&lobby_id).await?.ok_or(Error::LobbyNotFound)?;
        if lobby.pool.namespace_id != *namespace_id {
            return Err(Error::LobbyNotFound);
        }
        if lobby.stage == Stage::Ended || lobby.is_overdue(began_at) {
            return Err(Error::LobbyStopped);
        }
        let version = self.settings.version(&settings.game.game_id, &lobby.pool.version_id).await?;
        let mode = version.as_ref().and_then(|version| version.config.game_modes.get(&lobby.pool.game_mode));
        let mode = mode.ok_or_else(|| Error::Bug("a lobby's version or mode is gone".to_owned()))?;
        if !mode.actions.join.enabled {
            return Err(Error::JoinDisabled(lobby.pool.game_mode));
        }
        let claim = SeatClaim {
            lobby_id,
            door: Door::Direct,
            seat_id: SeatId::random(&self.ambient),
            until: began_at + lobby.reservation(),
            hiding: Hiding::No,
        };
        match self.store.take_seat(&claim, began_at).await? {
            SeatOutcome::Taken(lobby) => {
                self.learn(&lobby, began_at).await?;
                let found =
                    Found { lobby: *lobby, seat_id: claim.seat_id, taken_at: began_at, way: Way::Joined };
                self.until_ready(found, began_at).await
            }
            SeatOutcome::Refused(refusal, _) => Err(match refusal {
                Refusal::Full => Error::LobbyFull,
                Refusal::Ended => Error::LobbyStopped,
                Refusal::Missing | Refusal::LeaseLapsed | Refusal::Hidden | Refusal::OtherPool => {
                    Error::LobbyNotFound
                }
            }),
        }
    }

    /// A seat in a lobby that is created for it, as `search` describes it.
    ///
    /// # Errors
    /// [`Error::TooManyLobbies`], [`Error::NoServerAvailable`], [`Error::Contention`], [`Error::LobbyStartTimeout`];
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn create_custom_lobby(&self, search: &Search) -> Result<Found, Error> {
        let began_at = self.ambient.now();
        let (lobby_id, seat_id) = (LobbyId::from(self.ambient.uuid()), SeatId::random(&self.ambient));
        for round in 0..ROUNDS_MAX {
            match self.attempt(search, &lobby_id, &seat_id, Placing::default(), None).await? {
                Attempt::Created(found) => return self.until_ready(*found, began_at).await,
                Attempt::NoRoom(refusal) => return Err(refusal.into()),
                Attempt::Exists | Attempt::Outrun(_) | Attempt::Lost => {}
            }
            if self.ambient.now() >= began_at + FIND_DEADLINE {
                break;
            }
            self.ambient.sleep(self.ambient.jittered(ROUND_PAUSE * 2_u32.pow(round.min(4)))).await;
        }
        Err(Error::Contention)
    }
}
