//! A function without a route, which Lambda calls with events of other services.

use std::{convert::Infallible, pin::Pin, process::ExitCode, sync::Arc};

use lambda_http::service_fn;
use lambda_runtime::LambdaEvent;
use serde_json::Value;
use tracing::Instrument as _;

use crate::{
    base::log,
    function::{
        config::{Environment, InvalidConfig},
        instance::Instance,
        metrics::{Counter, Counts},
    },
};

/// What such a function does.
pub trait Triggered: Sized + Send + Sync + 'static {
    /// Its name in logs and metrics, verb-noun.
    const NAME: &'static str;

    /// Makes it of the parts of `instance` that it needs.
    ///
    /// # Errors
    /// [`InvalidConfig`] when the environment lacks a variable that a part needs, or has an unusable one.
    fn start(instance: &Instance) -> Result<Self, InvalidConfig>;

    /// Does what one event asks for. Returns the answer to the service that sent it, which says what to send
    /// again, and what it counts.
    fn call(&self, event: Value) -> impl Future<Output = (Value, Counts)> + Send;
}

/// Runs the function until Lambda ends the process: the whole of its `main`.
#[must_use]
pub fn run<T: Triggered>() -> ExitCode {
    log::log_json();
    let environment = Environment::of_process();
    let counter = Counter::of(&environment);
    let instance = Instance::of(environment);
    let started = T::start(&instance).map(|triggered| {
        let triggered = Arc::new(triggered);
        Box::new(move |event| -> Answering {
            let triggered = Arc::clone(&triggered);
            Box::pin(async move { triggered.call(event).await })
        })
    });
    match started.map_err(Into::into).and_then(|answers| serve(T::NAME, instance, counter, answers)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(cause = %error, "the function ended");
            ExitCode::FAILURE
        }
    }
}

/// A future answer, with what it counts.
type Answering = Pin<Box<dyn Future<Output = (Value, Counts)> + Send>>;

fn serve(
    name: &'static str,
    instance: Instance,
    counter: Option<Counter>,
    answers: Box<dyn Fn(Value) -> Answering + Send + Sync>,
) -> Result<(), lambda_http::Error> {
    let served = Arc::new((answers, counter, instance.ambient()));
    let handler = service_fn(move |event: LambdaEvent<Value>| {
        let served = Arc::clone(&served);
        let span = tracing::info_span!("event", operation = name, request.id = %event.context.request_id);
        async move {
            let (answers, counter, ambient) = &*served;
            let (answer, counts) = answers(event.payload).await;
            let line = counter.as_ref().and_then(|counter| counter.line(name, counts, ambient.now()));
            if let Some(line) = line {
                log::print(&line);
            }
            Ok::<_, Infallible>(answer)
        }
        .instrument(span)
    });
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async move {
        instance.connect().await;
        drop(instance);
        lambda_runtime::run(handler).await
    })
}
