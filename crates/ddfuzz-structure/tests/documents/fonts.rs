//! Fonts: tables with checksums, and compact outlines (CFF) in indexes and dictionaries.

use ddfuzz_delta::Document;

use ddfuzz_structure::structure_of;

use crate::open;
use crate::samples::sfnt_of;
use crate::searches::reduce;

/// Writes an INDEX of CFF with offsets of `width` bytes.
fn index(items: &[&[u8]], width: usize) -> Vec<u8> {
    let mut index = (items.len() as u16).to_be_bytes().to_vec();
    if items.is_empty() {
        return index;
    }
    index.push(width as u8);
    let mut end = 1;
    for size in [0].into_iter().chain(items.iter().map(|item| item.len())) {
        end += size;
        index.extend(&(end as u32).to_be_bytes()[4 - width..]);
    }
    index.extend(items.concat());
    index
}

/// Writes an integer of a dictionary in five bytes.
fn long(number: usize) -> Vec<u8> {
    [&[29], &(number as u32).to_be_bytes()[..]].concat()
}

/// A font of one dictionary with names, glyphs that differ in size, and a private dictionary with
/// subroutines. Offsets are wider than they must be.
pub fn cff() -> Vec<u8> {
    let glyphs: Vec<Vec<u8>> = (1..9).map(|size| vec![size as u8; 8 * size]).collect();
    let glyphs: Vec<&[u8]> = glyphs.iter().map(|glyph| &glyph[..]).collect();
    let glyphs = index(&glyphs, 2);
    let names = index(&[b"a version", b"a notice", b"the full name"], 2);
    let private = [
        &[239, 239, 10][..],
        &long(3 + 6),
        &[19],
        &index(&[b"one", b"another"], 1),
    ];
    let private = private.concat();
    let front = [&b"\x01\0\x04\x02"[..], &index(&[b"Font"], 1)].concat();
    let dictionary = |glyphs_at: usize, private_at: usize| {
        let names = [&[28, 1, 135, 0][..], &[248, 28, 1, 248, 29, 2]].concat();
        let places = [
            long(glyphs_at),
            vec![17],
            long(9),
            long(private_at),
            vec![18],
        ];
        [names, places.concat()].concat()
    };
    let head = |places: (usize, usize)| {
        let dictionary = index(&[&dictionary(places.0, places.1)], 1);
        [&front[..], &dictionary, &names, &index(&[], 1)].concat()
    };
    let start = head((0, 0)).len();
    [head((start, start + glyphs.len())), glyphs, private].concat()
}

/// Reads the INDEX at the beginning of `text`: its items, and what follows.
fn items(text: &[u8]) -> Option<(Vec<&[u8]>, &[u8])> {
    let (count, rest) = text.split_first_chunk::<2>()?;
    let count = usize::from(u16::from_be_bytes(*count));
    if count == 0 {
        return Some((Vec::new(), rest));
    }
    let width = usize::from(*rest.first().filter(|width| **width > 0)?);
    let (offsets, data) = rest.get(1..)?.split_at_checked((count + 1) * width)?;
    let fold = |number, byte: &u8| number << 8 | usize::from(*byte);
    let ends = offsets
        .chunks(width)
        .map(|bytes| bytes.iter().fold(0, fold));
    let ends: Vec<usize> = ends.collect();
    let items = ends
        .windows(2)
        .map(|pair| data.get(pair[0].checked_sub(1)?..pair[1].checked_sub(1)?));
    Some((
        items.collect::<Option<_>>()?,
        data.get(ends[count].checked_sub(1)?..)?,
    ))
}

/// The names and the glyphs of a font.
type Contents<'a> = (Vec<&'a [u8]>, Vec<&'a [u8]>);

/// The names and the glyphs of a font whose indexes are right, and whose dictionary refers to
/// glyphs and a name.
fn names_and_glyphs(text: &[u8]) -> Option<Contents<'_>> {
    let rest = text.strip_prefix(b"\x01\0\x04")?.get(1..)?;
    let (_, rest) = items(rest)?;
    let (dictionaries, rest) = items(rest)?;
    let (names, _) = items(rest)?;
    let (mut numbers, mut glyphs, mut named) = (Vec::new(), None, Vec::new());
    let mut dictionary = *dictionaries.first()?;
    while let Some((byte, rest)) = dictionary.split_first() {
        let (number, size) = match byte {
            139..=246 => (usize::from(byte - 139), 0),
            247..=250 => (
                usize::from(byte - 247) * 256 + usize::from(*rest.first()?) + 108,
                1,
            ),
            28 => (usize::from(u16::from_be_bytes(*rest.first_chunk()?)), 2),
            29 => (u32::from_be_bytes(*rest.first_chunk()?) as usize, 4),
            operator => {
                match operator {
                    17 => glyphs = text.get(*numbers.last()?..),
                    0..=2 => named.push(*names.get(numbers.last()?.checked_sub(391)?)?),
                    _ => {}
                }
                numbers.clear();
                dictionary = rest;
                continue;
            }
        };
        numbers.push(number);
        dictionary = rest.get(size..)?;
    }
    Some((named, items(glyphs?)?.0))
}

