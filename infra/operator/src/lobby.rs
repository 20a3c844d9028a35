//! Lobbies and game servers of a namespace.

use std::collections::HashMap;

use clap::Subcommand;
use muster_console::standing::{Verdict, judged, server_state, shown_state};
use serde_json::{Value, json};
use shared::{
    base::ambient::{Timestamp, time},
    hosting::game_server::GameServers,
    models::{
        errors::Error,
        game::Game,
        ids::{LobbyId, NamespaceId, ServerId, ServerKey, StartId},
        launch::StartFailure,
        lobby::{EndCause, Lobby, READY_WAIT_MAX, Stage},
        pool::{Pool, Tags},
        seats::Party,
        server::Server,
        shortage::obstacles,
    },
    rules::{
        capacity::Outlook,
        criteria::{Criteria, NewLobby},
    },
    store::{
        client::Store,
        ending::EndOutcome,
        listing::{lobbies_on, lobbies_on_all, servers_of},
    },
    wire::{Entry, FindLobbyRequest, explanation::Resolved, lease_end},
};

use crate::{
    consent::Consent,
    deployment::Deployment,
    error::CommandError,
    lookup::{self, NamespaceName, OfNamespace},
    report::{Report, Reported, counted},
};

#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Lists the lobbies that have not ended, even closed and private ones.
    List {
        /// The namespace.
        #[arg(value_name = "GAME/NAMESPACE")]
        namespace: NamespaceName,
        /// List them again every two seconds, until Ctrl-C.
        #[arg(long)]
        watch: bool,
    },
    /// Shows in which lobby a find would take a seat now, and why in no other; without such a lobby, whether
    /// it would create one, and why not. Takes no seat, and knows no limit of a player's IP address.
    Explain {
        /// The namespace.
        #[arg(value_name = "GAME/NAMESPACE")]
        namespace: NamespaceName,
        /// A requested mode; repeat for more.
        #[arg(long = "mode", required = true)]
        game_modes: Vec<String>,
        /// A requested region; repeat for more. By default the first one of the first mode.
        #[arg(long = "region")]
        regions: Vec<String>,
        /// A requested tag; repeat for more.
        #[arg(long = "tag", value_name = "NAME=VALUE", value_parser = tag)]
        tags: Vec<(String, String)>,
        /// Players who want seats together.
        #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=16))]
        party_size: u32,
    },
    /// Shows a lobby, for a day after its end without its tags.
    Show {
        /// The lobby.
        lobby_id: LobbyId,
    },
    /// Ends a lobby with its seats, and frees its place.
    End {
        /// The lobby.
        lobby_id: LobbyId,
        #[command(flatten)]
        consent: Consent,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ServerAction {
    /// Lists the game servers, even full ones and those that fell silent in the last day.
    List(OfNamespace),
    /// Takes a game server that vanished out of service: it gets no more lobbies, and its lobbies end
    /// immediately.
    Remove {
        /// The namespace.
        #[arg(value_name = "GAME/NAMESPACE")]
        namespace: NamespaceName,
        /// The game server.
        server_id: ServerId,
        /// Remove it although its lease has not expired, or it has none.
        #[arg(long)]
        alive: bool,
        #[command(flatten)]
        consent: Consent,
    },
}

pub(crate) async fn run(action: Action, deployment: &Deployment) -> Reported {
    match action {
        Action::List { namespace, .. } => list(&namespace, deployment).await,
        Action::Explain { namespace, game_modes, regions, tags, party_size } => {
            let party = Party { size: party_size, data: Vec::new() };
            let (tags, entry) = (tags.into_iter().collect(), Entry { party, ..Entry::default() });
            let find = FindLobbyRequest { game_modes, regions, tags, entry, ..FindLobbyRequest::default() };
            explain(namespace, &find, deployment).await
        }
        Action::Show { lobby_id } => show(lobby_id, deployment).await,
        Action::End { lobby_id, consent } => end(lobby_id, consent, deployment).await,
    }
}

pub(crate) async fn list(namespace: &NamespaceName, deployment: &Deployment) -> Reported {
    let (store, now) = (&deployment.store, deployment.ambient.now());
    let (game, right) = lookup::namespace(store, namespace).await?;
    let servers = servers_of(store, &game, right.namespace_id()).await?;
    let mut lobbies = lobbies_on_all(store, &servers).await?;
    lobbies.sort_by(|one, other| (one.created_at, &one.lobby_id).cmp(&(other.created_at, &other.lobby_id)));
    let tags = store.lobby_tags(&lobbies).await?;
    let head = ["id", "mode", "region", "seats", "state", "server", "created"];
    Ok(Report::of_each("lobbies", head, &lobbies, |lobby| {
        let [id, mode, region, seats] = first_cells(lobby, now);
        let state = shown_state(lobby, now).to_owned();
        let created = time(lobby.created_at);
        ([id, mode, region, seats, state, server_of(lobby), created], describe(lobby, &tags, now))
    }))
}

/// The result of a find for each lobby that has not ended.
async fn explain(namespace: NamespaceName, request: &FindLobbyRequest, deployment: &Deployment) -> Reported {
    let (store, now) = (&deployment.store, deployment.ambient.now());
    let (game, right) = lookup::namespace(store, &namespace).await?;
    let version_id = &right.namespace().version_id;
    let version = store.version(&game.game_id, version_id).await?;
    let version = version.ok_or_else(|| CommandError::from(Error::VersionNotFound))?;
    let criteria = Criteria::resolve(request, right.namespace(), &game, &version, None)?;
    let servers = servers_now(store, &game, right.namespace_id(), now).await?;
    let lobbies = lobbies_on_all(store, &servers).await?;
    let tags = store.lobby_tags(&lobbies).await?;
    let new = &criteria.new_lobby;
    let (wanted, placement) = (&new.pool, new.placement());
    let failure = start_failure(store, new, now).await?;
    let nearest: Vec<_> = servers.iter().filter(|server| server.pool() == placement).collect();
    let starting: Vec<_> = nearest.iter().filter_map(|server| starting(server)).collect();
    let obstacles = obstacles(nearest, &wanted.game_mode, now);
    let most = right.namespace().lobby_count_max;
    let outlook = Outlook::of(new, most, servers, &lobbies, failure, now);
    let (takes, rows) = judged(lobbies, &criteria, now);
    let outlook = if takes.is_some() { Outlook::default() } else { outlook };
    let ends = outlook
        .ends
        .iter()
        .map(|(lobby_id, cause)| json!({ "lobby_id": lobby_id, "because": because(*cause) }));
    let as_json =
        |refusal: &Error| json!({ "code": refusal.status_and_code().1, "message": refusal.to_string() });
    let refusal = outlook.refusal.as_ref().map(as_json);
    let is_awaited = rows.first().is_some_and(|(_, verdict)| *verdict == Verdict::Awaited);
    let json = json!({
        "resolved": Resolved::from(&criteria),
        "takes": takes,
        "waits": is_awaited,
        "ends": ends.collect::<Vec<_>>(),
        "creates": takes.is_none() && refusal.is_none(),
        "refusal": refusal,
        "requests_server": outlook.requests,
        "starting": starting,
        "servers": obstacles,
        "candidates": rows.iter().map(|(lobby, verdict)| {
            json!({ "lobby": describe(lobby, &tags, now), "verdict": verdict })
        }).collect::<Vec<_>>(),
    });
    let mut report = Report::table(
        ["id", "mode", "region", "seats", "verdict"],
        rows.into_iter()
            .map(|(lobby, verdict)| {
                let [id, mode, region, seats] = first_cells(&lobby, now);
                [id, mode, region, seats, json!(verdict).as_str().unwrap_or_default().to_owned()]
            })
            .collect(),
        json,
    );
    if takes.is_none() {
        let outcome = without_lobby(wanted, most, &outlook);
        report.text = format!("{}\nno lobby fits: {outcome}", report.text);
    } else if is_awaited {
        report.text += &format!("\nthe find waits up to {} s for `lobbies/ready`", READY_WAIT_MAX.as_secs());
    }
    Ok(report)
}

/// The game servers of a namespace as they are now: the index may lag.
async fn servers_now(
    store: &Store,
    game: &Game,
    namespace_id: &NamespaceId,
    now: Timestamp,
) -> Result<Vec<Server>, Error> {
    let listed = lookup::servers_with_silent(store, game, namespace_id, now).await?;
    let listed: Vec<_> = listed.into_iter().map(|server| server.server).collect();
    store.servers_as_they_are(&listed).await
}

/// Why no game server is requested for a new lobby; `None` also where none ever is.
async fn start_failure(store: &Store, new: &NewLobby, now: Timestamp) -> Result<Option<StartFailure>, Error> {
    if new.launch.is_none() {
        return Ok(None);
    }
    let (placement, region_id) = (new.placement(), &new.pool.region_id);
    Ok(store.nursery(&placement).await?.start_failure(region_id, now))
}

/// A game server that was requested and has not registered; `None` for another one.
fn starting(server: &Server) -> Option<Value> {
    let launch = server.launch.as_ref().filter(|_| server.is_requested())?;
    let (requested_at, deadline) = (time(launch.requested_at), time(launch.deadline));
    let (server_id, lobbies) = (&server.server.server_id, server.used);
    Some(
        json!({ "server_id": server_id, "requested_at": requested_at, "deadline": deadline, "lobbies": lobbies }),
    )
}

async fn show(lobby_id: LobbyId, deployment: &Deployment) -> Reported {
    let (store, now) = (&deployment.store, deployment.ambient.now());
    let lobby = find(deployment, &lobby_id).await?;
    let seats = format!(
        "{} of {} ({} by joining): {} reserved, {} connected",
        lobby.held_seats(now),
        lobby.max_players,
        lobby.max_players_direct,
        lobby.reserved.values().filter(|until| **until > now).count(),
        lobby.connected.len(),
    );
    let tags = store.lobby_tags([&lobby]).await?;
    let shown = tags.values().flatten().map(|(name, tag)| format!("{name}={tag}"));
    let lines = vec![
        ("lobby", lobby.lobby_id.to_string()),
        ("namespace", lobby.pool.namespace_id.to_string()),
        ("version", lobby.pool.version_id.to_string()),
        ("mode", lobby.pool.game_mode.to_string()),
        ("region", lobby.pool.region_id.to_string()),
        ("state", shown_state(&lobby, now).to_owned()),
        ("seats", seats),
        ("tags", shown.collect::<Vec<_>>().join(" ")),
        ("server", server_of(&lobby)),
        ("lease until", lease_end(lobby.lease_until).unwrap_or_else(|| "none".to_owned())),
        ("created", time(lobby.created_at)),
    ];
    let json = json!({ "lobby": describe(&lobby, &tags, now) });
    Ok(Report::list(lines, json))
}

async fn end(lobby_id: LobbyId, consent: Consent, deployment: &Deployment) -> Reported {
    let store = &deployment.store;
    let lobby = find(deployment, &lobby_id).await?;
    if lobby.stage != Stage::Ended {
        let owner = lookup::owner(store, &lobby.pool.namespace_id).await?;
        let owner = owner.map(|(game, namespace)| format!(" of {}/{}", game.name_id, namespace.name_id));
        let players = connected([&lobby], deployment.ambient.now());
        let loss = format!("ends the lobby {lobby_id}{} with {players}", owner.unwrap_or_default());
        consent.to(&loss, deployment)?;
    }
    let outcome = store.end_lobby(&lobby, EndCause::Requested, &deployment.ambient).await?;
    let has_ended = outcome == EndOutcome::Ended;
    let text = if has_ended { "the lobby has ended" } else { "the lobby had ended before" };
    Ok(Report { text: text.to_owned(), json: json!({ "lobby_id": lobby_id, "ended": has_ended }) })
}

/// The connected players of lobbies, in words.
pub(crate) fn connected<'a>(lobbies: impl IntoIterator<Item = &'a Lobby>, now: Timestamp) -> String {
    let players = lobbies.into_iter().flat_map(|lobby| lobby.connected.values());
    counted(players.filter(|until| **until > now).count(), "connected player")
}

