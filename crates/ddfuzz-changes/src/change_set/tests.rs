//! Tests of sets of changes without any file.

use super::*;

fn hunk(old: Range<usize>, new: Range<usize>) -> Hunk {
    Hunk {
        old,
        new,
        function: String::new(),
    }
}

fn version(path: &str, id: &str) -> Option<Version> {
    Some(Version {
        path: path.as_bytes().to_vec(),
        entry: Entry {
            mode: 0o100644,
            content: Content::Object(id.into()),
        },
    })
}

#[test]
fn each_subset_of_the_hunks_is_spliced_by_lines() {
    let change = FileChange {
        old: version("f", "1"),
        new: version("f", "2"),
        hunks: vec![hunk(0..0, 0..1), hunk(1..2, 2..4), hunk(3..4, 5..5)],
    };
    let (old, new) = (b"a\nb\r\nc\nd", b"0\na\nB1\r\nB2\nc\n");
    let spliced = |kept: &[usize]| String::from_utf8(change.spliced(kept, old, new)).unwrap();
    assert_eq!(spliced(&[]), "a\nb\r\nc\nd");
    assert_eq!(spliced(&[0]), "0\na\nb\r\nc\nd");
    assert_eq!(spliced(&[1]), "a\nB1\r\nB2\nc\nd");
    assert_eq!(spliced(&[2]), "a\nb\r\nc\n");
    assert_eq!(spliced(&[0, 1, 2]).as_bytes(), new);
}

#[test]
fn headers_of_hunks_are_read_and_written_alike() {
    for (header, old, new) in [
        ("@@ -3,0 +4,2 @@ f", [3, 0], [4, 2]),
        ("@@ -1 +1 @@", [1, 1], [1, 1]),
        ("@@ -7,2 +6,0 @@", [7, 2], [6, 0]),
    ] {
        let hunk = Hunk::parse(header.as_bytes()).unwrap();
        assert_eq!(
            (as_in_header(&hunk.old), as_in_header(&hunk.new)),
            (old, new),
            "{header}"
        );
    }
    assert_eq!(Hunk::parse(b"@@ -0 +1 @@"), None);
    assert_eq!(Hunk::parse(b"--- a/f"), None);
}

#[test]
fn a_file_that_becomes_a_directory_is_one_change_with_its_files() {
    let gone = |path| FileChange {
        old: version(path, "1"),
        new: None,
        hunks: Vec::new(),
    };
    let made = |path| FileChange {
        old: None,
        new: version(path, "2"),
        hunks: Vec::new(),
    };
    let files = vec![
        gone("a"),
        made("a/x"),
        made("a/y"),
        made("b"),
        gone("c/d"),
        made("c"),
    ];
    let set = ChangeSet::new(files);
    let sizes: Vec<usize> = set.changes.iter().map(Vec::len).collect();
    assert_eq!(sizes, [3, 1, 2]);
}
