use std::{env, fs};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use uuid::Uuid;

use super::*;
use crate::template::{AttributeType, Index, Key, Projection};

/// A folder of one test, removed with its contents at the end.
struct TestFolder(PathBuf);

impl TestFolder {
    fn new() -> Self {
        Self(env::temp_dir().join(format!("muster-{}", Uuid::new_v4())))
    }

    fn storage(&self) -> Storage {
        Storage::Folder(self.0.clone())
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn lobbies() -> Table {
    Table {
        logical_id: "LobbiesTable".to_owned(),
        attributes: vec![
            ("sk".to_owned(), AttributeType::Text),
            ("pk".to_owned(), AttributeType::Text),
            ("free".to_owned(), AttributeType::Number),
        ],
        key: Key { partition: "pk".to_owned(), sort: Some("sk".to_owned()) },
        indexes: vec![Index {
            name: "by-free".to_owned(),
            key: Key { partition: "pk".to_owned(), sort: Some("free".to_owned()) },
            projection: Projection::Include(vec!["region".to_owned(), "mode".to_owned()]),
        }],
        ttl_attribute: Some("expires_at".to_owned()),
    }
}

async fn call(emulator: &Emulator, operation: &str, request: Value) -> Value {
    let (key, address) = emulator.endpoint.strip_prefix("http://").unwrap().split_once('@').unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = request.to_string();
    let text = format!(
        "POST / HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/x-amz-json-1.0\r\n\
         content-length: {}\r\nx-amz-target: DynamoDB_20120810.{operation}\r\nx-amz-date: 20260101T000000Z\r\n\
         authorization: AWS4-HMAC-SHA256 Credential={key}/20260101/us-east-1/dynamodb/aws4_request, \
         SignedHeaders=host, Signature=none\r\n\r\n{request}",
        request.len()
    );
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{operation}: {answer}");
    serde_json::from_str(body).unwrap()
}

#[tokio::test]
async fn what_expired_is_deleted_and_nothing_else() {
    let emulator = Emulator::start(&Storage::Memory, &[lobbies()]).unwrap();
    let key = |sort: &str| json!({ "pk": { "S": "p" }, "sk": { "S": sort } });
    for (sort, expiry) in
        [("a long time ago", Some("1")), ("in centuries", Some("9999999999")), ("never", None)]
    {
        let mut item = key(sort);
        if let Some(expiry) = expiry {
            item["expires_at"] = json!({ "N": expiry });
        }
        call(&emulator, "PutItem", json!({ "TableName": "LobbiesTable", "Item": item })).await;
    }
    emulator.sweep_every(Duration::from_millis(1));
    let mut left = 3;
    // Without sweeps it never ends.
    while left == 3 {
        let found = call(&emulator, "Scan", json!({ "TableName": "LobbiesTable" })).await;
        left = found["Items"].as_array().unwrap().len();
    }
    for (sort, is_left) in [("a long time ago", false), ("in centuries", true), ("never", true)] {
        let found =
            call(&emulator, "GetItem", json!({ "TableName": "LobbiesTable", "Key": key(sort) })).await;
        assert_eq!(found.get("Item").is_some(), is_left, "{sort}");
    }
    emulator.shutdown().await.unwrap();
}

#[tokio::test]
async fn the_link_leads_to_the_same_items_as_the_port_and_breaks_when_the_emulator_stops() {
    let emulator = Emulator::start(&Storage::Memory, &[lobbies()]).unwrap();
    let item = json!({ "pk": { "S": "p" }, "sk": { "S": "s" }, "free": { "N": "2" } });
    call(&emulator, "PutItem", json!({ "TableName": "LobbiesTable", "Item": item })).await;
    let link = Arc::clone(&emulator.link);
    let read = || {
        let key = json!({ "pk": item["pk"], "sk": item["sk"] });
        let body = json!({ "TableName": "LobbiesTable", "Key": key }).to_string().into_bytes();
        link.carry(Call { operation: "GetItem".to_owned(), body })
    };
    let answer = read().await.unwrap();
    assert_eq!(answer.status, 200);
    assert_eq!(serde_json::from_str::<Value>(&answer.body).unwrap()["Item"], item);
    emulator.shutdown().await.unwrap();
    assert_eq!(read().await, Err(Broken));
}

/// The message of the refusal of a request on `lobbies`, if it is refused.
async fn refusal(emulator: &Emulator, operation: &str, request: Value) -> Option<String> {
    let call = Call { operation: operation.to_owned(), body: request.to_string().into_bytes() };
    let answer = emulator.link.carry(call).await.unwrap();
    let body: Value = serde_json::from_str(&answer.body).unwrap();
    if body["__type"].as_str()?.ends_with("#ConditionalCheckFailedException") {
        return None;
    }
    assert_eq!(body["__type"], "com.amazon.coral.validate#ValidationException", "{body}");
    let message = body.get("message").or_else(|| body.get("Message"));
    Some(message.unwrap().as_str().unwrap().to_owned())
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a table")]
async fn the_link_refuses_what_dynamodb_refuses() {
    let emulator = Emulator::start(&Storage::Memory, &[lobbies()]).unwrap();
    let text = |text: &str| json!({ "S": text });
    let key = json!({ "pk": text("p"), "sk": text("s") });
    let item = |more: Value| {
        let mut item = key.clone();
        item.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "TableName": "LobbiesTable", "Item": item })
    };
    let query = |condition: &str| {
        json!({ "TableName": "LobbiesTable", "KeyConditionExpression": condition,
                "ExpressionAttributeValues": { ":p": text("p"), ":empty": text("") } })
    };
    let update = |change: &str, condition: &str| {
        json!({ "TableName": "LobbiesTable", "Key": key, "UpdateExpression": change, "ConditionExpression": condition,
                "ExpressionAttributeValues": { ":v": { "N": "1" } } })
    };
    let comparisons = |count: usize| vec!["a.b = :v"; count].join(" AND ");
    let one_of = |count: usize| format!("a IN ({})", vec![":v"; count].join(","));
    let additions = |count: usize| {
        let change = |n: usize| format!("a{n}=:v+:v");
        format!("SET {}", (0..count).map(change).collect::<Vec<_>>().join(","))
    };
    let put = |n: usize| json!({ "Put": { "TableName": "LobbiesTable", "Item": { "pk": text(&format!("p{n}")), "sk": text("s") } } });
    let together = |parts: Vec<Value>| json!({ "TransactItems": parts });
    let checked = |condition: &str| {
        let check = json!({ "TableName": "LobbiesTable", "Key": key, "ConditionExpression": condition,
                            "ExpressionAttributeValues": { ":v": { "N": "1" } } });
        together(vec![json!({ "ConditionCheck": check }), put(1)])
    };

    let (few, many) = ("too many operators; operator count: 301", "too many operators; operator count: 303");
    let empty = "cannot contain an empty string value";
    let long = "Expression size has exceeded the maximum allowed size";
    for (operation, request, refused) in [
        ("Query", query("pk = :p AND begins_with(sk, :empty)"), empty),
        ("Query", query("pk = :p AND sk = :empty"), empty),
        ("Query", query("pk = :p AND sk BETWEEN :empty AND :p"), empty),
        ("Query", query("pk = :empty"), empty),
        ("PutItem", item(json!({ "sk": text("") })), empty),
        (
            "GetItem",
            json!({ "TableName": "LobbiesTable", "Key": { "pk": text("p"), "sk": text("") } }),
            empty,
        ),
        ("UpdateItem", update("SET a = :v", &comparisons(151)), few),
        ("UpdateItem", update(&additions(301), "a = :v"), few),
        ("TransactWriteItems", checked(&comparisons(152)), many),
        ("UpdateItem", update("SET a = :v", &one_of(101)), "too many operands; number of operands: 101"),
        ("UpdateItem", update("SET a = :v", &format!("a = :v{}", " ".repeat(4_091))), long),
        (
            "PutItem",
            item(json!({ "a": text(&"x".repeat(400 * 1_024)) })),
            "Item size has exceeded the maximum allowed size",
        ),
        ("TransactWriteItems", together((0..101).map(put).collect()), "less than or equal to 100"),
    ] {
        let message = refusal(&emulator, operation, request).await;
        assert!(message.as_ref().is_some_and(|message| message.contains(refused)), "{refused}: {message:?}");
    }
    for (operation, request) in [
        ("UpdateItem", update("SET a = :v", &comparisons(150))),
        ("UpdateItem", update(&additions(300), "attribute_not_exists(a)")),
        ("TransactWriteItems", checked("attribute_not_exists(a) OR a > :v")),
        ("UpdateItem", update("SET a = :v", &one_of(100))),
        ("UpdateItem", update("SET a = :v", &format!("a = :v{}", " ".repeat(4_090)))),
        ("PutItem", item(json!({ "a": text(&"x".repeat(400 * 1_024 - 7)) }))),
        ("TransactWriteItems", together((0..100).map(put).collect())),
    ] {
        assert_eq!(refusal(&emulator, operation, request.clone()).await, None, "{operation}");
    }
    emulator.shutdown().await.unwrap();
}

#[tokio::test]
async fn the_tables_of_the_template_exist() {
    let emulator = Emulator::start(&Storage::Memory, &[lobbies()]).unwrap();
    let name = json!({ "TableName": "LobbiesTable" });
    let table = call(&emulator, "DescribeTable", name.clone()).await;
    assert_eq!(table["Table"]["TableStatus"], "ACTIVE");
    assert_eq!(table["Table"]["BillingModeSummary"]["BillingMode"], "PAY_PER_REQUEST");
    assert_eq!(
        table["Table"]["KeySchema"],
        json!([{ "AttributeName": "pk", "KeyType": "HASH" }, { "AttributeName": "sk", "KeyType": "RANGE" }])
    );
    let index = &table["Table"]["GlobalSecondaryIndexes"][0];
    assert_eq!(index["IndexName"], "by-free");
    assert_eq!(index["Projection"]["ProjectionType"], "INCLUDE");
    let ttl = call(&emulator, "DescribeTimeToLive", name).await;
    assert_eq!(
        ttl["TimeToLiveDescription"],
        json!({ "TimeToLiveStatus": "ENABLED", "AttributeName": "expires_at" })
    );
    emulator.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_folder_keeps_its_items_and_is_free_after_shutdown() {
    let folder = TestFolder::new();
    let item = json!({ "pk": { "S": "a" }, "sk": { "S": "b" } });
    let emulator = Emulator::start(&folder.storage(), &[lobbies()]).unwrap();
    call(&emulator, "PutItem", json!({ "TableName": "LobbiesTable", "Item": item })).await;
    emulator.shutdown().await.unwrap();
    // SQLite removes its log when the last connection has written everything to the database and closed.
    assert!(!folder.0.join("muster.db-wal").exists());

    let emulator = Emulator::start(&folder.storage(), &[lobbies()]).unwrap();
    let found = call(&emulator, "GetItem", json!({ "TableName": "LobbiesTable", "Key": item })).await;
    assert_eq!(found["Item"], item);
    emulator.shutdown().await.unwrap();
}

#[tokio::test]
async fn an_open_connection_does_not_hold_up_shutdown() {
    let folder = TestFolder::new();
    let emulator = Emulator::start(&folder.storage(), &[lobbies()]).unwrap();
    let address = emulator.url.strip_prefix("http://").unwrap();
    let mut kept_alive = TcpStream::connect(address).await.unwrap();
    kept_alive.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    kept_alive.read_u8().await.unwrap();
    emulator.shutdown().await.unwrap();
    assert!(!folder.0.join("muster.db-wal").exists());
}

#[tokio::test]
async fn a_folder_serves_one_stack_at_a_time() {
    let folder = TestFolder::new();
    let first = Emulator::start(&folder.storage(), &[]).unwrap();
    let second = Emulator::start(&folder.storage(), &[]).unwrap_err();
    assert!(matches!(&second, EmulatorError::FolderInUse(at) if *at == folder.0), "{second}");
    first.shutdown().await.unwrap();
    Emulator::start(&folder.storage(), &[]).unwrap().shutdown().await.unwrap();
}

#[tokio::test]
async fn a_table_of_another_shape_is_named() {
    let folder = TestFolder::new();
    Emulator::start(&folder.storage(), &[lobbies()]).unwrap().shutdown().await.unwrap();

    let mut same = lobbies();
    same.attributes.reverse();
    same.indexes[0].projection = Projection::Include(vec!["mode".to_owned(), "region".to_owned()]);
    Emulator::start(&folder.storage(), &[same]).unwrap().shutdown().await.unwrap();

    let (mut key, mut attributes, mut indexes, mut ttl) = (lobbies(), lobbies(), lobbies(), lobbies());
    key.key.sort = None;
    attributes.attributes[0].1 = AttributeType::Binary;
    indexes.indexes[0].projection = Projection::All;
    ttl.ttl_attribute = Some("gone_at".to_owned());
    for (table, part) in
        [(key, "key"), (attributes, "attribute types"), (indexes, "indexes"), (ttl, "time to live")]
    {
        let error = Emulator::start(&folder.storage(), &[table]).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "table LobbiesTable in the data folder differs from the template in its {part}; choose another folder"
            )
        );
    }
}

