//! Creating a lobby together with all finds that need the same one at the same time.
//!
//! The find that begins a burst has its first position, and each other find draws one. The first position of
//! each lobby creates it, a little after the lobby before where both would conflict at one server. The others
//! wait for it, and create it themselves if it does not come, as do finds that come later: its identifier
//! makes it the same lobby. All lobbies but the first stay out of sight while positions are drawn (decision
//! 23), and the last position of a lobby hides it (decision 24).
//!
//! A party draws a position for each of its seats. Where those straddle two lobbies, it takes the next one
//! whole and draws the positions that it lacks there; the hole that it leaves is for smaller parties
//! (decision 73).
//!
//! A find that loses its seat while it waits draws again, without waiting. If it loses that seat too, the
//! pool is busy, and the find creates a lobby of its own.

use std::{cmp::Ordering, time::Duration};

use futures_util::future;

use crate::{
    matchmaking::{
        matchmaker::Matchmaker,
        outcomes::{Attempt, Origin, Placing, Step},
        round::Round,
        search::{Claimed, Search},
    },
    models::{
        errors::Error,
        ids::{BurstSecret, LobbyId},
        lobby::Refusal,
    },
    rules::criteria::NewLobby,
    seating::seeker::Seeker,
    store::{
        creation::{Beginning, Burst, BurstOutcome, HeadKey, YOUNG_BURST_AGE},
        lobbies::{Hiding, PartyCapacity},
    },
};

/// Elections that one find takes part in before it looks again.
const ELECTIONS_MAX: usize = 4;
/// Lobbies a second from one burst that make its pool busy: then finds create without an election.
const BUSY_LOBBIES: u32 = 25;
/// The same in positions drawn, whatever the lobbies' size: at most as many as the head's item takes.
const CALM_DRAWS: u32 = 250;
const BUSY_DRAWS: u32 = 800;
/// Lobbies and positions that a burst has before it makes its pool busy.
const LOBBIES_SHARED: u32 = 2;
const BUSY_POSITIONS: u32 = 20;
/// How far apart finds create lobbies on one server, whose transactions would otherwise conflict: each
/// occupies the server's item for some milliseconds, and latencies differ by a few. A wait costs no call, a
/// conflict costs one.
const CREATION_SPACING: Duration = Duration::from_millis(12);
/// Spacings that a creation waits for at most: beyond that, conflicts are rare.
const SPACINGS_MAX: u32 = 16;
/// What a find does about the lobby of its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Creates it.
    Creator,
    /// Takes a seat there once it is created.
    Follower,
    /// Takes a seat there at once: the lobby is older than the burst.
    Guest,
}

/// The positions drawn last of a burst, where each lobby has `capacity` positions.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Position {
    /// The lobby, counted from 0.
    nth: u32,
    lobby_id: LobbyId,
    role: Role,
    /// Whether the last position of the lobby is among them.
    is_last: bool,
    /// Seats for which it has no positions there, because the first ones drawn are in the lobby before.
    missing: u32,
    /// Whether the lobby is hidden for the finds that draw its positions. They fill it, so a find that saw it
    /// sooner would take their seats.
    is_promised: bool,
}

impl Position {
    fn drawn_last(burst: &Burst, capacity: u32, seats: u32) -> Self {
        let position = burst.positions.saturating_sub(1);
        let nth = position.checked_div(capacity).unwrap_or(0);
        // In the lobby, which has the last one.
        let drawn = burst.positions.saturating_sub(nth.saturating_mul(capacity));
        let role = match drawn.cmp(&seats) {
            _ if nth == 0 && burst.is_announced => Role::Guest,
            Ordering::Less | Ordering::Equal => Role::Creator,
            Ordering::Greater => Role::Follower,
        };
        Self {
            nth,
            missing: seats.saturating_sub(drawn).min(capacity.saturating_sub(drawn)),
            lobby_id: burst.lobby_of(position, capacity),
            role,
            is_last: burst.positions.checked_rem(capacity) == Some(0),
            is_promised: nth > 0 && !burst.is_announced,
        }
    }

