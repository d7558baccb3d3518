//! Where `ddfuzz clean` writes, and what it never touches.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use crate::clean::{corpus, crash, files};
use crate::ddfuzz::Desk;

const CHEAP: &str = "--trim off --jobs 2 --target ul";

#[test]
fn a_corpus_of_the_output_directory_is_not_added_to() {
    let desk = Desk::new();
    corpus(&desk, "in", 20);
    corpus(&desk, "new", 30);
    desk.call(&format!("clean in -o out {CHEAP}")).exits(0);
    let kept = files(&desk.file("out/corpus"));
    std::os::unix::fs::symlink(desk.file("out/corpus"), desk.file("link")).unwrap();
    for onto in ["out/corpus", "out", "link"] {
        let words = format!("clean new --onto {onto} -o out {CHEAP}");
        let refused = desk.call(&words).exits(2);
        assert!(
            refused.err.contains("is in the output directory"),
            "{refused:?}"
        );
    }
    assert_eq!(files(&desk.file("out/corpus")), kept);
    // By another output directory, it is a corpus like any other.
    let words = format!("clean new --onto out/corpus -o other {CHEAP}");
    desk.call(&words).exits(0);
    let grown = files(&desk.file("out/corpus"));
    assert!(
        kept.iter()
            .all(|(name, bytes)| grown.get(name) == Some(bytes))
    );
    desk.is_left_clean();
}

#[test]
fn nothing_is_added_where_it_would_not_be_found_again() {
    let desk = Desk::new();
    corpus(&desk, "new", 5);
    std::fs::create_dir_all(desk.file("project/fuzz_targets")).unwrap();
    desk.write("project/Cargo.toml", "");
    std::fs::create_dir_all(desk.file("afl/queue/.state")).unwrap();
    desk.write("afl/fuzzer_stats", "");
    desk.write("afl/queue/id:000000,time:0,execs:0,orig:a", "a");
    for onto in ["project", "afl", "afl/queue"] {
        let before = files(&desk.file(onto));
        let words = format!("clean new --onto {onto} -o out {CHEAP}");
        let refused = desk.call(&words).exits(2);
        assert!(refused.err.contains("plain directory"), "{refused:?}");
        assert_eq!(files(&desk.file(onto)), before);
    }
    assert!(!desk.file("out").exists());
}

#[test]
fn an_older_corpus_stays_also_where_nothing_was_left_out() {
    let desk = Desk::new();
    corpus(&desk, "in", 6);
    let before = files(&desk.file("in"));
    let words = format!("clean in -o out --in-place --keep-names --skip subset {CHEAP}");
    desk.call(&words).exits(0);
    // All was kept, so that the names tell the two apart no more.
    assert_eq!(files(&desk.file("in")), before);
    desk.write("in.old/f1", "what only the older one holds");
    let refused = desk.call(&words).exits(2);
    assert!(refused.err.contains("in.old"), "{refused:?}");
    let older = files(&desk.file("in.old"));
    assert_eq!(older[Path::new("f1")], b"what only the older one holds");
    assert_eq!(older.len(), before.len());
    desk.call(&format!("{words} --delete-old")).exits(0);
    assert!(!desk.file("in.old").exists());
    assert_eq!(files(&desk.file("in")), before);
    desk.is_left_clean();
}

#[test]
fn only_a_corpus_that_a_cleanup_has_replaced_is_deleted() {
    let desk = Desk::new();
    corpus(&desk, "in", 6);
    corpus(&desk, "in.old", 3);
    let words = format!("clean in -o out --in-place --delete-old {CHEAP}");
    let refused = desk.call(&words).exits(2);
    assert!(refused.err.contains("has moved it there"), "{refused:?}");
    assert_eq!(files(&desk.file("in.old")).len(), 3);
    assert_eq!(files(&desk.file("in")).len(), 6);
    std::fs::remove_dir_all(desk.file("in.old")).unwrap();
    let private = std::fs::read_dir(desk.file("in")).unwrap();
    for file in private {
        let path = file.unwrap().path();
        std::fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    }
    desk.call(&format!("clean in -o out --in-place {CHEAP}"))
        .exits(0);
    for file in std::fs::read_dir(desk.file("in")).unwrap() {
        let facts = file.unwrap().metadata().unwrap();
        assert_eq!(facts.mode() & 0o777, 0o600);
    }
    // A file that was put there since is the user's.
    desk.write("in.old/mine", "mine");
    desk.call(&words).exits(2);
    std::fs::remove_dir_all(desk.file("in.old")).unwrap();
    std::fs::create_dir(desk.file("in.old")).unwrap();
    desk.call(&words).exits(2);
}

