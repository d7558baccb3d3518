//! Starts the launcher process (`runtime/launcher.c`) with `posix_spawn`; a fork of this process
//! would be slow because of its size.

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, posix_spawn};
use nix::{errno::Errno, sys::stat::Mode};
use std::ffi::{CString, OsStr, OsString};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::{
    fs::File, os::unix::ffi::OsStrExt, os::unix::net::UnixStream, sync::Arc, time::Duration,
};

use crate::run_directory::RunDirectory;
use crate::sandbox::{Handover, SandboxPolicy};
use crate::shared_page::{Page, PageLayout};
use crate::supervisor::Supervisor;
use crate::{
    AbandonWhen, ExecError, Limits, control_group::Cgroup, crash_snapshots::CrashSnapshots,
    elf::EntryFunction, environment, environment::SanitizerSettings, prepared_target::Identity,
    private_dir::PrivateDir, protocol::fd, sandbox, watch::SLICE,
};

/// What the launcher process becomes after it has taken on limits, identity and directory: a fork
/// server that starts the program for each run, or the program itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// A fork server that executes the program anew for each request.
    Serve,
    /// A fork server that executes the program anew for each request, in child processes that first
    /// wait to be seized by a tracer.
    Trace,
    /// The target program itself: the library that ddfuzz preloads into it answers the requests.
    Program,
    /// The target program itself, which answers requests by the fork server that AFL++ compiled
    /// into it.
    Afl,
}

/// How runs begin in a program into which ddfuzz's library is preloaded: at which place in the
/// program, and whether in a forked child each, in one process, or without a fork server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inject {
    /// The program is run up to `main`, where a child is forked for each run.
    Fork,
    /// Forks a child for each run where the program first does something whose result may differ
    /// between runs, such as reading its input.
    Defer,
    /// Forks a child for each run, which calls the entry function (such as
    /// `LLVMFuzzerTestOneInput`).
    Entry(EntryFunction),
    /// Calls the entry function (such as `LLVMFuzzerTestOneInput`) for many inputs in one child
    /// process.
    Loop(EntryFunction),
    /// Runs many inputs in one child process (the runner), each from the point where
    /// [`Inject::Defer`] forks, and undoes what each run has changed. Forks a child for each run
    /// that does something that cannot be undone.
    Restore,
    /// Calls the entry function (such as `LLVMFuzzerTestOneInput`) once, on stdin, without a fork
    /// server.
    Once(EntryFunction),
    /// Preloads ddfuzz's library without a fork server: each process continues into the program's
    /// `main` and makes one run.
    Pass,
}

/// Everything needed to start a target with its fork server, any number of times.
pub(crate) struct Launch {
    pub(crate) private: Arc<PrivateDir>,
    pub(crate) role: Role,
    pub(crate) inject: Option<Inject>,
    /// The file to which runs write comparisons; if set, the library that observes comparisons is
    /// preloaded.
    pub(crate) observed: Option<File>,
    /// The file to which crashing runs write snapshots of themselves; if set, the library that
    /// takes snapshots is preloaded.
    pub(crate) copied: Option<File>,
    pub(crate) terminal: Option<File>,
    /// The memory file with the program's code and its breakpoints, if runs report which blocks
    /// they reach.
    pub(crate) code: Option<File>,
    /// Files that only a fork server with a runner (a process that makes many runs) inherits
    /// ([`Inject::Restore`]): the input, the batch of inputs, and the pipes that capture stdout and
    /// stderr.
    pub(crate) runner: Option<RunnerFiles>,
    /// Device and inode of each input file, by which [`Inject::Defer`] and [`Inject::Restore`]
    /// recognise the first use of the input.
    pub(crate) inputs: Vec<(u64, u64)>,
    /// Whether runs share the random numbers, the times and the process id that the program reads
    /// before the fork point.
    pub(crate) freeze_start: bool,
    /// The file that becomes the target's stdout; `None` if stdout goes where the field `output`
    /// says: to the same file as stderr, or to /dev/null.
    pub(crate) stdout: Option<File>,
    /// The file for the target's stdout if `stdout` is `None`, and for its stderr if no other file
    /// is passed to `start`; `None` for /dev/null.
    pub(crate) output: Option<Arc<File>>,
    pub(crate) program: PathBuf,
    /// Sanitizer settings, if the target has a sanitizer or may start a program that has one.
    pub(crate) sanitizer_settings: Option<SanitizerSettings>,
    /// Whether a sanitizer of the target may need terabytes of address space.
    pub(crate) shadowed: bool,
    /// The target's scratch directory: its directory for temporary files, in which it may write.
    pub(crate) scratch: PathBuf,
    pub(crate) policy: Option<SandboxPolicy>,
    /// Directories outside the scratch directory in which the target may write.
    pub(crate) open: Vec<PathBuf>,
    /// The command line of the program; its first item is the program's name.
    pub(crate) argv: Vec<OsString>,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) env_only: bool,
    pub(crate) cwd: PathBuf,
    pub(crate) limits: Limits,
    /// Conditions under which runs are abandoned, whatever the limits of the runs are.
    pub(crate) abandon_when: AbandonWhen,
    pub(crate) identity: Option<Identity>,
    pub(crate) cgroup: Option<Cgroup>,
}

