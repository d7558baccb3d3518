//! Fonts that place marks on letters: the tables GPOS and GDEF, whose records go together with the
//! glyphs that they are of.

use crate::samples::sfnt_of;
use crate::searches::reduce;

fn words(words: &[usize]) -> Vec<u8> {
    let bytes = words.iter().map(|word| (*word as u16).to_be_bytes());
    bytes.collect::<Vec<_>>().concat()
}

/// An anchor: a place of a glyph.
fn anchor(x: usize) -> Vec<u8> {
    words(&[1, x, 7])
}

/// A table of `items` after a head whose words `front` precede their offsets.
fn table(front: &[usize], counts: &[usize], items: &[Vec<u8>]) -> Vec<u8> {
    let mut at = 2 * (front.len() + counts.len() + items.len());
    let mut head = front.to_vec();
    for item in items {
        head.push(at);
        at += item.len();
    }
    head.extend(counts);
    [words(&head), items.concat()].concat()
}

/// A subtable that places the marks 40 and 41 on the glyphs 10 to 15 and 20 to 22, the latter at `x`.
fn subtable(x: usize) -> Vec<u8> {
    let marks = words(&[1, 2, 40, 41]);
    let bases = words(&[2, 2, 10, 15, 0, 20, 22, 6]);
    let mark_array = {
        let anchors = [anchor(1), anchor(2)];
        let at = 2 + 2 * 4;
        [words(&[2, 0, at, 0, at + 6]), anchors.concat()].concat()
    };
    let base_array = {
        let anchors: Vec<Vec<u8>> = (0..9).map(|base| anchor(x + base)).collect();
        let offsets: Vec<usize> = (0..9).map(|base| 2 + 2 * 9 + 6 * base).collect();
        [words(&[9]), words(&offsets), anchors.concat()].concat()
    };
    let starts = [12, 20, 20 + bases.len() - 4 + 4];
    let arrays = [starts[2], starts[2] + mark_array.len()];
    let head = words(&[1, starts[0], starts[1], 1, arrays[0], arrays[1]]);
    [head, marks, bases, mark_array, base_array].concat()
}

/// A font with two lookups, the second of which has two subtables.
fn font() -> Vec<u8> {
    let subtables = |xs: &[usize]| {
        let parts: Vec<Vec<u8>> = xs.iter().map(|x| subtable(*x)).collect();
        table(&[4, 0, xs.len()], &[], &parts)
    };
    let lookups = table(&[2], &[], &[subtables(&[100]), subtables(&[200, 300])]);
    let feature = words(&[0, 2, 0, 1]);
    let features = [&words(&[1])[..], b"mark", &words(&[8]), &feature].concat();
    let language = words(&[0, 0xffff, 1, 0]);
    let script = [words(&[4, 0]), language].concat();
    let scripts = [&words(&[1])[..], b"latn", &words(&[8]), &script].concat();
    let starts = [10, 10 + scripts.len(), 10 + scripts.len() + features.len()];
    let head = words(&[1, 0, starts[0], starts[1], starts[2]]);
    let positions = [head, scripts, features, lookups].concat();
    let classes = words(&[1, 10, 5, 1, 1, 1, 3, 3]);
    // One glyph with one caret, and the coverage of both.
    let carets = words(&[14, 1, 6, 1, 4, 1, 50, 1, 1, 12]);
    let definitions = [
        words(&[1, 0, 12, 0, 12 + classes.len(), 0]),
        classes,
        carets,
    ]
    .concat();
    sfnt_of(
        b"\0\x01\0\0",
        &[(b"GDEF", &definitions), (b"GPOS", &positions)],
    )
}

/// A table of a font, in which offsets are followed.
#[derive(Clone, Copy)]
struct Table<'a>(&'a [u8]);

