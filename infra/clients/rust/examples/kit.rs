//! The adapter by which the client kit plays this client.

#![expect(clippy::print_stdout, reason = "outcomes are lines of the output")]

use std::{collections::HashMap, env, sync::Arc};

use muster_client::{
    Error, Muster, Seat,
    api::{CreateLobbyRequest, Entry, FindLobbyRequest, JoinLobbyRequest},
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, stdin},
    sync::{Mutex, oneshot},
};

#[derive(Deserialize)]
struct Intent {
    #[serde(default)]
    id: String,
    #[serde(rename = "do")]
    action: String,
    #[serde(default)]
    of: String,
    #[serde(default)]
    request: Value,
}

#[derive(Default)]
struct Played {
    seats: Mutex<HashMap<String, Seat>>,
    aborts: Mutex<HashMap<String, oneshot::Sender<()>>>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let muster = Muster::new(&env::var("MUSTER_URL")?, &env::var("MUSTER_TOKEN")?);
    let played = Arc::new(Played::default());
    let mut lines = BufReader::new(stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        let intent: Intent = serde_json::from_str(&line)?;
        if intent.action == "abort" {
            if let Some(abort) = played.aborts.lock().await.remove(&intent.of) {
                let _ended_before = abort.send(());
            }
            continue;
        }
        let (abort, aborted) = oneshot::channel();
        played.aborts.lock().await.insert(intent.id.clone(), abort);
        let (muster, played) = (muster.clone(), Arc::clone(&played));
        tokio::spawn(async move { carry_out(&muster, &played, intent, aborted).await });
    }
    Ok(())
}

async fn carry_out(muster: &Muster, played: &Played, intent: Intent, aborted: oneshot::Receiver<()>) {
    let outcome = tokio::select! {
        outcome = perform(muster, played, &intent) => Some(outcome),
        Ok(()) = aborted => None,
    };
    played.aborts.lock().await.remove(&intent.id);
    let line = match outcome {
        Some(Ok(Some(seat))) => {
            let tokens: Vec<_> = std::iter::once(&seat).chain(&seat.others).map(|seat| &seat.token).collect();
            let line = json!({ "id": intent.id, "lobby_id": seat.lobby_id, "tokens": tokens });
            played.seats.lock().await.insert(intent.id, seat);
            line
        }
        Some(Ok(None)) => json!({ "id": intent.id }),
        Some(Err(error)) => json!({ "id": intent.id, "error": error.to_string() }),
        None => {
            muster.settled().await;
            json!({ "id": intent.id, "aborted": true })
        }
    };
    println!("{line}");
}

async fn perform(muster: &Muster, played: &Played, intent: &Intent) -> Result<Option<Seat>, Error> {
    let Intent { request, action, of, .. } = intent;
    let text = |name: &str| request[name].as_str().unwrap_or_default().to_owned();
    let entry = Entry {
        party_size: request["party_size"].as_u64().and_then(|size| u32::try_from(size).ok()),
        ..Entry::default()
    };
    let of = played.seats.lock().await.get(of).cloned();
    match (action.as_str(), of) {
        ("find", _) => {
            let game_modes = serde_json::from_value(request["game_modes"].clone()).unwrap_or_default();
            muster
                .find(&FindLobbyRequest { game_modes, entry, ..FindLobbyRequest::default() })
                .await
                .map(Some)
        }
        ("join", _) => muster.join(&JoinLobbyRequest { lobby_id: text("lobby_id"), entry }).await.map(Some),
        ("create", _) => {
            let request =
                CreateLobbyRequest { game_mode: text("game_mode"), entry, ..CreateLobbyRequest::default() };
            muster.create(&request).await.map(Some)
        }
        ("leave", Some(seat)) => seat.leave().await.map(|()| None),
        ("rejoin", Some(mut seat)) => seat.rejoin().await.map(|()| Some(seat)),
        _ => Ok(None),
    }
}
