//! The Lambda function of domain-public-auth.

shared::main!(set_domain_public_auth::SetDomainPublicAuth);
