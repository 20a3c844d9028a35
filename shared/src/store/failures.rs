//! Errors of failed calls.

use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};

use crate::models::errors::Error;

/// Codes of DynamoDB's transient errors.
const PASSING_CODES: [&str; 9] = [
    "InternalServerError",
    "LimitExceededException",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "ServiceUnavailable",
    "ThrottlingException",
    "TransactionCanceledException",
    "TransactionConflictException",
    "TransactionInProgressException",
];

/// Codes of refusals of the caller's credentials.
const DENIED_CODES: [&str; 5] = [
    "AccessDeniedException",
    "ExpiredTokenException",
    "InvalidSignatureException",
    "MissingAuthenticationTokenException",
    "UnrecognizedClientException",
];

/// Whether DynamoDB refused the caller's credentials: a defect of a deployment for its functions, no defect
/// for an operator.
#[must_use]
pub fn is_denial(error: &Error) -> bool {
    let cause = error.cause().unwrap_or_default();
    DENIED_CODES.iter().any(|code| cause.starts_with(&format!("DynamoDB: {code}: ")))
}

pub(super) fn failure<E: ProvideErrorMetadata + std::error::Error + 'static>(error: &SdkError<E>) -> Error {
    let cause = describe(error);
    match error {
        SdkError::ServiceError(service) => {
            let passing = service.err().code().is_some_and(|code| PASSING_CODES.contains(&code));
            if passing || service.raw().status().is_server_error() {
                Error::Unavailable(cause)
            } else {
                Error::Bug(cause)
            }
        }
        SdkError::ConstructionFailure(_) => Error::Bug(cause),
        _ => Error::Unavailable(cause),
    }
}

fn describe<E: ProvideErrorMetadata + std::error::Error + 'static>(error: &SdkError<E>) -> String {
    match error {
        SdkError::ServiceError(service) => {
            let code = service.err().code().unwrap_or("no code");
            format!("DynamoDB: {code}: {}", service.err().message().unwrap_or("no message"))
        }
        other => {
            let mut text = format!("DynamoDB: {other}");
            let mut source = std::error::Error::source(other);
            while let Some(inner) = source {
                text = format!("{text}: {inner}");
                source = inner.source();
            }
            text
        }
    }
}
