//! Reader for Java class files: the constant pool, fields, methods with their code, and attributes.
//! Constants are referred to by their indices, which are computed anew when others are deleted.

use std::cell::RefCell;
use std::collections::HashMap;

use crate::node::{Group, Label, Meaning, Node, Part};
use crate::number::Encoding;
use crate::reader::Reader;

/// Magic bytes of a class file.
pub const SIGNATURE: &[u8] = b"\xca\xfe\xba\xbe";
/// Major version of the oldest class files. Files of other formats with the same magic bytes have
/// smaller numbers at this place.
const OLDEST: u64 = 45;
/// Maximum number of constants of a class file that is parsed: to write the index of a constant,
/// all constants before it are counted.
const MOST_CONSTANTS: u64 = 1 << 11;
/// Maximum size, in bytes, of a class file that is parsed.
const LARGEST: usize = 1 << 18;
/// Tags of those constants that consist of two indices of other constants, such as `Methodref`.
const PAIRS: [u8; 4] = [9, 10, 11, 12];
/// Tags of those constants that consist of one index of another constant, such as `Class`.
const SINGLES: [u8; 5] = [7, 8, 16, 19, 20];
/// Tags of the constants that count as two (`long` and `double`): the next index is unused.
const WIDE: [u8; 2] = [5, 6];
/// A body of the attribute `Code` that is valid for any method: it throws `null`. It has one value
/// on the stack, room for all parameters, the instructions `aconst_null` and `athrow`, and neither
/// handlers nor attributes.
const LEAST_CODE: &[u8] = &[0, 1, 0, 255, 0, 0, 0, 2, 0x01, 0xbf, 0, 0, 0, 0];

/// How the bodies of some attributes are laid out, by the attributes' names. In a layout, `i` is
/// the index of a constant in two bytes, a digit is this many bytes that stay, and `*` is a count,
/// after which the rest of the layout is repeated that often.
const BODIES: [(&[u8], &str); 13] = [
    (b"ConstantValue", "i"),
    (b"SourceFile", "i"),
    (b"Signature", "i"),
    (b"NestHost", "i"),
    (b"ModuleMainClass", "i"),
    (b"EnclosingMethod", "ii"),
    (b"Exceptions", "*i"),
    (b"NestMembers", "*i"),
    (b"PermittedSubclasses", "*i"),
    (b"InnerClasses", "*iii2"),
    (b"LineNumberTable", "*4"),
    (b"LocalVariableTable", "*4ii2"),
    (b"LocalVariableTypeTable", "*4ii2"),
];

const HALF: Encoding = Encoding::Big(2);

/// A constant of the constant pool of a class file: its index in the pool, the offset at which it
/// begins in the file, and the offset after it.
struct Constant {
    index: u64,
    start: usize,
    end: usize,
}

/// State of reading a class file: its constants, and what refers to them.
struct Class<'a> {
    text: &'a [u8],
    /// Label (id in the file's tree) of the constant with the index 1; the labels of the constants
    /// with the next indices follow.
    first: Label,
    /// Index after the last constant, which the file states as the count of the constant pool.
    count: u64,
    constants: Vec<Constant>,
    /// For the index of each constant that is referred to, the label (id in the file's tree) of the
    /// group of nodes with all references to it; `None` if several groups refer to it.
    references: RefCell<HashMap<u64, Option<Label>>>,
}

/// The tree nodes of something that was read, such as a method, and the offset after it.
type Item = (Vec<Node>, usize);

/// Reads a class file into the nodes of its tree; `None` if its constant pool cannot be read, or
/// the file is too large.
pub fn class(reader: &mut Reader, text: &[u8]) -> Option<Vec<Node>> {
    let count = HALF.read_at(text, 8)?;
    let is_class = HALF.read_at(text, 6)? >= OLDEST && (1..MOST_CONSTANTS).contains(&count);
    (is_class && text.len() <= LARGEST).then_some(())?;
    let mut class = Class {
        text,
        first: reader.label(),
        count,
        constants: Vec::new(),
        references: RefCell::default(),
    };
    // Each constant has a label, and the bytes of a text another one.
    for _ in 1..2 * count {
        reader.label();
    }
    let end = class.find_constants()?;
    reader.count_parts(class.constants.len()).then_some(())?;
    let (body, rest) = class.body(reader, end);
    let constants = class.constant_nodes(reader);
    let meaning = Meaning::Present(class.first, class.first + count as Label - 1);
    let mut nodes = vec![
        Node::fixed(&text[..8]),
        reader.number(HALF, meaning, 1, &text[8..10]),
        Group::new(reader.label(), constants).into(),
    ];
    nodes.extend(body);
    nodes.extend((rest < text.len()).then(|| Node::payload(&text[rest..])));
    Some(nodes)
}

