//! The database of the tests behind TLS.

use std::{convert::Infallible, net::Ipv4Addr, sync::Arc};

use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::{
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use muster_local::emulator::link::{Call, Link};
use tokio::net::TcpListener;
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, crypto::ring, pki_types::PrivateKeyDer, version::TLS13},
};

/// Listens with TLS 1.3 for the database at the end of `link`, as DynamoDB does: where, and the certificate
/// to trust, in PEM.
pub async fn behind_tls(link: &Arc<dyn Link>) -> (String, String) {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
    let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&TLS13])
        .expect("a version that ring speaks")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .expect("a certificate with its key");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let link = Arc::clone(link);
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.expect("a connection");
            stream.set_nodelay(true).expect("a connection");
            let (acceptor, link) = (acceptor.clone(), Arc::clone(&link));
            tokio::spawn(async move {
                // Who does not trust it ends the handshake.
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let service = service_fn(move |request| {
                    let link = Arc::clone(&link);
                    async move { Ok::<_, Infallible>(answer(&*link, request).await) }
                });
                // A function that is killed hangs up without a word.
                let _ended = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
    (format!("https://{address}"), made.cert.pem())
}

/// What the database says to one request of DynamoDB's protocol.
async fn answer(link: &dyn Link, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let target = request.headers().get("x-amz-target").expect("a request of DynamoDB's protocol");
    let operation = target.to_str().expect("an operation's name").rsplit('.').next().unwrap_or_default();
    let operation = operation.to_owned();
    let body = request.into_body().collect().await.expect("a whole request").to_bytes().to_vec();
    let answer = link.carry(Call { operation, body }).await.expect("the emulator runs");
    Response::builder()
        .status(StatusCode::from_u16(answer.status).expect("a status"))
        .header("content-type", "application/x-amz-json-1.0")
        .body(Full::from(answer.body))
        .expect("a response")
}
