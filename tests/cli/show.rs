//! `ddfuzz show`.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::ddfuzz::Desk;
use crate::needs;

#[test]
fn the_groups_of_a_campaign_are_shown_while_nobody_may_write() {
    let desk = Desk::new();
    let words = "run --json --target nroff --runs 300 --max-len 2000 --seed 7 -o out";
    let result = desk.call(words).exits(1).json();
    let shown = desk.call("show --json out").exits(0).json();
    assert_eq!(shown["groups"], result["groups"]);
    let major = result["groups"][0]["major"].as_str().unwrap();
    let table = desk.call("show out").exits(0).out;
    assert!(table.contains(major));
    let block = desk.call(&format!("show out {}", &major[..6])).exits(0).out;
    assert!(block.contains("reproduce.sh") && block.contains("1-minimal"));
    let upper = major[..6].to_ascii_uppercase();
    assert_eq!(desk.call(&format!("show out {upper}")).exits(0).out, block);
    let error = desk.call("show --json out zzzz").exits(2).json();
    assert_eq!(error["error"]["kind"], "usage");
}

#[test]
fn an_output_directory_without_groups_says_so() {
    let desk = Desk::new();
    desk.call("run --target crtplot --runs 0 -o out").exits(0);
    assert_eq!(desk.call("show out").exits(0).out, "no groups in out\n");
}

/// Says why it dies, in one of several ways.
const TALKING: &str = r#"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
__attribute__((noinline)) static void check(int letter)
{
    assert(letter != 'a' && "no a, please");
}
__attribute__((noinline)) static void give_back(char *block)
{
    free(block + 16);
}
#ifdef FUZZER
#define MAIN(text) int LLVMFuzzerTestOneInput(const char *text, unsigned long size)
#else
#define MAIN(text) int talk(const char *text, unsigned long size)
#endif
MAIN(text)
{
    if (size == 0)
        return 0;
    check(text[0]);
    if (text[0] == 'f')
        give_back(malloc(64));
    if (text[0] == 'o') {
        fprintf(stderr, "talk: fatal: \x1b[2Jodd text\n");
        abort();
    }
    return 0;
}
#ifndef FUZZER
int main(void)
{
    char text[9];
    return talk(text, fread(text, 1, sizeof text, stdin));
}
#endif
"#;

/// The talking program, compiled; `None` where the compiler is missing.
fn talking(desk: &Desk, compiler: &str, flags: &[&str]) -> Option<()> {
    needs::program(compiler)?;
    desk.write("talk.c", TALKING);
    let mut command = desk.command(compiler);
    command.args(["-w", "-g", "-O1", "-o", "talk", "talk.c"]);
    assert!(command.args(flags).status().unwrap().success());
    Some(())
}

/// What a letter brings about: what is said, in which function and line.
const SAID: [(&str, &str, &str, u64); 3] = [
    (
        "a",
        "talk: talk.c:8: check: Assertion `letter != 'a' && \"no a, please\"' failed.",
        "check",
        8,
    ),
    ("f", "free(): invalid pointer", "give_back", 12),
    ("o", "talk: fatal: \\u{1b}[2Jodd text", "talk", 28),
];

#[test]
fn a_group_says_what_the_crash_said_where_and_from_where() {
    let desk = Desk::new();
    talking(&desk, "gcc", &[]).expect("gcc");
    for (letter, ..) in SAID {
        desk.write(letter, letter);
    }
    let triage = "triage a f o --json -o out -- ./talk";
    let result = desk.call(triage).exits(1).json();
    let groups = result["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 3, "{result}");
    let shown = desk.call("show --json out").exits(0).json();
    let shown = shown["groups"].as_array().unwrap();
    let severities: Vec<_> = shown.iter().map(|group| &group["severity"]).collect();
    assert_eq!(severities, ["medium", "low", "low"]);
    for (letter, message, function, line) in SAID {
        let is_it = |group: &&serde_json::Value| {
            let file = group["representative"].as_str().unwrap();
            file.ends_with(&format!("/{letter}"))
        };
        let group = groups.iter().find(is_it).unwrap();
        assert_eq!(group["message"], message);
        let major = group["major"].as_str().unwrap();
        let json = desk.call(&format!("show --json out {major}"));
        assert_eq!(json.exits(0).json()["groups"][0]["message"], message);
        let shown = desk.call(&format!("show out {major}")).exits(0).out;
        let source = desk.file("talk.c");
        for part in [
            format!("  message {message}\n"),
            format!("/talk.c:{line}\n"),
            "main at ".to_owned(),
            " of libc".to_owned(),
            format!("  source  {}:{line}\n", source.display()),
            format!("          > {line:>2} | "),
            "/reproduce.sh gdb\n".to_owned(),
        ] {
            assert!(shown.contains(&part), "{part} in {shown}");
        }
        let mut lines = shown.lines();
        let first = lines.find(|line| line.starts_with("  stack")).unwrap();
        assert!(first.contains(&format!("   {function} at ")), "{shown}");
    }
}

#[test]
fn triage_tells_the_same_without_a_directory_and_when_it_goes_on() {
    let desk = Desk::new();
    talking(&desk, "gcc", &[]).expect("gcc");
    for (letter, ..) in SAID {
        desk.write(letter, letter);
    }
    for words in [
        "triage f -- ./talk",
        "triage a f o -o out -- ./talk",
        "triage a f o -o out --resume -- ./talk",
    ] {
        let text = desk.call(words).exits(1).out;
        assert!(
            text.contains("  message free(): invalid pointer\n"),
            "{text}"
        );
        assert!(
            text.contains("give_back at ") && text.contains("> 12"),
            "{text}"
        );
    }
}

#[test]
fn the_end_of_a_run_tells_of_the_new_groups_and_not_of_the_old() {
    let desk = Desk::new();
    talking(&desk, "gcc", &[]).expect("gcc");
    std::fs::create_dir(desk.file("seeds")).unwrap();
    desk.write("seeds/f", "f");
    let words = "run --seeds seeds --runs 3 --max-len 4 --seed 1 --until first -o out -- ./talk";
    let text = desk.call(words).exits(1).out;
    let (causes, table) = text.split_once("\nKIND ").expect("a table");
    assert!(
        causes.contains("\n  message free(): invalid pointer\n"),
        "{text}"
    );
    assert!(
        causes.contains("give_back at ") && causes.contains("> 12"),
        "{text}"
    );
    assert!(table.lines().last().unwrap().ends_with(" in out"), "{text}");
    let again = words.replace("--until first", "--jobs 1");
    let text = desk.call(&again).exits(4).out;
    assert!(!text.contains("  message "), "{text}");
}

#[test]
fn the_script_of_a_triaged_libfuzzer_binary_runs_its_input_and_does_not_fuzz() {
    let desk = Desk::new();
    if talking(&desk, "clang", &["-DFUZZER", "-fsanitize=fuzzer"]).is_none() {
        return;
    }
    desk.write("a", "a");
    desk.call("triage a -o out -- ./talk").exits(1);
    let scripts = files(&desk.file("out/crashes"));
    let script = scripts.iter().find(|file| file.ends_with("reproduce.sh"));
    let mut command = desk.command("timeout");
    let output = command.arg("300").arg(script.unwrap()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("Running: ") && said.contains("no a, please"),
        "{said}"
    );
    assert_eq!(output.status.code(), Some(134), "{said}");
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| {
            if path.is_dir() {
                files(&path)
            } else {
                vec![path]
            }
        })
        .collect()
}

