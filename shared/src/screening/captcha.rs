//! Captchas: whether one is due, and whether its provider accepts the client's response to it.
//!
//! One item for each client and namespace has the time of the client's last pass, a digest of the captcha
//! response, and the number of requests since. A request counts itself by one update, on condition that the
//! pass still counts, so exactly `requests_before_reverify` pass, even concurrent ones. Only a refused update
//! leads to the provider, and then to a new pass. While a pass counts, a captcha response is ignored
//! (decision 49).
//!
//! A provider accepts each captcha response once, but a client retries a find whose response was lost. Until
//! the pass is written, a retry calls Turnstile with the same idempotency key, a digest of client, captcha
//! response and last pass: Turnstile recognises the retry, and no captcha response brings two passes.
//! Afterwards the item has its digest, for hCaptcha too, and admits it three times within a minute without
//! resetting the count.

use std::{net::IpAddr, time::Duration};

use ring::hmac;
use serde::Deserialize;
use url::form_urlencoded;

use crate::{
    base::{ambient::Timestamp, json::strict_json},
    models::{
        client::Client,
        errors::Error,
        version::{CaptchaConfig, CaptchaKeys, CaptchaProvider},
    },
    outside::web_client::{NoAnswer, Post},
    screening::admission::{Admission, Screening},
    store::captcha::{CaptchaPass, CaptchaTerms, PassState},
    wire::Captcha,
};

/// How long a provider may take.
const PROVIDER_TIMEOUT: Duration = Duration::from_secs(5);
/// Largest response of a provider that is read, in bytes; real ones have some hundred.
const PROVIDER_ANSWER_BYTES_MAX: usize = 16 * 1_024;
/// Longest captcha response that is sent to a provider, in bytes. Turnstile's have at most 2,048, hCaptcha's
/// some thousand.
const RESPONSE_BYTES_MAX: usize = 16 * 1_024;
/// How long after its pass a captcha response still admits retries of the same request.
const REPEAT_SPAN: Duration = Duration::from_secs(60);
/// How many retries it admits.
const REPEATS_MAX: u32 = 3;
/// Bytes of a captcha response's digest.
const DIGEST_BYTES: usize = 16;
/// The providers' codes for faults of the deployment or the provider, not of the player's response.
const FAULT_CODES: [&str; 7] = [
    "bad-request",
    "internal-error",
    "invalid-input-secret",
    "missing-input-secret",
    "not-using-dummy-passcode",
    "sitekey-secret-mismatch",
    "invalid-sitekey",
];

/// The fields of a provider's response that count.
#[derive(Debug, Deserialize)]
struct SiteVerify {
    success: bool,
    #[serde(default, rename = "error-codes")]
    error_codes: Vec<String>,
}

impl Screening {
    /// Checks that the client need not pass a captcha now, or has just done so.
    pub(super) async fn check_captcha(
        &self,
        admission: &Admission<'_>,
        config: &CaptchaConfig,
    ) -> Result<(), Error> {
        let client = admission.seeker.client();
        let terms = CaptchaTerms { ttl: config.ttl(), requests: config.requests_before_reverify };
        let now = self.ambient.now();
        let last = match self.store.count_captcha_request(client, terms, now).await? {
            PassState::Passed => return Ok(()),
            PassState::Due(last) => last,
        };
        let (provider, keys) = config
            .providers()
            .next()
            .ok_or_else(|| Error::CaptchaUnavailable("only a later release knows its provider".to_owned()))?;
        let Some(answered) =
            admission.entry.captcha.as_ref().filter(|captcha| **captcha != Captcha::default())
        else {
            return Err(Error::CaptchaRequired { provider, site_key: keys.site_key.clone() });
        };
        let response = match provider {
            CaptchaProvider::Hcaptcha => &answered.hcaptcha,
            CaptchaProvider::Turnstile => &answered.turnstile,
        };
        let response = response.as_ref().map(|response| response.client_response.as_str());
        let response =
            response.filter(|response| !response.is_empty() && response.len() <= RESPONSE_BYTES_MAX);
        let response = response.ok_or(Error::CaptchaFailed)?;

        let digest = self.digest(client, &["answer", response]);
        let answer = digest.simple().to_string();
        if last.as_ref().is_some_and(|last| last.answer == answer) {
            let oldest = now.before(REPEAT_SPAN);
            let repeats = self.store.repeat_captcha_answer(client, &answer, oldest, REPEATS_MAX).await?;
            return if repeats { Ok(()) } else { Err(Error::CaptchaFailed) };
        }
        admission.seeker.before_screening().await?;
        let question = CaptchaQuestion { provider, keys, response, client_ip: admission.seeker.client_ip() };
        self.ask_provider(admission, client, &question, last.as_ref()).await?;
        self.store.pass_captcha(client, &answer, self.ambient.now()).await
    }

