//! The addresses of this machine that the requests of a hostile load come from.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{Request, Response, Uri, body::Bytes};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use muster_console::host::Api;
use shared::base::ambient::Ambient;

use crate::{
    api::{ANSWER_BYTES_MAX, api},
    error::CommandError,
    reach::root_cause,
};

/// The addresses: 127.1.0.0 to 127.254.255.255.
const FIRST: u32 = 0x7f01_0000;
const COUNT: u32 = 0x00fe_0000;

/// The address that a request comes from: an extension of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Source(pub Ipv4Addr);

/// The addresses of a load: those of hostile requests, then one for each player.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sources {
    /// Differs from load to load, because a namespace remembers for hours whose players connected.
    offset: u32,
    hostile: u32,
}

impl Sources {
    /// Addresses of which so many are `hostile`.
    pub fn new(hostile: u32, ambient: &Ambient) -> Self {
        Self { offset: u32::from_be_bytes(ambient.bytes()) % COUNT, hostile }
    }

    /// The hostile address with this number, from 0 on.
    pub fn hostile(self, number: u32) -> Source {
        Source(Ipv4Addr::from_bits(FIRST + (self.offset + number % COUNT) % COUNT))
    }

    /// The address of player `number`, no hostile one.
    pub fn player(self, number: u32) -> Source {
        self.hostile(self.hostile + number)
    }

    /// Refuses an API that is not on this machine's loopback, and a machine that has one address alone.
    ///
    /// # Errors
    /// [`CommandError::Refused`].
    pub async fn check(self, api_url: &str) -> Result<(), CommandError> {
        let uri: Option<Uri> = api_url.parse().ok();
        let host = uri.as_ref().and_then(Uri::host).unwrap_or_default();
        let is_loopback = host.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback());
        if !is_loopback && host != "localhost" {
            return Err(CommandError::Refused(format!(
                "--hostile sends from addresses of 127.0.0.0/8, which do not reach {api_url}; name a local stack on this machine, such as --local=http://127.0.0.1:3000"
            )));
        }
        let source = self.hostile(0);
        let request = Request::get("/cloud/bootstrap").body(Bytes::new());
        let request = request.map_err(|error| CommandError::Refused(error.to_string()))?;
        send_from(source, api_url.to_owned(), request).await.map(drop).map_err(|problem| {
            CommandError::Refused(format!(
                "--hostile sends from addresses of 127.0.0.0/8, and nothing came back to {}: {problem}; run it on Linux, which has them all",
                source.0
            ))
        })
    }
}

/// The API at `base`. A request with a [`Source`] reaches it from that address, by a connection of its own.
pub(crate) fn api_from_sources(base: String) -> Api {
    let from_anywhere = api(base.clone());
    Arc::new(move |request: Request<Bytes>| match request.extensions().get::<Source>() {
        Some(source) => Box::pin(send_from(*source, base.clone(), request)),
        None => from_anywhere(request),
    })
}

async fn send_from(
    Source(address): Source,
    base: String,
    request: Request<Bytes>,
) -> Result<Response<Bytes>, String> {
    let mut connector = HttpConnector::new();
    connector.set_local_address(Some(IpAddr::V4(address)));
    connector.set_nodelay(true);
    // Thousands of addresses would keep as many connections open.
    let client = Client::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build(connector);
    let (mut parts, body) = request.into_parts();
    let uri = format!("{}{}", base.trim_end_matches('/'), parts.uri);
    parts.uri = uri.parse().map_err(|_| format!("{uri} is no address"))?;
    let answer = client.request(Request::from_parts(parts, Full::new(body))).await;
    let answer = answer.map_err(|error| format!("{base} does not answer: {}", root_cause(&error)))?;
    let (parts, body) = answer.into_parts();
    let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await.map_err(|error| error.to_string())?;
    Ok(Response::from_parts(parts, body.to_bytes()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_player_has_the_address_of_another_or_a_hostile_one() {
        for offset in [0, COUNT - 1_000, u32::MAX % COUNT] {
            let sources = Sources { offset, hostile: 2_000 };
            let hostile = (0..2_000).map(|number| sources.hostile(number).0);
            let players = (0..3_000).map(|number| sources.player(number).0);
            let all: BTreeSet<_> = hostile.chain(players).collect();
            assert_eq!(all.len(), 5_000, "{offset}");
            assert!(all.iter().all(|address| address.is_loopback() && *address != Ipv4Addr::LOCALHOST));
        }
    }

    #[tokio::test]
    async fn an_api_elsewhere_is_refused() {
        let sources = Sources { offset: 0, hostile: 1 };
        for url in ["http://192.0.2.1:3000", "http://[::1]:3000", "https://api.example", "nothing"] {
            let refused = sources.check(url).await.unwrap_err().to_string();
            assert!(refused.contains(&format!("do not reach {url};")), "{refused}");
        }
    }
}