    /// How to take the seat. Once the last position of a lobby is drawn, all its seats are promised, so no
    /// other find needs to see it. Of an announced lobby it is not known when its other seats lapse.
    fn hiding(&self, burst: &Burst, new: &NewLobby) -> Hiding {
        if self.is_last && !burst.is_announced {
            Hiding::Promised(burst.opened_at + new.reservation)
        } else {
            Hiding::No
        }
    }
}

/// Why a burst gave a find no seat.
enum Unseated {
    /// It has none for the find.
    Exhausted(Burst),
    /// The lobby of the find's position was full already.
    Lost(Burst, LobbyId),
    /// Another burst replaced it.
    Replaced(Option<Burst>),
}

impl Matchmaker {
    /// Runs one round: creates a lobby, or takes a seat in one that another find creates. A find that
    /// `has_lost` a seat before looks for the next one at once.
    pub(super) async fn create(
        &self,
        search: &Search,
        seeker: &Seeker,
        has_lost: bool,
    ) -> Result<Step, Error> {
        let searched = search.criteria.new_lobby.searched();
        if let Some(step) = self.create_alone(search, seeker).await? {
            match step {
                Step::LookAgain => {}
                Step::Found(found) => {
                    self.pools.note_busy(&searched, self.ambient.now());
                    return Ok(Step::Found(found));
                }
                Step::NoCapacity(reason) => return Ok(Step::NoCapacity(reason)),
            }
        }
        let key = search.head_key();
        // On the heap, as it holds all that a creation does, twice.
        match Box::pin(self.create_elected(search, &key, seeker, Round::new(has_lost))).await {
            // The head is throttled: the pool is busier than any instance sees.
            Err(Error::Unavailable(cause)) => {
                tracing::warn!(cause, "a lobby could not be created by election");
                self.pools.note_busy(&searched, self.ambient.now());
                Ok(Step::LookAgain)
            }
            other => other,
        }
    }

    /// Creates a lobby together with all finds that need the same one.
    async fn create_elected(
        &self,
        search: &Search,
        key: &HeadKey,
        seeker: &Seeker,
        mut round: Round,
    ) -> Result<Step, Error> {
        let seats = seeker.seats().count();
        let mut exhausted = self.bursts.exhausted(key, seats);
        let mut young = self.bursts.young(key, seats, self.ambient.now(), YOUNG_BURST_AGE);
        let is_young = |burst: &Burst| self.ambient.now().since(burst.opened_at) < YOUNG_BURST_AGE;
        for _ in 0..ELECTIONS_MAX {
            round.is_without_server = false;
            let burst = match young.take() {
                Some(burst) => burst,
                None => {
                    let secret = BurstSecret::random(&self.ambient);
                    let (key, positions) = (key.clone(), seeker.seats().count());
                    let beginning = Beginning { key, secret, positions, exhausted: exhausted.take() };
                    match self.begin_burst(search, beginning, seeker, &mut round).await? {
                        Ok(step) => return Ok(step),
                        Err(other) => other,
                    }
                }
            };
            round.lose_election();
            match self.join_burst(search, burst, seeker, &round).await? {
                Ok(step) => return Ok(step),
                Err(Unseated::Exhausted(burst)) => exhausted = Some(burst),
                // A find that saw the lobby in the index was quicker: the burst may have another seat.
                Err(Unseated::Lost(burst, lobby_id)) if round.lose_seat(&lobby_id) => {
                    if is_young(&burst) {
                        young = Some(burst)
                    } else {
                        exhausted = Some(burst)
                    }
                }
                // So many finds are quicker that this burst cannot share lobbies.
                Err(Unseated::Lost(..)) => {
                    self.pools.note_busy(&search.criteria.new_lobby.searched(), self.ambient.now());
                    return Ok(self.create_alone(search, seeker).await?.unwrap_or(Step::LookAgain));
                }
                Err(Unseated::Replaced(burst)) => young = burst.filter(is_young),
            }
        }
        Ok(Step::LookAgain)
    }

