//! The Lambda function of auth-user/{user}.

use delete_cdn_auth_user::DeleteCdnAuthUser;
use shared::{function::Function, http};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let function = Function::start().await?;
    http::serve(DeleteCdnAuthUser::new(function.cloud_auth(), function.store)).await
}
