//! Versions that the operator deletes: they go once nothing can need them any more, and not before.

use std::{sync::Arc, time::Duration};

use harness::{Answer, TestGame, TestStack, instance::Instance, interference::Before};
use http::Method;
use muster_local::emulator::link::{Call, Link, patient_client_over};
use serde_json::{Value, json};
use shared::{
    base::ambient::Timestamp,
    cloud::{
        provision::add_version,
        retirement::{Deletion, UNUSED_FOR, delete_version},
    },
    models::{
        errors::Error,
        ids::VersionId,
        rights::{GameRight, NamespaceRight},
        version::ListedVersion,
    },
    store::{client::Store, deployments::VersionOutcome},
};

const MILLISECOND: Duration = Duration::from_millis(1);

/// A game whose namespace runs its first version and can run a second one, which has a secret.
struct Scene {
    stack: TestStack,
    game: TestGame,
    first: VersionId,
    second: VersionId,
}

impl Scene {
    async fn start() -> Self {
        let stack = TestStack::start().await;
        let game = stack.make_game("deleting", json!({ "arena": { "regions": ["fra"] } }), 9, 9).await;
        let verified = json!({ "url": "https://verify.example/", "headers": { "x-secret": "s" } });
        let join = json!({ "join": { "enabled": true, "verification": verified } });
        let config = json!({ "game_modes": { "arena": { "regions": ["fra"], "actions": join } } });
        let config = serde_json::from_value(config).unwrap();
        let (ambient, name) = (stack.ambient(), "2".to_owned());
        let second = add_version(stack.store(), &ambient, game.game_id(), name, config).await.unwrap();
        let (first, second) = (game.created.version.version_id.clone(), second.version_id);
        Self { stack, game, first, second }
    }

    fn store(&self) -> &Store {
        self.stack.store()
    }

    async fn right(&self) -> NamespaceRight {
        let right = GameRight::of_operator(self.game.game_id().clone());
        right.on_namespace(self.game.namespace_id(), self.store()).await.unwrap()
    }

    async fn set(&self, version_id: &VersionId) -> VersionOutcome {
        self.stack.clock.advance(MILLISECOND);
        self.store().set_version(&self.right().await, version_id, self.stack.clock.now()).await.unwrap()
    }

    async fn delete(&self, version_id: &VersionId) -> Result<Deletion, Error> {
        self.delete_by(self.store(), version_id).await
    }

    async fn delete_by(&self, store: &Store, version_id: &VersionId) -> Result<Deletion, Error> {
        delete_version(store, &self.game.created.game, version_id, self.stack.clock.now()).await
    }

    async fn listed(&self, version_id: &VersionId) -> Option<ListedVersion> {
        self.store().listed_version(self.game.game_id(), version_id).await.unwrap()
    }

    /// A store before whose first call of a kind something happens.
    fn store_before(
        &self,
        is_it: fn(&Call) -> bool,
        happens: impl Future<Output = ()> + Send + 'static,
    ) -> Store {
        let link = Before::new(self.stack.stack.store_link(), is_it, happens);
        self.store().with_client(patient_client_over(Arc::new(link) as Arc<dyn Link>))
    }

    async fn call(&self, method: Method, operation: &str, body: Value) -> Answer {
        let path = format!("/cloud/games/{}{operation}", self.game.game_id());
        self.stack.call(method, &path, Some(self.game.created.cloud_token.reveal()), body.to_string()).await
    }
}

fn is_transaction(call: &Call) -> bool {
    call.operation == "TransactWriteItems"
}

fn is_update(call: &Call) -> bool {
    call.operation == "UpdateItem"
}

#[tokio::test]
async fn a_version_goes_with_its_secrets_once_nothing_can_need_it() {
    let scene = Scene::start().await;
    assert_eq!(scene.set(&scene.second).await, VersionOutcome::Changed);
    assert_eq!(scene.delete(&scene.second).await.unwrap(), Deletion::Run(vec!["prod".to_owned()]));
    assert_eq!(scene.listed(&scene.second).await.unwrap().retired_at, None, "nothing changed");

    assert_eq!(scene.set(&scene.first).await, VersionOutcome::Changed);
    let until = scene.stack.clock.now() + UNUSED_FOR;
    assert_eq!(scene.delete(&scene.second).await.unwrap(), Deletion::Remembered(until));
    scene.stack.clock.advance(UNUSED_FOR - MILLISECOND);
    assert_eq!(scene.delete(&scene.second).await.unwrap(), Deletion::Remembered(until));
    assert!(scene.store().version_secrets(&scene.second).await.unwrap().is_some());
    scene.stack.clock.advance(MILLISECOND);
    assert_eq!(scene.delete(&scene.second).await.unwrap(), Deletion::Deleted);

    assert_eq!(scene.store().version(scene.game.game_id(), &scene.second).await.unwrap(), None);
    assert_eq!(scene.listed(&scene.second).await, None);
    assert_eq!(scene.store().version_secrets(&scene.second).await.unwrap(), None);
    assert!(matches!(scene.delete(&scene.second).await, Err(Error::VersionNotFound)));
    let gone = scene.call(Method::GET, &format!("/versions/{}", scene.second), json!({})).await;
    assert_eq!(gone.refusal(), (404, "CLOUD_VERSION_NOT_FOUND"));
    let history = scene.stack.version_history(scene.game.namespace_id()).await;
    assert_eq!(history, [scene.first.clone(), scene.second.clone(), scene.first.clone()]);
    scene.game.find(&scene.stack, json!({ "game_modes": ["arena"] })).await.expect_ok();
}

