//! The starter of each region, as its settings say.

use std::{future::ready, sync::Arc};

use shared::{
    hosting::launching::{NotStarted, Order, Starter},
    models::starter::StarterSettings,
    outside::webhook::Webhooks,
    store::client::Store,
};

use crate::{ecs::Ecs, webhook};

/// What starts processes on this machine, where something does.
pub trait Processes {
    /// Has `command` run for an order unless it was before, and returns the process's handle.
    fn start(
        &self,
        command: &[String],
        order: &Order,
    ) -> impl Future<Output = Result<String, NotStarted>> + Send;

    /// Has it ended, if it runs.
    fn end(&self, order: &Order) -> impl Future<Output = Result<(), NotStarted>> + Send;
}

/// Starts no processes: a function of Lambda.
#[derive(Clone, Copy, Debug)]
pub struct NoProcesses;

impl Processes for NoProcesses {
    fn start(
        &self,
        _command: &[String],
        _order: &Order,
    ) -> impl Future<Output = Result<String, NotStarted>> + Send {
        ready(Err(NotStarted::Refused("functions in AWS start no processes".to_owned())))
    }

    fn end(&self, _order: &Order) -> impl Future<Output = Result<(), NotStarted>> + Send {
        ready(Ok(()))
    }
}

/// Starts and ends servers by the settings of their region.
#[derive(Debug)]
pub struct RegionStarter<P> {
    store: Store,
    webhooks: Arc<Webhooks>,
    ecs: Option<Ecs>,
    processes: P,
}

impl<P: Processes + Sync> RegionStarter<P> {
    /// The starter of regions whose settings are in `store`.
    #[must_use]
    pub fn new(store: Store, webhooks: Webhooks, ecs: Option<Ecs>, processes: P) -> Self {
        Self { store, webhooks: Arc::new(webhooks), ecs, processes }
    }

    /// What starts processes.
    #[must_use]
    pub const fn processes(&self) -> &P {
        &self.processes
    }

    async fn settings(&self, order: &Order) -> Result<Option<StarterSettings>, NotStarted> {
        let settings = self.store.starter(&order.game_id, &order.region_id).await;
        settings.map_err(|error| {
            let cause = error.cause().unwrap_or_default();
            tracing::warn!(cause, "the settings of a region's starter could not be read");
            NotStarted::NotNow("the region's starter could not be read".to_owned())
        })
    }
}

impl<P: Processes + Sync> Starter for RegionStarter<P> {
    async fn start(&self, order: &Order) -> Result<String, NotStarted> {
        let refused = |why: &str| Err(NotStarted::Refused(why.to_owned()));
        match self.settings(order).await? {
            Some(StarterSettings::Process { command }) => self.processes.start(&command, order).await,
            Some(StarterSettings::Webhook { url, secrets }) => {
                webhook::start(&self.webhooks, (&url, &secrets), order).await
            }
            Some(StarterSettings::Ecs(settings)) => match &self.ecs {
                Some(ecs) => ecs.start(&settings, order).await,
                None => refused("this deployment starts no tasks of ECS"),
            },
            Some(StarterSettings::Unknown) => refused("this release does not know the region's starter"),
            None => refused("the region has no starter"),
        }
    }

    async fn end(&self, order: &Order) -> Result<(), NotStarted> {
        match self.settings(order).await? {
            Some(StarterSettings::Process { .. }) => self.processes.end(order).await,
            Some(StarterSettings::Webhook { url, secrets }) => {
                webhook::end(&self.webhooks, (&url, &secrets), order).await
            }
            Some(StarterSettings::Ecs(settings)) => match &self.ecs {
                Some(ecs) => ecs.end(&settings, order).await,
                None => Ok(()),
            },
            // Nothing of it can run any more that this release could end.
            Some(StarterSettings::Unknown) | None => Ok(()),
        }
    }
}
