//! Finds who wrote a variable: by hardware watchpoints in a run, and by a comparison at each system
//! call, since writes of the kernel trigger no watchpoint.

use std::os::unix::fs::MetadataExt;

use ddfuzz_triage::memory::Memory;
use iced_x86::Mnemonic;
use object::{Object, ObjectSymbol};

use super::change_words::decoded;
use super::origin::LONGEST;
use super::process::Stop;
use super::run::{Next, Pace};
use super::{Engine, EngineError, Point, Side, Unsupported};
use crate::dwarf::frames::Frame;

/// Largest number of writes at which a run is stopped in the search for the last one.
const MOST_WRITES: usize = 50_000;
/// Largest size in bytes of a function's stack frame in which parameters are looked for.
const LARGEST_FRAME: u64 = 1 << 20;
/// Largest number of bytes that the processor's four watchpoints cover.
const WATCHED: u64 = 32;
/// Number of bytes of a call instruction that has the distance to the called function.
const CALL: u64 = 5;
/// First address above all that a process can have; the kernel sets no watchpoint at this address
/// or above.
const END_OF_ADDRESSES: u64 = 0x7fff_ffff_f000;

/// The origin of a write to a variable: the code that made it, and the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Writer {
    /// Address in the program's code: of the instruction that wrote, or of the call from which the
    /// write came.
    pub pc: u64,
    /// Whether the write was part of a statement of the program, of a function of a library that
    /// it called, or of a system call.
    pub by: By,
    /// The run that makes the write. If only the passing run makes it, the failing run fails
    /// because it keeps the value from before.
    pub side: Side,
    /// Whether the passing run has made the same write as well: the same statement wrote the variable
    /// last in both runs, which have written it equally often or are in different rounds of a loop.
    /// False also where this was not looked for.
    pub in_both: bool,
    /// Addresses of the write and of the calls in the program's own code that led to it, innermost
    /// first; empty where the write itself was not seen.
    pub calls: Vec<u64>,
    /// Offset in the input of the byte that the kernel has copied to the written address; `None` if
    /// the write was not made by a system call (`read` or `pread64`) that reads the input.
    pub offset: Option<u64>,
}

/// A range of memory of the program that the engine watches, to see which instruction writes a
/// variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watched {
    /// First address of the watched memory.
    pub address: u64,
    /// Number of watched bytes.
    pub size: u64,
    /// Number of the frame, counted from the outermost one, to which a local variable belongs;
    /// `None` for anything else.
    pub frame: Option<usize>,
}

/// The last writes of a run to the memory that the engine watches: the last of all, and the last
/// that changed the value of this memory.
#[derive(Default)]
pub(super) struct LastWrites {
    /// The last write that changed the value of the watched memory.
    changed: Option<Writer>,
    /// The last write, whether or not it changed the value.
    pub any: Option<LastWrite>,
    /// Number of all writes to the variable.
    times: u64,
}

/// One write to the memory that the engine watches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastWrite {
    /// The code that made the write, and the run in which it was made.
    pub writer: Writer,
    /// Number of writes of the run to the watched memory that the processor has noticed, up to and
    /// including this one.
    pub(super) nth: u64,
}

/// What made a write to a variable: the program, a library function or the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum By {
    /// A statement of the program made the write.
    Program,
    /// This function of a library made the write.
    Library(String),
    /// The kernel made the write, in a system call that reads the input; or a function of the C
    /// library that reads files made it, while the process had no file but the input open for
    /// reading.
    Input,
    /// The kernel made the write, in a system call that does not read the input.
    Kernel,
}

/// Names of the functions of the C library that read a file.
const READERS: [&str; 24] = [
    "read",
    "pread",
    "fread",
    "fgets",
    "gets",
    "getc",
    "fgetc",
    "getchar",
    "getline",
    "getdelim",
    "scanf",
    "fscanf",
    "__isoc99_scanf",
    "__isoc99_fscanf",
    "__isoc23_scanf",
    "__isoc23_fscanf",
    "_IO_getc",
    "__read",
    "fread_unlocked",
    "fgets_unlocked",
    "getc_unlocked",
    "__uflow",
    "readv",
    "__fgets_chk",
];

