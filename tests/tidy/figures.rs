//! The structure of the common crate in figures, each with a limit: floors, visible methods, moves.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    floors::{floors, visible},
    limits::misfit,
    methods::{Methods, TypeName, types},
    sources::{Module, imports, shared},
};

const FLOORS_MAX: usize = 12;
/// Files that are of no folder.
const FLAT_FILES_MAX: usize = 1;
/// Types and constants of matchmaking that are visible outside their file: what a reader has to learn.
const MATCHMAKING_TYPES_MAX: usize = 30;
/// Methods of all types of matchmaking that other files may call.
const MATCHMAKING_METHODS_MAX: usize = 106;
/// Methods of one type that other files may call, for the types with the most.
const METHODS_MAX: [(&str, usize); 4] = [("Matchmaker", 26), ("Store", 156), ("Lobby", 35), ("Seeker", 27)];
/// The same for every other type.
const METHODS_OF_OTHERS_MAX: usize = 24;
/// Moves of a reader between the files of a find.
const MOVES_MAX: usize = 47;

/// The way of a reader through the methods of one type.
#[derive(Debug, Default, PartialEq, Eq)]
struct Way {
    methods: BTreeSet<String>,
    files: BTreeSet<Module>,
    moves: usize,
}

impl Way {
    /// Reads `start` and all that it calls of its own type, in the order of the text, the body of each method
    /// once.
    ///
    /// Opening the first file is a move. So is each call of a method that another file defines, even of one
    /// that was read before, and each return from it.
    fn through(of: &Methods, start: &str) -> Self {
        let mut way = Self { moves: 1, ..Self::default() };
        way.enter(of, start);
        way
    }

    fn enter(&mut self, of: &Methods, name: &str) {
        if !self.methods.insert(name.to_owned()) {
            return;
        }
        for method in of.named(name) {
            self.files.insert(method.file.clone());
            for called in method.calls.iter().filter_map(|name| of.named(name).next()) {
                if called.file != method.file {
                    self.moves += 2;
                }
                self.enter(of, &called.name);
            }
        }
    }
}

/// How many methods of each type other files may call, over all files of the type; the most first.
fn visible_methods(types: &BTreeMap<TypeName, Methods>) -> Vec<(usize, &TypeName)> {
    let count = |of: &Methods| of.methods.iter().filter(|method| method.is_visible).count();
    let mut counts: Vec<_> = types.iter().map(|(name, of)| (count(of), name)).collect();
    counts.sort_by(|one, other| other.cmp(one));
    counts
}

/// Prints the figures, too: `cargo test -p tidy in_figures -- --nocapture`.
#[test]
fn the_structure_in_figures_keeps_its_limits() {
    let sources = shared();
    let (floors, types) = (floors(&sources[&Vec::new()]), types(&sources));
    let is_flat = |module: &&Module| {
        let [name] = module.as_slice() else { return false };
        !sources.keys().any(|other| other.len() > 1 && other.first() == Some(name))
    };
    let of_matchmaking = |module: &Module| module.first().is_some_and(|name| name == "matchmaking");
    let seen = sources.iter().filter(|(module, _)| of_matchmaking(module));
    let seen: usize = seen.map(|(_, source)| visible(source).len()).sum();
    let methods = visible_methods(&types);
    let in_matchmaking = methods.iter().filter(|(_, (home, _))| of_matchmaking(home));
    let (_, matchmaker) = types.iter().find(|((_, name), _)| name == "Matchmaker").expect("a matchmaker");
    let way = Way::through(matchmaker, "find");
    println!("files of `shared`: {}", sources.len());
    println!("imports between them: {}", imports(&sources).values().map(BTreeSet::len).sum::<usize>());
    println!("methods and files of a find: {}, {}", way.methods.len(), way.files.len());
    let mut figures = vec![
        ("floors", floors.len(), FLOORS_MAX),
        ("flat files in shared/src", sources.keys().filter(is_flat).count(), FLAT_FILES_MAX),
        ("types and constants of matchmaking seen outside their file", seen, MATCHMAKING_TYPES_MAX),
        (
            "methods in matchmaking seen outside their file",
            in_matchmaking.map(|(count, _)| count).sum(),
            MATCHMAKING_METHODS_MAX,
        ),
        ("moves of a find between files", way.moves, MOVES_MAX),
    ];
    for (name, most) in METHODS_MAX {
        let count = methods.iter().find(|(_, (_, other))| other == name).expect("a type").0;
        figures.push((name, count, most));
    }
    let is_listed = |name: &str| METHODS_MAX.iter().any(|(listed, _)| *listed == name);
    let (most, (_, name)) = methods.iter().find(|(_, (_, name))| !is_listed(name)).expect("a type");
    figures.push((name, *most, METHODS_OF_OTHERS_MAX));
    figures.iter().for_each(|(what, figure, limit)| println!("{what}: {figure} of {limit}"));
    let misfits = figures.iter().filter_map(|(what, figure, limit)| misfit(what, *figure, *limit, 1));
    assert_eq!(misfits.collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn moves_and_visible_methods_are_counted_over_all_files_of_a_type() {
    let texts = [
        (
            "home",
            "pub struct Maker; impl Maker {
                pub fn find(&self) { self.look(); self.own(self.take()); self.look(); }
                fn own(&self, n: u8) { self.own(n) }
                pub fn apart(&self) {}
            }",
        ),
        ("look", "use crate::home::Maker; impl Maker { pub(super) fn look(&self) { self.take(); } }"),
        ("take", "use crate::home::Maker; impl Maker { pub(crate) fn take(&self) -> u8 { self.own(1); 0 } }"),
    ];
    let sources = texts.into_iter().map(|(name, text)| (vec![name.to_owned()], text.to_owned()));
    let types = types(&sources.collect());
    let [(visible, name)] = visible_methods(&types)[..] else { panic!("one type") };
    assert_eq!((visible, name.1.as_str()), (4, "Maker"));
    let way = Way::through(&types[name], "find");
    // In and back: find to look twice, look to take, take to own, find to take.
    assert_eq!((way.methods.len(), way.files.len(), way.moves), (4, 3, 11));
}
