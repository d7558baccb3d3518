//! Options for the target: a program after `--`, a bundled target by name, or the target recorded
//! in an output directory; and how the input is passed to it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, ValueEnum};

use super::{Failure, Output, signals, values};
use crate::exec::sandbox::{SandboxSupport, keep_files, supported_parts};
use crate::exec::{
    Channel, ClosedPath, ExecError, Executor, Freshness, Limits, Program, Sandbox, Started, Target,
    Terminal, TimeLimit, Traceable, Way, bundled, find_program, runs_as_root_for, start,
};
use crate::files::Base64;
use crate::report::text::shell_word;
use crate::store::{Campaign, CampaignFile, Reader, Store, StoreError};
use crate::triage::Triager;

/// Heading in `--help` of the options about the target.
const TARGET: &str = "Target";

/// Options for the target: program, way of execution, limits, environment, sandbox.
#[derive(Args, Clone, Debug)]
pub struct TargetArgs {
    /// Use a target that comes with ddfuzz, by name, instead of a program
    #[arg(help_heading = TARGET, long, value_name = "NAME")]
    pub target: Option<String>,
    /// The program and its arguments, after `--`. @@ in an argument is replaced by the path of a
    /// file with the input; without @@ the program reads the input from stdin
    #[arg(last = true, value_name = "PROGRAM")]
    pub program: Vec<OsString>,
    /// How the program is executed, for example by a fork server
    #[arg(help_heading = TARGET, long = "exec", value_name = "WAY", value_enum, default_value_t = WayArg::Auto)]
    pub way: WayArg,
    /// Limit on the CPU time of one run [default: 1s; minimizations and coverage-guided campaigns
    /// adapt it to the target]. The limit on elapsed time is twice as long, at least 2s; ten times
    /// as long where a run proves something
    #[arg(help_heading = TARGET, long, value_name = "TIME", value_parser = values::time_limit)]
    pub timeout: Option<Duration>,
    /// Limit on the memory of one run, at least 1M [default: 1G; for a libFuzzer binary its
    /// -rss_limit_mb, or 2G]
    #[arg(help_heading = TARGET, long, value_name = "SIZE", value_parser = values::memory_limit)]
    pub memory: Option<u64>,
    /// Set an environment variable for the target; may be repeated
    #[arg(help_heading = TARGET, hide_short_help = true, long, value_name = "K=V", value_parser = OsStringValueParser::new().try_map(assignment))]
    pub env: Vec<(OsString, OsString)>,
    /// Working directory of the target [default: a temporary directory, emptied after each run]
    #[arg(help_heading = TARGET, hide_short_help = true, long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// Run the target in a sandbox: it can write to its temporary directory only, and has no
    /// network. `ddfuzz doctor` shows which protections this machine supports
    #[arg(help_heading = TARGET, hide_short_help = true, long)]
    pub sandbox: bool,
    /// Let runs by `snapshot` share the random numbers, the times and the process id that the
    /// program reads before its input, as interpreters do. Crashes and results are still checked in
    /// new processes
    #[arg(help_heading = TARGET, hide_short_help = true, long)]
    pub freeze_start: bool,
    /// Treat this exit status of the target as a crash
    #[arg(help_heading = TARGET, hide_short_help = true, long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..=255))]
    pub crash_exit: Option<i32>,
    /// Options for the channel by which the program gets its input
    #[command(flatten)]
    pub channel: ChannelArgs,
}

/// Prints which parts of the sandbox this system supports, and returns their names. Fails if they
/// cannot protect the user's files. `against`: what the files would be protected from, for the
/// message. `without`: how to do without the sandbox, for the hint.
pub(super) fn file_sandbox(
    output: &Output,
    against: &str,
    without: &str,
) -> Result<Vec<String>, Failure> {
    let (works, fails): (Vec<SandboxSupport>, Vec<SandboxSupport>) =
        supported_parts().into_iter().partition(|part| part.works);
    let parts: Vec<String> = works.iter().map(|part| part.what.to_owned()).collect();
    let missing: Vec<String> = fails
        .iter()
        .map(|part| format!("{} ({})", part.what, part.why_not.as_deref().unwrap_or("?")))
        .collect();
    if !keep_files(&works) {
        return Err(Failure::usage(format!(
            "this system has no protection against {against}: {}",
            missing.join(", ")
        ))
        .hint(format!("run it on another machine, or {without}")));
    }
    let lacks = match missing.is_empty() {
        true => String::new(),
        false => format!("; not: {}", missing.join(", ")),
    };
    output.say(&format!("sandbox: {}{lacks}", parts.join(", ")));
    Ok(parts)
}

