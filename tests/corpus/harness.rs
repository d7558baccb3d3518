//! Harnesses of libFuzzer that a test makes of a few lines of C.

use std::path::Path;
use std::process::Command;

use ddfuzz::exec::{Program, Target};

use crate::{compiled, needs};

/// How a program is made to tell its coverage.
#[derive(Clone, Copy, Debug, Hash)]
enum Built {
    /// By clang, as a harness of libFuzzer.
    Harness,
    /// By `afl-clang-fast`, as a program with a fork server.
    Afl,
}

/// A target whose entry function has this body, with `text` and `length`, and `place` to write to;
/// `None`, and said so, where it cannot be built.
pub fn harness(name: &str, body: &str) -> Option<Target> {
    build(Built::Harness, name, "", body)
}

/// The same, with more functions before it.
pub fn harness_with(name: &str, functions: &str, body: &str) -> Option<Target> {
    build(Built::Harness, name, functions, body)
}

/// The same body in a program that reads its standard input, with AFL++'s fork server.
pub fn afl(name: &str, body: &str) -> Option<Target> {
    build(Built::Afl, name, "", body)
}

fn build(built: Built, name: &str, functions: &str, body: &str) -> Option<Target> {
    let (compiler, flag) = match built {
        Built::Harness => ("clang", "-fsanitize=fuzzer"),
        Built::Afl => ("afl-clang-fast", "-DPROGRAM"),
    };
    needs::program(compiler)?;
    let source = format!(
        "#include <stdint.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n\
         #ifdef PROGRAM\n#define LLVMFuzzerTestOneInput take\n#endif\n\
         static volatile int place; static int runs;\n{functions}\n\
         int LLVMFuzzerTestOneInput(const uint8_t *text, size_t length)\n\
         {{ runs++; (void)place; (void)text; (void)length; {body} return 0; }}\n\
         #ifdef PROGRAM\n\
         int main(void) {{ static uint8_t text[4096]; ssize_t got = read(0, text, sizeof text);\n\
         return take(text, got < 0 ? 0 : (size_t)got); }}\n\
         #endif\n"
    );
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = compiled::once(folder, name, (&source, built), |own| {
        let (file, made) = (own.join("source.c"), own.join(name));
        std::fs::write(&file, &source).unwrap();
        let mut command = Command::new(compiler);
        command.args(["-O1", flag, "-o"]).arg(&made).arg(&file);
        compiled::run(command.env("AFL_QUIET", "1"));
        made
    });
    let mut target = Target::new(Program::Path(path));
    target.limits.wall = std::time::Duration::from_secs(60);
    Some(target)
}
