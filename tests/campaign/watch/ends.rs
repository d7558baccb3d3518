//! What ends a watch, and what it comes to.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::rc::Rc;
use std::time::Duration;

use ddfuzz::campaign::watch::{Others, Producer, Producing};
use ddfuzz::campaign::{CampaignError, Until, When};
use ddfuzz::exec::{Program, Target, Way};
use ddfuzz::report::EndedBy;
use ddfuzz::store::{Kind, KnownGroups};

use super::{CRASH, Room, Steps, hash, settings, watched};
use crate::ddfuzz::Desk;

#[test]
fn the_first_new_group_ends_it_where_that_is_waited_for() {
    let room = Rc::new(Room::new());
    room.drop_file("in/1", CRASH);
    let mut settings = settings(&room, "crtplot");
    settings.until = vec![Until::First];
    let (summary, told) = watched(&room, &settings, &mut Others(Producing::Running));
    let summary = summary.unwrap();
    assert_eq!(summary.ended_by, EndedBy::Until);
    assert_eq!((summary.new_groups, told.minimized), (1, 1));
    // The next campaign there knows it, and waits for another one.
    let mut once = Steps::new(&room).then(|_| ());
    let (summary, told) = watched(&room, &settings, &mut once);
    let summary = summary.unwrap();
    assert_eq!((summary.new_groups, summary.known_crashes), (0, 1));
    assert_eq!(summary.ended_by, EndedBy::Fuzzer);
    assert_eq!(told.minimized, 0);
}

#[test]
fn the_time_ends_it_though_the_fuzzer_goes_on() {
    let room = Rc::new(Room::new());
    let mut settings = settings(&room, "crtplot");
    settings.time = Some(Duration::from_millis(300));
    let (summary, _) = watched(&room, &settings, &mut Others(Producing::Running));
    assert_eq!(summary.unwrap().ended_by, EndedBy::Time);
}

#[test]
fn the_time_of_the_whole_call_is_no_end_of_the_fuzzer() {
    let desk = Desk::new();
    desk.script("slow", "sleep 0.2");
    std::fs::create_dir(desk.file("in")).unwrap();
    for number in 0..200 {
        desk.write(&format!("in/{number}"), number.to_string());
    }
    let words = "watch --json --once --total-time 3s -o out in -- ./slow";
    let call = desk.call(words);
    assert!(call.err.contains("files not examined"), "{}", call.err);
    assert_eq!(call.json()["ended_by"], "time");
}

#[test]
fn runs_of_the_fuzzer_are_those_of_the_result() {
    let room = Rc::new(Room::new());
    let mut fuzzer = Steps::new(&room).then(|room| room.drop_file("in/1", CRASH));
    fuzzer.runs = 12_345;
    let (summary, _) = watched(&room, &settings(&room, "crtplot"), &mut fuzzer);
    assert_eq!(summary.unwrap().runs, 12_345);
}

#[test]
fn without_minimization_and_where_a_group_is_muted_crashes_are_filed_all_the_same() {
    let room = Rc::new(Room::new());
    room.drop_file("in/1", CRASH);
    let mut off = settings(&room, "crtplot");
    off.when = When::Off;
    let (summary, told) = watched(&room, &off, &mut Others(Producing::Ended));
    assert_eq!((summary.unwrap().new_groups, told.minimized), (1, 0));
    let out = ddfuzz::store::Reader::open(&room.path("out")).unwrap();
    let major = out.groups(Kind::Crash).unwrap()[0].record.major;
    let mut muted = settings(&room, "crtplot");
    muted.known = KnownGroups::parse(&major.short()).unwrap();
    let (summary, told) = watched(&room, &muted, &mut Others(Producing::Ended));
    assert_eq!((summary.unwrap().known_crashes, told.minimized), (1, 0));
    // And what was left to be minimized is, by whoever comes next.
    let (_, told) = watched(
        &room,
        &settings(&room, "crtplot"),
        &mut Others(Producing::Ended),
    );
    assert_eq!(told.minimized, 1);
}

/// Says that it cannot go on once a crash is filed.
struct Failing(Rc<Room>);

impl Producer for Failing {
    fn poll(&mut self) -> Result<Producing, CampaignError> {
        match self.0.examined().len() {
            0 => Ok(Producing::Running),
            _ => Err(CampaignError::Worker("the fuzzer has gone".to_owned())),
        }
    }

    fn runs(&self) -> u64 {
        0
    }
}

#[test]
fn a_fuzzer_that_fails_ends_it_and_what_was_filed_stands() {
    let room = Rc::new(Room::new());
    room.drop_file("in/1", CRASH);
    let settings = settings(&room, "crtplot");
    let (summary, _) = watched(&room, &settings, &mut Failing(room.clone()));
    assert!(summary.unwrap_err().to_string().contains("has gone"));
    assert_eq!(room.seen(Kind::Crash), [1]);
}

/// How often this content was run.
fn times(room: &Room, content: &[u8]) -> usize {
    let ran = room.examined();
    ran.iter().filter(|one| **one == hash(content)).count()
}

#[test]
fn with_another_build_groups_are_checked_and_files_are_run_again() {
    let room = Rc::new(Room::new());
    let program = |room: &Room, dies: &str| {
        let text = format!("#!/bin/sh\ncase $(cat) in {dies}*) kill -SEGV $$;; esac\nexit 0\n");
        room.drop_file("program.new", text.as_bytes());
        let new = room.path("program.new");
        std::fs::set_permissions(&new, Permissions::from_mode(0o755)).unwrap();
        std::fs::rename(new, room.path("program")).unwrap();
    };
    program(&room, "k");
    room.drop_file("in/1", b"kilo");
    let mut settings = settings(&room, "crtplot");
    settings.when = When::Off;
    settings.minimizing.target = Target::new(Program::Path(room.path("program")));
    settings.minimizing.way = Way::Command;
    let mut fuzzer = Steps::new(&room)
        .until(|room| room.examined().len() == 1)
        .then(move |room| program(room, "m"))
        .then(|room| room.drop_file("in/2", b"mega"))
        .until(|room| times(room, b"kilo") == 2);
    let (summary, told) = watched(&room, &settings, &mut fuzzer);
    let summary = summary.unwrap();
    assert!(summary.rebuilt);
    let told = told.notes.join("\n");
    assert!(
        told.contains("the program was rebuilt; checking 1 group"),
        "{told}"
    );
    assert!(told.contains("1 fixed"), "{told}");
    // What came between the new build and the look at it has been run by both.
    assert!((1..=2).contains(&times(&room, b"mega")));
    assert_eq!(times(&room, b"kilo"), 2);
}

#[test]
fn a_program_that_cannot_be_run_is_an_error() {
    let room = Rc::new(Room::new());
    room.drop_file("in/1", CRASH);
    let mut settings = settings(&room, "crtplot");
    let nothing = room.path("nothing");
    settings.minimizing.target = Target::new(Program::Path(nothing));
    settings.minimizing.way = Way::Command;
    let (summary, _) = watched(&room, &settings, &mut Others(Producing::Ended));
    assert!(summary.is_err());
}
