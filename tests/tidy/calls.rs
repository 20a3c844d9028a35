//! No files form a circle by imports and by the calls of a type's methods together.
//!
//! A type may have its methods in several files. A call `self.x()` leads into the file of `x` without an
//! import, and that file imports the one that defines the type: a circle that no `use` line shows.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use crate::{
    methods::types,
    sources::{Module, crates, imports, name, shared, sources},
};

/// The circles of `shared` that are still there, each by its files. The test fails for one that is open.
const KNOWN: &[&[&str]] = &[];

/// Fewer calls than this between files of `shared` would mean that they are no longer understood.
const CALLS_MIN: usize = 60;

/// The way from one file to another: whether by an import, and by which calls.
#[derive(Default)]
struct Arrow {
    is_import: bool,
    /// `Type::method`.
    calls: BTreeSet<String>,
}

type Arrows = BTreeMap<Module, BTreeMap<Module, Arrow>>;

fn arrows(sources: &BTreeMap<Module, String>) -> Arrows {
    let mut arrows = Arrows::new();
    for (from, targets) in imports(sources) {
        for to in targets {
            arrows.entry(from.clone()).or_default().entry(to).or_default().is_import = true;
        }
    }
    for ((_, of), methods) in types(sources) {
        for method in &methods.methods {
            let called = method.calls.iter().flat_map(|name| methods.named(name));
            for called in called.filter(|called| called.file != method.file) {
                let from = arrows.entry(method.file.clone()).or_default();
                let arrow = from.entry(called.file.clone()).or_default();
                arrow.calls.insert(format!("{of}::{}", called.name));
            }
        }
    }
    arrows
}

