//! `ddfuzz diff`: isolates the difference that makes an input fail.

use std::path::PathBuf;

use super::{Input, SearchArgs, Sought, search};
use crate::cli::{Exit, Failure, Output};
use crate::minimize::log::{Goal, Units};

/// Isolate the difference between a passing and a failing input that makes it fail
#[derive(clap::Args)]
#[command(
    override_usage = "ddfuzz diff [OPTIONS] <PASSING> <FAILING> [-- <PROGRAM>...]\n       \
                      ddfuzz diff [OPTIONS] --empty <FAILING> [-- <PROGRAM>...]",
    after_help = "The result is two inputs that differ in as little as possible: one that still \
                  fails, FAILING.diff, and one that passes, FAILING.diff.pass. The limit on the \
                  time of a run is as given: nothing is learned here.\n\n\
                  Examples:\n  ddfuzz diff good bad -- ./program @@\n  \
                  ddfuzz diff --empty crash-1 -- ./program\n  \
                  ddfuzz diff good bad --test ./is-bad.sh\n  \
                  ddfuzz diff --invert --empty options -- ./program   # what prevents the crash"
)]
pub struct Args {
    /// The passing and the failing input; they are only read
    #[arg(value_names = ["PASSING", "FAILING"], num_args = 1..=2, required = true)]
    inputs: Vec<PathBuf>,
    /// Begin with the empty input in place of PASSING: the deltas are FAILING's bytes, not edits
    #[arg(long)]
    empty: bool,
    /// Make each byte that an edit removes or inserts a delta of its own
    #[arg(long, conflicts_with = "empty")]
    bytes: bool,
    #[command(flatten)]
    search: SearchArgs,
}

/// Runs the command.
pub fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    let mut inputs = args.inputs.into_iter();
    let (passing, failing) = match (args.empty, inputs.next(), inputs.next()) {
        (true, Some(failing), None) => (None, failing),
        (false, Some(passing), Some(failing)) => (Some(passing), failing),
        (true, ..) => {
            return Err(Failure::usage("two inputs are named, and --empty")
                .hint("--empty stands in place of PASSING: name FAILING alone"));
        }
        (false, ..) => {
            return Err(Failure::usage("one input is named, but two are compared")
                .hint("name PASSING and FAILING, or begin with the empty input: --empty FAILING"));
        }
    };
    let sought = Sought {
        goal: Goal::Isolate,
        units: match (&passing, args.bytes) {
            (None, _) => Units::Bytes,
            (Some(_), true) => Units::EditBytes,
            (Some(_), false) => Units::Edits,
        },
        passing: passing.map(Input::read).transpose()?,
        failing: Input::read(failing)?,
    };
    search(sought, args.search, output)
}
