//! The list of known file formats, and the choice of the one that a text has.

mod ar;
mod archive;
mod armor;
mod bitmap;
mod cff;
mod class;
mod counted;
mod elf;
mod font;
mod font_tables;
mod glyphs;
mod hex_lines;
mod icc;
mod image;
mod item;
mod jpeg;
mod layout;
mod macho;
mod object;
mod packet;
mod pdf;
mod pdf_streams;
mod pdf_tables;
mod pdf_values;
mod pe;
mod regions;
mod sqlite;
mod sqlite_cells;
mod sqlite_layout;
mod sqlite_statements;
mod subtables;
mod sum_places;
mod summed;
mod table;
mod tiff;
mod wasm;
mod xz;

use std::ops::Range;

pub use packet::packet;

use crate::compacted::Compact;
use crate::node::Node;
use crate::reader::{Field, Reader};

/// A known file format: its name, and how it is recognized and read.
pub struct Known {
    /// Name of the format in options such as `--grammar` and in logs, for example `png`.
    pub name: &'static str,
    /// Magic bytes that each file of the format has, with their offsets in the file.
    magic: &'static [(usize, &'static [u8])],
    read: How,
}

/// How a format is read: by a table of its fields or by a function, perhaps with a second function
/// that rewrites a file in fewer bytes.
enum How {
    /// The format is read by a description of its fields.
    Table(&'static [Field]),
    /// The format is read by this function, because its records refer to each other, or no number
    /// states a length. The function returns `None` for a text of another format.
    Function(fn(&mut Reader, &[u8]) -> Option<Vec<Node>>),
    /// The first function reads the format, and returns `None` for a text of another format. The
    /// second one rewrites a file of the format with the same content in as few bytes as possible.
    Compacted(fn(&mut Reader, &[u8]) -> Option<Vec<Node>>, Compact),
}

/// The formats that are recognized by their magic bytes; a format precedes more general ones that
/// fit its files, too.
static KNOWN: &[Known] = &[
    Known {
        name: "png",
        magic: &[(0, b"\x89PNG\r\n\x1a\n")],
        read: How::Table(table::PNG),
    },
    Known {
        name: "riff",
        magic: &[(0, b"RIFF")],
        read: How::Table(table::RIFF),
    },
    Known {
        name: "iff",
        magic: &[(0, b"FORM")],
        read: How::Table(table::IFF),
    },
    Known {
        name: "isobmff",
        magic: &[(4, b"ftyp")],
        read: How::Table(table::BOXES),
    },
    Known {
        name: "pcap",
        magic: &[(0, b"\xd4\xc3\xb2\xa1")],
        read: How::Table(table::PCAP_LITTLE),
    },
    Known {
        name: "pcap-be",
        magic: &[(0, b"\xa1\xb2\xc3\xd4")],
        read: How::Table(table::PCAP_BIG),
    },
    Known {
        name: "pcapng",
        magic: &[(0, b"\n\r\r\n"), (8, b"\x4d\x3c\x2b\x1a")],
        read: How::Table(table::PCAPNG_LITTLE),
    },
    Known {
        name: "pcapng-be",
        magic: &[(0, b"\n\r\r\n"), (8, b"\x1a\x2b\x3c\x4d")],
        read: How::Table(table::PCAPNG_BIG),
    },
    Known {
        name: "midi",
        magic: &[(0, b"MThd")],
        read: How::Table(table::MIDI),
    },
    Known {
        name: "wasm",
        magic: &[(0, b"\0asm")],
        read: How::Function(wasm::wasm),
    },
    Known {
        name: "gzip",
        magic: &[(0, b"\x1f\x8b\x08")],
        read: How::Function(archive::gzip),
    },
    Known {
        name: "xz",
        magic: &[(0, xz::HEAD)],
        read: How::Function(xz::xz),
    },
    Known {
        name: "zip",
        magic: &[(0, b"PK\x03\x04")],
        read: How::Function(archive::zip),
    },
    Known {
        name: "tar",
        magic: &[(257, b"ustar")],
        read: How::Function(archive::tar),
    },
    Known {
        name: "ar",
        magic: &[(0, b"!<arch>\n")],
        read: How::Function(ar::ar),
    },
    Known {
        name: "pdf",
        magic: &[(0, b"%PDF-")],
        read: How::Function(pdf::pdf),
    },
    Known {
        name: "sqlite",
        magic: &[(0, sqlite::SIGNATURE)],
        read: How::Compacted(sqlite::sqlite, sqlite_layout::compact),
    },
    Known {
        name: "bmp",
        magic: &[(0, b"BM")],
        read: How::Function(bitmap::bmp),
    },
    Known {
        name: "ico",
        magic: &[(0, b"\0\0\x01\0")],
        read: How::Function(bitmap::icon),
    },
    Known {
        name: "cur",
        magic: &[(0, b"\0\0\x02\0")],
        read: How::Function(bitmap::icon),
    },
    Known {
        name: "gif",
        magic: &[(0, b"GIF8")],
        read: How::Function(image::gif),
    },
    Known {
        name: "jpeg",
        magic: &[(0, b"\xff\xd8\xff")],
        read: How::Function(jpeg::jpeg),
    },
    Known {
        name: "flac",
        magic: &[(0, b"fLaC")],
        read: How::Function(image::flac),
    },
    Known {
        name: "ogg",
        magic: &[(0, b"OggS")],
        read: How::Function(image::ogg),
    },
    Known {
        name: "elf",
        magic: &[(0, b"\x7fELF")],
        read: How::Function(elf::elf),
    },
    Known {
        name: "class",
        magic: &[(0, class::SIGNATURE)],
        read: How::Function(class::class),
    },
    Known {
        name: "macho",
        magic: &[(1, b"\xfa\xed\xfe")],
        read: How::Function(macho::macho),
    },
    Known {
        name: "pe",
        magic: &[(0, b"MZ")],
        read: How::Function(pe::pe),
    },
    Known {
        name: "sfnt",
        magic: &[(0, b"\0\x01\0\0")],
        read: How::Function(font::sfnt),
    },
    Known {
        name: "sfnt-cff",
        magic: &[(0, b"OTTO")],
        read: How::Function(font::sfnt),
    },
    Known {
        name: "sfnt-mac",
        magic: &[(0, b"true")],
        read: How::Function(font::sfnt),
    },
    Known {
        name: "cff",
        magic: &[(0, b"\x01\0")],
        read: How::Function(cff::bare),
    },
    Known {
        name: "tiff",
        magic: &[(0, b"II*\0")],
        read: How::Function(tiff::tiff),
    },
    Known {
        name: "tiff-be",
        magic: &[(0, b"MM\0*")],
        read: How::Function(tiff::tiff),
    },
    Known {
        name: "icc",
        magic: &[(36, b"acsp")],
        read: How::Function(icc::icc),
    },
    Known {
        name: "zlib",
        magic: &[],
        read: How::Function(archive::zlib),
    },
];

/// The formats in which checksums, or sizes of strings, are written in digits. They have no magic
/// bytes, and are tried in this order.
static DIGITS: &[Known] = &[
    Known {
        name: "summed",
        magic: &[],
        read: How::Function(summed::summed),
    },
    Known {
        name: "bencode",
        magic: &[],
        read: How::Function(counted::bencode),
    },
    Known {
        name: "php",
        magic: &[],
        read: How::Function(counted::php),
    },
    Known {
        name: "counted",
        magic: &[],
        read: How::Function(counted::counted),
    },
];

/// The formats of nested items without magic bytes, in the order in which they are tried; each must
/// be readable to the end of the text.
static ITEMS: &[Known] = &[
    Known {
        name: "der",
        magic: &[(0, b"\x30")],
        read: How::Function(item::der),
    },
    Known {
        name: "cbor",
        magic: &[],
        read: How::Function(item::cbor),
    },
    Known {
        name: "messagepack",
        magic: &[],
        read: How::Function(item::message_pack),
    },
    Known {
        name: "protobuf",
        magic: &[],
        read: How::Function(item::protobuf),
    },
];

impl Known {
    /// Returns the known file format of this name; `None` for an unknown name.
    pub fn named(name: &str) -> Option<&'static Known> {
        Known::all().find(|known| known.name == name)
    }

