//! Runs of a program under ptrace: points in time, states, tests at a point, writers of variables.
//! This is the only module that touches a process.
//!
//! All calls must come from one thread, which traces nothing else and has no children. When it
//! ends, the kernel kills whatever it still traces.

mod added;
mod added_on_paths;
pub(crate) mod anomalies;
pub(crate) mod asan;
mod asan_checks;
pub(crate) mod backward;
mod bad_access;
pub(crate) mod bounds;
mod called_from;
mod change_words;
pub(crate) mod changed;
pub(crate) mod closing;
mod conditions;
mod copied;
pub mod crashed;
pub(crate) mod critical;
pub(crate) mod decisions;
pub(crate) mod dependence;
pub(crate) mod evidence;
pub mod freed;
pub mod heap;
pub mod instructions;
mod joined_conditions;
mod late_points;
pub mod library;
mod library_data;
pub mod moved;
mod mutant_words;
mod mutants;
pub(crate) mod mutated;
mod one_cpu;
mod open_files;
mod operand_names;
pub mod origin;
mod other_operands;
mod other_order;
mod out_of_range;
pub(crate) mod outside;
pub mod overflow;
mod pointers;
mod prepared;
pub mod process;
pub(crate) mod recorded;
pub(crate) mod recursion;
pub mod register_writer;
mod registers;
mod relied;
pub mod returned;
mod reused;
pub mod run;
mod same_type;
pub mod slices;
mod source_text;
pub mod sources;
pub(crate) mod spectrum;
pub mod state;
mod stops;
pub mod switched;
pub mod tests_at_point;
mod unset;
pub mod watchdog;
mod wide;
pub mod writer;
mod written;

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use ddfuzz_exec::{Ended, ExecError, Limits, Target, Traceable, Way};
use ddfuzz_triage::{Key, StoppedClassifier, StoppedCrash};
use nix::sys::memfd::{MFdFlags, memfd_create};
use regex::bytes::Regex;

use crate::dwarf::{DebugInfo, DebugInfoError, Declared, Place, is_library_file};
use one_cpu::OneCpu;
pub(crate) use origin::History;
use state::Modules;
use watchdog::{Allowance, TimeLimit, Watchdog};

/// One of the two runs that are compared: the passing or the failing one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The run that ends well.
    Passing,
    /// The run that fails.
    Failing,
}

/// Error: the engine cannot run the program.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The target cannot be started.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// A system call for tracing the program has failed.
    #[error("tracing the program: {0}")]
    System(#[from] io::Error),
    /// The program's file cannot be read.
    #[error("reading {path}: {why}")]
    Program {
        /// Path of the program's file.
        path: PathBuf,
        /// Why the program's file cannot be read.
        why: DebugInfoError,
    },
    /// The program does something (the value says what) that keeps it from being explained.
    #[error("{0}")]
    Unsupported(Unsupported),
    /// The time for the whole explanation is over.
    #[error("the time for the explanation is over")]
    OutOfTime,
}

/// Returns what an experiment has found; `None` if it failed because the program does something
/// that cannot be explained ([`EngineError::Unsupported`]). Returns any other error.
pub(crate) fn if_supported<T>(
    found: Result<Option<T>, EngineError>,
) -> Result<Option<T>, EngineError> {
    match found {
        Err(EngineError::Unsupported(_)) => Ok(None),
        other => other,
    }
}

/// What a program does that keeps it from being explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsupported {
    /// The program starts threads.
    #[error("the program starts threads")]
    Threads,
    /// The program starts other processes.
    #[error("the program starts other processes")]
    Children,
    /// The program executes another program.
    #[error("the program executes another program")]
    Executes,
    /// The program has sockets open.
    #[error("the program uses sockets")]
    Sockets,
    /// The program shares memory that it writes with other processes, such as forks of itself.
    #[error("the program shares memory that it writes with other processes")]
    SharedMemory,
    /// The processor cannot watch the memory at this address, because no process can have it: a bad
    /// pointer leads there, for example.
    #[error("the processor cannot watch the memory at {0:#x}")]
    Unwatchable(u64),
    /// A repeated run does not reach a point that the run reached before.
    #[error("the program does not behave the same in each run")]
    Unsteady,
}

/// A point in time: a statement, how often it was reached, and the stack at that time. States of
/// two runs are compared at equal points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Point {
    /// Address of the statement's first instruction in the process.
    pub pc: u64,
    /// How often the run has reached the statement, including this time.
    pub nth: u64,
    /// Hash of the return addresses on the stack.
    pub stack: u64,
}

