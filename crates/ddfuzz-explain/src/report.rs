//! The result of an explanation, as JSON has it.

use ddfuzz_model::files::Base64;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::chain::Confidence;

/// An explanation of a failure.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Explanation {
    /// Why no chain can be given; null where one is.
    pub refused: Option<Refusal>,
    /// The failure.
    pub crash: CrashRecord,
    /// The difference between the inputs.
    pub input: InputRecord,
    /// The variables that carried the failure, in the order of time.
    pub chain: Vec<LinkRecord>,
    /// The statement after which the runs went different ways, so that only the failing one came to
    /// where it failed; null where both did, or where that is not known.
    pub parted: Option<FrameRecord>,
    /// Where the value came from that decided there how the failing run went on; null where that is not
    /// known.
    pub decided: Option<OriginRecord>,
    /// The heap block behind whose end the failing run has written; null where none is known.
    pub overflow: Option<OverflowRecord>,
    /// A call of `free` without which the failing run does not fail, and up to three of the calls that led
    /// to it, innermost first; empty where none is known.
    pub freed_early: Vec<FrameRecord>,
    /// A call of `realloc` without whose move of a block the failing run does not fail, and up to three of
    /// the calls that led to it, innermost first; empty where none is known.
    pub moved_early: Vec<FrameRecord>,
    /// Where the value came from by which the failing run crashed: a pointer that leads nowhere, or a
    /// divisor; null where that is not known.
    pub origin: Option<OriginRecord>,
    /// The points in time of both runs.
    pub points: PointsRecord,
    /// The points at which states were compared, in the order of time.
    pub examined: Vec<ExaminedRecord>,
    /// Number of tests: forks of a stopped run that went on with a changed state.
    pub tests: u64,
    /// The critical slice; null where none was asked for.
    pub slice: Option<SliceRecord>,
    /// Functions that only the failing run enters.
    pub only_failing: Vec<String>,
    /// Wall time of the explanation, in milliseconds.
    pub wall_ms: u64,
    /// The two memory graphs side by side, as HTML; empty where there are none.
    #[serde(skip)]
    pub drawing: String,
}

/// Why there is no chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Refusal {
    /// The reason, a sentence.
    pub reason: String,
    /// What would help, a sentence.
    pub hint: String,
}

/// The failure that is explained.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct CrashRecord {
    /// Name of the program's file.
    pub program: String,
    /// Class of the crash, such as `segv`; null for another failure.
    pub class: Option<String>,
    /// How the failing run ended.
    pub ended: String,
    /// Function of the program in which it failed; null where the stack has none.
    pub function: Option<String>,
    /// Source file, as the debug information names it.
    pub file: Option<String>,
    /// Line in the source file.
    pub line: Option<u64>,
    /// The text of that line, where the file can be read.
    pub source: Option<String>,
    /// Functions of the program on the stack, innermost first; 64 at most.
    pub stack: Vec<FrameRecord>,
    /// What a sanitizer reports; null without one.
    pub message: Option<String>,
    /// Number of runs of the failing input that ended in the same way, the first included; 3 if all
    /// did.
    pub replays: u32,
}

/// A frame of the program on the stack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FrameRecord {
    /// Name of the function.
    pub function: String,
    /// Source file.
    pub file: Option<String>,
    /// Line in the source file.
    pub line: Option<u64>,
}

/// The difference between the inputs.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct InputRecord {
    /// Ranges in which the inputs differ, in order.
    pub difference: Vec<InputDifference>,
    /// The failing input; null where the command lines differ, or the explanation was refused
    /// before the inputs were compared.
    pub failing: Option<Base64>,
    /// The passing input; null where the failing one is.
    pub passing: Option<Base64>,
    /// Whether the passing input is closer to the failing one than the one that was given.
    pub is_closer: bool,
}

/// A range of the failing input, and what the passing input has in its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct InputDifference {
    /// Offset of the range's first byte in the failing input, and of the first byte after it.
    pub at: [u64; 2],
    /// The bytes of the range in the failing input; empty where the passing one only has more.
    pub removed: Base64,
    /// The bytes of the passing input in place of `removed`; empty where it only lacks those.
    pub inserted: Base64,
}

/// A variable in a chain.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LinkRecord {
    /// Name of the variable, as C would write it.
    pub variable: String,
    /// Name of its type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Function in which the value was written, or at whose statement the difference shows.
    pub function: Option<String>,
    /// Source file.
    pub file: Option<String>,
    /// Line in the source file.
    pub line: Option<u64>,
    /// Value in the failing run.
    pub failing: String,
    /// Value in the passing run.
    pub passing: String,
    /// Whether the variable carried the failure: `confirmed`, `one way only` or `not confirmed`.
    #[serde(serialize_with = "word")]
    #[schemars(with = "String")]
    pub confidence: Confidence,
    /// Who wrote the value in the failing run; null where that was not found.
    pub writer: Option<WriterRecord>,
    /// The statement of a called function that computed the value, which the writer got as its result;
    /// null where that was not found.
    pub returned: Option<FrameRecord>,
    /// Where the value came from that the writer read from another place than in the passing run; null
    /// where it did not, or where that is not known.
    pub selected: Option<OriginRecord>,
    /// The statement after which the runs went different ways, so that only one of them executed the
    /// writer, or where no writer is known, the first one since the variable before; null where both
    /// executed the writer, or where that is not known.
    pub parted: Option<FrameRecord>,
    /// Where the value came from that decided there how the failing run went on; null where that is not
    /// known.
    pub decided: Option<OriginRecord>,
    /// The statement of the failing run that wrote the value which it keeps, where only the passing run
    /// writes another one; null elsewhere, or where nobody wrote it.
    pub kept: Option<FrameRecord>,
    /// The statement at which the runs were stopped to test the variable.
    pub point: PointRecord,
}

