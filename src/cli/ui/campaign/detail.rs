//! What is read of the group that is looked at.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::course::Tab;
use super::log::Log;
use crate::report::text::printable;
use crate::report::{Extent, Trace, TraceLine};
use crate::store::{EntryId, Reader};
use crate::triage::Crash;

/// Bytes of a reproducer that can be looked at.
const SHOWN: usize = 64 << 10;
/// Bytes in a row of the dump where there is room, and where there is not.
pub(super) const ROW: (usize, usize) = (16, 8);

/// What was read of one group's files.
#[derive(Clone, Debug, Default)]
pub struct Detail {
    entry: Option<EntryId>,
    /// What the crash said, its stacks and the source; `None` before they were read.
    pub(super) trace: Option<Vec<TraceLine>>,
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
        if self.trace.is_none() {
            self.crash(&entry.crash, Some(&entry.folder));
        }
        let mut file = File::open(entry.reproducer())?;
        let size = file.metadata()?.len();
        self.reproducer(&first(&mut file)?, size);
        self.log.read(&entry.log())?;
        Ok(())
    }

    /// Takes the record of the crash, which lies in `folder`, and reads the source.
    pub fn crash(&mut self, crash: &Crash, folder: Option<&Path>) {
        let trace = Trace::of(crash, folder);
        let mut lines: Vec<TraceLine> = Vec::new();
        // One of a single line stands above.
        if let Some(message) = trace.message.as_deref().filter(|it| it.contains('\n')) {
            lines.extend(message.lines().map(|line| TraceLine {
                title: "",
                text: line.to_owned(),
                own: true,
            }));
            lines[0].title = "message";
        }
        lines.extend(trace.lines(Extent::WHOLE));
        self.trace = Some(lines);
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
            Tab::Stack => self.trace.as_ref().map_or(0, Vec::len),
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
