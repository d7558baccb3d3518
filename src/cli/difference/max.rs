//! `ddfuzz max`: the largest part of a failing input that still passes.

use std::path::PathBuf;

use super::{Input, SearchArgs, Sought, search};
use crate::cli::{Exit, Failure, Output};
use crate::minimize::log::{Goal, Units};

/// Find the largest part of a failing input that still passes
#[derive(clap::Args)]
#[command(
    override_usage = "ddfuzz max [OPTIONS] <INPUT> [-- <PROGRAM>...]",
    after_help = "The result goes to INPUT.max. With any one byte more of the input, it no longer \
                  passes (1-maximal). The limit on the time of a run is as given: nothing is \
                  learned here.\n\n\
                  Examples:\n  ddfuzz max crash-1 -- ./program @@\n  \
                  ddfuzz max crash-1 -o passes --target ul\n  \
                  ddfuzz max bad --test ./is-bad.sh"
)]
pub struct Args {
    /// The failing input; it is only read
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
