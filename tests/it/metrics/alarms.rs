//! When the alarms of the stage prod go off: played requests of real operations, whose lines of metrics the
//! alarms' own expressions judge.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "code of tests outside of test functions")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    sync::Arc,
    time::Duration,
};

use find_lobby::FindLobby;
use harness::{
    TestGame, TestStack,
    instance::{event, patient_client},
};
use heartbeat_server::HeartbeatServer;
use muster_local::stack::{TEMPLATE, table_names};
use regex_lite::Regex;
use serde_json::{Value, json};
use shared::{
    auth::keys::TokenKeys,
    function::{
        config::Environment,
        instance::Instance,
        metrics::{self, Counter},
        operation::{Operation, answer_counted},
    },
    store::client::Store,
};

use super::{
    OBSERVABILITY,
    cloudwatch::{Alarm, CloudWatch, Metric, STACK},
};
use crate::artefacts::{functions, workspace};

/// A tenth of the requests goes to a new version while it is tried.
const CANARY_SHARE: u64 = 10;
/// How long it is tried.
const CANARY_MINUTES: u64 = 5;

fn alarms() -> Vec<Alarm> {
    [OBSERVABILITY, TEMPLATE].into_iter().flat_map(Alarm::all).collect()
}

/// One deployed version of an operation.
struct Version<O> {
    operation: O,
    counter: Counter,
    crashes: bool,
}

impl<O: Operation> Version<O> {
    fn start(stack: &TestStack, store: Store, keys: &Arc<TokenKeys>) -> Self {
        let parts = Instance::over(store, Arc::clone(keys), stack.ambient());
        let namespace = format!("Muster/{STACK}");
        let environment = Environment::of([("MUSTER_METRICS_NAMESPACE", namespace.as_str())]);
        let counter = Counter::of(&environment).unwrap();
        Self { operation: O::start(&parts).unwrap(), counter, crashes: false }
    }
}

/// One deployed version of find and heartbeat.
struct Release {
    find: Version<FindLobby>,
    heartbeat: Version<HeartbeatServer>,
}

impl Release {
    fn of(stack: &TestStack, store: &Store, keys: &Arc<TokenKeys>) -> Self {
        let find = Version::start(stack, store.clone(), keys);
        Self { find, heartbeat: Version::start(stack, store.clone(), keys) }
    }

    fn healthy(played: &Played) -> Self {
        Self::of(&played.stack, played.stack.store(), played.stack.stack.keys())
    }

    /// A release that has another signing key than all tokens.
    fn with_other_key(played: &Played) -> Self {
        let keys = Arc::new(TokenKeys::new(&[7; 64], None).unwrap());
        Self::of(&played.stack, played.stack.store(), &keys)
    }

    /// A release that does not reach its tables.
    fn without_tables(played: &Played) -> Self {
        // Nothing listens there.
        let nowhere = Store::new(patient_client("http://127.0.0.1:1"), table_names());
        Self::of(&played.stack, &nowhere, played.stack.stack.keys())
    }

    /// A release whose functions end before they respond.
    fn crashing(played: &Played) -> Self {
        let mut release = Self::healthy(played);
        (release.find.crashes, release.heartbeat.crashes) = (true, true);
        release
    }
}

/// A small game: five finds and ten heartbeats a minute.
struct Played {
    stack: TestStack,
    game: TestGame,
    cloudwatch: CloudWatch,
    alarms: Vec<Alarm>,
    /// The functions' names in the template by their operations.
    functions: BTreeMap<String, String>,
    asked: u64,
    find: Value,
    /// The alarms that were on at the end of any minute.
    raised: BTreeSet<String>,
}

impl Played {
    async fn start() -> Self {
        let stack = TestStack::start().await;
        let modes = json!({ "arena": { "regions": ["fra"], "max_players": 64 } });
        let game = stack.make_game("small", modes, 99, 99).await;
        Self {
            stack,
            game,
            cloudwatch: CloudWatch::default(),
            alarms: alarms(),
            functions: functions("").into_iter().map(|one| (one.binary, one.logical_id)).collect(),
            asked: 0,
            find: json!({ "game_modes": ["arena"] }),
            raised: BTreeSet::new(),
        }
    }

