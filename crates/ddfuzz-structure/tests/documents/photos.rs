//! Photos as cameras write them: JPEG with tables, Exif data and a color profile; and pieces of files
//! whose sizes and contents depend on each other.

use std::io::Read;

use flate2::read::GzDecoder;

use crate::open;
use crate::samples::{gzip, tar};
use crate::searches::reduce;

fn segment(marker: u8, data: &[u8]) -> Vec<u8> {
    let size = (data.len() as u16 + 2).to_be_bytes();
    [&[0xff, marker][..], &size, data].concat()
}

fn entry(tag: u16, kind: u16, count: u32, value: u32) -> Vec<u8> {
    let front = [tag.to_le_bytes(), kind.to_le_bytes()].concat();
    [
        front,
        count.to_le_bytes().into(),
        value.to_le_bytes().into(),
    ]
    .concat()
}

/// Exif data: a directory with a text and the directory of a place, which has a text, too.
fn exif() -> Vec<u8> {
    let (first, place) = (8 + 2 + 3 * 12 + 4, 8 + 2 + 3 * 12 + 4 + 10);
    let entries = [
        entry(0x10f, 2, 10, first),
        entry(0x112, 3, 1, 6),
        entry(0x8825, 4, 1, place),
    ];
    let places = [entry(1, 2, 2, 0x53), entry(2, 2, 8, place + 2 + 2 * 12 + 4)];
    [
        &b"Exif\0\0II*\0\x08\0\0\0\x03\0"[..],
        &entries.concat(),
        b"\0\0\0\0the camera\x02\0",
        &places.concat(),
        b"\0\0\0\0latitude",
    ]
    .concat()
}

/// A color profile of three tags, two of which share their data.
fn profile() -> Vec<u8> {
    let head = [&[0; 32][..], b"    acsp", &[0; 88]].concat();
    let mut tags = Vec::new();
    for (name, at, size) in [
        (b"desc", 168u32, 8u32),
        (b"rTRC", 176, 4),
        (b"gTRC", 176, 4),
    ] {
        tags.extend([&name[..], &at.to_be_bytes(), &size.to_be_bytes()].concat());
    }
    let body = [&[0, 0, 0, 3][..], &tags, b"a  colorcurv"].concat();
    let size = (4 + head[4..].len() + body.len()) as u32;
    [&size.to_be_bytes(), &head[4..], &body].concat()
}

/// Two tables of Huffman codes: of three values with two lengths, and of one value.
fn codes() -> Vec<u8> {
    let table = |kind: u8, counts: [u8; 3], values: &[u8]| {
        [&[kind][..], &counts, &[0; 13], values].concat()
    };
    [table(0, [0, 1, 2], b"abc"), table(0x11, [1, 0, 0], b"z")].concat()
}

pub fn photo() -> Vec<u8> {
    [
        b"\xff\xd8".to_vec(),
        segment(0xe1, &exif()),
        segment(0xe2, &[&b"ICC_PROFILE\0\x01\x01"[..], &profile()].concat()),
        segment(0xdb, &[&[0][..], &[1; 64], &[0x11], &[2; 128]].concat()),
        segment(0xc4, &codes()),
        segment(0xda, b"head"),
        b"picture\xff\xd9".to_vec(),
    ]
    .concat()
}

/// The data of the first segment with this marker.
fn data(photo: &[u8], marker: u8) -> Option<&[u8]> {
    let mut at = 2;
    while photo.get(at)? == &0xff {
        let size = usize::from(u16::from_be_bytes([
            *photo.get(at + 2)?,
            *photo.get(at + 3)?,
        ]));
        let data = photo.get(at + 4..at + 2 + size)?;
        if photo[at + 1] == marker {
            return Some(data);
        }
        at += 2 + size;
    }
    None
}

fn little(text: &[u8], at: usize, width: usize) -> Option<usize> {
    let bytes = text.get(at..at + width)?;
    Some(
        bytes
            .iter()
            .rev()
            .fold(0, |all, byte| all << 8 | usize::from(*byte)),
    )
}

