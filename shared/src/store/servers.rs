//! Game servers and their places for lobbies.
//!
//! The condition of every seat checks the lease, so no find enters after its end. A find that reads a lobby
//! or a server with an expired lease hides it from the index, so that no other find reads it. The next
//! heartbeat extends the leases and brings both back. A lobby gets the server's lease as its creator knew it.
//! An instance that knows of less than half a lease left reads the servers again, so a server should send a
//! heartbeat at least twice in a lease.
//!
//! A server that is silent without lobbies is let go: its record expires, and until then stands in the index
//! behind all that finds read, for the operator's list alone.
//!
//! A server belongs to the token that registered it, or renewed it last with its start ([`Server::owner`]).
//! Writes that rest on that check it.
//!
//! A server without a place comes back into sight an hour or so after it was filled or seen. If it has been
//! silent for an hour by then, looks for places end its lobbies, a few at a time, and then its record: killed
//! processes leave nothing behind (I14, decision 37).

use std::{collections::BTreeMap, time::Duration};

use aws_sdk_dynamodb::types::AttributeValue;
use futures_util::future::try_join_all;

use crate::{
    base::ambient::Timestamp,
    models::{
        errors::Error,
        ids::{GameMode, ServerKey, StartId},
        launch::LaunchStage,
        server::{PlacementPool, Server, let_go_in_silence},
        token::Owner,
    },
    store::{
        allotment::AllotmentOutcome,
        client::Store,
        items::{Item, from_item, number, text, to_item, to_value},
        keys::server_item,
        queries::{page_of_items, query},
        writes::Write,
    },
};

/// The index of servers by namespace and region, then `free_from`.
pub const PLACEMENTS_INDEX: &str = "placements";

/// How long a deregistered server stays known once it runs no lobby, so that it may deregister again.
const DEREGISTERED_SERVER_LIFE: Duration = Duration::from_secs(24 * 3_600);
/// How long a silent server stays known once it runs no lobby: it may be disconnected, and send heartbeats
/// again.
const SILENT_SERVER_LIFE: Duration = Duration::from_secs(7 * 24 * 3_600);

/// Servers that one query reads.
const PAGE: i32 = 100;
/// Servers written to at the same time.
const WRITES_AT_ONCE: usize = 16;
/// Pages that one look for places reads.
const PAGES_MAX: usize = 10;

/// A place in the list of a pool's servers: the last one read.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerCursor(Item);

impl From<PlacementPool> for String {
    fn from(pool: PlacementPool) -> Self {
        pool.to_string()
    }
}

/// Why a server's record may expire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gone {
    /// It deregistered.
    Deregistered,
    /// Its lease lapsed.
    Silent,
}

/// The result of a heartbeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeartbeatOutcome {
    /// The server is alive. The server as it now is.
    Alive(Box<Server>),
    /// Another start registered last.
    OtherStart,
    /// It never registered, or it deregistered and no longer runs a lobby.
    Unknown,
}

/// A key condition on the index of servers: those with a place by some time.
const FREE_BY: &str = "#placement_pool = :pool AND #free_from <= :time";

