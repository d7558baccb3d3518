//! Reader for PDF: the indirect objects of a file, with their streams, the cross-reference tables
//! and streams that state where objects are, and trailers. An object to which only one entry of a
//! dictionary or element of an array refers is deleted together with that entry or element.

use std::collections::HashMap;
use std::ops::Range;

use super::pdf_streams::Stream;
use super::pdf_tables::{Section, sections};
use super::pdf_values::{Item, Kind, Value, integer, is_space, skip_space, value};
use crate::node::{Group, Label, Meaning, Node, Part};
use crate::number::Encoding;
use crate::reader::Reader;

/// Maximum length of a chain of objects in which each object is deleted together with the next one.
const LONGEST_CHAIN: usize = 64;

/// An indirect object of a PDF file, or an object inside of an object stream.
pub struct Object {
    pub number: u64,
    /// Range of bytes of the object in its text (the file, or the decompressed object stream). In
    /// the file, it includes the object's number and `endobj`.
    pub place: Range<usize>,
    /// Offset at which the value of the object begins: in the file, after `NUMBER GENERATION obj`.
    pub body: usize,
    /// Value of the object, such as a dictionary; `None` if it cannot be read.
    pub value: Option<Value>,
    pub label: Label,
    pub stream: Option<Stream>,
}

/// How the nodes of some values in a PDF object differ from plain payloads (changeable bytes):
/// numbers that state something, arrays whose elements are counted, entries that are deleted
/// together with others. Values are named by their offsets in the text.
#[derive(Default)]
pub struct Marks {
    /// For the offset of a number, what the number states, such as the length of a stream.
    pub numbers: HashMap<usize, Meaning>,
    /// For the offset of an array whose elements a number counts, the label (id in the file's tree)
    /// of the group of nodes of its elements.
    pub lists: HashMap<usize, Label>,
    /// For the label (id in the file's tree) of a dictionary entry or array element, the label of
    /// the group of nodes that it is deleted together with.
    pub with: HashMap<Label, Label>,
    /// For the offset of a value, the node that is made for it in place of the usual ones.
    pub instead: HashMap<usize, Node>,
}

/// State of reading a PDF file: its objects, the tables and trailers between them, and which object
/// belongs to what.
pub struct Pdf<'a> {
    pub text: &'a [u8],
    /// Label (id in the file's tree) of the group of nodes of the entire file; offsets of objects
    /// count from its beginning.
    pub root: Label,
    pub objects: Vec<Object>,
    pub sections: Vec<Section>,
    /// For each object number, the index in `objects` of the last object with this number.
    numbers: HashMap<u64, usize>,
    /// For each object number, the label (id in the file's tree) of the object, whether it stands
    /// in the file or in an object stream.
    labels: HashMap<u64, Label>,
    /// For the label (id in the file's tree) of each object that is deleted together with the only
    /// reference to it, the label of the dictionary entry or array element that is this reference.
    owners: HashMap<Label, Label>,
    /// For the number of each object that states the length of a stream, the label (id in the
    /// file's tree) of the group of nodes of the stream's bytes.
    lengths: HashMap<u64, Label>,
}

/// Reads a PDF file into the nodes of its tree; `None` if no indirect object is found in it.
pub fn pdf(reader: &mut Reader, text: &[u8]) -> Option<Vec<Node>> {
    let mut file = Pdf {
        text,
        root: reader.label(),
        objects: objects(reader, text),
        sections: Vec::new(),
        numbers: HashMap::new(),
        labels: HashMap::new(),
        owners: HashMap::new(),
        lengths: HashMap::new(),
    };
    if file.objects.is_empty() {
        return None;
    }
    let numbers = file.objects.iter().enumerate();
    file.numbers = numbers
        .map(|(index, object)| (object.number, index))
        .collect();
    file.sections = sections(reader, text, &file.objects);
    for index in 0..file.objects.len() {
        file.open_stream(reader, index);
    }
    file.find_owners();
    let nodes = file.nodes(reader);
    Some(vec![Group::new(file.root, nodes).into()])
}

/// Returns the offsets of all occurrences of the bytes `sign` in `text`, which do not overlap.
pub fn find_all<'a>(text: &'a [u8], sign: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    memchr::memmem::find_iter(text, sign)
}

