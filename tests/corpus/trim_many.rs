//! Trimming many files by workers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};

use ddfuzz::corpus::trim::{ToTrim, TrimError, TrimSettings, TrimWatch, Trimmed, trim_all};

use crate::ddfuzz::Desk;
use crate::trim_targets::{harness, kept};

/// What files came to, by number, and the major keys of what they slipped into.
type All = (BTreeMap<usize, Trimmed>, BTreeSet<(usize, String)>);

fn all(trimming: &TrimSettings, files: &[ToTrim], jobs: usize) -> Result<All, TrimError> {
    let (mut done, mut slips) = (BTreeMap::new(), BTreeSet::new());
    let result = trim_all(
        trimming,
        files.iter().cloned(),
        jobs,
        TrimWatch {
            on_trimmed: &mut |number, trimmed| {
                assert!(done.insert(number, trimmed).is_none());
                Ok(())
            },
            on_slip: &mut |number, slip, _| {
                slips.insert((number, slip.keys.major.short()));
                Ok(())
            },
            stop: &AtomicBool::new(false),
        },
    );
    result.map(|()| (done, slips))
}

fn files(trimming: &TrimSettings, desk: &Desk, name: &str) -> Vec<ToTrim> {
    let inputs: [(&[u8], &[u8]); 5] = [
        (b"((key 12 lock", b"key"),
        (b"((key 12 lock", b"lock"),
        (b"0123456789", b"1"),
        (b"", b""),
        (b"!x! (((( key", b"(k"),
    ];
    let numbered = inputs.iter().cycle().take(15).enumerate();
    numbered
        .map(|(number, (input, kept_for))| {
            let folder = desk.file(&format!("{name}-{number}"));
            kept(trimming, input, kept_for, folder)
        })
        .collect()
}

#[test]
fn results_do_not_depend_on_the_number_of_workers() {
    let desk = Desk::new();
    let Some(trimming) = harness(&desk) else {
        return;
    };
    let alone = all(&trimming, &files(&trimming, &desk, "alone"), 1).unwrap();
    let three = all(&trimming, &files(&trimming, &desk, "three"), 3).unwrap();
    assert_eq!(alone, three);
    assert_eq!(alone.0.len(), 15);
    for number in 0..15 {
        let read = |name: &str| desk.read(&format!("{name}-{number}/minimized"));
        assert_eq!(read("alone"), read("three"));
    }
    let again = all(&trimming, &files(&trimming, &desk, "alone"), 2).unwrap();
    assert!(again.0.values().all(|trimmed| trimmed.reused));
    assert!(
        again
            .0
            .values()
            .map(|one| one.size_after)
            .eq(alone.0.values().map(|one| one.size_after))
    );
}

#[test]
fn who_is_stopped_goes_on_where_he_was() {
    let desk = Desk::new();
    let Some(trimming) = harness(&desk) else {
        return;
    };
    let files = files(&trimming, &desk, "file");
    let stop = AtomicBool::new(false);
    let mut done = 0;
    let stopped = trim_all(
        &trimming,
        files.iter().cloned(),
        1,
        TrimWatch {
            on_trimmed: &mut |_, _| {
                done += 1;
                stop.store(done == 3, Ordering::Relaxed);
                Ok(())
            },
            on_slip: &mut |_, _, _| Ok(()),
            stop: &stop,
        },
    );
    assert!(stopped.unwrap_err().is_interrupted());
    assert_eq!(done, 3);
    let (all, _) = all(&trimming, &files, 1).unwrap();
    let reused = all.values().filter(|trimmed| trimmed.reused);
    assert_eq!((all.len(), reused.count()), (15, 3));
}

#[test]
fn a_result_that_cannot_be_taken_ends_it() {
    let desk = Desk::new();
    let Some(trimming) = harness(&desk) else {
        return;
    };
    let files = files(&trimming, &desk, "file");
    let result = trim_all(
        &trimming,
        files,
        2,
        TrimWatch {
            on_trimmed: &mut |_, _| Err("no room".into()),
            on_slip: &mut |_, _, _| Ok(()),
            stop: &AtomicBool::new(false),
        },
    );
    let error = result.unwrap_err();
    assert!(!error.is_interrupted());
    assert!(error.to_string().contains("no room"), "{error}");
}
