//! Has game servers started and ended on demand: a function without a route (decision 76).
//!
//! The stream of the table Servers says which servers to look at, and a queue says when to look again. Stream
//! records only become messages: one that fails would block its shard. A message is looked at alone, and one
//! that fails comes back from the queue. ECS puts messages there, too, of tasks that stopped.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use shared::{
    function::{
        config::InvalidConfig,
        instance::Instance,
        metrics::{Counts, Metric},
        triggered::Triggered,
    },
    hosting::launching::{Launching, Next, Starter},
    models::{errors::Error, ids::ServerKey, server::Server},
    outside::webhook::Webhooks,
    request::trace::Trace,
};

use crate::{
    ecs::{Ecs, Stopped},
    queue::{Look, Queue, StartQueue},
    starter::{NoProcesses, RegionStarter},
};

pub mod ecs;
pub mod queue;
pub mod starter;
pub mod webhook;

/// The function, in Lambda.
pub type StartServer = Starts<RegionStarter<NoProcesses>, StartQueue>;

/// The function over any starter and queue.
#[derive(Debug)]
pub struct Starts<S, Q> {
    launching: Launching<S>,
    queue: Q,
}

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "Records")]
    records: Vec<Value>,
}

/// A record of the stream; only its key counts.
#[derive(Deserialize)]
struct Change {
    dynamodb: Changed,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Changed {
    keys: ChangedKey,
    sequence_number: String,
}

#[derive(Deserialize)]
struct ChangedKey {
    server: ChangedServer,
}

#[derive(Deserialize)]
struct ChangedServer {
    #[serde(rename = "S")]
    key: ServerKey,
}

/// A message as the queue delivers it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Delivery {
    message_id: String,
    body: String,
}

impl<S: Starter + Sync, Q: Queue + Sync> Starts<S, Q> {
    /// The function that looks by `launching`, and again when `queue` says so.
    #[must_use]
    pub const fn new(launching: Launching<S>, queue: Q) -> Self {
        Self { launching, queue }
    }

    /// Its starter.
    #[must_use]
    pub const fn starter(&self) -> &S {
        self.launching.starter()
    }

    /// What [`Launching::take_ran_secs`] says.
    pub fn take_ran_secs(&self) -> u64 {
        self.launching.take_ran_secs()
    }

    /// Does what an event asks for, and returns the records that are to come again, as Lambda has them
    /// answered, with the first error.
    pub async fn answer(&self, event: Value) -> (Value, Option<Error>) {
        let records = match Event::deserialize(event) {
            Ok(event) => event.records,
            Err(error) => {
                tracing::error!(cause = %error, "an event is none of a stream or a queue");
                Vec::new()
            }
        };
        let (mut failed, mut first) = (Vec::new(), None);
        for record in records {
            let of_stream = Change::deserialize(&record).ok().map(|change| change.dynamodb);
            let (id, done) = match (of_stream, Delivery::deserialize(&record)) {
                (Some(changed), _) => {
                    let look = Look { server: changed.keys.server.key, tries: 0 };
                    (changed.sequence_number, self.queue.send(&look, Duration::ZERO).await)
                }
                (None, Ok(Delivery { message_id, body })) => (message_id, self.look(&body).await),
                (None, Err(error)) => {
                    // It would be no better the next time.
                    tracing::error!(cause = %error, "a record is none of a stream or a queue");
                    continue;
                }
            };
            let Err(error) = done else { continue };
            tracing::error!(
                cause = error.cause().unwrap_or_default(),
                record.id = id,
                "a record comes again"
            );
            failed.push(json!({ "itemIdentifier": id }));
            first.get_or_insert(error);
        }
        (json!({ "batchItemFailures": failed }), first)
    }

    async fn look(&self, body: &str) -> Result<(), Error> {
        let (server, next) = if let Ok(Look { server, tries }) = serde_json::from_str(body) {
            let next = self.launching.look(&server, tries).await?;
            (server, next)
        } else if let Some((server, stopped)) = stopped(body) {
            let is_it = |server: &Server| stopped.was_of(server);
            let next = self.launching.process_ended(&server, is_it, &stopped.reason()).await?;
            (server, next)
        } else {
            tracing::error!("a message names no game server");
            return Ok(());
        };
        match next {
            Next::Nothing => Ok(()),
            Next::Look { after, tries } => self.queue.send(&Look { server, tries }, after).await,
        }
    }
}

/// The task that stopped, by a message of ECS, and its server.
fn stopped(body: &str) -> Option<(ServerKey, Stopped)> {
    let stopped = Stopped::read(body)?;
    Some((stopped.server()?, stopped))
}

impl Triggered for StartServer {
    const NAME: &'static str = "start-server";

    fn start(instance: &Instance) -> Result<Self, InvalidConfig> {
        let (environment, ambient) = (instance.environment(), instance.ambient());
        let store = instance.store()?;
        let webhooks = Webhooks::new(instance.outside()?, ambient.clone());
        let ecs =
            Ecs::new(environment.aws_api(ambient.clone())?, environment.optional("AWS_ENDPOINT_URL_ECS"));
        let starter = RegionStarter::new(store.clone(), webhooks, Some(ecs), NoProcesses);
        let api_url = environment.required("MUSTER_API_URL")?;
        let queue = StartQueue::new(
            environment.aws_api(ambient.clone())?,
            environment.required("MUSTER_STARTS_QUEUE_URL")?,
        );
        let launching = Launching::new(store, instance.keys()?, ambient, api_url, starter);
        Ok(Self::new(launching, queue))
    }

    async fn call(&self, event: Value) -> (Value, Counts) {
        let (answer, error) = self.answer(event).await;
        let counts = Counts::of(&Trace::default(), error.as_ref());
        (answer, counts.with(Metric::ServerSeconds, self.take_ran_secs()))
    }
}
