//! Tests of the whole, in one binary: each has a stack of its own on ports of its own, and turns its own
//! clock.

mod agreement;
mod artefacts;
mod cloud;
mod collection;
mod concurrency;
mod conflicts;
mod contract;
mod cost;
mod diagnosis;
mod elections;
mod example;
mod faults;
mod fuzz;
mod lifecycle;
mod matching;
mod metrics;
mod model;
mod process;
mod refusals;
mod runtime;
mod screening;
mod seating;
mod shards;
mod simulation;
mod tags;