/// Reads the head of an object, `NUMBER GENERATION obj`, backwards from the word `obj` at offset
/// `at`. Returns the offset at which the head begins, and the number of the object; `None` if there
/// is no such head.
fn head(text: &[u8], at: usize) -> Option<(usize, u64)> {
    let digits = |end: usize| {
        let digits = text[..end].iter().rev();
        end - digits.take_while(|byte| byte.is_ascii_digit()).count()
    };
    let spaces = |end: usize| {
        let spaces = text[..end].iter().rev();
        end - spaces.take_while(|byte| is_space(**byte)).count()
    };
    let generation = digits(spaces(at));
    let number = spaces(generation);
    let start = digits(number);
    let is_head = number < generation && generation < spaces(at);
    let (number, end) = integer(text, start).filter(|_| is_head)?;
    (end > start).then_some((start, number))
}

/// Finds the indirect objects of a file by their heads (`NUMBER GENERATION obj`), and reads their
/// values.
fn objects(reader: &mut Reader, text: &[u8]) -> Vec<Object> {
    let heads = find_all(text, b"obj").filter(|at| !text[..*at].ends_with(b"end"));
    let heads =
        heads.filter_map(|at| head(text, at).map(|(start, number)| (start, number, at + 3)));
    let heads: Vec<_> = heads.collect();
    let stream_ends: Vec<usize> = find_all(text, b"endstream").collect();
    let ends: Vec<usize> = find_all(text, b"endobj").collect();
    let mut objects: Vec<Object> = Vec::new();
    for (index, (start, number, body)) in heads.iter().copied().enumerate() {
        let before = objects.last().map_or(0, |before| before.place.end);
        if start < before || !reader.count_part() {
            continue;
        }
        let next = heads.get(index + 1).map_or(text.len(), |(next, ..)| *next);
        let body = skip_space(&text[..next], body);
        let value = value(reader, &text[..next], body);
        let stream = value.as_ref().and_then(|value| {
            let first = stream_ends.partition_point(|end| *end < value.place.end);
            Stream::find(reader, text, value, stream_ends.get(first).copied())
        });
        let mut at = match (&value, &stream) {
            (_, Some(stream)) => stream.end,
            (Some(value), None) => value.place.end,
            (None, None) => body,
        };
        let end = ends.partition_point(|end| *end < at);
        if let Some(end) = ends
            .get(end)
            .filter(|end| **end < next || skip_space(text, at) == **end)
        {
            at = end + b"endobj".len();
            at += text[at..]
                .iter()
                .take_while(|byte| is_space(**byte))
                .count();
        } else if value.is_none() {
            // What states where objects are counts also behind an object that cannot be read.
            let words = [&b"xref"[..], b"startxref", b"trailer"].into_iter();
            let found = words.filter_map(|word| find_all(&text[at..next], word).next());
            at = found.min().map_or(next, |found| at + found);
        }
        objects.push(Object {
            number,
            place: start..at,
            body,
            value,
            label: reader.label(),
            stream,
        });
    }
    objects
}

