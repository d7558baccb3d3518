//! Fonts: tables with checksums, and compact outlines (CFF) in indexes and dictionaries.

use ddfuzz_delta::Document;

use crate::open;
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
