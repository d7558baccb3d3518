//! The files and directories in which other fuzzers drop inputs ([`Sources`], searched again and
//! again), and the files found there that wait to be run ([`FileQueue`]).

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crossbeam::channel::{Sender, TrySendError};

use super::registry::ContentRegistry;
use crate::{FileStamp, Screen, may_leak, watch::Task};
use ddfuzz_minimize::log::ContentHash;
use ddfuzz_model::files::folder;
use ddfuzz_model::files::regular::{self, Unread};
use ddfuzz_store::foreign::{self, Input, Inputs, ReportedEnd};
use ddfuzz_store::report::size;

/// Shortest pause between two searches for files; a file that has not changed between two searches
/// counts as completely written.
const PAUSE: Duration = Duration::from_millis(200);
/// The pause before the next search for files is this many times as long as the last search took,
/// within [`PAUSE`] and [`LONGEST`].
const PAUSE_FACTOR: u32 = 10;
/// Longest pause between two searches for files.
const LONGEST: Duration = Duration::from_secs(5);

/// A file of a watched fuzzer that has not changed between two searches, and so counts as
/// completely written.
pub(super) struct SettledFile {
    pub(super) input: Input,
    pub(super) stamp: FileStamp,
}

/// The result of one search for the files of a watched fuzzer.
#[derive(Default)]
pub(super) struct SearchResult {
    /// Files that have not changed since the last search and were not queued before, in the order
    /// of the sources; files of one source are sorted by name.
    pub(super) settled: Vec<SettledFile>,
    /// Files of the watched fuzzer that are new or have changed since the last search, and so may
    /// still be written to.
    pub(super) moving: Vec<PathBuf>,
    /// Notes to the user on paths that do not exist or cannot be searched, each once.
    pub(super) notes: Vec<String>,
    /// Number of existing paths that could not be searched; `notes` has a note about each.
    pub(super) unread: u64,
}

impl SearchResult {
    /// Adds a note that the existing path `path` is not searched, with the reason `why`, and counts
    /// the path.
    fn add_unread(&mut self, path: &Path, why: &dyn std::fmt::Display) {
        let path = path.display();
        let note = format!("warning: {path} is not watched: {why}");
        self.notes.push(note);
        self.unread += 1;
    }
}

/// The files and directories in which a watch searches for files to run, and what is known of the
/// files found in them.
pub(super) struct Sources {
    /// Files and directories that are searched again and again.
    paths: Vec<PathBuf>,
    /// Files that the watched fuzzer has reported as written, each with its number in the order of
    /// the first reports.
    announced: HashMap<PathBuf, usize>,
    /// Files that the watched fuzzer has reported as written and that may still change, by number.
    /// A file is added again whenever it is reported again, since its content may have changed.
    expected: BTreeMap<usize, PathBuf>,
    /// The output directory of the watch, whose files are ignored.
    out: PathBuf,
    /// Files that may still be written to, because the last search found them new or changed; each
    /// with its stamp (metadata) at the time of that search.
    waiting: HashMap<PathBuf, FileStamp>,
    /// Files that were put into the queue of files to run, each with its stamp (metadata) when it
    /// was queued.
    taken: HashMap<PathBuf, FileStamp>,
    /// Paths about which the user has got a note, so that no path gets a second one.
    noted: HashSet<PathBuf>,
    /// When the next search for files is due.
    due: Instant,
}

impl Sources {
    pub(super) fn new(paths: &[PathBuf], out: &Path) -> Sources {
        Sources {
            paths: paths.iter().map(|path| folder::absolute(path)).collect(),
            announced: HashMap::new(),
            expected: BTreeMap::new(),
            out: out.to_owned(),
            waiting: HashMap::new(),
            taken: HashMap::new(),
            noted: HashSet::new(),
            due: Instant::now(),
        }
    }

    /// Makes the next searches also look for `files`, which the watched fuzzer has reported as
    /// written.
    pub(super) fn add(&mut self, files: Vec<PathBuf>) {
        for path in files.iter().map(|file| folder::absolute(file)) {
            let next = self.announced.len();
            let number = *self.announced.entry(path.clone()).or_insert(next);
            self.expected.insert(number, path);
        }
    }

