//! Finds length, count and checksum fields of a binary format by the bytes that they agree with.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::Range;

use crate::interruption;
use crate::passes::field::{Checksum, Field, Form, Meaning};
use crate::passes::protocol::Protocol;
use crate::passes::ranges::overlap;

/// Number of bytes at the beginning of a text in which a count of records, or the first record, is
/// searched for.
pub(super) const HEADER: usize = 16;
/// Number of bytes at the beginning of a text in which fields of a frame (length, checksum) are
/// searched for.
const FRONT: usize = 64;
/// Maximum number of bytes between a length field and the first of the bytes that the field counts.
const SLACK: usize = 16;
/// Minimum number of bytes that a range must have for a checksum of one or two bytes to be
/// recognized; over fewer bytes, it may agree by chance.
pub(super) const SCOPE: usize = 17;
/// Maximum number of bytes, in all, over which the checksums of one text are computed, so that one
/// step of the search takes some tenths of a second at most. This is enough for all checksums of a
/// text of up to 100 KiB, and in a larger text at least for the checksums of the range that the
/// first length field counts.
const MOST_SUMMED: usize = 1 << 26;
/// Maximum number of bytes that may follow the bytes which a length field counts.
const TRAILER: usize = 8;
/// Minimum number of bytes of a block in the middle of a text that a length field counts; smaller
/// numbers are often no lengths.
const LEAST_BLOCK: usize = 16;
/// Maximum number of such blocks that are tried in one text.
const MOST_BLOCKS: usize = 16;
/// Minimum number of records for a count of them to be recognized in a binary text; fewer records
/// may agree with a count by chance.
pub(super) const FEWEST: usize = 3;
/// Numbers of bytes, to be tried in this order, that may precede or follow the length field of a
/// record (such as the bytes of its type).
pub(super) const TYPES: [usize; 4] = [0, 1, 2, 4];

/// Finds binary formats with a count that is followed by as many records, each with a length, up to
/// the end of the text; adds checksum fields that match. Formats with more records come first,
/// because short ones may match by chance.
pub(super) fn records(text: &[u8]) -> Vec<Protocol> {
    let mut sums = Sums::new(text);
    let mut found: Vec<Protocol> = (0..HEADER.min(text.len()))
        .flat_map(|at| Form::ALL.map(|form| (at, form)))
        .filter_map(|(at, form)| counted(&mut sums, at, form))
        .collect();
    found.sort_by_key(|protocol| Reverse(protocol.pieces.len()));
    found
}

/// Guesses that the number at offset `at`, in the encoding `form`, is a count of records that fill
/// the rest of the text. Returns the binary format with this count and the records; `None` if there
/// is no such division of the text that ends at its end.
fn counted(sums: &mut Sums<'_>, at: usize, form: Form) -> Option<Protocol> {
    let text = sums.text;
    let count = usize::try_from(form.read(text, at)?).ok()?;
    let from = at + form.width;
    if count < FEWEST {
        return None;
    }
    let (lengths, pieces) = Form::ALL.iter().find_map(|length| {
        let mut kinds = TYPES.iter();
        kinds.find_map(|kind| chain(text, from, count, *length, *kind))
    })?;
    let number = Field {
        at,
        form,
        scope: from..text.len(),
        meaning: Meaning::Count,
    };
    let protocol = Protocol {
        rule: "records",
        fields: std::iter::once(number).chain(lengths).collect(),
        pieces,
    };
    Some(with_checks(sums, protocol, SCOPE))
}

