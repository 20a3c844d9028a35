//! Connections of functions to AWS: by HTTPS, trusting only the authorities of AWS.
//!
//! A machine trusts some 145 authorities, and reading them took two fifths of a function's time from its
//! start to its first response. Instead, the binary contains the five authorities of AWS's own endpoints
//! (Amazon Trust Services; the first expires in 2037). For other hosts, such as captcha providers, a function
//! trusts all of the machine's.

use aws_smithy_http_client::{
    Builder, Connector, HttpClientError,
    tls::{Provider, TlsContext, TrustStore, rustls_provider::CryptoMode},
};
use aws_smithy_runtime_api::{
    box_error::BoxError,
    client::{
        connector_metadata::ConnectorMetadata,
        http::{HttpClient, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector},
        runtime_components::RuntimeComponents,
    },
};
use aws_smithy_types::config_bag::ConfigBag;
use rustls_pki_types::{CertificateDer, pem::PemObject as _};

/// As AWS publishes them: Amazon Root CA 1 to 4 and Starfield Services Root Certificate Authority - G2.
const AUTHORITIES: &str = include_str!("aws/authorities.pem");

/// The cryptography of every connection.
pub const CRYPTOGRAPHY: Provider = Provider::Rustls(CryptoMode::Ring);

/// A client for AWS's endpoints in `region`, which trusts the authorities of `bundle` (PEM) instead if there
/// is one.
///
/// Partitions apart from AWS's public ones (China, the isolated and the European sovereign regions) may use
/// others, so the client trusts the machine's authorities there.
///
/// # Errors
/// When the library cannot use these authorities.
pub fn https_client(region: &str, bundle: Option<Vec<u8>>) -> Result<SharedHttpClient, HttpClientError> {
    let context = trusting(region, bundle)?;
    let client = Builder::new().tls_provider(CRYPTOGRAPHY).tls_context(context).build_https();
    Ok(SharedHttpClient::new(ConnectedOnce(client)))
}

/// A connector that trusts the same.
///
/// # Errors
/// As [`https_client`].
pub fn https_connector(
    region: &str,
    bundle: Option<Vec<u8>>,
) -> Result<SharedHttpConnector, HttpClientError> {
    let context = trusting(region, bundle)?;
    let connector = Connector::builder().tls_provider(CRYPTOGRAPHY).tls_context(context).build();
    Ok(SharedHttpConnector::new(connector))
}

fn trusting(region: &str, bundle: Option<Vec<u8>>) -> Result<TlsContext, HttpClientError> {
    let is_apart = ["cn-", "us-iso", "eu-iso", "eusc-"].iter().any(|prefix| region.starts_with(prefix));
    let trusted = match bundle {
        Some(bundle) => TrustStore::empty().with_pem_certificate(bundle),
        None if is_apart => TrustStore::default(),
        None => TrustStore::empty().with_pem_certificate(AUTHORITIES),
    };
    TlsContext::builder().with_trust_store(trusted).build()
}

/// An HTTP client that builds its connector when the first is needed.
///
/// The library's own client first builds another and drops it, to read authorities early. A function opens
/// its connection during init anyway, with the connector that it keeps.
#[derive(Debug)]
struct ConnectedOnce(SharedHttpClient);

impl HttpClient for ConnectedOnce {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        components: &RuntimeComponents,
    ) -> SharedHttpConnector {
        self.0.http_connector(settings, components)
    }

    fn validate_final_config(&self, components: &RuntimeComponents, bag: &ConfigBag) -> Result<(), BoxError> {
        self.0.validate_final_config(components, bag)
    }

    fn connector_metadata(&self) -> Option<ConnectorMetadata> {
        self.0.connector_metadata()
    }
}

/// A client for emulators of AWS, which have no TLS, so it reads no authority.
#[must_use]
pub fn plain_client() -> SharedHttpClient {
    Builder::new().build_http()
}

/// Whether `bundle` holds only valid certificates, at least one.
#[must_use]
pub fn is_bundle(bundle: &[u8]) -> bool {
    let mut certificates = CertificateDer::pem_slice_iter(bundle).peekable();
    certificates.peek().is_some() && certificates.all(|certificate| certificate.is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_authorities_are_five_certificates() {
        let certificates = CertificateDer::pem_slice_iter(AUTHORITIES.as_bytes());
        assert_eq!(certificates.filter(Result::is_ok).count(), 5);
        assert!(is_bundle(AUTHORITIES.as_bytes()));
    }

    #[test]
    fn what_holds_no_certificate_is_no_bundle() {
        for text in ["", "nothing", "-----BEGIN CERTIFICATE-----\n%\n-----END CERTIFICATE-----\n"] {
            assert!(!is_bundle(text.as_bytes()), "{text}");
        }
    }
}
