//! Reads what stands between the objects of a PDF file: cross-reference tables, which state the
//! offsets of objects, trailers, and the number after `startxref`, which states the offset of the
//! last table.

use std::ops::Range;
use std::sync::Arc;

use super::pdf::{Marks, Object, Pdf, find_all, value_nodes};
use super::pdf_values::{Kind, Value, integer, is_space, skip_space, value};
use crate::node::{Group, Label, Meaning, Node, Part};
use crate::number::Encoding;
use crate::reader::Reader;
use crate::runs::{RunForm, Runs};

/// Number of digits of an offset in an entry of a cross-reference table.
const OFFSET: usize = 10;
/// Size of an entry of a cross-reference table, in bytes, without its end of line.
const ROW: usize = 18;

/// Maximum number of cross-reference tables, trailers and `startxref` numbers that are read in one
/// file.
const MOST_SECTIONS: usize = 1 << 10;

/// A piece of a PDF file between its objects: a cross-reference table, a trailer, or the number
/// after `startxref`.
pub enum Section {
    Table {
        place: Range<usize>,
        label: Label,
        lists: Vec<List>,
    },
    Trailer {
        place: Range<usize>,
        label: Label,
        value: Value,
    },
    /// The number after `startxref`: `at` is its value, the offset of the last cross-reference
    /// table.
    Start { place: Range<usize>, at: u64 },
}

/// A subsection of a cross-reference table: entries for objects with successive numbers.
pub struct List {
    place: Range<usize>,
    /// Object number of the first entry of the subsection.
    from: u64,
    /// Label (id in the file's tree) of the group of nodes of the first entry in the subsection;
    /// the labels of the other entries are the numbers after it, in order.
    first: Label,
    rows: Vec<Range<usize>>,
    /// True if the subsection has as many entries as the number in front of its entries states.
    is_whole: bool,
}

/// Finds the cross-reference tables, trailers and `startxref` numbers between the objects of a
/// file.
pub fn sections(reader: &mut Reader, text: &[u8], objects: &[Object]) -> Vec<Section> {
    let starts = objects.iter().map(|object| object.place.start);
    let ends = objects.iter().map(|object| object.place.end);
    let gaps = [0].into_iter().chain(ends).zip(starts.chain([text.len()]));
    let mut sections: Vec<Section> = Vec::new();
    for (start, end) in gaps.filter(|(start, end)| start < end) {
        let gap = &text[..end];
        let words = find_all(&gap[start..], b"xref").map(|at| (start + at, true));
        let trailers = find_all(&gap[start..], b"trailer").map(|at| (start + at, false));
        let mut words: Vec<(usize, bool)> = words.chain(trailers).collect();
        words.sort_unstable();
        for (at, is_table) in words {
            let is_inside = sections.last().is_some_and(|last| last.place().end > at);
            if is_inside || sections.len() >= MOST_SECTIONS {
                continue;
            }
            let section = match is_table {
                true if gap[..at].ends_with(b"start") => {
                    let number = skip_space(gap, at + 4);
                    integer(gap, number).map(|(to, end)| Section::Start {
                        place: number..end,
                        at: to,
                    })
                }
                true => table(reader, gap, at),
                false => {
                    let value = value(reader, gap, skip_space(gap, at + b"trailer".len()));
                    value.map(|value| Section::Trailer {
                        place: at..value.place.end,
                        label: reader.label(),
                        value,
                    })
                }
            };
            sections.extend(section);
        }
    }
    sections
}

/// Reads the cross-reference table whose word `xref` is at offset `at`: subsections, each a first
/// object number and a number of entries, and then the entries. `None` if there is no subsection.
fn table(reader: &mut Reader, text: &[u8], at: usize) -> Option<Section> {
    let (label, start) = (reader.label(), at);
    let mut lists = Vec::new();
    let mut at = skip_space(text, at + b"xref".len());
    while let Some((from, end)) = integer(text, at)
        && let Some((count, head)) = integer(text, skip_space(text, end))
    {
        let mut row = skip_space(text, head);
        let mut rows = Vec::new();
        while (rows.len() as u64) < count && is_row(text, row) && reader.count_part() {
            let end = row + ROW;
            let space = text[end..].iter().take_while(|byte| is_space(**byte));
            rows.push(row..end + space.count());
            row = rows[rows.len() - 1].end;
        }
        let first = reader.label();
        for _ in 1..rows.len() {
            reader.label();
        }
        lists.push(List {
            place: at..row,
            from,
            first,
            is_whole: rows.len() as u64 == count,
            rows,
        });
        at = row;
    }
    let place = start..lists.last()?.place.end;
    Some(Section::Table {
        place,
        label,
        lists,
    })
}

/// Returns true if an entry of a cross-reference table begins at offset `at`: ten digits, a blank,
/// and `n` or `f` at its end.
fn is_row(text: &[u8], at: usize) -> bool {
    text.get(at..at + ROW).is_some_and(|row| {
        let (offset, rest) = row.split_at(OFFSET);
        offset.iter().all(u8::is_ascii_digit) && rest[0] == b' ' && matches!(rest[7], b'n' | b'f')
    })
}

