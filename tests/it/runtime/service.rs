//! One instance of a function: its process and the service that feeds it.

use std::collections::BTreeMap;

use harness::runtime_api::{Outcome, RuntimeApi};
use tokio::time::timeout;

use crate::artefacts::{Ended, PATIENCE, Program};

/// One instance of a function.
pub struct Instance {
    program: Program,
    service: RuntimeApi,
}

impl Instance {
    /// Starts the function whose binary is `name`, with `environment` and what Lambda adds to it.
    pub async fn start(name: &str, environment: &BTreeMap<String, String>) -> Self {
        let service = RuntimeApi::start().await;
        let mut environment = environment.clone();
        environment.extend(service.environment(name));
        Self { program: Program::start(name, &[], &environment), service }
    }

    /// Hands out one event and waits for what the function says of it.
    pub async fn invoke(&mut self, event: &str) -> Outcome {
        let outcome = tokio::select! {
            said = timeout(PATIENCE, self.service.invoke(event)) => said.ok().map(|(outcome, _)| outcome),
            _ = self.program.wait() => None,
        };
        let Some(outcome) = outcome else {
            panic!("no answer: {:?}", self.program.kill().await);
        };
        outcome
    }

    /// Ends the function as Lambda does, without warning; all that it logged.
    pub async fn kill(mut self) -> Ended {
        self.program.kill().await
    }
}
