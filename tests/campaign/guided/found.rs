//! What a guided campaign finds, and what it leaves in the output directory.

use std::collections::BTreeSet;

use super::targets::{Built, assert_whole, call, corpus, crashing, functions, gates, minimal};
use crate::ddfuzz::Desk;
use crate::outcome::{files, record};

/// The three bugs behind single bytes, at their shortest.
pub const MINIMAL: [fn(&[u8]) -> bool; 3] = [
    |text| text.len() == 2 && text[0] == b'#' && text[1] >= 0x80,
    |text| text.len() == 3 && text[0] == b'%',
    |text| text == b"<",
];

#[test]
fn all_planted_bugs_are_found_and_minimized_while_the_campaign_runs() {
    for (built, jobs) in [
        (Built::Harness, 1),
        (Built::Harness, 2),
        (Built::Afl, 1),
        (Built::Afl, 2),
        (Built::Sanitized, 1),
    ] {
        let desk = Desk::new();
        if gates(&desk, "gates", built, &[]).is_none() {
            return;
        }
        let words = format!("run --json --seed 1 --max-len 64 --jobs {jobs} -o out");
        let until = ["--until", "3 groups", "--", "./gates"];
        let result = call(&desk, &words, &until).exits(1).json();
        let what = format!("{built:?} {jobs}: {result}");
        assert_eq!(result["ended_by"], "until", "{what}");
        assert_eq!(result["new_groups"], 3, "{what}");
        let texts = minimal(&result);
        for (text, is_minimal) in texts.iter().zip(MINIMAL) {
            assert!(is_minimal(text), "{text:?}: {what}");
        }
        let out = desk.file("out");
        let found = functions(&out);
        assert_eq!(found.len(), 3, "{found:?}");
        assert_whole(&out);
        assert_eq!(
            crashing(&desk, "gates", &out),
            Vec::<Vec<u8>>::new(),
            "{what}"
        );
        for group in result["groups"].as_array().unwrap() {
            let log = group["log"].as_str().unwrap();
            desk.call(&format!("log replay {log}")).exits(0);
            desk.call(&format!("log verify {log}")).exits(0);
        }
        desk.is_left_clean();
    }
}

#[test]
fn duplicates_are_counted_and_not_stored() {
    let desk = Desk::new();
    if gates(&desk, "gates", Built::Harness, &["-DFEW"]).is_none() {
        return;
    }
    let words = "run --json --seed 1 --max-len 8 --runs 60000 --jobs 2 -o out -- ./gates";
    let result = desk.call(words).exits(1).json();
    let seen = result["groups"][0]["runs_seen"].as_u64().unwrap();
    let stored = files(&desk.file("out"));
    let originals = stored.iter().filter(|path| path.ends_with("original"));
    let originals = originals.count();
    assert_eq!(result["groups"].as_array().unwrap().len(), 1, "{result}");
    // One for the way into the bug, and now and then a smaller one.
    assert!(
        seen > 100 && originals <= 10,
        "{seen} seen, {originals} stored"
    );
    let group = stored
        .iter()
        .find(|path| path.ends_with("group.json"))
        .unwrap();
    let counts = record(group)["seen"].clone();
    let counts: Vec<u64> = counts
        .as_object()
        .unwrap()
        .values()
        .filter_map(|n| n.as_u64())
        .collect();
    assert_eq!(counts, [seen]);
}

#[test]
fn magic_bytes_are_found_by_what_the_target_compares() {
    for (built, way) in [
        (Built::Harness, "harness"),
        (Built::Afl, "forkserver"),
        (Built::Stripped, "snapshot"),
        (Built::Stripped, "inject"),
    ] {
        if built == Built::Stripped && !cfg!(target_arch = "x86_64") {
            continue;
        }
        let desk = Desk::new();
        let mut macros = vec!["-DFEW", "-DNONE", "-DWORD"];
        if built == Built::Stripped {
            macros.extend(["-DPROGRAM", "-DLLVMFuzzerTestOneInput=take"]);
        }
        if gates(&desk, "gates", built, &macros).is_none() {
            return;
        }
        // The words of the program are taken away, so that only comparisons tell of it.
        let words = format!(
            "run --json --seed 1 --max-len 32 --runs 400000 --no-auto-dict --generator guided \
             --exec {way} -o out"
        );
        let until = ["--until", "first", "--", "./gates"];
        let result = call(&desk, &words, &until).exits(1).json();
        let found: BTreeSet<Vec<u8>> = minimal(&result).into_iter().collect();
        assert!(found.contains(&b"MAGIC-01"[..]), "{built:?}: {result}");
    }
}

#[test]
fn a_word_is_found_in_a_dictionary_and_a_place_by_a_seed() {
    let desk = Desk::new();
    if gates(&desk, "gates", Built::Harness, &["-DSEALED"]).is_none() {
        return;
    }
    desk.write("words.dict", "sealed=\"sealed-one--\"\n");
    std::fs::create_dir(desk.file("seeds")).unwrap();
    desk.write("seeds/sealed", "sealed-two--");
    let words = "run --json --seed 1 --max-len 12 --runs 60000 --dict words.dict -o";
    let result = desk
        .call(&format!("{words} worded -- ./gates"))
        .exits(1)
        .json();
    let kept = corpus(&desk.file("worded"));
    assert!(
        kept.values().any(|text| text == b"sealed-one--"),
        "{result}"
    );
    assert!(kept.values().all(|text| text.len() <= 12), "{kept:?}");
    let words = "run --json --seed 1 --max-len 12 --runs 2000 --seeds seeds -o seeded -- ./gates";
    let result = desk.call(words).exits(1).json();
    assert!(
        functions(&desk.file("seeded")).contains("unsealed"),
        "{result}"
    );
    let stored = files(&desk.file("seeded/crashes"));
    let originals = stored.iter().filter(|path| path.ends_with("original"));
    for original in originals {
        let length = original.metadata().unwrap().len();
        assert!(length <= 12, "{}", original.display());
    }
}
