//! What AddressSanitizer's runtime, which is in the program or in a library, says of a process: the
//! bad access that it has reported, and the object to which the access belongs.

use std::ops::Range;

use ddfuzz_exec::Sanitizer;
use ddfuzz_triage::memory::Memory;
use ddfuzz_triage::{Class, Key, StoppedCrash};

use libc::user_regs_struct;
use object::{Object, ObjectSymbol};

use super::prepared::{TRAP, library_symbol};
use super::process::Process;
use super::run::{Next, Pace};
use super::{Engine, EngineError, Side, symbol_in};

/// Addresses of AddressSanitizer's shadow memory, which has one byte for eight bytes of memory.
pub(crate) const SHADOW: Range<u64> = 0x7fff_8000..0x1000_7fff_8000;
/// Number of bytes that one byte of AddressSanitizer's shadow memory describes.
pub(super) const GRANULE: u64 = 8;
/// Beginning of the names of the runtime's functions that report a bad access, of which the first
/// argument is the address.
const REPORT: &str = "__asan_report_";
/// Bytes of the shadow memory of a bad access, with the kind of error and the region that
/// AddressSanitizer's reports tell of them.
const KINDS: [(u8, &str, &str); 12] = [
    (0xfa, "heap-buffer-overflow", "heap"),
    (0xfd, "heap-use-after-free", "heap"),
    (0xf1, "stack-buffer-underflow", "stack"),
    (0xf2, "stack-buffer-overflow", "stack"),
    (0xf3, "stack-buffer-overflow", "stack"),
    (0xf5, "stack-use-after-return", "stack"),
    (0xf8, "stack-use-after-scope", "stack"),
    (0xca, "dynamic-stack-buffer-overflow", "stack"),
    (0xcb, "dynamic-stack-buffer-overflow", "stack"),
    (0xf9, "global-buffer-overflow", "global"),
    (0xfc, "container-overflow", "heap"),
    (0xf7, "use-after-poison", "heap"),
];
/// Number of bytes of memory before a bad access in which the end of its object is looked for.
const NEAR: u64 = 4096;
/// Largest size of an object that is measured by the shadow memory.
const LARGEST: u64 = 1 << 20;
/// Names of the runtime's functions that say what was reported: whether anything was, the address
/// of the bad access, whether it writes, its size in bytes, and the kind of error.
const QUESTIONS: [&str; 5] = [
    "__asan_report_present",
    "__asan_get_report_address",
    "__asan_get_report_access_type",
    "__asan_get_report_access_size",
    "__asan_get_report_description",
];
/// Name of the runtime's function that says which object contains an address, or lies beside it.
const LOCATE: &str = "__asan_locate_address";
/// Largest number of bytes that are read of the name of a variable or of an error.
const LONGEST_NAME: u64 = 128;
/// Number of bytes below the stack pointer of a dying process where the runtime's functions write
/// their answers: behind what they use of the stack themselves.
const ANSWERS: u64 = 64 << 10;

/// The bad access that AddressSanitizer has reported, and the object to which it belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reported {
    /// The kind of error, such as `heap-buffer-overflow`.
    pub kind: String,
    /// Address of the access or, where a block was freed a second time, of the block.
    pub address: u64,
    /// Whether the access writes.
    pub is_write: bool,
    /// Number of bytes that are accessed; 0 where nothing is, as by `free`.
    pub size: u64,
    /// The object that contains the address or lies beside it; `None` where none is known.
    pub object: Option<Located>,
}

/// An object in memory, as AddressSanitizer knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Located {
    /// Where the object is: `heap`, `stack` or `global`.
    pub region: String,
    /// Name of the variable; empty for a heap block.
    pub name: String,
    /// Addresses of the object.
    pub range: Range<u64>,
}

/// A function of the runtime that reports a bad access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reporting {
    /// Address of the function in the program's file.
    address: u64,
    /// Whether the access writes.
    is_write: bool,
    /// Number of bytes that are accessed; `None` where the second argument says it.
    size: Option<u64>,
}

/// Returns the address of the byte of shadow memory that describes an address.
pub(super) fn shadow_of(address: u64) -> u64 {
    address / GRANULE + SHADOW.start
}

/// Returns the functions of AddressSanitizer's runtime in a program, given as its ELF file, that
/// report a bad access and end the program; none where the runtime is a library.
pub(super) fn reporting(image: &[u8]) -> Vec<Reporting> {
    let file = object::File::parse(image);
    let symbols = file.iter().flat_map(|file| file.symbols());
    let own = symbols.filter(|it| it.is_definition());
    let found = own.filter_map(|it| {
        let what = it.name().ok()?.strip_prefix(REPORT)?;
        let is_write = what.starts_with("store");
        let size = what.strip_prefix("load").or(what.strip_prefix("store"))?;
        let size = match size {
            "_n" => None,
            size => Some(size.parse().ok()?),
        };
        Some(Reporting {
            address: it.address(),
            is_write,
            size,
        })
    });
    found.collect()
}

