//! How much there is: memory for files, descriptors, processes, processors.

use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};
use nix::sys::statvfs::{FsFlags, statvfs};

use super::{Check, bad, good, kernel_text};

/// Room in /dev/shm that serves a few workers with inputs of a megabyte, in bytes.
const ROOM: u64 = 64 << 20;
/// Descriptors that a server needs: those of the runtime begin at 190.
const DESCRIPTORS: u64 = 256;
/// Processes of a target, and a few of ours.
const PROCESSES: u64 = 128;

/// What is unpacked, and the files of targets, lie in /dev/shm.
pub(super) fn shared_memory() -> Check {
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
    // Types differ between C libraries.
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

/// The soft limit; `None` where there is none.
fn limit(resource: Resource) -> Option<u64> {
    let (soft, _) = getrlimit(resource).ok()?;
    (soft != RLIM_INFINITY).then_some(soft)
}

/// Servers use descriptors from 190 on.
pub(super) fn descriptors() -> Check {
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

/// How many processes the user may have.
pub(super) fn processes() -> Check {
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

/// How many workers there will be.
pub(super) fn processors() -> Check {
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    let workers = if count == 1 { "worker" } else { "workers" };
    good(
        "processors",
        format!("{count}, so a campaign starts {count} {workers} unless --jobs is given"),
    )
}

/// A processor that saves power answers late: a run lasts a millisecond, and slows it down again.
pub(super) fn governor() -> Check {
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
