//! `ddfuzz diff`: isolates the difference that makes an input fail.

use std::path::PathBuf;

use super::{Input, SearchArgs, Sought, search};
use crate::cli::results::is_standard;
use crate::cli::{Exit, Failure, Output};
use crate::minimize::log::{Goal, Units};

/// Isolate the difference between a passing and a failing input that causes the failure
#[derive(clap::Args)]
#[command(
    override_usage = "ddfuzz diff [OPTIONS] <PASSING> <FAILING> [-- <PROGRAM>...]\n       \
                      ddfuzz diff [OPTIONS] --empty <FAILING> [-- <PROGRAM>...]",
    after_help = "The result is two inputs that differ as little as possible: FAILING.diff, which \
                  still fails, and FAILING.diff.pass, which passes. The time limit of a run is \
                  that of --timeout; it is not adapted.\n\n\
                  Examples:\n  ddfuzz diff good bad -- ./program @@\n  \
                  ddfuzz diff --empty crash-1 -- ./program\n  \
                  ddfuzz diff good bad --test ./is-bad.sh\n  \
                  ddfuzz diff --invert --empty options -- ./program   # what prevents the crash"
)]
pub struct Args {
    /// The passing and the failing input; - is stdin. Files are only read
    #[arg(value_names = ["PASSING", "FAILING"], num_args = 1..=2, required = true)]
    inputs: Vec<PathBuf>,
    /// Use the empty input as PASSING. The deltas are then the bytes of FAILING, not edits
    #[arg(long)]
    empty: bool,
    /// Treat each byte that an edit removes or inserts as a separate delta
    #[arg(long, conflicts_with = "empty")]
    bytes: bool,
    #[command(flatten)]
    search: SearchArgs,
}

/// Runs the command.
pub fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    if args.inputs.iter().filter(|path| is_standard(path)).count() > 1 {
        return Err(
            Failure::usage("both inputs are -, which is stdin").hint("give a file for one of them")
        );
    }
    let mut inputs = args.inputs.into_iter();
    let (passing, failing) =
        match (args.empty, inputs.next(), inputs.next()) {
            (true, Some(failing), None) => (None, failing),
            (false, Some(passing), Some(failing)) => (Some(passing), failing),
            (true, ..) => {
                return Err(Failure::usage("two inputs are given, and --empty as well")
                    .hint("with --empty give FAILING only"));
            }
            (false, ..) => {
                return Err(Failure::usage("only one input is given, but two are compared").hint(
                "give PASSING and FAILING, or compare with the empty input: --empty FAILING",
            ));
            }
        };
    // What comes from stdin last: it is written into a file.
    let (passing, failing) = match is_standard(&failing) {
        true => (passing.map(Input::read).transpose()?, Input::read(failing)?),
        false => {
            let failing = Input::read(failing)?;
            (passing.map(Input::read).transpose()?, failing)
        }
    };
    let sought = Sought {
        goal: Goal::Isolate,
        units: match (&passing, args.bytes) {
            (None, _) => Units::Bytes,
            (Some(_), true) => Units::EditBytes,
            (Some(_), false) => Units::Edits,
        },
        passing,
        failing,
    };
    search(sought, args.search, output)
}
