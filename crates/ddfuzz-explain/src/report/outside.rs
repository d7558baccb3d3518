//! Records of accesses outside of variables, and of variables that are read before anything sets
//! them.

use schemars::JsonSchema;
use serde::Serialize;

use super::FrameRecord;

/// A write that begins in a variable, or whose address was computed from a variable's address, and
/// that reaches into other variables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OverrunRecord {
    /// The statement that writes, and up to three of the calls that led to it, innermost first.
    pub place: Vec<FrameRecord>,
    /// Name of the variable in which the write should have stayed, as C would write it.
    pub variable: String,
    /// Size in bytes of the variable in which the write should have stayed.
    pub bytes: u64,
    /// Number of the element, if the write is to an element that the variable, an array, does not
    /// have. Null if the write begins in the variable.
    pub element: Option<i64>,
    /// Number of elements of the variable in which the write should have stayed; 1 if it is not an
    /// array.
    pub elements: u64,
    /// Number of bytes that are written.
    pub written: u64,
    /// Number of written bytes outside of the variable in which the write should have stayed.
    pub beyond: u64,
    /// Names of the variables that have the bytes counted by `beyond`, three at most; empty if
    /// there are none.
    pub into: Vec<String>,
    /// Whether the failing run does not fail when the bytes counted by `beyond` keep their values;
    /// false if it then fails in another way.
    pub is_averted: bool,
    /// Whether the statement otherwise stays within the bounds: whether, each time that the passing
    /// run executes it, it writes no more than the failing run's variable has room for. If the
    /// passing run does not execute it, or if that cannot be told, whether it stays within the
    /// bounds at another time of the failing run. Always true for a read that AddressSanitizer
    /// reports.
    pub is_unusual: bool,
}

/// A read outside of the array to which its address belongs. With something else in place of what
/// is read there, the run does not fail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OverreadRecord {
    /// The read. Its fields are those of a write: what they say of written bytes holds for the
    /// bytes that are read. `is_averted` is true: with what `instead` says, the run does not fail.
    #[serde(flatten)]
    pub access: OverrunRecord,
    /// Whether a text is read for which the array has no terminating zero.
    pub is_text: bool,
    /// The statement that wrote the last byte of an array with such a text, and up to three of the
    /// calls that led to it, innermost first; empty where that is not known.
    pub filled: Vec<FrameRecord>,
    /// What is in place of what is read, in the run that does not fail: `0`, `the nearest element`
    /// of the array. For a text, it is in the last byte of the array.
    pub instead: String,
}

/// A variable that is read before anything sets it: no statement, no function of a library and no
/// system call. With another value there from the beginning of its life, the run does not fail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UnsetRecord {
    /// Name of the variable, as C would write it.
    pub variable: String,
    /// The statement that reads it; null where that is not known.
    pub read: Option<FrameRecord>,
    /// Value that is put into the variable in the run that does not fail: `0`, or `the value of the
    /// passing run`. It is put there when the variable's life begins or, if `is_reused` is true,
    /// when a function has just set other fields of its record anew.
    pub instead: String,
    /// Whether the variable is local or a part of a local one; false if it is in a heap block, or
    /// if `is_reused` is true.
    pub is_local: bool,
    /// Whether the variable was set, but only before a function has last set other fields of its
    /// record anew, as where an element of a pool is used again.
    pub is_reused: bool,
    /// Since when nothing has set the variable: the call that allocated its heap block, the
    /// function whose local variable it is or, if `is_reused` is true, the statement that has set
    /// it last; and up to three of the calls that led to it, innermost first.
    pub since: Vec<FrameRecord>,
    /// The place where a function first sets other fields of the same record or, if `is_reused` is
    /// true, sets those that were examined anew: the last statement of this function that does so,
    /// and up to three of the calls that led to it, innermost first; empty where there is none.
    pub beside: Vec<FrameRecord>,
}

impl UnsetRecord {
    /// Returns the place where the statement is missing that would set the variable: where other
    /// fields are set or, if that is not known, where the variable's life begins.
    pub fn place(&self) -> &[FrameRecord] {
        match self.beside.is_empty() {
            true => &self.since,
            false => &self.beside,
        }
    }
}
