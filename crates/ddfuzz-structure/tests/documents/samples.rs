//! A small file of each format.

use std::io::Write;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use flate2::{Crc, GzBuilder};

use crate::objects::elf;

pub fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum()
}

pub fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let builder = GzBuilder::new().filename("a name").comment("a comment");
    let mut encoder: GzEncoder<Vec<u8>> = builder.write(Vec::new(), Compression::best());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

/// Length, type, data and checksum of a chunk of PNG.
pub fn png_chunk(kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let mut chunk = (data.len() as u32).to_be_bytes().to_vec();
    let body = [&kind[..], data].concat();
    chunk.extend(&body);
    chunk.extend(crc32(&body).to_be_bytes());
    chunk
}

pub fn png() -> Vec<u8> {
    let rows = zlib(
        &(0..200u8)
            .flat_map(|row| [0, row, row / 2, 7])
            .collect::<Vec<u8>>(),
    );
    let (front, back) = rows.split_at(rows.len() / 2);
    [
        b"\x89PNG\r\n\x1a\n".to_vec(),
        png_chunk(b"IHDR", &[0, 0, 0, 1, 0, 0, 0, 200, 8, 2, 0, 0, 0]),
        png_chunk(b"tEXt", b"Comment\0a text"),
        png_chunk(
            b"zTXt",
            &[b"Comment\0\0".to_vec(), zlib(b"another text, another")].concat(),
        ),
        png_chunk(b"IDAT", front),
        png_chunk(b"IDAT", back),
        png_chunk(b"IEND", b""),
    ]
    .concat()
}

/// A section, an interface, and packets of `packets`, the first of which has an option.
pub fn pcapng(big: bool) -> Vec<u8> {
    let number = |number: usize| match big {
        true => (number as u32).to_be_bytes(),
        false => (number as u32).to_le_bytes(),
    };
    let block = |kind: usize, data: &[u8]| {
        let size = number(12 + data.len());
        [&number(kind)[..], &size, data, &size].concat()
    };
    let packet = |data: &[u8], options: &[u8]| {
        let size = number(data.len());
        let pad = vec![0; data.len().next_multiple_of(4) - data.len()];
        let head = [&[0; 12], &size[..], &size].concat();
        block(6, &[&head[..], data, &pad, options].concat())
    };
    [
        block(
            0x0a0d_0d0a,
            &[&number(0x1a2b_3c4d)[..], &[0, 1, 0, 0], &[0xff; 8]].concat(),
        ),
        block(1, &[1, 0, 0, 0, 0xff, 0xff, 0, 0]),
        packet(b"first packet!", b"\0\0\0\0"),
        packet(b"second", b""),
        block(5, b"statistics!!"),
    ]
    .concat()
}

/// Type, length and data of a chunk of RIFF or IFF.
fn chunk(kind: &[u8; 4], data: &[u8], big: bool) -> Vec<u8> {
    let size = data.len() as u32;
    let size = if big {
        size.to_be_bytes()
    } else {
        size.to_le_bytes()
    };
    let pad = vec![0; data.len() % 2];
    [&kind[..], &size, data, &pad].concat()
}

fn riff() -> Vec<u8> {
    let info = [
        b"INFO".to_vec(),
        chunk(b"IART", b"who", false),
        chunk(b"ICMT", b"what", false),
    ];
    let chunks = [
        b"WAVE".to_vec(),
        chunk(
            b"fmt ",
            &[1, 0, 1, 0, 64, 31, 0, 0, 64, 31, 0, 0, 1, 0, 8, 0],
            false,
        ),
        chunk(b"LIST", &info.concat(), false),
        chunk(b"data", &[1, 2, 3, 4, 5], false),
    ];
    chunk(b"RIFF", &chunks.concat(), false)
}

fn iff() -> Vec<u8> {
    let chunks = [
        b"AIFF".to_vec(),
        chunk(b"COMM", &[7; 18], true),
        chunk(b"SSND", &[9; 11], true),
    ];
    chunk(b"FORM", &chunks.concat(), true)
}

fn bmff_box(kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
    [&(data.len() as u32 + 8).to_be_bytes()[..], kind, data].concat()
}

fn isobmff() -> Vec<u8> {
    let movie = [
        bmff_box(b"mvhd", &[1; 20]),
        bmff_box(b"trak", &bmff_box(b"tkhd", &[2; 9])),
    ];
    [
        bmff_box(b"ftyp", b"isom\0\0\0\0mp41"),
        bmff_box(b"moov", &movie.concat()),
        bmff_box(b"mdat", &[3; 12]),
    ]
    .concat()
}

