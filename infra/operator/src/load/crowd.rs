//! The hostile requests of a load: each in its turn, from one of its addresses, whatever became of others.

use std::sync::Arc;

use hyper::body::Bytes;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::load::{
    hostile::Hostile, plan::Plan, players::in_time, service::Service, sources::Sources, tally::Kind,
};

/// The lobby that a join names before any player has a seat: there is none of it.
const NO_LOBBY: &str = "00000000-0000-4000-8000-000000000000";

/// What the hostile requests of one load share.
pub(crate) struct Crowd {
    plan: Plan,
    hostile: Hostile,
    service: Arc<Service>,
    sources: Sources,
    /// One permit for each request that may be under way.
    requests: Semaphore,
}

impl Crowd {
    /// The hostile requests of a plan, if it has any.
    pub fn of(plan: &Plan, service: Arc<Service>, sources: Option<Sources>) -> Option<Arc<Self>> {
        let hostile = plan.hostile.clone()?;
        let requests = Semaphore::new(hostile.under_way_max());
        Some(Arc::new(Self { plan: plan.clone(), hostile, service, sources: sources?, requests }))
    }

    /// Sends each request when it is due, and waits for all answers.
    pub async fn come(self: &Arc<Self>) {
        let send = |number, _due| Arc::clone(self).send(number);
        in_time(self.hostile.requests, |number| self.hostile.due(number), send).await;
    }

    async fn send(self: Arc<Self>, number: u32) {
        let Some(kind) = self.hostile.kind(number) else { return };
        let Ok(_permit) = self.requests.try_acquire() else {
            self.service.tally().attack.not_sent += 1;
            return;
        };
        let source = self.sources.hostile(self.hostile.address(number));
        self.service.attack(kind, self.body(kind, number), source).await;
    }

    /// The body of request `number`.
    fn body(&self, kind: Kind, number: u32) -> Bytes {
        let Plan { mode, region, .. } = &self.plan;
        let find = |tags: Value| json!({ "game_modes": [mode], "regions": [region], "tags": tags });
        let body = match kind {
            Kind::Find | Kind::ForgedToken => find(json!({})),
            Kind::Tag => find(json!({ "party": number.to_string() })),
            Kind::Create => json!({ "game_mode": mode, "region": region, "publicity": "private" }),
            Kind::Join => json!({ "lobby_id": self.lobby_of_a_player(number) }),
            Kind::WrongBody => json!({ "game_modes": number }),
            Kind::List => return Bytes::new(),
        };
        body.to_string().into()
    }

    /// One of the lobbies that players got last.
    fn lobby_of_a_player(&self, number: u32) -> String {
        let tally = self.service.tally();
        let lobby = tally.lobbies.get(number as usize % tally.lobbies.len().max(1));
        lobby.map_or_else(|| NO_LOBBY.to_owned(), ToString::to_string)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use hyper::{Method, Request, Response};
    use muster_console::host::Api;
    use shared::base::ambient::Ambient;

    use super::*;
    use crate::load::{sources::Source, tally::OK};

    type Sent = (Method, String, Value, Option<Source>, bool);

    /// An API that takes every token but a forged one for good, and notes what it gets.
    fn api(sent: &Arc<Mutex<Vec<Sent>>>) -> Api {
        let sent = Arc::clone(sent);
        Arc::new(move |request: Request<Bytes>| {
            let body = serde_json::from_slice(request.body()).unwrap_or_default();
            let uri = request.uri().path_and_query().unwrap().to_string();
            let is_genuine = request.headers()["authorization"] == "Bearer pub_a.b.Abc";
            let source = request.extensions().get::<Source>().copied();
            sent.lock().unwrap().push((request.method().clone(), uri, body, source, is_genuine));
            let (status, body) = if is_genuine { (200, "{}") } else { (401, r#"{"code":"TOKEN_INVALID"}"#) };
            let response = Response::builder().status(status).body(Bytes::from(body)).unwrap();
            Box::pin(async move { Ok(response) })
        })
    }

    fn plan(requests: u32) -> Plan {
        let hostile = Hostile {
            share: 0.5,
            addresses: 3,
            rate: 20.0,
            requests,
            kinds: Kind::ALL.to_vec(),
            left_out: Vec::new(),
        };
        Plan {
            namespace: "kart/load".to_owned(),
            mode: "arena".parse().unwrap(),
            region: "fra".parse().unwrap(),
            seats: 10,
            rate: 20,
            seconds: 2,
            connect: std::time::Duration::from_secs(4),
            stay: std::time::Duration::ZERO,
            servers: 1,
            lobbies_per_server: 9,
            lobbies: 9,
            hostile: Some(hostile),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn each_kind_is_sent_as_often_from_addresses_of_the_crowd_and_counted_by_its_answer() {
        let sent = Arc::default();
        let service = Arc::new(Service::new(api(&sent), "pub_a.b.Abc".to_owned(), String::new()));
        let lobby_id = "67cebb35-5a0f-4d0b-9c5e-0d2f7a1b3c4d";
        service.tally().seated_in(lobby_id.parse().unwrap());
        let sources = Sources::new(3, &Ambient::system());
        Crowd::of(&plan(70), Arc::clone(&service), Some(sources)).unwrap().come().await;

        let tally = service.tally().clone();
        for kind in Kind::ALL {
            let result = if kind == Kind::ForgedToken { "401 TOKEN_INVALID" } else { OK };
            assert_eq!(tally.attack.results[&kind], [(result.to_owned(), 10)].into(), "{kind:?}");
        }
        assert_eq!((tally.attack.sent(), tally.attack.seats(), tally.attack.not_sent), (70, 40, 0));
        assert_eq!(tally.attack.sources, (0..3).map(|number| sources.hostile(number)).collect());
        assert!(tally.results.is_empty() && tally.finds.is_empty(), "they are no players");

        let sent = sent.lock().unwrap();
        let tags: std::collections::BTreeSet<_> =
            sent.iter().filter_map(|(_, _, body, ..)| body["tags"]["party"].as_str()).collect();
        assert_eq!(tags.len(), 10, "each tag is new");
        let at = |path: &'static str| sent.iter().filter(move |(_, uri, ..)| uri == path);
        assert!(at("/matchmaker/lobbies/join").all(|(_, _, body, ..)| body["lobby_id"] == lobby_id));
        assert!(at("/matchmaker/lobbies/create").all(|(_, _, body, ..)| body["publicity"] == "private"));
        assert_eq!(at("/matchmaker/lobbies/list?include_state=true").count(), 10);
        assert!(sent.iter().all(|(method, uri, ..)| (*method == Method::GET) == uri.contains("/list")));
        assert_eq!(sent.iter().filter(|(.., is_genuine)| !is_genuine).count(), 10);
        assert!(sent.iter().all(|(_, _, _, source, _)| source.is_some()));
    }

    #[test]
    fn a_plan_without_a_hostile_share_has_no_crowd() {
        let service = Arc::new(Service::new(api(&Arc::default()), String::new(), String::new()));
        assert!(Crowd::of(&Plan { hostile: None, ..plan(1) }, service, None).is_none());
    }
}
