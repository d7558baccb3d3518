//! Prepares a target alike for all ways of execution: finds its program, decides which user runs it,
//! and makes its scratch directory and its input.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::Arc;

use crate::cgroup::Cgroup;
use crate::command_line::{CommandLine, FuzzerLimits};
use crate::environment::SanitizerSettings;
use crate::input::Input;
use crate::launch::{Inject, Launch, Role};
use crate::private_dir::PrivateDir;
use crate::sandbox::SandboxPolicy;
use crate::scratch::{Reports, Scratch};
use crate::{Channel, ExecError, Sandbox, Target, Way, elf, environment, identity, program};

/// A target with its program found, and its directory and input made.
pub(crate) struct PreparedTarget {
    pub(crate) program: PathBuf,
    /// `None` where the program is not an ELF file of this machine.
    pub(crate) facts: Option<elf::ElfFacts>,
    /// `sanitized`: it has a sanitizer, or may start a program that has one; `shadowed`: one that
    /// needs terabytes of address space.
    sanitized: bool,
    shadowed: bool,
    pub(crate) input: Input,
    pub(crate) scratch: Scratch,
    private: Arc<PrivateDir>,
    identity: Option<identity::Identity>,
    argv: Vec<OsString>,
    sandbox: Sandbox,
    /// Other directories in which it may write.
    open: Vec<PathBuf>,
}

/// The user that runs the target, and a path of the program that this user can reach: in a sandbox a
/// copy, where the program itself is closed to it.
fn within_reach(
    program: PathBuf,
    target: &Target,
    private: &PrivateDir,
) -> Result<(PathBuf, Option<identity::Identity>), ExecError> {
    let cwd = target.cwd.as_deref();
    let chosen = identity::choose(&program, cwd, target.sandbox);
    if !matches!(chosen, Err(ExecError::RootOnly { .. })) {
        return Ok((program, chosen?));
    }
    let copy = private
        .copy_of(&program)
        .map_err(ExecError::system(format!(
            "copying {} for another user",
            program.display()
        )))?;
    let identity = identity::choose(&copy, cwd, target.sandbox)?;
    Ok((copy, identity))
}

impl PreparedTarget {
    /// Finds the program and makes its directory and input, to be run by `way`.
    pub(crate) fn prepare(target: &Target, way: Way) -> Result<PreparedTarget, ExecError> {
        let private = PrivateDir::get()?;
        let program = program::locate(&target.program, &private)?;
        if matches!(target.channel, Channel::Terminal(_)) && !by_main(way) {
            let why =
                "it cannot give the program a terminal (--exec command and --exec inject can)";
            return Err(ExecError::unfit(way, &program, why));
        }
        let (program, identity) = within_reach(program, target, &private)?;
        let facts = elf::facts(&program);
        let args = match way {
            // What its entry function is given is the input alone.
            Way::Harness => CommandLine::of(target).without_input(),
            _ => CommandLine::for_main(target, facts.as_ref()),
        };
        let mut prepared = PreparedTarget::make(&args, private, program, facts, identity)?;
        prepared.sandbox = target.sandbox;
        Ok(prepared)
    }

    /// The same for an interestingness test: it runs as the user who started ddfuzz, in no sandbox,
    /// with the file `name` in its directory as the last argument. Also returns that file.
    pub(crate) fn for_test(
        target: &Target,
        name: &OsStr,
    ) -> Result<(PreparedTarget, PathBuf), ExecError> {
        let private = PrivateDir::get()?;
        let program = program::locate(&target.program, &private)?;
        let facts = elf::facts(&program);
        let mut prepared =
            PreparedTarget::make(&CommandLine::of(target), private, program, facts, None)?;
        let file = prepared.scratch.path().join(name);
        prepared.argv.push(file.clone().into_os_string());
        Ok((prepared, file))
    }

    fn make(
        args: &CommandLine,
        private: Arc<PrivateDir>,
        program: PathBuf,
        facts: Option<elf::ElfFacts>,
        identity: Option<identity::Identity>,
    ) -> Result<PreparedTarget, ExecError> {
        let failed = |source| ExecError::System {
            what: format!(
                "creating the input and the temporary directory of {}",
                program.display()
            ),
            source,
        };
        let scratch = Scratch::create(&private.fresh("scratch"), identity).map_err(failed)?;
        let (input, argv) = args.in_place(&program, &private).map_err(failed)?;
        Ok(PreparedTarget {
            // What a script starts cannot be known.
            sanitized: facts.as_ref().is_none_or(|facts| facts.sanitized),
            shadowed: facts.as_ref().is_none_or(|facts| facts.shadowed),
            facts,
            program,
            input,
            scratch,
            private,
            identity,
            argv,
            sandbox: Sandbox::Off,
            open: Vec::new(),
        })
    }

