//! Files import only from their own floor and from lower ones, and none import each other in a circle.
//!
//! The floors are the numbered list of `shared/src/lib.rs`. What imports what is read from the code itself,
//! its tests left out: `use` lines, and qualified paths wherever they stand, in macros too.

#![expect(clippy::expect_used, clippy::panic, reason = "this is test code: what cannot go on panics")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use harness::binaries::workspace;
use syn::{
    Item, ItemMod, ItemUse, Macro, UseTree, Visibility,
    visit::{self, Visit},
};

/// A module as the names on the way to it.
type Module = Vec<String>;
/// What each module imports, and what it uses of the libraries that only some may know.
type Imports = BTreeMap<Module, BTreeSet<Module>>;

/// Fewer imports than this between files of `shared` would mean that they are no longer understood.
const IMPORTS_MIN: usize = 300;
const FLOORS_MAX: usize = 11;
/// Types and constants of matchmaking that are visible outside their file: what a reader has to learn.
const MATCHMAKING_VISIBLE_MAX: usize = 25;

/// Files of the common crate that are of no folder.
const FLAT_FILES_MAX: usize = 5;
const ARCHITECTURE_WORDS_MAX: usize = 2_000;

/// The paths that one file names.
#[derive(Default)]
struct Paths {
    found: BTreeSet<Module>,
    has_async: bool,
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"))
    })
}

impl Paths {
    fn of(source: &str) -> Self {
        let mut paths = Self::default();
        paths.visit_file(&syn::parse_file(source).expect("Rust"));
        paths
    }

