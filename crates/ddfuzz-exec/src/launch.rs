//! Starts the launcher (`runtime/launcher.c`), by `posix_spawn`: never by a fork of this
//! process, whose size would make each start slow.

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, posix_spawn};
use nix::sys::stat::Mode;
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::cgroup::Cgroup;
use crate::crash_snapshots::CrashSnapshots;
use crate::elf::EntryFunction;
use crate::environment::SanitizerSettings;
use crate::identity::Identity;
use crate::private_dir::PrivateDir;
use crate::protocol::fd;
use crate::sandbox::{Handover, SandboxPolicy};
use crate::shared_page::{Page, PageLayout};
use crate::supervisor::Supervisor;
use crate::watch::SLICE;
use crate::{ExecError, Limits, environment, sandbox};

/// What the launcher's child becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// A server that runs the program with `execve` for each request.
    Serve,
    /// The same, each child waiting to be seized by a tracer.
    Trace,
    /// The program itself, serving by the injected runtime.
    Program,
    /// The program itself, serving by the fork server that AFL++ compiled into it.
    Afl,
}

/// What the injected runtime does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inject {
    /// Forks at `main`.
    Fork,
    /// Forks, and calls the entry function in the child.
    Entry(EntryFunction),
    /// Calls the entry function again and again in one child.
    Loop(EntryFunction),
    /// Calls the entry function once, on stdin, without serving.
    Once(EntryFunction),
    /// Goes on into `main`.
    Pass,
}

/// How to start a launcher. The executor keeps it to start again.
pub(crate) struct Launch {
    pub(crate) private: Arc<PrivateDir>,
    pub(crate) role: Role,
    pub(crate) inject: Option<Inject>,
    /// The file in which runs report comparisons; preloads the library that observes.
    pub(crate) observed: Option<File>,
    /// The file in which runs leave snapshots when they die; preloads the library that takes them.
    pub(crate) copied: Option<File>,
    /// The terminal of each run, where they have one.
    pub(crate) terminal: Option<File>,
    /// Where the target's standard output goes; nowhere where `None`.
    pub(crate) stdout: Option<File>,
    pub(crate) program: PathBuf,
    /// The settings of its sanitizer, if it has one or may start a program that has one.
    pub(crate) sanitizer_settings: Option<SanitizerSettings>,
    /// Whether that sanitizer may need terabytes of address space.
    pub(crate) shadowed: bool,
    /// Where the target's temporary files go.
    pub(crate) scratch: PathBuf,
    /// The policy of its sandbox, where it is in one.
    pub(crate) policy: Option<SandboxPolicy>,
    /// Directories besides the scratch directory in which it may write.
    pub(crate) open: Vec<PathBuf>,
    /// The program's arguments, its name first.
    pub(crate) argv: Vec<OsString>,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) env_only: bool,
    pub(crate) cwd: PathBuf,
    pub(crate) limits: Limits,
    pub(crate) identity: Option<Identity>,
    pub(crate) cgroup: Option<Cgroup>,
}

/// Room in RLIMIT_NPROC beyond the processes that the user has now: the limit also counts those
/// started later, and the targets of other workers. A server that finds no room is restarted.
const HEADROOM: u64 = 256;
/// How often, and how far apart, a start is tried while the launcher's file is busy: a thread that
/// forks holds files that are being written open for a moment.
const TRIES: u32 = 200;
const PAUSE: Duration = Duration::from_millis(5);

/// Our ends of the pipes to a launched server.
pub(crate) struct ServerPipes {
    pub(crate) request: File,
    pub(crate) reply: File,
}

impl Launch {
    /// The error where the target's directory cannot be recreated.
    pub(crate) fn lost(&self, source: std::io::Error) -> ExecError {
        ExecError::System {
            what: format!("making the directory of {} again", self.program.display()),
            source,
        }
    }

    /// Memory to share with a server.
    pub(crate) fn page(&self, shape: PageLayout) -> Result<Page, ExecError> {
        Page::create(shape).map_err(|source| self.not_sharing(source))
    }

    /// Lets the target leave snapshots when it dies; returns where.
    pub(crate) fn leave_snapshots(&mut self) -> Result<Arc<CrashSnapshots>, ExecError> {
        let made = CrashSnapshots::create().and_then(|copies| {
            self.copied = Some(copies.file()?);
            Ok(Arc::new(copies))
        });
        made.map_err(|source| self.not_sharing(source))
    }

    /// The error where there is no terminal for it.
    pub(crate) fn without_terminal(&self, source: std::io::Error) -> ExecError {
        ExecError::System {
            what: format!(
                "opening a terminal for {} (is /dev/pts mounted?)",
                self.program.display()
            ),
            source,
        }
    }

    /// The error where memory cannot be shared.
    pub(crate) fn not_sharing(&self, source: std::io::Error) -> ExecError {
        ExecError::System {
            what: format!("sharing memory with {}", self.program.display()),
            source,
        }
    }

