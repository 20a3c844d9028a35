//! The agent's options, and what they mean together.

use std::{
    collections::BTreeMap,
    env,
    ffi::{OsStr, OsString},
    time::Duration,
};

use clap::{Args, value_parser};
use hyper::Uri;
use muster_client::{ServerOptions, http_client};
use serde_json::Value;
use shared::{
    base::ambient::Ambient,
    models::ids::{GameMode, IDENTIFIER_CHARS_MAX, RegionId, ServerId, StartId},
    rules::registration::{CAPACITY_MAX, LEASE_SECONDS_MAX},
};

use crate::{
    agent::ports::{self, Port},
    error::CommandError,
    process_group::is_program,
};

/// The variable with the server token, which is no option: every user of a machine reads the arguments of
/// every program.
pub(super) const SERVER_TOKEN: &str = "MUSTER_SERVER_TOKEN";
/// Stands for the host that Muster is to take from the registration's request, while ports are checked.
const ANY_HOST: &str = "game.example";

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The address of Muster's API.
    #[arg(long, value_name = "URL", env = "MUSTER_API_URL")]
    api_url: Uri,
    /// The region that the server is in.
    #[arg(long, value_name = "REGION", env = "MUSTER_REGION_ID")]
    region_id: RegionId,
    /// The name or address that players connect to.
    #[arg(long, env = "MUSTER_HOSTNAME", required_unless_present = "start_id")]
    hostname: Option<String>,
    /// A port that players connect to, with the protocol http, https, tcp, tcp_tls or udp. May be repeated.
    /// Each lobby gets one number of the range; with --shared the process gets all. LABEL/PROTOCOL has the
    /// number of MUSTER_PORT, as the local stack gives one to each server that it starts.
    #[arg(long = "port", value_name = "LABEL=FIRST-LAST/PROTOCOL", required = true)]
    ports: Vec<Port>,
    /// The number of a port without one.
    #[arg(long, value_name = "NUMBER", env = "MUSTER_PORT", hide = true, value_parser = value_parser!(u16).range(1..))]
    given_port: Option<u16>,
    /// Lobbies that run at once.
    #[arg(
        long,
        value_name = "LOBBIES",
        env = "MUSTER_CAPACITY",
        default_value_t = 1,
        value_parser = value_parser!(u32).range(1..=i64::from(CAPACITY_MAX))
    )]
    capacity: u32,
    /// A game mode that it runs; without it, every one. May be repeated.
    #[arg(long = "game-mode", value_name = "MODE")]
    game_modes: Vec<GameMode>,
    /// The build that it runs, for versions whose servers name it; without it, for versions without servers.
    /// Not for a server that Muster had started.
    #[arg(long, value_name = "JSON", value_parser = build)]
    build: Option<Value>,
    /// One process runs all lobbies, in place of one for each.
    #[arg(long)]
    shared: bool,
    /// Lobbies are ready as soon as their process has been started, or with --shared at once. Without it, the
    /// process says when.
    #[arg(long)]
    auto_ready: bool,
    /// Names the game server. By default the host's name and a random number.
    #[arg(long, value_name = "ID", env = "MUSTER_SERVER_ID")]
    server_id: Option<ServerId>,
    /// Names this start, for a server that Muster had started.
    #[arg(long, value_name = "ID", env = "MUSTER_START_ID", hide = true, value_parser = start_id)]
    start_id: Option<StartId>,
    /// Seconds between heartbeats while a new lobby may wait for its process, 1 to 60: players wait so much
    /// longer. By default 2, and 30 with both --shared and --auto-ready, where nobody waits.
    #[arg(long, value_name = "SECONDS", value_parser = value_parser!(u32).range(1..=60))]
    heartbeat_seconds: Option<u32>,
    /// Seconds for which the server counts as alive after a heartbeat. By default three times those between
    /// heartbeats, and at least 30.
    #[arg(
        long,
        value_name = "SECONDS",
        env = "MUSTER_LEASE_SECONDS",
        value_parser = value_parser!(u32).range(1..=i64::from(LEASE_SECONDS_MAX))
    )]
    lease_seconds: Option<u32>,
    /// Seconds for which running lobbies may go on after SIGTERM or Ctrl-C.
    #[arg(long, value_name = "SECONDS", default_value_t = 3_600)]
    drain_seconds: u32,
    /// Seconds between SIGTERM to a process whose lobby has ended and its death.
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    stop_seconds: u32,
    /// The server, with its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

