//! Reads what a report says of one group from the output directory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::course::Course;
use super::data::{
    CommandReport, ExplanationReport, FaultReport, GroupReport, GroupSummary, InputReport,
    ProvedReport, SourceReport, StackLine, StackReport, TestReport, VariantReport, absolute, shell,
};
use super::lineage::{Piece, kept_ranges, lineage, new_ranges};
use crate::report::groups::severity;
use crate::report::text::cut;
use crate::report::view::shown_result;
use crate::report::{Extent, GroupView, Trace};
use crate::{Entry, EntryId, Group, Kind, LastBuilds, LastChecks, Minimized, Reader, StoreError};
use ddfuzz_minimize::log::Log;
use ddfuzz_model::files::{printable, regular};
use ddfuzz_triage::{Crash, Found, Frame};

/// Maximum number of characters of the sentence that says what failed in a group.
const SENTENCE: usize = 200;
/// Maximum number of a group's stored inputs that the report lists.
const MOST_INPUTS: usize = 20;
/// Maximum number of locations of a crash whose source lines a report shows, and number of lines
/// shown before and after each.
const SOURCES: (usize, u64) = (3, 3);
/// Maximum size, in bytes, of the text of an explanation that a report contains; a larger one is
/// left out.
const EXPLANATION: u64 = 64 << 10;
/// Maximum size of a minimization log that is read for a report, in bytes; a larger one is left
/// out.
const LARGEST_LOG: u64 = 64 << 20;

/// Knowledge of a fuzzed target that reports cannot get from the output directory: the cargo
/// command that shows a crash, and a regression test. ddfuzz's command line implements this trait.
pub trait TargetKnowledge {
    /// Returns a command line of cargo that shows the crash of the entry's reproducer; `None` if
    /// the target is not a harness of a cargo-fuzz project.
    fn cargo(&self, entry: &Entry) -> Option<String>;

    /// Returns the form (`rust-test` or `c-test`) and the source text of a regression test for the
    /// entry's reproducer; `None` if none can be written.
    fn test(&self, entry: &Entry) -> Option<(String, String)>;
}

/// A group that a report is about to show; only its summary has been read so far.
pub(super) struct Candidate {
    pub(super) group: Group,
    /// Id of the stored input that represents the group.
    pub(super) id: EntryId,
    pub(super) summary: GroupSummary,
}

impl Candidate {
    /// Reads the entry (stored input with its crash record) that represents a group, and the
    /// group's summary; `None` if the group has no complete entry. `builds`: the last builds of the
    /// directory's programs.
    pub(super) fn read(
        reader: &Reader,
        group: Group,
        builds: &LastBuilds,
        checks: &LastChecks,
    ) -> Result<Option<Candidate>, StoreError> {
        let Some(entry) = reader.best_entry(&group, builds)? else {
            return Ok(None);
        };
        let major = group.record.major.short();
        let view = GroupView::load(&group, &entry)?.since(&group, &entry, builds, checks)?;
        let summary = GroupSummary {
            kind: name_of(group.kind).to_owned(),
            major,
            class: view.class.to_string(),
            severity: severity(view.severity).to_owned(),
            severity_reason: view.severity_reason.clone(),
            sentence: sentence(&entry.crash, &view.trace),
            place: view.last_place().cloned(),
            size_before: view.size_before,
            size_after: view.size_after(),
            runs_seen: view.runs_seen,
            first_seen: group.record.first_seen.clone(),
            status: view.status_text(),
            utility: view.utility.clone(),
        };
        let id = entry.id;
        Ok(Some(Candidate { group, id, summary }))
    }
}

fn name_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Crash => "crash",
        Kind::Flaky => "flaky",
        Kind::Hang => "hang",
        Kind::Oom => "oom",
    }
}

/// Returns a sentence of at most 200 characters on what failed: the first line of the crash's
/// message or, without a message, the signal and the memory access.
fn sentence(crash: &Crash, trace: &Trace) -> String {
    if let Some(headline) = trace.headline() {
        let is_bare = crash.class.0 == "rustpanic" && !headline.contains("panic");
        let what = if is_bare { "panic: " } else { "" };
        return cut(&format!("{what}{headline}"), SENTENCE);
    }
    let fault = fault(crash);
    let access = match (&fault.access, &fault.address) {
        (Some(access), Some(address)) => format!(" ({access} at {address})"),
        _ => String::new(),
    };
    cut(
        &format!("{}: {}{access}", crash.ended, crash.severity_reason),
        SENTENCE,
    )
}

