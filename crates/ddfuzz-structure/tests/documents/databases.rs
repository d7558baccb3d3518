//! Databases of SQLite: pages, cells and free space stay as they must be.

use std::sync::Arc;

use ddfuzz_delta::{Document, Structure};
use ddfuzz_structure::structure_named;

use crate::open;

/// Size of a page.
const PAGE: usize = 512;

/// Number in an integer of one to eight bytes.
fn big(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .fold(0, |number, byte| number << 8 | usize::from(*byte))
}

/// A record of columns: `None` for an integer of a byte, whose value is the only byte.
fn record(columns: &[(bool, &[u8])]) -> Vec<u8> {
    let kind = |(is_text, value): &(bool, &[u8])| match is_text {
        true => 13 + 2 * value.len() as u8,
        false => value.len() as u8,
    };
    let mut record = vec![1 + columns.len() as u8];
    record.extend(columns.iter().map(kind));
    record.extend(columns.iter().flat_map(|column| column.1));
    record
}

/// A row of a table.
fn row(number: u8, columns: &[(bool, &[u8])]) -> Vec<u8> {
    let record = record(columns);
    [&[record.len() as u8, number], &record[..]].concat()
}

/// A page with cells behind `front`, of this kind and with the head's last number, if it has one.
fn page(front: &[u8], kind: u8, last: Option<u8>, cells: &[Vec<u8>]) -> Vec<u8> {
    let mut page = front.to_vec();
    let content: usize = cells.iter().map(Vec::len).sum();
    let mut at = PAGE - content;
    page.extend([kind, 0, 0, 0, cells.len() as u8]);
    page.extend((at as u16).to_be_bytes());
    page.push(0);
    page.extend(last.iter().flat_map(|last| u32::from(*last).to_be_bytes()));
    for cell in cells {
        page.extend((at as u16).to_be_bytes());
        at += cell.len();
    }
    page.resize(PAGE - content, 0);
    page.extend(cells.concat());
    page
}

/// A database with a table of two pages below one, an index of it, and a free page that lists another.
pub fn database() -> Vec<u8> {
    let mut head = b"SQLite format 3\0".to_vec();
    head.extend([
        2, 0, 1, 1, 0, 64, 32, 32, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 6, 0, 0, 0, 2,
    ]);
    head.extend([0, 0, 0, 1, 0, 0, 0, 4]);
    head.resize(56, 0);
    head.extend([0, 0, 0, 1]);
    head.resize(100, 0);
    let table = b"CREATE TABLE t(a)";
    let index = b"CREATE INDEX i ON t(a)";
    let schema = [
        row(
            1,
            &[
                (true, b"table"),
                (true, b"t"),
                (true, b"t"),
                (false, &[2]),
                (true, table),
            ],
        ),
        row(
            2,
            &[
                (true, b"index"),
                (true, b"i"),
                (true, b"t"),
                (false, &[5]),
                (true, index),
            ],
        ),
    ];
    let names = [b"one", b"two", b"six", b"ten"];
    let rows: Vec<Vec<u8>> = (1..=4)
        .map(|number| row(number, &[(true, names[number as usize - 1])]))
        .collect();
    let mut order = [1, 2, 3, 4];
    order.sort_by_key(|number| names[number - 1]);
    let entries = order.map(|number| {
        let record = record(&[(true, names[number - 1]), (false, &[number as u8])]);
        [&[record.len() as u8], &record[..]].concat()
    });
    let mut trunk = [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 7].to_vec();
    trunk.resize(PAGE, 0);
    [
        page(&head, 13, None, &schema),
        page(&[], 5, Some(4), &[vec![0, 0, 0, 3, 2]]),
        page(&[], 13, None, &rows[..2]),
        page(&[], 13, None, &rows[2..]),
        page(&[], 10, None, &entries),
        trunk,
        vec![0; PAGE],
    ]
    .concat()
}

