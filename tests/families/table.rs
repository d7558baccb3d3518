//! The table of figures.

use crate::binary::*;
use crate::bytes::*;
use crate::count::{Case, reduce};
use crate::structured::*;

struct Family {
    name: &'static str,
    full: usize,
    subset: usize,
    size: usize,
    cases: Vec<Case>,
}

fn seeds(make: impl Fn(u64) -> Case) -> Vec<Case> {
    let many = std::env::var("SEEDS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(10);
    (1..=many).map(make).collect()
}

fn families() -> Vec<Family> {
    let f = |name, full, subset, size, cases| Family {
        name,
        full,
        subset,
        size,
        cases,
    };
    vec![
        f(
            "long line 1e5",
            60,
            2200,
            2121,
            seeds(|s| long_line(s, 100_000, 2121)),
        ),
        f(
            "long line 1e6",
            65,
            2200,
            2121,
            seeds(|s| long_line(s, 1_000_000, 2121)),
        ),
        f(
            "printable line",
            85,
            2500,
            517,
            seeds(|s| printable_line(s, 100_000, 516)),
        ),
        f(
            "one byte 1e6",
            25,
            25,
            1,
            seeds(|s| scattered(s, 1_000_000, 1)),
        ),
        f(
            "two bytes 1e6",
            50,
            50,
            2,
            seeds(|s| scattered(s, 1_000_000, 2)),
        ),
        f(
            "eight bytes",
            125,
            120,
            8,
            seeds(|s| scattered(s, 20_000, 8)),
        ),
        f("all needed", 325, 320, 300, seeds(|s| all_needed(s, 300))),
        f("every other", 240, 235, 200, seeds(|s| every_other(s, 400))),
        f(
            "header and line",
            85,
            78,
            14,
            seeds(|s| header_and_line(s, 1000)),
        ),
        f(
            "two bugs, size",
            105,
            105,
            2,
            seeds(|s| two_bugs_by_size(s, 8192)),
        ),
        f(
            "two bugs, position",
            105,
            105,
            2,
            seeds(|s| two_bugs_by_position(s, 8192)),
        ),
        f("nested, needle", 90, 90, 12, seeds(nested_needle)),
        f("nested, kinds", 90, 90, 12, seeds(nested_kinds)),
        f("nested, deep", 90, 90, 12, seeds(nested_deep)),
        f("nested, depth", 90, 90, 12, seeds(nested_depth)),
        f("json, path", 130, 130, 22, seeds(json_path)),
        f("json, members", 130, 130, 19, seeds(json_members)),
        f("json, word", 130, 130, 10, seeds(json_word)),
        f(
            "records, u8",
            45,
            0,
            3,
            seeds(|s| {
                record_file(
                    s,
                    2048,
                    Records {
                        magic: b"",
                        count: (1, false),
                        kind: 0,
                        length: (1, false),
                    },
                )
            }),
        ),
        f(
            "records, u16",
            45,
            0,
            5,
            seeds(|s| {
                record_file(
                    s,
                    2048,
                    Records {
                        magic: b"",
                        count: (2, false),
                        kind: 0,
                        length: (2, true),
                    },
                )
            }),
        ),
        f(
            "records, typed",
            45,
            0,
            9,
            seeds(|s| {
                record_file(
                    s,
                    2048,
                    Records {
                        magic: b"RF",
                        count: (4, true),
                        kind: 1,
                        length: (1, false),
                    },
                )
            }),
        ),
        f(
            "frame, sum32",
            170,
            0,
            10,
            seeds(|s| {
                protected(
                    s,
                    1024,
                    Frame {
                        magic: b"",
                        length: (2, false),
                        check: (4, false, sum),
                    },
                    false,
                )
            }),
        ),
        f(
            "frame, crc32",
            170,
            0,
            12,
            seeds(|s| {
                protected(
                    s,
                    1024,
                    Frame {
                        magic: b"PK",
                        length: (2, true),
                        check: (4, true, crc32),
                    },
                    false,
                )
            }),
        ),
        f(
            "frame, odd, observed",
            170,
            0,
            10,
            seeds(|s| {
                protected(
                    s,
                    1024,
                    Frame {
                        magic: b"",
                        length: (2, false),
                        check: (4, false, odd_hash),
                    },
                    true,
                )
            }),
        ),
        f(
            "frame, crc, observed",
            170,
            0,
            10,
            seeds(|s| {
                protected(
                    s,
                    1024,
                    Frame {
                        magic: b"",
                        length: (2, true),
                        check: (4, true, crc32),
                    },
                    true,
                )
            }),
        ),
        f("select", 30, 27, 8, vec![select()]),
        f("select, one piece", 30, 27, 8, vec![select_in_one_piece()]),
    ]
}

#[test]
fn figures_are_reached() {
    let only = std::env::var("ONLY").unwrap_or_default();
    let verbose = std::env::var("V").is_ok();
    for family in families().into_iter().filter(|f| f.name.contains(&only)) {
        for (search, bound) in [("subset", family.subset), ("full", family.full)] {
            if std::env::var("S").is_ok_and(|only| only != search) {
                continue;
            }
            let reduced: Vec<_> = family
                .cases
                .iter()
                .map(|case| reduce(search, case))
                .collect();
            if verbose {
                let worst = reduced.iter().max_by_key(|one| one.tests()).unwrap();
                for (i, step) in worst.log.iter().enumerate() {
                    println!("{i} {step:?}");
                }
                println!(
                    "{:?} {:?}",
                    String::from_utf8_lossy(&worst.text),
                    worst.text
                );
            }
            let tests: Vec<_> = reduced.iter().map(|one| one.tests()).collect();
            let size = reduced.iter().map(|one| one.text.len()).max().unwrap_or(0);
            let over = tests.iter().filter(|n| **n > bound).count();
            println!(
                "{:22} {search:7} mean {:6} max {:5} bound {bound:5} over {over} size {size} ({}) {}",
                family.name,
                tests.iter().sum::<usize>() / tests.len(),
                tests.iter().max().unwrap_or(&0),
                family.size,
                if size > family.size || over > 0 {
                    "****"
                } else {
                    ""
                }
            );
        }
    }
}
