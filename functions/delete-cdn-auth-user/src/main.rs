//! The Lambda function of auth-user/{user}.

shared::main!(delete_cdn_auth_user::DeleteCdnAuthUser);
