//! Taking and leaving seats of lobbies.
//!
//! A seat is an entry of the lobby's `reserved` or `connected` with the time at which it expires. `taken`
//! counts the entries, because an expression cannot. [`Store::take_seat`] is the only way to a seat in a
//! lobby that exists.

use aws_sdk_dynamodb::{primitives::Blob, types::AttributeValue};

use crate::{
    base::ambient::Timestamp,
    models::{
        availability::{Access, Availability, Refusal},
        errors::Error,
        ids::{LobbyId, SeatId},
        lobby::{Lobby, STARTING_MAX, SeatState},
        seats::Seats,
    },
    store::{
        client::Store,
        items::{number, text},
        writes::Write,
    },
};

/// Neither ended nor starting for longer than it may.
pub(super) const ALIVE: &str = "#stage <> :ended AND (#stage = :ready OR #created_at > :start_limit)";

/// Attempts at one lobby: a plain write, a take-over of seats seen lapsed, and retries after lost races.
const ATTEMPTS: usize = 4;

/// The condition of every seat, except for the capacity (I6).
const ENTERABLE: &str = "#stage <> :ended AND (#stage = :ready OR #created_at > :start_limit) AND #lease_until > :now \
                         AND attribute_not_exists(#reserved.#seat) AND attribute_not_exists(#connected.#seat)";
/// The additional condition of a find's seat. One attribute shows that a lobby is neither closed, private nor
/// ended: each of these removes `joinable_from`, and only reopening sets it again.
const FINDABLE: &str = " AND #pool = :pool AND attribute_exists(#joinable_from)";

/// A request's claim on a seat in one lobby.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeatClaim {
    /// The lobby.
    pub lobby_id: LobbyId,
    /// How the player enters.
    pub access: Access,
    /// The seats, fresh for each find, so that a retried write is recognised.
    pub seats: Seats,
    /// When its reservation lapses.
    pub until: Timestamp,
    /// The lobby's capacity for the seats of a party, which is not used for one seat.
    pub capacity: PartyCapacity,
    /// Whether taking the seat hides the lobby.
    pub hiding: Hiding,
}

/// A lobby's capacity for parties, which never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartyCapacity {
    /// As the lobby itself showed it.
    Known(u32),
    /// As lobbies of the pool usually have it: the write checks it.
    Assumed(u32),
}

/// Whether taking a seat also hides the lobby from the index, until its first seat lapses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hiding {
    /// It does not.
    No,
    /// It does if this is the last seat. Otherwise a second write takes the seat and hides nothing.
    IfLast {
        /// Seats taken when only one is left.
        taken: u32,
        /// When the first seat lapses.
        lapse: Timestamp,
    },
    /// It does, because the seats still free are promised to other finds of the burst.
    Promised {
        /// When the first seat lapses.
        lapse: Timestamp,
        /// Whether the lobby may be in the index for parties, too.
        from_parties: bool,
    },
    /// From parties alone, if afterwards it lacks room for one. Otherwise a second write hides nothing.
    FromParties {
        /// Seats taken before.
        taken: u32,
    },
}

/// The result of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SeatOutcome {
    /// The seat is taken. The lobby after it.
    Taken(Box<Lobby>),
    /// The seat is not taken. The lobby as it was, unless there is none.
    Refused(Refusal, Option<Box<Lobby>>),
}

impl SeatOutcome {
    /// Whether the seat is certainly not taken.
    #[must_use]
    pub const fn is_refused(&self) -> bool {
        matches!(self, Self::Refused(..))
    }
}

