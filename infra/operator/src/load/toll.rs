//! What hostile requests did to the players of a load, and what they cost both sides.

use std::collections::BTreeMap;

use muster_console::prices::DATA_SENT_GB;
use serde_json::{Value, json};
use shared::base::usage::Usage;

use crate::load::{
    cost::Spent,
    hostile::Hostile,
    tally::{Call, Listed, OK, Tally},
};

const GB: f64 = 1e9;

/// What an attack did.
pub(crate) struct Toll<'a> {
    tally: &'a Tally,
    /// The usage of the hostile requests, by operation; `None` without the local stack's meter.
    spent: Option<BTreeMap<&'static str, Spent>>,
}

impl<'a> Toll<'a> {
    /// The toll of an attack, during which the local stack metered each operation.
    pub fn of(tally: &'a Tally, metered: Option<&BTreeMap<String, (u64, Usage)>>) -> Self {
        Self { tally, spent: metered.map(|metered| by_crowd(metered, tally)) }
    }

    /// The report's lines, by name.
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let Tally { attack, listed, seated_at_once, .. } = self.tally;
        let (players, seated) = (self.tally.players(), self.tally.of(Call::Find, OK));
        let of_players = |count: u64| format!("{count} of {players} ({:.1} %)", percent(count, players));
        let attempts = Hostile::attempts();
        let mut lines = vec![(
            "seated",
            format!(
                "{} at once, {} within {attempts} attempts",
                of_players(*seated_at_once),
                of_players(seated)
            ),
        )];
        lines.extend(listed.map(|Listed { lobbies, unused }| {
            ("listed", format!("{lobbies} lobbies at the end, {unused} of them without a player so far"))
        }));
        let (sent, not_sent) = (attack.sent(), attack.not_sent);
        lines.push((
            "attack",
            format!(
                "{sent} requests from {} IP addresses took {} seats, {not_sent} were not sent",
                attack.sources.len(),
                attack.seats()
            ),
        ));
        for (kind, results) in &attack.results {
            let results = results.iter().map(|(result, count)| format!("{count} x {result}"));
            lines.push((kind.title(), results.collect::<Vec<_>>().join(", ")));
        }
        lines.push(("its cost", self.cost()));
        lines
    }

    /// The report for programs.
    pub fn json(&self) -> Value {
        let Tally { attack, listed, seated_at_once, retries, .. } = self.tally;
        let (players, seated) = (self.tally.players(), self.tally.of(Call::Find, OK));
        let results: BTreeMap<_, _> =
            attack.results.iter().map(|(kind, results)| (kind.name(), results)).collect();
        let listed = listed.map(|Listed { lobbies, unused }| json!({ "lobbies": lobbies, "unused": unused }));
        let spent = self.spent();
        json!({
            "players": players, "seated_at_once": seated_at_once, "seated": seated, "retries": retries,
            "seated_at_once_percent": percent(*seated_at_once, players),
            "seated_percent": percent(seated, players),
            "listed": listed, "requests": attack.sent(), "not_sent": attack.not_sent,
            "addresses": attack.sources.len(), "seats": attack.seats(), "results": results,
            "spent": spent, "spent_by_operation": self.spent, "dollars": spent.map(Spent::dollars),
            "dollars_a_million": spent.and_then(a_million), "bytes": attack.bytes,
            "data_dollars": self.data_dollars(),
        })
    }

    fn spent(&self) -> Option<Spent> {
        Some(self.spent.as_ref()?.values().copied().sum())
    }

    fn data_dollars(&self) -> f64 {
        DATA_SENT_GB.of(self.tally.attack.bytes as f64 / GB)
    }

    /// What it costs the owner, in words.
    fn cost(&self) -> String {
        let Some(spent) = self.spent() else { return "not metered".to_owned() };
        let Spent { calls, read_units, write_units, .. } = spent;
        let million = a_million(spent)
            .map_or_else(String::new, |dollars| format!(", ${dollars:.2} a million requests"));
        format!(
            "${:.4}{million}: {calls:.0} calls, {read_units:.0} read and {write_units:.0} write units (metered; in AWS, nothing here); besides, ${:.4} for the data sent",
            spent.dollars(),
            self.data_dollars()
        )
    }
}

