//! The pass over a text inside of a binary frame: a length or a checksum of the text stands near its
//! front or behind it, and is corrected after each edit of the text.

use std::ops::Range;
use std::sync::Arc;

use crate::Outcome;
use crate::document::{Document, Structure};
use crate::passes::by_structure::reduce_inner_text;
use crate::passes::container::reduce_text;
use crate::passes::current_best::{CurrentBest, looks_like_text};
use crate::passes::detect::{SCOPE, frames, sealed};
use crate::passes::field::{Field, Meaning};
use crate::passes::list::ListSearch;
use crate::passes::protocol::Protocol;
use crate::passes::units::Bytes;

/// Maximum size, in bytes, of files that are searched for frames. In a larger file, it takes too
/// long to compute a checksum for each test.
pub(super) const LARGEST_FRAME: usize = 1 << 22;
/// Minimum size, in bytes, of a text in a frame.
const LEAST_TEXT: usize = 32;
/// Maximum number of frames of a file, guessed from its numbers, that are tested.
const READINGS: usize = 4;
/// Maximum number of rounds in which the text in a frame is reduced. A round is followed by another
/// one only if it has changed the text.
const ROUNDS: usize = 4;

/// A file that consists of a text and of length and checksum fields around it, as a document whose
/// only payload (changeable bytes) is the text.
#[derive(Clone)]
struct Frame {
    file: Vec<u8>,
    /// The fields of the frame, in the order in which they are corrected: lengths first, then
    /// checksums, of which those of fewer bytes come first.
    fields: Vec<Field>,
    /// Range, in bytes, of the text in `file`.
    inner: Range<usize>,
}

impl Frame {
    /// Returns the frame around the text that the format `protocol` has in `file`: the longest
    /// sequence of bytes that `protocol` can delete, and that each of its fields covers either
    /// completely or not at all. `None` if this sequence does not look like a text, has fewer than
    /// [`LEAST_TEXT`] bytes, or is less than half of the file.
    fn around_text(file: &[u8], protocol: &Protocol) -> Option<Frame> {
        let fields = &protocol.fields;
        let is_border = |at| {
            let mut scopes = fields.iter().map(|field| &field.scope);
            scopes.any(|scope| scope.start == at || scope.end == at)
        };
        let runs = protocol
            .pieces
            .chunk_by(|one, next| one.end == next.start && !is_border(next.start));
        let runs = runs.map(|run| run[0].start..run[run.len() - 1].end);
        let inner = runs.max_by_key(Range::len)?;
        let is_meant = inner.len() >= LEAST_TEXT.max(file.len() / 2);
        (is_meant && looks_like_text(&file[inner.clone()])).then(|| Frame {
            file: file.to_vec(),
            fields: fields.clone(),
            inner,
        })
    }

    /// Returns a copy of this frame with `content` in place of the text, and with corrected lengths
    /// and checksums.
    fn with_text(&self, content: &[u8]) -> Frame {
        let Range { start, end } = self.inner;
        let moved = |at: usize| match at >= end {
            true => at - end + start + content.len(),
            false => at,
        };
        let mut new = Frame {
            file: [&self.file[..start], content, &self.file[end..]].concat(),
            fields: self.fields.clone(),
            inner: start..start + content.len(),
        };
        for field in &mut new.fields {
            let is_around = field.scope.start <= start && end <= field.scope.end;
            field.at = moved(field.at);
            field.scope = moved(field.scope.start)..moved(field.scope.end);
            let number = match field.meaning {
                Meaning::Check(checksum) => checksum.of(&new.file[field.scope.clone()]),
                Meaning::Length if is_around => {
                    let old = field.form.read(&new.file, field.at).unwrap_or_default();
                    let lost = (end - start) as u64;
                    old.wrapping_add(content.len() as u64).wrapping_sub(lost)
                }
                Meaning::Length | Meaning::Count => continue,
            };
            new.file[field.place()].copy_from_slice(&field.form.write(number));
        }
        new
    }
}

impl Document for Frame {
    fn parts(&self) -> Vec<usize> {
        Vec::new()
    }

    fn payloads(&self) -> Vec<Arc<[u8]>> {
        vec![self.file[self.inner.clone()].into()]
    }

    fn without(&self, _: &[usize]) -> Arc<dyn Document> {
        Arc::new(self.clone())
    }

    fn with(&self, payloads: &[Arc<[u8]>]) -> Arc<dyn Document> {
        Arc::new(self.with_text(&payloads.concat()))
    }

    fn repacked(&self) -> Option<Arc<dyn Document>> {
        None
    }

    fn opaque(&self) -> Arc<dyn Document> {
        Arc::new(self.clone())
    }

    fn text(&self) -> Vec<u8> {
        self.file.clone()
    }
}

/// Looks in the file for a text that a length field counts, or that a checksum of four bytes
/// covers. If a test confirms such a frame, reduces the text as if it were the whole input, while
/// the fields stay correct, and returns true; otherwise returns false. `inner` returns the
/// structure of a given text.
pub(super) async fn framed_text(work: &mut CurrentBest, inner: fn(&[u8]) -> Structure) -> bool {
    let len = work.len();
    if !(LEAST_TEXT..=LARGEST_FRAME).contains(&len) {
        return false;
    }
    let file = work.text();
    let mut readings = frames(&file, SCOPE);
    readings.retain(Protocol::has_wide_field);
    if readings.iter().all(|frame| frame.fields.len() < 2) {
        readings.splice(0..0, sealed(&file));
    }
    readings.retain(|frame| Frame::around_text(&file, frame).is_some());
    readings.truncate(READINGS);
    // If the last byte can be deleted without corrections, no number protects the file.
    if readings.is_empty() || work.cut("bytes", len - 1..len).await == Outcome::Fail {
        return false;
    }
    for frame in readings
        .iter()
        .filter_map(|it| Frame::around_text(&file, it))
    {
        work.enter(Arc::new(frame), 0..1);
        let is_confirmed = confirm(work).await;
        if is_confirmed {
            reduce_inner(work, inner).await;
        }
        work.leave();
        if is_confirmed {
            return true;
        }
    }
    false
}

