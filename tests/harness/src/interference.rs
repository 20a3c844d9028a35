//! Networks on which something else happens between two calls of an operation, a call arrives twice, is lost,
//! or is the last one.

use std::{
    fmt,
    future::pending,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use muster_local::emulator::link::{Broken, Call, Carried, Link};
use tokio::sync::Notify;

/// What is to happen.
type Happening = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A network on which something happens before the first call of a kind arrives, or is answered.
pub struct Before {
    link: Arc<dyn Link>,
    is_it: fn(&Call) -> bool,
    happens: Mutex<Option<Happening>>,
    arrives: Arrives,
}

/// When the call arrives at which something happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arrives {
    /// After it happened.
    Afterwards,
    /// Before it happens; the response comes afterwards.
    First,
    /// Before it happens and again afterwards; the first response is lost.
    Twice,
}

impl Before {
    /// `link`, the call that is meant, and what `happens` before it.
    pub fn new(
        link: &Arc<dyn Link>,
        is_it: fn(&Call) -> bool,
        happens: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        let happens = Mutex::new(Some(Box::pin(happens) as Happening));
        Self { link: Arc::clone(link), is_it, happens, arrives: Arrives::Afterwards }
    }

    /// `link`, the call that is meant, and what `happens` between its arrival and its response: its sender
    /// stalls.
    pub fn response(
        link: &Arc<dyn Link>,
        is_it: fn(&Call) -> bool,
        happens: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        Self { arrives: Arrives::First, ..Self::new(link, is_it, happens) }
    }

    /// `link`, the call that is meant, whose response is lost, and what `happens` before a retry.
    pub fn repetition(
        link: &Arc<dyn Link>,
        is_it: fn(&Call) -> bool,
        happens: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        Self { arrives: Arrives::Twice, ..Self::new(link, is_it, happens) }
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
        let (link, arrives) = (Arc::clone(&self.link), self.arrives);
        Box::pin(async move {
            let Some(happens) = happens else { return link.carry(call).await };
            let first =
                if arrives == Arrives::Afterwards { None } else { Some(link.carry(call.clone()).await) };
            happens.await;
            match first {
                Some(response) if arrives == Arrives::First => response,
                _ => link.carry(call).await,
            }
        })
    }
}

/// A network that delivers a copy of the first call of a kind when a test requests it, however late.
pub struct Repeating {
    link: Arc<dyn Link>,
    is_it: fn(&Call) -> bool,
    first: Mutex<Option<Call>>,
}

impl Repeating {
    /// `link`, and the call that is meant.
    pub fn new(link: &Arc<dyn Link>, is_it: fn(&Call) -> bool) -> Self {
        Self { link: Arc::clone(link), is_it, first: Mutex::new(None) }
    }

    /// Delivers the copy, and returns the status of its response.
    ///
    /// # Panics
    /// When no such call came yet.
    pub async fn repeat(&self) -> u16 {
        let first = self.first.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.link.carry(first.expect("a call")).await.expect("an answer").status
    }
}

impl fmt::Debug for Repeating {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Repeating").finish_non_exhaustive()
    }
}

impl Link for Repeating {
    fn carry(&self, call: Call) -> Carried {
        if (self.is_it)(&call) {
            self.first.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| call.clone());
        }
        self.link.carry(call)
    }
}

/// A network that loses each call of a kind, or only its response.
pub struct Losing {
    link: Arc<dyn Link>,
    is_it: Box<dyn Fn(&Call) -> bool + Send + Sync>,
    arrives: bool,
}

impl Losing {
    /// `link`, and the calls that are lost.
    pub fn calls(link: &Arc<dyn Link>, is_it: impl Fn(&Call) -> bool + Send + Sync + 'static) -> Self {
        Self { link: Arc::clone(link), is_it: Box::new(is_it), arrives: false }
    }

    /// `link`, and the calls that arrive, but whose responses are lost.
    pub fn responses(link: &Arc<dyn Link>, is_it: impl Fn(&Call) -> bool + Send + Sync + 'static) -> Self {
        Self { arrives: true, ..Self::calls(link, is_it) }
    }
}

impl fmt::Debug for Losing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Losing").finish_non_exhaustive()
    }
}

impl Link for Losing {
    fn carry(&self, call: Call) -> Carried {
        if !(self.is_it)(&call) {
            return self.link.carry(call);
        }
        let arriving = self.arrives.then(|| self.link.carry(call));
        Box::pin(async move {
            if let Some(arriving) = arriving {
                let _lost = arriving.await;
            }
            Err(Broken)
        })
    }
}

/// A network that carries so many calls: the last one is done, its response never comes.
#[derive(Debug)]
pub struct Crashing {
    link: Arc<dyn Link>,
    left: AtomicUsize,
    crashed: Arc<Notify>,
}

impl Crashing {
    /// `link` for so many `calls`, and what is notified once the last one is done.
    pub fn after(link: &Arc<dyn Link>, calls: usize) -> (Self, Arc<Notify>) {
        let crashed = Arc::new(Notify::new());
        let left = AtomicUsize::new(calls);
        (Self { link: Arc::clone(link), left, crashed: Arc::clone(&crashed) }, crashed)
    }
}

impl Link for Crashing {
    fn carry(&self, call: Call) -> Carried {
        let carried = self.link.carry(call);
        if self.left.fetch_sub(1, Ordering::SeqCst) > 1 {
            return carried;
        }
        let crashed = Arc::clone(&self.crashed);
        Box::pin(async move {
            let _done = carried.await;
            crashed.notify_one();
            pending().await
        })
    }
}
