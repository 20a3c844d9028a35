//! The Lambda function of namespaces/{namespace_id}.

shared::main!(get_namespace::GetNamespace);
