//! One writer at a time.

use std::fs;

use ddfuzz::files::{Lock, LockError};

#[test]
fn a_second_lock_is_refused_with_the_holder_and_granted_after_the_first_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lock");
    let lock = Lock::acquire(&path).unwrap();
    let Err(LockError::AlreadyLocked {
        path: refused,
        holder,
    }) = Lock::acquire(&path)
    else {
        panic!("the lock was granted twice");
    };
    assert_eq!(refused, path);
    assert_eq!(holder, Some(std::process::id()));
    drop(lock);
    assert_eq!(fs::read(&path).unwrap(), b"", "a free lock names nobody");
    drop(Lock::acquire(&path).unwrap());
}

#[test]
fn a_lock_file_that_cannot_be_opened_is_a_file_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("missing").join("lock");
    let Err(LockError::File(error)) = Lock::acquire(&path) else {
        panic!("locked in a missing folder");
    };
    assert!(error.is_missing());
}

#[test]
fn what_stands_in_a_lock_file_is_never_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lock");
    let lock = Lock::acquire(&path).unwrap();
    fs::write(&path, [0xff; 100]).unwrap();
    let refused = Lock::acquire(&path).unwrap_err();
    assert!(matches!(
        refused,
        LockError::AlreadyLocked { holder: None, .. }
    ));
    assert!(refused.to_string().contains("another process"));
    drop(lock);
}
