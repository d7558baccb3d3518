//! The parts for any LibAFL fuzzer.

mod examples;
mod group_registry;
mod killed;
mod objective;
#[path = "../../store/sample.rs"]
#[allow(
    dead_code,
    reason = "each test program that includes this uses a part of it"
)]
mod sample;
mod solutions;
mod state;
