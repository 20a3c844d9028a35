//! The parts of the SAM template that the local stack reads: routes, tables, cross-origin rules, permissions
//! and time limits.
//!
//! It ignores the rest. The parts that it reads must be written out, because only CloudFormation knows the
//! values of its functions (`!Ref`, `!Sub`, `!If`).

use std::{collections::BTreeMap, time::Duration};

use http::{HeaderName, HeaderValue, Method};
use saphyr::{LoadableYamlNode, Yaml};

use crate::cors::Cors;
use crate::route::{Route, RoutePath};

pub mod error;
mod node;
mod permissions;
mod table;

use error::{Problem, TemplateError};
use node::Node;
pub use permissions::Permissions;
pub use table::{AttributeType, Index, Key, Projection, Table};

/// The part of the SAM template that the local stack runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// Routes of every function, in the order of the template.
    pub routes: Vec<Route>,
    /// DynamoDB tables, in the order of the template.
    pub tables: Vec<Table>,
    /// Cross-origin rules of the HTTP API.
    pub cors: Cors,
    /// The functions, with a route or without, by their code's folder.
    pub functions: BTreeMap<String, FunctionProperties>,
}

/// A function's properties in the template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionProperties {
    /// Its permissions on the tables.
    pub permissions: Permissions,
    /// Its time limit.
    pub timeout: Duration,
}

/// A function's time limit without a `Timeout` in the template.
const USUAL_TIMEOUT: Duration = Duration::from_secs(3);

impl Template {
    /// Parses the text of a SAM template.
    ///
    /// # Errors
    ///
    /// [`TemplateError::Syntax`] and [`TemplateError::NoResources`] for text that is not a template, and
    /// [`TemplateError::Property`] for the first property that the local stack needs and cannot use.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let documents = Yaml::load_from_str(text)?;
        let section = |name: &str| documents.first().and_then(|document| document.as_mapping_get(name));
        let resources = section("Resources").and_then(Yaml::as_mapping).ok_or(TemplateError::NoResources)?;
        let shared_timeout = match section("Globals") {
            Some(yaml) => {
                let globals = Node { resource: "Globals", property: String::new(), yaml };
                globals.find("Function")?.map(|function| timeout(&function)).transpose()?.flatten()
            }
            None => None,
        };

        let mut template = Self {
            routes: Vec::new(),
            tables: Vec::new(),
            cors: Cors::default(),
            functions: BTreeMap::new(),
        };
        let mut http_api: Option<&str> = None;
        for (id, resource) in resources {
            let (Some(id), Some(kind)) = (id.as_str(), resource.as_mapping_get("Type")) else {
                continue;
            };
            let root = Node { resource: id, property: String::new(), yaml: resource };
            match kind.as_str() {
                Some("AWS::Serverless::Function") => {
                    template.add_function(&root, shared_timeout.unwrap_or(USUAL_TIMEOUT))?;
                }
                Some("AWS::DynamoDB::Table") => template.tables.push(Table::read(&root)?),
                Some("AWS::Serverless::HttpApi") => {
                    if http_api.replace(id).is_some() {
                        return Err(root.property("Type").unsupported("a second HTTP API"));
                    }
                    template.cors = cors(&root)?;
                }
                _ => {}
            }
        }
        Ok(template)
    }

    fn add_function(&mut self, function: &Node<'_>, usual_timeout: Duration) -> Result<(), TemplateError> {
        let properties = function.get("Properties")?;
        let code_uri = properties.get("CodeUri")?;
        let own = FunctionProperties {
            permissions: Permissions::read(&properties)?,
            timeout: timeout(&properties)?.unwrap_or(usual_timeout),
        };
        self.functions.insert(code_uri.text()?.to_owned(), own);
        let Some(events) = properties.find("Events")? else {
            return Ok(());
        };
        for event in events.entries()? {
            if event.get("Type")?.text()? != "HttpApi" {
                continue;
            }
            let event = event.get("Properties")?;
            let method = event.get("Method")?;
            let path = event.get("Path")?;
            let route = Route {
                function: function.resource.to_owned(),
                code_uri: code_uri.text()?.to_owned(),
                method: match method.text()?.to_ascii_uppercase().as_str() {
                    any @ ("ANY" | "*" | "X-AMAZON-APIGATEWAY-ANY-METHOD") => {
                        return Err(method.unsupported(any));
                    }
                    name => Method::try_from(name).map_err(|_| method.unsupported(name))?,
                },
                path: path.text()?.parse::<RoutePath>().map_err(|error| path.error(error.into()))?,
            };
            let is_same = |other: &&Route| other.method == route.method && other.path.overlaps(&route.path);
            if let Some(other) = self.routes.iter().find(is_same) {
                return Err(path.error(Problem::Taken(format!("{} of {}", other.key(), other.function))));
            }
            self.routes.push(route);
        }
        Ok(())
    }
}