    /// Begins a burst and creates its first lobby, or returns the burst that is under way.
    ///
    /// Two writes, the head's first: in one transaction, the many finds that lose the election would block
    /// other transactions on their other items, and it costs a write unit more. An instance that knows no
    /// server reads the servers meanwhile.
    async fn begin_burst(
        &self,
        search: &Search,
        beginning: Beginning,
        seeker: &Seeker,
        round: &mut Round,
    ) -> Result<Result<Step, Burst>, Error> {
        let key = &beginning.key;
        let first = LobbyId::from(self.ambient.uuid());
        let election = self.store.begin_burst(&beginning, &first, self.ambient.now());
        let meeting = self.meet_servers(&search.criteria.new_lobby.pool, seeker);
        let (outcome, is_without_server) = future::join(election, meeting).await;
        round.is_without_server = is_without_server;
        match outcome? {
            BurstOutcome::Begun(burst) => {
                self.bursts.remember(key, burst.clone(), first, self.ambient.now());
                Ok(Ok(self.take_position(search, &burst, seeker, round).await?))
            }
            BurstOutcome::Outrun(burst) => Ok(Err(burst)),
        }
    }

    /// Takes the seat that `burst` has for this find.
    async fn join_burst(
        &self,
        search: &Search,
        burst: Burst,
        seeker: &Seeker,
        round: &Round,
    ) -> Result<Result<Step, Unseated>, Error> {
        let (new, key) = (&search.criteria.new_lobby, search.head_key());
        let capacity = new.max_players;
        if self.ambient.now().since(burst.opened_at) >= YOUNG_BURST_AGE {
            return self.join_older_burst(search, burst, seeker, round).await;
        }
        let seats = seeker.seats().count();
        let next = burst.lobby_of(burst.positions, capacity);
        if seeker.excludes(&next) {
            return Ok(Err(Unseated::Exhausted(burst)));
        }
        if burst.is_announced && self.bursts.was_full(&next, seats, burst.opened_at, self.ambient.now()) {
            return Ok(Err(Unseated::Exhausted(burst)));
        }
        let burst = match self.store.draw_positions(&key, &burst, seats).await? {
            Ok(burst) => burst,
            Err(replacement) => return Ok(Err(Unseated::Replaced(replacement))),
        };
        let Position { lobby_id, missing, .. } = Position::drawn_last(&burst, capacity, seats);
        if missing > 0 {
            let _missing = self.store.draw_positions(&key, &burst, missing).await?;
        }
        self.bursts.remember(&key, burst.clone(), lobby_id.clone(), self.ambient.now());
        if round.has_lost_in(&lobby_id) {
            return Ok(Err(Unseated::Lost(burst, lobby_id)));
        }
        let now = self.ambient.now();
        let draws = (BUSY_LOBBIES * capacity).clamp(CALM_DRAWS, BUSY_DRAWS);
        let most = f64::from(draws) * now.since(burst.opened_at).as_secs_f64();
        let is_fast = burst.positions > (LOBBIES_SHARED * capacity).max(BUSY_POSITIONS)
            && f64::from(burst.positions) > most;
        if is_fast && !burst.is_announced {
            self.pools.note_busy(&new.searched(), now);
        }
        Ok(match self.take_position(search, &burst, seeker, round).await? {
            Step::LookAgain => Err(Unseated::Lost(burst, lobby_id)),
            step => Ok(step),
        })
    }

