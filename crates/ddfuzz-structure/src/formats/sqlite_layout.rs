//! Rewrites SQLite databases compactly: puts the rows of tables and the entries of indices into as
//! few pages as they need.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::sqlite::{FREE, HEAD, Kind, LEAF, PAGES, VACUUM, kind, page_sizes};
use super::sqlite_cells::{local, root_of};
use crate::compacted::Write;
use crate::number::Encoding;

/// Maximum depth of a b-tree, in pages from its root to a leaf.
const DEEPEST: usize = 16;
/// Minimum size of a cell, in bytes; a shorter one is filled up with zeros.
const LEAST: usize = 4;

/// Offset, in the database header, of the number that states the page size.
const SIZE: usize = 16;
/// Maximum page size, in bytes, that SQLite allows.
const LARGEST: usize = 1 << 16;
/// Limit on the size of a database that is rewritten with larger pages before it is parsed: this
/// many times the size of the original; a size of [`SMALL`] bytes is allowed in any case.
const LARGER: usize = 4;
/// When a database is rewritten with larger pages, so that each row is in one page, the result may
/// always have up to this many bytes, however small the original is.
const SMALL: usize = 1 << 17;

/// A row of a table or an entry of an index, with its complete record.
struct Entry {
    /// Rowid, encoded as in a cell; empty for an entry of an index.
    row: Vec<u8>,
    record: Vec<u8>,
}

/// Rewrites the database `text` without free pages, with each b-tree in as few pages as its rows or
/// entries need, and returns the new database, which is then parsed: its pages are so large that,
/// if possible, no row needs overflow pages. Also returns a function that gives such a database,
/// after deletions in it, pages of the size in `text`. `None` if a b-tree cannot be read, or if the
/// database has pointer-map pages (auto-vacuum).
pub fn compact(text: &[u8]) -> Option<(Vec<u8>, Write)> {
    let (size, usable) = page_sizes(text)?;
    let content = Content::of(text)?;
    let mut larger = size;
    let mut taken = content.written(larger)?;
    while !content.is_local(larger - (size - usable)) && larger < LARGEST {
        larger *= 2;
        let with_larger = content.written(larger)?;
        if with_larger.len() > SMALL.max(LARGER * text.len()) {
            break;
        }
        taken = with_larger;
    }
    let write: Write = Arc::new(move |text| Content::of(text)?.written(size));
    Some((taken, write))
}

/// The content of a database: the rows and entries of all of its b-trees, whatever pages they are
/// in.
struct Content<'a> {
    head: &'a [u8],
    /// Reserved bytes at the end of a page, which hold no cells; those of the first page, used for
    /// all.
    reserved: &'a [u8],
    schema: Vec<Entry>,
    /// All b-trees except the schema table, by the numbers of their root pages: true if the b-tree
    /// is that of a table, and its rows or entries.
    trees: BTreeMap<usize, (bool, Vec<Entry>)>,
}

