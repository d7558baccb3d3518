//! `ddfuzz clean` where something is in the way.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::ddfuzz::{Desk, Said};
use crate::namespace::script;
use crate::needs;

/// Inputs of `crtplot`: one that crashes, two that are the same, and names of any bytes.
fn corpus(desk: &Desk) {
    std::fs::create_dir(desk.file("in")).unwrap();
    let files: [(&[u8], &[u8]); 6] = [
        (b"one", b"move 1 2\n"),
        (b"same", b"move 1 2\n"),
        (b"crash", b"xxxxxxxxt"),
        (b"line\nfeed", b"line 1 2 3 4\n"),
        (b"\xff\xfe", b"circle 1 2 3\n"),
        (b"empty", b""),
    ];
    for (name, bytes) in files {
        std::fs::write(desk.file("in").join(OsStr::from_bytes(name)), bytes).unwrap();
    }
}

/// The files of a folder, by name.
fn files(folder: &Path) -> BTreeMap<OsString, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    let files = entries.filter(|entry| entry.path().is_file());
    files
        .map(|entry| (entry.file_name(), std::fs::read(entry.path()).unwrap()))
        .collect()
}

fn clean(desk: &Desk, words: &str) -> Said {
    desk.call(&format!("clean --target crtplot --jobs 2 --json {words}"))
}

fn number(said: &Said, pointer: &str) -> u64 {
    let json = said.json();
    let found = json.pointer(pointer).and_then(serde_json::Value::as_u64);
    found.unwrap_or_else(|| panic!("{pointer}: {json}"))
}

/// What was found, without what each step took, is what was kept.
#[track_caller]
fn adds_up(said: &Said) {
    let json = said.json();
    for unit in ["files", "bytes"] {
        let steps = json["steps"].as_array().unwrap().iter();
        let taken: u64 = steps.map(|step| step[unit].as_u64().unwrap()).sum();
        let (before, after) = (&json["before"][unit], &json["after"][unit]);
        assert_eq!(
            before.as_u64(),
            Some(taken + after.as_u64().unwrap()),
            "{json}"
        );
    }
}

#[test]
fn the_corpus_is_no_output_directory() {
    let desk = Desk::new();
    corpus(&desk);
    let before = files(&desk.file("in"));
    for out in ["in", "in/", "in/../in", "./in"] {
        clean(&desk, &format!("in -o {out}")).exits(2);
        assert_eq!(files(&desk.file("in")), before, "{out}");
    }
}

#[test]
fn an_output_directory_in_the_corpus_is_no_part_of_it() {
    let desk = Desk::new();
    corpus(&desk);
    for _ in 0..2 {
        let said = clean(&desk, "in -o in/out").exits(0);
        assert_eq!(number(&said, "/before/files"), 6);
        assert_eq!(number(&said, "/after/files"), 4);
        assert_eq!(files(&desk.file("in/out/corpus")).len(), 4);
    }
}

#[test]
fn what_is_not_there_or_empty_is_refused() {
    let desk = Desk::new();
    clean(&desk, "missing -o out").exits(2);
    assert!(!desk.file("out").exists());
    std::fs::create_dir(desk.file("nothing")).unwrap();
    clean(&desk, "nothing -o out").exits(1);
    assert!(!desk.file("out/corpus").exists());
}

#[test]
fn a_corpus_that_crashes_as_a_whole_is_filed_and_replaces_nothing() {
    let desk = Desk::new();
    corpus(&desk);
    clean(&desk, "in -o out").exits(0);
    let before = files(&desk.file("out/corpus"));
    std::fs::create_dir(desk.file("bad")).unwrap();
    desk.write("bad/one", b"xxxxt");
    desk.write("bad/other", b"yyyyt");
    clean(&desk, "bad -o out").exits(1);
    assert_eq!(files(&desk.file("out/corpus")), before);
    clean(&desk, "bad -o new").exits(1);
    assert!(!desk.file("new/corpus").exists());
    let groups = desk.call("show new --json").exits(0).json();
    assert_eq!(groups["groups"].as_array().unwrap().len(), 1, "{groups}");
    assert_eq!(files(&desk.file("bad")).len(), 2);
}

#[test]
fn names_of_any_bytes_are_kept_where_they_shall_be() {
    let desk = Desk::new();
    corpus(&desk);
    clean(&desk, "in -o out --keep-names --trim off").exits(0);
    let (before, after) = (files(&desk.file("in")), files(&desk.file("out/corpus")));
    assert_eq!(after.len(), 4);
    for name in [&b"line\nfeed"[..], b"\xff\xfe"] {
        let name = OsStr::from_bytes(name);
        assert_eq!(after.get(name), before.get(name), "{after:?}");
    }
}

#[test]
fn entries_that_are_no_inputs_are_counted_and_named() {
    let desk = Desk::new();
    corpus(&desk);
    std::os::unix::fs::symlink("nowhere", desk.file("in/dangling")).unwrap();
    let made = desk.command("mkfifo").arg("in/fifo").status().unwrap();
    assert!(made.success());
    let said = clean(&desk, "in -o out --trim off").exits(0);
    adds_up(&said);
    let json = said.json();
    assert_eq!(json["before"]["files"], 6);
    assert_eq!(json["not_inputs"], 2);
    let examples = json["not_input_files"].as_array().unwrap();
    assert_eq!(examples[0]["why"], "a link that leads nowhere", "{json}");
    assert!(examples[1]["file"].as_str().unwrap().ends_with("/fifo"));
    let table = desk.call("clean --target crtplot --jobs 2 in -o again --trim off");
    let line = "not inputs: 2 entries of the corpus's directories, such as ";
    assert!(table.exits(0).out.contains(line));
}

