//! A lobby's transitions, each one conditional write; [`Lobby::check`] judges what a refused one shows.
//!
//! A write that the network repeats late changes nothing. Closing, reopening and both changes of publicity
//! carry their time (`toggled_at`, decision 41). Leaving a seat records the time (`vacated_at`), and no write
//! from before that takes a seat. A server that gives up its lease records that on its lobbies (`freed_at`),
//! so an earlier heartbeat gives them no lease again. A connect names its write, so a retry by the SDK is no
//! second connect (I7). What is done with a seat's tokens depends on their generations as they were seen,
//! which never come back.

use std::{collections::HashMap, time::Duration};

use aws_sdk_dynamodb::types::AttributeValue;

use crate::{
    base::ambient::Timestamp,
    models::{
        errors::Error,
        generations::{Generations, ShownSeat},
        ids::{LobbyId, SeatId, StartMark},
        lifecycle::{Connect, Illegal, Transition, TransitionState},
        lobby::{Lobby, STARTING_MAX, SeatState},
        server::Server,
    },
    store::{
        client::Store,
        items::{number, text},
        seats::{ALIVE, as_seen, leave},
        writes::Write,
    },
};

/// The result of a transition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransitionOutcome {
    /// It was made. The lobby after it.
    Made(Box<Lobby>),
    /// It had been made before. The lobby as it is.
    AlreadyMade(Box<Lobby>),
    /// The lobby's state does not allow it.
    Illegal(Illegal, Box<Lobby>),
    /// There is no such lobby.
    Missing,
}

impl TransitionOutcome {
    /// The lobby, if the transition was made, now or before.
    ///
    /// # Errors
    /// What the lobby's state refuses; [`Error::LobbyNotFound`].
    pub fn accepted(self) -> Result<Box<Lobby>, Error> {
        match self {
            Self::Made(lobby) | Self::AlreadyMade(lobby) => Ok(lobby),
            Self::Illegal(illegal, _) => Err(illegal.into()),
            Self::Missing => Err(Error::LobbyNotFound),
        }
    }
}

/// The lobby is of the given start, or of a release that knew no starts.
const OF_START: &str = "(attribute_not_exists(#start) OR #start = :start)";
/// Writes of one transition, each based on the lobby that the last refused write returned. Only
/// [`Transition::Ready`] can be outrun more than once or twice: by each seat taken meanwhile.
const ATTEMPTS: usize = 32;
/// Seats that one write keeps: each takes 85 bytes of its condition and 82 of its change, which may have 4 KB
/// each.
const KEPT_MAX: usize = 45;

impl Store {
    /// Makes `transition`, or returns why the lobby does not allow it. One write unit for a lobby up to 1 KB,
    /// and two of the index when the lobby comes into or goes out of sight. One more for each wrong guess at
    /// the lobby's state, or one read unit where it is read first.
    ///
    /// # Errors
    /// [`Error::Contention`] when others changed the lobby each time; [`Error::Unavailable`], [`Error::Bug`].
    pub async fn make_transition(
        &self,
        lobby_id: &LobbyId,
        transition: &Transition,
        now: Timestamp,
    ) -> Result<TransitionOutcome, Error> {
        Ok(self.make_transition_after(lobby_id, transition, now).await?.0)
    }

    /// The same, with the lobby on which the last write was based: `None` where that was a guess.
    ///
    /// # Errors
    /// As [`Store::make_transition`].
    pub async fn make_transition_after(
        &self,
        lobby_id: &LobbyId,
        transition: &Transition,
        now: Timestamp,
    ) -> Result<(TransitionOutcome, Option<Lobby>), Error> {
        let mut seen = if transition.needs_look() {
            let Some(lobby) = self.lobby(lobby_id).await? else {
                return Ok((TransitionOutcome::Missing, None));
            };
            Some(lobby)
        } else {
            None
        };
        for _ in 0..ATTEMPTS {
            if let Some(lobby) =
                seen.take_if(|lobby| lobby.check(transition, now) != Ok(TransitionState::Due))
            {
                let outcome = match lobby.check(transition, now) {
                    Err(illegal) => TransitionOutcome::Illegal(illegal, Box::new(lobby)),
                    Ok(_) => TransitionOutcome::AlreadyMade(Box::new(lobby)),
                };
                return Ok((outcome, None));
            }
            let write = make(self.on_lobby(lobby_id), transition, seen.as_ref(), now);
            match self.update::<Lobby>(write).await? {
                Ok(lobby) => return Ok((TransitionOutcome::Made(Box::new(lobby)), seen)),
                Err(None) => return Ok((TransitionOutcome::Missing, None)),
                Err(Some(lobby)) => seen = Some(lobby),
            }
        }
        Err(Error::Contention)
    }

