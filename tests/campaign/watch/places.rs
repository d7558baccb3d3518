//! Directories of fuzzers, and those that come later.

use std::rc::Rc;

use super::{CRASH, Room, Steps, hash, settings, watched};

/// Contents that crash `crtplot`, each its own.
fn crash(name: &str) -> Vec<u8> {
    [name.as_bytes(), CRASH].concat()
}

#[test]
fn instances_of_afl_are_found_when_they_come_and_their_queues_are_left() {
    let room = Rc::new(Room::new());
    let mut fuzzer = Steps::new(&room)
        // As long as afl-fuzz sets up its directory.
        .then(|room| {
            for folder in ["queue", "crashes", "hangs"] {
                std::fs::create_dir_all(room.path("in/main").join(folder)).unwrap();
            }
            room.drop_file("in/main/plot_data", b"t of the plot");
            room.drop_file("in/main/.cur_input", b"t of the moment");
        })
        .until({
            let mut asked = 0;
            move |_| {
                asked += 1;
                asked == 10
            }
        })
        .then(|room| {
            room.drop_file("in/main/fuzzer_setup", b"t");
            room.drop_file("in/main/queue/id:000000,time:0,orig:t", &crash("queue"));
            room.drop_file("in/main/crashes/README.txt", b"t is read by people");
            room.drop_file("in/main/crashes/id:000000,sig:11,src:0", &crash("first"));
        })
        .until(|room| room.examined().len() == 1)
        // It was started again, and another joins.
        .then(|room| {
            let name = "in/main/crashes.2024-05-01-10:11:12/id:000000,sig:11,src:1";
            room.drop_file(name, &crash("second"));
            room.drop_file("in/other/fuzzer_stats", b"t");
            room.drop_file("in/other/crashes/id:000000,sig:11,src:2", &crash("third"));
        });
    let (summary, told) = watched(&room, &settings(&room, "crtplot"), &mut fuzzer);
    assert_eq!(summary.unwrap().new_groups, 1);
    let mut ran = room.examined();
    let mut dropped = ["first", "second", "third"].map(|name| hash(&crash(name)));
    ran.sort();
    dropped.sort();
    assert_eq!(ran, dropped);
    let note = format!(
        "{} does not exist yet; waiting for it",
        room.path("in").display()
    );
    assert!(
        told.notes.is_empty() || told.notes == [note],
        "{:?}",
        told.notes
    );
}

#[test]
fn a_directory_that_is_not_there_is_waited_for_and_that_is_said_once() {
    let room = Rc::new(Room::new());
    let mut fuzzer = Steps::new(&room);
    for _ in 0..8 {
        fuzzer = fuzzer.then(|_| ());
    }
    let mut fuzzer = fuzzer.then(|room| room.drop_file("in/late", CRASH));
    let (summary, told) = watched(&room, &settings(&room, "crtplot"), &mut fuzzer);
    assert_eq!(summary.unwrap().new_groups, 1);
    let [note] = &told.notes[..] else {
        panic!("{:?}", told.notes);
    };
    assert!(
        note.ends_with("in does not exist yet; waiting for it"),
        "{note}"
    );
}

#[test]
fn the_output_directory_below_what_is_watched_is_passed_over() {
    let room = Rc::new(Room::new());
    let mut fuzzer = Steps::new(&room)
        .then(|room| room.drop_file("dropped", CRASH))
        .until(|room| room.reproducers() == [b"t"]);
    for _ in 0..8 {
        fuzzer = fuzzer.then(|_| ());
    }
    let mut settings = settings(&room, "crtplot");
    settings.sources = vec![room.path("")];
    let (summary, _) = watched(&room, &settings, &mut fuzzer);
    assert_eq!(summary.unwrap().runs, 1);
}

#[test]
fn names_of_honggfuzz_are_taken_and_its_report_is_not() {
    let room = Rc::new(Room::new());
    let name =
        "SIGSEGV.PC.555555555189.STACK.18e5a9d2.CODE.1.ADDR.0x0.INSTR.mov____%eax,(%rdx).fuzz";
    let mut fuzzer = Steps::new(&room).then(move |room| {
        room.drop_file("in/HONGGFUZZ.REPORT.TXT", b"t is a report");
        room.drop_file("in/input.txt", b"t of the corpus");
        room.drop_file(&format!("in/{name}"), CRASH);
    });
    let (summary, _) = watched(&room, &settings(&room, "crtplot"), &mut fuzzer);
    assert_eq!(summary.unwrap().new_groups, 1);
    assert_eq!(room.examined(), [hash(CRASH)]);
}
