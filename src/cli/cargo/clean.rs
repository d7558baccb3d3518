//! `cargo ddfuzz clean`: a smaller corpus of a fuzz target that reaches as much.

use std::path::PathBuf;

use super::build::BuildArgs;
use super::project::Project;
use crate::cli::{Exit, Failure, Output, clean};

/// Make the corpus of a fuzz target smaller without losing what it reaches
///
/// The new corpus takes the place of the old one, which is kept beside it as FUZZ_TARGET.old. With
/// --out the corpus stays as it is, and the new one is in corpus/ of that directory, which is
/// ddfuzz-clean-FUZZ_TARGET where none is named.
#[derive(clap::Args)]
#[group(skip)]
#[command(after_help = "Example:\n  cargo ddfuzz clean parse\n  \
                  cargo ddfuzz clean parse --delete-old --trim worth")]
pub struct Args {
    /// Fuzz target; `cargo ddfuzz list` lists them
    #[arg(value_name = "FUZZ_TARGET")]
    name: String,
    #[command(flatten)]
    build: BuildArgs,
    #[command(flatten)]
    clean: clean::Args,
}

/// Runs the command.
pub fn run(mut args: Args, output: &Output) -> Result<Exit, Failure> {
    let project = Project::find(args.build.fuzz_dir.as_deref())?;
    project.check(&args.name)?;
    if args.clean.out.is_none() {
        // What a campaign has found in the usual place is no corpus of a cleanup.
        args.clean.out = Some(PathBuf::from(format!("ddfuzz-clean-{}", args.name)));
        let asked = args.clean.corpus.is_empty() && args.clean.explain.is_empty();
        args.clean.in_place |= asked && args.clean.onto.is_none();
    }
    if !args.clean.explain.is_empty() {
        return clean::run(args.clean, output);
    }
    if args.clean.corpus.is_empty() {
        let corpus = project.corpus(&args.name);
        if !corpus.is_dir() {
            return Err(Failure::usage("the fuzz target has no corpus")
                .path(&corpus)
                .hint(format!("fuzz first: cargo ddfuzz run {}", args.name)));
        }
        args.clean.corpus.push(corpus);
    }
    // Before the build, which takes its time.
    clean::check(&args.clean)?;
    let triple = args.clean.target.target.take();
    let built = (args.build).build(&project, &args.name, triple.as_deref(), output)?;
    args.clean.target.program = vec![built.program.into()];
    clean::run(args.clean, output)
}
