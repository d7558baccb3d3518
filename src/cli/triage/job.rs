//! Runs one triage (`ddfuzz triage`): from input files to groups, and to the output directory.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

mod settle;

use super::outcomes::{FileState, Outcome, TriageOutcomes};
use super::workers::{WorkerResult, Workers, say_unread};
use crate::campaign::{
    Examined, fails_alone, fails_on_anything, identity, kind_of, record_first_build,
};
use crate::cli::run::campaign_of;
use crate::cli::target::install_bundled;
use crate::cli::{DISTURBED, Failure, Output, signals, ui};
use crate::exec::facts::TargetFacts;
use crate::exec::{Ended, Target, TargetRecord, Way};
use crate::files::regular;
use crate::minimize::AGREEING_RUNS;
use crate::minimize::log::ContentHash;
use crate::report::{Trace, TriageGroup, TriageInput, TriageResult, size};
use crate::store::foreign::{Input, Inputs, ReportedEnd};
use crate::store::{CrashLine, Entry, EntryId, Kind, Store, StoreError, TriageJournal, Triaged};
use crate::triage::{Crash, Found, Key, Quick, Triager};

/// Maximum number of inputs that are run again one by one, to see whether runs of several workers
/// have disturbed each other.
const RUN_ALONE: usize = 8;
/// Number of times that a flaky input is run again while nothing else runs. If it crashes each
/// time, runs of other workers have disturbed its earlier runs.
const RUNS_ALONE: u32 = 20;

/// One call of `ddfuzz triage`: the input files to run, the target, and the options.
pub struct TriageJob<'a> {
    pub target: Target,
    pub way: Way,
    pub jobs: usize,
    pub max_len: u64,
    /// Whether to check all inputs that do not crash for memory leaks; false checks only files
    /// whose names announce a leak.
    pub leaks: bool,
    pub out: Option<PathBuf>,
    pub resume: bool,
    pub found: &'a Inputs,
    pub stop: &'a AtomicBool,
}

/// The state of a running triage: the outcomes so far, the output directory, and the state of each
/// input file.
struct TriageState {
    outcomes: TriageOutcomes,
    directory: Option<TriageDirectory>,
    states: Vec<FileState>,
    done: u64,
    /// Whether the user stopped the triage before the smallest input of each crash variant (pair of
    /// major and minor key, the coarse and fine hash of a crash) was examined.
    is_unsettled: bool,
}