impl Store {
    /// Adds a game server unless it is there, and returns whether it did. One write unit, and one of the
    /// index.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn add_server(&self, server: &Server) -> Result<bool, Error> {
        self.put_server(server, "attribute_not_exists(#server)", Vec::new()).await
    }

    /// Replaces `seen` by `server` unless anything but a heartbeat of its owner changed it meanwhile, and
    /// returns whether it did. Where it also changes the owner, a heartbeat prevents it, too. One write unit,
    /// and two of the index when its region or its free places change.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn replace_server(&self, server: &Server, seen: &Server) -> Result<bool, Error> {
        // `ranked_at` is compared because a deregistration changes none of the others.
        let as_seen = "#used = :used AND #allotted = :allotted AND #registration = :registration \
                       AND #ranked_at = :ranked_at";
        let owned = if seen.owner.is_some() { "#owner = :owner" } else { "attribute_not_exists(#owner)" };
        let mut condition = format!("{as_seen} AND {owned}");
        let mut values = vec![
            (":used", number(seen.used)),
            (":allotted", number(seen.allotted)),
            (":registration", text(seen.registration.as_str())),
            (":ranked_at", number(seen.ranked_at)),
        ];
        // A server that has opened since may run as many lobbies as were seen, of its own start. They must
        // not be cleared.
        if seen.is_clearing {
            condition.push_str(" AND attribute_exists(#is_clearing)");
        }
        if let Some(owner) = &seen.owner {
            values.push((":owner", to_value(owner)?));
            // What another token may do rests on the lease.
            if server.owner != seen.owner {
                condition.push_str(" AND #lease_until = :seen_lease");
                values.push((":seen_lease", number(seen.lease_until)));
            }
        }
        self.put_server(server, &condition, values).await
    }

    /// Writes every attribute of `server`, and removes those that it lacks.
    async fn put_server(
        &self,
        server: &Server,
        condition: &str,
        values: Vec<(&str, AttributeValue)>,
    ) -> Result<bool, Error> {
        let mut item: BTreeMap<_, _> = to_item(server)?.into_iter().collect();
        item.remove("server");
        let set: Vec<String> = item.keys().map(|name| format!("#{name} = :new_{name}")).collect();
        let optional = [
            "build_id",
            "expires_at",
            "ended_at",
            "failure",
            "former_starts",
            "game_modes",
            "handle",
            "idle_since",
            "is_clearing",
            "launch",
            "lease_ms",
            "owner",
            "stage",
        ];
        let absent =
            optional.into_iter().filter(|name| !item.contains_key(*name)).map(|name| format!("#{name}"));
        let change = format!("SET {} REMOVE {}", set.join(", "), absent.collect::<Vec<_>>().join(", "));
        let write = self.on_server(&server.server).change(change).when(condition);
        let new = item.into_iter().map(|(name, value)| (format!(":new_{name}"), value));
        let seen = values.into_iter().map(|(name, value)| (name.to_owned(), value));
        let write = new.chain(seen).fold(write, |write, (name, value)| write.with(name, value));
        self.update_server(write).await.map(|put| put.is_ok())
    }

    /// The server as it now is. One consistent read unit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn server(&self, key: &ServerKey) -> Result<Option<Server>, Error> {
        self.read(&self.tables.servers, server_item(key), true).await
    }

    /// Servers of `pool` that the index shows with a free place, and the silent ones among them: the first
    /// hundred, and more until one fits `mode`. Two calls for each hundred, eventually consistent. One that
    /// deregistered counts as silent once it runs no lobby.
    ///
    /// Servers without a place or with an expired lease are hidden for an hour or so, at one write unit and
    /// two of the index each: otherwise every query would return them first. A silent one without lobbies is
    /// let go, at the same cost. The next heartbeat brings a silent one back.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn servers_with_places(
        &self,
        pool: &PlacementPool,
        mode: &GameMode,
        now: Timestamp,
    ) -> Result<(Vec<Server>, Vec<Server>), Error> {
        let mut start = None;
        let (mut silent, mut full, mut living) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..PAGES_MAX {
            let (servers, next) = self.page_of_servers(pool, now, start).await?;
            for server in servers {
                if server.lease_until <= now || server.is_gone() {
                    silent.push(server);
                } else if server.used >= server.capacity || server.is_clearing {
                    full.push(server);
                } else {
                    living.push(server);
                }
            }
            start = next;
            if start.is_none() || living.iter().any(|server: &Server| server.fits(mode, now)) {
                break;
            }
        }
        for silent in silent.chunks(WRITES_AT_ONCE) {
            try_join_all(silent.iter().map(|server| self.hide_silent_server(server, now))).await?;
        }
        for full in full.chunks(WRITES_AT_ONCE) {
            try_join_all(full.iter().map(|server| self.hide_full_server(server, now))).await?;
        }
        Ok((living, silent))
    }

    /// A page of the servers of `pool`, full and silent ones too, from `start`, and where the next one
    /// begins. Two calls, eventually consistent.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn servers(
        &self,
        pool: &PlacementPool,
        start: Option<ServerCursor>,
    ) -> Result<(Vec<Server>, Option<ServerCursor>), Error> {
        let start = start.map(|ServerCursor(start)| start);
        let (servers, next) = self.page_of_servers(pool, Timestamp::NEVER, start).await?;
        Ok((servers, next.map(ServerCursor)))
    }

    /// Whether the index shows a server in the pool of `gone` besides it. One call, eventually consistent.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn has_neighbour(&self, gone: &Server) -> Result<bool, Error> {
        let own = text(gone.server.to_string());
        let (keys, _next) = self.keys_in_range(&gone.pool(), (FREE_BY, Timestamp::NEVER), None).await?;
        Ok(keys.iter().any(|key| key.get("server") != Some(&own)))
    }

    /// A page of the servers of `pool` that were let go in silence and whose leases expired after `since`,
    /// from `start`, and where the next one begins. Two calls, eventually consistent.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn servers_let_go(
        &self,
        pool: &PlacementPool,
        since: Timestamp,
        start: Option<ServerCursor>,
    ) -> Result<(Vec<Server>, Option<ServerCursor>), Error> {
        let start = start.map(|ServerCursor(start)| start);
        let range = ("#placement_pool = :pool AND #free_from > :time", let_go_in_silence(since));
        let (mut servers, next) = self.page_in_range(pool, range, start).await?;
        servers.retain(Server::was_let_go_in_silence);
        Ok((servers, next.map(ServerCursor)))
    }

    /// The servers of `keys` that exist, each once and in no order, as they now are. One call for each
    /// hundred, one read unit each.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn servers_as_they_are(&self, keys: &[ServerKey]) -> Result<Vec<Server>, Error> {
        let keys = keys.iter().map(server_item).collect();
        let items = self.batch_get(&self.tables.servers, keys, true).await?;
        items.into_iter().map(from_item).collect()
    }

    /// Extends the lease of a server, even if it deregistered while it runs lobbies, and brings a silent one
    /// back into sight. If `start_id` is given, only of that start, which then belongs to `owner`: without
    /// it, any token of the namespace could make a server its own. One write unit, and three more to bring it
    /// back; a server without lease costs another one when its owner changes.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn extend_server_lease(
        &self,
        key: &ServerKey,
        start_id: Option<&StartId>,
        owner: &Owner,
        now: Timestamp,
    ) -> Result<HeartbeatOutcome, Error> {
        let of_start = if start_id.is_some() { " AND #start_id = :start_id" } else { "" };
        let owned = if start_id.is_some() { ":token" } else { "if_not_exists(#owner, :token)" };
        let condition = format!(
            "attribute_exists(#lease_ms) AND (#capacity > :zero OR #used > :zero) AND #beat_at <= :now{of_start}"
        );
        let write = self
            .on_server(key)
            .change(format!(
                "SET #lease_until = :now + #lease_ms, #beat_at = :now, #owner = {owned} REMOVE #expires_at"
            ))
            .when(condition)
            .with(":now", number(now))
            .with(":token", to_value(owner)?)
            .with(":start_id", start_id.map(|start_id| text(start_id.as_str())));
        let server = match self.update_server(write).await? {
            Ok(server) => server,
            Err(Some(server)) if start_id.is_some() && server.start_id.as_ref() != start_id => {
                return Ok(HeartbeatOutcome::OtherStart);
            }
            Err(Some(server)) if server.is_stopping() => server,
            Err(Some(server)) if server.is_requested() => return Ok(HeartbeatOutcome::Unknown),
            Err(Some(server)) if !server.is_gone() && server.lease_ms.is_none() => {
                match self.transfer_server(server, start_id, owner).await? {
                    Some(server) => server,
                    None => return Ok(HeartbeatOutcome::OtherStart),
                }
            }
            // A later heartbeat was quicker.
            Err(Some(server)) if !server.is_gone() && server.beat_at > now => server,
            // Its last lobby ended while it deregistered.
            Err(Some(server)) if server.is_gone() && server.placement_pool.is_some() => {
                self.let_server_go(&server, Gone::Deregistered, now).await?;
                return Ok(HeartbeatOutcome::Unknown);
            }
            Err(_) => return Ok(HeartbeatOutcome::Unknown),
        };
        // Given up, though its lobbies have still to end.
        if matches!(server.stage, Some(LaunchStage::Failed | LaunchStage::Gone)) {
            return Ok(HeartbeatOutcome::Unknown);
        }
        let is_out_of_sight = server.free_from > now && server.used < server.capacity;
        if is_out_of_sight && !server.is_clearing {
            // A later registration may be for another region. A copy of this write may arrive after the
            // record expired.
            let condition = "#used < #capacity AND #free_from > :now AND #registration = :registration \
                             AND attribute_not_exists(#expires_at)";
            let write = self
                .on_server(key)
                .change("SET #free_from = #ranked_at, #placement_pool = :pool")
                .when(condition)
                .with(":pool", text(server.pool().to_string()))
                .with(":now", number(now))
                .with(":registration", text(server.registration.as_str()));
            if let Ok(server) = self.update_server(write).await? {
                return Ok(HeartbeatOutcome::Alive(Box::new(server)));
            }
        }
        Ok(HeartbeatOutcome::Alive(Box::new(server)))
    }

    /// Has a server without lease belong to `owner` if a heartbeat names its start; `None` when it started
    /// again since.
    async fn transfer_server(
        &self,
        server: Server,
        start_id: Option<&StartId>,
        owner: &Owner,
    ) -> Result<Option<Server>, Error> {
        if start_id.is_none() || server.owner.as_ref() == Some(owner) {
            return Ok(Some(server));
        }
        let write = self
            .on_server(&server.server)
            .change("SET #owner = :token")
            .when("#start_id = :start_id")
            .with(":token", to_value(owner)?)
            .with(":start_id", start_id.map(|start_id| text(start_id.as_str())));
        Ok(self.update_server(write).await?.ok())
    }

    /// Opens a server to lobbies, as it registered, once no lobby of an earlier start is left. `Ok` with the
    /// server after it. `Err` with the server as it is when one is left, or when it registered again or was
    /// let go. One write unit, and two of the index.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn open_server(&self, server: &Server) -> Result<Result<Server, Option<Server>>, Error> {
        let write = self
            .on_server(&server.server)
            .change("SET #free_from = #ranked_at REMOVE #is_clearing")
            .when(
                "#registration = :registration AND attribute_exists(#is_clearing) AND #used = :zero \
                 AND attribute_not_exists(#expires_at)",
            )
            .with(":registration", text(server.registration.as_str()));
        self.update_server(write).await
    }

    /// Hides a server permanently, so that it gets no more lobbies, unless it registered again, changed its
    /// owner or was let go since it was `seen`. `Ok` with the server after it, `Err` with the server as it is
    /// otherwise. One write unit, and two of the index. If it runs no lobby, its record also expires, for
    /// another one, or four with an allotment, and one of the index.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn deregister_server(
        &self,
        seen: &Server,
        now: Timestamp,
    ) -> Result<Result<Server, Option<Server>>, Error> {
        let owner = seen.owner.as_ref().map(to_value).transpose()?;
        let owned = if owner.is_some() { " AND #owner = :owner" } else { "" };
        // One that was let go, or is meanwhile, stays out of finds' sight.
        let (hidden, in_sight) = if seen.was_let_go_in_silence() {
            ("", "")
        } else {
            (", #free_from = :later", " AND #free_from <= :never")
        };
        let write = self
            .on_server(&seen.server)
            .change(format!("SET #ranked_at = :later{hidden}, #capacity = :zero"))
            .when(format!("#registration = :registration{owned}{in_sight}"))
            .with(":later", number(seen.look_again(now)))
            .with(":owner", owner)
            .with(":registration", text(seen.registration.as_str()));
        let deregistered = self.update_server(write).await?;
        // While it runs lobbies, the record must stay until the last one has given its place back.
        if let Ok(server) = &deregistered
            && server.used == 0
        {
            self.let_server_go(server, Gone::Deregistered, now).await?;
        }
        Ok(deregistered)
    }

    /// Lets the record of a deregistered server expire once it runs no lobby, and returns its allotment at
    /// once. One write unit and one of the index, and four more with an allotment, or if Muster had it
    /// started.
    pub(super) async fn let_deregistered_server_go(
        &self,
        key: &ServerKey,
        now: Timestamp,
    ) -> Result<(), Error> {
        // Those count in the ledger.
        let uncounted = self.let_deregistered_go(key, 0, now).also_when("attribute_not_exists(#launch)");
        match self.update_server(uncounted).await? {
            Err(Some(server)) if server.used == 0 && server.is_deregistered() => {
                self.let_server_go(&server, Gone::Deregistered, now).await
            }
            _ => Ok(()),
        }
    }

    /// Hides a server whose lease lapsed. If it runs no lobby, its record expires.
    async fn hide_silent_server(&self, server: &Server, now: Timestamp) -> Result<(), Error> {
        if server.used == 0 {
            let gone = if server.is_deregistered() { Gone::Deregistered } else { Gone::Silent };
            return match server.deadline() {
                // It failed, which its starter finds at its deadline.
                Some(_) => self.hide_for_a_while(server, now).await,
                None => self.let_server_go(server, gone, now).await,
            };
        }
        self.hide_for_a_while(server, now).await
    }

    async fn hide_for_a_while(&self, server: &Server, now: Timestamp) -> Result<(), Error> {
        let write = self
            .on_server(&server.server)
            .change("SET #free_from = :later")
            .when("#lease_until <= :now AND #used = :used")
            .with(":later", number(server.look_again(now)))
            .with(":now", number(now))
            .with(":used", number(server.used));
        self.update_server(write).await.map(|_| ())
    }

    /// Hides a server for a while, unless it has got a place since it was seen. The condition checks for a
    /// place instead of comparing with what was seen: a start that opens its server changes nothing else.
    async fn hide_full_server(&self, server: &Server, now: Timestamp) -> Result<(), Error> {
        let write = self
            .on_server(&server.server)
            .change("SET #free_from = :again")
            .when("#free_from <= :now AND (#used >= #capacity OR attribute_exists(#is_clearing))")
            .with(":again", number(server.look_again(now)))
            .with(":now", number(now));
        self.update_server(write).await.map(|_| ())
    }

    /// Lets the record of a server that, as seen, runs no lobby expire: out of finds' sight at once, deleted
    /// later. An allotment returns in the same transaction. If another write interferes, the next request
    /// that reads the server does it.
    async fn let_server_go(&self, server: &Server, gone: Gone, now: Timestamp) -> Result<(), Error> {
        if server.launch.is_some() {
            return self.let_launched_go(server, gone, now).await.map(|_| ());
        }
        let write = self.let_go(server, gone, now);
        if server.allotted == 0 {
            return self.update_server(write).await.map(|_| ());
        }
        self.return_allotment(server, write, server.allotted, false).await.map(|_| ())
    }

    /// The same of a server that Muster had started, which cannot come back. It counts until then, and its
    /// starter ends its process by its stage.
    async fn let_launched_go(
        &self,
        server: &Server,
        gone: Gone,
        now: Timestamp,
    ) -> Result<AllotmentOutcome, Error> {
        let server = match gone {
            Gone::Deregistered => server.clone(),
            Gone::Silent => match self.retire_launched(server, now).await? {
                Ok(retired) => retired,
                Err(_) => return Ok(AllotmentOutcome::Outdated),
            },
        };
        let stage =
            if server.stage == Some(LaunchStage::Failed) { LaunchStage::Failed } else { LaunchStage::Gone };
        let write = self
            .let_deregistered_go(&server.server, server.allotted, now)
            .also_when("attribute_not_exists(#expires_at)")
            .also_set("#stage = :over")
            .with(":over", to_value(stage)?);
        self.return_allotment(&server, write, server.allotted, true).await
    }

    /// Lets the record of a server that is over expire, if it runs no lobby. Returns whether it does: not if
    /// another write changed it since it was read. One transaction of two items, 2 write units each, and one
    /// of the index.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn let_launched_server_go(&self, server: &Server, now: Timestamp) -> Result<bool, Error> {
        if server.used > 0 || server.placement_pool.is_none() {
            return Ok(server.used == 0);
        }
        let outcome = self.let_launched_go(server, Gone::Deregistered, now).await?;
        Ok(outcome == AllotmentOutcome::Moved)
    }

    fn let_go(&self, server: &Server, gone: Gone, now: Timestamp) -> Write {
        if gone == Gone::Deregistered {
            return self.let_deregistered_go(&server.server, server.allotted, now);
        }
        self.on_server(&server.server)
            .change("SET #free_from = :later, #expires_at = :expiry, #allotted = :zero")
            .when("#lease_until <= :now AND #used = :zero AND #allotted = :allotted")
            .with(":now", number(now))
            .with(":later", number(let_go_in_silence(server.lease_until)))
            .with(":allotted", number(server.allotted))
            .with(":expiry", number((now + SILENT_SERVER_LIFE).secs()))
    }

    fn let_deregistered_go(&self, key: &ServerKey, allotted: u32, now: Timestamp) -> Write {
        self.on_server(key)
            .change("SET #expires_at = :expiry, #allotted = :zero REMOVE #placement_pool")
            .when("#capacity = :zero AND #used = :zero AND #allotted = :allotted")
            .with(":allotted", number(allotted))
            .with(":expiry", number((now + DEREGISTERED_SERVER_LIFE).secs()))
    }

    async fn update_server(&self, write: Write) -> Result<Result<Server, Option<Server>>, Error> {
        self.update(write).await
    }

    async fn page_of_servers(
        &self,
        pool: &PlacementPool,
        free_from: Timestamp,
        start: Option<Item>,
    ) -> Result<(Vec<Server>, Option<Item>), Error> {
        self.page_in_range(pool, (FREE_BY, free_from), start).await
    }

    /// A page of the servers of `pool` that the index shows in a range of `free_from`: a key condition, and
    /// the time in it.
    async fn page_in_range(
        &self,
        pool: &PlacementPool,
        range: (&str, Timestamp),
        start: Option<Item>,
    ) -> Result<(Vec<Server>, Option<Item>), Error> {
        let (keys, next) = self.keys_in_range(pool, range, start).await?;
        let servers = self.batch_get(&self.tables.servers, keys, false).await?;
        Ok((servers.into_iter().map(from_item).collect::<Result<_, _>>()?, next))
    }

    /// The keys of such a page.
    async fn keys_in_range(
        &self,
        pool: &PlacementPool,
        (condition, time): (&str, Timestamp),
        start: Option<Item>,
    ) -> Result<(Vec<Item>, Option<Item>), Error> {
        let query = query(self, &self.tables.servers, condition)
            .index_name(PLACEMENTS_INDEX)
            .expression_attribute_values(":pool", text(pool.to_string()))
            .expression_attribute_values(":time", number(time))
            .set_exclusive_start_key(start)
            .limit(PAGE);
        let (shown, next) = page_of_items(self, query).await?;
        let keys = shown.into_iter().filter_map(|mut item| item.remove_entry("server"));
        Ok((keys.map(|entry| Item::from([entry])).collect(), next))
    }
}
