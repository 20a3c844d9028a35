//! Tokens of matchmaker operations, and origins of web pages, in; rights out.
//!
//! Only this file makes rights, so a function that takes one cannot be called without authorization.

use std::sync::Arc;

use crate::{
    auth::{
        keys::{PLAYER_TOKEN_LIFE, TokenKeys},
        settings::{Settings, SettingsCache},
    },
    base::ambient::{Ambient, Timestamp},
    models::{
        client::Client,
        errors::{Error, TokenFault},
        ids::{GameId, LobbyId, NamespaceId, ServerId},
        seats::PlayerDetails,
        token::{
            Claims, CloudToken, Credential, DevelopmentHost, LobbyClaims, MockPlayer, Owner, PlayerSeat,
            TokenKind,
        },
        warnings::Warning,
    },
    request::Request,
};

/// The caller of a matchmaker operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caller {
    /// A developer, who gets mock responses.
    Developer(Credential, DevelopmentHost),
    /// A player with the namespace's public token.
    Player(Credential),
    /// A game server with the namespace's server token.
    GameServer(Credential),
    /// A lobby server with the token of its lobby.
    Lobby(LobbyClaims),
    /// A caller without a token, which may be a web page that is authorized by its origin.
    Anonymous,
}

impl Caller {
    /// The refusal of an operation that `needed` tokens alone allow.
    const fn refused(&self, needed: TokenKind) -> Error {
        let shown = match self {
            Self::Developer(..) => TokenKind::Development,
            Self::Player(_) => TokenKind::Public,
            Self::GameServer(_) => TokenKind::Server,
            Self::Lobby(_) => TokenKind::Lobby,
            Self::Anonymous => return Error::Unauthorized,
        };
        Error::WrongTokenKind { shown, needed }
    }
}

/// Turns the tokens of matchmaker operations, and the origins of web pages, into rights.
#[derive(Clone, Debug)]
pub struct MatchmakerAuth {
    settings: Arc<SettingsCache>,
    keys: Arc<TokenKeys>,
    ambient: Ambient,
}

impl MatchmakerAuth {
    /// Rights by `settings` and `keys`.
    #[must_use]
    pub const fn new(settings: Arc<SettingsCache>, keys: Arc<TokenKeys>, ambient: Ambient) -> Self {
        Self { settings, keys, ambient }
    }

    /// The keys that tokens are signed with.
    #[must_use]
    pub fn keys(&self) -> &TokenKeys {
        &self.keys
    }

    /// The settings that decide about rights.
    #[must_use]
    pub fn settings(&self) -> &SettingsCache {
        &self.settings
    }

    /// The caller of an operation for `needed` tokens, by the request's token; reads no table. Any cloud
    /// token is of the wrong kind, even one that does not exist. A developer's request gets a warning.
    ///
    /// # Errors
    /// [`Error::TokenInvalid`], [`Error::TokenExpired`], [`Error::WrongTokenKind`].
    pub fn caller(&self, request: &Request, needed: TokenKind) -> Result<Caller, Error> {
        let Some(text) = request.bearer() else {
            return Ok(Caller::Anonymous);
        };
        if CloudToken::parse(text).is_some() {
            return Err(Error::WrongTokenKind { shown: TokenKind::Cloud, needed });
        }
        match self.keys.verify(text, self.ambient.now())? {
            Claims::Development(credential, host) => {
                request.warn(Warning::Mock);
                Ok(Caller::Developer(credential, host))
            }
            Claims::Public(credential) => Ok(Caller::Player(credential)),
            Claims::Server(credential) => Ok(Caller::GameServer(credential)),
            Claims::Lobby(claims) => Ok(Caller::Lobby(claims)),
            Claims::Player(_) | Claims::DevelopmentPlayer(_) => {
                Err(Error::WrongTokenKind { shown: TokenKind::Player, needed })
            }
        }
    }

