//! Why no game server has a place for a lobby.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

use crate::{
    base::ambient::Timestamp,
    models::{
        ids::{GameMode, RegionId},
        server::Server,
    },
};

/// Why a game server gets no lobby.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Obstacle {
    /// It deregistered, and still runs lobbies.
    Draining,
    /// Its heartbeats stopped.
    Silent,
    /// It started again, and lobbies of an earlier start have still to end.
    Clearing,
    /// It does not run the mode, or has ports that only a later release knows.
    Unfit,
    /// It runs as many lobbies as it can.
    Full,
}

impl Obstacle {
    /// Why `server` gets no lobby of `mode` at `now`; `None` when it has a place for one.
    #[must_use]
    pub fn of(server: &Server, mode: &GameMode, now: Timestamp) -> Option<Self> {
        if server.fits(mode, now) {
            None
        } else if server.is_deregistered() {
            Some(Self::Draining)
        } else if server.lease_until <= now {
            Some(Self::Silent)
        } else if server.is_clearing {
            Some(Self::Clearing)
        } else if server.used >= server.capacity {
            Some(Self::Full)
        } else {
            Some(Self::Unfit)
        }
    }
}

/// Numbers of game servers by the reason why they get no lobby.
pub type Obstacles = BTreeMap<Obstacle, usize>;

/// How many of `servers` get no lobby of `mode` at `now`, and why.
#[must_use]
pub fn obstacles<'a>(
    servers: impl IntoIterator<Item = &'a Server>,
    mode: &GameMode,
    now: Timestamp,
) -> Obstacles {
    let mut obstacles = Obstacles::new();
    for obstacle in servers.into_iter().filter_map(|server| Obstacle::of(server, mode, now)) {
        *obstacles.entry(obstacle).or_default() += 1;
    }
    obstacles
}

/// The game servers of a region, none of which has a place for a lobby of a mode. As text, a sentence with a
/// remedy for each reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// The mode.
    pub game_mode: GameMode,
    /// The region.
    pub region_id: RegionId,
    /// Its game servers by the reason; empty when there is none.
    pub servers: Obstacles,
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { game_mode, region_id, servers } = self;
        if servers.is_empty() {
            return write!(f, "`{region_id}` has no game server: start one");
        }
        write!(f, "no game server of `{region_id}` has a place for `{game_mode}`: ")?;
        for (place, (obstacle, count)) in servers.iter().enumerate() {
            let comma = if place == 0 { "" } else { ", " };
            write!(f, "{comma}{count} ")?;
            match obstacle {
                Obstacle::Draining => f.write_str("draining (start another)"),
                Obstacle::Silent => f.write_str("silent (no heartbeats: restart, or repair its network)"),
                Obstacle::Clearing => f.write_str("clearing (lobbies of its earlier start still end)"),
                Obstacle::Unfit => write!(f, "unfit (registered without `{game_mode}`)"),
                Obstacle::Full => f.write_str(
                    "full (start more, or raise `capacity` or, where Muster starts them, `server_count_max`)",
                ),
            }?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shortage(servers: &[(Obstacle, usize)]) -> String {
        let (game_mode, region_id) = ("duel".parse().unwrap(), "fra".parse().unwrap());
        Shortage { game_mode, region_id, servers: servers.iter().copied().collect() }.to_string()
    }

    #[test]
    fn each_reason_comes_with_its_count_and_its_remedy() {
        assert_eq!(shortage(&[]), "`fra` has no game server: start one");
        assert_eq!(
            shortage(&[(Obstacle::Full, 1), (Obstacle::Silent, 2)]),
            "no game server of `fra` has a place for `duel`: 2 silent (no heartbeats: restart, or repair its \
             network), 1 full (start more, or raise `capacity` or, where Muster starts them, `server_count_max`)"
        );
        let others = shortage(&[(Obstacle::Draining, 1), (Obstacle::Clearing, 1), (Obstacle::Unfit, 1)]);
        for said in ["1 draining (start another)", "1 clearing (", "1 unfit (registered without `duel`)"] {
            assert!(others.contains(said), "{others}");
        }
    }
}
