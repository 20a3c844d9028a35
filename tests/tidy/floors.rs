//! Files import only from their own floor and from lower ones.
//!
//! The floors are the numbered list of `shared/src/lib.rs`.

use std::collections::BTreeSet;

use syn::{Item, Visibility};

use crate::sources::{Imports, Module, Paths, crates, imports, name, shared, sources};

/// Fewer imports than this between files of `shared` would mean that they are no longer understood.
const IMPORTS_MIN: usize = 300;

/// The one crate whose files import its root: the model's state, which consists of what they define.
const KNOWN: &str = "tests/model/src";

/// Folders of plain values and decisions.
const PURE: [&str; 3] = ["models", "wire", "rules"];

/// The floors of a numbered list: which modules stand on each, lowest first.
pub fn floors(list: &str) -> Vec<BTreeSet<String>> {
    let mut floors = Vec::new();
    for line in list.lines().filter_map(|line| line.strip_prefix("//! ")) {
        let Some((number, line)) = line.split_once(". ") else { continue };
        if number.parse() != Ok(floors.len() + 1) {
            continue;
        }
        let (names, _) = line.split_once(": ").expect("what the floor is for");
        floors.push(names.split(", ").map(|name| name.trim_matches(['[', ']', '`']).to_owned()).collect());
    }
    floors
}

/// Imports of a crate's root, which stands above all its modules.
fn of_root(imports: &Imports) -> Vec<String> {
    let importers = imports.iter().filter(|(_, targets)| targets.contains(&Module::new()));
    importers.map(|(module, _)| format!("{} imports lib.rs", name(module))).collect()
}

/// Imports to a higher floor, and those between different modules of one floor.
fn upward(imports: &Imports, floors: &[BTreeSet<String>]) -> Vec<String> {
    let floor = |module: &Module| {
        let top = module.first().expect("a module");
        let floor = floors.iter().position(|names| names.contains(top));
        (floor.unwrap_or_else(|| panic!("`{top}` stands on no floor")), top.clone())
    };
    let mut found = of_root(imports);
    for (module, targets) in imports.iter().filter(|(module, _)| !module.is_empty()) {
        for target in targets.iter().filter(|target| !target.is_empty()) {
            let (from, to) = (floor(module), floor(target));
            if to.0 > from.0 || (to.0 == from.0 && to.1 != from.1) {
                found.push(format!("{} imports {}", name(module), name(target)));
            }
        }
    }
    found
}

#[test]
fn no_file_of_the_common_crate_imports_from_a_higher_floor() {
    let sources = shared();
    let floors = floors(&sources[&Vec::new()]);
    let imports = imports(&sources);
    let count: usize = imports.values().map(BTreeSet::len).sum();
    assert!(count >= IMPORTS_MIN, "only {count} imports were understood");
    assert_eq!(upward(&imports, &floors), [""; 0]);
}

#[test]
fn no_file_of_another_crate_imports_the_root_of_its_crate() {
    let folders = crates(&["infra", "functions", "tests"]);
    assert!(folders.len() > 40, "{folders:?}");
    for folder in folders {
        let is_known = folder.ends_with(KNOWN);
        let found = of_root(&imports(&sources(&folder)));
        assert_eq!(found.is_empty(), !is_known, "{}: {found:#?}", folder.display());
    }
}

/// What plain values and rules may not use, of that which a file uses.
fn impure(source: &str) -> Vec<String> {
    let paths = Paths::of(source);
    let is_impure = |path: &&Module| {
        path.iter().any(|name| name.starts_with("aws_") || name == "SystemTime" || name == "Instant")
    };
    let mut found: Vec<_> = paths.found.iter().filter(is_impure).map(|path| path.join("::")).collect();
    found.extend(paths.has_async.then(|| "async".to_owned()));
    found
}

#[test]
fn values_wire_and_rules_know_no_aws_no_clock_and_nothing_that_waits() {
    let is_pure = |module: &Module| matches!(module[..], [ref top, ..] if PURE.contains(&top.as_str()));
    let sources: Vec<_> = shared().into_iter().filter(|(module, _)| is_pure(module)).collect();
    assert!(sources.len() > 40, "only {} files", sources.len());
    for (module, source) in sources {
        assert_eq!(impure(&source), [""; 0], "{}", module.join("::"));
    }
    let source = "use aws_sdk_dynamodb::Client; async fn f() { std::time::Instant::now(); }";
    assert_eq!(impure(source), ["aws_sdk_dynamodb::Client", "std::time::Instant::now", "async"]);
    assert_eq!(impure("use std::time::Duration; fn f() {}"), [""; 0]);
}

fn knows_gateway(source: &str) -> bool {
    Paths::of(source).found.iter().any(|path| path.first().is_some_and(|name| name == "lambda_http"))
}

#[test]
fn only_requests_and_functions_know_the_gateway() {
    for (module, source) in shared() {
        let is_at_gateway = matches!(module.first().map(String::as_str), Some("request" | "function"));
        assert!(is_at_gateway || !knows_gateway(&source), "{}", module.join("::"));
    }
    assert!(knows_gateway("fn f(body: &lambda_http::Body) {}") && !knows_gateway("fn f(body: &Body) {}"));
}

/// The types and constants of a file that others may see.
pub fn visible(source: &str) -> Vec<String> {
    let of = |item: &Item| {
        let (visibility, name) = match item {
            Item::Const(item) => (&item.vis, &item.ident),
            Item::Enum(item) => (&item.vis, &item.ident),
            Item::Static(item) => (&item.vis, &item.ident),
            Item::Struct(item) => (&item.vis, &item.ident),
            Item::Trait(item) => (&item.vis, &item.ident),
            Item::Type(item) => (&item.vis, &item.ident),
            _ => return None,
        };
        Some(name.to_string()).filter(|_| !matches!(visibility, Visibility::Inherited))
    };
    syn::parse_file(source).expect("Rust").items.iter().filter_map(of).collect()
}

#[test]
fn types_and_constants_that_others_may_see_are_found() {
    let all = "pub struct A; enum B {} pub(super) const C: u8 = 0; pub(crate) type D = u8; pub fn e() {} const F: u8 = 0;";
    assert_eq!(visible(all), ["A", "C", "D"]);
}

#[test]
fn an_upward_import_is_found() {
    let module = |name: &str| vec![name.to_owned()];
    let texts = [
        ("one", "use crate::two::A;"),
        ("two", "fn f() { crate::three::g() }"),
        (
            "three",
            "use crate::one; fn f() -> crate::Error {} #[cfg(all(test, unix))] mod tests { use super::T; }",
        ),
    ];
    let sources = texts.into_iter().map(|(name, text)| (module(name), text.to_owned()));
    let root = (Module::new(), "pub use one::A; pub struct Error;".to_owned());
    let imports = imports(&sources.chain([root]).collect());
    let floors = floors("//! text\n//! 1. [`one`]: x\n//! 2. [`two`], [`three`]: y");
    let found = ["three imports lib.rs", "one imports two", "two imports three"];
    assert_eq!(upward(&imports, &floors), found);
}
