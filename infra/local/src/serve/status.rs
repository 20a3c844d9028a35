//! The listener for the machine's own programs: its health, its metrics, and what a move to another
//! deployment asks for. It is not for players, and nothing that it shows without a key is secret.

use std::{future::pending, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use axum::{Json, response::IntoResponse as _};
use http::{
    Method, Request, Response, StatusCode,
    header::{AUTHORIZATION, CONTENT_TYPE},
};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use muster_console::{
    guard::{is_of_foreign_page, is_secret, protect},
    listening::{self, HEADER_LIMIT_BYTES},
};
use serde::Deserialize;
use serde_json::{Value, json};
use shared::store::client::Store;
use tokio::{net::TcpListener, time::timeout};

use super::{moved, service::Service};
use crate::{emulator::stamp::FORM, functions::Functions};

/// How long the database may take to answer for the process to count as healthy.
const HEALTHY_WITHIN: Duration = Duration::from_secs(2);
/// The largest body that a request may have here.
const BODY_BYTES_MAX: usize = 4_096;

/// What the listener shows and does.
#[derive(Debug)]
pub struct Status {
    /// The database.
    pub store: Store,
    /// The functions with their counts.
    pub functions: Arc<Functions>,
    /// The gateway's places and counts.
    pub service: Arc<Service>,
    /// The database's file.
    pub database: PathBuf,
    /// The key of what changes something.
    pub key: String,
}

/// The body that says where the game went.
#[derive(Deserialize)]
struct Moved {
    to: String,
}

impl Status {
    /// Answers requests for as long as the process runs.
    pub async fn serve(self, listener: TcpListener) {
        let status = Arc::new(self);
        let answer = move |request: Request<Incoming>, _| {
            let status = Arc::clone(&status);
            async move { status.answer(request).await }
        };
        listening::serve(listener, Some(HEADER_LIMIT_BYTES), answer, pending()).await;
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<axum::body::Body> {
        let (request, body) = request.into_parts();
        let mut response = match (&request.method, request.uri.path()) {
            _ if is_of_foreign_page(&request.headers) => StatusCode::FORBIDDEN.into_response(),
            (&Method::GET, "/health") => self.health().await.into_response(),
            (&Method::GET, "/metrics") => {
                let counted = self.functions.counted().all();
                let page = self.service.meters.page(&counted, self.service.gate.under_way(), &self.database);
                ([(CONTENT_TYPE, "text/plain; version=0.0.4")], page).into_response()
            }
            (&Method::GET, "/counts") => Json(self.functions.counted().shown()).into_response(),
            (&Method::PUT, path @ ("/pause" | "/resume" | "/moved")) => {
                let header = request.headers.get(AUTHORIZATION).and_then(|header| header.to_str().ok());
                let key = header.and_then(|header| header.strip_prefix("Bearer ")).unwrap_or_default();
                if is_secret(&self.key, key) {
                    let body = Limited::new(body, BODY_BYTES_MAX).collect().await;
                    let body = body.map(|body| body.to_bytes()).unwrap_or_default();
                    self.change(path, &body).await.into_response()
                } else {
                    StatusCode::FORBIDDEN.into_response()
                }
            }
            _ => StatusCode::NOT_FOUND.into_response(),
        };
        protect(response.headers_mut());
        response
    }

    /// Healthy is who answers players: the database responds, and the game has not gone elsewhere.
    async fn health(&self) -> (StatusCode, Json<Value>) {
        let about = |status: &str| {
            Json(json!({ "status": status, "version": env!("CARGO_PKG_VERSION"), "data_form": FORM }))
        };
        if self.service.gate.is_paused() {
            return (StatusCode::SERVICE_UNAVAILABLE, about("paused"));
        }
        // A name that no game can have: one read of an item that is not there.
        match timeout(HEALTHY_WITHIN, self.store.game_by_name("-")).await {
            Ok(Ok(_)) => (StatusCode::OK, about("ok")),
            _ => (StatusCode::SERVICE_UNAVAILABLE, about("no database")),
        }
    }

    async fn change(&self, path: &str, body: &[u8]) -> (StatusCode, Json<Value>) {
        let gate = &self.service.gate;
        let folder = self.database.parent().unwrap_or(&self.database);
        // Two copies of a game must not both take players.
        if let Ok(Some(to)) = moved::noted(folder) {
            return (StatusCode::CONFLICT, Json(json!({ "message": format!("the game was moved to {to}") })));
        }
        match path {
            "/resume" => gate.resume(),
            "/pause" if !gate.pause(false).await => {
                let problem = json!({ "message": "requests under way do not end" });
                return (StatusCode::CONFLICT, Json(problem));
            }
            "/moved" => {
                let kept = match serde_json::from_slice::<Moved>(body) {
                    Ok(Moved { to }) if gate.is_paused() => {
                        moved::note(folder, &to).map_err(|error| error.to_string())
                    }
                    Ok(_) => Err("it is not paused: a pause ends by itself".to_owned()),
                    Err(error) => Err(error.to_string()),
                };
                if let Err(problem) = kept {
                    return (StatusCode::CONFLICT, Json(json!({ "message": problem })));
                }
                let _was_paused = gate.pause(true).await;
            }
            _ => {}
        }
        (StatusCode::OK, Json(json!({ "paused": gate.is_paused() })))
    }
}

/// An address of the listener, of a program on this machine or in its network.
///
/// # Errors
/// What it must be, in words.
pub fn parse_status(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "must be an address with a port, such as 127.0.0.1:3001".to_owned())
}
