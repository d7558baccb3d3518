//! What is read of the group that is looked at.

use std::fs::File;
use std::io::{self, Read};

use super::course::Tab;
use super::log::Log;
use crate::report::text::printable;
use crate::store::{EntryId, Reader};
use crate::triage::{Crash, Frame};

/// Bytes of a reproducer that can be looked at.
const SHOWN: usize = 64 << 10;
/// Bytes in a row of the dump where there is room, and where there is not.
pub(super) const ROW: (usize, usize) = (16, 8);

/// A frame of the stack, cleaned for a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackLine {
    /// What it says.
    pub text: String,
    /// Whether it is the user's code.
    pub own: bool,
}

/// What was read of one group's files.
#[derive(Clone, Debug, Default)]
pub struct Detail {
    entry: Option<EntryId>,
    /// The frames, innermost first; `None` before they were read.
    pub(super) stack: Option<Vec<StackLine>>,
    /// The first bytes of the reproducer as it is now.
    pub(super) bytes: Vec<u8>,
    /// All its bytes.
    pub(super) size: u64,
    /// The log as far as it has come.
    pub(super) log: Log,
    /// What could not be read.
    pub(super) trouble: Option<String>,
}

impl Detail {
    /// Reads what is new of an entry.
    pub fn read(&mut self, reader: &Reader, id: &EntryId) {
        if self.entry.as_ref() != Some(id) {
            *self = Detail {
                entry: Some(id.clone()),
                ..Detail::default()
            };
        }
        self.trouble = match self.read_files(reader, id) {
            Ok(()) => None,
            Err(error) => Some(printable(&error.to_string())),
        };
    }

    fn read_files(
        &mut self,
        reader: &Reader,
        id: &EntryId,
    ) -> Result<(), Box<dyn std::error::Error>> {
        // While the campaign runs, a file may be replaced at any moment, and none is torn.
        let Some(entry) = reader.entry(id)? else {
            return Err("the entry no longer exists".into());
        };
        if self.stack.is_none() {
            self.crash(&entry.crash);
        }
        let mut file = File::open(entry.reproducer())?;
        let size = file.metadata()?.len();
        self.reproducer(&first(&mut file)?, size);
        self.log.read(&entry.log())?;
        Ok(())
    }

    /// Takes the record of the crash.
    pub fn crash(&mut self, crash: &Crash) {
        self.stack = Some(crash.frames.iter().enumerate().map(stack_line).collect());
    }

    /// Takes the first bytes of the reproducer, which has `size` of them.
    pub fn reproducer(&mut self, bytes: &[u8], size: u64) {
        self.bytes = bytes[..bytes.len().min(SHOWN)].to_vec();
        self.size = size;
    }

    /// The log.
    pub fn log(&mut self) -> &mut Log {
        &mut self.log
    }

    /// The number of the last line of a part of the page, from 0, at least.
    pub(super) fn last_line(&self, tab: Tab) -> usize {
        let lines = match tab {
            Tab::Stack => self.stack.as_ref().map_or(0, Vec::len),
            Tab::Input => self.bytes.len().div_ceil(ROW.1),
            Tab::Curve => 0,
            Tab::Log => self.log.lines.len(),
        };
        lines.saturating_sub(1)
    }
}

fn first(file: &mut File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(SHOWN as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn stack_line((index, frame): (usize, &Frame)) -> StackLine {
    let mut text = format!("#{index:<3} {}", frame.place());
    if frame.name.is_some() || !frame.inlined.is_empty() {
        text.push_str(&format!(" in {}+{:#x}", frame.module, frame.offset));
    }
    StackLine {
        text: printable(&text),
        own: frame.own,
    }
}
