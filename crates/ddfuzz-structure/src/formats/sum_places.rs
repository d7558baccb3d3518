//! Where checksums may stand in a text, and which bytes each may cover: digits between other
//! characters, and ranges of the text before and behind them.

use std::collections::HashMap;
use std::ops::Range;

use crate::base64;

/// Numbers of hexadecimal digits that checksums of 1, 2, 4 and 8 bytes and digests have; a number
/// without leading zeros may have fewer.
const WIDTHS: [usize; 7] = [2, 4, 8, 16, 32, 40, 64];
/// For digests of 16, 20, 32, 48 and 64 bytes in Base64: the number of characters with the padding,
/// and how many of these characters are padding.
const BASE64_WIDTHS: [(usize, usize); 5] = [(24, 2), (28, 1), (44, 1), (64, 0), (88, 2)];
/// Maximum number of digits of a decimal checksum.
const MOST_DECIMALS: usize = 10;
/// Maximum number of letters of a word in front of digits that says what they are.
const LONGEST_WORD: usize = 16;

/// How digits are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Radix {
    Decimal,
    /// Hexadecimal digits of numbers that have at most so many.
    Hex(usize),
    /// Base64 of a digest; the field is the number of its characters, with the padding.
    Base64(usize),
}

impl Radix {
    /// Reads digits as a number; `None` if they are others, or the number has more than 64 bits.
    pub fn read(self, digits: &[u8]) -> Option<u64> {
        let radix = match self {
            Radix::Decimal => 10,
            Radix::Hex(_) => 16,
            Radix::Base64(_) => return None,
        };
        u64::from_str_radix(std::str::from_utf8(digits).ok()?, radix).ok()
    }
}

/// What digits of a text have in common: how they are read, the byte before them, and perhaps the
/// word before that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Kind<'a> {
    pub radix: Radix,
    /// The byte before the digits; a newline at the beginning of the text.
    pub before: u8,
    pub word: Option<&'a [u8]>,
}

/// Digits of one kind in a text, in ascending order of their places.
pub(super) struct Digits<'a> {
    pub kind: Kind<'a>,
    pub places: Vec<Range<usize>>,
}

/// Lists the digits in ranges of a text, which ascend, by their kinds, in the order of the first of
/// each kind. Digits stand between characters that are neither letters nor digits.
pub(super) fn digits_of(
    text: &[u8],
    within: impl IntoIterator<Item = Range<usize>>,
) -> Vec<Digits<'_>> {
    let mut all: Vec<Digits> = Vec::new();
    let mut known: HashMap<Kind, usize> = HashMap::new();
    let mut add = |kind, place| {
        let index = *known.entry(kind).or_insert_with(|| {
            let places = Vec::new();
            all.push(Digits { kind, places });
            all.len() - 1
        });
        all[index].places.push(place);
    };
    for range in within {
        for_each_digits(text, range.clone(), &mut add);
        for_each_base64(text, range, &mut add);
    }
    all
}

/// Calls `each` with the kinds and the place of all digits that begin in a range of a text.
fn for_each_digits<'a>(
    text: &'a [u8],
    within: Range<usize>,
    mut each: impl FnMut(Kind<'a>, Range<usize>),
) {
    let mut at = within.start;
    while at < within.end {
        let run = run_at(text, at);
        at = run.end + 1;
        let place = match text[run.clone()].starts_with(b"0x") {
            true => run.start + 2..run.end,
            false => run.clone(),
        };
        let mut radixes = radixes(&text[place.clone()]).peekable();
        if place.is_empty() || radixes.peek().is_none() {
            continue;
        }
        let word = word_before(text, run.start);
        for radix in radixes {
            let words = [None, word]
                .into_iter()
                .take(1 + usize::from(word.is_some()));
            words.for_each(|word| {
                each(Kind::at(text, run.start, radix, word), place.clone());
            });
        }
    }
}

