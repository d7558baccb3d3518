//! Minimization: the oracle, the log, and what is made of them.
#![cfg(feature = "engine")]

mod budget;
mod certificate;
mod crash_oracle;
mod crashes;
mod driver;
mod failures;
mod hints;
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
