//! What the console and the log read off a request and its response; never a token.

use http::{Response, header::AUTHORIZATION, request};
use muster_console::tape::{Answered, Named};
use serde_json::Value;
use shared::{
    auth::keys::TokenKeys,
    base::usage::Usage,
    function::operation::WARNING_HEADER,
    models::{
        ids::{GameId, LobbyId, NamespaceId},
        token::{Claims, Credential},
    },
    wire::explanation::Explanation,
};

/// The operations whose responses name a lobby or a game server.
const NAMING: [&str; 4] = ["find-lobby", "join-lobby", "create-lobby", "register-server"];

/// Data of a function's response for the console and the log alone.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// Its usage of the store.
    pub usage: Usage,
    /// Why a request for a seat came out so.
    pub explanation: Option<Explanation>,
}

/// What the token of a request is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The game; `None` for a player token.
    pub game_id: Option<GameId>,
    /// The namespace.
    pub namespace_id: NamespaceId,
    /// The lobby of a lobby token.
    pub lobby_id: Option<LobbyId>,
}

impl Caller {
    /// The caller of a request with a token of this stack, of any age.
    #[must_use]
    pub fn of(request: &request::Parts, keys: &TokenKeys) -> Option<Self> {
        let header = request.headers.get(AUTHORIZATION)?.to_str().ok()?;
        let (_, token) = header.split_once(' ')?;
        let with = |Credential { game_id, namespace_id, .. }, lobby_id| {
            Some(Self { game_id: Some(game_id), namespace_id, lobby_id })
        };
        match keys.verify_at_any_age(token.trim()).ok()? {
            Claims::Public(credential) | Claims::Development(credential, _) | Claims::Server(credential) => {
                with(credential, None)
            }
            Claims::Lobby(claims) => with(claims.server, Some(claims.lobby_id)),
            Claims::Player(seat) => {
                Some(Self { game_id: None, namespace_id: seat.namespace_id, lobby_id: None })
            }
            Claims::DevelopmentPlayer(_) => None,
        }
    }
}

/// The values of a request's body.
#[must_use]
pub fn named(body: &[u8]) -> Named {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let texts = |names: &[&str]| {
        let fields = names.iter().filter_map(|name| body.get(name));
        let texts = fields.flat_map(|value| match value {
            Value::Array(values) => values.iter().filter_map(Value::as_str).collect(),
            Value::String(text) => vec![text.as_str()],
            _ => Vec::new(),
        });
        texts.map(ToOwned::to_owned).collect()
    };
    let text = |name: &str| body.get(name).and_then(Value::as_str).map(ToOwned::to_owned);
    let tags = body.get("tags").and_then(Value::as_object).into_iter().flatten();
    Named {
        game_modes: texts(&["game_modes", "game_mode"]),
        regions: texts(&["regions", "region", "region_id"]),
        lobby_id: text("lobby_id"),
        server_id: text("server_id"),
        tags: tags.map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default())).collect(),
    }
}

/// The entry of an operation's response.
#[must_use]
pub fn said(operation: &str, response: &Response<lambda_http::Body>) -> Answered {
    let observed = response.extensions().get::<Observed>().cloned().unwrap_or_default();
    let status = response.status();
    let is_wanted = !status.is_success() || NAMING.contains(&operation);
    let body: Value = match response.body() {
        lambda_http::Body::Text(text) if is_wanted => serde_json::from_str(text).unwrap_or_default(),
        _ => Value::Null,
    };
    let text = |at: &str| body.pointer(at).and_then(Value::as_str).map(ToOwned::to_owned);
    let explanation = observed.explanation.filter(|found| found.resolved.is_some());
    let Usage { calls, read_units, write_units } = observed.usage;
    let explanation = explanation.map(|found| Explanation { calls, read_units, write_units, ..found });
    let got = Named {
        game_modes: if status.is_success() { modes(explanation.as_ref()) } else { Vec::new() },
        regions: text("/lobby/region/region_id").into_iter().collect(),
        lobby_id: text("/lobby/lobby_id"),
        server_id: text("/server_id"),
        tags: Vec::new(),
    };
    let request_id = response.headers().get("x-request-id").and_then(|id| id.to_str().ok());
    Answered {
        request_id: request_id.map(ToOwned::to_owned),
        status: status.as_u16(),
        code: text("/code"),
        message: text("/message"),
        warnings: response
            .headers()
            .get(WARNING_HEADER)
            .and_then(|line| Some(line.to_str().ok()?.to_owned())),
        metadata: body.get("metadata").cloned(),
        got,
        explanation,
        usage: observed.usage,
        ..Answered::default()
    }
}

