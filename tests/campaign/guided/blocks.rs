//! Guided campaigns on unmodified, stripped programs.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use serde_json::Value;

use super::targets::{Built, assert_whole, call, corpus, minimal, program};
use crate::ddfuzz::Desk;
use crate::needs;

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

/// A function for each of two bytes, one that nothing calls, and one that runs before any input.
const NAMED: &str = "\
#include <unistd.h>
volatile int place;
void prepared(void) { place = 3; }
void common(void) { place = 1; }
void forbidden(void) { for (int at = 0; at < place; at++) if (place == 2) place = 1; }
int main(int argc, char **argv) {
    char text[64] = {0};
    prepared();
    if (read(0, text, sizeof text) < 1) return 1;
    common();
    if (argc > 1) forbidden();
    return 0;
}
";

/// What `show --json` says of the code that a campaign has reached.
fn code(desk: &Desk) -> Value {
    desk.call("show --json out").exits(0).json()["code"].clone()
}

/// The names of the functions that were never reached, else their addresses.
fn never_reached(code: &Value) -> Vec<&str> {
    let never = code["never_reached"].as_array().unwrap().iter();
    never
        .filter_map(|one| one["name"].as_str().or(one["address"].as_str()))
        .collect()
}

const GUIDED: &str =
    "run --json --seed 1 --max-len 4 --runs 300 --jobs 1 --generator guided -o out -- ./named";

#[test]
#[cfg(target_arch = "x86_64")]
fn functions_that_no_run_has_reached_are_named() {
    let desk = Desk::new();
    if program(&desk, "named", Built::Plain, NAMED, &[]).is_none() {
        return;
    }
    desk.call(GUIDED).exits(0);
    let named = code(&desk);
    assert_eq!(never_reached(&named), ["forbidden"], "{named}");
    let file = &named["files"][0];
    assert_eq!(file["functions"], 3, "{file}");
    assert_eq!(file["functions_of"], 4, "{file}");
    assert!(
        file["blocks"].as_u64() < file["blocks_of"].as_u64(),
        "{file}"
    );
    let text = desk.call("show out").exits(0).out;
    assert!(
        text.contains("never reached by a run that passed: 1 function: forbidden ("),
        "{text}"
    );
    let report = desk.call("report out --json").exits(0).json();
    assert_eq!(report["code"], named);
    desk.call("report out").exits(0);
    let page = String::from_utf8(desk.read("out/report.html")).unwrap();
    assert!(page.contains("3 of 4 functions") && page.contains("forbidden"));
    // Without symbols the same function has an address.
    let address = &named["never_reached"][0]["address"];
    desk.call("run --runs 0 -o other -- ./named").exits(0);
    assert_eq!(
        desk.call("show --json other").exits(0).json()["code"],
        Value::Null
    );
    let stripped = Desk::new();
    program(&stripped, "named", Built::Stripped, NAMED, &[]);
    stripped.call(GUIDED).exits(0);
    assert_eq!(never_reached(&code(&stripped)), [address.as_str().unwrap()]);
    desk.is_left_clean();
}

/// A library that a program brings along, and a program that calls one of its functions.
const LIBRARY: &str = "\
volatile int place;
int used(int letter) { if (letter == 'x') { place = 1; return 2; } return 0; }
int unused(int letter) { return letter == 'y'; }
";
const USER: &str = "\
#include <unistd.h>
int used(int letter);
int main(void) { char text[4] = {0}; if (read(0, text, 4) < 0) return 1; return used(text[0]); }
";

#[test]
#[cfg(target_arch = "x86_64")]
fn libraries_that_a_program_brings_along_are_covered() {
    if needs::program("cc").is_none() {
        return;
    }
    let desk = Desk::new();
    desk.write("own.c", LIBRARY);
    desk.write("user.c", USER);
    // The kernel prints the path as it is.
    for (way, folder) in [("inject", &b"my lib"[..]), ("snapshot", b"li\xffb")] {
        let folder = desk.path().join(OsStr::from_bytes(folder));
        std::fs::create_dir(&folder).unwrap();
        let library = folder.join("libown.so").into_os_string();
        for (words, more) in [
            ("-O1 -shared -fPIC own.c -o", &library),
            ("-O1 -o user user.c", &library),
        ] {
            let made = desk.command("cc").args(words.split(' ')).arg(more).status();
            assert!(made.unwrap().success());
        }
        let words = format!(
            "run --json --seed 1 --max-len 2 --runs 3000 --jobs 1 --generator guided --exec {way} \
             -o out -- ./user"
        );
        desk.call(&words).exits(0);
        let code = code(&desk);
        let files = code["files"].as_array().unwrap();
        assert_eq!(files.len(), 2, "{code}");
        assert!(files[1]["file"].to_string().contains("libown.so"), "{code}");
        assert_eq!(never_reached(&code), ["unused"], "{code}");
        // The letter that only the library asks for was found.
        let kept = corpus(&desk.file("out"));
        assert!(kept.values().any(|text| text.starts_with(b"x")), "{kept:?}");
        std::fs::remove_dir_all(desk.file("out")).unwrap();
    }
    desk.is_left_clean();
}

