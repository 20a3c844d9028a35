//! The Lambda function of mm-config/validate.

shared::main!(validate_matchmaker_config::ValidateMatchmakerConfig);
