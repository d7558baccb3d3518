//! Readers for texts with strings that follow their sizes in digits: netstrings, bencode, HTTP
//! bodies and chunks, RESP, and serialized PHP.

use std::ops::Range;

use super::image::rest;
use crate::node::{Group, Meaning, Node};
use crate::number::Encoding;
use crate::reader::Reader;

/// Maximum size, in bytes, of texts in which strings that follow their sizes in digits are searched
/// for.
const LARGEST: usize = 1 << 20;
/// Separators that may stand between the size of a string and the string.
const AFTER: [&[u8]; 8] = [b":", b"\r\n", b" ", b"\n", b"|", b"=", b";", b"#"];
/// Separators that may follow a string whose size is stated before it.
const END: [&[u8]; 6] = [b",", b"\r\n", b";", b"\n", b"|", b" "];
/// Signs that may stand directly in front of the size of a string, such as `$` in RESP; the first,
/// empty one means that there is none.
const BEFORE: [&[u8]; 2] = [b"", b"$"];
/// Minimum mean size, in bytes, that the strings of a text must have if there are several; with a
/// smaller mean, numbers may agree with the sizes of strings by chance.
const FEWEST: usize = 4;
/// Minimum size, in bytes, of a string with its size in front if it is the only such string of a
/// text; a shorter one may be chance.
const SINGLE: usize = 16;
/// A style of strings fits a text only if the text has at least this many such strings for each
/// misfit, that is, each number that looks like the size of a string but is not followed by a
/// string.
const MISFITS: usize = 8;
/// The strings of a text (each with its size in digits before it) that take less than three
/// quarters of the text together count as chance, unless at least this many of them follow each
/// other directly.
const CHAIN: usize = 3;

/// A way to write strings with their sizes: the bytes `before`, the size in digits, the bytes
/// `after`, the string, and the bytes `end`.
#[derive(Clone, Copy)]
struct Style {
    before: &'static [u8],
    encoding: Encoding,
    after: &'static [u8],
    end: &'static [u8],
}

/// A string that was found in a text after its size in digits: the offset at which the size with
/// its signs begins, the ranges of the digits and of the string, and the offset after the separator
/// that ends the string.
struct Counted {
    start: usize,
    digits: Range<usize>,
    body: Range<usize>,
    end: usize,
}

impl Style {
    /// Returns all tried ways to write a string with its size: decimal sizes with each combination
    /// of the signs and separators around them, and the hexadecimal sizes of HTTP chunks.
    fn all() -> impl Iterator<Item = Style> {
        let ways = BEFORE
            .into_iter()
            .flat_map(|before| AFTER.map(|after| (before, after)));
        let decimal = ways.flat_map(|(before, after)| {
            END.map(|end| Style {
                before,
                encoding: Encoding::Digits,
                after,
                end,
            })
        });
        let chunks = [false, true].map(|is_upper| Style {
            before: b"",
            encoding: Encoding::Hex { is_upper, width: 0 },
            after: b"\r\n",
            end: b"\r\n",
        });
        decimal.chain(chunks)
    }

    /// Reads the size that stands in front of a string. At offset `at` of `text` are the bytes that
    /// this style has before a size, then its digits. Returns the range of the digits, their value,
    /// and the offset at which the string begins; `None` if no size of this style begins at `at`,
    /// or if it has leading zeros.
    fn number(self, text: &[u8], at: usize) -> Option<(Range<usize>, usize, usize)> {
        let from = at + self.before.len();
        text.get(at..)?.starts_with(self.before).then_some(())?;
        let (number, width) = self.encoding.read(text.get(from..)?)?;
        let digits = from..from + width;
        // Zeros before a number would go.
        (self.encoding.write(number) == text[digits.clone()]).then_some(())?;
        let start = digits.end + self.after.len();
        let is_followed = text[digits.end..].starts_with(self.after);
        is_followed.then(|| Some((digits, usize::try_from(number).ok()?, start)))?
    }

    /// Reads a string in this style, with its size and separators, at offset `at` of `text`; `None`
    /// if there is none.
    fn read(self, text: &[u8], at: usize) -> Option<Counted> {
        let (digits, size, start) = self.number(text, at)?;
        let stop = start.checked_add(size)?;
        text.get(stop..)?.starts_with(self.end).then_some(Counted {
            start: at,
            digits,
            body: start..stop,
            end: stop + self.end.len(),
        })
    }

