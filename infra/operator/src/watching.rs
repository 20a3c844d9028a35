//! `muster lobby list --watch` and `muster tail`: a namespace as it changes, until Ctrl-C.

use std::{
    io::{self, IsTerminal as _, Write as _},
    sync::Arc,
    time::Duration,
};

use muster_console::{
    budget::dollars_an_hour,
    changes::{Look, changes},
};
use serde_json::json;
use shared::{
    base::ambient::{Timestamp, time},
    models::{
        errors::Error,
        ids::{GameId, NamespaceId},
        lobby::Lobby,
        server::Server,
    },
    store::{
        listing::{lobbies_on_all, servers_of},
        meter::metered,
    },
};

use crate::{
    deployment::Deployment,
    error::CommandError,
    interruption::Interruption,
    lobby,
    lookup::{self, NamespaceName},
    report::{Report, Reported},
};

/// How often the namespace is read.
const EVERY: Duration = Duration::from_secs(2);
/// Clears a terminal and begins at its top.
const CLEAR: &str = "\u{1b}[2J\u{1b}[H";

/// Whether to go on: standard output has a reader.
type Said = io::Result<()>;

/// Prints the list of lobbies again and again.
pub(crate) async fn list(namespace: &NamespaceName, deployment: &Deployment, as_json: bool) -> Reported {
    let clear = if io::stdout().is_terminal() && !as_json { CLEAR } else { "" };
    let table = async || Ok(format!("{clear}{}", lobby::list(namespace, deployment).await?.show(as_json)));
    let first = table().await?;
    let interruption = Interruption::listen().await;
    if say(&first).is_ok() {
        again(interruption, async || {
            let table = table().await.unwrap_or_else(|error: CommandError| format!("{clear}{error}"));
            say(&table)
        })
        .await;
    }
    Ok(ended())
}

/// Prints a line for each change of the namespace's lobbies and game servers.
pub(crate) async fn tail(namespace: &NamespaceName, deployment: &Deployment, as_json: bool) -> Reported {
    let (game, right) = lookup::namespace(&deployment.store, namespace).await?;
    let ids = (&game.game_id, right.namespace_id());
    let (first, usage) = metered(Seen::read(deployment, ids)).await;
    let mut seen = first?;
    let interruption = Interruption::listen().await;
    if say(&cost(usage.read_units * 60.0 / EVERY.as_secs_f64(), as_json)).is_err() {
        return Ok(ended());
    }
    again(interruption, async || {
        let next = match Seen::read(deployment, ids).await {
            Ok(next) => next,
            Err(error) => {
                return say(&line(deployment.ambient.now(), "problem", "", &error.to_string(), as_json));
            }
        };
        for (of, id, what) in changes(seen.look(), next.look()) {
            say(&line(next.at, of, &id, &what, as_json))?;
        }
        seen = next;
        Ok(())
    })
    .await;
    Ok(ended())
}

/// Calls `step` every two seconds until Ctrl-C, or until the output is closed.
async fn again(interruption: Interruption, mut step: impl AsyncFnMut() -> Said) {
    loop {
        tokio::select! {
            () = interruption.pressed() => return,
            () = tokio::time::sleep(EVERY) => {}
        }
        tokio::select! {
            () = interruption.pressed() => return,
            said = step() => if said.is_err() { return },
        }
    }
}

/// A namespace as it was read.
struct Seen {
    at: Timestamp,
    lobbies: Vec<Arc<Lobby>>,
    servers: Vec<Server>,
}

impl Seen {
    async fn read(
        Deployment { store, ambient, .. }: &Deployment,
        (game_id, namespace_id): (&GameId, &NamespaceId),
    ) -> Result<Self, Error> {
        let game = store.game(game_id).await?.ok_or(Error::NotFound)?;
        let servers = servers_of(store, &game, namespace_id).await?;
        let lobbies = lobbies_on_all(store, &servers).await?.into_iter().map(Arc::new).collect();
        Ok(Self { at: ambient.now(), lobbies, servers })
    }

    fn look(&self) -> Look<'_> {
        Look { at: self.at, lobbies: &self.lobbies, servers: &self.servers }
    }
}

fn cost(units_a_minute: f64, as_json: bool) -> String {
    if as_json {
        return json!({ "read_units_a_minute": units_a_minute }).to_string();
    }
    let dollars = dollars_an_hour(units_a_minute);
    format!("reads every 2 seconds, {units_a_minute:.0} read units a minute (on AWS ${dollars:.4} an hour)")
}

fn line(at: Timestamp, of: &str, id: &str, what: &str, as_json: bool) -> String {
    if as_json {
        return json!({ "at": time(at), "of": of, "id": id, "what": what }).to_string();
    }
    format!("{} {of} {id} {what}", time(at))
}

fn ended() -> Report {
    Report { text: "ended".to_owned(), json: json!({}) }
}

fn say(text: &str) -> Said {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{text}")?;
    stdout.flush()
}
