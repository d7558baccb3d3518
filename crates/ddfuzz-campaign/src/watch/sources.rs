//! The places where files are dropped, searched again and again, and the files that wait to be run.

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crossbeam::channel::{Sender, TrySendError};

use super::registry::ContentRegistry;
use crate::error::CampaignError;
use crate::rebuild::FileStamp;
use crate::screen::Screen;
use crate::watch::Task;
use ddfuzz_minimize::log::ContentHash;
use ddfuzz_model::files::regular::{self, Unread};
use ddfuzz_store::foreign::{self, Input, Inputs};
use ddfuzz_store::report::size;

/// Between the end of one look and the next, at least: a file that is the same then is taken for
/// whole.
const PAUSE: Duration = Duration::from_millis(200);
/// A look takes at most this part of the time, as long as pauses stay below the longest.
const SHARE: u32 = 10;
const LONGEST: Duration = Duration::from_secs(5);

/// A file that has stood still between two looks.
pub(super) struct SettledFile {
    pub(super) input: Input,
    pub(super) stamp: FileStamp,
}

/// What one look has shown.
#[derive(Default)]
pub(super) struct LookResult {
    /// What is to be run, in the order of the sources and in each of the names.
    pub(super) settled: Vec<SettledFile>,
    /// Files that are new, or have changed, since the last look.
    pub(super) moving: Vec<PathBuf>,
    /// Notes that the user has not seen yet.
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
    waiting: HashMap<PathBuf, FileStamp>,
    /// Files that were taken, as they were then.
    taken: HashMap<PathBuf, FileStamp>,
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
    pub(super) fn look(&mut self) -> LookResult {
        let began = Instant::now();
        let mut look = LookResult::default();
        let found = self.find(&mut look);
        let mut waiting = HashMap::new();
        let mut taken = HashMap::new();
        for input in found.inputs {
            if self.is_passed_over(&input) || taken.contains_key(&input.path) {
                continue;
            }
            // What has vanished meanwhile is no error: fuzzers tidy up.
            let Some(stamp) = FileStamp::at(&input.path) else {
                continue;
            };
            if self.taken.get(&input.path) == Some(&stamp) {
                taken.insert(input.path, stamp);
            } else if self.waiting.get(&input.path) == Some(&stamp) {
                taken.insert(input.path.clone(), stamp);
                look.settled.push(SettledFile { input, stamp });
            } else if waiting.insert(input.path.clone(), stamp).is_none() {
                look.moving.push(input.path);
            }
        }
        (self.waiting, self.taken) = (waiting, taken);
        let pause = (began.elapsed() * SHARE).clamp(PAUSE, LONGEST);
        self.due = Instant::now() + pause;
        look
    }

    fn find(&mut self, look: &mut LookResult) -> Inputs {
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
        found.exclude_output(&self.out);
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

/// The sources, and what was found in them and is not handed out.
pub(super) struct Queue {
    sources: Sources,
    max_len: u64,
    files: VecDeque<SettledFile>,
    /// A task for which the threads had no room yet.
    held: Option<Task>,
    /// Tasks that were handed out.
    given: u64,
}

impl Queue {
    pub(super) fn new(sources: Sources, max_len: u64) -> Queue {
        Queue {
            sources,
            max_len,
            files: VecDeque::new(),
            held: None,
            given: 0,
        }
    }

    /// These files are sources, too.
    pub(super) fn add(&mut self, files: Vec<PathBuf>) {
        self.sources.add(files);
    }

    /// Whether the sources are to be looked through now.
    pub(super) fn is_due(&self) -> bool {
        self.sources.due_in().is_zero()
    }

    /// Looks through the sources; gives the files that may still be being written.
    pub(super) fn look(&mut self, screen: &mut dyn Screen) -> Vec<PathBuf> {
        let look = self.sources.look();
        for note in look.notes {
            screen.note(&note);
        }
        self.files.extend(look.settled);
        look.moving
    }

    /// All files are to be run again, as the next look finds them.
    pub(super) fn begin_anew(&mut self) {
        self.sources.forget();
        self.files.clear();
        (self.held, self.given) = (None, 0);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty() && self.held.is_none()
    }

    /// How many files wait.
    pub(super) fn left(&self) -> u64 {
        self.files.len() as u64 + u64::from(self.held.is_some())
    }

    /// How many tasks were handed out.
    pub(super) fn given(&self) -> u64 {
        self.given
    }

    /// Hands out as many tasks as the threads have room for.
    pub(super) fn hand_out(
        &mut self,
        task: &Sender<Task>,
        registry: &mut ContentRegistry<'_>,
        screen: &mut dyn Screen,
    ) -> Result<(), CampaignError> {
        while let Some(next) = self
            .held
            .take()
            .or_else(|| self.read_next(registry, screen))
        {
            match task.try_send(next) {
                Ok(()) => self.given += 1,
                Err(TrySendError::Full(next)) => {
                    self.held = Some(next);
                    break;
                }
                // A thread that ends says why.
                Err(TrySendError::Disconnected(_)) => break,
            }
        }
        Ok(())
    }

    /// Reads the next file whose content is new.
    fn read_next(
        &mut self,
        registry: &mut ContentRegistry<'_>,
        screen: &mut dyn Screen,
    ) -> Option<Task> {
        while let Some(SettledFile { input, stamp }) = self.files.pop_front() {
            let bytes = regular::read(&input.path, self.max_len);
            // It has waited for its turn, and may have gone or be another by now.
            if FileStamp::at(&input.path) != Some(stamp) {
                self.sources.put_back(&input.path);
                continue;
            }
            let bytes = match bytes {
                Ok(bytes) => bytes,
                Err(why) => {
                    screen.note(&unread(&input.path, &why));
                    continue;
                }
            };
            let content = ContentHash::of(&bytes);
            if registry.take(content) {
                return Some(Task {
                    at: self.given,
                    file: input,
                    content,
                    bytes,
                });
            }
        }
        None
    }
}

/// What is said of a file that is not run. It is said again when the file has changed.
fn unread(path: &Path, why: &Unread) -> String {
    let why = match why {
        Unread::TooLarge { limit } => {
            let limit = size::limit(*limit);
            format!("it is larger than {limit}; --max-len allows more")
        }
        other => other.to_string(),
    };
    format!("warning: {} is not run: {why}", path.display())
}
