//! Targets that give a guided campaign little to go by: each ends clearly.

use super::targets::{Built, assert_whole, corpus, gates, minimal, program};
use crate::ddfuzz::{Desk, Said};

/// A harness of this body, called; `None` where it cannot be built.
fn run(desk: &Desk, built: Built, body: &str, words: &str) -> Option<Said> {
    let source = format!(
        "#include <stdint.h>\n#include <stdlib.h>\n#include <unistd.h>\n\
         static int *volatile nowhere; volatile int place;\n\
         __attribute__((noinline)) static void fails(void) {{ *nowhere = 1; }}\n\
         int LLVMFuzzerTestOneInput(const uint8_t *text, size_t length)\n\
         {{ (void)fails; {body} return 0; }}\n\
         #ifdef PROGRAM\n\
         int main(void) {{ static uint8_t t[4096]; long n = read(0, t, sizeof t);\n\
         return LLVMFuzzerTestOneInput(t, n < 0 ? 0 : n); }}\n\
         #endif\n"
    );
    program(desk, "odd", built, &source, &[])?;
    let words = format!("run --json --seed 1 --max-len 32 {words} -o out -- ./odd");
    Some(desk.call(&words))
}

#[test]
fn one_that_crashes_on_every_input_is_one_group() {
    for built in [Built::Harness, Built::Afl] {
        let desk = Desk::new();
        let Some(said) = run(&desk, built, "fails();", "--jobs 2 --runs 200") else {
            return;
        };
        let result = said.exits(1).json();
        assert_eq!(result["runs"], 200, "{built:?}");
        assert_eq!(result["groups"].as_array().unwrap().len(), 1, "{result}");
        // The empty input crashes, too.
        assert_eq!(result["groups"][0]["size_after"], 0, "{result}");
        assert!(corpus(&desk.file("out")).is_empty());
        assert_whole(&desk.file("out"));
        desk.is_left_clean();
    }
}

#[test]
fn a_crash_that_is_known_takes_a_small_part_of_the_runs() {
    // Each mutant with the solved comparison crashes.
    let desk = Desk::new();
    let body = "if (length > 4 && text[0] == 'A' && *(const uint32_t *)(text + 1) == 0x45444342) \
                fails();";
    let words = "--jobs 1 --runs 100000";
    let Some(said) = run(&desk, Built::Harness, body, words) else {
        return;
    };
    let result = said.exits(1).json();
    assert_eq!(result["groups"].as_array().unwrap().len(), 1, "{result}");
    let met = result["groups"][0]["runs_seen"].as_u64().unwrap();
    assert!((1..2000).contains(&met), "{result}");
}

#[test]
fn one_that_hangs_on_every_input_ends_after_its_runs() {
    for built in [Built::Harness, Built::Afl] {
        let desk = Desk::new();
        let body = "for (;;) place++;";
        let Some(said) = run(&desk, built, body, "--jobs 2 --runs 8 --timeout 30ms") else {
            return;
        };
        let result = said.exits(0).json();
        assert_eq!(
            (&result["runs"], &result["hangs"]),
            (&8.into(), &1.into()),
            "{result}"
        );
        assert!(corpus(&desk.file("out")).is_empty());
        desk.is_left_clean();
    }
}

#[test]
fn one_whose_inputs_reach_nothing_new_ends_after_its_runs() {
    for built in [Built::Harness, Built::Afl] {
        let desk = Desk::new();
        let Some(said) = run(&desk, built, "", "--jobs 2 --runs 3000") else {
            return;
        };
        let result = said.exits(0).json();
        assert_eq!(result["runs"], 3000, "{result}");
        desk.is_left_clean();
    }
}

#[test]
fn one_whose_seeds_all_fail_is_fuzzed_from_other_inputs() {
    let desk = Desk::new();
    std::fs::create_dir(desk.file("seeds")).unwrap();
    for seed in ["s", "se", "see"] {
        desk.write(&format!("seeds/{seed}"), seed);
    }
    let body =
        "if (length == 0 || text[0] == 's') fails(); if (length > 3 && text[1] < 64) place = 1;";
    let words = "--jobs 2 --runs 3000 --seeds seeds";
    let Some(said) = run(&desk, Built::Harness, body, words) else {
        return;
    };
    let result = said.exits(1).json();
    assert_eq!(result["runs"], 3000, "{result}");
    assert_eq!(result["groups"][0]["claim"], "1-minimal", "{result}");
    assert!(!corpus(&desk.file("out")).is_empty(), "{result}");
}