/// The files that a fork server inherits only if it has a runner. The runner is a process that
/// makes many runs and undoes what each of them has changed ([`Inject::Restore`]).
pub(crate) struct RunnerFiles {
    /// The file from which the target reads its input, or the two files, opened for writing; empty
    /// if a runner cannot write the input.
    pub(crate) writers: Vec<File>,
    /// The memory file with the inputs of one request to the runner (a process that makes many
    /// runs).
    pub(crate) batch: File,
    /// Write ends of the two pipes that capture what runs write to stdout and stderr.
    pub(crate) captures: [File; 2],
}

/// Number of processes that RLIMIT_NPROC allows beyond those that exist at the start: the limit
/// counts all processes of the user, also those of other workers. A fork server that reaches the
/// limit is restarted.
const HEADROOM: u64 = 256;
/// How often starting the launcher is tried while its file is busy: a concurrent fork may hold the
/// file open for writing for a moment.
const TRIES: u32 = 200;
const PAUSE: Duration = Duration::from_millis(5);

pub(crate) struct ServerPipes {
    pub(crate) request: File,
    pub(crate) reply: File,
}

impl Launch {
    /// Makes the error that the target's working directory cannot be created again.
    pub(crate) fn directory_error(&self, source: std::io::Error) -> ExecError {
        let what = format!("making the directory of {} again", self.program.display());
        ExecError::System { what, source }
    }

    /// Makes the error that the target's terminal cannot be opened.
    pub(crate) fn terminal_error(&self, source: std::io::Error) -> ExecError {
        let program = self.program.display();
        let what = format!("opening a terminal for {program} (is /dev/pts mounted?)");
        ExecError::System { what, source }
    }

    /// Makes the error that memory cannot be shared with the target.
    pub(crate) fn sharing_error(&self, source: std::io::Error) -> ExecError {
        let what = format!("sharing memory with {}", self.program.display());
        ExecError::System { what, source }
    }

    /// Creates the memory, laid out as `shape` says, that ddfuzz shares with a target's fork
    /// server. Fails if no memory file can be created.
    pub(crate) fn page(&self, shape: PageLayout) -> Result<Page, ExecError> {
        Page::create(shape).map_err(|source| self.sharing_error(source))
    }

    /// Sets up this launch so that the target writes snapshots of itself when it crashes; returns
    /// the memory that will hold them.
    pub(crate) fn leave_snapshots(&mut self) -> Result<Arc<CrashSnapshots>, ExecError> {
        let made = CrashSnapshots::create().and_then(|copies| {
            self.copied = Some(copies.file()?);
            Ok(Arc::new(copies))
        });
        made.map_err(|source| self.sharing_error(source))
    }

