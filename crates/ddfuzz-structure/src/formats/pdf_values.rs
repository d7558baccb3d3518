//! Values of PDF: dictionaries, arrays, references and what has no parts.

use std::ops::Range;

use crate::node::Label;
use crate::reader::Reader;

/// A value of PDF.
pub struct Value {
    /// Where the value stands in its text.
    pub place: Range<usize>,
    pub kind: Kind,
    /// Entries of a dictionary, elements of an array.
    pub items: Vec<Item>,
}

/// Kinds of values.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Dictionary,
    Array,
    /// A reference to the object with this number.
    Reference(u64),
    /// An integer that is not negative.
    Number(u64),
    /// A name, a string or another value.
    Other,
}

/// An entry of a dictionary, or an element of an array, with the white space after it.
pub struct Item {
    /// Label of the group of the item.
    pub label: Label,
    /// Where the item stands in its text.
    pub place: Range<usize>,
    /// The name of an entry without its slash; empty for an element.
    pub key: Range<usize>,
    pub value: Value,
}

/// Checks whether a byte is white space of PDF.
pub fn is_space(byte: u8) -> bool {
    matches!(byte, 0 | b'\t' | b'\n' | 0x0c | b'\r' | b' ')
}

/// Checks whether a byte ends a name or a number.
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

/// Returns the end of the name, number or word that contains offset `at`.
fn skip_word(text: &[u8], at: usize) -> usize {
    let word = text.get(at..).unwrap_or_default();
    at + word.iter().take_while(|byte| !is_end(**byte)).count()
}

/// Returns the end of the string in parentheses that begins at offset `at`; `None` if it has none.
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

/// Reads an integer at offset `at`; returns it with its end.
pub fn integer(text: &[u8], at: usize) -> Option<(u64, usize)> {
    let end = skip_word(text, at);
    let digits = std::str::from_utf8(text.get(at..end)?).ok()?;
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    Some((digits.parse().ok().filter(|_| is_plain)?, end))
}

/// Returns the number of the object and the end of the reference at offset `at`.
fn reference(text: &[u8], at: usize) -> Option<(u64, usize)> {
    let (number, end) = integer(text, at)?;
    let (_, end) = integer(text, skip_space(text, end))?;
    let at = skip_space(text, end);
    let is_one = text.get(at) == Some(&b'R') && skip_word(text, at) == at + 1;
    is_one.then_some((number, at + 1))
}

/// Reads the value at offset `at` of `text`; `None` if it has no end, is too deep, or if the file has
/// too many parts.
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

/// Reads the dictionary or array at offset `at`.
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
    /// Returns the entry of a dictionary with this name.
    pub fn entry(&self, text: &[u8], name: &[u8]) -> Option<&Item> {
        let is_it = |item: &&Item| text.get(item.key.clone()) == Some(name);
        self.items
            .iter()
            .filter(|_| self.kind == Kind::Dictionary)
            .find(is_it)
    }

    /// Returns the integer that an entry of a dictionary has.
    pub fn number(&self, text: &[u8], name: &[u8]) -> Option<u64> {
        match self.entry(text, name)?.value.kind {
            Kind::Number(number) => Some(number),
            _ => None,
        }
    }

    /// Returns the name, without its slash, that an entry of a dictionary has, or the only element of
    /// the array that it has.
    pub fn name<'a>(&self, text: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
        let mut value = &self.entry(text, name)?.value;
        if let (Kind::Array, [item]) = (value.kind, &value.items[..]) {
            value = &item.value;
        }
        text.get(value.place.clone())?.strip_prefix(b"/")
    }

    /// Calls `see` for each reference in the value: the number of the object, and the label of the
    /// innermost item of a dictionary or array that is this reference.
    pub fn references(&self, see: &mut impl FnMut(u64, Label)) {
        for item in &self.items {
            if let Kind::Reference(number) = item.value.kind {
                see(number, item.label);
            }
            item.value.references(see);
        }
    }
}