impl Pdf<'_> {
    /// Returns the integer that is the whole value of the object with the number `number`, as of an
    /// object that states the length of a stream; `None` if there is no such object, or its value
    /// is not an integer.
    pub fn integer_of(&self, number: u64) -> Option<u64> {
        match self.object(number)?.value.as_ref()?.kind {
            Kind::Number(number) => Some(number),
            _ => None,
        }
    }

    /// Returns the label (id in the file's tree) of the object that begins at offset `at` of the
    /// file; `None` if none does.
    pub fn object_at(&self, at: u64) -> Option<Label> {
        let at = usize::try_from(at).ok()?;
        let found = self
            .objects
            .binary_search_by_key(&at, |object| object.place.start);
        Some(self.objects[found.ok()?].label)
    }

    /// Returns the last object with this number in the file; `None` if there is none. Objects in
    /// object streams are not searched.
    pub fn object(&self, number: u64) -> Option<&Object> {
        self.objects.get(*self.numbers.get(&number)?)
    }

    fn open_stream(&mut self, reader: &mut Reader, index: usize) {
        let object = &self.objects[index];
        let (Some(value), Some(stream)) = (&object.value, &object.stream) else {
            return;
        };
        let mut end = stream.data.end;
        if let Some(length) = value.entry(self.text, b"Length")
            && let Kind::Reference(number) = length.value.kind
        {
            let stated = self
                .integer_of(number)
                .and_then(|size| usize::try_from(size).ok());
            end = stated.map_or(end, |size| stream.end_with(self.text, size));
            self.lengths.insert(number, stream.label);
        }
        let object = &mut self.objects[index];
        if let (Some(value), Some(stream)) = (&object.value, &mut object.stream) {
            stream.data.end = end;
            stream.open(reader, self.text, value);
        }
    }

    /// Finds the owner of each object: the dictionary entry or array element that is the only
    /// reference to the object, and with which the object is deleted. An object has no owner if
    /// several references lead to it, if one in a trailer or in the object itself does, or if its
    /// chain of owners would be longer than [`LONGEST_CHAIN`].
    fn find_owners(&mut self) {
        // Item with a reference, and the object that it is in; `None` if there are several.
        let mut references: HashMap<u64, Option<(Label, u64)>> = HashMap::new();
        let mut see = |number: u64, item: Label, around: Option<u64>| {
            let known = references.contains_key(&number);
            let one = around.filter(|around| !known && *around != number);
            references.insert(number, one.map(|around| (item, around)));
        };
        for object in &self.objects {
            let members = object.stream.iter().flat_map(Stream::members);
            for one in members.chain([object]) {
                self.labels.insert(one.number, one.label);
                let is_trailer = one.value.as_ref().is_some_and(|value| {
                    std::ptr::eq(one, object) && value.name(self.text, b"Type") == Some(b"XRef")
                });
                let around = Some(one.number).filter(|_| !is_trailer);
                if let Some(value) = &one.value {
                    value.references(&mut |number, item| see(number, item, around));
                }
            }
        }
        for value in self.sections.iter().filter_map(Section::trailer) {
            value.references(&mut |number, item| see(number, item, None));
        }
        for (number, label) in &self.labels {
            let mut next = references.get(number).copied().flatten();
            let owner = next.map(|(item, _)| item);
            let mut length = 0;
            while let Some((_, around)) = next.filter(|_| length < LONGEST_CHAIN) {
                length += 1;
                next = references.get(&around).copied().flatten();
            }
            if let Some(owner) = owner.filter(|_| next.is_none()) {
                self.owners.insert(*label, owner);
            }
        }
    }

    /// Returns how the object with the label `label` (id in the file's tree) is deleted: together
    /// with the only reference to it, or by itself if no reference or several lead to it.
    pub fn part(&self, label: Label) -> Part {
        self.owners
            .get(&label)
            .copied()
            .map_or(Part::Own, Part::With)
    }

    /// Returns the tree nodes of the whole file, in the order of its bytes: objects, tables,
    /// trailers, and the bytes between them.
    fn nodes(&self, reader: &mut Reader) -> Vec<Node> {
        let mut nodes = Vec::new();
        let mut at = 0;
        let mut sections = self.sections.iter().peekable();
        let starts = self.objects.iter().map(|object| object.place.start);
        let objects = self.objects.iter().map(Some).chain([None]);
        for (object, start) in objects.zip(starts.chain([self.text.len()])) {
            while let Some(section) = sections.next_if(|section| section.place().end <= start) {
                self.gap(at..section.place().start, &mut nodes);
                nodes.extend(section.nodes(self, reader));
                at = section.place().end;
            }
            self.gap(at..start, &mut nodes);
            let Some(object) = object else {
                break;
            };
            nodes.push(self.object_node(reader, object));
            at = object.place.end;
        }
        nodes
    }

    /// Appends to `nodes` the bytes of the range `place`, which belong to no object or table, as a
    /// payload (changeable bytes). If the range begins at the start of the file, its first line,
    /// the PDF header, becomes fixed bytes.
    fn gap(&self, place: Range<usize>, nodes: &mut Vec<Node>) {
        let Some(mut bytes) = self.text.get(place.clone()) else {
            return;
        };
        if place.start == 0 {
            let line = bytes.iter().position(|byte| b"\r\n".contains(byte));
            let (head, rest) = bytes.split_at(line.map_or(bytes.len(), |line| line + 1));
            nodes.push(Node::fixed(head));
            bytes = rest;
        }
        nodes.extend((!bytes.is_empty()).then(|| Node::payload(bytes)));
    }

    fn object_node(&self, reader: &mut Reader, object: &Object) -> Node {
        let text = self.text;
        let mut nodes = vec![Node::fixed(&text[object.place.start..object.body])];
        let mut at = object.body;
        if let Some(value) = &object.value {
            let mut marks = self.marks(reader, object, value);
            if let Some(stream) = &object.stream {
                let data = stream.nodes(self, reader, object, value, &mut marks);
                nodes.extend(value_nodes(reader, text, value, &marks));
                nodes.push(Node::fixed(&text[value.place.end..stream.data.start]));
                nodes.push(Group::new(stream.label, data).into());
                at = stream.data.end;
            } else {
                nodes.extend(value_nodes(reader, text, value, &marks));
                at = value.place.end;
            }
        }
        nodes.push(match object.value {
            Some(_) => Node::fixed(&text[at..object.place.end]),
            None => Node::payload(&text[at..object.place.end]),
        });
        Node::Group(Group {
            part: self.part(object.label),
            ..Group::new(object.label, nodes)
        })
    }

    /// Returns the [`Marks`] of the value of an object: which numbers in it state the length of a
    /// stream, and which number, `Count`, states how many elements the array `Kids` has.
    pub fn marks(&self, reader: &mut Reader, object: &Object, value: &Value) -> Marks {
        let mut marks = Marks::default();
        if let Some(of) = self.lengths.get(&object.number) {
            marks
                .numbers
                .insert(value.place.start, Meaning::Length(*of));
        }
        if let (Some(stream), Some(length)) = (&object.stream, value.entry(self.text, b"Length")) {
            let meaning = Meaning::Length(stream.label);
            marks.numbers.insert(length.value.place.start, meaning);
        }
        marks.count(
            reader,
            value.entry(self.text, b"Kids"),
            value.entry(self.text, b"Count"),
        );
        marks
    }
}

