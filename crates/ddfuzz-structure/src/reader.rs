//! Parses files into trees of nodes, by descriptions of their formats. A description is a table of
//! fields.

use ddfuzz_delta::Checksum;

use crate::formats::{nested, packet};
use crate::node::{Group, Label, Meaning, Node, Number};
use crate::number::Encoding;
use crate::packed::{Codec, Packed};
use crate::sum::Sum;
use ddfuzz_delta::interruption;

/// Maximum depth of the tree of a file; deeper groups of nodes are not taken apart but stay
/// payloads (changeable bytes).
const DEEPEST: usize = 64;
/// Maximum number of parts (groups of nodes that can be deleted) of a file; bytes after so many
/// parts stay a payload (changeable bytes).
const MOST_PARTS: usize = 1 << 15;
/// Number of bytes at the beginning of a payload (changeable bytes) within which a zlib stream is
/// searched for.
const PREFIX: usize = 128;

/// A field in the description of a file format, which consists of records. A *span* is a range of
/// fields of a record to which numbers in the record can refer; each span has a number that is
/// unique in its record.
pub enum Field {
    /// This many bytes, which searches neither delete by themselves nor change.
    Keep(usize),
    /// Exactly these bytes; where the text has others, the record does not fit this description.
    Expect(&'static [u8]),
    /// A number in the file: its encoding, what it states about a span (range of fields of a
    /// record), and what is added to that (such as 4 if a length counts its own four bytes).
    Number(Encoding, Stated, i64),
    /// A span (range of fields of a record): its number within the record, and its fields. If a
    /// number before the span, or in it, states its length, the span ends there; otherwise it ends
    /// where its fields end.
    Span(u8, &'static [Field]),
    /// The remaining bytes of the span (range of fields of a record) that contains this field, as a
    /// payload, which searches may delete and change.
    Body,
    /// The remaining bytes of the span (range of fields of a record) that contains this field, as a
    /// network packet; as a payload (changeable bytes) if it is not of a known kind.
    Packet,
    /// The remaining bytes of the span (range of fields of a record) that contains this field, as
    /// records with these fields. Each record is a deletable part, which searches can delete. If an
    /// earlier number states how many records the span has, no more records are read.
    Records(&'static [Field]),
    /// A type, whose size in bytes is given first. It decides how the record continues: with the
    /// fields that are listed for this type, or with the last fields if the type is not listed.
    Kind(
        usize,
        &'static [(&'static [u8], &'static [Field])],
        &'static [Field],
    ),
    /// Marks the record as one piece of a payload (changeable bytes) that continues in the next
    /// record of the same type, as the IDAT chunks of PNG.
    Piece,
    /// Zeros that pad the size of a span (range of fields of a record) to a multiple of a number of
    /// bytes. The first value is the number of the span in the record, the second one this number
    /// of bytes.
    Pad(u8, usize),
}

/// What a number in a record states about a span (a range of fields of the record): its length, how
/// many records it has, or its checksum. The span is given by its number in the record.
#[derive(Clone, Copy)]
pub enum Stated {
    /// The number states the size, in bytes, of the span (range of fields of a record) with this
    /// number in the record.
    Length(u8),
    /// The number states how many records (parts) are in the span (range of fields of a record)
    /// with this number in the record.
    Count(u8),
    /// A checksum, by this algorithm, of the bytes of the span (range of fields of a record) with
    /// this number.
    Check(Sum, u8),
}

impl Stated {
    /// Describes a number that states the CRC-32 of the span (range of fields of a record) whose
    /// number is `span`.
    pub const fn crc32(span: u8) -> Stated {
        Stated::Check(Sum::Known(Checksum::Crc32), span)
    }
}

/// Reads one file into a tree of nodes: gives each group of nodes a label (id in the file's tree),
/// and limits the depth of the tree and its number of parts (groups that can be deleted).
#[derive(Default)]
pub struct Reader {
    label: Label,
    parts: usize,
    depth: usize,
    /// Number of compressed nodes around the present position of the reader.
    packed: usize,
    /// Total number of bytes that were decompressed in this file, including those of streams that
    /// are left compressed because they are too large.
    pub unpacked: u64,
}

/// State of reading one record of a file: the lengths and labels (ids in the file's tree) of its
/// spans (ranges of fields to which numbers refer).
#[derive(Default)]
struct Record {
    labels: Vec<(u8, Label)>,
    lengths: Vec<(u8, usize)>,
    /// The counts of records that numbers have stated so far: for each, the number of the span
    /// (range of fields of a record) that has the records, and how many records it has.
    counts: Vec<(u8, u64)>,
    /// The spans (ranges of fields) of the record around the present position of the reader,
    /// outermost first: the number of each, and its start and end offset.
    open: Vec<(u8, usize, usize)>,
    kind: u32,
    piece: u32,
    /// True if a stated length may exceed the rest of the text: it then counts as the length of
    /// that rest. False if the record cannot be read in that case.
    lenient: bool,
}

impl Record {
    fn end(&self, text: &[u8]) -> usize {
        self.open.last().map_or(text.len(), |open| open.2)
    }
}

impl Reader {
    /// Returns a new label (id in the file's tree) for a group of nodes. Numbers in the file, such
    /// as lengths and checksums, refer to the group by it.
    pub fn label(&mut self) -> Label {
        interruption::check();
        self.label += 1;
        self.label
    }

    /// Returns the tree nodes of a field of a fixed size that is padded with zeros. Inside of
    /// compressed content, the bytes before the zeros become a payload (changeable bytes), because
    /// shorter ones compress better. Elsewhere, and if the field does not end with a zero or has
    /// only zeros, it becomes fixed bytes.
    pub fn filled(&mut self, field: &[u8]) -> Vec<Node> {
        let size = field
            .iter()
            .rposition(|byte| *byte != 0)
            .map_or(0, |at| at + 1);
        if self.packed == 0 || size == field.len() || size == 0 {
            return vec![Node::fixed(field)];
        }
        let of = self.label();
        let nodes = vec![Node::payload(&field[..size]), Node::fixed(&[0])];
        let pad = Node::Pad {
            of,
            align: field.len(),
            fill: 0,
        };
        vec![Group::new(of, nodes).into(), pad]
    }

    /// Counts a part (a group of nodes that can be deleted); returns false if the file has too many
    /// (over 32,768).
    pub fn count_part(&mut self) -> bool {
        self.count_parts(1)
    }

    /// Counts `number` parts as [`Reader::count_part`] does; returns false, and counts none, if the
    /// file would have too many with them.
    pub fn count_parts(&mut self, number: usize) -> bool {
        let parts = self.parts.saturating_add(number);
        let fits = parts <= MOST_PARTS;
        if fits {
            self.parts = parts;
        }
        fits
    }

    /// Calls `read` one level deeper in the tree, and returns its result; `None`, without a call,
    /// if the tree has 64 levels already.
    pub fn deeper<T>(&mut self, read: impl FnOnce(&mut Reader) -> Option<T>) -> Option<T> {
        if self.depth >= DEEPEST {
            return None;
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }

    /// Reads a whole text by `fields`, the description of its format, as one record. Bytes after
    /// the last field become a payload (changeable bytes); a length that exceeds the rest of the
    /// text counts as the length of the rest. `None` if the text does not have these fields.
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

    /// Returns the tree node of a number of the file, whose bytes are `raw`, encoded by `encoding`;
    /// the number is the value of `meaning` plus `bias`. If the bytes are padded, the number keeps
    /// their size when it is computed anew. If ddfuzz would write the number in other bytes than
    /// `raw`, the node is fixed bytes, which never change.
    pub fn number(&self, encoding: Encoding, meaning: Meaning, bias: i64, raw: &[u8]) -> Node {
        let mut encodings = [encoding, encoding.padded(raw.len())].into_iter();
        let writes = |encoding: &Encoding| {
            let number = encoding.read(raw).map(|(number, _)| number);
            number.is_some_and(|number| encoding.write(number) == raw)
        };
        match encodings.find(writes) {
            Some(encoding) => Node::Number(Number {
                encoding,
                meaning,
                bias,
                raw: raw.into(),
            }),
            None => Node::fixed(raw),
        }
    }

    /// Returns the tree nodes of a payload (changeable bytes) as [`Reader::content`] does; if it is
    /// a file of a known format, all of that file becomes one part.
    pub fn payload(&mut self, bytes: &[u8]) -> Vec<Node> {
        let known = self.deeper(|reader| nested(reader, bytes));
        let Some(nodes) = known else {
            return self.unknown(bytes);
        };
        let label = self.label();
        match self.count_part() {
            true => vec![Group::part(label, nodes).into()],
            false => nodes,
        }
    }

    /// Returns the tree nodes of a payload. A file of a known format is parsed into its nodes. A
    /// zlib stream that begins in the first 128 bytes is decompressed. Anything else becomes one
    /// payload node, whose bytes searches may delete and change.
    pub fn content(&mut self, bytes: &[u8]) -> Vec<Node> {
        let known = self.deeper(|reader| nested(reader, bytes));
        known.unwrap_or_else(|| self.unknown(bytes))
    }

    /// Returns the tree nodes of a payload (changeable bytes) that is not a file of a known format.
    /// A zlib stream is decompressed if it begins in the first 128 bytes, at the start of the
    /// payload or after a NUL, and takes all the rest of the payload; otherwise there is one
    /// payload node.
    fn unknown(&mut self, bytes: &[u8]) -> Vec<Node> {
        for start in 0..bytes.len().min(PREFIX) {
            // Within a payload, streams follow a NUL, as in the chunks zTXt and iCCP of PNG.
            let may_begin = start == 0 || bytes[start - 1] == 0;
            let content = match may_begin {
                true => Codec::Zlib.unpack(&bytes[start..], &mut self.unpacked),
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

    /// Makes the compressed node of the bytes `packed`, whose decompressed bytes are `content`. If
    /// these are a file of a known format, it is parsed.
    pub fn packed(&mut self, codec: Codec, content: &[u8], packed: &[u8]) -> Node {
        let label = self.label();
        self.packed_as(label, codec, content, packed)
    }

    /// Makes a compressed node as [`Reader::packed`] does; the group of nodes of its content gets
    /// the label `label` (id in the file's tree).
    pub fn packed_as(&mut self, label: Label, codec: Codec, content: &[u8], packed: &[u8]) -> Node {
        self.packed += 1;
        let opened = self.payload(content);
        self.packed -= 1;
        Node::Packed(Packed::read(
            codec,
            Group::new(label, opened),
            content,
            packed,
        ))
    }

    /// Reads the fields of `record` that `fields` describe, from offset `at` of `text`, and appends
    /// their nodes to `nodes`; returns the offset after the last field. `None` if the text does not
    /// have these fields.
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
                Field::Packet => {
                    let known = self.deeper(|reader| packet(reader, rest));
                    nodes.extend(known.unwrap_or_else(|| self.payload(rest)));
                    rest.len()
                }
                Field::Records(inner) => {
                    let open = record.open.last().map(|open| open.0);
                    let count = record.counts.iter().find(|(id, _)| Some(*id) == open);
                    self.records(inner, rest, count.map(|(_, count)| *count), nodes)
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

    /// Returns what the `number` read at offset `at` of `text` means: as `stated` says, the length,
    /// count or checksum of a span (a range of fields of a record); a length or count is the number
    /// minus `bias`. A length also decides where the span ends. `None` if the span cannot have this
    /// length.
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
            Stated::Count(id) => {
                record
                    .counts
                    .push((id, number.saturating_add_signed(-bias)));
                Meaning::Count(self.label_of(id, record))
            }
            Stated::Check(sum, id) => Meaning::Check(sum, self.label_of(id, record)),
        })
    }

    /// Returns the label (id in the file's tree) of the span `id` of a record: the fields from one
    /// place to another, whose length, count or checksum the record states. Makes a new label if
    /// the span has none yet.
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

    /// Reads the span with the number `id` (a range of fields of a record) from offset `at`,
    /// appends it to `nodes` as a group of nodes, and returns the offset of its end. `None` if the
    /// text does not have the span's fields, or ends before the span does.
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

    /// Reads records with the fields `fields` from the beginning of `text`, `count` of them or,
    /// without a count, up to the end, and appends each to `nodes` as a part. Returns how many
    /// bytes were read. If a record cannot be read, or the file has too many parts, the rest of the
    /// text becomes a payload (changeable bytes).
    fn records(
        &mut self,
        fields: &'static [Field],
        text: &[u8],
        count: Option<u64>,
        nodes: &mut Vec<Node>,
    ) -> usize {
        let (mut at, mut left) = (0, count.unwrap_or(u64::MAX));
        while at < text.len() && left > 0 && self.count_part() {
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
            left -= 1;
        }
        if at < text.len() && count.is_none_or(|_| left > 0) {
            nodes.extend(self.payload(&text[at..]));
            return text.len();
        }
        at
    }
}

/// Returns true if the length of the span with the number `id` (a range of fields of a record) is
/// known before its fields are read: a number in `record` has stated it, or the span ends at `end`,
/// before the end `around` of what contains it. False if the span ends where its fields do.
fn length_is_known(id: u8, record: &Record, end: usize, around: usize) -> bool {
    record.lengths.iter().any(|(known, _)| *known == id) || end < around
}

/// Appends the padding after a span (a range of fields of a record): it brings the size of the span
/// with the number `id` to a multiple of `align` bytes. Padding that is not all zeros becomes fixed
/// bytes. Returns the size of the padding in bytes; 0, without a node, if `rest` is too short, or
/// if no number has stated the length of the span.
fn pad(id: u8, align: usize, rest: &[u8], record: &Record, nodes: &mut Vec<Node>) -> usize {
    let length = record.lengths.iter().find(|(known, _)| *known == id);
    let label = record.labels.iter().find(|(known, _)| *known == id);
    let (Some((_, length)), Some((_, of))) = (length, label) else {
        return 0;
    };
    let size = length.next_multiple_of(align) - length;
    match rest.get(..size) {
        Some(bytes) if bytes.iter().all(|byte| *byte == 0) => {
            nodes.push(Node::Pad {
                of: *of,
                align,
                fill: 0,
            });
            size
        }
        Some(bytes) => {
            nodes.push(Node::fixed(bytes));
            size
        }
        None => 0,
    }
}