/// Values of `--exec`: ways in which the target program is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WayArg {
    /// Choose by the kind of program, usually the fastest way that works; `ddfuzz doctor` shows why
    Auto,
    /// Start a new process of the program for each run
    Command,
    /// Inject a fork server into the program (LD_PRELOAD); it need not be recompiled
    Inject,
    /// Run many inputs in one process of an unmodified program, and put back what each run changed
    Snapshot,
    /// Use the fork server that AFL++'s compilers put into the program
    Forkserver,
    /// Call the program's entry function in-process: LLVMFuzzerTestOneInput or target_main
    Harness,
}

impl WayArg {
    fn way(self) -> Option<Way> {
        match self {
            WayArg::Auto => None,
            WayArg::Command => Some(Way::Command),
            WayArg::Inject => Some(Way::Inject),
            WayArg::Snapshot => Some(Way::Snapshot),
            WayArg::Forkserver => Some(Way::Forkserver),
            WayArg::Harness => Some(Way::Harness),
        }
    }
}

/// Parses the value of `--env`, `NAME=VALUE`; fails without a name or a `=`.
pub fn assignment(text: OsString) -> Result<(OsString, OsString), String> {
    let bytes = text.into_vec();
    match bytes.iter().position(|byte| *byte == b'=') {
        Some(at @ 1..) => Ok((
            OsStr::from_bytes(&bytes[..at]).to_owned(),
            OsStr::from_bytes(&bytes[at + 1..]).to_owned(),
        )),
        _ => Err("write a variable as NAME=VALUE".to_owned()),
    }
}

/// Returns the command line `words` from its subcommand `command` on, with the words of `program`
/// moved to the end, after `--`.
fn with_program_last(
    words: impl Iterator<Item = OsString>,
    command: &str,
    program: &[PathBuf],
) -> Vec<OsString> {
    let mut words: Vec<OsString> = words.skip_while(|word| word != command).collect();
    if words.is_empty() {
        words.push(command.into());
    }
    for word in program.iter().rev() {
        if let Some(at) = words.iter().rposition(|one| one == word.as_os_str()) {
            words.remove(at);
        }
    }
    words.push("--".into());
    words.extend(program.iter().map(|word| word.clone().into_os_string()));
    words
}

/// Copies the program of a bundled target (one that comes with ddfuzz) into the output directory,
/// so that reproducer scripts can run it; does nothing for other targets.
pub fn install_bundled(store: &mut Store, target: &Target) -> Result<(), StoreError> {
    if let Program::Bundled(name) = &target.program
        && let Some(program) = bundled::program(name)
    {
        store.install_program(name, program)?;
    }
    Ok(())
}

impl TargetArgs {
    /// Returns the way of execution given by `--exec` (such as a fork server); `None` lets ddfuzz
    /// choose.
    pub fn asked_way(&self) -> Option<Way> {
        self.way.way()
    }

    /// Returns true if the command line names a target: a program, or one that comes with ddfuzz.
    pub fn is_named(&self) -> bool {
        self.target.is_some() || !self.program.is_empty()
    }

