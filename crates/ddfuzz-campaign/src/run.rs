//! Runs the campaign that fits the target, and gives its [`Summary`].

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::error::CampaignError;
use super::screen::Screen;
use super::settings::{Generator, Settings};
use super::until::Until;
use super::{classic, guided};
use ddfuzz_store::Store;
use ddfuzz_store::report::EndedBy;

/// Runs one call of the campaign that `store` belongs to. When `stop` turns true it saves its
/// state and ends.
///
/// # Errors
/// When the target cannot be run or the output directory cannot be written; what was found until
/// then is kept.
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

/// The end of one call of a campaign.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Runs committed in this count.
    pub runs: u64,
    /// Of them, those made by this call.
    pub runs_of_call: u64,
    /// How long this call fuzzed.
    pub fuzzed: Duration,
    /// Groups of crashes that this count found first, or earlier calls that were cut off.
    pub new_groups: u64,
    /// Runs of this count that crashed in a group known before.
    pub known_crashes: u64,
    /// Runs that crashed, those of earlier calls of the campaign included.
    pub crashes: u64,
    /// Whether the user stopped it.
    pub interrupted: bool,
    /// What ended it.
    pub ended_by: EndedBy,
    /// Which of the ends that were waited for, where one of them did.
    pub until: Option<Until>,
    /// Findings for which there was no room on the disk until the time was over.
    pub unstored: u64,
    /// Runs over their time limit that are stored without a name: the time was over before it was
    /// found out where they hang.
    pub unnamed: u64,
    /// Whether there was still none at the end: some of what is counted may not be stored.
    pub out_of_room: bool,
    /// Whether the program was rebuilt since the campaign began.
    pub rebuilt: bool,
}

impl Summary {
    /// Runs per second of this call.
    pub fn runs_per_s(&self) -> f64 {
        self.runs_of_call as f64 / self.fuzzed.as_secs_f64().max(0.001)
    }
}