    /// Forgets that the file at `path` was queued, so that the next searches find it again.
    fn find_again(&mut self, path: &PathBuf) {
        self.taken.remove(path);
        if let Some(number) = self.announced.get(path) {
            self.expected.insert(*number, path.clone());
        }
    }

    /// Forgets which files were queued, so that the next searches find all files again.
    fn find_all_again(&mut self) {
        self.taken.clear();
        let announced = self.announced.iter();
        (self.expected).extend(announced.map(|(path, number)| (*number, path.clone())));
    }

    fn search(&mut self) -> SearchResult {
        let began = Instant::now();
        let mut result = SearchResult::default();
        let found = self.find(&mut result);
        let mut waiting = HashMap::new();
        let mut taken = HashMap::new();
        for input in found.inputs {
            if self.is_hidden(&input) || taken.contains_key(&input.path) {
                continue;
            }
            // A vanished file is no error: fuzzers delete files.
            let Some(stamp) = FileStamp::at(&input.path) else {
                continue;
            };
            if self.taken.get(&input.path) == Some(&stamp) {
                taken.insert(input.path, stamp);
            } else if self.waiting.get(&input.path) == Some(&stamp) {
                taken.insert(input.path.clone(), stamp);
                if let Some(number) = self.announced.get(&input.path) {
                    self.expected.remove(number);
                }
                result.settled.push(SettledFile { input, stamp });
            } else if waiting.insert(input.path.clone(), stamp).is_none() {
                result.moving.push(input.path);
            }
        }
        (self.waiting, self.taken) = (waiting, taken);
        let pause = (began.elapsed() * PAUSE_FACTOR).clamp(PAUSE, LONGEST);
        self.due = Instant::now() + pause;
        result
    }

    fn find(&mut self, result: &mut SearchResult) -> Inputs {
        let mut found = Inputs::default();
        for path in &self.paths {
            if !path.exists() {
                if self.noted.insert(path.clone()) {
                    let note = format!("{} does not exist yet; waiting for it", path.display());
                    result.notes.push(note);
                }
                continue;
            }
            // An output directory of ddfuzz may be one that is just being made.
            if let Err(error) = foreign::find(path, &mut found)
                && self.noted.insert(path.clone())
            {
                result.add_unread(path, &error);
            }
        }
        self.find_expected(&mut found);
        found.exclude_output(&self.out);
        for (path, why) in std::mem::take(&mut found.unread) {
            if path.exists() && self.noted.insert(path.clone()) {
                result.add_unread(&path, &why);
            }
        }
        found
    }

    /// Adds to `found` the files that the watched fuzzer has reported as written and that may still
    /// change, in the order of the first reports. Forgets files that no longer exist.
    fn find_expected(&mut self, found: &mut Inputs) {
        self.expected.retain(|_, path| path.exists());
        for path in self.expected.values() {
            // Files that cannot be read are among those that were not.
            let _ = foreign::find(path, found);
        }
    }

    /// Returns true if a file is to be ignored, because its name begins with a dot (such as a
    /// fuzzer's temporary file). Returns false for all other files, and always for a path that the
    /// user names, for a file that the fuzzer has reported as written, and for a file that is named
    /// like a crash file.
    fn is_hidden(&self, input: &Input) -> bool {
        let name = input.path.file_name();
        let hidden = name.is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        let is_source =
            || self.announced.contains_key(&input.path) || self.paths.contains(&input.path);
        hidden && input.named.is_none() && !is_source()
    }
}

