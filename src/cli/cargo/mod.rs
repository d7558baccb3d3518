//! `cargo ddfuzz`: the commands of ddfuzz on a cargo-fuzz project, which stays as it is. `min`,
//! `triage`, `check` and `clean` build the fuzz target and call ddfuzz's own commands.

mod build;
mod install_runner;
pub mod libfuzzer;
pub mod project;
mod run;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Command;

pub use project::{WrittenArtifacts, choose_out, own_campaigns, reproducers};

use super::subcommands::{CommandLine, subcommand};
use super::target::TargetArgs;
use super::{Exit, Failure, Output, check, clean, min, triage};
use crate::store::Reader;
use build::BuildArgs;
use project::{Project, init, list};

const ABOUT: &str = "Run ddfuzz on a cargo-fuzz project: find crashes, group them by bug, and \
    minimize each to its shortest reproducer";

const EXAMPLE: &str = "Example:\n  cargo ddfuzz run parse --time 60s\n\n\
    Build options are those of cargo fuzz.\n\n\
    Exit codes: 0 success, or no crash found; 1 crashes found, or a check failed; 2 wrong usage; 3 the build failed, \
    the target does not start, or the input does not crash it; 4 only crashes of known groups; 70 \
    internal error; 130 interrupted, the state is saved";

/// Runs `cargo-ddfuzz`: parses the command line, runs the subcommand, and returns its exit code.
pub fn main() -> ExitCode {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    // Cargo names the subcommand, too.
    if words.get(1).is_some_and(|word| word == "ddfuzz") {
        words.remove(1);
    }
    super::called(words, &command_line())
}

/// Returns the command line of `cargo ddfuzz`.
pub fn command_line() -> CommandLine {
    CommandLine {
        program: |root| {
            let root = root.name("cargo ddfuzz").bin_name("cargo ddfuzz");
            let root = root.about(ABOUT).after_help(EXAMPLE);
            root.version(env!("CARGO_PKG_VERSION"))
        },
        adapt: for_project,
        subcommands: vec![
            subcommand("run", run::run),
            subcommand("min", run_min),
            subcommand("triage", run_triage),
            subcommand("check", run_check),
            subcommand("clean", run_clean),
            subcommand("list", list),
            subcommand("init", init),
            subcommand("install-runner", install_runner::run),
        ],
    }
}

/// Adapts `command`, if it has the options of `ddfuzz`'s command of the same name, to `cargo
/// ddfuzz`. `--target` is described as the target triple to build for, and no program can be given,
/// since the fuzz target that is built is the program. Other commands are returned unchanged.
fn for_project(command: Command) -> Command {
    let name = command.get_name().to_owned();
    if !["run", "min", "triage", "check", "clean"].contains(&name.as_str()) {
        return command;
    }
    let command = command.mut_arg("target", |arg| {
        arg.help("Target triple to build for [default: that of this machine]")
            .help_heading(build::BUILD_HEADING)
            .value_name("TRIPLE")
    });
    let command = match name.as_str() {
        // Without inputs, those in the project's `artifacts` are run.
        "triage" => command.mut_arg("inputs", |arg| arg.required(false)),
        _ => command,
    };
    // This change is the last one, because clap lists changed options in the order of the changes.
    command.mut_arg("program", |arg| match name.as_str() {
        "run" => arg
            .value_name("FLAG")
            .help("Flags for libFuzzer, after `--`; they select --engine libfuzzer"),
        _ => arg.hide(true),
    })
}

/// Builds the fuzz target `name` for the target triple in `--target`, and makes the built program
/// the one that `target` runs. Returns `output`, which can now name the command line of
/// `cargo ddfuzz check` when it suggests a check to the user.
fn build_program(
    target: &mut TargetArgs,
    build: &BuildArgs,
    project: &Project,
    name: &str,
    output: &Output,
) -> Result<Output, Failure> {
    let triple = target.target.take();
    let built = build.build(project, name, triple.as_deref(), output)?;
    target.program = vec![built.program.into()];
    Ok(with_check(output, build, triple.as_deref(), name))
}

/// Returns `output` with the command line of `cargo ddfuzz check` for suggestions to the user: it
/// builds the fuzz target `name` again with the build options of this call.
fn with_check(output: &Output, build: &BuildArgs, triple: Option<&str>, name: &str) -> Output {
    let options = build.shown(triple);
    Output {
        cargo_check: Some(format!("cargo ddfuzz check{options} {name}")),
        ..output.clone()
    }
}

/// Checks that the corpus or artifacts directory `folder` of the fuzz target `name` exists; if not,
/// fails with `message` and the hint to fuzz first.
fn check_folder(folder: &Path, message: &str, name: &str) -> Result<(), Failure> {
    match folder.is_dir() {
        true => Ok(()),
        false => Err(Failure::usage(message)
            .path(folder)
            .hint(format!("fuzz first: cargo ddfuzz run {name}"))),
    }
}

/// Minimize one crashing input of a fuzz target
#[derive(clap::Args)]
#[group(skip)]
#[command(
    after_help = "Example:\n  cargo ddfuzz min parse fuzz/artifacts/parse/crash-0eb8e4ed029b774d80f2b66408203801cb982a60"
)]
pub struct CargoMinArgs {
    /// Fuzz target; `cargo ddfuzz list` lists them
    #[arg(value_name = "FUZZ_TARGET")]
    name: String,
    #[command(flatten)]
    build: BuildArgs,
    #[command(flatten)]
    min: min::MinArgs,
}

