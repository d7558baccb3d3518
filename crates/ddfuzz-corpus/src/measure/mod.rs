//! Measures the contents of a corpus: lists, reads and hashes files, and runs once each content
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
use ddfuzz_exec::{ExecError, Freshness, NotCovered, Target, Way};
use ddfuzz_model::files::FileError;

pub use again::{Each, Files, Inputs, Repeated, run_again, run_alone};
pub use contents::Contents;
pub use gather::{Gathered, NotRead, gather, read as read_input};
pub use runner::Runners;

/// File name, in an output directory, of the journal that records what each input's runs did.
pub const JOURNAL: &str = "clean.journal";
/// Reason, as a text for the user, why the coverage of an uninstrumented program is unknown:
/// coverage is measured by breakpoints in the program's code, and with these some runs end
/// differently.
pub const DIFFERS: NotCovered = "some runs end differently with breakpoints in the program's code";

/// File name, in an output directory, of the journal of runs that each have a separate process.
pub const JOURNAL_OF_FRESH: &str = "clean.fresh.journal";

/// Returns the file name of a cleanup's journal: one is for runs that share processes, another for
/// runs in separate processes.
pub fn journal_of(freshness: Freshness) -> &'static str {
    match freshness {
        Freshness::Shared => JOURNAL,
        Freshness::Fresh => JOURNAL_OF_FRESH,
    }
}

/// Finds the distinct file contents at the paths `roots`, and runs once each content that is not in
/// the journal of the output directory `out`: [`gather()`] followed by [`Gathered::run`].
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

/// How the inputs of a corpus are run: target, way of execution, limits and number of workers.
#[derive(Clone, Copy)]
pub struct MeasureSettings<'a> {
    /// The target that the inputs of a corpus are run with; its limits decide whether an input
    /// hangs.
    pub target: &'a Target,
    /// Way in which the target is executed: a new process per run, a fork server, or calls of the
    /// target's entry function.
    pub way: Way,
    /// Number of worker threads that read files and run inputs, at least 1; it changes no result.
    pub jobs: usize,
    /// Greatest length of an input of the corpus, in bytes; longer files are not read.
    pub max_len: u64,
    /// Whether runs get a shorter time limit that adapts to the times of earlier runs. A run that
    /// exceeds it is repeated with the full limit, and only the repeated run decides whether the
    /// input hangs.
    pub learn_limit: bool,
    /// Whether runs may share a process, if the way of execution permits it. In a separate process
    /// a run does not depend on earlier runs.
    pub freshness: Freshness,
    /// Whether the basic blocks that an uninstrumented program runs through are used as its
    /// coverage.
    pub blocks: bool,
    /// Pool of started targets that workers take from; if `None`, each worker starts one.
    pub runners: Option<&'a Runners>,
    /// Flag of the user's stop: when it turns true, present runs are ended and no further ones
    /// start.
    pub stop: &'a AtomicBool,
}

impl MeasureSettings<'_> {
    /// Returns true if the flag `stop` is set: no further runs may start.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Returns true if each run that exits must report which basic blocks of the program it
    /// reached. This is so if the program is not instrumented and runs by the method of execution
    /// `inject` or `snapshot`, and the started target reports coverage. `places`: number of places
    /// that the started target covers; `None` if it reports no coverage.
    pub fn cover_by_blocks(&self, places: Option<usize>) -> bool {
        matches!(self.way, Way::Inject | Way::Snapshot) && places.is_some()
    }
}

/// Counts of the files of a corpus, by what became of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileCounts {
    /// Number and size of all files found, including duplicates, oversized and unreadable ones.
    pub before: Amount,
    /// Number and size of duplicates: of the files with the same content, all but one.
    pub duplicates: Amount,
    /// Files that are not used because they are longer than the longest allowed input.
    pub oversized: Excluded,
    /// Files of the corpus that could not be read.
    pub unread: Excluded,
    /// Files that were removed after they were listed.
    pub vanished: Excluded,
    /// Entries of the listed directories that are not inputs, and directories that could not be
    /// listed.
    pub listing: ListingReport,
}

/// Progress of measuring a corpus: number of files, distinct contents and runs so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeasureProgress {
    /// Number of files that were read, or could not be read.
    pub files: u64,
    /// Total size in bytes of the files that were read, or could not be read, as far as it is
    /// known.
    pub bytes: u64,
    /// Number of distinct contents of the files read so far.
    pub contents: u64,
    /// Number of contents that were run so far, without those whose result was in the journal.
    pub runs: u64,
    /// Number of contents that are not run, because their result is in the journal.
    pub reused: u64,
    /// Number of contents whose run may have failed (crash, hang or out of memory).
    pub suspicious: u64,
}

/// Why listing, reading or running the inputs of a corpus failed. Earlier results are in the
/// journal. Unreadable files are not an error.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// A path of the corpus, as given on the command line, cannot be listed.
    #[error(transparent)]
    NotListed(#[from] NotListed),
    /// The target cannot be run.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// The identity of the target (hash of program, arguments, environment and limits) cannot be
    /// determined.
    #[error(transparent)]
    Identity(#[from] CampaignError),
    /// It is unknown which basic blocks a run of an uninstrumented program reached: the blocks are
    /// found by breakpoints, and with breakpoints the run ended differently than without.
    #[error("{DIFFERS}")]
    LacksCoverage,
    /// The journal of observed runs, or the temporary list of paths, cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
}
