//! Texts behind a length and a checksum in a binary file: they are reduced by their own grammar.

use ddfuzz_delta::{Full, Structure};
use ddfuzz_structure::structure_of;

use crate::samples::crc32;
use crate::searches::reduce_by;

/// A file of a text behind a sign, its length and its CRC-32.
fn file_of(text: &[u8]) -> Vec<u8> {
    let (length, sum) = (text.len() as u32, crc32(text));
    [b"CKS1", &length.to_le_bytes()[..], &sum.to_le_bytes(), text].concat()
}

/// JSON without white space: lists and objects, with a key that is three objects deep.
fn json(items: usize) -> Vec<u8> {
    let item = |at: usize| {
        format!(
            r#"{{"k{at}":[{},"s{}"],"m":{{"n":"t{at}"}}}}"#,
            at * 7,
            at * 3
        )
    };
    let mut all: Vec<String> = (0..items).map(item).collect();
    all.insert(
        items / 2,
        r#"{"a":{"b":{"boom":12345,"c":[1]}}}"#.to_owned(),
    );
    format!("[{}]", all.join(",")).into_bytes()
}

/// Reads objects and lists up to a key `boom`, as deep as `depth` says, and returns whether it was
/// found; what stands behind it need not be JSON.
fn booms(text: &[u8]) -> bool {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        match text[at] {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            b'"' => {
                let Some(len) = text[at + 1..].iter().position(|byte| *byte == b'"') else {
                    return false;
                };
                let (word, rest) = (&text[at + 1..at + 1 + len], &text[at + len + 2..]);
                if word == b"boom" && depth >= 3 && rest.starts_with(b":1") {
                    return true;
                }
                at += len + 1;
            }
            byte if byte.is_ascii_alphabetic() || byte.is_ascii_control() => return false,
            _ => {}
        }
        at += 1;
    }
    false
}

#[test]
fn json_behind_its_length_and_checksum_is_reduced_by_its_grammar() {
    let fails = |file: &[u8]| {
        let text = file.get(12..).unwrap_or_default();
        file == file_of(text) && booms(text)
    };
    for items in [40, 250, 5000] {
        let file = file_of(&json(items));
        assert_eq!(structure_of(&file).name(), Some(Structure::BINARY));
        let search = Full::nested(&file, structure_of(&file), structure_of);
        let reduced = reduce_by(Box::new(search), &file, &fails, false);
        let text = String::from_utf8_lossy(&reduced.text[12..]).into_owned();
        assert!(text.len() <= 13, "{items} items: {text}");
    }
}
