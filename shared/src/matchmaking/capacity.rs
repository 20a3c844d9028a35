//! Capacity at the limit of lobbies, or where every game server is full: taking back parts of the limit that
//! servers do not need, and ending a lobby that may end (decision 27).
//!
//! A lobby counts until it has ended. At the limit, a lobby may end if its server is dead, if no seat was
//! held for its idle time, or if it never became ready. If there is none, the lobby that has been empty
//! longest may end. Last of all, a lobby that nobody has connected to makes room, unless its maker's players
//! connected before (decision 65). The find searches its own region first. Without a place on a server, only
//! a lobby of a server that could run the new one helps.
//!
//! A search reads every server and thousands of lobbies, so instances share an unsuccessful search (in the
//! ledger, `room/…`) for at most a second (decision 28).
//!
//! The search reads one region after the other, so a lobby that ends in one and another that begins in the
//! next meanwhile look like two. Before it refuses a find for the limit, it therefore reads the servers that
//! run lobbies again, consistently and all at once. If they run fewer lobbies than the limit, the rest is on
//! its way, and the find waits for it, two to four seconds. The same where another request was quicker to end
//! a lobby that the search had read.

use std::{
    collections::{HashMap, HashSet},
    mem,
    time::Duration,
};

use futures_util::future::try_join_all;

use crate::{
    auth::settings::Settings,
    matchmaking::{matchmaker::Matchmaker, outcomes::NoCapacity, search::Search, searches::Need},
    models::{
        errors::Error,
        ids::{LobbyId, RegionId, ServerKey},
        lobby::{EndCause, Lobby},
        pool::Pool,
        server::{PlacementPool, Server},
        shortage::{Obstacle, Obstacles, obstacles},
        standing::may_displace,
    },
    rules::capacity::{MayEnd, displaced, lobbies_of},
    seating::seeker::Seeker,
    store::{
        allotment::AllotmentOutcome, ending::EndOutcome, failed_searches::BELIEVED_FOR,
        listing::placements_of,
    },
};

/// Servers of a region that one search reads at most.
const SERVERS_SEARCHED_MAX: usize = 1_000;
/// Servers whose lobbies are read at the same time.
const SERVERS_AT_ONCE: usize = 32;
/// Lobbies of one server that one search reads at most, the oldest.
const LOBBIES_OF_A_SERVER_MAX: usize = 1_000;
/// Lobbies that one search reads at most of all servers, which it reads in random order.
const LOBBIES_SEARCHED_MAX: usize = 4_096;
/// Lobbies of one search that other requests end first before it leaves the rest to them: each costs it a
/// call or two.
const OUTRUN_MAX: u32 = 24;
/// Lobbies to displace next that an instance keeps of one search.
const DISPLACED_KEPT_MAX: usize = 64;
/// Lobbies of equally doubted makers, the oldest, among which a find draws the one to displace.
const DISPLACED_DRAWN_MAX: usize = 16;
/// Servers that one search asks, as they are, whether they have some of the cap left.
const SERVERS_ASKED_MAX: usize = 3;
/// Candidates of each pool that one search reads.
const CANDIDATES_SEARCHED_MAX: usize = 100;

/// The result of a search for capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Capacity {
    /// Capacity is free.
    Freed,
    /// Another lobby made room, for which others may be waiting, too.
    Displaced,
    /// The servers run fewer lobbies than the namespace may hold, or another request was quicker to end one:
    /// capacity is on its way, or with a server that the index does not show yet.
    Moving,
    /// No capacity, and none could be freed.
    None,
}

/// A search for a lobby that may end.
#[derive(Debug)]
struct Ending {
    needed: NoCapacity,
    /// The servers that run the lobbies, as they were last seen.
    servers: HashMap<ServerKey, Server>,
    /// Lobbies read.
    read: usize,
    /// Lobbies that end only if no other lobby may.
    spared: Vec<Lobby>,
    /// Lobbies that nobody has connected to, which end only if none of those may.
    unused: Vec<Lobby>,
    /// How long the other lobbies took to their first player.
    waits: Vec<Duration>,
    /// Lobbies that another request has ended, or is about to.
    outrun: u32,
}

impl Ending {
    fn new(needed: NoCapacity, servers: HashMap<ServerKey, Server>) -> Self {
        let (spared, unused, waits) = (Vec::new(), Vec::new(), Vec::new());
        Self { needed, servers, read: 0, spared, unused, waits, outrun: 0 }
    }

