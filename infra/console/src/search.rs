//! Finds the item of an identifier or of its beginning. Reads at most two items: a lobby by its identifier
//! and a game server by its own. Everything else is looked up in what the console holds anyway.

use serde_json::{Value, json};
use shared::{
    base::ambient::Timestamp,
    models::ids::{LobbyId, NamespaceId, ServerKey},
};

use crate::{
    host::{Host, Refusal},
    queries::{NamedRequest, Searched},
    tape::Entry,
    watch::{Snapshot, Watches},
};

/// Shorter beginnings would fit too many identifiers.
const BEGINNING_MIN: usize = 4;
/// Hits that one search shows.
const HITS_MAX: usize = 20;
/// A namespace is seen while a page looks at it. An older look says nothing of now.
const SEEN_AGE_MAX: std::time::Duration = std::time::Duration::from_secs(60);

/// A lobby, game server or request, and why the text matches it.
fn hit(kind: &str, id: &str, namespace_id: Option<&NamespaceId>, because: &str) -> Value {
    json!({ "kind": kind, "id": id, "namespace_id": namespace_id, "because": because })
}

/// All that `text` leads to.
pub async fn found(host: &Host, watches: &Watches, searched: Searched) -> Result<Value, Refusal> {
    let Searched { namespace, text } = searched;
    let text = text.trim();
    let mut hits = Vec::new();
    if let Ok(id) = text.parse::<LobbyId>()
        && let Some(lobby) = host.store.lobby(&id).await?
    {
        hits.push(hit("lobby", id.as_str(), Some(&lobby.pool.namespace_id), "its identifier"));
    }
    if let Ok(server_id) = text.parse() {
        let key = ServerKey { namespace_id: namespace.clone(), server_id };
        if let Some(server) = host.store.server(&key).await? {
            hits.push(hit("server", server.server.server_id.as_str(), Some(&namespace), "its identifier"));
        }
    }
    let now = host.ambient.now();
    let seen = watches.of(&namespace).map(|watch| watch.seen());
    let seen = seen.filter(|seen| seen.at > Timestamp::default() && now.since(seen.at) <= SEEN_AGE_MAX);
    if text.len() >= BEGINNING_MIN {
        if let Some(seen) = &seen {
            // What has the whole identifier is there already.
            hits.extend(seen_hits(seen, &namespace, text).filter(|hit| hit["id"] != text));
        }
        if let Some(Entry { request_id: Some(id), namespace_id, .. }) =
            host.tape.as_ref().and_then(|tape| tape.request(text))
        {
            hits.push(hit("request", &id, namespace_id.as_ref(), "its identifier"));
        }
    }
    hits.truncate(HITS_MAX);
    Ok(json!({ "hits": hits, "lobbies_seen": seen.map(|seen| seen.lobbies.len()) }))
}

fn seen_hits<'a>(
    seen: &'a Snapshot,
    namespace: &'a NamespaceId,
    text: &'a str,
) -> impl Iterator<Item = Value> + 'a {
    seen.lobbies.iter().filter_map(move |lobby| {
        let id = lobby.lobby_id.as_str();
        let mut seats = lobby.connected.keys().chain(lobby.reserved.keys());
        let because = if id.starts_with(text) {
            "its identifier begins so"
        } else if seats.any(|seat| seat.as_str().starts_with(text)) {
            "a seat in it"
        } else {
            return None;
        };
        Some(hit("lobby", id, Some(namespace), because))
    })
}

/// A request that the host answered and still remembers.
pub fn request(host: &Host, named: &NamedRequest) -> Result<Value, Refusal> {
    let tape = host.tape.as_ref().filter(|_| named.request.len() >= BEGINNING_MIN);
    let entry = tape.and_then(|tape| tape.request(&named.request));
    let entry = entry.ok_or_else(|| {
        Refusal::from(format!("the request {} is not among the last ones of this stack", named.request))
    })?;
    Ok(json!({ "now": host.ambient.now(), "request": entry }))
}
