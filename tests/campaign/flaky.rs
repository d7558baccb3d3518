//! A crash that comes of what the process ran before, and of no input alone.

use std::collections::BTreeSet;

use crate::ddfuzz::Desk;
use crate::outcome::{files, record};

/// Crashes as long as it was run less often than its second argument says, by the
/// directories that it makes beside its first one.
const SOON_OVER: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    char input[4096];
    (void)argc;
    (void)!read(0, input, sizeof input);
    for (int run = 0; run < atoi(argv[2]); run++) {
        char name[4096];
        snprintf(name, sizeof name, "%s-%d", argv[1], run);
        if (mkdir(name, 0700) == 0) abort();
    }
    return 0;
}
"#;

/// Compiles a program on the desk.
fn build(desk: &Desk, name: &str, source: &str) {
    let source = desk.write(&format!("{name}.c"), source);
    let mut compiler = std::process::Command::new("cc");
    let built = compiler
        .arg("-O2")
        .arg(source)
        .arg("-o")
        .arg(desk.file(name));
    assert!(built.status().expect("the compiler runs").success());
}

#[test]
fn a_crash_that_no_input_brings_about_alone_is_kept_with_the_inputs_before_it() {
    let desk = Desk::new();
    desk.compile("tests/cli/programs/third_call.c", "third_call");
    let words = "run --runs 7 --max-len 50 --seed 3 --jobs 1 --json -o out -- ./third_call";
    let result = desk.call(words).exits(0).json();
    assert_eq!(
        (&result["flaky"], &result["exec"]),
        (&1.into(), &"harness".into())
    );
    assert!(result["groups"].as_array().unwrap().is_empty(), "{result}");
    let mut records = files(&desk.file("out/flaky"));
    records.retain(|file| file.ends_with("crash.json"));
    assert_eq!(records.len(), 1, "{records:?}");
    let crash = record(&records[0]);
    let preceding = crash["preceding"].as_array().unwrap();
    assert_eq!(preceding.len(), 2, "{crash}");
    assert_eq!(crash["found"]["run"], 2);
    // What the dying process has copied of itself names it.
    assert_eq!(
        (&crash["capture"], &crash["confidence"]),
        (&"copy".into(), &"high".into())
    );
    let frames = crash["frames"].as_array().unwrap();
    let own = frames.iter().find(|frame| frame["own"] == true);
    assert_eq!(own.unwrap()["name"], "target_main", "{crash}");
}

#[test]
fn a_crash_that_never_comes_again_is_flaky_and_keeps_its_input() {
    let desk = Desk::new();
    build(&desk, "soon", SOON_OVER);
    let mut ends = BTreeSet::new();
    // Over before the minimization, among the runs of the input, in the search, and at its end.
    for runs in (4..8).chain(12..17) {
        let options = "--runs 1 --seed 5 --max-len 3 --jobs 1 --exec command --minimize after";
        let count = desk.file(&format!("tmp/count{runs}"));
        let program = format!("./soon {} {runs}", count.display());
        let words = format!("run --json {options} -o out{runs} -- {program}");
        let result = desk.call(&words).json();
        for group in result["groups"].as_array().unwrap() {
            assert_ne!(group["flaky"]["hits"], 0, "{runs}: {result}");
        }
        let flaky = files(&desk.file(&format!("out{runs}/flaky")));
        let named = |name: &str| flaky.iter().find(|file| file.ends_with(name));
        let Some(ended) = named("minimized.json").map(|file| record(file)) else {
            continue;
        };
        assert_eq!(
            (&result["flaky"], &ended["flaky"]["hits"]),
            (&1.into(), &0.into())
        );
        assert!(result["groups"].as_array().unwrap().is_empty(), "{result}");
        assert!(files(&desk.file(&format!("out{runs}/crashes"))).is_empty());
        let original = std::fs::read(named("original").expect("the input")).unwrap();
        assert!(!original.is_empty());
        if let Some(minimized) = named("minimized") {
            assert_eq!(std::fs::read(minimized).unwrap(), original, "{runs}");
        }
        ends.insert((
            ended["given_up"].is_null(),
            ended["flaky"]["tries"].as_u64(),
        ));
    }
    // Never again, the input neither, and what was smaller neither.
    for end in [(false, Some(12)), (true, Some(5)), (true, Some(20))] {
        assert!(ends.contains(&end), "{ends:?}");
    }
}

