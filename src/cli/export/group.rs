//! Finds the group to export, by hex digits of its major key (the hash that identifies a bug) or by
//! a path.

use std::path::{Path, PathBuf};

use crate::cli::results::is_same_file;
use crate::cli::{Exit, Failure, show};
use crate::exec::Target;
use crate::report::export::Reproducer;
use crate::report::place;
use crate::report::text::printable;
use crate::store::{Entry, EntryId, Group, Kind, Reader, StoreError};

/// Minimum number of hex digits of a crash key that a user must give to name a group.
const DIGITS: usize = 4;

/// A crash group that the user has chosen, with the recorded crash that represents it.
pub(in crate::cli) struct ChosenGroup {
    group: Group,
    entry: Entry,
}

/// Opens the output directory `out`, and finds the crash group that `name` names: either by at
/// least four hex digits with which its major key (hash that identifies the bug) begins, or by a
/// path that belongs to the group. If `name` can be read as both, the digits count. Fails if `name`
/// names no group, or several.
pub(in crate::cli) fn find(name: &Path, out: &Path) -> Result<(Reader, ChosenGroup), Failure> {
    let text = name.to_string_lossy().to_ascii_lowercase();
    let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_path = name.exists() || text.contains('/');
    if is_path && !(is_hex && text.len() >= DIGITS && names_group(out, &text)) {
        return by_path(name);
    }
    let reader = Reader::open(out)?;
    if !is_hex {
        let message = format!("{} is neither a group nor a file", name.display());
        return Err(unnamed(&reader, &message));
    }
    let chosen = by_digits(&reader, &text)?;
    Ok((reader, chosen))
}

/// Returns true if the output directory `out` has a group whose major key (hash that identifies the
/// bug) begins with `digits`.
fn names_group(out: &Path, digits: &str) -> bool {
    let groups = Reader::open(out).and_then(|reader| reader.groups_named(digits));
    groups.is_ok_and(|groups| !groups.is_empty())
}

/// Maximum number of crash groups listed in an error message.
const LISTED: usize = 20;

/// Builds the failure for a crash group that was not found: `message`, followed by a list of the
/// groups in the output directory.
fn unnamed(reader: &Reader, message: &str) -> Failure {
    let mut lines = Vec::new();
    for kind in Kind::ALL {
        for group in reader.groups(kind).unwrap_or_default() {
            let entry = best_entry(reader, &group).ok().flatten();
            let place = entry.and_then(|entry| place(&entry.crash));
            let place = place.map(|place| format!("  {place}")).unwrap_or_default();
            let line = format!(
                "{}  {}{place}",
                group.record.major.short(),
                group.record.class
            );
            lines.push(printable(&line));
        }
    }
    let more = lines.len().saturating_sub(LISTED);
    lines.truncate(LISTED);
    if more > 0 {
        lines.push(format!("and {more} more, which `ddfuzz show` lists"));
    }
    let out = reader.root();
    let list = match lines.is_empty() {
        true => format!("{} has no groups", out.display()),
        false => format!(
            "the groups of {} are\n  {}",
            out.display(),
            lines.join("\n  ")
        ),
    };
    Failure::usage(format!("{message}; {list}"))
        .path(out)
        .hint("give a group by 4 or more hex digits of its major key, or by its folder")
}

fn by_digits(reader: &Reader, digits: &str) -> Result<ChosenGroup, Failure> {
    if digits.len() < DIGITS {
        let message = format!("{digits} is too short to name a group");
        return Err(unnamed(reader, &message));
    }
    let mut groups = reader.groups_named(digits)?;
    let mut majors: Vec<String> = groups
        .iter()
        .map(|group| group.record.major.short())
        .collect();
    majors.dedup();
    match majors.len() {
        0 => Err(unnamed(reader, &format!("no group begins with {digits}"))),
        // Of two kinds with one key the first in the order of reports, crashes before all.
        1 => chosen(reader, groups.remove(0)),
        count => {
            let message = format!("{count} groups begin with {digits}: {}", majors.join(", "));
            let out = reader.root();
            Err(Failure::usage(message).path(out).hint("give more digits"))
        }
    }
}

fn best_entry(reader: &Reader, group: &Group) -> Result<Option<Entry>, StoreError> {
    reader.best_entry(group, &reader.campaigns()?.last_builds())
}

fn chosen(reader: &Reader, group: Group) -> Result<ChosenGroup, Failure> {
    match best_entry(reader, &group)? {
        Some(entry) => Ok(ChosenGroup { group, entry }),
        None => {
            let major = group.record.major;
            let left = reader.incomplete_group(group.kind, &major.short())?;
            let lacks = show::what_is_missing(&left);
            let message = format!("the group {major} has no complete input: {lacks}");
            let failure = Failure::new(Exit::Usage, "incomplete", message).path(&group.folder);
            Err(failure.hint(show::advice_where_incomplete(&left)))
        }
    }
}

