//! The link between a function and the emulator, which carries a call there and its response back.
//!
//! It replaces little more than the SDK's HTTP client: the SDK still serializes, signs and retries requests
//! as in production, and times them out if the link may lose them. So a local run needs no socket, and a
//! simulation controls the network.

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use aws_sdk_dynamodb::{
    Client,
    config::{
        retry::{ReconnectMode, RetryConfig},
        timeout::TimeoutConfig,
    },
};
use aws_smithy_runtime_api::{
    client::{
        http::{HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector},
        orchestrator::{HttpRequest, HttpResponse},
        result::ConnectorError,
        runtime_components::RuntimeComponents,
    },
    http::StatusCode,
};
use shared::store::client::emulator_client_over;

use super::in_process::WireAnswer;

/// One call of the database.
#[derive(Clone, Debug)]
pub struct Call {
    /// `UpdateItem`, `TransactWriteItems` and so on.
    pub operation: String,
    /// Its JSON.
    pub body: Vec<u8>,
}

/// There was no response: the connection broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

/// The future result of a call.
pub type Carried = Pin<Box<dyn Future<Output = Result<WireAnswer, Broken>> + Send>>;

/// A network with a database at its end. A future that never resolves is a lost response, for which the SDK
/// times out.
pub trait Link: fmt::Debug + Send + Sync + 'static {
    /// Carries `call` to the database, and its response back.
    fn carry(&self, call: Call) -> Carried;
}

/// A DynamoDB client over a `link` that may lose calls: it times out and retries attempts as in production.
#[must_use]
pub fn client_over(link: Arc<dyn Link>) -> Client {
    // The client never resolves the name.
    let client = emulator_client_over("http://emulator.invalid", Linked(link));
    let retries = client.config().retry_config().cloned().unwrap_or_else(RetryConfig::standard);
    // There is no connection to close after an error, which the SDK would log as one of its own.
    let retries = retries.with_reconnect_mode(ReconnectMode::ReuseAllConnections);
    Client::from_conf(client.config().to_builder().retry_config(retries).build())
}

/// A DynamoDB client over a `link` that loses nothing: it waits for each response, however long a busy
/// machine takes.
#[must_use]
pub fn patient_client_over(link: Arc<dyn Link>) -> Client {
    patient(&client_over(link))
}

/// `client` without time limits.
#[must_use]
pub fn patient(client: &Client) -> Client {
    Client::from_conf(client.config().to_builder().timeout_config(TimeoutConfig::disabled()).build())
}

#[derive(Clone, Debug)]
struct Linked(Arc<dyn Link>);

impl HttpClient for Linked {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

impl HttpConnector for Linked {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        let operation = target.rsplit('.').next().unwrap_or_default().to_owned();
        let body = request.body().bytes().unwrap_or_default().to_vec();
        let carried = self.0.carry(Call { operation, body });
        HttpConnectorFuture::new(async move {
            let answer = carried.await.map_err(|Broken| ConnectorError::io("the link broke".into()))?;
            let status = StatusCode::try_from(answer.status)
                .map_err(|error| ConnectorError::other(Box::new(error), None))?;
            Ok(HttpResponse::new(status, answer.body.into()))
        })
    }
}