    /// Fails if `--` seems to be forgotten: no target is given, but one of `paths` (after the
    /// first) is a program. The hint is a corrected command line, which begins with the subcommand
    /// `command`.
    pub fn check_given(&self, command: &str, paths: &[PathBuf]) -> Result<(), Failure> {
        let is_program = |path: &PathBuf| match path.exists() {
            true => std::path::absolute(path).is_ok_and(|path| find_program(&path).is_ok()),
            false => find_program(path).is_ok(),
        };
        let at = paths.iter().skip(1).position(is_program);
        let (Some(at), false) = (at, self.is_named()) else {
            return Ok(());
        };
        let (_, program) = paths.split_at(at + 1);
        let words: Vec<String> = with_program_last(std::env::args_os(), command, program)
            .iter()
            .map(|word| match word == "--" {
                true => "--".to_owned(),
                false => shell_word(Path::new(word)),
            })
            .collect();
        let command = format!("ddfuzz {}", words.join(" "));
        Err(Failure::usage("no program to run is given")
            .hint(format!("put `--` before the program: {command}")))
    }

    /// Returns the path of the program that the command line names; `None` for a target that comes
    /// with ddfuzz, and if there is no such program.
    pub fn program_file(&self) -> Option<PathBuf> {
        find_program(self.program.first()?.as_ref()).ok()
    }

    /// Builds the target from the options: finds its program, and sets arguments, environment,
    /// limits and input channel. Fails if there is no such program, none is given, or `--target`
    /// and a program are both given.
    pub fn target(&self) -> Result<Target, Failure> {
        let mut target = Target::new(self.program()?);
        target.args = self.arguments();
        target.limits = self.limits(target.limits.cpu);
        // libFuzzer's own flag decides what is out of memory, unless the user gives a limit.
        if self.memory.is_none()
            && let Some(rss) = target.fuzzer_limits().and_then(|limits| limits.rss)
        {
            target.limits.memory = rss << 20;
        }
        self.apply(&mut target)?;
        Ok(target)
    }

    /// Returns a recorded target, changed by what the command line says: program and arguments if
    /// one is named, limits, environment, sandbox, input channel and working directory. Fails as
    /// [`target`](Self::target) does.
    pub fn over(&self, mut recorded: Target) -> Result<Target, Failure> {
        if self.is_named() {
            recorded.program = self.program()?;
            recorded.args = self.arguments();
        }
        recorded.limits = self.override_limits(recorded.limits);
        self.apply(&mut recorded)?;
        Ok(recorded)
    }

