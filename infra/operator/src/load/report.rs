//! What a load was answered, and what it cost.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Value, json};
use shared::base::usage::Usage;

use crate::{
    load::{
        cost::{self, Spent},
        plan::Plan,
        tally::{Call, OK, Tally, percentiles},
        toll::Toll,
    },
    report::Report,
};

/// A load that is over.
pub(crate) struct Outcome {
    pub plan: Plan,
    pub tally: Tally,
    /// The usage of each operation in the local stack during the load, by name; `None` in AWS.
    pub metered: Option<BTreeMap<String, (u64, Usage)>>,
    pub was_interrupted: bool,
    /// The remains of the load: game servers that could not deregister, tokens that could not be revoked.
    pub left: Vec<String>,
}

impl Outcome {
    /// The usage of the load: as the local stack metered it, or, in AWS, as finds explain theirs and other
    /// requests were counted.
    fn spent(&self) -> BTreeMap<&str, Spent> {
        match &self.metered {
            Some(metered) => {
                let of = |(requests, usage): &(u64, Usage)| Spent::of(*requests, *usage);
                metered.iter().map(|(name, metered)| (name.as_str(), of(metered))).collect()
            }
            None => {
                let more = |operation: &Call| match operation {
                    Call::Disconnect => cost::END.times(self.tally.created as f64),
                    _ => Spent::default(),
                };
                let spent = self.tally.spent.iter();
                spent.map(|(operation, spent)| (operation.name(), *spent + more(operation))).collect()
            }
        }
    }

    /// The report in both forms.
    pub fn report(self) -> Report {
        let Tally { results, not_sent, not_listed, elsewhere, created, races_lost, problem, .. } =
            &self.tally;
        let sent = self.tally.players();
        let finds = percentiles(self.tally.finds.clone());
        let connects = percentiles(self.tally.connects.clone());
        let spent: Spent = self.spent().into_values().sum();
        let estimate = self.plan.estimate().dollars();
        let of = |operation| self.tally.of(operation, OK);
        let (connected, left) = (of(Call::Connect), of(Call::Disconnect));
        let mut lines = vec![
            (
                "players",
                format!("{} of {} came, {not_sent} finds not sent", sent + not_sent, self.plan.sessions()),
            ),
            ("finds", times(finds)),
            ("connected", times(connects)),
            (
                "lobbies",
                format!("{created} created; finds lost {races_lost} races for a seat, and took another"),
            ),
        ];
        for (operation, results) in results {
            let results = results.iter().map(|(result, count)| format!("{count} x {result}"));
            lines.push((operation.name(), results.collect::<Vec<_>>().join(", ")));
        }
        lines.push(("cost", self.cost(spent, estimate)));
        let is_hostile = self.plan.hostile.is_some();
        let toll = is_hostile.then(|| Toll::of(&self.tally, self.metered.as_ref()));
        lines.extend(toll.iter().flat_map(Toll::lines));
        if *not_listed + *elsewhere > 0 {
            let text = format!("{not_listed} in no heartbeat's list, {elsewhere} of other game servers");
            lines.push(("other lobbies", text));
        }
        lines.extend(self.left.iter().map(|left| ("left behind", left.clone())));
        lines.extend(problem.clone().map(|problem| ("first problem", problem)));
        let mut json = json!({
            "plan": self.plan.json(), "interrupted": self.was_interrupted,
            "players": { "came": sent + not_sent, "not_sent": not_sent, "found": of(Call::Find),
                         "connected": connected, "left": left, "not_listed": not_listed, "elsewhere": elsewhere },
            "results": results.iter().map(|(operation, results)| (operation.name(), results)).collect::<BTreeMap<_, _>>(),
            "find_ms": millis(finds), "connected_ms": millis(connects),
            "lobbies_created": created, "races_lost": races_lost, "problem": problem,
            "metered": self.metered.is_some(), "spent": spent, "spent_by_operation": self.spent(),
            "dollars": spent.dollars(), "left_behind": self.left,
        });
        if let (Some(toll), Some(fields)) = (toll, json.as_object_mut()) {
            fields.insert("hostile".to_owned(), toll.json());
        }
        Report::list(lines, json)
    }

    fn cost(&self, spent: Spent, estimate: f64) -> String {
        let Spent { requests, read_units, write_units, .. } = spent;
        let how = if self.metered.is_some() { "metered; in AWS, nothing here" } else { "counted, at most" };
        format!(
            "${:.4} for {requests:.0} requests, {read_units:.0} read and {write_units:.0} write units ({how}); ${estimate:.4} by the estimate",
            spent.dollars()
        )
    }
}

fn in_millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e4).round() / 10.0
}

fn times(times: Option<[Duration; 4]>) -> String {
    let Some(times) = times else { return "none".to_owned() };
    let [p50, p90, p99, max] = times.map(in_millis);
    format!("p50 {p50} ms, p90 {p90} ms, p99 {p99} ms, max {max} ms")
}

fn millis(times: Option<[Duration; 4]>) -> Value {
    let Some(times) = times else { return Value::Null };
    let [p50, p90, p99, max] = times.map(in_millis);
    json!({ "p50": p50, "p90": p90, "p99": p99, "max": max })
}
