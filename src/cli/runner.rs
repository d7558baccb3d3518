//! `ddfuzz-runner`: a Cargo runner. Executes the program that cargo runs; if that is a libFuzzer
//! program called to fuzz, also groups and minimizes the crashes that it finds.

use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::os::fd::{AsFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{self, ExitCode, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};

use clap::{Arg, Command};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::{Pid, getppid};

use super::cargo::libfuzzer::{
    EXACT_PATH, Flags, LibFuzzerPlan, LibFuzzers, MAX_LEN, Scratch, TerminalUse,
};
use super::cargo::{WrittenArtifacts, choose_out, own_campaigns, reproducers};
use super::output::tell;
use super::run::{StoreRequest, open_store};
use super::target::probe_by;
use super::{Exit, Failure, output, signals};
use crate::campaign::watch::{Producer, WatchSettings, watch};
use crate::campaign::{Deadline, Minimizing, Progress, Screen, Summary, When};
use crate::exec::facts::TargetFacts;
use crate::exec::{Program, Target};
use crate::report::{GroupView, block, size, text};
use crate::store::{KnownGroups, Store};

/// Name of the environment variable whose value `off` makes `ddfuzz-runner` execute the program
/// without ddfuzz.
const SWITCH: &str = "DDFUZZ_RUNNER";
/// Name of the environment variable with the path of ddfuzz's output directory.
const OUT: &str = "DDFUZZ_OUT";

/// Runs `ddfuzz-runner`: executes the program on the command line, with ddfuzz if it is a libFuzzer
/// program that is called to fuzz, and returns its exit status.
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
            output::print(command().render_help().to_string().trim_end());
            return Exit::Done.into();
        }
        Some(PRINT_AFTER) => return print_after_main(words),
        Some("--version" | "-V") => {
            output::print(&format!("ddfuzz-runner {}", env!("CARGO_PKG_VERSION")));
            return Exit::Done.into();
        }
        _ => {}
    }
    let is_off = std::env::var_os(SWITCH).is_some_and(|value| value == "off");
    if is_off || !is_called_to_fuzz(program, words) {
        return replace(program, words);
    }
    match group_and_minimize(Path::new(program), words) {
        Ok(status) => end_as(status),
        Err(failure) => {
            // Fuzzing matters most to the user, so the program is run without ddfuzz.
            tell(&format!(
                "ddfuzz: {failure}\nddfuzz: running the program without ddfuzz"
            ));
            replace(program, words)
        }
    }
}

/// Replaces this process by the program with the arguments `words` (`execve`); returns an exit code
/// only if that fails.
fn replace(program: &OsString, words: &[OsString]) -> ExitCode {
    let error = process::Command::new(program).args(words).exec();
    tell(&format!("error: {}: {error}", program.to_string_lossy()));
    ExitCode::from(match error.kind() {
        std::io::ErrorKind::NotFound => 127,
        _ => 126,
    })
}

/// Ends this process as the libFuzzer program ended: by the same signal or exit code.
fn end_as(status: ExitStatus) -> ExitCode {
    if let Some(signal) = status.signal()
        && let Ok(signal) = nix::sys::signal::Signal::try_from(signal)
    {
        // No core dump of this process is needed: the program has left its own.
        let _ = nix::sys::resource::setrlimit(nix::sys::resource::Resource::RLIMIT_CORE, 0, 0);
        // SAFETY: the default action has no handler.
        let _ = unsafe { nix::sys::signal::signal(signal, nix::sys::signal::SigHandler::SigDfl) };
        let _ = nix::sys::signal::raise(signal);
    }
    ExitCode::from(u8::try_from(status.code().unwrap_or(1)).unwrap_or(1))
}

