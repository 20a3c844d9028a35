//! The tables read in full.

use std::collections::HashMap;

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
    let items: Vec<HashMap<String, aws_sdk_dynamodb::types::AttributeValue>> =
        scan.into_paginator().items().send().collect::<Result<_, _>>().await.expect("a scan");
    let lobbies: Vec<Lobby> = serde_dynamo::from_items(items).expect("lobbies");
    lobbies.into_iter().filter(|lobby| lobby.pool.namespace_id == *namespace_id).collect()
}
