//! The starter `ecs`: tasks of Amazon ECS on Fargate, of an account's own cluster.
//!
//! The identifier of the start is the call's token, so that ECS runs one task for it within a day, however
//! often it is asked. For the calls must then be the same byte for byte, all of them follows from the
//! server's record.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use shared::{
    hosting::launching::{NotStarted, Order},
    models::{
        ids::ServerKey,
        server::Server,
        starter::{EcsSettings, server_of_task, task_starter},
    },
    outside::aws_api::{AwsApi, CallError, ECS, endpoint},
};

/// How long a call may take.
const TIMEOUT: Duration = Duration::from_secs(8);

/// Amazon ECS in the deployment's region.
#[derive(Debug)]
pub struct Ecs {
    api: AwsApi,
    endpoint: String,
}

#[derive(Deserialize)]
struct Run {
    #[serde(default)]
    tasks: Vec<Task>,
    #[serde(default)]
    failures: Vec<Failure>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Task {
    task_arn: String,
}

#[derive(Deserialize)]
struct Failure {
    #[serde(default)]
    reason: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    #[serde(default)]
    task_arns: Vec<String>,
}

/// A task that stopped, as ECS tells EventBridge.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Stopped {
    started_by: String,
    task_arn: String,
    stop_code: Option<String>,
    #[serde(default)]
    containers: Vec<Container>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Container {
    exit_code: Option<i64>,
}

impl Stopped {
    /// The event in a message; `None` in any other.
    pub(crate) fn read(body: &str) -> Option<Self> {
        #[derive(Deserialize)]
        struct Event {
            detail: Stopped,
        }
        serde_json::from_str(body).ok().map(|event: Event| event.detail)
    }

    /// The server whose task it was; `None` of others' tasks.
    pub(crate) fn server(&self) -> Option<ServerKey> {
        server_of_task(&self.started_by)
    }

    /// Whether it was the task of `server`, whose handle need not be noted.
    pub(crate) fn was_of(&self, server: &Server) -> bool {
        noted(server.handle.as_deref()).is_none_or(|task| task == self.task_arn)
    }

    /// Why it stopped. The event's own sentence names the account's resources, such as an image that is
    /// missing.
    pub(crate) fn reason(&self) -> String {
        let code = self.stop_code.as_deref().unwrap_or("for no reason that ECS gives");
        match self.containers.iter().find_map(|container| container.exit_code) {
            Some(status) => format!("its task stopped: {code}, exit status {status}"),
            None => format!("its task stopped: {code}"),
        }
    }
}

impl Ecs {
    /// ECS at its own address, or at another.
    #[must_use]
    pub fn new(api: AwsApi, at: Option<String>) -> Self {
        let endpoint = at.unwrap_or_else(|| endpoint(ECS.name, api.region()));
        Self { api, endpoint }
    }

    async fn call<T: serde::de::DeserializeOwned>(
        &self,
        operation: &str,
        request: &Value,
    ) -> Result<T, CallError> {
        self.api.call((&ECS, operation), &self.endpoint, request, TIMEOUT).await
    }

    pub(crate) async fn start(&self, settings: &EcsSettings, order: &Order) -> Result<String, NotStarted> {
        match self.call::<Run>("RunTask", &run_task(settings, order)).await {
            Ok(Run { tasks, failures }) => match (tasks.into_iter().next(), failures.into_iter().next()) {
                (Some(task), _) => Ok(task.task_arn),
                (None, Some(Failure { reason })) => Err(not_placed(&reason)),
                (None, None) => Err(NotStarted::NotNow("ECS started no task".to_owned())),
            },
            // The token has run a task, with a request that differed, such as by a signing key that changed.
            Err(CallError::Refused { code, .. }) if code == "ConflictException" => {
                let tasks = self.tasks_of(settings, order).await?;
                Ok(tasks.into_iter().next().unwrap_or_else(|| order.start_id.as_str().to_owned()))
            }
            Err(error) => Err(refusal(&error)),
        }
    }

