//! The program of a campaign may be rebuilt while it is fuzzed, or between two calls.

use std::collections::HashSet;
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use super::campaign_state::lock;
use super::error::CampaignError;
use super::minimizing::Minimizing;
use super::recheck::Recheck;
use super::screen::Screen;
use ddfuzz_exec::{ExecError, Program, Target, bundled};
use ddfuzz_model::files::FileError;
use ddfuzz_store::report::{Status, size};
use ddfuzz_store::{Build, Entry, Kind, Store, StoreError, rfc3339};

/// Between two looks at the program's file.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// A file that has not changed for so long is not being written.
const SETTLED: Duration = Duration::from_secs(1);
/// A program may be missing for so long, while it is built.
const PATIENCE: Duration = Duration::from_secs(120);
const GLANCE: Duration = Duration::from_millis(100);

/// What of a file changes when it is written or replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileStamp {
    file: (u64, u64),
    size: u64,
    changed: (i64, i64),
}

impl FileStamp {
    fn of(facts: &Metadata) -> FileStamp {
        FileStamp {
            file: (facts.dev(), facts.ino()),
            size: facts.len(),
            changed: (facts.mtime(), facts.mtime_nsec()),
        }
    }

    /// That of the file of this name, if there is one.
    pub(crate) fn at(path: &Path) -> Option<FileStamp> {
        path.metadata().ok().map(|facts| FileStamp::of(&facts))
    }
}

/// Watches the program of a target: cheaply by the facts of its file, and where these have
/// changed by its content.
#[derive(Debug)]
pub struct ProgramWatch {
    /// `None` for a bundled program, which does not change while we run.
    program: Option<PathBuf>,
    stamp: Option<FileStamp>,
    build: String,
    looked: Instant,
}

impl ProgramWatch {
    /// Looks at the program for the first time.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn of(target: &Target) -> Result<ProgramWatch, CampaignError> {
        let (program, stamp, build) = match &target.program {
            Program::Path(path) => (Some(path.clone()), FileStamp::at(path), build_of(path)?),
            Program::Bundled(name) => {
                let bytes = bundled::program(name).unwrap_or_default();
                (None, None, blake3::hash(bytes).to_hex().to_string())
            }
        };
        Ok(ProgramWatch {
            program,
            stamp,
            build,
            looked: Instant::now(),
        })
    }

    /// The blake3 of the program, 64 hex digits.
    pub fn build(&self) -> &str {
        &self.build
    }

    /// Whether the program's file has changed; looked at every two seconds at most.
    pub fn has_changed(&mut self) -> bool {
        self.looked.elapsed() >= LOOK_EVERY && self.is_another()
    }

    /// The same, looked at now.
    pub fn is_another(&mut self) -> bool {
        self.looked = Instant::now();
        let Some(path) = &self.program else {
            return false;
        };
        let stamp = FileStamp::at(path);
        if stamp == self.stamp {
            return false;
        }
        // A file that was only touched, or copied over itself, is the same program.
        let same = build_of(path).is_ok_and(|build| build == self.build);
        if same {
            self.stamp = stamp;
        }
        !same
    }

    /// Waits until the program is completely written, and takes it for the one to watch. Whether
    /// it is another build.
    ///
    /// # Errors
    /// When it is not there for two minutes.
    pub fn settle(&mut self, stop: &AtomicBool) -> Result<bool, CampaignError> {
        let Some(path) = self.program.clone() else {
            return Ok(false);
        };
        let began = Instant::now();
        let (mut stamp, mut since) = (FileStamp::at(&path), Instant::now());
        while stamp.is_none() || since.elapsed() < SETTLED {
            if stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            if stamp.is_none() && began.elapsed() > PATIENCE {
                return Err(ExecError::Missing { path }.into());
            }
            std::thread::sleep(GLANCE);
            let now = FileStamp::at(&path);
            if now != stamp {
                (stamp, since) = (now, Instant::now());
            }
        }
        let build = build_of(&path)?;
        let other = build != self.build;
        (self.stamp, self.build) = (stamp, build);
        Ok(other)
    }
}

/// The blake3 of a program's file.
fn build_of(path: &Path) -> Result<String, CampaignError> {
    let mut hasher = blake3::Hasher::new();
    let read = File::open(path).and_then(|file| hasher.update_reader(file).map(drop));
    read.map_err(FileError::at("read", path))
        .map_err(StoreError::from)?;
    Ok(hasher.finalize().to_hex().to_string())
}

/// What is done about another build of the program: all groups are checked, and what became of
/// them is recorded with the build.
pub struct BuildCheck<'a> {
    /// The output directory.
    pub store: &'a Mutex<Store>,
    /// What is run.
    pub minimizing: &'a Minimizing,
    /// By so many workers.
    pub jobs: usize,
    /// Turns true when the user stops.
    pub stop: &'a AtomicBool,
}

