//! The other ways to a seat: joining a lobby by its identifier, or creating one of its own.

use std::sync::Arc;

use crate::{
    auth::settings::Settings,
    base::ambient::Timestamp,
    matchmaking::{
        limits::{FIND_DEADLINE, ROUNDS_MAX, pause_after},
        matchmaker::Matchmaker,
        outcomes::{Attempt, Origin, Placing, refusal},
        search::Search,
        waiting::deadline_after,
    },
    models::{
        availability::{Access, Refusal},
        errors::Error,
        ids::LobbyId,
        lobby::Lobby,
        lobby_code::LobbyCode,
        pool::Tags,
        version::{GameModeConfig, Version},
    },
    seating::{reply::Found, seeker::Seeker},
    store::seats::{Hiding, PartyCapacity, SeatClaim, SeatOutcome},
    wire::explanation::FindOutcome,
};

/// A lobby that its version's rules let clients join.
#[derive(Clone, Debug)]
pub struct Joinable {
    /// The lobby as it was read.
    pub lobby: Lobby,
    /// Its own version, which need not be the namespace's current one.
    pub version: Arc<Version>,
    mode: GameModeConfig,
    /// Its tags, if the studio's verification receives them.
    pub tags: Tags,
}

impl Joinable {
    /// Its mode, and how many players the lobby holds for a party of so many `seats`.
    #[must_use]
    pub fn sizes(&self, seats: u32) -> (&GameModeConfig, u32) {
        (&self.mode, self.lobby.capacity(&Access::Direct, seats))
    }
}

impl Matchmaker {
    /// The lobby `lobby_id` of the namespace that `settings` are of, if the rules of its own version let it
    /// be joined. A closed or private lobby can be joined, too.
    ///
    /// # Errors
    /// [`Error::LobbyNotFound`], also for lobbies of other namespaces (I11); [`Error::LobbyStopped`],
    /// [`Error::JoinDisabled`]; [`Error::Unavailable`], [`Error::Bug`].
    pub async fn joinable(&self, settings: &Settings, lobby_id: LobbyId) -> Result<Joinable, Error> {
        let now = self.ambient.now();
        let namespace_id = &settings.namespace.namespace_id;
        let lobby = self.store.lobby(&lobby_id).await?.ok_or(Error::LobbyNotFound)?;
        if lobby.pool.namespace_id != *namespace_id {
            return Err(Error::LobbyNotFound);
        }
        if lobby.is_over(now) {
            return Err(Error::LobbyStopped);
        }
        let version = self.settings.version(&settings.game.game_id, &lobby.pool.version_id).await?;
        let gone = || Error::Bug("a lobby's version or mode is gone".to_owned());
        let version = version.ok_or_else(gone)?;
        let mode = version.config.game_modes.get(&lobby.pool.game_mode).ok_or_else(gone)?;
        if !mode.actions.join.enabled {
            return Err(Error::JoinDisabled(lobby.pool.game_mode));
        }
        let is_verified = mode.actions.join.verification.is_some();
        let tags = self.store.lobby_tags(Some(&lobby).filter(|_| is_verified)).await?.remove(&lobby.lobby_id);
        if is_verified && !lobby.tag_digests.is_empty() && tags.is_none() {
            // The lobby ended just now, and its data with it.
            return Err(Error::LobbyStopped);
        }
        let mode = mode.clone();
        Ok(Joinable { lobby, version, mode, tags: tags.unwrap_or_default() })
    }

