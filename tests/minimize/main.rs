//! Minimization: the oracle, the log, and what is made of them.
#![cfg(feature = "engine")]

mod between;
mod budget;
mod certificate;
mod crash_oracle;
mod crashes;
#[path = "../delta/debuggingbook.rs"]
mod debuggingbook;
mod driver;
mod failures;
mod isolate;
mod isolate_laws;
mod journal;
mod lines;
mod memory;
mod proof;
mod record;
mod replay;
mod resume;
mod schema;
mod scripted;
mod searches;
mod slips;
mod verify;
