//! The search `full` with a structure: few tests to the smallest file, on damaged readers and random
//! failures alike.

use std::collections::HashMap;
use std::io::Read;

use ddfuzz_delta::{Full, Outcome, Search, Structure};
use ddfuzz_structure::structure_of;
use flate2::read::{DeflateDecoder, GzDecoder, ZlibDecoder};

use crate::objects::elf;
use crate::samples::{
    self, crc32, flac, gzip, is_flac_frame, module, png, png_chunk, sfnt, sfnt_of, zip, zlib,
};

/// What a search came to.
pub struct Reduced {
    pub text: Vec<u8>,
    /// Different texts that were tested, up to the first test of the pass `values`.
    pub tests: usize,
}

/// Minimizes a text by its structure. With `copies`, the search is cloned now and then, and the clone
/// must ask for the same.
pub fn reduce(text: &[u8], fails: &dyn Fn(&[u8]) -> bool, copies: bool) -> Reduced {
    let search = Full::structured(text, structure_of(text));
    reduce_by(Box::new(search), text, fails, copies)
}

/// Minimizes a text by a search, as [`reduce`] does.
pub fn reduce_by(
    mut search: Box<dyn Search>,
    text: &[u8],
    fails: &dyn Fn(&[u8]) -> bool,
    copies: bool,
) -> Reduced {
    let mut known = HashMap::from([(Vec::new(), Outcome::Pass)]);
    let (mut best, mut candidate_text) = (text.to_vec(), Vec::new());
    let (mut tests, mut asked, mut counts) = (0, 0, true);
    assert!(fails(text));
    while let Some(candidate) = search.next() {
        candidate.write_into(text, &best, &mut candidate_text);
        assert!(candidate_text.len() <= best.len(), "never longer");
        counts &= candidate.rule.name() != "values";
        asked += 1;
        if copies && asked % 29 == 4 {
            search = search.boxed();
            assert_eq!(search.next().as_ref(), Some(&candidate));
        }
        let outcome = *known.entry(candidate_text.clone()).or_insert_with(|| {
            tests += usize::from(counts);
            match fails(&candidate_text) {
                true => Outcome::Fail,
                false => Outcome::Pass,
            }
        });
        search.tell(outcome);
        if outcome == Outcome::Fail {
            best.clone_from(&candidate_text);
        }
        assert_eq!(search.best().len(), best.len(), "the positions left");
        assert!(asked < 20_000, "it comes to an end");
    }
    Reduced { text: best, tests }
}

/// Checks whether no byte of a text can be deleted alone.
fn is_1_minimal(text: &[u8], fails: &dyn Fn(&[u8]) -> bool) -> bool {
    (0..text.len()).all(|gone| {
        let mut fewer = text.to_vec();
        fewer.remove(gone);
        !fails(&fewer)
    })
}

/// The chunks of a PNG file whose lengths and checksums are right.
fn chunks(text: &[u8]) -> Option<Vec<&[u8]>> {
    let mut rest = text.strip_prefix(b"\x89PNG\r\n\x1a\n")?;
    let mut chunks = Vec::new();
    while !rest.is_empty() {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let (body, after) = after.split_at_checked(4 + u32::from_be_bytes(*length) as usize)?;
        let (sum, after) = after.split_first_chunk::<4>()?;
        (u32::from_be_bytes(*sum) == crc32(body)).then_some(())?;
        chunks.push(body);
        rest = after;
    }
    Some(chunks)
}

#[test]
fn a_picture_is_reduced_to_the_chunks_that_matter() {
    let fails = |text: &[u8]| {
        chunks(text).is_some_and(|chunks| {
            let has = |kind: &[u8]| chunks.iter().any(|chunk| chunk.starts_with(kind));
            let comment = chunks.iter().find(|chunk| chunk.starts_with(b"tEXt"));
            has(b"IHDR") && has(b"IEND") && comment.is_some_and(|text| text.ends_with(b"text"))
        })
    };
    let reduced = reduce(&png(), &fails, false);
    // The type of the chunk ends like its text.
    assert_eq!(reduced.text.len(), 8 + 12 + 12 + 15, "{:?}", reduced.text);
    assert!(is_1_minimal(&reduced.text, &fails));
    assert!(reduced.tests <= 90, "{} tests", reduced.tests);
}

