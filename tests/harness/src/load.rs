//! Load over HTTP: connections that each send one request after another, and how long the answers took.

use std::{
    cell::RefCell,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::{
    body::Bytes,
    client::conn::http1::{SendRequest, handshake},
};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpSocket;

/// A connection that is kept alive.
#[derive(Debug)]
pub struct Connection {
    sender: SendRequest<Full<Bytes>>,
    host: SocketAddr,
}

/// What became of a request.
#[derive(Debug)]
pub struct Reply {
    /// Its status.
    pub status: StatusCode,
    /// Its body.
    pub body: Bytes,
    /// From before the request was sent to after the whole body was there.
    pub elapsed: Duration,
}

impl Reply {
    /// The body; `null` when it is no JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The body of a success, which it must be.
    #[must_use]
    pub fn expect_ok(&self) -> Value {
        assert_eq!(self.status, StatusCode::OK, "{}", String::from_utf8_lossy(&self.body));
        self.json()
    }
}

/// A request that is sent many times.
#[derive(Clone, Debug)]
pub struct Post {
    /// Its path.
    pub path: String,
    /// Its headers besides those of every request.
    pub headers: Vec<(&'static str, String)>,
    /// Its body.
    pub body: Bytes,
}

impl Post {
    /// A request without a body.
    pub fn empty(path: impl Into<String>, token: &str) -> Self {
        let headers = vec![("authorization", format!("Bearer {token}"))];
        Self { path: path.into(), headers, body: Bytes::new() }
    }

    /// A request of JSON, with a token if there is one.
    pub fn json(path: impl Into<String>, token: Option<&str>, body: &Value) -> Self {
        let mut headers = vec![("content-type", "application/json".to_owned())];
        headers.extend(token.map(|token| ("authorization", format!("Bearer {token}"))));
        Self { path: path.into(), headers, body: body.to_string().into() }
    }
}

impl Connection {
    /// Connects to the server at `base_url`.
    pub async fn open(base_url: &str) -> Self {
        Self::open_from(base_url, Ipv4Addr::LOCALHOST).await
    }

    /// Connects to the server at `base_url` from an address of this machine.
    pub async fn open_from(base_url: &str, source: Ipv4Addr) -> Self {
        let host = base_url.strip_prefix("http://").expect("a plain URL");
        let host: SocketAddr = host.trim_end_matches('/').parse().expect("an address and a port");
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_nodelay(true).expect("a socket that sends at once");
        socket
            .bind((IpAddr::V4(source), 0).into())
            .unwrap_or_else(|error| panic!("{source} cannot be sent from: {error}"));
        let stream = socket.connect(host).await.expect("the server listens");
        let (sender, connection) = handshake(TokioIo::new(stream)).await.expect("a connection");
        // If the connection ends, the next request reports it.
        tokio::spawn(connection);
        Self { sender, host }
    }

    /// Sends a request and waits for its answer.
    pub async fn post(&mut self, post: &Post) -> Reply {
        self.send_as(Method::POST, post).await
    }

    /// The same with another method.
    pub async fn send_as(&mut self, method: Method, post: &Post) -> Reply {
        let mut request = Request::builder().method(method).uri(&post.path);
        for (name, value) in &post.headers {
            request = request.header(*name, value);
        }
        self.send(request.body(Full::new(post.body.clone())).expect("a request")).await
    }

    /// Sends a request without a body.
    pub async fn ask(&mut self, method: Method, path: &str) -> Reply {
        let request = Request::builder().method(method).uri(path);
        self.send(request.body(Full::default()).expect("a request")).await
    }

    async fn send(&mut self, mut request: Request<Full<Bytes>>) -> Reply {
        let host = self.host.to_string().parse().expect("a header's value");
        request.headers_mut().insert("host", host);
        let began = Instant::now();
        self.sender.ready().await.expect("the connection is kept alive");
        let response = self.sender.send_request(request).await.expect("an answer");
        let (parts, body) = response.into_parts();
        let body = body.collect().await.expect("a whole body").to_bytes();
        Reply { status: parts.status, body, elapsed: began.elapsed() }
    }
}

/// Connections to the server at `base_url`.
pub async fn connections(base_url: &str, count: usize) -> Vec<Connection> {
    join_all((0..count).map(|_| Connection::open(base_url))).await
}

/// Lets each of `workers` do one of `jobs` after another until none is left, and returns the results.
pub async fn share<W, J, T>(
    workers: &mut [W],
    jobs: impl IntoIterator<Item = J>,
    work: impl AsyncFn(&mut W, J) -> T,
) -> Vec<T> {
    let jobs = RefCell::new(jobs.into_iter());
    let (jobs, work) = (&jobs, &work);
    let shares = workers.iter_mut().map(|worker| async move {
        let mut done = Vec::new();
        loop {
            let next = jobs.borrow_mut().next();
            let Some(job) = next else { return done };
            done.push(work(worker, job).await);
        }
    });
    join_all(shares).await.into_iter().flatten().collect()
}

/// What a run of requests came to.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// The times of the successful requests, shortest first.
    times: Vec<Duration>,
    /// How many did not.
    pub refused: usize,
    /// How long all of it took.
    pub elapsed: Duration,
}

impl Run {
    /// The run that was answered by `replies`.
    #[must_use]
    pub fn of<'a>(
        replies: impl IntoIterator<Item = &'a Reply>,
        is_done: impl Fn(&Reply) -> bool,
        elapsed: Duration,
    ) -> Self {
        let (done, refused): (Vec<_>, Vec<_>) = replies.into_iter().partition(|reply| is_done(reply));
        let mut times: Vec<_> = done.iter().map(|reply| reply.elapsed).collect();
        times.sort_unstable();
        Self { times, refused: refused.len(), elapsed }
    }

    /// Requests a second; refused ones do not count.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.times.len() as f64 / self.elapsed.as_secs_f64()
    }

    /// Within how many milliseconds `percent` of the requests were answered.
    #[must_use]
    pub fn millis(&self, percent: usize) -> f64 {
        let last = self.times.len().saturating_sub(1);
        let time = self.times.get((self.times.len() * percent / 100).min(last)).copied().unwrap_or_default();
        time.as_secs_f64() * 1_000.0
    }
}
