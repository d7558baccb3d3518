//! Readers for archives and compressed files: gzip, zlib, ZIP and tar.

use std::ops::Range;

use super::image::series;
use crate::node::{Group, Label, Meaning, Node, Part};
use crate::number::Encoding;
use crate::packed::Codec;
use crate::reader::Reader;
use crate::sum::Sum;

/// Size of the fixed fields of a ZIP member's local header, in bytes.
const ZIP_HEAD: usize = 30;
/// Size of the fixed fields of a ZIP member's entry in the central directory, in bytes.
const ZIP_ENTRY: usize = 46;
/// Size of the fixed fields of the end of the central directory of a ZIP file, in bytes.
const ZIP_END: usize = 22;
/// Maximum number of members of a ZIP file that are read; the directory entries of all further
/// members become one payload (changeable bytes).
const MOST_MEMBERS: usize = 1 << 13;
/// Size of a block of a tar file, in bytes.
const TAR_BLOCK: usize = 512;

/// Offset, in the header of a file in a tar archive, of the size of that file.
const TAR_SIZE: usize = 124;
/// Offset, in the header of a file in a tar archive, of the checksum of that header.
const TAR_SUM: usize = 148;
/// Ranges of the fields in the header of a tar file: name, mode, user, group, size, time, checksum,
/// kind, link, signature with the name of the user, name of the group, device, and the rest.
const TAR_FIELDS: [(usize, usize); 15] = [
    (0, 100),
    (100, 108),
    (108, 116),
    (116, 124),
    (TAR_SIZE, 136),
    (136, TAR_SUM),
    (TAR_SUM, 155),
    (155, 157),
    (157, 257),
    (257, 297),
    (297, 329),
    (329, 337),
    (337, 345),
    (345, 500),
    (500, TAR_BLOCK),
];

/// Reads a zlib stream that takes the entire text: one part with the decompressed content. `None`
/// if the text is not such a stream.
pub fn zlib(reader: &mut Reader, text: &[u8]) -> Option<Vec<Node>> {
    let content = Codec::Zlib.unpack(text, &mut reader.unpacked)?;
    let packed = reader.packed(Codec::Zlib, &content, text);
    let label = reader.label();
    Some(vec![Group::part(label, vec![packed]).into()])
}

/// Reads a gzip file: members, each of which has a header with optional fields, deflated bytes, the
/// checksum of the decompressed content, and its size. Bytes after the last member become a payload
/// (changeable bytes); `None` if there is no member.
pub fn gzip(reader: &mut Reader, text: &[u8]) -> Option<Vec<Node>> {
    series(reader, text, gzip_member)
}

/// Reads the gzip member at the beginning of `text`, and returns it with its size in bytes; `None`
/// if there is none, it is cut off, or its content cannot be decompressed.
fn gzip_member(reader: &mut Reader, text: &[u8]) -> Option<(Node, usize)> {
    let head = text
        .get(..10)
        .filter(|head| head.starts_with(b"\x1f\x8b\x08"))?;
    let flags = head[3];
    let mut bits = Vec::new();
    let mut fields = Vec::new();
    let mut at = 10;
    let until_nul = |at: usize| Some(text.get(at..)?.iter().position(|byte| *byte == 0)? + 1);
    for bit in [4, 8, 16, 2] {
        if flags & bit == 0 {
            continue;
        }
        let size = match bit {
            4 => 2 + usize::from(u16::from_le_bytes(*text.get(at..)?.first_chunk()?)),
            2 => 2,
            _ => until_nul(at)?,
        };
        let label = reader.label();
        bits.push((bit, label));
        let field = vec![Node::fixed(text.get(at..at + size)?)];
        fields.push(Node::Group(Group::part(label, field)));
        at += size;
    }
    let (content, used) = Codec::Deflate.unpack_front(text.get(at..)?, &mut reader.unpacked)?;
    let end = at + used;
    let foot = text.get(end..end + 8)?;
    let label = reader.label();
    let known = bits.iter().fold(0, |all, (bit, _)| all | bit);
    let mut nodes = vec![
        Node::fixed(&head[..3]),
        Node::Flags {
            rest: flags & !known,
            bits,
        },
        Node::fixed(&head[4..]),
    ];
    nodes.extend(fields);
    nodes.push(reader.packed_as(label, Codec::Deflate, &content, &text[at..end]));
    let check = Meaning::Check(Sum::CRC32, label);
    nodes.push(reader.number(Encoding::Little(4), check, 0, &foot[..4]));
    nodes.push(reader.number(Encoding::Little(4), Meaning::Length(label), 0, &foot[4..]));
    let member = Group::part(reader.label(), nodes);
    Some((member.into(), end + 8))
}

