//! What can be seen from outside: lists, statistics, regions.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::future::join_all;
use harness::{Answer, TestClock, TestGame, TestStack};
use http::Method;
use muster_local::emulator::link::{Call, Carried, Link, patient_client_over};
use serde_json::{Value, json};
use shared::{
    auth::settings::SettingsCache,
    base::ambient::Timestamp,
    function::{config::Environment, instance::Instance},
    models::{availability::Access, ids::SeatId, seats::Seats, tag_digests::TagDigests},
    overview::Overview,
    rules::pages::PageRequest,
    store::{
        lobbies::BY_SERVER_INDEX,
        meter::Meter,
        seats::{Hiding, PartyCapacity, SeatClaim, SeatOutcome},
        statistics::{COUNTING_MAX, Turn},
    },
};

use super::{CLOSED, STATE, find, game};

const CACHED: Duration = Duration::from_secs(5);

async fn get(stack: &TestStack, game: &TestGame, path: &str) -> Answer {
    stack.call(Method::GET, &format!("/matchmaker/{path}"), Some(&game.public), "").await.expect_ok()
}

fn listed(list: &Answer) -> BTreeSet<String> {
    let lobbies = list.body["lobbies"].as_array().into_iter().flatten();
    lobbies.filter_map(|lobby| lobby["lobby_id"].as_str()).map(str::to_owned).collect()
}

#[tokio::test]
async fn a_list_shows_open_public_lobbies_of_listable_modes_of_the_current_version() {
    let stack = TestStack::start().await;
    let modes = json!({
        "arena": { "regions": ["fra"], "max_players": 2, "max_players_direct": 3, "max_players_party": 1 },
        "secret": { "regions": ["fra"], "listable": false },
    });
    let game = stack.make_game("list", modes, 99, 99).await;
    let open = find(&stack, &game).await.expect_ok().lobby_id();
    game.join(&stack, &open).await.expect_ok();
    let full = open;
    let open = find(&stack, &game).await.expect_ok().lobby_id();
    game.find(&stack, json!({ "game_modes": ["secret"] })).await.expect_ok();
    let list = get(&stack, &game, "lobbies/list").await;
    assert_eq!(list.body["game_modes"], json!([{ "game_mode_id": "arena" }]));
    assert_eq!(
        list.body["lobbies"],
        json!([
            { "lobby_id": open, "game_mode_id": "arena", "region_id": "fra", "max_players_normal": 2,
              "max_players_direct": 3, "max_players_party": 1, "total_player_count": 1, "connected_player_count": 0 },
            { "lobby_id": full, "game_mode_id": "arena", "region_id": "fra", "max_players_normal": 2,
              "max_players_direct": 3, "max_players_party": 1, "total_player_count": 2, "connected_player_count": 0 },
        ]),
        "those with free seats first"
    );

    game.host(&stack, &open, CLOSED, json!({ "is_closed": true })).await.expect_ok();
    assert_eq!(get(&stack, &game, "lobbies/list").await.body, list.body, "for five seconds");
    stack.clock.advance(CACHED);
    assert_eq!(listed(&get(&stack, &game, "lobbies/list").await), [full.clone()].into());
    game.end_lobby(&stack, &full).await.expect_ok();
    stack.clock.advance(CACHED);
    assert_eq!(listed(&get(&stack, &game, "lobbies/list").await), BTreeSet::new());
}

#[tokio::test]
async fn a_list_that_is_cut_off_says_so_and_has_every_lobby_with_a_free_seat() {
    let stack = TestStack::start().await;
    let modes = json!({ "arena": { "regions": ["fra"], "max_players": 2 }, "duel": { "regions": ["fra"], "max_players": 1 } });
    // So many that nobody has to connect to them.
    let game = stack.make_game("cut", modes, 16 * 501, 999).await;
    let duels = async |count: usize| {
        for answer in join_all((0..count).map(|_| game.find(&stack, json!({ "game_modes": ["duel"] })))).await
        {
            answer.expect_ok();
        }
    };
    for _ in 0..10 {
        duels(50).await;
    }
    let list = get(&stack, &game, "lobbies/list?limit=500").await;
    assert_eq!(listed(&list).len(), 500);
    assert!(list.body.get("is_truncated").is_none(), "these are all");

    let open = find(&stack, &game).await.expect_ok().lobby_id();
    stack.clock.advance(CACHED);
    let list = get(&stack, &game, "lobbies/list?limit=500").await;
    assert_eq!(
        (list.body["lobbies"].as_array().unwrap().len(), &list.body["is_truncated"]),
        (500, &json!(true))
    );
    assert!(list.body.get("next_cursor").is_none(), "the pages of a list have no more");
    assert_eq!(list.body["lobbies"][0]["lobby_id"], open, "the only one that has a free seat");
}

