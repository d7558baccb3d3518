//! Readers for formats of nested items without a signature: DER, CBOR, MessagePack and protobuf. A
//! text is taken for such a format only if it can be read to its end.

use crate::node::{Group, Meaning, Node};
use crate::number::Encoding;
use crate::number::MessagePackKind::{self, Array, Bytes, Map, Text};
use crate::reader::Reader;

/// Minimum number of parts that a text taken for CBOR, MessagePack or protobuf must have; shorter
/// texts fit these formats by chance.
const FEWEST: usize = 3;
/// Maximum field number of protobuf: a text with a greater field number is not taken for protobuf.
const GREATEST_FIELD: u64 = 1 << 14;

/// Nodes of an item of DER, CBOR, MessagePack or protobuf, and the size of the item in bytes.
type Item = (Vec<Node>, usize);
/// Function that returns the tree nodes of the item at the beginning of a text, and the size of the
/// item in bytes; `None` if the item cannot be read.
type ReadNodes = fn(&mut Reader, &[u8]) -> Option<Item>;

/// Appends `item` to `nodes` as one part (a group of nodes that can be deleted); `at` is the offset
/// at which the item begins. Returns the offset after the item.
fn part(reader: &mut Reader, item: Item, at: usize, nodes: &mut Vec<Node>) -> usize {
    let label = reader.label();
    nodes.push(Group::part(label, item.0).into());
    at + item.1
}

/// Makes one group of `nodes` that is an item: it may stand in place of an item around it.
fn item(reader: &mut Reader, nodes: Vec<Node>) -> Vec<Node> {
    vec![Group::item(reader.label(), nodes).into()]
}

/// Reads an item of CBOR or MessagePack at the beginning of `text` by `read`. Returns its nodes as
/// one group, which may be put in place of an item around it, and its size in bytes; `None` if
/// there is no item.
fn item_of(reader: &mut Reader, text: &[u8], read: ReadNodes) -> Option<Item> {
    let (nodes, size) = read(reader, text)?;
    Some((item(reader, nodes), size))
}

/// Reads ASN.1 DER: one item with a tag and a length that takes the entire text. `None` if the text
/// is not such an item.
pub fn der(reader: &mut Reader, text: &[u8]) -> Option<Vec<Node>> {
    let (nodes, size) = der_item(reader, text)?;
    (size == text.len() && size > 4).then_some(nodes)
}

fn der_item(reader: &mut Reader, text: &[u8]) -> Option<Item> {
    let tag = *text.first()?;
    let mut head = 1;
    if tag & 0x1f == 0x1f {
        head += text.get(1..)?.iter().position(|byte| byte & 0x80 == 0)? + 1;
    }
    let (length, width) = Encoding::Der.read(text.get(head..)?)?;
    let start = head + width;
    let end = start.checked_add(usize::try_from(length).ok()?)?;
    let body = text.get(start..end)?;
    let label = reader.label();
    let number = &text[head..start];
    let number = reader.number(Encoding::Der, Meaning::Length(label), 0, number);
    let inner = reader.deeper(|reader| match tag {
        _ if tag & 0x20 != 0 => der_items(reader, body),
        // A string of bytes or bits may hold an item.
        0x04 if body.first() == Some(&0x30) => der(reader, body),
        0x03 if body.starts_with(&[0, 0x30]) => {
            let nodes = der(reader, &body[1..])?;
            Some([Node::fixed(&[0])].into_iter().chain(nodes).collect())
        }
        _ => None,
    });
    let inner = inner.unwrap_or_else(|| raw(body));
    let nodes = vec![
        Node::fixed(&text[..head]),
        number,
        Group::new(label, inner).into(),
    ];
    Some((item(reader, nodes), end))
}

fn der_items(reader: &mut Reader, text: &[u8]) -> Option<Vec<Node>> {
    let mut nodes = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let item = der_item(reader, &text[at..]).filter(|_| reader.count_part())?;
        at = part(reader, item, at, &mut nodes);
    }
    Some(nodes)
}

/// Returns a list with one payload node (changeable bytes) of the bytes `bytes`; an empty list if
/// there are no bytes.
fn raw(bytes: &[u8]) -> Vec<Node> {
    let payload = (!bytes.is_empty()).then(|| Node::payload(bytes));
    payload.into_iter().collect()
}

