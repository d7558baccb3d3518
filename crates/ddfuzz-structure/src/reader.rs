//! Reads files by descriptions of their formats: a description is a table of fields.

use ddfuzz_delta::Checksum;

use crate::formats::nested;
use crate::node::{Group, Label, Meaning, Node, Number};
use crate::number::{Encoding, Sum};
use crate::packed::{Codec, Packed};

/// Maximum depth of groups inside of groups; what is deeper stays a payload.
const DEEPEST: usize = 64;
/// Maximum number of parts of a file; the rest of it stays a payload.
const MOST_PARTS: usize = 1 << 15;
/// Number of bytes at the beginning of a payload among which a compressed stream may begin.
const PREFIX: usize = 128;

/// Field of a record in the description of a format. The numbers of spans are those of the record.
pub enum Field {
    /// So many bytes that stay as they are.
    Keep(usize),
    /// These bytes; without them the record is of another kind.
    Expect(&'static [u8]),
    /// A number: its encoding, what it states, and by how much it is greater than that.
    Number(Encoding, Stated, i64),
    /// Fields that numbers refer to. If a number before the span, or in it, states its length, the
    /// span ends there; otherwise it ends with the span around it.
    Span(u8, &'static [Field]),
    /// The rest of the span, as a payload.
    Body,
    /// The rest of the span, as records that can be deleted.
    Records(&'static [Field]),
    /// A type of so many bytes, which decides how the record continues.
    Kind(
        usize,
        &'static [(&'static [u8], &'static [Field])],
        &'static [Field],
    ),
    /// Says that neighboring records of this type are pieces of one payload.
    Piece,
    /// Zero bytes that fill up the size of a span to a multiple.
    Pad(u8, usize),
}

/// What a number of a record states about a span of it.
#[derive(Clone, Copy)]
pub enum Stated {
    /// The size of the span in bytes.
    Length(u8),
    /// The number of records in the span.
    Count(u8),
    /// A checksum of the span.
    Check(Sum, u8),
}

impl Stated {
    /// A CRC-32 of the span.
    pub const fn crc32(span: u8) -> Stated {
        Stated::Check(Sum::Known(Checksum::Crc32), span)
    }
}

/// Reads files: hands out labels, and bounds depth and number of parts.
#[derive(Default)]
pub struct Reader {
    label: Label,
    parts: usize,
    depth: usize,
}

/// The record that is being read.
#[derive(Default)]
struct Record {
    labels: Vec<(u8, Label)>,
    lengths: Vec<(u8, usize)>,
    /// The spans that have begun: number, start and end.
    open: Vec<(u8, usize, usize)>,
    kind: u32,
    piece: u32,
    /// Whether a length may be greater than the rest of the text.
    lenient: bool,
}

impl Record {
    fn end(&self, text: &[u8]) -> usize {
        self.open.last().map_or(text.len(), |open| open.2)
    }
}

impl Reader {
    /// Returns a label that no group has yet.
    pub fn label(&mut self) -> Label {
        self.label += 1;
        self.label
    }

    /// Counts a part; `false` if the file has too many.
    pub fn count_part(&mut self) -> bool {
        self.parts += 1;
        self.parts <= MOST_PARTS
    }

    /// Calls `read` one level deeper; `None` if the file is too deep.
    pub fn deeper<T>(&mut self, read: impl FnOnce(&mut Reader) -> Option<T>) -> Option<T> {
        if self.depth >= DEEPEST {
            return None;
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }

    /// Reads a whole text by the description of its format.
    pub fn table(&mut self, fields: &'static [Field], text: &[u8]) -> Option<Vec<Node>> {
        let mut record = Record {
            lenient: true,
            ..Record::default()
        };
        let mut nodes = Vec::new();
        let end = self.fields(fields, text, 0, &mut record, &mut nodes)?;
        if end < text.len() {
            nodes.push(Node::payload(&text[end..]));
        }
        Some(nodes)
    }

    /// Makes a number that states something about a group; fixed bytes if `raw` is not how such a
    /// number is written.
    pub fn number(&self, encoding: Encoding, meaning: Meaning, bias: i64, raw: &[u8]) -> Node {
        let read = encoding.read(raw).map(|(number, _)| number);
        match read.map(|number| encoding.write(number)) {
            Some(written) if written == raw => Node::Number(Number {
                encoding,
                meaning,
                bias,
                raw: raw.into(),
            }),
            _ => Node::fixed(raw),
        }
    }

    /// Makes nodes of a payload: files of known formats and compressed streams in it are opened.
    pub fn payload(&mut self, bytes: &[u8]) -> Vec<Node> {
        if let Some(nodes) = self.deeper(|reader| nested(reader, bytes)) {
            return nodes;
        }
        for start in 0..bytes.len().min(PREFIX) {
            // Within a payload, streams follow a NUL, as in the chunks zTXt and iCCP of PNG.
            let may_begin = start == 0 || bytes[start - 1] == 0;
            let content = match may_begin {
                true => Codec::Zlib.unpack(&bytes[start..]),
                false => None,
            };
            if let Some(content) = content {
                let packed = self.packed(Codec::Zlib, &content, &bytes[start..]);
                let before = (start > 0).then(|| Node::payload(&bytes[..start]));
                return before.into_iter().chain([packed]).collect();
            }
        }
        match bytes.is_empty() {
            true => Vec::new(),
            false => vec![Node::payload(bytes)],
        }
    }

    /// Makes a compressed node whose decompressed bytes are `content`.
    pub fn packed(&mut self, codec: Codec, content: &[u8], packed: &[u8]) -> Node {
        let label = self.label();
        self.packed_as(label, codec, content, packed)
    }

    /// Makes a compressed node whose content has the label `label`.
    pub fn packed_as(&mut self, label: Label, codec: Codec, content: &[u8], packed: &[u8]) -> Node {
        let opened = self.payload(content);
        let group = crate::container::settle(Group::new(label, opened));
        let same = crate::render::render(&group).text == content;
        let group = match same {
            true => group,
            false => Group::new(label, vec![Node::payload(content)]),
        };
        Node::Packed(Packed {
            codec,
            content: group,
            bytes: content.into(),
            packed: packed.into(),
            closed: vec![Node::payload(packed)],
        })
    }

    /// Reads fields from offset `at`, and appends their nodes; returns the offset after them. `None`
    /// if the text does not have these fields.
    fn fields(
        &mut self,
        fields: &'static [Field],
        text: &[u8],
        mut at: usize,
        record: &mut Record,
        nodes: &mut Vec<Node>,
    ) -> Option<usize> {
        for field in fields {
            let rest = text.get(at..record.end(text))?;
            at += match field {
                Field::Keep(size) => {
                    nodes.push(Node::fixed(rest.get(..*size)?));
                    *size
                }
                Field::Expect(bytes) => {
                    nodes.push(Node::fixed(rest.strip_prefix(*bytes).map(|_| *bytes)?));
                    bytes.len()
                }
                Field::Number(encoding, stated, bias) => {
                    let (number, size) = encoding.read(rest)?;
                    let meaning = self.state(*stated, *bias, number, at, text, record)?;
                    nodes.push(self.number(*encoding, meaning, *bias, &rest[..size]));
                    size
                }
                Field::Span(id, inner) => self.span(*id, inner, text, at, record, nodes)? - at,
                Field::Body => {
                    nodes.extend(self.payload(rest));
                    rest.len()
                }
                Field::Records(inner) => {
                    self.records(inner, rest, nodes);
                    rest.len()
                }
                Field::Kind(size, kinds, other) => {
                    let kind = rest.get(..*size)?;
                    nodes.push(Node::fixed(kind));
                    let known = kinds.iter().find(|(known, _)| *known == kind);
                    let fields = known.map_or(*other, |(_, fields)| *fields);
                    record.kind = kind.iter().fold(0, |all, byte| all << 8 | u32::from(*byte));
                    self.fields(fields, text, at + size, record, nodes)? - at
                }
                Field::Piece => {
                    record.piece = record.kind;
                    0
                }
                Field::Pad(id, align) => pad(*id, *align, rest, record, nodes),
            };
        }
        Some(at)
    }

    /// Takes the number of a field at offset `at` for what it states.
    fn state(
        &mut self,
        stated: Stated,
        bias: i64,
        number: u64,
        at: usize,
        text: &[u8],
        record: &mut Record,
    ) -> Option<Meaning> {
        Some(match stated {
            Stated::Length(id) => {
                let length = usize::try_from(number.checked_add_signed(-bias)?).ok()?;
                let around = record.open.iter().rposition(|open| open.0 == id);
                match around {
                    Some(index) => {
                        let (_, start, end) = record.open[index];
                        let stated = start.checked_add(length)?;
                        if stated > end && !record.lenient || stated < at {
                            return None;
                        }
                        // The spans inside of it end there, too.
                        for open in &mut record.open[index..] {
                            open.2 = open.2.min(stated);
                        }
                    }
                    None if record.lenient => {
                        let rest = record.end(text).saturating_sub(at);
                        record.lengths.push((id, length.min(rest)));
                    }
                    None => record.lengths.push((id, length)),
                }
                Meaning::Length(self.label_of(id, record))
            }
            Stated::Count(id) => Meaning::Count(self.label_of(id, record)),
            Stated::Check(sum, id) => Meaning::Check(sum, self.label_of(id, record)),
        })
    }

    /// Returns the label of a span of the record.
    fn label_of(&mut self, id: u8, record: &mut Record) -> Label {
        match record.labels.iter().find(|(known, _)| *known == id) {
            Some((_, label)) => *label,
            None => {
                let label = self.label();
                record.labels.push((id, label));
                label
            }
        }
    }

    /// Reads a span from offset `at` and returns its end.
    fn span(
        &mut self,
        id: u8,
        fields: &'static [Field],
        text: &[u8],
        at: usize,
        record: &mut Record,
        nodes: &mut Vec<Node>,
    ) -> Option<usize> {
        let around = record.end(text);
        let length = record.lengths.iter().find(|(known, _)| *known == id);
        let end = match length {
            Some((_, length)) if record.lenient => at.saturating_add(*length).min(around),
            Some((_, length)) => at.checked_add(*length).filter(|end| *end <= around)?,
            None => around,
        };
        record.open.push((id, at, end));
        let mut inner = Vec::new();
        let read = self.deeper(|reader| reader.fields(fields, text, at, record, &mut inner));
        let (_, _, end) = record.open.pop()?;
        let read = read?;
        // Without a length, the span ends where its fields do.
        let end = match length_is_known(id, record, end, around) {
            true => end,
            false => read,
        };
        if read < end {
            inner.push(Node::payload(&text[read..end]));
        }
        let label = self.label_of(id, record);
        nodes.push(Group::new(label, inner).into());
        Some(end)
    }

    /// Reads records up to the end of `text`; a rest that is no record becomes a payload.
    fn records(&mut self, fields: &'static [Field], text: &[u8], nodes: &mut Vec<Node>) {
        let mut at = 0;
        while at < text.len() && self.count_part() {
            let mut record = Record::default();
            let mut inner = Vec::new();
            let read = self
                .deeper(|reader| reader.fields(fields, &text[at..], 0, &mut record, &mut inner));
            let Some(size) = read.filter(|size| *size > 0) else {
                break;
            };
            let label = self.label();
            let group = Group {
                piece: record.piece,
                ..Group::part(label, inner)
            };
            nodes.push(group.into());
            at += size;
        }
        if at < text.len() {
            nodes.extend(self.payload(&text[at..]));
        }
    }
}

/// Checks whether the end of a span was stated by a number before it or in it.
fn length_is_known(id: u8, record: &Record, end: usize, around: usize) -> bool {
    record.lengths.iter().any(|(known, _)| *known == id) || end < around
}

/// Appends the zero bytes that fill up the last span of this number; returns how many there are.
fn pad(id: u8, align: usize, rest: &[u8], record: &Record, nodes: &mut Vec<Node>) -> usize {
    let length = record.lengths.iter().find(|(known, _)| *known == id);
    let label = record.labels.iter().find(|(known, _)| *known == id);
    let (Some((_, length)), Some((_, of))) = (length, label) else {
        return 0;
    };
    let size = length.next_multiple_of(align) - length;
    match rest.get(..size) {
        Some(bytes) if bytes.iter().all(|byte| *byte == 0) => {
            nodes.push(Node::Pad { of: *of, align });
            size
        }
        Some(bytes) => {
            nodes.push(Node::fixed(bytes));
            size
        }
        None => 0,
    }
}