#[test]
fn the_sample_is_a_font() {
    let font = cff();
    let (names, glyphs) = names_and_glyphs(&font).expect("a font");
    assert_eq!(names, [&b"a version"[..], b"a notice", b"the full name"]);
    assert_eq!(glyphs.len(), 8);
}

#[test]
fn a_font_is_reduced_to_one_glyph_and_one_name() {
    let fails = |text: &[u8]| {
        let is_right = |(names, glyphs): Contents<'_>| {
            names.contains(&&b"the full name"[..]) && glyphs.iter().any(|glyph| glyph.contains(&7))
        };
        names_and_glyphs(text).is_some_and(is_right)
    };
    let reduced = reduce(&cff(), &fails, false);
    // A header, four indexes, and the one of the glyph; the offset of that needs one byte.
    let least = 4 + 2 + (3 + 2 + 5) + (3 + 2 + 13) + 2 + (3 + 2 + 1);
    assert!(reduced.text.len() <= least + 3, "{:?}", reduced.text);
    assert!(reduced.tests <= 120, "{} tests", reduced.tests);
}

#[test]
fn a_chain_of_dictionaries_stays_within_the_stack() {
    let link = |at: usize| index(&[&[&long(at)[..], &[12, 36]].concat()], 1);
    let head = [&b"\x01\0\x04\x01"[..], &index(&[b"A"], 1)].concat();
    let front = head.len() + link(0).len() + 4;
    let step = link(0).len();
    let mut font = [head, link(front), vec![0; 4]].concat();
    for number in 1..=20_000 {
        font.extend(link(front + number * step));
    }
    font.extend(index(&[b"\x8b\0"], 1));
    assert_eq!(structure_of(&font).name(), Some("cff"));
    let document = open(&font).expect("a font");
    assert_eq!(document.text(), font);
    // A name, and two parts for each dictionary that is read.
    let parts = document.parts().len();
    assert!((100..200).contains(&parts), "{parts} parts");
}

#[test]
fn a_directory_of_too_many_tables_is_not_read() {
    let table: (&[u8; 4], &[u8]) = (b"some", b"data");
    let font = |tables: usize| sfnt_of(b"\0\x01\0\0", &vec![table; tables]);
    assert_eq!(structure_of(&font(4_096)).name(), Some("sfnt"));
    assert_ne!(structure_of(&font(4_097)).name(), Some("sfnt"));
}

#[test]
fn a_font_without_parts_keeps_its_references() {
    let font = cff();
    let document = open(&font).expect("a document");
    let (names, glyphs) = names_and_glyphs(&font).expect("a font");
    let contents = |document: &dyn Document| {
        let text = document.text();
        let (names, glyphs) = names_and_glyphs(&text)?;
        let owned = |items: Vec<&[u8]>| items.into_iter().map(<[u8]>::to_vec).collect::<Vec<_>>();
        Some((owned(names), owned(glyphs)))
    };
    let mut seen = 0;
    for index in 0..document.parts().len() {
        let fewer = document.without(&[index]);
        // The font without its glyphs, or with the reference to a name that is gone, is not read.
        let Some((left, outlines)) = contents(&*fewer) else {
            continue;
        };
        assert!(
            left.iter().all(|name| names.contains(&&name[..])),
            "{index}"
        );
        assert!(
            outlines.iter().all(|glyph| glyphs.contains(&&glyph[..])),
            "{index}"
        );
        let again = fewer.repacked().expect("offsets are wide");
        assert_eq!(contents(&*again), Some((left, outlines)), "{index}");
        assert!(again.text().len() < fewer.text().len());
        seen += 1;
    }
    assert!(seen > 12, "{seen} of {}", document.parts().len());
}

