//! The command line of `ddfuzz revisit`. With `--resume` the options that define a study are those that
//! it began with, and need not be given again; others are refused.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use super::reports::{CompareArgs, StudyReportArgs};
use crate::campaign::CampaignError;
use crate::campaign::generator::Preset;
use crate::campaign::study::StudyRequest;
use crate::cli::campaign_args::MinimizationArgs;
use crate::cli::{Failure, values};
use crate::store::Reader;

/// The heading in the help of the options that select what is run.
const WHICH: &str = "Selection of utilities";

/// Repeat the fuzz studies of 1990 to 2020 on the utilities of this machine
///
/// Runs each utility in a sandbox on random inputs: on stdin, as a file, or typed at a terminal.
/// Failures are grouped and minimized; the result is a table like those of the papers.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  ddfuzz revisit boxes nvi --time 60s\n  \
                        ddfuzz revisit --installed --runs 200000 --seed 1 -o study\n  \
                        ddfuzz revisit --list run_test/test_Linux/regular --time 2h --shard 2/5\n  \
                        ddfuzz revisit --compare bookworm trixie")]
pub struct RevisitArgs {
    /// Utilities, by name or path [default: all of --list]
    #[arg(value_name = "UTILITY")]
    pub(super) utilities: Vec<String>,
    /// List of utilities, in the format of `run.py` of the study of 2020 [default: a list for
    /// Debian 12]
    #[arg(help_heading = WHICH, long, value_name = "FILE")]
    pub(super) list: Option<PathBuf>,
    /// Run all programs of this Debian package; may be repeated
    #[arg(help_heading = WHICH, long, value_name = "NAME")]
    pub(super) package: Vec<String>,
    /// Skip utilities that are not installed on this machine
    #[arg(help_heading = WHICH, long)]
    pub(super) installed: bool,
    /// Also run all other programs of installed packages, even if they are in no list
    #[arg(help_heading = WHICH, long)]
    pub(super) unlisted: bool,
    /// Skip this utility; may be repeated
    #[arg(help_heading = WHICH, long, value_name = "UTILITY")]
    pub(super) skip: Vec<String>,
    /// Run this utility although it is on the list of those that could do harm; may be repeated
    #[arg(help_heading = WHICH, long, value_name = "UTILITY")]
    pub(super) allow: Vec<String>,
    /// Run only utilities that get their input through this channel; may be repeated
    #[arg(help_heading = WHICH, long, value_name = "CHANNEL", value_parser = ["stdin", "file", "cp", "two_files", "pty"])]
    pub(super) channel: Vec<String>,
    /// Run part K of N equal parts of the list; `ddfuzz merge` joins their results
    #[arg(help_heading = WHICH, long, value_name = "K/N", value_parser = Shard::from_str)]
    pub(super) shard: Option<Shard>,
    /// Use the inputs of a data set of the studies instead of a mixture: issta, or small1 to huge3
    #[arg(help_heading = WHICH, long, value_name = "NAME", value_parser = Preset::from_str)]
    pub(super) preset: Option<Preset>,
    /// Only list what would be run and what would not
    #[arg(help_heading = WHICH, long)]
    pub(super) dry_run: bool,
    /// Output directory
    #[arg(short, long, value_name = "DIR", default_value = "ddfuzz-out")]
    pub(super) out: PathBuf,
    /// Fuzz for this long, shared by all utilities
    #[arg(long, value_parser = values::time)]
    pub(super) time: Option<Duration>,
    /// Stop after this long in all, fuzzing and minimization; --resume continues
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    pub(super) total_time: Option<Duration>,
    /// Make this many runs, shared by all utilities [default: 1200 of each, as the small data sets
    /// of the study of 2020, unless --time is given]
    #[arg(long, value_name = "N")]
    pub(super) runs: Option<u64>,
    /// Number of workers [default: the number of processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(super) jobs: Option<u32>,
    /// Random seed [default: from the clock]
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,
    /// Maximum length of a random input [default: 1M]. Does not hold for the inputs of a --preset;
    /// at a terminal at most 300 keys are typed
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    pub(super) max_len: Option<u64>,
    /// Limit on the CPU time of one run and of all processes that it starts [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = values::time_limit)]
    pub(super) timeout: Option<Duration>,
    /// Limit on the memory of one run, at least 1M [default: 1G]
    #[arg(long, value_name = "SIZE", value_parser = values::memory_limit)]
    pub(super) memory: Option<u64>,
    #[command(flatten)]
    pub(super) shrink: MinimizationArgs,
    /// How often each reproducer is run again, to see how often it fails
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) replays: u32,
    /// File of known groups, one a line: 12 or more hex digits of a major key, or stable:HEX. Their
    /// crashes are stored but not minimized, and do not count for the exit code
    #[arg(hide_short_help = true, long, value_name = "FILE")]
    pub(super) known: Option<PathBuf>,
    /// Continue the study in the output directory, with its --seed, --list, --preset, --shard,
    /// --channel and --max-len, which need not be given again
    #[arg(long)]
    pub(super) resume: bool,
    /// Run utilities without the sandbox; has to be given twice
    #[arg(hide_short_help = true, long, action = clap::ArgAction::Count)]
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
            _ => Err("write a part like 2/5, for the second of five".to_owned()),
        }
    }
}

impl RevisitArgs {
    /// These options with what the study that they resume was asked for.
    pub(super) fn resumed(mut self) -> Result<RevisitArgs, Failure> {
        // What is wrong with the directory is said when it is opened to be written.
        let so_far = match self.resume {
            true => Reader::open(&self.out).ok(),
            false => None,
        };
        let Some(was) = so_far.and_then(|reader| StudyRequest::so_far(&reader)) else {
            return Ok(self);
        };
        if let Some(now) = self.max_len.filter(|now| *now != was.max_len) {
            let was = was.max_len;
            return Err(CampaignError::OtherLengths { was, now }.into());
        }
        self.max_len = Some(was.max_len);
        let list = was.list.map(|list| list.0.into());
        self.list = self.same("--list", self.list.clone(), list)?;
        let preset = was.preset.and_then(|preset| preset.parse().ok());
        self.preset = self.same("--preset", self.preset, preset)?;
        let shard = was.shard.map(|(part, of)| Shard { part, of });
        self.shard = self.same("--shard", self.shard, shard)?;
        let some = |channels: Vec<String>| (!channels.is_empty()).then_some(channels);
        let channels = self.same("--channel", some(self.channels()), some(was.channels))?;
        self.channel = channels.unwrap_or_default();
        Ok(self)
    }

    /// The channels asked for, in an order that does not depend on that of the options.
    pub(super) fn channels(&self) -> Vec<String> {
        let mut channels = self.channel.clone();
        channels.sort();
        channels.dedup();
        channels
    }

    /// What an option was, where it is not given, or is the same.
    fn same<T: PartialEq>(
        &self,
        option: &str,
        now: Option<T>,
        was: Option<T>,
    ) -> Result<Option<T>, Failure> {
        if now.is_none() || now == was {
            return Ok(was);
        }
        let had = match was {
            Some(_) => format!("another {option}"),
            None => format!("no {option}"),
        };
        let message = format!(
            "{} cannot be resumed: its study has {had}",
            self.out.display()
        );
        Err(Failure::usage(message).path(&self.out).hint(format!(
            "omit {option} to continue the study, or omit --resume to start a new one there"
        )))
    }
}
