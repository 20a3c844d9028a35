//! The simulated starter, and the processes that it starts: each registers after its time, or never, sends
//! heartbeats, and ends on `stop`, on `MATCHMAKER_SERVER_NOT_FOUND`, or by itself.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use shared::hosting::launching::{NotStarted, Order, Starter};
use tokio::time::sleep;

use super::{
    super::{
        model::{Action, answers::Answer},
        network::{CURRENT, Network},
        requests::{Delivery, Request},
    },
    Due, Floor, Keeper, Yard,
};

/// Without an accepted heartbeat for so long, three leases, a process ends.
const UNHEARD_MAX_MS: u64 = 90_000;
/// How long a call of the starter may take, in milliseconds.
const CALL_MS: u64 = 1_500;

/// A process.
pub(super) struct Process {
    order: Order,
    pub(super) server: String,
    /// Whether it never does anything.
    is_mute: bool,
    has_registered: bool,
    pub(super) is_over: bool,
    /// When it ends by itself, in milliseconds of the run.
    ends_at: Option<u64>,
    /// When a call of it was accepted last.
    heard_at: u64,
}

/// What starts processes; it starts each start once.
pub(crate) struct SimulatedStarter {
    pub(super) network: Network,
    pub(super) yard: Yard,
}

impl SimulatedStarter {
    async fn pause(&self) {
        let ms = self.yard.floor().chance.range(2..=CALL_MS);
        sleep(Duration::from_millis(ms)).await;
    }
}

impl Starter for SimulatedStarter {
    async fn start(&self, order: &Order) -> Result<String, NotStarted> {
        self.pause().await;
        let now = self.network.state().now();
        let answer = self.yard.floor().start(order, now);
        if answer.is_ok() {
            let mut state = self.network.state();
            let state = &mut *state;
            let operation = CURRENT.try_with(|operation| *operation).ok();
            state.model.check_ordered(operation, order, &state.history);
        }
        self.pause().await;
        answer
    }

    async fn end(&self, order: &Order) -> Result<(), NotStarted> {
        self.pause().await;
        let answer = {
            let mut floor = self.yard.floor();
            let refused = floor.plan.not_now / 2;
            if floor.chance.permille(refused) {
                Err(NotStarted::NotNow("busy".to_owned()))
            } else {
                if let Some(process) = floor.processes.get_mut(order.start_id.as_str()) {
                    process.is_over = true;
                }
                Ok(())
            }
        };
        self.pause().await;
        answer
    }
}

impl Floor {
    fn start(&mut self, order: &Order, now: u64) -> Result<String, NotStarted> {
        let start = order.start_id.as_str().to_owned();
        let handle = format!("task-{start}");
        if self.processes.contains_key(&start) {
            return Ok(handle);
        }
        let (refused, not_now) = (self.plan.refused, self.plan.not_now);
        if self.chance.permille(refused) {
            return Err(NotStarted::Refused("no such image".to_owned()));
        }
        if self.chance.permille(not_now) {
            return Err(NotStarted::NotNow("no capacity".to_owned()));
        }
        let start_ms = self.plan.start_secs * 1_000;
        let mut share = |permille: u64| self.chance.permille(permille);
        let (is_mute, is_stillborn, is_mortal) =
            (share(self.plan.mute), share(self.plan.stillborn), share(self.plan.mortal));
        let takes = match self.is_calm {
            true => self.chance.range(200..=800),
            false if self.chance.one_in(8) => start_ms + self.chance.range(0..=40_000),
            false => self.chance.range(100..=start_ms),
        };
        let ends_at = match (is_stillborn, is_mortal) {
            (true, _) => Some(now + self.chance.range(10..=takes)),
            (_, true) => Some(now + takes + self.chance.range(10..=60_000)),
            _ => None,
        };
        let server = format!("{}/{}", order.namespace_id, order.server_id);
        let order = order.clone();
        let (has_registered, is_over, heard_at) = (false, false, now);
        let process = Process { order, server, is_mute, has_registered, is_over, ends_at, heard_at };
        self.processes.insert(start.clone(), process);
        if let Some(at) = ends_at {
            self.push(at, Due::Turn { start: start.clone() });
        }
        self.push(now + takes, Due::Turn { start });
        Ok(handle)
    }

    /// What a process of `start` does with the answer of its call; `None` for no answer. Its next turn.
    fn hear(&mut self, start: &str, answer: Option<&Answer>, now: u64) {
        let Some(process) = self.processes.get_mut(start) else { return };
        match answer {
            Some(answer) if answer.status == 200 => {
                (process.has_registered, process.heard_at) = (true, now);
                process.is_over |= answer.body["stop"] == json!(true);
            }
            Some(answer) if answer.body["code"] == json!("MATCHMAKER_SERVER_NOT_FOUND") => {
                process.is_over = true;
            }
            _ => {}
        }
        process.is_over |= process.heard_at + UNHEARD_MAX_MS <= now;
        let has_worked = answer.is_some_and(|answer| answer.status == 200);
        if !process.is_over {
            let pause = if has_worked { 5_000..=11_000 } else { 1_000..=3_000 };
            let at = now + self.chance.range(pause);
            self.push(at, Due::Turn { start: start.to_owned() });
        }
    }
}

impl Keeper {
    /// What a process does next.
    pub(super) fn turn(&mut self, start: String) {
        let now = self.network.state().now();
        let request = {
            let mut floor = self.yard.floor();
            let is_told = floor.chance.one_in(2);
            let lag = floor.chance.range(50..=3_000);
            let is_auto_ready = floor.plan.is_auto_ready;
            let is_calm = floor.is_calm;
            let Some(process) = floor.processes.get_mut(&start).filter(|process| !process.is_over) else {
                return;
            };
            if process.ends_at.is_some_and(|at| at <= now) && !is_calm {
                process.is_over = true;
                let server = process.server.clone();
                if is_told {
                    floor.send(now + lag, &Due::Ended { server, start });
                }
                return;
            }
            if process.is_mute {
                return;
            }
            let (server, start) = (process.server.clone(), start.clone());
            let environment = &process.order.environment;
            if process.has_registered {
                Request::of_process(&self.world, environment, Action::Heartbeat { server, start }, json!({}))
            } else {
                let body = json!({
                    "region_id": environment["MUSTER_REGION_ID"],
                    "lease_seconds": 30,
                    "auto_ready": is_auto_ready,
                    "ports": { "default": { "hostname": "a.example", "port": 7_777, "protocol": "udp" } },
                });
                Request::of_process(&self.world, environment, Action::Register { server, start }, body)
            }
        };
        let handler = self.instance.handler(request.function);
        let polls_left = {
            let mut state = self.network.state();
            let crash = state.faults.crash;
            state.chance.permille(crash).then(|| 1 + state.chance.below(40) as u32)
        };
        let delivery = Delivery { request, instance: self.number, handler, polls_left };
        let (world, network, yard) = (Arc::clone(&self.world), self.network.clone(), self.yard.clone());
        tokio::spawn(async move {
            let answer = delivery.carry_out(&world, &network).await;
            let now = network.state().now();
            yard.floor().hear(&start, answer.as_ref(), now);
        });
    }
}
