//! Binary format of the journal's records.
//!
//! A record consists of the length of its body (4 bytes, little-endian), the first 8 bytes of the
//! body's blake3, and the body. The first byte of a body is its kind. Numbers are LEB128.

use std::time::Duration;

use crate::{ContentId, Feature, Features};
use ddfuzz_exec::Ended;

/// Number of bytes of a journal record before its body: the body's length and checksum.
pub(super) const HEAD: usize = 4 + SUM;
const SUM: usize = 8;
/// Greatest length of the body of a journal record, in bytes; a record with a longer one is
/// damaged.
const LONGEST: usize = 1 << 30;

/// First byte of the body of a journal's first record, which identifies the target.
pub(super) const IDENTITY: u8 = 1;
/// First byte of the body of those journal records that describe a run.
const RUN_RECORD: u8 = 2;

const SUSPICIOUS: u8 = 1;
const ALONE: u8 = 2;
const READ: u8 = 4;
const TOLD: u8 = 8;
const STACK: u8 = 16;

/// The part of a run's record that says which content was run; the observation follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHead {
    /// Size and hash of the content that was run.
    pub content: ContentId,
    /// Number of the run of this content: 0 is the first run, higher ones are reruns.
    pub round: u32,
    /// Whether the recorded run may have failed; see [`Observation::suspicious`].
    pub suspicious: bool,
}

/// Appends the journal record of a run to `bytes`: which content was run, the number of the run
/// (`round`, 0 for the first), and the observation `seen`.
pub fn encode(bytes: &mut Vec<u8>, content: &ContentId, round: u32, seen: &Observation) {
    frame(bytes, |body| {
        body.push(RUN_RECORD);
        body.extend_from_slice(content.blake3());
        push(body, content.size());
        push(body, round.into());
        let bits = [
            (SUSPICIOUS, seen.suspicious),
            (ALONE, seen.alone.is_some()),
            (READ, seen.read.is_some()),
            (TOLD, seen.features.is_some()),
            (STACK, seen.stack_depth.is_some()),
        ];
        body.push(bits.iter().map(|(bit, is)| bit * u8::from(*is)).sum());
        push_ended(body, seen.ended);
        if let Some(alone) = seen.alone {
            push_ended(body, alone);
        }
        push(
            body,
            u64::try_from(seen.time.as_micros()).unwrap_or(u64::MAX),
        );
        push(body, seen.work);
        if let Some(read) = seen.read {
            push(body, read);
        }
        if let Some(depth) = seen.stack_depth {
            push(body, depth);
        }
        if let Some(features) = &seen.features {
            push_features(body, features);
        }
    });
}

/// Appends one journal record to `bytes`: the length and the checksum of its body, and the body,
/// which `fill` appends.
pub(super) fn frame(bytes: &mut Vec<u8>, fill: impl FnOnce(&mut Vec<u8>)) {
    let start = bytes.len();
    bytes.extend_from_slice(&[0; HEAD]);
    fill(bytes);
    let body = &bytes[start + HEAD..];
    let (length, sum) = (body.len() as u32, sum(body));
    bytes[start..start + 4].copy_from_slice(&length.to_le_bytes());
    bytes[start + 4..start + HEAD].copy_from_slice(&sum);
}

/// Returns the length in bytes of a journal record's body, which is stored at the start of the
/// record; `None` if it is invalid (0 or too long).
pub(super) fn body_length(head: &[u8]) -> Option<usize> {
    let length = u32::from_le_bytes(head.get(..4)?.try_into().ok()?);
    let length = usize::try_from(length).ok()?;
    (1..=LONGEST).contains(&length).then_some(length)
}

/// Returns the body of a journal record; `None` if its length or checksum is wrong.
pub(super) fn body(record: &[u8]) -> Option<&[u8]> {
    let length = body_length(record)?;
    let body = record.get(HEAD..HEAD.checked_add(length)?)?;
    (record[4..HEAD] == sum(body)).then_some(body)
}

fn sum(body: &[u8]) -> [u8; SUM] {
    let mut sum = [0; SUM];
    sum.copy_from_slice(&blake3::hash(body).as_bytes()[..SUM]);
    sum
}

/// Decodes the first part of a record in the journal of runs: which content was run, and the number
/// of this run among the runs of the content. `None` if `body` does not describe a run.
pub(super) fn head(body: &[u8]) -> Option<RecordHead> {
    Some(take_head(&mut &body[..])?.0)
}

fn take_head(rest: &mut &[u8]) -> Option<(RecordHead, u8)> {
    let (kind, after) = rest.split_first()?;
    let (blake3, after) = after.split_first_chunk::<32>()?;
    *rest = after;
    let (size, round) = (take(rest)?, take(rest)?);
    let (bits, after) = rest.split_first()?;
    *rest = after;
    let head = RecordHead {
        content: ContentId::new(size, *blake3),
        round: round.try_into().ok()?,
        suspicious: bits & SUSPICIOUS != 0,
    };
    (*kind == RUN_RECORD).then_some((head, *bits))
}

