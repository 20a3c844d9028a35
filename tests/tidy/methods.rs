//! The types of a crate with the methods of each, over all files that have an `impl` of it: who may call a
//! method, and what it calls of its own type.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::{
    Expr, ExprMethodCall, ImplItem, Item, ItemImpl, ItemMod, Macro, Type, Visibility,
    visit::{self, Visit},
};

use crate::sources::{Module, Paths, is_test, resolve};

/// One method, or one function of a type.
#[derive(Debug)]
pub struct Method {
    pub name: String,
    /// The file that defines it.
    pub file: Module,
    /// Whether other files may call it: `pub(super)` and wider.
    pub is_visible: bool,
    /// What it calls of its own type, in the order of the text: `self.name()`, and `Self::name` wherever it
    /// stands.
    pub calls: Vec<String>,
}

/// A type that the crate defines.
#[derive(Debug, Default)]
pub struct Methods {
    pub methods: Vec<Method>,
    /// Files with an `impl` of the type that is of no trait.
    pub files: BTreeSet<Module>,
}

impl Methods {
    /// The methods of a name: several where traits have the same.
    pub fn named(&self, name: &str) -> impl Iterator<Item = &Method> {
        self.methods.iter().filter(move |method| method.name == name)
    }
}

/// A type by its home, which is the file that defines it, and its name.
pub type TypeName = (Module, String);

/// The items of a file, those of modules within it too, but for its tests.
#[derive(Default)]
struct Items<'ast> {
    defined: BTreeSet<String>,
    impls: Vec<&'ast ItemImpl>,
}

impl<'ast> Visit<'ast> for Items<'ast> {
    fn visit_item(&mut self, item: &'ast Item) {
        match item {
            Item::Enum(item) => drop(self.defined.insert(item.ident.to_string())),
            Item::Struct(item) => drop(self.defined.insert(item.ident.to_string())),
            Item::Impl(item) => self.impls.push(item),
            Item::Mod(_) => visit::visit_item(self, item),
            _ => {}
        }
    }

    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        if !is_test(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }
}

/// The calls of one method.
struct Calls<'a> {
    of: &'a str,
    found: Vec<String>,
}

/// Whether an expression is `self`, borrowed or in parentheses too.
fn is_self(expression: &Expr) -> bool {
    match expression {
        Expr::Path(path) => path.path.is_ident("self"),
        Expr::Paren(inner) => is_self(&inner.expr),
        Expr::Reference(inner) => is_self(&inner.expr),
        Expr::Unary(inner) => is_self(&inner.expr),
        _ => false,
    }
}

impl Calls<'_> {
    fn add_tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let text = tokens.iter().map(|token| match token {
            TokenTree::Group(_) => String::new(),
            other => other.to_string(),
        });
        let text: Vec<String> = text.collect();
        for (at, token) in tokens.iter().enumerate() {
            if let TokenTree::Group(group) = token {
                self.add_tokens(group.stream());
                continue;
            }
            let before: Vec<&str> = text[at.saturating_sub(3)..at].iter().map(String::as_str).collect();
            let is_called = matches!(tokens.get(at + 1), Some(TokenTree::Group(_)));
            let of_self = is_called && matches!(before[..], [.., "self", "."]);
            if of_self || matches!(before[..], [first, ":", ":"] if first == "Self" || first == self.of) {
                self.found.push(text[at].clone());
            }
        }
    }
}

impl<'ast> Visit<'ast> for Calls<'_> {
    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        self.visit_expr(&call.receiver);
        if is_self(&call.receiver) {
            self.found.push(call.method.to_string());
        }
        call.args.iter().for_each(|argument| self.visit_expr(argument));
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<_> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if let [of, name] = &names[..]
            && (of == "Self" || of == self.of)
        {
            self.found.push(name.clone());
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'ast Macro) {
        self.add_tokens(called.tokens.clone());
    }
}

