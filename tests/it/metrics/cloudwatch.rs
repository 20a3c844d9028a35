//! The part of CloudWatch that the templates' alarms use: sums of metrics over periods, and expressions over
//! these sums. What is not counted is missing, not zero, as there.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "code of tests outside of test functions"
)]

use std::{collections::BTreeMap, sync::LazyLock};

use harness::templates::{self, argument};
use regex_lite::Regex;
use serde_json::Value;

/// The stack whose metrics these are.
pub(super) const STACK: &str = "muster-prod";
/// Operators by how tightly they bind.
const LEVELS: [&[&str]; 5] = [&["OR"], &["AND"], &[">", ">=", "<", "<="], &["+", "-"], &["*", "/"]];

/// A word of an expression.
static WORD: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"[A-Za-z]\w*|[0-9.]+|>=|<=|\S").unwrap());

/// A metric: namespace, name and dimensions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Metric {
    pub namespace: String,
    pub name: String,
    pub dimensions: BTreeMap<String, String>,
}

impl Metric {
    /// A metric of AWS's own with one dimension.
    pub fn of_aws(namespace: &str, name: &str, dimension: &str, value: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            dimensions: [(dimension.to_owned(), value.to_owned())].into(),
        }
    }
}

/// What was counted, by the second.
#[derive(Default)]
pub(super) struct CloudWatch(BTreeMap<Metric, BTreeMap<u64, f64>>);

impl CloudWatch {
    pub fn count(&mut self, metric: Metric, secs: u64, value: f64) {
        *self.0.entry(metric).or_default().entry(secs).or_default() += value;
    }

    /// Counts the metrics of a line of embedded metric format, in each of their sets of dimensions.
    pub fn read(&mut self, line: &str) {
        let line: Value = serde_json::from_str(line).unwrap();
        let list = |value: &Value| value.as_array().unwrap().clone();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let secs = line["_aws"]["Timestamp"].as_u64().unwrap() / 1_000;
        for directive in list(&line["_aws"]["CloudWatchMetrics"]) {
            for dimensions in list(&directive["Dimensions"]) {
                let names = list(&dimensions).into_iter().map(|name| text(&name));
                let dimensions: BTreeMap<_, _> =
                    names.map(|name| (name.clone(), text(&line[name]))).collect();
                for metric in list(&directive["Metrics"]) {
                    let (name, dimensions) = (text(&metric["Name"]), dimensions.clone());
                    let value = line[&name].as_f64().unwrap();
                    let namespace = text(&directive["Namespace"]);
                    self.count(Metric { namespace, name, dimensions }, secs, value);
                }
            }
        }
    }

    fn sum(&self, metric: &Metric, from: u64, until: u64) -> Option<f64> {
        let mut counted = self.0.get(metric)?.range(from..until).map(|(_, value)| value).peekable();
        counted.peek()?;
        Some(counted.sum())
    }
}

/// An alarm of a template.
#[derive(Debug)]
pub(super) struct Alarm {
    /// Without the stack's.
    pub name: String,
    /// By its identifier in the alarm's expressions.
    pub metrics: BTreeMap<String, Metric>,
    pub expressions: BTreeMap<String, String>,
    /// The identifier of what is compared to the threshold.
    watched: String,
    period: u64,
    is_sum: bool,
    comparison: String,
    threshold: f64,
    periods: u64,
    breaching_periods: u64,
}

impl Alarm {
    /// The alarms of a template.
    pub fn all(template: &str) -> Vec<Self> {
        let template = templates::template(template);
        let resources = template["Resources"].as_object().unwrap().values();
        let alarms = resources.filter(|one| one["Type"] == "AWS::CloudWatch::Alarm");
        alarms.map(|one| Self::read(&one["Properties"], &template)).collect()
    }

    fn read(alarm: &Value, template: &Value) -> Self {
        let number = |value| number(value, template);
        let periods = number(&alarm["EvaluationPeriods"]);
        let (mut metrics, mut expressions) = (BTreeMap::new(), BTreeMap::new());
        let (mut watched, mut spans, mut statistics) = (Vec::new(), Vec::new(), Vec::new());
        let read_metric = |metric: &Value| Metric {
            namespace: text(&metric["Namespace"]),
            name: text(&metric["MetricName"]),
            dimensions: metric["Dimensions"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|one| (text(&one["Name"]), text(&one["Value"])))
                .collect(),
        };
        for query in alarm["Metrics"].as_array().into_iter().flatten() {
            let id = text(&query["Id"]);
            if query.get("ReturnData").is_none() {
                watched.push(id.clone());
            }
            if let Some(stat) = query.get("MetricStat") {
                spans.push(number(&stat["Period"]));
                statistics.push(text(&stat["Stat"]));
                metrics.insert(id, read_metric(&stat["Metric"]));
            } else {
                expressions.insert(id, text(&query["Expression"]));
            }
        }
        if spans.is_empty() {
            watched.push("metric".to_owned());
            spans.push(number(&alarm["Period"]));
            statistics.extend(alarm.get("Statistic").map(text));
            metrics.insert("metric".to_owned(), read_metric(alarm));
        }
        spans.dedup();
        let ([watched], [period]) = (watched.as_slice(), spans.as_slice()) else {
            panic!("not one value to watch, or not one period: {alarm}")
        };
        assert_eq!(alarm["TreatMissingData"], "notBreaching");
        assert!(metrics.len() <= 10 && expressions.len() <= 10, "more than CloudWatch allows: {alarm}");
        Self {
            name: text(&alarm["AlarmName"]).strip_prefix("muster-prod-").unwrap().to_owned(),
            watched: watched.clone(),
            period: (*period).into(),
            is_sum: statistics.iter().all(|statistic| statistic == "Sum") && !statistics.is_empty(),
            comparison: text(&alarm["ComparisonOperator"]),
            threshold: number(&alarm["Threshold"]).into(),
            periods: periods.into(),
            breaching_periods: alarm.get("DatapointsToAlarm").map_or(periods, number).into(),
            metrics,
            expressions,
        }
    }

