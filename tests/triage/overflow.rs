//! Stack overflows: named by the functions that recur, whatever the depth at which the stack ends.

use std::path::Path;
use std::process::Command;

use ddfuzz::triage::{Key, Triager};

use crate::hang::programs::{PLAIN, STATIC, STRIPPED, UNOPTIMIZED, build};
use crate::start::Starter;
use crate::{keys, needs};

const OVERFLOWS: &str = include_str!("overflows.c");
/// Its runtime has a handler of its own, which says so and aborts.
const RUST: &str = r#"
#[inline(never)]
fn deeper(n: u64) -> u64 {
    let kept = std::hint::black_box([n; 40]);
    if n == u64::MAX { 0 } else { deeper(n + 1) + std::hint::black_box(kept)[(n % 40) as usize] }
}
fn main() {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    let length = line.len() as u64;
    if line.starts_with('t') {
        let _ = std::thread::spawn(move || println!("{}", deeper(length))).join();
    } else {
        println!("{}", deeper(length));
    }
}
"#;
/// Recursions, each with inputs that come to it at other depths and by other tops.
const RECURSIONS: [(&str, &[&str]); 7] = [
    (
        "itself",
        &["itself 0", "itself 1", "itself 17", "itself 1000"],
    ),
    ("mutual", &["mutual 0", "mutual 1", "mutual 2", "mutual 31"]),
    (
        "alternating",
        &[
            "alternating 0",
            "alternating 1",
            "alternating 2",
            "alternating 5",
        ],
    ),
    ("libc", &["libc 0", "libc 1", "libc 99"]),
    ("sorting", &["sorting 0", "sorting 3"]),
    ("thread", &["thread 0", "thread 5", "thread 50"]),
    ("deep", &["deep 0", "deep 1", "deep 2000"]),
];

/// Frames as large as the input says, without a recursion.
const LARGE: [(&str, &[&str]); 2] = [
    (
        "variable array",
        &["vla 16000000", "vla 8400000", "vla 20000001"],
    ),
    ("alloca", &["alloca 16000000", "alloca 12345678"]),
];

fn triager(program: &Path, always_random: bool) -> Triager {
    Triager::new(Box::new(Starter {
        always_random,
        ..Starter::new(program)
    }))
}

/// The recursions that have more than one name over their inputs, with and without randomized
/// addresses, in these programs; and the name of each.
fn names(programs: &[&Path]) -> (Vec<String>, Vec<Key>) {
    let (mut mixed, mut all) = (Vec::new(), Vec::new());
    for (name, inputs) in RECURSIONS.iter().chain(&LARGE) {
        let mut seen = Vec::new();
        for program in programs {
            for random in [false, true] {
                let mut triager = triager(program, random);
                seen.extend(inputs.iter().map(|it| keys(&mut triager, it.as_bytes())));
            }
        }
        let other = seen.iter().any(|(class, major, minor)| {
            class != "stackoverflow" || (*major, *minor) != (seen[0].1, seen[0].2)
        });
        if other {
            mixed.push(format!("{name}: {seen:?}"));
        }
        all.push(seen[0].1);
    }
    (mixed, all)
}

const NONE: Vec<String> = Vec::new();

#[test]
fn an_overflow_has_one_name_at_every_depth_stripped_or_not_random_or_not() {
    let (plain, stripped) = (
        build("overflows", OVERFLOWS, PLAIN),
        build("overflows", OVERFLOWS, STRIPPED),
    );
    let (mixed, names) = names(&[&plain, &stripped]);
    assert_eq!(mixed, NONE);
    let mut different = names.clone();
    different.sort();
    different.dedup();
    assert_eq!(
        different.len(),
        names.len(),
        "each recursion has a name of its own"
    );
}

#[test]
fn an_overflow_has_one_name_where_nothing_is_optimized() {
    assert_eq!(
        names(&[&build("overflows", OVERFLOWS, UNOPTIMIZED)]).0,
        NONE
    );
}

#[test]
fn an_overflow_has_one_name_in_a_static_program() {
    assert_eq!(names(&[&build("overflows", OVERFLOWS, STATIC)]).0, NONE);
}

#[test]
fn an_overflow_in_rust_is_named_where_it_happens_and_not_by_its_abort() {
    if needs::program("rustc").is_none() {
        return;
    }
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (source, program) = (
        folder.path().join("deeper.rs"),
        folder.path().join("deeper"),
    );
    std::fs::write(&source, RUST).unwrap();
    let mut compiler = Command::new("rustc");
    compiler.arg("-O").arg(&source).arg("-o").arg(&program);
    assert!(compiler.status().unwrap().success());
    let inputs = ["main", "main, later", "thread", "thread, later"];
    let seen: Vec<_> = [false, true]
        .into_iter()
        .flat_map(|random| {
            let mut triager = triager(&program, random);
            inputs.map(|input| keys(&mut triager, input.as_bytes()))
        })
        .collect();
    for one in &seen {
        assert_eq!(one.0, "stackoverflow");
        assert_eq!(one, &seen[0]);
    }
}
