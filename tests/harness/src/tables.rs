//! The tables read in full.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use shared::{
    models::{ids::NamespaceId, lobby::Lobby, server::Server},
    store::client::Store,
};

/// The live lobbies of a namespace as its game servers count them, by a full read of the table.
///
/// # Panics
/// When a server runs more lobbies than are allotted to it, or the ledger knows another sum (I2).
pub async fn live_lobbies(store: &Store, namespace_id: &NamespaceId) -> u32 {
    let servers = all_servers(store, namespace_id).await;
    for server in &servers {
        assert!(server.used <= server.allotted, "I2: {server:?}");
    }
    let allotted: u32 = servers.iter().map(|server| server.allotted).sum();
    assert_eq!(store.allotted_lobbies(namespace_id).await.expect("a read"), allotted, "I2");
    servers.iter().map(|server| server.used).sum()
}

/// Every game server of a namespace, by a full read of the table.
pub async fn all_servers(store: &Store, namespace_id: &NamespaceId) -> Vec<Server> {
    let scan = store.client().scan().table_name(&store.tables().servers);
    let items: Vec<_> = scan.into_paginator().items().send().collect::<Result<_, _>>().await.expect("a scan");
    let servers: Vec<Server> = serde_dynamo::from_items(items).expect("servers");
    servers.into_iter().filter(|server| server.server.namespace_id == *namespace_id).collect()
}

/// Every lobby of a namespace, ended ones too, by a full read of the table.
pub async fn all_lobbies(store: &Store, namespace_id: &NamespaceId) -> Vec<Lobby> {
    // A page of a MB may take the emulator longer than the client waits for one call.
    let scan = store.client().scan().table_name(&store.tables().lobbies).limit(500);
    let items: Vec<HashMap<String, AttributeValue>> =
        scan.into_paginator().items().send().collect::<Result<_, _>>().await.expect("a scan");
    let lobbies: Vec<Lobby> = serde_dynamo::from_items(items).expect("lobbies");
    lobbies.into_iter().filter(|lobby| lobby.pool.namespace_id == *namespace_id).collect()
}

/// Changes the item of `table` with this `key` past every operation, as another release or a crash would
/// leave it. A name that begins with `#` is an attribute.
///
/// # Panics
/// When there is no such item.
pub async fn alter(
    store: &Store,
    table: &str,
    key: &[(&str, &str)],
    change: &str,
    values: &[(&str, AttributeValue)],
) {
    let mut write = store.client().update_item().table_name(table).update_expression(change);
    for (name, value) in key {
        write = write.key(*name, AttributeValue::S((*value).to_owned()));
        write =
            write.condition_expression("attribute_exists(#key)").expression_attribute_names("#key", *name);
    }
    let names = change.split(|c: char| !c.is_alphanumeric() && !"#_".contains(c));
    for name in names.filter_map(|word| word.strip_prefix('#')) {
        write = write.expression_attribute_names(format!("#{name}"), name);
    }
    let values = values.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    let values = Some(values).filter(|values: &HashMap<_, _>| !values.is_empty());
    write.set_expression_attribute_values(values).send().await.expect("an item");
}
