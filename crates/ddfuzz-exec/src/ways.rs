//! The ways of execution: which ones exist, which one a target gets, and how each is started.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{fs::File, os::unix::fs::PermissionsExt, path::Path};

use crate::launch::{Inject, Role};
use crate::{
    Channel, CoverageReporting, ExecError, Executor, Program, Target, Traceable,
    afl::Forkserver,
    descendants::{TreeExecutor, Untraced},
    elf,
    elf::EntryFunction,
    find_program,
    prepared_target::PreparedTarget,
    program_trust::ProgramTrust,
    server_executor::ServerExecutor,
    snapshot_executor::SnapshotExecutor,
};

/// A way of execution: how a target is run once for each input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// The program is executed (`execve`) in a new process for each run.
    Command,
    /// A fork server that ddfuzz injects into an unmodified, dynamically linked program forks each
    /// run.
    Inject,
    /// One process runs many inputs of an unmodified, dynamically linked program, and puts back
    /// what each run has changed.
    Snapshot,
    /// The fork server that AFL++'s compilers put into the program forks each run.
    Forkserver,
    /// The target's entry function is called in a child that is forked from a small zygote process.
    Harness,
    /// The runs are made up by the scripted mock executor of the tests.
    Mock,
}

impl Way {
    /// All methods of execution for real programs; the first one works for every program.
    pub const REAL: [Way; 5] = [
        Way::Command,
        Way::Inject,
        Way::Snapshot,
        Way::Forkserver,
        Way::Harness,
    ];