impl TriageJob<'_> {
    /// Runs all input files by worker threads, stores their crashes in the output directory, if
    /// there is one, and returns the crash groups and the outcome of each file.
    pub fn run(&self, output: &Output) -> Result<TriageResult, Failure> {
        let mut progress = self.begin()?;
        let files = &self.found.inputs;
        let known = progress.outcomes.contents();
        let workers = Workers {
            target: &self.target,
            way: self.way,
            files,
            max_len: self.max_len,
            leaks: self.leaks,
            stop: self.stop,
            taken: Mutex::new(known.collect()),
            variants: Mutex::new(progress.outcomes.steady_variants().collect()),
        };
        let line = ui::CountBar::new(output, "file", files.len() as u64);
        workers.run(self.jobs, |answer| {
            if let Some((at, answer)) = answer {
                progress.take(at, answer, files)?;
            }
            let groups = progress.outcomes.group_count();
            line.show(progress.done, &size::counted(groups, "group"));
            Ok(())
        })?;
        drop(line);
        self.settle(&mut progress)?;
        // What follows the runs of all files is left out of a triage that the user stops.
        let warned = self.warn_of_disturbance(&progress, output);
        signals::unless_interrupted(warned, ())?;
        let mut result = self.result(&progress, output);
        let noted = self.note_any_input_group(&mut result);
        signals::unless_interrupted(noted, ())?;
        if let Some(directory) = progress.directory.take() {
            directory.close(&progress.outcomes)?;
        }
        Ok(result)
    }

    fn begin(&self) -> Result<TriageState, Failure> {
        let mut outcomes = TriageOutcomes::new(identity(&self.target)?);
        let directory = match &self.out {
            Some(out) => {
                let (target, way) = (&self.target, self.way);
                Some(TriageDirectory::open(
                    out,
                    target,
                    way,
                    self.resume,
                    &mut outcomes,
                )?)
            }
            None => None,
        };
        Ok(TriageState {
            outcomes,
            directory,
            states: vec![FileState::Pending; self.found.inputs.len()],
            done: 0,
            is_unsettled: false,
        })
    }

    /// Runs the empty input, and if it crashes, some very different inputs. If all crash in the
    /// same way, the program shows this crash on any input, and its group in `result` is marked.
    fn note_any_input_group(&self, result: &mut TriageResult) -> Result<(), Failure> {
        let crashes = |group: &&mut TriageGroup| group.kind == Kind::Crash;
        let mut groups = result.groups.iter_mut().filter(crashes).peekable();
        if groups.peek().is_none() || self.stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut triager = Triager::of_target(&self.target, self.way)?;
        let Quick::Crash { major, .. } = triager.key(b"")? else {
            return Ok(());
        };
        if let Some(group) = groups.find(|group| group.major == major.short()) {
            group.any_input = fails_on_anything(&mut triager, major)?;
        }
        Ok(())
    }

    /// Prints a warning if runs of several workers have disturbed each other. To find out, runs
    /// some inputs again, several times each and one run after the other: if one of them crashes in
    /// all of its runs, it was disturbed before. The inputs are flaky, or did not crash although
    /// the names of their files say so; if no input has crashed, one more is tried.
    fn warn_of_disturbance(&self, progress: &TriageState, output: &Output) -> Result<(), Failure> {
        if self.jobs < 2 || self.found.inputs.len() < 2 {
            return Ok(());
        }
        // One input stands for all where none crashed and no name says that it should.
        let mut is_open = progress.outcomes.group_count() == 0;
        let suspects = self.found.inputs.iter().zip(&progress.states);
        let suspects = suspects.filter_map(|(file, state)| {
            let (content, outcome) = progress.outcomes.outcome(state)?;
            let is_named = file.named.is_some_and(|named| {
                matches!(
                    named.reported_end,
                    ReportedEnd::Crash | ReportedEnd::Signal(_)
                )
            });
            let (major, runs) = match outcome.variant {
                None if is_named || std::mem::take(&mut is_open) => (None, AGREEING_RUNS),
                Some(variant) if outcome.hits < outcome.tries => (
                    Some(progress.outcomes.variants[variant].line.major),
                    RUNS_ALONE,
                ),
                _ => return None,
            };
            Some((file, content, major, runs))
        });
        let mut triager = None;
        for (file, content, major, runs) in suspects.take(RUN_ALONE) {
            let bytes = regular::read(&file.path, self.max_len).ok();
            let Some(bytes) = bytes.filter(|bytes| ContentHash::of(bytes) == content) else {
                continue;
            };
            let triager = match &mut triager {
                Some(triager) => triager,
                none => none.insert(Triager::of_target(&self.target, self.way)?),
            };
            if fails_alone(triager, &bytes, major, runs, self.stop)? {
                let path = crate::report::text::printable(&file.path.to_string_lossy());
                output.say(&format!(
                    "warning: run alone, {path} crashes each time: {DISTURBED}; triage again with \
                     --jobs 1"
                ));
                break;
            }
        }
        Ok(())
    }

    fn result(&self, progress: &TriageState, output: &Output) -> TriageResult {
        let mut result = TriageResult {
            // If a signal came after all inputs were examined, there is nothing to continue.
            interrupted: progress.is_unsettled
                || (progress.states.iter()).any(|state| matches!(state, FileState::Pending)),
            ..TriageResult::default()
        };
        let mut contents = HashSet::new();
        let smallest = progress
            .outcomes
            .smallest_files(&progress.states)
            .into_values();
        let content = |(_, at): (u64, usize)| progress.outcomes.outcome(&progress.states[at]);
        let smallest: HashSet<_> = smallest
            .filter_map(content)
            .map(|(input, _)| input)
            .collect();
        for (file, state) in self.found.inputs.iter().zip(&progress.states) {
            if let FileState::Unreadable(why) = state {
                say_unread(&file.path, why, output);
                result.inputs.push(unread(file.path.clone(), why.clone()));
            } else if let Some((content, outcome)) = progress.outcomes.outcome(state) {
                contents.insert(content);
                compare(file, outcome, &progress.outcomes, output);
                result.flaky += u64::from((1..outcome.tries).contains(&outcome.hits));
                result.healthy += u64::from(outcome.variant.is_none());
                let outcome = match smallest.contains(&content) {
                    true => outcome,
                    false => outcome.of_first_run(),
                };
                result.inputs.push(row(file, outcome, &progress.outcomes));
            }
        }
        for (path, why) in &self.found.unread {
            say_unread(path, why, output);
            result.inputs.push(unread(path.clone(), why.clone()));
        }
        let unread = result.inputs.iter().filter(|input| input.error.is_some());
        result.unread = unread.count() as u64;
        result.contents = contents.len() as u64;
        let facts = TargetFacts::of(&self.target);
        result.instrumentation = facts.ok().and_then(|facts| facts.instrumentation());
        result.groups = progress
            .outcomes
            .groups(&self.found.inputs, &progress.states);
        result
    }
}

