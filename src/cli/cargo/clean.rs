//! `cargo ddfuzz clean`: a smaller corpus of a fuzz target that reaches as much.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use serde::Serialize;

use super::build::BuildArgs;
use super::project::Project;
use crate::cli::{Exit, Failure, Output};
use crate::report::{size, text};

/// Make the corpus of a fuzz target smaller, by the merge of its libFuzzer
///
/// The new corpus takes the place of the old one, which is kept beside it as FUZZ_TARGET.old.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  cargo ddfuzz clean parse")]
pub struct Args {
    /// The fuzz target; `cargo ddfuzz list` lists them
    #[arg(value_name = "FUZZ_TARGET")]
    name: String,
    /// Build for this triple [default: that of this machine]
    #[arg(long, value_name = "TRIPLE")]
    target: Option<String>,
    /// Do not keep the old corpus
    #[arg(long)]
    delete_old: bool,
    #[command(flatten)]
    build: BuildArgs,
}

/// Files, and their bytes.
#[derive(Clone, Copy, Serialize)]
struct Amount {
    files: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct Cleaned {
    before: Amount,
    after: Amount,
    /// Where the old corpus is.
    old: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: &Args, output: &Output) -> Result<Exit, Failure> {
    let project = Project::find(args.build.fuzz_dir.as_deref())?;
    project.check(&args.name)?;
    let corpus = project.corpus(&args.name);
    let before = amount(&corpus)?;
    let old = corpus.with_file_name(format!("{}.old", args.name));
    if old.exists() && !args.delete_old {
        return Err(Failure::usage("an older corpus is kept there")
            .path(&old)
            .hint("remove it when you do not need it any more"));
    }
    let built = (args.build).build(&project, &args.name, args.target.as_deref(), output)?;
    let failed = |what: &Path, error: std::io::Error| Failure::file(what, "cleaning", &error);
    let parent = corpus.parent().unwrap_or(Path::new("."));
    // On the same file system, so that it can be moved as a whole.
    let fresh = tempfile::Builder::new()
        .prefix(".ddfuzz-tmp-")
        .tempdir_in(parent)
        .map_err(|error| failed(parent, error))?;
    merge(&built.program, fresh.path(), &corpus)?;
    let after = amount(fresh.path())?;
    if after.files == 0 {
        let message = "nothing would be left of the corpus, so it stays as it is";
        return Err(Failure::new(Exit::Found, "clean", message).path(&corpus));
    }
    renameat2(
        AT_FDCWD,
        fresh.path(),
        AT_FDCWD,
        &corpus,
        RenameFlags::RENAME_EXCHANGE,
    )
    .map_err(|errno| failed(&corpus, errno.into()))?;
    // What was the corpus now stands where the new one was made, and goes with it unless kept.
    let kept = match args.delete_old {
        true => None,
        false => {
            std::fs::rename(fresh.keep(), &old).map_err(|error| failed(&old, error))?;
            Some(old)
        }
    };
    report(
        &Cleaned {
            before,
            after,
            old: kept,
        },
        output,
    );
    Ok(Exit::Done)
}

/// Has libFuzzer write into the empty directory `fresh` what of `corpus` reaches something.
fn merge(program: &Path, fresh: &Path, corpus: &Path) -> Result<(), Failure> {
    let output = Command::new(program)
        .arg("-merge=1")
        .args([fresh, corpus])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Failure::file(program, "starting", &error))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().rev().find(|line| !line.trim().is_empty());
    let message = format!(
        "libFuzzer could not merge the corpus ({}): {}",
        output.status,
        text::printable(last.unwrap_or("it said nothing")),
    );
    Err(Failure::new(Exit::Baseline, "merge", message).path(corpus))
}

fn report(cleaned: &Cleaned, output: &Output) {
    let of = |amount: Amount| {
        let bytes = size::counted(amount.bytes, "byte");
        format!("{} of {bytes}", size::counted(amount.files, "input"))
    };
    let kept = match &cleaned.old {
        Some(old) => format!("; the old corpus is kept as {}", old.display()),
        None => String::new(),
    };
    let text = format!("{} -> {}{kept}", of(cleaned.before), of(cleaned.after));
    output.result(&text, cleaned);
}

fn amount(dir: &Path) -> Result<Amount, Failure> {
    let entries = std::fs::read_dir(dir).map_err(|error| {
        Failure::file(dir, "reading", &error).hint("fuzz first: cargo ddfuzz run FUZZ_TARGET")
    })?;
    let mut amount = Amount { files: 0, bytes: 0 };
    for entry in entries.flatten() {
        if let Ok(facts) = entry.metadata()
            && facts.is_file()
        {
            amount.files += 1;
            amount.bytes += facts.len();
        }
    }
    Ok(amount)
}
