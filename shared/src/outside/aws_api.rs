//! Calls of AWS's services in their JSON protocol.
//!
//! Their own clients would bring crates that take longer to build than the rest of a function: 70 s and
//! 104 MB for the three calls of ECS that start and end a task. A refused call is not repeated here.

use std::time::{Duration, UNIX_EPOCH};

use aws_sdk_dynamodb::config::Credentials;
use aws_sigv4::{
    http_request::{SignableBody, SignableRequest, SigningSettings, sign},
    sign::v4::SigningParams,
};
use aws_smithy_runtime_api::client::{
    http::{HttpConnector as _, SharedHttpConnector},
    orchestrator::HttpRequest,
};
use http::Request;
use http_body_util::{BodyExt as _, Limited};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use crate::base::ambient::{Ambient, Timestamp, within};

/// Largest answer that is read.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;

/// A service of AWS.
#[derive(Clone, Copy, Debug)]
pub struct Service {
    /// Its name in hosts and signatures.
    pub name: &'static str,
    /// What the names of its operations begin with.
    pub prefix: &'static str,
    /// The type of its content.
    pub content_type: &'static str,
}

/// Amazon ECS.
pub const ECS: Service = Service {
    name: "ecs",
    prefix: "AmazonEC2ContainerServiceV20141113",
    content_type: "application/x-amz-json-1.1",
};

/// Why a call has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The service refuses it.
    #[error("{code}: {message}")]
    Refused {
        /// Its status of HTTP.
        status: u16,
        /// The service's code.
        code: String,
        /// The service's words.
        message: String,
        /// All that it answered.
        answer: Value,
    },
    /// There is no answer, or none that can be read.
    #[error("{0}")]
    NoAnswer(String),
}

/// Signs a call of `service` at `uri`, to be sent as it is.
///
/// # Errors
/// What is not valid, in words.
pub fn signed(
    (service, operation): (&Service, &str),
    (region, uri): (&str, &str),
    credentials: Credentials,
    body: &str,
    now: Timestamp,
) -> Result<HttpRequest, String> {
    let text = |error: &dyn std::error::Error| error.to_string();
    let target = format!("{}.{operation}", service.prefix);
    let headers = [("content-type", service.content_type), ("x-amz-target", target.as_str())];
    let identity = credentials.into();
    let parameters = SigningParams::builder()
        .identity(&identity)
        .region(region)
        .name(service.name)
        .time(UNIX_EPOCH + Duration::from_millis(now.0))
        .settings(SigningSettings::default());
    let parameters = parameters.build().map_err(|error| text(&error))?.into();
    let signable = SignableBody::Bytes(body.as_bytes());
    let signable = SignableRequest::new("POST", uri, headers.into_iter(), signable);
    let signed = sign(signable.map_err(|error| text(&error))?, &parameters).map_err(|error| text(&error))?;
    let mut request = Request::post(uri);
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let mut request = request.body(body.into()).map_err(|error| text(&error))?;
    signed.into_parts().0.apply_to_request_http1x(&mut request);
    HttpRequest::try_from(request).map_err(|error| text(&error))
}

/// The address of a service in a region.
#[must_use]
pub fn endpoint(service: &str, region: &str) -> String {
    let suffix = if region.starts_with("cn-") { ".cn" } else { "" };
    format!("https://{service}.{region}.amazonaws.com{suffix}/")
}

/// AWS's services, as a function calls them.
#[derive(Debug)]
pub struct AwsApi {
    region: String,
    credentials: Credentials,
    connector: SharedHttpConnector,
    ambient: Ambient,
}

impl AwsApi {
    /// The services in `region`, called by `connector` with `credentials`.
    #[must_use]
    pub const fn new(
        region: String,
        credentials: Credentials,
        connector: SharedHttpConnector,
        ambient: Ambient,
    ) -> Self {
        Self { region, credentials, connector, ambient }
    }

    /// The region.
    #[must_use]
    pub fn region(&self) -> &str {
        &self.region
    }

    /// Calls an operation of `service` at `uri`, within `span`.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn call<T: DeserializeOwned>(
        &self,
        (service, operation): (&Service, &str),
        uri: &str,
        body: &Value,
        span: Duration,
    ) -> Result<T, CallError> {
        let credentials = self.credentials.clone();
        let place = (self.region.as_str(), uri);
        let request = signed((service, operation), place, credentials, &body.to_string(), self.ambient.now())
            .map_err(CallError::NoAnswer)?;
        let no_answer = |error: &dyn std::error::Error| CallError::NoAnswer(error.to_string());
        let answered = async {
            let answer = self.connector.call(request).await.map_err(|error| no_answer(&error))?;
            let status = answer.status();
            let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await;
            let body = body.map_err(|error| CallError::NoAnswer(error.to_string()))?.to_bytes();
            Ok((status, body))
        };
        let in_time = within(&self.ambient, span, answered).await;
        let no_time = || CallError::NoAnswer(format!("{} does not answer in time", service.name));
        let (status, body) = in_time.ok_or_else(no_time)??;
        if status.is_success() {
            return serde_json::from_slice(&body).map_err(|error| no_answer(&error));
        }
        let status = status.as_u16();
        let answer: Value = serde_json::from_slice(&body)
            .map_err(|_| CallError::NoAnswer(format!("{} answers with status {status}", service.name)))?;
        let refusal = Refusal::deserialize(&answer).map_err(|error| no_answer(&error))?;
        let code = refusal.code.rsplit('#').next().unwrap_or_default().to_owned();
        Err(CallError::Refused { status, code, message: refusal.message, answer })
    }
}

#[derive(Deserialize)]
struct Refusal {
    #[serde(rename = "__type")]
    code: String,
    #[serde(alias = "Message", default)]
    message: String,
}