/// A member of a ZIP file, as its entry in the central directory describes it: the bytes of the
/// entry, the offset of the member, and the labels (ids in the file's tree) of its groups of nodes.
struct Member<'a> {
    entry: &'a [u8],
    /// Offset of the member's local header in the file, in bytes, as the entry states it.
    at: usize,
    /// True if the member was read at the offset that its entry in the central directory states.
    is_there: bool,
    labels: MemberLabels,
}

/// Labels (ids in the file's tree) of the groups of nodes of one ZIP member: the entire member, its
/// name, its bytes in the file, and their decompressed content.
#[derive(Clone, Copy)]
struct MemberLabels {
    member: Label,
    name: Label,
    data: Label,
    content: Label,
}

/// Reads a ZIP file: members, each of a local header and its bytes, and the central directory,
/// which lists them. Deflated bytes are decompressed. Bytes that are compressed by another method,
/// or damaged, become payloads (changeable bytes), and so do members that are not at the offset
/// which the directory states. `None` if the text has no end-of-central-directory record, or no
/// entry of a central directory.
pub fn zip(reader: &mut Reader, text: &[u8]) -> Option<Vec<Node>> {
    let end = (0..=text.len().checked_sub(ZIP_END)?)
        .rev()
        .take(0x1_0000)
        .find(|at| text[*at..].starts_with(b"PK\x05\x06"))?;
    let is_entry = |at: &usize| text[*at..end].starts_with(b"PK\x01\x02");
    let stated = little(text, end + 16, 4).filter(|at| *at < end && is_entry(at));
    let start = stated.or_else(|| (0..end).find(is_entry))?;
    let mut members = Vec::new();
    let mut at = start;
    while at < end && members.len() < MOST_MEMBERS && reader.count_part() {
        let Some(member) = zip_entry(reader, text, at..end) else {
            break;
        };
        at += member.entry.len();
        members.push(member);
    }
    let root = reader.label();
    let mut nodes = zip_members(reader, text, start, &mut members)?;
    let label = reader.label();
    let entries = members.iter().map(|member| match member.is_there {
        true => zip_directory_entry(reader, member, text, root),
        false => Some(Group::part(reader.label(), vec![Node::fixed(member.entry)]).into()),
    });
    let entries = entries.collect::<Option<Vec<Node>>>()?;
    nodes.push(Group::new(label, entries).into());
    if at < end {
        nodes.push(Node::payload(&text[at..end]));
    }
    nodes.extend(zip_end(reader, &text[end..], label, root));
    Some(vec![Group::new(root, nodes).into()])
}

/// Returns the tree nodes of all bytes of a ZIP file in front of its central directory, which
/// begins at offset `end`: the `members`, and payloads (changeable bytes) between them. Sets
/// `is_there` of each member that could be read. `None` if a member is outside of the text.
fn zip_members(
    reader: &mut Reader,
    text: &[u8],
    end: usize,
    members: &mut [Member<'_>],
) -> Option<Vec<Node>> {
    let mut order: Vec<&mut Member<'_>> = members.iter_mut().collect();
    order.retain(|member| text.get(member.at..end).is_some_and(is_local_header));
    order.sort_by_key(|member| member.at);
    order.dedup_by_key(|member| member.at);
    let starts: Vec<usize> = order.iter().skip(1).map(|member| member.at).collect();
    let mut nodes = Vec::new();
    let mut from = 0;
    for (member, to) in order.into_iter().zip(starts.into_iter().chain([end])) {
        if member.at > from {
            nodes.push(Node::payload(text.get(from..member.at)?));
        }
        let node = zip_member(reader, text, member, to);
        member.is_there = node.is_some();
        nodes.push(node.unwrap_or_else(|| Node::payload(&text[member.at..to])));
        from = to;
    }
    if from < end {
        nodes.push(Node::payload(&text[from..end]));
    }
    Some(nodes)
}

fn is_local_header(text: &[u8]) -> bool {
    text.starts_with(b"PK\x03\x04") && text.len() >= ZIP_HEAD
}

/// Reads the entry of the central directory of a ZIP file at the beginning of the range `place` of
/// `text`; `None` if there is none, or if it extends beyond the range.
fn zip_entry<'a>(reader: &mut Reader, text: &'a [u8], place: Range<usize>) -> Option<Member<'a>> {
    let rest = text.get(place.clone())?;
    if !rest.starts_with(b"PK\x01\x02") {
        return None;
    }
    let lengths = [28, 30, 32].map(|at| little(rest, at, 2));
    let size = lengths
        .iter()
        .try_fold(ZIP_ENTRY, |sum, length| Some(sum + (*length)?))?;
    Some(Member {
        entry: rest.get(..size)?,
        at: little(rest, 42, 4)?,
        is_there: false,
        labels: MemberLabels {
            member: reader.label(),
            name: reader.label(),
            data: reader.label(),
            content: reader.label(),
        },
    })
}