#[test]
fn an_output_directory_in_the_corpus_is_not_replaced_with_it() {
    let desk = Desk::new();
    corpus(&desk, "in", 6);
    std::fs::create_dir(desk.file("in/out")).unwrap();
    for out in ["in/out", "in/below/out", "in/../in/new"] {
        let words = format!("clean in -o {out} --in-place --delete-old {CHEAP}");
        let refused = desk.call(&words).exits(2);
        assert!(refused.err.contains("is in the corpus"), "{refused:?}");
    }
    assert_eq!(files(&desk.file("in")).len(), 6);
    assert!(!desk.file("in.old").exists());
}

#[test]
fn a_file_is_explained_wherever_it_was_put() {
    let desk = Desk::new();
    corpus(&desk, "in", 30);
    corpus(&desk, "mine", 40);
    let explain = |out: &str, file: &str| {
        let said = desk.call(&format!("clean -o {out} --explain {file}"));
        said.exits(0).out
    };
    let first = |folder: &str| {
        let all = files(&desk.file(folder));
        all.keys().next().unwrap().display().to_string()
    };
    desk.call(&format!("clean in --onto mine -o onto {CHEAP}"))
        .exits(0);
    let said = explain("onto", "in/f3");
    assert!(said.contains("/mine, not in every run"), "{said}");
    let words = "clean in -o out --in-place --trim-tests 40 --jobs 2 --target ul";
    desk.call(words).exits(0);
    for file in [
        format!("out/corpus/{}", first("out/corpus")),
        format!("in/{}", first("in")),
    ] {
        let said = explain("out", &file);
        assert!(said.contains(": kept: it is the kept copy of "), "{said}");
    }
    // As it was called, from elsewhere, and where the files are now.
    let said = explain("out", "out/../in.old/f3");
    assert!(!said.contains("was not in the corpus"), "{said}");
    desk.is_left_clean();
}

#[test]
fn a_directory_that_the_user_has_moved_to_the_old_one_is_not_taken_for_ours() {
    let desk = Desk::new();
    corpus(&desk, "in", 30);
    let words = format!("clean in -o out --in-place {CHEAP}");
    desk.call(&words).exits(0);
    std::fs::remove_dir_all(desk.file("in.old")).unwrap();
    // The directory that has replaced the corpus is the user's, with or without new files.
    for new in [None, Some("in.old/new")] {
        if desk.file("in").is_dir() {
            std::fs::rename(desk.file("in"), desk.file("in.old")).unwrap();
        }
        new.map(|name| desk.write(name, "what only this directory has"));
        let moved = files(&desk.file("in.old"));
        corpus(&desk, "in", 12);
        let refused = desk.call(&words).exits(2);
        assert!(refused.err.contains("in.old"), "{refused:?}");
        assert_eq!(files(&desk.file("in.old")), moved);
        std::fs::remove_dir_all(desk.file("in")).unwrap();
    }
    desk.is_left_clean();
}

#[test]
fn nothing_is_deleted_that_was_not_read() {
    let desk = Desk::new();
    let words = format!("clean in -o out --in-place --delete-old {CHEAP}");
    let refused = |why: &str| {
        let before = files(&desk.file("in"));
        let refused = desk.call(&words).exits(2);
        assert!(refused.err.contains("must not be deleted"), "{refused:?}");
        assert!(refused.err.contains(why), "{refused:?}");
        assert_eq!(files(&desk.file("in")), before);
        assert!(!desk.file("out/corpus").exists());
    };
    corpus(&desk, "in", 12);
    std::fs::create_dir(desk.file("in/.git")).unwrap();
    desk.write("in/.git/HEAD", "main");
    refused("a hidden directory");
    // An older one is deleted only if a cleanup has moved it there.
    std::fs::rename(desk.file("in"), desk.file("in.old")).unwrap();
    corpus(&desk, "in", 12);
    refused("in.old must not be deleted");
    assert_eq!(desk.read("in.old/.git/HEAD"), b"main");
    std::fs::remove_dir_all(desk.file("in.old")).unwrap();
    desk.write("in/large", vec![b'x'; 3 << 19]);
    refused("longer than --max-len");
    desk.call(&format!("{words} --max-len 2M")).exits(0);
    assert!(!desk.file("in.old").exists());
    desk.is_left_clean();
}

