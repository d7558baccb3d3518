//! Reading what others wrote.

use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::process::Command;

use ddfuzz::files::regular::{Unread, open, read};

#[test]
fn only_regular_files_within_the_limit_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    std::fs::write(at("five"), "12345").unwrap();
    symlink(at("five"), at("link")).unwrap();
    assert_eq!(read(&at("five"), 5), Ok(b"12345".to_vec()));
    assert_eq!(read(&at("link"), 5), Ok(b"12345".to_vec()));
    assert_eq!(read(&at("five"), 4), Err(Unread::TooLarge { limit: 4 }));
    std::fs::write(at("empty"), "").unwrap();
    assert_eq!(read(&at("empty"), 0), Ok(Vec::new()));
}

#[test]
fn what_is_no_file_is_named_and_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let made = Command::new("mkfifo").arg(at("fifo")).status().unwrap();
    assert!(made.success());
    let _socket = UnixListener::bind(at("socket")).unwrap();
    symlink("round", at("round")).unwrap();
    symlink("nowhere", at("dangling")).unwrap();
    let why = |name: &str| read(&at(name), 100).unwrap_err().to_string();
    assert_eq!(why("fifo"), "it is a fifo, not a file");
    assert_eq!(why("socket"), "it is a socket, not a file");
    assert_eq!(why("."), "it is a directory, not a file");
    assert_eq!(
        why("dangling"),
        "it is a link that leads nowhere, not a file"
    );
    assert_eq!(why("missing"), "it does not exist");
    assert!(why("round").contains("symbolic links"), "{}", why("round"));
    let zero = read(std::path::Path::new("/dev/zero"), 100);
    assert_eq!(zero, Err(Unread::NotAFile("a device")));
}

#[test]
fn what_took_the_place_of_a_file_is_opened_without_waiting() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let made = Command::new("mkfifo").arg(at("fifo")).status().unwrap();
    assert!(made.success());
    std::fs::write(at("five"), "12345").unwrap();
    let why = |name: &str| open(&at(name)).unwrap_err();
    assert_eq!(why("fifo"), Unread::NotAFile("a fifo"));
    assert_eq!(why("."), Unread::NotAFile("a directory"));
    assert_eq!(why("missing"), Unread::Missing);
    assert_eq!(open(&at("five")).unwrap().1.len(), 5);
}
