//! Measures the contents of a corpus: lists, reads and hashes files, and runs each content once
//! that is not in the journal.
//!
//! [`gather()`] finds the contents, and [`Gathered::run`] runs them and returns [`Contents`].
//! [`Contents::repeat`] and [`run_again`] run contents again.

mod again;
mod contents;
mod gather;
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

/// File name of the journal in an output directory.
pub const JOURNAL: &str = "clean.journal";
/// File name of the journal of runs in separate processes.
pub const JOURNAL_OF_FRESH: &str = "clean.fresh.journal";

/// Returns the file name of the journal for runs that share processes, or do not.
pub fn journal_of(freshness: Freshness) -> &'static str {
    match freshness {
        Freshness::Shared => JOURNAL,
        Freshness::Fresh => JOURNAL_OF_FRESH,
    }
}

/// Finds the contents at `roots`, and runs each once that is not in the journal of the output
/// directory `out`: [`gather()`] followed by [`Gathered::run`].
///
/// # Errors
/// As [`gather()`] and [`Gathered::run`].
pub fn measure(
    roots: &[PathBuf],
    out: &Path,
    settings: &MeasureSettings<'_>,
    progress: &mut dyn FnMut(&MeasureProgress),
) -> Result<Contents, MeasureError> {
    gather(roots, out, settings, progress)?.run(settings, progress)
}

/// The target to measure with, and how it is run.
#[derive(Clone, Copy)]
pub struct MeasureSettings<'a> {
    /// The target; its limits decide whether an input hangs.
    pub target: &'a Target,
    /// How the target is executed.
    pub way: Way,
    /// Number of workers, at least 1; it changes no result.
    pub jobs: usize,
    /// Longest input, in bytes; longer files are not read.
    pub max_len: u64,
    /// Whether runs have a shorter, adaptive time limit first. A run that exceeds it is repeated
    /// with the full limit, which alone decides whether the input hangs.
    pub learn_limit: bool,
    /// Whether runs may share a process, if the way of execution can. In a separate process a run
    /// does not depend on earlier runs.
    pub freshness: Freshness,
    /// Pool of started targets; if `None`, each worker starts one.
    pub runners: Option<&'a Runners>,
    /// When it turns true, current runs end and no further ones start.
    pub stop: &'a AtomicBool,
}

impl MeasureSettings<'_> {
    /// Whether the caller asked to stop.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Counts of the files of a corpus, by what became of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileCounts {
    /// All inputs, including duplicates, oversized and unreadable ones.
    pub before: Amount,
    /// Files whose content another file has: all but one per content.
    pub duplicates: Amount,
    /// Files longer than the longest input.
    pub oversized: Excluded,
    /// Files that could not be read.
    pub unread: Excluded,
    /// Files that were removed after they were listed.
    pub vanished: Excluded,
    /// Entries of the directories that are no inputs.
    pub listing: ListingReport,
}

/// Counts of files, contents and runs so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeasureProgress {
    /// Files that were read, or could not be read.
    pub files: u64,
    /// Total size of these files, as far as it is known.
    pub bytes: u64,
    /// Number of distinct contents of these files.
    pub contents: u64,
    /// Number of contents that were run in this call.
    pub runs: u64,
    /// Number of contents whose result was in the journal.
    pub reused: u64,
    /// Number of contents whose run may have failed.
    pub suspicious: u64,
}

/// Why measuring ended early. Earlier results are in the journal. Unreadable files are no error.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// A path of the command line cannot be listed.
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