    /// Starts the launcher. `stderr`: where the target's standard error goes; nowhere where `None`.
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
            Role::Afl => answers().map_err(system)?,
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
        let mut handed = self.lift(&fixed)?;
        let policy = self.sandbox_handover().map_err(system)?;
        for (held, number) in &policy.descriptors {
            handed.push((above(held)?, *number));
        }
        let mut actions = PosixSpawnFileActions::init()?;
        let null = nix::fcntl::open("/dev/null", OFlag::O_RDWR | OFlag::O_CLOEXEC, Mode::empty())?;
        actions.add_dup2(null.as_raw_fd(), 0)?;
        let stdout = self.stdout.as_ref();
        actions.add_dup2(stdout.map_or(null.as_raw_fd(), |file| file.as_raw_fd()), 1)?;
        actions.add_dup2(stderr.map_or(null.as_raw_fd(), |file| file.as_raw_fd()), 2)?;
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

    /// Duplicates these descriptors, and those that the role needs, above the numbers that servers
    /// inherit.
    fn lift(&self, fixed: &[(&dyn AsFd, i32)]) -> nix::Result<Vec<(OwnedFd, i32)>> {
        let wanted = [
            (&self.observed, fd::OBSERVED),
            (&self.copied, fd::COPY),
            (&self.terminal, fd::TERMINAL),
        ];
        let wanted = wanted.into_iter().filter_map(|(file, number)| {
            let file = file.as_ref()?;
            Some((file as &dyn AsFd, number))
        });
        let all = fixed.iter().copied().chain(wanted);
        all.map(|(file, number)| Ok((above(file)?, number)))
            .collect()
    }

    fn environment(&self) -> Vec<CString> {
        let (scratch, sandboxed) = (&self.scratch, self.policy.is_some());
        let told = self.sanitizer_settings.as_ref();
        environment::compose(&self.env, self.env_only, scratch, sandboxed, told)
    }

    /// The descriptors and options of a start in a sandbox.
    fn sandbox_handover(&self) -> std::io::Result<Handover> {
        let Some(policy) = &self.policy else {
            return Ok(Handover::default());
        };
        // Its sanitizer writes there.
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

    /// The directories for temporary files that the scratch directory replaces in a sandbox.
    fn covered(&self) -> Vec<PathBuf> {
        let launcher = self.private.launcher();
        let needed = [&self.program, &launcher, &self.scratch, &self.cwd];
        let needed = needed.map(PathBuf::as_path);
        let values = self.env.iter().map(|(_, value)| value);
        let path = environment::path(&self.env, self.env_only);
        let texts = self.argv.iter().chain(values).chain(&path);
        sandbox::covers(&needed, texts.map(OsString::as_os_str))
    }

    /// Whether it has a PID namespace, so that its process ids differ outside.
    pub(crate) fn numbers_processes(&self) -> bool {
        self.policy
            .as_ref()
            .is_some_and(SandboxPolicy::numbers_processes)
    }

    /// Whether its scratch directory is a mount, which its supervisor sends by the supervisor pipe.
    pub(crate) fn hides_scratch(&self) -> bool {
        self.policy
            .as_ref()
            .is_some_and(SandboxPolicy::hides_scratch)
    }

    /// The scratch directory, where its size must be watched because no mount bounds it.
    pub(crate) fn watched_scratch(&self) -> Option<PathBuf> {
        let watched = self.policy.is_some() && !self.hides_scratch();
        watched.then(|| self.scratch.clone())
    }

    /// The preloaded libraries, as the value of `LD_PRELOAD`.
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

    /// The launcher's command line; `None` if something in it holds a NUL byte.
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
        // A backstop to the watched limit: twice the memory, as writable private memory. A
        // sanitizer's shadow would not fit.
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
        if self.observed.is_some() {
            words.push("-O".into());
        }
        if self.copied.is_some() {
            words.push("-C".into());
        }
        if self.terminal.is_some() {
            words.push("-T".into());
        }
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
            Inject::Entry(_) => "entry",
            Inject::Loop(_) => "loop",
            Inject::Once(_) => "once",
            Inject::Pass => "pass",
        }
    }
}

/// The reply channel of a server that reports each run by two words: one call on a socket waits for
/// both, and not for long.
fn answers() -> std::io::Result<(OwnedFd, OwnedFd)> {
    let (ours, theirs) = UnixStream::pair()?;
    ours.set_read_timeout(Some(SLICE))?;
    Ok((ours.into(), theirs.into()))
}

/// A duplicate of our descriptor, above the numbers that servers inherit.
fn above(file: &dyn AsFd) -> nix::Result<OwnedFd> {
    let rerun = fcntl(file.as_fd(), FcntlArg::F_DUPFD_CLOEXEC(fd::ABOVE))?;
    // SAFETY: the descriptor was made by the call above and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(rerun) })
}

/// How many processes and threads the target's user has now: RLIMIT_NPROC counts them all.
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
