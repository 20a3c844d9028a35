//! What `muster cost` prints, estimated and read from a double of AWS, and what the console shows of it.

use std::sync::atomic::{AtomicUsize, Ordering};

use wiremock::{Mock, MockServer, Request as ReceivedRequest, ResponseTemplate, matchers::any};

use super::*;

async fn cost(arguments: &[&str], environment: &BTreeMap<String, String>) -> Ended {
    Program::run("muster", &[&["cost"], arguments].concat(), environment).await
}

async fn json_of(arguments: &[&str], environment: &BTreeMap<String, String>) -> Value {
    let Ended { status, stdout, stderr } = cost(&[arguments, &["--json"]].concat(), environment).await;
    assert!(status.success() && stderr.is_empty(), "{stderr}");
    serde_json::from_str(&stdout).unwrap()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// An entry of a bill by the beginning of its name.
fn item<'a>(bill: &'a Value, name: &str) -> &'a Value {
    let items = bill["items"].as_array().unwrap();
    let found = items.iter().find(|item| item["item"].as_str().unwrap().starts_with(name));
    found.unwrap_or_else(|| panic!("no {name}: {bill}"))
}

fn units(bill: &Value, name: &str) -> f64 {
    number(&item(bill, name)["units"])
}

#[tokio::test]
async fn a_month_is_estimated_without_a_deployment() {
    let nowhere = BTreeMap::new();
    let table = json_of(&[], &nowhere).await;
    for stage in ["dev", "prod"] {
        let months = table[stage].as_array().unwrap();
        assert_eq!(months.len(), 13);
        for month in months {
            let columns = month["dollars"].as_object().unwrap().values().map(number);
            assert!((columns.sum::<f64>() - number(&month["month"])).abs() < 1e-6, "{month}");
        }
        let arguments = ["--visits", "1000000", "--servers", "5", "--stage", stage];
        let one = json_of(&arguments, &nowhere).await;
        let same = months.iter().find(|month| month["visits"] == 1_000_000 && month["servers"] == 5).unwrap();
        assert_eq!(one["month"], same["month"]);
        assert_eq!(one["items"].as_array().unwrap().len(), 16);
    }
    let of = async |heartbeat: &str| {
        let arguments = ["--servers", "1", "--stage", "dev", "--heartbeat", heartbeat];
        let month = json_of(&arguments, &nowhere).await;
        units(&month, "DynamoDB, write units")
    };
    assert_eq!(of("5").await, 6.0 * of("30").await);
    let text = cost(&[], &nowhere).await.stdout;
    assert_eq!(text.matches("VISITS").count(), 2, "{text}");
    assert!(text.contains("10,000,000"), "{text}");
    let text = cost(&["--stage", "dev"], &nowhere).await.stdout;
    assert!(text.starts_with("Dollars a month in dev:\n") && text.lines().count() == 15, "{text}");
    let idle = cost(&["--visits", "0"], &nowhere).await.stdout;
    let alarms = idle.lines().find(|line| line.starts_with("metrics that alarms watch")).unwrap();
    assert!(alarms.ends_with("56     5.60"), "{idle}");
    assert!(idle.lines().last().unwrap().starts_with("sum "), "{idle}");
}