/// How a run of the program ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Ending {
    /// Exit status or signal of the run.
    pub ended: Ended,
    /// Class and major key (which identifies crashes of one cause) of the crash; `None` if the run
    /// did not crash.
    pub crash: Option<StoppedCrash>,
    /// What the run wrote to stdout.
    pub output: Vec<u8>,
    /// Whether two runs of the same input are known to have written different output to stdout,
    /// such as the time of day.
    pub varies: bool,
    /// Code addresses of the frames on the stack, innermost first: the program counter, then return
    /// addresses. After a crash, the stack of the crash; after an exit, the stack of the call that
    /// exits, if exits are watched. Empty otherwise.
    pub stack: Vec<u64>,
}

/// What makes a run a failure: a crash with a certain key, a certain exit status (with the same
/// stack or output), or output that matches a pattern.
#[derive(Clone, Debug)]
pub enum Criterion {
    /// A run is a failure if it crashes with this major key, which identifies crashes of one cause.
    Crash(Key),
    /// A run is a failure if it exits with this status, and with the same stack or output as the
    /// failing run.
    Exit(i32, Sameness),
    /// A run is a failure if this pattern matches its output.
    Wrong(Regex),
}

/// What two exits with the same status must have in common to count as the same failure: the stack
/// at the exit, or the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sameness {
    /// The exits must have this stack, at the call with which the program asked to exit: the
    /// addresses of the frames, innermost first.
    Stack(Vec<u64>),
    /// The exits must have this output on stdout. It is compared if the program exits by a return
    /// from `main`, so that the stack says nothing.
    Output(Vec<u8>),
}

/// The points (statement executions) that one run went through up to its end.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The points that the run went through, in the order of time.
    pub points: Vec<Point>,
    /// How the run ended.
    pub ending: Ending,
}

/// The tracer of a program's passing and failing run: it starts, stops and forks their processes.
pub struct Engine {
    sides: [(Traceable, Vec<u8>); 2],
    output: File,
    /// Debug information of the program that is explained.
    pub info: DebugInfo,
    /// Path of the program.
    pub program: PathBuf,
    /// Difference between addresses in the process and in the program's file.
    pub bias: u64,
    pub(crate) modules: Modules,
    classifier: StoppedClassifier,
    keys: HashMap<(i32, Option<u64>, Vec<u64>), StoppedCrash>,
    /// Names of functions of libraries, by addresses in them.
    library_names: RefCell<HashMap<u64, String>>,
    /// Whether the program is compiled with AddressSanitizer.
    pub(crate) has_asan: bool,
    /// Whether the program has checks of AddressSanitizer or UndefinedBehaviorSanitizer.
    pub(crate) has_checks: bool,
    /// The program's code, in which instructions are recognized that the compiler has added for a
    /// sanitizer; empty if the program is compiled without one.
    instrumented: asan_checks::Instrumented,
    /// The functions in the program at which a run ends by a report of AddressSanitizer.
    reporting: Vec<asan::Reporting>,
    /// The bad access that AddressSanitizer reports in the failing run, once it is known.
    pub(crate) reported: Option<asan::Reported>,
    /// Addresses in the process of functions of AddressSanitizer's runtime, by their names.
    runtime: RefCell<HashMap<String, u64>>,
    watchdog: Watchdog,
    one_cpu: OneCpu,
    limits: Limits,
    /// Whether it is known at which address the program is loaded.
    pub(crate) is_located: bool,
    /// Addresses in the process at which statements begin, ascending.
    pub(crate) statements: Vec<u64>,
    /// Time limit of a run that goes on with a changed state. Runs that are stopped often have a
    /// longer one.
    pub(crate) test_limit: TimeLimit,
    /// How long the whole explanation may take.
    whole_time: Allowance,
    /// How long the current part of the explanation may take: the time of the whole one, or less.
    pub(crate) until: Allowance,
    /// Time until which values of the failing run are followed back, and runs with changed
    /// instructions are made.
    pub(crate) facts_until: Allowance,
    /// Whether the failing run overwrites what the heap's allocator keeps between blocks. What this
    /// makes of a run depends on where blocks are, so that a mutant's run counts as failing, too, if
    /// the heap is damaged at its end.
    pub(crate) damages_heap: bool,
    /// Number of tests (forks of a run with a changed state) so far.
    pub tests: u64,
    /// Number of runs of the failing input so far in which one instruction was skipped, or one
    /// conditional jump was inverted.
    pub changed_runs: u64,
    /// Whether states are read as registers and words, without variables and types.
    pub is_raw: bool,
    /// Whether the stack is read when the program exits, to tell its exits apart.
    pub watches_exits: bool,
    pub(crate) malloc: Option<u64>,
    pub(crate) system_call: Option<u64>,
    pub(crate) input_files: Vec<(u64, u64)>,
    /// Address, in the file, of the program's first instruction.
    entry: Option<u64>,
    /// Whether the program calls the C library's function `getrandom`.
    calls_getrandom: bool,
    /// Address of the C library's `getrandom` in the process; `None` until it is known.
    getrandom: Option<u64>,
    /// Address, in the file, of the function through which each Rust panic passes; `None` if there
    /// is none.
    panic: Option<u64>,
    /// The functions of libraries that the program calls, and what they do to memory.
    imports: library::Imports,
    /// Origins of values that the failing run has read from memory, one step back for each read, so
    /// that the same read is not followed back twice.
    followed: HashMap<origin::Reading, origin::Back>,
    /// Recordings of single instructions between points, so that none is made twice.
    recorded: HashMap<recorded::RecordingKey, Rc<recorded::Recorded>>,
    /// The recording of the whole failing run.
    pub(crate) whole: recorded::Whole,
    /// What is known of the program's own code that was executed one instruction at a time.
    code: recorded::KnownCode,
    /// Number of values for which another run may be made, to test whether anything had set the
    /// memory from which the value was read.
    lives_left: usize,
    /// Whether a run is ended where a Rust panic begins, so that the stack of the panic is known.
    pub ends_at_panics: bool,
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.watchdog.close();
    }
}