#[tokio::test]
async fn a_list_shows_full_lobbies_last_though_the_index_has_them_in_sight() {
    let stack = TestStack::start().await;
    let modes = json!({ "arena": { "regions": ["fra", "nyc"], "max_players": 2 } });
    let game = stack.make_game("in-sight", modes, 99, 99).await;
    let seat_in = async |region: &str| {
        let body = json!({ "game_modes": ["arena"], "regions": [region] });
        game.find(&stack, body).await.expect_ok().lobby_id()
    };
    let full = seat_in("fra").await;
    stack.clock.advance(Duration::from_millis(1));
    let open = seat_in("nyc").await;
    let claim = SeatClaim {
        lobby_id: full.parse().unwrap(),
        access: Access::Find(game.pool("arena", "fra"), TagDigests::default()),
        seats: Seats::one(SeatId::random(&stack.ambient())),
        until: stack.clock.now() + Duration::from_secs(60),
        capacity: PartyCapacity::Known(0),
        hiding: Hiding::No,
    };
    let taken = stack.store().take_seat(&claim, stack.clock.now()).await;
    assert!(matches!(taken, Ok(SeatOutcome::Taken(_))), "{taken:?}");
    let list = get(&stack, &game, "lobbies/list").await;
    let order: Vec<_> = list.body["lobbies"]
        .as_array()
        .unwrap()
        .iter()
        .map(|lobby| lobby["lobby_id"].as_str().unwrap())
        .collect();
    assert_eq!(order, [open, full]);
}

#[tokio::test]
async fn a_list_shows_states_when_requested() {
    let stack = TestStack::start().await;
    let game =
        stack.make_game("states", json!({ "arena": { "regions": ["fra"], "max_players": 1 } }), 99, 99).await;
    let (with, without) = (find(&stack, &game).await.expect_ok(), find(&stack, &game).await.expect_ok());
    game.host(&stack, &with.lobby_id(), STATE, json!({ "map": "harbour" })).await.expect_ok();
    let list = get(&stack, &game, "lobbies/list?include_state=true").await;
    let state = |id: String| {
        let lobbies = list.body["lobbies"].as_array().unwrap();
        lobbies.iter().find(|lobby| lobby["lobby_id"] == id.as_str()).unwrap().get("state").cloned()
    };
    assert_eq!(state(with.lobby_id()), Some(json!({ "map": "harbour" })));
    assert_eq!(state(without.lobby_id()), Some(Value::Null));
    let plain = get(&stack, &game, "lobbies/list?include_state=false").await;
    assert!(plain.body["lobbies"][0].get("state").is_none());
}

/// A game whose mode `arena` takes one player in each lobby, with `count` lobbies that are all listed.
async fn solos(stack: &TestStack, name: &str, count: usize) -> (TestGame, Vec<Answer>) {
    let modes = json!({ "arena": { "regions": ["fra"], "max_players": 1 } });
    let game = stack.make_game(name, modes, 32_000, 999).await;
    let seats = join_all((0..count).map(|_| find(stack, &game))).await;
    (game, seats.into_iter().map(Answer::expect_ok).collect())
}

#[tokio::test]
async fn states_in_a_list_stay_within_256_kilobytes() {
    let stack = TestStack::start().await;
    let (game, lobbies) = solos(&stack, "large", 20).await;
    for characters in [65_000, 30_000] {
        for lobby in &lobbies {
            game.host(&stack, &lobby.lobby_id(), STATE, json!("x".repeat(characters))).await.expect_ok();
        }
        stack.clock.advance(CACHED);
        let list = get(&stack, &game, "lobbies/list?include_state=true").await;
        let has_state: Vec<_> = list.body["lobbies"]
            .as_array()
            .unwrap()
            .iter()
            .map(|lobby| lobby.get("state").is_some())
            .collect();
        let fitting = 256 * 1024 / (characters + 2);
        assert_eq!((has_state.len(), has_state.iter().filter(|has| **has).count()), (20, fitting));
        assert!(has_state[..fitting].iter().all(|has| *has), "the first ones");
    }
}