    /// A request of a function, with what AWS counts of it.
    async fn ask<O: Operation>(&mut self, version: &Version<O>, token: &str, body: &Value) {
        let now = self.stack.clock.now();
        let secs = now.secs();
        let function = self.functions[O::NAME].clone();
        let of_function = |name| Metric::of_aws("AWS/Lambda", name, "FunctionName", &function);
        self.cloudwatch.count(Metric::of_aws("AWS/ApiGateway", "Count", "ApiId", "ApiId"), secs, 1.0);
        self.cloudwatch.count(of_function("Invocations"), secs, 1.0);
        self.cloudwatch.count(of_function("Errors"), secs, f64::from(u8::from(version.crashes)));
        if version.crashes {
            return;
        }
        let event = event(&[("authorization", &format!("Bearer {token}"))], body, &[]);
        let ambient = self.stack.ambient();
        let (_, counts) = answer_counted(&version.operation, event, &ambient, None).await;
        if let Some(line) = version.counter.line(O::NAME, counts, now) {
            self.cloudwatch.read(&line);
        }
    }

    /// Minutes of the game, in which a tenth of the requests goes to the release `tried`, if there is one.
    async fn minutes(&mut self, minutes: u64, current: &Release, tried: Option<&Release>) {
        let (public, server) = (self.game.public.clone(), self.game.server.clone());
        for request in 0..minutes * 15 {
            self.asked += 1;
            let of_canary = tried.filter(|_| self.asked.is_multiple_of(CANARY_SHARE));
            let release = of_canary.unwrap_or(current);
            if request % 3 == 0 {
                let body = self.find.clone();
                self.ask(&release.find, &public, &body).await;
            } else {
                self.ask(&release.heartbeat, &server, &json!({ "server_id": "fra" })).await;
            }
            self.stack.clock.advance(Duration::from_secs(4));
            if request % 15 == 14 {
                self.look();
            }
        }
    }

    fn look(&mut self) {
        let now = self.stack.clock.now().secs();
        let on = self.alarms.iter().filter(|alarm| alarm.is_on(&self.cloudwatch, now));
        self.raised.extend(on.map(|alarm| alarm.name.clone()));
    }

    fn assert_raised<const N: usize>(&self, expected: [&str; N]) {
        assert_eq!(self.raised, expected.map(str::to_owned).into());
    }
}

#[tokio::test]
async fn a_night_without_players_raises_no_alarm() {
    let mut played = Played::start().await;
    for _ in 0..60 {
        played.stack.clock.advance(Duration::from_secs(60));
        played.look();
    }
    played.assert_raised([]);
}

#[tokio::test]
async fn a_small_game_raises_no_alarm_though_a_stranger_is_refused_now_and_then() {
    let mut played = Played::start().await;
    let (healthy, tried) = (Release::healthy(&played), Release::healthy(&played));
    for _ in 0..10 {
        let body = played.find.clone();
        played.ask(&healthy.find, "pub_of-a-stranger", &body).await;
        played.minutes(2, &healthy, Some(&tried)).await;
    }
    played.assert_raised([]);
}

#[tokio::test]
async fn when_every_token_is_refused_the_operator_hears_of_it() {
    let mut played = Played::start().await;
    let (healthy, broken) = (Release::healthy(&played), Release::with_other_key(&played));
    played.minutes(5, &healthy, None).await;
    played.minutes(10, &broken, None).await;
    played.assert_raised(["auth-refused", "deployment", "no-seats"]);
}

#[tokio::test]
async fn finds_that_are_all_refused_for_another_reason_are_noticed() {
    let mut played = Played::start().await;
    let healthy = Release::healthy(&played);
    played.find = json!({ "game_modes": ["unknown"] });
    played.minutes(10, &healthy, None).await;
    played.assert_raised(["no-seats"]);
}

#[tokio::test]
async fn tables_that_do_not_answer_are_noticed() {
    let mut played = Played::start().await;
    let down = Release::without_tables(&played);
    played.minutes(10, &down, None).await;
    played.assert_raised(["deployment", "failed-operations", "no-seats"]);
}