/// What the operations took that hostile clients use, less what the players' own requests took, as these were
/// explained or metered apart.
fn by_crowd(metered: &BTreeMap<String, (u64, Usage)>, tally: &Tally) -> BTreeMap<&'static str, Spent> {
    let of = |operation: Call| {
        let (requests, usage) = metered.get(operation.name()).copied().unwrap_or_default();
        let of_players = tally.spent.get(&operation).copied().unwrap_or_default();
        (operation.name(), Spent::of(requests, usage) - of_players)
    };
    [Call::Find].into_iter().chain(Call::HOSTILE).map(of).collect()
}

/// The dollars of a million requests; `None` without any.
fn a_million(spent: Spent) -> Option<f64> {
    (spent.requests > 0.0).then(|| spent.dollars() / spent.requests * 1e6)
}

fn percent(count: u64, all: u64) -> f64 {
    // To a tenth.
    (count as f64 / all.max(1) as f64 * 1_000.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{
        sources::{Source, Sources},
        tally::Kind,
    };

    fn usage(calls: u64, read_units: f64, write_units: f64) -> Usage {
        Usage { calls, read_units, write_units }
    }

    /// Four players of whom one was refused at first, one in the end; eight hostile requests.
    fn tally() -> Tally {
        let mut tally = Tally { seated_at_once: 2, retries: 3, ..Tally::default() };
        for result in [OK, OK, OK, "400 X", "400 X", "400 X", "400 X"] {
            tally.count(Call::Find, result, Spent::of(1, usage(2, 1.0, 3.0)));
        }
        tally.count(Call::List, OK, Spent::of(1, usage(1, 5.0, 0.0)));
        let sources = Sources::new(2, &shared::base::ambient::Ambient::system());
        let source = |number: u32| -> Source { sources.hostile(number % 2) };
        for (number, kind) in (0..).zip([Kind::Find, Kind::Find, Kind::Create, Kind::List]) {
            tally.attack.count(kind, source(number), OK, 1_000);
            tally.attack.count(kind, source(number), "400 X", 0);
        }
        tally
    }

    #[test]
    fn the_cost_of_an_attack_is_what_was_metered_without_the_players_own() {
        let metered = [
            ("find-lobby", (11, usage(20, 10.0, 30.0))),
            ("create-lobby", (2, usage(4, 1.0, 5.0))),
            ("list-lobbies", (3, usage(2, 9.0, 0.0))),
            ("heartbeat-server", (99, usage(99, 99.0, 99.0))),
        ];
        let metered = metered.map(|(name, metered)| (name.to_owned(), metered)).into();
        let tally = tally();
        let toll = Toll::of(&tally, Some(&metered));
        let spent = toll.spent().unwrap();
        assert_eq!(spent, Spent { requests: 8.0, calls: 11.0, read_units: 8.0, write_units: 14.0 });
        let json = toll.json();
        assert_eq!(json["dollars"], spent.dollars());
        assert!((json["dollars_a_million"].as_f64().unwrap() - spent.dollars() * 125_000.0).abs() < 1e-9);
        assert!((json["data_dollars"].as_f64().unwrap() - 0.09 * 4_000.0 / 1e9).abs() < 1e-15);
        assert_eq!(json["spent_by_operation"]["join-lobby"]["requests"], 0.0);
        assert_eq!(Toll::of(&tally, None).json()["dollars"], Value::Null);
    }

    #[test]
    fn players_are_counted_once_however_often_they_find() {
        let tally = Tally { listed: Some(Listed { lobbies: 9, unused: 2 }), ..tally() };
        let toll = Toll::of(&tally, None);
        let json = toll.json();
        assert_eq!([&json["players"], &json["seated_at_once"], &json["seated"]], [4, 2, 3]);
        assert_eq!((&json["seated_at_once_percent"], &json["seated_percent"]), (&json!(50.0), &json!(75.0)));
        assert_eq!([&json["requests"], &json["seats"], &json["addresses"]], [8, 3, 2]);
        let lines: Vec<_> = toll.lines().into_iter().map(|(name, text)| format!("{name}: {text}")).collect();
        assert_eq!(
            lines,
            [
                "seated: 2 of 4 (50.0 %) at once, 3 of 4 (75.0 %) within 3 attempts",
                "listed: 9 lobbies at the end, 2 of them without a player so far",
                "attack: 8 requests from 2 IP addresses took 3 seats, 0 were not sent",
                "hostile finds: 2 x 200, 2 x 400 X",
                "hostile creates: 1 x 200, 1 x 400 X",
                "hostile lists: 1 x 200, 1 x 400 X",
                "its cost: not metered",
            ]
        );
        assert_eq!(percent(0, 0), 0.0);
    }
}
