//! Reader for texts in which checksums of their content are written in digits or Base64: in a line of a record,
//! in a head or at the end.

use std::collections::HashSet;
use std::ops::Range;

use ddfuzz_delta::{Checksum, interruption};

use super::armor::armor;
use super::counted::lines;
use super::hex_lines::hex_lines;
use super::sum_places::{
    Beside, Digits, From, Kind, Radix, Scope, digits_of, line_end, line_start,
};
use crate::is_text;
use crate::node::{Group, Label, Meaning, Node, Number};
use crate::number::Encoding;
use crate::reader::Reader;
use crate::sum::{Digest, Sum};

/// Maximum size, in bytes, of texts in which checksums in digits are searched for.
const LARGEST: usize = 1 << 20;
/// Minimum number of bits that the checksums of a text must have together for their agreement with
/// the text not to be chance.
pub(super) const LEAST_BITS: usize = 28;
/// Number of bits that a sum of bytes counts for at most: sums of lines are numbers of a few digits,
/// such as stand in many texts.
const SUM_BITS: usize = 8;
/// Digits with fewer bits often agree by chance: then so many must for each that does not.
const MISFITS: usize = 7;
/// Maximum number of digits of one kind whose checksums are searched for; if they have none, others
/// hardly do.
const PROBES: usize = 3;
/// Number of bytes at the beginning of a text, and at its end, in which checksums are searched for;
/// once they are found, so are those between.
const ENDS: (usize, usize) = (1 << 15, 1 << 13);
/// Number of bytes that the search for checksums may sum up for each byte of a text.
const WORK: usize = 4;
/// Number of bytes that it may sum up in any text, however small.
const LEAST_WORK: usize = 1 << 17;
/// What it costs to find which bytes digits may cover, in bytes that are summed up.
const STEP: usize = 64;
/// Minimum size, in bytes, that a number beside a checksum must state for the bytes behind both to
/// be tried.
const LEAST_COUNTED: usize = 2;

/// How checksums of a text are written: which bytes they cover, and by which algorithm.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Style {
    scope: Scope,
    sum: Sum,
}

/// A checksum that agrees with the text: the record that contains it and what it covers, its digits,
/// and the bytes that it covers.
#[derive(Debug)]
struct Field {
    record: Range<usize>,
    digits: Range<usize>,
    covered: Range<usize>,
}

/// The checksums of a text that are written in one style, and how their digits are written.
struct Found {
    style: Style,
    fields: Vec<Field>,
    encoding: Encoding,
}

/// Reads a text with checksums in digits. What a record of the text is (a line with its checksum, or
/// a head with what follows it) is a deletable part. `None` if the text has no checksums, or they
/// may be there by chance.
pub fn summed(reader: &mut Reader, text: &[u8]) -> Option<Vec<Node>> {
    if text.len() > LARGEST || !is_text(text) {
        return None;
    }
    if let Some(nodes) = hex_lines(reader, text).or_else(|| armor(reader, text)) {
        return Some(nodes);
    }
    let mut found = search(text)?;
    let beside = Beside::all().find(|beside| found.has_lengths(text, *beside));
    if let Some(beside) = beside {
        found.include_lengths(text, beside);
    }
    let (mut nodes, mut at) = (Vec::new(), 0);
    for field in &found.fields {
        nodes.extend(lines(reader, &text[at..field.record.start]));
        let inner = found.nodes(reader, text, field, beside);
        let label = reader.label();
        nodes.push(match reader.count_part() {
            true => Group::part(label, inner).into(),
            false => Group::new(label, inner).into(),
        });
        at = field.record.end;
    }
    nodes.extend(lines(reader, &text[at..]));
    Some(nodes)
}

/// Searches for checksums in digits; returns those, written in one style, that cover most of the
/// text. `None` if there are none.
fn search(text: &[u8]) -> Option<Found> {
    let mut work = LEAST_WORK.max(WORK * text.len());
    let front = ENDS.0.min(text.len());
    let ends = [
        0..front,
        text.len().saturating_sub(ENDS.1).max(front)..text.len(),
    ];
    let mut all = digits_of(text, ends);
    all.retain(|digits| digits.bits() >= LEAST_BITS || digits.kind.may_be_known());
    // Digits that are long enough for one checksum to be no chance come first.
    all.sort_by_key(|digits| !digits.has_strong() && !digits.kind.may_be_known());
    let mut best: Option<Found> = None;
    for digits in all {
        for nth in digits.probes() {
            let styles = digits.styles(text, nth, &mut work).into_iter();
            let agreeing = styles.filter(|style| digits.found(text, *style).is_some());
            let whole =
                agreeing.filter_map(|style| Digits::all(text, digits.kind).found(text, style));
            best = whole.chain(best).max_by_key(Found::covered);
        }
    }
    best
}

