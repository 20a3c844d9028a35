//! How many others compete with a find for the lobbies of its pool.
//!
//! One value decides where a find looks and how it creates a lobby:
//!
//! | | from | looks | creates | places the lobby |
//! |---|---|---|---|---|
//! | [`Contention::Quiet`] | | compares the fullest | by election | on the fullest server |
//! | [`Contention::Loaded`] | 5 finds a second | at its last lobby, then ahead | by election | as above |
//! | [`Contention::Busy`] | 32, or a sign of others | as above, three tries | alone, if small | anywhere |
//!
//! Where the head took no more writes, a find creates a larger lobby alone by lot.
//!
//! Finds are those of this instance in the pool within the last second. Decisions 17 to 21 give the reasons.
//!
//! A sign of others counts for a second. There are three:
//!
//! - positions of 25 lobbies, 250 to 800, were drawn in a second from the pool's head, or it took no more
//!   writes,
//! - two candidates that looks showed refused finds within a second (in a pool with shards, no find creates
//!   before it looked into all of them for that reason alone), or a find lost two seats of a burst,
//! - a look into several shards showed more than sixteen candidates.

/// How much competes for the lobbies of a pool, as one instance sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Contention {
    /// Few finds, in all.
    Quiet,
    /// Many finds of this instance.
    Loaded,
    /// Many finds of many instances.
    Busy,
}

/// Finds of an instance in one pool and one second from which it is loaded.
const LOADED_FINDS: usize = 5;
/// Finds from which it is busy: other instances are as loaded.
const BUSY_FINDS: usize = 32;

impl Contention {
    /// The contention after `finds` of this instance within the last second, given whether others gave a
    /// sign.
    pub(super) const fn of(finds: usize, is_sign_given: bool) -> Self {
        match finds {
            _ if is_sign_given => Self::Busy,
            BUSY_FINDS.. => Self::Busy,
            LOADED_FINDS.. => Self::Loaded,
            _ => Self::Quiet,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_of_this_instance_and_a_sign_of_others_are_one_thing() {
        use Contention::{Busy, Loaded, Quiet};
        let levels = [0, 4, 5, 31, 32, 33].map(|finds| Contention::of(finds, false));
        assert_eq!(levels, [Quiet, Quiet, Loaded, Loaded, Busy, Busy]);
        assert!([0, 5, 32].iter().all(|finds| Contention::of(*finds, true) == Busy));
    }
}