    /// The developer's machine, to which mock responses lead; `None` if `caller` is no developer.
    ///
    /// # Errors
    /// [`Error::TokenInvalid`] when the token's namespace is gone, [`Error::TokenRevoked`];
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn developer<'a>(&self, caller: &'a Caller) -> Result<Option<&'a DevelopmentHost>, Error> {
        match caller {
            Caller::Developer(credential, host) => {
                self.settings_of(credential, TokenKind::Development).await?;
                Ok(Some(host))
            }
            _ => Ok(None),
        }
    }

    /// The player whose token a developer's lobby server sends.
    ///
    /// # Errors
    /// [`Error::BodyTokenInvalid`] for anything but the player token of a mock response.
    pub fn mock_player(&self, token: &str) -> Result<PlayerDetails, Error> {
        match self.keys.verify(token, self.ambient.now()) {
            Ok(Claims::DevelopmentPlayer(player)) => Ok(player.details()),
            _ => Err(Error::BodyTokenInvalid),
        }
    }

    /// The right of a player, or of a page of a registered domain, with the settings of its namespace.
    ///
    /// # Errors
    /// [`Error::Unauthorized`], [`Error::TokenInvalid`], [`Error::TokenRevoked`], [`Error::WrongTokenKind`];
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn player(
        &self,
        caller: Caller,
        request: &Request,
    ) -> Result<(PublicRight, Arc<Settings>), Error> {
        let (credential, settings) = match caller {
            Caller::Player(credential) => {
                let settings = self.settings_of(&credential, TokenKind::Public).await?;
                (credential.token_id.into(), settings)
            }
            Caller::Anonymous => {
                let host = request.origin().ok_or(Error::Unauthorized)?;
                let owner = self.settings.domain_owner(&host).await?.ok_or(Error::Unauthorized)?;
                let settings = self.settings.settings(&owner.game_id, &owner.namespace_id).await?;
                let enabled = settings.filter(|settings| settings.namespace.enable_domain_public_auth);
                (host.to_string(), enabled.ok_or(Error::Unauthorized)?)
            }
            other => return Err(other.refused(TokenKind::Public)),
        };
        Ok((PublicRight { namespace_id: settings.namespace.namespace_id.clone(), credential }, settings))
    }

    /// The right of a game server, with the settings of its namespace.
    ///
    /// # Errors
    /// As [`MatchmakerAuth::player`].
    pub async fn game_server(&self, caller: Caller) -> Result<(GameServerRight, Arc<Settings>), Error> {
        match caller {
            Caller::GameServer(credential) => {
                let settings = self.settings_of(&credential, TokenKind::Server).await?;
                Ok((GameServerRight { credential }, settings))
            }
            other => Err(other.refused(TokenKind::Server)),
        }
    }

    /// The right on a lobby, by a lobby token whose game server's credential has not been revoked. The store
    /// checks whether the lobby still lives.
    ///
    /// # Errors
    /// As [`MatchmakerAuth::player`].
    pub async fn lobby(&self, caller: Caller) -> Result<LobbyRight, Error> {
        match caller {
            Caller::Lobby(claims) => {
                self.settings_of(&claims.server, TokenKind::Server).await?;
                Ok(LobbyRight { claims })
            }
            other => Err(other.refused(TokenKind::Lobby)),
        }
    }

    /// The right on a seat, by its player token in a request's body. It may have expired, as a seat is freed
    /// even then. The store checks whether the seat is still held.
    ///
    /// # Errors
    /// [`Error::BodyTokenInvalid`].
    pub fn seat(&self, token: &str) -> Result<SeatRight, Error> {
        seat(&self.keys, &self.ambient, token)
    }

    /// The settings of a credential's namespace, which must not have revoked it.
    async fn settings_of(&self, credential: &Credential, kind: TokenKind) -> Result<Arc<Settings>, Error> {
        let settings = self.settings.settings(&credential.game_id, &credential.namespace_id).await?;
        let settings = settings.ok_or(Error::TokenInvalid(TokenFault::NoNamespace))?;
        if settings.namespace.revocations.revokes(kind, credential) {
            return Err(Error::TokenRevoked);
        }
        Ok(settings)
    }
}

/// Turns the tokens that players send themselves into rights. It reads no table.
#[derive(Clone, Debug)]
pub struct PlayerAuth {
    keys: Arc<TokenKeys>,
    ambient: Ambient,
}