/// Decodes the record of a run from the record's body. The reached features replace the content of
/// `features`, which is empty then if the run reported none. `None` if the record does not describe
/// a run.
pub(super) fn decode(
    body: &[u8],
    features: &mut Vec<Feature>,
) -> Option<(RecordHead, Observation)> {
    features.clear();
    let mut rest = body;
    let (head, bits) = take_head(&mut rest)?;
    let seen = Observation {
        suspicious: head.suspicious,
        ended: take_ended(&mut rest)?,
        alone: match bits & ALONE {
            0 => None,
            _ => Some(take_ended(&mut rest)?),
        },
        time: Duration::from_micros(take(&mut rest)?),
        work: take(&mut rest)?,
        read: match bits & READ {
            0 => None,
            _ => Some(take(&mut rest)?),
        },
        stack_depth: match bits & STACK {
            0 => None,
            _ => Some(take(&mut rest)?),
        },
        features: (bits & TOLD != 0).then(Features::default),
    };
    if seen.features.is_some() {
        take_features(&mut rest, features)?;
    }
    rest.is_empty().then_some((head, seen))
}

fn push_ended(body: &mut Vec<u8>, ended: Ended) {
    let (kind, number) = match ended {
        Ended::Exit(status) => (0, status),
        Ended::Signal(signal) => (1, signal),
        Ended::Timeout => (2, 0),
        Ended::OutOfMemory => (3, 0),
    };
    body.push(kind);
    push(body, u64::from(number.cast_unsigned()));
}

fn take_ended(rest: &mut &[u8]) -> Option<Ended> {
    let (kind, after) = rest.split_first()?;
    *rest = after;
    let number = u32::try_from(take(rest)?).ok()?.cast_signed();
    match kind {
        0 => Some(Ended::Exit(number)),
        1 => Some(Ended::Signal(number)),
        2 => Some(Ended::Timeout),
        3 => Some(Ended::OutOfMemory),
        _ => None,
    }
}

/// Appends a set of features to a record's body: their number, the first feature, and the distances
/// between neighbours.
fn push_features(body: &mut Vec<u8>, features: &Features) {
    push(body, features.len() as u64);
    let mut last = 0;
    for Feature(number) in features.as_slice() {
        push(body, u64::from(number - last));
        last = *number;
    }
}

fn take_features(rest: &mut &[u8], features: &mut Vec<Feature>) -> Option<()> {
    let count = usize::try_from(take(rest)?).ok()?;
    // A feature takes at least one byte, so a damaged count cannot allocate more.
    features.reserve(count.min(rest.len()));
    let mut last: u32 = 0;
    for number in 0..count {
        let step = u32::try_from(take(rest)?).ok()?;
        if step == 0 && number > 0 {
            return None;
        }
        last = last.checked_add(step)?;
        features.push(Feature(last));
    }
    Some(())
}

/// What one run of a content did: ending, CPU time and reached features.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// How the run ended. If it exceeded a limit, this is the ending of its repetition alone in a
    /// new process with the full limits.
    pub ended: Ended,
    /// How the input ended in a second run, made alone in a new process because it had crashed in a
    /// process shared with other runs. `None` if there was no second run.
    pub alone: Option<Ended>,
    /// Whether triage must decide if the run failed: it ended by a signal or a limit, or with an
    /// exit status that is, or may be, that of a crash.
    pub suspicious: bool,
    /// CPU time of the run. If it is unknown: the wall time of the request that asked the target
    /// for this run, divided by the number of runs in the request. It varies from call to call, so
    /// no decision may depend on it alone.
    pub time: Duration,
    /// Sum of all coverage counters (modulo 256 each), a measure of the work that does not depend
    /// on the machine; 0 if the run reported no coverage.
    pub work: u64,
    /// Number of bytes of the input that the target read; `None` if unknown.
    pub read: Option<u64>,
    /// How deep the run's stack was, as [`ddfuzz_exec::RunCoverage::stack_depth`] reports it;
    /// `None` if the target does not report it.
    pub stack_depth: Option<u64>,
    /// Features that the run reached; `None` if the target reports no coverage, or the run was cut
    /// off before it could report any.
    pub features: Option<Features>,
}

/// Appends a number to `bytes`, in LEB128 encoding.
fn push(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Removes a number in LEB128 encoding from the front of `bytes` and returns it; `None` if there is
/// none, or it exceeds 64 bits.
fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let bits = u64::from(byte & 0x7f);
        if (bits << shift) >> shift != bits {
            return None;
        }
        number |= bits << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_as_they_went() {
        let numbers = [0, 1, 127, 128, 300, 1 << 32, u64::MAX - 1, u64::MAX];
        let mut bytes = Vec::new();
        numbers.iter().for_each(|number| push(&mut bytes, *number));
        let mut rest = &bytes[..];
        for number in numbers {
            assert_eq!(take(&mut rest), Some(number));
        }
        assert_eq!(take(&mut rest), None);
    }

    #[test]
    fn what_is_no_number_is_refused() {
        assert_eq!(take(&mut &[0xff; 11][..]), None);
        assert_eq!(take(&mut &[0x80][..]), None);
        let mut too_large = [0xff; 10];
        too_large[9] = 2;
        assert_eq!(take(&mut &too_large[..]), None);
    }
}
