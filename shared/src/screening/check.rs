//! The screening of a request. Its time is bounded: three seconds for the secrets, five for the provider,
//! five for all backends together.

use crate::{
    models::errors::Error,
    request::Request,
    screening::admission::{Admission, Screening},
    seating::seeker::Seeker,
};

impl Screening {
    /// Checks whether the player of `request` may enter, after it checks that `seeker` may have its seat.
    /// Makes no call for a version without captcha and an action without verification. `edge_secret`
    /// authenticates the edge, if there is one.
    ///
    /// # Errors
    /// Those of [`Seeker::refuse_again`] and [`Seeker::before_screening`]; [`Error::CaptchaRequired`],
    /// [`Error::CaptchaFailed`], [`Error::CaptchaUnavailable`], [`Error::VerificationFailed`],
    /// [`Error::VerificationRequestFailed`]; [`Error::Unavailable`], [`Error::Bug`].
    pub async fn check(
        &self,
        admission: &Admission<'_>,
        request: &Request,
        edge_secret: Option<&str>,
        seeker: &Seeker,
    ) -> Result<(), Error> {
        seeker.refuse_again().await?;
        let client_ip = request.client_ip(edge_secret);
        if let Some(config) = &admission.version.config.captcha {
            self.check_captcha(admission, config, client_ip, seeker).await?;
        }
        self.verify(admission, client_ip, seeker).await
    }
}
