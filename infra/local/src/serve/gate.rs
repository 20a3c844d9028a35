//! How many requests are under way, at most and at all; none while the game moves elsewhere.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinHandle,
    time::{sleep, timeout},
};

/// The most requests under way. So many executions of Lambda an account in AWS has; beyond them, it answers
/// 503, too.
pub const REQUESTS_MAX: u32 = 1_000;
/// How long requests under way may hinder a pause: longer than any function has.
const DRAIN_MAX: Duration = Duration::from_secs(30);
/// How long a pause lasts that nobody renews.
pub const PAUSE: Duration = Duration::from_secs(60);

/// Lets requests in.
#[derive(Debug)]
pub struct Gate {
    places: Arc<Semaphore>,
    paused: Mutex<Paused>,
}

#[derive(Debug, Default)]
struct Paused {
    /// Every place there is.
    all: Option<OwnedSemaphorePermit>,
    /// What ends the pause.
    end: Option<JoinHandle<()>>,
}

impl Default for Gate {
    fn default() -> Self {
        Self { places: Arc::new(Semaphore::new(REQUESTS_MAX as usize)), paused: Mutex::default() }
    }
}

impl Gate {
    /// A place, which its holder drops when the request has ended; `None` when there is none.
    #[must_use]
    pub fn enter(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.places).try_acquire_owned().ok()
    }

    /// How many requests are under way; all of [`REQUESTS_MAX`] during a pause.
    #[must_use]
    pub fn under_way(&self) -> usize {
        REQUESTS_MAX as usize - self.places.available_permits()
    }

    /// Whether it lets nobody in.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.paused.lock().unwrap_or_else(PoisonError::into_inner).all.is_some()
    }

    /// Lets nobody in, and returns once nobody is in. It lasts for [`PAUSE`] from the last call, or for ever.
    /// Returns false, and lets others in again, when some have not ended within 30 s.
    pub async fn pause(self: &Arc<Self>, is_for_ever: bool) -> bool {
        if !self.is_paused() {
            // While this waits, each place that becomes free is its own.
            let all = Arc::clone(&self.places).acquire_many_owned(REQUESTS_MAX);
            let Ok(Ok(all)) = timeout(DRAIN_MAX, all).await else { return false };
            self.paused.lock().unwrap_or_else(PoisonError::into_inner).all = Some(all);
        }
        let gate = Arc::clone(self);
        let end = (!is_for_ever).then(|| {
            tokio::spawn(async move {
                sleep(PAUSE).await;
                gate.resume();
            })
        });
        let before =
            std::mem::replace(&mut self.paused.lock().unwrap_or_else(PoisonError::into_inner).end, end);
        before.iter().for_each(JoinHandle::abort);
        true
    }

    /// Lets others in.
    pub fn resume(&self) {
        *self.paused.lock().unwrap_or_else(PoisonError::into_inner) = Paused::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_pause_waits_for_those_inside_and_ends_by_itself() {
        let gate = Arc::new(Gate::default());
        let inside = gate.enter().unwrap();
        let pausing = tokio::spawn({
            let gate = Arc::clone(&gate);
            async move { gate.pause(false).await }
        });
        tokio::task::yield_now().await;
        assert!(gate.enter().is_none(), "whoever comes later must not hinder the pause");
        assert!(!pausing.is_finished());
        drop(inside);
        assert!(pausing.await.unwrap() && gate.is_paused());
        sleep(PAUSE / 2).await;
        assert!(gate.pause(false).await, "it is renewed");
        sleep(PAUSE - Duration::from_secs(1)).await;
        assert!(gate.enter().is_none());
        sleep(Duration::from_secs(2)).await;
        assert!(gate.enter().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn who_does_not_leave_hinders_no_others() {
        let gate = Arc::new(Gate::default());
        let _inside = gate.enter().unwrap();
        assert!(!gate.pause(true).await);
        assert!(gate.enter().is_some());
    }

    #[tokio::test]
    async fn no_more_are_let_in_than_there_are_places() {
        let gate = Gate::default();
        let mut inside: Vec<_> = (0..REQUESTS_MAX).map(|_| gate.enter().unwrap()).collect();
        assert!(gate.enter().is_none());
        assert_eq!((gate.under_way(), gate.is_paused()), (1_000, false));
        inside.pop();
        assert!(gate.enter().is_some());
    }
}