#[test]
fn a_palette_is_reduced_to_one_color() {
    let colors: Vec<u8> = (0..60).map(|index: u16| (index * 7 % 31) as u8).collect();
    let mut file = png();
    file.splice(33..33, png_chunk(b"PLTE", &colors));
    let fails = |text: &[u8]| {
        chunks(text).is_some_and(|chunks| {
            let palette = chunks.iter().find(|chunk| chunk.starts_with(b"PLTE"));
            palette.is_some_and(|chunk| chunk.len() > 4 && (chunk.len() - 4).is_multiple_of(3))
        })
    };
    let reduced = reduce(&file, &fails, false);
    assert_eq!(reduced.text.len(), 8 + 12 + 3, "{:?}", reduced.text);
    assert!(is_1_minimal(&reduced.text, &fails));
    assert!(reduced.tests <= 90, "{} tests", reduced.tests);
}

/// The contents of the members of a ZIP file whose numbers are right.
pub fn members(text: &[u8]) -> Option<Vec<Vec<u8>>> {
    let end = text.len().checked_sub(22)?;
    let number = |at: usize, width: usize| -> Option<usize> {
        let bytes = text.get(at..at + width)?;
        Some(
            bytes
                .iter()
                .rev()
                .fold(0, |number, byte| number << 8 | usize::from(*byte)),
        )
    };
    text[end..].starts_with(b"PK\x05\x06").then_some(())?;
    let mut entry = number(end + 16, 4)?;
    let mut contents = Vec::new();
    for _ in 0..number(end + 10, 2)? {
        text.get(entry..)?
            .starts_with(b"PK\x01\x02")
            .then_some(())?;
        let at = number(entry + 42, 4)?;
        text.get(at..)?.starts_with(b"PK\x03\x04").then_some(())?;
        let start = at + 30 + number(at + 26, 2)? + number(at + 28, 2)?;
        let data = text.get(start..start.checked_add(number(entry + 20, 4)?)?)?;
        let mut content = Vec::new();
        match number(entry + 10, 2)? {
            8 => drop(DeflateDecoder::new(data).read_to_end(&mut content).ok()?),
            _ => content.extend(data),
        }
        (crc32(&content) as usize == number(entry + 16, 4)?).then_some(())?;
        contents.push(content);
        entry += 46 + number(entry + 28, 2)? + number(entry + 30, 2)? + number(entry + 32, 2)?;
    }
    (entry == end).then_some(contents)
}

#[test]
fn an_archive_is_reduced_to_one_member() {
    let names: Vec<String> = (0..20).map(|index| format!("folder/{index}.txt")).collect();
    let texts: Vec<Vec<u8>> = (0..20u32)
        .map(|index| {
            let words = (0..60).map(|word| format!("word{} ", (word * 7 + index) % 23));
            let mut text = words.collect::<String>().into_bytes();
            if index == 13 {
                text.splice(100..100, b"needle".iter().copied());
            }
            text
        })
        .collect();
    let files = names
        .iter()
        .zip(&texts)
        .map(|(name, text)| (&name[..], &text[..], true));
    let archive = zip(&files.collect::<Vec<_>>());
    let fails = |text: &[u8]| {
        let has = |content: &Vec<u8>| content.windows(6).any(|bytes| bytes == b"needle");
        members(text).is_some_and(|members| members.iter().any(has))
    };
    let reduced = reduce(&archive, &fails, false);
    assert!(
        reduced.text.len() <= 30 + 46 + 22 + 9,
        "{}",
        reduced.text.len()
    );
    assert!(is_1_minimal(&reduced.text, &fails));
    assert!(reduced.tests <= 250, "{} tests", reduced.tests);
}

