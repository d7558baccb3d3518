//! What AddressSanitizer's runtime, which is in the program or in a library, says of a process: the
//! bad access that it has reported, and the object to which the access belongs.

use std::ops::Range;

use ddfuzz_exec::Sanitizer;
use ddfuzz_triage::memory::Memory;
use ddfuzz_triage::{Class, Key, StoppedCrash};

use object::{Object, ObjectSymbol};

use super::prepared::library_symbol;
use super::process::Process;
use super::run::{Next, Pace};
use super::{Engine, EngineError, Side, symbol_in};

/// Addresses of AddressSanitizer's shadow memory, which has one byte for eight bytes of memory.
pub(crate) const SHADOW: Range<u64> = 0x7fff_8000..0x1000_7fff_8000;
/// Addresses of the memory from which AddressSanitizer takes most heap blocks.
pub(crate) const ALLOCATED: Range<u64> = 0x6000_0000_0000..0x6400_0000_0000;
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

impl Engine {
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

    /// Returns the crash of a process that AddressSanitizer has aborted, stopped at its signal: with
    /// the reported kind of error and address in place of those of the signal. Returns `crash`
    /// itself if AddressSanitizer has reported nothing.
    pub(super) fn with_report(&self, process: &mut Process, crash: StoppedCrash) -> StoppedCrash {
        let Some(reported) = self.reported(process) else {
            return crash;
        };
        StoppedCrash {
            major: Key::of([crash.major.to_string().as_bytes(), reported.kind.as_bytes()]),
            class: Class(format!("asan:{}", reported.kind)),
            address: Some(reported.address),
        }
    }

    /// Returns what AddressSanitizer has reported in a process that is stopped at the signal by
    /// which it dies; `None` if nothing was.
    fn reported(&self, process: &mut Process) -> Option<Reported> {
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
