//! Records of accesses outside of variables, and of variables that are read before anything sets
//! them.

use schemars::JsonSchema;
use serde::Serialize;

use super::FrameRecord;

/// A write that leaves its variable: it begins in the variable, or at an address that was computed
/// from the variable's address, and reaches memory outside of the variable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OverrunRecord {
    /// The statement that writes, and up to three of the calls that led to it, innermost first.
    pub place: Vec<FrameRecord>,
    /// Name of the variable in which the write should have stayed, as C would write it.
    pub variable: String,
    /// Size in bytes of the variable in which the write should have stayed.
    pub bytes: u64,
    /// Index, from 0, of the element to which the write goes, if the variable is an array that has
    /// no element with this index; it may be negative. Null for other writes, such as those that
    /// begin in the variable.
    pub element: Option<i64>,
    /// Number of elements of the variable in which the write should have stayed; 1 if it is not an
    /// array.
    pub elements: u64,
    /// Size of the write in bytes.
    pub written: u64,
    /// Number of written bytes outside of the variable in which the write should have stayed.
    pub beyond: u64,
    /// Names of the variables that contain the bytes counted by `beyond`, three at most; empty if
    /// these bytes are in no variable.
    pub into: Vec<String>,
    /// Name of the function whose return address is overwritten by this write, or by one of those
    /// in `next`; the innermost function, if there are several. Null if no return address is
    /// overwritten.
    pub return_of: Option<String>,
    /// Later statements in the same call of the function that continue to write where this write
    /// ends, such as the statement that writes the terminating zero of a text. The test whose
    /// result is `is_averted` undoes their writes, too.
    pub next: Vec<FrameRecord>,
    /// Whether the failing run does not fail if the bytes counted by `beyond` keep the values that
    /// they had before the write; false if the run then fails in another way.
    pub is_averted: bool,
    /// Whether the statement stays within its variable at other times. This is true if, each time
    /// that the passing run executes the statement, the write has no more bytes than the failing
    /// run's variable has room for. If the passing run does not execute the statement, or if the
    /// sizes are not known, it is true if at least one other execution in the failing run stays
    /// within its variable. Always true for a read that AddressSanitizer reports.
    pub is_unusual: bool,
}

/// A read outside of the array to which its address belongs. With another value read (`instead`),
/// the run does not fail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OverreadRecord {
    /// The read, described like a write: in the fields of the record, the read bytes take the place
    /// of the written bytes. `is_averted` is true: with the value `instead`, the run does not fail.
    #[serde(flatten)]
    pub access: OverrunRecord,
    /// Whether a text is read (a string of C) that has no terminating zero in its array.
    pub is_text: bool,
    /// If `is_text` is true, the statement that wrote the last byte of the array, and up to three
    /// of the calls that led to the statement, innermost first. Empty for other reads, or where the
    /// statement is not known.
    pub filled: Vec<FrameRecord>,
    /// What the run that does not fail reads outside of the array: `the nearest element` of the
    /// array, or `0`. If `is_text` is true, `0` is written to the last byte of the array instead.
    pub instead: String,
}

/// A variable that the failing run reads before anything sets it: no statement, no function of a
/// library and no system call; or, if `is_reused` is true, before anything sets it again in a new
/// use of its record. With another value in the variable, the run does not fail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UnsetRecord {
    /// Name of the variable, as C would write it.
    pub variable: String,
    /// The statement that reads the variable; null where the statement is not known.
    pub read: Option<FrameRecord>,
    /// Value that the variable is given in the run that does not fail: `0`, or `the value of the
    /// passing run`. The variable is given the value at the beginning of its life or, if
    /// `is_reused` is true, when a function has just set other fields of its record anew.
    pub instead: String,
    /// Whether the variable is a local variable or a part of one; false if it is in a heap block,
    /// or if `is_reused` is true.
    pub is_local: bool,
    /// Whether the variable still has its value from an earlier use of its record, such as an
    /// element of a pool: the variable was set, but later a function has set other fields of the
    /// record anew, and nothing has set the variable since.
    pub is_reused: bool,
    /// The place after which nothing sets the variable up to the read: the call that allocates its
    /// heap block, the function whose local variable it is (with the line of the variable's
    /// declaration) or, if `is_reused` is true, the statement that was the last to set it; and up to three of the calls that led to this place,
    /// innermost first.
    pub since: Vec<FrameRecord>,
    /// The statement after which the one that sets the variable is probably missing: of the
    /// function that is the first to set other fields of the same record (or, if `is_reused` is
    /// true, that sets them anew), the last statement that sets such a field; and up to three of
    /// the calls that led to it, innermost first. Empty where nothing sets other fields.
    pub beside: Vec<FrameRecord>,
}

impl UnsetRecord {
    /// Returns true if the life of the variable begins with the calls `calls`, innermost first. The
    /// line of the innermost one does not count: that of a local variable is its declaration's.
    pub fn begins_at(&self, calls: &[FrameRecord]) -> bool {
        let functions = [self.since.first(), calls.first()].map(|it| it.map(|it| &it.function));
        functions[0] == functions[1] && self.since.get(1..) == calls.get(1..)
    }

    /// Returns the place where the statement is missing that would set the variable: where other
    /// fields are set or, if that is not known, where the variable's life begins.
    pub fn place(&self) -> &[FrameRecord] {
        match self.beside.is_empty() {
            true => &self.since,
            false => &self.beside,
        }
    }
}