/// Crashes in one of two functions: each third run by the second one.
const BY_TURNS: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
static volatile int zero;
__attribute__((noinline)) static void first(void) { *(volatile int *)0 = zero; }
__attribute__((noinline)) static void second(void) { zero = *(volatile int *)8; }
int main(int argc, char **argv)
{
    (void)argc;
    int run = 1;
    for (; run < 1000; run++) {
        char name[4096];
        snprintf(name, sizeof name, "%s-%d", argv[1], run);
        if (mkdir(name, 0700) == 0) break;
    }
    if (run % 3) first(); else second();
    return 0;
}
"#;

#[test]
fn of_two_bugs_by_turns_both_are_kept() {
    let desk = Desk::new();
    let (source, program) = (desk.write("turns.c", BY_TURNS), desk.file("turns"));
    let mut compiler = std::process::Command::new("cc");
    let built = compiler.arg("-O1").arg(source).arg("-o").arg(program);
    assert!(built.status().expect("the compiler runs").success());
    let options = "--runs 6 --seed 5 --max-len 3 --jobs 1 --exec command --minimize off";
    let count = desk.file("tmp/count");
    let words = format!("run --json {options} -o out -- ./turns {}", count.display());
    let result = desk.call(&words).exits(1).json();
    assert_eq!(result["groups"].as_array().unwrap().len(), 2, "{result}");
}

/// Waits for ever if it is traced, and crashes otherwise.
const WAITS_IF_TRACED: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(void)
{
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        while (!strncmp(line, "TracerPid:", 10) && strcmp(line, "TracerPid:\t0\n"))
            pause();
    abort();
}
"#;

#[test]
fn a_crash_that_takes_too_long_under_a_tracer_is_flaky_and_no_hang() {
    let desk = Desk::new();
    let source = desk.write("waits.c", WAITS_IF_TRACED);
    desk.compile(&source.display().to_string(), "waits");
    let options = "--runs 1 --seed 5 --max-len 3 --jobs 1 --exec command --minimize off";
    let words = format!("run --json {options} -o out -- ./waits");
    let result = desk.call(&words).json();
    assert_eq!(
        (&result["flaky"], &result["hangs"]),
        (&1.into(), &0.into()),
        "{result}"
    );
}

/// Crashes except in the second run and three of each eleven, counted by the length of the file that its argument names.
const SOME_PASS: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    char input[4096];
    FILE *count = fopen(argv[argc - 1], "a");
    (void)!read(0, input, sizeof input);
    fputc('.', count);
    long runs = ftell(count);
    fclose(count);
    if (runs != 2 && runs * 7 % 11 > 2) abort();
    return 0;
}
"#;

#[test]
fn a_crash_that_misses_one_of_its_first_runs_is_minimized_under_flaky() {
    let desk = Desk::new();
    build(&desk, "some", SOME_PASS);
    desk.write("in", "abc");
    let options = "--exec command --jobs 1 -o out/ --json";
    let program = format!("./some {}", desk.file("tmp/count").display());
    let result = desk.call(&format!("min in {options} -- {program}"));
    let result = result.exits(0).json();
    let at = result["output"].as_str().unwrap();
    assert!(
        at.contains("/out/flaky/") && at.ends_with("minimized"),
        "{at}"
    );
    assert_eq!(result["claim"], "best-so-far", "{result}");
    let groups = desk.call("show out --json").exits(0).json();
    assert_eq!(groups["groups"][0]["kind"], "flaky", "{groups}");
    assert_eq!(files(&desk.file("out/crashes")).len(), 0);
}
