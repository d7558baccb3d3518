//! Dictionaries in AFL's format.

use ddfuzz::campaign::dictionary::{self, Malformed, parse};
use ddfuzz::campaign::{Source, Words};
use ddfuzz::exec::bundled;

#[test]
fn names_levels_comments_and_escapes_are_those_of_afl() {
    let text = b"# a comment\n\nkeyword=\"abc\"\n  spaced = \"a b\" \r\nlevel@2=\"x\\x41\\\\\\\"\"\n\"bare\"\n\
                 hash=\"#\"\nequals=\"=\"\nraw=\"\xff\"\nlines=\"\\n\\r\\t\"\nlast=\"\\x00\\xfF\"";
    let expected: [&[u8]; 9] = [
        b"abc", b"a b", b"xA\\\"", b"bare", b"#", b"=", b"\xff", b"\n\r\t", b"\0\xff",
    ];
    assert_eq!(parse(text).unwrap(), expected);
}

#[test]
fn a_line_that_is_none_is_named_by_its_number() {
    for (line, expected) in [
        (&b"word"[..], Malformed::NoValue),
        (b"name=value", Malformed::NoValue),
        (b"name=\"value", Malformed::Open),
        (b"\"", Malformed::Open),
        (b"name=\"value\\\"", Malformed::Open),
        (b"name=\"a\"b\"", Malformed::TrailingText),
        (b"name=\"a\" # not here", Malformed::TrailingText),
        (b"name \"a\"", Malformed::Name),
        (b"=\"a\"", Malformed::Name),
        (b"name=\"\\q\"", Malformed::Escape),
        (b"name=\"\\x4\"", Malformed::Escape),
        (b"name=\"\\xg0\"", Malformed::Escape),
        (b"name=\"\"", Malformed::Empty),
    ] {
        let text = [b"# first\ngood=\"x\"\n", line, b"\nbad\n"].concat();
        assert_eq!(parse(&text), Err((3, expected)), "{}", line.escape_ascii());
    }
    let long = [b"\"", &[b'x'; 129][..], b"\""].concat();
    assert_eq!(parse(&long), Err((1, Malformed::TooLong)));
}

#[test]
fn errors_name_the_file_and_the_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("words.dict");
    std::fs::write(&path, "a=\"b\"\n\nc=\"d\n").unwrap();
    let error = dictionary::read(&path).unwrap_err().to_string();
    let expected = format!(
        "the dictionary {}, line 3: the value has no closing quote",
        path.display()
    );
    assert_eq!(error, expected);
    let error = dictionary::read(folder.path()).unwrap_err().to_string();
    assert!(error.ends_with("it is a directory, not a file"), "{error}");
}

#[test]
fn every_bundled_dictionary_is_one() {
    for name in bundled::names() {
        let words = parse(bundled::dictionary(name).unwrap()).unwrap();
        assert!(words.len() >= 5, "{name}");
    }
    assert_eq!(bundled::dictionary("none"), None);
}

#[test]
fn words_keep_their_order_and_stand_once() {
    let mut words = Words::default();
    words.add(Source::Dictionary, ["b", "a", "", "b"]);
    words.add(Source::Program, ["a", "c"]);
    let all: Vec<_> = words
        .all()
        .iter()
        .map(|word| (&word.bytes[..], word.source))
        .collect();
    let expected = [
        (&b"b"[..], Source::Dictionary),
        (b"a", Source::Dictionary),
        (b"c", Source::Program),
    ];
    assert_eq!(all, expected);
    let mut others = Words::default();
    others.add(Source::Dictionary, ["b", "a"]);
    assert_eq!(
        words.digest(Source::Dictionary),
        others.digest(Source::Dictionary)
    );
    assert_ne!(
        words.digest(Source::Program),
        others.digest(Source::Program)
    );
}
