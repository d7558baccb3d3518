use std::fs;
use std::path::Path;

use ddfuzz::files::swap::StagedFolder;

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_free_place_is_taken_and_an_old_folder_stands_aside() {
    let dir = tempfile::tempdir().unwrap();
    let (place, aside) = (dir.path().join("corpus"), dir.path().join("corpus.old"));
    let first = StagedFolder::beside(&place).unwrap();
    first.add(Path::new("below/one"), b"1").unwrap();
    assert!(!first.take_place(&aside).unwrap());
    assert_eq!(fs::read(place.join("below/one")).unwrap(), b"1");
    let second = StagedFolder::beside(&place).unwrap();
    second.add(Path::new("two"), b"2").unwrap();
    assert!(second.take_place(&aside).unwrap());
    assert_eq!(names(&place), ["two"]);
    assert_eq!(names(&aside), ["below"]);
    assert_eq!(names(dir.path()), ["corpus", "corpus.old"]);
}

#[test]
fn nothing_is_moved_onto_what_stands_aside_already() {
    let dir = tempfile::tempdir().unwrap();
    let (place, aside) = (dir.path().join("corpus"), dir.path().join("corpus.old"));
    for (folder, file) in [(&place, "mine"), (&aside, "older")] {
        fs::create_dir(folder).unwrap();
        fs::write(folder.join(file), b"").unwrap();
    }
    let fresh = StagedFolder::beside(&place).unwrap();
    fresh.add(Path::new("new"), b"").unwrap();
    assert!(fresh.take_place(&aside).unwrap_err().is_existing());
    assert_eq!(names(&place), ["mine"]);
    assert_eq!(names(&aside), ["older"]);
    assert_eq!(names(dir.path()), ["corpus", "corpus.old"]);
}

#[test]
fn what_a_killed_one_has_left_is_removed_by_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("corpus");
    let killed = StagedFolder::beside(&place).unwrap();
    killed.add(Path::new("half"), b"1").unwrap();
    std::mem::forget(killed);
    let fresh = StagedFolder::beside(&place).unwrap();
    assert_eq!(names(fresh.path()), [""; 0]);
    drop(fresh);
    assert_eq!(names(dir.path()), [""; 0]);
}

#[test]
fn a_file_is_never_written_twice() {
    let dir = tempfile::tempdir().unwrap();
    let fresh = StagedFolder::beside(&dir.path().join("corpus")).unwrap();
    fresh.add(Path::new("one"), b"1").unwrap();
    let again = fresh.add(Path::new("one"), b"2").unwrap_err();
    assert!(again.is_existing());
    assert_eq!(fs::read(fresh.path().join("one")).unwrap(), b"1");
}
