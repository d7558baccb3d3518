//! Parses the values of PDF: dictionaries, arrays, references to objects, numbers, names and
//! strings.

use std::ops::Range;

use crate::node::Label;
use crate::reader::Reader;

/// A value in a PDF file, such as a dictionary, a number or a reference to an object.
pub struct Value {
    /// Range of bytes that the value takes in its text: the file, or a decompressed object stream.
    pub place: Range<usize>,
    pub kind: Kind,
    /// Entries of the value if it is a dictionary, its elements if it is an array; else empty.
    pub items: Vec<Item>,
}

/// The kind of a value of PDF.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Dictionary,
    Array,
    /// A reference to the indirect object with this number, as `7 0 R`.
    Reference(u64),
    /// An integer that is not negative.
    Number(u64),
    /// A name, a string or another value.
    Other,
}

/// An entry of a PDF dictionary, or an element of a PDF array, with the white space after it.
pub struct Item {
    /// Label (id in the file's tree) of the group of nodes that the entry or element becomes in the
    /// tree of the file.
    pub label: Label,
    /// Range of the text that the entry (key and value) or element takes, with the white space
    /// after it.
    pub place: Range<usize>,
    /// Range of the text with the key of a dictionary entry, without its slash; empty for an array
    /// element.
    pub key: Range<usize>,
    pub value: Value,
}

/// Returns true if PDF counts a byte as white space.
pub fn is_space(byte: u8) -> bool {
    matches!(byte, 0 | b'\t' | b'\n' | 0x0c | b'\r' | b' ')
}

/// Returns true if a byte of PDF ends the name or number before it: white space or a delimiter.
fn is_end(byte: u8) -> bool {
    is_space(byte) || b"()<>[]{}/%".contains(&byte)
}

/// Returns the offset of the first byte from `at` on that is neither white space nor in a comment.
pub fn skip_space(text: &[u8], mut at: usize) -> usize {
    while let Some(byte) = text.get(at) {
        if *byte == b'%' {
            let line = text[at..].iter().take_while(|byte| !b"\r\n".contains(byte));
            at += line.count();
        } else if is_space(*byte) {
            at += 1;
        } else {
            break;
        }
    }
    at
}

/// Returns the offset after the name, number or word that contains offset `at`: before the next
/// white space or delimiter.
fn skip_word(text: &[u8], at: usize) -> usize {
    let word = text.get(at..).unwrap_or_default();
    at + word.iter().take_while(|byte| !is_end(**byte)).count()
}