    const fn left(&self) -> usize {
        LOBBIES_SEARCHED_MAX.saturating_sub(self.read)
    }

    /// Whether others are quicker at so many lobbies that more tries would only add to the race.
    const fn is_outrun(&self) -> bool {
        self.outrun >= OUTRUN_MAX
    }
}

impl Matchmaker {
    /// Frees capacity: at the cap, takes a part of it back from a server that does not use it, else ends one
    /// lobby of the namespace that may end.
    ///
    /// Where a server's place is needed, only a lobby of a server that could run the wanted one helps. At the
    /// cap, one of its region is best, since that also frees a place there. A search reads every server and
    /// thousands of lobbies, so while a search without result is believed, all instances together search at
    /// most twice a second.
    pub(super) async fn free_capacity(
        &self,
        search: &Search,
        needed: NoCapacity,
        seeker: &Seeker,
    ) -> Result<Capacity, Error> {
        let wanted = &search.criteria.new_lobby.pool;
        let need = Need { capacity: needed, may_displace: may_displace(seeker.doubt().await?) };
        if needed == NoCapacity::AtCap && need.may_displace && self.displace_next(search).await? {
            return Ok(Capacity::Displaced);
        }
        let mut failed_obstacles = self.searches.failed_search(wanted, need, self.ambient.now());
        if failed_obstacles.is_none()
            && let Some(last) = self.searches.others_failed(search, need).await?
        {
            failed_obstacles = Some(last.obstacles.clone());
            self.searches.believe(search, need, last);
            if needed == NoCapacity::AtCap {
                return Ok(Capacity::None);
            }
        }
        if let Some(obstacles) = failed_obstacles.as_ref().filter(|_| needed == NoCapacity::NoServer) {
            seeker.trace().servers(obstacles.clone());
            return Ok(Capacity::None);
        }
        let mut regions = vec![&wanted.region_id];
        if needed == NoCapacity::AtCap {
            regions.extend(search.settings.game.regions.keys().filter(|region| **region != wanted.region_id));
        }
        let pools = match needed {
            NoCapacity::AtCap => {
                let Settings { game, namespace, .. } = &*search.settings;
                placements_of(&self.store, game, &namespace.namespace_id).await?
            }
            NoCapacity::NoServer => vec![search.criteria.new_lobby.placement()],
        };
        let (mut searched, mut running, mut are_all) = (Vec::new(), Vec::new(), true);
        for region_id in regions {
            let (servers, is_whole) = self.servers_in(region_id, &pools).await?;
            if needed == NoCapacity::AtCap && self.take_allotment_back(search, &servers).await? {
                return Ok(Capacity::Freed);
            }
            running.extend(servers.iter().filter(|server| server.used > 0).cloned());
            are_all &= is_whole;
            searched.push((region_id, servers));
        }
        if failed_obstacles.is_none() {
            match self.end_one_for(search, need, searched, seeker).await? {
                Capacity::None => {}
                other => return Ok(other),
            }
        }
        if needed == NoCapacity::NoServer {
            return Ok(Capacity::None);
        }
        if are_all && !self.are_all_used(search, running).await? {
            return Ok(Capacity::Moving);
        }
        let last = self.searches.publish_failed(search, need, Obstacles::new()).await?;
        self.searches.believe(search, need, last);
        Ok(Capacity::None)
    }

