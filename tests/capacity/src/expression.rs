//! DynamoDB's condition and update expressions, as far as Muster writes them.

use std::{
    borrow::Cow,
    cmp::Ordering,
    collections::{BTreeSet, HashMap},
    iter::Peekable,
    vec,
};

use super::value::{Item, Number, Value};

/// What the placeholders of an expression stand for.
#[derive(Clone, Copy, Debug)]
pub struct Placeholders<'a> {
    /// `#name`.
    pub names: &'a HashMap<String, String>,
    /// `:value`.
    pub values: &'a HashMap<String, Value>,
}

impl Placeholders<'_> {
    fn name<'a>(&'a self, part: &'a str) -> &'a str {
        if part.starts_with('#') {
            self.names.get(part).unwrap_or_else(|| panic!("{part} has no name"))
        } else {
            part
        }
    }
}

type Path = Vec<String>;

#[derive(Debug)]
enum Operand {
    Path(Path),
    Value(String),
    Size(Path),
    IfNotExists(Path, Box<Self>),
    Sum(Box<Self>, Box<Self>),
    Difference(Box<Self>, Box<Self>),
    Appended(Box<Self>, Box<Self>),
}

/// A condition.
#[derive(Debug)]
pub struct Condition(Test);

#[derive(Debug)]
enum Test {
    All(Vec<Self>),
    Any(Vec<Self>),
    Not(Box<Self>),
    Compare(Operand, String, Operand),
    Between(Operand, Operand, Operand),
    In(Operand, Vec<Operand>),
    Exists(Path, bool),
    BeginsWith(Operand, Operand),
    Contains(Operand, Operand),
}

/// An update.
#[derive(Debug, Default)]
pub struct Update {
    set: Vec<(Path, Operand)>,
    add: Vec<(Path, Operand)>,
    remove: Vec<Path>,
}

impl Condition {
    /// Parses a condition.
    ///
    /// # Panics
    /// When it uses what Muster never used.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut parser = Parser::new(text);
        let test = parser.any();
        assert_eq!(parser.0.next(), None, "{text}");
        Self(test)
    }

    /// Whether it holds for `item`; an item that does not exist is empty.
    #[must_use]
    pub fn holds(&self, item: &Item, with: Placeholders<'_>) -> bool {
        self.0.holds(item, with)
    }

    /// The value that a key condition demands of `attribute`.
    #[must_use]
    pub fn demanded<'a>(&self, attribute: &str, with: Placeholders<'a>) -> Option<&'a Value> {
        let tests = match &self.0 {
            Test::All(tests) => tests.as_slice(),
            other => std::slice::from_ref(other),
        };
        tests.iter().find_map(|test| match test {
            Test::Compare(Operand::Path(path), sign, Operand::Value(name))
                if sign == "=" && path.len() == 1 && with.name(&path[0]) == attribute =>
            {
                with.values.get(name)
            }
            _ => None,
        })
    }
}

impl Test {
    fn holds(&self, item: &Item, with: Placeholders<'_>) -> bool {
        match self {
            Self::All(tests) => tests.iter().all(|test| test.holds(item, with)),
            Self::Any(tests) => tests.iter().any(|test| test.holds(item, with)),
            Self::Not(test) => !test.holds(item, with),
            Self::Exists(path, wanted) => find(item, path, with).is_some() == *wanted,
            Self::Compare(left, sign, right) => {
                let (Some(left), Some(right)) = (left.value(item, with), right.value(item, with)) else {
                    return sign == "<>";
                };
                let order = left.compare(&right);
                match sign.as_str() {
                    "=" => order == Some(Ordering::Equal),
                    "<>" => order != Some(Ordering::Equal),
                    "<" => order == Some(Ordering::Less),
                    "<=" => matches!(order, Some(Ordering::Less | Ordering::Equal)),
                    ">" => order == Some(Ordering::Greater),
                    _ => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
                }
            }
            Self::Between(value, low, high) => {
                match (value.value(item, with), low.value(item, with), high.value(item, with)) {
                    (Some(value), Some(low), Some(high)) => {
                        value.compare(&low).is_some_and(Ordering::is_ge)
                            && value.compare(&high).is_some_and(Ordering::is_le)
                    }
                    _ => false,
                }
            }
            Self::In(value, options) => value.value(item, with).is_some_and(|value| {
                options.iter().any(|option| option.value(item, with).is_some_and(|option| option == value))
            }),
            Self::BeginsWith(value, prefix) => match (value.value(item, with), prefix.value(item, with)) {
                (Some(Cow::Borrowed(Value::S(text))), Some(Cow::Borrowed(Value::S(prefix)))) => {
                    text.starts_with(prefix)
                }
                _ => false,
            },
            Self::Contains(value, part) => {
                match (value.value(item, with).as_deref(), part.value(item, with).as_deref()) {
                    (Some(Value::S(text)), Some(Value::S(part))) => text.contains(part),
                    (Some(Value::Texts(set)), Some(Value::S(part))) => set.contains(part),
                    (Some(Value::Bytes(set)), Some(Value::B(part))) => set.contains(part),
                    (Some(Value::L(list)), Some(part)) => list.contains(part),
                    _ => false,
                }
            }
        }
    }
}

