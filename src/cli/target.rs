//! The target of a command: a program after `--`, or a bundled one by name.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, ValueEnum};

use super::channel::ChannelArgs;
use super::{Failure, Output, amounts};
use crate::exec::{
    ExecError, Freshness, Limits, Program, Sandbox, Started, Target, TimeLimit, Way, bundled,
    find_program, start,
};
use crate::report::text::shell_word;
use crate::store::{Store, StoreError};

/// The heading of these options in the help.
const TARGET: &str = "Target";

/// What is run, and within which limits.
#[derive(Args, Clone, Debug)]
pub struct TargetArgs {
    /// Fuzz a target that comes with ddfuzz, by name, instead of a program
    #[arg(help_heading = TARGET, long, value_name = "NAME")]
    pub target: Option<String>,
    /// The program and its arguments, after `--`. @@ in an argument is replaced by the path of a
    /// file with the input; without @@ the program reads the input from stdin
    #[arg(last = true, value_name = "PROGRAM")]
    pub program: Vec<OsString>,
    /// How the program is executed
    #[arg(help_heading = TARGET, long = "exec", value_name = "WAY", value_enum, default_value_t = WayArg::Auto)]
    pub way: WayArg,
    /// Limit on the CPU time of one run [default: 1s; minimizations and coverage-guided campaigns
    /// adapt it to the target]. The limit on elapsed time is twice as long, at least 2s
    #[arg(help_heading = TARGET, long, value_name = "TIME", value_parser = amounts::time_limit)]
    pub timeout: Option<Duration>,
    /// Limit on the memory of one run, at least 1M [default: 1G; for a libFuzzer binary its
    /// -rss_limit_mb, or 2G]
    #[arg(help_heading = TARGET, long, value_name = "SIZE", value_parser = amounts::memory_limit)]
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
    /// Treat this exit status of the target as a crash
    #[arg(help_heading = TARGET, hide_short_help = true, long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..=255))]
    pub crash_exit: Option<i32>,
    /// How the input gets there
    #[command(flatten)]
    pub channel: ChannelArgs,
}

/// Ways of execution on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WayArg {
    /// Chosen by the kind of program, usually the fastest that works; `ddfuzz doctor` shows why
    Auto,
    /// Start a new process for each run
    Command,
    /// Inject a fork server into the program (LD_PRELOAD); it need not be recompiled
    Inject,
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
            WayArg::Forkserver => Some(Way::Forkserver),
            WayArg::Harness => Some(Way::Harness),
        }
    }
}

fn assignment(text: OsString) -> Result<(OsString, OsString), String> {
    let bytes = text.into_vec();
    match bytes.iter().position(|byte| *byte == b'=') {
        Some(at @ 1..) => Ok((
            OsStr::from_bytes(&bytes[..at]).to_owned(),
            OsStr::from_bytes(&bytes[at + 1..]).to_owned(),
        )),
        _ => Err("write a variable as NAME=VALUE".to_owned()),
    }
}

/// Puts a bundled target's program into an output directory, where its reproducers find it.
pub fn install_bundled(store: &mut Store, target: &Target) -> Result<(), StoreError> {
    if let Program::Bundled(name) = &target.program
        && let Some(program) = bundled::program(name)
    {
        store.install_program(name, program)?;
    }
    Ok(())
}

impl TargetArgs {
    /// The way of execution that is asked for.
    pub fn asked_way(&self) -> Option<Way> {
        self.way.way()
    }

    /// Whether a target was named at all.
    pub fn is_named(&self) -> bool {
        self.target.is_some() || !self.program.is_empty()
    }

    /// Makes sure that a target is given; `paths` are the files that the command takes before it,
    /// among which the program stands where its `--` is missing.
    ///
    /// # Errors
    /// When there is none.
    pub fn check_given(&self, command: &str, paths: &[PathBuf]) -> Result<(), Failure> {
        let is_program = |path: &PathBuf| match path.exists() {
            true => std::path::absolute(path).is_ok_and(|path| find_program(&path).is_ok()),
            false => find_program(path).is_ok(),
        };
        let at = paths.iter().skip(1).position(is_program);
        let (Some(at), false) = (at, self.is_named()) else {
            return Ok(());
        };
        let words = |paths: &[PathBuf]| {
            let words = paths.iter().map(|path| shell_word(path));
            words.collect::<Vec<_>>().join(" ")
        };
        let (before, after) = paths.split_at(at + 1);
        let command = format!("ddfuzz {command} {} -- {}", words(before), words(after));
        Err(Failure::usage("no program to run is given")
            .hint(format!("put `--` before the program: {command}")))
    }

    /// The target, its program found.
    pub fn target(&self) -> Result<Target, Failure> {
        let mut target = Target::new(self.program()?);
        if self.target.is_none() {
            target.args = self.program[1..].to_vec();
        }
        target.limits = self.limits(target.limits.cpu);
        // Its own rule decides what is out of memory, unless the user says.
        if self.memory.is_none()
            && let Some(rss) = target.fuzzer_limits().and_then(|limits| limits.rss)
        {
            target.limits.memory = rss << 20;
        }
        target.env = self.env.clone();
        target.crash_exit = self.crash_exit;
        if self.sandbox {
            target.sandbox = Sandbox::On;
        }
        self.channel.apply(&mut target, self.way.way())?;
        if let Some(cwd) = &self.cwd {
            if !cwd.is_dir() {
                let message = format!("--cwd {} is not a directory", cwd.display());
                return Err(Failure::usage(message).path(cwd));
            }
            let absolute = std::path::absolute(cwd);
            target.cwd = Some(absolute.map_err(|error| Failure::file(cwd, "finding", &error))?);
        }
        Ok(target)
    }

    /// The limits on each run; `cpu` is the time where none is asked for.
    pub fn limits(&self, cpu: Duration) -> Limits {
        let mut limits = Limits::with_cpu(self.timeout.unwrap_or(cpu));
        if let Some(memory) = self.memory {
            limits.memory = memory;
        }
        limits
    }

    /// Other limits, with those in their place that are asked for.
    pub fn limits_over(&self, others: Limits) -> Limits {
        let mut limits = match self.timeout {
            Some(cpu) => TimeLimit::from(Limits::with_cpu(cpu)).within(others),
            None => others,
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

    /// Starts the target once, to find out that it runs, and how. Says which of its arguments it
    /// will not understand as the shell did where they were completed.
    pub fn probe(&self, target: &Target, output: &Output) -> Result<Started, Failure> {
        self.warn_of_relative(target, output);
        Ok(probe_by(target, self.way.way())?)
    }

    /// Says which arguments the target will not understand as the shell did.
    pub fn warn_of_relative(&self, target: &Target, output: &Output) {
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

/// Starts the target once in this way, or in the fastest that works.
pub fn probe_by(target: &Target, way: Option<Way>) -> Result<Started, ExecError> {
    let mut started = start(target, way, Freshness::Shared)?;
    if started.executor.way() == Way::Command {
        // Without a server nothing has been executed yet, and what the kernel refuses would
        // look to a tracer like a program that ends with a status of its own.
        started.executor.run(b"")?;
    }
    Ok(started)
}
