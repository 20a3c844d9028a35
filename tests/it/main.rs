//! Tests of the whole, in one binary: each has a stack of its own on ports of its own, and turns its own clock.

mod cloud;
mod concurrency;
mod matching;
mod refusals;