    /// Replaces a script by its interpreter; changes nothing where its `#!` line is not understood.
    pub(crate) fn see_through_script(&mut self, target: &Target) {
        let path = environment::path(&target.env, target.env_only);
        if self.facts.is_none()
            && let Some(found) = program::interpreter(&self.program, &self.argv, path.as_deref())
        {
            self.facts = elf::facts(&found.program);
            self.program = found.program;
            self.argv = found.argv;
        }
    }

    /// The variables to set: those of `target`, after those that make a panic cheap (a backtrace that
    /// nobody reads takes longer than a thousand runs).
    fn env(&self, target: &Target) -> Vec<(OsString, OsString)> {
        let facts = self.facts.as_ref();
        let is_harness =
            facts.is_some_and(|facts| facts.sanitized || facts.is_fuzzer || facts.entry.is_some());
        let is_rust = facts.is_some_and(|facts| facts.rust);
        let quiet = (is_harness || is_rust).then(|| ("RUST_BACKTRACE".into(), "0".into()));
        // Else a panic of Go is an exit with status 2, like so many others.
        let is_go = facts.is_some_and(|facts| facts.go);
        let aborting = is_go.then(|| ("GOTRACEBACK".into(), "crash".into()));
        // Not that of whoever started us, who may have none.
        let is_terminal = matches!(target.channel, Channel::Terminal(_));
        let terminal = is_terminal.then(|| ("TERM".into(), "xterm".into()));
        quiet
            .into_iter()
            .chain(aborting)
            .chain(terminal)
            .chain(target.env.iter().cloned())
            .collect()
    }

    /// Makes a directory for the reports of its sanitizer; `None` where it has none.
    pub(crate) fn reports(&mut self) -> Result<Option<Reports>, ExecError> {
        match self.sanitized {
            true => self.texts().map(Some),
            false => Ok(None),
        }
    }

    /// Makes a directory for one text that it is asked to write.
    pub(crate) fn texts(&mut self) -> Result<Reports, ExecError> {
        let path = self.private.fresh("reports");
        self.open.push(path.clone());
        Reports::create(&path, self.identity).map_err(ExecError::system(format!(
            "creating a directory for the sanitizer reports of {}",
            self.program.display()
        )))
    }

    /// Whether the program can end by a Rust panic, as far as its file tells.
    pub(crate) fn may_panic(&self) -> bool {
        self.facts.as_ref().is_none_or(|facts| facts.may_panic)
    }

    /// The largest allocation that libFuzzer allows, in MiB, where it is linked into the program.
    fn largest_allocation(&self, target: &Target) -> Option<u64> {
        let facts = self.facts.as_ref().filter(|facts| facts.fuzzer_main)?;
        facts
            .shadowed
            .then(|| FuzzerLimits::of(&target.args).allocation)?
    }

    /// How to launch it in this role.
    pub(crate) fn launch(&self, target: &Target, role: Role, inject: Option<Inject>) -> Launch {
        let scratch = self.scratch.path().to_owned();
        let policy = SandboxPolicy::of(self.sandbox, &role);
        Launch {
            private: Arc::clone(&self.private),
            role,
            inject,
            observed: None,
            copied: None,
            terminal: None,
            stdout: None,
            program: self.program.clone(),
            sanitizer_settings: self.sanitized.then(|| SanitizerSettings {
                allocation: self.largest_allocation(target),
                ..SanitizerSettings::default()
            }),
            shadowed: self.shadowed,
            argv: self.argv.clone(),
            env: self.env(target),
            env_only: target.env_only,
            cwd: target.cwd.clone().unwrap_or_else(|| scratch.clone()),
            scratch,
            policy,
            open: self.open.clone(),
            limits: target.limits,
            identity: self.identity,
            cgroup: Cgroup::create(target.limits.processes),
        }
    }
}

/// Whether this way runs a `main` by a server of ours.
fn by_main(way: Way) -> bool {
    match way {
        Way::Command | Way::Inject | Way::Mock => true,
        Way::Forkserver | Way::Harness => false,
    }
}