/// Reads `count` records of a text, the first of which begins at offset `from`. Each has `kind`
/// bytes of its own (such as its type), a length field with the encoding `form`, and as many bytes
/// as the field states. Returns the length fields and the ranges of the records; `None` if the last
/// record does not end at the end of the text.
fn chain(
    text: &[u8],
    from: usize,
    count: usize,
    form: Form,
    kind: usize,
) -> Option<(Vec<Field>, Vec<Range<usize>>)> {
    if count.checked_mul(form.width + kind)? > text.len() {
        return None;
    }
    let mut fields = Vec::new();
    let mut pieces = Vec::new();
    let mut start = from;
    for _ in 0..count {
        let at = start + kind;
        let length = usize::try_from(form.read(text, at)?).ok()?;
        let body = at + form.width;
        let end = body.checked_add(length).filter(|end| *end <= text.len())?;
        fields.push(Field {
            at,
            form,
            scope: body..end,
            meaning: Meaning::Length,
        });
        pieces.push(start..end);
        start = end;
    }
    (start == text.len()).then_some((fields, pieces))
}

/// Returns a copy of a binary format in which not whole records but single bytes can be deleted:
/// all bytes that belong to no field and are counted by a length field that counts no other length
/// field. The number of records does not change.
pub(super) fn payload(protocol: &Protocol) -> Protocol {
    let lengths = || {
        let fields = protocol.fields.iter();
        fields.filter(|field| field.meaning == Meaning::Length)
    };
    let is_around = |field: &Field| {
        let mut others = lengths();
        others.any(|other| field.scope.contains(&other.at) && other.at != field.at)
    };
    let mut pieces: Vec<Range<usize>> = lengths()
        .filter(|field| !is_around(field))
        .flat_map(|field| field.scope.clone())
        .filter(|at| {
            !protocol
                .fields
                .iter()
                .any(|field| field.place().contains(at))
        })
        .map(|at| at..at + 1)
        .collect();
    pieces.sort_by_key(|piece| piece.start);
    pieces.dedup();
    let stay = protocol
        .fields
        .iter()
        .filter(|field| field.meaning != Meaning::Count);
    Protocol {
        rule: "payload",
        fields: stay.cloned().collect(),
        pieces,
    }
}

/// Finds binary formats with a length field near the front of the text that counts the whole text,
/// all bytes after the field, or all but a trailer; adds checksum fields that match. A checksum of
/// one or two bytes must cover at least `least` bytes. Formats with a checksum come first.
pub(super) fn frames(text: &[u8], least: usize) -> Vec<Protocol> {
    let (mut frames, mut sums) = (Vec::new(), Sums::new(text));
    for form in Form::ALL {
        for at in 0..FRONT.min(text.len()) {
            let Some(number) = form.read(text, at) else {
                continue;
            };
            for scope in scopes(text.len(), at + form.width, number) {
                let field = Field {
                    at,
                    form,
                    scope,
                    meaning: Meaning::Length,
                };
                let frame = Protocol {
                    rule: "payload",
                    fields: vec![field],
                    pieces: Vec::new(),
                };
                frames.push(payload(&with_checks(&mut sums, frame, least)));
            }
        }
    }
    // A matching checksum is hardly a coincidence.
    frames.sort_by_key(|frame| frame.fields.len() < 2);
    frames
}

/// Finds binary formats without a length field, but with a checksum field of four bytes that covers
/// all bytes before it, or all bytes after it, and more than half of the text. Each format has this
/// field, and each covered byte is one of its pieces.
pub(super) fn sealed(text: &[u8]) -> Vec<Protocol> {
    let mut found = matching(&mut Sums::new(text), &[], usize::MAX);
    found.retain(|check| check.scope.len() > text.len() / 2);
    let protocol = |check: Field| Protocol {
        rule: "payload",
        pieces: check.scope.clone().map(|at| at..at + 1).collect(),
        fields: vec![check],
    };
    found.into_iter().map(protocol).collect()
}

