//! Streams of PDF: compressed streams, object streams (which contain objects), and cross-reference
//! streams (which state where objects are).

use std::ops::Range;
use std::sync::Arc;

use super::pdf::{Marks, Object, Pdf, value_nodes};
use super::pdf_values::{Kind, Value, integer, is_space, skip_space, value};
use crate::node::{Group, Label, Meaning, Node, Part};
use crate::number::Encoding;
use crate::packed::{Codec, Inside, Linked, Packed};
use crate::reader::Reader;
use crate::runs::{RunForm, Runs};

/// Maximum size, in bytes, of an entry of a cross-reference stream.
const LONGEST_ROW: usize = 24;

/// The stream of a PDF object: the bytes between `stream` and `endstream`, and what they contain.
pub struct Stream {
    /// Range of the stream's bytes in the file, without the words `stream` and `endstream`.
    pub data: Range<usize>,
    /// Offset in the file of what follows the stream's bytes and the white space after them: mostly
    /// the word `endstream`.
    pub end: usize,
    /// Label (id in the file's tree) of the group of nodes that the stream's bytes become in the
    /// tree of the file.
    pub label: Label,
    /// The decompressed stream: its compression method, its content, how many bytes of the file the
    /// compressed data take, and the label (id in the file's tree) of the dictionary entry
    /// `Filter`; if this entry is deleted, the content is written uncompressed. `None` if the
    /// stream is not compressed by a known method.
    packed: Option<(Codec, Vec<u8>, usize, Option<Label>)>,
    /// Objects in an object stream, each with the range, in the stream's content, of its number and
    /// offset in the list at the front; empty for other streams.
    members: Vec<(Object, Range<usize>)>,
    /// Label (id in the file's tree) of the group of nodes of the numbers and offsets at the front
    /// of an object stream.
    list: Label,
}

impl Stream {
    /// Finds the stream that follows `value`, the dictionary of an object. `sign` is the offset of
    /// the first `endstream` after the dictionary. `None` if there is no stream.
    pub fn find(
        reader: &mut Reader,
        text: &[u8],
        value: &Value,
        sign: Option<usize>,
    ) -> Option<Stream> {
        let word = skip_space(text, value.place.end);
        let rest = text.get(word..)?.strip_prefix(b"stream")?;
        let line = match rest {
            [b'\r', b'\n', ..] => 2,
            [b'\r' | b'\n', ..] => 1,
            _ => 0,
        };
        let start = word + b"stream".len() + line;
        let mut stream = Stream {
            data: start..sign.filter(|end| *end >= start)?,
            end: sign?,
            label: reader.label(),
            packed: None,
            members: Vec::new(),
            list: reader.label(),
        };
        let stated = value.number(text, b"Length");
        let stated = stated.and_then(|size| usize::try_from(size).ok());
        stream.data.end = match stated {
            Some(size) => stream.end_with(text, size),
            None => stream.end_of_line(text),
        };
        if !text[stream.data.end..].starts_with(b"endstream") {
            let rest = &text[stream.data.end..];
            let space = rest.iter().take_while(|byte| is_space(**byte)).count();
            stream.end = stream.data.end + space;
        }
        Some(stream)
    }

    /// Returns the offset at which the stream's bytes end: after `size` bytes if `endstream`
    /// follows these, else before the end of line in front of the next `endstream`.
    pub fn end_with(&self, text: &[u8], size: usize) -> usize {
        let stated = self.data.start.saturating_add(size);
        let rest = text.get(stated..).unwrap_or_default();
        let space = rest.iter().take_while(|byte| is_space(**byte)).count();
        match rest[space..].starts_with(b"endstream") {
            true => stated,
            false => self.end_of_line(text),
        }
    }

    /// Returns the offset of the end of line in front of the word `endstream`, at which the
    /// stream's bytes end if its length is not known.
    fn end_of_line(&self, text: &[u8]) -> usize {
        let data = &text[self.data.start..self.end];
        let data = data.strip_suffix(b"\n").unwrap_or(data);
        let data = data.strip_suffix(b"\r").unwrap_or(data);
        self.data.start + data.len()
    }

