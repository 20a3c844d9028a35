//! Game servers as processes of this machine.
//!
//! Each start is a process group of its own, on a port of a range. A thread of their own starts all of them,
//! because Linux ends a process with the thread that started it: none outlives the stack.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    env,
    ffi::OsString,
    net::{Ipv4Addr, TcpListener, UdpSocket},
    ops::Range,
    thread,
    time::Duration,
};

use muster::process_group::{Print, ProcessGroup, is_program, mortal};
use shared::{
    base::{ambient::Ambient, log::LINES},
    hosting::launching::{NotStarted, Order},
    models::ids::{ServerKey, StartId},
};
use tokio::{
    runtime,
    sync::{
        mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
        oneshot,
    },
    task::{JoinSet, LocalSet},
    time::sleep,
};

use crate::requests::clock;

/// The argument by which this program becomes a command that ends with it.
pub const CHILD: &str = "child";
/// The variable with the number of the process's port.
const PORT_VARIABLE: &str = "MUSTER_PORT";
/// The ports of game servers, below those that systems give to connections.
const PORTS: Range<u16> = 27_000..28_000;
/// How long a process may take to end once it was asked to.
const GRACE: Duration = Duration::from_secs(5);
/// Processes that run at once.
const PROCESSES_MAX: usize = 256;
/// Starts that are remembered after their processes ended, so that none is made twice.
const ENDED_MAX: usize = 1_024;

/// A process that ended without having been asked to.
#[derive(Debug)]
pub struct Ended {
    /// Its game server.
    pub key: ServerKey,
    /// Its start.
    pub start_id: StartId,
    /// How it ended, in words.
    pub how: String,
}

/// The processes of one stack. They end when this is dropped, which does not wait for it.
#[derive(Debug)]
pub struct Processes {
    asks: UnboundedSender<Ask>,
}

#[derive(Debug)]
enum Ask {
    Start { order: Box<Order>, command: Vec<OsString>, answer: oneshot::Sender<Result<String, NotStarted>> },
    End { start_id: StartId },
    Stop { done: oneshot::Sender<()> },
}

impl Processes {
    /// No processes yet; those that end by themselves are sent to `ended`.
    #[must_use]
    pub fn new(ambient: Ambient, ended: UnboundedSender<Ended>) -> Self {
        let (asks, received) = unbounded_channel();
        let run = move || {
            let runtime = runtime::Builder::new_current_thread().enable_all().build();
            match runtime {
                Ok(runtime) => LocalSet::new().block_on(&runtime, Room::new(ambient, ended).serve(received)),
                Err(error) => tracing::error!(error = error.to_string(), "game servers cannot be started"),
            }
        };
        // Without it, each start says that there are no processes.
        let _thread = thread::Builder::new().name("game-servers".to_owned()).spawn(run);
        Self { asks }
    }

    /// Starts `command` for the order's start, unless that was started before, and returns its process.
    ///
    /// # Errors
    /// [`NotStarted`].
    pub async fn start(&self, order: Order, command: &[String]) -> Result<String, NotStarted> {
        let (answer, answered) = oneshot::channel();
        let command = command.iter().map(OsString::from).collect();
        let _ends = self.asks.send(Ask::Start { order: Box::new(order), command, answer });
        answered.await.unwrap_or_else(|_| Err(NotStarted::NotNow("the stack ends".to_owned())))
    }

    /// Asks the process of a start to end, and kills it if it does not.
    pub fn end(&self, start_id: &StartId) {
        let _ends = self.asks.send(Ask::End { start_id: start_id.clone() });
    }

    /// Ends all processes, which takes at most some seconds. There are none afterwards.
    pub async fn stop(&self) {
        let (done, ended) = oneshot::channel();
        let _ended_before = self.asks.send(Ask::Stop { done });
        let _ended_or_panicked = ended.await;
    }
}

/// What the thread knows.
struct Room {
    ambient: Ambient,
    ended: UnboundedSender<Ended>,
    running: BTreeMap<String, Running>,
    /// Starts whose processes have ended, and how, oldest first.
    over: VecDeque<(String, String)>,
    tasks: JoinSet<(String, Option<String>)>,
}

struct Running {
    port: u16,
    handle: String,
    end: Option<oneshot::Sender<()>>,
}

impl Room {
    fn new(ambient: Ambient, ended: UnboundedSender<Ended>) -> Self {
        let (running, over, tasks) = Default::default();
        Self { ambient, ended, running, over, tasks }
    }