    /// Returns the name of the method of execution on the command line and in records.
    pub fn name(self) -> &'static str {
        match self {
            Way::Command => "command",
            Way::Inject => "inject",
            Way::Snapshot => "snapshot",
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

/// Whether several runs of a target may share a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// Runs may share a process, which is fastest: a harness runs many inputs in one process.
    Shared,
    /// Each run has its own process, so that earlier runs cannot affect it.
    Fresh,
}

/// A started target, with the reason why its method of execution was chosen.
pub struct Started {
    /// The executor that runs the target.
    pub executor: Box<dyn Executor>,
    /// Why this method of execution was chosen for the target, in a few words for users.
    pub why: String,
}

/// Starts `target` by the method of execution `way`, or, if `way` is `None`, by the fastest method
/// that works. Fails when the program is missing or cannot be executed, when the requested method
/// does not work, or when runs of the target are to be abandoned.
pub fn start(
    target: &Target,
    way: Option<Way>,
    freshness: Freshness,
) -> Result<Started, ExecError> {
    target.abandon_when.check()?;
    let fresh = freshness == Freshness::Fresh;
    match way {
        Some(Way::Command) => by_main(start_command(target), target, "chosen by --exec"),
        Some(Way::Inject) => by_main(start_injected(target), target, "chosen by --exec"),
        Some(Way::Snapshot) => by_snapshot(target, freshness, "chosen by --exec"),
        Some(Way::Harness) => by_entry(start_harness(target, fresh), "chosen by --exec"),
        Some(Way::Forkserver) => by_own_server(target, freshness, "chosen by --exec"),
        Some(Way::Mock) => {
            let why = "it exists for tests only";
            Err(ExecError::unfit(Way::Mock, Path::new("tests"), why))
        }
        None => by_choice(target, freshness),
    }
}

/// Starts `target` by the method of execution `way`. Each run has a new process and reports its
/// coverage, if method and target support that. Fails if the program is missing or cannot be
/// executed, or if the method does not work.
pub fn start_covered(target: &Target, way: Way) -> Result<Box<dyn Executor>, ExecError> {
    let mut executor: Box<dyn Executor> = match way {
        Way::Harness => Box::new(start_harness(target, false)?.with_fresh_runs()),
        way => start(target, Some(way), Freshness::Fresh)?.executor,
    };
    executor.report_coverage(CoverageReporting::Every);
    Ok(executor)
}

/// Two things that share one fork server of a target: first what makes traced runs, then the
/// executor of a search (such as minimization).
pub type WithSearch<T> = (T, Box<dyn Executor>);

/// Starts a target that is run by its entry function, with one fork server for the runs of a search
/// (such as minimization) and for traced runs. `way`: the method of execution; if `None`, the
/// fastest that works. Returns `None` for targets that are run by their `main`, and where no such
/// server works. Fails as [`start`] does.
pub fn start_with_tracer(
    target: &Target,
    way: Option<Way>,
) -> Result<Option<WithSearch<Traceable>>, ExecError> {
    let by_entry = match way {
        None => matches!(part_to_run(target)?, RunPart::Entry { .. }),
        Some(way) => way == Way::Harness,
    };
    if !by_entry {
        return Ok(None);
    }
    match Traceable::with_search(target) {
        Ok(both) => Ok(Some(both)),
        Err(ExecError::WayUnfit { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Starts the `main` of a target whose entry function [`start`] would call, so that runs can report
/// which basic blocks they reach and how much input they read: an entry function without coverage
/// counters and without libFuzzer cannot. `None` for other targets. Fails when the program is
/// missing or cannot be executed.
pub fn start_uncounted(target: &Target) -> Result<Option<Started>, ExecError> {
    match part_to_run(target)? {
        RunPart::Entry { is_plain: true, .. } => {
            let but = "an entry function without coverage counters in ";
            by_main_of(target, Freshness::Shared, but).map(Some)
        }
        _ => Ok(None),
    }
}

/// Starts the target by the fastest method of execution that works; `freshness`: whether its runs
/// may share a process. The result says why this method was chosen, and why each faster one did not
/// work.
fn by_choice(target: &Target, freshness: Freshness) -> Result<Started, ExecError> {
    let mut but = String::new();
    match part_to_run(target)? {
        RunPart::Entry { why, .. } => match start_harness(target, freshness == Freshness::Fresh) {
            Err(ExecError::WayUnfit { why, .. }) => {
                but = format!("its entry function cannot be called: {why}; ");
            }
            other => return by_entry(other, &why),
        },
        RunPart::Lost => {
            but = "a libFuzzer binary without symbols (stripped?), so its entry function is not found \
                   and its coverage unknown; "
                .to_owned();
        }
        RunPart::OwnServer => {
            match by_own_server(target, freshness, "a program compiled by AFL++") {
                Err(ExecError::WayUnfit { why, .. }) => {
                    but = format!("its own fork server does not work: {why}; ");
                }
                other => return other,
            }
        }
        RunPart::OwnMain => {
            but = "the main of a program with LLVMFuzzerTestOneInput, which --exec harness calls; "
                .to_owned();
        }
        RunPart::Main => {}
    }
    by_main_of(target, freshness, &but)
}

/// Starts the `main` of the target by the fastest method of execution that works. `but` is a text
/// for users about why no entry function is run; it is put in front of the reason for which the
/// method was chosen.
fn by_main_of(target: &Target, freshness: Freshness, but: &str) -> Result<Started, ExecError> {
    let linked = format!("{but}a dynamically linked program");
    let mut unfit = String::new();
    if freshness == Freshness::Shared {
        match by_snapshot(target, freshness, &linked) {
            Err(ExecError::WayUnfit { why, .. }) => unfit = format!(" (no snapshot: {why})"),
            other => return other,
        }
    }
    match start_injected(target) {
        Err(ExecError::WayUnfit { why, .. }) => {
            let why = format!("{but}no fork server can be injected: {why}");
            by_main(start_command(target), target, &why)
        }
        other => by_main(other, target, &format!("{linked}{unfit}")),
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

/// Returns the executor of a program's `main`, wrapped so that the crash of a process that the
/// program started is reported as a crash of the run. `why`: the reason for the method of
/// execution.
fn by_main(
    executor: Result<ServerExecutor, ExecError>,
    target: &Target,
    why: &str,
) -> Result<Started, ExecError> {
    executor.map(|executor| Started {
        why: match executor.way() {
            Way::Inject => format!("{why}, forked {}", executor.fork_point()),
            _ => why.to_owned(),
        },
        executor: Box::new(TreeExecutor::new(Box::new(executor), target)),
    })
}

/// Starts the target by the method `snapshot`, chosen for the reason `why`. If `freshness` says
/// that each run needs its own process, the runs are made as by the method `inject`.
fn by_snapshot(target: &Target, freshness: Freshness, why: &str) -> Result<Started, ExecError> {
    let (bare, how): (Box<dyn Untraced>, String) = match freshness {
        Freshness::Shared => {
            let owned = target.clone();
            let start = move |inject| start_injecting(&owned, Way::Snapshot, inject);
            let (executor, how) = SnapshotExecutor::start(trust_of(target), Box::new(start))?;
            (Box::new(executor), how)
        }
        Freshness::Fresh => {
            let fresh = Target {
                freeze_start: false,
                ..target.clone()
            };
            let forking = start_injecting(&fresh, Way::Snapshot, Inject::Defer)?;
            let how = format!("forked {}", forking.fork_point());
            (Box::new(forking), how)
        }
    };
    Ok(Started {
        executor: Box::new(TreeExecutor::new(bare, target)),
        why: format!("{why}, {how}"),
    })
}

/// Returns the record of what runs have shown about running many inputs of the target's program in
/// one process; for a script, the program is the script, not its interpreter.
pub(crate) fn trust_of(target: &Target) -> ProgramTrust {
    match &target.program {
        Program::Path(name) => find_program(name)
            .map(|path| ProgramTrust::of(&path, target.freeze_start))
            .unwrap_or_default(),
        Program::Bundled(_) => ProgramTrust::default(),
    }
}

/// Returns the executor of a program's entry function (such as `LLVMFuzzerTestOneInput`) together
/// with `why`, the reason for its method of execution. Crashes of processes that an entry function
/// starts are not searched for.
fn by_entry(executor: Result<ServerExecutor, ExecError>, why: &str) -> Result<Started, ExecError> {
    executor.map(|executor| Started {
        executor: Box::new(executor),
        why: why.to_owned(),
    })
}

/// Which part of a target's program is run: its entry function or its `main`.
enum RunPart {
    /// The entry function of the program is run: libFuzzer's `LLVMFuzzerTestOneInput`, or
    /// `target_main`.
    Entry {
        /// Why the entry function is run, for users.
        why: String,
        /// True if the program has no coverage counters and no `main` of libFuzzer, so that its
        /// `main` can be run in place of the entry function.
        is_plain: bool,
    },
    /// No part of the program can be run: it should have an entry function (such as
    /// `LLVMFuzzerTestOneInput`), but none was found.
    Lost,
    /// The `main` of the program is run, by the fork server that AFL++ compiled into the program.
    OwnServer,
    /// The `main` of the program is run, although the program also has a `LLVMFuzzerTestOneInput`:
    /// this `main` is not libFuzzer's, so it is unknown what else it does.
    OwnMain,
    /// The `main` of the program is run, by ddfuzz's own fork server or by `execve`.
    Main,
}

/// Returns which part of a target is run. A target with arguments runs its `main`, since an entry
/// function (such as `LLVMFuzzerTestOneInput`) gets no arguments; for a libFuzzer binary only `@@`
/// counts as an argument. An entry function is run if the `main` is known to do no more than call
/// it: that of libFuzzer, or that around a `target_main`.
fn part_to_run(target: &Target) -> Result<RunPart, ExecError> {
    if matches!(target.channel, Channel::Terminal(_)) {
        return Ok(RunPart::Main); // nothing else has a terminal
    }
    let path = match &target.program {
        Program::Bundled(name) if target.args.is_empty() => {
            return Ok(RunPart::Entry {
                why: "a bundled target with an entry function".to_owned(),
                is_plain: !name.ends_with(crate::bundled::COUNTED),
            });
        }
        Program::Bundled(_) => return Ok(RunPart::Main),
        Program::Path(path) => find_program(path)?,
    };
    let Some(facts) = elf::facts(&path) else {
        return Ok(RunPart::Main);
    };
    let run_entry = |what: &str, entry: EntryFunction| RunPart::Entry {
        why: format!("{what}, {}", entry.coverage()),
        is_plain: !facts.is_fuzzer && entry.counter_count() == 0,
    };
    Ok(match facts.entry {
        Some(entry) if facts.is_fuzzer && !target.takes_file() => {
            run_entry("a libFuzzer binary", entry)
        }
        // A program compiled by AFL++ reports coverage only to its own fork server.
        Some(entry) if facts.afl && !facts.is_fuzzer && entry.counter_count() == 0 => {
            RunPart::OwnServer
        }
        Some(entry) if !entry.is_fuzzer() && target.args.is_empty() => {
            run_entry("a target with an entry function", entry)
        }
        None if facts.is_fuzzer && !target.takes_file() => RunPart::Lost,
        _ if facts.afl && !facts.is_fuzzer => RunPart::OwnServer,
        Some(entry) if entry.is_fuzzer() && !facts.is_fuzzer => RunPart::OwnMain,
        _ => RunPart::Main,
    })
}

/// Starts the target by the method `command`: a new process and `execve` for each run. It works for
/// every program.
fn start_command(target: &Target) -> Result<ServerExecutor, ExecError> {
    ServerExecutor::start(
        target,
        PreparedTarget::prepare(target, Way::Command)?,
        Way::Command,
        Role::Serve,
        None,
    )
}

/// Starts the target by the method `inject`: with a fork server inside an unmodified, dynamically
/// linked program. The program is loaded once and runs up to the first call whose result may differ
/// between runs; each run forks there (docs/decisions/0162). At a terminal, which each run has to
/// take as its own, and on systems that cannot watch the program's calls, each run forks just
/// before `main`.
fn start_injected(target: &Target) -> Result<ServerExecutor, ExecError> {
    start_injecting(target, Way::Inject, fork_point_of(target))
}

/// Returns where the method `inject` forks the runs of a target.
pub(crate) fn fork_point_of(target: &Target) -> Inject {
    match target.channel {
        Channel::Terminal(_) => Inject::Fork,
        _ => Inject::Defer,
    }
}

/// Starts the target with ddfuzz's library preloaded into it, whose runs begin as `inject` says, as
/// part of the method of execution `way`. Fails if the library cannot be preloaded.
fn start_injecting(target: &Target, way: Way, inject: Inject) -> Result<ServerExecutor, ExecError> {
    let mut prepared = PreparedTarget::prepare(target, way)?;
    prepared.see_through_script(target);
    match not_injectable(&prepared) {
        Some(why) => Err(ExecError::unfit(way, &prepared.program, why)),
        None => ServerExecutor::start(target, prepared, way, Role::Program, Some(inject)),
    }
}

/// Returns why no library can be preloaded into the program; `None` if one can.
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

/// Starts the target by the method `forkserver`: a program compiled by AFL++ (`afl-clang-fast`,
/// `afl-clang-lto`, `afl-gcc-fast`) with its own fork server. Runs share a process where
/// `freshness` permits and the program supports it (`__AFL_LOOP`).
fn start_forkserver(target: &Target, freshness: Freshness) -> Result<Forkserver, ExecError> {
    Forkserver::start(
        target,
        PreparedTarget::prepare(target, Way::Forkserver)?,
        freshness,
    )
}

/// Starts the target by the method `harness`: calls `target_main`, or libFuzzer's
/// `LLVMFuzzerTestOneInput`, in a child of a small zygote process. `fresh`: each run gets its own
/// process; otherwise one process runs inputs until it dies.
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

/// Makes an executor of the target's entry function whose runs report their comparisons; with
/// [`Freshness::Fresh`], each in a new process. Its server starts with the first run.
pub(crate) fn observed_harness(
    target: &Target,
    freshness: Freshness,
) -> Result<ServerExecutor, ExecError> {
    let prepared = PreparedTarget::prepare(target, Way::Harness)?;
    let inject = Inject::Loop(harness_entry(&prepared)?);
    let mut executor =
        ServerExecutor::unstarted(target, prepared, Way::Harness, Role::Program, Some(inject))?;
    if freshness == Freshness::Fresh {
        executor = executor.with_fresh_runs();
    }
    executor.report_comparisons(true)?;
    Ok(executor)
}

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

/// Starts the executor of a shell command, which runs once for each input, with the input on stdin,
/// in the directory `target.cwd`. It runs as the current user; in a sandbox it runs as sandboxed
/// targets do, and may also write in that directory, which must not be replaced by another
/// directory while the executor exists. `output`: the file for its stdout and stderr, opened for
/// appending. Fails when the shell is missing; in a sandbox also when its user cannot reach the
/// directory.
pub fn start_shell(target: &Target, output: File) -> Result<Box<dyn Executor>, ExecError> {
    let prepared = PreparedTarget::for_shell(target, output)?;
    let shell = ServerExecutor::start(target, prepared, Way::Command, Role::Serve, None)?;
    Ok(Box::new(shell))
}

/// The environment variable of libfuzzer-sys that names the file for the debug text of an input.
const DEBUG_PATH_VARIABLE: &str = "RUST_LIBFUZZER_DEBUG_PATH";

/// Returns the `Debug` text of the value that a harness of libfuzzer-sys, `fuzz_target!( x: T )`,
/// builds from `input`: at most 64 KiB, without trailing white space, lossy UTF-8. `None` for other
/// programs, for harnesses that take bytes, and if no value can be built. The harness is run once,
/// only to write the text. Fails when the target cannot be run.
pub fn debug_text(target: &Target, input: &[u8]) -> Result<Option<String>, ExecError> {
    if !has_debug_text(target) {
        return Ok(None);
    }
    // It holds the private directory, which must have no other owner now.
    let mut prepared = PreparedTarget::prepare(target, Way::Command)?;
    let reports = prepared.texts()?;
    let mut asking = target.clone();
    // The last definition of a variable wins.
    let path = reports.log_path().into_os_string();
    asking.env.push((DEBUG_PATH_VARIABLE.into(), path));
    let mut executor = ServerExecutor::start(&asking, prepared, Way::Command, Role::Serve, None)?;
    executor.run(input)?;
    let written = reports.read();
    let text = String::from_utf8_lossy(&written);
    let text = text.trim_end();
    let is_plain = || format!("{input:?}").starts_with(text);
    Ok((!text.is_empty() && !is_plain()).then(|| text.to_owned()))
}

/// Whether the target is a libFuzzer binary that can write the debug text of an input, to the file
/// that [`DEBUG_PATH_VARIABLE`] names.
fn has_debug_text(target: &Target) -> bool {
    let Program::Path(path) = &target.program else {
        return false;
    };
    let facts = find_program(path).ok().and_then(|path| elf::facts(&path));
    facts.is_some_and(|facts| facts.fuzzer_main && facts.debug_text)
}
