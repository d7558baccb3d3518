//! The files to which sanitizers write their reports.
//!
//! The path is an option that a server reads when it starts; the runtime adds the id of the
//! process that reports, so that each run of a server has a file of its own.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::identity::Identity;
use super::scratch::Scratch;

/// How much of a report is read, in bytes.
const READ: u64 = 1 << 16;
/// The files' name, before the process id.
const NAME: &str = "report";
/// How many files are looked at: whoever runs there may make as many as it likes.
const MOST: usize = 256;

/// A directory for reports, emptied after each run.
pub(crate) struct Reports(Scratch);

impl Reports {
    /// Makes the directory `path`, where whom the target runs as can write.
    pub(crate) fn create(path: &Path, owner: Option<Identity>) -> io::Result<Reports> {
        Ok(Reports(Scratch::create(path, owner)?))
    }

    /// What sanitizers are told, `log_path`.
    pub(crate) fn log_path(&self) -> PathBuf {
        self.0.path().join(NAME)
    }

    /// The first report of a run: where several processes have reported, those above the first
    /// die of it. Complete once no process of the run is left.
    pub fn read(&self) -> Vec<u8> {
        let entries = std::fs::read_dir(self.0.path()).into_iter().flatten();
        let first = entries
            .flatten()
            .take(MOST)
            .filter_map(|entry| {
                let facts = entry.metadata().ok().filter(|facts| facts.len() > 0)?;
                let changed = facts.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                facts.is_file().then(|| (changed, entry.path()))
            })
            .min();
        first
            .and_then(|(_, path)| read(&path).ok())
            .unwrap_or_default()
    }

    /// Removes the reports.
    pub(crate) fn clear(&mut self) {
        // Where the target has removed the directory, and no other can be made, there are none.
        let _ = self.0.clean();
    }
}

/// Reads a file that a target has put there, whatever it is by now.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let file: File = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)?;
    let mut bytes = Vec::new();
    if file.metadata()?.is_file() {
        file.take(READ).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::super::private_dir::PrivateDir;
    use super::*;

    #[test]
    fn of_several_reports_the_first_is_read_and_links_are_not_followed() {
        let private = PrivateDir::get().unwrap();
        let mut reports = Reports::create(&private.fresh("test"), None).unwrap();
        assert_eq!(reports.read(), b"");
        let log = reports.log_path();
        let of = |id: u32| format!("{}.{id}", log.display());
        std::os::unix::fs::symlink("/proc/self/environ", of(1)).unwrap();
        for (id, text, second) in [(2, "later", 20), (3, "first", 10), (4, "", 5)] {
            std::fs::write(of(id), text).unwrap();
            let at = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(second);
            File::options()
                .append(true)
                .open(of(id))
                .unwrap()
                .set_modified(at)
                .unwrap();
        }
        assert_eq!(reports.read(), b"first");
        std::fs::write(of(3), vec![b'x'; 1 << 20]).unwrap();
        std::fs::remove_file(of(2)).unwrap();
        assert_eq!(reports.read().len(), 1 << 16);
        reports.clear();
        assert_eq!(reports.read(), b"");
    }
}