impl Engine {
    /// Makes a process that is stopped after its `execve` end where AddressSanitizer's runtime in
    /// the program begins to report a bad access: what it prints takes most of the time of a short
    /// run, and is not read.
    pub(super) fn end_at_reports(&self, process: &mut Process) -> Result<(), EngineError> {
        for it in &self.reporting {
            process.write(it.address.wrapping_add(self.bias), &TRAP)?;
        }
        Ok(())
    }

    /// Returns the bad access of which a process that has stopped with `registers` begins a report;
    /// `None` where it does not.
    fn begun(&self, process: &mut Process, registers: &user_regs_struct) -> Option<Reported> {
        let at = registers.rip.wrapping_sub(self.bias);
        let function = self.reporting.iter().find(|it| it.address == at)?;
        let (address, size) = (registers.rdi, function.size.unwrap_or(registers.rsi));
        let (kind, region) = kind_at(process, address, size)?;
        let located = self.located(process, address);
        let object = located.or_else(|| {
            let range = object_at(process, address)?;
            Some(Located {
                region: region.to_owned(),
                name: String::new(),
                range,
            })
        });
        Some(Reported {
            kind: kind.to_owned(),
            address,
            is_write: function.is_write,
            size,
            object,
        })
    }

    /// Returns the address in the process of a function of AddressSanitizer's runtime, or of one
    /// that it replaces (such as `malloc`), or else of the C library; `None` where there is none.
    pub(super) fn runtime_symbol(&self, process: &Process, name: &str) -> Option<u64> {
        if !self.has_asan {
            return library_symbol(process, name);
        }
        if let Some(known) = self.runtime.borrow().get(name) {
            return Some(*known);
        }
        let own = symbol_in(&self.program, name).map(|it| it.wrapping_add(self.bias));
        let in_library = || {
            let maps = ddfuzz_triage::memory::Maps::of(process.pid);
            let is_it = |name: &str| name.starts_with("libasan") || name.contains("clang_rt.asan");
            let library = maps.iter().find(|it| is_it(&it.base_name()))?;
            let address = symbol_in(&library.file_path(), name)?;
            Some(library.start - library.offset + address)
        };
        let found = own.or_else(in_library);
        let found = found.or_else(|| library_symbol(process, name));
        // Before its libraries are loaded, a process has none of them.
        if let Some(found) = found {
            self.runtime.borrow_mut().insert(name.to_owned(), found);
        }
        found
    }

    /// Returns the crash and the signal of a process that AddressSanitizer has ended, or would end
    /// now: with the reported kind of error and address in place of those of the signal. Returns
    /// `crash` itself if AddressSanitizer reports nothing.
    pub(super) fn with_report(
        &self,
        process: &mut Process,
        crash: (StoppedCrash, i32),
    ) -> (StoppedCrash, i32) {
        let Some(reported) = self.reported(process) else {
            return crash;
        };
        let major = crash.0.major.to_string();
        let crash = StoppedCrash {
            major: Key::of([major.as_bytes(), reported.kind.as_bytes()]),
            class: Class(format!("asan:{}", reported.kind)),
            address: Some(reported.address),
        };
        (crash, libc::SIGABRT)
    }

    /// Returns what AddressSanitizer reports in a process that is stopped at the signal by which it
    /// dies; `None` if it reports nothing.
    fn reported(&self, process: &mut Process) -> Option<Reported> {
        let registers = process.registers().ok()?;
        if let Some(begun) = self.begun(process, &registers) {
            return Some(begun);
        }
        let functions = QUESTIONS.map(|name| self.runtime_symbol(process, name));
        let [present, address, is_write, size, kind] = functions;
        let ask = |process: &mut Process, function: Option<u64>| {
            let answer = process.call(function?, 0).ok()?;
            answer.map(|it| it & u64::from(u32::MAX))
        };
        if ask(process, present)? == 0 {
            return None;
        }
        let address = process.call(address?, 0).ok()??;
        let text = process.call(kind?, 0).ok()??;
        Some(Reported {
            kind: text_at(process, text),
            address,
            is_write: ask(process, is_write)? != 0,
            size: process.call(size?, 0).ok()??,
            object: self.located(process, address),
        })
    }

    /// Returns the object that contains an address of a stopped process, or lies beside it, as
    /// AddressSanitizer knows it; `None` where it knows none.
    fn located(&self, process: &mut Process, address: u64) -> Option<Located> {
        let function = self.runtime_symbol(process, LOCATE)?;
        let answers = (process.registers().ok()?.rsp - ANSWERS) & !0xfff;
        let (start, size) = (answers + LONGEST_NAME, answers + LONGEST_NAME + 8);
        process
            .write(answers, &[0; LONGEST_NAME as usize + 16])
            .ok()?;
        let arguments = [address, answers, LONGEST_NAME, start, size];
        let region = process.call_with(function, arguments).ok()??;
        let name = text_at(process, answers);
        let region = text_at(process, region);
        let (start, size) = (process.word(start)?, process.word(size)?);
        (size > 0).then(|| Located {
            region,
            name,
            range: start..start.saturating_add(size),
        })
    }

