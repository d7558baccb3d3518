//! Files that are damaged, deep, or large: nothing panics, and what is opened gives itself again.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ddfuzz_delta::{Full, Grammar, Structure, SyntaxClass, SyntaxNode, SyntaxTree};
use flate2::{Compression, write::GzEncoder};

use ddfuzz_structure::{load_grammar, structure_named, structure_of};

use crate::searches::{reduce, reduce_by};
use crate::{open, samples};

/// A stream of numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end.max(1)
    }
}

/// Opens a text and does to the document what searches do.
fn exercise(text: &[u8], random: &mut Random) {
    let Some(document) = open(text) else {
        return;
    };
    assert_eq!(document.text(), text);
    let parts = document.parts().len();
    let mut gone = vec![random.below(parts), random.below(parts)];
    gone.sort_unstable();
    gone.dedup();
    let fewer = document.without(&gone);
    let mut payloads = fewer.payloads();
    let count = payloads.len();
    if let Some(payload) = payloads.get_mut(random.below(count)) {
        *payload = payload[..random.below(payload.len())].into();
    }
    fewer.with(&payloads).text();
    document.opaque().text();
    let tied = document.tied();
    if tied > 0 {
        document.without_tied(&[random.below(tied)]).text();
    }
    let regions = document.regions().len();
    let with = Some(random.below(regions)).filter(|_| random.below(2) > 0);
    if let Some(shared) = document.sharing(random.below(regions), with) {
        shared.without(&[random.below(shared.parts().len())]).text();
    }
    if let Some(repacked) = document.repacked() {
        repacked.without(&gone).text();
    }
}

/// Returns a copy of a text with a few bytes changed or deleted.
fn damaged(sample: &[u8], random: &mut Random) -> Vec<u8> {
    let mut text = sample.to_vec();
    for _ in 0..1 + random.below(4) {
        let at = random.below(text.len());
        match random.below(4) {
            0 => text[at] = random.below(256) as u8,
            1 => text[at] = [0, 0xff, 0x7f, 0x80][random.below(4)],
            2 => text.truncate(at + 1),
            _ => drop(text.remove(at)),
        }
        if text.is_empty() {
            text.push(0);
        }
    }
    text
}

#[test]
fn damaged_files_do_no_harm() {
    let mut random = Random(1);
    for (_, sample) in samples::all() {
        for _ in 0..150 {
            let text = damaged(&sample, &mut random);
            exercise(&text, &mut random);
        }
    }
}

/// Writes a text anew, and does to the document what searches do: what is left can be written anew,
/// too, as the same text.
fn exercise_compact(text: &[u8], random: &mut Random) -> bool {
    let Some(Structure::Format(format)) = structure_named("sqlite") else {
        panic!("a known format");
    };
    let Some(document) = format.compact(text) else {
        return false;
    };
    let written = document.text();
    assert!(written.len() <= text.len());
    let again = format.compact(&written).expect("what was written is read");
    assert_eq!(again.text(), written);
    let parts = document.parts().len();
    let tied = document.tied();
    document.without(&[random.below(parts)]).text();
    document.without_tied(&[random.below(tied)]).text();
    let mut payloads = document.payloads();
    let count = payloads.len();
    if let Some(payload) = payloads.get_mut(random.below(count)) {
        *payload = payload[..random.below(payload.len())].into();
    }
    document.with(&payloads).text();
    true
}

#[test]
fn damaged_databases_are_written_anew_or_left_alone() {
    let mut random = Random(5);
    let (mut slowest, mut written) = (std::time::Duration::ZERO, 0);
    for sample in crate::databases::samples() {
        for _ in 0..150 {
            let text = damaged(&sample, &mut random);
            let begin = std::time::Instant::now();
            written += usize::from(exercise_compact(&text, &mut random));
            slowest = slowest.max(begin.elapsed());
        }
    }
    assert!(written > 100, "{written}");
    // Each takes less than a millisecond where nothing else is done.
    assert!(slowest.as_secs() < 10, "{slowest:?}");
}

