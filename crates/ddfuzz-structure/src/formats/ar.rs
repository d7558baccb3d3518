//! Reader for `ar` archives, such as static libraries and Debian packages: members, each after a
//! header of text, and the tables of symbols and of long names with which static libraries begin.

use std::ops::Range;

use super::image::rest;
use crate::node::{Group, Label, Meaning, Node, Part};
use crate::number::Encoding;
use crate::reader::Reader;

/// Size of the signature of an `ar` archive, in bytes.
const SIGNATURE: usize = 8;
/// Size, in bytes, of the header of a member of an `ar` archive.
const HEAD: usize = 60;
/// Range of bytes in the header of an `ar` member that state the size of the member.
const SIZE: Range<usize> = 48..58;
/// Range of bytes in the header of an `ar` member that hold its name.
const NAME: Range<usize> = 0..16;
/// Name field of the member that is the table of symbols of all members.
const SYMBOLS: &[u8] = b"/               ";
/// Name field of the member that is the table of names of more than 15 bytes.
const NAMES: &[u8] = b"//              ";

/// A member of an archive: its offset, the range of its content, and the label (id in the file's
/// tree) of its group of nodes.
struct Member {
    at: usize,
    content: Range<usize>,
    label: Label,
}

/// State of reading an `ar` archive: its members, and its table of long names.
struct Archive<'a> {
    text: &'a [u8],
    root: Label,
    members: Vec<Member>,
    /// The table of long names: the label (id in the file's tree) of its group of nodes, and for
    /// each name its offset in the table and the label of its group. `None` if the archive has no
    /// such table.
    names: Option<(Label, Vec<(usize, Label)>)>,
}

/// Reads an `ar` archive: members, each with a header that states its size in decimal digits, and a
/// content that is padded to an even size. `None` if there is no member.
pub fn ar(reader: &mut Reader, text: &[u8]) -> Option<Vec<Node>> {
    let mut archive = Archive {
        text,
        root: reader.label(),
        members: Vec::new(),
        names: None,
    };
    let mut at = SIGNATURE;
    while let Some(content) = content(text, at)
        && reader.count_part()
    {
        archive.members.push(Member {
            at,
            content: content.clone(),
            label: reader.label(),
        });
        at = content.end.next_multiple_of(2);
    }
    archive.names = archive.long_names(reader);
    let mut nodes = vec![Node::fixed(&text[..SIGNATURE])];
    let mut end = archive.members.first()?.at;
    for index in 0..archive.members.len() {
        let (member, after) = archive.member(reader, index);
        nodes.push(member);
        end = after;
    }
    if end < text.len() {
        nodes.push(Node::payload(&text[end..]));
    }
    Some(vec![Group::new(archive.root, nodes).into()])
}

/// Returns the range of the content of the member whose header is at offset `at`; `None` if there
/// is no header, or the text ends inside of the content.
fn content(text: &[u8], at: usize) -> Option<Range<usize>> {
    let head = text.get(at..at.checked_add(HEAD)?)?;
    let size = Encoding::Decimal(SIZE.len()).read_at(head, SIZE.start)?;
    let start = at + HEAD;
    let content = start..start.checked_add(usize::try_from(size).ok()?)?;
    let is_member = head.ends_with(b"`\n") && content.end <= text.len();
    is_member.then_some(content)
}

