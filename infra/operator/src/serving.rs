//! `muster console`: the page on a loopback port, over the operator's own credentials.

use std::{
    env, fs,
    future::pending,
    io::{self, Write as _},
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::response::{IntoResponse as _, Response};
use clap::Args;
use http_body_util::{BodyExt as _, Limited};
use hyper::{Request, StatusCode, body::Incoming};
use muster_console::{
    console::Console,
    guard::{Guard, Session},
    host::{AwsCounts, Commands, Host, Keys, Kind},
    listening,
};
use serde_json::json;
use shared::base::ambient::Ambient;
use tokio::{net::TcpListener, process::Command};

use crate::{
    api::api,
    deployment::Deployment,
    error::CommandError,
    interruption::Interruption,
    report::{Report, Reported},
};

/// How the page is shown.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Port on 127.0.0.1; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Only print the address.
    #[arg(long)]
    no_browser: bool,
    /// Only look: the page changes nothing, and takes no seat.
    #[arg(long)]
    read_only: bool,
}

/// Largest body of a request: a version's configuration.
const BODY_BYTES_MAX: usize = 1024 * 1024;
/// How often the console reports its reads.
const REPORT_EVERY: Duration = Duration::from_secs(60);

impl Options {
    /// Whether the page may change anything.
    pub const fn may_change(&self) -> bool {
        !self.read_only
    }
}

/// Serves the page until Ctrl-C; it runs `commands`.
pub(crate) async fn serve(
    options: Options,
    deployment: Deployment,
    counts: Option<AwsCounts>,
    commands: Commands,
) -> Reported {
    let unusable = |error: io::Error| CommandError::Refused(format!("cannot listen: {error}"));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port)).await.map_err(unusable)?;
    let address = listener.local_addr().map_err(unusable)?;
    let session = Arc::new(Session::new(&deployment.ambient));
    let url = format!("http://{address}/#token={}", session.token().unwrap_or_default());
    let (name, ambient) = (deployment.name.clone(), deployment.ambient.clone());
    let kind = if counts.is_some() { Kind::Aws } else { Kind::Local };
    let access = Guard::Session(Arc::clone(&session));
    let console = Console::new(host(deployment, access, kind, counts, commands, options.may_change()));
    let interruption = Interruption::listen().await;
    say(&format!("The console of {name}, for this machine and once: {url}"));
    let way = if options.no_browser { None } else { Way::to(&url, &ambient).ok() };
    if let Some(way) = &way {
        open(&way.page());
    }
    let served = Arc::new(Served { console, session, way: Mutex::new(way) });
    let answering = Arc::clone(&served);
    let answer = move |request, peer| {
        let served = Arc::clone(&answering);
        async move { served.answer(request, peer).await }
    };
    let reports = async {
        let mut reports = tokio::time::interval(REPORT_EVERY);
        loop {
            reports.tick().await;
            report(&served.console, kind);
        }
    };
    tokio::select! {
        () = interruption.pressed() => {}
        () = reports => {}
        () = listening::serve(listener, None, answer, pending()) => {}
    }
    served.console.close();
    served.close_way();
    Ok(Report { text: "the console has ended".to_owned(), json: json!({}) })
}

/// The console, and the way to it until somebody has come.
struct Served {
    console: Console,
    session: Arc<Session>,
    way: Mutex<Option<Way>>,
}

impl Served {
    async fn answer(&self, request: Request<Incoming>, peer: SocketAddr) -> Response {
        let (parts, body) = request.into_parts();
        let response = match Limited::new(body, BODY_BYTES_MAX).collect().await {
            Ok(body) => self.console.answer(&parts, body.to_bytes(), peer).await,
            Err(_) => StatusCode::PAYLOAD_TOO_LARGE.into_response(),
        };
        if self.session.token().is_none() {
            self.close_way();
        }
        response
    }

    fn close_way(&self) {
        self.way.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// A file that leads a browser to the console, in a folder of this user alone, both removed when dropped.
///
/// Every user of the machine can read the arguments of every program, so no argument holds the token.
struct Way {
    folder: PathBuf,
}

impl Way {
    fn to(url: &str, ambient: &Ambient) -> io::Result<Self> {
        // A browser in a sandbox, as distributions package them, reads the home folder, and a temporary
        // folder of its own.
        let home = env::home_dir().and_then(|home| Self::below(&home, url, ambient).ok());
        home.map_or_else(|| Self::below(&env::temp_dir(), url, ambient), Ok)
    }

    fn below(parent: &Path, url: &str, ambient: &Ambient) -> io::Result<Self> {
        let folder = parent.join(format!("muster-console-{}", ambient.uuid()));
        let (mut builder, mut options) = (fs::DirBuilder::new(), fs::OpenOptions::new());
        options.write(true).create_new(true);
        #[cfg(unix)]
        {
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        }
        builder.create(&folder)?;
        let way = Self { folder };
        let page = format!(
            r#"<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>Muster</title>
<meta http-equiv="refresh" content="0; url={url}"><a href="{url}">The console</a>
"#
        );
        options.open(way.page())?.write_all(page.as_bytes())?;
        Ok(way)
    }

    fn page(&self) -> PathBuf {
        self.folder.join("console.html")
    }
}

impl Drop for Way {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.folder);
    }
}

fn host(
    deployment: Deployment,
    access: Guard,
    kind: Kind,
    counts: Option<AwsCounts>,
    commands: Commands,
    may_change: bool,
) -> Host {
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
        commands,
        access,
        may_change,
        tape: None,
        has_faults: false,
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
    // The console goes on without a reader.
    let _no_reader = writeln!(io::stdout(), "{text}");
}

/// Shows the page, if this machine has a browser; its address is printed anyway.
fn open(page: &Path) {
    let (program, before) = if cfg!(target_os = "macos") {
        ("open", &[][..])
    } else if cfg!(windows) {
        ("rundll32", &["url.dll,FileProtocolHandler"][..])
    } else {
        ("xdg-open", &[][..])
    };
    let quiet = || Stdio::null();
    let _no_browser =
        Command::new(program).args(before).arg(page).stdin(quiet()).stdout(quiet()).stderr(quiet()).spawn();
}
