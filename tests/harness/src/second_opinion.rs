//! Another implementation of DynamoDB behind the stack, which its tests then use instead of the embedded one.
//!
//! It is found at the URL in [`URL_VARIABLE`], where each access key has a database of its own, as Amazon's
//! DynamoDB Local has it.

use std::{
    convert::Infallible,
    env,
    net::Ipv4Addr,
    sync::{Arc, LazyLock},
};

use aws_sdk_dynamodb::{
    Client,
    types::{
        AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType, ProjectionType,
        ScalarAttributeType,
    },
};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::{
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::{TokioExecutor, TokioIo},
};
use muster_local::{
    emulator::{
        Emulator,
        in_process::WireAnswer,
        link::{Broken, Call, Carried, Link, patient_client_over},
    },
    stack::TEMPLATE,
    template::{AttributeType, Index, Key, Projection, Table, Template},
};
use shared::base::ambient::Ambient;
use tokio::{
    net::TcpListener,
    runtime::{Builder, Runtime},
};

/// The variable with the other implementation's URL.
pub const URL_VARIABLE: &str = "MUSTER_TEST_DYNAMODB";

/// Tests come and go with runtimes of their own; connections outlive them here.
static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_multi_thread().enable_all().build().expect("threads"));

/// An empty database at the other implementation, if tests use one.
pub(crate) async fn fresh() -> Option<Emulator> {
    let url = env::var(URL_VARIABLE).ok()?;
    // DynamoDB Local takes letters and digits for an access key.
    let key = Ambient::system().uuid().simple().to_string();
    let link = Arc::new(OneDatabase {
        url,
        authorization: format!(
            "AWS4-HMAC-SHA256 Credential={key}/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=none"
        ),
        client: legacy::Client::builder(TokioExecutor::new()).build_http(),
    });
    let tables = Template::parse(TEMPLATE).expect("a template").tables;
    let creator = patient_client_over(Arc::clone(&link) as Arc<dyn Link>);
    for table in tables {
        create(&creator, table).await;
    }
    let endpoint = RUNTIME.spawn(serve(Arc::clone(&link))).await.expect("no panic");
    Some(Emulator::elsewhere(endpoint, link))
}

/// The way to one of its databases.
#[derive(Clone, Debug)]
struct OneDatabase {
    url: String,
    /// It checks no signature.
    authorization: String,
    client: legacy::Client<HttpConnector, Full<Bytes>>,
}

impl OneDatabase {
    async fn ask(&self, operation: &str, body: Bytes) -> Result<WireAnswer, Broken> {
        let request = Request::post(&self.url)
            .header("content-type", "application/x-amz-json-1.0")
            .header("x-amz-target", format!("DynamoDB_20120810.{operation}"))
            .header("x-amz-date", "20260101T000000Z")
            .header("authorization", &self.authorization)
            .body(Full::new(body))
            .map_err(|_| Broken)?;
        let answer = self.client.request(request).await.map_err(|_| Broken)?;
        let status = answer.status().as_u16();
        let body = answer.into_body().collect().await.map_err(|_| Broken)?.to_bytes();
        Ok(WireAnswer { status, body: String::from_utf8_lossy(&body).into_owned() })
    }
}

impl Link for OneDatabase {
    fn carry(&self, call: Call) -> Carried {
        let database = self.clone();
        let response = RUNTIME.spawn(async move { database.ask(&call.operation, call.body.into()).await });
        Box::pin(async move { response.await.unwrap_or(Err(Broken)) })
    }
}

/// Serves the database on its own port to clients that use HTTP, and returns its address.
async fn serve(database: Arc<OneDatabase>) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let database = Arc::clone(&database);
            let answer = service_fn(move |request: Request<Incoming>| {
                let database = Arc::clone(&database);
                async move { Ok::<_, Infallible>(answer(&database, request).await) }
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), answer));
        }
    });
    format!("http://{address}")
}

async fn answer(database: &OneDatabase, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let target = request.headers().get("x-amz-target").and_then(|target| target.to_str().ok());
    let operation = target.unwrap_or_default().rsplit('.').next().unwrap_or_default().to_owned();
    let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let answer = database.ask(&operation, body).await;
    let WireAnswer { status, body } = answer.unwrap_or(WireAnswer { status: 500, body: String::new() });
    let response = Response::builder().status(status).header("content-type", "application/x-amz-json-1.0");
    response.body(Full::new(body.into())).expect("a response")
}

async fn create(client: &Client, table: Table) {
    let attributes = table.attributes.into_iter().map(|(name, of)| {
        let kind = match of {
            AttributeType::Text => ScalarAttributeType::S,
            AttributeType::Number => ScalarAttributeType::N,
            AttributeType::Binary => ScalarAttributeType::B,
        };
        AttributeDefinition::builder().attribute_name(name).attribute_type(kind).build().expect("whole")
    });
    let indexes: Vec<_> = table.indexes.into_iter().map(index).collect();
    let creation = client
        .create_table()
        .table_name(&table.logical_id)
        .set_attribute_definitions(Some(attributes.collect()))
        .set_key_schema(Some(schema(&table.key)))
        .set_global_secondary_indexes((!indexes.is_empty()).then_some(indexes))
        .billing_mode(BillingMode::PayPerRequest);
    creation.send().await.unwrap_or_else(|error| panic!("{}: {error:?}", table.logical_id));
}

fn index(Index { name, key, projection }: Index) -> GlobalSecondaryIndex {
    let projected = aws_sdk_dynamodb::types::Projection::builder();
    let projected = match projection {
        Projection::All => projected.projection_type(ProjectionType::All),
        Projection::KeysOnly => projected.projection_type(ProjectionType::KeysOnly),
        Projection::Include(names) => {
            projected.projection_type(ProjectionType::Include).set_non_key_attributes(Some(names))
        }
    };
    let index = GlobalSecondaryIndex::builder().index_name(name).projection(projected.build());
    index.set_key_schema(Some(schema(&key))).build().expect("whole")
}

fn schema(key: &Key) -> Vec<KeySchemaElement> {
    let element = |name: &String, kind| {
        KeySchemaElement::builder().attribute_name(name).key_type(kind).build().expect("whole")
    };
    let sort = key.sort.iter().map(|name| element(name, KeyType::Range));
    std::iter::once(element(&key.partition, KeyType::Hash)).chain(sort).collect()
}
