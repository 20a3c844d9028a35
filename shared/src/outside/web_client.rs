//! Calls of URLs that studios configure: public addresses only, no redirects, no proxy, bounded in time and
//! size.
//!
//! [`GuardedResolver`] refuses a name as soon as one of its addresses is not public, and the connection goes
//! to the addresses that it returned, so a second resolution changes nothing (rebinding). An address instead
//! of a name is checked before the call, in its normal form: decimal, hexadecimal and IPv4-mapped notations
//! are parsed as browsers parse them.

use std::{fmt, net::IpAddr, str::FromStr, sync::OnceLock, time::Duration};

use aws_smithy_http_client::Connector;
use aws_smithy_runtime_api::{
    client::{
        dns::{DnsFuture, ResolveDns, ResolveDnsError, SharedDnsResolver},
        http::HttpConnector as _,
        orchestrator::HttpRequest,
    },
    http::{Request, StatusCode},
};
use aws_smithy_types::body::SdkBody;
use http_body_util::{BodyExt as _, Limited};

use crate::{
    base::{
        ambient::{Ambient, within},
        aws::CRYPTOGRAPHY,
    },
    rules::public_url::{self, is_public_address},
};

/// Which addresses may be called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// Public ones, by https.
    #[default]
    Public,
    /// Any, also by http: for tests, whose servers are on the local machine.
    Anywhere,
}

impl FromStr for Reach {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        match text {
            "public" => Ok(Self::Public),
            "anywhere" => Ok(Self::Anywhere),
            _ => Err("must be `public` or `anywhere`"),
        }
    }
}

/// Why there is no response. The text contains no headers or bodies, which hold secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// The address may not be called.
    #[error("the address may not be called: {0}")]
    Forbidden(&'static str),
    /// No complete response in time.
    #[error("no response in time")]
    TimedOut,
    /// The response is larger than the limit.
    #[error("the response is too large")]
    TooLarge,
    /// No connection, a broken one, or one without HTTP.
    #[error("no response: {0}")]
    Broken(String),
}

/// A POST.
#[derive(Debug)]
pub(crate) struct Post<'a> {
    pub url: &'a str,
    pub content_type: &'static str,
    pub headers: Vec<(&'a str, &'a str)>,
    pub body: String,
    /// The most bytes of the response's body that are read; when absent, the body is not read and may have
    /// any length.
    pub answer_bytes_max: Option<usize>,
}

/// A response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub status: StatusCode,
    /// Empty unless it was read.
    pub body: Vec<u8>,
}

/// Calls URLs that studios configure.
pub(crate) struct WebClient {
    reach: Reach,
    resolver: SharedDnsResolver,
    ambient: Ambient,
    /// Built at the first call: most instances make none, and reading the system's roots takes milliseconds.
    connector: OnceLock<Connector>,
}

impl WebClient {
    pub(crate) const fn new(reach: Reach, resolver: SharedDnsResolver, ambient: Ambient) -> Self {
        Self { reach, resolver, ambient, connector: OnceLock::new() }
    }

    /// Sends `post` and reads the response, all within `span`.
    pub(crate) async fn post(&self, post: Post<'_>, span: Duration) -> Result<Answer, NoAnswer> {
        within(&self.ambient, span, self.exchange(post)).await.unwrap_or(Err(NoAnswer::TimedOut))
    }

    async fn exchange(&self, post: Post<'_>) -> Result<Answer, NoAnswer> {
        let answer = self.connector().call(self.request(&post)?).await;
        let answer = answer.map_err(|error| NoAnswer::Broken(chain(&error)))?;
        let status = answer.status();
        let Some(bytes_max) = post.answer_bytes_max else {
            return Ok(Answer { status, body: Vec::new() });
        };
        let body = Limited::new(answer.into_body(), bytes_max).collect().await;
        let body = body.map_err(|error| {
            if error.is::<http_body_util::LengthLimitError>() {
                NoAnswer::TooLarge
            } else {
                NoAnswer::Broken(error.to_string())
            }
        })?;
        Ok(Answer { status, body: body.to_bytes().to_vec() })
    }

    fn request(&self, post: &Post<'_>) -> Result<HttpRequest, NoAnswer> {
        let url = match self.reach {
            Reach::Public => public_url::parse(post.url).map_err(NoAnswer::Forbidden)?,
            Reach::Anywhere => post.url.parse().map_err(|_| NoAnswer::Forbidden("invalid"))?,
        };
        let broken = |_| NoAnswer::Broken("a header is not valid".to_owned());
        let mut request = Request::new(SdkBody::from(post.body.as_str()));
        request.set_method("POST").map_err(broken)?;
        // The normal form, so that the connection goes to the host that was checked.
        request.set_uri(url.as_str()).map_err(|_| NoAnswer::Forbidden("invalid"))?;
        let headers = request.headers_mut();
        for (name, value) in &post.headers {
            headers.try_insert((*name).to_owned(), (*value).to_owned()).map_err(broken)?;
        }
        headers.try_insert("content-type", post.content_type).map_err(broken)?;
        Ok(request)
    }

    fn connector(&self) -> &Connector {
        self.connector.get_or_init(|| {
            let resolver = GuardedResolver { reach: self.reach, resolver: self.resolver.clone() };
            Connector::builder().tls_provider(CRYPTOGRAPHY).build_with_resolver(resolver)
        })
    }
}

impl fmt::Debug for WebClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebClient").field("reach", &self.reach).finish_non_exhaustive()
    }
}

/// Refuses a name if any of its addresses may not be called, since no honest host has such an address.
#[derive(Clone, Debug)]
pub struct GuardedResolver {
    /// Which addresses may be called.
    pub reach: Reach,
    /// The resolver of host names.
    pub resolver: SharedDnsResolver,
}

impl ResolveDns for GuardedResolver {
    fn resolve_dns<'a>(&'a self, name: &'a str) -> DnsFuture<'a> {
        DnsFuture::new(async move {
            let addresses = self.resolver.resolve_dns(name).await?;
            let may_call = |address: &IpAddr| self.reach == Reach::Anywhere || is_public_address(*address);
            if addresses.iter().all(may_call) {
                Ok(addresses)
            } else {
                Err(ResolveDnsError::new("the name has an address that is not public"))
            }
        })
    }
}

/// The system's own resolver.
#[derive(Clone, Copy, Debug)]
pub struct SystemResolver;

impl ResolveDns for SystemResolver {
    fn resolve_dns<'a>(&'a self, name: &'a str) -> DnsFuture<'a> {
        DnsFuture::new(async move {
            let found = tokio::net::lookup_host((name, 0)).await.map_err(ResolveDnsError::new)?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text = format!("{text}: {inner}");
        source = inner.source();
    }
    text
}
