//! How game servers may register (decision 32): where, with which ports, for how many lobbies, how long.

use std::{collections::BTreeSet, time::Duration};

use crate::{
    base::ambient::Timestamp,
    models::{
        game::Game,
        ids::{
            BuildId, GameMode, IDENTIFIER_CHARS_MAX, NamespaceId, RegionId, ServerId, ServerKey, StartId,
            TokenId, WriteId,
        },
        launch::{LaunchStage, build_id},
        ports::Ports,
        server::{Server, look_again},
        violations::{Violations, listed},
    },
    rules::hostname,
    wire::RegisterServerRequest,
};

/// The most lobbies of one server.
pub const CAPACITY_MAX: u32 = 1_000_000;
/// The lease of a registration that names none, in seconds.
const LEASE_SECONDS_DEFAULT: u32 = 60;
/// The longest lease, in seconds: a day.
pub const LEASE_SECONDS_MAX: u32 = 86_400;
/// The most modes that a registration names.
const GAME_MODES_MAX: usize = 32;

/// How long an equal registration without `start_id` counts as a retry.
const REPEATED_FOR: Duration = Duration::from_secs(10);
/// Earlier starts that a server remembers, whose late requests change nothing.
const FORMER_STARTS_MAX: usize = 16;

/// The relation of a registration to the stored server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// The process that registered last.
    Same,
    /// A new process: lobbies of the one before are over.
    New,
    /// A process that a later one replaced.
    Former,
}

/// A registration that every rule allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    start_id: Option<StartId>,
    region_id: RegionId,
    game_modes: Option<BTreeSet<GameMode>>,
    capacity: Option<u32>,
    ports: Ports,
    lease_ms: Option<u64>,
    auto_ready: bool,
    build_id: Option<BuildId>,
}

impl Registration {
    /// The registration of `request` in `game`, on `hostname` where its ports name none.
    ///
    /// # Errors
    /// Every violation; those of ports by [`crate::rules::ports`].
    pub fn check(
        request: &RegisterServerRequest,
        game: &Game,
        hostname: Option<&str>,
    ) -> Result<Self, Violations> {
        let mut violations = Violations::default();
        let mut refuse =
            |field: &str, violation: &str, allowed: String| violations.add(&[field, violation], allowed);
        let region_id = game.regions.get_key_value(request.region_id.as_str()).map(|(id, _)| id.clone());
        if region_id.is_none() {
            let regions: Vec<_> = game.regions.keys().map(RegionId::as_str).collect();
            let named: String = request.region_id.chars().take(IDENTIFIER_CHARS_MAX).collect();
            refuse("region_id", "not-found", format!("`{named}` is not one of {}", listed(&regions)));
        }
        match request.capacity {
            Some(0) => refuse("capacity", "too-low", format!("1 to {CAPACITY_MAX}")),
            Some(capacity) if capacity > CAPACITY_MAX => {
                refuse("capacity", "too-high", format!("1 to {CAPACITY_MAX}"));
            }
            _ => {}
        }
        let lease_seconds = request.lease_seconds.unwrap_or(LEASE_SECONDS_DEFAULT);
        if lease_seconds > LEASE_SECONDS_MAX {
            refuse("lease_seconds", "too-high", format!("0 to {LEASE_SECONDS_MAX}, 0 for no lease"));
        }
        let mut game_modes = None;
        if let Some(names) = &request.game_modes {
            let known: Result<BTreeSet<GameMode>, _> = names.iter().map(|name| name.parse()).collect();
            match known {
                Ok(modes) if modes.is_empty() => {
                    refuse(
                        "game_modes",
                        "too-few",
                        "at least one, or no `game_modes` for every mode".to_owned(),
                    );
                }
                Ok(modes) if modes.len() > GAME_MODES_MAX => {
                    refuse("game_modes", "too-many", format!("at most {GAME_MODES_MAX}"));
                }
                Ok(modes) => game_modes = Some(modes),
                Err(form) => refuse("game_modes", "invalid", format!("a mode {form}")),
            }
        }
        let ports = match Ports::of_specs(&request.ports, hostname) {
            Ok(ports) => Some(ports),
            Err(invalid) => {
                violations.add_below(&[], invalid);
                None
            }
        };
        match (region_id, ports) {
            (Some(region_id), Some(ports)) if violations.is_empty() => Ok(Self {
                start_id: request.start_id.clone(),
                region_id,
                game_modes,
                capacity: request.capacity,
                ports,
                lease_ms: (lease_seconds > 0).then_some(u64::from(lease_seconds) * 1_000),
                auto_ready: request.auto_ready.unwrap_or(true),
                build_id: request.build.as_ref().map(build_id),
            }),
            _ => Err(violations),
        }
    }

