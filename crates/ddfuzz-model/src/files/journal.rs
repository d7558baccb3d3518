//! A journal: an append-only file with one record per line, in JSON.

use std::io::{self, BufRead, BufReader};
use std::marker::PhantomData;
use std::path::Path;

use serde::{Serialize, de::DeserializeOwned};

use crate::files::{Appender, FileError, Position};

/// A file of records of type `R`, each a line of JSON, open for appending. It holds no records in
/// memory: a record is read again from the file by its position.
#[derive(Debug)]
pub struct Journal<R> {
    file: Appender,
    records: PhantomData<fn() -> R>,
}

impl<R: Serialize + DeserializeOwned> Journal<R> {
    /// Opens or creates the journal at `path`, and calls `each` with the position and the content
    /// of each record, oldest first. An incomplete last line is removed; a damaged line is skipped.
    ///
    /// # Errors
    /// If the file cannot be opened, read or truncated.
    pub fn open(path: &Path, mut each: impl FnMut(Position, R)) -> Result<Journal<R>, FileError> {
        let file = Appender::open(path)?;
        let (mut lines, mut line, mut at) = (BufReader::new(file.file()), Vec::new(), 0);
        loop {
            line.clear();
            let length = lines.read_until(b'\n', &mut line);
            let length = length.map_err(FileError::at("read", path))? as u32;
            if length == 0 {
                break;
            }
            if let Ok(record) = serde_json::from_slice(&line) {
                each(Position { at, length }, record);
            }
            at += u64::from(length);
        }
        Ok(Journal {
            file,
            records: PhantomData,
        })
    }

    /// Reads the record at a position in the file; `None` if it is damaged.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn read(&self, position: Position) -> Result<Option<R>, FileError> {
        let line = position.read(self.file.file());
        let line = line.map_err(FileError::at("read", self.file.path()))?;
        Ok(serde_json::from_slice(&line).ok())
    }

    /// Appends a record and returns its position. The record survives the death of the process at
    /// once, and a power cut after [`Journal::sync`].
    ///
    /// # Errors
    /// If the record cannot be written completely; a part of it is then removed.
    pub fn add(&mut self, record: &R) -> Result<Position, FileError> {
        let line = serde_json::to_vec(record).map_err(io::Error::from);
        let line = line.map_err(FileError::at("append to", self.file.path()))?;
        self.file.append(&line)
    }

    /// Writes all records through to the storage device, so that they survive a power cut.
    ///
    /// # Errors
    /// If the system cannot do so.
    pub fn sync(&self) -> Result<(), FileError> {
        self.file.sync()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_again_and_damaged_or_torn_lines_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        std::fs::write(&path, "[1]\nno json\n[2,3]\n[4").unwrap();
        let mut found = Vec::new();
        let open = |found: &mut Vec<_>| {
            Journal::open(&path, |position, record: Vec<u64>| {
                found.push((position, record))
            })
        };
        let mut journal = open(&mut found).unwrap();
        found.push((journal.add(&vec![5]).unwrap(), vec![5]));
        journal.sync().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"[1]\nno json\n[2,3]\n[5]\n");
        assert_eq!(
            found.iter().map(|(_, record)| record.len()).sum::<usize>(),
            4
        );
        for (position, record) in &found {
            assert_eq!(journal.read(*position).unwrap().as_ref(), Some(record));
        }
        assert_eq!(journal.read(Position { at: 4, length: 8 }).unwrap(), None);
        let mut again = Vec::new();
        open(&mut again).unwrap();
        assert_eq!(again, found);
    }

    #[test]
    fn what_follows_whole_records_is_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("records");
        for (whole, kept) in [(4, "abcd"), (6, "abcdef"), (u64::MAX, "abcdef")] {
            std::fs::write(&path, "abcdef").unwrap();
            let mut file = Appender::open_after(&path, whole).unwrap();
            let position = file.append_record(b"gh").unwrap();
            let expected = Position {
                at: kept.len() as u64,
                length: 2,
            };
            assert_eq!((position, file.len()), (expected, position.at + 2));
            assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{kept}gh"));
        }
    }
}
