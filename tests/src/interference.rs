//! A network on which something else happens between two calls of an operation.

use std::{
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
};

use muster_local::emulator::link::{Call, Carried, Link};

/// What is to happen.
type Happening = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A network on which something happens before the first call of a kind arrives.
pub struct Before {
    link: Arc<dyn Link>,
    is_it: fn(&Call) -> bool,
    happens: Mutex<Option<Happening>>,
}

impl Before {
    /// `link`, the call that is meant, and what `happens` before it.
    pub fn new(
        link: &Arc<dyn Link>,
        is_it: fn(&Call) -> bool,
        happens: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        Self { link: Arc::clone(link), is_it, happens: Mutex::new(Some(Box::pin(happens))) }
    }

    /// Before the first transaction.
    pub fn transaction(link: &Arc<dyn Link>, happens: impl Future<Output = ()> + Send + 'static) -> Self {
        Self::new(link, |call| call.operation == "TransactWriteItems", happens)
    }
}

impl fmt::Debug for Before {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Before").finish_non_exhaustive()
    }
}

impl Link for Before {
    fn carry(&self, call: Call) -> Carried {
        let mut happens = self.happens.lock().unwrap_or_else(PoisonError::into_inner);
        let happens = if (self.is_it)(&call) { happens.take() } else { None };
        let link = Arc::clone(&self.link);
        Box::pin(async move {
            if let Some(happens) = happens {
                happens.await;
            }
            link.carry(call).await
        })
    }
}
