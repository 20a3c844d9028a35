//! What helps against a refusal: for the log, and for the console's tape.

use http::Method;
use muster_console::tape::Answered;
use shared::{
    models::{
        ids::{GameId, NamespaceId},
        namespace::Namespace,
        version::Version,
    },
    store::client::Store,
};
use strsim::normalized_levenshtein;

use crate::{observed::Caller, route::Route};

/// Longest path that is compared with routes, in bytes.
const PATH_BYTES_MAX: usize = 256;
/// How alike a path and a route must be, where 1 is equal.
const LIKENESS_MIN: f64 = 0.5;

/// Advice for a request that none of `routes` has: the methods of its path, or the route that is most like
/// it.
pub fn of_routes<'a>(routes: impl Iterator<Item = &'a Route>, method: &Method, path: &str) -> Option<String> {
    if path.len() > PATH_BYTES_MAX {
        return None;
    }
    let routes: Vec<_> = routes.collect();
    let of_path = routes.iter().filter(|route| route.path.parameters_of(path).is_some());
    let mut methods: Vec<_> = of_path.map(|route| route.method.as_str()).collect();
    methods.sort_unstable();
    methods.dedup();
    if !methods.is_empty() {
        return Some(format!("this path takes {}", methods.join(" or ")));
    }
    let likeness = |route: &Route| {
        (normalized_levenshtein(&route.path.filled_from(path), path), route.method == *method)
    };
    let compare = |(one, is_one): &(f64, bool), (other, is_other): &(f64, bool)| {
        one.total_cmp(other).then(is_one.cmp(is_other))
    };
    let alike = routes.iter().map(|route| (likeness(route), route));
    let ((likeness, _), nearest) = alike.max_by(|(one, _), (other, _)| compare(one, other))?;
    (likeness >= LIKENESS_MIN).then(|| format!("did you mean {}?", nearest.key()))
}

/// Advice against the refusal of an operation. It reads the settings of the caller's namespace where they
/// decided.
pub async fn against(answered: &Answered, caller: &Caller, store: &Store) -> Option<String> {
    let game_id = caller.game_id.as_ref()?;
    let namespace = namespace(store, game_id, &caller.namespace_id);
    match answered.code.as_deref()? {
        "MATCHMAKER_REGION_NOT_ENABLED_FOR_GAME_MODE" => {
            let version = version(store, game_id, &namespace.await?).await?;
            let modes = version.config.game_modes.iter();
            let named =
                modes.filter(|(name, _)| answered.named.game_modes.iter().any(|mode| mode == name.as_str()));
            let regions = named.map(|(name, mode)| format!("{name} runs in {}", listed(&mode.regions)));
            Some(regions.collect::<Vec<_>>().join(", "))
        }
        "MATCHMAKER_TOO_MANY_LOBBIES" => Some(format!("the limit is {}", namespace.await?.lobby_count_max)),
        _ => None,
    }
}

async fn namespace(store: &Store, game_id: &GameId, id: &NamespaceId) -> Option<Namespace> {
    store.namespace(game_id, id).await.ok()?
}

async fn version(store: &Store, game_id: &GameId, namespace: &Namespace) -> Option<Version> {
    store.version(game_id, &namespace.version_id).await.ok()?
}

fn listed<T: ToString>(names: impl IntoIterator<Item = T>) -> String {
    names.into_iter().map(|name| name.to_string()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice(method: Method, path: &str) -> Option<String> {
        let route = |method: Method, path: &str| Route {
            function: String::new(),
            code_uri: String::new(),
            method,
            path: path.parse().unwrap(),
        };
        let routes = [
            route(Method::POST, "/matchmaker/lobbies/find"),
            route(Method::PUT, "/matchmaker/lobbies/closed"),
            route(Method::GET, "/matchmaker/lobbies/{lobby_id}/state"),
            route(Method::GET, "/cloud/games/{game_id}/namespaces/{namespace_id}"),
            route(Method::POST, "/cloud/games/{game_id}/namespaces/validate"),
        ];
        of_routes(routes.iter(), &method, path)
    }

    #[test]
    fn a_path_that_no_route_has_is_answered_with_the_nearest() {
        for (path, expected) in [
            ("/matchmaker/lobbies/fnd", "POST /matchmaker/lobbies/find"),
            ("/matchmaker/lobbies/find/", "POST /matchmaker/lobbies/find"),
            ("/lobbies/find", "POST /matchmaker/lobbies/find"),
            ("/matchmaker/lobby/close", "PUT /matchmaker/lobbies/closed"),
            ("/matchmaker/lobbies/67cebb35/stat", "GET /matchmaker/lobbies/{lobby_id}/state"),
        ] {
            assert_eq!(advice(Method::POST, path), Some(format!("did you mean {expected}?")), "{path}");
        }
        for path in ["/favicon.ico", "/x", &"/matchmaker/lobbies/find".repeat(20)] {
            assert_eq!(advice(Method::GET, path), None, "{path}");
        }
    }

    #[test]
    fn a_wrong_method_is_answered_with_those_of_the_path() {
        let takes = |path| advice(Method::DELETE, path).unwrap();
        assert_eq!(takes("/matchmaker/lobbies/find"), "this path takes POST");
        assert_eq!(takes("/cloud/games/a/namespaces/validate"), "this path takes GET or POST");
    }
}
