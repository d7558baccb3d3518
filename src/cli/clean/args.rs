//! The options of `ddfuzz clean`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueEnum;

use crate::cli::amounts;
use crate::cli::shrinking::{ShrinkArgs, searches};
use crate::cli::target::TargetArgs;

/// The output directory where nobody says.
const DEFAULT_OUT: &str = "ddfuzz-out";

/// Minimize a corpus: keep a minimal subset with the same coverage
///
/// Leaves out duplicates, unreadable files, crashes, hangs, and files whose coverage others have as
/// well. The corpus is only read: the kept files are written to corpus/ of the output directory,
/// crashes and hangs to their groups there. With --trim each kept file is shortened by delta
/// debugging. The same command continues one that was killed.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  ddfuzz clean corpus -o cleaned -- ./program @@\n  \
                  ddfuzz clean afl-out -o cleaned\n  \
                  ddfuzz clean corpus --in-place --keep-names -- ./program\n  \
                  ddfuzz clean new-inputs --onto corpus -- ./program\n  \
                  ddfuzz clean -o cleaned --explain corpus/some-file"
)]
pub struct Args {
    /// The corpus: directories, or files; an output directory of AFL++, which names its target
    /// itself, or of ddfuzz
    #[arg(value_name = "CORPUS")]
    pub(in crate::cli) corpus: Vec<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) target: TargetArgs,
    /// Output directory [default: ddfuzz-out]
    #[arg(short, long, value_name = "DIR")]
    pub(in crate::cli) out: Option<PathBuf>,
    /// Replace the corpus by the kept files; the old one stays beside it, as CORPUS.old
    #[arg(long, conflicts_with_all = ["onto", "explain"])]
    pub(in crate::cli) in_place: bool,
    /// With --in-place, remove the old corpus once it is replaced
    #[arg(long)]
    pub(in crate::cli) delete_old: bool,
    /// Add to this corpus the files that increase its coverage; nothing in it is changed
    #[arg(long, value_name = "DIR", conflicts_with = "explain")]
    pub(in crate::cli) onto: Option<PathBuf>,
    /// Keep the names of files, instead of naming them by their content
    #[arg(long)]
    pub(in crate::cli) keep_names: bool,
    /// Skip a step
    #[arg(long, value_enum, value_delimiter = ',', value_name = "STEP")]
    pub(in crate::cli) skip: Vec<SkipArg>,
    /// Shorten each kept file by delta debugging, which may take minutes; what it must keep
    /// [default: off]
    #[arg(long, value_enum)]
    trim: Option<TrimArg>,
    /// Maximum number of runs to trim one file [default: 1000]. Implies --trim worth, as
    /// --trim-time and --trim-search do
    #[arg(long, value_name = "N")]
    pub(in crate::cli) trim_tests: Option<u64>,
    /// Maximum time to trim one file; the result then depends on the speed of the machine
    /// [default: none]
    #[arg(long, value_name = "TIME", value_parser = amounts::time)]
    pub(in crate::cli) trim_time: Option<Duration>,
    /// Search algorithm of trimming [default: subset]
    #[arg(long, value_name = "NAME", value_parser = searches())]
    pub(in crate::cli) trim_search: Option<String>,
    /// How often each kept file is run, to find out which of its coverage is not flaky
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(in crate::cli) repeats: u32,
    /// Maximum size of a file; larger ones are left out [default: 1M]
    #[arg(long, value_name = "SIZE", value_parser = amounts::size)]
    pub(in crate::cli) max_len: Option<u64>,
    /// Number of workers [default: the number of processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(in crate::cli) jobs: Option<u32>,
    #[command(flatten)]
    pub(in crate::cli) shrink: ShrinkArgs,
    /// Show why a file was kept or left out by the last cleanup in the output directory; nothing is
    /// run
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub(in crate::cli) explain: Vec<PathBuf>,
    /// Accepted and not needed: a cleanup always continues the one in the output directory
    #[arg(long)]
    pub(in crate::cli) resume: bool,
}

impl Args {
    /// What a trimmed file must keep: what is asked for, and what a bound on it implies.
    pub(super) fn trim(&self) -> TrimArg {
        let is_bounded =
            self.trim_tests.is_some() || self.trim_time.is_some() || self.trim_search.is_some();
        match (self.trim, is_bounded) {
            (Some(trim), _) => trim,
            (None, true) => TrimArg::Worth,
            (None, false) => TrimArg::Off,
        }
    }

    /// The output directory.
    pub fn out(&self) -> &Path {
        self.out.as_deref().unwrap_or(Path::new(DEFAULT_OUT))
    }
}

/// A step that can be skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SkipArg {
    /// Skip triage: crashes and hangs are left out, and not filed in groups
    Groups,
    /// Skip the repeated runs: the coverage of one run counts, flaky or not
    Flaky,
    /// Skip the choice of a subset: every different file that neither crashes nor hangs is kept
    Subset,
}

/// What a trimmed file must keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TrimArg {
    /// The coverage that it alone, or it as the smallest file, contributes to the kept files
    Worth,
    /// Exactly its own coverage
    Signature,
    /// Files are not trimmed
    Off,
}
