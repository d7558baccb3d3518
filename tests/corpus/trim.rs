//! Trimming one file.

use std::cell::RefCell;
use std::sync::atomic::AtomicBool;

use ddfuzz::corpus::Features;
use ddfuzz::corpus::trim::{
    RequiredFeatures, SkipReason, ToTrim, TrimError, TrimSettings, Trimmed,
};
use ddfuzz::exec::{CoverageReporting, Freshness, Program, Target, Way, start};
use ddfuzz::minimize::{Claim, Slip};

use crate::ddfuzz::Desk;
use crate::harness as harnesses;
use crate::trim_targets::{WORDS, harness, kept, reach, troff};

/// Trims a file; gives the result, its content, and the slips.
pub fn trim(trimming: &TrimSettings, file: &ToTrim) -> (Trimmed, Vec<u8>, Vec<Slip>) {
    let slips = RefCell::new(Vec::new());
    let mut trimmer = trimming.start().unwrap();
    let stop = AtomicBool::new(false);
    let on_slip = |slip: &Slip, _: Option<u64>| {
        slips.borrow_mut().push(slip.clone());
        Ok(())
    };
    let trimmed = trimmer.trim(file, &on_slip, &stop).unwrap();
    let text = std::fs::read(file.folder.join("minimized")).unwrap();
    assert_eq!(text.len() as u64, trimmed.size_after);
    (trimmed, text, slips.into_inner())
}

#[test]
fn a_file_shrinks_to_what_it_is_kept_for() {
    for words in WORDS {
        let desk = Desk::new();
        let Some(trimming) = words(&desk) else {
            continue;
        };
        let input = b"(((12 abc key 77 lo lock)))";
        let file = kept(&trimming, input, b"key", desk.file("file"));
        let (trimmed, text, slips) = trim(&trimming, &file);
        assert_eq!(text, b"key");
        assert_eq!(trimmed.claim, Claim::OneMinimal);
        assert_eq!((trimmed.left, slips), (None, Vec::new()));
        assert!(trimmed.features.has_all(&file.wanted.required));
        assert_eq!(desk.read("file/original"), input);
    }
}

#[test]
fn the_same_signature_stays_exactly_the_same() {
    for words in WORDS {
        let desk = Desk::new();
        let Some(trimming) = words(&desk) else {
            continue;
        };
        let input = b"zz((4))key 4 lock qqqqqqq";
        let [before] = reach(&trimming, [input]);
        let file = ToTrim {
            input: input.to_vec(),
            wanted: RequiredFeatures::signature(before.clone(), &Features::default()),
            folder: desk.file("file"),
            known: Default::default(),
        };
        let (trimmed, text, _) = trim(&trimming, &file);
        let [after] = reach(&trimming, [&text]);
        assert_eq!(after, before);
        assert_eq!(trimmed.features, before);
        assert!(text.len() <= input.len());
        assert_eq!(trimmed.claim, Claim::OneMinimal);
    }
}

#[test]
fn what_fresh_runs_have_shown_is_not_run_again_in_a_later_round() {
    let desk = Desk::new();
    let Some(trimming) = harness(&desk) else {
        return;
    };
    let first = kept(&trimming, b"((4))key 4 lock", b"key", desk.file("first"));
    let (trimmed, text, _) = trim(&trimming, &first);
    assert_eq!(text, b"key");
    let later = ToTrim {
        input: text,
        folder: desk.file("later"),
        ..first
    };
    let (again, text, _) = trim(&trimming, &later);
    assert_eq!((&text[..], again.claim), (&b"key"[..], Claim::OneMinimal));
    // The three removals of a byte, at least.
    assert!(again.spared >= 3, "{again:?}");
    assert_eq!(again.features, trimmed.features);
    desk.call("log verify later/log.jsonl").exits(0);
    // Another condition, which candidates meet that were rejected by the first.
    let other = ToTrim {
        wanted: kept(&trimming, b"key", b"k", desk.file("k")).wanted,
        folder: desk.file("other"),
        ..later
    };
    let (_, text, _) = trim(&trimming, &other);
    let alone = ToTrim {
        known: Default::default(),
        folder: desk.file("alone"),
        ..other
    };
    assert_eq!(trim(&trimming, &alone).1, text);
}

