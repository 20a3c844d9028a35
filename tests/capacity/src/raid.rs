//! Scripts that want lobbies of their own where no game server runs and each lobby has one started: how many
//! they have started, what those cost, and what becomes of the players (decision 76).

use std::{collections::BTreeMap, net::Ipv4Addr, sync::Arc, time::Duration};

use serde_json::json;
use tokio::time::{Instant, sleep, sleep_until};

use super::{
    on_demand::{Birth, Moment, Scene, deliver},
    setting::{in_virtual_time, lock},
};

/// How long it lasts.
const LENGTH: Duration = Duration::from_secs(600);
/// From one player to the next.
const PLAYER_EVERY: Duration = Duration::from_secs(3);
/// From one find of a script to the next.
const SCRIPT_EVERY: Duration = Duration::from_secs(2);
/// Dollars for an hour of the smallest task of Fargate with its address (infra/docs/on-demand.md).
const HOUR_DOLLARS: f64 = 0.017;
/// The default limits of a namespace and of a version.
const SEATS_PER_CLIENT: u32 = 8;
const SERVERS_MAX: u32 = 20;

/// A raid; the same one gives the same outcome.
#[derive(Clone, Copy, Debug)]
pub struct Raid {
    /// Addresses, each of which finds with a tag that nobody else has, and never connects.
    pub addresses: u32,
    /// What everything random comes from.
    pub seed: u64,
}

/// What became of it.
#[derive(Debug)]
pub struct RaidOutcome {
    players: Birth,
    refused: BTreeMap<&'static str, u64>,
    /// Processes that ran, second by second.
    standing: Vec<usize>,
}

/// The table's head.
pub const RAID_HEAD: &str = "\
| addresses | processes ordered | for each address and minute | at one time: mean, most | $ an hour | players seated at once, \
later, not | refusals of scripts |
|---|---|---|---|---|---|---|";

impl RaidOutcome {
    /// Its row of the table.
    #[must_use]
    pub fn row(&self, raid: Raid) -> String {
        let (ordered, minutes) = (self.players.ordered(), LENGTH.as_secs_f64() / 60.0);
        let mean = self.standing.iter().sum::<usize>() as f64 / self.standing.len().max(1) as f64;
        format!(
            "| {} | {ordered} | {:.2} | {mean:.1}, {} | {:.2} | {} | {:?} |",
            raid.addresses,
            ordered as f64 / f64::from(raid.addresses.max(1)) / minutes,
            self.standing.iter().max().copied().unwrap_or_default(),
            mean * HOUR_DOLLARS,
            self.players.seated(),
            self.refused,
        )
    }
}

/// Plays a raid.
///
/// # Panics
/// When what must not fail fails.
#[must_use]
pub fn run_raid(raid: Raid) -> RaidOutcome {
    in_virtual_time(raid.seed, async {
        let moment = Moment { capacity: 1, ..Moment::of(raid.seed) };
        let scene = Arc::new(Scene::new(moment, SEATS_PER_CLIENT, SERVERS_MAX).await);
        let began = Instant::now();
        let deliveries = tokio::spawn(deliver(Arc::clone(&scene)));
        for address in 0..raid.addresses {
            tokio::spawn(script(Arc::clone(&scene), address, began));
        }
        let mut standing = Vec::new();
        let players = async {
            for nth in 0.. {
                let at = began + PLAYER_EVERY * nth;
                if at >= began + LENGTH {
                    break;
                }
                sleep_until(at).await;
                tokio::spawn(Arc::clone(&scene).play(nth));
            }
        };
        let counts = async {
            while began.elapsed() < LENGTH {
                standing.push(lock(&scene.outcome).running());
                sleep(Duration::from_secs(1)).await;
            }
        };
        tokio::join!(players, counts);
        deliveries.abort();
        let refused = std::mem::take(&mut *lock(&scene.refused));
        RaidOutcome { players: std::mem::take(&mut *lock(&scene.outcome)), refused, standing }
    })
}

/// The finds of one address.
async fn script(scene: Arc<Scene>, address: u32, began: Instant) {
    let from = Ipv4Addr::from(0x0b00_0000 + address);
    for nth in 0.. {
        let at = began + SCRIPT_EVERY * nth;
        if at >= began + LENGTH {
            return;
        }
        sleep_until(at).await;
        let body = json!({ "game_modes": ["mode-0"], "tags": { "map": format!("{address}/{nth}") } });
        if let Err(error) = scene.find(from, &[], &body).await.0 {
            *lock(&scene.refused).entry(error.status_and_code().1).or_default() += 1;
        }
    }
}