#[test]
fn deep_files_stay_within_the_stack() {
    let mut random = Random(2);
    for (front, times) in [
        (&b"\x30\x80"[..], 100_000),
        (b"\x30\x84\x7f\xff\xff\xff", 100_000),
        (b"\x81", 100_000),
        (b"\x91", 100_000),
        (b"\x9f", 100_000),
        (b"\xc1", 100_000),
        (b"\x0a\x7f", 100_000),
        (b"\xdd\xff\xff\xff\xff", 20_000),
    ] {
        exercise(&front.repeat(times), &mut random);
    }
    // Nested items whose lengths are right.
    let mut text = vec![0x02, 0x01, 0x07];
    for _ in 0..2_000 {
        let length = text.len() as u32;
        let mut around = vec![0x30, 0x84];
        around.extend(length.to_be_bytes());
        around.extend(text);
        text = around;
    }
    exercise(&text, &mut random);
}

#[test]
fn streams_that_hold_much_more_than_they_take_are_left_packed() {
    let gzip = |bytes: &[u8]| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    // 24 times 4 MiB, in one stream.
    let text = gzip(&gzip(&vec![0; 4 << 20]).repeat(24));
    assert!(text.len() < 8_000);
    let document = open(&text).unwrap();
    assert_eq!(document.text(), text);
    let opened: usize = document
        .payloads()
        .iter()
        .map(|payload| payload.len())
        .sum();
    assert!(opened <= (16 << 20) + (4 << 12) * 24, "{opened}");
    exercise(&text, &mut Random(4));
}

#[test]
fn many_parts_are_bounded() {
    let mut random = Random(3);
    let mut gif = b"GIF89a\x02\0\x02\0\0\0\0".to_vec();
    gif.extend(b"\x21\xfe\0".repeat(100_000));
    exercise(&gif, &mut random);
    exercise(
        &[b"\x9f".to_vec(), vec![1; 200_000], b"\xff".to_vec()].concat(),
        &mut random,
    );
}

#[test]
fn large_texts_are_judged_by_their_beginning() {
    // 100 MB of a program, and the same with a binary second half: neither is parsed.
    let line = b"int f(int a) { return a + 1; }\n";
    let mut text = line.repeat(100_000_000 / line.len());
    assert_eq!(structure_of(&text).name(), Some("text"));
    let half = text.len() / 2;
    text[half..].fill(0xff);
    assert_eq!(structure_of(&text).name(), Some("text"));
    text[0] = 0;
    assert_eq!(structure_of(&text).name(), Some("binary"));
}

#[test]
fn texts_that_end_in_binary_are_reduced() {
    let mut text = b"int f(int a) { return g(a + 1); }\n".repeat(40);
    text.extend((0..2000u32).map(|index| ((index * 7919) >> 3) as u8));
    let fails = |text: &[u8]| {
        let has = |wanted: &[u8]| text.windows(wanted.len()).any(|bytes| bytes == wanted);
        has(b"g(a") && text.contains(&0xfe)
    };
    let reduced = reduce(&text, &fails, false);
    assert_eq!(reduced.text.len(), 4);
}

#[test]
fn deep_nests_and_invalid_utf8_are_parsed_or_left() {
    // More brackets than any language is recognized by, but a grammar can be chosen by its name.
    let deep = "[".repeat(100_000) + "1" + &"]".repeat(100_000);
    let Some(Structure::Syntax(grammar)) = structure_named("json") else {
        panic!("json");
    };
    grammar.parse(deep.as_bytes());
    let mut text = b"int one(int a) { return a; }\n".repeat(20);
    for at in (5..text.len()).step_by(97) {
        text[at] = 0xc3;
    }
    let fails = |text: &[u8]| text.contains(&0xc3) && text.windows(3).any(|it| it == b"one");
    assert_eq!(reduce(&text, &fails, false).text.len(), 4);
}

