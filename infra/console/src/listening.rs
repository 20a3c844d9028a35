//! The accept loop of every listener of this machine: it accepts connections and serves HTTP/1.1 on them.

use std::{io, net::SocketAddr, pin::pin, time::Duration};

use axum::response::Response;
use http::Request;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
};
use tokio::{
    net::TcpListener,
    task::{JoinError, JoinSet},
    time::{sleep, timeout},
};

/// Largest request line and headers together that API Gateway accepts.
pub const HEADER_LIMIT_BYTES: usize = 10_240;

/// How long a client may take to send headers. This also bounds the idle time between two requests.
const HEADER_TIMEOUT: Duration = Duration::from_secs(60);

/// How long requests under way may take to finish at shutdown. A client may never send the rest of its
/// request.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);

/// Pause after a failed `accept`: usually the process has no file descriptor left until a client disconnects.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves HTTP/1.1 on `listener` until `shutdown` resolves, then lets requests under way finish, for at most
/// five seconds. When it is dropped before, it cuts every connection.
///
/// Where `answer` has no response, the connection is closed without one.
///
/// `header_limit_bytes` limits the request line and headers together; `None` leaves them hyper's limit, about
/// 400 KB.
pub async fn serve<A, F, R>(
    listener: TcpListener,
    header_limit_bytes: Option<usize>,
    answer: A,
    shutdown: impl Future<Output = ()>,
) where
    A: Fn(Request<Incoming>, SocketAddr) -> F + Clone + Send + 'static,
    F: Future<Output = R> + Send + 'static,
    R: Into<Option<Response>> + 'static,
{
    let own = listener.local_addr().map(|address| address.to_string()).unwrap_or_default();
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
    if let Some(limit) = header_limit_bytes {
        http.max_header_size(limit);
    }
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            Some(ended) = connections.join_next() => report(ended, &own),
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    // A response is one write, which Nagle's algorithm would only delay.
                    let _ = stream.set_nodelay(true);
                    let answer = answer.clone();
                    let service = service_fn(move |request| {
                        let answered = answer(request, peer);
                        async move {
                            let answer: Option<Response> = answered.await.into();
                            answer.ok_or_else(|| io::Error::from(io::ErrorKind::ConnectionAborted))
                        }
                    });
                    let connection = http.serve_connection(TokioIo::new(stream), service);
                    connections.spawn(graceful.watch(connection));
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    if timeout(SHUTDOWN_GRACE, graceful.shutdown()).await.is_err() {
        tracing::warn!(connections = connections.len(), "connections were cut at shutdown");
    }
}

/// Reports a connection that did not send HTTP. Most likely it sent TLS, whose first byte begins no method.
fn report(ended: Result<hyper::Result<()>, JoinError>, own: &str) {
    if let Ok(Err(error)) = ended
        && error.is_parse()
        && !error.is_parse_too_large()
    {
        tracing::warn!(
            "a client did not send HTTP, perhaps because it used https: the address is http://{own}"
        );
    }
}
