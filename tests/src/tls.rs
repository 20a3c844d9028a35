//! Servers of the tests behind TLS.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, crypto::ring, pki_types::PrivateKeyDer, version::TLS13},
};

/// Listens with TLS 1.3 in front of the server at the plain URL `inner`: where, and the certificate to trust, in PEM.
pub async fn behind_tls(inner: &str) -> (String, String) {
    let inner = inner.strip_prefix("http://").expect("a plain URL").trim_end_matches('/');
    let inner: SocketAddr = inner.parse().expect("an address and a port");
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
    tokio::spawn(async move {
        loop {
            let (outer, _) = listener.accept().await.expect("a connection");
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                // Who does not trust it ends the handshake.
                let Ok(mut outer) = acceptor.accept(outer).await else { return };
                let mut inner = TcpStream::connect(inner).await.expect("the emulator listens");
                // A function that is killed hangs up without a word.
                let _ended = copy_bidirectional(&mut outer, &mut inner).await;
            });
        }
    });
    (format!("https://{address}"), made.cert.pem())
}
