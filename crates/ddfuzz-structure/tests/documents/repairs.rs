//! What depends on a deleted part or a changed payload is corrected, as other readers see it.

use std::io::Read;
use std::sync::Arc;

use flate2::read::{GzDecoder, ZlibDecoder};

use crate::open;
use crate::samples::{crc32, gzip, png, tar, zip, zlib};

/// The chunks of a PNG file: types and data; panics if a length or a checksum is wrong.
pub fn png_chunks(text: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut rest = text
        .strip_prefix(b"\x89PNG\r\n\x1a\n")
        .expect("the signature");
    let mut chunks = Vec::new();
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let (body, after) = after.split_at(4 + u32::from_be_bytes(*length) as usize);
        let (sum, after) = after.split_first_chunk::<4>().expect("a checksum");
        assert_eq!(u32::from_be_bytes(*sum), crc32(body));
        chunks.push((body[..4].to_vec(), body[4..].to_vec()));
        rest = after;
    }
    chunks
}

#[test]
fn chunks_keep_their_lengths_and_checksums() {
    let document = open(&png()).expect("a document");
    let fewer = document.without(&[1, 3]);
    let kinds: Vec<Vec<u8>> = png_chunks(&fewer.text())
        .into_iter()
        .map(|chunk| chunk.0)
        .collect();
    assert_eq!(kinds, [b"IHDR", b"zTXt", b"IDAT", b"IEND"].map(Vec::from));
    let mut payloads = document.payloads();
    payloads[1] = Arc::from(&b"Comment\0"[..]);
    let changed = png_chunks(&document.with(&payloads).text());
    assert_eq!(changed[1].1, b"Comment\0");
}

#[test]
fn a_divided_picture_is_joined_and_compressed_again() {
    let document = open(&png())
        .expect("a document")
        .repacked()
        .expect("it is compressed");
    let chunks = png_chunks(&document.text());
    assert_eq!(chunks.iter().filter(|chunk| chunk.0 == b"IDAT").count(), 1);
    let payloads = document.payloads();
    let rows = payloads
        .iter()
        .position(|payload| payload.len() == 800)
        .expect("the rows");
    let mut fewer = payloads.clone();
    fewer[rows] = Arc::from(&payloads[rows][..400]);
    let left = png_chunks(&document.with(&fewer).text());
    let picture = left
        .iter()
        .find(|chunk| chunk.0 == b"IDAT")
        .expect("the picture");
    let mut read = Vec::new();
    ZlibDecoder::new(&picture.1[..])
        .read_to_end(&mut read)
        .expect("zlib");
    assert_eq!(read, payloads[rows][..400]);
}

#[test]
fn gzip_states_the_checksum_and_size_of_its_new_content() {
    let text = gzip(b"some text and some more text");
    let document = open(&text).expect("a document");
    let payloads = vec![Arc::from(&b"text"[..])];
    let mut read = String::new();
    let changed = document.with(&payloads).text();
    GzDecoder::new(&changed[..])
        .read_to_string(&mut read)
        .expect("gzip");
    assert_eq!(read, "text");
    // The fields of the head are parts, and their flags go with them.
    let bare = document.without(&[1, 2]).text();
    let mut decoder = GzDecoder::new(&bare[..]);
    assert!(
        decoder
            .header()
            .is_some_and(|head| head.filename().is_none())
    );
    decoder.read_to_string(&mut read).expect("gzip");
}

#[test]
fn a_wrong_number_stays_wrong() {
    let mut text = png();
    // The checksum of the comment.
    let at = text
        .windows(4)
        .position(|bytes| bytes == b"tEXt")
        .expect("the chunk")
        + 18;
    text[at] ^= 1;
    let document = open(&text).expect("a document");
    assert_eq!(document.text(), text);
    let mut payloads = document.payloads();
    payloads[0] = Arc::from(&payloads[0][..5]);
    assert!(
        document
            .with(&payloads)
            .text()
            .windows(4)
            .any(|bytes| bytes == &text[at..at + 4])
    );
}

#[test]
fn a_directory_follows_its_members() {
    let text = zip(&[
        ("a", b"aaaaaaaaaaaaaaaaaa", true),
        ("b", b"bb", false),
        ("c", b"ccc", true),
    ]);
    let document = open(&text).expect("a document");
    for gone in 0..3 {
        let names = ["a", "b", "c"];
        let contents: [&[u8]; 3] = [b"aaaaaaaaaaaaaaaaaa", b"bb", b"ccc"];
        let left: Vec<(&str, &[u8], bool)> = (0..3)
            .filter(|index| *index != gone)
            .map(|index| (names[index], contents[index], index != 1))
            .collect();
        assert_eq!(document.without(&[gone]).text(), zip(&left));
        let packed = open(&gzip(&text)).expect("a document");
        let mut smaller = (0..packed.parts().len()).map(|part| packed.without(&[part]).text());
        assert!(
            smaller.any(|file| file == gzip(&zip(&left))),
            "an archive in a compressed file loses the entry of a member with the member"
        );
    }
}

#[test]
fn files_inside_of_files_are_opened() {
    let archive = open(&gzip(&tar())).expect("a document");
    let kinds = archive
        .payloads()
        .iter()
        .any(|payload| payload.starts_with(b"another text"));
    assert!(
        kinds,
        "the compressed comment of the picture in the archive is a payload"
    );
    let opaque = archive.opaque();
    assert_eq!(opaque.text(), gzip(&tar()));
    assert!(opaque.payloads().len() < archive.payloads().len());
}

#[test]
fn a_broken_checksum_of_zlib_keeps_it_closed() {
    let mut text = zlib(b"compressed compressed compressed \xff");
    *text.last_mut().expect("bytes") ^= 1;
    assert!(open(&text).is_none());
}
