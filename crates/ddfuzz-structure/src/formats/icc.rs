//! Reader for ICC color profiles: a header, and a tag table whose entries lead to data.

use super::regions::Regions;
use crate::node::{Group, Meaning, Node};
use crate::number::Encoding;
use crate::reader::Reader;

/// Size of the header of an ICC profile, in bytes.
const HEAD: usize = 128;
/// Size of an entry of the tag table, in bytes.
const ENTRY: usize = 12;

/// Reads an ICC profile: its size, the other fields of its header, and the tag table, whose entries
/// state the offset and size of their data. Several tags may have the same data. `None` if the text
/// ends before the profile or its tag table does.
pub fn icc(reader: &mut Reader, text: &[u8]) -> Option<Vec<Node>> {
    let number =
        |at: usize| -> Option<usize> { usize::try_from(Encoding::Big(4).read_at(text, at)?).ok() };
    let size = number(0)?;
    let profile = text.get(..size)?;
    let count = number(HEAD)?;
    let front = HEAD + 4 + count.checked_mul(ENTRY)?;
    let entries = profile.get(HEAD + 4..front)?;
    let (root, list) = (reader.label(), reader.label());
    let mut data = Regions::default();
    let mut places = Vec::with_capacity(entries.len() / ENTRY);
    for at in (HEAD + 4..front).step_by(ENTRY) {
        let start = number(at + 4)?;
        let place = start..start.checked_add(number(at + 8)?)?;
        data.refer(reader, place.clone(), front, size);
        places.push(place);
    }
    let mut tags = Vec::with_capacity(places.len());
    for (entry, place) in entries.chunks_exact(ENTRY).zip(&places) {
        reader.count_part().then_some(())?;
        let (of, part) = data.record(place);
        let mut nodes = vec![Node::fixed(&entry[..4])];
        match of {
            Some(of) => {
                let numbers = [(4, Meaning::Offset(of, root)), (8, Meaning::Length(of))];
                nodes.extend(numbers.map(|(at, meaning)| {
                    reader.number(Encoding::Big(4), meaning, 0, &entry[at..at + 4])
                }));
            }
            None => nodes.push(Node::fixed(&entry[4..])),
        }
        tags.push(Node::Group(Group {
            part,
            ..Group::new(reader.label(), nodes)
        }));
    }
    let mut nodes = vec![
        reader.number(Encoding::Big(4), Meaning::Length(root), 0, &text[..4]),
        Node::fixed(&text[4..HEAD]),
        reader.number(
            Encoding::Big(4),
            Meaning::Count(list),
            0,
            &text[HEAD..HEAD + 4],
        ),
        Group::new(list, tags).into(),
    ];
    nodes.extend(data.nodes(text, front, size)?);
    let mut whole = vec![Group::new(root, nodes).into()];
    whole.extend((size < text.len()).then(|| Node::payload(&text[size..])));
    Some(whole)
}
