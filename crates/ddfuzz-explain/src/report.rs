//! The result of an explanation, as JSON has it.

mod outside;
mod recursion;

pub use outside::{OverreadRecord, OverrunRecord, UnsetRecord};
pub use recursion::{CallValueRecord, ClosingRecord, RecursionRecord};

use ddfuzz_delta::{changes, one_change};
use ddfuzz_model::files::Base64;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::chain::Confidence;
use crate::difference_story::differing;
use crate::plan::ByHand;

/// The result of an explanation: the failure, and the cause–effect chain of variables that led to
/// it, or why there is none.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Explanation {
    /// Why no chain can be given; null if there is a chain.
    pub refused: Option<Refusal>,
    /// How and where the program failed.
    pub crash: CrashRecord,
    /// The failing and the passing input, and the difference between them.
    pub input: InputRecord,
    /// The statements of the program at which to look first, the best one first; five at most.
    pub look_first: Vec<SuspectRecord>,
    /// The variables that carried the failure, in the order of time.
    pub chain: Vec<LinkRecord>,
    /// The statement after which the runs went different ways, so that only the failing run came to
    /// the place of its failure; null if both came there, or if that is not known.
    pub parted: Option<FrameRecord>,
    /// Origin, in the failing run, of the value on which the decision of the statement `parted`
    /// depends; null where that is not known.
    pub decided: Option<OriginRecord>,
    /// The heap block past whose end the failing run has written; null where none is known.
    pub overflow: Option<OverflowRecord>,
    /// A write of the failing run that begins in one variable and reaches into another, and without
    /// which the run does not fail so; null where none is known.
    pub overrun: Option<OverrunRecord>,
    /// A read of the failing run outside of an array; with another value read, the run does not
    /// fail. Null where no such read is known.
    pub overread: Option<OverreadRecord>,
    /// A variable that the failing run reads before anything sets it, so that its value is left
    /// over from an earlier use of the memory; with another value, the run does not fail. Null
    /// where no such variable is known.
    pub unset: Option<UnsetRecord>,
    /// The bad access that AddressSanitizer reports; null where it reports none.
    pub access: Option<AccessRecord>,
    /// The recursion by which the failing run overflows its stack; null where it does not, or where
    /// none is seen.
    pub recursion: Option<RecursionRecord>,
    /// A call of `free` without which the failing run does not fail, and up to three of the calls
    /// that led to it, innermost first; empty where none is known.
    pub freed_early: Vec<FrameRecord>,
    /// A call of `realloc`, and up to three of the calls that led to it, innermost first. The
    /// failing run does not fail if the call leaves its block at the old address. Empty if no such
    /// call is known. If `is_copied` is true, the call is one of `free` instead, for a block whose
    /// content was copied to a new block before.
    pub moved_early: Vec<FrameRecord>,
    /// Whether the call in `moved_early` is one of `free`, for a block whose content was copied to
    /// a new block before, as when a vector of C++ grows. The failing run does not fail if the old
    /// block is not freed and is given the content of the new one.
    pub is_copied: bool,
    /// Number of successive calls of `free` or `realloc`, among them the one in `freed_early` or
    /// `moved_early`, without which together the failing run does not fail; 1 if leaving out that
    /// call alone is enough. 0 if both fields are empty, or if the run without the call still
    /// fails, but without the access that AddressSanitizer reported before.
    pub freed_together: usize,
    /// The first use of the freed or moved block at its old address, after the call in
    /// `freed_early` or `moved_early`, and up to three of the calls that led to the use, innermost
    /// first; empty if no use is seen.
    pub used_late: Vec<FrameRecord>,
    /// Origin of the value with which the failing run crashed, such as a pointer to no valid memory
    /// or a divisor; null where that is not known.
    pub origin: Option<OriginRecord>,
    /// Conditions that led the run to its failure, and that avert the failure when decided the
    /// other way in a run of the failing input; the nearest to the failure come first. At most one
    /// of them keeps the run from executing the failing statement.
    pub switched: Vec<SwitchedRecord>,
    /// Statements about which something is odd in the failing run, the most telling first: one that
    /// changes the field by which a record is filed in a table, writes to memory that was freed, or
    /// chooses the address to which a value is written. Empty if nothing is odd, or if the run is
    /// too long to be recorded.
    pub observed: Vec<SuspectRecord>,
    /// Conditions of the failing run that avert the failure when decided the other way; at most 300
    /// are tried, and at most six given. Conditions after which the run still reaches the failing
    /// statement come first, and among these the ones on which the fewest executed statements
    /// depend. A return of a function that only returns 0 and 1 is also a condition.
    pub critical: Vec<CriticalRecord>,
    /// Mutants of the program that keep the failing run from failing. In a mutant, one instruction
    /// does something else each time it is executed. The mutants that change least in runs of other
    /// inputs come first; one for each source line, at most six.
    pub mutants: Vec<MutantRecord>,
    /// The statement that best tells runs that fail from others, among runs of inputs that differ
    /// little: all runs that fail execute it, and at most a quarter of the others. Null if there is
    /// no such statement.
    pub telling: Option<TellingRecord>,
    /// The statements on which the failure depends by values, addresses and conditions, the nearest
    /// to the failure first, at most sixteen: of each function, the nearest one that computes a
    /// number, and the nearest one that decides. Empty if the run is too long to be recorded.
    pub depends: Vec<FrameRecord>,
    /// Numbers of the points in time (statement executions) of both runs.
    pub points: PointsRecord,
    /// The points at which states were compared, in the order of time.
    pub examined: Vec<ExaminedRecord>,
    /// Number of tests: forks of a stopped run that went on with a changed state.
    pub tests: u64,
    /// Number of runs of the failing input in which one instruction was skipped, or one condition
    /// was decided the other way.
    pub changed_runs: u64,
    /// Source files that are newer than the program: their lines need not be those of the program.
    pub newer_sources: Vec<String>,
    /// Number of runs of mutants of the program.
    pub mutant_runs: u64,
    /// Whether the time was over before all variables of the chain were found and tested. Untested
    /// variables are called not confirmed.
    pub out_of_time: bool,
    /// What was not tried, or not completely, because the time for it was over; empty if all was
    /// tried.
    pub untried: Vec<String>,
    /// The critical slice; null if none was requested.
    pub slice: Option<SliceRecord>,
    /// Functions that only the failing run enters.
    pub only_failing: Vec<String>,
    /// Wall time of the explanation, in milliseconds.
    pub wall_ms: u64,
    /// The two memory graphs side by side, as HTML; empty where there are none.
    #[serde(skip)]
    pub drawing: String,
}

