//! Prepares a target, the same for all ways of execution: finds its program, chooses its user, and
//! creates its scratch directory and its input.

use nix::unistd::{Uid, User};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::command_line::{CommandLine, FuzzerLimits};
use crate::launch::{Inject, Launch, Role};
use crate::scratch::{Reports, Scratch};
use crate::{
    Channel, ExecError, Program, Sandbox, Target, Way, control_group::Cgroup, elf, environment,
    environment::SanitizerSettings, input::Input, private_dir::PrivateDir, program,
    sandbox::SandboxPolicy,
};

/// A target that is ready to be launched: its program is found, its scratch directory and input
/// channel are created.
pub(crate) struct PreparedTarget {
    pub(crate) program: PathBuf,
    /// Facts read from the program's ELF file; `None` if it is not an ELF file for this machine.
    pub(crate) facts: Option<elf::ElfFacts>,
    /// Whether the program has a sanitizer, or may start a program that has one.
    sanitized: bool,
    /// Whether the program may contain a sanitizer whose shadow memory needs terabytes of address
    /// space.
    shadowed: bool,
    pub(crate) input: Input,
    pub(crate) scratch: Scratch,
    private: Arc<PrivateDir>,
    identity: Option<Identity>,
    argv: Vec<OsString>,
    sandbox: Sandbox,
    /// Directories other than the scratch directory in which the target may write.
    open: Vec<PathBuf>,
    /// The file to which the target's stdout and stderr go; `None` for /dev/null.
    output: Option<Arc<File>>,
}

/// Chooses the user that runs the target. Returns the path of the program to run, and the user
/// (`None`: the current one). If a sandbox is required and that user cannot access the program,
/// copies the program to ddfuzz's private directory, and returns the path of the copy.
///
/// # Errors
/// When the program cannot be copied, or, in a sandbox, the user cannot access the working
/// directory of the target ([`ExecError::RootOnly`]).
fn within_reach(
    program: PathBuf,
    target: &Target,
    private: &PrivateDir,
) -> Result<(PathBuf, Option<Identity>), ExecError> {
    let cwd = target.cwd.as_deref();
    let chosen = choose_identity(&program, cwd, target.sandbox);
    if !matches!(chosen, Err(ExecError::RootOnly { .. })) {
        return Ok((program, chosen?));
    }
    let copy = private
        .copy_of(&program)
        .map_err(ExecError::system(format!(
            "copying {} for another user",
            program.display()
        )))?;
    let identity = choose_identity(&copy, cwd, target.sandbox)?;
    Ok((copy, identity))
}

impl PreparedTarget {
    /// Prepares a target for the method of execution `way`: finds the program, creates its scratch
    /// directory and its input channel.
    pub(crate) fn prepare(target: &Target, way: Way) -> Result<PreparedTarget, ExecError> {
        let private = PrivateDir::get()?;
        let program = program::locate(&target.program, &private)?;
        if matches!(target.channel, Channel::Terminal(_)) && !offers_terminal(way) {
            let why =
                "it cannot give the program a terminal (--exec command and --exec inject can)";
            return Err(ExecError::unfit(way, &program, why));
        }
        let (program, identity) = within_reach(program, target, &private)?;
        let facts = elf::facts(&program);
        let args = match way {
            // An entry function gets the input and no arguments.
            Way::Harness => CommandLine::of(target).without_input(),
            _ => CommandLine::for_main(target, facts.as_ref()),
        };
        let mut prepared = PreparedTarget::make(&args, private, program, facts, identity)?;
        prepared.sandbox = target.sandbox;
        if target.sandbox.is_off() {
            let given = prepared.input.give_to(identity);
            given.map_err(ExecError::system(
                "giving the input file to the target's user",
            ))?;
        }
        Ok(prepared)
    }

    /// Prepares an interestingness test, which runs as the current user without a sandbox, with the
    /// file `name` in its directory as last argument.
    pub(crate) fn for_test(target: &Target, name: &OsStr) -> Result<PreparedTarget, ExecError> {
        let private = PrivateDir::get()?;
        let program = program::locate(&target.program, &private)?;
        let facts = elf::facts(&program);
        let mut prepared =
            PreparedTarget::make(&CommandLine::of(target), private, program, facts, None)?;
        let file = prepared.scratch.path().join(name);
        let input = Input::of_test(&file);
        prepared.input = input.map_err(ExecError::system("creating the input of a test"))?;
        prepared.argv.push(file.into_os_string());
        Ok(prepared)
    }

