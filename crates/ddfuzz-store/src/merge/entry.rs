//! One entry of two directories.
//!
//! For each part of an entry there is a total order, and the least of the two parts stays; that
//! makes merging independent of order and repetition.

use std::cmp::Ordering;
use std::fs;
use std::path::Path;

use crate::{Minimized, StoreError, entry, json, layout, origin};
use ddfuzz_model::files::{FileError, atomic, folder};
use ddfuzz_triage::Crash;

/// Unites the entry in the folder `from` with the one in `into`, if there is one; gives whether
/// there was none.
pub(super) fn merge(from: &Path, into: &Path) -> Result<bool, StoreError> {
    let Some(original) = json::bytes(&from.join(layout::ORIGINAL))? else {
        return Ok(false);
    };
    let new = !into.join(layout::ORIGINAL).is_file();
    folder::create_all(into)?;
    // The input first, as in filing: what is interrupted after it is incomplete, not lost.
    keep_least(
        &into.join(layout::ORIGINAL),
        Some(original),
        |a, b| a.cmp(b),
        false,
    )?;
    if compare_minimizations(from, into)?.is_lt() {
        take_minimization(from, into)?;
    }
    let script = json::bytes(&from.join(layout::REPRODUCE))?;
    keep_least(&into.join(layout::REPRODUCE), script, |a, b| a.cmp(b), true)?;
    let crash = json::bytes(&from.join(layout::CRASH))?;
    keep_least(&into.join(layout::CRASH), crash, compare_records, false)?;
    let options = json::bytes(&from.join(layout::OPTIONS_LOG))?;
    // The longer one has gone further.
    let further = |a: &[u8], b: &[u8]| (b.len(), a).cmp(&(a.len(), b));
    keep_least(&into.join(layout::OPTIONS_LOG), options, further, false)?;
    Ok(new)
}

/// Writes `theirs` over the file if that is less, or there is no file.
fn keep_least(
    path: &Path,
    theirs: Option<Vec<u8>>,
    compare: impl Fn(&[u8], &[u8]) -> Ordering,
    program: bool,
) -> Result<(), StoreError> {
    let Some(theirs) = theirs else {
        return Ok(());
    };
    let ours = json::bytes(path)?;
    if ours.is_none_or(|ours| compare(&theirs, &ours).is_lt()) {
        match program {
            true => atomic::write_program(path, &theirs)?,
            false => atomic::write(path, &theirs)?,
        }
    }
    Ok(())
}

/// Records by origin, in a study by the number of arguments that are left, then as text; damaged
/// ones last.
fn compare_records(a: &[u8], b: &[u8]) -> Ordering {
    let read = |text| serde_json::from_slice::<Crash>(text).ok();
    let arguments = |crash: &Crash| crash.of.as_ref().map(|of| of.target.args.len());
    let by_origin = match (read(a), read(b)) {
        (Some(a), Some(b)) => origin::order(a.found.as_ref(), b.found.as_ref())
            .then_with(|| arguments(&a).cmp(&arguments(&b))),
        (a, b) => a.is_none().cmp(&b.is_none()),
    };
    by_origin.then_with(|| a.cmp(b))
}

/// How far a minimization got, without the bytes; less is better.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Progress {
    unfinished: bool,
    unproved: bool,
    size: u64,
    untouched: bool,
}

impl Progress {
    fn of(folder: &Path) -> Result<Progress, StoreError> {
        let outcome = json::read_intact::<Minimized>(&folder.join(layout::OUTCOME))?;
        let length = |name| fs::metadata(folder.join(name)).map(|metadata| metadata.len());
        Ok(Progress {
            unfinished: outcome.is_none(),
            unproved: !outcome.is_some_and(|outcome| outcome.is_proved()),
            size: (length(layout::MINIMIZED).or_else(|_| length(layout::ORIGINAL)))
                .unwrap_or(u64::MAX),
            untouched: !folder.join(layout::MINIMIZED).is_file(),
        })
    }
}

/// Orders the minimizations of two folders: finished before unfinished, then by (proved, size,
/// bytes), then by their files as text, so that only equal ones are equal.
fn compare_minimizations(a: &Path, b: &Path) -> Result<Ordering, StoreError> {
    let order = Progress::of(a)?.cmp(&Progress::of(b)?);
    if order.is_ne() {
        return Ok(order);
    }
    let order = entry::reproducer_bytes(a)?.cmp(&entry::reproducer_bytes(b)?);
    if order.is_ne() {
        return Ok(order);
    }
    for name in [layout::OUTCOME, layout::LOG] {
        let read = |folder: &Path| json::bytes(&folder.join(name));
        // A log that is there before one that is not.
        let order = match (read(a)?, read(b)?) {
            (Some(a), Some(b)) => a.cmp(&b),
            (a, b) => a.is_none().cmp(&b.is_none()),
        };
        if order.is_ne() {
            return Ok(order);
        }
    }
    Ok(Ordering::Equal)
}

/// Replaces the minimization in `into` by the one in `from`. The outcome goes first and comes
/// last: where it stands, the files beside it belong together.
fn take_minimization(from: &Path, into: &Path) -> Result<(), StoreError> {
    let outcome = json::bytes(&from.join(layout::OUTCOME))?;
    remove(&into.join(layout::OUTCOME))?;
    for name in [layout::LOG, layout::DEBUG, layout::MINIMIZED] {
        match json::bytes(&from.join(name))? {
            Some(bytes) => atomic::write(&into.join(name), &bytes)?,
            None => remove(&into.join(name))?,
        }
    }
    if let Some(outcome) = outcome {
        atomic::write(&into.join(layout::OUTCOME), &outcome)?;
    }
    Ok(())
}

fn remove(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(FileError::at("remove", path)(error).into())
        }
        Err(_) => Ok(()),
        Ok(()) => Ok(folder::sync(folder::parent(path))?),
    }
}
