//! Reads a journal from its beginning to its first damage.

use std::fs::File;
use std::io::{self, ErrorKind, Read};

use super::record::{self, HEAD, Head};
use super::{JournalIdentity, RecordPosition};

/// What the body of the first record begins with, behind its kind.
const NAME: &[u8] = b"ddfuzz clean.journal 1\n";
/// Bytes that are read at once.
const AT_ONCE: usize = 1 << 20;

/// The first record of a journal.
pub(super) fn first_record(identity: &JournalIdentity) -> Vec<u8> {
    let mut bytes = Vec::new();
    record::frame(&mut bytes, |body| {
        body.push(record::IDENTITY);
        body.extend_from_slice(NAME);
        body.extend_from_slice(identity.bytes());
    });
    bytes
}

/// Whose journal it is; `None` where it is none.
///
/// # Errors
/// When it cannot be read.
pub(super) fn identity_of(file: &File) -> io::Result<Option<JournalIdentity>> {
    let mut records = Records::new(file);
    let body = records.next()?.and_then(record::body);
    let name = body.and_then(|body| body.strip_prefix(&[record::IDENTITY])?.strip_prefix(NAME));
    let bytes = name.and_then(|bytes| bytes.try_into().ok());
    Ok(bytes.map(JournalIdentity::from_bytes))
}

/// Tells `each` of the records of a journal, and gives how long it is up to its first damage, in
/// bytes; `None` where it is of another target, or no journal.
///
/// # Errors
/// When it cannot be read.
pub(super) fn scan(
    file: &File,
    identity: &JournalIdentity,
    each: &mut dyn FnMut(RecordPosition, Head),
) -> io::Result<Option<u64>> {
    let mut records = Records::new(file);
    let first = first_record(identity);
    if records.next()? != Some(&first[..]) {
        return Ok(None);
    }
    let mut at = first.len() as u64;
    while let Some(record) = records.next()? {
        // A whole record that is no run was not written by this version.
        let Some(head) = record::body(record).and_then(record::head) else {
            break;
        };
        let Ok(length) = u32::try_from(record.len()) else {
            break;
        };
        each(RecordPosition { at, length }, head);
        at += u64::from(length);
    }
    Ok(Some(at))
}

/// The records of a file, one by one; they are as long as they say, and nothing else is known.
struct Records<'a> {
    file: &'a File,
    buffer: Vec<u8>,
    /// What of the buffer is still to be given.
    from: usize,
}

impl Records<'_> {
    fn new(file: &File) -> Records<'_> {
        Records {
            file,
            buffer: Vec::new(),
            from: 0,
        }
    }

    fn next(&mut self) -> io::Result<Option<&[u8]>> {
        if !self.have(HEAD)? {
            return Ok(None);
        }
        let Some(body) = record::body_length(&self.buffer[self.from..]) else {
            return Ok(None);
        };
        let length = HEAD + body;
        if !self.have(length)? {
            return Ok(None);
        }
        let from = self.from;
        self.from += length;
        Ok(Some(&self.buffer[from..self.from]))
    }

    /// Reads until so many bytes are there; false where the file has no more.
    fn have(&mut self, count: usize) -> io::Result<bool> {
        while self.buffer.len() - self.from < count {
            self.buffer.drain(..self.from);
            self.from = 0;
            // As much as there is, however long a damaged record says that it were.
            let before = self.buffer.len();
            self.buffer.resize(before + AT_ONCE, 0);
            let mut file = self.file;
            let read = loop {
                match file.read(&mut self.buffer[before..]) {
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    other => break other,
                }
            };
            let read = read.inspect_err(|_| self.buffer.truncate(before))?;
            self.buffer.truncate(before + read);
            if read == 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
