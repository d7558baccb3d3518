//! The command line of `ddfuzz revisit`.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use super::compare::CompareArgs;
use super::reports::StudyReportArgs;
use crate::campaign::generator::Preset;
use crate::cli::amounts;
use crate::cli::shrinking::ShrinkArgs;

/// Where the help shows what is run.
const WHICH: &str = "What is run";

/// Repeat the fuzz studies of 1990 to 2020 on the utilities of this machine
///
/// Each utility is run on random inputs, by stdin, as a file or at a terminal, in a sandbox. Every
/// failure is grouped, minimized, and shown by one command; what comes out is the papers' table.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  ddfuzz revisit boxes nvi --time 60s\n  \
                        ddfuzz revisit --installed --runs 200000 --seed 1 -o study\n  \
                        ddfuzz revisit --list run_test/test_Linux/regular --time 2h --shard 2/5\n  \
                        ddfuzz revisit --compare bookworm trixie")]
pub struct Args {
    /// Utilities, by name or path [default: all of the list]
    #[arg(value_name = "UTILITY")]
    pub(super) utilities: Vec<String>,
    /// A list of utilities, as `run.py` of the 2020 study has them [default: one for Debian 12]
    #[arg(help_heading = WHICH, long, value_name = "FILE")]
    pub(super) list: Option<PathBuf>,
    /// All programs of this Debian package
    #[arg(help_heading = WHICH, long, value_name = "NAME")]
    pub(super) package: Vec<String>,
    /// Leave out what is missing on this machine
    #[arg(help_heading = WHICH, long)]
    pub(super) installed: bool,
    /// All programs of installed packages besides, also those in no list
    #[arg(help_heading = WHICH, long)]
    pub(super) unlisted: bool,
    /// Leave out this utility
    #[arg(help_heading = WHICH, long, value_name = "UTILITY")]
    pub(super) skip: Vec<String>,
    /// Run this utility although it is denied, as one that could do harm
    #[arg(help_heading = WHICH, long, value_name = "UTILITY")]
    pub(super) allow: Vec<String>,
    /// By this channel only: stdin, file, cp, two_files or pty
    #[arg(help_heading = WHICH, long, value_name = "CHANNEL", value_parser = ["stdin", "file", "cp", "two_files", "pty"])]
    pub(super) channel: Vec<String>,
    /// This part of so many of the list; `ddfuzz merge` joins the parts
    #[arg(help_heading = WHICH, long, value_name = "K/N", value_parser = Shard::from_str)]
    pub(super) shard: Option<Shard>,
    /// The inputs of a data set of the studies instead of a mixture: issta, or small1 to huge3
    #[arg(help_heading = WHICH, long, value_name = "NAME", value_parser = Preset::from_str)]
    pub(super) preset: Option<Preset>,
    /// List what would be run, and what not, and end
    #[arg(help_heading = WHICH, long)]
    pub(super) dry_run: bool,
    /// The output directory
    #[arg(short, long, value_name = "DIR", default_value = "ddfuzz-out")]
    pub(super) out: PathBuf,
    /// Run utilities for this long, shared by them
    #[arg(long, value_parser = amounts::time)]
    pub(super) time: Option<Duration>,
    /// End after this long whatever is under way, running or minimizing; what is left to be done,
    /// --resume goes on with
    #[arg(long, value_name = "TIME", value_parser = amounts::time)]
    pub(super) total_time: Option<Duration>,
    /// Make this many runs, shared by the utilities [default: 1200 of each, as the small sets of
    /// the 2020 study, unless there is a --time]
    #[arg(long)]
    pub(super) runs: Option<u64>,
    /// Workers [default: the number of processors]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(super) jobs: Option<u32>,
    /// The seed of all inputs [default: from the clock]
    #[arg(long)]
    pub(super) seed: Option<u64>,
    /// Longest input that is drawn [default: 1M]; the inputs of a --preset have lengths of their
    /// own, and what is typed at a terminal has 300 keys at most
    #[arg(long, value_name = "SIZE", value_parser = amounts::size)]
    pub(super) max_len: Option<u64>,
    /// CPU time of one run and all that it starts [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = amounts::time_limit)]
    pub(super) timeout: Option<Duration>,
    /// Memory of one run [default: 1G]
    #[arg(long, value_name = "SIZE", value_parser = amounts::size_limit)]
    pub(super) memory: Option<u64>,
    #[command(flatten)]
    pub(super) shrink: ShrinkArgs,
    /// How often a reproducer is run again, for its rate
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) replays: u32,
    /// A file of groups to mute: 12 or more hex digits of a major key, or stable:HEX, a line
    #[arg(long, value_name = "FILE")]
    pub(super) known: Option<PathBuf>,
    /// Go on with the study of the output directory: with its seed, --list, --preset, --shard,
    /// --channel and --max-len, which need not be given again
    #[arg(long)]
    pub(super) resume: bool,
    /// Run utilities without the sandbox; to be given twice
    #[arg(long, action = clap::ArgAction::Count)]
    pub(super) no_sandbox: u8,
    #[command(flatten)]
    pub(super) compare: CompareArgs,
    #[command(flatten)]
    pub(super) reports: StudyReportArgs,
}

/// A part of a list: the utilities at every so manieth place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shard {
    /// Which part, from 1.
    pub(super) part: u32,
    /// Of how many.
    pub(super) of: u32,
}

impl Shard {
    /// Whether the utility at this place is of it.
    pub(super) fn has(self, place: u64) -> bool {
        place % u64::from(self.of) == u64::from(self.part - 1)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        let numbers = text
            .split_once('/')
            .and_then(|(part, of)| Some((part.parse().ok()?, of.parse().ok()?)));
        match numbers {
            Some((part, of)) if (1..=of).contains(&part) => Ok(Shard { part, of }),
            _ => Err("a part is written as 2/5: the second of five".to_owned()),
        }
    }
}