    async fn ask_provider(
        &self,
        admission: &Admission<'_>,
        client: &Client,
        question: &CaptchaQuestion<'_>,
        last: Option<&CaptchaPass>,
    ) -> Result<(), Error> {
        let secrets = self.secrets.of(admission.version).await?;
        let secret = secrets.captcha_key();
        let secret = secret.ok_or_else(|| Error::Bug("a version's captcha key is gone".to_owned()))?;
        let url = match question.provider {
            CaptchaProvider::Hcaptcha => &self.hcaptcha_url,
            CaptchaProvider::Turnstile => &self.turnstile_url,
        };
        let post = Post {
            url,
            content_type: "application/x-www-form-urlencoded",
            headers: Vec::new(),
            body: self.form(client, question, secret, last),
            answer_bytes_max: Some(PROVIDER_ANSWER_BYTES_MAX),
        };
        let unavailable =
            |cause: String| Error::CaptchaUnavailable(format!("{}: {cause}", question.provider.name()));
        let answer = self.web.post(post, PROVIDER_TIMEOUT).await;
        let answer = answer.map_err(|error: NoAnswer| unavailable(error.to_string()))?;
        if answer.status.as_u16() != 200 {
            return Err(unavailable(format!("it responded with status {}", answer.status.as_u16())));
        }
        let verified: SiteVerify = strict_json(&answer.body)
            .map_err(|_| unavailable("its response is not a JSON object with `success`".to_owned()))?;
        if verified.success {
            return Ok(());
        }
        match verified.error_codes.iter().find(|code| FAULT_CODES.contains(&code.as_str())) {
            Some(fault) => Err(unavailable(format!("it reported a fault: {fault}"))),
            None => Err(Error::CaptchaFailed),
        }
    }

    /// The form for a provider.
    fn form(
        &self,
        client: &Client,
        question: &CaptchaQuestion<'_>,
        secret: &str,
        last: Option<&CaptchaPass>,
    ) -> String {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("secret", secret).append_pair("response", question.response);
        if let Some(address) = question.client_ip {
            form.append_pair("remoteip", &address.to_canonical().to_string());
        }
        match question.provider {
            CaptchaProvider::Hcaptcha => form.append_pair("sitekey", &question.keys.site_key),
            CaptchaProvider::Turnstile => {
                let last_at = last.map_or(Timestamp::default(), |last| last.passed_at).to_string();
                let key = self.digest(client, &["idempotency", question.response, &last_at]);
                form.append_pair("idempotency_key", &key.to_string())
            }
        };
        form.finish()
    }

    /// A digest of `parts`, different for each client, namespace and deployment.
    fn digest(&self, client: &Client, parts: &[&str]) -> uuid::Uuid {
        let mut digest = hmac::Context::with_key(self.keys.address_key());
        let of_client = [client.namespace_id.as_str(), client.client_id.as_str()];
        for part in ["captcha"].iter().chain(&of_client).chain(parts) {
            digest.update(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            digest.update(part.as_bytes());
        }
        let mut bytes = [0; DIGEST_BYTES];
        bytes.iter_mut().zip(digest.sign().as_ref()).for_each(|(byte, digest)| *byte = *digest);
        uuid::Builder::from_random_bytes(bytes).into_uuid()
    }
}

/// The data of a question to a provider.
struct CaptchaQuestion<'a> {
    provider: CaptchaProvider,
    keys: &'a CaptchaKeys,
    response: &'a str,
    client_ip: Option<IpAddr>,
}
