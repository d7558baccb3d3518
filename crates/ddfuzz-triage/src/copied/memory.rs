//! The memory of a process that is gone: what it has copied, and the code of its modules, which
//! stands in their files.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};

use super::slot::Slot;
use crate::maps::{Mapping, Maps};
use crate::memory::Memory;
use ddfuzz_exec::Copies;

/// What can still be read of a process.
pub(super) struct CopiedMemory<'a> {
    copies: &'a Copies,
    slot: &'a Slot,
    maps: &'a Maps,
    /// The opened files by the mapping's first address.
    files: HashMap<u64, Option<Code>>,
}

/// Where the code of a mapping can be read.
struct Code {
    file: File,
    /// Of the mapping's beginning, in bytes.
    at: u64,
}

impl CopiedMemory<'_> {
    /// The memory of one copy.
    pub(super) fn new<'a>(copies: &'a Copies, slot: &'a Slot, maps: &'a Maps) -> CopiedMemory<'a> {
        CopiedMemory {
            copies,
            slot,
            maps,
            files: HashMap::new(),
        }
    }

    fn read_window(&self, address: u64, buffer: &mut [u8]) -> usize {
        let mut windows = self.slot.windows.iter();
        let Some(window) = windows.find(|window| window.range.contains(&address)) else {
            return 0;
        };
        let left = usize::try_from(window.range.end - address).unwrap_or(usize::MAX);
        let length = buffer.len().min(left);
        let Some(at) = window.at.checked_add(address - window.range.start) else {
            return 0;
        };
        self.copies.read(self.slot.index, at, &mut buffer[..length])
    }

    /// Only what can be executed: other parts of a file may have changed in memory.
    fn read_code(&mut self, address: u64, buffer: &mut [u8]) -> usize {
        let maps = self.maps;
        let Some(mapping) = maps
            .find(address)
            .filter(|mapping| mapping.executable && !mapping.writable)
        else {
            return 0;
        };
        let code = self
            .files
            .entry(mapping.start)
            .or_insert_with(|| code_of(mapping));
        let Some(Code { file, at }) = code else {
            return 0;
        };
        let left = usize::try_from(mapping.end - address).unwrap_or(usize::MAX);
        let length = buffer.len().min(left);
        let place = at.checked_add(address - mapping.start);
        place.map_or(0, |place| {
            file.read_at(&mut buffer[..length], place).unwrap_or(0)
        })
    }
}

impl Memory for CopiedMemory<'_> {
    fn read(&mut self, address: u64, buffer: &mut [u8]) -> usize {
        let mut filled = 0;
        while filled < buffer.len() {
            let Some(at) = address.checked_add(filled as u64) else {
                break;
            };
            let rest = &mut buffer[filled..];
            let count = match self.read_window(at, rest) {
                0 => self.read_code(at, rest),
                count => count,
            };
            if count == 0 {
                break;
            }
            filled += count;
        }
        filled
    }
}

fn code_of(mapping: &Mapping) -> Option<Code> {
    if mapping.path.as_os_str() == "[vdso]" {
        return own_vdso();
    }
    if !mapping.is_file() {
        return None;
    }
    let path = mapping.file_path();
    let facts = std::fs::metadata(&path).ok().filter(|it| it.is_file())?;
    let same = facts.ino() == mapping.inode || path == mapping.path;
    let file = same.then(|| File::open(&path).ok()).flatten()?;
    Some(Code {
        file,
        at: mapping.offset,
    })
}

/// The kernel's own module has no file; it is the same in all processes, and so in this one.
fn own_vdso() -> Option<Code> {
    let maps = Maps::of(nix::unistd::Pid::this());
    let vdso = maps
        .iter()
        .find(|mapping| mapping.path.as_os_str() == "[vdso]")?;
    Some(Code {
        file: File::open("/proc/self/mem").ok()?,
        at: vdso.start,
    })
}
