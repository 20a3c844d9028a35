//! Issuing, listing and revoking tokens.

use std::{collections::BTreeMap, fmt::Write as _, time::Duration};

use clap::{Subcommand, ValueEnum};
use serde_json::json;
use shared::{
    base::ambient::{Timestamp, time},
    hosting::{
        game_server::GameServers,
        revoked::{Removed, Sweep},
    },
    models::{
        errors::Error,
        game::Game,
        ids::{NamespaceId, ServerId, TokenId},
        namespace::{Namespace, REVOKED_TOKENS_MAX},
        ports::Ports,
        rights::GameRight,
        token::{CredentialKind, DevelopmentHost, Owner, TokenKind},
    },
    store::{
        listing::{lobbies_on_all, servers_of},
        tokens::{IssuedToken, RevokeOutcome},
    },
    wire::ports::PortSpec,
};

use crate::{
    consent::Consent,
    deployment::Deployment,
    error::CommandError,
    lobby::connected,
    lookup::{self, NamespaceName, OfGame, OfNamespace},
    report::{Report, Reported, counted},
};

#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Issues a token, which is shown only now.
    #[command(subcommand)]
    Create(Kind),
    /// Lists the tokens of a game by identifier and dates, never the tokens.
    List(OfGame),
    /// Revokes one token. If it is a server token, its game servers go out of service and their lobbies end,
    /// which takes half a minute.
    Revoke {
        /// The game.
        game: String,
        /// The token's identifier, from the list.
        token_id: TokenId,
        #[command(flatten)]
        consent: Consent,
    },
    /// Revokes all tokens of a kind that a namespace issued until now; server tokens with their game servers,
    /// as `revoke` does.
    RevokeAll {
        /// The namespace.
        #[arg(value_name = "GAME/NAMESPACE")]
        namespace: NamespaceName,
        /// The kind.
        kind: NamespaceKind,
        #[command(flatten)]
        consent: Consent,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Kind {
    /// For studios: every cloud operation of a game.
    Cloud(OfGame),
    /// For game clients: the matchmaker operations of players in a namespace.
    Public(OfNamespace),
    /// For game servers of a namespace.
    Server(OfNamespace),
    /// For client tests: every matchmaker operation responds with a mock that names this host and these
    /// ports, never a real lobby.
    Development {
        /// The namespace.
        #[arg(value_name = "GAME/NAMESPACE")]
        namespace: NamespaceName,
        /// The host in the mocks.
        #[arg(long, default_value = "127.0.0.1")]
        hostname: String,
        /// A port in the mocks, such as `default=7777/udp` or `game=26000-27000/udp`; repeat for more.
        #[arg(long = "port", required = true, value_name = "LABEL=PORT/PROTOCOL", value_parser = port)]
        ports: Vec<(String, PortSpec)>,
    },
}

/// The kinds of token that a namespace issues.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum NamespaceKind {
    Public,
    Server,
    Development,
}

impl NamespaceKind {
    pub const fn token_kind(self) -> TokenKind {
        match self {
            Self::Public => TokenKind::Public,
            Self::Server => TokenKind::Server,
            Self::Development => TokenKind::Development,
        }
    }
}

fn port(text: &str) -> Result<(String, PortSpec), String> {
    let form = || "write a port as LABEL=PORT/PROTOCOL, such as default=7777/udp".to_owned();
    let (label, rest) = text.split_once('=').ok_or_else(form)?;
    let (numbers, protocol) = rest.split_once('/').ok_or_else(form)?;
    let number = |text: &str| text.parse::<u16>().map_err(|_| form());
    let spec = match numbers.split_once('-') {
        Some((min, max)) => {
            json!({ "port_range": { "min": number(min)?, "max": number(max)? }, "protocol": protocol })
        }
        None => json!({ "port": number(numbers)?, "protocol": protocol }),
    };
    let spec = serde_json::from_value(spec).map_err(|error| format!("{}: {error}", form()))?;
    Ok((label.to_owned(), spec))
}

pub(crate) async fn run(action: Action, deployment: &Deployment) -> Reported {
    match action {
        Action::Create(kind) => create(kind, deployment).await,
        Action::List(of) => list(of, deployment).await,
        Action::Revoke { game, token_id, consent } => revoke(game, token_id, consent, deployment).await,
        Action::RevokeAll { namespace, kind, consent } => {
            revoke_all(namespace, kind, consent, deployment).await
        }
    }
}

async fn create(kind: Kind, deployment: &Deployment) -> Reported {
    let token = issue(kind, deployment).await?;
    Ok(Report { json: json!({ "token": token }), text: token })
}