    async fn serve(mut self, mut asks: UnboundedReceiver<Ask>) {
        let stopped = loop {
            tokio::select! {
                ask = asks.recv() => match ask {
                    Some(Ask::Start { order, command, answer }) => {
                        let _nobody_waits = answer.send(self.start(&order, &command));
                    }
                    Some(Ask::End { start_id }) => self.end(start_id.as_str()),
                    Some(Ask::Stop { done }) => break Some(done),
                    None => break None,
                },
                Some(ended) = self.tasks.join_next() => self.note_end(ended.ok()),
            }
        };
        self.running.values_mut().for_each(|running| drop(running.end.take()));
        while let Some(ended) = self.tasks.join_next().await {
            self.note_end(ended.ok());
        }
        drop(stopped);
    }

    fn start(&mut self, order: &Order, command: &[OsString]) -> Result<String, NotStarted> {
        let start = order.start_id.as_str().to_owned();
        if let Some(running) = self.running.get(&start) {
            return Ok(running.handle.clone());
        }
        if let Some((_, how)) = self.over.iter().find(|(over, _)| *over == start) {
            return Err(NotStarted::Refused(format!("its process ended: {how}")));
        }
        if self.running.len() >= PROCESSES_MAX {
            return Err(NotStarted::NotNow(format!("{PROCESSES_MAX} processes run already")));
        }
        let program = command.first().cloned().unwrap_or_default();
        if !is_program(&program, env::var_os("PATH").as_deref()) {
            let program = program.display();
            return Err(NotStarted::Refused(format!("there is no program `{program}`")));
        }
        let Some(port) = self.free_port() else {
            let (first, last) = (PORTS.start, PORTS.end - 1);
            return Err(NotStarted::NotNow(format!("no port of {first} to {last} is free")));
        };
        let mut process = mortal(&[CHILD], command);
        process.envs(&order.environment).env(PORT_VARIABLE, port.to_string());
        let server: String = order.server_id.as_str().chars().take(8).collect();
        let name = format!("{} {server}", order.region_id);
        let group = ProcessGroup::start(&mut process, &name, [to_log as Print; 2])
            .map_err(|error| NotStarted::NotNow(format!("there can be no process: {error}")))?;
        let handle = group.id().unwrap_or_default().to_string();
        self.say(&format!("game server {name} is started: process {handle}, port {port}"));
        let (end, asked) = oneshot::channel();
        let running = Running { port, handle: handle.clone(), end: Some(end) };
        self.running.insert(start.clone(), running);
        let key = ServerKey { namespace_id: order.namespace_id.clone(), server_id: order.server_id.clone() };
        let told = (self.ended.clone(), key, order.start_id.clone());
        self.tasks.spawn_local(async move { (start, keep(group, asked, told).await) });
        Ok(handle)
    }

    fn end(&mut self, start: &str) {
        if let Some(running) = self.running.get_mut(start) {
            drop(running.end.take());
        }
    }

    fn note_end(&mut self, ended: Option<(String, Option<String>)>) {
        let Some((start, how)) = ended else { return };
        if let Some(Running { handle, .. }) = self.running.remove(&start) {
            let how = how.as_deref().unwrap_or("as it was asked to");
            self.say(&format!("process {handle} of a game server has ended: {how}"));
        }
        if self.over.len() >= ENDED_MAX {
            self.over.pop_front();
        }
        self.over.push_back((start, how.unwrap_or_else(|| "it was asked to".to_owned())));
    }

    /// A port that no process has and nothing listens on. It begins anywhere, because there may be other
    /// stacks.
    fn free_port(&self) -> Option<u16> {
        let taken: BTreeSet<u16> = self.running.values().map(|running| running.port).collect();
        let count = PORTS.end - PORTS.start;
        let first = u16::try_from(self.ambient.below(count.into())).unwrap_or_default();
        let ports = (0..count).map(|index| PORTS.start + (first + index) % count);
        ports.filter(|port| !taken.contains(port)).find(|port| {
            let everywhere = (Ipv4Addr::UNSPECIFIED, *port);
            TcpListener::bind(everywhere).is_ok() && UdpSocket::bind(everywhere).is_ok()
        })
    }

    fn say(&self, text: &str) {
        tracing::info!(target: LINES, "{} {text}", clock(self.ambient.now()));
    }
}

/// Resolves once the process has ended with all that it started; with how, if nobody asked for it.
async fn keep(
    mut group: ProcessGroup,
    asked: oneshot::Receiver<()>,
    (ended, key, start_id): (UnboundedSender<Ended>, ServerKey, StartId),
) -> Option<String> {
    let how = tokio::select! {
        status = group.wait() => Some(status.map_or_else(|error| error.to_string(), |status| status.to_string())),
        _asked_or_dropped = asked => None,
    };
    if let Some(how) = &how {
        let _nobody_listens = ended.send(Ended { key, start_id, how: how.clone() });
    }
    group.stop(sleep(GRACE)).await;
    how
}

fn to_log(line: &[u8]) {
    tracing::info!(target: LINES, "{}", String::from_utf8_lossy(line).trim_end());
}