fn pcap(big: bool) -> Vec<u8> {
    let number = |number: u32| {
        if big {
            number.to_be_bytes()
        } else {
            number.to_le_bytes()
        }
    };
    let mut file = number(0xa1b2_c3d4).to_vec();
    file.extend([2; 20]);
    for packet in [&b"first packet"[..], b"second"] {
        file.extend([5; 8]);
        file.extend(number(packet.len() as u32));
        file.extend(number(packet.len() as u32));
        file.extend(packet);
    }
    file
}

fn midi() -> Vec<u8> {
    let track =
        |events: &[u8]| [b"MTrk", &(events.len() as u32).to_be_bytes()[..], events].concat();
    let tracks = [track(&[0, 0xff, 0x2f, 0]), track(&[1, 2, 3])].concat();
    [&b"MThd\0\0\0\x06\0\x01\0\x02\0\x60"[..], &tracks].concat()
}

fn wasm() -> Vec<u8> {
    let section = |kind: u8, data: &[u8]| [&[kind, data.len() as u8][..], data].concat();
    [
        b"\0asm\x01\0\0\0".to_vec(),
        section(1, &[1, 0x60, 0, 0]),
        section(0, b"\x04name..."),
    ]
    .concat()
}

/// A number of WebAssembly in at least `size` bytes.
fn leb(mut number: usize, size: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number > 0x7f || bytes.len() + 1 < size {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

/// A module with two types and twelve functions, whose lengths take at least `size` bytes. The
/// seventh function has an instruction 0xff.
pub fn module(size: usize) -> Vec<u8> {
    let counted = |data: &[u8]| [leb(data.len(), size), data.to_vec()].concat();
    let section = |kind: u8, data: &[u8]| [vec![kind], counted(data)].concat();
    let bodies = (0..12).flat_map(|number| {
        let mut body = vec![0, 0x41, number, 0x1a, 0x41, number + 1, 0x1a];
        body.extend([0x01].repeat(usize::from(number * 5)));
        body.extend((number == 6).then_some(0xff));
        body.push(0x0b);
        counted(&body)
    });
    let bodies: Vec<u8> = bodies.collect();
    [
        b"\0asm\x01\0\0\0".to_vec(),
        section(1, b"\x02\x60\0\0\x60\x02\x7f\x7e\x01\x7f"),
        section(10, &[&[12], &bodies[..]].concat()),
        section(0, &[&counted(b"name")[..], &[7; 60]].concat()),
    ]
    .concat()
}

pub fn zip(members: &[(&str, &[u8], bool)]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut directory = Vec::new();
    for (name, content, is_packed) in members {
        let data = if *is_packed {
            deflate(content)
        } else {
            content.to_vec()
        };
        let mut head = vec![20, 0, 0, 0, u8::from(*is_packed) * 8, 0, 1, 2, 3, 4];
        for number in [crc32(content), data.len() as u32, content.len() as u32] {
            head.extend(number.to_le_bytes());
        }
        head.extend((name.len() as u16).to_le_bytes());
        head.extend([0, 0]);
        directory.extend([b"PK\x01\x02\x14\0", &head[..], &[0; 10]].concat());
        directory.extend((file.len() as u32).to_le_bytes());
        directory.extend(name.as_bytes());
        file.extend([b"PK\x03\x04", &head[..], name.as_bytes(), &data].concat());
    }
    let count = (members.len() as u16).to_le_bytes();
    let numbers = [directory.len() as u32, file.len() as u32]
        .map(u32::to_le_bytes)
        .concat();
    let end = [b"PK\x05\x06\0\0\0\0", &count[..], &count, &numbers, b"\0\0"].concat();
    [file, directory, end].concat()
}

pub fn tar() -> Vec<u8> {
    let mut file = Vec::new();
    for (name, content) in [("a.txt", &b"some text"[..]), ("b.png", &png()), ("c", b"")] {
        let mut head = vec![0; 512];
        head[..name.len()].copy_from_slice(name.as_bytes());
        head[124..136].copy_from_slice(format!("{:011o}\0", content.len()).as_bytes());
        head[148..156].fill(b' ');
        head[257..263].copy_from_slice(b"ustar\0");
        let sum: u32 = head.iter().map(|byte| u32::from(*byte)).sum();
        head[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        file.extend(head);
        file.extend(content);
        file.resize(file.len().next_multiple_of(512), 0);
    }
    file.resize(file.len() + 1024, 0);
    file
}

fn gif() -> Vec<u8> {
    [
        &b"GIF89a\x02\0\x02\0\x80\0\0\0\0\0\xff\xff\xff"[..],
        b"\x21\xfe\x05hello\x06again!\0",
        b"\x2c\0\0\0\0\x02\0\x02\0\0\x02\x03\x44\x02\x05\0",
        b"\x3b",
    ]
    .concat()
}

fn jpeg() -> Vec<u8> {
    [
        &b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0"[..],
        b"\xff\xfe\0\x07hello",
        b"\xff\xda\0\x04\x01\x02picture\xff\0bytes\xff\xd0more",
        b"\xff\xd9",
    ]
    .concat()
}

/// A cyclic redundancy check, bit by bit, most significant first.
fn crc(bytes: &[u8], width: u32, polynomial: u32) -> u32 {
    let bits = bytes
        .iter()
        .flat_map(|byte| (0..8).rev().map(move |bit| u32::from(byte >> bit & 1)));
    let crc = bits.fold(0, |crc: u32, bit| {
        let out = crc >> (width - 1) & 1 ^ bit;
        (crc << 1) ^ (out * polynomial)
    });
    crc & ((1 << width) - 1)
}

/// A frame of FLAC with these bytes for samples.
pub fn flac_frame(number: u8, samples: &[u8]) -> Vec<u8> {
    let mut frame = vec![0xff, 0xf8, 0x69, 0x08, number, 15];
    frame.push(crc(&frame, 8, 0x07) as u8);
    frame.extend(samples);
    let sum = crc(&frame, 16, 0x8005) as u16;
    frame.extend(sum.to_be_bytes());
    frame
}

/// Checks whether a text is a frame of FLAC whose checksums are right.
pub fn is_flac_frame(text: &[u8]) -> bool {
    text.len() >= 9
        && text[..2] == [0xff, 0xf8]
        && crc(&text[..6], 8, 0x07) == u32::from(text[6])
        && crc(text, 16, 0x8005) == 0
}

pub fn flac() -> Vec<u8> {
    let block = |kind: u8, data: &[u8]| [&[kind, 0, 0, data.len() as u8][..], data].concat();
    let blocks = [
        block(0, &[1; 34]),
        block(1, &[0; 9]),
        block(0x84, b"comment"),
    ]
    .concat();
    let frames = [flac_frame(0, b"samples"), flac_frame(1, &[0xff; 20])].concat();
    [&b"fLaC"[..], &blocks, &frames].concat()
}

fn ogg_crc(page: &[u8]) -> u32 {
    page.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte) << 24, |crc: u32, _| {
            (crc << 1) ^ ((crc >> 31) * 0x04c1_1db7)
        })
    })
}