#[test]
fn a_real_program_reaches_all_that_its_seeds_are_kept_for() {
    let desk = Desk::new();
    let Some(trimming) = troff(&desk) else {
        return;
    };
    let seeds = ["motions", "widths", "indent"].map(|name| {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/corpora/troff/seeds");
        std::fs::read(format!("{folder}/{name}")).unwrap()
    });
    let found = reach(&trimming, [&seeds[0], &seeds[1], &seeds[2]]);
    let mut taken = Features::default();
    for (number, (seed, own)) in seeds.iter().zip(&found).enumerate() {
        let file = ToTrim {
            input: seed.clone(),
            wanted: RequiredFeatures::worth(own.less(&taken)),
            folder: desk.file(&number.to_string()),
            known: Default::default(),
        };
        taken = taken.or(own);
        let (trimmed, text, _) = trim(&trimming, &file);
        let [after] = reach(&trimming, [&text]);
        assert_eq!(trimmed.left, None);
        assert!(after.has_all(&file.wanted.required));
        assert!(text.len() < seed.len());
    }
}

/// Reads chunks of RIFF, whose lengths must all be right.
const CHUNKS: &str = r#"
    #define NUMBER(at) (text[at] | text[(at) + 1] << 8 | (size_t)text[(at) + 2] << 16)
    if (length < 12 || text[0] != 'R' || text[8] != 'W' || NUMBER(4) + 8 != length) return 0;
    for (size_t at = 12; at + 8 <= length; at += 8 + NUMBER(at + 4)) {
        if (NUMBER(at + 4) + 8 > length - at) return 0;
        if (text[at] == 'd') place = 1;
        if (text[at] == 'f') place = 2;
    }
"#;

fn chunk(name: &[u8; 4], content: &[u8]) -> Vec<u8> {
    let size = (content.len() as u32).to_le_bytes();
    [&name[..], &size, content].concat()
}

#[test]
fn a_file_of_a_known_format_shrinks_by_its_parts() {
    let desk = Desk::new();
    let Some(target) = harnesses::harness("chunks", CHUNKS) else {
        return;
    };
    let file = |chunks: &[(&[u8; 4], &[u8])]| {
        let chunks = chunks.iter().map(|(name, content)| chunk(name, content));
        chunk(
            b"RIFF",
            &[&b"WAVE"[..], &chunks.collect::<Vec<_>>().concat()].concat(),
        )
    };
    let input = file(&[
        (b"fmt ", &[1; 16]),
        (b"junk", &[2; 40]),
        (b"data", b"some samples"),
        (b"more", &[3; 20]),
    ]);
    let least = file(&[(b"data", b"")]);
    let trimming = TrimSettings::of_target(target, Way::Harness);
    let (trimmed, text, _) = trim(
        &trimming,
        &kept(&trimming, &input, &least, desk.file("file")),
    );
    assert_eq!((trimmed.left, trimmed.claim), (None, Claim::OneMinimal));
    assert_eq!(text.len(), least.len(), "{text:?}");
    // Deletions alone leave wrong lengths.
    let plain = TrimSettings {
        search: Some("subset".to_owned()),
        ..trimming
    };
    let (_, text, _) = trim(&plain, &kept(&plain, &input, &least, desk.file("plain")));
    assert_eq!(text.len(), input.len());
}

#[test]
fn a_crash_met_on_the_way_is_handed_over_and_never_the_result() {
    for words in WORDS {
        let desk = Desk::new();
        let Some(trimming) = words(&desk) else {
            continue;
        };
        let file = kept(&trimming, b"!x!x!x!", b"!x!x!x!", desk.file("file"));
        let (trimmed, text, slips) = trim(&trimming, &file);
        assert_eq!(trimmed.left, None);
        let [after] = reach(&trimming, [&text]);
        assert!(after.has_all(&file.wanted.required));
        assert_eq!(slips.len(), 1);
        let crash = slips[0].crash.as_ref().expect("its record");
        assert!(crash.class.0.contains("abrt"), "{:?}", crash.class);
        assert!(slips[0].input.windows(2).any(|two| two == b"!!"));
    }
}

#[test]
fn what_happens_once_in_a_process_is_no_hindrance() {
    let desk = Desk::new();
    let Some(trimming) = harness(&desk) else {
        return;
    };
    let mut shared = start(&trimming.target, Some(trimming.way), Freshness::Shared)
        .unwrap()
        .executor;
    shared.report_coverage(CoverageReporting::Every);
    let input = b"((k(key 12";
    shared.run(input).unwrap();
    shared.run(input).unwrap();
    let later = Features::of_counters(shared.coverage().unwrap());
    let [first] = reach(&trimming, [input]);
    let at_first_only = first.less(&later);
    assert!(!at_first_only.is_empty());
    let mut file = ToTrim {
        input: input.to_vec(),
        wanted: RequiredFeatures::worth(later.and(&first)),
        folder: desk.file("later"),
        known: Default::default(),
    };
    let (trimmed, _, _) = trim(&trimming, &file);
    assert_eq!(trimmed.left, None);
    assert!(trimmed.features.has_all(&at_first_only));
    // Even where nothing but that is wanted.
    file.folder = desk.file("first");
    file.wanted = RequiredFeatures::worth(at_first_only);
    let (trimmed, _, _) = trim(&trimming, &file);
    assert_eq!((trimmed.left, trimmed.claim), (None, Claim::OneMinimal));
}