/// Calls `each` with the kind and the range of each digest in Base64 that begins in the range
/// `within` of a text. A digest is a run of Base64 characters, as long as possible, with the
/// padding behind it, that has one of the sizes in [`BASE64_WIDTHS`].
fn for_each_base64<'a>(
    text: &'a [u8],
    within: Range<usize>,
    mut each: impl FnMut(Kind<'a>, Range<usize>),
) {
    let mut at = within.start;
    while at < within.end {
        let digits = text[at..]
            .iter()
            .take_while(|byte| base64::is_digit(**byte));
        let end = at + digits.count();
        let signs = text[end..].iter().take_while(|byte| **byte == b'=');
        let size = (end - at, signs.count());
        let known = BASE64_WIDTHS.iter();
        let known = known
            .copied()
            .find(|(width, signs)| size == (width - signs, *signs));
        let is_first = at == 0 || !base64::is_digit(text[at - 1]);
        if let Some((width, _)) = known.filter(|_| is_first) {
            let kind = Kind::at(text, at, Radix::Base64(width), None);
            each(kind, at..at + width);
        }
        at = end + 1;
    }
}

impl<'a> Kind<'a> {
    /// Returns the kind of the digits that begin at the offset `start` of a text and are read as
    /// `radix` says. `word` is the word before the digits; `None` makes a kind for digits behind
    /// any word.
    fn at(text: &[u8], start: usize, radix: Radix, word: Option<&'a [u8]>) -> Kind<'a> {
        let before = start.checked_sub(1).map_or(b'\n', |at| text[at]);
        Kind {
            radix,
            before,
            word,
        }
    }
}

impl<'a> Digits<'a> {
    /// Lists all digits of one kind in a text.
    pub fn all(text: &'a [u8], kind: Kind<'a>) -> Digits<'a> {
        let mut places = Vec::new();
        let add = |other, place| {
            if other == kind {
                places.push(place);
            }
        };
        match kind.radix {
            Radix::Base64(_) => for_each_base64(text, 0..text.len(), add),
            Radix::Decimal | Radix::Hex(_) => for_each_digits(text, 0..text.len(), add),
        }
        Digits { kind, places }
    }
}

/// Returns the range of the letters and digits that begin at an offset of a text.
fn run_at(text: &[u8], at: usize) -> Range<usize> {
    let run = text[at..]
        .iter()
        .take_while(|byte| byte.is_ascii_alphanumeric());
    at..at + run.count()
}

/// Returns how a run of letters and digits may be read as a number.
fn radixes(run: &[u8]) -> impl Iterator<Item = Radix> + use<> {
    let is_decimal = run.len() <= MOST_DECIMALS && run.iter().all(u8::is_ascii_digit);
    let is_hex = run.len() <= 64
        && run.iter().all(u8::is_ascii_hexdigit)
        && !(run.iter().any(u8::is_ascii_uppercase) && run.iter().any(u8::is_ascii_lowercase));
    let width = WIDTHS.into_iter().find(|width| run.len() <= *width);
    // A digest has all of its digits.
    let width = width.filter(|width| is_hex && (*width <= 16 || run.len() == *width));
    let decimal = is_decimal.then_some(Radix::Decimal);
    decimal.into_iter().chain(width.map(Radix::Hex))
}

/// Returns the word of letters that stands before the signs or blanks in front of an offset, in the
/// same line; `None` if there is none of two letters or more.
fn word_before(text: &[u8], at: usize) -> Option<&[u8]> {
    let near = &text[at.saturating_sub(2 * LONGEST_WORD)..at];
    let is_sign = |byte: &&u8| !byte.is_ascii_alphanumeric() && **byte != b'\n';
    let signs = near.iter().rev().take_while(is_sign).count();
    let front = &near[..near.len() - signs];
    let letters = front
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_alphabetic());
    let word = &front[front.len() - letters.count()..];
    (2..=LONGEST_WORD).contains(&word.len()).then_some(word)
}

/// Where to find a number near the digits of a checksum that may state how many bytes the checksum
/// covers, and how the digits of the number are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Beside {
    /// Position of the number, counted in runs of letters and digits from the digits of the
    /// checksum: 1 for the first run behind them, -1 for the last run before them, and so on. 0
    /// stands for the number behind a name such as `Content-Length` and a colon in a line of the
    /// same head (lines around the digits up to an empty one).
    step: isize,
    pub radix: Radix,
}

