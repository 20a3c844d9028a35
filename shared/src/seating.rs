//! The parts of a request for a seat around the match: retries that get the same seat (`Idempotency-Key`),
//! the limit of seats per client, and the response.
//!
//! [`begin`](entrance::Seating::begin) comes before all steps that a retry skips,
//! [`finish`](entrance::Seating::finish) after the match. In between, the matchmaker reports to the
//! [`Seeker`](seeker::Seeker) each lobby that it is about to try, and stops if the seeker refuses. So each
//! seat has a hold, and a retry finds it. Without a limit and without the header, nothing here calls
//! DynamoDB.
//!
//! A hold whose seat is not in its lobby counts for half a minute, longer than any request lives, because a
//! request may be about to take that seat. A dead server's lobby ends before its holds do, because a late
//! heartbeat could revive its seats.
//!
//! A run that lost its lease may note no other lobby, so it takes no second seat, and it gives none back. A
//! try whose outcome is unknown ends the run, and the outcome is left to a retry.

pub mod entrance;
mod fates;
mod pressure;
pub mod reply;
pub mod seeker;
