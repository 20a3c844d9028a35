//! Tokens: their kinds, and the claims of each kind.

use std::{fmt, time::Duration};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::digest;
use serde::{Deserialize, Serialize};

use crate::{
    base::ambient::{Ambient, Timestamp},
    models::{
        client::ClientId,
        generations::ShownSeat,
        ids::{GameId, InvalidIdentifier, LobbyId, NamespaceId, SeatId, TokenId},
        player_data::PlayerData,
        ports::Ports,
        seats::{Membership, PlayerDetails},
    },
};

/// How long public, development and server tokens live.
pub const CREDENTIAL_LIFE: Duration = Duration::from_secs(365 * 24 * 3_600);

/// The kinds of token, each with a prefix of its own.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum TokenKind {
    /// Every cloud operation of one game.
    Cloud,
    /// The matchmaker operations of one namespace, for players.
    Public,
    /// Mock responses of the matchmaker operations, for developers.
    Development,
    /// Registration of game servers in one namespace.
    Server,
    /// One lobby, for its lobby server.
    Lobby,
    /// One seat in one lobby.
    Player,
    /// The mock of a player token; real lobbies refuse it.
    DevelopmentPlayer,
}

impl TokenKind {
    const ALL: [Self; 7] = [
        Self::Cloud,
        Self::Public,
        Self::DevelopmentPlayer,
        Self::Development,
        Self::Server,
        Self::Lobby,
        Self::Player,
    ];

    /// Its name in records.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Where its holder gets one, for messages.
    #[must_use]
    pub const fn source(self) -> &'static str {
        match self {
            Self::Cloud => "`muster token create cloud GAME`",
            Self::Public => "`muster token create public GAME/NAMESPACE`",
            Self::Development => "`muster token create development GAME/NAMESPACE`",
            Self::Server => "`muster token create server GAME/NAMESPACE`",
            Self::Lobby => "the heartbeat of its game server",
            Self::Player | Self::DevelopmentPlayer => "a find",
        }
    }

    pub(crate) const fn prefix(self) -> &'static str {
        match self {
            Self::Cloud => "cloud_",
            Self::Public => "pub_",
            Self::Development => "dev_",
            Self::Server => "server_",
            Self::Lobby => "lobby_",
            Self::Player => "player_",
            Self::DevelopmentPlayer => "dev_player_",
        }
    }

    /// The kind and the rest of a token's text. In `ALL`, a longer prefix precedes its own beginning.
    #[must_use]
    pub fn split(token: &str) -> Option<(Self, &str)> {
        Self::ALL.into_iter().find_map(|kind| Some((kind, token.strip_prefix(kind.prefix())?)))
    }
}

/// The claims of a namespace's credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    /// The game of the namespace.
    pub game_id: GameId,
    /// The token's namespace.
    pub namespace_id: NamespaceId,
    /// The token's own identifier, by which it can be revoked.
    pub token_id: TokenId,
    /// When it was issued, in whole seconds.
    pub issued_at: Timestamp,
}

impl Credential {
    /// A new credential, issued now.
    #[must_use]
    pub fn fresh(game_id: &GameId, namespace_id: &NamespaceId, ambient: &Ambient) -> Self {
        Self {
            game_id: game_id.clone(),
            namespace_id: namespace_id.clone(),
            token_id: ambient.uuid().into(),
            issued_at: Timestamp(ambient.now().secs() * 1_000),
        }
    }

    /// When its token expires.
    #[must_use]
    pub fn expires_at(&self) -> Timestamp {
        self.issued_at + CREDENTIAL_LIFE
    }
}

/// The server token that registered a game server, or renewed it last. As text, the time of its issue in
/// whole seconds and its identifier, joined by `/`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Owner {
    /// The token's identifier.
    pub token_id: TokenId,
    /// When it was issued, in whole seconds.
    pub issued_at: Timestamp,
}

impl From<&Credential> for Owner {
    fn from(credential: &Credential) -> Self {
        Self { token_id: credential.token_id.clone(), issued_at: credential.issued_at }
    }
}

impl From<Owner> for String {
    fn from(owner: Owner) -> Self {
        format!("{}/{}", owner.issued_at.secs(), owner.token_id)
    }
}

impl TryFrom<String> for Owner {
    type Error = InvalidIdentifier;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let (secs, token_id) = text.split_once('/').ok_or(InvalidIdentifier)?;
        let secs: u64 = secs.parse().map_err(|_| InvalidIdentifier)?;
        Ok(Self { token_id: token_id.parse()?, issued_at: Timestamp::default() + Duration::from_secs(secs) })
    }
}

/// The data of a development token for its mock responses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DevelopmentHost {
    /// The developer's machine.
    pub hostname: String,
    /// Its ports; their hostname is overridden by `hostname`.
    pub ports: Ports,
}

