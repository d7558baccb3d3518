//! The places where files are dropped, looked through again and again.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::rebuild::Face;
use ddfuzz_store::foreign::{self, Input, Inputs};

/// Between the end of one look and the next, at least: a file that is the same then is taken for
/// whole.
const PAUSE: Duration = Duration::from_millis(200);
/// A look takes at most this part of the time, as long as pauses stay below the longest.
const SHARE: u32 = 10;
const LONGEST: Duration = Duration::from_secs(5);

/// A file that has stood still between two looks.
pub(super) struct Settled {
    pub(super) input: Input,
    pub(super) face: Face,
}

/// What one look has shown.
#[derive(Default)]
pub(super) struct Look {
    /// What is to be run, in the order of the sources and in each of the names.
    pub(super) settled: Vec<Settled>,
    /// Files that are new, or have changed, since the last look.
    pub(super) moving: Vec<PathBuf>,
    /// What the user should know, and has not been told.
    pub(super) notes: Vec<String>,
}

fn absolute(path: &PathBuf) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.clone())
}

/// All sources, and what is known of their files.
pub(super) struct Sources {
    paths: Vec<PathBuf>,
    /// The output directory, whose own files are no news.
    out: PathBuf,
    /// Files as the last look showed them, which may still be being written.
    waiting: HashMap<PathBuf, Face>,
    /// Files that were taken, as they were then.
    taken: HashMap<PathBuf, Face>,
    said: HashSet<PathBuf>,
    /// No look before this moment.
    due: Instant,
}

impl Sources {
    pub(super) fn new(paths: &[PathBuf], out: &Path) -> Sources {
        Sources {
            paths: paths.iter().map(absolute).collect(),
            out: out.to_owned(),
            waiting: HashMap::new(),
            taken: HashMap::new(),
            said: HashSet::new(),
            due: Instant::now(),
        }
    }

    /// More sources; those that are known already are passed over.
    pub(super) fn add(&mut self, paths: Vec<PathBuf>) {
        for path in paths.iter().map(absolute) {
            if !self.paths.contains(&path) {
                self.paths.push(path);
            }
        }
    }

    /// How long it is until the next look.
    pub(super) fn due_in(&self) -> Duration {
        self.due.saturating_duration_since(Instant::now())
    }

    /// A file that was taken is to be looked at again: it has changed since.
    pub(super) fn put_back(&mut self, path: &Path) {
        self.taken.remove(path);
    }

    /// All files are to be looked at again.
    pub(super) fn forget(&mut self) {
        self.taken.clear();
    }

    /// Looks through all sources.
    pub(super) fn look(&mut self) -> Look {
        let began = Instant::now();
        let mut look = Look::default();
        let found = self.find(&mut look);
        let mut waiting = HashMap::new();
        let mut taken = HashMap::new();
        for input in found.inputs {
            if self.is_passed_over(&input) || taken.contains_key(&input.path) {
                continue;
            }
            // What has vanished meanwhile is no error: fuzzers tidy up.
            let Some(face) = Face::at(&input.path) else {
                continue;
            };
            if self.taken.get(&input.path) == Some(&face) {
                taken.insert(input.path, face);
            } else if self.waiting.get(&input.path) == Some(&face) {
                taken.insert(input.path.clone(), face);
                look.settled.push(Settled { input, face });
            } else if waiting.insert(input.path.clone(), face).is_none() {
                look.moving.push(input.path);
            }
        }
        (self.waiting, self.taken) = (waiting, taken);
        let pause = (began.elapsed() * SHARE).clamp(PAUSE, LONGEST);
        self.due = Instant::now() + pause;
        look
    }

    fn find(&mut self, look: &mut Look) -> Inputs {
        let mut found = Inputs::default();
        for path in &self.paths {
            if !path.exists() {
                if self.said.insert(path.clone()) {
                    let note = format!("{} does not exist yet; waiting for it", path.display());
                    look.notes.push(note);
                }
                continue;
            }
            // An output directory of ddfuzz may be one that is just being made.
            if let Err(error) = foreign::find(path, &mut found)
                && self.said.insert(path.clone())
            {
                let path = path.display();
                look.notes
                    .push(format!("warning: {path} is not watched: {error}"));
            }
        }
        found.pass_over(&self.out);
        for (path, why) in std::mem::take(&mut found.unread) {
            if path.exists() && self.said.insert(path.clone()) {
                let path = path.display();
                look.notes
                    .push(format!("warning: {path} is not watched: {why}"));
            }
        }
        found
    }

    /// Hidden files are what fuzzers and tools write into before they rename it, unless one is
    /// named as a source or as a crash file.
    fn is_passed_over(&self, input: &Input) -> bool {
        let name = input.path.file_name();
        let hidden = name.is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        hidden && input.named.is_none() && !self.paths.contains(&input.path)
    }
}