/// A statement that tells runs that fail from others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TellingRecord {
    /// The statement; if several tell the runs apart equally well, the first of them in the failing
    /// run.
    pub place: FrameRecord,
    /// Number of runs that fail, among runs of inputs that differ little; all of them execute the
    /// statement.
    pub failing: usize,
    /// Number of runs without failure that execute the statement.
    pub passing: usize,
    /// Number of all runs without failure, of inputs that differ little.
    pub others: usize,
}

/// The reason why an explanation has no cause–effect chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Refusal {
    /// Why there is no cause–effect chain, as a sentence.
    pub reason: String,
    /// What the user can do to get a chain, as a sentence.
    pub hint: String,
}

/// The failure that is explained: how and where the program ended.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct CrashRecord {
    /// Name of the program's file.
    pub program: String,
    /// Class of the crash, such as `segv`; null for another failure.
    pub class: Option<String>,
    /// How the failing run ended: its exit status or signal, as text.
    pub ended: String,
    /// Function of the program in which the run failed; null if the stack has none.
    pub function: Option<String>,
    /// Source file of the statement at which the run failed, as the debug information names it.
    pub file: Option<String>,
    /// Line in the source file at which the run failed.
    pub line: Option<u64>,
    /// The text of the source line at which the run failed; null if the file cannot be read.
    pub source: Option<String>,
    /// Functions of the program on the stack, innermost first; 64 at most.
    pub stack: Vec<FrameRecord>,
    /// What a sanitizer reports about the failure; null without a report.
    pub message: Option<String>,
    /// Name of the file of the library in whose code the run failed, which is not examined; null if
    /// it failed in code of the program itself, or of the system.
    pub library: Option<String>,
    /// The line of the output that makes the run a failure, quoted; null if the failure is a crash
    /// or an exit status.
    pub wrong: Option<String>,
    /// Number of runs of the failing input that ended in the same way, including the first; 3 if
    /// all did.
    pub replays: u32,
}

