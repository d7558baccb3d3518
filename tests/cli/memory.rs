//! How much memory ddfuzz takes itself.

use std::process::Command;

use crate::ddfuzz::Desk;

/// Set in the process that runs a test of this file alone.
const ALONE: &str = "DDFUZZ_TEST_ALONE";

/// A program that crashes, with as much debug information as a large one has.
const LARGE: &str = "#include <stdio.h>\n\
    #include <stdlib.h>\n\
    __asm__(\".section .debug_filler,\\\"\\\",@progbits\\n.fill 100663296, 1, 65\\n.text\\n\");\n\
    int main(void) {\n\
      int c = getchar();\n\
      if (c == 'A' || c == 'B') abort();\n\
      return 0;\n\
    }\n";

/// The most that one of its processes took at a time, in MiB.
fn peak(desk: &Desk, words: &str) -> i64 {
    let mut child = desk.start(words);
    let pid = libc::pid_t::try_from(child.id()).unwrap();
    let mut status = 0;
    // SAFETY: a record of numbers may be all zeros.
    let mut usage = unsafe { std::mem::zeroed::<libc::rusage>() };
    // SAFETY: waits for our child, whose handle is used no more but to drop it.
    let waited = unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) };
    assert_eq!(waited, pid, "{words}");
    // It is gone already, and says so.
    assert!(child.wait().is_err(), "{words}");
    assert!(libc::WIFEXITED(status), "{words}: {status}");
    assert_eq!(libc::WEXITSTATUS(status), 1, "{words}");
    usage.ru_maxrss / 1024
}

#[test]
fn debug_information_of_the_target_is_not_held_in_memory() {
    // What a process took before its `execve` counts as well: as much as this test program takes
    // for all of its tests. One that runs this test alone takes little.
    if std::env::var_os(ALONE).is_none() {
        let name = "memory::debug_information_of_the_target_is_not_held_in_memory";
        let mut alone = Command::new(std::env::current_exe().unwrap());
        let alone = alone.args(["--exact", name]).env(ALONE, "1");
        let output = alone.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let is_run = said.contains("1 passed");
        assert!(output.status.success() && is_run, "{said}");
        return;
    }
    let desk = Desk::new();
    let source = desk.write("large.c", LARGE);
    let mut compiler = desk.command("cc");
    let compiler = compiler.args(["-g", "-o", "large"]).arg(source);
    assert!(compiler.status().unwrap().success());
    desk.write("crash", "A, and more");
    let size = desk.file("large").metadata().unwrap().len();
    assert!(size > 96 << 20, "{size}");
    for words in [
        "run --runs 300 --seed 1 -o campaign -- ./large",
        "triage crash -o groups --minimize -- ./large",
    ] {
        let peak = peak(&desk, words);
        assert!(peak < 96, "{words}: {peak} MiB");
    }
    desk.is_left_clean();
}
