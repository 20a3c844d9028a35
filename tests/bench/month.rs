//! What a month's bill is made of: a visit, a heartbeat, and what each stage consists of.
//!
//! Visits are played in virtual time, in one match after the other: eight players, each from an address of
//! its own, find a seat and connect, one a second. Later they leave, one a second, and the last one's leave
//! ends the lobby.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io,
    net::Ipv4Addr,
    sync::{Arc, Mutex},
    time::Duration,
};

use connect_player::ConnectPlayer;
use disconnect_player::DisconnectPlayer;
use find_lobby::FindLobby;
use harness::{
    TestGame,
    instance::{REQUEST_ID, event_from, patient_client},
    new_game,
    prices::Cost,
    templates::template,
};
use heartbeat_server::HeartbeatServer;
use muster::cost::month::{Counted, HEAD, Parts, Stage, Work, money};
use muster_local::{route::Route, stack::TEMPLATE, template::Template};
use serde_json::{Value, json};
use shared::{
    base::log,
    function::{
        config::Environment,
        instance::Instance,
        metrics::{Counter, Counts, Metric},
        operation::{Operation, answer_counted},
    },
    models::namespace::MAX_PLAYERS_PER_CLIENT_DEFAULT,
    store::{client::TableNames, meter::metered},
};
use tracing::instrument::WithSubscriber as _;

use super::Bench;

const OBSERVABILITY: &str = include_str!("../../infra/observability.yaml");
const SAM_CONFIG: &str = include_str!("../../samconfig.toml");

/// Matches before those that are counted, in which the game server gets its share of the limit of lobbies.
const EARLIER: u32 = 4;
/// Matches that are counted.
const MATCHES: u32 = 16;
/// Players of a match.
const PLAYERS: u32 = 8;
/// How long a match takes.
const MATCH: Duration = Duration::from_secs(300);
const SECOND: Duration = Duration::from_secs(1);

/// Counts what [`Counted`] says, besides the heartbeat.
pub async fn count(bench: &Bench, heartbeat: Work) -> Counted {
    let stages = Stage::ALL.map(|stage| (stage, parts(stage))).into();
    Counted { visit: visit(bench).await, heartbeat, stages }
}

/// What is logged.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A warm instance of a deployed function.
struct Function<O> {
    operation: O,
    counter: Counter,
    /// The API's line of one of its requests, without the size of the response.
    access_line: String,
}

impl<O: Operation> Function<O> {
    fn start(bench: &Bench) -> Self {
        let stack = &bench.stack;
        let parts = Instance::over(stack.store().clone(), Arc::clone(stack.stack.keys()), stack.ambient());
        let environment = Environment::of([("MUSTER_METRICS_NAMESPACE", "Muster/muster-prod")]);
        let counter = Counter::of(&environment).expect("a namespace");
        // The first line of an instance counts its cold start.
        let _cold = counter.line(O::NAME, Counts::default(), stack.clock.now());
        let routes = Template::parse(TEMPLATE).expect("the template").routes;
        let route = routes.iter().find(|route| route.code_uri == format!("functions/{}", O::NAME));
        let access_line = access_line(route.expect("a route"));
        Self { operation: O::start(&parts).expect("an operation"), counter, access_line }
    }

    /// One request, which must succeed, and what it uses.
    async fn ask(&self, bench: &Bench, token: &str, address: Ipv4Addr, body: &Value) -> (Value, Work) {
        let ambient = bench.stack.ambient();
        let event = event_from(address, &[("authorization", &format!("Bearer {token}"))], body, &[]);
        let lines = Lines::default();
        let log = lines.clone();
        let answered = answer_counted(&self.operation, event, &ambient, None)
            .with_subscriber(log::json_lines(move || log.clone()));
        let ((response, counts), usage) = metered(answered).await;
        let body = String::from_utf8_lossy(response.body()).into_owned();
        assert_eq!(response.status(), 200, "{}: {body}", O::NAME);
        let mut log = String::from_utf8(lines.0.lock().expect("no panic").clone()).expect("text");
        log.extend(self.counter.line(O::NAME, counts.clone(), ambient.now()));
        log.push_str(&self.access_line.replace("$context.responseLength", &body.len().to_string()));
        let counted = Metric::ALL.iter().filter(|metric| counts.get(**metric) > 0);
        let counted = counted.map(|metric| (format!("{}/{}", O::NAME, metric.name()), 1.0));
        let cost = Cost::of(usage, body.len());
        let work = Work {
            requests: BTreeMap::from([(O::NAME.to_owned(), 1.0)]),
            sent_bytes: cost.sent_bytes,
            gb_seconds: cost.gb_seconds(),
            read_units: cost.read_units,
            write_units: cost.write_units,
            log_bytes: log.replace('\n', "").len() as f64,
            metrics: counted.collect(),
            ..Work::default()
        };
        (serde_json::from_str(&body).expect("a JSON body"), work)
    }
}

