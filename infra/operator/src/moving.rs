//! Moving all that a served folder holds into another deployment, with the key that its tokens are signed
//! with.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use clap::Args;
use hyper::{Request, body::Bytes};
use serde_json::{Value, json};
use shared::{
    auth::keys::TokenKeys,
    models::{
        game::{Game, StarterKind},
        ids::SeatId,
        token::PlayerSeat,
    },
    store::moving::{Pass, Transfer},
};

use crate::{
    api::{api, api_at},
    consent::Consent,
    deployment::{Deployment, KeySource},
    error::CommandError,
    reach::{TargetError, problem},
    report::{Report, Reported},
    target::{Door, ask_with},
};

/// How long the machine may take to let requests under way end.
const PAUSE_PATIENCE: Duration = Duration::from_secs(35);
/// How often a pause is renewed, which ends by itself after a minute.
const RENEWAL: Duration = Duration::from_secs(20);

/// What moves where.
#[derive(Debug, Args)]
pub(crate) struct Move {
    /// The folder that `muster-local serve` serves; what it holds moves into the deployment of --stack.
    #[arg(value_name = "DIR")]
    from: PathBuf,
    #[command(flatten)]
    consent: Consent,
}

impl Move {
    /// What moves, in words.
    pub fn target(&self) -> String {
        self.from.display().to_string()
    }
}

/// Moves the games of a folder into `deployment`.
pub(crate) async fn run(wanted: Move, deployment: &Deployment) -> Reported {
    let Move { from, consent } = wanted;
    let door = Door::of(&from)?;
    // What is there has gone on without this folder.
    if let Ok(to) = fs::read_to_string(from.join("moved")) {
        return Err(CommandError::Refused(format!("{} was moved to {to}", from.display())));
    }
    let source = door.store();
    let (games, there) = (source.games().await?, deployment.store.games().await?);
    let is_foreign = |game: &&Game| games.iter().all(|own| own.game_id != game.game_id);
    if let Some(foreign) = there.iter().find(is_foreign) {
        return Err(CommandError::Refused(format!(
            "{} holds the game {}, which is not of {}: move into a deployment of its own",
            deployment.name,
            foreign.name_id,
            from.display()
        )));
    }
    // In AWS nothing could start or end them.
    let has_processes =
        |game: &&Game| game.regions.values().any(|region| region.starter == Some(StarterKind::Process));
    if let (Some(game), Some(_)) = (games.iter().find(has_processes), deployment.server_concurrency) {
        return Err(CommandError::Refused(format!(
            "game servers of {} are processes of this machine: give their regions another starter first, see \
             `muster region start`",
            game.name_id
        )));
    }
    let key = key_of(&from)?;
    give_key(&key, consent, deployment).await?;
    check_api(&key, deployment).await?;
    let names: Vec<_> = games.iter().map(|game| game.name_id.as_str()).collect();
    let what = format!("moves {} here from {}, which then answers nobody", names.join(", "), from.display());
    consent.to(&what, deployment)?;

    let mut transfer = Transfer::begin(source, deployment.store.clone()).await?;
    // While players play: what is left for the pause is what they change meanwhile.
    let first = transfer.pass().await?;
    transfer.pass().await?;
    let began = Instant::now();
    order(&door, "pause", json!({})).await?;
    let last = match finish(&mut transfer, &door, deployment).await {
        Ok(last) => last,
        Err(error) => {
            // It would resume by itself, within a minute. Once it has noted the move it does not.
            let _gone = order(&door, "resume", json!({})).await;
            return Err(error);
        }
    };
    let seconds = began.elapsed().as_secs_f64();
    let host = deployment.api_host.as_deref().or(deployment.api_url.as_deref());
    let host = host.unwrap_or("the deployment's API");
    let text = format!(
        "{} is in {} now: {} items, {} of them copied during a pause of {seconds:.1} s\nNow lead your host name to \
         {host}, and stop `muster-local serve`: it answers 503 from now on, also if it starts again",
        names.join(", "),
        deployment.name,
        last.items,
        last.written,
    );
    let json = json!({ "games": names, "items": last.items, "copied_before": first.written,
                       "copied_during_pause": last.written, "pause_seconds": seconds });
    Ok(Report { text, json })
}

/// Copies the rest while nobody changes anything, checks the copy, and has the machine stay silent.
async fn finish(transfer: &mut Transfer, door: &Door, deployment: &Deployment) -> Result<Pass, CommandError> {
    let renewals = async {
        loop {
            tokio::time::sleep(RENEWAL).await;
            if let Err(error) = order(door, "pause", json!({})).await {
                return error;
            }
        }
    };
    let copied = async {
        let pass = transfer.pass().await?;
        let different = transfer.differences(deployment.ambient.now().secs()).await?;
        if !different.is_empty() {
            let different = different.join(", ");
            return Err(CommandError::Refused(format!(
                "the copies of these tables differ: {different}; something else writes to {}",
                deployment.name
            )));
        }
        Ok(pass)
    };
    let pass = tokio::select! {
        copied = copied => copied?,
        error = renewals => return Err(error),
    };
    order(door, "moved", json!({ "to": deployment.name })).await?;
    Ok(pass)
}

