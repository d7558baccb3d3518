//! What a watch is told.

use std::path::PathBuf;
use std::time::Duration;

use crate::deadline::Deadline;
use crate::minimizing::Minimizing;
use crate::settings::When;
use crate::until::Until;
use ddfuzz_store::KnownGroups;

/// The settings of one call that watches.
#[derive(Clone, Debug)]
pub struct Watching {
    /// Where files are dropped: directories of any fuzzer that `store::foreign` knows, or of none,
    /// and files. Those that are not there yet are waited for.
    pub sources: Vec<PathBuf>,
    /// The greatest length of an input, in bytes; larger files are not run.
    pub max_len: u64,
    /// Look for leaks in all inputs that do not crash, and not only in those that are named so.
    pub leaks: bool,
    /// Wall time that this call watches.
    pub time: Option<Duration>,
    /// The end of the whole call.
    pub deadline: Deadline,
    /// What else ends this call; whichever comes first.
    pub until: Vec<Until>,
    /// When groups are minimized. There is always one thread for it beside those that run inputs:
    /// [`When::Inline`] and [`When::Worker`] are the same.
    pub when: When,
    /// Threads that run inputs.
    pub jobs: usize,
    /// What is run, and how groups are minimized.
    pub minimizing: Minimizing,
    /// Groups to mute: they are counted and stored, not minimized.
    pub known: KnownGroups,
    /// Whether it waits for room where the disk is full; else that is an error. What drops files
    /// for hours is not to be left alone; where nothing more comes, the same call can be made again.
    pub waits_for_room: bool,
}
