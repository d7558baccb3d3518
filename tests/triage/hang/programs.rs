//! The programs that never end, compiled in several ways.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::compiled::{once, run};

const LOOPS: &str = include_str!("loops.c");

/// As distributions compile.
pub const PLAIN: (&[&str], bool) = (&["-O2"], false);
/// The same without symbols.
pub const STRIPPED: (&[&str], bool) = (&["-O2"], true);
/// Without optimization.
pub const UNOPTIMIZED: (&[&str], bool) = (&["-O0"], false);
/// Statically linked.
pub const STATIC: (&[&str], bool) = (&["-O2", "-static"], false);
/// The same without symbols.
pub const STATIC_STRIPPED: (&[&str], bool) = (&["-O2", "-static"], true);

/// Functions of the same code stay two functions.
const ALWAYS: [&str; 3] = ["-w", "-pthread", "-fno-ipa-icf"];

/// The loops, compiled with these flags, and without symbols if they are stripped.
pub fn loops(variant: (&[&str], bool)) -> PathBuf {
    build("loops", LOOPS, variant)
}

/// The program of this source, compiled when it is first wanted.
pub fn build(name: &str, source: &str, (flags, strip): (&[&str], bool)) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    once(folder, name, (source, flags, strip, ALWAYS), |own| {
        let (text, program) = (own.join("source.c"), own.join("program"));
        std::fs::write(&text, source).expect("the source is written");
        let mut compiler = Command::new("cc");
        run(compiler
            .args(ALWAYS)
            .args(flags)
            .arg(&text)
            .arg("-o")
            .arg(&program));
        if strip {
            run(Command::new("strip").arg("-s").arg(&program));
        }
        program
    })
}
