//! Ground truth: programs with planted bugs, of which a canary says which one an input sets off,
//! and how far the groups of `triage` are from those bugs. It mirrors nothing in `src/`: what is
//! judged here is what all of it comes to.
//!
//! The tables are printed by `cargo test --test ground_truth -- --nocapture` and by
//! `cargo bench --bench keys`.
#![cfg(feature = "engine")]

mod bugs;
mod builds;
#[path = "../compiled/mod.rs"]
mod compiled;
mod formulas;
mod hangs;
#[path = "../needs/mod.rs"]
mod needs;
mod pending;
mod repeats;
mod runs;
mod score;
mod scoring;
#[cfg(feature = "campaign")]
mod slips;
mod table;

/// Held by the tests of hangs, one at a time: one of them keeps a processor busy on purpose.
static HANGS: std::sync::Mutex<()> = std::sync::Mutex::new(());

/// Waits for the other tests of hangs to end.
fn alone_with_hangs() -> std::sync::MutexGuard<'static, ()> {
    HANGS
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
