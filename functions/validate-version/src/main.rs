//! The Lambda function of versions/validate.

shared::main!(validate_version::ValidateVersion);