/// A place in the program's code, such as a frame on the stack: function, file and line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FrameRecord {
    /// Name of the function that contains the code.
    pub function: String,
    /// Source file of the code; null where it is unknown.
    pub file: Option<String>,
    /// Line of the code in the source file; null where it is unknown.
    pub line: Option<u64>,
}

/// The failing and the passing input, and the difference between them.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct InputRecord {
    /// Ranges in which the inputs differ, in order.
    pub difference: Vec<InputDifference>,
    /// The failing input; null where the command lines differ, or the explanation was refused
    /// before the inputs were compared.
    pub failing: Option<Base64>,
    /// The passing input; null if `failing` is null.
    pub passing: Option<Base64>,
    /// Whether the passing input is closer to the failing one than the one that the user gave.
    pub is_closer: bool,
}

/// A range of the failing input, and what the passing input has in its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct InputDifference {
    /// Offset of the range's first byte in the failing input, and of the byte after its last one.
    pub at: [u64; 2],
    /// The bytes of the range in the failing input; empty if the passing input only has more bytes.
    pub removed: Base64,
    /// The bytes of the passing input in place of `removed`; empty if it only lacks bytes.
    pub inserted: Base64,
}

/// A link of a cause–effect chain: a variable that carried the failure, with its values in both
/// runs.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct LinkRecord {
    /// Name of the variable, as C would write it.
    pub variable: String,
    /// Function of the local variable with which the name begins; null if it is not a local one.
    pub local_of: Option<String>,
    /// Name of the variable's type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Function in which the variable's value was written, or at whose statement the difference
    /// shows.
    pub function: Option<String>,
    /// Source file of the statement that wrote the value, or at which the difference shows.
    pub file: Option<String>,
    /// Source line of the statement that wrote the value, or at which the difference shows.
    pub line: Option<u64>,
    /// The variable's value in the failing run.
    pub failing: String,
    /// The variable's value in the passing run.
    pub passing: String,
    /// Whether the variable carried the failure: `confirmed`, `one way only` or `not confirmed`.
    #[serde(serialize_with = "word")]
    #[schemars(with = "String")]
    pub confidence: Confidence,
    /// What wrote the value in the failing run; null where that was not found.
    pub writer: Option<WriterRecord>,
    /// Whether the same statement wrote the variable last in both runs, which have written it equally
    /// often or are in different rounds of a loop, so that the written values differ. False also if the failing run has written
    /// it since the previous link, where this is not looked for.
    pub in_both: bool,
    /// If the variable is a pointer to the same address in both runs, and the heap block there
    /// differs: the calls that led to the allocation of this block in the failing run, innermost
    /// first. Empty otherwise, and if the block was freed or its allocation was not seen.
    pub allocated: Vec<FrameRecord>,
    /// For such a pointer, the calls that led to the last free of a block at this address in the
    /// failing run, innermost first: before the allocation in `allocated`, if that is not empty.
    /// Empty if no block there was freed.
    pub freed: Vec<FrameRecord>,
    /// Offset in the input of the first differing byte of the variable's value, if the kernel has
    /// copied this byte from the input to the variable; null otherwise.
    pub input_offset: Option<u64>,
    /// The calls that led to the statement which wrote the value, innermost first; at most three.
    pub calls: Vec<FrameRecord>,
    /// Where the value of the variable came from: the statement that made it. If this statement
    /// only copied the value (`copies`), the statements from which it was copied are in `earlier`.
    /// Null for all links but the last confirmed one, and if the origin is not known.
    pub made_of: Option<OriginRecord>,
    /// If the statement that wrote the value got it from a called function: the statement of that
    /// function which computed the value. Null otherwise, or where that was not found.
    pub returned: Option<FrameRecord>,
    /// Origin of the value that the writer read from memory, if it read from another place than in
    /// the passing run, because a pointer or an index differed. Null if it read from the same
    /// place, or if that is not known.
    pub selected: Option<OriginRecord>,
    /// The last statement before the runs went different ways, so that only one of them executed
    /// the writer. If no writer is known, the first statement since the previous link after which
    /// the runs went different ways. Null if both runs executed the writer, or if that is not
    /// known.
    pub parted: Option<FrameRecord>,
    /// Origin, in the failing run, of the value on which the decision of the statement `parted`
    /// depends; null where that is not known.
    pub decided: Option<OriginRecord>,
    /// If only the passing run writes a new value: the statement that wrote the old value, which
    /// the variable keeps in the failing run. Null otherwise, or where nothing wrote it.
    pub kept: Option<FrameRecord>,
    /// If only the passing run writes another value: statements that the failing run executes in
    /// place of this write, from where the runs went different ways to where they meet again. First
    /// come writes to other fields of the same record, then statements of the function where the
    /// runs went different ways, beginning with those that write more than local variables. At most
    /// six; empty if the failing run writes the value.
    pub instead: Vec<FrameRecord>,
    /// If the values in both runs are from different rounds of a loop, so that they need not
    /// correspond: that loop, the outermost one of several. Null if the rounds are the same, or if
    /// that is not known.
    pub rounds: Option<RoundsRecord>,
    /// The statement at which the runs were stopped to test the variable.
    pub point: PointRecord,
    /// How a user can set the variable at that statement to its failing value.
    #[serde(skip)]
    pub by_hand: ByHand,
}

