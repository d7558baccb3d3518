//! C programs of the tests, compiled with the system's compiler.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use ddfuzz::exec::{Limits, Program, Target};

/// A compiled program in a directory of its own, that everybody may reach.
pub struct Compiled {
    _dir: tempfile::TempDir,
    pub path: PathBuf,
}

/// Compiles `tests/exec/programs/NAME.c`.
pub fn compile(name: &str, flags: &[&str]) -> Compiled {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/exec/programs");
    let path = dir.path().join(name);
    let status = Command::new("cc")
        .args(["-O1", "-o"])
        .arg(&path)
        .arg(source.join(format!("{name}.c")))
        .args(flags)
        .status()
        .expect("the tests need a C compiler");
    assert!(status.success());
    Compiled { _dir: dir, path }
}

/// A target of that program with short limits.
pub fn target(program: &Compiled) -> Target {
    let mut target = Target::new(Program::Path(program.path.clone()));
    target.limits = Limits::with_cpu(Duration::from_millis(300));
    target.limits.memory = 200 << 20;
    target
}