    /// Returns the objects in the stream, if it is an object stream; none for other streams.
    pub fn members(&self) -> impl Iterator<Item = &Object> {
        self.members.iter().map(|(object, _)| object)
    }

    /// Decompresses the stream, if its method is known; reads the objects in it, if its dictionary
    /// `value` says that it is an object stream.
    pub fn open(&mut self, reader: &mut Reader, text: &[u8], value: &Value) {
        let Some(bytes) = text.get(self.data.clone()) else {
            return;
        };
        self.packed = filters(text, value).into_iter().find_map(|(codec, by)| {
            let (content, used) = codec.unpack_front(bytes, &mut reader.unpacked)?;
            Some((codec, content, used, by))
        });
        if value.name(text, b"Type") == Some(b"ObjStm") {
            let content = match &self.packed {
                Some((_, content, ..)) => content.clone(),
                None if value.entry(text, b"Filter").is_none() => bytes.to_vec(),
                None => return,
            };
            let count = value.number(text, b"N").unwrap_or_default();
            let first = value.number(text, b"First");
            let first = first.and_then(|first| usize::try_from(first).ok());
            let members = first.and_then(|first| members(reader, &content, count, first));
            self.members = members.unwrap_or_default();
        }
    }

    /// Returns the tree nodes of the bytes of this stream, which belongs to `object`. Adds to
    /// `marks` which values of the object's dictionary, `value`, depend on the content of the
    /// stream, such as the number of objects in it.
    pub fn nodes(
        &self,
        pdf: &Pdf<'_>,
        reader: &mut Reader,
        object: &Object,
        value: &Value,
        marks: &mut Marks,
    ) -> Vec<Node> {
        let bytes = &pdf.text[self.data.clone()];
        if let Some((.., Some(filter))) = &self.packed
            && let Some(parameters) = value.entry(pdf.text, b"DecodeParms")
        {
            marks.with.insert(parameters.label, *filter);
        }
        let is_table = value.name(pdf.text, b"Type") == Some(b"XRef");
        let content = match &self.packed {
            Some((_, content, ..)) => content,
            None => bytes,
        };
        let nodes = match is_table {
            true => rows(pdf, reader, object, value, content, marks),
            false if !self.members.is_empty() => {
                Some(self.objects(pdf, reader, content, value, marks))
            }
            false => None,
        };
        let Some((codec, content, used, method)) = &self.packed else {
            return nodes.unwrap_or_else(|| reader.payload(bytes));
        };
        let packed = &bytes[..*used];
        let (opened, linked) = match nodes {
            Some(nodes) if is_table => (nodes, Linked::Outwards),
            Some(nodes) => (nodes, Linked::Into(Arc::new(Inside::default()))),
            None => (Vec::new(), Linked::No),
        };
        let label = reader.label();
        let mut node = match linked {
            Linked::No => reader.packed_as(label, *codec, content, packed),
            _ => {
                let read = Packed::read(*codec, Group::new(label, opened), content, packed);
                Node::Packed(read.linked_as(linked))
            }
        };
        if let Node::Packed(packed) = &mut node {
            packed.method = *method;
        }
        let rest = &bytes[*used..];
        let rest = (!rest.is_empty()).then(|| Node::payload(rest));
        [node].into_iter().chain(rest).collect()
    }

