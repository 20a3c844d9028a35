//! The Lambda function of version-history.

shared::main!(get_version_history::GetVersionHistory);
