//! Full and read-only file systems.

use ddfuzz::store::{Kind, Store};

use crate::mounts::with_tmpfs;
use crate::sample::{by_run, campaign, crash};
use crate::tree::tree;

/// Inputs of 4 KiB, all different.
fn input(run: u64) -> Vec<u8> {
    run.to_le_bytes().repeat(512)
}

#[test]
fn a_full_disk_is_named_leaves_nothing_half_and_filing_goes_on_after_it() {
    let folder = tempfile::tempdir().unwrap();
    with_tmpfs(folder.path(), "size=256k", |_| {
        let root = folder.path().join("out");
        let mut store = Store::create_or_resume(&root, campaign("c1")).unwrap();
        let ballast = folder.path().join("ballast");
        std::fs::write(&ballast, [0; 65536]).unwrap();
        let mut filed = 0;
        let error = loop {
            match store.file(Kind::Crash, &by_run(crash("a", "b"), filed), &input(filed)) {
                Ok(_) => filed += 1,
                Err(error) => break error,
            }
        };
        assert!(filed > 5);
        assert_eq!(error.kind(), "disk-full");
        assert!(error.hint().unwrap().contains("free some space"));
        let stored = || {
            let reader = Store::open_read(&root).unwrap();
            let major = reader.groups(Kind::Crash).unwrap()[0].record.major.short();
            reader.entries(Kind::Crash, &major).unwrap().len() as u64
        };
        // The entry itself may have found room, and only its group's record none.
        assert!((filed..=filed + 1).contains(&stored()));
        let names = tree(&root)
            .into_keys()
            .map(|path| path.to_string_lossy().into_owned());
        assert_eq!(names.filter(|name| name.contains("ddfuzz-tmp")).count(), 0);
        assert!(store.save_state(&vec![0u8; 100_000]).is_err());

        // With more room the next writer goes on.
        drop(store);
        std::fs::remove_file(&ballast).unwrap();
        let mut store = Store::create_or_resume(&root, campaign("c1")).unwrap();
        let again = store
            .file(Kind::Crash, &by_run(crash("a", "b"), filed), b"small")
            .unwrap();
        assert!(!again.already && !again.new_major);
    });
}

#[test]
fn a_retry_after_a_full_disk_answers_as_the_first_call_would_have() {
    let folder = tempfile::tempdir().unwrap();
    with_tmpfs(folder.path(), "size=256k", |_| {
        let root = folder.path().join("out");
        let mut store = Store::create_or_resume(&root, campaign("c1")).unwrap();
        let ballast = folder.path().join("ballast");
        let page = 4096;
        // Every amount of room, from none to enough: the disk fills up at each step of filing.
        let mut room = 0;
        loop {
            let name = format!("room {room}");
            fill_up(&ballast, room * page);
            let crash = by_run(crash(&name, "b"), room);
            let first = store.file(Kind::Crash, &crash, b"input");
            std::fs::remove_file(&ballast).unwrap();
            let Err(error) = first else { break };
            assert_eq!(error.kind(), "disk-full", "{error}");
            let retried = store.file(Kind::Crash, &crash, b"input").unwrap();
            assert!(
                retried.new_major && retried.new_minor && !retried.already,
                "{name}"
            );
            room += 1;
        }
        assert!(room > 1, "at least two steps of filing need room");
        assert_eq!(
            store.reader().groups(Kind::Crash).unwrap().len() as u64,
            room + 1
        );
    });
}

/// Writes a file that leaves `room` bytes.
fn fill_up(path: &std::path::Path, room: u64) {
    use std::io::Write;
    let mut file = std::fs::File::create(path).unwrap();
    let mut len = 0;
    while let Ok(written) = file.write(&[0; 4096]) {
        len += written as u64;
    }
    file.set_len(len.saturating_sub(room)).unwrap();
}

#[test]
fn a_read_only_directory_can_be_read_and_is_named_on_writing() {
    let folder = tempfile::tempdir().unwrap();
    with_tmpfs(folder.path(), "size=1m", |mount| {
        let root = folder.path().join("out");
        let mut store = Store::create_or_resume(&root, campaign("c1")).unwrap();
        store
            .file(Kind::Crash, &by_run(crash("a", "b"), 0), b"1")
            .unwrap();
        // An open, unlinked or written file keeps a mount from becoming read-only.
        drop(store);
        mount.make_read_only();
        assert_eq!(
            Store::open_read(&root)
                .unwrap()
                .groups(Kind::Crash)
                .unwrap()
                .len(),
            1
        );
        for root in [root, folder.path().join("new")] {
            let error = Store::create_or_resume(&root, campaign("c1")).unwrap_err();
            assert_eq!(error.kind(), "read-only", "{error}");
            assert!(error.hint().unwrap().contains("-o DIR"));
        }
    });
}