    /// Prepares a shell command, which runs as the current user, or in a sandbox as sandboxed
    /// targets do. In the sandbox, it may write not only in its scratch directory but also in the
    /// directory `target.cwd`. `output`: the file for stdout and stderr.
    pub(crate) fn for_shell(target: &Target, output: File) -> Result<PreparedTarget, ExecError> {
        let private = PrivateDir::get()?;
        let program = program::locate(&target.program, &private)?;
        let facts = elf::facts(&program);
        let identity = match target.sandbox {
            Sandbox::Off => None,
            Sandbox::On => choose_identity(&program, target.cwd.as_deref(), target.sandbox)?,
        };
        let args = CommandLine::of(target);
        let mut prepared = PreparedTarget::make(&args, private, program, facts, identity)?;
        prepared.sandbox = target.sandbox;
        prepared.open.extend(target.cwd.clone());
        prepared.output = Some(Arc::new(output));
        Ok(prepared)
    }

    fn make(
        args: &CommandLine,
        private: Arc<PrivateDir>,
        program: PathBuf,
        facts: Option<elf::ElfFacts>,
        identity: Option<Identity>,
    ) -> Result<PreparedTarget, ExecError> {
        let path = program.display();
        let what = format!("creating the input and the temporary directory of {path}");
        let failed = |source| ExecError::system(what.as_str())(source);
        let scratch = Scratch::create(&private.fresh("scratch"), identity).map_err(failed)?;
        let (input, argv) = args.in_place(&program, &private).map_err(failed)?;
        Ok(PreparedTarget {
            // A script may start any program.
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
            output: None,
        })
    }

    /// Replaces a script by its interpreter and the interpreter's arguments, unless its `#!` line
    /// is not understood.
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

    /// Returns the environment variables to set for runs of `target`: first ddfuzz's own, such as
    /// `RUST_BACKTRACE=0` (printing a backtrace takes longer than a thousand runs), then those that
    /// the user set.
    fn env(&self, target: &Target) -> Vec<(OsString, OsString)> {
        let facts = self.facts.as_ref();
        let is_harness =
            facts.is_some_and(|facts| facts.sanitized || facts.is_fuzzer || facts.entry.is_some());
        let is_rust = facts.is_some_and(|facts| facts.rust);
        let quiet = (is_harness || is_rust).then(|| ("RUST_BACKTRACE".into(), "0".into()));
        // By default a panic of Go is an exit with status 2, like many other failures.
        let is_go = facts.is_some_and(|facts| facts.go);
        let aborting = is_go.then(|| ("GOTRACEBACK".into(), "crash".into()));
        // The inherited TERM may be missing, or describe another terminal.
        let is_terminal = matches!(target.channel, Channel::Terminal(_));
        let terminal = is_terminal.then(|| ("TERM".into(), "xterm".into()));
        quiet
            .into_iter()
            .chain(aborting)
            .chain(terminal)
            .chain(target.env.iter().cloned())
            .collect()
    }

    /// Creates a directory for the target's sanitizer reports; `None` if neither the program nor
    /// one that it may start has a sanitizer.
    pub(crate) fn reports(&mut self) -> Result<Option<Reports>, ExecError> {
        match self.sanitized {
            true => self.texts().map(Some),
            false => Ok(None),
        }
    }

    /// Creates a directory in which the target may write, for the files that the runtime in the
    /// target writes: sanitizer reports, or the debug text of a libfuzzer-sys harness.
    pub(crate) fn texts(&mut self) -> Result<Reports, ExecError> {
        let path = self.private.fresh("reports");
        self.open.push(path.clone());
        Reports::create(&path, self.identity).map_err(ExecError::system(format!(
            "creating a directory for the sanitizer reports of {}",
            self.program.display()
        )))
    }

    /// Whether the program may start processes, according to its ELF file; true for a script, which
    /// may start any program.
    pub(crate) fn may_fork(&self) -> bool {
        self.facts.as_ref().is_none_or(|facts| facts.may_fork)
    }

    /// Whether the program can end by a Rust panic, according to its ELF file; true if it is not an
    /// ELF file.
    pub(crate) fn may_panic(&self) -> bool {
        self.facts.as_ref().is_none_or(|facts| facts.may_panic)
    }

