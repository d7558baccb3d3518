//! The ways of execution: which there are, which one a target gets, and how each is started.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::fs::{File, Permissions};
use std::io;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::afl::Forkserver;
use crate::descendants::TreeExecutor;
use crate::elf::EntryFunction;
use crate::launch::{Inject, Role};
use crate::prepared_target::PreparedTarget;
use crate::server_executor::ServerExecutor;
use crate::{Channel, CoverageReporting, ExecError, Executor, Program, Target, elf, find_program};

/// A way to run a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// A new process and `execve` for each run.
    Command,
    /// A fork server injected into an unmodified, dynamically linked program.
    Inject,
    /// The fork server that AFL++'s compilers put into the program.
    Forkserver,
    /// The target's entry function called in-process, in a child forked from a small zygote.
    Harness,
    /// The scripted mock of the tests.
    Mock,
}

impl Way {
    /// All ways in which programs are run, the one that works for everything first.
    pub const REAL: [Way; 4] = [Way::Command, Way::Inject, Way::Forkserver, Way::Harness];

    /// The name used on the command line and in records.
    pub fn name(self) -> &'static str {
        match self {
            Way::Command => "command",
            Way::Inject => "inject",
            Way::Forkserver => "forkserver",
            Way::Harness => "harness",
            Way::Mock => "mock",
        }
    }
}

impl std::fmt::Display for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Whether runs may share a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// As fast as the way allows: a harness runs many inputs in one process.
    Shared,
    /// Each run in a process of its own: what a proof may rest on.
    Fresh,
}

/// A started target, and why it runs in the way it does.
pub struct Started {
    /// The executor.
    pub executor: Box<dyn Executor>,
    /// Why this way, in a few words for people.
    pub why: String,
}

/// Starts `target` in the way asked for, or in the fastest that works.
///
/// # Errors
/// When the program is missing or cannot be executed, and when a way asked for does not work.
pub fn start(
    target: &Target,
    way: Option<Way>,
    freshness: Freshness,
) -> Result<Started, ExecError> {
    let fresh = freshness == Freshness::Fresh;
    match way {
        Some(Way::Command) => by_main(start_command(target), target, "chosen by --exec"),
        Some(Way::Inject) => by_main(start_injected(target), target, "chosen by --exec"),
        Some(Way::Harness) => by_entry(start_harness(target, fresh), "chosen by --exec"),
        Some(Way::Forkserver) => by_own_server(target, freshness, "chosen by --exec"),
        Some(Way::Mock) => {
            let why = "it exists for tests only";
            Err(ExecError::unfit(Way::Mock, Path::new("tests"), why))
        }
        None => by_choice(target, freshness),
    }
}

/// Starts `target` in this way so that each run has a process of its own and tells its coverage,
/// where the way and the target can tell any.
///
/// # Errors
/// As [`start`].
pub fn start_covered(target: &Target, way: Way) -> Result<Box<dyn Executor>, ExecError> {
    let mut executor: Box<dyn Executor> = match way {
        Way::Harness => Box::new(start_harness(target, false)?.with_fresh_runs()),
        way => start(target, Some(way), Freshness::Fresh)?.executor,
    };
    executor.tell_coverage(CoverageReporting::Every);
    Ok(executor)
}

/// Starts the fastest way that works. The reason names the ways that failed before.
fn by_choice(target: &Target, freshness: Freshness) -> Result<Started, ExecError> {
    let mut but = String::new();
    match wanted(target)? {
        Wanted::Entry(why) => match start_harness(target, freshness == Freshness::Fresh) {
            Err(ExecError::WayUnfit { why, .. }) => {
                but = format!("its entry function cannot be called: {why}; ");
            }
            other => return by_entry(other, &why),
        },
        Wanted::Lost => {
            but = "a libFuzzer binary without symbols (stripped?), so its entry function is not found \
                   and its coverage unknown; "
                .to_owned();
        }
        Wanted::OwnServer => {
            match by_own_server(target, freshness, "a program compiled by AFL++") {
                Err(ExecError::WayUnfit { why, .. }) => {
                    but = format!("its own fork server does not work: {why}; ");
                }
                other => return other,
            }
        }
        Wanted::Main => {}
    }
    match start_injected(target) {
        Err(ExecError::WayUnfit { why, .. }) => {
            let why = format!("{but}no fork server can be injected: {why}");
            by_main(start_command(target), target, &why)
        }
        other => by_main(other, target, &format!("{but}a dynamically linked program")),
    }
}

