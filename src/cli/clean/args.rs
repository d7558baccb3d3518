//! The options of `ddfuzz clean`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueEnum;

use crate::cli::amounts;
use crate::cli::shrinking::{ShrinkArgs, searches};
use crate::cli::target::TargetArgs;

/// The output directory where nobody says.
const DEFAULT_OUT: &str = "ddfuzz-out";

/// Make a corpus smaller without losing what it reaches
///
/// Duplicates, what cannot be read, crashes, hangs, and what reaches nothing of its own go; what
/// stays is trimmed by delta debugging. The corpus is only read: what is kept goes to corpus/ of
/// the output directory, and crashes to their groups there. The same command goes on with one that
/// was killed.
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
    /// The output directory [default: ddfuzz-out]
    #[arg(short, long, value_name = "DIR")]
    pub(in crate::cli) out: Option<PathBuf>,
    /// Put the kept files in the place of the corpus, too; the old one stays beside it, as
    /// CORPUS.old
    #[arg(long, conflicts_with_all = ["onto", "explain"])]
    pub(in crate::cli) in_place: bool,
    /// With --in-place, remove the old corpus when the new one is in its place
    #[arg(long)]
    pub(in crate::cli) delete_old: bool,
    /// Add to this corpus what it does not reach itself; nothing in it is changed
    #[arg(long, value_name = "DIR", conflicts_with = "explain")]
    pub(in crate::cli) onto: Option<PathBuf>,
    /// Keep the names of files, instead of naming them by their content
    #[arg(long)]
    pub(in crate::cli) keep_names: bool,
    /// Leave out a step
    #[arg(long, value_enum, value_delimiter = ',', value_name = "STEP")]
    pub(in crate::cli) skip: Vec<SkipArg>,
    /// What a kept file may lose
    #[arg(long, value_enum, default_value_t = TrimArg::Worth)]
    pub(in crate::cli) trim: TrimArg,
    /// Most tests for the trimming of one file
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(in crate::cli) trim_tests: u64,
    /// Longest time for the trimming of one file; what it comes to then depends on the machine
    /// [default: none]
    #[arg(long, value_name = "TIME", value_parser = amounts::time)]
    pub(in crate::cli) trim_time: Option<Duration>,
    /// How files are trimmed
    #[arg(long, value_name = "NAME", default_value = "subset", value_parser = searches())]
    pub(in crate::cli) trim_search: String,
    /// How often a file that is to be kept is run in all, to see what it reaches each time
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(in crate::cli) repeats: u32,
    /// Longest file; longer ones are left out [default: 1M]
    #[arg(long, value_name = "SIZE", value_parser = amounts::size)]
    pub(in crate::cli) max_len: Option<u64>,
    /// Workers [default: the number of processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(in crate::cli) jobs: Option<u32>,
    #[command(flatten)]
    pub(in crate::cli) shrink: ShrinkArgs,
    /// Say of a file why it was kept or left out by the cleanup that the output directory holds;
    /// nothing is run
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub(in crate::cli) explain: Vec<PathBuf>,
    /// Accepted, as a cleanup always goes on with what the output directory holds
    #[arg(long)]
    pub(in crate::cli) resume: bool,
}

impl Args {
    /// The output directory.
    pub fn out(&self) -> &Path {
        self.out.as_deref().unwrap_or(Path::new(DEFAULT_OUT))
    }
}

/// A step that can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SkipArg {
    /// Leave out the groups: crashes and hangs are taken out, and not triaged
    Groups,
    /// Leave out the repeats: each file counts for what it has reached once
    Flaky,
    /// Leave out the choice: every different content that ends well is kept
    Subset,
}

/// What a kept file may lose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TrimArg {
    /// What the other kept files reach, too
    Worth,
    /// Bytes, but nothing of what it reaches
    Signature,
    /// Nothing
    Off,
}
