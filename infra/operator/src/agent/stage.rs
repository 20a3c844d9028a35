//! How far the agent is on its way from the first signal to its end.

use std::{io, sync::Arc, time::Duration};

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};

use crate::agent::output::say;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    Running,
    /// No new lobbies come, and those that there are go on.
    Draining,
    /// Lobbies end, and processes are asked to end.
    Ending,
    /// Processes are killed.
    Killing,
}

/// The stage of the whole agent, which only rises.
#[derive(Clone)]
pub(super) struct Stages(Arc<watch::Sender<Stage>>);

impl Stages {
    /// Listens for signals from now on.
    ///
    /// # Errors
    /// Where this process cannot listen for them.
    pub fn listen(drain: Duration) -> io::Result<Self> {
        let stages = Self(Arc::new(watch::Sender::new(Stage::Running)));
        let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let own = stages.clone();
        tokio::spawn(async move {
            let mut next = async || {
                tokio::select! {
                    _ = term.recv() => {}
                    _ = int.recv() => {}
                }
            };
            next().await;
            own.raise(Stage::Draining);
            say(&format!("draining, for at most {} s; a second signal ends at once", drain.as_secs()));
            tokio::select! {
                () = next() => own.raise(Stage::Killing),
                () = tokio::time::sleep(drain) => own.raise(Stage::Ending),
            }
            next().await;
            own.raise(Stage::Killing);
        });
        Ok(stages)
    }

    pub fn now(&self) -> Stage {
        *self.0.borrow()
    }

    pub fn raise(&self, to: Stage) {
        self.0.send_if_modified(|now| {
            let is_higher = to > *now;
            *now = to.max(*now);
            is_higher
        });
    }

    pub async fn reached(&self, stage: Stage) {
        let mut now = self.0.subscribe();
        // The sender lives as long as `self`.
        let _reached = now.wait_for(|now| *now >= stage).await;
    }
}
