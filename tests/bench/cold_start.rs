//! `cargo bench --bench cold_start`: how long the functions take from the start of their process to their
//! first answer, against a bare `lambda_http` function in the same run; what they weigh and hold in memory.
//! `find-lobby` is also built with the client that aws-config and the SDK's default features make.
//! `-- --profiles` compares profiles of the build instead.
//!
//! Every start is a new process over the Lambda runtime API, with DynamoDB behind TLS, so that its handshake
//! counts. Only Linux reports these values.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "a benchmark panics on failure and prints its figures"
)]

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use harness::{
    TestStack,
    binaries::{build_into, profile_folder, workspace},
    declared::functions,
    runtime_api::RuntimeApi,
    tls::behind_tls,
};
use shared::{
    auth::keys::TokenKeys,
    base::ambient::Ambient,
    cloud::issuing::issue_cloud_token,
    models::{
        rights::GameRight,
        token::{Credential, CredentialKind},
    },
};
use tokio::process::Command;

/// Starts of each function; of each the median counts.
const ROUNDS: usize = 40;
const BARE: &str = "bare-function";
/// One function of each kind, and whose token its example event carries: the largest, one of game servers,
/// one of the cloud, and one without tables.
const MEASURED: [(&str, &str); 4] = [
    ("find-lobby", "public"),
    ("heartbeat-server", "server"),
    ("get-game", "cloud"),
    ("get-bootstrap", "public"),
];
/// The first of them over the SDK's default client, a package outside of the workspace.
const DEFAULTS: &str = "find-lobby-defaults";
type Settings = &'static [(&'static str, &'static str)];
const LTO: &str = "CARGO_PROFILE_RELEASE_LTO";
const OPT_LEVEL: &str = "CARGO_PROFILE_RELEASE_OPT_LEVEL";
/// What releases set.
const RELEASED: Settings = &[(LTO, "fat")];
/// What the release profile might be: its name and cargo's variables. The first is what releases are built
/// with, the last what `sam build` takes.
const PROFILES: [(&str, Settings); 5] = [
    ("z, fat LTO", RELEASED),
    ("s, fat LTO", &[(LTO, "fat"), (OPT_LEVEL, "s")]),
    ("3, fat LTO", &[(LTO, "fat"), (OPT_LEVEL, "3")]),
    ("z, thin LTO", &[(LTO, "thin")]),
    ("z, no LTO", &[]),
];
/// What functions trust otherwise, so that as much is read.
const AUTHORITIES: &str = include_str!("../../shared/src/base/aws/authorities.pem");
/// What the SDK trusts by default: the machine's, in a file of Debian's or of Amazon Linux's.
const MACHINE_AUTHORITIES: [&str; 2] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"];

/// A function that is built.
struct Built {
    name: String,
    path: PathBuf,
    environment: BTreeMap<String, String>,
    event: String,
}

/// What was measured of one start; times in milliseconds, memory in MB.
#[derive(Clone, Copy, Default)]
struct Figures {
    init: f64,
    to_first: f64,
    warm: f64,
    init_cpu: f64,
    first_cpu: f64,
    memory: f64,
}

#[tokio::main]
async fn main() {
    let world = World::start().await;
    if env::args().any(|argument| argument == "--profiles") {
        compare_profiles(&world).await;
    } else {
        compare_functions(&world).await;
    }
}

async fn compare_functions(world: &World) {
    let mut built = world.build(&MEASURED, RELEASED, "cold-start");
    built.push(world.build_defaults("cold-start"));
    let figures = measure(&built).await;
    println!(
        "| function | zipped (bar 2 MB) | init | init to first answer | over bare (bar 3) | warm answer | processor in init, in the first answer | memory |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for (function, of_function) in built.iter().zip(&figures) {
        println!(
            "| `{}` | {:.2} MB | {:.2} ms | {:.2} ms | {:.2} | {:.2} ms | {:.2}, {:.2} ms | {:.1} MB |",
            function.name,
            zipped(&function.path),
            of_function.init,
            of_function.to_first,
            of_function.to_first / figures[0].to_first,
            of_function.warm,
            of_function.init_cpu,
            of_function.first_cpu,
            of_function.memory,
        );
    }
}

