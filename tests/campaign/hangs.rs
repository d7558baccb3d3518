//! Hangs of campaigns: grouped by where they are, and minimized.

use std::collections::HashSet;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::ddfuzz::Desk;
use crate::outcome::{assert_same, outcome};

const TWO_LOOPS: &str = r#"
#include <stdio.h>
#include <string.h>
#define FAR __attribute__((noinline, noclone))
static volatile unsigned long sink;
static volatile int yes = 1;
FAR static void tick(void) { sink++; }
FAR static void low(void) { while (yes) tick(); }
FAR static void high(void) { while (yes) { tick(); sink += 2; } }
int main(void)
{
    int first = getchar();
    if (first % 4 == 1) low();
    if (first % 4 == 3) high();
    return 0;
}
"#;

fn compile(desk: &Desk) {
    compile_as(desk, "loops", TWO_LOOPS, "-O2");
}

fn compile_as(desk: &Desk, name: &str, text: &str, level: &str) {
    let source = desk.write(&format!("{name}.c"), text);
    let program = desk.file(name);
    let mut compiler = Command::new("cc");
    let built = compiler.arg(level).arg(source).arg("-o").arg(program);
    assert!(built.status().expect("the compiler runs").success());
}

#[test]
fn hangs_are_grouped_by_their_loop_whatever_the_number_of_workers() {
    let desk = Desk::new();
    compile(&desk);
    let run = |jobs: u32| {
        let out = format!("out{jobs}");
        let options = "--runs 8 --seed 1 --max-len 50 --timeout 0.03 --minimize off";
        let said = desk.call(&format!(
            "run -q -o {out} {options} --jobs {jobs} -- ./loops"
        ));
        assert!(said.out.contains(" runs in "), "{said:?}");
        outcome(&desk.file(&out))
    };
    let alone = run(1);
    let keys = alone.keys().filter_map(|name| name.strip_prefix("hangs/"));
    let mut groups: Vec<&str> = keys.filter_map(|name| name.split('/').next()).collect();
    groups.dedup();
    assert_eq!(groups.len(), 2, "{:?}", alone.keys());
    assert_same(&run(3), &alone, "three workers");
}

#[test]
fn a_hang_is_minimized_when_the_campaign_is_done() {
    let desk = Desk::new();
    compile(&desk);
    let options = "--runs 6 --seed 1 --max-len 50 --timeout 0.03 --minimize after";
    let said = desk.call(&format!("run -q -o out {options} --jobs 1 -- ./loops"));
    let found = outcome(&desk.file("out"));
    let minimized = |name: &&String| name.starts_with("hangs/") && name.ends_with("log.jsonl");
    assert!(
        found.keys().any(|name| minimized(&name)),
        "{said:?} {:?}",
        found.keys()
    );
}

/// Hangs in one loop in every first run, and in another one in every second; the file whose path is
/// its first argument has the number of its runs.
const MOVING: &str = r#"
#include <fcntl.h>
#include <unistd.h>
static volatile int count;
__attribute__((noinline)) static void first(void) { for (;;) count++; }
__attribute__((noinline)) static void second(void) { for (;;) count--; }
int main(int argc, char **argv) {
    int runs = argc < 2 ? -1 : open(argv[1], O_RDWR | O_APPEND);
    long before = lseek(runs, 0, SEEK_END);
    if (write(runs, "x", 1) != 1) return 0;
    before % 2 ? first() : second();
    return 0;
}
"#;

