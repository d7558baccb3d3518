//! Reader for SQLite databases: b-tree pages, free pages and overflow pages. A page is deleted
//! together with the only cell that refers to it.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use super::sqlite_cells::{Cell, Record, cell};
use crate::node::{Group, Label, Meaning, Node, Part};
use crate::number::Encoding;
use crate::reader::Reader;

/// Bytes with which each SQLite database begins.
pub const SIGNATURE: &[u8] = b"SQLite format 3\0";
/// Size, in bytes, of the database header, which precedes the page header in the first page.
pub const HEAD: usize = 100;
/// Offset, in the database header, of the number of pages.
pub const PAGES: usize = 28;
/// Offset, in the database header, of the number of the first trunk page of the freelist. The count
/// of free pages follows in the next four bytes.
pub const FREE: usize = 32;
/// Offset, in the database header, of a number that is not 0 if the database has pointer-map pages
/// (auto-vacuum), which state for each page where it is referred to.
pub const VACUUM: usize = 52;
/// Offset, in a page header, of the number that states where the first freeblock is.
const FREE_BLOCK: usize = 1;
/// Offset, in a page header, of the number of cells.
const CELLS: usize = 3;
/// Offset, in a page header, of the number that states where the cells begin.
const CONTENT: usize = 5;
/// Offset, in a page header, of the number of fragmented free bytes between cells.
const FRAGMENTS: usize = 7;
/// Size, in bytes, of the header of a leaf page. In an interior page, whose header is longer, the
/// page number of the right-most child follows at this offset.
pub const LEAF: usize = 8;
/// Size, in bytes, of the beginning of a freeblock: the offset of the next freeblock, and the size
/// of this freeblock.
const BLOCK: usize = 4;

/// Kind of a b-tree page: of a table or of an index, leaf or interior.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    pub is_table: bool,
    pub is_leaf: bool,
}

/// State of reading a SQLite database: its pages, their nodes, and the rows of its schema.
pub struct Database<'a> {
    pub text: &'a [u8],
    /// Size of a page in bytes.
    pub size: usize,
    /// Size of a page in bytes, without the reserved bytes at its end.
    pub usable: usize,
    /// Label (id in the file's tree) of the group of nodes of all pages except the first one.
    list: Label,
    /// Label (id in the file's tree) of the group of nodes of each page; the page with the number 1
    /// is at index 0.
    labels: Vec<Label>,
    /// For the number of each page that was read: how the page is deleted (not alone, by itself, or
    /// together with another group of nodes), and its tree nodes.
    pages: BTreeMap<usize, (Part, Vec<Node>)>,
    /// For the rowid of each row of the table that is being read, the label (id in the file's tree)
    /// of the row's cell.
    rows: HashMap<u64, Label>,
    /// Rows of the schema table (`sqlite_schema`) that were read.
    schema: Vec<SchemaRow>,
    /// Range of the labels (ids in the file's tree) of the freelist's trunk pages.
    trunks: Range<Label>,
    /// Range of the labels (ids in the file's tree) of all free pages, trunk pages included.
    free: Range<Label>,
}

/// A row of the schema table (`sqlite_schema`), which describes a table, index, view or trigger.
pub struct SchemaRow {
    /// Number of the root page of the b-tree of the table or index; 0 if there is none, as for
    /// views.
    pub page: usize,
    /// Label (id in the file's tree) of the cell that holds the row of the schema.
    pub cell: Label,
    /// Column `type` of the row: `table`, `index`, `view` or `trigger`.
    pub kind: Vec<u8>,
    /// Column `name` of the row, in lower case.
    pub name: Vec<u8>,
    /// Column `tbl_name` of the row: the table that an index or trigger belongs to.
    pub table: Vec<u8>,
    /// Labels (ids in the file's tree) of those clauses (`UNIQUE`, `PRIMARY KEY`) of a table's
    /// `CREATE TABLE` statement for which SQLite makes an automatic index, in the order of these
    /// indices.
    pub clauses: Vec<Label>,
    /// True if the row has an SQL statement. An automatic index has none, because a clause of its
    /// table's statement makes it.
    pub has_text: bool,
}