impl Section {
    pub fn place(&self) -> &Range<usize> {
        match self {
            Section::Table { place, .. }
            | Section::Trailer { place, .. }
            | Section::Start { place, .. } => place,
        }
    }

    /// Returns the dictionary of this section if it is the trailer; `None` for all other sections.
    pub fn trailer(&self) -> Option<&Value> {
        match self {
            Section::Trailer { value, .. } => Some(value),
            _ => None,
        }
    }

    /// Returns the tree nodes of this section of a PDF file (a `startxref` number, a trailer, or a
    /// cross-reference table). In them, offsets of objects and tables are computed anew whenever
    /// the file is written; a trailer and a table can each be deleted as a whole.
    pub fn nodes(&self, pdf: &Pdf<'_>, reader: &mut Reader) -> Vec<Node> {
        let text = pdf.text;
        match self {
            Section::Start { place, at } => {
                let bytes = &text[place.clone()];
                vec![match pdf.table_at(*at) {
                    Some(meaning) => reader.number(Encoding::Digits, meaning, 0, bytes),
                    None => Node::payload(bytes),
                }]
            }
            Section::Trailer {
                place,
                label,
                value,
            } => {
                let mut marks = Marks::default();
                for name in [&b"Prev"[..], b"XRefStm"] {
                    if let Some(item) = value.entry(text, name)
                        && let Kind::Number(at) = item.value.kind
                        && let Some(meaning) = pdf.table_at(at)
                    {
                        marks.numbers.insert(item.value.place.start, meaning);
                    }
                }
                let mut nodes = vec![Node::fixed(&text[place.start..value.place.start])];
                nodes.extend(value_nodes(reader, text, value, &marks));
                vec![Group::part(*label, nodes).into()]
            }
            Section::Table {
                place,
                label,
                lists,
            } => {
                let first = lists.first().map_or(place.end, |list| list.place.start);
                let mut nodes = vec![Node::fixed(&text[place.start..first])];
                nodes.extend(lists.iter().flat_map(|list| list.nodes(pdf, reader)));
                vec![Group::part(*label, nodes).into()]
            }
        }
    }
}

impl Pdf<'_> {
    /// Returns the meaning of a number whose value is `at`, the offset of the cross-reference table
    /// or of the object that begins at this offset; `None` if neither does.
    fn table_at(&self, at: u64) -> Option<Meaning> {
        let tables = self.sections.iter().filter_map(|section| match section {
            Section::Table { place, label, .. } if place.start as u64 == at => Some(*label),
            _ => None,
        });
        let label = tables.into_iter().next().or_else(|| self.object_at(at))?;
        Some(Meaning::Offset(label, self.root))
    }
}

impl List {
    /// Returns the tree nodes of a subsection of a cross-reference table: its head (first object
    /// number, number of entries) and its entries. An entry is deleted together with the object
    /// whose offset it states, or by itself if there is no such object. The head is computed anew;
    /// where entries in the middle were deleted, the rest gets a head of its own. If the head does
    /// not agree with the entries, none of them can be deleted.
    fn nodes(&self, pdf: &Pdf<'_>, reader: &mut Reader) -> Vec<Node> {
        let text = pdf.text;
        let head = self.rows.first().map_or(self.place.end, |row| row.start);
        let head = &text[self.place.start..head];
        let count = self.rows.len();
        let stated = format!("{} {}", self.from, count);
        let end = head
            .strip_prefix(stated.as_bytes())
            .filter(|_| self.is_whole);
        let mut nodes = Vec::new();
        if end.is_none() || count == 0 {
            nodes.push(Node::fixed(head));
        }
        let numbers: Arc<[u64]> = (0..count as u64)
            .map(|row| self.from.wrapping_add(row))
            .collect();
        for (index, place) in self.rows.iter().enumerate() {
            let (offset, rest) = text[place.clone()].split_at(OFFSET);
            let mut inner: Vec<Node> = Vec::new();
            inner.extend(end.map(|end| {
                Node::Runs(Runs {
                    first: self.first,
                    numbers: numbers.clone(),
                    form: RunForm::Head(index, end.into()),
                })
            }));
            let at = Encoding::Zeros(OFFSET).read_at(offset, 0);
            let object = at
                .filter(|_| rest[7] == b'n')
                .and_then(|at| pdf.object_at(at));
            inner.push(match object {
                Some(of) => {
                    let meaning = Meaning::Offset(of, pdf.root);
                    reader.number(Encoding::Zeros(OFFSET), meaning, 0, offset)
                }
                None => Node::fixed(offset),
            });
            inner.push(Node::fixed(rest));
            nodes.push(Node::Group(Group {
                part: match (end, object) {
                    (None, _) => Part::No,
                    (_, Some(of)) => Part::With(of),
                    (_, None) => Part::Own,
                },
                ..Group::new(self.first + index as Label, inner)
            }));
        }
        nodes
    }
}
