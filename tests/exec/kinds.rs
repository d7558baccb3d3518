//! Inputs of many kinds, always the same for a number.

use std::path::Path;

use crate::stream::stream;

/// How many kinds there are.
const KINDS: u64 = 12;

/// `count` inputs from number `first` on. Any twelve in a row have all kinds among them.
pub fn of_all_kinds(first: u64, count: u64) -> impl Iterator<Item = Vec<u8>> {
    (first..first + count).map(of_kind)
}

fn of_kind(number: u64) -> Vec<u8> {
    let seed = number / KINDS;
    let bytes = stream(number, ((seed * seed * 7 + number) % 3000) as usize);
    let letters = |range: &'static [u8]| {
        let bytes = bytes.iter();
        bytes.map(move |byte| range[usize::from(*byte) % range.len()])
    };
    match number % KINDS {
        0 => edge(seed),
        1 => bytes,
        2 => bytes.iter().map(|byte| b' ' + byte % 95).collect(),
        3 => letters(b"abc abd 0123\n").collect(),
        4 => letters(b"0123456789+-*/.,()\n").collect(),
        5 => letters(b"a_\x08 \t\r\n\x0c\x1b789").collect(),
        6 => letters(b"{}[]<>\"'\\#$%&|;:=/\n").collect(),
        7 => [&vec![b'x'; 200 + bytes.len()][..], b"\nend\n"].concat(),
        8 => bytes.iter().flat_map(|byte| letter(*byte)).collect(),
        9 => words(&bytes),
        10 => seed_of_a_corpus(seed as usize),
        _ => mutated(seed_of_a_corpus(seed as usize), &bytes),
    }
}

/// What programs get wrong.
fn edge(which: u64) -> Vec<u8> {
    let cases: [&[u8]; 8] = [
        b"",
        b"\n",
        b"\0",
        b"x",
        b"\xff\xfe\n",
        b"no newline at the end",
        b"\r\n\r\n",
        b"\n\n\n\0\n\0",
    ];
    cases[which as usize % cases.len()].to_vec()
}

/// UTF-8 of one to four bytes.
fn letter(byte: u8) -> Vec<u8> {
    let found = match byte % 5 {
        0 => '\n',
        1 => 'é',
        2 => '漢',
        3 => '😀',
        _ => char::from(b'a' + byte % 26),
    };
    found.to_string().into_bytes()
}

/// Lines of words and numbers, as of a sorted list.
fn words(bytes: &[u8]) -> Vec<u8> {
    let line = |byte: &u8| format!("{} word{} {}\n", byte % 7, byte % 31, byte);
    bytes.iter().map(line).collect::<String>().into_bytes()
}

/// The seeds of the bundled targets (`corpora/`), in the order of their names.
fn seed_of_a_corpus(number: usize) -> Vec<u8> {
    static SEEDS: std::sync::LazyLock<Vec<Vec<u8>>> = std::sync::LazyLock::new(|| {
        let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpora");
        let listed = |folder: &Path| {
            let entries = std::fs::read_dir(folder).unwrap().flatten();
            let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
            paths.sort();
            paths
        };
        let corpora = listed(&corpora).into_iter();
        let seeds = corpora
            .map(|corpus| corpus.join("seeds"))
            .filter(|seeds| seeds.is_dir())
            .flat_map(|seeds| listed(&seeds));
        seeds.map(|seed| std::fs::read(seed).unwrap()).collect()
    });
    SEEDS[number % SEEDS.len()].clone()
}

/// Some bytes of `input` replaced.
fn mutated(mut input: Vec<u8>, by: &[u8]) -> Vec<u8> {
    for pair in by.chunks_exact(2).take(8) {
        if let Some(length) = input.len().checked_sub(1) {
            input[usize::from(pair[0]) * length / 255] = pair[1];
        }
    }
    input
}