/// Runs the libFuzzer program, groups and minimizes the crashes that it finds, and returns its exit
/// status.
fn group_and_minimize(program: &Path, words: &[OsString]) -> Result<ExitStatus, Failure> {
    let target = Target::new(Program::Path(crate::exec::find_program(program)?));
    let started = probe_by(&target, None)?;
    let way = started.executor.way();
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let out = match std::env::var_os(OUT) {
        Some(out) => PathBuf::from(out),
        None => choose_out(Path::new("ddfuzz-out"), &name, program),
    };
    let asked = StoreRequest {
        out: &out,
        resume: false,
        seed: None,
    };
    let (store, campaign) = open_store(&asked, &target, way)?;
    let stop = signals::stop_flag()?;
    let (plan, corpus) = plan(program, words)?;
    let pending = (!plan.again).then(Vec::new);
    let artifacts = folder_of(&plan.artifact_prefix);
    let settings = watching(target, way);
    let store = Mutex::new(store);
    let mut fuzzers = LibFuzzers::start(plan, corpus.path.clone(), stop.clone())
        .map_err(|error| Failure::file(program, "starting", &error))?;
    let mut blocks = GroupBlocks { pending };
    let shown = &mut blocks;
    let summary = watch(&store, &campaign.id, &settings, &mut fuzzers, shown, &stop);
    if let Err(error) = &summary {
        // Fuzzing matters most to the user, so the program is run without ddfuzz.
        let goes_on = match fuzzers.is_running() {
            true => "\nddfuzz: fuzzing goes on without ddfuzz",
            false => "",
        };
        tell(&format!("ddfuzz: {error}{goes_on}"));
        fuzzers.run_out();
    }
    fuzzers.wait();
    let status = fuzzers.unsuccessful().unwrap_or_default();
    let failure = fuzzers.failure();
    drop(fuzzers);
    drop(started);
    let store = store.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut texts = blocks.pending.unwrap_or_default();
    match summary {
        Ok(summary) => texts.extend(close(&summary, &store, program, artifacts.as_deref())),
        Err(error) => texts.push(format!("ddfuzz: {}", Failure::from(error))),
    }
    texts.extend(failure.map(|failure| format!("ddfuzz: {}", Failure::from(failure))));
    if !texts.is_empty() {
        print_last(&texts.join("\n"), !status.success());
    }
    Ok(status)
}

/// The directory in which libFuzzer stores new inputs: the user's, or a temporary one that is
/// removed on drop.
struct Corpus {
    path: PathBuf,
    _made: Option<Scratch>,
}

/// Decides by the flags on the user's command line how libFuzzer is run, and where it stores new
/// inputs. If there is a limit on time or runs, libFuzzer is started again after each crash. It
/// ends with the first crash if there is no limit, as users of cargo-fuzz expect, or if a flag
/// names one file for all crashes. Returns the plan by which libFuzzer is started, and the
/// directory for new inputs.
fn plan(program: &Path, words: &[OsString]) -> Result<(LibFuzzerPlan, Corpus), Failure> {
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
    let plan = LibFuzzerPlan {
        program: program.to_owned(),
        env: Vec::new(),
        artifact_prefix: flags.artifact_prefix.clone().unwrap_or_default(),
        jobs: 1,
        terminal: TerminalUse::Shared,
        again: (flags.time.is_some() || flags.runs.is_some()) && flags.value(EXACT_PATH).is_none(),
        flags,
    };
    Ok((plan, corpus))
}

