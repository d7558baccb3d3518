//! A corpus and an output directory, and what was measured there.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use ddfuzz::corpus::journal::Observation;
use ddfuzz::corpus::measure::{Contents, MeasureSettings, measure};
use ddfuzz::exec::{Program, Target, Way};
use tempfile::TempDir;

/// A directory with `corpus` and `out` in it.
pub struct Seats {
    dir: TempDir,
}

/// One content with all that is known of it, but for how long it took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub id: String,
    pub path: PathBuf,
    pub seen: Observation,
}

impl Seats {
    pub fn new() -> Seats {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let seats = Seats { dir };
        std::fs::create_dir(seats.corpus()).unwrap();
        std::fs::create_dir(seats.out()).unwrap();
        seats
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn corpus(&self) -> PathBuf {
        self.dir.path().join("corpus")
    }

    pub fn out(&self) -> PathBuf {
        self.dir.path().join("out")
    }

    /// Writes a file of the corpus, with the directories above it.
    pub fn put(&self, name: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.corpus().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }

    pub fn measure(&self, target: &Target, jobs: usize) -> Contents {
        let stop = AtomicBool::new(false);
        let settings = settings(target, jobs, &stop);
        measure(&[self.corpus()], &self.out(), &settings, &mut |_| {}).unwrap()
    }
}

pub fn settings<'a>(target: &'a Target, jobs: usize, stop: &'a AtomicBool) -> MeasureSettings<'a> {
    MeasureSettings {
        target,
        way: Way::Harness,
        jobs,
        max_len: 1 << 20,
        learn_limit: true,
        freshness: ddfuzz::exec::Freshness::Shared,
        blocks: false,
        runners: None,
        stop,
    }
}

/// A bundled target, whose runs are to end by themselves, on a busy machine too.
pub fn bundled(name: &str) -> Target {
    let mut target = Target::new(Program::Bundled(name.to_owned()));
    target.limits.wall = std::time::Duration::from_secs(60);
    target
}

/// All that is known of all contents, in their order.
pub fn lines(contents: &Contents) -> Vec<Line> {
    let line = |number| Line {
        id: contents.id(number).to_string(),
        path: contents.path(number).unwrap(),
        seen: Observation {
            time: std::time::Duration::ZERO,
            ..contents.first_run(number).unwrap()
        },
    };
    (0..contents.len()).map(line).collect()
}