/// The queue of files to run: the sources in which a watch searches, and the files found in them
/// that wait to be run.
pub(super) struct FileQueue {
    sources: Sources,
    max_len: u64,
    /// Whether leaks are looked for in runs of all files; if false, only in runs of files whose
    /// names say that they show a leak.
    leaks: bool,
    files: VecDeque<SettledFile>,
    /// Files that the watched fuzzer reports as hangs. They are run when no other files wait, since
    /// each takes the whole time limit, several times.
    hangs: VecDeque<SettledFile>,
    /// A task (a file to run) that the channel to the examiner threads had no room for; it is
    /// handed out next.
    blocked: Option<Task>,
    /// Number of tasks (files to run) that were handed out to the examiner threads.
    handed_out: u64,
    /// Numbers of the tasks that were handed out and whose results are not committed yet (counted
    /// and stored), each with whether the watched fuzzer reports the file as a hang.
    open: BTreeMap<u64, bool>,
    /// Number of files and directories that could not be read.
    unread: u64,
}

impl FileQueue {
    pub(super) fn new(sources: Sources, max_len: u64, leaks: bool) -> FileQueue {
        FileQueue {
            sources,
            max_len,
            leaks,
            files: VecDeque::new(),
            hangs: VecDeque::new(),
            blocked: None,
            handed_out: 0,
            open: BTreeMap::new(),
            unread: 0,
        }
    }

    pub(super) fn add(&mut self, files: Vec<PathBuf>) {
        self.sources.add(files);
    }

    /// Checks whether it is time for the next search for files of the watched fuzzer.
    pub(super) fn is_due(&self) -> bool {
        Instant::now() >= self.sources.due
    }

    /// Searches the sources, and queues files that have stopped changing; shows notes on paths that
    /// cannot be searched. Returns the files that may still be written to.
    pub(super) fn search(&mut self, screen: &mut dyn Screen) -> Vec<PathBuf> {
        let result = self.sources.search();
        for note in result.notes {
            screen.note(&note);
        }
        self.unread += result.unread;
        for file in result.settled {
            match is_reported_hang(&file.input) {
                true => self.hangs.push_back(file),
                false => self.files.push_back(file),
            }
        }
        result.moving
    }

    /// Empties the queue of files to run, sets the number of tasks handed out to 0, and makes the
    /// next searches find all files again.
    pub(super) fn restart(&mut self) {
        self.sources.find_all_again();
        self.files.clear();
        self.hangs.clear();
        self.open.clear();
        (self.blocked, self.handed_out) = (None, 0);
    }

    pub(super) fn left(&self) -> u64 {
        (self.files.len() + self.hangs.len()) as u64 + u64::from(self.blocked.is_some())
    }

    /// Returns the number of tasks (files to run) that were handed out to the examiner threads and
    /// whose results are not committed yet.
    pub(super) fn open(&self) -> u64 {
        self.open.len() as u64
    }

    /// Returns the number of the task (file to run) whose result is to be committed (counted and
    /// stored) next; `None` if its result has not come. `is_examined`: returns true for the numbers
    /// of tasks with a result. Results are committed in the order of the tasks. Only results of
    /// files that the watched fuzzer reports as hangs come late, and other results do not wait for
    /// them.
    pub(super) fn due(&self, is_examined: impl Fn(&u64) -> bool) -> Option<u64> {
        let mut is_first = true;
        for (at, is_hang) in &self.open {
            // What one examiner thread has found later than a hang is committed after it.
            if is_examined(at) {
                return (is_first || !is_hang).then_some(*at);
            }
            if !is_hang {
                return None;
            }
            is_first = false;
        }
        None
    }

    /// Records that the result of the task with the number `at` is committed (counted and stored).
    pub(super) fn close(&mut self, at: u64) {
        self.open.remove(&at);
    }

    /// Returns the number of files and directories that could not be read, and were not run.
    pub(super) fn unread(&self) -> u64 {
        self.unread
    }

    /// Reads queued files and sends them as tasks to the examiner threads, as many as the channel
    /// `task` has room for. Files whose content was run before are dropped. Files reported as hangs
    /// are sent only when no other file waits, and only while at least one of several examiner
    /// threads stays free for new files.
    pub(super) fn hand_out(
        &mut self,
        task: &Sender<Task>,
        registry: &mut ContentRegistry<'_>,
        screen: &mut dyn Screen,
    ) {
        let examiners = task.capacity().unwrap_or(1) as u64;
        let most_beside_hangs = (examiners - 1).max(1);
        loop {
            let with_hangs = self.open() < most_beside_hangs;
            let blocked = self.blocked.take();
            let Some(next) = blocked.or_else(|| self.read_next(with_hangs, registry, screen))
            else {
                break;
            };
            let is_hang = is_reported_hang(&next.file);
            match task.try_send(next) {
                Ok(()) => {
                    self.open.insert(self.handed_out, is_hang);
                    self.handed_out += 1;
                }
                Err(TrySendError::Full(next)) => {
                    self.blocked = Some(next);
                    break;
                }
                // A thread that ends reports why.
                Err(TrySendError::Disconnected(_)) => break,
            }
        }
    }

