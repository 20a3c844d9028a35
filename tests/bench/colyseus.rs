//! Colyseus with its defaults, in the memory of one process, and as it is deployed on more than one: on
//! processes that share their rooms over Redis.

use std::{fs, net::TcpListener};

use harness::{
    binaries::profile_folder,
    load::{Connection, Post, Reply},
    local_process::ServerProcess,
    node,
};
use http::Method;
use serde_json::json;
use tokio::process::Command;

use super::{Contestant, Load, Matchmaker, folder};

/// The load generator spreads its connections over them, as a load balancer would.
const PROCESSES: usize = 2;
/// Fewer finds than of the others, since each takes many times as long.
const LOAD_OVER_REDIS: Load = Load { warm_up: 320, lead: 80, finds: 400 };

pub struct Colyseus {
    contestant: Contestant,
    processes: Vec<ServerProcess>,
    // Ends after the processes.
    _redis: Option<ServerProcess>,
}

impl Colyseus {
    pub async fn in_memory() -> Self {
        Self::of("Colyseus in memory", super::LOAD, vec![process(None).await], None)
    }

    /// With a Redis of its own; nothing where that is not installed.
    pub async fn over_redis() -> Option<Self> {
        let (port, redis) = redis().await?;
        let mut processes = Vec::new();
        for _ in 0..PROCESSES {
            processes.push(process(Some(port)).await);
        }
        Some(Self::of("Colyseus over Redis", LOAD_OVER_REDIS, processes, Some(redis)))
    }

    fn of(
        name: &'static str,
        load: Load,
        processes: Vec<ServerProcess>,
        redis: Option<ServerProcess>,
    ) -> Self {
        let contestant = Contestant {
            name,
            base_urls: processes.iter().map(|process| process.base_url.clone()).collect(),
            find: Post::json("/matchmake/joinOrCreate/arena", None, &json!({})),
            is_seat,
            load,
        };
        Self { contestant, processes, _redis: redis }
    }
}

/// Its refusals have the status 200, too.
fn is_seat(reply: &Reply) -> bool {
    reply.status == 200 && reply.json()["sessionId"].is_string()
}

async fn process(redis_port: Option<u16>) -> ServerProcess {
    let mut command = Command::new("node");
    command.arg("colyseus.mjs").args(redis_port.map(|port| port.to_string()));
    command.current_dir(folder()).env("NODE_ENV", "production");
    ServerProcess::start(&mut command, "Colyseus listens on ").await
}

/// Redis on a free port, with an empty folder that it never writes to.
async fn redis() -> Option<(u16, ServerProcess)> {
    let folder = profile_folder().join("redis");
    fs::create_dir_all(&folder).expect("a folder");
    node::run(&folder, "redis-server", &["--version"]).await?;
    let free = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let port = free.local_addr().expect("an address").port();
    drop(free);
    let mut command = Command::new("redis-server");
    command.args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--save", "", "--appendonly", "no"]);
    command.current_dir(folder);
    Some((port, ServerProcess::start(&mut command, "Ready to accept connections").await))
}

/// Changes rooms of a process: how many live now, in all processes.
async fn rooms(process: &ServerProcess, method: Method, path: &str) -> usize {
    let rooms = Connection::open(&process.base_url).await.ask(method, path).await.expect_ok();
    rooms["live"].as_u64().and_then(|live| live.try_into().ok()).expect("a count")
}

impl Matchmaker for Colyseus {
    fn contestant(&self) -> &Contestant {
        &self.contestant
    }

    /// Grown by rooms that are made full, the same number in each process.
    async fn set_live(&self, wanted: usize) {
        let mut live = rooms(&self.processes[0], Method::GET, "/rooms").await;
        for (number, process) in self.processes.iter().enumerate() {
            live = if live < wanted {
                let share = (wanted - live).div_ceil(self.processes.len() - number);
                rooms(process, Method::POST, &format!("/rooms?add={share}")).await
            } else {
                rooms(process, Method::DELETE, &format!("/rooms?keep={wanted}")).await
            };
        }
        assert_eq!(live, wanted, "{} holds as many rooms as the step wants", self.contestant.name);
    }
}
