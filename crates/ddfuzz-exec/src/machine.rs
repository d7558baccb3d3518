//! Checks what this machine offers for running targets (`ddfuzz doctor`). Most checks try the
//! operation.

use nix::sys::ptrace::{Options, seize};
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};
use nix::sys::signal::{Signal, kill};
use nix::sys::statvfs::{FsFlags, statvfs};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, Uid, User, fork};
use serde::Serialize;

use crate::{control_group::Cgroup, sandbox};

/// Whether a check of `ddfuzz doctor` concerns the machine or the user's target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum About {
    /// The check of `ddfuzz doctor` concerns the machine, and what it allows its users.
    Machine,
    /// The check of `ddfuzz doctor` concerns a target.
    Target,
}

/// The result of one check of `ddfuzz doctor`: whether something that running targets needs, or
/// that makes it faster or safer, is there, and how to get it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Name of the check in the JSON output of `ddfuzz doctor`, for scripts.
    pub name: &'static str,
    /// Whether the check of `ddfuzz doctor` concerns the machine or the user's target.
    pub about: About,
    /// True if the machine or the target has passed the check.
    pub ok: bool,
    /// Result of the check in one line for users, such as the value that was found.
    pub detail: String,
    /// How the user can solve the problem that the check found: a command or a sentence; `None` if
    /// the check has passed.
    pub fix: Option<String>,
}

impl Check {
    /// Makes the result of a check that has passed. `about`: what the check concerns; `detail`:
    /// what it has found, in one line for users.
    pub fn passed(about: About, name: &'static str, detail: impl Into<String>) -> Check {
        Check {
            name,
            about,
            ok: true,
            detail: detail.into(),
            fix: None,
        }
    }

    /// Makes the result of a check that has failed. `about`: what the check concerns; `detail`:
    /// what it has found, in one line for users; `fix`: how the user can solve the problem.
    pub fn failed(
        about: About,
        name: &'static str,
        detail: impl Into<String>,
        fix: impl Into<String>,
    ) -> Check {
        Check {
            name,
            about,
            ok: false,
            detail: detail.into(),
            fix: Some(fix.into()),
        }
    }
}

/// Runs all checks of the machine for `ddfuzz doctor`, and returns their results.
pub fn checks() -> Vec<Check> {
    let mut checks = vec![ptrace(), core_pattern(), addresses(), memory_files()];
    checks.extend([watched_calls(), watched_memory(), cgroup(), user()]);
    checks.extend(sandbox());
    checks.extend([
        shared_memory(),
        descriptors(),
        processes(),
        processors(),
        governor(),
    ]);
    checks
}

fn good(name: &'static str, detail: impl Into<String>) -> Check {
    Check::passed(About::Machine, name, detail)
}

fn bad(name: &'static str, detail: impl Into<String>, fix: impl Into<String>) -> Check {
    Check::failed(About::Machine, name, detail, fix)
}

/// Reads a small file of /proc or /sys, without surrounding white space; `None` if it cannot be
/// read.
fn kernel_text(path: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned())
}

/// A child process that sleeps until it is dropped; the check of ptrace traces it.
struct Sleeper {
    pid: Pid,
}

impl Sleeper {
    fn start() -> nix::Result<Sleeper> {
        // SAFETY: the child does nothing but system calls.
        match unsafe { fork()? } {
            ForkResult::Parent { child } => Ok(Sleeper { pid: child }),
            ForkResult::Child => {
                // SAFETY: as above; it dies with us.
                unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
                loop {
                    // SAFETY: as above.
                    unsafe { libc::pause() };
                }
            }
        }
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        // It is ours, and nobody else has waited for it.
        let _ = kill(self.pid, Signal::SIGKILL);
        while let Err(nix::Error::EINTR) = waitpid(self.pid, None) {}
    }
}

/// Runs `attempt` in a child process and returns whether it returned true there.
///
/// # Safety
/// `attempt` makes system calls only: in the child, locks of other threads may be held for ever.
unsafe fn succeeds(attempt: unsafe fn() -> bool) -> nix::Result<bool> {
    // SAFETY: what the caller promises.
    match unsafe { fork()? } {
        ForkResult::Child => {
            // SAFETY: what the caller promises.
            let status = i32::from(!unsafe { attempt() });
            // SAFETY: nothing of ours is to be done at the child's end.
            unsafe { libc::_exit(status) }
        }
        ForkResult::Parent { child } => loop {
            match waitpid(child, None) {
                Err(nix::Error::EINTR) => {}
                ended => return Ok(ended? == WaitStatus::Exited(child, 0)),
            }
        },
    }
}

