//! Names and paths.

use std::path::Path;

use ddfuzz::store::{EntryId, Kind, hash_of};

use crate::sample::{crash, key};

#[test]
fn a_content_is_named_by_16_digits_of_its_blake3() {
    assert_eq!(hash_of(b""), "af1349b9f5f9a1a6");
}

#[test]
fn an_entry_stands_under_its_kind_and_keys() {
    let id = EntryId::of(Kind::Hang, &crash("a", "b").keys, b"");
    let (major, minor) = (key("a").to_string(), key("b").to_string());
    assert_eq!(
        id.folder(Path::new("/out")),
        Path::new("/out/hangs")
            .join(&major[..12])
            .join(&minor[..12])
            .join("af1349b9f5f9a1a6")
    );
    assert_eq!(
        id.log(Path::new("/out")),
        id.folder(Path::new("/out")).join("log.jsonl")
    );
}

#[test]
fn the_folders_of_the_kinds_are_the_contract() {
    assert_eq!(
        Kind::ALL.map(Kind::folder),
        ["crashes", "flaky", "hangs", "oom"]
    );
}

#[test]
fn names_that_are_not_of_the_layout_are_no_entry() {
    let fits = ["0123456789ab", "ba9876543210", "0123456789abcdef"];
    let named = |[a, b, c]: [&str; 3]| EntryId::from_names(Kind::Crash, a, b, c);
    assert!(named(fits).is_some());
    for (at, wrong) in [
        (0, ".."),
        (0, "0123456789aB"),
        (1, "../../../../"),
        (2, "0123456789abcde"),
    ] {
        let mut names = fits;
        names[at] = wrong;
        assert!(named(names).is_none(), "{wrong}");
    }
}
