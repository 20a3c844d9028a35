//! Issuing tokens: the store keeps each token's identifier, never its text, so that it can be listed and
//! revoked.

use std::{sync::Arc, time::Duration};

use crate::{
    auth::keys::TokenKeys,
    base::ambient::Ambient,
    models::{
        errors::Error,
        ids::TokenId,
        rights::{GameRight, NamespaceRight},
        token::{CloudToken, Credential, CredentialKind, DevelopmentHost, TokenKind},
    },
    store::{client::Store, tokens::IssuedToken},
};

/// Issues the tokens that live longer than a lobby.
#[derive(Clone, Debug)]
pub struct Issuer {
    store: Store,
    keys: Arc<TokenKeys>,
    ambient: Ambient,
}

impl Issuer {
    /// An issuer that signs with `keys` and lists tokens in `store`.
    #[must_use]
    pub const fn new(store: Store, keys: Arc<TokenKeys>, ambient: Ambient) -> Self {
        Self { store, keys, ambient }
    }

    /// Issues a public or server token of a namespace. Two write units.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn credential(&self, right: &NamespaceRight, kind: CredentialKind) -> Result<String, Error> {
        let credential = self.noted(right, kind.into()).await?;
        Ok(self.keys.issue_credential(kind, &credential))
    }

    /// Issues a public or server token of a namespace that expires after `life`. Returns its identifier, too,
    /// by which it can be revoked before. Two write units.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn short_lived(
        &self,
        right: &NamespaceRight,
        kind: CredentialKind,
        life: Duration,
    ) -> Result<(TokenId, String), Error> {
        let credential = Credential::fresh(right.game_id(), right.namespace_id(), &self.ambient);
        let issued = IssuedToken {
            expires_at: Some(credential.issued_at + life),
            ..IssuedToken::of_credential(kind.into(), &credential)
        };
        self.store.add_issued_token(&issued).await?;
        let token = self.keys.issue_credential_for(life, kind, &credential);
        Ok((credential.token_id, token))
    }

    /// Issues a development token of a namespace. Two write units.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn development(&self, right: &NamespaceRight, host: DevelopmentHost) -> Result<String, Error> {
        let credential = self.noted(right, TokenKind::Development).await?;
        Ok(self.keys.issue_development(&credential, host))
    }

    /// Issues a cloud token of a game. Four write units.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn cloud(&self, right: &GameRight) -> Result<CloudToken, Error> {
        issue_cloud_token(&self.store, &self.ambient, right).await
    }

    /// A credential, listed before its token is issued, so that every token can be revoked.
    async fn noted(&self, right: &NamespaceRight, kind: TokenKind) -> Result<Credential, Error> {
        let credential = Credential::fresh(right.game_id(), right.namespace_id(), &self.ambient);
        self.store.add_issued_token(&IssuedToken::of_credential(kind, &credential)).await?;
        Ok(credential)
    }
}

/// Issues a cloud token of a game; no key signs it. Four write units.
///
/// # Errors
/// [`Error::Unavailable`], [`Error::Bug`].
pub async fn issue_cloud_token(
    store: &Store,
    ambient: &Ambient,
    right: &GameRight,
) -> Result<CloudToken, Error> {
    let token = CloudToken::random(ambient);
    let issued = IssuedToken::cloud(right.game_id().clone(), ambient.uuid().into(), ambient.now());
    store.add_cloud_token(&token, &issued).await?;
    Ok(token)
}