    /// Takes a seat in the last lobby of a burst that is no longer young. If the lobby is not there, its
    /// creator is late, or gone: then the find creates this very lobby.
    async fn join_older_burst(
        &self,
        search: &Search,
        burst: Burst,
        seeker: &Seeker,
        round: &Round,
    ) -> Result<Result<Step, Unseated>, Error> {
        let (new, key) = (&search.criteria.new_lobby, search.head_key());
        let last = burst.lobby_of(burst.positions.saturating_sub(1), new.max_players);
        self.bursts.remember(&key, burst.clone(), last.clone(), self.ambient.now());
        let (seats, now) = (seeker.seats().count(), self.ambient.now());
        if seeker.excludes(&last) || self.bursts.was_full(&last, seats, burst.opened_at, now) {
            return Ok(Err(Unseated::Exhausted(burst)));
        }
        let was_there = burst.is_announced && last == burst.first;
        match self.take(&new.searched(), in_burst(new, last.clone(), Hiding::No), seeker).await? {
            Ok(found) => return Ok(Ok(Step::Found(Box::new(found)))),
            Err(Refusal::Missing) if !was_there => {}
            Err(_) => return Ok(Err(Unseated::Exhausted(burst))),
        }
        let placing = Placing { is_without_server: round.is_without_server, ..Placing::default() };
        let origin = Origin::Has { burst: &burst, may_be_needless: true };
        Ok(match self.attempt(search, &last, seeker, placing, origin).await? {
            Attempt::Created(found) => Ok(Step::Found(found)),
            Attempt::NoCapacity(reason) => {
                self.bursts.note_exhausted(&key, &burst);
                Ok(Step::NoCapacity(reason))
            }
            Attempt::Replaced(other) => Err(Unseated::Replaced(Some(other))),
            Attempt::Exists | Attempt::Lost => Err(Unseated::Replaced(None)),
        })
    }

    /// Takes the last position drawn of `burst`: creates its lobby, or waits until it is created.
    async fn take_position(
        &self,
        search: &Search,
        burst: &Burst,
        seeker: &Seeker,
        round: &Round,
    ) -> Result<Step, Error> {
        let new = &search.criteria.new_lobby;
        let position = Position::drawn_last(burst, new.max_players, seeker.seats().count());
        let Position { nth, role, .. } = position;
        let hiding = position.hiding(burst, new);
        let spacing = self.spacing_of(new, burst, &position).await?;
        if role == Role::Creator && !spacing.is_zero() {
            self.ambient.sleep(spacing).await;
        }
        let drawn_for = YOUNG_BURST_AGE.saturating_sub(self.ambient.now().since(burst.opened_at));
        let sight_after = if position.is_promised { drawn_for } else { Duration::ZERO };
        let waits = round.waits();
        let placing = Placing { nth: nth.into(), sight_after, is_without_server: round.is_without_server };
        let origin = Origin::Has { burst, may_be_needless: round.may_be_needless(nth) };
        for wait in 0..=waits {
            if role == Role::Creator || wait == waits {
                match self.attempt(search, &position.lobby_id, seeker, placing, origin).await? {
                    Attempt::Created(found) => return Ok(Step::Found(found)),
                    Attempt::NoCapacity(reason) => {
                        // Nobody creates its lobby: the next find need not wait for it.
                        self.bursts.note_exhausted(&search.head_key(), burst);
                        return Ok(Step::NoCapacity(reason));
                    }
                    Attempt::Exists => {}
                    Attempt::Replaced(_) | Attempt::Lost => return Ok(Step::LookAgain),
                }
            } else if wait > 0 || role == Role::Follower {
                // The creator of the burst's first lobby began with the burst.
                let is_first = wait == 0 && nth == 0;
                let begun = if is_first { self.ambient.now().since(burst.opened_at) } else { Duration::ZERO };
                let spacing = if wait == 0 { spacing } else { Duration::ZERO };
                let pause = spacing + round.pause(wait);
                self.ambient.sleep(pause.saturating_sub(begun)).await;
            }
            let claimed = in_burst(new, position.lobby_id.clone(), hiding);
            match self.take(&new.searched(), claimed, seeker).await? {
                Ok(found) => return Ok(Step::Found(Box::new(found))),
                Err(Refusal::Missing) => {}
                Err(_) => return Ok(Step::LookAgain),
            }
        }
        Ok(Step::LookAgain)
    }

