//! The model judged by the store: each write of the model beside the call that the store sends for it.
//!
//! A scene has small random tables. The store's method sends its write over a link that captures it; the
//! embedded database and the capacity benchmark's evaluator make it where the items are those of the tables.
//! The model makes its own write in the same tables. Both have to agree on whether it is made, on the part
//! that refuses it, and on every attribute afterwards, through the one mapping in `mapping`. What the model
//! leaves out is named in `mutations`: `LEFT_OUT`, `UNMAPPED` and `UNSEEN`.

mod mapping;
mod scenes;
mod wire;

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet, VecDeque},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, LazyLock, Mutex},
};

use capacity::database::Database;
use muster_local::{
    emulator::{
        in_process::{InProcess, WireAnswer},
        link::{Call, patient_client_over},
    },
    stack::{TEMPLATE, table_names},
    template::Template,
};
use serde_json::Value;
use shared::{
    models::availability::Availability as StoredAvailability, store::client::Store as StoreOfItems,
};
use tokio::sync::Notify;

use self::{
    mapping::Item,
    scenes::{Dice, KINDS, Scene},
    wire::{Capturing, Change, Script, changed, changes},
};
use crate::{
    State,
    conditions::{self, Condition, Table, Write},
    mutations::{LEFT_OUT, UNSEEN, left_out},
    tables::{Access, LOBBIES, Rules, SERVERS},
    writes::{Bits, Outcome, Part, Seen, Sent, Store, bit},
};

/// Scenes of each kind of write.
const SCENES: usize = 240;

/// Writes that nothing refuses.
const UNCONDITIONAL: [&str; 2] = ["note how long a start took", "note a failed start"];

macro_rules! variants {
    ($($name:ident)*) => {
        /// The model's writes, and the name of one: without a new one here, the tests do not compile.
        const VARIANTS: &[&str] = &[$(stringify!($name),)*];

        const fn variant(sent: &Sent) -> &'static str {
            match sent { $(Sent::$name { .. } => stringify!($name),)* }
        }
    };
}

variants! {
    TakeFree TakeParty TakeOver HideFull HideSilent Ready Close Reopen MakePrivate MakePublic Drain Connect Leave Keep ChangeTokens ExtendLease ShowRevived
    End Create Begin Draw Register AllotAhead Heartbeat ShowServer Deregister HideServer LetGo TakeBack
    BeginNursery DrawInNursery NoteStart NoteFailure BlockNursery FailLaunch Retire StopIdle NoteIdle NoteHandle NoteEnded OpenOnLaunched LetLaunchedGo
}

/// A scene whose call was captured.
struct Case {
    kind: &'static str,
    rules: Rules,
    before: State,
    sent: Sent,
    call: Call,
    parts: Vec<wire::Part>,
    /// The outcomes that the store's result allows; any when there are none.
    allowed: Vec<Outcome>,
}

/// Every case, the same in each run.
static CASES: LazyLock<Vec<Case>> = LazyLock::new(|| {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let script = Script { prior: VecDeque::new(), captured: None, items: Box::new(|_| Vec::new()) };
    let link = Arc::new(Capturing {
        database: embedded(),
        script: Mutex::new(script),
        went_on: Arc::new(Notify::new()),
    });
    let store = StoreOfItems::new(patient_client_over(Arc::clone(&link) as _), table_names());
    runtime.unwrap().block_on(async {
        let mut cases = Vec::new();
        for (number, (kind, draw)) in KINDS.iter().enumerate() {
            let seeds = (0_u64..).map(|seed| seed * 1_000 + number as u64);
            for scene in seeds.filter_map(|seed| draw(&mut Dice::new(seed))).take(SCENES) {
                cases.push(captured(kind, scene, &link, store.clone()).await);
            }
        }
        cases
    })
});

fn embedded() -> InProcess {
    InProcess::new(&Template::parse(TEMPLATE).unwrap().tables).unwrap().without_retries()
}

fn ideal() -> Database {
    Database::ideal(&Template::parse(TEMPLATE).unwrap().tables)
}

