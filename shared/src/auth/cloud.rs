//! Tokens of cloud operations in, rights out.

use std::sync::Arc;

use crate::{
    auth::keys::TokenKeys,
    base::ambient::Ambient,
    models::{
        errors::{Error, TokenFault},
        ids::{GameId, NamespaceId},
        rights::{GameRight, NamespaceRight},
        token::{CloudToken, TokenKind},
    },
    request::Request,
    store::client::Store,
};

/// Turns the tokens of cloud operations into rights.
#[derive(Clone, Debug)]
pub struct CloudAuth {
    store: Store,
    keys: Arc<TokenKeys>,
    ambient: Ambient,
}

impl CloudAuth {
    /// Rights by the tables. The `keys` distinguish a token of another kind from an invalid one.
    #[must_use]
    pub const fn new(store: Store, keys: Arc<TokenKeys>, ambient: Ambient) -> Self {
        Self { store, keys, ambient }
    }

    /// The right that the request's token gives on the game of its path. One consistent read.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Unauthorized`], [`Error::TokenInvalid`], [`Error::TokenExpired`],
    /// [`Error::TokenRevoked`], [`Error::WrongTokenKind`], [`Error::Forbidden`]; [`Error::Unavailable`],
    /// [`Error::Bug`].
    pub async fn game(&self, request: &Request) -> Result<GameRight, Error> {
        let game_id: GameId = request.path("game_id")?;
        let text = request.bearer().ok_or(Error::Unauthorized)?;
        let Some(token) = CloudToken::parse(text) else {
            let shown = self.keys.verify(text, self.ambient.now())?.kind();
            return Err(Error::WrongTokenKind { shown, needed: TokenKind::Cloud });
        };
        let record =
            self.store.cloud_token(&token).await?.ok_or(Error::TokenInvalid(TokenFault::NoCloudToken))?;
        if record.revoked_at.is_some() {
            return Err(Error::TokenRevoked);
        }
        if record.game_id != game_id {
            return Err(Error::Forbidden);
        }
        Ok(GameRight::of_token(record.game_id))
    }

    /// The right on the namespace of its path, which exists. Two consistent reads.
    ///
    /// # Errors
    /// As [`CloudAuth::game`] and [`GameRight::on_namespace`].
    pub async fn namespace(&self, request: &Request) -> Result<NamespaceRight, Error> {
        let namespace_id: NamespaceId = request.path("namespace_id")?;
        self.game(request).await?.on_namespace(&namespace_id, &self.store).await
    }
}
