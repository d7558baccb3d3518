//! A control group that bounds how many processes a target may have. Where we may not make one,
//! `RLIMIT_NPROC` stands in: it binds every user but root, and root's targets run as nobody.

use std::fs;
use std::path::{Path, PathBuf};
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
        static COUNT: AtomicU64 = AtomicU64::new(0);
        ROOTS.iter().map(Path::new).find_map(|root| {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            if count == 0 {
                remove_stale(root);
            }
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
        let members = fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
        for pid in members.split_whitespace().flat_map(str::parse) {
            let pid = nix::unistd::Pid::from_raw(pid);
            let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Removes the groups of processes that are gone.
fn remove_stale(root: &Path) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name
            .to_str()
            .and_then(|name| name.strip_prefix(PREFIX)?.split_once('-'));
        if owner.is_some_and(|(pid, _)| !Path::new("/proc").join(pid).exists()) {
            empty_and_remove(&entry.path());
        }
    }
}
