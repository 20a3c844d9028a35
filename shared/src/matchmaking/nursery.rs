//! Requesting a game server for a lobby that found no place (decision 76).
//!
//! The find that draws the first position of a server requests it in its lobby's own transaction. The others
//! take places on it by the condition of any place, a little later, and request it themselves if it does not
//! come: its identifier makes it the same server. None of them calls a starter: what starts the server
//! follows the record's write ([`crate::hosting::launching`]).

use std::time::Duration;

use crate::{
    base::ambient::Timestamp,
    matchmaking::{matchmaker::Matchmaker, search::Search},
    models::{
        errors::Error,
        ids::{BurstSecret, LobbyId, ServerId, ServerKey},
        launch::{Launch, LaunchRules, LaunchWait, START_EXPECTED},
        server::Server,
    },
    store::nursery::{Draw, Drawing, NurseryServer},
};

/// How far apart finds request servers, and take places on one, whose transactions would otherwise conflict.
const SPACING: Duration = Duration::from_millis(12);
/// Spacings that a find waits for at most.
const SPACINGS_MAX: u32 = 32;
/// Pauses until a find requests a server whose first drawer did not.
const REQUESTER_PAUSES: [u64; 3] = [20, 60, 120];

/// A place on a server that is to be requested, or is.
#[derive(Debug)]
pub(super) struct Nest {
    /// The server as its request describes it.
    pub(super) server: Server,
    /// The wait for it.
    pub(super) wait: LaunchWait,
    /// Whether this find requests it.
    pub(super) is_requester: bool,
    /// Whether it has seen the server, which has a place for it.
    pub(super) is_met: bool,
    /// Pauses made for the find that should.
    pauses: usize,
    /// The server among those of its nursery.
    at: NurseryServer,
}

/// The draws of one lobby that led to no place.
#[derive(Debug, Default)]
pub(super) struct InVain {
    count: u32,
    /// The server of the last one, if it was full.
    full: Option<NurseryServer>,
}

impl InVain {
    /// Notes that the lobby got no place on the server of `nest`, and whether it `is_full`.
    pub(super) fn note(&mut self, nest: Option<Nest>, is_full: bool) {
        self.count += 1;
        self.full = nest.filter(|_| is_full).map(|nest| nest.at);
    }
}

impl Nest {
    /// Waits a little for the find that should request the server. Afterwards this find does.
    pub(super) async fn wait_for_requester(&mut self, matchmaker: &Matchmaker) {
        match REQUESTER_PAUSES.get(self.pauses) {
            Some(pause) => matchmaker.ambient.sleep(Duration::from_millis(*pause)).await,
            None => {
                self.is_requester = true;
                self.server.used = 0;
            }
        }
        self.pauses += 1;
    }
}

impl Matchmaker {
    /// Draws a place for the lobby `lobby_id` by the `rules` of its version, after draws `in_vain`, where the
    /// servers in the index had none at `looked_at`; `None` when others were quicker each time.
    ///
    /// # Errors
    /// [`Error::ServerStartFailed`] while the last starts failed; [`Error::Unavailable`], [`Error::Bug`].
    pub(super) async fn draw_nest(
        &self,
        search: &Search,
        rules: &LaunchRules,
        (lobby_id, in_vain): (&LobbyId, &InVain),
        looked_at: Timestamp,
    ) -> Result<Option<Nest>, Error> {
        let (new, now) = (&search.criteria.new_lobby, self.ambient.now());
        let (pool, capacity) = (new.placement(), rules.capacity);
        let fresh = (&ServerId::from(self.ambient.uuid()), &BurstSecret::random(&self.ambient));
        let drawing =
            Drawing { lobby_id, in_vain: in_vain.count, full: in_vain.full.as_ref(), capacity, looked_at };
        let drawn = self.store.draw_in_nursery(&pool, &drawing, fresh, now).await?;
        let (first, secret, position, start_ms) = match drawn {
            Draw::Drawn { first, secret, position, start_ms } => (first, secret, position, start_ms),
            Draw::Lost => return Ok(None),
            // It may be over by the time that was read with it.
            Draw::Blocked(nursery) => {
                return match nursery.start_failure(&pool.region_id, now) {
                    Some(failure) => Err(Error::ServerStartFailed(Box::new(failure))),
                    None => Ok(None),
                };
            }
        };
        let nth = position.checked_div(capacity).unwrap_or(0);
        let among = position.checked_rem(capacity).unwrap_or(0);
        self.ambient.sleep(SPACING * (nth + among).min(SPACINGS_MAX)).await;
        let requested_at = self.ambient.now();
        let server_id = first.nth_of(&secret, nth);
        let at = NurseryServer { first, nth };
        let (start_id, request) = server_id.start_of(&secret);
        let namespace_id = new.pool.namespace_id.clone();
        let expected = start_ms.map_or(START_EXPECTED, Duration::from_millis).min(rules.start);
        let (expected_at, deadline) = (requested_at + expected, requested_at + rules.start);
        let launch = Launch {
            version_id: new.pool.version_id.clone(),
            requested_at,
            expected_at: Some(expected_at),
            deadline,
            idle_secs: rules.idle_secs,
        };
        let wait = LaunchWait { requested_at, expected_at, deadline };
        let key = ServerKey { namespace_id, server_id };
        let game_id = search.settings.game.game_id.clone();
        let server = Server::requested((key, start_id, request), (game_id, pool), launch, capacity);
        // The places before it are drawn.
        let server = Server { used: among, ..server };
        Ok(Some(Nest { server, wait, is_requester: among == 0, is_met: false, pauses: 0, at }))
    }
}

/// The wait for the server of a lobby that is placed there at `now`, if it is a requested one that some other
/// find chose from the index.
pub(super) fn wait_for(server: &Server, now: Timestamp) -> Option<LaunchWait> {
    let launch = server.launch.as_ref().filter(|_| server.is_requested())?;
    let Launch { requested_at, expected_at, deadline, .. } = *launch;
    let expected_at = expected_at.unwrap_or(requested_at + START_EXPECTED).max(now).min(deadline);
    Some(LaunchWait { requested_at, expected_at, deadline })
}
