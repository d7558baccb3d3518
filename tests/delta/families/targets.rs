//! The target figures, each for a few seeds.

use super::binary::{
    Frame, Records, crc32, framed_records, odd_hash, padded_records, protected, record_file, sum,
    tagged_records,
};
use super::bytes::*;
use super::count::{Case, reduce};
use super::deep::{balanced, repeated};
use super::structured::*;

/// Seeds of the cases that are tried of each family.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=4;

/// Reduces the cases of a family; each must end at the known minimum within the tests allowed.
fn within(search: &str, tests: usize, size: usize, case: impl Fn(u64) -> Case) {
    for seed in SEEDS {
        let reduced = reduce(search, &case(seed));
        let size_after = reduced.text.len();
        assert_eq!(
            size_after, size,
            "{search}, seed {seed}: {:?}",
            reduced.text
        );
        let taken = reduced.tests();
        assert!(
            taken <= tests,
            "{search}, seed {seed}: {taken} tests of {tests}"
        );
        // A structure that is recognized in an input without one costs next to nothing.
        if cfg!(feature = "engine") && search == "full" {
            let structured = reduce("structured", &case(seed));
            assert_eq!(structured.text, reduced.text, "seed {seed}");
            assert!(
                structured.tests() <= taken + 2,
                "seed {seed}: {} tests instead of {taken}",
                structured.tests()
            );
        }
    }
}

/// By both searches.
fn both(full: usize, subset: usize, size: usize, case: impl Fn(u64) -> Case) {
    within("full", full, size, &case);
    within("subset", subset, size, &case);
}

#[test]
fn a_long_line_is_found_and_proved_in_few_tests() {
    within("full", 60, 2121, |seed| long_line(seed, 100_000, 2121));
    within("full", 65, 2121, |seed| long_line(seed, 1_000_000, 2121));
}

#[test]
fn deleting_alone_proves_a_long_line_byte_by_byte() {
    let case = long_line(1, 100_000, 2121);
    let reduced = reduce("subset", &case);
    assert_eq!(reduced.text.len(), 2121);
    assert!(reduced.tests() <= 2200, "{}", reduced.tests());
}

#[test]
fn printable_bytes_before_a_newline_become_one_run() {
    both(85, 2500, 517, |seed| printable_line(seed, 100_000, 516));
}

#[test]
fn one_byte_of_a_million_takes_a_bisection() {
    both(25, 25, 1, |seed| scattered(seed, 1_000_000, 1));
}

#[test]
fn two_far_bytes_take_two_bisections() {
    both(50, 50, 2, |seed| scattered(seed, 1_000_000, 2));
}

/// Where the bytes lie decides a few tests more or less; 107 are the least that any method takes on
/// average, eight of the proof included.
#[test]
fn scattered_bytes_take_hardly_more_than_their_entropy() {
    for (search, tests) in [("full", 125), ("subset", 120)] {
        let reduced = (1..=25).map(|seed| reduce(search, &scattered(seed, 20_000, 8)));
        let reduced: Vec<_> = reduced.collect();
        assert!(reduced.iter().all(|one| one.text.len() == 8));
        let sum: usize = reduced.iter().map(|one| one.tests()).sum();
        assert!(sum <= tests * reduced.len(), "{search}: {sum} tests in all");
        let most = reduced.iter().map(|one| one.tests()).max();
        assert!(most <= Some(tests + 8), "{search}: {most:?} tests");
    }
}

#[test]
fn where_all_bytes_are_needed_the_proof_is_nearly_all() {
    both(325, 320, 300, |seed| all_needed(seed, 300));
}

#[test]
fn a_periodic_pattern_is_taken_at_once() {
    both(240, 235, 200, |seed| every_other(seed, 400));
}

#[test]
fn a_header_and_a_line_are_found_by_lines() {
    both(85, 78, 14, |seed| header_and_line(seed, 1000));
}

#[test]
fn the_same_bug_is_kept_where_the_size_decides_which() {
    both(105, 105, 2, |seed| two_bugs_by_size(seed, 8192));
}

#[test]
fn the_same_bug_is_kept_where_a_position_decides_which() {
    both(105, 105, 2, |seed| two_bugs_by_position(seed, 8192));
}

#[test]
fn nested_brackets_stay_balanced() {
    both(90, 90, 12, nested_needle);
    both(90, 90, 12, nested_kinds);
    both(90, 90, 12, nested_deep);
    both(90, 90, 12, nested_depth);
}

#[test]
fn a_json_text_stays_one() {
    both(130, 130, 22, json_path);
    both(130, 130, 19, json_members);
    both(130, 130, 10, json_word);
}

#[test]
fn counts_and_lengths_of_records_are_kept_right() {
    let plain = Records {
        magic: b"",
        count: (1, false),
        kind: 0,
        length: (1, false),
    };
    let wide = Records {
        count: (2, false),
        length: (2, true),
        ..plain
    };
    let typed = Records {
        magic: b"RF",
        count: (4, true),
        kind: 1,
        ..plain
    };
    within("full", 45, 3, |seed| record_file(seed, 2048, plain));
    within("full", 45, 5, |seed| record_file(seed, 2048, wide));
    within("full", 45, 9, |seed| record_file(seed, 2048, typed));
}

#[cfg(feature = "engine")]
#[test]
fn records_that_nothing_counts_go_before_all_single_bytes_are_tried() {
    within("structured", 100, 3, |seed| tagged_records(seed, 1000));
    within("structured", 100, 3, |seed| tagged_records(seed, 4000));
    within("full", 80, 13, |seed| framed_records(seed, 4));
    within("full", 80, 13, |seed| framed_records(seed, 40));
    for seed in SEEDS {
        let reduced = reduce("structured", &padded_records(seed, 40));
        let (size, tests) = (reduced.text.len(), reduced.tests());
        assert!(
            size <= 20 && tests <= 6000,
            "seed {seed}: {tests} tests, {size} bytes"
        );
    }
}

#[test]
fn known_checksums_are_computed() {
    let summed = Frame {
        magic: b"",
        length: (2, false),
        check: (4, false, sum),
    };
    let zipped = Frame {
        magic: b"PK",
        length: (2, true),
        check: (4, true, crc32),
    };
    within("full", 170, 10, |seed| protected(seed, 1024, summed, false));
    within("full", 170, 12, |seed| protected(seed, 1024, zipped, false));
}

#[test]
fn unknown_checksums_are_repaired_by_what_the_run_compared() {
    let odd = Frame {
        magic: b"",
        length: (2, false),
        check: (4, false, odd_hash),
    };
    within("full", 170, 10, |seed| protected(seed, 1024, odd, true));
}

#[test]
fn the_example_of_the_papers_takes_no_more_tests_than_theirs() {
    both(30, 27, 8, |_| select());
    both(30, 27, 8, |_| select_in_one_piece());
}

#[test]
fn deep_nests_are_shortened_by_halves() {
    within("full", 17, 400, |_| {
        repeated(b"(", 12_000, b"(", 400, b"x = 1;\n", b"")
    });
    within("full", 76, 400, |_| {
        repeated(b"(a|b*", 2400, b"(", 400, b"x", b")")
    });
    within("full", 123, 800, |_| {
        balanced(b"(lambda (x) ", 800, b"x", b")", 400)
    });
}
