//! Tests the limits on the number of steps.

use ddfuzz_afl::{SEARCHES, Settings, Trimmer, afl_steps, default_steps};

use crate::{coverage, settings, text, trim};

#[test]
fn steps_of_afls_own_trimming_are_those_that_it_was_seen_to_take() {
    // By AFL++ 4.04c, of entries of which it could delete nothing.
    assert_eq!([1495, 3675].map(afl_steps), [732, 1819]);
    assert_eq!([0, 1, 4].map(afl_steps), [0, 0, 0]);
    assert_eq!(
        afl_steps(1 << 20),
        (16 + 32 + 64 + 128 + 256 + 512 + 1024) - 7
    );
}

#[test]
fn steps_grow_with_the_length_and_have_an_end() {
    let mut last = 0;
    for power in 0..21 {
        let steps = default_steps(1 << power);
        assert!(steps >= last && steps > 0, "{power}");
        last = steps;
    }
    assert!(default_steps(usize::MAX / 4) < 100_000);
}

#[test]
fn no_more_steps_are_taken_than_there_are() {
    let entry = text(60, 5);
    let whole = coverage(&entry);
    for search in SEARCHES {
        let all = trim(
            &mut Trimmer::new(settings(search, u32::MAX)),
            &entry,
            |text| coverage(text) == whole,
        );
        for steps in [1, 2, 3, 10, 40] {
            let mut trimmer = Trimmer::new(settings(search, steps));
            assert_eq!(trimmer.begin(&entry), steps);
            let done = trim(&mut trimmer, &entry, |text| coverage(text) == whole);
            // A budget cuts a search short, and does not change it.
            assert_eq!(done.asked, all.asked[..steps as usize], "{search} {steps}");
            assert_eq!(coverage(&done.stored), whole, "{search} {steps}");
        }
    }
}

#[test]
fn the_number_of_steps_fits_into_what_afl_counts_with() {
    let mut trimmer = Trimmer::new(settings("subset", u32::MAX));
    assert_eq!(trimmer.begin(b"some text"), i32::MAX.unsigned_abs());
}

#[test]
fn without_steps_nothing_is_trimmed() {
    let mut trimmer = Trimmer::new(settings("subset", 0));
    assert_eq!(trimmer.begin(b"some text"), 0);
}

#[test]
fn entries_of_a_byte_or_none_have_no_steps() {
    let mut trimmer = Trimmer::new(Settings::default());
    assert_eq!(trimmer.begin(b""), 0);
    assert_eq!(trimmer.begin(b"x"), 0);
    assert!(trimmer.begin(b"xy") > 0);
}

#[test]
fn an_entry_of_a_mebibyte_is_trimmed_to_its_two_needed_bytes() {
    let mut entry = vec![b' '; 1 << 20];
    entry[77_777] = b'<';
    entry[777_777] = b'>';
    let mut trimmer = Trimmer::new(Settings::default());
    let done = trim(&mut trimmer, &entry, |text| {
        text.contains(&b'<') && text.contains(&b'>')
    });
    assert_eq!(done.stored, b"<>");
    assert!(done.asked.len() < 100, "{}", done.asked.len());
}
