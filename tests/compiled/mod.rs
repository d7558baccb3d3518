//! Programs that are compiled when a test first wants them, once for all test processes, and the
//! output of a program or script that was just written.

#![allow(
    dead_code,
    reason = "each test program that includes this uses a part of it"
)]

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The program `name` in `folder`, made by `make` in a folder of its own, unless this or another
/// test process has done so; `key` is all that it depends on. What was put in place is never
/// replaced: somebody may be running it.
pub fn once(
    folder: &Path,
    name: &str,
    key: impl Hash,
    make: impl FnOnce(&Path) -> PathBuf,
) -> PathBuf {
    try_once(folder, name, key, |own| Some(make(own))).expect("it is made")
}

/// The same where it may be impossible to make; `None` if `make` gives none.
pub fn try_once(
    folder: &Path,
    name: &str,
    key: impl Hash,
    make: impl FnOnce(&Path) -> Option<PathBuf>,
) -> Option<PathBuf> {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    std::fs::create_dir_all(folder).expect("a folder");
    let result = folder.join(format!("{name}-{:016x}", hasher.finish()));
    if !result.exists() {
        let own = tempfile::tempdir_in(folder).expect("a folder");
        let linked = std::fs::hard_link(make(own.path())?, &result);
        assert!(linked.is_ok() || result.exists(), "{linked:?}");
    }
    Some(result)
}

/// Runs a compiler, or another tool that must succeed.
pub fn run(command: &mut Command) {
    let output = command.output().expect("the tool runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
}

/// clang's libFuzzer, for a cargo project with libfuzzer-sys (`CUSTOM_LIBFUZZER_PATH`), where it is
/// installed: compiling that of libfuzzer-sys takes a minute of CPU time.
pub fn libfuzzer() -> Option<PathBuf> {
    let name = format!("libclang_rt.fuzzer-{}.a", std::env::consts::ARCH);
    let mut clang = Command::new("clang");
    clang.arg(format!("-print-file-name={name}"));
    let path = PathBuf::from(
        String::from_utf8(clang.output().ok()?.stdout)
            .ok()?
            .trim_end(),
    );
    path.is_file().then_some(path)
}

/// The output of a program that was just written. Until its own `execve`, a process that another
/// test has forked meanwhile may hold the file open for writing: then the program is started again.
#[track_caller]
pub fn output(command: &mut Command) -> Output {
    loop {
        match command.output() {
            Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            output => return output.unwrap(),
        }
    }
}
