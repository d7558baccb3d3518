//! An append-only file of lines, in which only the last line can be incomplete.

use std::fs::{File, OpenOptions};
use std::io;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::files::{FileError, folder};

/// Number of bytes that are read at once when the end of a file is searched for the last line end.
const CHUNK: u64 = 64 * 1024;

/// An append-only file of lines. Each line is written by one `write`. If a writer was killed, the
/// incomplete line it left is removed when the file is opened, so that all remaining lines are
/// complete.
#[derive(Debug)]
pub struct Appender {
    path: PathBuf,
    file: File,
    /// Number of bytes in the file's complete lines.
    len: u64,
    /// Whether an incomplete line, left by a failed write, may follow the complete lines.
    torn: bool,
}

impl Appender {
    /// Opens or creates the file, and removes an incomplete last line.
    ///
    /// # Errors
    /// If the file cannot be opened, read or truncated.
    pub fn open(path: &Path) -> Result<Appender, FileError> {
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(path)
            .map_err(FileError::at("open", path))?;
        let found = file.metadata().map_err(FileError::at("read", path))?.len();
        let len = whole_lines(&file, found).map_err(FileError::at("read", path))?;
        if len < found {
            file.set_len(len)
                .map_err(FileError::at("drop the torn last line of", path))?;
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

    /// Appends `line` and a line end in one `write`. The line survives the death of the process at
    /// once, and a power cut after [`Appender::sync`].
    ///
    /// # Errors
    /// If `line` contains a line end, or cannot be written completely; a partly written line is
    /// then removed.
    pub fn append(&mut self, line: &[u8]) -> Result<(), FileError> {
        let failed = |error| FileError::at("append to", &self.path)(error);
        if line.contains(&b'\n') {
            let why = "the line has a line end in it";
            return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, why)));
        }
        let mut whole = Vec::with_capacity(line.len() + 1);
        whole.extend_from_slice(line);
        whole.push(b'\n');
        // `write_all` is one `write` except where the system takes a part only (a disk almost
        // full, a signal), and then it either completes the line or fails.
        if self.torn {
            self.file.set_len(self.len).map_err(failed)?;
            self.torn = false;
        }
        if let Err(error) = self.file.write_all(&whole) {
            // If the removal fails, too, it is repeated before the next line.
            self.torn = self.file.set_len(self.len).is_err();
            return Err(failed(error));
        }
        self.len += whole.len() as u64;
        Ok(())
    }

    /// Writes all appended lines through to the storage device, so that they survive a power cut.
    ///
    /// # Errors
    /// If the system cannot do so.
    pub fn sync(&self) -> Result<(), FileError> {
        self.file
            .sync_data()
            .map_err(FileError::at("sync", &self.path))
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the number of bytes in the file.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns whether the file has no line.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// Returns the number of bytes up to and including the last line end of the file.
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