#[test]
fn of_many_empty_files_one_is_kept() {
    let desk = Desk::new();
    std::fs::create_dir(desk.file("in")).unwrap();
    for at in 0..3000 {
        desk.write(&format!("in/{at}"), b"");
    }
    let said = clean(&desk, "in -o out").exits(0);
    assert_eq!(number(&said, "/duplicates"), 2999);
    assert_eq!(number(&said, "/after/files"), 1);
}

#[test]
fn a_file_that_vanishes_meanwhile_is_not_kept_and_no_harm() {
    let desk = Desk::new();
    open_folder(&desk, "in");
    desk.write("in/first", b"a");
    desk.write("in/second", b"bc");
    desk.write("in/third", b"d\n");
    let gone = desk.file("in/second");
    let program = desk.script("program", &format!("rm -f {}; cat", gone.display()));
    let words = format!("clean in -o out --jobs 1 --json -- {}", program.display());
    let said = desk.call(&words).exits(0);
    let kept: Vec<Vec<u8>> = files(&desk.file("out/corpus")).into_values().collect();
    assert_eq!(kept.len(), 2, "{kept:?}");
    assert_eq!(number(&said, "/before/files"), 3);
    adds_up(&said);
    assert!(!kept.contains(&b"bc".to_vec()));
}

/// A directory that targets may delete in, even where they run as nobody.
fn open_folder(desk: &Desk, name: &str) {
    std::fs::create_dir(desk.file(name)).unwrap();
    let everybody = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(desk.file(name), everybody).unwrap();
}

#[test]
fn a_crash_whose_file_is_gone_when_it_is_to_be_filed_is_counted_once() {
    let desk = Desk::new();
    open_folder(&desk, "in");
    desk.write("in/bad", b"bad\n");
    desk.write("in/good", b"good\n");
    let gone = desk.file("in/bad");
    let lines = format!(
        "read line\nif test \"$line\" = bad; then rm -f {}; kill -SEGV $$; fi\necho $line",
        gone.display()
    );
    let program = desk.script("program", &lines);
    let words = format!("clean in -o out --jobs 1 --json -- {}", program.display());
    let said = desk.call(&words).exits(0);
    assert_eq!(number(&said, "/before/files"), 2);
    assert_eq!(number(&said, "/after/files"), 1);
    adds_up(&said);
}

#[test]
fn what_becomes_of_another_corpus_is_no_step_of_this_one() {
    let desk = Desk::new();
    open_folder(&desk, "other");
    desk.write("other/gone", b"gone\n");
    desk.write("other/stays", b"stays\n");
    std::fs::create_dir(desk.file("in")).unwrap();
    desk.write("in/new", b"new!\n");
    let gone = desk.file("other/gone");
    let lines = format!(
        "read line\nif test \"$line\" = gone; then rm -f {}; fi\necho $line",
        gone.display()
    );
    let program = desk.script("program", &lines);
    let words = "clean in -o out --jobs 1 --json --onto other --";
    let said = desk
        .call(&format!("{words} {}", program.display()))
        .exits(0);
    assert!(!gone.exists());
    assert_eq!(number(&said, "/before/files"), 1);
    assert_eq!(number(&said, "/after/files"), 1);
    adds_up(&said);
}

#[test]
fn without_coverage_one_of_each_behaviour_is_kept_and_it_is_said() {
    let Some(program) = needs::program("wc") else {
        return;
    };
    let desk = Desk::new();
    std::fs::create_dir(desk.file("in")).unwrap();
    for at in 0..8 {
        desk.write(&format!("in/{at}"), format!("{at}\n"));
    }
    desk.write("in/two", b"a b\n");
    let words = format!("clean in -o out --exec command -- {}", program.display());
    let said = desk.call(&words).exits(0);
    assert!(said.err.contains("reports no coverage"), "{said:?}");
    assert_eq!(files(&desk.file("out/corpus")).len(), 2);
}

#[test]
fn a_full_disk_is_an_error_and_with_room_the_same_call_comes_to_the_same() {
    let desk = Desk::new();
    corpus(&desk);
    clean(&desk, "in -o out").exits(0);
    // The last three are full when crashes are filed, and minimized, and for the page.
    let text = "for size in 24k 56k 80k 100k 132k; do
             mkdir -p disk; mount -t tmpfs -o size=$size tmpfs disk
             code=0; timeout 600 $DD clean in -o disk/out --target crtplot 2>said || code=$?
             grep -c 'No space left' said
             grep -c 'hint: free some space, and repeat the command' said; echo \"code $code\"
             mount -o remount,size=64m tmpfs disk
             timeout 600 $DD clean in -o disk/out --target crtplot >said 2>&1 || cat said
             diff -r out/corpus disk/out/corpus && echo same
             umount disk
         done";
    let Some(said) = script(&desk, text) else {
        return;
    };
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines, ["1", "1", "code 2", "same"].repeat(5));
    assert_eq!(files(&desk.file("in")).len(), 6);
}

#[test]
fn a_read_only_disk_is_an_error() {
    let desk = Desk::new();
    corpus(&desk);
    let text = "mkdir -p disk; mount -t tmpfs tmpfs disk
         $DD clean in -o disk/old --target crtplot >said 2>&1
         mount -o remount,ro tmpfs disk
         for out in disk/new disk/old; do
             code=0; timeout 600 $DD clean in -o $out --target crtplot 2>said || code=$?
             grep -c 'Read-only file system' said; echo \"code $code\"
         done
         ls disk/old/corpus | wc -l";
    let Some(said) = script(&desk, text) else {
        return;
    };
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines, ["1", "code 2", "1", "code 2", "4"]);
}
