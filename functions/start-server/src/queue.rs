//! The queue of looks.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use shared::{
    models::{errors::Error, ids::ServerKey},
    outside::aws_api::{AwsApi, Service},
};

/// The longest delay of a message that SQS knows.
const DELAY_MAX: Duration = Duration::from_secs(900);
/// How long a call may take.
const TIMEOUT: Duration = Duration::from_secs(5);
const SQS: Service = Service { name: "sqs", prefix: "AmazonSQS", content_type: "application/x-amz-json-1.0" };

/// A message: to look at a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Look {
    /// The server.
    pub server: ServerKey,
    /// Tries in a row that its starter could not do.
    #[serde(default)]
    pub tries: u32,
}

/// Where looks wait for their time.
pub trait Queue {
    /// Has a server looked at after a delay, or somewhat earlier.
    ///
    /// # Errors
    /// [`Error::Unavailable`]: it is to be sent again.
    fn send(&self, look: &Look, after: Duration) -> impl Future<Output = Result<(), Error>> + Send;
}

/// A queue of SQS.
#[derive(Debug)]
pub struct StartQueue {
    api: AwsApi,
    url: String,
    /// The address of SQS, which the queue's own begins with.
    endpoint: String,
}

impl StartQueue {
    /// The queue at `url`.
    #[must_use]
    pub fn new(api: AwsApi, url: String) -> Self {
        let origin = url.splitn(4, '/').take(3).collect::<Vec<_>>().join("/");
        Self { api, endpoint: format!("{origin}/"), url }
    }
}

impl Queue for StartQueue {
    async fn send(&self, look: &Look, after: Duration) -> Result<(), Error> {
        // Rounded up: a look just before its time would only send another message.
        let delay = after.min(DELAY_MAX).as_millis().div_ceil(1_000);
        let body = serde_json::to_string(look).map_err(|error| Error::Bug(error.to_string()))?;
        let message = json!({ "QueueUrl": self.url, "MessageBody": body, "DelaySeconds": delay });
        let sent = self.api.call::<Value>((&SQS, "SendMessage"), &self.endpoint, &message, TIMEOUT).await;
        sent.map(|_sent| ()).map_err(|error| Error::Unavailable(format!("SQS: {error}")))
    }
}