#[tokio::test]
async fn numbers_and_stages_that_there_are_not_are_refused() {
    for arguments in [
        ["--visits", "-1"],
        ["--visits", "many"],
        ["--servers", "1.5"],
        ["--stage", "staging"],
        // Without servers there is none.
        ["--heartbeat", "5"],
    ] {
        let Ended { status, stdout, stderr } = cost(&arguments, &BTreeMap::new()).await;
        assert_eq!((status.code(), stdout.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(stderr.contains(arguments[0]) || stderr.contains(arguments[1]), "{stderr}");
    }
}

/// Which calls the double refuses, as IAM would.
type Denied = fn(&str) -> bool;

/// AWS with one stack, of which CloudWatch has counted a little.
async fn double(denied: Denied) -> (MockServer, BTreeMap<String, String>) {
    let server = MockServer::start().await;
    let looks = AtomicUsize::new(0);
    let answer = move |request: &ReceivedRequest| {
        let body = String::from_utf8_lossy(&request.body).into_owned();
        let target = request.headers.get("x-amz-target").and_then(|target| target.to_str().ok());
        let form = body.split('&').find_map(|pair| pair.strip_prefix("Action="));
        let operation = target.and_then(|target| target.split('.').nth(1)).or(form).unwrap_or_default();
        assert!(request.headers["authorization"].to_str().unwrap().starts_with("AWS4-HMAC-SHA256 "));
        if denied(operation) {
            let refusal =
                json!({ "__type": "com.amazon.coral.service#AccessDeniedException", "Message": "not you" });
            let xml = "<ErrorResponse><Error><Code>AccessDenied</Code><Message>not you</Message></Error></ErrorResponse>";
            let refused = ResponseTemplate::new(403);
            return if form.is_some() {
                refused.set_body_string(xml)
            } else {
                refused.set_body_json(refusal)
            };
        }
        let parameters: Value = serde_json::from_str(&body).unwrap_or_default();
        match operation {
            "DescribeStacks" => xml("DescribeStacks", &stack()),
            "ListStackResources" => xml("ListStackResources", &resources(&body)),
            "DescribeTable" => json_answer(table(parameters["TableName"].as_str().unwrap())),
            "DescribeContinuousBackups" => {
                let status = if parameters["TableName"] == "clients" { "DISABLED" } else { "ENABLED" };
                json_answer(json!({ "ContinuousBackupsDescription": { "ContinuousBackupsStatus": "ENABLED",
                    "PointInTimeRecoveryDescription": { "PointInTimeRecoveryStatus": status } } }))
            }
            "DescribeAlarms" => {
                let stat = json!({ "MetricStat": {} });
                json_answer(json!({ "MetricAlarms": [
                    { "AlarmName": "latency" },
                    { "AlarmName": "errors", "Metrics": [{ "Expression": "a + b" }, stat, stat] },
                ] }))
            }
            "GetMetricData" => json_answer(metric_data(&parameters)),
            "StartQuery" => {
                assert_eq!(parameters["logGroupName"], "functions");
                json_answer(json!({ "queryId": "12ab3456-12ab-123a-789e-1234567890ab" }))
            }
            "GetQueryResults" => {
                assert_eq!(parameters["queryId"], "12ab3456-12ab-123a-789e-1234567890ab");
                json_answer(query_results(looks.fetch_add(1, Ordering::Relaxed)))
            }
            other => panic!("an unknown call: {other} {body}"),
        }
    };
    Mock::given(any()).respond_with(answer).mount(&server).await;
    let environment = [
        ("AWS_ENDPOINT_URL", server.uri()),
        ("AWS_ACCESS_KEY_ID", "double".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "double".to_owned()),
        ("AWS_REGION", "eu-central-1".to_owned()),
        ("AWS_EC2_METADATA_DISABLED", "true".to_owned()),
    ];
    (server, environment.map(|(name, value)| (name.to_owned(), value)).into())
}

fn xml(operation: &str, result: &str) -> ResponseTemplate {
    ResponseTemplate::new(200).set_body_string(format!(
        "<{operation}Response><{operation}Result>{result}</{operation}Result></{operation}Response>"
    ))
}

fn json_answer(body: Value) -> ResponseTemplate {
    ResponseTemplate::new(200).set_body_json(body)
}

/// Members of a list in XML, of these fields.
fn members<const N: usize>(fields: [&str; N], rows: &[[&str; N]]) -> String {
    let member = |row: &[&str; N]| {
        let values = fields.iter().zip(row).map(|(field, value)| format!("<{field}>{value}</{field}>"));
        format!("<member>{}</member>", values.collect::<String>())
    };
    rows.iter().map(member).collect()
}

fn stack() -> String {
    let names = ["Catalog", "Tokens", "Lobbies", "LobbyData", "Servers", "Ledger", "Secrets", "Clients"];
    let outputs = names.map(|name| (format!("{name}TableName"), name.to_lowercase()));
    let tables = outputs.each_ref().map(|(key, name)| [key.as_str(), name]);
    let outputs = [&tables[..], &[["SigningKeySecretArn", "arn:aws:secretsmanager:key"]]].concat();
    let outputs = members(["OutputKey", "OutputValue"], &outputs);
    let parameters = [
        ["MemorySize", "128"],
        ["LogRetentionDays", "90"],
        ["SecretsKeyArn", "arn:aws:kms:one"],
        ["EnvironmentKeyArn", "arn:aws:kms:one"],
    ];
    let parameters = members(["ParameterKey", "ParameterValue"], &parameters);
    format!(
        "<Stacks><member><StackName>own</StackName><CreationTime>2020-01-01T00:00:00Z</CreationTime>\
         <Parameters>{parameters}</Parameters><Outputs>{outputs}</Outputs></member></Stacks>"
    )
}

fn resources(body: &str) -> String {
    let own = [
        ["AWS::ApiGatewayV2::Api", "HttpApi", "api"],
        ["AWS::Lambda::Function", "FindLobbyFunction", "own-find"],
        ["AWS::Lambda::Function", "StartServerFunction", "own-start"],
        ["AWS::Logs::LogGroup", "FunctionLogs", "functions"],
        ["AWS::Logs::LogGroup", "AccessLogs", "access"],
        ["AWS::SecretsManager::Secret", "SigningKeySecret", "secret"],
        ["AWS::CloudFormation::Stack", "Observability", "nested"],
    ];
    let nested = [
        ["AWS::CloudWatch::Alarm", "Latency", "latency"],
        ["AWS::CloudWatch::Alarm", "Errors", "errors"],
        ["AWS::CloudWatch::Dashboard", "Dashboard", "own"],
    ];
    let rows = if body.contains("StackName=nested") { &nested[..] } else { &own };
    let listed = members(["ResourceType", "LogicalResourceId", "PhysicalResourceId"], rows);
    format!("<StackResourceSummaries>{listed}</StackResourceSummaries>")
}

fn table(name: &str) -> Value {
    let index = json!([{ "IndexName": "candidates", "IndexSizeBytes": 500_000_000 }]);
    let indexes = if name == "lobbies" { index } else { Value::Null };
    json!({ "Table": { "TableName": name, "TableSizeBytes": 1_000_000_000, "GlobalSecondaryIndexes": indexes } })
}

/// The values of the requested metrics, on two pages.
fn metric_data(request: &Value) -> Value {
    let queries = request["MetricDataQueries"].as_array().unwrap();
    let results = queries.iter().map(|query| {
        let metric = &query["MetricStat"]["Metric"];
        let [of_find, of_start] =
            ["find-lobby", "start-server"].map(|operation| metric["Dimensions"][0]["Value"] == operation);
        let values = match metric["MetricName"].as_str().unwrap() {
            "Count" => vec![100.0, 50.0],
            "DataProcessed" => vec![2e9],
            "Invocations" => vec![3.0],
            "Duration" => vec![8_192.0],
            "ConsumedReadCapacityUnits" => vec![1.0],
            "ConsumedWriteCapacityUnits" => vec![2.0],
            "IncomingBytes" => vec![1e9, 5e8],
            "LobbyFound" if of_find => vec![1.0, 1.0],
            "ColdStart" if of_find => vec![2.0],
            "ServerSeconds" if of_start => vec![3_600.0, 1_800.0],
            _ => Vec::new(),
        };
        let period = query["MetricStat"]["Period"].as_u64().unwrap();
        let starts = (request["StartTime"].as_u64().unwrap()..).step_by(period as usize).take(values.len());
        let starts: Vec<_> = starts.collect();
        json!({ "Id": query["Id"], "Values": values, "Timestamps": starts, "StatusCode": "Complete" })
    });
    let mut results: Vec<_> = results.collect();
    let rest = results.split_off(results.len() / 2);
    if request["NextToken"] == "rest" {
        json!({ "MetricDataResults": rest })
    } else {
        json!({ "MetricDataResults": results, "NextToken": "rest" })
    }
}

#[tokio::test]
async fn a_month_so_far_is_what_aws_counted() {
    let (_server, environment) = double(|_| false).await;
    let bill = json_of(&["--stack", "own"], &environment).await;
    assert_eq!(bill["stack"], "own");
    for (name, expected) in [
        ("HTTP API, requests", 150.0),
        ("data sent", 2.0),
        ("Lambda, requests", 6.0),
        ("Lambda, GB-seconds", 2.048),
        // Eight tables and an index.
        ("DynamoDB, read units", 9.0),
        ("DynamoDB, write units", 18.0),
        ("logs written", 3.0),
        ("KMS, requests", 2.0),
    ] {
        assert!((units(&bill, name) - expected).abs() < 1e-9, "{name}: {bill}");
    }
    // Five hours of a month.
    let hours = units(&bill, "metrics of functions") * 730.0;
    assert!((4.9..5.5).contains(&hours), "{hours}");
    assert_eq!(bill["server_hours"], 1.5);
    // What is charged by the month is charged up to now, like the secret.
    for (name, expected) in [
        ("metrics that alarms watch", 3.0),
        ("dashboards", 1.0),
        ("KMS keys", 1.0),
        ("tables", 8.5),
        ("point-in-time recovery", 7.0),
        ("logs kept", 0.45),
    ] {
        let part = units(&bill, name) / units(&bill, "secrets");
        assert!((part - expected).abs() < 1e-6, "{name}: {part}");
    }
    let dollars = bill["items"].as_array().unwrap().iter().map(|item| number(&item["dollars"]));
    assert!((dollars.sum::<f64>() - number(&bill["month"])).abs() < 1e-9);
    let text = cost(&["--stack", "own"], &environment).await.stdout;
    assert!(text.starts_with("own since 20") && text.contains("\nsum "), "{text}");
    let lines: Vec<_> = text.lines().rev().take(2).collect();
    assert_eq!(lines[0], "game servers on demand, not in the sum: 1.5 hours of those that have ended");
    assert!(lines[1].starts_with("a whole month at this pace: "), "{text}");
}

#[tokio::test]
async fn what_aws_does_not_let_one_read_is_named_and_never_nothing() {
    let of_alarms: Denied = |operation| operation == "DescribeAlarms";
    let of_metrics: Denied = |operation| operation == "GetMetricData";
    let of_parts: Denied = |operation| operation == "ListStackResources";
    let of_tables: Denied = |operation| operation == "DescribeTable";
    let metrics = [
        "HTTP API",
        "data sent",
        "Lambda, r",
        "Lambda, G",
        "DynamoDB, r",
        "DynamoDB, w",
        "logs w",
        "logs k",
        "metrics of",
        "KMS, r",
    ];
    let parts = [
        "HTTP API",
        "data sent",
        "Lambda, r",
        "Lambda, G",
        "logs w",
        "logs k",
        "metrics of",
        "metrics that",
        "dashboards",
        "secrets",
        "KMS, r",
    ];
    for (denied, unread) in [
        (of_alarms, &["metrics that"][..]),
        (of_metrics, &metrics),
        (of_parts, &parts),
        (of_tables, &["DynamoDB, r", "DynamoDB, w", "tables", "point-in-time"]),
    ] {
        let (_server, environment) = double(denied).await;
        let bill = json_of(&["--stack", "own"], &environment).await;
        for entry in bill["items"].as_array().unwrap() {
            let name = entry["item"].as_str().unwrap();
            let is_unread = unread.iter().any(|unread| name.starts_with(unread));
            assert_eq!(entry["dollars"].is_null(), is_unread, "{entry}");
            let said = entry["not_read"].as_str().is_some_and(|reason| reason.ends_with(": not you"));
            assert_eq!(said, is_unread, "{entry}");
        }
        let text = cost(&["--stack", "own"], &environment).await.stdout;
        assert_eq!(text.matches("not read: ").count(), unread.len(), "{text}");
        assert!(text.contains("\nsum of what was read "), "{text}");
    }
}

/// The console of the stack, and what it answers to its own page.
struct Console {
    program: Program,
    base_url: String,
    cookie: String,
}

impl Console {
    async fn start(environment: &BTreeMap<String, String>) -> Self {
        let mut program =
            Program::start("muster", &["console", "--stack", "own", "--no-browser"], environment);
        let line = program.line_with("The console of own").await.unwrap();
        let (_, address) = line.rsplit_once(": http").unwrap();
        let (base_url, token) = address.split_once("/#token=").unwrap();
        let (base_url, cookie) = (format!("http{base_url}"), String::new());
        let mut console = Self { program, base_url, cookie };
        let answer = console.ask(Method::POST, "session", &json!({ "token": token }).to_string()).await;
        let cookie = answer.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
        console.cookie = cookie;
        console
    }

    async fn ask(&self, method: Method, name: &str, body: &str) -> Answer {
        let request = Request::builder().method(method).uri(format!("{}/_console/{name}", self.base_url));
        send(request.header("muster-console", "1").header("cookie", &self.cookie), body).await
    }

    async fn read(&self, name: &str) -> Value {
        self.ask(Method::GET, name, "").await.expect_ok().body
    }

    async fn end(mut self) {
        self.program.signal("INT");
        assert_eq!(self.program.end().await.status.code(), Some(0));
    }
}

#[tokio::test]
async fn the_console_shows_the_finds_and_the_bill_that_aws_counted() {
    let (server, environment) = double(|_| false).await;
    let console = Console::start(&environment).await;
    let found = console.read("finds").await;
    let minutes = found["minutes"].as_array().unwrap();
    assert_eq!(minutes.len(), 10);
    assert_eq!(minutes[0]["finds"], json!({ "seated": 1, "refused": 2, "failed": 0 }));
    assert_eq!(minutes[1]["finds"], json!({ "seated": 1, "refused": 0, "failed": 0 }));
    assert_eq!(minutes[9]["finds"], json!({ "seated": 0, "refused": 0, "failed": 0 }));
    let at = |minute: &Value| minute["at"].as_u64().unwrap();
    assert_eq!(at(&minutes[9]) - at(&minutes[0]), 9 * 60_000);
    let until_now = found["now"].as_u64().unwrap() - at(&minutes[9]);
    assert!((120_000..180_000).contains(&until_now), "the last ended a minute ago: {until_now}");

    let read = console.read("bill").await;
    let printed = json_of(&["--stack", "own"], &environment).await;
    assert_eq!(item(&read["bill"], "HTTP API"), item(&printed, "HTTP API"));
    assert_eq!(read["bill"]["items"].as_array().unwrap().len(), 16);
    assert!(number(&read["bill"]["whole_month"]) >= number(&read["bill"]["month"]), "{read}");
    let metrics: usize = requested_metrics(&server.received_requests().await.unwrap());
    // The curve's five, and the bill twice: here and by the command.
    assert_eq!(metrics, 2 * 5 + 2 * 2 * read["metrics"].as_u64().unwrap() as usize);
    console.end().await;
}

/// The number of requested metrics. The double has two pages of each answer.
fn requested_metrics(requests: &[ReceivedRequest]) -> usize {
    let bodies = requests.iter().filter_map(|request| serde_json::from_slice::<Value>(&request.body).ok());
    bodies.filter_map(|body| Some(body["MetricDataQueries"].as_array()?.len())).sum()
}

/// What CloudWatch Logs answers at each look at a query, in the shape of its API reference.
fn query_results(look: usize) -> Value {
    let statistics = json!({ "recordsMatched": 3.0, "recordsScanned": 12.0, "bytesScanned": 4_000.0 });
    if look == 0 {
        return json!({ "status": "Running", "results": [], "statistics": statistics });
    }
    let row =
        |fields: [(&str, &str); 5]| fields.map(|(field, value)| json!({ "field": field, "value": value }));
    let full = [
        ("span.operation", "find-lobby"),
        ("code", "MATCHMAKER_NO_SERVER_AVAILABLE"),
        ("requests", "2"),
        ("first", "r-1"),
        ("last", "r-2"),
    ];
    let once = [
        ("span.operation", "join-lobby"),
        ("code", "MATCHMAKER_LOBBY_FULL"),
        ("requests", "1"),
        ("first", "r-3"),
        ("last", "r-3"),
    ];
    json!({ "status": "Complete", "results": [row(full), row(once)], "statistics": statistics })
}

#[tokio::test]
async fn refusals_of_a_stack_are_searched_for_in_its_logs_once_their_price_is_known() {
    let (server, environment) = double(|_| false).await;
    let console = Console::start(&environment).await;
    let question = |minutes: u32| format!("refusals?q=%7B%22minutes%22%3A{minutes}%7D");
    let price = console.read(&question(60)).await;
    let bytes = number(&price["bytes"]);
    assert!(bytes > 0.0 && (number(&price["dollars"]) - bytes * 0.005 / 1e9).abs() < 1e-12, "{price}");
    let queries = || async {
        let requests = server.received_requests().await.unwrap();
        let target = |request: &ReceivedRequest| request.headers.get("x-amz-target").cloned();
        requests.iter().filter_map(target).filter(|target| target == "Logs_20140328.StartQuery").count()
    };
    assert_eq!(queries().await, 0, "its price costs no query");
    let found = console.ask(Method::POST, "refusals", r#"{ "minutes": 60 }"#).await.expect_ok().body;
    assert_eq!(
        found["refusals"],
        json!([
            { "operation": "find-lobby", "code": "MATCHMAKER_NO_SERVER_AVAILABLE", "requests": 2,
              "examples": ["r-1", "r-2"] },
            { "operation": "join-lobby", "code": "MATCHMAKER_LOBBY_FULL", "requests": 1, "examples": ["r-3"] },
        ])
    );
    for minutes in [0, 24 * 60 + 1] {
        let body = json!({ "minutes": minutes }).to_string();
        let refused = console.ask(Method::POST, "refusals", &body).await.expect_ok().body;
        assert_eq!(refused["refused"]["message"], "a search looks at 1 to 1440 minutes");
        assert!(!console.read(&question(minutes)).await["refused"].is_null());
    }
    assert_eq!(queries().await, 1);
    console.end().await;
}

#[tokio::test]
async fn what_the_console_may_not_read_is_said() {
    let (_server, environment) = double(|operation| operation == "GetMetricData").await;
    let console = Console::start(&environment).await;
    let refused = console.read("finds").await;
    assert!(refused["refused"]["message"].as_str().unwrap().ends_with(": not you"), "{refused}");
    let read = console.read("bill").await;
    assert!(item(&read["bill"], "HTTP API")["not_read"].as_str().unwrap().ends_with(": not you"), "{read}");
    console.end().await;
}

#[tokio::test]
async fn a_stack_that_may_not_be_described_is_an_error() {
    let (_server, environment) = double(|operation| operation == "DescribeStacks").await;
    let Ended { status, stdout, stderr } = cost(&["--stack", "own"], &environment).await;
    assert_eq!((status.code(), stdout.as_str()), (Some(6), ""));
    assert_eq!(stderr, "muster: your credentials may not do this: AccessDenied: not you\n");
}
