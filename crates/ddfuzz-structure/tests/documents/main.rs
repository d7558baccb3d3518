//! Files of every format: they are recognized, give themselves again, and lose parts without
//! becoming wrong; hostile ones do no harm.

mod archives;
mod classes;
mod databases;
mod digits;
mod fonts;
mod frames;
mod grammars;
mod hostile;
mod items;
mod large;
mod marks;
mod modules;
mod mutations;
mod objects;
mod pages;
mod pdfs;
mod photos;
mod pictures;
mod programs;
mod repairs;
mod samples;
mod searches;
mod sounds;
mod sums;

use std::sync::Arc;

use ddfuzz_delta::{Document, Structure};
use ddfuzz_structure::{structure_named, structure_names, structure_of};

/// Takes a text apart by the format that is recognized.
fn open(text: &[u8]) -> Option<Arc<dyn Document>> {
    match structure_of(text) {
        Structure::Format(format) => format.open(text),
        _ => None,
    }
}

#[test]
fn each_format_is_recognized_and_gives_its_text_again() {
    for (name, text) in samples::all() {
        let structure = structure_of(&text);
        assert_eq!(structure.name(), Some(name));
        let document = open(&text).expect("a document");
        assert_eq!(document.text(), text, "{name}");
        assert!(!document.parts().is_empty(), "{name} has no parts");
        let same = document.with(&document.payloads());
        assert_eq!(same.text(), text, "{name}");
        assert_eq!(document.without(&[]).text(), text, "{name}");
    }
}

#[test]
fn a_file_without_one_of_its_parts_is_a_file_of_its_format() {
    for (name, text) in samples::all() {
        let document = open(&text).expect("a document");
        let parts = document.parts();
        for (index, last) in parts.iter().enumerate() {
            let fewer = document.without(&[index]);
            // Parts of a directory go with the entry of another directory that refers to it.
            let left = parts.len() - (last - index);
            match name {
                "ar" | "jpeg" | "sfnt" | "tiff" | "tiff-be" | "pdf" | "sqlite" | "class" => {
                    assert!(fewer.parts().len() <= left, "{name}")
                }
                _ => assert_eq!(fewer.parts().len(), left, "{name}"),
            }
            let left = fewer.text();
            // What is no longer compressed may be larger.
            assert!(
                left.len() <= text.len() || name == "pdf",
                "{name} without {index}"
            );
            // What is left can be opened again, and its numbers agree: deleting another part gives
            // the same as deleting both at once.
            let same = |again: &Arc<dyn Document>| {
                let count = |one: &Arc<dyn Document>| (one.parts().len(), one.payloads().len());
                count(again) == count(&fewer)
            };
            let Some(again) = open(&left).filter(same) else {
                continue;
            };
            // What refers to a name that is gone refers to the one in its place, once opened again.
            let others = match name {
                "ar" | "elf" | "macho" | "pe" | "cff" | "sfnt" | "sfnt-cff" | "jpeg" | "wasm"
                | "class" | "pdf" => 0,
                _ => again.parts().len(),
            };
            for other in 0..others {
                let both = fewer.without(&[other]).text();
                assert_eq!(
                    again.without(&[other]).text(),
                    both,
                    "{name} without {index}, {other}"
                );
            }
        }
    }
}

#[test]
fn structures_have_names() {
    for name in structure_names() {
        let structure = structure_named(name).expect("a structure");
        assert_eq!(structure.name(), Some(name));
    }
    assert!(structure_named("no such format").is_none());
    assert_eq!(structure_of(b"a text\n").name(), Some("text"));
    assert_eq!(structure_of(b"").name(), Some("text"));
    let binary = structure_of(b"\x00\xff\x01 nothing known \xfe");
    assert_eq!(binary.name(), Some("binary"));
}