#[test]
fn a_status_is_a_crash_where_the_user_says_so() {
    for (words, groups) in [("--crash-exit 17", 1), ("", 0)] {
        let desk = Desk::new();
        let body = "if (length && text[0] == '!') _exit(17);";
        let words = format!("--jobs 1 --runs 6000 {words}");
        let Some(said) = run(&desk, Built::Afl, body, &words) else {
            return;
        };
        let result = said.exits(groups).json();
        assert_eq!(
            result["groups"].as_array().unwrap().len(),
            groups as usize,
            "{result}"
        );
        let kept = corpus(&desk.file("out"));
        let kept = kept.values().any(|text| text.first() == Some(&b'!'));
        assert_eq!(
            kept,
            groups == 0,
            "what is no crash is worth keeping: {result}"
        );
    }
}

#[test]
fn what_a_sanitizer_reports_is_a_crash_of_its_class() {
    let desk = Desk::new();
    let body = "if (length > 1 && text[0] == 'U') \
                { char *p = malloc(4); free(p); *(volatile char *)p = 1; }";
    let words = "--jobs 1 --runs 100000 --until first";
    let Some(said) = run(&desk, Built::Sanitized, body, words) else {
        return;
    };
    let result = said.exits(1).json();
    assert_eq!(minimal(&result)[0].len(), 2, "{result}");
    assert_eq!(minimal(&result)[0][0], b'U');
    let class = result["groups"][0]["class"].as_str().unwrap();
    assert!(class.contains("use-after-free"), "{class}");
}

#[test]
fn a_target_with_very_many_counters_is_fuzzed_with_all_of_them() {
    let desk = Desk::new();
    // Each macro doubles what there is: 71,680 places, more than the usual map of AFL++ has.
    let mut cases = String::from("#define C0(n) case n: place = n; break;\n");
    for level in 1..=9 {
        cases += &format!(
            "#define C{level}(n) C{0}(n) C{0}((n) + {1})\n",
            level - 1,
            1 << (level - 1)
        );
    }
    let mut functions = String::new();
    let mut calls = String::new();
    for function in 0..140 {
        functions += &format!("void f{function}(unsigned v) {{ switch (v) {{ C9(0) }} }}\n");
        calls += &format!("case {function}: f{function}(text[1] * 2u); break;\n");
    }
    let source = format!(
        "#include <stdint.h>\n#include <stdlib.h>\nvolatile int place;\n{cases}\n{functions}\n\
         int LLVMFuzzerTestOneInput(const uint8_t *text, size_t length) {{\n\
         if (length < 3) return 0;\nswitch (text[0]) {{ {calls} }}\n\
         if (text[2] == '!') abort();\nreturn 0; }}\n"
    );
    if program(&desk, "wide", Built::Harness, &source, &["-O0", "-g0"]).is_none() {
        return;
    }
    for jobs in [1, 2] {
        let words = format!(
            "run --json --seed 1 --max-len 8 --jobs {jobs} --runs 1000 -o out{jobs} -- ./wide"
        );
        let result = desk.call(&words).exits(1).json();
        assert_eq!(result["runs"], 1000, "{result}");
        assert_eq!(minimal(&result)[0].len(), 3, "{result}");
        let out = desk.file(&format!("out{jobs}"));
        let lines = std::fs::read_to_string(out.join("stats.jsonl")).unwrap();
        let last: serde_json::Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
        assert!(last["edges_of"].as_u64() > Some(1 << 16), "{last}");
        assert!(corpus(&out).len() > 20, "{last}");
        desk.is_left_clean();
    }
}

#[test]
fn a_program_that_is_gone_before_its_workers_start_is_an_error() {
    let desk = Desk::new();
    if gates(&desk, "gates", Built::Afl, &[]).is_none() {
        return;
    }
    let words = "run --json --seed 1 --jobs 2 --runs 100 -o out -- ./gates";
    let mut running = super::processes::Running::start(&desk, "call", words);
    // The directory is made between the probe and the workers.
    while !desk.file("out").exists() && !running.has_ended() {
        std::hint::spin_loop();
    }
    std::fs::remove_file(desk.file("gates")).unwrap();
    // It may be being built anew, so it is waited for; the user need not wait, too.
    let waits = running.said(&desk);
    std::thread::sleep(std::time::Duration::from_secs(1));
    running.signal(libc::SIGINT);
    let code = running.ends(&desk);
    assert!(
        matches!(code, Some(130 | 3 | 2 | 0 | 1)),
        "{code:?}: {waits} {}",
        running.said(&desk)
    );
    assert!(!running.said(&desk).contains("panicked"));
    desk.is_left_clean();
}
