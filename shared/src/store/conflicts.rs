//! Retries of single writes that met a transaction.
//!
//! DynamoDB refuses a write to an item that a transaction is changing at that moment, which in a burst the head of the
//! burst often is. The SDK does not count that among the errors that pass; it does, within milliseconds. Transactions that
//! meet each other are the caller's to repeat, see [`super::creation::CreationOutcome::Conflict`].

use aws_sdk_dynamodb::operation::{put_item::PutItemError, update_item::UpdateItemError};
use aws_smithy_runtime_api::client::{
    interceptors::context::InterceptorContext,
    orchestrator::OrchestratorError,
    retries::classifiers::{ClassifyRetry, RetryAction},
};

/// Has updates and puts repeated, after a jittered pause, that met a transaction.
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
        "writes that met a transaction"
    }
}
