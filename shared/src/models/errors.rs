//! Every error, in terms of the domain, with its status and code.

use http::StatusCode;
use serde_json::{Value, json};

use crate::base::ambient::time;
use crate::models::{
    ids::{GameMode, VersionId},
    launch::{LaunchStage, StartFailure, Starting},
    seats::PlayerDetails,
    shortage::Shortage,
    token::{InvalidToken, TokenKind},
    version::CaptchaProvider,
    violations::{Violations, listed},
};

/// Why an operation failed.
///
/// The display text is the public `message`. [`Error::CaptchaUnavailable`], [`Error::Unavailable`] and
/// [`Error::Bug`] carry a cause that is logged once and never sent.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// 404: a path identifier that cannot name anything.
    #[error("there is nothing here")]
    NotFound,
    /// 413: a body larger than [`crate::request::BODY_BYTES_MAX`].
    #[error("the body is larger than 64 KiB")]
    BodyTooLarge,
    /// 400: broken JSON, a wrong type, a missing field or a number out of its range.
    #[error("the body does not fit at `{path}`: {problem}")]
    BadBody {
        /// Where in the body, `.` for the whole.
        path: String,
        /// What is wrong there.
        problem: String,
    },

    /// 400: a header whose value is not valid.
    #[error("the header `{0}` must be 1 to 64 visible ASCII characters")]
    BadHeader(&'static str),
    /// 409: the `Idempotency-Key` of another request.
    #[error("the Idempotency-Key was used for another request; use a fresh one")]
    IdempotencyMismatch,
    /// 401: no token, or not as `Authorization: Bearer`.
    #[error("a token is needed, as `Authorization: Bearer <token>`")]
    Unauthorized,
    /// 401: a token that is malformed, unknown or badly signed.
    #[error("{0}")]
    TokenInvalid(TokenFault),
    /// 401: an expired token.
    #[error("the token has expired; create another one")]
    TokenExpired,
    /// 401: a token that was revoked.
    #[error("the token was revoked")]
    TokenRevoked,
    /// 403: a token of a kind that does not allow this operation.
    #[error("this is a {} token; the operation needs a {} token, from {}", shown.name(), needed.name(), needed.source())]
    WrongTokenKind {
        /// Its kind.
        shown: TokenKind,
        /// The kind that allows the operation, or the first of them.
        needed: TokenKind,
    },
    /// 403: a token of another game or namespace.
    #[error("the token does not belong to this game or namespace")]
    Forbidden,
    /// 403: a request for a seat that did not come through the deployment's edge, which must.
    #[error("requests for seats must come through the deployment's edge; send them to its address")]
    NotThroughEdge,

    /// 400: a token in a body that does not verify, or is of another kind.
    #[error("the token in the body is not valid")]
    BodyTokenInvalid,
    /// 400: values that validation refuses.
    #[error("the values are not valid: {0}")]
    Validation(Violations),
    /// 409: another game or namespace has the name.
    #[error("the name is taken")]
    NameTaken,

    /// 404: the game has no such namespace.
    #[error("the game has no such namespace")]
    NamespaceNotFound,
    /// 404: the game has no such version.
    #[error("the game has no such version")]
    VersionNotFound,

    /// 400: a password that is not a bcrypt hash in canonical modular crypt form.
    #[error("the password must be a bcrypt hash ($2a$, $2b$ or $2y$, 60 characters), not plain text")]
    InvalidAuthUserPassword,
    /// 400: a user name that cannot be an HTTP Basic user.
    #[error("the user must be 1 to 128 characters without `:` and control characters")]
    InvalidAuthUser,
    /// 400: the namespace already has its 32 users.
    #[error("the namespace already has 32 users; replace or remove one")]
    TooManyAuthUsers,

    /// 400: text that is not a host name.
    #[error("the domain must be a host name, such as play.example.com, without scheme, port and path")]
    InvalidDomain,
    /// 409: another namespace has the domain.
    #[error("the domain belongs to another namespace")]
    DomainTaken,
    /// 400: the namespace already has its 10 domains.
    #[error("the namespace already has 10 domains; remove one")]
    TooManyDomains,

    /// 400: a find without a game mode.
    #[error("name at least one game mode")]
    NoGameModeProvided,
    /// 400: the client is of another version of the game than the namespace runs.
    #[error("the namespace runs another version of the game than the client is made for")]
    VersionOutdated {
        /// The version that it runs.
        current: VersionId,
    },
    /// 400: no mode that the namespace's current version has.
    #[error("the namespace's current version has no game mode `{mode}`; it has {}", listed(modes))]
    GameModeNotFound {
        /// The first mode of the request.
        mode: String,
        /// The modes that the version has.
        modes: Vec<String>,
    },
    /// 400: more than 8 tags.
    #[error("at most 8 tags can be given")]
    TooManyTags,
    /// 400: a tag name above 128 bytes.
    #[error("a tag name is at most 128 bytes long")]
    TagNameTooLong,
    /// 400: a tag value above 512 bytes.
    #[error("a tag is at most 512 bytes long")]
    TagTooLong,
    /// 400: tags for a mode that is not taggable.
    #[error("the game mode `{0}` does not take tags; `taggable` of the mode in the version allows them")]
    TagsDisabled(GameMode),
    /// 400: `max_players` for a mode that does not allow it.
    #[error(
        "the game mode `{0}` does not let requests choose max_players; `allow_dynamic_max_players` of the mode in \
         the version allows it"
    )]
    DynamicMaxPlayersDisabled(GameMode),
    /// 400: `max_players` of 0 or above the mode's own.
    #[error("max_players must lie between 1 and the game mode's own maximum{}", max.map(|max| format!(", {max}")).unwrap_or_default())]
    DynamicMaxPlayersInvalid {
        /// The mode's own maximum, when that is what was exceeded.
        max: Option<u32>,
    },
    /// 400: more players than can get seats together.
    #[error("no party of this size can be seated together; at most {max} players can")]
    PartyTooLarge {
        /// The largest party.
        max: u32,
    },
    /// 400: a region that the game lacks.
    #[error("the game has no region `{region}`; it has {}", listed(regions))]
    RegionNotFound {
        /// The region.
        region: String,
        /// The regions that it has.
        regions: Vec<String>,
    },
    /// 400: no requested mode runs in a requested region.
    #[error("no requested game mode runs in a requested region")]
    RegionNotEnabledForGameMode,
    /// 400: a find with latencies of which none is of a region that it could search.
    #[error(
        "the client reaches no region in which it could play: `latencies` needs a number for one of {}",
        listed(regions)
    )]
    NoRegionReachable {
        /// The regions that it could search.
        regions: Vec<String>,
    },
    /// 400: a requested mode forbids find.
    #[error(
        "the game mode `{0}` cannot be found; `actions.find.enabled` of the mode in the version is false"
    )]
    FindDisabled(GameMode),
    /// 400: nothing joinable, and creation was prevented.
    #[error("no lobby fits, and creating one was prevented")]
    NoAvailableLobbies,
    /// 400: the namespace holds its `lobby_count_max` lobbies, all without a fitting seat.
    #[error("the namespace holds as many lobbies as it may")]
    TooManyLobbies,
    /// 400: the client's IP address holds its limit of seats in the namespace.
    #[error(
        "the limit of seats per IP address{} is reached; wait until one is free, or raise it with \
         `muster mm-config GAME/NAMESPACE --max-players-per-client`",
        limit.map(|limit| format!(" ({limit})")).unwrap_or_default()
    )]
    TooManyPlayersFromSource {
        /// The limit; `None` when the refusal is one of an earlier request.
        limit: Option<u32>,
    },
    /// 400: no player of the client's IP address has connected to a lobby yet, and it has seats in as many as
    /// it may until then whose game servers were started for it.
    #[error(
        "no player of this IP address has connected yet to {limit} of its lobbies; connect before game \
         servers are started for more of them"
    )]
    TooManyStartsFromSource {
        /// The limit.
        limit: u32,
    },
    /// 400: a lobby that does not exist, is of another namespace, or whose game server is not alive.
    #[error("there is no such lobby")]
    LobbyNotFound,
    /// 400: the lobby has ended.
    #[error("the lobby has ended")]
    LobbyStopped,
    /// 400: every seat of the lobby is held.
    #[error("the lobby is full")]
    LobbyFull,
    /// 400: the lobby's mode forbids joining.
    #[error(
        "lobbies of the game mode `{0}` cannot be joined by their identifier; `actions.join.enabled` of the mode in \
         the version is false"
    )]
    JoinDisabled(GameMode),
    /// 400: the mode forbids lobbies that players create.
    #[error(
        "the game mode `{0}` does not let players create lobbies; `actions.create.enabled` of the mode in the \
         version is not true"
    )]
    CustomLobbiesDisabled(GameMode),
    /// 400: a transition that the lobby's state does not allow.
    #[error("the lobby's state does not allow this: {0}")]
    LobbyStateConflict(&'static str),
    /// 400: the token's player is already connected; with the player, where the request asks for details.
    #[error("the player has connected already")]
    PlayerAlreadyConnected(Option<Box<PlayerDetails>>),
    /// 400: the reservation lapsed before the connect.
    #[error("the player's reservation has lapsed")]
    PlayerRegistrationExpired,
    /// 400: the player left before the connect.
    #[error("the player has left the lobby")]
    PlayerRemoved,
    /// 400: a player token for another lobby of the namespace.
    #[error("the player's seat is in another lobby")]
    PlayerInDifferentLobby,
    /// 400: a registration that is not valid.
    #[error("the game server is not valid: {0}")]
    InvalidServer(Violations),
    /// 400: a game server that never registered, or deregistered.
    #[error("there is no such game server")]
    ServerNotFound,
    /// 400: a game server that another start registered.
    #[error(
        "the game server is registered by another start: either `start_id` is not the one of its registration, or \
         another process registered under this `server_id`"
    )]
    OtherStart,
    /// 403: the version needs a captcha, and the client's last pass no longer counts.
    #[error("a captcha must be passed first")]
    CaptchaRequired {
        /// The captcha's provider.
        provider: CaptchaProvider,
        /// The key that pages show.
        site_key: String,
    },
    /// 400: the provider refused the captcha response, or it is for another provider.
    #[error("the captcha was not passed")]
    CaptchaFailed,
    /// 503: the captcha provider is unreachable, or its response is not valid.
    #[error("captchas cannot be checked now; try again shortly")]
    CaptchaUnavailable(String),
    /// 400: the studio's backend refuses the player.
    #[error("the game does not let this player in")]
    VerificationFailed,
    /// 400: the studio's backend is unreachable.
    #[error("the game's backend could not verify this player")]
    VerificationRequestFailed,
    /// 503: the game server did not report the lobby ready in time; the seat was given back.
    #[error("the lobby's game server did not call `lobbies/ready` within 25 seconds; try again shortly")]
    LobbyStartTimeout,
    /// 503: the lobby waits for a game server that is being started. With an `Idempotency-Key` the seat is
    /// kept for the repetition, else it was given back.
    #[error(
        "a game server is being started for this lobby; repeat the request after `retry-after`, with its \
         `Idempotency-Key` to keep the seat"
    )]
    ServerStarting(Box<Starting>),
    /// 503: the game server that the lobby needs could not be started.
    #[error("no game server could be started in `{}`: {}", .0.region_id, .0.reason)]
    ServerStartFailed(Box<StartFailure>),
    /// 503: no game server has a place in the region.
    #[error("{}", no_server(.0.as_ref()))]
    NoServerAvailable(
        /// Its game servers; `None` when they were not counted, or in the refusal of an earlier request.
        Option<Shortage>,
    ),
    /// 503: other requests won every race.
    #[error("too many concurrent changes; try again shortly")]
    Contention,
    /// 503: another run of the same request (by its `Idempotency-Key`) is under way, and enough retries wait
    /// for it.
    #[error("the same request is in progress; retry it shortly")]
    RequestInProgress,
    /// 503: a game server started again, and its earlier starts left more lobbies than one call ends.
    #[error("lobbies of the game server's earlier starts are still being ended; register again shortly")]
    Clearing,

    /// 503: DynamoDB throttled, timed out or could not be reached.
    #[error("the service is briefly unavailable; try again shortly")]
    Unavailable(String),
    /// 500: a defect of Muster.
    #[error("something went wrong on our side")]
    Bug(String),
}