    /// Ends a lobby that may end, of one of the servers of `searched` by region. If there is none, it
    /// remembers and publishes the obstacles at the servers.
    async fn end_one_for(
        &self,
        search: &Search,
        need: Need,
        searched: Vec<(&RegionId, Vec<Server>)>,
        seeker: &Seeker,
    ) -> Result<Capacity, Error> {
        let needed = need.capacity;
        let (now, wanted) = (self.ambient.now(), &search.criteria.new_lobby.pool);
        let nearest = searched.iter().find(|(region_id, _)| **region_id == wanted.region_id);
        let nearest = nearest.map_or(&[][..], |(_, servers)| servers);
        let mut obstacles = obstacles(nearest, &wanted.game_mode, now);
        let let_go = seeker.trace().let_go_beside(nearest);
        if let_go > 0 {
            *obstacles.entry(Obstacle::Silent).or_default() += let_go;
        }
        let servers = searched.iter().flat_map(|(_, servers)| servers);
        let servers = servers.map(|server| (server.server.clone(), server.clone())).collect();
        let mut ending = Ending::new(needed, servers);
        for (region_id, servers) in searched {
            let is_made = match needed {
                NoCapacity::AtCap => self.end_one_in(search, region_id, servers, &mut ending).await?,
                NoCapacity::NoServer => {
                    let helps = |server: &Server| needed.is_helped_by(server, &wanted.game_mode, now);
                    let serving: Vec<_> = servers.into_iter().filter(helps).collect();
                    self.end_one_of_servers(&serving, &mut ending).await?
                }
            };
            if is_made {
                return Ok(Capacity::Freed);
            }
        }
        // The longest empty first.
        let mut spared = mem::take(&mut ending.spared);
        spared.sort_by_key(Lobby::last_held);
        for lobby in spared {
            if ending.is_outrun() {
                break;
            }
            if self.end(lobby, EndCause::Idle, &mut ending).await? {
                return Ok(Capacity::Freed);
            }
        }
        // Those who wait for a lobby to make room would be too many to wait for each other.
        let was_outrun = ending.outrun > 0;
        if need.may_displace {
            let (unused, waits) = (mem::take(&mut ending.unused), mem::take(&mut ending.waits));
            let mut displaced = displaced(unused, waits, now);
            displaced.truncate(DISPLACED_KEPT_MAX);
            displaced.reverse();
            if self.displace_one(search, (displaced, true), &mut ending).await? {
                return Ok(Capacity::Displaced);
            }
        }
        if was_outrun {
            return Ok(Capacity::Moving);
        }
        let until = self.ambient.now() + self.ambient.jittered(BELIEVED_FOR);
        self.searches.remember_failed(wanted, need, obstacles.clone(), until);
        if needed == NoCapacity::NoServer {
            seeker.trace().servers(obstacles.clone());
            self.searches.publish_failed(search, need, obstacles).await?;
        }
        Ok(Capacity::None)
    }

    /// Ends a lobby that the last search would have displaced next.
    async fn displace_next(&self, search: &Search) -> Result<bool, Error> {
        let (namespace_id, now) = (&search.criteria.new_lobby.pool.namespace_id, self.ambient.now());
        let (lobbies, servers) = self.searches.take_unused(namespace_id, now);
        let mut ending = Ending::new(NoCapacity::AtCap, servers);
        self.displace_one(search, (lobbies, false), &mut ending).await
    }

