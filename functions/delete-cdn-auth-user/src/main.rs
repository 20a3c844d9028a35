//! The Lambda function of auth-user/{user}.

use delete_cdn_auth_user::DeleteCdnAuthUser;
use shared::function::{Function, operation};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let function = Function::start().await?;
    operation::serve(DeleteCdnAuthUser::new(function.cloud_auth(), function.store)).await
}