impl Operand {
    fn value<'a>(&'a self, item: &'a Item, with: Placeholders<'a>) -> Option<Cow<'a, Value>> {
        match self {
            Self::Path(path) => find(item, path, with).map(Cow::Borrowed),
            Self::Value(name) => {
                Some(Cow::Borrowed(with.values.get(name).unwrap_or_else(|| panic!("{name} has no value"))))
            }
            Self::Size(path) => find(item, path, with).map(|value| {
                let size = match value {
                    Value::S(text) | Value::B(text) => text.len(),
                    Value::M(map) => map.len(),
                    Value::L(list) => list.len(),
                    Value::Texts(set) => set.len(),
                    other => panic!("{other:?} has no size"),
                };
                Cow::Owned(Value::whole(i64::try_from(size).expect("a small size")))
            }),
            Self::IfNotExists(path, other) => {
                find(item, path, with).map(Cow::Borrowed).or_else(|| other.value(item, with))
            }
            Self::Sum(left, right) => {
                let (left, right) = (left.value(item, with)?, right.value(item, with)?);
                Some(Cow::Owned(Value::whole(left.to_whole() + right.to_whole())))
            }
            Self::Difference(left, right) => {
                let (left, right) = (left.value(item, with)?, right.value(item, with)?);
                Some(Cow::Owned(Value::whole(left.to_whole() - right.to_whole())))
            }
            Self::Appended(list, more) => match (list.value(item, with)?, more.value(item, with)?) {
                (Cow::Borrowed(Value::L(list)), Cow::Borrowed(Value::L(more))) => {
                    Some(Cow::Owned(Value::L([list.as_slice(), more].concat())))
                }
                (list, more) => panic!("{more:?} cannot be appended to {list:?}"),
            },
        }
    }
}

impl Update {
    /// Parses an update.
    ///
    /// # Panics
    /// When it uses what Muster never used.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut parser = Parser::new(text);
        let mut update = Self::default();
        while let Some(clause) = parser.0.next() {
            loop {
                match clause.to_ascii_uppercase().as_str() {
                    "SET" => {
                        let path = parser.path();
                        parser.expect("=");
                        let operand = parser.sum();
                        update.set.push((path, operand));
                    }
                    "ADD" => {
                        let path = parser.path();
                        let operand = parser.operand();
                        update.add.push((path, operand));
                    }
                    "REMOVE" => {
                        let path = parser.path();
                        update.remove.push(path);
                    }
                    other => panic!("{other} in {text}"),
                }
                if !parser.accept(",") {
                    break;
                }
            }
        }
        update
    }

    /// What `item` becomes.
    ///
    /// # Panics
    /// When it cannot be applied, which DynamoDB would refuse.
    #[must_use]
    pub fn applied(&self, item: &Item, with: Placeholders<'_>) -> Item {
        let mut new = item.clone();
        for (path, operand) in &self.set {
            let value = operand.value(item, with).unwrap_or_else(|| panic!("no value for {path:?}"));
            *slot(&mut new, path, with) = value.into_owned();
        }
        for (path, operand) in &self.add {
            let added = operand.value(item, with).unwrap_or_else(|| panic!("no value for {path:?}"));
            let sum = match (find(item, path, with), added.as_ref()) {
                (None, added) => added.clone(),
                (Some(Value::N(Number::Whole(a))), Value::N(Number::Whole(b))) => Value::whole(a + b),
                (Some(Value::Texts(a)), Value::Texts(b)) => {
                    Value::Texts(a.union(b).cloned().collect::<BTreeSet<_>>())
                }
                (old, added) => panic!("{added:?} cannot be added to {old:?}"),
            };
            *slot(&mut new, path, with) = sum;
        }
        for path in &self.remove {
            let (last, parents) = path.split_last().expect("a path has parts");
            let mut map = Some(&mut new);
            for part in parents {
                map = map.and_then(|map| match map.get_mut(with.name(part)) {
                    Some(Value::M(map)) => Some(map),
                    _ => None,
                });
            }
            if let Some(map) = map {
                map.remove(with.name(last));
            }
        }
        new
    }
}

fn find<'a>(item: &'a Item, path: &[String], with: Placeholders<'_>) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    let mut value = item.get(with.name(first))?;
    for part in rest {
        let Value::M(map) = value else { return None };
        value = map.get(with.name(part))?;
    }
    Some(value)
}