    fn add_tree(&mut self, tree: &UseTree, mut before: Module) {
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.add_tree(&path.tree, before);
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.add_tree(tree, before.clone());
                }
            }
            UseTree::Name(name) => {
                before.extend(Some(name.ident.to_string()).filter(|name| name != "self"));
                self.found.insert(before);
            }
            UseTree::Rename(rename) => {
                before.extend(Some(rename.ident.to_string()).filter(|name| name != "self"));
                self.found.insert(before);
            }
            UseTree::Glob(_) => {
                self.found.insert(before);
            }
        }
    }

    fn add_tokens(&mut self, tokens: proc_macro2::TokenStream) {
        let mut path: Module = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                proc_macro2::TokenTree::Ident(name) => {
                    if colons < 2 {
                        self.found.insert(std::mem::take(&mut path));
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                proc_macro2::TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                other => {
                    if let proc_macro2::TokenTree::Group(group) = other {
                        self.add_tokens(group.stream());
                    }
                    self.found.insert(std::mem::take(&mut path));
                    colons = 0;
                }
            }
        }
        self.found.insert(path);
    }
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        if !is_test(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.add_tree(&item.tree, Vec::new());
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.found.insert(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    // `pub(super)` imports nothing.
    fn visit_visibility(&mut self, _visibility: &'ast Visibility) {}

    fn visit_macro(&mut self, called: &'ast Macro) {
        self.add_tokens(called.tokens.clone());
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        self.has_async |= signature.asyncness.is_some();
        visit::visit_signature(self, signature);
    }

    fn visit_expr_async(&mut self, block: &'ast syn::ExprAsync) {
        self.has_async = true;
        visit::visit_expr_async(self, block);
    }
}

/// A crate's files but for those of its tests, by module; `lib.rs` is the empty one.
fn sources(folder: &Path) -> BTreeMap<Module, String> {
    fn read(folder: &Path, module: &[String], into: &mut BTreeMap<Module, String>) {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.file_stem().and_then(|name| name.to_str()).expect("a name").to_owned();
            let module: Module = match name.as_str() {
                "lib" if module.is_empty() => Vec::new(),
                "tests" => continue,
                _ => [module, &[name]].concat(),
            };
            if path.is_dir() {
                read(&path, &module, into);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("text");
                into.entry(module).or_default().push_str(&text);
            }
        }
    }
    let mut found = BTreeMap::new();
    read(folder, &[], &mut found);
    found
}

/// The module that `path`, named in `module`, leads into; nothing outside of the crate.
fn resolve(path: &[String], module: &[String], modules: &BTreeSet<Module>) -> Option<Module> {
    let (first, rest) = path.split_first()?;
    let whole: Module = match first.as_str() {
        "crate" => rest.to_vec(),
        "self" => [module, rest].concat(),
        "super" => {
            let ups = path.iter().take_while(|name| *name == "super").count();
            let above = module.get(..module.len().checked_sub(ups)?)?;
            [above, path.get(ups..)?].concat()
        }
        _ => {
            let child = [module, std::slice::from_ref(first)].concat();
            modules.contains(&child).then(|| [module, path].concat())?
        }
    };
    (0..=whole.len())
        .rev()
        .filter_map(|length| whole.get(..length))
        .find_map(|part| modules.get(part))
        .cloned()
}

fn imports(sources: &BTreeMap<Module, String>) -> Imports {
    let modules: BTreeSet<Module> = sources.keys().cloned().collect();
    let of = |(module, source): (&Module, &String)| {
        let targets = Paths::of(source).found.into_iter().filter_map(|path| resolve(&path, module, &modules));
        (module.clone(), targets.filter(|target| target != module && !target.is_empty()).collect())
    };
    sources.iter().map(of).collect()
}

/// A way from a module back to itself, if there is one.
fn circle(imports: &Imports) -> Option<Vec<Module>> {
    fn walk(at: &Module, imports: &Imports, way: &mut Vec<Module>, done: &mut BTreeSet<Module>) -> bool {
        if way.contains(at) {
            way.push(at.clone());
            return true;
        }
        way.push(at.clone());
        for next in imports.get(at).into_iter().flatten() {
            if !done.contains(next) && walk(next, imports, way, done) {
                return true;
            }
        }
        done.insert(at.clone());
        way.pop();
        false
    }
    let mut done = BTreeSet::new();
    imports.keys().find_map(|from| {
        let mut way = Vec::new();
        walk(from, imports, &mut way, &mut done).then_some(way)
    })
}

/// The floors of a numbered list: which modules stand on each, lowest first.
fn floors(list: &str) -> Vec<BTreeSet<String>> {
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

/// Imports to a higher floor, and those between different modules of one floor.
fn upward(imports: &Imports, floors: &[BTreeSet<String>]) -> Vec<String> {
    let floor = |module: &Module| {
        let top = module.first().expect("a module");
        let floor = floors.iter().position(|names| names.contains(top));
        (floor.unwrap_or_else(|| panic!("`{top}` stands on no floor")), top.clone())
    };
    let mut found = Vec::new();
    for (module, targets) in imports.iter().filter(|(module, _)| !module.is_empty()) {
        for target in targets {
            let (from, to) = (floor(module), floor(target));
            if to.0 > from.0 || (to.0 == from.0 && to.1 != from.1) {
                found.push(format!("{} imports {}", module.join("::"), target.join("::")));
            }
        }
    }
    found
}

fn shared() -> BTreeMap<Module, String> {
    sources(&workspace().join("shared/src"))
}

#[test]
fn no_file_of_the_common_crate_imports_from_a_higher_floor() {
    let sources = shared();
    let floors = floors(&sources[&Vec::new()]);
    assert!(floors.len() <= FLOORS_MAX, "{floors:?}");
    let imports = imports(&sources);
    let count: usize = imports.values().map(BTreeSet::len).sum();
    assert!(count >= IMPORTS_MIN, "only {count} imports were understood");
    assert_eq!(upward(&imports, &floors), [""; 0]);
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    let mut folders = vec![workspace().join("shared/src")];
    for group in ["infra", "functions"] {
        let crates =
            fs::read_dir(workspace().join(group)).unwrap().map(|entry| entry.unwrap().path().join("src"));
        folders.extend(crates.filter(|folder| folder.is_dir()));
    }
    assert!(folders.len() > 30, "{folders:?}");
    for folder in folders {
        assert_eq!(circle(&imports(&sources(&folder))), None, "{}", folder.display());
    }
}

#[test]
fn values_wire_and_rules_know_no_aws_no_clock_and_nothing_that_waits() {
    for (module, source) in shared() {
        if !matches!(module.first().map(String::as_str), Some("models" | "wire" | "rules")) {
            continue;
        }
        let name = module.join("::");
        let paths = Paths::of(&source);
        assert!(!paths.has_async, "{name} is async");
        for path in paths.found {
            let is_forbidden =
                |name: &String| name.starts_with("aws_") || name == "SystemTime" || name == "Instant";
            assert!(!path.iter().any(is_forbidden), "{name} names {}", path.join("::"));
        }
    }
}

#[test]
fn only_requests_and_functions_know_the_gateway() {
    for (module, source) in shared() {
        if matches!(module.first().map(String::as_str), Some("request" | "function")) {
            continue;
        }
        let found = Paths::of(&source).found;
        assert!(
            !found.iter().any(|path| path.first().is_some_and(|name| name == "lambda_http")),
            "{module:?}"
        );
    }
}

/// The types and constants of a file that others may see.
fn visible(source: &str) -> Vec<String> {
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
fn matchmaking_shows_few_types_and_constants_outside_their_files() {
    let of_matchmaking = |module: &Module| module.first().is_some_and(|name| name == "matchmaking");
    let sources = shared().into_iter().filter(|(module, _)| of_matchmaking(module));
    let found: Vec<_> = sources.flat_map(|(_, source)| visible(&source)).collect();
    assert!((1..=MATCHMAKING_VISIBLE_MAX).contains(&found.len()), "{}: {found:?}", found.len());
    let all = "pub struct A; enum B {} pub(super) const C: u8 = 0; pub(crate) type D = u8; pub fn e() {} const F: u8 = 0;";
    assert_eq!(visible(all), ["A", "C", "D"]);
}

/// The structure in figures: `cargo test --test it the_structure_in_figures -- --nocapture`.
#[test]
fn the_structure_in_figures() {
    let sources = shared();
    let (imports, floors) = (imports(&sources), floors(&sources[&Vec::new()]));
    let is_flat = |module: &&Module| {
        let [name] = module.as_slice() else { return false };
        !sources.keys().any(|other| other.len() > 1 && other.first() == Some(name))
    };
    let flat = sources.keys().filter(is_flat).count();
    let is_of_matchmaking = |module: &Module| module.first().is_some_and(|name| name == "matchmaking");
    let of_matchmaking = sources.iter().filter(|(module, _)| is_of_matchmaking(module));
    let seen: usize = of_matchmaking.map(|(_, source)| visible(source).len()).sum();
    let words = |page: &str| fs::read_to_string(workspace().join(page)).unwrap().split_whitespace().count();
    let figures = [
        ("files of `shared`", sources.len(), usize::MAX),
        ("imports between them", imports.values().map(BTreeSet::len).sum(), usize::MAX),
        ("circles", usize::from(circle(&imports).is_some()), 0),
        ("imports up a floor", upward(&imports, &floors).len(), 0),
        ("floors", floors.len(), FLOORS_MAX),
        ("flat files in shared/src", flat, FLAT_FILES_MAX),
        ("types and constants seen outside their file in matchmaking", seen, MATCHMAKING_VISIBLE_MAX),
        ("words of ARCHITECTURE.md", words("ARCHITECTURE.md"), ARCHITECTURE_WORDS_MAX),
    ];
    for (what, figure, most) in figures {
        println!("{what}: {figure}");
        assert!(figure <= most, "{what}: {figure} is more than {most}");
    }
}

#[test]
fn every_form_of_import_is_understood() {
    let file = |source: &str| source.to_owned();
    let module = |path: &str| path.split("::").map(ToOwned::to_owned).collect::<Module>();
    let source = "
        use crate::{low::A, deep::{self, inner::{B as C, other}}};
        use super::sibling;
        use child::*;
        mod child;
        pub(in crate::only_visible) fn f(x: crate::typed::X) -> impl Into<crate::bound::Y> {
            let _ = crate::called::g::<crate::generic::Z>();
            self::own::h();
            tracing::info!(n = crate::in_macro::N, \"text\", crate::nested::call(super::above::M));
            vec![crate::listed::L]
        }
        #[derive(Debug)] struct S { field: Option<crate::field::F> }
        impl crate::implemented::T for S {}
        #[cfg(test)] mod tests { use crate::only_in_tests::U; }
        // crate::comment::V
        const TEXT: &str = \"crate::text::W\";
        use std::fmt; use serde::de;
    ";
    let names = [
        "low",
        "deep",
        "deep::inner",
        "deep::inner::other",
        "top",
        "top::sibling",
        "top::here",
        "top::here::child",
        "top::here::own",
        "top::above",
        "typed",
        "bound",
        "called",
        "generic",
        "in_macro",
        "nested",
        "listed",
        "field",
        "implemented",
        "only_in_tests",
        "comment",
        "text",
        "std",
        "serde",
    ];
    let mut sources: BTreeMap<Module, String> =
        names.iter().map(|name| (module(name), String::new())).collect();
    sources.insert(module("top::here"), file(source));
    let expected = [
        "bound",
        "called",
        "deep",
        "deep::inner",
        "deep::inner::other",
        "field",
        "generic",
        "implemented",
        "in_macro",
        "listed",
        "low",
        "nested",
        "top::above",
        "top::here::child",
        "top::here::own",
        "top::sibling",
        "typed",
    ];
    let found: Vec<_> =
        imports(&sources)[&module("top::here")].iter().map(|module| module.join("::")).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_circle_and_an_upward_import_are_found() {
    let module = |name: &str| vec![name.to_owned()];
    let texts = [
        ("one", "use crate::two::A;"),
        ("two", "fn f() { crate::three::g() }"),
        ("three", "use crate::one;"),
    ];
    let sources = texts.into_iter().map(|(name, text)| (module(name), text.to_owned())).collect();
    let imports = imports(&sources);
    assert_eq!(circle(&imports).map(|way| way.len()), Some(4));
    let floors = floors("//! text\n//! 1. [`one`]: x\n//! 2. [`two`], [`three`]: y");
    assert_eq!(upward(&imports, &floors), ["one imports two", "two imports three"]);
    let without_one: Imports = imports.into_iter().filter(|(from, _)| *from != module("one")).collect();
    assert_eq!(circle(&without_one), None);
}
