//! The Lambda function of domains.

shared::main!(add_domain::AddDomain);