#[test]
fn a_corpus_with_failing_inputs_that_are_stored_nowhere_is_not_deleted() {
    let desk = Desk::new();
    corpus(&desk, "in", 3);
    desk.write("in/bad", "B");
    desk.script(
        "target",
        "read line; [ \"$line\" = B ] && kill -SEGV $$; true",
    );
    let before = files(&desk.file("in"));
    let words = "clean in -o out --in-place --delete-old --jobs 1 --exec command";
    let refused = desk.call(&format!("{words} --skip groups -- ./target"));
    let refused = refused.exits(2);
    assert!(refused.err.contains("1 failing input"), "{refused:?}");
    assert!(refused.err.contains("--skip groups"), "{refused:?}");
    assert_eq!(files(&desk.file("in")), before);
    desk.call(&format!("{words} -- ./target")).exits(0);
    let stored = files(&desk.file("out/crashes"));
    assert!(stored.values().any(|bytes| bytes == b"B"));
    assert!(!desk.file("in/bad").exists() && !desk.file("in.old").exists());
    desk.is_left_clean();
}

#[test]
fn a_corpus_to_which_files_are_added_meanwhile_is_not_deleted() {
    let desk = Desk::new();
    corpus(&desk, "in", 3);
    // The target stands for a fuzzer: it adds a file while it is run for the cleanup.
    let adds = "[ -e $DESK/in/new ] || { echo new >$DESK/tmp/new; mv $DESK/tmp/new $DESK/in; }";
    desk.script("adds", adds);
    std::fs::set_permissions(desk.file("in"), Permissions::from_mode(0o777)).unwrap();
    let words = "clean in -o out --in-place --delete-old --exec command --jobs 1 -- ./adds";
    let refused = desk.call(words).exits(2);
    assert!(refused.err.contains("added or changed"), "{refused:?}");
    assert!(desk.file("in/new").exists() && !desk.file("in.old").exists());
    assert_eq!(files(&desk.file("in")).len(), 4);
    desk.is_left_clean();
}

#[test]
fn an_output_directory_that_would_be_the_old_corpus_is_refused() {
    let desk = Desk::new();
    corpus(&desk, "in", 6);
    std::fs::create_dir(desk.file("in.old")).unwrap();
    desk.write("in.old/mine", "");
    for out in ["in.old", "in.old/out", "in/../in.old"] {
        for delete in ["", "--delete-old"] {
            let words = format!("clean in -o {out} --in-place {delete} {CHEAP}");
            let refused = desk.call(&words).exits(2);
            assert!(refused.err.contains("is moved to"), "{refused:?}");
        }
    }
    assert_eq!(files(&desk.file("in")).len(), 6);
    assert_eq!(files(&desk.file("in.old")).len(), 1);
}

#[test]
fn a_queue_of_afl_keeps_the_names_by_which_it_is_read() {
    let desk = Desk::new();
    std::fs::create_dir_all(desk.file("afl/queue")).unwrap();
    desk.write("afl/fuzzer_stats", "");
    for (number, text) in ["a\n", "b\nb\n", "_\x08x\n"].iter().enumerate() {
        let name = format!("afl/queue/id:00000{number},src:000000,op:havoc");
        desk.write(&name, text);
    }
    let words = format!("clean afl/queue -o out --in-place {CHEAP}");
    let before = files(&desk.file("afl/queue"));
    let refused = desk.call(&words).exits(2);
    assert!(refused.err.contains("--keep-names"), "{refused:?}");
    assert_eq!(files(&desk.file("afl/queue")), before);
    desk.call(&format!("{words} --keep-names")).exits(0);
    let kept = files(&desk.file("afl/queue"));
    let words = format!("{words} --keep-names --delete-old");
    desk.call(&words).exits(0);
    assert_eq!(files(&desk.file("afl/queue")), kept);
    assert!(
        kept.iter()
            .all(|(name, text)| before.get(name) == Some(text))
    );
    desk.is_left_clean();
}

