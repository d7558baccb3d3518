//! Reproducers in other forms, as text.

use ddfuzz::exec::{Ended, Limits};
use ddfuzz::report::export::{Input, Reproducer, base64, c_array, hexdump, rust_call_test};
use ddfuzz::store::Kind;
use ddfuzz::triage::Class;

fn group(input: &[u8]) -> Reproducer {
    Reproducer {
        kind: Kind::Crash,
        major: "0123456789ab".to_owned(),
        class: Class("asan:heap-buffer-overflow".to_owned()),
        place: Some("parse at a.c:1\n*/ \\".to_owned()),
        input: input.to_vec(),
        ended: Ended::Exit(1),
        of_descendant: false,
        limits: Limits::default(),
        sanitizers: vec!["address".to_owned()],
        debug_assertions: false,
        trap: None,
        minimal_runtime: false,
    }
}

/// The bytes of the literal, read as rustc reads it.
fn read(text: &str) -> Vec<u8> {
    let literal: proc_macro2::Literal = text.parse().expect("a literal");
    let text = literal.to_string();
    let inside = text.strip_prefix("b\"").unwrap().strip_suffix('"').unwrap();
    let mut bytes = Vec::new();
    let mut rest = inside.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'\\' {
            bytes.push(*first);
            continue;
        }
        let escape = rest[0];
        rest = &rest[1..];
        match escape {
            b'n' => bytes.push(b'\n'),
            b'r' => bytes.push(b'\r'),
            b't' => bytes.push(b'\t'),
            b'x' => {
                let digits = std::str::from_utf8(&rest[..2]).unwrap();
                bytes.push(u8::from_str_radix(digits, 16).unwrap());
                rest = &rest[2..];
            }
            b'\n' => rest = rest.trim_ascii_start(),
            other => bytes.push(other),
        }
    }
    bytes
}

#[test]
fn every_byte_survives_a_literal_of_rust() {
    let all: Vec<u8> = (0..=255).cycle().take(2000).collect();
    let blanks = b"   \n   \n\t\t\n  x \\\n \" ".repeat(20);
    for bytes in [&all[..], &blanks, b"", b" ", b"\\"] {
        let text = rust_call_test(&group(bytes), Input::Inline(bytes), "f(INPUT)");
        let begin = text.find("= b\"").unwrap() + 2;
        let end = text.find(";\n\n#[test]").unwrap();
        assert_eq!(read(&text[begin..end]), bytes, "{text}");
        assert!(text.lines().all(|line| line.len() < 110), "{text}");
    }
}

#[test]
fn a_test_of_a_call_has_the_limit_of_a_hang_and_the_sanitizer_of_a_report() {
    let of_asan = rust_call_test(&group(b"x"), Input::Inline(b"x"), "f(INPUT)");
    assert!(
        of_asan.contains("lacking(Path::new(\"/proc/self/exe\"))"),
        "{of_asan}"
    );
    // The test's own file has the texts that are looked for only if it is compiled so.
    assert!(of_asan.contains("tini_nasa__\""), "{of_asan}");
    assert!(!of_asan.contains("__asan_init"), "{of_asan}");
    let hang = Reproducer {
        kind: Kind::Hang,
        class: Class("hang".to_owned()),
        sanitizers: Vec::new(),
        ..group(b"x")
    };
    let of_hang = rust_call_test(&hang, Input::Inline(b"x"), "f(INPUT)");
    assert!(of_hang.contains("recv_timeout(limit)"), "{of_hang}");
    assert!(!of_hang.contains("lacking"), "{of_hang}");
}

#[test]
fn a_group_has_a_name_in_every_language() {
    let text = rust_call_test(&group(b"x"), Input::File("x.bin"), " f(INPUT) ");
    assert!(text.contains("fn group_0123456789ab_asan_heap_buffer_overflow() {\n"));
    assert!(text.contains("include_bytes!(\"x.bin\")"));
    assert!(text.contains("let _ = f(INPUT);"));
    // No place, however it is called, ends a comment or goes on with it.
    let first = text.lines().next().unwrap();
    assert!(
        first.starts_with("// ") && !first.ends_with('\\'),
        "{first}"
    );
    assert_eq!(text.lines().nth(1), Some(""));
}

#[test]
fn an_empty_input_is_an_array_of_c_too() {
    let text = c_array(&group(b""));
    assert!(
        text.contains("{\n    0x00,") && text.contains("_size = 0;"),
        "{text}"
    );
}

#[test]
fn long_inputs_are_wrapped() {
    let text = base64(&[b'a'; 100]);
    let lengths: Vec<usize> = text.lines().map(str::len).collect();
    assert_eq!(lengths, [76, 60]);
    let dump = hexdump(&[0xff; 17]);
    assert_eq!(dump.lines().count(), 3);
    assert!(dump.contains("00000010  ff  "), "{dump}");
}
