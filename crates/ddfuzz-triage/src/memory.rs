//! The memory of another process, and its memory map (`/proc/PID/maps`).

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::IoSliceMut;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;

use ddfuzz_exec::{mapped_path, proc_bytes};

/// The memory of a process (live, or copied before it died), readable by address.
pub trait Memory {
    /// Reads memory from `address` on into `buffer`, up to the first unreadable byte, and returns
    /// the number of bytes read.
    fn read(&mut self, address: u64, buffer: &mut [u8]) -> usize;

    /// Reads the eight bytes at `address` as a number; `None` where they are not all readable.
    fn word(&mut self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        (self.read(address, &mut bytes) == 8).then(|| u64::from_le_bytes(bytes))
    }

    /// Reads up to `length` bytes at `address`; fewer if a byte is unreadable.
    fn bytes(&mut self, address: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        let filled = self.read(address, &mut bytes);
        bytes.truncate(filled);
        bytes
    }
}

/// Number of bytes of a target's memory that are read and cached as one block; a divisor of every
/// page size.
const PAGE: u64 = 4096;
/// Number of blocks of 4 KiB that are read at once from the stack of a stopped thread.
const AHEAD: usize = 16;

/// The memory of a stopped process, read through the kernel. Blocks that were read are cached, so
/// the process must stay stopped.
pub(crate) struct ProcessMemory {
    pid: Pid,
    sp: u64,
    pages: HashMap<u64, Option<Box<[u8]>>>,
}

impl ProcessMemory {
    /// Creates a reader of the memory of a process, from the id `pid` and the stack pointer `sp` of
    /// a stopped thread of it.
    pub(crate) fn new(pid: Pid, sp: u64) -> ProcessMemory {
        let pages = HashMap::new();
        ProcessMemory { pid, sp, pages }
    }

    fn page(&mut self, start: u64) -> Option<&[u8]> {
        if !self.pages.contains_key(&start) {
            let stack = self.sp & !(PAGE - 1);
            let on_stack = (stack..stack.saturating_add(1 << 23)).contains(&start);
            self.fetch(start, if on_stack { AHEAD } else { 1 });
        }
        self.pages.get(&start)?.as_deref()
    }

    /// Reads up to `count` blocks of memory from the address `start` on into the cache, until one
    /// cannot be read. If the first block cannot be read, the cache notes it as unreadable.
    fn fetch(&mut self, start: u64, count: usize) {
        let mut buffer = vec![0; count * PAGE as usize];
        // One vector a page: a partial transfer then ends at a page, and counts what came before.
        let remote: Vec<RemoteIoVec> = (0..count as u64)
            .map_while(|index| start.checked_add(index * PAGE))
            .map(|base| RemoteIoVec {
                base: base as usize,
                len: PAGE as usize,
            })
            .collect();
        let local = &mut [IoSliceMut::new(&mut buffer)];
        let filled = process_vm_readv(self.pid, local, &remote).unwrap_or(0);
        for (index, page) in (0..).zip(buffer[..filled].chunks_exact(PAGE as usize)) {
            self.pages.insert(start + index * PAGE, Some(page.into()));
        }
        self.pages.entry(start).or_insert(None);
    }
}

impl Memory for ProcessMemory {
    fn read(&mut self, address: u64, buffer: &mut [u8]) -> usize {
        let mut filled = 0;
        while filled < buffer.len() {
            let Some(at) = address.checked_add(filled as u64) else {
                break;
            };
            let within = (at % PAGE) as usize;
            let Some(page) = self.page(at - within as u64) else {
                break;
            };
            let count = (page.len() - within).min(buffer.len() - filled);
            buffer[filled..filled + count].copy_from_slice(&page[within..within + count]);
            filled += count;
        }
        filled
    }
}