/// A loop of which two runs are in different rounds when their states are compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RoundsRecord {
    /// The first line of the loop that a run has executed.
    pub at: FrameRecord,
    /// Number of the round in which the failing run is, from 1.
    pub failing: u64,
    /// Number of the round in which the passing run is, from 1.
    pub passing: u64,
}

fn word<S: Serializer>(confidence: &Confidence, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(confidence.word())
}

/// What wrote the value of a variable.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema)]
pub enum WriterRecord {
    /// This statement of the program wrote the value.
    Statement(FrameRecord),
    /// This statement of the program wrote the value, in the passing run only: in the failing run
    /// nothing wrote it.
    Missed(FrameRecord),
    /// The program read the value from its input.
    Input,
    /// The kernel wrote the value, in a system call that does not read the input.
    Kernel,
}

/// A statement that wrote a variable in one run only, as it is serialized: the place, and the name
/// of the run.
#[derive(Serialize)]
struct MissedWrite<'a> {
    #[serde(flatten)]
    place: &'a FrameRecord,
    run: &'static str,
}

impl Serialize for WriterRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            WriterRecord::Statement(place) => place.serialize(serializer),
            WriterRecord::Missed(place) => MissedWrite {
                place,
                run: "passing",
            }
            .serialize(serializer),
            WriterRecord::Input => serializer.serialize_str("input"),
            WriterRecord::Kernel => serializer.serialize_str("kernel"),
        }
    }
}

/// A heap block past whose end the failing run has written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OverflowRecord {
    /// Size of the block that the program asked for, in bytes.
    pub bytes: u64,
    /// The call that allocated the block, and up to three of the calls that led to it, innermost
    /// first.
    pub allocated: Vec<FrameRecord>,
    /// Number of the innermost places in `allocated` whose functions return the new block to their
    /// caller.
    pub wrappers: usize,
    /// Where the size of the block came from; null where the call gives it as a constant, or where
    /// that is not known.
    pub size: Option<OriginRecord>,
    /// Whether the call that allocates the block passes the value of `size` on unchanged.
    pub passes_size: bool,
    /// Origin of the value that decided how much was written: a length, the bound of a loop or an
    /// index; null where that is not known.
    pub extent: Option<OriginRecord>,
    /// The statement that wrote past the end of the block, over the size field of the next block;
    /// or that crashed by an access past the end, at an address computed from the block's pointer.
    pub writer: FrameRecord,
    /// Whether the statement `writer` crashed by a read past the end of the block, and wrote
    /// nothing.
    pub reads: bool,
    /// Whether the failing run no longer fails in the same way when the overwritten size field of
    /// the allocator keeps its value.
    pub is_averted: bool,
}

