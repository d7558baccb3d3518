//! An append-only file of records, of which only the last record can be incomplete.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::files::{FileError, folder, regular};

/// Number of bytes that are read at once when the end of a file is searched for the last line end.
const CHUNK: u64 = 64 * 1024;

/// Where a record is in a file of records: its offset and its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Offset of the record in the file, in bytes.
    pub at: u64,
    /// Length of the record in bytes, including its framing, such as a line end.
    pub length: u32,
}

impl Position {
    /// Reads the bytes of the record at this position from `file`.
    ///
    /// # Errors
    /// If the file cannot be read, or ends before the record does.
    pub fn read(self, file: &File) -> io::Result<Vec<u8>> {
        let mut record = vec![0; self.length as usize];
        file.read_exact_at(&mut record, self.at)?;
        Ok(record)
    }
}

/// A file of records, open for appending: of lines, or of records in any form that the caller
/// chooses. Each record is written by one `write`. If a writer was killed, the incomplete record
/// that it left is removed when the file is opened, so that all remaining records are complete.
#[derive(Debug)]
pub struct Appender {
    path: PathBuf,
    file: File,
    /// Total length in bytes of the file's complete records, after which the next one is written.
    len: u64,
    /// Whether an incomplete record, left by a failed write, may follow the complete ones.
    torn: bool,
}

impl Appender {
    /// Opens or creates a file of lines, and removes an incomplete last line.
    ///
    /// # Errors
    /// If the file cannot be opened, read or truncated.
    pub fn open(path: &Path) -> Result<Appender, FileError> {
        Appender::open_whole(path, "drop the torn last line of", whole_lines)
    }

    /// Opens or creates a file of lines as [`Appender::open`] does, and locks it: until the
    /// appender is dropped, no other process can open the file with this function.
    ///
    /// # Errors
    /// As [`Appender::open`], and if another process or appender has locked the file.
    pub fn open_alone(path: &Path) -> Result<Appender, FileError> {
        let lock_first = |file: &File, found| {
            match file.try_lock() {
                Err(TryLockError::WouldBlock) => {
                    let why = "another process is writing it";
                    return Err(io::Error::new(io::ErrorKind::ResourceBusy, why));
                }
                // Some file systems have no locks.
                Err(TryLockError::Error(_)) | Ok(()) => {}
            }
            whole_lines(file, found)
        };
        Appender::open_whole(path, "drop the torn last line of", lock_first)
    }

    /// Opens or creates a file of records of any form, and removes what follows the first `len`
    /// bytes, which the caller has found to be complete records.
    ///
    /// # Errors
    /// As [`Appender::open`].
    pub fn open_after(path: &Path, len: u64) -> Result<Appender, FileError> {
        let whole = |_: &File, found| Ok(len.min(found));
        Appender::open_whole(path, "cut off the damaged end of", whole)
    }

    fn open_whole(
        path: &Path,
        removing: &'static str,
        whole: impl FnOnce(&File, u64) -> io::Result<u64>,
    ) -> Result<Appender, FileError> {
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        let file = regular::open_to_write(&mut options, path);
        let file = file.map_err(FileError::at("open", path))?;
        let found = file.metadata().map_err(FileError::at("read", path))?.len();
        let len = whole(&file, found).map_err(FileError::at("read", path))?;
        if len < found {
            file.set_len(len).map_err(FileError::at(removing, path))?;
        }
        if found == 0 {
            // The file may be new: its name must survive a power cut, too.
            folder::sync(folder::parent(path))?;
        }
        Ok(Appender {
            path: path.to_owned(),
            file,
            len,
            torn: false,
        })
    }

    /// Appends `line` and a line end in one `write`, and returns their position, as
    /// [`Appender::append_record`] does.
    ///
    /// # Errors
    /// If `line` contains a line end, or cannot be written completely; a partly written line is
    /// then removed.
    pub fn append(&mut self, line: &[u8]) -> Result<Position, FileError> {
        if line.contains(&b'\n') {
            let why = "the line has a line end in it";
            let error = io::Error::new(io::ErrorKind::InvalidInput, why);
            return Err(FileError::at("append to", &self.path)(error));
        }
        let mut whole = Vec::with_capacity(line.len() + 1);
        whole.extend_from_slice(line);
        whole.push(b'\n');
        self.append_record(&whole)
    }

    /// Appends a record, or several, in one `write`, and returns their position and length. They
    /// survive the death of the process at once, and a power cut after [`Appender::sync`].
    ///
    /// # Errors
    /// If the record cannot be written completely; a partly written one is then removed.
    pub fn append_record(&mut self, record: &[u8]) -> Result<Position, FileError> {
        let failed = |error| FileError::at("append to", &self.path)(error);
        // `write_all` is one `write` except where the system takes a part only (a disk almost
        // full, a signal), and then it either completes the record or fails.
        if self.torn {
            self.file.set_len(self.len).map_err(failed)?;
            self.torn = false;
        }
        if let Err(error) = self.file.write_all(record) {
            // If the removal fails, too, it is repeated before the next record.
            self.torn = self.file.set_len(self.len).is_err();
            return Err(failed(error));
        }
        let position = Position {
            at: self.len,
            length: record.len() as u32,
        };
        self.len += record.len() as u64;
        Ok(position)
    }

    /// Writes all appended records through to the storage device, so that they survive a power cut.
    ///
    /// # Errors
    /// If the system cannot do so.
    pub fn sync(&self) -> Result<(), FileError> {
        self.file
            .sync_data()
            .map_err(FileError::at("sync", &self.path))
    }

    /// Returns the open file, from which records can be read.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns the path of the file of records.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the number of bytes in the file's complete records.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns true if the file has no complete record.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// Returns the number of bytes of a file of `len` bytes up to and including its last line end; 0 if
/// it has none.
fn whole_lines(file: &File, len: u64) -> io::Result<u64> {
    let mut end = len;
    let mut chunk = vec![0; CHUNK as usize];
    while end > 0 {
        let start = end.saturating_sub(CHUNK);
        let chunk = &mut chunk[..(end - start) as usize];
        file.read_exact_at(chunk, start)?;
        if let Some(at) = chunk.iter().rposition(|&byte| byte == b'\n') {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_line_is_taken_back_and_the_next_one_stands_alone() {
        // `/dev/full`, which `open` refuses as it refuses each device, takes nothing and cannot be
        // truncated, which is the worse case of the two.
        let path = Path::new("/dev/full");
        let mut log = Appender {
            path: path.to_owned(),
            file: OpenOptions::new().append(true).open(path).unwrap(),
            len: 0,
            torn: false,
        };
        assert!(log.append(b"line").unwrap_err().is_full());
        assert!(log.torn && log.is_empty());
        assert!(log.append(b"line").is_err());
        assert!(log.torn && log.is_empty());
        // Once there is room, what the failed write left is removed before the next line.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, "a\nli").unwrap();
        let file = OpenOptions::new().append(true).open(&path).unwrap();
        log = Appender {
            path,
            file,
            len: 2,
            torn: true,
        };
        log.append(b"b").unwrap();
        assert_eq!(std::fs::read(log.path()).unwrap(), b"a\nb\n");
    }
}