#[test]
fn a_corpus_keeps_its_owner_and_its_mode() {
    let desk = Desk::new();
    corpus(&desk, "in/below", 8);
    let is_root = nix::unistd::geteuid().is_root();
    if is_root {
        for name in ["in", "in/below"] {
            std::os::unix::fs::chown(desk.file(name), Some(1000), Some(1001)).unwrap();
        }
    }
    let facts = |name: &str| {
        let facts = desk.file(name).metadata().unwrap();
        (facts.mode() & 0o7777, facts.uid(), facts.gid())
    };
    let mode = |name: &str, mode| {
        std::fs::set_permissions(desk.file(name), Permissions::from_mode(mode)).unwrap();
    };
    mode("in", 0o2775);
    mode("in/below", 0o750);
    let before = ["in", "in/below"].map(facts);
    let words = format!("clean in -o out --in-place --keep-names {CHEAP}");
    desk.call(&words).exits(0);
    assert_eq!(["in", "in/below"].map(facts), before);
    let (_, user, group) = before[0];
    for name in files(&desk.file("in")).keys() {
        let (_, of_user, of_group) = facts(&format!("in/{}", name.display()));
        assert_eq!((of_user, of_group), (user, group));
    }
    desk.is_left_clean();
}

#[test]
fn failing_inputs_that_no_group_stores_are_not_deleted() {
    let desk = Desk::new();
    corpus(&desk, "in", 2);
    for more in ["", "x"] {
        desk.write(
            &format!("in/crash{more}"),
            [more.as_bytes(), &crash()].concat(),
        );
    }
    let words = format!("clean in -o out --in-place --minimize off {CHEAP}");
    let before = files(&desk.file("in"));
    let refused = desk.call(&format!("{words} --delete-old")).exits(2);
    assert!(
        refused.err.contains("1 failing input that no group stores"),
        "{refused:?}"
    );
    assert_eq!(files(&desk.file("in")), before);
    let result = desk.call(&format!("{words} --json")).exits(0).json();
    assert_eq!(
        (&result["crashes"], &result["unstored"]),
        (&2.into(), &1.into())
    );
    assert_eq!(files(&desk.file("in.old")), before);
    desk.is_left_clean();
}

#[test]
fn an_output_directory_behind_what_does_not_exist_is_found_in_the_corpus() {
    let desk = Desk::new();
    corpus(&desk, "in", 2);
    let words = format!("clean in -o missing/../in/out --in-place {CHEAP}");
    desk.call(&words).exits(2);
    assert!(!desk.file("in/out").exists() && !desk.file("in.old").exists());
}

#[test]
fn names_that_would_be_too_long_are_replaced_by_hashes() {
    let desk = Desk::new();
    let name = "n".repeat(250);
    for (folder, text) in [("a", "a\n"), ("b", "b_\x08x\n")] {
        std::fs::create_dir(desk.file(folder)).unwrap();
        desk.write(&format!("{folder}/{name}"), text);
    }
    let words = format!("clean a b -o out --keep-names --skip subset {CHEAP}");
    desk.call(&words).exits(0);
    let kept = files(&desk.file("out/corpus"));
    assert!(
        kept.len() == 2 && kept.contains_key(Path::new(&name)),
        "{kept:?}"
    );
}

#[test]
fn a_directory_that_cannot_be_listed_is_named_and_its_corpus_not_replaced() {
    let desk = Desk::new();
    corpus(&desk, "in", 3);
    // Nobody lists what is nested too deeply, not even root.
    let deep = (0..70).fold(desk.file("in"), |path, _| path.join("d"));
    std::fs::create_dir_all(&deep).unwrap();
    std::fs::write(deep.join("hidden"), "hidden").unwrap();
    let before = files(&desk.file("in"));
    for more in ["", "--delete-old"] {
        let words = format!("clean in -o out --in-place {more} {CHEAP}");
        let refused = desk.call(&words).exits(2);
        assert!(refused.err.contains("must not be replaced"), "{refused:?}");
        assert!(refused.err.contains("/d/d"), "{refused:?}");
        assert_eq!(files(&desk.file("in")), before);
        assert!(!desk.file("in.old").exists());
    }
    let cleaned = desk
        .call(&format!("clean in -o out --json {CHEAP}"))
        .exits(0);
    let warnings = cleaned.err.lines().filter(|line| line.contains("/d/d"));
    assert_eq!(warnings.count(), 1, "{}", cleaned.err);
    let result = cleaned.json();
    let steps = result["steps"].as_array().unwrap();
    let unreadable = steps.iter().find(|step| step["step"] == "unreadable");
    assert_eq!(unreadable.unwrap()["files"], 1, "{result}");
    assert_eq!(result["before"]["files"], 4, "{result}");
    desk.is_left_clean();
}