impl Store {
    /// Takes a seat, or those of a party, in one conditional write that checks everything again, whatever the
    /// caller knew (I13).
    ///
    /// The condition is the capacity, not the state that was read, so n claims on n free seats all succeed
    /// the first time. The write that takes a lapsed seat frees all lapsed seats that the refused write
    /// returned. A claim whose first write succeeded, but whose response was lost, recognises its seat and
    /// succeeds. A claim that a leave outruns is retried. One write unit for a lobby up to 1 KB.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`]; the seat may then be taken all the same, and lapses by itself
    /// (I4).
    pub async fn take_seat(&self, claim: &SeatClaim, now: Timestamp) -> Result<SeatOutcome, Error> {
        let mut write = self.take_free_seat(claim, (claim.hiding, claim.capacity), now, now);
        let mut refusal = SeatOutcome::Refused(Refusal::Full, None);
        for _ in 0..ATTEMPTS {
            let lobby = match self.update::<Lobby>(write).await? {
                Ok(lobby) if lobby.is_understood() => return Ok(SeatOutcome::Taken(Box::new(lobby))),
                // No condition checks fields that only a later release knows.
                Ok(lobby) => {
                    self.give_back(lobby.clone(), &claim.seats, now).await?;
                    return Ok(SeatOutcome::Refused(Refusal::Hidden, Some(Box::new(lobby))));
                }
                Err(None) => return Ok(SeatOutcome::Refused(Refusal::Missing, None)),
                Err(Some(lobby)) => lobby,
            };
            match lobby.seat_state(claim.seats.first(), now) {
                SeatState::Held => return Ok(SeatOutcome::Taken(Box::new(lobby))),
                SeatState::Gone if lobby.has_seat(claim.seats.first()) && !lobby.is_over(now) => {
                    return Err(Error::Unavailable("the seat of an earlier run lapsed just now".to_owned()));
                }
                SeatState::Gone | SeatState::Unknown => {}
            }
            let count = claim.seats.count();
            write = match lobby.availability(&claim.access, count, now) {
                Availability::Free(_) => {
                    let vacated_at = lobby.vacated_at.map_or(now, |vacated_at| vacated_at.max(now));
                    let capacity = PartyCapacity::Known(lobby.capacity(&claim.access, count));
                    self.take_free_seat(claim, (Hiding::No, capacity), now, vacated_at)
                }
                Availability::TakeOver(lapsed) => self.take_over_seat(claim, &lobby, &lapsed, now),
                Availability::Refused(refusal) => {
                    return Ok(SeatOutcome::Refused(refusal, Some(Box::new(lobby))));
                }
            };
            refusal = SeatOutcome::Refused(Refusal::Full, Some(Box::new(lobby)));
        }
        Ok(refusal)
    }

    /// Frees those of `seats` that `lobby` has reserved, for a request that took them and answers none. One
    /// write unit for a lobby up to 1 KB, and two of the index where that brings it into sight; one more
    /// where the lobby is no longer as it was read.
    ///
    /// # Errors
    /// [`Error::Contention`] when others changed the lobby each time; [`Error::Unavailable`], [`Error::Bug`].
    pub async fn give_back(&self, mut lobby: Lobby, seats: &Seats, now: Timestamp) -> Result<(), Error> {
        for _ in 0..ATTEMPTS {
            let Some(write) = self.giving_back(&lobby, seats, now) else { return Ok(()) };
            let Err(Some(later)) = self.update::<Lobby>(write).await? else { return Ok(()) };
            lobby = later;
        }
        Err(Error::Contention)
    }

    /// The write of [`Store::give_back`]; `None` where none of the seats is reserved.
    pub(super) fn giving_back(&self, lobby: &Lobby, seats: &Seats, now: Timestamp) -> Option<Write> {
        let reserved: Vec<_> = seats.iter().filter(|seat| lobby.reserved.contains_key(*seat)).collect();
        let (first, others) = reserved.split_first().filter(|_| !lobby.is_over(now))?;
        Some(leave_together(self.on_lobby(&lobby.lobby_id), (first, others), true, Some(lobby), now))
    }

