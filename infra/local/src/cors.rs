//! Cross-origin rules of the HTTP API, as API Gateway applies them.

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, HeaderMap,
    HeaderName, HeaderValue, ORIGIN, VARY,
};
use http::{Method, request};

/// `CorsConfiguration` of the HTTP API; without origins, CORS is off.
///
/// Credentials are never allowed: tokens are in `Authorization`, not in cookies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cors {
    /// Origins, exact, or `*`, `https://*`, `http://*`.
    pub allow_origins: Vec<String>,
    /// Request headers a page may send; `*` stands for all but `authorization`.
    pub allow_headers: Vec<String>,
    /// Methods a page may use.
    pub allow_methods: Vec<String>,
    /// Response headers a page may read.
    pub expose_headers: Vec<String>,
    /// How long a browser may cache a preflight's response.
    pub max_age_seconds: Option<u32>,
}

impl Cors {
    /// Whether the request is a preflight, which the gateway answers itself for any path.
    pub fn is_preflight(&self, request: &request::Parts) -> bool {
        self.is_configured()
            && request.method == Method::OPTIONS
            && request.headers.contains_key(ORIGIN)
            && request.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
    }

    /// Returns the headers of a preflight's response: none when the origin is not allowed.
    pub fn preflight(&self, request: &HeaderMap) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if self.insert_origin(request, &mut headers) {
            insert_list(&mut headers, ACCESS_CONTROL_ALLOW_METHODS, &self.allow_methods);
            insert_list(&mut headers, ACCESS_CONTROL_ALLOW_HEADERS, &self.allow_headers);
            if let Some(seconds) = self.max_age_seconds {
                headers.insert(ACCESS_CONTROL_MAX_AGE, seconds.into());
            }
        }
        headers
    }

    /// Sets the headers of an ordinary response, and replaces any that the function set.
    pub fn apply(&self, request: &HeaderMap, response: &mut HeaderMap) {
        if !self.is_configured() {
            return;
        }
        let set_by_function: Vec<HeaderName> =
            response.keys().filter(|name| name.as_str().starts_with("access-control-")).cloned().collect();
        for name in set_by_function {
            response.remove(name);
        }
        if self.insert_origin(request, response) {
            insert_list(response, ACCESS_CONTROL_EXPOSE_HEADERS, &self.expose_headers);
        }
    }

    fn is_configured(&self) -> bool {
        !self.allow_origins.is_empty()
    }

    /// Adds the request's origin if it is allowed, and returns whether it is.
    fn insert_origin(&self, request: &HeaderMap, response: &mut HeaderMap) -> bool {
        let Some(origin) = request.get(ORIGIN) else {
            return false;
        };
        if self.allow_origins.iter().any(|allowed| allowed == "*") {
            response.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
            return true;
        }
        let is_allowed = origin.to_str().is_ok_and(|origin| {
            self.allow_origins.iter().any(|allowed| match allowed.strip_suffix('*') {
                Some(scheme) => origin.starts_with(scheme),
                None => origin == allowed,
            })
        });
        if is_allowed {
            response.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
            response.append(VARY, HeaderValue::from_static("origin"));
        }
        is_allowed
    }
}

fn insert_list(headers: &mut HeaderMap, name: HeaderName, values: &[String]) {
    if let Ok(value) = HeaderValue::try_from(values.join(","))
        && !value.is_empty()
    {
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cors(origins: &[&str]) -> Cors {
        let list = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect();
        Cors {
            allow_origins: list(origins),
            allow_headers: list(&["authorization", "*"]),
            allow_methods: list(&["GET", "POST"]),
            expose_headers: list(&["x-request-id", "retry-after"]),
            max_age_seconds: Some(600),
        }
    }

    fn from(origin: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(ORIGIN, HeaderValue::from_static(origin))])
    }

    fn pairs(headers: &HeaderMap) -> Vec<(&str, &str)> {
        let mut pairs: Vec<_> =
            headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        pairs.sort_unstable();
        pairs
    }

    #[test]
    fn a_preflight_lists_what_is_configured() {
        assert_eq!(
            pairs(&cors(&["*"]).preflight(&from("https://play.example"))),
            [
                ("access-control-allow-headers", "authorization,*"),
                ("access-control-allow-methods", "GET,POST"),
                ("access-control-allow-origin", "*"),
                ("access-control-max-age", "600"),
            ]
        );
    }

    #[test]
    fn only_options_with_origin_and_method_is_a_preflight() {
        let request = |method: Method, names: &[HeaderName]| {
            let mut request = http::Request::builder().method(method);
            for name in names {
                request = request.header(name, "x");
            }
            request.body(()).unwrap().into_parts().0
        };
        let both = [ORIGIN, ACCESS_CONTROL_REQUEST_METHOD];
        assert!(cors(&["*"]).is_preflight(&request(Method::OPTIONS, &both)));
        assert!(!cors(&["*"]).is_preflight(&request(Method::POST, &both)));
        assert!(!cors(&["*"]).is_preflight(&request(Method::OPTIONS, &[ORIGIN])));
        assert!(!cors(&["*"]).is_preflight(&request(Method::OPTIONS, &[ACCESS_CONTROL_REQUEST_METHOD])));
        assert!(!Cors::default().is_preflight(&request(Method::OPTIONS, &both)));
    }

    #[test]
    fn an_ordinary_answer_exposes_headers_and_loses_those_of_the_function() {
        let mut response = HeaderMap::new();
        response.insert("access-control-allow-credentials", HeaderValue::from_static("true"));
        response.insert("x-request-id", HeaderValue::from_static("1"));
        cors(&["*"]).apply(&from("https://play.example"), &mut response);
        assert_eq!(
            pairs(&response),
            [
                ("access-control-allow-origin", "*"),
                ("access-control-expose-headers", "x-request-id,retry-after"),
                ("x-request-id", "1"),
            ]
        );
    }

    #[test]
    fn without_an_origin_nothing_is_added() {
        let mut response = HeaderMap::new();
        cors(&["*"]).apply(&HeaderMap::new(), &mut response);
        assert!(response.is_empty());
    }

    #[test]
    fn a_listed_origin_is_echoed_and_another_refused() {
        for (allowed, origin, is_allowed) in [
            ("https://play.example", "https://play.example", true),
            ("https://play.example", "https://evil.example", false),
            ("https://play.example", "https://play.example.evil", false),
            ("https://*", "https://anything.example", true),
            ("https://*", "http://anything.example", false),
        ] {
            let headers = cors(&[allowed]).preflight(&from(origin));
            let expected = is_allowed.then_some(origin);
            let actual = headers.get(ACCESS_CONTROL_ALLOW_ORIGIN).map(|value| value.to_str().unwrap());
            assert_eq!(actual, expected, "{allowed} {origin}");
            assert_eq!(headers.contains_key(VARY), is_allowed);
            assert_eq!(headers.contains_key(ACCESS_CONTROL_ALLOW_METHODS), is_allowed);
        }
    }
}
