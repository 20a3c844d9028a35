//! A request for a seat, from its first check to its reply: caps on clients and repeated requests.

pub mod entrance;
pub mod reply;
pub mod seeker;
