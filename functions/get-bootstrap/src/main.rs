//! The Lambda function of bootstrap.

use get_bootstrap::GetBootstrap;
use shared::{
    base::log,
    function::{config::Environment, operation},
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    log::log_json();
    operation::serve(GetBootstrap::from_environment(Environment::of_process())?).await
}