#[test]
fn a_hang_at_another_place_in_each_run_is_one_group() {
    let desk = Desk::new();
    compile_as(&desk, "moving", MOVING, "-O1");
    let runs = desk.write("tmp/moving", "");
    std::fs::set_permissions(&runs, Permissions::from_mode(0o666)).unwrap();
    let options = "--runs 3 --seed 1 --timeout 0.03 --minimize off --jobs 1 --exec command";
    let words = ["--".as_ref(), "./moving".as_ref(), runs.as_os_str()];
    let call = format!("run -q -o out --generator classic {options}");
    let said = desk.call_with(&call, &words);
    let found = outcome(&desk.file("out"));
    let of_group = |name: &&String| name.ends_with("crash.json");
    let records: Vec<&String> = found.keys().filter(of_group).collect();
    let shared = |name: &&String| name.starts_with("hangs/");
    assert!(
        !records.is_empty() && records.iter().all(shared),
        "{said:?} {records:?}"
    );
    let record = |name: &&String| std::fs::read_to_string(desk.file("out").join(name)).unwrap();
    for record in records.iter().map(record) {
        assert!(
            record.contains("hangs at another place in each run"),
            "{record}"
        );
    }
    let group = |name: &&String| name.split('/').nth(1).map(str::to_owned);
    let groups: HashSet<_> = records.iter().filter_map(group).collect();
    assert_eq!(groups.len(), 1, "{records:?}");
}

/// Two loops, and one faulty function with two callers; all of it needs twenty odd bytes.
const LOOPS_AND_CALLERS: &str = r#"
#include <stdio.h>
#define FAR __attribute__((noinline, noclone))
static volatile unsigned long sink;
static volatile int yes = 1;
static int *volatile nowhere;
FAR static void tick(void) { sink++; }
FAR static void low(void) { while (yes) tick(); }
FAR static void high(void) { while (yes) { tick(); sink += 2; } }
FAR static void copy(int from) { *nowhere = from; }
FAR static void one(int from) { copy(from); __asm__ volatile("nop"); }
FAR static void two(int from) { copy(from); sink = 2; }
int main(void)
{
    static char text[512];
    size_t length = fread(text, 1, sizeof text, stdin), odd = 0;
    for (size_t at = 1; at < length; at++) odd += text[at] % 2 != 0;
    if (odd < 20) return 0;
    switch (text[0] & 7) {
    case 1: low(); break;
    case 3: high(); break;
    case 4: one(text[1]); break;
    case 5: case 6: two(text[1]); break;
    }
    return 0;
}
"#;

#[test]
fn variants_of_crashes_are_minimized_also_if_no_time_is_left_for_hangs() {
    let desk = Desk::new();
    compile_as(&desk, "both", LOOPS_AND_CALLERS, "-O1");
    let options = "--generator classic --runs 16 --seed 1 --max-len 300 --timeout 0.1 --jobs 1";
    let words = format!("run {options} --minimize after -o out -- ./both");
    let said = desk.call(&words);
    let found = outcome(&desk.file("out"));
    let count = |folder: &str, name: &str| {
        let files = found.keys().filter(|file| file.starts_with(folder));
        files.filter(|file| file.ends_with(name)).count()
    };
    // Hangs come before variants. The first one takes all the time that there is for hangs.
    assert_eq!(count("hangs/", "crash.json"), 2, "{:?}", found.keys());
    assert_eq!(count("hangs/", "log.jsonl"), 1, "{:?}", found.keys());
    assert_eq!(count("crashes/", "crash.json"), 2, "{:?}", found.keys());
    assert_eq!(count("crashes/", "log.jsonl"), 2, "{:?}", found.keys());
    let notes = said.err.matches("not minimized").count();
    assert!(said.err.contains("1 hang is not minimized"), "{said:?}");
    assert_eq!(notes, 1, "{said:?}");
}

#[test]
fn the_warning_about_slow_runs_counts_those_of_all_calls() {
    let desk = Desk::new();
    compile_as(&desk, "stuck", "int main(void) { for (;;) ; }\n", "-O1");
    let options = "--generator classic --exec command --timeout 0.03 --minimize off --jobs 1 -o out -- ./stuck";
    let first = desk.call(&format!("run --runs 3 --seed 1 --max-len 9 {options}"));
    let warning = |count| format!("{count} of {count} runs exceeded the time limit");
    assert!(first.out.contains(&warning(3)), "{first:?}");
    let second = desk.call(&format!("run --resume --runs 1 {options}"));
    assert!(second.out.contains(&warning(4)), "{second:?}");
}