/// Runs `cargo ddfuzz min`: builds the fuzz target and minimizes one failing input.
pub fn run_min(mut args: CargoMinArgs, output: &Output) -> Result<Exit, Failure> {
    let project = Project::find(args.build.fuzz_dir.as_deref())?;
    let output = build_program(
        &mut args.min.target,
        &args.build,
        &project,
        &args.name,
        output,
    )?;
    min::run(args.min, &output)
}

/// Run crash files of a fuzz target and group them by bug
///
/// Without inputs, runs those in fuzz/artifacts/FUZZ_TARGET.
#[derive(clap::Args)]
#[group(skip)]
#[command(after_help = "Example:\n  cargo ddfuzz triage parse")]
pub struct CargoTriageArgs {
    /// Fuzz target; `cargo ddfuzz list` lists them
    #[arg(value_name = "FUZZ_TARGET")]
    name: String,
    #[command(flatten)]
    build: BuildArgs,
    #[command(flatten)]
    triage: triage::TriageArgs,
}

/// Runs `cargo ddfuzz triage`: builds the fuzz target, runs crash files and groups them by bug.
pub fn run_triage(mut args: CargoTriageArgs, output: &Output) -> Result<Exit, Failure> {
    let project = Project::find(args.build.fuzz_dir.as_deref())?;
    project.check(&args.name)?;
    if args.triage.inputs.is_empty() {
        let artifacts = project.artifacts(&args.name);
        check_folder(&artifacts, "there are no crash files", &args.name)?;
        args.triage.inputs.push(artifacts);
    }
    let output = build_program(
        &mut args.triage.target,
        &args.build,
        &project,
        &args.name,
        output,
    )?;
    triage::run(args.triage, &output)
}

/// After a fix, build a fuzz target again, run the reproducers of an output directory on it, and
/// show which groups are fixed
///
/// The output directory is ddfuzz-out, or ddfuzz-out-FUZZ_TARGET if that has results of another
/// fuzz target.
#[derive(clap::Args)]
#[group(skip)]
#[command(after_help = "Example:\n  cargo ddfuzz check parse\n  cargo ddfuzz check parse results")]
pub struct CargoCheckArgs {
    /// Fuzz target; `cargo ddfuzz list` lists them
    #[arg(value_name = "FUZZ_TARGET")]
    name: String,
    #[command(flatten)]
    build: BuildArgs,
    #[command(flatten)]
    check: check::CheckArgs,
}

/// Runs `cargo ddfuzz check`: builds the fuzz target, and runs the reproducers of its crash groups
/// on the new build.
pub fn run_check(mut args: CargoCheckArgs, output: &Output) -> Result<Exit, Failure> {
    let project = Project::find(args.build.fuzz_dir.as_deref())?;
    project.check(&args.name)?;
    // Its program has the name of the fuzz target.
    args.check.out = choose_out(&args.check.out, &args.name, Path::new(&args.name));
    // Before the build, which takes its time.
    Reader::open(&args.check.out)?;
    let target = &mut args.check.target;
    build_program(target, &args.build, &project, &args.name, output)?;
    check::run(args.check, output)
}

/// Make the corpus of a fuzz target smaller without losing what it reaches
///
/// The new corpus takes the place of the old one, which is kept beside it as FUZZ_TARGET.old. With
/// --out the corpus stays as it is, and the new one is in corpus/ of that directory, which is
/// ddfuzz-clean-FUZZ_TARGET where none is named.
#[derive(clap::Args)]
#[group(skip)]
#[command(after_help = "Example:\n  cargo ddfuzz clean parse\n  \
                  cargo ddfuzz clean parse --delete-old --trim worth")]
pub struct CargoCleanArgs {
    /// Fuzz target; `cargo ddfuzz list` lists them
    #[arg(value_name = "FUZZ_TARGET")]
    name: String,
    #[command(flatten)]
    build: BuildArgs,
    #[command(flatten)]
    clean: clean::CleanArgs,
}

/// Runs `cargo ddfuzz clean`: builds the fuzz target and makes its corpus smaller.
pub fn run_clean(mut args: CargoCleanArgs, output: &Output) -> Result<Exit, Failure> {
    let project = Project::find(args.build.fuzz_dir.as_deref())?;
    project.check(&args.name)?;
    if args.clean.out.is_none() {
        // By default, a cleanup does not write to the directory in which campaigns store their
        // findings.
        args.clean.out = Some(PathBuf::from(format!("ddfuzz-clean-{}", args.name)));
        let asked = args.clean.corpus.is_empty() && args.clean.explain.is_empty();
        args.clean.in_place |= asked && args.clean.onto.is_none();
    }
    if !args.clean.explain.is_empty() {
        return clean::run(args.clean, output);
    }
    if args.clean.corpus.is_empty() {
        let corpus = project.corpus(&args.name);
        check_folder(&corpus, "the fuzz target has no corpus", &args.name)?;
        args.clean.corpus.push(corpus);
    }
    // Before the build, which takes its time.
    clean::check(&args.clean)?;
    build_program(
        &mut args.clean.target,
        &args.build,
        &project,
        &args.name,
        output,
    )?;
    clean::run(args.clean, output)
}
