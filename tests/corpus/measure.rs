//! Contents and what they reach: a function of what the files hold.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use ddfuzz::corpus::measure::{NotRead, measure};
use ddfuzz::corpus::{Amount, ContentId};
use ddfuzz::exec::Target;

use crate::harness::harness;
use crate::seats::{Seats, bundled, lines, settings};

/// Texts that make `units` go different ways; none is like another.
fn text(number: usize) -> String {
    let words = [
        "foot", "10 m", "3 kg ^", "((", "!", "\u{e9}", "-", "1e5 inch",
    ];
    format!(
        "{}\n{number}\n",
        words[number % words.len()].repeat(number % 9)
    )
}

/// A harness that goes as many ways as there are texts.
fn branching() -> Option<Target> {
    let body = "for (size_t at = 0; at < length && at < 40; at++)
        if (text[at] == '(') place = 1; else if (text[at] == '9') place = 2;
        else if (text[at] > 'f') place = 3;";
    harness("branching", body)
}

#[test]
fn workers_and_names_do_not_change_what_is_measured() {
    let (one, other) = (Seats::new(), Seats::new());
    for number in 0..600 {
        one.put(format!("{number:04}"), text(number));
        other.put(format!("{number:04}"), text(number));
        if number % 3 == 0 {
            one.put(format!("again/{number}"), text(number));
        }
    }
    let Some(target) = branching() else {
        return;
    };
    let (single, many) = (one.measure(&target, 1), other.measure(&target, 4));
    assert_eq!(single.len(), 600);
    let relative = |seats: &Seats, contents: &_| {
        let mut lines = lines(contents);
        for line in &mut lines {
            line.path = line.path.strip_prefix(seats.corpus()).unwrap().into();
        }
        lines
    };
    assert_eq!(relative(&one, &single), relative(&other, &many));
    assert_eq!(single.file_counts.duplicates.files, 200);
    assert_eq!(many.file_counts.duplicates, Amount::default());
    assert_eq!(single.places, many.places);
    let ids: Vec<ContentId> = (0..600).map(|number| single.id(number)).collect();
    assert!(ids.is_sorted());
    assert_eq!(single.find(&ids[77]), Some(77));
    assert_eq!(single.find(&ContentId::of(b"other")), None);
    let features = |number| single.first_run(number).unwrap().features.unwrap().len();
    assert!((0..600).map(features).max() > (0..600).map(features).min());
}

#[test]
fn a_second_call_runs_nothing() {
    let seats = Seats::new();
    for number in 0..300 {
        seats.put(format!("{number}"), text(number));
    }
    let target = bundled("units");
    let first = seats.measure(&target, 2);
    assert_eq!((first.progress.runs, first.progress.reused), (300, 0));
    let before = lines(&first);
    drop(first);
    let second = seats.measure(&target, 2);
    assert_eq!((second.progress.runs, second.progress.reused), (0, 300));
    assert_eq!(lines(&second), before);
    drop(second);
    seats.put("new", "something else");
    std::fs::remove_file(seats.corpus().join("7")).unwrap();
    let third = seats.measure(&target, 2);
    assert_eq!((third.len(), third.progress.runs), (300, 1));
    drop(third);
    let other = seats.measure(&bundled("units-fixed"), 2);
    assert_eq!((other.progress.runs, other.progress.reused), (300, 0));
    assert!(other.opened.replaced);
}

#[test]
fn the_least_path_stands_for_a_content() {
    let seats = Seats::new();
    let least = Path::new(OsStr::from_bytes(b"a\n\xff"));
    for name in [Path::new("z"), Path::new("sub/a"), least, Path::new("b")] {
        seats.put(name, "same");
    }
    for jobs in [1, 3] {
        let contents = seats.measure(&bundled("units"), jobs);
        assert_eq!(contents.len(), 1);
        assert_eq!(contents.path(0).unwrap(), seats.corpus().join(least));
        let duplicates = Amount {
            files: 3,
            bytes: 12,
        };
        assert_eq!(contents.file_counts.duplicates, duplicates);
    }
}

