//! Fifteen game servers of twenty lobbies each for a minute: players come and go at random, servers crash and
//! return.
//!
//! The minute is the stack's: each few requests turn its clock a little, so leases and reservations lapse at
//! any moment of any request. What every answer must respect is kept beside it in a [`Ledger`] that knows
//! only what was answered.

use std::{
    collections::{BTreeMap, BTreeSet},
    iter,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use aws_sdk_dynamodb::types::{AttributeValue, Get, TransactGetItem};
use futures_util::{FutureExt as _, StreamExt as _, future::join_all, stream};
use harness::{Answer, TestGame, TestStack, instance::Instance};
use serde_json::json;
use shared::{
    base::ambient::{Ambient, Timestamp},
    models::{
        lobby::{Lobby, Stage},
        server::Server,
    },
};

use super::{CLOSED, find};

const SERVERS: u64 = 15;
const LOBBIES_PER_SERVER: u64 = 20;
const MAX_PLAYERS: u32 = 2;
const MAX_PLAYERS_DIRECT: u32 = 3;
const MINUTE: Duration = Duration::from_secs(60);
const LEASE: Duration = Duration::from_secs(6);
const RESERVATION: Duration = Duration::from_secs(10);
/// Requests for which the clock is turned by [`TICK`].
const REQUESTS_PER_TICK: u64 = 12;
const TICK: Duration = Duration::from_millis(250);
const WORKERS: usize = 24;
const SEATS_PER_WORKER: usize = 28;

/// What was answered so far, and what follows from it.
#[derive(Default)]
struct Ledger {
    requests: AtomicU64,
    /// Until when each server may be taken to live, by its hostname.
    leases: Mutex<BTreeMap<String, Timestamp>>,
    /// Lobbies that are closed for good or have ended.
    unfindable: Mutex<BTreeSet<String>>,
    /// Seats that were given out.
    seats: Mutex<BTreeSet<(String, String)>>,
    /// How often each player token connected.
    connects: Mutex<BTreeMap<String, u32>>,
    refusals: Mutex<BTreeMap<String, u32>>,
}

struct Churn<'a> {
    stack: &'a TestStack,
    game: &'a TestGame,
    ledger: Ledger,
    random: Ambient,
    end: Timestamp,
}

#[derive(Clone)]
struct Seat {
    answer: Answer,
    connected: bool,
}

