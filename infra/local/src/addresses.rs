//! The addresses at which the local stack listens, and those at which clients reach it.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
};

use tokio::net::TcpListener;
use url::Url;

/// Listens on loopback, where the console and the operator's command come, and at `host`. Port 0 takes a free
/// one.
///
/// # Errors
///
/// [`ListenError`].
pub async fn listen(host: IpAddr, port: u16) -> Result<Listening, ListenError> {
    // An unspecified address contains loopback, which cannot be bound beside it.
    let first = if host.is_unspecified() { host } else { Ipv4Addr::LOCALHOST.into() };
    let (first, port) = bind(SocketAddr::from((first, port))).await?;
    let mut listeners = vec![first];
    if host != Ipv4Addr::LOCALHOST && !host.is_unspecified() {
        listeners.push(bind(SocketAddr::from((host, port))).await?.0);
    }
    Ok(Listening { host, port, listeners })
}

/// Binds one address; the listener and its port.
pub(crate) async fn bind(address: SocketAddr) -> Result<(TcpListener, u16), ListenError> {
    let bound = async {
        let listener = TcpListener::bind(address).await?;
        let port = listener.local_addr()?.port();
        Ok((listener, port))
    };
    bound.await.map_err(|source: io::Error| match source.kind() {
        io::ErrorKind::AddrInUse => ListenError::PortTaken(address),
        io::ErrorKind::AddrNotAvailable => ListenError::NotHere(address.ip()),
        _ => ListenError::Bind { address, source },
    })
}

/// The listeners of a gateway.
#[derive(Debug)]
pub struct Listening {
    host: IpAddr,
    port: u16,
    listeners: Vec<TcpListener>,
}

impl Listening {
    /// The URL on this machine.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", SocketAddr::from((Ipv4Addr::LOCALHOST, self.port)))
    }

    /// The URLs at its other addresses.
    #[must_use]
    pub fn other_urls(&self) -> Vec<String> {
        let url = |host| format!("http://{}", SocketAddr::from((host, self.port)));
        self.other_hosts().into_iter().map(url).collect()
    }

    /// Where the processes are that the stack starts. Players come to the host of `public_url`, as
    /// [`parse_public_url`] accepted it, if there is one.
    #[must_use]
    pub fn place(&self, public_url: Option<&str>) -> Place {
        let public_host = public_url.and_then(|url| Some(url.parse::<Url>().ok()?.host_str()?.to_owned()));
        let own_host = || self.other_hosts().first().map(ToString::to_string);
        Place { url: self.url(), host: public_host.or_else(own_host) }
    }

    fn other_hosts(&self) -> Vec<IpAddr> {
        match self.host {
            host if host == Ipv4Addr::LOCALHOST => Vec::new(),
            host if host.is_unspecified() => addresses_of_this_machine(host.is_ipv4()),
            host => vec![host],
        }
    }

    /// The listeners themselves.
    #[must_use]
    pub fn into_listeners(self) -> Vec<TcpListener> {
        self.listeners
    }
}

/// Where the processes are that a stack starts.
#[derive(Clone, Debug)]
pub struct Place {
    /// Where they register: on this machine, whatever others call it.
    pub url: String,
    /// The name or address of this machine at which players are to reach them; `None` when nobody comes from
    /// elsewhere.
    pub host: Option<String>,
}

/// Checks a URL at which clients reach the stack, and returns it without a `/` at its end.
///
/// # Errors
/// What it must be, in words.
pub fn parse_public_url(text: &str) -> Result<String, String> {
    let is_complete = |url: &Url| {
        matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none()
    };
    let url = text.parse::<Url>().ok().filter(is_complete);
    let url = url.ok_or("must be like `https://muster.example`, without user, query and fragment")?;
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

/// Checks an address to listen at.
///
/// # Errors
/// What it must be, in words.
pub fn parse_host(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| "must be an IP address of this machine, or 0.0.0.0 for all of them".to_owned())
}

/// The addresses at which other machines may reach this one.
fn addresses_of_this_machine(is_ipv4_only: bool) -> Vec<IpAddr> {
    let interfaces = if_addrs::get_if_addrs().unwrap_or_default();
    let reachable =
        interfaces.iter().filter(|interface| !interface.is_loopback() && !interface.is_link_local());
    reachable.map(if_addrs::Interface::ip).filter(|address| address.is_ipv4() || !is_ipv4_only).collect()
}

/// Why the gateway cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Another program listens at the address.
    #[error("{0} is in use by another program; stop it or choose another port")]
    PortTaken(SocketAddr),
    /// The address is another machine's, or nobody's.
    #[error("{0} is no address of this machine; use one of its own, or 0.0.0.0 for all of them")]
    NotHere(IpAddr),
    /// The system refuses the address.
    #[error("cannot listen at {address}: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_public_url_is_http_and_has_no_more_than_a_path() {
        for (text, url) in [
            ("https://muster.example", "https://muster.example"),
            ("http://192.0.2.7:3000/", "http://192.0.2.7:3000"),
            ("https://Example.com/muster/", "https://example.com/muster"),
        ] {
            assert_eq!(parse_public_url(text).as_deref(), Ok(url));
        }
        for text in [
            "muster.example",
            "muster.example:3000",
            "ftp://muster.example",
            "https://",
            "https://me@muster.example",
            "https://muster.example/?a",
            "https://muster.example/#a",
            "",
        ] {
            assert!(parse_public_url(text).is_err(), "{text}");
        }
    }

    #[tokio::test]
    async fn loopback_is_always_listened_at_and_others_are_named() {
        for (host, others) in [("127.0.0.1", 0), ("127.0.0.2", 1)] {
            let listening = listen(host.parse().unwrap(), 0).await.unwrap();
            assert_eq!(listening.url(), format!("http://127.0.0.1:{}", listening.port));
            let named = format!("http://{host}:{}", listening.port);
            assert_eq!(listening.other_urls(), vec![named; others], "{host}");
            assert_eq!(listening.into_listeners().len(), 1 + others);
        }
    }

    #[test]
    fn of_all_addresses_those_are_named_that_others_reach() {
        let urls = |host: &str| {
            let listening = Listening { host: host.parse().unwrap(), port: 3000, listeners: Vec::new() };
            listening.other_urls()
        };
        let (ipv4, all) = (urls("0.0.0.0"), urls("::"));
        for url in all.iter().chain(&ipv4) {
            let address: SocketAddr = url.strip_prefix("http://").unwrap().parse().unwrap();
            assert!(!address.ip().is_loopback() && address.port() == 3000, "{url}");
            assert!(address.is_ipv4() || !ipv4.contains(url), "{url}");
        }
        assert!(ipv4.iter().all(|url| all.contains(url)), "{ipv4:?} {all:?}");
    }

    #[tokio::test]
    async fn a_taken_port_and_a_foreign_address_are_named() {
        let taken = listen(Ipv4Addr::LOCALHOST.into(), 0).await.unwrap();
        let (host, port) = (Ipv4Addr::LOCALHOST.into(), taken.port);
        let address = SocketAddr::from((host, port));
        assert!(matches!(listen(host, port).await, Err(ListenError::PortTaken(at)) if at == address));
        // An address for documentation: no machine should have it.
        let foreign: IpAddr = "203.0.113.7".parse().unwrap();
        assert!(matches!(listen(foreign, 0).await, Err(ListenError::NotHere(at)) if at == foreign));
    }
}