impl Writer {
    /// Returns true if the write put bytes of the input into memory, as `read` does, so that no
    /// code of the program made these bytes.
    pub fn is_input(&self) -> bool {
        self.by == By::Input
    }
}

impl Engine {
    /// Finds what last wrote to the memory `watched` before the run `side` arrives at the point
    /// `to`: the last write that changed the value or, if none did, the last one of all; `None` if
    /// nothing wrote to it. Watches from the beginning of the run or, if `from` is given, from the
    /// point in `from`, which also says how often the run has reached the statement of `to` up to
    /// this point.
    ///
    /// # Errors
    /// When the run cannot be made, or does not reach the points.
    pub fn writer(
        &mut self,
        side: Side,
        from: Option<(Point, u64)>,
        to: Point,
        watched: Watched,
    ) -> Result<Option<Writer>, EngineError> {
        let last = self.last_writes(side, from, to, watched)?;
        Ok(last.changed.or(last.any.map(|it| it.writer)))
    }

    /// Returns the last write of the failing run to a variable before the point `to`, if the last
    /// write of the passing run is by the same statement, and whether both runs have written the
    /// variable equally often before this point; `None` if the last statements differ. `to` and `watched` (where the variable is) are of the passing run and of the
    /// failing run.
    ///
    /// # Errors
    /// When a run cannot be made, or does not reach its point.
    pub fn written_in_both(
        &mut self,
        to: [Point; 2],
        watched: [Watched; 2],
    ) -> Result<Option<(Writer, bool)>, EngineError> {
        let passing = self.last_writes(Side::Passing, None, to[0], watched[0])?;
        let failing = self.last_writes(Side::Failing, None, to[1], watched[1])?;
        let statement = |it: &LastWrites| self.statement_at(it.any.as_ref()?.writer.pc);
        let is_as_often = passing.times == failing.times;
        let is_same = statement(&failing).is_some() && statement(&passing) == statement(&failing);
        let both = failing.any.filter(|_| is_same).map(|it| Writer {
            in_both: true,
            ..it.writer
        });
        Ok(both.map(|it| (it, is_as_often)))
    }

    /// Finds the last writes to the memory `watched`, as [`writer`](Engine::writer) does: the last
    /// one that changed the value, and the last one of all.
    pub(super) fn last_writes(
        &mut self,
        side: Side,
        from: Option<(Point, u64)>,
        to: Point,
        watched: Watched,
    ) -> Result<LastWrites, EngineError> {
        let address = watched.address;
        let mut run = self.start(side)?;
        let mut left = to.nth;
        if let Some((from, reached)) = from {
            self.run_to(&mut run, from)?;
            left = to.nth.saturating_sub(reached).max(1);
        }
        let length = watched.size.clamp(1, WATCHED);
        watch(&run.process, watched)?;
        let mut value = run.process.bytes(address, length as usize);
        run.process.set_breakpoint(to.pc)?;
        run.process.step_over_here()?;
        let (mut last, mut nth) = (LastWrites::default(), 0);
        for _ in 0..MOST_WRITES {
            self.check_time()?;
            let next = self.resume(&mut run.process, Pace::SystemCalls)?;
            let by_kernel = matches!(next, Next::Other(Stop::SystemCall));
            let mut is_write = matches!(next, Next::Other(Stop::Trap));
            let mut is_over = false;
            match &next {
                Next::Ended(_) => break,
                Next::Breakpoint(registers) => {
                    left -= 1;
                    is_over = left == 0;
                    if !is_over {
                        is_write = run.process.step_over_writes(registers.rip)?;
                    }
                }
                Next::Other(_) => {}
            }
            nth += u64::from(is_write);
            let now = run.process.bytes(address, length as usize);
            // What has just been mapped was written by nobody.
            let has_changed = now != value && now.len() == value.len();
            if (has_changed || is_write)
                && (by_kernel || self.is_of_frame(&mut run.process, watched)?)
            {
                let writer = self.describe(&mut run.process, side, address, by_kernel)?;
                if has_changed {
                    last.changed.clone_from(&writer);
                }
                last.any = writer.map(|writer| LastWrite { writer, nth });
                last.times += 1;
            }
            value = now;
            if is_over {
                // Who saves a register in which a caller has the variable does not write it.
                let is_own = self.is_of_frame(&mut run.process, watched)?;
                return Ok(if is_own { last } else { LastWrites::default() });
            }
        }
        Ok(last)
    }

