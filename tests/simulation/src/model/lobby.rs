//! A lobby as the model reads it off its item.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    super::wire::{STARTING_MS, number},
    returns::Tokens,
};

/// Where a lobby is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    Starting,
    Ready,
    Ended,
}

/// What the index of lobbies with room multiplies their seats by.
const ROOM_STEP: u64 = 100_000_000_000_000;

/// A lobby's item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lobby {
    pub(crate) id: String,
    pub(crate) namespace: String,
    pub(crate) version: String,
    pub(crate) mode: String,
    pub(crate) region: String,
    pub(crate) stage: Stage,
    pub(crate) is_closed: bool,
    pub(crate) is_private: bool,
    pub(crate) is_draining: bool,
    pub(crate) joinable_from: Option<u64>,
    /// Seats for a party, as their index shows it.
    pub(crate) room: Option<u64>,
    pub(crate) created_at: u64,
    pub(crate) lease_until: u64,
    /// Absent once ended.
    pub(crate) server: Option<String>,
    pub(crate) ports: Value,
    pub(crate) tag_digests: Value,
    pub(crate) max_players: u64,
    pub(crate) max_players_direct: u64,
    pub(crate) reservation_ms: u64,
    pub(crate) idle_ms: u64,
    pub(crate) keep_ms: u64,
    pub(crate) taken: u64,
    pub(crate) reserved: BTreeMap<String, u64>,
    pub(crate) connected: BTreeMap<String, u64>,
    pub(crate) tokens: BTreeMap<String, Tokens>,
    pub(crate) vacated_at: Option<u64>,
    pub(crate) was_joined: bool,
    pub(crate) is_doubted: bool,
    /// Until when the requested server that it waits for has to register.
    pub(crate) awaited_until: Option<u64>,
}

impl Lobby {
    /// The lobby of an item.
    ///
    /// # Errors
    /// What the item lacks.
    pub(crate) fn read(item: &Value) -> Result<Self, String> {
        let text = |name: &str| item[name]["S"].as_str().map(ToOwned::to_owned);
        let needed = |name: &str| text(name).ok_or_else(|| format!("it lacks {name}: {item}"));
        let count = |name: &str| number(&item[name]).ok_or_else(|| format!("it lacks {name}: {item}"));
        let flag = |name: &str| item[name]["BOOL"].as_bool().unwrap_or(false);
        let seats = |name: &str| -> BTreeMap<String, u64> {
            let seats = item[name]["M"].as_object().into_iter().flatten();
            seats.map(|(seat, until)| (seat.clone(), number(until).unwrap_or(0))).collect()
        };
        let pool = needed("pool")?;
        // In whichever shard of the index.
        let pool: Vec<_> = pool.split('~').next().unwrap_or_default().split('/').collect();
        let [namespace, version, mode, region] = pool[..] else {
            return Err(format!("a pool like {pool:?}"));
        };
        Ok(Self {
            id: needed("lobby_id")?,
            namespace: namespace.to_owned(),
            version: version.to_owned(),
            mode: mode.to_owned(),
            region: region.to_owned(),
            stage: match needed("stage")?.as_str() {
                "starting" => Stage::Starting,
                "ready" => Stage::Ready,
                "ended" => Stage::Ended,
                other => return Err(format!("a stage like {other}")),
            },
            is_closed: flag("closed"),
            is_private: flag("is_private"),
            is_draining: flag("is_draining"),
            joinable_from: number(&item["joinable_from"]),
            room: number(&item["room"]).map(|room| room / ROOM_STEP),
            created_at: count("created_at")?,
            lease_until: count("lease_until")?,
            server: text("server"),
            ports: item["ports"].clone(),
            tag_digests: item["tag_digests"].clone(),
            max_players: count("max_players")?,
            max_players_direct: count("max_players_direct")?,
            reservation_ms: count("reservation_secs")? * 1_000,
            // It begins with the first player.
            idle_ms: text("connected_by").and(number(&item["idle_secs"])).unwrap_or(0) * 1_000,
            keep_ms: number(&item["keep_secs"]).unwrap_or(0) * 1_000,
            taken: count("taken")?,
            reserved: seats("reserved"),
            connected: seats("connected"),
            tokens: {
                let tokens = item["generations"]["M"].as_object().into_iter().flatten();
                tokens
                    .filter_map(|(seat, text)| Some((seat.clone(), Tokens::read(text["S"].as_str()?)?)))
                    .collect()
            },
            vacated_at: number(&item["vacated_at"]),
            was_joined: text("connected_by").is_some(),
            is_doubted: number(&item["doubt"]).unwrap_or(0) > 0,
            awaited_until: number(&item["launch"]["M"]["deadline"]),
        })
    }

