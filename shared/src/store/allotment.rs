//! The limit of a namespace's lobbies, allotted to its game servers in blocks (I2, decision 25).
//!
//! A server runs at most as many lobbies as it is allotted, and the ledger keeps the sum, which never exceeds
//! the limit. So only the server's item bounds a creation, and the namespace's item is written once per
//! block. Both change in one transaction, so the sum is exact after a crash at any point.
//!
//! A lobby that ends leaves its part with the server. A find that needs it elsewhere takes it back. A server
//! that is gone returns all of it.
//!
//! A server's item has the limit that its allotment was checked against. After the limit has changed, its
//! next creation compares the sum with the new one, so a lowered limit holds for every find that knows it.

use std::{collections::BTreeMap, time::Duration};

use serde::Deserialize;

use crate::{
    base::ambient::Timestamp,
    models::{
        errors::Error,
        ids::NamespaceId,
        server::{PlacementPool, Server},
    },
    store::{
        client::Store,
        conflicts::{is_accepted, refused},
        items::{Item, number, text},
        keys::pk_item,
        writes::Write,
    },
};

/// A block is at most this fraction of the cap, so that a few servers do not hold all of it unused.
const BLOCKS_OF_A_CAP: u32 = 64;

/// The first block of a server, if its places and the cap allow.
const FIRST_BLOCK: u32 = 64;

/// A server gets its first block when it registers, while this fraction of the cap is left for others. So the
/// first creations of a burst, which are simultaneous, do not conflict at the ledger.
const LEFT_AT_REGISTRATION: u32 = 2;

/// A server that registered so long ago is in the index.
const LISTED_AFTER: Duration = Duration::from_secs(3_600);

/// The result of moving an allotment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllotmentOutcome {
    /// It moved.
    Moved,
    /// The server changed meanwhile, or too little is left.
    Outdated,
    /// Other writes were under way on the same items.
    Conflict,
}

impl Server {
    /// Lobbies of the namespace's cap that the server may run in addition to those that it runs.
    #[must_use]
    pub const fn allotted_left(&self) -> u32 {
        self.allotted.saturating_sub(self.used)
    }

    /// The server with another lobby, and with `block` allotted of a cap of `lobby_count_max`.
    #[must_use]
    pub fn with_another(self, block: Option<u32>, lobby_count_max: u32) -> Self {
        let cap_checked = if block.is_some() { lobby_count_max } else { self.cap_checked };
        Self { used: self.used + 1, allotted: self.allotted + block.unwrap_or(0), cap_checked, ..self }
    }

    /// How many lobbies of a cap of `lobby_count_max` to allot to the server with its next lobby; `None`
    /// while it has some left. A block of 0 checks what is left from another cap.
    ///
    /// A block doubles the allotment, and the first covers what most servers ever run, so that each needs one
    /// or two.
    #[must_use]
    pub fn next_block(&self, lobby_count_max: u32) -> Option<u32> {
        if self.allotted_left() > 0 {
            return (self.cap_checked != lobby_count_max).then_some(0);
        }
        let block = self.allotted.max(FIRST_BLOCK).min(lobby_count_max / BLOCKS_OF_A_CAP);
        Some(block.min(self.capacity.saturating_sub(self.allotted)).max(1))
    }
}

/// The part of a namespace's cap that its servers have.
#[derive(Debug, Deserialize)]
pub(super) struct Allotment {
    /// Not there yet where a placement was noted first.
    #[serde(default)]
    allotted: u32,
}

/// The item that has the sum; also, for each placement pool with a build, an attribute named region and build
/// with the number of servers that were requested there and are not over, and another one with the time at
/// which a server registered there by hand, if one did.
fn allotment_key(namespace_id: &NamespaceId) -> String {
    format!("allotted/{namespace_id}")
}

/// Names the attributes of a placement pool with a build.
fn place_in(write: Write, pool: &PlacementPool) -> Write {
    let place = pool.place();
    write.name("#noted_at", place.replace('/', "~")).name("#servers", place)
}

