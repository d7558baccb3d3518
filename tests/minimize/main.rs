//! Minimization: the oracle, the log, and what is made of them.
#![cfg(feature = "engine")]

mod between;
mod budget;
mod call;
mod certificate;
mod crash_oracle;
mod crashes;
mod crew;
mod crew_steadiness;
#[path = "../delta/debuggingbook.rs"]
mod debuggingbook;
mod driver;
mod failures;
mod fixed;
mod flaky;
mod hints;
mod isolate;
mod isolate_budget;
mod isolate_laws;
mod journal;
mod large;
mod larger_budget;
mod lines;
mod memory;
mod minors;
mod parallel;
mod proof;
mod record;
mod repeats;
mod replay;
mod requests;
mod resume;
mod schema;
mod scripted;
mod searches;
mod slips;
mod standing;
mod structure;
mod test_oracle;
mod time_limit;
mod values;
mod verify;
