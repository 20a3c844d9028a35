//! Ctrl-C, at which a command that runs until then ends.

use std::{future::poll_fn, task::Poll};

use tokio::{signal::ctrl_c, sync::watch};

/// Whether Ctrl-C was pressed since [`Self::listen`].
#[derive(Clone)]
pub(crate) struct Interruption(watch::Receiver<bool>);

impl Interruption {
    /// Listens from now on. A command calls it before it says that it runs: a press that nothing listens for
    /// ends the process at once.
    pub(crate) async fn listen() -> Self {
        let (noted, interruption) = watch::channel(false);
        let mut pressed = Box::pin(ctrl_c());
        // Its first poll begins to listen.
        match poll_fn(|context| Poll::Ready(pressed.as_mut().poll(context))).await {
            Poll::Pending => {
                tokio::spawn(async move {
                    if pressed.await.is_ok() {
                        noted.send_replace(true);
                    }
                });
            }
            Poll::Ready(result) => {
                noted.send_replace(result.is_ok());
            }
        }
        Self(interruption)
    }

    pub(crate) fn was_pressed(&self) -> bool {
        *self.0.borrow()
    }

    /// Resolves once Ctrl-C was pressed; never where the process cannot listen for it.
    pub(crate) async fn pressed(&self) {
        if self.0.clone().wait_for(|was_pressed| *was_pressed).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_press_counts_from_the_call_on() {
        let interruption = Interruption::listen().await;
        assert!(!interruption.was_pressed());
        let own = std::process::id().to_string();
        let sent = std::process::Command::new("kill").args(["-INT", &own]).status();
        assert!(sent.expect("kill runs").success());
        interruption.pressed().await;
        assert!(interruption.was_pressed());
    }
}