impl Archive<'_> {
    /// Makes a label (id in the file's tree) for each name in the table of long names, and one for
    /// the table itself; `None` if the archive has no such table.
    fn long_names(&self, reader: &mut Reader) -> Option<(Label, Vec<(usize, Label)>)> {
        let is_table = |member: &&Member| self.text[member.at..].starts_with(NAMES);
        let table = self.members.iter().find(is_table)?;
        let mut at = 0;
        let names = self.text[table.content.clone()].split_inclusive(|byte| *byte == b'\n');
        let names = names.map(|name| {
            at += name.len();
            (at - name.len(), reader.label())
        });
        let names = names.collect();
        Some((reader.label(), names))
    }

    /// Returns the tree node of the member of the archive with the index `index` (header, content
    /// and padding), which is a deletable part, and the offset after the member.
    fn member(&self, reader: &mut Reader, index: usize) -> (Node, usize) {
        let member = &self.members[index];
        let head = &self.text[member.at..member.content.start];
        let bytes = &self.text[member.content.clone()];
        let data = reader.label();
        let mut nodes = self.name(reader, &head[NAME]);
        nodes.push(Node::fixed(&head[NAME.end..SIZE.start]));
        let size = Meaning::Length(data);
        nodes.push(reader.number(Encoding::Decimal(SIZE.len()), size, 0, &head[SIZE]));
        nodes.push(Node::fixed(&head[SIZE.end..]));
        let inner = match &head[NAME] {
            SYMBOLS => reader.deeper(|reader| self.symbols(reader, bytes)),
            NAMES => reader.deeper(|reader| self.names(reader, bytes)),
            _ => None,
        };
        let inner = inner.unwrap_or_else(|| reader.payload(bytes));
        nodes.push(Group::new(data, inner).into());
        let mut end = member.content.end;
        if bytes.len().is_multiple_of(2) || self.text.get(end) == Some(&b'\n') {
            nodes.push(Node::Pad {
                of: data,
                align: 2,
                fill: b'\n',
            });
            end = end.next_multiple_of(2);
        }
        (Group::part(member.label, nodes).into(), end)
    }

    /// Returns the tree nodes of the name field in a member's header. A long name is stated as an
    /// offset in the table of long names, which is computed anew.
    fn name(&self, reader: &Reader, name: &[u8]) -> Vec<Node> {
        let place = name.strip_prefix(b"/").and_then(|place| {
            let (table, names) = self.names.as_ref()?;
            let at = Encoding::Decimal(place.len()).read_at(place, 0)?;
            let (_, label) = names.iter().find(|(start, _)| *start as u64 == at)?;
            let meaning = Meaning::Offset(*label, *table);
            Some(reader.number(Encoding::Decimal(place.len()), meaning, 0, place))
        });
        match place {
            Some(place) => vec![Node::fixed(b"/"), place],
            None => vec![Node::fixed(name)],
        }
    }

    /// Returns the tree nodes of the table of long names, each name a deletable part; `None` if the
    /// file has too many parts.
    fn names(&self, reader: &mut Reader, text: &[u8]) -> Option<Vec<Node>> {
        let (table, names) = self.names.as_ref()?;
        let starts = names.iter().map(|(start, _)| *start);
        let ends = starts.skip(1).chain([text.len()]);
        let mut nodes = Vec::with_capacity(names.len());
        for ((start, label), end) in names.iter().zip(ends) {
            let name = text.get(*start..end).filter(|_| reader.count_part())?;
            nodes.push(Group::part(*label, vec![Node::payload(name)]).into());
        }
        Some(vec![Group::new(*table, nodes).into()])
    }

    /// Returns the tree nodes of the table of symbols: the number of symbols, the offset of the
    /// member that defines each, and their names. A symbol can be deleted by itself, and is deleted
    /// together with its member. `None` if the table ends too early, an offset is not that of a
    /// member, or the file has too many parts.
    fn symbols(&self, reader: &mut Reader, text: &[u8]) -> Option<Vec<Node>> {
        let word = Encoding::Big(4);
        let count = usize::try_from(word.read_at(text, 0)?).ok()?;
        let start = count.checked_mul(4)?.checked_add(4)?;
        let offsets = text.get(4..start)?.chunks_exact(4);
        let (list, mut at) = (reader.label(), start);
        let (mut numbers, mut names) = (Vec::new(), Vec::new());
        for raw in offsets {
            let offset = usize::try_from(word.read_at(raw, 0)?).ok()?;
            let member = self.members.iter().find(|member| member.at == offset)?;
            let size = text.get(at..)?.iter().position(|byte| *byte == 0)?;
            reader.count_part().then_some(())?;
            let name = vec![Node::payload(&text[at..at + size]), Node::fixed(&[0])];
            let part = Group::part(reader.label(), name);
            numbers.push(Node::Group(Group {
                part: Part::With(part.label),
                ..Group::new(
                    reader.label(),
                    vec![reader.number(word, Meaning::Offset(member.label, self.root), 0, raw)],
                )
            }));
            names.push(Node::Group(Group {
                part: Part::With(member.label),
                ..Group::new(reader.label(), vec![part.into()])
            }));
            at += size + 1;
        }
        let mut nodes = vec![
            reader.number(word, Meaning::Count(list), 0, &text[..4]),
            Group::new(list, numbers).into(),
        ];
        nodes.extend(names);
        Some(rest(nodes, text, at))
    }
}