/// Checks whether ddfuzz can trace targets, which it needs to read crashes.
fn ptrace() -> Check {
    let name = "ptrace";
    let scope = kernel_text("/proc/sys/kernel/yama/ptrace_scope");
    let scope_says = match scope.as_deref() {
        None => "ptrace is not restricted".to_owned(),
        Some(scope) => format!("ptrace_scope is {scope}"),
    };
    let child = match Sleeper::start() {
        Ok(child) => child,
        Err(errno) => return not_tried(name, errno),
    };
    match seize(child.pid, Options::empty()) {
        Ok(()) => good(name, format!("ddfuzz can trace targets ({scope_says})")),
        Err(errno) => bad(
            name,
            format!(
                "ddfuzz cannot trace targets: {errno} ({scope_says}); crashes are grouped by a snapshot that the crashing process takes of itself, those of static programs by their signal only; all hangs are one group, and so are all out-of-memory failures"
            ),
            match scope.as_deref() {
                Some("3") => {
                    "ptrace_scope 3 stays until the next boot: set kernel.yama.ptrace_scope=1 in /etc/sysctl.d and reboot"
                }
                Some("2") => "sysctl -w kernel.yama.ptrace_scope=1 (as root, on the host)",
                _ => {
                    "in a container: start it with --cap-add=SYS_PTRACE, or with a seccomp profile that allows ptrace"
                }
            },
        ),
    }
}

/// Returns, as a result for `ddfuzz doctor`, where the kernel writes core dumps. ddfuzz's limit of
/// one byte prevents all of them, also those that are piped to a program
/// (`docs/decisions/0010-core-limit-of-one.md`).
fn core_pattern() -> Check {
    let name = "core-pattern";
    match kernel_text("/proc/sys/kernel/core_pattern") {
        None => good(name, "not visible; ddfuzz disables core dumps"),
        Some(pattern) if pattern.starts_with('|') => good(
            name,
            "core dumps are piped to a program; ddfuzz's limits prevent that",
        ),
        Some(_) => good(
            name,
            "core dumps are written to files; ddfuzz's limits prevent that",
        ),
    }
}

/// Disables address-space layout randomization for the next `execve` of this process; returns
/// whether the system permits that.
///
/// # Safety
/// Only for a child process that exits afterwards.
unsafe fn fix_addresses() -> bool {
    // SAFETY: system calls that change a flag of this process.
    unsafe {
        let now = libc::personality(0xffff_ffff);
        now >= 0
            && libc::personality(now as libc::c_ulong | libc::ADDR_NO_RANDOMIZE as libc::c_ulong)
                >= 0
    }
}

/// Checks whether ddfuzz can disable address-space layout randomization.
fn addresses() -> Check {
    let name = "addresses";
    let random = kernel_text("/proc/sys/kernel/randomize_va_space");
    if random.as_deref() == Some("0") {
        return good(name, "not randomized on this machine");
    }
    // SAFETY: two system calls.
    match unsafe { succeeds(fix_addresses) } {
        Err(errno) => not_tried(name, errno),
        Ok(true) => good(name, "randomized; ddfuzz can switch that off for targets"),
        Ok(false) => bad(
            name,
            "randomized, and ddfuzz cannot switch that off (`personality` is refused): some crashes may not be reproducible",
            "in a container: a seccomp profile that allows personality(ADDR_NO_RANDOMIZE); else sysctl -w kernel.randomize_va_space=0 (as root, on the host)",
        ),
    }
}

/// Checks whether memory files (`memfd_create`) can be created: inputs are passed in them.
fn memory_files() -> Check {
    let name = "memfd";
    match crate::input::memory_file(c"ddfuzz-doctor") {
        Ok(_) => good(name, "memory files can be created"),
        Err(errno) => bad(
            name,
            format!("memory files cannot be created: {errno}"),
            "inputs need memfd_create (Linux 3.17): allow it in the seccomp profile of the container",
        ),
    }
}

