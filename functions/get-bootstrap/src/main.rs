//! The Lambda function of bootstrap.

shared::main!(get_bootstrap::GetBootstrap);
