//! A clock for simulations, under which every wait of the product and of the SDK is virtual.

use shared::base::ambient::{Ambient, Timestamp};

/// The current runtime's clock, which begins at `began_at` and may be paused, with randomness from `entropy`.
pub fn virtual_ambient(began_at: Timestamp, entropy: impl Fn(&mut [u8]) + Send + Sync + 'static) -> Ambient {
    let start = tokio::time::Instant::now();
    Ambient::new(move || began_at + start.elapsed(), entropy)
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use muster_local::{
        emulator::{
            in_process::InProcess,
            link::{Call, Carried, Link, client_over},
        },
        stack::{TEMPLATE, table_names},
        template::Template,
    };
    use shared::{
        models::{errors::Error, ids::LobbyId},
        store::client::Store,
    };

    use super::*;

    #[derive(Debug)]
    struct Slow(InProcess);

    impl Link for Slow {
        fn carry(&self, call: Call) -> Carried {
            let database = self.0.clone();
            Box::pin(async move {
                tokio::time::sleep(Duration::from_millis(7)).await;
                Ok(database.answer(&call.operation, &call.body))
            })
        }
    }

    /// Answers nothing, ever.
    #[derive(Debug)]
    struct Silent;

    impl Link for Silent {
        fn carry(&self, _: Call) -> Carried {
            Box::pin(std::future::pending())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_store_runs_over_a_link_in_virtual_time() {
        let tables = Template::parse(TEMPLATE).unwrap().tables;
        let store = Store::new(client_over(Arc::new(Slow(InProcess::new(&tables).unwrap()))), table_names());
        let ambient = virtual_ambient(Timestamp(1_000), |bytes| bytes.fill(7));
        let missing = store.lobby(&LobbyId::from(ambient.uuid())).await;
        assert!(matches!(missing, Ok(None)), "{missing:?}");
        assert_eq!(ambient.now(), Timestamp(1_007));
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_link_ends_in_an_error_after_the_attempts_that_the_client_allows() {
        let store = Store::new(client_over(Arc::new(Silent)), table_names());
        let ambient = virtual_ambient(Timestamp(1_000), |bytes| bytes.fill(7));
        let lost = store.lobby(&LobbyId::from(ambient.uuid())).await;
        assert!(matches!(lost, Err(Error::Unavailable(_))), "{lost:?}");
        let waited = ambient.now().since(Timestamp(1_000));
        assert!(waited >= Duration::from_secs(4) && waited < Duration::from_secs(5), "{waited:?}");
    }
}