/// The API's line of a request, in the template's format, without the size of the response.
fn access_line(route: &Route) -> String {
    let template = template(TEMPLATE);
    let format = &template["Resources"]["HttpApi"]["Properties"]["AccessLogSettings"]["Format"];
    let mut line = format.as_str().expect("a format").to_owned();
    for (variable, value) in [
        ("requestId", REQUEST_ID),
        ("requestTime", "25/Nov/2026:12:00:00 +0000"),
        ("routeKey", &route.key()),
        ("path", route.path.as_str()),
        ("status", "200"),
        ("responseLatency", "12"),
        ("integrationLatency", "10"),
        ("integrationErrorMessage", "-"),
        ("error.responseType", "-"),
    ] {
        line = line.replace(&format!("\"$context.{variable}\""), &format!("\"{value}\""));
    }
    assert_eq!(line.matches('$').count(), 1, "a variable of the access log is new: {line}");
    line
}

/// The work of one visit.
async fn visit(bench: &Bench) -> Work {
    let clock = &bench.stack.clock;
    let modes = json!({ "match": { "regions": ["fra"], "max_players": PLAYERS } });
    let mut new = new_game("visits", modes, 1_000);
    new.namespaces[0].max_players_per_client = MAX_PLAYERS_PER_CLIENT_DEFAULT;
    let game = bench.stack.make_game_of(new, 1_000).await;
    let find = Function::<FindLobby>::start(bench);
    let connect = Function::<ConnectPlayer>::start(bench);
    let leave = Function::<DisconnectPlayer>::start(bench);
    let share = 1.0 / f64::from(MATCHES * PLAYERS);
    let (mut sum, mut before) = (Work::default(), [0.0; 2]);
    for number in 0..EARLIER + MATCHES {
        if number == EARLIER {
            (sum, before) = (Work::default(), stored_bytes(bench).await);
        }
        let mut seats = Vec::new();
        for player in 0..PLAYERS {
            clock.advance(SECOND);
            let address = Ipv4Addr::from(0x0a00_0000 + number * PLAYERS + player);
            let (found, work) =
                find.ask(bench, &game.public, address, &json!({ "game_modes": ["match"] })).await;
            sum.add(&work, share);
            let lobby_id = found["lobby"]["lobby_id"].as_str().expect("a lobby");
            let seat = (
                game.lobby_token(&bench.stack, lobby_id),
                json!({ "player_token": found["player"]["token"] }),
            );
            sum.add(&connect.ask(bench, &seat.0, Ipv4Addr::LOCALHOST, &seat.1).await.1, share);
            seats.push(seat);
        }
        clock.advance(MATCH);
        for (lobby, player) in seats {
            clock.advance(SECOND);
            sum.add(&leave.ask(bench, &lobby, Ipv4Addr::LOCALHOST, &player).await.1, share);
        }
    }
    let created = sum.metrics.get("find-lobby/LobbyCreated");
    assert_eq!(created, Some(&(1.0 / f64::from(PLAYERS))), "each match has a lobby of its own");
    let [table_bytes, backup_bytes] = stored_bytes(bench).await;
    let left = |now: f64, before: f64| (now - before) * share;
    Work {
        // Without what sums of decimal fractions leave behind.
        gb_seconds: (sum.gb_seconds * 1e9).round() / 1e9,
        table_bytes: left(table_bytes, before[0]),
        backup_bytes: left(backup_bytes, before[1]),
        ..sum
    }
}

/// Bytes in all tables and indexes, and those in tables with point-in-time recovery.
async fn stored_bytes(bench: &Bench) -> [f64; 2] {
    let client = patient_client(bench.stack.stack.store_endpoint());
    let TableNames { catalog, tokens, lobbies, lobby_data, servers, ledger, secrets, clients } =
        bench.stack.store().tables();
    let (template, mut all, mut backed_up) = (template(TEMPLATE), 0, 0);
    for table in [catalog, tokens, lobbies, lobby_data, servers, ledger, secrets, clients] {
        let description = client.describe_table().table_name(table).send().await.expect("a table").table;
        let description = description.expect("a description");
        let bytes = description.table_size_bytes().expect("a size");
        let indexes = description.global_secondary_indexes().iter();
        all += bytes + indexes.map(|index| index.index_size_bytes().expect("a size")).sum::<i64>();
        let recovery = &template["Resources"][table]["Properties"]["PointInTimeRecoverySpecification"];
        if recovery["PointInTimeRecoveryEnabled"] == true {
            backed_up += bytes;
        }
    }
    [all as f64, backed_up as f64]
}

