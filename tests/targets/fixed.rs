//! The fixed variants: nothing crashes them.

use crate::bugs;
use crate::running::{TARGETS, ending};
use crate::stream::stream;

#[test]
fn no_reproducer_crashes_any_fixed_variant() {
    for bug in bugs::all() {
        for target in TARGETS {
            let ended = ending(&format!("{target}-fixed"), &bug.reproducer);
            assert!(
                !ended.is_crash(None),
                "{target} on the reproducer of {}",
                bug.function
            );
        }
    }
}

#[test]
fn no_random_input_crashes_any_fixed_variant() {
    for target in TARGETS {
        for seed in 0..100 {
            let length = 1 << (seed % 16);
            let all = stream(seed, length);
            let printable: Vec<u8> = all.iter().map(|byte| b' ' + byte % 95).collect();
            let lines: Vec<u8> = all
                .iter()
                .map(|byte| b"\n.\\' \ta0"[*byte as usize % 8])
                .collect();
            for input in [all, printable, lines] {
                let ended = ending(&format!("{target}-fixed"), &input);
                assert!(!ended.is_crash(None), "{target}, seed {seed}: {ended}");
            }
        }
    }
}