/// Returns the data of the packets of a PCAPNG file; `None` if a size is wrong.
fn packets(mut text: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut packets = Vec::new();
    let number = |text: &[u8], at: usize| {
        let bytes = text.get(at..)?.first_chunk()?;
        Some(u32::from_le_bytes(*bytes) as usize)
    };
    while !text.is_empty() {
        let (block, after) = text.split_at_checked(number(text, 4)?)?;
        let is_whole = block.len() >= 12 && block.len().is_multiple_of(4);
        let last = is_whole.then(|| number(block, block.len() - 4))??;
        (last == block.len()).then_some(())?;
        if number(block, 0)? == 6 {
            let size = number(block, 20)?;
            packets.push(block.get(28..28 + size)?.to_vec());
        }
        text = after;
    }
    Some(packets)
}

#[test]
fn packets_are_reduced_inside_of_their_blocks() {
    let file = samples::pcapng(false);
    assert_eq!(packets(&file).map(|packets| packets.len()), Some(2));
    let fails = |text: &[u8]| {
        let packets = packets(text).unwrap_or_default();
        packets.iter().any(|packet| packet.starts_with(b"first"))
    };
    let reduced = reduce(&file, &fails, false);
    assert_eq!(reduced.text.len(), 28 + 8 + 4, "{:?}", reduced.text);
    assert!(reduced.tests < 100, "{} tests", reduced.tests);
}

#[test]
fn a_compressed_text_is_reduced_as_a_text() {
    let items = (0..200).map(|item| format!("{{\"key{item}\": [{item}, {{\"a\": null}}]}}"));
    let text = format!("[{}]", items.collect::<Vec<_>>().join(", "));
    let fails = |text: &[u8]| {
        let mut read = String::new();
        let is_whole = GzDecoder::new(text).read_to_string(&mut read).is_ok();
        let opened = read.matches(['[', '{']).count();
        is_whole && read.contains("\"key77\"") && opened == read.matches([']', '}']).count()
    };
    let reduced = reduce(&gzip(text.as_bytes()), &fails, false);
    assert!(reduced.text.len() <= 10 + 8 + 11, "{:?}", reduced.text);
    assert!(is_1_minimal(&reduced.text, &fails));
    assert!(reduced.tests <= 120, "{} tests", reduced.tests);
}

/// The names of the symbols of an ELF file of 64 bits in which all indices and offsets are right.
fn symbol_names(text: &[u8]) -> Option<Vec<&[u8]>> {
    let number = |at: usize, width: usize| -> Option<usize> {
        let bytes = text.get(at..at.checked_add(width)?)?;
        let fold = |number: usize, byte: &u8| number << 8 | usize::from(*byte);
        Some(bytes.iter().rev().fold(0, fold))
    };
    let section = |index: usize| -> Option<(usize, usize, usize, usize)> {
        (index < number(60, 2)?).then_some(())?;
        let at = number(40, 8)?.checked_add(index * 64)?;
        Some((
            number(at + 4, 4)?,
            number(at + 24, 8)?,
            number(at + 32, 8)?,
            number(at + 40, 4)?,
        ))
    };
    text.starts_with(b"\x7fELF\x02").then_some(())?;
    let (kind, ..) = section(number(62, 2)?)?;
    (kind == 3).then_some(())?;
    let mut names = Vec::new();
    for index in 0..number(60, 2)? {
        let (kind, at, size, link) = section(index)?;
        text.get(at..at.checked_add(size)?)?;
        let (_, strings, all, _) = section(link)?;
        for symbol in (at..at + size).step_by(24).filter(|_| kind == 2) {
            let name = text.get(strings + number(symbol, 4)?..strings + all)?;
            names.push(&name[..name.iter().position(|byte| *byte == 0)?]);
        }
    }
    Some(names)
}

#[test]
fn an_object_file_is_reduced_to_one_symbol() {
    let fails =
        |text: &[u8]| symbol_names(text).is_some_and(|names| names.contains(&&b"second"[..]));
    let reduced = reduce(&elf(true), &fails, false);
    // The head, the entries of two sections, a symbol, and its name.
    assert!(
        reduced.text.len() <= 64 + 2 * 64 + 24 + 7,
        "{}",
        reduced.text.len()
    );
    assert!(is_1_minimal(&reduced.text, &fails));
    assert!(reduced.tests <= 122, "{} tests", reduced.tests);
}

