//! The Lambda function of namespaces/validate.

shared::main!(validate_namespace::ValidateNamespace);