impl PlayerAuth {
    /// Rights by `keys`.
    #[must_use]
    pub const fn new(keys: Arc<TokenKeys>, ambient: Ambient) -> Self {
        Self { keys, ambient }
    }

    /// The keys that tokens are signed with.
    #[must_use]
    pub fn keys(&self) -> &TokenKeys {
        &self.keys
    }

    /// The right on the player's own seat, as [`MatchmakerAuth::seat`].
    ///
    /// # Errors
    /// [`Error::BodyTokenInvalid`].
    pub fn own_seat(&self, token: &str) -> Result<OwnSeat, Error> {
        match self.keys.verify_at_any_age(token) {
            Ok(Claims::DevelopmentPlayer(player)) => Ok(OwnSeat::Mock(player)),
            _ => seat(&self.keys, &self.ambient, token).map(OwnSeat::Real),
        }
    }
}

fn seat(keys: &TokenKeys, ambient: &Ambient, token: &str) -> Result<SeatRight, Error> {
    let Ok((Claims::Player(seat), expires_at)) = keys.verify_with_expiry(token) else {
        return Err(Error::BodyTokenInvalid);
    };
    Ok(SeatRight { seat, expires_at, is_expired: expires_at <= ambient.now() })
}

/// The seat that a player shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnSeat {
    /// A seat, with the right on it.
    Real(SeatRight),
    /// That of a mock response.
    Mock(MockPlayer),
}

/// The right to be matched in one namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicRight {
    namespace_id: NamespaceId,
    credential: String,
}

impl PublicRight {
    /// The namespace.
    #[must_use]
    pub const fn namespace_id(&self) -> &NamespaceId {
        &self.namespace_id
    }

    /// The credential, to distinguish callers: a public token's identifier, or a page's host.
    #[must_use]
    pub fn credential(&self) -> &str {
        &self.credential
    }
}

/// The right to the game servers of one namespace, and to end its lobbies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GameServerRight {
    credential: Credential,
}

impl GameServerRight {
    /// The game.
    #[must_use]
    pub const fn game_id(&self) -> &GameId {
        &self.credential.game_id
    }

    /// The namespace.
    #[must_use]
    pub const fn namespace_id(&self) -> &NamespaceId {
        &self.credential.namespace_id
    }

    /// Its token, which owns the game servers that it registers and renews.
    #[must_use]
    pub fn owner(&self) -> Owner {
        Owner::from(&self.credential)
    }

    /// The one game server that its token is good for, if Muster had it started.
    #[must_use]
    pub fn only(&self) -> Option<ServerId> {
        self.credential.token_id.server_of_launch()
    }

    /// The claims for the token of one of its lobbies.
    #[must_use]
    pub fn lobby_claims(&self, lobby_id: LobbyId) -> LobbyClaims {
        LobbyClaims { server: self.credential.clone(), lobby_id }
    }
}

/// The right on one lobby.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LobbyRight {
    claims: LobbyClaims,
}

impl LobbyRight {
    /// The namespace.
    #[must_use]
    pub const fn namespace_id(&self) -> &NamespaceId {
        &self.claims.server.namespace_id
    }

    /// The lobby.
    #[must_use]
    pub const fn lobby_id(&self) -> &LobbyId {
        &self.claims.lobby_id
    }
}

/// The right on one seat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeatRight {
    seat: PlayerSeat,
    expires_at: Timestamp,
    is_expired: bool,
}

impl SeatRight {
    /// The seat.
    #[must_use]
    pub const fn seat(&self) -> &PlayerSeat {
        &self.seat
    }

    /// The client that holds it, under a limit of seats per client.
    #[must_use]
    pub fn client(&self) -> Option<Client> {
        let PlayerSeat { namespace_id, client, .. } = &self.seat;
        client.clone().map(|client_id| Client { namespace_id: namespace_id.clone(), client_id })
    }

    /// When the first token of the seat was issued, with which all of them expire.
    #[must_use]
    pub fn issued_at(&self) -> Timestamp {
        self.expires_at.before(PLAYER_TOKEN_LIFE)
    }

    /// Whether its token has expired: then it only frees the seat.
    #[must_use]
    pub const fn is_expired(&self) -> bool {
        self.is_expired
    }
}
