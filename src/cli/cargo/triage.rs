//! `cargo ddfuzz triage`: runs, keys and groups what crashed a fuzz target.

use super::build::BuildArgs;
use super::project::Project;
use crate::cli::{Exit, Failure, Output, triage};

/// Run crash files of a fuzz target and group them by bug
///
/// Without inputs, runs those in fuzz/artifacts/FUZZ_TARGET.
#[derive(clap::Args)]
#[group(skip)]
#[command(after_help = "Example:\n  cargo ddfuzz triage parse")]
pub struct Args {
    /// Fuzz target; `cargo ddfuzz list` lists them
    #[arg(value_name = "FUZZ_TARGET")]
    name: String,
    #[command(flatten)]
    build: BuildArgs,
    #[command(flatten)]
    triage: triage::Args,
}

/// Runs the command.
pub fn run(mut args: Args, output: &Output) -> Result<Exit, Failure> {
    let project = Project::find(args.build.fuzz_dir.as_deref())?;
    project.check(&args.name)?;
    if args.triage.inputs.is_empty() {
        let artifacts = project.artifacts(&args.name);
        if !artifacts.is_dir() {
            return Err(Failure::usage("there are no crash files")
                .path(&artifacts)
                .hint(format!("fuzz first: cargo ddfuzz run {}", args.name)));
        }
        args.triage.inputs.push(artifacts);
    }
    let triple = args.triage.target.target.take();
    let built = (args.build).build(&project, &args.name, triple.as_deref(), output)?;
    args.triage.target.program = vec![built.program.into()];
    triage::run(args.triage, output)
}
