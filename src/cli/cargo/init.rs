//! `cargo ddfuzz init`: a cargo-fuzz project where there is none.

use super::project::Project;
use super::toolchain::{self, cargo};
use crate::cli::{Exit, Failure, Output};

/// Create a cargo-fuzz project for this crate (cargo fuzz init)
#[derive(clap::Args)]
#[command(after_help = "Example:\n  cargo ddfuzz init --fuzz-target parse")]
pub struct Args {
    /// Name of the first fuzz target
    #[arg(long, value_name = "NAME", default_value = "fuzz_target_1")]
    fuzz_target: String,
}

/// Runs the command.
pub fn run(args: &Args, output: &Output) -> Result<Exit, Failure> {
    if let Ok(project) = Project::find(None) {
        let targets = project.targets.join(", ");
        let message =
            format!("there is a cargo-fuzz project already, with the fuzz targets {targets}");
        return Err(Failure::usage(message)
            .path(&project.fuzz_dir)
            .hint("fuzz one of them: cargo ddfuzz run NAME; add another: cargo fuzz add NAME"));
    }
    let toolchain = toolchain::choose(false, output)?;
    let status = cargo(toolchain)
        .args(["fuzz", "init", "--target", &args.fuzz_target])
        .stdout(std::io::stderr())
        .status()
        .map_err(|error| toolchain::no_cargo(&error))?;
    if !status.success() {
        return Err(Failure::usage(format!("cargo fuzz init failed ({status})"))
            .hint("fix the error shown above; the command creates fuzz/ beside the Cargo.toml of a package"));
    }
    let project = Project::find(None)?;
    let name = &args.fuzz_target;
    output.result(
        &format!(
            "created {}\nnext: write the code to be fuzzed into {}, then: cargo ddfuzz run {name}",
            project.fuzz_dir.display(),
            project
                .fuzz_dir
                .join("fuzz_targets")
                .join(format!("{name}.rs"))
                .display(),
        ),
        &serde_json::json!({ "fuzz_dir": project.fuzz_dir, "targets": project.targets }),
    );
    Ok(Exit::Done)
}