fn build(json: &str) -> Result<Value, String> {
    match serde_json::from_str(json) {
        Ok(Value::Null) => Err("must be any JSON but null".to_owned()),
        Ok(build) => Ok(build),
        Err(error) => Err(format!("no JSON: {error}")),
    }
}

fn start_id(text: &str) -> Result<StartId, String> {
    StartId::try_from(text.to_owned()).map_err(|form| form.to_string())
}

/// A game server that the agent registers.
pub(super) struct Slot {
    pub server_id: String,
    pub ports: Vec<Port>,
    pub server: ServerOptions,
}

/// Options that fit together.
pub(super) struct Settings {
    /// What all game servers of the agent have in common.
    pub server: ServerOptions,
    pub drain: Duration,
    pub stop: Duration,
    pub is_shared: bool,
    pub auto_ready: bool,
    pub command: Vec<OsString>,
    /// What players connect to; empty where Muster takes that from the registration.
    hostname: String,
    ports: Vec<Port>,
    server_id: String,
}

impl Settings {
    /// The settings of `options` and this process's environment.
    ///
    /// # Errors
    /// [`CommandError::Usage`], which names the option.
    pub fn of(options: Options) -> Result<Self, CommandError> {
        let token = env::var(SERVER_TOKEN).ok().filter(|token| !token.is_empty());
        let Some(token) = token else {
            let wanted = format!("set {SERVER_TOKEN} to a server token of the namespace");
            return Err(CommandError::Usage(wanted));
        };
        let path = env::var_os("PATH");
        let settings = Self::check(options, token, path.as_deref(), &Ambient::system());
        let mut settings = settings.map_err(CommandError::Usage)?;
        settings.server.http = Some(http_client());
        Ok(settings)
    }

    fn check(
        options: Options,
        server_token: String,
        path: Option<&OsStr>,
        ambient: &Ambient,
    ) -> Result<Self, String> {
        let Options { api_url, hostname, ports, capacity, command, .. } = options;
        let ports: Result<Vec<Port>, String> =
            ports.into_iter().map(|given| given.or_number(options.given_port)).collect();
        let ports = ports?;
        let is_address = matches!(api_url.scheme_str(), Some("http" | "https")) && api_url.query().is_none();
        if !is_address {
            return Err("--api-url: must be an address such as https://api.example".to_owned());
        }
        let host = hostname.as_deref().unwrap_or(ANY_HOST);
        ports::check(&ports, host).map_err(|violations| format!("--hostname and --port: {violations}"))?;
        if !options.shared {
            if let Some(port) = ports.iter().find(|port| port.count() < capacity) {
                let (label, count) = (&port.label, port.count());
                return Err(format!(
                    "--port {label}: has {count} numbers, and --capacity {capacity} needs one for each lobby"
                ));
            }
            if options.start_id.is_some() && capacity > 1 {
                return Err(
                    "--capacity: a started server runs one lobby, or all in one process with --shared"
                        .to_owned(),
                );
            }
        }
        if options.start_id.is_some() && options.build.is_some() {
            return Err("--build: a started server has the build that it was started for".to_owned());
        }
        let program = command.first().map(OsString::as_os_str).unwrap_or_default();
        if !is_program(program, path) {
            return Err(format!("-- {}: there is no such program", program.display()));
        }
        let is_waited_for = !(options.shared && options.auto_ready);
        let heartbeat = options.heartbeat_seconds.unwrap_or(if is_waited_for { 2 } else { 30 });
        let url = api_url.to_string();
        let server = ServerOptions {
            capacity,
            game_modes: options.game_modes.into_iter().map(String::from).collect(),
            is_on_demand: options.start_id.is_some(),
            start_id: Some(options.start_id.map_or_else(|| ambient.uuid().to_string(), String::from)),
            heartbeat: Duration::from_secs(heartbeat.into()),
            lease: options.lease_seconds.map(|seconds| Duration::from_secs(seconds.into())),
            auto_ready: options.shared && options.auto_ready,
            build: options.build,
            ..ServerOptions::new(&url, &server_token, options.region_id.as_str(), BTreeMap::new())
        };
        Ok(Self {
            // A start that gets no response is repeated, and said.
            server: ServerOptions { deadline: server.lease_or_default() / 3, ..server },
            drain: Duration::from_secs(options.drain_seconds.into()),
            stop: Duration::from_secs(options.stop_seconds.into()),
            is_shared: options.shared,
            auto_ready: options.auto_ready,
            server_id: match options.server_id {
                Some(server_id) => server_id.as_str().to_owned(),
                None => default_server_id(ambient),
            },
            hostname: hostname.unwrap_or_default(),
            ports,
            command,
        })
    }

