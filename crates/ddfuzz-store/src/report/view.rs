//! The data that all reports show of one group.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;

use super::json::path_text;
use super::text::{printable, shell_word};
use super::{Trace, TriageGroup, size, slips};
use crate::{
    Entry, EntryId, Group, Kind, LastBuilds, LastCheck, LastChecks, Minimized, Reader, Status,
    StoreError,
};
use ddfuzz_minimize::Rate;
use ddfuzz_triage::{Class, Crash, Frame, Key, Severity};

/// Smallest failing input of a further minor key (call path to the bug) of a group.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VariantView {
    /// Minor key, which identifies the call path to the bug; its first 12 hex digits.
    pub minor: String,
    /// Size of the input before minimization, in bytes.
    pub size_before: u64,
    /// Size of the reproducer (smallest known failing input) of this call path to the bug, in
    /// bytes.
    pub size_after: u64,
    /// Proved minimality of the reproducer (smallest known failing input), such as `1-minimal`.
    pub claim: String,
    /// The user function that called the crashing function on this call path to the bug; null if
    /// unknown.
    pub caller: Option<String>,
    /// Absolute path of the reproducer (smallest known failing input) of this call path to the bug.
    #[serde(serialize_with = "path_text")]
    pub file: PathBuf,
}

impl VariantView {
    /// Makes the report data of a stored input with a further minor key of its group; `None` if the
    /// input's minimization has not ended.
    fn of(entry: &Entry, group_flaky: bool) -> Option<VariantView> {
        let minimized = shown_result(entry, group_flaky)?;
        let mut own = entry.crash.frames.iter().filter(|frame| frame.own);
        Some(VariantView {
            minor: entry.id.minor().to_owned(),
            size_before: minimized.size_before,
            size_after: minimized.size_after,
            claim: minimized.claim,
            caller: own.nth(1).map(Frame::place),
            file: absolute(&entry.reproducer()),
        })
    }
}

/// Data that reports show of one group of crashes, taken from the stored input that represents it.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupView {
    /// Kind of failure that the group's inputs show: crash, flaky crash, hang or out of memory.
    pub kind: Kind,
    /// Major key of the group, which identifies the bug.
    pub major: Key,
    /// Minor key of the representative input, which identifies the call path to the bug.
    pub minor: Key,
    /// Class of the group's crashes, such as `segv`.
    pub class: Class,
    /// Estimated severity of the group's bug: low, medium or high.
    pub severity: Severity,
    /// Reason for the estimated severity of the representative input's crash.
    pub severity_reason: String,
    /// Location of the crash in the user's code ([`place`]); `None` if unknown.
    pub place: Option<String>,
    /// Location of the crash as `file:line` or `file:line:column`, from the debug information;
    /// `None` if unknown.
    pub source: Option<String>,
    /// Message and stacks of the representative input's crash.
    pub trace: Trace,
    /// How often the reproducer fails, if not every time; `None` if it always fails. A rate of 100
    /// % means that its failures are known to be irregular, but not how often they occur.
    pub flaky: Option<Rate>,
    /// Number of runs, over all campaigns, that ended in the group; if there are none, the number
    /// of runs that ended in it while inputs of other groups were minimized.
    pub runs_seen: u64,
    /// Size of the representative input before minimization, in bytes.
    pub size_before: u64,
    /// Content of the smallest known failing input of the group.
    pub reproducer: Vec<u8>,
    /// Result of the minimization of the representative input; `None` until it has ended.
    pub minimized: Option<Minimized>,
    /// Absolute path of the smallest known failing input of the group.
    pub file: PathBuf,
    /// Absolute path of the log of the minimization of the group's input; `None` if there is none.
    pub log: Option<PathBuf>,
    /// Absolute path of the group's `reproduce.sh`, which shows the crash without ddfuzz; `None` if
    /// there is none.
    pub script: Option<PathBuf>,
    /// Whether the group's `reproduce.sh` can also show the crash in gdb.
    pub has_gdb: bool,
    /// First line of the explanation of the failure and, on a second line, the place at which to
    /// look first, or why nothing could be explained ([`Entry::explanation`]); `None` if `ddfuzz
    /// explain` has written no explanation.
    pub explanation: Option<String>,
    /// Status of the group after the last rebuild of the program, or whether it is to be checked
    /// ([`Status::Unchecked`]); `None` if none is recorded.
    pub status: Option<Status>,
    /// Location at which the group fails with the last build of the program; `None` if it is the
    /// same as `place`, or if the group was not found failing with that build.
    pub place_now: Option<String>,
    /// Major key of another group, found with an earlier build, that is the same bug as this group;
    /// `None` if there is none, or if no check with the last build has shown this.
    pub known_as: Option<String>,
    /// Result of the last `ddfuzz check` of the group; `None` if there was none.
    pub checked: Option<LastCheck>,
    /// Name of the utility that crashed, in a study of many utilities; else `None`.
    pub utility: Option<String>,
    /// Reproducers of the group's other minor keys (call paths to the bug), sorted by size.
    pub variants: Vec<VariantView>,
}