    /// Returns the point (statement execution) of the failing run in which the write `write` to the
    /// memory `watched` was made; `None` where a second run does not make that write.
    pub(super) fn statement_of(
        &mut self,
        watched: Watched,
        write: &LastWrite,
    ) -> Result<Option<Point>, EngineError> {
        // What a standard library writes, it writes for the statement that calls it.
        let own = write.writer.calls.first();
        let Some(pc) = self.statement_at(*own.unwrap_or(&write.writer.pc)) else {
            return Ok(None);
        };
        let mut run = self.start(Side::Failing)?;
        watch(&run.process, watched)?;
        run.process.set_breakpoint(pc)?;
        let (mut nth, mut writes, mut stack) = (0, 0, 0);
        for _ in 0..MOST_WRITES {
            self.check_time()?;
            match self.resume(&mut run.process, Pace::Free)? {
                Next::Ended(_) => break,
                Next::Breakpoint(registers) => {
                    nth += 1;
                    stack = self.arrived(&mut run, &registers).stack;
                    let has_written = run.process.step_over_writes(registers.rip)?;
                    writes += u64::from(has_written);
                }
                Next::Other(stop) => writes += u64::from(stop == Stop::Trap),
            }
            if writes == write.nth && nth > 0 {
                return Ok(Some(Point { pc, nth, stack }));
            }
        }
        Ok(None)
    }

    /// Returns true if the watched memory is now a part of the frame of its variable, or if the
    /// variable has no frame. Returns false if the memory now belongs to the frame of another call,
    /// whose writes do not set the variable.
    fn is_of_frame(
        &mut self,
        process: &mut super::process::Process,
        watched: Watched,
    ) -> Result<bool, EngineError> {
        let Some(frame) = watched.frame else {
            return Ok(true);
        };
        let frames = self.frames(process)?;
        let around = frames.iter().position(|it| watched.address < it.cfa);
        // Arguments that do not fit into registers are in the caller's frame.
        Ok(around.is_none_or(|index| {
            [frame, frame.saturating_sub(1)].contains(&(frames.len() - 1 - index))
        }))
    }

    /// Describes the write to `address` that the program has just made or, if `by_kernel` is set,
    /// the kernel: the innermost instruction or call in the program's own code from which the write
    /// came, and the calls that led to it. `None` if no frame is in the program's own code.
    pub(super) fn describe(
        &mut self,
        process: &mut super::process::Process,
        side: Side,
        address: u64,
        by_kernel: bool,
    ) -> Result<Option<Writer>, EngineError> {
        let frames = self.frames(process)?;
        let bias = self.bias;
        let is_own = |code: u64| self.info.function(code.wrapping_sub(bias)).is_some();
        // The processor stops after the instruction that has written.
        let code = |index: usize, code: u64| if index == 0 { code - 1 } else { code };
        let mut own = frames
            .iter()
            .enumerate()
            .filter(|(index, frame)| is_own(code(*index, frame.code)));
        let Some(first) = own.clone().next() else {
            return Ok(None);
        };
        // What headers of a library do, they do for the statement that has called them.
        let is_user = |index: usize, frame: &Frame| self.is_user(code(index, frame.code));
        let of_user = own.find(|(index, frame)| is_user(*index, frame));
        let (mut index, mut frame) = of_user.unwrap_or(first);
        // A parameter is stored by the function that gets it, in its own frame; its value is the
        // caller's. A store to other memory is a statement, though it begins the function.
        let is_own_frame = (frame.cfa.saturating_sub(LARGEST_FRAME)..frame.cfa).contains(&address);
        let is_stored = is_own_frame && self.is_prologue(code(0, frame.code));
        if index == 0 && !by_kernel && is_stored {
            let mut callers = frames.iter().enumerate().skip(1);
            let next = callers.clone().next().filter(|it| is_own(it.1.code));
            let of_user = callers.find(|(index, caller)| is_user(*index, caller));
            match next.map(|next| of_user.unwrap_or(next)) {
                Some(caller) => (index, frame) = caller,
                None => return Ok(None),
            }
        }
        let is_own_call = index > 0 && is_own(frames[index - 1].code);
        let offset = by_kernel.then(|| self.input_offset(process, address));
        let offset = offset.flatten();
        let by = match (index, by_kernel) {
            (_, true) if offset.is_some() || self.reads_input(process) => By::Input,
            (_, true) => By::Kernel,
            (0, false) => By::Program,
            (_, false) if is_own_call => By::Program,
            (_, false) => self.by_library(frames[index - 1].code, process),
        };
        let pc = code(index, frame.code);
        let mut calls = self.own_calls(&frames[index..]);
        if let Some(first) = calls.first_mut() {
            *first = pc;
        }
        Ok(Some(Writer {
            pc,
            by,
            side,
            in_both: false,
            calls,
            offset,
        }))
    }

