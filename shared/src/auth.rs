//! Who asks, and what they may do: tokens in, rights out.
//!
//! A right is a value that only this module makes, so a function that takes one cannot be called without it.

use crate::{
    ambient::Ambient,
    errors::Error,
    http::Request,
    ids::{GameId, NamespaceId},
    settings::Namespace,
    store::Store,
    tokens::{Claims, CloudToken, Credential, DevelopmentHost, InvalidToken, TokenKeys, TokenKind},
};

impl From<InvalidToken> for Error {
    fn from(invalid: InvalidToken) -> Self {
        match invalid {
            InvalidToken::Broken => Self::TokenInvalid,
            InvalidToken::Expired => Self::TokenExpired,
        }
    }
}

/// The right to every cloud operation of one game.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GameRight {
    game_id: GameId,
}

impl GameRight {
    /// The game.
    #[must_use]
    pub const fn game_id(&self) -> &GameId {
        &self.game_id
    }

    /// The right of the operator, who holds the AWS credentials of the deployment.
    #[must_use]
    pub const fn of_operator(game_id: GameId) -> Self {
        Self { game_id }
    }

    /// The right to a namespace of the game, which exists.
    ///
    /// # Errors
    /// [`Error::NamespaceNotFound`]; [`Error::Unavailable`], [`Error::Bug`].
    pub async fn on_namespace(self, id: &NamespaceId, store: &Store) -> Result<NamespaceRight, Error> {
        let namespace = store.namespace(&self.game_id, id).await?.ok_or(Error::NamespaceNotFound)?;
        Ok(NamespaceRight { namespace })
    }
}

/// The right to every cloud operation on one existing namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceRight {
    namespace: Namespace,
}

impl NamespaceRight {
    /// The game.
    #[must_use]
    pub const fn game_id(&self) -> &GameId {
        &self.namespace.game_id
    }

    /// The namespace.
    #[must_use]
    pub const fn namespace_id(&self) -> &NamespaceId {
        &self.namespace.namespace_id
    }
}

/// Turns the tokens of cloud operations into rights.
#[derive(Clone, Debug)]
pub struct CloudAuth {
    store: Store,
    keys: std::sync::Arc<TokenKeys>,
    ambient: Ambient,
}

impl CloudAuth {
    /// Rights as the tables and `keys` know them; the keys tell a token of the wrong kind from a broken one.
    #[must_use]
    pub const fn new(store: Store, keys: std::sync::Arc<TokenKeys>, ambient: Ambient) -> Self {
        Self { store, keys, ambient }
    }

    /// The right that the request's token gives on `game_id`. One consistent read.
    ///
    /// # Errors
    /// [`Error::Unauthorized`], [`Error::TokenInvalid`], [`Error::TokenExpired`], [`Error::TokenRevoked`],
    /// [`Error::WrongTokenKind`], [`Error::Forbidden`]; [`Error::Unavailable`], [`Error::Bug`].
    pub async fn game(&self, request: &Request, game_id: &GameId) -> Result<GameRight, Error> {
        let text = request.bearer().ok_or(Error::Unauthorized)?;
        let Some(token) = CloudToken::parse(text) else {
            self.keys.verify(text, self.ambient.now())?;
            return Err(Error::WrongTokenKind);
        };
        let record = self.store.cloud_token(&token).await?.ok_or(Error::TokenInvalid)?;
        if record.revoked_at.is_some() {
            return Err(Error::TokenRevoked);
        }
        if record.game_id != *game_id {
            return Err(Error::Forbidden);
        }
        Ok(GameRight { game_id: record.game_id })
    }

    /// The right on an existing namespace of `game_id`. Two consistent reads.
    ///
    /// # Errors
    /// As [`CloudAuth::game`] and [`GameRight::on_namespace`].
    pub async fn namespace(
        &self,
        request: &Request,
        game_id: &GameId,
        namespace_id: &NamespaceId,
    ) -> Result<NamespaceRight, Error> {
        self.game(request, game_id).await?.on_namespace(namespace_id, &self.store).await
    }
}

/// Who asks a matchmaker operation for players.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caller {
    /// A developer, who gets mock answers.
    Developer(Credential, DevelopmentHost),
    /// A player with the namespace's public token.
    Player(Credential),
    /// Nobody in particular: a web page may still speak for its namespace by its origin.
    Anonymous,
}

impl Caller {
    /// Who the request's token speaks for; reads no table. A cloud token is of the wrong kind whether it exists or not.
    ///
    /// # Errors
    /// [`Error::TokenInvalid`], [`Error::TokenExpired`], [`Error::WrongTokenKind`].
    pub fn of(request: &Request, keys: &TokenKeys, ambient: &Ambient) -> Result<Self, Error> {
        let Some(text) = request.bearer() else {
            return Ok(Self::Anonymous);
        };
        if CloudToken::parse(text).is_some() {
            return Err(Error::WrongTokenKind);
        }
        match keys.verify(text, ambient.now())? {
            Claims::Development(credential, host) => Ok(Self::Developer(credential, host)),
            Claims::Public(credential) => Ok(Self::Player(credential)),
            Claims::Server(_) | Claims::Player(_) | Claims::DevelopmentPlayer => Err(Error::WrongTokenKind),
        }
    }
}

/// The right to be matched in one namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlayerRight {
    namespace_id: NamespaceId,
}

impl PlayerRight {
    /// The right that a public token gives, unless `namespace` revoked it.
    ///
    /// # Errors
    /// [`Error::TokenRevoked`].
    pub fn of_credential(credential: &Credential, namespace: &Namespace) -> Result<Self, Error> {
        if namespace.revocations.revokes(TokenKind::Public, credential) {
            return Err(Error::TokenRevoked);
        }
        Ok(Self { namespace_id: namespace.namespace_id.clone() })
    }

    /// The right of a page whose domain is registered for `namespace`, where that is enabled.
    ///
    /// # Errors
    /// [`Error::Unauthorized`] where it is not.
    pub fn of_domain(namespace: &Namespace) -> Result<Self, Error> {
        if !namespace.enable_domain_public_auth {
            return Err(Error::Unauthorized);
        }
        Ok(Self { namespace_id: namespace.namespace_id.clone() })
    }

    /// The namespace.
    #[must_use]
    pub const fn namespace_id(&self) -> &NamespaceId {
        &self.namespace_id
    }
}
