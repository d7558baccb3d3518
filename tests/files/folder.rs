//! Folders.

use std::fs;

use ddfuzz::files::folder;

#[test]
fn all_missing_folders_are_made_and_existing_ones_kept() {
    let root = tempfile::tempdir().unwrap();
    let deep = root.path().join("a/b/c");
    folder::create_all(&deep).unwrap();
    assert!(deep.is_dir());
    folder::create_all(&deep).unwrap();
}

#[test]
fn a_file_in_the_way_is_an_error_that_names_the_path() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("a");
    fs::write(&file, b"x").unwrap();
    assert_eq!(folder::create_all(&file).unwrap_err().path(), file);
    assert!(folder::create_all(&file.join("b")).is_err());
    assert_eq!(fs::read(&file).unwrap(), b"x");
}

#[test]
fn the_folder_of_a_bare_name_is_the_current_one() {
    assert_eq!(folder::parent("name".as_ref()), std::path::Path::new("."));
    assert_eq!(folder::parent("/a/b".as_ref()), std::path::Path::new("/a"));
}