#[test]
fn a_group_that_does_not_come_each_time_is_marked() {
    const COUNTING: &str = r#"
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
    FILE *file = fopen(getenv("RUNS"), "r+");
    unsigned runs = 0;
    fscanf(file, "%u", &runs);
    rewind(file);
    fprintf(file, "%u", runs + 1);
    fclose(file);
    /* Without a period that the runs of one test could have, too. */
    if (getchar() == 'x' && runs * 2654435761u >> 30)
        abort();
    return 0;
}
"#;
    let desk = Desk::new();
    desk.write("counting.c", COUNTING);
    desk.compile(desk.file("counting.c").to_str().unwrap(), "counting");
    desk.write("input", "xy");
    let runs = desk.write("runs", "0      ");
    std::fs::set_permissions(&runs, Permissions::from_mode(0o666)).unwrap();
    let words = format!(
        "min input -o out/ --jobs 1 --exec command --env RUNS={} -- ./counting",
        runs.display()
    );
    desk.call(&words).exits(0);
    let json = desk.call("show --json out").exits(0).json();
    let rate = &json["groups"][0]["flaky"];
    let count = |name: &str| rate[name].as_u64().unwrap();
    assert_eq!(count("tries"), 20, "{json}");
    assert!((1..20).contains(&count("hits")), "{json}");
    let text = desk.call("show out").exits(0).out;
    let mark = format!("best-so-far, flaky {}/20", count("hits"));
    assert!(text.contains(&mark), "{text}");
    let major = json["groups"][0]["major"].as_str().unwrap();
    let text = desk.call(&format!("show out {major}")).exits(0).out;
    let sentence = format!("; it fails in {} of 20 runs\n", count("hits"));
    assert!(text.contains(&sentence), "{text}");
}

#[test]
fn the_result_of_the_last_check_is_shown() {
    let desk = Desk::new();
    desk.script("stays", "kill -SEGV $$");
    desk.script("mended", "cat");
    desk.write("crash", "input");
    desk.call("triage crash -o out -- ./stays").exits(1);
    let shown = || desk.call("show out --json").exits(0).json()["groups"][0]["checked"].clone();
    assert_eq!(shown(), serde_json::Value::Null);
    desk.call("check out").exits(1);
    assert_eq!(shown()["status"], "same");
    let major = desk.call("show out --json").exits(0).json()["groups"][0]["major"].clone();
    let block = desk
        .call(&format!("show out {}", major.as_str().unwrap()))
        .exits(0);
    assert!(block.out.contains("check   same since 2"), "{}", block.out);
    let checked = desk.call("check out --json -- ./mended").json();
    let status = checked["groups"][0]["status"].as_str().unwrap();
    assert_ne!(status, "same");
    assert_eq!(shown()["status"], status);
    let table = desk.call("show out").exits(0);
    assert!(
        table.out.contains(&format!("check: {status}")),
        "{}",
        table.out
    );
    // A check with the same result adds nothing.
    let lines = || {
        String::from_utf8(desk.read("out/checks.jsonl"))
            .unwrap()
            .lines()
            .count()
    };
    desk.call("check out -- ./mended");
    assert_eq!(lines(), 2);
}