impl GroupView {
    /// Reads the report data of a stored input and its group, even if the input has moved to
    /// `flaky/` since it got this id; `None` if it no longer exists.
    pub fn of(reader: &Reader, id: &EntryId) -> Result<Option<GroupView>, StoreError> {
        let id = match reader.entry(id)? {
            Some(_) => id.clone(),
            // The crash may have moved to `flaky/`.
            None => id.among(Kind::Flaky),
        };
        let (group, entry) = (reader.group(id.kind(), id.major())?, reader.entry(&id)?);
        let both = group.zip(entry);
        both.map(|(group, entry)| GroupView::load(&group, &entry))
            .transpose()
    }

    /// Reads the report data of `group`, represented by `entry`, one of its stored inputs.
    pub fn load(group: &Group, entry: &Entry) -> Result<GroupView, StoreError> {
        let size_before = match &entry.minimized {
            Some(minimized) => minimized.size_before,
            None => entry.original_bytes()?.len() as u64,
        };
        let entries = group.entries()?;
        let group_flaky = group.is_flaky(entry)?;
        let existing = |path: PathBuf| path.is_file().then(|| absolute(&path));
        Ok(GroupView {
            kind: group.kind,
            major: group.record.major,
            minor: entry.crash.keys.minor,
            class: group.record.class.clone(),
            severity: group.record.severity,
            severity_reason: entry.crash.severity_reason.clone(),
            place: place(&entry.crash),
            source: entry.crash.site().and_then(|site| site.source),
            trace: Trace::of(&entry.crash, Some(&entry.folder)),
            flaky: flaky(entry, group_flaky),
            runs_seen: match group.runs_seen() {
                0 => slips::runs(group, &entries)?,
                runs => runs,
            },
            size_before,
            reproducer: entry.reproducer_bytes()?,
            minimized: shown_result(entry, group_flaky),
            file: absolute(&entry.reproducer()),
            log: existing(entry.log()),
            script: existing(entry.script()),
            has_gdb: entry.script_has_gdb(),
            explanation: entry.explanation(),
            status: None,
            place_now: None,
            known_as: None,
            checked: None,
            utility: utility(entry).map(str::to_owned),
            variants: variants(group, entry, &entries, group_flaky),
        })
    }

    /// Returns this view with what became known after the group's crash was recorded. `builds`
    /// gives the status of the group with the last builds, the location at which the group fails
    /// with the last build of the program on which the input `entry` was found, and the major key
    /// of a group of an earlier build that is the same bug. `checks` gives the result of the
    /// group's last `ddfuzz check`.
    ///
    /// # Errors
    /// When the group's entries cannot be read.
    pub fn since(
        self,
        group: &Group,
        entry: &Entry,
        builds: &LastBuilds,
        checks: &LastChecks,
    ) -> Result<GroupView, StoreError> {
        let major = self.major.short();
        let build = builds.of_entry(entry);
        let place = build.and_then(|build| build.place(self.kind, &major));
        let known_as = build.and_then(|build| build.known_as(self.kind, &major));
        let mut view = GroupView {
            status: builds.status(group)?,
            place_now: place.map(str::to_owned),
            known_as: known_as.map(str::to_owned),
            checked: checks.get(&(self.kind, major)).cloned(),
            ..self
        };
        if let Some(source) = view.last_source().filter(|_| view.place_now.is_some()) {
            view.trace.move_to(&source);
        }
        Ok(view)
    }