/// Tests whether the text in a frame can be edited: deletes one byte in the middle of a word or of
/// blanks, so that brackets stay matched, or, if the file then does not fail, the last or the first
/// byte of the text. Returns whether one of these files fails.
async fn confirm(work: &mut CurrentBest) -> bool {
    let text = work.text();
    let kind = |byte: u8| match byte {
        b' ' | b'\t' => Some(false),
        _ => byte.is_ascii_alphanumeric().then_some(true),
    };
    let is_inside = |three: &[u8]| {
        let [before, byte, after] = [0, 1, 2].map(|at| kind(three[at]));
        byte.is_some() && before == byte && byte == after
    };
    let inside = text.windows(3).rposition(is_inside).map(|at| at + 1);
    for at in inside.into_iter().chain([text.len() - 1, 0]) {
        if work.cut("payload", at..at + 1).await == Outcome::Fail {
            return true;
        }
    }
    false
}

/// Reduces the text in a frame in rounds, until a round changes nothing or [`ROUNDS`] were made:
/// each round reduces the text by its structure, and then byte by byte. The structure is the
/// grammar that `inner` returns for the text; without a grammar, it is [`Structure::Text`].
async fn reduce_inner(work: &mut CurrentBest, inner: fn(&[u8]) -> Structure) {
    let mut known = match inner(&work.text()) {
        syntax @ Structure::Syntax(_) => syntax,
        _ => Structure::Text,
    };
    for _ in 0..ROUNDS {
        let before = work.reductions();
        reduce_inner_text(work, &mut known).await;
        reduce_text(work).await;
        // Single bytes of the whole file cannot be deleted at the end of the search.
        let mut bytes = Bytes::all(work, "payload", 1, 0);
        ListSearch::new(work, &mut bytes).reduce().await;
        if work.reductions() == before {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::passes::field::Checksum;
    use crate::{Full, Outcome, Search, Structure};

    /// Returns a text of `lines` lines with matching brackets, and of one further line in the
    /// middle, which contains `depth: [9, (8)]`.
    fn settings(lines: usize) -> Vec<u8> {
        let line = |at: usize| format!("  {{name{}: [{}, {}]}}\n", at * 7, at % 10, at % 3);
        let mut text: String = (0..lines).map(line).collect();
        let middle = text[..text.len() / 2].rfind('\n').unwrap_or_default() + 1;
        text.insert_str(middle, "  {depth: [9, (8)]}\n");
        text.into_bytes()
    }

    /// Minimizes a file as binary data; returns the result, and the number of tests, without those
    /// of the passes `mutations` and `runs`.
    fn reduced(file: &[u8], fails: &dyn Fn(&[u8]) -> bool) -> (Vec<u8>, usize) {
        assert!(fails(file));
        let mut search = Full::structured(file, Structure::Binary);
        let (mut best, mut text, mut tests) = (file.to_vec(), Vec::new(), 0);
        while let Some(candidate) = search.next() {
            candidate.write_into(file, &best, &mut text);
            tests += usize::from(!["mutations", "runs"].contains(&candidate.rule.name()));
            let outcome = match fails(&text) {
                true => Outcome::Fail,
                false => Outcome::Pass,
            };
            if outcome == Outcome::Fail {
                best.clone_from(&text);
            }
            search.tell(outcome);
        }
        (best, tests)
    }

    fn is_deep(text: &[u8]) -> bool {
        let at = text.windows(7).position(|seven| seven == b"depth: ");
        at.is_some_and(|at| text[at..].windows(3).any(|three| three == b"(8)"))
    }

    #[test]
    fn a_text_behind_its_length_and_its_checksum_is_reduced_as_a_text() {
        let file_of = |text: &[u8]| {
            let length = (text.len() as u32).to_le_bytes();
            let sum = &Checksum::Crc32.of(text).to_le_bytes()[..4];
            [b"CKS1", &length[..], sum, text].concat()
        };
        let fails = |file: &[u8]| {
            let text = file.get(12..).unwrap_or_default();
            file == file_of(text) && is_deep(text)
        };
        for lines in [200, 300, 12_000] {
            let (result, tests) = reduced(&file_of(&settings(lines)), &fails);
            assert!(result.len() <= 12 + 10, "{lines} lines: {result:?}");
            assert!(tests <= 250, "{lines} lines: {tests} tests");
        }
    }

    #[test]
    fn a_text_in_front_of_a_checksum_without_a_length_is_reduced_as_a_text() {
        let file_of = |text: &[u8]| {
            let covered = [b"\x01\xfe", text].concat();
            let sum = &Checksum::Adler32.of(&covered).to_be_bytes()[4..];
            [&covered, sum].concat()
        };
        let fails = |file: &[u8]| {
            let end = file.len().saturating_sub(4);
            let text = file.get(2..end).unwrap_or_default();
            file == file_of(text) && is_deep(text)
        };
        let (result, tests) = reduced(&file_of(&settings(300)), &fails);
        assert!(result.len() <= 6 + 10, "{result:?}");
        assert!(tests <= 250, "{tests} tests");
    }
}
