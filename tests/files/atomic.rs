//! Whole or not at all.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use ddfuzz::files::atomic;

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_write_makes_the_file_and_a_second_one_replaces_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    atomic::write(&path, b"first").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"first");
    atomic::write(&path, b"").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"");
    assert_eq!(names(folder.path()), ["file"], "no temporary file is left");
}

#[test]
fn a_written_file_is_not_private_to_its_owner_and_a_program_is_executable() {
    let folder = tempfile::tempdir().unwrap();
    let (plain, program) = (folder.path().join("plain"), folder.path().join("program"));
    atomic::write(&plain, b"x").unwrap();
    atomic::write_program(&program, b"x").unwrap();
    let reference = folder.path().join("reference");
    fs::write(&reference, b"x").unwrap();
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&plain), mode(&reference), "the umask decides");
    assert_eq!(mode(&program) & 0o100, 0o100);
}

#[test]
fn creating_never_replaces_an_existing_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    atomic::create_new(&path, b"mine").unwrap();
    let error = atomic::create_new(&path, b"other").unwrap_err();
    assert!(error.is_existing());
    assert_eq!(fs::read(&path).unwrap(), b"mine");
    assert_eq!(names(folder.path()), ["file"]);
}

#[test]
fn what_is_written_piece_by_piece_is_there_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let broken = atomic::create_new_from(&path, |file| {
        file.write_all(b"half")?;
        Err(io::Error::other("enough"))
    });
    assert!(broken.unwrap_err().to_string().contains("enough"));
    assert!(names(folder.path()).is_empty());
    atomic::create_new_from(&path, |file| file.write_all(b"whole")).unwrap();
    let again = atomic::create_new_from(&path, |file| file.write_all(b"other"));
    assert!(again.unwrap_err().is_existing());
    assert_eq!(fs::read(&path).unwrap(), b"whole");
    assert_eq!(names(folder.path()), ["file"]);
}

#[test]
fn an_error_says_what_was_being_done_to_which_path() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("missing").join("file");
    let error = atomic::write(&path, b"x").unwrap_err();
    assert_eq!(error.path(), path);
    assert!(error.is_missing());
    assert!(!error.is_full() && !error.is_read_only());
    let text = error.to_string();
    assert!(
        text.starts_with(&format!("cannot write {}: ", path.display())),
        "{text}"
    );
}

#[test]
fn a_folder_in_the_way_is_an_error_and_leaves_no_temporary_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("folder");
    fs::create_dir(&path).unwrap();
    atomic::write(&path, b"x").unwrap_err();
    assert_eq!(names(folder.path()), ["folder"]);
}

#[test]
fn temporary_names_are_told_from_others() {
    assert!(atomic::is_temporary(".ddfuzz-tmp-abc".as_ref()));
    assert!(!atomic::is_temporary("original".as_ref()));
}
