//! What is changed in each process before its program runs. Random numbers are the same in all
//! runs: those that the kernel gives each new process, and those of the C library's `getrandom`,
//! from which hash tables of Rust take their seeds. If the engine is set to end runs at panics, a
//! Rust panic ends the process where the panic begins, so that the stack tells it from other
//! panics.

use object::{Object, ObjectSymbol};

use super::process::Process;
use super::run::{Next, Pace};
use super::{Engine, EngineError, symbol_in};

/// Machine code that replaces `getrandom` by a function that gives the same byte each time: `mov
/// rcx, rsi; mov al, 0x5a; rep stosb; mov rax, rsi; ret`.
const CONSTANT: [u8; 11] = [
    0x48, 0x89, 0xf1, 0xb0, 0x5a, 0xf3, 0xaa, 0x48, 0x89, 0xf0, 0xc3,
];
/// Machine code of the instruction `ud2`, which ends a program by a signal.
pub(super) const TRAP: [u8; 2] = [0x0f, 0x0b];
/// Type of the entry of the auxiliary vector that has the address of 16 random bytes.
const AT_RANDOM: u64 = 25;

/// Returns true if a program, given as its ELF file, calls `getrandom` of the C library.
pub(super) fn calls_getrandom(image: &[u8]) -> bool {
    let file = object::File::parse(image);
    let symbols = file.iter().flat_map(|file| file.dynamic_symbols());
    let mut names = symbols.filter_map(|symbol| symbol.name_bytes().ok());
    names.any(|name| name.split(|byte| *byte == b'@').next() == Some(b"getrandom"))
}

/// Returns the address, in the file, of the function through which each panic of Rust passes before
/// the stack is unwound; `None` where there is none.
pub(super) fn panic_function(image: &[u8]) -> Option<u64> {
    let file = object::File::parse(image).ok()?;
    let is_it = |name: &str| name == "rust_panic" || name.ends_with("7___rustc10rust_panic");
    let mut symbols = file.symbols();
    let found = symbols.find(|it| it.is_definition() && it.name().is_ok_and(is_it))?;
    Some(found.address())
}

impl Engine {
    /// Returns true if the program has the function through which panics of Rust pass.
    pub(crate) fn is_of_rust(&self) -> bool {
        self.panic.is_some()
    }

    /// Returns the address in the process of the function at which a Rust panic ends the run;
    /// `None` if panics are not to end it, or the program has no such function.
    pub(super) fn panic_end(&self) -> Option<u64> {
        let function = self.panic.filter(|_| self.ends_at_panics)?;
        Some(function.wrapping_add(self.bias))
    }

    /// Prepares a process that is stopped after its `execve`: makes its random numbers equal to
    /// those of all other runs and, if `panic_end` has an address, makes a Rust panic end the run
    /// at this address. If the program calls `getrandom`, the process is then stopped at the
    /// program's first instruction.
    pub(super) fn prepare(&mut self, process: &mut Process) -> Result<(), EngineError> {
        let auxiliary = std::fs::read(format!("/proc/{}/auxv", process.pid))?;
        let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
        let mut entries = auxiliary.chunks_exact(16);
        let random = entries.find(|entry| word(&entry[..8]) == AT_RANDOM);
        if let Some(entry) = random {
            process.write(word(&entry[8..]), &[0x5a; 16])?;
        }
        if let Some(end) = self.panic_end() {
            process.write(end, &TRAP)?;
        }
        self.end_at_reports(process)?;
        let entry = self.entry.filter(|_| self.calls_getrandom);
        let Some(entry) = entry.map(|entry| entry.wrapping_add(self.bias)) else {
            return Ok(());
        };
        process.set_breakpoint(entry)?;
        loop {
            match self.resume(process, Pace::Free)? {
                Next::Breakpoint(_) => break,
                Next::Ended(_) => return Ok(()),
                Next::Other(_) => {}
            }
        }
        process.remove_breakpoints()?;
        if self.getrandom.is_none() {
            self.getrandom = library_symbol(process, "getrandom");
        }
        if let Some(function) = self.getrandom {
            process.write(function, &CONSTANT)?;
        }
        Ok(())
    }
}

/// Returns the address of a symbol of the C library in a process; `None` where there is none.
pub(super) fn library_symbol(process: &Process, name: &str) -> Option<u64> {
    let maps = ddfuzz_triage::memory::Maps::of(process.pid);
    let is_libc = |name: &str| name.starts_with("libc.") || name.starts_with("libc-");
    let libc = maps.iter().find(|it| is_libc(&it.base_name()))?;
    let address = symbol_in(&libc.file_path(), name)?;
    Some(libc.start - libc.offset + address)
}
