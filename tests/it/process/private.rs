//! What holds a secret is for its owner alone: files, folders, and the arguments of programs.

use std::{os::unix::fs::MetadataExt as _, path::Path};

use super::*;
use crate::artefacts::binary;

fn mode(path: &str) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o777
}

fn set_mode(path: &str, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Files of a data folder, and their modes.
fn modes(folder: &str) -> BTreeMap<String, u32> {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, mode(path.to_str().unwrap()))
        })
        .collect()
}

const FILES: [&str; 5] = ["muster.db", "muster.db-shm", "muster.db-wal", "muster.lock", "signing-key"];

#[tokio::test]
async fn a_data_folder_and_its_files_are_for_their_owner_alone() {
    let folder = TestFolder::new();
    let data = folder.path("new/data");
    let local = Local::start_in(&data).await;
    assert_eq!(mode(&data), 0o700);
    assert_eq!(modes(&data), FILES.map(|name| (name.to_owned(), 0o600)).into());
    let ended = local.interrupt().await;
    assert!(!ended.stderr.contains("chmod"), "{}", ended.stderr);
}

#[tokio::test]
async fn a_wider_data_folder_is_named_and_its_files_are_taken_back() {
    let folder = TestFolder::new();
    let data = folder.path("data");
    let mut local = Local::start_in(&data).await;
    // Killed, so that all of SQLite's files stay.
    local.program.kill().await;
    set_mode(&data, 0o755);
    for name in FILES {
        set_mode(&format!("{data}/{name}"), 0o644);
    }
    let mut local = Local::start_in(&data).await;
    let line = local.program.logged("chmod").await.unwrap();
    let said = format!("other users have rights on the data folder {data} (mode 755): chmod 700 {data}");
    assert!(line.ends_with(&said), "{line}");
    assert_eq!(modes(&data), FILES.map(|name| (name.to_owned(), 0o600)).into());
}

/// A data folder of a stack that has ended.
async fn data_in(folder: &TestFolder) -> String {
    let data = folder.path("data");
    Local::start_in(&data).await.interrupt().await;
    data
}

#[tokio::test]
async fn a_damaged_signing_key_is_named_with_its_remedy() {
    let folder = TestFolder::new();
    let data = data_in(&folder).await;
    let key = format!("{data}/signing-key");
    for (bytes, left) in [(0, &[][..]), (31, &[7; 31][..])] {
        fs::write(&key, left).unwrap();
        let message = refusal(&["--port", "0", "--data", &data]).await;
        let expected = format!(
            "the signing key {key} cannot be used: it has {bytes} bytes instead of 32; restore it from a copy, or delete \
             it, and all tokens become invalid"
        );
        assert_eq!(message, expected);
    }
    fs::remove_file(&key).unwrap();
    // A process that was killed before the key had its name.
    fs::write(format!("{key}.new"), "half").unwrap();
    Local::start_in(&data).await.interrupt().await;
    assert_eq!((fs::read(&key).unwrap().len(), mode(&key)), (64, 0o600));
    assert!(!Path::new(&format!("{key}.new")).exists());
}

#[tokio::test]
async fn a_damaged_database_is_named_with_its_remedy() {
    let folder = TestFolder::new();
    let data = data_in(&folder).await;
    let path = format!("{data}/muster.db");
    let whole = fs::read(&path).unwrap();
    let mut flipped = whole.clone();
    // The first page lists the tables, and its first bytes say that it is a database.
    flipped.iter_mut().take(100).for_each(|byte| *byte ^= 0xff);
    let mut pages = whole.clone();
    pages.iter_mut().skip(100).for_each(|byte| *byte ^= 0xff);
    for damaged in [&flipped[..], &pages, &whole[..whole.len() / 2], &whole[..5_000]] {
        fs::write(&path, damaged).unwrap();
        let message = refusal(&["--port", "0", "--data", &data]).await;
        assert!(message.starts_with(&format!("the database {path} cannot be read: ")), "{message}");
        let remedy = "; if it is damaged, restore the folder from a copy or choose another folder";
        assert!(message.ends_with(remedy) && !message.contains("encrypt"), "{message}");
    }
}