    /// Returns the tree nodes of the `content` of an object stream: first the list of pairs of an
    /// object number and an offset, each of which is deleted together with its object, and then the
    /// objects. Adds to `marks` that the entries `N` and `First` of the dictionary `value` state
    /// the number of objects and the size of the list.
    fn objects(
        &self,
        pdf: &Pdf<'_>,
        reader: &mut Reader,
        content: &[u8],
        value: &Value,
        marks: &mut Marks,
    ) -> Vec<Node> {
        let (head, list) = (self.list, reader.label());
        let start = self.members[0].0.place.start;
        let (mut pairs, mut objects) = (Vec::new(), Vec::new());
        for (member, pair) in &self.members {
            let text = &content[pair.clone()];
            let number = integer(text, 0).map_or(0, |(_, end)| skip_space(text, end));
            let end = integer(text, number).map_or(number, |(_, end)| end);
            let meaning = Meaning::Offset(member.label, list);
            let nodes = vec![
                Node::fixed(&text[..number]),
                reader.number(Encoding::Digits, meaning, 0, &text[number..end]),
                Node::fixed(&text[end..]),
            ];
            pairs.push(Node::Group(Group {
                part: Part::With(member.label),
                ..Group::new(reader.label(), nodes)
            }));
            let inner = match &member.value {
                Some(value) => {
                    let marks = pdf.marks(reader, member, value);
                    let mut nodes = value_nodes(reader, content, value, &marks);
                    let rest = &content[value.place.end..member.place.end];
                    nodes.extend((!rest.is_empty()).then(|| Node::payload(rest)));
                    nodes
                }
                None => vec![Node::payload(&content[member.place.clone()])],
            };
            objects.push(Node::Group(Group {
                part: pdf.part(member.label),
                ..Group::new(member.label, inner)
            }));
        }
        let first = self.members[0].0.label;
        let count = Meaning::Present(first, first + self.members.len() as Label);
        for (name, meaning) in [(&b"N"[..], count), (b"First", Meaning::Length(head))] {
            if let Some(item) = value.entry(pdf.text, name) {
                marks.numbers.insert(item.value.place.start, meaning);
            }
        }
        let after = self.members.last().map_or(start, |(_, pair)| pair.end);
        pairs.push(Node::fixed(&content[after..start]));
        vec![
            Group::new(head, pairs).into(),
            Group::new(list, objects).into(),
        ]
    }
}

impl Packed {
    /// Returns the compressed node with `linked`, which says whether numbers refer across its
    /// border. For [`Linked::Into`], the sizes and indices of the groups of nodes in its content
    /// are computed anew, whatever `linked` contains.
    fn linked_as(self, linked: Linked) -> Packed {
        match linked {
            Linked::Into(_) => Packed {
                linked: Packed::linked(self.codec, self.content.clone()).linked,
                ..self
            },
            linked => Packed { linked, ..self },
        }
    }
}

/// Returns the compression methods that the stream with the dictionary `value` may have, the
/// likeliest first; empty if no known method fits. Each comes with the label (id in the file's
/// tree) of the entry `Filter`: if that entry is deleted, the content is written uncompressed. The
/// label is `None` if decompression by the method leaves a predictor applied, so that its result is
/// not the content.
fn filters(text: &[u8], value: &Value) -> Vec<(Codec, Option<Label>)> {
    let Some(entry) = value.entry(text, b"Filter") else {
        return Vec::new();
    };
    let codec = match value.name(text, b"Filter") {
        Some(b"FlateDecode" | b"Fl") => Codec::Zlib,
        Some(b"LZWDecode" | b"LZW") => Codec::Tiff,
        _ => return Vec::new(),
    };
    let Some(mut parameters) = value.entry(text, b"DecodeParms").map(|item| &item.value) else {
        return vec![(codec, Some(entry.label))];
    };
    if let (Kind::Array, [item]) = (parameters.kind, &parameters.items[..]) {
        parameters = &item.value;
    }
    let number = |name: &[u8], usual: u64| parameters.number(text, name).unwrap_or(usual);
    let colors = number(b"Colors", 1).saturating_mul(number(b"BitsPerComponent", 8));
    let columns = number(b"Columns", 1).saturating_mul(colors).div_ceil(8);
    match (codec, number(b"Predictor", 1), usize::try_from(columns)) {
        (_, 1, _) => vec![(codec, Some(entry.label))],
        (Codec::Zlib, 10.., Ok(columns @ 1..=0xffff)) => {
            vec![(Codec::Rows(columns), Some(entry.label)), (codec, None)]
        }
        _ => vec![(codec, None)],
    }
}