/// Prepares the passing and the failing run of a program, whose targets and inputs are given in
/// this order, so that both write to `output`.
fn sides(
    targets: [&Target; 2],
    [passing, failing]: [Vec<u8>; 2],
    output: &File,
) -> Result<[(Traceable, Vec<u8>); 2], EngineError> {
    let first = Traceable::writing_to(targets[0], Way::Command, output)?;
    // The same directory and the same files, so that both runs differ in nothing else.
    let second = match targets[0] == targets[1] {
        true => first.clone(),
        false => Traceable::writing_to(targets[1], Way::Command, output)?,
    };
    Ok([(first, passing), (second, failing)])
}

impl Engine {
    /// Prepares the passing and the failing run of a program, whose targets and inputs are given in
    /// this order; `budget` is the CPU time for the whole explanation.
    ///
    /// # Errors
    /// When the program cannot be started, or its file cannot be read.
    pub fn new(
        targets: [&Target; 2],
        inputs: [Vec<u8>; 2],
        budget: Duration,
    ) -> Result<Engine, EngineError> {
        let whole_time = Allowance::of_budget(budget);
        let output = output_file()?;
        let sides = sides(targets, inputs, &output)?;
        let program = sides[0].0.program();
        let path = program.clone();
        let info = DebugInfo::read(&program).map_err(|why| EngineError::Program { path, why })?;
        let image = std::fs::read(&program)?;
        let [has_asan, has_checks] = asan_checks::of_sanitizers(&image);
        Ok(Engine {
            sides,
            output,
            imports: library::Imports::of(&image, &info.prototypes, has_checks),
            info,
            entry: symbol_in(&program, "_start"),
            program,
            bias: 0,
            modules: Modules::default(),
            classifier: StoppedClassifier::default(),
            keys: HashMap::new(),
            library_names: RefCell::default(),
            has_asan,
            has_checks,
            instrumented: asan_checks::Instrumented::of(&image, has_checks),
            reporting: asan::reporting(&image),
            reported: None,
            runtime: RefCell::default(),
            watchdog: Watchdog::start(whole_time)?,
            one_cpu: OneCpu::of_thread(),
            limits: targets[0].limits,
            test_limit: TimeLimit::of(targets[0].limits.wall),
            is_located: false,
            statements: Vec::new(),
            whole_time,
            until: whole_time,
            facts_until: whole_time,
            damages_heap: false,
            tests: 0,
            changed_runs: 0,
            is_raw: false,
            watches_exits: false,
            malloc: None,
            system_call: None,
            input_files: Vec::new(),
            calls_getrandom: prepared::calls_getrandom(&image),
            panic: prepared::panic_function(&image),
            followed: HashMap::new(),
            recorded: HashMap::new(),
            whole: recorded::Whole::default(),
            code: recorded::KnownCode::default(),
            lives_left: origin::LIVES,
            ends_at_panics: false,
            getrandom: None,
        })
    }

    /// Returns the time limit of the whole explanation.
    pub(crate) fn whole_time(&self) -> Allowance {
        self.whole_time
    }