async fn compare_profiles(world: &World) {
    let mut built = Vec::new();
    for (number, (_, settings)) in PROFILES.iter().enumerate() {
        built.extend(world.build(&MEASURED[..1], settings, &format!("cold-start-{number}")));
    }
    let figures = measure(&built).await;
    println!(
        "| `find-lobby` built with | zipped | init to first answer | over bare of the same | warm answer | processor in init, in the first answer | memory |"
    );
    println!("|---|---|---|---|---|---|---|");
    for ((profile, _), (built, figures)) in PROFILES.iter().zip(built.chunks(2).zip(figures.chunks(2))) {
        let [bare, find] = figures else { panic!("two of each profile") };
        println!(
            "| {profile} | {:.2} MB | {:.2} ms | {:.2} | {:.2} ms | {:.2}, {:.2} ms | {:.1} MB |",
            zipped(&built[1].path),
            find.to_first,
            find.to_first / bare.to_first,
            find.warm,
            find.init_cpu,
            find.first_cpu,
            find.memory,
        );
    }
}

/// The tables behind TLS, and the functions' environment for them.
struct World {
    signing_key: String,
    endpoint: String,
    authorities: Authorities,
    machine_authorities: Authorities,
    game_id: String,
    tokens: BTreeMap<&'static str, String>,
    // Stops with the last of it.
    _stack: TestStack,
}

/// A file of certificates, removed at the end.
struct Authorities(PathBuf);

impl Authorities {
    fn write(certificates: &[&str]) -> Self {
        let path = env::temp_dir().join(format!("muster-{}.pem", Ambient::system().uuid()));
        fs::write(&path, certificates.concat()).expect("a file");
        Self(path)
    }
}

impl Drop for Authorities {
    fn drop(&mut self) {
        let _gone = fs::remove_file(&self.0);
    }
}

impl World {
    async fn start() -> Self {
        let stack = TestStack::start_live().await;
        let (demo, ambient) = (stack.demo(), Ambient::system());
        let signing_key = format!("{}{}", ambient.uuid().simple(), ambient.uuid().simple());
        let keys = TokenKeys::new(signing_key.as_bytes(), None).expect("a long key");
        let issue = |kind| {
            keys.issue_credential(kind, &Credential::fresh(&demo.game_id, &demo.namespace_id, &ambient))
        };
        let right = GameRight::of_operator(demo.game_id.clone());
        let cloud = issue_cloud_token(stack.store(), &ambient, &right).await.expect("a cloud token");
        let tokens = BTreeMap::from([
            ("public", issue(CredentialKind::Public)),
            ("server", issue(CredentialKind::Server)),
            ("cloud", cloud.reveal().to_owned()),
        ]);

        let (endpoint, certificate) = behind_tls(stack.stack.store_link()).await;
        let authorities = Authorities::write(&[AUTHORITIES, &certificate]);
        let of_machine = MACHINE_AUTHORITIES.iter().find_map(|path| fs::read_to_string(path).ok());
        let of_machine = of_machine.expect("the machine trusts some authorities");
        let machine_authorities = Authorities::write(&[&of_machine, &certificate]);
        let game_id = demo.game_id.to_string();
        Self { signing_key, endpoint, authorities, machine_authorities, game_id, tokens, _stack: stack }
    }

    /// The bare function and those of `measured`, each built as SAM does: alone, for no other's features
    /// count.
    fn build(&self, measured: &[(&str, &str)], settings: Settings, folder: &str) -> Vec<Built> {
        let build = |name: &str| build_release(name, &["--package", name, "--bin", name], settings, folder);
        let bare = Built {
            name: BARE.to_owned(),
            path: build(BARE),
            environment: BTreeMap::new(),
            event: self.event("get-bootstrap", "public"),
        };
        let of_muster = measured.iter().map(|(name, token)| self.built(name, token, build(name)));
        [bare].into_iter().chain(of_muster).collect()
    }

    /// [`DEFAULTS`], whose client trusts the machine's authorities.
    fn build_defaults(&self, folder: &str) -> Built {
        let (name, token) = MEASURED[0];
        let manifest = format!("tests/{DEFAULTS}/Cargo.toml");
        let path = build_release(DEFAULTS, &["--manifest-path", &manifest], RELEASED, folder);
        let mut built = self.built(name, token, path);
        let bundle = self.machine_authorities.0.display().to_string();
        built.environment.insert("SSL_CERT_FILE".to_owned(), bundle);
        Built { name: DEFAULTS.to_owned(), ..built }
    }

