//! Fuzz campaigns: makes inputs, runs them, stores every crash in its group and minimizes each new
//! group while fuzzing goes on.
//!
//! In: [`Settings`] and the output directory ([`Store`](ddfuzz_store::Store)). Out: groups in that
//! directory, and a [`Summary`]. Central: [`run()`], which chooses between two campaigns. The
//! classic one is for targets without coverage and is a function of its seed; the guided one is
//! guided by coverage and built of LibAFL's parts. [`watch`] follows another fuzzer; [`study`]
//! repeats the fuzz studies of system utilities; [`DdminStage`] and [`GroupObjective`] are parts
//! for any LibAFL fuzzer.
//!
//! Read `settings.rs`, `run.rs`, `session.rs`, `ledger.rs`, `minimizing.rs`, `schedule.rs`, then
//! one of `classic/engine.rs`, `guided/engine.rs`, `watch/engine.rs`, `study/engine.rs`.
//!
//! Localized here: `crossbeam` (channels between workers and the thread that commits), and in
//! `mutation.rs`, `guided/` and `stage/` LibAFL.

mod campaign_state;
mod classic;
mod classifier;
mod crash_sink;
pub mod dictionary;
mod disk_full;
mod error;
pub mod generator;
mod guided;
pub mod keystrokes;
mod minimization_queue;
mod minimizing;
mod mutation;
mod rebuild;
mod recheck;
mod run;
mod schedule;
mod screen;
mod seeds;
mod session;
mod settings;
mod stage;
pub mod study;
mod until;
mod verdict;
pub mod watch;

pub use classic::{Plan, RunInput, greatest_length};
pub use crash_sink::{CrashSink, KnownKey, Report, StoreWriter};
pub use dictionary::{Source, Word, Words};
pub use disk_full::{DiskFullError, DiskWait, PauseGate};
pub use error::CampaignError;
pub use guided::ComparisonValues;
pub use keystrokes::KeystrokesName;
pub use minimization_queue::{minimize_pending, pending_entries};
pub use minimizing::{Finished, Minimizing, Variants};
pub use mutation::{MutatedName, Mutation};
pub use rebuild::{BuildCheck, ProgramWatch};
pub use recheck::{Examined, Recheck, examined};
pub use run::{Summary, run};
pub use screen::{Phase, Progress, Screen, Silent};
pub use seeds::{Seed, SeedError, Seeds, SkippedSeeds};
pub use settings::{
    DEFAULT_MAX_LEN, Generator, InvalidShare, Monitoring, Network, Settings, Share, When,
};
pub use stage::{
    DdminStage, FailedRun, FailedRunSlot, GroupMetadata, GroupObjective, GroupRegistry, Passed,
    RunCounter, SharedStore, SolutionCursor, StageSettings, new_campaign, new_study,
};
pub use until::{CampaignStatus, Deadline, InvalidUntil, Until, reached};
pub use verdict::{Judged, fails_on_anything, identity, judged, kind_of, line_of, may_leak};
