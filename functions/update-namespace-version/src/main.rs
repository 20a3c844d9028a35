//! The Lambda function of version.

shared::main!(update_namespace_version::UpdateNamespaceVersion);