#[test]
fn tables_whose_bytes_do_not_matter_share_others() {
    // Both tables must be there in their sizes.
    let fails = |text: &[u8]| {
        let tables = text.get(12..).unwrap_or_default().chunks_exact(16);
        let count = usize::from(text.get(5).copied().unwrap_or_default());
        let has = |tag: &[u8], size: usize| {
            tables.clone().take(count).any(|table| {
                let number =
                    |at: usize| u32::from_be_bytes(table[at..at + 4].try_into().expect("4"));
                let (at, length) = (number(8) as usize, number(12) as usize);
                table.starts_with(tag) && length == size && at + length <= text.len()
            })
        };
        text.starts_with(b"\0\x01") && has(b"head", 54) && has(b"name", 12)
    };
    let reduced = reduce(&sfnt(), &fails, false);
    assert!(
        reduced.text.len() <= 12 + 2 * 16 + 10,
        "{}",
        reduced.text.len()
    );
    assert!(is_1_minimal(&reduced.text, &fails));
    assert!(reduced.tests <= 100, "{} tests", reduced.tests);
}

#[test]
fn records_of_names_go_though_their_strings_stand_inside_of_them() {
    // All records that the table counts must be there, and one of them be the right one.
    let fails = |text: &[u8]| {
        let number = |at: usize, width| {
            text.get(at..at + width)
                .map(|bytes| bytes.iter().fold(0, shift))
        };
        let table = (number(20, 4), number(24, 4));
        let (Some(at), Some(length)) = table else {
            return false;
        };
        let Some(table) = text.get(at..at.saturating_add(length)) else {
            return false;
        };
        let count = table
            .get(2..4)
            .map_or(0, |bytes| bytes.iter().fold(0, shift));
        let records = table.get(6..).unwrap_or_default().chunks_exact(12);
        let mut counted = records.take(count);
        text.starts_with(b"\0\x01\0\0\0\x01")
            && counted.len() == count
            && counted.any(|it| it.starts_with(b"\x40\0right"))
    };
    fn shift(number: usize, byte: &u8) -> usize {
        number << 8 | usize::from(*byte)
    }
    let record = |nth: u8| match nth {
        47 => *b"\x40\0right.....",
        _ => [nth, 1, 64, 0, nth, 9, 0, 3, 0, 20, 0, nth],
    };
    let records: Vec<u8> = (0..60).flat_map(record).collect();
    let table = [&[0, 0, 0, 60, 0, 20][..], &records, b"and some text"].concat();
    let font = sfnt_of(b"\0\x01\0\0", &[(b"name", &table)]);
    assert!(fails(&font));
    let reduced = reduce(&font, &fails, false);
    assert!(is_1_minimal(&reduced.text, &fails));
    assert!(reduced.text.len() <= 12 + 16 + 6 + 12, "{:?}", reduced.text);
    assert!(reduced.tests <= 200, "{} tests", reduced.tests);
}

#[test]
fn frames_of_sound_keep_their_checksums() {
    let fails = |text: &[u8]| {
        let frame = text.windows(2).rposition(|pair| pair == [0xff, 0xf8]);
        let frame = frame.map_or(&text[..0], |at| &text[at..]);
        text.starts_with(b"fLaC") && is_flac_frame(frame) && frame.windows(3).any(|it| it == b"amp")
    };
    // The frame that matters comes last.
    let mut text = flac();
    text.truncate(text.len() - 29);
    let reduced = reduce(&text, &fails, false);
    assert_eq!(reduced.text.len(), 4 + 7 + 3 + 2, "{:?}", reduced.text);
    assert!(reduced.tests <= 100, "{} tests", reduced.tests);
}