/// What the row of an index or trigger in the schema (the table of all tables) is deleted together
/// with, because the index or trigger depends on its table.
struct Owned<'a> {
    /// Label (id in the file's tree) of the group of nodes that the row is deleted together with:
    /// the clause that makes the index, or the table's row.
    with: Label,
    /// True if the row of the index or trigger can also be deleted by itself.
    is_part: bool,
    /// For an automatic index its name, and the labels (ids in the file's tree) of the first clause
    /// of its table that makes an index and of the clause that makes this index; `None` for all
    /// others.
    numbered: Option<(&'a [u8], (Label, Label))>,
}

impl SchemaRow {
    /// Returns the label (id in the file's tree) of the clause of this table's statement that makes
    /// the automatic `index`, whose name ends with the number of the clause
    /// (`sqlite_autoindex_TABLE_2`). `None` if the index has a statement of its own, or there is no
    /// such clause.
    fn clause_of(&self, index: &SchemaRow) -> Option<Label> {
        let number = index.name.rsplit(|byte| *byte == b'_').next()?;
        let number: usize = std::str::from_utf8(number).ok()?.parse().ok()?;
        let clause = self.clauses.get(number.checked_sub(1)?);
        clause.copied().filter(|_| !index.has_text)
    }
}

/// Reads a SQLite database into the nodes of its tree; `None` if its page size is not valid, or it
/// has too many pages.
pub fn sqlite(reader: &mut Reader, text: &[u8]) -> Option<Vec<Node>> {
    let (size, usable) = page_sizes(text)?;
    let mut database = Database {
        text,
        size,
        usable,
        list: reader.label(),
        labels: Vec::new(),
        pages: BTreeMap::new(),
        rows: HashMap::new(),
        schema: Vec::new(),
        trunks: 0..0,
        free: 0..0,
    };
    let count = text.len() / size;
    reader.count_parts(count).then_some(())?;
    let chain = database.free_chain(count);
    database.label_pages(reader, count, &chain);
    database.free_pages(reader, &chain);
    database.tree(reader, 1, Part::No);
    database.trees(reader);
    Some(database.nodes())
}

/// Reads the page size from the database header, and returns it with the usable size, which
/// excludes the reserved bytes at the end of each page; `None` if a size is not valid.
pub fn page_sizes(text: &[u8]) -> Option<(usize, usize)> {
    let size = match Encoding::Big(2).read_at(text, 16)? {
        1 => 1 << 16,
        size => size as usize,
    };
    let usable = size.checked_sub(usize::from(*text.get(20)?))?;
    (size.is_power_of_two() && size >= 512 && usable >= 480).then_some((size, usable))
}

impl<'a> Database<'a> {
    /// Reads the big-endian number of `width` bytes at offset `at` of the database; `None` beyond
    /// its end.
    fn number(&self, at: usize, width: usize) -> Option<usize> {
        let number = Encoding::Big(width).read_at(self.text, at)?;
        usize::try_from(number).ok()
    }