fn ogg() -> Vec<u8> {
    let page = |number: u8| {
        let head = [
            b"OggS\0\x02\0\0\0\0\0\0\0\0\x01\0\0\0",
            &[number, 0, 0, 0][..],
        ]
        .concat();
        let rest = b"\x02\x05\x03hello...";
        let crc = ogg_crc(&[&head, &[0; 4][..], rest].concat()).to_le_bytes();
        [&head, &crc[..], rest].concat()
    };
    [page(0), page(1)].concat()
}

pub fn sfnt() -> Vec<u8> {
    let tables = [
        (b"head", &[1u8; 54][..]),
        (b"maxp", &[2; 6]),
        (b"name", b"a name of it"),
    ];
    sfnt_of(b"\0\x01\0\0", &tables)
}

/// Writes a font of these tables after the signature `magic`.
pub fn sfnt_of(magic: &[u8], tables: &[(&[u8; 4], &[u8])]) -> Vec<u8> {
    let count = (tables.len() as u16).to_be_bytes();
    let mut file = [magic, &count, b"\0\x20\0\x01\0\x10"].concat();
    let mut data = Vec::new();
    for (tag, bytes) in tables {
        let mut padded = bytes.to_vec();
        padded.resize(bytes.len().next_multiple_of(4), 0);
        let words = padded
            .chunks(4)
            .map(|word| u32::from_be_bytes(word.try_into().expect("4")));
        let sum = words.fold(0, u32::wrapping_add);
        file.extend(*tag);
        let at = 12 + tables.len() * 16 + data.len();
        for number in [sum, at as u32, bytes.len() as u32] {
            file.extend(number.to_be_bytes());
        }
        data.extend(padded);
    }
    [file, data].concat()
}

fn tiff(big: bool) -> Vec<u8> {
    let number = |number: usize, width: usize| match big {
        true => number.to_be_bytes()[8 - width..].to_vec(),
        false => number.to_le_bytes()[..width].to_vec(),
    };
    let entry = |tag: usize, kind: usize, count: usize, value: Vec<u8>| {
        let mut value = value;
        value.resize(4, 0);
        [number(tag, 2), number(kind, 2), number(count, 4), value].concat()
    };
    let entries = [
        entry(256, 3, 1, number(4, 2)),
        entry(270, 2, 12, number(8, 4)),
        entry(273, 4, 2, number(20, 4)),
        entry(279, 3, 2, [number(6, 2), number(5, 2)].concat()),
        entry(282, 5, 1, number(28, 4)),
    ];
    [
        if big {
            b"MM\0*".to_vec()
        } else {
            b"II*\0".to_vec()
        },
        number(48, 4),
        b"description\0".to_vec(),
        [number(36, 4), number(42, 4)].concat(),
        [number(72, 4), number(1, 4)].concat(),
        b"strip1strip".to_vec(),
        vec![0],
        number(entries.len(), 2),
        entries.concat(),
        number(0, 4),
    ]
    .concat()
}