impl Class<'_> {
    /// Finds the constants of the constant pool; returns the offset after the last one, `None` if a
    /// constant is unknown or cut off.
    fn find_constants(&mut self) -> Option<usize> {
        let (mut at, mut index) = (10, 1);
        while index < self.count {
            let kind = *self.text.get(at)?;
            let size = match kind {
                1 => 3 + HALF.read_at(self.text, at + 1)? as usize,
                3 | 4 | 17 | 18 => 5,
                15 => 4,
                kind if WIDE.contains(&kind) => 9,
                kind if PAIRS.contains(&kind) => 5,
                kind if SINGLES.contains(&kind) => 3,
                _ => return None,
            };
            let end = at + size;
            self.text.get(at..end)?;
            self.constants.push(Constant {
                index,
                start: at,
                end,
            });
            index += if WIDE.contains(&kind) { 2 } else { 1 };
            at = end;
        }
        Some(at)
    }

    /// Returns the bytes of the constant with the index `index` if it is a text (`CONSTANT_Utf8`);
    /// else `None`.
    fn utf8(&self, index: u64) -> Option<&[u8]> {
        let found = self
            .constants
            .binary_search_by_key(&index, |constant| constant.index);
        let constant = &self.constants[found.ok()?];
        let bytes = &self.text[constant.start..constant.end];
        (bytes[0] == 1).then(|| &bytes[3..])
    }

    /// Returns the tree node of the number of `width` bytes at offset `at`, which is the index of a
    /// constant; `None` if the text ends before. Records that the group of nodes with the label
    /// `around` (id in the file's tree), which contains the number, refers to that constant.
    fn index(&self, reader: &Reader, at: usize, width: usize, around: Label) -> Option<Node> {
        let raw = self.text.get(at..at + width)?;
        let index = Encoding::Big(width).read_at(raw, 0)?;
        if index == 0 || index >= self.count {
            return Some(Node::fixed(raw));
        }
        let mut references = self.references.borrow_mut();
        let one = references.entry(index).or_insert(Some(around));
        *one = one.filter(|one| *one == around);
        let meaning = Meaning::Present(self.first, self.label(index));
        Some(reader.number(Encoding::Big(width), meaning, 1, raw))
    }

    fn label(&self, index: u64) -> Label {
        self.first + (index as Label - 1)
    }

    /// Returns the tree nodes of all constants. A constant to which only one group of nodes refers
    /// is deleted together with that group, any other one by itself.
    fn constant_nodes(&self, reader: &Reader) -> Vec<Node> {
        let inner = self.constants.iter().map(|constant| {
            let (at, end, label) = (constant.start, constant.end, self.label(constant.index));
            let kind = self.text[at];
            let mut nodes = vec![Node::fixed(&self.text[at..=at])];
            let indices = match kind {
                1 => {
                    let text = label + self.count as Label;
                    let size = &self.text[at + 1..at + 3];
                    nodes.push(reader.number(HALF, Meaning::Length(text), 0, size));
                    let bytes = vec![Node::payload(&self.text[at + 3..end])];
                    nodes.push(Group::new(text, bytes).into());
                    return (label, nodes);
                }
                15 => at + 2..end,
                17 | 18 => at + 3..end,
                kind if PAIRS.contains(&kind) || SINGLES.contains(&kind) => at + 1..end,
                _ => end..end,
            };
            nodes.push(Node::fixed(&self.text[at + 1..indices.start]));
            for index in indices.step_by(2) {
                nodes.extend(self.index(reader, index, 2, label));
            }
            if WIDE.contains(&kind) {
                // It has two indices.
                nodes.push(Group::new(label + 1, Vec::new()).into());
            }
            (label, nodes)
        });
        let inner: Vec<(Label, Vec<Node>)> = inner.collect();
        let references = self.references.borrow();
        let nodes = inner
            .into_iter()
            .zip(&self.constants)
            .map(|((label, nodes), constant)| {
                let owner = references.get(&constant.index).copied().flatten();
                Node::Group(Group {
                    part: owner
                        .filter(|owner| *owner != label)
                        .map_or(Part::Own, Part::With),
                    ..Group::new(label, nodes)
                })
            });
        nodes.collect()
    }

    /// Reads what follows the constant pool: flags, names of the class, interfaces, fields, methods
    /// and attributes. Returns the nodes of what could be read, and the offset after it.
    fn body(&self, reader: &mut Reader, start: usize) -> Item {
        let mut nodes = Vec::new();
        let around = reader.label();
        let Some(head) = self.text.get(start..start + 2) else {
            return (nodes, start);
        };
        nodes.push(Node::fixed(head));
        let mut at = start + 2;
        for _ in 0..2 {
            let Some(index) = self.index(reader, at, 2, around) else {
                return (nodes, at);
            };
            nodes.push(index);
            at += 2;
        }
        type Read = fn(&Class<'_>, &mut Reader, usize, Label) -> Option<Item>;
        let interface: Read =
            |class, reader, at, around| Some((vec![class.index(reader, at, 2, around)?], at + 2));
        let member: Read = |class, reader, at, around| class.member(reader, at, around);
        let attribute: Read = |class, reader, at, around| class.attribute(reader, at, around);
        for read in [interface, member, member, attribute] {
            let Some((items, end)) = self.list(reader, at, read) else {
                return (nodes, at);
            };
            nodes.extend(items);
            at = end;
        }
        (nodes, at)
    }

    /// Reads the list at offset `at`: a count, and as many items. `read` reads one item, which
    /// becomes a deletable part. Returns the tree nodes and the offset after the list; `None` if an
    /// item cannot be read, or the file has too many parts.
    fn list(
        &self,
        reader: &mut Reader,
        at: usize,
        read: impl Fn(&Self, &mut Reader, usize, Label) -> Option<Item>,
    ) -> Option<Item> {
        let raw = self.text.get(at..at + 2)?;
        let list = reader.label();
        let mut next = at + 2;
        let mut items = Vec::new();
        for _ in 0..HALF.read_at(raw, 0)? {
            let label = reader.label();
            reader.count_part().then_some(())?;
            let (nodes, end) = read(self, reader, next, label)?;
            items.push(Group::part(label, nodes).into());
            next = end;
        }
        let count = reader.number(HALF, Meaning::Count(list), 0, raw);
        Some((vec![count, Group::new(list, items).into()], next))
    }

    /// Reads the field or method at offset `at`: its flags, name and type, and attributes. Returns
    /// its nodes with the offset after it; `None` if it cannot be read. `around` is the label (id
    /// in the file's tree) of its group of nodes.
    fn member(&self, reader: &mut Reader, at: usize, around: Label) -> Option<Item> {
        let mut nodes = vec![
            Node::fixed(self.text.get(at..at + 2)?),
            self.index(reader, at + 2, 2, around)?,
            self.index(reader, at + 4, 2, around)?,
        ];
        let (attributes, end) = self.list(reader, at + 6, Class::attribute)?;
        nodes.extend(attributes);
        Some((nodes, end))
    }

    /// Reads an attribute: its name, its size, and its body, which is a payload (changeable bytes)
    /// if its layout is unknown or does not fit. `around` is the label (id in the file's tree) of
    /// its group of nodes. `None` if the text ends inside of the attribute.
    fn attribute(&self, reader: &mut Reader, at: usize, around: Label) -> Option<Item> {
        let name = self.utf8(HALF.read_at(self.text, at)?).unwrap_or_default();
        let size = Encoding::Big(4).read_at(self.text, at + 2)?;
        let start = at + 6;
        let end = start.checked_add(usize::try_from(size).ok()?)?;
        let bytes = self.text.get(start..end)?;
        let body = reader.label();
        let layout = BODIES.iter().find(|(known, _)| *known == name);
        let read = reader.deeper(|reader| match (name, layout) {
            (b"Code", _) => self.code(reader, start, body),
            (_, Some((_, layout))) => self.fields(reader, start, layout, body),
            _ => None,
        });
        let nodes = match read.filter(|(_, after)| *after == end) {
            Some((nodes, _)) => nodes,
            None => vec![Node::payload(bytes)],
        };
        let least = if name == b"Code" { LEAST_CODE } else { &[] };
        let meaning = Meaning::Length(body);
        let nodes = vec![
            self.index(reader, at, 2, around)?,
            reader.number(Encoding::Big(4), meaning, 0, &self.text[at + 2..start]),
            Node::Group(Group {
                least,
                ..Group::new(body, nodes)
            }),
        ];
        Some((nodes, end))
    }

    /// Reads the body of an attribute at offset `at`, whose parts `layout` describes in the
    /// notation of [`BODIES`]: indices of constants, bytes that stay, and counted repetitions.
    /// Returns the tree nodes and the offset after it; `None` if it does not fit this description.
    fn fields(
        &self,
        reader: &mut Reader,
        mut at: usize,
        layout: &str,
        around: Label,
    ) -> Option<Item> {
        if let Some(entry) = layout.strip_prefix('*') {
            return self.list(reader, at, |class, reader, at, around| {
                class.fields(reader, at, entry, around)
            });
        }
        let mut nodes = Vec::with_capacity(layout.len());
        for field in layout.chars() {
            match field.to_digit(10) {
                Some(size) => {
                    let end = at + size as usize;
                    nodes.push(Node::fixed(self.text.get(at..end)?));
                    at = end;
                }
                None => {
                    nodes.push(self.index(reader, at, 2, around)?);
                    at += 2;
                }
            }
        }
        Some((nodes, at))
    }

    /// Reads the attribute `Code` of a method at offset `at`: maximum numbers of stack values and
    /// locals, instructions, exception handlers, and attributes. Returns its tree nodes and the
    /// offset after it; `None` if it is cut off or malformed. `around` is the label (id in the
    /// file's tree) of its group of nodes.
    fn code(&self, reader: &mut Reader, at: usize, around: Label) -> Option<Item> {
        let size = Encoding::Big(4).read_at(self.text, at + 4)?;
        let start = at + 8;
        let end = start.checked_add(usize::try_from(size).ok()?)?;
        self.text.get(start..end)?;
        let code = reader.label();
        let (mut inner, mut from, mut next) = (Vec::new(), start, start);
        while next < end
            && let Some((size, width)) = instruction(&self.text[next..end], next - start)
        {
            if width > 0 {
                inner.push(Node::payload(&self.text[from..=next]));
                inner.push(self.index(reader, next + 1, width, around)?);
                from = next + 1 + width;
            }
            next += size;
        }
        inner.extend((from < end).then(|| Node::payload(&self.text[from..end])));
        let meaning = Meaning::Length(code);
        let mut nodes = vec![
            Node::fixed(&self.text[at..at + 4]),
            reader.number(Encoding::Big(4), meaning, 0, &self.text[at + 4..start]),
            Group::new(code, inner).into(),
        ];
        let (handlers, end) = self.fields(reader, end, "*6i", around)?;
        let (attributes, end) = self.list(reader, end, Class::attribute)?;
        nodes.extend(handlers.into_iter().chain(attributes));
        Some((nodes, end))
    }
}

