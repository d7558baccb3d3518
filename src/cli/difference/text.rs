//! The result of `max` and `diff` for people.

use crate::cli::results::shown;
use crate::minimize::isolate::{DifferenceResult, Differing, Isolated};
use crate::minimize::log::{Goal, Units};
use crate::report::{hexdump, size};

/// Places of a difference that are shown.
const PLACES: usize = 8;

pub(super) fn text(record: &DifferenceResult, isolated: &Isolated) -> String {
    let unit = match record.units {
        Some(Units::Edits) => "edit",
        _ => "byte",
    };
    let sizes = size::reduction(record.size_failing, record.size_passing);
    let deltas = size::counted(record.deltas, unit);
    let mut lines = vec![match record.goal {
        Some(Goal::Maximize) => format!("{sizes} that pass; {deltas} left out; {}", tests(record)),
        _ => {
            let make = match record.deltas {
                1 => "makes",
                _ => "make",
            };
            format!("{deltas} {make} the difference, {}", tests(record))
        }
    }];
    for differing in isolated.difference.iter().take(PLACES) {
        lines.push(place(differing));
    }
    if let Some(more) = isolated.difference.len().checked_sub(PLACES + 1) {
        lines.push(format!(
            "… and {} more",
            size::counted(more as u64 + 1, "place")
        ));
    }
    lines.push(format!("passing  {}", shown(&record.passing)));
    lines.push(format!("failing  {}", shown(&record.failing)));
    lines.push(format!("log      {}", shown(&record.log)));
    lines.join("\n")
}

fn tests(record: &DifferenceResult) -> String {
    let tests = size::counted(record.tests.executed, "test");
    let (done, of) = (record.proved.done, record.proved.of);
    match done == of && of > 0 {
        true => format!(
            "in {tests}: {}, proved by {}",
            record.claim,
            size::counted(of, "outcome")
        ),
        false => format!(
            "in {tests}: {}, {done} of {of} outcomes proved",
            record.claim
        ),
    }
}

fn place(differing: &Differing) -> String {
    let at = &differing.at;
    let removed = hexdump::line(&differing.removed, 16);
    let inserted = hexdump::line(&differing.inserted, 16);
    match (differing.removed.is_empty(), differing.inserted.is_empty()) {
        (false, true) => format!("at {}  - {removed}", at.start),
        (true, _) => format!("at {}  + {inserted}", at.start),
        (false, false) => format!("at {}  - {removed}  + {inserted}", at.start),
    }
}