fn slot<'a>(item: &'a mut Item, path: &[String], with: Placeholders<'_>) -> &'a mut Value {
    let (last, parents) = path.split_last().expect("a path has parts");
    let mut map = item;
    for part in parents {
        map = match map.get_mut(with.name(part)) {
            Some(Value::M(map)) => map,
            other => panic!("{path:?} leads through {other:?}"),
        };
    }
    map.entry(with.name(last).to_owned()).or_insert(Value::Null(true))
}

struct Parser(Peekable<vec::IntoIter<String>>);

impl Parser {
    fn new(text: &str) -> Self {
        let mut tokens: Vec<String> = Vec::new();
        let mut word = String::new();
        let end = |word: &mut String, tokens: &mut Vec<String>| {
            if !word.is_empty() {
                tokens.push(std::mem::take(word));
            }
        };
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '(' | ')' | ',' | '=' | '+' | '-' => {
                    end(&mut word, &mut tokens);
                    tokens.push(c.to_string());
                }
                '<' | '>' => {
                    end(&mut word, &mut tokens);
                    let second = chars.next_if(|next| *next == '=' || (c == '<' && *next == '>'));
                    tokens.push(std::iter::once(c).chain(second).collect());
                }
                c if c.is_whitespace() => end(&mut word, &mut tokens),
                c => word.push(c),
            }
        }
        end(&mut word, &mut tokens);
        Self(tokens.into_iter().peekable())
    }

    fn accept(&mut self, token: &str) -> bool {
        self.0.next_if(|next| next.eq_ignore_ascii_case(token)).is_some()
    }

    fn expect(&mut self, token: &str) {
        let next = self.0.next();
        assert!(
            next.as_deref().is_some_and(|next| next.eq_ignore_ascii_case(token)),
            "{next:?}, not {token}"
        );
    }

    fn any(&mut self) -> Test {
        let mut tests = vec![self.all()];
        while self.accept("OR") {
            tests.push(self.all());
        }
        if tests.len() == 1 { tests.remove(0) } else { Test::Any(tests) }
    }

    fn all(&mut self) -> Test {
        let mut tests = vec![self.test()];
        while self.accept("AND") {
            tests.push(self.test());
        }
        if tests.len() == 1 { tests.remove(0) } else { Test::All(tests) }
    }

    fn test(&mut self) -> Test {
        if self.accept("NOT") {
            return Test::Not(Box::new(self.test()));
        }
        if self.accept("(") {
            let test = self.any();
            self.expect(")");
            return test;
        }
        for (function, exists) in [("attribute_exists", true), ("attribute_not_exists", false)] {
            if self.accept(function) {
                self.expect("(");
                let path = self.path();
                self.expect(")");
                return Test::Exists(path, exists);
            }
        }
        for function in ["begins_with", "contains"] {
            if self.accept(function) {
                self.expect("(");
                let value = self.operand();
                self.expect(",");
                let part = self.operand();
                self.expect(")");
                return if function == "contains" {
                    Test::Contains(value, part)
                } else {
                    Test::BeginsWith(value, part)
                };
            }
        }
        let left = self.operand();
        if self.accept("IN") {
            self.expect("(");
            let mut options = vec![self.operand()];
            while self.accept(",") {
                options.push(self.operand());
            }
            self.expect(")");
            return Test::In(left, options);
        }
        if self.accept("BETWEEN") {
            let low = self.operand();
            self.expect("AND");
            return Test::Between(left, low, self.operand());
        }
        let sign = self.0.next().unwrap_or_default();
        assert!(["=", "<>", "<", "<=", ">", ">="].contains(&sign.as_str()), "{sign} compares nothing");
        Test::Compare(left, sign, self.operand())
    }

    fn sum(&mut self) -> Operand {
        let left = self.operand();
        if self.accept("+") {
            Operand::Sum(Box::new(left), Box::new(self.operand()))
        } else if self.accept("-") {
            Operand::Difference(Box::new(left), Box::new(self.operand()))
        } else {
            left
        }
    }

    fn operand(&mut self) -> Operand {
        if self.accept("size") {
            self.expect("(");
            let path = self.path();
            self.expect(")");
            return Operand::Size(path);
        }
        if self.accept("if_not_exists") {
            self.expect("(");
            let path = self.path();
            self.expect(",");
            let other = self.sum();
            self.expect(")");
            return Operand::IfNotExists(path, Box::new(other));
        }
        if self.accept("list_append") {
            self.expect("(");
            let list = self.operand();
            self.expect(",");
            let more = self.operand();
            self.expect(")");
            return Operand::Appended(Box::new(list), Box::new(more));
        }
        match self.0.next_if(|next| next.starts_with(':')) {
            Some(name) => Operand::Value(name),
            None => Operand::Path(self.path()),
        }
    }

    fn path(&mut self) -> Path {
        let text = self.0.next().unwrap_or_default();
        assert!(text.starts_with(|c: char| c == '#' || c.is_alphabetic()), "`{text}` is no path");
        text.split('.').map(ToOwned::to_owned).collect()
    }
}
