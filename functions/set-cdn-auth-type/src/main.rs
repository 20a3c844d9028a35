//! The Lambda function of cdn-auth.

shared::main!(set_cdn_auth_type::SetCdnAuthType);