fn not_tried(name: &'static str, errno: nix::Error) -> Check {
    bad(
        name,
        format!("unknown, because no process can be started: {errno}"),
        "raise `ulimit -u`, or end other processes of this user",
    )
}

/// Limit on processes that is set for the control group which the check of control groups creates.
const TRIED_PROCESSES: u32 = 64;

/// Checks whether a control group can limit the processes of a target.
fn cgroup() -> Check {
    match Cgroup::create(TRIED_PROCESSES) {
        Some(_) => good(
            "cgroup",
            "a control group limits the number of processes of a target",
        ),
        None => bad(
            "cgroup",
            "no control group can be created; RLIMIT_NPROC limits processes instead, and counts all processes of the user",
            "not needed; run as root with a writable /sys/fs/cgroup for a limit that counts the target's processes only",
        ),
    }
}

/// Checks each kernel feature that `--sandbox` uses; returns one result for each.
fn sandbox() -> Vec<Check> {
    let parts = sandbox::supported_parts()
        .into_iter()
        .filter_map(|offered| {
            let (_, name, holds, fix) = PARTS.iter().find(|part| part.0 == offered.what)?;
            Some(match offered.why_not {
                None if *name == "landlock" => {
                    let version = sandbox::landlock_version().unwrap_or_default();
                    good(name, format!("supported (version {version}): {holds}"))
                }
                None => good(name, format!("supported: {holds}")),
                Some(why) => bad(
                    name,
                    format!("not supported ({why}), so this is not guaranteed: {holds}"),
                    *fix,
                ),
            })
        });
    parts.collect()
}

const NAMESPACES: &str = "as a user: sysctl -w kernel.unprivileged_userns_clone=1 user.max_user_namespaces=10000 (as root; Ubuntu: kernel.apparmor_restrict_unprivileged_userns=0); in a container: one that may make namespaces (--cap-add=SYS_ADMIN, or a seccomp profile that allows unshare)";

/// Parts of the sandbox: name in `sandbox::support`, name of the check, what the part guarantees,
/// and how to get support for it.
const PARTS: [(&str, &str, &str, &str); 9] = [
    (
        "landlock",
        "landlock",
        "with --sandbox a target can write files in its temporary directory only",
        "Linux 5.13 with landlock among the kernel's `lsm=`, and a seccomp profile that allows it",
    ),
    (
        "seccomp",
        "seccomp",
        "with --sandbox a target can open local sockets only, and cannot make system calls for administrators",
        "a kernel with CONFIG_SECCOMP_FILTER, and a container that allows loading filters",
    ),
    (
        "user namespace",
        "ns-user",
        "with --sandbox an unprivileged user can use the other namespaces",
        NAMESPACES,
    ),
    (
        "mount namespace",
        "ns-mount",
        "with --sandbox the temporary directory holds at most 64 MiB and 10,000 files",
        NAMESPACES,
    ),
    (
        "read-only files",
        "read-only",
        "with --sandbox a target cannot change modes, owners and times of files outside its temporary directory",
        "Linux 5.12, mount namespaces, and a seccomp profile that allows mount_setattr",
    ),
    (
        "pid namespace",
        "ns-pid",
        "with --sandbox a target sees no other processes, and its processes end with its first one",
        NAMESPACES,
    ),
    (
        "network namespace",
        "ns-net",
        "with --sandbox a target cannot send packets",
        NAMESPACES,
    ),
    (
        "ipc namespace",
        "ns-ipc",
        "with --sandbox no System V shared memory or queue of a target is left behind",
        NAMESPACES,
    ),
    (
        "uts namespace",
        "ns-uts",
        "with --sandbox a target cannot change the host name",
        NAMESPACES,
    ),
];

/// Switches Syscall User Dispatch on and off for this process; returns whether the kernel supports
/// it.
///
/// # Safety
/// Only system calls are made; see [`succeeds`].
#[cfg(target_arch = "x86_64")]
unsafe fn dispatch_calls() -> bool {
    const DISPATCH: libc::c_int = 59; // PR_SET_SYSCALL_USER_DISPATCH
    // While it is on, calls from all addresses but [0, 2^47) are dispatched: none.
    let (off, on, all): (libc::c_ulong, libc::c_ulong, libc::c_ulong) = (0, 1, 1 << 47);
    let allow = 0u8;
    // SAFETY: the selector outlives both calls.
    unsafe {
        libc::prctl(DISPATCH, on, off, all, &raw const allow) == 0
            && libc::prctl(DISPATCH, off, off, off, off) == 0
    }
}