#[tokio::test]
async fn a_canary_that_answers_nobody_rolls_back_in_a_small_game_too() {
    type Broken = fn(&Played) -> Release;
    let releases: [(Broken, _); 3] = [
        (Release::with_other_key, "deployment"),
        (Release::without_tables, "deployment"),
        (Release::crashing, "deployment-crashes"),
    ];
    for (broken, alarm) in releases {
        let mut played = Played::start().await;
        let (healthy, broken) = (Release::healthy(&played), broken(&played));
        played.minutes(5, &healthy, None).await;
        played.assert_raised([]);
        played.minutes(CANARY_MINUTES, &healthy, Some(&broken)).await;
        played.assert_raised([alarm]);
    }
}

/// The metrics that the alarms watch in a namespace, with the alarm's name.
pub(super) fn watched(namespace: &str) -> Vec<(String, Metric)> {
    let of_alarm = |alarm: Alarm| alarm.metrics.into_values().map(move |metric| (alarm.name.clone(), metric));
    alarms().into_iter().flat_map(of_alarm).filter(|(_, metric)| metric.namespace == namespace).collect()
}

#[test]
fn alarms_watch_metrics_that_functions_count_in_their_dimensions() {
    let operations: BTreeSet<_> = functions("").into_iter().map(|function| function.binary).collect();
    for (alarm, metric) in watched(&format!("Muster/{STACK}")) {
        let counted = metrics::Metric::ALL.iter().find(|counted| counted.name() == metric.name).unwrap();
        match metric.dimensions.iter().collect::<Vec<_>>().as_slice() {
            [] => assert!(counted.has_total(), "{alarm}: {metric:?}"),
            [(name, operation)] => {
                assert!(*name == "operation" && operations.contains(*operation), "{alarm}: {metric:?}");
            }
            _ => panic!("{alarm}: {metric:?}"),
        }
    }
    let functions: BTreeSet<_> = functions("").into_iter().map(|function| function.logical_id).collect();
    for (alarm, metric) in watched("AWS/Lambda") {
        // Without a function, of the whole account.
        assert!(
            metric.dimensions.values().all(|function| functions.contains(function)),
            "{alarm}: {metric:?}"
        );
    }
}

#[test]
fn each_alarm_is_on_the_page_for_operators_and_on_the_dashboard() {
    let page = fs::read_to_string(workspace().join("infra/docs/operating.md")).unwrap();
    let table = page.split("\n## Alarms\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let row = Regex::new(r"(?m)^\| `([a-z-]+)` \|").unwrap();
    let rows: BTreeSet<_> = row.captures_iter(table).map(|found| found[1].to_owned()).collect();
    let named = |alarms: Vec<Alarm>| -> BTreeSet<_> { alarms.into_iter().map(|alarm| alarm.name).collect() };
    assert_eq!(rows, named(alarms()));
    let resource = Regex::new(r"(?m)^  (\w+Alarm):$").unwrap();
    let shown = Regex::new(r#""\$\{(\w+Alarm)\.Arn\}""#).unwrap();
    let of = |pattern: &Regex| -> BTreeSet<_> {
        pattern.captures_iter(OBSERVABILITY).map(|found| found[1].to_owned()).collect()
    };
    assert_eq!(of(&resource), of(&shown));
    assert_eq!(of(&resource).len(), named(Alarm::all(OBSERVABILITY)).len());
}

#[test]
fn a_deployment_is_rolled_back_by_each_alarm_of_the_template() {
    let guards = Regex::new(r"Alarms: !If \[IsGuarded, \[([^\]]+)\], \[\]\]").unwrap();
    let guards = guards.captures(TEMPLATE).unwrap()[1].replace("!Ref ", "");
    let guards: BTreeSet<_> = guards.split(", ").collect();
    let resource = Regex::new(r"(?m)^  (\w+):\n    Type: AWS::CloudWatch::Alarm$").unwrap();
    assert_eq!(
        guards,
        resource.captures_iter(TEMPLATE).map(|found| found.get(1).unwrap().as_str()).collect()
    );
}
