//! The agent's decisions: when it calls, after which response it does what, which lobbies have ended.

use std::{collections::BTreeSet, time::Duration};

/// The least lease that it takes by default: one that few lost heartbeats do not end.
const LEASE_MIN: Duration = Duration::from_secs(30);
/// Heartbeats per lease where no lobby is waited for.
const HEARTBEATS_PER_LEASE: u32 = 3;
/// Leases without an accepted heartbeat after which the agent ends: its lobbies are gone by then.
const LEASES_WITHOUT_HEARTBEAT: u32 = 3;
/// The longest pause between attempts, beside what the service asks for.
const PAUSE_MAX: Duration = Duration::from_secs(8);
/// The bound of the first pause, which doubles up to the last.
const PAUSE_MIN: Duration = Duration::from_millis(500);
/// How long a heartbeat may lag behind the creation of a lobby.
pub(super) const LAG: Duration = Duration::from_secs(2);

/// The times of a registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lease {
    /// Between two heartbeats while a new lobby may wait.
    every: Duration,
    /// For how long Muster counts the server as alive.
    pub lasts: Duration,
}

impl Lease {
    /// The times that are asked for, or those that fit.
    pub fn of(every_secs: Option<u32>, lease_secs: Option<u32>, is_waited_for: bool) -> Self {
        let every_secs = every_secs.unwrap_or(if is_waited_for { 2 } else { 30 });
        let every = Duration::from_secs(every_secs.into());
        let lasts = lease_secs.map(|secs| Duration::from_secs(secs.into()));
        let lasts = lasts.unwrap_or_else(|| LEASE_MIN.max(every * HEARTBEATS_PER_LEASE));
        Self { every: every.min(lasts / HEARTBEATS_PER_LEASE), lasts }
    }

    /// The time to the next heartbeat.
    pub fn interval(self, may_get_lobbies: bool) -> Duration {
        if may_get_lobbies { self.every } else { self.lasts / HEARTBEATS_PER_LEASE }
    }

    /// The time since the last accepted call after which the agent gives up.
    pub fn given_up_after(self) -> Duration {
        self.lasts * LEASES_WITHOUT_HEARTBEAT
    }

    /// How long an attempt may go without a response, so that a lost one does not cost the lease.
    pub fn attempt(self) -> Duration {
        self.lasts / 2
    }
}

/// The pause after so many failures in a row: what the service asks for, and a random part of a bound. `draw`
/// is from 0 to 1.
pub(super) fn pause(failures: u32, retry_after: Duration, draw: f64) -> Duration {
    let bound = PAUSE_MIN.saturating_mul(1 << failures.min(8)).min(PAUSE_MAX);
    retry_after + bound.mul_f64(draw)
}

/// Whether the same request may succeed later. Status 0 is no response.
pub(super) const fn is_transient(status: u16) -> bool {
    matches!(status, 0 | 408 | 429 | 500..)
}

/// A call by which a registration is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    /// `is_first`: no earlier one was accepted.
    Register {
        is_first: bool,
    },
    Heartbeat,
    Deregister,
}

/// What to do after a refused call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// The same again, while the lease lets it.
    Retry,
    Register,
    /// The server has drained.
    Gone,
    /// The refusal stays.
    Exit,
}

/// What to do after `call` was refused with `status` and `code`. `is_final`: the server is deregistered, or
/// Muster had it started, so that it cannot register again once it is unknown.
pub(super) fn after(call: Call, is_final: bool, status: u16, code: &str) -> Then {
    match (call, code) {
        _ if is_transient(status) => Then::Retry,
        (Call::Deregister, "MATCHMAKER_SERVER_NOT_FOUND") => Then::Gone,
        (_, "MATCHMAKER_SERVER_NOT_FOUND") if is_final => Then::Gone,
        (Call::Heartbeat, "MATCHMAKER_SERVER_NOT_FOUND") => Then::Register,
        (Call::Register { is_first: true }, _) | (_, "MATCHMAKER_LOBBY_STATE_CONFLICT") => Then::Exit,
        // Such as a token that is being replaced: running matches outlast that.
        _ => Then::Retry,
    }
}

/// A lobby that the agent knows, when a heartbeat comes.
pub(super) struct Known<'a> {
    pub lobby_id: &'a str,
    /// The time from when the agent learned of it to the heartbeat's beginning.
    pub age: Duration,
    pub has_players: bool,
}