/// Opens a userfaultfd with the features by which runs of the execution method `snapshot` learn
/// which memory they write, without watching any memory; returns whether the kernel offers these
/// features.
///
/// # Safety
/// Only system calls are made; see [`succeeds`].
#[cfg(target_arch = "x86_64")]
unsafe fn watch_memory() -> bool {
    const API: libc::c_ulong = 0xc018_aa3f; // UFFDIO_API
    const WRITES: u64 = 1 << 15 | 1 << 13; // WP_ASYNC, WP_UNPOPULATED
    let mut api: [u64; 3] = [0xaa, WRITES, 0];
    // SAFETY: the kernel writes into `api` only.
    unsafe {
        let fd = libc::syscall(
            libc::SYS_userfaultfd,
            libc::O_CLOEXEC | 1, /* user mode only */
        );
        i32::try_from(fd).is_ok_and(|fd| fd >= 0 && libc::ioctl(fd, API, api.as_mut_ptr()) == 0)
    }
}

/// Asks the kernel, by PAGEMAP_SCAN, which pages of an address range were written, for a range
/// without memory; returns true if the kernel supports the request.
///
/// # Safety
///
/// Only system calls are made; see [`succeeds`].
#[cfg(target_arch = "x86_64")]
unsafe fn list_written() -> bool {
    const SCAN: libc::c_ulong = 0xc060_6610; // PAGEMAP_SCAN
    let mut scan: [u64; 12] = [96, 0, 4096, 8192, 0, 0, 0, 0, 0, 0, 0, 0];
    // SAFETY: the kernel writes into `scan` only.
    unsafe {
        let pages = libc::open(c"/proc/self/pagemap".as_ptr(), libc::O_RDONLY);
        libc::ioctl(pages, SCAN, scan.as_mut_ptr()) >= 0
    }
}

/// Checks for `ddfuzz doctor` whether the kernel can report a program's system calls to ddfuzz up
/// to the point where runs are forked.
#[cfg(target_arch = "x86_64")]
fn watched_calls() -> Check {
    let name = "call-watch";
    // SAFETY: it makes system calls only.
    match unsafe { succeeds(dispatch_calls) } {
        Ok(true) => good(
            name,
            "system calls can be watched: `inject` forks at the first use of the input, and `snapshot` works",
        ),
        Ok(false) => bad(
            name,
            "system calls cannot be watched: `inject` forks at main, and `snapshot` does not work",
            "Linux 5.11 or later; in a container, a seccomp profile that allows prctl",
        ),
        Err(errno) => not_tried(name, errno),
    }
}