/// The sizes and pixels of the pictures of a GIF file.
fn pictures(text: &[u8]) -> Option<Vec<(usize, Vec<u8>)>> {
    let table = |flags: u8| {
        if flags & 0x80 > 0 {
            6usize << (flags & 7)
        } else {
            0
        }
    };
    text.starts_with(b"GIF89a").then_some(())?;
    let mut at = 13 + table(*text.get(10)?);
    let mut pictures = Vec::new();
    while *text.get(at)? != 0x3b {
        let is_picture = text[at] == 0x2c;
        let head = text.get(at..at + if is_picture { 10 } else { 2 })?;
        at += head.len();
        let mut width = 0;
        if is_picture {
            at += table(head[9]);
            width = *text.get(at)?;
            at += 1;
        }
        let mut codes = Vec::new();
        loop {
            let size = usize::from(*text.get(at)?);
            codes.extend(text.get(at + 1..at + 1 + size)?);
            at += 1 + size;
            if size == 0 {
                break;
            }
        }
        if is_picture {
            (2..9).contains(&width).then_some(())?;
            let mut decoder = weezl::decode::Decoder::new(weezl::BitOrder::Lsb, width);
            let size = usize::from(head[5]) * usize::from(head[7]);
            pictures.push((size, decoder.decode(&codes).ok()?));
        }
    }
    Some(pictures)
}

#[test]
fn a_picture_of_an_animation_is_reduced_to_few_pixels() {
    let mut text = b"GIF89a\x20\0\x20\0\x85\0\0".to_vec();
    text.extend((0..192u32).map(|at| (at * 7) as u8));
    for picture in 0..4u8 {
        text.extend(
            b"\x21\xf9\x04\x08\0\0\0\0\x2c\0\0\0\0\x20\0\x20\0\x80\x01\x02\x03\x04\x05\x06",
        );
        let pixels: Vec<u8> = (0..1024u32)
            .map(|at| (at * at / 5) as u8 % 60 + picture % 3)
            .collect();
        let codes = weezl::encode::Encoder::new(weezl::BitOrder::Lsb, 6).encode(&pixels);
        text.push(6);
        for block in codes.expect("codes").chunks(0xff) {
            text.push(block.len() as u8);
            text.extend(block);
        }
        text.push(0);
    }
    text.push(0x3b);
    let fails = |text: &[u8]| {
        let fails = |(size, pixels): &(usize, Vec<u8>)| *size > 0 && *size <= pixels.len();
        pictures(text).is_some_and(|pictures| pictures.iter().all(fails) && pictures.len() > 1)
    };
    let reduced = reduce(&text, &fails, false);
    // Two pictures of a pixel each, without colors.
    assert!(
        reduced.text.len() <= 13 + 2 * (10 + 5) + 1,
        "{}",
        reduced.text.len()
    );
    assert!(is_1_minimal(&reduced.text, &fails));
    assert!(reduced.tests <= 200, "{} tests", reduced.tests);
}

/// A failure by chance: texts fail by a hash of them.
fn odd(seed: u64, whole: &[u8]) -> impl Fn(&[u8]) -> bool {
    move |text| {
        let hash = text.iter().fold(seed, |hash, byte| {
            (hash ^ (u64::from(*byte) + 1))
                .wrapping_mul(0x0100_0000_01b3)
                .rotate_left(23)
        });
        text == whole || !text.is_empty() && hash >> 61 == 0
    }
}

#[test]
fn any_failure_ends_at_a_failing_1_minimal_text() {
    for (name, sample) in samples::all() {
        for seed in 0..2 {
            let fails = odd(seed, &sample);
            let plain = reduce(&sample, &fails, false);
            assert!(fails(&plain.text), "{name}");
            assert!(
                plain.text.len() == 1 || is_1_minimal(&plain.text, &fails),
                "{name}"
            );
            if seed == 0 {
                let copied = reduce(&sample, &fails, true);
                assert_eq!(copied.text, plain.text, "{name}");
            }
        }
    }
}

