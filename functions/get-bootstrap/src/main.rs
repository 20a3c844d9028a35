//! The Lambda function of bootstrap.

use get_bootstrap::GetBootstrap;
use shared::{config::Environment, http, telemetry};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    telemetry::log_json();
    http::serve(GetBootstrap::from_environment(Environment::of_process())?).await
}