/// The value of an entry of the Exif directory at `at`, and the text that it refers to.
fn value(tiff: &[u8], at: usize, tag: usize) -> Option<(usize, &[u8])> {
    let mut entries = (0..little(tiff, at, 2)?).map(|index| at + 2 + 12 * index);
    let entry = entries.find(|entry| little(tiff, *entry, 2) == Some(tag))?;
    let (count, value) = (little(tiff, entry + 4, 4)?, little(tiff, entry + 8, 4)?);
    Some((value, tiff.get(value..value + count).unwrap_or_default()))
}

/// The text of the place of a photo.
fn latitude(photo: &[u8]) -> Option<&[u8]> {
    let tiff = data(photo, 0xe1)?.get(6..)?;
    let (place, _) = value(tiff, little(tiff, 4, 4)?, 0x8825)?;
    Some(value(tiff, place, 2)?.1)
}

/// The data of a tag of a photo's color profile, whose size must be that of the profile.
fn tag<'a>(photo: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let profile = data(photo, 0xe2)?.get(14..)?;
    let big = |at: usize| -> Option<usize> {
        Some(u32::from_be_bytes(*profile.get(at..)?.first_chunk()?) as usize)
    };
    let mut tags = (0..big(128)?).map(|index| 132 + 12 * index);
    let at = tags.find(|at| profile.get(*at..at + 4) == Some(name))?;
    let data = profile.get(big(at + 4)?..big(at + 4)? + big(at + 8)?);
    data.filter(|_| big(0) == Some(profile.len()))
}

/// The values of the tables of Huffman codes of a photo.
fn tables(photo: &[u8]) -> Option<Vec<&[u8]>> {
    let (mut rest, mut tables) = (data(photo, 0xc4)?, Vec::new());
    while !rest.is_empty() {
        let counts = rest.get(1..17)?.iter();
        let end = 17 + counts.map(|count| usize::from(*count)).sum::<usize>();
        tables.push(rest.get(17..end)?);
        rest = &rest[end..];
    }
    Some(tables)
}

#[test]
fn parts_of_a_photo_refer_to_what_they_referred_to() {
    let photo = photo();
    let document = open(&photo).expect("a document");
    let count = document.parts().len();
    assert_eq!(latitude(&photo), Some(&b"latitude"[..]));
    let mut seen = [0; 3];
    for index in 0..count {
        let fewer = document.without(&[index]).text();
        let texts = [latitude(&fewer), tag(&fewer, b"gTRC"), tag(&fewer, b"desc")];
        for (at, text) in [&b"latitude"[..], b"curv", b"a  color"]
            .into_iter()
            .enumerate()
        {
            assert!(texts[at].is_none_or(|one| one == text), "without {index}");
            seen[at] += usize::from(texts[at].is_some());
        }
        assert!(data(&fewer, 0xc4).is_none() || tables(&fewer).is_some());
    }
    // Segments, entries and data: only the parts around a text make it disappear.
    assert!(
        seen.iter().all(|seen| *seen + 5 >= count),
        "{seen:?} of {count}"
    );
}

#[test]
fn a_photo_is_reduced_to_a_place_and_a_code() {
    let fails = |photo: &[u8]| {
        let has_code = tables(photo).is_some_and(|all| all.iter().any(|one| one.contains(&b'b')));
        has_code && latitude(photo).is_some_and(|text| text.starts_with(b"lat"))
    };
    let reduced = reduce(&photo(), &fails, false);
    // Two directories of one entry, a table of one value, and what stands around them.
    let directories = 8 + 2 * (2 + 12 + 4);
    assert!(
        reduced.text.len() <= 2 + 4 + 6 + directories + 8 + 4 + 17 + 1,
        "{} bytes",
        reduced.text.len()
    );
    assert!(reduced.tests <= 400, "{} tests", reduced.tests);
}

#[test]
fn a_file_inside_stands_in_place_of_the_file_around_it() {
    // A reader that takes a directory alone as well as one in a photo.
    let exif = |text: &[u8]| {
        let inside = data(text, 0xe1).and_then(|data| data.strip_prefix(b"Exif\0\0"));
        let tiff = inside.unwrap_or(text);
        let directory = little(tiff, 4, 4).filter(|_| tiff.starts_with(b"II*\0"));
        directory.is_some_and(|at| value(tiff, at, 0x112).is_some())
    };
    let alone = reduce(&photo(), &exif, true).text;
    assert!(alone.len() <= 8 + 2 + 12, "{alone:?}");
    assert!(alone.starts_with(b"II*\0"));
}