    pub(crate) async fn end(&self, settings: &EcsSettings, order: &Order) -> Result<(), NotStarted> {
        // Without the task's name, because the start was not noted, or the task was not known then.
        let tasks = match noted(order.handle.as_deref()) {
            Some(task) => vec![task.to_owned()],
            None => self.tasks_of(settings, order).await?,
        };
        for task in tasks {
            let cluster = cluster_of(&task).unwrap_or(&settings.cluster);
            let request =
                json!({ "cluster": cluster, "task": task, "reason": "Muster has no lobbies for it" });
            match self.call::<Value>("StopTask", &request).await {
                Ok(_) => {}
                // ECS has forgotten the task, an hour or so after it ended.
                Err(CallError::Refused { code, .. }) if code == "InvalidParameterException" => {}
                Err(error) => return Err(refusal(&error)),
            }
        }
        Ok(())
    }

    /// The tasks of a start that run or are about to.
    async fn tasks_of(&self, settings: &EcsSettings, order: &Order) -> Result<Vec<String>, NotStarted> {
        let request = json!({ "cluster": settings.cluster, "startedBy": started_by(order) });
        let listed = self.call::<Listed>("ListTasks", &request).await;
        listed.map(|listed| listed.task_arns).map_err(|error| refusal(&error))
    }
}

fn run_task(settings: &EcsSettings, order: &Order) -> Value {
    let EcsSettings { cluster, task_definition, container, subnets, security_groups, spot } = settings;
    let environment: Vec<_> =
        order.environment.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
    let mut request = json!({
        "clientToken": order.start_id.as_str(),
        "startedBy": started_by(order),
        "cluster": cluster,
        "taskDefinition": task_definition,
        "count": 1,
        "networkConfiguration": { "awsvpcConfiguration": {
            "subnets": subnets, "securityGroups": security_groups, "assignPublicIp": "ENABLED" } },
        "overrides": { "containerOverrides": [{ "name": container, "environment": environment }] },
    });
    let (field, value) = if *spot {
        ("capacityProviderStrategy", json!([{ "capacityProvider": "FARGATE_SPOT", "weight": 1 }]))
    } else {
        ("launchType", json!("FARGATE"))
    };
    if let Some(fields) = request.as_object_mut() {
        fields.insert(field.to_owned(), value);
    }
    request
}

fn started_by(order: &Order) -> String {
    let Order { namespace_id, server_id, .. } = order;
    task_starter(&ServerKey { namespace_id: namespace_id.clone(), server_id: server_id.clone() })
}

/// The task in a handle; `None` where the task was not known when it was noted.
fn noted(handle: Option<&str>) -> Option<&str> {
    handle.filter(|handle| handle.starts_with("arn:"))
}

/// The cluster in a task's ARN; `None` in one of the old form, which names none.
fn cluster_of(task: &str) -> Option<&str> {
    let (_, name) = task.split_once(":task/")?;
    name.split_once('/').map(|(cluster, _)| cluster)
}

/// What a failure in a successful answer means: without room it may do at another try.
fn not_placed(reason: &str) -> NotStarted {
    let words = format!("ECS has no place for the task: {reason}");
    let is_for_now = ["RESOURCE", "AGENT", "apacity"].iter().any(|part| reason.contains(part));
    if is_for_now { NotStarted::NotNow(words) } else { NotStarted::Refused(words) }
}

/// What a refused call means. Its message names the account's resources, so only the log has it.
fn refusal(error: &CallError) -> NotStarted {
    tracing::warn!(problem = %error, "ECS refused a call");
    match error {
        CallError::Refused { status, code, message, .. } => {
            let is_for_now = *status >= 500 || code.contains("Throttl") || message.contains("apacity");
            let reason = format!("ECS answered {code}");
            if is_for_now { NotStarted::NotNow(reason) } else { NotStarted::Refused(reason) }
        }
        CallError::NoAnswer(_) => NotStarted::NotNow("ECS did not answer".to_owned()),
    }
}
