//! Tasks of Amazon ECS that run as game servers of a stack.

use std::time::Duration;

use aws_sdk_dynamodb::config::ProvideCredentials as _;
use aws_smithy_http_client::Connector;
use aws_smithy_runtime_api::client::http::SharedHttpConnector;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use shared::{
    base::{ambient::Ambient, aws::CRYPTOGRAPHY},
    models::starter::server_of_task,
    outside::aws_api::{AwsApi, ECS, endpoint},
};

use crate::{
    doctor::Task,
    target::{Described, Target},
};

/// Tasks of a page: ECS lists and describes so many at once.
const PAGE: usize = 100;
/// How long a call may take.
const TIMEOUT: Duration = Duration::from_secs(8);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    #[serde(default)]
    task_arns: Vec<String>,
    next_token: Option<String>,
}

#[derive(Deserialize)]
struct Descriptions {
    #[serde(default)]
    tasks: Vec<Description>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Description {
    task_arn: String,
    #[serde(default)]
    started_by: String,
}

/// The tasks that the stack's cluster runs for any server, also of other stacks; why they cannot be read, in
/// words. `None` where Muster starts none.
pub(crate) async fn running(target: &Target) -> Option<Result<Vec<Task>, String>> {
    // Who cannot describe the stack has no deployment either.
    let stack = target.described().await.ok()?;
    let cluster = stack.parameter("EcsClusterArn")?;
    Some(tasks_in(cluster, &stack).await)
}

async fn tasks_in(cluster: &str, stack: &Described) -> Result<Vec<Task>, String> {
    let ecs = Ecs::of(stack).await?;
    let (mut tasks, mut token) = (Vec::new(), None::<String>);
    loop {
        let mut request = json!({ "cluster": cluster, "desiredStatus": "RUNNING", "maxResults": PAGE });
        if let (Some(token), Some(fields)) = (token, request.as_object_mut()) {
            fields.insert("nextToken".to_owned(), token.into());
        }
        let Listed { task_arns, next_token } = ecs.call("ListTasks", &request).await?;
        if !task_arns.is_empty() {
            let request = json!({ "cluster": cluster, "tasks": task_arns });
            let described: Descriptions = ecs.call("DescribeTasks", &request).await?;
            tasks.extend(described.tasks.into_iter().filter_map(|Description { task_arn, started_by }| {
                Some(Task { arn: task_arn, server: server_of_task(&started_by)? })
            }));
        }
        token = next_token;
        if token.is_none() {
            return Ok(tasks);
        }
    }
}

/// Amazon ECS in a stack's region.
struct Ecs {
    api: AwsApi,
    endpoint: String,
}

impl Ecs {
    async fn of(Described { config, .. }: &Described) -> Result<Self, String> {
        let provider = config.credentials_provider().ok_or("there are no credentials")?;
        let credentials = provider.provide_credentials().await.map_err(|error| error.to_string())?;
        let region = config.region().ok_or("there is no region: give --aws-region")?.as_ref();
        let endpoint = config.endpoint_url().map_or_else(|| endpoint(ECS.name, region), ToOwned::to_owned);
        let connector = SharedHttpConnector::new(Connector::builder().tls_provider(CRYPTOGRAPHY).build());
        Ok(Self { api: AwsApi::new(region.to_owned(), credentials, connector, Ambient::system()), endpoint })
    }

    async fn call<T: DeserializeOwned>(&self, operation: &str, request: &Value) -> Result<T, String> {
        let answer = self.api.call((&ECS, operation), &self.endpoint, request, TIMEOUT).await;
        answer.map_err(|error| error.to_string())
    }
}
