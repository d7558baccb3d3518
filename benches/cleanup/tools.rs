//! Who cleans, and how each of them is asked to.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::builds::Builds;
use crate::cost::{Cost, measure};
use crate::subjects::Subject;
use crate::watched::end_orphans;

/// A peer, with the program that it runs.
#[derive(Clone, Debug)]
pub enum Peer {
    /// The libFuzzer program's own `-merge=1`.
    Merge(PathBuf),
    /// `cargo fuzz cmin` on this target of `fuzz/`, which it has built with AddressSanitizer.
    CargoFuzz(&'static str),
    /// `afl-cmin` with a program of AFL++'s compiler.
    AflCmin(PathBuf),
}

/// What `ddfuzz clean` does with the files that it keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trim {
    /// Nothing.
    Off,
    /// They lose bytes, and nothing of what they reach.
    Signature,
    /// They also lose what other kept files reach.
    Worth,
}

/// Who cleans.
#[derive(Clone, Debug)]
pub enum Tool {
    /// `ddfuzz clean`.
    Ddfuzz(Trim),
    /// Another one.
    Peer(Peer),
}

impl Tool {
    /// Its name in tables and on the command line.
    pub fn name(&self) -> &'static str {
        match self {
            Tool::Ddfuzz(Trim::Off) => "ddfuzz, --trim off",
            Tool::Ddfuzz(Trim::Signature) => "ddfuzz, --trim signature",
            Tool::Ddfuzz(Trim::Worth) => "ddfuzz, --trim worth",
            Tool::Peer(Peer::Merge(_)) => "-merge=1",
            Tool::Peer(Peer::CargoFuzz(_)) => "cargo fuzz cmin",
            Tool::Peer(Peer::AflCmin(_)) => "afl-cmin",
        }
    }

    /// Whether this is ddfuzz.
    pub fn is_ours(&self) -> bool {
        matches!(self, Tool::Ddfuzz(_))
    }

    /// Cleans `corpus` by one worker; gives the folder of what it keeps, and what that took. `work`
    /// is an empty folder for whatever is written.
    ///
    /// # Errors
    /// Where it cannot be started or fails.
    pub fn clean(
        &self,
        builds: &Builds,
        subject: &Subject,
        corpus: &Path,
        work: &Path,
    ) -> Result<(PathBuf, Cost), String> {
        let out = work.join("out");
        let (mut command, kept) = match self {
            Tool::Ddfuzz(trim) => (
                clean(builds, *trim, subject, corpus, &out),
                out.join("corpus"),
            ),
            Tool::Peer(Peer::Merge(program)) => {
                fs::create_dir(&out).map_err(|error| error.to_string())?;
                (merge(program, corpus, &out), out)
            }
            Tool::Peer(Peer::CargoFuzz(target)) => {
                builds.cargo_fuzz_build(target)?;
                // It cleans a corpus where that lies.
                copy(corpus, &out)?;
                let mut command = builds.cargo_fuzz("cmin", target);
                command.arg(&out);
                (command, out)
            }
            Tool::Peer(Peer::AflCmin(program)) => (afl_cmin(program, corpus, &out), out),
        };
        command.stdin(Stdio::null());
        let (output, cost) = measure(|| {
            let output = command.output();
            // Their CPU time counts, too.
            end_orphans().and(output)
        });
        let output = output.map_err(|error| format!("{:?}: {error}", command.get_program()))?;
        match output.status.success() {
            true => Ok((kept, cost)),
            false => Err(format!(
                "{command:?}: {}: {}",
                output.status,
                String::from_utf8_lossy(&output.stderr).trim()
            )),
        }
    }
}

fn clean(builds: &Builds, trim: Trim, subject: &Subject, corpus: &Path, out: &Path) -> Command {
    let mut command = Command::new(&builds.ddfuzz);
    command.args(["clean", "-q", "--json", "--jobs", "1"]);
    command.args(["--exec", subject.way.name(), "--trim"]);
    command.arg(match trim {
        Trim::Off => "off",
        Trim::Signature => "signature",
        Trim::Worth => "worth",
    });
    command.arg(corpus).arg("-o").arg(out);
    command.arg("--").arg(&subject.program);
    command
}

fn merge(program: &Path, corpus: &Path, out: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg("-merge=1").arg(out).arg(corpus);
    command
}

fn afl_cmin(program: &Path, corpus: &Path, out: &Path) -> Command {
    let mut command = Command::new("afl-cmin");
    // Without the first it refuses folders below /tmp; the second is what afl-fuzz asks for, too.
    command
        .env("AFL_ALLOW_TMP", "1")
        .env("AFL_SKIP_CPUFREQ", "1");
    command.arg("-i").arg(corpus).arg("-o").arg(out);
    command.arg("--").arg(program);
    command
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let all = fs::read_dir(from).map_err(|error| format!("{}: {error}", from.display()))?;
    fs::create_dir(to).map_err(|error| format!("{}: {error}", to.display()))?;
    for file in all.flatten() {
        let copied = fs::copy(file.path(), to.join(file.file_name()));
        copied.map_err(|error| format!("{}: {error}", file.path().display()))?;
    }
    Ok(())
}