#[test]
fn a_folder_that_cannot_be_used_is_refused() {
    let folder = TestFolder::new();
    fs::create_dir(&folder.0).unwrap();
    let file = folder.0.join("file");
    fs::write(&file, "").unwrap();
    let start = |path: PathBuf| Emulator::start(&Storage::Folder(path), &[]).unwrap_err();
    assert!(matches!(start(file.clone()), EmulatorError::NotAFolder(at) if at == file));
    assert!(matches!(start(file.join("below")), EmulatorError::Folder { .. }));

    let path = folder.0.join(DATABASE_FILE);
    fs::write(&path, "no database, but long enough to be read as one".repeat(100)).unwrap();
    assert_eq!(
        start(folder.0.clone()).to_string(),
        format!(
            "the database {} cannot be read: it is no database; if it is damaged, restore the folder from a copy or \
             choose another folder",
            path.display()
        )
    );
}

#[test]
fn a_table_that_dynamodb_refuses_is_named() {
    let mut table = lobbies();
    table.attributes.pop();
    let error = Emulator::start(&Storage::Memory, &[table]).unwrap_err();
    assert!(matches!(&error, EmulatorError::Table { table, .. } if table == "LobbiesTable"), "{error}");
}

#[tokio::test]
async fn a_durable_folder_gets_the_indexes_of_a_later_release_with_all_its_items() {
    let folder = TestFolder::new();
    let storage = Storage::Durable(folder.0.clone());
    let attribute = |name: &str| name.to_owned();
    let before = Table {
        attributes: vec![(attribute("sk"), AttributeType::Text), (attribute("pk"), AttributeType::Text)],
        indexes: Vec::new(),
        ..lobbies()
    };
    let gone = Table { logical_id: "GoneTable".to_owned(), ..lobbies() };
    let emulator = Emulator::start(&storage, &[before, gone]).unwrap();
    // More than a page of a scan, which ends at a megabyte.
    let filler = "x".repeat(100_000);
    for number in 0..30 {
        let item = json!({ "pk": { "S": "p" }, "sk": { "S": number.to_string() },
                           "free": { "N": number.to_string() }, "filler": { "S": filler } });
        call(&emulator, "PutItem", json!({ "TableName": "LobbiesTable", "Item": item })).await;
    }
    emulator.shutdown().await.unwrap();
    // What an upgrade that was killed left behind.
    fs::write(folder.0.join("muster.db.new"), "half").unwrap();

    let emulator = Emulator::start(&storage, &[lobbies()]).unwrap();
    let query = json!({ "TableName": "LobbiesTable", "IndexName": "by-free", "Select": "COUNT",
                        "KeyConditionExpression": "pk = :p AND #free > :n",
                        "ExpressionAttributeNames": { "#free": "free" },
                        "ExpressionAttributeValues": { ":p": { "S": "p" }, ":n": { "N": "19" } } });
    assert_eq!(call(&emulator, "Query", query).await["Count"], 10);
    emulator.shutdown().await.unwrap();
    assert!(folder.0.join(upgrade::BEFORE_FILE).is_file() && !folder.0.join("muster.db.new").exists());

    // A local run changes nothing of what it finds.
    let plain = Table { indexes: Vec::new(), ..lobbies() };
    let refused = Emulator::start(&folder.storage(), &[plain]).unwrap_err();
    assert!(matches!(refused, EmulatorError::TableDiffers { .. }), "{refused}");
    let rekeyed = Table { key: Key { partition: "pk".to_owned(), sort: None }, ..lobbies() };
    let refused = Emulator::start(&storage, &[rekeyed]).unwrap_err();
    assert!(matches!(refused, EmulatorError::TableDiffers { part: "key", .. }), "{refused}");
}