#[tokio::test]
async fn a_page_reads_the_states_of_its_own_lobbies_once_in_five_seconds() {
    let stack = TestStack::start().await;
    let (game, lobbies) = solos(&stack, "read", 30).await;
    for lobby in &lobbies {
        game.host(&stack, &lobby.lobby_id(), STATE, json!("x".repeat(16_000))).await.expect_ok();
    }
    let settings = SettingsCache::new(stack.store().clone(), stack.ambient(), CACHED);
    let settings = settings.settings(game.game_id(), game.namespace_id()).await.unwrap().unwrap();
    let meter = Meter::on();
    let overview = Overview::new(stack.store().metered(meter.clone()), stack.ambient());
    let first = PageRequest::parse(Some("6"), None).unwrap();
    overview.lobbies(&settings, &first, false).await.unwrap();
    let read = async |page: &PageRequest| {
        let before = meter.usage();
        let page = overview.lobbies(&settings, page, true).await.unwrap();
        assert!(page.lobbies.iter().all(|lobby| lobby.state.is_some()));
        ((meter.usage() - before).read_units, page.next_cursor)
    };
    // Half a unit for each 4 KB.
    let (units, cursor) = read(&first).await;
    assert_eq!(units, 12.0, "the states of six lobbies");
    assert_eq!(read(&first).await.0, 0.0);
    let second = PageRequest::parse(Some("6"), cursor.as_deref()).unwrap();
    assert_eq!(read(&second).await.0, 12.0, "those of six others");
    assert_eq!(read(&second).await.0, 0.0);
}

#[tokio::test]
async fn a_lobby_is_listed_once_a_player_has_connected_and_before_while_a_seat_is_held() {
    let stack = TestStack::start().await;
    let mode = json!({ "regions": ["fra"], "max_players": 1, "idle_seconds": 3_600 });
    let game = stack.make_game("vouched", json!({ "arena": mode }), 99, 99).await;
    let (played, ghost) = (find(&stack, &game).await.expect_ok(), find(&stack, &game).await.expect_ok());
    game.connect(&stack, &played).await.expect_ok();
    let both = [played.lobby_id(), ghost.lobby_id()].into();
    assert_eq!(listed(&get(&stack, &game, "lobbies/list").await), both);
    game.disconnect(&stack, &played).await.expect_ok();
    stack.clock.advance(Duration::from_secs(120));
    assert_eq!(listed(&get(&stack, &game, "lobbies/list").await), [played.lobby_id()].into());
}

#[tokio::test]
async fn of_many_lobbies_without_a_player_a_list_shows_one_in_ten() {
    let stack = TestStack::start().await;
    let modes = json!({ "arena": { "regions": ["fra"], "max_players": 1 } });
    let game = stack.make_game("storm", modes, 128, 128).await;
    let mut ghosts = Vec::new();
    for _ in 0..8 {
        stack.clock.advance(Duration::from_millis(1));
        ghosts.push(find(&stack, &game).await.expect_ok().lobby_id());
    }
    assert_eq!(listed(&get(&stack, &game, "lobbies/list").await).len(), 8, "as many as a developer creates");
    stack.clock.advance(CACHED);
    ghosts.push(find(&stack, &game).await.expect_ok().lobby_id());
    assert_eq!(listed(&get(&stack, &game, "lobbies/list").await), [ghosts[0].clone()].into(), "the oldest");

    let mut played = BTreeSet::new();
    for _ in 0..18 {
        let seat = find(&stack, &game).await.expect_ok();
        game.connect(&stack, &seat).await.expect_ok();
        played.insert(seat.lobby_id());
    }
    stack.clock.advance(CACHED);
    let expected: BTreeSet<_> = played.into_iter().chain(ghosts.into_iter().take(2)).collect();
    assert_eq!(listed(&get(&stack, &game, "lobbies/list").await), expected);
}