#[tokio::test]
async fn a_full_disk_is_named_once_and_as_what_it_is() {
    let folder = TestFolder::new();
    let data = data_in(&folder).await;
    // No file may grow beyond this: as on a full disk, but for the signal, which is ignored.
    let limited = format!(
        "trap '' XFSZ; ulimit -f 1500; exec {} --port 0 --data {data}",
        binary(BINARY).to_str().unwrap()
    );
    let mut program = Program::start_at(Path::new("/bin/sh"), &["-c", &limited], &BTreeMap::new());
    let line = program.line_with("Muster listens on ").await.unwrap();
    let base_url = line.strip_prefix("Muster listens on ").unwrap().to_owned();
    let mut local = Local::new(program, base_url);
    let demo = local.demo().await;
    let token = demo["tokens"]["public"].as_str().unwrap();
    let is_full = async {
        loop {
            let answer = local.find(token, json!({ "game_modes": ["solo"] })).await;
            if answer.status != 200 {
                return answer;
            }
        }
    };
    let answer = timeout(PATIENCE, is_full).await.expect("a full disk");
    assert_eq!(answer.refusal(), (503, "API_UNAVAILABLE"));
    local.program.signal("INT");
    let stderr = local.program.end().await.stderr;
    assert!(stderr.contains("full") || stderr.contains("disk I/O"), "it says why: {stderr}");
    assert!(
        !stderr.contains("marking the connection") && !stderr.contains("mark the connection"),
        "{stderr}"
    );
}

/// Programs by the names that a system opens a browser with. Each notes its arguments and environment, what
/// `ps` shows of it, and the page that it was given.
fn fake_browser(folder: &TestFolder) -> (String, String) {
    let (programs, seen) = (folder.path("programs"), folder.path("seen"));
    fs::create_dir(&programs).unwrap();
    let script = format!(
        "#!/bin/sh\nfor page; do :; done\ncp -p \"$page\" {seen}.page\nps -o args= -p $$ >{seen}.ps\nenv >{seen}.env\n\
         printf '%s\\n' \"$@\" >{seen}.new\nmv {seen}.new {seen}\n"
    );
    for name in ["xdg-open", "open"] {
        let path = format!("{programs}/{name}");
        fs::write(&path, &script).unwrap();
        set_mode(&path, 0o755);
    }
    (programs, seen)
}

/// A console that has opened the browser: its address with the token, and the browser's notes.
struct Opened {
    console: Program,
    url: String,
    seen: String,
    home: String,
}

impl Opened {
    async fn start(local: &Local, folder: &TestFolder) -> Self {
        let ((programs, seen), home) = (fake_browser(folder), folder.path("home"));
        fs::create_dir(&home).unwrap();
        let path = format!("{programs}:/usr/bin:/bin");
        let environment =
            [("PATH", path), ("HOME", home.clone())].map(|(name, value)| (name.to_owned(), value));
        let mut console = Program::start("muster", &["console", &local.option], &environment.into());
        let line = console.line_with("The console of").await.unwrap();
        let url = line.rsplit_once("once: ").unwrap().1.to_owned();
        let opened = async {
            while !fs::exists(&seen).unwrap() {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(PATIENCE, opened).await.expect("the browser is opened");
        Self { console, url, seen, home }
    }

    async fn end(mut self) {
        self.console.signal("INT");
        assert!(self.console.end().await.status.success());
        assert_eq!(fs::read_dir(&self.home).unwrap().count(), 0, "nothing is left");
    }
}

#[tokio::test]
async fn no_argument_of_a_program_contains_the_consoles_token() {
    let (local, folder) = (Local::start(&[]).await, TestFolder::new());
    let opened = Opened::start(&local, &folder).await;
    let Opened { url, seen, home, .. } = &opened;
    let (base_url, token) = url.split_once("/#token=").unwrap();
    for shown in ["", ".ps", ".env"] {
        let text = fs::read_to_string(format!("{seen}{shown}")).unwrap();
        assert!(!text.contains(token) && !text.contains("token"), "{shown}: {text}");
    }
    let arguments = fs::read_to_string(seen).unwrap();
    let [page] = arguments.lines().collect::<Vec<_>>()[..] else { panic!("{arguments}") };
    let private = Path::new(page).parent().unwrap().to_str().unwrap();
    assert_eq!((mode(private), mode(page)), (0o700, 0o600));
    assert_eq!(Path::new(private).parent().unwrap().to_str(), Some(home.as_str()), "a sandbox sees it");
    let text = fs::read_to_string(format!("{seen}.page")).unwrap();
    assert!(text.contains(&format!("http-equiv=\"refresh\" content=\"0; url={url}\"")), "{text}");

    let begin = async |token: &str| {
        let request = Request::post(format!("{base_url}/_console/session")).header("muster-console", "1");
        send(request, &json!({ "token": token }).to_string()).await.status
    };
    // What others see is no token.
    assert_eq!(begin(private.rsplit("console-").next().unwrap()).await, 401);
    assert!(fs::exists(page).unwrap());
    assert_eq!(begin(token).await, 200);
    assert!(!fs::exists(private).unwrap(), "it is gone once somebody has come");
    opened.end().await;
}

#[tokio::test]
async fn a_console_that_nobody_came_to_leaves_no_file() {
    let (local, folder) = (Local::start(&[]).await, TestFolder::new());
    let opened = Opened::start(&local, &folder).await;
    assert_eq!(fs::read_dir(&opened.home).unwrap().count(), 1);
    opened.end().await;
}
