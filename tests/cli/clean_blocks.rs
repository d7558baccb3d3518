//! `ddfuzz clean` of unmodified programs whose blocks are not known.

use crate::ddfuzz::Desk;

/// A program that reads its input, and says by its first byte what it is like in code that runs while
/// all signals are blocked, in a thread where `threads` is 1.
const BLOCKING: &str = r#"#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
static char text[9];
static void *work(void *unused) {
    switch (text[0]) {
    case '1': puts("one"); break;
    case '2': puts("two"); break;
    case '3': puts("three"); break;
    }
    return unused;
}
int main(int count, char **words) {
    sigset_t all, old;
    pthread_t thread;
    (void)words;
    if (read(0, text, sizeof text) < 1 || text[0] == 'h') return 0;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    if (count > 1) work(0);
    else pthread_create(&thread, 0, work, 0);
    pthread_sigmask(SIG_SETMASK, &old, 0);
    if (count == 1) pthread_join(thread, 0);
    return 0;
}
"#;

/// Cleans files with these contents, and gives the number of files that are kept and what is said.
fn cleaned(contents: &[String], program: &str) -> (u64, String) {
    let desk = Desk::new();
    let source = desk.write("blocking.c", BLOCKING);
    desk.compile(source.to_str().unwrap(), "blocking");
    std::fs::create_dir(desk.file("in")).unwrap();
    for (number, content) in contents.iter().enumerate() {
        desk.write(&format!("in/{number}"), content);
    }
    let words = format!("clean in -o out --json --exec inject --jobs 1 -- {program}");
    let said = desk.call(&words).exits(0);
    let result = said.json();
    assert_eq!(result["missing"].as_array().unwrap().len(), 0, "{result}");
    assert!(result["edges_before"].is_null(), "{result}");
    (result["after"]["files"].as_u64().unwrap(), said.err)
}

#[test]
fn code_that_runs_while_signals_are_blocked_is_no_coverage() {
    let each = |number: u32| number.to_string();
    let with_others = (1..9).flat_map(|number| [each(number), format!("h{number}")]);
    for (contents, program) in [
        (with_others.collect::<Vec<String>>(), "./blocking"),
        ((1..6).map(each).collect(), "./blocking"),
        ((1..6).map(each).collect(), "./blocking main"),
        ((1..10).map(each).collect(), "./blocking main"),
    ] {
        let (kept, said) = cleaned(&contents, program);
        let is_told = said.contains("some runs end differently with breakpoints");
        assert!(is_told, "{contents:?}, {program}: {said}");
        assert!(kept >= 4, "{contents:?}, {program}: {kept}: {said}");
    }
}

#[test]
fn a_program_that_starts_another_one_at_once_has_no_coverage() {
    let contents = ["1".to_owned(), "2".to_owned()];
    let (kept, said) = cleaned(&contents, "/usr/bin/env cat");
    assert!(said.contains("start another program at once"), "{said}");
    assert_eq!(kept, 2, "{said}");
}
