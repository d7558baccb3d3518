//! Fuzz campaigns: make inputs, run them, store every crash in the group of its bug, and minimize
//! each new group while fuzzing goes on.
//!
//! In: [`Settings`] and the output directory ([`Store`]). Out: groups in the output directory, and
//! a [`Summary`]. Central: [`run()`], which runs one of two campaigns: the classic one (random
//! inputs that are a function of a seed, for targets without coverage) or the guided one (guided by
//! coverage and built from LibAFL's parts). [`watch`] follows another fuzzer; [`study`] repeats the
//! fuzz studies of system utilities; [`DdminStage`] and [`GroupObjective`] are parts for any LibAFL
//! fuzzer.
//!
//! Read `settings.rs`, `session.rs`, `campaign_state.rs`, `minimizing.rs`, `minimization_order.rs`,
//! then one of `classic/engine.rs`, `guided/engine.rs`, `watch/engine.rs`, `study/engine.rs`.
//!
//! Only `mutation.rs`, `guided/` and `stage/` use LibAFL.

mod campaign_state;
mod classic;
mod classifier;
mod crash_sink;
pub mod dictionary;
mod disk_full;
mod earlier_result;
mod error;
mod failures_of_target;
pub mod generator;
mod guided;
pub mod keystrokes;
mod minimization_order;
mod minimization_queue;
mod minimizing;
mod mutation;
mod rebuild;
mod recheck;
mod recorded_settings;
mod screen;
mod seeds;
mod session;
mod settings;
mod stage;
pub mod study;
mod until;
mod verdict;
pub mod watch;

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

pub(crate) use ddfuzz_model::pool::lock;
use ddfuzz_store::Store;

pub(crate) use campaign_state::{CampaignState, Stored, group_of};
pub use classic::{Plan, RunInput, greatest_length};
pub(crate) use classifier::{Classified, Finding, RunClassifier};
pub use crash_sink::{CrashSink, KnownKey, Report, StoreWriter};
pub use dictionary::{Source, Word, Words};
pub use disk_full::{DiskFullError, DiskWait, PauseGate};
pub use error::CampaignError;
pub use failures_of_target::FailuresOfTarget;
pub use guided::ComparisonValues;
pub use keystrokes::KeystrokesName;
pub(crate) use minimization_order::SlippedInputs;
pub(crate) use minimization_queue::{MinimizerReply, is_of_target, run_minimizer};
pub use minimization_queue::{minimize_pending, pending_entries};
pub use minimizing::{Finished, Minimizing, StartedTarget, Variants};
pub use mutation::{MutatedName, Mutation};
pub(crate) use rebuild::FileStamp;
pub use rebuild::{BuildCheck, ProgramWatch, note_running_build, record_first_build};
pub use recheck::{Examined, Recheck, StoredGroup, examined};
pub use recorded_settings::{RecordedSettings, SeedSources};
pub use screen::{Phase, Progress, Screen, Silent};
pub use seeds::{Seed, SeedError, Seeds, SkippedSeeds};
pub use session::Summary;
pub(crate) use session::{CampaignSession, SessionSettings};
pub use settings::{
    DEFAULT_MAX_LEN, Generator, InvalidShare, Monitoring, Network, Settings, Share, When,
};
pub use stage::{
    DdminStage, FailedRun, FailedRunSlot, GroupMetadata, GroupObjective, GroupRegistry, Passed,
    RunCounter, SharedStore, SolutionCursor, StageSettings, new_campaign, new_study,
};
pub use until::{CampaignStatus, Deadline, InvalidUntil, Until, reached};
pub(crate) use until::{NewGroups, StopCondition};
pub use verdict::{
    Judged, came_once, examined_thrice, fails_alone, fails_on_anything, identity, judged, kind_of,
    line_of, mark_as_run, may_leak, program_hash,
};

/// Runs one call of `ddfuzz run` for the classic or guided campaign with the id `campaign`, in the
/// output directory of `store`. When `stop` turns true, the call saves its state and ends.
///
/// # Errors
/// When the target cannot be run or the output directory cannot be written; everything found before
/// the error is kept.
pub fn run(
    store: &Mutex<Store>,
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