/// Has the store send the write of `scene`.
async fn captured(kind: &'static str, scene: Scene, link: &Capturing, store: StoreOfItems) -> Case {
    let Scene { rules, before, sent, prior, send } = scene;
    mapping::check_both_ways(&rules, &before);
    let tables = before.clone();
    let items = Box::new(move |parts: &[wire::Part]| items(&rules, &tables, parts));
    *link.script.lock().unwrap() = Script { prior: prior.into(), captured: None, items };
    let allowed = tokio::select! {
        biased;
        allowed = send(store) => allowed,
        () = link.went_on.notified() => Vec::new(),
    };
    let call = link.script.lock().unwrap().captured.take();
    let call = call.unwrap_or_else(|| panic!("{kind}: the store sent no write for {sent:?} in {before:?}"));
    let parts = wire::parts(&call);
    Case { kind, rules, before, sent, call, parts, allowed }
}

/// The items of a call's parts, as `state` has them.
fn items(rules: &Rules, state: &State, parts: &[wire::Part]) -> wire::Items {
    parts.iter().map(|part| mapping::item(rules, state, part.table, &part.key)).collect()
}

/// What a database made of a case.
type Made = (WireAnswer, wire::Items);

/// What `database` makes of `call` in place of the case's own.
fn make(case: &Case, call: &Call, database: wire::Database<'_>) -> Made {
    wire::make(database, call, &case.parts, &items(&case.rules, &case.before, &case.parts))
}

/// The model's result for a case, by `rules` and without some conditions.
fn applied(case: &Case, rules: &Rules, without: Bits) -> (Outcome, State) {
    let (seen, mut state) = (Seen::default(), case.before.clone());
    let outcome = Store { rules, without, seen: &seen }.apply(&mut state, &case.sent);
    (outcome, state)
}

/// Whether the write was made, if the model by `rules` agrees with a database, else the difference.
fn judge(case: &Case, (answer, after): &Made, rules: &Rules, without: Bits) -> Result<bool, String> {
    let Case { sent, parts, allowed, .. } = case;
    let (outcome, state) = applied(case, rules, without);
    let kind = |at: usize| match parts[at].table {
        Table::Lobbies => Part::Lobby,
        Table::Servers => Part::Server,
        _ if matches!(sent, Sent::Begin { .. } | Sent::Draw { .. }) => Part::Head,
        _ if parts[at].key.values().any(|key| key.to_string().contains("nursery/")) => Part::Nursery,
        _ => Part::Ledger,
    };
    let refused: Vec<Part> = wire::refusals(answer)?.into_iter().map(kind).collect();
    // Of several parts that refuse, the one that the store reads first.
    let order = match sent {
        Sent::Create(creation) if !creation.requests => {
            [Part::Lobby, Part::Ledger, Part::Server, Part::Head, Part::Nursery]
        }
        _ => [Part::Lobby, Part::Server, Part::Head, Part::Ledger, Part::Nursery],
    };
    let decides = order.into_iter().find(|part| refused.contains(part));
    let is_same = match outcome {
        Outcome::Made => decides.is_none(),
        Outcome::Refused(part) => decides == Some(part),
        Outcome::Bug(_) => decides.is_some() && allowed.contains(&outcome),
    };
    if !is_same || !allowed.is_empty() && !allowed.contains(&outcome) {
        return Err(format!("the model: {outcome:?}; the database: {refused:?}; the store: {allowed:?}"));
    }
    if is_changed_elsewhere(&case.before, &state, parts) {
        return Err(format!("the model changes what no part of the call names: {state:?}"));
    }
    for ((part, after), expected) in parts.iter().zip(after).zip(items(&case.rules, &state, parts)) {
        let known = |item: Option<Item>| mapping::known(part.table, item).unwrap_or_default();
        let (expected, after) = (known(expected), known(after.clone()));
        let names: BTreeSet<&String> = expected.keys().chain(after.keys()).collect();
        if let Some(name) = names.into_iter().find(|name| expected.get(*name) != after.get(*name)) {
            let (expected, after) = (expected.get(name), after.get(name));
            return Err(format!("{:?}.{name}: the model: {expected:?}; the store: {after:?}", part.table));
        }
    }
    Ok(outcome == Outcome::Made)
}

/// Whether the model's write changed an item that the store's does not name.
fn is_changed_elsewhere(before: &State, after: &State, parts: &[wire::Part]) -> bool {
    let keys: Vec<&str> = parts.iter().flat_map(|part| part.key.values()).filter_map(Value::as_str).collect();
    let is_named = |start: &str| keys.iter().any(|key| key.starts_with(start));
    let is_lobby = |at| before.lobbies[at] != after.lobbies[at] && !is_named(mapping::lobby_id(at).as_str());
    let is_server =
        |at| before.servers[at] != after.servers[at] && !is_named(&mapping::server_key(at).to_string());
    (0..LOBBIES).any(is_lobby)
        || (0..SERVERS).any(is_server)
        || before.head != after.head && !is_named("head/")
        || before.ledger != after.ledger && !is_named("allotted/")
        || before.on_demand.counted != after.on_demand.counted && !is_named("allotted/")
        || before.on_demand.nursery != after.on_demand.nursery && !is_named("nursery/")
}