/// Reads an object stream: at its front `count` pairs of an object number and an offset, which
/// counts from offset `first` of `content`, and then the objects. Returns each object with the
/// range of its pair. `None` if the offsets do not ascend or are outside of the content, or if a
/// pair cannot be read.
fn members(
    reader: &mut Reader,
    content: &[u8],
    count: u64,
    first: usize,
) -> Option<Vec<(Object, Range<usize>)>> {
    content.get(first..)?;
    let mut pairs = Vec::new();
    let mut at = skip_space(content, 0);
    let front = at;
    while (pairs.len() as u64) < count {
        let (number, end) = integer(content, at)?;
        let (offset, end) = integer(content, skip_space(content, end))?;
        let start = first.checked_add(usize::try_from(offset).ok()?)?;
        let end = skip_space(content, end).min(first);
        (end > at && reader.count_part()).then_some(())?;
        pairs.push((number, start, at..end));
        at = end;
    }
    let starts = pairs.iter().map(|(_, start, _)| *start);
    let ends: Vec<usize> = starts.skip(1).chain([content.len()]).collect();
    (front == 0 && pairs.first()?.1 == first).then_some(())?;
    let labels: Vec<Label> = pairs.iter().map(|_| reader.label()).collect();
    let mut members = Vec::new();
    for (((number, start, pair), end), label) in pairs.into_iter().zip(ends).zip(labels) {
        let text = content.get(..end).filter(|_| start <= end)?;
        let object = Object {
            number,
            place: start..end,
            body: start,
            value: value(reader, text, start),
            label,
            stream: None,
        };
        members.push((object, pair));
    }
    Some(members)
}

/// Returns the tree nodes of the `content` of a cross-reference stream: one entry for each object,
/// which is deleted together with the object. Also records in `marks` that the object numbers in
/// the stream's dictionary `value` are computed anew from the entries that are left. `None` if the
/// content does not have as many entries as the dictionary states.
fn rows(
    pdf: &Pdf<'_>,
    reader: &mut Reader,
    object: &Object,
    value: &Value,
    content: &[u8],
    marks: &mut Marks,
) -> Option<Vec<Node>> {
    let widths = value.entry(pdf.text, b"W")?.value.items.iter();
    let widths = widths.map(|item| match item.value.kind {
        Kind::Number(width @ 0..=8) => Some(width as usize),
        _ => None,
    });
    let widths: Option<Vec<usize>> = widths.collect();
    let widths = widths.filter(|widths| widths.len() == 3)?;
    let size: usize = widths.iter().sum();
    let is_fit = (1..=LONGEST_ROW).contains(&size) && content.len().is_multiple_of(size);
    let count = Some(content.len() / size.max(1)).filter(|_| is_fit)?;
    reader.count_parts(count).then_some(())?;
    let first = reader.label();
    for _ in 1..count {
        reader.label();
    }
    let index = value.entry(pdf.text, b"Index").map(|item| &item.value);
    let runs = runs(pdf, value, index, first, count)?;
    let node = Node::Runs(runs);
    match index {
        Some(index) => marks.instead.insert(index.place.start, node),
        None => {
            // It follows the widths of fields.
            let widths = &value.entry(pdf.text, b"W")?.value;
            let bytes = Node::fixed(&pdf.text[widths.place.clone()]);
            let both = Group::new(reader.label(), vec![bytes, node]);
            marks.instead.insert(widths.place.start, both.into())
        }
    };
    if let Some(before) = value.entry(pdf.text, b"Prev")
        && let Kind::Number(at) = before.value.kind
        && let Some(of) = pdf.object_at(at)
    {
        let meaning = Meaning::Offset(of, pdf.root);
        marks.numbers.insert(before.value.place.start, meaning);
    }
    let rows = content
        .chunks(size)
        .enumerate()
        .map(|(index, row)| row_node(pdf, reader, object, row, &widths, first + index as Label));
    Some(rows.collect())
}