    /// Returns all known file formats, in the order in which they are tried.
    pub fn all() -> impl Iterator<Item = &'static Known> {
        KNOWN.iter().chain(ITEMS).chain(DIGITS)
    }

    /// Returns the formats in which checksums, or sizes of strings, are written in digits; a text of
    /// such a format is readable as plain text, too.
    pub fn in_digits() -> impl Iterator<Item = &'static Known> {
        DIGITS.iter()
    }

    /// Returns true if this format has a signature of at least 5 bytes that is readable text, and
    /// `text` begins with it: such a text is surely a file of the format, not another text.
    pub fn signs(&self, text: &[u8]) -> bool {
        let is_text = |bytes: &[u8]| bytes.len() >= 5 && bytes.is_ascii() && !bytes.contains(&0);
        let is_signed =
            |(at, bytes): &(usize, &[u8])| *at == 0 && is_text(bytes) && text.starts_with(bytes);
        self.magic.iter().any(is_signed)
    }

    /// Returns the function that rewrites a file of this format with the same content in as few
    /// bytes as possible (see [`Compact`]); `None` if the format has no such function.
    pub fn compact(&self) -> Option<Compact> {
        match self.read {
            How::Compacted(_, compact) => Some(compact),
            How::Table(_) | How::Function(_) => None,
        }
    }

    /// Returns true if a text has all magic bytes of this format; true also if the format has none.
    fn has_magic(&self, text: &[u8]) -> bool {
        self.magic.iter().all(|(at, bytes)| {
            let rest = text.get(*at..).unwrap_or_default();
            rest.starts_with(bytes)
        })
    }

    /// Returns true if the text has the magic bytes of this format, and at least [`SIGNED`] of
    /// these bytes are not 0, so that they are hardly there by chance.
    pub fn is_signed(&self, text: &[u8]) -> bool {
        let signs = self.magic.iter().flat_map(|(_, bytes)| bytes.iter());
        signs.filter(|byte| **byte != 0).count() >= SIGNED && self.has_magic(text)
    }

    /// Reads a text into the nodes of its tree; `None` if it is not of this format.
    pub fn read(&self, reader: &mut Reader, text: &[u8]) -> Option<Vec<Node>> {
        if !self.has_magic(text) {
            return None;
        }
        match self.read {
            How::Table(fields) => reader.table(fields, text),
            How::Function(read) | How::Compacted(read, _) => read(reader, text),
        }
    }
}