/// Reads protobuf: fields, each with a number and a type. A field whose bytes can be read as a
/// message becomes a message. `None` if the text has fewer than three parts, or bytes that are not
/// fields.
pub fn protobuf(reader: &mut Reader, text: &[u8]) -> Option<Vec<Node>> {
    let nodes = message(reader, text)?;
    (count(&nodes) >= FEWEST).then_some(nodes)
}

fn message(reader: &mut Reader, text: &[u8]) -> Option<Vec<Node>> {
    let mut nodes = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let item = field(reader, &text[at..]).filter(|_| reader.count_part())?;
        at = part(reader, item, at, &mut nodes);
    }
    Some(nodes)
}

fn field(reader: &mut Reader, text: &[u8]) -> Option<Item> {
    let (key, head) = Encoding::Varint.read(text)?;
    if !(1..=GREATEST_FIELD).contains(&(key >> 3)) {
        return None;
    }
    let size = match key & 7 {
        0 => Some(Encoding::Varint.read(&text[head..])?.1),
        1 => Some(8),
        5 => Some(4),
        _ => None,
    };
    if let Some(end) = size.map(|size| head + size) {
        let nodes = vec![Node::fixed(text.get(..end)?)];
        return Some((item(reader, nodes), end));
    }
    match key & 7 {
        2 => {
            let (length, width) = Encoding::Varint.read(&text[head..])?;
            let start = head + width;
            let end = start.checked_add(usize::try_from(length).ok()?)?;
            let body = text.get(start..end)?;
            let label = reader.label();
            let number = reader.number(
                Encoding::Varint,
                Meaning::Length(label),
                0,
                &text[head..start],
            );
            let is_text = body.iter().all(|byte| matches!(byte, b' '..=b'~'));
            let inner = match is_text {
                true => None,
                false => reader.deeper(|reader| message(reader, body)),
            };
            let inner = inner.unwrap_or_else(|| raw(body));
            let nodes = vec![
                Node::fixed(&text[..head]),
                number,
                Group::new(label, inner).into(),
            ];
            Some((item(reader, nodes), end))
        }
        _ => None,
    }
}

/// Returns the number of parts (groups of nodes that can be deleted by themselves) in `nodes`, at
/// all depths.
fn count(nodes: &[Node]) -> usize {
    let counts = nodes.iter().map(|node| match node {
        Node::Group(group) => {
            usize::from(group.part == crate::node::Part::Own) + count(&group.nodes)
        }
        _ => 0,
    });
    counts.sum()
}

/// Reads CBOR: one array or map that takes the entire text. `None` if the text is not such an item,
/// or has fewer than three parts.
pub fn cbor(reader: &mut Reader, text: &[u8]) -> Option<Vec<Node>> {
    let (nodes, size) = item_of(reader, text, cbor_nodes)?;
    (size == text.len() && count(&nodes) >= FEWEST).then_some(nodes)
}

fn cbor_nodes(reader: &mut Reader, text: &[u8]) -> Option<Item> {
    let head = *text.first()?;
    let major = head >> 5;
    if head & 0x1f == 0x1f {
        return cbor_until_break(reader, text, major);
    }
    let encoding = Encoding::Cbor(major);
    let (number, width) = encoding.read(text)?;
    let number = usize::try_from(number).ok();
    match major {
        2 | 3 => {
            let end = width.checked_add(number?)?;
            Some((counted_bytes(reader, encoding, text, width..end)?, end))
        }
        4 | 5 => {
            let each = usize::from(major - 3);
            items(reader, encoding, text, width, number?, each, cbor_nodes)
        }
        6 => {
            let (nodes, size) =
                reader.deeper(|reader| item_of(reader, &text[width..], cbor_nodes))?;
            let tag = Node::fixed(&text[..width]);
            Some(([tag].into_iter().chain(nodes).collect(), width + size))
        }
        _ => Some((vec![Node::fixed(&text[..width])], width)),
    }
}

/// Reads an array, map or string of CBOR of indefinite length, which ends at a break byte (0xff);
/// `major` is its major type. Returns its nodes and its size in bytes; `None` if it cannot be read.
fn cbor_until_break(reader: &mut Reader, text: &[u8], major: u8) -> Option<Item> {
    let each = match major {
        2..=4 => 1,
        5 => 2,
        _ => return None,
    };
    let mut nodes = vec![Node::fixed(&text[..1])];
    let mut at = 1;
    while *text.get(at)? != 0xff {
        let item = group_of(reader, &text[at..], each, cbor_nodes)?;
        at = part(reader, item, at, &mut nodes);
    }
    nodes.push(Node::fixed(&[0xff]));
    Some((nodes, at + 1))
}

