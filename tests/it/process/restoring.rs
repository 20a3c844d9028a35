//! Tables that were restored from a backup under other names, copied back into a stack that lost its own.

use std::collections::HashMap;

use aws_sdk_dynamodb::{
    Client as DynamoDb,
    types::{
        AttributeDefinition, AttributeValue, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType,
    },
};
use harness::instance::patient_client;

use super::*;

/// Moves every item of the table `own` into the new table `other` of the same key.
async fn move_items(client: &DynamoDb, own: &str, other: &str, key: &[&str]) -> usize {
    let kinds = [KeyType::Hash, KeyType::Range];
    let mut create = client.create_table().table_name(other).billing_mode(BillingMode::PayPerRequest);
    for (name, kind) in key.iter().zip(kinds) {
        let text = AttributeDefinition::builder().attribute_name(*name);
        let part = KeySchemaElement::builder().attribute_name(*name).key_type(kind);
        create = create
            .attribute_definitions(text.attribute_type(ScalarAttributeType::S).build().unwrap())
            .key_schema(part.build().unwrap());
    }
    create.send().await.unwrap();
    let items = client.scan().table_name(own).send().await.unwrap().items.unwrap();
    for item in &items {
        let of_key = |name: &&str| ((*name).to_owned(), item[*name].clone());
        let key: HashMap<String, AttributeValue> = key.iter().map(of_key).collect();
        client.put_item().table_name(other).set_item(Some(item.clone())).send().await.unwrap();
        client.delete_item().table_name(own).set_key(Some(key)).send().await.unwrap();
    }
    items.len()
}

#[tokio::test]
async fn a_game_finds_lobbies_with_its_tokens_of_before_once_its_tables_are_copied_back() {
    let (local, folder) = (Local::start(&[]).await, TestFolder::new());
    let config = folder.path("modes.json");
    fs::write(&config, r#"{ "game_modes": { "arena": { "regions": ["ams"], "max_players": 2 } } }"#).unwrap();
    let create =
        ["game", "create", "mine", "--region", "ams=Amsterdam@52.37,4.89", "--config", &config, "--json"];
    let created: Value = serde_json::from_str(&local.muster(&create).await.stdout).unwrap();
    let server = local.muster(&["token", "create", "server", "mine/prod"]).await.stdout;
    let public = local.muster(&["token", "create", "public", "mine/prod"]).await.stdout;

    let store = get(&format!("{}/_local/store", local.base_url)).await.expect_ok().body;
    let client = patient_client(store["endpoint"].as_str().unwrap());
    let of_catalog = move_items(&client, "CatalogTable", "restored-catalog", &["pk", "sk"]).await;
    let of_tokens = move_items(&client, "TokensTable", "restored-tokens", &["digest"]).await;
    assert!(!local.muster(&["game", "show", "mine"]).await.status.success());
    // Another table's items have another key.
    let mistaken = local.muster(&["restore", "tokens=restored-catalog", "--yes"]).await;
    assert_eq!(mistaken.status.code(), Some(4), "{}", mistaken.stderr);
    assert!(mistaken.stderr.contains("restored-catalog is no copy of tokens"), "{}", mistaken.stderr);

    let both = ["restore", "catalog=restored-catalog", "tokens=restored-tokens", "--yes", "--json"];
    let restored = local.muster(&both).await;
    assert!(restored.status.success(), "{}", restored.stderr);
    let counts: Value = serde_json::from_str(&restored.stdout).unwrap();
    assert_eq!(counts, json!({ "catalog": of_catalog, "tokens": of_tokens }));
    assert!(local.muster(&["doctor"]).await.status.success());

    let game = format!("{}/cloud/games/{}", local.base_url, created["game_id"].as_str().unwrap());
    let cloud = Request::get(&game)
        .header("authorization", format!("Bearer {}", created["cloud_token"].as_str().unwrap()));
    assert_eq!(send(cloud, "").await.expect_ok().body["game"]["name_id"], "mine");
    let registration = json!({
        "region_id": "ams", "capacity": 1,
        "ports": { "default": { "hostname": "game.example", "port": 7777, "protocol": "udp" } }
    });
    let register = format!("{}/matchmaker/servers/register", local.base_url);
    post(&register, server.trim(), &registration.to_string()).await.expect_ok();
    local.find(public.trim(), json!({ "game_modes": ["arena"] })).await.expect_ok();
}
