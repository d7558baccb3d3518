//! Which finding of one input is the one on record.

use std::borrow::Cow;
use std::cmp::Ordering;

use ddfuzz_triage::{Crash, Found};

/// Orders origins by how well they name the input: a run of a campaign, by its number, before a
/// slip (one with a line in the log before one without), before a file, before nothing. The record of the least one stays, so that the record
/// does not depend on the order in which workers file the same input.
pub(super) fn order(a: Option<&Found>, b: Option<&Found>) -> Ordering {
    let rank = |found: Option<&Found>| match found {
        Some(Found::Run { .. }) => 0,
        Some(Found::Slip { .. }) => 1,
        Some(Found::File { .. }) => 2,
        None => 3,
    };
    match (a, b) {
        (
            Some(Found::Run {
                campaign: ca,
                run: a,
                input: ia,
            }),
            Some(Found::Run {
                campaign: cb,
                run: b,
                input: ib,
            }),
        ) => (a, ca, ia).cmp(&(b, cb, ib)),
        (Some(Found::Slip { of: oa, test: a }), Some(Found::Slip { of: ob, test: b })) => {
            (oa, a.is_none(), a).cmp(&(ob, b.is_none(), b))
        }
        (Some(Found::File { path: a }), Some(Found::File { path: b })) => a.cmp(b),
        _ => rank(a).cmp(&rank(b)),
    }
}

/// The crash as it can be written: a path that is not UTF-8 has no form in JSON, and losing the
/// crash over the name of its file would be worse than a name with a replacement character.
pub(super) fn writable(crash: &Crash) -> Cow<'_, Crash> {
    match &crash.found {
        Some(Found::File { path }) if path.to_str().is_none() => {
            let path = path.to_string_lossy().into_owned().into();
            Cow::Owned(Crash {
                found: Some(Found::File { path }),
                ..crash.clone()
            })
        }
        _ => Cow::Borrowed(crash),
    }
}
