//! What the kernel allows: tracing, fixed addresses, files in memory; and what it does at a crash.

use nix::sys::ptrace::{Options, seize};

use super::trial::{Sleeper, succeeds};
use super::{Check, bad, good, kernel_text};

/// Crashes are read by a tracer.
pub(super) fn ptrace() -> Check {
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

/// What the kernel does with the core of a crash. Our limit of one byte keeps it from doing
/// anything, a pipe included (`docs/decisions/0010-core-limit-of-one.md`).
pub(super) fn core_pattern() -> Check {
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

/// Fixes the addresses of whatever the process executes next.
///
/// # Safety
/// For a child that ends behind it.
unsafe fn fix_addresses() -> bool {
    // SAFETY: system calls that change a flag of this process.
    unsafe {
        let now = libc::personality(0xffff_ffff);
        now >= 0
            && libc::personality(now as libc::c_ulong | libc::ADDR_NO_RANDOMIZE as libc::c_ulong)
                >= 0
    }
}

/// Whether runs can have the same addresses each time.
pub(super) fn addresses() -> Check {
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

/// Inputs are files in memory.
pub(super) fn memory_files() -> Check {
    let name = "memfd";
    match super::super::input::memory_file(c"ddfuzz-doctor") {
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