fn der() -> Vec<u8> {
    let item = |tag: u8, body: &[u8]| match body.len() {
        short @ 0..128 => [&[tag, short as u8][..], body].concat(),
        long => [&[tag, 0x81, long as u8][..], body].concat(),
    };
    let inner = [
        item(2, &[1, 2, 3]),
        item(0x0c, b"a text"),
        item(4, &item(0x30, &item(2, &[5]))),
    ];
    item(
        0x30,
        &[item(0x30, &inner.concat()), item(0x30, &item(4, &[7; 130]))].concat(),
    )
}

fn cbor() -> Vec<u8> {
    let map = [&b"\xa2\x61a\x83\x01\x20\xf5\x61b"[..], b"\x9f\x41\xffx\xff"].concat();
    let map = map
        .iter()
        .map(|byte| if *byte == b'x' { 0x02 } else { *byte });
    [
        vec![0x82],
        map.collect(),
        b"\xc1\x1a\x10\x20\x30\x40".to_vec(),
    ]
    .concat()
}

fn message_pack() -> Vec<u8> {
    b"\x93\xa5hello\x82\xa1a\xc4\x02\xff\0\xa1b\xcd\x01\x02\xcb\x40\x09\0\0\0\0\0\0".to_vec()
}

fn protobuf() -> Vec<u8> {
    let inner = b"\x08\x96\x01\x12\x05hello\x1d\x01\x02\x03\x04";
    [
        &b"\x08\x01\x52"[..],
        &[inner.len() as u8],
        inner,
        b"\x29\0\0\0\0\0\0\xf0\x3f",
    ]
    .concat()
}

/// A file of each format, with the name of the format.
pub fn all() -> Vec<(&'static str, Vec<u8>)> {
    let members: [(&str, &[u8], bool); 3] = [
        ("one.txt", b"one one one one", true),
        ("two", b"two", false),
        ("three", b"three three three", true),
    ];
    let opentype = |magic: &[u8]| [magic, &sfnt()[4..]].concat();
    let mut all = vec![
        ("png", png()),
        ("riff", riff()),
        ("iff", iff()),
        ("isobmff", isobmff()),
        ("pcap", pcap(false)),
        ("pcap-be", pcap(true)),
        ("pcapng", pcapng(false)),
        ("pcapng-be", pcapng(true)),
        ("midi", midi()),
        ("wasm", wasm()),
        ("wasm", module(1)),
        ("wasm", module(5)),
        ("wasm", crate::modules::module()),
        (
            "gzip",
            [gzip(b"some text some text"), gzip(b"more")].concat(),
        ),
        ("zip", zip(&members)),
        ("tar", tar()),
        ("ar", crate::archives::library()),
        ("gif", gif()),
        ("jpeg", jpeg()),
        ("jpeg", crate::photos::photo()),
        ("flac", flac()),
        ("ogg", ogg()),
        ("elf", elf(true)),
        ("elf", elf(false)),
        ("macho", crate::programs::macho()),
        ("pe", crate::programs::pe()),
        ("sfnt", sfnt()),
        ("sfnt-cff", opentype(b"OTTO")),
        ("sfnt", crate::fonts::truetype()),
        ("cff", crate::fonts::cff()),
        (
            "sfnt-cff",
            sfnt_of(b"OTTO", &[(b"CFF ", &crate::fonts::cff()[..])]),
        ),
        ("tiff", tiff(false)),
        ("tiff-be", tiff(true)),
        ("zlib", zlib(b"compressed compressed compressed \xff")),
        ("der", der()),
        ("cbor", cbor()),
        ("messagepack", message_pack()),
        ("protobuf", protobuf()),
    ];
    all.extend(documents());
    all
}

/// Documents, databases, pictures and class files.
fn documents() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("pdf", crate::pdfs::pdf()),
        ("pdf", crate::pdfs::packed_pdf()),
        ("xz", crate::pictures::xz()),
        ("sqlite", crate::databases::database()),
        ("bmp", crate::pictures::bmp()),
        ("ico", crate::pictures::icon()),
        ("class", crate::classes::class()),
        ("bencode", crate::digits::bencode()),
        ("php", crate::digits::php()),
        ("counted", crate::digits::counted()),
        ("summed", crate::sums::counted_records()),
        ("summed", crate::sums::hex_records()),
        ("summed", crate::sums::block()),
    ]
}