/// Returns offset, kind and cells of a page, each from its offset on.
fn cells(text: &[u8], number: usize) -> (u8, Vec<&[u8]>, usize) {
    let page = &text[(number - 1) * PAGE..number * PAGE];
    let head = if number == 1 { &page[100..] } else { page };
    let count = big(&head[3..5]);
    let start = if matches!(head[0], 2 | 5) { 12 } else { 8 };
    let pointers = head[start..start + 2 * count].chunks(2);
    let cells: Vec<&[u8]> = pointers.map(|at| &page[big(at)..]).collect();
    let first = big(&head[5..7]);
    assert!(
        cells
            .iter()
            .all(|cell| PAGE - cell.len() >= first && cell.len() >= 4)
    );
    (head[0], cells, big(&head[8..12]))
}

/// Returns the rows of the table at a page: number and text.
fn rows(text: &[u8], number: usize) -> Vec<(u8, Vec<u8>)> {
    let (kind, cells, last) = cells(text, number);
    if kind == 13 {
        let row = |cell: &&[u8]| {
            let size = usize::from(cell[0]);
            (cell[1], cell[4..2 + size].to_vec())
        };
        return cells.iter().map(row).collect();
    }
    let children = cells.iter().map(|cell| big(&cell[..4]));
    children
        .chain([last])
        .flat_map(|child| rows(text, child))
        .collect()
}

#[test]
fn what_is_left_of_a_database_is_one() {
    let text = database();
    assert_eq!(rows(&text, 2).len(), 4);
    let document = open(&text).expect("a document");
    let (mut left, mut pages) = (Vec::new(), Vec::new());
    for part in 0..document.parts().len() {
        let fewer = document.without(&[part]).text();
        let count = big(&fewer[28..32]);
        assert_eq!(fewer.len(), count * PAGE, "without {part}");
        pages.push(count);
        let free = big(&fewer[36..40]);
        assert_eq!(free > 0, big(&fewer[32..36]) > 0, "without {part}");
        let (_, schema, _) = cells(&fewer, 1);
        // Kinds of five columns: the fourth is the first page of the tree.
        let mut roots = schema.iter().map(|cell| {
            let texts = [cell[3], cell[4], cell[5]].map(|kind| usize::from(kind - 13) / 2);
            (cell[8], cell[8 + texts.iter().sum::<usize>()])
        });
        let table = roots
            .find(|(kind, _)| *kind == b't')
            .map(|(_, root)| rows(&fewer, root.into()));
        let index = roots
            .find(|(kind, _)| *kind == b'i')
            .map(|(_, root)| cells(&fewer, root.into()).1);
        if let (Some(table), Some(index)) = (table, index) {
            left.push((table.len(), index.len()));
        }
    }
    // One row with its entry; the first page of the table with the entries of its rows.
    for counts in [(3, 3), (2, 2)] {
        assert!(left.contains(&counts), "{left:?}");
    }
    // The table with its index; the free pages; the free page that is listed, or the index.
    for count in [3, 5, 6] {
        assert!(pages.contains(&count), "{pages:?}");
    }
}

#[test]
fn texts_in_a_database_become_shorter() {
    let text = database();
    let document = open(&text).expect("a document");
    let mut payloads = document.payloads();
    let place = payloads
        .iter()
        .position(|payload| payload[..] == b"six"[..])
        .expect("a text");
    payloads[place] = payloads[place][..1].into();
    let fewer = document.with(&payloads).text();
    assert_eq!(fewer.len(), text.len());
    let texts: Vec<Vec<u8>> = rows(&fewer, 2).into_iter().map(|row| row.1).collect();
    assert_eq!(texts, [&b"one"[..], b"two", b"s", b"ten"]);
}

/// The cell of a row of the schema, of the table `l` with its tree at page 5, whose statement goes
/// on in page 4; and that page.
fn long_row() -> (Vec<u8>, Vec<u8>) {
    let statement = [&b"CREATE TABLE l(a)"[..], &[b' '; 600]].concat();
    // Kinds of five columns: the last one, 13 + 2 * 617, takes two bytes.
    let kinds = [7, 23, 15, 15, 1, 0x89, 0x5f];
    let long = [&kinds[..], b"tablell\x05", &statement].concat();
    // What a page of 512 bytes takes of so long a record, and the page with the rest.
    let local = 39 + (long.len() - 39) % 508;
    let head = [0x80 | (long.len() >> 7) as u8, (long.len() & 0x7f) as u8, 4];
    let cell = [&head[..], &long[..local], &[0, 0, 0, 4]].concat();
    let mut rest = [&[0; 4][..], &long[local..]].concat();
    rest.resize(PAGE, 0);
    (cell, rest)
}