    /// A copy of the write that arrives after its player left must not take the seat again, for a spent token
    /// (I7). So no seat may have been left after `vacated_at`, the last known time of a leave, or now.
    ///
    /// Of a party each seat must be free: its members leave, and lose their seats, one by one, so that a late
    /// copy may find the first one's gone alone (I13).
    fn take_free_seat(
        &self,
        claim: &SeatClaim,
        (hiding, party_capacity): (Hiding, PartyCapacity),
        now: Timestamp,
        vacated_at: Timestamp,
    ) -> Write {
        let count = claim.seats.count();
        let hide = match hiding {
            Hiding::IfLast { .. } | Hiding::Promised { .. } => ", #joinable_from = :lapse",
            Hiding::No | Hiding::FromParties { .. } => "",
        };
        let is_as_seen = match hiding {
            Hiding::IfLast { .. } | Hiding::FromParties { .. } => " AND #taken = :last",
            Hiding::No | Hiding::Promised { .. } => "",
        };
        let (PartyCapacity::Known(capacity) | PartyCapacity::Assumed(capacity)) = party_capacity;
        let from_parties = match hiding {
            Hiding::FromParties { .. } | Hiding::Promised { from_parties: true, .. } => " REMOVE #room",
            Hiding::IfLast { taken, .. } if count > 1 && capacity <= taken + count => " REMOVE #room",
            Hiding::No | Hiding::IfLast { .. } | Hiding::Promised { .. } => "",
        };
        let (more, below) = match (&claim.access, party_capacity) {
            (Access::Find(..), _) if count == 1 => (":one", "#taken < #max_players"),
            (Access::Direct, _) if count == 1 => (":one", "#taken < #max_players_direct"),
            (_, PartyCapacity::Known(_)) => (":count", "#taken <= :room"),
            (_, PartyCapacity::Assumed(_)) => {
                (":count", "#taken <= :room AND #max_players_party = :capacity")
            }
        };
        let change = format!(
            "SET #taken = #taken + {more}, #reserved.#seat = :until{}{hide}{from_parties}",
            others(&claim.seats)
        );
        let condition = format!(
            "{}{} AND {below}{is_as_seen} AND (attribute_not_exists(#vacated_at) OR #vacated_at <= :vacated_at)",
            enterable(&claim.access),
            others_are_free(&claim.seats)
        );
        let (last, lapse) = match hiding {
            Hiding::No => (None, None),
            Hiding::IfLast { taken, lapse } => (Some(taken), Some(lapse)),
            Hiding::Promised { lapse, .. } => (None, Some(lapse)),
            Hiding::FromParties { taken } => (Some(taken), None),
        };
        let is_checked = count > 1 && matches!(party_capacity, PartyCapacity::Assumed(_));
        self.claiming(claim, now)
            .change(change)
            .when(condition)
            .with(":vacated_at", number(vacated_at))
            .with(":lapse", lapse.map(number))
            .with(":last", last.map(number))
            .with(":count", (count > 1).then(|| number(count)))
            // A smaller lobby than the party has no room, whatever is taken.
            .with(":room", (count > 1).then(|| number(i64::from(capacity) - i64::from(count))))
            .with(":capacity", is_checked.then(|| number(capacity)))
    }

    /// The capacity here is a constant plus the lapsed seats: an expression can neither count those nor
    /// subtract in a condition, and a lobby's capacities never change.
    fn take_over_seat(&self, claim: &SeatClaim, lobby: &Lobby, lapsed: &[SeatId], now: Timestamp) -> Write {
        let (freed, seats) = (u32::try_from(lapsed.len()).unwrap_or(u32::MAX), claim.seats.count());
        let capacity = lobby.capacity(&claim.access, seats).saturating_sub(seats - 1);
        let attribute = |seat: &SeatId| {
            if lobby.reserved.contains_key(seat) { "#reserved" } else { "#connected" }
        };
        let paths: Vec<String> =
            lapsed.iter().enumerate().map(|(n, seat)| format!("{}.#lapsed{n}", attribute(seat))).collect();
        // Tokens go with their seats. The placeholder is short because the expression may have 4 KB.
        let (tokens, unkept) = match lobby.generations {
            Some(_) => ((0..lapsed.len()).map(|n| format!(", #tokens.#lapsed{n}")).collect(), ""),
            None => (String::new(), " AND attribute_not_exists(#generations)"),
        };
        let change = format!(
            "SET #taken = #taken - :freed, #reserved.#seat = :until{}, #lapsed = :lapsed REMOVE {}{tokens}",
            others(&claim.seats),
            paths.join(", ")
        );
        let still_lapsed: Vec<String> = paths.iter().map(|path| format!("{path} <= :now")).collect();
        let condition = format!(
            "{} AND #taken < :limit AND {}{unkept}",
            enterable(&claim.access),
            still_lapsed.join(" AND ")
        );
        let remembered = lobby.lapsed_with(lapsed).iter().map(|seat| text(seat.as_str())).collect();
        let write = self
            .claiming(claim, now)
            .change(change)
            .when(condition)
            .with(":freed", number(i64::from(freed) - i64::from(seats)))
            .with(":limit", number(capacity.saturating_add(freed)))
            .with(":lapsed", AttributeValue::L(remembered));
        let write = if tokens.is_empty() { write } else { write.name("#tokens", "generations") };
        let numbered = lapsed.iter().enumerate();
        numbered.fold(write, |write, (n, seat)| write.name(format!("#lapsed{n}"), seat.as_str()))
    }