    /// Keeps the seats of all players who are connected, each for `keep`, or else for the lobby's time.
    /// Returns those that are not kept: of players who will not return, and all if that time is zero. A
    /// player who connects meanwhile stays so.
    ///
    /// One read unit for each started 4 KB, and a write for each 45 seats, at one unit for each
    /// started KB, and two of the index where the lobby comes into sight earlier.
    ///
    /// # Errors
    /// [`Error::LobbyNotFound`], [`Error::LobbyStopped`]; [`Error::Contention`] when others changed the lobby
    /// each time; [`Error::Unavailable`], [`Error::Bug`].
    pub async fn keep_connected(
        &self,
        lobby_id: &LobbyId,
        keep_for: Option<Duration>,
        now: Timestamp,
    ) -> Result<Vec<ShownSeat>, Error> {
        let mut lobby = self.lobby(lobby_id).await?.ok_or(Error::LobbyNotFound)?;
        let everyone = lobby.connected_by_token();
        let mut attempts = 0..ATTEMPTS;
        loop {
            if lobby.is_over(now) {
                return Err(Error::LobbyStopped);
            }
            let left = everyone.iter().filter(|seat| lobby.is_released_by(seat));
            let left = left.map(|seat| (seat, lobby.kept_until(&seat.seat_id, keep_for, now)));
            let (kept, freed): (Vec<_>, Vec<_>) = left.partition(|(_, until)| until.is_some());
            let kept: Vec<_> =
                kept.into_iter().filter_map(|(seat, until)| Some((&seat.seat_id, until?))).collect();
            let Some(chunk) = kept.chunks(KEPT_MAX).next() else {
                return Ok(freed.into_iter().map(|(seat, _)| seat.clone()).collect());
            };
            lobby = match self.update::<Lobby>(keep(self.on_lobby(lobby_id), &lobby, chunk, now)).await? {
                Ok(lobby) => lobby,
                Err(Some(lobby)) if attempts.next().is_some() => lobby,
                Err(Some(_)) => return Err(Error::Contention),
                Err(None) => return Err(Error::LobbyNotFound),
            };
        }
    }

    /// Extends the lease of a lobby of `server` to that of the server, as its heartbeat at `heartbeat_at` set
    /// it; a server without lease makes it permanent. Returns whether the lobby has that lease: not if it
    /// ended or is of another start. One write unit for a lobby up to 1 KB. Another one, and two of the
    /// index, to bring a lobby that was hidden while its server was silent back into sight.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn extend_lease(
        &self,
        lobby_id: &LobbyId,
        server: &Server,
        heartbeat_at: Timestamp,
    ) -> Result<bool, Error> {
        let until = server.lease_until;
        let change = if until == Timestamp::NEVER {
            "SET #lease_until = :until, #freed_at = :heartbeat_at"
        } else {
            "SET #lease_until = :until"
        };
        // A late write of an earlier heartbeat must not shorten the lease of a later one. A lobby from before
        // its server had a lease gets one, but none from before the server gave its lease up.
        let condition = format!(
            "#stage <> :ended AND #server = :server AND {OF_START} \
             AND (#lease_until < :until OR (#lease_until = :never AND #created_at < :heartbeat_at \
             AND (attribute_not_exists(#freed_at) OR #freed_at < :heartbeat_at)))"
        );
        let write = self
            .on_lobby(lobby_id)
            .change(change)
            .when(condition)
            .with(":until", number(until))
            .with(":heartbeat_at", number(heartbeat_at))
            .with(":start", start_text(server.start().as_ref()))
            .with(":server", text(server.server.to_string()));
        let lobby = match self.update::<Lobby>(write).await? {
            Ok(lobby) => lobby,
            // A later heartbeat was quicker.
            Err(Some(lobby)) if lobby.lease_until >= until && server.runs(&lobby) => lobby,
            Err(_) => return Ok(false),
        };
        if lobby.joinable_from == Some(Timestamp::NEVER) {
            let show = self.on_lobby(lobby_id).change("SET #joinable_from = #created_at");
            let _hidden_for_good = self.update::<Lobby>(show.when("#joinable_from = :never")).await?;
        }
        Ok(true)
    }
}

