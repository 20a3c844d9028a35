//! Tables of the template in the emulator's terms.

use dynoxide::actions::create_table::CreateTableRequest;
use dynoxide::actions::describe_table::DescribeTableRequest;
use dynoxide::actions::describe_time_to_live::DescribeTimeToLiveRequest;
use dynoxide::actions::update_time_to_live::{TimeToLiveSpecification, UpdateTimeToLiveRequest};
use dynoxide::types::{
    AttributeDefinition, GlobalSecondaryIndex, KeySchemaElement, KeyType, ProjectionType, ScalarAttributeType,
};
use dynoxide::{Database, DynoxideError};

use super::error::EmulatorError;
use crate::template::{AttributeType, Index, Key, Projection, Table};

/// The part of a table that no upgrade changes.
pub(super) const KEY: &str = "key";

/// Creates `table`, or checks that the one of its name has the same shape.
pub(super) fn ensure(database: &Database, table: &Table) -> Result<(), EmulatorError> {
    let refused = |source| EmulatorError::Table { table: table.logical_id.clone(), source };
    let differs = |part| EmulatorError::TableDiffers { table: table.logical_id.clone(), part };
    let table_name = || table.logical_id.clone();

    let wanted = creation(table);
    match database.describe_table(DescribeTableRequest { table_name: table_name() }) {
        Err(DynoxideError::ResourceNotFoundException(_)) => {
            database.create_table(wanted).map_err(refused)?;
        }
        Err(error) => return Err(refused(error)),
        Ok(found) => {
            let found = found.table;
            let found_indexes = found.global_secondary_indexes.unwrap_or_default();
            let found_indexes = found_indexes.into_iter().map(|index| GlobalSecondaryIndex {
                index_name: index.index_name,
                key_schema: index.key_schema,
                projection: index.projection,
                provisioned_throughput: None,
            });
            if found.key_schema != wanted.key_schema {
                return Err(differs(KEY));
            }
            if sorted_attributes(found.attribute_definitions)
                != sorted_attributes(wanted.attribute_definitions)
            {
                return Err(differs("attribute types"));
            }
            let wanted_indexes = wanted.global_secondary_indexes.unwrap_or_default();
            if sorted_indexes(found_indexes.collect()) != sorted_indexes(wanted_indexes) {
                return Err(differs("indexes"));
            }
        }
    }

    let found = database
        .describe_time_to_live(DescribeTimeToLiveRequest { table_name: table_name() })
        .map_err(refused)?
        .time_to_live_description
        .attribute_name;
    match (found, &table.ttl_attribute) {
        (found, wanted) if found == *wanted => Ok(()),
        (None, Some(attribute)) => {
            let request = UpdateTimeToLiveRequest {
                table_name: table_name(),
                time_to_live_specification: TimeToLiveSpecification {
                    attribute_name: attribute.clone(),
                    enabled: true,
                },
            };
            database.update_time_to_live(request).map(drop).map_err(refused)
        }
        _ => Err(differs("time to live")),
    }
}

fn creation(table: &Table) -> CreateTableRequest {
    let attribute = |(name, kind): &(String, AttributeType)| AttributeDefinition {
        attribute_name: name.clone(),
        attribute_type: match kind {
            AttributeType::Text => ScalarAttributeType::S,
            AttributeType::Number => ScalarAttributeType::N,
            AttributeType::Binary => ScalarAttributeType::B,
        },
    };
    let indexes: Vec<_> = table.indexes.iter().map(index_creation).collect();
    CreateTableRequest {
        table_name: table.logical_id.clone(),
        key_schema: key_schema(&table.key),
        attribute_definitions: table.attributes.iter().map(attribute).collect(),
        global_secondary_indexes: (!indexes.is_empty()).then_some(indexes),
        billing_mode: Some("PAY_PER_REQUEST".to_owned()),
        ..CreateTableRequest::default()
    }
}

fn index_creation(index: &Index) -> GlobalSecondaryIndex {
    let (projection_type, non_key_attributes) = match &index.projection {
        Projection::All => (ProjectionType::ALL, None),
        Projection::KeysOnly => (ProjectionType::KEYS_ONLY, None),
        Projection::Include(attributes) => (ProjectionType::INCLUDE, Some(attributes.clone())),
    };
    GlobalSecondaryIndex {
        index_name: index.name.clone(),
        key_schema: key_schema(&index.key),
        projection: dynoxide::types::Projection {
            projection_type: Some(projection_type),
            non_key_attributes,
        },
        provisioned_throughput: None,
    }
}

fn key_schema(key: &Key) -> Vec<KeySchemaElement> {
    let element = |name: &String, key_type| KeySchemaElement { attribute_name: name.clone(), key_type };
    let partition = element(&key.partition, KeyType::HASH);
    let sort = key.sort.as_ref().map(|name| element(name, KeyType::RANGE));
    std::iter::once(partition).chain(sort).collect()
}

fn sorted_attributes(mut attributes: Vec<AttributeDefinition>) -> Vec<AttributeDefinition> {
    attributes.sort_by(|left, right| left.attribute_name.cmp(&right.attribute_name));
    attributes
}

fn sorted_indexes(mut indexes: Vec<GlobalSecondaryIndex>) -> Vec<GlobalSecondaryIndex> {
    indexes.sort_by(|left, right| left.index_name.cmp(&right.index_name));
    for index in &mut indexes {
        if let Some(attributes) = &mut index.projection.non_key_attributes {
            attributes.sort();
        }
    }
    indexes
}