    /// Returns the location at which the group fails with the last build of the program or, if no
    /// other one is recorded for that build, the location of the group's crash record; `None` if
    /// both are unknown.
    pub fn last_place(&self) -> Option<&String> {
        self.place_now.as_ref().or(self.place.as_ref())
    }

    /// Returns the source position (`file:line`) that belongs to the location
    /// [`last_place`](GroupView::last_place); `None` if it is unknown.
    fn last_source(&self) -> Option<String> {
        let Some(place) = &self.place_now else {
            return self.source.clone();
        };
        let (_, source) = place.rsplit_once(" at ")?;
        Some(source.to_owned())
    }

    /// Returns the size of the smallest known failing input of the group, in bytes.
    pub fn size_after(&self) -> u64 {
        self.reproducer.len() as u64
    }

    /// Returns the minor key (12 hex digits) of the representative input if the group has
    /// reproducers of further minor keys, else `None`.
    pub fn variant(&self) -> Option<String> {
        (!self.variants.is_empty()).then(|| self.minor.short())
    }

    /// Returns the group's name for messages: its major key, or `variant MINOR of group MAJOR` if
    /// the group has reproducers of further minor keys.
    pub fn name(&self) -> String {
        let major = self.major.short();
        match self.variant() {
            Some(minor) => format!("variant {minor} of group {major}"),
            None => major,
        }
    }

    /// Returns the number of tests that the minimization of the group's input executed; `None`
    /// until it has ended.
    pub fn tests_executed(&self) -> Option<u64> {
        let tests = &self.minimized.as_ref()?.tests;
        tests.get("executed").and_then(Value::as_u64)
    }

    /// Returns the shell command that shows the crash in gdb; `None` if there is no `reproduce.sh`,
    /// or it does not support gdb.
    pub fn gdb(&self) -> Option<String> {
        let script = self.script.as_deref().filter(|_| self.has_gdb)?;
        Some(format!("{} gdb", shell_word(script)))
    }

    /// Returns a few words on the group, separated by commas: minimality and flakiness of the
    /// reproducer, status of the group after a rebuild and after the last `ddfuzz check`, and the
    /// major key that the same bug had with an earlier build (`1-minimal, flaky 3/10, fixed`). A
    /// status of "same" is left out. Returns `-` if there is nothing to say.
    pub fn status_text(&self) -> String {
        let claim = self.claim_word().map(str::to_owned);
        let flaky = self.flaky.map(|rate| match rate.hits < rate.tries {
            true => format!("flaky {}/{}", rate.hits, rate.tries),
            false => "flaky".to_owned(),
        });
        let status = self.status.filter(|status| *status != Status::Same);
        let status = status.map(|status| status.name().to_owned());
        let checked = self.checked.as_ref().map(|check| check.status);
        let checked = checked.filter(|status| *status != Status::Same);
        let checked = checked.map(|status| format!("check: {}", status.name()));
        let earlier = self.known_as.as_ref().map(|major| format!("was {major}"));
        let known = (claim.into_iter().chain(flaky).chain(status)).chain(checked);
        let known = known.chain(earlier);
        let known: Vec<String> = known.collect();
        match known.is_empty() {
            true => "-".to_owned(),
            false => known.join(", "),
        }
    }

    /// Returns a sentence on the reproducer: its minimality, how much of this is proved, and
    /// whether it fails in some runs only.
    pub fn claim(&self) -> String {
        let claim = self.claim_alone();
        match self.flaky {
            Some(rate) if rate.hits < rate.tries => format!("{claim}; it fails in {rate}"),
            Some(_) => format!("{claim}; it does not fail in every run"),
            None => claim,
        }
    }

    fn claim_alone(&self) -> String {
        let minimized = self.minimized.as_ref();
        minimized.map_or_else(|| "not minimized yet".to_owned(), claim)
    }

    /// Returns the minimality of the reproducer in a word or two: `1-minimal`, `empty input` (the
    /// program fails without input), `any input` (it crashes whatever the input is). `None` until
    /// the minimization has ended.
    pub fn claim_word(&self) -> Option<&str> {
        let minimized = self.minimized.as_ref()?;
        Some(match minimized.size_after {
            _ if minimized.any_input => "any input",
            0 => "empty input",
            _ => &minimized.claim,
        })
    }
}