    pub(crate) fn lives(&self) -> bool {
        self.stage != Stage::Ended
    }

    /// Whether it should have become ready by `time`, and has not.
    pub(crate) fn is_overdue(&self, time: u64) -> bool {
        self.stage == Stage::Starting && self.created_at + STARTING_MS <= time
    }

    /// Every seat with the time at which it lapses, lapsed or not.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&String, u64)> {
        self.reserved.iter().chain(&self.connected).map(|(seat, until)| (seat, *until))
    }

    /// Seats that are held at `time`.
    pub(crate) fn held(&self, time: u64) -> u64 {
        self.entries().filter(|(_, until)| !self.lapses(*until, time)).count() as u64
    }

    /// Whether a seat that is held until `until` has lapsed at `time`; none lapses while the lobby starts.
    pub(crate) fn lapses(&self, until: u64, time: u64) -> bool {
        self.stage != Stage::Starting && until <= time
    }

    pub(crate) fn holds(&self, seat: &str) -> bool {
        self.reserved.contains_key(seat) || self.connected.contains_key(seat)
    }

    /// Whether a seat is held at `time`.
    pub(crate) fn holds_at(&self, seat: &str, time: u64) -> bool {
        let until = self.reserved.get(seat).or_else(|| self.connected.get(seat));
        until.is_some_and(|until| !self.lapses(*until, time))
    }

    /// When a find can take a seat if nothing else happens to the lobby, once it is ready; `None` while a
    /// seat is free anyway.
    pub(crate) fn free_from(&self) -> Option<u64> {
        let mut lapses: Vec<u64> = self.entries().map(|(_, until)| until).collect();
        lapses.sort_unstable();
        let too_many = lapses.len().checked_sub(usize::try_from(self.max_players).ok()?)?;
        lapses.get(too_many).copied()
    }

    /// Whether a find for a `party` may enter at `time`, whatever its criteria.
    pub(crate) fn is_open(&self, party: u64, time: u64) -> bool {
        self.lives()
            && !self.is_overdue(time)
            && !self.is_closed
            && !self.is_private
            && !self.is_draining
            && self.lease_until > time
            && self.held(time) + party <= self.max_players
    }

    /// Whether it may end at `time` without a request. If its capacity is needed, its idle time is 0.
    pub(crate) fn may_end(&self, time: u64, is_room_needed: bool) -> bool {
        let last_held =
            self.entries().map(|(_, until)| until).chain(self.vacated_at).fold(self.created_at, u64::max);
        let idle_ms = if is_room_needed { 0 } else { self.idle_ms };
        let is_idle = self.stage == Stage::Ready && last_held + idle_ms <= time;
        let makes_room = is_room_needed && self.is_unused();
        self.lease_until <= time || self.is_overdue(time) || is_idle || makes_room
    }

    /// Whether it is ready and nobody has connected yet, and its maker's players had not either: then it
    /// makes room for others.
    pub(crate) fn is_unused(&self) -> bool {
        self.stage == Stage::Ready && !self.was_joined && self.is_doubted
    }
}