    /// The game servers that it registers: with a process for each lobby, one for each process.
    pub fn slots(&self) -> Vec<Slot> {
        let capacity = self.server.capacity;
        if self.is_shared {
            return vec![self.slot(&self.server_id, capacity, self.ports.clone())];
        }
        let slot = |index: u16| {
            let ports = self.ports.iter().filter_map(|port| port.single(index)).collect();
            if capacity == 1 {
                return self.slot(&self.server_id, 1, ports);
            }
            let number = format!("-{}", u32::from(index) + 1);
            let name = self.server_id.get(..IDENTIFIER_CHARS_MAX - number.len()).unwrap_or(&self.server_id);
            self.slot(&format!("{name}{number}"), 1, ports)
        };
        (0..).take(capacity.try_into().unwrap_or(usize::MAX)).map(slot).collect()
    }

    fn slot(&self, server_id: &str, capacity: u32, ports: Vec<Port>) -> Slot {
        let described = ports.iter().map(|port| (port.label.clone(), port.described(&self.hostname)));
        let server = ServerOptions {
            server_id: Some(server_id.to_owned()),
            capacity,
            ports: described.collect(),
            ..self.server.clone()
        };
        Slot { server_id: server_id.to_owned(), ports, server }
    }
}

fn default_server_id(ambient: &Ambient) -> String {
    let host = nix::unistd::gethostname().unwrap_or_default();
    let is_kept = |character: &char| character.is_ascii_alphanumeric() || *character == '-';
    let host: String = host.to_string_lossy().chars().filter(is_kept).take(40).collect();
    let random = ambient.bytes::<4>().map(|byte| format!("{byte:02x}")).concat();
    if host.is_empty() { random } else { format!("{host}-{random}") }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::json;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    const USUAL: [&str; 8] = [
        "run",
        "--api-url=http://127.0.0.1:1",
        "--region-id=fra",
        "--hostname=game.example",
        "--",
        "/bin/sh",
        "-c",
        "x",
    ];

    fn settings(more: &[&str]) -> Result<Settings, String> {
        let (options, command) = USUAL.split_at(4);
        let line =
            Line::try_parse_from([options, more, command].concat()).map_err(|error| error.to_string())?;
        Settings::check(line.options, "token".to_owned(), None, &Ambient::system())
    }

    #[test]
    fn each_process_has_a_game_server_with_its_own_port() {
        let of = |more: &[&str]| settings(more).unwrap_or_else(|problem| panic!("{problem}")).slots();
        let slots =
            of(&["--port=default=7777-7784/udp", "--port=web=80-82/http", "--capacity=3", "--server-id=a"]);
        let seen: Vec<_> = slots
            .iter()
            .map(|slot| (slot.server_id.as_str(), slot.server.capacity, json!(slot.server.ports)))
            .collect();
        let port = |udp: u16, http: u16| {
            json!({
                "default": { "hostname": "game.example", "port": udp, "protocol": "udp" },
                "web": { "hostname": "game.example", "port": http, "protocol": "http" },
            })
        };
        assert_eq!(
            seen,
            [("a-1", 1, port(7777, 80)), ("a-2", 1, port(7778, 81)), ("a-3", 1, port(7779, 82))]
        );
        let lease = |slot: &Slot| slot.server.lease_or_default().as_secs();
        assert!(slots.iter().all(|slot| !slot.server.auto_ready && lease(slot) == 30));
        assert!(slots.iter().all(|slot| slot.server.server_id.as_ref() == Some(&slot.server_id)));

        let long = "x".repeat(64);
        let slots = of(&["--port=default=1-12/udp", "--capacity=12", &format!("--server-id={long}")]);
        assert!(slots.iter().all(|slot| slot.server_id.parse::<ServerId>().is_ok()));
        assert_eq!(
            slots.iter().map(|slot| &slot.server_id).collect::<std::collections::BTreeSet<_>>().len(),
            12
        );
    }

    #[test]
    fn one_process_has_one_game_server_with_all_ports() {
        let slots = settings(&["--shared", "--auto-ready", "--port=default=7777-7778/tcp", "--capacity=50"]);
        let slots = slots.unwrap_or_else(|problem| panic!("{problem}")).slots();
        let [slot] = slots.as_slice() else { panic!("{} servers", slots.len()) };
        assert_eq!(slot.server.capacity, 50);
        let ports = json!(slot.server.ports);
        assert_eq!(ports["default"]["port_range"], json!({ "min": 7777, "max": 7778 }));
        assert!(slot.server.auto_ready);
        assert_eq!(slot.server.lease_or_default().as_secs(), 90);
    }

    #[test]
    fn each_game_server_registers_with_the_build() {
        for (more, build) in [
            (&["--port=default=1-2/udp"][..], None),
            (
                &["--port=default=1-2/udp", r#"--build={"image": "game:7"}"#],
                Some(json!({ "image": "game:7" })),
            ),
        ] {
            let slots = settings(&[more, &["--capacity=2"]].concat())
                .unwrap_or_else(|problem| panic!("{problem}"))
                .slots();
            assert_eq!(slots.iter().map(|slot| &slot.server.build).collect::<Vec<_>>(), [&build, &build]);
        }
    }

    #[test]
    fn a_refusal_names_the_option() {
        for (more, named) in [
            (&["--port=default=7777/udp", "--capacity=2"][..], "--port default: has 1 numbers"),
            (&["--port=default=7777"], "--port <LABEL"),
            (&["--port=default=1-2/udp", "--capacity=0"], "--capacity"),
            (&["--port=default=1-2/udp", "--capacity=2", "--start-id=a"], "--capacity: a started"),
            (&["--port=A=1/udp"], "--hostname and --port: ports/A/label/invalid"),
            (&["--port=a=1/udp", "--lease-seconds=0"], "--lease-seconds"),
            (&["--port=a=1/udp", "--server-id=a b"], "--server-id"),
            (&["--port=a=1/udp", "--build=my-game:7"], "for '--build <JSON>': no JSON: expected value"),
            (&["--port=a=1/udp", "--build=null"], "for '--build <JSON>': must be any JSON but null"),
            (&["--port=a=1/udp", "--build=7", "--start-id=a"], "--build: a started"),
            (&[], "--port <LABEL"),
        ] {
            let problem = settings(more).err().unwrap_or_default();
            assert!(problem.contains(named), "{more:?}: {problem}");
        }
    }

    #[test]
    fn a_program_is_a_file_or_in_the_path() {
        let path = env::join_paths(["/nowhere", "/bin"]).unwrap();
        for (program, is_there) in
            [("sh", true), ("/bin/sh", true), ("./sh", false), ("no-such-program", false)]
        {
            assert_eq!(is_program(OsStr::new(program), Some(&path)), is_there, "{program}");
        }
        assert!(!is_program(OsStr::new("sh"), None));
    }
}
