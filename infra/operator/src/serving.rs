//! `muster console`: the page on a loopback port, over the operator's own credentials.

use std::{convert::Infallible, net::Ipv4Addr, pin::pin, process::Stdio, sync::Arc, time::Duration};

use clap::Args;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{Request, Response, StatusCode, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use muster_console::{
    console::{Body, Console},
    guard::{Access, Session},
    host::{AwsCounts, Host, Keys, Kind},
};
use serde_json::json;
use tokio::{net::TcpListener, process::Command, task::JoinSet};

use crate::{CommandError, api::api, console::commands_on, deployment::Deployment, report::Report};

/// How the page is shown.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Port on 127.0.0.1; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Only print the address.
    #[arg(long)]
    no_browser: bool,
}

/// Largest body of a request: a version's configuration.
const BODY_BYTES_MAX: usize = 1024 * 1024;
/// How often the console reports its reads.
const REPORT_EVERY: Duration = Duration::from_secs(60);
/// How long a client may take to send headers.
const HEADER_TIMEOUT: Duration = Duration::from_secs(60);

/// Serves the page until Ctrl-C.
pub(crate) async fn serve(
    options: Options,
    deployment: Deployment,
    counts: Option<AwsCounts>,
) -> Result<Report, CommandError> {
    let unusable = |error: std::io::Error| CommandError::Refused(format!("cannot listen: {error}"));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port)).await.map_err(unusable)?;
    let address = listener.local_addr().map_err(unusable)?;
    let session = Arc::new(Session::new(&deployment.ambient));
    let url = format!("http://{address}/#token={}", session.token().unwrap_or_default());
    let name = deployment.name.clone();
    let kind = if counts.is_some() { Kind::Aws } else { Kind::Local };
    let console = Arc::new(Console::new(host(deployment, Access::Session(session), kind, counts)));
    say(&format!("The console of {name}, for this machine and once: {url}"));
    if !options.no_browser {
        open(&url);
    }
    let mut connections = JoinSet::new();
    let mut end = pin!(tokio::signal::ctrl_c());
    let mut reports = tokio::time::interval(REPORT_EVERY);
    loop {
        tokio::select! {
            _ = &mut end => break,
            Some(_) = connections.join_next() => {}
            _ = reports.tick() => report(&console, kind),
            accepted = listener.accept() => {
                let Ok((stream, peer)) = accepted else { continue };
                let console = Arc::clone(&console);
                let service = service_fn(move |request| {
                    let console = Arc::clone(&console);
                    async move { Ok::<_, Infallible>(answer(&console, request, peer).await) }
                });
                let mut http = http1::Builder::new();
                http.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
                connections.spawn(http.serve_connection(TokioIo::new(stream), service));
            }
        }
    }
    console.close();
    Ok(Report { text: "the console has ended".to_owned(), json: json!({}) })
}

async fn answer(console: &Console, request: Request<Incoming>, peer: std::net::SocketAddr) -> Response<Body> {
    let (parts, body) = request.into_parts();
    match Limited::new(body, BODY_BYTES_MAX).collect().await {
        Ok(body) => console.answer(&parts, body.to_bytes(), peer).await,
        Err(_) => {
            let mut response = Response::new(Full::default().boxed_unsync());
            *response.status_mut() = StatusCode::PAYLOAD_TOO_LARGE;
            response
        }
    }
}

fn host(deployment: Deployment, access: Access, kind: Kind, counts: Option<AwsCounts>) -> Host {
    let keyed = deployment.clone();
    let keys: Keys = Arc::new(move || {
        let deployment = keyed.clone();
        Box::pin(async move { deployment.keys().await.map_err(|error| error.to_string()) })
    });
    let api_url = deployment.api_url.clone().unwrap_or_default();
    Host {
        name: deployment.name.clone(),
        kind,
        api: api(api_url.clone()),
        api_url,
        store: deployment.store.clone(),
        ambient: deployment.ambient.clone(),
        keys,
        commands: commands_on(deployment),
        access,
        tape: None,
        counts,
    }
}

/// Reports the reads of the last minute and their cost, if they cost anything.
fn report(console: &Console, kind: Kind) {
    let (units, dollars) = (console.read_units_a_minute(), console.dollars_an_hour());
    if kind == Kind::Aws && dollars > 0.0 {
        say(&format!("reads {units:.0} units a minute, ${dollars:.3} an hour"));
    }
}

fn say(text: &str) {
    use std::io::Write as _;
    // The console goes on without a reader.
    let _no_reader = writeln!(std::io::stdout(), "{text}");
}

/// Shows the page, if this machine has a browser; its address is printed anyway.
fn open(url: &str) {
    let (program, before) = if cfg!(target_os = "macos") {
        ("open", &[][..])
    } else if cfg!(windows) {
        ("rundll32", &["url.dll,FileProtocolHandler"][..])
    } else {
        ("xdg-open", &[][..])
    };
    let quiet = || Stdio::null();
    let _no_browser =
        Command::new(program).args(before).arg(url).stdin(quiet()).stdout(quiet()).stderr(quiet()).spawn();
}