#[tokio::test]
async fn a_list_counts_connected_players_apart_and_all_of_them_together() {
    let stack = TestStack::start().await;
    let modes = json!({ "arena": { "regions": ["fra"], "max_players": 4 } });
    let game = stack.make_game("counts", modes, 99, 99).await;
    let seats = [find(&stack, &game).await, find(&stack, &game).await, find(&stack, &game).await];
    game.connect(&stack, &seats[0]).await.expect_ok();
    game.connect(&stack, &seats[1]).await.expect_ok();
    let counts = async || {
        let list = get(&stack, &game, "lobbies/list").await;
        let lobby = &list.body["lobbies"][0];
        (lobby["total_player_count"].as_u64(), lobby["connected_player_count"].as_u64())
    };
    assert_eq!(counts().await, (Some(3), Some(2)));
    stack.clock.advance(Duration::from_secs(120));
    assert_eq!(counts().await, (Some(2), Some(2)), "the reservation expired");
    game.disconnect(&stack, &seats[1]).await.expect_ok();
    stack.clock.advance(CACHED);
    assert_eq!(counts().await, (Some(1), Some(1)));
}

#[tokio::test]
async fn pages_have_each_lobby_once_though_lobbies_fill_and_empty_and_others_come() {
    let stack = TestStack::start().await;
    let modes = json!({ "arena": { "regions": ["fra"], "max_players": 2 } });
    let game = stack.make_game("pages", modes, 32_000, 99).await;
    // Twenty full lobbies and a last one with a free seat.
    let seats = {
        let mut seats = Vec::new();
        for _ in 0..41 {
            stack.clock.advance(Duration::from_millis(1));
            let seat = find(&stack, &game).await.expect_ok();
            game.connect(&stack, &seat).await.expect_ok();
            seats.push(seat);
        }
        seats
    };
    let staying: BTreeSet<_> = seats.iter().map(Answer::lobby_id).collect();
    assert_eq!(staying.len(), 21);
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    for page in 0.. {
        let list = get(&stack, &game, &format!("lobbies/list?limit=4&cursor={cursor}")).await;
        let lobbies = listed(&list);
        if page == 0 {
            assert_eq!(list.body["lobbies"][0]["lobby_id"], seats[40].lobby_id(), "a free seat");
        }
        assert!(page == 5 || lobbies.len() == 4);
        seen.extend(lobbies);
        let Some(next) = list.body["next_cursor"].as_str() else { break };
        next.clone_into(&mut cursor);
        // Another lobby gets a free seat, the one with a free seat gets full, and a new one begins.
        stack.clock.advance(CACHED);
        game.disconnect(&stack, &seats[page * 7]).await.expect_ok();
        find(&stack, &game).await.expect_ok();
        find(&stack, &game).await.expect_ok();
    }
    assert_eq!(seen.len(), staying.len(), "none twice, and none that came later");
    assert_eq!(seen.into_iter().collect::<BTreeSet<_>>(), staying);
}

#[tokio::test]
async fn a_page_of_another_instance_has_lobbies_that_its_older_list_lacks() {
    let stack = TestStack::start().await;
    let (game, _) = solos(&stack, "instances", 1).await;
    let settings = SettingsCache::new(stack.store().clone(), stack.ambient(), CACHED);
    let settings = settings.settings(game.game_id(), game.namespace_id()).await.unwrap().unwrap();
    let [older, newer] = [(); 2].map(|()| Overview::new(stack.store().clone(), stack.ambient()));
    let first = PageRequest::parse(Some("1"), None).unwrap();
    assert_eq!(older.lobbies(&settings, &first, false).await.unwrap().next_cursor, None);
    stack.clock.advance(Duration::from_secs(1));
    find(&stack, &game).await.expect_ok();
    let page = newer.lobbies(&settings, &first, false).await.unwrap();
    let second = PageRequest::parse(Some("1"), page.next_cursor.as_deref()).unwrap();
    let rest = older.lobbies(&settings, &second, false).await.unwrap();
    let ids = [page.lobbies, rest.lobbies].concat().into_iter().map(|lobby| lobby.lobby_id);
    assert_eq!(ids.collect::<BTreeSet<_>>().len(), 2);
}