#[test]
fn fields_of_a_compressed_archive_become_shorter() {
    let mut archive = tar();
    archive[108..115].copy_from_slice(b"0001750");
    archive[265..281].copy_from_slice(b"a long user name");
    let sum = archive[..512]
        .iter()
        .map(|byte| usize::from(*byte))
        .sum::<usize>();
    let stated = archive[148..156]
        .iter()
        .map(|byte| usize::from(*byte))
        .sum::<usize>();
    let sum = sum - stated + 8 * usize::from(b' ');
    archive[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let fails = |text: &[u8]| {
        let mut head = Vec::new();
        let read = GzDecoder::new(text).read_to_end(&mut head).is_ok() && head.len() >= 512;
        if !read || !head.starts_with(b"a.") {
            return false;
        }
        let stated = std::str::from_utf8(&head[148..154]).map(|sum| usize::from_str_radix(sum, 8));
        head[148..156].fill(b' ');
        let sum = head[..512]
            .iter()
            .map(|byte| usize::from(*byte))
            .sum::<usize>();
        stated.is_ok_and(|stated| stated == Ok(sum))
    };
    let reduced = reduce(&gzip(&archive), &fails, false);
    let mut head = Vec::new();
    let read = GzDecoder::new(&reduced.text[..]).read_to_end(&mut head);
    assert!(read.is_ok());
    let user = head[108..116].iter().chain(&head[265..297]);
    assert!(user.into_iter().all(|byte| *byte == 0), "{head:?}");
}

/// The contents of the items of DER in a text, those with items inside without their own.
fn items(mut text: &[u8]) -> Option<Vec<&[u8]>> {
    let mut found = Vec::new();
    while let [tag, size, rest @ ..] = text {
        let (size, rest) = match size {
            0x81 => (usize::from(*rest.first()?), rest.get(1..)?),
            0x82 => (
                rest.get(..2)?
                    .iter()
                    .fold(0, |all, byte| all << 8 | usize::from(*byte)),
                &rest[2..],
            ),
            short => (usize::from(*short), rest),
        };
        let (body, others) = rest.split_at_checked(size)?;
        match tag {
            0x30 => found.extend(items(body)?),
            _ => found.push(body),
        }
        text = others;
    }
    text.is_empty().then_some(found)
}

#[test]
fn one_of_many_records_is_found_and_equal_names_become_short_together() {
    let item = |tag: u8, body: Vec<u8>| {
        let size = (body.len() as u16).to_be_bytes();
        let head = match body.len() {
            0..128 => vec![tag, size[1]],
            128..256 => vec![tag, 0x81, size[1]],
            _ => vec![tag, 0x82, size[0], size[1]],
        };
        [head, body].concat()
    };
    let record = |number: u8| {
        let fields = [
            item(2, vec![number; 4]),
            item(0x0c, b"some text".to_vec()),
            item(0x30, item(2, vec![1])),
        ];
        item(0x30, fields.concat())
    };
    let records: Vec<Vec<u8>> = (0..120).map(record).collect();
    let name = item(0x0c, b"the name of it".to_vec());
    let whole = [name.clone(), item(0x30, records.concat()), item(0x30, name)];
    let text = item(0x30, whole.concat());
    let fails = |text: &[u8]| {
        let has_all = |items: Vec<&[u8]>| {
            let is_name = |item: &&&[u8]| item.starts_with(b"the");
            let names: Vec<&&[u8]> = items.iter().filter(is_name).collect();
            names.len() == 2 && names[0] == names[1] && items.contains(&&[77; 4][..])
        };
        items(text).is_some_and(has_all)
    };
    let reduced = reduce(&text, &fails, false);
    // Two names and a number, without the items around them.
    assert_eq!(reduced.text.len(), 2 * 5 + 6, "{:02x?}", reduced.text);
    assert!(reduced.tests <= 200, "{} tests", reduced.tests);
}