    /// Reads the next queued file whose content was not run before, and marks the content as run.
    /// `None` if no file is ready. `with_hangs`: whether files that the watched fuzzer reports as
    /// hangs are read, too, after all others. The user is told of files that cannot be read. A file
    /// that has changed meanwhile is left to the next search.
    fn read_next(
        &mut self,
        with_hangs: bool,
        registry: &mut ContentRegistry<'_>,
        screen: &mut dyn Screen,
    ) -> Option<Task> {
        loop {
            let hangs = with_hangs.then_some(&mut self.hangs);
            let next = self.files.pop_front();
            let SettledFile { input, stamp } = next.or_else(|| hangs?.pop_front())?;
            let bytes = regular::read(&input.path, self.max_len);
            // The file may have changed or vanished while it waited.
            if FileStamp::at(&input.path) != Some(stamp) {
                self.sources.find_again(&input.path);
                continue;
            }
            let bytes = match bytes {
                Ok(bytes) => bytes,
                Err(why) => {
                    self.unread += 1;
                    screen.note(&unread(&input.path, &why));
                    continue;
                }
            };
            let content = ContentHash::of(&bytes);
            if registry.mark(content, self.leaks || may_leak(&input)) {
                return Some(Task {
                    at: self.handed_out,
                    file: input,
                    content,
                    bytes,
                });
            }
        }
    }
}

/// Returns true if the fuzzer that wrote a file reports that its run takes long: a hang, or a slow
/// unit of libFuzzer.
fn is_reported_hang(input: &Input) -> bool {
    let slow = [ReportedEnd::Timeout, ReportedEnd::Slow];
    (input.named).is_some_and(|named| slow.contains(&named.reported_end))
}

/// Returns the note to the user that the file at `path` is not run, and why.
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Test helper for the order in which a watch commits results: makes a task for each element of
    /// `hangs` (true: its file is reported as a hang), and lets results arrive in the order `come`
    /// (numbers of tasks). Returns for each arrival the numbers of the tasks that can be committed
    /// after it.
    fn committed(hangs: &[bool], come: &[u64]) -> Vec<Vec<u64>> {
        let root = std::env::temp_dir();
        let mut queue = FileQueue::new(Sources::new(&[], &root), 1, false);
        queue.open = (0..).zip(hangs.iter().copied()).collect();
        let mut examined = BTreeSet::new();
        let step = |at: &u64| {
            examined.insert(*at);
            let mut now = Vec::new();
            while let Some(at) = queue.due(|at| examined.contains(at)) {
                queue.close(at);
                examined.remove(&at);
                now.push(at);
            }
            now
        };
        let steps = come.iter().map(step).collect();
        assert_eq!(queue.open(), 0);
        steps
    }

    #[test]
    fn no_result_waits_for_that_of_a_reported_hang() {
        let files = committed(&[false, false, false], &[1, 2, 0]);
        assert_eq!(files, [vec![], vec![], vec![0, 1, 2]]);
        // A crash file that came while a hang is running.
        assert_eq!(committed(&[true, false], &[1, 0]), [[1], [0]]);
        // Hangs keep their order, and what a thread has found after one stays behind it.
        let hangs = committed(&[true, true, false], &[1, 2, 0]);
        assert_eq!(hangs, [vec![], vec![], vec![0, 1, 2]]);
        // A hang waits for files before it.
        let mixed = committed(&[false, true, false], &[1, 2, 0]);
        assert_eq!(mixed, [vec![], vec![], vec![0, 1, 2]]);
    }
}
