//! Retries of single writes that conflict with a transaction, and the reasons that canceled one.
//!
//! DynamoDB refuses a write to an item that a transaction is changing at that moment, which in a burst the
//! head of the burst often is. The SDK does not count that as a transient error, though it passes within
//! milliseconds. Callers retry transactions that conflict with each other, see
//! [`super::creation::CreationOutcome::Conflict`].

use aws_sdk_dynamodb::{
    operation::{put_item::PutItemError, update_item::UpdateItemError},
    types::CancellationReason,
};
use aws_smithy_runtime_api::client::{
    interceptors::context::InterceptorContext,
    orchestrator::OrchestratorError,
    retries::classifiers::{ClassifyRetry, RetryAction},
};

/// Retries updates and puts that conflict with a transaction, after a jittered pause.
#[derive(Debug)]
pub(super) struct RetryConflicts;

impl ClassifyRetry for RetryConflicts {
    fn classify_retry(&self, context: &InterceptorContext) -> RetryAction {
        let error =
            context.output_or_error().and_then(Result::err).and_then(OrchestratorError::as_operation_error);
        let update = error.and_then(|error| error.downcast_ref::<UpdateItemError>());
        let put = error.and_then(|error| error.downcast_ref::<PutItemError>());
        if update.is_some_and(UpdateItemError::is_transaction_conflict_exception)
            || put.is_some_and(PutItemError::is_transaction_conflict_exception)
        {
            RetryAction::transient_error()
        } else {
            RetryAction::NoActionIndicated
        }
    }

    fn name(&self) -> &'static str {
        "writes that conflict with a transaction"
    }
}

/// Why the condition of a canceled transaction's part did not hold, if it did not.
pub(super) fn refused(reasons: &[CancellationReason], part: usize) -> Option<&CancellationReason> {
    reasons.get(part).filter(|reason| reason.code() == Some("ConditionalCheckFailed"))
}

/// Whether a canceled transaction's part was accepted, without even a conflict.
pub(super) fn is_accepted(reasons: &[CancellationReason], part: usize) -> bool {
    reasons.get(part).is_none_or(|reason| reason.code().is_none_or(|code| code == "None"))
}
