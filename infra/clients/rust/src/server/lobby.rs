//! A lobby that a game server runs, and its players.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use reqwest::Method;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{
    api::{ConnectPlayerResponse, HeldSeats, Json, Publicity, ServerLobby},
    error::Error,
    http::DEADLINE,
    server::GameServer,
};

/// How long a player waits to be admitted. Other calls matter to nobody who waits, and are repeated for
/// longer.
const ADMISSION: Duration = Duration::from_secs(10);
const ALREADY_CONNECTED: &str = "MATCHMAKER_PLAYER_ALREADY_CONNECTED";
/// What a lobby that has ended responds to its last calls.
const OVER: [&str; 2] = ["MATCHMAKER_LOBBY_STOPPED", "MATCHMAKER_LOBBY_NOT_FOUND"];

/// A lobby that the game server runs. Clones are the same lobby.
#[derive(Clone)]
pub struct Lobby {
    shared: Arc<Shared>,
    server: GameServer,
}

struct Shared {
    assigned: ServerLobby,
    /// When this process learned of it.
    since: Instant,
    state: Mutex<State>,
    end: CancellationToken,
}

struct State {
    token: String,
    seats: HeldSeats,
    /// Tokens of players who are connected or about to be.
    shown: HashSet<String>,
    /// Players who are connected, by their tokens.
    connected: HashSet<String>,
}

impl std::fmt::Debug for Lobby {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lobby").field("lobby_id", &self.id()).finish_non_exhaustive()
    }
}

impl PartialEq for Lobby {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}

impl Lobby {
    pub(super) fn new(server: GameServer, assigned: ServerLobby) -> Self {
        let state = State {
            token: assigned.lobby_token.clone(),
            seats: assigned.seats,
            shown: HashSet::new(),
            connected: HashSet::new(),
        };
        let (since, end) = (Instant::now(), CancellationToken::new());
        Self { shared: Arc::new(Shared { assigned, since, state: state.into(), end }), server }
    }

