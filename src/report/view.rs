//! What reports show of one group.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::Trace;
use super::text::shell_word;
use crate::minimize::Rate;
use crate::store::{Entry, EntryId, Group, Kind, Minimized, Reader, Status, StoreError};
use crate::triage::{Class, Crash, Frame, Key, PanicRecord, Severity};

/// What reports show of one group, through one of its entries (its representative).
#[derive(Clone, Debug, PartialEq)]
pub struct GroupView {
    /// The kind of finding.
    pub kind: Kind,
    /// The major key.
    pub major: Key,
    /// The minor key of the entry.
    pub minor: Key,
    /// What kind of death.
    pub class: Class,
    /// The group's estimate.
    pub severity: Severity,
    /// Why the entry has its estimate.
    pub severity_reason: String,
    /// Where in the user's code ([`place`]).
    pub place: Option<String>,
    /// What the entry's crash said, and its stacks.
    pub trace: Trace,
    /// How often it fails, where it does not each time; all of all where only that is known.
    pub flaky: Option<Rate>,
    /// Runs of all campaigns that ended so.
    pub runs_seen: u64,
    /// Size of the input as found, in bytes.
    pub size_before: u64,
    /// The best input known.
    pub reproducer: Vec<u8>,
    /// How the minimization ended; `None` where it has not.
    pub minimized: Option<Minimized>,
    /// The file of the best input known, absolute.
    pub file: PathBuf,
    /// The minimization log, absolute; `None` where there is none.
    pub log: Option<PathBuf>,
    /// The script that shows the crash, absolute; `None` where there is none.
    pub script: Option<PathBuf>,
    /// Whether that script shows it in gdb, too.
    pub has_gdb: bool,
    /// What became of the group when the program was last built anew, where that is on record.
    pub status: Option<Status>,
    /// Which utility crashed, in a study of many.
    pub utility: Option<String>,
}

impl GroupView {
    /// What there is to show of an entry that stands in a directory; `None` where it is gone.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn of(reader: &Reader, id: &EntryId) -> Result<Option<GroupView>, StoreError> {
        let (group, entry) = (reader.group(id.kind(), id.major())?, reader.entry(id)?);
        let both = group.zip(entry);
        both.map(|(group, entry)| GroupView::load(&group, &entry))
            .transpose()
    }

    /// Reads what there is to show of `group` through `entry`.
    ///
    /// # Errors
    /// When the entry's input cannot be read.
    pub fn load(group: &Group, entry: &Entry) -> Result<GroupView, StoreError> {
        let size_before = match &entry.minimized {
            Some(minimized) => minimized.size_before,
            None => entry.original_bytes()?.len() as u64,
        };
        let existing = |path: PathBuf| path.is_file().then(|| absolute(&path));
        Ok(GroupView {
            kind: group.kind,
            major: group.record.major,
            minor: entry.crash.keys.minor,
            class: group.record.class.clone(),
            severity: group.record.severity,
            severity_reason: entry.crash.severity_reason.clone(),
            place: place(&entry.crash),
            trace: Trace::of(&entry.crash, Some(&entry.folder)),
            flaky: flaky(group.kind, entry),
            runs_seen: group.runs_seen(),
            size_before,
            reproducer: entry.reproducer_bytes()?,
            minimized: entry.minimized.clone(),
            file: absolute(&entry.reproducer()),
            log: existing(entry.log()),
            script: existing(entry.script()),
            has_gdb: entry.script_has_gdb(),
            status: None,
            utility: entry.crash.of.as_ref().map(|of| of.utility.clone()),
        })
    }

    /// Size of the best input known, in bytes.
    pub fn size_after(&self) -> u64 {
        self.reproducer.len() as u64
    }

    /// Tests that the minimization executed, where it has ended and says so.
    pub fn tests_executed(&self) -> Option<u64> {
        let tests = &self.minimized.as_ref()?.tests;
        tests.get("executed").and_then(Value::as_u64)
    }

    /// The command that shows the crash in gdb, where the script can.
    pub fn gdb(&self) -> Option<String> {
        let script = self.script.as_deref().filter(|_| self.has_gdb)?;
        Some(format!("{} gdb", shell_word(script)))
    }

    /// The claim by name, and what is to be known of the group beside it: that it does not come
    /// each time, what became of it. `-` where nothing is.
    pub fn standing(&self) -> String {
        let claim = self.minimized.as_ref().map(|one| one.claim.clone());
        let flaky = self.flaky.map(|rate| match rate.hits < rate.tries {
            true => format!("flaky {}/{}", rate.hits, rate.tries),
            false => "flaky".to_owned(),
        });
        let status = self.status.filter(|status| *status != Status::Same);
        let status = status.map(|status| status.name().to_owned());
        let known: Vec<String> = claim.into_iter().chain(flaky).chain(status).collect();
        match known.is_empty() {
            true => "-".to_owned(),
            false => known.join(", "),
        }
    }

    /// The claim as a sentence with what it rests on.
    pub fn claim(&self) -> String {
        let claim = self.claim_alone();
        match self.flaky {
            Some(rate) if rate.hits < rate.tries => format!("{claim}; it fails in {rate}"),
            Some(_) => format!("{claim}; it does not fail in every run"),
            None => claim,
        }
    }

    fn claim_alone(&self) -> String {
        match &self.minimized {
            None => "not minimized yet".to_owned(),
            Some(minimized) if minimized.is_proved() => {
                let tests = super::size::counted(minimized.proved.of, "test");
                format!("{}, proved by {tests}", minimized.claim)
            }
            Some(minimized) => {
                let claim = minimized.claim.replace('-', " ");
                let proved = minimized.proved;
                format!("{claim}, {} of {} proved", proved.done, proved.of)
            }
        }
    }
}

/// How often the crash of an entry comes, where that is not each time.
fn flaky(kind: Kind, entry: &Entry) -> Option<Rate> {
    let minimized = entry.minimized.as_ref().and_then(|one| one.flaky);
    let crash = Rate {
        hits: entry.crash.hits.into(),
        tries: entry.crash.tries.into(),
    };
    minimized.or((kind == Kind::Flaky || crash.hits < crash.tries).then_some(crash))
}

/// Where in the user's code a crash happened: the innermost own frame, by name and line where
/// they are known, else by module and offset; of a panic the place that names it, because the
/// innermost frames are those of whoever handles it, or no stack is left.
pub fn place(crash: &Crash) -> Option<String> {
    let Some(panic) = &crash.details.panic else {
        return crash.innermost_own().map(Frame::place);
    };
    Some(match panicking_function(crash, panic) {
        Some(function) => format!("{function} at {}", panic.place),
        None => panic.place.clone(),
    })
}

/// The function of the user's code that panicked: the innermost one behind Rust's handler, above
/// which stands what a hook of the program calls.
fn panicking_function<'a>(crash: &'a Crash, panic: &PanicRecord) -> Option<&'a str> {
    let is_handler = |frame: &Frame| {
        let name = frame.name.as_deref().unwrap_or_default();
        name.ends_with("rust_begin_unwind")
    };
    let handler = crash.frames.iter().rposition(is_handler)?;
    let frame = crash.frames[handler..].iter().find(|frame| frame.own)?;
    // What is inlined there may be the standard library's, unless its line is the panic's.
    let location = panic.location.as_deref().unwrap_or_default();
    let ours = |line: &str| location.starts_with(&format!("{line}:"));
    let innermost = frame.inlined.first().filter(|_| {
        let line = frame.line.as_deref();
        line.is_some_and(ours)
    });
    innermost.or(frame.name.as_ref()).map(String::as_str)
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
