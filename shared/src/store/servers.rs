//! Game servers and their places for lobbies.
//!
//! A lease is in the condition of every seat, so no find enters from its end on. A find that comes upon a
//! lobby or a server whose lease has expired moves it out of its index's sight, so that no other find does.
//! The next heartbeat extends the leases and brings both back. A lobby gets the lease that its creator knew.
//! An instance that remembers less than half of it left reads the servers again, so a server should send a
//! heartbeat at least twice in a lease.
//!
//! A server without a place comes back into the sight of looks for places an hour or so after it was filled
//! or seen. One that has been silent for an hour then loses its lobbies, a few at each look, and goes:
//! processes that were killed leave nothing behind (I14, decision 37).

use std::{collections::BTreeMap, time::Duration};

use aws_sdk_dynamodb::types::AttributeValue;
use futures_util::future::try_join_all;

use crate::{
    base::ambient::Timestamp,
    models::{
        errors::Error,
        ids::{GameMode, ServerKey, StartId},
        server::{PlacementPool, Server},
    },
    store::{
        client::Store,
        failures::failure,
        items::{Item, from_item, number, text, to_item},
        writes::Write,
    },
};

/// The index of servers by namespace and region, then `free_from`.
pub const PLACEMENTS_INDEX: &str = "placements";

/// How long a deregistered server stays known once it runs no lobby, so that it may deregister again.
const DEREGISTERED_SERVER_LIFE: Duration = Duration::from_secs(24 * 3_600);
/// How long one that nobody hears of stays known once it runs no lobby: it may have been cut off, and beat
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

/// Why a server's record may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gone {
    /// It deregistered.
    Deregistered,
    /// Its lease lapsed.
    Silent,
}

/// What became of a heartbeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeartbeatOutcome {
    /// The server lives; as it now is.
    Alive(Box<Server>),
    /// It never registered, or deregistered and runs no lobby any more.
    Unknown,
}