/// Returns the size, in bytes, of the instruction at the beginning of `code`, and the width of the
/// index of a constant that follows its first byte; 0 if it has none. `at` is the offset of the
/// instruction in its method. `None` if the code ends before the instruction does.
fn instruction(code: &[u8], at: usize) -> Option<(usize, usize)> {
    let word = |at: usize| usize::try_from(Encoding::Big(4).read_at(code, at)?).ok();
    let aligned = (at + 1).next_multiple_of(4) - at;
    let (size, width) = match code[0] {
        0x12 => (2, 1),
        0x10 | 0x15..=0x19 | 0x36..=0x3a | 0xa9 | 0xbc => (2, 0),
        0x13 | 0x14 | 0xb2..=0xb8 | 0xbb | 0xbd | 0xc0 | 0xc1 => (3, 2),
        0x11 | 0x84 | 0x99..=0xa8 | 0xc6 | 0xc7 => (3, 0),
        0xb9 | 0xba => (5, 2),
        0xc5 => (4, 2),
        0xc8 | 0xc9 => (5, 0),
        0xc4 if code.get(1) == Some(&0x84) => (6, 0),
        0xc4 => (4, 0),
        0xaa => {
            let cases = word(aligned + 8)?
                .checked_sub(word(aligned + 4)?)?
                .checked_add(1)?;
            (cases.checked_mul(4)?.checked_add(aligned + 12)?, 0)
        }
        0xab => {
            let cases = word(aligned + 4)?;
            (cases.checked_mul(8)?.checked_add(aligned + 8)?, 0)
        }
        _ => (1, 0),
    };
    (size <= code.len()).then_some((size, width))
}