    /// How long the creation of the lobby of `position` still waits for earlier ones on the same server. A
    /// creator that knows no server first reads the servers, as the creation would.
    async fn spacing_of(
        &self,
        new: &NewLobby,
        burst: &Burst,
        position: &Position,
    ) -> Result<Duration, Error> {
        if position.nth == 0 {
            return Ok(Duration::ZERO);
        }
        let pool = new.pool.placement();
        let now = self.ambient.now();
        let count = || self.servers.count(&pool, |server| server.fits(&new.pool.game_mode, now));
        if position.role == Role::Creator && count() == 0 {
            self.learn_servers(&new.pool).await?;
        }
        let before = position.nth.checked_div(count()).unwrap_or(0).min(SPACINGS_MAX);
        Ok((CREATION_SPACING * before).saturating_sub(self.ambient.now().since(burst.opened_at)))
    }
}

fn in_burst(new: &NewLobby, lobby_id: LobbyId, hiding: Hiding) -> Claimed {
    let capacity = PartyCapacity::Assumed(new.max_players_party.unwrap_or(new.max_players));
    Claimed { pool: new.pool.in_shard_of(&lobby_id, new.shards), lobby_id, capacity, hiding }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ambient::{Ambient, Timestamp};

    const CAPACITY: u32 = 3;

    fn positions(is_announced: bool) -> Vec<(u32, Role, bool, bool)> {
        let secret = BurstSecret::random(&Ambient::system());
        let (first, opened_at) = (LobbyId::nil(), Timestamp::default());
        let burst = Burst { first, secret, opened_at, positions: 1, is_announced };
        let drawn = (1..=2 * CAPACITY).map(|positions| Burst { positions, ..burst.clone() });
        let taken = drawn.map(|burst| Position::drawn_last(&burst, CAPACITY, 1));
        taken.map(|at| (at.nth, at.role, at.is_last, at.is_promised)).collect()
    }

    #[test]
    fn the_first_position_of_each_lobby_creates_it_and_the_last_one_hides_it() {
        use Role::{Creator, Follower};
        let expected = [
            (0, Creator, false, false),
            (0, Follower, false, false),
            (0, Follower, true, false),
            (1, Creator, false, true),
            (1, Follower, false, true),
            (1, Follower, true, true),
        ];
        assert_eq!(positions(false), expected);
    }

    #[test]
    fn a_party_that_would_straddle_takes_the_next_lobby_whole() {
        use Role::{Creator, Follower};
        let secret = BurstSecret::random(&Ambient::system());
        let (first, opened_at) = (LobbyId::nil(), Timestamp::default());
        let drawn = |positions, seats| {
            let (first, secret) = (first.clone(), secret.clone());
            let burst = Burst { first, secret, opened_at, positions, is_announced: false };
            let at = Position::drawn_last(&burst, 5, seats);
            (at.nth, at.role, at.is_last, at.missing)
        };
        assert_eq!(drawn(2, 2), (0, Creator, false, 0));
        assert_eq!(drawn(4, 2), (0, Follower, false, 0));
        assert_eq!(drawn(6, 2), (1, Creator, false, 1), "one position is in the lobby before");
        assert_eq!(drawn(9, 2), (1, Follower, false, 0));
        assert_eq!(drawn(10, 3), (1, Follower, true, 0));
        assert_eq!(drawn(5, 5), (0, Creator, true, 0));
    }

    #[test]
    fn an_announced_lobby_is_neither_created_nor_kept_back() {
        use Role::{Creator, Follower, Guest};
        let expected = [
            (0, Guest, false, false),
            (0, Guest, false, false),
            (0, Guest, true, false),
            (1, Creator, false, false),
            (1, Follower, false, false),
            (1, Follower, true, false),
        ];
        assert_eq!(positions(true), expected);
    }
}