fn word<S: Serializer>(confidence: &Confidence, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(confidence.word())
}

/// Who wrote the value of a variable.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema)]
pub enum WriterRecord {
    /// A statement of the program.
    Statement(FrameRecord),
    /// A statement of the program, in the passing run only: in the failing run nobody wrote it.
    Missed(FrameRecord),
    /// The program read the value from its input.
    Input,
    /// The kernel wrote it, in a system call that does not read the input.
    Kernel,
}

/// A statement that only one of the runs executes.
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

/// A heap block behind whose end the failing run has written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OverflowRecord {
    /// Number of bytes that were asked for.
    pub bytes: u64,
    /// The call by which the block was allocated, and up to three of those that led to it, innermost
    /// first.
    pub allocated: Vec<FrameRecord>,
    /// The statement that wrote behind the block, over a word of the allocator.
    pub writer: FrameRecord,
    /// Whether the failing run does not fail in the same way when that word keeps its value.
    pub is_averted: bool,
}

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OriginRecord {
    /// The statement that wrote or computed it, and up to three of the calls that led to it, innermost
    /// first.
    pub written: Vec<FrameRecord>,
    /// The statement that read it from memory; null where it was computed where it was used.
    pub read: Option<FrameRecord>,
}

/// A point in time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PointRecord {
    /// Function of the statement.
    pub function: Option<String>,
    /// Source file.
    pub file: Option<String>,
    /// Line in the source file.
    pub line: Option<u64>,
    /// How often the statement had been reached in the passing run, this time included.
    pub nth: u64,
    /// Address of the statement in a process without address randomization.
    pub address: u64,
}

/// A point at which states were compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ExaminedRecord {
    /// The statement at which the runs were stopped.
    pub point: PointRecord,
    /// Number of variables that differ there.
    pub differences: usize,
    /// Number of tests there.
    pub tests: usize,
    /// The variable that causes the failure there; null where none was found.
    pub cause: Option<String>,
}

/// Numbers of the points in time at which both runs can be stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PointsRecord {
    /// Number of points of the failing run.
    pub failing: usize,
    /// Number of points of the passing run.
    pub passing: usize,
    /// Number of points that both runs have.
    pub matching: usize,
    /// Number of points at which tests found a variable that matters for the failure.
    pub used: usize,
    /// Number of points at which states were compared, but no such variable was found.
    pub skipped: usize,
}

/// A critical slice: the executed statements that a failure, or an output, needs.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct SliceRecord {
    /// Number of statement executions in the failing run that a slice may leave out.
    pub events: usize,
    /// Those that the slice keeps: without the others, the failure or the output is the same.
    pub kept: Vec<EventRecord>,
    /// Number of tests that the search for the slice made.
    pub tests: u64,
}

/// An execution of a statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EventRecord {
    /// Number of the event in the run, from 1.
    pub event: usize,
    /// Source file.
    pub file: Option<String>,
    /// Line in the source file.
    pub line: Option<u64>,
}

/// Returns the ranges in which two inputs differ. Inputs of the same length are compared byte by
/// byte. Of others, one range is returned: what is between their common beginning and common end.
pub fn input_difference(failing: &[u8], passing: &[u8]) -> Vec<InputDifference> {
    let entry = |at: std::ops::Range<usize>, other: std::ops::Range<usize>| InputDifference {
        at: [at.start as u64, at.end as u64],
        removed: Base64(failing[at].to_vec()),
        inserted: Base64(passing[other].to_vec()),
    };
    if failing.len() == passing.len() {
        let mut found: Vec<std::ops::Range<usize>> = Vec::new();
        for at in (0..failing.len()).filter(|at| failing[*at] != passing[*at]) {
            match found.last_mut() {
                Some(last) if last.end == at => last.end += 1,
                _ => found.push(at..at + 1),
            }
        }
        return found
            .into_iter()
            .map(|range| entry(range.clone(), range))
            .collect();
    }
    let same = |(one, other): &(&u8, &u8)| one == other;
    let start = failing.iter().zip(passing).take_while(same).count();
    let rest = failing.len().min(passing.len()) - start;
    let backwards = failing.iter().rev().zip(passing.iter().rev());
    let end = backwards.take(rest).take_while(same).count();
    vec![entry(
        start..failing.len() - end,
        start..passing.len() - end,
    )]
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
    }
}