/// Reads a ZIP member, which extends to offset `to`, where the next one begins: its local header,
/// its bytes (no more than there are before `to`), and what follows them. `None` if the header
/// extends beyond `to`.
fn zip_member(reader: &mut Reader, text: &[u8], member: &Member<'_>, to: usize) -> Option<Node> {
    let labels = member.labels;
    let rest = text.get(member.at..to)?;
    let name_end = ZIP_HEAD + little(rest, 26, 2)?;
    let start = name_end + little(rest, 28, 2)?;
    let size = little(member.entry, 20, 4)?.min(rest.len().checked_sub(start)?);
    let data = &rest[start..start + size];
    let content = match little(rest, 8, 2)? {
        8 => Codec::Deflate.unpack(data, &mut reader.unpacked),
        _ => None,
    };
    // Of stored bytes, the content are the bytes themselves.
    let (inner, content_label) = match content {
        Some(content) => {
            let packed = reader.packed_as(labels.content, Codec::Deflate, &content, data);
            (vec![packed], labels.content)
        }
        None => {
            let stored = reader.payload(data);
            let group = Group::new(labels.content, stored);
            (vec![group.into()], labels.content)
        }
    };
    let extra = reader.label();
    let mut nodes = vec![Node::fixed(&rest[..14])];
    nodes.extend(zip_numbers(
        reader,
        &rest[14..26],
        labels.data,
        content_label,
    ));
    let length = |reader: &Reader, at: usize, of: Label| {
        reader.number(
            Encoding::Little(2),
            Meaning::Length(of),
            0,
            &rest[at..at + 2],
        )
    };
    nodes.push(length(reader, 26, labels.name));
    nodes.push(length(reader, 28, extra));
    nodes.push(bytes_group(labels.name, rest.get(ZIP_HEAD..name_end)?));
    nodes.push(bytes_group(extra, &rest[name_end..start]));
    nodes.push(Group::new(labels.data, inner).into());
    let after = &rest[start + size..];
    if after.len() == 16 && after.starts_with(b"PK\x07\x08") {
        nodes.push(Node::fixed(&after[..4]));
        nodes.extend(zip_numbers(reader, &after[4..], labels.data, content_label));
    } else if !after.is_empty() {
        nodes.push(Node::payload(after));
    }
    Some(Group::part(labels.member, nodes).into())
}

/// Returns the tree nodes of the checksum, the compressed size and the size of a ZIP member from
/// their 12 bytes `raw`. `data` and `content` are the labels (ids in the file's tree) of the groups
/// of nodes of the compressed and of the decompressed bytes.
fn zip_numbers(reader: &Reader, raw: &[u8], data: Label, content: Label) -> [Node; 3] {
    let number = |at: usize, meaning: Meaning| {
        reader.number(Encoding::Little(4), meaning, 0, &raw[at..at + 4])
    };
    [
        number(0, Meaning::Check(Sum::CRC32, content)),
        number(4, Meaning::Length(data)),
        number(8, Meaning::Length(content)),
    ]
}

/// Makes the group of nodes of a member's entry in the central directory of a ZIP file; it is
/// deleted together with the member. `None` if the text ends inside of the name in the member's
/// local header.
fn zip_directory_entry(
    reader: &mut Reader,
    member: &Member<'_>,
    text: &[u8],
    root: Label,
) -> Option<Node> {
    let (entry, labels) = (member.entry, member.labels);
    let name_end = ZIP_ENTRY + little(entry, 28, 2)?;
    let extra_end = name_end + little(entry, 30, 2)?;
    let name = &entry[ZIP_ENTRY..name_end];
    let known_size = little(text, member.at + 26, 2)?;
    let known = text.get(member.at + ZIP_HEAD..)?.get(..known_size)?;
    let (extra, comment) = (reader.label(), reader.label());
    let (name_label, name) = match name == known {
        true => (labels.name, Node::Copy(labels.name)),
        false => {
            let label = reader.label();
            (label, bytes_group(label, name))
        }
    };
    let mut nodes = vec![Node::fixed(&entry[..16])];
    nodes.extend(zip_numbers(
        reader,
        &entry[16..28],
        labels.data,
        labels.content,
    ));
    for (at, of) in [(28, name_label), (30, extra), (32, comment)] {
        let raw = &entry[at..at + 2];
        nodes.push(reader.number(Encoding::Little(2), Meaning::Length(of), 0, raw));
    }
    nodes.push(Node::fixed(&entry[34..42]));
    let offset = Meaning::Offset(labels.member, root);
    nodes.push(reader.number(Encoding::Little(4), offset, 0, &entry[42..ZIP_ENTRY]));
    nodes.push(name);
    nodes.push(bytes_group(extra, &entry[name_end..extra_end]));
    nodes.push(bytes_group(comment, &entry[extra_end..]));
    let label = reader.label();
    Some(Node::Group(Group {
        part: Part::With(labels.member),
        ..Group::new(label, nodes)
    }))
}