    /// A seat in a lobby that may be joined, up to its direct capacity.
    ///
    /// # Errors
    /// [`Error::LobbyNotFound`] when its server is not alive (I6); [`Error::LobbyStopped`],
    /// [`Error::LobbyFull`], [`Error::LobbyStartTimeout`]; [`Error::PlayerRemoved`] while a player of the
    /// same client is kept out of it; [`Error::Unavailable`], [`Error::Bug`].
    pub async fn join(&self, joinable: &Joinable, seeker: &Seeker) -> Result<Found, Error> {
        if let Some(found) = self.find_interrupted(seeker).await? {
            return self.joined(found, seeker).await;
        }
        let mut claim = SeatClaim {
            lobby_id: joinable.lobby.lobby_id.clone(),
            access: Access::Direct,
            seats: seeker.seats().clone(),
            until: Timestamp::default(),
            capacity: PartyCapacity::Known(joinable.lobby.capacity(&Access::Direct, seeker.seats().count())),
            hiding: Hiding::No,
        };
        let tried = self.claim(&mut claim, joinable.lobby.reservation(), seeker).await?;
        match tried.outcome {
            SeatOutcome::Taken(lobby) => {
                self.hide_if_full(&lobby, tried.at).await?;
                let found = Found {
                    lobby: *lobby,
                    seats: claim.seats,
                    code: None,
                    taken_at: tried.taken_at,
                    outcome: FindOutcome::Joined,
                };
                self.joined(found, seeker).await
            }
            SeatOutcome::Refused(refusal, _) => Err(match refusal {
                Refusal::Full | Refusal::TooFull => Error::LobbyFull,
                Refusal::Ended => Error::LobbyStopped,
                Refusal::Excluded => Error::PlayerRemoved,
                Refusal::Missing
                | Refusal::LeaseLapsed
                | Refusal::Hidden
                | Refusal::OtherPool
                | Refusal::TagMissing => Error::LobbyNotFound,
            }),
        }
    }

    /// The seat once its lobby is ready. No other lobby replaces one that was chosen by its identifier.
    async fn joined(&self, found: Found, seeker: &Seeker) -> Result<Found, Error> {
        self.until_ready(found, seeker).await?.ok_or(Error::LobbyStopped)
    }

    /// A seat in a lobby that is created for it, as `search` describes it; in another one, if that lobby ends
    /// before it is ready.
    ///
    /// # Errors
    /// [`Error::TooManyLobbies`], [`Error::NoServerAvailable`], [`Error::Contention`],
    /// [`Error::LobbyStartTimeout`]; [`Error::Unavailable`], [`Error::Bug`].
    pub async fn create_custom_lobby(&self, search: &Search, seeker: &Seeker) -> Result<Found, Error> {
        let began_at = self.ambient.now();
        let mut found = match self.find_interrupted(seeker).await? {
            Some(found) => found,
            None => self.create_own(search, seeker, began_at + FIND_DEADLINE).await?,
        };
        loop {
            if let Some(found) = self.until_ready(found, seeker).await? {
                return Ok(Found { code: found.lobby.code.clone(), ..found });
            }
            found = self.create_own(search, seeker, deadline_after(seeker, self.ambient.now())?).await?;
        }
    }

    async fn create_own(
        &self,
        search: &Search,
        seeker: &Seeker,
        deadline: Timestamp,
    ) -> Result<Found, Error> {
        if let Some(reason) = self.known_shortage(search, false, seeker).await? {
            return Err(refusal(reason, &search.criteria.new_lobby.pool, seeker.trace()));
        }
        let key = &search.settings.namespace.tag_key;
        let mut code = LobbyCode::random(&self.ambient);
        for round in 0..ROUNDS_MAX {
            let (lobby_id, origin) = (code.lobby_id(key), Origin::Custom(&code));
            match self.attempt(search, &lobby_id, seeker, Placing::default(), origin).await? {
                Attempt::Created(found) => return Ok(*found),
                Attempt::NoCapacity(reason) => {
                    return Err(refusal(reason, &search.criteria.new_lobby.pool, seeker.trace()));
                }
                // Another lobby has the code, or had it within the last days.
                Attempt::Exists => code = LobbyCode::random(&self.ambient),
                Attempt::Replaced(_) | Attempt::Lost => {}
            }
            if !pause_after(round, deadline, &self.ambient).await {
                break;
            }
        }
        Err(Error::Contention)
    }
}
