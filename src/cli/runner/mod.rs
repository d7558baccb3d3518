//! `ddfuzz-runner`: a Cargo runner. What cargo runs is run as if it were not there, except for
//! libFuzzer programs that are called to fuzz: what they find is grouped and minimized, too.

mod called;
mod command;
mod last;
mod screen;

use std::ffi::OsString;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};
use std::sync::{Mutex, PoisonError};

pub use command::command;

use super::cargo::libfuzzer::{Attached, Flags, LibFuzzers, MAX_LEN, Plan, Scratch};
use super::cargo::{Written, choose_out, reproducers};
use super::output::tell;
use super::run::{Asked, open_store};
use super::target::probe_by;
use super::{Exit, Failure, signals};
use crate::campaign::watch::{Watching, watch};
use crate::campaign::{Deadline, Minimizing, Summary, When};
use crate::exec::{Program, Target};
use crate::report::{size, text};
use crate::store::{KnownGroups, Store};

/// Turns the runner off.
const SWITCH: &str = "DDFUZZ_RUNNER";
/// Names the output directory.
const OUT: &str = "DDFUZZ_OUT";

/// Runs the program of the command line; ends as it does.
pub fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let Some((program, words)) = words.split_first() else {
        tell(
            "error: no program is given: ddfuzz-runner is started by cargo\nhint: see ddfuzz-runner --help",
        );
        return Exit::Usage.into();
    };
    match program.to_str() {
        Some("--help" | "-h") => {
            super::output::print(command().render_help().to_string().trim_end());
            return Exit::Done.into();
        }
        Some(last::AFTER) => return last::main(words),
        Some("--version" | "-V") => {
            super::output::print(&format!("ddfuzz-runner {}", env!("CARGO_PKG_VERSION")));
            return Exit::Done.into();
        }
        _ => {}
    }
    let is_off = std::env::var_os(SWITCH).is_some_and(|value| value == "off");
    if is_off || !called::to_fuzz(program, words) {
        return replace(program, words);
    }
    match shrink(Path::new(program), words) {
        Ok(status) => end_as(status),
        Err(failure) => {
            // The user wants to fuzz above all.
            tell(&format!(
                "ddfuzz: {failure}\nddfuzz: running the program without ddfuzz"
            ));
            replace(program, words)
        }
    }
}

/// Becomes the program.
fn replace(program: &OsString, words: &[OsString]) -> ExitCode {
    let error = Command::new(program).args(words).exec();
    tell(&format!("error: {}: {error}", program.to_string_lossy()));
    ExitCode::from(match error.kind() {
        std::io::ErrorKind::NotFound => 127,
        _ => 126,
    })
}

/// Ends as the program did.
fn end_as(status: ExitStatus) -> ExitCode {
    if let Some(signal) = status.signal()
        && let Ok(signal) = nix::sys::signal::Signal::try_from(signal)
    {
        // The program has left what core there is to be.
        let _ = nix::sys::resource::setrlimit(nix::sys::resource::Resource::RLIMIT_CORE, 0, 0);
        // SAFETY: the default action has no handler.
        let _ = unsafe { nix::sys::signal::signal(signal, nix::sys::signal::SigHandler::SigDfl) };
        let _ = nix::sys::signal::raise(signal);
    }
    ExitCode::from(u8::try_from(status.code().unwrap_or(1)).unwrap_or(1))
}