#[test]
fn what_a_process_remembers_of_earlier_runs_does_not_decide() {
    for words in WORDS {
        let desk = Desk::new();
        let Some(trimming) = words(&desk) else {
            continue;
        };
        for (name, input, result) in [
            ("alternates", &b"~(((12 key 77 lo"[..], &b"~key"[..]),
            ("exits", b"^(((12 key 77 lo", b"key"),
        ] {
            let file = kept(&trimming, input, result, desk.file(name));
            let (trimmed, text, slips) = trim(&trimming, &file);
            assert_eq!((trimmed.left, slips.len()), (None, 0));
            assert_eq!((&text[..], trimmed.claim), (result, Claim::OneMinimal));
        }
    }
}

#[test]
fn a_file_that_does_not_reach_what_is_wanted_stays_as_it_is() {
    let desk = Desk::new();
    let Some(trimming) = harness(&desk) else {
        return;
    };
    let mut file = kept(&trimming, b"key lock", b"lock", desk.file("file"));
    file.input = b"nothing of it".to_vec();
    let (trimmed, text, _) = trim(&trimming, &file);
    assert_eq!(trimmed.left, Some(SkipReason::Unsteady));
    assert_eq!(text, b"nothing of it");
    assert!(!trimmed.features.has_all(&file.wanted.required));
    file.input = b"!!".to_vec();
    file.folder = desk.file("crash");
    let (trimmed, text, _) = trim(&trimming, &file);
    assert_eq!(
        (trimmed.left, &text[..]),
        (Some(SkipReason::EndsBadly), &b"!!"[..])
    );
}

#[test]
fn a_way_that_tells_no_coverage_is_named() {
    let target = Target::new(Program::Bundled("ul".to_owned()));
    let error = TrimSettings::of_target(target, Way::Command).start().err();
    let error = error.expect("no coverage");
    assert!(matches!(error, TrimError::NoCoverage { .. }), "{error}");
    assert!(error.to_string().contains("libFuzzer harness"), "{error}");
}

#[test]
fn what_was_trimmed_before_costs_no_run_until_something_else_is_wanted() {
    let desk = Desk::new();
    let Some(trimming) = harness(&desk) else {
        return;
    };
    let file = kept(&trimming, b"((key 12 lock", b"key", desk.file("file"));
    let (first, _, _) = trim(&trimming, &file);
    assert!(!first.reused);
    let log = desk.read("file/log.jsonl");
    let (again, _, _) = trim(&trimming, &file);
    assert!(again.reused);
    assert_eq!(
        Trimmed {
            reused: false,
            ..again
        },
        first
    );
    assert_eq!(desk.read("file/log.jsonl"), log);
    let other = kept(&trimming, b"((key 12 lock", b"lock", desk.file("file"));
    let (other, text, _) = trim(&trimming, &other);
    assert_eq!((other.reused, &text[..]), (false, &b"lock"[..]));
    let rebuilt = TrimSettings {
        build: Some("another".to_owned()),
        ..trimming
    };
    let (anew, _, _) = trim(&rebuilt, &file);
    assert!(!anew.reused);
    // What was damaged is made again.
    std::fs::write(desk.file("file/minimized"), b"damaged").unwrap();
    let (mended, text, _) = trim(&rebuilt, &file);
    assert_eq!((mended.reused, &text[..]), (false, &b"key"[..]));
}

#[test]
fn a_budget_of_tests_ends_a_file_with_what_there_is() {
    let desk = Desk::new();
    let Some(mut trimming) = harness(&desk) else {
        return;
    };
    let input: Vec<u8> = (0..600).map(|i| b"k(e)y1l"[i % 7]).chain(*b"key").collect();
    let file = kept(&trimming, &input, b"key", desk.file("file"));
    trimming.budget_tests = Some(2);
    let (cut, text, _) = trim(&trimming, &file);
    assert_eq!((cut.claim, cut.tests.executed), (Claim::BestSoFar, 2));
    let [after] = reach(&trimming, [&text]);
    assert!(after.has_all(&file.wanted.required));
    // More goes on where less has ended.
    trimming.budget_tests = None;
    let (whole, text, _) = trim(&trimming, &file);
    assert_eq!((whole.claim, &text[..]), (Claim::OneMinimal, &b"key"[..]));
    // And less gives what it gave.
    trimming.budget_tests = Some(2);
    let (less, _, _) = trim(&trimming, &file);
    assert_eq!((less.claim, less.blake3), (cut.claim, cut.blake3));
}