/// Writes big-endian words.
fn words(words: &[u16]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// Two maps of the characters `a` to `c` to the glyphs from 1 on: by segments and by ranges.
fn character_maps() -> Vec<u8> {
    let ranges = [&[0, 12, 0, 28, 0, 0, 0, 1][..], &[0, 97, 0, 99, 0, 1]].concat();
    let maps = [
        words(&[0, 2, 3, 1, 0, 20, 3, 10, 0, 52]),
        words(&[
            4,
            32,
            0,
            4,
            4,
            1,
            0,
            99,
            0xffff,
            0,
            97,
            0xffff,
            (1u16).wrapping_sub(97),
            1,
            0,
            0,
        ]),
        words(&ranges),
    ];
    maps.concat()
}

/// A font of four glyphs, the last of which consists of the two before it; the characters `a` to `c`
/// are the glyphs from 1 on. Offsets of glyphs are short ones.
pub fn truetype() -> Vec<u8> {
    // One contour of three points, without instructions.
    let simple = |points: &[u8]| [&words(&[1, 0, 0, 9, 9, 2, 1])[..], &[7], points].concat();
    let glyphs = [
        Vec::new(),
        simple(b"\x01\x01\x01 one  base"),
        simple(b"\x01\x01\x01 accent!"),
        words(&[0xffff, 0, 0, 9, 9, 0x20, 1, 0x0102, 0, 2, 0x0304]),
    ];
    let mut offsets = vec![0];
    for glyph in &glyphs {
        offsets.push(offsets.last().copied().unwrap_or(0) + glyph.len() as u16 / 2);
    }
    let strings = b"a familya notice";
    let records = [[3, 1, 0, 1, 8, 0], [3, 1, 0, 0, 8, 8], [1, 0, 0, 1, 8, 0]];
    let names = [
        words(&[0, 3, 42]),
        words(&records.concat()),
        strings.to_vec(),
    ];
    let metrics = words(&[500, 0, 600, 1, 700, 2, 3]);
    sfnt_of(
        b"\0\x01\0\0",
        &[
            (b"GSUB", &ligatures()),
            (b"cmap", &character_maps()),
            (b"glyf", &glyphs.concat()),
            (b"head", &[0; 54]),
            (b"hhea", &[vec![0; 34], words(&[3])].concat()),
            (b"hmtx", &metrics),
            (
                b"kern",
                &words(&[0, 1, 0, 26, 1, 2, 0, 0, 0, 1, 2, 7, 2, 3, 9]),
            ),
            (b"loca", &words(&offsets)),
            (b"maxp", &[&[0, 1, 0, 0, 0, 4][..], &[0; 26]].concat()),
            (b"name", &names.concat()),
        ],
    )
}

/// A table of substitutions: two scripts share a language with two features, of which one replaces
/// the glyph 1 by 2, and the other the glyphs 1 and 2 by 3, or 2 and 1 by 3.
fn ligatures() -> Vec<u8> {
    let tag = |tag: &[u8; 4]| [tag[0], tag[1], tag[2], tag[3]].to_vec();
    [
        words(&[1, 0, 10, 42, 68, 2]),
        tag(b"DFLT"),
        words(&[14]),
        tag(b"latn"),
        words(&[18, 8, 0, 4, 0]),
        words(&[0, 0xffff, 2, 0, 1]),
        words(&[2]),
        tag(b"smcp"),
        words(&[14]),
        tag(b"liga"),
        words(&[20, 0, 1, 0, 0, 1, 1]),
        words(&[2, 6, 28]),
        // A lookup with a coverage of its own, and one with two sets.
        words(&[1, 0, 1, 8, 2, 8, 1, 2, 1, 1, 1]),
        words(&[4, 0, 1, 8, 1, 10, 2, 18, 28]),
        words(&[1, 2, 1, 2]),
        words(&[1, 4, 3, 2, 2]),
        words(&[1, 4, 3, 2, 1]),
    ]
    .concat()
}

/// The bytes of a table, in which words can be read.
struct Table<'a>(&'a [u8]);

