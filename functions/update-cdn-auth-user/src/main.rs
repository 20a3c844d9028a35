//! The Lambda function of auth-user.

use shared::{
    function::{Function, operation},
    rules::bcrypt_hash::COST_MAX,
};
use update_cdn_auth_user::UpdateCdnAuthUser;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let function = Function::start().await?;
    // MUSTER_BCRYPT_MAX_COST: the highest bcrypt cost accepted; bcrypt's own limit when absent.
    let cost_max = function.environment.parsed("MUSTER_BCRYPT_MAX_COST")?.unwrap_or(COST_MAX);
    operation::serve(UpdateCdnAuthUser::new(function.cloud_auth(), function.store, cost_max)).await
}