    /// Returns a time limit for a part of the explanation: the CPU time `cpu`, and half of the wall
    /// time that remains for the whole explanation.
    pub(crate) fn half_time(&self, cpu: Duration) -> Allowance {
        self.whole_time.part(2).within(cpu)
    }

    /// Returns an error if the time for the whole explanation, or for its current part, is over.
    ///
    /// # Errors
    /// [`EngineError::OutOfTime`].
    pub fn check_time(&self) -> Result<(), EngineError> {
        match self.until.is_over() {
            true => Err(EngineError::OutOfTime),
            false => Ok(()),
        }
    }

    /// Returns the source file and line of an address in the process; `None` without debug
    /// information. For code of a standard library that is inlined in the program, returns the
    /// program's own statement that calls it.
    pub fn place(&self, pc: u64) -> Option<(&str, u64)> {
        let place = self.info.place(pc.wrapping_sub(self.bias))?;
        Some((place.file, place.line))
    }

    /// Returns a copy of the source file and line of an address in the process, as
    /// [`place`](Engine::place) finds them, for comparisons of lines; `None` without debug
    /// information.
    pub(crate) fn line(&self, pc: u64) -> Option<(String, u64)> {
        let place = self.place(pc);
        place.map(|(file, line)| (file.to_owned(), line))
    }

    /// Returns the addresses of all statements on the source line at which the run of the points
    /// `points` fails, the line of its last point; empty if that line is not known.
    pub(crate) fn failing_statements(&self, points: &[Point]) -> Vec<u64> {
        let line = points.last().and_then(|last| self.place(last.pc));
        let is_it = |pc: &u64| line.is_some() && self.place(*pc) == line;
        self.statements.iter().copied().filter(is_it).collect()
    }

    /// Returns the line that declares the local variable `name` of the function at the address `pc`
    /// in the process; `None` if there is no such variable, or if several lines declare one.
    pub(crate) fn declared_at(&self, pc: u64, name: &str) -> Option<u64> {
        let function = self.info.function(pc.wrapping_sub(self.bias))?;
        let is_it = |it: &&Declared| {
            it.name == name && it.line > 0 && self.function(pc) == Some(it.function.as_str())
        };
        let mut lines = function.variables.iter().filter(is_it).map(|it| it.line);
        let first = lines.next()?;
        lines.all(|it| it == first).then_some(first)
    }

    /// Returns the name of the function at an address in the process; `None` if none is known. For
    /// code of a standard library that is inlined in the program, returns the program's own
    /// function.
    pub fn function(&self, pc: u64) -> Option<&str> {
        let code = pc.wrapping_sub(self.bias);
        let name = self.info.name_at(code)?;
        Some(self.info.place(code).map_or(name, |place| place.function))
    }

    /// Returns function, source file and line of the calls of inlined functions that lead to an
    /// address in the process, innermost first.
    pub(crate) fn calls_inlined_at(&self, pc: u64) -> Vec<Place<'_>> {
        self.info.calls_inlined_at(pc.wrapping_sub(self.bias))
    }

    /// Returns true if `pc`, an address in the process, belongs to the program's own code: to a
    /// line of a source file that is not of a standard library, and to no instruction that the
    /// compiler has added for a sanitizer.
    pub(crate) fn is_user(&self, pc: u64) -> bool {
        (self.place(pc)).is_some_and(|(file, _)| !is_library_file(file)) && !self.is_added(pc)
    }

    /// Returns true if the code at `pc`, an address in the process, belongs to a statement of the
    /// program: if it is the program's own code ([`is_user`](Engine::is_user)), and does not just
    /// make or remove the stack frame of a function.
    pub(crate) fn is_of_statement(&self, pc: u64) -> bool {
        let code = pc.wrapping_sub(self.bias);
        let ranges = self.info.function(code).map(|it| &it.ranges);
        let start = ranges.and_then(|it| Some(it.first()?.start));
        let is_of_frame = start.is_some_and(|start| self.info.lines.is_of_frame(start, code));
        !is_of_frame && self.is_user(pc)
    }

    /// Returns true if the compiler has added the instruction at `pc`, an address in the process,
    /// for a sanitizer.
    fn is_added(&self, pc: u64) -> bool {
        if !self.has_checks {
            return false;
        }
        let pc = pc.wrapping_sub(self.bias);
        let function = self.info.function(pc);
        let ranges = function.map_or(&[][..], |it| &it.ranges);
        let range = ranges.iter().find(|it| it.contains(&pc));
        range.is_some_and(|range| self.instrumented.is_added(pc, range))
    }

    /// Returns the start of the statement to which an address in the process belongs; `None`
    /// outside of the statements of its function.
    pub(crate) fn statement_at(&self, pc: u64) -> Option<u64> {
        let before = self.statements.partition_point(|it| *it <= pc);
        let start = *self.statements[..before].last()?;
        let function = self.info.function(pc.wrapping_sub(self.bias))?;
        let is_inside =
            |range: &std::ops::Range<u64>| range.contains(&start.wrapping_sub(self.bias));
        function.ranges.iter().any(is_inside).then_some(start)
    }

    /// Replaces the input of the passing or failing run.
    pub fn set_input(&mut self, side: Side, input: Vec<u8>) {
        self.recorded.retain(|key, _| key.0 != side);
        if side == Side::Failing {
            self.whole.run = None;
        }
        self.sides[side as usize].1 = input;
    }

    /// Returns the input of one of the two runs, the passing or the failing one, as `side` says.
    pub fn input(&self, side: Side) -> &[u8] {
        &self.sides[side as usize].1
    }

    /// Returns what the run that is under way, or that has just ended, has written to stdout; empty
    /// if it cannot be read.
    fn written(&self) -> Vec<u8> {
        let length = self.output.metadata().map_or(0, |facts| facts.len());
        let mut bytes = vec![0; length as usize];
        match self.output.read_exact_at(&mut bytes, 0) {
            Ok(()) => bytes,
            Err(_) => Vec::new(),
        }
    }

    fn truncate_output(&self, length: u64) -> io::Result<()> {
        let mut file = &self.output;
        file.set_len(length)?;
        file.seek(SeekFrom::Start(length)).map(drop)
    }
}