impl<'a> Content<'a> {
    /// Reads the content of all b-trees of the database `text`; `None` if one cannot be read, or if
    /// the database has pointer-map pages.
    fn of(text: &'a [u8]) -> Option<Content<'a>> {
        let (size, usable) = page_sizes(text)?;
        (Encoding::Big(4).read_at(text, VACUUM)? == 0).then_some(())?;
        let mut source = Source {
            text,
            size,
            usable,
            left: text.len() / size,
        };
        let (kind, schema) = source.tree(1)?;
        kind.is_table.then_some(())?;
        let mut trees = BTreeMap::new();
        for (page, _) in schema.iter().filter_map(|entry| root_of(&entry.record)) {
            let (kind, entries) = source.tree(page)?;
            trees.insert(page, (kind.is_table, entries));
        }
        Some(Content {
            head: text.get(..HEAD)?,
            reserved: text.get(usable..size)?,
            schema,
            trees,
        })
    }

    /// Returns true if no record needs overflow pages in a database whose pages have `usable`
    /// usable bytes.
    fn is_local(&self, usable: usize) -> bool {
        let is_local = |is_table: bool, entries: &[Entry]| {
            let mut sizes = entries.iter().map(|entry| entry.record.len());
            sizes.all(|size| local(usable, size, is_table) == size)
        };
        let mut trees = self.trees.values();
        is_local(true, &self.schema)
            && trees.all(|(is_table, entries)| is_local(*is_table, entries))
    }

    /// Returns the database with this content and with pages of `size` bytes; `None` if that is
    /// impossible.
    fn written(&self, size: usize) -> Option<Vec<u8>> {
        let mut target = Target {
            head: self.head,
            reserved: self.reserved,
            usable: size.checked_sub(self.reserved.len())?,
            pages: vec![Vec::new(); 1 + self.trees.len()],
        };
        let mut roots = BTreeMap::new();
        for (root, (page, (is_table, entries))) in (2..).zip(&self.trees) {
            target.tree(*is_table, entries, root)?;
            roots.insert(page, root);
        }
        let rows = self.schema.iter().map(|entry| {
            let mut record = entry.record.clone();
            if let Some((page, place)) = root_of(&record) {
                // No root has a greater number than before, so that it takes no more bytes.
                let root = *roots.get(&page)?;
                let written = Encoding::Big(place.len()).write(root as u64);
                record[place].copy_from_slice(&written);
            }
            let row = entry.row.clone();
            Some(Entry { row, record })
        });
        let schema = rows.collect::<Option<Vec<Entry>>>()?;
        target.tree(true, &schema, 1)?;
        let count = target.pages.len();
        let mut text = target.pages.concat();
        // 65,536 is written as 1.
        let stated = if size == LARGEST { 1 } else { size as u64 };
        text[SIZE..SIZE + 2].copy_from_slice(&Encoding::Big(2).write(stated));
        text[PAGES..FREE].copy_from_slice(&Encoding::Big(4).write(count as u64));
        text[FREE..FREE + 8].fill(0);
        Some(text)
    }
}

/// State of reading the content of a database: its pages, and how many more may be read.
struct Source<'a> {
    text: &'a [u8],
    size: usize,
    usable: usize,
    /// Number of pages that may still be read. A valid database has each page in one place only, so
    /// reading more pages than it has means that b-trees share pages or form a loop.
    left: usize,
}

impl<'a> Source<'a> {
    /// Returns the usable bytes of the page with the number `page`, counted from 1. `None` if there
    /// is no such page, or if as many pages were read already as the database has, because then
    /// pages refer to each other in a circle.
    fn page(&mut self, page: usize) -> Option<&'a [u8]> {
        self.left = self.left.checked_sub(1)?;
        let start = page.checked_sub(1)?.checked_mul(self.size)?;
        self.text.get(start..start.checked_add(self.usable)?)
    }

    /// Reads the b-tree whose root is the page `root`; returns its kind, and its rows or entries in
    /// order. `None` if it is too deep or cannot be read.
    fn tree(&mut self, root: usize) -> Option<(Kind, Vec<Entry>)> {
        let mut entries = Vec::new();
        let kind = self.tree_page(root, DEEPEST, &mut entries)?;
        Some((kind, entries))
    }

    /// Appends to `entries` the rows or entries of the b-tree page `page` and of its child pages,
    /// and returns the kind of the page; `None` if the b-tree below it has more than `depth`
    /// levels, or cannot be read.
    fn tree_page(&mut self, page: usize, depth: usize, entries: &mut Vec<Entry>) -> Option<Kind> {
        let depth = depth.checked_sub(1)?;
        let bytes = self.page(page)?;
        let start = if page == 1 { HEAD } else { 0 };
        let own = kind(*bytes.get(start)?)?;
        let count = Encoding::Big(2).read_at(bytes, start + 3)? as usize;
        let head = start + LEAF + if own.is_leaf { 0 } else { 4 };
        for pointer in bytes.get(head..head + 2 * count)?.chunks(2) {
            let at = usize::from(u16::from_be_bytes([pointer[0], pointer[1]]));
            let mut cell = bytes.get(at..)?;
            if !own.is_leaf {
                let child = Encoding::Big(4).read_at(cell, 0)? as usize;
                self.child(child, own, depth, entries)?;
                cell = &cell[4..];
            }
            if own.is_leaf || !own.is_table {
                entries.push(self.entry(own, cell)?);
            }
        }
        if !own.is_leaf {
            let last = Encoding::Big(4).read_at(bytes, start + LEAF)? as usize;
            self.child(last, own, depth, entries)?;
        }
        Some(own)
    }

    fn child(
        &mut self,
        page: usize,
        around: Kind,
        depth: usize,
        entries: &mut Vec<Entry>,
    ) -> Option<()> {
        let own = self.tree_page(page, depth, entries)?;
        (own.is_table == around.is_table).then_some(())
    }

    /// Reads a row of a table, or an entry of an index, from `cell`: the bytes of its cell after
    /// the number of the left child page. The rest of its record is read from overflow pages.
    /// `None` if it is cut off. `kind` is the kind of the page.
    fn entry(&mut self, kind: Kind, mut cell: &[u8]) -> Option<Entry> {
        let (stated, width) = Encoding::VarintBig.read(cell)?;
        let stated = usize::try_from(stated).ok()?;
        cell = &cell[width..];
        let mut row = Vec::new();
        if kind.is_table {
            let (_, width) = Encoding::VarintBig.read(cell)?;
            row = cell[..width].to_vec();
            cell = &cell[width..];
        }
        (stated <= self.text.len()).then_some(())?;
        let size = local(self.usable, stated, kind.is_table);
        let mut record = cell.get(..size)?.to_vec();
        let mut next = match record.len() < stated {
            true => Encoding::Big(4).read_at(cell, size)? as usize,
            false => 0,
        };
        while record.len() < stated {
            let bytes = self.page(next)?;
            next = Encoding::Big(4).read_at(bytes, 0)? as usize;
            let rest = stated - record.len();
            record.extend(bytes[4..].iter().take(rest));
        }
        Some(Entry { row, record })
    }
}