    /// Whether it is on at the second `now`, by what was counted before.
    pub fn is_on(&self, counted: &CloudWatch, now: u64) -> bool {
        let breaches = (0..self.periods).filter(|back| {
            let until = now - back * self.period;
            let at = Moment { alarm: self, counted, from: until - self.period, until };
            at.value(&self.watched).is_some_and(|value| match self.comparison.as_str() {
                "GreaterThanThreshold" => value > self.threshold,
                "GreaterThanOrEqualToThreshold" => value >= self.threshold,
                other => panic!("unknown comparison {other}"),
            })
        });
        breaches.count() as u64 >= self.breaching_periods
    }
}

/// A period of an alarm.
#[derive(Clone, Copy)]
struct Moment<'a> {
    alarm: &'a Alarm,
    counted: &'a CloudWatch,
    from: u64,
    until: u64,
}

impl Moment<'_> {
    fn value(self, id: &str) -> Option<f64> {
        if let Some(expression) = self.alarm.expressions.get(id) {
            return single(&Expression::read(expression, self));
        }
        let metric = self.alarm.metrics.get(id).unwrap_or_else(|| panic!("{} has no {id}", self.alarm.name));
        let sum = self.counted.sum(metric, self.from, self.until);
        assert!(sum.is_none() || self.alarm.is_sum, "{} wants more than sums", self.alarm.name);
        sum
    }
}

/// The rest of an expression. A value of several metrics has an entry for each, `None` for a missing one.
struct Expression<'a> {
    words: std::iter::Peekable<std::vec::IntoIter<&'a str>>,
    at: Moment<'a>,
}

impl<'a> Expression<'a> {
    fn read(text: &'a str, at: Moment<'a>) -> Vec<Option<f64>> {
        let words: Vec<_> = WORD.find_iter(text).map(|found| found.as_str()).collect();
        let mut expression = Self { words: words.into_iter().peekable(), at };
        let value = expression.operators(0);
        assert_eq!(expression.words.next(), None, "{text}");
        value
    }

    fn operators(&mut self, level: usize) -> Vec<Option<f64>> {
        let Some(operators) = LEVELS.get(level) else { return self.term() };
        let mut left = self.operators(level + 1);
        while let Some(operator) = self.words.next_if(|word| operators.contains(word)) {
            let right = single(&self.operators(level + 1));
            // Where one side is missing, so is the result.
            left = vec![single(&left).zip(right).map(|(left, right)| apply(operator, left, right))];
        }
        left
    }

    fn term(&mut self) -> Vec<Option<f64>> {
        let word = self.words.next().unwrap();
        if let Ok(number) = word.parse() {
            return vec![Some(number)];
        }
        match word {
            "(" => self.list(")").concat(),
            "[" => self.list("]").concat(),
            _ if self.words.next_if_eq(&"(").is_some() => {
                let arguments = self.list(")");
                call(word, &arguments, self.at)
            }
            _ => vec![self.at.value(word)],
        }
    }

    fn list(&mut self, end: &str) -> Vec<Vec<Option<f64>>> {
        let mut items = Vec::new();
        while self.words.next_if_eq(&end).is_none() {
            items.push(self.operators(0));
            self.words.next_if_eq(&",");
        }
        items
    }
}

fn call(function: &str, arguments: &[Vec<Option<f64>>], at: Moment<'_>) -> Vec<Option<f64>> {
    match (function, arguments) {
        ("METRICS", []) => at.alarm.metrics.keys().map(|id| at.value(id)).collect(),
        // The sum of those that are there.
        ("SUM", [values]) => {
            vec![values.iter().flatten().copied().reduce(|sum, value| sum + value)]
        }
        ("FILL", [values, filling]) => values.iter().map(|value| value.or(single(filling))).collect(),
        ("IF", [condition, yes, no]) => match single(condition) {
            None => vec![None],
            Some(condition) => {
                if condition != 0.0 {
                    yes.clone()
                } else {
                    no.clone()
                }
            }
        },
        _ => panic!("unknown function {function} of {}", arguments.len()),
    }
}

fn apply(operator: &str, left: f64, right: f64) -> f64 {
    let truth = |is_true: bool| f64::from(u8::from(is_true));
    match operator {
        "OR" => truth(left != 0.0 || right != 0.0),
        "AND" => truth(left != 0.0 && right != 0.0),
        ">" => truth(left > right),
        ">=" => truth(left >= right),
        "<" => truth(left < right),
        "<=" => truth(left <= right),
        "+" => left + right,
        "-" => left - right,
        "*" => left * right,
        "/" => left / right,
        other => panic!("unknown operator {other}"),
    }
}

fn single(values: &[Option<f64>]) -> Option<f64> {
    let [value] = values else { panic!("one value is expected: {values:?}") };
    *value
}

/// A text with the stack's name filled in; of another reference the name alone.
fn text(value: &Value) -> String {
    let text = value.as_str().or(argument(value)).unwrap_or_else(|| panic!("not a text: {value}"));
    text.replace("${AWS::StackName}", STACK).replace("${StackName}", STACK)
}

/// A number, or the default of the parameter that it refers to.
fn number(value: &Value, template: &Value) -> u32 {
    let default = argument(value).map(|name| &template["Parameters"][name]["Default"]);
    let number = default.unwrap_or(value).as_u64().and_then(|number| u32::try_from(number).ok());
    number.unwrap_or_else(|| panic!("not a number: {value}"))
}