#[test]
fn texts_in_other_encodings_are_texts() {
    let one =
        |at: usize| format!("int f{at}(int a) {{ // na_ve\n  return g{at}(a);\n}}\n").into_bytes();
    let mut text: Vec<u8> = (0..40).flat_map(one).collect();
    // As in Latin-1.
    text.iter_mut()
        .filter(|byte| **byte == b'_')
        .for_each(|byte| *byte = 0xef);
    assert_eq!(structure_of(&text).name(), Some("c"));
    let fails = |text: &[u8]| {
        let count = |sign: u8| text.iter().filter(|byte| **byte == sign).count();
        text.windows(4).any(|bytes| bytes == b"g17(") && count(b'{') == count(b'}')
    };
    assert_eq!(reduce(&text, &fails, true).text, b"g17(");
    // The same as a text without a grammar: as many tests as of the text in ASCII.
    let ascii: Vec<u8> = text.iter().map(|byte| byte & 0x7f).collect();
    let [one, other] = [&text, &ascii].map(|text| {
        let search = Full::structured(text, Structure::Text);
        reduce_by(Box::new(search), text, &fails, true)
    });
    assert_eq!(one.text, b"g17(");
    assert_eq!((one.text, one.tests), (other.text, other.tests));
}

#[test]
fn deep_and_half_binary_texts_are_reduced_in_few_tests() {
    let deep = |open: &str, close: &str| open.repeat(100_000) + "7" + &close.repeat(100_000);
    let mut half = b"int f(int a) { return g(a + 1); }\n".repeat(1_000);
    half.extend((0..30_000u32).map(|index| (index.wrapping_mul(2_654_435_761) >> 13) as u8 & !1));
    half.push(b'7');
    for text in [
        deep("<a>", "</a>").into_bytes(),
        deep("(", ")").into_bytes(),
        deep("[", "]").into_bytes(),
        deep("{", "}").into_bytes(),
        half,
    ] {
        let reduced = reduce(&text, &|text| text.contains(&b'7'), false);
        assert_eq!(reduced.text, b"7");
        assert!(reduced.tests <= 60, "{} tests", reduced.tests);
    }
}

/// A grammar that sees nodes that are not there, or parses nothing.
struct Lying {
    calls: AtomicU64,
}

impl Grammar for Lying {
    fn name(&self) -> &str {
        "lying"
    }

    fn parse(&self, text: &[u8]) -> Option<SyntaxTree> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        let mut random = Random(text.len() as u64 ^ call);
        let mut tree = SyntaxTree {
            errors: random.below(5),
            ..SyntaxTree::default()
        };
        let count = 1 + random.below(40);
        for index in 0..count {
            let start = random.below(text.len() + 1);
            let end = start + random.below(text.len() + 1 - start);
            tree.nodes.push(SyntaxNode {
                place: if index == 0 {
                    0..text.len()
                } else {
                    start..end
                },
                kind: random.below(4) as u16,
                class: [
                    SyntaxClass::Other,
                    SyntaxClass::Number,
                    SyntaxClass::Identifier,
                ][random.below(3)],
                parent: (index > 0).then_some(0),
                last: if index == 0 { count } else { index + 1 },
            });
        }
        (call % 7 != 6).then_some(tree)
    }
}

#[test]
fn a_lying_grammar_costs_tests_and_no_truth() {
    let text = b"some (text) with {brackets}; and [words] = 1\n".repeat(8);
    let fails = |text: &[u8]| text.windows(4).any(|it| it == b"word") && text.contains(&b'{');
    let grammar = Arc::new(Lying {
        calls: AtomicU64::new(0),
    });
    let search = Full::structured(&text, Structure::Syntax(grammar));
    let reduced = reduce_by(Box::new(search), &text, &fails, false);
    assert_eq!(reduced.text.len(), 5, "{:?}", reduced.text);
}

#[test]
fn files_without_a_grammar_are_not_loaded() {
    let folder = std::env::temp_dir().join(format!("ddfuzz-grammars-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let text = folder.join("lua.so");
    std::fs::write(&text, "no library ".repeat(100)).expect("a file");
    for (path, why) in [
        (text, "invalid ELF header"),
        (folder.join("missing.so"), "No such file"),
        (folder.join(".so"), "its name"),
        (folder.clone(), ""),
    ] {
        let error = load_grammar(&path).expect_err("no grammar").to_string();
        assert!(
            error.contains(why) && error.contains(&path.display().to_string()),
            "{error}"
        );
    }
    assert!(structure_named("lua").is_none() || cfg!(feature = "grammars"));
    std::fs::remove_dir_all(&folder).expect("it was there");
}