/// The result of a find that no lobby fits.
fn without_lobby(wanted: &Pool, lobby_count_max: u32, outlook: &Outlook) -> String {
    let Pool { game_mode, region_id, .. } = wanted;
    let end = |(lobby_id, cause): &(LobbyId, EndCause)| {
        format!("lobby {lobby_id} would end, because {}; then ", because(*cause))
    };
    let ends: String = outlook.ends.iter().map(end).collect();
    let then = match &outlook.refusal {
        None if outlook.requests => {
            format!(
                "one of mode {game_mode} would be created in {region_id} on a game server that is requested for it"
            )
        }
        None => format!("one of mode {game_mode} would be created in {region_id}"),
        Some(refusal @ Error::TooManyLobbies) => {
            format!("{refusal} ({lobby_count_max}), and none of them may end; see `muster lobby list`")
        }
        Some(refusal) => refusal.to_string(),
    };
    format!("{ends}{then}")
}

const fn because(cause: EndCause) -> &'static str {
    match cause {
        EndCause::Requested => "somebody ended it",
        EndCause::ServerRestarted => "its game server restarted",
        EndCause::ServerDead => "its game server is silent",
        EndCause::NeverReady => "it never became ready",
        EndCause::Idle => "nobody holds a seat there",
        EndCause::Unused => "nobody has connected to it, and its maker's reservations were not used before",
    }
}

