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
    models::starter::EcsSettings,
    outside::aws_api::{AwsApi, CallError, Service, endpoint},
};

/// How long a call may take.
const TIMEOUT: Duration = Duration::from_secs(8);
const ECS: Service = Service {
    name: "ecs",
    prefix: "AmazonEC2ContainerServiceV20141113",
    content_type: "application/x-amz-json-1.1",
};

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
        let start_id = order.start_id.as_str();
        match self.call::<Run>("RunTask", &run_task(settings, order)).await {
            Ok(Run { tasks, failures }) => match (tasks.into_iter().next(), failures.into_iter().next()) {
                (Some(task), _) => Ok(task.task_arn),
                (None, Some(Failure { reason })) => Err(not_placed(&reason)),
                (None, None) => Err(NotStarted::NotNow("ECS started no task".to_owned())),
            },
            // The token has run a task, with a request that differed, such as by a signing key that changed.
            Err(CallError::Refused { code, .. }) if code == "ConflictException" => {
                let tasks = self.tasks_of(settings, start_id).await?;
                Ok(tasks.into_iter().next().unwrap_or_else(|| start_id.to_owned()))
            }
            Err(error) => Err(refusal(&error)),
        }
    }

    pub(crate) async fn end(&self, settings: &EcsSettings, order: &Order) -> Result<(), NotStarted> {
        // Without the task's name, because the start was not noted, or the task was not known then.
        let noted = order.handle.clone().filter(|handle| handle.starts_with("arn:"));
        let tasks = match noted {
            Some(task) => vec![task],
            None => self.tasks_of(settings, order.start_id.as_str()).await?,
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
    async fn tasks_of(&self, settings: &EcsSettings, start_id: &str) -> Result<Vec<String>, NotStarted> {
        let request = json!({ "cluster": settings.cluster, "startedBy": start_id });
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
        "startedBy": order.start_id.as_str(),
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