impl TriageState {
    fn take(&mut self, at: usize, answer: WorkerResult, files: &[Input]) -> Result<(), Failure> {
        self.done += 1;
        self.states[at] = match answer {
            WorkerResult::Unreadable(why) => FileState::Unreadable(why),
            WorkerResult::Duplicate(input) => FileState::Content(input),
            WorkerResult::KnownVariant {
                input,
                size,
                variant,
                ended,
            } => {
                let line = self.outcomes.known_variant((input, size), variant, ended);
                if let Some(directory) = &mut self.directory {
                    directory.note(line)?;
                }
                FileState::Content(input)
            }
            WorkerResult::New {
                input,
                bytes,
                size,
                leaks,
                examined,
            } => {
                match examined.crash {
                    Some(_) => self.examined((at, input), &bytes, &examined, files, false)?,
                    // A run of the same content that looked for leaks was faster.
                    None if self.outcomes.has_crashed(input) => {}
                    None => {
                        let (line, _) = self.outcomes.add((input, size), &examined, leaks);
                        if let Some(directory) = &mut self.directory {
                            directory.note(line)?;
                        }
                    }
                }
                FileState::Content(input)
            }
        };
        Ok(())
    }

    /// Adds an input that was examined (run several times) to the outcomes of the triage and, with
    /// an output directory, to the triage journal. `at` is the index of its file in `files`,
    /// `input` its hash. Its crash is stored in the output directory if it is the first one with
    /// its major and minor key (coarse and fine hash of a crash), if it is flaky, or if `anyway` is
    /// true. If one run of the input crashed with other keys, that crash is stored, too, as flaky,
    /// unless its major key is that of a steady crash or of a group in the directory.
    fn examined(
        &mut self,
        (at, input): (usize, ContentHash),
        bytes: &[u8],
        examined: &Examined,
        files: &[Input],
        anyway: bool,
    ) -> Result<(), Failure> {
        let size = bytes.len() as u64;
        let once = examined.other.as_deref();
        let once = once.filter(|once| !self.outcomes.has_steady(once));
        let (line, first) = self.outcomes.add((input, size), examined, false);
        let (Some(directory), Some(crash)) = (&mut self.directory, &examined.crash) else {
            return Ok(());
        };
        if let Some(once) = once.filter(|once| !directory.has_group(once.keys.major)) {
            directory.file(Kind::Flaky, once, &files[at].path, bytes)?;
        }
        let kind = kind_of(crash);
        if first || anyway || kind == Kind::Flaky {
            directory.file(kind, crash, &files[at].path, bytes)?;
        }
        Ok(directory.note(line)?)
    }
}

fn row(file: &Input, outcome: Outcome, outcomes: &TriageOutcomes) -> TriageInput {
    let line = outcome
        .variant
        .map(|variant| &outcomes.variants[variant].line);
    TriageInput {
        file: file.path.clone(),
        ended: Some(outcome.ended.to_string()),
        class: line.map(|line| line.class.to_string()),
        major: line.map(|line| line.major.short()),
        minor: line.map(|line| line.minor.short()),
        way: line.map(|line| line.way),
        confidence: line.map(|line| line.confidence),
        hits: outcome.hits,
        tries: outcome.tries,
        error: None,
    }
}

fn unread(file: PathBuf, why: String) -> TriageInput {
    TriageInput {
        file,
        ended: None,
        class: None,
        major: None,
        minor: None,
        way: None,
        confidence: None,
        hits: 0,
        tries: 0,
        error: Some(why),
    }
}

/// Prints a message with `-v` if the run of a file did not end as the file's name announces, such
/// as `timeout-…` of libFuzzer.
fn compare(file: &Input, outcome: Outcome, outcomes: &TriageOutcomes, output: &Output) {
    let Some(named) = file.named else {
        return;
    };
    let crashed = outcome.variant.is_some();
    let kind = outcome
        .variant
        .map(|variant| outcomes.variants[variant].line.kind);
    let over = matches!(kind, Some(Kind::Hang | Kind::Oom));
    let agrees = match (named.reported_end, outcome.ended) {
        (ReportedEnd::Signal(named), Ended::Signal(seen)) => named == seen,
        (ReportedEnd::Signal(_), _) => false,
        (ReportedEnd::Crash | ReportedEnd::Leak, _) if over => false,
        (ReportedEnd::Crash | ReportedEnd::Leak, _) => crashed,
        (ReportedEnd::Timeout, ended) => ended == Ended::Timeout,
        (ReportedEnd::OutOfMemory, _) => kind == Some(Kind::Oom),
        (ReportedEnd::Slow, _) => true,
    };
    if !agrees {
        let path = crate::report::text::printable(&file.path.to_string_lossy());
        output.detail(&format!(
            "{path}: named {}, ended {}",
            named.describe(),
            outcome.ended
        ));
    }
}