/// A mapping of a process's memory, one line of `/proc/PID/maps`: a range of addresses, its
/// permissions and the file mapped there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// First address of the memory mapping.
    pub start: u64,
    /// First address after the memory mapping.
    pub end: u64,
    /// Whether the process may read the mapped memory.
    pub readable: bool,
    /// Whether the process may write the mapped memory.
    pub writable: bool,
    /// Whether the process may execute the mapped memory.
    pub executable: bool,
    /// Offset in the mapped file, in bytes, at which the memory mapping begins.
    pub offset: u64,
    /// Inode of the mapped file; 0 if no file is mapped.
    pub inode: u64,
    /// Path of the mapped file, or the kernel's name for the mapping (`[stack]`, `[heap]`,
    /// `[vdso]`); may be empty.
    pub path: PathBuf,
}

impl Mapping {
    /// Checks whether the mapping is backed by a file.
    pub fn is_file(&self) -> bool {
        self.inode != 0
    }

    /// Returns true if the process may use the mapped memory at all: read, write or execute it.
    /// False for a guard region.
    pub fn is_accessible(&self) -> bool {
        self.readable || self.writable || self.executable
    }

    /// Returns the path of the mapped file without the kernel's suffix ` (deleted)`.
    pub fn file_path(&self) -> PathBuf {
        let bytes = self.path.as_os_str().as_bytes();
        let bytes = bytes.strip_suffix(b" (deleted)").unwrap_or(bytes);
        PathBuf::from(OsString::from_vec(bytes.to_vec()))
    }

    /// Returns the base name of the mapped file, or the kernel's name for the mapping (`[stack]`).
    pub fn base_name(&self) -> String {
        let path = self.file_path();
        let name = path.file_name().unwrap_or(path.as_os_str());
        name.to_string_lossy().into_owned()
    }

    fn parse(line: &[u8]) -> Option<Mapping> {
        let mut fields = line.splitn(6, |byte| *byte == b' ');
        let range = fields.next()?;
        let permissions = fields.next()?;
        let offset = hex(fields.next()?)?;
        let _device = fields.next()?;
        let inode = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
        let path = fields.next().unwrap_or_default();
        let dash = range.iter().position(|byte| *byte == b'-')?;
        let (start, end) = (hex(&range[..dash])?, hex(&range[dash + 1..])?);
        if start >= end {
            return None;
        }
        let may = |index: usize, letter: u8| permissions.get(index) == Some(&letter);
        Some(Mapping {
            start,
            end,
            readable: may(0, b'r'),
            writable: may(1, b'w'),
            executable: may(2, b'x'),
            offset,
            inode,
            path: mapped_path(path),
        })
    }
}

fn hex(digits: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// The memory map of a process: its mappings, ascending by address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Maps(Vec<Mapping>);

impl Maps {
    /// Parses the text of `/proc/PID/maps`. The text is hostile (a path may contain anything):
    /// invalid lines are skipped.
    pub fn parse(text: &[u8]) -> Maps {
        let lines = text.split(|byte| *byte == b'\n');
        let mut mappings: Vec<Mapping> = lines.filter_map(Mapping::parse).collect();
        mappings.sort_by_key(|mapping| mapping.start);
        Maps(mappings)
    }

    /// Reads the memory map of a live process or thread; empty where it cannot be read.
    pub fn of(pid: nix::unistd::Pid) -> Maps {
        let text = proc_bytes(format!("/proc/{pid}/maps").as_ref());
        text.map(|text| Maps::parse(&text)).unwrap_or_default()
    }

    /// Returns the mapping that contains `address`; `None` where nothing is mapped.
    pub fn find(&self, address: u64) -> Option<&Mapping> {
        let behind = self.0.partition_point(|mapping| mapping.start <= address);
        let mapping = self.0.get(behind.checked_sub(1)?)?;
        (address < mapping.end).then_some(mapping)
    }

    /// Checks whether the process can execute code at `address`, judging by its memory map.
    pub fn is_executable(&self, address: u64) -> bool {
        self.find(address).is_some_and(|mapping| mapping.executable)
    }

    /// Checks whether the memory map is empty, because the process does not let itself be read.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over the mappings of the process, ascending by address.
    pub fn iter(&self) -> impl Iterator<Item = &Mapping> {
        self.0.iter()
    }
}