/// Statement that makes a table with one index.
const TABLE: &[u8] = b"CREATE TABLE t(a UNIQUE)";

/// A database with a table, which the statement `table` makes, whose index, with the name `index`,
/// has no statement of its own, with a trigger on it, and with a table whose statement goes on in a
/// page of its own.
fn schema_database(index: &'static [u8], table: &'static [u8]) -> Vec<u8> {
    let database = database();
    let (cell, rest) = long_row();
    let text = |text: &'static [u8]| (true, text);
    let schema = [
        row(
            1,
            &[
                text(b"table"),
                text(b"t"),
                text(b"t"),
                (false, &[2]),
                text(table),
            ],
        ),
        // No kind of text, but none.
        {
            let mut auto = row(
                2,
                &[
                    text(b"index"),
                    text(index),
                    text(b"T"),
                    (false, &[3]),
                    text(b""),
                ],
            );
            auto[7] = 0;
            auto
        },
        row(
            3,
            &[
                text(b"trigger"),
                text(b"g"),
                text(b"t"),
                (false, &[0]),
                text(b"CREATE TRIGGER g"),
            ],
        ),
        cell,
    ];
    let mut head = database[..100].to_vec();
    head[28..32].copy_from_slice(&[0, 0, 0, 5]);
    head[32..40].fill(0);
    [
        page(&head, 13, None, &schema),
        page(&[], 13, None, &[row(1, &[text(b"one")])]),
        page(&[], 10, None, &[vec![5, 3, 17, 1, b'o', b'n', 1]]),
        rest,
        page(&[], 13, None, &[]),
    ]
    .concat()
}

#[test]
fn what_belongs_to_a_table_goes_with_it() {
    let text = schema_database(b"auto", TABLE);
    let document = open(&text).expect("a document");
    assert_eq!(document.text(), text);
    let mut left = Vec::new();
    for part in 0..document.parts().len() {
        let fewer = document.without(&[part]).text();
        let (_, schema, _) = cells(&fewer, 1);
        left.push((schema.len(), fewer.len() / PAGE));
    }
    // Without the table: its index, its trigger and both trees are gone. Without the other one: its
    // tree and the page with the rest of its statement.
    for counts in [(1, 3), (3, 3), (3, 5)] {
        assert!(left.contains(&counts), "{left:?}");
    }
    // The index without a statement does not go by itself.
    assert!(!left.contains(&(3, 4)), "{left:?}");
}

#[test]
fn an_index_goes_with_the_clause_that_makes_it() {
    let text = schema_database(b"sqlite_autoindex_t_1", TABLE);
    let document = open(&text).expect("a document");
    let without = (0..document.parts().len()).map(|part| document.without(&[part]).text());
    let has = |text: &[u8], one: &[u8]| text.windows(one.len()).any(|part| part == one);
    let mut clause = without.filter(|fewer| has(fewer, b"CREATE TABLE t(a)"));
    let fewer = clause.next().expect("the clause is a part");
    assert_eq!((cells(&fewer, 1).1.len(), fewer.len() / PAGE), (3, 4));
    assert_eq!(rows(&fewer, 2), rows(&text, 2));
}

#[test]
fn an_index_has_the_number_of_its_clause() {
    let text = schema_database(
        b"sqlite_autoindex_T_2",
        b"CREATE TABLE t(a UNIQUE,b UNIQUE)",
    );
    let document = open(&text).expect("a document");
    assert_eq!(document.text(), text);
    let without = (0..document.parts().len()).map(|part| document.without(&[part]).text());
    let has = |text: &[u8], one: &[u8]| text.windows(one.len()).any(|part| part == one);
    let mut clause = without.filter(|fewer| has(fewer, b"CREATE TABLE t(a,b UNIQUE)"));
    let fewer = clause.next().expect("the clause is a part");
    assert!(has(&fewer, b"sqlite_autoindex_T_1"));
    assert_eq!((cells(&fewer, 1).1.len(), fewer.len() / PAGE), (4, 5));
}

