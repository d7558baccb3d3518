//! How many crash files are triaged in a second, and in how much memory.
//!
//! `cargo bench --bench triage`: 10 000 files of up to 2000 bytes, which set off 20 bugs of a small
//! C program, by `ddfuzz triage` with two workers; without an output directory, with one, and once
//! more with `--resume`. Files a second are by the wall clock, so a busy machine says less than it
//! could; the peak of memory is that of ddfuzz alone, beside that for 100 files: flat means that
//! they are near each other.
//!
//! `cargo test` only sees whether it still runs, with 100 files.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Promised files a second on two cores.
const PROMISED: f64 = 300.0;
const BUGS: usize = 20;

/// Dies in one of 20 functions, which the first byte chooses.
fn program(folder: &Path) {
    let numbers = 0..BUGS;
    let one =
        |n| format!("__attribute__((noinline)) static void bug{n}(void) {{ *nowhere = {n}; }}\n");
    let bugs: String = numbers.clone().map(one).collect();
    let names: Vec<String> = numbers.map(|n| format!("bug{n}")).collect();
    let text = format!(
        "#include <stdio.h>\nstatic int *volatile nowhere;\n{bugs}\
         static void (*all[])(void) = {{ {} }};\n\
         int main(void) {{ int c = getchar(); if (c != EOF) all[c % {BUGS}](); return 0; }}\n",
        names.join(", ")
    );
    std::fs::write(folder.join("bugs.c"), text).expect("a source is written");
    let status = Command::new("cc")
        .args(["-O1", "-g", "-o", "bugs", "bugs.c"])
        .current_dir(folder)
        .status()
        .expect("there is a C compiler");
    assert!(status.success());
}

/// `count` files, no two of them alike.
fn files(folder: &Path, count: usize) {
    std::fs::create_dir(folder).expect("a directory is made");
    for index in 0..count {
        let mut text = vec![(index % BUGS) as u8];
        text.extend(index.to_le_bytes());
        text.resize(9 + index * 7919 % 2000, b'x');
        std::fs::write(folder.join(format!("{index:05}")), text).expect("a file is written");
    }
}

/// Calls ddfuzz; gives seconds, and the peak of its memory in KiB.
fn triage(folder: &Path, inputs: &str, more: &[&str]) -> (f64, u64) {
    let began = Instant::now();
    let mut child = Command::new(env!("CARGO_BIN_EXE_ddfuzz"))
        .args(["triage", inputs, "--quiet", "--jobs", "2"])
        .args(more)
        .args(["--", "./bugs"])
        .current_dir(folder)
        .stdout(Stdio::null())
        .spawn()
        .expect("ddfuzz starts");
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    let code = loop {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        peak = peak.max(number.unwrap_or(0));
        if let Some(code) = child.try_wait().expect("it is waited for") {
            break code;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    };
    assert_eq!(code.code(), Some(1), "crashes are found");
    (began.elapsed().as_secs_f64(), peak)
}

fn main() {
    let measures = std::env::args().any(|arg| arg == "--bench");
    let count = if measures { 10_000 } else { 100 };
    let folder = tempfile::tempdir().expect("a temporary directory");
    program(folder.path());
    files(&folder.path().join("few"), 100);
    files(&folder.path().join("many"), count);
    let (_, little) = triage(folder.path(), "few", &[]);
    println!(
        "{:>24}  {:>8}  {:>8}",
        "100 files",
        "",
        format!("{little} KiB")
    );
    for (what, more) in [
        ("keys alone", &[][..]),
        ("-o out", &["-o", "out"][..]),
        ("-o out --resume", &["-o", "out", "--resume"][..]),
    ] {
        let (seconds, peak) = triage(folder.path(), "many", more);
        let rate = count as f64 / seconds;
        println!("{what:>24}  {:>8}  {peak:>4} KiB", format!("{rate:.0}/s"));
        if measures && rate < PROMISED {
            println!("fewer than the promised {PROMISED} files a second");
        }
    }
}