/// A bad access that AddressSanitizer reports, and the object to which it belongs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AccessRecord {
    /// The kind of error, as AddressSanitizer names it: `heap-buffer-overflow`, `double-free`.
    pub kind: String,
    /// The statement that makes the access, and up to three of the calls that led to it, innermost
    /// first.
    pub place: Vec<FrameRecord>,
    /// Whether the access writes.
    pub writes: bool,
    /// Number of bytes that are accessed; 0 where a block is freed.
    pub bytes: u64,
    /// Name of the accessed memory, as C would write it; null where no variable leads there.
    pub name: Option<String>,
    /// Number of the accessed element, from 0, if the object has several; it may be one that the
    /// object does not have. Null where it has none, or where that is not known.
    pub element: Option<i64>,
    /// Number of elements of the object; 1 if it is not an array.
    pub elements: u64,
    /// Name of the variable with the number `element`; null where none is known.
    pub index: Option<String>,
    /// Where the object is: `heap`, `stack` or `global`; null where no object is known.
    pub region: Option<String>,
    /// Size of the object in bytes: of a heap block, or of a variable.
    pub object_bytes: u64,
    /// Number of bytes from the beginning of the object to the access.
    pub distance: i64,
    /// The call by which a heap block was allocated, and up to three of those that led to it,
    /// innermost first; empty for other objects.
    pub allocated: Vec<FrameRecord>,
}

impl AccessRecord {
    /// Returns true if the access is one of a heap block that was freed before, or frees it again.
    pub fn is_of_freed(&self) -> bool {
        self.kind == "heap-use-after-free" || self.kind == "double-free"
    }

    /// Returns true if the access is outside of a local or global variable, beside which it lies.
    pub fn is_beside_variable(&self) -> bool {
        let is_outside = self.distance < 0 || self.distance as u64 + self.bytes > self.object_bytes;
        is_outside && self.region.as_deref().is_some_and(|it| it != "heap")
    }
}

impl OverflowRecord {
    /// Returns the calls by which the block was allocated, without those in functions that only return
    /// the new block to their caller.
    pub fn asked(&self) -> &[FrameRecord] {
        &self.allocated[self.passed_on()..]
    }

    /// Returns the number of the innermost places in `allocated` that only pass the size on, and
    /// return the new block.
    fn passed_on(&self) -> usize {
        match self.passes_size {
            true => self.wrappers.min(self.allocated.len()),
            false => 0,
        }
    }

    /// Returns true if a function, called in another one for the block, returns it to its caller.
    pub fn is_wrapper(&self, function: &str) -> bool {
        let mut wrappers = self.allocated.iter().take(self.passed_on());
        wrappers.any(|it| it.function == function)
    }

    /// Returns the statement that reads the size of the overflowed block from memory; `None` if it
    /// is in the function that allocates the block, or is not known.
    pub fn size_read_by(&self) -> Option<&FrameRecord> {
        let read = self.size.as_ref()?.read.as_ref();
        let first = self.allocated.first().map(|it| &it.function);
        read.filter(|it| Some(&it.function) != first && !self.is_wrapper(&it.function))
    }
}