impl Beside {
    /// All numbers beside digits that are tried, the nearest first.
    pub fn all() -> impl Iterator<Item = Beside> {
        let steps = [-1, 1, -2, 2, -3].into_iter();
        let radixes = [Radix::Decimal, Radix::Hex(8)];
        let near = steps.flat_map(move |step| radixes.map(|radix| Beside { step, radix }));
        near.chain([Beside {
            step: 0,
            radix: Radix::Decimal,
        }])
    }

    /// Finds this number beside the digits at `place`: in the same line or, if `step` is 0, in the
    /// same head. Returns the range of the number in the text and its value; `None` if no number is
    /// there.
    pub fn find(self, text: &[u8], place: &Range<usize>) -> Option<(Range<usize>, usize)> {
        let mut run = match self.step {
            0 => length_in_head(text, place)?,
            _ => place.clone(),
        };
        for _ in 0..self.step.unsigned_abs() {
            run = match self.step > 0 {
                true => run_behind(text, run.end)?,
                false => run_before(text, run.start)?,
            };
        }
        let number = self.radix.read(&text[run.clone()])?;
        Some((run, usize::try_from(number).ok()?))
    }
}

/// Returns the range of the number behind a name that ends with `length` and a colon, in the head
/// that contains the digits at `place`: the lines before and behind the digits up to the next empty
/// line. `None` if the head has no such name.
fn length_in_head(text: &[u8], place: &Range<usize>) -> Option<Range<usize>> {
    let is_empty = |line: &Range<usize>| text[line.clone()].trim_ascii().is_empty();
    let line_at = |at: usize| line_start(text, at)..line_end(text, at);
    let before = std::iter::successors(Some(line_at(place.start)), |line| {
        line.start.checked_sub(1).map(line_at)
    });
    let behind = std::iter::successors(Some(line_at(place.end)), |line| {
        (line.end < text.len()).then(|| line_at(line.end))
    });
    let before = before.take(MOST_LINES).take_while(|line| !is_empty(line));
    let behind = behind.take(MOST_LINES).take_while(|line| !is_empty(line));
    before.chain(behind).find_map(|line| {
        let colon = line.start + memchr::memchr(b':', &text[line.clone()])?;
        let name = &text[line.start..colon];
        let word = name.get(name.len().checked_sub(LENGTH.len())?..)?;
        let blanks = text[colon + 1..line.end]
            .iter()
            .take_while(|byte| **byte == b' ');
        let run = run_at(text, colon + 1 + blanks.count());
        word.eq_ignore_ascii_case(LENGTH).then_some(run)
    })
}

/// The word with which the name of a length ends in a head (such as `Content-Length`), compared
/// without regard to case.
const LENGTH: &[u8] = b"length";

/// Maximum number of signs and blanks between digits and a number beside them.
const NEAR: usize = 4;

fn run_behind(text: &[u8], from: usize) -> Option<Range<usize>> {
    let near = text[from..].iter().take(NEAR + 1);
    let signs = near.take_while(|byte| !byte.is_ascii_alphanumeric() && **byte != b'\n');
    let run = run_at(text, from + signs.count());
    (!run.is_empty()).then_some(run)
}

fn run_before(text: &[u8], to: usize) -> Option<Range<usize>> {
    let near = text[..to].iter().rev().take(NEAR + 1);
    let signs = near.take_while(|byte| !byte.is_ascii_alphanumeric() && **byte != b'\n');
    let end = to - signs.count();
    let run = text[..end]
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_alphanumeric());
    let start = end - run.count();
    (start < end).then_some(start..end)
}

/// Which bytes digits cover, by their place in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// The bytes between two places before the digits.
    Before(From, To),
    /// The bytes between two places behind the digits.
    Behind(Start, End),
    /// As many bytes behind the digits as the number beside them says.
    Counted(Start, Beside),
}

