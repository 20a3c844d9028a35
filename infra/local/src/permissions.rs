//! Each function has exactly the permissions here that the template gives it in AWS, so that every local run
//! and test shows a missing one.

use std::{
    collections::BTreeSet,
    env,
    fs::OpenOptions,
    io::{self, Write as _},
    path::PathBuf,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use aws_sdk_dynamodb::{
    Client,
    config::{
        ConfigBag, Intercept, RuntimeComponents, interceptors::BeforeSerializationInterceptorContextRef,
    },
    error::BoxError,
    operation::{
        batch_get_item::BatchGetItemInput, get_item::GetItemInput, put_item::PutItemInput, query::QueryInput,
        transact_write_items::TransactWriteItemsInput, update_item::UpdateItemInput,
    },
    types::TransactWriteItem,
};

use crate::template::Permissions;

/// `client` for the function `function`, restricted to `permissions`.
#[must_use]
pub fn restrict(client: &Client, function: &str, permissions: &Permissions) -> Client {
    let function = function.into();
    let rule = Restriction { function, permissions: permissions.clone() };
    Client::from_conf(client.config().to_builder().interceptor(rule).build())
}

#[derive(Debug)]
struct Restriction {
    function: Arc<str>,
    permissions: Permissions,
}

impl Intercept for Restriction {
    fn name(&self) -> &'static str {
        "permissions of the template"
    }

    fn read_before_serialization(
        &self,
        context: &BeforeSerializationInterceptorContextRef<'_>,
        _components: &RuntimeComponents,
        _config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let input = context.input();
        let needed = if let Some(input) = input.downcast_ref::<GetItemInput>() {
            vec![("GetItem", table(input.table_name()))]
        } else if let Some(input) = input.downcast_ref::<BatchGetItemInput>() {
            let tables = input.request_items().into_iter().flatten();
            tables.map(|(name, _)| ("BatchGetItem", name.clone())).collect()
        } else if let Some(input) = input.downcast_ref::<QueryInput>() {
            let index = input.index_name().map(|index| format!("/index/{index}")).unwrap_or_default();
            vec![("Query", table(input.table_name()) + &index)]
        } else if let Some(input) = input.downcast_ref::<PutItemInput>() {
            vec![("PutItem", table(input.table_name()))]
        } else if let Some(input) = input.downcast_ref::<UpdateItemInput>() {
            vec![("UpdateItem", table(input.table_name()))]
        } else if let Some(input) = input.downcast_ref::<TransactWriteItemsInput>() {
            input.transact_items().iter().flat_map(parts).collect()
        } else {
            return Err(
                format!("{} sends a call without a known permission: {input:?}", self.function).into()
            );
        };
        match needed.iter().find(|(action, resource)| !self.permissions.allow(action, resource)) {
            None => {
                for (action, resource) in &needed {
                    record(&self.function, action, resource)?;
                }
                Ok(())
            }
            Some((action, resource)) => {
                let problem =
                    format!("template.yaml does not allow {} {action} on {resource}", self.function);
                Err(problem.into())
            }
        }
    }
}

/// The environment variable with a file to which each needed permission is appended, as `function action
/// resource`, for the comparison with those that the template grants.
pub const RECORD_VARIABLE: &str = "MUSTER_PERMISSIONS_RECORD";

/// Appends a needed permission to the record, if there is one, once per process.
fn record(function: &str, action: &str, resource: &str) -> io::Result<()> {
    static RECORD: OnceLock<Option<(PathBuf, Mutex<BTreeSet<String>>)>> = OnceLock::new();
    let record = RECORD.get_or_init(|| Some((env::var_os(RECORD_VARIABLE)?.into(), Mutex::default())));
    let Some((path, known)) = record else { return Ok(()) };
    let line = format!("{function} {action} {resource}\n");
    let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
    if known.contains(&line) {
        return Ok(());
    }
    OpenOptions::new().create(true).append(true).open(path)?.write_all(line.as_bytes())?;
    known.insert(line);
    Ok(())
}

fn table(name: Option<&str>) -> String {
    name.unwrap_or_default().to_owned()
}

/// A part of a transaction needs the same permission as a single call.
fn parts(item: &TransactWriteItem) -> Vec<(&'static str, String)> {
    let check = item.condition_check().map(|check| ("ConditionCheckItem", check.table_name().to_owned()));
    let put = item.put().map(|put| ("PutItem", put.table_name().to_owned()));
    let update = item.update().map(|update| ("UpdateItem", update.table_name().to_owned()));
    let delete = item.delete().map(|delete| ("DeleteItem", delete.table_name().to_owned()));
    [check, put, update, delete].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use shared::store::client::emulator_client;

    use super::*;
    use crate::{stack::TEMPLATE, template::Template};

    #[tokio::test]
    async fn what_the_template_does_not_allow_is_refused_before_it_is_sent() {
        let template = Template::parse(TEMPLATE).unwrap();
        let permissions = &template.functions["functions/connect-player"].permissions;
        assert!(permissions.allow("UpdateItem", "LobbiesTable"));
        assert!(!permissions.allow("UpdateItem", "CatalogTable"));
        // Nothing listens on the discard port.
        let client = restrict(&emulator_client("http://127.0.0.1:9"), "connect-player", permissions);
        let error = client.update_item().table_name("CatalogTable").send().await.unwrap_err();
        let mut text = String::new();
        let mut source: Option<&dyn std::error::Error> = Some(&error);
        while let Some(error) = source {
            text += &error.to_string();
            source = error.source();
        }
        let problem = "template.yaml does not allow connect-player UpdateItem on CatalogTable";
        assert!(text.contains(problem), "{text}");
    }
}