impl<'a> Table<'a> {
    fn of(font: &'a [u8], name: &[u8]) -> Option<Table<'a>> {
        let count = Table(font).word(4)?;
        let mut entries = font.get(12..12 + 16 * count)?.chunks(16);
        let entry = Table(entries.find(|entry| entry.starts_with(name))?);
        let (at, size) = (entry.word(10)?, entry.word(14)?);
        Some(Table(font.get(at..at + size)?))
    }

    fn word(self, at: usize) -> Option<usize> {
        let word = u16::from_be_bytes(*self.0.get(at..)?.first_chunk()?);
        Some(usize::from(word))
    }

    /// The table whose offset is at `at`.
    fn to(self, at: usize) -> Option<Table<'a>> {
        let offset = self.word(at).filter(|offset| *offset > 0)?;
        Some(Table(self.0.get(offset..)?))
    }

    /// The index of a glyph in a coverage.
    fn covered(self, glyph: usize) -> Option<usize> {
        let count = self.word(2)?;
        match self.word(0)? {
            1 => (0..count).find(|index| self.word(4 + 2 * index) == Some(glyph)),
            _ => (0..count).find_map(|index| {
                let at = 4 + 6 * index;
                let (first, last) = (self.word(at)?, self.word(at + 2)?);
                let is_inside = (first..=last).contains(&glyph);
                is_inside.then(|| Some(self.word(at + 4)? + glyph - first))?
            }),
        }
    }
}

/// Returns where the mark `mark` is placed on `base` by each subtable of the lookups of the first
/// feature of the first script.
fn places(font: &[u8], base: usize, mark: usize) -> Option<Vec<(usize, usize)>> {
    let positions = Table::of(font, b"GPOS")?;
    let script = positions.to(4)?.to(6)?;
    let language = script.to(0)?;
    let feature = (0..language.word(4)?).next().and(language.word(6))?;
    let features = positions.to(6)?;
    let is_there = feature < features.word(0)?;
    let feature = is_there.then(|| features.to(6 + 6 * feature))??;
    let lookups = (0..feature.word(2)?).filter_map(|index| {
        let lookup = feature.word(4 + 2 * index)?;
        let lookups = positions.to(8)?;
        (lookup < lookups.word(0)?).then(|| lookups.to(2 + 2 * lookup))?
    });
    let subtables = lookups.flat_map(|lookup| {
        let count = lookup.word(4).unwrap_or_default();
        (0..count).filter_map(move |index| lookup.to(6 + 2 * index))
    });
    let places = subtables.filter_map(|subtable| {
        let marks = subtable.to(8)?;
        let on = marks.to(2 + 4 * subtable.to(2)?.covered(mark)? + 2)?;
        let bases = subtable.to(10)?;
        let at = bases.to(2 + 2 * subtable.to(4)?.covered(base)?)?;
        Some((on.word(2)?, at.word(2)?))
    });
    Some(places.collect())
}

/// Returns the class of a glyph.
fn class(font: &[u8], glyph: usize) -> Option<usize> {
    let classes = Table::of(font, b"GDEF")?.to(4)?;
    let index = glyph.checked_sub(classes.word(2)?)?;
    (classes.word(0)? == 1 && index < classes.word(4)?).then(|| classes.word(6 + 2 * index))?
}

#[test]
fn what_places_a_mark_is_left() {
    let font = font();
    assert_eq!(
        places(&font, 12, 41),
        Some(vec![(2, 102), (2, 202), (2, 302)])
    );
    assert_eq!(class(&font, 13), Some(3));
    for (base, mark, x) in [(12, 41, 202), (21, 40, 307), (15, 41, 105)] {
        let fails = |text: &[u8]| {
            let places = places(text, base, mark).unwrap_or_default();
            places.contains(&(mark - 39, x)) && class(text, 13) == Some(3)
        };
        let reduced = reduce(&font, &fails, false);
        // Two tables with their entries; of each list one element is left.
        let lists = 10 + 8 + 4 + 8 + 8 + 6 + 4 + 8;
        let subtable = 12 + 6 + 10 + 6 + 6 + 4 + 6;
        let most = 12 + 2 * 16 + 12 + 8 + lists + subtable + 18;
        // A few letters before the one that is needed may stay in a range.
        let most = most + 4 * (2 + 6);
        let size = reduced.text.len();
        assert!(size <= most, "{base} {mark}: {size} bytes, not {most}");
    }
}