fn tag(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or_else(|| "must be NAME=VALUE".to_owned())?;
    Ok((name.to_owned(), value.to_owned()))
}

pub(crate) async fn run_on_servers(action: ServerAction, deployment: &Deployment) -> Reported {
    match action {
        ServerAction::List(of) => list_servers(of, deployment).await,
        ServerAction::Remove { namespace, server_id, alive, consent } => {
            remove_server(namespace, server_id, alive, consent, deployment).await
        }
    }
}

async fn list_servers(of: OfNamespace, deployment: &Deployment) -> Reported {
    let (store, now) = (&deployment.store, deployment.ambient.now());
    let (game, right) = lookup::namespace(store, &of.namespace).await?;
    let servers = lookup::servers_with_silent(store, &game, right.namespace_id(), now).await?;
    let modes = |server: &Server| match &server.game_modes {
        Some(modes) => modes.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
        None => "all".to_owned(),
    };
    let head = ["id", "region", "lobbies", "modes", "state", "start", "started", "lease until", "last heard"];
    Ok(Report::of_each("servers", head, &servers, |server| {
        let Server { region_id, used, capacity, game_modes, start_id, .. } = server;
        let (id, state) = (&server.server.server_id, server_state(server, now));
        let (started, lease) = (time(server.started_at), lease_end(server.lease_until));
        let heard = time(server.beat_at);
        let json = json!({
            "server_id": id, "region_id": region_id, "lobbies": used, "capacity": capacity,
            "game_modes": game_modes, "state": state, "start_id": start_id,
            "token_id": server.owner.as_ref().map(|owner| &owner.token_id), "started_at": started,
            "lease_expires_at": lease, "heard_at": heard,
            "requested_at": server.launch.as_ref().map(|launch| time(launch.requested_at)),
            "handle": server.handle, "failure": server.failure,
        });
        let row = [
            id.to_string(),
            region_id.to_string(),
            format!("{used}/{capacity}"),
            modes(server),
            state.to_owned(),
            start_id.as_ref().map_or("unknown", StartId::as_str).to_owned(),
            started,
            lease.unwrap_or_else(|| "none".to_owned()),
            heard,
        ];
        (row, json)
    }))
}