/// Returns the tree nodes of a ZIP file's end of central directory. Its numbers state the count,
/// size and offset of all entries; `directory` is the label (id in the file's tree) of the group of
/// nodes that contains these entries.
fn zip_end(reader: &mut Reader, end: &[u8], directory: Label, root: Label) -> Vec<Node> {
    let comment = reader.label();
    let number = |at: usize, width: usize, meaning: Meaning| {
        reader.number(Encoding::Little(width), meaning, 0, &end[at..at + width])
    };
    vec![
        Node::fixed(&end[..8]),
        number(8, 2, Meaning::Count(directory)),
        number(10, 2, Meaning::Count(directory)),
        number(12, 4, Meaning::Length(directory)),
        number(16, 4, Meaning::Offset(directory, root)),
        number(20, 2, Meaning::Length(comment)),
        bytes_group(comment, &end[ZIP_END..]),
    ]
}

/// Makes a group of nodes with the label `label` (id in the file's tree) that has `bytes` as its
/// payload, which passes may delete and change; an empty group for no bytes.
fn bytes_group(label: Label, bytes: &[u8]) -> Node {
    let payload = (!bytes.is_empty()).then(|| Node::payload(bytes));
    Group::new(label, payload.into_iter().collect()).into()
}

/// Reads a little-endian number of `width` bytes at offset `at`; `None` if the text is too short.
fn little(text: &[u8], at: usize, width: usize) -> Option<usize> {
    usize::try_from(Encoding::Little(width).read_at(text, at)?).ok()
}

/// Reads a tar file: files, each with a header of 512 bytes and a content that is filled up to a
/// multiple of 512 bytes. `None` if there is no such file in the text.
pub fn tar(reader: &mut Reader, text: &[u8]) -> Option<Vec<Node>> {
    series(reader, text, tar_file)
}

/// Reads the file at the beginning of the tar text, header and content, and returns it with its
/// size in bytes, a multiple of 512; `None` if there is none, or the text ends inside of it.
fn tar_file(reader: &mut Reader, text: &[u8]) -> Option<(Node, usize)> {
    let head = text
        .get(..TAR_BLOCK)
        .filter(|head| head[257..].starts_with(b"ustar"))?;
    let size = usize::try_from(Encoding::Octal(12).read(&head[124..])?.0).ok()?;
    let end = TAR_BLOCK.checked_add(size)?;
    let content = text.get(TAR_BLOCK..end)?;
    let whole = end.next_multiple_of(TAR_BLOCK);
    let filled = text.get(end..whole)?;
    let (head_label, data) = (reader.label(), reader.label());
    let sum = Meaning::Check(Sum::Bytes, head_label);
    let mut fields = Vec::new();
    for field in TAR_FIELDS {
        let raw = &head[field.0..field.1];
        match field.0 {
            TAR_SIZE => {
                let size = Meaning::Length(data);
                fields.push(reader.number(Encoding::Octal(12), size, 0, raw));
            }
            TAR_SUM => fields.push(reader.number(Encoding::Octal(7), sum, 0, raw)),
            _ => fields.extend(reader.filled(raw)),
        }
    }
    let pad = match filled.iter().all(|byte| *byte == 0) {
        true => Node::Pad {
            of: data,
            align: TAR_BLOCK,
            fill: 0,
        },
        false => Node::fixed(filled),
    };
    let content = reader.payload(content);
    let nodes = vec![
        Group::new(head_label, fields).into(),
        Group::new(data, content).into(),
        pad,
    ];
    let file = Group::part(reader.label(), nodes);
    Some((file.into(), whole))
}
