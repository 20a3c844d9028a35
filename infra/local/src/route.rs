//! Routes of the HTTP API, and which one a request path selects.

use std::fmt;
use std::str::FromStr;

use http::Method;

/// One method and path of the HTTP API, and its function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Logical id of the function in the template.
    pub function: String,
    /// `CodeUri` of the function in the template.
    pub code_uri: String,
    /// Method of the route.
    pub method: Method,
    /// Path of the route.
    pub path: RoutePath,
}

impl Route {
    /// Returns API Gateway's key of the route: `POST /lobbies/{lobby_id}`.
    pub fn key(&self) -> String {
        format!("{} {}", self.method, self.path)
    }
}

/// A path of literal segments and `{name}` parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoutePath {
    text: String,
    segments: Vec<Segment>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    Literal(String),
    Parameter(String),
}

impl Segment {
    fn is_parameter(&self) -> bool {
        matches!(self, Self::Parameter(_))
    }
}

impl RoutePath {
    /// Returns the path as in the template.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the parameters by name if `path` matches this route.
    ///
    /// `path` is already percent-decoded: API Gateway decodes before it routes, so `%2F` separates segments.
    /// A parameter is exactly one segment, never an empty one.
    pub fn parameters_of<'a>(&'a self, path: &'a str) -> Option<Vec<(&'a str, &'a str)>> {
        let mut rest = path.strip_prefix('/')?.split('/');
        let mut parameters = Vec::new();
        for segment in &self.segments {
            let value = rest.next()?;
            match segment {
                Segment::Literal(literal) if literal == value => {}
                Segment::Parameter(name) if !value.is_empty() => parameters.push((name.as_str(), value)),
                Segment::Literal(_) | Segment::Parameter(_) => return None,
            }
        }
        rest.next().is_none().then_some(parameters)
    }

    /// Returns this path with the segments of `path` in place of its parameters, where it has such.
    pub fn filled_from(&self, path: &str) -> String {
        let others: Vec<&str> = path.split('/').skip(1).collect();
        let filled = self.segments.iter().enumerate().map(|(at, segment)| match segment {
            Segment::Literal(text) => text.as_str(),
            Segment::Parameter(name) => others.get(at).copied().unwrap_or(name),
        });
        filled.fold(String::new(), |path, segment| path + "/" + segment)
    }

    /// Returns a key that sorts paths so that the first of two that match is the more specific one: from
    /// left to right, a literal segment comes before a parameter.
    pub fn specificity(&self) -> Vec<bool> {
        self.segments.iter().map(Segment::is_parameter).collect()
    }

    /// Whether both paths match exactly the same requests, whatever their parameters' names.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.segments.len() == other.segments.len()
            && self.segments.iter().zip(&other.segments).all(|pair| match pair {
                (Segment::Literal(left), Segment::Literal(right)) => left == right,
                (left, right) => left.is_parameter() && right.is_parameter(),
            })
    }
}

impl fmt::Display for RoutePath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl FromStr for RoutePath {
    type Err = RoutePathError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let path = text.strip_prefix('/').ok_or(RoutePathError::NotAbsolute)?;
        let mut segments = Vec::new();
        for segment in path.split('/') {
            if segment.is_empty() && !path.is_empty() {
                return Err(RoutePathError::EmptySegment);
            }
            let segment = match segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
                Some(name) => Segment::Parameter(parameter_name(name)?),
                None if segment.contains(['{', '}', '%', '?', '#']) => {
                    return Err(RoutePathError::Segment(segment.to_owned()));
                }
                None => Segment::Literal(segment.to_owned()),
            };
            if segment.is_parameter() && segments.contains(&segment) {
                return Err(RoutePathError::RepeatedParameter);
            }
            segments.push(segment);
        }
        Ok(Self { text: text.to_owned(), segments })
    }
}

fn parameter_name(name: &str) -> Result<String, RoutePathError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    if name.is_empty() || !name.bytes().all(is_plain) {
        return Err(RoutePathError::Parameter(name.to_owned()));
    }
    Ok(name.to_owned())
}

/// Why a path of the template cannot be a route.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RoutePathError {
    /// The path does not begin with `/`.
    #[error("does not begin with `/`")]
    NotAbsolute,
    /// The path has an empty segment or ends in `/`.
    #[error("has an empty segment")]
    EmptySegment,
    /// A segment mixes text and a parameter, or holds a reserved character.
    #[error("has the segment `{0}`, which is neither text nor one parameter")]
    Segment(String),
    /// A parameter's name is not plain, such as the greedy `{proxy+}`.
    #[error("has the parameter `{{{0}}}`, which is not a plain name")]
    Parameter(String),
    /// Two parameters have the same name.
    #[error("names a parameter twice")]
    RepeatedParameter,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> RoutePath {
        text.parse().unwrap()
    }

    #[test]
    fn a_literal_path_matches_itself_alone() {
        let route = path("/matchmaker/lobbies/find");
        assert_eq!(route.parameters_of("/matchmaker/lobbies/find"), Some(vec![]));
        for other in ["/matchmaker/lobbies/find/", "/matchmaker/lobbies", "/matchmaker/lobbies/Find", "/", ""]
        {
            assert_eq!(route.parameters_of(other), None, "{other}");
        }
        assert_eq!(path("/").parameters_of("/"), Some(vec![]));
    }

    #[test]
    fn a_parameter_takes_exactly_one_segment() {
        let route = path("/games/{game_id}/versions/{version_id}");
        assert_eq!(
            route.parameters_of("/games/a b/versions/1"),
            Some(vec![("game_id", "a b"), ("version_id", "1")])
        );
        assert_eq!(route.parameters_of("/games//versions/1"), None);
        assert_eq!(route.parameters_of("/games/a/b/versions/1"), None);
    }

    #[test]
    fn a_literal_is_more_specific_than_a_parameter() {
        let mut paths = [path("/{a}/find"), path("/lobbies/{b}"), path("/lobbies/find")];
        paths.sort_by_key(RoutePath::specificity);
        assert_eq!(paths.map(|path| path.to_string()), ["/lobbies/find", "/lobbies/{b}", "/{a}/find"]);
    }

    #[test]
    fn paths_that_differ_only_in_parameter_names_overlap() {
        assert!(path("/lobbies/{a}").overlaps(&path("/lobbies/{b}")));
        assert!(!path("/lobbies/{a}").overlaps(&path("/lobbies/a")));
    }

    #[test]
    fn a_path_that_cannot_be_served_is_refused() {
        for (text, error) in [
            ("lobbies", RoutePathError::NotAbsolute),
            ("/lobbies/", RoutePathError::EmptySegment),
            ("/a//b", RoutePathError::EmptySegment),
            ("/v{n}", RoutePathError::Segment("v{n}".into())),
            ("/{proxy+}", RoutePathError::Parameter("proxy+".into())),
            ("/{}", RoutePathError::Parameter(String::new())),
            ("/{a}/{a}", RoutePathError::RepeatedParameter),
        ] {
            assert_eq!(text.parse::<RoutePath>(), Err(error), "{text}");
        }
    }
}