async fn remove_server(
    namespace: NamespaceName,
    server_id: ServerId,
    is_alive_meant: bool,
    consent: Consent,
    deployment: &Deployment,
) -> Reported {
    let (store, now) = (&deployment.store, deployment.ambient.now());
    let (_, right) = lookup::namespace(store, &namespace).await?;
    let key = ServerKey { namespace_id: right.namespace_id().clone(), server_id: server_id.clone() };
    if let Some(server) = store.server(&key).await? {
        if server.lease_until > now && !is_alive_meant {
            let lease = lease_end(server.lease_until);
            let lease =
                lease.map_or_else(|| "has no lease".to_owned(), |end| format!("has a lease until {end}"));
            return Err(CommandError::Refused(format!(
                "{server_id} of {namespace} {lease}, so it counts as alive; to end its lobbies all the same, add --alive"
            )));
        }
        let lobbies = lobbies_on(store, &key).await?;
        let loss = format!(
            "removes the game server {server_id} of {namespace} and ends {} with {}",
            counted(lobbies.len(), "lobby"),
            connected(&lobbies, now)
        );
        consent.to(&loss, deployment)?;
    }
    let servers = GameServers::new(deployment.store.clone(), deployment.ambient.clone());
    match servers.remove(&right, server_id.clone()).await {
        Ok(()) => Ok(Report {
            text: format!("{server_id} is out of service, and its lobbies have ended"),
            json: json!({ "server_id": server_id }),
        }),
        Err(Error::ServerNotFound) => {
            Err(lookup::unknown("game server", server_id.as_str(), "server list GAME/NAMESPACE"))
        }
        Err(error) => Err(error.into()),
    }
}

async fn find(deployment: &Deployment, id: &LobbyId) -> Result<Lobby, CommandError> {
    let unknown = || lookup::unknown("lobby", id.as_str(), "lobby list GAME/NAMESPACE");
    deployment.store.lobby(id).await?.ok_or_else(unknown)
}

/// What every table of lobbies begins with: identifier, mode, region and seats.
fn first_cells(lobby: &Lobby, now: Timestamp) -> [String; 4] {
    let Pool { game_mode, region_id, .. } = &lobby.pool;
    let seats = format!("{}/{}", lobby.held_seats(now), lobby.max_players);
    [lobby.lobby_id.to_string(), game_mode.to_string(), region_id.to_string(), seats]
}

fn server_of(lobby: &Lobby) -> String {
    lobby.server.as_ref().map(|server| server.server_id.to_string()).unwrap_or_default()
}

fn describe(lobby: &Lobby, tags: &HashMap<LobbyId, Tags>, now: Timestamp) -> Value {
    let tags = tags.get(&lobby.lobby_id).cloned().unwrap_or_default();
    json!({
        "lobby_id": lobby.lobby_id, "namespace_id": lobby.pool.namespace_id, "version_id": lobby.pool.version_id,
        "game_mode": lobby.pool.game_mode, "region_id": lobby.pool.region_id, "state": shown_state(lobby, now),
        "players": lobby.held_seats(now), "max_players": lobby.max_players,
        "max_players_direct": lobby.max_players_direct, "private": lobby.is_private, "closed": lobby.closed,
        "tags": tags, "server_id": lobby.server.as_ref().map(|server| &server.server_id),
        "lease_expires_at": lease_end(lobby.lease_until), "created_at": time(lobby.created_at),
    })
}
