//! What holds a secret is for its owner alone: files, folders, and the arguments of programs.

use std::{os::unix::fs::MetadataExt as _, path::Path};

use super::*;

fn mode(path: &str) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o777
}

fn set_mode(path: &str, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
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