    /// Its hosts that only its own machine or network can reach.
    pub fn private_hosts(&self) -> impl Iterator<Item = &str> {
        self.ports.iter().map(|(_, port)| port.hostname.as_str()).filter(|host| !hostname::is_public(host))
    }

    /// The modes that it names; empty when it runs all.
    pub fn game_modes(&self) -> impl Iterator<Item = &GameMode> {
        self.game_modes.iter().flatten()
    }

    /// The server's identifier when the request names none: the same for each process at one address
    /// (decision 32); with a range of ports the same for a retry, if the start has a name.
    #[must_use]
    pub fn unnamed_server(&self, namespace_id: &NamespaceId, token_id: &TokenId) -> Option<ServerId> {
        if let Some(address) = self.ports.address() {
            return Some(ServerId::at_address(namespace_id, token_id, &self.region_id, &address));
        }
        let process = serde_json::json!(self.ports).to_string();
        self.start_id
            .as_ref()
            .map(|start_id| ServerId::of_start(namespace_id, start_id, &self.region_id, &process))
    }

    /// Its relation at `now` to the server `seen`.
    #[must_use]
    pub fn start(&self, seen: &Server, now: Timestamp) -> Start {
        let Some(start_id) = &self.start_id else {
            let is_young = now.since(seen.started_at) < REPEATED_FOR;
            return if is_young && self.repeats(seen) { Start::Same } else { Start::New };
        };
        if seen.start_id.as_ref() == Some(start_id) {
            Start::Same
        } else if seen.former_starts.contains(&start_id.mark()) {
            Start::Former
        } else {
            Start::New
        }
    }

    fn repeats(&self, seen: &Server) -> bool {
        let Self { start_id: _, region_id, game_modes, capacity, ports, lease_ms, auto_ready, build_id } =
            self;
        (region_id, game_modes, &capacity.unwrap_or(1), ports, lease_ms, auto_ready, build_id)
            == (
                &seen.region_id,
                &seen.game_modes,
                &seen.capacity,
                &seen.ports,
                &seen.lease_ms,
                &seen.auto_ready,
                &seen.build_id,
            )
    }

    /// The server `key` as registered at `now` by the write `registration`, in the place of `seen`, if it
    /// registered before. A start without a name becomes `unnamed`. It has no owner and no game yet.
    ///
    /// One that was requested keeps what its request says: region, build, and its capacity unless the
    /// registration names one.
    ///
    /// # Errors
    /// Region or ports that one start changes under live lobbies; another region, or no lease, of a server
    /// that was requested.
    pub fn into_server(
        self,
        key: ServerKey,
        seen: Option<&Server>,
        unnamed: StartId,
        registration: WriteId,
        now: Timestamp,
    ) -> Result<Server, Violations> {
        let same = seen.filter(|seen| self.start(seen, now) != Start::New);
        same.map_or(Ok(()), |same| self.keeps(same))?;
        let launched = same.filter(|same| same.launch.is_some());
        let used = seen.map_or(0, |seen| seen.used);
        let (allotted, cap_checked) = seen.map_or((0, 0), |seen| (seen.allotted, seen.cap_checked));
        // A later rank would hide a server with a place from a look that began before.
        let ranked_at = seen.filter(|seen| !seen.is_deregistered()).map_or(now, |seen| seen.ranked_at);
        let is_clearing = used > 0 && same.is_none_or(|same| same.is_clearing);
        let mut former_starts = seen.map_or_else(Vec::new, |seen| seen.former_starts.clone());
        if let Some(former) = seen.filter(|_| same.is_none()).and_then(|seen| seen.start_id.as_ref()) {
            former_starts.push(former.mark());
            former_starts.drain(..former_starts.len().saturating_sub(FORMER_STARTS_MAX));
        }
        let capacity = self.capacity.or(launched.map(|launched| launched.capacity)).unwrap_or(1);
        let has_place = used < capacity && !is_clearing;
        let free_from = if has_place { ranked_at } else { look_again(&key, now) };
        let server = Server {
            build_id: launched.map_or(self.build_id, |launched| launched.build_id.clone()),
            launch: launched.and_then(|launched| launched.launch.clone()),
            stage: launched.map(|_| LaunchStage::Running),
            idle_since: None,
            handle: launched.and_then(|launched| launched.handle.clone()),
            ended_at: None,
            failure: None,
            placement_pool: None,
            server: key,
            start_id: self.start_id.or_else(|| same.and_then(|same| same.start_id.clone())).or(Some(unnamed)),
            game_id: None,
            owner: None,
            started_at: same.filter(|same| !same.is_requested()).map_or(now, |same| same.started_at),
            former_starts,
            is_clearing,
            region_id: self.region_id,
            free_from,
            ranked_at,
            capacity,
            used,
            allotted,
            cap_checked,
            lease_until: self.lease_ms.map_or(Timestamp::NEVER, |lease_ms| Timestamp(now.0 + lease_ms)),
            beat_at: now,
            lease_ms: self.lease_ms,
            game_modes: self.game_modes,
            auto_ready: self.auto_ready,
            ports: self.ports,
            registration,
        };
        Ok(Server { placement_pool: Some(server.pool()), ..server })
    }