#[test]
fn a_length_that_the_format_does_not_know_changes_with_the_payload() {
    let data: Vec<u8> = (0..40)
        .map(|index: u8| 39 ^ index.wrapping_mul(73))
        .collect();
    let mut file = png();
    file.splice(33..33, png_chunk(b"prVt", &data));
    let last = data.last();
    let fails = |file: &[u8]| {
        let chunks = chunks(file).unwrap_or_default();
        let mut found = chunks.iter().filter_map(|body| body.strip_prefix(b"prVt"));
        found.next().is_some_and(|data| {
            let count = data.first().copied().map(usize::from);
            count == data.len().checked_sub(1) && data.last() == last
        })
    };
    let reduced = reduce(&file, &fails, false);
    assert!(reduced.text.len() <= 8 + 12 + 4, "{:?}", reduced.text);
}

#[test]
fn a_binary_input_without_control_characters_is_mutated_too() {
    let letters = (0..98).map(|index: u8| 0x30 + index.wrapping_mul(29) % 64);
    let text: Vec<u8> = letters.collect();
    let ends = [text.first(), text.last()];
    let fails = |text: &[u8]| text.len().is_multiple_of(7) && [text.first(), text.last()] == ends;
    let search = Full::structured(&text, Structure::Binary);
    let reduced = reduce_by(Box::new(search), &text, &fails, false);
    assert!(reduced.text.len() <= 14, "{} bytes", reduced.text.len());
}

#[test]
fn a_picture_loses_rows_together_with_its_height() {
    let pixels: Vec<u8> = (0..150).map(|index: u8| index.wrapping_mul(37)).collect();
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    file.extend(png_chunk(b"IHDR", &30_u32.to_be_bytes()));
    file.extend(png_chunk(b"IDAT", &zlib(&pixels)));
    let height = |file: &[u8]| {
        let chunks = chunks(file)?;
        let head = chunks.iter().find_map(|body| body.strip_prefix(b"IHDR"))?;
        let data = chunks.iter().find_map(|body| body.strip_prefix(b"IDAT"))?;
        let mut rows = Vec::new();
        ZlibDecoder::new(data).read_to_end(&mut rows).ok()?;
        let height = u32::from_be_bytes(head.try_into().ok()?);
        (height as usize * 5 == rows.len() && rows.last() == pixels.last()).then_some(height)
    };
    let reduced = reduce(&file, &|file| height(file).is_some(), false);
    assert_eq!(height(&reduced.text), Some(1), "{:?}", reduced.text);
}

/// Width, height and decompressed rows of a picture whose rows are a filter below 5 and as many
/// bytes as the width says.
fn rows_of(file: &[u8]) -> Option<(usize, usize, Vec<u8>)> {
    let chunks = chunks(file)?;
    let head = chunks.iter().find_map(|body| body.strip_prefix(b"IHDR"))?;
    let data = chunks.iter().find_map(|body| body.strip_prefix(b"IDAT"))?;
    let (width, height) = head.split_first_chunk::<4>()?;
    let width = u32::from_be_bytes(*width) as usize;
    let height = u32::from_be_bytes(height.try_into().ok()?) as usize;
    let mut rows = Vec::new();
    ZlibDecoder::new(data).read_to_end(&mut rows).ok()?;
    let has_filters = rows.chunks(width + 1).all(|row| row[0] < 5);
    (rows.len() == height * (width + 1) && has_filters).then_some((width, height, rows))
}

/// A picture of 24 times 16 noisy samples.
fn noisy() -> Vec<u8> {
    let row = |y: u32| {
        let samples = (0..24).map(move |x| (x * 40503 + y * 30011 + x * y * 77) as u8 | 1);
        std::iter::once((y % 5) as u8).chain(samples)
    };
    let rows: Vec<u8> = (0..16).flat_map(row).collect();
    let size = [24_u32.to_be_bytes(), 16_u32.to_be_bytes()].concat();
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    file.extend(png_chunk(b"IHDR", &size));
    file.extend(png_chunk(b"IDAT", &zlib(&rows)));
    file
}

