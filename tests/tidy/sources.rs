//! Source files of Rust, and what imports what among them: `use` lines, and qualified paths wherever they
//! stand, in macros too. Their tests are left out.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use syn::{
    ItemMod, ItemUse, Macro, Meta, Token, UseTree, Visibility,
    punctuated::Punctuated,
    visit::{self, Visit},
};

use crate::repository::workspace;

/// A module as the names on the way to it.
pub type Module = Vec<String>;
/// The modules that each module imports.
pub type Imports = BTreeMap<Module, BTreeSet<Module>>;

/// The paths that one file names.
#[derive(Default)]
pub struct Paths {
    pub found: BTreeSet<Module>,
    pub has_async: bool,
}

/// Whether only tests are built with these attributes: `cfg(test)`, or `cfg(all(...))` with `test` in it.
pub fn is_test(attributes: &[syn::Attribute]) -> bool {
    fn needs_test(condition: &Meta) -> bool {
        match condition {
            Meta::Path(path) => path.is_ident("test"),
            Meta::List(list) if list.path.is_ident("all") => list
                .parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)
                .is_ok_and(|conditions| conditions.iter().any(needs_test)),
            _ => false,
        }
    }
    let conditions = attributes.iter().filter(|attribute| attribute.path().is_ident("cfg"));
    conditions.filter_map(|attribute| attribute.parse_args().ok()).any(|condition| needs_test(&condition))
}

impl Paths {
    pub fn of(source: &str) -> Self {
        Self::of_file(&syn::parse_file(source).expect("Rust"))
    }

    pub fn of_file(file: &syn::File) -> Self {
        let mut paths = Self::default();
        paths.visit_file(file);
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

    /// A path in a macro. `crate` alone is that of `pub(crate)`, which imports nothing.
    fn add_path(&mut self, path: Module) {
        if path != ["crate"] {
            self.found.insert(path);
        }
    }

    fn add_tokens(&mut self, tokens: proc_macro2::TokenStream) {
        let mut path: Module = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                proc_macro2::TokenTree::Ident(name) => {
                    if colons < 2 {
                        self.add_path(std::mem::take(&mut path));
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                proc_macro2::TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                other => {
                    if let proc_macro2::TokenTree::Group(group) = other {
                        self.add_tokens(group.stream());
                    }
                    self.add_path(std::mem::take(&mut path));
                    colons = 0;
                }
            }
        }
        self.add_path(path);
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

/// A crate's files but for those of its tests, by module; its root, `lib.rs`, is the empty one.
pub fn sources(folder: &Path) -> BTreeMap<Module, String> {
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
pub fn resolve(path: &[String], module: &[String], modules: &BTreeSet<Module>) -> Option<Module> {
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

pub fn imports(sources: &BTreeMap<Module, String>) -> Imports {
    let modules: BTreeSet<Module> = sources.keys().cloned().collect();
    let of = |(module, source): (&Module, &String)| {
        let targets = Paths::of(source).found.into_iter().filter_map(|path| resolve(&path, module, &modules));
        (module.clone(), targets.filter(|target| target != module).collect())
    };
    sources.iter().map(of).collect()
}

/// A module for a reader.
pub fn name(module: &Module) -> String {
    if module.is_empty() { "lib.rs".to_owned() } else { module.join("::") }
}

/// The folders of source of every crate in these folders.
pub fn crates(groups: &[&str]) -> Vec<PathBuf> {
    let groups = groups.iter().map(|group| fs::read_dir(workspace().join(group)).expect("a folder"));
    let folders = groups.flatten().map(|entry| entry.expect("an entry").path().join("src"));
    folders.filter(|folder| folder.is_dir()).collect()
}

/// The common crate.
pub fn shared() -> BTreeMap<Module, String> {
    sources(&workspace().join("shared/src"))
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