#[tokio::test]
async fn unusable_limits_and_cursors_of_a_list_are_refused() {
    let stack = TestStack::start().await;
    let (game, _) = solos(&stack, "unusable", 2).await;
    for query in ["limit=0", "limit=501", "limit=many", "limit=", "cursor=x", "cursor=AAAAAAAA", "cursor=%20"]
    {
        let path = format!("/matchmaker/lobbies/list?{query}");
        let answer = stack.call(Method::GET, &path, Some(&game.public), "").await;
        assert_eq!(answer.refusal(), (400, "API_BAD_BODY"), "{query}");
        let (parameter, _) = query.split_once('=').unwrap();
        let message = answer.body["message"].as_str().unwrap();
        assert!(message.contains(&format!("`{parameter}`")), "{message}");
        assert!(answer.headers.get("cache-control").is_none(), "a refusal is not kept");
    }
    let list = get(&stack, &game, "lobbies/list?limit=1&cursor=").await;
    assert_eq!((listed(&list).len(), list.body["next_cursor"].is_string()), (1, true));
}

/// A list, asked for with this `accept-encoding`, or none.
async fn get_accepting(stack: &TestStack, game: &TestGame, query: &str, accepted: Option<&str>) -> Answer {
    let address = format!("{}/matchmaker/lobbies/list{query}", stack.demo().base_url);
    let request = http::Request::get(address).header("authorization", format!("Bearer {}", game.public));
    let request =
        accepted.into_iter().fold(request, |request, value| request.header("accept-encoding", value));
    stack.send(request.body(Default::default()).unwrap()).await
}

#[tokio::test]
async fn a_list_is_compressed_for_clients_that_accept_gzip() {
    let stack = TestStack::start().await;
    let (game, _) = solos(&stack, "compressed", 50).await;
    let plain = get_accepting(&stack, &game, "", None).await.expect_ok();
    assert!(plain.headers.get("content-encoding").is_none() && plain.sent_bytes > 10_000);
    for (accepted, is_compressed) in [
        ("gzip, deflate, br", true),
        ("br;q=1, *;q=0.5", true),
        ("gzip;q=0, *", false),
        ("identity, gzip;q=0.5", false),
        ("br", false),
    ] {
        let answer = get_accepting(&stack, &game, "", Some(accepted)).await.expect_ok();
        assert_eq!(answer.text, plain.text, "{accepted}");
        let encoding = answer.headers.get("content-encoding").map(|value| value.to_str().unwrap());
        assert_eq!(encoding, is_compressed.then_some("gzip"), "{accepted}");
        assert_eq!(answer.sent_bytes < plain.sent_bytes / 4, is_compressed, "{accepted}");
        assert_eq!(answer.headers["vary"], "accept-encoding, authorization, origin");
        assert_eq!(answer.headers["content-type"], "application/json");
    }
    let small = get_accepting(&stack, &game, "?limit=1", Some("gzip")).await.expect_ok();
    assert!(small.headers.get("content-encoding").is_none() && small.sent_bytes <= 1_024, "not worth it");
}

#[tokio::test]
async fn a_list_is_kept_for_five_seconds_by_its_client_and_by_no_shared_cache_that_mixes_tokens() {
    let stack = TestStack::start().await;
    let (game, _) = solos(&stack, "kept", 1).await;
    let list = get(&stack, &game, "lobbies/list").await;
    assert_eq!(list.headers["cache-control"], "private, max-age=5");
    for path in ["regions", "players/statistics"] {
        assert!(get(&stack, &game, path).await.headers.get("cache-control").is_none(), "{path}");
    }
}

#[tokio::test]
async fn statistics_count_held_seats_by_mode_and_region() {
    let stack = TestStack::start().await;
    let modes =
        json!({ "arena": { "regions": ["fra", "nyc"], "max_players": 4 }, "duel": { "regions": ["fra"] } });
    let game = stack.make_game("statistics", modes, 99, 99).await;
    let count = async || get(&stack, &game, "players/statistics").await.body;
    assert_eq!(count().await, json!({ "player_count": 0, "game_modes": {} }));
    let mut seats = Vec::new();
    for (mode, region) in [("arena", "fra"), ("arena", "fra"), ("arena", "nyc"), ("duel", "fra")] {
        let body = json!({ "game_modes": [mode], "regions": [region] });
        seats.push(game.find(&stack, body).await.expect_ok());
    }
    assert_eq!(count().await["player_count"], 0, "for five seconds");
    stack.clock.advance(CACHED);
    let expected = json!({
        "player_count": 4,
        "game_modes": {
            "arena": { "player_count": 3, "regions": { "fra": { "player_count": 2 }, "nyc": { "player_count": 1 } } },
            "duel": { "player_count": 1, "regions": { "fra": { "player_count": 1 } } },
        },
    });
    assert_eq!(count().await, expected);

    // Closed and full lobbies count, lapsed reservations do not.
    game.host(&stack, &seats[0].lobby_id(), CLOSED, json!({ "is_closed": true })).await.expect_ok();
    game.connect(&stack, &seats[0]).await.expect_ok();
    stack.clock.advance(Duration::from_secs(120));
    let counted = count().await;
    assert_eq!(
        (&counted["player_count"], &counted["game_modes"]["arena"]["regions"]["fra"]["player_count"]),
        (&json!(1), &json!(1))
    );
}