    /// Identifies it.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.shared.assigned.lobby_id
    }

    /// Its mode.
    #[must_use]
    pub fn game_mode(&self) -> &str {
        &self.shared.assigned.game_mode
    }

    /// Where it runs.
    #[must_use]
    pub fn region(&self) -> &str {
        &self.shared.assigned.region_id
    }

    /// Its tags.
    #[must_use]
    pub fn tags(&self) -> &BTreeMap<String, String> {
        &self.shared.assigned.tags
    }

    /// Seats that finds fill it up to.
    #[must_use]
    pub fn max_players(&self) -> u32 {
        self.shared.assigned.max_players
    }

    /// What its creator gave for it.
    #[must_use]
    pub fn config(&self) -> Option<&Json> {
        self.shared.assigned.lobby_config.as_ref()
    }

    /// All that the last heartbeat said of it, with its own token.
    #[must_use]
    pub fn assigned(&self) -> ServerLobby {
        let State { token, seats, .. } = &*self.state();
        ServerLobby { lobby_token: token.clone(), seats: *seats, ..self.shared.assigned.clone() }
    }

    /// Seats that are held, as of the last heartbeat.
    #[must_use]
    pub fn seats(&self) -> HeldSeats {
        self.state().seats
    }

    /// Players who are connected.
    #[must_use]
    pub fn player_count(&self) -> usize {
        self.state().connected.len()
    }

    /// Whether it has ended.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.shared.end.is_cancelled()
    }

    /// Returns once it has ended.
    pub async fn ended(&self) {
        self.shared.end.cancelled().await;
    }

    /// Reports a player as connected. [`GameServer::admit`] finds the lobby first.
    ///
    /// # Errors
    /// [`Error`], where the player is to be refused, by its code; [`Error::is_transient`] where Muster cannot
    /// say.
    pub async fn admit(&self, token: &str) -> Result<Player, Error> {
        // The service distinguishes a token that is shown twice from a retry of this call by nothing.
        if !self.state().shown.insert(token.to_owned()) {
            return Err(Error::refused(ALREADY_CONNECTED, "this token is connected"));
        }
        let mut showing = Showing { lobby: self, token, is_admitted: false };
        let body = json!({ "player_token": token, "details": true });
        let details: ConnectPlayerResponse =
            match self.call(Method::POST, "players/connected", &body, ADMISSION).await {
                Ok(details) => details,
                // Nobody was admitted by it: the response to an earlier call was lost.
                Err(error) if error.is(ALREADY_CONNECTED) => {
                    serde_json::from_value(Value::Object(error.metadata.clone())).unwrap_or_default()
                }
                Err(error) => return Err(error),
            };
        showing.is_admitted = true;
        self.state().connected.insert(token.to_owned());
        Ok(Player { lobby: self.clone(), token: token.to_owned(), details })
    }

    /// Reports that a connection ended, by the player's token, such as of a player whom an earlier process
    /// admitted; the seat is kept for so long, by default as the mode says.
    ///
    /// # Errors
    /// [`Error`], also where the lobby has ended.
    pub async fn disconnected(&self, token: &str, keep: Option<Duration>) -> Result<(), Error> {
        let is_empty = {
            let mut state = self.state();
            state.shown.remove(token);
            state.connected.remove(token);
            state.connected.is_empty()
        };
        let mut body = Map::from_iter([("player_token".to_owned(), token.into())]);
        if let Some(keep) = keep {
            body.insert("keep_seconds".to_owned(), keep.as_secs().into());
        }
        self.change(Method::POST, "players/disconnected", &Value::Object(body)).await?;
        if is_empty && !self.is_ended() {
            // Without players the lobby may have ended.
            self.server.beat_soon();
        }
        Ok(())
    }

    /// Reports the lobby as ready, where the game server has `auto_ready` off.
    ///
    /// # Errors
    /// [`Error`], as of all calls below.
    pub async fn ready(&self) -> Result<(), Error> {
        self.change(Method::POST, "lobbies/ready", &json!({})).await
    }

    /// Hides the lobby from finds, such as when the match begins, or lets them see it again.
    ///
    /// # Errors
    /// As [`Self::ready`].
    pub async fn set_closed(&self, is_closed: bool) -> Result<(), Error> {
        self.change(Method::PUT, "lobbies/closed", &json!({ "is_closed": is_closed })).await
    }

    /// Makes the lobby public or private.
    ///
    /// # Errors
    /// As [`Self::ready`].
    pub async fn set_publicity(&self, publicity: Publicity) -> Result<(), Error> {
        self.change(Method::PUT, "lobbies/publicity", &json!({ "publicity": publicity })).await
    }

    /// Publishes any JSON in lists of lobbies.
    ///
    /// # Errors
    /// As [`Self::ready`].
    pub async fn set_state(&self, state: &Json) -> Result<(), Error> {
        unless_over(self.change(Method::PUT, "lobbies/state", state).await)
    }

    /// Has the seats of all connected players kept: a process that starts anew has none of their
    /// connections.
    ///
    /// # Errors
    /// As [`Self::ready`].
    pub async fn keep_everyone(&self, keep: Duration) -> Result<(), Error> {
        let body = json!({ "everyone": true, "keep_seconds": keep.as_secs() });
        unless_over(self.change(Method::POST, "players/disconnected", &body).await)
    }

    /// Ends the lobby: the match is over. Nothing is wrong where it has ended.
    ///
    /// # Errors
    /// As [`Self::ready`].
    pub async fn end(&self) -> Result<(), Error> {
        self.server.end_lobby(self).await
    }

    /// Sends any request under the lobby's own token, to the path behind `/matchmaker/`, such as of an
    /// operation that is newer than this crate. Like the others it is repeated, for at most `deadline`.
    ///
    /// # Errors
    /// As [`Self::ready`]; also a response that is no `T` counts as none.
    pub async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &impl Serialize,
        deadline: Duration,
    ) -> Result<T, Error> {
        let token = self.state().token.clone();
        self.server.call(method, path, &token, body, deadline).await
    }

    /// Takes over what another heartbeat says.
    pub(super) fn update(&self, assigned: ServerLobby) {
        let mut state = self.state();
        (state.token, state.seats) = (assigned.lobby_token, assigned.seats);
    }

    /// When this process learned of it.
    pub(super) fn since(&self) -> Instant {
        self.shared.since
    }

    /// Notes its end.
    pub(super) fn note_end(&self) {
        self.shared.end.cancel();
    }

    async fn change(&self, method: Method, path: &str, body: &Value) -> Result<(), Error> {
        let _empty: Value = self.call(method, path, body, DEADLINE).await?;
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes what a lobby responds that has ended for a success.
pub(super) fn unless_over(result: Result<(), Error>) -> Result<(), Error> {
    match result {
        Err(error) if OVER.iter().any(|code| error.is(code)) => Ok(()),
        other => other,
    }
}

/// A token whose admission is under way: unless that succeeds, the token may be shown again.
struct Showing<'a> {
    lobby: &'a Lobby,
    token: &'a str,
    is_admitted: bool,
}

impl Drop for Showing<'_> {
    fn drop(&mut self) {
        if !self.is_admitted {
            self.lobby.state().shown.remove(self.token);
        }
    }
}

/// A player whom the game server admitted.
#[derive(Clone, Debug)]
pub struct Player {
    lobby: Lobby,
    token: String,
    details: ConnectPlayerResponse,
}

impl Player {
    /// Names the player within the lobby, also after coming back.
    #[must_use]
    pub fn id(&self) -> &str {
        self.details.player_id.as_deref().unwrap_or(&self.token)
    }

    /// The player's lobby.
    #[must_use]
    pub const fn lobby(&self) -> &Lobby {
        &self.lobby
    }

    /// What the client says of its player, whether another connection may be open, and whose party it is.
    #[must_use]
    pub const fn details(&self) -> &ConnectPlayerResponse {
        &self.details
    }

    /// Reports that the player's connection ended; the seat is kept for so long, by default as the mode says.
    ///
    /// # Errors
    /// [`Error`]; nothing is wrong where the lobby has ended.
    pub async fn disconnected(&self, keep: Option<Duration>) -> Result<(), Error> {
        unless_over(self.lobby.disconnected(&self.token, keep).await)
    }

    /// Frees the player's seat, and keeps the player out of this lobby for so long; 8 hours by default.
    ///
    /// # Errors
    /// As [`Self::disconnected`].
    pub async fn remove(&self, exclude: Option<Duration>) -> Result<(), Error> {
        self.lobby.state().connected.remove(&self.token);
        let mut body = Map::from_iter([("player_token".to_owned(), self.token.clone().into())]);
        if let Some(exclude) = exclude {
            body.insert("exclude_seconds".to_owned(), exclude.as_secs().into());
        }
        unless_over(self.lobby.change(Method::POST, "players/remove", &Value::Object(body)).await)
    }
}