/// Databases of all that the writer reads: trees of several pages, and statements that take several pages.
pub fn samples() -> [Vec<u8>; 3] {
    let long = schema_database(b"sqlite_autoindex_t_1", TABLE);
    [database(), long, large_database()]
}

/// Returns the document of a database whose pages are full.
fn compact(text: &[u8]) -> Option<Arc<dyn Document>> {
    match structure_named("sqlite") {
        Some(Structure::Format(format)) => format.compact(text),
        _ => None,
    }
}

/// Checks that no page below another one is without cells, and that the pages of all trees are there.
fn assert_filled(text: &[u8], page: usize, is_root: bool) {
    let (kind, cells, last) = cells(text, page);
    assert!(is_root || !cells.is_empty(), "page {page} is empty");
    if matches!(kind, 2 | 5) {
        let children = cells.iter().map(|cell| big(&cell[..4]));
        children
            .chain([last])
            .for_each(|child| assert_filled(text, child, false));
    }
}

#[test]
fn a_database_is_written_anew_with_full_pages() {
    let text = database();
    let document = compact(&text).expect("a document");
    let written = document.text();
    // Schema, table and index: two leaves are one, and there is no free page.
    assert_eq!(written.len(), 3 * PAGE);
    assert_eq!((big(&written[28..32]), &written[32..40]), (3, &[0; 8][..]));
    assert_eq!(rows(&written, 2), rows(&text, 2));
    for part in 0..document.parts().len() {
        let fewer = document.without(&[part]).text();
        assert_eq!(fewer.len(), big(&fewer[28..32]) * PAGE, "without {part}");
        for page in 1..=big(&fewer[28..32]) {
            assert_filled(&fewer, page, true);
        }
    }
    // A page that is not what the tree says: the file cannot be written anew.
    let mut damaged = text;
    damaged[3 * PAGE] = 10;
    assert!(open(&damaged).is_some() && compact(&damaged).is_none());
}

/// A database with a table of many pages.
fn large_database() -> Vec<u8> {
    let mut text = schema_database(b"auto", TABLE);
    // A chain of pages, each with one child, whose rows take several pages, also of their own.
    let count = 120;
    let first = text.len() / PAGE + 1;
    text[PAGE..2 * PAGE].copy_from_slice(&page(&[], 5, Some((first + count - 1) as u8), &{
        let below = |at: usize| vec![0, 0, 0, (first + at) as u8, at as u8 + 1];
        (0..24).map(below).collect::<Vec<_>>()
    }));
    let value = [b'x'; 50];
    for at in 0..count {
        let number = at as u8 + 1;
        text.extend(page(&[], 13, None, &[row(number, &[(true, &value)])]));
    }
    text[28..32].copy_from_slice(&((first + count - 1) as u32).to_be_bytes());
    text
}

#[test]
fn a_large_table_has_pages_above_its_leaves() {
    let text = large_database();
    let document = compact(&text).expect("a document");
    let written = document.text();
    assert!(
        written.len() < text.len() / 4,
        "{} of {}",
        written.len(),
        text.len()
    );
    assert_eq!(rows(&written, 2), rows(&text, 2));
    assert_filled(&written, 1, true);
    assert_filled(&written, 2, true);
}

#[test]
fn a_statement_that_takes_several_pages_becomes_shorter() {
    let text = schema_database(b"auto", TABLE);
    let document = compact(&text).expect("a document");
    let mut payloads = document.payloads();
    let long = payloads
        .iter_mut()
        .find(|payload| payload.starts_with(b"CREATE TABLE l"));
    let long = long.expect("the whole statement");
    assert_eq!(long.len(), 617);
    *long = long[..17].into();
    let written = document.with(&payloads).text();
    // The page with its rest is gone.
    assert_eq!(written.len(), document.text().len() - PAGE);
    let (_, schema, _) = cells(&written, 1);
    assert!(schema[3].ends_with(b"CREATE TABLE l(a)"));
    assert_filled(&written, 1, true);
}
