//! `GET /cloud/games/{game_id}/namespaces/{namespace_id}/version-history`: the changes of its version, newest
//! first.

use shared::{
    base::ambient::{Timestamp, parse_time},
    function::{cloud_parts::CloudParts, config::InvalidConfig, instance::Instance, operation::Operation},
    models::errors::{Error, bad_body},
    request::Request,
    wire::VersionHistoryResponse,
};

/// The most changes in one response.
const LIMIT_MAX: u16 = 32;

/// The operation.
#[derive(Debug)]
pub struct GetVersionHistory(CloudParts);

impl Operation for GetVersionHistory {
    type Output = VersionHistoryResponse;

    const NAME: &'static str = "get-version-history";

    const PARAMETERS: &'static [&'static str] = &["anchor", "limit"];

    fn start(instance: &Instance) -> Result<Self, InvalidConfig> {
        CloudParts::of(instance).map(Self)
    }

    async fn call(&self, request: &Request) -> Result<VersionHistoryResponse, Error> {
        let right = self.0.auth.namespace(request).await?;
        let limit = match request.query("limit") {
            Some(text) => text.parse().ok().filter(|limit| (1..=LIMIT_MAX).contains(limit)),
            None => Some(LIMIT_MAX),
        };
        let limit = limit.ok_or_else(|| bad_body("limit", "must be 1 to 32"))?;
        let anchor = match request.query("anchor").filter(|anchor| !anchor.is_empty()) {
            Some(text) => parse_time(text).ok_or_else(|| bad_body("anchor", "must be a deploy_ts"))?,
            None => Timestamp::NEVER,
        };
        let history = self.0.store.version_history(right.namespace_id(), anchor, limit).await?;
        Ok(VersionHistoryResponse { versions: history.into_iter().map(Into::into).collect() })
    }
}