/// The origin of a value that decided how the failing run went on or crashed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OriginRecord {
    /// The statement that wrote or computed the value, and up to three of the calls that led to it,
    /// innermost first.
    pub written: Vec<FrameRecord>,
    /// The statement that read the value from memory; null where the value was not in memory.
    pub read: Option<FrameRecord>,
    /// Whether nothing has set the memory from which the value was read: `written` then has the
    /// call that allocated the heap block, or the call of the function whose local variable it is.
    pub unset: bool,
    /// Whether the passing run also executes the statement that wrote the value, the same number of
    /// times. False if that is not known, and for all values but the one with which the run has
    /// failed.
    pub in_both: bool,
    /// Whether the statement that wrote the value has only copied it from other memory.
    pub copies: bool,
    /// Whether the statement has computed a number below zero from numbers that are not below zero,
    /// or a number that is too large for the place where it is stored.
    pub out_of_range: bool,
    /// Whether a call of `free` has written the value: it is read from a block that is no longer live.
    pub freed: bool,
    /// Number, from 0, of the operand that depends on this value, among the values that the failing
    /// instruction uses or the failed condition compares.
    pub operand: usize,
    /// Whether the operand with the number `operand` depends on this value only as a pointer or
    /// index with which it was read.
    pub selects: bool,
    /// Origins of the values on which this value depends: those from which it was computed, and the
    /// pointers and indices with which it was read; the latest first, at most eleven.
    pub earlier: Vec<OriginRecord>,
}

/// A statement at which to look first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SuspectRecord {
    /// The statement, and the call that led to it if that call is in another function.
    pub place: Vec<FrameRecord>,
    /// What was observed of the statement, as the end of a sentence.
    pub why: String,
    /// Whether a changed run has shown that the failure depends on the statement; else it is a suspicion.
    pub tested: bool,
}

/// A condition of the failing run that averts the failure when it is decided the other way, found
/// among all conditions of the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CriticalRecord {
    /// The statement that decides, and up to two of the calls that led to it, innermost first.
    pub place: Vec<FrameRecord>,
    /// Which execution of the conditional jump in the failing run, counted from 1, averts the
    /// failure when it is decided the other way.
    pub execution: u64,
    /// Whether the run comes to the failing statement, after the other decision, as often as the
    /// failing run did.
    pub reaches: bool,
    /// Whether the output with the other decision begins with all that the failing run wrote before
    /// its failure.
    pub is_like: bool,
    /// Status with which the run with the other decision exits.
    pub status: Option<i32>,
    /// Number of executions of statements and conditions that depend on the decision.
    pub decided: usize,
    /// Values of integer variables at the moment of the decision, such as `n is 30`; for the first
    /// three conditions of a result, empty for later ones. Given are at most two variables that the
    /// source line of the condition names or, if the failing statement is in the same function, the
    /// source line of that statement.
    pub values: Vec<String>,
}

/// A mutant of the program (one instruction does something else each time it is executed) that
/// keeps the failing run from failing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MutantRecord {
    /// The statement that is changed.
    pub place: FrameRecord,
    /// The call of the statement's function in which alone the statement is changed, and the
    /// inlined calls around it; empty if the statement is changed in all calls.
    pub calls: Vec<FrameRecord>,
    /// What the changed statement does in place of its usual effect, as the end of a sentence:
    /// `with two arguments exchanged`.
    pub change: String,
    /// Whether the output of the mutant on the failing input begins with all that the failing run
    /// wrote before its failure.
    pub is_like: bool,
    /// Status with which the mutant exits on the failing input.
    pub status: Option<i32>,
    /// Number of other inputs on which the unchanged program does not fail and executes the
    /// statement.
    pub passing: usize,
    /// Number of the inputs counted by `passing` on which the mutant ends as the program does, with
    /// the same output.
    pub alike: usize,
    /// Number of other inputs on which the unchanged program fails and executes the statement.
    pub failing: usize,
    /// Number of the inputs counted by `failing` on which the mutant does not fail.
    pub mended: usize,
}

/// A condition of the failing run that averts the failure when it is decided the other way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SwitchedRecord {
    /// The statement that decides.
    pub condition: FrameRecord,
    /// Origin of the value on which the condition decides; null where that is not known.
    pub by: Option<OriginRecord>,
}

/// A point in time at which a run is stopped: a statement, and how often it has been reached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PointRecord {
    /// Function that contains the statement.
    pub function: Option<String>,
    /// Source file of the statement; null where it is unknown.
    pub file: Option<String>,
    /// Source line of the statement; null where it is unknown.
    pub line: Option<u64>,
    /// How often the passing run has reached the statement, including this time.
    pub nth: u64,
    /// Address of the statement in a process without address randomization.
    pub address: u64,
}