    /// Returns the name of the first given option that says how a program is run, but has no effect
    /// on an interestingness test; `None` if there is none.
    pub fn not_for_tests(&self) -> Option<&'static str> {
        let channel = &self.channel;
        values::first_given(&[
            ("--exec", self.way != WayArg::Auto),
            ("--cwd", self.cwd.is_some()),
            ("--sandbox", self.sandbox),
            ("--freeze-start", self.freeze_start),
            ("--crash-exit", self.crash_exit.is_some()),
            ("--terminal", channel.terminal.is_some()),
            ("--file-name", channel.file_name.is_some()),
            ("--two-files", channel.two_files),
        ])
    }

    fn arguments(&self) -> Vec<OsString> {
        match self.target {
            Some(_) => Vec::new(),
            None => self.program.iter().skip(1).cloned().collect(),
        }
    }

    /// Changes `target` by all options except those for its program and limits. A given environment
    /// variable replaces one of the same name.
    fn apply(&self, target: &mut Target) -> Result<(), Failure> {
        for (name, value) in &self.env {
            // A replaced variable keeps its place, because the order of variables may matter.
            match target.env.iter_mut().find(|(other, _)| other == name) {
                Some((_, old)) => *old = value.clone(),
                None => target.env.push((name.clone(), value.clone())),
            }
        }
        target.crash_exit = self.crash_exit.or(target.crash_exit);
        let unfit = |way: &Way| self.freeze_start && *way != Way::Snapshot;
        if let Some(way) = self.way.way().filter(unfit) {
            let message = format!("--freeze-start does not work with --exec {way}");
            return Err(Failure::usage(message).hint("use --exec snapshot, or omit --exec"));
        }
        target.freeze_start |= self.freeze_start;
        if self.sandbox {
            target.sandbox = Sandbox::On;
        }
        self.channel.apply(target, self.way.way())?;
        if let Some(cwd) = &self.cwd {
            if !cwd.is_dir() {
                let message = format!("--cwd {} is not a directory", cwd.display());
                return Err(Failure::usage(message).path(cwd));
            }
            let absolute = std::path::absolute(cwd);
            target.cwd = Some(absolute.map_err(|error| Failure::file(cwd, "finding", &error))?);
        }
        Ok(())
    }

    /// Returns the limits on time and memory of each run of the target: those of `--timeout` and
    /// `--memory`, else the CPU time `cpu` and the default for memory.
    pub fn limits(&self, cpu: Duration) -> Limits {
        let mut limits = Limits::with_cpu(self.timeout.unwrap_or(cpu));
        if let Some(memory) = self.memory {
            limits.memory = memory;
        }
        limits
    }

    /// Returns the limits `recorded` in a log or output directory, replaced by `--timeout`
    /// and `--memory` where these are given.
    pub fn override_limits(&self, recorded: Limits) -> Limits {
        let mut limits = match self.timeout {
            Some(cpu) => TimeLimit::from(Limits::with_cpu(cpu)).within(recorded),
            None => recorded,
        };
        limits.memory = self.memory.unwrap_or(limits.memory);
        limits
    }

    fn program(&self) -> Result<Program, Failure> {
        match (&self.target, self.program.first()) {
            (Some(_), Some(_)) => {
                Err(Failure::usage("a program is given, and --target as well")
                    .hint("give one of them"))
            }
            (Some(name), None) if bundled::program(name).is_some() => {
                Ok(Program::Bundled(name.clone()))
            }
            (Some(name), None) => Err(Failure::from(ExecError::UnknownBundled {
                name: name.clone(),
                known: bundled::names().join(", "),
            })),
            (None, Some(program)) => Ok(Program::Path(find_program(program.as_ref())?)),
            (None, None) => Err(Failure::usage("no program to run is given").hint(
                "give a program after `--`, or a target that comes with ddfuzz by --target NAME",
            )),
        }
    }

    /// Starts the target once, to check that it runs and to choose the way of execution (such as a
    /// fork server), and returns the started target. Warns of a target that runs as root, and of
    /// arguments with relative paths.
    pub fn probe(&self, target: &Target, output: &Output) -> Result<Started, Failure> {
        self.warn_of_surroundings(target, output);
        Ok(probe_by(target, self.way.way())?)
    }

    /// Starts the target as [`probe`](Self::probe) does; returns a triager, which analyses crashes,
    /// and its executor. If the target can be run by its entry function, both use one fork server.
    pub fn probe_with_triager(
        &self,
        target: &Target,
        output: &Output,
    ) -> Result<(Triager, Box<dyn Executor>), Failure> {
        if let Some(both) = Triager::with_executor(target, self.way.way())? {
            self.warn_of_surroundings(target, output);
            return Ok(both);
        }
        let executor = self.probe(target, output)?.executor;
        let triager = Triager::of_target(target, executor.way())?;
        Ok((triager, executor))
    }

    /// Starts the target once, and prints with `-v` the way of execution that was chosen. If
    /// starting fails and `stop` is true, returns the failure "interrupted", because Ctrl-C may
    /// have killed the target.
    pub fn start(
        &self,
        target: &Target,
        stop: &AtomicBool,
        output: &Output,
    ) -> Result<(Started, Way), Failure> {
        let started = signals::unless_stopped(stop, self.probe(target, output))?;
        let way = started.executor.way();
        output.detail(&format!("executed by {way}: {}", started.why));
        Ok((started, way))
    }

    /// Prints a warning if the target runs as root, and one for each argument that is the relative
    /// path of an existing file, unless `--cwd` is given: the target runs in a temporary directory
    /// and will not find it.
    pub fn warn_of_surroundings(&self, target: &Target, output: &Output) {
        if let Some(closed) = runs_as_root_for(target) {
            output.say(&root_warning(&closed));
        }
        if target.cwd.is_some() {
            return;
        }
        for name in target.args.iter().map(Path::new) {
            if name.is_relative() && name.is_file() {
                output.say(&format!(
                    "warning: the argument {} is a file in this directory, but the target runs in a \
                     temporary directory and will not find it: give its absolute path, or --cwd .",
                    name.display()
                ));
            }
        }
    }
}

