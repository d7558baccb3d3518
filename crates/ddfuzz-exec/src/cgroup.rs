//! A control group that bounds how many processes a target may have. Where none can be made,
//! `RLIMIT_NPROC` stands in: it binds every user but root, and root's targets run as nobody.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Where the pids controller is mounted: version 1, then version 2.
const ROOTS: [&str; 2] = ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"];
const PREFIX: &str = "ddfuzz-";

/// A control group of ours; removed with whatever still runs in it.
pub(crate) struct Cgroup {
    path: PathBuf,
}

impl Cgroup {
    /// Makes a group of at most `processes` processes and threads, where that is permitted.
    pub(crate) fn create(processes: u32) -> Option<Cgroup> {
        static STALE: Once = Once::new();
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let roots = || ROOTS.iter().map(Path::new);
        STALE.call_once(|| roots().for_each(remove_stale));
        roots().find_map(|root| {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let path = root.join(format!("{PREFIX}{}-{count}", std::process::id()));
            fs::create_dir(&path).ok()?;
            let group = Cgroup { path };
            fs::write(group.path.join("pids.max"), processes.to_string()).ok()?;
            Some(group)
        })
    }

    /// The file to which a process writes `0` to join.
    pub(crate) fn procs(&self) -> PathBuf {
        self.path.join("cgroup.procs")
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        empty_and_remove(&self.path);
    }
}

fn empty_and_remove(path: &Path) {
    let deadline = Instant::now() + Duration::from_secs(5);
    // Without room for new processes, killing comes to an end even against a fork bomb.
    let _ = fs::write(path.join("pids.max"), "0");
    while fs::remove_dir(path).is_err() && path.exists() && Instant::now() < deadline {
        let listed = fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
        for pid in members(&listed) {
            let _ = kill(pid, Signal::SIGKILL);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A process that our namespace has no id for is listed as 0, which for `kill` means our own
/// process group.
fn members(listed: &str) -> impl Iterator<Item = Pid> {
    let pids = listed.split_whitespace().flat_map(str::parse);
    pids.filter(|pid| *pid > 0).map(Pid::from_raw)
}

/// Removes the groups of processes that are gone. Those in which something runs are another's:
/// an owner in another namespace looks gone, and one that is gone has left no process.
fn remove_stale(root: &Path) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name
            .to_str()
            .and_then(|name| name.strip_prefix(PREFIX)?.split_once('-'));
        if owner.is_some_and(|(pid, _)| !Path::new("/proc").join(pid).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_without_an_id_here_is_not_taken_for_our_group() {
        let found: Vec<Pid> = members("0\n12\n-1\n0\n7\n").collect();
        assert_eq!(found, [Pid::from_raw(12), Pid::from_raw(7)]);
    }
}