    /// Whether the start `same` may have registered so.
    fn keeps(&self, same: &Server) -> Result<(), Violations> {
        let mut violations = Violations::default();
        if same.launch.is_some() {
            if same.region_id != self.region_id {
                violations.add(&["region_id", "not-requested"], format!("`{}`", same.region_id));
            }
            if self.lease_ms.is_none() {
                violations
                    .add(&["lease_seconds", "too-low"], "a lease, for a server that Muster had started");
            }
        }
        if violations.is_empty() && same.used > 0 && !same.is_clearing && !same.is_requested() {
            if same.region_id != self.region_id {
                let allowed = format!("`{}` until its lobbies have ended", same.region_id);
                violations.add(&["region_id", "in-use"], allowed);
            }
            if same.ports != self.ports {
                violations.add(&["ports", "in-use"], "the same ports until its lobbies have ended");
            }
        }
        if violations.is_empty() { Ok(()) } else { Err(violations) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(fields: Value) -> Result<Registration, Vec<String>> {
        let game = serde_json::from_value(json!({
            "game_id": "g", "name_id": "g", "display_name": "G", "created_at": 0,
            "regions": { "fra": { "display_name": "F", "provider_display_name": "P", "latitude": 50.0, "longitude": 8.0 },
                         "nyc": { "display_name": "N", "provider_display_name": "P", "latitude": 40.0, "longitude": -74.0 } }
        }))
        .unwrap();
        let mut request = json!({
            "region_id": "fra", "ports": { "game": { "hostname": "a.example", "port": 7777, "protocol": "udp" } }
        });
        request.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let request = serde_json::from_value(request).unwrap();
        Registration::check(&request, &game, None).map_err(|violations| violations.joined().collect())
    }

    fn id() -> WriteId {
        "registration".parse().unwrap()
    }

    fn start() -> StartId {
        StartId::try_from("unnamed".to_owned()).unwrap()
    }

    fn key() -> ServerKey {
        "ns/server-1".to_owned().try_into().unwrap()
    }

    #[test]
    fn defaults_are_one_place_a_lease_of_a_minute_and_ready_at_once() {
        let server = check(json!({})).unwrap().into_server(key(), None, start(), id(), Timestamp(5)).unwrap();
        assert_eq!((server.capacity, server.used, server.auto_ready), (1, 0, true));
        assert_eq!((server.lease_ms, server.lease_until), (Some(60_000), Timestamp(60_005)));
        let server = check(json!({ "lease_seconds": 0 }))
            .unwrap()
            .into_server(key(), None, start(), id(), Timestamp(5))
            .unwrap();
        assert_eq!((server.lease_ms, server.lease_until), (None, Timestamp::NEVER), "requested");
        assert_eq!((server.free_from, server.ranked_at), (Timestamp(5), Timestamp(5)));
    }

    #[test]
    fn bounds_are_inclusive_and_all_violations_are_reported() {
        assert!(check(json!({ "capacity": 1_000_000, "lease_seconds": 86_400 })).is_ok());
        assert!(check(json!({ "capacity": 1, "lease_seconds": 1, "game_modes": ["duel"] })).is_ok());
        let cases = [
            (json!({ "region_id": "mars" }), vec!["region_id/not-found"]),
            (json!({ "capacity": 0 }), vec!["capacity/too-low"]),
            (
                json!({ "capacity": 1_000_001, "lease_seconds": 86_401 }),
                vec!["capacity/too-high", "lease_seconds/too-high"],
            ),
            (json!({ "game_modes": [] }), vec!["game_modes/too-few"]),
            (json!({ "game_modes": ["a b"] }), vec!["game_modes/invalid"]),
            (json!({ "ports": {}, "region_id": "" }), vec!["region_id/not-found", "ports/too-few"]),
        ];
        for (fields, paths) in cases {
            assert_eq!(check(fields.clone()).unwrap_err(), paths, "{fields}");
        }
    }

    #[test]
    fn region_and_ports_stay_under_live_lobbies_of_one_start() {
        let first = check(json!({ "start_id": "a", "capacity": 2 }))
            .unwrap()
            .into_server(key(), None, start(), id(), Timestamp(5))
            .unwrap();
        let running = Server { used: 1, ..first.clone() };
        let moved = json!({ "start_id": "a", "region_id": "nyc", "ports": { "game": { "hostname": "b", "port": 1, "protocol": "udp" } } });
        let refused =
            check(moved.clone()).unwrap().into_server(key(), Some(&running), start(), id(), Timestamp(9));
        let refused: Vec<_> = refused.unwrap_err().joined().collect();
        assert_eq!(refused, ["region_id/in-use", "ports/in-use"]);
        assert!(check(moved).unwrap().into_server(key(), Some(&first), start(), id(), Timestamp(9)).is_ok());
        let smaller = check(json!({ "start_id": "a", "capacity": 1 })).unwrap();
        let smaller = smaller.into_server(key(), Some(&running), start(), id(), Timestamp(9)).unwrap();
        assert_eq!(smaller.start_id, first.start_id);
        let out_of_sight = look_again(&key(), Timestamp(9));
        assert_eq!((smaller.used, smaller.free_from, smaller.ranked_at), (1, out_of_sight, Timestamp(5)));
    }

    #[test]
    fn a_new_start_moves_and_gets_no_lobby_while_those_of_the_one_before_live() {
        let first = check(json!({ "start_id": "a" }))
            .unwrap()
            .into_server(key(), None, start(), id(), Timestamp(5))
            .unwrap();
        let running = Server { used: 1, allotted: 1, ..first.clone() };
        let restart = json!({ "start_id": "b", "region_id": "nyc", "capacity": 9 });
        let next =
            check(restart).unwrap().into_server(key(), Some(&running), start(), id(), Timestamp(9)).unwrap();
        assert_eq!(
            (next.used, next.allotted, next.is_clearing, next.free_from),
            (1, 1, true, look_again(&key(), Timestamp(9)))
        );
        assert_eq!((next.started_at, next.region_id.as_str()), (Timestamp(9), "nyc"));
        assert!(!next.fits(&"arena".parse().unwrap(), Timestamp(10)));
        let same = check(json!({ "start_id": "b" })).unwrap();
        assert_eq!(same.start(&next, Timestamp(9_999_999)), Start::Same);
        let same = same.into_server(key(), Some(&next), start(), id(), Timestamp(10)).unwrap();
        assert!(same.is_clearing, "ports may change until they have ended");
        assert_eq!(check(json!({ "start_id": "a" })).unwrap().start(&same, Timestamp(10)), Start::Former);
        // The server remembers this many starts, of which late requests may come.
        let mut server = same;
        for n in 0..20 {
            let again = check(json!({ "start_id": format!("c{n}") })).unwrap();
            server = again.into_server(key(), Some(&server), start(), id(), Timestamp(20)).unwrap();
        }
        assert_eq!(server.former_starts.len(), 16);
    }

    #[test]
    fn a_server_keeps_its_rank_until_it_deregisters() {
        let first = check(json!({})).unwrap().into_server(key(), None, start(), id(), Timestamp(5)).unwrap();
        let restart = check(json!({ "start_id": "b" })).unwrap();
        let next = restart.into_server(key(), Some(&first), start(), id(), Timestamp(9)).unwrap();
        assert_eq!(
            (next.ranked_at, next.free_from, next.started_at),
            (Timestamp(5), Timestamp(5), Timestamp(9))
        );
        let later = Timestamp(3_600_005);
        let gone = Server { ranked_at: later, free_from: later, capacity: 0, ..first };
        let again =
            check(json!({})).unwrap().into_server(key(), Some(&gone), start(), id(), Timestamp(9)).unwrap();
        assert_eq!((again.ranked_at, again.free_from, again.capacity), (Timestamp(9), Timestamp(9), 1));
    }
}