fn by_own_server(target: &Target, freshness: Freshness, why: &str) -> Result<Started, ExecError> {
    let executor = Box::new(start_forkserver(target, freshness)?);
    let mode = match executor.freshness() {
        Freshness::Shared => ", with many runs in one process",
        Freshness::Fresh => "",
    };
    Ok(Started {
        why: format!("{why}{mode}"),
        executor,
    })
}

/// Wraps the executor of a `main`, which may start other processes.
fn by_main(
    executor: Result<ServerExecutor, ExecError>,
    target: &Target,
    why: &str,
) -> Result<Started, ExecError> {
    executor.map(|executor| Started {
        executor: Box::new(TreeExecutor::new(executor, target)),
        why: why.to_owned(),
    })
}

/// Wraps the executor of an entry function, which is called without the program around it.
fn by_entry(executor: Result<ServerExecutor, ExecError>, why: &str) -> Result<Started, ExecError> {
    executor.map(|executor| Started {
        executor: Box::new(executor),
        why: why.to_owned(),
    })
}

/// Which part of a target is run.
enum Wanted {
    /// Its entry function; the reason is for people.
    Entry(String),
    /// Its entry function, but that is not found.
    Lost,
    /// Its `main`, by a fork server that its compiler put into it.
    OwnServer,
    /// Its `main`.
    Main,
}

/// Decides which part of a target is run. A target with arguments runs its `main`: nothing else
/// would see them, those of libFuzzer excepted.
fn wanted(target: &Target) -> Result<Wanted, ExecError> {
    if matches!(target.channel, Channel::Terminal(_)) {
        return Ok(Wanted::Main); // nothing else has a terminal
    }
    let path = match &target.program {
        Program::Bundled(_) if target.args.is_empty() => {
            let why = "a bundled target with an entry function".to_owned();
            return Ok(Wanted::Entry(why));
        }
        Program::Bundled(_) => return Ok(Wanted::Main),
        Program::Path(path) => find_program(path)?,
    };
    let Some(facts) = elf::facts(&path) else {
        return Ok(Wanted::Main);
    };
    Ok(match facts.entry {
        Some(entry) if facts.is_fuzzer && !target.takes_file() => {
            Wanted::Entry(format!("a libFuzzer binary, {}", entry.coverage()))
        }
        // One that AFL++ has compiled tells its coverage to its own server only.
        Some(entry) if facts.afl && !facts.is_fuzzer && entry.counter_count() == 0 => {
            Wanted::OwnServer
        }
        Some(entry) if !facts.is_fuzzer && target.args.is_empty() => Wanted::Entry(format!(
            "a target with an entry function, {}",
            entry.coverage()
        )),
        None if facts.is_fuzzer && !target.takes_file() => Wanted::Lost,
        _ if facts.afl && !facts.is_fuzzer => Wanted::OwnServer,
        _ => Wanted::Main,
    })
}

/// The way `command`: a new process and `execve` for each run. It works for every program.
fn start_command(target: &Target) -> Result<ServerExecutor, ExecError> {
    ServerExecutor::start(
        target,
        PreparedTarget::prepare(target, Way::Command)?,
        Way::Command,
        Role::Serve,
        None,
    )
}

/// The way `inject`: a fork server inside an unmodified, dynamically linked program. Loading and
/// linking happen once; each run forks just before `main`.
fn start_injected(target: &Target) -> Result<ServerExecutor, ExecError> {
    let mut prepared = PreparedTarget::prepare(target, Way::Inject)?;
    prepared.see_through_script(target);
    if let Some(why) = not_injectable(&prepared) {
        return Err(ExecError::unfit(Way::Inject, &prepared.program, why));
    }
    ServerExecutor::start(
        target,
        prepared,
        Way::Inject,
        Role::Program,
        Some(Inject::Fork),
    )
}

/// Why no runtime can be injected into the program; `None` where one can.
pub(crate) fn not_injectable(prepared: &PreparedTarget) -> Option<&'static str> {
    let Some(facts) = &prepared.facts else {
        return Some("it is neither an ELF program for this machine nor a script run by one");
    };
    let Some(interpreter) = &facts.interpreter else {
        return Some("it is statically linked");
    };
    if interpreter.contains("musl") {
        return Some("it is linked with musl, not with glibc");
    }
    if !facts.starts_by_libc {
        return Some("it does not start through glibc");
    }
    let mode = std::fs::metadata(&prepared.program)
        .map(|facts| facts.permissions().mode())
        .unwrap_or(0);
    if mode & 0o6000 != 0 {
        return Some("it is setuid or setgid, so nothing can be preloaded");
    }
    None
}