    /// Returns the bytes of the page with the number `page`, counted from 1; `None` if there is no
    /// such page.
    pub fn page(&self, page: usize) -> Option<&'a [u8]> {
        let start = page.checked_sub(1)?.checked_mul(self.size)?;
        self.text.get(start..start.checked_add(self.size)?)
    }

    /// Returns the tree node of the bytes `raw`, which state the page number `page`: a number that
    /// is computed anew, or fixed bytes if there is no such page or it is the first one.
    pub fn reference(&self, reader: &Reader, page: usize, raw: &[u8]) -> Node {
        let label = self.labels.get(page.wrapping_sub(1)).filter(|_| page > 1);
        match label {
            Some(of) => reader.number(Encoding::Big(raw.len()), Meaning::Index(*of), 2, raw),
            None => Node::fixed(raw),
        }
    }

    /// Returns the trunk pages of the freelist, each as its page number and the numbers of the free
    /// pages that it lists. `count` is the number of pages of the database.
    fn free_chain(&self, count: usize) -> Vec<(usize, Vec<usize>)> {
        let mut chain: Vec<(usize, Vec<usize>)> = Vec::new();
        let mut known = vec![false; count + 1];
        let mut next = self.number(FREE, 4).unwrap_or_default();
        let mut is_new = |page: usize| {
            let is_new = page > 1 && page <= count && !known[page];
            known
                .get_mut(page)
                .into_iter()
                .for_each(|known| *known = true);
            is_new
        };
        while is_new(next) {
            let start = (next - 1) * self.size;
            let most = self.size / 4 - 2;
            let listed = self.number(start + 4, 4).unwrap_or_default().min(most);
            let pages = (0..listed).filter_map(|index| self.number(start + 8 + 4 * index, 4));
            let pages: Vec<usize> = pages.take_while(|page| is_new(*page)).collect();
            chain.push((next, pages));
            next = self.number(start, 4).unwrap_or_default();
        }
        chain
    }

    /// Gives each of the `count` pages a label (id in the file's tree): first the trunk pages of
    /// the freelist `chain`, then the free pages that they list, then all others.
    fn label_pages(&mut self, reader: &mut Reader, count: usize, chain: &[(usize, Vec<usize>)]) {
        self.labels = vec![0; count];
        let trunks = chain.iter().map(|(page, _)| *page);
        let free = chain.iter().flat_map(|(_, pages)| pages.iter().copied());
        let first = reader.label();
        let mut last = first;
        for page in trunks.chain(free) {
            self.labels[page - 1] = last;
            last = reader.label();
        }
        self.trunks = first..first + chain.len() as Label;
        self.free = first..last;
        for label in self.labels.iter_mut().filter(|label| **label == 0) {
            *label = reader.label();
        }
    }

    /// Stores the tree nodes of the pages of the freelist `chain`. A free page is deleted together
    /// with its number in its trunk page; a trunk page, except the first one, together with the
    /// trunk page before it.
    fn free_pages(&mut self, reader: &mut Reader, chain: &[(usize, Vec<usize>)]) {
        let mut part = Part::Own;
        for (trunk, pages) in chain {
            let Some(bytes) = self.page(*trunk) else {
                continue;
            };
            let label = self.labels[trunk - 1];
            let next = Meaning::NextIndex {
                first: label + 1,
                last: self.trunks.end,
                base: 2,
            };
            let mut entries = Vec::new();
            for (index, page) in pages.iter().enumerate() {
                let entry = reader.label();
                let raw = &bytes[8 + 4 * index..12 + 4 * index];
                let nodes = vec![self.reference(reader, *page, raw)];
                entries.push(Group::part(entry, nodes).into());
                let rest = self.page(*page).unwrap_or_default();
                let nodes = self.filled(rest);
                self.pages.insert(*page, (Part::With(entry), nodes));
            }
            let list = reader.label();
            let mut nodes = vec![
                reader.number(Encoding::Big(4), next, 0, &bytes[..4]),
                reader.number(Encoding::Big(4), Meaning::Count(list), 0, &bytes[4..8]),
                Group::new(list, entries).into(),
            ];
            nodes.extend(self.filled(&bytes[8 + 4 * pages.len()..]));
            self.pages.insert(*trunk, (part, nodes));
            part = Part::With(label);
        }
    }

    /// Returns the tree nodes of a page of arbitrary `bytes`: a payload (changeable bytes) without
    /// the zeros at the end, and zeros that fill it up to the size of a page.
    fn filled(&self, bytes: &[u8]) -> Vec<Node> {
        let zeros = bytes.iter().rev().take_while(|byte| **byte == 0).count();
        let bytes = &bytes[..bytes.len() - zeros];
        let payload = (!bytes.is_empty()).then(|| Node::payload(bytes));
        payload.into_iter().chain([Node::Gap(self.size)]).collect()
    }

    /// Reads the b-trees (tables and indices) that the schema lists. Each table is read before its
    /// indices, because an entry of an index is deleted together with the row of the table to which
    /// it leads.
    fn trees(&mut self, reader: &mut Reader) {
        let mut schema = std::mem::take(&mut self.schema);
        self.join_schema(reader, &schema);
        let is_index = |row: &SchemaRow| row.kind == b"index";
        schema.sort_by(|one, other| {
            let key = |row: &'_ SchemaRow| (row.table.clone(), is_index(row));
            key(one).cmp(&key(other))
        });
        let mut table = Vec::new();
        for row in schema {
            if row.table != table || !is_index(&row) {
                self.rows.clear();
                table.clone_from(&row.table);
            }
            self.tree(reader, row.page, Part::With(row.cell));
        }
    }

    /// Changes how rows of the schema are deleted: the row of an index or trigger together with the
    /// row of its table, that of an automatic index together with the clause that makes the index.
    /// Rows with a statement of their own can also be deleted by themselves.
    fn join_schema(&mut self, reader: &mut Reader, schema: &[SchemaRow]) {
        let is_owner = |row: &&SchemaRow| row.name == row.table;
        let owners: HashMap<&[u8], &SchemaRow> = schema
            .iter()
            .filter(is_owner)
            .map(|row| (&row.name[..], row))
            .collect();
        let others = schema.iter().filter(|row| !is_owner(row));
        let owned = others.filter_map(|row| {
            let owner = owners.get(&row.table[..])?;
            let clause = owner.clause_of(row);
            let clauses = owner.clauses.first().copied().zip(clause);
            let owned = Owned {
                with: clause.unwrap_or(owner.cell),
                is_part: row.has_text,
                numbered: clauses.map(|clauses| (&row.name[..], clauses)),
            };
            Some((row.cell, owned))
        });
        let owned: HashMap<Label, Owned<'_>> = owned.collect();
        for (_, nodes) in self.pages.values_mut() {
            join_cells(reader, nodes, &owned);
        }
    }

    /// Reads the b-tree whose root is the page with the number `page`, and its overflow pages;
    /// `part` says how the root is deleted: not alone, by itself, or together with another group of
    /// nodes. If the root is the first page of the database, the b-tree is the schema table.
    fn tree(&mut self, reader: &mut Reader, page: usize, part: Part) {
        let is_schema = page == 1;
        let mut left = vec![(page, part)];
        while let Some((page, part)) = left.pop() {
            let is_free = page <= self.labels.len() && !self.pages.contains_key(&page);
            let Some(bytes) = self.page(page).filter(|_| is_free) else {
                continue;
            };
            let mut children = Vec::new();
            let nodes = self.tree_page(reader, page, bytes, is_schema, &mut children);
            let nodes = nodes.unwrap_or_else(|| self.filled(bytes));
            self.pages.insert(page, (part, nodes));
            for (child, part, is_long) in children {
                match is_long {
                    true => self.long_row(reader, child, part),
                    false => left.push((child, part)),
                }
            }
        }
    }

    /// Reads the chain of overflow pages (on which a long record continues) that begins with the
    /// page `page`. The first one is deleted as `part` says, each other one together with the page
    /// before it.
    fn long_row(&mut self, reader: &Reader, mut page: usize, mut part: Part) {
        while let Some(bytes) = self.page(page).filter(|_| page > 1)
            && !self.pages.contains_key(&page)
        {
            let next = self.number((page - 1) * self.size, 4).unwrap_or_default();
            let reference = self.reference(reader, next, &bytes[..4]);
            self.pages
                .insert(page, (part, vec![reference, Node::fixed(&bytes[4..])]));
            part = Part::With(self.labels[page - 1]);
            page = next;
        }
    }

    /// Returns the tree nodes of the b-tree page with the number `page` and the content `bytes`:
    /// header, cell pointers, free space, and cells; `None` if it is not a b-tree page. Appends to
    /// `children`, for each page to which this page refers, its number, how it is deleted, and
    /// whether it is an overflow page. `is_schema`: the page belongs to the schema table.
    fn tree_page(
        &mut self,
        reader: &mut Reader,
        page: usize,
        bytes: &[u8],
        is_schema: bool,
        children: &mut Vec<(usize, Part, bool)>,
    ) -> Option<Vec<Node>> {
        let start = if page == 1 { HEAD } else { 0 };
        let kind = kind(bytes[start])?;
        let number = |at: usize| Encoding::Big(2).read_at(bytes, start + at);
        let count = number(CELLS)? as usize;
        let head = start + LEAF + if kind.is_leaf { 0 } else { 4 };
        let front = head
            .checked_add(count * 2)
            .filter(|front| *front <= self.usable)?;
        reader.count_parts(count).then_some(())?;
        let (label, list, content) = (self.labels[page - 1], reader.label(), reader.label());
        let mut regions = Space {
            bytes: &bytes[..self.usable],
            front,
            regions: BTreeMap::new(),
        };
        let pointers = bytes[head..front].chunks(2);
        let pointers = pointers.map(|raw| {
            let at = usize::from(u16::from_be_bytes([raw[0], raw[1]]));
            let read = cell(self, reader, kind, regions.bytes, at, is_schema);
            let Some(cell) = read.filter(|cell| regions.is_free(&cell.place)) else {
                return Group::part(reader.label(), vec![Node::fixed(raw)]).into();
            };
            let of = cell.label;
            self.place_cell(kind, cell, &mut regions, children);
            let meaning = Meaning::Offset(of, label);
            let nodes = vec![reader.number(Encoding::Big(2), meaning, 0, raw)];
            Node::Group(Group {
                part: Part::With(of),
                ..Group::new(reader.label(), nodes)
            })
        });
        let pointers = pointers.collect();
        let free = regions.free_blocks(reader, number(FREE_BLOCK)? as usize, label);
        let meanings = [free, Meaning::Count(list), Meaning::Offset(content, label)];
        let mut nodes = self.page_head(reader, &bytes[..head], start, meanings);
        if !kind.is_leaf {
            let raw = &bytes[start + LEAF..head];
            let last = Encoding::Big(4).read_at(raw, 0)? as usize;
            nodes.push(self.reference(reader, last, raw));
            children.push((last, Part::With(label), false));
        }
        nodes.push(Group::new(list, pointers).into());
        let first = match number(CONTENT)? {
            0 => 1 << 16,
            first => first as usize,
        };
        nodes.extend(regions.nodes(reader, first, content, self.size));
        nodes.push(Node::fixed(&bytes[self.usable..]));
        Some(nodes)
    }

    /// Returns the tree nodes of the page header that begins at offset `start` of `bytes`, without
    /// the number of the right-most child at its end; in the first page, those of the database
    /// header precede them. `meanings` are what three numbers of the page header state: the offset
    /// of the first freeblock, the number of cells, and the offset at which the cells begin.
    fn page_head(
        &self,
        reader: &mut Reader,
        bytes: &[u8],
        start: usize,
        meanings: [Meaning; 3],
    ) -> Vec<Node> {
        let mut nodes = match start {
            0 => Vec::new(),
            _ => self.head(reader, bytes),
        };
        nodes.push(Node::fixed(&bytes[start..=start]));
        let fields = [FREE_BLOCK, CELLS, CONTENT].into_iter().zip(meanings);
        nodes.extend(fields.map(|(at, meaning)| {
            let raw = &bytes[start + at..start + at + 2];
            reader.number(Encoding::Big(2), meaning, 0, raw)
        }));
        nodes.push(Node::fixed(&bytes[start + FRAGMENTS..start + LEAF]));
        nodes
    }

    /// Adds the group of nodes of `cell` to `regions`, and the pages to which the cell refers to
    /// `children`. An entry of an index is deleted together with the table row that it refers to,
    /// any other cell by itself. Rows of tables are remembered for this by their rowid, and rows of
    /// the schema in `self.schema`.
    fn place_cell(
        &mut self,
        kind: Kind,
        cell: Cell,
        regions: &mut Space<'_>,
        children: &mut Vec<(usize, Part, bool)>,
    ) {
        let with = Part::With(cell.label);
        children.extend(cell.child.map(|child| (child, with, false)));
        children.extend(cell.rest.map(|rest| (rest, with, true)));
        let mut part = Part::Own;
        match cell.record {
            Record::Row(row) => {
                self.rows.insert(row, cell.label);
            }
            Record::Entry(row) if kind.is_leaf => {
                let row = row.and_then(|row| self.rows.get(&row));
                part = row.map_or(Part::Own, |row| Part::With(*row));
            }
            Record::Schema(row) => self.schema.push(row),
            _ => {}
        }
        let group = Group {
            part,
            ..Group::new(cell.label, cell.nodes)
        };
        regions
            .regions
            .insert(cell.place.start, (cell.place.end, group));
    }

    /// Returns the tree nodes of the database header, in which the number of pages, the first trunk
    /// page of the freelist and the number of free pages are computed anew.
    fn head(&self, reader: &mut Reader, bytes: &[u8]) -> Vec<Node> {
        let word = Encoding::Big(4);
        let mut nodes = vec![Node::fixed(&bytes[..PAGES])];
        nodes.push(reader.number(word, Meaning::Count(self.list), 1, &bytes[PAGES..FREE]));
        let next = Meaning::NextIndex {
            first: self.trunks.start,
            last: self.trunks.end,
            base: 2,
        };
        let count = Meaning::Present(self.free.start, self.free.end);
        nodes.push(reader.number(word, next, 0, &bytes[FREE..FREE + 4]));
        nodes.push(reader.number(word, count, 0, &bytes[FREE + 4..FREE + 8]));
        nodes.push(Node::fixed(&bytes[FREE + 8..HEAD]));
        nodes
    }

    /// Returns the tree nodes of the database from the nodes of its pages. Pages to which nothing
    /// refers can be deleted by themselves; no page can be deleted if the database has pointer-map
    /// pages (auto-vacuum).
    fn nodes(mut self) -> Vec<Node> {
        let count = self.labels.len();
        let is_fixed = self.number(VACUUM, 4) != Some(0);
        let mut nodes = Vec::with_capacity(count);
        for page in 1..=count {
            let bytes = self.page(page).unwrap_or_default();
            let read = self.pages.remove(&page);
            let (part, inner) = read.unwrap_or_else(|| (Part::Own, self.filled(bytes)));
            nodes.push(Node::Group(Group {
                part: if is_fixed { Part::No } else { part },
                ..Group::new(self.labels[page - 1], inner)
            }));
        }
        let rest = &self.text[count * self.size..];
        let others = nodes.split_off(1.min(nodes.len()));
        nodes.push(Group::new(self.list, others).into());
        nodes.extend((!rest.is_empty()).then(|| Node::payload(rest)));
        nodes
    }
}

