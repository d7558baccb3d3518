//! Minimization: the oracle, the log, and what is made of them.
#![cfg(feature = "engine")]

mod budget;
mod call;
mod certificate;
mod crash_oracle;
mod crashes;
mod crew;
mod crew_steadiness;
mod driver;
mod failures;
mod flaky;
mod hints;
mod journal;
mod larger_budget;
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
mod standing;
mod test_oracle;
mod time_limit;
mod verify;
