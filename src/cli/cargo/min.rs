//! `cargo ddfuzz min`: minimizes one failing input of a fuzz target.

use super::build::BuildArgs;
use super::project::Project;
use crate::cli::{Exit, Failure, Output, min};

/// Minimize one crashing input of a fuzz target
#[derive(clap::Args)]
#[group(skip)]
#[command(
    after_help = "Example:\n  cargo ddfuzz min parse fuzz/artifacts/parse/crash-0eb8e4ed029b774d80f2b66408203801cb982a60"
)]
pub struct Args {
    /// Fuzz target; `cargo ddfuzz list` lists them
    #[arg(value_name = "FUZZ_TARGET")]
    name: String,
    #[command(flatten)]
    build: BuildArgs,
    #[command(flatten)]
    min: min::Args,
}

/// Runs the command.
pub fn run(mut args: Args, output: &Output) -> Result<Exit, Failure> {
    let project = Project::find(args.build.fuzz_dir.as_deref())?;
    let triple = args.min.target.target.take();
    let built = (args.build).build(&project, &args.name, triple.as_deref(), output)?;
    args.min.target.program = vec![built.program.into()];
    min::run(args.min, output)
}