    /// Starts the launcher process, which becomes the target's fork server; returns its supervisor
    /// and the pipes for requests and replies. `stderr`: where the target's stderr goes; `None` for
    /// /dev/null.
    pub(crate) fn start(
        &self,
        stdin: &File,
        page: &File,
        stderr: Option<&File>,
    ) -> nix::Result<(Supervisor, ServerPipes)> {
        let (request_read, request_write) = nix::unistd::pipe2(OFlag::O_CLOEXEC)?;
        let system =
            |error: std::io::Error| Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO));
        let (reply_read, reply_write) = match self.role {
            Role::Afl => reply_socket().map_err(system)?,
            _ => nix::unistd::pipe2(OFlag::O_CLOEXEC)?,
        };
        let (supervisor_pipe, supervisors) = UnixStream::pair().map_err(system)?;
        let fixed: [(&dyn AsFd, i32); 5] = [
            (&request_read, fd::REQUEST),
            (&reply_write, fd::REPLY),
            (stdin, fd::INPUT),
            (page, fd::PAGE),
            (&supervisors, fd::SUPERVISOR_PIPE),
        ];
        let mut handed = self.duplicate_descriptors(&fixed)?;
        let policy = self.sandbox_handover().map_err(system)?;
        for (held, number) in &policy.descriptors {
            handed.push((above(held)?, *number));
        }
        let mut actions = PosixSpawnFileActions::init()?;
        let nulls = [null_device()?, null_device()?];
        actions.add_dup2(nulls[0].as_raw_fd(), 0)?;
        // Stdout and stderr get an open file each: if they shared one, a flag that a run sets on
        // one would also be set on the other, which does not happen where both are captured.
        let outputs = [self.stdout.as_ref(), stderr];
        for ((file, null), number) in outputs.into_iter().zip(&nulls).zip(1..) {
            let file = file.or(self.output.as_deref());
            actions.add_dup2(file.map_or(null.as_raw_fd(), File::as_raw_fd), number)?;
        }
        for (ours, theirs) in &handed {
            actions.add_dup2(ours.as_raw_fd(), *theirs)?;
        }
        let env = self.environment();
        let attributes = PosixSpawnAttr::init()?;
        let argv = self.launcher_argv(&policy.options).ok_or(Errno::EINVAL)?;
        let path = self.private.launcher();
        let mut tries = 0;
        let pid = loop {
            match posix_spawn(path.as_path(), &actions, &attributes, &argv, &env) {
                Err(Errno::ETXTBSY) if tries < TRIES => std::thread::sleep(PAUSE),
                spawned => break spawned?,
            }
            tries += 1;
        };
        Ok((
            Supervisor::new(pid, supervisor_pipe, self.scratch.clone()),
            ServerPipes {
                request: request_write.into(),
                reply: reply_read.into(),
            },
        ))
    }

    /// Duplicates the file descriptors that a fork server inherits: those in `fixed`, each with its
    /// number in the server, and those of this launch that only some launches have, such as a
    /// terminal. Returns each duplicate, whose number in ddfuzz is above all that the server uses,
    /// with its number in the server.
    fn duplicate_descriptors(
        &self,
        fixed: &[(&dyn AsFd, i32)],
    ) -> nix::Result<Vec<(OwnedFd, i32)>> {
        let wanted = [
            (&self.observed, fd::OBSERVED),
            (&self.copied, fd::COPY),
            (&self.terminal, fd::TERMINAL),
            (&self.code, fd::CODE),
        ];
        let wanted = wanted.into_iter().filter_map(|(file, number)| {
            let file = file.as_ref()?;
            Some((file as &dyn AsFd, number))
        });
        let runner = self.runner.iter().flat_map(|runner| {
            let [stdout, stderr] = &runner.captures;
            let writers = runner.writers.iter().map(|file| file as &dyn AsFd);
            writers.zip(fd::WRITERS).chain([
                (&runner.batch as &dyn AsFd, fd::BATCH),
                (stdout as &dyn AsFd, fd::CAPTURES[0]),
                (stderr as &dyn AsFd, fd::CAPTURES[1]),
            ])
        });
        let all = fixed.iter().copied().chain(wanted).chain(runner);
        all.map(|(file, number)| Ok((above(file)?, number)))
            .collect()
    }

    fn environment(&self) -> Vec<CString> {
        let (scratch, sandboxed) = (&self.scratch, self.policy.is_some());
        let told = self.sanitizer_settings.as_ref();
        environment::compose(&self.env, self.env_only, scratch, sandboxed, told)
    }

    /// Returns the descriptors and launcher options for a start in the sandbox; empty without a
    /// sandbox.
    fn sandbox_handover(&self) -> std::io::Result<Handover> {
        let Some(policy) = &self.policy else {
            return Ok(Handover::default());
        };
        // The target's sanitizer writes reports to this directory.
        let log = self
            .sanitizer_settings
            .as_ref()
            .and_then(|told| told.log_path.as_ref());
        let mut open = self.open.clone();
        open.extend(log.and_then(|log| log.parent()).map(Path::to_owned));
        open.dedup();
        let covered = self.covered();
        policy.handover(&self.scratch, &open, &covered, self.terminal.as_ref())
    }

    /// Returns the directories for temporary files (such as /tmp) that the sandbox replaces by the
    /// scratch directory.
    fn covered(&self) -> Vec<PathBuf> {
        let launcher = self.private.launcher();
        let needed = [&self.program, &launcher, &self.scratch, &self.cwd];
        let needed = needed.map(PathBuf::as_path);
        let values = self.env.iter().map(|(_, value)| value);
        let path = environment::path(&self.env, self.env_only);
        let texts = self.argv.iter().chain(values).chain(&path);
        sandbox::replaceable_directories(&needed, texts.map(OsString::as_os_str))
    }

    /// Whether the target's fork server is in its own PID namespace, so that its process ids differ
    /// outside.
    pub(crate) fn numbers_processes(&self) -> bool {
        matches!(&self.policy, Some(policy) if policy.numbers_processes())
    }

    /// Whether the target's scratch directory is a private mount, of which the supervisor passes a
    /// descriptor to ddfuzz.
    pub(crate) fn hides_scratch(&self) -> bool {
        matches!(&self.policy, Some(policy) if policy.hides_scratch())
    }

    /// Returns the target's scratch directory if no mount limits its size, so that ddfuzz must
    /// check it; `None` if the kernel limits it or without a sandbox.
    pub(crate) fn watched_scratch(&self) -> Option<PathBuf> {
        let watched = self.policy.is_some() && !self.hides_scratch();
        watched.then(|| self.scratch.clone())
    }

    /// Opens the directory of the user in which all runs start (`--cwd`), so that it can be locked
    /// for one run at a time. `None` if each worker has a directory for its runs, if runs cannot
    /// write to the user's directory, or if it cannot be opened.
    pub(crate) fn run_directory(&self) -> Option<RunDirectory> {
        let is_shared = self.cwd != self.scratch;
        let is_writable = self.policy.is_none() || self.open.contains(&self.cwd);
        if !is_shared || !is_writable {
            return None;
        }
        RunDirectory::open(&self.cwd, self.limits.wall)
    }

    /// Returns the value of `LD_PRELOAD` for the target: the paths of ddfuzz's libraries.
    fn preload(&self) -> OsString {
        let mut list = self.private.runtime().into_os_string();
        if self.observed.is_some() {
            list.push(":");
            list.push(self.private.observe());
        }
        if self.copied.is_some() {
            list.push(":");
            list.push(self.private.copy());
        }
        list
    }

    /// Formats device and inode of the input files for the launcher's option `-i`.
    fn input_words(&self) -> String {
        let words = self.inputs.iter();
        let words: Vec<String> = words
            .map(|(device, inode)| format!("{device}:{inode}"))
            .collect();
        words.join(",")
    }

    /// Builds the launcher's command line; `None` if an argument contains a NUL byte.
    fn launcher_argv(&self, policy: &[OsString]) -> Option<Vec<CString>> {
        let mut words: Vec<OsString> = vec!["ddfuzz-launcher".into()];
        words.push(match self.role {
            Role::Serve => "serve".into(),
            Role::Trace => "trace".into(),
            Role::Program => "exec".into(),
            Role::Afl => "afl".into(),
        });
        let mut option = |flag: &str, value: &OsStr| words.extend([flag.into(), value.to_owned()]);
        let mut number = |flag: &str, value: u64| option(flag, OsStr::new(&value.to_string()));
        // A limit on writable private memory, twice the limit on resident memory that ddfuzz checks
        // itself: a second line of defence. A sanitizer's shadow memory would exceed it.
        if !self.shadowed {
            number("-w", self.limits.memory.saturating_mul(2));
        }
        number("-f", self.limits.file_size);
        if self.cgroup.is_none() {
            let others = processes_of(self.identity) + HEADROOM;
            number("-n", others + u64::from(self.limits.processes));
        }
        match self.inject {
            Some(Inject::Entry(entry) | Inject::Loop(entry) | Inject::Once(entry)) => {
                option("-e", OsStr::new(&entry.words()));
            }
            Some(Inject::Defer | Inject::Restore) => option("-i", OsStr::new(&self.input_words())),
            Some(Inject::Fork | Inject::Pass) | None => {}
        }
        if let Some(inject) = self.inject {
            option("-m", OsStr::new(inject.name()));
            option("-p", &self.preload());
        }
        if let Some(identity) = self.identity {
            option("-u", OsStr::new(&identity.uid.to_string()));
            option("-U", OsStr::new(&identity.gid.to_string()));
        }
        if let Some(cgroup) = &self.cgroup {
            option("-g", cgroup.procs().as_os_str());
        }
        option("-d", self.cwd.as_os_str());
        words.push("-A".into());
        let files = [
            (&self.observed, "-O"),
            (&self.copied, "-C"),
            (&self.terminal, "-T"),
            (&self.code, "-K"),
        ];
        words.extend(self.freeze_start.then(|| "-Z".into()));
        let passed = files.into_iter().filter(|(file, _)| file.is_some());
        words.extend(passed.map(|(_, flag)| flag.into()));
        words.extend_from_slice(policy);
        words.push("--".into());
        words.push(self.program.clone().into_os_string());
        words.extend(self.argv.iter().cloned());
        words
            .iter()
            .map(|word| CString::new(word.as_bytes()).ok())
            .collect()
    }
}

