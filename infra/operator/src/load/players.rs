//! The players of a load: each finds a lobby when it is due, connects, stays and leaves.

use std::{
    sync::{Arc, MutexGuard},
    time::Duration,
};

use hyper::body::Bytes;
use serde::de::IgnoredAny;
use serde_json::json;
use shared::wire::JoinLobby;
use tokio::{
    sync::Semaphore,
    task::JoinSet,
    time::{Instant, sleep, sleep_until},
};

use crate::load::{
    cost,
    hostile::Hostile,
    plan::Plan,
    servers::Servers,
    service::Service,
    sources::Sources,
    tally::{Call, Tally},
};

/// What the players of one load share.
pub(crate) struct Players {
    plan: Plan,
    service: Arc<Service>,
    servers: Arc<Servers>,
    /// Their addresses, in a hostile load.
    sources: Option<Sources>,
    /// The body of each find.
    find: Bytes,
    /// One permit for each request that may be under way.
    requests: Semaphore,
}

impl Players {
    /// The players of a plan.
    pub fn new(plan: Plan, service: Arc<Service>, servers: Arc<Servers>, sources: Option<Sources>) -> Self {
        let find = json!({ "game_modes": [plan.mode], "regions": [plan.region] }).to_string().into();
        let requests = Semaphore::new(plan.under_way_max());
        Self { plan, service, servers, sources, find, requests }
    }

    /// Starts every player when it is due, regardless of earlier ones, and waits until all have left.
    pub async fn come_and_go(self: &Arc<Self>) {
        let play = |number, due| Arc::clone(self).play(number, due);
        in_time(self.plan.sessions(), |number| self.plan.due(number), play).await;
    }

    async fn play(self: Arc<Self>, number: u32, due: Instant) {
        let Ok(permit) = self.requests.try_acquire() else {
            self.tally().not_sent += 1;
            return;
        };
        let lobby = self.find(due, number).await;
        drop(permit);
        let lobby = match lobby {
            Some(lobby) => {
                self.tally().seated_at_once += 1;
                Some(lobby)
            }
            None => self.find_again(number).await,
        };
        let Some(lobby) = lobby.filter(|_| Plan::connects(number)) else { return };
        sleep(self.plan.connects_after(number)).await;
        let token = match self.servers.token_of(&lobby).await {
            Ok(Some(token)) => token,
            Ok(None) => {
                self.tally().not_listed += 1;
                return;
            }
            Err(_elsewhere) => {
                self.tally().elsewhere += 1;
                return;
            }
        };
        let began = Instant::now();
        let connected = self.ask(Call::Connect, &token, &lobby.player.token, cost::CONNECT).await;
        self.tally().connects.push(began.elapsed());
        if connected {
            sleep(self.plan.stay).await;
            self.ask(Call::Disconnect, &token, &lobby.player.token, cost::DISCONNECT).await;
        }
    }

    async fn find(&self, due: Instant, number: u32) -> Option<JoinLobby> {
        let source = self.sources.map(|sources| sources.player(number));
        self.service.find(self.find.clone(), due, source).await
    }

    /// Finds for a player who was refused, as often as the plan says.
    async fn find_again(&self, number: u32) -> Option<JoinLobby> {
        for attempt in 1..self.plan.attempts() {
            sleep(Hostile::retries_after(number, attempt)).await;
            let due = Instant::now();
            // Nobody closes the semaphore.
            let _permit = self.requests.acquire().await;
            let lobby = self.find(due, number).await;
            self.tally().retries += 1;
            if lobby.is_some() {
                return lobby;
            }
        }
        None
    }

    /// Calls an operation of the player's lobby, once the limit on concurrent requests allows it. Returns
    /// whether it succeeded.
    async fn ask(&self, operation: Call, lobby_token: &str, player_token: &str, takes: cost::Spent) -> bool {
        // Nobody closes the semaphore.
        let _permit = self.requests.acquire().await;
        let body = json!({ "player_token": player_token });
        self.service.call(operation, lobby_token, &body, |_: &IgnoredAny| takes).await.is_ok()
    }

    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.service.tally()
    }
}

