//! `ddfuzz max`: the largest part of a failing input that still passes.

use std::path::PathBuf;

use super::{Input, SearchArgs, Sought, search};
use crate::cli::{Exit, Failure, Output};
use crate::minimize::log::{Goal, Units};

/// Find the largest part of a failing input that still passes
#[derive(clap::Args)]
#[command(
    override_usage = "ddfuzz max [OPTIONS] <INPUT> [-- <PROGRAM>...]",
    after_help = "The result is written to INPUT.max. Adding any one more byte of the input to it \
                  makes it no longer pass (1-maximal). The time limit of a run is that of \
                  --timeout; it is not adapted.\n\n\
                  Examples:\n  ddfuzz max crash-1 -- ./program @@\n  \
                  ddfuzz max crash-1 -o passes --target ul\n  \
                  ddfuzz max bad --test ./is-bad.sh"
)]
pub struct Args {
    /// The failing input, or - for stdin; the file is only read
    input: PathBuf,
    #[command(flatten)]
    search: SearchArgs,
}

/// Runs the command.
pub fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    let sought = Sought {
        goal: Goal::Maximize,
        units: Units::Bytes,
        passing: None,
        failing: Input::read(args.input)?,
    };
    search(sought, args.search, output)
}