/// A program that draws a random number before a function, and its input behind it.
const SEEDED: &str = "\
#include <sys/random.h>
#include <unistd.h>
volatile int place;
void seeded(void) { place = 3; }
void common(void) { place = 1; }
int main(void) {
    char text[4] = {0};
    unsigned seed = 0;
    if (getrandom(&seed, sizeof seed, 0) < 0) return 2;
    seeded();
    if (read(0, text, sizeof text) < 1) return 1;
    common();
    return 0;
}
";

#[test]
#[cfg(target_arch = "x86_64")]
fn what_a_frozen_start_passes_is_reached() {
    let desk = Desk::new();
    if program(&desk, "named", Built::Plain, SEEDED, &[]).is_none() {
        return;
    }
    for option in ["", "--freeze-start"] {
        let (from, to) = (" -- ", format!(" {option} -- "));
        let words = GUIDED.replace(from, &to);
        desk.call(words.trim()).exits(0);
        let code = code(&desk);
        assert!(never_reached(&code).is_empty(), "{option} {code}");
        assert_eq!(code["files"][0]["functions"], 3, "{option} {code}");
        std::fs::remove_dir_all(desk.file("out")).unwrap();
    }
    desk.is_left_clean();
}

/// Programs whose runs breakpoints change: each of them passes on every input.
const DISTURBED: [(&str, &str); 3] = [
    (
        "handling",
        "\
#include <signal.h>
#include <unistd.h>
static volatile int traps;
static void on_trap(int number) { traps++; }
int chosen(const char *text) { return text[0] == 'A' ? 2 : 1; }
int main(void) {
    char text[64] = {0};
    signal(SIGTRAP, on_trap);
    read(0, text, sizeof text);
    raise(SIGTRAP);
    if (traps != 1) return 9;
    chosen(text);
    return traps == 1 ? 0 : 8;
}
",
    ),
    (
        "blocking",
        "\
#include <signal.h>
#include <unistd.h>
int main(void) {
    char text[64] = {0};
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, 0);
    read(0, text, sizeof text);
    return text[0] == 'A';
}
",
    ),
    (
        "reading",
        "\
#include <stdlib.h>
#include <unistd.h>
int chosen(const char *text) { return text[0] == 'A' ? 2 : 1; }
int main(void) {
    char text[64] = {0};
    read(0, text, sizeof text);
    if (*(volatile unsigned char *)chosen == 0xcc) abort();
    return chosen(text) == 2;
}
",
    ),
];

#[test]
#[cfg(target_arch = "x86_64")]
fn programs_that_breakpoints_disturb_get_the_classic_generator() {
    for (name, source) in DISTURBED {
        let desk = Desk::new();
        if program(&desk, name, Built::Plain, source, &[]).is_none() {
            return;
        }
        for way in ["inject", "snapshot"] {
            let words = format!(
                "run --json --seed 1 --max-len 8 --runs 200 --jobs 1 --generator guided \
                 --exec {way} -o {way} -- ./{name}"
            );
            let call = desk.call(&words).exits(0);
            let result = call.json();
            assert_eq!(result["flaky"], 0, "{name}: {result}");
            let warnings = result["warnings"].to_string();
            assert!(warnings.contains("breakpoints change"), "{name}: {result}");
            let again = format!("run --json --resume --runs 300 -o {way}");
            desk.call(&again).exits(0);
        }
        desk.is_left_clean();
    }
}

/// A program that reads its own code, and one that blocks SIGTRAP, on some inputs only.
const SOMETIMES: &str = "\
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
volatile int place;
void chosen(void) { place = 3; }
void others(void) { place = 4; }
int main(void) {
    char text[8] = {0};
    sigset_t all;
    read(0, text, sizeof text);
    if (text[0] == 'r' && *(volatile unsigned char *)chosen == 0xcc) abort();
    if (text[0] == 'b') {
        sigfillset(&all);
        sigprocmask(SIG_BLOCK, &all, 0);
        others();
    }
    return 0;
}
";

#[test]
#[cfg(target_arch = "x86_64")]
fn runs_that_breakpoints_disturb_are_no_crashes() {
    let desk = Desk::new();
    if program(&desk, "some", Built::Plain, SOMETIMES, &[]).is_none() {
        return;
    }
    std::fs::create_dir(desk.file("seeds")).unwrap();
    for (number, text) in ["r", "rr", "b", "bb", "x", "r1", "b1"].iter().enumerate() {
        desk.write(&format!("seeds/{number}"), text.as_bytes());
    }
    for way in ["inject", "snapshot"] {
        let words = format!(
            "run --json --seed 1 --max-len 4 --runs 2000 --jobs 1 --generator guided \
             --seeds seeds --exec {way} -o {way} -- ./some"
        );
        let result = desk.call(&words).exits(0).json();
        assert_eq!(result["flaky"], 0, "{result}");
        assert_eq!(result["runs"], 2000, "{result}");
    }
    desk.is_left_clean();
}