fn fault(crash: &Crash) -> FaultReport {
    let fault = &crash.details.fault;
    // The names that the crash record has, too.
    let name = |value: Result<Value, serde_json::Error>| match value {
        Ok(Value::String(name)) => Some(name),
        _ => None,
    };
    let access = name(serde_json::to_value(fault.access));
    FaultReport {
        address: fault.address.map(|address| address.to_string()),
        class: name(serde_json::to_value(fault.class)),
        access: access.map(|short| match short.as_str() {
            "r" => "read".to_owned(),
            "w" => "write".to_owned(),
            _ => "execute".to_owned(),
        }),
    }
}

/// A group as a report shows it, and what only the page needs: the bytes of the input as found and
/// of the reproducer, and the drawing of the minimization.
pub(super) struct LoadedGroup {
    pub(super) report: GroupReport,
    pub(super) original: Vec<u8>,
    pub(super) reproducer: Vec<u8>,
    pub(super) course: Option<Course>,
}

/// Reads all data of a group that a report shows. `None` if the input of the entry that represents
/// the group is missing, or its crash record is missing or damaged.
pub(super) fn load(
    reader: &Reader,
    candidate: &Candidate,
    knowledge: &dyn TargetKnowledge,
) -> Result<Option<LoadedGroup>, StoreError> {
    let Candidate { group, id, summary } = candidate;
    let Some(entry) = &reader.entry(id)? else {
        return Ok(None);
    };
    let view = GroupView::load(group, entry)?;
    let entries = group.entries()?;
    let original = entry.original_bytes()?;
    let log = regular::read(&entry.log(), LARGEST_LOG).ok();
    let log = log.and_then(|bytes| Log::parse(&bytes).ok());
    let pieces = pieces(entry, log.as_ref(), &original, &view.reproducer);
    let course = log.as_ref().and_then(Course::of);
    let minimized = view.minimized.as_ref();
    let details = &entry.crash.details;
    let registers = details.registers.iter();
    let report = GroupReport {
        summary: summary.clone(),
        minor: view.minor.short(),
        message: view.trace.message.clone(),
        stacks: stacks(&view.trace),
        sources: sources(&view.trace),
        ended: entry.crash.ended.to_string(),
        fault: fault(&entry.crash),
        registers: registers
            .map(|(name, value)| (name.clone(), value.to_string()))
            .collect(),
        stderr: details.stderr.clone(),
        claim: view.claim(),
        proved: minimized.map(proved),
        tests: view.tests_executed(),
        variants: variants(&entries, group.is_flaky(entry)?),
        inputs: inputs(&entries),
        inputs_of: entries.len() as u64,
        original: absolute(&entry.original()),
        file: absolute(&entry.reproducer()),
        log: view.log.as_deref().map(absolute),
        script: view.script.as_deref().map(absolute),
        kept: pieces.as_deref().map(kept_ranges),
        replaced: pieces.as_deref().map(new_ranges),
        course: course.as_ref().map(|course| course.report.clone()),
        commands: commands(reader, entry, &view, knowledge),
        test: knowledge
            .test(entry)
            .map(|(form, text)| TestReport { form, text }),
        debug: minimized.and_then(|minimized| minimized.debug.clone()),
        explanation: explanation(&entries),
    };
    let reproducer = view.reproducer;
    Ok(Some(LoadedGroup {
        report,
        original,
        reproducer,
        course,
    }))
}

/// Returns the pieces (parts of the input as found, and new bytes) that the reproducer consists of;
/// `None` before the minimization has ended, without a log, or if the log does not lead to the
/// reproducer.
fn pieces(
    entry: &Entry,
    log: Option<&Log>,
    original: &[u8],
    reproducer: &[u8],
) -> Option<Vec<Piece>> {
    // Until the minimization has ended, the file may be older than the log.
    entry.minimized.as_ref()?;
    lineage(log?, original, reproducer)
}

fn proved(minimized: &Minimized) -> ProvedReport {
    ProvedReport {
        claim: minimized.claim.clone(),
        done: minimized.proved.done,
        of: minimized.proved.of,
    }
}

fn stacks(trace: &Trace) -> Vec<StackReport> {
    let stacks = trace.stacks.iter().map(|stack| StackReport {
        title: stack.title.to_owned(),
        lines: (stack.lines(Extent::WHOLE.stack).into_iter())
            .map(|line| StackLine {
                text: line.text,
                own: line.own,
            })
            .collect(),
    });
    stacks.collect()
}