/// Where the bytes that digits behind them cover begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum From {
    /// The beginning of the line, or the end of other such digits in it.
    Record,
    /// Behind the sign at the beginning of the line, or behind other such digits in it.
    Sign,
    /// The line behind that of other such digits, or the beginning of the text.
    Others,
}

/// Where the bytes end whose checksum is written in digits behind them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum To {
    Digits,
    /// Before the sign in front of the digits.
    Sign,
    /// Before the word in front of the digits.
    Word,
    /// Before the sign in front of that word.
    WordSign,
    /// The beginning of the line.
    Line,
    /// The end of the line before.
    LineBreak,
}

/// Where the bytes begin whose checksum is written in digits in front of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    Digits,
    /// Behind the sign that follows the digits.
    Sign,
    /// Behind the signs and blanks that follow the digits.
    Signs,
    /// The next line.
    Line,
    /// Behind the next empty line.
    Empty,
}

/// Where the bytes that digits in front of them cover end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Before the end of the line.
    Line,
    /// Behind the end of the line.
    LineBreak,
    /// The line of the next such digits, or the end of the text.
    Others,
    /// Before the last newline there.
    OthersBreak,
}

const STARTS: [Start; 5] = [
    Start::Sign,
    Start::Digits,
    Start::Signs,
    Start::Line,
    Start::Empty,
];

impl Scope {
    /// Returns all scopes that are tried.
    pub fn all() -> impl Iterator<Item = Scope> {
        let to = [
            To::Sign,
            To::Digits,
            To::WordSign,
            To::Word,
            To::Line,
            To::LineBreak,
        ];
        let from = [From::Record, From::Sign, From::Others];
        let before = from
            .into_iter()
            .flat_map(move |from| to.map(|to| Scope::Before(from, to)));
        let end = [End::Line, End::LineBreak, End::Others, End::OthersBreak];
        let behind = STARTS
            .into_iter()
            .flat_map(move |start| end.map(|end| Scope::Behind(start, end)));
        let counted =
            Beside::all().flat_map(|beside| STARTS.map(|start| Scope::Counted(start, beside)));
        counted.chain(before).chain(behind)
    }

    /// Returns true if digits with this scope cover other lines than their own.
    pub fn has_lines(self) -> bool {
        let is_behind = |start| matches!(start, Start::Line | Start::Empty);
        match self {
            Scope::Before(from, _) => from == From::Others,
            Scope::Behind(start, end) => {
                is_behind(start) || matches!(end, End::Others | End::OthersBreak)
            }
            Scope::Counted(..) => false,
        }
    }

    /// Returns the bytes that the digits with the index `nth` cover, as a range of the text that
    /// does not have them; `None` if there is no such range.
    pub fn of(self, text: &[u8], digits: &Digits, nth: usize) -> Option<Range<usize>> {
        let place = &digits.places[nth];
        match self {
            Scope::Before(from, to) => {
                let start = from.offset(text, digits, nth)?;
                let end = to.offset(text, place.start)?;
                (start < end).then_some(start..end)
            }
            Scope::Behind(start, end) => {
                let start = start.offset(text, place.end)?;
                let end = end.offset(text, digits, nth, start)?;
                (start < end).then_some(start..end)
            }
            Scope::Counted(start, beside) => {
                let (number, size) = beside.find(text, place)?;
                let start = start.offset(text, place.end.max(number.end))?;
                let end = start.checked_add(size).filter(|end| *end <= text.len())?;
                (size > 0).then_some(start..end)
            }
        }
    }

    /// Returns where the record begins that has the digits with the index `nth` and the bytes
    /// `scope`, which they cover.
    pub fn record_start(
        self,
        text: &[u8],
        digits: &Digits,
        nth: usize,
        scope: &Range<usize>,
    ) -> usize {
        match self {
            Scope::Before(From::Others, _) => scope.start,
            _ => record_start(text, digits, nth),
        }
    }
}

