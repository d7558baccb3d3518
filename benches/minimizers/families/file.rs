//! Binary files in four formats, each with one content that their reader cannot do with.

use super::binary::crc32;
use super::{Case, Set, Stream};

/// The families `wav`, `png`, `protobuf` and `der`.
pub fn cases(set: Set) -> Vec<Case> {
    type Make = fn(usize, &mut Stream) -> (Vec<u8>, Vec<u8>);
    let all: [(&'static str, Make); 4] = [
        ("wav", wav),
        ("png", png),
        ("protobuf", protobuf),
        ("der", der),
    ];
    let case = |(number, (family, make)): (usize, (&'static str, Make))| {
        let mut stream = set.stream(1500 + number as u64);
        let size = set.size(4096, &mut stream);
        let (input, minimum) = make(size, &mut stream);
        Case {
            family,
            variant: "",
            source: "file.c",
            defines: vec![("VARIANT", number.to_string())],
            bug: "content_is_not_expected",
            input,
            minimum,
            is_text: false,
            ending: if family == "protobuf" { "pb" } else { family },
        }
    };
    all.into_iter().enumerate().map(case).collect()
}

/// Parts until they have `size` bytes, with `wrong` among them.
fn around(
    size: usize,
    wrong: Vec<u8>,
    stream: &mut Stream,
    part: impl Fn(&mut Stream) -> Vec<u8>,
) -> Vec<u8> {
    let mut parts = Vec::new();
    while parts.iter().map(Vec::len).sum::<usize>() < size {
        parts.push(part(stream));
    }
    let place = parts.len() / 4 + stream.below(parts.len() / 2 + 1);
    parts.insert(place, wrong);
    parts.concat()
}

/// A text of some words.
fn text(stream: &mut Stream) -> Vec<u8> {
    let words: Vec<String> = (0..1 + stream.below(6)).map(|_| stream.word()).collect();
    words.join(" ").into_bytes()
}

fn riff(kind: &[u8], content: &[u8]) -> Vec<u8> {
    let size = u32::try_from(content.len()).expect("files of this family are small");
    let pad = vec![0; content.len() % 2];
    [kind, &size.to_le_bytes(), content, &pad].concat()
}

fn wav(size: usize, stream: &mut Stream) -> (Vec<u8>, Vec<u8>) {
    let file = |chunks: &[Vec<u8>]| riff(b"RIFF", &[b"WAVE".to_vec(), chunks.concat()].concat());
    let list = |tags: Vec<u8>| riff(b"LIST", &[b"INFO".to_vec(), tags].concat());
    let format = [1, 0, 2, 0, 0x44, 0xac, 0, 0, 0x10, 0xb1, 2, 0, 4, 0, 16, 0];
    let tag = |stream: &mut Stream| {
        let kind = stream.pick(&["INAM", "IART", "ICMT", "ISFT"]);
        riff(kind.as_bytes(), &text(stream))
    };
    let tags = around(size / 4, riff(b"ICRD", b"unknown"), stream, tag);
    let samples = stream.bytes(size / 8 * 4, b"");
    let chunks = [
        riff(b"JUNK", &stream.bytes(28, b"")),
        riff(b"fmt ", &format),
        riff(b"fact", &stream.bytes(4, b"")),
        list(around(200, Vec::new(), stream, tag)),
        riff(b"data", &samples),
        list(tags),
        riff(b"cue ", &stream.bytes(52, b"")),
    ];
    let least = [
        riff(b"fmt ", &[&[0; 12][..], &[1, 0]].concat()),
        list(riff(b"ICRD", b"x")),
    ];
    (file(&chunks), file(&least))
}

fn png(size: usize, stream: &mut Stream) -> (Vec<u8>, Vec<u8>) {
    let chunk = |kind: &[u8], content: &[u8]| {
        let size = u32::try_from(content.len()).expect("files of this family are small");
        let summed = [kind, content].concat();
        [
            &size.to_be_bytes()[..],
            &summed,
            &crc32(&summed).to_be_bytes(),
        ]
        .concat()
    };
    let other = |stream: &mut Stream| match stream.below(3) {
        0 => chunk(b"tEXt", &[b"Comment\0".to_vec(), text(stream)].concat()),
        1 => {
            let length = 20 + stream.below(300);
            chunk(b"IDAT", &stream.bytes(length, b""))
        }
        _ => chunk(b"tIME", &stream.bytes(7, b"")),
    };
    let head = |width: u8| chunk(b"IHDR", &[0, 0, 0, width, 0, 0, 0, width, 8, 3, 0, 0, 0]);
    let signature = b"\x89PNG\r\n\x1a\n".to_vec();
    let chunks = around(size, chunk(b"gAMA", &[0; 4]), stream, other);
    let palette = stream.bytes(3 * 40, b"");
    let end = chunk(b"IEND", b"");
    let file = [
        &signature[..],
        &head(64),
        &chunk(b"PLTE", &palette),
        &chunks,
        &end,
    ]
    .concat();
    let wrong = chunk(b"gAMA", &[0; 4]);
    let least = [
        &signature[..],
        &head(1),
        &chunk(b"PLTE", b"000"),
        &wrong,
        &end,
    ]
    .concat();
    (file, least)
}

fn varint(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value > 127 {
        bytes.push(value as u8 | 128);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

fn message(content: &[u8]) -> Vec<u8> {
    [vec![0x12], varint(content.len()), content.to_vec()].concat()
}

fn protobuf(size: usize, stream: &mut Stream) -> (Vec<u8>, Vec<u8>) {
    fn field(levels: usize, stream: &mut Stream) -> Vec<u8> {
        match stream.below(if levels == 0 { 3 } else { 5 }) {
            0 => [vec![0x08], varint(stream.below(100_000))].concat(),
            1 => {
                let text = text(stream);
                [vec![0x1a], varint(text.len()), text].concat()
            }
            2 => [vec![0x3d], stream.bytes(4, b"\xff")].concat(),
            _ => {
                let fields = (0..1 + stream.below(4)).map(|_| field(levels - 1, stream));
                message(&fields.collect::<Vec<_>>().concat())
            }
        }
    }
    let wrong = vec![0x3d, 0xff, 0xff, 0xff, 0xff];
    let mut file = around(60, wrong.clone(), stream, |stream| field(0, stream));
    let mut least = wrong;
    for room in [200, 400, size - 700] {
        file = around(room, message(&file), stream, |stream| field(2, stream));
        least = message(&least);
    }
    (file, least)
}

fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let size = match content.len() {
        size @ 0..128 => vec![size as u8],
        size @ 128..256 => vec![0x81, size as u8],
        size => vec![0x82, (size >> 8) as u8, size as u8],
    };
    [vec![tag], size, content.to_vec()].concat()
}

fn der(size: usize, stream: &mut Stream) -> (Vec<u8>, Vec<u8>) {
    let name = |stream: &mut Stream| element(6, &stream.bytes(3, b""));
    let attribute = |stream: &mut Stream| {
        let pair = [name(stream), element(19, &text(stream))].concat();
        element(0x31, &element(0x30, &pair))
    };
    let extension = |flag: u8, stream: &mut Stream| {
        let length = 4 + stream.below(60);
        let value = element(4, &stream.bytes(length, b""));
        element(0x30, &[name(stream), element(1, &[flag]), value].concat())
    };
    let wrong = extension(1, stream);
    let extensions = around(size / 2, wrong, stream, |stream| extension(255, stream));
    let body = [
        element(0xa0, &element(2, &[2])),
        element(2, &stream.bytes(16, b"")),
        element(0x30, &[name(stream), element(5, b"")].concat()),
        element(0x30, &around(size / 4, Vec::new(), stream, attribute)),
        element(0x30, &around(200, Vec::new(), stream, attribute)),
        element(0xa3, &element(0x30, &extensions)),
    ];
    let signed = [
        element(0x30, &body.concat()),
        element(0x30, &[name(stream), element(5, b"")].concat()),
        element(3, &stream.bytes(size / 8, b"")),
    ];
    let least = [element(6, b"0"), element(1, &[1])].concat();
    (
        element(0x30, &signed.concat()),
        element(0x30, &element(0xa3, &least)),
    )
}