/// Returns the tree nodes of all bytes of `text` from offset `from` on: the nodes of `regions`,
/// which come with their ranges in ascending order, and payloads (changeable bytes) for the bytes
/// between and after them. `None` if two regions overlap.
fn with_gaps(
    text: &[u8],
    mut from: usize,
    regions: impl IntoIterator<Item = (Range<usize>, Node)>,
) -> Option<Vec<Node>> {
    let mut nodes = Vec::new();
    for (place, node) in regions {
        let gap = text.get(from..place.start)?;
        nodes.extend((!gap.is_empty()).then(|| Node::payload(gap)));
        nodes.push(node);
        from = place.end;
    }
    let rest = text.get(from..).unwrap_or_default();
    nodes.extend((!rest.is_empty()).then(|| Node::payload(rest)));
    Some(nodes)
}

/// Maximum number of bytes that may precede a file inside of a payload (changeable bytes), such as
/// a name of its format.
const PREFIX: usize = 32;
/// Minimum number of magic bytes, not counting zeros, for a file to be recognized behind the
/// beginning of a payload (changeable bytes).
const SIGNED: usize = 3;

/// Reads `bytes`, a payload (changeable bytes) of a file, as a file of a known format inside of
/// that file. Up to [`PREFIX`] bytes may precede it. `None` if no format with magic bytes, and none
/// with sizes in digits, fits.
pub fn nested(reader: &mut Reader, bytes: &[u8]) -> Option<Vec<Node>> {
    let read = |reader: &mut Reader, start: usize, known: &Known| {
        let is_signed = match start {
            0 => !known.magic.is_empty(),
            _ => known.is_signed(&bytes[start..]),
        };
        let file = is_signed.then(|| known.read(reader, &bytes[start..]))??;
        let before = (start > 0).then(|| Node::payload(&bytes[..start]));
        Some(before.into_iter().chain(file).collect())
    };
    let starts = 0..bytes.len().min(PREFIX);
    let signed = starts
        .into_iter()
        .find_map(|start| KNOWN.iter().find_map(|known| read(reader, start, known)));
    signed.or_else(|| DIGITS.iter().find_map(|known| known.read(reader, bytes)))
}
