//! Cloud tokens, by the digest of their text.

use serde::{Deserialize, Serialize};

use super::{Item, Store, failure, text, to_item};
use crate::{
    ambient::Timestamp,
    errors::Error,
    ids::{GameId, TokenId},
    tokens::CloudToken,
};

/// What is stored of a cloud token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CloudTokenRecord {
    /// The game whose every cloud operation it allows.
    pub game_id: GameId,
    /// Its identifier, for listing and revoking.
    pub token_id: TokenId,
    /// When it was issued.
    pub created_at: Timestamp,
    /// When it was revoked, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
}

#[derive(Serialize)]
struct StoredToken<'a> {
    digest: String,
    #[serde(flatten)]
    record: &'a CloudTokenRecord,
}

impl Store {
    /// What is known of a cloud token; nothing when it was never issued. One consistent read unit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn cloud_token(&self, token: &CloudToken) -> Result<Option<CloudTokenRecord>, Error> {
        self.read(&self.tables.tokens, Item::from([("digest".to_owned(), text(token.digest()))])).await
    }

    /// Keeps the digest of a fresh cloud token. One write unit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn add_cloud_token(&self, token: &CloudToken, record: &CloudTokenRecord) -> Result<(), Error> {
        let answer = self
            .client
            .put_item()
            .table_name(&self.tables.tokens)
            .set_item(Some(to_item(&StoredToken { digest: token.digest(), record })?))
            .return_consumed_capacity(self.meter.mode())
            .send()
            .await
            .map_err(|error| failure(&error))?;
        self.meter.wrote(answer.consumed_capacity());
        Ok(())
    }
}