impl Radix {
    /// Returns the number of bits of a checksum that is written in so many digits.
    fn bits(self, digits: usize) -> usize {
        match self {
            Radix::Decimal => digits * 10 / 3,
            Radix::Hex(_) => digits * 4,
            Radix::Base64(_) => digits * 6,
        }
    }

    /// Returns the checksums that may be written in these digits.
    fn sums(self, digits: &[u8]) -> Vec<Sum> {
        let low = |width| {
            let sums = Checksum::ALL.into_iter();
            let sums = sums.filter(move |(_, widths)| widths.contains(&width));
            sums.map(move |(checksum, _)| Sum::Low(checksum, width))
        };
        match self {
            Radix::Hex(2) => low(1).collect(),
            Radix::Hex(4) => low(2).collect(),
            Radix::Hex(8) => low(4).collect(),
            Radix::Hex(16) => vec![Sum::Crc64],
            Radix::Hex(32) => vec![Sum::Digest(Digest::Md5)],
            Radix::Hex(40) => vec![Sum::Digest(Digest::Sha1)],
            Radix::Hex(_) => vec![Sum::Digest(Digest::Sha256)],
            Radix::Base64(24) => vec![Sum::Digest(Digest::Md5)],
            Radix::Base64(28) => vec![Sum::Digest(Digest::Sha1)],
            Radix::Base64(44) => vec![Sum::Digest(Digest::Sha256)],
            Radix::Base64(64) => vec![Sum::Digest(Digest::Sha384)],
            Radix::Base64(_) => vec![Sum::Digest(Digest::Sha512)],
            Radix::Decimal => match digits.len() {
                0..=3 => low(1).chain([Sum::Low(Checksum::Sum, 4)]).collect(),
                4..=5 => low(2).chain([Sum::Low(Checksum::Sum, 4)]).collect(),
                _ => low(4).collect(),
            },
        }
    }
}

impl Kind<'_> {
    /// Returns true if a single checksum in the digits at `place` is hardly there by chance.
    fn is_strong(self, place: &Range<usize>) -> bool {
        self.radix.bits(place.len()) >= LEAST_BITS
    }

    /// Returns true if digits of this kind may be checksums although they have few bits.
    fn may_be_known(self) -> bool {
        self.radix == Radix::Hex(2) && matches!(self.before, b'*' | b'#')
    }

    /// Returns true if digits of this kind in this style are checksums although they have few bits:
    /// behind a star in a line that begins with a dollar or an exclamation mark, or behind a sharp.
    fn is_known(self, text: &[u8], style: Style, field: &Field) -> bool {
        let first = field.covered.start.checked_sub(1).map(|at| text[at]);
        let is_from_sign = matches!(style.scope, Scope::Before(From::Sign, _));
        let sum = |checksum| style.sum == Sum::Low(checksum, 1);
        is_from_sign
            && field.digits.len() == 2
            && match (first, self.before) {
                (Some(b'$' | b'!'), b'*') => sum(Checksum::Xor),
                (Some(b'$'), b'#') => sum(Checksum::Sum),
                _ => false,
            }
    }
}

