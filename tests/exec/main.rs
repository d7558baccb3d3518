//! Tests of `exec`: every way of execution on real programs.
#![cfg(feature = "engine")]

mod abandoned;
mod captured;
#[path = "../compiled/mod.rs"]
mod compiled;
mod conformance;
mod constructors;
mod deferred;
mod descendants;
mod endurance;
mod facts;
mod faults;
mod filters;
mod forkserver;
mod forkserver_greeting;
mod forkserver_hostile;
mod fresh_coverage;
mod hostile;
mod interestingness;
mod keys;
mod killed;
mod kinds;
mod libfuzzer;
mod limits;
#[path = "../needs/mod.rs"]
mod needs;
mod observe;
mod observe_callbacks;
mod odd_system;
mod programs;
mod sandbox;
mod sandbox_ends;
mod sandboxed;
mod scripts;
mod snapshot;
mod stage;
#[path = "../stream/mod.rs"]
mod stream;
mod target_record;
mod terminal;
mod terminal_state;
mod unprivileged;
mod ways;
mod words;