/// Formats the minimality that a minimization has reached, and how far it is proved: `1-minimal,
/// proved by 12 tests`.
pub fn claim(minimized: &Minimized) -> String {
    let tests = size::counted(minimized.proved.of, "test");
    let claim = &minimized.claim;
    match minimized.is_proved() {
        _ if minimized.any_input => "crashes on any input".to_owned(),
        true if minimized.size_after == 0 => "fails on the empty input".to_owned(),
        true if minimized.untried > 0 => {
            let bytes = size::counted(minimized.untried, "byte");
            format!(
                "{claim}, proved by {tests}; the budget ended before {bytes} were replaced by 0"
            )
        }
        true => format!("{claim}, proved by {tests}"),
        false => {
            let proved = minimized.proved;
            let claim = claim.replace('-', " ");
            let missing = match minimized.flaky {
                _ if proved.done < proved.of || proved.of == 0 => "",
                Some(_) => ", but the failure is flaky",
                None => ", but the runs that confirm this are not all made",
            };
            format!(
                "{claim}, {} of {} removals proved{missing}",
                size::grouped(proved.done),
                size::grouped(proved.of)
            )
        }
    }
}

/// Collects the reproducers of the group's further minor keys (call paths to the bug), that is, of
/// all minor keys but that of the shown entry, sorted by size.
fn variants(
    group: &Group,
    shown: &Entry,
    entries: &[Entry],
    group_flaky: bool,
) -> Vec<VariantView> {
    let after = shown.minimized.as_ref().and_then(|it| it.minor_after);
    let minor = after.unwrap_or(shown.crash.keys.minor).short();
    let representatives: Vec<EntryId> = group.representatives().collect();
    let others = entries.iter().filter(|entry| {
        representatives.contains(&entry.id)
            && entry.id.minor() != minor
            && !entry.shows_another_minor()
            && utility(entry) == utility(shown)
    });
    let mut variants: Vec<VariantView> = others
        .filter_map(|entry| VariantView::of(entry, group_flaky))
        .collect();
    variants.sort_by(|a, b| (a.size_after, &a.minor).cmp(&(b.size_after, &b.minor)));
    variants
}

fn utility(entry: &Entry) -> Option<&str> {
    entry.crash.of.as_ref().map(|of| of.utility.as_str())
}

/// Returns the result of the entry's minimization as reports show it; `None` if there is none. If
/// the crash is flaky, the result has no claim (such as 1-minimal), even if the minimization made
/// one because its runs happened to agree. `group_flaky`: whether the entry's group is flaky.
pub(super) fn shown_result(entry: &Entry, group_flaky: bool) -> Option<Minimized> {
    let minimized = entry.minimized.clone()?;
    Some(match flaky(entry, group_flaky) {
        Some(rate) => minimized.without_claim(rate),
        None => minimized,
    })
}

/// Returns how often the crash of the entry's input occurs when it is run repeatedly; `None` if it
/// occurs in every run. `group_flaky`: whether the entry's group is flaky ([`Group::is_flaky`]).
fn flaky(entry: &Entry, group_flaky: bool) -> Option<Rate> {
    let minimized = entry.minimized.as_ref().and_then(|one| one.flaky);
    let crash = Rate {
        hits: entry.crash.hits.into(),
        tries: entry.crash.tries.into(),
    };
    minimized.or((group_flaky || crash.hits < crash.tries).then_some(crash))
}

