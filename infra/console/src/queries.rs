//! The requests of the page: a query, or a body.

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use shared::models::ids::{GameId, LobbyId, NamespaceId, SeatId, ServerId};

use crate::view::Filter;

/// A namespace.
#[derive(Clone, Debug, Deserialize)]
pub struct Named {
    /// Its game.
    pub game: GameId,
    /// The namespace.
    pub namespace: NamespaceId,
}

/// A namespace's events.
#[derive(Debug, Deserialize)]
pub struct Watched {
    /// Its game.
    pub game: GameId,
    /// The namespace.
    pub namespace: NamespaceId,
    /// Which lobbies.
    pub filter: Filter,
}

/// A lobby.
#[derive(Debug, Deserialize)]
pub struct NamedLobby {
    /// The lobby.
    pub lobby: LobbyId,
    /// Its game.
    pub game: GameId,
}

/// What is searched, in a namespace first.
#[derive(Debug, Deserialize)]
pub struct Searched {
    /// The namespace.
    pub namespace: NamespaceId,
    /// An identifier, or the beginning of one.
    pub text: String,
}

/// A time until now in which logs are searched.
#[derive(Debug, Deserialize)]
pub struct Lately {
    /// How long it is.
    pub minutes: u32,
}

/// A request.
#[derive(Debug, Deserialize)]
pub struct NamedRequest {
    /// Its identifier.
    pub request: String,
}

/// A game server of a namespace.
#[derive(Debug, Deserialize)]
pub struct NamedServer {
    /// The namespace.
    pub namespace: NamespaceId,
    /// The game server.
    pub server: ServerId,
}

/// One of the operator's commands.
#[derive(Debug, Deserialize)]
pub struct Command {
    /// Topic, action and arguments.
    pub words: Vec<String>,
    /// The text in place of a file.
    pub text: Option<String>,
}

/// The operator's token.
#[derive(Deserialize)]
pub struct Begun {
    /// The token.
    pub token: String,
}

/// An action of a player or a lobby server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    /// A player finds a lobby.
    Find,
    /// A player joins one by its identifier.
    Join,
    /// A player creates one.
    Create,
    /// A player gives up a seat.
    Leave,
    /// A player comes back to a seat.
    Rejoin,
    /// The lobby server says that it is ready.
    Ready,
    /// The lobby server lets a player in.
    Connected,
    /// The lobby server saw a player leave.
    Disconnected,
    /// A seat whose player token nobody here has is freed.
    Free,
    /// The lobby server removes a player.
    Remove,
    /// The lobby server closes or reopens it.
    Closed,
    /// The lobby server makes it public or private.
    Publicity,
    /// The lobby server ends it.
    End,
}

/// A call of the API.
#[derive(Debug, Deserialize)]
pub struct Call {
    /// The game.
    pub game: GameId,
    /// The namespace.
    pub namespace: NamespaceId,
    /// The action.
    pub act: Act,
    /// The lobby, for an action of a lobby server.
    pub lobby: Option<LobbyId>,
    /// The seat to free.
    pub seat: Option<SeatId>,
    /// The request's body.
    #[serde(default)]
    pub request: Value,
}

/// The JSON value of the parameter `q` of a query: one form for every request.
pub fn of_query<T: DeserializeOwned>(query: Option<&str>) -> Option<T> {
    let mut pairs = url::form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    let (_, value) = pairs.find(|(name, _)| name == "q")?;
    serde_json::from_str(&value).ok()
}