/// Gives the machine an order, which it has carried out when this returns.
async fn order(door: &Door, path: &str, body: Value) -> Result<(), CommandError> {
    let request = Request::put(format!("{}/{path}", door.status))
        .header("authorization", format!("Bearer {}", door.key));
    let done: Result<Value, _> = ask_with(request, Bytes::from(body.to_string()), PAUSE_PATIENCE).await;
    done.map(drop).map_err(|problem| CommandError::Refused(format!("the machine did not {path}: {problem}")))
}

/// The signing key of a folder, which must be a text to be a secret in AWS and a variable of its functions.
fn key_of(folder: &Path) -> Result<String, CommandError> {
    let path = folder.join("signing-key");
    let unusable = |problem: String| TargetError::NoSigningKey(format!("{}: {problem}", path.display()));
    let key = fs::read(&path).map_err(|error| unusable(error.to_string()))?;
    let key = String::from_utf8(key).ok().filter(|key| key.bytes().all(|byte| byte.is_ascii_graphic()));
    Ok(key.ok_or_else(|| unusable("it is not a text, so that no function in AWS can have it".to_owned()))?)
}

/// Makes `key` the one that the deployment signs with.
async fn give_key(key: &str, consent: Consent, deployment: &Deployment) -> Result<(), CommandError> {
    let differs = || {
        CommandError::Refused(format!(
            "{} signs with another key: start it with a copy of the file signing-key",
            deployment.name
        ))
    };
    match &deployment.key {
        KeySource::Local(own) if *own == BASE64.encode(key) => Ok(()),
        KeySource::Local(_) | KeySource::Held(_) => Err(differs()),
        KeySource::Secret(secrets, id) => {
            let own = secrets.get_secret_value().secret_id(id).send().await;
            let own = own.map_err(|error| problem(&error, TargetError::NoSigningKey))?;
            if own.secret_string.as_deref() == Some(key) {
                return Ok(());
            }
            consent.to("replaces the signing key, which makes tokens of it invalid", deployment)?;
            let put = secrets.put_secret_value().secret_id(id).secret_string(key).send().await;
            put.map_err(|error| problem(&error, TargetError::NoSigningKey))?;
            Err(not_yet(deployment))
        }
    }
}

/// The second of three steps is not the command's.
fn not_yet(Deployment { name, .. }: &Deployment) -> CommandError {
    CommandError::Refused(format!(
        "{name} has the signing key now, but its functions do not: raise MUSTER_REVISION in template.yaml, run \
         `sam deploy`, and repeat this command"
    ))
}

/// Checks that the functions of a deployment verify tokens of `key`.
async fn check_api(key: &str, deployment: &Deployment) -> Result<(), CommandError> {
    let Some(url) = &deployment.api_url else { return Ok(()) };
    let keys =
        TokenKeys::new(key.as_bytes(), None).map_err(|error| TargetError::NoSigningKey(error.to_string()))?;
    // Of no lobby: functions that have the key do not refuse its signature.
    let ambient = &deployment.ambient;
    let nobody = || ambient.uuid().to_string();
    let (Ok(namespace_id), Ok(lobby_id)) = (nobody().parse(), nobody().parse()) else { return Ok(()) };
    let seat_id = SeatId::random(ambient);
    let seat = PlayerSeat {
        namespace_id,
        lobby_id,
        seat_id,
        generation: 0,
        client: None,
        membership: None,
        data: None,
    };
    let body = json!({ "player_token": keys.issue_player(&seat, ambient.now()) }).to_string();
    let request = Request::post("/matchmaker/players/leave").body(Bytes::from(body));
    let request = request.map_err(|error| CommandError::Refused(error.to_string()))?;
    // A host of the studio's own still leads to the machine, whose functions have the key.
    let api = match &deployment.api_host {
        Some(host) => api_at(url.clone(), host.clone()),
        None => api(url.clone()),
    };
    let answer = api(request).await.map_err(CommandError::Refused)?;
    let body: Value = serde_json::from_slice(answer.body()).unwrap_or_default();
    if answer.status().is_success() && body.is_object() {
        return Ok(());
    }
    Err(match body.get("code").and_then(Value::as_str) {
        Some("TOKEN_INVALID") => not_yet(deployment),
        // A host that API Gateway does not know yet, or functions that fail.
        _ => CommandError::Refused(format!("{url} does not answer as Muster does: {}", answer.status())),
    })
}