    /// Returns the tree nodes of `string` (a string with its size before it) in `text`: a number
    /// for the size, which is computed anew whenever the file is written; the bytes of the string;
    /// and the separators.
    fn nodes(self, reader: &mut Reader, text: &[u8], string: &Counted) -> Vec<Node> {
        let of = reader.label();
        let digits = &text[string.digits.clone()];
        vec![
            Node::fixed(self.before),
            reader.number(self.encoding, Meaning::Length(of), 0, digits),
            Node::fixed(self.after),
            Group::new(of, reader.payload(&text[string.body.clone()])).into(),
            Node::fixed(self.end),
        ]
    }

    /// Returns the strings of `text` that are written in this style: with their size before them.
    /// `places` are the places of numbers that may be sizes. Returns none at all if too many
    /// numbers look like a size but no string follows them: more than one for every [`MISFITS`]
    /// strings.
    fn strings(self, text: &[u8], places: &NumberPlaces) -> Vec<Counted> {
        let mut found: Vec<Counted> = Vec::new();
        let mut misfits = 0;
        let numbers = match self.encoding {
            Encoding::Digits => &places.decimal,
            _ => &places.lines,
        };
        for number in numbers {
            let Some(at) = number.start.checked_sub(self.before.len()) else {
                continue;
            };
            let is_inside = found.last().is_some_and(|last| at < last.end);
            let is_part = at > 0 && text[at - 1].is_ascii_alphanumeric();
            let is_followed = text[number.end..].starts_with(self.after);
            if is_inside || is_part || !is_followed {
                continue;
            }
            match self.read(text, at) {
                Some(string) => found.push(string),
                None => misfits += usize::from(self.number(text, at).is_some()),
            }
        }
        if misfits * MISFITS > found.len() {
            found.clear();
        }
        found
    }
}

/// The ranges of a text at which the size of a string may stand.
struct NumberPlaces {
    /// Sequences of decimal digits that are directly followed by one of the separators [`AFTER`].
    decimal: Vec<Range<usize>>,
    /// Sequences of hexadecimal digits at the beginnings of lines, where HTTP has the sizes of
    /// chunks.
    lines: Vec<Range<usize>>,
}

impl NumberPlaces {
    fn of(text: &[u8]) -> NumberPlaces {
        let run = |start: usize, is_digit: fn(&u8) -> bool| {
            let size = text[start..].iter().take_while(|byte| is_digit(byte));
            start..start + size.count()
        };
        let (mut decimal, mut at) = (Vec::new(), 0);
        while at < text.len() {
            let digits = run(at, u8::is_ascii_digit);
            at = digits.end + 1;
            let is_followed = AFTER
                .iter()
                .any(|after| text[digits.end..].starts_with(after));
            decimal.extend((!digits.is_empty() && is_followed).then_some(digits));
        }
        let ends = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        let starts = std::iter::once(0).chain(ends.map(|(end, _)| end + 1));
        let lines = starts.map(|start| run(start, u8::is_ascii_hexdigit));
        let lines = lines.filter(|digits| !digits.is_empty()).collect();
        NumberPlaces { decimal, lines }
    }
}

/// Returns the length of the longest chain of strings each of which begins where the one before it
/// ends.
fn longest_chain(strings: &[Counted]) -> usize {
    let (mut longest, mut chain, mut end) = (0, 0, usize::MAX);
    for string in strings {
        chain = if string.start == end { chain + 1 } else { 1 };
        longest = longest.max(chain);
        end = string.end;
    }
    longest
}

/// Reads a text that contains strings, each after its size in digits. Of the known styles of
/// writing such strings, it takes the one whose strings take most of the text. `None` if the
/// strings may be there by chance: a single string must have [`SINGLE`] bytes and take three
/// quarters of the text; several must have [`FEWEST`] bytes on average, and take three quarters of
/// the text or follow each other directly, at least [`CHAIN`] of them.
pub fn counted(reader: &mut Reader, text: &[u8]) -> Option<Vec<Node>> {
    (text.len() <= LARGEST).then_some(())?;
    if let Some(nodes) = messages(reader, text) {
        return Some(nodes);
    }
    let covered = |strings: &[Counted]| -> usize {
        let sizes = strings.iter().map(|string| string.end - string.start);
        sizes.sum()
    };
    let places = NumberPlaces::of(text);
    let styles = Style::all().map(|style| (style, style.strings(text, &places)));
    let (style, strings) = styles.max_by_key(|(_, strings)| covered(strings))?;
    let bytes: usize = strings.iter().map(|string| string.body.len()).sum();
    let is_most = covered(&strings) * 4 >= text.len() * 3;
    let is_meant = match strings.len() {
        0 => false,
        1 => is_most && bytes >= SINGLE,
        some => bytes >= FEWEST * some && (is_most || longest_chain(&strings) >= CHAIN),
    };
    is_meant.then(|| string_nodes(reader, text, style, &strings))
}