/// For each cell in `nodes` that `owned` has (by its label, an id in the file's tree): makes the
/// cell be deleted together with the group [`Owned::with`], as an index is with its table. If the
/// cell must also stay deletable by itself ([`Owned::is_part`]), a new group around it is deleted
/// with that group instead.
fn join_cells(reader: &mut Reader, nodes: &mut [Node], owned: &HashMap<Label, Owned<'_>>) {
    for node in nodes {
        let Node::Group(group) = node else { continue };
        let Some(owner) = owned.get(&group.label) else {
            join_cells(reader, &mut group.nodes, owned);
            continue;
        };
        if let Some((name, clauses)) = owner.numbered {
            number_name(reader, &mut group.nodes, name, clauses);
        }
        let part = Part::With(owner.with);
        if owner.is_part {
            let around = Group {
                part,
                ..Group::new(reader.label(), Vec::new())
            };
            let cell = std::mem::replace(group, around);
            group.nodes.push(cell.into());
        } else {
            group.part = part;
        }
    }
}

/// Makes a number of the digits at the end of an automatic index's name, `name`, wherever that name
/// stands in `nodes`. The number states the position of the index's clause among the clauses of the
/// table that make an index; `clauses` are the labels (ids in the file's tree) of the first such
/// clause and of this index's clause.
fn number_name(reader: &Reader, nodes: &mut Vec<Node>, name: &[u8], clauses: (Label, Label)) {
    let mut numbered = None;
    for (at, node) in nodes.iter_mut().enumerate() {
        match node {
            Node::Group(inner) => number_name(reader, &mut inner.nodes, name, clauses),
            Node::Payload(bytes) if bytes.eq_ignore_ascii_case(name) => {
                let digits = name.iter().rev().take_while(|byte| byte.is_ascii_digit());
                let (front, number) = bytes.split_at(name.len() - digits.count());
                let meaning = Meaning::Present(clauses.0, clauses.1);
                let number = reader.number(Encoding::Digits, meaning, 1, number);
                numbered = Some((at, [Node::payload(front), number]));
            }
            _ => {}
        }
    }
    if let Some((at, parts)) = numbered {
        nodes.splice(at..=at, parts);
    }
}