#[test]
fn a_picture_loses_columns_together_with_its_width() {
    let last = *rows_of(&noisy()).unwrap().2.last().unwrap();
    let fails = |file: &[u8]| {
        rows_of(file).is_some_and(|(_, height, rows)| height >= 12 && rows.last() == Some(&last))
    };
    let reduced = reduce(&noisy(), &fails, false);
    let (width, height, _) = rows_of(&reduced.text).unwrap();
    assert_eq!((width, height), (1, 12), "{:?}", reduced.text);
}

#[test]
fn samples_of_a_picture_that_do_not_matter_become_zeros() {
    let fails = |file: &[u8]| {
        rows_of(file).is_some_and(|(width, height, rows)| {
            (width, height) == (24, 16) && rows[200] > 1 && rows[100] > 1
        })
    };
    let reduced = reduce(&noisy(), &fails, false);
    let (_, _, rows) = rows_of(&reduced.text).unwrap();
    let others = rows.iter().filter(|byte| **byte > 0).count();
    assert!(others <= 4, "{others} samples");
    assert!(reduced.text.len() < 110, "{} bytes", reduced.text.len());
}

/// Splits a number of seven bits a byte off a text.
fn leb(text: &[u8]) -> Option<(usize, &[u8])> {
    let size = text.iter().take(5).position(|byte| *byte < 0x80)? + 1;
    let (number, rest) = text.split_at(size);
    let bits = |all: usize, byte: &u8| all << 7 | usize::from(byte & 0x7f);
    Some((number.iter().rev().fold(0, bits), rest))
}

/// The bodies of the functions of a module whose lengths and counts are right.
fn bodies(text: &[u8]) -> Option<Vec<&[u8]>> {
    let mut rest = text.strip_prefix(b"\0asm\x01\0\0\0")?;
    let mut bodies = Vec::new();
    while let Some((kind, after)) = rest.split_first() {
        let (length, after) = leb(after)?;
        let (section, after) = after.split_at_checked(length)?;
        rest = after;
        if *kind != 10 {
            continue;
        }
        let (count, mut section) = leb(section)?;
        for _ in 0..count {
            let (length, after) = leb(section)?;
            let (body, after) = after.split_at_checked(length)?;
            bodies.push(body);
            section = after;
        }
        section.is_empty().then_some(())?;
    }
    Some(bodies)
}

#[test]
fn a_module_is_reduced_to_one_function() {
    let fails =
        |text: &[u8]| bodies(text).is_some_and(|all| all.iter().any(|body| body.contains(&0xff)));
    for size in [1, 5] {
        let reduced = reduce(&module(size), &fails, size == 5);
        // Head of the file and of the section, count, length, instruction.
        assert_eq!(reduced.text.len(), 8 + 2 + 1 + 1 + 1, "{:?}", reduced.text);
        assert!(is_1_minimal(&reduced.text, &fails));
        assert!(reduced.tests <= 60, "{} tests", reduced.tests);
    }
}

#[test]
fn a_member_of_a_zip_file_stays_without_its_entry() {
    let text = crate::samples::zip(&[("a", b"one", false), ("b", b"two", true), ("c", b"", false)]);
    // One entry that is where the end says, and two members or what is left of them.
    let fails = |text: &[u8]| {
        let count = |signature: &[u8]| text.windows(4).filter(|four| *four == signature).count();
        let Some(end) = text.windows(4).position(|four| four == b"PK\x05\x06") else {
            return false;
        };
        let number = |at: usize| text.get(end + at..end + at + 4);
        let Some([one, two, three, four]) = number(16) else {
            return false;
        };
        let start = u32::from_le_bytes([*one, *two, *three, *four]) as usize;
        let entry = text.get(start..start + 46);
        text.len() == end + 22
            && count(b"PK\x03\x04") >= 2
            && entry.is_some_and(|entry| entry.starts_with(b"PK\x01\x02"))
    };
    let reduced = reduce(&text, &fails, false);
    // A header, the entry, the end, and a signature.
    let least = 30 + 46 + 22 + 4;
    assert!(reduced.text.len() <= least, "{}", reduced.text.len());
    assert!(reduced.tests < 300, "{} tests", reduced.tests);
}
