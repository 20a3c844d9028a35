//! Changes of a namespace's version, and their history.

use std::time::Duration;

use aws_sdk_dynamodb::types::CancellationReason;

use crate::{
    base::ambient::Timestamp,
    models::{
        errors::Error,
        ids::{NamespaceId, VersionId},
        namespace::{Deployment, Namespace},
        rights::NamespaceRight,
    },
    store::{
        client::Store,
        conflicts::refused,
        items::{from_item, number, text},
        keys::{game_key, key, namespace_key},
        queries::{page, query},
    },
};

/// The result of a change of version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionOutcome {
    /// The namespace runs the version, and its history has the change.
    Changed,
    /// It already ran the version.
    Unchanged,
    /// The game has no such version, or has retired it.
    UnknownVersion,
}

/// Tries of one change of version while others change it, too.
const VERSION_CHANGE_ATTEMPTS: usize = 16;

enum VersionAttempt {
    Done(VersionOutcome),
    /// The namespace changed at this time, which is not earlier than the one tried.
    Behind(Timestamp),
    /// Another transaction was under way.
    Conflict,
}

impl Store {
    /// Changes the version of a namespace and writes its history, in one transaction.
    ///
    /// Concurrent changes get an order: the history's newest entry always is the namespace's version.
    ///
    /// # Errors
    /// [`Error::NamespaceNotFound`] when the namespace has gone meanwhile; [`Error::Unavailable`],
    /// [`Error::Bug`].
    pub async fn set_version(
        &self,
        right: &NamespaceRight,
        version_id: &VersionId,
        now: Timestamp,
    ) -> Result<VersionOutcome, Error> {
        let mut at = now;
        for _ in 0..VERSION_CHANGE_ATTEMPTS {
            match self.try_set_version(right, version_id, at).await? {
                VersionAttempt::Done(outcome) => return Ok(outcome),
                VersionAttempt::Behind(last) => at = last + Duration::from_millis(1),
                VersionAttempt::Conflict => {}
            }
        }
        Err(Error::Unavailable("DynamoDB: too many changes of version at once".to_owned()))
    }

    async fn try_set_version(
        &self,
        right: &NamespaceRight,
        version_id: &VersionId,
        deployed_at: Timestamp,
    ) -> Result<VersionAttempt, Error> {
        let switch = self
            .on_catalog(key(game_key(right.game_id()), namespace_key(right.namespace_id())))
            .change("SET #version_id = :version, #deployed_at = :at")
            .when("attribute_exists(#sk) AND #version_id <> :version AND #deployed_at < :at")
            .with(":version", text(version_id.as_str()))
            .with(":at", number(deployed_at));
        let deployment = Deployment {
            namespace_id: right.namespace_id().clone(),
            version_id: version_id.clone(),
            deployed_at,
        };
        let check = self.check_in_use(right.game_id(), version_id);
        let parts = vec![switch, check, self.put_new(deployment.key(), &deployment)?];
        match self.transact(parts).await? {
            Ok(()) => Ok(VersionAttempt::Done(VersionOutcome::Changed)),
            Err(reasons) => read_version_refusal(&reasons, version_id),
        }
    }

    /// The last changes of a namespace's version before `before`, newest first, at most `limit`. One query.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn version_history(
        &self,
        namespace_id: &NamespaceId,
        before: Timestamp,
        limit: u16,
    ) -> Result<Vec<Deployment>, Error> {
        let query = query(self, &self.tables.catalog, "#pk = :pk AND #sk < :before")
            .consistent_read(true)
            .scan_index_forward(false)
            .limit(limit.into())
            .expression_attribute_values(":pk", text(format!("HISTORY#{namespace_id}")))
            .expression_attribute_values(":before", text(Deployment::sort_key(before)));
        Ok(page(self, query).await?.0)
    }
}

fn read_version_refusal(reasons: &[CancellationReason], wanted: &VersionId) -> Result<VersionAttempt, Error> {
    let seen = refused(reasons, 0).map(|reason| {
        let item = reason.item().filter(|item| !item.is_empty()).ok_or(Error::NamespaceNotFound)?;
        from_item::<Namespace>(item.clone())
    });
    Ok(match (seen.transpose()?, refused(reasons, 1)) {
        (Some(namespace), _) if namespace.version_id == *wanted => {
            VersionAttempt::Done(VersionOutcome::Unchanged)
        }
        (_, Some(_)) => VersionAttempt::Done(VersionOutcome::UnknownVersion),
        (Some(namespace), None) => VersionAttempt::Behind(namespace.deployed_at),
        (None, None) => VersionAttempt::Conflict,
    })
}
