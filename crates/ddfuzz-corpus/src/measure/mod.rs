//! What each content of a corpus does: files are listed, read and hashed, and then each content that
//! the journal does not know is run once.
//!
//! [`gather`] gives all contents, and [`Gathered::run`] what they do, as [`Contents`], in the order
//! of results. [`Contents::repeat`] and [`run_again`] run some of them once more.
//!
//! Localized here: `tempfile` (the file of paths, `spool.rs`).

mod again;
mod contents;
mod error;
mod gather;
mod held;
mod ledger;
mod patience;
mod progress;
mod reading;
mod repeat;
mod runner;
mod settings;
mod side_by_side;
mod spool;
mod table;
mod tally;
mod worker;

use std::path::{Path, PathBuf};

use ddfuzz_exec::Freshness;

pub use again::{Each, Files, Inputs, run_again, run_alone};
pub use contents::Contents;
pub use error::MeasureError;
pub use gather::{Gathered, gather};
pub use progress::Progress;
pub use reading::{NotRead, read as read_input};
pub use repeat::Repeated;
pub use runner::Runners;
pub use settings::Settings;
pub use tally::Tally;

/// The name of the journal in an output directory.
pub const JOURNAL: &str = "clean.journal";
/// The same for runs in processes of their own, where the way lets others share one.
pub const JOURNAL_OF_FRESH: &str = "clean.fresh.journal";

/// The name of the journal of such runs.
pub fn journal_of(freshness: Freshness) -> &'static str {
    match freshness {
        Freshness::Shared => JOURNAL,
        Freshness::Fresh => JOURNAL_OF_FRESH,
    }
}

/// Gathers the inputs at `roots`, and runs each content once, as far as the journal in the output
/// directory `out` does not know what it does: [`gather`] and [`Gathered::run`] in one.
///
/// # Errors
/// Those of both.
pub fn measure(
    roots: &[PathBuf],
    out: &Path,
    settings: &Settings<'_>,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Contents, MeasureError> {
    gather(roots, out, settings, progress)?.run(settings, progress)
}
