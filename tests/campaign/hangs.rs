//! Hangs of campaigns: grouped by where they are, and minimized.

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
    let source = desk.write("loops.c", TWO_LOOPS);
    let program = desk.file("loops");
    let mut compiler = Command::new("cc");
    let built = compiler.arg("-O2").arg(source).arg("-o").arg(program);
    assert!(built.status().expect("the compiler runs").success());
}

#[test]
fn hangs_are_grouped_by_their_loop_whatever_the_number_of_workers() {
    let desk = Desk::new();
    compile(&desk);
    let run = |jobs: u32| {
        let out = format!("out{jobs}");
        let options = "--runs 16 --seed 1 --max-len 50 --timeout 0.06 --minimize off";
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
    let options = "--runs 6 --seed 1 --max-len 50 --timeout 0.06 --minimize after";
    let said = desk.call(&format!("run -q -o out {options} --jobs 1 -- ./loops"));
    let found = outcome(&desk.file("out"));
    let minimized = |name: &&String| name.starts_with("hangs/") && name.ends_with("log.jsonl");
    assert!(
        found.keys().any(|name| minimized(&name)),
        "{said:?} {:?}",
        found.keys()
    );
}
