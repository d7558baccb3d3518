//! Minimization: the oracle, the log, and what is made of them.
#![cfg(feature = "engine")]

mod budget;
mod certificate;
mod crash_oracle;
mod crashes;
mod crew;
mod driver;
mod failures;
mod journal;
mod lines;
mod memory;
mod parallel;
mod proof;
mod record;
mod replay;
mod resume;
mod schema;
mod scripted;
mod searches;
mod slips;
mod verify;
