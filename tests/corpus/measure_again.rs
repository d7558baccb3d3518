//! Contents that are run again.

use std::sync::atomic::{AtomicBool, Ordering};

use ddfuzz::corpus::measure::{Files, NotRead, run_again};

use crate::harness::harness;
use crate::seats::{Seats, bundled, settings};

#[test]
fn what_a_steady_target_reaches_it_reaches_each_time() {
    let seats = Seats::new();
    for number in 0..100 {
        seats.put(format!("{number}"), format!("{} m\n", number * 31));
    }
    let body = "for (size_t at = 0; at < length; at++) if (text[at] > '4') place = 1;";
    let Some(target) = harness("steady", body) else {
        return;
    };
    let stop = AtomicBool::new(false);
    let mut contents = seats.measure(&target, 2);
    let numbers: Vec<usize> = (0..contents.len()).step_by(3).collect();
    let repeated = contents
        .repeat(&settings(&target, 2, &stop), &numbers, 3)
        .unwrap()
        .unwrap();
    assert_eq!(repeated.len(), numbers.len());
    for (number, repeated) in numbers.iter().zip(&repeated) {
        let features = contents.first_run(*number).unwrap().features.unwrap();
        assert_eq!(
            (&repeated.each_time, &repeated.ever()),
            (&features, &features)
        );
        assert_eq!(repeated.ended.len(), 3);
        assert!(!repeated.suspicious);
    }
}

#[test]
fn flaky_coverage_is_found_out_once_and_noted() {
    // What the second half of each ten runs of a process reaches depends on nothing else.
    let body = "if (runs % 10 < 5) place = 1; if (length > 1) place = 2;";
    let Some(target) = harness("flaky", body) else {
        return;
    };
    let seats = Seats::new();
    for number in 0..100 {
        seats.put(format!("{number}"), format!("{number}"));
    }
    let stop = AtomicBool::new(false);
    let settings = settings(&target, 1, &stop);
    let mut contents = seats.measure(&target, 1);
    let numbers: Vec<usize> = (0..contents.len()).collect();
    let repeated = contents.repeat(&settings, &numbers, 5).unwrap().unwrap();
    let flaky = |one: &ddfuzz::corpus::measure::Repeated| one.each_time != one.ever();
    assert!(repeated.iter().filter(|one| flaky(one)).count() > 90);
    assert!(repeated.iter().all(|one| !one.each_time.is_empty()));
    drop(contents);
    let length = || seats.out().join("clean.journal").metadata().unwrap().len();
    let before = length();
    let mut contents = seats.measure(&target, 1);
    let again = contents.repeat(&settings, &numbers, 5).unwrap().unwrap();
    assert_eq!(again, repeated);
    assert_eq!(length(), before);
}

#[test]
fn a_file_that_is_gone_is_told_of_and_others_are_repeated() {
    let seats = Seats::new();
    let gone = seats.put("gone", "1 m");
    seats.put("stays", "22 m");
    let (target, stop) = (bundled("units"), AtomicBool::new(false));
    let mut contents = seats.measure(&target, 1);
    std::fs::remove_file(gone).unwrap();
    let settings = settings(&target, 1, &stop);
    let repeated = contents.repeat(&settings, &[0, 1], 2).unwrap().unwrap();
    assert_eq!(repeated[0].not_read, Some(NotRead::Vanished));
    assert_eq!(repeated[1].ended.len(), 2);
    stop.store(true, Ordering::Relaxed);
    assert_eq!(contents.repeat(&settings, &[1], 3).unwrap(), None);
}

#[test]
fn given_bytes_reach_what_their_files_do() {
    let seats = Seats::new();
    let texts: Vec<String> = (0..300).map(|n| format!("{n} kg {n}")).collect();
    for (number, text) in texts.iter().enumerate() {
        seats.put(format!("{number}"), text);
    }
    let body = "if (length > 8) place = 1; if (length > 0 && text[0] == '2') place = 2;";
    let Some(target) = harness("two-ways", body) else {
        return;
    };
    let stop = AtomicBool::new(false);
    let contents = seats.measure(&target, 2);
    let mut met = vec![0; texts.len()];
    let whole = run_again(
        &settings(&target, 3, &stop),
        &&texts[..],
        7,
        &mut |number, seen| {
            let id = ddfuzz::corpus::ContentId::of(texts[number].as_bytes());
            let place = contents.find(&id).unwrap();
            assert_eq!(seen.unwrap().features, contents.first_run(place)?.features);
            met[number] += 1;
            Ok(())
        },
    );
    assert!(whole.unwrap());
    assert_eq!(met, vec![1; texts.len()]);
    let mut paths: Vec<_> = (0..3).map(|n| seats.corpus().join(n.to_string())).collect();
    paths.push(seats.corpus().join("gone"));
    let mut gone = Vec::new();
    let each = &mut |number, seen| {
        gone.extend(Result::err(seen).map(|why| (number, why)));
        Ok(())
    };
    assert!(run_again(&settings(&target, 1, &stop), &Files(&paths), 1, each).unwrap());
    assert_eq!(gone, [(3, NotRead::Vanished)]);
}