    /// Returns the offset in the input of the byte at `address` in memory, if the system call that
    /// has just returned (`read` or `pread64`) copied this byte from a file with the input; `None`
    /// otherwise.
    fn input_offset(&self, process: &super::process::Process, address: u64) -> Option<u64> {
        let registers = process.registers().ok()?;
        let (call, count) = (registers.orig_rax as i64, registers.rax as i64);
        let read = u64::try_from(count).ok()?;
        let at = address.checked_sub(registers.rsi).filter(|at| *at < read)?;
        if !self.reads_input(process) {
            return None;
        }
        if call == libc::SYS_pread64 {
            return registers.r10.checked_add(at);
        }
        let details = format!("/proc/{}/fdinfo/{}", process.pid, registers.rdi);
        let details = std::fs::read_to_string(details).ok()?;
        let position = details.lines().find_map(|line| line.strip_prefix("pos:"))?;
        let position: u64 = position.trim().parse().ok()?;
        let start = position
            .checked_sub(read)
            .filter(|_| call == libc::SYS_read)?;
        start.checked_add(at)
    }

    /// Returns what caused a write by the library's instruction at the address `code`: the input
    /// ([`By::Input`]) if the library's function is one that reads files and no file but the input
    /// is open for reading, else that function.
    fn by_library(&self, code: u64, process: &super::process::Process) -> By {
        let name = self.library_function(code);
        match is_reader(&name) && self.has_only_input_open(process) {
            true => By::Input,
            false => By::Library(name),
        }
    }

    /// Returns true if the instruction at `pc` is in the prologue of its function, before its first
    /// statement.
    fn is_prologue(&self, pc: u64) -> bool {
        let at = pc.wrapping_sub(self.bias);
        let Some(function) = self.info.function(at) else {
            return false;
        };
        let start = function.ranges[0].start.wrapping_add(self.bias);
        let first = self.statements[self.statements.partition_point(|it| *it < start)..].first();
        first.is_some_and(|first| (start..*first).contains(&pc))
    }

    /// Returns true if the write of `writer` only saves a register at the beginning of a function:
    /// it is in the prologue, or a push, or attributed to the call of the function.
    pub(super) fn saves_register(&self, writer: &Writer) -> bool {
        let pc = writer.pc;
        let is_at = |start: u64| {
            let code = self
                .code_in_file(start..start + LONGEST)
                .unwrap_or_default();
            let [it] = decoded(&code, start);
            let is_it = matches!(it.mnemonic(), Mnemonic::Push | Mnemonic::Call);
            is_it && (start..it.next_ip()).contains(&pc)
        };
        // A call may be told by its last byte.
        let is_moved = || is_at(pc) || is_at(pc - (CALL - 1));
        writer.by == By::Program && (self.statement_at(pc).is_none() || is_moved())
    }

    /// Returns true if the process has a file open that holds the input, and nothing else that it
    /// could read.
    fn has_only_input_open(&self, process: &super::process::Process) -> bool {
        let folder = format!("/proc/{}", process.pid);
        let Ok(open) = std::fs::read_dir(format!("{folder}/fd")) else {
            return false;
        };
        let mut has_input = false;
        for entry in open.flatten() {
            let Ok(facts) = std::fs::metadata(entry.path()) else {
                return false;
            };
            let name = entry.file_name();
            if self.input_files.contains(&(facts.dev(), facts.ino())) {
                has_input = true;
            } else if !["1", "2"].iter().any(|output| name == *output)
                && is_readable(&facts, &format!("{folder}/fdinfo/{}", name.display()))
            {
                return false;
            }
        }
        has_input
    }

