//! Whole cleanups, of targets that do odd things.

use std::ffi::OsStr;
use std::path::Path;

use ddfuzz::exec::{Program, Target};
use serde_json::Value;

use crate::ddfuzz::{Desk, Said};
use crate::harness::{harness, harness_with};

/// Cleans `in` of the desk by these words; the target may make links in its `tmp`, whose path it is
/// told in `SIGNS`.
fn cleaned(desk: &Desk, words: &str, target: &Target) -> Value {
    cleaning(desk, words, target).exits(0).json()
}

fn cleaning(desk: &Desk, words: &str, target: &Target) -> Said {
    let Program::Path(path) = &target.program else {
        panic!("a harness is a file");
    };
    let env = format!("SIGNS={}", desk.file("tmp").display());
    let words = format!("clean in -o out --json --jobs 1 --timeout 60s --env {env} {words}");
    let more = [OsStr::new("--"), path.as_os_str()];
    desk.call_with(&words, &more)
}

/// A harness with this body behind one that knows how to leave a sign in `SIGNS`: the first to
/// leave it is told so.
fn leaving_signs(name: &str, body: &str) -> Option<Target> {
    let begin = "const char *folder = getenv(\"SIGNS\");
        if (folder == NULL || chdir(folder) != 0) return 0;
        if (length < 2 || text[0] != 'r') { if (length == 1) place = 9; return 0; }";
    harness(name, &format!("{begin} {body}"))
}

fn corpus(desk: &Desk) {
    std::fs::create_dir(desk.file("in")).unwrap();
    desk.write("in/other", "o");
    desk.write("in/odd", "resting");
}

#[test]
fn what_crashes_once_and_never_again_is_kept_with_one_run_for_the_truth_too() {
    let body = "if (symlink(\"x\", \"crashed\") == 0) abort(); place = 1;";
    let Some(target) = leaving_signs("recovers", body) else {
        return;
    };
    for words in [
        "--trim off --repeats 1",
        "--trim off --skip flaky",
        "--trim off",
    ] {
        let desk = Desk::new();
        corpus(&desk);
        let result = cleaned(&desk, words, &target);
        assert!(desk.file("tmp/crashed").is_symlink(), "it has crashed");
        assert_eq!(result["crashes"], 0, "{result}");
        assert_eq!(result["after"]["files"], 2, "{words}: {result}");
        assert_eq!(result["features_before"], result["features_after"]);
    }
}

