//! The Lambda function of mm-config.

shared::main!(update_matchmaker_config::UpdateMatchmakerConfig);
