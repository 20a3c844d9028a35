//! The Lambda function of namespaces.

shared::main!(create_namespace::CreateNamespace);