/// Returns the location of a crash in the user's code: function and line, else module and offset;
/// `None` if unknown.
pub fn place(crash: &Crash) -> Option<String> {
    crash.site().map(|site| site.to_string())
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Data of one group that the text for the terminal and the reports for CI servers show.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Kind of failure that the group's inputs show: crash, flaky crash, hang or out of memory.
    pub kind: Kind,
    /// Major key, which identifies the bug; its first 12 hex digits.
    pub major: String,
    /// Class of the group's crashes, such as `segv`.
    pub class: String,
    /// Name of the utility that crashed, in a study of many utilities; else `None`.
    pub utility: Option<String>,
    /// Estimated severity of the group's bug: low, medium or high.
    pub severity: Severity,
    /// Reason for the estimated severity of the group.
    pub severity_reason: String,
    /// Location of the crash in the user's code: function and line, else module and offset; `None`
    /// if unknown.
    pub place: Option<String>,
    /// Message, stacks and source locations of the group's crash.
    pub trace: Trace,
    /// Location of the crash as `file:line`, with the path from the debug information; `None` if
    /// unknown.
    pub source: Option<String>,
    /// Size of the group: the number of campaign runs that ended in it or, for `ddfuzz triage`, the
    /// number of inputs that crash in it.
    pub count: u64,
    /// Size of the group's input before minimization, in bytes; `None` if it was not reduced.
    pub size_before: Option<u64>,
    /// Size of the smallest known failing input of the group, in bytes.
    pub size: u64,
    /// Sentence on the proved minimality of the group's smallest failing input; `None` if it was
    /// not minimized.
    pub claim: Option<String>,
    /// Path of the smallest known failing input of the group.
    pub file: PathBuf,
    /// Path of the group's `reproduce.sh`, which shows the crash without ddfuzz; `None` if there is
    /// none.
    pub script: Option<PathBuf>,
    /// Whether the group's `reproduce.sh` can also show the crash in gdb.
    pub has_gdb: bool,
    /// First line of the explanation of the failure and, on a second line, the place at which to
    /// look first, or why nothing could be explained ([`Entry::explanation`]); `None` if `ddfuzz
    /// explain` has written no explanation.
    pub explanation: Option<String>,
    /// Location of the crash with the earlier build of the program on which the input was found;
    /// `None` if the crash is still at that location, or if it is unknown.
    pub place_before: Option<String>,
    /// Whether the group is new: neither muted by the user nor in the output directory with which
    /// the findings are compared. `None` if unknown.
    pub is_new: Option<bool>,
}

impl From<&GroupView> for Finding {
    fn from(view: &GroupView) -> Finding {
        let claim = view.minimized.as_ref().map(|_| view.claim());
        Finding {
            kind: view.kind,
            major: view.major.short(),
            class: view.class.to_string(),
            utility: view.utility.clone(),
            severity: view.severity,
            severity_reason: view.severity_reason.clone(),
            place: view.last_place().cloned(),
            trace: view.trace.clone(),
            source: view.last_source(),
            count: view.runs_seen,
            size_before: (view.size_before != view.size_after()).then_some(view.size_before),
            size: view.size_after(),
            claim,
            file: view.file.clone(),
            script: view.script.clone(),
            has_gdb: view.has_gdb,
            explanation: view.explanation.clone(),
            place_before: view.place.clone().filter(|_| view.place_now.is_some()),
            is_new: None,
        }
    }
}

impl From<&TriageGroup> for Finding {
    fn from(group: &TriageGroup) -> Finding {
        Finding {
            kind: group.kind,
            major: group.major.clone(),
            class: group.class.clone(),
            utility: None,
            severity: group.severity,
            severity_reason: group.severity_reason.clone(),
            place: group.frame.clone(),
            trace: group.trace.clone(),
            source: group.source.clone(),
            count: group.count,
            size_before: None,
            size: group.size,
            claim: None,
            file: group.representative.clone(),
            script: None,
            has_gdb: false,
            explanation: group.explanation.clone(),
            place_before: None,
            is_new: match (group.known, group.new) {
                (true, _) => Some(false),
                (false, new) => new,
            },
        }
    }
}

impl Finding {
    /// Returns kind, class, utility and location of the group's crash in one line.
    pub(super) fn title(&self) -> String {
        let place = match &self.place {
            Some(place) => format!(" in {place}"),
            None => String::new(),
        };
        let of = match &self.utility {
            Some(utility) => format!(" of {utility}"),
            None => String::new(),
        };
        printable(&format!("{} {}{of}{place}", self.kind.noun(), self.class))
    }

    /// Returns kind, class and location of the group's crash and the first line of its message, in
    /// one line.
    pub(super) fn titled_message(&self) -> String {
        match self.trace.headline() {
            Some(headline) => format!("{}: {headline}", self.title()),
            None => self.title(),
        }
    }

    /// Formats the size of the group's smallest failing input; if it was reduced, preceded by the
    /// size of the input as found: `40 → 6 bytes`.
    pub(super) fn reduction(&self) -> String {
        match self.size_before {
            Some(before) => size::reduction(before, self.size),
            None => size::bytes(self.size),
        }
    }
}