/// The lobbies that have ended: a complete list lacks them. A young one with players may only be missing;
/// without players nothing is lost by a mistake.
pub(super) fn ended<'a>(
    known: impl Iterator<Item = Known<'a>>,
    listed: &BTreeSet<String>,
) -> BTreeSet<String> {
    let has_ended =
        |lobby: &Known<'_>| !(listed.contains(lobby.lobby_id) || lobby.has_players && lobby.age <= LAG);
    known.filter(has_ended).map(|lobby| lobby.lobby_id.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// The rules of every client of Muster.
    fn rules() -> Value {
        serde_json::from_str(include_str!("../../../clients/rules.json")).unwrap()
    }

    fn refusal(case: &Value) -> (u16, String) {
        let status = |case: &Value| u16::try_from(case["status"].as_u64().unwrap_or(200)).unwrap();
        (status(case), case["code"].as_str().unwrap_or_default().to_owned())
    }

    #[test]
    fn responses_are_retried_as_the_rules_say() {
        let rules = rules();
        let cases = rules["responses"].as_array().unwrap();
        // A body that is cut off is no response; a deadline is the caller's.
        let cases = cases
            .iter()
            .filter(|case| case["response"]["status"] != 200 && case["response"]["retry_after"] != "3600");
        let mut count = 0;
        for case in cases {
            let response = &case["response"];
            let status = u16::try_from(response["status"].as_u64().unwrap_or(0)).unwrap();
            assert_eq!(is_transient(status), case["is_retried"], "{}", case["name"]);
            if let Some([least, most]) = case["wait"].as_array().map(Vec::as_slice) {
                let after = response["retry_after"].as_str().and_then(|secs| secs.parse().ok()).unwrap_or(0);
                let wait =
                    |draw| u64::try_from(pause(0, Duration::from_secs(after), draw).as_millis()).unwrap();
                assert_eq!(
                    (wait(0.0), wait(1.0)),
                    (least.as_u64().unwrap(), most.as_u64().unwrap()),
                    "{}",
                    case["name"]
                );
            }
            count += 1;
        }
        assert!(count > 20, "only {count} cases");
        let bounds = rules["backoff"]["bounds"].as_array().unwrap();
        let waits: Vec<_> = (0..)
            .map(|failures| pause(failures, Duration::ZERO, 1.0).as_millis())
            .take(bounds.len())
            .collect();
        let bounds: Vec<_> = bounds.iter().map(|bound| u128::from(bound.as_u64().unwrap())).collect();
        assert_eq!(waits, bounds);
        assert_eq!(pause(u32::MAX, Duration::ZERO, 1.0), PAUSE_MAX);
    }

    #[test]
    fn heartbeats_follow_the_rules() {
        let rules = rules();
        for case in rules["heartbeats"]["lease"].as_array().unwrap() {
            let every = u32::try_from(case["every_seconds"].as_u64().unwrap()).unwrap();
            let lease = Lease::of(Some(every), None, true);
            assert_eq!(
                (lease.every.as_secs(), lease.lasts.as_secs()),
                (every.into(), case["lease_seconds"].as_u64().unwrap())
            );
        }
        for case in rules["heartbeats"]["responses"].as_array().unwrap() {
            let (status, code) = refusal(&case["response"]);
            if status == 200 {
                continue;
            }
            let is_leaving = case["is_draining"] == true;
            let mut then = after(Call::Heartbeat, is_leaving, status, &code);
            if let Some(registration) = case.get("registration") {
                assert_eq!(then, Then::Register);
                let (status, code) = refusal(registration);
                then = after(Call::Register { is_first: false }, is_leaving, status, &code);
            }
            let wanted = match case["then"].as_str().unwrap() {
                "register" => Then::Register,
                "exit" => Then::Exit,
                "stop" => Then::Gone,
                // The agent ends only after three leases without an accepted heartbeat.
                "error" => Then::Retry,
                other => panic!("{other}"),
            };
            assert_eq!(then, wanted, "{}", case["name"]);
        }
    }

    #[test]
    fn only_the_first_registration_gives_up_on_a_refusal() {
        let refused = |is_first| after(Call::Register { is_first }, false, 401, "TOKEN_REVOKED");
        assert_eq!((refused(true), refused(false)), (Then::Exit, Then::Retry));
        assert_eq!(after(Call::Register { is_first: true }, false, 503, "API_UNAVAILABLE"), Then::Retry);
        assert_eq!(after(Call::Deregister, false, 400, "MATCHMAKER_SERVER_NOT_FOUND"), Then::Gone);
        // One that Muster had started and gave up.
        for call in [Call::Register { is_first: true }, Call::Heartbeat] {
            assert_eq!(after(call, true, 400, "MATCHMAKER_SERVER_NOT_FOUND"), Then::Gone);
        }
    }

    #[test]
    fn a_lease_outlasts_lost_heartbeats() {
        let lease = Lease::of(None, None, true);
        assert_eq!(lease.interval(true), Duration::from_secs(2));
        assert_eq!(lease.interval(false), Duration::from_secs(10));
        assert_eq!(lease.given_up_after(), Duration::from_secs(90));
        assert_eq!(Lease::of(None, None, false).interval(true), Duration::from_secs(30));
        // A short lease has heartbeats to match.
        assert!(Lease::of(None, Some(3), true).interval(true) <= Duration::from_secs(1));
    }

    #[test]
    fn a_lobby_that_is_not_listed_has_ended_unless_it_is_young_and_has_players() {
        let known = [
            ("listed", Duration::MAX, false),
            ("old", LAG + Duration::from_millis(1), true),
            ("young", LAG, true),
            ("empty", Duration::ZERO, false),
        ];
        let known =
            known.into_iter().map(|(lobby_id, age, has_players)| Known { lobby_id, age, has_players });
        let ended = ended(known, &BTreeSet::from(["listed".to_owned()]));
        assert_eq!(ended, BTreeSet::from(["old".to_owned(), "empty".to_owned()]));
    }
}