/// A cell that is to be written: the number of its left child page, if it has one, and its other
/// bytes.
struct Cell {
    child: Option<usize>,
    bytes: Vec<u8>,
}

/// A database while it is written: its header, and its pages so far.
struct Target<'a> {
    /// The database header, which precedes the page header in the first page.
    head: &'a [u8],
    /// Reserved bytes at the end of each page, which hold no cells.
    reserved: &'a [u8],
    usable: usize,
    /// The pages written so far: first the root pages of all b-trees, beginning with the schema
    /// table, then all other pages.
    pages: Vec<Vec<u8>>,
}

impl Target<'_> {
    /// Writes the b-tree of `entries`, which are rows of a table (`is_table`) or entries of an
    /// index, with the page `root` as its root. `Some` if that is done; `None` if the tree would be
    /// too deep.
    fn tree(&mut self, is_table: bool, entries: &[Entry], root: usize) -> Option<()> {
        let cells = entries.iter().map(|entry| Cell {
            child: None,
            bytes: self.cell(is_table, entry),
        });
        let mut cells: Vec<Cell> = cells.collect();
        let mut last = None;
        let front = if root == 1 { HEAD } else { 0 };
        for _ in 0..DEEPEST {
            if self.fitting(&cells, last, front) == cells.len() {
                self.pages[root - 1] = self.page(is_table, &cells, last, front);
                return Some(());
            }
            (cells, last) = self.level(is_table, cells, last)?;
        }
        None
    }

    /// Writes the `cells` of one level of a b-tree into new pages. `last` is the right-most child
    /// page of the level, `None` for leaves. Returns the level above: its cells, which refer to the
    /// new pages, and its right-most child page.
    fn level(
        &mut self,
        is_table: bool,
        mut cells: Vec<Cell>,
        last: Option<usize>,
    ) -> Option<(Vec<Cell>, Option<usize>)> {
        let mut above = Vec::new();
        // The last row of a leaf of a table is named above it; another cell between two pages moves there.
        let moves = !is_table || last.is_some();
        loop {
            let count = self.fitting(&cells, last, 0);
            if count == cells.len() {
                let bytes = self.page(is_table, &cells, last, 0);
                self.pages.push(bytes);
                return Some((above, Some(self.pages.len())));
            }
            // At least one cell is left for the last page.
            let count = count.min(cells.len().checked_sub(1 + usize::from(moves))?);
            let mut rest = cells.split_off(count).into_iter();
            let (end, bytes) = match moves {
                true => rest.next().map(|between| (between.child, between.bytes))?,
                false => (None, row_of(&cells.last()?.bytes)?),
            };
            let page = self.page(is_table, &cells, end, 0);
            self.pages.push(page);
            let child = Some(self.pages.len());
            above.push(Cell { child, bytes });
            (count > 0).then_some(())?;
            cells = rest.collect();
        }
    }

    /// Returns how many of `cells`, beginning with the first, fit into one page. `front` is the
    /// number of bytes before the page header; `last` is the page's right-most child, `None` for a
    /// leaf.
    fn fitting(&self, cells: &[Cell], last: Option<usize>, front: usize) -> usize {
        let mut left = self.usable - front - LEAF - if last.is_some() { 4 } else { 0 };
        let fits = |cell: &&Cell| {
            let size = 2 + cell.bytes.len() + cell.child.map_or(0, |_| 4);
            let fits = size <= left;
            left = left.saturating_sub(size);
            fits
        };
        cells.iter().take_while(fits).count()
    }

    /// Makes a b-tree page of `cells`, of a table if `is_table`, else of an index. It is an
    /// interior page with the right-most child `last`, or a leaf page if that is `None`. The first
    /// `front` bytes of the database header precede the page header.
    fn page(&self, is_table: bool, cells: &[Cell], last: Option<usize>, front: usize) -> Vec<u8> {
        let kind = match (is_table, last.is_some()) {
            (false, true) => 2,
            (true, true) => 5,
            (false, false) => 10,
            (true, false) => 13,
        };
        let size = |cell: &Cell| cell.bytes.len() + cell.child.map_or(0, |_| 4);
        let start = self.usable - cells.iter().map(size).sum::<usize>();
        let (mut content, mut pointers) = (Vec::new(), Vec::new());
        for cell in cells {
            pointers.extend(((start + content.len()) as u16).to_be_bytes());
            content.extend(
                cell.child
                    .iter()
                    .flat_map(|child| (*child as u32).to_be_bytes()),
            );
            content.extend(&cell.bytes);
        }
        let mut page = self.head[..front].to_vec();
        page.extend([kind, 0, 0]);
        page.extend((cells.len() as u16).to_be_bytes());
        // 65,536 is written as 0.
        page.extend((start as u16).to_be_bytes());
        page.push(0);
        page.extend(last.iter().flat_map(|last| (*last as u32).to_be_bytes()));
        page.extend(pointers);
        page.resize(start, 0);
        page.extend(content);
        page.extend(self.reserved);
        page
    }

    /// Makes the cell of a row or entry and returns its bytes; appends overflow pages for the rest
    /// of its record.
    fn cell(&mut self, is_table: bool, entry: &Entry) -> Vec<u8> {
        let record = &entry.record;
        let size = local(self.usable, record.len(), is_table);
        let mut cell = Encoding::VarintBig.write(record.len() as u64);
        cell.extend(&entry.row);
        cell.extend(&record[..size]);
        let mut rest = record[size..].chunks(self.usable - 4).peekable();
        if rest.peek().is_some() {
            cell.extend((self.pages.len() as u32 + 1).to_be_bytes());
        }
        while let Some(chunk) = rest.next() {
            let next = match rest.peek() {
                Some(_) => self.pages.len() as u32 + 2,
                None => 0,
            };
            let mut page = [&next.to_be_bytes(), chunk].concat();
            page.resize(self.usable, 0);
            page.extend(self.reserved);
            self.pages.push(page);
        }
        cell.resize(cell.len().max(LEAST), 0);
        cell
    }
}

/// Returns the rowid of a cell of a table's leaf page, encoded as in the cell; `None` if it cannot
/// be read.
fn row_of(cell: &[u8]) -> Option<Vec<u8>> {
    let (_, size) = Encoding::VarintBig.read(cell)?;
    let (_, width) = Encoding::VarintBig.read(&cell[size..])?;
    Some(cell[size..size + width].to_vec())
}