    /// A write of the claimed lobby, with what [`enterable`] compares.
    fn claiming(&self, claim: &SeatClaim, now: Timestamp) -> Write {
        let write = self.on_lobby(&claim.lobby_id).name("#seat", claim.seats.first().as_str());
        let members = claim.seats.others().iter().enumerate();
        let write = members
            .fold(write, |write, (n, seat)| write.name(format!("#member{n}"), seat.as_str()))
            .with(":until", number(claim.until))
            .with(":start_limit", number(now.before(STARTING_MAX)))
            .with(":now", number(now));
        let Access::Find(pool, tags) = &claim.access else { return write };
        let numbered = tags.iter().enumerate();
        numbered.fold(write.with(":pool", text(pool.to_string())), |write, (n, tag)| {
            write.with(format!(":tag{n}"), AttributeValue::B(Blob::new(tag.bytes())))
        })
    }
}

/// Leaving brings the lobby back into sight, unless it is closed or private.
pub(super) fn leave(
    write: Write,
    seat: &SeatId,
    is_reserved: bool,
    seen: Option<&Lobby>,
    now: Timestamp,
) -> Write {
    leave_together(write, (seat, &[]), is_reserved, seen, now)
}

/// Leaves `seat` and `others`, which have had no second token.
fn leave_together(
    write: Write,
    (seat, others): (&SeatId, &[&SeatId]),
    is_reserved: bool,
    seen: Option<&Lobby>,
    now: Timestamp,
) -> Write {
    let is_hidden = seen.is_some_and(|lobby| lobby.joinable_from.is_none());
    let held = if is_reserved { "#reserved.#seat" } else { "#connected.#seat" };
    let (show, sight) = if is_hidden {
        ("", "attribute_not_exists(#joinable_from)")
    } else {
        (", #joinable_from = #created_at", "attribute_exists(#joinable_from)")
    };
    let (write, tokens) = as_seen(write, seen, seat);
    let has_tokens = seen.is_some_and(|lobby| lobby.generations_of(seat).is_some());
    let gone = if has_tokens { ", #generations.#seat" } else { "" };
    let members = 0..others.len();
    let all_gone: String = members.clone().map(|n| format!(", #reserved.#member{n}")).collect();
    let all_held: String = members.map(|n| format!(" AND attribute_exists(#reserved.#member{n})")).collect();
    let (fewer, count) = match others.len() {
        0 => (":one", None),
        more => (":count", Some(number(more + 1))),
    };
    let numbered = others.iter().enumerate();
    numbered
        .fold(write, |write, (n, seat)| write.name(format!("#member{n}"), seat.as_str()))
        .change(format!(
            "SET #taken = #taken - {fewer}, #vacated_at = :now{show} REMOVE {held}{gone}{all_gone}"
        ))
        .when(format!("{ALIVE} AND attribute_exists({held}){all_held} AND {sight} AND {tokens}"))
        .with(":count", count)
        .with(":now", number(now))
        .with(":start_limit", number(now.before(STARTING_MAX)))
}

/// The assignments for the other seats of a party.
fn others(seats: &Seats) -> String {
    (0..seats.others().len()).map(|n| format!(", #reserved.#member{n} = :until")).collect()
}

/// The condition that none of the other seats of a party is held.
fn others_are_free(seats: &Seats) -> String {
    let is_free = |n| {
        format!(
            " AND attribute_not_exists(#reserved.#member{n}) AND attribute_not_exists(#connected.#member{n})"
        )
    };
    (0..seats.others().len()).map(is_free).collect()
}

/// `write` of a seat, with the condition that its tokens are as `seen`.
pub(super) fn as_seen(write: Write, seen: Option<&Lobby>, seat: &SeatId) -> (Write, &'static str) {
    let write = write.name("#seat", seat.as_str());
    match seen.and_then(|lobby| lobby.generations_of(seat)) {
        Some(tokens) => (write.with(":seen", text(tokens.to_string())), "#generations.#seat = :seen"),
        None => (write, "attribute_not_exists(#generations.#seat)"),
    }
}

fn enterable(access: &Access) -> String {
    match access {
        Access::Find(_, tags) => {
            let tags = (0..tags.iter().len()).map(|n| format!(" AND contains(#tag_digests, :tag{n})"));
            format!("{ENTERABLE}{FINDABLE}{}", tags.collect::<String>())
        }
        Access::Direct => ENTERABLE.to_owned(),
    }
}

/// The condition that no seat was given up since `lobby` was read: equal counts may be different seats.
pub(super) const fn unvacated_since(lobby: &Lobby) -> &'static str {
    match lobby.vacated_at {
        Some(_) => "#vacated_at = :vacated_at",
        None => "attribute_not_exists(#vacated_at)",
    }
}