/// Why a token is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenFault {
    /// It is no token of Muster's, or was cut or changed.
    #[error("the token is malformed: it was cut or changed, or is none of Muster's")]
    Malformed,
    /// Another deployment signed it, or this one with a key that is gone.
    #[error(
        "the token was signed by another deployment, or with a key that is gone; create one here. A local stack \
         without `--data` has a new key at each start"
    )]
    SignedElsewhere,
    /// Its game or namespace is not in this deployment.
    #[error("the token's game and namespace are not in this deployment; create a token here")]
    NoNamespace,
    /// A cloud token that this deployment never issued.
    #[error("this deployment has no such cloud token; `muster token create cloud GAME` creates one")]
    NoCloudToken,
}

impl From<InvalidToken> for Error {
    fn from(invalid: InvalidToken) -> Self {
        match invalid {
            InvalidToken::Malformed => Self::TokenInvalid(TokenFault::Malformed),
            InvalidToken::SignedElsewhere => Self::TokenInvalid(TokenFault::SignedElsewhere),
            InvalidToken::Expired => Self::TokenExpired,
        }
    }
}

fn no_server(shortage: Option<&Shortage>) -> String {
    let uncounted = || "no game server has a free place in this region; try again shortly".to_owned();
    shortage.map_or_else(uncounted, ToString::to_string)
}