impl BuildCheck<'_> {
    /// Whether the campaign has run more than one build.
    pub fn is_on_record(&self) -> bool {
        let store = lock(self.store);
        let campaign = store.campaigns().current.as_ref();
        campaign.is_some_and(|campaign| campaign.builds.len() > 1)
    }

    /// The build that is on record.
    fn recorded(&self) -> Option<Build> {
        let store = lock(self.store);
        let campaign = store.campaigns().current.as_ref();
        campaign.and_then(|campaign| campaign.builds.last().cloned())
    }

    /// The groups that the present build was not found to have as they were.
    pub(crate) fn not_the_same(&self) -> HashSet<(Kind, String)> {
        let build = self.recorded();
        let groups = build.into_iter().flat_map(|build| build.groups);
        let gone = groups.flat_map(|(kind, all)| {
            let gone = all
                .into_iter()
                .filter(|(_, status)| *status != Status::Same);
            gone.map(move |(major, _)| (kind, major))
        });
        gone.collect()
    }

    /// At the start of a call: records the build of a new campaign, and checks the groups of one
    /// that was left with another build.
    ///
    /// # Errors
    /// As [`BuildCheck::recheck`].
    pub fn begin(
        &self,
        watch: &ProgramWatch,
        screen: &mut dyn Screen,
    ) -> Result<(), CampaignError> {
        match self.recorded() {
            Some(build) if build.blake3 == watch.build() => Ok(()),
            Some(_) => self.recheck(watch, screen),
            None => Ok(lock(self.store).record_build(Build {
                blake3: watch.build().to_owned(),
                seen: rfc3339(SystemTime::now()),
                groups: Default::default(),
            })?),
        }
    }

    /// Runs the inputs of all groups on the program as it is now, and records what became of them.
    /// Minimizations that were begun with the earlier build start again: what their logs say does
    /// not hold of this one. Where the user stops meanwhile, the earlier build stays on record, and
    /// the next call does it again.
    ///
    /// # Errors
    /// When the program cannot be run, or something cannot be read or written.
    pub fn recheck(
        &self,
        watch: &ProgramWatch,
        screen: &mut dyn Screen,
    ) -> Result<(), CampaignError> {
        let reader = lock(self.store).reader().clone();
        let mut groups = Vec::new();
        for kind in Kind::ALL {
            groups.extend(reader.groups(kind)?);
        }
        let count = size::counted(groups.len() as u64, "group");
        screen.note(&format!("the program was rebuilt; checking {count}"));
        let subject = |entry: &Entry| {
            let mut target = self.minimizing.target.clone();
            if matches!(entry.id.kind(), Kind::Hang | Kind::Oom) {
                // A hang or a blow-up is fixed only within the limits that it went over.
                target.limits = entry.crash.limits;
            }
            Some((target, self.minimizing.way))
        };
        let recheck = Recheck {
            reader: &reader,
            subject: &subject,
            groups: &groups,
            stop: self.stop,
        };
        let checked = recheck.run(self.jobs, &|_| ())?;
        if self.stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut build = Build {
            blake3: watch.build().to_owned(),
            seen: rfc3339(SystemTime::now()),
            groups: Default::default(),
        };
        let (mut fixed, mut doubtful) = (0, 0);
        for group in checked.into_iter().flatten() {
            fixed += u64::from(group.status == Status::Fixed);
            doubtful += u64::from(group.status == Status::CannotTell);
            let of_kind = build.groups.entry(group.kind).or_default();
            of_kind.insert(group.major, group.status);
        }
        let earlier = self.recorded().map(|build| build.blake3);
        let mut store = lock(self.store);
        store.set_unfinished_aside(&earlier.unwrap_or_default())?;
        store.record_build(build)?;
        drop(store);
        let fixed = size::grouped(fixed);
        let doubtful = match doubtful {
            0 => String::new(),
            some => format!(
                ", {} undecided (`ddfuzz check` shows why)",
                size::grouped(some)
            ),
        };
        screen.note(&format!(
            "{count} checked with the new build: {fixed} fixed{doubtful}"
        ));
        Ok(())
    }

    /// Notes that a group which was not found the same with this build has come again.
    ///
    /// # Errors
    /// When that cannot be written.
    pub fn seen_again(&self, kind: Kind, major: &str) -> Result<(), StoreError> {
        let Some(mut build) = self.recorded() else {
            return Ok(());
        };
        match build
            .groups
            .get_mut(&kind)
            .and_then(|all| all.get_mut(major))
        {
            Some(status) if *status != Status::Same => *status = Status::Same,
            _ => return Ok(()),
        }
        lock(self.store).record_build(build)
    }
}