impl Marks {
    /// If the integer `count` is the number of elements of the array `list`, two entries of a
    /// dictionary, records that it states this number, so that it is computed anew. Does nothing
    /// otherwise, or if one of the entries is missing.
    pub fn count(&mut self, reader: &mut Reader, list: Option<&Item>, count: Option<&Item>) {
        let (Some(list), Some(count)) = (list, count) else {
            return;
        };
        let stated = Kind::Number(list.value.items.len() as u64);
        if list.value.kind == Kind::Array && count.value.kind == stated {
            let label = reader.label();
            self.lists.insert(list.value.place.start, label);
            self.numbers
                .insert(count.value.place.start, Meaning::Count(label));
        }
    }
}

/// Appends `bytes` to `nodes` as a payload (changeable bytes); if the last node is a payload
/// already, extends that one instead.
fn push_payload(nodes: &mut Vec<Node>, bytes: &[u8]) {
    if let Some(Node::Payload(last)) = nodes.last_mut() {
        *last = [&last[..], bytes].concat().into();
    } else if !bytes.is_empty() {
        nodes.push(Node::payload(bytes));
    }
}

/// Returns the tree nodes of a value of PDF. Each entry of a dictionary, and each element of an
/// array, becomes a group of nodes that searches can delete by itself, unless `marks` says that it
/// is deleted together with another group; numbers in `marks` are computed anew; other values
/// become payloads (changeable bytes).
pub fn value_nodes(reader: &mut Reader, text: &[u8], value: &Value, marks: &Marks) -> Vec<Node> {
    let start = value.place.start;
    let bytes = &text[value.place.clone()];
    if let Some(node) = marks.instead.get(&start) {
        return vec![node.clone()];
    }
    if let Some(meaning) = marks.numbers.get(&start) {
        return vec![reader.number(Encoding::Digits, *meaning, 0, bytes)];
    }
    if !matches!(value.kind, Kind::Dictionary | Kind::Array) {
        return vec![Node::payload(bytes)];
    }
    let end = value.place.end - if value.kind == Kind::Array { 1 } else { 2 };
    let first = value.items.first().map_or(end, |item| item.place.start);
    let mut nodes = Vec::new();
    for item in &value.items {
        let mut inner = Vec::new();
        push_payload(&mut inner, &text[item.place.start..item.value.place.start]);
        for node in value_nodes(reader, text, &item.value, marks) {
            match node {
                Node::Payload(bytes) => push_payload(&mut inner, &bytes),
                other => inner.push(other),
            }
        }
        push_payload(&mut inner, &text[item.value.place.end..item.place.end]);
        nodes.push(Node::Group(Group {
            part: marks
                .with
                .get(&item.label)
                .copied()
                .map_or(Part::Own, Part::With),
            ..Group::new(item.label, inner)
        }));
    }
    if let Some(label) = marks.lists.get(&start) {
        nodes = vec![Group::new(*label, nodes).into()];
    }
    nodes.insert(0, Node::fixed(&text[start..first]));
    nodes.push(Node::fixed(&text[end..value.place.end]));
    nodes
}