/// Finds binary formats in which one record fills the bytes of `text` that the length field
/// `around` counts: a second length field near the front of these bytes states their size, as
/// [`frames`] describes. Each format has both length fields, and its pieces, which can be deleted,
/// are pairs of bytes, since many formats pad their records to an even size.
pub(super) fn frames_in(text: &[u8], around: &Field) -> Vec<Protocol> {
    let start = around.scope.start;
    let mut found = frames(&text[around.scope.clone()], SCOPE);
    found.retain(Protocol::has_wide_field);
    for frame in &mut found {
        for field in &mut frame.fields {
            field.at += start;
            field.scope = field.scope.start + start..field.scope.end + start;
        }
        frame.fields.insert(0, around.clone());
        let pairs = frame.pieces.chunk_by(|one, next| one.end == next.start);
        let pairs = pairs.flat_map(|run| run.chunks(2));
        let moved = |pair: &[Range<usize>]| pair[0].start + start..pair[pair.len() - 1].end + start;
        frame.pieces = pairs.map(moved).collect();
    }
    found
}

/// Finds blocks in the middle of a binary text. A block is a range of at least 16 bytes that does
/// not reach the end of the text, and that a length field of two or four bytes directly before it
/// counts. The field is among the first [`FRONT`] bytes of the text, or directly after a block
/// whose field is. Returns the length fields of at most [`MOST_BLOCKS`] blocks: fields of four
/// bytes first, those of the same width in descending order of the size of their blocks.
pub(super) fn blocks(text: &[u8]) -> Vec<Field> {
    let block = |form: Form, at: usize| {
        let number = usize::try_from(form.read(text, at)?).ok()?;
        let start = at + form.width;
        let end = start.checked_add(number).filter(|end| *end < text.len())?;
        (number >= LEAST_BLOCK).then_some(Field {
            at,
            form,
            scope: start..end,
            meaning: Meaning::Length,
        })
    };
    let wide = Form::ALL.into_iter().filter(|form| form.width > 1);
    let places = wide.flat_map(|form| (0..FRONT.min(text.len())).map(move |at| (form, at)));
    let near = places.filter_map(|(form, at)| block(form, at));
    let mut found: Vec<Field> = near
        .flat_map(|first| {
            let next = block(first.form, first.scope.end);
            std::iter::once(first).chain(next)
        })
        .collect();
    found.sort_by_key(|field| (Reverse(field.form.width), Reverse(field.scope.len())));
    found.dedup();
    found.truncate(MOST_BLOCKS);
    found
}

/// Returns the ranges of bytes that a length field may count if it states `number` and ends at
/// offset `from` of a text of `len` bytes: the whole text, a range up to the end of the text, or
/// the bytes after the field up to a trailer. Empty if no such range has `number` bytes.
fn scopes(len: usize, from: usize, number: u64) -> Vec<Range<usize>> {
    let Some(number) = usize::try_from(number).ok().filter(|number| *number > 1) else {
        return Vec::new();
    };
    let all = (number == len).then_some(from..len);
    let end = len.checked_sub(number).map(|start| start..len);
    let end = end.filter(|end| (from..=from + SLACK).contains(&end.start));
    let trailed = from.checked_add(number).map(|end| from..end);
    let trailed = trailed.filter(|scope| scope.end < len && len - scope.end <= TRAILER);
    all.into_iter().chain(end).chain(trailed).collect()
}

/// The checksums of ranges of one text, each of which is computed only once. None is computed that
/// would exceed the limit for one text ([`MOST_SUMMED`]).
struct Sums<'a> {
    text: &'a [u8],
    known: HashMap<(Checksum, Range<usize>), u64>,
    /// Number of bytes over which checksums may still be computed.
    left: usize,
}

impl Sums<'_> {
    fn new(text: &[u8]) -> Sums<'_> {
        Sums {
            text,
            known: HashMap::new(),
            left: MOST_SUMMED,
        }
    }

    /// Returns the checksum, by the algorithm `checksum`, of the bytes in the range `scope`; `None`
    /// if computing it would exceed [`MOST_SUMMED`].
    fn of(&mut self, checksum: Checksum, scope: &Range<usize>) -> Option<u64> {
        let key = (checksum, scope.clone());
        if let Some(number) = self.known.get(&key) {
            return Some(*number);
        }
        interruption::check();
        self.left = self.left.checked_sub(scope.len())?;
        let number = checksum.of(&self.text[scope.clone()]);
        self.known.insert(key, number);
        Some(number)
    }
}