/// A point at which the states of both runs were compared, and the result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ExaminedRecord {
    /// The statement at which the runs were stopped.
    pub point: PointRecord,
    /// Number of variables that differ between both runs at the point.
    pub differences: usize,
    /// Number of tests that were made at the point.
    pub tests: usize,
    /// Name of the variable that causes the failure at the point; null where none was found.
    pub cause: Option<String>,
}

/// Numbers of the points in time at which both runs can be stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PointsRecord {
    /// Number of points (statement executions) of the failing run.
    pub failing: usize,
    /// Number of points (statement executions) of the passing run.
    pub passing: usize,
    /// Number of points that both runs have.
    pub matching: usize,
    /// Number of points at which tests found a variable that matters for the failure.
    pub used: usize,
    /// Number of points at which states were compared without finding a variable that matters for
    /// the failure.
    pub skipped: usize,
}

/// A critical slice: the executed statements that a failure, or an output, needs.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct SliceRecord {
    /// Number of statement executions in the failing run that a slice may leave out.
    pub events: usize,
    /// The statement executions that the slice keeps: without all others, the failure or the output
    /// is the same.
    pub kept: Vec<EventRecord>,
    /// Number of tests that the search for the slice made.
    pub tests: u64,
}

/// An execution of a statement that a critical slice keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EventRecord {
    /// Number of the execution among all statement executions of the run, from 1.
    pub event: usize,
    /// Source file of the statement; null where it is unknown.
    pub file: Option<String>,
    /// Source line of the statement; null where it is unknown.
    pub line: Option<u64>,
}

/// Returns the ranges in which two inputs differ: of three ways to compare them the one by which
/// the fewest bytes differ. These are byte by byte (only inputs of the same length), with the
/// fewest bytes removed and inserted, and as one range between their common beginning and their
/// common end.
pub fn input_difference(failing: &[u8], passing: &[u8]) -> Vec<InputDifference> {
    let entry = |at: std::ops::Range<usize>, other: std::ops::Range<usize>| InputDifference {
        at: [at.start as u64, at.end as u64],
        removed: Base64(failing[at].to_vec()),
        inserted: Base64(passing[other].to_vec()),
    };
    let whole = one_change(failing, passing);
    let whole = vec![entry(whole.at, whole.with)];
    let aligned = changes(failing, passing).into_iter();
    let aligned: Vec<InputDifference> = aligned.map(|it| entry(it.at, it.with)).collect();
    let mut ways = vec![whole, aligned];
    if failing.len() == passing.len() {
        let mut found: Vec<std::ops::Range<usize>> = Vec::new();
        for at in (0..failing.len()).filter(|at| failing[*at] != passing[*at]) {
            match found.last_mut() {
                Some(last) if last.end == at => last.end += 1,
                _ => found.push(at..at + 1),
            }
        }
        let found = found.into_iter();
        ways.insert(0, found.map(|range| entry(range.clone(), range)).collect());
    }
    if failing == passing {
        return Vec::new();
    }
    let best = ways.into_iter().min_by_key(|it| differing(it));
    best.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_compared_by_ranges() {
        let ranges = |one: &[u8], other: &[u8]| -> Vec<[u64; 2]> {
            input_difference(one, other)
                .into_iter()
                .map(|it| it.at)
                .collect()
        };
        assert_eq!(ranges(b"abcdef", b"axcdyz"), [[1, 2], [4, 6]]);
        assert_eq!(ranges(b"abc", b"ac"), [[1, 2]]);
        assert_eq!(ranges(b"aa", b"aaa"), [[2, 2]]);
        assert_eq!(ranges(b"", b""), Vec::<[u64; 2]>::new());
        assert_eq!(ranges(b"-care -dog", b"-car dog"), [[4, 5], [6, 7]]);
        assert_eq!(ranges(b"a<b>c<d>", b"ab>cd>."), [[1, 2], [5, 6], [8, 8]]);
    }
}
