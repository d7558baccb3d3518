//! Loops without end in a guided campaign: each is named once, and costs little from then on.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use super::targets::{Built, assert_whole, corpus, program};
use crate::ddfuzz::Desk;
use crate::outcome::{files, record};

/// Two loops behind single bytes, entries of which it counts in the file `entered` of the desk; and
/// one that ends, late, behind a third.
const LOOPS: &str = r#"
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static volatile unsigned long sink;
static volatile int yes = 1;
static void tick(void) { sink++; }
static void enter(void)
{
    char path[4096];
    const char *desk = getenv("DESK");
    snprintf(path, sizeof path, "%s/entered", desk ? desk : ".");
    int file = open(path, O_WRONLY | O_APPEND);
    if (file >= 0 && write(file, "x", 1) == 1)
        close(file);
}
static void low(void) { enter(); while (yes) tick(); }
static void high(void) { enter(); while (yes) { tick(); sink += 2; } }
#ifdef SLOW
static void slow(void) { for (unsigned long i = 0; i < SLOW; i++) tick(); }
#endif
int LLVMFuzzerTestOneInput(const uint8_t *text, size_t length)
{
    size_t at = 0;
    while (at + 1 < length && text[at] == 'a')
        at++;
    if (at + 1 >= length)
        return 0;
    if (text[at] == 'l') low();
    if (text[at] == 'h' && text[at + 1] == '!') high();
#ifdef SLOW
    if (text[at] == 's') { slow(); sink = 7; }
#endif
    return 0;
}
#ifdef PROGRAM
int main(void)
{
    static uint8_t text[1 << 16];
    size_t length = 0;
    for (ssize_t more; (more = read(0, text + length, sizeof text - length)) > 0;)
        length += (size_t)more;
    return LLVMFuzzerTestOneInput(text, length);
}
#endif
"#;

/// The records of the hangs that an output directory holds.
fn hangs(desk: &Desk) -> Vec<Value> {
    let stored = files(&desk.file("out"));
    let of_hangs = stored.iter().filter(|path| {
        let is_hang = path.components().any(|part| part.as_os_str() == "hangs");
        is_hang && path.ends_with("crash.json")
    });
    of_hangs.map(|path| record(path)).collect()
}

/// How many runs were counted in groups of hangs.
fn counted(desk: &Desk) -> u64 {
    let stored = files(&desk.file("out"));
    let groups = stored.iter().filter(|path| {
        let is_hang = path.components().any(|part| part.as_os_str() == "hangs");
        is_hang && path.ends_with("group.json")
    });
    let counts = groups.flat_map(|path| {
        let seen = record(path)["seen"].clone();
        let counts = seen.as_object().expect("counts by campaign").values();
        counts.filter_map(Value::as_u64).collect::<Vec<u64>>()
    });
    counts.sum()
}

#[test]
fn each_loop_is_named_and_its_many_hangs_are_counted_and_not_waited_for() {
    // Each worker may take seconds for hangs that it does not know.
    for (built, jobs) in [(Built::Harness, 2), (Built::Afl, 1)] {
        let desk = Desk::new();
        if program(&desk, "loops", built, LOOPS, &[]).is_none() {
            return;
        }
        std::fs::create_dir(desk.file("seeds")).unwrap();
        desk.write("seeds/a", "aaa?!aaa");
        let words = format!(
            "run --json --seed 1 --max-len 16 --jobs {jobs} --runs 5000 --timeout 0.2 --minimize off -o out \
             --seeds seeds -- ./loops"
        );
        let entered = desk.file("entered");
        std::fs::write(&entered, "").unwrap();
        // Targets of root are run as somebody else.
        std::fs::set_permissions(&entered, Permissions::from_mode(0o666)).unwrap();
        let result = desk.call(&words).exits(0).json();
        let found = hangs(&desk);
        for name in ["low", "high"] {
            let named = |hang: &Value| hang.to_string().contains(&format!("\"{name}\""));
            assert!(found.iter().any(named), "{built:?}: {name}: {found:?}");
        }
        assert_eq!(result["hangs"], 2, "{built:?}: {result}");
        // How many there are depends on how busy the machine is. None is forgotten: beside those
        // that are counted there are the runs by which two loops, and samples of them, are named.
        let (counted, entered) = (counted(&desk), entered.metadata().unwrap().len());
        assert!(
            counted <= entered && entered <= counted + counted / 4 + 8,
            "{built:?}: of {entered} hangs {counted} were counted"
        );
        assert_whole(&desk.file("out"));
        desk.is_left_clean();
    }
}

#[test]
fn a_slow_run_that_ends_is_no_hang_and_what_it_reaches_is_kept() {
    let desk = Desk::new();
    // A tenth of a second or more: above the limit that is learned, below that of a hang.
    let slow = ["-DSLOW=40000000ul"];
    if program(&desk, "loops", Built::Harness, LOOPS, &slow).is_none() {
        return;
    }
    std::fs::create_dir(desk.file("seeds")).unwrap();
    desk.write("seeds/a", "aaa?!aaa");
    let words = "run --json --seed 1 --max-len 16 --jobs 1 --runs 1500 --timeout 0.3 --minimize off -o out \
                 --seeds seeds -- ./loops";
    desk.call(words).exits(0);
    let slow = |hang: &Value| hang.to_string().contains("\"slow\"");
    assert!(!hangs(&desk).iter().any(slow), "{:?}", hangs(&desk));
    let reaches = |input: &Vec<u8>| {
        let rest = input.iter().skip_while(|byte| **byte == b'a');
        rest.copied().next() == Some(b's')
    };
    let kept = corpus(&desk.file("out"));
    assert!(kept.values().any(reaches), "{kept:?}");
}

#[test]
fn hangs_that_there_was_no_time_to_name_are_told_with_what_to_do() {
    let desk = Desk::new();
    if program(&desk, "loops", Built::Harness, LOOPS, &[]).is_none() {
        return;
    }
    std::fs::create_dir(desk.file("seeds")).unwrap();
    desk.write("seeds/a", "aaa?!aaa");
    desk.write("seeds/l", "al!");
    // Naming a hang takes the limit of CPU time once more. The first whole time that is long enough
    // for a hang is too short to name it, however busy the machine is: each is 1.5 times the last.
    let seen = [2, 3, 4, 6, 9, 13, 20, 30, 45, 68]
        .into_iter()
        .find_map(|total| {
            let times = format!("--timeout 1 --total-time {total}s -o out{total}");
            let words = "run --seed 1 --max-len 16 --jobs 1 --seeds seeds";
            let said = desk.call(&format!("{words} {times} -- ./loops"));
            said.out.contains("flaky").then_some((total, said.out))
        });
    let (total, said) = seen.expect("a run over the limit");
    assert!(files(&desk.file(&format!("out{total}/hangs"))).is_empty());
    let last = said.lines().find(|line| line.contains("results in"));
    let last = last.expect("a result");
    assert!(last.contains("seen and not yet named"), "{said}");
    let begins = |line: &&str| line.starts_with("warning: the time was over");
    let warning = said.lines().find(begins).expect("a warning");
    let command = format!("`ddfuzz triage out{total}/flaky/*/*/*/original -- PROGRAM`");
    assert!(
        warning.contains("--resume") && warning.contains(&command),
        "{warning}"
    );
}
