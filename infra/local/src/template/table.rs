//! DynamoDB tables of the template.

use super::error::{Problem, TemplateError};
use super::node::Node;

/// A DynamoDB table, without billing, backups and protection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Logical id, which is also the table's name locally.
    pub logical_id: String,
    /// Key attributes, with their types.
    pub attributes: Vec<(String, AttributeType)>,
    /// Primary key.
    pub key: Key,
    /// Global secondary indexes.
    pub indexes: Vec<Index>,
    /// Attribute that holds an item's expiry, when items expire.
    pub ttl_attribute: Option<String>,
}

/// Type of a key attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttributeType {
    /// `S`
    Text,
    /// `N`
    Number,
    /// `B`
    Binary,
}

/// Key of a table or index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// Attribute of the partition key (`HASH`).
    pub partition: String,
    /// Attribute of the sort key (`RANGE`).
    pub sort: Option<String>,
}

/// A global secondary index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Index {
    /// Name of the index.
    pub name: String,
    /// Key of the index.
    pub key: Key,
    /// Attributes of the index in addition to the keys.
    pub projection: Projection,
}

/// Attributes of an index in addition to the keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Projection {
    /// All of them.
    All,
    /// None.
    KeysOnly,
    /// These.
    Include(Vec<String>),
}

impl Table {
    pub(super) fn read(resource: &Node<'_>) -> Result<Self, TemplateError> {
        let properties = resource.get("Properties")?;
        if properties.find("LocalSecondaryIndexes")?.is_some() {
            return Err(properties.property("LocalSecondaryIndexes").unsupported("a local index"));
        }
        let mut attributes = Vec::new();
        for attribute in properties.get("AttributeDefinitions")?.items()? {
            let kind = attribute.get("AttributeType")?;
            let kind = match kind.text()? {
                "S" => AttributeType::Text,
                "N" => AttributeType::Number,
                "B" => AttributeType::Binary,
                other => return Err(kind.unsupported(other)),
            };
            attributes.push((attribute.get("AttributeName")?.text()?.to_owned(), kind));
        }
        let mut indexes = Vec::new();
        if let Some(list) = properties.find("GlobalSecondaryIndexes")? {
            for index in list.items()? {
                indexes.push(Index {
                    name: index.get("IndexName")?.text()?.to_owned(),
                    key: key(&index)?,
                    projection: projection(&index.get("Projection")?)?,
                });
            }
        }
        let ttl_attribute = match properties.find("TimeToLiveSpecification")? {
            Some(ttl) if ttl.get("Enabled")?.flag()? => Some(ttl.get("AttributeName")?.text()?.to_owned()),
            _ => None,
        };
        Ok(Self {
            logical_id: resource.resource.to_owned(),
            attributes,
            key: key(&properties)?,
            indexes,
            ttl_attribute,
        })
    }
}

fn key(owner: &Node<'_>) -> Result<Key, TemplateError> {
    let schema = owner.get("KeySchema")?;
    let (mut partition, mut sort) = (None, None);
    for element in schema.items()? {
        let name = element.get("AttributeName")?.text()?.to_owned();
        let kind = element.get("KeyType")?;
        let place = match kind.text()? {
            "HASH" => &mut partition,
            "RANGE" => &mut sort,
            other => return Err(kind.unsupported(other)),
        };
        if place.replace(name).is_some() {
            return Err(kind.unsupported("a second attribute of its kind"));
        }
    }
    let partition =
        partition.ok_or_else(|| schema.error(Problem::Not("a key with a partition attribute")))?;
    Ok(Key { partition, sort })
}

fn projection(node: &Node<'_>) -> Result<Projection, TemplateError> {
    let kind = node.get("ProjectionType")?;
    match kind.text()? {
        "ALL" => Ok(Projection::All),
        "KEYS_ONLY" => Ok(Projection::KeysOnly),
        "INCLUDE" => node.get("NonKeyAttributes")?.texts().map(Projection::Include),
        other => Err(kind.unsupported(other)),
    }
}
