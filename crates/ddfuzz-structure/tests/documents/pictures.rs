//! Pictures of Windows, and streams of xz.

use std::io::{Read, Write};

use lzma_rust2::{CheckType, XzOptions, XzReader, XzWriter};

use crate::open;
use crate::samples::png;
use crate::searches::reduce;

/// A picture of 3 columns and 5 rows with 4 colors.
pub fn bmp() -> Vec<u8> {
    let word = |number: usize| (number as u32).to_le_bytes();
    let numbers = [70 + 5 * 4, 0, 70, 40, 3, 5];
    let mut text = b"BM".to_vec();
    text.extend(numbers.into_iter().flat_map(word));
    text.extend([1, 0, 8, 0]);
    text.extend([0, 20, 2835, 2835, 4, 0].into_iter().flat_map(word));
    text.extend((0..4).flat_map(|color| [color, color * 2, 255, 0]));
    text.extend((0..5).flat_map(|row| [row % 4, 1, 2, 0]));
    text
}

/// An icon of two pictures.
pub fn icon() -> Vec<u8> {
    let pictures = [png(), bmp()[14..].to_vec()];
    let mut at = 6 + 16 * 2;
    let mut text = vec![0, 0, 1, 0, 2, 0];
    for picture in &pictures {
        text.extend([16, 16, 0, 0, 1, 0, 32, 0]);
        text.extend((picture.len() as u32).to_le_bytes());
        text.extend((at as u32).to_le_bytes());
        at += picture.len();
    }
    [text, pictures.concat()].concat()
}

/// Two streams of xz, the first one of two blocks.
pub fn xz() -> Vec<u8> {
    let stream = |check: CheckType, blocks: Option<u64>, content: &[u8]| {
        let mut options = XzOptions::with_preset(1);
        options.set_check_sum_type(check);
        options.lzma_options.dict_size = 4096;
        options.set_block_size(blocks.and_then(std::num::NonZeroU64::new));
        let mut writer = XzWriter::new(Vec::new(), options).expect("a writer");
        writer.write_all(content).expect("memory");
        writer.finish().expect("memory")
    };
    let content = b"a text in a stream of xz, ".repeat(300);
    [
        stream(CheckType::Crc64, Some(4096), &content),
        vec![0; 4],
        stream(CheckType::Crc32, None, b"another stream"),
    ]
    .concat()
}

/// Decompresses the streams of xz.
fn unpack(text: &[u8]) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    XzReader::new(text, true).read_to_end(&mut content).ok()?;
    Some(content)
}

#[test]
fn rows_and_colors_are_counted() {
    let text = bmp();
    let document = open(&text).expect("a document");
    let word =
        |text: &[u8], at: usize| u32::from_le_bytes(*text[at..].first_chunk().expect("a word"));
    for (part, colors, rows) in [(1, 3, 5), (6, 4, 4)] {
        let fewer = document.without(&[part]).text();
        assert_eq!(fewer.len(), text.len() - 4);
        let stated = [2, 10, 22, 34, 46].map(|at| word(&fewer, at));
        assert_eq!(stated, [86, 54 + 4 * colors, rows, 4 * rows, colors]);
    }
}

/// Returns the pixels of each row of a picture whose numbers agree with each other, as colors if it has any;
/// `None` if one does not.
fn pixels(text: &[u8]) -> Option<Vec<Vec<&[u8]>>> {
    let word = |at: usize| Some(u32::from_le_bytes(*text.get(at..)?.first_chunk()?) as usize);
    let (size, start, count, rows) = (word(2)?, word(10)?, word(18)?, word(22)?);
    let (bits, colors) = (usize::from(*text.get(28)?), word(46)?);
    let row = count.checked_mul(bits)?.div_ceil(32) * 4;
    let size_of_rows = row.checked_mul(rows)?;
    let is_right = [size, start + size_of_rows] == [text.len(); 2];
    let is_right = is_right && start == 54 + 4 * colors && word(34)? == size_of_rows;
    (is_right && row > 0 && (bits == 8 || bits == 24)).then_some(())?;
    let rows = text[start..].chunks(row).map(|row| {
        let pixels = row[..count * bits / 8].chunks(bits / 8);
        let of_colors = pixels.map(|pixel| match bits {
            8 => text[54..start].chunks(4).nth(usize::from(pixel[0])),
            _ => Some(pixel),
        });
        of_colors.collect()
    });
    rows.collect()
}