/// The time limit in a function's properties, or in those of all functions.
fn timeout(properties: &Node<'_>) -> Result<Option<Duration>, TemplateError> {
    properties
        .find("Timeout")?
        .map(|timeout| timeout.seconds())
        .transpose()
        .map(|seconds| seconds.map(|seconds| Duration::from_secs(seconds.into())))
}

fn cors(http_api: &Node<'_>) -> Result<Cors, TemplateError> {
    let Some(configuration) = http_api.get("Properties")?.find("CorsConfiguration")? else {
        return Ok(Cors::default());
    };
    if let Some(credentials) = configuration.find("AllowCredentials")?
        && credentials.flag()?
    {
        return Err(credentials.unsupported("true"));
    }
    let list = |name: &str, is_valid: fn(&str) -> bool| match configuration.find(name)? {
        None => Ok(Vec::new()),
        Some(list) => match list.texts()? {
            values if values.iter().all(|value| value == "*" || is_valid(value)) => Ok(values),
            values => Err(list.unsupported(&values.join(","))),
        },
    };
    let is_header = |value: &str| HeaderName::try_from(value).is_ok();
    Ok(Cors {
        allow_origins: list("AllowOrigins", |value| HeaderValue::try_from(value).is_ok())?,
        allow_headers: list("AllowHeaders", is_header)?,
        allow_methods: list("AllowMethods", |value| Method::try_from(value).is_ok())?,
        expose_headers: list("ExposeHeaders", is_header)?,
        max_age_seconds: configuration.find("MaxAge")?.map(|age| age.seconds()).transpose()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEMPLATE: &str = r#"
AWSTemplateFormatVersion: "2010-09-09"
Transform: AWS::Serverless-2016-10-31
Parameters:
  Stage: { Type: String, Default: prod }
Conditions:
  IsProd: !Equals [!Ref Stage, prod]
Resources:
  Api:
    Type: AWS::Serverless::HttpApi
    Properties:
      CorsConfiguration:
        AllowOrigins: ["*"]
        AllowHeaders: [authorization, "*"]
        AllowMethods: [GET, POST]
        ExposeHeaders: [x-request-id]
        MaxAge: 600
  FindLobby:
    Type: AWS::Serverless::Function
    Metadata: { BuildMethod: rust-cargolambda }
    Properties:
      CodeUri: functions/find-lobby
      Role: !If [IsProd, !GetAtt Role.Arn, !Ref AWS::NoValue]
      Environment:
        Variables: { TABLE: !Ref LobbiesTable, NAME: !Sub "${Stage}-x" }
      Events:
        Find:
          Type: HttpApi
          Properties: { ApiId: !Ref Api, Method: post, Path: /matchmaker/lobbies/find }
        Sweep:
          Type: Schedule
          Properties: { Schedule: rate(1 minute) }
  Sweeper:
    Type: AWS::Serverless::Function
    Properties: { CodeUri: functions/sweep }
  SetVersion:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: functions/update-namespace-version
      Events:
        Put:
          Type: HttpApi
          Properties: { Method: PUT, Path: "/games/{game_id}/version" }
  LobbiesTable:
    Type: AWS::DynamoDB::Table
    DeletionPolicy: Retain
    Properties:
      TableName: !Sub "${Stage}-lobbies"
      BillingMode: PAY_PER_REQUEST
      AttributeDefinitions:
        - { AttributeName: pk, AttributeType: S }
        - { AttributeName: sk, AttributeType: S }
        - { AttributeName: free, AttributeType: N }
      KeySchema:
        - { AttributeName: pk, KeyType: HASH }
        - { AttributeName: sk, KeyType: RANGE }
      GlobalSecondaryIndexes:
        - IndexName: by-free
          KeySchema:
            - { AttributeName: pk, KeyType: HASH }
            - { AttributeName: free, KeyType: RANGE }
          Projection: { ProjectionType: INCLUDE, NonKeyAttributes: [region] }
      TimeToLiveSpecification: { AttributeName: expires_at, Enabled: true }
Outputs:
  Url: { Value: !Sub "https://${Api}.execute-api.${AWS::Region}.amazonaws.com" }
"#;

    fn names(values: &[&str]) -> Vec<String> {
        values.iter().map(|value| (*value).to_owned()).collect()
    }

    #[test]
    fn a_function_has_its_own_time_else_that_of_all() {
        let timeout = |text: &str| {
            let functions = Template::parse(text).unwrap().functions;
            ["functions/find-lobby", "functions/update-namespace-version"]
                .map(|code| functions[code].timeout.as_secs())
        };
        assert_eq!(timeout(TEMPLATE), [3, 3]);
        let globals = "Globals:\n  Function: { Timeout: 10 }\nResources:";
        let text = TEMPLATE.replacen("Resources:", globals, 1);
        assert_eq!(timeout(&text), [10, 10]);
        let own = "CodeUri: functions/find-lobby\n      Timeout: 29";
        assert_eq!(timeout(&text.replacen("CodeUri: functions/find-lobby", own, 1)), [29, 10]);
        let unknown = text.replacen("Timeout: 10", "Timeout: !Ref Time", 1);
        let error = Template::parse(&unknown).unwrap_err().to_string();
        assert!(error.starts_with("resource Globals: Function.Timeout"), "{error}");
    }

    #[test]
    fn routes_are_read_from_the_functions() {
        let routes = Template::parse(TEMPLATE).unwrap().routes;
        let read: Vec<_> = routes
            .iter()
            .map(|route| (route.function.as_str(), route.code_uri.as_str(), route.key()))
            .collect();
        assert!(Template::parse(TEMPLATE).unwrap().functions.contains_key("functions/sweep"));
        assert_eq!(
            read,
            [
                ("FindLobby", "functions/find-lobby", "POST /matchmaker/lobbies/find".to_owned()),
                (
                    "SetVersion",
                    "functions/update-namespace-version",
                    "PUT /games/{game_id}/version".to_owned()
                ),
            ]
        );
    }

    #[test]
    fn tables_are_read_with_indexes_and_expiry() {
        assert_eq!(
            Template::parse(TEMPLATE).unwrap().tables,
            [Table {
                logical_id: "LobbiesTable".into(),
                attributes: vec![
                    ("pk".into(), AttributeType::Text),
                    ("sk".into(), AttributeType::Text),
                    ("free".into(), AttributeType::Number),
                ],
                key: Key { partition: "pk".into(), sort: Some("sk".into()) },
                indexes: vec![Index {
                    name: "by-free".into(),
                    key: Key { partition: "pk".into(), sort: Some("free".into()) },
                    projection: Projection::Include(names(&["region"])),
                }],
                ttl_attribute: Some("expires_at".into()),
            }]
        );
    }

    #[test]
    fn cross_origin_rules_are_read_from_the_api() {
        assert_eq!(
            Template::parse(TEMPLATE).unwrap().cors,
            Cors {
                allow_origins: names(&["*"]),
                allow_headers: names(&["authorization", "*"]),
                allow_methods: names(&["GET", "POST"]),
                expose_headers: names(&["x-request-id"]),
                max_age_seconds: Some(600),
            }
        );
    }

    #[test]
    fn an_error_names_the_resource_and_the_property() {
        for (from, to, message) in [
            (
                "Path: /matchmaker/lobbies/find",
                "Path: !Sub \"/${Stage}\"",
                "resource FindLobby: Properties.Events.Find.Properties.Path is not a text that is written out",
            ),
            ("Method: post, ", "", "resource FindLobby: Properties.Events.Find.Properties.Method is missing"),
            (
                "Method: PUT",
                "Method: ANY",
                "resource SetVersion: Properties.Events.Put.Properties.Method is `ANY`, which the local stack does not support",
            ),
            (
                "Method: PUT, Path: \"/games/{game_id}/version\"",
                "Method: POST, Path: /matchmaker/lobbies/find",
                "resource SetVersion: Properties.Events.Put.Properties.Path is taken by POST /matchmaker/lobbies/find of FindLobby already",
            ),
            (
                "AttributeType: N",
                "AttributeType: M",
                "resource LobbiesTable: Properties.AttributeDefinitions.2.AttributeType is `M`, which the local stack does not support",
            ),
            (
                "sk, KeyType: RANGE",
                "sk, KeyType: !Ref Kind",
                "resource LobbiesTable: Properties.KeySchema.1.KeyType is not a text that is written out",
            ),
            (
                "MaxAge: 600",
                "AllowCredentials: true",
                "resource Api: Properties.CorsConfiguration.AllowCredentials is `true`, which the local stack does not support",
            ),
        ] {
            assert!(TEMPLATE.contains(from), "{from}");
            let error = Template::parse(&TEMPLATE.replacen(from, to, 1)).unwrap_err();
            assert_eq!(error.to_string(), message);
        }
    }

    #[test]
    fn a_text_that_is_no_template_is_refused() {
        assert!(matches!(Template::parse("a: [1"), Err(TemplateError::Syntax(_))));
        for text in ["", "[]", "Resources: 1"] {
            assert!(matches!(Template::parse(text), Err(TemplateError::NoResources)), "{text}");
        }
    }
}
