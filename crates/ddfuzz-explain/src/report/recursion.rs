//! A recursion that overflows the stack, in the result of an explanation.

use schemars::JsonSchema;
use serde::Serialize;

use super::{FrameRecord, OriginRecord};

/// A recursion that overflows the stack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RecursionRecord {
    /// The calls of one round of the recursion, the outermost one first: the last one calls the
    /// function of the first one again.
    pub round: Vec<FrameRecord>,
    /// Number of calls of the first function of a round on the stack.
    pub calls: u64,
    /// Number of bytes of the stack that the recursion takes.
    pub bytes: u64,
    /// Size in bytes of a larger stack on which the run was tried; null where that says nothing.
    pub larger_stack: Option<u64>,
    /// Whether the run does not fail with the larger stack, so that the recursion has an end; null
    /// where that is not known.
    pub is_ended: Option<bool>,
    /// How the parameters of the first function of a round change from call to call, and the fields
    /// of records to which they point.
    pub values: Vec<CallValueRecord>,
    /// The parameter that repeats, and is read from memory for each next call; null where there is
    /// none.
    pub parameter: Option<String>,
    /// The places from which that parameter is read, in the calls after which it repeats; as C would
    /// write them in these calls. Empty where there is none.
    pub links: Vec<String>,
    /// The last write to one of these places; null where it is not known.
    pub closed: Option<ClosingRecord>,
    /// Conditions that lead to the next call, and which avert the failure when decided the other way
    /// in one of the calls, three at most; those nearest to the next call first.
    pub decided: Vec<FrameRecord>,
    /// Where the first value came from of the first parameter that changes by the same number with
    /// each call; null where there is none, or that is not known.
    pub first: Option<OriginRecord>,
}

/// How a parameter of a recursive function, or a field of a record to which it points, changes from
/// one call to the next, as the first calls and the last ones show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CallValueRecord {
    /// Name of the parameter, or of the field, as C would write it.
    pub name: String,
    /// `same` if the value does not change, `steps` if it changes by the same number each time,
    /// `repeats` if the same values come again, else `changes`.
    pub pattern: String,
    /// The number by which the value changes with each call; null for another pattern.
    pub step: Option<i64>,
    /// Number of calls after which the value comes again; null for another pattern.
    pub period: Option<usize>,
    /// Number, from 1, of the call from which on the value follows the pattern up to the last call;
    /// null where that is not one of the first calls.
    pub since: Option<usize>,
    /// The values from that call on (or from the first one), eight at most; of those that repeat,
    /// one round.
    pub values: Vec<String>,
    /// The value in the last call; null where it was not seen.
    pub last: Option<String>,
}

/// The write that closes a cycle of data through which a recursion goes without an end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ClosingRecord {
    /// The statement that writes, and up to three of the calls that led to it, innermost first.
    pub place: Vec<FrameRecord>,
    /// The written place, as C would write it in the call that reads it.
    pub link: String,
    /// The value of the parameter in that call.
    pub holder: String,
    /// Whether the run does not fail when the place keeps its value from before.
    pub is_averted: bool,
}