impl Digits<'_> {
    /// Returns the number of bits of all these digits together.
    fn bits(&self) -> usize {
        let bits = self
            .places
            .iter()
            .map(|place| self.kind.radix.bits(place.len()));
        bits.sum()
    }

    /// Returns true if some of these digits are enough for a checksum that is hardly chance.
    fn has_strong(&self) -> bool {
        self.places.iter().any(|place| self.kind.is_strong(place))
    }

    /// Returns the indices of the digits for which checksums are searched: some of the first, one in
    /// the middle, and the last.
    fn probes(&self) -> Vec<usize> {
        let last = self.places.len() - 1;
        let mut probes = vec![0, last / 2, last];
        probes.dedup();
        probes.truncate(PROBES);
        probes
    }

    /// Returns the styles in which the digits with the index `nth` are a checksum of other bytes of
    /// the text. Sums up at most `work` bytes, and lowers that number.
    fn styles(&self, text: &[u8], nth: usize, work: &mut usize) -> Vec<Style> {
        let digits = &text[self.places[nth].clone()];
        let radix = self.kind.radix;
        let sums = radix.sums(digits);
        let (mut styles, mut tried) = (Vec::new(), Vec::new());
        let is_strong = self.kind.is_strong(&self.places[nth]);
        for scope in Scope::all().filter(|scope| is_strong || !scope.has_lines()) {
            if *work < STEP {
                break;
            }
            *work -= STEP;
            let covered = scope.of(text, self, nth);
            let covered = covered.filter(|it| it.len() >= LEAST_COUNTED && !tried.contains(it));
            let Some(covered) = covered else {
                continue;
            };
            let cost = covered.len() * sums.len();
            if cost > *work {
                continue;
            }
            *work -= cost;
            interruption::check();
            let bytes = &text[covered.clone()];
            tried.push(covered);
            let agree = sums
                .iter()
                .filter(|sum| agrees(**sum, bytes, radix, digits));
            styles.extend(agree.map(|sum| Style { scope, sum: *sum }));
        }
        styles
    }

    /// Finds all checksums among these digits that are written in a style. `None` if they may be
    /// there by chance.
    fn found(&self, text: &[u8], style: Style) -> Option<Found> {
        let mut fields: Vec<Field> = Vec::new();
        let (mut end, mut misfits) = (0, 0);
        let is_mostly_strong = self.bits() >= LEAST_BITS * self.places.len();
        for (nth, place) in self.places.iter().enumerate() {
            if place.start < end {
                continue;
            }
            let field = self.field(text, style, nth, end);
            misfits += usize::from(field.is_none());
            if !is_mostly_strong && misfits > MISFITS && misfits * MISFITS > self.places.len() {
                return None;
            }
            end = field.as_ref().map_or(end, |field| field.record.end);
            fields.extend(field);
        }
        if fields.len() < misfits * MISFITS {
            fields.retain(|field| self.bits_of(text, style, field) >= LEAST_BITS);
        }
        // Equal digits say no more than one of them.
        let mut known = HashSet::new();
        let fresh = fields
            .iter()
            .filter(|field| known.insert(&text[field.digits.clone()]));
        let bits = fresh.map(|field| self.bits_of(text, style, field));
        (bits.sum::<usize>() >= LEAST_BITS).then(|| Found {
            style,
            encoding: self.encoding(text, &fields),
            fields,
        })
    }

    /// Returns how many bits of a checksum agree with what it covers, as far as that is no chance.
    fn bits_of(&self, text: &[u8], style: Style, field: &Field) -> usize {
        let bits = self
            .kind
            .radix
            .bits(field.digits.len())
            .min(8 * field.covered.len());
        match style.sum {
            _ if self.kind.is_known(text, style, field) => LEAST_BITS,
            Sum::Low(Checksum::Sum, _) => bits.min(SUM_BITS),
            _ => bits,
        }
    }

    /// Reads the digits with the index `nth` as a checksum in a style, behind the record that ends at
    /// `end`. `None` if they do not agree with what they would cover.
    fn field(&self, text: &[u8], style: Style, nth: usize, end: usize) -> Option<Field> {
        let place = &self.places[nth];
        let covered = style.scope.of(text, self, nth)?;
        let bytes = &text[covered.clone()];
        let is_right = agrees(style.sum, bytes, self.kind.radix, &text[place.clone()]);
        (is_right && covered.start >= end).then(|| {
            let start = style.scope.record_start(text, self, nth, &covered);
            Field {
                record: start.max(end)..self.record_end(text, nth, &covered),
                digits: place.clone(),
                covered,
            }
        })
    }

    /// Returns how the digits of `fields` are written. Where none has a letter, it is a capital
    /// behind a star, as satellite receivers write checksums.
    fn encoding(&self, text: &[u8], fields: &[Field]) -> Encoding {
        let places = fields.iter().map(|field| &field.digits);
        let is_letter = |byte: &u8| byte.is_ascii_alphabetic();
        let has_letters = places
            .clone()
            .any(|place| text[place.clone()].iter().any(is_letter));
        match self.kind.radix.encoding(text, places) {
            Encoding::Hex { width, .. } if !has_letters => Encoding::Hex {
                is_upper: self.kind.before == b'*',
                width,
            },
            encoding => encoding,
        }
    }

    /// Returns where the record ends that has the digits with the index `nth` and the bytes that
    /// they cover: behind these, and behind the line end that follows.
    fn record_end(&self, text: &[u8], nth: usize, covered: &Range<usize>) -> usize {
        let place = &self.places[nth];
        let end = covered.end.max(place.end);
        let line = line_end(text, end);
        let is_rest = text[end..line].trim_ascii().is_empty();
        let has_other = self
            .places
            .get(nth + 1)
            .is_some_and(|next| next.start < line);
        match covered.end > place.end {
            true if covered.end > 0 && text[..covered.end].ends_with(b"\n") => end,
            true if !is_rest => end,
            false if has_other => end,
            _ => line,
        }
    }
}

