//! The screening of a request. Its time is bounded: three seconds for the secrets, five for the provider,
//! five for all backends together.

use crate::{
    models::errors::Error,
    screening::admission::{Admission, Screening},
};

impl Screening {
    /// Checks whether the players may enter, after it checks that they may have their seats. Makes no call
    /// for a version without captcha and an action without verification.
    ///
    /// # Errors
    /// Those of the seeker's [`refuse_again`] and [`before_screening`]; [`Error::CaptchaRequired`],
    /// [`Error::CaptchaFailed`], [`Error::CaptchaUnavailable`], [`Error::VerificationFailed`],
    /// [`Error::VerificationRequestFailed`]; [`Error::Unavailable`], [`Error::Bug`].
    ///
    /// [`refuse_again`]: crate::seating::seeker::Seeker::refuse_again
    /// [`before_screening`]: crate::seating::seeker::Seeker::before_screening
    pub async fn check(&self, admission: &Admission<'_>) -> Result<(), Error> {
        admission.seeker.refuse_again().await?;
        if let Some(config) = &admission.version.config.captcha {
            self.check_captcha(admission, config).await?;
        }
        self.verify(admission).await
    }
}