/// Makes `write` a transition. If no lobby was `seen`, it guesses a findable lobby with the player connected,
/// or on the way where the player gives up.
fn make(write: Write, transition: &Transition, seen: Option<&Lobby>, now: Timestamp) -> Write {
    match transition {
        Transition::Ready => ready(write, seen, now),
        Transition::Close => toggle(write, seen, now, &format!("{ALIVE} AND #closed = :false"))
            .change("SET #closed = :true, #toggled_at = :toggled REMOVE #joinable_from, #room"),
        Transition::Reopen if seen.is_some_and(|lobby| lobby.is_private) => toggle(
            write,
            seen,
            now,
            &format!("{ALIVE} AND #closed = :true AND attribute_exists(#is_private) AND attribute_not_exists(#is_draining)"),
        )
        .change("SET #closed = :false, #toggled_at = :toggled"),
        Transition::Reopen => toggle(
            write,
            seen,
            now,
            &format!("{ALIVE} AND #closed = :true AND attribute_not_exists(#is_private) AND attribute_not_exists(#is_draining)"),
        )
        .change("SET #closed = :false, #toggled_at = :toggled, #joinable_from = #created_at"),
        Transition::MakePrivate => toggle(write, seen, now, &format!("{ALIVE} AND attribute_not_exists(#is_private)"))
            .change("SET #is_private = :true, #toggled_at = :toggled REMOVE #joinable_from, #room"),
        Transition::MakePublic if seen.is_some_and(|lobby| lobby.closed) => toggle(
            write,
            seen,
            now,
            &format!("{ALIVE} AND attribute_exists(#is_private) AND #closed = :true"),
        )
        .change("SET #toggled_at = :toggled REMOVE #is_private"),
        Transition::MakePublic => toggle(
            write,
            seen,
            now,
            &format!("{ALIVE} AND attribute_exists(#is_private) AND #closed = :false"),
        )
        .change("SET #toggled_at = :toggled, #joinable_from = #created_at REMOVE #is_private"),
        // The lease stays: a server that stops with players inside leaves a lobby no longer than one that
        // crashes.
        Transition::Drain(start) => write
            .change("SET #closed = :true, #is_draining = :true REMOVE #joinable_from, #room, #idle_secs")
            .when(format!(
                "{ALIVE} AND #closed IN (:true, :false) AND attribute_not_exists(#is_draining) AND {OF_START}"
            ))
            .with(":start_limit", number(now.before(STARTING_MAX)))
            .with(":start", start_text(start.as_ref())),
        Transition::Connect(_)
        | Transition::Leave(_)
        | Transition::Disconnect(..)
        | Transition::GiveUp(_)
        | Transition::Rejoin(_) => change_seat(write, transition, seen, now),
    }
}

