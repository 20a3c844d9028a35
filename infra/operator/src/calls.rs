//! Failed calls of AWS, in words.

use std::error::Error;

use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};

use crate::deployment::TargetError;

/// Parts of the codes by which services of AWS refuse credentials.
const DENIALS: [&str; 6] = [
    "AccessDenied",
    "ExpiredToken",
    "InvalidClientTokenId",
    "InvalidSignature",
    "SignatureDoesNotMatch",
    "UnrecognizedClient",
];

/// What a failed call means for its user. `refusal` makes an error of the text of any other refusal.
pub(crate) fn problem<E: ProvideErrorMetadata + Error + 'static, R>(
    error: &SdkError<E, R>,
    refusal: impl FnOnce(String) -> TargetError,
) -> TargetError
where
    SdkError<E, R>: Error,
{
    let SdkError::ServiceError(service) = error else {
        let cause = root_cause(error);
        // A request without credentials is not sent at all.
        return if cause.contains("credential") {
            TargetError::Denied(format!("there are none: {cause}"))
        } else {
            TargetError::Unreachable(cause)
        };
    };
    let code = service.err().code().unwrap_or("no code");
    let text = format!("{code}: {}", service.err().message().unwrap_or("no message"));
    if DENIALS.iter().any(|denial| code.contains(denial)) { TargetError::Denied(text) } else { refusal(text) }
}

/// The root cause of the client's errors, whose own texts say less.
pub(crate) fn root_cause(mut error: &dyn Error) -> String {
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}