#[tokio::test]
async fn another_instance_uses_the_count_that_one_made() {
    let stack = TestStack::start().await;
    let game =
        stack.make_game("shared", json!({ "arena": { "regions": ["fra"], "max_players": 1 } }), 99, 99).await;
    for _ in 0..30 {
        find(&stack, &game).await.expect_ok();
    }
    let settings = SettingsCache::new(stack.store().clone(), stack.ambient(), CACHED);
    let settings = settings.settings(game.game_id(), game.namespace_id()).await.unwrap().unwrap();
    let mut usages = Vec::new();
    for _ in 0..3 {
        let meter = Meter::on();
        let overview = Overview::new(stack.store().metered(meter.clone()), stack.ambient());
        for _ in 0..2 {
            assert_eq!(overview.statistics(&settings).await.unwrap().player_count, 30);
        }
        usages.push(meter.usage());
    }
    assert!(usages[0].read_units >= 15.0, "{usages:?}");
    for usage in &usages[1..] {
        assert_eq!((usage.calls, usage.read_units, usage.write_units), (1, 0.5, 0.0), "{usages:?}");
    }
}

/// The way to a database in which each query takes five seconds.
#[derive(Debug)]
struct Slow {
    database: Arc<dyn Link>,
    clock: TestClock,
    /// Queries of a game server's lobbies.
    counts: AtomicUsize,
}

impl Link for Slow {
    fn carry(&self, call: Call) -> Carried {
        if call.operation == "Query" {
            self.clock.advance(Duration::from_secs(5));
            let is_count = String::from_utf8_lossy(&call.body).contains(BY_SERVER_INDEX);
            self.counts.fetch_add(usize::from(is_count), Ordering::SeqCst);
        }
        self.database.carry(call)
    }
}

#[tokio::test]
async fn a_count_that_takes_long_is_made_once_for_all_and_lasts() {
    let stack = TestStack::start().await;
    let game = stack.make_game("slow", json!({ "arena": { "regions": ["fra"] } }), 99, 0).await;
    game.add_server(&stack, "one", "fra", 99, Timestamp::NEVER).await;
    let settings = SettingsCache::new(stack.store().clone(), stack.ambient(), CACHED);
    let settings = settings.settings(game.game_id(), game.namespace_id()).await.unwrap().unwrap();
    for expected in [1, 2] {
        find(&stack, &game).await.expect_ok();
        stack.clock.advance(CACHED);
        // A query for each region, one for the server: a count takes fifteen seconds.
        let database = Arc::clone(stack.stack.store_link());
        let slow = Arc::new(Slow { database, clock: stack.clock.clone(), counts: AtomicUsize::new(0) });
        let store = stack.store().with_client(patient_client_over(Arc::clone(&slow) as Arc<dyn Link>));
        let overviews: Vec<_> = (0..100).map(|_| Overview::new(store.clone(), stack.ambient())).collect();
        let counts = join_all(overviews.iter().map(|overview| overview.statistics(&settings))).await;
        let counts: BTreeSet<_> = counts.into_iter().map(|count| count.unwrap().player_count).collect();
        // At first all wait for it; later on the last one answers meanwhile.
        assert!(
            counts.contains(&expected) && counts.iter().all(|count| (1..=expected).contains(count)),
            "{counts:?}"
        );
        assert_eq!(slow.counts.load(Ordering::SeqCst), 1);

        // It lasts from its end.
        let meter = Meter::on();
        let overview = Overview::new(stack.store().metered(meter.clone()), stack.ambient());
        assert_eq!(overview.statistics(&settings).await.unwrap().player_count, expected);
        assert_eq!(meter.usage().calls, 1);
    }
}

