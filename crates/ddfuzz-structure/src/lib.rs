//! The structure of inputs: which structure a text has, and documents of it that the searches of
//! `ddfuzz-delta` reduce.
//!
//! - In: a text, or a text and the name of a structure.
//! - Out: a [`Structure`], whose format parses texts and writes them again, with lengths, counts,
//!   offsets and checksums that agree.
//! - Central type: the tree of a file (`Node`, `Group`, `Number`), which is written by `render` and
//!   edited by `Container`.
//! - Reading order: `node.rs`, `number.rs`, `render.rs`, `container.rs`, `packed.rs`, `reader.rs`,
//!   `formats/table.rs`, and the other formats.
//!
//! Nothing here reads files, runs anything, or depends on more than the text. Work on a large file
//! can be interrupted; then it has no result.

mod base64;
mod columns;
mod compacted;
mod container;
mod formats;
mod functions;
mod grammar;
mod items;
mod language;
mod library;
mod mutation;
mod node;
mod number;
mod packed;
mod reader;
mod render;
mod runs;
mod sharing;
mod sum;

pub use functions::{Function, functions};
pub use mutation::{MutationParser, MutationSource, ParsedInput};

use std::sync::Arc;

use ddfuzz_delta::{Document, Format, Structure};

use crate::compacted::Compacted;
use crate::container::Container;
use crate::formats::Known;
use crate::grammar::TreeSitter;
use crate::language::KnownLanguage;
use crate::node::{Group, Node};
use crate::reader::Reader;
use crate::render::render;

pub use crate::library::{GrammarError, is_library, load_grammar};

/// Maximum size, in bytes, of files that are parsed by their format. For larger ones, writing a
/// candidate takes longer than most tests.
const LARGEST: usize = 1 << 24;

/// Number of bytes at the beginning of an input by which it is classified as text or binary.
const SAMPLE: usize = 4096;

/// A known file format, as the searches of `ddfuzz-delta` use it to parse an input.
struct KnownFormat(&'static Known);

impl Format for KnownFormat {
    fn name(&self) -> &str {
        self.0.name
    }

    fn open(&self, text: &[u8]) -> Option<Arc<dyn Document>> {
        let container = open(self.0, text)?;
        Some(Arc::new(container))
    }

    fn compact(&self, text: &[u8]) -> Option<Arc<dyn Document>> {
        let (loose, write) = self.0.compact()?(text)?;
        Compacted::around(self.open(&loose)?, write, text.len())
    }

    fn files(&self, text: &[u8]) -> Vec<Vec<u8>> {
        let is_file = |text: &&[u8]| Known::all().any(|known| known.is_signed(text));
        let stored = (1..text.len()).map(|start| &text[start..]);
        let stored = stored.filter(is_file).map(<[u8]>::to_vec);
        let mut contents = Vec::new();
        if let Some(file) = open(self.0, text) {
            list_contents(file.root(), &mut contents);
        }
        contents.retain(|content| is_file(&&content[..]));
        contents.into_iter().chain(stored).collect()
    }
}

/// Parses a file of the format `known`; `None` if it is not of this format, larger than 16 MiB, or
/// has no part that could be deleted.
fn open(known: &Known, text: &[u8]) -> Option<Container> {
    if text.len() > LARGEST {
        return None;
    }
    let mut reader = Reader::default();
    let nodes = known.read(&mut reader, text)?;
    let label = reader.label();
    Container::new(Group::new(label, nodes), text)
}

/// Appends to `contents` the decompressed content of each compressed node in `group`; compressed
/// nodes inside of such content are not decompressed.
fn list_contents(group: &Group, contents: &mut Vec<Vec<u8>>) {
    for node in &group.nodes {
        match node {
            Node::Group(inner) => list_contents(inner, contents),
            Node::Packed(packed) => contents.push(render(&packed.content).text),
            _ => {}
        }
    }
}

/// Returns the structure of an input, recognized by its content: a language or plain text, a file
/// format, or binary.
pub fn structure_of(text: &[u8]) -> Structure {
    let format_of = |known: &'static Known| Structure::Format(Arc::new(KnownFormat(known)));
    let signed = Known::all().filter(|known| known.signs(text));
    if let Some(known) = signed.into_iter().find(|known| open(known, text).is_some()) {
        return format_of(known);
    }
    let text_structure = || {
        let language = KnownLanguage::of(text).and_then(TreeSitter::new);
        language.map_or(Structure::Text, |grammar| {
            Structure::Syntax(Arc::new(grammar))
        })
    };
    let mut in_digits = Known::in_digits();
    if let Some(known) = in_digits.find(|known| open(known, text).is_some()) {
        return format_of(known);
    }
    if is_utf8(text) {
        return text_structure();
    }
    let known = Known::all().find(|known| open(known, text).is_some());
    match known {
        Some(known) => format_of(known),
        None if is_text(text) => text_structure(),
        None => Structure::Binary,
    }
}

/// Returns the name of the language whose files have the extension of the file name; `None` if no
/// known language has it, if the input is not a text, or if the text does not fit the language's
/// grammar.
pub fn language_of_file(name: &[u8], text: &[u8]) -> Option<&'static str> {
    is_text(text)
        .then(|| KnownLanguage::of_file_and_text(name, text))
        .flatten()
        .map(KnownLanguage::name)
}

/// Returns the structure with this name (`text`, `binary`, a language or a file format); `None` for
/// an unknown name.
pub fn structure_named(name: &str) -> Option<Structure> {
    match name {
        Structure::TEXT => return Some(Structure::Text),
        Structure::BINARY => return Some(Structure::Binary),
        _ => {}
    }
    if let Some(language) = KnownLanguage::named(name) {
        return Some(Structure::Syntax(Arc::new(TreeSitter::new(language)?)));
    }
    let known = Known::named(name)?;
    Some(Structure::Format(Arc::new(KnownFormat(known))))
}

/// Returns the names of all structures: `text`, `binary`, the languages and the file formats.
pub fn structure_names() -> impl Iterator<Item = &'static str> {
    [Structure::TEXT, Structure::BINARY]
        .into_iter()
        .chain(KnownLanguage::all().map(KnownLanguage::name))
        .chain(Known::all().map(|known| known.name))
}

/// How rare bytes beyond ASCII must be in data that is not UTF-8 for the data to count as text, in
/// an encoding such as Latin-1: at most one in this many bytes. With more of them, the data is
/// binary.
const BYTES_PER_FOREIGN: usize = 16;

/// Returns true if an input looks like text, by its first 4 KiB: they have no control characters
/// other than white space, and they are either UTF-8, or nearly all of their bytes are ASCII
/// ([`BYTES_PER_FOREIGN`]). Returns false for binary data.
fn is_text(text: &[u8]) -> bool {
    let sample = &text[..text.len().min(SAMPLE)];
    let foreign = sample.iter().filter(|byte| !byte.is_ascii()).count();
    is_utf8(text) || !has_control(sample) && foreign * BYTES_PER_FOREIGN <= sample.len()
}

/// Returns true if the first 4 KiB of an input are UTF-8 without control characters other than
/// white space.
fn is_utf8(text: &[u8]) -> bool {
    let sample = &text[..text.len().min(SAMPLE)];
    let is_utf8 = match std::str::from_utf8(sample) {
        Ok(_) => true,
        // The sample may end within a character.
        Err(error) => error.error_len().is_none(),
    };
    is_utf8 && !has_control(sample)
}

fn has_control(text: &[u8]) -> bool {
    let is_control = |byte: &u8| byte.is_ascii_control() && !byte.is_ascii_whitespace();
    text.iter().any(is_control)
}