/// Returns true if digits state the checksum of `bytes`, of which some differ from zero.
fn agrees(sum: Sum, bytes: &[u8], radix: Radix, digits: &[u8]) -> bool {
    if let Sum::Digest(_) = sum {
        let encoding = radix.encoding(digits, [&(0..digits.len())].into_iter());
        return sum.write(bytes, 0, encoding) == digits;
    }
    radix.read(digits) == Some(sum.of(bytes)) && bytes.iter().any(|byte| *byte != 0)
}

impl Radix {
    /// Returns how numbers at these places of a text are written: with zeros at the front if one of
    /// them is, or if all have as many digits as the greatest needs.
    fn encoding<'a>(
        self,
        text: &[u8],
        places: impl Iterator<Item = &'a Range<usize>> + Clone,
    ) -> Encoding {
        let width = places.clone().map(Range::len).max().unwrap_or_default();
        let is_zero = |place: &Range<usize>| place.len() > 1 && text[place.start] == b'0';
        let is_equal = places.clone().all(|place| place.len() == width);
        let is_upper = places
            .clone()
            .any(|place| text[place.clone()].iter().any(u8::is_ascii_uppercase));
        let has_zero = places.clone().any(is_zero);
        match self {
            Radix::Decimal if has_zero => Encoding::Zeros(width),
            Radix::Decimal => Encoding::Digits,
            Radix::Hex(full) if has_zero || is_equal && width == full => {
                Encoding::Hex { is_upper, width }
            }
            Radix::Hex(_) => Encoding::Hex { is_upper, width: 0 },
            // A digest is all bytes that it has.
            Radix::Base64(_) => Encoding::Base64(0),
        }
    }
}

impl Found {
    /// Returns the number of bytes that the checksums cover.
    fn covered(&self) -> usize {
        self.fields.iter().map(|field| field.covered.len()).sum()
    }

    /// Returns true if the number beside each checksum states the size of the bytes that it covers,
    /// and is none of these.
    fn has_lengths(&self, text: &[u8], beside: Beside) -> bool {
        let mut end = 0;
        self.fields.iter().all(|field| {
            let number = beside.find(text, &field.digits);
            let number = number.filter(|(place, _)| {
                let is_outside =
                    place.end <= field.covered.start || place.start >= field.covered.end;
                is_outside && place.start >= end
            });
            end = field.record.end;
            number.is_some_and(|(_, size)| size == field.covered.len())
        })
    }

    /// Extends each record of the text `text` to the beginning of the line that states its length,
    /// if the number at `beside` stands before the record.
    fn include_lengths(&mut self, text: &[u8], beside: Beside) {
        for field in &mut self.fields {
            if let Some((place, _)) = beside.find(text, &field.digits)
                && place.start < field.record.start
            {
                field.record.start = line_start(text, place.start);
            }
        }
    }

    /// Returns the tree nodes of a record: a number for its checksum and perhaps for its length, a
    /// group for the bytes that they are of, and payloads for the rest.
    fn nodes(
        &self,
        reader: &mut Reader,
        text: &[u8],
        field: &Field,
        beside: Option<Beside>,
    ) -> Vec<Node> {
        let of = reader.label();
        let sum = self.number(text, field, of);
        let content = reader.payload(&text[field.covered.clone()]);
        let mut nodes = vec![
            (field.digits.clone(), sum),
            (field.covered.clone(), Group::new(of, content).into()),
        ];
        if let Some((beside, (place, _))) =
            beside.and_then(|beside| Some((beside, beside.find(text, &field.digits)?)))
        {
            let encoding = beside.radix.encoding(text, [&place].into_iter());
            let length = reader.number(encoding, Meaning::Length(of), 0, &text[place.clone()]);
            nodes.push((place, length));
        }
        nodes.sort_by_key(|(place, _)| place.start);
        let record = &text[..field.record.end];
        super::with_gaps(record, field.record.start, nodes).unwrap_or_default()
    }

    /// Returns the node of the checksum of a field, which covers the group of nodes `of`.
    fn number(&self, text: &[u8], field: &Field, of: Label) -> Node {
        Node::Number(Number {
            encoding: self.encoding,
            meaning: Meaning::Check(self.style.sum, of),
            bias: 0,
            raw: text[field.digits.clone()].into(),
        })
    }
}