/// Every type with an `impl` in the sources. One that a macro defines, or another crate, is left out.
pub fn types(sources: &BTreeMap<Module, String>) -> BTreeMap<TypeName, Methods> {
    let parsed: BTreeMap<_, _> =
        sources.iter().map(|(module, source)| (module, syn::parse_file(source).expect("Rust"))).collect();
    let items = parsed.iter().map(|(module, file)| {
        let mut items = Items::default();
        items.visit_file(file);
        (*module, items)
    });
    let items: BTreeMap<&Module, Items<'_>> = items.collect();
    let modules: BTreeSet<Module> = sources.keys().cloned().collect();
    let mut types: BTreeMap<TypeName, Methods> = BTreeMap::new();
    for (module, of_file) in &items {
        let paths = Paths::of_file(&parsed[*module]).found;
        for of_type in &of_file.impls {
            let Some(name) = type_name(&of_type.self_ty) else { continue };
            let defines =
                |module: &Module| items.get(module).is_some_and(|items| items.defined.contains(&name));
            let imported = paths.iter().filter(|path| path.last() == Some(&name));
            let imported = imported.filter_map(|path| resolve(path, module, &modules));
            let mut homes = std::iter::once((*module).clone()).chain(imported).filter(defines);
            if let Some(home) = homes.next() {
                types.entry((home, name.clone())).or_default().add(module, &name, of_type);
            }
        }
    }
    types
}

fn type_name(of: &Type) -> Option<String> {
    let Type::Path(path) = of else { return None };
    path.path.segments.last().map(|segment| segment.ident.to_string())
}

impl Methods {
    fn add(&mut self, file: &Module, name: &str, of_type: &ItemImpl) {
        if of_type.trait_.is_none() {
            self.files.insert(file.clone());
        }
        for item in &of_type.items {
            let ImplItem::Fn(method) = item else { continue };
            let mut calls = Calls { of: name, found: Vec::new() };
            calls.visit_block(&method.block);
            self.methods.push(Method {
                name: method.sig.ident.to_string(),
                file: file.clone(),
                is_visible: !matches!(method.vis, Visibility::Inherited),
                calls: calls.found,
            });
        }
    }
}

#[test]
fn every_form_of_call_is_understood() {
    let module = |path: &str| path.split("::").map(ToOwned::to_owned).collect::<Module>();
    let home = "
        pub struct Maker; enum Foreign {}
        impl Maker {
            pub async fn find(&self) -> u8 {
                self.first(self.second()).await?;
                let third = || (&self).third().map(Self::fourth);
                tracing::info!(n = self.fifth(), \"text\", nested(Maker::sixth(1)));
                if self.field > 0 { self.field.not(); other.nor(); Other::nor(); self.seventh::<u8>() } else { 0 }
            }
            fn hidden(&self) {}
        }
        impl Clone for Maker { fn clone(&self) -> Self { self.hidden() } }
        #[cfg(test)] mod tests { impl Maker { fn only_in_tests() {} } }
    ";
    let away = "
        use super::home::Maker;
        impl Maker { pub(super) fn first(&self) {} }
        impl<'a> Option<'a> { fn of_another_crate(&self) {} }
    ";
    let same_name = "struct Maker; impl Maker { fn apart(&self) {} }";
    let sources =
        [("m::home", home), ("m::away", away), ("m::same", same_name), ("m", "mod home; mod away;")];
    let types = types(&sources.map(|(name, text)| (module(name), text.to_owned())).into());
    let names: Vec<_> = types.keys().map(|(home, name)| format!("{}::{name}", home.join("::"))).collect();
    assert_eq!(names, ["m::home::Maker", "m::same::Maker"]);
    let maker = &types[&(module("m::home"), "Maker".to_owned())];
    assert_eq!(maker.files, [module("m::away"), module("m::home")].into());
    let methods: BTreeSet<_> = maker.methods.iter().map(|it| (it.name.as_str(), it.is_visible)).collect();
    assert_eq!(methods, [("clone", false), ("find", true), ("first", true), ("hidden", false)].into());
    let calls = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh"];
    assert_eq!(maker.named("find").next().unwrap().calls, calls);
    assert_eq!(maker.named("clone").next().unwrap().calls, ["hidden"]);
}