/// Returns the warning that the target runs as root, because the user `nobody`, under which it
/// should run, cannot access the path `closed`.
fn root_warning(closed: &ClosedPath) -> String {
    let right = if closed.path.is_dir() { "o+x" } else { "o+rx" };
    let path = shell_word(&closed.path);
    let (of, instead) = match closed.is_cwd {
        true => (
            "its working directory",
            "give --cwd a directory that everybody can enter",
        ),
        false => (
            "its program",
            "add --sandbox, which runs a copy of the program as nobody",
        ),
    };
    format!(
        "warning: the target runs as root, because the user nobody cannot access {path}, which \
         {of} needs: chmod {right} {path}, or {instead}"
    )
}

/// Starts the target once with the way of execution `way`, or for `None` with the fastest way that
/// works, and returns the started target.
pub fn probe_by(target: &Target, way: Option<Way>) -> Result<Started, ExecError> {
    let mut started = start(target, way, Freshness::Shared)?;
    if started.executor.way() == Way::Command {
        // Without a server nothing has been executed yet, and what the kernel refuses would
        // look to a tracer like a program that ends with a status of its own.
        let ended = started.executor.run(b"")?.ended;
        Traceable::check_loaded(target, ended)?;
    }
    Ok(started)
}

/// Heading in `--help` of the options about the channel by which the program gets its input.
pub const CHANNEL_HEADING: &str = "Programs that read a terminal, a certain file, or two files";
/// Maximum size of the emulated terminal, in lines or columns.
const LARGEST_TERMINAL: u16 = 500;

/// Options for the channel by which the program gets its input: terminal, named file or two files.
#[derive(Args, Clone, Debug, Default)]
pub struct ChannelArgs {
    /// Run the program on a pseudo-terminal of this size [24x80 if no size is given]. The input is
    /// typed, one key whenever the program waits for one. @@ is replaced by the path of a sample
    /// text file, for editors and the like
    #[arg(help_heading = CHANNEL_HEADING, hide_short_help = true, long, value_name = "ROWSxCOLUMNS", num_args = 0..=1, require_equals = true, default_missing_value = "24x80", value_parser = terminal_size, conflicts_with_all = ["file_name", "two_files"])]
    pub terminal: Option<(u16, u16)>,
    /// Keys that make the program exit, typed after the input; with the escapes of C (\r, \e, \x03)
    #[arg(help_heading = CHANNEL_HEADING, hide_short_help = true, long, value_name = "KEYS", value_parser = |text: &str| unescaped(text).map(Base64), requires = "terminal", allow_hyphen_values = true)]
    pub ending: Option<Base64>,
    /// Name of the file that @@ is replaced by, for programs that look at file names
    #[arg(help_heading = CHANNEL_HEADING, hide_short_help = true, long, value_name = "NAME", conflicts_with = "two_files")]
    pub file_name: Option<OsString>,
    /// Split the input into two files at its first byte 0x1c: the first @@ is replaced by the path
    /// of what stands before that byte, the others by that of what follows. Without that byte the
    /// second file is empty
    #[arg(help_heading = CHANNEL_HEADING, hide_short_help = true, long)]
    pub two_files: bool,
}

fn terminal_size(text: &str) -> Result<(u16, u16), String> {
    let sides = text.split_once('x').and_then(|(rows, columns)| {
        let side = |text: &str| {
            text.parse()
                .ok()
                .filter(|side| (1..=LARGEST_TERMINAL).contains(side))
        };
        Some((side(rows)?, side(columns)?))
    });
    sides.ok_or_else(|| {
        format!("write a size as ROWSxCOLUMNS, each from 1 to {LARGEST_TERMINAL}, like 24x80")
    })
}