/// Seconds after which a 503 invites another try.
const RETRY_AFTER_SECS: u64 = 1;
/// As above, for places on game servers, which come back when a lobby ends.
const NO_SERVER_RETRY_AFTER_SECS: u64 = 5;

/// Refusals of a request for a seat, each determined by its code.
const REFUSALS_OF_A_SEAT: [Error; 11] = [
    Error::CaptchaFailed,
    Error::VerificationFailed,
    Error::VerificationRequestFailed,
    Error::TooManyPlayersFromSource { limit: None },
    Error::NoAvailableLobbies,
    Error::TooManyLobbies,
    Error::NoServerAvailable(None),
    Error::LobbyNotFound,
    Error::LobbyStopped,
    Error::LobbyFull,
    Error::LobbyStartTimeout,
];

impl Error {
    /// The refusal of a request for a seat from its stored `code`, for retries that wait; `None` where the
    /// code does not determine it.
    #[must_use]
    pub fn of_kept_code(code: &str) -> Option<Self> {
        REFUSALS_OF_A_SEAT.into_iter().find(|refusal| refusal.status_and_code().1 == code)
    }

    /// The HTTP status and the stable code that clients key on.
    #[must_use]
    #[expect(clippy::too_many_lines, reason = "a table with a row for each error")]
    pub const fn status_and_code(&self) -> (StatusCode, &'static str) {
        const BAD_REQUEST: StatusCode = StatusCode::BAD_REQUEST;
        match self {
            Self::NotFound => (StatusCode::NOT_FOUND, "API_NOT_FOUND"),
            Self::BodyTooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "API_BODY_TOO_LARGE"),
            Self::BadBody { .. } => (BAD_REQUEST, "API_BAD_BODY"),
            Self::BadHeader(_) => (BAD_REQUEST, "API_BAD_HEADER"),
            Self::IdempotencyMismatch => (StatusCode::CONFLICT, "API_IDEMPOTENCY_MISMATCH"),
            Self::Unauthorized => (StatusCode::UNAUTHORIZED, "API_UNAUTHORIZED"),
            Self::TokenInvalid(_) => (StatusCode::UNAUTHORIZED, "TOKEN_INVALID"),
            Self::TokenExpired => (StatusCode::UNAUTHORIZED, "CLAIMS_ENTITLEMENT_EXPIRED"),
            Self::TokenRevoked => (StatusCode::UNAUTHORIZED, "TOKEN_REVOKED"),
            Self::WrongTokenKind { .. } => (StatusCode::FORBIDDEN, "CLAIMS_MISSING_ENTITLEMENT"),
            Self::Forbidden | Self::NotThroughEdge => (StatusCode::FORBIDDEN, "API_FORBIDDEN"),
            Self::BodyTokenInvalid => (BAD_REQUEST, "TOKEN_INVALID"),
            Self::Validation(_) => (BAD_REQUEST, "VALIDATION_ERROR"),
            Self::NameTaken => (StatusCode::CONFLICT, "CLOUD_NAME_TAKEN"),
            Self::NamespaceNotFound => (StatusCode::NOT_FOUND, "CLOUD_NAMESPACE_NOT_FOUND"),
            Self::VersionNotFound => (StatusCode::NOT_FOUND, "CLOUD_VERSION_NOT_FOUND"),
            Self::InvalidAuthUserPassword => (BAD_REQUEST, "CDN_INVALID_AUTH_USER_PASSWORD"),
            Self::InvalidAuthUser => (BAD_REQUEST, "CDN_INVALID_AUTH_USER"),
            Self::TooManyAuthUsers => (BAD_REQUEST, "CDN_TOO_MANY_AUTH_USERS"),
            Self::InvalidDomain => (BAD_REQUEST, "CDN_INVALID_DOMAIN"),
            Self::DomainTaken => (StatusCode::CONFLICT, "CDN_DOMAIN_TAKEN"),
            Self::TooManyDomains => (BAD_REQUEST, "CDN_TOO_MANY_DOMAINS"),
            Self::VersionOutdated { .. } => (BAD_REQUEST, "MATCHMAKER_VERSION_OUTDATED"),
            Self::NoGameModeProvided => (BAD_REQUEST, "MATCHMAKER_NO_GAME_MODE_PROVIDED"),
            Self::GameModeNotFound { .. } => (BAD_REQUEST, "MATCHMAKER_GAME_MODE_NOT_FOUND"),
            Self::TooManyTags => (BAD_REQUEST, "MATCHMAKER_TOO_MANY_TAGS"),
            Self::TagNameTooLong => (BAD_REQUEST, "MATCHMAKER_TAG_NAME_TOO_LONG"),
            Self::TagTooLong => (BAD_REQUEST, "MATCHMAKER_TAG_TOO_LONG"),
            Self::TagsDisabled(_) => (BAD_REQUEST, "MATCHMAKER_TAGS_DISABLED"),
            Self::DynamicMaxPlayersDisabled(_) => (BAD_REQUEST, "MATCHMAKER_DYNAMIC_MAX_PLAYERS_DISABLED"),
            Self::DynamicMaxPlayersInvalid { .. } => (BAD_REQUEST, "MATCHMAKER_DYNAMIC_MAX_PLAYERS_INVALID"),
            Self::PartyTooLarge { .. } => (BAD_REQUEST, "MATCHMAKER_PARTY_TOO_LARGE"),
            Self::RegionNotFound { .. } => (BAD_REQUEST, "MATCHMAKER_REGION_NOT_FOUND"),
            Self::RegionNotEnabledForGameMode => (BAD_REQUEST, "MATCHMAKER_REGION_NOT_ENABLED_FOR_GAME_MODE"),
            Self::NoRegionReachable { .. } => (BAD_REQUEST, "MATCHMAKER_NO_REGION_REACHABLE"),
            Self::FindDisabled(_) => (BAD_REQUEST, "MATCHMAKER_FIND_DISABLED"),
            Self::NoAvailableLobbies => (BAD_REQUEST, "MATCHMAKER_NO_AVAILABLE_LOBBIES"),
            Self::TooManyLobbies => (BAD_REQUEST, "MATCHMAKER_TOO_MANY_LOBBIES"),
            Self::TooManyPlayersFromSource { .. } | Self::TooManyStartsFromSource { .. } => {
                (BAD_REQUEST, "MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE")
            }
            Self::LobbyNotFound => (BAD_REQUEST, "MATCHMAKER_LOBBY_NOT_FOUND"),
            Self::LobbyStopped => (BAD_REQUEST, "MATCHMAKER_LOBBY_STOPPED"),
            Self::LobbyFull => (BAD_REQUEST, "MATCHMAKER_LOBBY_FULL"),
            Self::JoinDisabled(_) => (BAD_REQUEST, "MATCHMAKER_JOIN_DISABLED"),
            Self::CustomLobbiesDisabled(_) => (BAD_REQUEST, "MATCHMAKER_CUSTOM_LOBBIES_DISABLED"),
            Self::LobbyStateConflict(_) => (BAD_REQUEST, "MATCHMAKER_LOBBY_STATE_CONFLICT"),
            Self::PlayerAlreadyConnected(_) => (BAD_REQUEST, "MATCHMAKER_PLAYER_ALREADY_CONNECTED"),
            Self::PlayerRegistrationExpired => (BAD_REQUEST, "MATCHMAKER_PLAYER_REGISTRATION_EXPIRED"),
            Self::PlayerRemoved => (BAD_REQUEST, "MATCHMAKER_PLAYER_REMOVED"),
            Self::PlayerInDifferentLobby => (BAD_REQUEST, "MATCHMAKER_PLAYER_IN_DIFFERENT_LOBBY"),
            Self::InvalidServer(_) => (BAD_REQUEST, "MATCHMAKER_INVALID_SERVER"),
            Self::ServerNotFound | Self::OtherStart => (BAD_REQUEST, "MATCHMAKER_SERVER_NOT_FOUND"),
            Self::CaptchaRequired { .. } => (StatusCode::FORBIDDEN, "CAPTCHA_CAPTCHA_REQUIRED"),
            Self::CaptchaFailed => (BAD_REQUEST, "CAPTCHA_CAPTCHA_FAILED"),
            Self::CaptchaUnavailable(_) => (StatusCode::SERVICE_UNAVAILABLE, "CAPTCHA_UNAVAILABLE"),
            Self::VerificationFailed => (BAD_REQUEST, "MATCHMAKER_VERIFICATION_FAILED"),
            Self::VerificationRequestFailed => (BAD_REQUEST, "MATCHMAKER_VERIFICATION_REQUEST_FAILED"),
            Self::LobbyStartTimeout | Self::ServerStarting(_) => {
                (StatusCode::SERVICE_UNAVAILABLE, "MATCHMAKER_LOBBY_START_TIMEOUT")
            }
            Self::ServerStartFailed(_) => (StatusCode::SERVICE_UNAVAILABLE, "MATCHMAKER_SERVER_START_FAILED"),
            Self::NoServerAvailable(_) => (StatusCode::SERVICE_UNAVAILABLE, "MATCHMAKER_NO_SERVER_AVAILABLE"),
            Self::Contention | Self::RequestInProgress | Self::Clearing => {
                (StatusCode::SERVICE_UNAVAILABLE, "MATCHMAKER_CONTENTION")
            }
            Self::Unavailable(_) => (StatusCode::SERVICE_UNAVAILABLE, "API_UNAVAILABLE"),
            Self::Bug(_) => (StatusCode::INTERNAL_SERVER_ERROR, "ERROR"),
        }
    }

    /// Machine-readable details of the refusal, where the code promises them.
    #[must_use]
    pub fn metadata(&self) -> Option<Value> {
        match self {
            Self::TagsDisabled(mode)
            | Self::DynamicMaxPlayersDisabled(mode)
            | Self::FindDisabled(mode)
            | Self::JoinDisabled(mode)
            | Self::CustomLobbiesDisabled(mode) => Some(json!({ "game_mode": mode })),
            Self::Validation(violations) | Self::InvalidServer(violations) => {
                let errors =
                    violations.clone().into_iter().map(|violation| json!({ "path": violation.path }));
                let errors: Vec<_> = errors.collect();
                Some(json!({ "errors": errors }))
            }
            Self::VersionOutdated { current } => Some(json!({ "current": current })),
            Self::GameModeNotFound { mode, modes } => Some(json!({ "game_mode": mode, "game_modes": modes })),
            Self::CaptchaRequired { provider, site_key } => {
                Some(json!({ provider.name(): { "site_key": site_key } }))
            }
            Self::RegionNotFound { region, regions } => Some(json!({ "region": region, "regions": regions })),
            Self::NoRegionReachable { regions } => Some(json!({ "regions": regions })),
            Self::DynamicMaxPlayersInvalid { max: Some(max) } | Self::PartyTooLarge { max } => {
                Some(json!({ "max": max }))
            }
            Self::ServerStarting(starting) => {
                let Starting { lobby_id, wait, .. } = &**starting;
                Some(json!({
                    "lobby_id": lobby_id,
                    "stage": LaunchStage::Requested,
                    "requested_at": time(wait.requested_at),
                    "expected_at": time(wait.expected_at),
                    "start_seconds": wait.deadline.since(wait.requested_at).as_secs(),
                }))
            }
            Self::ServerStartFailed(failure) => Some(json!({ "reason": failure.reason })),
            Self::NoServerAvailable(Some(shortage)) => Some(json!({ "servers": shortage.servers })),
            Self::RequestInProgress => Some(json!({ "reason": "request_in_progress" })),
            _ => None,
        }
    }

    /// The player whom the refusal is about, who is then its metadata: a [`Value`] would rewrite the numbers
    /// in the player's data.
    #[must_use]
    pub fn player(&self) -> Option<&PlayerDetails> {
        match self {
            Self::PlayerAlreadyConnected(player) => player.as_deref(),
            _ => None,
        }
    }

    /// The `retry-after` header's seconds, on every 503.
    #[must_use]
    pub fn retry_after_secs(&self) -> Option<u64> {
        match self {
            Self::ServerStarting(starting) => Some(starting.retry_after.as_secs().max(RETRY_AFTER_SECS)),
            Self::ServerStartFailed(failure) => Some(failure.retry_after.as_secs().max(RETRY_AFTER_SECS)),
            Self::NoServerAvailable(_) => Some(NO_SERVER_RETRY_AFTER_SECS),
            Self::Contention
            | Self::RequestInProgress
            | Self::Clearing
            | Self::LobbyStartTimeout
            | Self::CaptchaUnavailable(_)
            | Self::Unavailable(_) => Some(RETRY_AFTER_SECS),
            _ => None,
        }
    }

    /// The internal cause, only for the log.
    #[must_use]
    pub fn cause(&self) -> Option<&str> {
        match self {
            Self::CaptchaUnavailable(cause) | Self::Unavailable(cause) | Self::Bug(cause) => Some(cause),
            _ => None,
        }
    }
}

/// Longest problem text sent to a client: serde quotes the offending value, which may be the whole body.
const PROBLEM_CHARS_MAX: usize = 200;

/// The refusal of a body for a problem at `path`.
#[must_use]
pub fn bad_body(path: &str, problem: &str) -> Error {
    let shorten = |text: &str| text.chars().take(PROBLEM_CHARS_MAX).collect();
    Error::BadBody { path: shorten(path), problem: shorten(problem) }
}