impl Store {
    /// Lobbies of the namespace's cap that are allotted to servers. One consistent read unit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn allotted_lobbies(&self, namespace_id: &NamespaceId) -> Result<u32, Error> {
        let key = pk_item(allotment_key(namespace_id));
        let allotment: Option<Allotment> = self.read(&self.tables.ledger, key, true).await?;
        Ok(allotment.map_or(0, |allotment| allotment.allotted))
    }

    /// The placement pools of builds for which servers were requested or registered. One consistent read
    /// unit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn placements_with_builds(
        &self,
        namespace_id: &NamespaceId,
    ) -> Result<Vec<PlacementPool>, Error> {
        let key = pk_item(allotment_key(namespace_id));
        let item: Option<BTreeMap<String, serde_json::Value>> =
            self.read(&self.tables.ledger, key, true).await?;
        let places = item.into_iter().flatten().filter(|(name, _)| name.contains('/'));
        // A name of another form is of a later release.
        Ok(places.filter_map(|(place, _)| format!("{namespace_id}/{place}").try_into().ok()).collect())
    }

    /// Notes the placement pool of a server that registered with a build, for lists. One write unit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn note_placement(&self, pool: &PlacementPool, now: Timestamp) -> Result<(), Error> {
        let write = self
            .on_ledger(allotment_key(&pool.namespace_id))
            .change("SET #servers = if_not_exists(#servers, :zero), #noted_at = :now")
            .with(":now", number(now));
        self.update::<BTreeMap<String, serde_json::Value>>(place_in(write, pool)).await.map(|_noted| ())
    }

    /// Forgets the placement pool of a build in which the index shows no server any more, so that lists look
    /// there no longer (I14). One that registered a moment ago may not be there yet. One write unit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn forget_placement(&self, pool: &PlacementPool, now: Timestamp) -> Result<(), Error> {
        let write = self
            .on_ledger(allotment_key(&pool.namespace_id))
            .change("REMOVE #servers, #noted_at")
            .when("#servers = :zero AND (attribute_not_exists(#noted_at) OR #noted_at <= :listed)")
            .with(":listed", number(now.before(LISTED_AFTER)));
        self.update::<BTreeMap<String, serde_json::Value>>(place_in(write, pool)).await.map(|_forgotten| ())
    }

    /// Allots `server`, which has just registered, its first block of a cap of `lobby_count_max` while much
    /// of it is left; returns it as it then is, or `None` when another write conflicts at the ledger. No
    /// other failure is worth a retry: the first creation there allots a block, too.
    ///
    /// One transaction of two items, 2 write units each; none when the server has some of the cap.
    ///
    /// # Errors
    /// [`Error::Bug`].
    pub async fn allot_at_registration(
        &self,
        server: &Server,
        lobby_count_max: u32,
    ) -> Result<Option<Server>, Error> {
        let room = lobby_count_max / LEFT_AT_REGISTRATION;
        let block = server.next_block(lobby_count_max).unwrap_or(0);
        if server.allotted > 0 || block > room {
            return Ok(Some(server.clone()));
        }
        let condition =
            "#registration = :registration AND #capacity > :zero AND attribute_not_exists(#expires_at)";
        let part = self
            .on_server(&server.server)
            .change("SET #allotted = #allotted + :block, #cap_checked = :cap")
            .when(condition)
            .with(":block", number(block))
            .with(":cap", number(lobby_count_max))
            .with(":registration", text(server.registration.as_str()));
        let ledger = self.allot(&server.server.namespace_id, block, room);
        match self.move_allotment(part, ledger).await {
            Ok((AllotmentOutcome::Moved, _)) => {
                let allotted = server.allotted + block;
                Ok(Some(Server { allotted, cap_checked: lobby_count_max, ..server.clone() }))
            }
            Ok((AllotmentOutcome::Conflict, _)) => Ok(None),
            Ok((AllotmentOutcome::Outdated, _)) => Ok(Some(server.clone())),
            Err(Error::Unavailable(cause)) => {
                tracing::warn!(server.id = %server.server.server_id, cause, "a server registered without a block");
                Ok(Some(server.clone()))
            }
            Err(error) => Err(error),
        }
    }

    /// Takes back what `server`, as seen, has left of its allotment: half of it, at least one, or all if it
    /// was allotted under another cap than `lobby_count_max`. One transaction of two items, 2 write units
    /// each.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn take_allotment_back(
        &self,
        server: &Server,
        lobby_count_max: u32,
    ) -> Result<AllotmentOutcome, Error> {
        let left = server.allotted_left();
        let block = if server.cap_checked == lobby_count_max { left.div_ceil(2) } else { left };
        if block == 0 {
            return Ok(AllotmentOutcome::Outdated);
        }
        let part = self
            .on_server(&server.server)
            .change("SET #allotted = #allotted - :block")
            .when("#allotted = :allotted AND #used <= :rest")
            .with(":block", number(block))
            .with(":allotted", number(server.allotted))
            .with(":rest", number(server.allotted.saturating_sub(block)));
        self.return_allotment(server, part, block, false).await
    }

    /// Makes `part`, which changes `server`, together with the return of its allotment to the ledger. One
    /// that was requested counts there until it `is_over`.
    pub(super) async fn return_allotment(
        &self,
        server: &Server,
        part: Write,
        block: u32,
        is_over: bool,
    ) -> Result<AllotmentOutcome, Error> {
        let (count, counted, place) = match server.launch {
            Some(_) if is_over => {
                (", #servers = #servers - :one", " AND #servers >= :one", Some(server.pool().place()))
            }
            _ => ("", "", None),
        };
        let mut ledger = self
            .on_ledger(allotment_key(&server.server.namespace_id))
            .change(format!("SET #allotted = #allotted - :block{count}"))
            .when(format!("#allotted >= :block{counted}"))
            .with(":block", number(block));
        if let Some(place) = place {
            ledger = ledger.name("#servers", place);
        }
        let (outcome, is_at_ledger) = self.move_allotment(part, ledger).await?;
        if outcome == AllotmentOutcome::Outdated && is_at_ledger {
            return Err(Error::Bug("the ledger does not know of an allotment".to_owned()));
        }
        Ok(outcome)
    }

    /// Makes `part` of a server and `ledger` together, and returns also whether only the ledger refused it.
    async fn move_allotment(&self, part: Write, ledger: Write) -> Result<(AllotmentOutcome, bool), Error> {
        let Err(reasons) = self.transact(vec![part, ledger]).await? else {
            return Ok((AllotmentOutcome::Moved, false));
        };
        Ok(if refused(&reasons, 0).is_some() {
            (AllotmentOutcome::Outdated, false)
        } else if refused(&reasons, 1).is_some() && is_accepted(&reasons, 0) {
            (AllotmentOutcome::Outdated, true)
        } else {
            // The transaction that has locked the server may already have changed the ledger.
            (AllotmentOutcome::Conflict, false)
        })
    }

    /// The same of a creation that also requests a server of `pool`, one of at most `server_count_max`.
    pub(super) fn allot_and_count(
        &self,
        pool: &PlacementPool,
        block: u32,
        (lobby_count_max, server_count_max): (u32, u32),
    ) -> Write {
        self.on_ledger(allotment_key(&pool.namespace_id))
            .change(
                "SET #allotted = if_not_exists(#allotted, :zero) + :block, \
                 #servers = if_not_exists(#servers, :zero) + :one",
            )
            .when(
                "(attribute_not_exists(#allotted) OR #allotted <= :room) \
                 AND (attribute_not_exists(#servers) OR #servers < :servers)",
            )
            .name("#servers", pool.place())
            .with(":block", number(block))
            .with(":room", number(lobby_count_max.saturating_sub(block)))
            .with(":servers", number(server_count_max))
    }

    /// Servers that count in `pool`, by the item that refused to count another one.
    pub(super) fn counted_servers(pool: &PlacementPool, item: &Item) -> u32 {
        let count = item.get(&pool.place()).and_then(|count| count.as_n().ok());
        count.and_then(|count| count.parse().ok()).unwrap_or(0)
    }

    /// The part of a creation that allots `block` of a cap of `lobby_count_max` lobbies.
    pub(super) fn allot(&self, namespace_id: &NamespaceId, block: u32, lobby_count_max: u32) -> Write {
        self.on_ledger(allotment_key(namespace_id))
            .change("SET #allotted = if_not_exists(#allotted, :zero) + :block")
            .when("attribute_not_exists(#allotted) OR #allotted <= :room")
            .with(":block", number(block))
            .with(":room", number(lobby_count_max.saturating_sub(block)))
    }
}
