//! Files that are being written, change, or vanish.

use std::fs::OpenOptions;
use std::io::Write;
use std::rc::Rc;

use ddfuzz::campaign::watch::WatchSettings;
use ddfuzz::store::Kind;

use super::{CRASH, Room, Steps, hash, settings, watched};

#[test]
fn a_file_that_grows_is_taken_once_and_whole() {
    let room = Rc::new(Room::new());
    let mut fuzzer = Steps::new(&room).then(|room| room.drop_file("in/crash", b""));
    for byte in CRASH {
        fuzzer = fuzzer.then(|room| {
            let path = room.path("in/crash");
            let mut file = OpenOptions::new().append(true).open(path).unwrap();
            file.write_all(&[*byte]).unwrap();
        });
    }
    let (summary, told) = watched(&room, &settings(&room, "crtplot"), &mut fuzzer);
    assert_eq!(summary.unwrap().new_groups, 1);
    assert_eq!(room.examined(), [hash(CRASH)]);
    assert_eq!(room.reproducers(), [b"t"]);
    assert_eq!((told.groups, told.minimized), (1, 1));
}

#[test]
fn a_file_that_changes_after_it_was_run_is_run_again() {
    let room = Rc::new(Room::new());
    let mut fuzzer = Steps::new(&room)
        .then(|room| room.drop_file("in/f", b"harmless"))
        .until(|room| room.examined().len() == 1)
        .then(|room| room.drop_file("in/f", CRASH));
    let (summary, _) = watched(&room, &settings(&room, "crtplot"), &mut fuzzer);
    assert_eq!(summary.unwrap().runs, 2);
    assert_eq!(room.examined(), [hash(b"harmless"), hash(CRASH)]);
}

#[test]
fn files_that_vanish_are_no_error_and_equal_ones_are_run_once() {
    let room = Rc::new(Room::new());
    let mut fuzzer = Steps::new(&room);
    for at in 0..12 {
        fuzzer = fuzzer
            .then(move |room| {
                room.drop_file(&format!("in/deep/{at}/gone"), &[at; 3]);
                room.drop_file(&format!("in/stays-{at}"), &[b'a' + at % 3]);
            })
            .then(move |room| {
                std::fs::remove_dir_all(room.path(&format!("in/deep/{at}"))).unwrap()
            });
    }
    let (summary, told) = watched(&room, &settings(&room, "crtplot"), &mut fuzzer);
    assert_eq!(summary.unwrap().new_groups, 0);
    let ran = room.examined();
    for content in [b"a", b"b", b"c"] {
        let times = ran.iter().filter(|one| **one == hash(content)).count();
        assert_eq!(times, 1, "{ran:?}");
    }
    assert_eq!(told.notes, [""; 0]);
}

#[test]
fn each_input_counts_in_its_group_and_each_group_is_minimized_while_files_come() {
    let room = Rc::new(Room::new());
    let mut fuzzer = Steps::new(&room)
        .then(|room| room.drop_file("in/1", CRASH))
        // Before the fuzzer ends.
        .until(|room| room.reproducers() == [b"t"])
        .then(|room| room.drop_file("in/2", b"another t"))
        .then(|room| room.drop_file("in/3", b"t"));
    let (summary, told) = watched(&room, &settings(&room, "crtplot"), &mut fuzzer);
    assert_eq!(summary.unwrap().runs, 3);
    assert_eq!(room.seen(Kind::Crash), [3]);
    // The second file has less than a tenth of the first, and is minimized, too.
    assert_eq!(told.minimized, 2);
}

#[test]
fn files_that_another_fuzzer_reports_as_hangs_wait_for_all_others() {
    let named = |kind: &str| format!("in/b/{kind}-{:040x}", 1);
    let files = [
        ("in/a/hangs/id:000000,src:0".to_owned(), "hang"),
        (named("slow-unit"), "slow"),
        (named("timeout"), "timeout"),
        ("in/c/crashes/id:000000,sig:11,src:0".to_owned(), "first"),
        ("in/c/crashes/id:000001,sig:11,src:0".to_owned(), "second"),
    ];
    for jobs in [1, 2, 4] {
        let (room, files) = (Rc::new(Room::new()), files.clone());
        let mut fuzzer = Steps::new(&room).then(move |room| {
            for instance in ["a", "c"] {
                room.drop_file(&format!("in/{instance}/fuzzer_setup"), b"");
                std::fs::create_dir_all(room.path("in").join(instance).join("queue")).unwrap();
            }
            for (name, content) in &files {
                room.drop_file(name, content.as_bytes());
            }
        });
        let settings = WatchSettings {
            jobs,
            ..settings(&room, "crtplot")
        };
        watched(&room, &settings, &mut fuzzer).0.unwrap();
        let expected = ["first", "second", "hang", "slow", "timeout"];
        let expected = expected.map(|text| hash(text.as_bytes()));
        assert_eq!(room.examined(), expected, "{jobs} jobs");
    }
}

#[test]
fn what_is_too_large_or_no_file_is_told_and_not_run() {
    let room = Rc::new(Room::new());
    let mut fuzzer = Steps::new(&room).then(|room| {
        room.drop_file("in/large", &[b't'; 200]);
        room.drop_file("in/.hidden", CRASH);
        let fifo = room.path("in/fifo");
        make_fifo(&fifo);
    });
    let mut settings = settings(&room, "crtplot");
    settings.max_len = 100;
    let (summary, told) = watched(&room, &settings, &mut fuzzer);
    assert_eq!(summary.unwrap().runs, 0);
    let told = told.notes.join("\n");
    assert!(
        told.contains("large is not run: it is larger than"),
        "{told}"
    );
    assert!(told.contains("fifo is not run: it is a fifo"), "{told}");
    assert_eq!(told.lines().count(), 2, "{told}");
}

fn make_fifo(path: &std::path::Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status();
    assert!(made.unwrap().success());
}