    /// Makes the failing run, and returns what AddressSanitizer reports at its end; `None` if it
    /// reports nothing.
    ///
    /// # Errors
    /// When the run cannot be made.
    pub(crate) fn asan_report(&mut self) -> Result<Option<Reported>, EngineError> {
        if !self.has_asan {
            return Ok(None);
        }
        let mut run = self.start(Side::Failing)?;
        while !matches!(self.resume(&mut run.process, Pace::Free)?, Next::Ended(_)) {}
        Ok(self.reported(&mut run.process))
    }
}

/// Returns the kind of error that AddressSanitizer reports of an access of `size` bytes at an
/// address, and the region of memory; `None` where the access is no bad one.
fn kind_at(
    memory: &mut dyn Memory,
    address: u64,
    size: u64,
) -> Option<(&'static str, &'static str)> {
    let shadow = memory.bytes(shadow_of(address), 3);
    let (mut at, last) = (0, shadow.len().checked_sub(1)?);
    if shadow[at] == 0 && size > GRANULE {
        at += 1;
    }
    // The first bytes of eight may be accessed: what follows says why the others may not.
    if shadow[at.min(last)] < 0x80 {
        at += 1;
    }
    let byte = shadow[at.min(last)];
    let known = KINDS.iter().find(|it| it.0 == byte)?;
    Some((known.1, known.2))
}

/// Returns the addresses of the object before which, behind which or in which an address is that
/// the program may not access; `None` where none is near. Of freed memory, the whole is returned.
fn object_at(memory: &mut dyn Memory, address: u64) -> Option<Range<u64>> {
    const FREED: u8 = 0xfd;
    let first = (address.saturating_sub(LARGEST)) / GRANULE * GRANULE;
    let shadow = memory.bytes(shadow_of(first), (2 * LARGEST / GRANULE) as usize);
    let at = ((address - first) / GRANULE) as usize;
    let is_freed = *shadow.get(at)? == FREED;
    let is_part = |it: &u8| {
        if is_freed {
            *it == FREED
        } else {
            *it < GRANULE as u8
        }
    };
    let near = shadow[..=at].iter().rev().take((NEAR / GRANULE) as usize);
    let distance = near.into_iter().position(is_part)?;
    let end = at - distance + 1;
    let length = shadow[..end]
        .iter()
        .rev()
        .take_while(|it| is_part(it))
        .count();
    let behind = shadow[end..]
        .iter()
        .take_while(|it| is_freed && is_part(it))
        .count();
    let part = u64::from(shadow[end - 1]);
    let missing = if (1..GRANULE).contains(&part) {
        GRANULE - part
    } else {
        0
    };
    let start = first + (end - length) as u64 * GRANULE;
    Some(start..first + (end + behind) as u64 * GRANULE - missing)
}

/// Returns true if a program, given as its ELF file, is compiled with AddressSanitizer.
pub(super) fn is_in(image: &[u8]) -> bool {
    let file = object::File::parse(image);
    let names = file.iter().flat_map(|file| {
        let symbols = file.symbols().chain(file.dynamic_symbols());
        symbols.filter_map(|it| it.name_bytes().ok())
    });
    let prefix = Sanitizer::Asan.symbol().as_bytes();
    let mut names = names.filter_map(|it| it.split(|byte| *byte == b'@').next());
    names.any(|it| it == prefix)
}

/// Returns the text that ends with a zero at an address of a process, [`LONGEST_NAME`] bytes at most.
fn text_at(process: &mut Process, address: u64) -> String {
    let bytes = process.bytes(address, LONGEST_NAME as usize);
    let text = bytes.split(|it| *it == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory of which only the shadow of the addresses from [`START`] on is there.
    struct Shadow(Vec<u8>);
    const START: u64 = 0x6020_0000_0000;

    impl Memory for Shadow {
        fn read(&mut self, address: u64, buffer: &mut [u8]) -> usize {
            let first = shadow_of(START);
            for (at, byte) in buffer.iter_mut().enumerate() {
                let offset = (address + at as u64).wrapping_sub(first) as usize;
                *byte = self.0.get(offset).copied().unwrap_or(0xfa);
            }
            buffer.len()
        }
    }

    #[test]
    fn shadow_memory_shows_the_kind_of_a_bad_access_and_its_object() {
        // Blocks of 13 bytes at 16 and, freed, of 24 bytes at 48.
        let bytes = [
            0xfa, 0xfa, 0, 5, 0xfa, 0xfa, 0xfd, 0xfd, 0xfd, 0xfa, 0xfa, 0xfa,
        ];
        let mut shadow = Shadow(bytes.to_vec());
        let overflow = Some(("heap-buffer-overflow", "heap"));
        assert_eq!(kind_at(&mut shadow, START + 29, 1), overflow);
        assert_eq!(kind_at(&mut shadow, START + 28, 4), overflow);
        let freed = Some(("heap-use-after-free", "heap"));
        assert_eq!(kind_at(&mut shadow, START + 56, 8), freed);
        let mut object = |at| {
            let found = object_at(&mut shadow, START + at);
            found.map(|it| (it.start - START, it.end - START))
        };
        assert_eq!(object(29), Some((16, 29)));
        assert_eq!(object(32), Some((16, 29)));
        assert_eq!(object(56), Some((48, 72)));
    }
}