/// Returns the tree nodes of a string of CBOR or MessagePack: its header `text[..body.start]`,
/// which states the length, and its bytes `text[body]` as a payload (changeable bytes). `None` if
/// the text ends before.
fn counted_bytes(
    reader: &mut Reader,
    encoding: Encoding,
    text: &[u8],
    body: std::ops::Range<usize>,
) -> Option<Vec<Node>> {
    let bytes = text.get(body.clone())?;
    let label = reader.label();
    let number = reader.number(encoding, Meaning::Length(label), 0, &text[..body.start]);
    Some(vec![number, Group::new(label, raw(bytes)).into()])
}

/// Reads `each` items one after another, such as the key and the value of a map, as the nodes of
/// one part (a group of nodes that can be deleted); returns the nodes with their size in bytes.
/// `None` if an item cannot be read, or the file has too many parts.
fn group_of(reader: &mut Reader, text: &[u8], each: usize, read: ReadNodes) -> Option<Item> {
    if !reader.count_part() {
        return None;
    }
    let mut nodes = Vec::new();
    let mut at = 0;
    for _ in 0..each {
        let rest = text.get(at..)?;
        let (item, size) = reader.deeper(|reader| item_of(reader, rest, read))?;
        nodes.extend(item);
        at += size;
    }
    Some((nodes, at))
}

/// Reads an array or a map of `count` elements at the beginning of `text`. Its header takes `width`
/// bytes and states the count in the encoding `encoding`. Each element becomes a deletable part of
/// `each` items (1 in an array; in a map 2, key and value); `read` reads an item. Returns the nodes
/// and their size in bytes; `None` if an item cannot be read.
fn items(
    reader: &mut Reader,
    encoding: Encoding,
    text: &[u8],
    width: usize,
    count: usize,
    each: usize,
    read: ReadNodes,
) -> Option<Item> {
    let label = reader.label();
    let head = reader.number(encoding, Meaning::Count(label), 0, &text[..width]);
    let mut nodes = Vec::new();
    let mut at = width;
    for _ in 0..count {
        let item = group_of(reader, text.get(at..)?, each, read)?;
        at = part(reader, item, at, &mut nodes);
    }
    Some((vec![head, Group::new(label, nodes).into()], at))
}

/// Reads MessagePack: one array or map that takes the entire text. `None` if the text is not such
/// an item, or has fewer than three parts.
pub fn message_pack(reader: &mut Reader, text: &[u8]) -> Option<Vec<Node>> {
    let (nodes, size) = item_of(reader, text, message_pack_nodes)?;
    (size == text.len() && count(&nodes) >= FEWEST).then_some(nodes)
}

fn message_pack_nodes(reader: &mut Reader, text: &[u8]) -> Option<Item> {
    let read = |kind: MessagePackKind| {
        let encoding = Encoding::MessagePack(kind);
        let (number, width) = encoding.read(text)?;
        Some((encoding, usize::try_from(number).ok()?, width))
    };
    for kind in [Text, Bytes] {
        if let Some((encoding, length, width)) = read(kind) {
            let end = width.checked_add(length)?;
            return Some((counted_bytes(reader, encoding, text, width..end)?, end));
        }
    }
    for (kind, each) in [(Array, 1), (Map, 2)] {
        if let Some((encoding, count, width)) = read(kind) {
            return items(
                reader,
                encoding,
                text,
                width,
                count,
                each,
                message_pack_nodes,
            );
        }
    }
    let size = match *text.first()? {
        0x00..=0x7f | 0xc0 | 0xc2 | 0xc3 | 0xe0..=0xff => 1,
        0xcc | 0xd0 => 2,
        0xcd | 0xd1 | 0xd4 => 3,
        0xd5 => 4,
        0xca | 0xce | 0xd2 => 5,
        0xd6 => 6,
        0xcb | 0xcf | 0xd3 => 9,
        0xd7 => 10,
        0xd8 => 18,
        head @ 0xc7..=0xc9 => {
            let width = 1usize << (head - 0xc7);
            let (length, _) = Encoding::Big(width).read(text.get(1..)?)?;
            usize::try_from(length).ok()?.checked_add(2 + width)?
        }
        _ => return None,
    };
    Some((vec![Node::fixed(text.get(..size)?)], size))
}