/// Returns the tree nodes of `text`: a deletable part for each of `strings`, which are written in
/// the style `style`, and the lines between them. A number directly before `n` successive strings
/// is taken for a count of the next strings if it is at most `n`; it is computed anew when some of
/// these are deleted.
fn string_nodes(reader: &mut Reader, text: &[u8], style: Style, strings: &[Counted]) -> Vec<Node> {
    let mut nodes = Vec::new();
    let (mut at, mut next) = (0, 0);
    while next < strings.len() {
        let chain = strings[next..].windows(2);
        let chain = 1 + chain.take_while(|two| two[0].end == two[1].start).count();
        let from = strings[next].start;
        let count = count_before(&text[at..from], style);
        let count = count.filter(|(_, number)| (1..=chain).contains(number));
        let number = count.as_ref().map_or(chain, |(_, number)| *number);
        let parts = &strings[next..next + number];
        let of = reader.label();
        let literal = count.map_or(from, |(start, _)| at + start);
        nodes.extend(lines(reader, &text[at..literal]));
        if literal < from {
            let digits = &text[literal..from - style.after.len()];
            nodes.push(reader.number(style.encoding, Meaning::Count(of), 0, digits));
            nodes.push(Node::fixed(style.after));
        }
        let parts = parts
            .iter()
            .map(|string| string_node(reader, text, style, string));
        let parts = parts.collect();
        nodes.push(Group::new(of, parts).into());
        next += number;
        at = strings[next - 1].end;
    }
    nodes.extend(lines(reader, &text[at..]));
    nodes
}

/// Returns the tree nodes of text between strings: a deletable part for each whole line, and a
/// payload for the rest.
pub(super) fn lines(reader: &mut Reader, text: &[u8]) -> Vec<Node> {
    let lines = text.split_inclusive(|byte| *byte == b'\n');
    let nodes = lines.map(|line| match line.ends_with(b"\n") && reader.count_part() {
        true => Group::part(reader.label(), vec![Node::payload(line)]).into(),
        false => Node::payload(line),
    });
    nodes.collect()
}

/// Reads a decimal number that may state how many strings follow. It stands at the end of `text`,
/// before the separator that this `style` has after a size. Returns the offset of the first digit,
/// and the number; `None` if there is no such number.
fn count_before(text: &[u8], style: Style) -> Option<(usize, usize)> {
    let digits = text.strip_suffix(style.after)?;
    let size = digits
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let start = digits.len() - size;
    let (number, _) = style.encoding.read(&digits[start..]).filter(|_| size > 0)?;
    Some((start, usize::try_from(number).ok()?))
}

/// Makes a deletable part of `string` in `text`; if the file has too many parts, a group of nodes
/// that cannot be deleted by itself.
fn string_node(reader: &mut Reader, text: &[u8], style: Style, string: &Counted) -> Node {
    let nodes = style.nodes(reader, text, string);
    match reader.count_part() {
        true => Group::part(reader.label(), nodes).into(),
        false => Group::new(reader.label(), nodes).into(),
    }
}