/// Returns the offset after the string in parentheses that begins at offset `at`; `None` if its
/// closing parenthesis is missing.
fn skip_string(text: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    loop {
        match *text.get(at)? {
            b'(' => depth += 1,
            b')' => depth -= 1,
            b'\\' => at += 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
}

/// Reads the unsigned integer at offset `at`; returns its value and the offset after it, `None` if
/// there is none.
pub fn integer(text: &[u8], at: usize) -> Option<(u64, usize)> {
    let end = skip_word(text, at);
    let digits = std::str::from_utf8(text.get(at..end)?).ok()?;
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    Some((digits.parse().ok().filter(|_| is_plain)?, end))
}

/// Reads the reference to an object (`NUMBER GENERATION R`) at offset `at`; returns the number of
/// the object and the offset after the reference, `None` if there is no reference.
fn reference(text: &[u8], at: usize) -> Option<(u64, usize)> {
    let (number, end) = integer(text, at)?;
    let (_, end) = integer(text, skip_space(text, end))?;
    let at = skip_space(text, end);
    let is_one = text.get(at) == Some(&b'R') && skip_word(text, at) == at + 1;
    is_one.then_some((number, at + 1))
}

/// Reads the value of PDF at offset `at` of `text`. Returns `None` if there is none, if the value
/// does not end, if its dictionaries and arrays are nested too deeply, or if the file has too many
/// parts.
pub fn value(reader: &mut Reader, text: &[u8], at: usize) -> Option<Value> {
    let simple = |kind: Kind, end: usize| Value {
        place: at..end,
        kind,
        items: Vec::new(),
    };
    let rest = text.get(at..)?;
    Some(match rest.first()? {
        b'<' if rest.starts_with(b"<<") => {
            return reader.deeper(|reader| items(reader, text, at, Kind::Dictionary));
        }
        b'[' => return reader.deeper(|reader| items(reader, text, at, Kind::Array)),
        b'<' => {
            let size = rest.iter().position(|byte| *byte == b'>')? + 1;
            simple(Kind::Other, at + size)
        }
        b'(' => simple(Kind::Other, skip_string(text, at)?),
        b'/' => simple(Kind::Other, skip_word(text, at + 1)),
        b'0'..=b'9' => match (reference(text, at), integer(text, at)) {
            (Some((number, end)), _) => simple(Kind::Reference(number), end),
            (None, Some((number, end))) => simple(Kind::Number(number), end),
            (None, None) => simple(Kind::Other, skip_word(text, at)),
        },
        _ => {
            let end = skip_word(text, at);
            (end > at).then(|| simple(Kind::Other, end))?
        }
    })
}

/// Reads the dictionary or array, as `kind` says, that begins at offset `at`. `None` if it cannot
/// be read to its end, or if the file has too many parts.
fn items(reader: &mut Reader, text: &[u8], at: usize, kind: Kind) -> Option<Value> {
    let end_sign: &[u8] = match kind {
        Kind::Dictionary => b">>",
        _ => b"]",
    };
    let mut items = Vec::new();
    let mut next = skip_space(text, at + end_sign.len());
    while !text.get(next..)?.starts_with(end_sign) {
        let mut key = next..next;
        let mut start = next;
        if kind == Kind::Dictionary {
            (text.get(next) == Some(&b'/')).then_some(())?;
            key = next + 1..skip_word(text, next + 1);
            start = skip_space(text, key.end);
        }
        let value = value(reader, text, start)?;
        reader.count_part().then_some(())?;
        let end = skip_space(text, value.place.end);
        items.push(Item {
            label: reader.label(),
            place: next..end,
            key,
            value,
        });
        next = end;
    }
    Some(Value {
        place: at..next + end_sign.len(),
        kind,
        items,
    })
}

impl Value {
    /// Returns the entry with the key `name`; `None` if there is none, or the value is not a
    /// dictionary.
    pub fn entry(&self, text: &[u8], name: &[u8]) -> Option<&Item> {
        let is_it = |item: &&Item| text.get(item.key.clone()) == Some(name);
        self.items
            .iter()
            .filter(|_| self.kind == Kind::Dictionary)
            .find(is_it)
    }

    /// Returns the integer that is the value of the dictionary entry with the key `name`; `None` if
    /// there is no such entry, or its value is not an integer.
    pub fn number(&self, text: &[u8], name: &[u8]) -> Option<u64> {
        match self.entry(text, name)?.value.kind {
            Kind::Number(number) => Some(number),
            _ => None,
        }
    }

    /// Returns the value of the dictionary entry with the key `name`, if it is a PDF name or an
    /// array of a single name: the name without its slash. Otherwise returns `None`.
    pub fn name<'a>(&self, text: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
        let mut value = &self.entry(text, name)?.value;
        if let (Kind::Array, [item]) = (value.kind, &value.items[..]) {
            value = &item.value;
        }
        text.get(value.place.clone())?.strip_prefix(b"/")
    }

    /// Calls `see` for each reference inside of the value, at all depths: with the number of the
    /// object that is referred to, and the label (id in the file's tree) of the dictionary entry or
    /// array element that is the reference.
    pub fn references(&self, see: &mut impl FnMut(u64, Label)) {
        for item in &self.items {
            if let Kind::Reference(number) = item.value.kind {
                see(number, item.label);
            }
            item.value.references(see);
        }
    }
}
