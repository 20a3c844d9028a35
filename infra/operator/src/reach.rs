//! Why a deployment cannot be reached, in words.

#[cfg(feature = "aws")]
use std::error::Error;
use std::path::PathBuf;

#[cfg(feature = "aws")]
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};

/// Why a deployment cannot be reached.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// The command does not name one.
    #[error(
        "name a deployment: --local for the local stack, --data DIR for a served folder, or --stack NAME for a stack in AWS"
    )]
    Missing,
    /// No source of settings names an AWS region.
    #[error("no AWS region: give --aws-region, or set AWS_REGION or the region of your profile")]
    NoRegion,
    /// AWS did not respond.
    #[error("cannot reach AWS: {0}")]
    Unreachable(String),
    /// AWS refused the credentials, or there are none.
    #[error("your credentials may not do this: {0}")]
    Denied(String),
    /// The stack in AWS is not there, or is not Muster's.
    #[error("the stack `{stack}` cannot be used: {problem}; check its name and the region")]
    NoStack {
        /// Its name.
        stack: String,
        /// The problem.
        problem: String,
    },
    /// The key that tokens are signed with cannot be read.
    #[error("the signing key cannot be read: {0}")]
    NoSigningKey(String),
    /// No process serves the folder.
    #[error(
        "nothing serves {folder} ({problem}); start `muster-local serve --data {folder}`, and work as its user"
    )]
    NotServed {
        /// The folder.
        folder: PathBuf,
        /// The problem.
        problem: String,
    },
    /// The local stack did not respond.
    #[error("no local stack answers at {url} ({problem}); start it with `muster-local`")]
    NoLocalStack {
        /// Its URL.
        url: String,
        /// The problem.
        problem: String,
    },
}

/// Parts of the codes by which services of AWS refuse credentials.
#[cfg(feature = "aws")]
const DENIALS: [&str; 6] = [
    "AccessDenied",
    "ExpiredToken",
    "InvalidClientTokenId",
    "InvalidSignature",
    "SignatureDoesNotMatch",
    "UnrecognizedClient",
];

/// What a failed call means for its user. `refusal` makes an error of the text of any other refusal.
#[cfg(feature = "aws")]
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
            let first = cause.lines().next().unwrap_or_default().trim_end_matches(" Attempted:");
            TargetError::Denied(format!("there are none: {first}"))
        } else {
            TargetError::Unreachable(cause)
        };
    };
    let code = service.err().code().unwrap_or("no code");
    let text = format!("{code}: {}", service.err().message().unwrap_or("no message"));
    if DENIALS.iter().any(|denial| code.contains(denial)) { TargetError::Denied(text) } else { refusal(text) }
}

/// The root cause of the client's errors, whose own texts say less.
#[cfg(feature = "aws")]
pub(crate) fn root_cause(mut error: &dyn Error) -> String {
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}