impl Churn<'_> {
    fn is_over(&self) -> bool {
        self.stack.clock.now() >= self.end
    }

    fn chance(&self, percent: u64) -> bool {
        self.random.below(100) < percent
    }

    fn tick(&self) {
        if self.ledger.requests.fetch_add(1, Ordering::SeqCst).is_multiple_of(REQUESTS_PER_TICK) {
            self.stack.clock.advance(TICK);
        }
    }

    /// Lets `span` pass, but for what lies beyond the end.
    async fn pause(&self, span: Duration) {
        self.stack.clock.turned_to(self.end.min(self.stack.clock.now() + span)).await;
    }

    fn refused(&self, answer: &Answer) {
        let (status, code) = answer.refusal();
        assert!(status != 500, "{}", answer.body);
        *self.ledger.refusals.lock().unwrap().entry(code.to_owned()).or_default() += 1;
    }

    /// Notes a seat; none is given out twice, and none in a lobby that could not be found when the request
    /// began.
    fn seated(&self, answer: &Answer, began_at: Timestamp, unfindable: &BTreeSet<String>, is_find: bool) {
        let (seat, lobby_id) = (self.stack.seat(answer), answer.lobby_id());
        assert!(
            self.ledger.seats.lock().unwrap().insert((lobby_id.clone(), seat.seat_id.to_string())),
            "a seat was given out twice"
        );
        let server = answer.body["ports"]["default"]["hostname"].as_str().unwrap_or_default();
        let lease_end = self.ledger.leases.lock().unwrap()[server];
        assert!(lease_end > began_at, "I6: a seat on {server}, dead since {lease_end}, at {began_at}");
        assert!(!is_find || !unfindable.contains(&lobby_id), "I6: {lobby_id} was closed or over");
    }

    /// A game server's minute: heartbeats, now and then a crash, now and then a return.
    async fn serve(&self, server_id: String) {
        let hostname = format!("{server_id}.example");
        let lives = |now: Timestamp| {
            self.ledger.leases.lock().unwrap().insert(hostname.clone(), now + LEASE + TICK * 8);
        };
        lives(self.stack.clock.now());
        let fields = json!({ "capacity": LOBBIES_PER_SERVER, "lease_seconds": LEASE.as_secs() });
        self.game.register(self.stack, &server_id, fields.clone()).await;
        while !self.is_over() {
            let crashes = self.chance(8);
            let silence = if crashes { 1_000 + self.random.below(14_000) } else { 2_500 };
            self.pause(Duration::from_millis(silence)).await;
            if self.is_over() {
                return;
            }
            lives(self.stack.clock.now());
            if crashes && self.chance(50) {
                self.game.register(self.stack, &server_id, fields.clone()).await;
            }
            let answer = self.game.heartbeat(self.stack, &server_id).await.expect_ok();
            // Exactly as answered, from now on.
            if let Some(lobby) = answer.body["lobbies"].as_array().and_then(|lobbies| lobbies.first()) {
                assert!(lobby["lobby_token"].is_string());
            }
        }
    }

    /// A player with many clients at the same time.
    async fn play(&self) {
        let mut seats: Vec<Seat> = Vec::new();
        while !self.is_over() {
            self.tick();
            if seats.is_empty() || (seats.len() < SEATS_PER_WORKER && self.chance(60)) {
                seats.extend(self.enter(&seats).await);
                continue;
            }
            let index = usize::try_from(self.random.below(seats.len() as u64)).unwrap_or(0);
            let keeps = if seats[index].connected {
                self.leave_or_close(&seats[index]).await
            } else {
                self.connect(&mut seats[index]).await
            };
            if !keeps {
                seats.swap_remove(index);
            }
        }
    }

    async fn enter(&self, seats: &[Seat]) -> Option<Seat> {
        let began_at = self.stack.clock.now();
        let unfindable = self.ledger.unfindable.lock().unwrap().clone();
        let friend = seats.last().filter(|_| self.chance(15)).map(|seat| seat.answer.lobby_id());
        let answer = match &friend {
            Some(lobby_id) => self.game.join(self.stack, lobby_id).await,
            None => find(self.stack, self.game).await,
        };
        if !answer.status.is_success() {
            self.refused(&answer);
            return None;
        }
        self.seated(&answer, began_at, &unfindable, friend.is_none());
        Some(Seat { answer, connected: false })
    }

    /// Connects a player, some twice at once; whether the seat is of further use.
    async fn connect(&self, seat: &mut Seat) -> bool {
        let twice = if self.chance(20) { 2 } else { 1 };
        let answers = join_all((0..twice).map(|_| self.game.connect(self.stack, &seat.answer))).await;
        for answer in &answers {
            if answer.status.is_success() {
                seat.connected = true;
                let token = seat.answer.body["player"]["token"].to_string();
                *self.ledger.connects.lock().unwrap().entry(token).or_default() += 1;
            } else {
                self.refused(answer);
            }
        }
        seat.connected
    }

    async fn leave_or_close(&self, seat: &Seat) -> bool {
        let lobby_id = seat.answer.lobby_id();
        match self.random.below(20) {
            0 => {
                let answer =
                    self.game.host(self.stack, &lobby_id, CLOSED, json!({ "is_closed": true })).await;
                if answer.status.is_success() {
                    self.ledger.unfindable.lock().unwrap().insert(lobby_id);
                } else {
                    self.refused(&answer);
                }
                true
            }
            1 => {
                let ended = self.game.end_lobby(self.stack, &lobby_id).await;
                if ended.status.is_success() {
                    self.ledger.unfindable.lock().unwrap().insert(lobby_id);
                } else {
                    self.refused(&ended);
                }
                false
            }
            _ => {
                let answer = self.game.disconnect(self.stack, &seat.answer).await;
                if !answer.status.is_success() {
                    self.refused(&answer);
                }
                false
            }
        }
    }

    /// Reads all lobbies again and again: no state ever read may break an invariant.
    async fn sample(&self) -> usize {
        let instance = self.stack.instance();
        let mut samples = 0;
        while !self.is_over() {
            let lobbies = self.stack.all_lobbies(self.game.namespace_id()).await;
            check_seats(&lobbies);
            check_fleet(&instance, self.game).await;
            samples += 1;
            self.pause(MINUTE / 12).await;
        }
        samples
    }
}

fn check_seats(lobbies: &[Lobby]) {
    for lobby in lobbies {
        assert_eq!(lobby.taken as usize, lobby.reserved.len() + lobby.connected.len(), "{lobby:?}");
        assert!(lobby.taken <= MAX_PLAYERS_DIRECT, "I1: {lobby:?}");
        assert!(lobby.reserved.keys().all(|seat| !lobby.connected.contains_key(seat)), "{lobby:?}");
    }
}

/// No server runs more lobbies than are allotted to it, and the ledger knows their sum, as of one moment: two
/// reads of a fleet at work would not agree. `instance` has a connection of its own: the stack's takes no
/// call that Muster does not make.
async fn check_fleet(instance: &Instance, game: &TestGame) {
    let (store, namespace_id) = (instance.store(), game.namespace_id());
    let get = |table: &str, key: &str, value: String| {
        let get = Get::builder().table_name(table).key(key, AttributeValue::S(value)).build().unwrap();
        TransactGetItem::builder().get(get).build()
    };
    let servers =
        (0..SERVERS).map(|n| get(&store.tables().servers, "server", format!("{namespace_id}/server-{n}")));
    let ledger = get(&store.tables().ledger, "pk", format!("allotted/{namespace_id}"));
    let reads = iter::once(ledger).chain(servers).collect();
    let read = store.client().transact_get_items().set_transact_items(Some(reads)).send().await.unwrap();
    let mut items = read.responses.unwrap().into_iter().map(|response| response.item);
    let ledger = items.next().unwrap();
    let servers: Vec<Server> = serde_dynamo::from_items(items.flatten().collect::<Vec<_>>()).unwrap();
    let allotted: u32 = servers.iter().map(|server| server.allotted).sum();
    let known = ledger.map_or_else(|| "0".to_owned(), |ledger| ledger["allotted"].as_n().unwrap().clone());
    assert_eq!(known, allotted.to_string(), "I2");
    assert!(u64::from(allotted) <= SERVERS * LOBBIES_PER_SERVER, "I2: {allotted}");
    assert!(servers.iter().all(|server| server.used <= server.allotted), "I2: {servers:?}");
}