/// The same of one of its seats.
fn change_seat(write: Write, transition: &Transition, seen: Option<&Lobby>, now: Timestamp) -> Write {
    match transition {
        Transition::Connect(what) => connect(write, what, seen, now),
        Transition::Leave(seat) => {
            let is_reserved = seen.is_some_and(|lobby| lobby.reserved.contains_key(seat));
            leave(write, seat, is_reserved, seen, now)
        }
        Transition::Disconnect(shown @ ShownSeat { seat_id, .. }, given) => match seen {
            None => {
                let write = leave(write, seat_id, false, None, now);
                if given.is_none() { write.also_when("attribute_not_exists(#keep_secs)") } else { write }
            }
            Some(lobby) if lobby.is_spent_by(shown) && lobby.seat_state(seat_id, now) == SeatState::Held => {
                change_tokens(write, lobby, seat_id, Generations::renewed, now)
            }
            Some(lobby) => match lobby.kept_until(seat_id, *given, now) {
                Some(until) => keep(write, lobby, &[(seat_id, until)], now),
                None => leave(write, seat_id, lobby.reserved.contains_key(seat_id), seen, now),
            },
        },
        Transition::GiveUp(ShownSeat { seat_id, .. }) => match seen {
            Some(lobby) if lobby.connected.contains_key(seat_id) => {
                change_tokens(write, lobby, seat_id, Generations::left, now)
            }
            _ => leave(write, seat_id, true, seen, now),
        },
        Transition::Rejoin(ShownSeat { seat_id, .. }) => match seen {
            Some(lobby) => change_tokens(write, lobby, seat_id, Generations::renewed, now),
            // Not without a look: a write without a change is not sent.
            None => write,
        },
        // The others are of the whole lobby.
        _ => write,
    }
}

/// The first token of a seat connects in one guess. A later one replaces a connection that its server has not
/// reported as lost.
fn connect(
    write: Write,
    Connect { seat: ShownSeat { seat_id, .. }, write: id, until }: &Connect,
    seen: Option<&Lobby>,
    now: Timestamp,
) -> Write {
    let (write, tokens) = as_seen(write, seen, seat_id);
    let joined = seen.and_then(|lobby| lobby.generations_of(seat_id)).map(Generations::joined);
    let next = if joined.is_some() { ", #generations.#seat = :next" } else { "" };
    let write = write
        .with(":write", text(id.as_str()))
        .with(":now", number(now))
        .with(":next", joined.map(|joined| text(joined.to_string())));
    if seen.is_some_and(|lobby| lobby.connected.contains_key(seat_id)) {
        return write
            .change(format!("SET #connected_by = :write{next}"))
            .when(format!("#stage = :ready AND #connected.#seat > :now AND {tokens}"));
    }
    let joined_at = "#joined_at = if_not_exists(#joined_at, :now)";
    write
        .change(format!(
            "SET #connected.#seat = :until, #connected_by = :write, {joined_at}{next} REMOVE #reserved.#seat"
        ))
        .when(format!("#stage = :ready AND #reserved.#seat > :now AND {tokens}"))
        .with(":until", number(*until))
}

/// Notes what `change` makes of the tokens of a seat whose player has connected.
fn change_tokens(
    write: Write,
    lobby: &Lobby,
    seat: &SeatId,
    change: fn(Generations) -> Generations,
    now: Timestamp,
) -> Write {
    let held = if lobby.connected.contains_key(seat) { "#connected" } else { "#reserved" };
    let next = change(lobby.generations_of(seat).unwrap_or(Generations::FIRST));
    let (write, tokens) = as_seen(write.with(":now", number(now)), Some(lobby), seat);
    let held = format!("#stage = :ready AND {held}.#seat > :now");
    if lobby.generations.is_some() {
        let write = write.change("SET #generations.#seat = :next").when(format!("{held} AND {tokens}"));
        return write.with(":next", text(next.to_string()));
    }
    // The map that is not there has no entries, but cannot get one either.
    write
        .change("SET #generations = :tokens")
        .when(format!("{held} AND attribute_not_exists(#generations)"))
        .with(":tokens", AttributeValue::M(HashMap::from([(seat.to_string(), text(next.to_string()))])))
}