/// Runs libFuzzer, groups and minimizes what it finds, and gives how it ended.
///
/// # Errors
/// What keeps ddfuzz from doing its part, before libFuzzer has begun.
fn shrink(program: &Path, words: &[OsString]) -> Result<ExitStatus, Failure> {
    let target = Target::new(Program::Path(crate::exec::find_program(program)?));
    let started = probe_by(&target, None)?;
    let way = started.executor.way();
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let out = match std::env::var_os(OUT) {
        Some(out) => PathBuf::from(out),
        None => choose_out(Path::new("ddfuzz-out"), &name, program),
    };
    let asked = Asked {
        out: &out,
        resume: false,
        seed: None,
    };
    let (store, campaign) = open_store(&asked, &target, way)?;
    let stop = signals::stop_flag()?;
    let (plan, corpus) = plan(program, words)?;
    let held = (!plan.again).then(Vec::new);
    let artifacts = folder_of(&plan.artifact_prefix);
    let settings = watching(target, way);
    let store = Mutex::new(store);
    let mut fuzzers = LibFuzzers::start(plan, corpus.path.clone(), stop.clone())
        .map_err(|error| Failure::file(program, "starting", &error))?;
    let mut blocks = screen::Blocks { held };
    let shown = &mut blocks;
    let summary = watch(&store, &campaign.id, &settings, &mut fuzzers, shown, &stop);
    fuzzers.wait();
    let status = fuzzers.failed().unwrap_or_default();
    drop(fuzzers);
    drop(started);
    let store = store.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut texts = blocks.held.unwrap_or_default();
    match summary {
        Ok(summary) => texts.extend(close(&summary, &store, artifacts.as_deref())),
        Err(error) => texts.push(format!("ddfuzz: {}", Failure::from(error))),
    }
    if !texts.is_empty() {
        last::print(&texts.join("\n"), !status.success());
    }
    Ok(status)
}

/// The directory for new inputs; one that is made for the call goes with it.
struct Corpus {
    path: PathBuf,
    _made: Option<Scratch>,
}

/// What libFuzzer is called with: what the user calls it with. Where it is bounded it is started
/// again after a crash; where it is not, it ends with the first, as users expect.
fn plan(program: &Path, words: &[OsString]) -> Result<(Plan, Corpus), Failure> {
    let mut flags = Flags::of(words);
    let corpus = match flags.corpora.is_empty() {
        false => Corpus {
            path: flags.corpora.remove(0),
            _made: None,
        },
        true => {
            let made = Scratch::new().map_err(|error| {
                Failure::file(&std::env::temp_dir(), "making a directory in", &error)
            })?;
            Corpus {
                path: made.path().to_owned(),
                _made: Some(made),
            }
        }
    };
    let plan = Plan {
        program: program.to_owned(),
        env: Vec::new(),
        artifact_prefix: flags.artifact_prefix.clone().unwrap_or_default(),
        jobs: 1,
        attached: Attached::Through,
        again: flags.time.is_some() || flags.runs.is_some(),
        flags,
    };
    Ok((plan, corpus))
}

fn watching(target: Target, way: crate::exec::Way) -> Watching {
    Watching {
        sources: Vec::new(),
        max_len: MAX_LEN,
        leaks: false,
        time: None,
        deadline: Deadline::default(),
        until: Vec::new(),
        when: When::Inline,
        jobs: 1,
        minimizing: Minimizing {
            budget_time: Some(std::time::Duration::from_secs(60)),
            ..Minimizing::of_target(target, way, "full")
        },
        known: KnownGroups::default(),
        waits_for_room: true,
    }
}

/// The folder that artifacts go to, where they have one of their own.
fn folder_of(prefix: &std::ffi::OsStr) -> Option<PathBuf> {
    let is_folder = prefix.as_encoded_bytes().ends_with(b"/") && prefix != "./";
    is_folder.then(|| PathBuf::from(prefix))
}

/// Writes reproducers where libFuzzer writes its findings; gives what to print about what was
/// found.
fn close(summary: &Summary, store: &Store, artifacts: Option<&Path>) -> Vec<String> {
    let reader = store.reader();
    let mut lines = Vec::new();
    if let Some(artifacts) = artifacts {
        match reproducers(reader, artifacts) {
            Ok(Written { count: 0, .. }) => {}
            Ok(Written { count, .. }) => lines.push(format!(
                "ddfuzz: wrote {} to {}",
                size::counted(count, "reproducer"),
                text::shell_word(artifacts)
            )),
            Err(failure) => lines.push(format!("ddfuzz: {failure}")),
        }
    }
    if summary.new_groups + summary.known_crashes > 0 {
        let groups = match summary.new_groups {
            0 => "no new crash group".to_owned(),
            new => size::counted(new, "new crash group"),
        };
        lines.push(format!(
            "ddfuzz: {groups}; next: ddfuzz show {}",
            text::shell_word(reader.root())
        ));
    }
    lines
}