fn watching(target: Target, way: crate::exec::Way) -> WatchSettings {
    WatchSettings {
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

/// Returns the directory of libFuzzer's artifacts if `prefix`, the value of `-artifact_prefix`,
/// names a directory other than the working directory; else `None`.
fn folder_of(prefix: &std::ffi::OsStr) -> Option<PathBuf> {
    let is_folder = prefix.as_encoded_bytes().ends_with(b"/") && prefix != "./";
    is_folder.then(|| PathBuf::from(prefix))
}

/// Writes the original inputs of the crash groups that the fuzz target `program` has shown, and
/// their shorter reproducers, into libFuzzer's artifact directory. Returns messages for the user
/// about these files and about new crash groups.
fn close(
    summary: &Summary,
    store: &Store,
    program: &Path,
    artifacts: Option<&Path>,
) -> Vec<String> {
    let reader = store.reader();
    let mut lines = Vec::new();
    if let Some(artifacts) = artifacts {
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        let own = own_campaigns(reader, &name);
        match own.and_then(|own| reproducers(reader, own.as_ref(), artifacts)) {
            Ok(WrittenArtifacts { count: 0, .. }) => {}
            Ok(WrittenArtifacts { count, .. }) => lines.push(format!(
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

/// Names of libFuzzer's flags that make it do something other than fuzz.
const OTHER_JOBS: [&str; 11] = [
    "merge",
    "merge_inner",
    "minimize_crash",
    "minimize_crash_internal_step",
    "cleanse_crash",
    "set_cover_merge",
    "analyze_dict",
    "collect_data_flow",
    "data_flow_trace",
    "help",
    "ignore_remaining_args",
];

/// Environment variable of the crate libfuzzer-sys: if it is set, a harness writes a description of
/// one input to the named file, and ends.
const DEBUG_PATH: &str = "RUST_LIBFUZZER_DEBUG_PATH";

/// Returns true if the program is a libFuzzer harness, and its arguments ask it to fuzz, not to run
/// files, merge, minimize or print something.
pub fn is_called_to_fuzz(program: &OsStr, words: &[OsString]) -> bool {
    if std::env::var_os(DEBUG_PATH).is_some() || !asks_for_fuzzing(words) {
        return false;
    }
    let target = Target::new(Program::Path(program.into()));
    TargetFacts::of(&target).is_ok_and(|facts| facts.libfuzzer)
}

fn asks_for_fuzzing(words: &[OsString]) -> bool {
    let flags = Flags::of(words);
    let is_single = |path: &&std::path::PathBuf| Path::new(path).is_file();
    let other = OTHER_JOBS.iter().any(|name| flags.is_on(name));
    // `-seed_inputs` and the like are flags; whatever has two dashes is for the harness itself.
    let is_odd = words
        .iter()
        .any(|word| word.as_encoded_bytes().starts_with(b"--"));
    !other
        && !is_odd
        && flags.runs != Some(0)
        && !flags.corpora.iter().any(|path| is_single(&path))
        && has_folders(&flags)
}

/// Returns true if all directories that the flags name for inputs and artifacts exist, or if
/// libFuzzer is told to create them. Returns false if not; ddfuzz then leaves it to libFuzzer to
/// report the error (for example, that the name of a crash file is mistyped).
fn has_folders(flags: &Flags) -> bool {
    let artifacts = flags.artifact_prefix.as_deref().and_then(folder_of);
    let mut folders = flags.corpora.iter().chain(&artifacts);
    flags.is_on("create_missing_dirs") || folders.all(|folder| folder.is_dir())
}

/// The display of a campaign under `ddfuzz-runner`: prints a block of text for each minimized crash
/// group, at once or after libFuzzer has ended.
pub struct GroupBlocks {
    /// Texts to print after libFuzzer has ended; if `None`, each text is printed at once, because
    /// libFuzzer is started again after each crash.
    pub pending: Option<Vec<String>>,
}

impl GroupBlocks {
    fn print(&mut self, text: String) {
        match &mut self.pending {
            Some(pending) => pending.push(text),
            None => tell(&text),
        }
    }
}

impl Screen for GroupBlocks {
    fn progress(&mut self, _: &Progress) {}

    fn minimized(&mut self, group: &GroupView) {
        self.print(block(group));
    }

    fn note(&mut self, text: &str) {
        self.print(format!("ddfuzz: {text}"));
    }
}

/// Option with which `ddfuzz-runner` starts itself as a helper: wait until the process with the
/// given id ends, then print the text on stdin.
pub const PRINT_AFTER: &str = "--print-after";
/// Maximum time in milliseconds that the helper process, which prints ddfuzz's last message on
/// stderr, waits for cargo-fuzz to end before it prints. It is long because cargo-fuzz runs the
/// program once more for each failing input.
const LONGEST_WAIT_MS: u16 = 60_000;
/// Number of nearest ancestors of this process among which cargo-fuzz is searched for.
const ANCESTORS: usize = 4;

/// Prints a text on stderr. Usually prints it at once. If cargo-fuzz runs this process and `failed`
/// is true, cargo-fuzz still prints messages of its own; then a helper process prints the text
/// after cargo-fuzz has ended.
pub fn print_last(text: &str, failed: bool) {
    let cargo_fuzz = if failed { calling_cargo_fuzz() } else { None };
    if cargo_fuzz.is_none_or(|pid| print_after(pid, text).is_err()) {
        tell(text);
    }
}

/// Starts a helper process that outlives this one: it prints `text` on stderr when the process
/// `pid` has ended, or after a minute.
fn print_after(pid: Pid, text: &str) -> std::io::Result<()> {
    let mut printer = process::Command::new(std::env::current_exe()?)
        .arg(PRINT_AFTER)
        .arg(pid.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        // Ctrl-C ends the processes of the terminal, but not this one, which prints the result.
        .process_group(0)
        .spawn()?;
    match printer.stdin.take() {
        Some(mut stdin) => stdin.write_all(text.as_bytes()),
        None => Ok(()),
    }
}

/// Runs the helper process that was started with [`PRINT_AFTER`]: reads a text from stdin, waits
/// until a process ends, and prints the text. `words` are the arguments after that option; the
/// first is the process's id.
pub fn print_after_main(words: &[OsString]) -> ExitCode {
    let mut text = String::new();
    // If reading fails, the text that was read so far is printed.
    let _ = std::io::stdin().lock().read_to_string(&mut text);
    let pid = words.first().and_then(|word| word.to_str()?.parse().ok());
    if let Some(handle) = pid.and_then(process_handle) {
        let mut ended = [PollFd::new(handle.as_fd(), PollFlags::POLLIN)];
        // The text is printed even if waiting fails.
        let _ = poll(&mut ended, PollTimeout::from(LONGEST_WAIT_MS));
    }
    tell(text.trim_end());
    Exit::Done.into()
}

/// Opens a pidfd for the process `pid`, with which a caller can wait for the end of the process;
/// `None` if it has ended.
fn process_handle(pid: i32) -> Option<OwnedFd> {
    // SAFETY: the call takes two numbers.
    let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let descriptor = RawFd::try_from(descriptor).ok().filter(|fd| *fd >= 0)?;
    // SAFETY: the kernel has just made this descriptor, and nobody else has it.
    Some(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Returns the process id of the cargo-fuzz that has started this process, directly or through
/// cargo. `None` if it is not among the nearest ancestors of this process.
fn calling_cargo_fuzz() -> Option<Pid> {
    let mut pid = getppid();
    for _ in 0..ANCESTORS {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // PID (NAME) STATE PPID …: the name may have blanks and parentheses in it.
        let (begin, end) = (stat.find('(')?, stat.rfind(')')?);
        if &stat[begin + 1..end] == "cargo-fuzz" {
            return Some(pid);
        }
        let parent = stat[end + 1..].split_whitespace().nth(1)?;
        pid = Pid::from_raw(parent.parse().ok()?);
    }
    None
}

const ABOUT: &str =
    "A Cargo runner that groups and minimizes the crashes that libFuzzer programs find";

const MORE: &str = "\
`cargo ddfuzz install-runner` makes cargo start programs through it. A program that is not a \
libFuzzer program called to fuzz is run as it is. After `cargo fuzz run`, ddfuzz-out contains the \
groups of crashes and their reproducers. With -max_total_time or -runs, libFuzzer is restarted \
after each crash until these are used up. Exit status, messages and artifacts are those of the \
program.

Environment:
  DDFUZZ_RUNNER=off   run the program without ddfuzz
  DDFUZZ_OUT=DIR      output directory [default: ddfuzz-out]";

/// Returns the definition of the command line of `ddfuzz-runner` for help and completions; it is
/// not used for parsing, because all arguments belong to the program that is run.
pub fn command() -> Command {
    Command::new("ddfuzz-runner")
        .version(env!("CARGO_PKG_VERSION"))
        .about(ABOUT)
        .max_term_width(100)
        .after_help(MORE)
        .arg(
            Arg::new("program")
                .value_name("PROGRAM")
                .help("Program to run")
                .required(true),
        )
        .arg(
            Arg::new("arguments")
                .value_name("ARGUMENT")
                .help("Its arguments")
                .num_args(0..)
                .trailing_var_arg(true)
                .allow_hyphen_values(true),
        )
}
