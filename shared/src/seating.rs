//! What surrounds the match of one request for a seat: its retries get the same seat (`Idempotency-Key`), its
//! client holds no more seats than it may, and the response.
//!
//! [`begin`](entrance::Seating::begin) comes before everything that a retry need not pass again,
//! [`finish`](entrance::Seating::finish) after the match. In between, the matchmaker names to the
//! [`Seeker`](seeker::Seeker) each lobby in which it is about to take the seat, and stops if the seeker
//! refuses. So there is no seat without a hold, and none that a retry would not find. Without a limit and
//! without the header, nothing here calls DynamoDB.
//!
//! A hold whose seat its lobby does not know counts for half a minute, longer than any request lives, because
//! a request may be about to take that seat. A dead server's lobby ends before its holds go, because a late
//! heartbeat could revive its seats.
//!
//! A run that lost its lease may note no other lobby, so it takes no second seat, and it gives none back. A
//! try whose outcome is unknown ends a run: only its retry finds out.

pub mod entrance;
pub mod reply;
pub mod seeker;