impl Inject {
    fn name(self) -> &'static str {
        match self {
            Inject::Fork => "fork",
            Inject::Defer => "defer",
            Inject::Restore => "restore",
            Inject::Entry(_) => "entry",
            Inject::Loop(_) => "loop",
            Inject::Once(_) => "once",
            Inject::Pass => "pass",
        }
    }
}

/// Creates the reply channel of AFL++'s fork server, which reports a run by two words. It is a
/// socket: a read from a socket can wait for both words, with a timeout.
fn reply_socket() -> std::io::Result<(OwnedFd, OwnedFd)> {
    let (ours, theirs) = UnixStream::pair()?;
    ours.set_read_timeout(Some(SLICE))?;
    Ok((ours.into(), theirs.into()))
}

fn null_device() -> nix::Result<OwnedFd> {
    nix::fcntl::open("/dev/null", OFlag::O_RDWR | OFlag::O_CLOEXEC, Mode::empty())
}

/// Duplicates the file descriptor `file` to a number above those that fork servers inherit (256 or
/// more), and returns the duplicate.
fn above(file: &dyn AsFd) -> nix::Result<OwnedFd> {
    let rerun = fcntl(file.as_fd(), FcntlArg::F_DUPFD_CLOEXEC(fd::ABOVE))?;
    // SAFETY: the descriptor was made by the call above and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(rerun) })
}

/// Counts the processes and threads that the target's user has now; RLIMIT_NPROC counts them all.
fn processes_of(identity: Option<Identity>) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let uid = identity.map_or_else(|| nix::unistd::getuid().as_raw(), |identity| identity.uid);
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter(|entry| entry.metadata().is_ok_and(|facts| facts.uid() == uid))
        .map(|entry| threads(&entry.path()))
        .sum()
}

fn threads(process: &Path) -> u64 {
    std::fs::read_dir(process.join("task")).map_or(0, |tasks| tasks.count() as u64)
}
