//! The Lambda function of domains/{domain}.

shared::main!(delete_domain::DeleteDomain);
