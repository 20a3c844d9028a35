//! What lies between a function and its database in a simulation: a network that the simulation owns.
//!
//! The SDK's own HTTP client is replaced, nothing above it: requests are serialized, signed, timed out and repeated as in
//! production. Under tokio's paused clock every wait in them is virtual, so that a run is a function of its seed.

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use aws_sdk_dynamodb::Client;
use aws_smithy_runtime_api::{
    client::{
        http::{HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector},
        orchestrator::{HttpRequest, HttpResponse},
        result::ConnectorError,
        runtime_components::RuntimeComponents,
    },
    http::StatusCode,
};
use muster_local::emulator::in_process::WireAnswer;
use shared::{
    ambient::{Ambient, Timestamp},
    store::emulator_client_over,
};

/// One call on its way to the database.
#[derive(Clone, Debug)]
pub struct Call {
    /// `UpdateItem`, `TransactWriteItems` and so on.
    pub operation: String,
    /// Its JSON.
    pub body: Vec<u8>,
}

/// The answer never came: the connection broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

/// How a call fares.
pub type Carried = Pin<Box<dyn Future<Output = Result<WireAnswer, Broken>> + Send>>;

/// A network with a database at its end. An answer that never resolves is one that is lost: the SDK times out.
pub trait Link: fmt::Debug + Send + Sync + 'static {
    /// Carries `call` to the database, and its answer back.
    fn carry(&self, call: Call) -> Carried;
}

/// A DynamoDB client over `link`.
#[must_use]
pub fn client_over(link: Arc<dyn Link>) -> Client {
    // The name is never resolved.
    emulator_client_over("http://simulated.invalid", Linked(link))
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

/// The current runtime's clock, which begins at `began_at` and may be paused, with randomness from `entropy`.
pub fn virtual_ambient(began_at: Timestamp, entropy: impl Fn(&mut [u8]) + Send + Sync + 'static) -> Ambient {
    let start = tokio::time::Instant::now();
    Ambient::new(move || began_at + start.elapsed(), entropy)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use muster_local::{
        emulator::in_process::InProcess,
        stack::{TEMPLATE, table_names},
        template::Template,
    };
    use shared::{errors::Error, ids::LobbyId, store::Store};

    use super::*;

    #[derive(Debug)]
    struct Slow(InProcess);

    impl Link for Slow {
        fn carry(&self, call: Call) -> Carried {
            let database = self.0.clone();
            Box::pin(async move {
                tokio::time::sleep(Duration::from_millis(7)).await;
                Ok(database.answer(&call.operation, &call.body))
            })
        }
    }

    /// Answers nothing, ever.
    #[derive(Debug)]
    struct Silent;

    impl Link for Silent {
        fn carry(&self, _: Call) -> Carried {
            Box::pin(std::future::pending())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_store_runs_over_a_link_in_virtual_time() {
        let tables = Template::parse(TEMPLATE).unwrap().tables;
        let store = Store::new(client_over(Arc::new(Slow(InProcess::new(&tables).unwrap()))), table_names());
        let ambient = virtual_ambient(Timestamp(1_000), |bytes| bytes.fill(7));
        let missing = store.lobby(&LobbyId::from(ambient.uuid())).await;
        assert!(matches!(missing, Ok(None)), "{missing:?}");
        assert_eq!(ambient.now(), Timestamp(1_007));
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_link_ends_in_an_error_after_the_attempts_that_the_client_allows() {
        let store = Store::new(client_over(Arc::new(Silent)), table_names());
        let ambient = virtual_ambient(Timestamp(1_000), |bytes| bytes.fill(7));
        let lost = store.lobby(&LobbyId::from(ambient.uuid())).await;
        assert!(matches!(lost, Err(Error::Unavailable(_))), "{lost:?}");
        let waited = ambient.now().since(Timestamp(1_000));
        assert!(waited >= Duration::from_secs(4) && waited < Duration::from_secs(5), "{waited:?}");
    }
}
