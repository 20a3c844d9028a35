//! The Lambda function of auth-user.

shared::main!(update_cdn_auth_user::UpdateCdnAuthUser);
