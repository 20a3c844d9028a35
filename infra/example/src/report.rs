//! The events of a session, a line for each, and their summary.

use std::{collections::BTreeSet, fmt, str::FromStr};

use tokio::sync::mpsc;

/// An event.
#[derive(Clone, Debug)]
pub enum Event {
    /// A note.
    Note(String),
    /// An event in the lobby with that identifier.
    Lobby(String, Change),
}

/// A change of a lobby.
#[derive(Clone, Debug)]
pub enum Change {
    /// The game server saw it for the first time.
    Opened,
    /// This bot was welcomed. It found the lobby.
    Found(u32, Players),
    /// This bot was welcomed. It joined a friend.
    Joined(u32, Players),
    /// The player with that name left.
    Left(String, Players),
    /// Finds can no longer enter it.
    Closed,
    /// Finds may enter it again.
    Reopened,
    /// It ended.
    Ended,
}

/// Players of a lobby; as text, `3 of 4`.
#[derive(Clone, Copy, Debug)]
pub struct Players {
    /// Those that are connected.
    pub connected: u32,
    /// The lobby's capacity for finds; a friend may be one more.
    pub max: u32,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Note(text) => f.write_str(text),
            Self::Lobby(lobby_id, change) => write!(f, "lobby {}  {change}", short(lobby_id)),
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Opened => f.write_str("opened"),
            Self::Found(bot, players) => write!(f, "{players}  bot {bot} connected"),
            Self::Joined(bot, players) => write!(f, "{players}  bot {bot} connected, joining a friend"),
            Self::Left(name, players) => write!(f, "{players}  {name} left"),
            Self::Closed => f.write_str("closed"),
            Self::Reopened => f.write_str("reopened"),
            Self::Ended => f.write_str("ended"),
        }
    }
}

impl fmt::Display for Players {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.connected, self.max)
    }
}

impl FromStr for Players {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (connected, max) = text.split_once(" of ").ok_or(())?;
        Ok(Self { connected: connected.parse().map_err(drop)?, max: max.parse().map_err(drop)? })
    }
}

/// The first characters of an identifier, enough to distinguish a few.
pub fn short(id: &str) -> &str {
    id.get(..8).unwrap_or(id)
}

/// The sender of events of game server and bots.
#[derive(Clone)]
pub struct Events(mpsc::UnboundedSender<Event>);

impl Events {
    pub fn channel() -> (Self, mpsc::UnboundedReceiver<Event>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self(sender), receiver)
    }

    pub fn note(&self, text: String) {
        let _no_receiver = self.0.send(Event::Note(text));
    }

    pub fn of_lobby(&self, lobby_id: &str, change: Change) {
        let _no_receiver = self.0.send(Event::Lobby(lobby_id.to_owned(), change));
    }
}

/// The summary of a session; lobbies by their identifiers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The namespace's identifier.
    pub namespace_id: String,
    /// The bots that were welcomed, once for each welcome.
    pub welcomed: Vec<u32>,
    /// Those of them that joined a friend.
    pub joined: BTreeSet<u32>,
    /// The lobbies that the game server saw.
    pub opened: BTreeSet<String>,
    /// Those that were full for finds.
    pub filled: BTreeSet<String>,
    /// Those that were closed.
    pub closed: BTreeSet<String>,
    /// Those that were reopened.
    pub reopened: BTreeSet<String>,
    /// Those that ended.
    pub ended: BTreeSet<String>,
}

impl Report {
    pub(crate) fn take_in(&mut self, event: Event) {
        let Event::Lobby(lobby_id, change) = event else { return };
        match change {
            Change::Opened => self.opened.extend([lobby_id]),
            Change::Found(bot, players) | Change::Joined(bot, players) => {
                self.welcomed.push(bot);
                self.joined.extend(matches!(change, Change::Joined(..)).then_some(bot));
                self.filled.extend((players.connected >= players.max).then_some(lobby_id));
            }
            Change::Left(..) => {}
            Change::Closed => self.closed.extend([lobby_id]),
            Change::Reopened => self.reopened.extend([lobby_id]),
            Change::Ended => self.ended.extend([lobby_id]),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { welcomed, joined, opened, filled, closed, reopened, ended, .. } = self;
        write!(f, "{} players, {} joined a friend; ", welcomed.len(), joined.len())?;
        write!(f, "{} lobbies, {} filled, {} closed, ", opened.len(), filled.len(), closed.len())?;
        write!(f, "{} reopened, {} ended", reopened.len(), ended.len())
    }
}