/// Returns the object numbers that the entries of a cross-reference stream have: those that the
/// array `index` of its dictionary states, or from 0 on if there is no such array. `first` is the
/// label (id in the file's tree) of the first entry, `count` the number of entries. `None` if the
/// dictionary states another number of entries, or if ddfuzz could not write the array again byte
/// for byte, for example because of unusual blanks in it.
fn runs(
    pdf: &Pdf<'_>,
    value: &Value,
    index: Option<&Value>,
    first: Label,
    count: usize,
) -> Option<Runs> {
    let numbers: Vec<u64> = match index {
        Some(index) => {
            let items = index.items.iter().map_while(|item| match item.value.kind {
                Kind::Number(number) => Some(number),
                _ => None,
            });
            let items: Vec<u64> = items.collect();
            let pairs = items.chunks_exact(2);
            let numbers =
                pairs.flat_map(|pair| (0..pair[1]).map(move |row| pair[0].wrapping_add(row)));
            numbers.take(count + 1).collect()
        }
        None => (0..value.number(pdf.text, b"Size")?.min(count as u64 + 1)).collect(),
    };
    let (front, back) = match index {
        Some(index) => {
            let front = index.items.first()?.place.start;
            let back = index.items.last()?.value.place.end;
            let text = pdf.text;
            (
                &text[index.place.start..front],
                &text[back..index.place.end],
            )
        }
        None => (&b"/Index["[..], &b"]"[..]),
    };
    let runs = Runs {
        first,
        numbers: numbers.into(),
        form: RunForm::List {
            front: front.into(),
            back: back.into(),
            is_implied: index.is_none(),
        },
    };
    let stated = index.map_or(&b""[..], |index| &pdf.text[index.place.clone()]);
    (runs.numbers.len() == count && runs.write(|_| true) == stated).then_some(runs)
}

/// Returns the tree node of `row`, an entry of a cross-reference stream, whose three fields have
/// the `widths` in bytes. The entry is deleted together with its object. An entry of type 1 states
/// the offset of the object in the file, one of type 2 the index of the object in its object
/// stream; both are computed anew.
fn row_node(
    pdf: &Pdf<'_>,
    reader: &mut Reader,
    object: &Object,
    row: &[u8],
    widths: &[usize],
    label: Label,
) -> Node {
    let (kind, rest) = row.split_at(widths[0]);
    let (second, third) = rest.split_at(widths[1]);
    let read = |bytes: &[u8]| {
        Encoding::Big(bytes.len())
            .read_at(bytes, 0)
            .unwrap_or_default()
    };
    let mut nodes = vec![Node::fixed(kind)];
    let mut with = None;
    match if kind.is_empty() { 1 } else { read(kind) } {
        1 => {
            with = pdf.object_at(read(second));
            nodes.push(match with {
                Some(of) => {
                    let meaning = Meaning::Offset(of, pdf.root);
                    reader.number(Encoding::Big(second.len()), meaning, 0, second)
                }
                None => Node::fixed(second),
            });
            nodes.push(Node::fixed(third));
        }
        2 => {
            let stream = pdf.object(read(second));
            let stream = stream.and_then(|object| object.stream.as_ref());
            let index = usize::try_from(read(third)).unwrap_or(usize::MAX);
            with = stream.and_then(|stream| Some(stream.members.get(index)?.0.label));
            nodes.push(Node::fixed(second));
            nodes.push(match with {
                Some(of) => reader.number(Encoding::Big(third.len()), Meaning::Index(of), 0, third),
                None => Node::fixed(third),
            });
        }
        _ => nodes.push(Node::fixed(rest)),
    }
    Node::Group(Group {
        part: match with {
            Some(of) if of == object.label => Part::No,
            Some(of) => Part::With(of),
            None => Part::Own,
        },
        ..Group::new(label, nodes)
    })
}