/// The work of one heartbeat of the game server `one`.
pub async fn heartbeat(bench: &Bench, game: &TestGame) -> Work {
    let function = Function::<HeartbeatServer>::start(bench);
    let body = json!({ "server_id": "one" });
    // The first reads settings, too.
    let _cold = function.ask(bench, &game.server, Ipv4Addr::LOCALHOST, &body).await;
    bench.stack.clock.advance(SECOND / 10);
    function.ask(bench, &game.server, Ipv4Addr::LOCALHOST, &body).await.1
}

/// What a stage consists of, by the templates and by its settings of SAM.
fn parts(stage: Stage) -> Parts {
    let settings = SAM_CONFIG.split(&format!("[{stage}.deploy.parameters]")).nth(1);
    let days = settings.and_then(|settings| settings.split("LogRetentionDays=").nth(1));
    let days = days.and_then(|days| days.split('"').next()?.parse().ok());
    let mut parts = Parts { log_days: days.expect("days that logs are kept"), ..Parts::default() };
    add_parts(&mut parts, TEMPLATE, stage);
    parts
}

fn add_parts(parts: &mut Parts, text: &str, stage: Stage) {
    for resource in template(text)["Resources"].as_object().expect("resources").values() {
        let is_there = match resource["Condition"].as_str() {
            None => true,
            Some("IsProduction") => stage == Stage::Prod,
            // None unless it is wanted, and none costs anything worth counting.
            Some("HasEmail" | "HasDomain" | "HasBudget" | "HasCluster") => false,
            Some(other) => panic!("a new condition: {other}"),
        };
        if !is_there {
            continue;
        }
        match resource["Type"].as_str().expect("a type") {
            "AWS::CloudWatch::Alarm" => {
                let metrics = resource["Properties"]["Metrics"].as_array();
                let read = |metrics: &Vec<Value>| {
                    metrics.iter().filter(|metric| metric.get("MetricStat").is_some()).count()
                };
                parts.alarm_metrics += u32::try_from(metrics.map_or(1, read)).expect("few metrics");
            }
            "AWS::CloudWatch::Dashboard" => parts.dashboards += 1,
            "AWS::SecretsManager::Secret" => parts.secrets += 1,
            // The only nested stack.
            "AWS::CloudFormation::Stack" => add_parts(parts, OBSERVABILITY, stage),
            _ => {}
        }
    }
}

/// What `infra/docs/cost.md` says of `counted`.
pub fn tables(counted: &Counted) -> String {
    let mut text =
        "| | requests | bytes sent | read units | write units | GB-seconds | bytes of logs | bytes left for days |\n\
                    |---|---|---|---|---|---|---|---|\n"
            .to_owned();
    for (what, work) in [("a visit", &counted.visit), ("a heartbeat", &counted.heartbeat)] {
        let requests: f64 = work.requests.values().sum();
        let Work { sent_bytes, read_units, write_units, gb_seconds, log_bytes, table_bytes, .. } = work;
        let _written = writeln!(
            text,
            "| {what} | {requests:.0} | {sent_bytes:.0} | {read_units:.2} | {write_units:.2} | {gb_seconds:.4} | {log_bytes:.0} | {table_bytes:.0} |"
        );
    }
    text.push_str("\n| stage | secrets | metrics that alarms watch | dashboards | days that logs are kept |\n|---|---|---|---|---|\n");
    for (stage, Parts { alarm_metrics, dashboards, secrets, log_days }) in &counted.stages {
        let _written =
            writeln!(text, "| {stage} | {secrets} | {alarm_metrics} | {dashboards} | {log_days} |");
    }
    for stage in Stage::ALL {
        let (head, rule) = (HEAD.join(" | "), "---|".repeat(HEAD.len()));
        let _written = writeln!(text, "\nDollars a month in {stage}:\n\n| {head} |\n|{rule}");
        for row in counted.table(stage) {
            let _written = writeln!(text, "| {} |", row.join(" | "));
        }
    }
    text
}

/// What the first page says of `counted`.
pub fn sentence(counted: &Counted) -> String {
    let month = |stage, visits, servers| money(counted.month(stage, visits, servers).dollars());
    format!(
        "${} a month in dev and ${} in prod while nobody plays; with a million visits\n  \
         (found, connected, left) and five game servers all month ${} in prod, logs and alarms included.",
        month(Stage::Dev, 0, 0),
        month(Stage::Prod, 0, 0),
        month(Stage::Prod, 1_000_000, 5)
    )
}
