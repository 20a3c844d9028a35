//! Requests that were refused because their IP address held as many seats as it may, as a deployment counts
//! them.

use crate::{cost::counts, doctor::RefusalsByAddress, target::Target};

/// All since the local stack started, or those of the last hour in AWS.
pub(crate) async fn by_address(target: &Target) -> RefusalsByAddress {
    if let Some(counts) = target.local_counts().await {
        let count = counts.map(|counts| counts.refused_by_address);
        return RefusalsByAddress { span: "since the stack started", count };
    }
    let count = match target.described().await {
        Ok(stack) => counts::refused_by_address(&stack).await,
        Err(error) => Err(error.to_string()),
    };
    RefusalsByAddress { span: "in the last hour", count }
}