/// Begins each of `count` tasks when it is due after the beginning, regardless of earlier ones, and waits for
/// all.
pub(crate) async fn in_time<F: Future<Output = ()> + Send + 'static>(
    count: u32,
    due: impl Fn(u32) -> Duration,
    task: impl Fn(u32, Instant) -> F,
) {
    let (began, mut tasks) = (Instant::now(), JoinSet::new());
    for number in 0..count {
        let due = began + due(number);
        sleep_until(due).await;
        tasks.spawn(task(number, due));
        while tasks.try_join_next().is_some() {}
    }
    tasks.join_all().await;
}

#[cfg(test)]
mod tests {
    use std::{
        collections::BTreeMap,
        sync::atomic::{AtomicU32, Ordering},
    };

    use hyper::{Request, Response};
    use muster_console::host::Api;
    use serde_json::Value;
    use shared::base::ambient::Ambient;

    use super::*;
    use crate::load::{sources::Source, tally::OK};

    /// An API that answers by path and body, after a while.
    fn api(answer: impl Fn(&str, &Value) -> (Duration, u16, Value) + Send + Sync + 'static) -> Api {
        Arc::new(move |request: Request<Bytes>| {
            let body = serde_json::from_slice(request.body()).unwrap();
            let (pause, status, body) = answer(request.uri().path(), &body);
            Box::pin(async move {
                sleep(pause).await;
                Ok(Response::builder().status(status).body(body.to_string().into()).unwrap())
            })
        })
    }

    fn plan() -> Plan {
        Plan {
            namespace: "kart/load".to_owned(),
            mode: "arena".parse().unwrap(),
            region: "fra".parse().unwrap(),
            seats: 10,
            rate: 20,
            seconds: 2,
            connect: Duration::from_secs(4),
            stay: Duration::from_secs(10),
            servers: 1,
            lobbies_per_server: 9,
            lobbies: 9,
            hostile: None,
        }
    }

    /// The results of the players of a plan.
    async fn played(plan: Plan, api: Api) -> Tally {
        played_from(plan, api, None).await
    }

    /// The same, of players with these addresses.
    async fn played_from(plan: Plan, api: Api, sources: Option<Sources>) -> Tally {
        let service = Arc::new(Service::new(api, "public".to_owned(), "server".to_owned()));
        let servers = Arc::new(Servers::new(&plan, Arc::clone(&service), &Ambient::system()));
        let mut heartbeats = JoinSet::new();
        servers.register(&plan, &mut heartbeats, || false).await.unwrap();
        let players = Players::new(plan, Arc::clone(&service), Arc::clone(&servers), sources);
        Arc::new(players).come_and_go().await;
        assert!(servers.leave().await.is_empty());
        service.tally().clone()
    }

    /// A seat in a lobby of the server of the last registration.
    fn service(find: impl Fn() -> (Duration, u16) + Send + Sync + 'static) -> Api {
        let host = std::sync::Mutex::new(Value::Null);
        api(move |path, body| {
            let none = (Duration::ZERO, 200, json!({}));
            match path.rsplit('/').next().unwrap() {
                "register" => {
                    *host.lock().unwrap() = body["ports"]["default"]["hostname"].clone();
                    none
                }
                "heartbeat" => {
                    let lobby = json!({ "lobby_id": "one", "lobby_token": "token" });
                    (Duration::ZERO, 200, json!({ "lobbies": [lobby] }))
                }
                "find" => {
                    let (pause, status) = find();
                    let port = json!({ "host": null, "hostname": *host.lock().unwrap(), "port": 1,
                                       "port_range": null, "is_tls": false });
                    let lobby = json!({ "lobby_id": "one", "region": { "region_id": "fra", "display_name": "F" },
                                        "ports": { "default": port }, "player": { "token": "p" } });
                    let explain = json!({ "considered": 1, "refused": { "race_lost": 1 }, "created": true,
                                          "replayed": false, "calls": 2, "read_units": 0.5, "write_units": 1.0 });
                    let refusal = json!({ "code": "BUSY", "metadata": { "explain": explain } });
                    (
                        pause,
                        status,
                        if status == 200 { json!({ "lobby": lobby, "explain": explain }) } else { refusal },
                    )
                }
                _ => none,
            }
        })
    }