/// The way `forkserver`: a program compiled by AFL++ (`afl-clang-fast`, `afl-clang-lto`,
/// `afl-gcc-fast`), run through its own fork server. Runs share a process where `freshness` permits
/// that and the program is built for it (`__AFL_LOOP`).
fn start_forkserver(target: &Target, freshness: Freshness) -> Result<Forkserver, ExecError> {
    Forkserver::start(
        target,
        PreparedTarget::prepare(target, Way::Forkserver)?,
        freshness,
    )
}

/// The way `harness`: calls the entry function in a child of a small zygote. That function is
/// `target_main`, or libFuzzer's `LLVMFuzzerTestOneInput` in a binary of cargo-fuzz or clang.
/// `fresh`: each run gets its own process, so that no state of earlier runs affects the outcome;
/// else one process runs inputs until it dies.
fn start_harness(target: &Target, fresh: bool) -> Result<ServerExecutor, ExecError> {
    let prepared = PreparedTarget::prepare(target, Way::Harness)?;
    let entry = harness_entry(&prepared)?;
    let inject = if fresh {
        Inject::Entry(entry)
    } else {
        Inject::Loop(entry)
    };
    ServerExecutor::start(target, prepared, Way::Harness, Role::Program, Some(inject))
}

/// The entry function of a harness.
pub(crate) fn harness_entry(prepared: &PreparedTarget) -> Result<EntryFunction, ExecError> {
    let unfit = |why: &str| ExecError::unfit(Way::Harness, &prepared.program, why);
    let entry = prepared.facts.as_ref().and_then(|facts| facts.entry);
    let entry = entry.ok_or_else(|| {
        unfit("it has no function `target_main` or `LLVMFuzzerTestOneInput` (is it stripped?)")
    })?;
    match not_injectable(prepared) {
        Some(why) => Err(unfit(why)),
        None => Ok(entry),
    }
}

/// Mode of the input file of an interestingness test, which may write to it whatever the umask.
const TEST_INPUT_MODE: u32 = 0o644;

/// Starts an interestingness test: a program that gets the input in three ways at once, as its first
/// argument, on stdin, and as the file `name` in its fresh directory (interface.md). The directory is
/// emptied after each run; the target's own arguments and directory are not used. The test runs as
/// the user who started ddfuzz.
///
/// # Errors
/// When the program is missing or has no execute permission. Whether the system can execute it,
/// the first run shows: it is [`ExecError::NotExecutable`] where it cannot.
pub fn start_test(target: &Target, name: &OsStr) -> Result<Box<dyn Executor>, ExecError> {
    let (prepared, file) = PreparedTarget::for_test(target, name)?;
    let test = ServerExecutor::for_test(
        target,
        prepared,
        Some(file),
        Way::Command,
        Role::Serve,
        None,
    )?;
    Ok(Box::new(test))
}

/// Writes the input file of an interestingness test.
pub(crate) fn write_test_input(path: &Path, input: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.set_permissions(Permissions::from_mode(TEST_INPUT_MODE))?;
    file.write_all(input)
}

/// The variable of libfuzzer-sys that names the file for the debug text.
const VARIABLE: &str = "RUST_LIBFUZZER_DEBUG_PATH";

/// What a harness of libfuzzer-sys builds from `input`: the `Debug` text of the value of
/// `fuzz_target!(|x: T|)`, at most 64 KiB, without white space at its end, lossy where it is not
/// UTF-8. `None` for other programs, for harnesses of plain bytes, and where no value can be built.
/// The harness writes the text instead of testing, so this makes a run of its own.
///
/// # Errors
/// When the target cannot be run.
pub fn debug_text(target: &Target, input: &[u8]) -> Result<Option<String>, ExecError> {
    if !knows(target) {
        return Ok(None);
    }
    // It holds the private directory, which nothing else may hold by now.
    let mut prepared = PreparedTarget::prepare(target, Way::Command)?;
    let reports = prepared.texts()?;
    let mut asking = target.clone();
    // What is set last holds.
    let path = reports.log_path().into_os_string();
    asking.env.push((VARIABLE.into(), path));
    let mut executor = ServerExecutor::start(&asking, prepared, Way::Command, Role::Serve, None)?;
    executor.run(input)?;
    let written = reports.read();
    let text = String::from_utf8_lossy(&written);
    let text = text.trim_end();
    let is_plain = || format!("{input:?}").starts_with(text);
    Ok((!text.is_empty() && !is_plain()).then(|| text.to_owned()))
}

/// Whether the target is a libFuzzer binary whose harness knows [`VARIABLE`].
fn knows(target: &Target) -> bool {
    let Program::Path(path) = &target.program else {
        return false;
    };
    let facts = find_program(path).ok().and_then(|path| elf::facts(&path));
    facts.is_some_and(|facts| facts.fuzzer_main && facts.debug_text)
}
