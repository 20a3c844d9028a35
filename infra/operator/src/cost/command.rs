//! `muster cost`.

use clap::Args;
use serde_json::{Map, Value, json};
use shared::base::ambient::{Ambient, time};

use super::{
    month::{Bill, Counted, HEAD, HEARTBEAT_SECS, Stage, Use, money},
    reading::{self, SoFar},
};
use crate::{
    report::{Report, Reported},
    target::Target,
};

/// The month to estimate. With one of these, no deployment is read.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Visits in the month: a player finds a lobby of eight, connects and leaves. Prints this month item by
    /// item.
    #[arg(long, value_name = "N")]
    visits: Option<u64>,
    /// Game servers that run twenty lobbies each, all month.
    #[arg(long, value_name = "N")]
    servers: Option<u64>,
    /// Seconds between two heartbeats of a game server, 1 to 86400.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = HEARTBEAT_SECS,
        value_parser = clap::value_parser!(u32).range(1..=86_400),
        requires = "servers"
    )]
    heartbeat: u32,
    /// The stage; both when absent, or `prod` for one month.
    #[arg(long)]
    stage: Option<Stage>,
}

/// Prints what a month costs: estimated, or of the deployment.
pub(crate) async fn run(options: Options, target: &Target) -> Reported {
    let Options { visits, servers, heartbeat, stage } = options;
    if visits.is_some() || servers.is_some() {
        let of = Use { visits: visits.unwrap_or(0), servers: servers.unwrap_or(0), heartbeat };
        return Ok(month(stage.unwrap_or(Stage::Prod), of));
    }
    if stage.is_some() || !target.is_named() {
        return Ok(table(stage));
    }
    if target.is_here() {
        let text = "AWS charges nothing for this machine; `muster cost` alone estimates a stack in AWS, and \
                    `muster cost --stack NAME` reads one";
        return Ok(Report { text: text.to_owned(), json: json!({ "month": 0.0 }) });
    }
    Ok(spent(&reading::so_far(&target.described().await?, Ambient::system().now()).await?))
}

/// The table of a stage, or of both.
fn table(stage: Option<Stage>) -> Report {
    let counted = Counted::committed();
    let stages = stage.map_or_else(|| Stage::ALL.to_vec(), |stage| vec![stage]);
    let text = stages.iter().map(|stage| {
        let table = Report::table(HEAD, counted.table(*stage), Value::Null).text;
        format!("Dollars a month in {stage}:\n{table}")
    });
    let json = stages.iter().map(|stage| (stage.to_string(), counted.json(*stage)));
    Report { text: text.collect::<Vec<_>>().join("\n\n"), json: Value::Object(json.collect::<Map<_, _>>()) }
}

fn month(stage: Stage, of: Use) -> Report {
    let bill = Counted::committed().month_of(stage, of);
    let Use { visits, servers, heartbeat } = of;
    let json = json!({ "stage": stage, "visits": visits, "servers": servers, "heartbeat_seconds": heartbeat,
                       "items": bill.json(), "month": bill.dollars() });
    Report { text: text(&bill, &format!("A month in {stage}:")), json }
}

/// The month so far, and what a whole one costs at its pace.
pub(super) fn spent(so_far: &SoFar) -> Report {
    let SoFar { stack, since, passed, bill, server_hours, .. } = so_far;
    let since = time(*since);
    let head = format!("{stack} since {}:", since.get(..10).unwrap_or_default());
    let whole = bill.dollars() / passed.max(f64::EPSILON);
    let json = json!({ "stack": stack, "since": since, "items": bill.json(), "month": bill.dollars(),
                       "whole_month": whole, "server_hours": server_hours });
    let mut text = format!("{}\na whole month at this pace: {}", text(bill, &head), money(whole));
    if let Some(hours) = server_hours.filter(|hours| *hours > 0.0) {
        text +=
            &format!("\ngame servers on demand, not in the sum: {hours:.1} hours of those that have ended");
    }
    Report { text, json }
}

/// A bill item by item.
fn text(bill: &Bill, head: &str) -> String {
    let mut rows = bill.rows();
    let sum = if bill.is_whole() { "sum" } else { "sum of what was read" };
    rows.push([sum.to_owned(), String::new(), money(bill.dollars())]);
    format!("{head}\n{}", Report::table(["item", "units", "dollars"], rows, Value::Null).text)
}
