//! The programs that never end, compiled in several ways.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

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

/// The program of this source, compiled unless this or another test process has done so. What was
/// put in place is never replaced: somebody may be running it.
pub fn build(name: &str, source: &str, (flags, strip): (&[&str], bool)) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    (source, flags, strip, ALWAYS).hash(&mut hasher);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let result = folder.join(format!("{name}-{:016x}", hasher.finish()));
    if result.exists() {
        return result;
    }
    let own = tempfile::tempdir_in(folder).expect("a folder");
    let (text, program) = (own.path().join("source.c"), own.path().join("program"));
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
    let linked = std::fs::hard_link(&program, &result);
    assert!(linked.is_ok() || result.exists(), "{linked:?}");
    result
}

fn run(command: &mut Command) {
    let output = command.output().expect("the tool runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
}
