//! TIFF files of several pages, each of several strips.

use crate::searches::reduce;

/// Writes the directory of a page at offset `at` of a file, with the values of its entries before it;
/// the offset of the next directory comes last, with 0 in its place.
fn page(file: &mut Vec<u8>, text: &[u8], strips: &[&[u8]]) -> usize {
    let mut offsets = Vec::new();
    for strip in strips {
        offsets.push(file.len() as u32);
        file.extend(*strip);
    }
    let mut place = |bytes: &[u8]| {
        let mut value = bytes.to_vec();
        if value.len() > 4 {
            value = (file.len() as u32).to_le_bytes().to_vec();
            file.extend(bytes);
        }
        value.resize(4, 0);
        value
    };
    let sizes: Vec<u8> = strips
        .iter()
        .flat_map(|strip| (strip.len() as u16).to_le_bytes())
        .collect();
    let offsets: Vec<u8> = offsets.iter().flat_map(|at| at.to_le_bytes()).collect();
    let count = strips.len();
    let entries = [
        (256, 3, 1, place(&7u16.to_le_bytes())),
        (270, 2, text.len(), place(text)),
        (273, 4, count, place(&offsets)),
        (279, 3, count, place(&sizes)),
    ];
    let at = file.len();
    file.extend((entries.len() as u16).to_le_bytes());
    for (tag, kind, count, value) in entries {
        file.extend((tag as u16).to_le_bytes());
        file.extend((kind as u16).to_le_bytes());
        file.extend((count as u32).to_le_bytes());
        file.extend(value);
    }
    file.extend([0; 4]);
    at
}

/// A file of three pages.
fn pages() -> Vec<u8> {
    let mut file = b"II*\0\0\0\0\0".to_vec();
    let mut link = 4;
    let strips = [&b"first strip"[..], b"a needle here", b"the last strip"];
    for text in [&b"page one"[..], b"page two", b"the third page"] {
        let at = page(&mut file, text, &strips);
        file[link..link + 4].copy_from_slice(&(at as u32).to_le_bytes());
        link = file.len() - 4;
    }
    file
}

/// A page: its text, and its strips.
type Page = (Vec<u8>, Vec<Vec<u8>>);

/// Reads the pages of a file; `None` if an offset is not in the file.
fn read(text: &[u8]) -> Option<Vec<Page>> {
    let number = |at: usize, width: usize| {
        let bytes = text.get(at..at + width)?.iter().rev();
        Some(bytes.fold(0, |number, byte| number << 8 | usize::from(*byte)))
    };
    text.starts_with(b"II*\0").then_some(())?;
    let (mut pages, mut at) = (Vec::new(), number(4, 4)?);
    while at > 0 && pages.len() < 9 {
        let count = number(at, 2)?;
        let values = |tag: usize| {
            let mut entries = (0..count).map(|index| at + 2 + 12 * index);
            let entry = entries.find(|entry| number(*entry, 2) == Some(tag))?;
            let kind = number(entry + 2, 2)?.checked_sub(1)?;
            let width = *[1, 1, 2, 4].get(kind)?;
            let values = number(entry + 4, 4)?;
            let start = match values.checked_mul(width)? {
                0..=4 => entry + 8,
                _ => number(entry + 8, 4)?,
            };
            let list = (0..values.min(99)).map(|index| number(start + index * width, width));
            list.collect::<Option<Vec<usize>>>()
        };
        let strips = values(273).unwrap_or_default().into_iter();
        let strips = strips.zip(values(279).unwrap_or_default());
        let strips = strips.map(|(start, size)| Some(text.get(start..start + size)?.to_vec()));
        let words = values(270).unwrap_or_default();
        let words = words.into_iter().map(|byte| byte as u8);
        pages.push((words.collect(), strips.collect::<Option<_>>()?));
        at = number(at + 2 + 12 * count, 4)?;
    }
    Some(pages)
}

fn has(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|bytes| bytes == word)
}

#[test]
fn pages_and_strips_go_with_their_offsets() {
    let file = pages();
    assert_eq!(read(&file).map(|pages| pages.len()), Some(3));
    let fails = |text: &[u8]| {
        let pages = read(text).unwrap_or_default();
        let is_it = |(words, strips): &Page| {
            has(words, b"two") && strips.iter().any(|strip| has(strip, b"needle"))
        };
        pages.iter().any(is_it)
    };
    let reduced = reduce(&file, &fails, true);
    let left = read(&reduced.text).expect("pages");
    // The text stands in its entry now.
    assert_eq!(left.len(), 1);
    assert_eq!((&left[0].0[..], left[0].1.len()), (&b"two"[..], 1));
    assert!(reduced.text.len() <= 8 + 2 + 3 * 12 + 4 + 6);
    assert!(reduced.tests < 200, "{} tests", reduced.tests);
}

#[test]
fn the_second_page_keeps_the_first() {
    let file = pages();
    let fails = |text: &[u8]| {
        let pages = read(text).unwrap_or_default();
        pages.iter().skip(1).any(|(words, strips)| {
            has(words, b"third") && strips.last().is_some_and(|strip| has(strip, b"last"))
        })
    };
    let reduced = reduce(&file, &fails, false);
    let left = read(&reduced.text).expect("pages");
    assert_eq!(left.len(), 2, "{left:?}");
    assert!(left[0].0.is_empty() && left[0].1.is_empty());
    assert!(
        reduced.text.len() <= 8 + 2 * 6 + 3 * 12 + 5 + 4,
        "{}",
        reduced.text.len()
    );
}
