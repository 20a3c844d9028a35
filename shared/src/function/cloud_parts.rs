//! What cloud operations share.

use crate::{
    auth::cloud::CloudAuth,
    base::ambient::Ambient,
    function::{config::InvalidConfig, instance::Instance},
    store::client::Store,
};

/// The parts of a cloud operation.
#[derive(Debug)]
pub struct CloudParts {
    /// Turns the request's token into a right.
    pub auth: CloudAuth,
    /// The store.
    pub store: Store,
    /// Clock and randomness.
    pub ambient: Ambient,
}

impl CloudParts {
    /// Those of `instance`.
    ///
    /// # Errors
    /// As [`Instance::store`] and [`Instance::keys`].
    pub fn of(instance: &Instance) -> Result<Self, InvalidConfig> {
        let (store, ambient) = (instance.store()?, instance.ambient());
        Ok(Self { auth: CloudAuth::new(store.clone(), instance.keys()?, ambient.clone()), store, ambient })
    }
}
