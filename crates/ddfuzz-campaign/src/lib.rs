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
pub mod keys;
mod minimizing;
mod mutation;
mod orders;
mod rebuild;
mod recheck;
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
pub use guided::Compared;
pub use keys::KeysName;
pub use minimizing::{Finished, Minimizing, Variants};
pub use mutation::{MutatedName, Mutation};
pub use orders::{left_to_minimize, minimize_left};
pub use rebuild::{BuildCheck, ProgramWatch};
pub use recheck::{Examined, Recheck, examined};
pub use screen::{Phase, Progress, Screen, Silent};
pub use seeds::{Seed, SeedError, Seeds, SkippedSeeds};
pub use session::Summary;
pub use settings::{
    DEFAULT_MAX_LEN, Generator, InvalidShare, Monitoring, Network, Settings, Share, When,
};
pub use stage::{
    Account, CREDIT, DdminStage, GroupMetadata, GroupObjective, LONGEST_SLICE, LocalDesk, Passed,
    RunCounter, Seen, SharedStore, Sight, SolutionCursor, StageSettings, new_campaign, new_study,
};
pub use until::{CampaignStatus, Deadline, InvalidUntil, Until, reached};
pub use verdict::{Judged, fails_on_anything, identity, judged, kind_of, line_of, may_leak};

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

/// Runs one call of the campaign that `store` belongs to. When `stop` turns true, the call saves its
/// state and ends.
///
/// # Errors
/// When the target cannot be run or the output directory cannot be written; what was found until
/// then is kept.
pub fn run(
    store: &Mutex<ddfuzz_store::Store>,
    campaign: &str,
    settings: &Settings,
    screen: &mut dyn Screen,
    stop: &AtomicBool,
) -> Result<Summary, CampaignError> {
    match settings.generator {
        Generator::Classic => classic::run(store, campaign, settings, screen, stop),
        Generator::Guided => guided::run(store, campaign, settings, screen, stop),
    }
}