    /// Ends one of the `unused` lobbies, of which the first to make room is the last, and keeps the others
    /// for the next. Unless they `are_fresh`, and after each that another request ended first, it reads some
    /// again, which costs less than an ending in vain.
    async fn displace_one(
        &self,
        search: &Search,
        (mut unused, mut are_fresh): (Vec<Lobby>, bool),
        ending: &mut Ending,
    ) -> Result<bool, Error> {
        while let Some(doubt) = unused.last().map(|lobby| lobby.doubt).filter(|_| !ending.is_outrun()) {
            let equals = unused.iter().rev().take(DISPLACED_DRAWN_MAX);
            let equals = equals.take_while(|lobby| lobby.doubt == doubt).count();
            let mut equals = unused.split_off(unused.len() - equals);
            if !mem::take(&mut are_fresh) {
                let ids: Vec<_> = equals.iter().map(|lobby| lobby.lobby_id.clone()).collect();
                let (seen, now) =
                    (mem::replace(&mut equals, self.store.lobbies(&ids).await?), self.ambient.now());
                // Who came since may be on the way.
                equals.retain(|lobby| {
                    let is_as_seen =
                        |seen: &Lobby| (&seen.lobby_id, &seen.reserved) == (&lobby.lobby_id, &lobby.reserved);
                    ending.needed.may_end(lobby, now) == Some(MayEnd::Unused) && seen.iter().any(is_as_seen)
                });
            }
            if equals.is_empty() {
                continue;
            }
            // Of finds that all took the oldest, each but one would lose it.
            let nth = usize::try_from(self.ambient.below(equals.len() as u64)).unwrap_or(0);
            let drawn = equals.swap_remove(nth);
            unused.extend(equals);
            if self.end(drawn, EndCause::Unused, ending).await? {
                // On a server, only some of a namespace's lobbies help others.
                if ending.needed == NoCapacity::AtCap {
                    let namespace_id = &search.criteria.new_lobby.pool.namespace_id;
                    let kept = (unused, mem::take(&mut ending.servers));
                    self.searches.keep_unused(namespace_id, kept, self.ambient.now());
                }
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether the servers of `running`, as seen one after the other a moment ago, run as many lobbies as the
    /// namespace may hold at one time: a lobby that ended on one server since, and one that began on another,
    /// count as one, not as two.
    async fn are_all_used(&self, search: &Search, mut running: Vec<Server>) -> Result<bool, Error> {
        // Regions that were read one after the other may both show a server.
        let mut seen = HashSet::new();
        running.retain(|server| seen.insert(server.server.clone()));
        let lobby_count_max = search.settings.namespace.lobby_count_max;
        if lobbies_of(&running) < lobby_count_max {
            return Ok(false);
        }
        let keys: Vec<_> = running.into_iter().map(|server| server.server).collect();
        Ok(lobbies_of(&self.store.servers_as_they_are(&keys).await?) >= lobby_count_max)
    }

    /// Ends a lobby in a region that may end.
    async fn end_one_in(
        &self,
        search: &Search,
        region_id: &RegionId,
        servers: Vec<Server>,
        ending: &mut Ending,
    ) -> Result<bool, Error> {
        let now = self.ambient.now();
        let used = servers.into_iter().filter(|server| server.used > 0);
        let (dead, living): (Vec<_>, Vec<_>) = used.partition(|server| server.lease_until <= now);
        Ok(self.end_one_of_servers(&dead, ending).await?
            || self.end_one_candidate(search, region_id, ending).await?
            || self.end_one_of_servers(&living, ending).await?)
    }

    /// Takes back some of the cap from the first of `servers` that has some left. A server that can run the
    /// wanted lobby keeps it, and the instance remembers its place.
    async fn take_allotment_back(&self, search: &Search, servers: &[Server]) -> Result<bool, Error> {
        let new = &search.criteria.new_lobby;
        let lobby_count_max = search.settings.namespace.lobby_count_max;
        let now = self.ambient.now();
        let has_left = |server: &&Server| server.allotted_left() > 0;
        let placement = new.placement();
        let serves = |server: &&Server| {
            server.pool() == placement
                && server.cap_checked == lobby_count_max
                && server.fits(&new.pool.game_mode, now)
        };
        let serving = servers.iter().filter(has_left).filter(serves).take(SERVERS_ASKED_MAX);
        let asked: Vec<_> = serving.map(|server| server.server.clone()).collect();
        if !asked.is_empty() {
            // Another request may have used it since.
            let mut serving = self.store.servers_as_they_are(&asked).await?;
            serving.retain(|server| has_left(&server) && serves(&server));
            if let Some(server) = serving.first() {
                self.servers.remember(&server.pool(), serving, now);
                return Ok(true);
            }
        }
        let begin = usize::try_from(self.ambient.below(servers.len() as u64)).unwrap_or(0);
        let in_turn = servers.iter().cycle().skip(begin).take(servers.len());
        let mut was_outrun = false;
        for server in in_turn.filter(has_left).filter(|server| !asked.contains(&server.server)) {
            if self.store.take_allotment_back(server, lobby_count_max).await? == AllotmentOutcome::Moved {
                self.servers.forget(&server.pool());
                return Ok(true);
            }
            // The quicker request may have taken it back for this one, too.
            was_outrun = true;
        }
        Ok(was_outrun)
    }

    /// Servers of those of `pools` that are in a region, and whether these are all.
    async fn servers_in(
        &self,
        region_id: &RegionId,
        pools: &[PlacementPool],
    ) -> Result<(Vec<Server>, bool), Error> {
        let (mut servers, mut are_all) = (Vec::new(), true);
        for pool in pools {
            if pool.region_id != *region_id {
                continue;
            }
            let mut cursor = None;
            loop {
                if servers.len() >= SERVERS_SEARCHED_MAX {
                    are_all = false;
                    break;
                }
                let (page, next) = self.store.servers(pool, cursor).await?;
                servers.extend(page);
                cursor = next;
                if cursor.is_none() {
                    break;
                }
            }
        }
        // A server that moves in the index while its pages are read is on two of them.
        let mut seen = HashSet::new();
        servers.retain(|server| seen.insert(server.server.clone()));
        Ok((servers, are_all))
    }

    /// Ends a lobby of one of `servers`: on a dead server even with players, on a living one if it is empty,
    /// of any version.
    async fn end_one_of_servers(&self, servers: &[Server], ending: &mut Ending) -> Result<bool, Error> {
        // Concurrent finds begin at different servers, so as not to conflict at one lobby.
        let begin = usize::try_from(self.ambient.below(servers.len() as u64)).unwrap_or(0);
        let in_turn: Vec<&Server> = servers.iter().cycle().skip(begin).take(servers.len()).collect();
        for servers in in_turn.chunks(SERVERS_AT_ONCE) {
            let pages = servers
                .iter()
                .map(|server| self.store.lobbies_of_server(&server.server, None, LOBBIES_OF_A_SERVER_MAX));
            let pages = try_join_all(pages).await?;
            let mut ids: Vec<LobbyId> = pages.into_iter().flat_map(|page| page.lobby_ids).collect();
            ids.truncate(ending.left());
            ending.read += ids.len();
            if self.end_one(&ids, ending).await? {
                return Ok(true);
            }
            if ending.left() == 0 {
                break;
            }
        }
        Ok(false)
    }

    /// Ends a lobby among the current version's candidates, which include each lobby whose seats all lapsed.
    async fn end_one_candidate(
        &self,
        search: &Search,
        region_id: &RegionId,
        ending: &mut Ending,
    ) -> Result<bool, Error> {
        let version = &search.settings.version;
        for (game_mode, mode) in &version.config.game_modes {
            if !mode.regions.contains(region_id) {
                continue;
            }
            let pool = Pool {
                namespace_id: search.settings.namespace.namespace_id.clone(),
                version_id: version.version_id.clone(),
                game_mode: game_mode.clone(),
                region_id: region_id.clone(),
                shard: 0,
            };
            let now = self.ambient.now();
            let candidates =
                self.store.candidates(&pool, mode.pool_shards, now, CANDIDATES_SEARCHED_MAX).await?;
            let lobbies: Vec<_> = candidates.into_iter().map(|candidate| candidate.lobby_id).collect();
            if self.end_one(&lobbies, ending).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Ends one of the lobbies that may end, and collects those that are only empty.
    async fn end_one(&self, ids: &[LobbyId], ending: &mut Ending) -> Result<bool, Error> {
        if ids.is_empty() {
            return Ok(false);
        }
        let mut lobbies = self.store.lobbies(ids).await?;
        let begin = self.ambient.below(lobbies.len() as u64);
        lobbies.rotate_left(usize::try_from(begin).unwrap_or(0));
        for lobby in lobbies {
            if ending.is_outrun() {
                break;
            }
            ending.waits.extend(lobby.joined_at.map(|at| at.since(lobby.created_at)));
            let cause = match ending.needed.may_end(&lobby, self.ambient.now()) {
                None => continue,
                Some(MayEnd::Now(cause)) => cause,
                Some(MayEnd::Last) => {
                    ending.spared.push(lobby);
                    continue;
                }
                Some(MayEnd::Unused) => {
                    ending.unused.push(lobby);
                    continue;
                }
            };
            if self.end(lobby, cause, ending).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Ends a lobby and returns whether it did. Another request may end it first, or use it again. Its place
    /// is known from then on, which the index shows later.
    async fn end(&self, lobby: Lobby, cause: EndCause, ending: &mut Ending) -> Result<bool, Error> {
        match self.store.end_lobby(&lobby, cause, &self.ambient).await {
            Ok(EndOutcome::Ended) => {
                self.searches.forget_full(&lobby.pool.namespace_id);
                self.servers.forget_all_in(&lobby.pool);
                if let Some(server) = lobby.server.as_ref().and_then(|key| ending.servers.get_mut(key)) {
                    server.used = server.used.saturating_sub(1);
                    self.servers.meet_one(server.clone(), self.ambient.now());
                }
                Ok(true)
            }
            Ok(EndOutcome::AlreadyEnded) | Err(Error::Contention) => {
                ending.outrun += 1;
                Ok(false)
            }
            Ok(EndOutcome::Outdated) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