/// Reads messages as in HTTP: header lines, an empty line, and a body whose size a header states.
/// Each message is a deletable part. `None` if the text does not begin with such a message.
fn messages(reader: &mut Reader, text: &[u8]) -> Option<Vec<Node>> {
    let (mut nodes, mut at) = (Vec::new(), 0);
    while at < text.len() {
        let Some((digits, body)) = message(&text[at..]) else {
            break;
        };
        let (digits, body) = (
            at + digits.start..at + digits.end,
            at + body.start..at + body.end,
        );
        let of = reader.label();
        let number = &text[digits.clone()];
        let mut message = lines(reader, &text[at..digits.start]);
        message.push(reader.number(Encoding::Digits, Meaning::Length(of), 0, number));
        let end = text[digits.end..body.start]
            .iter()
            .position(|byte| *byte == b'\n');
        let end = digits.end + end? + 1;
        message.push(Node::payload(&text[digits.end..end]));
        message.extend(lines(reader, &text[end..body.start]));
        message.push(Group::new(of, reader.payload(&text[body.clone()])).into());
        reader.count_part().then_some(())?;
        nodes.push(Group::part(reader.label(), message).into());
        at = body.end;
    }
    (at > 0).then(|| rest(nodes, text, at))
}

/// Finds, in the headers before an empty line, the number that states the size of the message's
/// body; returns the ranges of the number and the body. That is a number which is the size of the
/// rest of `text`, or one that is not larger and stands behind `length` in its line. `None` if
/// there is no such number.
fn message(text: &[u8]) -> Option<(Range<usize>, Range<usize>)> {
    let start = [&b"\r\n\r\n"[..], b"\n\n"].into_iter().filter_map(|empty| {
        let places = text.windows(empty.len()).position(|bytes| bytes == empty);
        Some(places? + empty.len())
    });
    let start = start.min()?;
    let rest = text.len() - start;
    let mut at = 0;
    while at < start {
        let size = text[at..start]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        let number = Encoding::Digits.read_at(text, at).filter(|_| size > 0);
        if let Some(number) = number.and_then(|number| usize::try_from(number).ok()) {
            let line = text[..at]
                .iter()
                .rposition(|byte| *byte == b'\n')
                .map_or(0, |end| end + 1);
            let line = text[line..at].to_ascii_lowercase();
            let is_length = line.windows(6).any(|word| word == b"length") && number <= rest;
            if number == rest && number >= FEWEST || is_length {
                return Some((at..at + size, start..start + number));
            }
        }
        at += size.max(1);
    }
    None
}

/// Reads bencode or a canonical S-expression: strings, each after its size in digits, and lists and
/// dictionaries of values. `None` unless the whole text is one list or dictionary.
pub fn bencode(reader: &mut Reader, text: &[u8]) -> Option<Vec<Node>> {
    let is_list = matches!(text.first()?, b'd' | b'l' | b'(');
    is_list
        .then(|| whole(reader, text, bencode_value))
        .flatten()
}

/// Reads serialized PHP: strings, each after its size in digits, and arrays and objects, whose
/// entries follow the number of entries. `None` unless the whole text is one array or object.
pub fn php(reader: &mut Reader, text: &[u8]) -> Option<Vec<Node>> {
    let is_array = matches!(text.first()?, b'a' | b'O');
    is_array.then(|| whole(reader, text, php_value)).flatten()
}

/// A value of bencode or of serialized PHP that was read: its tree nodes, and its size in the file
/// in bytes.
type Value = (Vec<Node>, usize);
/// Function that reads the value at the beginning of a text; `None` if there is none.
type ReadValue = fn(&mut Reader, &[u8]) -> Option<Value>;

/// Reads a text that consists of one value, by `read`. `None` if the text has fewer than [`SINGLE`]
/// bytes, more than [`LARGEST`], other bytes after the value, or no `:`.
fn whole(reader: &mut Reader, text: &[u8], read: ReadValue) -> Option<Vec<Node>> {
    (SINGLE..=LARGEST).contains(&text.len()).then_some(())?;
    let (nodes, size) = read(reader, text)?;
    (size == text.len() && text.contains(&b':')).then_some(nodes)
}

/// Makes a value of `nodes`, which take `size` bytes in the file; always `Some`. Searches may put
/// this value in place of a value that contains it.
fn item(reader: &mut Reader, nodes: Vec<Node>, size: usize) -> Option<Value> {
    Some((vec![Group::item(reader.label(), nodes).into()], size))
}

fn bencode_value(reader: &mut Reader, text: &[u8]) -> Option<Value> {
    let (nodes, size) = match text.first()? {
        b'i' => {
            let size = text.iter().position(|byte| *byte == b'e')? + 1;
            let is_digit = |byte: &u8| byte.is_ascii_digit() || *byte == b'-';
            let is_number = text[1..size - 1].iter().all(is_digit);
            is_number.then(|| (vec![Node::fixed(&text[..size])], size))?
        }
        b'l' => list(reader, text, b'e', 1)?,
        b'd' => list(reader, text, b'e', 2)?,
        b'(' => list(reader, text, b')', 1)?,
        _ => {
            let string = BENCODE.read(text, 0)?;
            (BENCODE.nodes(reader, text, &string), string.end)
        }
    };
    item(reader, nodes, size)
}

