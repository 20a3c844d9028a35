//! The quickstart as a newcomer follows it: every file of the page is written and every command run, and what
//! the page shows is seen.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "this is test code: what cannot go on panics"
)]

use std::{collections::BTreeMap, env, fs, net::TcpListener, path::Path, time::Duration};

use harness::binaries::profile_folder;
use regex_lite::Regex;
use tokio::time::timeout;

use crate::{
    artefacts::{Program, TestFolder, binary, workspace},
    clients::{python, python_client, typescript_client},
};

/// What a command may take; a package comes over the network.
const PATIENCE: Duration = Duration::from_secs(180);
/// Stands for any text in what the page shows.
const ANYTHING: char = '…';

/// A newcomer, with a folder and the commands that hold for the rest of the session.
struct Newcomer {
    folder: TestFolder,
    environment: BTreeMap<String, String>,
    session: Vec<String>,
    /// Those that go on, such as Muster.
    running: Vec<Program>,
}

impl Newcomer {
    fn new() -> Self {
        let mut environment: BTreeMap<_, _> = env::vars().collect();
        // Built by now, and found as those of an archive are.
        let [_, _] = ["muster-local", "muster"].map(binary);
        let path = format!("{}:{}", profile_folder().display(), environment["PATH"]);
        environment.insert("PATH".to_owned(), path);
        // As if it were installed, which `.ci/python-client` does.
        let package = workspace().join("infra/clients/python/src");
        environment.insert("PYTHONPATH".to_owned(), package.display().to_string());
        Self { folder: TestFolder::new(), environment, session: Vec::new(), running: Vec::new() }
    }

    /// Does what a part of the page says.
    async fn follow(&mut self, part: &str) {
        let block = Regex::new("(?s)```([a-z]+)\n(.*?)```").unwrap();
        let name = Regex::new(r"`(\w+\.(?:json|ts|py))`").unwrap();
        let mut end = 0;
        for found in block.captures_iter(part) {
            let [whole, language, text] = [0, 1, 2].map(|group| found.get(group).unwrap());
            let before = &part[end..whole.start()];
            end = whole.end();
            match language.as_str() {
                "console" => self.run(text.as_str()).await,
                "text" => {}
                _ => {
                    let named =
                        name.captures_iter(before).last().expect("the paragraph before names the file");
                    let path = Path::new(&self.folder.path("dice")).join(&named[1]);
                    fs::write(path, text.as_str()).unwrap();
                }
            }
        }
    }

    /// Runs the commands of a block. One whose output is shown goes on, once it has printed that; others end.
    async fn run(&mut self, block: &str) {
        let mut lines = block.lines().peekable();
        while let Some(line) = lines.next() {
            let command = line.strip_prefix("$ ").unwrap_or_else(|| panic!("no command: {line}"));
            let mut shown = Vec::new();
            while let Some(line) = lines.next_if(|line| !line.starts_with("$ ")) {
                shown.push(line);
            }
            if command.starts_with("export ") || command.contains("cd ") {
                self.session.push(command.to_owned());
            }
            self.perform(command, &shown).await;
        }
    }

    async fn perform(&mut self, command: &str, shown: &[&str]) {
        let own = format!("cd {}", self.folder.path(""));
        let run = if self.session.iter().any(|kept| kept == command) {
            String::new()
        } else {
            format!("exec {command}")
        };
        let script: Vec<_> = std::iter::once(own).chain(self.session.clone()).chain([run]).collect();
        let arguments = ["-e", "-c", &script.join("\n")];
        let mut program = Program::start_at(Path::new("/bin/sh"), &arguments, &self.environment);
        if shown.is_empty() {
            let status = timeout(PATIENCE, program.wait()).await.expect("in time");
            assert!(status.success(), "{command}: {:?}", program.end().await);
            return;
        }
        for line in shown.iter().filter(|line| **line != ANYTHING.to_string()) {
            let parts: Vec<_> = line.split(ANYTHING).collect();
            let seen = timeout(PATIENCE, program.line_with(parts[0])).await.expect("in time");
            let Some(seen) = seen else {
                panic!("{command} does not print `{line}`: {:?}", program.end().await)
            };
            assert!(parts.iter().all(|part| seen.contains(part)), "{command} prints `{seen}`, not `{line}`");
        }
        self.running.push(program);
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// The page's parts by their headings, for ports that are free on this machine, and this clone.
fn parts() -> BTreeMap<String, String> {
    let (muster, game) = (free_port(), free_port());
    let page = fs::read_to_string(workspace().join("infra/docs/quickstart.md")).unwrap();
    let adapted = [
        ("127.0.0.1:3000", format!("127.0.0.1:{muster}")),
        ("muster-local ", format!("muster-local --port {muster} ")),
        ("--local)", format!("--local=http://127.0.0.1:{muster})")),
        ("7777", game.to_string()),
        ("MUSTER=~/muster", format!("MUSTER={}", workspace().display())),
        // The package is built by now, and other tests use it.
        ("npm --prefix $MUSTER/infra/clients/typescript ci", "true".to_owned()),
        ("npm pack ", "npm pack --ignore-scripts ".to_owned()),
        ("python3 -m venv venv", "true".to_owned()),
        ("venv/bin/pip install $MUSTER/infra/clients/python", "true".to_owned()),
        ("venv/bin/python ", format!("{} -B ", python())),
    ];
    let page = adapted.iter().fold(page, |page, (here, there)| {
        assert!(page.contains(here), "{here}");
        page.replace(here, there)
    });
    let parts = page.split("\n## ").filter_map(|part| part.split_once('\n'));
    parts.map(|(heading, text)| (heading.to_owned(), text.to_owned())).collect()
}

/// Follows the page in a language, and plays once more on a bad network.
async fn play(language: &str, player: &str) {
    let (mut newcomer, parts) = (Newcomer::new(), parts());
    newcomer.follow(&parts["Muster with your game"]).await;
    newcomer.follow(&parts[language]).await;
    let faults = r#"curl -sf -X PUT $API_URL/_local/faults -d '{"seed": 7}'"#;
    newcomer.perform(faults, &[r#"{"made":{},"requests":{},"seed":7}"#]).await;
    newcomer.perform(&format!("{player} Ada"), &["a seat in lobby …"]).await;
    newcomer.perform(&format!("{player} Bob"), &["a seat in lobby …", "Ada rolled …, Bob rolled …"]).await;
}

#[tokio::test]
async fn the_quickstart_in_typescript_is_played_as_written() {
    if typescript_client().await.is_some() {
        play("TypeScript", "node --import tsx player.ts").await;
    }
}

#[tokio::test]
async fn the_quickstart_in_python_is_played_as_written() {
    if python_client().await.is_some() {
        play("Python", &format!("{} -B player.py", python())).await;
    }
}
