//! Reading the memory of another process.

use std::collections::HashMap;
use std::io::IoSliceMut;

use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;

/// Memory that can be read piece by piece.
pub trait Memory {
    /// Fills `buffer` from `address` on, up to the first byte that cannot be read, and gives the
    /// number of bytes filled.
    fn read(&mut self, address: u64, buffer: &mut [u8]) -> usize;

    /// The eight bytes at `address` as a number.
    fn word(&mut self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        (self.read(address, &mut bytes) == 8).then(|| u64::from_le_bytes(bytes))
    }

    /// Up to `length` bytes from `address` on.
    fn bytes(&mut self, address: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        let filled = self.read(address, &mut bytes);
        bytes.truncate(filled);
        bytes
    }
}

/// The granularity of reading, in bytes; a divisor of every real page size.
const PAGE: u64 = 4096;
/// Pages fetched at once from a stack, which is walked upwards: 64 KiB.
const AHEAD: usize = 16;

/// The memory of a stopped process, fetched by page and kept as long as the stop lasts.
pub(crate) struct ProcessMemory {
    pid: Pid,
    sp: u64,
    pages: HashMap<u64, Option<Box<[u8]>>>,
}

impl ProcessMemory {
    /// The memory of the process to which the stopped thread `pid` belongs.
    pub(crate) fn new(pid: Pid, sp: u64) -> ProcessMemory {
        ProcessMemory {
            pid,
            sp,
            pages: HashMap::new(),
        }
    }

    fn page(&mut self, start: u64) -> Option<&[u8]> {
        if !self.pages.contains_key(&start) {
            let on_stack =
                start >= self.sp & !(PAGE - 1) && start - (self.sp & !(PAGE - 1)) < 1 << 23;
            self.fetch(start, if on_stack { AHEAD } else { 1 });
        }
        self.pages.get(&start)?.as_deref()
    }

    /// Fetches up to `count` pages; the first that cannot be read is remembered as such.
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
        let filled =
            process_vm_readv(self.pid, &mut [IoSliceMut::new(&mut buffer)], &remote).unwrap_or(0);
        for (index, page) in buffer[..filled].chunks_exact(PAGE as usize).enumerate() {
            self.pages
                .insert(start + index as u64 * PAGE, Some(page.into()));
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
