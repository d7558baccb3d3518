//! Control groups, which limit the number of a target's processes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use ddfuzz_model::files::atomic::is_at;

/// Directories in which control groups of the pids controller can be created: version 1, then
/// version 2.
const ROOTS: [&str; 2] = ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"];
const PREFIX: &str = "ddfuzz-";
/// How often, at most, creating a control group is tried. Each try has a new name; it fails if
/// another ddfuzz removes the new group before the group is locked.
const TRIES: usize = 16;

/// A control group that limits the number of a target's processes; dropping it kills its processes
/// and removes it. Where none can be created, `RLIMIT_NPROC` limits the user that the target runs
/// as.
pub(crate) struct Cgroup {
    path: PathBuf,
    /// The directory of the control group, locked while this process lives: the lock shows any
    /// other ddfuzz, also one in another PID namespace, that the group is in use.
    _lock: File,
}

impl Cgroup {
    /// Creates a control group of at most `processes` processes and threads; `None` where that is
    /// not permitted. The first call also removes the control groups of dead ddfuzz processes.
    pub(crate) fn create(processes: u32) -> Option<Cgroup> {
        static STALE: Once = Once::new();
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let roots = || ROOTS.iter().map(Path::new);
        STALE.call_once(|| roots().for_each(remove_stale));
        roots().find_map(|root| {
            let mut names = (0..TRIES).map(|_| {
                let count = COUNT.fetch_add(1, Ordering::Relaxed);
                root.join(format!("{PREFIX}{}-{count}", std::process::id()))
            });
            let group = names.find_map(|path| Cgroup::create_at(path).transpose());
            let group = group?.ok()?;
            group.limit(processes).ok()?;
            Some(group)
        })
    }

    /// Creates a control group at `path`, and locks it; `None` if another ddfuzz has removed it
    /// before it was locked.
    fn create_at(path: PathBuf) -> io::Result<Option<Cgroup>> {
        fs::create_dir(&path)?;
        let lock = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        lock.lock_shared()?;
        let is_there = is_at(&lock, &path);
        Ok(is_there.then_some(Cgroup { path, _lock: lock }))
    }

    /// Limits the control group to `processes` processes and threads. Fails, and creates no file,
    /// if the directory is not that of a control group with the pids controller.
    fn limit(&self, processes: u32) -> io::Result<()> {
        limit_processes(&self.path, processes)?;
        self.procs().metadata().map(drop)
    }

    /// Returns the path of the file to which a process writes `0` to join the control group.
    pub(crate) fn procs(&self) -> PathBuf {
        self.path.join("cgroup.procs")
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        empty_and_remove(&self.path);
    }
}

/// Sets the maximum number of processes and threads of the control group at `path`; fails, and
/// creates no file, if the group has no file for this limit (`pids.max`).
fn limit_processes(path: &Path, processes: u32) -> io::Result<()> {
    let mut limit = OpenOptions::new().write(true).open(path.join("pids.max"))?;
    limit.write_all(processes.to_string().as_bytes())
}

fn empty_and_remove(path: &Path) {
    let deadline = Instant::now() + Duration::from_secs(5);
    // Without new processes, killing ends even a fork bomb.
    let _ = limit_processes(path, 0);
    while fs::remove_dir(path).is_err() && path.exists() && Instant::now() < deadline {
        let listed = fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
        for pid in members(&listed) {
            let _ = kill(pid, Signal::SIGKILL);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Parses the process ids that a control group lists. A process outside ddfuzz's PID namespace is
/// listed as 0, which `kill` would take for ddfuzz's own process group; it is skipped.
fn members(listed: &str) -> impl Iterator<Item = Pid> {
    let pids = listed.split_whitespace().flat_map(str::parse);
    pids.filter(|pid| *pid > 0).map(Pid::from_raw)
}

/// Removes, from the directory `root`, the control groups of ddfuzz processes that have died:
/// groups that no process has locked and whose name has an id that no process has. (An owner in
/// another PID namespace has no id here, but holds the lock.)
fn remove_stale(root: &Path) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name
            .to_str()
            .and_then(|name| name.strip_prefix(PREFIX)?.split_once('-'));
        if owner.is_some_and(|(pid, _)| !Path::new("/proc").join(pid).exists()) {
            let group = File::open(entry.path());
            let is_free = |group: &File| group.try_lock().is_ok() && is_at(group, &entry.path());
            if group.as_ref().is_ok_and(is_free) {
                let _ = fs::remove_dir(entry.path());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_control_group_limits_nothing_and_gets_no_files() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ddfuzz-1-0");
        let group = Cgroup::create_at(path.clone()).unwrap().unwrap();
        assert!(group.limit(10).is_err());
        drop(group);
        assert!(!path.exists());
    }

    #[test]
    fn the_group_of_an_owner_in_another_namespace_stays() {
        let dir = tempfile::tempdir().unwrap();
        // No process here has this number.
        let path = dir.path().join(format!("ddfuzz-{}-0", u32::MAX));
        let group = Cgroup::create_at(path.clone()).unwrap().unwrap();
        let dead = dir.path().join(format!("ddfuzz-{}-1", u32::MAX));
        fs::create_dir(&dead).unwrap();
        remove_stale(dir.path());
        assert!(path.exists() && !dead.exists());
        drop(group);
    }

    #[test]
    fn a_group_that_was_removed_before_it_was_locked_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ddfuzz-1-0");
        fs::create_dir(&path).unwrap();
        let open = File::open(&path).unwrap();
        assert!(is_at(&open, &path));
        fs::remove_dir(&path).unwrap();
        assert!(!is_at(&open, &path));
        fs::create_dir(&path).unwrap();
        assert!(!is_at(&open, &path));
    }

    #[test]
    fn a_member_without_an_id_here_is_not_taken_for_our_group() {
        let found: Vec<Pid> = members("0\n12\n-1\n0\n7\n").collect();
        assert_eq!(found, [Pid::from_raw(12), Pid::from_raw(7)]);
    }
}