/// Returns true if a line of the triage journal belongs to a campaign in `store` on `target`, of
/// whatever build; else false.
fn is_of(store: &Store, target: &Target, line: &Triaged) -> bool {
    let now = TargetRecord::new(target, Way::Command);
    let mut campaigns = store.campaigns().all();
    campaigns.any(|one| one.id == line.campaign && one.is_of(&now))
}

/// The output directory of a triage: stores crashes, and the outcome of each input in the triage
/// journal, while inputs are run.
pub struct TriageDirectory {
    store: Store,
    journal: TriageJournal,
    campaign: String,
    /// The target as reproducer scripts run it without ddfuzz: by its `main`, with the input on
    /// stdin or in a file.
    target: Target,
}

impl TriageDirectory {
    /// Opens or creates the output directory of a triage. With `resume`, reads the results of
    /// earlier calls from the triage journal there, and adds them to `outcomes`.
    pub fn open(
        out: &Path,
        target: &Target,
        way: Way,
        resume: bool,
        outcomes: &mut TriageOutcomes,
    ) -> Result<TriageDirectory, Failure> {
        let fresh = campaign_of(target, way, None);
        let mut store = Store::create_or_resume(out, fresh.clone())?;
        let (journal, mut lines) = store.triage_journal()?;
        // Counts of runs are continued, even if another campaign has begun in the directory since.
        let campaign = match lines.iter().rev().find(|line| is_of(&store, target, line)) {
            Some(line) => line.campaign.clone(),
            None => {
                let id = fresh.id.clone();
                if store.resumed() {
                    store.add_campaign(fresh)?;
                }
                id
            }
        };
        for line in lines.iter().filter(|line| line.campaign == campaign) {
            outcomes.note_earlier(line);
        }
        lines.retain(|line| resume && outcomes.is_of_target(line));
        record_first_build(&mut store, target)?;
        lines.into_iter().for_each(|line| outcomes.recall(line));
        install_bundled(&mut store, target)?;
        // What the script runs without ddfuzz is its `main`.
        let target = target.with_main_arguments();
        Ok(TriageDirectory {
            store,
            journal,
            campaign,
            target,
        })
    }

    /// Stores `crash` with its `input`, read from the file `path`, in a group of the given `kind`;
    /// then writes the script that reproduces it.
    pub fn file(
        &mut self,
        kind: Kind,
        crash: &Crash,
        path: &Path,
        input: &[u8],
    ) -> Result<(), StoreError> {
        let found = Some(Found::File {
            path: path.to_owned(),
            campaign: Some(self.campaign.clone()),
        });
        let crash = Crash {
            found,
            ..crash.clone()
        };
        let filed = self.store.file(kind, &crash, input)?;
        self.store.write_reproduce(&filed.id, &self.target)?;
        Ok(())
    }

    /// Returns true if the output directory has a group of crashes or of flaky crashes with the
    /// major key `major` (hash that identifies the bug).
    pub fn has_group(&self, major: Key) -> bool {
        let has = |kind| self.store.reader().group(kind, &major.short());
        Kind::ALL
            .into_iter()
            .any(|kind| has(kind).is_ok_and(|group| group.is_some()))
    }

    /// Returns true if the input with the hash `input` is stored in the output directory as a crash
    /// with the keys of `line`.
    pub fn has(&self, line: &CrashLine, input: ContentHash) -> bool {
        self.entry(line, input).is_some()
    }

    /// Returns the stack trace of the crash that is stored in the output directory with the keys of
    /// `line` and the input with the hash `input`; `None` if it is not stored.
    pub fn trace(&self, line: &CrashLine, input: ContentHash) -> Option<Trace> {
        let entry = self.entry(line, input)?;
        Some(Trace::of(&entry.crash, Some(&entry.folder)))
    }

    fn entry(&self, line: &CrashLine, input: ContentHash) -> Option<Entry> {
        let (major, minor) = (line.major.short(), line.minor.short());
        let hash = input.short().to_string();
        let id = EntryId::from_names(line.kind, &major, &minor, &hash)?;
        self.store.reader().entry(&id).ok().flatten()
    }

    /// Appends the outcome of one input to the triage journal, from which `--resume` continues.
    pub fn note(&mut self, line: Triaged) -> Result<(), StoreError> {
        let campaign = self.campaign.clone();
        self.journal.add(&Triaged { campaign, ..line })?;
        Ok(())
    }

    /// Writes into each crash group of the output directory how many inputs showed its crash, and
    /// syncs the triage journal to the disk. Groups that were removed meanwhile are skipped.
    pub fn close(mut self, outcomes: &TriageOutcomes) -> Result<(), StoreError> {
        self.journal.sync()?;
        for ((kind, major), count) in outcomes.seen() {
            match self.store.set_seen(kind, major, &self.campaign, count) {
                // The group was removed meanwhile, or its input cannot be read any more.
                Err(StoreError::NoSuch { .. }) => {}
                answer => answer?,
            }
        }
        Ok(())
    }
}
