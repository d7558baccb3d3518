//! `ddfuzz clean` is killed by SIGKILL, for real, at any moment: nothing is lost, and the same call
//! comes to what an undisturbed one does.

use std::path::Path;
use std::time::Instant;

use serde_json::Value;

use crate::clean::{corpus, crash, files};
use crate::ddfuzz::{Desk, Moments};

/// Kills, over all.
const KILLS: u32 = 15;
/// Kills of one output directory, at most; then the call is let alone.
const OF_ONE: u32 = 5;
/// Output directories, at most: however fast the machine is, it comes to an end.
const ROUNDS: u32 = 20;

/// The words of the call, which goes on with whatever `out` holds.
fn words(out: &str) -> String {
    format!("clean in -o {out} --json --jobs 2 --trim-tests 30 --budget-tests 30 --target ul")
}

/// What there is of a result that does not depend on how often it was begun.
fn outcome(result: &Value, out: &Path) -> Vec<Value> {
    let mut kept = result["kept"].clone();
    for one in kept.as_array_mut().unwrap() {
        let file = Path::new(one["file"].as_str().unwrap());
        one["file"] = file.strip_prefix(out).unwrap().to_str().into();
        one["us"] = Value::Null; // that is measured
    }
    let keys = [
        "before",
        "after",
        "edges_after",
        "features_after",
        "steps",
        "groups",
    ];
    let mut outcome: Vec<Value> = keys.map(|key| result[key].clone()).to_vec();
    outcome.push(kept);
    outcome
}

#[test]
fn a_cleanup_killed_at_fifteen_moments_ends_as_an_undisturbed_one() {
    let desk = Desk::new();
    corpus(&desk, "in", 30);
    desk.write("in/crash", crash());
    let before = files(&desk.file("in"));
    let began = Instant::now();
    let calm = desk.call(&words("calm")).exits(0).json();
    let mut longest = began.elapsed();
    let expected = outcome(&calm, &desk.file("calm"));
    let kept = files(&desk.file("calm/corpus"));
    let mut moments = Moments(77);
    let mut killed = 0;
    for round in 0..ROUNDS {
        let out = format!("out{round}");
        let mut alive = 0;
        for _ in 0..OF_ONE {
            let mut child = desk.start(&words(&out));
            std::thread::sleep(moments.next(longest));
            // One that is over was not disturbed, and is called again all the same.
            alive += u32::from(child.try_wait().unwrap().is_none());
            child.kill().unwrap();
            child.wait().unwrap();
            assert_eq!(files(&desk.file("in")), before);
        }
        let result = desk.call(&words(&out)).exits(0).json();
        assert_eq!(outcome(&result, &desk.file(&out)), expected);
        assert_eq!(files(&desk.file(&out).join("corpus")), kept);
        killed += alive;
        if killed >= KILLS {
            break;
        }
        // The machine may be faster by now than it was when the first call was timed.
        if alive <= OF_ONE / 2 {
            longest /= 2;
        }
    }
    assert!(killed >= KILLS, "{killed} calls were killed at work");
    desk.is_left_clean();
}

#[test]
fn a_corpus_that_is_replaced_is_there_at_every_moment() {
    let desk = Desk::new();
    corpus(&desk, "in", 40);
    let before = files(&desk.file("in"));
    let words = "clean in -o out --in-place --trim off --target ul -q";
    let began = Instant::now();
    desk.call(
        &words
            .replace("--in-place ", "")
            .replace("-o out", "-o calm"),
    )
    .exits(0);
    let longest = began.elapsed();
    let kept = files(&desk.file("calm/corpus"));
    let mut moments = Moments(5);
    for _ in 0..12 {
        let mut child = desk.start(words);
        std::thread::sleep(moments.next(longest * 2));
        child.kill().unwrap();
        child.wait().unwrap();
        let now = files(&desk.file("in"));
        assert!(now == before || now == kept);
        if now == kept {
            assert_eq!(files(&desk.file("in.old")), before);
            // Back to where it was.
            std::fs::remove_dir_all(desk.file("in")).unwrap();
            std::fs::rename(desk.file("in.old"), desk.file("in")).unwrap();
        }
    }
    desk.call(words).exits(0);
    assert_eq!(files(&desk.file("in")), kept);
    assert_eq!(files(&desk.file("in.old")), before);
    desk.is_left_clean();
}