impl ChannelArgs {
    /// Sets the input channel of `target` (terminal, named file, two files) by the options. `way`
    /// is the value of `--exec`. Fails if that does not support a terminal, or `@@` are missing.
    pub fn apply(&self, target: &mut Target, way: Option<Way>) -> Result<(), Failure> {
        if let Some((rows, columns)) = self.terminal {
            let ending = self.ending.clone().unwrap_or(Base64(Vec::new()));
            target.channel = Channel::Terminal(Terminal {
                rows,
                columns,
                ending,
            });
            if let Some(way @ (Way::Snapshot | Way::Forkserver | Way::Harness)) = way {
                let message = format!("--terminal does not work with --exec {way}");
                let hint = "use --exec command or --exec inject, or omit --exec";
                return Err(Failure::usage(message).hint(hint));
            }
        } else if let Some(name) = &self.file_name {
            if Path::new(name).file_name() != Some(name) {
                let message = format!("--file-name {} is not a plain file name", name.display());
                return Err(Failure::usage(message).hint("give the name without a directory"));
            }
            target.channel = Channel::Named(crate::files::OsText(name.clone()));
            check_file_names(target, 1, "--file-name")?;
        } else if self.two_files {
            target.channel = Channel::TwoFiles;
            check_file_names(target, 2, "--two-files")?;
        }
        Ok(())
    }
}

/// Fails if `@@`, the placeholder for the path of the input, occurs fewer than `wanted` times in
/// the arguments of `target`; the error names `option`, which needs it.
fn check_file_names(target: &Target, wanted: usize, option: &str) -> Result<(), Failure> {
    let marks = |arg: &OsString| arg.to_string_lossy().matches("@@").count();
    let found: usize = target.args.iter().map(marks).sum();
    if found >= wanted {
        return Ok(());
    }
    let message = format!("{option} needs @@ in the arguments of the program");
    let hint = match wanted {
        1 => "write @@ where the program expects the path of the file",
        _ => "write @@ twice, where the program expects the paths of the two files",
    };
    Err(Failure::usage(message).hint(hint))
}

/// Converts C escapes to bytes: `\r \n \t \a \b \f \v \e \\ \" \'`, `\xHH` and octal `\NNN`. Fails
/// at any other escape.
pub fn unescaped(text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        if *first != b'\\' {
            bytes.push(*first);
            rest = behind;
            continue;
        }
        let Some((byte, length)) = escape(behind) else {
            let at = text.len() - rest.len();
            return Err(format!(
                "unknown escape at character {at}: write \\r, \\n, \\t, \\e, \\\\ or \\xHH"
            ));
        };
        bytes.push(byte);
        rest = &behind[length..];
    }
    Ok(bytes)
}

/// Converts one C escape, given without its backslash; returns the byte, and the length of the
/// escape without the backslash. `None` if the escape is unknown.
fn escape(text: &[u8]) -> Option<(u8, usize)> {
    let simple = match text.first()? {
        b'r' => b'\r',
        b'n' => b'\n',
        b't' => b'\t',
        b'a' => 0x07,
        b'b' => 0x08,
        b'f' => 0x0c,
        b'v' => 0x0b,
        b'e' => 0x1b,
        same @ (b'\\' | b'"' | b'\'') => *same,
        b'x' => return byte_of_digits(text.get(1..3)?, 16).map(|byte| (byte, 3)),
        b'0'..=b'7' => {
            let digits = text
                .iter()
                .take(3)
                .take_while(|byte| (b'0'..=b'7').contains(*byte));
            let length = digits.count();
            return byte_of_digits(&text[..length], 8).map(|byte| (byte, length));
        }
        _ => return None,
    };
    Some((simple, 1))
}

fn byte_of_digits(digits: &[u8], radix: u32) -> Option<u8> {
    let all = digits
        .iter()
        .all(|digit| char::from(*digit).is_digit(radix));
    let text = std::str::from_utf8(digits).ok().filter(|_| all)?;
    u8::from_str_radix(text, radix).ok()
}

