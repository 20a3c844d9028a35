//! Namespaces: how they are returned, their names and domains, and the versions that they ran.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use harness::{Answer, TestStack};
use http::Method;
use serde_json::{Value, json};
use shared::{
    rules::origin::OriginHost,
    store::cdn::{CDN_USERS_MAX, DOMAINS_MAX},
};

use super::{auth_users, call, call_on};

/// A cloud operation on the demo's game, with the demo's cloud token.
async fn call_game(stack: &TestStack, method: Method, operation: &str, body: Value) -> Answer {
    let path = format!("/cloud/games/{}{operation}", stack.demo().game_id);
    stack.call(method, &path, Some(&stack.demo().tokens.cloud), body.to_string()).await
}

fn new_namespace(stack: &TestStack, name_id: &str) -> Value {
    json!({ "display_name": "New", "version_id": stack.demo().version_ids[0], "name_id": name_id })
}

async fn add_domain(stack: &TestStack, domain: &str) -> Answer {
    call(stack, Method::POST, "domains", json!({ "domain": domain })).await
}

async fn domains(stack: &TestStack) -> Vec<String> {
    let right = stack.right(&stack.demo().namespace_id).await;
    stack.store().cdn_settings(&right).await.unwrap().domains.into_keys().collect()
}

#[tokio::test]
async fn a_game_is_returned_with_its_parts() {
    let stack = TestStack::start().await;
    let game = call_game(&stack, Method::GET, "", json!({})).await.expect_ok().body["game"].take();
    let demo = stack.demo();
    assert_eq!((&game["game_id"], &game["name_id"]), (&json!(demo.game_id), &json!("demo")));
    let ids = |list: &str, id: &str| -> BTreeSet<String> {
        let list = game[list].as_array().unwrap().iter();
        list.map(|entry| entry[id].as_str().unwrap().to_owned()).collect()
    };
    let namespaces = [&demo.namespace_id, &demo.other_namespace_id].map(ToString::to_string);
    assert_eq!(ids("namespaces", "namespace_id"), namespaces.into());
    assert_eq!(ids("versions", "version_id"), demo.version_ids.iter().map(ToString::to_string).collect());
    assert_eq!(
        ids("available_regions", "region_id"),
        demo.region_ids.iter().map(ToString::to_string).collect()
    );
}

#[tokio::test]
async fn a_version_is_returned_as_it_was_configured() {
    let stack = TestStack::start().await;
    let config =
        json!({ "game_modes": { "arena": { "regions": ["fra"], "max_players": 7, "taggable": true } } });
    let body = json!({ "display_name": "7", "config": config });
    assert_eq!(
        call_game(&stack, Method::POST, "/versions/validate", body.clone()).await.expect_ok().body,
        json!({ "errors": [] })
    );
    let made = call_game(&stack, Method::POST, "/versions", body.clone()).await.expect_ok();
    let path = format!("/versions/{}", made.body["version_id"].as_str().unwrap());
    let stored = call_game(&stack, Method::GET, &path, json!({})).await.expect_ok().body["version"].take();
    assert_eq!((&stored["version_id"], &stored["display_name"]), (&made.body["version_id"], &json!("7")));
    let mode = &stored["config"]["game_modes"]["arena"];
    assert_eq!(
        (&mode["max_players"], &mode["taggable"], &mode["reservation_seconds"]),
        (&json!(7), &json!(true), &json!(60))
    );
    // A returned configuration can be sent again.
    let again = json!({ "display_name": "8", "config": stored["config"] });
    let _made = call_game(&stack, Method::POST, "/versions", again).await.expect_ok();
}

