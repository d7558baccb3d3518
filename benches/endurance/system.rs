//! What the system holds on behalf of this process, told from what others make meanwhile.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Where shared memory is forgotten.
const SHARED_MEMORY: &str = "/dev/shm";
/// The private directories of ddfuzz, ours and others': ours is looked at by itself.
const PRIVATE: &str = "ddfuzz-";

/// What was there before the first run.
pub struct Before {
    /// Where we make temporary files, and nobody else does.
    temporary: tempfile::TempDir,
    files: BTreeSet<PathBuf>,
    /// Seconds since 1970.
    time: u64,
}

impl Before {
    /// Looks, and turns the temporary files of this process to a directory of its own.
    pub fn now() -> Before {
        let temporary = tempfile::tempdir().expect("a temporary directory");
        // SAFETY: this process has only one thread yet.
        unsafe { std::env::set_var("TMPDIR", temporary.path()) };
        let time = SystemTime::now().duration_since(UNIX_EPOCH);
        Before {
            files: listed(SHARED_MEMORY),
            temporary,
            time: time.map_or(0, |time| time.as_secs()),
        }
    }

    /// Temporary files of ours, and shared memory files that are new. Another program may make
    /// one of these meanwhile, so this bench is best run alone.
    pub fn strays(&self) -> u64 {
        let shared = listed(SHARED_MEMORY).difference(&self.files).count();
        (shared + listed(self.temporary.path()).len()) as u64
    }

    /// System V segments that we, one of `below` or a process that has ended made since then.
    pub fn segments(&self, us: u32, below: &[u32]) -> u64 {
        let table = fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
        let ours = |line: &&str| {
            let columns: Vec<u64> = line.split_whitespace().flat_map(str::parse).collect();
            // key shmid perms size cpid lpid nattch uid gid cuid cgid atime dtime ctime ...
            let (Some(maker), Some(made)) = (columns.get(4), columns.get(13)) else {
                return false;
            };
            let maker = *maker as u32;
            let gone = || !Path::new("/proc").join(maker.to_string()).exists();
            *made >= self.time && (maker == us || below.contains(&maker) || gone())
        };
        table.lines().skip(1).filter(ours).count() as u64
    }
}

/// What is in there, but for private directories.
fn listed(directory: impl AsRef<Path>) -> BTreeSet<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths.filter(|path| !is_private(path)).collect()
}

fn is_private(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().starts_with(PRIVATE)
}
