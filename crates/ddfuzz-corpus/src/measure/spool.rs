//! Paths on disk: those of a million files would take much memory.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// So many bytes are written at once.
const AT_ONCE: usize = 64 * 1024;
/// Bytes of a length, which stands before each path.
const LENGTH: usize = 4;

/// Paths in a file without a name, which is gone with the process.
#[derive(Debug)]
pub(super) struct Spool {
    file: File,
    /// How long the file is, in bytes; what is not in it yet stands in `tail`.
    written: u64,
    tail: Vec<u8>,
}

impl Spool {
    /// Makes the file in the folder `folder`.
    pub(super) fn create(folder: &Path) -> io::Result<Spool> {
        Ok(Spool {
            file: tempfile::tempfile_in(folder)?,
            written: 0,
            tail: Vec::new(),
        })
    }

    /// Keeps a path, and gives where it stands.
    pub(super) fn keep(&mut self, path: &Path) -> io::Result<u64> {
        if self.tail.len() >= AT_ONCE {
            self.file.write_all_at(&self.tail, self.written)?;
            self.written += self.tail.len() as u64;
            self.tail.clear();
        }
        let at = self.written + self.tail.len() as u64;
        let bytes = path.as_os_str().as_bytes();
        let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
        self.tail.extend_from_slice(&length.to_le_bytes());
        self.tail.extend_from_slice(bytes);
        Ok(at)
    }

    /// The path that stands there.
    pub(super) fn path(&self, at: u64) -> io::Result<PathBuf> {
        let mut length = [0; LENGTH];
        self.read(at, &mut length)?;
        let mut bytes = vec![0; u32::from_le_bytes(length) as usize];
        self.read(at + LENGTH as u64, &mut bytes)?;
        Ok(OsStr::from_bytes(&bytes).into())
    }

    /// A path stands in the file, or behind it, as a whole.
    fn read(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        let Some(behind) = at.checked_sub(self.written) else {
            return self.file.read_exact_at(bytes, at);
        };
        let from = behind as usize;
        let found = self.tail.get(from..from + bytes.len());
        let found = found.ok_or(io::ErrorKind::UnexpectedEof)?;
        bytes.copy_from_slice(found);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_come_back_from_memory_and_from_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = Spool::create(folder.path()).unwrap();
        let path = |n: u32| PathBuf::from(OsStr::from_bytes(format!("/a\n/\u{e9}{n}").as_bytes()));
        let odd = Path::new(OsStr::from_bytes(b"/\xff\xfe\0"));
        let places: Vec<u64> = (0..10_000).map(|n| spool.keep(&path(n)).unwrap()).collect();
        let last = spool.keep(odd).unwrap();
        for (n, at) in places.iter().enumerate() {
            assert_eq!(spool.path(*at).unwrap(), path(n as u32));
        }
        assert_eq!(spool.path(last).unwrap(), odd);
        assert!(spool.path(last + 1000).is_err());
    }
}