/// Returns the offset at which the line of the digits with the index `nth` begins, or at which
/// other such digits in it end.
fn record_start(text: &[u8], digits: &Digits, nth: usize) -> usize {
    let line = line_start(text, digits.places[nth].start);
    let other = nth.checked_sub(1).map(|nth| digits.places[nth].end);
    other.map_or(line, |other| line.max(other))
}

pub(super) fn line_start(text: &[u8], at: usize) -> usize {
    memchr::memrchr(b'\n', &text[..at]).map_or(0, |at| at + 1)
}

/// Returns the offset behind the end of the line in which the offset `at` is.
pub(super) fn line_end(text: &[u8], at: usize) -> usize {
    memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |size| at + size + 1)
}

/// Returns the offset before the newline that ends at the offset `at`, if one does.
fn before_newline(text: &[u8], at: usize) -> usize {
    let front = &text[..at];
    let ends = [&b"\r\n"[..], b"\n"]
        .into_iter()
        .find(|end| front.ends_with(end));
    at - ends.map_or(0, <[u8]>::len)
}

impl From {
    fn offset(self, text: &[u8], digits: &Digits, nth: usize) -> Option<usize> {
        let record = record_start(text, digits, nth);
        match self {
            From::Record => Some(record),
            From::Sign => (!text.get(record)?.is_ascii_alphanumeric()).then_some(record + 1),
            From::Others => {
                let other = nth.checked_sub(1).map(|nth| digits.places[nth].end);
                Some(other.map_or(0, |other| line_end(text, other)))
            }
        }
    }
}

impl To {
    /// Returns the offset at which the bytes before the digits end that begin at `at`.
    fn offset(self, text: &[u8], at: usize) -> Option<usize> {
        let line = line_start(text, at);
        let at = if text[line..at].ends_with(b"0x") {
            at - 2
        } else {
            at
        };
        let word = || {
            let is_word = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
            let signs = text[line..at]
                .iter()
                .rev()
                .take_while(|byte| !is_word(byte))
                .count();
            let end = at - signs;
            let letters = text[line..end].iter().rev().take_while(is_word).count();
            (letters > 0).then_some(end - letters)
        };
        match self {
            To::Digits => Some(at),
            To::Sign => at.checked_sub(1),
            To::Word => word(),
            To::WordSign => word()?.checked_sub(1),
            To::Line => Some(line),
            To::LineBreak => Some(before_newline(text, line)).filter(|end| *end < line),
        }
    }
}

impl Start {
    /// Returns the offset at which the bytes behind the digits begin that end at `at`.
    fn offset(self, text: &[u8], at: usize) -> Option<usize> {
        let is_sign = |byte: &&u8| !byte.is_ascii_alphanumeric() && !matches!(byte, b'\r' | b'\n');
        match self {
            Start::Digits => Some(at),
            Start::Sign => text.get(at).filter(is_sign).map(|_| at + 1),
            Start::Signs => {
                let signs = text[at..].iter().take_while(is_sign).count();
                (signs > 1).then_some(at + signs)
            }
            Start::Line => Some(line_end(text, at)),
            Start::Empty => {
                let ends = memchr::memchr_iter(b'\n', &text[at..]).map(|size| at + size + 1);
                let mut empty = ends.take(MOST_LINES).map(|start| {
                    let end = line_end(text, start);
                    (end, text[start..end].trim_ascii().is_empty())
                });
                empty.find_map(|(end, is_empty)| is_empty.then_some(end))
            }
        }
    }
}

/// Maximum number of lines of a head, from digits to an empty line.
const MOST_LINES: usize = 64;

impl End {
    /// Returns the offset at which the bytes end that begin at `start` and that the digits with the
    /// index `nth` cover.
    fn offset(self, text: &[u8], digits: &Digits, nth: usize, start: usize) -> Option<usize> {
        let others = || {
            let next = digits
                .places
                .get(nth + 1)
                .map(|next| line_start(text, next.start));
            next.unwrap_or(text.len())
        };
        match self {
            End::Line => Some(before_newline(text, line_end(text, start))),
            End::LineBreak => Some(line_end(text, start)),
            End::Others => Some(others()),
            End::OthersBreak => Some(before_newline(text, others())),
        }
    }
}