    fn built(&self, name: &str, token: &str, path: PathBuf) -> Built {
        let declared = functions(&self.signing_key);
        let function = declared.into_iter().find(|function| function.binary == name).expect("a function");
        let mut environment = function.environment;
        let variables = [
            ("AWS_ACCESS_KEY_ID", "local".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "local".to_owned()),
            ("AWS_ENDPOINT_URL_DYNAMODB", self.endpoint.clone()),
            ("AWS_CA_BUNDLE", self.authorities.0.display().to_string()),
        ];
        environment.extend(variables.map(|(name, value)| (name.to_owned(), value)));
        Built { name: name.to_owned(), path, environment, event: self.event(name, token) }
    }

    /// A function's example event, made real.
    fn event(&self, function: &str, token: &str) -> String {
        let path = workspace().join("tests/events").join(function).with_extension("json");
        let text = fs::read_to_string(path).expect("an example event");
        text.replace("TOKEN", &self.tokens[token])
            .replace("GAME_ID", &self.game_id)
            .replace("SERVER_ID", "demo-fra")
    }
}

/// The binary `name` of cargo's `selection`, as it is deployed.
fn build_release(name: &str, selection: &[&str], settings: Settings, folder: &str) -> PathBuf {
    let target = profile_folder().parent().expect("a target folder").join(folder);
    build_into(&target, selection, "release", settings).remove(name).expect("it was built")
}

/// Starts each function in turn, [`ROUNDS`] times: the medians.
async fn measure(built: &[Built]) -> Vec<Figures> {
    let mut starts: Vec<Vec<Figures>> = built.iter().map(|_| Vec::new()).collect();
    for _ in 0..ROUNDS {
        for (function, starts) in built.iter().zip(&mut starts) {
            starts.push(start(function).await);
        }
    }
    let medians = |starts: &Vec<Figures>| {
        let median = |of: fn(&Figures) -> f64| {
            let mut values: Vec<f64> = starts.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        Figures {
            init: median(|start| start.init),
            to_first: median(|start| start.to_first),
            warm: median(|start| start.warm),
            init_cpu: median(|start| start.init_cpu),
            first_cpu: median(|start| start.first_cpu),
            memory: median(|start| start.memory),
        }
    };
    starts.iter().map(medians).collect()
}

/// A new process, its first answer and one more.
async fn start(function: &Built) -> Figures {
    let mut service = RuntimeApi::start().await;
    let mut command = Command::new(&function.path);
    command.env_clear().envs(&function.environment).envs(service.environment(&function.name));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let began = Instant::now();
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{}: {error}", function.path.display()));
    let id = child.id().expect("it runs");

    let init = service.ready().await - began;
    let init_cpu = processor_time(id);
    let first = answered(&mut service, function).await;
    let first_cpu = processor_time(id).saturating_sub(init_cpu);
    service.ready().await;
    let warm = answered(&mut service, function).await;
    let memory = resident_peak(id);
    child.kill().await.expect("it can be killed");
    let millis = |span: Duration| span.as_secs_f64() * 1_000.0;
    Figures {
        init: millis(init),
        to_first: millis(init + first),
        warm: millis(warm),
        init_cpu: millis(init_cpu),
        first_cpu: millis(first_cpu),
        memory,
    }
}

/// How long the function takes to answer its event, which it must do well.
async fn answered(service: &mut RuntimeApi, function: &Built) -> Duration {
    let sent = Instant::now();
    let (outcome, at) = service.invoke(&function.event).await;
    let answer = outcome.answer();
    assert_eq!(answer["statusCode"], 200, "{}: {answer}", function.name);
    at - sent
}

/// The processor time of a process so far.
fn processor_time(id: u32) -> Duration {
    let tasks = fs::read_dir(format!("/proc/{id}/task")).expect("a process of Linux");
    let nanoseconds = tasks.map(|task| {
        let schedstat =
            fs::read_to_string(task.expect("a task").path().join("schedstat")).expect("its times");
        let spent = schedstat.split(' ').next().expect("the time that it ran");
        spent.parse::<u64>().expect("nanoseconds")
    });
    Duration::from_nanos(nanoseconds.sum())
}

/// The most memory that a process ever held, in MB.
fn resident_peak(id: u32) -> f64 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).expect("a process of Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("its peak");
    let kibibytes = line.trim().trim_end_matches(" kB").parse::<f64>().expect("a number");
    kibibytes * 1_024.0 / 1e6
}

/// What a binary comes to in a ZIP file, in MB.
fn zipped(binary: &Path) -> f64 {
    let binary = fs::read(binary).expect("a binary");
    // The default level of zip programs.
    miniz_oxide::deflate::compress_to_vec(&binary, 6).len() as f64 / 1e6
}
