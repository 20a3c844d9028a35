//! The cryptography provider of jsonwebtoken. Its own providers link aws-lc, as large as a second TLS stack,
//! or RSA. TLS links ring anyway, which verifies in constant time.

use jsonwebtoken::{
    Algorithm,
    crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils},
    errors::{ErrorKind, Result as JwtResult},
};
use ring::hmac;
use signature::{Error as SignatureError, Signer, Verifier};

/// HS256 by ring; no other algorithm, no JWKs.
pub(super) static RING_PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: |algorithm, key| Ok(Box::new(RingHs256::new(*algorithm, key.as_bytes())?)),
    verifier_factory: |algorithm, key| Ok(Box::new(RingHs256::new(*algorithm, key.try_get_as_bytes()?)?)),
    key_utils: KeyUtils::new_unimplemented(),
};

struct RingHs256(hmac::Key);

impl RingHs256 {
    fn new(algorithm: Algorithm, secret: &[u8]) -> JwtResult<Self> {
        match algorithm {
            Algorithm::HS256 => Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, secret))),
            _ => Err(ErrorKind::InvalidAlgorithm.into()),
        }
    }
}

impl Signer<Vec<u8>> for RingHs256 {
    fn try_sign(&self, message: &[u8]) -> Result<Vec<u8>, SignatureError> {
        Ok(hmac::sign(&self.0, message).as_ref().to_vec())
    }
}

impl Verifier<Vec<u8>> for RingHs256 {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), SignatureError> {
        hmac::verify(&self.0, message, signature).map_err(|_| SignatureError::new())
    }
}

impl JwtSigner for RingHs256 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

impl JwtVerifier for RingHs256 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}
