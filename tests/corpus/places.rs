//! Directories with inputs, and programs that are run on them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ddfuzz::exec::{Limits, Program, Target};

/// A directory with inputs (`in`) and place for an output directory (`out`).
pub struct Place(tempfile::TempDir);

impl Place {
    pub fn new() -> Place {
        let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        let place = Place(dir.unwrap());
        std::fs::create_dir(place.path("in")).unwrap();
        place
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes an input.
    pub fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path("in").join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

/// `programs/manners.c`, compiled with these flags.
pub fn manners(flags: &[&str]) -> PathBuf {
    let source = include_str!("programs/manners.c");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("corpus");
    crate::compiled::once(&folder, "manners", (source, flags), |own| {
        let (file, program) = (own.join("manners.c"), own.join("manners"));
        std::fs::write(&file, source).unwrap();
        let mut cc = Command::new("cc");
        cc.args(["-O1", "-fno-optimize-sibling-calls", "-o"]);
        crate::compiled::run(cc.arg(&program).arg(&file).args(flags));
        program
    })
}

/// A program with limits that a hang does not take long to reach.
pub fn target(program: PathBuf) -> Target {
    Target {
        limits: Limits {
            memory: 64 << 20,
            ..Limits::with_cpu(Duration::from_millis(300))
        },
        ..Target::new(Program::Path(program))
    }
}