    #[tokio::test(start_paused = true)]
    async fn each_player_finds_connects_and_leaves_but_one_in_twenty() {
        let tally = played(plan(), service(|| (Duration::from_millis(30), 200))).await;
        let ok = |operation| tally.of(operation, OK);
        assert_eq!((ok(Call::Find), ok(Call::Connect), ok(Call::Disconnect)), (40, 38, 38));
        assert_eq!((tally.all(Call::Register), tally.all(Call::Deregister)), (1, 1));
        assert_eq!((tally.not_sent, tally.not_listed, tally.elsewhere), (0, 0, 0));
        assert_eq!((tally.created, tally.races_lost), (40, 40));
        assert_eq!(tally.spent[&Call::Find].read_units, 20.0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_service_delays_no_later_player_and_shows_in_every_time() {
        let slow = Duration::from_secs(20);
        let tally = played(plan(), service(move || (slow, 503))).await;
        assert_eq!(tally.of(Call::Find, "503 BUSY"), 40);
        assert!(tally.finds.iter().all(|time| (slow..slow + Duration::from_millis(5)).contains(time)));
        assert_eq!((tally.races_lost, tally.all(Call::Connect)), (40, 0));
        let public = Service::new(service(|| (Duration::ZERO, 200)), String::new(), String::new());
        let due = Instant::now();
        sleep(slow).await;
        public.find(Bytes::from_static(b"{}"), due, None).await;
        assert!(public.tally().finds[0] >= slow, "it was sent late, and its player waited");
    }

    #[tokio::test(start_paused = true)]
    async fn a_player_of_a_hostile_load_finds_up_to_three_times_from_an_address_of_its_own() {
        let hostile = Hostile {
            share: 0.5,
            addresses: 7,
            rate: 20.0,
            requests: 40,
            kinds: Vec::new(),
            left_out: Vec::new(),
        };
        let plan = Plan { hostile: Some(hostile), ..plan() };
        let (finds, sources) =
            (Arc::new(AtomicU32::new(0)), Arc::new(std::sync::Mutex::new(BTreeMap::new())));
        let (count, seen) = (Arc::clone(&finds), Arc::clone(&sources));
        // One find of four gets a seat.
        let answers = service(move || {
            let is_refused = count.fetch_add(1, Ordering::Relaxed) % 4 != 3;
            (Duration::ZERO, if is_refused { 503 } else { 200 })
        });
        let noting: Api = Arc::new(move |request: Request<Bytes>| {
            let source = request.extensions().get::<Source>().copied();
            if request.uri().path().ends_with("/find") {
                *seen.lock().unwrap().entry(source.unwrap()).or_insert(0) += 1;
            } else {
                assert_eq!(source, None, "a game server has the machine's own address");
            }
            answers(request)
        });
        let tally = played_from(plan, noting, Some(Sources::new(7, &Ambient::system()))).await;
        let (finds, sources) = (u64::from(finds.load(Ordering::Relaxed)), sources.lock().unwrap());
        assert_eq!((tally.players(), sources.len(), tally.not_sent), (40, 40, 0));
        assert_eq!((tally.all(Call::Find), tally.retries), (finds, finds - 40));
        assert_eq!(tally.of(Call::Find, OK), finds / 4);
        assert!(sources.values().all(|finds| (1..=3).contains(finds)), "{sources:?}");
        assert_eq!(tally.seated_at_once, sources.values().filter(|finds| **finds == 1).count() as u64);
        assert!(sources.values().any(|finds| *finds == 3) && tally.seated_at_once > 0, "{sources:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn players_beyond_those_who_may_wait_are_counted_as_not_sent() {
        let plan = Plan { rate: 200, ..plan() };
        let tally = played(plan, service(|| (Duration::from_secs(30), 503))).await;
        assert_eq!((tally.all(Call::Find), tally.not_sent), (200, 200));
    }

    #[tokio::test(start_paused = true)]
    async fn a_service_that_never_answers_ends_the_load_all_the_same() {
        let tally = played(plan(), service(|| (Duration::MAX / 4, 200))).await;
        assert_eq!(tally.of(Call::Find, "no response"), 40);
        assert_eq!(tally.problem.as_deref(), Some("none in 35 s"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_seat_on_another_game_server_is_left_alone() {
        let answers = service(|| (Duration::ZERO, 200));
        let elsewhere: Api = Arc::new(move |request: Request<Bytes>| {
            let coming = answers(request);
            Box::pin(async move {
                let text = String::from_utf8(coming.await?.into_body().to_vec()).unwrap();
                Ok(Response::new(text.replace(".invalid", ".example").into()))
            })
        });
        let tally = played(plan(), elsewhere).await;
        assert_eq!((tally.elsewhere, tally.all(Call::Connect)), (38, 0));
    }
}
