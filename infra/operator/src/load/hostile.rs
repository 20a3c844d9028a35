//! The hostile share of a load: clients that know the interface and a public token, and never connect.
//!
//! Muster judges clients by their IP address (decision 65), so players and crowd need addresses of their own.
//! Only the local stack sees these: every address of 127.0.0.0/8 is this machine's.

use std::time::Duration;

use clap::{Args, value_parser};
use serde_json::{Value, json};
use shared::models::{
    namespace::{MAX_PLAYERS_PER_CLIENT_DEFAULT, Namespace},
    version::{Action, GameModeConfig},
};

use crate::{error::CommandError, load::tally::Kind};

/// The largest share: nineteen hostile requests for each find.
const SHARE_MAX: f64 = 0.95;
/// Times that a player of a hostile load finds, until one gets a seat.
const ATTEMPTS: u32 = 3;
/// The least and the longest time after which a refused player finds again.
const RETRY_AFTER: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(3)];
/// Minimum limit on concurrent hostile requests; otherwise the limit is those of one second.
const UNDER_WAY_MIN: u32 = 100;
/// Spreads requests over the addresses so that each kind comes from all of them: the fractional part of the
/// golden ratio.
const SPREAD: f64 = 0.618_033_988_749_895;

/// How hostile a load is.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Share {
    /// The share of hostile requests among finds and hostile requests, above 0 and at most 0.95: clients that
    /// take seats and never connect. Needs --local.
    #[arg(long, value_name = "SHARE", value_parser = share, conflicts_with = "api_url")]
    pub hostile: Option<f64>,
    /// IP addresses that the hostile requests come from, 1 to 2000.
    #[arg(long, default_value_t = 100, requires = "hostile", value_parser = value_parser!(u32).range(1..=2_000))]
    pub addresses: u32,
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| *share > 0.0 && *share <= SHARE_MAX);
    share.ok_or_else(|| format!("must be a number above 0 and at most {SHARE_MAX}"))
}

impl Share {
    /// Refuses hostile requests to a stack in AWS.
    ///
    /// # Errors
    /// [`CommandError::Refused`].
    pub fn check_target(self, is_local: bool) -> Result<(), CommandError> {
        if is_local || self.hostile.is_none() {
            return Ok(());
        }
        Err(CommandError::Refused(
            "--hostile needs --local: to a stack in AWS all requests of this machine come from one IP address; load your game in the local stack instead, with `muster-local`, `muster game export GAME >game.json` and `muster game import game.json --local`".to_owned(),
        ))
    }
}

/// The hostile requests of a plan.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Hostile {
    /// Of all finds and hostile requests.
    pub share: f64,
    pub addresses: u32,
    /// A second.
    pub rate: f64,
    pub requests: u32,
    /// In the order in which they come, in turn.
    pub kinds: Vec<Kind>,
    /// The kinds that the mode does not allow.
    pub left_out: Vec<Kind>,
}

impl Hostile {
    /// The hostile requests beside `rate` players a second for `seconds`, if there are any.
    pub fn of(share: Share, rate: u32, seconds: u32, mode: &GameModeConfig) -> Option<Self> {
        let Share { hostile, addresses } = share;
        let share = hostile?;
        let rate = f64::from(rate) * share / (1.0 - share);
        let (kinds, left_out) = Kind::ALL.into_iter().partition(|kind| is_allowed(*kind, mode));
        // A float to an integer saturates.
        let requests = (rate * f64::from(seconds)).round().max(1.0) as u32;
        Some(Self { share, addresses, rate, requests, kinds, left_out })
    }

    /// Times that a player finds at most, until one gets a seat.
    pub const fn attempts() -> u32 {
        ATTEMPTS
    }

    /// How long player `number` waits before its attempt `attempt`, the second or a later one.
    pub fn retries_after(number: u32, attempt: u32) -> Duration {
        let [least, most] = RETRY_AFTER;
        least + (most - least).mul_f64((f64::from(number) * SPREAD + f64::from(attempt) / 3.0).fract())
    }

    /// When request `number` is due, after the beginning.
    pub fn due(&self, number: u32) -> Duration {
        Duration::from_secs_f64(f64::from(number) / self.rate)
    }

    /// The kind of request `number`; `None` without any.
    pub fn kind(&self, number: u32) -> Option<Kind> {
        self.kinds.get(number as usize % self.kinds.len().max(1)).copied()
    }

    /// The address of request `number`, counted from 0.
    pub fn address(&self, number: u32) -> u32 {
        ((f64::from(number) * SPREAD).fract() * f64::from(self.addresses)) as u32
    }

    /// Limit on concurrent requests. Each needs a connection, and so an open file.
    pub fn under_way_max(&self) -> usize {
        self.rate.ceil().max(f64::from(UNDER_WAY_MIN)) as usize
    }

    /// Lobbies at a time, with those that players need: each address has one for each of its seats, until the
    /// namespace is full.
    pub fn lobbies(&self, of_players: u32, namespace: &Namespace) -> u32 {
        let seats = namespace.seats_per_client().unwrap_or(MAX_PLAYERS_PER_CLIENT_DEFAULT);
        self.addresses.saturating_mul(seats).saturating_add(of_players).min(namespace.lobby_count_max)
    }

    /// In words.
    pub fn text(&self) -> String {
        let Self { share, addresses, rate, requests, kinds, left_out } = self;
        let names = |kinds: &[Kind]| kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ");
        let left_out = match left_out.as_slice() {
            [] => String::new(),
            left_out => format!("; the mode allows no {}", names(left_out)),
        };
        format!(
            "hostile share {share}: {rate:.1} requests a second, {requests} in all, from {addresses} IP addresses: {}, in turn{left_out}",
            names(kinds),
        )
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let Self { share, addresses, rate, requests, kinds, left_out } = self;
        let names = |kinds: &[Kind]| kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>();
        json!({
            "share": share, "addresses": addresses, "rate": rate, "requests": requests,
            "kinds": names(kinds), "left_out": names(left_out), "attempts": ATTEMPTS,
        })
    }
}

/// Whether any client may send requests of a kind, so that they are more than a refusal by a rule.
fn is_allowed(kind: Kind, mode: &GameModeConfig) -> bool {
    // A backend that verifies players would be asked about strangers.
    let is_open = |action: &Action| action.enabled && action.verification.is_none();
    match kind {
        Kind::Tag => mode.taggable,
        Kind::Create => is_open(&mode.actions.create),
        Kind::Join => is_open(&mode.actions.join),
        Kind::Find | Kind::List | Kind::WrongBody | Kind::ForgedToken => true,
    }
}

/// Refuses a namespace that does not limit seats per IP address: it knows nothing of its clients.
///
/// # Errors
/// [`CommandError::Refused`].
pub(crate) fn check_limit(name: &str, namespace: &Namespace) -> Result<(), CommandError> {
    if namespace.seats_per_client().is_some() {
        return Ok(());
    }
    Err(CommandError::Refused(format!(
        "{name} has no limit of seats per IP address, and so knows nothing of who attacks it; `muster mm-config {name} --max-players-per-client {MAX_PLAYERS_PER_CLIENT_DEFAULT}` sets one"
    )))
}
