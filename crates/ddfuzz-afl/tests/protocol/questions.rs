//! Tests which candidates the library asks for, and what results.

use std::cell::RefCell;
use std::hash::{DefaultHasher, Hash, Hasher};

use ddfuzz_afl::{SEARCHES, Settings, TrimSearch, Trimmer};
use ddfuzz_delta::{Config, Tester, TextId, ddmin};

use crate::{Trimmed, coverage, outcome, settings, text, trim};

/// Runs a search by `ddfuzz-delta` alone, without this library: returns the tested texts and the
/// result.
fn by_delta(search: &str, entry: &[u8], keeps: impl Fn(&[u8]) -> bool) -> Trimmed {
    let asked = RefCell::new(Vec::new());
    let text_of = |config: &Config| {
        let mut text = Vec::new();
        config.write_into(entry, &mut text);
        text
    };
    let machine = TrimSearch::by_name(search).unwrap();
    let mut machine = machine.stage(0, entry).unwrap();
    let mut tester = Tester::new(|config| {
        let text = text_of(config);
        let outcome = outcome(keeps(&text));
        asked.borrow_mut().push(text);
        outcome
    });
    tester.name_inputs_by(|config| {
        let mut hasher = DefaultHasher::new();
        text_of(config).hash(&mut hasher);
        let mut name = [0; 16];
        name[..8].copy_from_slice(&hasher.finish().to_le_bytes());
        TextId(name)
    });
    // The axiom, which the caller tests: of the entry, and not of the empty one.
    tester.answer(&Config::all(entry.len()));
    tester.run(machine.as_mut());
    drop(tester);
    Trimmed {
        asked: asked.into_inner(),
        stored: text_of(machine.best()),
    }
}

#[test]
fn deleting_searches_ask_what_delta_asks_test_by_test() {
    for search in ["subset", "ddmin", "ddmin-2002"] {
        let mut trimmer = Trimmer::new(settings(search, u32::MAX));
        for seed in 0..12 {
            let entry = text(3 + 3 * seed, seed);
            let whole = coverage(&entry);
            let keeps = |text: &[u8]| coverage(text) == whole;
            let ours = trim(&mut trimmer, &entry, keeps);
            let theirs = by_delta(search, &entry, keeps);
            assert_eq!(ours.asked, theirs.asked, "{search} {seed}");
            assert_eq!(ours.stored, theirs.stored, "{search} {seed}");
        }
    }
}

#[test]
fn ddmin_comes_to_what_the_function_ddmin_gives() {
    let mut trimmer = Trimmer::new(settings("ddmin", u32::MAX));
    for seed in 20..30 {
        let entry = text(12, seed);
        let whole = coverage(&entry);
        // The empty text has another coverage: there is a line at least.
        let keeps = |text: &[u8]| !text.is_empty() && coverage(text) == whole;
        let ours = trim(&mut trimmer, &entry, keeps);
        let theirs = ddmin(&entry, |text| outcome(keeps(text)));
        assert_eq!(Ok(ours.stored), theirs, "{seed}");
    }
}

#[test]
fn what_is_stored_keeps_the_coverage_and_no_single_byte_can_go() {
    for search in SEARCHES {
        let mut trimmer = Trimmer::new(settings(search, u32::MAX));
        for seed in 40..46 {
            let entry = text(25, seed);
            let whole = coverage(&entry);
            let stored = trim(&mut trimmer, &entry, |text| coverage(text) == whole).stored;
            assert_eq!(coverage(&stored), whole, "{search} {seed}");
            assert!(
                stored.len() < entry.len() / 4,
                "{search} {seed}: {stored:?}"
            );
            for at in 0..stored.len() {
                let mut less = stored.clone();
                less.remove(at);
                assert!(
                    less.is_empty() || coverage(&less) != whole,
                    "{search} {seed}: byte {at} of {stored:?}"
                );
            }
        }
    }
}

#[test]
fn each_text_is_asked_once_and_each_success_is_smaller() {
    for search in SEARCHES {
        let mut trimmer = Trimmer::new(settings(search, u32::MAX));
        for seed in 60..66 {
            let entry = text(20, seed);
            let whole = coverage(&entry);
            let done = trim(&mut trimmer, &entry, |text| coverage(text) == whole);
            let mut sorted = done.asked.clone();
            sorted.sort();
            sorted.dedup();
            assert_eq!(sorted.len(), done.asked.len(), "{search} {seed}");
            let kept = done.asked.iter().filter(|text| coverage(text) == whole);
            let sizes: Vec<usize> = kept.map(Vec::len).collect();
            assert!(
                sizes.is_sorted_by(|one, next| one >= next),
                "{search} {seed}"
            );
        }
    }
}

#[test]
fn no_candidate_is_empty_where_every_deletion_succeeds() {
    for search in SEARCHES {
        let mut trimmer = Trimmer::new(settings(search, u32::MAX));
        for len in 0..70 {
            let entry = vec![b'x'; len];
            let done = trim(&mut trimmer, &entry, |_| true);
            assert!(
                done.asked.iter().all(|text| !text.is_empty()),
                "{search} {len}"
            );
            assert_eq!(done.stored.len(), len.min(1), "{search}");
        }
    }
}

#[test]
fn an_entry_without_a_steady_coverage_costs_one_step() {
    let mut trimmer = Trimmer::new(Settings::default());
    let entry = text(50, 1);
    let done = trim(&mut trimmer, &entry, |_| false);
    assert_eq!(done.asked, [entry]);
}

#[test]
fn one_entry_after_the_other_is_trimmed_as_if_alone() {
    let mut one_for_all = Trimmer::new(Settings::default());
    for seed in 80..90 {
        let entry = text(15, seed);
        let whole = coverage(&entry);
        let keeps = |text: &[u8]| coverage(text) == whole;
        let alone = trim(&mut Trimmer::new(Settings::default()), &entry, keeps);
        assert_eq!(trim(&mut one_for_all, &entry, keeps).asked, alone.asked);
    }
}

#[test]
fn blocks_of_ever_smaller_size_go_first_and_then_single_bytes() {
    let entry: Vec<u8> = (0..=255).collect();
    let mut trimmer = Trimmer::new(settings("blocks", u32::MAX));
    let asked = trim(&mut trimmer, &entry, |text| text.len() == 256).asked;
    let sizes: Vec<usize> = asked.iter().map(|text| 256 - text.len()).collect();
    let blocks = [vec![0], vec![16; 16], vec![8; 32], vec![4; 64]].concat();
    assert_eq!(sizes[..blocks.len()], blocks);
    assert!(
        sizes[blocks.len()..]
            .iter()
            .filter(|&&size| size == 1)
            .count()
            == 256
    );
    // From the front to the end.
    assert_eq!(asked[1], entry[16..]);
    assert_eq!(asked[16], entry[..240]);
}
