//! Lines, each by one write.

use std::fs;

use ddfuzz::files::Appender;

#[test]
fn lines_are_appended_to_what_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let mut log = Appender::open(&path).unwrap();
    assert!(log.is_empty());
    log.append(b"one").unwrap();
    drop(log);
    let mut log = Appender::open(&path).unwrap();
    log.append(b"two").unwrap();
    log.append(b"").unwrap();
    log.sync().unwrap();
    assert_eq!(log.len(), 9);
    assert_eq!(fs::read(&path).unwrap(), b"one\ntwo\n\n");
}

#[test]
fn a_torn_last_line_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    for (found, kept) in [("a\nb\nto", "a\nb\n"), ("to", ""), ("a\n", "a\n"), ("", "")] {
        fs::write(&path, found).unwrap();
        let mut log = Appender::open(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), kept);
        log.append(b"next").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{kept}next\n"));
    }
}

#[test]
fn a_torn_last_line_may_be_longer_than_one_chunk() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    for torn in [65_535, 65_536, 65_537, 200_000] {
        fs::write(&path, format!("a\nb\n{}", "x".repeat(torn))).unwrap();
        Appender::open(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "a\nb\n");
    }
}

#[test]
fn a_line_with_a_line_end_in_it_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let mut log = Appender::open(&path).unwrap();
    assert!(log.append(b"a\nb").is_err());
    log.append(b"c").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"c\n");
}