async fn list(of: OfGame, deployment: &Deployment) -> Reported {
    let store = &deployment.store;
    let game = lookup::game(store, &of.game).await?;
    let namespaces = store.namespaces(&game.game_id).await?;
    let now = deployment.ambient.now();
    let tokens = store.issued_tokens(&game.game_id).await?;
    let head = ["id", "kind", "namespace", "issued", "expires", "state"];
    Ok(Report::of_each("tokens", head, tokens, |token| {
        let namespace = namespaces.iter().find(|one| Some(&one.namespace_id) == token.namespace_id.as_ref());
        let state = state(&token, namespace, now);
        let IssuedToken { token_id, kind, namespace_id, issued_at, expires_at, revoked_at, .. } = token;
        let kind = kind.map_or("unknown", TokenKind::name);
        let (issued, expires) = (time(issued_at), expires_at.map(time));
        let json = json!({ "token_id": token_id, "kind": kind, "namespace_id": namespace_id, "issued_at": issued,
                           "expires_at": expires, "revoked_at": revoked_at.map(time), "state": state });
        let name = namespace.map(|found| found.name_id.clone()).unwrap_or_default();
        let (kind, state) = (kind.to_owned(), state.to_owned());
        ([token_id.to_string(), kind, name, issued, expires.unwrap_or_default(), state], json)
    }))
}

async fn revoke(game: String, token_id: TokenId, consent: Consent, deployment: &Deployment) -> Reported {
    let store = &deployment.store;
    let game = lookup::game(store, &game).await?;
    let issued = store.issued_tokens(&game.game_id).await?;
    if let Some(token) = issued.iter().find(|token| token.token_id == token_id && token.revoked_at.is_none())
    {
        let kind = token.kind.map_or("unknown", TokenKind::name);
        let loss = format!("revokes the {kind} token {token_id} of {}, for good", game.name_id);
        let servers = match &token.namespace_id {
            Some(namespace_id) if token.kind == Some(TokenKind::Server) => {
                lost_with(&game, namespace_id, deployment, |owner| owner.token_id == token_id).await?
            }
            _ => String::new(),
        };
        consent.to(&format!("{loss}{servers}"), deployment)?;
    }
    let right = GameRight::of_operator(game.game_id.clone());
    let is_revoked_now = match store.revoke_token(&right, &token_id, deployment.ambient.now()).await? {
        RevokeOutcome::Revoked => true,
        RevokeOutcome::RevokedBefore => false,
        RevokeOutcome::Unknown => {
            let list = format!("token list {}", game.name_id);
            return Err(lookup::unknown("token", token_id.as_str(), &list));
        }
        RevokeOutcome::TooMany => {
            return Err(CommandError::Refused(format!(
                "the namespace has {REVOKED_TOKENS_MAX} tokens revoked one by one; `muster token revoke-all` revokes all of a kind"
            )));
        }
    };
    let text = if is_revoked_now {
        format!("{token_id} is revoked; functions apply this within 30 s")
    } else {
        format!("{token_id} was revoked before")
    };
    let report = Report { text, json: json!({ "token_id": token_id, "revoked": is_revoked_now }) };
    let tokens = store.issued_tokens(&game.game_id).await?;
    let token = tokens.into_iter().find(|token| token.token_id == token_id);
    match token.filter(|token| token.kind == Some(TokenKind::Server)).and_then(|token| token.namespace_id) {
        Some(namespace_id) => remove_servers(report, &game, &namespace_id, deployment).await,
        None => Ok(report),
    }
}

/// What ends with the server tokens that are meant, in words.
async fn lost_with(
    game: &Game,
    namespace_id: &NamespaceId,
    deployment: &Deployment,
    is_meant: impl Fn(&Owner) -> bool,
) -> Result<String, CommandError> {
    let (store, now) = (&deployment.store, deployment.ambient.now());
    let mut servers = servers_of(store, game, namespace_id).await?;
    servers.retain(|server| server.owner.as_ref().is_some_and(&is_meant));
    if servers.is_empty() {
        return Ok(String::new());
    }
    let lobbies = lobbies_on_all(store, &servers).await?;
    let (servers, ended) = (counted(servers.len(), "game server"), counted(lobbies.len(), "lobby"));
    Ok(format!(", removes {servers} and ends {ended} with {}", connected(&lobbies, now)))
}