/// Returns `protocol` with those checksum fields added that match: a checksum of the bytes that a
/// length field counts, or of all bytes before or after the checksum. A checksum of one or two
/// bytes must cover at least `least` bytes, since a shorter range may match by chance.
fn with_checks(sums: &mut Sums<'_>, mut protocol: Protocol, least: usize) -> Protocol {
    let lengths = protocol
        .fields
        .iter()
        .filter(|field| field.meaning == Meaning::Length);
    let scopes: Vec<_> = lengths
        .map(|field| field.scope.clone())
        .take(FEWEST)
        .collect();
    // What a length counts is tried by all checksums, before many bytes are summed up.
    for (checksum, scope) in Checksum::ALL
        .iter()
        .flat_map(|(checksum, _)| scopes.iter().map(move |scope| (*checksum, scope)))
    {
        sums.of(checksum, scope);
    }
    let mut checks: Vec<Field> = Vec::new();
    for found in matching(sums, &scopes, least) {
        let place = found.place();
        let known = protocol.fields.iter().chain(&checks);
        let mut taken = known.map(Field::place);
        if !taken.any(|taken| overlap(&taken, &place)) {
            checks.push(found);
        }
    }
    checks.sort_by_key(|check| check.scope.len());
    protocol.fields.extend(checks);
    protocol
}

/// Returns the matching checksum fields that begin in the first [`FRONT`] or the last [`TRAILER`]
/// bytes of the text: checksums of one of the ranges `scopes`, or of all bytes before or after the
/// field, in the order of [`Checksum::ALL`]. A field of one or two bytes must cover at least
/// `least` bytes.
fn matching(sums: &mut Sums<'_>, scopes: &[Range<usize>], least: usize) -> Vec<Field> {
    let text = sums.text;
    let is_meant = |scope: &Range<usize>, width: usize| match width {
        1 | 2 => scope.len() >= least,
        _ => !scope.is_empty(),
    };
    let places =
        || (0..FRONT.min(text.len())).chain(text.len().saturating_sub(TRAILER)..text.len());
    let mut found = Vec::new();
    for (checksum, widths) in Checksum::ALL {
        for scope in scopes {
            let Some(number) = sums.of(checksum, scope) else {
                continue;
            };
            for (at, width) in places().flat_map(|at| widths.iter().map(move |width| (at, *width)))
            {
                if is_meant(scope, width) {
                    found.extend(holds(text, at, width, checksum, scope, number));
                }
            }
        }
        for at in places() {
            let width = widths[0].max(2);
            for scope in [(at + width).min(text.len())..text.len(), 0..at] {
                // Two bytes often match by chance.
                let at_end = at == 0 || at + width == text.len();
                if is_meant(&scope, width)
                    && (width > 2 || at_end)
                    && let Some(number) = sums.of(checksum, &scope)
                {
                    found.extend(holds(text, at, width, checksum, &scope, number));
                }
            }
        }
    }
    found
}

/// Returns the checksum field of `width` bytes at offset `at` of the text, if these bytes are
/// `number` in either byte order; `number` is the checksum of the bytes in `scope`. Returns `None`
/// if they are not, if the field overlaps `scope`, or if it has one or two bytes and is not
/// directly before or after `scope`.
fn holds(
    text: &[u8],
    at: usize,
    width: usize,
    checksum: Checksum,
    scope: &Range<usize>,
    number: u64,
) -> Option<Field> {
    let outside = scope.end <= at || scope.start >= at + width;
    // Short checksums often match by chance: they must be adjacent to the covered bytes.
    let beside = scope.end == at || scope.start == at + width;
    if !outside || width <= 2 && !beside {
        return None;
    }
    let form = [false, true]
        .map(|big| Form { width, big })
        .into_iter()
        .find(|form| text.get(at..at + width) == Some(form.write(number).as_slice()))?;
    let (scope, meaning) = (scope.clone(), Meaning::Check(checksum));
    Some(Field {
        at,
        form,
        scope,
        meaning,
    })
}
