//! A network on which something else happens between two calls of an operation.

use std::{
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
};

use muster_local::emulator::link::{Call, Carried, Link};

/// What is to happen.
type Happening = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A network on which something happens before the first transaction arrives.
pub struct BeforeTransaction {
    link: Arc<dyn Link>,
    happens: Mutex<Option<Happening>>,
}

impl BeforeTransaction {
    /// `link`, and what `happens` then.
    pub fn new(link: &Arc<dyn Link>, happens: impl Future<Output = ()> + Send + 'static) -> Self {
        Self { link: Arc::clone(link), happens: Mutex::new(Some(Box::pin(happens))) }
    }
}

impl fmt::Debug for BeforeTransaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BeforeTransaction").finish_non_exhaustive()
    }
}

impl Link for BeforeTransaction {
    fn carry(&self, call: Call) -> Carried {
        let mut happens = self.happens.lock().unwrap_or_else(PoisonError::into_inner);
        let happens = if call.operation == "TransactWriteItems" { happens.take() } else { None };
        let link = Arc::clone(&self.link);
        Box::pin(async move {
            if let Some(happens) = happens {
                happens.await;
            }
            link.carry(call).await
        })
    }
}
