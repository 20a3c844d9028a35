//! The Lambda function of versions.

shared::main!(create_version::CreateVersion);