/// The mode of a lobby that was created, or those among which one was found.
fn modes(explanation: Option<&Explanation>) -> Vec<String> {
    let Some((explanation, resolved)) = explanation.and_then(|found| Some((found, found.resolved.as_ref()?)))
    else {
        return Vec::new();
    };
    if explanation.created {
        return vec![resolved.creates.game_mode.to_string()];
    }
    let mut modes: Vec<_> = resolved.searched.iter().map(|place| place.game_mode.to_string()).collect();
    modes.dedup();
    modes
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn response(status: u16, body: &Value, observed: Observed) -> Response<lambda_http::Body> {
        let body = lambda_http::Body::Text(body.to_string());
        let mut response = Response::builder().status(status).body(body).unwrap();
        response.extensions_mut().insert(observed);
        response
    }

    #[test]
    fn values_have_modes_and_tags_but_no_token() {
        let texts = |body: Value| named(body.to_string().as_bytes()).texts();
        let find = json!({ "game_modes": ["duel", "arena"], "regions": null, "tags": { "map": "x" } });
        assert_eq!(texts(find), ["duel", "arena", "map=x"]);
        let register = json!({ "region_id": "fra", "server_id": "one", "lobby_id": "none" });
        assert_eq!(texts(register), ["fra", "none", "one"]);
        assert!(texts(json!({ "player_token": "player_x", "captcha": { "hcaptcha": 1 } })).is_empty());
        assert!(texts(json!([1])).is_empty());
    }

    #[test]
    fn a_refusal_has_its_cost_and_its_metadata() {
        let body = json!({ "code": "X", "message": "why", "metadata": { "max": 8 } });
        let usage = Usage { calls: 3, read_units: 1.0, write_units: 2.0 };
        let observed = Observed { usage, explanation: Some(Explanation::default()) };
        let said = said("find-lobby", &response(503, &body, observed));
        assert_eq!((said.status, said.code.as_deref(), said.usage), (503, Some("X"), usage));
        assert_eq!(said.metadata, Some(json!({ "max": 8 })));
        assert_eq!(said.explanation, None, "nothing was resolved: there is nothing to explain");
    }

    #[test]
    fn a_seat_has_its_lobby_and_the_mode_of_a_created_one() {
        let place = |mode: &str| json!({ "game_mode": mode, "region_id": "fra" });
        let resolved = json!({ "searched": [place("duel"), place("arena")], "creates": place("duel"),
                               "tags": {}, "max_players": 2 });
        let explanation = json!({ "resolved": resolved, "considered": 0, "refused": {}, "created": true,
                                  "replayed": false, "calls": 1, "read_units": 1.0, "write_units": 1.0 });
        let created: Explanation = serde_json::from_value(explanation).unwrap();
        let body = json!({ "lobby": { "lobby_id": "some", "region": { "region_id": "fra" } },
                           "player": { "token": "player_x" } });
        let got = |explanation: Explanation| {
            let observed = Observed { usage: Usage::default(), explanation: Some(explanation) };
            said("find-lobby", &response(200, &body, observed)).got.texts()
        };
        assert_eq!(got(created.clone()), ["duel", "fra", "some"]);
        assert_eq!(got(Explanation { created: false, ..created }), ["duel", "arena", "fra", "some"]);
    }
}