/// Returns the kind of the b-tree page whose header begins with `byte`; `None` if it is not a
/// b-tree page.
pub fn kind(byte: u8) -> Option<Kind> {
    let (is_table, is_leaf) = match byte {
        2 => (false, false),
        5 => (true, false),
        10 => (false, true),
        13 => (true, true),
        _ => return None,
    };
    Some(Kind { is_table, is_leaf })
}

/// The cells and freeblocks (unused ranges) of one b-tree page, collected while the page is read.
struct Space<'a> {
    /// Usable bytes of the page: all except the reserved ones at its end.
    bytes: &'a [u8],
    /// Offset, in the page, of the end of the array of cell pointers, after which cells and
    /// freeblocks may stand.
    front: usize,
    /// For the start offset of each cell and freeblock in the page, its end offset and its group of
    /// nodes.
    regions: BTreeMap<usize, (usize, Group)>,
}

impl Space<'_> {
    /// Returns true if the range `place` of the page is behind the cell pointers and overlaps no
    /// cell or freeblock that was collected.
    fn is_free(&self, place: &Range<usize>) -> bool {
        let before = self.regions.range(..place.end).next_back();
        place.start >= self.front
            && place.end <= self.bytes.len()
            && before.is_none_or(|(_, (end, _))| *end <= place.start)
    }

    /// Makes a region of each freeblock of the page, of which the first is at offset `at` and each
    /// begins with the offset of the next one. Returns the meaning of the number in the page header
    /// that states the offset of the first freeblock, so that it stays right when blocks are
    /// deleted. `page` is the label (id in the file's tree) of the page.
    fn free_blocks(&mut self, reader: &mut Reader, mut at: usize, page: Label) -> Meaning {
        let number = |at: usize| Encoding::Big(2).read_at(self.bytes, at).unwrap_or_default();
        let mut places: Vec<Range<usize>> = Vec::new();
        while at > 0 && places.last().is_none_or(|last| last.end <= at) {
            let place = at..at + number(at + 2) as usize;
            if place.len() < BLOCK || !self.is_free(&place) || !reader.count_part() {
                break;
            }
            at = number(at) as usize;
            places.push(place);
        }
        let first = reader.label();
        let last = first + places.len() as Label;
        for _ in first..last {
            reader.label();
        }
        let next = |first: Label| Meaning::Next {
            first,
            last,
            from: page,
        };
        for (place, label) in places.into_iter().zip(first..) {
            let bytes = &self.bytes[place.clone()];
            let nodes = vec![
                reader.number(Encoding::Big(2), next(label + 1), 0, &bytes[..2]),
                reader.number(Encoding::Big(2), Meaning::Length(label), 0, &bytes[2..4]),
                Node::fixed(&bytes[4..]),
            ];
            // Without the cell after it, it could follow directly on the block before it.
            let cell = self.regions.get(&place.end);
            let group = Group {
                part: cell.map_or(Part::Own, |(_, cell)| Part::With(cell.label)),
                ..Group::new(label, nodes)
            };
            self.regions.insert(place.start, (place.end, group));
        }
        next(first)
    }

    /// Returns the tree nodes of the page after the cell pointers: unallocated space, which fills
    /// the page up to `size` bytes, and a group of nodes with the label `label` (id in the file's
    /// tree) of all cells and freeblocks. The group begins at offset `first`, which the page header
    /// states, or else at the first cell or freeblock.
    fn nodes(self, reader: &mut Reader, first: usize, label: Label, size: usize) -> Vec<Node> {
        let (bytes, front) = (self.bytes, self.front);
        let begin = self.regions.keys().next().copied().unwrap_or(bytes.len());
        let begin = if (front..=begin).contains(&first) {
            first
        } else {
            begin
        };
        let space = &bytes[front..begin];
        let zeros = space.iter().take_while(|byte| **byte == 0).count();
        let mut nodes = vec![Node::Gap(size)];
        if zeros < space.len() {
            let garbage = vec![Node::fixed(&space[zeros..])];
            nodes.push(Group::part(reader.label(), garbage).into());
        }
        let (mut inner, mut at) = (Vec::new(), begin);
        for (start, (end, group)) in self.regions {
            inner.extend((at < start).then(|| Node::fixed(&bytes[at..start])));
            inner.push(group.into());
            at = end;
        }
        inner.extend((at < bytes.len()).then(|| Node::fixed(&bytes[at..])));
        nodes.push(Group::new(label, inner).into());
        nodes
    }
}