#[tokio::test]
async fn a_version_stays_while_a_lobby_of_it_lives() {
    let scene = Scene::start().await;
    let instance: Instance = scene.stack.instance();
    let find = json!({ "game_modes": ["arena"] });
    let found = instance.find(&scene.game.public, &find).await.unwrap();
    scene.set(&scene.second).await;
    assert!(matches!(scene.delete(&scene.first).await.unwrap(), Deletion::Remembered(_)));
    // An instance whose settings are as old as they may be still finds in it.
    scene.stack.clock.advance(Duration::from_secs(30) - 2 * MILLISECOND);
    let again = instance.find(&scene.game.public, &find).await.unwrap();
    assert_eq!(again.lobby.lobby_id, found.lobby.lobby_id);
    scene.stack.clock.advance(UNUSED_FOR);
    let lobbies = scene.stack.all_lobbies(scene.game.namespace_id()).await;
    let of_first = lobbies.iter().filter(|lobby| lobby.pool.version_id == scene.first).count();
    let played = Deletion::Played(vec![("prod".to_owned(), of_first)]);
    assert_eq!(scene.delete(&scene.first).await.unwrap(), played);
    for lobby in &lobbies {
        let body = json!({ "lobby_id": lobby.lobby_id });
        scene.game.serve(&scene.stack, "end-lobby", body).await.expect_ok();
    }
    assert_eq!(scene.delete(&scene.first).await.unwrap(), Deletion::Deleted);
}

#[tokio::test]
async fn no_namespace_is_set_to_a_retired_version() {
    let scene = Scene::start().await;
    assert!(matches!(scene.delete(&scene.second).await.unwrap(), Deletion::Remembered(_)));
    let run = json!({ "version_id": scene.second });
    let path = format!("/namespaces/{}/version", scene.game.namespace_id());
    let refused = scene.call(Method::PUT, &path, run.clone()).await;
    assert_eq!(refused.refusal(), (404, "CLOUD_VERSION_NOT_FOUND"));
    let new = json!({ "display_name": "New", "name_id": "new", "version_id": scene.second });
    let refused = scene.call(Method::POST, "/namespaces", new.clone()).await;
    assert_eq!(refused.refusal(), (404, "CLOUD_VERSION_NOT_FOUND"));
    assert_eq!(scene.right().await.namespace().version_id, scene.first);

    assert!(scene.store().keep_version(scene.game.game_id(), &scene.second).await.unwrap());
    scene.call(Method::PUT, &path, run).await.expect_ok();
    scene.call(Method::POST, "/namespaces", new).await.expect_ok();
}

#[tokio::test]
async fn a_namespace_set_at_the_same_time_keeps_the_version_or_is_refused() {
    // Retired before the change is written.
    let scene = Scene::start().await;
    let (store, game_id) = (scene.store().clone(), scene.game.game_id().clone());
    let (second, now) = (scene.second.clone(), scene.stack.clock.now());
    let retires = async move {
        store.retire_version(&game_id, &second, now).await.unwrap().unwrap();
    };
    let store = scene.store_before(is_transaction, retires);
    let outcome = store.set_version(&scene.right().await, &scene.second, now + MILLISECOND).await.unwrap();
    assert_eq!(outcome, VersionOutcome::UnknownVersion);

    // Set between the look at the namespaces and the retirement.
    let scene = Scene::start().await;
    let (store, right, second) = (scene.store().clone(), scene.right().await, scene.second.clone());
    let sets = async move {
        let outcome = store.set_version(&right, &second, now + MILLISECOND).await.unwrap();
        assert_eq!(outcome, VersionOutcome::Changed);
    };
    let store = scene.store_before(is_update, sets);
    let deletion = scene.delete_by(&store, &scene.second).await.unwrap();
    assert_eq!(deletion, Deletion::Run(vec!["prod".to_owned()]));
    scene.game.find(&scene.stack, json!({ "game_modes": ["arena"] })).await.expect_ok();
}

#[tokio::test]
async fn a_version_that_is_kept_at_the_last_moment_stays_whole() {
    let scene = Scene::start().await;
    assert!(matches!(scene.delete(&scene.second).await.unwrap(), Deletion::Remembered(_)));
    scene.stack.clock.advance(UNUSED_FOR);
    let (store, game_id, second) =
        (scene.store().clone(), scene.game.game_id().clone(), scene.second.clone());
    // Retired again meanwhile: what was seen to run no version says nothing of the time between.
    let keeps = async move {
        assert!(store.keep_version(&game_id, &second).await.unwrap());
        store.retire_version(&game_id, &second, Timestamp::NEVER).await.unwrap().unwrap();
    };
    let store = scene.store_before(is_transaction, keeps);
    assert_eq!(scene.delete_by(&store, &scene.second).await.unwrap(), Deletion::Kept);
    assert!(scene.listed(&scene.second).await.is_some());
    assert!(scene.store().version(scene.game.game_id(), &scene.second).await.unwrap().is_some());
    assert!(scene.store().version_secrets(&scene.second).await.unwrap().is_some());
}