/// The lobby that a lobby token stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LobbyClaims {
    /// The game server's credential that obtained the token, in the lobby's namespace. If it is revoked, so
    /// is the token.
    pub server: Credential,
    /// The lobby.
    pub lobby_id: LobbyId,
}

/// The seat that a player token stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlayerSeat {
    /// The namespace of the lobby.
    pub namespace_id: NamespaceId,
    /// The lobby.
    pub lobby_id: LobbyId,
    /// The seat in it.
    pub seat_id: SeatId,
    /// How many tokens of the seat there were before this one.
    pub generation: u32,
    /// The client that holds it, if the namespace has a cap of seats.
    pub client: Option<ClientId>,
    /// The party with which its player took it.
    pub membership: Option<Membership>,
    /// What its player's client says of the player.
    pub data: Option<PlayerData>,
}

impl PlayerSeat {
    /// Its player as the lobby server sees it, whose connection may have `replaced` another one.
    #[must_use]
    pub fn details(&self, replaced: bool) -> PlayerDetails {
        PlayerDetails {
            player_id: self.seat_id.to_string(),
            generation: self.generation,
            replaced,
            membership: self.membership.clone(),
            player_data: self.data.clone(),
        }
    }

    /// The seat as its lobby judges it.
    #[must_use]
    pub fn shown(&self) -> ShownSeat {
        ShownSeat { seat_id: self.seat_id.clone(), generation: self.generation }
    }
}

/// The player of a mock response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MockPlayer {
    /// The player's name: the identifier of the first token.
    pub token_id: TokenId,
    /// How many tokens of the player there were before this one.
    pub generation: u32,
    /// What the player's client says of the player.
    pub data: Option<PlayerData>,
    /// The developer's machine, to which the response leads.
    pub host: DevelopmentHost,
}

impl MockPlayer {
    /// The player as the developer's lobby server sees it.
    #[must_use]
    pub fn details(&self) -> PlayerDetails {
        PlayerDetails {
            player_id: self.token_id.to_string(),
            generation: self.generation,
            replaced: self.generation > 0,
            membership: None,
            player_data: self.data.clone(),
        }
    }

    /// The player with the next token.
    #[must_use]
    pub fn again(self) -> Self {
        Self { generation: self.generation.saturating_add(1), ..self }
    }
}

/// The claims of a verified token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claims {
    /// A public token.
    Public(Credential),
    /// A development token.
    Development(Credential, DevelopmentHost),
    /// A server token.
    Server(Credential),
    /// A lobby token.
    Lobby(LobbyClaims),
    /// A player token.
    Player(PlayerSeat),
    /// A player token of a mock response.
    DevelopmentPlayer(MockPlayer),
}

impl Claims {
    /// The kind of the token.
    #[must_use]
    pub const fn kind(&self) -> TokenKind {
        match self {
            Self::Public(_) => TokenKind::Public,
            Self::Development(..) => TokenKind::Development,
            Self::Server(_) => TokenKind::Server,
            Self::Lobby(_) => TokenKind::Lobby,
            Self::Player(_) => TokenKind::Player,
            Self::DevelopmentPlayer(_) => TokenKind::DevelopmentPlayer,
        }
    }
}

/// Why a token is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidToken {
    /// No token of Muster's, or cut or changed.
    #[error("the token is malformed")]
    Malformed,
    /// Signed with a key that this deployment does not know.
    #[error("the token was signed with another key")]
    SignedElsewhere,
    /// Expired.
    #[error("the token has expired")]
    Expired,
}

/// The kinds of credential without further data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CredentialKind {
    /// For players.
    Public,
    /// For game servers.
    Server,
}

impl From<CredentialKind> for TokenKind {
    fn from(kind: CredentialKind) -> Self {
        match kind {
            CredentialKind::Public => Self::Public,
            CredentialKind::Server => Self::Server,
        }
    }
}

/// A cloud token's text: 32 random bytes behind its prefix.
#[derive(Clone, PartialEq, Eq)]
pub struct CloudToken(String);

impl CloudToken {
    const SECRET_BYTES: usize = 32;

    /// A fresh token.
    #[must_use]
    pub fn random(ambient: &Ambient) -> Self {
        let secret = URL_SAFE_NO_PAD.encode(ambient.bytes::<{ Self::SECRET_BYTES }>());
        Self(format!("{}{secret}", TokenKind::Cloud.prefix()))
    }

    /// A token from a request; `None` when it does not have the form of a cloud token.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let secret = text.strip_prefix(TokenKind::Cloud.prefix())?;
        let bytes = URL_SAFE_NO_PAD.decode(secret).ok()?;
        (bytes.len() == Self::SECRET_BYTES).then(|| Self(text.to_owned()))
    }

    /// The text, which its owner sees once.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The SHA-256 of the text in hexadecimal: all that is stored.
    #[must_use]
    pub fn digest(&self) -> String {
        let digest = digest::digest(&digest::SHA256, self.0.as_bytes());
        digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl fmt::Debug for CloudToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CloudToken(..)")
    }
}