async fn server_uses(stack: &TestStack, game: &TestGame) -> BTreeMap<String, u32> {
    let mut uses = BTreeMap::new();
    for n in 0..SERVERS {
        let key = format!("{}/server-{n}", game.namespace_id()).try_into().unwrap();
        let server = stack.store().server(&key).await.unwrap().unwrap();
        if server.used > 0 {
            uses.insert(key.to_string(), server.used);
        }
    }
    uses
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn through_a_minute_of_crashes_no_lobby_is_overbooked_lost_or_haunted() {
    let stack = TestStack::start().await;
    let mode = json!({ "regions": ["fra"], "max_players": MAX_PLAYERS, "max_players_direct": MAX_PLAYERS_DIRECT,
                       "reservation_seconds": RESERVATION.as_secs() });
    // The servers have places for exactly as many lobbies as the namespace may hold.
    let lobbies_max = u32::try_from(SERVERS * LOBBIES_PER_SERVER).unwrap();
    let game = stack.make_game("churn", json!({ "arena": mode }), lobbies_max, 0).await;
    let end = stack.clock.now() + MINUTE;
    let churn =
        Churn { stack: &stack, game: &game, ledger: Ledger::default(), random: Ambient::system(), end };

    let servers = join_all((0..SERVERS).map(|n| churn.serve(format!("server-{n}"))));
    let players = join_all((0..WORKERS).map(|_| churn.play()));
    let ((), (), samples) = tokio::join!(servers.map(drop), players.map(drop), churn.sample());
    assert!(samples >= 6, "{samples} samples");
    let ledger = &churn.ledger;
    assert!(ledger.connects.lock().unwrap().values().all(|times| *times == 1), "I7");
    let seats = ledger.seats.lock().unwrap().len();
    let refusals = ledger.refusals.lock().unwrap().clone();
    assert!(seats > 500, "{seats} seats were given out; refused: {refusals:?}");

    // At rest the tables agree with each other.
    let lobbies = stack.all_lobbies(game.namespace_id()).await;
    check_seats(&lobbies);
    let living: Vec<_> = lobbies.iter().filter(|lobby| lobby.stage != Stage::Ended).collect();
    assert_eq!(game.live_lobbies(&stack).await as usize, living.len(), "I2");
    let mut placed: BTreeMap<String, u32> = BTreeMap::new();
    for lobby in &living {
        *placed.entry(lobby.server.as_ref().unwrap().to_string()).or_default() += 1;
    }
    assert_eq!(server_uses(&stack, &game).await, placed, "every place is that of a living lobby");

    // All servers fall silent permanently, and as many others come. Finds that need capacity take it from the
    // dead, to the last place.
    stack.clock.advance(MINUTE);
    let fields = json!({ "capacity": LOBBIES_PER_SERVER, "lease_seconds": 0 });
    let fresh: Vec<_> = (0..SERVERS).map(|n| format!("fresh-{n}")).collect();
    for server_id in &fresh {
        game.register(&stack, server_id, fields.clone()).await;
    }
    let dead: BTreeSet<_> = living.iter().map(|lobby| lobby.lobby_id.to_string()).collect();
    let wanted = lobbies_max * MAX_PLAYERS;
    let finds = stream::iter(0..wanted).map(|_| find(&stack, &game));
    let answers: Vec<Answer> = finds.buffer_unordered(16).collect().await;
    let mut found = BTreeSet::new();
    for answer in &answers {
        assert_eq!(answer.status, 200, "{}", answer.body);
        let seat = stack.seat(answer);
        assert!(!dead.contains(seat.lobby_id.as_str()), "I6");
        assert!(found.insert((seat.lobby_id.to_string(), seat.seat_id.to_string())));
    }
    assert_eq!(find(&stack, &game).await.refusal(), (400, "MATCHMAKER_TOO_MANY_LOBBIES"), "I2");
    let lobbies = stack.all_lobbies(game.namespace_id()).await;
    let held: BTreeSet<_> = lobbies
        .iter()
        .filter(|lobby| lobby.stage != Stage::Ended)
        .flat_map(|lobby| lobby.reserved.keys().map(|seat| (lobby.lobby_id.to_string(), seat.to_string())))
        .collect();
    assert_eq!(held, found, "I4");
    assert_eq!(server_uses(&stack, &game).await, BTreeMap::new(), "the dead servers run nothing");
}