#[tokio::test]
async fn validation_reports_what_the_creation_of_versions_and_namespaces_refuses() {
    let stack = TestStack::start().await;
    let version = |config: Value| json!({ "display_name": "", "config": config });
    let unusable = [
        ("/versions", version(json!({ "game_modes": {} }))),
        ("/versions", version(json!({ "game_modes": { "a": { "regions": ["mars"], "max_players": 257 } } }))),
        (
            "/namespaces",
            json!({ "display_name": "\n", "name_id": "A", "version_id": stack.demo().version_ids[0] }),
        ),
    ];
    for (path, body) in unusable {
        let validate = call_game(&stack, Method::POST, &format!("{path}/validate"), body.clone()).await;
        let create = call_game(&stack, Method::POST, path, body).await;
        assert_eq!(create.refusal(), (400, "VALIDATION_ERROR"), "{path}");
        assert_eq!(validate.expect_ok().body["errors"], create.body["metadata"]["errors"], "{path}");
    }
    let typo = version(json!({ "game_modes": { "arena": { "regions": ["fra"], "max_player": 4 } } }));
    for path in ["/versions", "/versions/validate"] {
        let answer = call_game(&stack, Method::POST, path, typo.clone()).await;
        assert_eq!(answer.refusal(), (400, "API_BAD_BODY"), "{path}");
        let message = answer.body["message"].as_str().unwrap();
        assert!(message.contains("max_player`") && message.contains("arena"), "{message}");
    }
}