#[tokio::test]
async fn a_count_whose_turn_was_taken_over_is_not_kept() {
    let stack = TestStack::start().await;
    let game = stack.make_game("overtaken", json!({ "arena": { "regions": ["fra"] } }), 9, 1).await;
    let (store, id, now) = (stack.store(), game.namespace_id(), stack.clock.now());
    assert_eq!(store.take_turn_to_count(id, now).await.unwrap(), Turn::Own);
    let soon = now + COUNTING_MAX.saturating_sub(Duration::from_millis(1));
    assert!(matches!(store.take_turn_to_count(id, soon).await.unwrap(), Turn::Others(_)));
    let later = now + COUNTING_MAX;
    assert_eq!(store.take_turn_to_count(id, later).await.unwrap(), Turn::Own);
    store.keep_count(id, "1", now, later).await.unwrap();
    assert_eq!(store.kept_count(id).await.unwrap().unwrap().counted_at, None);
    store.keep_count(id, "2", later, later).await.unwrap();
    let kept = store.kept_count(id).await.unwrap().unwrap();
    assert_eq!((kept.counted_at, kept.json.as_str()), (Some(later), "2"));
}

#[tokio::test]
async fn regions_come_nearest_first_when_the_edge_reports_the_clients_location() {
    use list_regions::ListRegions;
    use shared::function::operation::Operation as _;
    let stack = TestStack::start().await;
    let game = game(&stack, "regions", json!({})).await;
    let plain = get(&stack, &game, "regions").await.body;
    let ids = |regions: &Value| -> Vec<String> {
        let regions = regions.as_array().into_iter().flatten();
        regions.map(|region| region["region_id"].as_str().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(ids(&plain["regions"]), ["fra", "nyc"]);
    assert_eq!(
        plain["regions"][0],
        json!({ "region_id": "fra", "provider_display_name": "Test", "region_display_name": "Frankfurt",
                "datacenter_coord": { "latitude": 50.0, "longitude": 8.0 },
                "datacenter_distance_from_client": { "kilometers": 0.0, "miles": 0.0 } })
    );
    let (store, probe) = (stack.store(), "https://nyc.example/probe");
    assert!(store.set_probe(game.game_id(), &"nyc".parse().unwrap(), Some(probe)).await.unwrap());
    stack.clock.advance(Duration::from_secs(31));
    let probed = get(&stack, &game, "regions").await.body;
    assert_eq!(probed["regions"][0], plain["regions"][0], "no field without a probe");
    assert_eq!(probed["regions"][1]["probe"], probe);

    let keys = Arc::clone(stack.stack.keys());
    let instance = Instance::over(stack.store().clone(), keys, stack.ambient());
    let instance = instance.with_environment(Environment::of([("MUSTER_EDGE_SECRET", "edge-secret")]));
    let operation = ListRegions::start(&instance).unwrap();
    let bearer = format!("Bearer {}", game.public);
    for (secret, place, expected) in [
        ("edge-secret", ("40.7", "-74.0"), ["nyc", "fra"]),
        ("edge-secret", ("52.5", "13.4"), ["fra", "nyc"]),
        ("edge-secret", ("91", "0"), ["fra", "nyc"]),
        ("forged", ("40.7", "-74.0"), ["fra", "nyc"]),
    ] {
        let headers = [
            ("authorization", bearer.as_str()),
            ("x-muster-edge-secret", secret),
            ("cloudfront-viewer-latitude", place.0),
            ("cloudfront-viewer-longitude", place.1),
        ];
        let request = harness::instance::request(&headers, &json!({}));
        let regions = serde_json::to_value(operation.call(&request).await.unwrap().regions).unwrap();
        assert_eq!(ids(&regions), expected, "{secret} {place:?}");
        let distances: Vec<f64> = regions
            .as_array()
            .unwrap()
            .iter()
            .map(|region| region["datacenter_distance_from_client"]["kilometers"].as_f64().unwrap())
            .collect();
        assert!(distances.is_sorted(), "{distances:?}");
        assert_eq!(distances[1] > 0.0, secret == "edge-secret" && place.0 != "91");
    }
}