fn reached(from: &Module, arrows: &Arrows) -> BTreeSet<Module> {
    let (mut reached, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(at) = open.pop() {
        let targets = arrows.get(at).into_iter().flat_map(BTreeMap::keys);
        open.extend(targets.filter(|target| reached.insert((*target).clone())));
    }
    reached
}

/// Sets of files each of which leads to each other one.
fn circles(arrows: &Arrows) -> BTreeSet<BTreeSet<Module>> {
    let reached: BTreeMap<&Module, _> = arrows.keys().map(|from| (from, reached(from, arrows))).collect();
    let leads = |from: &Module, to: &Module| reached.get(from).is_some_and(|reached| reached.contains(to));
    let round = reached.keys().filter(|file| leads(file, file));
    round.map(|file| reached[file].iter().filter(|other| leads(other, file)).cloned().collect()).collect()
}

/// A circle for a reader: each way within it, and why it is one.
fn described(circle: &BTreeSet<Module>, arrows: &Arrows) -> String {
    let mut text = format!("a circle of {} files:\n", circle.len());
    for from in circle {
        for (to, arrow) in arrows[from].iter().filter(|(to, _)| circle.contains(*to)) {
            let (from, to) = (name(from), name(to));
            let calls: Vec<_> = arrow.calls.iter().map(String::as_str).collect();
            let why = match (arrow.is_import, calls.is_empty()) {
                (true, true) => "imports it".to_owned(),
                (true, false) => format!("imports it, calls {}", calls.join(", ")),
                (false, _) => format!("calls {}", calls.join(", ")),
            };
            writeln!(text, "  {from} -> {to}: {why}").expect("a text grows");
        }
    }
    text
}

/// Circles that are not `known`, and those of `known` that are gone.
fn unexpected(arrows: &Arrows, known: &[&[&str]]) -> Vec<String> {
    let names = |circle: &BTreeSet<Module>| -> Vec<_> { circle.iter().map(name).collect() };
    let circles = circles(arrows);
    let new = circles.iter().filter(|circle| !known.iter().any(|known| names(circle) == *known));
    let mut found: Vec<_> = new.map(|circle| described(circle, arrows)).collect();
    let gone = known.iter().filter(|known| !circles.iter().any(|circle| names(circle) == **known));
    found.extend(gone.map(|known| format!("remove this circle from `KNOWN`, it is open: {known:?}\n")));
    found
}

/// Prints what `KNOWN` still lists: `cargo test -p tidy by_imports_and_calls -- --nocapture`.
#[test]
fn no_files_of_the_common_crate_form_a_circle_by_imports_and_calls() {
    let arrows = arrows(&shared());
    let calls: usize = arrows.values().flat_map(BTreeMap::values).map(|arrow| arrow.calls.len()).sum();
    assert!(calls >= CALLS_MIN, "only {calls} calls were understood");
    println!("{}", unexpected(&arrows, &[]).concat());
    let found = unexpected(&arrows, KNOWN);
    assert!(found.is_empty(), "\n{}", found.concat());
}

#[test]
fn no_files_of_functions_and_infra_form_a_circle_by_imports_and_calls() {
    let folders = crates(&["infra", "functions"]);
    assert!(folders.len() > 30, "{folders:?}");
    for folder in folders {
        let found = unexpected(&arrows(&sources(&folder)), &[]);
        assert!(found.is_empty(), "{}:\n{}", folder.display(), found.concat());
    }
}

#[test]
fn a_circle_by_calls_is_found_and_described() {
    let file = |(name, text): (&str, &str)| (vec!["m".to_owned(), name.to_owned()], text.to_owned());
    let files = [
        (
            "home",
            "pub struct Maker; impl Maker { fn go(&self) { self.look(); self.own(); } fn own(&self) {} }",
        ),
        ("look", "use super::home::Maker; impl Maker { pub(super) fn look(&self) { f(|| self.take(1)) } }"),
        ("take", "use super::home::Maker; impl Maker { pub(super) fn take(&self, n: u8) {} }"),
        ("aside", "use super::home::Maker; struct Other; impl Other { fn go(&self) { self.look(); } }"),
    ];
    let described = "a circle of 3 files:\n  \
                     m::home -> m::look: calls Maker::look\n  \
                     m::look -> m::home: imports it\n  \
                     m::look -> m::take: calls Maker::take\n  \
                     m::take -> m::home: imports it\n";
    let round = arrows(&files.into_iter().map(file).collect());
    assert_eq!(unexpected(&round, &[]), [described]);
    let known: &[&str] = &["m::home", "m::look", "m::take"];
    assert_eq!(unexpected(&round, &[known]), [""; 0]);
    // Without the call at the top only the home is imported.
    let open = files.map(|(name, text)| file((name, &text.replace("self.look(); self.own();", ""))));
    let open = arrows(&open.into_iter().collect());
    let gone = "remove this circle from `KNOWN`, it is open: [\"m::home\", \"m::look\", \"m::take\"]\n";
    assert_eq!(unexpected(&open, &[known]), [gone]);
}

#[test]
fn a_circle_by_imports_alone_is_found() {
    let texts = [
        ("one", "use crate::two::A;"),
        ("two", "fn f() { crate::three::g() }"),
        ("three", "use crate::one;"),
        ("four", "use crate::one;"),
    ];
    let file = |(name, text): (&str, &str)| (vec![name.to_owned()], text.to_owned());
    let round = texts.map(file);
    let [circle] = &unexpected(&arrows(&round.clone().into()), &[])[..] else { panic!("one circle") };
    assert!(circle.starts_with("a circle of 3 files:\n  one -> two: imports it\n"), "{circle}");
    let open = round.into_iter().filter(|(name, _)| *name != ["one"]).collect();
    assert_eq!(unexpected(&arrows(&open), &[]), [""; 0]);
    let root = (Module::new(), "mod five; use five::C; pub struct D;".to_owned());
    let round = arrows(&[root, file(("five", "use crate::D;"))].into());
    let described = "a circle of 2 files:\n  lib.rs -> five: imports it\n  five -> lib.rs: imports it\n";
    assert_eq!(unexpected(&round, &[]), [described]);
}