#[tokio::test]
async fn two_creations_of_one_namespace_make_one() {
    let stack = TestStack::start().await;
    for round in 0..5 {
        let name = format!("race-{round}");
        let body = new_namespace(&stack, &name);
        let answers =
            join_all((0..8).map(|_| call_game(&stack, Method::POST, "/namespaces", body.clone()))).await;
        let (made, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(|answer| answer.status == 200);
        assert_eq!(made.len(), 1, "{refused:?}");
        assert!(refused.iter().all(|answer| answer.refusal() == (409, "CLOUD_NAME_TAKEN")), "{refused:?}");
        let all = stack.store().namespaces(&stack.demo().game_id).await.unwrap();
        let named: Vec<_> = all.iter().filter(|namespace| namespace.name_id == name).collect();
        assert_eq!(json!([named[0].namespace_id]), json!([made[0].body["namespace_id"]]));
        assert_eq!(named.len(), 1);
    }
}

#[tokio::test]
async fn two_namespaces_that_add_one_domain_never_both_get_it() {
    let stack = TestStack::start().await;
    let demo = stack.demo();
    let both = [&demo.namespace_id, &demo.other_namespace_id];
    for round in 0..5 {
        let domain = format!("race-{round}.example");
        let body = json!({ "domain": domain });
        let adds = (0..8).map(|n| call_on(&stack, both[n % 2], Method::POST, "domains", body.clone()));
        let answers = join_all(adds).await;
        let winners: BTreeSet<_> = answers
            .iter()
            .enumerate()
            .filter(|(_, answer)| answer.status == 200)
            .map(|(n, _)| n % 2)
            .collect();
        assert_eq!(winners.len(), 1, "{answers:?}");
        let refused = answers.iter().filter(|answer| answer.status != 200);
        assert!(refused.clone().all(|answer| answer.refusal() == (409, "CDN_DOMAIN_TAKEN")), "{answers:?}");
        let host: OriginHost = domain.parse().unwrap();
        let owner = stack.store().domain_owner(&host).await.unwrap().unwrap();
        let winner = both[*winners.first().unwrap()];
        assert_eq!(owner.namespace_id, *winner);
        for namespace_id in both {
            let cdn = stack.store().cdn_settings(&stack.right(namespace_id).await).await.unwrap();
            assert_eq!(cdn.domains.contains_key(&domain), namespace_id == winner);
        }
    }
}

#[tokio::test]
async fn a_namespace_has_ten_domains_at_most_however_many_are_added_at_once() {
    let stack = TestStack::start().await;
    let wanted: Vec<_> = (0..16).map(|n| format!("d{n:02}.example")).collect();
    let answers = join_all(wanted.iter().map(|domain| add_domain(&stack, domain))).await;
    let added: Vec<_> = wanted
        .iter()
        .zip(&answers)
        .filter(|(_, answer)| answer.status == 200)
        .map(|(domain, _)| domain.clone())
        .collect();
    assert_eq!(added.len(), DOMAINS_MAX);
    assert_eq!(domains(&stack).await, added);
    let refused = wanted.iter().zip(&answers).filter(|(_, answer)| answer.status != 200);
    for (domain, answer) in refused {
        assert_eq!(answer.refusal(), (400, "CDN_TOO_MANY_DOMAINS"));
        let host: OriginHost = domain.parse().unwrap();
        assert_eq!(stack.store().domain_owner(&host).await.unwrap(), None, "{domain}");
    }
    // Those that it has may be added again, and make place when they go.
    let _again = add_domain(&stack, &added[0]).await.expect_ok();
    let path = format!("domains/{}", added[0]);
    let _gone = call(&stack, Method::DELETE, &path, json!({})).await.expect_ok();
    let _added = add_domain(&stack, "late.example").await.expect_ok();
    assert_eq!(domains(&stack).await.len(), DOMAINS_MAX);
}

#[tokio::test]
async fn a_domain_is_removed_by_its_own_namespace_alone() {
    let stack = TestStack::start().await;
    let _added = add_domain(&stack, "Play.example").await.expect_ok();
    let remove = async |namespace_id| {
        call_on(&stack, namespace_id, Method::DELETE, "domains/play.example", json!({})).await.expect_ok()
    };
    assert_eq!(remove(&stack.demo().other_namespace_id).await.body, json!({}));
    assert_eq!(domains(&stack).await, ["play.example"]);
    for _ in 0..2 {
        assert_eq!(remove(&stack.demo().namespace_id).await.body, json!({}));
        assert!(domains(&stack).await.is_empty());
    }
    let owner = stack.store().domain_owner(&"play.example".parse().unwrap()).await.unwrap();
    assert_eq!(owner, None);
    for domain in ["", "https://play.example", "play.example:443", "10.0.0.1", "a b"] {
        assert_eq!(add_domain(&stack, domain).await.refusal(), (400, "CDN_INVALID_DOMAIN"), "{domain}");
    }
}

#[tokio::test]
async fn a_removed_user_makes_place_for_another() {
    let stack = TestStack::start().await;
    let add = async |user: String| {
        let body = json!({ "user": user, "password": auth_users::hash() });
        call(&stack, Method::POST, "auth-user", body).await
    };
    for n in 0..CDN_USERS_MAX {
        let _added = add(format!("user {n}")).await.expect_ok();
    }
    assert_eq!(add("another".to_owned()).await.refusal(), (400, "CDN_TOO_MANY_AUTH_USERS"));
    for _ in 0..2 {
        let removed = call(&stack, Method::DELETE, "auth-user/user%207", json!({})).await;
        assert_eq!(removed.expect_ok().body, json!({}));
    }
    let _added = add("another".to_owned()).await.expect_ok();
    let answer = call(&stack, Method::GET, "", json!({})).await;
    assert_eq!(answer.refusal().0, 404, "a path with an empty part is another path");
}

#[tokio::test]
async fn the_history_has_pages_and_shows_a_switch_at_once() {
    let stack = TestStack::start().await;
    let versions = stack.demo().version_ids.clone();
    for n in 0..40 {
        let _set = super::set_version(&stack, versions[(n + 1) % 2].as_str()).await.expect_ok();
    }
    let page = async |query: &str| {
        let answer = call(&stack, Method::GET, &format!("version-history{query}"), json!({})).await;
        answer.expect_ok().body["versions"].as_array().unwrap().clone()
    };
    let first = page("").await;
    assert_eq!(first.len(), 32);
    let anchor = first[31]["deploy_ts"].as_str().unwrap();
    let rest = page(&format!("?anchor={anchor}&limit=32")).await;
    assert_eq!(rest.len(), 41 - 32, "the first version, and each change");
    let all: Vec<_> = first.iter().chain(&rest).map(|entry| entry["version_id"].as_str().unwrap()).collect();
    assert!(all.windows(2).all(|pair| pair[0] != pair[1]), "{all:?}");
    let times: Vec<_> = first.iter().chain(&rest).map(|entry| entry["deploy_ts"].as_str().unwrap()).collect();
    assert!(times.windows(2).all(|pair| pair[0] > pair[1]), "{times:?}");
    for query in ["?limit=0", "?limit=33", "?limit=x", "?limit=-1", "?anchor=x", "?limit="] {
        let answer = call(&stack, Method::GET, &format!("version-history{query}"), json!({})).await;
        assert_eq!(answer.refusal(), (400, "API_BAD_BODY"), "{query}");
    }
}