/// Opens the output directory that contains `path`, and returns a reader of it and the crash group
/// to which `path` belongs, according to the names of the folders in `path` (kind of failure, major
/// key, minor key, hash of the input). If `path` is in the folder of a stored input, this input is
/// chosen, too.
fn by_path(path: &Path) -> Result<(Reader, ChosenGroup), Failure> {
    let message = format!("{} is in no group of an output directory", path.display());
    let whole = std::fs::canonicalize(path)
        .map_err(|error| Failure::file(path, "finding", &error).hint("see `ddfuzz show`"))?;
    let root: PathBuf = (whole.ancestors())
        .find(|folder| folder.join("ddfuzz.json").is_file())
        .ok_or_else(|| {
            Failure::usage(&message).path(path).hint(
                "give a group by 4 or more hex digits of its major key, or by its folder \
                 (ddfuzz-out/crashes/MAJOR)",
            )
        })?
        .to_owned();
    let reader = Reader::open(&root)?;
    let no_group = || unnamed(&reader, &message);
    let below = whole.strip_prefix(&root).unwrap_or(Path::new(""));
    let names: Vec<String> = (below.iter())
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    let kind = |name: &String| Kind::ALL.into_iter().find(|kind| kind.folder() == name);
    let (Some(kind), Some(major)) = (names.first().and_then(kind), names.get(1)) else {
        return Err(no_group());
    };
    let group = reader.group(kind, major)?.ok_or_else(no_group)?;
    if let (Some(minor), Some(hash)) = (names.get(2), names.get(3))
        && let Some(id) = EntryId::from_names(kind, major, minor, hash)
        && let Some(entry) = reader.entry(&id)?
    {
        return Ok((reader, ChosenGroup { group, entry }));
    }
    let chosen = chosen(&reader, group)?;
    Ok((reader, chosen))
}

/// The groups of crashes of an output directory, in the order of their major keys (the hashes that
/// identify bugs).
pub(in crate::cli) struct AllGroups {
    pub(in crate::cli) complete: Vec<ChosenGroup>,
    /// Major keys (12 hex digits of the hashes that identify bugs) of the groups without a complete
    /// input, each with the error for the user.
    pub(in crate::cli) incomplete: Vec<(String, Failure)>,
}

/// Returns all groups of crashes in the output directory.
pub(in crate::cli) fn all(reader: &Reader) -> Result<AllGroups, Failure> {
    let mut all = AllGroups {
        complete: Vec::new(),
        incomplete: Vec::new(),
    };
    for group in reader.groups(Kind::Crash)? {
        let major = group.record.major.short();
        match chosen(reader, group) {
            Ok(group) => all.complete.push(group),
            Err(error) => all.incomplete.push((major, error)),
        }
    }
    Ok(all)
}

impl ChosenGroup {
    /// Returns a recorded crash of the output directory together with its group, for export; `None`
    /// if the group cannot be read.
    pub(in crate::cli) fn of(reader: &Reader, entry: &Entry) -> Option<ChosenGroup> {
        let group = reader.group(entry.id.kind(), entry.id.major()).ok()??;
        Some(ChosenGroup {
            group,
            entry: entry.clone(),
        })
    }

    /// Returns the reproducer of the crash group, with the facts about the crash that exported
    /// files contain.
    pub(in crate::cli) fn reproducer(&self) -> Result<Reproducer, Failure> {
        let crash = &self.entry.crash;
        Ok(Reproducer {
            kind: self.group.kind,
            major: self.group.record.major.short(),
            class: self.group.record.class.clone(),
            place: place(crash),
            input: self.entry.reproducer_bytes()?,
            ended: crash.ended,
            of_descendant: crash.details.of_descendant,
            limits: crash.limits,
            sanitizers: crash.needed_sanitizers(),
            debug_assertions: crash.needs_debug_assertions(),
            trap: crash.trap(),
            minimal_runtime: crash.is_by_minimal_runtime(),
        })
    }

    /// Fails if an exported file at `to` would overwrite a file of the crash group itself.
    pub(in crate::cli) fn check_not_own(&self, to: &Path) -> Result<(), Failure> {
        let own = [
            self.entry.original(),
            self.entry.reproducer(),
            self.entry.log(),
        ];
        match own.iter().any(|file| is_same_file(file, to)) {
            false => Ok(()),
            true => {
                let message = format!("{} is the group's own file", to.display());
                Err(Failure::usage(message)
                    .path(to)
                    .hint("give another file with --to"))
            }
        }
    }

    /// Returns the first digits of the group's major key (hash that identifies the bug), by which
    /// users name the group.
    pub(in crate::cli) fn major(&self) -> String {
        self.group.record.major.short()
    }

    pub(in crate::cli) fn entry(&self) -> &Entry {
        &self.entry
    }

    /// Returns the target on which the crash group was found, with the limits of the crash. The
    /// output directory records it with the crash itself in a study of many programs, else with the
    /// campaign that found the crash; else it is that of any campaign. Fails if no target is
    /// recorded.
    pub(in crate::cli) fn target(&self, reader: &Reader) -> Result<Target, Failure> {
        let crash = &self.entry.crash;
        if let Some(target) = crash
            .of
            .as_ref()
            .and_then(|of| of.target.target(crash.limits))
        {
            return Ok(target);
        }
        let file = reader.campaigns()?;
        let finder = self.entry.crash.campaign();
        let mut all: Vec<_> = file.all().collect();
        all.sort_by_key(|campaign| Some(campaign.id.as_str()) != finder);
        let records = all.iter().filter_map(|campaign| campaign.target.as_ref());
        let mut targets = records.filter_map(|record| record.target(self.entry.crash.limits));
        targets.next().ok_or_else(|| {
            let root = reader.root();
            let message = format!("{} does not record which program was run", root.display());
            Failure::usage(message)
                .path(root)
                .hint("--call gives a test of Rust an expression to evaluate instead")
        })
    }
}