#[test]
fn of_what_crashed_once_only_what_comes_with_each_repeat_counts() {
    let body = "if (symlink(\"x\", \"crashed\") == 0) abort();
        if (symlink(\"x\", \"odd\") == 0) place = 1; else { unlink(\"odd\"); place = 2; }
        for (size_t at = 0; at < length; at++) if (text[at] == 'g') place = 3;";
    let Some(target) = leaving_signs("recovers-in-turn", body) else {
        return;
    };
    let desk = Desk::new();
    corpus(&desk);
    let result = cleaned(&desk, "--trim off", &target);
    assert!(result["flaky_features"].as_u64() >= Some(2), "{result}");
    assert_eq!(result["missing"].as_array().unwrap().len(), 0, "{result}");
    assert_eq!(result["after"]["files"], 2, "{result}");
}

#[test]
fn what_only_the_check_reaches_is_told_and_no_loss() {
    // All else comes as often as before, as far as ranges of counts are told apart.
    let body = "size_t last = length - (access(\"../out/corpus\", F_OK) == 0);
        for (size_t at = 0; at < length; at++) if (at == last) place = 1;";
    let Some(target) = leaving_signs("reaches-more", body) else {
        return;
    };
    let desk = Desk::new();
    corpus(&desk);
    let result = cleaned(&desk, "--trim off", &target);
    let gained = result["gained"].as_array().unwrap();
    let count = |key: &str| result[key].as_u64().unwrap();
    assert!(!gained.is_empty(), "{result}");
    assert_eq!(
        count("features_after"),
        count("features_before") + gained.len() as u64
    );
    assert!(gained[0]["edge"].is_u64() && gained[0]["counts"].is_array());
    assert_eq!(result["missing"].as_array().unwrap().len(), 0);
}

/// A harness with this body, whose processes are numbered from 0: by links in `SIGNS`.
fn numbered(name: &str, body: &str) -> Option<Target> {
    let functions = "__attribute__((no_sanitize(\"coverage\"))) static int process_number(void)
        { static int number = -1; char sign[32];
        const char *folder = getenv(\"SIGNS\");
        if (folder == NULL || chdir(folder) != 0) return 0;
        for (int next = 0; number < 0; next++) { snprintf(sign, sizeof sign, \"n%d\", next);
            if (symlink(\"x\", sign) == 0) number = next; }
        return number; }";
    let begin = "int number = process_number();";
    harness_with(name, functions, &format!("{begin} {body}"))
}

/// What each kept file of the result holds, sorted.
fn kept(result: &Value) -> Vec<Vec<u8>> {
    let files = result["kept"].as_array().unwrap().iter();
    let mut kept: Vec<Vec<u8>> = files
        .map(|one| std::fs::read(one["file"].as_str().unwrap()).unwrap())
        .collect();
    kept.sort();
    kept
}

/// The `cov` and `ft` of the harness' own libFuzzer for a folder.
fn counted(target: &Target, folder: &Path, env: &Path) -> (u64, u64) {
    let Program::Path(path) = &target.program else {
        panic!("a harness is a file");
    };
    let mut command = std::process::Command::new(path);
    command.args(["-runs=0", "-seed=1"]).arg(folder);
    let output = command.env("SIGNS", env).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = said.lines().rfind(|line| line.contains("INITED"));
    let words: Vec<&str> = line.expect(&said).split_whitespace().collect();
    let number = |name: &str| {
        let at = words.iter().position(|word| *word == name).unwrap();
        words[at + 1].parse().unwrap()
    };
    (number("cov:"), number("ft:"))
}

/// The harness' own libFuzzer counts as much for the kept files as for the corpus.
#[track_caller]
fn assert_counted_alike(desk: &Desk, target: &Target) {
    let count = |folder: &str| counted(target, &desk.file(folder), &desk.file("tmp"));
    assert_eq!(count("in"), count("out/corpus"));
}

#[test]
fn of_what_depends_on_the_seed_of_a_hash_map_two_are_kept_at_least() {
    // The table of each process is seeded anew, and letters meet in it in one process of four.
    let body = "unsigned seed = (unsigned)number % 4;
        if (length > 1 && text[0] == 'h') { unsigned table[4] = {0};
            table[seed & 3]++;
            if (table[1]) place = 5; }
        for (size_t at = 0; at < length; at++) if (text[at] == 'z') place = 6;";
    let Some(target) = numbered("hash-map", body) else {
        return;
    };
    let desk = Desk::new();
    std::fs::create_dir(desk.file("in")).unwrap();
    for number in 0..40 {
        desk.write(&format!("in/{number}"), format!("h{number:03}"));
    }
    desk.write("in/plain", "xz");
    let result = cleaned(&desk, "--repeats 3", &target);
    assert!(result["flaky_features"].as_u64() >= Some(1), "{result}");
    assert!(result["flaky_files"].as_u64() >= Some(2), "{result}");
    let kept = kept(&result);
    let hashed = kept.iter().filter(|text| text.starts_with(b"h"));
    assert!(hashed.count() >= 2, "{kept:?}");
    // Not each of the forty: as many as make it sure enough, and 24 at most, and `xz`.
    assert!(kept.len() <= 25, "{kept:?}");
    assert_eq!(result["missing"].as_array().unwrap().len(), 0, "{result}");
}

#[test]
fn what_only_the_first_run_of_a_process_reaches_stays_reached() {
    // A table that the first input builds, and one that the first `d` in a process does: that the
    // table is there already takes a second `d`.
    let body = "static int ready, table; if (!ready) { ready = 1; place = 7; }
        if (length > 1 && text[0] == 'd') { if (!table) { table = 1; place = 8; } }
        for (size_t at = 0; at < length; at++) if (text[at] == 'z') place = 6;";
    let Some(target) = harness("first-run", body) else {
        return;
    };
    let desk = Desk::new();
    std::fs::create_dir(desk.file("in")).unwrap();
    for number in 0..120 {
        desk.write(&format!("in/{number}"), format!("d{number:03}"));
        desk.write(&format!("in/e{number}"), format!("e{number:03}"));
    }
    desk.write("in/plain", "xz");
    let result = cleaned(&desk, "", &target);
    assert_eq!(result["missing"].as_array().unwrap().len(), 0, "{result}");
    assert_eq!(result["features_before"], result["features_after"]);
    // By what each reaches alone it is sure which ones are needed.
    assert_eq!(result["flaky_features"], 0, "{result}");
    let kept = kept(&result);
    assert_eq!(kept.len(), 3, "{kept:?}");
    let (tables, other) = kept.split_at(2);
    assert!(tables.iter().all(|text| text[0] == b'd'), "{kept:?}");
    assert_eq!(other, [b"xz"]);
    assert_counted_alike(&desk, &target);
}

#[test]
fn a_target_that_remembers_too_much_gets_a_process_for_each_run() {
    // What a run passes depends on all that ran before it. Each letter has a function: values that
    // are assigned in the branches of a switch may become one sum without branches.
    let letters = 'a'..='h';
    let function = |letter| {
        format!("__attribute__((noinline)) static void on_{letter}(void) {{ place = '{letter}'; }}")
    };
    let case = |letter| format!("case '{letter}': on_{letter}(); break;");
    let functions: String = letters.clone().map(function).collect();
    let cases: String = letters.map(case).collect();
    let body = format!(
        "static unsigned char met[256];
        for (size_t at = 0; at < length; at++) {{
            if (met[text[at]]++) continue;
            switch (text[at]) {{ {cases} }} }}"
    );
    let Some(target) = harness_with("remembers", &functions, &body) else {
        return;
    };
    let desk = Desk::new();
    std::fs::create_dir(desk.file("in")).unwrap();
    for number in 0..64_u8 {
        let text = [b'a' + number % 8, b'a' + number / 8, b'x', b'0' + number];
        desk.write(&format!("in/{number}"), text);
    }
    let first = cleaned(&desk, "", &target);
    assert_eq!(first["journal"], "clean.fresh.journal", "{first}");
    assert_eq!(first["flaky_features"], 0, "{first}");
    assert_eq!(first["features_before"], first["features_after"]);
    let all: Vec<u8> = kept(&first).concat();
    assert!((b'a'..=b'h').all(|letter| all.contains(&letter)), "{all:?}");
}

#[test]
fn what_only_libfuzzer_tells_apart_is_kept_by_its_own_count() {
    // Counters end at 128; how deep the stack is, libFuzzer counts beyond.
    let source = "__attribute__((noinline)) static int deep(size_t n)
        { volatile char room[64]; room[0] = (char)n; return n ? deep(n - 1) + room[0] : 0; }";
    let body = "place = length > 200 ? deep(length) : 0;";
    let Some(target) = harness_with("deep", source, body) else {
        return;
    };
    let desk = Desk::new();
    std::fs::create_dir(desk.file("in")).unwrap();
    // libFuzzer is asked about one file of each depth.
    for length in [300, 1_000, 8_000, 60_000] {
        for letter in *b"xyz" {
            let name = format!("in/{length}{}", char::from(letter));
            desk.write(&name, vec![letter; length]);
        }
    }
    let result = cleaned(&desk, "", &target);
    let own = &result["libfuzzer"];
    assert!((1..4).contains(&own["added"].as_u64().unwrap()), "{result}");
    let (cov, ft) = counted(&target, &desk.file("in"), &desk.file("tmp"));
    assert_eq!(own["all"]["cov"].as_u64(), Some(cov), "{result}");
    assert_eq!(own["all"]["ft"].as_u64(), Some(ft), "{result}");
    assert_counted_alike(&desk, &target);
}

#[test]
fn libfuzzer_runs_one_input_of_each_depth_and_those_that_run_code_of_a_process() {
    // A byte in `SIGNS` for each run of libFuzzer's own, which no counter and no depth shows.
    let source = "void *memmem(const void *, size_t, const void *, size_t);
        __attribute__((no_sanitize(\"coverage\"), noinline)) static void sign(void) {
            char text[4096]; FILE *words = fopen(\"/proc/self/cmdline\", \"r\");
            size_t size = words ? fread(text, 1, sizeof text, words) : 0;
            if (words) fclose(words);
            if (!memmem(text, size, \"merge_inner\", 11)) return;
            snprintf(text, sizeof text, \"%s/runs\", getenv(\"SIGNS\"));
            FILE *runs = fopen(text, \"a\"); if (runs) { fputc('r', runs); fclose(runs); } }
        __attribute__((noinline)) static int deep(size_t n)
        { volatile char room[64]; room[0] = (char)n; return n ? deep(n - 1) + room[0] : 0; }
        static int ready;";
    let place = |at| format!("case {at}: __asm__ volatile(\"# {at}\"); place = {at}; break;");
    let places: String = (0..120).map(place).collect();
    let body = format!(
        "sign(); if (!ready) {{ ready = 1; place = deep(40); }} place = deep(length / 16);
         if (length) switch (text[0]) {{ {places} }}"
    );
    let Some(target) = harness_with("signing", source, &body) else {
        return;
    };
    let desk = Desk::new();
    std::fs::create_dir_all(desk.file("in")).unwrap();
    std::fs::create_dir_all(desk.file("tmp")).unwrap();
    for length in [1, 16, 32] {
        for number in 0..120_u8 {
            let name = format!("in/{length}-{number}");
            desk.write(&name, vec![number; length]);
        }
    }
    let result = cleaned(&desk, "", &target);
    assert_eq!(result["journal"], "clean.journal", "{result}");
    let runs = std::fs::read(desk.file("tmp/runs")).unwrap().len();
    assert!((5..60).contains(&runs), "{runs} runs: {result}");
    assert_eq!(result["libfuzzer"]["why_not"], Value::Null, "{result}");
    assert_counted_alike(&desk, &target);
}

#[test]
fn where_coverage_is_flaky_libfuzzer_counts_no_less() {
    // Each process takes each of these places by chance.
    let chance = "static int chance(unsigned letter) {
        unsigned long x = (unsigned long)getpid() * 64 + letter; x *= 0x9e3779b97f4a7c15;
        x ^= x >> 29; x *= 0xbf58476d1ce4e5b9; return x >> 40 & 1; }";
    let place = |at| format!("case {at}: __asm__ volatile(\"# {at}\"); place = {at}; break;");
    let places: String = (0..32).map(place).collect();
    let body = format!("if (length == 2 && chance(text[0])) switch (text[0]) {{ {places} }}");
    let Some(target) = harness_with("chances", chance, &body) else {
        return;
    };
    let desk = Desk::new();
    std::fs::create_dir(desk.file("in")).unwrap();
    for at in 0..32 {
        desk.write(&format!("in/{at}"), [at, b'-']);
    }
    for _ in 0..3 {
        // What came each time by chance may not come again.
        let result = cleaning(&desk, "", &target).json();
        let own = &result["libfuzzer"];
        assert!(own["all"]["ft"].as_u64() > Some(0), "{result}");
        std::fs::remove_dir_all(desk.file("out")).unwrap();
    }
}