#[test]
fn every_write_of_the_model_does_what_the_store_sends() {
    let (embedded, ideal) = (embedded(), ideal());
    let embedded = |operation: &str, body: &[u8]| embedded.answer(operation, body);
    let ideal = |operation: &str, body: &[u8]| ideal.answer(operation, body);
    let mut counts = BTreeMap::<&str, [u32; 2]>::new();
    let mut differences = BTreeMap::<&str, Vec<String>>::new();
    for case in CASES.iter() {
        let judged = [&embedded as wire::Database<'_>, &ideal]
            .map(|database| judge(case, &make(case, &case.call, database), &case.rules, Bits::default()));
        match judged {
            [Ok(is_made), Ok(_)] => counts.entry(case.kind).or_default()[usize::from(!is_made)] += 1,
            [Err(what), _] | [_, Err(what)] => {
                differences.entry(case.kind).or_default().push(format!("{what}\n{}", described(case)));
            }
        }
    }
    for (kind, [made, refused]) in &counts {
        println!("{kind}: {made} written, {refused} refused");
    }
    for (kind, all) in &differences {
        println!("{kind}: {} differences, the first: {}", all.len(), all[0]);
    }
    assert!(differences.is_empty(), "{} kinds of writes differ", differences.len());
    let is_both = |kind: &str| {
        let is_refused = |refused: u32| refused > 0 || UNCONDITIONAL.contains(&kind);
        counts.get(kind).is_some_and(|[made, refused]| *made > 0 && is_refused(*refused))
    };
    assert!(KINDS.iter().all(|(kind, _)| is_both(kind)), "never written or never refused: {counts:?}");
    let bugs = CASES.iter().filter_map(|case| match applied(case, &case.rules, Bits::default()).0 {
        Outcome::Bug(what) => Some(what),
        _ => None,
    });
    assert_eq!(bugs.collect::<BTreeSet<_>>().len(), 2, "both failures that no condition stands for");
    let sent: BTreeSet<&str> = CASES.iter().map(|case| variant(&case.sent)).collect();
    assert_eq!(sent, VARIANTS.iter().copied().collect(), "a write of the model has no scene");
}

fn described(case: &Case) -> String {
    let Case { rules, before: State { lobbies, servers, head, ledger, .. }, sent, call, .. } = case;
    let lobby = lobbies.iter().find(|lobby| lobby.is_there());
    let body = String::from_utf8_lossy(&call.body);
    format!("{sent:?}\n{rules:?}\n{lobby:?}\n{servers:?}\n{head:?} {ledger}\n{body}")
}

#[test]
fn a_call_that_differs_from_the_model_in_anything_is_noticed() {
    let mut planted = BTreeMap::<(Write, Change), Vec<&Case>>::new();
    for case in CASES.iter() {
        for change in changes(&case.call) {
            planted.entry(change).or_default().push(case);
        }
    }
    let database = RefCell::new(ideal());
    let on = |operation: &str, body: &[u8]| {
        let answer = catch_unwind(AssertUnwindSafe(|| database.borrow().answer(operation, body)));
        answer.unwrap_or_else(|_| {
            // It made nothing of the expression, and may still hold a transaction's items.
            *database.borrow_mut() = ideal();
            wire::unreadable()
        })
    };
    let is_noticed = |case: &Case, write: Write, change: &Change| {
        let call = changed(&case.call, write, change).unwrap();
        judge(case, &make(case, &call, &on), &case.rules, Bits::default()).is_err()
    };
    let unnoticed = planted
        .iter()
        .filter(|((write, change), cases)| !cases.iter().any(|case| is_noticed(case, *write, change)));
    let unnoticed: BTreeSet<_> = unnoticed.map(|(planted, _)| planted.clone()).collect();
    println!("{} differences planted, {} of them in what the model has not", planted.len(), unnoticed.len());
    let is_unseen = |write: Write, change: &Change| {
        let is_left_out =
            LEFT_OUT.iter().any(|(known, clause, _)| *known == write && change.is_named(clause));
        is_left_out || UNSEEN.iter().any(|(known, what, _)| *known == write && change.is_named(what))
    };
    let expected = planted.into_keys().filter(|(write, change)| is_unseen(*write, change));
    assert_eq!(unnoticed, expected.collect());
}

#[test]
fn a_model_that_differs_from_the_store_in_anything_is_noticed() {
    let database = ideal();
    let on = |operation: &str, body: &[u8]| database.answer(operation, body);
    let made: Vec<(&Case, Made)> = CASES.iter().map(|case| (case, make(case, &case.call, &on))).collect();
    let notices = |alter: &dyn Fn(&mut Rules), without: Bits| {
        made.iter().any(|(case, made)| {
            let mut rules = case.rules;
            alter(&mut rules);
            let does_other = applied(case, &rules, without) != applied(case, &case.rules, Bits::default());
            does_other && judge(case, made, &rules, without).is_err()
        })
    };
    let conditions = conditions::all().into_iter().filter(|condition| left_out(*condition).is_none());
    let unnoticed: Vec<Condition> = conditions.filter(|known| !notices(&|_| (), bit(*known))).collect();
    let is_unseen = |known: &Condition| {
        UNSEEN.iter().any(|(write, what, _)| (*write, *what) == (known.write, known.clause))
    };
    assert!(unnoticed.iter().all(is_unseen), "{unnoticed:?}");
    type Alter = fn(&mut Rules);
    let rules: [(&str, Alter); 6] = [
        ("seats for finds", |rules| rules.max_players += 1),
        ("seats for joins", |rules| rules.max_direct += 1),
        ("seats for parties", |rules| rules.max_party += 1),
        ("time to become ready", |rules| rules.starting_max += 1),
        ("idle time of a new lobby", |rules| rules.idle += 1),
        ("window of a burst", |rules| rules.window += 1),
    ];
    for (name, alter) in rules {
        assert!(notices(&alter, Bits::default()), "one too many is not noticed: {name}");
    }
}

#[test]
fn the_model_judges_lobbies_and_servers_as_the_store_does() {
    let mut judged = BTreeSet::new();
    for Case { rules, before: State { lobbies, servers, now, .. }, .. } in CASES.iter() {
        let at = mapping::time(*now);
        for lobby in lobbies.iter().filter(|lobby| lobby.is_there()) {
            let stored = mapping::lobby(rules, 0, lobby);
            assert_eq!(mapping::time(lobby.first_lapse(rules)), stored.first_lapse(), "{rules:?} {lobby:?}");
            assert_eq!(usize::from(lobby.held(*now)), stored.held_seats(at), "{lobby:?} at {now}");
            let cause = stored.end_cause(at);
            let modelled = lobby.end_cause(rules, *now).map(mapping::cause);
            assert_eq!(modelled, cause, "{rules:?} {lobby:?} at {now}");
            judged.insert(format!("{cause:?}"));
            let cases = [Access::Find(0), Access::Direct].map(|access| [1, 2].map(|seats| (access, seats)));
            for (access, seats) in cases.into_iter().flatten() {
                let mut availability = stored.availability(&mapping::access(access), seats.into(), at);
                if let StoredAvailability::TakeOver(seats) = &mut availability {
                    seats.sort();
                }
                let modelled = mapping::availability(lobby.availability(rules, access, seats, *now));
                let is_same = match &modelled {
                    Some(modelled) => *modelled == availability,
                    None => matches!(availability, StoredAvailability::Refused(_)),
                };
                assert!(
                    is_same,
                    "{modelled:?}, {availability:?}: {rules:?} {access:?} {seats} {lobby:?} at {now}"
                );
                judged.insert(format!("{availability:?}"));
            }
        }
        for server in servers.iter().filter(|server| server.is_there()) {
            let stored = mapping::server(0, server);
            assert_eq!(server.fits(*now), stored.fits(&mapping::parsed("arena"), at), "{server:?} at {now}");
            for cap in [1, 2, 3, 128, 200] {
                let rules = Rules { block: cap / 64, ..*rules };
                let modelled = server.next_block(&rules, cap).map(u32::from);
                assert_eq!(modelled, stored.next_block(cap.into()), "{server:?} {cap}");
            }
        }
    }
    assert!(judged.len() > 12, "{judged:?}");
}