fn sources(trace: &Trace) -> Vec<SourceReport> {
    let found = trace.excerpts(SOURCES.1, SOURCES.0).into_iter();
    let sources = found.map(|(excerpt, frame)| SourceReport {
        file: excerpt.file.to_string_lossy().into_owned(),
        line: excerpt.line,
        first: excerpt.first,
        lines: excerpt.text,
        is_newer: excerpt.is_newer,
        frame: frame.map(|frame| frame as u64),
    });
    sources.collect()
}

fn size_of(path: &Path) -> u64 {
    path.metadata().map_or(0, |facts| facts.len())
}

fn variants(entries: &[Entry], group_flaky: bool) -> Vec<VariantReport> {
    let mut all: BTreeMap<&str, VariantReport> = BTreeMap::new();
    for entry in entries {
        let size = size_of(&entry.reproducer());
        let variant = all
            .entry(entry.id.minor())
            .or_insert_with(|| VariantReport {
                minor: entry.id.minor().to_owned(),
                size: u64::MAX,
                ..VariantReport::default()
            });
        variant.inputs += 1;
        if size < variant.size {
            let mut own = entry.crash.frames.iter().filter(|frame| frame.own);
            variant.size = size;
            variant.caller = own.nth(1).map(Frame::place);
            variant.claim = shown_result(entry, group_flaky).map(|minimized| minimized.claim);
        }
    }
    let mut all: Vec<VariantReport> = all.into_values().collect();
    all.sort_by(|a, b| b.inputs.cmp(&a.inputs).then_with(|| a.minor.cmp(&b.minor)));
    all
}

fn inputs(entries: &[Entry]) -> Vec<InputReport> {
    let inputs = entries.iter().map(|entry| InputReport {
        hash: entry.id.hash().to_owned(),
        minor: entry.id.minor().to_owned(),
        size_before: size_of(&entry.original()),
        size_after: size_of(&entry.reproducer()),
        found: entry.crash.found.as_ref().map(found),
        file: absolute(&entry.reproducer()),
    });
    let mut inputs: Vec<InputReport> = inputs.collect();
    inputs.sort_by(|a, b| (a.size_after, &a.hash).cmp(&(b.size_after, &b.hash)));
    inputs.truncate(MOST_INPUTS);
    inputs
}

fn found(by: &Found) -> String {
    match by {
        Found::Run { run, .. } => format!("by run {run}"),
        Found::Slip { of, .. } => format!("while {of} was minimized"),
        Found::File { path, .. } => format!("in {}", path.display()),
    }
}

/// Returns the commands, to be typed in the output directory, that show the crash of an entry:
/// `reproduce.sh` in a shell and in gdb, cargo, and `ddfuzz show`.
fn commands(
    reader: &Reader,
    entry: &Entry,
    view: &GroupView,
    knowledge: &dyn TargetKnowledge,
) -> Vec<CommandReport> {
    let below = |path: PathBuf| match path.strip_prefix(reader.root()) {
        Ok(below) => below.to_owned(),
        Err(_) => path,
    };
    let script = below(entry.script());
    let script = shell(std::iter::once(script.as_os_str().as_encoded_bytes()));
    let in_shell = view.script.is_some().then(|| format!("sh {script}"));
    let in_gdb = (view.gdb().is_some()).then(|| format!("sh {script} gdb"));
    let short = &view.major.short()[..6];
    let all = [
        ("shell", in_shell),
        ("gdb", in_gdb),
        ("cargo", knowledge.cargo(entry)),
        ("ddfuzz", Some(format!("ddfuzz show . {short}"))),
    ];
    let commands = all.into_iter().filter_map(|(name, command)| {
        Some(CommandReport {
            name: name.to_owned(),
            command: command?,
        })
    });
    commands.collect()
}

/// Reads the first explanation of at most 64 KiB that `ddfuzz explain` has written beside an input
/// of the group; `None` if there is none.
fn explanation(entries: &[Entry]) -> Option<ExplanationReport> {
    entries.iter().find_map(|entry| {
        let bytes = regular::read(&entry.folder.join("explanation.txt"), EXPLANATION).ok()?;
        let page = entry.folder.join("explanation.html");
        let lines = String::from_utf8_lossy(&bytes).into_owned();
        let lines: Vec<String> = lines.lines().map(printable).collect();
        Some(ExplanationReport {
            text: lines.join("\n"),
            page: page.is_file().then(|| absolute(&page)),
        })
    })
}