/// Keeps connected seats of `lobby` for their players, each until the given time. Each then lapses like a
/// reservation, so a find must not overlook the first of them to lapse.
pub(super) fn keep(write: Write, lobby: &Lobby, kept: &[(&SeatId, Timestamp)], now: Timestamp) -> Write {
    let first_token = || text(Generations::FIRST.to_string());
    let lapse = kept.iter().map(|(_, until)| *until).fold(Timestamp::NEVER, Timestamp::min);
    let is_early = lobby.joinable_from.is_some_and(|from| from > lapse);
    let (mut set, sight) = if is_early {
        (vec!["#joinable_from = :lapse".to_owned()], "#joinable_from > :lapse")
    } else {
        (Vec::new(), "(attribute_not_exists(#joinable_from) OR #joinable_from <= :lapse)")
    };
    let mut conditions = vec!["#stage = :ready".to_owned(), sight.to_owned()];
    set.push("#vacated_at = :now".to_owned());
    let mut write = write.with(":now", number(now)).with(":lapse", number(lapse));
    if lobby.generations.is_none() {
        let tokens = kept.iter().map(|(seat, _)| (seat.to_string(), first_token()));
        write = write.with(":tokens", AttributeValue::M(tokens.collect()));
        set.push("#generations = :tokens".to_owned());
        conditions.push("attribute_not_exists(#generations)".to_owned());
    }
    let mut gone = Vec::new();
    let mut has_first = false;
    for (n, (seat, until)) in kept.iter().enumerate() {
        write = write.name(format!("#kept{n}"), seat.as_str()).with(format!(":kept{n}"), number(*until));
        set.push(format!("#reserved.#kept{n} = :kept{n}"));
        gone.push(format!("#connected.#kept{n}"));
        conditions.push(format!("#connected.#kept{n} > :now"));
        match (&lobby.generations, lobby.generations_of(seat)) {
            (None, _) => {}
            (Some(_), None) => {
                has_first = true;
                set.push(format!("#generations.#kept{n} = :first"));
                conditions.push(format!("attribute_not_exists(#generations.#kept{n})"));
            }
            (Some(_), Some(seen)) => {
                write = write.with(format!(":kept{n}_tokens"), text(seen.to_string()));
                conditions.push(format!("#generations.#kept{n} = :kept{n}_tokens"));
            }
        }
    }
    write
        .change(format!("SET {} REMOVE {}", set.join(", "), gone.join(", ")))
        .when(conditions.join(" AND "))
        .with(":first", has_first.then(first_token))
}

/// All reservations restart at the same time, so none may be added or given up meanwhile.
fn ready(write: Write, seen: Option<&Lobby>, now: Timestamp) -> Write {
    let restarted = seen.map_or(now, |lobby| now + lobby.reservation());
    let is_full = seen.is_some_and(|lobby| lobby.joinable_from.is_some() && lobby.taken >= lobby.max_players);
    let hide = if is_full { ", #joinable_from = :anew" } else { "" };
    let sight = if is_full { " AND attribute_exists(#joinable_from)" } else { "" };
    let seats = |until: Option<Timestamp>| {
        let seats = seen.iter().flat_map(|lobby| &lobby.reserved);
        let entry = |(seat, lapse): (&SeatId, &Timestamp)| {
            (seat.as_str().to_owned(), number(until.unwrap_or(*lapse)))
        };
        AttributeValue::M(seats.map(entry).collect())
    };
    write
        .change(format!("SET #stage = :ready, #reserved = :renewed, #vacated_at = :now{hide}"))
        .when(format!("#stage = :starting AND #reserved = :reserved AND #created_at > :start_limit{sight}"))
        .with(":reserved", seats(None))
        .with(":renewed", seats(Some(restarted)))
        .with(":now", number(now))
        .with(":start_limit", number(now.before(STARTING_MAX)))
        .with(":anew", is_full.then(|| number(restarted)))
}

/// Makes `write` change who finds a lobby if `condition` holds. Unlike other transitions, these may
/// alternate, so a late copy of a write must not undo a later one. A writer whose clock is behind the last
/// one's retries with a later time.
fn toggle(write: Write, seen: Option<&Lobby>, now: Timestamp, condition: &str) -> Write {
    let after_seen = seen.and_then(|lobby| lobby.toggled_at).map(|at| at + Duration::from_millis(1));
    write
        .when(format!("{condition} AND (attribute_not_exists(#toggled_at) OR #toggled_at < :toggled)"))
        .with(":toggled", number(after_seen.map_or(now, |after| after.max(now))))
        .with(":start_limit", number(now.before(STARTING_MAX)))
}

/// A start as stored. A server of an earlier release has none, and gets a value that no lobby has.
fn start_text(start: Option<&StartMark>) -> AttributeValue {
    text(start.map_or("", StartMark::as_str))
}