    /// Returns libFuzzer's limit on one allocation in MiB; `None` if the limit is off, if libFuzzer
    /// is not linked into the program, or if the program lacks a sanitizer with shadow memory (only
    /// such a sanitizer applies the limit).
    fn largest_allocation(&self, target: &Target) -> Option<u64> {
        let facts = self.facts.as_ref().filter(|facts| facts.fuzzer_main)?;
        let limits = FuzzerLimits::of(&target.args);
        limits.allocation.filter(|_| facts.shadowed)
    }

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
            runner: None,
            code: None,
            inputs: Vec::new(),
            freeze_start: false,
            stdout: None,
            output: self.output.clone(),
            program: self.program.clone(),
            sanitizer_settings: self.sanitized.then(|| SanitizerSettings {
                allocation: self.largest_allocation(target),
                // A harness has no handler of SIGABRT that the sanitizer would have to replace. Its
                // panics, which abort, are many, and each would cost a report of the sanitizer.
                aborts: self.facts.as_ref().is_none_or(|facts| !facts.fuzzer_main),
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
            abandon_when: target.abandon_when.clone(),
            identity: self.identity,
            cgroup: Cgroup::create(target.limits.processes),
        }
    }
}

/// Whether runs by the method of execution `way` can have a terminal.
fn offers_terminal(way: Way) -> bool {
    match way {
        Way::Command | Way::Inject | Way::Mock => true,
        Way::Snapshot | Way::Forkserver | Way::Harness => false,
    }
}

/// The user and the group that the processes of a target run as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

/// Chooses the user that runs `program` in the directory `cwd`; `None` keeps the current user. If
/// ddfuzz is root, targets run as the user called nobody. Without a sandbox, they run as root if
/// the user nobody cannot access the program or the directory, for example in a private home
/// directory.
///
/// # Errors
/// [`ExecError::RootOnly`] when a sandbox is required and the user nobody cannot access the program
/// or the directory.
pub(crate) fn choose_identity(
    program: &Path,
    cwd: Option<&Path>,
    sandbox: Sandbox,
) -> Result<Option<Identity>, ExecError> {
    if !Uid::effective().is_root() {
        return Ok(None);
    }
    match closed_to_nobody(program, cwd) {
        Some(ClosedPath { path, is_cwd }) if sandbox == Sandbox::On => {
            Err(ExecError::RootOnly { path, is_cwd })
        }
        Some(_) => Ok(None),
        None => Ok(Some(nobody())),
    }
}

/// A path that the user nobody cannot access, so that a target which needs it runs as root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosedPath {
    /// The first path that the user nobody cannot access: the program, its working directory, or a
    /// directory above one of them.
    pub path: PathBuf,
    /// True if `path` is the working directory or leads to it; false if `path` is the program or
    /// leads to it.
    pub is_cwd: bool,
}

/// Returns the path because of which `target` runs as root; `None` if it does not run as root, or
/// its program is not found.
pub fn runs_as_root_for(target: &Target) -> Option<ClosedPath> {
    let Program::Path(program) = &target.program else {
        return None;
    };
    if !Uid::effective().is_root() || target.sandbox == Sandbox::On {
        return None;
    }
    let program = program::find_program(program).ok()?;
    closed_to_nobody(&program, target.cwd.as_deref())
}

fn closed_to_nobody(program: &Path, cwd: Option<&Path>) -> Option<ClosedPath> {
    let of = |path: &Path, is_cwd| first_closed(path).map(|path| ClosedPath { path, is_cwd });
    of(program, false).or_else(|| of(cwd?, true))
}

/// Whether the user that targets run as can access the file at `path`: always true unless ddfuzz
/// runs as root and targets as nobody.
pub fn targets_reach(path: &Path) -> bool {
    !Uid::effective().is_root() || first_closed(path).is_none()
}

/// Returns the user that a sandboxed program runs as; `None` for the current one.
pub(crate) fn sandbox_identity() -> Option<Identity> {
    Uid::effective().is_root().then(nobody)
}

fn nobody() -> Identity {
    let nobody = User::from_name("nobody").ok().flatten();
    match nobody {
        Some(user) => Identity {
            uid: user.uid.as_raw(),
            gid: user.gid.as_raw(),
        },
        None => Identity {
            uid: 65534,
            gid: 65534,
        },
    }
}

/// Returns the first path, from the root directory down to `path`, that another user may not use: a
/// file needs the permissions to read and execute for everybody, a directory the permission to
/// search. What belongs to `nobody` counts as usable. `None` if there is no such path; `path`
/// itself if it cannot be resolved.
fn first_closed(path: &Path) -> Option<PathBuf> {
    let Ok(path) = path.canonicalize() else {
        return Some(path.to_owned());
    };
    let mut parts: Vec<&Path> = path.ancestors().collect();
    parts.reverse();
    let found = parts.into_iter().find(|part| {
        !std::fs::metadata(part).is_ok_and(|facts| {
            let wanted = if facts.is_dir() { 0o001 } else { 0o005 };
            facts.permissions().mode() & wanted == wanted || facts.uid() == 65534
        })
    });
    found.map(Path::to_owned)
}