#[test]
fn columns_go_from_all_rows_and_pixels_have_the_numbers_of_their_colors() {
    let word = |number: usize| (number as u32).to_le_bytes();
    let picture = |bits: u8, colors: &[u8], rows: &[Vec<u8>]| {
        let data: Vec<u8> = rows
            .iter()
            .flat_map(|row| {
                let fill = row.len().next_multiple_of(4) - row.len();
                [&row[..], &vec![0; fill]].concat()
            })
            .collect();
        let start = 54 + colors.len();
        let numbers = [start + data.len(), 0, start, 40, 21, rows.len()];
        let mut text = b"BM".to_vec();
        text.extend(numbers.into_iter().flat_map(word));
        text.extend([1, 0, bits, 0]);
        text.extend(
            [0, data.len(), 2835, 2835, colors.len() / 4, 0]
                .into_iter()
                .flat_map(word),
        );
        [&text[..], colors, &data].concat()
    };
    let noise = |at: usize| (at * 37 % 101) as u8 + 100;
    let mut rows: Vec<Vec<u8>> = (0..9)
        .map(|row| (0..63).map(|at| noise(row * 63 + at)).collect())
        .collect();
    rows[2][13 * 3..14 * 3].copy_from_slice(b"\x01\x02\x03");
    rows[6][4 * 3..5 * 3].copy_from_slice(b"\x04\x05\x06");
    let has =
        |text: &[u8], pixel: &[u8]| pixels(text).is_some_and(|rows| rows.concat().contains(&pixel));
    let both = |text: &[u8]| has(text, b"\x01\x02\x03") && has(text, b"\x04\x05\x06");
    let reduced = reduce(&picture(24, &[], &rows), &both, false);
    assert_eq!(reduced.text.len(), 54 + 2 * 8, "{:?}", reduced.text);
    assert!(reduced.tests < 170, "{} tests", reduced.tests);

    let colors: Vec<u8> = (0..50)
        .flat_map(|color| [color, color * 2, 255, 0])
        .collect();
    let rows: Vec<Vec<u8>> = (0..9)
        .map(|row| (0..21).map(|at| noise(row * 21 + at) % 50).collect())
        .collect();
    let one = |text: &[u8]| has(text, &[37, 74, 255, 0]);
    let reduced = reduce(&picture(8, &colors, &rows), &one, false);
    assert_eq!(reduced.text.len(), 54 + 4 + 4, "{:?}", reduced.text);
    assert!(reduced.tests < 170, "{} tests", reduced.tests);
}

#[test]
fn pictures_of_an_icon_go_with_their_entries() {
    let text = icon();
    let document = open(&text).expect("a document");
    let last = document.parts().len() - 1;
    let fewer = document.without(&[last]).text();
    assert_eq!(fewer[4], 1);
    assert_eq!(fewer[18..22], 22_u32.to_le_bytes());
    assert_eq!(fewer[22..], png());
}

#[test]
fn streams_and_blocks_of_xz_are_deleted() {
    let text = xz();
    let all = unpack(&text).expect("two streams");
    let document = open(&text).expect("a document");
    let mut sizes = Vec::new();
    for part in 0..document.parts().len() {
        let content = unpack(&document.without(&[part]).text());
        sizes.push(content.map_or(0, |content| all.len() - content.len()));
    }
    // A stream, its two blocks, and the other stream with its block.
    for gone in [7800, 4096, 7800 - 4096, 14] {
        assert!(sizes.contains(&gone), "{sizes:?}");
    }
}

#[test]
fn the_content_of_xz_is_reduced() {
    let content = [
        b"some text\n".repeat(200),
        b"a marker\n".to_vec(),
        b"some more\n".repeat(200),
    ];
    let mut options = XzOptions::with_preset(6);
    options.set_check_sum_type(CheckType::Crc64);
    let mut writer = XzWriter::new(Vec::new(), options).expect("a writer");
    writer.write_all(&content.concat()).expect("memory");
    let text = writer.finish().expect("memory");
    let fails = |text: &[u8]| {
        let content = unpack(text);
        content.is_some_and(|content| content.windows(6).any(|bytes| bytes == b"marker"))
    };
    let reduced = reduce(&text, &fails, false);
    assert_eq!(unpack(&reduced.text).as_deref(), Some(&b"marker"[..]));
    // Head, head of the block, a chunk that is not compressed, check, index, foot.
    let least = 12 + 12 + 12 + 8 + 12 + 12;
    assert!(reduced.text.len() <= least, "{}", reduced.text.len());
    assert!(reduced.tests < 120, "{} tests", reduced.tests);
}