impl Store {
    /// Adds a game server that was not there; whether it was added. One write unit, and one of the index.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn add_server(&self, server: &Server) -> Result<bool, Error> {
        self.put_server(server, "attribute_not_exists(#server)", []).await
    }

    /// Puts `server` in the place of `seen`; whether nothing changed there meanwhile but for a heartbeat. One
    /// write unit, and two of the index when its region or its free places change.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn replace_server(&self, server: &Server, seen: &Server) -> Result<bool, Error> {
        let as_seen = "#used = :used AND #allotted = :allotted AND #registration = :registration \
                       AND #ranked_at = :ranked_at";
        // One that has opened since may run as many lobbies as were seen, of its own start: it is not to be
        // cleared again.
        let condition =
            if seen.is_clearing { &format!("{as_seen} AND attribute_exists(#is_clearing)") } else { as_seen };
        let values = [
            (":used", number(seen.used)),
            (":allotted", number(seen.allotted)),
            (":registration", text(seen.registration.as_str())),
            (":ranked_at", number(seen.ranked_at)),
        ];
        self.put_server(server, condition, values).await
    }

    /// Writes every attribute of `server`, and takes away those that it lacks.
    async fn put_server<const N: usize>(
        &self,
        server: &Server,
        condition: &str,
        values: [(&str, AttributeValue); N],
    ) -> Result<bool, Error> {
        let mut item: BTreeMap<_, _> = to_item(server)?.into_iter().collect();
        item.remove("server");
        let set: Vec<String> = item.keys().map(|name| format!("#{name} = :new_{name}")).collect();
        let optional = ["expires_at", "former_starts", "game_modes", "is_clearing", "lease_ms"].into_iter();
        let absent = optional.filter(|name| !item.contains_key(*name)).map(|name| format!("#{name}"));
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
        self.read(&self.tables.servers, Item::from([("server".to_owned(), text(key.to_string()))])).await
    }

    /// Servers of `pool` with a free place as the index knows it, and the silent ones among them: the first
    /// hundred, and on to the first that fits `mode` when none of those does. Two calls for each hundred,
    /// eventually consistent.
    ///
    /// Those without a place and those whose lease lapsed are put out of sight for an hour or so, at one
    /// write unit and two of the index each: they would come first for ever. The next heartbeat brings a
    /// silent one back.
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
                if server.lease_until <= now {
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

    /// Those of `keys` that exist, each once and in no order, as they now are. One call for each hundred, one
    /// read unit each.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn servers_as_they_are(&self, keys: &[ServerKey]) -> Result<Vec<Server>, Error> {
        let key = |key: &ServerKey| Item::from([("server".to_owned(), text(key.to_string()))]);
        let items = self.batch_get(&self.tables.servers, keys.iter().map(key).collect(), true).await?;
        items.into_iter().map(from_item).collect()
    }

    /// Extends the lease of a server, also of one that deregistered while it runs lobbies, and brings one
    /// back into sight that was silent. Of no other start than `start_id`, if one is given. One write unit,
    /// and once three more for the latter.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn extend_server_lease(
        &self,
        key: &ServerKey,
        start_id: Option<&StartId>,
        now: Timestamp,
    ) -> Result<HeartbeatOutcome, Error> {
        let of_start = if start_id.is_some() { " AND #start_id = :start_id" } else { "" };
        let condition = format!(
            "attribute_exists(#lease_ms) AND (#ranked_at < :never OR #used > :zero) AND #beat_at <= :now{of_start}"
        );
        let write = self
            .on_server(key)
            .change("SET #lease_until = :now + #lease_ms, #beat_at = :now REMOVE #expires_at")
            .when(condition)
            .with(":now", number(now))
            .with(":start_id", start_id.map(|start_id| text(start_id.as_str())));
        let server = match self.update_server(write).await? {
            Ok(server) => server,
            Err(Some(server)) if start_id.is_some() && server.start_id.as_ref() != start_id => {
                return Ok(HeartbeatOutcome::Unknown);
            }
            // Without lease, or a later beat was quicker.
            Err(Some(server)) if !server.is_gone() && (server.lease_ms.is_none() || server.beat_at > now) => {
                server
            }
            // Its last lobby ended while it deregistered.
            Err(Some(server)) if server.is_gone() && server.placement_pool.is_some() => {
                self.let_server_go(&server, Gone::Deregistered, now).await?;
                return Ok(HeartbeatOutcome::Unknown);
            }
            Err(_) => return Ok(HeartbeatOutcome::Unknown),
        };
        let is_out_of_sight = server.free_from > now && server.used < server.capacity;
        if is_out_of_sight && !server.is_clearing {
            // A later registration may be for another region. A repetition of this write may arrive after the
            // server was let go.
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

    /// Opens a server to lobbies, as it registered, once no lobby of an earlier start is left; as it then is,
    /// or as it is when one is left or it registered anew. One write unit, and two of the index.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn open_server(&self, server: &Server) -> Result<Result<Server, Option<Server>>, Error> {
        let write = self
            .on_server(&server.server)
            .change("SET #free_from = #ranked_at REMOVE #is_clearing")
            .when("#registration = :registration AND attribute_exists(#is_clearing) AND #used = :zero")
            .with(":registration", text(server.registration.as_str()));
        self.update_server(write).await
    }

    /// Takes a server out of sight for good, unless it registered anew since it was `seen`: no lobby is
    /// placed there any more. The server after it, or as it is when it did. One write unit, and two of the
    /// index; when it runs no lobby another one, or four with its allotment, and one of the index, to have
    /// its record go.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn deregister_server(
        &self,
        seen: &Server,
        now: Timestamp,
    ) -> Result<Result<Server, Option<Server>>, Error> {
        let write = self
            .on_server(&seen.server)
            .change("SET #ranked_at = :never, #free_from = :later, #capacity = :zero")
            .when("#registration = :registration")
            .with(":later", number(seen.look_again(now)))
            .with(":registration", text(seen.registration.as_str()));
        let deregistered = self.update_server(write).await?;
        // With lobbies the record is needed until the last one gave its place back.
        if let Ok(server) = &deregistered
            && server.used == 0
        {
            self.let_server_go(server, Gone::Deregistered, now).await?;
        }
        Ok(deregistered)
    }

    /// Has the record of a deregistered server go, once it runs no lobby any more; its allotment goes back at
    /// once. One write unit and one of the index, and four more with an allotment.
    pub(super) async fn let_deregistered_server_go(
        &self,
        key: &ServerKey,
        now: Timestamp,
    ) -> Result<(), Error> {
        match self.update_server(self.let_go(key, 0, Gone::Deregistered, now)).await? {
            Err(Some(server)) if server.used == 0 && server.is_deregistered() => {
                self.let_server_go(&server, Gone::Deregistered, now).await
            }
            _ => Ok(()),
        }
    }

    /// Puts a server out of sight whose lease lapsed; unless it still runs lobbies, its record goes.
    async fn hide_silent_server(&self, server: &Server, now: Timestamp) -> Result<(), Error> {
        if server.used == 0 {
            return self.let_server_go(server, Gone::Silent, now).await;
        }
        let write = self
            .on_server(&server.server)
            .change("SET #free_from = :later")
            .when("#lease_until <= :now AND #used = :used")
            .with(":later", number(server.look_again(now)))
            .with(":now", number(now))
            .with(":used", number(server.used));
        self.update_server(write).await.map(|_| ())
    }

    /// Puts a server out of sight for a while unless it has got a place since it was seen. The condition says
    /// what a place is rather than what was seen: a start that opens its server leaves everything else as it
    /// was.
    async fn hide_full_server(&self, server: &Server, now: Timestamp) -> Result<(), Error> {
        let write = self
            .on_server(&server.server)
            .change("SET #free_from = :again")
            .when("#free_from <= :now AND (#used >= #capacity OR attribute_exists(#is_clearing))")
            .with(":again", number(server.look_again(now)))
            .with(":now", number(now));
        self.update_server(write).await.map(|_| ())
    }

    /// Has the record of a server go that, as seen, runs no lobby, out of the index at once and altogether
    /// later; with an allotment in one transaction with its return. What comes between is no matter: whoever
    /// meets the server next does it.
    async fn let_server_go(&self, server: &Server, gone: Gone, now: Timestamp) -> Result<(), Error> {
        let write = self.let_go(&server.server, server.allotted, gone, now);
        if server.allotted == 0 {
            return self.update_server(write).await.map(|_| ());
        }
        self.return_allotment(server, write, server.allotted).await.map(|_| ())
    }

    fn let_go(&self, key: &ServerKey, allotted: u32, gone: Gone, now: Timestamp) -> Write {
        let (change, condition) = match gone {
            Gone::Deregistered => {
                ("SET #expires_at = :expiry, #allotted = :zero REMOVE #placement_pool", "#ranked_at = :never")
            }
            Gone::Silent => (
                "SET #free_from = :later, #expires_at = :expiry, #allotted = :zero REMOVE #placement_pool",
                "#lease_until <= :now",
            ),
        };
        let life = match gone {
            Gone::Deregistered => DEREGISTERED_SERVER_LIFE,
            Gone::Silent => SILENT_SERVER_LIFE,
        };
        let condition = format!("{condition} AND #used = :zero AND #allotted = :allotted");
        let write = self
            .on_server(key)
            .change(change)
            .when(condition)
            .with(":allotted", number(allotted))
            .with(":expiry", number((now + life).secs()));
        match gone {
            Gone::Deregistered => write,
            // Never, rather than a while later: a heartbeat sees by it that the server is in no index.
            Gone::Silent => write.with(":now", number(now)).with(":later", number(Timestamp::NEVER)),
        }
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
        let answer = self
            .client
            .query()
            .table_name(&self.tables.servers)
            .index_name(PLACEMENTS_INDEX)
            .key_condition_expression("#placement_pool = :pool AND #free_from <= :until")
            .expression_attribute_names("#placement_pool", "placement_pool")
            .expression_attribute_names("#free_from", "free_from")
            .expression_attribute_values(":pool", text(pool.to_string()))
            .expression_attribute_values(":until", number(free_from))
            .set_exclusive_start_key(start)
            .limit(PAGE)
            .return_consumed_capacity(self.meter.mode())
            .send()
            .await
            .map_err(|error| failure(&error))?;
        self.meter.read(answer.consumed_capacity());
        let key = |item: Item| item.get("server").cloned();
        let keys: Vec<Item> = answer
            .items
            .unwrap_or_default()
            .into_iter()
            .filter_map(key)
            .map(|server| Item::from([("server".to_owned(), server)]))
            .collect();
        let servers = self.batch_get(&self.tables.servers, keys, false).await?;
        let servers = servers.into_iter().map(from_item).collect::<Result<_, _>>()?;
        Ok((servers, answer.last_evaluated_key))
    }
}