fn output_file() -> io::Result<File> {
    let file: OwnedFd = memfd_create(c"ddfuzz-stdout", MFdFlags::MFD_CLOEXEC)?;
    Ok(file.into())
}

/// Returns the addresses, in the file, at which statements begin: each row of the line table at
/// which the source line changes. The first instructions of a function, which store its parameters,
/// belong to no statement. Statements of a standard library are left out if the program has others.
/// Without debug information, returns the starts of all functions.
pub fn statement_starts(info: &DebugInfo) -> Vec<u64> {
    if info.is_empty() {
        let starts = info.code_symbols.iter().map(|(range, _)| range.start);
        return starts.collect();
    }
    let mut starts = Vec::new();
    for function in &info.functions {
        for range in &function.ranges {
            starts.extend(starts_in(info, range));
        }
    }
    if starts.iter().any(|(_, is_own)| *is_own) {
        starts.retain(|(_, is_own)| *is_own);
    }
    let mut starts: Vec<u64> = starts.into_iter().map(|(start, _)| start).collect();
    starts.sort_unstable();
    starts.dedup();
    starts
}

/// Returns the addresses in a range of a function at which statements begin, each with whether the
/// statement is the program's own and not that of a standard library.
fn starts_in(info: &DebugInfo, range: &std::ops::Range<u64>) -> Vec<(u64, bool)> {
    let from = info
        .lines
        .rows
        .partition_point(|row| row.address < range.start);
    let rows = info.lines.rows[from..]
        .iter()
        .take_while(|row| row.address < range.end);
    let rows: Vec<_> = rows.filter(|row| row.line > 0).collect();
    // The first row is that of the prologue, before parameters are stored, unless the
    // first statement begins there as well.
    let skipped = usize::from(rows.len() > 1 && !rows[0].follows);
    let mut last = None;
    let mut starts = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let place = info.place(row.address);
        let is_new = last != place.map(|it| (it.file, it.line));
        if index >= skipped && row.is_statement && is_new || index == skipped && row.is_statement {
            let is_own = place.is_some_and(|it| !is_library_file(it.file));
            starts.push((row.address, is_own));
        }
        last = place.map(|it| (it.file, it.line));
    }
    starts
}

/// Returns the address of a symbol in an ELF file; `None` where the file has no such symbol.
pub(crate) fn symbol_in(path: &Path, name: &str) -> Option<u64> {
    use object::{Object, ObjectSymbol};
    let image = std::fs::read(path).ok()?;
    let file = object::File::parse(&*image).ok()?;
    let mut symbols = file.symbols().chain(file.dynamic_symbols());
    let found = symbols.find(|symbol| {
        symbol.is_definition()
            && symbol
                .name()
                .is_ok_and(|it| it.split('@').next() == Some(name))
    });
    found.map(|symbol| symbol.address())
}