/// Checks for `ddfuzz doctor` whether the kernel can list the memory that a run has written, which
/// the execution method `snapshot` then restores.
#[cfg(target_arch = "x86_64")]
fn watched_memory() -> Check {
    let name = "memory-watch";
    let copied = "`snapshot` copies all of a program's memory after each run, up to 4 MiB, and leaves larger programs to `inject`";
    // SAFETY: they make system calls only.
    match unsafe { (succeeds(watch_memory), succeeds(list_written)) } {
        (Ok(true), Ok(true)) => good(
            name,
            "the kernel lists the memory that a run has written (userfaultfd, PAGEMAP_SCAN)",
        ),
        (Ok(false), Ok(_)) => bad(
            name,
            format!("userfaultfd is refused or too old: {copied}"),
            "Linux 6.7 or later; in a container, a seccomp profile that allows userfaultfd",
        ),
        (Ok(true), Ok(false)) => bad(
            name,
            format!("the kernel does not list written pages (PAGEMAP_SCAN): {copied}"),
            "Linux 6.7 or later",
        ),
        (Err(errno), _) | (_, Err(errno)) => not_tried(name, errno),
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn watched_calls() -> Check {
    good("call-watch", "only on x86-64: `inject` forks at main")
}

#[cfg(not(target_arch = "x86_64"))]
fn watched_memory() -> Check {
    good("memory-watch", "only on x86-64: `snapshot` does not work")
}

/// Returns, as a result for `ddfuzz doctor`, the users that ddfuzz and its targets run as.
fn user() -> Check {
    let user = Uid::effective();
    if !user.is_root() {
        return good(
            "user",
            format!("targets run as the user {user} and can write wherever it can"),
        );
    }
    match User::from_name("nobody") {
        Ok(Some(nobody)) => good(
            "user",
            format!(
                "ddfuzz runs as root, targets run as nobody (user {})",
                nobody.uid
            ),
        ),
        _ => good("user", "ddfuzz runs as root, targets run as user 65534"),
    }
}

/// Free space in /dev/shm, in bytes, that `ddfuzz doctor` requires: enough for a few workers with
/// inputs of 1 MiB.
const ROOM: u64 = 64 << 20;
/// Smallest limit on file descriptors that `ddfuzz doctor` accepts: a fork server uses numbers from
/// 190 on.
const DESCRIPTORS: u64 = 256;
/// Smallest limit on the user's processes that `ddfuzz doctor` accepts: a target and ddfuzz itself
/// need a few.
const PROCESSES: u64 = 128;

/// Checks the free space in /dev/shm, where ddfuzz unpacks programs and targets write files.
fn shared_memory() -> Check {
    let name = "dev-shm";
    let facts = match statvfs("/dev/shm") {
        Ok(facts) => facts,
        Err(errno) => {
            return bad(
                name,
                format!("not mounted ({errno}), so temporary files of targets are written to disk"),
                "mount -t tmpfs tmpfs /dev/shm (as root)",
            );
        }
    };
    // The type differs between C libraries.
    let unit = facts.fragment_size() as u64;
    let mebibytes = |blocks: u64| blocks.saturating_mul(unit) >> 20;
    let (size, free) = (facts.blocks() as u64, facts.blocks_available() as u64);
    let says = format!("{} MiB, {} MiB free", mebibytes(size), mebibytes(free));
    if free.saturating_mul(unit) < ROOM {
        return bad(
            name,
            format!("{says}: too small for several workers"),
            "remove old files there, or mount -o remount,size=1G /dev/shm (as root); for a Docker container: --shm-size=1g",
        );
    }
    if facts.flags().contains(FsFlags::ST_NOEXEC) {
        return good(
            name,
            format!(
                "{says}; programs there cannot be executed (noexec), so ddfuzz unpacks them elsewhere"
            ),
        );
    }
    good(name, says)
}

/// Returns the soft limit on a resource; `None` if it is unlimited or cannot be read.
fn limit(resource: Resource) -> Option<u64> {
    let (soft, _) = getrlimit(resource).ok()?;
    (soft != RLIM_INFINITY).then_some(soft)
}

/// Checks whether the limit on file descriptors is high enough for fork servers.
fn descriptors() -> Check {
    match limit(Resource::RLIMIT_NOFILE) {
        Some(few) if few < DESCRIPTORS => bad(
            "descriptors",
            format!("only {few} file descriptors may be open, too few for a fork server"),
            "ulimit -n 1024",
        ),
        Some(many) => good(
            "descriptors",
            format!("{many} file descriptors may be open"),
        ),
        None => good("descriptors", "no limit on open file descriptors"),
    }
}

/// Checks whether the limit on the user's processes leaves enough for a target and for ddfuzz.
fn processes() -> Check {
    match limit(Resource::RLIMIT_NPROC) {
        Some(few) if few < PROCESSES => bad(
            "processes",
            format!(
                "the user may have only {few} processes, which may be too few for a fork server and its target"
            ),
            "ulimit -u 4096",
        ),
        Some(many) => good("processes", format!("the user may have {many} processes")),
        None => good("processes", "no limit on the processes of the user"),
    }
}

/// Returns, as a result for `ddfuzz doctor`, the number of processors, the default number of
/// workers.
fn processors() -> Check {
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    let workers = if count == 1 { "worker" } else { "workers" };
    good(
        "processors",
        format!("{count}, so a campaign starts {count} {workers} unless --jobs is given"),
    )
}

/// Checks the CPU frequency governor: a power-saving processor is slow for runs of a millisecond.
fn governor() -> Check {
    let name = "governor";
    match kernel_text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").as_deref() {
        None => good(name, "not visible (in a virtual machine or container?)"),
        Some("performance") => good(name, "performance"),
        Some(other) => bad(
            name,
            format!("{other}: the processor may run below its full speed"),
            "cpupower frequency-set -g performance (as root)",
        ),
    }
}