/// Style of the strings of bencode: `4:spam`.
const BENCODE: Style = Style {
    before: b"",
    encoding: Encoding::Digits,
    after: b":",
    end: b"",
};

/// Style of the strings of serialized PHP: `s:4:"spam";`.
const PHP: Style = Style {
    before: b"s:",
    encoding: Encoding::Digits,
    after: b":\"",
    end: b"\";",
};

/// Style of the class name of an object of serialized PHP: `O:4:"Spam":`.
const CLASS: Style = Style {
    before: b"O:",
    end: b"\":",
    ..PHP
};

fn php_value(reader: &mut Reader, text: &[u8]) -> Option<Value> {
    let (nodes, size) = match text.first()? {
        b'N' | b'i' | b'd' | b'b' | b'r' | b'R' => {
            let size = text.iter().position(|byte| *byte == b';')? + 1;
            (vec![Node::fixed(&text[..size])], size)
        }
        b's' => {
            let string = PHP.read(text, 0)?;
            (PHP.nodes(reader, text, &string), string.end)
        }
        b'a' => {
            let (nodes, size) = entries(reader, text.strip_prefix(b"a:")?)?;
            let head = std::iter::once(Node::fixed(b"a:"));
            (head.chain(nodes).collect(), 2 + size)
        }
        _ => {
            let class = CLASS.read(text, 0)?;
            let mut nodes = CLASS.nodes(reader, text, &class);
            let (entries, size) = entries(reader, &text[class.end..])?;
            nodes.extend(entries);
            (nodes, class.end + size)
        }
    };
    item(reader, nodes, size)
}

/// Reads the entries of an array or object of serialized PHP at the beginning of `text`, from their
/// number on: each pair of key and value becomes a deletable part. Returns the tree nodes and their
/// size in bytes; `None` if the entries cannot be read.
fn entries(reader: &mut Reader, text: &[u8]) -> Option<Value> {
    let (_, width) = Encoding::Digits.read(text)?;
    let of = reader.label();
    let mut nodes = vec![
        reader.number(Encoding::Digits, Meaning::Count(of), 0, &text[..width]),
        Node::fixed(b":{"),
    ];
    let start = width + 2;
    text[width..].starts_with(b":{").then_some(())?;
    let (parts, size) = values(reader, &text[start..], b'}', 2, php_value)?;
    nodes.push(Group::new(of, parts).into());
    nodes.push(Node::fixed(b"}"));
    Some((nodes, start + size))
}

/// Reads a list or dictionary of bencode up to the byte `end`. `each` successive values become one
/// deletable part: 1 in a list, 2 (key and value) in a dictionary. `None` if a value or the end
/// cannot be read, or the file has too many parts.
fn list(reader: &mut Reader, text: &[u8], end: u8, each: usize) -> Option<Value> {
    let (parts, size) = values(reader, &text[1..], end, each, bencode_value)?;
    let mut nodes = vec![Node::fixed(&text[..1])];
    nodes.extend(parts);
    nodes.push(Node::fixed(&[end]));
    Some((nodes, 1 + size))
}

/// Reads values, each by `read`, from the beginning of `text` up to the byte `end`. Every `each`
/// successive values become one deletable part (2, key and value, in a dictionary). Returns the
/// parts, and the size in bytes of all values with `end`; `None` if a value cannot be read, `end`
/// is missing, or the file has too many parts.
fn values(
    reader: &mut Reader,
    text: &[u8],
    end: u8,
    each: usize,
    read: ReadValue,
) -> Option<Value> {
    let (mut nodes, mut at) = (Vec::new(), 0);
    while *text.get(at)? != end {
        let mut part = Vec::new();
        for _ in 0..each {
            let rest = text.get(at..)?;
            let (value, size) = reader.deeper(|reader| read(reader, rest))?;
            part.extend(value);
            at += size;
        }
        reader.count_part().then_some(())?;
        nodes.push(Group::part(reader.label(), part).into());
    }
    Some((nodes, at + 1))
}