/// Takes the game servers of revoked tokens out of service, and adds them to `report`.
async fn remove_servers(
    report: Report,
    game: &Game,
    namespace_id: &NamespaceId,
    deployment: &Deployment,
) -> Reported {
    let Report { mut text, mut json } = report;
    let servers = GameServers::new(deployment.store.clone(), deployment.ambient.clone());
    let Sweep { removed, left } =
        servers.remove_revoked(game, namespace_id, deployment.settings_age()).await?;
    if !left.is_empty() {
        let left: Vec<_> = left.iter().map(ServerId::as_str).collect();
        return Err(CommandError::Refused(format!(
            "{text}, but not all lobbies of its game servers {} have ended: repeat the command",
            left.join(", ")
        )));
    }
    for Removed { server_id, lobbies, players } in &removed {
        let _never = write!(
            text,
            "\ngame server {server_id} is out of service; lobbies ended: {lobbies}, players in them: {players}"
        );
    }
    if removed.is_empty() {
        text.push_str("\nno game server belonged to it");
    }
    let removed = removed.iter().map(|Removed { server_id, lobbies, players }| {
        json!({ "server_id": server_id, "lobbies": lobbies, "players": players })
    });
    if let Some(json) = json.as_object_mut() {
        let _none_before = json.insert("servers".to_owned(), removed.collect());
    }
    Ok(Report { text, json })
}

async fn revoke_all(
    namespace: NamespaceName,
    kind: NamespaceKind,
    consent: Consent,
    deployment: &Deployment,
) -> Reported {
    let store = &deployment.store;
    let (game, right) = lookup::namespace(store, &namespace).await?;
    // Tokens have whole seconds, and those of the current second count as issued until now.
    let limit = Timestamp(deployment.ambient.now().secs() * 1_000) + Duration::from_secs(1);
    let kind = kind.token_kind();
    let issued = store.issued_tokens(&game.game_id).await?;
    let is_lost = |token: &&IssuedToken| {
        token.kind == Some(kind)
            && token.namespace_id.as_ref() == Some(right.namespace_id())
            && state(token, Some(right.namespace()), limit) == "valid"
    };
    let lost = issued.iter().filter(is_lost).count();
    let loss = format!(
        "revokes every {} token of {}/{}, for good ({lost} valid)",
        kind.name(),
        game.name_id,
        right.namespace().name_id
    );
    let servers = match kind {
        TokenKind::Server => lost_with(&game, right.namespace_id(), deployment, |_| true).await?,
        _ => String::new(),
    };
    consent.to(&format!("{loss}{servers}"), deployment)?;
    store.revoke_tokens_before(&right, kind, limit).await?;
    // What is issued next shall count.
    deployment.ambient.sleep(limit.since(deployment.ambient.now())).await;
    let limit = time(limit);
    let (name, of) = (kind.name(), &right.namespace().name_id);
    let report = Report {
        text: format!("{name} tokens of {of} count if issued from {limit} on"),
        json: json!({ "kind": name, "not_before": limit }),
    };
    match kind {
        TokenKind::Server => remove_servers(report, &game, right.namespace_id(), deployment).await,
        _ => Ok(report),
    }
}

async fn issue(kind: Kind, deployment: &Deployment) -> Result<String, CommandError> {
    let store = &deployment.store;
    let issuer = deployment.issuer();
    Ok(match kind {
        Kind::Cloud(of) => {
            let game = lookup::game(store, &of.game).await?;
            let right = GameRight::of_operator(game.game_id);
            issuer.await?.cloud(&right).await?.reveal().to_owned()
        }
        Kind::Public(of) => {
            let (_, right) = lookup::namespace(store, &of.namespace).await?;
            issuer.await?.credential(&right, CredentialKind::Public).await?
        }
        Kind::Server(of) => {
            let (_, right) = lookup::namespace(store, &of.namespace).await?;
            issuer.await?.credential(&right, CredentialKind::Server).await?
        }
        Kind::Development { namespace, hostname, ports } => {
            let (_, right) = lookup::namespace(store, &namespace).await?;
            let ports: BTreeMap<_, _> = ports.into_iter().collect();
            let ports = Ports::of_specs(&ports, Some(&hostname)).map_err(Error::Validation)?;
            let hostname = ports.iter().next().map_or(hostname, |(_, port)| port.hostname.clone());
            issuer.await?.development(&right, DevelopmentHost { hostname, ports }).await?
        }
    })
}

/// Whether a token is valid.
fn state(token: &IssuedToken, namespace: Option<&Namespace>, now: Timestamp) -> &'static str {
    let limit =
        namespace.zip(token.kind).and_then(|(namespace, kind)| namespace.revocations.not_before.get(&kind));
    if token.revoked_at.is_some() || limit.is_some_and(|limit| token.issued_at < *limit) {
        "revoked"
    } else if token.expires_at.is_some_and(|expiry| expiry <= now) {
        "expired"
    } else {
        "valid"
    }
}