/// Returns the recorded target that all given campaigns of the output directory `out` have in
/// common. Fails if they ran different programs, or none is recorded.
pub fn only_recorded_target(campaigns: &[&Campaign], out: &Path) -> Result<Target, Failure> {
    let Some((first, others)) = campaigns.split_first() else {
        return Err(no_recorded_target(
            out,
            "does not record which program was run",
        ));
    };
    let target = target_of_campaign(first, out)?;
    let record = first.target.as_ref();
    let same = |other: &&Campaign| {
        let both = record.zip(other.target.as_ref());
        both.is_some_and(|(one, other)| one.same_target(other))
    };
    match others.iter().all(same) {
        true => Ok(target),
        false => Err(no_recorded_target(
            out,
            "contains groups of several programs",
        )),
    }
}

/// Returns the target that the output directory `out` records, changed by the options of the
/// command line: the target of the directory's own campaign, or, without such a campaign, the one
/// that all campaigns in the directory have in common. Fails if there is no such target.
pub fn recorded_target(out: &Path, asked: &TargetArgs) -> Result<Target, Failure> {
    let file = Reader::open(out)?.campaigns()?;
    let recorded = match &file.current {
        Some(campaign) => target_of_campaign(campaign, out)?,
        // A directory made by a merge has no campaign of its own.
        None => only_recorded_target(&file.all().collect::<Vec<_>>(), out)?,
    };
    asked.over(recorded)
}

/// Returns the target on which the groups of an output directory are run again: the one that the
/// command line names. Settings that the command line does not give, such as environment variables,
/// come from the latest target in `campaigns` whose program has the same file name. Without one,
/// all but the limits come from the latest target, since a new build may have another name.
pub fn rerun_target(campaigns: &CampaignFile, asked: &TargetArgs) -> Result<Target, Failure> {
    let named = asked.target()?;
    let is_of = |record: &&Target| match (&record.program, &named.program) {
        (Program::Path(one), Program::Path(other)) => one.file_name() == other.file_name(),
        (one, other) => one == other,
    };
    let recorded = |campaign: &Campaign| campaign.target.as_ref()?.target(campaign.limits?);
    let latest = campaigns.current.iter().chain(campaigns.all());
    let latest: Vec<Target> = latest.filter_map(recorded).collect();
    if let Some(record) = latest.iter().find(is_of) {
        return asked.over(record.clone());
    }
    match latest.into_iter().next() {
        Some(record) => Ok(Target {
            limits: named.limits,
            ..asked.over(record)?
        }),
        None => Ok(named),
    }
}

fn target_of_campaign(campaign: &Campaign, out: &Path) -> Result<Target, Failure> {
    let record = campaign.target.as_ref().zip(campaign.limits);
    let target = record.and_then(|(record, limits)| record.target(limits));
    target.ok_or_else(|| no_recorded_target(out, "does not record which program was run"))
}

fn no_recorded_target(out: &Path, message: &str) -> Failure {
    Failure::usage(format!("{} {message}", out.display()))
        .path(out)
        .hint("give the program after `--`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_without_dashes_goes_to_the_end_after_all_options() {
        let words = |text: &str| -> Vec<OsString> { text.split(' ').map(Into::into).collect() };
        let program = [PathBuf::from("./prog"), PathBuf::from("x")];
        let line = words("/bin/ddfuzz triage in ./prog x -o out --jobs 2");
        assert_eq!(
            with_program_last(line.into_iter(), "triage", &program),
            words("triage in -o out --jobs 2 -- ./prog x")
        );
    }

    #[test]
    fn escapes_are_those_of_c() {
        assert_eq!(unescaped("\\e:q!\\r").unwrap(), b"\x1b:q!\r");
        assert_eq!(
            unescaped("\\x03\\x1F\\0\\1771\\\\").unwrap(),
            b"\x03\x1f\0\x7f1\\"
        );
        assert_eq!(unescaped("é").unwrap(), "é".as_bytes());
    }

    #[test]
    fn what_is_no_escape_is_said_with_its_place() {
        for (text, at) in [
            ("ab\\q", 2),
            ("\\x1", 0),
            ("a\\", 1),
            ("\\777", 0),
            ("\\x+1", 0),
        ] {
            let said = unescaped(text).unwrap_err();
            assert!(
                said.starts_with(&format!("unknown escape at character {at}:")),
                "{text}: {said}"
            );
        }
    }
}
