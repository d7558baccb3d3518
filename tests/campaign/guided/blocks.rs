//! Guided campaigns on unmodified, stripped programs.

use super::targets::{Built, assert_whole, call, corpus, minimal, program};
use crate::ddfuzz::Desk;

/// A bug behind two bytes, each in a block of its own.
const NESTED: &str = "\
#include <stdlib.h>
#include <unistd.h>
volatile int place;
int main(void) {
    char text[64] = {0};
    if (read(0, text, sizeof text) < 2) return 1;
    if (text[0] == 'd') { place = 1;
        if (text[1] == '(') abort(); }
    return 0;
}
";

#[test]
#[cfg(target_arch = "x86_64")]
fn a_stripped_program_is_guided_by_its_blocks() {
    for way in ["inject", "snapshot"] {
        let desk = Desk::new();
        if program(&desk, "nested", Built::Stripped, NESTED, &[]).is_none() {
            return;
        }
        let words =
            format!("run --json --seed 1 --max-len 4 --exec {way} --generator guided -o out");
        let until = ["--until", "1 groups", "--jobs", "1", "--", "./nested"];
        let result = call(&desk, &words, &until).exits(1).json();
        assert_eq!(result["exec"], way, "{result}");
        assert_eq!(minimal(&result), [b"d("], "{result}");
        let out = desk.file("out");
        let lines = std::fs::read_to_string(out.join("stats.jsonl")).unwrap();
        let last: serde_json::Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
        assert!(last["edges"].as_u64() > Some(3), "{last}");
        assert!(last["edges_of"].as_u64() > last["edges"].as_u64(), "{last}");
        // An input for each of the blocks on the way.
        assert!(corpus(&out).len() >= 3, "{last}");
        assert_whole(&out);
        desk.is_left_clean();
    }
}
