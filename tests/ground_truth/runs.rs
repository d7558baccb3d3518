//! Runs planted inputs, and holds the canary against what was planned.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ddfuzz::exec::{Ended, Freshness, Limits, Program, Target, Way, start};
use ddfuzz::triage::{Crash, Triager, Verdict};
use tempfile::TempDir;

use crate::bugs::Planted;
use crate::builds::{Build, Source};

/// As many as the machines have that this is made for.
const THREADS: usize = 2;

/// What became of one input.
pub struct Seen {
    /// The program, its build aside.
    pub program: &'static str,
    /// What was planned.
    pub planted: Planted,
    /// Its record; `None` where it is none of a crash.
    pub crash: Option<Box<Crash>>,
    /// How its last run ended.
    pub ended: Ended,
}

/// A file into which planted bugs say their names.
pub struct Canary {
    _folder: TempDir,
    file: PathBuf,
}

impl Canary {
    /// A new one, which whoever a target runs as may write to.
    pub fn new() -> Canary {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("canary");
        std::fs::write(&file, "").expect("it is written");
        let allow = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
                .expect("it is ours");
        };
        allow(folder.path(), 0o755);
        allow(&file, 0o666);
        Canary {
            _folder: folder,
            file,
        }
    }

    /// The names that were said since it was last asked.
    pub fn said(&self) -> BTreeSet<String> {
        let said = std::fs::read_to_string(&self.file).expect("names are text");
        std::fs::write(&self.file, "").expect("it is written");
        said.lines().map(str::to_owned).collect()
    }

    /// The program as a target that says its bugs here.
    pub fn target(&self, program: &Path, limits: Limits) -> Target {
        let mut target = Target::new(Program::Path(program.to_owned()));
        // Of what is inherited a static C library looks at some, and its heap is another then.
        target.env_only = true;
        target.env = vec![
            ("CANARY".into(), self.file.clone().into_os_string()),
            ("LANG".into(), "C.UTF-8".into()),
        ];
        target.limits = limits;
        target
    }
}

/// Limits for programs that end by themselves.
pub fn generous() -> Limits {
    Limits::with_cpu(Duration::from_secs(10))
}

/// Limits for those that do not.
pub fn tight() -> Limits {
    Limits {
        cpu: Duration::from_millis(30),
        wall: Duration::from_secs(3),
        memory: 64 << 20,
        ..Limits::default()
    }
}

/// Those planted bugs of the looping programs that fill the memory.
const FILLING: [&str; 2] = ["table-of-any-size", "doubled-too-often"];

/// The inputs, those that hang or those that fill the memory, with their limits: processor time
/// is what the latter have enough of, for a busy machine takes long to give memory away.
pub fn looping(all: Vec<Planted>, limits: Limits) -> [(Vec<Planted>, Limits); 2] {
    let fills = |planted: &Planted| FILLING.contains(&planted.bug.as_str());
    let (filling, hanging) = all.into_iter().partition(fills);
    let patient = Limits {
        memory: limits.memory,
        ..generous()
    };
    [(hanging, limits), (filling, patient)]
}

/// The way in which ddfuzz runs this program by itself.
pub fn way_of(program: &Path) -> Way {
    let target = Target::new(Program::Path(program.to_owned()));
    let started = start(&target, None, Freshness::Fresh).expect("it can be started");
    started.executor.way()
}

/// Examines inputs of `source`, chosen by `choose`, in this build.
///
/// # Panics
/// Where the canary names another bug than was planned: the ground truth would be wrong.
pub fn examine(
    build: &Build,
    source: &'static Source,
    limits: Limits,
    choose: impl FnOnce(Vec<Planted>) -> Vec<Planted>,
) -> Vec<Seen> {
    let all = choose(source.planted());
    examine_all(build, source, &all, limits, false)
}

/// The same of all its inputs, and of those that end well whether they leak.
pub fn examine_leaks(build: &Build, source: &'static Source) -> Vec<Seen> {
    examine_all(build, source, &source.planted(), generous(), true)
}

fn examine_all(
    build: &Build,
    source: &'static Source,
    all: &[Planted],
    limits: Limits,
    leaks: bool,
) -> Vec<Seen> {
    let program = build.program(source);
    let way = way_of(&program);
    let next = AtomicUsize::new(0);
    let work = || {
        let canary = Canary::new();
        let target = canary.target(&program, limits);
        let mut triager = Triager::of_target(&target, way).expect("it can be started");
        triager.look_for_leaks(leaks);
        let mut seen = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(planted) = all.get(at) else { break };
            let verdict = triager.examine(&planted.input).expect("the target runs");
            let said = canary.said();
            assert!(
                said.len() == 1 && said.contains(&planted.bug),
                "{}, {}: {:?} of {} sets off {said:?}",
                build.name,
                source.name,
                String::from_utf8_lossy(&planted.input),
                planted.bug
            );
            let (crash, ended) = match verdict {
                Verdict::Crash(crash) => (Some(crash.clone()), crash.ended),
                Verdict::Flaky { ended, .. } => (None, ended),
            };
            seen.push((at, planted.clone(), crash, ended));
        }
        seen
    };
    let mut seen: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        let done = workers.into_iter().map(|worker| match worker.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        done.flatten().collect()
    });
    seen.sort_by_key(|(at, ..)| *at);
    let seen = seen.into_iter().map(|(_, planted, crash, ended)| Seen {
        program: source.name,
        planted,
        crash,
        ended,
    });
    seen.collect()
}
