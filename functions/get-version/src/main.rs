//! The Lambda function of versions/{version_id}.

shared::main!(get_version::GetVersion);