    /// Returns true if the system call that has just returned reads a file that holds the input.
    fn reads_input(&self, process: &super::process::Process) -> bool {
        let Ok(registers) = process.registers() else {
            return false;
        };
        let call = registers.orig_rax as i64;
        if ![libc::SYS_read, libc::SYS_pread64, libc::SYS_readv].contains(&call) {
            return false;
        }
        let file = std::fs::metadata(format!("/proc/{}/fd/{}", process.pid, registers.rdi));
        file.is_ok_and(|facts| self.input_files.contains(&(facts.dev(), facts.ino())))
    }

    /// Returns the name of the library function at an address; empty where it is unknown.
    pub(super) fn library_function(&self, address: u64) -> String {
        if let Some(known) = self.library_names.borrow().get(&address) {
            return known.clone();
        }
        let name = self.name_in_library(address);
        let mut known = self.library_names.borrow_mut();
        known.insert(address, name.clone());
        name
    }

    /// Reads the name of the library function at an address from the library's file; empty where it is
    /// unknown.
    fn name_in_library(&self, address: u64) -> String {
        let Some(path) = self.modules.path(address) else {
            return String::new();
        };
        let Some(start) = self.modules.start(address) else {
            return String::new();
        };
        let image = std::fs::read(path).unwrap_or_default();
        let Ok(file) = object::File::parse(&*image) else {
            return String::new();
        };
        let offset = address
            .wrapping_sub(start)
            .wrapping_add(crate::dwarf::frames::base(&file));
        let symbols = file.symbols().chain(file.dynamic_symbols());
        let inside = symbols.filter(|symbol| {
            symbol.is_definition()
                && (symbol.address()..symbol.address() + symbol.size()).contains(&offset)
        });
        let names = inside.filter_map(|symbol| symbol.name().ok().map(str::to_owned));
        // Of several names the plain one.
        names
            .min_by_key(|name| (name.starts_with('_'), name.len(), name.clone()))
            .unwrap_or_default()
    }
}

/// Returns true if a function of the C library of this name reads a file.
fn is_reader(name: &str) -> bool {
    READERS.contains(&name.trim_start_matches("_IO_")) || READERS.contains(&name)
}

/// Returns true if the program may read content from an open file: `facts` is neither a directory
/// nor `/dev/null`, and the file at the path `details` (in `/proc/PID/fdinfo`) does not say that it
/// is open for writing only.
fn is_readable(facts: &std::fs::Metadata, details: &str) -> bool {
    if facts.is_dir() || facts.rdev() == libc::makedev(1, 3) {
        return false;
    }
    let details = std::fs::read_to_string(details).unwrap_or_default();
    let flags = details.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| i32::from_str_radix(flags.trim(), 8).ok());
    flags.is_none_or(|flags| flags & libc::O_ACCMODE != libc::O_WRONLY)
}

/// Sets the processor's watchpoints to the memory `watched`, as far as they suffice.
///
/// # Errors
/// [`Unsupported::Unwatchable`] for memory that no process can have.
pub(super) fn watch(
    process: &super::process::Process,
    watched: Watched,
) -> Result<(), EngineError> {
    let length = watched.size.clamp(1, WATCHED);
    let end = watched.address.checked_add(length);
    if end.is_none_or(|end| end > END_OF_ADDRESSES) {
        return Err(EngineError::Unsupported(Unsupported::Unwatchable(
            watched.address,
        )));
    }
    let all = pieces(watched.address, length).into_iter();
    for (slot, (start, size)) in all.take(4).enumerate() {
        process.watch(slot, start, size)?;
    }
    Ok(())
}

/// Splits the range of `size` bytes at `address` into aligned pieces of 1, 2, 4 or 8 bytes, each
/// returned as address and size: what a debug register can watch.
fn pieces(address: u64, size: u64) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    let (mut at, end) = (address, address + size);
    while at < end {
        let fits = [8, 4, 2, 1]
            .into_iter()
            .find(|size| at % size == 0 && at + size <= end);
        let size = fits.unwrap_or(1);
        found.push((at, size));
        at += size;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watched_ranges_are_aligned() {
        assert_eq!(pieces(0x1000, 8), [(0x1000, 8)]);
        assert_eq!(pieces(0x1003, 7), [(0x1003, 1), (0x1004, 4), (0x1008, 2)]);
    }
}