impl<'a> Table<'a> {
    fn of(font: &'a [u8], name: &[u8]) -> Option<Table<'a>> {
        let head = Table(font);
        let count = head.word(4)?;
        let mut entries = font.get(12..12 + 16 * count)?.chunks(16);
        let entry = Table(entries.find(|entry| entry.starts_with(name))?);
        Some(Table(
            font.get(entry.long(8)?..entry.long(8)? + entry.long(12)?)?,
        ))
    }

    fn word(&self, at: usize) -> Option<usize> {
        Some(usize::from(u16::from_be_bytes(
            *self.0.get(at..)?.first_chunk()?,
        )))
    }

    fn long(&self, at: usize) -> Option<usize> {
        Some(self.word(at)? << 16 | self.word(at + 2)?)
    }
}

/// The outline and the width of the glyph with this index.
fn glyph(font: &[u8], index: usize) -> Option<(&[u8], usize)> {
    let (offsets, count) = (
        Table::of(font, b"loca")?,
        Table::of(font, b"maxp")?.word(4)?,
    );
    let is_whole = index < count && offsets.0.len() == 2 * (count + 1);
    let place = 2 * offsets.word(2 * index)?..2 * offsets.word(2 * index + 2)?;
    let outline = Table::of(font, b"glyf")?
        .0
        .get(place)
        .filter(|_| is_whole)?;
    let wide = Table::of(font, b"hhea")?.word(34)?;
    let width = Table::of(font, b"hmtx")?.word(4 * index.min(wide.checked_sub(1)?))?;
    Some((outline, width))
}

/// The index of the glyph for a character, by the first map of the font.
fn mapped(font: &[u8], character: usize) -> Option<usize> {
    let maps = Table::of(font, b"cmap")?;
    let map = Table(maps.0.get(maps.long(8)?..)?);
    if map.word(0)? == 12 {
        let ranges = (0..map.long(12)?).map(|range| 16 + 12 * range);
        let mut ranges =
            ranges.filter(|at| (map.long(*at)..=map.long(at + 4)).contains(&Some(character)));
        let at = ranges.next()?;
        return Some(map.long(at + 8)? + character - map.long(at)?);
    }
    let size = map.word(6)?;
    let mut segments = (0..size).step_by(2).map(|at| 14 + at);
    let at = segments.find(|at| map.word(*at) >= Some(character))?;
    let (start, delta) = (at + size + 2, at + 2 * size + 2);
    (map.word(start)? <= character).then(|| Some((character + map.word(delta)?) & 0xffff))?
}

/// The string of the first record with the number `name`.
fn named(font: &[u8], name: usize) -> Option<&[u8]> {
    let names = Table::of(font, b"name")?;
    let mut records = (0..names.word(2)?).map(|record| 6 + 12 * record);
    let record = records.find(|at| names.word(at + 6) == Some(name))?;
    let at = names.word(4)? + names.word(record + 10)?;
    names.0.get(at..at + names.word(record + 8)?)
}

#[test]
fn the_sample_has_glyphs_maps_and_names() {
    let font = truetype();
    assert_eq!(mapped(&font, 97), Some(1));
    let (outline, width) = glyph(&font, 1).expect("a glyph");
    assert!(outline.ends_with(b"one  base"));
    assert_eq!(
        (width, glyph(&font, 3).map(|(_, width)| width)),
        (600, Some(700))
    );
    assert_eq!(named(&font, 1), Some(&b"a family"[..]));
}

#[test]
fn a_font_is_reduced_to_a_glyph_of_two_others() {
    let ends = |font: &[u8], index: usize, end: &[u8]| {
        glyph(font, index).is_some_and(|(outline, _)| outline.ends_with(end))
    };
    let fails = |font: &[u8]| {
        let outline = mapped(font, 99).and_then(|index| Some(Table(glyph(font, index)?.0)));
        let part = |at: usize| outline.as_ref().and_then(|outline| outline.word(at));
        let parts = [part(12), part(18)].map(|index| index.unwrap_or(0));
        ends(font, parts[0], b"base")
            && ends(font, parts[1], b"accent!")
            && named(font, 1).is_some_and(|name| name.ends_with(b"family"))
    };
    let reduced = reduce(&truetype(), &fails, false);
    let tables = 8 * 16 + 28 + 4 + 8 + 22 + 36 + 2 + 6 + 6 + 18;
    assert!(
        reduced.text.len() <= 12 + tables + 60,
        "{} bytes",
        reduced.text.len()
    );
    assert!(reduced.tests <= 900, "{} tests", reduced.tests);
}

#[test]
fn glyphs_that_are_left_keep_their_characters_and_metrics() {
    let font = truetype();
    let document = open(&font).expect("a document");
    let mut seen = 0;
    for index in 0..document.parts().len() {
        let fewer = document.without(&[index]).text();
        let old = mapped(&font, 97).and_then(|index| glyph(&font, index));
        // Where the first glyph of a range is gone, its characters mean others.
        if let Some(new) = mapped(&fewer, 97).and_then(|index| glyph(&fewer, index)) {
            let is_first = new == glyph(&font, 2).expect("a glyph");
            assert!(Some(new) == old || is_first, "without {index}");
            seen += usize::from(!is_first);
        }
        // Without a string, its records refer to the bytes in its place.
        let has_family = fewer.windows(8).any(|bytes| bytes == b"a family");
        if let Some(name) = named(&fewer, 1).filter(|_| has_family) {
            assert_eq!(name, b"a family", "without {index}");
        }
    }
    assert!(seen > 8, "{seen} of {}", document.parts().len());
}

/// The ligatures that the feature `liga` makes: the glyphs, and the one in their place.
fn ligatures_of(font: &[u8]) -> Option<Vec<(Vec<usize>, usize)>> {
    let table = Table::of(font, b"GSUB")?;
    let (features, lookups) = (table.word(6)?, table.word(8)?);
    let mut found = Vec::new();
    let named = (0..table.word(features)?).map(|index| features + 2 + 6 * index);
    let feature = named
        .into_iter()
        .find(|at| table.0.get(*at..at + 4) == Some(b"liga"))?;
    let feature = features + table.word(feature + 4)?;
    for index in 0..table.word(feature + 2)? {
        let lookup = table.word(feature + 4 + 2 * index)?;
        (lookup < table.word(lookups)?).then_some(())?;
        let lookup = lookups + table.word(lookups + 2 + 2 * lookup)?;
        (table.word(lookup)? == 4).then_some(())?;
        for subtable in 0..table.word(lookup + 4)? {
            let at = lookup + table.word(lookup + 6 + 2 * subtable)?;
            let coverage = at + table.word(at + 2)?;
            (table.word(coverage + 2)? == table.word(at + 4)?).then_some(())?;
            for set in 0..table.word(at + 4)? {
                let first = table.word(coverage + 4 + 2 * set)?;
                let set = at + table.word(at + 6 + 2 * set)?;
                for ligature in 0..table.word(set)? {
                    let one = set + table.word(set + 2 + 2 * ligature)?;
                    let others = 1..table.word(one + 2)?;
                    let others = others.map(|index| table.word(one + 2 + 2 * index));
                    let glyphs: Option<Vec<usize>> =
                        [Some(first)].into_iter().chain(others).collect();
                    found.push((glyphs?, table.word(one)?));
                }
            }
        }
    }
    Some(found)
}

#[test]
fn ligatures_keep_their_glyphs_in_what_is_left() {
    let font = truetype();
    let all = ligatures_of(&font).expect("ligatures");
    assert_eq!(all, [(vec![1, 2], 3), (vec![2, 1], 3)]);
    let ends = |font: &[u8], index: usize, end: &[u8]| {
        glyph(font, index).is_some_and(|(outline, _)| outline.ends_with(end))
    };
    let document = open(&font).expect("a document");
    let mut seen = 0;
    for index in 0..document.parts().len() {
        let fewer = document.without(&[index]).text();
        let glyphs = |font: &[u8]| Table::of(font, b"maxp").and_then(|table| table.word(4));
        let (Some(ligatures), Some(4)) = (ligatures_of(&fewer), glyphs(&fewer)) else {
            continue;
        };
        for (glyphs, _) in ligatures.iter().filter(|(glyphs, _)| glyphs.len() == 2) {
            let order: [&[u8]; 2] = match glyphs[0] {
                1 => [b"base", b"accent!"],
                _ => [b"accent!", b"base"],
            };
            let is_same = glyphs
                .iter()
                .zip(order)
                .all(|(glyph, end)| ends(&fewer, *glyph, end));
            assert!(is_same || glyph(&fewer, 1).is_none(), "without {index}");
            seen += 1;
        }
    }
    assert!(seen > 50, "{seen}");
}

#[test]
fn a_font_is_reduced_to_one_ligature() {
    let fails = |font: &[u8]| {
        let is_it = |(glyphs, _): &(Vec<usize>, usize)| {
            glyphs.len() == 2
                && [&b"accent!"[..], b"base"]
                    .iter()
                    .zip(glyphs)
                    .all(|(end, index)| {
                        glyph(font, *index).is_some_and(|(outline, _)| outline.ends_with(end))
                    })
        };
        ligatures_of(font).is_some_and(|all| all.iter().any(is_it))
    };
    let font = truetype();
    let reduced = reduce(&font, &fails, false);
    let table = Table::of(&reduced.text, b"GSUB").expect("a table");
    assert!(
        table.0.len() <= 10 + 2 + 2 + 8 + 6 + 4 + 8 + 8 + 6 + 4 + 8,
        "{}",
        table.0.len()
    );
    assert!(reduced.tests <= 900, "{} tests", reduced.tests);
}