#[test]
fn fifty_thousand_empty_files_are_one_content() {
    let seats = Seats::new();
    for number in 0..50_000 {
        std::fs::File::create(seats.corpus().join(number.to_string())).unwrap();
    }
    let contents = seats.measure(&bundled("units"), 2);
    assert_eq!((contents.len(), contents.progress.runs), (1, 1));
    assert_eq!(contents.file_counts.before.files, 50_000);
    assert_eq!(contents.file_counts.duplicates.files, 49_999);
    assert_eq!(contents.path(0).unwrap(), seats.corpus().join("0"));
}

#[test]
fn what_cannot_be_read_or_is_too_long_is_told_of() {
    let seats = Seats::new();
    seats.put("good", "1");
    let long = seats.put("long", vec![b'x'; 5000]);
    seats.put("as-long-as-allowed", vec![b'x'; 4096]);
    let unreadable = seats.corpus().join("memory");
    // A regular file of which no byte can be had, by whoever asks.
    symlink("/proc/self/mem", &unreadable).unwrap();
    let (target, stop) = (bundled("units"), AtomicBool::new(false));
    let mut settings = settings(&target, 1, &stop);
    settings.max_len = 4096;
    let contents = measure(&[seats.corpus()], &seats.out(), &settings, &mut |_| {}).unwrap();
    assert_eq!(contents.len(), 2);
    let tally = &contents.file_counts;
    assert_eq!(tally.before.files, 4);
    assert_eq!(
        tally.oversized.amount(),
        Amount {
            files: 1,
            bytes: 5000
        }
    );
    let (path, why) = tally.oversized.examples().next().unwrap();
    assert_eq!(path, long);
    assert!(
        why.contains("5000 bytes") && why.contains("--max-len"),
        "{why}"
    );
    let (path, why) = tally.unread.examples().next().unwrap();
    assert_eq!(path, unreadable);
    assert!(why.contains("error"), "{why}");
}

#[test]
fn files_that_vanish_meanwhile_are_counted_and_harm_nothing() {
    let seats = Seats::new();
    let paths: Vec<_> = (0..3000)
        .map(|number| seats.put(format!("{number}"), text(number)))
        .collect();
    let contents = std::thread::scope(|scope| {
        scope.spawn(|| {
            for path in paths.iter().rev().step_by(2) {
                std::fs::remove_file(path).unwrap();
            }
        });
        seats.measure(&bundled("units"), 2)
    });
    let tally = &contents.file_counts;
    let read = contents.len() as u64 + tally.duplicates.files;
    assert_eq!(tally.before.files, read);
    assert!(read + tally.vanished.amount().files <= 3000);
    assert!(read >= 1500);
}

#[test]
fn a_content_is_read_again_only_while_its_file_holds_it() {
    let seats = Seats::new();
    let path = seats.put("file", "before");
    let contents = seats.measure(&bundled("units"), 1);
    let mut bytes = Vec::new();
    contents.read(0, &mut bytes).unwrap();
    assert_eq!(bytes, b"before");
    for other in ["behind", "longer than before", ""] {
        std::fs::write(&path, other).unwrap();
        assert_eq!(contents.read(0, &mut bytes), Err(NotRead::Changed));
    }
    std::fs::remove_file(&path).unwrap();
    assert_eq!(contents.read(0, &mut bytes), Err(NotRead::Vanished));
}

#[test]
fn what_was_stopped_goes_on_where_it_was() {
    let seats = Seats::new();
    for number in 0..2000 {
        seats.put(format!("{number}"), text(number));
    }
    let (target, stop) = (bundled("units"), AtomicBool::new(true));
    let call = |stop: &AtomicBool| {
        let settings = settings(&target, 2, stop);
        measure(
            &[seats.corpus()],
            &seats.out(),
            &settings,
            &mut |progress| {
                // At the first look at it.
                stop.store(progress.runs > 0 || progress.files == 0, Ordering::Relaxed);
            },
        )
        .unwrap()
    };
    let stopped = call(&stop);
    assert!(stopped.interrupted && stopped.is_empty());
    drop(stopped);
    let whole = seats.measure(&target, 1);
    assert!(!whole.interrupted);
    assert_eq!(whole.len(), 2000);
}
