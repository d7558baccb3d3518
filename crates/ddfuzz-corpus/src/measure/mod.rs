//! What each content of a corpus does: files are listed, read and hashed, and then each content
//! that the journal does not know is run once.
//!
//! [`gather()`] gives all contents, and [`Gathered::run`] what they do, as [`Contents`], in the order
//! of results. [`Contents::repeat`] and [`run_again`] run some of them once more.
//!
//! Localized here: `tempfile` (the file of paths, `ledger.rs`).

mod again;
mod contents;
mod gather;
mod index;
mod runner;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::listing::{ListingReport, NotListed};
use crate::{Amount, Excluded};
use ddfuzz_campaign::CampaignError;
use ddfuzz_exec::{ExecError, Freshness, Target, Way};
use ddfuzz_model::files::FileError;

pub use again::{Each, Files, Inputs, Repeated, run_again, run_alone};
pub use contents::Contents;
pub use gather::{Gathered, NotRead, gather, read as read_input};
pub use runner::Runners;

/// The name of the journal in an output directory.
pub const JOURNAL: &str = "clean.journal";
/// The name of the journal of runs that each have a separate process.
pub const JOURNAL_OF_FRESH: &str = "clean.fresh.journal";

/// The name of the journal for this freshness of processes.
pub fn journal_of(freshness: Freshness) -> &'static str {
    match freshness {
        Freshness::Shared => JOURNAL,
        Freshness::Fresh => JOURNAL_OF_FRESH,
    }
}

/// Gathers the inputs at `roots`, and runs each content once, as far as the journal in the output
/// directory `out` does not know what it does: [`gather()`] and [`Gathered::run`] in one.
///
/// # Errors
/// Those of both.
pub fn measure(
    roots: &[PathBuf],
    out: &Path,
    settings: &MeasureSettings<'_>,
    progress: &mut dyn FnMut(&MeasureProgress),
) -> Result<Contents, MeasureError> {
    gather(roots, out, settings, progress)?.run(settings, progress)
}

/// The target to measure with, and how it is run.
#[derive(Clone, Copy, Debug)]
pub struct MeasureSettings<'a> {
    /// The target. Its limits are those that decide whether an input hangs.
    pub target: &'a Target,
    /// How it is run.
    pub way: Way,
    /// Workers; at least one works. No result depends on their number.
    pub jobs: usize,
    /// Longer files are not read, in bytes.
    pub max_len: u64,
    /// Whether runs first have a time limit that is learned from others. A run over it is repeated
    /// within the full limit, and only that decides on a hang.
    pub learn_limit: bool,
    /// Whether runs may share a process, where the way of execution can. In a separate process a
    /// run does not depend on earlier runs.
    pub freshness: Freshness,
    /// Started targets that workers borrow; without them, each worker starts one.
    pub runners: Option<&'a Runners>,
    /// When it turns true, current runs end and no more begin.
    pub stop: &'a AtomicBool,
}

impl MeasureSettings<'_> {
    /// Whether the caller asked to stop.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// What became of the files of a corpus, before any was chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileCounts {
    /// All inputs: contents, duplicates, oversized and unreadable ones.
    pub before: Amount,
    /// Files with the content of another file: all but one of each content.
    pub duplicates: Amount,
    /// Files longer than the greatest length.
    pub oversized: Excluded,
    /// Files that could not be read.
    pub unread: Excluded,
    /// Files that were removed after they were listed.
    pub vanished: Excluded,
    /// What is no input.
    pub listing: ListingReport,
}

/// What was done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeasureProgress {
    /// Files that were read, or could not be.
    pub files: u64,
    /// Their bytes, as far as they are known.
    pub bytes: u64,
    /// Different contents among them.
    pub contents: u64,
    /// Contents that were run.
    pub runs: u64,
    /// Contents that the journal had.
    pub reused: u64,
    /// Contents whose run may be a failure.
    pub suspicious: u64,
}

/// Why measuring ended early. Results until then are in the journal. Unreadable files are no
/// reason.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// A path that was named cannot be listed.
    #[error(transparent)]
    NotListed(#[from] NotListed),
    /// The target cannot be run.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// The identity of the target cannot be determined.
    #[error(transparent)]
    Identity(#[from] CampaignError),
    /// The journal cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
}
