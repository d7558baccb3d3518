//! What reports show of one group.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;

use super::Trace;
use super::json::lossy;
use super::text::shell_word;
use crate::{Entry, EntryId, Group, Kind, Minimized, Reader, Status, StoreError};
use ddfuzz_minimize::Rate;
use ddfuzz_triage::{Class, Crash, Found, Frame, Key, Severity};

/// The reproducer of another minor key than the one that a group is shown through.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VariantView {
    /// The first 12 hex digits of its minor key.
    pub minor: String,
    /// Size of the input as found, in bytes.
    pub size_before: u64,
    /// Size of the reproducer, in bytes.
    pub size_after: u64,
    /// What is claimed of it.
    pub claim: String,
    /// The user's code that called the function which crashed; null where it is not known.
    pub caller: Option<String>,
    /// The file of the reproducer, absolute.
    #[serde(serialize_with = "lossy")]
    pub file: PathBuf,
}

impl VariantView {
    /// The view of an entry with a result.
    fn of(entry: &Entry) -> Option<VariantView> {
        let minimized = entry.minimized.as_ref()?;
        let mut own = entry.crash.frames.iter().filter(|frame| frame.own);
        Some(VariantView {
            minor: entry.id.minor().to_owned(),
            size_before: minimized.size_before,
            size_after: minimized.size_after,
            claim: minimized.claim.clone(),
            caller: own.nth(1).map(Frame::place),
            file: absolute(&entry.reproducer()),
        })
    }
}

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
    /// The same as `file:line` or `file:line:column`, where that is known, the path as the program
    /// has it.
    pub source: Option<String>,
    /// What the entry's crash said, and its stacks.
    pub trace: Trace,
    /// How often it fails, where it does not each time; all of all where only that is known.
    pub flaky: Option<Rate>,
    /// Runs of all campaigns that ended so; where none did, inputs of minimizations that have met
    /// it.
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
    /// The reproducers of its other minor keys, by size.
    pub variants: Vec<VariantView>,
}

impl GroupView {
    /// The view of an entry of a directory; `None` where it is gone.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn of(reader: &Reader, id: &EntryId) -> Result<Option<GroupView>, StoreError> {
        let id = match reader.entry(id)? {
            Some(_) => id.clone(),
            // It has turned out not to come again.
            None => id.among(Kind::Flaky),
        };
        let (group, entry) = (reader.group(id.kind(), id.major())?, reader.entry(&id)?);
        let both = group.zip(entry);
        both.map(|(group, entry)| GroupView::load(&group, &entry))
            .transpose()
    }

    /// Reads the view of `group` through `entry`.
    ///
    /// # Errors
    /// When the entry's input cannot be read.
    pub fn load(group: &Group, entry: &Entry) -> Result<GroupView, StoreError> {
        let size_before = match &entry.minimized {
            Some(minimized) => minimized.size_before,
            None => entry.original_bytes()?.len() as u64,
        };
        let entries = group.entries()?;
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
            flaky: flaky(group.kind, entry),
            runs_seen: match group.runs_seen() {
                0 => entries.iter().filter(|entry| is_slip(entry)).count() as u64,
                runs => runs,
            },
            size_before,
            reproducer: entry.reproducer_bytes()?,
            minimized: entry.minimized.clone(),
            file: absolute(&entry.reproducer()),
            log: existing(entry.log()),
            script: existing(entry.script()),
            has_gdb: entry.script_has_gdb(),
            status: None,
            utility: utility(entry).map(str::to_owned),
            variants: variants(group, entry, &entries),
        })
    }

    /// Size of the best input known, in bytes.
    pub fn size_after(&self) -> u64 {
        self.reproducer.len() as u64
    }

    /// The minor key of the entry (12 hex digits), where another one of the group has a result,
    /// too: it is a variant then.
    pub fn variant(&self) -> Option<String> {
        (!self.variants.is_empty()).then(|| self.minor.short())
    }

    /// The group, as one of its variants where it has several results.
    pub fn name(&self) -> String {
        let major = self.major.short();
        match self.variant() {
            Some(minor) => format!("variant {minor} of group {major}"),
            None => major,
        }
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
        let claim = self.claim_word().map(str::to_owned);
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
        let minimized = self.minimized.as_ref();
        minimized.map_or_else(|| "not minimized yet".to_owned(), claim)
    }

    /// The claim in a word or two, where the minimization has ended: no proof is needed that
    /// nothing can be removed from an empty input.
    pub fn claim_word(&self) -> Option<&str> {
        let minimized = self.minimized.as_ref()?;
        Some(match minimized.size_after {
            _ if minimized.any_input => "any input",
            0 => "empty input",
            _ => &minimized.claim,
        })
    }
}

/// What is claimed of a result, as a sentence with what that rests on.
pub fn claim(minimized: &Minimized) -> String {
    let tests = super::size::counted(minimized.proved.of, "test");
    let claim = &minimized.claim;
    match minimized.is_proved() {
        _ if minimized.any_input => "crashes on any input".to_owned(),
        true if minimized.size_after == 0 => "crashes on the empty input".to_owned(),
        true if minimized.untried > 0 => {
            let bytes = super::size::counted(minimized.untried, "byte");
            format!(
                "{claim}, proved by {tests}; the budget ended before {bytes} were replaced by 0"
            )
        }
        true => format!("{claim}, proved by {tests}"),
        false => {
            let proved = minimized.proved;
            let claim = claim.replace('-', " ");
            format!("{claim}, {} of {} removals proved", proved.done, proved.of)
        }
    }
}

/// The representatives of the minor keys that `shown` does not show, as far as they have results.
fn variants(group: &Group, shown: &Entry, entries: &[Entry]) -> Vec<VariantView> {
    let after = shown.minimized.as_ref().and_then(|it| it.minor_after);
    let minor = after.unwrap_or(shown.crash.keys.minor).short();
    let representatives: Vec<EntryId> = group.representatives().collect();
    let others = entries.iter().filter(|entry| {
        representatives.contains(&entry.id)
            && entry.id.minor() != minor
            && !entry.shows_another_minor()
            && utility(entry) == utility(shown)
    });
    let mut variants: Vec<VariantView> = others.filter_map(VariantView::of).collect();
    variants.sort_by(|a, b| (a.size_after, &a.minor).cmp(&(b.size_after, &b.minor)));
    variants
}

fn utility(entry: &Entry) -> Option<&str> {
    entry.crash.of.as_ref().map(|of| of.utility.as_str())
}

fn is_slip(entry: &Entry) -> bool {
    matches!(entry.crash.found, Some(Found::Slip { .. }))
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

/// Where in the user's code a crash happened, by function and line where they are known, else by
/// module and offset.
pub fn place(crash: &Crash) -> Option<String> {
    crash.site().map(|site| site.to_string())
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
